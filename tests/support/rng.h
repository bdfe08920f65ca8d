/*
 * support/rng.h - random numbers that a failing test can be run again with,
 * how large tests are to be, and time.
 *
 *   PYR_TEST_SEED   the seed; a random one is made and printed without it
 *   PYR_TEST_SCALE  small, normal or large
 */
#ifndef SUPPORT_RNG_H
#define SUPPORT_RNG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct rng {
    uint64_t state;
} rng;

/* Spreads any 64 bits over 64 others. */
static inline uint64_t
rng_mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x9fb21c651e98df25u;
    x ^= x >> 29;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}

static inline rng
rng_of(uint64_t seed)
{
    uint64_t state = rng_mix(seed + 0x632be59bd9b4e019u);
    return (rng){state ? state : 1};
}

static inline uint64_t
rng_next(rng *r)
{
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    return r->state * 0x2545f4914f6cdd1du;
}

/* 0 <= x < n; n must not be 0. */
static inline uint64_t
rng_below(rng *r, uint64_t n)
{
    return (rng_next(r) >> 8) % n;
}

/* lo <= x <= hi. */
static inline uint64_t
rng_from(rng *r, uint64_t lo, uint64_t hi)
{
    return lo + rng_below(r, hi - lo + 1);
}

/* True once in n times. */
static inline bool
rng_once_in(rng *r, uint64_t n)
{
    return rng_below(r, n) == 0;
}

static inline int64_t
now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void
nap_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

static inline uint64_t
test_seed(void)
{
    static uint64_t seed;
    const char *text = getenv("PYR_TEST_SEED");
    if (seed == 0 && text && *text)
        seed = strtoull(text, NULL, 0);
    while (seed == 0) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        seed = rng_mix((uint64_t)t.tv_sec * 1000000007u +
                       (uint64_t)t.tv_nsec) >> 16;
        char given[32]; /* for children, and who tells how to do it again */
        snprintf(given, sizeof given, "0x%llx", (unsigned long long)seed);
        setenv("PYR_TEST_SEED", given, 1);
        printf("# PYR_TEST_SEED=%s\n", given);
        fflush(stdout);
    }
    return seed;
}

#if defined(__SANITIZE_THREAD__)
#define TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TEST_TSAN 1
#endif
#endif
#ifndef TEST_TSAN
#define TEST_TSAN 0
#endif

/* The one of three numbers that fits the scale of this run; `tiny` is a quarter
 * of the first, for where each step takes long. */
static inline uint64_t
by_scale(uint64_t small, uint64_t normal, uint64_t large)
{
    const char *text = getenv("PYR_TEST_SCALE");
    if (text && strcmp(text, "large") == 0)
        return large;
    if (text && strcmp(text, "tiny") == 0)
        return small < 8 ? (small + 1) / 2 : small / 4;
    if (TEST_TSAN || (text && strcmp(text, "small") == 0))
        return small;
    return normal;
}

#endif
