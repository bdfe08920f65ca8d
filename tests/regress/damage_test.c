/*
 * regress/damage_test.c - metadata changed behind the library's back: the
 * damage is told where it is met, and the rest of the array goes on.
 */
#include "regress/regress.h"

#include "base/hash.h"

#include <lmdb.h>

enum { CHUNK = 16, CHUNKS = 256, HEALTHY = 200 * CHUNK };

static int32_t cells[CHUNK] = {3, 1, 4, 1, 5, 9, 2, 6};

/* Two levels of inner nodes; the version numbered last is 2. */
static void
set_up_tree(void)
{
    pyr_version made;
    set_up(SHORT_LEASE);
    make_line(CHUNKS * CHUNK, CHUNK, PYR_I32);
    OK(pyr_write(array, AT(0), AT(CHUNK), cells, &made));
    OK(pyr_write(array, AT(HEALTHY), AT(CHUNK), cells, &made));
    close_all();
}

/* Change a value of the tree in place; false if it is not the one. */
typedef bool change_fn(const uint8_t *key, size_t key_size, uint8_t *value,
                       size_t size);

static int
change_values(MDB_txn *txn, change_fn *change)
{
    MDB_dbi db;
    MDB_cursor *cursor;
    MDB_val k, v;
    int changed = 0;
    REQUIRE(mdb_dbi_open(txn, "tree", 0, &db) == 0);
    REQUIRE(mdb_cursor_open(txn, db, &cursor) == 0);
    while (mdb_cursor_get(cursor, &k, &v, MDB_NEXT) == 0) {
        uint8_t key[512], value[8192];
        REQUIRE(k.mv_size <= sizeof key && v.mv_size <= sizeof value);
        memcpy(key, k.mv_data, k.mv_size);
        memcpy(value, v.mv_data, v.mv_size);
        if (!change(key, k.mv_size, value, v.mv_size))
            continue;
        MDB_val own = {k.mv_size, key}, now = {v.mv_size, value};
        REQUIRE(mdb_cursor_put(cursor, &own, &now, MDB_CURRENT) == 0);
        changed++;
    }
    mdb_cursor_close(cursor);
    return changed;
}

/* The store must be closed; it is open again afterwards. */
static void
change_store(change_fn *change)
{
    char path[4200];
    MDB_env *env;
    MDB_txn *txn;
    snprintf(path, sizeof path, "%s/meta", url);
    REQUIRE(mdb_env_create(&env) == 0);
    REQUIRE(mdb_env_set_maxdbs(env, 4) == 0);
    REQUIRE(mdb_env_set_mapsize(env, 1 << 30) == 0);
    REQUIRE(mdb_env_open(env, path, 0, 0666) == 0);
    REQUIRE(mdb_txn_begin(env, NULL, 0, &txn) == 0);
    CHECK(change_values(txn, change) == 1);
    REQUIRE(mdb_txn_commit(txn) == 0);
    mdb_env_close(env);
    OK(open_line(0));
}

/* A key is array, version (8 bytes each), 'n', level, position. */
static bool
flip_inner_node(const uint8_t *key, size_t key_size, uint8_t *value,
                size_t size)
{
    if (key_size < 19 || key[15] != 1 || key[16] != 'n' || key[17] != 1)
        return false;
    value[size / 2] ^= 1;
    return true;
}

static void
a_damaged_inner_node_harms_only_what_is_below_it(void)
{
    int32_t got[CHUNK];
    pyr_version made, latest;
    set_up_tree();
    change_store(flip_inner_node);
    OK(pyr_write(array, AT(HEALTHY), AT(CHUNK), cells, &made));
    FAILS(PYR_ECORRUPT, pyr_read(array, made, AT(0), AT(CHUNK), got));
    for (int i = 0; i < 3; i++) {
        FAILS(PYR_ECORRUPT,
              pyr_write(array, AT(2 * CHUNK), AT(CHUNK), cells, &made));
        CHECK(in_flight() == 0);
        cells[0]++;
        OK(pyr_write(array, AT(HEALTHY), AT(CHUNK), cells, &made));
        OK(pyr_latest(array, &latest));
        CHECK(latest == made);
        OK(pyr_read(array, made, AT(HEALTHY), AT(CHUNK), got));
        CHECK(memcmp(got, cells, sizeof cells) == 0);
    }
    FAILS(PYR_ECORRUPT, pyr_read(array, made, AT(0), AT(CHUNK), got));
    OK(pyr_read(array, 0, AT(0), AT(CHUNK), got));
    tear_down();
}

/* The key of a record is array and version; before it stand the number of
 * axes and the shape. Its checksum is of what follows it. */
static uint8_t *
record_of(const uint8_t *key, size_t key_size, uint8_t *value)
{
    return key_size == 16 && key[15] == 2 ? value + 1 + 8 * value[0] : NULL;
}

static bool
raise_root(const uint8_t *key, size_t key_size, uint8_t *value, size_t size)
{
    uint8_t *record = record_of(key, key_size, value);
    if (!record)
        return false;
    size_t rest = size - (size_t)(record - value) - 8;
    record[10] = 200;
    uint64_t sum = pyri_hash64(record + 8, rest);
    memcpy(record, &sum, 8);
    return true;
}

static void
a_root_above_all_levels_is_refused(void)
{
    int32_t got[CHUNK];
    pyr_stats stats;
    pyr_version last;
    set_up_tree();
    change_store(raise_root);
    FAILS(PYR_ECORRUPT, pyr_read(array, 2, AT(0), AT(CHUNK), got));
    FAILS(PYR_ECORRUPT,
          pyr_stat(array, 2, AT(0), AT(CHUNKS * CHUNK), 0, &stats));
    FAILS(PYR_ECORRUPT, pyr_last_change(array, 2, AT(0), AT(1), &last));
    OK(pyr_read(array, 1, AT(0), AT(CHUNK), got));
    CHECK(memcmp(got, cells, sizeof cells) == 0);
    tear_down();
}

static const role roles[] = {{NULL, NULL}};

REGRESS_TESTS(roles, T(a_damaged_inner_node_harms_only_what_is_below_it),
              T(a_root_above_all_levels_is_refused))
