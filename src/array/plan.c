/*
 * array/plan.c - which chunks a run of cells falls into.
 *
 * A run is a product over its axes and so is the set of chunks it touches: the
 * chunks along each axis are listed first, then combined. A run that jumps
 * over chunks costs what it touches, not what it spans.
 */
#include "array/draft.h"

#include "base/checked.h"
#include "base/room.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

typedef struct axis {
    uint64_t *chunks;
    size_t n, room;
} axis;

static int
add_chunk(axis *a, uint64_t chunk)
{
    if (!pyri_room(&a->chunks, &a->room, a->n + 1, sizeof *a->chunks))
        return pyri_fail_nomem("the plan of a write");
    a->chunks[a->n++] = chunk;
    return 0;
}

static int
list_axis(axis *a, uint64_t chunk, const pyri_run *run, int d, uint64_t limit)
{
    uint64_t last = run->start[d] + (run->count[d] - 1) * run->stride[d] +
                    run->block[d];
    last = pyri_min64(last, limit);
    uint64_t cell = run->start[d];
    int err = 0;
    for (uint64_t i = 0, at, end; err == 0;) {
        if (!pyri_run_next(run, d, cell, last, &i, &at, &end))
            break;
        uint64_t index = at / chunk;
        err = add_chunk(a, index);
        if (last / chunk <= index || last - index * chunk <= chunk)
            break;
        cell = (index + 1) * chunk;
    }
    return err;
}

int
pyri_plan_run(const uint64_t *chunk, int ndim, const pyri_run *run,
              const uint64_t *shape, pyri_chunk_fn *each, void *ctx)
{
    axis axes[PYR_MAX_DIMS];
    size_t at[PYR_MAX_DIMS] = {0};
    uint64_t pos[PYR_MAX_DIMS] = {0};
    int err = 0;
    memset(axes, 0, sizeof axes);
    for (int d = 0; d < ndim && err == 0; d++) {
        if (run->count[d] == 0 || run->block[d] == 0)
            goto out;
        err = list_axis(&axes[d], chunk[d], run, d,
                        shape ? shape[d] : UINT64_MAX);
        if (err == 0 && axes[d].n == 0)
            goto out;
    }
    while (err == 0) {
        for (int d = 0; d < ndim; d++)
            pos[d] = axes[d].chunks[at[d]];
        if ((err = each(ctx, pos)) != 0)
            break;
        int d = ndim - 1;
        for (; d >= 0 && ++at[d] == axes[d].n; d--)
            at[d] = 0;
        if (d < 0)
            break;
    }
out:
    for (int d = 0; d < ndim; d++)
        free(axes[d].chunks);
    return err;
}
