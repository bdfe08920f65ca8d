/*
 * engine/local/settle.c - giving space back to the system.
 *
 *   limbo.c    bytes in segments that were erased become holes
 *   sweep.c    so does what writers that died put into segments and never named;
 *              segments in which nothing is left are removed
 *   metadata   LMDB uses freed pages again but never gives them back. Those
 *              that no reader can see and nobody may use, because this process
 *              holds the one place of a writer, become holes in its file
 *
 * Every step can be repeated: whoever dies half-way leaves it to the next.
 */
#include "engine/local/settle.h"

#include "base/io.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>

enum { UNRIPE_PAGES = 16 };

/* Who was killed in its commit may have done all of it but the note that
 * readers go by. LMDB makes up for that when the next one gets the lock. Until
 * then, what a dead writer named would pass for orphans, and leaves that a dead
 * reclaimer folded would be folded once more, as they were before. */
int
pyri_settle_see(pyri_site *s)
{
    pyri_txn *txn;
    int err = pyri_env_write(s->meta, &txn);
    if (err == 0)
        pyri_env_abort(txn);
    return err;
}

/* --- one at a time ------------------------------------------------------- */

int
pyri_settle_lock(pyri_site *s)
{
    char path[PATH_MAX];
    int err = pyri_path_join(path, sizeof path, s->path, "live/upkeep");
    if (err < 0)
        return err;
    int fd = PYRI_RETRY(
        pyri_sys_open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (fd < 0)
        return pyri_fail_errno(errno, "%s", path);
    if (PYRI_RETRY(pyri_sys_flock(fd, LOCK_EX | LOCK_NB)) < 0) {
        int errnum = errno;
        pyri_sys_close(fd);
        if (errnum != EWOULDBLOCK)
            return pyri_fail_errno(errnum, "%s", path);
        return pyri_fail(PYR_ETIMEOUT,
                         "%s: another process or thread is "
                         "giving space back",
                         s->path);
    }
    atomic_store(&s->upkeep_fd, fd);
    if ((err = pyri_settle_see(s)) < 0)
        pyri_settle_unlock(s);
    return err;
}

void
pyri_settle_unlock(pyri_site *s)
{
    /* First the note, then the lock: the next one makes its own note. Closing
     * alone would leave the lock to a child that was forked just now. */
    int fd = atomic_exchange(&s->upkeep_fd, -1);
    if (fd < 0)
        return;
    pyri_sys_flock(fd, LOCK_UN);
    pyri_sys_close(fd);
}

/* --- metadata ------------------------------------------------------------ */

static int
put_mark(pyri_site *s, bool there)
{
    pyri_txn *txn;
    bool found;
    int err = pyri_env_write(s->meta, &txn);
    if (err < 0)
        return err;
    err = there ? pyri_env_put(txn, s->main_db, "u", 1, "", 0)
                : pyri_env_delete(txn, s->main_db, "u", 1, &found);
    if (err == 0)
        return pyri_env_commit(txn, "give metadata pages back");
    pyri_env_abort(txn);
    return err;
}

/* Pages that the last transaction freed are still part of the one before it,
 * which counts if the last turns out to be torn. So if those are many, two
 * more are made, that change nothing. */
static int
let_pages_ripen(pyri_site *s)
{
    size_t n;
    int err = pyri_env_unripe(s->meta, &n);
    if (err < 0 || n < UNRIPE_PAGES)
        return err;
    err = put_mark(s, true);
    return err < 0 ? err : put_mark(s, false);
}

int
pyri_settle(pyri_site *s, pyri_settled *out)
{
    int err = pyri_limbo_empty(s, out);
    pyri_segments_trim(s);
    if (err == 0)
        err = pyri_sweep_dead(s, out);
    if (err == 0)
        err = pyri_sweep_old(s, out);
    if (err == 0)
        err = pyri_dense(s);
    if (err == 0)
        err = let_pages_ripen(s);
    if (err == 0)
        err = pyri_env_punch(s->meta, &out->bytes);
    return err;
}
