/*
 * engine/local/holes.c - giving LMDB's free pages back to the system.
 *
 * LMDB keeps a list of free pages in its database 0: for each transaction,
 * the pages that it freed. It takes pages from those entries that are older
 * than every reader and than the last transaction but one, and never looks at
 * what is in them. So a hole in their place harms nobody, as long as nobody
 * takes them at the same time: a write transaction is held meanwhile, which
 * changes nothing and is aborted. The zeros behind its pages (ahead.c) are cut
 * off then, too.
 */
#include "engine/local/env.h"

#include "base/fail.h"
#include "base/io.h"
#include "base/sys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- readers ------------------------------------------------------------- */

/* A line of mdb_reader_list(): process, thread, transaction ("-": none). */
static int
note_reader(const char *line, void *ctx)
{
    uint64_t *oldest = ctx;
    const char *last = strrchr(line, ' ');
    char *end;
    unsigned long long txn = last ? strtoull(last + 1, &end, 10) : 0;
    if (last && end != last + 1 && *end == '\n' && txn < *oldest)
        *oldest = txn;
    return 0;
}

uint64_t
pyri_env_oldest_reader(MDB_env *env)
{
    MDB_envinfo info;
    mdb_env_info(env, &info);
    uint64_t oldest = info.me_last_txnid;
    mdb_reader_list(env, note_reader, &oldest);
    return oldest;
}

/* --- pages --------------------------------------------------------------- */

typedef struct pages {
    size_t *list;
    size_t n, room;
} pages;

/* An entry: how many, then their numbers. */
static int
add_pages(pages *p, const MDB_val *value)
{
    size_t n = value->mv_size / sizeof(size_t), count;
    if (n == 0)
        return 0;
    memcpy(&count, value->mv_data, sizeof count);
    if (count > n - 1)
        return pyri_fail(PYR_ECORRUPT, "the list of free pages is damaged");
    if (p->n + count > p->room) {
        size_t room = 2 * (p->n + count);
        size_t *list = pyri_sys_realloc(p->list, room * sizeof *list);
        if (!list)
            return pyri_fail_nomem("the list of free pages");
        p->list = list;
        p->room = room;
    }
    if (count)
        memcpy(p->list + p->n, (const size_t *)value->mv_data + 1,
               count * sizeof *p->list);
    p->n += count;
    return 0;
}

static int
list_free(pyri_txn *txn, uint64_t oldest, pages *p)
{
    pyri_walk *cursor;
    MDB_val key, value;
    pyri_bytes all = {"", 0};
    bool more;
    int err = pyri_env_cursor(txn, 0, &cursor);
    if (err < 0)
        return err;
    err = pyri_env_step(cursor, MDB_FIRST, all, &key, &value, &more);
    while (err == 0 && more) {
        size_t id = SIZE_MAX;
        if (key.mv_size == sizeof id)
            memcpy(&id, key.mv_data, sizeof id);
        if (id >= oldest)
            break;
        if ((err = add_pages(p, &value)) == 0)
            err = pyri_env_step(cursor, MDB_NEXT, all, &key, &value, &more);
    }
    pyri_env_cursor_close(cursor);
    return err;
}

int
pyri_env_unripe(MDB_env *env, size_t *out)
{
    pyri_txn *txn;
    pages all = {0}, ripe = {0};
    *out = 0;
    int err = pyri_env_read(env, &txn);
    if (err < 0)
        return err;
    if ((err = list_free(txn, UINT64_MAX, &all)) == 0 &&
        (err = list_free(txn, pyri_env_oldest_reader(env), &ripe)) == 0)
        *out = all.n - ripe.n;
    free(all.list);
    free(ripe.list);
    pyri_env_abort(txn);
    return err;
}

static int
compare_pages(const void *a, const void *b)
{
    const size_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int
punch_pages(int fd, size_t page_size, pages *p)
{
    if (p->n)
        qsort(p->list, p->n, sizeof *p->list, compare_pages);
    for (size_t i = 0, k; i < p->n; i = k) {
        for (k = i + 1; k < p->n && p->list[k] == p->list[k - 1] + 1; k++)
            ;
        if (pyri_sys_fallocate(fd,
                               FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                               (off_t)(p->list[i] * page_size),
                               (off_t)((k - i) * page_size)) < 0)
            return errno == EOPNOTSUPP || errno == EINTR
                       ? 0
                       : pyri_fail_errno(errno, "give metadata pages back");
    }
    return 0;
}

static int
cut_zeros(MDB_env *env, int fd, const struct stat *file, size_t page_size)
{
    MDB_envinfo info;
    mdb_env_info(env, &info);
    off_t used = (off_t)((info.me_last_pgno + 1) * page_size);
    if (file->st_size <= used ||
        PYRI_RETRY(pyri_sys_ftruncate(fd, used)) == 0)
        return 0;
    return pyri_fail_errno(errno, "cut metadata off behind its pages");
}

static int
punch_locked(MDB_env *env, uint64_t *bytes)
{
    MDB_stat page;
    pyri_txn *txn;
    pages p = {0};
    struct stat before, after;
    int fd;
    int err = pyri_env_read(env, &txn);
    if (err < 0)
        return err;
    uint64_t oldest = pyri_env_oldest_reader(env); /* ours is one of them */
    mdb_env_stat(env, &page);
    mdb_env_get_fd(env, &fd);
    err = list_free(txn, oldest, &p);
    if (err == 0 && pyri_sys_fstat(fd, &before) == 0 &&
        (err = punch_pages(fd, page.ms_psize, &p)) == 0 &&
        (err = cut_zeros(env, fd, &before, page.ms_psize)) == 0 &&
        pyri_sys_fstat(fd, &after) == 0 && before.st_blocks > after.st_blocks)
        *bytes += (uint64_t)(before.st_blocks - after.st_blocks) * 512;
    free(p.list);
    pyri_env_abort(txn);
    return err;
}

int
pyri_env_punch(MDB_env *env, uint64_t *bytes)
{
    pyri_txn *held;
    int err = pyri_env_write(env, &held);
    if (err < 0)
        return err;
    err = punch_locked(env, bytes);
    pyri_env_abort(held);
    return err;
}
