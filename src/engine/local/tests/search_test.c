/*
 * engine/local/tests/search_test.c - pages of LMDB, searched by ourselves:
 * what LMDB finds is found, what is damaged leads nowhere, and is noticed
 * before LMDB changes it.
 *
 * The file is read into memory, just as large as it is: so the address
 * sanitizer sees a step outside.
 */
#include "engine/local/search.h"

#include "support/check.h"
#include "support/rng.h"
#include "support/tmp_store.h"

#include <lmdb.h>
#include <pyramid/error.h>

enum { KEYS = 1500, LONG_VALUE = 9000, PROBES = 20 };

static pyri_pagefile file;
static pyri_state state;
static uint8_t *bytes;
static size_t size;
static uint64_t newest;
static FILE *source;

/* --- a file of LMDB's ---------------------------------------------------- */

/* Key `i`, some of them long, in no order. */
static size_t
key_of(uint64_t i, uint8_t out[64])
{
    uint64_t mixed = rng_mix(i);
    size_t n = 8 + mixed % 50;
    memset(out, (int)(mixed >> 8 & 0xff), 64);
    memcpy(out, &mixed, 3);
    pyri_store64(out + n - 8, i);
    return n;
}

static MDB_val
value_of(uint64_t i)
{
    static uint8_t out[LONG_VALUE];
    memset(out, (int)(i % 251), sizeof out);
    return (MDB_val){i % 40 == 0 ? LONG_VALUE - i % 3000 : i % 90, out};
}

static void
put_keys(MDB_env *env, uint64_t from, uint64_t to, bool put)
{
    MDB_txn *txn;
    MDB_dbi db;
    REQUIRE(mdb_txn_begin(env, NULL, 0, &txn) == 0);
    REQUIRE(mdb_dbi_open(txn, NULL, 0, &db) == 0);
    for (uint64_t i = from; i < to; i++) {
        uint8_t key[64];
        MDB_val k = {key_of(i, key), key}, v = value_of(i);
        REQUIRE((put ? mdb_put(txn, db, &k, &v, 0)
                     : mdb_del(txn, db, &k, NULL)) == 0);
    }
    REQUIRE(mdb_txn_commit(txn) == 0);
}

static MDB_env *
make_env(const char *path)
{
    MDB_env *env;
    REQUIRE(mdb_env_create(&env) == 0);
    REQUIRE(mdb_env_set_mapsize(env, 1 << 26) == 0);
    REQUIRE(mdb_env_open(env, path, MDB_NOSYNC | MDB_NOSUBDIR, 0600) == 0);
    put_keys(env, 0, KEYS + 200, true);
    put_keys(env, KEYS, KEYS + 200, false); /* there are free pages */
    return env;
}

static MDB_env *
set_up(void)
{
    const char *path = tmp_fresh("pages");
    MDB_env *env = make_env(path);
    MDB_envinfo info;
    MDB_stat st;
    bool found, sure;
    REQUIRE(mdb_env_info(env, &info) == 0 && mdb_env_stat(env, &st) == 0);
    FILE *in = fopen(path, "rb");
    REQUIRE(in && fseek(in, 0, SEEK_END) == 0);
    size = (size_t)ftell(in);
    rewind(in);
    REQUIRE((bytes = malloc(size)) && fread(bytes, 1, size, in) == size);
    newest = info.me_last_txnid;
    file = (pyri_pagefile){.fd = fileno(in), .at = bytes, .page_size = st.ms_psize,
                           .room = size / st.ms_psize, .name = "test"};
    atomic_init(&file.there, size / st.ms_psize);
    OK(pyri_state_find(&file, newest, &state, &found, &sure));
    REQUIRE(found && sure && state.main.depth >= 2);
    source = in; /* its size may be asked for */
    return env;
}

static void
tear_down(MDB_env *env)
{
    mdb_env_close(env);
    fclose(source);
    free(bytes);
}

/* --- what is found ------------------------------------------------------- */

static void
every_key_is_found_with_its_value(void)
{
    MDB_env *env = set_up();
    for (uint64_t i = 0; i < KEYS + 200; i++) {
        uint8_t key[64];
        size_t n = key_of(i, key);
        MDB_val want = value_of(i);
        pyri_bytes got;
        unsigned flags;
        bool found;
        OK(pyri_state_get(&state, state.main, key, n, &got, &flags, &found));
        CHECK(found == (i < KEYS));
        if (found)
            CHECK(got.size == want.mv_size &&
                  memcmp(got.data, want.mv_data, got.size) == 0);
    }
    tear_down(env);
}

static bool
same(pyri_bytes a, MDB_val b)
{
    return a.size == b.mv_size && memcmp(a.data, b.mv_data, a.size) == 0;
}

/* From a place of LMDB's cursor on, some steps in both directions. */
static void
walk_along(MDB_cursor *cursor, pyri_spot *spot, MDB_cursor_op op, int steps)
{
    for (int i = 0; i < steps; i++) {
        MDB_val k, v;
        pyri_bytes key, value;
        unsigned flags;
        bool more;
        int rc = mdb_cursor_get(cursor, &k, &v, op);
        OK(pyri_spot_move(spot, op == MDB_PREV, &more));
        CHECK(more == (rc == 0));
        if (!more)
            return;
        OK(pyri_spot_get(spot, &key, &value, &flags));
        CHECK(same(key, k) && same(value, v));
    }
}

static void
a_walk_goes_where_lmdb_goes(void)
{
    MDB_env *env = set_up();
    rng r = rng_of(test_seed());
    MDB_txn *txn;
    MDB_dbi db;
    MDB_cursor *cursor;
    pyri_spot spot;
    bool more, exact;
    REQUIRE(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn) == 0);
    REQUIRE(mdb_dbi_open(txn, NULL, 0, &db) == 0);
    REQUIRE(mdb_cursor_open(txn, db, &cursor) == 0);
    pyri_spot_init(&spot, &state, state.main);
    for (int i = 0; i < 2000; i++) {
        uint8_t key[64];
        size_t n = key_of(rng_below(&r, 2 * KEYS), key);
        n -= rng_below(&r, n);
        MDB_val k = {n, key}, v;
        int rc = mdb_cursor_get(cursor, &k, &v, MDB_SET_RANGE);
        OK(pyri_spot_seek(&spot, key, n, &exact, &more));
        CHECK(more == (rc == 0));
        if (more)
            walk_along(cursor, &spot, rng_once_in(&r, 2) ? MDB_NEXT : MDB_PREV,
                       (int)rng_below(&r, 40));
    }
    MDB_val k, v;
    REQUIRE(mdb_cursor_get(cursor, &k, &v, MDB_LAST) == 0);
    OK(pyri_spot_edge(&spot, true, &more));
    walk_along(cursor, &spot, MDB_PREV, 2 * KEYS);
    REQUIRE(mdb_cursor_get(cursor, &k, &v, MDB_FIRST) == 0);
    OK(pyri_spot_edge(&spot, false, &more));
    walk_along(cursor, &spot, MDB_NEXT, 2 * KEYS);
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
    tear_down(env);
}

/* --- what is damaged ----------------------------------------------------- */

static void
is_answer(int err)
{
    CHECK(err == 0 || err == PYR_ECORRUPT);
}

/* Everything that follows numbers in pages. */
static void
use_all(uint64_t seed)
{
    pyri_guard guard = {{0}};
    pyri_state now;
    pyri_spot spot;
    bool found, sure, more;
    int err = pyri_state_find(&file, newest, &now, &found, &sure);
    is_answer(err);
    if (err < 0 || !found)
        return;
    for (uint64_t i = 0; i < PROBES; i++) {
        uint8_t key[64];
        size_t n = key_of(rng_mix(seed + i) % (KEYS + 10), key);
        pyri_bytes got;
        unsigned flags;
        is_answer(pyri_state_get(&now, now.main, key, n, &got, &flags,
                                    &found));
        is_answer(pyri_guard_key(&guard, &now, now.main, key, n, i % 2));
    }
    is_answer(pyri_guard_free(&now));
    pyri_spot_init(&spot, &now, now.main);
    err = pyri_spot_edge(&spot, seed & 1, &more);
    for (int i = 0; i < 3 * KEYS && err == 0 && more; i++) {
        pyri_bytes key, value;
        unsigned flags;
        if ((err = pyri_spot_get(&spot, &key, &value, &flags)) == 0)
            err = pyri_spot_move(&spot, seed & 1, &more);
    }
    is_answer(err);
}

/* By default heads and tables of pages, and some of the rest. */
static void
a_flipped_byte_leads_nowhere(void)
{
    MDB_env *env = set_up();
    rng r = rng_of(test_seed());
    uint64_t some = by_scale(64, 16, 1), tried = 0;
    for (size_t at = 0; at < size && check_failures < 20; at++) {
        if (rng_below(&r, at % file.page_size < 80 ? some : 16 * some))
            continue;
        uint8_t was = bytes[at];
        bytes[at] ^= (uint8_t)rng_from(&r, 1, 255);
        use_all(at);
        bytes[at] = was;
        tried++;
    }
    printf("# %llu bytes of %zu\n", (unsigned long long)tried, size);
    tear_down(env);
}

/* The leaf of a key, and its number. */
static uint8_t *
leaf_of(const uint8_t *key, size_t n)
{
    pyri_spot spot;
    bool exact, more;
    pyri_spot_init(&spot, &state, state.main);
    OK(pyri_spot_seek(&spot, key, n, &exact, &more));
    REQUIRE(exact);
    return bytes + (spot.level[state.main.depth - 1].page - bytes);
}

static void
a_damaged_page_is_noticed_before_it_is_written(void)
{
    MDB_env *env = set_up();
    uint8_t key[64];
    size_t n = key_of(7, key);
    uint8_t *leaf = leaf_of(key, n);
    unsigned table = pyri_load16(leaf + 12);
    for (unsigned at = 0; at < table; at++) {
        if (at == 8 || at == 9)
            continue; /* not used */
        pyri_guard guard = {{0}};
        leaf[at] ^= 0x11;
        FAILS(PYR_ECORRUPT,
                  pyri_guard_key(&guard, &state, state.main, key, n, false));
        leaf[at] ^= 0x11;
    }
    pyri_guard guard = {{0}};
    OK(pyri_guard_key(&guard, &state, state.main, key, n, false));
    tear_down(env);
}

enum { FIRST_LEAVES = 3 };

/* The first leaves, which are below one branch, and a key of each. */
static uint8_t *
first_leaves(uint8_t *leaves[FIRST_LEAVES], pyri_bytes keys[FIRST_LEAVES])
{
    pyri_spot spot;
    pyri_bytes value;
    unsigned flags, d = state.main.depth - 1;
    bool more;
    pyri_spot_init(&spot, &state, state.main);
    OK(pyri_spot_edge(&spot, false, &more));
    for (unsigned i = 0; i < FIRST_LEAVES; i++) {
        leaves[i] = bytes + (spot.level[d].page - bytes);
        OK(pyri_spot_get(&spot, &keys[i], &value, &flags));
        REQUIRE(spot.level[d - 1].at == i);
        while (spot.level[d].page == leaves[i])
            OK(pyri_spot_move(&spot, false, &more));
    }
    return bytes + (spot.level[d - 1].page - bytes);
}

static int
guard_key(pyri_guard *guard, pyri_bytes key, bool beside)
{
    return pyri_guard_key(guard, &state, state.main, key.data, key.size,
                          beside);
}

/* A delete may take from the page beside. */
static void
pages_beside_are_looked_at_where_that_is_asked_for(void)
{
    MDB_env *env = set_up();
    uint8_t *leaves[FIRST_LEAVES];
    pyri_bytes keys[FIRST_LEAVES];
    first_leaves(leaves, keys);
    leaves[1][14] ^= 1;
    pyri_guard guard = {{0}};
    OK(guard_key(&guard, keys[0], false));
    FAILS(PYR_ECORRUPT, guard_key(&guard, keys[0], true));
    leaves[1][14] ^= 1;
    OK(guard_key(&guard, keys[0], true));
    tear_down(env);
}

/* Leave the first entry of a leaf, as if the others had been deleted. */
static void
make_thin(uint8_t *leaf)
{
    const uint8_t *first = pyri_page_entry(leaf, 0);
    size_t room = PYRI_PAGE_ENTRY + pyri_entry_key(first) +
                  (pyri_entry_flags(first) & PYRI_ENTRY_BIG
                       ? 8
                       : (size_t)pyri_entry_size(first));
    size_t at = file.page_size - ((room + 1) & ~(size_t)1);
    memmove(leaf + at, first, room);
    pyri_store16(leaf + 12, PYRI_PAGE_HEAD + 2);
    pyri_store16(leaf + 14, (uint16_t)at);
    pyri_store16(leaf + PYRI_PAGE_HEAD, (uint16_t)at);
}

/* It would be merged with the page of the key, and both with the next one. */
static void
what_lies_behind_a_thin_page_is_looked_at_too(void)
{
    MDB_env *env = set_up();
    uint8_t *leaves[FIRST_LEAVES];
    pyri_bytes keys[FIRST_LEAVES];
    first_leaves(leaves, keys);
    leaves[2][14] ^= 1;
    pyri_guard guard = {{0}}, again = {{0}};
    OK(guard_key(&guard, keys[0], true));
    make_thin(leaves[1]);
    FAILS(PYR_ECORRUPT, guard_key(&again, keys[0], true));
    leaves[2][14] ^= 1;
    OK(guard_key(&again, keys[0], true));
    tear_down(env);
}

/* The entry of a branch leads to the page of its neighbour, which was found to
 * be sound there. */
static void
a_page_that_is_linked_to_twice_is_noticed(void)
{
    MDB_env *env = set_up();
    uint8_t *leaves[FIRST_LEAVES];
    pyri_bytes keys[FIRST_LEAVES];
    uint8_t *branch = first_leaves(leaves, keys);
    memcpy(branch + pyri_load16(branch + PYRI_PAGE_HEAD),
           pyri_page_entry(branch, 1), 6);
    pyri_guard guard = {{0}};
    OK(guard_key(&guard, keys[1], false));
    FAILS(PYR_ECORRUPT, guard_key(&guard, keys[0], false));
    tear_down(env);
}

static void
a_list_of_free_pages_is_in_order_and_inside(void)
{
    uint8_t list[32];
    static const uint64_t good[4] = {3, 9, 7, 2};
    memcpy(list, good, sizeof list);
    CHECK(!pyri_page_list(list, sizeof list, 9));
    CHECK(pyri_page_list(list, sizeof list, 8));
    CHECK(pyri_page_list(list, 24, 9)); /* more than there are */
    CHECK(pyri_page_list(list, 4, 9));
    pyri_store64(list + 24, 1); /* LMDB's own */
    CHECK(pyri_page_list(list, sizeof list, 9));
    pyri_store64(list + 24, 7); /* twice */
    CHECK(pyri_page_list(list, sizeof list, 9));
}

TESTS(T(every_key_is_found_with_its_value), T(a_walk_goes_where_lmdb_goes),
      T(a_flipped_byte_leads_nowhere),
      T(a_damaged_page_is_noticed_before_it_is_written),
      T(pages_beside_are_looked_at_where_that_is_asked_for),
      T(what_lies_behind_a_thin_page_is_looked_at_too),
      T(a_page_that_is_linked_to_twice_is_noticed),
      T(a_list_of_free_pages_is_in_order_and_inside))
