/*
 * engine/local/limbo.c - bytes in segments that were erased.
 *
 * They wait in `limbo` (erase.c) until all readers are past the transaction that
 * erased them; then a hole is punched where they were. Of small blobs that share
 * a page, the last one that goes takes the page along.
 */
#include "engine/local/settle.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/fault.h"
#include "base/room.h"
#include "base/sys.h"

#include <stdlib.h>

enum { LIMBO_BATCH = 4096 };

/* --- the list ------------------------------------------------------------ */

int
pyri_limbo_scan(pyri_site *s, pyri_txn *txn, pyri_limbo_fn *each, void *ctx)
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
        pyri_limbo_entry e = {pyri_load64_be(at),
                              {{pyri_load64_be(at + 8),
                                pyri_load64_be(at + 16)},
                               pyri_load64(v.mv_data)}};
        if ((err = each(ctx, &e)) == 0)
            err = pyri_env_step(cursor, MDB_NEXT, (pyri_bytes){"", 0}, &k, &v,
                                &more);
    }
    pyri_env_cursor_close(cursor);
    return err > 0 ? 0 : err;
}

/* --- pages that blobs share ------------------------------------------------ */

/* Segments lay blobs out that way (segment.c). */
static bool
may_share(const pyri_blob *b)
{
    return b->size <= PYRI_SMALL_BLOB;
}

static int
compare_blobs(const void *a, const void *b)
{
    const pyri_blob *x = a, *y = b;
    if (x->ref.a != y->ref.a)
        return x->ref.a < y->ref.a ? -1 : 1;
    return (x->ref.b > y->ref.b) - (x->ref.b < y->ref.b);
}

/* A blob that goes, and the pages that it has bytes in: the first and the last
 * one stay if somebody else is found there. */
typedef struct leaving {
    const pyri_blob *blob;
    uint64_t end;
    pyri_range hole;
} leaving;

static int
leave(const pyri_blob *b, leaving *l)
{
    *l = (leaving){.blob = b};
    if (__builtin_add_overflow(b->ref.b, b->size, &l->end) ||
        l->end > INT64_MAX)
        return pyri_fail(PYR_ECORRUPT, "a blob cannot end where it does");
    l->hole = (pyri_range){pyri_page_down(b->ref.b), pyri_page_up(l->end)};
    return 0;
}

static void
meet(leaving *l, const pyri_blob *other)
{
    uint64_t first = l->blob->ref.b, from = other->ref.b;
    if (from < first && from + other->size > l->hole.from)
        l->hole.from = pyri_page_up(first);
    if (from + other->size > l->end && from < l->hole.to)
        l->hole.to = pyri_page_down(l->end);
}

static int
meet_named(void *ctx, const pyri_named_blob *b)
{
    leaving *l = ctx;
    if (b->blob.ref.a != l->blob->ref.a || b->blob.ref.b >= l->hole.to)
        return 1;
    if (b->damaged) /* who knows where it ends */
        l->hole = (pyri_range){pyri_page_up(l->blob->ref.b),
                               pyri_page_down(l->end)};
    else
        meet(l, &b->blob);
    return 0;
}

/* Those of a list in order that begin at `from` or later. */
static void
meet_listed(leaving *l, const pyri_blob *list, size_t n, pyri_ref from)
{
    pyri_blob key = {from, 0};
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare_blobs(&list[mid], &key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < n && list[lo].ref.a == from.a && list[lo].ref.b < l->hole.to;
         lo++)
        meet(l, &list[lo]);
}

void
pyri_limbo_drop(pyri_site *s, const pyri_blob *b, const pyri_blob *near,
                size_t n)
{
    leaving l;
    int dir, fd;
    if (leave(b, &l) < 0 ||
        pyri_segment_look(s, pyri_place_of(b->ref.a), &dir, &fd) < 0)
        return;
    for (size_t i = 0; i < n; i++)
        if (near[i].ref.a == b->ref.a)
            meet(&l, &near[i]);
    pyri_punch(fd, l.hole.from, l.hole.to);
    pyri_sys_close(fd);
}

/* --- what is ripe -------------------------------------------------------- */

typedef struct ripe {
    uint64_t oldest;
    pyri_settled *out;
    pyri_limbo_entry *list; /* LIMBO_BATCH of them, at most */
    size_t n;
    pyri_blob *unripe;      /* those that may share a page */
    size_t nunripe, room;
} ripe;

static int
take_ripe(void *ctx, const pyri_limbo_entry *e)
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
    r->unripe[r->nunripe++] = e->blob;
    return 0;
}

/* What is to be punched where `b` was. Those that share a page with it were
 * named by the same transaction: they are named still, or are in limbo, where
 * some reader may see them, or have gone. */
static int
find_hole(pyri_site *s, pyri_reader *reader, const ripe *r, const pyri_blob *b,
          pyri_range *hole)
{
    uint64_t reach = pyri_page_up(PYRI_SMALL_BLOB) + PYRI_PAGE; /* at most */
    pyri_ref from = b->ref;
    leaving l;
    int err = leave(b, &l);
    if (l.hole.from < from.b) /* who begins on a page has nobody before it */
        from.b -= pyri_min64(from.b, reach);
    if (err == 0 && may_share(b) &&
        (l.hole.from < b->ref.b || l.hole.to > l.end)) {
        err = pyri_blobs_scan(s, reader->txn, from, meet_named, &l);
        meet_listed(&l, r->unripe, r->nunripe, from);
    }
    *hole = err < 0 ? (pyri_range){0, 0} : l.hole;
    return err < 0 ? err : 0;
}

/* --- giving back --------------------------------------------------------- */

static int
delete_limbo(pyri_site *s, const pyri_limbo_entry *list, size_t n)
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

static int
compare_entries(const void *a, const void *b)
{
    const pyri_limbo_entry *x = a, *y = b;
    return compare_blobs(&x->blob, &y->blob);
}

/* Punch the ripe ranges of one segment: list[0..n). */
static int
punch_segment(pyri_site *s, pyri_reader *reader, const ripe *r,
              const pyri_limbo_entry *list, size_t n)
{
    int dir, fd;
    int err = pyri_segment_look(s, pyri_place_of(list[0].blob.ref.a), &dir,
                                &fd);
    if (err == PYR_ENOTFOUND)
        return 0;
    if (err < 0)
        return err;
    uint64_t before = pyri_blocks(fd);
    for (size_t i = 0; i < n && err == 0; i++) {
        pyri_range hole;
        err = find_hole(s, reader, r, &list[i].blob, &hole);
        if (err == 0)
            err = pyri_punch(fd, hole.from, hole.to);
    }
    uint64_t after = pyri_blocks(fd);
    r->out->bytes += before > after ? before - after : 0;
    pyri_sys_close(fd);
    return err;
}

/* Through the reader that the lists are from. */
static int
punch_ripe(pyri_site *s, pyri_reader *reader, const ripe *r)
{
    pyri_limbo_entry *list = r->list;
    size_t n = r->n;
    int err = 0;
    if (n)
        qsort(list, n, sizeof *list, compare_entries);
    if (r->nunripe)
        qsort(r->unripe, r->nunripe, sizeof *r->unripe, compare_blobs);
    for (size_t i = 0, k; i < n && err == 0; i = k) {
        for (k = i + 1; k < n && list[k].blob.ref.a == list[i].blob.ref.a; k++)
            ;
        err = punch_segment(s, reader, r, list + i, k - i);
    }
    return err;
}

/* Their segments may be empty now. */
static int
finish_ripe(pyri_site *s, const ripe *r)
{
    const pyri_limbo_entry *list = r->list;
    size_t n = r->n;
    PYRI_FAULT("settle.punched");
    int err = delete_limbo(s, list, n);
    for (size_t i = 0; i < n && err == 0; i++)
        if (i == 0 || list[i].blob.ref.a != list[i - 1].blob.ref.a)
            err = pyri_sweep_tend(s, pyri_place_of(list[i].blob.ref.a), r->out);
    return err;
}

int
pyri_limbo_empty(pyri_site *s, pyri_settled *out)
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
        err = pyri_limbo_scan(s, reader->txn, take_ripe, &r);
        if (err == 0)
            err = punch_ripe(s, reader, &r);
        pyri_reader_end(s, reader);
        if (err == 0 && r.n)
            err = finish_ripe(s, &r);
    } while (err == 0 && r.n);
    free(r.list);
    free(r.unripe);
    return err;
}
