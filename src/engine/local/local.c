/*
 * engine/local/local.c - the embedded engine: its table, and open and close.
 *
 * LMDB allows an environment to be open once in a process. So a process has
 * one site per store directory, however often that is opened; the registry
 * finds it by device and inode. A handle is a counted reference.
 *
 * fork(): the child must not use what the parent opened (LMDB's place in the
 * table of readers, file offsets, locks). A handler notes each fork, so the
 * child's calls fail and its closes touch nothing; it also lets go of the
 * inherited locks, so that a child does not keep a dead parent alive.
 */
#include "engine/local/local.h"

#include "base/checked.h"
#include "base/sys.h"
#include "engine/engines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct handle {
    pyri_engine base;
    pyri_site *site;
} handle;

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static pyri_site *registry;        /* guarded by it */
static atomic_uint forks;          /* of this process since its first open */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* --- fork ---------------------------------------------------------------- */

static void
before_fork(void)
{
    pthread_mutex_lock(&registry_lock);
}

/* A child that is made while a file of the store is being opened would have it,
 * and with it a lock that nobody can undo. */
void
pyri_site_hold_forks(bool hold)
{
    if (hold)
        pthread_mutex_lock(&registry_lock);
    else
        pthread_mutex_unlock(&registry_lock);
}

static void
after_fork_in_parent(void)
{
    pthread_mutex_unlock(&registry_lock);
}

static void
after_fork_in_child(void)
{
    for (pyri_site *s = registry; s; s = s->next) {
        if (s->presence.fd >= 0)
            pyri_sys_close(s->presence.fd);
        if (atomic_load(&s->upkeep_fd) >= 0)
            pyri_sys_close(atomic_load(&s->upkeep_fd)); /* but not unlocked */
    }
    registry = NULL; /* the sites stay, for their handles; they are dead */
    atomic_fetch_add(&forks, 1);
    pthread_mutex_unlock(&registry_lock);
}

static void
watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static bool
is_stale(const pyri_site *s)
{
    return s->generation != atomic_load_explicit(&forks, memory_order_relaxed);
}

static int
check_site(const pyri_site *s)
{
    return is_stale(s) ? pyri_fail(PYR_EINVAL, "%s was opened before fork(); "
                                   "open it again in the child", s->path)
                       : 0;
}

static pyri_site *
site_of(pyri_engine *e)
{
    return ((handle *)e)->site;
}

/* --- sites --------------------------------------------------------------- */

static void
free_site(pyri_site *s)
{
    /* LMDB's open and close are kept apart, see env.h. */
    int fd = -1;
    bool locked = s->meta && pyri_path_lock(s->path, &fd) == 0;
    pyri_settle_unlock(s);
    if (atomic_load(&s->live_ready))
        pyri_segments_fini(s);
    pyri_readers_fini(s);
    pyri_live_close(s);
    pyri_meta_close(s);
    if (locked)
        pyri_sys_close(fd);
    pyri_maps_free(s->maps);
    pyri_small_fini(&s->small);
    pyri_dirs_fini(&s->dirs);
    pyri_format_fini(&s->format);
    free(s->path);
    free(s);
}

/* Takes the format. */
static int
new_site(const char *path, pyri_format *format, bool readonly, pyri_site **out)
{
    pyri_site *s = pyri_sys_calloc(1, sizeof *s);
    if (!s) {
        pyri_format_fini(format);
        return pyri_fail_nomem("a store");
    }
    s->generation = atomic_load(&forks);
    s->format = *format;
    s->presence.fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->dirs.lock, NULL);
    pyri_publisher_init(&s->publisher);
    pyri_segments_init(&s->segments);
    pyri_small_init(&s->small);
    atomic_init(&s->upkeep_fd, -1);
    int err = 0;
    if (!(s->path = pyri_sys_realpath(path, NULL)))
        err = pyri_fail_errno(errno, "%s", path);
    if (err == 0 &&
        (err = pyri_dirs_init(&s->dirs, s->path, &s->format)) == 0 &&
        (err = pyri_maps_new(&s->maps)) == 0 &&
        (err = pyri_small_open(&s->small)) == 0)
        err = pyri_meta_open(s, readonly);
    if (err < 0) {
        free_site(s);
        return err;
    }
    *out = s;
    return 0;
}

static int
make_site(const char *path, unsigned flags, const pyr_store_options *options,
          pyri_site **out)
{
    pyri_format format;
    struct stat st;
    bool found, create = flags & PYR_OPEN_CREATE;
    int err = pyri_format_read(path, &format, &found);
    if (err == 0 && !found && create &&
        (err = pyri_format_create(path, options)) == 0)
        err = pyri_format_read(path, &format, &found);
    if (err < 0)
        return err;
    if (!found)
        return pyri_format_missing(path);
    if ((err = new_site(path, &format, flags & PYR_OPEN_READONLY, out)) < 0)
        return err;
    if (pyri_sys_stat(path, &st) < 0) {
        free_site(*out);
        return pyri_fail_errno(errno, "%s", path);
    }
    (*out)->dev = st.st_dev;
    (*out)->ino = st.st_ino;
    (*out)->next = registry;
    registry = *out;
    return 0;
}

static pyri_site *
find_site(const char *path)
{
    struct stat st;
    if (pyri_sys_stat(path, &st) < 0)
        return NULL;
    for (pyri_site *s = registry; s; s = s->next)
        if (s->dev == st.st_dev && s->ino == st.st_ino)
            return s;
    return NULL;
}

/* One reference less; with the registry locked. */
static void
drop_site(pyri_site *s)
{
    if (--s->refs > 0)
        return;
    for (pyri_site **p = &registry; *p; p = &(*p)->next)
        if (*p == s) {
            *p = s->next;
            break;
        }
    free_site(s);
}

/* Make a site fit for one more handle. */
static int
enlist(pyri_site *s, bool readonly)
{
    int err;
    if (readonly)
        return 0;
    pthread_mutex_lock(&s->lock);
    if (s->meta_readonly)
        err = pyri_fail(PYR_EREADONLY, "no permission to write to %s",
                        s->path);
    else if ((err = pyri_live_open(s)) == 0)
        err = pyri_presence_change(s, 1);
    pthread_mutex_unlock(&s->lock);
    return err;
}

/* --- open and close ------------------------------------------------------ */

static int
open_site(const char *path, unsigned flags, const pyr_store_options *options,
          pyri_site **out)
{
    int err = 0;
    pthread_mutex_lock(&registry_lock);
    pyri_site *s = find_site(path);
    if (!s)
        err = make_site(path, flags, options, &s);
    if (err == 0) {
        s->refs++;
        if ((err = enlist(s, flags & PYR_OPEN_READONLY)) < 0)
            drop_site(s);
        else
            *out = s;
    }
    pthread_mutex_unlock(&registry_lock);
    return err;
}

static int
local_open(const char *rest, unsigned flags, const pyr_store_options *options,
           pyri_engine **out)
{
    *out = NULL;
    if (!*rest)
        return pyri_fail(PYR_EINVAL, "the path of the store is empty");
    pthread_once(&once, watch_forks);
    handle *h = pyri_sys_calloc(1, sizeof *h);
    if (!h)
        return pyri_fail_nomem("a store");
    int err = open_site(rest, flags, options, &h->site);
    if (err < 0) {
        free(h);
        return err;
    }
    h->base = (pyri_engine){.ops = &pyri_engine_local,
                            .readonly = flags & PYR_OPEN_READONLY,
                            .durability = h->site->format.durability,
                            .lease_ms = h->site->format.lease_ms};
    *out = &h->base;
    return 0;
}

static void
local_close(pyri_engine *e)
{
    pyri_site *s = site_of(e);
    if (!is_stale(s)) { /* else it is the parent's to close */
        pthread_mutex_lock(&registry_lock);
        pthread_mutex_lock(&s->lock);
        if (!e->readonly)
            pyri_presence_change(s, -1);
        pthread_mutex_unlock(&s->lock);
        drop_site(s);
        pthread_mutex_unlock(&registry_lock);
    }
    free(e);
}

/* --- the rest of the table: check, and pass on --------------------------- */

static int
local_begin(pyri_engine *e, pyri_reader **out)
{
    int err = check_site(site_of(e));
    *out = NULL;
    return err < 0 ? err : pyri_reader_begin(site_of(e), out);
}

static void
local_end(pyri_engine *e, pyri_reader *r)
{
    if (!is_stale(site_of(e)))
        pyri_reader_end(site_of(e), r);
}

static int
local_get_record(pyri_engine *e, pyri_reader *r, pyri_bytes key,
                 pyri_bytes *value, bool *found)
{
    return pyri_meta_get_record(site_of(e), r, key, value, found);
}

static int
local_scan_records(pyri_engine *e, pyri_reader *r, pyri_bytes prefix,
                   pyri_record_fn *each, void *ctx)
{
    return pyri_meta_scan_records(site_of(e), r, prefix, each, ctx);
}

static int
local_edit(pyri_engine *e, const pyri_edit *edits, size_t n)
{
    int err = check_site(site_of(e));
    return err < 0 ? err : pyri_meta_edit(site_of(e), edits, n);
}

static int
local_get_nodes(pyri_engine *e, pyri_reader *r, pyri_node_get *gets, size_t n)
{
    return pyri_meta_get_nodes(site_of(e), r, gets, n);
}

enum { MANY_PUTS = 16 };

/* Those of a few that do not wait in memory go into a segment, side by side. */
static int
put_few(pyri_site *s, pyri_blob_put *puts, size_t n)
{
    pyri_blob_put large[MANY_PUTS], *from[MANY_PUTS];
    size_t nlarge = 0;
    int err = 0;
    for (size_t i = 0; i < n && err == 0; i++) {
        if (pyri_small_fits(s, &puts[i])) {
            err = pyri_small_put(s, &puts[i]);
        } else {
            from[nlarge] = &puts[i];
            large[nlarge++] = puts[i];
        }
    }
    if (err < 0 || nlarge == 0)
        return err;
    err = pyri_segments_put(s, large, nlarge);
    for (size_t i = 0; i < nlarge; i++)
        from[i]->ref = large[i].ref;
    return err;
}

static int
local_put_blobs(pyri_engine *e, pyri_blob_put *puts, size_t n)
{
    int err = check_site(site_of(e));
    for (size_t i = 0; i < n && err == 0; i += MANY_PUTS)
        err = put_few(site_of(e), puts + i, pyri_min64(n - i, MANY_PUTS));
    return err;
}

static void
local_vouch(pyri_engine *e, pyri_ref ref)
{
    if (ref.a & PYRI_SMALL_BIT)
        pyri_small_vouch(site_of(e), ref);
    else
        pyri_map_vouch(site_of(e), ref);
}

static void
local_drop_blobs(pyri_engine *e, const pyri_blob *blobs, size_t n,
                 const pyri_blob *near, size_t nnear)
{
    for (size_t i = 0; i < n && !is_stale(site_of(e)); i++)
        if (blobs[i].ref.a & PYRI_SMALL_BIT)
            pyri_small_drop(site_of(e), blobs[i].ref);
        else
            pyri_limbo_drop(site_of(e), &blobs[i], near, nnear);
}

static int
local_sync(pyri_engine *e)
{
    int err = check_site(site_of(e));
    return err < 0 ? err : pyri_segments_sync(site_of(e));
}

static int
local_get_blobs(pyri_engine *e, pyri_reader *r, pyri_blob_get *gets, size_t n)
{
    return pyri_map_get(site_of(e), r, gets, n);
}

static int
local_latest(pyri_engine *e, pyri_reader *r, uint64_t array, uint64_t *version,
             uint64_t *shape)
{
    pyri_head head;
    int err = pyri_meta_head(site_of(e), r->txn, array, &head);
    if (err < 0)
        return err;
    *version = head.latest;
    if (shape)
        memcpy(shape, head.shape, (size_t)head.ndim * sizeof shape[0]);
    return 0;
}

static int
local_marked(pyri_engine *e, pyri_reader *r, uint64_t array, uint64_t *version,
             uint64_t *shape, uint64_t *mark)
{
    pyri_head head;
    int err = pyri_meta_head(site_of(e), r->txn, array, &head);
    if (err < 0)
        return err;
    *version = head.latest;
    *mark = head.mark;
    memcpy(shape, head.shape, (size_t)head.ndim * sizeof shape[0]);
    return 0;
}

static int
local_take(pyri_engine *e, const pyri_take *take, pyri_ticket *ticket,
           pyri_flights *below)
{
    int err = check_site(site_of(e));
    return err < 0 ? err : pyri_ticket_take(site_of(e), take, ticket, below);
}

static int
local_renew(pyri_engine *e, pyri_ticket *ticket)
{
    int err = check_site(site_of(e));
    return err < 0 ? err : pyri_ticket_renew(site_of(e), ticket);
}

static int
local_flights(pyri_engine *e, uint64_t array, pyri_flights *out)
{
    int err = check_site(site_of(e));
    return err < 0 ? err : pyri_ticket_flights(site_of(e), array, out);
}

static int
local_complete(pyri_engine *e, pyri_complete *c)
{
    int err = check_site(site_of(e));
    return err < 0 ? err : pyri_publish(site_of(e), c);
}

static int
local_import(pyri_engine *e, pyri_complete *c)
{
    int err = check_site(site_of(e));
    return err < 0 ? err : pyri_import(site_of(e), c);
}

static int
local_wait(pyri_engine *e, uint64_t array, uint64_t version, int timeout_ms)
{
    int err = check_site(site_of(e));
    return err < 0 ? err
                   : pyri_wake_wait(site_of(e), array, version, timeout_ms);
}

static int
local_get_version(pyri_engine *e, pyri_reader *r, uint64_t array,
                  uint64_t version, pyri_version_get *out)
{
    return pyri_meta_get_version(site_of(e), r, array, version, out);
}

static int
local_scan_versions(pyri_engine *e, pyri_reader *r, uint64_t array,
                    uint64_t first, uint64_t last, pyri_version_fn *each,
                    void *ctx)
{
    return pyri_meta_scan_versions(site_of(e), r, array, first, last, each,
                                   ctx);
}

static int
local_begin_upkeep(pyri_engine *e)
{
    int err = check_site(site_of(e));
    return err < 0 ? err : pyri_settle_lock(site_of(e));
}

static void
local_end_upkeep(pyri_engine *e)
{
    if (!is_stale(site_of(e)))
        pyri_settle_unlock(site_of(e));
}

static int
local_scan_forgotten(pyri_engine *e, pyri_reader *r, pyri_forgotten_fn *each,
                     void *ctx)
{
    return pyri_erase_scan_forgotten(site_of(e), r, each, ctx);
}

static int
local_erase(pyri_engine *e, pyri_erase *x)
{
    int err = check_site(site_of(e));
    return err < 0 ? err : pyri_erase_run(site_of(e), x);
}

static int
local_settle(pyri_engine *e, pyri_settled *out)
{
    int err = check_site(site_of(e));
    return err < 0 ? err : pyri_settle(site_of(e), out);
}

static int
local_scan_nodes(pyri_engine *e, pyri_reader *r, uint64_t array,
                 pyri_node_fn *each, void *ctx)
{
    return pyri_meta_scan_nodes(site_of(e), r, array, each, ctx);
}

typedef struct blob_teller {
    pyri_blob_fn *each;
    void *ctx;
} blob_teller;

static int
tell_blob(void *ctx, const pyri_named_blob *b)
{
    const blob_teller *t = ctx;
    if (b->damaged)
        return pyri_fail(PYR_ECORRUPT, "an entry for a blob is damaged");
    return t->each(t->ctx, &b->blob, b->array, b->version);
}

static int
local_check(pyri_engine *e)
{
    atomic_fetch_add(&site_of(e)->doubts, 1); /* nothing from memory */
    return pyri_pages_check(site_of(e));
}

static void
local_vouch_node(pyri_engine *e, pyri_reader *r, const pyri_node_get *got)
{
    pyri_meta_vouch_node(site_of(e), r, got);
}

static int
local_replace_nodes(pyri_engine *e, const pyri_node_put *puts, size_t n)
{
    return pyri_erase_replace(site_of(e), puts, n);
}

static int
local_fold(pyri_engine *e, pyri_fold *f)
{
    return pyri_fold_run(site_of(e), f);
}

static int
local_folds(pyri_engine *e, pyri_reader *r, uint64_t family, uint64_t *out)
{
    return pyri_fold_count(site_of(e), r, family, out);
}

static int
local_scan_blobs(pyri_engine *e, pyri_reader *r, pyri_blob_fn *each, void *ctx)
{
    blob_teller t = {each, ctx};
    return pyri_blobs_scan(site_of(e), r->txn, (pyri_ref){0, 0}, tell_blob,
                           &t);
}

static int
local_status(pyri_engine *e, pyr_status *out, pyr_data_dir_fn *each, void *ctx)
{
    int err = check_site(site_of(e));
    return err < 0 ? err : pyri_site_status(site_of(e), out, each, ctx);
}

const pyri_engine_ops pyri_engine_local = {
    .scheme = "file",
    .folds_aside = true,
    .open = local_open,
    .close = local_close,
    .begin = local_begin,
    .end = local_end,
    .get_record = local_get_record,
    .scan_records = local_scan_records,
    .edit = local_edit,
    .get_nodes = local_get_nodes,
    .vouch_node = local_vouch_node,
    .put_blobs = local_put_blobs,
    .sync = local_sync,
    .get_blobs = local_get_blobs,
    .vouch = local_vouch,
    .drop_blobs = local_drop_blobs,
    .latest = local_latest,
    .marked = local_marked,
    .take = local_take,
    .renew = local_renew,
    .flights = local_flights,
    .complete = local_complete,
    .import = local_import,
    .wait = local_wait,
    .get_version = local_get_version,
    .scan_versions = local_scan_versions,
    .begin_upkeep = local_begin_upkeep,
    .end_upkeep = local_end_upkeep,
    .scan_forgotten = local_scan_forgotten,
    .erase = local_erase,
    .settle = local_settle,
    .scan_nodes = local_scan_nodes,
    .scan_blobs = local_scan_blobs,
    .replace_nodes = local_replace_nodes,
    .fold = local_fold,
    .folds = local_folds,
    .check = local_check,
    .status = local_status,
};
