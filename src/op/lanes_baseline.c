/*
 * op/lanes_baseline.c - the loops over blocks of cells, for any machine.
 */
#define TABLE pyri_lanes_baseline
#include "op/lanes.inc"
