/*
 * Fetching ahead: rows come in the order in which a nest of loops visits them.
 */
#include "nd/nd.h"
#include "support/check.h"

static uint8_t memory[1 << 16];

static pyri_rows
rows_of(int n, const uint64_t *extent, const int64_t *step)
{
    pyri_rows rows;
    pyri_rows_of(n, 1, extent, step, &rows);
    return rows;
}

static void
rows_come_in_the_order_of_loops(void)
{
    const uint64_t extent[3] = {3, 5, 100};
    const int64_t step[3] = {10000, 300, 1};
    pyri_rows rows = rows_of(3, extent, step);
    pyri_prefetch p;
    pyri_prefetch_begin(&p, &rows, memory);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 5; k++) {
            CHECK(p.row == memory + 10000 * i + 300 * k);
            CHECK(p.left == (uint64_t)(15 - 5 * i - k) && p.done == 0);
            pyri_prefetch_more(&p, 100);
        }
    CHECK(p.left == 0);
}

static void
a_fetch_may_end_inside_a_row(void)
{
    const uint64_t extent[2] = {10, 100};
    const int64_t step[2] = {-300, 1};
    pyri_rows rows = rows_of(2, extent, step);
    pyri_prefetch p;
    pyri_prefetch_begin(&p, &rows, memory + 10000);
    pyri_prefetch_more(&p, 130);
    CHECK(p.row == memory + 9700 && p.done == 30 && p.left == 9);
    pyri_prefetch_more(&p, 270);
    CHECK(p.row == memory + 8800 && p.done == 0 && p.left == 6);
}

static void
past_the_last_row_there_is_nothing(void)
{
    const uint64_t one[1] = {500}, none[2] = {0, 500};
    const int64_t step[2] = {500, 1};
    pyri_rows rows = rows_of(1, one, step + 1);
    pyri_prefetch p;
    pyri_prefetch_begin(&p, &rows, memory);
    pyri_prefetch_more(&p, 4096);
    CHECK(p.left == 0);
    pyri_prefetch_more(&p, 4096);
    CHECK(p.left == 0);
    rows = rows_of(2, none, step);
    pyri_prefetch_begin(&p, &rows, memory);
    pyri_prefetch_more(&p, 4096);
    CHECK(p.left == 0 && p.row == memory);
}

TESTS(T(rows_come_in_the_order_of_loops), T(a_fetch_may_end_inside_a_row),
      T(past_the_last_row_there_is_nothing))
