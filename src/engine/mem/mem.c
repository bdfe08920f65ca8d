/*
 * engine/mem/mem.c - a store in the memory of this process; read it first.
 *
 * It is here to be simple: what every entry of engine.h means is what happens
 * here. One lock per store guards all of it, readers included (that a reader
 * takes no lock which a writer can hold is a promise of the embedded engine,
 * not of this one).
 *
 *   records, nodes   ordered maps (mem_map.c)
 *   blobs            copies on the heap; ref.a is their number from 1
 *   versions         mem_versions.c
 *
 * Views: nodes, blobs and records of versions never change. What is replaced
 * goes to the graveyard, which is emptied whenever no reader is open; what is
 * erased stays until then (mem_upkeep.c).
 *
 * Names: "mem:NAME" is one store for the whole process as long as any handle
 * to it is open. "mem:" alone is a new store each time, of that handle only.
 */
#include "engine/mem/mem.h"

#include "base/checked.h"
#include "base/room.h"
#include "base/sys.h"
#include "engine/engines.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEFAULT_LEASE_MS = 10000, FORMAT = 1 };

/* --- stores by name ------------------------------------------------------ */

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static pyri_mem_store *all; /* guarded by all_lock, as their handles are */

static pyri_mem_store *
find_store(const char *name)
{
    pyri_mem_store *s = all;
    while (s && strcmp(s->name, name) != 0)
        s = s->next;
    return *name ? s : NULL;
}

static void
init_locks(pyri_mem_store *s)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->published, &monotonic);
    pthread_cond_init(&s->decided, NULL);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&s->lock, NULL);
}

static int
create_store(const char *name, const pyr_store_options *options,
             pyri_mem_store **out)
{
    pyri_mem_store *s = pyri_sys_calloc(1, sizeof *s);
    char *copy = pyri_sys_strdup(name);
    if (!s || !copy) {
        free(s);
        free(copy);
        return pyri_fail_nomem("a store");
    }
    s->name = copy;
    s->lease_ms = DEFAULT_LEASE_MS;
    if (options) {
        s->durability = options->durability;
        s->lease_ms = options->lease_ms ? options->lease_ms : DEFAULT_LEASE_MS;
    }
    init_locks(s);
    s->next = all;
    all = s;
    *out = s;
    return 0;
}

static void
drop_store(pyri_mem_store *s)
{
    pyri_mem_store **link = &all;
    while (*link != s)
        link = &(*link)->next;
    *link = s->next;
    assert(s->readers == 0);
    pyri_mem_bury(s);
    pyri_mem_clear_graveyard(&s->graveyard);
    pyri_mem_free_heads(s);
    pyri_mem_map_fini(&s->forgotten);
    pyri_mem_map_fini(&s->folds);
    pyri_mem_map_fini(&s->records);
    pyri_mem_map_fini(&s->nodes);
    pyri_mem_map_fini(&s->heads);
    pyri_mem_map_fini(&s->history);
    for (size_t i = 0; i < s->nblobs; i++)
        free(s->blobs[i].data);
    free(s->blobs);
    pthread_cond_destroy(&s->published);
    pthread_cond_destroy(&s->decided);
    pthread_mutex_destroy(&s->lock);
    free(s->name);
    free(s);
}

/* --- lifetime ------------------------------------------------------------ */

/* Find or make the store, under all_lock. */
static int
attach(const char *name, unsigned flags, const pyr_store_options *options,
       pyri_mem *e)
{
    int err = 0;
    e->store = find_store(name);
    if (!e->store && !(flags & PYR_OPEN_CREATE))
        err = pyri_fail(PYR_ENOTFOUND, "mem:%s: there is no such store", name);
    else if (!e->store)
        err = create_store(name, options, &e->store);
    if (err < 0)
        return err;
    e->base = (pyri_engine){&pyri_engine_mem, (flags & PYR_OPEN_READONLY) != 0,
                            e->store->durability, e->store->lease_ms,
                            NULL};
    e->store->handles++;
    pthread_mutex_lock(&e->store->lock);
    e->store->writers += !e->base.readonly;
    pthread_mutex_unlock(&e->store->lock);
    return 0;
}

static int
mem_open(const char *rest, unsigned flags, const pyr_store_options *options,
         pyri_engine **out)
{
    pyri_mem *e = pyri_sys_calloc(1, sizeof *e);
    if (!e)
        return pyri_fail_nomem("a store");
    pthread_mutex_lock(&all_lock);
    int err = attach(rest, flags, options, e);
    pthread_mutex_unlock(&all_lock);
    if (err < 0) {
        free(e);
        return err;
    }
    *out = &e->base;
    return 0;
}

static void
mem_close(pyri_engine *e)
{
    pyri_mem_store *s = pyri_mem_store_of(e);
    pthread_mutex_lock(&all_lock);
    pthread_mutex_lock(&s->lock);
    s->writers -= !e->readonly;
    pthread_mutex_unlock(&s->lock);
    if (--s->handles == 0)
        drop_store(s);
    pthread_mutex_unlock(&all_lock);
    free(e);
}

/* --- readers ------------------------------------------------------------- */

struct pyri_reader {
    pyri_mem_store *store; /* that counts it; nothing else to remember */
};

static int
mem_begin(pyri_engine *e, pyri_reader **out)
{
    pyri_reader *r = pyri_sys_malloc(sizeof *r);
    if (!r)
        return pyri_fail_nomem("a reader");
    r->store = pyri_mem_store_of(e);
    pthread_mutex_lock(&r->store->lock);
    r->store->readers++;
    pthread_mutex_unlock(&r->store->lock);
    *out = r;
    return 0;
}

static void
mem_end(pyri_engine *e, pyri_reader *r)
{
    pyri_mem_store *s = pyri_mem_store_of(e);
    assert(r->store == s);
    pthread_mutex_lock(&s->lock);
    if (--s->readers == 0) {
        pyri_mem_bury(s);
        pyri_mem_clear_graveyard(&s->graveyard);
    }
    pthread_mutex_unlock(&s->lock);
    free(r);
}

/* --- records ------------------------------------------------------------- */

static int
mem_get_record(pyri_engine *e, pyri_reader *r, pyri_bytes key,
               pyri_bytes *value, bool *found)
{
    (void)r;
    pyri_mem_store *s = pyri_mem_store_of(e);
    pthread_mutex_lock(&s->lock);
    const pyri_mem_entry *entry = pyri_mem_find(&s->records, key);
    *found = entry != NULL;
    if (entry)
        *value = entry->value;
    pthread_mutex_unlock(&s->lock);
    return 0;
}

int
pyri_mem_scan(pyri_mem_store *s, pyri_mem_map *m, pyri_bytes prefix,
              pyri_record_fn *each, void *ctx)
{
    const pyri_mem_entry **list;
    size_t n;
    pthread_mutex_lock(&s->lock);
    int err = pyri_mem_range(m, prefix, prefix, &list, &n);
    pthread_mutex_unlock(&s->lock);
    if (err < 0)
        return err;
    for (size_t i = 0; i < n && err == 0; i++)
        err = each(ctx, list[i]->key, list[i]->value);
    free(list);
    return err;
}

static int
mem_scan_records(pyri_engine *e, pyri_reader *r, pyri_bytes prefix,
                 pyri_record_fn *each, void *ctx)
{
    (void)r;
    pyri_mem_store *s = pyri_mem_store_of(e);
    return pyri_mem_scan(s, &s->records, prefix, each, ctx);
}

static int
fail_record(int code, pyri_bytes key, const char *what)
{
    return pyri_fail(code, "record \"%.*s\": %s", (int)key.size,
                     (const char *)key.data, what);
}

static bool
has_value(const pyri_mem_entry *entry, pyri_bytes value)
{
    if (!entry || value.size == 0)
        return !entry && value.size == 0;
    return entry->value.size == value.size &&
           memcmp(entry->value.data, value.data, value.size) == 0;
}

static int
apply_edit(pyri_mem_store *s, pyri_mem_batch *b, const pyri_edit *edit)
{
    const pyri_mem_entry *entry = pyri_mem_find(&s->records, edit->key);
    bool there = entry != NULL;
    switch (edit->kind) {
    case PYRI_EDIT_CREATE:
        if (there)
            return fail_record(PYR_EEXIST, edit->key, "exists already");
        return pyri_mem_batch_put(b, &s->records, edit->key, edit->value);
    case PYRI_EDIT_PUT:
        return pyri_mem_batch_put(b, &s->records, edit->key, edit->value);
    case PYRI_EDIT_DELETE:
    case PYRI_EDIT_EXPECT:
        if (!there)
            return fail_record(PYR_ENOTFOUND, edit->key, "is not there");
        if (edit->kind == PYRI_EDIT_DELETE)
            pyri_mem_batch_delete(b, &s->records, edit->key);
        return 0;
    case PYRI_EDIT_SAME:
        return has_value(entry, edit->value)
                   ? 0
                   : fail_record(PYR_EFENCED, edit->key, "has changed");
    case PYRI_EDIT_ARRAY: return pyri_mem_add_head(s, b, edit);
    case PYRI_EDIT_FORGET: return pyri_mem_forget(s, b, edit);
    case PYRI_EDIT_KEPT: return pyri_mem_kept(s, edit);
    case PYRI_EDIT_MARK: break; /* it has none */
    }
    return pyri_fail(PYR_EINVAL, "unknown kind of edit: %d", (int)edit->kind);
}

int
pyri_mem_finish(pyri_mem_store *s, pyri_mem_batch *b, int err)
{
    if (err < 0)
        pyri_mem_batch_undo(b);
    else
        pyri_mem_batch_keep(b, &s->graveyard);
    if (s->readers == 0)
        pyri_mem_clear_graveyard(&s->graveyard);
    return err;
}

static int
mem_edit(pyri_engine *e, const pyri_edit *edits, size_t n)
{
    pyri_mem_store *s = pyri_mem_store_of(e);
    pyri_mem_batch batch;
    int err = pyri_mem_batch_begin(&batch, n);
    if (err < 0)
        return err;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < n && err == 0; i++)
        err = apply_edit(s, &batch, &edits[i]);
    err = pyri_mem_finish(s, &batch, err);
    pthread_mutex_unlock(&s->lock);
    return err;
}

/* --- nodes --------------------------------------------------------------- */

static int
mem_get_nodes(pyri_engine *e, pyri_reader *r, pyri_node_get *gets, size_t n)
{
    (void)r;
    pyri_mem_store *s = pyri_mem_store_of(e);
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < n; i++) {
        const pyri_mem_entry *node = pyri_mem_find(&s->nodes, gets[i].key);
        gets[i].found = node != NULL;
        gets[i].value = node ? node->value : (pyri_bytes){0};
    }
    pthread_mutex_unlock(&s->lock);
    return 0;
}

/* --- blobs --------------------------------------------------------------- */

/* A copy of the pieces, on pages of its own if it is to be aligned. */
static int
gather(const pyri_blob_put *put, pyri_mem_blob *out)
{
    uint64_t unit = put->aligned ? PYRI_PAGE : sizeof(max_align_t);
    uint64_t room; /* at least one unit, and whole ones */
    if (!pyri_add64(pyri_max64(put->size, 1), unit - 1, &room) ||
        !(out->data = pyri_sys_aligned_alloc(unit,
                                             (size_t)(room / unit * unit))))
        return pyri_fail_nomem("a blob");
    *out = (pyri_mem_blob){.data = out->data};
    for (int i = 0; i < put->niov; i++) {
        assert(put->iov[i].iov_len <= put->size - out->size);
        if (put->iov[i].iov_len)
            memcpy(out->data + out->size, put->iov[i].iov_base,
                   put->iov[i].iov_len);
        out->size += put->iov[i].iov_len;
    }
    assert(out->size == put->size);
    return 0;
}

/* Takes the blob and names it. */
static int
keep_blob(pyri_mem_store *s, const pyri_mem_blob *blob, pyri_ref *ref)
{
    if (!pyri_room(&s->blobs, &s->blob_room, s->nblobs + 1, sizeof *s->blobs))
        return pyri_fail_nomem("the list of blobs");
    s->blobs[s->nblobs++] = *blob;
    s->data_bytes += blob->size;
    *ref = (pyri_ref){s->nblobs, 0};
    return 0;
}

static int
mem_put_blobs(pyri_engine *e, pyri_blob_put *puts, size_t n)
{
    pyri_mem_store *s = pyri_mem_store_of(e);
    for (size_t i = 0; i < n; i++) {
        pyri_mem_blob blob;
        int err = gather(&puts[i], &blob);
        if (err < 0)
            return err;
        pthread_mutex_lock(&s->lock);
        err = keep_blob(s, &blob, &puts[i].ref);
        pthread_mutex_unlock(&s->lock);
        if (err < 0) {
            free(blob.data);
            return err;
        }
    }
    return 0;
}

static int
mem_sync(pyri_engine *e)
{
    (void)e; /* memory is as durable as it gets */
    return 0;
}

static int
get_blob(const pyri_mem_store *s, pyri_blob_get *get)
{
    uint64_t number = get->ref.a, end;
    if (number == 0 || number > s->nblobs || get->ref.b != 0 ||
        !s->blobs[number - 1].data)
        return pyri_fail(PYR_ECORRUPT, "there is no blob %llu:%llu",
                         (unsigned long long)number,
                         (unsigned long long)get->ref.b);
    const pyri_mem_blob *blob = &s->blobs[number - 1];
    if (!pyri_add64(get->offset, get->size, &end) || end > blob->size)
        return pyri_fail(PYR_ECORRUPT,
                         "blob %llu: %llu bytes at %llu are "
                         "not inside its %llu",
                         (unsigned long long)number,
                         (unsigned long long)get->size,
                         (unsigned long long)get->offset,
                         (unsigned long long)blob->size);
    get->data = blob->data + get->offset;
    get->seen = NULL;
    get->seen_first = 0;
    get->trusted = false;
    return 0;
}

static int
mem_get_blobs(pyri_engine *e, pyri_reader *r, pyri_blob_get *gets, size_t n)
{
    (void)r;
    pyri_mem_store *s = pyri_mem_store_of(e);
    int err = 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < n && err == 0; i++)
        err = get_blob(s, &gets[i]);
    pthread_mutex_unlock(&s->lock);
    return err;
}

/* --- for people ---------------------------------------------------------- */

static int
mem_status(pyri_engine *e, pyr_status *out, pyr_data_dir_fn *each, void *ctx)
{
    (void)each; /* there are no directories */
    (void)ctx;
    pyri_mem_store *s = pyri_mem_store_of(e);
    pthread_mutex_lock(&s->lock);
    out->engine = e->ops->scheme;
    out->format = FORMAT;
    out->durability = s->durability;
    out->lease_ms = s->lease_ms;
    out->metadata_bytes = s->records.bytes + s->nodes.bytes + s->heads.bytes +
                          s->history.bytes;
    out->data_bytes = s->data_bytes;
    out->writers = s->writers;
    out->in_flight = pyri_mem_in_flight(s);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

const pyri_engine_ops pyri_engine_mem = {
    .scheme = "mem",
    .open = mem_open,
    .close = mem_close,
    .begin = mem_begin,
    .end = mem_end,
    .get_record = mem_get_record,
    .scan_records = mem_scan_records,
    .edit = mem_edit,
    .get_nodes = mem_get_nodes,
    .put_blobs = mem_put_blobs,
    .sync = mem_sync,
    .get_blobs = mem_get_blobs,
    .drop_blobs = pyri_mem_drop_blobs,
    .latest = pyri_mem_latest,
    .take = pyri_mem_take,
    .renew = pyri_mem_renew,
    .flights = pyri_mem_flights,
    .complete = pyri_mem_complete,
    .import = pyri_mem_import,
    .wait = pyri_mem_wait,
    .get_version = pyri_mem_get_version,
    .scan_versions = pyri_mem_scan_versions,
    .begin_upkeep = pyri_mem_begin_upkeep,
    .end_upkeep = pyri_mem_end_upkeep,
    .scan_forgotten = pyri_mem_scan_forgotten,
    .erase = pyri_mem_erase,
    .settle = pyri_mem_settle,
    .scan_nodes = pyri_mem_scan_nodes,
    .scan_blobs = pyri_mem_scan_blobs,
    .replace_nodes = pyri_mem_replace_nodes,
    .fold = pyri_mem_fold,
    .folds = pyri_mem_folds,
    .status = mem_status,
};
