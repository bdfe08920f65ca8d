/*
 * laplacian.c - laplacian(spacing=1): the sum of second differences along all
 * axes, divided by the square of the distance between cells. Beyond the edge
 * the array is mirrored, so that nothing flows out of it.
 *
 *   cc -shared -fPIC -O2 -o laplacian.so laplacian.c
 */
#include <pyramid/kernel.h>

#include <string.h>

#define ROW(T)                                                                 \
    static void row_##T(const pyr_kernel_job *job, const char *in, T *out,     \
                        double scale)                                          \
    {                                                                          \
        int64_t right = job->in_step[job->ndim - 1];                           \
        for (uint64_t i = 0; i < job->extent[job->ndim - 1]; i++) {            \
            const char *at = in + (int64_t)i * right;                          \
            double sum = 0;                                                    \
            for (uint32_t d = 0; d < job->ndim; d++)                           \
                sum += (double)*(const T *)(at - job->in_step[d]) -            \
                       2 * (double)*(const T *)at +                            \
                       (double)*(const T *)(at + job->in_step[d]);             \
            out[i] = (T)(sum * scale);                                         \
        }                                                                      \
    }

ROW(float)
ROW(double)

static int
run(const pyr_kernel_job *job)
{
    uint32_t last = job->ndim - 1;
    uint64_t row[PYR_KERNEL_MAX_DIMS] = {0}, width = job->extent[last];
    double spacing = job->param[0].real, scale = 1 / (spacing * spacing);
    if (spacing == 0) {
        strncpy(job->message, "cells cannot be 0 apart", job->room - 1);
        return 1;
    }
    for (uint64_t at = 0; at < job->cells; at += width) {
        const char *in = (const char *)job->in;
        for (uint32_t d = 0; d < last; d++)
            in += (int64_t)row[d] * job->in_step[d];
        if (job->type == PYR_KERNEL_F32)
            row_float(job, in, (float *)job->out + at, scale);
        else
            row_double(job, in, (double *)job->out + at, scale);
        for (uint32_t d = last; d-- > 0 && ++row[d] == job->extent[d];)
            row[d] = 0;
    }
    return 0;
}

static const pyr_kernel_param params[] = {{.name = "spacing", .value = 1}};

PYR_KERNEL_EXPORT const pyr_kernel pyramid_kernel = {
    PYR_KERNEL_HEAD,
    .name = "laplacian",
    .version = "1.0",
    .about = "second differences along all axes",
    .types = PYR_KERNEL_REALS,
    .flags = PYR_KERNEL_SAME,
    .halo = 1,
    .edge = PYR_KERNEL_MIRROR,
    .params = params,
    .nparams = 1,
    .run = run,
};
