/*
 * engine/local/live.c - what is valid for one boot of the machine.
 *
 * STORE/live holds who writes and what is in flight. None of it needs to
 * outlive the machine, because writers do not: so it is never synced, and a
 * write costs no fsync for its ticket. It must not outlive the machine either,
 * as what is on disk then is anything between old, torn and new.
 *
 * STORE/live/boot therefore says to what it belongs: this boot of this
 * machine, this store, this very directory (a copy of a store is another one).
 * If it says anything else, everything in live/ is thrown away; so are the
 * versions in meta that were complete but not published: the versions below
 * them are unknown now, and none of them was acknowledged. flock() on the
 * store's directory lets one process do this at a time; boot is written last.
 */
#include "engine/local/local.h"

#include "base/sys.h"
#include "engine/local/env.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IDENTITY = 256 };

/* What live/boot must say; PYR_ENOTFOUND if there is no live/. */
static int
identity(pyri_site *s, char out[IDENTITY])
{
    char path[PATH_MAX], boot[64];
    struct stat st;
    int err = pyri_file_read("/proc/sys/kernel/random/boot_id", boot,
                             sizeof boot);
    if (err < 0)
        return pyri_fail_at(PYR_EIO, "cannot tell one boot of this machine "
                                     "from another");
    boot[strcspn(boot, "\n")] = 0;
    if ((err = pyri_path_join(path, sizeof path, s->path, "live")) < 0)
        return err;
    if (pyri_sys_stat(path, &st) < 0)
        return pyri_fail_errno(errno, "%s", path);
    snprintf(out, IDENTITY, "boot %s\nstore %s\ninode %llu of %llu\n", boot,
             s->format.uuid, (unsigned long long)st.st_ino,
             (unsigned long long)st.st_dev);
    return 0;
}

static int
is_valid(pyri_site *s, bool *valid)
{
    char path[PATH_MAX], want[IDENTITY], have[IDENTITY];
    *valid = false;
    int err = identity(s, want);
    if (err == PYR_ENOTFOUND)
        return 0;
    if (err < 0 ||
        (err = pyri_path_join(path, sizeof path, s->path, "live/boot")) < 0)
        return err;
    err = pyri_file_read(path, have, sizeof have);
    *valid = err == 0 && strcmp(want, have) == 0;
    /* only a file that is not there or torn says that nothing is to be kept */
    return err == PYR_ENOTFOUND || err == PYR_EFORMAT ? 0 : err;
}

/* --- throwing away ------------------------------------------------------- */

static int
empty_directory(const char *path)
{
    DIR *d = pyri_sys_opendir(path);
    int err = 0;
    if (!d)
        return pyri_fail_errno(errno, "%s", path);
    for (struct dirent *e; err == 0 && (e = pyri_sys_readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            pyri_sys_unlinkat(dirfd(d), e->d_name, 0) < 0 && errno != ENOENT)
            err = pyri_fail_errno(errno, "%s/%s", path, e->d_name);
    closedir(d);
    return err;
}

static int
open_live(const char *path, MDB_env **out)
{
    pyri_env_plan plan = {.path = path,
                          .map_sizes = {UINT64_C(1) << 32, UINT64_C(1) << 30,
                                        UINT64_C(1) << 27},
                          .flags = MDB_NOSYNC | MDB_NOMETASYNC,
                          .remedy = "Close the store everywhere and remove "
                                    "that folder: it is made anew."};
    return pyri_env_open(&plan, out);
}

/* LMDB's file is made before boot is written: if that fails half-way, as on a
 * full disk, the next one begins anew. */
static int
reset(pyri_site *s)
{
    char path[PATH_MAX], text[IDENTITY];
    MDB_env *env;
    int err = pyri_path_join(path, sizeof path, s->path, "live");
    if (err < 0)
        return err;
    if (pyri_sys_mkdir(path, 0777) < 0 && errno != EEXIST)
        return pyri_fail_errno(errno, "%s", path);
    if ((err = empty_directory(path)) < 0 ||
        (err = pyri_meta_drop_unpublished(s)) < 0 ||
        (err = identity(s, text)) < 0 || (err = open_live(path, &env)) < 0)
        return err;
    pyri_env_close(env);
    if ((err = pyri_path_join(path, sizeof path, s->path, "live/boot")) < 0)
        return err;
    return pyri_file_write(path, text, false);
}

/* --- opening ------------------------------------------------------------- */

static int
open_parts(pyri_site *s)
{
    char path[PATH_MAX], wake[PATH_MAX], mail[PATH_MAX];
    pyri_txn *txn;
    int err;
    if ((err = pyri_path_join(path, sizeof path, s->path, "live")) < 0 ||
        (err = pyri_path_join(wake, sizeof wake, s->path, "live/wake")) < 0 ||
        (err = pyri_path_join(mail, sizeof mail, s->path, "live/mailbox")) < 0)
        return err;
    if ((err = open_live(path, &s->live)) < 0 ||
        (err = pyri_env_read(s->live, &txn)) < 0)
        return err;
    bool lost;
    if ((err = pyri_env_database(txn, NULL, 0, &s->live_db, &lost)) < 0) {
        pyri_env_abort(txn);
        return err;
    }
    if ((err = pyri_env_commit(txn, "open what is in flight")) < 0 ||
        (err = pyri_wake_open(wake, &s->wake)) < 0)
        return err;
    if (s->format.durability != PYR_DURABILITY_OS &&
        (err = pyri_mailbox_open(mail, &s->mailbox)) < 0)
        return err;
    return pyri_presence_open(s);
}

static int
open_or_close(pyri_site *s)
{
    int err = open_parts(s);
    if (err < 0) {
        pyri_live_close(s);
        return err;
    }
    pyri_env_take_turns(s->meta, pyri_wake_turn(s->wake, false));
    pyri_env_take_turns(s->live, pyri_wake_turn(s->wake, true));
    atomic_store(&s->live_ready, true);
    return 0;
}

int
pyri_live_open(pyri_site *s)
{
    int fd, err;
    bool valid;
    if (atomic_load(&s->live_ready))
        return 0;
    if ((err = pyri_path_lock(s->path, &fd)) < 0)
        return err;
    err = is_valid(s, &valid);
    if (err == 0 && !valid)
        err = reset(s);
    if (err == 0)
        err = open_or_close(s);
    pyri_sys_close(fd);
    return err;
}

static int
try_open(pyri_site *s)
{
    char path[PATH_MAX];
    bool valid = false;
    int fd, err = pyri_path_join(path, sizeof path, s->path, "live/data.mdb");
    if (err < 0 || s->meta_readonly || atomic_load(&s->live_ready) ||
        pyri_sys_access(path, W_OK) < 0 ||
        (err = pyri_path_lock(s->path, &fd)) < 0)
        return err;
    if ((err = is_valid(s, &valid)) == 0 && valid)
        err = open_or_close(s);
    pyri_sys_close(fd);
    return err;
}

bool
pyri_live_there(pyri_site *s)
{
    if (atomic_load(&s->live_ready))
        return true;
    pyri_site_hold_forks(true);
    pthread_mutex_lock(&s->lock);
    (void)try_open(s);
    pthread_mutex_unlock(&s->lock);
    pyri_site_hold_forks(false);
    return atomic_load(&s->live_ready);
}

void
pyri_live_close(pyri_site *s)
{
    atomic_store(&s->live_ready, false);
    if (s->live) {
        pyri_presence_close(s);
        pyri_env_take_turns(s->meta, NULL);
        pyri_env_take_turns(s->live, NULL);
    }
    pyri_wake_close(s->wake);
    pyri_mailbox_close(s->mailbox);
    if (s->live)
        pyri_env_close(s->live);
    s->wake = NULL;
    s->mailbox = NULL;
    s->live = NULL;
}
