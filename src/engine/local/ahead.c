/*
 * engine/local/ahead.c - room in metadata before it is needed.
 *
 * Where commits are synced, a file that grows makes each of them wait for the
 * journal of the file system, which costs far more than the bytes. Where they
 * are not, each new page is a page to make and to map for every process that
 * reads it, one by one. So zeros are written beyond the end from time to time:
 * what is then stored there is written over, and the file stays as it is.
 * (Blocks that are only set aside do not help: that they came to be written
 * goes through the journal, too.)
 *
 * Zeros are flushed like anything else, so all that the file grows by is
 * written twice. That is less than what growing costs as long as a transaction
 * brings little; where many writers share one, it is not, and the file grows by
 * itself.
 *
 * LMDB does not mind that its file is longer than what it uses. Zeros go beyond
 * the end of the file alone, while a write transaction is held: nobody else
 * writes there.
 */
#include "engine/local/env.h"

#include "base/checked.h"
#include "base/sys.h"

enum {
    PART = 16, /* of the file */
    LEAST = 64 << 10,
    MOST = 4 << 20,
    ZEROS = 64 << 10,
    MUCH = 160 << 10 /* bytes of a transaction */
};

/* Did the last transactions bring much? */
static bool
grows_fast(pyri_growth *g, uint64_t used, uint64_t id)
{
    pyri_growth before = *g;
    *g = (pyri_growth){used, id};
    return before.id && id > before.id && used > before.used &&
           (used - before.used) / (id - before.id) > MUCH;
}

/* Bytes of the file beyond what LMDB uses of it; false: it uses more, or it
 * ends in the middle of a page, or it is not worth it. */
static bool
look(MDB_env *env, uint64_t length, pyri_growth *g, uint64_t *spare)
{
    MDB_envinfo info;
    MDB_stat st;
    if (mdb_env_info(env, &info) != 0 || mdb_env_stat(env, &st) != 0)
        return false;
    uint64_t used = ((uint64_t)info.me_last_pgno + 1) * st.ms_psize;
    *spare = length - used;
    return !grows_fast(g, used, info.me_last_txnid) && length >= used &&
           length % st.ms_psize == 0;
}

void
pyri_env_ahead(MDB_env *env, uint64_t length, pyri_growth *g)
{
    static const uint8_t zeros[ZEROS];
    uint64_t spare;
    int fd;
    if (!look(env, length, g, &spare))
        return;
    uint64_t more = pyri_min64(pyri_max64(length / PART, LEAST), MOST) /
                    ZEROS * ZEROS;
    if (spare >= more / 2 || mdb_env_get_fd(env, &fd) != 0)
        return;
    /* a transaction too large for memory has pages there already */
    if (pyri_sys_lseek(fd, 0, SEEK_END) != (off_t)length)
        return;
    bool full = false;
    for (uint64_t at = 0; at < more && !full; at += ZEROS)
        full = pyri_sys_pwrite(fd, zeros, ZEROS, (off_t)(length + at)) != ZEROS;
    if (full) /* it has its say when it matters */
        pyri_sys_ftruncate(fd, (off_t)length);
}
