/*
 * base/hash.c - checksums: XXH3, compiled in so that it is vectorised for the
 * machine that the build is for.
 */
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t
pyri_hash64(const void *data, size_t size)
{
    return XXH3_64bits(data, size);
}

pyri_digest
pyri_hash128(const void *data, size_t size)
{
    XXH128_hash_t h = XXH3_128bits(data, size);
    return (pyri_digest){h.low64, h.high64};
}
