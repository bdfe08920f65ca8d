/*
 * keep/boot_test.c - the machine is started anew while versions are written,
 * forgotten and reclaimed: all processes are gone, and so is what live/ says.
 *
 * A child writes, forgets and reclaims, and dies at a named point. Then
 * live/boot is that of another boot, and, as nothing in live/ was ever synced,
 * the rest of it is whole, torn or gone.
 */
#include "keep/ledger.h"
#include "support/tmp_store.h"

#include "base/fault.h"

#include <sys/mman.h>

enum { SIDE = 200, VERSIONS = 24, BOUND = 300000, CELLS = SIDE * SIDE };

/* Versions are forgotten in these ranges, one after the other. */
static const pyr_version ranges[][2] = {{3, 6}, {9, 9}, {11, 16}};
enum { NRANGES = sizeof ranges / sizeof ranges[0] };

/* What the child has come to; it outlives it. */
typedef struct board {
    const char *point; /* where it dies, */
    int visits;        /* at its so-many-th visit */
    uint32_t written;  /* versions that were acknowledged */
    int began, forgot; /* ranges */
} board;

static char path[4096];
static board *b;
static uint32_t cells[VERSIONS + 8][CELLS];
static const uint64_t zero[2], whole[2] = {SIDE, SIDE};

/* --- versions ------------------------------------------------------------ */

/* Odd ones are large and go into a segment; some of them cover all. */
static void
box_of(uint32_t v, uint64_t at[2], uint64_t size[2])
{
    for (int d = 0; d < 2; d++) {
        size[d] = v % 6 == 1 ? SIDE : v % 2 ? 150 : 9;
        at[d] = v * 31 % (SIDE - size[d] + 1);
    }
}

static uint32_t
cell_of(uint32_t v, uint64_t i)
{
    return (uint32_t)rng_mix(v * UINT64_C(1000003) + i);
}

static int
write_version(pyr_array *a, uint32_t v)
{
    static uint32_t given[CELLS];
    uint64_t at[2], size[2];
    box_of(v, at, size);
    for (uint64_t i = 0; i < size[0] * size[1]; i++)
        given[i] = cell_of(v, i);
    return pyr_write(a, at, size, given, NULL);
}

static void
make_model(void)
{
    for (uint32_t v = 1; v < VERSIONS + 8; v++) {
        uint64_t at[2], size[2];
        box_of(v, at, size);
        memcpy(cells[v], cells[v - 1], sizeof cells[v]);
        for (uint64_t i = 0; i < size[0] * size[1]; i++)
            cells[v][(at[0] + i / size[1]) * SIDE + at[1] + i % size[1]] =
                cell_of(v, i);
    }
}

/* --- the child ----------------------------------------------------------- */

static int
die_there(const char *point)
{
    if (b->point && strcmp(point, b->point) == 0 && --b->visits == 0)
        raise(SIGKILL);
    return 0;
}

static int
live(void *arg)
{
    pyr_store *store;
    pyr_array *a;
    pyr_reclaimed gone;
    (void)arg;
    pyri_fault_hook = die_there;
    if (pyr_open(path, 0, &store) < 0 || pyr_array_open(store, "a", &a) < 0)
        return 1;
    while (b->written < VERSIONS) {
        if (write_version(a, b->written + 1) < 0)
            return 2;
        b->written++;
        if (b->written % 8 != 0)
            continue;
        const pyr_version *range = ranges[b->began++];
        if (pyr_forget(a, range[0], range[1], 0, 0, NULL) < 0)
            return 3;
        b->forgot++;
        if (pyr_reclaim(store, NULL, &gone) < 0)
            return 4;
    }
    raise(SIGKILL); /* open as it is */
    return 5;
}

/* --- afterwards ---------------------------------------------------------- */

typedef enum remains { WHOLE, TORN, GONE, NREMAINS } remains;

static void
start_anew(remains r)
{
    char name[5000];
    if (r == TORN) {
        snprintf(name, sizeof name, "%s/live/data.mdb", path);
        REQUIRE(tmp_write_file(name, "torn"));
    }
    snprintf(name, sizeof name, "%s/live", path);
    if (r == GONE)
        tmp_remove(name);
    snprintf(name, sizeof name, "%s/live/boot", path);
    if (r != GONE)
        REQUIRE(tmp_write_file(name, "boot another\n"));
}

static int
range_of(pyr_version v)
{
    for (int i = 0; i < NRANGES; i++)
        if (v >= ranges[i][0] && v <= ranges[i][1])
            return i;
    return NRANGES;
}

static void
check_versions(pyr_array *a, pyr_version latest)
{
    static uint32_t got[CELLS];
    for (pyr_version v = 0; v <= latest; v++) {
        int range = range_of(v), err = pyr_read(a, v, zero, whole, got);
        bool may = range < b->began, must = range < b->forgot;
        if (err == PYR_ENOVERSION ? !may : err != 0 || must)
            CHECK_NOTE("version %d: %d, %s", (int)v, err, pyr_errmsg());
        else if (err == 0)
            CHECK(memcmp(got, cells[v], sizeof got) == 0);
    }
}

static void
check_after(void)
{
    pyr_store *store;
    pyr_array *a;
    pyr_version latest;
    pyr_reclaimed gone;
    pyr_verified seen;
    OK(pyr_open(path, 0, &store));
    OK(pyr_array_open(store, "a", &a));
    OK(pyr_latest(a, &latest));
    REQUIRE(latest == b->written || latest == b->written + 1);
    check_versions(a, latest);
    for (int i = 0; i < NRANGES; i++)
        if (ranges[i][1] < latest)
            OK(pyr_forget(a, ranges[i][0], ranges[i][1], 0, 0, NULL));
        else
            break;
    for (int i = 0; i < 4; i++)
        OK(write_version(a, (uint32_t)++latest));
    OK(pyr_reclaim(store, NULL, &gone));
    OK(pyr_reclaim(store, NULL, &gone));
    CHECK(gone.left == 0 && gone.waiting == 0);
    b->began = NRANGES;
    check_versions(a, latest);
    OK(pyr_verify(store, &(pyr_verify_spec){.deep = 1}, &seen));
    CHECK(seen.harms == 0);
    CHECK(seen.orphan_nodes == 0 && seen.orphan_blobs == 0);
    ledger_check(store);
    pyr_array_close(a);
    pyr_close(store);
}

static void
one_restart(const char *point, int visits, remains r)
{
    int before = check_failures;
    pyr_store *store;
    *b = (board){.point = point, .visits = visits};
    snprintf(path, sizeof path, "%s", tmp_fresh("boot"));
    OK(pyr_open_with(path, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS,
                                          .lease_ms = 3600000},
                     &store));
    OK(pyr_create(store, "a",
                  &(pyr_spec){.ndim = 2, .shape = whole,
                              .chunk = (uint64_t[2]){SIDE, 120},
                              .type = PYR_U32},
                  NULL));
    pyr_close(store);
    proc_end end = proc_wait(proc_fork(live, NULL), BOUND);
    CHECK(end.signal == SIGKILL);
    start_anew(r);
    check_after();
    if (check_failures > before)
        printf("# killed at visit %d of %s, %d versions, %s\n", visits,
               point ? point : "the end", (int)b->written,
               r == WHOLE ? "whole" : r == TORN ? "torn" : "gone");
    tmp_remove(path);
}

static void
a_restart_amid_forgetting_loses_nothing_that_is_kept(void)
{
    static const char *const points[] = {
        NULL, "segment.append", "ticket.taken", "write.built",
        "publish.commit", "publish.done", "erase.commit", "erase.done",
        "settle.punched"};
    int n = sizeof points / sizeof points[0], round = 0;
    int most = (int)by_scale(1, 2, 6);
    b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(b != MAP_FAILED);
    make_model();
    for (int i = 0; i < n; i++)
        for (int visits = 1; visits <= most; visits++, round++) {
            /* Of a write: among those after the first forgetting, too. */
            bool often = i >= 1 && i <= 5;
            one_restart(points[i], often ? visits * 7 : visits,
                        (remains)(round % NREMAINS));
        }
    munmap(b, sizeof *b);
}

TESTS(T(a_restart_amid_forgetting_loses_nothing_that_is_kept))
