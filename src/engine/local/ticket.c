/*
 * engine/local/ticket.c - versions in flight: taken, not yet published.
 *
 * A ticket is an entry of the live environment:
 *
 *   't' array version (8 bytes each, big-endian) ->
 *       writer (8), slot (4), ndim (4), deadline (8), base (8), shape[ndim],
 *       claim
 *
 * Invariant: for every array, the tickets above its latest published version
 * are latest + 1, latest + 2, ... without gaps. It holds because a ticket is
 * the successor of the newest one, or of latest; and because a ticket goes
 * only when its version is seen to be published. `latest` is in the other
 * environment, and only ever grows: so whoever reads the tickets first and
 * `latest` after misses none (a writer holds the live transaction throughout).
 *
 * Whether a version is complete is not said here: it is if it has a record in
 * meta. Whether a writer came too late is decided there, too; a version that
 * has no ticket is either published or was never given.
 */
#include "engine/local/local.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/fault.h"
#include "base/sys.h"
#include "engine/local/env.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TICKET_KEY = 17, TICKET_HEAD = 32, DEADLINE_AT = 16 };

typedef struct entry {
    uint64_t version, writer;
    uint32_t slot;
    int ndim;
    int64_t deadline;
    uint64_t base; /* newest published version when it was taken */
    uint64_t shape[PYR_MAX_DIMS];
    pyri_bytes claim; /* view */
} entry;

/* The last writer that was asked about: one often holds many tickets. */
typedef struct census {
    uint64_t writer;
    bool alive;
    int64_t now;
} census;

int64_t
pyri_now_ns(void)
{
    struct timespec ts;
    pyri_sys_clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static void
ticket_key(uint8_t key[TICKET_KEY], uint64_t array, uint64_t version)
{
    key[0] = 't';
    pyri_store64_be(key + 1, array);
    pyri_store64_be(key + 9, version);
}

static int
decode(const MDB_val *key, const MDB_val *value, entry *out)
{
    pyri_cursor c = pyri_cursor_of(value->mv_data, value->mv_size);
    out->writer = pyri_cursor_u64(&c);
    out->slot = pyri_cursor_u32(&c);
    uint32_t ndim = pyri_cursor_u32(&c);
    out->deadline = (int64_t)pyri_cursor_u64(&c);
    out->base = pyri_cursor_u64(&c);
    if (c.failed || key->mv_size != TICKET_KEY || ndim < 1 ||
        ndim > PYR_MAX_DIMS)
        return pyri_fail(PYR_ECORRUPT, "a ticket in live/ is damaged");
    out->ndim = (int)ndim;
    for (uint32_t d = 0; d < ndim; d++)
        out->shape[d] = pyri_cursor_u64(&c);
    if (c.failed)
        return pyri_fail(PYR_ECORRUPT, "a ticket in live/ is damaged");
    out->claim = (pyri_bytes){c.at, (size_t)(c.end - c.at)};
    out->version = pyri_load64_be((const uint8_t *)key->mv_data + 9);
    return 0;
}

static int
put_entry(pyri_site *s, pyri_txn *txn, uint64_t array, const entry *e)
{
    uint8_t key[TICKET_KEY], at[TICKET_HEAD + 8 * PYR_MAX_DIMS];
    ticket_key(key, array, e->version);
    pyri_store64(at, e->writer);
    pyri_store32(at + 8, e->slot);
    pyri_store32(at + 12, (uint32_t)e->ndim);
    pyri_store64(at + DEADLINE_AT, (uint64_t)e->deadline);
    pyri_store64(at + DEADLINE_AT + 8, e->base);
    for (int d = 0; d < e->ndim; d++)
        pyri_store64(at + TICKET_HEAD + 8 * d, e->shape[d]);
    pyri_bytes head = {at, TICKET_HEAD + 8 * (size_t)e->ndim};
    return pyri_env_put_two(txn, s->live_db, key, sizeof key, head, e->claim);
}

/* --- who is dead --------------------------------------------------------- */

static int
is_dead(pyri_site *s, pyri_txn *live, const entry *e, census *c, bool *dead)
{
    if (c->writer != e->writer) {
        int err = pyri_presence_alive(s, live, e->slot, e->writer, &c->alive);
        if (err < 0)
            return err;
        c->writer = e->writer;
    }
    *dead = !c->alive || e->deadline < c->now;
    return 0;
}

/* --- lists of flights ---------------------------------------------------- */

static void
empty_flights(pyri_flights *f)
{
    free(f->list);
    f->list = NULL;
    f->n = 0;
    pyri_buf_reset(&f->claims);
}

static pyri_flight *
add_flight(pyri_flights *f)
{
    if (f->n == 0 || (f->n >= 4 && (f->n & (f->n - 1)) == 0)) {
        size_t room = f->n ? 2 * f->n : 4;
        pyri_flight *list = pyri_sys_realloc(f->list, room * sizeof *list);
        if (!list)
            return NULL;
        f->list = list;
    }
    return &f->list[f->n++];
}

static int
list_entry(uint64_t array, const entry *e, pyri_flights *f)
{
    if (e->version != f->base + f->n + 1)
        return pyri_fail(PYR_ECORRUPT, "array %llu: version %llu is in flight, "
                         "version %llu is not", (unsigned long long)array,
                         (unsigned long long)e->version,
                         (unsigned long long)(f->base + f->n + 1));
    pyri_flight *to = add_flight(f);
    if (!to)
        return pyri_fail_nomem("a list of versions in flight");
    *to = (pyri_flight){.version = e->version, .base = e->base};
    to->claim.size = e->claim.size;
    memcpy(to->shape, e->shape, (size_t)e->ndim * sizeof to->shape[0]);
    pyri_buf_add(&f->claims, e->claim.data, e->claim.size);
    return 0;
}

/* What became of the one that was listed last. */
static int
look_after(pyri_site *s, pyri_txn *live, pyri_txn *meta, uint64_t array,
           const entry *e, census *c, pyri_flights *f)
{
    pyri_flight *to = &f->list[f->n - 1];
    int err = pyri_meta_has_version(s, meta, array, e->version, &to->complete);
    if (err == 0 && !to->complete)
        err = is_dead(s, live, e, c, &to->dead);
    return err;
}

/* The claims stay where they are from now on: point at them. */
static int
finish_flights(pyri_flights *f)
{
    int err = pyri_buf_check(&f->claims, "a list of versions in flight");
    size_t at = 0;
    for (size_t i = 0; i < f->n && err == 0; i++) {
        f->list[i].claim.data = f->claims.data + at;
        at += f->list[i].claim.size;
    }
    return err;
}

/*
 * List the tickets of an array above `head`. With `prune`, in a write
 * transaction, delete those that are published; what became of the others is
 * not asked then, as all who take have to wait for it.
 */
static int
list_flights(pyri_site *s, pyri_txn *live, pyri_txn *meta, uint64_t array,
             const pyri_head *head, bool prune, pyri_flights *f)
{
    uint8_t first[TICKET_KEY];
    pyri_walk *cursor;
    MDB_val key = {sizeof first, first}, value;
    bool more;
    census c = {.now = pyri_now_ns()};
    f->base = head->latest;
    memcpy(f->base_shape, head->shape, sizeof f->base_shape);
    ticket_key(first, array, prune ? 0 : head->latest + 1);
    pyri_bytes prefix = {first, 9};
    int err = pyri_env_cursor(live, s->live_db, &cursor);
    if (err < 0)
        return err;
    err = pyri_env_step(cursor, MDB_SET_RANGE, prefix, &key, &value, &more);
    while (err == 0 && more) {
        entry e;
        MDB_cursor_op then = MDB_NEXT;
        if ((err = decode(&key, &value, &e)) < 0)
            break;
        if (e.version > head->latest) {
            err = list_entry(array, &e, f);
            if (err == 0 && !prune)
                err = look_after(s, live, meta, array, &e, &c, f);
        } else {
            err = pyri_env_cursor_delete(cursor);
            key = (MDB_val){sizeof first, first};
            then = MDB_SET_RANGE;
        }
        if (err == 0)
            err = pyri_env_step(cursor, then, prefix, &key, &value, &more);
    }
    pyri_env_cursor_close(cursor);
    return err < 0 ? err : finish_flights(f);
}

/* --- taking -------------------------------------------------------------- */

static int
next_shape(const pyri_take *take, const uint64_t *before, int ndim,
           uint64_t *shape)
{
    memcpy(shape, take->shape ? take->shape : before,
           (size_t)ndim * sizeof shape[0]);
    if (take->grow_axis < 0)
        return 0;
    if (take->grow_axis >= ndim)
        return pyri_fail(PYR_EINVAL, "an array of %d dimensions has no axis %d",
                         ndim, take->grow_axis);
    if (!pyri_add64(shape[take->grow_axis], take->grow_by,
                    &shape[take->grow_axis]))
        return pyri_fail(PYR_EINVAL, "axis %d would grow beyond 2^64 cells",
                         take->grow_axis);
    /* together with what others have in flight */
    if (!pyri_countable(ndim, shape))
        return pyri_fail(PYR_EINVAL, "the array would have more than 2^64 - 2 "
                         "cells");
    return 0;
}

/* Make the ticket that follows the flights below. */
static int
issue(pyri_site *s, pyri_txn *live, const pyri_take *take, int ndim,
      const pyri_flights *below, pyri_ticket *t)
{
    const uint64_t *before = below->n ? below->list[below->n - 1].shape
                                      : below->base_shape;
    *t = (pyri_ticket){.array = take->array,
                       .version = below->base + below->n + 1};
    memcpy(t->before, before, (size_t)ndim * sizeof t->before[0]);
    int err = next_shape(take, t->before, ndim, t->shape);
    if (err < 0)
        return err;
    t->deadline_ns = pyri_now_ns() + s->format.lease_ms * INT64_C(1000000);
    entry e = {.version = t->version, .writer = s->presence.writer,
               .slot = s->presence.slot, .ndim = ndim,
               .deadline = t->deadline_ns, .base = below->base,
               .claim = take->claim};
    memcpy(e.shape, t->shape, sizeof e.shape);
    return put_entry(s, live, take->array, &e);
}

static int
take_locked(pyri_site *s, pyri_txn *live, const pyri_take *take,
            pyri_ticket *ticket, pyri_flights *below)
{
    pyri_reader *r;
    pyri_head head = {0};
    int err = pyri_reader_begin(s, &r);
    if (err < 0)
        return err;
    if ((err = pyri_meta_head(s, r->txn, take->array, &head)) == 0)
        err = list_flights(s, live, r->txn, take->array, &head, true, below);
    pyri_reader_end(s, r);
    return err < 0 ? err : issue(s, live, take, head.ndim, below, ticket);
}

int
pyri_ticket_take(pyri_site *s, const pyri_take *take, pyri_ticket *ticket,
                 pyri_flights *below)
{
    pyri_txn *live;
    empty_flights(below);
    int err = pyri_env_write(s->live, &live);
    if (err < 0)
        return err;
    if ((err = take_locked(s, live, take, ticket, below)) == 0)
        err = pyri_env_commit(live, "take a version");
    else
        pyri_env_abort(live);
    if (err < 0)
        pyri_flights_fini(below);
    else
        PYRI_FAULT("ticket.taken");
    return err;
}

/* --- renewing ------------------------------------------------------------ */

static int
check_open(pyri_site *s, const pyri_ticket *t)
{
    pyri_reader *r;
    pyri_head head;
    bool has = false;
    int err = pyri_reader_begin(s, &r);
    if (err < 0)
        return err;
    if ((err = pyri_meta_head(s, r->txn, t->array, &head)) == 0)
        err = pyri_meta_has_version(s, r->txn, t->array, t->version, &has);
    pyri_reader_end(s, r);
    if (err == 0 && (has || t->version <= head.latest))
        err = pyri_fail(PYR_EFENCED, "version %llu of array %llu was resolved "
                        "by another writer; nothing changed",
                        (unsigned long long)t->version,
                        (unsigned long long)t->array);
    return err;
}

static int
renew_locked(pyri_site *s, pyri_txn *live, pyri_ticket *t)
{
    uint8_t key[TICKET_KEY];
    MDB_val k = {sizeof key, key}, v;
    entry e;
    bool found;
    ticket_key(key, t->array, t->version);
    int err = check_open(s, t);
    if (err < 0 || (err = pyri_env_get(live, s->live_db, key, sizeof key, &v,
                                       &found)) < 0)
        return err;
    if (!found)
        return pyri_fail(PYR_EFENCED, "version %llu of array %llu is not in "
                         "flight", (unsigned long long)t->version,
                         (unsigned long long)t->array);
    if ((err = decode(&k, &v, &e)) < 0)
        return err;
    e.deadline = pyri_now_ns() + s->format.lease_ms * INT64_C(1000000);
    /* The claim is a view of the very entry that is replaced. */
    pyri_buf claim = {0};
    pyri_buf_add(&claim, e.claim.data, e.claim.size);
    if ((err = pyri_buf_check(&claim, "a claim")) == 0) {
        e.claim.data = claim.data;
        err = put_entry(s, live, t->array, &e);
    }
    pyri_buf_fini(&claim);
    if (err == 0)
        t->deadline_ns = e.deadline;
    return err;
}

int
pyri_ticket_renew(pyri_site *s, pyri_ticket *t)
{
    pyri_txn *live;
    int err = pyri_env_write(s->live, &live);
    if (err < 0)
        return err;
    if ((err = renew_locked(s, live, t)) == 0)
        return pyri_env_commit(live, "renew a lease");
    pyri_env_abort(live);
    return err;
}

int
pyri_ticket_check(pyri_site *s, uint64_t array, uint64_t version, int *ndim)
{
    uint8_t key[TICKET_KEY];
    pyri_reader *r;
    pyri_head head;
    MDB_val k = {sizeof key, key}, v;
    entry e = {0};
    bool found = false;
    ticket_key(key, array, version);
    int err = pyri_reader_begin(s, &r);
    if (err == 0 && (err = pyri_reader_live(s, r)) == 0)
        err = pyri_env_get(r->live, s->live_db, key, sizeof key, &v, &found);
    if (err == 0 && found)
        err = decode(&k, &v, &e);
    *ndim = e.ndim;
    if (err == 0 && !found)
        err = pyri_meta_head(s, r->txn, array, &head);
    pyri_reader_end(s, r);
    if (err == 0 && !found)
        err = pyri_fail(PYR_EFENCED, "version %llu of array %llu was resolved "
                        "by another writer, or never given; nothing changed",
                        (unsigned long long)version,
                        (unsigned long long)array);
    return err;
}

/* --- looking ------------------------------------------------------------- */

/* Tickets first, then what is published; see the invariant above. */
int
pyri_ticket_flights(pyri_site *s, uint64_t array, pyri_flights *out)
{
    pyri_txn *live = NULL;
    pyri_reader *r = NULL;
    pyri_head head = {0};
    int err = 0;
    empty_flights(out);
    bool ready = pyri_live_there(s);
    if ((ready && (err = pyri_env_read(s->live, &live)) < 0) ||
        (err = pyri_reader_begin(s, &r)) < 0 ||
        (err = pyri_meta_head(s, r->txn, array, &head)) < 0)
        goto out;
    if (ready) {
        err = list_flights(s, live, r->txn, array, &head, false, out);
    } else {
        out->base = head.latest;
        memcpy(out->base_shape, head.shape, sizeof out->base_shape);
    }
out:
    pyri_reader_end(s, r);
    if (live)
        pyri_env_abort(live);
    if (err < 0)
        pyri_flights_fini(out);
    return err;
}

int
pyri_ticket_stuck(pyri_site *s, uint64_t array, uint64_t version,
                  uint64_t *dead)
{
    pyri_flights f = {0};
    *dead = 0;
    int err = pyri_ticket_flights(s, array, &f);
    for (size_t i = 0; err == 0 && i < f.n; i++)
        if (!f.list[i].complete) {
            if (f.list[i].dead && f.list[i].version <= version)
                *dead = f.list[i].version;
            break;
        }
    empty_flights(&f);
    pyri_buf_fini(&f.claims);
    return err;
}

int
pyri_ticket_none(pyri_site *s, pyri_txn *live, pyri_txn *meta, uint64_t array,
                 const pyri_head *head)
{
    pyri_flights f = {0};
    int err = list_flights(s, live, meta, array, head, true, &f);
    if (err == 0 && f.n)
        err = pyri_fail(PYR_EFENCED, "array %llu is written to by others: its "
                        "version %llu is in flight", (unsigned long long)array,
                        (unsigned long long)f.list[0].version);
    empty_flights(&f);
    pyri_buf_fini(&f.claims);
    return err;
}

static int
count_tickets(pyri_site *s, pyri_txn *live, pyri_txn *meta, uint64_t *out)
{
    pyri_walk *cursor;
    MDB_val key = {1, (void *)(uintptr_t)"t"}, value;
    pyri_bytes prefix = {"t", 1};
    bool more;
    int err = pyri_env_cursor(live, s->live_db, &cursor);
    if (err < 0)
        return err;
    err = pyri_env_step(cursor, MDB_SET_RANGE, prefix, &key, &value, &more);
    while (err == 0 && more) {
        const uint8_t *k = key.mv_data;
        pyri_head head;
        if (key.mv_size == TICKET_KEY &&
            pyri_meta_head(s, meta, pyri_load64_be(k + 1), &head) == 0)
            *out += pyri_load64_be(k + 9) > head.latest;
        err = pyri_env_step(cursor, MDB_NEXT, prefix, &key, &value, &more);
    }
    pyri_env_cursor_close(cursor);
    return err;
}

int
pyri_ticket_count(pyri_site *s, uint64_t *out)
{
    pyri_txn *live;
    pyri_reader *r = NULL;
    *out = 0;
    int err = pyri_env_read(s->live, &live);
    if (err < 0)
        return err;
    if ((err = pyri_reader_begin(s, &r)) == 0)
        err = count_tickets(s, live, r->txn, out);
    pyri_reader_end(s, r);
    pyri_env_abort(live);
    return err;
}
