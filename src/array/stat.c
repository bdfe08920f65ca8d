/*
 * array/stat.c - statistics of a box from the summaries in the tree. Cells are
 * read only where survey.c finds none.
 */
#include "array/draft.h"
#include "array/survey.h"

#include "base/checked.h"

#include <math.h>
#include <string.h>

typedef struct stating {
    pyri_snapshot *snap;
    pyri_fetcher fetcher;
    pyri_box box;
    bool bounds; /* only min and max, and only bounds of them */
    bool vague;  /* a bound is not known: say the range of the type */
    pyri_summary sum;
    uint64_t chunks_read;
} stating;

static const pyri_schema *
schema_of(const stating *s)
{
    return &s->snap->array->schema;
}

static int
add_same(void *ctx, const pyri_box *cells, uint64_t bits)
{
    stating *s = ctx;
    const pyri_schema *sc = schema_of(s);
    pyri_summary_add_same(&s->sum, sc->type, sc->fill, bits,
                          pyri_box_cells(sc->ndim, cells));
    return 0;
}

static bool
add_known(void *ctx, const pyri_box *cells, const pyri_summary *sum)
{
    stating *s = ctx;
    pyri_summary_merge(&s->sum, schema_of(s)->type, sum);
    return true;
}

/* Bounds of a chunk that is cut, or whose summary is not exact any more, or
 * not known. */
static int
add_bounds(stating *s, const uint64_t *pos, const pyri_node *node)
{
    const pyri_schema *sc = schema_of(s);
    const pyri_tree *t = &s->snap->tree;
    pyri_about about;
    pyri_box domain;
    int err = pyri_node_about(node, sc->type, &about);
    if (err < 0)
        return err;
    pyri_summary now = about.summary;
    pyri_grid_domain(t->grid, 0, pos, &domain);
    if (about.known && pyri_summary_now(t->form, sc->type, sc->fill,
                                        about.label, &domain, &now)) {
        pyri_summary_merge(&s->sum, sc->type, &now);
        return 0;
    }
    s->vague |= !about.known;
    if (about.known)
        pyri_summary_merge(&s->sum, sc->type, &about.summary);
    pyri_summary_add_same(&s->sum, sc->type, sc->fill, sc->fill, 1);
    return 0;
}

static int
add_leaf(void *ctx, const pyri_box *cells, const uint64_t *pos,
         const pyri_node *node)
{
    stating *s = ctx;
    pyri_chain chain = {0};
    if (s->bounds)
        return add_bounds(s, pos, node);
    int err = pyri_chain_load(&chain, &s->snap->tree, pos, node, cells, 0);
    if (err == 0)
        err = pyri_sum_cells(&s->fetcher, &chain, cells, &s->sum);
    s->chunks_read++;
    pyri_chain_fini(&chain);
    return err;
}

/* --- the answer ---------------------------------------------------------- */

static double
exact(pyr_type type, uint64_t bits, int64_t *i, uint64_t *u, double *f)
{
    double value = pyri_cell_double(type, bits);
    if (pyri_type_is_float(type))
        *f = value;
    else if (type == PYR_I64)
        *i = (int64_t)bits;
    else if (pyri_type_is_signed(type))
        *i = (int64_t)value;
    else
        *u = bits;
    return value;
}

static double
sum_of(pyr_type type, const pyri_summary *s)
{
    if (pyri_type_is_float(type))
        return s->sum + s->sum_lost;
    return pyri_type_is_signed(type) ? (double)(__int128)s->sum_int
                                     : (double)s->sum_int;
}

/* The least and the greatest cell that a type can hold. */
static void
range_of(pyr_type type, uint64_t *min, uint64_t *max)
{
    unsigned bits = 8 * (unsigned)pyri_type_size(type);
    uint64_t ones = bits == 64 ? UINT64_MAX : (1ull << bits) - 1;
    double inf64[2] = {-INFINITY, INFINITY};
    float inf32[2] = {-INFINITY, INFINITY};
    *min = 0;
    *max = ones;
    if (pyri_type_is_signed(type)) {
        *min = 1ull << (bits - 1);
        *max = ones >> 1;
    } else if (type == PYR_F64) {
        *min = pyri_cell_load(type, &inf64[0]);
        *max = pyri_cell_load(type, &inf64[1]);
    } else if (type == PYR_F32) {
        *min = pyri_cell_load(type, &inf32[0]);
        *max = pyri_cell_load(type, &inf32[1]);
    }
}

static void
answer(const stating *s, pyr_stats *out)
{
    const pyri_summary *sum = &s->sum;
    pyr_type type = schema_of(s)->type;
    uint64_t numbers = sum->count - sum->nans;
    out->min = out->max = out->mean = NAN;
    out->count = s->bounds ? pyri_box_cells(schema_of(s)->ndim, &s->box)
                           : sum->count;
    uint64_t min = sum->min, max = sum->max;
    if (s->vague)
        range_of(type, &min, &max);
    if (numbers || s->vague) {
        out->min = exact(type, min, &out->exact_min.i, &out->exact_min.u,
                         &out->exact_min.f);
        out->max = exact(type, max, &out->exact_max.i, &out->exact_max.u,
                         &out->exact_max.f);
    }
    if (s->bounds)
        return;
    out->nans = sum->nans;
    out->not_fill = sum->not_fill;
    out->sum = sum_of(type, sum);
    out->sum_squares = sum->squares;
    out->all_equal = sum->equal && sum->count > 0;
    if (numbers)
        out->mean = out->sum / (double)numbers;
}

int
pyri_stat(pyri_array *a, pyr_version v, const pyri_box *box, unsigned flags,
          pyr_stats *out)
{
    pyri_snapshot snap;
    memset(out, 0, sizeof *out);
    int err = pyri_snapshot_open(a, v, &snap);
    if (err < 0)
        return err;
    stating s = {.snap = &snap,
                 .fetcher = {.array = a, .reader = snap.reader},
                 .box = *box,
                 .bounds = flags & PYR_STAT_BOUNDS};
    pyri_run run = pyri_run_of_box(a->schema.ndim, box);
    pyri_summary_init(&s.sum);
    snap.tree.nodes_read = &out->nodes_read;
    err = pyri_snapshot_check(&snap, &run);
    pyri_survey survey = {.snap = &snap,
                          .box = *box,
                          .ctx = &s,
                          .known = add_known,
                          .same = add_same,
                          .leaf = add_leaf};
    if (err == 0)
        err = pyri_survey_run(&survey);
    if (err == 0)
        answer(&s, out);
    out->chunks_read = s.chunks_read;
    pyri_fetcher_fini(&s.fetcher);
    pyri_snapshot_close(&snap);
    return pyri_snapshot_explain(a, snap.label, err);
}
