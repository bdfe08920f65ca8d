/*
 * gain.c - gain(factor=..., offset=...): every cell times a factor, plus an
 * offset. A cell kernel: each cell is made of itself alone.
 *
 *   cc -shared -fPIC -o gain.so gain.c
 */
#include <pyramid/kernel.h>

/* Integers are rounded to the nearest and stay within their type. */
static double
within(double v, double least, double most)
{
    v = v < 0 ? v - 0.5 : v + 0.5;
    return v >= least ? (v <= most ? v : most) : v < least ? least : 0;
}

#define LOOP(T, value)                                                         \
    for (uint64_t i = 0; i < job->cells; i++) {                                \
        double v = ((const T *)job->in)[i] * factor + offset;                  \
        ((T *)job->out)[i] = (T)(value);                                       \
    }                                                                          \
    return 0

static int
run(const pyr_kernel_job *job)
{
    double factor = job->param[0].real, offset = job->param[1].real;
    switch (job->type) {
    case PYR_KERNEL_I8: LOOP(int8_t, within(v, INT8_MIN, INT8_MAX));
    case PYR_KERNEL_U8: LOOP(uint8_t, within(v, 0, UINT8_MAX));
    case PYR_KERNEL_I16: LOOP(int16_t, within(v, INT16_MIN, INT16_MAX));
    case PYR_KERNEL_U16: LOOP(uint16_t, within(v, 0, UINT16_MAX));
    case PYR_KERNEL_I32: LOOP(int32_t, within(v, INT32_MIN, INT32_MAX));
    case PYR_KERNEL_U32: LOOP(uint32_t, within(v, 0, UINT32_MAX));
    case PYR_KERNEL_F32: LOOP(float, v);
    default: LOOP(double, v);
    }
}

static const pyr_kernel_param params[] = {
    {.name = "factor", .value = 1},
    {.name = "offset", .value = 0},
};

PYR_KERNEL_EXPORT const pyr_kernel pyramid_kernel = {
    PYR_KERNEL_HEAD,
    .name = "gain",
    .version = "1.0",
    .about = "every cell times a factor, plus an offset",
    /* 64-bit integers do not fit into a double */
    .types = PYR_KERNEL_ALL_TYPES & ~PYR_KERNEL_TYPE(PYR_KERNEL_I64) &
             ~PYR_KERNEL_TYPE(PYR_KERNEL_U64),
    .flags = PYR_KERNEL_SAME,
    .params = params,
    .nparams = 2,
    .run = run,
};
