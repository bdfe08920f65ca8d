/*
 * array/stat.c - statistics of a box from the summaries in the tree.
 *
 * A subtree that lies inside the box is answered by its summary, where it is
 * known; else its children are asked. Cells are read only of chunks that the
 * edge of the box cuts, and of chunks that know no summary: they were written
 * in part while the version before was still in flight.
 */
#include "array/draft.h"

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

static void
add_same(stating *s, const pyri_box *box, uint64_t bits)
{
    const pyri_schema *sc = schema_of(s);
    pyri_summary_add_same(&s->sum, sc->type, sc->fill, bits,
                          pyri_box_cells(sc->ndim, box));
}

/* Merge what a node says of itself, if it may; all of its cells are wanted
 * (or only bounds are). */
static bool
add_about(stating *s, const pyri_about *about, const pyri_box *domain)
{
    const pyri_schema *sc = schema_of(s);
    pyri_summary sum = about->summary;
    if (!about->known || !pyri_summary_now(s->snap->tree.form, sc->type,
                                           sc->fill, about->label, domain,
                                           &sum))
        return false;
    pyri_summary_merge(&s->sum, sc->type, &sum);
    return true;
}

/* Bounds of a chunk whose summary is not exact any more, or not known. */
static void
add_bounds(stating *s, const pyri_about *about)
{
    const pyri_schema *sc = schema_of(s);
    s->vague |= !about->known;
    if (about->known)
        pyri_summary_merge(&s->sum, sc->type, &about->summary);
    pyri_summary_add_same(&s->sum, sc->type, sc->fill, sc->fill, 1);
}

static int
stat_leaf(stating *s, const uint64_t *pos, const pyri_node *node,
          const pyri_box *domain, const pyri_box *wanted, bool inside)
{
    const pyri_schema *sc = schema_of(s);
    pyri_about about;
    pyri_chain chain = {0};
    int err = pyri_node_about(node, sc->type, &about);
    if (err < 0)
        return err;
    if ((inside || s->bounds) && add_about(s, &about, domain))
        return 0;
    if (s->bounds) {
        add_bounds(s, &about);
        return 0;
    }
    err = pyri_chain_load(&chain, &s->snap->tree, pos, node, wanted, 0);
    if (err == 0)
        err = pyri_sum_cells(&s->fetcher, &chain, wanted, &s->sum);
    s->chunks_read++;
    pyri_chain_fini(&chain);
    return err;
}

typedef struct place {
    uint64_t label;
    int level, stored;
    uint64_t pos[PYR_MAX_DIMS];
} place;

static int stat_node(stating *s, const place *at);

/* A child, with what its parent says of it (NULL: nothing). */
static int
stat_child(stating *s, const place *at, const pyri_about *about)
{
    const pyri_schema *sc = schema_of(s);
    pyri_box domain, wanted, shown;
    pyri_grid_domain(&s->snap->grid, at->level, at->pos, &domain);
    if (!pyri_box_intersect(sc->ndim, &domain, &s->box, &wanted))
        return 0;
    pyri_grid_shown(&s->snap->grid, at->level, at->pos, &shown);
    if (at->label == 0) {
        add_same(s, &wanted, sc->fill);
        return 0;
    }
    bool inside = pyri_box_contains(sc->ndim, &s->box, &shown);
    if (about && inside && add_about(s, about, &domain))
        return 0;
    if (about && about->known && about->summary.equal) {
        pyri_summary now = about->summary; /* one value, however it is cut */
        if (pyri_summary_now(s->snap->tree.form, sc->type, sc->fill,
                             about->label, &domain, &now) &&
            now.equal) {
            add_same(s, &wanted, now.min);
            return 0;
        }
    }
    return stat_node(s, at);
}

static int
stat_node(stating *s, const place *at)
{
    const pyri_grid *g = &s->snap->grid;
    const pyri_schema *sc = schema_of(s);
    pyri_node node;
    bool open = at->stored == at->level;
    int err = 0, bits = g->norder - (at->level - 1) * PYRI_FAN_BITS;
    if (open && (err = pyri_tree_get(&s->snap->tree, at->label, at->level,
                                     at->pos, &node)) < 0)
        return err;
    if (at->level == 0) {
        pyri_box domain, wanted, shown;
        pyri_grid_domain(g, 0, at->pos, &domain);
        pyri_grid_shown(g, 0, at->pos, &shown);
        pyri_box_intersect(sc->ndim, &domain, &s->box, &wanted);
        return stat_leaf(s, at->pos, &node, &domain, &wanted,
                         pyri_box_contains(sc->ndim, &s->box, &shown));
    }
    unsigned slots = 1u << (bits < PYRI_FAN_BITS ? bits : PYRI_FAN_BITS);
    for (unsigned slot = 0; slot < slots && err == 0; slot++) {
        place child = {0, at->level - 1, at->stored, {0}};
        pyri_entry e;
        bool told = false;
        pyri_grid_child(g, at->level, at->pos, slot, child.pos);
        if (!open) {
            child.label = slot == 0 ? at->label : 0;
        } else if (node.slots >> slot & 1) {
            if ((err = pyri_node_entry(&node, slot, sc->type, &e)) < 0)
                return err;
            if ((err = pyri_node_child(&node, slot, &child.label,
                                       &child.stored)) < 0 &&
                !e.about.known)
                return err;
            err = 0;
            told = true;
        }
        err = stat_child(s, &child, told ? &e.about : NULL);
    }
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
    if (err == 0 && !pyri_box_empty(a->schema.ndim, box)) {
        place root = {snap.tree.root, snap.grid.levels, snap.tree.root_level,
                      {0}};
        err = stat_child(&s, &root, NULL);
    }
    if (err == 0)
        answer(&s, out);
    out->chunks_read = s.chunks_read;
    pyri_fetcher_fini(&s.fetcher);
    pyri_snapshot_close(&snap);
    return pyri_snapshot_explain(a, snap.label, err);
}
