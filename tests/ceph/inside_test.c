/*
 * ceph/inside_test.c - functions that run inside OSDs: their results are those
 * of any engine, and cells stay where they are; what cannot be done there is
 * done by the client, and counted.
 *
 * Without a cluster the results alone are looked at.
 */
#include "ceph/cluster.h"
#include "ceph/sockets.h"
#include "support/health.h"
#include "support/tmp_store.h"

#include <pyramid/pyramid.h>

#include <math.h>

enum { SIDE = 1024, CHUNK = 512, CELLS = SIDE * SIDE };

static const uint64_t whole[2] = {SIDE, SIDE}, zero[2];
static int32_t cells[CELLS], got[CELLS];
static char url[4096];
static pyr_store *store;
static pyr_array *array;

static void
set_up(pyr_codec codec)
{
    uint64_t chunk[2] = {CHUNK, CHUNK};
    rng r = rng_of(test_seed());
    snprintf(url, sizeof url, "%s", tmp_store("inside"));
    OK(pyr_open(url, PYR_OPEN_CREATE, &store));
    OK(pyr_create(store, "a",
                  &(pyr_spec){.ndim = 2, .shape = whole, .chunk = chunk,
                              .type = PYR_I32, .codec = codec},
                  &array));
    for (size_t i = 0; i < CELLS; i++)
        cells[i] = (int32_t)rng_below(&r, 20000) - 10000;
    OK(pyr_write(array, zero, whole, cells, NULL));
}

static void
tear_down(void)
{
    check_health(store, 1);
    pyr_array_close(array);
    pyr_close(store);
    tmp_remove(url);
}

/* Less than one byte for a hundred of cells passed the sockets. */
static void
few_bytes(const char *what, uint64_t before)
{
    uint64_t moved = socket_bytes() - before;
    printf("# %s: %llu bytes for %zu of cells\n", what,
           (unsigned long long)moved, sizeof cells);
    if (cluster_dir())
        CHECK(moved < sizeof cells / 100);
}

static void
compute(pyr_version v, const uint64_t *at, const uint64_t *size,
        const char *text, bool few)
{
    uint64_t before = socket_bytes();
    OK(pyr_compute(array, v, at, size, text, NULL));
    if (few)
        few_bytes(text, before);
}

/* --- cells --------------------------------------------------------------- */

static void
what_was_computed_is_computed_with_again(void)
{
    set_up(PYR_CODEC_NONE);
    compute(1, zero, whole, "x * 3 + i1", true);
    compute(2, zero, whole, "x - x@1", true);
    OK(pyr_read(array, 3, zero, whole, got));
    for (int i = 0; i < CELLS; i++)
        REQUIRE(got[i] == cells[i] * 2 + i % SIDE);
    tear_down();
}

/* Fragments that lie on each other: what a function of a part left below it,
 * and what it put on top, is in one object. */
static void
a_chain_of_computed_fragments_is_read_there(void)
{
    const uint64_t at[2] = {100, 200}, size[2] = {700, 300};
    set_up(PYR_CODEC_NONE);
    compute(1, at, size, "x + 1000000", false);
    compute(2, zero, whole, "x * 2", true);
    OK(pyr_read(array, 3, zero, whole, got));
    for (int i = 0; i < CELLS; i++) {
        uint64_t row = (uint64_t)i / SIDE, column = (uint64_t)i % SIDE;
        bool in = row >= 100 && row < 800 && column >= 200 && column < 500;
        REQUIRE(got[i] == (cells[i] + (in ? 1000000 : 0)) * 2);
    }
    tear_down();
}

static void
what_cannot_be_done_there_is_done_here_and_counted(void)
{
    pyr_status before, after;
    set_up(PYR_CODEC_NONE);
    OK(pyr_write(array, zero, whole, cells, NULL)); /* in other objects */
    OK(pyr_store_status(store, &before, NULL, NULL));
    compute(2, zero, whole, "x + x@1", false);
    OK(pyr_store_status(store, &after, NULL, NULL));
    OK(pyr_read(array, 3, zero, whole, got));
    for (int i = 0; i < CELLS; i++)
        REQUIRE(got[i] == cells[i] * 2);
    if (cluster_dir()) {
        CHECK(after.computed_bytes == before.computed_bytes);
        CHECK(after.moved_bytes >= before.moved_bytes + 3 * sizeof cells);
    }
    before = after;
    compute(3, zero, whole, "x + 1", true);
    OK(pyr_store_status(store, &after, NULL, NULL));
    if (cluster_dir()) {
        CHECK(after.computed_bytes == before.computed_bytes + sizeof cells);
        CHECK(after.moved_bytes == before.moved_bytes);
    }
    tear_down();
}

static void
pressed_cells_are_computed_by_the_client(void)
{
    set_up(PYR_CODEC_LZ4);
    compute(1, zero, whole, "x / 100", false);
    compute(2, zero, whole, "x + 1", false);
    OK(pyr_read(array, 3, zero, whole, got));
    tear_down();
}

static void
results_of_one_value_are_stored_as_such(void)
{
    set_up(PYR_CODEC_NONE);
    compute(1, zero, whole, "x * 0 + 8", true);
    OK(pyr_read(array, 2, zero, whole, got));
    for (int i = 0; i < CELLS; i++)
        REQUIRE(got[i] == 8);
    tear_down();
}

static void
cells_go_through_handlers_there(void)
{
    set_up(PYR_CODEC_NONE);
    OK(pyr_handler_add(array, PYR_ON_WRITE, "clip(x, -5000, 5000)", NULL));
    OK(pyr_handler_add(array, PYR_ON_WRITE, "x * 2", NULL));
    compute(1, zero, whole, "x + 1", true);
    OK(pyr_read(array, 2, zero, whole, got));
    for (int i = 0; i < CELLS; i++) {
        int32_t v = cells[i] + 1;
        v = v < -5000 ? -5000 : v > 5000 ? 5000 : v;
        REQUIRE(got[i] == v * 2);
    }
    tear_down();
}

/* Also those that are written: they are sent once, and changed there. */
static void
handlers_of_writes_run_where_cells_are_stored(void)
{
    const uint64_t at[2] = {3, 5}, size[2] = {40, 600};
    pyr_status before, after;
    set_up(PYR_CODEC_NONE);
    OK(pyr_store_status(store, &before, NULL, NULL));
    OK(pyr_handler_add(array, PYR_ON_WRITE, "x * 2 + i0", NULL));
    OK(pyr_write(array, zero, whole, cells, NULL));
    OK(pyr_store_status(store, &after, NULL, NULL));
    if (cluster_dir())
        CHECK(after.computed_bytes == before.computed_bytes + sizeof cells);
    OK(pyr_write(array, at, size, cells, NULL)); /* too small to be worth it */
    OK(pyr_read(array, 2, zero, whole, got));
    for (int i = 0; i < CELLS; i++)
        REQUIRE(got[i] == cells[i] * 2 + i / SIDE);
    OK(pyr_read(array, 3, at, size, got));
    for (int i = 0; i < 40 * 600; i++)
        REQUIRE(got[i] == cells[i] * 2 + 3 + i / 600);
    compute(2, zero, whole, "x", true);
    tear_down();
}

/* --- space --------------------------------------------------------------- */

/* More functions of one chunk than an object has room for. */
static void
a_full_object_makes_room_for_another_one(void)
{
    const uint64_t side[2] = {CHUNK, CHUNK};
    enum { TIMES = 150 };
    set_up(PYR_CODEC_NONE);
    for (pyr_version v = 1; v <= TIMES; v++)
        OK(pyr_compute(array, v, zero, side, "x + 1", NULL));
    OK(pyr_read(array, TIMES + 1, zero, side, got));
    for (int i = 0; i < CHUNK * CHUNK; i++)
        REQUIRE(got[i] == cells[i / CHUNK * SIDE + i % CHUNK] + TIMES);
    OK(pyr_read(array, TIMES / 2, zero, side, got));
    CHECK(got[77] == cells[77] + TIMES / 2 - 1);
    tear_down();
}

static void
versions_that_are_forgotten_give_their_space_back(void)
{
    pyr_reclaimed gone;
    pyr_status st;
    uint64_t n;
    set_up(PYR_CODEC_NONE);
    for (pyr_version v = 1; v <= 5; v++)
        compute(v, zero, whole, "x + 1", false);
    OK(pyr_store_status(store, &st, NULL, NULL));
    CHECK(st.data_bytes >= 6 * sizeof cells);
    OK(pyr_forget(array, 1, 3, 1, 0, &n)); /* the ones that came first */
    CHECK(n == 3);
    OK(pyr_reclaim(store, NULL, &gone));
    CHECK(gone.bytes >= 3 * sizeof cells);
    OK(pyr_store_status(store, &st, NULL, NULL));
    CHECK(st.data_bytes >= 3 * sizeof cells);
    CHECK(st.data_bytes < 4 * sizeof cells);
    for (pyr_version v = 4; v <= 6; v++) {
        OK(pyr_read(array, v, zero, whole, got));
        for (int i = 0; i < CELLS; i++)
            REQUIRE(got[i] == cells[i] + (int32_t)v - 1);
    }
    compute(4, zero, whole, "x + 10", true);
    OK(pyr_read(array, 7, zero, whole, got));
    CHECK(got[CELLS - 1] == cells[CELLS - 1] + 13);
    OK(pyr_forget(array, 4, 6, 1, 0, &n));
    OK(pyr_reclaim(store, NULL, &gone));
    OK(pyr_store_status(store, &st, NULL, NULL));
    CHECK(st.data_bytes < 2 * sizeof cells);
    tear_down();
}

/* --- reductions ---------------------------------------------------------- */

static pyr_value
reduce(pyr_version v, const char *text)
{
    pyr_value out;
    uint64_t before = socket_bytes();
    OK(pyr_reduce(array, v, zero, whole, text, &out));
    few_bytes(text, before);
    CHECK(out.bytes_read >= sizeof cells);
    return out;
}

static int
by_value(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void
reductions_leave_the_cells_where_they_are(void)
{
    int64_t squares = 0, positive = 0;
    int least = 0;
    uint64_t counts[4] = {0};
    set_up(PYR_CODEC_NONE);
    for (int i = 0; i < CELLS; i++) {
        squares += (int64_t)cells[i] * cells[i];
        positive += cells[i] > 0;
        if (cells[i] < cells[least])
            least = i;
        counts[(cells[i] + 10000) / 5000]++;
    }
    pyr_value v = reduce(1, "sum(x * x)");
    CHECK(v.kind == PYR_VALUE_INTEGER && (int64_t)v.low == squares);
    v = reduce(1, "count(x > 0)");
    CHECK((int64_t)v.low == positive);
    v = reduce(1, "argmin(x * 1)");
    CHECK(v.at[0] * SIDE + v.at[1] == (uint64_t)least);
    v = reduce(1, "histogram(x, -10000, 10000, 4)");
    for (int i = 0; i < 4; i++)
        CHECK(v.counts[i] == counts[i]);
    pyr_value_free(&v);
    memcpy(got, cells, sizeof got);
    qsort(got, CELLS, sizeof *got, by_value);
    v = reduce(1, "quantile(x + 1, 0)");
    CHECK(v.real == got[0] + 1);
    v = reduce(1, "quantile(x, 0.5)");
    CHECK(fabs(v.real - (got[CELLS / 2 - 1] + got[CELLS / 2]) / 2.0) < 1e-9);
    tear_down();
}

TESTS(T(what_was_computed_is_computed_with_again),
      T(a_chain_of_computed_fragments_is_read_there),
      T(what_cannot_be_done_there_is_done_here_and_counted),
      T(pressed_cells_are_computed_by_the_client),
      T(results_of_one_value_are_stored_as_such),
      T(cells_go_through_handlers_there),
      T(handlers_of_writes_run_where_cells_are_stored),
      T(a_full_object_makes_room_for_another_one),
      T(versions_that_are_forgotten_give_their_space_back),
      T(reductions_leave_the_cells_where_they_are))
