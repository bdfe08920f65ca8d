/*
 * crash/compute_test.c - COMPUTE, killed at each named point: the version is
 * there whole, or it changes nothing, or it is not there.
 */
#include "compute/kernels.h"
#include "crash/crew.h"

enum { CELLS = 4000, CHUNK = 10 }; /* 400 chunks: zeros are kept */

static const uint64_t whole[1] = {CELLS};
static const uint64_t origin[1];

/* Version 1: cells 1000 to 2999 are 1, 2, 3, ..., the others 0. */
static int
make_base(const char *url)
{
    int32_t cells[2000];
    pyr_store *store = NULL;
    pyr_array *array = NULL;
    pyr_store_options options = {.durability = PYR_DURABILITY_OS,
                                 .lease_ms = LONG_LEASE};
    for (int i = 0; i < 2000; i++)
        cells[i] = i + 1;
    int err = pyr_open_with(url, PYR_OPEN_CREATE, &options, &store);
    if (err == 0)
        err = pyr_create(store, "a",
                         &(pyr_spec){.ndim = 1, .shape = whole,
                                     .chunk = (uint64_t[1]){CHUNK},
                                     .type = PYR_I32}, &array);
    if (err == 0)
        err = pyr_write(array, (uint64_t[1]){1000}, (uint64_t[1]){2000}, cells,
                        NULL);
    pyr_array_close(array);
    pyr_close(store);
    return err;
}

/* Of version 1: all cells, or an odd part of them so that chunks are cut; the
 * last by a kernel, and through a handler that adds the 1. */
enum { ALL, SOME, HANDLED };

static int
compute(pyr_array *a, int part)
{
    if (part == HANDLED)
        return pyr_compute(a, 1, (uint64_t[1]){1003}, (uint64_t[1]){1500},
                           "gain(factor=3)", NULL);
    return part ? pyr_compute(a, 1, (uint64_t[1]){1003}, (uint64_t[1]){1500},
                              "x * 3 + 1", NULL)
                : pyr_compute(a, 1, origin, whole, "x * 3", NULL);
}

static int32_t
computed(int part, int i, int32_t x)
{
    if (part)
        return i >= 1003 && i < 2503 ? 3 * x + 1 : x;
    return 3 * x;
}

static int
role_compute(const job *j)
{
    pyr_store *store = NULL;
    pyr_array *a = NULL;
    if (pyr_open(j->url, 0, &store) < 0 || pyr_array_open(store, "a", &a) < 0)
        return complain("open");
    int code = -compute(a, j->extra); /* what went wrong */
    if (code)
        complain("compute");
    pyr_array_close(a);
    pyr_close(store);
    return code;
}

/* Is a version as the first one, or as computed from it? */
static bool
is_whole(pyr_array *a, pyr_version v, int part, bool done)
{
    static int32_t base[CELLS], cells[CELLS];
    OK(pyr_read(a, 1, origin, whole, base));
    OK(pyr_read(a, v, origin, whole, cells));
    for (int i = 0; i < CELLS; i++)
        if (cells[i] != (done ? computed(part, i, base[i]) : base[i]))
            return false;
    return true;
}

/* One that leaves the zeros that are written below as they are. */
static int
add_handler(const char *url)
{
    pyr_store *store = NULL;
    pyr_array *a = NULL;
    int err = pyr_open(url, 0, &store);
    if (err == 0)
        err = pyr_array_open(store, "a", &a);
    if (err == 0)
        err = pyr_handler_add(a, PYR_ON_WRITE, "where(x > 0, x + 1, x)", NULL);
    pyr_array_close(a);
    pyr_close(store);
    return err;
}

static bool
kill_compute(const fault_point *point, int visit, int part)
{
    char url[4096];
    int before = check_failures;
    pyr_store *store;
    pyr_array *a;
    pyr_version latest;
    proc_kill_all();
    snprintf(url, sizeof url, "%s", tmp_store("compute"));
    OK(make_base(url));
    if (part == HANDLED)
        OK(add_handler(url));
    job j = {.role = "compute", .url = url, .logs = "-", .extra = part};
    proc_end end =
        proc_wait(start_at(point->name, "kill", visit, &j), BOUND);
    CHECK(end.signal == SIGKILL || end.code == 0);
    OK(pyr_open(url, 0, &store));
    OK(pyr_array_open(store, "a", &a));
    OK(pyr_write(a, origin, (uint64_t[1]){1}, &(int32_t){0}, NULL));
    OK(pyr_latest(a, &latest));
    /* the dead one's version, if it had one, is 2 */
    CHECK(latest == 2 || latest == 3);
    CHECK(is_whole(a, 2, part, false) || is_whole(a, 2, part, true));
    if (end.signal == SIGKILL && point->fate == PRESENT)
        CHECK(latest == 3 && is_whole(a, 2, part, true));
    if (end.signal == SIGKILL && point->fate == ABSENT)
        CHECK(latest == 2);
    OK(compute(a, part));
    OK(pyr_latest(a, &latest));
    CHECK(is_whole(a, latest, part, true));
    OK(pyr_verify(store, &(pyr_verify_spec){.deep = 1}, NULL));
    pyr_array_close(a);
    pyr_close(store);
    if (check_failures > before)
        printf("# killed at %s, visit %d, part %d\n", point->name, visit, part);
    tmp_remove(url);
    return end.signal == SIGKILL;
}

static void
a_computation_killed_at_any_point_is_done_or_not(void)
{
    static const fault_point chunk = {"compute.chunk", ABSENT};
    setenv("PYRAMID_KERNELS", kernels_dir(), 1);
    for (int part = ALL; part <= HANDLED; part++) {
        for (int i = 0; i < NPOINTS; i++)
            CHECK(kill_compute(&points[i], 1, part));
        CHECK(kill_compute(&chunk, 1, part));
        CHECK(kill_compute(&chunk, 100, part));
    }
}

/* --- disturbed ------------------------------------------------------------ */

/* An array of so many chunks that a version cannot list them. */
static int
make_huge(const char *url, pyr_store **store, pyr_array **huge)
{
    int err = pyr_open(url, 0, store);
    return err < 0 ? err
                   : pyr_create(*store, "huge",
                                &(pyr_spec){.ndim = 1,
                                            .shape = (uint64_t[1]){1ull << 40},
                                            .chunk = (uint64_t[1]){CHUNK},
                                            .type = PYR_I32}, huge);
}

static int
role_triple(const job *j)
{
    pyr_store *store = NULL;
    pyr_array *a = NULL;
    pyr_info info;
    if (pyr_open(j->url, 0, &store) < 0 ||
        pyr_array_open(store, j->extra ? "huge" : "a", &a) < 0 ||
        pyr_array_info(a, 0, &info) < 0)
        return complain("open");
    int code = -pyr_compute(a, 0, origin, info.shape, "x * 3", NULL);
    if (code)
        complain("compute");
    pyr_array_close(a);
    pyr_close(store);
    return code;
}

static int
note_kinds(void *ctx, const pyr_change *c)
{
    ((pyr_kind *)ctx)[c->version] = c->kind;
    return 0;
}

/* In a new store, when nobody is left of the test before. */
static void
open_huge(const char *name, char url[4096], pyr_store **store, pyr_array **huge)
{
    proc_kill_all();
    snprintf(url, 4096, "%s", tmp_store(name));
    OK(make_base(url));
    OK(make_huge(url, store, huge));
}

/* A computation of version 0, all zeros, has decided that there is nothing to
 * store; then someone writes a cell. The computed version must not show it. */
static void
disturb(int huge)
{
    char url[4096];
    pyr_store *store;
    pyr_array *a;
    pyr_version latest;
    pyr_kind kinds[8] = {0};
    static const int32_t zeros[CELLS];
    int32_t cell = 5;
    open_huge("disturbed", url, &store, &a);
    if (!huge) {
        pyr_array_close(a);
        OK(pyr_array_open(store, "a", &a));
        OK(pyr_write(a, origin, whole, zeros, NULL));
    }
    OK(pyr_latest(a, &latest));
    job j = {.role = "triple", .url = url, .logs = "-", .extra = huge};
    pid_t pid = start_at("write.data_sent", "stop", 1, &j);
    REQUIRE(is_stopped(pid));
    OK(pyr_write(a, (uint64_t[1]){3003}, (uint64_t[1]){1}, &cell, NULL));
    kill(pid, SIGCONT);
    CHECK(proc_ends_well(pid, BOUND));
    OK(pyr_read(a, latest + 1, (uint64_t[1]){3003}, (uint64_t[1]){1}, &cell));
    CHECK(cell == 5);
    OK(pyr_read(a, latest + 2, (uint64_t[1]){3003}, (uint64_t[1]){1}, &cell));
    CHECK(cell == 5); /* it was given up */
    OK(pyr_read(a, latest + 3, (uint64_t[1]){3003}, (uint64_t[1]){1}, &cell));
    CHECK(cell == 0);
    OK(pyr_history(a, 0, PYR_LATEST, note_kinds, kinds));
    CHECK(kinds[latest + 2] == PYR_KIND_NOTHING);
    CHECK(kinds[latest + 3] == PYR_KIND_COMPUTE);
    OK(pyr_verify(store, &(pyr_verify_spec){.deep = 1}, NULL));
    pyr_array_close(a);
    pyr_close(store);
    tmp_remove(url);
}

static void
a_write_into_what_should_stay_as_it_was_is_not_to_be_seen(void)
{
    disturb(0);
    disturb(1);
}

/* Each time that it has decided what is to be one value the shape changes. */
static void
a_computation_that_is_disturbed_five_times_gives_up(void)
{
    static const char stop[] = "write.data_sent=stop,write.data_sent=stop,"
                               "write.data_sent=stop,write.data_sent=stop,"
                               "write.data_sent=stop";
    char url[4096];
    pyr_store *store;
    pyr_array *a;
    pyr_version latest;
    pyr_kind kinds[16] = {0};
    open_huge("disturbed", url, &store, &a);
    job j = {.role = "triple", .url = url, .logs = "-", .extra = 1};
    pid_t pid = start(stop, &j);
    for (uint64_t i = 0; i < 5; i++) {
        REQUIRE(is_stopped(pid));
        OK(pyr_resize(a, (uint64_t[1]){(1ull << 40) + i + 1}, NULL));
        kill(pid, SIGCONT);
    }
    proc_end end = proc_wait(pid, BOUND);
    CHECK(end.code == -PYR_EFENCED);
    OK(pyr_latest(a, &latest));
    CHECK(latest == 10);
    OK(pyr_history(a, 0, PYR_LATEST, note_kinds, kinds));
    for (int i = 1; i <= 10; i++)
        CHECK(kinds[i] == (i % 2 ? PYR_KIND_RESIZE : PYR_KIND_NOTHING));
    OK(pyr_verify(store, &(pyr_verify_spec){.deep = 1}, NULL));
    pyr_array_close(a);
    pyr_close(store);
    tmp_remove(url);
}

/* --- the source goes ------------------------------------------------------ */

/* Version 1 is forgotten and reclaimed while it is being read. */
static void
a_source_that_is_forgotten_meanwhile_is_no_damage(void)
{
    static int32_t cells[CELLS];
    char url[4096];
    pyr_store *store;
    pyr_array *a;
    pyr_version latest;
    pyr_reclaimed gone;
    proc_kill_all();
    snprintf(url, sizeof url, "%s", tmp_store("forgotten"));
    OK(make_base(url));
    OK(pyr_open(url, 0, &store));
    OK(pyr_array_open(store, "a", &a));
    job j = {.role = "compute", .url = url, .logs = "-", .extra = ALL};
    pid_t pid = start_at("compute.chunk", "stop", 3, &j);
    REQUIRE(is_stopped(pid));
    for (int i = 0; i < CELLS; i++)
        cells[i] = -i;
    OK(pyr_write(a, origin, whole, cells, NULL));
    OK(pyr_forget(a, 1, 1, 0, 0, NULL));
    OK(pyr_reclaim(store, NULL, &gone));
    CHECK(gone.versions == 1);
    kill(pid, SIGCONT);
    proc_end end = proc_wait(pid, BOUND);
    CHECK(end.code == -PYR_ENOVERSION);
    OK(pyr_latest(a, &latest));
    CHECK(latest == 2);
    OK(pyr_verify(store, &(pyr_verify_spec){.deep = 1}, NULL));
    pyr_array_close(a);
    pyr_close(store);
    tmp_remove(url);
}

/* --- flats ---------------------------------------------------------------- */

static const uint64_t far[1] = {(1ull << 39) + 3};

/* Another value for all 2^40 cells: no node but the root. */
static int
role_flood(const job *j)
{
    pyr_store *store = NULL;
    pyr_array *a = NULL;
    if (pyr_open(j->url, 0, &store) < 0 ||
        pyr_array_open(store, "huge", &a) < 0)
        return complain("open");
    int code = pyr_compute(a, 0, origin, (uint64_t[1]){1ull << 40}, "x * 3 + 1",
                           NULL) < 0
                   ? complain("compute")
                   : 0;
    pyr_array_close(a);
    pyr_close(store);
    return code;
}

static int
role_poke(const job *j)
{
    pyr_store *store = NULL;
    pyr_array *a = NULL;
    int32_t cell = 7;
    if (pyr_open(j->url, 0, &store) < 0 ||
        pyr_array_open(store, "huge", &a) < 0)
        return complain("open");
    int code = pyr_write(a, far, (uint64_t[1]){1}, &cell, NULL) < 0
                   ? complain("write")
                   : 0;
    pyr_array_close(a);
    pyr_close(store);
    return code;
}

static int32_t
cell_at(pyr_array *a, pyr_version v, uint64_t i)
{
    int32_t cell;
    OK(pyr_read(a, v, &i, (uint64_t[1]){1}, &cell));
    return cell;
}

static bool
kill_flood(const fault_point *point)
{
    char url[4096];
    pyr_store *store;
    pyr_array *a;
    pyr_version latest;
    open_huge("flood", url, &store, &a);
    job j = {.role = "flood", .url = url, .logs = "-"};
    proc_end end = proc_wait(start_at(point->name, "kill", 1, &j), BOUND);
    CHECK(end.signal == SIGKILL);
    OK(pyr_write(a, far, (uint64_t[1]){1}, &(int32_t){7}, NULL));
    OK(pyr_latest(a, &latest));
    CHECK(latest == (point->fate == ABSENT ? 1 : 2));
    CHECK(cell_at(a, latest, far[0]) == 7);
    int32_t around = cell_at(a, latest, far[0] + 1);
    CHECK(around == (point->fate == PRESENT));
    CHECK(cell_at(a, latest, 0) == around &&
          cell_at(a, latest, (1ull << 40) - 1) == around);
    pyr_verified seen;
    OK(pyr_verify(store, &(pyr_verify_spec){.deep = 1}, &seen));
    CHECK(seen.harms == 0 && seen.orphan_nodes == 0);
    pyr_array_close(a);
    pyr_close(store);
    tmp_remove(url);
    return end.signal == SIGKILL;
}

static void
a_flood_killed_at_any_point_is_done_or_not(void)
{
    for (int i = 0; i < NPOINTS; i++)
        if (!kill_flood(&points[i]))
            CHECK_NOTE("not killed at %s", points[i].name);
}

/* While it is in flight, another writes into what it floods. */
static void
write_into_a_flood(const char *point, bool dies)
{
    char url[4096];
    pyr_store *store;
    pyr_array *a;
    pyr_kind kinds[8] = {0};
    open_huge("flood", url, &store, &a);
    job flood = {.role = "flood", .url = url, .logs = "-"};
    job poke = {.role = "poke", .url = url, .logs = "-"};
    pid_t first = start_at(point, "stop", 1, &flood);
    REQUIRE(is_stopped(first));
    pid_t second = start_at("write.taken", "stop", 1, &poke);
    REQUIRE(is_stopped(second));
    kill(second, SIGCONT);
    CHECK(cell_at(a, PYR_LATEST, far[0]) == 0); /* nobody has come through */
    kill(first, dies ? SIGKILL : SIGCONT);
    if (!dies)
        CHECK(proc_ends_well(first, BOUND));
    CHECK(proc_ends_well(second, BOUND));
    OK(pyr_history(a, 0, PYR_LATEST, note_kinds, kinds));
    CHECK(kinds[1] == (dies ? PYR_KIND_NOTHING : PYR_KIND_COMPUTE));
    CHECK(kinds[2] == PYR_KIND_WRITE);
    CHECK(cell_at(a, 2, far[0]) == 7);
    CHECK(cell_at(a, 1, far[0]) == !dies);
    CHECK(cell_at(a, 2, far[0] + 1) == !dies && cell_at(a, 2, 5) == !dies);
    pyr_verified seen;
    OK(pyr_verify(store, &(pyr_verify_spec){.deep = 1}, &seen));
    CHECK(seen.harms == 0 && seen.orphan_nodes == 0);
    pyr_array_close(a);
    pyr_close(store);
    tmp_remove(url);
}

static void
who_writes_into_a_flood_comes_after_it(void)
{
    write_into_a_flood("write.taken", false);
    write_into_a_flood("write.built", false);
    write_into_a_flood("write.taken", true);
    write_into_a_flood("write.built", true);
}

/* Both die: who reclaims completes the one, and then the other. */
static void
who_reclaims_completes_what_died_above_a_flood(void)
{
    char url[4096];
    pyr_store *store;
    pyr_array *a;
    pyr_reclaimed gone;
    pyr_version latest;
    open_huge("flood", url, &store, &a);
    job flood = {.role = "flood", .url = url, .logs = "-"};
    job poke = {.role = "poke", .url = url, .logs = "-"};
    pid_t first = start_at("write.taken", "stop", 1, &flood);
    REQUIRE(is_stopped(first));
    pid_t second = start_at("write.taken", "stop", 1, &poke);
    REQUIRE(is_stopped(second));
    kill(first, SIGKILL);
    kill(second, SIGKILL);
    CHECK(proc_wait(first, BOUND).signal == SIGKILL);
    CHECK(proc_wait(second, BOUND).signal == SIGKILL);
    OK(pyr_reclaim(store, NULL, &gone));
    OK(pyr_latest(a, &latest));
    CHECK(latest == 2);
    CHECK(cell_at(a, 2, far[0]) == 0);
    pyr_array_close(a);
    pyr_close(store);
    tmp_remove(url);
}

static const crew_role roles[] = {{"compute", role_compute},
                                  {"triple", role_triple},
                                  {"flood", role_flood},
                                  {"poke", role_poke},
                                  {NULL, NULL}};

CREW_TESTS(roles, T(a_computation_killed_at_any_point_is_done_or_not),
           T(a_write_into_what_should_stay_as_it_was_is_not_to_be_seen),
           T(a_computation_that_is_disturbed_five_times_gives_up),
           T(a_source_that_is_forgotten_meanwhile_is_no_damage),
           T(a_flood_killed_at_any_point_is_done_or_not),
           T(who_writes_into_a_flood_comes_after_it),
           T(who_reclaims_completes_what_died_above_a_flood))
