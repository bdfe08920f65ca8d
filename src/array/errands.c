/*
 * array/errands.c - functions of chunks that the engine runs where their
 * fragments are.
 *
 * What an errand needs to know is in the tree: which fragments show in the box,
 * and what of each. This is looked up here; no cell is. Whatever cannot be told
 * in that way, fragments that are masked or pressed, is left to the caller.
 */
#include "array/errands.h"

#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

/* What one errand points to. */
typedef struct pyri_trip {
    pyri_holding *held;
    pyri_frag *same; /* a source of one value, as a fragment */
    pyri_errand_piece *pieces;
} trip;

/* --- the list ------------------------------------------------------------ */

static int
make_room(pyri_errands *e)
{
    e->list = pyri_sys_calloc(PYRI_ERRANDS, sizeof *e->list);
    e->tag = pyri_sys_calloc(PYRI_ERRANDS, sizeof *e->tag);
    e->bytes = pyri_sys_calloc(PYRI_ERRANDS, sizeof *e->bytes);
    e->trips = pyri_sys_calloc(PYRI_ERRANDS, sizeof *e->trips);
    return e->list && e->tag && e->bytes && e->trips
               ? 0
               : pyri_fail_nomem("a function of chunks");
}

int
pyri_errands_begin(pyri_errands *e, const pyri_sources *s, bool *can)
{
    const pyri_program *list[1 + PYRI_MAX_HANDLERS] = {s->program};
    pyri_engine *engine = s->array->engine;
    int n = 1;
    *e = (pyri_errands){.s = s};
    *can = pyri_engine_does_errands(engine) && s->kernels->n == 0 &&
           s->array->style.codec == PYR_CODEC_NONE &&
           (!s->handlers || pyri_handlers_list(s->handlers, list, &n));
    if (!*can)
        return 0;
    pyri_programs_encode(list, n, &e->code, e->programs);
    e->nprograms = n;
    int err = pyri_buf_check(&e->code, "a function");
    if (err == 0)
        err = make_room(e);
    if (err == 0)
        err = pyri_engine_begin(engine, &e->reader);
    if (err < 0) {
        pyri_errands_fini(e);
        *can = false;
    }
    return err;
}

void
pyri_errands_clear(pyri_errands *e)
{
    for (size_t i = 0; i < e->n; i++) {
        trip *t = &e->trips[i];
        pyri_holdings_free(e->s, t->held);
        free(t->same);
        free(t->pieces);
        *t = (trip){NULL, NULL, NULL};
    }
    e->n = 0;
}

void
pyri_errands_fini(pyri_errands *e)
{
    if (e->trips)
        pyri_errands_clear(e);
    if (e->s)
        pyri_engine_end(e->s->array->engine, e->reader);
    free(e->list);
    free(e->tag);
    free(e->bytes);
    free(e->trips);
    pyri_buf_fini(&e->code);
    pyri_buf_fini(&e->reduction);
    memset(e, 0, sizeof *e);
}

/* --- one errand ---------------------------------------------------------- */

typedef struct planning {
    int ndim;
    const pyri_box *box;
    trip *t;
    size_t n;
    bool cells; /* some fragment has cells */
    bool plain; /* none has them in a form that only the caller reads */
} planning;

static void
add_piece(planning *p, int source, const pyri_frag *f, const pyri_box *shown,
          const pyri_box *inside)
{
    pyri_errand_piece *to = &p->t->pieces[p->n];
    memset(&to->shown, 0, sizeof to->shown);
    if (!pyri_box_intersect(p->ndim, shown, inside, &to->shown))
        return;
    to->source = source;
    to->frag = f;
    p->n++;
    p->cells |= f->kind != PYRI_FRAG_SAME;
    p->plain &= f->kind != PYRI_FRAG_PRESSED && !f->masked;
}

/* The pieces of a source, lowest first. */
static void
add_source(planning *p, int source, pyri_holding *h)
{
    pyri_frag *same = &p->t->same[source];
    if (h->same) {
        same->kind = PYRI_FRAG_SAME;
        same->bits = h->bits;
        pyri_box_copy(p->ndim, &same->box, p->box);
        add_piece(p, source, same, p->box, p->box);
    } else {
        for (int i = h->chain.n - 1; i >= 0; i--)
            add_piece(p, source, &h->chain.links[i].frag,
                      &h->chain.links[i].shown, &h->inside);
    }
}

/* Bytes that the caller would have to read. */
static uint64_t
bytes_of(const pyri_sources *s, const pyri_holding *h)
{
    uint64_t bytes = 0;
    for (int k = s->first; k < s->n; k++)
        if (!h[k].same && h[k].leaf)
            bytes += pyri_box_cells(s->array->schema.ndim, &h[k].inside) *
                     pyri_type_size(s->array->schema.type);
    return bytes;
}

static int
plan(pyri_errands *e, const pyri_box *box, trip *t, planning *p)
{
    const pyri_sources *s = e->s;
    size_t most = 0;
    for (int k = s->first; k < s->n; k++)
        most += t->held[k].same ? 1 : (size_t)t->held[k].chain.n;
    t->same = pyri_sys_calloc((size_t)s->n, sizeof *t->same);
    t->pieces = pyri_sys_malloc((most + 1) * sizeof *t->pieces);
    if (!t->same || !t->pieces)
        return pyri_fail_nomem("a function of chunks");
    *p = (planning){s->array->schema.ndim, box, t, 0, false, true};
    for (int k = s->first; k < s->n; k++)
        add_source(p, k, &t->held[k]);
    return 0;
}

int
pyri_errands_add(pyri_errands *e, const pyri_box *box, size_t tag)
{
    bool same;
    planning p = {.plain = false};
    trip *t = &e->trips[e->n];
    e->n++; /* so that what there is of it is cleared */
    int err = pyri_sources_hold(e->s, e->reader, box, &t->held, &same);
    if (err == 0 && !same)
        err = plan(e, box, t, &p);
    if (err == 0 && p.cells && p.plain) {
        size_t i = e->n - 1;
        e->list[i] = (pyri_errand){.style = &e->s->array->style,
                                   .programs = e->programs,
                                   .nprograms = e->nprograms,
                                   .pieces = t->pieces,
                                   .npieces = p.n};
        pyri_box_copy(e->s->array->schema.ndim, &e->list[i].box, box);
        e->tag[i] = tag;
        e->bytes[i] = bytes_of(e->s, t->held);
        return 0;
    }
    e->n--;
    pyri_holdings_free(e->s, t->held);
    free(t->same);
    free(t->pieces);
    *t = (trip){NULL, NULL, NULL};
    return err;
}

/* --- sending ------------------------------------------------------------- */

int
pyri_errands_compute(pyri_errands *e)
{
    return e->n ? pyri_engine_compute(e->s->array->engine, e->list, e->n) : 0;
}

int
pyri_errands_reduce(pyri_errands *e)
{
    for (size_t i = 0; i < e->n; i++)
        e->list[i].reduction =
            (pyri_bytes){e->reduction.data, e->reduction.size};
    return e->n ? pyri_engine_reduce(e->s->array->engine, e->reader, e->list,
                                     e->n)
                : 0;
}
