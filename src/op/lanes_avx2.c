/*
 * op/lanes_avx2.c - the loops over blocks of cells, compiled with -mavx2;
 * called only where the processor has it.
 */
#define TABLE pyri_lanes_avx2
#include "op/lanes.inc"
