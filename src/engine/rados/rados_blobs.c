/*
 * engine/rados/rados_blobs.c - blobs: objects of their own.
 *
 * A put is sent and not waited for; some dozens are under way at once. sync()
 * waits, and so does completing a version that names them, and reading one
 * through the same store. A blob beyond 32 MiB is cut into several objects.
 */
#include "engine/rados/rados.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/fault.h"
#include "base/room.h"
#include "base/sys.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PART = PYRI_RADOS_PART,
    MOST_UNDER_WAY = 64,
    MOST_BYTES_UNDER_WAY = 64 << 20,
    READS = 64 /* under way at once */
};

static const uint64_t MOST_BYTES = 1ull << 44; /* of a blob */

void
pyri_rblobs_oid(char oid[PYRI_RADOS_OID], uint64_t number, uint64_t part)
{
    if (part == 0)
        snprintf(oid, PYRI_RADOS_OID, "b.%016llx", (unsigned long long)number);
    else
        snprintf(oid, PYRI_RADOS_OID, "b.%016llx.%llx",
                 (unsigned long long)number, (unsigned long long)part);
}

uint64_t
pyri_rblobs_home(uint64_t number)
{
    uint64_t session = number >> 32, count = number & UINT32_MAX;
    return session >> 24 || count >> 24
               ? 0
               : (session << 24 | count) << PYRI_RADOS_PLACE_BITS;
}

pyri_rplace
pyri_rblobs_place(pyri_ref ref)
{
    uint64_t home = ref.b >> PYRI_RADOS_PLACE_BITS;
    uint64_t place = ref.b & ((1u << PYRI_RADOS_PLACE_BITS) - 1);
    if (ref.b == 0)
        return (pyri_rplace){ref.a, 0};
    return (pyri_rplace){home >> 24 << 32 | (home & 0xffffff),
                         place * PYRI_SLOT_UNIT};
}

/* --- those not named yet ------------------------------------------------- */

static pyri_runnamed **
bucket_of(pyri_cluster *s, uint64_t number)
{
    return &s->unnamed[number % PYRI_RADOS_BUCKETS];
}

/* The lock is held. */
static pyri_runnamed *
find_unnamed(pyri_cluster *s, uint64_t number)
{
    pyri_runnamed *u = *bucket_of(s, number);
    while (u && u->number != number)
        u = u->next;
    return u;
}

/* Wait until nothing of a blob is under way. The lock is held. */
static pyri_runnamed *
await(pyri_cluster *s, uint64_t number)
{
    pyri_runnamed *u;
    while ((u = find_unnamed(s, number)) && u->pending)
        pyri_cluster_wait(s, 1000);
    return u;
}

void
pyri_rblobs_note(pyri_cluster *s, pyri_runnamed *u)
{
    pthread_mutex_lock(&s->lock);
    u->next = *bucket_of(s, u->number);
    *bucket_of(s, u->number) = u;
    s->unnamed_bytes += u->size;
    pthread_mutex_unlock(&s->lock);
}

void
pyri_rblobs_forget(pyri_cluster *s, uint64_t number)
{
    pthread_mutex_lock(&s->lock);
    pyri_runnamed *u = await(s, number);
    pyri_runnamed **at = bucket_of(s, number);
    while (u && *at != u)
        at = &(*at)->next;
    if (u) {
        *at = u->next;
        s->unnamed_bytes -= u->size;
    }
    pthread_mutex_unlock(&s->lock);
    free(u);
}

void
pyri_rblobs_forget_all(pyri_cluster *s)
{
    for (int i = 0; i < PYRI_RADOS_BUCKETS; i++)
        while (s->unnamed[i]) {
            pyri_runnamed *u = s->unnamed[i];
            s->unnamed[i] = u->next;
            free(u);
        }
    s->unnamed_bytes = 0;
}

void
pyri_rblobs_named(pyri_cluster *s, const pyri_blob *blobs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        pyri_rblobs_forget(s, blobs[i].ref.a);
}

int
pyri_rblobs_stored(pyri_cluster *s, const pyri_blob *blobs, size_t n)
{
    int err = 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < n && err == 0; i++) {
        pyri_runnamed *u = await(s, blobs[i].ref.a);
        err = u ? u->err : 0;
    }
    pthread_mutex_unlock(&s->lock);
    return err < 0 ? pyri_rados_fail(s, err, "storing data") : 0;
}

int
pyri_rados_sync(pyri_engine *e)
{
    pyri_cluster *s = pyri_cluster_of(e);
    int err = pyri_cluster_check(s);
    if (err < 0 || (err = PYRI_FAULT_FAILS("segment.sync")) < 0)
        return err;
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < PYRI_RADOS_BUCKETS && s->under_way; i++) {
        pyri_runnamed *u = s->unnamed[i];
        while (u && !u->pending)
            u = u->next;
        if (u) { /* the bucket may change: look at it again */
            pyri_cluster_wait(s, 1000);
            i--;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return 0; /* what failed is told to the version that names it */
}

/* --- putting ------------------------------------------------------------- */

typedef struct sending {
    pyri_runnamed *u;
    size_t size;
    rados_completion_t done;
} sending;

static void
sent(rados_completion_t done, void *arg)
{
    sending *w = arg;
    pyri_cluster *s = w->u->site;
    int err = rados_aio_get_return_value(done);
    pthread_mutex_lock(&s->lock);
    if (err < 0)
        w->u->err = err;
    w->u->pending--;
    s->under_way--;
    s->under_way_bytes -= w->size;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    rados_aio_release(done);
    free(w);
}

static void
wait_for_room(pyri_cluster *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->under_way >= MOST_UNDER_WAY ||
           s->under_way_bytes >= MOST_BYTES_UNDER_WAY)
        pyri_cluster_wait(s, 1000);
    pthread_mutex_unlock(&s->lock);
}

/* librados copies the bytes before this returns. */
static int
send_part(pyri_cluster *s, pyri_runnamed *u, uint64_t part, const uint8_t *data,
     size_t size)
{
    char oid[PYRI_RADOS_OID];
    sending *w = pyri_sys_malloc(sizeof *w);
    if (!w)
        return pyri_fail_nomem("a blob");
    *w = (sending){.u = u, .size = size};
    int err = rados_aio_create_completion2(w, sent, &w->done);
    if (err < 0) {
        free(w);
        return pyri_rados_fail(s, err, "a blob");
    }
    wait_for_room(s);
    pyri_rblobs_oid(oid, u->number, part);
    pthread_mutex_lock(&s->lock);
    u->pending++;
    s->under_way++;
    s->under_way_bytes += size;
    pthread_mutex_unlock(&s->lock);
    err = rados_aio_write_full(s->io, oid, w->done, (const char *)data, size);
    if (err < 0) {
        pthread_mutex_lock(&s->lock);
        u->pending--;
        s->under_way--;
        s->under_way_bytes -= size;
        pthread_mutex_unlock(&s->lock);
        rados_aio_release(w->done);
        free(w);
        return pyri_rados_fail(s, err, "a blob");
    }
    return 0;
}

/* The pieces as one, unless they are one already. */
static const uint8_t *
gather(const pyri_blob_put *put, uint8_t **memory)
{
    uint64_t at = 0;
    *memory = NULL;
    for (int i = 0; i < put->niov; i++)
        if (put->iov[i].iov_len == put->size && put->size)
            return put->iov[i].iov_base;
    *memory = pyri_sys_malloc(put->size + 1);
    for (int i = 0; *memory && i < put->niov; i++) {
        assert(put->iov[i].iov_len <= put->size - at);
        if (put->iov[i].iov_len)
            memcpy(*memory + at, put->iov[i].iov_base, put->iov[i].iov_len);
        at += put->iov[i].iov_len;
    }
    return *memory;
}

static int
put_one(pyri_cluster *s, pyri_blob_put *put)
{
    uint8_t *memory;
    uint64_t number;
    int err = pyri_session_number(s, &number);
    if (err < 0)
        return err;
    pyri_runnamed *u = pyri_sys_calloc(1, sizeof *u);
    const uint8_t *data = u ? gather(put, &memory) : NULL;
    if (!data) {
        free(u);
        return pyri_fail_nomem("a blob");
    }
    *u = (pyri_runnamed){.number = number, .size = put->size, .site = s};
    pyri_rblobs_note(s, u);
    put->ref = (pyri_ref){number, 0};
    for (uint64_t at = 0; err == 0 && (at < put->size || at == 0); at += PART)
        err = send_part(s, u, at / PART, data + at,
                   (size_t)pyri_min64(PART, put->size - at));
    free(memory);
    if (err < 0) {
        pthread_mutex_lock(&s->lock);
        u->err = -EIO;
        pthread_mutex_unlock(&s->lock);
    }
    return err;
}

int
pyri_rados_put_blobs(pyri_engine *e, pyri_blob_put *puts, size_t n)
{
    pyri_cluster *s = pyri_cluster_of(e);
    int err = pyri_cluster_check(s);
    for (size_t i = 0; i < n && err == 0; i++)
        if ((err = PYRI_FAULT_FAILS("segment.append")) == 0)
            err = put_one(s, &puts[i]);
    return err;
}

/* --- getting ------------------------------------------------------------- */

/* One read of one object. */
typedef struct fetch {
    rados_completion_t done;
    size_t size;
    pyri_ref ref;
} fetch;

static int
fail_range(const pyri_blob_get *g)
{
    return pyri_fail(PYR_ECORRUPT,
                     "blob %llx:%llx: there are no %llu bytes at %llu",
                     (unsigned long long)g->ref.a,
                     (unsigned long long)g->ref.b,
                     (unsigned long long)g->size,
                     (unsigned long long)g->offset);
}

static int
finish_fetch(pyri_cluster *s, fetch *f)
{
    rados_aio_wait_for_complete(f->done);
    int got = rados_aio_get_return_value(f->done);
    rados_aio_release(f->done);
    if (got == -ENOENT || (got >= 0 && (size_t)got != f->size))
        return pyri_fail(PYR_ECORRUPT, "blob %llx:%llx is not there, or not "
                         "whole", (unsigned long long)f->ref.a,
                         (unsigned long long)f->ref.b);
    return got < 0 ? pyri_rados_fail(s, got, "a blob") : 0;
}

/* Reads on their way; a ring. */
typedef struct fetches {
    pyri_cluster *s;
    fetch ring[READS];
    size_t begun, ended;
    int err;
} fetches;

static void
drain(fetches *f, size_t left)
{
    while (f->begun - f->ended > left) {
        int err = finish_fetch(f->s, &f->ring[f->ended++ % READS]);
        f->err = f->err ? f->err : err;
    }
}

static int
read_part(fetches *f, const pyri_blob_get *g, uint64_t offset, size_t size,
          uint8_t *to)
{
    char oid[PYRI_RADOS_OID];
    drain(f, READS - 1);
    fetch *one = &f->ring[f->begun % READS];
    *one = (fetch){.size = size, .ref = g->ref};
    int err = rados_aio_create_completion2(NULL, NULL, &one->done);
    if (err < 0)
        return pyri_rados_fail(f->s, err, "a blob");
    pyri_rplace place = pyri_rblobs_place(g->ref);
    pyri_rblobs_oid(oid, place.number, offset / PART);
    err = rados_aio_read(f->s->io, oid, one->done, (char *)to, size,
                         place.at + offset % PART);
    if (err < 0) {
        rados_aio_release(one->done);
        return pyri_rados_fail(f->s, err, "a blob");
    }
    f->begun++;
    return 0;
}

/* Is what we put ourselves there by now? */
static int
await_own(pyri_cluster *s, const pyri_blob_get *g)
{
    pthread_mutex_lock(&s->lock);
    pyri_runnamed *u = await(s, g->ref.a);
    int err = u ? u->err : 0;
    bool outside = u && g->offset + g->size > u->size;
    pthread_mutex_unlock(&s->lock);
    if (err < 0)
        return pyri_rados_fail(s, err, "storing data");
    return outside ? fail_range(g) : 0;
}

/* Does a range begin where the one before it ends? Then they are read as one,
 * as the head and the cells of a fragment are. */
static bool
goes_on(const pyri_blob_get *g)
{
    return !g[0].room && !g[1].room && g[0].ref.a == g[1].ref.a &&
           g[0].ref.b == g[1].ref.b && g[1].offset >= g[0].offset &&
           g[1].offset - g[0].offset == g[0].size;
}

static void
set_got(pyri_blob_get *g, const uint8_t *data)
{
    g->data = data;
    g->later = false; /* all of it is here */
    g->seen = NULL;
    g->seen_first = 0;
    g->trusted = false;
}

/* Start what is to be read of n ranges that follow each other. */
static int
start_get(fetches *f, pyri_reader *r, pyri_blob_get *g, size_t n)
{
    pyri_blob_get all = g[0];
    uint64_t end;
    int err = 0;
    for (size_t i = 1; i < n; i++)
        if (!pyri_add64(all.size, g[i].size, &all.size))
            return fail_range(&g[i]);
    if (!pyri_add64(all.offset, all.size, &end) ||
        end > (all.ref.b ? PART : MOST_BYTES))
        return fail_range(&all);
    if ((err = await_own(f->s, &all)) < 0)
        return err;
    uint8_t *to = g->room ? g->room : pyri_rados_keep(r, (size_t)all.size + 1);
    if (!to)
        return pyri_fail_nomem("a blob");
    for (uint64_t at = all.offset; at < end && err == 0;) {
        uint64_t next = pyri_min64((at / PART + 1) * PART, end);
        err = read_part(f, g, at, (size_t)(next - at), to + (at - g->offset));
        at = next;
    }
    for (size_t i = 0; i < n; i++)
        set_got(&g[i], to + (g[i].offset - all.offset));
    return err;
}

int
pyri_rados_get_blobs(pyri_engine *e, pyri_reader *r, pyri_blob_get *gets,
                     size_t n)
{
    fetches f = {.s = pyri_cluster_of(e)};
    int err = pyri_cluster_check(f.s);
    for (size_t i = 0, end; i < n && err == 0 && f.err == 0; i = end) {
        for (end = i + 1; end < n && goes_on(&gets[end - 1]); end++)
            ;
        err = start_get(&f, r, &gets[i], end - i);
    }
    drain(&f, 0);
    return err < 0 ? err : f.err;
}

/* --- removing ------------------------------------------------------------ */

/* One blob of an object; the last one takes it along. */
static pyri_call *
add_release(pyri_calls *calls, pyri_ref ref)
{
    char oid[PYRI_RADOS_OID];
    pyri_rblobs_oid(oid, pyri_rblobs_place(ref).number, 0);
    pyri_call *c = pyri_calls_add(calls, "release", true, oid);
    if (c)
        pyri_buf_u64(&c->in, ref.b ? ref.a : 0);
    return c;
}

/* Nothing is computed in the objects of the further parts of a blob. */
static int
add_removal(pyri_calls *calls, const pyri_blob *blob)
{
    char oid[PYRI_RADOS_OID];
    bool room = add_release(calls, blob->ref);
    for (uint64_t at = PART; room && at < blob->size; at += PART) {
        pyri_rblobs_oid(oid, blob->ref.a, at / PART);
        room = pyri_calls_add(calls, NULL, true, oid);
    }
    return room ? 0 : pyri_fail_nomem("a list of blobs");
}

int
pyri_rblobs_remove(pyri_cluster *s, const pyri_blob *blobs, size_t n)
{
    pyri_calls calls = {0};
    int err = 0;
    for (size_t i = 0; i < n && err == 0; i++)
        err = add_removal(&calls, &blobs[i]);
    if (err == 0)
        err = pyri_calls_run(s, calls.list, calls.n);
    for (size_t i = 0; i < calls.n && err == 0; i++)
        if (calls.list[i].result < 0 && calls.list[i].result != -ENOENT)
            err = pyri_rados_fail(s, calls.list[i].result, "a blob");
    pyri_calls_fini(&calls);
    return err < 0 ? err : pyri_rblobs_renounce(s, blobs, n);
}

void
pyri_rados_drop_blobs(pyri_engine *e, const pyri_blob *blobs, size_t n,
                      const pyri_blob *near, size_t nnear)
{
    pyri_cluster *s = pyri_cluster_of(e);
    if (pyri_cluster_check(s) < 0)
        return;
    for (size_t i = 0; i < n; i++)
        pyri_rblobs_forget(s, blobs[i].ref.a);
    pyri_rblobs_remove(s, blobs, n); /* or the end of the session does it */
}
