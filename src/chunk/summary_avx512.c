/*
 * chunk/summary_avx512.c - the loops of summaries, compiled for AVX-512; called
 * only where the processor has it.
 */
#define KERNELS pyri_kernels_avx512
#include "chunk/summary_kernels.inc"
