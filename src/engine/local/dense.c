/*
 * engine/local/dense.c - LMDB's pages, made full again.
 *
 * LMDB joins a page with its neighbour only when three quarters of it are
 * empty. Where entries went between others, pages stay behind that are half
 * full or less. So the leaf pages of the large databases are gone through. If
 * there are few, and all entries fit into fewer, they are deleted and put again
 * in order, which fills one page after the other. Else this is done with a
 * WINDOW of pages at a time: what goes between others does not lie as densely,
 * but each transaction stays small. To all others nothing changes.
 *
 * This costs a look at all pages, which is too much if little went. Entries
 * that are erased are counted, in the main database,
 *
 *   'e' -> entries (8)
 *
 * and it is done when they are some part of those that are left.
 */
#include "engine/local/local.h"

#include "base/bytes.h"
#include "base/fault.h"
#include "base/room.h"
#include "engine/local/env.h"

#include <stdlib.h>
#include <string.h>

enum {
    WHOLE = 4096,      /* pages that are put in order at once */
    WINDOW = 32,       /* pages, if there are more */
    PART = 32,         /* of the entries: worth a look */
    MOVED = 8,         /* windows in a transaction, */
    LOOKED = 256,      /* or this many that were looked at */
    FEW = 7,           /* entries of a page */
    PAGE_HEAD = 16,
    ENTRY_HEAD = 8 + 2 /* with its place in the page */
};

/* --- how many went ------------------------------------------------------- */

static int
get_erased(pyri_site *s, pyri_txn *txn, uint64_t *out)
{
    MDB_val v;
    bool found;
    int err = pyri_env_get(txn, s->main_db, "e", 1, &v, &found);
    *out = err == 0 && found && v.mv_size == 8 ? pyri_load64(v.mv_data) : 0;
    return err;
}

int
pyri_dense_count(pyri_site *s, pyri_txn *txn, uint64_t more)
{
    uint8_t value[8];
    uint64_t n;
    int err = more ? get_erased(s, txn, &n) : 0;
    if (err < 0 || more == 0)
        return err;
    pyri_store64(value, n + more);
    return pyri_env_put(txn, s->main_db, "e", 1, value, sizeof value);
}

/* --- a window ------------------------------------------------------------ */

typedef struct entry {
    size_t key, key_size, value_size; /* in `bytes`: the value comes next */
} entry;

/* Leaf pages one after the other, and what is in them. */
typedef struct window {
    size_t page_size;
    size_t most;    /* pages */
    entry *list;
    size_t n, room;
    pyri_buf bytes;
    size_t pages;   /* that they are in, */
    size_t packed;  /* that they would fill, */
    size_t filled;  /* and how far the last of those */
    uintptr_t last; /* page */
    bool more;      /* there are others behind it */
    uint8_t next[PYRI_MAX_KEY + 1]; /* the first of them */
    size_t next_size;
} window;

static uintptr_t
page_of(const window *w, const void *at)
{
    return (uintptr_t)at & ~(uintptr_t)(w->page_size - 1);
}

/* Would the entry fit into the page that is being filled? */
static void
pack(window *w, const MDB_val *key, const MDB_val *value, bool far)
{
    size_t size = ENTRY_HEAD + key->mv_size + (far ? 8 : value->mv_size);
    size += size & 1;
    if (w->packed == 0 || w->filled + size > w->page_size - PAGE_HEAD) {
        w->packed++;
        w->filled = 0;
    }
    w->filled += size;
}

static int
add_entry(window *w, const MDB_val *key, const MDB_val *value)
{
    uintptr_t page = page_of(w, key->mv_data);
    w->pages += page != w->last;
    w->last = page;
    pack(w, key, value, page_of(w, value->mv_data) != page);
    if (!pyri_room(&w->list, &w->room, w->n + 1, sizeof *w->list))
        return pyri_fail_nomem("entries of metadata");
    w->list[w->n++] = (entry){w->bytes.size, key->mv_size, value->mv_size};
    pyri_buf_add(&w->bytes, key->mv_data, key->mv_size);
    pyri_buf_add(&w->bytes, value->mv_data, value->mv_size);
    return pyri_buf_check(&w->bytes, "entries of metadata");
}

/* Fill the window from its `next` on. */
static int
look(pyri_txn *txn, MDB_dbi db, window *w)
{
    pyri_walk *cursor;
    MDB_val k = {w->next_size, w->next}, v;
    bool more;
    w->n = w->pages = w->packed = w->filled = 0;
    w->last = 0;
    w->more = false;
    pyri_buf_reset(&w->bytes);
    int err = pyri_env_cursor(txn, db, &cursor);
    if (err < 0)
        return err;
    err = pyri_env_step(cursor, MDB_SET_RANGE, (pyri_bytes){"", 0}, &k, &v,
                        &more);
    while (err == 0 && more) {
        bool full = w->pages == w->most && page_of(w, k.mv_data) != w->last;
        if (full || k.mv_size > sizeof w->next) {
            w->more = full;
            w->next_size = full ? k.mv_size : 0;
            memcpy(w->next, k.mv_data, w->next_size);
            break;
        }
        if ((err = add_entry(w, &k, &v)) == 0)
            err = pyri_env_step(cursor, MDB_NEXT, (pyri_bytes){"", 0}, &k, &v,
                                &more);
    }
    pyri_env_cursor_close(cursor);
    return err;
}

/* A page is saved, and not by writing many times as much. */
static bool
is_worth_it(const window *w)
{
    return w->packed < w->pages &&
           w->bytes.size / 4 / WINDOW <=
               (w->pages - w->packed) * w->page_size;
}

static int
put_all(pyri_txn *txn, MDB_dbi db, const window *w, bool values)
{
    int err = 0;
    for (size_t i = 0; i < w->n && err == 0; i++) {
        const entry *e = &w->list[i];
        const uint8_t *key = w->bytes.data + e->key;
        pyri_bytes value = {key + e->key_size, values ? e->value_size : 0};
        err = w->more ? pyri_env_put(txn, db, key, e->key_size, value.data,
                                     value.size)
                      : pyri_env_append_two(txn, db, key, e->key_size, value,
                                            (pyri_bytes){0});
    }
    return err;
}

/*
 * To put an entry behind the last one of a full page, LMDB takes that along to
 * the new page; where there are but a few to a page, much of it stays empty. It
 * does better if something comes after: it then splits the page right behind
 * what fits. So keys are put alone first, and get their values one after the
 * other. (Small entries it would split in the middle then.)
 */
static int
pack_window(pyri_txn *txn, MDB_dbi db, const window *w)
{
    int err = 0;
    bool found;
    for (size_t i = 0; i < w->n && err == 0; i++)
        err = pyri_env_delete(txn, db, w->bytes.data + w->list[i].key,
                              w->list[i].key_size, &found);
    if (err == 0 && w->more && w->n < FEW * w->packed)
        err = put_all(txn, db, w, false);
    return err < 0 ? err : put_all(txn, db, w, true);
}

/* --- all of it ----------------------------------------------------------- */

/* Some windows, in one transaction. */
static int
pack_some(pyri_site *s, MDB_dbi db, window *w)
{
    pyri_txn *txn;
    int moved = 0;
    int err = pyri_env_write(s->meta, &txn);
    if (err < 0)
        return err;
    for (int i = 0; i < LOOKED && moved < MOVED && err == 0; i++) {
        if ((err = look(txn, db, w)) == 0 && is_worth_it(w)) {
            err = pack_window(txn, db, w);
            moved++;
        }
        if (!w->more)
            break;
    }
    if (err < 0 || moved == 0) {
        pyri_env_abort(txn);
        return err;
    }
    PYRI_FAULT("dense.commit");
    return pyri_env_commit(txn, "put metadata in order");
}

/* All of the database, or some of it. */
static int
size_window(pyri_site *s, MDB_dbi db, window *w)
{
    uint64_t pages;
    pyri_reader *r;
    int err = pyri_reader_begin(s, &r);
    if (err < 0)
        return err;
    if ((err = pyri_env_pages(r->txn, db, &pages)) == 0)
        w->most = pages <= WHOLE ? SIZE_MAX : WINDOW;
    pyri_reader_end(s, r);
    return err;
}

static int
pack_database(pyri_site *s, MDB_dbi db)
{
    MDB_stat st;
    window w = {.more = true, .next_size = 1};
    mdb_env_stat(s->meta, &st);
    w.page_size = st.ms_psize;
    int err = size_window(s, db, &w);
    while (err == 0 && w.more)
        err = pack_some(s, db, &w);
    free(w.list);
    pyri_buf_fini(&w.bytes);
    return err;
}

/* Have many gone, of those that were there? */
static int
is_time(pyri_site *s, bool *yes)
{
    uint64_t n, nodes, blobs;
    pyri_reader *r;
    *yes = false;
    int err = pyri_reader_begin(s, &r);
    if (err < 0)
        return err;
    err = get_erased(s, r->txn, &n);
    if (err == 0 &&
        (err = pyri_env_entries(r->txn, s->tree_db, &nodes)) == 0 &&
        (err = pyri_env_entries(r->txn, s->blobs_db, &blobs)) == 0)
        *yes = n > (nodes + blobs) / PART;
    pyri_reader_end(s, r);
    return err;
}

static int
begin_anew(pyri_site *s)
{
    pyri_txn *txn;
    bool found;
    int err = pyri_env_write(s->meta, &txn);
    if (err < 0)
        return err;
    if ((err = pyri_env_delete(txn, s->main_db, "e", 1, &found)) == 0)
        return pyri_env_commit(txn, "put metadata in order");
    pyri_env_abort(txn);
    return err;
}

int
pyri_dense(pyri_site *s)
{
    bool yes;
    int err = is_time(s, &yes);
    if (err < 0 || !yes)
        return err;
    if ((err = pack_database(s, s->tree_db)) == 0)
        err = pack_database(s, s->blobs_db);
    return err < 0 ? err : begin_anew(s);
}
