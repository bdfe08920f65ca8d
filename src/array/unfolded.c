/*
 * array/unfolded.c - arrays of which versions were erased, and what is left
 * was not folded yet: record unfolded/ID.
 */
#include "array/fold.h"
#include "array/keys.h"

#include "base/bytes.h"
#include "base/room.h"

#include <stdlib.h>
#include <string.h>

enum { MANY = 16384 }; /* chunks that are noted before they are folded */

void
pyri_unfolded_fini(pyri_unfolded *u)
{
    free(u->list);
    *u = (pyri_unfolded){0};
}

static int
add(pyri_unfolded *u, uint64_t array, bool found)
{
    if (!pyri_room(&u->list, &u->room, u->n + 1, sizeof *u->list))
        return pyri_fail_nomem("a list of arrays");
    u->list[u->n].array = array;
    u->list[u->n++].found = found;
    return 0;
}

static int
see_record(void *ctx, pyri_bytes key, pyri_bytes value)
{
    const uint8_t *end = (const uint8_t *)key.data + key.size;
    (void)value;
    return key.size < 8 ? 0 : add(ctx, pyri_load64_be(end - 8), true);
}

int
pyri_unfolded_find(pyri_unfolded *u, pyri_engine *e)
{
    pyri_reader *r;
    int err = pyri_engine_begin(e, &r);
    if (err < 0)
        return err;
    err = pyri_engine_scan_records(e, r, (pyri_bytes){"unfolded/", 9},
                                   see_record, u);
    pyri_engine_end(e, r);
    return err;
}

static int
edit(pyri_engine *e, pyri_edit_kind kind, uint64_t array)
{
    pyri_key k = pyri_key_id("unfolded/", array);
    pyri_edit one = {.kind = kind, .key = pyri_key_bytes(&k)};
    if (kind == PYRI_EDIT_PUT)
        one.value = (pyri_bytes){"1", 1};
    return pyri_engine_edit(e, &one, 1);
}

int
pyri_unfolded_begin(pyri_unfolded *u, pyri_engine *e, uint64_t array)
{
    for (size_t i = 0; i < u->n; i++)
        if (u->list[i].array == array)
            return 0;
    int err = edit(e, PYRI_EDIT_PUT, array);
    return err < 0 ? err : add(u, array, false);
}

/* --- all chunks of an array ---------------------------------------------- */

typedef struct walk {
    pyri_folding *f;
    pyr_reclaimed *out;
    pyri_vertex at;
    int ndim;
} walk;

static int
see_leaf(void *ctx, const uint64_t *pos, const pyri_node *leaf,
         const pyri_box *region, uint64_t bits)
{
    walk *w = ctx;
    pyri_fold_spot spot = {.gone = w->at, .older = w->at};
    (void)region;
    (void)bits;
    if (!leaf)
        return 0; /* a region of one value lies on nothing */
    memcpy(spot.pos, pos, (size_t)w->ndim * sizeof *pos);
    int err = pyri_fold_note(w->f, &spot, w->ndim);
    return err < 0 || w->f->n < MANY ? err : pyri_fold_all(w->f, w->out);
}

/* Leaves of a version that the one before it has not. */
static int
see_version(walk *w, pyri_reader *r, pyri_array *a, uint64_t label,
            uint64_t older)
{
    pyri_snapshot s;
    w->at = (pyri_vertex){a->id, label};
    int err = pyri_snapshot_open_label(a, r, label, &s);
    if (err == 0) {
        err = pyri_tree_newer(&s.tree, older, see_leaf, w);
        pyri_snapshot_close(&s);
    }
    return err == PYR_ECORRUPT ? 0 : err; /* verify tells */
}

static int
see_array(walk *w, pyri_reader *r, uint64_t id)
{
    pyri_array *a;
    uint64_t older, label;
    int err = pyri_family_array(w->f->family, id, &a);
    if (err < 0)
        return err;
    w->ndim = a->schema.ndim;
    older = a->schema.lineage.n > 1 ? a->first : 0;
    for (label = a->first; err == 0; older = label) {
        uint64_t next;
        err = pyri_family_version(w->f->family, r, id, label + 1, UINT64_MAX,
                                  &next);
        if (err < 0 || next == 0)
            break;
        label = next;
        err = see_version(w, r, a, label, older);
    }
    return err;
}

static int
fold_found(pyri_unfolded *u, pyri_folding *f, pyr_reclaimed *out)
{
    walk w = {.f = f, .out = out};
    pyri_engine *e = f->family->engine;
    pyri_reader *r;
    int err = pyri_engine_begin(e, &r);
    if (err < 0)
        return err;
    for (size_t i = 0; i < u->n && err == 0; i++)
        if (u->list[i].found)
            err = see_array(&w, r, u->list[i].array);
    pyri_engine_end(e, r);
    return err < 0 ? err : pyri_fold_all(f, out);
}

int
pyri_unfolded_end(pyri_unfolded *u, pyri_folding *f, pyr_reclaimed *out)
{
    int err = pyri_fold_all(f, out);
    if (err == 0)
        err = fold_found(u, f, out);
    for (size_t i = 0; i < u->n && err == 0 && !f->left; i++)
        err = edit(f->family->engine, PYRI_EDIT_DELETE, u->list[i].array);
    return err;
}
