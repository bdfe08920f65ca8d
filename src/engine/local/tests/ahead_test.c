/*
 * Metadata has room behind it, in written blocks, so that few commits make the
 * file longer.
 */
#include "engine/local/env.h"

#include "base/sys.h"
#include "support/check.h"
#include "support/tmp_store.h"

#include <errno.h>
#include <string.h>

enum { VALUE = 40000, LARGE = 400000, COMMITS = 400 };

static char path[4096];

static MDB_env *
open_env(void)
{
    MDB_env *env;
    snprintf(path, sizeof path, "%s", tmp_fresh("ahead"));
    REQUIRE(mkdir(path, 0777) == 0);
    REQUIRE(mdb_env_create(&env) == 0);
    REQUIRE(mdb_env_set_mapsize(env, 1 << 30) == 0);
    REQUIRE(mdb_env_open(env, path, 0, 0666) == 0);
    return env;
}

static void
close_env(MDB_env *env)
{
    mdb_env_close(env);
    tmp_remove(path);
}

static struct stat
file_of(MDB_env *env)
{
    struct stat st;
    int fd;
    REQUIRE(mdb_env_get_fd(env, &fd) == 0 && fstat(fd, &st) == 0);
    return st;
}

static uint64_t
length_of(MDB_env *env)
{
    return (uint64_t)file_of(env).st_size;
}

static void
put_sized(MDB_env *env, uint32_t key, size_t size, pyri_growth *g)
{
    static uint8_t value[LARGE];
    MDB_txn *txn;
    MDB_dbi db;
    MDB_val k = {sizeof key, &key}, v = {size, value};
    memset(value, (int)key + 1, size);
    REQUIRE(mdb_txn_begin(env, NULL, 0, &txn) == 0);
    REQUIRE(mdb_dbi_open(txn, NULL, 0, &db) == 0);
    REQUIRE(mdb_put(txn, db, &k, &v, 0) == 0);
    pyri_env_ahead(env, length_of(env), g);
    REQUIRE(mdb_txn_commit(txn) == 0);
}

static void
put(MDB_env *env, uint32_t key)
{
    put_sized(env, key, VALUE, &(pyri_growth){0, 0});
}

static uint64_t
used(MDB_env *env)
{
    MDB_envinfo info;
    MDB_stat st;
    REQUIRE(mdb_env_info(env, &info) == 0 && mdb_env_stat(env, &st) == 0);
    return ((uint64_t)info.me_last_pgno + 1) * st.ms_psize;
}

static void
all_is_there(MDB_env *env, uint32_t n)
{
    MDB_txn *txn;
    MDB_dbi db;
    REQUIRE(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn) == 0);
    REQUIRE(mdb_dbi_open(txn, NULL, 0, &db) == 0);
    for (uint32_t key = 0; key < n; key++) {
        MDB_val k = {sizeof key, &key}, v;
        REQUIRE(mdb_get(txn, db, &k, &v) == 0 && v.mv_size == VALUE);
        const uint8_t *bytes = v.mv_data;
        CHECK(bytes[0] == (uint8_t)(key + 1) &&
              bytes[VALUE - 1] == (uint8_t)(key + 1));
    }
    mdb_txn_abort(txn);
}

static void
few_commits_make_the_file_longer(void)
{
    MDB_env *env = open_env();
    int grew = 0;
    for (uint32_t i = 0; i < COMMITS; i++) {
        struct stat before = file_of(env);
        put(env, i);
        grew += file_of(env).st_size != before.st_size;
    }
    struct stat st = file_of(env);
    printf("# %d of %d; %lld bytes, %lld used\n", grew, COMMITS,
           (long long)st.st_size, (long long)used(env));
    CHECK(grew < COMMITS / 4);
    CHECK((uint64_t)st.st_size <= used(env) + used(env) / 16 + (64 << 10));
    CHECK(st.st_blocks * 512 >= st.st_size); /* no holes: they were written */
    all_is_there(env, COMMITS);
    close_env(env);
}

/* Zeros would be as many bytes again. */
static void
where_transactions_bring_much_there_are_no_zeros(void)
{
    MDB_env *env = open_env();
    pyri_growth g = {0, 0};
    for (uint32_t i = 0; i < 4; i++)
        put_sized(env, i, VALUE, &g);
    CHECK(length_of(env) > used(env));
    for (uint32_t i = 4; i < 20; i++)
        put_sized(env, i, LARGE, &g);
    CHECK(length_of(env) <= used(env)); /* LMDB may not have stored the last */
    for (uint32_t i = 20; i < 40; i++)
        put_sized(env, i, VALUE, &g);
    CHECK(length_of(env) > used(env));
    close_env(env);
}

/* LMDB stores pages before the end of a transaction that has very many. */
static void
pages_that_a_large_transaction_has_stored_stay(void)
{
    MDB_env *env = open_env();
    uint8_t page[4096], now[4096];
    MDB_txn *txn;
    int fd;
    put(env, 0);
    memset(page, 0xa5, sizeof page);
    REQUIRE(mdb_env_get_fd(env, &fd) == 0);
    REQUIRE(ftruncate(fd, (off_t)used(env)) == 0);
    REQUIRE(mdb_txn_begin(env, NULL, 0, &txn) == 0);
    uint64_t length = length_of(env);
    REQUIRE(pwrite(fd, page, sizeof page, (off_t)length) == sizeof page);
    pyri_env_ahead(env, length, &(pyri_growth){0, 0});
    REQUIRE(pread(fd, now, sizeof now, (off_t)length) == sizeof now);
    CHECK(memcmp(page, now, sizeof page) == 0);
    mdb_txn_abort(txn);
    all_is_there(env, 1);
    close_env(env);
}

#ifdef PYRI_FAULTS
static void
if_there_is_no_room_for_zeros_nothing_changes(void)
{
    MDB_env *env = open_env();
    pyri_sys_order(&(pyri_sys_plan){.groups = PYRI_SYS_FILE, .only = "pwrite",
                                    .nth = 1, .times = 1000, .error = ENOSPC});
    for (uint32_t i = 0; i < 20; i++)
        put(env, i);
    CHECK(pyri_sys_acted() > 10);
    CHECK((uint64_t)file_of(env).st_size <= used(env));
    pyri_sys_order(&(pyri_sys_plan){.groups = PYRI_SYS_FILE, .only = "pwrite",
                                    .nth = 1, .times = 1000,
                                    .action = PYRI_SYS_SHORT, .most = 4097});
    for (uint32_t i = 20; i < 40; i++)
        put(env, i);
    pyri_sys_order(NULL);
    CHECK((uint64_t)file_of(env).st_size <= used(env));
    all_is_there(env, 40);
    close_env(env);
}
#endif

TESTS(
#ifdef PYRI_FAULTS
      T(if_there_is_no_room_for_zeros_nothing_changes),
#endif
      T(few_commits_make_the_file_longer),
      T(where_transactions_bring_much_there_are_no_zeros),
      T(pages_that_a_large_transaction_has_stored_stay))
