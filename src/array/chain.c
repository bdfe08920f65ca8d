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

#include <stdlib.h>
#include <string.h>

enum { MAX_HOPS = 4096 };

void
pyri_chain_fini(pyri_chain *c)
{
    free(c->links);
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
    if (c->n == c->room) {
        int room = c->room ? 2 * c->room : 4;
        pyri_link *links = realloc(c->links, (size_t)room * sizeof *links);
        if (!links)
            return pyri_fail_nomem("the fragments of a chunk");
        c->links = links;
        c->room = room;
    }
    pyri_link *link = &c->links[c->n++];
    uint64_t clip[PYR_MAX_DIMS];
    link->frag = *f;
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

/* Add a fragment, unless it has nothing of what is wanted. */
static int
add_wanted(pyri_chain *c, wanted *w, const pyri_frag *f)
{
    if (!w->box)
        return pyri_chain_add(c, w->t->form, f);
    if (!pyri_box_overlaps(w->t->grid->ndim, &f->box, w->box))
        return 0;
    int err = pyri_chain_add(c, w->t->form, f);
    if (err == 0 && !f->masked)
        w->covered = pyri_box_contains(w->t->grid->ndim,
                                       &c->links[c->n - 1].shown, w->box);
    return err;
}

static int
load(pyri_chain *c, wanted *w, const pyri_node *node, uint64_t after, int hops)
{
    pyri_leaf_walk leaf;
    pyri_box domain;
    pyri_frag frag;
    bool hopped = false;
    pyri_grid_domain(w->t->grid, 0, w->pos, &domain);
    int err = pyri_leaf_begin(node, w->t->grid->ndim, &domain, &leaf);
    while (err == 0 && !w->covered) {
        bool more = leaf.left > 0;
        if (more && (err = pyri_leaf_next(&leaf, &frag)) < 0)
            break;
        uint64_t version = more ? frag.version : 0;
        if (!hopped && version <= leaf.prev && leaf.prev > after) {
            pyri_node prev;
            hopped = true;
            err = hops == MAX_HOPS
                      ? pyri_fail(PYR_ECORRUPT, "leaves of the tree form a loop")
                      : pyri_tree_get(w->t, leaf.prev, 0, w->pos, &prev);
            if (err == 0)
                err = load(c, w, &prev, pyri_max64(after, version), hops + 1);
        }
        if (!more || version <= after || err < 0 || w->covered)
            break;
        err = add_wanted(c, w, &frag);
    }
    return err;
}

int
pyri_chain_load(pyri_chain *c, const pyri_tree *t, const uint64_t *pos,
                const pyri_node *leaf, const pyri_box *box, uint64_t after)
{
    wanted w = {t, pos, box, false};
    return load(c, &w, leaf, after, 0);
}

void
pyri_chain_prune(pyri_chain *c, int ndim)
{
    int kept = 0;
    for (int i = 0; i < c->n; i++) {
        bool hidden = pyri_box_empty(ndim, &c->links[i].shown);
        for (int k = 0; k < kept && !hidden; k++)
            hidden = !c->links[k].frag.masked &&
                     pyri_box_contains(ndim, &c->links[k].shown,
                                       &c->links[i].shown);
        if (!hidden && kept++ != i)
            c->links[kept - 1] = c->links[i];
    }
    c->n = kept;
}
