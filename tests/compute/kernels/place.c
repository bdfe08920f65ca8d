/*
 * compute/kernels/place.c - what a cell kernel is told: coordinates and
 * parameters. place(base=..., step=1) is base + step times the coordinates as
 * the digits of a number.
 */
#include <pyramid/kernel.h>

static int
run(const pyr_kernel_job *job)
{
    for (uint64_t at = 0; at < job->cells; at++) {
        uint64_t rest = at, sum = 0, weight = 1;
        for (uint32_t d = job->ndim; d-- > 0; weight *= 100) {
            sum += weight * (job->origin[d] + rest % job->extent[d]);
            rest /= job->extent[d];
        }
        ((int32_t *)job->out)[at] =
            (int32_t)(job->param[0].whole +
                      job->param[1].whole * (int64_t)sum);
    }
    return 0;
}

static const pyr_kernel_param params[] = {
    {.name = "base", .flags = PYR_KERNEL_NEEDED | PYR_KERNEL_WHOLE},
    {.name = "step", .value = 1, .least = -10, .most = 10},
};

PYR_KERNEL_EXPORT const pyr_kernel pyramid_kernel = {
    PYR_KERNEL_HEAD,
    .name = "place",
    .version = "1",
    .types = PYR_KERNEL_TYPE(PYR_KERNEL_I32),
    .most_ndim = 3,
    .params = params,
    .nparams = 2,
    .run = run,
};
