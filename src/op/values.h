/*
 * op/values.h - making typed values, shared by lower.c and values.c.
 *
 * Functions return the number of a value, or PYR_EINVAL.
 */
#ifndef PYRI_OP_VALUES_H
#define PYRI_OP_VALUES_H

#include "op/syntax.h"

#include <pyramid/error.h>

int pyri_value_whole(pyri_parse *p, pyri_kind kind, uint64_t bits);
int pyri_value_real(pyri_parse *p, double v);

/* An instruction, or its result if all arguments are constants; b and c are -1
 * if there are none. `kind` is that of the result. */
int pyri_value_op(pyri_parse *p, int op, pyri_kind kind, int a, int b, int c);

/* The value as another kind. Integers wrap, or saturate: -1 is either the
 * largest unsigned integer or 0. Reals saturate in any case. */
int pyri_value_wrap(pyri_parse *p, int v, pyri_kind kind);
int pyri_value_saturate(pyri_parse *p, int v, pyri_kind kind);

/* 0 or 1. */
int pyri_value_truth(pyri_parse *p, int v);
int pyri_value_not(pyri_parse *p, int v);

/* True if it is a constant; its bits in *bits. */
bool pyri_value_is_const(const pyri_parse *p, int v, uint64_t *bits);
/* True if a signed value is known not to be negative. */
bool pyri_value_not_negative(const pyri_parse *p, int v);

#endif
