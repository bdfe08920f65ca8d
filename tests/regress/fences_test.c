/*
 * regress/fences_test.c - writers that were silent for too long are told the
 * truth, and writers that work are not taken for silent.
 */
#include "regress/regress.h"

#include "base/fault.h"
#include "base/sys.h"

#include <pthread.h>
#include <stdatomic.h>

enum { CELLS = 5000, MORE = 500 };

/* Codes of children, by what the call returned. */
enum { SUCCESS, OTHER, FENCED, FULL };

static int
code_of(int err)
{
    if (err < 0)
        complain("told");
    return err == 0             ? SUCCESS
           : err == PYR_EFENCED ? FENCED
           : err == PYR_ENOSPC  ? FULL
                                : OTHER;
}

static int
resize_line(uint64_t n)
{
    pyr_version made = 0;
    pyr_info info;
    if (open_line(0) < 0)
        return OTHER;
    int err = pyr_resize(array, &n, &made);
    if (err == 0 && (pyr_array_info(array, made, &info) < 0 ||
                     info.shape[0] != n))
        return OTHER;
    close_all();
    return code_of(err);
}

static int
append_line(uint64_t n)
{
    int32_t *cells = malloc(n * sizeof *cells);
    if (!cells || open_line(0) < 0)
        return OTHER;
    for (uint64_t i = 0; i < n; i++)
        cells[i] = (int32_t)rng_mix(i) | 1;
    int err = pyr_append(array, 0, n, cells, NULL, NULL);
    free(cells);
    close_all();
    return code_of(err);
}

static uint64_t
extent(void)
{
    pyr_info info;
    OK(pyr_array_info(array, PYR_LATEST, &info));
    return info.shape[0];
}

/* A line of ones. */
static void
set_up_ones(unsigned lease_ms, uint64_t chunk)
{
    static int32_t ones[CELLS];
    for (int i = 0; i < CELLS; i++)
        ones[i] = 1;
    set_up(lease_ms);
    make_line(CELLS, chunk, PYR_I32);
    OK(pyr_write(array, AT(0), AT(CELLS), ones, NULL));
}

static void
check_sum(uint64_t n, double sum)
{
    pyr_stats stats;
    CHECK(extent() == n);
    OK(pyr_stat(array, PYR_LATEST, AT(0), AT(n), 0, &stats));
    CHECK(stats.sum == sum);
}

static void
a_resize_that_others_carried_out_is_told_so(void)
{
    int32_t one = 1;
    set_up_ones(SHORT_LEASE, 1000);
    pid_t late = start_and_stop("write.taken=stop", "resize", 10);
    OK(pyr_write(array, AT(1), AT(1), &one, NULL));
    CHECK(extent() == 10);
    kill(late, SIGCONT);
    CHECK(proc_wait(late, BOUND).code == SUCCESS);
    check_sum(10, 10);
    OK(pyr_resize(array, AT(CELLS), NULL));
    check_sum(CELLS, 10);
    tear_down();
}

static void
a_fenced_append_leaves_fill(void)
{
    int32_t one = 1;
    set_up_ones(SHORT_LEASE, 1000);
    pid_t late = start_and_stop("write.taken=stop", "append", MORE);
    OK(pyr_write(array, AT(1), AT(1), &one, NULL));
    check_sum(CELLS + MORE, CELLS);
    kill(late, SIGCONT);
    CHECK(proc_wait(late, BOUND).code == FENCED);
    check_sum(CELLS + MORE, CELLS);
    tear_down();
}

/* An append is refused its data, or, a small one, the whole version. */
static void
append_to_full(const char *fault, uint64_t chunk, uint64_t more)
{
    set_up_ones(LONG_LEASE, chunk);
    pid_t child = start(fault, "append", more);
    CHECK(proc_wait(child, BOUND).code == FULL);
    CHECK(in_flight() == 0);
    check_sum(CELLS + more, CELLS);
    CHECK(proc_ends_well(start(NULL, "append", more), BOUND));
    CHECK(extent() == CELLS + 2 * more);
    tear_down();
}

static void
an_append_to_a_full_disk_leaves_fill(void)
{
    append_to_full("segment.append=nospc", 50000, 40 * MORE);
    append_to_full("publish.commit=nospc", 50000, 40 * MORE);
    append_to_full("publish.commit=nospc", 1000, MORE);
}

/* --- work that takes longer than the lease ------------------------------- */

enum { ROW = 1 << 15, ROWS = 64 };

static atomic_bool appended;

/* Sixteen rows take a lease. The clock stands still otherwise, as leases of
 * an hour go, so that nobody is late who has just no processor to run on. */
static int
let_time_pass(const char *point)
{
    if (strcmp(point, "segment.append") == 0)
        pyri_sys_ahead_monotonic += LONG_LEASE * INT64_C(1000000) / 16;
    return 0;
}

/* Writes in a hurry, each of which would fence a silent writer. */
static void *
write_beside(void *arg)
{
    int *failures = arg;
    while (!atomic_load(&appended))
        if (pyr_write(array, AT(0, 0), AT(1, 1), &(uint32_t){1}, NULL) < 0)
            ++*failures;
    return NULL;
}

static uint32_t *
make_rows(uint64_t n)
{
    rng r = rng_of(test_seed());
    uint32_t *cells = malloc(n * ROW * sizeof *cells);
    REQUIRE(cells);
    for (uint64_t i = 0; i < n * ROW; i++)
        cells[i] = (uint32_t)rng_below(&r, 1 << 20);
    return cells;
}

static void
an_append_that_takes_longer_than_its_lease_is_not_fenced(void)
{
    pthread_t beside;
    pyr_version made;
    uint64_t at = 0;
    int failures = 0;
    set_up(LONG_LEASE);
    OK(pyr_create(store, "x",
                  &(pyr_spec){.ndim = 2, .shape = AT(1, ROW),
                              .chunk = AT(1, ROW), .type = PYR_U32},
                  &array));
    uint32_t *cells = make_rows(ROWS), last = 0;
    atomic_store(&appended, false);
    pyri_fault_hook = let_time_pass;
    REQUIRE(pthread_create(&beside, NULL, write_beside, &failures) == 0);
    int err = pyr_append(array, 0, ROWS, cells, &at, &made);
    atomic_store(&appended, true);
    pthread_join(beside, NULL);
    pyri_fault_hook = NULL;
    OK(err);
    CHECK(pyri_sys_ahead_monotonic >= 4 * LONG_LEASE * INT64_C(1000000));
    CHECK(failures == 0);
    CHECK(at == 1 && extent() == 1 + ROWS);
    OK(pyr_read(array, made, AT(ROWS, ROW - 1), AT(1, 1), &last));
    CHECK(last == cells[ROWS * ROW - 1]);
    free(cells);
    tear_down();
}

static const role roles[] = {
    {"resize", resize_line}, {"append", append_line}, {NULL, NULL}};

REGRESS_TESTS(roles, T(a_resize_that_others_carried_out_is_told_so),
              T(a_fenced_append_leaves_fill),
              T(an_append_to_a_full_disk_leaves_fill),
              T(an_append_that_takes_longer_than_its_lease_is_not_fenced))
