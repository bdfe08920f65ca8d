/*
 * kernel/kernel.h - functions in C that an administrator installs: finding
 * them, and calling them on cells. The door of the layer.
 *
 *   pyri_kernels k;
 *   err = pyri_kernels_bind(&k, dir, &expr, type, ndim);
 *   ...
 *   err = pyri_kernel_run(&k.bound[i], &job);       // cells of source s
 *
 * The code of others runs in our process, so it is loaded only from a
 * directory that this machine names, never from one that a store does, and
 * only if nobody but root and ourselves can have put it there (load.c).
 */
#ifndef PYRI_KERNEL_KERNEL_H
#define PYRI_KERNEL_KERNEL_H

#include "nd/nd.h"
#include "op/op.h"

#include <pyramid/kernel.h>

/* --- finding (load.c) ---------------------------------------------------- */

/* The directory that kernels are in: `asked` if that is not NULL, else what
 * PYRAMID_KERNELS says, else the one of the installation. "": none. */
const char *pyri_kernel_dir(const char *asked);

/*
 * The kernel of that name in a directory, loaded and checked. It stays loaded
 * until the process ends, so that whoever has it may go on calling it.
 *
 * Errors: PYR_EKERNEL, with the name and why.
 */
int pyri_kernel_find(const char *dir, const char *name,
                     const pyr_kernel **out);

/* --- calls (bind.c) ------------------------------------------------------ */

/* A kernel with its parameters, for cells of a type in some dimensions. */
typedef struct pyri_bound {
    const pyr_kernel *kernel;
    pyr_type type;
    int ndim;
    pyr_kernel_value param[PYR_KERNEL_MAX_PARAMS];
} pyri_bound;

/* The kernels that make sources of a program. */
typedef struct pyri_kernels {
    int n;
    pyri_bound bound[PYRI_EXPR_MAX_CALLS];
    int8_t of[PYRI_OP_MAX_SOURCES]; /* which of them makes source s; -1 */
    bool same;                      /* none looks at coordinates */
    uint64_t halo[PYR_MAX_DIMS];    /* the widest of all, along each axis */
} pyri_kernels;

/*
 * Find the kernels that the program of an expression needs.
 *
 * Errors: PYR_EKERNEL if one is not there, or knows neither the type nor
 * the dimensions; PYR_EINVAL for parameters that it does not take.
 */
int pyri_kernels_bind(pyri_kernels *k, const char *dir, const pyri_expr *e,
                      pyr_type type, int ndim);
/* Without any. */
void pyri_kernels_none(pyri_kernels *k);
/* Append "  # name version, ..." to a text that ends with a zero byte. */
void pyri_kernels_note(const pyri_kernels *k, pyri_buf *text);

/* Cells beyond it along an axis that the kernel looks at. */
static inline uint64_t
pyri_bound_halo(const pyri_bound *b, int axis)
{
    const pyr_kernel *k = b->kernel;
    bool has = k->halo_axes == 0 || axis >= b->ndim - (int)k->halo_axes;
    return has ? k->halo : 0;
}

/*
 * Make the cells of a box. `in` is the memory of its first cell, with the halo
 * around it; `out` is dense.
 *
 * Errors: PYR_EKERNEL, with the kernel's name and what it said.
 */
int pyri_kernel_run(const pyri_bound *b, const pyri_box *box, pyri_mem in,
                    void *out);

/* --- windows (window.c) -------------------------------------------------- */

/* The memory of a box with the halo around it. */
typedef struct pyri_window {
    pyri_box box;     /* what is wanted */
    pyri_box inside;  /* with the halo, as far as the array has it */
    uint64_t low[PYR_MAX_DIMS];    /* cells before `inside` that it has not */
    uint64_t extent[PYR_MAX_DIMS]; /* of all */
    pyri_mem all;     /* its first cell; all.base NULL: no memory yet */
    size_t bytes;     /* that it takes */
} pyri_window;

/* Lay it out for a box inside a shape. PYR_ENOMEM if it is too large. */
int pyri_window_init(pyri_window *w, const pyri_bound *b, const pyri_box *box,
                     const uint64_t *shape);
/* Memory of the first cell of `inside`, and of `box`. */
pyri_mem pyri_window_inside(const pyri_window *w, int ndim);
pyri_mem pyri_window_box(const pyri_window *w, int ndim);
/* `inside` has its cells: set those around it, as the kernel has declared. */
void pyri_window_pad(const pyri_window *w, const pyri_bound *b,
                     const uint64_t *shape, uint64_t fill);

#endif
