/*
 * keep/work_test.c - what reclaiming costs is in proportion to what goes.
 *
 * The engine's table is replaced by one that counts.
 */
#include "keep/ledger.h"
#include "support/tmp_store.h"

static pyri_engine_ops counting;
static const pyri_engine_ops *real;
static uint64_t node_gets, erased, versions_got;

static int
count_nodes(pyri_engine *e, pyri_reader *r, pyri_node_get *gets, size_t n)
{
    node_gets += n;
    return real->get_nodes(e, r, gets, n);
}

static int
count_versions(pyri_engine *e, pyri_reader *r, uint64_t array,
               uint64_t version, pyri_version_get *out)
{
    versions_got++;
    return real->get_version(e, r, array, version, out);
}

static int
count_erased(pyri_engine *e, pyri_erase *x)
{
    erased++;
    return real->erase(e, x);
}

static void
begin_to_count(pyr_store *store)
{
    real = store->engine->ops;
    counting = *real;
    counting.get_nodes = count_nodes;
    counting.get_version = count_versions;
    counting.erase = count_erased;
    store->engine->ops = &counting;
    node_gets = erased = versions_got = 0;
}

enum { CHUNKS = 16 * 16 };

/* An array of 16 x 16 chunks, so of two levels, all of which are written;
 * then `n` small writes, of which 1 % is kept. */
static void
reclaim_small_versions(int n, pyr_reclaimed *gone)
{
    enum { SIDE = 256 };
    static uint32_t cells[SIDE * SIDE];
    uint64_t shape[2] = {SIDE, SIDE}, chunk[2] = {16, 16}, zero[2] = {0, 0};
    pyr_store *store;
    pyr_array *a;
    const char *path = tmp_store("work");
    rng r = rng_of(7);
    OK(pyr_open_with(path, PYR_OPEN_CREATE | PYR_OPEN_NO_UPKEEP,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS},
                     &store));
    OK(pyr_create(store, "a",
                  &(pyr_spec){.ndim = 2, .shape = shape, .chunk = chunk,
                              .type = PYR_U32},
                  &a));
    for (int i = 0; i < SIDE * SIDE; i++)
        cells[i] = (uint32_t)i;
    OK(pyr_write(a, zero, shape, cells, NULL));
    for (int i = 0; i < n; i++) {
        uint64_t at[2] = {rng_below(&r, SIDE - 4), rng_below(&r, SIDE - 4)};
        OK(pyr_write(a, at, (uint64_t[2]){4, 4}, cells + i, NULL));
    }
    OK(pyr_forget(a, 0, PYR_LATEST, (uint64_t)n / 100, 0, NULL));
    begin_to_count(store);
    OK(pyr_reclaim(store, NULL, gone));
    store->engine->ops = real;
    CHECK(gone->versions == (uint64_t)(n + 1 - n / 100));
    ledger_check(store);
    pyr_array_close(a);
    pyr_close(store);
    tmp_remove(path);
}

static void
reclaiming_reads_in_proportion_to_what_goes(void)
{
    double first = 0;
    for (int n = 250; n <= (int)by_scale(1000, 4000, 16000); n *= 2) {
        pyr_reclaimed gone;
        reclaim_small_versions(n, &gone);
        double each = (double)node_gets / (double)gone.nodes;
        printf("# %d versions: %d nodes went, %d were read, %.2f for each; "
               "%d records, %d steps\n", n, (int)gone.nodes, (int)node_gets,
               each, (int)versions_got, (int)erased);
        first = first > 0 ? first : each;
        CHECK(each < 1.2 * first);
        CHECK(versions_got < 4 * (uint64_t)n + 8 * CHUNKS); /* and folds */
        CHECK(erased <= 2 + gone.nodes / 1000);
    }
}

/* One version of many is forgotten: the others are not looked at. */
static void
one_version_of_many_costs_what_it_holds(void)
{
    uint64_t least = 0;
    for (int n = 100; n <= 1600; n *= 4) {
        uint64_t shape = 1 << 16, chunk = 64, size = 8;
        uint32_t cells[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        pyr_store *store;
        pyr_array *a;
        pyr_reclaimed gone;
        const char *path = tmp_store("one");
        OK(pyr_open_with(path, PYR_OPEN_CREATE | PYR_OPEN_NO_UPKEEP,
                         &(pyr_store_options){.durability = PYR_DURABILITY_OS},
                         &store));
        OK(pyr_create(store, "a",
                      &(pyr_spec){.ndim = 1, .shape = &shape, .chunk = &chunk,
                                  .type = PYR_U32},
                      &a));
        for (int i = 0; i < n; i++)
            OK(pyr_write(a, &(uint64_t){(uint64_t)i * 40}, &size, cells, NULL));
        OK(pyr_forget(a, 50, 50, 0, 0, NULL));
        begin_to_count(store);
        OK(pyr_reclaim(store, NULL, &gone));
        store->engine->ops = real;
        CHECK(gone.versions == 1);
        least = least ? least : node_gets;
        if (node_gets > least + 4)
            CHECK_NOTE("%d of %d versions: %d nodes read, not %d", 1, n,
                       (int)node_gets, (int)least);
        pyr_array_close(a);
        pyr_close(store);
        tmp_remove(path);
    }
}

TESTS(T(reclaiming_reads_in_proportion_to_what_goes),
      T(one_version_of_many_costs_what_it_holds))
