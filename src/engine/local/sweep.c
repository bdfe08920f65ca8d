/*
 * engine/local/sweep.c - segments that nobody appends to.
 *
 * What writers that died put into segments and never named is found as all that
 * is between the blobs that `blobs` and `limbo` list. What a living writer has
 * put is not named yet; so a segment is claimed in live/ first. One in which
 * nothing is left is removed.
 *
 * After a restart of the machine nobody knows any more which segments had living
 * writers; they are listed then, to be looked through:
 *
 *   main database: 'o' -> directory (2), segment (4), big-endian, of each
 */
#include "engine/local/settle.h"

#include "base/bytes.h"
#include "base/io.h"
#include "base/room.h"
#include "base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { OLD_ENTRY = 6 };

/* --- ranges of a segment ------------------------------------------------- */

typedef struct ranges {
    uint64_t segment; /* `a` of its references */
    pyri_range *list;
    size_t n, room;
} ranges;

static int
add_range(ranges *r, uint64_t from, uint64_t size)
{
    uint64_t to;
    if (__builtin_add_overflow(from, size, &to) || to > INT64_MAX)
        return pyri_fail(PYR_ECORRUPT, "a blob cannot end where it does");
    if (!pyri_room(&r->list, &r->room, r->n + 1, sizeof *r->list))
        return pyri_fail_nomem("the blobs of a segment");
    r->list[r->n++] = (pyri_range){from, to};
    return 0;
}

static int
add_named(void *ctx, const pyri_named_blob *b)
{
    ranges *r = ctx;
    if (b->damaged) /* who knows how much of the segment it names */
        return pyri_fail(PYR_ECORRUPT, "an entry for a blob is damaged");
    return b->blob.ref.a != r->segment
               ? 1 /* past the last */
               : add_range(r, b->blob.ref.b, b->blob.size);
}

static int
compare_ranges(const void *a, const void *b)
{
    const pyri_range *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static int
add_limbo(void *ctx, const pyri_limbo_entry *e)
{
    ranges *r = ctx;
    return e->blob.ref.a != r->segment
               ? 0
               : add_range(r, e->blob.ref.b, e->blob.size);
}

/* All that must stay in a segment, in order. Its writer is dead by now; others
 * may be completing what it asked them for. */
static int
list_ranges(pyri_site *s, ranges *r)
{
    pyri_reader *reader;
    int err = pyri_mailbox_drop_dead(s);
    if (err < 0 || (err = pyri_settle_see(s)) < 0 ||
        (err = pyri_reader_begin(s, &reader)) < 0)
        return err;
    err = pyri_blobs_scan(s, reader->txn, (pyri_ref){r->segment, 0}, add_named,
                          r);
    if (err >= 0)
        err = pyri_limbo_scan(s, reader->txn, add_limbo, r);
    pyri_reader_end(s, reader);
    if (err == 0 && r->n)
        qsort(r->list, r->n, sizeof *r->list, compare_ranges);
    return err;
}

/* --- holes --------------------------------------------------------------- */

pyri_placement
pyri_place_of(uint64_t segment)
{
    return (pyri_placement){.dir = (size_t)(segment >> 32),
                            .id = (uint32_t)segment};
}

int
pyri_segment_look(pyri_site *s, pyri_placement p, int *dir, int *fd)
{
    char name[16];
    int err = pyri_dirs_get(s, p.dir, dir);
    if (err < 0)
        return err;
    pyri_segment_name(name, p.id);
    *fd = PYRI_RETRY(pyri_sys_openat(*dir, name, O_RDWR | O_CLOEXEC));
    return *fd < 0 ? pyri_fail_errno(errno, "segment %s/%s",
                                     s->dirs.list[p.dir].path, name)
                   : 0;
}

int
pyri_punch(int fd, uint64_t from, uint64_t to)
{
    from = pyri_page_up(from);
    to = pyri_page_down(to);
    if (from >= to)
        return 0;
    int rc = PYRI_RETRY(
        pyri_sys_fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                           (off_t)from, (off_t)(to - from)));
    return rc < 0 && errno != EOPNOTSUPP ? pyri_fail_errno(errno, "segment")
                                         : 0;
}

uint64_t
pyri_blocks(int fd)
{
    struct stat st;
    return pyri_sys_fstat(fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

/* --- segments that nobody appends to ------------------------------------- */

static int
punch_gaps(int fd, const ranges *r)
{
    struct stat st;
    uint64_t at = PYRI_SEGMENT_HEADER;
    int err = 0;
    for (size_t i = 0; i < r->n && err == 0; i++) {
        if (r->list[i].from > at)
            err = pyri_punch(fd, at, r->list[i].from);
        if (r->list[i].to > at)
            at = pyri_page_up(r->list[i].to);
    }
    /* The size stays: an offset is never used twice. Blocks that were set
     * aside behind it go. */
    if (err == 0 && pyri_sys_fstat(fd, &st) == 0) {
        if ((uint64_t)st.st_size > at)
            err = pyri_punch(fd, at, pyri_page_up((uint64_t)st.st_size));
        (void)!PYRI_RETRY(pyri_sys_ftruncate(fd, st.st_size));
    }
    return err;
}

int
pyri_sweep(pyri_site *s, pyri_placement p, bool *empty, uint64_t *bytes)
{
    ranges r = {.segment = (uint64_t)p.dir << 32 | p.id};
    int dir = -1, fd = -1;
    char name[16];
    int err = pyri_segment_look(s, p, &dir, &fd);
    *empty = false;
    if (err == PYR_ENOTFOUND) { /* removed before */
        *empty = true;
        return 0;
    }
    if (err == 0)
        err = list_ranges(s, &r);
    if (err < 0)
        goto out;
    uint64_t before = pyri_blocks(fd);
    if ((err = punch_gaps(fd, &r)) < 0)
        goto out;
    uint64_t after = pyri_blocks(fd);
    *empty = r.n == 0;
    if (*empty) {
        after = 0;
        pyri_segment_name(name, p.id);
        /* Whoever has it mapped would keep its blocks. */
        (void)!PYRI_RETRY(pyri_sys_ftruncate(fd, 0));
        if (pyri_sys_unlinkat(dir, name, 0) < 0 && errno != ENOENT)
            err = pyri_fail_errno(errno, "remove a segment");
    }
    *bytes += before > after ? before - after : 0;
out:
    free(r.list);
    if (fd >= 0)
        pyri_sys_close(fd);
    return err;
}

int
pyri_sweep_tend(pyri_site *s, pyri_placement p, pyri_settled *out)
{
    bool mine, full, empty = false;
    int err = pyri_place_claim(s, p, &mine, &full);
    if (err < 0 || !mine)
        return err;
    err = pyri_sweep(s, p, &empty, &out->bytes);
    int then = empty || full ? pyri_place_forget(s, p) : pyri_place_leave(s, p);
    return err < 0 ? err : then;
}

int
pyri_sweep_dead(pyri_site *s, pyri_settled *out)
{
    pyri_placement *list;
    size_t n;
    int err = pyri_place_dead(s, &list, &n);
    for (size_t i = 0; i < n && err == 0; i++)
        err = pyri_sweep_tend(s, list[i], out);
    free(list);
    return err;
}

/* --- segments from before a restart of the machine ----------------------- */

static bool
number_of(const char *name, uint32_t *id)
{
    char *end;
    unsigned long v = strlen(name) == 12 ? strtoul(name, &end, 16) : 0;
    *id = (uint32_t)v;
    return v && end == name + 8 && strcmp(end, ".seg") == 0;
}

static void
list_directory(pyri_site *s, size_t i, pyri_buf *out)
{
    int fd;
    DIR *d = pyri_dirs_get(s, i, &fd) < 0
                 ? NULL
                 : pyri_sys_opendir(s->dirs.list[i].path);
    if (!d)
        return; /* out of use: nothing can be done there now */
    for (struct dirent *e; (e = pyri_sys_readdir(d));) {
        uint8_t entry[OLD_ENTRY];
        uint32_t id;
        if (!number_of(e->d_name, &id))
            continue;
        entry[0] = (uint8_t)(i >> 8);
        entry[1] = (uint8_t)i;
        for (int k = 0; k < 4; k++)
            entry[2 + k] = (uint8_t)(id >> (24 - 8 * k));
        pyri_buf_add(out, entry, sizeof entry);
    }
    closedir(d);
}

int
pyri_sweep_note_old(pyri_site *s, pyri_txn *txn)
{
    pyri_buf list = {0};
    for (size_t i = 0; i < s->dirs.n; i++)
        list_directory(s, i, &list);
    int err = pyri_buf_check(&list, "the list of segments");
    if (err == 0 && list.size)
        err = pyri_env_put(txn, s->main_db, "o", 1, list.data, list.size);
    pyri_buf_fini(&list);
    return err;
}

static int
copy_old(pyri_site *s, pyri_buf *out)
{
    pyri_reader *r;
    MDB_val v;
    bool found;
    int err = pyri_reader_begin(s, &r);
    if (err < 0)
        return err;
    err = pyri_env_get(r->txn, s->main_db, "o", 1, &v, &found);
    if (err == 0 && found)
        pyri_buf_add(out, v.mv_data, v.mv_size);
    pyri_reader_end(s, r);
    return err < 0 ? err : pyri_buf_check(out, "the list of segments");
}

int
pyri_sweep_old(pyri_site *s, pyri_settled *out)
{
    pyri_buf list = {0};
    pyri_txn *txn;
    bool found;
    int err = copy_old(s, &list);
    for (size_t i = 0; i + OLD_ENTRY <= list.size && err == 0; i += OLD_ENTRY) {
        const uint8_t *at = list.data + i;
        pyri_placement p = {.dir = (size_t)at[0] << 8 | at[1],
                            .id = (uint32_t)at[2] << 24 |
                                  (uint32_t)at[3] << 16 | (uint32_t)at[4] << 8 |
                                  at[5]};
        err = pyri_sweep_tend(s, p, out);
    }
    bool any = list.size > 0;
    pyri_buf_fini(&list);
    if (err < 0 || !any || (err = pyri_env_write(s->meta, &txn)) < 0)
        return err;
    if ((err = pyri_env_delete(txn, s->main_db, "o", 1, &found)) == 0)
        return pyri_env_commit(txn, "give space back");
    pyri_env_abort(txn);
    return err;
}
