/*
 * tree/descend.c - down to one node.
 */
#include "tree/tree.h"

#include <string.h>

/* The chunk in the low corner of a node. */
static void
corner(const pyri_grid *g, int level, const uint64_t *pos, uint64_t *chunk)
{
    memset(chunk, 0, PYR_MAX_DIMS * sizeof *chunk);
    for (int d = 0; d < g->ndim; d++)
        chunk[d] = g->shift[level][d] < 64 ? pos[d] << g->shift[level][d] : 0;
}

static void
place_at(const pyri_grid *g, int level, const uint64_t *chunk, uint64_t *pos)
{
    memset(pos, 0, PYR_MAX_DIMS * sizeof *pos);
    for (int d = 0; d < g->ndim; d++)
        pos[d] = g->shift[level][d] < 64 ? chunk[d] >> g->shift[level][d] : 0;
}

static bool
is_outside(const pyri_grid *g, const uint64_t *chunk)
{
    uint64_t top[PYR_MAX_DIMS];
    place_at(g, g->levels, chunk, top);
    for (int d = 0; d < g->ndim; d++)
        if (top[d])
            return true;
    return false;
}

int
pyri_tree_label_at(const pyri_tree *t, int level, const uint64_t *pos,
                   pyri_step_fn *get, void *ctx, uint64_t *out,
                   pyri_flat *flat)
{
    uint64_t chunk[PYR_MAX_DIMS], at[PYR_MAX_DIMS], code[PYRI_CODE_WORDS];
    uint64_t label = t->root;
    int stored = t->root_level, here = t->grid->levels, err;
    *out = 0;
    if (flat)
        *flat = (pyri_flat){0};
    if (level > here)
        return 0;
    corner(t->grid, level, pos, chunk);
    if (is_outside(t->grid, chunk))
        return 0;
    pyri_grid_code(t->grid, chunk, code);
    for (; here > level && label; here--) {
        unsigned slot = pyri_grid_slot(code, here);
        pyri_node node;
        if (stored < here) {
            label = slot == 0 ? label : 0;
            continue;
        }
        place_at(t->grid, here, chunk, at);
        if ((err = get(ctx, label, here, at, &node)) < 0)
            return err;
        label = 0;
        if (node.flats >> slot & 1)
            return flat ? pyri_node_flat(&node, slot, flat) : 0;
        if (node.slots >> slot & 1 &&
            (err = pyri_node_child(&node, slot, &label, &stored)) < 0)
            return err;
    }
    place_at(t->grid, level, chunk, at);
    if (label && stored == level &&
        memcmp(at, pos, (size_t)t->grid->ndim * sizeof *at) == 0)
        *out = label;
    return 0;
}

static int
get_stored(void *ctx, uint64_t label, int level, const uint64_t *pos,
           pyri_node *out)
{
    return pyri_tree_get(ctx, label, level, pos, out);
}

int
pyri_tree_leaf_at(const pyri_tree *t, const uint64_t *chunk, pyri_node *out,
                  pyri_flat *flat, bool *found)
{
    uint64_t label;
    int err = pyri_tree_label_at(t, 0, chunk, get_stored,
                                 (void *)(uintptr_t)t, &label, flat);
    *found = err == 0 && label != 0;
    return *found ? pyri_tree_get(t, label, 0, chunk, out) : err;
}
