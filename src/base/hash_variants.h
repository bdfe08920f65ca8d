/*
 * base/hash_variants.h - variants of XXH3 for some machines, see hash.c.
 */
#ifndef PYRI_BASE_HASH_VARIANTS_H
#define PYRI_BASE_HASH_VARIANTS_H

#include <stddef.h>
#include <stdint.h>

uint64_t pyri_hash64_avx2(const void *data, size_t size);
uint64_t pyri_hash64_avx512(const void *data, size_t size);

#endif
