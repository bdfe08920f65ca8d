/*
 * array/reclaim.c - giving back what only forgotten snapshots needed.
 *
 * Forgotten versions are taken one after the other, oldest first. What one
 * of them has and none of its neighbours (family.c) is erased, leaves before
 * their parents and the record last: so if this is interrupted, the next one
 * finds the rest. Several small versions share one step.
 *
 * A version is left for later if
 *   - a clone begins with it that has not forgotten it;
 *   - a writer in flight began when it was the newest, or before: that writer
 *     may be reading it.
 * Readers need no such care: the engine lets them see what they saw. Versions
 * of writers that died are completed first, in all arrays.
 */
#include "array/fold.h"

#include "base/room.h"
#include "base/sys.h"

#include <stdio.h>
#include <string.h>

enum {
    STEP_ITEMS = 4096,
    STEP_VERSIONS = 512,
    MANY_CHUNKS = 16384 /* to be folded: it is time to do so */
};

typedef struct reclaiming {
    pyri_engine *e;
    pyri_family family;
    pyri_reader *r;
    pyr_reclaimed *out;

    /* what the next step erases */
    uint64_t array;
    uint64_t versions[STEP_VERSIONS];
    size_t nversions;
    pyri_bytes *nodes; /* keys, in `keys` once it has stopped growing */
    size_t nnodes, node_room;
    pyri_buf keys;
    pyri_blob *blobs;
    size_t nblobs, blob_room;
    bool stepped; /* since the reader began */

    /* chunks of leaves that went */
    pyri_folding folding;
    pyri_unfolded unfolded;
    bool folds; /* the engine can */
    int ndim;   /* of the array */
    pyri_vertex gone, older; /* the version that is gone through */
} reclaiming;

/* --- steps --------------------------------------------------------------- */

static int
step(reclaiming *x)
{
    const uint8_t *at = x->keys.data;
    int err = pyri_buf_check(&x->keys, "a list of nodes");
    if (err < 0 || x->nnodes + x->nblobs + x->nversions == 0)
        return err;
    for (size_t i = 0; i < x->nnodes; i++) {
        x->nodes[i].data = at;
        at += x->nodes[i].size;
    }
    pyri_erase erase = {.nodes = x->nodes,
                        .nnodes = x->nnodes,
                        .blobs = x->blobs,
                        .nblobs = x->nblobs,
                        .array = x->array,
                        .versions = x->versions,
                        .nversions = x->nversions};
    if ((err = pyri_engine_erase(x->e, &erase)) < 0)
        return err;
    x->out->nodes += x->nnodes;
    x->out->fragments += x->nblobs;
    x->out->versions += x->nversions;
    x->out->bytes += erase.bytes;
    x->nnodes = x->nblobs = x->nversions = 0;
    pyri_buf_reset(&x->keys);
    x->stepped = true;
    return 0;
}

/* A leaf goes: what is left of its chunk may be worth folding. */
static int
note_leaf(reclaiming *x, pyri_bytes key)
{
    pyri_fold_spot spot = {.gone = x->gone, .older = x->older};
    pyri_cursor c = pyri_cursor_of(key.data, key.size);
    pyri_cursor_u64(&c); /* array and label */
    pyri_cursor_u64(&c);
    if (pyri_cursor_u8(&c) != 0)
        return 0;
    for (int d = 0; d < x->ndim; d++)
        spot.pos[d] = pyri_cursor_varint(&c);
    return c.failed ? 0 : pyri_fold_note(&x->folding, &spot, x->ndim);
}

static int
add_node(void *ctx, pyri_bytes key, size_t size)
{
    reclaiming *x = ctx;
    (void)size;
    int err = x->folds ? note_leaf(x, key) : 0;
    if (err < 0)
        return err;
    if (!pyri_room(&x->nodes, &x->node_room, x->nnodes + 1, sizeof *x->nodes))
        return pyri_fail_nomem("a list of nodes");
    x->nodes[x->nnodes++].size = key.size;
    pyri_buf_add(&x->keys, key.data, key.size);
    return x->nnodes + x->nblobs < STEP_ITEMS ? 0 : step(x);
}

static int
add_blob(void *ctx, const pyri_blob *blob)
{
    reclaiming *x = ctx;
    if (!pyri_room(&x->blobs, &x->blob_room, x->nblobs + 1, sizeof *x->blobs))
        return pyri_fail_nomem("a list of blobs");
    x->blobs[x->nblobs++] = *blob;
    return 0; /* the leaf that it belongs to goes with it */
}

/* --- one snapshot -------------------------------------------------------- */

/* A snapshot and its neighbours, open. */
typedef struct surroundings {
    pyri_neighbours names;
    pyri_snapshot *open; /* the snapshot, the older one, the others */
    size_t n;
    const pyri_tree **others;
    bool older;
} surroundings;

static void
surroundings_fini(surroundings *s)
{
    for (size_t i = 0; i < s->n; i++)
        pyri_snapshot_close(&s->open[i]);
    free(s->open);
    free(s->others);
    pyri_neighbours_fini(&s->names);
}

static int
open_vertex(pyri_family *f, pyri_reader *r, pyri_vertex v, surroundings *s)
{
    pyri_array *a;
    int err = pyri_family_array(f, v.array, &a);
    if (err == 0)
        err = pyri_snapshot_open_label(a, r, v.label, &s->open[s->n]);
    s->n += err == 0;
    return err;
}

static int
open_around(pyri_family *f, pyri_reader *r, pyri_vertex v, surroundings *s)
{
    int err = pyri_family_around(f, r, v, &s->names);
    if (err < 0)
        return err;
    s->open = pyri_sys_calloc(s->names.n + 2, sizeof *s->open);
    s->others = pyri_sys_calloc(s->names.n + 1, sizeof *s->others);
    if (!s->open || !s->others)
        return pyri_fail_nomem("the snapshots around one");
    err = open_vertex(f, r, v, s);
    s->older = s->names.older.label != 0;
    if (err == 0 && s->older)
        err = open_vertex(f, r, s->names.older, s);
    for (size_t i = 0; i < s->names.n && err == 0; i++)
        err = open_vertex(f, r, s->names.others[i], s);
    return err;
}

static int
visit_alone(pyri_family *f, pyri_reader *r, pyri_vertex v,
            const pyri_alone_out *out, pyri_vertex *older)
{
    surroundings s = {.n = 0};
    int err = open_around(f, r, v, &s);
    *older = s.names.older;
    size_t first = 1 + s.older;
    for (size_t i = 0; i < s.names.n && err == 0; i++)
        s.others[i] = &s.open[first + i].tree;
    if (err == 0)
        err = pyri_tree_alone(&s.open[0].tree,
                              s.older ? &s.open[1].tree : NULL,
                              s.names.older.label, s.others, s.names.n, out);
    surroundings_fini(&s);
    return err;
}

/* --- may it go? ---------------------------------------------------------- */

/* The oldest snapshot that a writer in flight may be reading. */
static int
oldest_in_use(pyri_engine *e, uint64_t array, uint64_t *out)
{
    pyri_flights all = {0};
    *out = UINT64_MAX;
    int err = pyri_engine_flights(e, array, &all);
    for (size_t i = 0; i < all.n && err == 0; i++)
        if (!all.list[i].complete && all.list[i].base < *out)
            *out = all.list[i].base;
    pyri_flights_fini(&all);
    return err;
}

typedef struct holders {
    reclaiming *x;
    bool held;
} holders;

/* Does this clone need the snapshot that it begins with? */
static int
ask_clone(void *ctx, uint64_t clone, uint64_t label)
{
    holders *h = ctx;
    pyri_array *a;
    bool gone = false;
    uint64_t used = UINT64_MAX;
    int err = pyri_family_array(&h->x->family, clone, &a);
    if (err == 0)
        err = pyri_array_is_gone(a, h->x->r, &gone);
    if (err == 0 && gone)
        err = oldest_in_use(h->x->e, clone, &used);
    h->held |= !gone || used <= label;
    return err;
}

static int
may_go(reclaiming *x, pyri_vertex v, bool *may)
{
    holders h = {x, false};
    uint64_t used;
    int err = oldest_in_use(x->e, v.array, &used);
    if (err == 0)
        err = pyri_family_clones(&x->family, x->r, v.array, v.label, v.label,
                                 ask_clone, &h);
    *may = err == 0 && !h.held && v.label < used;
    return err;
}

/* --- all of them --------------------------------------------------------- */

typedef struct doomed {
    pyri_vertex *list;
    size_t n, room;
} doomed;

static int
note_doomed(void *ctx, uint64_t array, uint64_t label)
{
    doomed *d = ctx;
    if (!pyri_room(&d->list, &d->room, d->n + 1, sizeof *d->list))
        return pyri_fail_nomem("a list of versions");
    d->list[d->n++] = (pyri_vertex){array, label};
    return 0;
}

/* What was erased in a step is still there for a reader that began before. */
static int
renew_reader(reclaiming *x)
{
    if (x->r && !x->stepped)
        return 0;
    int err = step(x); /* or a version would be half gone in the new view */
    if (err < 0)
        return err;
    pyri_engine_end(x->e, x->r);
    x->r = NULL;
    x->stepped = false;
    x->family.erased_of = 0;
    return pyri_engine_begin(x->e, &x->r);
}

/* The next version, if it is taken away, counts as gone for those after it
 * that are looked at through the same reader. */
static int
note_erased(reclaiming *x, pyri_vertex v, uint64_t older)
{
    pyri_family *f = &x->family;
    f->erased_of = v.array;
    f->erased_last = v.label;
    f->erased_before = older;
    x->versions[x->nversions++] = v.label;
    return x->nversions < STEP_VERSIONS ? 0 : step(x);
}

static int
reclaim_one(reclaiming *x, pyri_vertex v)
{
    pyri_alone_out out = {add_node, add_blob, x};
    bool may = false;
    int err = renew_reader(x);
    if (err == 0)
        err = may_go(x, v, &may);
    if (err < 0)
        return err;
    if (!may) {
        x->out->left++;
        return 0;
    }
    x->gone = v;
    if ((err = visit_alone(&x->family, x->r, v, &out, &x->older)) < 0)
        return err;
    return note_erased(x, v,
                       x->older.array == v.array ? x->older.label : 0);
}

static int
begin_array(reclaiming *x, uint64_t array)
{
    pyri_array *a;
    int err = step(x);
    x->array = array;
    if (err == 0)
        err = pyri_family_array(&x->family, array, &a);
    if (err < 0)
        return err;
    x->ndim = a->schema.ndim;
    return x->folds ? pyri_unfolded_begin(&x->unfolded, x->e, array) : 0;
}

/* Fold what was noted so far, as versions are now. */
static int
fold(reclaiming *x)
{
    int err = step(x);
    pyri_engine_end(x->e, x->r);
    x->r = NULL;
    x->family.erased_of = 0;
    return err < 0 ? err : pyri_fold_all(&x->folding, x->out);
}

static int
reclaim_all(reclaiming *x, const doomed *d, const pyr_progress *progress)
{
    int err = 0;
    for (size_t i = 0; i < d->n && err == 0; i++) {
        if (d->list[i].array != x->array &&
            (err = begin_array(x, d->list[i].array)) < 0)
            break;
        err = reclaim_one(x, d->list[i]);
        if (err == 0 && x->folding.n >= MANY_CHUNKS)
            err = fold(x);
        if (err == 0 && progress && progress->each)
            err = progress->each(progress->ctx, i + 1, d->n);
    }
    int last = err < 0 ? step(x) : fold(x); /* also if we were asked to end */
    if (err == 0 && last == 0 && x->folds)
        err = pyri_unfolded_end(&x->unfolded, &x->folding, x->out);
    return err != 0 ? err : last;
}

typedef struct trouble {
    int err;
    char text[1024];
} trouble;

static int
note_name(void *ctx, const char *name)
{
    pyri_buf_add(ctx, name, strlen(name) + 1);
    return 0;
}

/* What keeps one array from being put in order is no reason to leave the
 * others as they are. It is told in the end; but harm is for verify to name. */
static void
note_trouble(trouble *t, int err)
{
    if (err >= 0 || t->err < 0 || err == PYR_ECORRUPT || err == PYR_EFORMAT ||
        err == PYR_ENOTFOUND || err == PYR_ENOVERSION)
        return;
    t->err = err;
    snprintf(t->text, sizeof t->text, "%s", pyr_errmsg());
}

/* Nobody may ever write there again, and what they stored would stay. */
static void
resolve_everywhere(pyri_engine *e, trouble *t)
{
    pyri_buf names = {0};
    note_trouble(t, pyri_array_list(e, note_name, &names));
    note_trouble(t, pyri_buf_check(&names, "a list of arrays"));
    const char *name = (const char *)names.data;
    const char *end = names.failed ? name : name + names.size;
    for (; name < end; name += strlen(name) + 1) {
        pyri_array *a;
        int err = pyri_array_open(e, name, &a);
        note_trouble(t, err < 0 ? err : pyri_resolve(a));
        pyri_array_close(a);
    }
    pyri_buf_fini(&names);
}

static int
list_doomed(pyri_engine *e, doomed *d)
{
    pyri_reader *r;
    int err = pyri_engine_begin(e, &r);
    if (err < 0)
        return err;
    err = pyri_engine_scan_forgotten(e, r, note_doomed, d);
    pyri_engine_end(e, r);
    return err;
}

int
pyri_reclaim(pyri_engine *e, const pyr_progress *progress, pyr_reclaimed *out)
{
    reclaiming x = {.e = e, .family = {.engine = e}, .out = out};
    doomed d = {0};
    trouble elsewhere = {0};
    pyri_settled settled = {0, 0};
    memset(out, 0, sizeof *out);
    x.folding.family = &x.family;
    x.folds = pyri_engine_can_fold(e);
    int err = pyri_engine_begin_upkeep(e);
    if (err < 0)
        return err;
    resolve_everywhere(e, &elsewhere);
    if (x.folds)
        err = pyri_unfolded_find(&x.unfolded, e);
    if (err == 0 && (err = list_doomed(e, &d)) == 0)
        err = reclaim_all(&x, &d, progress);
    pyri_engine_end(e, x.r);
    if (err == 0)
        err = pyri_engine_settle(e, &settled);
    out->returned = settled.bytes;
    out->waiting = settled.waiting;
    pyri_engine_end_upkeep(e);
    pyri_folding_fini(&x.folding);
    pyri_unfolded_fini(&x.unfolded);
    pyri_family_fini(&x.family);
    pyri_buf_fini(&x.keys);
    free(x.nodes);
    free(x.blobs);
    free(d.list);
    return err == 0 && elsewhere.err < 0
               ? pyri_fail(elsewhere.err, "%s", elsewhere.text)
               : err;
}

/* --- what a version holds alone ------------------------------------------ */

static int
count_node(void *ctx, pyri_bytes key, size_t size)
{
    pyr_usage *u = ctx;
    u->nodes++;
    u->bytes += key.size + size;
    return 0;
}

static int
count_blob(void *ctx, const pyri_blob *blob)
{
    pyr_usage *u = ctx;
    u->fragments++;
    u->bytes += blob->size;
    return 0;
}

int
pyri_version_usage(pyri_array *a, pyr_version v, pyr_usage *out)
{
    pyri_snapshot snap;
    pyri_alone_out count = {count_node, count_blob, out};
    memset(out, 0, sizeof *out);
    int err = pyri_snapshot_open(a, v, &snap);
    if (err < 0)
        return err;
    pyri_family f = {.engine = a->engine};
    if (snap.label > a->first) /* else it is another array's */
        err = visit_alone(&f, snap.reader, (pyri_vertex){a->id, snap.label},
                          &count, &(pyri_vertex){0, 0});
    pyri_family_fini(&f);
    pyri_snapshot_close(&snap);
    return err;
}
