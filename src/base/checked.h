/*
 * base/checked.h - add and multiply that notice overflow: true if it fits.
 */
#ifndef PYRI_BASE_CHECKED_H
#define PYRI_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool
pyri_add64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

static inline bool
pyri_mul64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

/* Is the product of those that are not 0 at most 2^64 - 2? (A 0 must not hide
 * the others: it may become 1.) */
static inline bool
pyri_countable(int n, const uint64_t *factors)
{
    uint64_t product = 1;
    for (int i = 0; i < n; i++)
        if (factors[i] && !pyri_mul64(product, factors[i], &product))
            return false;
    return product < UINT64_MAX;
}

static inline uint64_t
pyri_min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t
pyri_max64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

#endif
