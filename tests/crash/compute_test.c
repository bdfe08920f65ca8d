/*
 * crash/compute_test.c - COMPUTE, killed at each named point: the version is
 * there whole, or it changes nothing, or it is not there.
 */
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

/* Of version 1: all cells, or an odd part of them so that chunks are cut. */
static int
compute(pyr_array *a, int part)
{
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
    int code = compute(a, j->extra) < 0 ? complain("compute") : 0;
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
    for (int part = 0; part < 2; part++) {
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
    int code = pyr_compute(a, 0, origin, info.shape, "x * 3", NULL) < 0
                   ? complain("compute")
                   : 0;
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
    proc_kill_all();
    snprintf(url, sizeof url, "%s", tmp_store("disturbed"));
    OK(make_base(url));
    OK(make_huge(url, &store, &a));
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

static const crew_role roles[] = {{"compute", role_compute},
                                  {"triple", role_triple},
                                  {NULL, NULL}};

CREW_TESTS(roles, T(a_computation_killed_at_any_point_is_done_or_not),
           T(a_write_into_what_should_stay_as_it_was_is_not_to_be_seen))
