/*
 * array/sender.c - chunks of a write that the engine runs handlers on.
 *
 * Cells have to go to the engine in any case. They go there as they are, with
 * the programs of the handlers, and what comes back is the fragment that was
 * stored. Some are sent at a time, so that a cluster has them all in the air.
 */
#include "array/sender.h"

#include "array/handlers.h"

#include "base/scratch.h"
#include "base/sys.h"
#include "chunk/errand.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST = 64, /* that are sent at a time, */
    MOST_BYTES = 32 << 20
};

struct pyri_sender {
    pyri_draft *d;
    pyri_errand errands[MOST];
    pyri_painted *to[MOST];
    uint8_t *cells[MOST]; /* scratch */
    size_t n;
    uint64_t bytes; /* of these cells */
    pyri_bytes programs[PYRI_MAX_HANDLERS];
    int nprograms;
    pyri_buf code;
};

int
pyri_sender_new(pyri_draft *d, pyri_sender **out)
{
    const pyri_program *list[PYRI_MAX_HANDLERS];
    int n = 0;
    *out = NULL;
    if (!pyri_engine_does_errands(d->array->engine) ||
        d->array->style.codec != PYR_CODEC_NONE ||
        !pyri_handlers_list(d->handlers, list, &n) || n == 0)
        return 0;
    pyri_sender *s = pyri_sys_calloc(1, sizeof *s);
    if (!s)
        return pyri_fail_nomem("handlers");
    s->d = d;
    pyri_programs_encode(list, n, &s->code, s->programs);
    s->nprograms = n;
    int err = pyri_buf_check(&s->code, "handlers");
    if (err < 0) {
        pyri_sender_free(s);
        return err;
    }
    *out = s;
    return 0;
}

static void
clear(pyri_sender *s)
{
    for (size_t i = 0; i < s->n; i++)
        pyri_scratch_give(s->cells[i]);
    s->n = 0;
    s->bytes = 0;
}

void
pyri_sender_free(pyri_sender *s)
{
    if (!s)
        return;
    clear(s);
    pyri_buf_fini(&s->code);
    free(s);
}

int
pyri_sender_add(pyri_sender *s, const pyri_box *box, pyri_mem cells,
                pyri_painted *to)
{
    const pyri_array *a = s->d->array;
    int ndim = a->schema.ndim;
    size_t cell = pyri_type_size(a->schema.type);
    uint64_t extent[PYR_MAX_DIMS], count = pyri_box_cells(ndim, box);
    if (count > MOST_BYTES / cell)
        return 0; /* too much to be sent */
    uint8_t *copy = pyri_scratch_take((size_t)count * cell);
    if (!copy)
        return pyri_fail_nomem("the cells of a handler");
    for (int d = 0; d < ndim; d++)
        extent[d] = box->hi[d] - box->lo[d];
    pyri_copy(ndim, cell, extent, pyri_mem_dense(ndim, cell, box, copy),
              cells);
    s->errands[s->n] = (pyri_errand){.style = &a->style,
                                     .programs = s->programs,
                                     .nprograms = s->nprograms,
                                     .cells = copy};
    pyri_box_copy(ndim, &s->errands[s->n].box, box);
    s->to[s->n] = to;
    s->cells[s->n++] = copy;
    s->bytes += count * cell;
    return s->n == MOST || s->bytes >= MOST_BYTES ? pyri_sender_flush(s) : 0;
}

/* What was stored is the draft's from now on, also if something goes wrong. */
static int
note(pyri_draft *d, const pyri_frag *f)
{
    if (f->kind == PYRI_FRAG_SAME)
        return 0;
    pyri_blob blob = {{f->ref[0], f->ref[1]}, pyri_frag_blob_size(f)};
    return pyri_stash_add(d, &blob, 1);
}

static int
take(const pyri_errand *e, pyri_painted *to)
{
    if (!(to->frags = pyri_sys_malloc(sizeof *to->frags)))
        return pyri_fail_nomem("the fragments of a write");
    to->frags[0] = e->frag;
    to->own = e->sum;
    to->n = 1;
    return 0;
}

int
pyri_sender_flush(pyri_sender *s)
{
    pyri_draft *d = s->d;
    const pyri_schema *sc = &d->array->schema;
    uint64_t there = 0;
    int err = pyri_commit_renew(d); /* it may be in flight already */
    if (err == 0)
        err = pyri_engine_compute(d->array->engine, s->errands, s->n);
    for (size_t i = 0; i < s->n; i++) {
        int bad = s->errands[i].done ? note(d, &s->errands[i].frag) : 0;
        err = bad < 0 ? bad : err;
    }
    for (size_t i = 0; i < s->n && err == 0; i++) {
        const pyri_errand *e = &s->errands[i];
        if (!e->done)
            continue;
        err = take(e, s->to[i]);
        there += pyri_box_cells(sc->ndim, &e->box) * pyri_type_size(sc->type);
    }
    pyri_engine_tally(d->array->engine, there, 0);
    clear(s);
    return err;
}
