/*
 * base/hash.c - checksums: XXH3, in the variant that the machine is best at.
 *
 * xxHash picks its vector width when it is compiled, so it is compiled for each
 * of them; all give the same sums.
 */
#include "base/hash.h"

#include "base/cpu.h"
#include "base/hash_variants.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static uint64_t
hash64_baseline(const void *data, size_t size)
{
    return XXH3_64bits(data, size);
}

#ifdef PYRI_HAVE_AVX2
typedef uint64_t hash64_fn(const void *data, size_t size);

static hash64_fn *hash64 = hash64_baseline;

__attribute__((constructor)) static void
choose(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2"))
        hash64 = pyri_hash64_avx2;
#ifdef PYRI_HAVE_AVX512
    if (pyri_cpu_has_avx512())
        hash64 = pyri_hash64_avx512;
#endif
}
#else
#define hash64 hash64_baseline
#endif

uint64_t
pyri_hash64(const void *data, size_t size)
{
    return hash64(data, size);
}

pyri_digest
pyri_hash128(const void *data, size_t size)
{
    XXH128_hash_t h = XXH3_128bits(data, size);
    return (pyri_digest){h.low64, h.high64};
}
