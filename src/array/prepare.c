/*
 * array/prepare.c - what can be done for a write before its version is taken,
 * so that it is in flight for as short a time as can be.
 *
 * Folding. A chunk written in part lies on what was there before; as such
 * fragments pile up, reads get slower and leaves longer. When a chain has
 * FOLD_MIN links and folding them would write no more than FOLD_GAIN times
 * what they hold, or when it has FOLD_MAX links, they are read together and
 * written as one. (bench/chains.c measures both sides of this bargain;
 * docs/benchmarks.md tells what it found.) Chunks that are written equally
 * often would all be folded at the same time, so up to FOLD_SPREAD - 1 more are
 * allowed, by the chunk's place. Old links that are much larger than
 * the rest stay as they are, below. The fold is the chunk as of the snapshot
 * that we read, so it is good whatever is in flight above it. But if anything
 * is, only a fold of all links can be used (commit.c); so a chunk in which
 * writers are always at work is folded whole when it has FOLD_ALL of them.
 *
 * Summing up. What the chunk sums up to with the new cells on top: sum.c.
 */
#include "array/sum.h"

#include "base/checked.h"
#include "base/pool.h"
#include "base/scratch.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

enum {
    FOLD_MIN = 64,
    FOLD_MAX = 96,
    FOLD_ALL = 128,
    FOLD_SPREAD = 32, /* a power of two */
    FOLD_GAIN = 4,
    FOLD_LARGE = 64 << 20, /* bytes: chunks beyond this are left alone */
    ALONE = 1 << 20,       /* bytes that are not worth waking a worker */
    FEW = 16               /* chunks that are looked for together */
};

/* --- folding ------------------------------------------------------------- */

/* How many links a chunk may have before it is worth a look. */
static int
patience(int ndim, const uint64_t *pos)
{
    uint64_t mixed = 0;
    for (int d = 0; d < ndim; d++)
        mixed = (mixed + pos[d]) * 0x9E3779B97F4A7C15u;
    return FOLD_MIN + (int)(mixed >> 40 & (FOLD_SPREAD - 1));
}

/* How many of the newest links to fold; 0: leave them. */
static int
worth_folding(const pyri_array *a, const pyri_chain *c, int least,
              pyri_box *bounds)
{
    int ndim = a->schema.ndim, m = 0;
    uint64_t held = 0;
    if (c->n < least)
        return 0;
    *bounds = (pyri_box){.lo = {0}};
    for (; m < c->n; m++) {
        uint64_t bytes = pyri_box_bytes(a, &c->links[m].shown);
        if (m > 0 && bytes / FOLD_GAIN > held)
            break; /* much larger than all above it */
        held += bytes;
        pyri_box_cover(ndim, bounds, &c->links[m].shown);
    }
    if (c->n >= FOLD_ALL)
        for (; m < c->n; m++)
            pyri_box_cover(ndim, bounds, &c->links[m].shown);
    uint64_t cost = pyri_box_bytes(a, bounds);
    bool pays = m >= least - 1 && cost / FOLD_GAIN <= held;
    if (m < 2 || cost > FOLD_LARGE || (!pays && c->n < FOLD_MAX))
        return 0;
    return m;
}

/* The cells to fold are in memory now: if they are all that is shown, sum up
 * those that the new ones do not hide. */
static void
sum_folded(const pyri_change *c, const pyri_box *bounds, pyri_mem mem,
           pyri_painted *p)
{
    const pyri_schema *s = &c->f->array->schema;
    pyri_box rest[2 * PYR_MAX_DIMS];
    if (!pyri_change_is_plain(c) ||
        !pyri_box_contains(s->ndim, bounds, &c->shown))
        return;
    int n = pyri_box_subtract(s->ndim, &c->shown, &p->frags[0].box, rest);
    p->after = p->own;
    for (int i = 0; i < n; i++)
        pyri_sum_memory(s, &rest[i],
                        pyri_mem_move(s->ndim, mem, bounds->lo, rest[i].lo),
                        &p->after);
    p->known = true;
}

static int
write_fold(pyri_draft *d, const pyri_change *c, const pyri_box *bounds,
           bool summable, pyri_painted *p)
{
    const pyri_array *a = d->array;
    const pyri_schema *s = &a->schema;
    pyri_packer packer = {0};
    pyri_frag *out = &p->floor[0];
    pyri_summary unused;
    size_t cell = pyri_type_size(s->type), size = pyri_box_bytes(a, bounds);
    uint8_t *cells = pyri_scratch_take(size);
    if (!cells)
        return pyri_fail_nomem("a chunk to fold");
    pyri_mem mem = pyri_mem_dense(s->ndim, cell, bounds, cells);
    pyri_fetch job = {.links = c->old.links,
                      .n = c->old.n,
                      .box = *bounds,
                      .to = mem};
    int err = pyri_fetch_run(c->f, &job, 1);
    if (err == 0 && summable && !p->known)
        sum_folded(c, bounds, mem, p);
    pyri_summary_init(&unused);
    bool alike = err == 0 && memcmp(cells, cells + cell, size - cell) == 0;
    if (err == 0)
        err = pyri_paint_frag(d, &packer, bounds, mem, NULL, 0, out,
                              alike ? &unused : NULL);
    out->version = d->seen;
    out->fold = true;
    pyri_packer_fini(&packer);
    pyri_scratch_give(cells);
    return err;
}

/* Keep the chain for the leaf to come, its m newest links as one. */
static int
fold(pyri_draft *d, const pyri_change *c, int m, const pyri_box *bounds,
     bool summable, pyri_painted *p)
{
    const pyri_chain *old = &c->old;
    int n = old->n - m + 1;
    p->floor = pyri_sys_malloc((size_t)n * sizeof *p->floor);
    if (!p->floor)
        return pyri_fail_nomem("the fragments of a chunk");
    for (int i = 1; i < n; i++)
        pyri_frag_copy(d->array->schema.ndim, &p->floor[i],
                       &old->links[m + i - 1].frag);
    int err = write_fold(d, c, bounds, summable, p);
    p->nfloor = err == 0 ? n : 0;
    return err;
}

static int
fold_if_long(pyri_draft *d, pyri_change *c, bool summable, pyri_painted *p)
{
    int ndim = c->t->grid->ndim, least = patience(ndim, p->pos);
    pyri_leaf_walk leaf;
    pyri_box bounds;
    int err = pyri_leaf_begin(c->leaf, ndim, &c->chunk, &leaf);
    if (err < 0 || (!leaf.prev && leaf.left < (uint64_t)least))
        return err;
    if ((err = pyri_change_load(c, NULL)) < 0)
        return err;
    pyri_chain_prune(&c->old, ndim);
    int m = worth_folding(d->array, &c->old, least, &bounds);
    return m ? fold(d, c, m, &bounds, summable, p) : 0;
}

/* --- preparing ----------------------------------------------------------- */

/* What the snapshot has where chunks first..first + n were painted. */
typedef struct looker {
    pyri_draft *d;
    const pyri_tree *t;
    size_t first, n;
} looker;

static int
keep_regions(const pyri_regions *r, pyri_painted *p)
{
    if (r->n == 0)
        return 0;
    p->regions = pyri_sys_malloc(sizeof *p->regions);
    if (!p->regions)
        return pyri_fail_nomem("what is known of a chunk");
    *p->regions = *r;
    return 0;
}

static int
look_at(const looker *l, pyri_painted *p, const pyri_hit *hit)
{
    pyri_fetcher f = {.array = l->d->array, .reader = l->t->reader};
    pyri_change c = {.f = &f, .t = l->t, .p = p};
    pyri_about about;
    int err = 0;
    if (!hit->leaf && hit->bits != l->t->fill)
        return 0; /* the value stands above the leaf: leave it to commit.c */
    bool summable = pyri_change_begin(&c);
    if (hit->leaf) {
        p->below = hit->node.label;
        c.leaf = &hit->node;
    }
    if (summable && (err = pyri_change_about(&c, &about)) == 0)
        err = pyri_sum_difference(&c, &about, &p->known, &p->after);
    bool by_difference = p->known;
    if (err == 0 && hit->leaf)
        err = fold_if_long(l->d, &c, summable, p);
    if (err == 0 && summable && !p->known) {
        err = pyri_sum_chunk(&c, &p->after);
        p->known = err == 0;
        by_difference = true;
    }
    if (err == 0 && by_difference)
        err = keep_regions(&c.regions, p);
    p->prepared = err == 0;
    pyri_fetcher_fini(&f);
    pyri_chain_fini(&c.old);
    return err;
}

static bool
covers(const pyri_tree *t, const pyri_painted *p)
{
    pyri_box shown;
    return p->n && !p->frags[0].masked &&
           pyri_grid_shown(t->grid, 0, p->pos, &shown) &&
           pyri_box_contains(t->form->ndim, &p->frags[0].box, &shown);
}

static int
look(void *ctx, const pyri_hit *hit)
{
    const looker *l = ctx;
    int err = 0;
    for (size_t i = l->first; i < l->first + l->n && err == 0; i++) {
        pyri_painted *p = &l->d->painted[i];
        pyri_box chunk;
        pyri_grid_domain(l->t->grid, 0, p->pos, &chunk);
        if (pyri_box_overlaps(l->t->grid->ndim, &chunk, &hit->box))
            err = look_at(l, p, hit);
    }
    return err;
}

/* Chunks that together fill a box are looked for together. */
static int
prepare_some(pyri_draft *d, pyri_snapshot *snap, size_t first, size_t n)
{
    looker l = {d, &snap->tree, first, n};
    pyri_box cells = {.lo = {0}}, chunk;
    for (size_t i = first; i < first + n; i++)
        if (!covers(&snap->tree, &d->painted[i]) &&
            pyri_grid_shown(&snap->grid, 0, d->painted[i].pos, &chunk))
            pyri_box_cover(snap->grid.ndim, &cells, &chunk);
    if (pyri_box_empty(snap->grid.ndim, &cells))
        return 0;
    pyri_run run = pyri_run_of_box(snap->grid.ndim, &cells);
    return pyri_tree_find(&snap->tree, &run, look, &l);
}

/* A chunk that is covered is not even looked at: it may be damaged. */
static bool
belong_together(const pyri_draft *d, const pyri_snapshot *snap)
{
    int ndim = snap->grid.ndim;
    pyri_box all = {.lo = {0}}, one;
    if (d->n > FEW)
        return false;
    for (size_t i = 0; i < d->n; i++) {
        if (covers(&snap->tree, &d->painted[i]))
            return false;
        for (int k = 0; k < ndim; k++) {
            one.lo[k] = d->painted[i].pos[k];
            one.hi[k] = one.lo[k] + 1;
        }
        pyri_box_cover(ndim, &all, &one);
    }
    return pyri_box_cells(ndim, &all) == d->n;
}

/* A worker's share: with a reader of its own. */
static int
prepare_chunk(void *ctx, size_t i, unsigned worker)
{
    pyri_draft *d = ctx;
    pyri_snapshot snap;
    pyri_reader *r;
    int err = pyri_engine_begin(d->array->engine, &r);
    if (err < 0)
        return err;
    err = pyri_snapshot_open_label(d->array, r, d->seen, &snap);
    if (err == PYR_ENOVERSION) {
        err = 0; /* forgotten since, and gone: do without */
    } else if (err == 0) {
        if (!snap.forgotten)
            err = prepare_some(d, &snap, i, 1);
        pyri_snapshot_close(&snap);
    }
    pyri_engine_end(d->array->engine, r);
    return err;
}

/* Bytes of the chunks that there is something to find out of. */
static uint64_t
work_in(const pyri_draft *d, const pyri_snapshot *snap)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < d->n; i++) {
        pyri_box chunk;
        if (covers(&snap->tree, &d->painted[i]))
            continue;
        pyri_grid_domain(&snap->grid, 0, d->painted[i].pos, &chunk);
        bytes += pyri_min64(pyri_box_bytes(d->array, &chunk), ALONE);
    }
    return bytes;
}

int
pyri_prepare(pyri_draft *d)
{
    pyri_snapshot snap;
    int err = pyri_snapshot_open(d->array, PYR_LATEST, &snap);
    if (err < 0)
        return err;
    d->seen = snap.label;
    d->looked = true;
    err = pyri_folds(d->array, snap.reader, &d->folds);
    bool many = work_in(d, &snap) > 4 * ALONE;
    size_t step = belong_together(d, &snap) ? d->n : 1;
    for (size_t i = 0; i < d->n && !many && err == 0; i += step)
        err = prepare_some(d, &snap, i, step);
    pyri_snapshot_close(&snap);
    if (many)
        err = pyri_pool_run(d->n, prepare_chunk, d);
    /* on a cluster it may have been reclaimed under our eyes: do without */
    if (err == PYR_ECORRUPT &&
        (err = pyri_snapshot_explain(d->array, d->seen, err)) == PYR_ENOVERSION)
        err = 0;
    return err;
}
