/*
 * chunk/summary_baseline.c - the loops of summaries, for any machine.
 */
#define KERNELS pyri_kernels_baseline
#include "chunk/summary_kernels.inc"
