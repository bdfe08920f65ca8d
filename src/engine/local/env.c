/*
 * engine/local/env.c - LMDB, wrapped.
 */
#include "engine/local/env.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/io.h"
#include "base/sys.h"
#include "engine/local/local.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

enum {
    MAX_READERS = 8192, /* read transactions at once, in all processes */
    MAX_NAMED = 4,
    MODE = 0666, /* less the umask */
    RESERVED_LOCKS = 16384, /* bytes of a lock file */
    NEARLY_NOTHING = 1 << 20 /* bytes left on a full disk */
};

static int
code_of_mdb(int rc)
{
    switch (rc) {
    case MDB_MAP_FULL: return PYR_ENOSPC;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_INCOMPATIBLE: return PYR_ECORRUPT;
    case MDB_VERSION_MISMATCH: return PYR_EFORMAT;
    case MDB_BAD_VALSIZE: return PYR_EINVAL;
    default: return PYR_EIO;
    }
}

static const char *
reason_of_mdb(int rc)
{
    switch (rc) {
    case MDB_READERS_FULL:
        return "too many readers at once (8192 in all processes)";
    case MDB_MAP_FULL:
        return "the address space set aside for metadata is full";
    case MDB_MAP_RESIZED:
        return "grown by another process beyond this one's address space";
    case MDB_PANIC:
        return "an earlier write failed half-way; open the store again";
    default: return mdb_strerror(rc);
    }
}

int
pyri_fail_mdb(int rc, const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (rc > 0)
        return pyri_fail_errno(rc, "%s", what);
    return pyri_fail(code_of_mdb(rc), "%s: %s", what, reason_of_mdb(rc));
}

static int
open_once(const pyri_env_plan *plan, uint64_t map_size, MDB_env **out)
{
    MDB_env *env;
    int rc = mdb_env_create(&env);
    if (rc != 0)
        return rc;
    if ((rc = mdb_env_set_mapsize(env, (size_t)map_size)) == 0 &&
        (rc = mdb_env_set_maxreaders(env, MAX_READERS)) == 0 &&
        (rc = mdb_env_set_maxdbs(env, MAX_NAMED)) == 0 &&
        (rc = mdb_env_open(env, plan->path, plan->flags | MDB_NOTLS,
                           MODE)) == 0) {
        int fd;
        if (mdb_env_get_fd(env, &fd) == 0)
            pyri_sys_fcntl(fd, F_SETFD, FD_CLOEXEC); /* 0.9.24 leaves it open */
        *out = env;
        return 0;
    }
    mdb_env_close(env);
    return rc;
}

static bool
has_address_space(uint64_t size)
{
    void *at = pyri_sys_mmap(NULL, (size_t)size, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                             0);
    if (at != MAP_FAILED)
        munmap(at, (size_t)size);
    return at != MAP_FAILED;
}

/* LMDB maps its lock file and does not ask whether there is room for it. Some
 * is made for the locks and the first few hundred readers. Nobody in this
 * process may have the environment open: closing a file drops its locks. */
static int
reserve_locks(const pyri_env_plan *plan)
{
    char name[PATH_MAX];
    int n = snprintf(name, sizeof name, "%s/lock.mdb", plan->path);
    if (n < 0 || (size_t)n >= sizeof name || plan->flags & MDB_NOLOCK)
        return 0;
    int fd = PYRI_RETRY(
        pyri_sys_open(name, O_RDWR | O_CREAT | O_CLOEXEC, MODE));
    if (fd < 0)
        return 0; /* LMDB has more to say about that */
    int errnum = pyri_io_reserve(fd, RESERVED_LOCKS);
    pyri_sys_close(fd);
    return errnum ? pyri_fail_errno(errnum, "%s", name) : 0;
}

int
pyri_env_open(const pyri_env_plan *plan, MDB_env **out)
{
    int i = 0;
    *out = NULL;
    int err = reserve_locks(plan);
    if (err < 0)
        return err;
    while (i < 2 && !has_address_space(plan->map_sizes[i]))
        i++;
    int rc = open_once(plan, plan->map_sizes[i], out);
    if (rc != 0)
        return pyri_fail_mdb(rc, "%s", plan->path);
    pyri_env_forget_dead(*out);
    return 0;
}

int
pyri_env_make(const pyri_env_plan *plan)
{
    MDB_env *env;
    int err = pyri_env_open(plan, &env);
    if (err < 0)
        return err;
    int rc = mdb_env_sync(env, 1);
    mdb_env_close(env);
    return rc ? pyri_fail_mdb(rc, "%s", plan->path) : 0;
}

void
pyri_env_forget_dead(MDB_env *env)
{
    int dead;
    mdb_reader_check(env, &dead);
}

int
pyri_env_read(MDB_env *env, MDB_txn **out)
{
    int rc = mdb_txn_begin(env, NULL, MDB_RDONLY, out);
    if (rc == MDB_READERS_FULL) { /* some of them may be dead */
        pyri_env_forget_dead(env);
        rc = mdb_txn_begin(env, NULL, MDB_RDONLY, out);
    }
    return rc ? pyri_fail_mdb(rc, "begin to read metadata") : 0;
}

int
pyri_env_write(MDB_env *env, MDB_txn **out)
{
    int rc = mdb_txn_begin(env, NULL, 0, out);
    return rc ? pyri_fail_mdb(rc, "begin to write metadata") : 0;
}

/* LMDB calls a write that came out short an input/output error. */
static bool
is_full(MDB_env *env)
{
    struct statvfs v;
    int fd;
    return mdb_env_get_fd(env, &fd) == 0 && pyri_sys_fstatvfs(fd, &v) == 0 &&
           (uint64_t)v.f_bavail * v.f_frsize < NEARLY_NOTHING;
}

int
pyri_env_commit(MDB_txn *txn, const char *what)
{
    MDB_env *env = mdb_txn_env(txn);
    pyri_env_ahead(env);
    int rc = mdb_txn_commit(txn);
    if (rc == EIO && is_full(env))
        rc = ENOSPC;
    return rc ? pyri_fail_mdb(rc, "%s", what) : 0;
}

int
pyri_env_sync(MDB_env *env)
{
    int rc = mdb_env_sync(env, 1);
    return rc ? pyri_fail_mdb(rc, "sync metadata") : 0;
}

/* --- values -------------------------------------------------------------- */

enum { PAGE_HEAD = 16, LONG_VALUE = 4 /* flag of a page */ };

/* The number of a page is the first thing in it. */
int
pyri_env_learn(MDB_txn *txn, MDB_dbi main_db, const char *name,
               struct pyri_env_map *map)
{
    MDB_env *env = mdb_txn_env(txn);
    MDB_val k = {strlen(name), (void *)(uintptr_t)name}, v;
    MDB_envinfo info;
    MDB_stat st;
    int rc;
    if ((rc = mdb_get(txn, main_db, &k, &v)) != 0 ||
        (rc = mdb_env_info(env, &info)) != 0 ||
        (rc = mdb_env_stat(env, &st)) != 0)
        return pyri_fail_mdb(rc, "look at metadata");
    uintptr_t start = (uintptr_t)v.mv_data & ~(uintptr_t)(st.ms_psize - 1);
    map->page = st.ms_psize;
    map->from = start - pyri_load64((const void *)start) * map->page;
    map->to = map->from + info.me_mapsize;
    if (map->from > start || map->to <= start)
        return pyri_env_torn();
    mdb_env_set_userctx(env, map);
    return 0;
}

bool
pyri_env_whole(MDB_txn *txn, const MDB_val *v)
{
    const struct pyri_env_map *m = mdb_env_get_userctx(mdb_txn_env(txn));
    uintptr_t at = (uintptr_t)v->mv_data;
    if (!m || at < m->from || at >= m->to)
        return true;
    size_t in = (at - m->from) & (m->page - 1);
    if (v->mv_size <= m->page - in)
        return true;
    if (in != PAGE_HEAD)
        return false;
    const uint8_t *head = (const uint8_t *)v->mv_data - PAGE_HEAD;
    return pyri_load16(head + 10) == LONG_VALUE &&
           pyri_load32(head + 12) ==
               (PAGE_HEAD + v->mv_size - 1) / m->page + 1;
}

int
pyri_env_torn(void)
{
    return pyri_fail(PYR_ECORRUPT, "a page of meta/data.mdb is damaged");
}

static MDB_val
val_of(const void *data, size_t size)
{
    return (MDB_val){size, (void *)(uintptr_t)data};
}

int
pyri_env_get(MDB_txn *txn, MDB_dbi db, const void *key, size_t size,
             MDB_val *out, bool *found)
{
    MDB_val k = val_of(key, size);
    int rc = mdb_get(txn, db, &k, out);
    *found = rc == 0;
    if (rc == 0 && !pyri_env_whole(txn, out))
        return pyri_env_torn();
    if (rc == 0 || rc == MDB_NOTFOUND)
        return 0;
    return pyri_fail_mdb(rc, "read metadata");
}

int
pyri_env_put(MDB_txn *txn, MDB_dbi db, const void *key, size_t size,
             const void *value, size_t value_size)
{
    MDB_val k = val_of(key, size), v = val_of(value, value_size);
    int rc = mdb_put(txn, db, &k, &v, 0);
    return rc ? pyri_fail_mdb(rc, "write metadata") : 0;
}

int
pyri_env_put_two(MDB_txn *txn, MDB_dbi db, const void *key, size_t size,
                 pyri_bytes first, pyri_bytes second)
{
    uint8_t small[1024], *value = small;
    size_t all = first.size + second.size;
    if (all > sizeof small && !(value = pyri_sys_malloc(all)))
        return pyri_fail_nomem("a value of metadata");
    memcpy(value, first.data, first.size);
    if (second.size)
        memcpy(value + first.size, second.data, second.size);
    int err = pyri_env_put(txn, db, key, size, value, all);
    if (value != small)
        free(value);
    return err;
}

int
pyri_env_delete(MDB_txn *txn, MDB_dbi db, const void *key, size_t size,
                bool *found)
{
    MDB_val k = val_of(key, size);
    int rc = mdb_del(txn, db, &k, NULL);
    *found = rc == 0;
    if (rc == 0 || rc == MDB_NOTFOUND)
        return 0;
    return pyri_fail_mdb(rc, "delete metadata");
}

int
pyri_env_step(MDB_cursor *cursor, MDB_cursor_op op, pyri_bytes prefix,
              MDB_val *key, MDB_val *value, bool *more)
{
    int rc = mdb_cursor_get(cursor, key, value, op);
    *more = false;
    if (rc == 0 && (!pyri_env_whole(mdb_cursor_txn(cursor), key) ||
                    !pyri_env_whole(mdb_cursor_txn(cursor), value)))
        return pyri_env_torn();
    *more = rc == 0 && key->mv_size >= prefix.size &&
            memcmp(key->mv_data, prefix.data, prefix.size) == 0;
    if (rc == 0 || rc == MDB_NOTFOUND)
        return 0;
    return pyri_fail_mdb(rc, "walk metadata");
}

int
pyri_env_cursor(MDB_txn *txn, MDB_dbi db, MDB_cursor **out)
{
    int rc = mdb_cursor_open(txn, db, out);
    return rc ? pyri_fail_mdb(rc, "walk metadata") : 0;
}
