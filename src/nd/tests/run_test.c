/*
 * Strided runs, along one axis, against counting on fingers.
 */
#include "nd/nd.h"
#include "support/check.h"

static bool
in_run(const pyri_run *r, uint64_t x)
{
    for (uint64_t i = 0; i < r->count[0]; i++)
        if (x >= r->start[0] + i * r->stride[0] &&
            x < r->start[0] + i * r->stride[0] + r->block[0])
            return true;
    return false;
}

static void
next_visits_exactly_the_cells_of_the_run(void)
{
    for (unsigned s = 0; s < 20000; s++) {
        pyri_run r = {{s % 5}, {1 + s / 5 % 4}, {1 + s / 20 % 5}, {0}};
        r.stride[0] = r.block[0] + s / 100 % 4;
        uint64_t lo = s / 400 % 25, hi = lo + s / 10000 * 7 + s % 11;
        bool seen[128] = {false};
        for (uint64_t i = 0, at, end;
             pyri_run_next(&r, 0, lo, hi, &i, &at, &end); i++)
            for (; at < end; at++)
                seen[at] = true;
        pyri_box box = {{lo}, {hi}};
        bool any = false;
        for (uint64_t x = 0; x < 128; x++) {
            bool want = x >= lo && x < hi && in_run(&r, x);
            any |= want;
            REQUIRE(seen[x] == want);
        }
        REQUIRE(pyri_run_overlaps(1, &r, &box) == any);
    }
}

static void
bounds_end_with_the_last_block(void)
{
    pyri_run r = {{3}, {2}, {4}, {10}};
    pyri_box b;
    pyri_run_bounds(1, &r, &b);
    CHECK(b.lo[0] == 3 && b.hi[0] == 35);
}

static void
a_run_at_the_end_of_64_bits_does_not_wrap(void)
{
    pyri_run r = {{UINT64_MAX - 10}, {3}, {2}, {5}};
    pyri_box b = {{UINT64_MAX - 4}, {UINT64_MAX}};
    CHECK(pyri_run_overlaps(1, &r, &b));
    b.lo[0] = UINT64_MAX - 2;
    CHECK(!pyri_run_overlaps(1, &r, &b));
}

TESTS(T(next_visits_exactly_the_cells_of_the_run),
      T(bounds_end_with_the_last_block),
      T(a_run_at_the_end_of_64_bits_does_not_wrap))
