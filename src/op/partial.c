/*
 * op/partial.c - reductions: partial results, and merging them.
 *
 * Accuracy. Counts, minima, maxima and positions are exact, and so are sums of
 * integers (mod 2^128). A sum of reals is made of blocks of at most 512 cells
 * in 16 lanes, each cell going through at most 32 + 4 roundings; blocks and
 * partials are added with what each addition loses kept in a second double. So,
 * while nothing overflows and fewer than 2^40 blocks are added,
 *
 *     |sum - exact|  <=  37 * 2^-53 * (sum of |value|)
 *
 * whatever the chunks and their order. A variance is made of differences from
 * the first value of each block, and of the distances between the means of
 * blocks (Chan), which are kept in two doubles: so its error is relative to the
 * spread of the values, however far from zero they are. Of b blocks it is below
 *
 *     |var - exact|  <=  (200 + 10 b) * 2^-53 * exact
 *
 * for reals, and for integers below 2^53; larger ones are rounded to doubles
 * first.
 */
#include "op/op.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "op/blocks.h"

#include <math.h>
#include <string.h>

typedef unsigned __int128 u128;

static bool
needs_sum(pyri_reduce_op op)
{
    return op == PYRI_RED_SUM || op == PYRI_RED_MEAN;
}

static bool
needs_squares(pyri_reduce_op op)
{
    return op == PYRI_RED_VAR || op == PYRI_RED_STD;
}

static bool
needs_truths(pyri_reduce_op op)
{
    return op == PYRI_RED_COUNT || op == PYRI_RED_ANY || op == PYRI_RED_ALL;
}

static bool
needs_key(pyri_reduce_op op)
{
    return op >= PYRI_RED_MIN && op <= PYRI_RED_ARGMAX;
}

static bool
needs_place(pyri_reduce_op op)
{
    return op == PYRI_RED_ARGMIN || op == PYRI_RED_ARGMAX;
}

static bool
wants_least(pyri_reduce_op op)
{
    return op == PYRI_RED_MIN || op == PYRI_RED_ARGMIN;
}

/* --- merging -------------------------------------------------------------- */

void
pyri_partial_init(pyri_partial *t)
{
    memset(t, 0, sizeof *t);
}

/* (*sum, *lost) += (x, less), with the rest of each addition kept. A sum that
 * is no longer finite goes on as IEEE sums do. */
static void
add_two(double *sum, double *lost, double x, double less)
{
    double a = *sum, s = a + x, from_x = s - a;
    double rest = (a - (s - from_x)) + (x - from_x) + (*lost + less);
    double whole = s + rest, left = rest - (whole - s);
    bool finite = isfinite(s) && isfinite(left);
    *sum = finite ? whole : s;
    *lost = finite ? left : 0;
}

static double
mean_of(const pyri_partial *t, pyri_kind kind)
{
    if (kind == PYRI_REAL)
        return (t->sum + t->sum_lost) / (double)t->count;
    pyri_i128 n = (pyri_i128)t->count;
    return (double)(t->sum_int / n) + (double)(t->sum_int % n) / (double)n;
}

/* Chan: what each side has around its own mean, and the means' distance. */
static void
merge_squares(pyri_partial *t, const pyri_partial *other)
{
    if (other->count == 0)
        return;
    if (t->count == 0) {
        t->mean = other->mean;
        t->mean_lost = other->mean_lost;
        t->squares = other->squares;
        return;
    }
    double a = (double)t->count, b = (double)other->count;
    double apart = (other->mean - t->mean) + (other->mean_lost - t->mean_lost);
    double share = b / (a + b);
    t->squares += other->squares + apart * apart * (a * share);
    add_two(&t->mean, &t->mean_lost, apart * share, 0);
}

/* Of equal values the first in row-major order. */
static bool
comes_first(int ndim, const uint64_t *a, const uint64_t *b)
{
    for (int k = 0; k < ndim; k++)
        if (a[k] != b[k])
            return a[k] < b[k];
    return false;
}

static void
merge_key(pyri_partial *t, pyri_reduce_op op, int ndim,
          const pyri_partial *other)
{
    bool better = t->count == 0 ||
                  (wants_least(op) ? other->key < t->key : other->key > t->key);
    bool tie = !better && other->key == t->key && needs_place(op);
    if (better || (tie && comes_first(ndim, other->at, t->at))) {
        t->key = other->key;
        memcpy(t->at, other->at, sizeof t->at);
    }
}

void
pyri_partial_merge(pyri_partial *t, const pyri_reduction *r, int ndim,
                   const pyri_partial *other)
{
    if (needs_squares(r->op))
        merge_squares(t, other);
    if (needs_key(r->op) && other->count > 0)
        merge_key(t, r->op, ndim, other);
    if (needs_sum(r->op)) {
        add_two(&t->sum, &t->sum_lost, other->sum, other->sum_lost);
        t->sum_int = (pyri_i128)((u128)t->sum_int + (u128)other->sum_int);
    }
    t->count += other->count;
    t->nans += other->nans;
    t->truths += other->truths;
}

/* --- adding cells --------------------------------------------------------- */

typedef struct update {
    pyri_partial *t;
    const pyri_reduction *r;
    pyri_kind kind;
    const pyri_lanes *lanes;
    int ndim;
    const pyri_box *box;
} update;

/* Coordinates of cell number i of the box. */
static void
place(const update *u, uint64_t i, uint64_t *at)
{
    for (int k = u->ndim - 1; k >= 0; k--) {
        uint64_t extent = u->box->hi[k] - u->box->lo[k];
        at[k] = u->box->lo[k] + i % extent;
        i /= extent;
    }
}

static void
block_sum(const update *u, const void *values, size_t n, pyri_partial *more)
{
    if (u->kind != PYRI_REAL)
        more->sum_int = u->lanes->sum_int(values, n, u->kind);
    else
        more->sum = u->lanes->sum(values, n);
}

static void
block_squares(const update *u, const void *values, size_t n, pyri_partial *more)
{
    double room[PYRI_OP_CELLS], from;
    const pyri_lanes *l = u->lanes;
    const void *v = pyri_block_reals(l, u->kind, values, n, room, &n);
    memcpy(&from, v, sizeof from);
    l->op[PYRI_SUB_F][2](room, v, &from, NULL, n);
    double mean = l->sum(room, n) / (double)n;
    more->squares = l->squares(room, n, mean);
    more->mean = from;
    add_two(&more->mean, &more->mean_lost, mean, 0);
}

static void
block_key(const update *u, const void *values, size_t n, pyri_partial *more)
{
    int64_t key[PYRI_OP_CELLS];
    u->lanes->keys(key, values, n, u->kind);
    more->key = wants_least(u->r->op) ? u->lanes->min(key, n)
                                      : u->lanes->max(key, n);
}

/* The first of the n values of the block that has the key. */
static uint64_t
find_key(const update *u, const void *values, size_t n, int64_t wanted)
{
    int64_t key[PYRI_OP_CELLS];
    size_t i = 0;
    u->lanes->keys(key, values, n, u->kind);
    while (i + 1 < n && key[i] != wanted)
        i++;
    return i;
}

static int
add_block(void *ctx, const void *values, size_t n, uint64_t first)
{
    const update *u = (const update *)ctx;
    pyri_reduce_op op = u->r->op;
    double room[PYRI_OP_CELLS];
    size_t left;
    const void *v = pyri_block_numbers(u->lanes, u->kind, values, n, room,
                                       &left);
    pyri_partial more;
    pyri_partial_init(&more);
    more.count = left;
    more.nans = n - left;
    if (needs_truths(op))
        more.truths = u->lanes->truths(v, left, u->kind);
    if (needs_sum(op))
        block_sum(u, v, left, &more);
    if (needs_squares(op) && left > 0)
        block_squares(u, v, left, &more);
    if (needs_key(op) && left > 0)
        block_key(u, v, left, &more);
    bool worse = u->t->count > 0 && (wants_least(op) ? more.key > u->t->key
                                                     : more.key < u->t->key);
    if (needs_place(op) && left > 0 && !worse)
        place(u, first + find_key(u, values, n, more.key), more.at);
    pyri_partial_merge(u->t, u->r, u->ndim, &more);
    return pyri_partial_decided(u->t, u->r);
}

static int
check_op(const pyri_reduction *r)
{
    if ((int)r->op < 0 || r->op >= PYRI_RED_HISTOGRAM)
        return pyri_fail(PYR_EINVAL, "a reduction that has no partials");
    return 0;
}

int
pyri_partial_run(pyri_partial *t, const pyri_reduction *r,
                 const pyri_program *p, int ndim, const pyri_box *box,
                 const void *const *src)
{
    update u = {t, r, p->kind, pyri_lanes_best(), ndim, box};
    int err = check_op(r);
    if (err < 0)
        return err;
    return pyri_program_blocks(p, ndim, box, src, add_block, &u);
}

int
pyri_partial_run_same(pyri_partial *t, const pyri_reduction *r,
                      const pyri_program *p, int ndim, const pyri_box *box,
                      const void *const *src)
{
    uint64_t bits = 0, n;
    pyri_partial more;
    int err;
    if ((err = check_op(r)) < 0 ||
        (err = pyri_program_same(p, ndim, box, src, &bits, &n)) < 0)
        return err;
    if (n == 0)
        return 0;
    pyri_partial_init(&more);
    double v = pyri_bits_real(p->kind, bits);
    if (isnan(v)) {
        more.nans = n;
    } else {
        more.count = n;
        more.truths = needs_truths(r->op) && v != 0 ? n : 0;
        more.key = pyri_key_of(p->kind, bits);
        more.mean = v;
        memcpy(more.at, box->lo, sizeof more.at[0] * (size_t)ndim);
        if (p->kind == PYRI_REAL)
            more.sum = v * (double)n;
        else if (p->kind == PYRI_UINT)
            more.sum_int = (pyri_i128)((u128)bits * n);
        else
            more.sum_int = (pyri_i128)((u128)(pyri_i128)(int64_t)bits * n);
    }
    pyri_partial_merge(t, r, ndim, &more);
    return 0;
}

bool
pyri_partial_decided(const pyri_partial *t, const pyri_reduction *r)
{
    return (r->op == PYRI_RED_ANY && t->truths > 0) ||
           (r->op == PYRI_RED_ALL && t->truths < t->count);
}

/* --- the end -------------------------------------------------------------- */

static void
set_whole(pyri_value *out, pyri_kind kind, pyri_i128 v)
{
    out->kind = kind;
    out->whole = v;
    out->real = (double)v;
}

static void
set_bits(pyri_value *out, pyri_kind kind, uint64_t bits)
{
    if (kind == PYRI_REAL) {
        out->kind = kind;
        out->real = pyri_bits_real(kind, bits);
    } else {
        set_whole(out, kind,
                  kind == PYRI_UINT ? (pyri_i128)bits
                                    : (pyri_i128)(int64_t)bits);
    }
}

static void
finish_numbers(const pyri_partial *t, pyri_reduce_op op, pyri_kind kind,
               pyri_value *out)
{
    out->kind = PYRI_REAL;
    if (op == PYRI_RED_MEAN)
        out->real = mean_of(t, kind);
    else if (op == PYRI_RED_VAR)
        out->real = t->squares / (double)t->count;
    else if (op == PYRI_RED_STD)
        out->real = sqrt(t->squares / (double)t->count);
    else
        set_bits(out, kind, pyri_key_bits(kind, t->key));
}

void
pyri_partial_finish(const pyri_partial *t, const pyri_reduction *r,
                    pyri_kind kind, int ndim, pyri_value *out)
{
    memset(out, 0, sizeof *out);
    switch (r->op) {
    case PYRI_RED_COUNT: set_whole(out, PYRI_UINT, (pyri_i128)t->truths); break;
    case PYRI_RED_ANY: set_whole(out, PYRI_INT, t->truths > 0); break;
    case PYRI_RED_ALL: set_whole(out, PYRI_INT, t->truths == t->count); break;
    case PYRI_RED_SUM:
        if (kind == PYRI_REAL) {
            out->kind = kind;
            out->real = t->sum + t->sum_lost;
        } else {
            set_whole(out, kind, t->sum_int);
        }
        break;
    default:
        out->none = t->count == 0;
        if (!out->none)
            finish_numbers(t, r->op, kind, out);
        if (!out->none && needs_place(r->op))
            memcpy(out->at, t->at, sizeof t->at[0] * (size_t)ndim);
        break;
    }
}

/* --- as bytes ------------------------------------------------------------- */

/*
 * Numbers of 8 bytes, in the order of the struct; sum_int is two, the lower
 * half first.
 */
void
pyri_partial_encode(const pyri_partial *t, uint8_t out[PYRI_PARTIAL_BYTES])
{
    const double reals[5] = {t->sum, t->sum_lost, t->mean, t->mean_lost,
                             t->squares};
    pyri_store64(out, t->count);
    pyri_store64(out + 8, t->nans);
    pyri_store64(out + 16, t->truths);
    pyri_store64(out + 24, (uint64_t)t->sum_int);
    pyri_store64(out + 32, (uint64_t)((u128)t->sum_int >> 64));
    for (int i = 0; i < 5; i++) {
        uint64_t bits;
        memcpy(&bits, &reals[i], sizeof bits);
        pyri_store64(out + 40 + 8 * i, bits);
    }
    pyri_store64(out + 80, (uint64_t)t->key);
    for (int i = 0; i < PYR_MAX_DIMS; i++)
        pyri_store64(out + 88 + 8 * i, t->at[i]);
}

int
pyri_partial_decode(pyri_partial *t, const uint8_t in[PYRI_PARTIAL_BYTES])
{
    double *const reals[5] = {&t->sum, &t->sum_lost, &t->mean, &t->mean_lost,
                              &t->squares};
    pyri_partial_init(t);
    t->count = pyri_load64(in);
    t->nans = pyri_load64(in + 8);
    t->truths = pyri_load64(in + 16);
    t->sum_int = (pyri_i128)((u128)pyri_load64(in + 32) << 64 |
                             pyri_load64(in + 24));
    for (int i = 0; i < 5; i++) {
        uint64_t bits = pyri_load64(in + 40 + 8 * i);
        memcpy(reals[i], &bits, sizeof bits);
    }
    t->key = (int64_t)pyri_load64(in + 80);
    for (int i = 0; i < PYR_MAX_DIMS; i++)
        t->at[i] = pyri_load64(in + 88 + 8 * i);
    if (t->truths <= t->count && !(t->squares < 0))
        return 0;
    pyri_partial_init(t);
    return pyri_fail(PYR_ECORRUPT, "a partial result that contradicts itself");
}
