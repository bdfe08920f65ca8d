/*
 * tree/leaf_at.c - the leaf of one chunk.
 */
#include "tree/tree.h"

#include <string.h>

static void
place_at(const pyri_grid *g, int level, const uint64_t *chunk, uint64_t *pos)
{
    memset(pos, 0, PYR_MAX_DIMS * sizeof *pos);
    for (int d = 0; d < g->ndim; d++)
        pos[d] = g->shift[level][d] < 64 ? chunk[d] >> g->shift[level][d] : 0;
}

int
pyri_tree_leaf_at(const pyri_tree *t, const uint64_t *chunk, pyri_node *out,
                  pyri_flat *flat, bool *found)
{
    uint64_t label = t->root, at[PYR_MAX_DIMS], code[PYRI_CODE_WORDS];
    int stored = t->root_level, here = t->grid->levels, err;
    *found = false;
    if (flat)
        *flat = (pyri_flat){0};
    place_at(t->grid, here, chunk, at);
    for (int d = 0; d < t->grid->ndim; d++)
        if (at[d])
            return 0; /* outside of that grid */
    pyri_grid_code(t->grid, chunk, code);
    for (; here > 0 && label; here--) {
        unsigned slot = pyri_grid_slot(code, here);
        pyri_node node;
        if (stored < here) {
            label = slot == 0 ? label : 0;
            continue;
        }
        place_at(t->grid, here, chunk, at);
        if ((err = pyri_tree_get(t, label, here, at, &node)) < 0)
            return err;
        label = 0;
        if (node.flats >> slot & 1)
            return flat ? pyri_node_flat(&node, slot, flat) : 0;
        if (node.slots >> slot & 1 &&
            (err = pyri_node_child(&node, slot, &label, &stored)) < 0)
            return err;
    }
    *found = label != 0;
    return label ? pyri_tree_get(t, label, 0, chunk, out) : 0;
}
