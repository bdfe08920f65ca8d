/*
 * array/made.c - the sources that kernels make of x.
 *
 * A kernel without a halo makes a cell of the same cell of x. One with a halo
 * looks at cells of the same snapshot around it, whichever chunks they are in;
 * where the array ends, kernel/window.c sets them as the kernel has declared.
 *
 * Where x has one value as far as a kernel looks, and the kernel does not look
 * at coordinates, one cell is made for all.
 */
#include "array/sources.h"

#include "array/draft.h"

#include "base/checked.h"
#include "base/scratch.h"

#include <string.h>

enum { MAX_PIECES = 1 << 20 }; /* chunks that kernels are called on */

/* --- of one value? ------------------------------------------------------- */

/* 1 ends the walk: there is another value, or cells. */
static int
differs(void *ctx, const pyri_hit *hit)
{
    return hit->leaf || hit->bits != *(const uint64_t *)ctx;
}

/* Is x `bits` in the box and as far around it as kernels look? */
static int
same_around(const pyri_sources *s, const pyri_tree *tree, const pyri_box *box,
            uint64_t bits, bool *same)
{
    const pyri_schema *sc = &s->array->schema;
    const uint64_t *shape = s->snap[0].grid.shape, *halo = s->kernels->halo;
    pyri_box wide = {.lo = {0}};
    bool outside = false;
    for (int d = 0; d < sc->ndim; d++) {
        outside |= box->lo[d] < halo[d] || shape[d] - box->hi[d] < halo[d];
        wide.lo[d] = box->lo[d] < halo[d] ? 0 : box->lo[d] - halo[d];
        wide.hi[d] = shape[d] - box->hi[d] < halo[d] ? shape[d]
                                                     : box->hi[d] + halo[d];
    }
    *same = true;
    for (int i = 0; i < s->kernels->n && outside && bits != sc->fill; i++)
        *same &= s->kernels->bound[i].kernel->edge != PYR_KERNEL_FILL;
    if (!*same)
        return 0;
    pyri_run run = pyri_run_of_box(sc->ndim, &wide);
    int err = pyri_tree_find(tree, &run, differs, &bits);
    *same = err == 0;
    return err < 0 ? err : 0;
}

static bool
any_halo(const pyri_sources *s)
{
    for (int d = 0; d < s->array->schema.ndim; d++)
        if (s->kernels->halo[d])
            return true;
    return false;
}

int
pyri_made_same(const pyri_sources *s, pyri_reader *reader, const pyri_box *box,
               uint64_t bits, bool *same)
{
    *same = s->kernels->same;
    if (!*same || !any_halo(s))
        return 0;
    pyri_tree tree = s->snap[0].tree;
    tree.reader = reader;
    tree.nodes_read = NULL;
    return same_around(s, &tree, box, bits, same);
}

/* --- walking ------------------------------------------------------------- */

typedef struct splitting {
    pyri_sources *s;
    uint64_t *values;
    pyri_region_fn *each;
    void *ctx;
    uint64_t pieces;
} splitting;

static int
tell_same(splitting *w, const pyri_box *box)
{
    int err = 0;
    for (int k = 1; k < w->s->n && err == 0; k++)
        if (pyri_maker(w->s, k))
            err = pyri_made_one(w->s, pyri_maker(w->s, k), box->lo,
                                w->values[0], &w->values[k]);
    return err < 0 ? err : w->each(w->ctx, box, w->values);
}

/* The axis along which a box has most chunks, and a border of chunks in the
 * middle; false if it is in one chunk. */
static bool
middle(const pyri_schema *sc, const pyri_box *box, int *axis, uint64_t *at)
{
    uint64_t most = 0;
    for (int d = 0; d < sc->ndim; d++) {
        uint64_t first = box->lo[d] / sc->chunk[d];
        uint64_t last = (box->hi[d] - 1) / sc->chunk[d];
        if (last - first <= most)
            continue;
        most = last - first;
        *axis = d;
        *at = (first + (most + 1) / 2) * sc->chunk[d];
    }
    return most > 0;
}

/* Halve the box until parts are of one value, or of one chunk. */
static int
split(splitting *w, const pyri_box *box)
{
    const pyri_sources *s = w->s;
    bool same = false;
    int axis = 0, err = 0;
    uint64_t at = 0;
    if (s->kernels->same)
        err = same_around(s, &s->snap[0].tree, box, w->values[0], &same);
    if (err < 0)
        return err;
    if (same)
        return tell_same(w, box);
    if (!middle(&s->array->schema, box, &axis, &at)) {
        if (++w->pieces > MAX_PIECES)
            return pyri_fail(PYR_EUNSUPPORTED,
                             "a kernel would be called on more than %d "
                             "chunks: take smaller boxes, one after the other",
                             (int)MAX_PIECES);
        return w->each(w->ctx, box, NULL);
    }
    pyri_box half = *box;
    half.hi[axis] = at;
    if ((err = split(w, &half)) != 0)
        return err;
    half.lo[axis] = at;
    half.hi[axis] = box->hi[axis];
    return split(w, &half);
}

int
pyri_made_walk(pyri_sources *s, const pyri_box *box, uint64_t *values,
               pyri_region_fn *each, void *ctx)
{
    splitting w = {.s = s, .values = values, .each = each, .ctx = ctx};
    if (s->kernels->n == 0)
        return each(ctx, box, values);
    if (s->kernels->same && !any_halo(s))
        return tell_same(&w, box);
    return split(&w, box);
}

/* --- making -------------------------------------------------------------- */

static int
get_memory(pyri_window *w, int ndim, size_t cell)
{
    pyri_box all = {.lo = {0}};
    memcpy(all.hi, w->extent, sizeof all.hi);
    void *base = pyri_scratch_take(w->bytes + 1);
    w->all = pyri_mem_dense(ndim, cell, &all, base);
    return base ? 0 : pyri_fail_nomem("the cells around a chunk");
}

int
pyri_made_one(const pyri_sources *s, const pyri_bound *b, const uint64_t *at,
              uint64_t bits, uint64_t *out)
{
    const pyri_schema *sc = &s->array->schema;
    uint64_t endless[PYR_MAX_DIMS];
    uint8_t cell[8] = {0};
    pyri_window w;
    pyri_box one = {.lo = {0}};
    for (int d = 0; d < sc->ndim; d++) {
        one.lo[d] = at[d];
        one.hi[d] = at[d] + 1;
    }
    memset(endless, 0xff, sizeof endless);
    int err = pyri_window_init(&w, b, &one, endless);
    if (err < 0 ||
        (err = get_memory(&w, sc->ndim, pyri_type_size(sc->type))) < 0)
        return err;
    pyri_set(sc->ndim, pyri_type_size(sc->type), w.extent, w.all, bits);
    err = pyri_kernel_run(b, &one, pyri_window_box(&w, sc->ndim), cell);
    *out = pyri_cell_load(sc->type, cell);
    pyri_scratch_give(w.all.base);
    return err;
}

/* Read what the window has inside the array. */
static int
read_inside(const pyri_sources *s, pyri_reader *reader, const pyri_window *w,
            uint64_t *bytes)
{
    int ndim = s->array->schema.ndim;
    pyri_snapshot snap = s->snap[0]; /* through our own reader */
    snap.reader = snap.tree.reader = reader;
    snap.tree.nodes_read = NULL;
    pyri_part part = {.run = pyri_run_of_box(ndim, &w->inside),
                      .mem = pyri_window_inside(w, ndim)};
    *bytes += pyri_box_cells(ndim, &w->inside) *
              pyri_type_size(s->array->schema.type);
    return pyri_read_snapshot(&snap, &part, 1, false);
}

int
pyri_made_cells(const pyri_sources *s, pyri_reader *reader,
                const pyri_bound *b, const pyri_box *box, uint8_t *cells,
                uint8_t *out, uint64_t *bytes)
{
    const pyri_schema *sc = &s->array->schema;
    size_t cell = pyri_type_size(sc->type);
    const uint64_t *shape = s->snap[0].grid.shape;
    pyri_window w;
    if (b->kernel->halo == 0)
        return pyri_kernel_run(b, box,
                               pyri_mem_dense(sc->ndim, cell, box, cells),
                               out);
    int err = pyri_window_init(&w, b, box, shape);
    if (err < 0 || (err = get_memory(&w, sc->ndim, cell)) < 0)
        return err;
    err = read_inside(s, reader, &w, bytes);
    if (err == 0) {
        pyri_window_pad(&w, b, shape, sc->fill);
        err = pyri_kernel_run(b, box, pyri_window_box(&w, sc->ndim), out);
    }
    pyri_scratch_give(w.all.base);
    return err;
}
