/*
 * engine/local/erase.c - versions that are forgotten, and erasing.
 *
 * A forgotten version stays where it is, marked twice: in the first byte of
 * its value in `tree` (meta.c), where readers see it, and in the main database
 *
 *   'd' array version -> nothing
 *
 * which lists what can be reclaimed. Erasing deletes nodes and small blobs at
 * once: LMDB keeps them for readers who began before. Bytes in segments have
 * no such guard. They go to the database `limbo`,
 *
 *   transaction (8), reference (16), big-endian -> size (8), checksum (8)
 *
 * until all readers are past the transaction that erased them (limbo.c).
 */
#include "engine/local/local.h"

#include "base/bytes.h"
#include "base/fault.h"
#include "base/room.h"
#include "base/sys.h"
#include "engine/local/env.h"

#include <string.h>

enum { DOOMED_KEY = 17 };

static void
doomed_key(uint8_t key[DOOMED_KEY], uint64_t array, uint64_t version)
{
    key[0] = 'd';
    pyri_store64_be(key + 1, array);
    pyri_store64_be(key + 9, version);
}

/* --- marks --------------------------------------------------------------- */

int
pyri_erase_forget(pyri_site *s, pyri_txn *txn, const pyri_edit *e)
{
    uint8_t key[DOOMED_KEY];
    pyri_head head;
    bool found;
    int err = pyri_meta_head(s, txn, e->array, &head);
    if (err < 0)
        return err;
    if (e->version >= head.latest)
        return pyri_fail(PYR_EINVAL,
                         "version %llu is not older than the newest one",
                         (unsigned long long)e->version);
    err = pyri_meta_mark_forgotten(s, txn, e->array, e->version, &found);
    if (err < 0 || !found)
        return err;
    doomed_key(key, e->array, e->version);
    return pyri_env_put(txn, s->main_db, key, sizeof key, "", 0);
}

int
pyri_erase_scan_forgotten(pyri_site *s, pyri_reader *r,
                          pyri_forgotten_fn *each, void *ctx)
{
    pyri_walk *cursor;
    MDB_val key = {1, (void *)(uintptr_t)"d"}, value;
    pyri_bytes prefix = {"d", 1};
    bool more;
    int err = pyri_env_cursor(r->txn, s->main_db, &cursor);
    if (err < 0)
        return err;
    err = pyri_env_step(cursor, MDB_SET_RANGE, prefix, &key, &value, &more);
    while (err == 0 && more) {
        const uint8_t *k = key.mv_data;
        if (key.mv_size == DOOMED_KEY)
            err = each(ctx, pyri_load64_be(k + 1), pyri_load64_be(k + 9));
        if (err == 0)
            err = pyri_env_step(cursor, MDB_NEXT, prefix, &key, &value, &more);
    }
    pyri_env_cursor_close(cursor);
    return err;
}

/* --- erasing ------------------------------------------------------------- */

static int
send_to_limbo(pyri_site *s, pyri_txn *txn, const pyri_blob *b)
{
    uint8_t key[PYRI_LIMBO_KEY], size[16];
    pyri_store64_be(key, pyri_env_id(txn));
    pyri_store64_be(key + 8, b->ref.a);
    pyri_store64_be(key + 16, b->ref.b);
    pyri_store64(size, b->size);
    pyri_store64(size + 8, pyri_meta_sum((pyri_bytes){key, sizeof key},
                                         (pyri_bytes){size, 8},
                                         (pyri_bytes){"", 0}));
    return pyri_env_put(txn, s->limbo_db, key, sizeof key, size, sizeof size);
}

static int
erase_blob(pyri_site *s, pyri_txn *txn, pyri_ref ref, uint64_t *bytes)
{
    pyri_named_blob was;
    bool found;
    int err = pyri_blobs_erase(s, txn, ref, &was, &found);
    if (err < 0 || !found)
        return err;
    *bytes += was.blob.size;
    return ref.a & PYRI_SMALL_BIT ? 0 : send_to_limbo(s, txn, &was.blob);
}

static int
erase_version(pyri_site *s, pyri_txn *txn, uint64_t array, uint64_t version)
{
    uint8_t key[DOOMED_KEY];
    bool found;
    int err = pyri_meta_drop_version(s, txn, array, version);
    doomed_key(key, array, version);
    if (err == 0)
        err = pyri_env_delete(txn, s->main_db, key, sizeof key, &found);
    return err;
}

int
pyri_erase_all(pyri_site *s, pyri_txn *txn, pyri_erase *x)
{
    int err = 0;
    for (size_t i = 0; i < x->nnodes && err == 0; i++)
        err = pyri_meta_drop_node(s, txn, x->nodes[i], &x->bytes);
    for (size_t i = 0; i < x->nblobs && err == 0; i++)
        err = erase_blob(s, txn, x->blobs[i].ref, &x->bytes);
    for (size_t i = 0; i < x->nversions && err == 0; i++)
        err = erase_version(s, txn, x->array, x->versions[i]);
    return err < 0 ? err
                   : pyri_dense_count(s, txn,
                                      x->nnodes + x->nblobs + x->nversions);
}

int
pyri_erase_run(pyri_site *s, pyri_erase *x)
{
    pyri_txn *txn;
    int err = pyri_env_write(s->meta, &txn);
    if (err < 0)
        return err;
    if ((err = pyri_erase_all(s, txn, x)) < 0) {
        pyri_env_abort(txn);
        return err;
    }
    PYRI_FAULT("erase.commit");
    if ((err = pyri_env_commit(txn, "erase what was forgotten")) == 0)
        PYRI_FAULT("erase.done");
    return err;
}

int
pyri_erase_replace(pyri_site *s, const pyri_node_put *puts, size_t n)
{
    pyri_txn *txn;
    int err = pyri_env_write(s->meta, &txn);
    if (err < 0)
        return err;
    for (size_t i = 0; i < n && err == 0; i++)
        err = pyri_meta_replace_node(s, txn, &puts[i]);
    if (err == 0 && (err = pyri_meta_count_replaced(s, txn)) == 0)
        return pyri_env_commit(txn, "repair nodes");
    pyri_env_abort(txn);
    return err;
}

/* --- after a restart of the machine -------------------------------------- */

typedef struct unpublished {
    pyri_site *s;
    pyri_txn *txn;
    pyri_blob *list;
    size_t n, room;
} unpublished;

static int
note_unpublished(void *ctx, const pyri_named_blob *b)
{
    unpublished *u = ctx;
    pyri_head head;
    if (b->damaged)
        return 0;
    int err = pyri_meta_head(u->s, u->txn, b->array, &head);
    if (err == PYR_ENOTFOUND || (err == 0 && b->version <= head.latest))
        return 0;
    if (err < 0)
        return err;
    if (!pyri_room(&u->list, &u->room, u->n + 1, sizeof *u->list))
        return pyri_fail_nomem("a list of blobs");
    u->list[u->n++] = b->blob;
    return 0;
}

int
pyri_erase_unpublished(pyri_site *s, pyri_txn *txn)
{
    unpublished u = {.s = s, .txn = txn};
    uint64_t bytes = 0;
    int err = pyri_blobs_scan(s, txn, (pyri_ref){0, 0}, note_unpublished, &u);
    for (size_t i = 0; i < u.n && err == 0; i++)
        err = erase_blob(s, txn, u.list[i].ref, &bytes);
    free(u.list);
    return err;
}
