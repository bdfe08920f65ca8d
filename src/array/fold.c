/*
 * array/fold.c - folding what snapshots that are kept lie on, when others have
 * gone.
 *
 * Where a leaf went with a version, the leaves of the snapshots around it may
 * name fragments that show little of what they hold. Such chunks are noted
 * while versions are erased, and looked at afterwards, each through the
 * snapshots behind the gap (fold_plan.c). So this costs what went.
 *
 * New blobs are put, and what will be stored is written down, while others
 * read and write. Then comes one step in which nobody completes a version:
 * chunks that have other leaves by now, or all if anything was folded since,
 * are left out, and looked at again after it; the others get their new leaves,
 * and old blobs go. Versions that are being made at that moment are refused by
 * the engine and made again on the new leaves (commit.c). Readers see what they
 * saw.
 */
#include "array/fold.h"

#include "base/checked.h"
#include "base/fault.h"
#include "base/room.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

enum {
    STEP_CHUNKS = 32,
    STEP_BYTES = 4 << 20, /* of new leaves and blobs */
    TRIES = 16
};

typedef struct folder {
    pyri_folding *f;
    pyr_reclaimed *out;
    pyri_reader *r;
    pyri_fold_target *targets; /* of this gap, open through the reader */
    size_t ntargets;
    pyri_vertex gone, older;   /* the gap */
    pyri_fold_plan plans[STEP_CHUNKS];
    size_t nplans;
    uint64_t bytes;
    /* of the step */
    int64_t saved; /* bytes, beside what goes */
    pyr_folded done;
    pyri_node_put *nodes;
    pyri_fold_blob *blobs;
    pyri_bytes *gone_nodes;
    pyri_blob *gone_blobs;
    size_t node_room, blob_room, gone_node_room, gone_blob_room;
} folder;

/* --- noting -------------------------------------------------------------- */

void
pyri_folding_fini(pyri_folding *f)
{
    pyri_reached_fini(&f->noted);
    free(f->spots);
    f->spots = NULL;
    f->n = f->room = 0;
}

int
pyri_fold_note(pyri_folding *f, const pyri_fold_spot *spot, int ndim)
{
    uint64_t name[3 + PYR_MAX_DIMS] = {spot->gone.array, spot->older.array,
                                       spot->older.label};
    bool fresh;
    memcpy(name + 3, spot->pos, (size_t)ndim * sizeof *name);
    int err = pyri_reached_add(&f->noted, name,
                               (size_t)(3 + ndim) * sizeof *name, &fresh);
    if (err < 0 || !fresh)
        return err;
    if (!pyri_room(&f->spots, &f->room, f->n + 1, sizeof *f->spots))
        return pyri_fail_nomem("a list of chunks");
    f->spots[f->n++] = *spot;
    return 0;
}

/* --- the snapshots behind a gap ------------------------------------------ */

static void
close_target(pyri_fold_target *t)
{
    for (size_t i = 0; i < t->nbefore; i++)
        pyri_snapshot_close(&t->before[i]);
    if (t->snap.reader)
        pyri_snapshot_close(&t->snap);
    free(t->before);
    *t = (pyri_fold_target){.nbefore = 0};
}

static void
close_gap(folder *x)
{
    for (size_t i = 0; i < x->ntargets; i++)
        close_target(&x->targets[i]);
    free(x->targets);
    x->targets = NULL;
    x->ntargets = 0;
    x->gone = (pyri_vertex){0, 0};
}

static int
open_vertex(folder *x, pyri_vertex v, pyri_snapshot *out)
{
    pyri_array *a;
    int err = pyri_family_array(x->f->family, v.array, &a);
    return err < 0 ? err : pyri_snapshot_open_label(a, x->r, v.label, out);
}

/* Is `v` on the line of `of`? */
static int
comes_after(folder *x, pyri_vertex of, pyri_vertex v, bool *after)
{
    pyri_array *a;
    int err = pyri_family_array(x->f->family, of.array, &a);
    *after = err == 0 && of.label >= v.label &&
             pyri_lineage_owner(&a->schema.lineage, v.label) == v.array;
    return err;
}

static int
add_before(folder *x, pyri_fold_target *t, pyri_vertex v)
{
    int err = open_vertex(x, v, &t->before[t->nbefore]);
    t->nbefore += err == 0;
    return err;
}

static int
open_target(folder *x, pyri_vertex v, pyri_fold_target *t)
{
    pyri_neighbours around = {.n = 0};
    t->vertex = v;
    int err = pyri_family_around(x->f->family, x->r, v, &around);
    if (err == 0 &&
        !(t->before = pyri_sys_calloc(around.n + 1, sizeof *t->before)))
        err = pyri_fail_nomem("the snapshots around one");
    if (err == 0)
        err = open_vertex(x, v, &t->snap);
    if (err < 0)
        t->snap.reader = NULL;
    if (err == 0 && around.older.label)
        err = add_before(x, t, around.older);
    for (size_t i = 0; i < around.n && err == 0; i++) {
        bool after;
        err = comes_after(x, around.others[i], v, &after);
        if (err == 0 && !after)
            err = add_before(x, t, around.others[i]);
    }
    pyri_neighbours_fini(&around);
    return err;
}

static bool
same_gap(const folder *x, const pyri_fold_spot *s)
{
    return x->gone.array == s->gone.array &&
           x->older.array == s->older.array &&
           x->older.label == s->older.label;
}

static int
open_gap(folder *x, const pyri_fold_spot *s)
{
    pyri_neighbours around = {.n = 0};
    if (x->r && same_gap(x, s))
        return 0;
    close_gap(x);
    int err = x->r ? 0 : pyri_engine_begin(x->f->family->engine, &x->r);
    if (err == 0)
        err = pyri_family_around(x->f->family, x->r, s->gone, &around);
    if (err == 0 &&
        !(x->targets = pyri_sys_calloc(around.n + 1, sizeof *x->targets)))
        err = pyri_fail_nomem("the snapshots around one");
    for (size_t i = 0; i < around.n && err == 0; i++)
        err = open_target(x, around.others[i], &x->targets[x->ntargets++]);
    pyri_neighbours_fini(&around);
    x->gone = s->gone;
    x->older = s->older;
    return err;
}

/* --- the step ------------------------------------------------------------ */

static uint64_t
family_of(const pyri_fold_plan *p)
{
    return p->draft.array->schema.lineage.line[0].array;
}

/* Has a version that waits to be published a leaf there? */
static int
check_flights(folder *x, pyri_reader *r, pyri_fold_plan *p, uint64_t array)
{
    pyri_engine *e = x->f->family->engine;
    pyri_flights all = {0};
    int err = pyri_engine_flights(e, array, &all);
    for (size_t i = 0; i < all.n && err == 0; i++) {
        uint8_t key[PYRI_MAX_KEY];
        if (!all.list[i].complete)
            continue;
        size_t n = pyri_node_key(array, all.list[i].version, 0,
                                 p->draft.array->schema.ndim, p->pos, key);
        pyri_node_get get = {.key = {key, n}};
        err = pyri_engine_get_nodes(e, r, &get, 1);
        p->stale |= err == 0 && get.found;
    }
    pyri_flights_fini(&all);
    return err;
}

/* Has the chunk the leaves that it had? If nothing was folded since, what is in
 * them is what was. */
static int
check_plan(folder *x, pyri_reader *r, pyri_fold_plan *p)
{
    uint64_t folds = 0;
    int err = pyri_folds(p->draft.array, r, &folds);
    p->stale = folds != p->folds;
    if (err < 0 || p->stale)
        return err;
    pyri_carriers now = {.family = x->f->family,
                         .reader = r,
                         .from = p->from,
                         .pos = p->pos,
                         .sought = &p->first,
                         .limit = SIZE_MAX};
    err = pyri_carriers_find(&now);
    p->stale = now.n != p->ncarriers;
    for (size_t i = 0; i < now.n && err == 0 && !p->stale; i++)
        p->stale = now.list[i].name.owner != p->carriers[i].name.owner ||
                   now.list[i].name.label != p->carriers[i].name.label;
    for (size_t i = 0; i < now.narrays && err == 0 && !p->stale; i++)
        err = check_flights(x, r, p, now.arrays[i]);
    pyri_carriers_fini(&now);
    return err;
}

static bool
make_room(folder *x, pyri_fold *f, const pyri_fold_plan *p)
{
    return pyri_room(&x->nodes, &x->node_room, f->nnodes + p->nnodes + 1,
                     sizeof *x->nodes) &&
           pyri_room(&x->blobs, &x->blob_room, f->nblobs + p->draft.nstash + 1,
                     sizeof *x->blobs) &&
           pyri_room(&x->gone_nodes, &x->gone_node_room,
                     f->gone.nnodes + p->ngone_nodes + 1,
                     sizeof *x->gone_nodes) &&
           pyri_room(&x->gone_blobs, &x->gone_blob_room,
                     f->gone.nblobs + p->ngone + 1, sizeof *x->gone_blobs);
}

static int
add_plan(folder *x, pyri_fold *f, pyri_fold_plan *p)
{
    pyri_blob *blobs;
    size_t n;
    if (!make_room(x, f, p))
        return pyri_fail_nomem("a list of leaves");
    int err = pyri_stash_list(&p->draft, &blobs, &n);
    if (err < 0)
        return err;
    x->saved += p->saved;
    x->done.chunks++;
    x->done.fragments += p->fragments;
    x->done.written += p->put;
    for (size_t i = 0; i < n; i++) {
        x->saved -= (int64_t)blobs[i].size;
        x->blobs[f->nblobs++] =
            (pyri_fold_blob){blobs[i], p->owner, p->label};
    }
    free(blobs);
    memcpy(x->nodes + f->nnodes, p->nodes, p->nnodes * sizeof *p->nodes);
    f->nnodes += p->nnodes;
    for (size_t i = 0; i < p->ngone_nodes; i++)
        x->gone_nodes[f->gone.nnodes++] = p->gone_nodes[i];
    for (size_t i = 0; i < p->ngone; i++)
        x->gone_blobs[f->gone.nblobs++] = p->gone[i];
    f->nodes = x->nodes;
    f->blobs = x->blobs;
    f->gone.nodes = x->gone_nodes;
    f->gone.blobs = x->gone_blobs;
    return 0;
}

static int
decide(pyri_fold *f, pyri_reader *r)
{
    folder *x = f->ctx;
    int err = 0;
    for (size_t i = 0; i < x->nplans && err == 0; i++) {
        err = check_plan(x, r, &x->plans[i]);
        if (err == 0 && !x->plans[i].stale)
            err = add_plan(x, f, &x->plans[i]);
    }
    return err;
}

/* The plan's place is looked at again, unless that was tried too often. */
typedef struct again {
    pyri_fold_spot spots[STEP_CHUNKS];
    unsigned tries[STEP_CHUNKS];
    size_t n;
} again;

static void
tell_missed(pyri_folding *f, const pyri_fold_plan *p)
{
    if (f->missed)
        f->missed(f->ctx, p->draft.array, p->pos, p->label);
}

static void
note_left(pyri_folding *f, const pyri_fold_plan *p)
{
    f->left = true;
    f->done.left++;
    tell_missed(f, p);
}

static void
end_plans(folder *x, bool stored, again *a)
{
    unsigned tries = x->f->tries ? x->f->tries : TRIES;
    for (size_t i = 0; i < x->nplans; i++) {
        pyri_fold_plan *p = &x->plans[i];
        if (p->stale && a && p->tries + 1 < tries) {
            pyri_fold_spot *s = &a->spots[a->n];
            s->gone = s->older = p->from;
            memcpy(s->pos, p->pos, sizeof s->pos);
            a->tries[a->n++] = p->tries + 1;
        }
        if (p->stale && p->tries + 1 >= tries)
            note_left(x->f, p);
        pyri_fold_plan_fini(p, stored && !p->stale);
        p->tries = 0;
    }
    x->nplans = 0;
    x->bytes = 0;
}

static void
count_step(folder *x, uint64_t erased)
{
    pyr_folded *sum = &x->f->done;
    x->out->folded += x->saved + (int64_t)erased;
    sum->chunks += x->done.chunks;
    sum->fragments += x->done.fragments;
    sum->written += x->done.written;
    sum->erased += erased;
}

static int
step(folder *x, again *a)
{
    pyri_engine *e = x->f->family->engine;
    int err = 0;
    a->n = 0;
    x->saved = 0;
    x->done = (pyr_folded){0};
    if (x->nplans == 0)
        return 0;
    pyri_fold f = {.family = family_of(&x->plans[0]),
                   .decide = decide,
                   .ctx = x};
    PYRI_FAULT("fold.put");
    if ((err = pyri_engine_sync(e)) == 0)
        err = pyri_engine_fold(e, &f);
    bool kept = f.nnodes > 0; /* if it failed, who knows */
    end_plans(x, kept, err == 0 ? a : NULL);
    if (err == 0)
        count_step(x, f.gone.bytes);
    close_gap(x);
    pyri_engine_end(e, x->r); /* it sees the old leaves */
    x->r = NULL;
    return err;
}

/* --- chunk by chunk ------------------------------------------------------ */

static bool
is_planned(const folder *x, const pyri_fold_target *t, const uint64_t *pos)
{
    for (size_t i = 0; i < x->nplans; i++)
        if (memcmp(x->plans[i].pos, pos, sizeof x->plans[i].pos) == 0 ||
            family_of(&x->plans[i]) !=
                t->snap.array->schema.lineage.line[0].array)
            return true;
    return false;
}

static int
plan_chunk(folder *x, const pyri_fold_target *t, const uint64_t *pos,
           unsigned tries)
{
    pyri_fold_plan *p = &x->plans[x->nplans];
    int err = pyri_fold_plan_make(p, x->f->family, t, pos, x->f->spend);
    if (err == 0 && p->nnodes)
        err = pyri_folds(t->snap.array, x->r, &p->folds);
    p->tries = tries;
    if (err < 0 || p->nnodes == 0) {
        tell_missed(x->f, p);
        pyri_fold_plan_fini(p, false);
        return err == PYR_ECORRUPT ? 0 : err; /* damaged: leave it */
    }
    uint64_t gone = 0;
    for (size_t i = 0; i < p->ngone; i++)
        gone += p->gone[i].size;
    x->bytes += p->bytes.size + pyri_max64(gone, p->put);
    x->nplans++;
    return 0;
}

static int look_at(folder *x, const pyri_fold_spot *s, unsigned tries);

static int
finish_step(folder *x)
{
    again a;
    int err = step(x, &a);
    for (size_t i = 0; i < a.n && err == 0; i++)
        err = look_at(x, &a.spots[i], a.tries[i]);
    return err;
}

/* A spot whose gap has no width is that snapshot itself, once more. */
static int
look_at(folder *x, const pyri_fold_spot *s, unsigned tries)
{
    pyri_fold_target one = {.nbefore = 0};
    bool itself = s->gone.label == s->older.label;
    int err = 0;
    size_t n = 1;
    for (size_t i = 0; i < n && err == 0; i++) {
        pyri_fold_target *t = &one;
        if (!itself) {
            if ((err = open_gap(x, s)) < 0)
                break;
            n = x->ntargets;
            if (n == 0)
                break;
            t = &x->targets[i];
        } else {
            if (!x->r)
                err = pyri_engine_begin(x->f->family->engine, &x->r);
            if (err == 0)
                err = open_target(x, s->gone, &one);
        }
        if (err == 0 &&
            (x->nplans == STEP_CHUNKS || x->bytes > STEP_BYTES ||
             is_planned(x, t, s->pos))) {
            close_target(&one);
            if ((err = finish_step(x)) < 0)
                break;
            i--; /* with a new reader */
            continue;
        }
        if (err == 0)
            err = plan_chunk(x, t, s->pos, tries);
        close_target(&one);
    }
    return err;
}

static int
tell(pyri_folding *f)
{
    const pyr_progress *p = f->progress;
    f->looked++;
    return p && p->each
               ? p->each(p->ctx, f->looked, pyri_max64(f->looked, f->total))
               : 0;
}

int
pyri_fold_all(pyri_folding *f, pyr_reclaimed *out)
{
    folder *x = pyri_sys_calloc(1, sizeof *x);
    if (!x)
        return pyri_fail_nomem("a list of leaves");
    *x = (folder){.f = f, .out = out};
    int err = 0;
    for (size_t i = 0; i < f->n && err == 0; i++)
        if ((err = look_at(x, &f->spots[i], 0)) == 0)
            err = tell(f);
    while (err == 0 && x->nplans)
        err = finish_step(x);
    end_plans(x, false, NULL);
    close_gap(x);
    pyri_engine_end(f->family->engine, x->r);
    free(x->nodes);
    free(x->blobs);
    free(x->gone_nodes);
    free(x->gone_blobs);
    free(x);
    pyri_reached_fini(&f->noted);
    f->n = 0;
    return err;
}
