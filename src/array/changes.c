/*
 * array/changes.c - what differs between snapshots, and who changed it last.
 */
#include "array/shows.h"

#include "base/checked.h"

#include <string.h>

/* --- differences --------------------------------------------------------- */

enum { FEW_WRITES = 256 }; /* to a chunk: more are not looked at one by one */

typedef struct differ {
    pyri_snapshot *old, *new_;
    pyri_box both; /* the cells that both have */
    pyr_box_fn *each;
    void *ctx;
} differ;

static int
tell_box(const differ *d, const pyri_box *box)
{
    uint64_t size[PYR_MAX_DIMS];
    int n = d->new_->grid.ndim;
    for (int k = 0; k < n; k++)
        size[k] = box->hi[k] - box->lo[k];
    return d->each(d->ctx, n, box->lo, size);
}

/* What a version wrote of the box; *known is false if there is no record of
 * it any more. */
static int
tell_written(const differ *d, uint64_t label, const pyri_box *box, bool *known)
{
    const pyri_array *a = d->new_->array;
    int n = a->schema.ndim;
    pyri_record r;
    pyri_version_get get;
    int err = pyri_engine_get_version(
        a->engine, d->new_->reader,
        pyri_lineage_owner(&a->schema.lineage, label), label, &get);
    *known = err == 0 && get.found;
    if (!*known || (err = pyri_record_decode(get.record, &r)) < 0)
        return err;
    bool wrote = r.kind != PYR_KIND_NOTHING;
    for (size_t i = 0; i < r.claim.n && wrote && err == 0; i++) {
        pyri_box bounds, part;
        pyri_run_bounds(n, &r.claim.runs[i], &bounds);
        if (pyri_box_intersect(n, &bounds, box, &part))
            err = tell_box(d, &part);
    }
    pyri_record_fini(&r);
    return err;
}

/* The label of the leaf that a snapshot has there; 0: none. Not *known if the
 * snapshot has gone, or the leaf is part of a flat. */
static int
leaf_of(const differ *d, uint64_t label, const uint64_t *pos, uint64_t *leaf,
        bool *known)
{
    pyri_snapshot s;
    pyri_node node;
    pyri_flat flat;
    bool found = false;
    *known = false;
    *leaf = 0;
    int err = pyri_snapshot_open_label(d->new_->array, d->new_->reader, label,
                                       &s);
    if (err < 0)
        return err == PYR_ENOVERSION ? 0 : err;
    if (!s.forgotten) {
        err = pyri_tree_leaf_at(&s.tree, pos, &node, &flat, &found);
        *known = err == 0 && (found || flat.label == 0);
        *leaf = found ? node.label : 0;
    }
    pyri_snapshot_close(&s);
    return err;
}

/*
 * A fold holds cells of many versions. Which of them came after the older
 * snapshot? Each that wrote to the chunk has a leaf there, and the snapshot
 * just before it knows the one before. If that has gone, or they are many, all
 * of the fold is told.
 */
static int
tell_fold(const differ *d, const uint64_t *pos, uint64_t label,
          const pyri_box *box)
{
    bool known = true;
    for (int i = 0; i < FEW_WRITES && known; i++) {
        uint64_t leaf;
        int err = leaf_of(d, label, pos, &leaf, &known);
        if (err < 0 || (known && leaf <= d->old->label))
            return err;
        if (known)
            err = tell_written(d, leaf, box, &known);
        if (err != 0 || (known && leaf - 1 == d->old->label))
            return err;
        label = leaf - 1;
    }
    return tell_box(d, box);
}

/* Tell the boxes of fragments that are newer than the older snapshot. If
 * shapes were cut in between, the whole chunk; and of flats all that there
 * is. */
static int
tell_chunk(void *ctx, const uint64_t *pos, const pyri_box *domain, bool flat,
           uint64_t a, uint64_t b)
{
    differ *d = ctx;
    int n = d->new_->grid.ndim, err;
    pyri_box box;
    pyri_node node;
    pyri_chain chain = {0};
    const pyri_form *form = &d->new_->record.form;
    if (!pyri_box_intersect(n, domain, &d->both, &box))
        return 0;
    if (flat || b == 0 || b <= d->old->label ||
        (form->ncuts && form->cuts[0].label > d->old->label))
        return tell_box(d, &box);
    if ((err = pyri_tree_get(&d->new_->tree, b, 0, pos, &node)) < 0)
        return err;
    err = pyri_chain_load(&chain, &d->new_->tree, pos, &node, NULL,
                          d->old->label);
    if (err == 0)
        pyri_chain_prune(&chain, n);
    for (int i = 0; i < chain.n && err == 0; i++) {
        pyri_box part;
        const pyri_frag *f = &chain.links[i].frag;
        if (pyri_box_intersect(n, &chain.links[i].shown, &box, &part))
            err = f->fold ? tell_fold(d, pos, f->version, &part)
                          : tell_box(d, &part);
    }
    pyri_chain_fini(&chain);
    return err;
}

/* Cells that only one of two shapes has. */
static int
tell_shapes(const differ *d)
{
    pyri_box rest[2 * PYR_MAX_DIMS];
    const pyri_snapshot *sides[2] = {d->old, d->new_};
    int n = d->new_->grid.ndim, err = 0;
    for (int i = 0; i < 2; i++) {
        pyri_box shape = {.lo = {0}};
        memcpy(shape.hi, sides[i]->grid.shape, sizeof shape.hi);
        if (pyri_box_empty(n, &shape))
            continue;
        if (pyri_box_empty(n, &d->both)) {
            err = tell_box(d, &shape);
            continue;
        }
        int count = pyri_box_subtract(n, &shape, &d->both, rest);
        for (int k = 0; k < count && err == 0; k++)
            err = tell_box(d, &rest[k]);
    }
    return err;
}

int
pyri_diff(pyri_array *a, pyr_version va, pyr_version vb, pyr_box_fn *each,
          void *ctx)
{
    pyri_snapshot old, new_;
    if (vb != PYR_LATEST && (va == PYR_LATEST || va > vb)) {
        pyr_version swap = va;
        va = vb;
        vb = swap;
    }
    int err = pyri_snapshot_open(a, vb, &new_);
    if (err < 0)
        return err;
    pyr_version newest = new_.label - a->first;
    if (va == PYR_LATEST)
        va = newest;
    if (va > newest) { /* vb was the latest: is va published by now? */
        pyri_snapshot_close(&new_);
        return pyri_diff(a, newest, va, each, ctx);
    }
    err = pyri_snapshot_open_label(a, new_.reader, a->first + va, &old);
    if (err < 0)
        goto out;
    differ d = {&old, &new_, {.lo = {0}}, each, ctx};
    for (int k = 0; k < a->schema.ndim; k++)
        d.both.hi[k] = pyri_min64(old.grid.shape[k], new_.grid.shape[k]);
    err = tell_shapes(&d);
    old.tree.grid = &new_.grid;
    if (err == 0)
        err = pyri_tree_diff(&old.tree, &new_.tree, tell_chunk, &d);
    pyri_snapshot_close(&old);
out:
    pyri_snapshot_close(&new_);
    return err;
}

/* --- last change --------------------------------------------------------- */

typedef struct asking {
    pyri_array *a;
    pyri_reader *reader;
    const pyri_snapshot *snap;
    uint64_t best;  /* label */
    uint64_t older; /* label of a snapshot that knows more; 0: none */
} asking;

/* Did the version itself write a cell of the box? A mask or a run with gaps
 * may have left all of them out. */
static int
wrote(asking *q, const pyri_frag *f, const pyri_box *box, bool *out)
{
    pyri_record r;
    pyri_version_get get;
    *out = true;
    if (!f->masked)
        return 0;
    if (f->fold) /* of versions that have gone: its mask tells */
        return f->kind == PYRI_FRAG_SAME
                   ? 0
                   : pyri_mask_overlaps(q->a, q->reader, f, box, out);
    int err = pyri_engine_get_version(
        q->a->engine, q->reader,
        pyri_lineage_owner(&q->a->schema.lineage, f->version), f->version,
        &get);
    if (err < 0 || !get.found ||
        (err = pyri_record_decode(get.record, &r)) < 0)
        return err;
    *out = pyri_claim_overlaps(&r.claim, box);
    pyri_record_fini(&r);
    return 0;
}

/* A snapshot may have a fold of itself, made later. Did its version write a
 * cell of the box, as its record tells? If not, the snapshot just before it
 * knows who did, unless that has gone. */
static int
ask_record(asking *q, uint64_t label, const pyri_box *box, bool *did,
           bool *known)
{
    const pyri_lineage *l = &q->a->schema.lineage;
    pyri_record r;
    pyri_version_get get;
    *did = *known = false;
    int err = pyri_engine_get_version(q->a->engine, q->reader,
                                      pyri_lineage_owner(l, label), label,
                                      &get);
    if (err < 0 || !get.found ||
        (err = pyri_record_decode(get.record, &r)) < 0)
        return err;
    *did = r.kind != PYR_KIND_NOTHING && pyri_claim_overlaps(&r.claim, box);
    pyri_record_fini(&r);
    *known = label - 1 <= q->a->first;
    if (*did || *known)
        return 0;
    err = pyri_engine_get_version(q->a->engine, q->reader,
                                  pyri_lineage_owner(l, label - 1), label - 1,
                                  &get);
    *known = err == 0 && get.found && !get.forgotten;
    return err;
}

/* Who knows more about the cells of a fold? Not *asked if nobody does. */
static int
ask_fold(asking *q, const pyri_frag *f, const pyri_box *box, bool *asked)
{
    bool did, known;
    *asked = f->version < q->snap->label;
    if (*asked) {
        q->older = f->version;
        return 0;
    }
    int err = ask_record(q, f->version, box, &did, &known);
    *asked = err == 0 && (did || known);
    if (*asked && did)
        q->best = f->version;
    else if (*asked)
        q->older = f->version - 1;
    return err;
}

/* Look for the newest fragment of a chunk that wrote a cell of the hit. The
 * cells of a fold are older than it: the snapshot that it was made of knows
 * by whom they were written, and all that is below it here. */
static int
ask_leaf(void *ctx, const pyri_hit *hit)
{
    asking *q = ctx;
    pyri_chain chain = {0};
    q->older = 0;
    if (!hit->leaf && hit->flat > q->best)
        q->best = hit->flat;
    if (!hit->leaf || hit->node.label <= q->best)
        return 0;
    int err = pyri_chain_load(&chain, &q->snap->tree, hit->pos, &hit->node,
                              NULL, q->best);
    for (int i = 0; i < chain.n && err == 0; i++) {
        const pyri_frag *f = &chain.links[i].frag;
        pyri_box part;
        bool did = false;
        if (!pyri_box_intersect(q->a->schema.ndim, &chain.links[i].shown,
                                &hit->box, &part))
            continue;
        if (f->fold && ((err = ask_fold(q, f, &part, &did)) < 0 || did))
            break;
        err = wrote(q, f, &part, &did);
        if (err == 0 && did) {
            q->best = f->version;
            break;
        }
    }
    pyri_chain_fini(&chain);
    return err;
}

/* Ask a chunk in a snapshot, then in older and older ones. */
static int
ask_chunk(void *ctx, const pyri_hit *hit)
{
    asking *q = ctx;
    const pyri_snapshot *top = q->snap;
    pyri_run run = pyri_run_of_box(q->a->schema.ndim, &hit->box);
    int err = ask_leaf(q, hit);
    while (err == 0 && q->older > q->best) {
        pyri_snapshot snap;
        err = pyri_snapshot_open_label(q->a, q->reader, q->older, &snap);
        if (err == PYR_ENOVERSION || (err == 0 && snap.forgotten)) {
            q->best = q->older; /* it was not after this, at least */
            if (err == 0)
                pyri_snapshot_close(&snap);
            err = 0;
            break;
        }
        if (err < 0)
            break;
        snap.tree.leaves_only = true;
        q->snap = &snap;
        q->older = 0;
        err = pyri_tree_find(&snap.tree, &run, ask_leaf, q);
        pyri_snapshot_close(&snap);
    }
    q->snap = top;
    return err;
}

int
pyri_last_change(pyri_array *a, pyr_version v, const pyri_box *box,
                 pyr_version *out)
{
    pyri_snapshot snap;
    int err = pyri_snapshot_open(a, v, &snap);
    if (err < 0)
        return err;
    pyri_run run = pyri_run_of_box(a->schema.ndim, box);
    asking q = {.a = a,
                .reader = snap.reader,
                .snap = &snap,
                .best = a->first};
    /* a region of one value was written too: look at its leaves */
    snap.tree.leaves_only = true;
    err = pyri_snapshot_check(&snap, &run);
    if (err == 0)
        err = pyri_tree_find(&snap.tree, &run, ask_chunk, &q);
    pyri_snapshot_close(&snap);
    if (err == 0)
        *out = q.best - a->first;
    return err;
}
