/*
 * array/sources.c - cells of several snapshots, for programs to run on.
 */
#include "array/sources.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

/* --- opening ------------------------------------------------------------- */

int
pyri_sources_open(pyri_sources *s, pyri_array *a, pyr_version v,
                  const pyri_program *p, const pyri_kernels *k)
{
    *s = (pyri_sources){.array = a,
                        .program = p,
                        .kernels = k,
                        .reads_x = p->uses_x,
                        .first = p->uses_x || k->n ? 0 : 1};
    for (int i = 0; i < k->n; i++)
        s->reads_x |= k->bound[i].kernel->halo == 0;
    s->snap = pyri_sys_calloc(p->sources, sizeof *s->snap);
    if (!s->snap)
        return pyri_fail_nomem("the snapshots that are read");
    int err = 0;
    for (; s->n < p->sources; s->n++) {
        if (pyri_maker(s, s->n))
            continue;
        err = pyri_snapshot_open(a, s->n ? p->version[s->n] : v,
                                 &s->snap[s->n]);
        if (err < 0)
            break;
        s->snap[s->n].tree.nodes_read = &s->nodes_read;
    }
    if (err < 0)
        pyri_sources_close(s);
    else
        s->label = s->snap[0].label;
    return err;
}

void
pyri_sources_close(pyri_sources *s)
{
    for (int i = 0; i < s->n; i++)
        if (!pyri_maker(s, i))
            pyri_snapshot_close(&s->snap[i]);
    free(s->snap);
    s->snap = NULL;
    s->n = 0;
}

int
pyri_sources_explain(const pyri_sources *s, int err)
{
    for (int i = s->first; i < s->n && err == PYR_ECORRUPT; i++)
        if (!pyri_maker(s, i))
            err = pyri_snapshot_explain(s->array, s->snap[i].label, err);
    return err;
}

/* --- walking ------------------------------------------------------------- */

typedef struct walking {
    pyri_sources *s;
    pyri_region_fn *each;
    void *ctx;
    int source; /* that is being looked at */
    uint64_t values[PYRI_OP_MAX_SOURCES];
} walking;

static int refine(walking *w, const pyri_box *box);

/* A region of one value in this source: how is it in the others? */
static int
go_on(walking *w, const pyri_box *box, uint64_t bits)
{
    int at = w->source;
    w->values[w->source++] = bits;
    while (w->source < w->s->n && pyri_maker(w->s, w->source))
        w->source++;
    int err = refine(w, box);
    w->source = at;
    return err;
}

static int
found(void *ctx, const pyri_hit *hit)
{
    walking *w = ctx;
    return hit->leaf ? w->each(w->ctx, &hit->box, NULL)
                     : go_on(w, &hit->box, hit->bits);
}

static int
refine(walking *w, const pyri_box *box)
{
    const pyri_array *a = w->s->array;
    pyri_box shape = {.lo = {0}}, inside, rest[2 * PYR_MAX_DIMS];
    int ndim = a->schema.ndim;
    if (w->source == w->s->n)
        return pyri_made_walk(w->s, box, w->values, w->each, w->ctx);
    const pyri_snapshot *snap = &w->s->snap[w->source];
    memcpy(shape.hi, snap->grid.shape, sizeof shape.hi);
    if (!pyri_box_intersect(ndim, box, &shape, &inside))
        return go_on(w, box, a->schema.fill);
    pyri_run run = pyri_run_of_box(ndim, &inside);
    int err = pyri_tree_find(&snap->tree, &run, found, w);
    int n = pyri_box_subtract(ndim, box, &shape, rest);
    for (int i = 0; i < n && err == 0; i++)
        err = go_on(w, &rest[i], a->schema.fill);
    return err;
}

int
pyri_sources_walk(pyri_sources *s, const pyri_box *box, pyri_region_fn *each,
                  void *ctx)
{
    walking w = {.s = s, .each = each, .ctx = ctx, .source = s->first};
    return pyri_box_empty(s->array->schema.ndim, box) ? 0 : refine(&w, box);
}

/* --- loading ------------------------------------------------------------- */

/* A region of one value. There may be several: an edge of a flat can go
 * through the chunk. */
static int
hold_same(pyri_holding *h, const pyri_hit *hit)
{
    pyri_frag piece = {.version = UINT64_MAX, /* no cut is newer */
                       .kind = PYRI_FRAG_SAME,
                       .bits = hit->bits};
    pyri_box_copy(h->tree->grid->ndim, &piece.box, &hit->box);
    h->same = h->chain.n == 0 || (h->same && h->bits == hit->bits);
    h->bits = hit->bits;
    return pyri_chain_add(&h->chain, h->tree->form, &piece);
}

static int
hold(void *ctx, const pyri_hit *hit)
{
    pyri_holding *h = ctx;
    if (!hit->leaf)
        return hold_same(h, hit);
    h->same = false;
    h->leaf = true;
    int err = pyri_chain_load(&h->chain, h->tree, hit->pos, &hit->node,
                              &hit->box, 0);
    if (err < 0)
        return err;
    int ndim = h->tree->grid->ndim, kept = 0;
    for (int i = 0; i < h->chain.n; i++) /* what shows nothing here is gone */
        if (pyri_box_overlaps(ndim, &h->chain.links[i].shown, &hit->box))
            h->chain.links[kept++] = h->chain.links[i];
    h->chain.n = kept;
    const pyri_link *top = h->chain.links;
    if (h->chain.n == 0) {
        h->same = true;
        h->bits = h->tree->fill;
    } else if (top->frag.kind == PYRI_FRAG_SAME && !top->frag.masked &&
               pyri_box_contains(ndim, &top->shown, &hit->box)) {
        h->same = true;
        h->bits = top->frag.bits;
    }
    return 0;
}

/* Find out what source k has there; `tree` is a copy with our own reader. */
static int
look(const pyri_sources *s, int k, const pyri_box *box, pyri_tree *tree,
     pyri_holding *h)
{
    int ndim = s->array->schema.ndim;
    pyri_box shape = {.lo = {0}};
    const pyri_snapshot *snap = &s->snap[k];
    memcpy(shape.hi, snap->grid.shape, sizeof shape.hi);
    pyri_reader *reader = tree->reader;
    *tree = snap->tree;
    tree->reader = reader;
    tree->nodes_read = NULL; /* not ours to count */
    h->tree = tree;
    h->same = true;
    h->bits = s->array->schema.fill;
    if (!pyri_box_intersect(ndim, box, &shape, &h->inside))
        return 0;
    pyri_run run = pyri_run_of_box(ndim, &h->inside);
    int err = pyri_tree_find(tree, &run, hold, h);
    if (err == 0 && h->same && h->bits != s->array->schema.fill &&
        !pyri_box_contains(ndim, &h->inside, box))
        h->same = false; /* of that value inside, fill outside */
    return err;
}

static int
make_room(const pyri_sources *s, const pyri_box *box, int k, pyri_loaded *out)
{
    const pyri_schema *sc = &s->array->schema;
    uint64_t bytes;
    if (pyri_mul64(pyri_box_cells(sc->ndim, box), pyri_type_size(sc->type),
                   &bytes) &&
        bytes <= SIZE_MAX / 2)
        out->cells[k] = pyri_scratch_take((size_t)bytes + 1);
    out->src[k] = out->cells[k];
    return out->cells[k] ? 0 : pyri_fail_nomem("the cells of a chunk");
}

static void
set_cells(const pyri_schema *sc, const pyri_box *box, const pyri_box *part,
          uint8_t *cells, uint64_t bits)
{
    size_t cell = pyri_type_size(sc->type);
    uint64_t extent[PYR_MAX_DIMS];
    for (int d = 0; d < sc->ndim; d++)
        extent[d] = part->hi[d] - part->lo[d];
    pyri_mem to = pyri_mem_dense(sc->ndim, cell, box, cells);
    pyri_set(sc->ndim, cell, extent,
             pyri_mem_move(sc->ndim, to, box->lo, part->lo), bits);
}

static int
read_cells(const pyri_sources *s, pyri_reader *reader, const pyri_box *box,
           pyri_holding *h, uint8_t *cells, uint64_t *bytes)
{
    const pyri_schema *sc = &s->array->schema;
    size_t cell = pyri_type_size(sc->type);
    if (!pyri_box_contains(sc->ndim, &h->inside, box))
        set_cells(sc, box, box, cells, sc->fill);
    if (h->chain.n == 0) {
        set_cells(sc, box, &h->inside, cells, h->bits);
        return 0;
    }
    pyri_fetcher f = {.array = s->array, .reader = reader};
    pyri_fetch job = {
        .links = h->chain.links, .n = h->chain.n, .box = h->inside};
    job.to = pyri_mem_move(sc->ndim,
                           pyri_mem_dense(sc->ndim, cell, box, cells),
                           box->lo, h->inside.lo);
    int err = pyri_fetch_run(&f, &job, 1);
    if (h->leaf)
        *bytes += pyri_box_cells(sc->ndim, &h->inside) * cell;
    pyri_fetcher_fini(&f);
    return err;
}

static void
set_one(const pyri_sources *s, int k, uint64_t bits, pyri_loaded *out)
{
    pyri_cell_store(s->array->schema.type, out->one[k], bits);
    out->src[k] = out->one[k];
}

int
pyri_sources_fill(const pyri_sources *s, const pyri_box *box,
                  const uint64_t *values, pyri_loaded *out)
{
    const pyri_schema *sc = &s->array->schema;
    *out = (pyri_loaded){.same = pyri_program_uniform(s->program)};
    int err = 0;
    for (int k = s->first; k < s->n && out->same; k++)
        set_one(s, k, values[k], out);
    for (int k = out->same ? s->n : 0; k < s->n && err == 0; k++)
        if ((err = make_room(s, box, k, out)) == 0 && k >= s->first)
            set_cells(sc, box, box, out->cells[k], values[k]);
    return err;
}

/* Fetch what `h` holds of each source. */
static int
load(const pyri_sources *s, pyri_reader *reader, const pyri_box *box,
     pyri_holding *h, pyri_loaded *out)
{
    const pyri_schema *sc = &s->array->schema;
    int err = 0;
    for (int k = 0; k < s->n && err == 0; k++) {
        if ((err = make_room(s, box, k, out)) < 0 || k < s->first ||
            (k == 0 && !s->reads_x) || pyri_maker(s, k))
            continue;
        if (h[k].same)
            set_cells(sc, box, box, out->cells[k], h[k].bits);
        else
            err = read_cells(s, reader, box, &h[k], out->cells[k],
                             &out->bytes);
    }
    for (int k = 1; k < s->n && err == 0; k++)
        if (pyri_maker(s, k))
            err = pyri_made_cells(s, reader, pyri_maker(s, k), box,
                                  out->cells[0], out->cells[k], &out->bytes);
    return err;
}

/* Everything is of one value: no cell is read. */
static int
load_same(const pyri_sources *s, const pyri_box *box, const pyri_holding *h,
          pyri_loaded *out)
{
    int err = 0;
    for (int k = s->first; k < s->n && err == 0; k++) {
        const pyri_bound *maker = pyri_maker(s, k);
        uint64_t bits = h[k].bits;
        if (maker)
            err = pyri_made_one(s, maker, box->lo, h[0].bits, &bits);
        set_one(s, k, bits, out);
    }
    return err;
}

void
pyri_holdings_free(const pyri_sources *s, pyri_holding *h)
{
    for (int k = 0; h && k < s->n; k++)
        pyri_chain_fini(&h[k].chain);
    free(h);
}

int
pyri_sources_hold(const pyri_sources *s, pyri_reader *reader,
                  const pyri_box *box, pyri_holding **out, bool *same)
{
    pyri_holding *h = pyri_sys_calloc((size_t)s->n, sizeof *h);
    int err = h ? 0 : pyri_fail_nomem("the cells of a chunk");
    *same = true;
    for (int k = s->first; k < s->n && err == 0; k++) {
        pyri_tree tree = {.reader = reader};
        if (pyri_maker(s, k))
            continue;
        err = look(s, k, box, &tree, &h[k]);
        h[k].tree = NULL;
        *same &= h[k].same;
    }
    if (err < 0) {
        pyri_holdings_free(s, h);
        h = NULL;
    }
    *out = h;
    return err;
}

int
pyri_sources_load(const pyri_sources *s, const pyri_box *box,
                  pyri_loaded *out)
{
    pyri_engine *e = s->array->engine;
    pyri_reader *reader;
    pyri_holding *h;
    bool same;
    *out = (pyri_loaded){.same = pyri_program_uniform(s->program)};
    int err = pyri_engine_begin(e, &reader);
    if (err < 0)
        return err;
    if ((err = pyri_sources_hold(s, reader, box, &h, &same)) < 0)
        goto out;
    out->same &= same;
    if (out->same && s->kernels->n)
        err = pyri_made_same(s, reader, box, h[0].bits, &out->same);
    if (err == 0)
        err = out->same ? load_same(s, box, h, out)
                        : load(s, reader, box, h, out);
    pyri_holdings_free(s, h);
out:
    pyri_engine_end(e, reader);
    return err;
}

void
pyri_loaded_fini(pyri_loaded *l)
{
    for (int k = 0; k < PYRI_OP_MAX_SOURCES; k++) {
        pyri_scratch_give(l->cells[k]);
        l->cells[k] = NULL;
    }
}
