/*
 * op/quantile.c - quantiles by histograms of ever narrower ranges.
 *
 * Values are seen as keys: integers in the order of the values. A pass counts
 * the keys of a range in bins of 2^shift keys each; the bin that holds the
 * wanted rank is the range of the next pass. When bins are one key wide the
 * value is known exactly. It takes four passes at most with 65536 bins, and a
 * single one for 16-bit cells whose range is known.
 *
 * The value at rank q * (count - 1) may lie between two cells; the next key
 * after the one found is in a later bin, or the least that was above the range.
 */
#include "op/op.h"

#include "base/fail.h"
#include "op/blocks.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void
pyri_quantile_init(pyri_quantile *q, const pyri_reduction *r, pyri_kind kind,
                   uint32_t bins, uint64_t *bin)
{
    assert(bins >= 2 && bins <= PYRI_OP_MAX_BINS);
    memset(q, 0, sizeof *q);
    q->q = r->q;
    q->kind = kind;
    q->bins = bins;
    q->bin = bin;
    q->lo = INT64_MIN;
    q->hi = INT64_MAX;
    if (kind == PYRI_REAL) {
        const uint64_t infinite = 0x7ff0000000000000;
        q->lo = pyri_key_of(kind, infinite | (uint64_t)INT64_MIN);
        q->hi = pyri_key_of(kind, infinite);
    }
    q->next_above = INT64_MAX;
    memset(bin, 0, bins * sizeof *bin);
}

void
pyri_quantile_limit(pyri_quantile *q, uint64_t min, uint64_t max)
{
    q->lo = pyri_key_of(q->kind, min);
    q->hi = pyri_key_of(q->kind, max);
    assert(q->lo <= q->hi);
}

/* The least one with which the bins reach over the range. */
static int
shift_of(const pyri_quantile *q)
{
    uint64_t span = (uint64_t)q->hi - (uint64_t)q->lo;
    int shift = 0;
    while (span >> shift >= q->bins)
        shift++;
    return shift;
}

static void
count(pyri_quantile *q, int shift, int64_t key, uint64_t n)
{
    if (key < q->lo) {
        q->below += n;
    } else if (key > q->hi) {
        q->above += n;
        q->next_above = key < q->next_above ? key : q->next_above;
    } else {
        q->bin[((uint64_t)key - (uint64_t)q->lo) >> shift] += n;
        q->inside += n;
    }
}

typedef struct update {
    pyri_quantile *q;
    const pyri_lanes *lanes;
    int shift;
} update;

static int
add_block(void *ctx, const void *values, size_t n, uint64_t first)
{
    const update *u = (const update *)ctx;
    double room[PYRI_OP_CELLS];
    int64_t key[PYRI_OP_CELLS];
    size_t left;
    const void *v = pyri_block_numbers(u->lanes, u->q->kind, values, n, room,
                                       &left);
    u->lanes->keys(key, v, left, u->q->kind);
    for (size_t i = 0; i < left; i++)
        count(u->q, u->shift, key[i], 1);
    u->q->nans += n - left;
    return 0;
}

/* The struct may have come from elsewhere. */
static int
check(const pyri_quantile *q, const pyri_program *p)
{
    if (q->kind != p->kind || q->lo > q->hi || q->bins < 2 ||
        q->bins > PYRI_OP_MAX_BINS)
        return pyri_fail(PYR_EINVAL, "a quantile that makes no sense");
    return 0;
}

int
pyri_quantile_run(pyri_quantile *q, const pyri_program *p, int ndim,
                  const pyri_box *box, const void *const *src)
{
    int err = check(q, p);
    if (err < 0)
        return err;
    update u = {q, pyri_lanes_best(), shift_of(q)};
    return pyri_program_blocks(p, ndim, box, src, add_block, &u);
}

int
pyri_quantile_run_same(pyri_quantile *q, const pyri_program *p, int ndim,
                       const pyri_box *box, const void *const *src)
{
    uint64_t bits = 0, n;
    int err;
    if ((err = check(q, p)) < 0 ||
        (err = pyri_program_same(p, ndim, box, src, &bits, &n)) < 0)
        return err;
    if (isnan(pyri_bits_real(p->kind, bits)))
        q->nans += n;
    else if (n > 0)
        count(q, shift_of(q), pyri_key_of(p->kind, bits), n);
    return 0;
}

void
pyri_quantile_merge(pyri_quantile *q, const pyri_quantile *other)
{
    assert(q->lo == other->lo && q->hi == other->hi && q->bins == other->bins);
    q->below += other->below;
    q->inside += other->inside;
    q->above += other->above;
    q->nans += other->nans;
    if (other->next_above < q->next_above)
        q->next_above = other->next_above;
    for (uint32_t i = 0; i < q->bins; i++)
        q->bin[i] += other->bin[i];
}

/* After the first pass it is known how many there are. */
static void
set_rank(pyri_quantile *q, uint64_t count_)
{
    double at = q->q * (double)(count_ - 1);
    q->count = count_;
    q->rank = at < (double)(count_ - 1) ? (uint64_t)at : count_ - 1;
    q->part = q->rank == count_ - 1 ? 0 : at - floor(at);
}

/* The key of the cell after the one in bin b; bins are one key wide. */
static int64_t
next_key(const pyri_quantile *q, uint32_t b, bool last_of_bin)
{
    if (!last_of_bin)
        return (int64_t)((uint64_t)q->lo + b);
    while (++b < q->bins)
        if (q->bin[b])
            return (int64_t)((uint64_t)q->lo + b);
    return q->next_above;
}

static void
narrow(pyri_quantile *q, uint32_t b, int shift)
{
    uint64_t lo = (uint64_t)q->lo + ((uint64_t)b << shift);
    uint64_t last = ((uint64_t)1 << shift) - 1;
    uint64_t left = (uint64_t)q->hi - lo;
    q->lo = (int64_t)lo;
    q->hi = (int64_t)(lo + (last < left ? last : left));
    q->below = q->inside = q->above = q->nans = 0;
    q->next_above = INT64_MAX;
    memset(q->bin, 0, q->bins * sizeof *q->bin);
}

int
pyri_quantile_next(pyri_quantile *q)
{
    uint64_t total = q->below + q->inside + q->above;
    int shift = shift_of(q);
    uint32_t b = 0;
    if (q->count == 0 && total == 0) {
        q->done = q->none = true;
        return 0;
    }
    if (q->count == 0)
        set_rank(q, total);
    if (total != q->count || q->rank < q->below ||
        q->rank - q->below >= q->inside)
        return pyri_fail(PYR_EINVAL, "cells changed between two passes");
    uint64_t left = q->rank - q->below; /* cells before it, from bin b on */
    for (; b + 1 < q->bins && left >= q->bin[b]; b++)
        left -= q->bin[b];
    if (shift > 0) {
        narrow(q, b, shift);
        return 0;
    }
    q->value = (int64_t)((uint64_t)q->lo + b);
    q->next = q->part > 0 ? next_key(q, b, left + 1 >= q->bin[b]) : q->value;
    q->done = true;
    return 0;
}

void
pyri_quantile_finish(const pyri_quantile *q, pyri_value *out)
{
    uint64_t bits = pyri_key_bits(q->kind, q->value);
    uint64_t next = pyri_key_bits(q->kind, q->next);
    double a = pyri_bits_real(q->kind, bits);
    double b = pyri_bits_real(q->kind, next);
    memset(out, 0, sizeof *out);
    out->none = q->none;
    out->kind = q->kind;
    if (q->none)
        return;
    out->real = a;
    if (q->kind != PYRI_REAL)
        out->whole = q->kind == PYRI_UINT ? (pyri_i128)bits
                                          : (pyri_i128)(int64_t)bits;
    if (bits != next) {
        out->kind = PYRI_REAL;
        out->real = a + q->part * (b - a);
    }
}
