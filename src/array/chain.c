/*
 * array/chain.c - the fragments of a chunk in one list.
 *
 * A leaf made while an older version was in flight has that version as `prev`:
 * the older leaf's fragments come after those newer than it. What stands in
 * the list below `prev` is the chunk as of some version before it, written
 * down when the chain was folded; of `prev` and those below, only fragments
 * newer than that are still needed.
 */
#include "array/chain.h"

#include "base/checked.h"
#include "base/room.h"
#include "base/scratch.h"
#include "base/sys.h"

#include <stdlib.h>

enum { SIDE_BY_SIDE = 128, FIRST = 64 /* links: seldom more */ };

/* Of links, along the first axis. */
typedef struct ends {
    uint64_t lo[SIDE_BY_SIDE], hi[SIDE_BY_SIDE];
} ends;

void
pyri_chain_fini(pyri_chain *c)
{
    pyri_scratch_give(c->links);
    *c = (pyri_chain){0};
}

void
pyri_chain_reset(pyri_chain *c)
{
    c->n = 0;
}

int
pyri_chain_add(pyri_chain *c, const pyri_form *form, const pyri_frag *f)
{
    size_t n = (size_t)c->n;
    if (!pyri_scratch_room(&c->links, &c->room, n, n < FIRST ? FIRST : n + 1,
                           sizeof *c->links))
        return pyri_fail_nomem("the fragments of a chunk");
    pyri_link *link = &c->links[c->n++];
    uint64_t clip[PYR_MAX_DIMS];
    pyri_frag_copy(form->ndim, &link->frag, f);
    pyri_form_clip(form, f->version, clip);
    for (int d = 0; d < form->ndim; d++) {
        link->shown.lo[d] = f->box.lo[d];
        link->shown.hi[d] = pyri_min64(f->box.hi[d], clip[d]);
    }
    return 0;
}

/* What is wanted of a chunk. */
typedef struct wanted {
    const pyri_tree *t;
    const uint64_t *pos;
    const pyri_box *box; /* NULL: all of it */
    bool covered;        /* what was added hides all that is below */
} wanted;

/* Add the fragment that the walk is at, unless it has nothing of what is
 * wanted. */
static int
add_wanted(pyri_chain *c, wanted *w, pyri_leaf_walk *leaf, pyri_frag *f)
{
    int ndim = w->t->grid->ndim;
    if (w->box && !pyri_box_overlaps(ndim, &f->box, w->box))
        return pyri_leaf_skip(leaf, f);
    int err = pyri_leaf_take(leaf, f);
    if (err == 0)
        err = pyri_chain_add(c, w->t->form, f);
    if (err == 0 && w->box && !f->masked)
        w->covered = pyri_box_contains(ndim, &c->links[c->n - 1].shown, w->box);
    return err;
}

/* What is left of a leaf when its `prev` is looked at first. */
typedef struct rest {
    pyri_leaf_walk leaf;
    pyri_frag next; /* where the walk is: not yet taken */
    uint64_t after;
} rest;

typedef struct loading {
    wanted *w;
    rest *rests; /* the last is taken up first */
    size_t n, room;
} loading;

static int
put_aside(loading *l, const pyri_leaf_walk *leaf, const pyri_frag *next,
          uint64_t after)
{
    if (!pyri_room(&l->rests, &l->room, l->n + 1, sizeof *l->rests))
        return pyri_fail_nomem("the fragments of a chunk");
    l->rests[l->n++] = (rest){*leaf, *next, after};
    return 0;
}

/* Add what the leaf has above its `prev`, put the rest aside. *after becomes
 * the label above which fragments of `prev` are wanted. */
static int
load_top(pyri_chain *c, loading *l, const pyri_node *node, uint64_t *after,
         uint64_t *prev)
{
    wanted *w = l->w;
    pyri_leaf_walk leaf;
    pyri_frag_window window;
    pyri_box domain;
    pyri_frag frag;
    pyri_grid_domain(w->t->grid, 0, w->pos, &domain);
    int err = pyri_leaf_begin(node, w->t->grid->ndim, &domain, &leaf);
    window.usable = false;
    if (err == 0 && w->box && leaf.left > 1)
        pyri_frag_look_for(leaf.ndim, &domain, w->box, &window);
    *prev = err == 0 && leaf.prev > *after ? leaf.prev : 0;
    if (err == 0 && leaf.prev >= node->label)
        return pyri_fail(PYR_ECORRUPT, "a leaf lies on a newer one");
    while (err == 0 && leaf.left && !w->covered) {
        pyri_leaf_skip_apart(&leaf, &window, pyri_max64(*after, *prev));
        if (!leaf.left)
            break;
        if ((err = pyri_leaf_peek(&leaf, &frag)) < 0)
            return err;
        if (frag.version <= *after)
            return 0;
        if (frag.version <= *prev) {
            err = put_aside(l, &leaf, &frag, *after);
            *after = frag.version;
            return err;
        }
        err = add_wanted(c, w, &leaf, &frag);
    }
    return err;
}

static int
load_rest(pyri_chain *c, wanted *w, rest *r)
{
    int err = add_wanted(c, w, &r->leaf, &r->next);
    while (err == 0 && r->leaf.left && !w->covered) {
        err = pyri_leaf_peek(&r->leaf, &r->next);
        if (err < 0 || r->next.version <= r->after)
            return err;
        err = add_wanted(c, w, &r->leaf, &r->next);
    }
    return err;
}

int
pyri_chain_load(pyri_chain *c, const pyri_tree *t, const uint64_t *pos,
                const pyri_node *leaf, const pyri_box *box, uint64_t after)
{
    wanted w = {t, pos, box, false};
    loading l = {.w = &w};
    pyri_node node = *leaf;
    uint64_t prev;
    int err = load_top(c, &l, &node, &after, &prev);
    while (err == 0 && prev && !w.covered) {
        err = pyri_tree_get(t, prev, 0, pos, &node);
        if (err == 0)
            err = load_top(c, &l, &node, &after, &prev);
    }
    while (err == 0 && l.n && !w.covered)
        err = load_rest(c, &w, &l.rests[--l.n]);
    free(l.rests);
    return err;
}

/* Does one of the first n links hide the whole box? Every two links are
 * compared, so most are told apart by the ends of their first axis, which stand
 * side by side. */
static bool
is_hidden(const pyri_chain *c, int ndim, int n, const ends *e,
          const pyri_box *box)
{
    for (int k = 0; k < n; k++) {
        if (k < SIDE_BY_SIDE &&
            (e->lo[k] > box->lo[0] || e->hi[k] < box->hi[0]))
            continue;
        if (!c->links[k].frag.masked &&
            pyri_box_contains(ndim, &c->links[k].shown, box))
            return true;
    }
    return false;
}

void
pyri_chain_prune(pyri_chain *c, int ndim)
{
    ends e;
    int kept = 0;
    for (int i = 0; i < c->n; i++) {
        const pyri_box *shown = &c->links[i].shown;
        if (pyri_box_empty(ndim, shown) || is_hidden(c, ndim, kept, &e, shown))
            continue;
        if (kept < SIDE_BY_SIDE) {
            e.lo[kept] = shown->lo[0];
            e.hi[kept] = shown->hi[0];
        }
        if (kept++ != i)
            c->links[kept - 1] = c->links[i];
    }
    c->n = kept;
}
