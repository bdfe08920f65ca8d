/*
 * array/fold_leaves.c - one chunk: the leaves to write when some of its
 * fragments are folded, and what goes with the old ones.
 */
#include "array/fold_plan.h"

#include "base/room.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

/* --- what a leaf becomes ------------------------------------------------- */

/* The group that a fragment goes into; NULL: none. */
static pyri_fold_group *
group_of(const pyri_planning *x, const pyri_frag *f, int *link)
{
    for (*link = 0; *link < x->chain.n; (*link)++)
        if (pyri_same_frag(x->a->schema.ndim, &x->chain.links[*link].frag, f))
            break;
    for (size_t i = 0; *link < x->chain.n && i < x->ngroups; i++)
        if (x->groups[i].of[*link])
            return &x->groups[i];
    return NULL;
}

/* Add the folds that stand for a fragment of this leaf, on top of all that K
 * has, too, and of folds as of older snapshots. */
static void
add_folds(const pyri_planning *x, const pyri_chain *old, pyri_leaf *leaf)
{
    for (size_t i = 0; i < x->ngroups; i++) {
        const pyri_fold_group *g = &x->groups[i];
        bool any = false;
        int link;
        for (int k = 0; k < old->n && !any; k++)
            any = group_of(x, &old->links[k].frag, &link) == g;
        if (any && g->n > 1 && g->cells)
            leaf->frags[leaf->n++] = g->frag;
    }
}

/* What the leaf becomes; *changed is false if it stays as it is. */
static int
rewrite(const pyri_planning *x, const pyri_chain *old, pyri_leaf *leaf,
        bool *changed)
{
    bool folded = false;
    *changed = false;
    size_t room = (size_t)old->n + x->ngroups + 1;
    leaf->frags = pyri_sys_malloc(room * sizeof *leaf->frags);
    if (!leaf->frags)
        return pyri_fail_nomem("the fragments of a chunk");
    for (int i = 0; i < old->n; i++) {
        const pyri_frag *f = &old->links[i].frag;
        int link;
        const pyri_fold_group *g = group_of(x, f, &link);
        if (!folded && (link < x->chain.n || f->version < x->leaf.label)) {
            add_folds(x, old, leaf);
            folded = true;
        }
        *changed |= g != NULL;
        if (!g)
            leaf->frags[leaf->n++] = *f;
        else if (g->n == 1 && g->cells)
            leaf->frags[leaf->n++] = g->frag;
    }
    return 0;
}

/* The carriers' leaves are gone through; what they will hold is noted. */
typedef struct writing {
    pyri_planning *x;
    pyri_held were, are; /* fragments and leaves that are named */
} writing;

static int
add_node(pyri_planning *x, pyri_leaf_name name, const pyri_leaf *leaf)
{
    pyri_fold_plan *p = x->p;
    const pyri_grid *g = &x->t->snap.grid;
    uint8_t key[PYRI_MAX_KEY];
    pyri_box domain;
    pyri_grid_domain(g, 0, x->pos, &domain);
    size_t n = pyri_node_key(name.owner, name.label, 0, g->ndim, x->pos, key);
    pyri_buf_add(&p->bytes, key, n);
    size_t start = p->bytes.size;
    pyri_leaf_encode((pyri_bytes){key, n}, leaf, x->a->schema.type, g->ndim,
                     &domain, &p->bytes);
    p->nodes[p->nnodes].key.size = n;
    p->nodes[p->nnodes++].value.size = p->bytes.size - start;
    return pyri_buf_check(&p->bytes, "the leaves of a chunk");
}

static int
note_leaf(pyri_held *h, pyri_leaf_name name)
{
    if (!pyri_room(&h->leaves, &h->leaf_room, h->nleaves + 1,
                   sizeof *h->leaves))
        return pyri_fail_nomem("the leaves of a chunk");
    h->leaves[h->nleaves++] = name;
    return 0;
}

void
pyri_carrier_close(pyri_opened *o)
{
    pyri_held_fini(&o->held);
    pyri_snapshot_close(&o->s);
}

int
pyri_carrier_open(const pyri_planning *x, const pyri_carrier *c,
                  pyri_opened *o)
{
    pyri_array *a;
    o->held = (pyri_held){0};
    int err = pyri_family_array(x->family, c->snapshot.array, &a);
    if (err < 0 || (err = pyri_snapshot_open_label(a, x->t->snap.reader,
                                                   c->snapshot.label,
                                                   &o->s)) < 0)
        return err;
    err = pyri_tree_get(&o->s.tree, c->name.label, 0, x->pos, &o->node);
    if (err == 0)
        err = pyri_held_add(&o->held, &o->s.tree, x->pos, &o->node);
    if (err < 0)
        pyri_carrier_close(o);
    return err;
}

static int
write_carrier(writing *w, pyri_carrier *c)
{
    pyri_planning *x = w->x;
    pyri_opened o;
    pyri_chain chain = {0};
    pyri_leaf leaf = {.prev = 0};
    pyri_box domain;
    int err = pyri_carrier_open(x, c, &o);
    if (err < 0)
        return err;
    pyri_grid_domain(&x->t->snap.grid, 0, x->pos, &domain);
    err = pyri_chain_load(&chain, &o.s.tree, x->pos, &o.node, NULL, 0);
    if (err == 0)
        err = rewrite(x, &chain, &leaf, &c->changed);
    /* On demand no leaf may go on naming what K names no more, and be it on the
     * leaf that it lies on: older ones have it, and it may go with them. */
    c->changed |= x->spend && c->holds;
    if (err == 0)
        err = pyri_held_note(&w->were, o.held.frags, o.held.n);
    if (err == 0 && c->changed &&
        (err = pyri_node_about(&o.node, x->a->schema.type, &leaf.about)) == 0 &&
        (err = pyri_leaf_regions(&o.node, x->a->schema.type,
                                 x->t->snap.grid.ndim, &domain,
                                 &leaf.regions)) == 0 &&
        (err = add_node(x, c->name, &leaf)) == 0 &&
        (err = note_leaf(&w->are, c->name)) == 0) {
        x->p->saved += (int64_t)o.node.size -
                       (int64_t)x->p->nodes[x->p->nnodes - 1].value.size;
        err = pyri_held_note(&w->are, leaf.frags, (size_t)leaf.n);
    }
    for (size_t i = 1; i < o.held.nleaves && err == 0 && c->changed; i++)
        err = note_leaf(&w->were, o.held.leaves[i]);
    pyri_leaf_fini(&leaf);
    pyri_chain_fini(&chain);
    pyri_carrier_close(&o);
    return err;
}

static bool
is_changed(const pyri_fold_plan *p, pyri_leaf_name name)
{
    for (size_t i = 0; i < p->ncarriers; i++)
        if (p->carriers[i].name.owner == name.owner &&
            p->carriers[i].name.label == name.label)
            return p->carriers[i].changed;
    return false;
}

/* One that stays as it is goes on needing the leaves that it lies on, as they
 * will be. */
static int
note_unchanged(writing *w, const pyri_carrier *c)
{
    pyri_opened o;
    size_t from = 0;
    int err = pyri_carrier_open(w->x, c, &o);
    if (err < 0)
        return err;
    for (size_t i = 0; i < o.held.nleaves && err == 0; i++) {
        pyri_leaf_name name = o.held.leaves[i];
        err = note_leaf(&w->are, name);
        if (err == 0 && !is_changed(w->x->p, name))
            err = pyri_held_note(&w->are, o.held.frags + from, name.end - from);
        from = name.end;
    }
    pyri_carrier_close(&o);
    return err;
}

/* Leaves that others lay on, and do no more. */
static int
drop_leaves(writing *w)
{
    pyri_planning *x = w->x;
    pyri_fold_plan *p = x->p;
    p->gone_nodes = pyri_sys_calloc(w->were.nleaves + 1,
                                    sizeof *p->gone_nodes);
    if (!p->gone_nodes)
        return pyri_fail_nomem("the leaves of a chunk");
    for (size_t i = 0; i < w->were.nleaves; i++) {
        pyri_leaf_name name = w->were.leaves[i];
        uint8_t key[PYRI_MAX_KEY];
        if (pyri_held_leaf(&w->are, name) ||
            pyri_held_leaf(&x->theirs, name))
            continue;
        size_t n = pyri_node_key(name.owner, name.label, 0,
                                 x->a->schema.ndim, x->pos, key);
        pyri_buf_add(&p->bytes, key, n);
        p->gone_nodes[p->ngone_nodes++].size = n;
    }
    return pyri_buf_check(&p->bytes, "the leaves of a chunk");
}

/* Blobs that nobody names any more. */
static int
drop_blobs(writing *w)
{
    pyri_fold_plan *p = w->x->p;
    int ndim = w->x->a->schema.ndim;
    p->gone = pyri_sys_calloc(w->were.n + 1, sizeof *p->gone);
    if (!p->gone)
        return pyri_fail_nomem("the fragments of a chunk");
    for (size_t i = 0; i < w->were.n; i++) {
        const pyri_frag *f = &w->were.frags[i];
        bool told = false;
        for (size_t k = 0; k < p->ngone && !told; k++)
            told = p->gone[k].ref.a == f->ref[0] &&
                   p->gone[k].ref.b == f->ref[1];
        if (told || f->kind == PYRI_FRAG_SAME ||
            pyri_held_has(&w->are, ndim, f) ||
            pyri_held_has(&w->x->theirs, ndim, f))
            continue;
        p->gone[p->ngone++] = (pyri_blob){{f->ref[0], f->ref[1]},
                                          pyri_frag_blob_size(f)};
    }
    return 0;
}

/* Keys and values are where they will be. */
static void
point_at_bytes(pyri_fold_plan *p)
{
    const uint8_t *at = p->bytes.data;
    for (size_t i = 0; i < p->nnodes; i++) {
        p->nodes[i].key.data = at;
        at += p->nodes[i].key.size;
        p->nodes[i].value.data = at;
        at += p->nodes[i].value.size;
    }
    for (size_t i = 0; i < p->ngone_nodes; i++) {
        p->gone_nodes[i].data = at;
        at += p->gone_nodes[i].size;
    }
}

int
pyri_fold_leaves(pyri_planning *x)
{
    pyri_fold_plan *p = x->p;
    writing w = {.x = x};
    int err = 0;
    p->nodes = pyri_sys_calloc(p->ncarriers + 1, sizeof *p->nodes);
    if (!p->nodes)
        return pyri_fail_nomem("the leaves of a chunk");
    for (size_t i = 0; i < p->ncarriers && err == 0; i++)
        err = write_carrier(&w, &p->carriers[i]);
    for (size_t i = 0; i < p->ncarriers && err == 0; i++)
        if (!p->carriers[i].changed)
            err = note_unchanged(&w, &p->carriers[i]);
    if (err == 0)
        err = drop_leaves(&w);
    if (err == 0)
        err = drop_blobs(&w);
    if (err == 0)
        point_at_bytes(p);
    pyri_held_fini(&w.were);
    pyri_held_fini(&w.are);
    return err;
}
