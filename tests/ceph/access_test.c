/*
 * ceph/access_test.c - what users may do, by the capabilities that docs/ceph.md
 * names; copies between a cluster and files; cells that stay where they are.
 */
#include "ceph/cluster.h"
#include "ceph/sockets.h"
#include "support/health.h"
#include "support/tmp_store.h"

#include <pyramid/pyramid.h>

enum { SIDE = 1024, CHUNK = 256 };

static const uint64_t whole[2] = {SIDE, SIDE}, zero[2];
static int32_t cells[SIDE * SIDE], got[SIDE * SIDE];
static char url[4096];
static pyr_store *store;
static pyr_array *array;

static void
set_up(void)
{
    uint64_t chunk[2] = {CHUNK, CHUNK};
    snprintf(url, sizeof url, "%s", tmp_store("access"));
    OK(pyr_open(url, PYR_OPEN_CREATE, &store));
    OK(pyr_create(store, "a",
                  &(pyr_spec){.ndim = 2, .shape = whole, .chunk = chunk,
                              .type = PYR_I32}, &array));
    rng r = rng_of(test_seed());
    for (size_t i = 0; i < SIDE * SIDE; i++)
        cells[i] = (int32_t)rng_below(&r, 1000000);
    OK(pyr_write(array, zero, whole, cells, NULL));
}

static void
tear_down(void)
{
    pyr_array_close(array);
    pyr_close(store);
    tmp_remove(url);
}

/* A refusal that tells the reason. */
#define REFUSED(call)                                                         \
    do {                                                                      \
        int refused = (call);                                                 \
        CHECK(refused == PYR_EREADONLY);                                      \
        printf("# %d: %s\n", refused, refused ? pyr_errmsg() : "");           \
        CHECK(refused == 0 || strstr(pyr_errmsg(), "not allow") ||              \
              strstr(pyr_errmsg(), "capabilit") ||                            \
              strstr(pyr_errmsg(), "read only") ||                            \
              strstr(pyr_errmsg(), "reading only"));                          \
    } while (0)

static void
a_reader_reads_and_changes_nothing(void)
{
    char theirs[4400];
    pyr_store *s = NULL;
    pyr_array *a = NULL, *other = NULL;
    pyr_value sum = {0};
    if (!cluster_dir())
        SKIP("no cluster");
    set_up();
    OK(pyr_write(array, zero, whole, cells, NULL));
    cluster_url_with(url, "user", "reader", theirs, sizeof theirs);
    OK(pyr_open(theirs, PYR_OPEN_READONLY, &s));
    OK(pyr_array_open(s, "a", &a));
    OK(pyr_read(a, PYR_LATEST, zero, whole, got));
    CHECK(memcmp(got, cells, sizeof got) == 0);
    OK(pyr_reduce(a, PYR_LATEST, zero, whole, "sum(x)", &sum));
    pyr_value_free(&sum);
    pyr_array_close(a);
    pyr_close(s);
    /* the cluster refuses, not only the flag: it is opened for writing */
    int err = pyr_open(theirs, 0, &s);
    if (err < 0) {
        REFUSED(err);
        err = pyr_open(theirs, PYR_OPEN_READONLY, &s);
    }
    OK(err);
    OK(pyr_array_open(s, "a", &a));
    REFUSED(pyr_write(a, zero, whole, cells, NULL));
    REFUSED(pyr_compute(a, PYR_LATEST, zero, whole, "x + 1", NULL));
    REFUSED(pyr_forget(a, 1, 1, 1, 0, NULL));
    REFUSED(pyr_tag(a, "mine", 1));
    REFUSED(pyr_create(s, "b",
                       &(pyr_spec){.ndim = 2, .shape = whole,
                                   .type = PYR_I32}, &other));
    pyr_array_close(a);
    pyr_close(s);
    pyr_version latest;
    OK(pyr_latest(array, &latest));
    CHECK(latest == 2);
    check_health(store, 1);
    tear_down();
}

static int
count_change(void *ctx, const pyr_change *c)
{
    *(uint64_t *)ctx += c->version > 0;
    return 0;
}

/* All that only looks. */
static void
looks_at_everything(pyr_store *s, pyr_array *a, uint64_t versions,
                    uint64_t arrays)
{
    pyr_stats stats = {0};
    pyr_status status;
    pyr_version changed = 0;
    uint64_t n = 0;
    unsigned char digest[16];
    int known;
    OK(pyr_read(a, PYR_LATEST, zero, whole, got));
    OK(pyr_stat(a, PYR_LATEST, zero, whole, 0, &stats));
    CHECK(stats.count == (uint64_t)SIDE * SIDE);
    OK(pyr_history(a, 1, PYR_LATEST, count_change, &n));
    CHECK(n == versions);
    OK(pyr_last_change(a, PYR_LATEST, zero, whole, &changed));
    CHECK(changed == versions);
    OK(pyr_digest(a, PYR_LATEST, digest, &known));
    OK(pyr_store_status(s, &status, NULL, NULL));
    check_health(s, arrays);
}

static void
a_reader_sees_everything(void)
{
    char theirs[4400];
    pyr_store *s = NULL;
    pyr_array *a = NULL;
    if (!cluster_dir())
        SKIP("no cluster");
    set_up();
    OK(pyr_compute(array, PYR_LATEST, zero, whole, "x + 1", NULL));
    OK(pyr_tag(array, "second", 2));
    cluster_url_with(url, "user", "reader", theirs, sizeof theirs);
    OK(pyr_open(theirs, PYR_OPEN_READONLY, &s));
    OK(pyr_array_open(s, "a", &a));
    looks_at_everything(s, a, 2, 1);
    pyr_version second = 0;
    OK(pyr_tag_version(a, "second", &second));
    CHECK(second == 2);
    pyr_array_close(a);
    pyr_close(s);
    tear_down();
}

/* With the methods that docs/ceph.md lists for writers, and no others. */
static void
a_writer_writes_and_takes_nothing_away(void)
{
    char theirs[4400];
    pyr_store *s = NULL;
    pyr_array *a = NULL, *b = NULL;
    pyr_reclaimed freed;
    pyr_repaired repaired;
    uint64_t more[2] = {SIDE + CHUNK, SIDE};
    if (!cluster_dir())
        SKIP("no cluster");
    set_up();
    cluster_url_with(url, "user", "writer", theirs, sizeof theirs);
    OK(pyr_open(theirs, 0, &s));
    OK(pyr_array_open(s, "a", &a));
    OK(pyr_write(a, zero, whole, cells, NULL));
    OK(pyr_compute(a, PYR_LATEST, zero, whole, "x + 1", NULL));
    OK(pyr_tag(a, "third", 3));
    OK(pyr_untag(a, "third"));
    OK(pyr_set_attributes(a, "{\"by\": \"a writer\"}"));
    OK(pyr_clone(a, 1, "b", &b));
    OK(pyr_write(b, zero, whole, cells, NULL));
    OK(pyr_compute(b, PYR_LATEST, zero, whole, "x * 0 + 1", NULL));
    looks_at_everything(s, a, 3, 2);
    OK(pyr_resize(a, more, NULL));
    REFUSED(pyr_forget(a, 1, 1, 1, 0, NULL));
    REFUSED(pyr_reclaim(s, NULL, &freed));
    REFUSED(pyr_repair(s, &(pyr_verify_spec){0}, &repaired));
    pyr_array_close(b);
    pyr_array_close(a);
    pyr_close(s);
    tear_down();
}

static void
an_administrator_forgets_reclaims_and_repairs(void)
{
    uint64_t n = 0;
    pyr_reclaimed freed = {0};
    pyr_repaired repaired = {0};
    set_up();
    OK(pyr_write(array, zero, whole, cells, NULL));
    OK(pyr_forget(array, 1, 1, 1, 0, &n));
    CHECK(n == 1);
    OK(pyr_reclaim(store, NULL, &freed));
    CHECK(freed.bytes > sizeof cells / 2);
    OK(pyr_repair(store, &(pyr_verify_spec){0}, &repaired));
    OK(pyr_read(array, 2, zero, whole, got));
    CHECK(memcmp(got, cells, sizeof got) == 0);
    tear_down();
}

static void
a_user_of_another_namespace_sees_nothing(void)
{
    char theirs[4400];
    pyr_store *s = NULL;
    if (!cluster_dir())
        SKIP("no cluster");
    set_up();
    REQUIRE(cluster_does("user", (const char *[]){
        "stranger", "allow r", "allow rwx pool=pyramid namespace=theirs",
        NULL}));
    cluster_url_with(url, "user", "stranger", theirs, sizeof theirs);
    CHECK(pyr_open(theirs, PYR_OPEN_READONLY, &s) < 0);
    printf("# %s\n", pyr_errmsg());
    CHECK(s == NULL);
    tear_down();
}

static void
copies_between_files_and_here_are_the_same(void)
{
    pyr_store *files = NULL;
    pyr_array *there = NULL, *back = NULL;
    const char *path = tmp_fresh("files");
    set_up();
    OK(pyr_compute(array, 1, zero, whole, "x * 2", NULL));
    OK(pyr_open(path, PYR_OPEN_CREATE, &files));
    OK(pyr_copy(array, files, "there", NULL, NULL));
    OK(pyr_array_open(files, "there", &there));
    OK(pyr_copy(there, store, "back", NULL, NULL));
    OK(pyr_array_open(store, "back", &back));
    for (pyr_version v = 1; v <= 2; v++) {
        OK(pyr_read(there, v, zero, whole, got));
        for (size_t i = 0; i < SIDE * SIDE; i++)
            REQUIRE(got[i] == cells[i] * (int32_t)v);
        OK(pyr_read(back, v, zero, whole, got));
        for (size_t i = 0; i < SIDE * SIDE; i++)
            REQUIRE(got[i] == cells[i] * (int32_t)v);
    }
    check_health(files, 1);
    check_health(store, 2);
    pyr_array_close(there);
    pyr_array_close(back);
    pyr_close(files);
    tear_down();
}

static void
computing_moves_no_cells_to_or_from_the_client(void)
{
    if (!cluster_dir())
        SKIP("no cluster");
    set_up();
    uint64_t before = socket_bytes();
    CHECK(before > sizeof cells); /* they were sent, and that is seen */
    OK(pyr_compute(array, PYR_LATEST, zero, whole, "x * 3 + 1", NULL));
    uint64_t moved = socket_bytes() - before;
    printf("# %llu bytes for %zu of cells\n", (unsigned long long)moved,
           sizeof cells);
    CHECK(moved < sizeof cells / 100);
    OK(pyr_read(array, 2, zero, whole, got));
    for (size_t i = 0; i < SIDE * SIDE; i++)
        REQUIRE(got[i] == cells[i] * 3 + 1);
    tear_down();
}

TESTS(T(a_reader_reads_and_changes_nothing), T(a_reader_sees_everything),
      T(a_writer_writes_and_takes_nothing_away),
      T(an_administrator_forgets_reclaims_and_repairs),
      T(a_user_of_another_namespace_sees_nothing),
      T(copies_between_files_and_here_are_the_same),
      T(computing_moves_no_cells_to_or_from_the_client))
