/*
 * kernel/window.c - a box of cells with a halo around it.
 *
 *        low             inside          (the array ends)
 *      .......+-------------------------+......
 *      .......|   +-----------------+   |......      all: what a kernel may
 *      .......|   |       box       |   |......      look at
 *      .......|   +-----------------+   |......
 *      .......+-------------------------+......
 *
 * What the array does not have is set axis by axis: first along axis 0, where
 * the others are inside, then along axis 1, where axis 0 is set already, and so
 * on; so corners come out right, too.
 */
#include "kernel/kernel.h"

#include "base/checked.h"
#include "base/fail.h"

#include <string.h>

int
pyri_window_init(pyri_window *w, const pyri_bound *b, const pyri_box *box,
                 const uint64_t *shape)
{
    uint64_t bytes = pyri_type_size(b->type);
    bool fits = true;
    *w = (pyri_window){.box = *box};
    for (int d = 0; d < b->ndim; d++) {
        uint64_t halo = pyri_bound_halo(b, d), past;
        w->low[d] = box->lo[d] < halo ? halo - box->lo[d] : 0;
        w->inside.lo[d] = box->lo[d] - (halo - w->low[d]);
        if (!pyri_add64(box->hi[d], halo, &past) || past > shape[d])
            past = shape[d];
        w->inside.hi[d] = past;
        w->extent[d] = box->hi[d] - box->lo[d] + 2 * halo;
        fits = fits && pyri_mul64(bytes, w->extent[d], &bytes);
    }
    if (!fits || bytes > SIZE_MAX / 4)
        return pyri_fail_nomem("the cells around a chunk");
    w->bytes = (size_t)bytes;
    return 0;
}

/* Memory `from` cells after the first one, along each axis. */
static pyri_mem
at(const pyri_window *w, int ndim, const uint64_t *from)
{
    const uint64_t origin[PYR_MAX_DIMS] = {0};
    return pyri_mem_move(ndim, w->all, origin, from);
}

pyri_mem
pyri_window_inside(const pyri_window *w, int ndim)
{
    return at(w, ndim, w->low);
}

pyri_mem
pyri_window_box(const pyri_window *w, int ndim)
{
    uint64_t from[PYR_MAX_DIMS] = {0};
    for (int d = 0; d < ndim; d++)
        from[d] = w->low[d] + (w->box.lo[d] - w->inside.lo[d]);
    return at(w, ndim, from);
}

/* Which cell of an axis of n the one stands for that is j (from 1) beyond its
 * end, counted from that end. */
static uint64_t
stands_for(uint32_t edge, uint64_t n, uint64_t j)
{
    if (edge == PYR_KERNEL_CLAMP)
        return 0;
    uint64_t back = j - 1;
    if (back < n)
        return back;
    back %= 2 * n; /* n is less than the halo */
    return back < n ? back : 2 * n - 1 - back;
}

/* Copy the slab at index `from` along an axis to index `to`. */
static void
copy_slab(const pyri_window *w, const pyri_bound *b, int axis, uint64_t from,
          uint64_t to)
{
    uint64_t extent[PYR_MAX_DIMS] = {0}, src[PYR_MAX_DIMS] = {0};
    uint64_t dst[PYR_MAX_DIMS] = {0};
    for (int d = 0; d < b->ndim; d++) {
        bool done = d < axis;
        extent[d] = done ? w->extent[d] : w->inside.hi[d] - w->inside.lo[d];
        src[d] = dst[d] = done ? 0 : w->low[d];
    }
    extent[axis] = 1;
    src[axis] = from;
    dst[axis] = to;
    pyri_copy(b->ndim, pyri_type_size(b->type), extent, at(w, b->ndim, dst),
              at(w, b->ndim, src));
}

static void
pad_axis(const pyri_window *w, const pyri_bound *b, int axis, uint64_t n)
{
    uint64_t first = w->low[axis];
    uint64_t end = first + (w->inside.hi[axis] - w->inside.lo[axis]);
    uint32_t edge = b->kernel->edge;
    for (uint64_t j = 1; j <= first; j++)
        copy_slab(w, b, axis, first + stands_for(edge, n, j), first - j);
    for (uint64_t j = 1; end + j <= w->extent[axis]; j++)
        copy_slab(w, b, axis, end - 1 - stands_for(edge, n, j), end + j - 1);
}

/* Set the cells of a box of the window, given from its first cell on. */
static void
set_part(const pyri_window *w, const pyri_bound *b, const pyri_box *part,
         uint64_t bits)
{
    uint64_t extent[PYR_MAX_DIMS] = {0};
    for (int d = 0; d < b->ndim; d++)
        extent[d] = part->hi[d] - part->lo[d];
    pyri_set(b->ndim, pyri_type_size(b->type), extent,
             at(w, b->ndim, part->lo), bits);
}

void
pyri_window_pad(const pyri_window *w, const pyri_bound *b,
                const uint64_t *shape, uint64_t fill)
{
    pyri_box all = {.lo = {0}}, inside = {.lo = {0}}, rest[2 * PYR_MAX_DIMS];
    if (b->kernel->edge != PYR_KERNEL_FILL) {
        for (int d = 0; d < b->ndim; d++)
            pad_axis(w, b, d, shape[d]);
        return;
    }
    for (int d = 0; d < b->ndim; d++) {
        all.hi[d] = w->extent[d];
        inside.lo[d] = w->low[d];
        inside.hi[d] = w->low[d] + (w->inside.hi[d] - w->inside.lo[d]);
    }
    int n = pyri_box_subtract(b->ndim, &all, &inside, rest);
    for (int i = 0; i < n; i++)
        set_part(w, b, &rest[i], fill);
}
