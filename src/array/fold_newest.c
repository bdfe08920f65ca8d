/*
 * array/fold_newest.c - folding on demand: in the newest snapshots, chunks
 * whose chains are long are stored anew, so that they read as if they had
 * just been written. All of them, or some that are named (tidy.c).
 *
 * A chunk is worth it if no more than a few bytes (`spend`) are written for
 * each that small writes brought: so a large chunk is not copied for the sake
 * of a few cells.
 *
 * No version is made, and no snapshot shows anything else. A leaf is planned
 * from the oldest snapshot that has it, so that all that share it are served.
 * Nothing is noted: who is interrupted begins again, and finds the rest.
 */
#include "array/fold.h"

#include "base/checked.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

enum {
    SPEND = 16,
    LARGE = 64 << 20, /* bytes that are not copied for this */
    MANY = 16384      /* chunks that are noted before they are folded */
};

/* --- which links --------------------------------------------------------- */

/* To read from a link costs a block at least. Returns the largest of those
 * that are not left out. */
static int
weigh(const pyri_array *a, const pyri_chain *c, const bool *out,
      uint64_t *others, pyri_box *bounds)
{
    int largest = -1;
    uint64_t most = 0;
    *others = 0;
    *bounds = (pyri_box){.lo = {0}};
    for (int i = 0; i < c->n; i++) {
        if (out[i])
            continue;
        uint64_t bytes = pyri_box_bytes(a, &c->links[i].shown);
        pyri_box_cover(a->schema.ndim, bounds, &c->links[i].shown);
        bytes = pyri_max64(bytes, PYRI_BLOCK);
        if (largest < 0 || bytes > most) {
            *others += most;
            most = bytes;
            largest = i;
        } else {
            *others += bytes;
        }
    }
    return largest;
}

/* All links, if the box around them is in proportion to what those hold that
 * were written on the largest; else all but that one, and so on. */
static bool
choose(const pyri_array *a, const pyri_chain *c, unsigned spend, bool *out,
       pyri_box *bounds)
{
    memset(out, 0, (size_t)c->n * sizeof *out);
    for (int left = c->n; left > 1; left--) {
        uint64_t others;
        int largest = weigh(a, c, out, &others, bounds);
        uint64_t cost = pyri_box_bytes(a, bounds);
        if (cost <= LARGE && cost / spend <= others)
            return true;
        out[largest] = true;
    }
    return false;
}

/* What is in the box becomes one link, on top. */
static int
replace(const pyri_array *a, const pyri_form *form, pyri_chain *c,
        const pyri_box *bounds)
{
    pyri_frag none = {.version = UINT64_MAX};
    int err = pyri_chain_add(c, form, &none);
    if (err < 0)
        return err;
    memmove(c->links + 1, c->links, (size_t)(c->n - 1) * sizeof *c->links);
    c->links[0] = (pyri_link){.shown = *bounds};
    pyri_chain_prune(c, a->schema.ndim);
    return 0;
}

/* What comes of it is not worth folding again. */
int
pyri_fold_choose(const pyri_array *a, const pyri_form *form, unsigned spend,
                 pyri_chain *c, pyri_box *bounds, bool *any)
{
    pyri_box box;
    int err = 0;
    bool *out = pyri_sys_calloc((size_t)c->n + 1, sizeof *out);
    *any = false;
    if (!out)
        return pyri_fail_nomem("the fragments of a chunk");
    pyri_chain_prune(c, a->schema.ndim);
    while (err == 0 && choose(a, c, spend, out, &box)) {
        err = replace(a, form, c, &box);
        *bounds = box;
        *any = true;
    }
    free(out);
    return err;
}

/* --- which chunks -------------------------------------------------------- */

typedef struct newest {
    pyri_engine *e;
    pyri_folding *f;
    pyr_reclaimed unused;
    pyri_snapshot *s;
    bool counting; /* not folding yet */
} newest;

/* The oldest snapshot on the line that has the leaf; label 0: none. */
static int
find_oldest(newest *x, uint64_t label, pyri_vertex *out)
{
    const pyri_lineage *l = &x->s->array->schema.lineage;
    int err = 0;
    *out = (pyri_vertex){0, 0};
    for (int i = 0; i < l->n && err == 0 && !out->label; i++) {
        uint64_t last = i + 1 < l->n ? l->line[i + 1].first : x->s->label;
        uint64_t from = label > l->line[i].first ? label : l->line[i].first + 1;
        if (from > last)
            continue;
        out->array = l->line[i].array;
        err = pyri_family_version(x->f->family, x->s->reader, out->array, from,
                                  last, &out->label);
    }
    return err;
}

/* One link: nothing is even planned. */
static int
is_short(const newest *x, const uint64_t *pos, const pyri_node *leaf,
         bool *out)
{
    pyri_leaf_walk w;
    pyri_box domain;
    pyri_grid_domain(&x->s->grid, 0, pos, &domain);
    int err = pyri_leaf_begin(leaf, x->s->grid.ndim, &domain, &w);
    *out = err == 0 && !w.prev && w.left < 2;
    return err;
}

static int
see_leaf(void *ctx, const uint64_t *pos, const pyri_node *leaf,
         const pyri_box *region, uint64_t bits)
{
    newest *x = ctx;
    pyri_folding *f = x->f;
    pyri_fold_spot spot = {.gone = {0, 0}};
    bool few;
    (void)region;
    (void)bits;
    if (!leaf)
        return 0; /* a region of one value lies on nothing */
    int err = is_short(x, pos, leaf, &few);
    if (err < 0 || few)
        return err;
    if (x->counting) {
        f->total++;
        return 0;
    }
    err = find_oldest(x, leaf->label, &spot.gone);
    if (err < 0 || !spot.gone.label)
        return err;
    spot.older = spot.gone;
    memcpy(spot.pos, pos, (size_t)x->s->grid.ndim * sizeof *pos);
    if ((err = pyri_fold_note(f, &spot, x->s->grid.ndim)) < 0)
        return err;
    return f->n < MANY ? 0 : pyri_fold_all(f, &x->unused);
}

static int
see_snapshot(newest *x, pyri_array *a)
{
    pyri_snapshot s;
    int err = pyri_snapshot_open(a, PYR_LATEST, &s);
    if (err < 0)
        return err;
    x->s = &s;
    err = pyri_tree_newer(&s.tree, 0, see_leaf, x);
    pyri_snapshot_close(&s);
    return err == PYR_ECORRUPT ? 0 : err; /* verify tells */
}

static int
see_array(newest *x, const char *name)
{
    pyri_array *a;
    int err = pyri_array_open(x->e, name, &a);
    if (err < 0)
        return err;
    if (!x->counting) /* what waits for a dead writer would be left alone */
        err = pyri_resolve(a);
    if (err == 0)
        err = see_snapshot(x, a);
    pyri_array_close(a);
    if (err == 0 && !x->counting)
        err = pyri_fold_all(x->f, &x->unused);
    return err;
}

static int
see_arrays(newest *x, const char *const *names, size_t n)
{
    int err = 0;
    for (size_t i = 0; i < n && err == 0; i++)
        err = see_array(x, names[i]);
    return err;
}

/* --- some chunks --------------------------------------------------------- */

static int
see_wanted(newest *x, const pyri_fold_want *want)
{
    pyri_node leaf;
    bool found;
    int err = pyri_tree_leaf_at(&x->s->tree, want->pos, &leaf, NULL, &found);
    if (err < 0 || !found || want->leaf != leaf.label)
        return err;
    return see_leaf(x, want->pos, &leaf, NULL, 0);
}

/* Those at the head of a list of *n that are of one array; sets *n to how many
 * they are. */
static int
see_group(newest *x, const pyri_fold_want *wants, size_t *n)
{
    pyri_array *a;
    pyri_snapshot s;
    size_t all = *n;
    for (*n = 1; *n < all && wants[*n].array == wants[0].array;)
        ++*n;
    int err = pyri_family_array(x->f->family, wants[0].array, &a);
    if (err < 0 || (err = pyri_snapshot_open(a, PYR_LATEST, &s)) < 0)
        return err;
    x->s = &s;
    for (size_t i = 0; i < *n && err == 0; i++)
        if ((err = see_wanted(x, &wants[i])) == PYR_ECORRUPT)
            err = 0; /* verify tells */
    pyri_snapshot_close(&s);
    return err;
}

int
pyri_fold_wanted(pyri_engine *e, const pyri_fold_want *wants, size_t n,
                 pyri_folding *how)
{
    pyri_family family = {.engine = e};
    newest x = {.e = e, .f = how};
    how->family = &family;
    int err = pyri_engine_try_upkeep(e);
    if (err < 0)
        return err;
    for (size_t i = 0, group; i < n && err == 0; i += group) {
        group = n - i;
        err = see_group(&x, wants + i, &group);
    }
    if (err == 0)
        err = pyri_fold_all(how, &x.unused);
    pyri_engine_end_upkeep(e);
    pyri_folding_fini(how);
    pyri_family_fini(&family);
    return err;
}

/* --- all arrays ---------------------------------------------------------- */

static int
note_name(void *ctx, const char *name)
{
    pyri_buf_add(ctx, name, strlen(name) + 1);
    return 0;
}

/* One that is damaged keeps none of the others from it. */
static int
see_all(newest *x)
{
    pyri_buf names = {0};
    int err = pyri_array_list(x->e, note_name, &names);
    if (err == 0)
        err = pyri_buf_check(&names, "a list of arrays");
    const char *at = (const char *)names.data;
    const char *end = names.size ? at + names.size : at;
    for (; err == 0 && at < end; at += strlen(at) + 1)
        if ((err = see_array(x, at)) == PYR_ECORRUPT || err == PYR_EFORMAT)
            err = 0;
    pyri_buf_fini(&names);
    return err;
}

static int
see(newest *x, const char *const *names, size_t n, bool counting)
{
    x->counting = counting;
    return n ? see_arrays(x, names, n) : see_all(x);
}

int
pyri_fold_newest(pyri_engine *e, const char *const *names, size_t n,
                 const pyr_progress *progress, pyr_folded *out)
{
    pyri_family family = {.engine = e};
    pyri_folding f = {.family = &family, .spend = SPEND, .progress = progress};
    newest x = {.e = e, .f = &f};
    pyri_settled settled;
    memset(out, 0, sizeof *out);
    if (!pyri_engine_can_fold(e))
        return pyri_fail(PYR_EUNSUPPORTED,
                         "stores of this kind cannot be folded; chunks that "
                         "are written whole again read as fast");
    int err = pyri_engine_begin_upkeep(e);
    if (err < 0)
        return err;
    if (progress && progress->each)
        err = see(&x, names, n, true);
    if (err == 0)
        err = see(&x, names, n, false);
    if (err == 0 && f.done.erased)
        err = pyri_engine_settle(e, &settled);
    pyri_engine_end_upkeep(e);
    *out = f.done;
    pyri_folding_fini(&f);
    pyri_family_fini(&family);
    return err;
}
