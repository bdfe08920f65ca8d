/*
 * array/commit.c - from a draft to a published version.
 *
 *   take      the version manager gives a version and lists what is in flight
 *   build     the nodes: own leaves, children predicted or shared
 *   complete  nodes and record are stored in one step; versions are published
 *             in order by whoever completes the lowest one
 *   wait      until ours is published; a writer in the way that died is given
 *             up: its version is completed by us as one that changes nothing
 */
#include "array/making.h"

#include "base/bytes.h"
#include "base/fault.h"
#include "base/sys.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t
clock_ns(clockid_t clock)
{
    struct timespec t;
    pyri_sys_clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int
stay_alive(void *ctx)
{
    pyri_making *m = ctx;
    return pyri_commit_renew(m->d);
}

/* --- making a version ---------------------------------------------------- */

/* Forms and claims of all in flight below, oldest first; then our own form. */
static int
meet_rivals(pyri_making *m, const pyri_flights *below, const uint64_t *shape)
{
    const pyri_schema *s = &m->d->array->schema;
    const uint64_t *before = m->base.record.form.shape;
    int err = pyri_form_copy(&m->form, &m->base.record.form);
    m->rivals = pyri_sys_calloc(below->n + 1, sizeof *m->rivals);
    if (err == 0 && !m->rivals)
        err = pyri_fail_nomem("the versions in flight");
    for (size_t i = 0; i < below->n && err == 0; i++) {
        const pyri_flight *f = &below->list[i];
        pyri_rival *rival = &m->rivals[below->n - 1 - i];
        pyr_kind kind;
        err = pyri_form_change(&m->form, f->version, f->shape, s->chunk);
        if (err == 0)
            err = pyri_ticket_decode(s->ndim, f->claim, before, f->shape, &kind,
                                     &rival->claim);
        rival->label = f->version;
        rival->shape = f->shape;
        rival->levels = pyri_grid_levels(&m->form);
        before = f->shape;
    }
    m->nrivals = below->n;
    if (err == 0 && m->d->given)
        err = pyri_form_change(&m->form, m->label, m->d->given->least,
                               s->chunk);
    if (err == 0)
        err = pyri_form_change(&m->form, m->label, shape, s->chunk);
    if (err == 0)
        pyri_grid_init(&m->grid, &m->form, s->chunk);
    return err;
}

/* A shape that another version changed meanwhile may not hold our boxes. */
static int
check_bounds(const pyri_making *m)
{
    const pyri_claim *c = &m->d->claim;
    if (m->d->kind == PYR_KIND_NOTHING)
        return 0;
    for (size_t i = 0; i < c->n; i++) {
        pyri_box box;
        char text[512];
        pyri_run_bounds(c->ndim, &c->runs[i], &box);
        for (int d = 0; d < c->ndim; d++)
            if (box.hi[d] > m->form.shape[d])
                return pyri_fail(
                    PYR_EBOUNDS,
                    "box %s leaves array '%s' along axis %d: a version before "
                    "this one changed its extent to %llu",
                    pyri_box_text(c->ndim, &box, text, sizeof text),
                    m->d->array->name, d, (unsigned long long)m->form.shape[d]);
    }
    return 0;
}

static int
add_touch(void *ctx, const uint64_t *pos)
{
    pyri_making *m = ctx;
    if ((m->ntouches & (m->ntouches - 1)) == 0) { /* a power of two is full */
        size_t room = m->ntouches ? 2 * m->ntouches : 1;
        pyri_touch *touches = pyri_sys_realloc(m->touches,
                                               room * sizeof *touches);
        if (!touches)
            return pyri_fail_nomem("the chunks of a version");
        m->touches = touches;
    }
    pyri_touch *t = &m->touches[m->ntouches];
    memcpy(t->pos, pos, sizeof t->pos);
    t->payload = m->ntouches++;
    return 0;
}

static int
compare_touches(const void *a, const void *b)
{
    const pyri_touch *x = a, *y = b;
    return memcmp(x->pos, y->pos, sizeof x->pos);
}

/* The chunks that the version touches: as painted, or, where nothing is
 * stored, as claimed. */
static int
list_touches(pyri_making *m)
{
    const pyri_schema *s = &m->d->array->schema;
    int err = 0;
    for (size_t i = 0; i < m->d->n && err == 0; i++)
        err = add_touch(m, m->d->painted[i].pos);
    if (m->d->n || m->d->flat) /* which nobody predicts */
        return err;
    for (size_t i = 0; i < m->d->claim.n && err == 0; i++)
        err = pyri_plan_run(s->chunk, s->ndim, &m->d->claim.runs[i],
                            m->form.shape, add_touch, m);
    if (err < 0 || m->d->claim.n < 2 || m->ntouches < 2)
        return err;
    size_t kept = 0;
    qsort(m->touches, m->ntouches, sizeof *m->touches, compare_touches);
    for (size_t i = 0; i < m->ntouches; i++)
        if (kept == 0 ||
            compare_touches(&m->touches[kept - 1], &m->touches[i]) != 0)
            m->touches[kept++] = m->touches[i];
    m->ntouches = kept;
    return 0;
}

static int
encode_record(const pyri_making *m, const pyri_build *build, pyri_buf *out)
{
    const pyri_draft *d = m->d;
    pyri_record r = {.kind = d->kind,
                     .root = m->base.record.root,
                     .root_level = m->base.record.root_level,
                     .form = m->form,
                     .claim = d->claim,
                     .time_ns = clock_ns(CLOCK_REALTIME),
                     .who = pyri_record_who(),
                     .message = d->message,
                     .source = d->source,
                     .expression = d->expression,
                     .handlers = (const char *)d->handled.data};
    if (d->given) {
        r.claim = d->given->record->claim;
        r.time_ns = d->given->record->time_ns;
        r.source = d->given->record->source;
        r.who = d->given->record->who;
        r.expression = d->given->record->expression;
        r.handlers = d->given->record->handlers;
    }
    if (d->kind == PYR_KIND_NOTHING)
        r.claim = (pyri_claim){.ndim = d->claim.ndim};
    for (size_t i = m->nrivals; i-- > 0;) { /* the newest that has nodes */
        pyri_box all = {.lo = {0}};
        memcpy(all.hi, m->rivals[i].shape, sizeof all.hi);
        if (!pyri_rival_touches(&m->rivals[i], &all))
            continue;
        r.root = m->rivals[i].label;
        r.root_level = m->rivals[i].levels;
    }
    if (build->nnodes) {
        r.root = m->label;
        r.root_level = m->grid.levels;
    }
    r.claim.ndim = m->form.ndim;
    pyri_record_encode(&r, out);
    return pyri_buf_check(out, "the record of a version");
}

/*
 * Versions that were in flight when ours was taken may be published by now:
 * the newest snapshot is the base. (It cannot be forgotten while we are in
 * flight; older ones can.)
 */
static int
open_base(pyri_making *m, pyri_reader *r, pyri_flights *below)
{
    pyri_array *a = m->d->array;
    uint64_t latest;
    int err = pyri_engine_latest(a->engine, r, a->id, &latest, NULL);
    if (err < 0)
        return err;
    if (m->d->given && latest >= m->label)
        return pyri_fail(PYR_EFENCED, "others wrote to array '%s'", a->name);
    if (m->d->given)
        below->base = latest;
    if (latest >= m->label)
        latest = m->label - 1; /* someone resolved us: we shall be told */
    size_t landed = latest > below->base ? (size_t)(latest - below->base) : 0;
    below->base += landed;
    below->list += landed;
    below->n -= landed;
    return pyri_snapshot_open_label(a, r, below->base, &m->base);
}

static int
complete(pyri_making *m, const pyri_build *build, pyri_bytes record,
         const uint64_t *shape, uint64_t *latest)
{
    pyri_draft *d = m->d;
    pyri_blob *blobs;
    pyri_complete c = {.array = d->array->id,
                       .version = m->label,
                       .shape = shape,
                       .nodes = build->nodes,
                       .nnodes = build->nnodes,
                       .record = record,
                       .family = d->array->schema.lineage.line[0].array,
                       .folds = m->folds};
    int err = pyri_stash_list(d, &blobs, &c.nblobs);
    if (err < 0)
        return err;
    c.blobs = blobs;
    err = d->given ? pyri_engine_import(d->array->engine, &c)
                   : pyri_engine_complete(d->array->engine, &c);
    *latest = c.latest;
    m->refused = err == PYR_ENOVERSION;
    d->doubtful = err < 0 && err != PYR_EFENCED && err != PYR_ENOVERSION;
    if (err == 0)
        pyri_stash_settle(d, true);
    free(blobs);
    return err;
}

/* Build the nodes and complete the version. */
static int
build_and_complete(pyri_making *m, pyri_flights below, const uint64_t *shape,
                   uint64_t *latest)
{
    pyri_draft *d = m->d;
    pyri_engine *e = d->array->engine;
    pyri_build build = {0};
    pyri_buf record = {0};
    pyri_reader *r = NULL;
    int err = pyri_ticket_await(d, &below);
    if (err < 0 || (err = pyri_engine_begin(e, &r)) < 0)
        return err;
    m->folds = d->folds;
    if ((!d->looked || m->distrust) &&
        (err = pyri_folds(d->array, r, &m->folds)) < 0)
        goto out;
    if ((err = open_base(m, r, &below)) < 0)
        goto out;
    if ((err = meet_rivals(m, &below, shape)) < 0 ||
        (err = check_bounds(m)) < 0 ||
        (err = pyri_kept_check(d, &m->base, m->rivals, m->nrivals)) < 0 ||
        (err = list_touches(m)) < 0)
        goto close;
    build = (pyri_build){.base = &m->base.tree,
                         .form = &m->form,
                         .grid = &m->grid,
                         .array = d->array->id,
                         .label = m->label,
                         .rivals = m->rivals,
                         .nrivals = m->nrivals,
                         .touches = m->touches,
                         .ntouches = m->ntouches,
                         .sheets = d->sheets,
                         .nsheets = d->nsheets,
                         .flat = d->flat,
                         .leaf = pyri_make_leaf,
                         .alive = stay_alive,
                         .ctx = m,
                         .tolerant = d->kind == PYR_KIND_NOTHING};
    if ((m->ntouches || d->nsheets) && (err = pyri_build_run(&build)) < 0)
        goto close;
    if ((err = encode_record(m, &build, &record)) < 0)
        goto close;
    PYRI_FAULT("write.built");
    pyri_engine_end(e, r);
    r = NULL;
    err = complete(m, &build, (pyri_bytes){record.data, record.size}, shape,
                   latest);
close:
    pyri_snapshot_close(&m->base);
    for (size_t i = 0; m->rivals && i < m->nrivals; i++)
        pyri_claim_fini(&m->rivals[i].claim);
    free(m->rivals);
    free(m->touches);
    pyri_form_fini(&m->form);
    pyri_build_fini(&build);
    pyri_buf_fini(&record);
out:
    pyri_engine_end(e, r);
    return err;
}

/* Make version `label` of the draft. The leaves that it lies on may be folded
 * by fold.c while it is made: then it is made again, without what prepare.c
 * found out. */
static int
make(pyri_draft *d, uint64_t label, const uint64_t *shape,
     const pyri_flights *below, uint64_t *latest)
{
    pyri_making m = {.d = d, .label = label};
    int err = build_and_complete(&m, *below, shape, latest);
    while (m.refused) {
        pyri_stash_unmark(d);
        m = (pyri_making){.d = d, .label = label, .distrust = true};
        err = build_and_complete(&m, *below, shape, latest);
    }
    return err;
}

/* --- the steps of a writer ----------------------------------------------- */

int
pyri_commit_take(pyri_draft *d, const uint64_t *shape, int grow_axis,
                 uint64_t grow_by, pyri_ticket *ticket, pyri_flights *below)
{
    pyri_buf claim = {0};
    pyri_ticket_encode(d, &claim);
    int err = pyri_buf_check(&claim, "the list of boxes of a write");
    pyri_take take = {.array = d->array->id,
                      .claim = {claim.data, claim.size},
                      .shape = shape,
                      .grow_axis = grow_axis,
                      .grow_by = grow_by};
    if (err == 0)
        err = pyri_engine_take(d->array->engine, &take, ticket, below);
    if (err == 0)
        PYRI_FAULT("write.taken");
    pyri_buf_fini(&claim);
    return err;
}

void
pyri_commit_abandon(pyri_draft *d, pyri_ticket *ticket,
                    const pyri_flights *below)
{
    char text[1024];
    uint64_t latest;
    pyri_draft nothing = {.array = d->array,
                          .kind = PYR_KIND_NOTHING,
                          .flat = d->flat,
                          .ticket = ticket};
    int err = 0;
    snprintf(text, sizeof text, "%s", pyr_errmsg());
    if (d->kind == PYR_KIND_APPEND) /* as others predict it */
        err = pyri_ticket_appended(d->array->schema.ndim, ticket->before,
                                   ticket->shape, &nothing.claim);
    else
        nothing.claim = d->claim;
    /* Should it fail, others do it when our lease runs out. If not, the draft
     * was not published, whatever happened to it. */
    if (err == 0 &&
        make(&nothing, ticket->version, ticket->shape, below, &latest) == 0)
        d->doubtful = false;
    if (d->kind == PYR_KIND_APPEND)
        pyri_claim_fini(&nothing.claim);
    pyri_fail(PYR_EIO, "%s", text);
}

int
pyri_commit_finish(pyri_draft *d, pyri_ticket *ticket,
                   const pyri_flights *below, uint64_t *latest)
{
    d->ticket = ticket;
    int err = make(d, ticket->version, ticket->shape, below, latest);
    if (err == 0)
        PYRI_FAULT("write.completed");
    else if (err != PYR_EFENCED || d->disturbed)
        pyri_commit_abandon(d, ticket, below);
    return err;
}

int
pyri_commit(pyri_draft *d, const uint64_t *shape, uint64_t *label,
            uint64_t *latest)
{
    pyri_ticket ticket;
    pyri_flights below = {0};
    int err = pyri_commit_take(d, shape, -1, 0, &ticket, &below);
    if (err == 0) {
        *label = ticket.version;
        *latest = 0;
        err = pyri_commit_finish(d, &ticket, &below, latest);
    }
    pyri_flights_fini(&below);
    return err;
}

int
pyri_commit_given(pyri_draft *d)
{
    pyri_flights none = {0};
    uint64_t latest;
    return make(d, d->given->label, d->given->record->form.shape, &none,
                &latest);
}

int
pyri_commit_renew(pyri_draft *d)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pyri_engine *e = d->array->engine;
    int err = 0;
    if (!d->ticket)
        return 0;
    pthread_mutex_lock(&lock); /* guards the deadline of every ticket */
    int64_t left = d->ticket->deadline_ns - clock_ns(CLOCK_MONOTONIC);
    if (left < (int64_t)e->lease_ms * 500000)
        err = pyri_engine_renew(e, d->ticket);
    pthread_mutex_unlock(&lock);
    return err;
}

/* --- dead writers -------------------------------------------------------- */

/* Complete version i of the flights in the place of its writer. */
static int
resolve_one(pyri_array *a, const pyri_flights *all, size_t i)
{
    const pyri_flight *f = &all->list[i];
    const uint64_t *before = i ? all->list[i - 1].shape : all->base_shape;
    pyri_draft d = {.array = a};
    pyri_flights below = *all;
    uint64_t latest;
    below.n = i;
    d.flat = pyri_ticket_flat(f);
    int err = pyri_ticket_decode(a->schema.ndim, f->claim, before, f->shape,
                                 &d.kind, &d.claim);
    if (err == 0) {
        if (d.kind != PYR_KIND_RESIZE) /* which has nothing left to do */
            d.kind = PYR_KIND_NOTHING;
        d.message = "given up: its writer died or was silent for too long";
        err = make(&d, f->version, f->shape, &below, &latest);
    }
    pyri_draft_fini(&d);
    return err == PYR_EFENCED ? 0 : err; /* someone was faster */
}

/* Complete what is dead, up to the first version with flats: what lies above
 * that is completed once it is published, which it may be now (*again). */
static int
resolve_some(pyri_array *a, bool *again)
{
    pyri_flights all = {0};
    int err = pyri_engine_flights(a->engine, a->id, &all);
    *again = false;
    for (size_t i = 0; err == 0 && i < all.n; i++) {
        if (all.list[i].dead)
            err = resolve_one(a, &all, i);
        if (pyri_ticket_flat(&all.list[i])) {
            *again = all.list[i].dead;
            break;
        }
    }
    pyri_flights_fini(&all);
    return err;
}

int
pyri_resolve(pyri_array *a)
{
    bool again = true;
    int err = 0;
    while (err == 0 && again)
        err = resolve_some(a, &again);
    return err;
}

/* --- waiting ------------------------------------------------------------- */

enum { SLICE_MS = 100 };

int
pyri_commit_wait(pyri_array *a, uint64_t label, int timeout_ms)
{
    int64_t end = clock_ns(CLOCK_MONOTONIC) + (int64_t)timeout_ms * 1000000;
    while (true) {
        int64_t left = (end - clock_ns(CLOCK_MONOTONIC)) / 1000000;
        int slice = SLICE_MS;
        if (timeout_ms >= 0 && left < slice)
            slice = left < 0 ? 0 : (int)left;
        int err = pyri_engine_wait(a->engine, a->id, label, slice);
        if (err != PYR_ETIMEOUT)
            return err;
        if (!a->engine->readonly && (err = pyri_resolve(a)) < 0)
            return err;
        if (timeout_ms >= 0 && clock_ns(CLOCK_MONOTONIC) >= end) {
            err = pyri_engine_wait(a->engine, a->id, label, 0);
            return err != PYR_ETIMEOUT
                       ? err
                       : pyri_fail(PYR_ETIMEOUT,
                                   "version %llu of array '%s' was not "
                                   "published in %d ms",
                                   (unsigned long long)(label - a->first),
                                   a->name, timeout_ms);
        }
    }
}
