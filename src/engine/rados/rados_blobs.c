/*
 * engine/rados/rados_blobs.c - blobs: objects of their own.
 *
 * A put is sent and not waited for; some dozens are under way at once. sync()
 * waits, and so does completing a version that names them, and reading one
 * through the same store. A blob beyond 32 MiB is cut into several objects.
 *
 * Which blobs were named, by what, is listed in an object per 4096 of them:
 * their numbers come one after the other, so it is one call for a version.
 */
#include "engine/rados/rados.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/room.h"
#include "base/sys.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PART = 32 << 20,
    MOST_UNDER_WAY = 64,
    MOST_BYTES_UNDER_WAY = 64 << 20,
    ROW = 4096, /* blobs on one list */
    KEY = 16,
    PER_CALL = 1024,
    READS = 64 /* under way at once */
};

static const uint64_t MOST_BYTES = 1ull << 44; /* of a blob */

static void
blob_oid(char oid[PYRI_RADOS_OID], uint64_t number, uint64_t part)
{
    if (part == 0)
        snprintf(oid, PYRI_RADOS_OID, "b.%016llx", (unsigned long long)number);
    else
        snprintf(oid, PYRI_RADOS_OID, "b.%016llx.%llx",
                 (unsigned long long)number, (unsigned long long)part);
}

void
pyri_rblobs_list_oid(char oid[PYRI_RADOS_OID], uint64_t number)
{
    snprintf(oid, PYRI_RADOS_OID, "l.%llx", (unsigned long long)(number / ROW));
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

static void
forget(pyri_cluster *s, uint64_t number)
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
        forget(s, blobs[i].ref.a);
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
    if (err < 0)
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
    blob_oid(oid, u->number, part);
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
    pthread_mutex_lock(&s->lock);
    u->next = *bucket_of(s, number);
    *bucket_of(s, number) = u;
    s->unnamed_bytes += put->size;
    pthread_mutex_unlock(&s->lock);
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
    blob_oid(oid, g->ref.a, offset / PART);
    err = rados_aio_read(f->s->io, oid, one->done, (char *)to, size,
                         offset % PART);
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

static int
start_get(fetches *f, pyri_reader *r, pyri_blob_get *g)
{
    uint64_t end;
    int err = 0;
    if (!pyri_add64(g->offset, g->size, &end) || end > MOST_BYTES ||
        g->ref.b != 0)
        return fail_range(g);
    if ((err = await_own(f->s, g)) < 0)
        return err;
    uint8_t *to = g->room ? g->room : pyri_rados_keep(r, (size_t)g->size + 1);
    if (!to)
        return pyri_fail_nomem("a blob");
    for (uint64_t at = g->offset; at < end && err == 0;) {
        uint64_t next = pyri_min64((at / PART + 1) * PART, end);
        err = read_part(f, g, at, (size_t)(next - at), to + (at - g->offset));
        at = next;
    }
    g->data = to;
    g->later = false; /* all of it is here */
    g->seen = NULL;
    g->seen_first = 0;
    g->trusted = false;
    return err;
}

int
pyri_rados_get_blobs(pyri_engine *e, pyri_reader *r, pyri_blob_get *gets,
                     size_t n)
{
    fetches f = {.s = pyri_cluster_of(e)};
    int err = pyri_cluster_check(f.s);
    for (size_t i = 0; i < n && err == 0 && f.err == 0; i++)
        err = start_get(&f, r, &gets[i]);
    drain(&f, 0);
    return err < 0 ? err : f.err;
}

/* --- removing ------------------------------------------------------------ */

int
pyri_rblobs_remove(pyri_cluster *s, const pyri_blob *blobs, size_t n)
{
    pyri_calls calls = {0};
    char oid[PYRI_RADOS_OID];
    int err = 0;
    for (size_t i = 0; i < n && err == 0; i++)
        for (uint64_t at = 0; err == 0 && (at < blobs[i].size || at == 0);
             at += PART) {
            blob_oid(oid, blobs[i].ref.a, at / PART);
            if (!pyri_calls_add(&calls, NULL, true, oid))
                err = pyri_fail_nomem("a list of blobs");
        }
    if (err == 0)
        err = pyri_calls_run(s, calls.list, calls.n);
    for (size_t i = 0; i < calls.n && err == 0; i++)
        if (calls.list[i].result < 0)
            err = pyri_rados_fail(s, calls.list[i].result, "a blob");
    pyri_calls_fini(&calls);
    return err;
}

void
pyri_rados_drop_blobs(pyri_engine *e, const pyri_blob *blobs, size_t n)
{
    pyri_cluster *s = pyri_cluster_of(e);
    if (pyri_cluster_check(s) < 0)
        return;
    for (size_t i = 0; i < n; i++)
        forget(s, blobs[i].ref.a);
    pyri_rblobs_remove(s, blobs, n); /* or the end of the session does it */
}

/* --- lists of those that are named --------------------------------------- */

static void
store_key(uint8_t key[KEY], pyri_ref ref)
{
    pyri_store64_be(key, ref.a);
    pyri_store64_be(key + 8, ref.b);
}

static int
by_number(const void *a, const void *b)
{
    const pyri_blob *x = a, *y = b;
    return (x->ref.a > y->ref.a) - (x->ref.a < y->ref.a);
}

typedef struct listing {
    const char *method;
    int mode;
    uint32_t epoch;
    const pyri_complete *c; /* or NULL: keys alone */
} listing;

static void
add_blob(const listing *l, pyri_buf *in, const pyri_blob *blob)
{
    uint8_t key[KEY], value[16];
    store_key(key, blob->ref);
    pyri_buf_varint(in, KEY);
    pyri_buf_add(in, key, KEY);
    if (!l->c)
        return;
    pyri_store64(value, l->c->array);
    pyri_store64(value + 8, l->c->version);
    pyri_buf_varint(in, blob->size);
    pyri_buf_varint(in, sizeof value);
    pyri_buf_add(in, value, sizeof value);
}

static int
make_calls(pyri_calls *calls, const listing *l, const pyri_blob *blobs,
           size_t n)
{
    char oid[PYRI_RADOS_OID];
    for (size_t at = 0; at < n;) {
        size_t end = at;
        while (end < n && end - at < PER_CALL &&
               blobs[end].ref.a / ROW == blobs[at].ref.a / ROW)
            end++;
        pyri_rblobs_list_oid(oid, blobs[at].ref.a);
        pyri_call *c = pyri_calls_add(calls, l->method, true, oid);
        if (!c)
            return pyri_fail_nomem("a list of blobs");
        pyri_buf_u8(&c->in, (uint8_t)l->mode);
        pyri_buf_u32(&c->in, l->epoch);
        pyri_buf_varint(&c->in, end - at);
        for (; at < end; at++)
            add_blob(l, &c->in, &blobs[at]);
    }
    return 0;
}

static int
plan_listing(const listing *l, const pyri_blob *blobs, size_t n,
             pyri_calls *calls)
{
    if (n == 0)
        return 0;
    pyri_blob *sorted = pyri_sys_malloc(n * sizeof *sorted);
    if (!sorted)
        return pyri_fail_nomem("a list of blobs");
    memcpy(sorted, blobs, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_number);
    int err = make_calls(calls, l, sorted, n);
    free(sorted);
    return err;
}

/* Call a method of the lists for some blobs; adds the weight that it tells. */
static int
run_listing(pyri_cluster *s, const listing *l, const pyri_blob *blobs, size_t n,
            uint64_t *weight)
{
    pyri_calls calls = {0};
    int err = plan_listing(l, blobs, n, &calls);
    if (err == 0)
        err = pyri_calls_run(s, calls.list, calls.n);
    for (size_t i = 0; i < calls.n && err == 0; i++) {
        pyri_call *c = &calls.list[i];
        if (c->result < 0)
            err = pyri_rados_fail(s, c->result, "the list of blobs");
        pyri_cursor_u64(&c->answer);
        pyri_cursor_u64(&c->answer);
        if (weight)
            *weight += pyri_cursor_u64(&c->answer);
    }
    pyri_calls_fini(&calls);
    return err;
}

int
pyri_rblobs_list(const pyri_complete *c, uint32_t epoch, pyri_calls *calls)
{
    listing l = {"put", PYRI_ENTRY_PUT, epoch, c};
    return plan_listing(&l, c->blobs, c->nblobs, calls);
}

void
pyri_rblobs_undo(pyri_cluster *s, const pyri_complete *c, uint32_t epoch)
{
    listing l = {"drop", 1, epoch, NULL};
    if (c->nblobs)
        run_listing(s, &l, c->blobs, c->nblobs, NULL);
}

int
pyri_rblobs_unlist(pyri_cluster *s, const pyri_blob *blobs, size_t n,
                   uint64_t *bytes)
{
    listing l = {"drop", 0, 0, NULL};
    return n ? run_listing(s, &l, blobs, n, bytes) : 0;
}

int
pyri_rblobs_drop(pyri_cluster *s, const pyri_blob *blobs, size_t n)
{
    int err = pyri_rblobs_unlist(s, blobs, n, NULL);
    return err < 0 || n == 0 ? err : pyri_rblobs_remove(s, blobs, n);
}

typedef struct tour {
    pyri_blob_fn *each;
    void *ctx;
    pyri_cluster *s;
    pyri_reader *r;
} tour;

static int
tell_blob(void *ctx, pyri_bytes key, uint64_t weight, pyri_bytes value)
{
    const tour *t = ctx;
    if (key.size != KEY || value.size != 16)
        return pyri_fail(PYR_ECORRUPT, "a list of blobs is damaged");
    const uint8_t *k = key.data, *v = value.data;
    pyri_blob blob = {{pyri_load64_be(k), pyri_load64_be(k + 8)}, weight};
    return t->each(t->ctx, &blob, pyri_load64(v), pyri_load64(v + 8));
}

static int
tell_list(void *ctx, const char *oid)
{
    tour *t = ctx;
    pyri_reader own = {.site = t->s};
    int err = pyri_rados_entries(t->s, &own, oid, tell_blob, t);
    pyri_rados_free_blocks(&own);
    return err;
}

int
pyri_rados_scan_blobs(pyri_engine *e, pyri_reader *r, pyri_blob_fn *each,
                      void *ctx)
{
    tour t = {each, ctx, pyri_cluster_of(e), r};
    int err = pyri_cluster_check(t.s);
    return err < 0 ? err : pyri_rados_objects(t.s, "l.", tell_list, &t);
}

/* --- what a dead session left -------------------------------------------- */

static int
note_named(void *ctx, pyri_bytes key, uint64_t weight, pyri_bytes value)
{
    uint8_t *named = ctx;
    (void)weight, (void)value;
    if (key.size == KEY)
        named[pyri_load64_be(key.data) % ROW] = 1;
    return 0;
}

/* How long is what lies there, if anything? */
static int
measure(pyri_cluster *s, uint64_t number, uint64_t *size)
{
    char oid[PYRI_RADOS_OID];
    int err = 0;
    *size = 0;
    for (uint64_t part = 0; err == 0; part++) {
        uint64_t bytes;
        time_t when;
        blob_oid(oid, number, part);
        if ((err = rados_stat(s->io, oid, &bytes, &when)) == 0)
            *size = part * PART + bytes;
        if (err == 0 && bytes < PART)
            break;
    }
    return err == -ENOENT ? (*size ? 0 : -ENOENT) : err;
}

static int
sweep_row(pyri_cluster *s, uint64_t first, uint64_t n, uint64_t *bytes)
{
    uint8_t named[ROW] = {0};
    char oid[PYRI_RADOS_OID];
    pyri_call c;
    pyri_reader own = {.site = s};
    pyri_rblobs_list_oid(oid, first);
    pyri_call_begin(&c, "sweep", true, oid);
    int err = pyri_call_run(s, &c);
    pyri_call_fini(&c);
    err = err < 0 ? pyri_rados_fail(s, err, "a list of blobs")
                  : pyri_rados_entries(s, &own, oid, note_named, named);
    pyri_rados_free_blocks(&own);
    for (uint64_t i = 0; i < n && err == 0; i++) {
        pyri_blob blob = {{first + i, 0}, 0};
        if (named[(first + i) % ROW])
            continue;
        err = measure(s, first + i, &blob.size);
        if (err == -ENOENT) {
            err = 0;
            continue;
        }
        err = err < 0 ? pyri_rados_fail(s, err, "a blob")
                      : pyri_rblobs_remove(s, &blob, 1);
        *bytes += blob.size;
    }
    return err;
}

int
pyri_rblobs_sweep(pyri_cluster *s, uint64_t first, uint64_t n, uint64_t *bytes)
{
    int err = 0;
    for (uint64_t at = 0; at < n && err == 0; at += ROW)
        err = sweep_row(s, first + at, pyri_min64(ROW, n - at), bytes);
    return err;
}
