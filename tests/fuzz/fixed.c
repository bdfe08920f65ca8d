/*
 * fuzz/fixed.c - random numbers that are the same in every run.
 *
 * The linker hands the library this in place of getrandom() (--wrap).
 */
#include "fuzz/fuzz.h"

#include <sys/types.h>

ssize_t __wrap_getrandom(void *out, size_t size, unsigned flags);

static uint64_t given;

void
fuzz_seed(uint64_t seed)
{
    given = seed;
}

ssize_t
__wrap_getrandom(void *out, size_t size, unsigned flags)
{
    (void)flags;
    for (size_t at = 0; at < size; at += 8) {
        given++;
        uint64_t bits = pyri_hash64(&given, sizeof given);
        memcpy((uint8_t *)out + at, &bits, size - at < 8 ? size - at : 8);
    }
    return (ssize_t)size;
}
