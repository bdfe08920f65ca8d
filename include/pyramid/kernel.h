/*
 * pyramid/kernel.h - how to write a kernel: a function in C that Pyramid calls
 * by name, as `gain(factor=2.5)` or `x - median3()`.
 *
 *   #include <pyramid/kernel.h>
 *
 *   static int
 *   run(const pyr_kernel_job *job)
 *   {
 *       const double *in = job->in;
 *       double *out = job->out;
 *       for (uint64_t i = 0; i < job->cells; i++)
 *           out[i] = in[i] * job->param[0].real;
 *       return 0;
 *   }
 *
 *   static const pyr_kernel_param params[] = {{.name = "factor", .value = 1}};
 *
 *   PYR_KERNEL_EXPORT const pyr_kernel pyramid_kernel = {
 *       PYR_KERNEL_HEAD, .name = "gain", .version = "1.0",
 *       .types = PYR_KERNEL_TYPE(PYR_KERNEL_F64), .flags = PYR_KERNEL_SAME,
 *       .params = params, .nparams = 1, .run = run};
 *
 *   cc -shared -fPIC -o gain.so gain.c
 *
 * The file is called NAME.so and goes into the directory of kernels of the
 * machine; docs/kernels.md tells which that is, and why it is never one that a
 * store names. This header stands alone: a kernel links nothing of Pyramid.
 *
 * The contract. run() may be called by several threads at once, each with a job
 * of its own. It reads `in` and writes all of `out`, and nothing else of what
 * it was given; it does not call Pyramid, fork, exit, or leave threads behind.
 * What it makes depends on the job alone, so that the same call on the same
 * snapshot gives the same cells. It must not crash, whatever the cells are: it
 * runs in the process that stores them.
 */
#ifndef PYRAMID_KERNEL_H
#define PYRAMID_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The number of this interface. It changes if a kernel that was compiled
 * before could not be called any more; structs may grow at the end without. */
#define PYR_KERNEL_ABI 1u

enum {
    PYR_KERNEL_MAX_DIMS = 16,
    PYR_KERNEL_MAX_PARAMS = 16,
    PYR_KERNEL_MAX_HALO = 64
};

/* Types of cells; the numbers are those of pyr_type. */
enum {
    PYR_KERNEL_I8, PYR_KERNEL_U8, PYR_KERNEL_I16, PYR_KERNEL_U16,
    PYR_KERNEL_I32, PYR_KERNEL_U32, PYR_KERNEL_I64, PYR_KERNEL_U64,
    PYR_KERNEL_F32, PYR_KERNEL_F64
};
#define PYR_KERNEL_TYPE(type) (1u << (type))
#define PYR_KERNEL_INTEGERS 0x0ffu
#define PYR_KERNEL_REALS 0x300u
#define PYR_KERNEL_ALL_TYPES 0x3ffu

/* What cells beyond the edge of the array are taken to be. */
enum {
    PYR_KERNEL_CLAMP,  /* the nearest one that there is:     a a | a b c */
    PYR_KERNEL_MIRROR, /* mirrored, the edge one included:   b a | a b c */
    PYR_KERNEL_FILL    /* the array's fill value */
};

/* Flags of a kernel. */
enum {
    /* What it makes depends on cells and parameters, not on where they are: it
     * does not look at `origin`. Regions of one value are then worth one
     * cell's work. */
    PYR_KERNEL_SAME = 1
};

/* The value of a parameter, both ways. */
typedef struct pyr_kernel_value {
    double  real;
    int64_t whole; /* cut off, and within the limits of the type */
} pyr_kernel_value;

/* Flags of a parameter. */
enum {
    PYR_KERNEL_NEEDED = 1, /* it must be given: there is no default */
    PYR_KERNEL_WHOLE = 2   /* it must be a whole number */
};

typedef struct pyr_kernel_param {
    const char *name;
    double      value;       /* if it is not given */
    double      least, most; /* what is allowed, if least < most */
    uint32_t    flags;
} pyr_kernel_param;

/*
 * Cells to be made: a box, dense and row-major in `out`. Cell (0, 0, ...) of it
 * is made of the one at `in`; in_step[d] bytes further is the next one along
 * axis d. A kernel with a halo may look so many cells around, on both sides of
 * each axis that has it, also past the edge of the array: in[-in_step] is
 * there. For one without, `in` is dense as well.
 */
typedef struct pyr_kernel_job {
    uint32_t        size;    /* of this struct, as the caller knows it */
    uint32_t        type;
    uint32_t        ndim;
    uint64_t        cells;   /* in the box, at least 1 */
    const uint64_t *extent;  /* of the box */
    const uint64_t *origin;  /* coordinates of its first cell */
    const void     *in;
    const int64_t  *in_step;
    void           *out;     /* never the same memory as `in` */
    const pyr_kernel_value *param; /* in the order of their declaration */
    char           *message; /* what to tell the user if it fails */
    size_t          room;    /* bytes there */
} pyr_kernel_job;

typedef struct pyr_kernel {
    uint32_t    abi;       /* PYR_KERNEL_ABI */
    uint32_t    size;      /* of this struct */
    const char *name;      /* as the file, without ".so" */
    const char *version;   /* letters, digits, points; kept in the history */
    const char *about;     /* a line for people, or NULL */
    uint32_t    types;     /* of cells that it knows: a bit each */
    uint32_t    flags;
    uint32_t    halo;      /* cells; 0: each cell is made of itself alone */
    uint32_t    halo_axes; /* the last so many axes have it; 0: all */
    uint32_t    edge;      /* PYR_KERNEL_CLAMP, ... */
    uint32_t    least_ndim, most_ndim; /* of the array; 0: any */
    uint32_t    nparams;
    const pyr_kernel_param *params;
    /* 0, or anything else if it failed; then nothing is published. */
    int       (*run)(const pyr_kernel_job *job);
} pyr_kernel;

#define PYR_KERNEL_HEAD .abi = PYR_KERNEL_ABI, .size = sizeof(pyr_kernel)

#if defined(__GNUC__)
#define PYR_KERNEL_EXPORT __attribute__((visibility("default")))
#else
#define PYR_KERNEL_EXPORT
#endif

/* What a shared object must have. */
extern PYR_KERNEL_EXPORT const pyr_kernel pyramid_kernel;

#ifdef __cplusplus
}
#endif

#endif
