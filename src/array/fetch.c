/*
 * array/fetch.c - cells out of chains of fragments, into the caller's memory.
 *
 * First all that may be needed is asked of the engine at once; then each box
 * is laid out from the top: what the newest fragment shows of it is copied,
 * the rest is cut into boxes and looked for in the fragments below. So every
 * cell is copied once, however long the chain.
 *
 * Nothing is copied that was not verified: block by block, just the blocks
 * that the box touches. Where the engine keeps its views (a mapped file),
 * blocks verified once are remembered.
 */
#include "array/chain.h"

#include "base/checked.h"
#include "base/scratch.h"

#include <stdlib.h>
#include <string.h>

enum { SLAB = 128 << 10 }; /* bytes verified before they are copied */

void
pyri_fetcher_fini(pyri_fetcher *f)
{
    free(f->gets);
    pyri_buf_fini(&f->expanded);
    f->gets = NULL;
    f->gets_room = f->ngets = 0;
    f->expanded_of = NULL;
}

/* --- what to ask for ------------------------------------------------------------------- */

/* The bytes of a plain fragment's payload from the first to the last cell of
 * a box inside it. */
static void
span_of(int n, size_t cell, const pyri_box *frag, const pyri_box *box,
        uint64_t *from, uint64_t *to)
{
    uint64_t first = 0, last = 0;
    for (int d = 0; d < n; d++) {
        uint64_t extent = frag->hi[d] - frag->lo[d];
        first = first * extent + (box->lo[d] - frag->lo[d]);
        last = last * extent + (box->hi[d] - 1 - frag->lo[d]);
    }
    *from = first * cell;
    *to = (last + 1) * cell;
}

static bool
whole_needed(const pyri_frag *f)
{
    return f->masked || f->kind == PYRI_FRAG_PRESSED || !pyri_frag_aligned(f);
}

static int
add_gets(pyri_fetcher *f, const pyri_link *link, const pyri_box *box)
{
    if (f->ngets + 2 > f->gets_room) {
        size_t room = f->gets_room ? 2 * f->gets_room : 16;
        pyri_blob_get *gets = realloc(f->gets, room * sizeof *gets);
        if (!gets)
            return pyri_fail_nomem("a read");
        f->gets = gets;
        f->gets_room = room;
    }
    const pyri_frag *g = &link->frag;
    uint64_t from = 0, to = g->stored, head = pyri_frag_head_size(g);
    if (!whole_needed(g)) {
        span_of(f->array->schema.ndim, pyri_type_size(f->array->schema.type),
                &g->box, box, &from, &to);
        if (to > g->stored)
            return pyri_fail(PYR_ECORRUPT, "a fragment has the wrong size");
        from = from / PYRI_BLOCK * PYRI_BLOCK;
        to = pyri_min64((to + PYRI_BLOCK - 1) / PYRI_BLOCK * PYRI_BLOCK,
                        g->stored);
    }
    pyri_ref ref = {g->ref[0], g->ref[1]};
    f->gets[f->ngets++] =
        (pyri_blob_get){.ref = ref, .offset = 0, .size = head};
    f->gets[f->ngets++] = (pyri_blob_get){
        .ref = ref, .offset = head + from, .size = to - from};
    return 0;
}

/* Ask for the links that a box may need; in the order in which lay() meets
 * them. */
static int
plan(pyri_fetcher *f, const pyri_fetch *job)
{
    int n = f->array->schema.ndim, err = 0;
    for (int i = 0; i < job->n && err == 0; i++) {
        const pyri_link *link = &job->links[i];
        pyri_box common;
        if (!pyri_box_intersect(n, &link->shown, &job->box, &common))
            continue;
        if (link->frag.kind != PYRI_FRAG_SAME)
            err = add_gets(f, link, &common);
        if (!link->frag.masked &&
            pyri_box_contains(n, &link->shown, &job->box))
            break;
    }
    return err;
}

/* --- verifying ----------------------------------------------------------------------------- */

static bool
all_seen(const pyri_blob_get *get, uint64_t first, uint64_t n)
{
    uint64_t bit = get->seen_first + first;
    while (n) {
        unsigned at = bit % 64;
        uint64_t take = pyri_min64(n, 64 - at);
        uint64_t mask = (take == 64 ? ~0ull : (1ull << take) - 1) << at;
        uint64_t word = atomic_load_explicit(&get->seen[bit / 64],
                                             memory_order_relaxed);
        if ((word & mask) != mask)
            return false;
        bit += take;
        n -= take;
    }
    return true;
}

static void
set_seen(const pyri_blob_get *get, uint64_t first, uint64_t n)
{
    for (uint64_t i = get->seen_first + first; n; i++, n--)
        atomic_fetch_or_explicit(&get->seen[i / 64], 1ull << (i % 64),
                                 memory_order_relaxed);
}

/* Were all blocks from the first to the last byte verified before? */
static bool
span_seen(const pyri_frag *g, const pyri_blob_get *gets, uint64_t from,
          uint64_t to)
{
    uint64_t first = from / PYRI_BLOCK;
    return gets->seen && pyri_frag_aligned(g) &&
           all_seen(&gets[1], gets->size / PYRI_BLOCK + first,
                    (to + PYRI_BLOCK - 1) / PYRI_BLOCK - first);
}

/* Verify payload bytes [from, to) of a fragment, given its two gets. */
static int
verify(const pyri_frag *g, const pyri_blob_get *gets, uint64_t from,
       uint64_t to)
{
    const pyri_blob_get *head = &gets[0], *payload = &gets[1];
    uint64_t pages = head->size / PYRI_BLOCK; /* of the head; whole if aligned */
    uint64_t first = from / PYRI_BLOCK;
    uint64_t n = (to + PYRI_BLOCK - 1) / PYRI_BLOCK - first;
    bool remember = head->seen && pyri_frag_aligned(g);
    int err;
    if (remember && all_seen(payload, pages + first, n))
        return 0;
    if (!remember || !all_seen(head, 0, 1))
        if ((err = pyri_frag_check_head(g, head->data)) < 0)
            return err;
    const uint8_t *at =
        payload->data + (head->size + first * PYRI_BLOCK - payload->offset);
    for (uint64_t i = 0; i < n; i++, at += PYRI_BLOCK) {
        if (remember && all_seen(payload, pages + first + i, 1))
            continue;
        if ((err = pyri_frag_check_blocks(g, head->data, at, first + i, 1)) < 0)
            return err;
    }
    if (remember) {
        set_seen(payload, 0, 1);
        set_seen(payload, pages + first, n);
    }
    return 0;
}

/* Verify the rows of a box that lie far apart one by one. */
static int
verify_rows(const pyri_frag *g, const pyri_blob_get *gets,
            const pyri_rows *rows, int axis, uint64_t at)
{
    int err = 0;
    if (axis == rows->outer)
        return verify(g, gets, at, at + rows->run);
    for (uint64_t i = 0; i < rows->extent[axis] && err == 0; i++)
        err = verify_rows(g, gets, rows, axis + 1,
                          at + i * (uint64_t)rows->step[axis]);
    return err;
}

/* --- copying -------------------------------------------------------------------------------- */

static void
extents(int n, const pyri_box *box, uint64_t *out)
{
    for (int d = 0; d < n; d++)
        out[d] = box->hi[d] - box->lo[d];
}

/* Add rows of cells to a summary. */
static void
sum_rows(const pyri_schema *s, const pyri_rows *rows, int axis,
         const uint8_t *at, pyri_summary *sum)
{
    if (axis == rows->outer) {
        pyri_summary_add(sum, s->type, s->fill, at,
                         (size_t)(rows->run / pyri_type_size(s->type)));
        return;
    }
    for (uint64_t i = 0; i < rows->extent[axis]; i++, at += rows->step[axis])
        sum_rows(s, rows, axis + 1, at, sum);
}

static int copy_halves(pyri_fetcher *f, const pyri_frag *g,
                       const pyri_blob_get *gets, const pyri_box *box,
                       pyri_mem to, pyri_summary *sum);

static int
copy_plain(pyri_fetcher *f, const pyri_frag *g, const pyri_blob_get *gets,
           const pyri_box *box, pyri_mem to, pyri_summary *sum)
{
    int n = f->array->schema.ndim, err;
    size_t cell = pyri_type_size(f->array->schema.type);
    uint64_t extent[PYR_MAX_DIMS], from, end;
    span_of(n, cell, &g->box, box, &from, &end);
    if (end > g->stored ||
        g->stored != pyri_box_cells(n, &g->box) * cell)
        return pyri_fail(PYR_ECORRUPT, "a fragment has the wrong size");
    pyri_mem src = pyri_mem_dense(n, cell, &g->box, NULL);
    pyri_rows rows;
    extents(n, box, extent);
    bool seen = span_seen(g, gets, from, end);
    if (!seen && end - from > SLAB)
        return copy_halves(f, g, gets, box, to, sum);
    if (sum || !seen) {
        pyri_rows_of(n, cell, extent, src.step, &rows);
        if (end - from <= rows.pieces * (rows.run + PYRI_BLOCK))
            err = verify(g, gets, from, end);
        else
            err = verify_rows(g, gets, &rows, 0, from);
        if (err < 0)
            return err;
    }
    src.base = (uint8_t *)(uintptr_t)gets[1].data +
               (gets[0].size + from - gets[1].offset);
    if (sum)
        sum_rows(&f->array->schema, &rows, 0, src.base, sum);
    else
        pyri_copy(n, cell, extent, to, src);
    return 0;
}

/* Cells that have yet to be verified are best copied a little at a time, as
 * long as they are still in the nearest cache. */
static int
copy_halves(pyri_fetcher *f, const pyri_frag *g, const pyri_blob_get *gets,
            const pyri_box *box, pyri_mem to, pyri_summary *sum)
{
    int n = f->array->schema.ndim, axis = 0;
    pyri_box low = *box, high = *box;
    while (box->hi[axis] - box->lo[axis] == 1)
        axis++;
    low.hi[axis] = high.lo[axis] =
        box->lo[axis] + (box->hi[axis] - box->lo[axis]) / 2;
    int err = copy_plain(f, g, gets, &low, to, sum);
    if (err < 0)
        return err;
    return copy_plain(f, g, gets, &high,
                      pyri_mem_move(n, to, box->lo, high.lo), sum);
}

static uint64_t
count_bits(const uint8_t *mask, uint64_t from, uint64_t n)
{
    uint64_t count = 0;
    for (; n && from % 8; from++, n--)
        count += mask[from / 8] >> (from % 8) & 1;
    for (; n >= 8; from += 8, n -= 8)
        count += (unsigned)__builtin_popcount(mask[from / 8]);
    for (; n; from++, n--)
        count += mask[from / 8] >> (from % 8) & 1;
    return count;
}

/* One row of a masked fragment: cells [lo, hi) of it go to `to`. */
static void
copy_masked_row(const uint8_t *mask, uint64_t bit, const uint8_t *cells,
                uint64_t n, size_t cell, uint8_t *to, int64_t step)
{
    for (uint64_t i = 0; i < n; i++, bit++, to += step) {
        if (!(mask[bit / 8] >> (bit % 8) & 1))
            continue;
        memcpy(to, cells, cell);
        cells += cell;
    }
}

static void
copy_masked(pyri_fetcher *f, const pyri_box *frag, const uint8_t *cells,
            const uint8_t *mask, const pyri_box *box, pyri_mem to)
{
    int n = f->array->schema.ndim, last = n - 1;
    size_t cell = pyri_type_size(f->array->schema.type);
    uint64_t at[PYR_MAX_DIMS], bit = 0, rank = 0;
    uint64_t width = frag->hi[last] - frag->lo[last];
    memcpy(at, frag->lo, sizeof at);
    while (true) {
        bool inside = true;
        for (int d = 0; d < last; d++)
            inside &= at[d] >= box->lo[d] && at[d] < box->hi[d];
        if (inside) {
            uint64_t skip = box->lo[last] - frag->lo[last];
            at[last] = box->lo[last];
            pyri_mem row = pyri_mem_move(n, to, box->lo, at);
            copy_masked_row(mask, bit + skip,
                            cells + (rank + count_bits(mask, bit, skip)) * cell,
                            box->hi[last] - box->lo[last], cell, row.base,
                            to.step[last]);
        }
        rank += count_bits(mask, bit, width);
        bit += width;
        int d = last - 1;
        for (; d >= 0 && ++at[d] == frag->hi[d]; d--)
            at[d] = frag->lo[d];
        if (d < 0)
            return;
    }
}

/* Fragments that must be taken apart as a whole. */
static int
copy_whole(pyri_fetcher *f, const pyri_frag *g, const pyri_blob_get *gets,
           const pyri_box *box, pyri_mem to, pyri_summary *sum)
{
    int n = f->array->schema.ndim;
    size_t cell = pyri_type_size(f->array->schema.type);
    const uint8_t *cells, *mask;
    bool kept = f->expanded_of == g && g->kind == PYRI_FRAG_PRESSED;
    int err = kept ? 0 : verify(g, gets, 0, g->stored);
    if (err < 0)
        return err;
    if (kept) {
        cells = f->expanded.data;
        mask = g->masked ? gets[1].data : NULL;
    } else if ((err = pyri_frag_expand(g, &f->array->style, gets[1].data,
                                       &f->expanded, &cells, &mask)) < 0) {
        return err;
    }
    f->expanded_of = g->kind == PYRI_FRAG_PRESSED ? g : NULL;
    if (mask) {
        copy_masked(f, &g->box, cells, mask, box, to);
        return 0;
    }
    uint64_t extent[PYR_MAX_DIMS];
    pyri_mem src = pyri_mem_dense(n, cell, &g->box,
                                  (uint8_t *)(uintptr_t)cells);
    extents(n, box, extent);
    src = pyri_mem_move(n, src, g->box.lo, box->lo);
    if (sum) {
        pyri_rows rows;
        pyri_rows_of(n, cell, extent, src.step, &rows);
        sum_rows(&f->array->schema, &rows, 0, src.base, sum);
    } else {
        pyri_copy(n, cell, extent, to, src);
    }
    return 0;
}

static void
set_or_sum(const pyri_schema *s, const pyri_box *box, uint64_t bits,
           pyri_mem to, pyri_summary *sum)
{
    uint64_t extent[PYR_MAX_DIMS];
    if (sum) {
        pyri_summary_add_same(sum, s->type, s->fill, bits,
                              pyri_box_cells(s->ndim, box));
        return;
    }
    extents(s->ndim, box, extent);
    pyri_set(s->ndim, pyri_type_size(s->type), extent, to, bits);
}

static int
copy_from(pyri_fetcher *f, const pyri_frag *g, const pyri_blob_get *gets,
          const pyri_box *box, pyri_mem to, pyri_summary *sum)
{
    const pyri_schema *s = &f->array->schema;
    if (g->kind == PYRI_FRAG_SAME) {
        set_or_sum(s, box, g->bits, to, sum);
        return 0;
    }
    int err = g->masked || g->kind == PYRI_FRAG_PRESSED
                  ? copy_whole(f, g, gets, box, to, sum)
                  : copy_plain(f, g, gets, box, to, sum);
    if (err < 0) {
        char text[512];
        return pyri_fail_at(
            err, "array '%s', version %lld, box %s", f->array->name,
            (long long)(g->version - f->array->first),
            pyri_box_text(s->ndim, &g->box, text, sizeof text));
    }
    return 0;
}

/* --- laying out ------------------------------------------------------------------------------- */

typedef struct layout {
    pyri_fetcher *f;
    const pyri_fetch *job;
    const pyri_blob_get *gets; /* of the job's first link that has any */
    const pyri_box *planned;   /* the box that gets were planned for */
} layout;

static int lay(layout *l, int i, size_t get, const pyri_box *box);

static int
lay_rest(layout *l, int i, size_t get, const pyri_box *box,
         const pyri_box *common)
{
    pyri_box rest[2 * PYR_MAX_DIMS];
    if (pyri_box_contains(l->f->array->schema.ndim, common, box))
        return 0;
    int n = pyri_box_subtract(l->f->array->schema.ndim, box, common, rest);
    int err = 0;
    for (int k = 0; k < n && err == 0; k++)
        err = lay(l, i, get, &rest[k]);
    return err;
}

/* A masked fragment hides some cells of those below: they must be laid out
 * together before they can be summed up. */
static int
sum_masked(layout *l, int i, size_t get, const pyri_box *box)
{
    const pyri_schema *s = &l->f->array->schema;
    size_t cell = pyri_type_size(s->type);
    uint64_t cells = pyri_box_cells(s->ndim, box);
    uint8_t *scratch = pyri_scratch_take((size_t)(cells * cell));
    if (!scratch)
        return pyri_fail_nomem("cells to sum up");
    pyri_fetch job = {l->job->links, l->job->n, *box,
                      pyri_mem_dense(s->ndim, cell, box, scratch), NULL};
    layout inner = {l->f, &job, l->gets, l->planned};
    int err = lay(&inner, i, get, box);
    if (err == 0)
        pyri_summary_add(l->job->sum, s->type, s->fill, scratch,
                         (size_t)cells);
    pyri_scratch_give(scratch);
    return err;
}

/* Lay out a box from link i on down. `get` counts the gets before link i. */
static int
lay(layout *l, int i, size_t get, const pyri_box *box)
{
    const pyri_schema *s = &l->f->array->schema;
    const pyri_fetch *job = l->job;
    for (; i < job->n; i++) {
        const pyri_link *link = &job->links[i];
        pyri_box common;
        bool blob = link->frag.kind != PYRI_FRAG_SAME;
        size_t mine = get;
        int err;
        if (!pyri_box_overlaps(s->ndim, &link->shown, l->planned))
            continue;
        get += blob ? 2 : 0;
        if (!pyri_box_intersect(s->ndim, &link->shown, box, &common))
            continue;
        if (link->frag.masked && job->sum) {
            err = sum_masked(l, i, mine, &common);
        } else {
            if (link->frag.masked && (err = lay(l, i + 1, get, &common)) < 0)
                return err;
            err = copy_from(l->f, &link->frag, l->gets + mine, &common,
                            pyri_mem_move(s->ndim, job->to, job->box.lo,
                                          common.lo),
                            job->sum);
        }
        return err < 0 ? err : lay_rest(l, i + 1, get, box, &common);
    }
    set_or_sum(s, box, s->fill,
               pyri_mem_move(s->ndim, job->to, job->box.lo, box->lo),
               job->sum);
    return 0;
}

int
pyri_fetch_run(pyri_fetcher *f, const pyri_fetch *jobs, size_t n)
{
    int err = 0;
    f->ngets = 0;
    f->expanded_of = NULL;
    for (size_t i = 0; i < n && err == 0; i++)
        err = plan(f, &jobs[i]);
    if (err == 0 && f->ngets)
        err = pyri_engine_get_blobs(f->array->engine, f->reader, f->gets,
                                    f->ngets);
    const pyri_blob_get *gets = f->gets;
    for (size_t i = 0; i < n && err == 0; i++) {
        layout l = {f, &jobs[i], gets, &jobs[i].box};
        err = lay(&l, 0, 0, &jobs[i].box);
        for (int k = 0; k < jobs[i].n; k++) { /* as plan() counted */
            const pyri_link *link = &jobs[i].links[k];
            if (!pyri_box_overlaps(f->array->schema.ndim, &link->shown,
                                   &jobs[i].box))
                continue;
            gets += link->frag.kind != PYRI_FRAG_SAME ? 2 : 0;
            if (!link->frag.masked &&
                pyri_box_contains(f->array->schema.ndim, &link->shown,
                                  &jobs[i].box))
                break;
        }
    }
    return err;
}
