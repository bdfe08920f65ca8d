/*
 * tree/grid.c - where the nodes of a tree are.
 *
 * The index of a chunk along each axis is taken bit by bit, in the order of
 * the form, finest first; every four bits make a level:
 *
 *     order   x y x y | x y x y | x y          (y, x), 32 x 32 chunks
 *     level      1         2       3
 *
 * so a node of level l covers, along each axis, as many bits as the axis has
 * among the first 4 l: shift[l]. Arrays far from square just have fewer bits
 * along the short axes.
 */
#include "tree/tree.h"

#include "base/checked.h"

#include <string.h>

int
pyri_grid_levels(const pyri_form *form)
{
    int levels = (form->norder + PYRI_FAN_BITS - 1) / PYRI_FAN_BITS;
    return levels ? levels : 1;
}

void
pyri_grid_init(pyri_grid *g, const pyri_form *form, const uint64_t *chunk)
{
    uint8_t have[PYR_MAX_DIMS] = {0};
    size_t size = (size_t)form->ndim * sizeof *chunk;
    g->ndim = form->ndim;
    g->norder = form->norder;
    g->levels = pyri_grid_levels(form);
    memcpy(g->chunk, chunk, size);
    memcpy(g->shape, form->shape, size);
    memset(g->shift[0], 0, sizeof g->shift[0]);
    for (int i = 0; i < g->levels * PYRI_FAN_BITS; i++) {
        if (i < form->norder) {
            uint8_t axis = form->order[i];
            g->axis[i] = axis;
            g->bit[i] = have[axis]++;
        }
        if (i % PYRI_FAN_BITS == PYRI_FAN_BITS - 1)
            memcpy(g->shift[i / PYRI_FAN_BITS + 1], have, sizeof have);
    }
}

void
pyri_grid_domain(const pyri_grid *g, int level, const uint64_t *pos,
                 pyri_box *out)
{
    for (int d = 0; d < g->ndim; d++) {
        unsigned shift = g->shift[level][d];
        pyri_u128 size = (pyri_u128)g->chunk[d] << shift;
        pyri_u128 lo = size * pos[d], hi = lo + size;
        out->lo[d] = lo > UINT64_MAX ? UINT64_MAX : (uint64_t)lo;
        out->hi[d] = hi > UINT64_MAX ? UINT64_MAX : (uint64_t)hi;
    }
}

bool
pyri_grid_shown(const pyri_grid *g, int level, const uint64_t *pos,
                pyri_box *out)
{
    pyri_grid_domain(g, level, pos, out);
    bool some = true;
    for (int d = 0; d < g->ndim; d++) {
        out->hi[d] = pyri_min64(out->hi[d], g->shape[d]);
        some &= out->lo[d] < out->hi[d];
    }
    return some;
}

void
pyri_grid_child(const pyri_grid *g, int level, const uint64_t *pos,
                unsigned slot, uint64_t *child)
{
    int first = (level - 1) * PYRI_FAN_BITS;
    const uint8_t *below = g->shift[level - 1];
    for (int d = 0; d < g->ndim; d++)
        child[d] = pos[d] << (g->shift[level][d] - below[d]);
    for (int i = 0; i < PYRI_FAN_BITS && first + i < g->norder; i++) {
        int d = g->axis[first + i];
        child[d] |= (uint64_t)(slot >> i & 1) << (g->bit[first + i] - below[d]);
    }
}

void
pyri_grid_chunk_of(const pyri_grid *g, const uint64_t *cell, uint64_t *pos)
{
    for (int d = 0; d < g->ndim; d++)
        pos[d] = cell[d] / g->chunk[d];
}

void
pyri_grid_code(const pyri_grid *g, const uint64_t *pos, uint64_t *code)
{
    memset(code, 0, PYRI_CODE_WORDS * sizeof *code);
    for (int i = 0; i < g->norder; i++) {
        uint64_t bit = pos[g->axis[i]] >> g->bit[i] & 1;
        code[PYRI_CODE_WORDS - 1 - i / 64] |= bit << (i % 64);
    }
}

unsigned
pyri_grid_slot(const uint64_t *code, int level)
{
    int first = (level - 1) * PYRI_FAN_BITS;
    return (unsigned)(code[PYRI_CODE_WORDS - 1 - first / 64] >> (first % 64)) &
           (PYRI_FAN - 1);
}
