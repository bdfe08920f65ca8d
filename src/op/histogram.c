/*
 * op/histogram.c - how many values fall into each of some equal parts.
 *
 * A value v of [lo, hi] is in bin floor((v - lo) / (hi - lo) * bins), computed
 * in doubles; hi is in the last one. So a value within a rounding of an edge
 * may be on either side of it, but always on the same.
 */
#include "op/op.h"

#include "base/fail.h"
#include "op/blocks.h"

#include <math.h>
#include <string.h>

typedef struct update {
    pyri_histogram *h;
    const pyri_reduction *r;
    pyri_kind kind;
    const pyri_lanes *lanes;
} update;

static void
count(const update *u, double v, double place, uint64_t n)
{
    const pyri_reduction *r = u->r;
    if (v < r->lo)
        u->h->below += n;
    else if (v > r->hi)
        u->h->above += n;
    else /* 0 <= place <= bins */
        u->h->bin[place < r->bins ? (uint32_t)place : r->bins - 1] += n;
}

static double
place_of(const pyri_reduction *r, double v)
{
    return (v - r->lo) / (r->hi - r->lo) * r->bins;
}

static int
add_block(void *ctx, const void *values, size_t n, uint64_t first)
{
    const update *u = (const update *)ctx;
    double room[PYRI_OP_CELLS], v[PYRI_OP_CELLS], place[PYRI_OP_CELLS];
    size_t left;
    const void *reals = pyri_block_reals(u->lanes, u->kind, values, n, room,
                                         &left);
    memcpy(v, reals, left * sizeof *v);
    for (size_t i = 0; i < left; i++)
        place[i] = place_of(u->r, v[i]);
    for (size_t i = 0; i < left; i++)
        count(u, v[i], place[i], 1);
    u->h->nans += n - left;
    return 0;
}

/* The reduction may have come from elsewhere. */
static int
check(const pyri_reduction *r)
{
    if (r->op != PYRI_RED_HISTOGRAM || r->bins < 1 ||
        r->bins > PYRI_OP_MAX_BINS || !isfinite(r->lo) || !isfinite(r->hi) ||
        !(r->lo < r->hi) || !isfinite(r->hi - r->lo))
        return pyri_fail(PYR_EINVAL, "a histogram that makes no sense");
    return 0;
}

int
pyri_histogram_run(pyri_histogram *h, const pyri_reduction *r,
                   const pyri_program *p, int ndim, const pyri_box *box,
                   const void *const *src)
{
    update u = {h, r, p->kind, pyri_lanes_best()};
    int err = check(r);
    if (err < 0)
        return err;
    return pyri_program_blocks(p, ndim, box, src, add_block, &u);
}

int
pyri_histogram_run_same(pyri_histogram *h, const pyri_reduction *r,
                        const pyri_program *p, int ndim, const pyri_box *box,
                        const void *const *src)
{
    update u = {h, r, p->kind, NULL};
    uint64_t bits = 0, n;
    int err;
    if ((err = check(r)) < 0 ||
        (err = pyri_program_same(p, ndim, box, src, &bits, &n)) < 0)
        return err;
    double v = pyri_bits_real(p->kind, bits);
    if (isnan(v))
        h->nans += n;
    else
        count(&u, v, place_of(r, v), n);
    return 0;
}

void
pyri_histogram_merge(pyri_histogram *h, uint32_t bins,
                     const pyri_histogram *other)
{
    h->below += other->below;
    h->above += other->above;
    h->nans += other->nans;
    for (uint32_t i = 0; i < bins; i++)
        h->bin[i] += other->bin[i];
}
