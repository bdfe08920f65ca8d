/*
 * array/reduce.c - REDUCE: all cells of a box become one value.
 *
 * Of plain x the summaries in the tree tell what they can (survey.c). Other
 * expressions are run once where every source has one value, and over the
 * cells elsewhere: in tiles, a window of which is gathered, shared out over
 * the workers, and merged in the order of gathering. So the value does not
 * depend on who did what. Bins are counts, which add up in any order: each
 * worker has its own. An engine that can reduce tiles where their fragments are
 * does so before, and the others are left to the workers.
 */
#include "array/errands.h"
#include "array/survey.h"

#include "base/pool.h"
#include "base/sys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    TILE = 1 << 19,          /* cells that are reduced at a time */
    WINDOW = 64,             /* tiles */
    ALONE = 1 << 17,         /* cells that are not worth waking a worker */
    QUANTILE_BINS = 1 << 16,
    SENT_BINS = 1 << 10 /* that are worth sending, of every tile and pass */
};

/* What a variance of reals may be wrong by if summaries tell it. */
static const double TOLERANCE = 1e-10;

typedef struct tile {
    pyri_box box;
    bool told; /* every source has one value there */
    uint64_t values[PYRI_OP_MAX_SOURCES];
    pyri_partial partial;
    uint64_t bytes;
    bool away; /* it was reduced where it is */
} tile;

/* What is known so far of all cells, or of those of one worker. */
typedef struct sums {
    pyri_partial partial;
    pyri_histogram histogram;
    pyri_quantile quantile;
    uint64_t *bins; /* of the last two; heap */
} sums;

typedef struct reducing {
    pyri_sources s;
    const pyri_expr *e;
    const pyri_box *box;
    sums all, worker[PYRI_MAX_WORKERS];
    tile *tiles;
    size_t n;
    uint64_t cells; /* of the window */
    uint64_t chunks_read, bytes_read;
    pyri_errands errands;
    bool sends; /* there are errands */
    uint64_t there; /* bytes of bytes_read that were not moved */
} reducing;

static int
ndim_of(const reducing *r)
{
    return r->s.array->schema.ndim;
}

/* --- cells --------------------------------------------------------------- */

static int
add_cells(const reducing *r, const pyri_box *box, const pyri_loaded *l,
          sums *bins, pyri_partial *partial)
{
    const pyri_expr *e = r->e;
    const pyri_program *p = &e->program;
    int n = ndim_of(r);
    switch (e->reduction.op) {
    case PYRI_RED_HISTOGRAM:
        return (l->same ? pyri_histogram_run_same : pyri_histogram_run)(
            &bins->histogram, &e->reduction, p, n, box, l->src);
    case PYRI_RED_QUANTILE:
        return (l->same ? pyri_quantile_run_same : pyri_quantile_run)(
            &bins->quantile, p, n, box, l->src);
    default:
        return (l->same ? pyri_partial_run_same : pyri_partial_run)(
            partial, &e->reduction, p, n, box, l->src);
    }
}

static int
reduce_tile(void *ctx, size_t i, unsigned worker)
{
    reducing *r = ctx;
    tile *t = &r->tiles[i];
    pyri_loaded l;
    if (t->away)
        return 0;
    int err = t->told ? pyri_sources_fill(&r->s, &t->box, t->values, &l)
                      : pyri_sources_load(&r->s, &t->box, &l);
    pyri_partial_init(&t->partial);
    if (err == 0)
        err = add_cells(r, &t->box, &l, &r->worker[worker], &t->partial);
    t->bytes = l.bytes;
    pyri_loaded_fini(&l);
    return err;
}

/* Take the answer for a tile; bins go to the first worker's, which is not yet
 * at work. */
static int
take_errand(reducing *r, const pyri_errand *e, uint64_t bytes, tile *t)
{
    t->away = true;
    t->bytes = bytes;
    r->there += bytes;
    pyri_partial_init(&t->partial);
    return pyri_serve_take(&r->e->reduction, e->answer, &t->partial,
                           &r->worker[0].histogram, &r->worker[0].quantile);
}

static int
send_errands(reducing *r)
{
    pyri_errands *e = &r->errands;
    int err = 0;
    pyri_buf_reset(&e->reduction);
    pyri_serve_ask(&r->e->reduction, &r->all.quantile, &e->reduction);
    for (size_t i = 0; i < r->n && err == 0; i++)
        if (!r->tiles[i].told)
            err = pyri_errands_add(e, &r->tiles[i].box, i);
    if (err == 0)
        err = pyri_buf_check(&e->reduction, "a reduction");
    if (err == 0)
        err = pyri_errands_reduce(e);
    for (size_t i = 0; i < e->n && err == 0; i++)
        if (e->list[i].done)
            err = take_errand(r, &e->list[i], e->bytes[i],
                              &r->tiles[e->tag[i]]);
    pyri_errands_clear(e);
    return err;
}

static int
flush(reducing *r)
{
    int err = r->sends ? send_errands(r) : 0;
    if (err == 0)
        err = pyri_pool_run_if(r->cells > ALONE, r->n, reduce_tile, r);
    for (size_t i = 0; i < r->n && err == 0; i++) {
        r->bytes_read += r->tiles[i].bytes;
        r->chunks_read += r->tiles[i].bytes > 0;
        if (r->e->reduction.op < PYRI_RED_HISTOGRAM)
            pyri_partial_merge(&r->all.partial, &r->e->reduction, ndim_of(r),
                               &r->tiles[i].partial);
    }
    r->n = 0;
    r->cells = 0;
    return err;
}

/* Gather the cells of a box, in tiles; `values` as for a region. */
static int
gather(reducing *r, const pyri_box *box, const uint64_t *values)
{
    int n = ndim_of(r), err;
    uint64_t cells = pyri_box_cells(n, box);
    if (cells > TILE) {
        pyri_box half = *box;
        int d = 0;
        while (box->hi[d] - box->lo[d] < 2)
            d++;
        half.hi[d] = box->lo[d] + (box->hi[d] - box->lo[d]) / 2;
        if ((err = gather(r, &half, values)) != 0)
            return err;
        half.lo[d] = half.hi[d];
        half.hi[d] = box->hi[d];
        return gather(r, &half, values);
    }
    tile *t = &r->tiles[r->n++];
    memset(&t->box, 0, sizeof t->box);
    for (int d = 0; d < n; d++) {
        t->box.lo[d] = box->lo[d];
        t->box.hi[d] = box->hi[d];
    }
    t->told = values != NULL;
    t->away = false;
    if (values)
        memcpy(t->values, values, sizeof t->values);
    r->cells += cells;
    if (r->n == WINDOW && (err = flush(r)) < 0)
        return err;
    /* any and all may be decided by now: 1 ends the walk */
    return pyri_partial_decided(&r->all.partial, &r->e->reduction);
}

/* --- regions ------------------------------------------------------------- */

static int
add_region(void *ctx, const pyri_box *region, const uint64_t *values)
{
    reducing *r = ctx;
    pyri_loaded l;
    if (!values || !pyri_program_uniform(&r->e->program))
        return gather(r, region, values);
    int err = pyri_sources_fill(&r->s, region, values, &l);
    return err < 0 ? err
                   : add_cells(r, region, &l, &r->all, &r->all.partial);
}

static bool
add_known(void *ctx, const pyri_box *cells, const pyri_summary *sum)
{
    reducing *r = ctx;
    pyri_known k = {.count = sum->count,
                    .nans = sum->nans,
                    .not_fill = sum->not_fill,
                    .fill = r->s.array->schema.fill,
                    .min = sum->min,
                    .max = sum->max,
                    .sum_int = (pyri_i128)sum->sum_int,
                    .sum = sum->sum,
                    .sum_lost = sum->sum_lost,
                    .squares = sum->squares,
                    .equal = sum->equal};
    return pyri_partial_known(&r->all.partial, &r->e->reduction,
                              &r->e->program, ndim_of(r), cells, &k, TOLERANCE);
}

static int
add_same(void *ctx, const pyri_box *cells, uint64_t bits)
{
    return add_region(ctx, cells, &bits);
}

static int
add_leaf(void *ctx, const pyri_box *cells, const uint64_t *pos,
         const pyri_node *node)
{
    return gather(ctx, cells, NULL);
}

/* Go over all cells once. */
static int
pass(reducing *r)
{
    const pyri_reduction *red = &r->e->reduction;
    bool told = r->e->program.identity && red->op < PYRI_RED_HISTOGRAM &&
                red->op != PYRI_RED_ARGMIN && red->op != PYRI_RED_ARGMAX;
    pyri_survey survey = {.snap = &r->s.snap[0],
                          .box = *r->box,
                          .ctx = r,
                          .known = add_known,
                          .same = add_same,
                          .leaf = add_leaf};
    int err = told ? pyri_survey_run(&survey)
                   : pyri_sources_walk(&r->s, r->box, add_region, r);
    if (err == 0)
        err = flush(r);
    return err > 0 ? 0 : err;
}

/* --- bins ---------------------------------------------------------------- */

static int
make_bins(sums *s, uint32_t n)
{
    s->bins = pyri_sys_calloc(n, sizeof *s->bins);
    s->histogram.bin = s->bins;
    return s->bins ? 0 : pyri_fail_nomem("the bins of a reduction");
}

static int
make_all_bins(reducing *r, uint32_t n)
{
    int err = make_bins(&r->all, n);
    for (int i = 0; i < PYRI_MAX_WORKERS && err == 0; i++)
        err = make_bins(&r->worker[i], n);
    return err;
}

static int
reduce_histogram(reducing *r, pyr_value *out)
{
    uint32_t bins = r->e->reduction.bins;
    pyri_histogram *h = &r->all.histogram;
    int err = make_all_bins(r, bins);
    if (err == 0)
        err = pass(r);
    if (err < 0)
        return err;
    for (int i = 0; i < PYRI_MAX_WORKERS; i++)
        pyri_histogram_merge(h, bins, &r->worker[i].histogram);
    out->kind = PYR_VALUE_HISTOGRAM;
    out->lo = r->e->reduction.lo;
    out->hi = r->e->reduction.hi;
    out->bins = bins;
    out->below = h->below;
    out->above = h->above;
    out->nans = h->nans;
    out->counts = r->all.bins;
    r->all.bins = NULL; /* the caller's now */
    return 0;
}

/* Of plain x the tree knows bounds, which save passes. */
static int
limit(reducing *r)
{
    pyri_array *a = r->s.array;
    pyr_stats st;
    uint64_t min, max;
    double lo, hi;
    if (!r->e->program.identity)
        return 0;
    int err = pyri_stat(a, r->s.label - a->first, r->box, PYR_STAT_BOUNDS, &st);
    if (err < 0 || isnan(st.min))
        return err;
    lo = st.min == 0 ? -0.0 : st.min; /* a zero of either sign */
    hi = st.max == 0 ? 0.0 : st.max;
    switch (r->e->program.kind) {
    case PYRI_REAL:
        memcpy(&min, &lo, sizeof min);
        memcpy(&max, &hi, sizeof max);
        break;
    case PYRI_INT:
        /* small unsigned cells are signed values, too */
        min = pyri_type_is_signed(a->schema.type) ? (uint64_t)st.exact_min.i
                                                  : st.exact_min.u;
        max = pyri_type_is_signed(a->schema.type) ? (uint64_t)st.exact_max.i
                                                  : st.exact_max.u;
        break;
    default:
        min = st.exact_min.u;
        max = st.exact_max.u;
    }
    pyri_quantile_limit(&r->all.quantile, min, max);
    return 0;
}

static int
reduce_quantile(reducing *r, pyri_value *value)
{
    pyri_quantile *q = &r->all.quantile;
    uint32_t bins = r->sends ? SENT_BINS : QUANTILE_BINS;
    int err = make_all_bins(r, bins);
    if (err < 0)
        return err;
    pyri_quantile_init(q, &r->e->reduction, r->e->program.kind, bins,
                       r->all.bins);
    err = limit(r);
    while (err == 0 && !q->done) {
        for (int i = 0; i < PYRI_MAX_WORKERS; i++) {
            sums *w = &r->worker[i];
            memset(w->bins, 0, bins * sizeof *w->bins);
            w->quantile = *q;
            w->quantile.bin = w->bins;
        }
        err = pass(r);
        for (int i = 0; i < PYRI_MAX_WORKERS && err == 0; i++)
            pyri_quantile_merge(q, &r->worker[i].quantile);
        if (err == 0)
            err = pyri_quantile_next(q);
    }
    if (err == 0)
        pyri_quantile_finish(q, value);
    return err;
}

/* --- the value ----------------------------------------------------------- */

static void
tell(const reducing *r, const pyri_value *v, pyr_value *out)
{
    pyri_reduce_op op = r->e->reduction.op;
    out->real = v->none ? NAN : v->real;
    if (v->none) {
        out->kind = PYR_VALUE_NONE;
    } else if (op == PYRI_RED_ARGMIN || op == PYRI_RED_ARGMAX) {
        out->kind = PYR_VALUE_POSITION;
        memcpy(out->at, v->at, sizeof out->at);
    } else if (v->kind == PYRI_REAL) {
        out->kind = PYR_VALUE_REAL;
    } else {
        out->kind = PYR_VALUE_INTEGER;
        out->high = (int64_t)(v->whole >> 64);
        out->low = (uint64_t)v->whole;
    }
}

static int
reduce(reducing *r, pyr_value *out)
{
    const pyri_reduction *red = &r->e->reduction;
    pyri_value v = {0};
    int err;
    if (red->op == PYRI_RED_HISTOGRAM)
        return reduce_histogram(r, out);
    if (red->op == PYRI_RED_QUANTILE) {
        err = reduce_quantile(r, &v);
    } else {
        pyri_partial_init(&r->all.partial);
        err = pass(r);
        if (err == 0)
            pyri_partial_finish(&r->all.partial, red, r->e->program.kind,
                                ndim_of(r), &v);
    }
    if (err == 0)
        tell(r, &v, out);
    return err;
}

int
pyri_reduce(pyri_array *a, pyr_version v, const pyri_box *box,
            const pyri_expr *e, const pyri_kernels *k, pyr_value *out)
{
    reducing r = {.e = e, .box = box};
    pyri_run run = pyri_run_of_box(a->schema.ndim, box);
    memset(out, 0, sizeof *out);
    out->ndim = a->schema.ndim;
    int err = pyri_sources_open(&r.s, a, v, &e->program, k);
    if (err < 0)
        return err;
    r.tiles = pyri_sys_malloc(WINDOW * sizeof *r.tiles);
    if (!r.tiles)
        err = pyri_fail_nomem("a reduction");
    if (err == 0)
        err = pyri_snapshot_check(&r.s.snap[0], &run);
    if (err == 0)
        err = pyri_errands_begin(&r.errands, &r.s, &r.sends);
    if (err == 0)
        err = reduce(&r, out);
    if (r.sends)
        pyri_errands_fini(&r.errands);
    pyri_engine_tally(a->engine, r.there, r.bytes_read - r.there);
    err = pyri_sources_explain(&r.s, err);
    out->nodes_read = r.s.nodes_read;
    out->chunks_read = r.chunks_read;
    out->bytes_read = r.bytes_read;
    free(r.all.bins);
    for (int i = 0; i < PYRI_MAX_WORKERS; i++)
        free(r.worker[i].bins);
    free(r.tiles);
    pyri_sources_close(&r.s);
    return err;
}
