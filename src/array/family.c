/*
 * array/family.c - an array and its clones as one tree of versions.
 *
 *     ocean   1 --- 2 --- 3 --- 4 --- 5
 *                          \\
 *     clone                 4'--- 5'--- 6'
 *
 * A node or blob is seen by snapshots that hang together in this tree: from
 * the one that made it onwards, along each branch up to the one that replaces
 * it. So if it is seen by two snapshots it is seen by all between them; and
 * whether anyone but snapshot x needs something of x is told by its neighbours,
 * the nearest snapshots that are still there in every direction. If 3 has
 * gone, those of 4 are 2, 5 and 4'.
 */
#include "array/family.h"
#include "array/keys.h"

#include "base/bytes.h"
#include "base/room.h"
#include "base/sys.h"

#include <string.h>

void
pyri_neighbours_fini(pyri_neighbours *n)
{
    free(n->others);
    *n = (pyri_neighbours){{0, 0}, NULL, 0, 0};
}

void
pyri_family_fini(pyri_family *f)
{
    for (size_t i = 0; i < f->n; i++)
        pyri_array_close(f->arrays[i]);
    free(f->arrays);
    f->arrays = NULL;
    f->n = f->room = 0;
}

int
pyri_family_array(pyri_family *f, uint64_t id, pyri_array **out)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->arrays[i]->id == id) {
            *out = f->arrays[i];
            return 0;
        }
    if (!pyri_room(&f->arrays, &f->room, f->n + 1, sizeof *f->arrays))
        return pyri_fail_nomem("a list of arrays");
    int err = pyri_array_open_id(f->engine, id, &f->arrays[f->n]);
    if (err == 0)
        *out = f->arrays[f->n++];
    return err;
}

/* --- clones -------------------------------------------------------------- */

typedef struct clone_scan {
    uint64_t low, high;
    pyri_clone_fn *each;
    void *ctx;
} clone_scan;

static int
scan_clone(void *ctx, pyri_bytes key, pyri_bytes value)
{
    const clone_scan *s = ctx;
    if (key.size < 8 || value.size != 8)
        return pyri_fail(PYR_ECORRUPT, "the record of a clone is damaged");
    uint64_t label = pyri_load64(value.data);
    const uint8_t *end = (const uint8_t *)key.data + key.size;
    return label < s->low || label > s->high
               ? 0
               : s->each(s->ctx, pyri_load64_be(end - 8), label);
}

int
pyri_family_clones(pyri_family *f, pyri_reader *r, uint64_t id, uint64_t low,
                   uint64_t high, pyri_clone_fn *each, void *ctx)
{
    clone_scan s = {low, high, each, ctx};
    pyri_key k = pyri_key_id("child/", id);
    if (low > high)
        return 0;
    return pyri_engine_scan_records(f->engine, r, pyri_key_bytes(&k),
                                    scan_clone, &s);
}

/* --- which versions are there -------------------------------------------- */

static int
note_first(void *ctx, uint64_t label, const pyri_version_get *v)
{
    (void)v;
    *(uint64_t *)ctx = label;
    return 1; /* one is enough */
}

int
pyri_family_version(pyri_family *f, pyri_reader *r, uint64_t id, uint64_t from,
                    uint64_t to, uint64_t *out)
{
    *out = 0;
    int err = pyri_engine_scan_versions(f->engine, r, id, from, to, note_first,
                                        out);
    return err < 0 ? err : 0;
}

static int
find_older(pyri_family *f, pyri_reader *r, const pyri_array *a, uint64_t label,
           uint64_t *out)
{
    *out = 0;
    if (label <= a->first + 1)
        return 0;
    int err = pyri_family_version(f, r, a->id, label - 1, a->first + 1, out);
    if (err == 0 && *out && a->id == f->erased_of && *out == f->erased_last)
        *out = f->erased_before > a->first ? f->erased_before : 0;
    return err;
}

static int
is_there(pyri_family *f, pyri_reader *r, pyri_vertex v, bool *there)
{
    pyri_version_get get;
    int err = pyri_engine_get_version(f->engine, r, v.array, v.label, &get);
    *there = err == 0 && get.found;
    return err;
}

/* --- neighbours ---------------------------------------------------------- */

typedef struct looking {
    pyri_family *f;
    pyri_reader *r;
    pyri_neighbours *out;
    uint64_t from; /* the clone that we come from */
} looking;

static int
add_other(looking *l, uint64_t array, uint64_t label)
{
    pyri_neighbours *n = l->out;
    if (!pyri_room(&n->others, &n->room, n->n + 1, sizeof *n->others))
        return pyri_fail_nomem("a list of snapshots");
    n->others[n->n++] = (pyri_vertex){array, label};
    return 0;
}

/* Down into a clone: its first version that is there, and the clones that
 * branch off before that. */
static int
enter_clone(void *ctx, uint64_t clone, uint64_t label)
{
    looking *l = ctx;
    uint64_t first;
    if (clone == l->from)
        return 0;
    int err = pyri_family_version(l->f, l->r, clone, label + 1, UINT64_MAX,
                                  &first);
    if (err == 0 && first)
        err = add_other(l, clone, first);
    return err < 0 ? err
                   : pyri_family_clones(l->f, l->r, clone, label + 1,
                                        first ? first - 1 : UINT64_MAX,
                                        enter_clone, l);
}

static int
look_around(looking *l, pyri_vertex v)
{
    pyri_array *a;
    uint64_t older, newer;
    bool there;
    int err = pyri_family_array(l->f, v.array, &a);
    if (err < 0 || (err = find_older(l->f, l->r, a, v.label, &older)) < 0 ||
        (err = pyri_family_version(l->f, l->r, v.array, v.label + 1,
                                   UINT64_MAX, &newer)) < 0)
        return err;
    if (newer && (err = add_other(l, v.array, newer)) < 0)
        return err;
    err = pyri_family_clones(l->f, l->r, v.array,
                             older ? older + 1 : a->first + 1,
                             newer ? newer - 1 : UINT64_MAX, enter_clone, l);
    if (err < 0)
        return err;
    if (older) {
        l->out->older = (pyri_vertex){v.array, older};
        return 0;
    }
    if (a->schema.lineage.n < 2)
        return 0; /* before all there is fill */
    pyri_vertex origin = {pyri_lineage_owner(&a->schema.lineage, a->first),
                          a->first};
    if (a->first == a->schema.lineage.line[0].first)
        return 0; /* likewise: a clone of version 0 */
    if ((err = is_there(l->f, l->r, origin, &there)) < 0)
        return err;
    if (there) {
        l->out->older = origin;
        return 0;
    }
    l->from = a->id;
    return look_around(l, origin);
}

int
pyri_family_around(pyri_family *f, pyri_reader *r, pyri_vertex v,
                   pyri_neighbours *out)
{
    looking l = {f, r, out, 0};
    out->older = (pyri_vertex){0, 0};
    out->n = 0;
    return look_around(&l, v);
}
