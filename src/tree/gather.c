/*
 * tree/gather.c - the nodes that a build will ask for, level by level.
 *
 * A build goes down depth first and would ask for one node at a time; an
 * engine far away wants to be asked for many at once. Which nodes it will be is
 * known from the touches, once those of the level above are here:
 *   - the base's nodes on the way to touched chunks, but for their leaves,
 *     which are the business of pyri_leaf_fn;
 *   - children next to that way of which their parent knows too little, as it
 *     was made when they were in flight: the build asks them again.
 * So a row is got, in pieces, then the row below it. What is missed here, e.g.
 * what lies under sheets, the build gets by itself; what is got in vain, as a
 * rival will take its place, costs its bytes. Neither changes what is built.
 */
#include "tree/gather.h"

#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

enum {
    PIECE = 256,  /* keys in a call */
    SHORT = 4,    /* a row of so many needs no malloc() */
    KEY = 192,    /* 17 bytes, and a varint for each axis */
    FEW_RUNS = 8, /* of a rival that is looked at */
};

/* What one call asks for. */
typedef struct asked {
    size_t at; /* in the list */
    uint8_t key[KEY];
} asked;

struct pyri_gather_piece {
    asked asked[PIECE];
    pyri_node_get gets[PIECE];
};

/* --- places -------------------------------------------------------------- */

static bool
make_room(pyri_gather *g)
{
    size_t room = 2 * g->room;
    bool few = g->list == g->few;
    pyri_gathered *list =
        pyri_sys_realloc(few ? NULL : g->list, room * sizeof *list);
    if (!list)
        return false;
    if (few)
        memcpy(list, g->few, sizeof g->few);
    g->list = list;
    g->room = room;
    return true;
}

static int
add_place(pyri_gather *g, uint64_t label, int stored, const uint64_t *pos,
          size_t touch, size_t n)
{
    if (g->n == g->room && !make_room(g))
        return pyri_fail_nomem("the nodes below a version");
    pyri_gathered *p = &g->list[g->n++];
    p->label = label;
    p->stored = stored;
    p->open = false;
    p->kids = 0;
    p->touch = touch;
    p->n = n;
    for (int d = 0; d < g->b->grid->ndim; d++)
        p->pos[d] = pos[d];
    return 0;
}

/* --- getting a row ------------------------------------------------------- */

/* On the way down to a tree that has grown there is nothing to get. */
static bool
is_stored(const pyri_gathered *p, int level)
{
    return p->n == 0 || p->stored == level;
}

static int
get_piece(pyri_gather *g, const asked *list, pyri_node_get *gets, size_t n)
{
    const pyri_tree *t = g->b->base;
    int err = pyri_engine_get_nodes(t->engine, t->reader, gets, n);
    if (err == PYR_ECORRUPT)
        return 0; /* whoever asks for the one will be told */
    for (size_t i = 0; i < n && err == 0; i++) {
        pyri_gathered *p = &g->list[list[i].at];
        p->open = gets[i].found &&
                  pyri_node_open(gets[i].key, gets[i].value, &p->node) == 0;
        if (t->nodes_read)
            *t->nodes_read += p->open;
    }
    if (err == 0 && n == PIECE && g->b->alive)
        err = g->b->alive(g->b->ctx);
    return err;
}

static int
get_row(pyri_gather *g, int level, size_t first, size_t end)
{
    const pyri_tree *t = g->b->base;
    asked few[SHORT], *list = few;
    pyri_node_get few_gets[SHORT], *gets = few_gets;
    size_t n = 0, most = SHORT;
    int err = 0;
    if (end - first > SHORT) {
        if (!g->piece && !(g->piece = pyri_sys_malloc(sizeof *g->piece)))
            return pyri_fail_nomem("the nodes below a version");
        list = g->piece->asked;
        gets = g->piece->gets;
        most = PIECE;
    }
    for (size_t i = first; i < end && err == 0; i++) {
        const pyri_gathered *p = &g->list[i];
        if (!is_stored(p, level))
            continue;
        uint64_t owner = pyri_lineage_owner(t->lineage, p->label);
        list[n].at = i;
        gets[n].key.data = list[n].key;
        gets[n].key.size = pyri_node_key(owner, p->label, p->stored,
                                         t->grid->ndim, p->pos, list[n].key);
        if (++n == most) {
            err = get_piece(g, list, gets, n);
            n = 0;
        }
    }
    return err == 0 && n ? get_piece(g, list, gets, n) : err;
}

/* --- the row below ------------------------------------------------------- */

/* Will a version in flight take the place of the child? Only a guess: one that
 * claims much is not looked at. */
static bool
is_taken(const pyri_build *b, int level, const uint64_t *pos)
{
    pyri_box domain;
    if (b->nrivals == 0)
        return false;
    pyri_grid_domain(b->grid, level, pos, &domain);
    for (size_t i = 0; i < b->nrivals; i++)
        if (b->rivals[i].claim.n <= FEW_RUNS &&
            pyri_rival_touches(&b->rivals[i], &domain))
            return true;
    return false;
}

/* The child in a slot of a place, with touches below it or to be asked what it
 * knows. Entries that make no sense are left to the build. */
static int
add_kid(pyri_gather *g, size_t parent, int level, unsigned slot, size_t touch,
        size_t n)
{
    const pyri_gathered *p = &g->list[parent];
    uint64_t pos[PYR_MAX_DIMS], label = p->label;
    int stored = p->stored, err;
    if (p->open && pyri_node_child(&p->node, slot, &label, &stored) < 0)
        return 0;
    pyri_grid_child(g->b->grid, level, p->pos, slot, pos);
    if (stored >= level || (n == 0 && is_taken(g->b, level - 1, pos)))
        return 0;
    if ((err = add_place(g, label, stored, pos, touch, n)) == 0)
        g->list[parent].kids |= 1u << slot;
    return err;
}

static int
add_kids(pyri_gather *g, size_t at, int level)
{
    const pyri_gathered *p = &g->list[at];
    const pyri_touch *touches = g->b->touches;
    size_t touch = p->touch, end = touch + p->n;
    if (p->n == 0 || (p->stored == level && !p->open))
        return 0;
    /* the root of a tree that has grown is in the first slot */
    unsigned there = p->open ? p->node.slots & ~p->node.flats : 1;
    unsigned unknown = p->open ? pyri_node_unknown(&p->node) : 1;
    int err = 0;
    if (g->b->nsheets)
        unknown = 0;
    g->list[at].kid = g->n;
    while ((touch < end || unknown) && err == 0) {
        unsigned slot = touch < end ? pyri_grid_slot(touches[touch].code, level)
                                    : PYRI_FAN;
        unsigned other = unknown ? (unsigned)__builtin_ctz(unknown) : PYRI_FAN;
        if (other < slot) {
            err = add_kid(g, at, level, other, 0, 0);
            unknown &= unknown - 1;
            continue;
        }
        size_t n = 1;
        while (touch + n < end &&
               pyri_grid_slot(touches[touch + n].code, level) == slot)
            n++;
        if (level > 1 && there >> slot & 1)
            err = add_kid(g, at, level, slot, touch, n);
        unknown &= ~(1u << slot);
        touch += n;
    }
    return err;
}

/* --- the door ------------------------------------------------------------ */

int
pyri_gather_run(pyri_gather *g, const pyri_build *b)
{
    const uint64_t pos[PYR_MAX_DIMS] = {0};
    size_t first = 0;
    int level = b->grid->levels, err;
    g->b = b;
    g->list = g->few;
    g->n = 0;
    g->room = PYRI_GATHER_FEW;
    g->piece = NULL;
    if (b->base->root == 0 || b->base->root_level > level || b->ntouches == 0)
        return 0;
    err = add_place(g, b->base->root, b->base->root_level, pos, 0,
                    b->ntouches);
    for (; first < g->n && err == 0; level--) {
        size_t end = g->n;
        err = get_row(g, level, first, end);
        for (; first < end && err == 0; first++)
            err = add_kids(g, first, level);
    }
    return err;
}

void
pyri_gather_fini(pyri_gather *g)
{
    if (g->list != g->few)
        free(g->list);
    free(g->piece);
}

int
pyri_gather_get(const pyri_gather *g, const pyri_gathered *at, uint64_t label,
                int level, const uint64_t *pos, pyri_node *out)
{
    if (!at || !at->open || at->label != label || at->stored != level)
        return pyri_tree_get(g->b->base, label, level, pos, out);
    *out = at->node;
    return 0;
}
