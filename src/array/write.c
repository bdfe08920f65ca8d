/*
 * array/write.c - WRITE, batches, resize and append: the order of the steps.
 *
 * A write sends its data first, contending with nobody; only then does it take
 * a version. An append cannot: where its cells go is settled by the version,
 * so it takes that first and is in flight while it writes.
 */
#include "array/draft.h"

#include "base/checked.h"
#include "base/fault.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

/* --- from stored cells to a published version ---------------------------- */

/* The parts must be inside the newest shape; handlers as of now apply. */
static int
check_parts(pyri_draft *draft, const pyri_part *parts, size_t n)
{
    pyri_array *a = draft->array;
    const pyri_handlers *h;
    uint64_t label, shape[PYR_MAX_DIMS];
    int err = pyri_handlers_begin(a, &label, shape, &h);
    for (size_t i = 0; i < n && err == 0; i++)
        err = pyri_shape_check(a, label, shape, &parts[i].run);
    if (err < 0) {
        pyri_handlers_end(h);
        return err;
    }
    return h || draft->handlers ? pyri_draft_handle(draft, h) : 0;
}

static int
sync_data(pyri_draft *d)
{
    PYRI_FAULT("write.data_sent");
    int err = pyri_engine_sync(d->array->engine);
    if (err == 0)
        PYRI_FAULT("write.synced");
    return err;
}

int
pyri_draft_publish(pyri_draft *d, const uint64_t *shape,
                   const pyri_write_how *how, pyr_version *made)
{
    uint64_t label, latest;
    int err = pyri_prepare(d);
    if (err == 0)
        err = sync_data(d);
    if (err == 0)
        err = pyri_commit(d, shape, &label, &latest);
    if (err == PYR_EFENCED && d->kind == PYR_KIND_RESIZE)
        err = 0; /* whoever fenced us has carried it out */
    if (err == 0) {
        *made = label - d->array->first;
        if (latest < label && !how->nowait)
            err = pyri_commit_wait(d->array, label, -1);
    }
    if (err == 0)
        PYRI_FAULT("write.published");
    return err;
}

int
pyri_write(pyri_array *a, const pyri_part *parts, size_t n,
           const pyri_write_how *how, pyr_version *made)
{
    pyri_draft d = {
        .array = a, .kind = PYR_KIND_WRITE, .message = how->message};
    PYRI_FAULT("write.begin");
    int err = check_parts(&d, parts, n);
    if (err == 0)
        err = pyri_paint(&d, parts, n);
    if (err == 0)
        err = pyri_draft_publish(&d, NULL, how, made);
    pyri_draft_fini(&d);
    return err;
}

/* --- batches ------------------------------------------------------------- */

struct pyri_batch {
    pyri_draft draft;
    int failed; /* the code of a write that failed: the commit refuses */
};

int
pyri_batch_begin(pyri_array *a, pyri_batch **out)
{
    *out = pyri_sys_calloc(1, sizeof **out);
    if (!*out)
        return pyri_fail_nomem("a batch");
    (*out)->draft = (pyri_draft){.array = a, .kind = PYR_KIND_WRITE};
    return 0;
}

int
pyri_batch_write(pyri_batch *b, const pyri_part *part)
{
    int err = check_parts(&b->draft, part, 1);
    if (err < 0)
        return err; /* nothing is stored: the batch goes on */
    if ((err = pyri_paint(&b->draft, part, 1)) < 0)
        b->failed = err;
    return err;
}

int
pyri_batch_commit(pyri_batch *b, const pyri_write_how *how, pyr_version *made)
{
    int err = b->failed
                  ? pyri_fail(b->failed, "a write of this batch failed (%s); "
                                         "nothing of it is published",
                              pyr_strerror(b->failed))
                  : pyri_draft_merge(&b->draft);
    b->draft.message = how->message;
    if (err == 0)
        err = pyri_draft_publish(&b->draft, NULL, how, made);
    pyri_batch_abort(b);
    return err;
}

void
pyri_batch_abort(pyri_batch *b)
{
    if (!b)
        return;
    pyri_draft_fini(&b->draft);
    free(b);
}

/* --- shape --------------------------------------------------------------- */

static int
check_shape(pyri_array *a, const uint64_t *shape)
{
    pyri_snapshot snap;
    int err = pyri_snapshot_open(a, PYR_LATEST, &snap);
    if (err < 0)
        return err;
    err = pyri_form_fits(&snap.record.form, shape, a->schema.chunk);
    pyri_snapshot_close(&snap);
    return err;
}

int
pyri_resize(pyri_array *a, const uint64_t *shape, pyr_version *made)
{
    pyri_draft d = {.array = a, .kind = PYR_KIND_RESIZE};
    pyri_write_how how = {0};
    d.claim.ndim = a->schema.ndim;
    PYRI_FAULT("write.begin");
    int err = check_shape(a, shape);
    if (err == 0)
        err = pyri_draft_publish(&d, shape, &how, made);
    pyri_draft_fini(&d);
    return err;
}

/* Paint the cells that our version has added; it is in flight. */
static int
paint_added(pyri_draft *d, const pyri_ticket *t, const void *buf)
{
    const pyri_schema *s = &d->array->schema;
    pyri_part part;
    pyri_box box = {.lo = {0}};
    d->claim.ndim = s->ndim;
    if (memcmp(t->before, t->shape, (size_t)s->ndim * sizeof *t->shape) == 0)
        return 0;
    for (int k = 0; k < s->ndim; k++) {
        box.lo[k] = t->before[k] < t->shape[k] ? t->before[k] : 0;
        box.hi[k] = t->shape[k];
    }
    part.run = pyri_run_of_box(s->ndim, &box);
    part.mem = pyri_mem_dense(s->ndim, pyri_type_size(s->type), &box,
                              (void *)(uintptr_t)buf);
    if (pyri_box_empty(s->ndim, &box))
        return 0;
    return pyri_paint(d, &part, 1);
}

/* Refuse what would grow beyond counting, before a version is taken. Tells the
 * shape that the caller's cells are meant for. */
static int
check_growth(pyri_draft *draft, int axis, uint64_t count, uint64_t *shape)
{
    pyri_array *a = draft->array;
    const pyri_handlers *h;
    uint64_t grown[PYR_MAX_DIMS];
    int err = pyri_handlers_begin(a, &(uint64_t){0}, shape, &h);
    if (err < 0 || (err = pyri_draft_handle(draft, h)) < 0)
        return err;
    for (int d = 0; d < a->schema.ndim; d++)
        grown[d] = shape[d];
    if (!pyri_add64(shape[axis], count, &grown[axis]) ||
        !pyri_countable(a->schema.ndim, grown))
        return pyri_fail(PYR_EINVAL,
                         "array '%s' would have more than 2^64 - 2 cells",
                         a->name);
    return check_shape(a, grown);
}

/* The other axes must be as they were when the caller counted his cells. */
static int
check_others(const pyri_array *a, int axis, const uint64_t *seen,
             const uint64_t *now)
{
    for (int d = 0; d < a->schema.ndim; d++)
        if (d != axis && seen[d] != now[d])
            return pyri_fail(PYR_EBOUNDS,
                             "array '%s' was resized along axis %d, from %llu "
                             "to %llu, while cells were appended along axis %d",
                             a->name, d, (unsigned long long)seen[d],
                             (unsigned long long)now[d], axis);
    return 0;
}

int
pyri_append(pyri_array *a, int axis, uint64_t count, const void *buf,
            uint64_t *at, pyr_version *made)
{
    pyri_draft d = {.array = a, .kind = PYR_KIND_APPEND};
    pyri_ticket ticket;
    pyri_flights below = {0};
    uint64_t latest, seen[PYR_MAX_DIMS];
    PYRI_FAULT("write.begin");
    int err = check_growth(&d, axis, count, seen);
    if (err == 0)
        err = pyri_commit_take(&d, NULL, axis, count, &ticket, &below);
    if (err < 0)
        goto out;
    d.ticket = &ticket;
    err = check_others(a, axis, seen, ticket.before);
    if (err == 0)
        err = paint_added(&d, &ticket, buf);
    if (err == 0)
        err = pyri_engine_renew(a->engine, &ticket);
    if (err == 0)
        err = sync_data(&d);
    if (err == 0)
        err = pyri_engine_renew(a->engine, &ticket);
    if (err == 0)
        err = pyri_commit_finish(&d, &ticket, &below, &latest);
    else if (err != PYR_EFENCED)
        pyri_commit_abandon(&d, &ticket, &below);
    if (err < 0)
        goto out;
    *at = ticket.before[axis];
    *made = ticket.version - a->first;
    if (latest < ticket.version)
        err = pyri_commit_wait(a, ticket.version, -1);
    if (err == 0)
        PYRI_FAULT("write.published");
out:
    pyri_flights_fini(&below);
    pyri_draft_fini(&d);
    return err;
}

int
pyri_wait(pyri_array *a, pyr_version v, int timeout_ms)
{
    pyri_flights all = {0};
    if (v == PYR_LATEST)
        return pyri_fail(PYR_EINVAL, "name a version to wait for");
    int err = pyri_engine_flights(a->engine, a->id, &all);
    uint64_t last = all.base + all.n;
    pyri_flights_fini(&all);
    if (err < 0)
        return err;
    if (v > last - a->first)
        return pyri_fail(PYR_ENOVERSION,
                         "nobody has taken version %llu of array '%s' yet; the "
                         "last that was taken is %llu",
                         (unsigned long long)v, a->name,
                         (unsigned long long)(last - a->first));
    return pyri_commit_wait(a, a->first + v, timeout_ms);
}
