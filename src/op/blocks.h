/*
 * op/blocks.h - what reductions need of a block of values.
 */
#ifndef PYRI_OP_BLOCKS_H
#define PYRI_OP_BLOCKS_H

#include "op/execute.h"

#include <string.h>

/* Values of a block without its NaNs; *left is how many remain. Points to the
 * block itself, or to `room` for PYRI_OP_CELLS of them. */
static inline const void *
pyri_block_numbers(const pyri_lanes *l, pyri_kind kind, const void *values,
                   size_t n, double *room, size_t *left)
{
    *left = n;
    if (kind != PYRI_REAL || l->count_nans(values, n) == 0)
        return values;
    *left = l->drop_nans(room, values, n);
    return room;
}

/* The same as doubles. */
static inline const void *
pyri_block_reals(const pyri_lanes *l, pyri_kind kind, const void *values,
                 size_t n, double *room, size_t *left)
{
    if (kind == PYRI_REAL)
        return pyri_block_numbers(l, kind, values, n, room, left);
    *left = n;
    l->op[kind == PYRI_UINT ? PYRI_U_TO_F : PYRI_I_TO_F][0](room, values, NULL,
                                                            NULL, n);
    return room;
}

/* A key in the order of values, and the value's bits again. */
static inline int64_t
pyri_key_of(pyri_kind kind, uint64_t bits)
{
    if (kind == PYRI_REAL)
        return (int64_t)(bits ^ (0 - (bits >> 63)) >> 1);
    return (int64_t)(kind == PYRI_UINT ? bits ^ (uint64_t)INT64_MIN : bits);
}

static inline uint64_t
pyri_key_bits(pyri_kind kind, int64_t key)
{
    return (uint64_t)pyri_key_of(kind, (uint64_t)key);
}

static inline double
pyri_bits_real(pyri_kind kind, uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    if (kind == PYRI_REAL)
        return v;
    return kind == PYRI_UINT ? (double)bits : (double)(int64_t)bits;
}

/* Value of a uniform program, and how many cells of the box have it. */
int pyri_program_same(const pyri_program *p, int ndim, const pyri_box *box,
                      const void *const *src, uint64_t *bits, uint64_t *cells);

#endif
