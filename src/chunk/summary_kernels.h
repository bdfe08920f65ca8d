/*
 * chunk/summary_kernels.h - what summary.c shares with the loops that look at
 * cells. The loops are compiled once for any machine of the family, once for
 * AVX2 and once for AVX-512; all give the same bits.
 */
#ifndef PYRI_CHUNK_SUMMARY_KERNELS_H
#define PYRI_CHUNK_SUMMARY_KERNELS_H

#include "chunk/chunk.h"

#include <math.h>

enum { PYRI_TYPES = PYR_F64 + 1 };

/* *out becomes the summary of n cells, n > 0, of any alignment. */
typedef void pyri_kernel_fn(pyri_summary *out, uint64_t fill,
                            const void *cells, size_t n);

extern pyri_kernel_fn *const pyri_kernels_baseline[PYRI_TYPES];
#ifdef PYRI_HAVE_AVX2
extern pyri_kernel_fn *const pyri_kernels_avx2[PYRI_TYPES];
#endif
#ifdef PYRI_HAVE_AVX512
extern pyri_kernel_fn *const pyri_kernels_avx512[PYRI_TYPES];
#endif

/*
 * (*sum, *lost) += (x, less): afterwards *sum is the double nearest to the
 * whole and *lost is the rest, within 4 * 2^-106 of the larger operand. When
 * the sum is no longer finite it goes on as an IEEE sum would, and *lost, which
 * could only spoil it, is 0. There is one NaN, so that stored bytes agree.
 */
static inline void
pyri_sum_add(double *sum, double *lost, double x, double less)
{
    double s = *sum + x, from_x = s - *sum;
    double e = (*sum - (s - from_x)) + (x - from_x) + (*lost + less);
    double whole = s + e, rest = e - (whole - s);
    if (!isfinite(s) || !isfinite(rest)) {
        whole = isnan(s) ? (double)NAN : s;
        rest = 0;
    }
    *sum = whole;
    *lost = rest;
}

#endif
