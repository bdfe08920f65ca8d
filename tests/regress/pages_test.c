/*
 * regress/pages_test.c - pages of metadata that look odd, and are as they
 * should be; and some that look right, and are not.
 */
#include "regress/regress.h"

#include <fcntl.h>
#include <lmdb.h>

enum { CELLS = 64, MANY = 100000, KEYS = 2000 };

static void
set_up_store(void)
{
    int32_t cells[CELLS];
    for (int i = 0; i < CELLS; i++)
        cells[i] = i * i;
    set_up(LONG_LEASE);
    make_line(CELLS, 16, PYR_I32);
    OK(pyr_write(array, AT(0), AT(CELLS), cells, NULL));
    close_all();
}

static void
store_is_sound(void)
{
    pyr_verified seen;
    int32_t cell = 0;
    OK(open_line(0));
    OK(pyr_verify(store, &(pyr_verify_spec){.deep = 1}, &seen));
    CHECK(seen.harms == 0);
    OK(pyr_read(array, PYR_LATEST, AT(7), AT(1), &cell));
    CHECK(cell == 49);
}

/* --- a file that ends early ---------------------------------------------- */

static bool
ends_early(MDB_env *env)
{
    MDB_envinfo info;
    MDB_stat page;
    struct stat st;
    int fd;
    REQUIRE(mdb_env_info(env, &info) == 0 && mdb_env_stat(env, &page) == 0);
    REQUIRE(mdb_env_get_fd(env, &fd) == 0 && fstat(fd, &st) == 0);
    return info.me_last_pgno >= (size_t)st.st_size / page.ms_psize;
}

/* Many keys are put, or deleted, in a database of its own. */
static void
change_much(MDB_env *env, rng *r)
{
    static char bytes[6000];
    MDB_txn *txn;
    MDB_dbi db;
    uint64_t at = rng_below(r, KEYS), step = rng_from(r, 1, 3);
    bool put = rng_once_in(r, 3);
    REQUIRE(mdb_txn_begin(env, NULL, 0, &txn) == 0);
    REQUIRE(mdb_dbi_open(txn, "extra", MDB_CREATE, &db) == 0);
    for (uint64_t i = rng_from(r, 1, 300); i > 0; i--) {
        uint64_t number = (at + i * step) % KEYS;
        MDB_val k = {sizeof number, &number};
        MDB_val v = {rng_below(r, rng_once_in(r, 10) ? 6000 : 300), bytes};
        int rc = put ? mdb_put(txn, db, &k, &v, 0) : mdb_del(txn, db, &k, NULL);
        REQUIRE(rc == 0 || rc == MDB_NOTFOUND);
    }
    REQUIRE(mdb_txn_commit(txn) == 0);
}

/* LMDB does not write pages that it took and gave back in one transaction. If
 * they were the last ones, the file is shorter than it says. */
static void
metadata_that_ends_before_its_last_page_is_sound(void)
{
    char path[4200];
    MDB_env *env;
    rng r = rng_of(5);
    set_up_store();
    snprintf(path, sizeof path, "%s/meta", url);
    REQUIRE(mdb_env_create(&env) == 0 && mdb_env_set_maxdbs(env, 8) == 0);
    REQUIRE(mdb_env_set_mapsize(env, 1 << 30) == 0);
    REQUIRE(mdb_env_open(env, path, MDB_NOSYNC, 0666) == 0);
    for (int i = 0; i < MANY && !ends_early(env); i++)
        change_much(env, &r);
    CHECK(ends_early(env));
    mdb_env_close(env);
    store_is_sound();
    tear_down();
}

/* --- first pages --------------------------------------------------------- */

/* Where the size of pages is, and flags of trees, in both first pages. */
static void
a_damaged_size_of_pages_is_refused(void)
{
    static const int at[] = {40, 41, 44, 88, 92, 4096 + 40, 4096 + 41,
                             4096 + 44, 4096 + 88, 4096 + 92};
    char path[4200];
    pyr_store *s;
    set_up_store();
    snprintf(path, sizeof path, "%s/meta/data.mdb", url);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    REQUIRE(fd >= 0);
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        uint8_t was, now;
        REQUIRE(pread(fd, &was, 1, at[i]) == 1);
        now = was ^ 0x10;
        REQUIRE(pwrite(fd, &now, 1, at[i]) == 1);
        FAILS(PYR_ECORRUPT, pyr_open(url, 0, &s));
        FAILS(PYR_ECORRUPT, pyr_open(url, PYR_OPEN_READONLY, &s));
        REQUIRE(pwrite(fd, &was, 1, at[i]) == 1);
    }
    close(fd);
    store_is_sound();
    tear_down();
}

static const role roles[] = {{NULL, NULL}};

REGRESS_TESTS(roles, T(metadata_that_ends_before_its_last_page_is_sound),
              T(a_damaged_size_of_pages_is_refused))
