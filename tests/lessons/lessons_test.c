/*
 * lessons/lessons_test.c - what is known to go wrong with stores of this kind,
 * and does not here. tests/README.md has the whole list; these are those that
 * no other folder asks.
 */
#include "keep/ledger.h"
#include "support/tmp_store.h"

#include "base/fault.h"
#include "base/sys.h"

#include <pthread.h>

enum { SIDE = 64, CHUNK = 16, BOUND = 300000, LEASE = 3600000 };

static const uint64_t zero[2], whole[2] = {SIDE, SIDE};
static const uint64_t chunk[2] = {CHUNK, CHUNK};
static char path[4096];
static pyr_store *store;
static pyr_array *array;

static int
open_both(unsigned flags)
{
    int err = pyr_open(path, flags | PYR_OPEN_NO_UPKEEP, &store);
    return err < 0 ? err : pyr_array_open(store, "a", &array);
}

static void
set_up(void)
{
    proc_kill_all();
    snprintf(path, sizeof path, "%s", tmp_fresh("lesson"));
    OK(pyr_open_with(path, PYR_OPEN_CREATE | PYR_OPEN_NO_UPKEEP,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS,
                                          .lease_ms = LEASE},
                     &store));
    OK(pyr_create(store, "a", &(pyr_spec){.ndim = 2, .shape = whole,
                                          .chunk = chunk, .type = PYR_U32},
                  &array));
}

static void
close_both(void)
{
    pyr_array_close(array);
    pyr_close(store);
    array = NULL;
    store = NULL;
}

static void
tear_down(void)
{
    close_both();
    proc_kill_all();
    tmp_remove(path);
}

/* --- counting ------------------------------------------------------------ */

static pyri_engine_ops counting;
static const pyri_engine_ops *real;
static _Atomic uint64_t nodes_got, blobs_got, taken, versions_got;

static int
count_nodes(pyri_engine *e, pyri_reader *r, pyri_node_get *gets, size_t n)
{
    nodes_got += n;
    return real->get_nodes(e, r, gets, n);
}

static int
count_blobs(pyri_engine *e, pyri_reader *r, pyri_blob_get *gets, size_t n)
{
    blobs_got += n;
    return real->get_blobs(e, r, gets, n);
}

static int
count_taken(pyri_engine *e, const pyri_take *take, pyri_ticket *ticket,
            pyri_flights *below)
{
    taken++;
    return real->take(e, take, ticket, below);
}

static int
count_versions(pyri_engine *e, pyri_reader *r, uint64_t id, uint64_t version,
               pyri_version_get *out)
{
    versions_got++;
    return real->get_version(e, r, id, version, out);
}

static void
begin_to_count(void)
{
    real = store->engine->ops;
    counting = *real;
    counting.get_nodes = count_nodes;
    counting.get_blobs = count_blobs;
    counting.take = count_taken;
    counting.get_version = count_versions;
    store->engine->ops = &counting;
    nodes_got = blobs_got = taken = versions_got = 0;
}

static void
end_to_count(void)
{
    store->engine->ops = real;
}

/* --- writers in one place ------------------------------------------------ */

enum { CREW = 4, EACH = 60 };

typedef struct one {
    int number, failures;
    pthread_t thread;
} one;

/* Every CREW-th cell of one chunk is its own. */
static void *
write_own_cells(void *arg)
{
    one *o = arg;
    for (int i = 0; i < EACH; i++) {
        uint64_t n = (uint64_t)(i * CREW + o->number) % (CHUNK * CHUNK);
        uint32_t cell = (uint32_t)n + 1;
        o->failures += pyr_write(array, (uint64_t[2]){n / CHUNK, n % CHUNK},
                                 (uint64_t[2]){1, 1}, &cell, NULL) != 0;
    }
    return NULL;
}

static void
run_crew(void *(*what)(void *))
{
    one crew[CREW];
    for (int i = 0; i < CREW; i++) {
        crew[i] = (one){.number = i};
        REQUIRE(pthread_create(&crew[i].thread, NULL, what, &crew[i]) == 0);
    }
    for (int i = 0; i < CREW; i++) {
        pthread_join(crew[i].thread, NULL);
        CHECK(crew[i].failures == 0);
    }
}

static void
writers_that_share_a_chunk_lose_nothing(void)
{
    uint32_t got[CHUNK][CHUNK];
    pyr_version latest;
    set_up();
    run_crew(write_own_cells);
    OK(pyr_latest(array, &latest));
    CHECK(latest == CREW * EACH);
    OK(pyr_read(array, PYR_LATEST, zero, chunk, got));
    for (uint32_t n = 0; n < CHUNK * CHUNK; n++)
        CHECK(got[n / CHUNK][n % CHUNK] == (n < CREW * EACH ? n + 1 : 0));
    tear_down();
}

/* All want the same cell; each asks for a number just once per write. */
static void *
write_one_cell(void *arg)
{
    one *o = arg;
    pyr_version before = 0, made;
    for (int i = 0; i < EACH; i++) {
        uint32_t cell = (uint32_t)(o->number * EACH + i + 1);
        int err = pyr_write(array, zero, (uint64_t[2]){1, 1}, &cell, &made);
        o->failures += err != 0 || made <= before;
        before = made;
    }
    return NULL;
}

static void
nobody_tries_twice_however_many_write_at_once(void)
{
    bool seen[CREW * EACH + 1] = {false};
    set_up();
    begin_to_count();
    run_crew(write_one_cell);
    end_to_count();
    CHECK(taken == CREW * EACH);
    for (pyr_version v = 1; v <= CREW * EACH; v++) {
        uint32_t cell = 0;
        OK(pyr_read(array, v, zero, (uint64_t[2]){1, 1}, &cell));
        REQUIRE(cell >= 1 && cell <= CREW * EACH);
        CHECK(!seen[cell]);
        seen[cell] = true;
    }
    tear_down();
}

/* --- clocks -------------------------------------------------------------- */

enum { VERSIONS = 30, KEPT = 10 };

static const int64_t years = INT64_C(365) * 86400 * 1000000000;

static void
set_clocks(int64_t ahead)
{
    pyri_sys_ahead_real = ahead;
    pyri_sys_ahead_monotonic = ahead > 0 ? ahead : 0;
}

static void
write_version(uint32_t v)
{
    uint64_t at[2] = {v * 7 % (SIDE - 8), v * 5 % (SIDE - 8)};
    uint32_t cells[64];
    for (uint32_t i = 0; i < 64; i++)
        cells[i] = v * 1000 + i;
    OK(pyr_write(array, at, (uint64_t[2]){8, 8}, cells, NULL));
}

static int
see_order(void *ctx, const pyr_change *c)
{
    pyr_version *next = ctx;
    CHECK(c->version == (*next)++);
    return 0;
}

/* Versions are made at times that jump about; what is forgotten and what can
 * be read is told by numbers alone. */
static void
no_clock_decides_what_is_kept(void)
{
    static uint32_t cells[VERSIONS + 1][SIDE * SIDE], got[SIDE * SIDE];
    static const int64_t jumps[] = {0, 40, -40, 3, -7};
    pyr_version next = 0;
    pyr_reclaimed gone;
    set_up();
    for (uint32_t v = 1; v <= VERSIONS; v++) {
        set_clocks(jumps[v % 5] * years);
        write_version(v);
        OK(pyr_read(array, v, zero, whole, cells[v]));
    }
    OK(pyr_tag(array, "old", 3));
    OK(pyr_history(array, 0, PYR_LATEST, see_order, &next));
    CHECK(next == VERSIONS + 1);
    for (int i = 0; i < 5; i++) { /* nothing is forgotten: nothing goes */
        set_clocks(jumps[i] * years);
        OK(pyr_reclaim(store, NULL, &gone));
        CHECK(gone.versions == 0 && gone.nodes == 0);
    }
    OK(pyr_forget(array, 0, PYR_LATEST, KEPT, 0, NULL));
    for (int i = 0; i < 5; i++) {
        set_clocks(jumps[i] * years);
        OK(pyr_reclaim(store, NULL, &gone));
        CHECK(i > 0 || gone.versions > 0);
    }
    for (pyr_version v = 1; v <= VERSIONS; v++) {
        bool kept = v == 3 || v > VERSIONS - KEPT;
        int err = pyr_read(array, v, zero, whole, got);
        CHECK(err == (kept ? 0 : PYR_ENOVERSION));
        CHECK(!kept || memcmp(got, cells[v], sizeof got) == 0);
    }
    set_clocks(0);
    ledger_check(store);
    tear_down();
}

/* --- long histories ------------------------------------------------------ */

typedef struct cost {
    uint64_t nodes, blobs, versions;
} cost;

static cost
cost_of_reading(pyr_version v)
{
    uint32_t got[20 * 20];
    begin_to_count();
    OK(pyr_read(array, v, (uint64_t[2]){10, 20}, (uint64_t[2]){20, 20}, got));
    end_to_count();
    return (cost){nodes_got, blobs_got, versions_got};
}

/* Of a write that is the last of sixteen: chains are folded on the way. */
static cost
cost_of_writing(uint32_t *v)
{
    begin_to_count();
    for (int i = 0; i < 16; i++)
        write_version(++*v);
    end_to_count();
    return (cost){nodes_got, blobs_got, versions_got};
}

static void
compare_cost(const char *what, cost early, cost late)
{
    printf("# %s: %d nodes, %d blobs, %d records early; %d, %d, %d late\n",
           what, (int)early.nodes, (int)early.blobs, (int)early.versions,
           (int)late.nodes, (int)late.blobs, (int)late.versions);
    CHECK(late.nodes <= early.nodes + early.nodes / 4 + 2);
    CHECK(late.blobs <= 2 * early.blobs + 8);
    CHECK(late.versions <= early.versions + 2);
}

/* What is asked of the engine is counted. How many fragments lie on each other
 * changes from version to version, so cost is that of the dearest of some. */
static cost
dearest(pyr_version from)
{
    cost most = {0};
    for (pyr_version v = from; v < from + 40; v++) {
        cost c = cost_of_reading(v);
        most.nodes = c.nodes > most.nodes ? c.nodes : most.nodes;
        most.blobs = c.blobs > most.blobs ? c.blobs : most.blobs;
        most.versions = c.versions > most.versions ? c.versions
                                                   : most.versions;
    }
    return most;
}

static void
cost_does_not_grow_with_history(void)
{
    uint32_t v = 0, many = (uint32_t)by_scale(1500, 5000, 50000);
    set_up();
    while (v < 400) /* until every chunk has had its first fold */
        write_version(++v);
    cost write_early = cost_of_writing(&v), read_early = dearest(v - 40);
    while (v < many)
        write_version(++v);
    cost write_late = cost_of_writing(&v), read_late = dearest(v - 40);
    compare_cost("writing", write_early, write_late);
    compare_cost("reading the newest", read_early, read_late);
    cost first = dearest(10);
    compare_cost("reading version 10, and the newest", read_late, first);
    tear_down();
}

/* --- stores that nobody closed ------------------------------------------- */

static int
write_and_vanish(void *arg)
{
    (void)arg;
    if (open_both(0) < 0)
        return 1;
    for (uint32_t v = 1; v <= 5; v++)
        write_version(v);
    raise(SIGKILL);
    return 2;
}

static void
a_store_that_nobody_closed_can_be_read(void)
{
    static uint32_t got[SIDE * SIDE];
    set_up();
    close_both();
    CHECK(proc_wait(proc_fork(write_and_vanish, NULL), BOUND).signal ==
          SIGKILL);
    for (int i = 0; i < 2; i++) {
        OK(open_both(i ? 0 : PYR_OPEN_READONLY));
        OK(pyr_read(array, 5, zero, whole, got));
        CHECK(got[35 % (SIDE - 8) * SIDE + 25 % (SIDE - 8)] == 5000);
        if (i)
            write_version(6);
        close_both();
    }
    OK(open_both(0));
    tear_down();
}

/* --- stores that another has open ---------------------------------------- */

static const char *stop_at;

static int
stop_there(const char *point)
{
    static const char *passed;
    if (point != passed && strcmp(point, stop_at) == 0) {
        passed = point; /* once */
        raise(SIGSTOP);
    }
    return 0;
}

static int
write_until_stopped(void *arg)
{
    (void)arg;
    pyri_fault_hook = stop_there;
    if (open_both(0) < 0)
        return 1;
    for (uint32_t v = 4; v <= 8; v++)
        write_version(v);
    close_both();
    return 0;
}

static int
open_and_write(void *arg)
{
    (void)arg;
    pyr_store *other;
    pyr_store_options options = {.durability = PYR_DURABILITY_COMMIT,
                                 .lease_ms = 5};
    if (pyr_open_with(path, PYR_OPEN_CREATE, &options, &other) < 0)
        return 1;
    pyr_close(other);
    if (open_both(PYR_OPEN_CREATE) < 0)
        return 2;
    write_version(9);
    close_both();
    return 0;
}

/* One stands in the middle of a write, at the worst place with LMDB's lock,
 * while another opens the store as if it were to be made. */
static void
open_beside(const char *point)
{
    static uint32_t before[SIDE * SIDE], got[SIDE * SIDE];
    pyr_version latest;
    set_up();
    for (uint32_t v = 1; v <= 3; v++)
        write_version(v);
    OK(pyr_read(array, 3, zero, whole, before));
    close_both();
    stop_at = point;
    pid_t first = proc_fork(write_until_stopped, NULL);
    REQUIRE(proc_wait(first, BOUND).stopped);
    pid_t second = proc_fork(open_and_write, NULL);
    OK(open_both(PYR_OPEN_READONLY));
    OK(pyr_read(array, 3, zero, whole, got));
    CHECK(memcmp(got, before, sizeof got) == 0);
    kill(first, SIGCONT);
    CHECK(proc_ends_well(first, BOUND));
    CHECK(proc_ends_well(second, BOUND));
    OK(pyr_latest(array, &latest));
    CHECK(latest == 3 + 5 + 1);
    OK(pyr_read(array, 3, zero, whole, got));
    CHECK(memcmp(got, before, sizeof got) == 0);
    tear_down();
}

static void
opening_a_store_that_another_has_open_harms_nothing(void)
{
    open_beside("ticket.taken");
    open_beside("write.taken");
    open_beside("publish.commit");
}

TESTS(T(writers_that_share_a_chunk_lose_nothing),
      T(nobody_tries_twice_however_many_write_at_once),
      T(no_clock_decides_what_is_kept), T(cost_does_not_grow_with_history),
      T(a_store_that_nobody_closed_can_be_read),
      T(opening_a_store_that_another_has_open_harms_nothing))
