/*
 * op/execute.h - running a program block by block, for those inside the
 * layer who want the values and not cells.
 */
#ifndef PYRI_OP_EXECUTE_H
#define PYRI_OP_EXECUTE_H

#include "op/lanes.h"
#include "op/op.h"

/* n values of the program's kind, 8 bytes each at any alignment, of the cells
 * of the box from number `first` on. Returns 0, or a number that ends it. */
typedef int pyri_block_fn(void *ctx, const void *values, size_t n,
                          uint64_t first);

int pyri_program_blocks(const pyri_program *p, int ndim, const pyri_box *box,
                        const void *const *src, pyri_block_fn *fn, void *ctx);

#endif
