/*
 * engine/local/settle.c - giving space back to the system.
 *
 *   limbo      bytes in segments that were erased, once all readers are past
 *              the transaction that did so: a hole is punched where they were.
 *              Of small blobs that share a page, the last one that goes takes
 *              the page along
 *   orphans    what writers that died put into segments and never named: all
 *              between the blobs that `blobs` lists. Only in segments that
 *              nobody appends to, as what a living writer has put is not named
 *              yet; such a segment is claimed in live/ first
 *   segments   in which nothing is left are removed
 *   metadata   LMDB uses freed pages again but never gives them back. Those
 *              that no reader can see and nobody may use, because this process
 *              holds the one place of a writer, become holes in its file
 *
 * Every step can be repeated: whoever dies half-way leaves it to the next.
 * After a restart of the machine nobody knows any more which segments had
 * living writers; they are listed then, to be looked through:
 *
 *   main database: 'o' -> directory (2), segment (4), big-endian, of each
 */
#include "engine/local/segment.h"

#include "base/bytes.h"
#include "base/fault.h"
#include "base/io.h"
#include "base/room.h"
#include "base/sys.h"
#include "engine/local/env.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

enum { OLD_ENTRY = 6, LIMBO_BATCH = 4096, UNRIPE_PAGES = 16 };

/* Who was killed in its commit may have done all of it but the note that
 * readers go by. LMDB makes up for that when the next one gets the lock. Until
 * then, what a dead writer named would pass for orphans, and leaves that a dead
 * reclaimer folded would be folded once more, as they were before. */
static int
see_last_commit(pyri_site *s)
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
    int fd =
        PYRI_RETRY(pyri_sys_open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (fd < 0)
        return pyri_fail_errno(errno, "%s", path);
    if (PYRI_RETRY(pyri_sys_flock(fd, LOCK_EX | LOCK_NB)) < 0) {
        int errnum = errno;
        pyri_sys_close(fd);
        if (errnum != EWOULDBLOCK)
            return pyri_fail_errno(errnum, "%s", path);
        return pyri_fail(PYR_ETIMEOUT, "%s: another process or thread is "
                         "giving space back", s->path);
    }
    atomic_store(&s->upkeep_fd, fd);
    if ((err = see_last_commit(s)) < 0)
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

/* --- ranges of a segment ------------------------------------------------- */

typedef struct range {
    uint64_t from, to;
} range;

typedef struct ranges {
    uint64_t segment; /* `a` of its references */
    range *list;
    size_t n, room;
} ranges;

static uint64_t
page_up(uint64_t v)
{
    return (v + PYRI_PAGE - 1) & ~(uint64_t)(PYRI_PAGE - 1);
}

static int
add_range(ranges *r, uint64_t from, uint64_t size)
{
    uint64_t to;
    if (__builtin_add_overflow(from, size, &to) || to > INT64_MAX)
        return pyri_fail(PYR_ECORRUPT, "a blob cannot end where it does");
    if (!pyri_room(&r->list, &r->room, r->n + 1, sizeof *r->list))
        return pyri_fail_nomem("the blobs of a segment");
    r->list[r->n++] = (range){from, to};
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
    const range *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* --- limbo --------------------------------------------------------------- */

typedef struct limbo_entry {
    uint64_t txn;
    pyri_blob blob;
} limbo_entry;

/* Called with a result as each; 1 ends the walk. */
typedef int limbo_fn(void *ctx, const limbo_entry *e);

static int
scan_limbo(pyri_site *s, pyri_txn *txn, limbo_fn *each, void *ctx)
{
    pyri_walk *cursor;
    MDB_val k = {0, NULL}, v;
    bool more;
    int err = pyri_env_cursor(txn, s->limbo_db, &cursor);
    if (err < 0)
        return err;
    err = pyri_env_step(cursor, MDB_FIRST, (pyri_bytes){"", 0}, &k, &v, &more);
    while (err == 0 && more) {
        const uint8_t *at = k.mv_data;
        pyri_bytes key = {k.mv_data, k.mv_size}, size = {v.mv_data, 8};
        if (k.mv_size != PYRI_LIMBO_KEY || v.mv_size != 16 ||
            pyri_load64((const uint8_t *)v.mv_data + 8) !=
                pyri_meta_sum(key, size, (pyri_bytes){"", 0})) {
            err = pyri_fail(PYR_ECORRUPT, "an entry of limbo is damaged");
            break;
        }
        limbo_entry e = {pyri_load64_be(at),
                         {{pyri_load64_be(at + 8), pyri_load64_be(at + 16)},
                          pyri_load64(v.mv_data)}};
        if ((err = each(ctx, &e)) == 0)
            err = pyri_env_step(cursor, MDB_NEXT, (pyri_bytes){"", 0}, &k, &v,
                                &more);
    }
    pyri_env_cursor_close(cursor);
    return err > 0 ? 0 : err;
}

static int
add_limbo(void *ctx, const limbo_entry *e)
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
    if (err < 0 || (err = see_last_commit(s)) < 0 ||
        (err = pyri_reader_begin(s, &reader)) < 0)
        return err;
    err = pyri_blobs_scan(s, reader->txn, (pyri_ref){r->segment, 0}, add_named,
                          r);
    if (err >= 0)
        err = scan_limbo(s, reader->txn, add_limbo, r);
    pyri_reader_end(s, reader);
    if (err == 0 && r->n)
        qsort(r->list, r->n, sizeof *r->list, compare_ranges);
    return err;
}

/* --- holes --------------------------------------------------------------- */

static pyri_placement
place_of(uint64_t segment)
{
    return (pyri_placement){.dir = (size_t)(segment >> 32),
                            .id = (uint32_t)segment};
}

static int
open_segment(pyri_site *s, pyri_placement p, int *dir, int *fd)
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

static uint64_t
page_down(uint64_t v)
{
    return v & ~(uint64_t)(PYRI_PAGE - 1);
}

/* Whole pages inside [from, to). A system that knows no holes keeps them. */
static int
punch(int fd, uint64_t from, uint64_t to, const char *what)
{
    from = page_up(from);
    to = page_down(to);
    if (from >= to)
        return 0;
    int rc = PYRI_RETRY(
        pyri_sys_fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                           (off_t)from, (off_t)(to - from)));
    return rc < 0 && errno != EOPNOTSUPP ? pyri_fail_errno(errno, "%s", what)
                                         : 0;
}

/* Segments lay blobs out that way (segment.c). */
static bool
may_share(const pyri_blob *b)
{
    return b->size <= PYRI_SMALL_BLOB;
}

/* Its neighbours are of a version that is still being made. */
void
pyri_settle_drop(pyri_site *s, const pyri_blob *b)
{
    uint64_t to = b->ref.b + b->size;
    int dir, fd;
    if (open_segment(s, place_of(b->ref.a), &dir, &fd) < 0)
        return;
    punch(fd, b->ref.b, may_share(b) ? to : page_up(to), "segment");
    pyri_sys_close(fd);
}

/* --- segments that nobody appends to ------------------------------------- */

static uint64_t
blocks(int fd)
{
    struct stat st;
    return pyri_sys_fstat(fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

static int
punch_gaps(int fd, const ranges *r)
{
    struct stat st;
    uint64_t at = PYRI_SEGMENT_HEADER;
    int err = 0;
    for (size_t i = 0; i < r->n && err == 0; i++) {
        if (r->list[i].from > at)
            err = punch(fd, at, r->list[i].from, "segment");
        if (r->list[i].to > at)
            at = page_up(r->list[i].to);
    }
    /* The size stays: an offset is never used twice. Blocks that were set
     * aside behind it go. */
    if (err == 0 && pyri_sys_fstat(fd, &st) == 0) {
        if ((uint64_t)st.st_size > at)
            err = punch(fd, at, page_up((uint64_t)st.st_size), "segment");
        (void)!PYRI_RETRY(pyri_sys_ftruncate(fd, st.st_size));
    }
    return err;
}

int
pyri_settle_sweep(pyri_site *s, pyri_placement p, bool *empty,
                  uint64_t *bytes)
{
    ranges r = {.segment = (uint64_t)p.dir << 32 | p.id};
    int dir = -1, fd = -1;
    char name[16];
    int err = open_segment(s, p, &dir, &fd);
    *empty = false;
    if (err == PYR_ENOTFOUND) { /* removed before */
        *empty = true;
        return 0;
    }
    if (err == 0)
        err = list_ranges(s, &r);
    if (err < 0)
        goto out;
    uint64_t before = blocks(fd);
    if ((err = punch_gaps(fd, &r)) < 0)
        goto out;
    uint64_t after = blocks(fd);
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

/* Sweep a segment if nobody appends to it; and remove it if it is empty. */
static int
tend(pyri_site *s, pyri_placement p, pyri_settled *out)
{
    bool mine, full, empty = false;
    int err = pyri_place_claim(s, p, &mine, &full);
    if (err < 0 || !mine)
        return err;
    err = pyri_settle_sweep(s, p, &empty, &out->bytes);
    int then = empty || full ? pyri_place_forget(s, p)
                             : pyri_place_leave(s, p);
    return err < 0 ? err : then;
}

/* --- what is ripe -------------------------------------------------------- */

typedef struct ripe {
    uint64_t oldest;
    pyri_settled *out;
    limbo_entry *list;   /* LIMBO_BATCH of them */
    size_t n;
    limbo_entry *unripe; /* those that may share a page; in order */
    size_t nunripe, room;
} ripe;

static int
take_ripe(void *ctx, const limbo_entry *e)
{
    ripe *r = ctx;
    if (e->txn <= r->oldest) {
        if (r->n < LIMBO_BATCH)
            r->list[r->n++] = *e;
        return 0;
    }
    r->out->waiting += e->blob.size;
    if (!may_share(&e->blob))
        return 0;
    if (!pyri_room(&r->unripe, &r->room, r->nunripe + 1, sizeof *r->unripe))
        return pyri_fail_nomem("a list of what to give back later");
    r->unripe[r->nunripe++] = *e;
    return 0;
}

/* --- pages that blobs share ------------------------------------------------ */

static int
compare_entries(const void *a, const void *b)
{
    const limbo_entry *x = a, *y = b;
    if (x->blob.ref.a != y->blob.ref.a)
        return x->blob.ref.a < y->blob.ref.a ? -1 : 1;
    return (x->blob.ref.b > y->blob.ref.b) - (x->blob.ref.b < y->blob.ref.b);
}

/* A blob that goes, and the pages that it has bytes in: the first and the last
 * one stay if somebody else is found there. */
typedef struct leaving {
    const pyri_blob *blob;
    range hole;
} leaving;

static void
meet(leaving *l, const pyri_blob *other)
{
    uint64_t first = l->blob->ref.b, end = first + l->blob->size;
    uint64_t from = other->ref.b, to = from + other->size;
    if (from < first && to > l->hole.from)
        l->hole.from = page_up(first);
    if (to > end && from < l->hole.to)
        l->hole.to = page_down(end);
}

static int
meet_named(void *ctx, const pyri_named_blob *b)
{
    leaving *l = ctx;
    if (b->damaged) /* who knows where it ends */
        return pyri_fail(PYR_ECORRUPT, "an entry for a blob is damaged");
    if (b->blob.ref.a != l->blob->ref.a || b->blob.ref.b >= l->hole.to)
        return 1;
    meet(l, &b->blob);
    return 0;
}

static void
meet_unripe(const ripe *r, pyri_ref from, leaving *l)
{
    limbo_entry key = {.blob.ref = from};
    size_t lo = 0, hi = r->nunripe;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare_entries(&r->unripe[mid], &key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < r->nunripe && r->unripe[lo].blob.ref.a == from.a &&
           r->unripe[lo].blob.ref.b < l->hole.to;
         lo++)
        meet(l, &r->unripe[lo].blob);
}

/* What is to be punched where `b` was. Those that share a page with it were
 * named by the same transaction: they are named still, or are in limbo, where
 * some reader may see them, or have gone. */
static int
find_hole(pyri_site *s, pyri_reader *reader, const ripe *r, const pyri_blob *b,
          range *hole)
{
    uint64_t end, before = page_up(PYRI_SMALL_BLOB) + PYRI_PAGE; /* at most */
    *hole = (range){0, 0};
    if (__builtin_add_overflow(b->ref.b, b->size, &end) || end > INT64_MAX)
        return pyri_fail(PYR_ECORRUPT, "a blob cannot end where it does");
    leaving l = {b, {page_down(b->ref.b), page_up(end)}};
    pyri_ref from = {b->ref.a, b->ref.b > before ? b->ref.b - before : 0};
    int err = 0;
    if (may_share(b) && (l.hole.from < b->ref.b || l.hole.to > end)) {
        err = pyri_blobs_scan(s, reader->txn, from, meet_named, &l);
        meet_unripe(r, from, &l);
    }
    *hole = l.hole;
    return err < 0 ? err : 0;
}

/* --- the steps ----------------------------------------------------------- */

static int
delete_limbo(pyri_site *s, const limbo_entry *list, size_t n)
{
    pyri_txn *txn;
    int err = pyri_env_write(s->meta, &txn);
    if (err < 0)
        return err;
    for (size_t i = 0; i < n && err == 0; i++) {
        uint8_t key[PYRI_LIMBO_KEY];
        bool found;
        pyri_store64_be(key, list[i].txn);
        pyri_store64_be(key + 8, list[i].blob.ref.a);
        pyri_store64_be(key + 16, list[i].blob.ref.b);
        err = pyri_env_delete(txn, s->limbo_db, key, sizeof key, &found);
    }
    if (err == 0)
        return pyri_env_commit(txn, "give space back");
    pyri_env_abort(txn);
    return err;
}

/* Punch the ripe ranges of one segment: list[0..n). */
static int
punch_segment(pyri_site *s, pyri_reader *reader, const ripe *r,
              const limbo_entry *list, size_t n)
{
    int dir, fd;
    int err = open_segment(s, place_of(list[0].blob.ref.a), &dir, &fd);
    if (err == PYR_ENOTFOUND)
        return 0;
    if (err < 0)
        return err;
    uint64_t before = blocks(fd);
    for (size_t i = 0; i < n && err == 0; i++) {
        range hole;
        err = find_hole(s, reader, r, &list[i].blob, &hole);
        if (err == 0)
            err = punch(fd, hole.from, hole.to, "segment");
    }
    uint64_t after = blocks(fd);
    r->out->bytes += before > after ? before - after : 0;
    pyri_sys_close(fd);
    return err;
}

static int
punch_batch(pyri_site *s, const ripe *r)
{
    limbo_entry *list = r->list;
    size_t n = r->n;
    pyri_reader *reader;
    int err = pyri_reader_begin(s, &reader);
    if (err < 0)
        return err;
    qsort(list, n, sizeof *list, compare_entries);
    if (r->nunripe)
        qsort(r->unripe, r->nunripe, sizeof *r->unripe, compare_entries);
    for (size_t i = 0, k; i < n && err == 0; i = k) {
        for (k = i + 1; k < n && list[k].blob.ref.a == list[i].blob.ref.a; k++)
            ;
        err = punch_segment(s, reader, r, list + i, k - i);
    }
    pyri_reader_end(s, reader);
    PYRI_FAULT("settle.punched");
    if (err == 0)
        err = delete_limbo(s, list, n);
    for (size_t i = 0; i < n && err == 0; i++)
        if (i == 0 || list[i].blob.ref.a != list[i - 1].blob.ref.a)
            err = tend(s, place_of(list[i].blob.ref.a), r->out);
    return err;
}

static int
empty_limbo(pyri_site *s, pyri_settled *out)
{
    ripe r = {.out = out};
    pyri_reader *reader;
    r.list = pyri_sys_malloc(LIMBO_BATCH * sizeof *r.list);
    if (!r.list)
        return pyri_fail_nomem("a list of what to give back");
    int err = 0;
    do {
        r.n = r.nunripe = 0;
        out->waiting = 0;
        pyri_env_forget_dead(s->meta);
        r.oldest = pyri_env_oldest_reader(s->meta);
        if ((err = pyri_reader_begin(s, &reader)) < 0)
            break;
        err = scan_limbo(s, reader->txn, take_ripe, &r);
        pyri_reader_end(s, reader);
        if (err == 0 && r.n)
            err = punch_batch(s, &r);
    } while (err == 0 && r.n);
    free(r.list);
    free(r.unripe);
    return err;
}

static int
tend_dead(pyri_site *s, pyri_settled *out)
{
    pyri_placement *list;
    size_t n;
    int err = pyri_place_dead(s, &list, &n);
    for (size_t i = 0; i < n && err == 0; i++)
        err = tend(s, list[i], out);
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
pyri_settle_note_old(pyri_site *s, pyri_txn *txn)
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

static int
tend_old(pyri_site *s, pyri_settled *out)
{
    pyri_buf list = {0};
    pyri_txn *txn;
    bool found;
    int err = copy_old(s, &list);
    for (size_t i = 0; i + OLD_ENTRY <= list.size && err == 0;
         i += OLD_ENTRY) {
        const uint8_t *at = list.data + i;
        pyri_placement p = {.dir = (size_t)at[0] << 8 | at[1],
                            .id = (uint32_t)at[2] << 24 |
                                  (uint32_t)at[3] << 16 |
                                  (uint32_t)at[4] << 8 | at[5]};
        err = tend(s, p, out);
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
    int err = empty_limbo(s, out);
    pyri_segments_trim(s);
    if (err == 0)
        err = tend_dead(s, out);
    if (err == 0)
        err = tend_old(s, out);
    if (err == 0)
        err = pyri_dense(s);
    if (err == 0)
        err = let_pages_ripen(s);
    if (err == 0)
        err = pyri_env_punch(s->meta, &out->bytes);
    return err;
}
