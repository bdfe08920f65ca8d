/*
 * op/narrow.h - programs whose values fit into fewer bits.
 */
#ifndef PYRI_OP_NARROW_H
#define PYRI_OP_NARROW_H

#include "op/lanes.h"

/*
 * Run a program over dense cells in 16 or 32 bits, if it can be seen that this
 * gives the same. False, and nothing is done, if it cannot, or is not worth
 * it. As pyri_program_run().
 */
bool pyri_narrow_run(const pyri_program *p, const pyri_lanes *lanes,
                     uint64_t cells, const uint8_t *const *src,
                     pyr_type out_type, uint8_t *out);

#endif
