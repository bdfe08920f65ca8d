/*
 * engine/local/blobs.c - which blobs there are, and the small ones themselves.
 *
 * The database `blobs` of meta has an entry for every blob that a complete
 * version named:
 *
 *   reference (a, b: 8 bytes each, big-endian) ->
 *       array (8), version (8), checksum of these, the reference and the
 *       size (8), then the blob's bytes if it is small, else its size (8): it
 *       lies in segment a at offset b
 *
 * A small blob is not worth a file's sync of its own: it waits in memory until
 * its version completes, and is stored by the transaction that does so. Bit 63
 * of its a is set; the rest of a is the time, in nanoseconds, and grows from one
 * to the next; b is the id of the writer. So what many writers store together
 * lies together, on a few pages: a flush takes as long as there are places to
 * write to. Nothing is told by the time, and nothing depends on it. What waits
 * is bounded; beyond that small blobs go into segments like others. Where
 * nothing is synced (durability os) only the smallest go here, those that LMDB
 * has in its pages: others are found in a mapped segment without a search.
 *
 * A table remembers small blobs whose checksums were verified by this process,
 * as the bits of map.c do for pages of segments.
 */
#include "engine/local/local.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/sys.h"
#include "engine/local/env.h"

#include <string.h>
#include <time.h>

enum { REF_KEY = 16, OWNER = 24, EXTENT = OWNER + 8 };

struct pyri_pending {
    pyri_pending *next; /* in its bucket */
    pyri_ref ref;
    size_t size;
    uint8_t bytes[];
};

static void
ref_key(uint8_t key[REF_KEY], pyri_ref ref)
{
    pyri_store64_be(key, ref.a);
    pyri_store64_be(key + 8, ref.b);
}

/* --- waiting for their version ------------------------------------------- */

void
pyri_small_init(pyri_small *t)
{
    pthread_mutex_init(&t->lock, NULL);
}

void
pyri_small_fini(pyri_small *t)
{
    for (size_t i = 0; i < PYRI_PENDING_BUCKETS; i++)
        for (pyri_pending *p = t->pending[i], *next; p; p = next) {
            next = p->next;
            free(p);
        }
    pthread_mutex_destroy(&t->lock);
    free(t->trusted);
}

/* With the lock held: what points at the entry, or at the end of its list. */
static pyri_pending **
find_pending(pyri_small *t, pyri_ref ref)
{
    pyri_pending **p = &t->pending[ref.a % PYRI_PENDING_BUCKETS];
    while (*p && ((*p)->ref.a != ref.a || (*p)->ref.b != ref.b))
        p = &(*p)->next;
    return p;
}

bool
pyri_small_fits(pyri_site *s, const pyri_blob_put *put)
{
    uint64_t most = s->format.durability == PYR_DURABILITY_OS
                        ? PYRI_SMALL_UNSYNCED
                        : PYRI_SMALL_BLOB;
    return !put->aligned && put->size <= most &&
           atomic_load_explicit(&s->small.waiting, memory_order_relaxed) +
                   put->size <=
               PYRI_SMALL_WAITING;
}

/* Never the same twice in a process, whatever the clock does. */
static uint64_t
next_time(pyri_small *t)
{
    struct timespec ts = {0, 0}; /* if there is no clock, it is a count */
    pyri_sys_clock_gettime(CLOCK_REALTIME, &ts);
    uint64_t now = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
    uint64_t last = atomic_load(&t->last), next;
    do
        next = now > last ? now : last + 1;
    while (!atomic_compare_exchange_weak(&t->last, &last, next));
    return next | PYRI_SMALL_BIT;
}

int
pyri_small_put(pyri_site *s, pyri_blob_put *put)
{
    pyri_small *t = &s->small;
    pyri_pending *p = pyri_sys_malloc(sizeof *p + (size_t)put->size);
    if (!p)
        return pyri_fail_nomem("a small blob");
    p->size = 0;
    for (int i = 0; i < put->niov; i++) {
        if (put->iov[i].iov_len)
            memcpy(p->bytes + p->size, put->iov[i].iov_base,
                   put->iov[i].iov_len);
        p->size += put->iov[i].iov_len;
    }
    p->ref = (pyri_ref){next_time(t), s->presence.writer};
    put->ref = p->ref;
    pthread_mutex_lock(&t->lock);
    pyri_pending **end = find_pending(t, p->ref);
    p->next = NULL;
    *end = p;
    atomic_fetch_add(&t->waiting, p->size);
    pthread_mutex_unlock(&t->lock);
    pyri_small_vouch(s, put->ref);
    return 0;
}

void
pyri_small_drop(pyri_site *s, pyri_ref ref)
{
    pyri_small *t = &s->small;
    pthread_mutex_lock(&t->lock);
    pyri_pending **at = find_pending(t, ref), *p = *at;
    if (p) {
        *at = p->next;
        atomic_fetch_sub(&t->waiting, p->size);
    }
    pthread_mutex_unlock(&t->lock);
    free(p);
}

/* --- trust --------------------------------------------------------------- */

static uint64_t
trust_mark(pyri_ref ref)
{
    uint64_t words[2] = {ref.a, ref.b};
    return pyri_hash64(words, sizeof words) | 1; /* not 0: that is nobody */
}

static _Atomic uint64_t *
trust_slot(pyri_small *t, uint64_t mark)
{
    return &t->trusted[mark >> (64 - PYRI_TRUST_BITS)];
}

void
pyri_small_vouch(pyri_site *s, pyri_ref ref)
{
    uint64_t mark = trust_mark(ref);
    if (s->small.trusted)
        atomic_store_explicit(trust_slot(&s->small, mark), mark,
                              memory_order_relaxed);
}

static bool
is_trusted(pyri_site *s, pyri_ref ref)
{
    uint64_t mark = trust_mark(ref);
    return s->small.trusted &&
           atomic_load_explicit(trust_slot(&s->small, mark),
                                memory_order_relaxed) == mark;
}

int
pyri_small_open(pyri_small *t)
{
    t->trusted = pyri_sys_calloc((size_t)1 << PYRI_TRUST_BITS,
                                 sizeof *t->trusted);
    return t->trusted ? 0 : pyri_fail_nomem("a store");
}

/* --- reading ------------------------------------------------------------- */

/* Blobs of a version that is still being made are read by its maker alone,
 * who drops them after. */
pyri_bytes
pyri_small_waiting(pyri_site *s, pyri_ref ref)
{
    pyri_bytes out = {0};
    pthread_mutex_lock(&s->small.lock);
    const pyri_pending *p = *find_pending(&s->small, ref);
    if (p)
        out = (pyri_bytes){p->bytes, p->size};
    pthread_mutex_unlock(&s->small.lock);
    return out;
}

int
pyri_small_get(pyri_site *s, pyri_reader *r, pyri_blob_get *g)
{
    uint8_t key[REF_KEY];
    pyri_bytes bytes;
    uint64_t end;
    MDB_val v;
    bool found;
    if (g->ref.a == r->small.ref.a && g->ref.b == r->small.ref.b) {
        bytes = r->small.bytes;
    } else {
        ref_key(key, g->ref);
        int err = pyri_env_get(r->txn, s->blobs_db, key, sizeof key, &v,
                               &found);
        if (err < 0)
            return err;
        bytes = found && v.mv_size >= OWNER
                    ? (pyri_bytes){(uint8_t *)v.mv_data + OWNER,
                                   v.mv_size - OWNER}
                    : pyri_small_waiting(s, g->ref);
        r->small.ref = g->ref;
        r->small.bytes = bytes;
    }
    if (!bytes.data)
        return pyri_fail(PYR_ECORRUPT, "blob %llx:%llu is not there",
                         (unsigned long long)g->ref.a,
                         (unsigned long long)g->ref.b);
    if (__builtin_add_overflow(g->offset, g->size, &end) || end > bytes.size)
        return pyri_fail(PYR_ECORRUPT, "blob %llx:%llu is too short",
                         (unsigned long long)g->ref.a,
                         (unsigned long long)g->ref.b);
    g->data = (const uint8_t *)bytes.data + g->offset;
    g->seen = NULL;
    g->seen_first = 0;
    g->trusted = is_trusted(s, g->ref);
    return 0;
}

/* --- entries ------------------------------------------------------------- */

static uint64_t
sum_of(const uint8_t key[REF_KEY], const uint8_t *owner, uint64_t size)
{
    uint8_t bytes[8];
    pyri_store64(bytes, size);
    return pyri_meta_sum((pyri_bytes){key, REF_KEY}, (pyri_bytes){owner, 16},
                         (pyri_bytes){bytes, sizeof bytes});
}

/* --- with their version -------------------------------------------------- */

static int
name_small(pyri_site *s, pyri_txn *txn, const uint8_t *key, pyri_bytes owner,
           pyri_bytes bytes)
{
    if (!bytes.data)
        return pyri_fail(PYR_EIO, "a small blob was lost before it was stored");
    return pyri_env_put_two(txn, s->blobs_db, key, REF_KEY, owner, bytes);
}

int
pyri_blobs_name(pyri_site *s, pyri_txn *txn, const pyri_complete *c,
                const pyri_bytes *small)
{
    uint8_t key[REF_KEY], value[EXTENT];
    int err = 0;
    pyri_store64(value, c->array);
    pyri_store64(value + 8, c->version);
    for (size_t i = 0; i < c->nblobs && err == 0; i++) {
        const pyri_blob *b = &c->blobs[i];
        ref_key(key, b->ref);
        pyri_store64(value + 16, sum_of(key, value, b->size));
        pyri_store64(value + OWNER, b->size);
        err = b->ref.a & PYRI_SMALL_BIT
                  ? name_small(s, txn, key, (pyri_bytes){value, OWNER},
                               small ? small[i]
                                     : pyri_small_waiting(s, b->ref))
                  : pyri_env_put(txn, s->blobs_db, key, sizeof key, value,
                                 sizeof value);
    }
    return err;
}

void
pyri_blobs_named(pyri_site *s, const pyri_complete *c)
{
    for (size_t i = 0; i < c->nblobs; i++)
        if (c->blobs[i].ref.a & PYRI_SMALL_BIT)
            pyri_small_drop(s, c->blobs[i].ref);
}

/* --- the database -------------------------------------------------------- */

/* Entries that are damaged are told so: who would give back what is not named
 * must not take them for none. */
static int
decode_entry(const MDB_val *key, const MDB_val *value, pyri_named_blob *out)
{
    const uint8_t *k = key->mv_data, *v = value->mv_data;
    *out = (pyri_named_blob){.damaged = true};
    if (key->mv_size != REF_KEY)
        return pyri_fail(PYR_ECORRUPT, "an entry for a blob is damaged");
    out->blob.ref = (pyri_ref){pyri_load64_be(k), pyri_load64_be(k + 8)};
    bool small = out->blob.ref.a & PYRI_SMALL_BIT;
    if (value->mv_size < OWNER || (!small && value->mv_size != EXTENT))
        return pyri_fail(PYR_ECORRUPT, "an entry for a blob is damaged");
    uint64_t size = small ? value->mv_size - OWNER : pyri_load64(v + OWNER);
    if (pyri_load64(v + 16) != sum_of(k, v, size))
        return pyri_fail(PYR_ECORRUPT, "an entry for a blob is damaged");
    out->damaged = false;
    out->array = pyri_load64(v);
    out->version = pyri_load64(v + 8);
    out->blob.size = size;
    return 0;
}

int
pyri_blobs_erase(pyri_site *s, pyri_txn *txn, pyri_ref ref,
                 pyri_named_blob *was, bool *found)
{
    uint8_t key[REF_KEY];
    MDB_val k = {sizeof key, key}, v;
    ref_key(key, ref);
    int err = pyri_env_get(txn, s->blobs_db, key, sizeof key, &v, found);
    if (err < 0 || !*found || (err = decode_entry(&k, &v, was)) < 0)
        return err;
    return pyri_env_delete(txn, s->blobs_db, key, sizeof key, found);
}

int
pyri_blobs_scan(pyri_site *s, pyri_txn *txn, pyri_ref from,
                pyri_named_blob_fn *each, void *ctx)
{
    uint8_t key[REF_KEY];
    pyri_walk *cursor;
    MDB_val k = {sizeof key, key}, v;
    bool more;
    ref_key(key, from);
    int err = pyri_env_cursor(txn, s->blobs_db, &cursor);
    if (err < 0)
        return err;
    err = pyri_env_step(cursor, MDB_SET_RANGE, (pyri_bytes){"", 0}, &k, &v,
                        &more);
    while (err == 0 && more) {
        pyri_named_blob b;
        decode_entry(&k, &v, &b);
        if ((err = each(ctx, &b)) == 0)
            err = pyri_env_step(cursor, MDB_NEXT, (pyri_bytes){"", 0}, &k, &v,
                                &more);
    }
    pyri_env_cursor_close(cursor);
    return err;
}
