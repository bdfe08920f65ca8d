/*
 * regress/chains_test.c - chunks made of thousands of fragments, and chunks
 * that were folded many times.
 */
#include "regress/regress.h"

enum { CELLS = 1 << 17 };

static double *
read_line(pyr_version version, uint64_t n)
{
    double *cells = malloc(n * sizeof *cells);
    REQUIRE(cells);
    memset(cells, 0xee, n * sizeof *cells);
    OK(pyr_read(array, version, AT(0), AT(n), cells));
    return cells;
}

/* Every other cell from the first on is 1, 2, 3, ..., the rest is fill. */
static void
every_other_cell_counts(pyr_version version, uint64_t n)
{
    double *cells = read_line(version, CELLS);
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < CELLS; i++)
        wrong += cells[i] !=
                 (i % 2 == 0 && i / 2 < n ? (double)(i / 2) + 1 : 0);
    CHECK(wrong == 0);
    free(cells);
}

static void
a_batch_may_write_thousands_of_cells_of_one_chunk(void)
{
    uint64_t n = by_scale(1500, 2000, 20000);
    pyr_batch *batch;
    pyr_version made;
    set_up(LONG_LEASE);
    make_line(CELLS, CELLS, PYR_F64);
    OK(pyr_batch_begin(array, &batch));
    for (uint64_t i = 0; i < n; i++)
        OK(pyr_batch_write(batch, AT(2 * i), AT(1), &(double){(double)i + 1}));
    OK(pyr_batch_commit(batch, NULL, &made));
    CHECK(made == 1);
    every_other_cell_counts(made, n);
    tear_down();
}

/* The first two are too far apart to be folded: each write is one more
 * fragment. */
static void
a_huge_chunk_may_be_written_a_cell_at_a_time(void)
{
    enum { GAP = 64, FAR = 1 << 30 };
    uint64_t n = by_scale(500, 1000, 3000), wrong = 0;
    uint8_t one = 1, *got = malloc(n * GAP);
    pyr_version made;
    pyr_stats stats;
    REQUIRE(got);
    set_up(LONG_LEASE);
    make_line(2ull * FAR, 2ull * FAR, PYR_U8);
    OK(pyr_write(array, AT(FAR), AT(1), &one, &made));
    for (uint64_t i = 0; i < n; i++)
        OK(pyr_write(array, AT(i * GAP), AT(1), &one, &made));
    OK(pyr_read(array, made, AT(0), AT(n * GAP), got));
    for (uint64_t i = 0; i < n * GAP; i++)
        wrong += got[i] != (i % GAP == 0);
    CHECK(wrong == 0);
    OK(pyr_stat(array, made, AT(0), AT(n * GAP), 0, &stats));
    CHECK(stats.sum == (double)n && stats.not_fill == n);
    free(got);
    tear_down();
}

/* Writes stay clear of cell 2000. */
static void
a_cell_beside_many_folds_is_quickly_known_as_never_written(void)
{
    enum { N = 4096, BLOCK = 64, QUIET = 2000 };
    uint64_t n = by_scale(1000, 1000, 8000);
    rng r = rng_of(test_seed());
    pyr_version last = 0, made = 0;
    set_up(LONG_LEASE);
    make_line(N, N, PYR_F64);
    for (uint64_t i = 0; i < n; i++) {
        double cells[BLOCK];
        uint64_t at = rng_below(&r, N - BLOCK);
        if (at <= QUIET && at + BLOCK > QUIET)
            at = QUIET + 1;
        for (int k = 0; k < BLOCK; k++)
            cells[k] = (double)rng_below(&r, 1000);
        OK(pyr_write(array, AT(at), AT(BLOCK), cells, &made));
    }
    OK(pyr_write(array, AT(QUIET + 1), AT(1), &(double){7}, &made));
    OK(pyr_last_change(array, made, AT(QUIET), AT(1), &last));
    CHECK(last == 0);
    OK(pyr_last_change(array, made, AT(QUIET), AT(2), &last));
    CHECK(last == made);
    double *cells = read_line(made, N);
    CHECK(cells[QUIET] == 0 && cells[QUIET + 1] == 7);
    free(cells);
    tear_down();
}

#ifdef PYRI_FAULTS

static int
write_second_cell(uint64_t n)
{
    if (open_line(0) < 0)
        return complain("open");
    if (pyr_write(array, AT(1), AT(1), &(double){-1}, NULL) < 0)
        return complain("write");
    return 0;
}

/* More than 4,096 of them once made a chunk that nobody could read. */
static void
thousands_of_writes_in_flight_may_share_a_chunk(void)
{
    uint64_t n = by_scale(1000, 4150, 6000);
    pyr_version made = 0;
    set_up(LONG_LEASE);
    make_line(CELLS, CELLS, PYR_F64);
    pid_t stalled = start_and_stop("write.taken=stop", "second", 1);
    for (uint64_t i = 0; i < n; i++) {
        double cell = (double)i + 1;
        pyr_part part = {.offset = AT(2 * i), .size = AT(1), .buf = &cell};
        OK(pyr_write_list(array, &part, 1,
                          &(pyr_write_options){.flags = PYR_WRITE_NOWAIT},
                          &made));
    }
    CHECK(made == n + 1 && in_flight() == n + 1);
    kill_off(stalled);
    OK(pyr_wait(array, made, BOUND));
    CHECK(in_flight() == 0);
    every_other_cell_counts(made, n);
    OK(pyr_write(array, AT(2 * n), AT(1), &(double){(double)n + 1}, &made));
    every_other_cell_counts(made, n + 1);
    tear_down();
}

static const role roles[] = {{"second", write_second_cell}, {NULL, NULL}};
#define IN_FLIGHT , T(thousands_of_writes_in_flight_may_share_a_chunk)

#else

static const role roles[] = {{NULL, NULL}};
#define IN_FLIGHT

#endif

REGRESS_TESTS(roles, T(a_batch_may_write_thousands_of_cells_of_one_chunk),
              T(a_huge_chunk_may_be_written_a_cell_at_a_time),
              T(a_cell_beside_many_folds_is_quickly_known_as_never_written)
                  IN_FLIGHT)
