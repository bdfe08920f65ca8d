/*
 * array/compute.c - COMPUTE: a function of a snapshot's cells becomes a new
 * version.
 *
 * Like a write it sends its data first: each chunk's part of the box is read
 * from the sources, the program runs over it, and what comes out is stored as
 * a fragment, by as many threads as there are, one chunk each at a time. What
 * is of one value in every source is computed once and stored as a constant.
 * An engine that can run the program where the fragments are does so; what it
 * leaves is read, computed here and put.
 */
#include "array/compute.h"

#include "array/errands.h"

#include "base/checked.h"
#include "base/fault.h"
#include "base/pool.h"
#include "base/sys.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALONE = 1 << 20, /* bytes that are not worth waking a worker */
    TRIES = 5
};

typedef struct computing {
    pyri_draft d;
    pyri_sources *s;
    const pyri_box *box;
    pyri_packer packers[PYRI_MAX_WORKERS];
    uint64_t there;        /* bytes of cells that stayed where they are, */
    _Atomic uint64_t here; /* and that were read or put from here */
    char message[700]; /* that the draft may point to */
} computing;

/* --- a chunk ------------------------------------------------------------- */

int
pyri_compute_same(const pyri_sources *s, const uint64_t *at,
                  const void *const *src, uint64_t *bits)
{
    const pyri_schema *sc = &s->array->schema;
    uint8_t cell[8] = {0};
    pyri_box one = {.lo = {0}};
    for (int d = 0; d < sc->ndim; d++) {
        one.lo[d] = at[d];
        one.hi[d] = at[d] + 1;
    }
    int err = pyri_program_run(s->program, sc->ndim, &one, src, sc->type, cell);
    if (err == 0 && s->handlers)
        err = pyri_handlers_run(s->handlers, &one, cell);
    *bits = pyri_cell_load(sc->type, cell);
    return err;
}

/* The part of the box that is in a chunk. */
static void
part_of(const pyri_schema *sc, const pyri_box *box, const uint64_t *pos,
        pyri_box *out)
{
    for (int d = 0; d < sc->ndim; d++) {
        uint64_t lo = pos[d] * sc->chunk[d], hi;
        if (!pyri_add64(lo, sc->chunk[d], &hi))
            hi = UINT64_MAX;
        out->lo[d] = pyri_max64(lo, box->lo[d]);
        out->hi[d] = pyri_min64(hi, box->hi[d]);
    }
}

static int
store_cells(computing *c, const pyri_box *part, pyri_loaded *l,
            pyri_packer *packer, pyri_painted *out)
{
    const pyri_array *a = c->d.array;
    const pyri_schema *sc = &a->schema;
    uint64_t bits;
    int err;
    if (l->same) {
        err = pyri_compute_same(c->s, part->lo, l->src, &bits);
        pyri_frag_same(&a->style, part, bits, out->frags, &out->own);
        return err;
    }
    err = pyri_program_run(c->s->program, sc->ndim, part, l->src, sc->type,
                           l->cells[0]);
    if (err == 0 && c->s->handlers)
        err = pyri_handlers_run(c->s->handlers, part, l->cells[0]);
    if (err < 0)
        return err;
    pyri_mem mem = pyri_mem_dense(sc->ndim, pyri_type_size(sc->type), part,
                                  l->cells[0]);
    return pyri_paint_frag(&c->d, packer, part, mem, NULL, 0, out->frags,
                           &out->own);
}

static int
compute_chunk(void *ctx, size_t i, unsigned worker)
{
    computing *c = ctx;
    pyri_painted *out = &c->d.painted[i];
    pyri_box part = {.lo = {0}};
    pyri_loaded loaded;
    if (out->n)
        return 0; /* it was done where the fragments are */
    part_of(&c->d.array->schema, c->box, out->pos, &part);
    pyri_summary_init(&out->own);
    if (!(out->frags = pyri_sys_malloc(sizeof *out->frags)))
        return pyri_fail_nomem("the fragments of a computed version");
    int err = pyri_sources_load(c->s, &part, &loaded);
    if (err == 0)
        err = store_cells(c, &part, &loaded, &c->packers[worker], out);
    pyri_loaded_fini(&loaded);
    if (err == 0) {
        atomic_fetch_add(&c->here, loaded.bytes + out->frags[0].stored);
        out->n = 1;
        PYRI_FAULT("compute.chunk");
    }
    return err;
}

/* --- where the fragments are --------------------------------------------- */

static int
take_errand(const pyri_errand *e, pyri_painted *out)
{
    if (!(out->frags = pyri_sys_malloc(sizeof *out->frags)))
        return pyri_fail_nomem("the fragments of a computed version");
    out->frags[0] = e->frag;
    out->own = e->sum;
    out->n = 1;
    return 0;
}

/* All that came to be is noted, also if something else goes wrong. */
static int
send_errands(computing *c, pyri_errands *e)
{
    int err = pyri_errands_compute(e);
    for (size_t i = 0; i < e->n; i++) {
        const pyri_frag *f = &e->list[i].frag;
        if (!e->list[i].done || f->kind == PYRI_FRAG_SAME)
            continue;
        pyri_blob blob = {{f->ref[0], f->ref[1]}, pyri_frag_blob_size(f)};
        int bad = pyri_stash_add(&c->d, &blob, 1);
        if (bad < 0)
            e->list[i].done = false;
        err = bad < 0 ? bad : err;
    }
    for (size_t i = 0; i < e->n && err == 0; i++)
        if (e->list[i].done) {
            c->there += e->bytes[i];
            err = take_errand(&e->list[i], &c->d.painted[e->tag[i]]);
        }
    pyri_errands_clear(e);
    return err;
}

static int
compute_away(computing *c)
{
    pyri_errands e;
    bool can;
    int err = pyri_errands_begin(&e, c->s, &can);
    if (!can)
        return err;
    for (size_t i = 0; i < c->d.n && err == 0; i++) {
        pyri_box part = {.lo = {0}};
        part_of(&c->d.array->schema, c->box, c->d.painted[i].pos, &part);
        err = pyri_errands_add(&e, &part, i);
        PYRI_FAULT("compute.chunk");
        if (err == 0 && pyri_errands_full(&e))
            err = send_errands(c, &e);
    }
    if (err == 0)
        err = send_errands(c, &e);
    pyri_errands_fini(&e);
    return err;
}

/* --- the version --------------------------------------------------------- */

static int
paint(computing *c, const pyri_places *places)
{
    const pyri_schema *sc = &c->d.array->schema;
    uint64_t cells = pyri_box_cells(sc->ndim, c->box);
    if (places->n == 0)
        return 0;
    c->d.painted = pyri_sys_calloc(places->n, sizeof *c->d.painted);
    if (!c->d.painted)
        return pyri_fail_nomem("the chunks of a computed version");
    c->d.n = c->d.room = places->n;
    for (size_t i = 0; i < places->n; i++)
        memcpy(c->d.painted[i].pos, places->pos[i], sizeof *places->pos);
    int err = compute_away(c);
    return err < 0 ? err
                   : pyri_pool_run_if(
                         cells > ALONE / pyri_type_size(sc->type), places->n,
                         compute_chunk, c);
}

/* Is anything in flight? With `wait`, not any more. */
static int
look_around(pyri_array *a, bool wait, bool *busy)
{
    pyri_flights all = {0};
    int err = pyri_engine_flights(a->engine, a->id, &all);
    uint64_t last = all.base + all.n;
    *busy = all.n > 0;
    pyri_flights_fini(&all);
    if (err == 0 && *busy && wait)
        err = pyri_commit_wait(a, last, -1);
    return err;
}

/*
 * Which chunks to compute, and what to claim. To leave out what has its value
 * already saves most, but it may be for nothing if others are at work: so that
 * is tried again only if there is no other way.
 */
static int
plan(computing *c, bool again, pyri_places *places)
{
    const pyri_schema *sc = &c->d.array->schema;
    uint64_t chunks = pyri_chunks_touched(sc, c->box);
    bool huge = chunks > PYRI_COMPUTE_MAX_CHUNKS, busy;
    pyri_run run = pyri_run_of_box(sc->ndim, c->box);
    c->d.claim.ndim = sc->ndim;
    int err = 0;
    if (chunks <= PYRI_FEW_CHUNKS) {
        err = pyri_places_add(places, sc, c->box);
        return err == 0 && chunks ? pyri_claim_add(&c->d.claim, &run) : err;
    }
    if (!again && (err = look_around(c->d.array, huge, &busy)) < 0)
        return err;
    bool keep = !again && (huge || !busy);
    err = pyri_spare(&c->d, c->s, c->box, keep, places);
    if (err == PYR_EUNSUPPORTED && !keep &&
        (err = look_around(c->d.array, true, &busy)) == 0)
        err = pyri_spare(&c->d, c->s, c->box, true, places);
    return err;
}

static int
check_box(pyri_array *a, const pyri_sources *s, const pyri_box *box,
          const pyri_handlers **h)
{
    pyri_run run = pyri_run_of_box(a->schema.ndim, box);
    uint64_t label, shape[PYR_MAX_DIMS];
    int err = pyri_snapshot_check(&s->snap[0], &run);
    if (err < 0 || (err = pyri_handlers_begin(a, &label, shape, h)) < 0)
        return err;
    return pyri_shape_check(a, label, shape, &run);
}

static int
attempt(computing *c, bool again, const pyri_write_how *how, pyr_version *made)
{
    pyri_places places = {0};
    char box[512];
    int err = plan(c, again, &places);
    if (err == 0)
        err = paint(c, &places);
    err = pyri_sources_explain(c->s, err);
    if (err == 0 && c->d.kept.n && !c->d.message) {
        snprintf(c->message, sizeof c->message,
                 "computed over %s; cells outside the boxes that are listed "
                 "had their values already",
                 pyri_box_text(c->d.claim.ndim, c->box, box, sizeof box));
        c->d.message = c->message;
    }
    if (err == 0)
        pyri_sheets_settle(&c->d);
    if (err == 0)
        err = pyri_draft_publish(&c->d, NULL, how, made);
    free(places.pos);
    return err;
}

int
pyri_compute(pyri_array *a, pyr_version v, const pyri_box *box,
             const pyri_expr *e, const pyri_kernels *k, const char *canon,
             const pyri_write_how *how, pyr_version *made)
{
    pyri_sources s;
    pyri_program program = e->program;
    const pyri_handlers *h = NULL;
    bool again = false;
    PYRI_FAULT("write.begin");
    int err = pyri_sources_open(&s, a, v, &program, k);
    if (err < 0)
        return err;
    err = check_box(a, &s, box, &h);
    s.handlers = h;
    if (h && !pyri_handlers_uniform(h))
        program.axes |= 1; /* what comes out depends on where it is */
    for (int i = 0; err == 0 && i < TRIES; i++) {
        computing c = {.s = &s, .box = box};
        c.d = (pyri_draft){.array = a,
                           .kind = PYR_KIND_COMPUTE,
                           .message = how->message,
                           .source = s.label,
                           .expression = canon};
        if (h)
            err = pyri_draft_handle(&c.d, pyri_handlers_again(h));
        if (err == 0)
            err = attempt(&c, again, how, made);
        again = err < 0 && c.d.disturbed;
        pyri_engine_tally(a->engine, c.there, c.here);
        for (int w = 0; w < PYRI_MAX_WORKERS; w++)
            pyri_packer_fini(&c.packers[w]);
        pyri_draft_fini(&c.d);
        if (!again)
            break;
        if (i + 1 < TRIES)
            err = 0;
    }
    pyri_handlers_end(h);
    pyri_sources_close(&s);
    return err;
}
