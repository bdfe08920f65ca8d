/*
 * array/prepare.c - what can be done for a write before its version is taken,
 * so that it is in flight for as short a time as can be.
 *
 * Folding. A chunk written in part lies on what was there before; as such
 * fragments pile up, reads get slower and leaves longer. When a chain has
 * FOLD_MIN links and folding them would write no more than FOLD_GAIN times
 * what they hold, or when it has FOLD_MAX links, they are read together and
 * written as one. (bench/chains.c measures both sides of this bargain;
 * docs/benchmarks.md tells what it found.) Old links that are much larger than
 * the rest stay as they are, below. The fold is the chunk as of the snapshot
 * that we read, so it is good whatever is in flight above it. But if anything
 * is, only a fold of all links can be used (commit.c); so a chunk in which
 * writers are always at work is folded whole when it has FOLD_ALL of them.
 *
 * Summing up. What the chunk sums up to with the new cells on top: from what
 * it summed up to before, less the cells that are hidden now, where that can
 * be said; else from all its cells.
 */
#include "array/draft.h"

#include "base/checked.h"
#include "base/pool.h"
#include "base/scratch.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

enum {
    FOLD_MIN = 32,
    FOLD_MAX = 64,
    FOLD_ALL = 128,
    FOLD_GAIN = 4,
    FOLD_LARGE = 64 << 20, /* bytes: chunks beyond this are left alone */
    ALONE = 1 << 20        /* bytes that are not worth waking a worker */
};

/* --- summing up ---------------------------------------------------------- */

static uint64_t
bytes_of(const pyri_array *a, const pyri_box *box)
{
    uint64_t bytes, cells = pyri_box_cells(a->schema.ndim, box);
    return pyri_mul64(cells, pyri_type_size(a->schema.type), &bytes)
               ? bytes
               : UINT64_MAX;
}

int
pyri_sum_cells(pyri_fetcher *f, const pyri_chain *chain, const pyri_box *box,
               pyri_summary *s)
{
    pyri_fetch job = {
        .links = chain->links, .n = chain->n, .box = *box, .sum = s};
    return pyri_fetch_run(f, &job, 1);
}

/* Read all but the new cells. */
static int
sum_rest(pyri_fetcher *f, const pyri_chain *old, const pyri_box *shown,
         const pyri_box *new_cells, pyri_summary *s)
{
    pyri_box rest[2 * PYR_MAX_DIMS];
    int n = pyri_box_subtract(f->array->schema.ndim, shown, new_cells, rest);
    int err = 0;
    for (int i = 0; i < n && err == 0; i++)
        err = pyri_sum_cells(f, old, &rest[i], s);
    return err;
}

/* One plain box on top: take what it hides off, add what it brings. */
static int
sum_over(pyri_fetcher *f, const pyri_tree *t, const pyri_painted *p,
         const pyri_chain *old, const pyri_about *about,
         const pyri_box *shown, pyri_summary *after)
{
    const pyri_schema *s = &f->array->schema;
    const pyri_box *box = &p->frags[0].box;
    pyri_box domain;
    int err = 0;
    *after = about->summary;
    pyri_grid_domain(t->grid, 0, p->pos, &domain);
    if (about->known && pyri_summary_now(t->form, s->type, s->fill,
                                         about->label, &domain, after)) {
        pyri_summary hidden;
        pyri_summary_init(&hidden);
        if (after->equal)
            pyri_summary_add_same(&hidden, s->type, s->fill, after->min,
                                  pyri_box_cells(s->ndim, box));
        else
            err = pyri_sum_cells(f, old, box, &hidden);
        if (err < 0)
            return err;
        if (pyri_summary_subtract(after, s->type, s->fill,
                                  &hidden)) {
            pyri_summary_merge(after, s->type, &p->own);
            return 0;
        }
    }
    pyri_summary_init(after);
    if ((err = sum_rest(f, old, shown, box, after)) == 0)
        pyri_summary_merge(after, s->type, &p->own);
    return err;
}

/* Several boxes, or a masked one: read the chunk as it will be. */
static int
sum_all(pyri_fetcher *f, const pyri_tree *t, const pyri_painted *p,
        const pyri_chain *old, const pyri_box *shown, pyri_summary *after)
{
    pyri_chain chain = {0};
    int err = 0;
    for (int i = 0; i < p->n && err == 0; i++) {
        pyri_frag frag = p->frags[i];
        frag.version = UINT64_MAX; /* newer than any cut */
        err = pyri_chain_add(&chain, t->form, &frag);
    }
    for (int i = 0; i < old->n && err == 0; i++)
        err = pyri_chain_add(&chain, t->form, &old->links[i].frag);
    pyri_summary_init(after);
    if (err == 0)
        err = pyri_sum_cells(f, &chain, shown, after);
    pyri_chain_fini(&chain);
    return err;
}

static int
sum_after(const pyri_array *a, const pyri_tree *t, const pyri_painted *p,
          const pyri_chain *old, const pyri_about *about, bool *known,
          pyri_summary *after)
{
    pyri_fetcher f = {.array = (pyri_array *)(uintptr_t)a,
                      .reader = t->reader};
    pyri_box shown;
    int err = 0;
    *known = false;
    pyri_summary_init(after);
    if (!pyri_grid_shown(t->grid, 0, p->pos, &shown) ||
        bytes_of(a, &shown) > FOLD_LARGE)
        return 0;
    for (int i = 0; i < p->n; i++) /* a shrink may have come in between */
        if (!pyri_box_contains(a->schema.ndim, &shown, &p->frags[i].box))
            return 0;
    if (p->n == 1 && !p->frags[0].masked)
        err = sum_over(&f, t, p, old, about, &shown, after);
    else
        err = sum_all(&f, t, p, old, &shown, after);
    pyri_fetcher_fini(&f);
    *known = err == 0;
    return err;
}

int
pyri_sum_after(const pyri_array *a, const pyri_tree *t, const pyri_painted *p,
               const pyri_node *node, bool *known, pyri_summary *after)
{
    pyri_chain old = {0};
    pyri_about about = {.known = true};
    int err = 0;
    pyri_summary_init(&about.summary);
    about.label = UINT64_MAX;
    if (node && (err = pyri_node_about(node, t->type, &about)) == 0)
        err = pyri_chain_load(&old, t, p->pos, node, NULL, 0);
    if (err == 0)
        err = sum_after(a, t, p, &old, &about, known, after);
    pyri_chain_fini(&old);
    return err;
}

/* --- folding ------------------------------------------------------------- */

/* How many of the newest links to fold; 0: leave them. */
static int
worth_folding(const pyri_array *a, const pyri_chain *c, pyri_box *bounds)
{
    int ndim = a->schema.ndim, m = 0;
    uint64_t held = 0;
    if (c->n < FOLD_MIN)
        return 0;
    *bounds = (pyri_box){.lo = {0}};
    for (; m < c->n; m++) {
        uint64_t bytes = bytes_of(a, &c->links[m].shown);
        if (m > 0 && bytes / FOLD_GAIN > held)
            break; /* much larger than all above it */
        held += bytes;
        pyri_box_cover(ndim, bounds, &c->links[m].shown);
    }
    if (c->n >= FOLD_ALL)
        for (; m < c->n; m++)
            pyri_box_cover(ndim, bounds, &c->links[m].shown);
    uint64_t cost = bytes_of(a, bounds);
    bool pays = m >= FOLD_MIN - 1 && cost / FOLD_GAIN <= held;
    if (m < 2 || cost > FOLD_LARGE || (!pays && c->n < FOLD_MAX))
        return 0;
    return m;
}

static int
write_fold(pyri_draft *d, pyri_fetcher *f, const pyri_chain *c,
           const pyri_box *bounds, pyri_frag *out, pyri_summary *sum)
{
    const pyri_array *a = d->array;
    const pyri_schema *s = &a->schema;
    pyri_packer packer = {0};
    uint8_t *cells = pyri_scratch_take((size_t)bytes_of(a, bounds));
    if (!cells)
        return pyri_fail_nomem("a chunk to fold");
    pyri_mem mem =
        pyri_mem_dense(s->ndim, pyri_type_size(s->type), bounds, cells);
    pyri_fetch job = {
        .links = c->links, .n = c->n, .box = *bounds, .to = mem};
    int err = pyri_fetch_run(f, &job, 1);
    pyri_summary_init(sum);
    if (err == 0)
        err = pyri_paint_frag(d, &packer, bounds, mem, NULL, 0, out, sum);
    out->version = d->seen;
    out->fold = true;
    pyri_packer_fini(&packer);
    pyri_scratch_give(cells);
    return err;
}

/* Keep the chain for the leaf to come, folded if that is worth it. A fold of
 * the whole chunk tells what it sums up to: in *about. */
static int
keep_or_fold(pyri_draft *d, const pyri_tree *t, pyri_chain *c, pyri_painted *p,
             pyri_about *about)
{
    pyri_fetcher f = {.array = d->array, .reader = t->reader};
    pyri_box bounds, shown;
    pyri_summary sum;
    pyri_chain_prune(c, d->array->schema.ndim);
    int m = worth_folding(d->array, c, &bounds), folds = m > 0, err = 0;
    int n = c->n - m + folds;
    p->floor = pyri_sys_malloc(((size_t)n + 1) * sizeof *p->floor);
    if (!p->floor)
        return pyri_fail_nomem("the fragments of a chunk");
    for (int i = folds; i < n; i++)
        p->floor[i] = c->links[m + i - folds].frag;
    p->nfloor = n;
    if (!folds)
        return 0;
    err = write_fold(d, &f, c, &bounds, &p->floor[0], &sum);
    if (err == 0 && pyri_grid_shown(t->grid, 0, p->pos, &shown) &&
        pyri_box_contains(t->form->ndim, &bounds, &shown)) {
        about->known = true;
        about->label = d->seen;
        about->summary = sum;
    }
    pyri_fetcher_fini(&f);
    return err;
}

/* --- preparing ----------------------------------------------------------- */

typedef struct looker {
    pyri_draft *d;
    const pyri_tree *t;
    pyri_painted *p;
} looker;

/* What the snapshot has where a chunk was painted. */
static int
look(void *ctx, const pyri_hit *hit)
{
    looker *l = ctx;
    pyri_painted *p = l->p;
    pyri_chain chain = {0};
    pyri_about about = {.label = UINT64_MAX, .known = true};
    pyri_summary_init(&about.summary);
    if (!hit->leaf && hit->bits != l->t->fill)
        return 0; /* the value stands above the leaf: leave it to commit.c */
    int err = 0;
    if (hit->leaf) {
        p->below = hit->node.label;
        err = pyri_node_about(&hit->node, l->t->type, &about);
        p->digested = about.digested;
        p->digest = about.digest;
        if (err == 0)
            err = pyri_chain_load(&chain, l->t, p->pos, &hit->node, NULL, 0);
        if (err == 0)
            err = keep_or_fold(l->d, l->t, &chain, p, &about);
    }
    if (err == 0)
        err = sum_after(l->d->array, l->t, p, &chain, &about, &p->known,
                        &p->after);
    p->prepared = err == 0;
    pyri_chain_fini(&chain);
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
prepare_chunk(void *ctx, size_t i, unsigned worker)
{
    pyri_draft *d = ctx;
    pyri_painted *p = &d->painted[i];
    pyri_snapshot snap;
    pyri_reader *r;
    int err = pyri_engine_begin(d->array->engine, &r);
    if (err < 0)
        return err;
    err = pyri_snapshot_open_label(d->array, r, d->seen, &snap);
    if (err == PYR_ENOVERSION) {
        err = 0; /* forgotten since, and gone: do without */
    } else if (err == 0) {
        pyri_box cells;
        if (!snap.forgotten && !covers(&snap.tree, p) &&
            pyri_grid_shown(&snap.grid, 0, p->pos, &cells)) {
            looker l = {d, &snap.tree, p};
            pyri_run run = pyri_run_of_box(snap.grid.ndim, &cells);
            err = pyri_tree_find(&snap.tree, &run, look, &l);
        }
        pyri_snapshot_close(&snap);
    }
    pyri_engine_end(d->array->engine, r);
    return err;
}

int
pyri_prepare(pyri_draft *d)
{
    pyri_reader *r;
    int err = pyri_engine_begin(d->array->engine, &r);
    if (err < 0)
        return err;
    err = pyri_engine_latest(d->array->engine, r, d->array->id, &d->seen, NULL);
    bool needed = false;
    pyri_snapshot snap;
    uint64_t bytes = 0;
    if (err == 0 &&
        (err = pyri_snapshot_open_label(d->array, r, d->seen, &snap)) == 0) {
        for (size_t i = 0; i < d->n; i++) {
            pyri_box chunk;
            if (covers(&snap.tree, &d->painted[i]))
                continue;
            needed = true;
            pyri_grid_domain(&snap.grid, 0, d->painted[i].pos, &chunk);
            bytes += pyri_min64(bytes_of(d->array, &chunk), ALONE);
        }
        pyri_snapshot_close(&snap);
    }
    pyri_engine_end(d->array->engine, r);
    if (err < 0 || !needed)
        return err;
    return pyri_pool_run_if(bytes > 4 * ALONE, d->n, prepare_chunk, d);
}
