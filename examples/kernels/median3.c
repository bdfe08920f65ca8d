/*
 * median3.c - median3(): the median of the 3 x 3 cells around each one, along
 * the last two axes. Takes away single bad pixels and leaves edges as they
 * are; of a stack of images it filters each. NaNs count as larger than all
 * numbers.
 *
 *   cc -shared -fPIC -O2 -o median3.so median3.c
 */
#include <pyramid/kernel.h>

/* The middle of nine, by comparisons that depend on no data. */
static const unsigned char steps[][2] = {
    {1, 2}, {4, 5}, {7, 8}, {0, 1}, {3, 4}, {6, 7}, {1, 2},
    {4, 5}, {7, 8}, {0, 3}, {5, 8}, {4, 7}, {3, 6}, {1, 4},
    {2, 5}, {4, 7}, {4, 2}, {6, 4}, {4, 2},
};

/* Rows of the last two axes: y and x of row r of image z. */
typedef struct walk {
    const char *in;
    uint64_t width;
    int64_t down, right;
} walk;

#define FILTER(T)                                                              \
    static void filter_##T(const walk *w, T *out)                              \
    {                                                                          \
        for (uint64_t i = 0; i < w->width; i++) {                              \
            T v[9];                                                            \
            for (int k = 0; k < 9; k++)                                        \
                v[k] = *(const T *)(w->in + (k / 3 - 1) * w->down +            \
                                    ((int64_t)i + k % 3 - 1) * w->right);      \
            for (unsigned s = 0; s < sizeof steps / sizeof *steps; s++) {      \
                T *a = &v[steps[s][0]], *b = &v[steps[s][1]], t = *a;          \
                if (*b < *a || *a != *a) {                                     \
                    *a = *b;                                                   \
                    *b = t;                                                    \
                }                                                              \
            }                                                                  \
            out[i] = v[4];                                                     \
        }                                                                      \
    }

FILTER(int8_t)
FILTER(uint8_t)
FILTER(int16_t)
FILTER(uint16_t)
FILTER(int32_t)
FILTER(uint32_t)
FILTER(int64_t)
FILTER(uint64_t)
FILTER(float)
FILTER(double)

static void
filter_row(uint32_t type, const walk *w, void *out, uint64_t at)
{
    switch (type) {
    case PYR_KERNEL_I8: filter_int8_t(w, (int8_t *)out + at); break;
    case PYR_KERNEL_U8: filter_uint8_t(w, (uint8_t *)out + at); break;
    case PYR_KERNEL_I16: filter_int16_t(w, (int16_t *)out + at); break;
    case PYR_KERNEL_U16: filter_uint16_t(w, (uint16_t *)out + at); break;
    case PYR_KERNEL_I32: filter_int32_t(w, (int32_t *)out + at); break;
    case PYR_KERNEL_U32: filter_uint32_t(w, (uint32_t *)out + at); break;
    case PYR_KERNEL_I64: filter_int64_t(w, (int64_t *)out + at); break;
    case PYR_KERNEL_U64: filter_uint64_t(w, (uint64_t *)out + at); break;
    case PYR_KERNEL_F32: filter_float(w, (float *)out + at); break;
    default: filter_double(w, (double *)out + at); break;
    }
}

static int
run(const pyr_kernel_job *job)
{
    uint32_t last = job->ndim - 1;
    uint64_t row[PYR_KERNEL_MAX_DIMS] = {0}; /* where the row is */
    walk w = {.width = job->extent[last],
              .down = job->in_step[last - 1],
              .right = job->in_step[last]};
    for (uint64_t at = 0; at < job->cells; at += w.width) {
        w.in = (const char *)job->in;
        for (uint32_t d = 0; d < last; d++)
            w.in += (int64_t)row[d] * job->in_step[d];
        filter_row(job->type, &w, job->out, at);
        for (uint32_t d = last; d-- > 0 && ++row[d] == job->extent[d];)
            row[d] = 0;
    }
    return 0;
}

PYR_KERNEL_EXPORT const pyr_kernel pyramid_kernel = {
    PYR_KERNEL_HEAD,
    .name = "median3",
    .version = "1.0",
    .about = "the median of 3 x 3 cells along the last two axes",
    .types = PYR_KERNEL_ALL_TYPES,
    .flags = PYR_KERNEL_SAME,
    .halo = 1,
    .halo_axes = 2,
    .edge = PYR_KERNEL_CLAMP,
    .run = run,
};
