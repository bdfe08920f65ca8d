/*
 * op/lanes.h - the loops over blocks of cells. They are compiled once for any
 * machine of the family and once for AVX2; both give the same bits.
 */
#ifndef PYRI_OP_LANES_H
#define PYRI_OP_LANES_H

#include "op/op.h"
#include "op/opcodes.h"

enum { PYRI_OP_TYPES = PYR_F64 + 1, PYRI_OP_KINDS = PYRI_REAL + 1 };

/*
 * d[i] = f(a[i], b[i], c[i]) for n cells of 8 bytes, of any alignment. d may
 * be one of the others. In a variant for constants, these point to one cell.
 */
typedef void pyri_lane_fn(void *d, const void *a, const void *b, const void *c,
                          size_t n);
/* n cells of a type to or from 8 bytes each. */
typedef void pyri_cast_fn(void *d, const void *s, size_t n);

/* Loops over integers of fewer bits; as below, NULL where there is none. */
typedef struct pyri_narrow {
    pyri_lane_fn *op[PYRI_OPS][8];
    pyri_cast_fn *load[PYRI_OP_TYPES], *store[PYRI_OP_TYPES];
} pyri_narrow;

typedef struct pyri_lanes {
    /* By instruction, and by which arguments are constants: bit k is arg[k].
     * NULL: there is no such variant. */
    pyri_lane_fn *op[PYRI_OPS][8];
    pyri_cast_fn *load_w[PYRI_OP_TYPES]; /* NULL: of reals */
    pyri_cast_fn *load_f[PYRI_OP_TYPES];
    pyri_cast_fn *store[PYRI_OP_KINDS][PYRI_OP_TYPES];
    const pyri_narrow *narrow_16, *narrow_32;

    /* For reductions; n is at most PYRI_OP_CELLS. */
    double (*sum)(const void *v, size_t n);
    double (*squares)(const void *v, size_t n, double mean);
    /* Copy what is not NaN; returns how many. */
    size_t (*drop_nans)(double *d, const void *v, size_t n);
    size_t (*count_nans)(const void *v, size_t n);
    /* Sum of integers of a kind; exact. */
    pyri_i128 (*sum_int)(const void *v, size_t n, pyri_kind kind);
    size_t (*truths)(const void *v, size_t n, pyri_kind kind);
    /* Keys in the order of values; -0.0 is below +0.0. */
    void (*keys)(int64_t *d, const void *v, size_t n, pyri_kind kind);
    int64_t (*min)(const int64_t *key, size_t n);
    int64_t (*max)(const int64_t *key, size_t n);
} pyri_lanes;

extern const pyri_lanes pyri_lanes_baseline;
#ifdef PYRI_HAVE_AVX2
extern const pyri_lanes pyri_lanes_avx2;
#endif

/* Those that this machine is best at. */
static inline const pyri_lanes *
pyri_lanes_best(void)
{
#ifdef PYRI_HAVE_AVX2
    if (__builtin_cpu_supports("avx2"))
        return &pyri_lanes_avx2;
#endif
    return &pyri_lanes_baseline;
}

#endif
