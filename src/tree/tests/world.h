/*
 * tree/tests/world.h - an array with many versions, and a plain model of it:
 * who wrote each chunk, and what each cell holds.
 *
 * Every version sets all cells of the chunks that it touches to its label.
 */
#ifndef TREE_TESTS_WORLD_H
#define TREE_TESTS_WORLD_H

#include "base/checked.h"
#include "support/check.h"
#include "support/rng.h"
#include "tree/tree.h"

enum {
    VERSIONS = 30,
    SIDE = 24,   /* at most, of one axis */
    CELLS = 576, /* at most, in all */
    ARRAY = 77   /* id */
};

static const pyr_type type = PYR_U16;

typedef struct version {
    uint64_t shape[PYR_MAX_DIMS];
    pyri_form form;
    pyri_grid grid;
    pyri_claim claim;
    bool touched[CELLS];    /* by number of chunk */
    uint64_t writer[CELLS]; /* the newest label that touched the chunk */
    uint64_t cells[CELLS];  /* by number of cell */
    uint64_t root;          /* the newest label that touched anything */
    pyri_flights below;     /* as the ticket told */
    bool complete;
} version;

typedef struct world {
    rng r;
    pyri_engine *engine;
    pyri_lineage lineage;
    int ndim;
    uint64_t chunk[PYR_MAX_DIMS];
    uint64_t side[PYR_MAX_DIMS]; /* no shape is longer */
    version v[VERSIONS + 1];
    uint64_t taken, latest;
    int predicted, unknown_roots, deeper, clipped; /* so many times */
    bool flats; /* versions with flats are among them */
    int flat, flat_shared, sheets; /* so many entries of versions */
} world;

/* --- cells and chunks by number ------------------------------------------ */

static uint64_t
cell_number(const world *w, const uint64_t *cell)
{
    uint64_t n = 0;
    for (int d = 0; d < w->ndim; d++)
        n = n * w->side[d] + cell[d];
    return n;
}

static void
cell_of(const world *w, uint64_t n, uint64_t *cell)
{
    for (int d = w->ndim - 1; d >= 0; d--) {
        cell[d] = n % w->side[d];
        n /= w->side[d];
    }
}

static uint64_t
all_cells(const world *w)
{
    uint64_t n = 1;
    for (int d = 0; d < w->ndim; d++)
        n *= w->side[d];
    return n;
}

static bool
inside(const world *w, const uint64_t *cell, const uint64_t *shape)
{
    for (int d = 0; d < w->ndim; d++)
        if (cell[d] >= shape[d])
            return false;
    return true;
}

/* Chunks are numbered by their first cell, short ones at the end too. */
static uint64_t
chunk_number(const world *w, const uint64_t *pos)
{
    uint64_t first[PYR_MAX_DIMS];
    for (int d = 0; d < w->ndim; d++)
        first[d] = pos[d] * w->chunk[d];
    return cell_number(w, first);
}

static uint64_t
chunk_of(const world *w, const uint64_t *cell, uint64_t *pos)
{
    for (int d = 0; d < w->ndim; d++)
        pos[d] = cell[d] / w->chunk[d];
    return chunk_number(w, pos);
}

/* --- the model ----------------------------------------------------------- */

static bool
in_run(const world *w, const pyri_run *r, const uint64_t *cell)
{
    for (int d = 0; d < w->ndim; d++) {
        bool hit = false;
        for (uint64_t i = 0; i < r->count[d]; i++) {
            uint64_t from = r->start[d] + i * r->stride[d];
            hit |= cell[d] >= from && cell[d] < from + r->block[d];
        }
        if (!hit)
            return false;
    }
    return true;
}

static void
pick_run(world *w, pyri_run *run)
{
    for (int d = 0; d < w->ndim; d++) {
        run->start[d] = rng_below(&w->r, w->side[d]);
        run->block[d] = rng_from(&w->r, 1, 1 + w->side[d] / 4);
        run->stride[d] = run->block[d] + rng_below(&w->r, 6);
        run->count[d] = rng_once_in(&w->r, 2) ? 1 : rng_from(&w->r, 1, 4);
    }
}

/* Small or large, so that trees grow, some by more than a level at once. */
static void
pick_shape(world *w, const uint64_t *before, uint64_t *shape)
{
    bool large = rng_once_in(&w->r, 4);
    for (int d = 0; d < w->ndim; d++) {
        shape[d] = rng_once_in(&w->r, 15)   ? 0
                   : large                  ? w->side[d]
                   : rng_once_in(&w->r, 2) ? before[d]
                                           : rng_from(&w->r, 1, w->side[d]);
        if (!large && w->taken < 8)
            shape[d] = pyri_min64(shape[d], 4);
    }
}

/* What the version makes of the one before it. */
static void
write_model(world *w, uint64_t label)
{
    version *v = &w->v[label], *was = v - 1;
    uint64_t cell[PYR_MAX_DIMS], pos[PYR_MAX_DIMS];
    memcpy(v->writer, was->writer, sizeof v->writer);
    v->root = was->root;
    for (uint64_t n = 0; n < all_cells(w); n++) {
        cell_of(w, n, cell);
        bool shown = inside(w, cell, v->shape) && inside(w, cell, was->shape);
        v->cells[n] = shown ? was->cells[n] : 0;
        bool claimed = false;
        for (size_t i = 0; i < v->claim.n; i++)
            claimed |= in_run(w, &v->claim.runs[i], cell);
        if (claimed && inside(w, cell, v->shape)) {
            uint64_t c = chunk_of(w, cell, pos);
            v->touched[c] = true;
            v->writer[c] = v->root = label;
        }
    }
    for (uint64_t n = 0; n < all_cells(w); n++) {
        cell_of(w, n, cell);
        if (inside(w, cell, v->shape) && v->touched[chunk_of(w, cell, pos)])
            v->cells[n] = label;
    }
}

/* --- taking versions ----------------------------------------------------- */

static void
begin(world *w, uint64_t seed)
{
    static const uint64_t sides[] = {0, SIDE, SIDE, 8};
    *w = (world){.r = rng_of(seed), .lineage = {1, {{ARRAY, 0}}}};
    w->ndim = (int)rng_from(&w->r, 1, 3);
    for (int d = 0; d < w->ndim; d++) {
        w->side[d] = w->ndim == 1 ? CELLS / 2 : sides[w->ndim];
        w->chunk[d] = rng_once_in(&w->r, 2) ? 1 : rng_from(&w->r, 1, 3);
    }
    version *v = &w->v[0];
    for (int d = 0; d < w->ndim; d++)
        v->shape[d] = rng_from(&w->r, 1, 4);
    OK(pyri_form_init(&v->form, w->ndim, v->shape, w->chunk));
    OK(pyri_engine_open("mem:", PYR_OPEN_CREATE, NULL, &w->engine));
    const pyri_edit edit = {.kind = PYRI_EDIT_ARRAY,
                            .array = ARRAY,
                            .ndim = w->ndim,
                            .shape = v->shape};
    OK(pyri_engine_edit(w->engine, &edit, 1));
    pyri_grid_init(&v->grid, &v->form, w->chunk);
    v->complete = true;
}

static void
end(world *w)
{
    for (uint64_t i = 0; i <= w->taken; i++) {
        pyri_form_fini(&w->v[i].form);
        pyri_claim_fini(&w->v[i].claim);
        pyri_flights_fini(&w->v[i].below);
    }
    pyri_engine_close(w->engine);
}

static void
take(world *w)
{
    uint64_t label = ++w->taken;
    version *v = &w->v[label];
    pyri_buf claim = {0};
    pyri_ticket ticket;
    bool resize = rng_once_in(&w->r, 4);
    v->claim.ndim = w->ndim;
    bool many = rng_once_in(&w->r, 6);
    for (uint64_t n = rng_below(&w->r, many ? 60 : 4); n; n--) {
        pyri_run run;
        pick_run(w, &run);
        for (int d = 0; d < w->ndim && many; d++)
            run.block[d] = run.count[d] = 1;
        OK(pyri_claim_add(&v->claim, &run));
    }
    pyri_claim_encode(&v->claim, &claim);
    memcpy(v->shape, v[-1].shape, sizeof v->shape);
    if (resize)
        pick_shape(w, v[-1].shape, v->shape);
    const pyri_take how = {.array = ARRAY,
                           .claim = {claim.data, claim.size},
                           .shape = resize ? v->shape : NULL,
                           .grow_axis = -1};
    OK(pyri_engine_take(w->engine, &how, &ticket, &v->below));
    REQUIRE(ticket.version == label && v->below.base == w->latest);
    pyri_buf_fini(&claim);
    OK(pyri_form_copy(&v->form, &v[-1].form));
    OK(pyri_form_change(&v->form, label, v->shape, w->chunk));
    pyri_grid_init(&v->grid, &v->form, w->chunk);
    write_model(w, label);
}

/* --- trees, and what they should say ------------------------------------- */

/* The tree of a version, seen through the grid of the same or a later one. */
static pyri_tree
tree_of(world *w, pyri_reader *r, uint64_t label, const pyri_grid *grid)
{
    const version *v = &w->v[label];
    return (pyri_tree){.engine = w->engine,
                       .reader = r,
                       .lineage = &w->lineage,
                       .form = &v->form,
                       .grid = grid,
                       .type = type,
                       .root = v->root,
                       .root_level = w->v[v->root].grid.levels};
}

/* The cells of a box as the model has them. */
static pyri_summary
model_sum(const world *w, uint64_t label, const pyri_box *box)
{
    pyri_summary s;
    uint64_t cell[PYR_MAX_DIMS];
    pyri_summary_init(&s);
    for (uint64_t n = 0; n < all_cells(w); n++) {
        bool in = true;
        cell_of(w, n, cell);
        for (int d = 0; d < w->ndim; d++)
            in &= cell[d] >= box->lo[d] && cell[d] < box->hi[d];
        if (in && inside(w, cell, w->v[label].shape)) {
            uint16_t value = (uint16_t)w->v[label].cells[n];
            pyri_summary_add(&s, type, 0, &value, 1);
        }
    }
    return s;
}

static bool
same_sum(const pyri_summary *a, const pyri_summary *b)
{
    return a->count == b->count && a->sum_int == b->sum_int &&
           a->not_fill == b->not_fill &&
           (a->count == 0 || (a->min == b->min && a->max == b->max));
}

static void
shown_of(const world *w, uint64_t label, const uint64_t *pos, pyri_box *out)
{
    const version *v = &w->v[label];
    pyri_box shape = {.lo = {0}};
    memcpy(shape.hi, v->shape, sizeof v->shape);
    pyri_grid_domain(&v->grid, 0, pos, out);
    pyri_box_intersect(w->ndim, out, &shape, out);
}

/* Is that whose leaf version `v` has? Flats leave out what was cut off. */
static bool
is_writer(const world *w, uint64_t label, uint64_t v, uint64_t chunk)
{
    return label == w->v[v].writer[chunk] || (w->flats && label == 0);
}

/* --- flats --------------------------------------------------------------- */

/* Some of the touches become sheets. */
static inline size_t
sheets_of(world *w, const version *v, pyri_build *b, pyri_sheet *sheets)
{
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < b->ntouches; i++) {
        if (!rng_once_in(&w->r, 2)) {
            b->touches[kept++] = b->touches[i];
            continue;
        }
        sheets[n] = (pyri_sheet){.bits = b->label};
        REQUIRE(pyri_grid_shown(&v->grid, 0, b->touches[i].pos,
                                &sheets[n].box));
        n++;
    }
    b->ntouches = kept;
    w->sheets += (int)n;
    uint64_t nodes;
    OK(pyri_sheets_nodes(b->grid, sheets, n, 1000, &nodes));
    CHECK(n ? nodes >= 1 : nodes == 0);
    return n;
}

static inline void
sum_flat(const pyri_tree *t, const pyri_node *node, unsigned slot,
         int level, const uint64_t *pos, pyri_summary *s)
{
    pyri_flat f;
    pyri_box domain, shown, inside_;
    uint64_t cells = 0;
    OK(pyri_node_flat(node, slot, &f));
    pyri_grid_domain(t->grid, level, pos, &domain);
    if (pyri_flat_shown(&f, t->form, &domain, &shown))
        cells = pyri_box_cells(t->grid->ndim, &shown);
    pyri_summary_add_same(s, type, 0, f.bits, cells);
    if (pyri_grid_shown(t->grid, level, pos, &inside_))
        pyri_summary_add_same(s, type, 0, 0,
                              pyri_box_cells(t->grid->ndim, &inside_) - cells);
}

/* Are they in the order of their keys? An engine stores them side by side. */
static inline bool
in_order(const pyri_build *b)
{
    for (size_t i = 1; i < b->nnodes; i++) {
        pyri_bytes x = b->nodes[i - 1].key, y = b->nodes[i].key;
        size_t size = x.size < y.size ? x.size : y.size;
        int order = memcmp(x.data, y.data, size);
        if (order > 0 || (order == 0 && x.size >= y.size))
            return false;
    }
    return true;
}

#endif
