/*
 * tree/gather.h - nodes of the base snapshot that a build will ask for, got
 * level by level before it begins. For build.c.
 *
 *   pyri_gather g;
 *   int err = pyri_gather_run(&g, b);
 *   under.got = pyri_gather_root(&g);      on the way down: pyri_gather_kid()
 *   ... pyri_gather_get(&g, under.got, label, level, pos, &node) ...
 *   pyri_gather_fini(&g);
 */
#ifndef PYRI_TREE_GATHER_H
#define PYRI_TREE_GATHER_H

#include "tree/tree.h"

/* A place of the base that the build comes by. */
typedef struct pyri_gathered {
    uint64_t label;
    int stored;      /* level of the node; may be below the place */
    bool open;       /* the node is here, and whole */
    unsigned kids;   /* bitmap of slots below it that were gathered, too */
    size_t kid;      /* the first of them, by slot */
    size_t touch, n; /* touches below it; none: just for what it knows */
    pyri_node node;
    uint64_t pos[PYR_MAX_DIMS];
} pyri_gathered;

enum { PYRI_GATHER_FEW = 24 }; /* places that need no malloc() */

typedef struct pyri_gather {
    const pyri_build *b;
    pyri_gathered *list; /* level by level, each in the order of the tree */
    size_t n, room;
    struct pyri_gather_piece *piece; /* memory for a long row */
    pyri_gathered few[PYRI_GATHER_FEW];
} pyri_gather; /* large: not worth clearing */

/*
 * Get what b will ask for; its touches are sorted. Damage is no failure here:
 * what cannot be opened is not kept, and met again by who asks for it. End *g
 * in any case. It borrows b and the reader of its base.
 */
int pyri_gather_run(pyri_gather *g, const pyri_build *b);
void pyri_gather_fini(pyri_gather *g);

/* The place of the root; NULL: nothing was gathered. */
static inline const pyri_gathered *
pyri_gather_root(const pyri_gather *g)
{
    return g->n ? g->list : NULL;
}

/* That in a slot below a place; NULL: none, as below NULL. */
static inline const pyri_gathered *
pyri_gather_kid(const pyri_gather *g, const pyri_gathered *at, unsigned slot)
{
    if (!at || !(at->kids >> slot & 1))
        return NULL;
    unsigned before = at->kids & ((1u << slot) - 1);
    return &g->list[at->kid + (size_t)__builtin_popcount(before)];
}

/* As pyri_tree_get() of the base: from memory if it was gathered there. */
int pyri_gather_get(const pyri_gather *g, const pyri_gathered *at,
                    uint64_t label, int level, const uint64_t *pos,
                    pyri_node *out);

#endif
