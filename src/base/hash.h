/*
 * base/hash.h - checksums: XXH3 of xxHash, 64 and 128 bits.
 */
#ifndef PYRI_BASE_HASH_H
#define PYRI_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct pyri_digest {
    uint64_t lo, hi;
} pyri_digest;

uint64_t pyri_hash64(const void *data, size_t size);
pyri_digest pyri_hash128(const void *data, size_t size);

#endif
