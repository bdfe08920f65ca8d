/*
 * tree/alone.c - what one snapshot needs and its neighbours do not.
 *
 * The tree is walked from the top, but not into nodes that a neighbour has
 * too: their subtrees are its as well. A node whose label is not newer than
 * the older neighbour is in that one; in the others it is looked up by its
 * place. So the walk costs what is found, and the nodes around it.
 *
 * A leaf may need leaves of older versions (`prev`), which no tree leads to
 * any more, and blobs that older leaves brought. Leaves of one place are
 * therefore compared as lists: of leaves, and of blobs.
 */
#include "tree/tree.h"

#include "base/room.h"
#include "base/sys.h"

#include <string.h>

enum { MAX_PREV = 4096 };

/* The node of a tree that was looked at last on a level: places come in the
 * order of the tree, so it is often the next one, too. */
typedef struct last_node {
    uint64_t label; /* 0: none */
    uint64_t pos[PYR_MAX_DIMS];
    pyri_node node;
} last_node;

/* A neighbour, and a node for each of its levels. */
typedef struct neighbour {
    const pyri_tree *t;
    last_node *last;
} neighbour;

typedef struct seeking {
    const pyri_tree *t;
    neighbour *older; /* or NULL */
    uint64_t older_label;
    neighbour *others;
    size_t nothers;
    const pyri_alone_out *out;
} seeking;

/* --- the node of a tree at a place --------------------------------------- */

static int
get_node(void *ctx, uint64_t label, int level, const uint64_t *pos,
         pyri_node *out)
{
    neighbour *n = ctx;
    last_node *last = &n->last[level];
    int err = 0;
    if (last->label != label || memcmp(last->pos, pos, sizeof last->pos) != 0) {
        last->label = 0;
        err = pyri_tree_get(n->t, label, level, pos, &last->node);
        if (err == 0) {
            last->label = label;
            memcpy(last->pos, pos, sizeof last->pos);
        }
    }
    *out = last->node;
    return err;
}

static int
label_at(neighbour *n, int level, const uint64_t *pos, uint64_t *out)
{
    return pyri_tree_label_at(n->t, level, pos, get_node, n, out, NULL);
}

static bool
same_owner(const pyri_tree *a, const pyri_tree *b, uint64_t label)
{
    return pyri_lineage_owner(a->lineage, label) ==
           pyri_lineage_owner(b->lineage, label);
}

/* Has a neighbour this node? Where it is damaged: perhaps, so yes. */
static int
is_shared(const seeking *s, int level, const uint64_t *pos, uint64_t label,
          bool *shared)
{
    *shared = s->older && label <= s->older_label;
    for (size_t i = 0; i < s->nothers && !*shared; i++) {
        uint64_t theirs;
        int err = label_at(&s->others[i], level, pos, &theirs);
        if (err < 0 && err != PYR_ECORRUPT)
            return err;
        *shared = err < 0 || (theirs == label &&
                              same_owner(s->t, s->others[i].t, label));
    }
    return 0;
}

/* --- leaves -------------------------------------------------------------- */

typedef struct held_leaf {
    uint64_t owner, label;
    size_t size;
} held_leaf;

/* What a chunk of one snapshot needs. */
typedef struct holding {
    held_leaf *leaves;
    size_t nleaves, leaf_room;
    pyri_blob *blobs;
    size_t nblobs, blob_room;
} holding;

static void
holding_fini(holding *h)
{
    free(h->leaves);
    free(h->blobs);
}

static int
hold_blobs(holding *h, const pyri_node *node, int ndim, const pyri_box *chunk,
           uint64_t *prev)
{
    pyri_leaf_walk w;
    int err = pyri_leaf_begin(node, ndim, chunk, &w);
    *prev = w.prev;
    while (err == 0 && w.left) {
        pyri_frag f;
        if ((err = pyri_leaf_next(&w, &f)) < 0 || f.kind == PYRI_FRAG_SAME)
            continue;
        if (!pyri_room(&h->blobs, &h->blob_room, h->nblobs + 1,
                       sizeof *h->blobs))
            return pyri_fail_nomem("the fragments of a chunk");
        h->blobs[h->nblobs++] =
            (pyri_blob){{f.ref[0], f.ref[1]}, pyri_frag_blob_size(&f)};
    }
    return err;
}

/* All that the leaf of that label needs, and those that it lies on. One that
 * has gone already ends the list. */
static int
hold_chunk(holding *h, const pyri_tree *t, const uint64_t *pos, uint64_t label)
{
    pyri_box chunk;
    pyri_grid_domain(t->grid, 0, pos, &chunk);
    for (int i = 0; label && i < MAX_PREV; i++) {
        pyri_node node;
        uint64_t prev;
        int err = pyri_tree_get(t, label, 0, pos, &node);
        if (err < 0)
            return err;
        if (!pyri_room(&h->leaves, &h->leaf_room, h->nleaves + 1,
                       sizeof *h->leaves))
            return pyri_fail_nomem("the leaves of a chunk");
        h->leaves[h->nleaves++] =
            (held_leaf){pyri_lineage_owner(t->lineage, label), label,
                        node.size};
        if ((err = hold_blobs(h, &node, t->grid->ndim, &chunk, &prev)) < 0)
            return err;
        label = prev;
    }
    return 0;
}

static bool
holds_leaf(const holding *h, const held_leaf *l)
{
    for (size_t i = 0; i < h->nleaves; i++)
        if (h->leaves[i].owner == l->owner && h->leaves[i].label == l->label)
            return true;
    return false;
}

static bool
holds_blob(const holding *h, const pyri_blob *b)
{
    for (size_t i = 0; i < h->nblobs; i++)
        if (h->blobs[i].ref.a == b->ref.a && h->blobs[i].ref.b == b->ref.b)
            return true;
    return false;
}

static int
tell_node(const seeking *s, uint64_t owner, uint64_t label, int level,
          const uint64_t *pos, size_t size)
{
    uint8_t key[PYRI_MAX_KEY];
    size_t n = pyri_node_key(owner, label, level, s->t->grid->ndim, pos, key);
    return s->out->node(s->out->ctx, (pyri_bytes){key, n}, size);
}

/* What the neighbours hold of a chunk. */
static int
hold_neighbours(const seeking *s, const uint64_t *pos, holding *h)
{
    uint64_t label;
    int err = 0;
    if (s->older && (err = label_at(s->older, 0, pos, &label)) == 0)
        err = hold_chunk(h, s->older->t, pos, label);
    for (size_t i = 0; i < s->nothers && err == 0; i++)
        if ((err = label_at(&s->others[i], 0, pos, &label)) == 0)
            err = hold_chunk(h, s->others[i].t, pos, label);
    return err;
}

static int
visit_leaf(const seeking *s, const uint64_t *pos, uint64_t label)
{
    holding own = {0}, theirs = {0};
    int err = hold_chunk(&own, s->t, pos, label);
    if (err == PYR_ECORRUPT)
        err = 0; /* the rest has gone */
    if (err == 0)
        err = hold_neighbours(s, pos, &theirs);
    if (err == PYR_ECORRUPT) { /* who knows: leave it */
        err = 0;
        own.nleaves = own.nblobs = 0;
    }
    for (size_t i = 0; i < own.nblobs && err == 0; i++)
        if (!holds_blob(&theirs, &own.blobs[i]))
            err = s->out->blob(s->out->ctx, &own.blobs[i]);
    for (size_t i = own.nleaves; i-- > 0 && err == 0;)
        if (!holds_leaf(&theirs, &own.leaves[i]))
            err = tell_node(s, own.leaves[i].owner, own.leaves[i].label, 0,
                            pos, own.leaves[i].size);
    holding_fini(&own);
    holding_fini(&theirs);
    return err;
}

/* --- the walk ------------------------------------------------------------ */

static int
visit(const seeking *s, int level, const uint64_t *pos, uint64_t label,
      int stored)
{
    const pyri_grid *g = s->t->grid;
    uint64_t child[PYR_MAX_DIMS];
    pyri_node node;
    bool shared;
    int err;
    if (stored < level) { /* grown since: the first child of nobody's node */
        pyri_grid_child(g, level, pos, 0, child);
        return visit(s, level - 1, child, label, stored);
    }
    if ((err = is_shared(s, level, pos, label, &shared)) < 0 || shared)
        return err;
    if (level == 0)
        return visit_leaf(s, pos, label);
    if ((err = pyri_tree_get(s->t, label, level, pos, &node)) < 0)
        return err == PYR_ECORRUPT ? 0 : err;
    for (unsigned slot = 0; slot < PYRI_FAN && err == 0; slot++) {
        uint64_t below;
        int at;
        if (!((node.slots & ~node.flats) >> slot & 1))
            continue; /* nothing is stored for it */
        err = pyri_node_child(&node, slot, &below, &at);
        if (err == PYR_ECORRUPT) { /* lost to damage */
            err = 0;
            continue;
        }
        pyri_grid_child(g, level, pos, slot, child);
        if (err == 0)
            err = visit(s, level - 1, child, below, at);
    }
    return err < 0 ? err
                   : tell_node(s, pyri_lineage_owner(s->t->lineage, label),
                               label, level, pos, node.size);
}

/* Memory for the last nodes of all neighbours, the older one first. */
static int
meet(seeking *s, neighbour *all, const pyri_tree *older,
     const pyri_tree *const *others, last_node **out)
{
    size_t n = 0, levels = older ? (size_t)older->grid->levels + 1 : 0;
    for (size_t i = 0; i < s->nothers; i++)
        levels += (size_t)others[i]->grid->levels + 1;
    *out = pyri_sys_calloc(levels + 1, sizeof **out);
    if (!*out)
        return pyri_fail_nomem("the snapshots around one");
    last_node *at = *out;
    if (older) {
        all[n++] = (neighbour){older, at};
        at += older->grid->levels + 1;
    }
    s->older = older ? all : NULL;
    s->others = all + n;
    for (size_t i = 0; i < s->nothers; i++) {
        all[n++] = (neighbour){others[i], at};
        at += others[i]->grid->levels + 1;
    }
    return 0;
}

int
pyri_tree_alone(const pyri_tree *t, const pyri_tree *older,
                uint64_t older_label, const pyri_tree *const *others,
                size_t nothers, const pyri_alone_out *out)
{
    seeking s = {.t = t, .older_label = older_label, .nothers = nothers,
                 .out = out};
    uint64_t pos[PYR_MAX_DIMS] = {0};
    last_node *last = NULL;
    if (t->root == 0)
        return 0;
    neighbour *all = pyri_sys_calloc(nothers + 1, sizeof *all);
    int err = all ? meet(&s, all, older, others, &last)
                  : pyri_fail_nomem("the snapshots around one");
    if (err == 0)
        err = visit(&s, t->grid->levels, pos, t->root, t->root_level);
    free(last);
    free(all);
    return err;
}
