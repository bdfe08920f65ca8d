/*
 * cli/slab.c - large boxes in pieces, each one run of the row-major order.
 *
 * A slab has one index on the axes before `axis`, some rows along it and all
 * of the axes behind it. About 64 MiB; up to 512 MiB if a row of chunks is so
 * large, since a slab that cuts chunks makes them be read or written again and
 * again.
 */
#include "cmd.h"

/* Cells of one row: of all axes behind `axis`. */
static uint64_t
row_cells(const slabs *s, int axis)
{
    uint64_t cells = 1;
    for (int d = axis + 1; d < s->ndim; d++)
        cells *= s->shape[d];
    return cells;
}

/* Let slabs end where chunks do, if that takes no more than `most` cells. */
static void
align(slabs *s, uint64_t row, uint64_t most, uint64_t start, uint64_t chunk)
{
    bool wants_more = chunk > s->rows && s->rows < s->shape[s->axis];
    if (wants_more && chunk <= most / row)
        s->rows = chunk;
    if (s->rows >= chunk) {
        s->rows -= s->rows % chunk;
        s->first = s->rows - start % chunk;
        s->whole_chunks = s->axis == 0;
    }
}

void
slabs_begin(slabs *s, int ndim, const uint64_t *shape, size_t cell,
            const uint64_t *start, const uint64_t *chunk)
{
    *s = (slabs){.ndim = ndim};
    for (int d = 0; d < ndim; d++) {
        s->shape[d] = shape[d];
        s->done |= shape[d] == 0;
    }
    if (s->done)
        return;
    uint64_t most = SLAB_BYTES / cell, limit = SLAB_LIMIT / cell;
    bool chunk_fits = ndim > 0 && chunk && row_cells(s, 0) <= limit &&
                      chunk[0] <= limit / row_cells(s, 0);
    while (s->axis + 1 < ndim && row_cells(s, s->axis) > most && !chunk_fits)
        s->axis++;
    uint64_t row = row_cells(s, s->axis);
    s->rows = s->first = row > most ? 1 : most / row;
    if (chunk && ndim > 0)
        align(s, row, limit, start[s->axis], chunk[s->axis]);
}

/* Set the slab's rows, from s->offset on. */
static bool
measure(slabs *s)
{
    for (int d = 0; d < s->ndim; d++)
        s->size[d] = d < s->axis ? 1 : s->shape[d];
    if (s->ndim > 0) {
        uint64_t at = s->offset[s->axis];
        uint64_t rows = at == 0 ? s->first : s->rows;
        uint64_t left = s->shape[s->axis] - at;
        s->size[s->axis] = rows < left ? rows : left;
        s->cells = row_cells(s, s->axis) * s->size[s->axis];
    } else {
        s->cells = 1;
    }
    return true;
}

bool
slabs_next(slabs *s)
{
    if (s->done)
        return false;
    if (s->cells == 0)
        return measure(s);
    for (int d = s->ndim > 0 ? s->axis : -1; d >= 0; d--) {
        s->offset[d] += d == s->axis ? s->size[d] : 1;
        if (s->offset[d] < s->shape[d])
            return measure(s);
        s->offset[d] = 0;
    }
    s->done = true;
    return false;
}

uint64_t
slabs_most_cells(const slabs *s)
{
    if (s->done)
        return 0;
    if (s->ndim == 0)
        return 1;
    uint64_t most = s->shape[s->axis];
    return row_cells(s, s->axis) * (s->rows < most ? s->rows : most);
}
