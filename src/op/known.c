/*
 * op/known.c - reductions of cells that nobody looks at: what a summary of
 * them tells.
 */
#include "op/op.h"

#include "op/blocks.h"
#include "op/verify.h"

#include <math.h>
#include <string.h>

typedef unsigned __int128 u128; /* wraps if a summary lies */

/* A cell's bits as a value of its kind. */
static uint64_t
value_of(pyr_type type, uint64_t bits)
{
    uint8_t cell[8];
    uint64_t value;
    pyri_cell_store(type, cell, bits);
    const pyri_lanes *l = &pyri_lanes_baseline;
    (pyri_type_is_float(type) ? l->load_f : l->load_w)[type](&value, cell, 1);
    return value;
}

/* Of the cells that are not NaN: how many are not 0. False if unknown. */
static bool
count_truths(pyr_type type, const pyri_known *k, pyri_reduce_op op,
             uint64_t *truths)
{
    pyri_kind kind = pyri_type_kind(type);
    double min = pyri_bits_real(kind, value_of(type, k->min));
    double max = pyri_bits_real(kind, value_of(type, k->max));
    uint64_t numbers = k->count - k->nans;
    bool some = min != 0 || max != 0, zeros = min == 0 || max == 0;
    *truths = numbers;
    if (numbers == 0 || min > 0 || max < 0)
        return true;
    *truths = 0;
    if (!some)
        return true;
    if (kind != PYRI_REAL && k->fill == 0) {
        *truths = k->not_fill;
        return true;
    }
    /* One of each kind is as good as many. */
    *truths = op == PYRI_RED_ANY ? 1 : numbers - 1;
    return op == PYRI_RED_ANY || (op == PYRI_RED_ALL && zeros);
}

/*
 * Squares around the mean from a sum of squares around zero. Of integers they
 * are exact while squares are, below 2^53. Of reals, squares are good to (40 +
 * count / 512) roundings, which weigh the more the smaller the difference.
 */
static bool
squares_of(pyr_type type, const pyri_known *k, double tolerance, double *mean,
           double *out)
{
    double n = (double)(k->count - k->nans);
    *mean = pyri_type_is_float(type) ? (k->sum + k->sum_lost) / n
                                     : (double)k->sum_int / n;
    if (!pyri_type_is_float(type) && k->squares <= 0x1p53) {
        u128 sum = (u128)k->sum_int, count = k->count;
        pyri_i128 times = (pyri_i128)(count * (u128)k->squares - sum * sum);
        *out = times > 0 ? (double)times / n : 0;
        return true;
    }
    *out = k->squares - *mean * *mean * n;
    double error = (40 + n / 512) * 0x1p-52 * k->squares;
    return isfinite(k->squares) && tolerance > 0 && *out > 0 &&
           error <= tolerance * *out;
}

/* The cells themselves, reduced. */
static bool
know_cells(const pyri_reduction *r, pyr_type type, const pyri_known *k,
           double tolerance, pyri_partial *more)
{
    pyri_kind kind = pyri_type_kind(type);
    more->count = k->count - k->nans;
    more->nans = k->nans;
    if (more->count == 0)
        return true;
    switch (r->op) {
    case PYRI_RED_COUNT:
    case PYRI_RED_ANY:
    case PYRI_RED_ALL: return count_truths(type, k, r->op, &more->truths);
    case PYRI_RED_MIN:
    case PYRI_RED_MAX:
        more->key = pyri_key_of(kind,
                                value_of(type, r->op == PYRI_RED_MIN ? k->min
                                                                     : k->max));
        return true;
    case PYRI_RED_VAR:
    case PYRI_RED_STD:
        return squares_of(type, k, tolerance, &more->mean, &more->squares);
    case PYRI_RED_SUM:
    case PYRI_RED_MEAN: break;
    default: return false;
    }
    if (kind == PYRI_REAL) {
        more->sum = k->sum;
        more->sum_lost = k->sum_lost;
    } else {
        more->sum_int = k->sum_int;
    }
    return true;
}

bool
pyri_partial_known(pyri_partial *t, const pyri_reduction *r,
                   const pyri_program *p, int ndim, const pyri_box *box,
                   const pyri_known *k, double tolerance)
{
    pyri_partial more;
    if (r->op >= PYRI_RED_HISTOGRAM)
        return false;
    if (k->count == 0)
        return true;
    if (k->equal && pyri_program_uniform(p) && p->sources == 1) {
        uint8_t cell[8];
        const void *src[] = {cell};
        pyri_cell_store(p->cell, cell, k->min);
        return pyri_partial_run_same(t, r, p, ndim, box, src) == 0;
    }
    pyri_partial_init(&more);
    if (!p->identity || !know_cells(r, p->cell, k, tolerance, &more))
        return false;
    pyri_partial_merge(t, r, ndim, &more);
    return true;
}
