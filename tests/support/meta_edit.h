/*
 * support/meta_edit.h - entries of a store's metadata, changed behind the
 * library's back; with good checksums, if the test wants to lie.
 *
 * The store must be closed.
 */
#ifndef SUPPORT_META_EDIT_H
#define SUPPORT_META_EDIT_H

#include "base/hash.h"
#include "support/check.h"

#include <lmdb.h>
#include <stdint.h>

enum { META_KEY = 512, META_VALUE = 1 << 17 };

typedef enum meta_verdict { META_LEAVE, META_STORE, META_DROP } meta_verdict;

/* An entry; what is changed of the value is stored. */
typedef struct meta_entry {
    uint8_t key[META_KEY], value[META_VALUE];
    size_t key_size, size;
} meta_entry;

typedef meta_verdict meta_fn(void *ctx, meta_entry *e);

typedef struct meta_edit {
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi db;
} meta_edit;

static inline void
meta_begin(meta_edit *m, const char *place, const char *db)
{
    char meta[4200];
    snprintf(meta, sizeof meta, "%s/meta", place);
    REQUIRE(mdb_env_create(&m->env) == 0);
    REQUIRE(mdb_env_set_maxdbs(m->env, 8) == 0);
    REQUIRE(mdb_env_set_mapsize(m->env, 1 << 30) == 0);
    REQUIRE(mdb_env_open(m->env, meta, 0, 0666) == 0);
    REQUIRE(mdb_txn_begin(m->env, NULL, 0, &m->txn) == 0);
    REQUIRE(mdb_dbi_open(m->txn, db, 0, &m->db) == 0);
}

static inline void
meta_end(meta_edit *m)
{
    REQUIRE(mdb_txn_commit(m->txn) == 0);
    mdb_env_close(m->env);
}

/* Goes through a database; returns how many entries were stored or dropped. */
static inline int
meta_change(const char *place, const char *db, meta_fn *fn, void *ctx)
{
    static meta_entry e; /* large */
    meta_edit m;
    MDB_cursor *cursor;
    MDB_val k, v;
    int changed = 0;
    meta_begin(&m, place, db);
    REQUIRE(mdb_cursor_open(m.txn, m.db, &cursor) == 0);
    while (mdb_cursor_get(cursor, &k, &v, MDB_NEXT) == 0) {
        REQUIRE(k.mv_size <= META_KEY && v.mv_size <= META_VALUE);
        memcpy(e.key, k.mv_data, e.key_size = k.mv_size);
        memcpy(e.value, v.mv_data, e.size = v.mv_size);
        meta_verdict what = fn(ctx, &e);
        MDB_val own = {e.key_size, e.key}, now = {e.size, e.value};
        if (what == META_STORE)
            REQUIRE(mdb_cursor_put(cursor, &own, &now, MDB_CURRENT) == 0);
        else if (what == META_DROP)
            REQUIRE(mdb_cursor_del(cursor, 0) == 0);
        changed += what != META_LEAVE;
    }
    mdb_cursor_close(cursor);
    meta_end(&m);
    return changed;
}

static inline void
meta_put(const char *place, const char *db, const meta_entry *e)
{
    meta_edit m;
    MDB_val k = {e->key_size, (void *)(uintptr_t)e->key};
    MDB_val v = {e->size, (void *)(uintptr_t)e->value};
    meta_begin(&m, place, db);
    REQUIRE(mdb_put(m.txn, m.db, &k, &v, 0) == 0);
    meta_end(&m);
}

/* --- nodes: array (8), label (8), 'n', level, position ------------------- */

static inline bool
meta_is_node(const meta_entry *e, unsigned label, unsigned level)
{
    return e->key_size > 18 && e->key[15] == label && e->key[16] == 'n' &&
           e->key[17] == level;
}

static inline bool
meta_is_version(const meta_entry *e, unsigned label)
{
    return e->key_size == 16 && e->key[15] == label;
}

/* Puts the checksum in that fits: that of the key goes without the 'n'. */
static inline void
meta_seal_node(meta_entry *e)
{
    uint8_t key[META_KEY];
    memcpy(key, e->key, 16);
    memcpy(key + 16, e->key + 17, e->key_size - 17);
    uint64_t sum = pyri_hash64(key, e->key_size - 1) +
                   pyri_hash64(e->value + 8, e->size - 8);
    memcpy(e->value, &sum, sizeof sum);
}

/* An entry of `blobs`: array, label, then the sum, then bytes or a size. */
static inline void
meta_seal_small(meta_entry *e)
{
    uint64_t size = e->size - 24;
    uint64_t sums[3] = {pyri_hash64(e->key, 16), pyri_hash64(e->value, 16),
                        pyri_hash64(&size, 8)};
    uint64_t sum = pyri_hash64(sums, sizeof sums);
    memcpy(e->value + 16, &sum, sizeof sum);
}

#endif
