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

static int
load(pyri_chain *c, const pyri_tree *t, const uint64_t *pos,
     const pyri_node *node, uint64_t after, pyri_about *about, int hops)
{
    pyri_leaf leaf;
    pyri_box domain;
    int i = 0;
    pyri_grid_domain(t->grid, 0, pos, &domain);
    int err = pyri_leaf_decode(node, t->grid->ndim, t->type, &domain, &leaf);
    if (err < 0)
        return err;
    if (about)
        *about = leaf.about;
    for (; err == 0 && i < leaf.n && leaf.frags[i].version > leaf.prev; i++)
        if (leaf.frags[i].version > after)
            err = pyri_chain_add(c, t->form, &leaf.frags[i]);
    if (err == 0 && leaf.prev > after) {
        uint64_t rest = i < leaf.n ? leaf.frags[i].version : 0;
        pyri_node prev;
        err = hops == MAX_HOPS
                  ? pyri_fail(PYR_ECORRUPT, "leaves of the tree form a loop")
                  : pyri_tree_get(t, leaf.prev, 0, pos, &prev);
        if (err == 0)
            err = load(c, t, pos, &prev, pyri_max64(after, rest), NULL,
                       hops + 1);
    }
    for (; err == 0 && i < leaf.n; i++)
        if (leaf.frags[i].version > after)
            err = pyri_chain_add(c, t->form, &leaf.frags[i]);
    pyri_leaf_fini(&leaf);
    return err;
}

int
pyri_chain_load(pyri_chain *c, const pyri_tree *t, const uint64_t *pos,
                const pyri_node *leaf, uint64_t after, pyri_about *about)
{
    return load(c, t, pos, leaf, after, about, 0);
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
