/*
 * engine/mem/mem_versions.c - version managers: give out numbers, publish in
 * order.
 *
 * Each array has a head: the newest published version, and a flight for every
 * version above it that was given out, in order and without gaps:
 *
 *        published | in flight
 *    ... 6   7   8 | 9    10    11    12       a take gives 13
 *           latest-^ |     |     |     |
 *                  taken  done  dead  done
 *
 * Completing 9 publishes 9 and 10; 12 waits until someone resolves 11. What a
 * version leaves behind is its record in the history; one that has a record
 * is complete, and nobody can complete it again.
 */
#include "engine/mem/mem.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/fault.h"
#include "base/room.h"
#include "base/sys.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct flight {
    bool complete;
    int64_t deadline_ns;
    uint64_t base; /* newest published version when it was taken */
    uint64_t shape[PYR_MAX_DIMS];
    uint8_t *claim;
    size_t claim_size;
} flight;

typedef struct head {
    uint64_t latest;
    int ndim;
    uint64_t shape[PYR_MAX_DIMS]; /* as of latest */
    flight *flights;              /* latest + 1, latest + 2, ... */
    size_t n, room;
} head;

static int64_t
now_ns(void)
{
    struct timespec t;
    pyri_sys_clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void
copy_shape(const head *h, uint64_t *to, const uint64_t *from)
{
    memcpy(to, from, (size_t)h->ndim * sizeof *to);
}

/* --- heads --------------------------------------------------------------- */

/* A head lives in the value of its entry; it is the one that changes there. */
static head *
head_of(const pyri_mem_entry *entry)
{
    return (head *)entry->value.data;
}

static int
find_head(pyri_mem_store *s, uint64_t array, head **out)
{
    uint8_t key[8];
    pyri_store64_be(key, array);
    const pyri_mem_entry *entry = pyri_mem_find(&s->heads,
                                                (pyri_bytes){key, sizeof key});
    if (!entry)
        return pyri_fail(PYR_ENOTFOUND, "there is no array %llu",
                         (unsigned long long)array);
    *out = head_of(entry);
    return 0;
}

int
pyri_mem_add_head(pyri_mem_store *s, pyri_mem_batch *b, const pyri_edit *edit)
{
    uint8_t bytes[8];
    pyri_bytes key = {bytes, sizeof bytes};
    pyri_store64_be(bytes, edit->array);
    if (pyri_mem_find(&s->heads, key))
        return pyri_fail(PYR_EEXIST, "array %llu exists already",
                         (unsigned long long)edit->array);
    head h = {.latest = edit->version, .ndim = edit->ndim};
    copy_shape(&h, h.shape, edit->shape);
    return pyri_mem_batch_put(b, &s->heads, key, (pyri_bytes){&h, sizeof h});
}

static void
free_flights(head *h)
{
    for (size_t i = 0; i < h->n; i++)
        free(h->flights[i].claim);
    free(h->flights);
}

void
pyri_mem_free_heads(pyri_mem_store *s)
{
    for (pyri_mem_entry *e = s->heads.first[0]; e; e = e->next[0])
        free_flights(head_of(e));
}

uint64_t
pyri_mem_newest(pyri_mem_store *s, uint64_t array)
{
    uint8_t key[8];
    pyri_store64_be(key, array);
    const pyri_mem_entry *e =
        pyri_mem_find(&s->heads, (pyri_bytes){key, sizeof key});
    return e ? head_of(e)->latest : 0;
}

uint64_t
pyri_mem_in_flight(pyri_mem_store *s)
{
    uint64_t n = 0;
    for (pyri_mem_entry *e = s->heads.first[0]; e; e = e->next[0])
        n += head_of(e)->n;
    return n;
}

int
pyri_mem_latest(pyri_engine *e, pyri_reader *r, uint64_t array,
                uint64_t *version, uint64_t *shape)
{
    (void)r;
    pyri_mem_store *s = pyri_mem_store_of(e);
    head *h = NULL;
    pthread_mutex_lock(&s->lock);
    int err = find_head(s, array, &h);
    if (err == 0) {
        *version = h->latest;
        if (shape)
            copy_shape(h, shape, h->shape);
    }
    pthread_mutex_unlock(&s->lock);
    return err;
}

/* --- in flight ----------------------------------------------------------- */

/* Two passes: the memory behind the claims moves while it grows. */
static int
tell_flights(const head *h, pyri_flights *out)
{
    out->list = pyri_sys_calloc(h->n + 1, sizeof *out->list);
    for (size_t i = 0; i < h->n; i++)
        pyri_buf_add(&out->claims, h->flights[i].claim,
                     h->flights[i].claim_size);
    pyri_buf_u8(&out->claims, 0); /* so that there is memory to point to */
    if (!out->list || out->claims.failed) {
        pyri_flights_fini(out);
        return pyri_fail_nomem("the list of writes in flight");
    }
    out->base = h->latest;
    copy_shape(h, out->base_shape, h->shape);
    out->n = h->n;
    const uint8_t *claim = out->claims.data;
    int64_t now = now_ns();
    for (size_t i = 0; i < h->n; i++) {
        const flight *f = &h->flights[i];
        pyri_flight *to = &out->list[i];
        to->version = h->latest + 1 + i;
        to->complete = f->complete;
        to->dead = !f->complete && now > f->deadline_ns;
        to->base = f->base;
        to->claim = (pyri_bytes){claim, f->claim_size};
        copy_shape(h, to->shape, f->shape);
        claim += f->claim_size;
    }
    return 0;
}

int
pyri_mem_flights(pyri_engine *e, uint64_t array, pyri_flights *out)
{
    pyri_mem_store *s = pyri_mem_store_of(e);
    head *h = NULL;
    pthread_mutex_lock(&s->lock);
    int err = find_head(s, array, &h);
    if (err == 0)
        err = tell_flights(h, out);
    pthread_mutex_unlock(&s->lock);
    return err;
}

/* The shape before the next version, and the one that `take` makes of it. */
static int
next_shape(const head *h, const pyri_take *take, pyri_ticket *ticket)
{
    const uint64_t *before = h->n ? h->flights[h->n - 1].shape : h->shape;
    copy_shape(h, ticket->before, before);
    copy_shape(h, ticket->shape, take->shape ? take->shape : before);
    if (take->grow_axis < 0)
        return 0;
    assert(take->grow_axis < h->ndim);
    uint64_t *extent = &ticket->shape[take->grow_axis];
    if (!pyri_add64(*extent, take->grow_by, extent))
        return pyri_fail(PYR_EINVAL, "axis %d cannot grow by %llu more cells",
                         take->grow_axis, (unsigned long long)take->grow_by);
    /* together with what others have in flight */
    if (!pyri_countable(h->ndim, ticket->shape))
        return pyri_fail(PYR_EINVAL, "the array would have more than 2^64 - 2 "
                                     "cells");
    return 0;
}

static int
add_flight(head *h, const pyri_take *take, const pyri_ticket *ticket)
{
    if (!pyri_room(&h->flights, &h->room, h->n + 1, sizeof *h->flights))
        return pyri_fail_nomem("a version");
    uint8_t *claim = pyri_sys_malloc(take->claim.size + 1);
    if (!claim)
        return pyri_fail_nomem("a version");
    if (take->claim.size)
        memcpy(claim, take->claim.data, take->claim.size);
    flight *f = &h->flights[h->n++];
    *f = (flight){.deadline_ns = ticket->deadline_ns,
                  .base = h->latest,
                  .claim = claim,
                  .claim_size = take->claim.size};
    copy_shape(h, f->shape, ticket->shape);
    return 0;
}

static int64_t
new_deadline(const pyri_mem_store *s)
{
    return now_ns() + (int64_t)s->lease_ms * 1000000;
}

static int
take_locked(pyri_mem_store *s, const pyri_take *take, pyri_ticket *ticket,
            pyri_flights *below)
{
    head *h = NULL;
    int err = find_head(s, take->array, &h);
    if (err < 0 || (err = tell_flights(h, below)) < 0)
        return err;
    *ticket = (pyri_ticket){.array = take->array,
                            .version = h->latest + h->n + 1,
                            .deadline_ns = new_deadline(s)};
    if ((err = next_shape(h, take, ticket)) < 0 ||
        (err = add_flight(h, take, ticket)) < 0)
        pyri_flights_fini(below);
    return err;
}

int
pyri_mem_take(pyri_engine *e, const pyri_take *take, pyri_ticket *ticket,
              pyri_flights *below)
{
    pyri_mem_store *s = pyri_mem_store_of(e);
    pthread_mutex_lock(&s->lock);
    int err = take_locked(s, take, ticket, below);
    pthread_mutex_unlock(&s->lock);
    if (err == 0)
        PYRI_FAULT("ticket.taken");
    return err;
}

/* The flight of a version that is still to be completed; else PYR_EFENCED. */
static int
find_flight(pyri_mem_store *s, uint64_t array, uint64_t version, head **h,
            flight **out)
{
    int err = find_head(s, array, h);
    if (err < 0)
        return err;
    uint64_t above = version - (*h)->latest; /* wraps if it is published */
    if (version > (*h)->latest && above > (*h)->n)
        return pyri_fail(PYR_EFENCED,
                         "version %llu of array %llu was never "
                         "given out",
                         (unsigned long long)version,
                         (unsigned long long)array);
    if (version <= (*h)->latest || (*h)->flights[above - 1].complete)
        return pyri_fail(PYR_EFENCED,
                         "version %llu of array %llu is complete "
                         "already: its writer took too long, and another one "
                         "resolved it",
                         (unsigned long long)version,
                         (unsigned long long)array);
    *out = &(*h)->flights[above - 1];
    return 0;
}

int
pyri_mem_renew(pyri_engine *e, pyri_ticket *ticket)
{
    pyri_mem_store *s = pyri_mem_store_of(e);
    head *h = NULL;
    flight *f = NULL;
    pthread_mutex_lock(&s->lock);
    int err = find_flight(s, ticket->array, ticket->version, &h, &f);
    if (err == 0)
        f->deadline_ns = ticket->deadline_ns = new_deadline(s);
    pthread_mutex_unlock(&s->lock);
    return err;
}

/* --- publishing ---------------------------------------------------------- */

void
pyri_mem_version_key(uint8_t key[16], uint64_t array, uint64_t version)
{
    pyri_store64_be(key, array);
    pyri_store64_be(key + 8, version);
}

/* Publish all that is complete, up to the first that is not. */
static void
publish(head *h)
{
    size_t n = 0;
    for (; n < h->n && h->flights[n].complete; n++)
        free(h->flights[n].claim);
    if (n == 0)
        return;
    copy_shape(h, h->shape, h->flights[n - 1].shape);
    h->latest += n;
    h->n -= n;
    memmove(h->flights, h->flights + n, h->n * sizeof *h->flights);
}

static int
store_version(pyri_mem_store *s, const pyri_complete *c)
{
    uint8_t key[16];
    pyri_mem_batch batch;
    int err = pyri_mem_batch_begin(&batch, c->nnodes + 1);
    if (err < 0)
        return err;
    for (size_t i = 0; i < c->nnodes && err == 0; i++)
        err = pyri_mem_batch_put(&batch, &s->nodes, c->nodes[i].key,
                                 c->nodes[i].value);
    pyri_mem_version_key(key, c->array, c->version);
    if (err == 0)
        err = pyri_mem_batch_put(&batch, &s->history,
                                 (pyri_bytes){key, sizeof key}, c->record);
    for (size_t i = 0; i < c->nblobs && err == 0; i++) {
        pyri_mem_blob *blob = &s->blobs[c->blobs[i].ref.a - 1];
        blob->named = true;
        blob->array = c->array;
        blob->version = c->version;
    }
    return pyri_mem_finish(s, &batch, err);
}

static int
complete_locked(pyri_mem_store *s, pyri_complete *c)
{
    head *h = NULL;
    flight *f = NULL;
    int err = find_flight(s, c->array, c->version, &h, &f);
    if (err == 0)
        err = pyri_mem_fold_check(s, c);
    if (err < 0 || (err = store_version(s, c)) < 0)
        return err;
    f->complete = true;
    copy_shape(h, f->shape, c->shape);
    publish(h);
    c->latest = h->latest;
    pthread_cond_broadcast(&s->published);
    return 0;
}

int
pyri_mem_complete(pyri_engine *e, pyri_complete *c)
{
    pyri_mem_store *s = pyri_mem_store_of(e);
    int err = PYRI_FAULT_FAILS("publish.commit");
    if (err < 0)
        return err;
    pthread_mutex_lock(&s->lock);
    pyri_mem_fold_wait(s);
    err = complete_locked(s, c);
    pthread_mutex_unlock(&s->lock);
    if (err == 0)
        PYRI_FAULT("publish.done");
    return err;
}

static int
import_locked(pyri_mem_store *s, pyri_complete *c)
{
    head *h = NULL;
    int err = find_head(s, c->array, &h);
    if (err == 0 && (h->n || c->version <= h->latest))
        err = pyri_fail(PYR_EFENCED,
                        "array %llu is written to by others; its version %llu "
                        "cannot be set",
                        (unsigned long long)c->array,
                        (unsigned long long)c->version);
    if (err == 0)
        err = pyri_mem_fold_check(s, c);
    if (err < 0 || (err = store_version(s, c)) < 0)
        return err;
    h->latest = c->latest = c->version;
    copy_shape(h, h->shape, c->shape);
    pthread_cond_broadcast(&s->published);
    return 0;
}

int
pyri_mem_import(pyri_engine *e, pyri_complete *c)
{
    pyri_mem_store *s = pyri_mem_store_of(e);
    int err = PYRI_FAULT_FAILS("publish.commit");
    if (err < 0)
        return err;
    pthread_mutex_lock(&s->lock);
    pyri_mem_fold_wait(s);
    err = import_locked(s, c);
    pthread_mutex_unlock(&s->lock);
    if (err == 0)
        PYRI_FAULT("publish.done");
    return err;
}

int
pyri_mem_wait(pyri_engine *e, uint64_t array, uint64_t version, int timeout_ms)
{
    pyri_mem_store *s = pyri_mem_store_of(e);
    int64_t until = now_ns() + (int64_t)timeout_ms * 1000000;
    struct timespec t = {until / 1000000000, until % 1000000000};
    head *h = NULL;
    pthread_mutex_lock(&s->lock);
    int err = find_head(s, array, &h);
    while (err == 0 && h->latest < version) {
        if (pthread_cond_timedwait(&s->published, &s->lock, &t) == ETIMEDOUT &&
            h->latest < version)
            err = pyri_fail(PYR_ETIMEOUT,
                            "version %llu of array %llu is not "
                            "published yet",
                            (unsigned long long)version,
                            (unsigned long long)array);
    }
    pthread_mutex_unlock(&s->lock);
    return err;
}

/* --- history ------------------------------------------------------------- */

/* What there is of a version, given its entry in the history (or NULL). */
static pyri_version_get
tell_version(pyri_mem_store *s, const pyri_mem_entry *entry, uint64_t array,
             uint64_t version)
{
    pyri_version_get v = {.found = entry != NULL};
    if (entry)
        v.record = entry->value;
    v.forgotten = !entry || pyri_mem_is_forgotten(s, array, version);
    return v;
}

int
pyri_mem_get_version(pyri_engine *e, pyri_reader *r, uint64_t array,
                     uint64_t version, pyri_version_get *out)
{
    (void)r;
    pyri_mem_store *s = pyri_mem_store_of(e);
    uint8_t key[16];
    head *h = NULL;
    pyri_mem_version_key(key, array, version);
    pthread_mutex_lock(&s->lock);
    int err = find_head(s, array, &h);
    if (err == 0 && version <= h->latest)
        *out = tell_version(
            s, pyri_mem_find(&s->history, (pyri_bytes){key, sizeof key}),
            array, version);
    pthread_mutex_unlock(&s->lock);
    return err;
}

/* The published versions from `low` to `high`. */
static int
list_versions(pyri_mem_store *s, uint64_t array, uint64_t low, uint64_t high,
              const pyri_mem_entry ***list, size_t *n)
{
    head *h = NULL;
    int err = find_head(s, array, &h);
    if (err < 0 || low > h->latest)
        return err;
    uint8_t from[16], to[16];
    pyri_mem_version_key(from, array, low);
    pyri_mem_version_key(to, array, pyri_min64(high, h->latest));
    return pyri_mem_range(&s->history, (pyri_bytes){from, sizeof from},
                          (pyri_bytes){to, sizeof to}, list, n);
}

/* One moment, called without the lock: as mem_scan_records(). */
int
pyri_mem_scan_versions(pyri_engine *e, pyri_reader *r, uint64_t array,
                       uint64_t first, uint64_t last, pyri_version_fn *each,
                       void *ctx)
{
    (void)r;
    pyri_mem_store *s = pyri_mem_store_of(e);
    const pyri_mem_entry **list = NULL;
    size_t n = 0;
    pthread_mutex_lock(&s->lock);
    int err = list_versions(s, array, pyri_min64(first, last),
                            pyri_max64(first, last), &list, &n);
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < n && err == 0; i++) {
        const pyri_mem_entry *at = list[first <= last ? i : n - 1 - i];
        uint64_t version = pyri_load64_be((const uint8_t *)at->key.data + 8);
        pthread_mutex_lock(&s->lock);
        pyri_version_get v = tell_version(s, at, array, version);
        pthread_mutex_unlock(&s->lock);
        err = each(ctx, version, &v);
    }
    free(list);
    return err;
}
