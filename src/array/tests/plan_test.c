/*
 * Which chunks a run falls into, against looking at every cell.
 */
#include "array/draft.h"
#include "support/check.h"
#include "support/rng.h"

enum { SIDE = 40, MOST = 3 };

typedef struct visits {
    int ndim;
    uint8_t times[SIDE * SIDE * SIDE];
    int calls, stop_at;
} visits;

static uint64_t
number_of(int ndim, const uint64_t *pos)
{
    uint64_t n = 0;
    for (int d = 0; d < ndim; d++)
        n = n * SIDE + pos[d];
    return n;
}

static int
visit(void *ctx, const uint64_t *pos)
{
    visits *v = ctx;
    for (int d = 0; d < v->ndim; d++)
        REQUIRE(pos[d] < SIDE);
    v->times[number_of(v->ndim, pos)]++;
    return ++v->calls == v->stop_at ? 42 : 0;
}

/* Does the run have a cell in that chunk along the axis? */
static bool
falls_into(const pyri_run *run, int d, uint64_t chunk, uint64_t index)
{
    for (uint64_t i = 0; i < run->count[d]; i++)
        for (uint64_t k = 0; k < run->block[d]; k++)
            if ((run->start[d] + i * run->stride[d] + k) / chunk == index)
                return true;
    return false;
}

static void
pick_run(rng *r, int ndim, pyri_run *run)
{
    for (int d = 0; d < ndim; d++) {
        run->start[d] = rng_below(r, 12);
        run->block[d] = rng_from(r, 1, 5);
        run->stride[d] = run->block[d] + rng_below(r, 8);
        run->count[d] = rng_once_in(r, 3) ? 1 : rng_from(r, 1, 3);
        while (run->start[d] + (run->count[d] - 1) * run->stride[d] +
                   run->block[d] > SIDE)
            run->count[d]--;
    }
}

static void
every_chunk_of_a_run_is_visited_once_and_no_other(void)
{
    static visits v;
    for (uint64_t seed = 0; seed < 1500; seed++) {
        rng r = rng_of(seed);
        int ndim = (int)rng_from(&r, 1, MOST), seen = 0;
        uint64_t chunk[MOST], all = 1;
        pyri_run run;
        for (int d = 0; d < ndim; d++) {
            chunk[d] = rng_from(&r, 1, 9);
            all *= SIDE;
        }
        pick_run(&r, ndim, &run);
        v = (visits){.ndim = ndim};
        OK(pyri_plan_run(chunk, ndim, &run, NULL, visit, &v));
        bool along[MOST][SIDE];
        for (int d = 0; d < ndim; d++)
            for (uint64_t i = 0; i < SIDE; i++)
                along[d][i] = falls_into(&run, d, chunk[d], i);
        for (uint64_t n = 0; n < all; n++) {
            uint64_t rest = n;
            bool want = true;
            for (int d = ndim - 1; d >= 0; d--, rest /= SIDE)
                want &= along[d][rest % SIDE];
            REQUIRE(v.times[n] == want);
            seen += want;
        }
        CHECK(v.calls == seen);
    }
}

static void
a_run_without_cells_visits_nothing(void)
{
    static visits v;
    const uint64_t chunk[2] = {4, 4};
    const pyri_run none = {{1, 1}, {2, 2}, {3, 0}, {5, 5}};
    const pyri_run thin = {{1, 1}, {0, 2}, {3, 1}, {5, 5}};
    v = (visits){.ndim = 2};
    OK(pyri_plan_run(chunk, 2, &none, NULL, visit, &v));
    OK(pyri_plan_run(chunk, 2, &thin, NULL, visit, &v));
    CHECK(v.calls == 0);
}

static void
a_visitor_can_end_the_plan(void)
{
    static visits v;
    const uint64_t chunk[1] = {1};
    const pyri_run run = {{0}, {10}, {1}, {10}};
    v = (visits){.ndim = 1, .stop_at = 3};
    CHECK(pyri_plan_run(chunk, 1, &run, NULL, visit, &v) == 42);
    CHECK(v.calls == 3);
}

static int
keep_last(void *ctx, const uint64_t *pos)
{
    uint64_t *seen = ctx;
    seen[0]++;
    seen[1] = pos[0];
    return 0;
}

/* It costs what it touches, not what it spans; and nothing wraps. */
static void
a_run_that_jumps_far_visits_what_it_touches(void)
{
    uint64_t seen[2] = {0, 0};
    const uint64_t chunk[1] = {10};
    const pyri_run far = {{5}, {1}, {3}, {1ull << 62}};
    OK(pyri_plan_run(chunk, 1, &far, NULL, keep_last, seen));
    CHECK(seen[0] == 3 && seen[1] == ((1ull << 63) + 5) / 10);
    const pyri_run last = {{UINT64_MAX - 25}, {25}, {1}, {25}};
    seen[0] = 0;
    OK(pyri_plan_run(chunk, 1, &last, NULL, keep_last, seen));
    CHECK(seen[1] == (UINT64_MAX - 1) / 10);
    CHECK(seen[0] == (UINT64_MAX - 1) / 10 - (UINT64_MAX - 25) / 10 + 1);
}

TESTS(T(every_chunk_of_a_run_is_visited_once_and_no_other),
      T(a_run_without_cells_visits_nothing), T(a_visitor_can_end_the_plan),
      T(a_run_that_jumps_far_visits_what_it_touches))
