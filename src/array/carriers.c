/*
 * array/carriers.c - the leaves of a chunk that hold what a snapshot was the
 * first to see.
 *
 * Along a line of versions a fragment is in the leaves of a chunk from some
 * version on, up to some other. So the last version that holds one is found by
 * halving, and from there leaves are gone through backwards: from the one that
 * a snapshot has to the snapshot before that leaf was made.
 */
#include "array/fold.h"

#include "base/room.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PREV = 4096 };

/* --- what a leaf holds --------------------------------------------------- */

void
pyri_held_fini(pyri_held *h)
{
    free(h->frags);
    free(h->leaves);
    *h = (pyri_held){0};
}

static int
hold_leaf(pyri_held *h, const pyri_tree *t, const uint64_t *pos,
          const pyri_node *leaf, uint64_t *prev)
{
    pyri_leaf_walk w;
    pyri_box domain;
    pyri_grid_domain(t->grid, 0, pos, &domain);
    int err = pyri_leaf_begin(leaf, t->grid->ndim, &domain, &w);
    if (err < 0)
        return err;
    *prev = w.prev;
    if (!pyri_room(&h->leaves, &h->leaf_room, h->nleaves + 1,
                   sizeof *h->leaves) ||
        !pyri_room(&h->frags, &h->room, h->n + (size_t)w.left + 1,
                   sizeof *h->frags))
        return pyri_fail_nomem("the fragments of a chunk");
    h->leaves[h->nleaves++] = (pyri_leaf_name){
        .owner = pyri_lineage_owner(t->lineage, leaf->label),
        .label = leaf->label};
    while (err == 0 && w.left)
        if ((err = pyri_leaf_next(&w, &h->frags[h->n])) == 0)
            h->n++;
    h->leaves[h->nleaves - 1].end = h->n;
    return err;
}

int
pyri_held_add(pyri_held *h, const pyri_tree *t, const uint64_t *pos,
              const pyri_node *leaf)
{
    uint64_t prev = 0;
    int err = hold_leaf(h, t, pos, leaf, &prev);
    for (int i = 0; err == 0 && prev && i < MAX_PREV; i++) {
        pyri_node node;
        err = pyri_tree_get(t, prev, 0, pos, &node);
        if (err == PYR_ECORRUPT)
            return 0; /* not needed, and gone */
        if (err == 0)
            err = hold_leaf(h, t, pos, &node, &prev);
    }
    return err;
}

int
pyri_held_note(pyri_held *h, const pyri_frag *list, size_t n)
{
    if (!pyri_room(&h->frags, &h->room, h->n + n + 1, sizeof *h->frags))
        return pyri_fail_nomem("the fragments of a chunk");
    if (n)
        memcpy(h->frags + h->n, list, n * sizeof *list);
    h->n += n;
    return 0;
}

bool
pyri_same_frag(int ndim, const pyri_frag *a, const pyri_frag *b)
{
    if (a->kind != b->kind || a->version != b->version)
        return false;
    if (a->kind != PYRI_FRAG_SAME)
        return a->ref[0] == b->ref[0] && a->ref[1] == b->ref[1];
    return a->bits == b->bits && pyri_box_equal(ndim, &a->box, &b->box);
}

bool
pyri_held_has(const pyri_held *h, int ndim, const pyri_frag *f)
{
    for (size_t i = 0; i < h->n; i++)
        if (pyri_same_frag(ndim, &h->frags[i], f))
            return true;
    return false;
}

bool
pyri_held_leaf(const pyri_held *h, pyri_leaf_name name)
{
    for (size_t i = 0; i < h->nleaves; i++)
        if (h->leaves[i].owner == name.owner &&
            h->leaves[i].label == name.label)
            return true;
    return false;
}

/* --- looking ------------------------------------------------------------- */

void
pyri_carriers_fini(pyri_carriers *c)
{
    free(c->list);
    free(c->arrays);
    c->list = NULL;
    c->arrays = NULL;
    c->n = c->narrays = c->room = c->array_room = 0;
}

static bool
holds_any(const pyri_held *h, const pyri_held *sought, int ndim)
{
    for (size_t i = 0; i < h->n; i++)
        if (pyri_held_has(sought, ndim, &h->frags[i]))
            return true;
    return false;
}

/* The leaf that a version of an array has; its label is 0 if it has none. */
static int
look(pyri_carriers *c, pyri_array *a, uint64_t version, pyri_carrier *out)
{
    pyri_snapshot s;
    pyri_node node;
    pyri_held held = {0};
    bool found = false;
    *out = (pyri_carrier){.snapshot = {a->id, version}};
    if (c->looked++ >= c->limit) {
        c->dear = true;
        return 1;
    }
    int err = pyri_snapshot_open_label(a, c->reader, version, &s);
    if (err < 0)
        return err;
    err = pyri_tree_leaf_at(&s.tree, c->pos, &node, NULL, &found);
    if (err == 0 && found)
        err = pyri_held_add(&held, &s.tree, c->pos, &node);
    if (err == 0 && found) {
        out->name = held.leaves[0];
        out->holds = holds_any(&held, c->sought, a->schema.ndim);
    }
    pyri_held_fini(&held);
    pyri_snapshot_close(&s);
    return err;
}

/* The last version of the line that holds some of it: not before `low`. */
static int
find_last(pyri_carriers *c, pyri_array *a, uint64_t low, uint64_t latest,
          uint64_t *out)
{
    pyri_carrier at;
    int err = look(c, a, latest, &at);
    *out = latest;
    if (err != 0 || at.holds)
        return err;
    uint64_t high = latest, version;
    while (err == 0 && high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        err = pyri_family_version(c->family, c->reader, a->id, middle, low + 1,
                                  &version);
        if (err == 0 && !version && middle + 1 < high)
            err = pyri_family_version(c->family, c->reader, a->id, middle + 1,
                                      high - 1, &version);
        if (err < 0 || !version)
            break;
        if ((err = look(c, a, version, &at)) == 0 && at.holds)
            low = version;
        else
            high = version;
    }
    *out = low;
    return err;
}

static int
add_carrier(pyri_carriers *c, const pyri_carrier *at)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->list[i].name.owner == at->name.owner &&
            c->list[i].name.label == at->name.label)
            return 0;
    if (!pyri_room(&c->list, &c->room, c->n + 1, sizeof *c->list))
        return pyri_fail_nomem("the leaves of a chunk");
    c->list[c->n++] = *at;
    return 0;
}

/* Those of the versions `first` to `last` of a line. */
static int
add_line(pyri_carriers *c, pyri_array *a, uint64_t first, uint64_t last)
{
    int err = 0;
    for (uint64_t version = last; err == 0 && version >= first && version;) {
        pyri_carrier at;
        if ((err = look(c, a, version, &at)) != 0)
            break;
        if (at.name.label)
            err = add_carrier(c, &at);
        uint64_t from = at.name.label ? at.name.label : version;
        if (from <= first)
            break;
        if (err == 0)
            err = pyri_family_version(c->family, c->reader, a->id, from - 1,
                                      first, &version);
    }
    return err;
}

static int enter_clone(void *ctx, uint64_t clone, uint64_t label);

/* `low` is before `first`, or is the first and known to hold some. */
static int
go_along(pyri_carriers *c, uint64_t id, uint64_t first, uint64_t low)
{
    pyri_array *a;
    uint64_t latest, last;
    int err = pyri_family_array(c->family, id, &a);
    if (err < 0)
        return err;
    if (!pyri_room(&c->arrays, &c->array_room, c->narrays + 1,
                   sizeof *c->arrays))
        return pyri_fail_nomem("a list of arrays");
    c->arrays[c->narrays++] = id;
    err = pyri_engine_latest(a->engine, c->reader, id, &latest, NULL);
    if (err == 0 && latest >= first) {
        err = find_last(c, a, low, latest, &last);
        if (err == 0 && last >= first)
            err = add_line(c, a, first, last);
    }
    return err != 0 ? err
                    : pyri_family_clones(c->family, c->reader, id, first,
                                         UINT64_MAX, enter_clone, c);
}

static int
enter_clone(void *ctx, uint64_t clone, uint64_t label)
{
    return go_along(ctx, clone, label + 1, label);
}

int
pyri_carriers_find(pyri_carriers *c)
{
    c->looked = 0;
    c->dear = false;
    int err = go_along(c, c->from.array, c->from.label, c->from.label);
    return err > 0 ? 0 : err;
}
