/*
 * engine/local/env.c - LMDB, wrapped.
 */
#include "engine/local/env.h"

#include "base/fail.h"
#include "base/io.h"
#include "base/sys.h"
#include "engine/local/aside.h"
#include "engine/local/local.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    MAX_READERS = 8192, /* read transactions at once, in all processes */
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
        (rc = mdb_env_set_maxdbs(env, PYRI_MAX_NAMED)) == 0 &&
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

/* --- what is known beside LMDB ------------------------------------------- */

/* "meta/data.mdb" */
static void
name_file(const char *path, char out[], size_t size)
{
    const char *last = strrchr(path, '/');
    snprintf(out, size, "%.40s/data.mdb", last ? last + 1 : path);
}

/* LMDB has found itself at odds with what a page says, and ends the process
 * when this returns. To leave it by a jump is no way out: its cursors, some of
 * them on the stack, would stay in its lists. It asserts before it writes the
 * page that makes a transaction count, so none of it does. */
static void
say_last_word(MDB_env *env, const char *what)
{
    const pyri_aside *a = mdb_env_get_userctx(env);
    char text[PATH_MAX + 1024];
    int n = snprintf(text, sizeof text,
                     "pyramid: %s is damaged, and LMDB cannot go on: %s. This "
                     "process ends. Nothing of what it was about to store is "
                     "stored, and all that was stored before is as it was. "
                     "%s\n", a->path, what, a->remedy ? a->remedy : "");
    if (n > 0 && pyri_sys_write(STDERR_FILENO, text, (size_t)n) < n)
        return; /* nobody listens */
}

static int
begin_aside(MDB_env *env, const pyri_env_plan *plan)
{
    MDB_envinfo info;
    MDB_stat st;
    pyri_aside *a = pyri_sys_calloc(1, sizeof *a);
    if (!a)
        return pyri_fail_nomem("an environment");
    pthread_mutex_init(&a->gate, NULL);
    a->remedy = plan->remedy;
    a->pid = (uint32_t)getpid();
    snprintf(a->path, sizeof a->path, "%s/data.mdb", plan->path);
    name_file(plan->path, a->file.name, sizeof a->file.name);
    mdb_env_set_userctx(env, a);
    a->grows = plan->grows;
    mdb_env_set_assert(env, say_last_word);
    if (mdb_env_get_fd(env, &a->file.fd) != 0 ||
        mdb_env_stat(env, &st) != 0 || mdb_env_info(env, &info) != 0)
        return pyri_fail(PYR_EIO, "%s: cannot be looked at", a->file.name);
    return pyri_pagefile_open(&a->file, st.ms_psize, info.me_mapsize);
}

void
pyri_env_close(MDB_env *env)
{
    pyri_aside *a = mdb_env_get_userctx(env);
    mdb_env_close(env);
    if (!a)
        return;
    pyri_pagefile_close(&a->file);
    pthread_mutex_destroy(&a->gate);
    free(a);
}

void
pyri_env_take_turns(MDB_env *env, struct pyri_turn *turn)
{
    pyri_aside *a = mdb_env_get_userctx(env);
    a->turn = turn;
}

/* Is this LMDB's file, as a store has it? Others may be writing to its first
 * pages; what is looked at stays the same. */
static int
glance(const char *dir)
{
    uint8_t meta[PYRI_META_END];
    pyri_pagefile f = {.fd = -1};
    char name[PATH_MAX];
    int err = pyri_path_join(name, sizeof name, dir, "data.mdb");
    if (err < 0)
        return err;
    name_file(dir, f.name, sizeof f.name);
    int fd = PYRI_RETRY(pyri_sys_open(name, O_RDONLY | O_CLOEXEC));
    if (fd < 0)
        return 0; /* LMDB has more to say about that */
    uint32_t psize = 0;
    for (uint64_t page = 0; page < 2 && err == 0; page++) {
        ssize_t n = pyri_io_pread(fd, meta, sizeof meta,
                                  (off_t)(page * psize));
        if (n < 0)
            err = pyri_fail_errno(errno, "%s", name);
        else if (n < (ssize_t)sizeof meta)
            break; /* as above */
        else if (page == 0)
            psize = pyri_load32(meta + PYRI_META_ROOTS);
        const char *wrong = err < 0 ? NULL : pyri_page_constants(meta, psize);
        if (wrong)
            err = pyri_pagefile_fail(&f, page, wrong);
    }
    pyri_sys_close(fd);
    return err;
}

/* --- opening ------------------------------------------------------------- */

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
    int err = glance(plan->path);
    if (err < 0 || (err = reserve_locks(plan)) < 0)
        return err;
    while (i < 2 && !has_address_space(2 * plan->map_sizes[i]))
        i++; /* it is mapped by LMDB, and by us */
    int rc = open_once(plan, plan->map_sizes[i], out);
    if (rc != 0)
        return pyri_fail_mdb(rc, "%s", plan->path);
    if ((err = begin_aside(*out, plan)) < 0) {
        pyri_env_close(*out);
        *out = NULL;
        return err;
    }
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
    pyri_env_close(env);
    return rc ? pyri_fail_mdb(rc, "%s", plan->path) : 0;
}

void
pyri_env_forget_dead(MDB_env *env)
{
    int dead;
    mdb_reader_check(env, &dead);
}

int
pyri_env_sync(MDB_env *env)
{
    int rc = mdb_env_sync(env, 1);
    return rc ? pyri_fail_mdb(rc, "sync metadata") : 0;
}
