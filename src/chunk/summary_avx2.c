/*
 * chunk/summary_avx2.c - the loops of summaries, compiled with -mavx2; called
 * only where the processor has it.
 */
#define KERNELS pyri_kernels_avx2
#include "chunk/summary_kernels.inc"
