/*
 * engine/local/place.c - the storage manager: which directory gets the next
 * segment.
 *
 * New segments go where there is most free space per writer that appends
 * there. Directories that are nearly full are left for when all are; those
 * out of order (unmounted, another store's) are never written to.
 *
 * The live environment lists the segments that can be appended to:
 *
 *   's' directory (2 bytes) segment (4), big-endian ->
 *       writer (8), slot (4), 1 if it is full (1)
 *
 * A segment whose writer closed the store (writer 0) or is dead is taken over
 * by the next who needs one in its directory, so that many short programs do
 * not leave many short segments. A full one stays on the list as long as its
 * writer lives: what that has put there need not be named by a version yet,
 * and must not be taken for an orphan.
 */
#include "engine/local/local.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/io.h"
#include "base/sys.h"
#include "engine/local/env.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { OPEN_KEY = 7, OPEN_VALUE = 13 };
#define RESERVE (UINT64_C(64) << 20) /* or 1 % where that is less */

/* --- the directories ----------------------------------------------------- */

int
pyri_dirs_init(pyri_dirs *d, const char *path, const pyri_format *f)
{
    char full[PATH_MAX];
    for (size_t i = 0; i < f->ndata; i++) {
        int err = pyri_path_join(full, sizeof full, path, f->data[i]);
        if (err < 0)
            return err;
        if (!(d->list[i].path = pyri_sys_strdup(full)))
            return pyri_fail_nomem("the path of a data directory");
        d->list[i].fd = -1;
        d->n++;
    }
    return 0;
}

void
pyri_dirs_fini(pyri_dirs *d)
{
    for (size_t i = 0; i < d->n; i++) {
        if (d->list[i].fd >= 0)
            pyri_sys_close(d->list[i].fd);
        free(d->list[i].path);
    }
    d->n = 0;
}

/* A directory outside the store must say that it belongs to it. */
static int
check_mark(pyri_site *s, size_t i)
{
    char name[PATH_MAX], have[256], want[256];
    const char *path = s->dirs.list[i].path;
    if (s->format.data[i][0] != '/')
        return 0;
    int err = pyri_path_join(name, sizeof name, path, PYRI_DATA_MARKER);
    if (err < 0)
        return err;
    if (pyri_file_read(name, have, sizeof have) < 0)
        return pyri_fail(PYR_EIO, "data directory %s has no file %s: is its "
                         "disk mounted?", path, PYRI_DATA_MARKER);
    snprintf(want, sizeof want, "pyramid data\nstore %s\n", s->format.uuid);
    if (strcmp(have, want) != 0)
        return pyri_fail(PYR_EIO, "data directory %s belongs to another store",
                         path);
    return 0;
}

static int
open_directory(pyri_site *s, size_t i)
{
    pyri_dir *d = &s->dirs.list[i];
    int err = check_mark(s, i);
    if (err < 0)
        return err;
    d->fd = PYRI_RETRY(
        pyri_sys_open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (d->fd >= 0)
        return 0;
    pyri_fail_errno(errno, "data directory %s", d->path);
    return PYR_EIO;
}

int
pyri_dirs_get(pyri_site *s, size_t i, int *fd)
{
    int err = 0;
    if (i >= s->dirs.n)
        return pyri_fail(PYR_ECORRUPT, "%s has no data directory %zu", s->path,
                         i);
    pthread_mutex_lock(&s->dirs.lock);
    if (s->dirs.list[i].fd < 0)
        err = open_directory(s, i);
    *fd = s->dirs.list[i].fd;
    pthread_mutex_unlock(&s->dirs.lock);
    return err;
}

/* --- the choice ---------------------------------------------------------- */

/* What speaks for a directory: higher is better, 0 for not at all. */
static int
rate(pyri_site *s, size_t i, uint64_t load, double *out)
{
    struct statvfs v;
    int fd, err = pyri_dirs_get(s, i, &fd);
    *out = 0;
    if (err < 0)
        return err;
    if (pyri_sys_fstatvfs(fd, &v) < 0)
        return pyri_fail_errno(errno, "data directory %s",
                               s->dirs.list[i].path);
    uint64_t space = (uint64_t)v.f_bavail * v.f_frsize;
    uint64_t reserve = pyri_min64((uint64_t)v.f_blocks * v.f_frsize / 100,
                                  RESERVE);
    *out = ((double)space + 1) / (double)(load + 1);
    if (space < reserve)
        *out *= 1e-18; /* after all that have more */
    return 0;
}

static int
choose_directory(pyri_site *s, uint64_t exclude, const uint64_t *load,
                 size_t *out)
{
    double best = 0;
    int last = 0;
    for (size_t i = 0; i < s->dirs.n; i++) {
        double score;
        if (exclude >> i & 1)
            continue;
        int err = rate(s, i, load[i], &score);
        if (err < 0)
            last = err;
        if (score > best) {
            best = score;
            *out = i;
        }
    }
    if (best > 0)
        return 0;
    return last < 0 ? last
                    : pyri_fail(PYR_ENOSPC, "%s: no data directory has room",
                                s->path);
}

/* --- the list of open segments ------------------------------------------- */

static void
open_key(uint8_t key[OPEN_KEY], pyri_placement p)
{
    key[0] = 's';
    key[1] = (uint8_t)(p.dir >> 8);
    key[2] = (uint8_t)p.dir;
    for (int i = 0; i < 4; i++)
        key[3 + i] = (uint8_t)(p.id >> (24 - 8 * i));
}

static bool
decode_key(const MDB_val *key, pyri_placement *out)
{
    const uint8_t *k = key->mv_data;
    if (key->mv_size != OPEN_KEY)
        return false;
    out->dir = (size_t)k[1] << 8 | k[2];
    out->id = (uint32_t)k[3] << 24 | (uint32_t)k[4] << 16 |
              (uint32_t)k[5] << 8 | k[6];
    return out->dir < PYRI_MAX_DIRS;
}

typedef struct open_entry {
    pyri_placement where;
    uint64_t writer; /* 0: nobody */
    bool alive, full;
} open_entry;

typedef int open_fn(void *ctx, const open_entry *e);

static int
decode_open(pyri_site *s, pyri_txn *txn, const MDB_val *key,
            const MDB_val *value, open_entry *out)
{
    const uint8_t *at = value->mv_data;
    *out = (open_entry){0};
    if (!decode_key(key, &out->where) || value->mv_size != OPEN_VALUE)
        return pyri_fail(PYR_ECORRUPT, "a segment in live/ is damaged");
    out->writer = pyri_load64(at);
    out->full = at[12];
    return out->writer ? pyri_presence_alive(s, txn, pyri_load32(at + 8),
                                             out->writer, &out->alive)
                       : 0;
}

static int
scan_open(pyri_site *s, pyri_txn *txn, open_fn *each, void *ctx)
{
    pyri_walk *cursor;
    MDB_val key = {1, (void *)(uintptr_t)"s"}, value;
    pyri_bytes prefix = {"s", 1};
    bool more;
    int err = pyri_env_cursor(txn, s->live_db, &cursor);
    if (err < 0)
        return err;
    err = pyri_env_step(cursor, MDB_SET_RANGE, prefix, &key, &value, &more);
    while (err == 0 && more) {
        open_entry e;
        if ((err = decode_open(s, txn, &key, &value, &e)) == 0 &&
            (err = each(ctx, &e)) == 0)
            err = pyri_env_step(cursor, MDB_NEXT, prefix, &key, &value, &more);
    }
    pyri_env_cursor_close(cursor);
    return err;
}

/* The living writers of each directory, and one segment in each that can be
 * taken over (id 0: none). */
typedef struct survey {
    uint64_t load[PYRI_MAX_DIRS];
    pyri_placement idle[PYRI_MAX_DIRS];
} survey;

static int
add_to_survey(void *ctx, const open_entry *e)
{
    survey *v = ctx;
    v->load[e->where.dir] += e->alive && !e->full;
    if (!e->alive && !e->full) {
        v->idle[e->where.dir] = e->where;
        v->idle[e->where.dir].dead = e->writer != 0;
    }
    return 0;
}

static int
put_open(pyri_site *s, pyri_txn *txn, pyri_placement p, uint64_t writer,
         bool full)
{
    uint8_t key[OPEN_KEY], value[OPEN_VALUE];
    open_key(key, p);
    pyri_store64(value, writer);
    pyri_store32(value + 8, s->presence.slot);
    value[12] = full;
    return pyri_env_put(txn, s->live_db, key, sizeof key, value,
                        sizeof value);
}

static int
choose_locked(pyri_site *s, pyri_txn *txn, uint64_t exclude,
              pyri_placement *out)
{
    survey v = {.load = {0}};
    size_t dir = 0;
    int err = scan_open(s, txn, add_to_survey, &v);
    if (err < 0 || (err = choose_directory(s, exclude, v.load, &dir)) < 0)
        return err;
    *out = v.idle[dir];
    out->dir = dir;
    return out->id ? put_open(s, txn, *out, s->presence.writer, false) : 0;
}

int
pyri_place_choose(pyri_site *s, uint64_t exclude, pyri_placement *out)
{
    pyri_txn *txn;
    int err = pyri_env_write(s->live, &txn);
    if (err < 0)
        return err;
    if ((err = choose_locked(s, txn, exclude, out)) == 0)
        return pyri_env_commit(txn, "choose a data directory");
    pyri_env_abort(txn);
    return err;
}

static int
set_open(pyri_site *s, pyri_placement p, uint64_t writer, bool full)
{
    pyri_txn *txn;
    int err = pyri_env_write(s->live, &txn);
    if (err < 0)
        return err;
    if ((err = put_open(s, txn, p, writer, full)) == 0)
        return pyri_env_commit(txn, "list a segment");
    pyri_env_abort(txn);
    return err;
}

int
pyri_place_enter(pyri_site *s, pyri_placement p)
{
    return set_open(s, p, s->presence.writer, false);
}

int
pyri_place_leave(pyri_site *s, pyri_placement p)
{
    return set_open(s, p, 0, false);
}

int
pyri_place_full(pyri_site *s, pyri_placement p)
{
    return set_open(s, p, s->presence.writer, true);
}

int
pyri_place_forget(pyri_site *s, pyri_placement p)
{
    uint8_t key[OPEN_KEY];
    pyri_txn *txn;
    bool found;
    open_key(key, p);
    int err = pyri_env_write(s->live, &txn);
    if (err < 0)
        return err;
    if ((err = pyri_env_delete(txn, s->live_db, key, sizeof key, &found)) == 0)
        return pyri_env_commit(txn, "list a segment");
    pyri_env_abort(txn);
    return err;
}

int
pyri_place_load(pyri_site *s, uint64_t load[PYRI_MAX_DIRS])
{
    survey v = {.load = {0}};
    pyri_txn *txn;
    int err = pyri_env_read(s->live, &txn);
    if (err < 0)
        return err;
    err = scan_open(s, txn, add_to_survey, &v);
    pyri_env_abort(txn);
    memcpy(load, v.load, sizeof v.load);
    return err;
}

/* --- upkeep -------------------------------------------------------------- */

int
pyri_place_claim(pyri_site *s, pyri_placement p, bool *mine, bool *full)
{
    uint8_t key[OPEN_KEY];
    MDB_val k = {sizeof key, key}, v;
    pyri_txn *txn;
    open_entry e = {.full = true}; /* nobody lists it: nobody will append */
    bool found;
    *mine = false;
    open_key(key, p);
    int err = pyri_env_write(s->live, &txn);
    if (err < 0)
        return err;
    err = pyri_env_get(txn, s->live_db, key, sizeof key, &v, &found);
    if (err == 0 && found)
        err = decode_open(s, txn, &k, &v, &e);
    *full = e.full;
    if (err == 0 && !e.alive)
        err = put_open(s, txn, p, s->presence.writer, true);
    if (err == 0 && !e.alive) {
        *mine = true;
        return pyri_env_commit(txn, "claim a segment");
    }
    pyri_env_abort(txn);
    return err;
}

typedef struct listed {
    pyri_placement *list;
    size_t n;
    uint64_t writer; /* 0: those whose writers died; else this one's full */
} listed;

static int
list_open(void *ctx, const open_entry *e)
{
    listed *l = ctx;
    if (l->writer ? e->writer != l->writer || !e->full
                  : e->alive || e->writer == 0)
        return 0;
    if ((l->n & (l->n - 1)) == 0) { /* a power of two is full */
        size_t room = l->n ? 2 * l->n : 1;
        pyri_placement *list =
            pyri_sys_realloc(l->list, room * sizeof *list);
        if (!list)
            return pyri_fail_nomem("a list of segments");
        l->list = list;
    }
    l->list[l->n++] = e->where;
    return 0;
}

int
pyri_place_dead(pyri_site *s, pyri_placement **list, size_t *n)
{
    listed l = {0};
    pyri_txn *txn;
    int err = pyri_env_read(s->live, &txn);
    if (err == 0) {
        err = scan_open(s, txn, list_open, &l);
        pyri_env_abort(txn);
    }
    *list = l.list;
    *n = l.n;
    return err;
}

int
pyri_place_done(pyri_site *s)
{
    listed l = {.writer = s->presence.writer};
    pyri_txn *txn;
    if (!s->presence.member)
        return 0; /* it only read, and has put nothing */
    int err = pyri_env_read(s->live, &txn);
    if (err == 0) {
        err = scan_open(s, txn, list_open, &l);
        pyri_env_abort(txn);
    }
    for (size_t i = 0; i < l.n && err == 0; i++)
        err = pyri_place_forget(s, l.list[i]);
    free(l.list);
    return err;
}
