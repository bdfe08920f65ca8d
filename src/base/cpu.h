/*
 * base/cpu.h - what the processor can do.
 */
#ifndef PYRI_BASE_CPU_H
#define PYRI_BASE_CPU_H

#include <stdbool.h>

/* AVX-512 with all that variants are compiled for. Processors from before VNNI
 * have to run slower while they use it: it is not worth it there. */
#ifdef PYRI_HAVE_AVX512
static inline bool
pyri_cpu_has_avx512(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vnni");
}
#endif

#endif
