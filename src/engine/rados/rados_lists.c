/*
 * engine/rados/rados_lists.c - which blobs are named, and by which version.
 *
 * They are listed in an object per 4096 of them: their numbers come one after
 * the other, so it is mostly one call for a version. What a session put that
 * died and is not listed is found by this.
 *
 * A blob that is computed is not in an object of its own number. So its key is
 * put on the list before, with an empty value: that it may come to be, and in
 * which object. When it is named, its array, its version and its ref take that
 * place.
 */
#include "engine/rados/rados.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/sys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROW = 4096, /* blobs on one list */
    KEY = 16,
    PER_CALL = 1024
};

static void
list_oid(char oid[PYRI_RADOS_OID], uint64_t number)
{
    snprintf(oid, PYRI_RADOS_OID, "l.%llx", (unsigned long long)(number / ROW));
}

/* --- lists of those that are named --------------------------------------- */

static void
store_key(uint8_t key[KEY], pyri_ref ref)
{
    pyri_store64_be(key, ref.a);
    pyri_store64_be(key + 8, ref.b >> PYRI_RADOS_PLACE_BITS
                                 << PYRI_RADOS_PLACE_BITS);
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
    bool intended; /* keys, with nothing */
} listing;

static void
add_blob(const listing *l, pyri_buf *in, const pyri_blob *blob)
{
    uint8_t key[KEY], value[24];
    size_t size = blob->ref.b ? 24 : 16;
    store_key(key, blob->ref);
    pyri_buf_varint(in, KEY);
    pyri_buf_add(in, key, KEY);
    if (l->intended) {
        pyri_buf_varint(in, 0);
        pyri_buf_varint(in, 0);
    }
    if (!l->c)
        return;
    pyri_store64(value, l->c->array);
    pyri_store64(value + 8, l->c->version);
    pyri_store64(value + 16, blob->ref.b);
    pyri_buf_varint(in, blob->size);
    pyri_buf_varint(in, size);
    pyri_buf_add(in, value, size);
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
        list_oid(oid, blobs[at].ref.a);
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
    listing l = {"put", PYRI_ENTRY_PUT, epoch, c, false};
    return plan_listing(&l, c->blobs, c->nblobs, calls);
}

int
pyri_rblobs_intend(pyri_cluster *s, const pyri_blob *blobs, size_t n)
{
    listing l = {"put", PYRI_ENTRY_PUT, 0, NULL, true};
    return n ? run_listing(s, &l, blobs, n, NULL) : 0;
}

/* As a writer may, which cannot take others' blobs off a list. */
void
pyri_rblobs_undo(pyri_cluster *s, const pyri_complete *c, uint32_t epoch)
{
    listing l = {"undo", 0, epoch, NULL, false};
    if (c->nblobs)
        run_listing(s, &l, c->blobs, c->nblobs, NULL);
}

/* As an undo, which writers may do: intentions are of epoch 0. */
int
pyri_rblobs_renounce(pyri_cluster *s, const pyri_blob *blobs, size_t n)
{
    listing l = {"undo", 0, 0, NULL, false};
    pyri_blob *some = pyri_sys_malloc((n + 1) * sizeof *some);
    size_t k = 0;
    if (!some)
        return pyri_fail_nomem("a list of blobs");
    for (size_t i = 0; i < n; i++)
        if (blobs[i].ref.b)
            some[k++] = blobs[i];
    int err = k ? run_listing(s, &l, some, k, NULL) : 0;
    free(some);
    return err;
}

int
pyri_rblobs_unlist(pyri_cluster *s, const pyri_blob *blobs, size_t n,
                   uint64_t *bytes)
{
    listing l = {"drop", 0, 0, NULL, false};
    return n ? run_listing(s, &l, blobs, n, bytes) : 0;
}

int
pyri_rblobs_drop(pyri_cluster *s, const pyri_blob *blobs, size_t n)
{
    int err = pyri_rblobs_unlist(s, blobs, n, NULL);
    return err < 0 || n == 0 ? err : pyri_rblobs_remove(s, blobs, n);
}

static int
add_disowning(pyri_calls *calls, const pyri_complete *c, uint32_t epoch,
              uint64_t number)
{
    char oid[PYRI_RADOS_OID];
    uint8_t name[16];
    list_oid(oid, number);
    pyri_call *call = pyri_calls_add(calls, "disown", true, oid);
    if (!call)
        return pyri_fail_nomem("a list of blobs");
    pyri_store64(name, c->array);
    pyri_store64(name + 8, c->version);
    pyri_buf_u32(&call->in, epoch);
    pyri_buf_varint(&call->in, sizeof name);
    pyri_buf_add(&call->in, name, sizeof name);
    return 0;
}

/* Then they are to its session what it has put and not named. */
int
pyri_rblobs_disown(pyri_cluster *s, const pyri_complete *c, uint32_t epoch,
                   uint64_t session)
{
    pyri_calls calls = {0};
    uint64_t used;
    int err = pyri_session_used(s, session, &used);
    for (uint64_t at = 0; at < used && err == 0; at += ROW)
        err = add_disowning(&calls, c, epoch, (session << 32) + at);
    if (err == 0)
        err = pyri_calls_run(s, calls.list, calls.n);
    for (size_t i = 0; i < calls.n && err == 0; i++)
        if (calls.list[i].result < 0 && calls.list[i].result != -ENOENT)
            err = pyri_rados_fail(s, calls.list[i].result,
                                  "the list of blobs");
    pyri_calls_fini(&calls);
    return err;
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
    const uint8_t *k = key.data, *v = value.data;
    if (key.size == KEY && value.size == 0)
        return 0; /* only intended */
    if (key.size != KEY || value.size != (pyri_load64_be(k + 8) ? 24u : 16u))
        return pyri_fail(PYR_ECORRUPT, "a list of blobs is damaged");
    pyri_blob blob = {{pyri_load64_be(k), 0}, weight};
    if (value.size > 16)
        blob.ref.b = pyri_load64(v + 16);
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

/* What a list says of each number of its row. */
typedef struct row {
    uint8_t named[ROW];
    uint64_t home[ROW]; /* it was to be computed: ref.b */
} row;

static int
note_named(void *ctx, pyri_bytes key, uint64_t weight, pyri_bytes value)
{
    row *r = ctx;
    (void)weight;
    if (key.size != KEY)
        return 0;
    size_t i = pyri_load64_be(key.data) % ROW;
    if (value.size)
        r->named[i] = 1;
    else
        r->home[i] = pyri_load64_be((const uint8_t *)key.data + 8);
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
        pyri_rblobs_oid(oid, number, part);
        if ((err = rados_stat(s->io, oid, &bytes, &when)) == 0)
            *size = part * PYRI_RADOS_PART + bytes;
        if (err == 0 && bytes < PYRI_RADOS_PART)
            break;
    }
    return err == -ENOENT ? (*size ? 0 : -ENOENT) : err;
}

/* Remove what lies there and is not named; adds its bytes, if they can be
 * told: those of blobs that were computed are not. */
static int
sweep_one(pyri_cluster *s, uint64_t number, uint64_t home, uint64_t *bytes)
{
    pyri_blob blob = {{number, home}, 0};
    int err = home ? 0 : measure(s, number, &blob.size);
    if (err == -ENOENT)
        return 0;
    err = err < 0 ? pyri_rados_fail(s, err, "a blob")
                  : pyri_rblobs_remove(s, &blob, 1);
    *bytes += blob.size;
    return err;
}

static int
sweep_row(pyri_cluster *s, uint64_t first, uint64_t n, uint64_t *bytes)
{
    char oid[PYRI_RADOS_OID];
    pyri_call c;
    pyri_reader own = {.site = s};
    row *r = pyri_sys_calloc(1, sizeof *r);
    if (!r)
        return pyri_fail_nomem("a list of blobs");
    list_oid(oid, first);
    pyri_call_begin(&c, "sweep", true, oid);
    int err = pyri_call_run(s, &c);
    pyri_call_fini(&c);
    err = err < 0 ? pyri_rados_fail(s, err, "a list of blobs")
                  : pyri_rados_entries(s, &own, oid, note_named, r);
    pyri_rados_free_blocks(&own);
    for (uint64_t i = first; i < first + n && err == 0; i++)
        if (!r->named[i % ROW])
            err = sweep_one(s, i, r->home[i % ROW], bytes);
    free(r);
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
