/*
 * nd/run.c - strided runs: along each axis, count blocks of `block` cells
 * whose first cells are stride apart. A run is a product over its axes, so
 * every question about it is asked axis by axis.
 */
#include "nd/nd.h"

#include "base/checked.h"

pyri_run
pyri_run_of_box(int n, const pyri_box *b)
{
    pyri_run run;
    for (int d = 0; d < n; d++) {
        run.start[d] = b->lo[d];
        run.block[d] = run.stride[d] = b->hi[d] - b->lo[d];
        run.count[d] = 1;
    }
    return run;
}

bool
pyri_run_is_box(int n, const pyri_run *r)
{
    for (int d = 0; d < n; d++)
        if (r->count[d] != 1)
            return false;
    return true;
}

void
pyri_run_bounds(int n, const pyri_run *r, pyri_box *out)
{
    for (int d = 0; d < n; d++) {
        out->lo[d] = r->start[d];
        out->hi[d] = r->start[d];
        if (r->count[d])
            out->hi[d] += (r->count[d] - 1) * r->stride[d] + r->block[d];
    }
}

bool
pyri_run_next(const pyri_run *r, int d, uint64_t lo, uint64_t hi, uint64_t *i,
              uint64_t *at, uint64_t *end)
{
    uint64_t start = r->start[d], block = r->block[d], first = *i;
    if (lo >= hi || block == 0)
        return false;
    if (lo >= start + block) {
        if (r->stride[d] == 0) /* all of them are where the first one is */
            return false;
        /* the first block whose last cell is not before lo */
        uint64_t skip = (lo - start - block) / r->stride[d] + 1;
        first = pyri_max64(first, skip);
    }
    if (first >= r->count[d])
        return false;
    uint64_t from = start + first * r->stride[d];
    if (from >= hi)
        return false;
    *i = first;
    *at = pyri_max64(from, lo);
    *end = pyri_min64(from + block, hi);
    return true;
}

bool
pyri_run_overlaps(int n, const pyri_run *r, const pyri_box *b)
{
    for (int d = 0; d < n; d++) {
        uint64_t i = 0, at, end;
        if (!pyri_run_next(r, d, b->lo[d], b->hi[d], &i, &at, &end))
            return false;
    }
    return true;
}
