/*
 * engine/local/meta.c - what lasts: records, nodes, versions, heads.
 *
 * The environment STORE/meta has these databases:
 *
 *   main      'h' array          -> head: latest, ndim (1 byte) and mark (7),
 *                                   shape[ndim], sum
 *   records   key                -> see records.c
 *   tree      array version      -> ndim (1 byte; plus 128: it is forgotten),
 *                                   shape[ndim], sum, provenance
 *             array version 'n' ... -> a node
 *   blobs, limbo                 see blobs.c and erase.c
 *
 * The tree above chooses the keys of nodes, and begins them with array and
 * version; the 'n' is put in here, so that no key is mistaken for a version's.
 * Numbers in keys are 8 bytes, big-endian; in values 8 bytes, little-endian.
 * Sums are checksums that cover the key too. Heads share pages with LMDB's own table of databases, and a version's record
 * stands just before its nodes: so a completion touches few pages, and those
 * of one array that are written one after the other lie side by side.
 */
#include "engine/local/local.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/sys.h"
#include "engine/local/env.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    HEAD_KEY = 9,
    VERSION_KEY = 16,
    MAX_HEAD = 24 + 8 * PYR_MAX_DIMS,
    FORGOTTEN = 0x80
};

/* --- opening ------------------------------------------------------------- */

/* *lost: one was not found. */
static int
open_databases(pyri_site *s, pyri_txn *txn, unsigned flags, bool *lost)
{
    const struct {
        const char *name;
        unsigned *db;
    } all[] = {{NULL, &s->main_db},
               {"tree", &s->tree_db},
               {"records", &s->records_db},
               {"blobs", &s->blobs_db},
               {"limbo", &s->limbo_db}};
    int err = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all && err == 0; i++)
        err = pyri_env_database(txn, all[i].name, all[i].name ? flags : 0,
                                all[i].db, lost);
    return err;
}

/* Where something is, databases are not made: one that is not found was lost,
 * and an empty one in its place would hide that. */
static int
check_fresh(pyri_site *s, pyri_txn *txn)
{
    uint64_t entries;
    bool lost;
    int err = pyri_env_database(txn, NULL, 0, &s->main_db, &lost);
    if (err < 0 || (err = pyri_env_entries(txn, s->main_db, &entries)) < 0)
        return err;
    return entries == 0
               ? 0
               : pyri_fail(PYR_ECORRUPT, "%s/meta: a database is missing",
                           s->path);
}

/* Databases opened by a transaction are the environment's once it commits. */
static int
open_all(pyri_site *s, bool may_write)
{
    pyri_txn *txn;
    bool lost;
    int err = pyri_env_read(s->meta, &txn);
    if (err < 0)
        return err;
    if ((err = open_databases(s, txn, 0, &lost)) == 0)
        return pyri_env_commit(txn, "open metadata");
    pyri_env_abort(txn);
    if (!lost)
        return err;
    if (!may_write)
        return pyri_fail_at(PYR_ECORRUPT, "metadata is missing");
    if ((err = pyri_env_write(s->meta, &txn)) < 0)
        return err;
    if ((err = check_fresh(s, txn)) == 0 &&
        (err = open_databases(s, txn, MDB_CREATE, &lost)) == 0)
        return pyri_env_commit(txn, "make metadata");
    pyri_env_abort(txn);
    return err;
}

static int
may_write(const char *path, bool *may)
{
    char name[PATH_MAX];
    int err = pyri_path_join(name, sizeof name, path, "data.mdb");
    if (err < 0)
        return err;
    *may = pyri_sys_access(path, W_OK) == 0 && pyri_sys_access(name, W_OK) == 0;
    if (*may || errno == EACCES || errno == EPERM || errno == EROFS)
        return 0;
    return pyri_fail_errno(errno, "%s", name);
}

/* LMDB would make a new file, and the store would seem to be empty. */
static int
check_there(const char *path)
{
    char name[PATH_MAX];
    struct stat st;
    int err = pyri_path_join(name, sizeof name, path, "data.mdb");
    if (err < 0)
        return err;
    if (pyri_sys_stat(name, &st) == 0)
        return 0;
    if (errno == ENOENT)
        return pyri_fail(PYR_ECORRUPT, "%s: the metadata of this store is "
                                       "missing", name);
    return pyri_fail_errno(errno, "%s", name);
}

static bool
on_readonly_disk(const char *path)
{
    struct statvfs v;
    return pyri_sys_statvfs(path, &v) == 0 && v.f_flag & ST_RDONLY;
}

#define MAP_SIZES                                                             \
    {                                                                         \
        UINT64_C(1) << 40, UINT64_C(1) << 36, UINT64_C(1) << 33               \
    }

void
pyri_meta_unmake(const char *store)
{
    static const char *const files[] = {"meta/data.mdb", "meta/lock.mdb"};
    char name[PATH_MAX];
    for (size_t i = 0; i < 2; i++)
        if (pyri_path_join(name, sizeof name, store, files[i]) == 0)
            pyri_sys_unlink(name);
}

/* LMDB makes its file where there is none, but syncs neither its first pages
 * nor its name: after a power cut there could be half of it, and a store that
 * does not open. So it is made before the marker, and thrown away if there is
 * no marker in the end. */
int
pyri_meta_make(const char *store)
{
    char path[PATH_MAX];
    pyri_env_plan plan = {.path = path, .map_sizes = MAP_SIZES};
    int err = pyri_path_join(path, sizeof path, store, "meta");
    if (err < 0)
        return err;
    pyri_meta_unmake(store); /* what one that was not finished left */
    err = pyri_env_make(&plan);
    return err < 0 ? err : pyri_path_sync(path);
}

static int
open_env(pyri_site *s, const char *path)
{
    pyri_env_plan plan = {
        .path = path,
        .map_sizes = MAP_SIZES,
        .grows = true,
        .remedy = "Look at the store with 'pyramid verify', and save it with "
                  "'pyramid copy' to a new one.",
        .flags = s->format.durability == PYR_DURABILITY_OS ? MDB_NOSYNC : 0};
    if (s->meta_readonly)
        plan.flags |= MDB_RDONLY;
    if ((s->meta_unlocked = on_readonly_disk(path)))
        plan.flags |= MDB_NOLOCK; /* nobody writes there */
    int err = pyri_env_open(&plan, &s->meta);
    if (err == PYR_ECORRUPT)
        return err;
    if (err < 0 && s->meta_readonly)
        return pyri_fail_at(PYR_EREADONLY,
                            "a reader must be able to write to %s/lock.mdb, "
                            "so that writers know of it (chmod a+rw)",
                            path);
    return err < 0 ? err : open_all(s, !s->meta_readonly);
}

/* Readers announce themselves in the lock file, which holds nothing else: so
 * whoever may read the store may write to it. */
static void
open_lock_to_readers(const char *path)
{
    char name[PATH_MAX];
    struct stat st;
    if (pyri_path_join(name, sizeof name, path, "lock.mdb") == 0 &&
        pyri_sys_stat(name, &st) == 0 && st.st_uid == geteuid() &&
        (st.st_mode & 0777) != 0666)
        (void)!pyri_sys_chmod(name, 0666);
}

int
pyri_meta_open(pyri_site *s, bool readonly)
{
    char path[PATH_MAX];
    int fd, err = pyri_path_join(path, sizeof path, s->path, "meta");
    if (err < 0)
        return err;
    if ((err = check_there(path)) < 0)
        return err;
    bool may;
    if ((err = may_write(path, &may)) < 0)
        return err;
    s->meta_readonly = !may;
    if (s->meta_readonly && !readonly)
        return pyri_fail(PYR_EREADONLY, "no permission to write to %s", path);
    if ((err = pyri_path_lock(s->path, &fd)) < 0)
        return err;
    err = open_env(s, path);
    if (err == 0 && !s->meta_readonly)
        open_lock_to_readers(path);
    pyri_sys_close(fd);
    return err;
}

void
pyri_meta_close(pyri_site *s)
{
    if (s->meta)
        pyri_env_close(s->meta);
    s->meta = NULL;
}

/* --- heads and versions -------------------------------------------------- */

static void
head_key(uint8_t key[HEAD_KEY], uint64_t array)
{
    key[0] = 'h';
    pyri_store64_be(key + 1, array);
}

static void
version_key(uint8_t key[VERSION_KEY], uint64_t array, uint64_t version)
{
    pyri_store64_be(key, array);
    pyri_store64_be(key + 8, version);
}

uint64_t
pyri_meta_sum(pyri_bytes key, pyri_bytes a, pyri_bytes b)
{
    uint64_t sums[3] = {pyri_hash64(key.data, key.size),
                        pyri_hash64(a.data, a.size),
                        pyri_hash64(b.data, b.size)};
    return pyri_hash64(sums, sizeof sums);
}

static uint64_t
sum_of_head(uint64_t array, const uint8_t *value, size_t ndim)
{
    uint8_t key[HEAD_KEY];
    head_key(key, array);
    return pyri_meta_sum((pyri_bytes){key, sizeof key},
                         (pyri_bytes){value, 16 + 8 * ndim},
                         (pyri_bytes){"", 0});
}

static int
decode_head(const MDB_val *v, uint64_t array, pyri_head *out)
{
    const uint8_t *at = v->mv_data;
    uint64_t word = v->mv_size < 16 ? 0 : pyri_load64(at + 8);
    uint64_t ndim = word & 0xff;
    if (ndim < 1 || ndim > PYR_MAX_DIMS || v->mv_size != 24 + 8 * ndim ||
        pyri_load64(at + 16 + 8 * ndim) !=
            sum_of_head(array, at, (size_t)ndim))
        return pyri_fail(PYR_ECORRUPT, "the head of array %llu is damaged",
                         (unsigned long long)array);
    out->latest = pyri_load64(at);
    out->ndim = (int)ndim;
    out->mark = word >> 8;
    for (uint64_t d = 0; d < ndim; d++)
        out->shape[d] = pyri_load64(at + 16 + 8 * d);
    return 0;
}

static int
find_head(pyri_site *s, pyri_txn *txn, uint64_t array, pyri_head *out,
          bool *found)
{
    uint8_t key[HEAD_KEY];
    MDB_val v;
    head_key(key, array);
    int err = pyri_env_get(txn, s->main_db, key, sizeof key, &v, found);
    return err < 0 || !*found ? err : decode_head(&v, array, out);
}

int
pyri_meta_head(pyri_site *s, pyri_txn *txn, uint64_t array, pyri_head *out)
{
    bool found;
    int err = find_head(s, txn, array, out, &found);
    if (err == 0 && !found)
        err = pyri_fail(PYR_ENOTFOUND, "there is no array %llu",
                        (unsigned long long)array);
    return err;
}

int
pyri_meta_put_head(pyri_site *s, pyri_txn *txn, uint64_t array,
                   const pyri_head *head)
{
    uint8_t key[HEAD_KEY], value[MAX_HEAD];
    head_key(key, array);
    pyri_store64(value, head->latest);
    pyri_store64(value + 8, (uint64_t)head->ndim | head->mark << 8);
    for (int d = 0; d < head->ndim; d++)
        pyri_store64(value + 16 + 8 * d, head->shape[d]);
    pyri_store64(value + 16 + 8 * head->ndim,
                 sum_of_head(array, value, (size_t)head->ndim));
    return pyri_env_put(txn, s->main_db, key, sizeof key, value,
                        24 + 8 * (size_t)head->ndim);
}

int
pyri_meta_has_version(pyri_site *s, pyri_txn *txn, uint64_t array,
                      uint64_t version, bool *has)
{
    uint8_t key[VERSION_KEY];
    MDB_val v;
    version_key(key, array, version);
    return pyri_env_get(txn, s->tree_db, key, sizeof key, &v, has);
}

/* Of the key, what stands before the sum, and the beginning of the record,
 * which is its own checksum. */
static uint64_t
sum_of_version(const uint8_t key[VERSION_KEY], const uint8_t *head,
               size_t size, pyri_bytes record)
{
    if (record.size > 8)
        record.size = 8;
    return pyri_meta_sum((pyri_bytes){key, VERSION_KEY},
                         (pyri_bytes){head, size}, record);
}

enum { MAX_VERSION_HEAD = 9 + 8 * PYR_MAX_DIMS };

/* What stands before the record; returns its size. */
static size_t
version_head(const pyri_complete *c, int ndim, uint8_t key[VERSION_KEY],
             uint8_t value[MAX_VERSION_HEAD])
{
    size_t size = 1 + 8 * (size_t)ndim;
    version_key(key, c->array, c->version);
    value[0] = (uint8_t)ndim;
    for (int d = 0; d < ndim; d++)
        pyri_store64(value + 1 + 8 * d, c->shape[d]);
    pyri_store64(value + size, sum_of_version(key, value, size, c->record));
    return size + 8;
}

int
pyri_meta_put_version(pyri_site *s, pyri_txn *txn, const pyri_complete *c,
                      int ndim)
{
    uint8_t key[VERSION_KEY], value[MAX_VERSION_HEAD];
    pyri_bytes head = {value, version_head(c, ndim, key, value)};
    return pyri_meta_put_tree(s, txn, key, sizeof key, head, c->record);
}

/* Of a version's value that is there at all. */
static int
ndim_of(const MDB_val *v)
{
    return *(const uint8_t *)v->mv_data & ~FORGOTTEN;
}

int
pyri_meta_same_version(pyri_site *s, pyri_txn *txn, const pyri_complete *c,
                       int ndim, bool *has, bool *same)
{
    uint8_t key[VERSION_KEY], value[MAX_VERSION_HEAD];
    size_t head = version_head(c, ndim, key, value), shape = head - 8;
    MDB_val v;
    *same = false;
    int err = pyri_env_get(txn, s->tree_db, key, sizeof key, &v, has);
    if (err < 0 || !*has || v.mv_size != head + c->record.size)
        return err;
    /* The mark of one that was forgotten since, and with it the sum, may
     * differ. */
    const uint8_t *at = v.mv_data;
    *same = ndim_of(&v) == ndim && memcmp(at + 1, value + 1, shape - 1) == 0 &&
            (c->record.size == 0 ||
             memcmp(at + head, c->record.data, c->record.size) == 0);
    return 0;
}

bool
pyri_meta_is_version(const uint8_t key[VERSION_KEY], const void *value,
                     size_t value_size)
{
    const MDB_val whole = {value_size, (void *)(uintptr_t)value}, *v = &whole;
    const uint8_t *at = v->mv_data;
    if (v->mv_size < 1 || ndim_of(v) < 1 || ndim_of(v) > PYR_MAX_DIMS)
        return false;
    size_t size = 1 + 8 * (size_t)ndim_of(v);
    if (v->mv_size < size + 8)
        return false;
    pyri_bytes record = {at + size + 8, v->mv_size - size - 8};
    return pyri_load64(at + size) == sum_of_version(key, at, size, record);
}

static int
check_version(const MDB_val *v, uint64_t array, uint64_t version)
{
    uint8_t key[VERSION_KEY];
    version_key(key, array, version);
    if (pyri_meta_is_version(key, v->mv_data, v->mv_size))
        return 0;
    return pyri_fail(PYR_ECORRUPT, "the record of version %llu of array %llu "
                     "is damaged", (unsigned long long)version,
                     (unsigned long long)array);
}

static pyri_version_get
tell_version(const MDB_val *v)
{
    const uint8_t *at = v->mv_data;
    size_t head = 9 + 8 * (size_t)ndim_of(v);
    return (pyri_version_get){.found = true,
                              .forgotten = at[0] & FORGOTTEN,
                              .record = {at + head, v->mv_size - head}};
}

int
pyri_meta_version_shape(pyri_site *s, pyri_txn *txn, uint64_t array,
                        uint64_t version, pyri_head *head, bool *has)
{
    uint8_t key[VERSION_KEY];
    MDB_val v;
    version_key(key, array, version);
    int err = pyri_env_get(txn, s->tree_db, key, sizeof key, &v, has);
    if (err < 0 || !*has || (err = check_version(&v, array, version)) < 0)
        return err;
    const uint8_t *at = v.mv_data;
    for (int d = 0; d < head->ndim && d < ndim_of(&v); d++)
        head->shape[d] = pyri_load64(at + 1 + 8 * d);
    return 0;
}

/* --- arrays and what is kept --------------------------------------------- */

int
pyri_meta_make_array(pyri_site *s, pyri_txn *txn, const pyri_edit *e)
{
    pyri_head head = {0};
    bool found;
    int err = find_head(s, txn, e->array, &head, &found);
    if (err < 0)
        return err;
    if (found)
        return pyri_fail(PYR_EEXIST, "array %llu exists",
                         (unsigned long long)e->array);
    if (e->ndim < 1 || e->ndim > PYR_MAX_DIMS)
        return pyri_fail(PYR_EINVAL, "an array of %d dimensions", e->ndim);
    head = (pyri_head){.latest = e->version, .ndim = e->ndim};
    memcpy(head.shape, e->shape, (size_t)e->ndim * sizeof head.shape[0]);
    return pyri_meta_put_head(s, txn, e->array, &head);
}

int
pyri_meta_mark(pyri_site *s, pyri_txn *txn, const pyri_edit *e)
{
    pyri_head head = {0};
    int err = pyri_meta_head(s, txn, e->array, &head);
    if (err < 0)
        return err;
    head.mark = e->version;
    return pyri_meta_put_head(s, txn, e->array, &head);
}

int
pyri_meta_kept(pyri_site *s, pyri_txn *txn, const pyri_edit *e)
{
    uint8_t key[VERSION_KEY];
    pyri_head head = {0};
    MDB_val v;
    bool found;
    version_key(key, e->array, e->version);
    int err = pyri_meta_head(s, txn, e->array, &head);
    if (err == 0)
        err = pyri_env_get(txn, s->tree_db, key, sizeof key, &v, &found);
    if (err < 0)
        return err;
    if (e->version <= head.latest && found && !tell_version(&v).forgotten)
        return 0;
    return pyri_fail(PYR_ENOVERSION, "version %llu was forgotten",
                     (unsigned long long)e->version);
}

/* --- published versions -------------------------------------------------- */

int
pyri_meta_get_version(pyri_site *s, pyri_reader *r, uint64_t array,
                      uint64_t version, pyri_version_get *out)
{
    pyri_head head = {0};
    uint8_t key[VERSION_KEY];
    pyri_bytes bytes;
    bool found = false;
    int err = pyri_meta_head(s, r->txn, array, &head);
    if (err < 0 || version > head.latest)
        return err;
    version_key(key, array, version);
    err = pyri_meta_find_tree(s, r, key, sizeof key, &bytes, &found);
    if (err == 0 && !found)
        out->forgotten = true;
    MDB_val v = {bytes.size, (void *)(uintptr_t)bytes.data};
    if (err < 0 || !found || (err = check_version(&v, array, version)) < 0)
        return err;
    *out = tell_version(&v);
    return 0;
}

/* Put the cursor on the record of the version nearest to *version, upwards or
 * downwards; *version becomes it. */
static int
seek_version(pyri_walk *cursor, uint64_t array, uint64_t *version, bool down,
             MDB_val *value, bool *more)
{
    uint8_t key[VERSION_KEY], prefix[8];
    pyri_store64_be(prefix, array);
    pyri_bytes of_array = {prefix, sizeof prefix};
    for (;;) {
        version_key(key, array, *version);
        MDB_val k = {sizeof key, key};
        int err = pyri_env_step(cursor, MDB_SET_RANGE, of_array, &k, value,
                                more);
        if (err < 0)
            return err;
        bool exact = *more && k.mv_size >= VERSION_KEY &&
                     memcmp(k.mv_data, key, VERSION_KEY) == 0;
        if (exact && k.mv_size == VERSION_KEY)
            return 0;
        if (down) { /* the one before; the last, if there is none behind */
            MDB_cursor_op op = k.mv_data == key ? MDB_LAST : MDB_PREV;
            err = pyri_env_step(cursor, op, of_array, &k, value, more);
            if (err < 0)
                return err;
        }
        if (!*more || k.mv_size < VERSION_KEY) {
            *more = false;
            return 0;
        }
        uint64_t at = pyri_load64_be((const uint8_t *)k.mv_data + 8);
        if (down ? at > *version : at < *version)
            return pyri_fail(PYR_ECORRUPT, "keys of metadata are out of "
                                           "order"); /* there is no end */
        if (at == *version) { /* nodes without a record: skip them */
            if (at == (down ? 0 : UINT64_MAX)) {
                *more = false;
                return 0;
            }
            at = down ? at - 1 : at + 1;
        }
        *version = at;
    }
}

static int
walk_versions(pyri_walk *cursor, uint64_t array, uint64_t first,
              uint64_t last, pyri_version_fn *each, void *ctx)
{
    bool down = first > last, more;
    for (uint64_t v = first;; v = down ? v - 1 : v + 1) {
        MDB_val value;
        int err = seek_version(cursor, array, &v, down, &value, &more);
        if (err < 0 || !more || (down ? v < last : v > last))
            return err;
        pyri_version_get get = {.found = true}; /* and, if damaged, empty */
        if (check_version(&value, array, v) == 0)
            get = tell_version(&value);
        if ((err = each(ctx, v, &get)) != 0)
            return err;
        if (v == last)
            return 0;
    }
}

int
pyri_meta_scan_versions(pyri_site *s, pyri_reader *r, uint64_t array,
                        uint64_t first, uint64_t last, pyri_version_fn *each,
                        void *ctx)
{
    pyri_head head = {0};
    pyri_walk *cursor;
    int err = pyri_meta_head(s, r->txn, array, &head);
    if (err < 0)
        return err;
    if (first > head.latest && last > head.latest)
        return 0;
    if (first > head.latest)
        first = head.latest;
    if (last > head.latest)
        last = head.latest;
    if ((err = pyri_env_cursor(r->txn, s->tree_db, &cursor)) < 0)
        return err;
    err = walk_versions(cursor, array, first, last, each, ctx);
    pyri_env_cursor_close(cursor);
    return err;
}

/* --- what goes ----------------------------------------------------------- */

int
pyri_meta_mark_forgotten(pyri_site *s, pyri_txn *txn, uint64_t array,
                         uint64_t version, bool *found)
{
    uint8_t key[VERSION_KEY];
    MDB_val v;
    version_key(key, array, version);
    int err = pyri_env_get(txn, s->tree_db, key, sizeof key, &v, found);
    if (err < 0 || !*found || (err = check_version(&v, array, version)) < 0)
        return err;
    if (tell_version(&v).forgotten) {
        *found = false;
        return 0;
    }
    uint8_t head[9 + 8 * PYR_MAX_DIMS];
    size_t size = 1 + 8 * (size_t)ndim_of(&v);
    pyri_bytes record = tell_version(&v).record;
    memcpy(head, v.mv_data, size);
    head[0] |= FORGOTTEN;
    pyri_store64(head + size, sum_of_version(key, head, size, record));
    return pyri_env_put_two(txn, s->tree_db, key, sizeof key,
                            (pyri_bytes){head, size + 8}, record);
}

int
pyri_meta_drop_version(pyri_site *s, pyri_txn *txn, uint64_t array,
                       uint64_t version)
{
    uint8_t key[VERSION_KEY];
    MDB_val v;
    bool found;
    version_key(key, array, version);
    int err = pyri_env_get(txn, s->tree_db, key, sizeof key, &v, &found);
    if (err < 0 || !found || (err = check_version(&v, array, version)) < 0)
        return err;
    if (!tell_version(&v).forgotten)
        return pyri_fail(PYR_EINVAL, "version %llu is not forgotten",
                         (unsigned long long)version);
    return pyri_env_delete(txn, s->tree_db, key, sizeof key, &found);
}

/* --- after a restart of the machine -------------------------------------- */

static int
drop_above(pyri_site *s, pyri_txn *txn, uint64_t array, uint64_t latest,
           bool *any)
{
    uint8_t key[VERSION_KEY], prefix[8];
    pyri_walk *cursor;
    if (latest == UINT64_MAX)
        return 0;
    int err = pyri_env_cursor(txn, s->tree_db, &cursor);
    if (err < 0)
        return err;
    pyri_store64_be(prefix, array);
    version_key(key, array, latest + 1);
    for (bool more = true; err == 0 && more;) {
        MDB_val k = {sizeof key, key}, v;
        err = pyri_env_step(cursor, MDB_SET_RANGE,
                            (pyri_bytes){prefix, sizeof prefix}, &k, &v,
                            &more);
        if (err == 0 && more) {
            err = pyri_env_cursor_delete(cursor);
            *any = true;
        }
    }
    pyri_env_cursor_close(cursor);
    return err;
}

static int
drop_all_above(pyri_site *s, pyri_txn *txn, bool *any)
{
    pyri_walk *cursor;
    MDB_val key = {1, (void *)(uintptr_t)"h"}, value;
    pyri_bytes prefix = {"h", 1};
    bool more;
    int err = pyri_env_cursor(txn, s->main_db, &cursor);
    if (err < 0)
        return err;
    err = pyri_env_step(cursor, MDB_SET_RANGE, prefix, &key, &value, &more);
    while (err == 0 && more) {
        pyri_head head = {0};
        uint64_t array = key.mv_size == HEAD_KEY
            ? pyri_load64_be((const uint8_t *)key.mv_data + 1) : 0;
        if ((err = decode_head(&value, array, &head)) == 0 &&
            (err = drop_above(s, txn, array, head.latest, any)) == 0)
            err = pyri_env_step(cursor, MDB_NEXT, prefix, &key, &value, &more);
    }
    pyri_env_cursor_close(cursor);
    return err;
}

int
pyri_meta_drop_unpublished(pyri_site *s)
{
    pyri_txn *txn;
    bool any = false;
    int err = pyri_env_write(s->meta, &txn);
    if (err < 0)
        return err;
    if ((err = drop_all_above(s, txn, &any)) == 0 &&
        (!any || ((err = pyri_erase_unpublished(s, txn)) == 0 &&
                  (err = pyri_meta_count_replaced(s, txn)) == 0)) &&
        (err = pyri_sweep_note_old(s, txn)) == 0)
        return pyri_env_commit(txn, "delete unpublished versions");
    pyri_env_abort(txn);
    return err;
}
