/*
 * base/hash_avx512.c - XXH3 compiled for machines with AVX-512.
 */
#include "base/hash_variants.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t
pyri_hash64_avx512(const void *data, size_t size)
{
    return XXH3_64bits(data, size);
}
