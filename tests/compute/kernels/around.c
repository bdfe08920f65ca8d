/*
 * compute/kernels/around.c - a sum of cells around each one, along every axis,
 * with weights that tell them apart. EDGE and NAME come from the build.
 */
#include <pyramid/kernel.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

enum { HALO = 2 };

#define CELL(T)                                                                \
    {                                                                          \
        T sum = 0;                                                             \
        for (uint32_t d = 0; d < job->ndim; d++)                               \
            for (int k = -HALO; k <= HALO; k++)                                \
                sum = (T)(sum + (T)(*(const T *)(in + k * job->in_step[d]) *   \
                                    (T)(k + 3 + 5 * (int)d)));                 \
        ((T *)job->out)[at] = sum;                                             \
    }                                                                          \
    break

static void
make(const pyr_kernel_job *job, const char *in, uint64_t at)
{
    switch (job->type) {
    case PYR_KERNEL_I8:
    case PYR_KERNEL_U8: CELL(uint8_t);
    case PYR_KERNEL_I16:
    case PYR_KERNEL_U16: CELL(uint16_t);
    case PYR_KERNEL_I32:
    case PYR_KERNEL_U32: CELL(uint32_t);
    case PYR_KERNEL_I64:
    case PYR_KERNEL_U64: CELL(uint64_t);
    case PYR_KERNEL_F32: CELL(float);
    default: CELL(double);
    }
}

static int
run(const pyr_kernel_job *job)
{
    uint64_t place[PYR_KERNEL_MAX_DIMS] = {0};
    for (uint64_t at = 0; at < job->cells; at++) {
        const char *in = (const char *)job->in;
        for (uint32_t d = 0; d < job->ndim; d++)
            in += (int64_t)place[d] * job->in_step[d];
        make(job, in, at);
        for (uint32_t d = job->ndim; d-- > 0 && ++place[d] == job->extent[d];)
            place[d] = 0;
    }
    return 0;
}

PYR_KERNEL_EXPORT const pyr_kernel pyramid_kernel = {
    PYR_KERNEL_HEAD,
    .name = TEXT(NAME),
    .version = "2.1-test",
    .types = PYR_KERNEL_ALL_TYPES,
    .flags = PYR_KERNEL_SAME,
    .halo = HALO,
    .edge = EDGE,
    .run = run,
};
