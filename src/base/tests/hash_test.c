/*
 * Checksums: the variants agree, and no byte goes unnoticed.
 */
#include "base/cpu.h"
#include "base/hash.h"
#include "base/hash_variants.h"
#include "support/check.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { SIZES = 5000, OFFSETS = 67 };

static uint8_t bytes[SIZES + OFFSETS + 1];

static void
fill_bytes(void)
{
    uint64_t state = 42;
    for (size_t i = 0; i < sizeof bytes; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (uint8_t)(state >> 56);
    }
}

/* This program is compiled for the least of machines: what it inlines is the
 * baseline. */
static void
the_chosen_variant_agrees_with_the_baseline(void)
{
    fill_bytes();
    for (size_t size = 0; size <= SIZES; size++)
        for (size_t at = size % 3; at < OFFSETS; at += 3)
            REQUIRE(pyri_hash64(bytes + at, size) ==
                    XXH3_64bits(bytes + at, size));
}

static void
the_variant_for_avx2_agrees_with_the_baseline(void)
{
#ifdef PYRI_HAVE_AVX2
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2"))
        return;
    fill_bytes();
    for (size_t size = 0; size <= SIZES; size++)
        for (size_t at = size % 3; at < OFFSETS; at += 3)
            REQUIRE(pyri_hash64_avx2(bytes + at, size) ==
                    XXH3_64bits(bytes + at, size));
#endif
}

static void
the_variant_for_avx512_agrees_with_the_baseline(void)
{
#ifdef PYRI_HAVE_AVX512
    if (!pyri_cpu_has_avx512())
        return;
    fill_bytes();
    for (size_t size = 0; size <= SIZES; size++)
        for (size_t at = size % 3; at < OFFSETS; at += 3)
            REQUIRE(pyri_hash64_avx512(bytes + at, size) ==
                    XXH3_64bits(bytes + at, size));
#endif
}

static void
where_bytes_stand_in_memory_changes_nothing(void)
{
    static uint8_t moved[sizeof bytes];
    fill_bytes();
    for (size_t size = 0; size <= SIZES; size += 1 + size / 8) {
        pyri_digest d = pyri_hash128(bytes, size);
        for (size_t at = 0; at < OFFSETS; at++) {
            memcpy(moved + at, bytes, size);
            pyri_digest e = pyri_hash128(moved + at, size);
            REQUIRE(d.lo == e.lo && d.hi == e.hi);
            REQUIRE(pyri_hash64(moved + at, size) == pyri_hash64(bytes, size));
        }
    }
}

static void
a_flipped_bit_changes_every_sum(void)
{
    static const size_t sizes[] = {1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241,
                                   1024, 1025, 4096};
    fill_bytes();
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        uint64_t sum = pyri_hash64(bytes, sizes[k]);
        pyri_digest d = pyri_hash128(bytes, sizes[k]);
        for (size_t i = 0; i < 8 * sizes[k]; i++) {
            bytes[i / 8] ^= (uint8_t)(1u << (i % 8));
            pyri_digest e = pyri_hash128(bytes, sizes[k]);
            REQUIRE(pyri_hash64(bytes, sizes[k]) != sum);
            REQUIRE(e.lo != d.lo && e.hi != d.hi);
            bytes[i / 8] ^= (uint8_t)(1u << (i % 8));
        }
    }
}

/* What is stored must be found again: the sums may never change. */
static void
the_sums_are_those_of_xxh3(void)
{
    pyri_digest d = pyri_hash128("", 0);
    CHECK(pyri_hash64("", 0) == 0x2d06800538d394c2u);
    CHECK(d.lo == 0x6001c324468d497fu && d.hi == 0x99aa06d3014798d8u);
}

TESTS(T(the_chosen_variant_agrees_with_the_baseline),
      T(the_variant_for_avx2_agrees_with_the_baseline),
      T(the_variant_for_avx512_agrees_with_the_baseline),
      T(where_bytes_stand_in_memory_changes_nothing),
      T(a_flipped_bit_changes_every_sum), T(the_sums_are_those_of_xxh3))
