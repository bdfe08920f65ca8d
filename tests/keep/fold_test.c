/*
 * keep/fold_test.c - fragments of kept versions that others hide are written
 * anew when versions go: nothing that can be asked changes but what the store
 * takes.
 */
#include "keep/halted.h"
#include "keep/ledger.h"
#include "keep/stage.h"
#include "support/rng.h"

enum { SIDE = 64 };

static const uint64_t zero[2];

static void
open_stage(stage *s, const char *url)
{
    stage_open(s, url ? url : tmp_fresh("fold"), 60000, 2, SIDE, 32);
}

static void
write_box(pyr_array *a, rng *r, uint64_t most)
{
    static uint32_t cells[SIDE * SIDE];
    uint64_t at[2], size[2];
    pyr_info info;
    OK(pyr_array_info(a, PYR_LATEST, &info));
    for (int d = 0; d < 2; d++) {
        at[d] = rng_below(r, info.shape[d]);
        size[d] = rng_from(r, 1, most < info.shape[d] - at[d]
                                     ? most
                                     : info.shape[d] - at[d]);
    }
    for (uint64_t i = 0; i < size[0] * size[1]; i++)
        cells[i] = (uint32_t)rng_next(r);
    OK(pyr_write(a, at, size, cells, NULL));
}

/* What can be asked of a version: cells, digest, statistics. */
typedef struct seen {
    bool there;
    int digested;
    unsigned char digest[16];
    pyr_stats stats;
    uint32_t cells[SIDE * SIDE];
} seen;

static void
look(pyr_array *a, pyr_version v, seen *out)
{
    pyr_info info;
    *out = (seen){.there = pyr_array_info(a, v, &info) == 0};
    if (!out->there)
        return;
    OK(pyr_digest(a, v, out->digest, &out->digested));
    OK(pyr_read(a, v, zero, info.shape, out->cells));
    OK(pyr_stat(a, v, zero, info.shape, 0, &out->stats));
}

static void
same_as(pyr_array *a, pyr_version v, const seen *was)
{
    seen now;
    look(a, v, &now);
    if (now.there != was->there ||
        memcmp(now.cells, was->cells, sizeof now.cells) != 0 ||
        now.digested != was->digested ||
        memcmp(now.digest, was->digest, sizeof now.digest) != 0 ||
        now.stats.sum != was->stats.sum || now.stats.min != was->stats.min ||
        now.stats.max != was->stats.max)
        CHECK_NOTE("version %d differs", (int)v);
}

static void
nothing_is_harmed(pyr_store *store)
{
    pyr_verified found;
    OK(pyr_verify(store, &(pyr_verify_spec){.deep = true}, &found));
    CHECK(found.harms == 0 && found.orphan_blobs == 0 &&
          found.orphan_nodes == 0);
}

/* Small writes and large ones, lists, resizes; a clone now and then. */
static void
live(stage *s, rng *r, int n, pyr_array **clone)
{
    for (int i = 0; i < n; i++) {
        unsigned what = (unsigned)rng_below(r, 20);
        uint64_t shape[2] = {rng_from(r, SIDE / 2, SIDE),
                             rng_from(r, SIDE / 2, SIDE)};
        if (what == 0)
            OK(pyr_resize(s->array, shape, NULL));
        else if (what == 1 && !*clone)
            OK(pyr_clone(s->array, PYR_LATEST, "clone", clone));
        else if (what < 5 && *clone)
            write_box(*clone, r, 20);
        else
            write_box(s->array, r, what < 8 ? SIDE : 12);
    }
}

static void
forget_some(pyr_array *a, rng *r)
{
    pyr_version latest;
    OK(pyr_latest(a, &latest));
    for (pyr_version v = 1; v < latest; v++)
        if (!rng_once_in(r, 6))
            pyr_forget(a, v, v, 1, 0, NULL); /* the newest stays */
}

static void
run_case(const char *url, uint64_t seed, int64_t *folded)
{
    stage s;
    pyr_array *clone = NULL, *both[2];
    static seen was[2][400];
    pyr_reclaimed gone;
    rng r = rng_of(seed);
    open_stage(&s, url);
    for (int round = 0; round < 3; round++) {
        live(&s, &r, 60, &clone);
        both[0] = s.array;
        both[1] = clone;
        for (int k = 0; k < 2 && both[k]; k++) {
            forget_some(both[k], &r);
            for (pyr_version v = 0; v < 400; v++)
                look(both[k], v, &was[k][v]);
        }
        OK(pyr_reclaim(s.store, NULL, &gone));
        *folded += gone.folded;
        for (int k = 0; k < 2 && both[k]; k++)
            for (pyr_version v = 0; v < 400; v++)
                same_as(both[k], v, &was[k][v]);
        ledger_check(s.store);
        nothing_is_harmed(s.store);
    }
    pyr_array_close(clone);
    close_stage(&s);
}

static void
run_cases(const char *url)
{
    int64_t folded = 0;
    for (uint64_t i = 0; i < by_scale(4, 20, 400); i++)
        run_case(url, test_seed() + i, &folded);
    printf("# %lld bytes were folded\n", (long long)folded);
    CHECK(folded > 0);
}

static void
cells_digests_and_statistics_stay_on_files(void)
{
    run_cases(NULL);
}

static void
cells_digests_and_statistics_stay_in_memory(void)
{
    run_cases("mem:");
}

/* --- who wrote a cell, and what differs ---------------------------------- */

static int
add_box(void *ctx, int ndim, const uint64_t *offset, const uint64_t *size)
{
    uint8_t *map = ctx;
    (void)ndim;
    for (uint64_t y = 0; y < size[0]; y++)
        memset(map + (offset[0] + y) * SIDE + offset[1], 1, size[1]);
    return 0;
}

static void
differences_and_last_changes_hold_as_far_as_versions_are_kept(void)
{
    stage s;
    pyr_reclaimed gone;
    rng r = rng_of(test_seed());
    static uint32_t a[SIDE * SIDE], b[SIDE * SIDE];
    static uint8_t map[SIDE * SIDE];
    uint64_t shape[2] = {SIDE, SIDE};
    open_stage(&s, NULL);
    for (int i = 0; i < 90; i++)
        write_box(s.array, &r, 14);
    OK(pyr_forget(s.array, 1, 29, 1, 0, NULL));
    OK(pyr_forget(s.array, 31, 59, 1, 0, NULL));
    OK(pyr_reclaim(s.store, NULL, &gone));
    CHECK(gone.folded > 0);
    OK(pyr_diff(s.array, 30, 60, add_box, map));
    OK(pyr_read(s.array, 30, zero, shape, a));
    OK(pyr_read(s.array, 60, zero, shape, b));
    for (uint64_t i = 0; i < SIDE * SIDE; i++) {
        pyr_version v;
        uint64_t at[2] = {i / SIDE, i % SIDE}, one[2] = {1, 1};
        CHECK(a[i] == b[i] || map[i]);
        OK(pyr_last_change(s.array, 60, at, one, &v));
        CHECK(a[i] == b[i] ? v <= 60 : v > 30 && v <= 60);
    }
    close_stage(&s);
}

/* --- writers at a chosen point ------------------------------------------- */

static int
write_one(void *array)
{
    uint32_t cells[4] = {1, 2, 3, 4};
    return pyr_write(array, (uint64_t[2]){3, 3}, (uint64_t[2]){2, 2}, cells,
                     NULL);
}

/* A writer has looked at leaves that are folded before it is done. */
static void
a_version_that_is_being_made_lies_on_the_fold(void)
{
    static const char *const points[] = {"write.synced", "write.taken",
                                         "write.built"};
    static uint32_t was[SIDE * SIDE], now[SIDE * SIDE];
    uint64_t shape[2] = {SIDE, SIDE};
    for (int i = 0; i < 3; i++) {
        stage s;
        pyr_reclaimed gone;
        rng r = rng_of(test_seed() + (uint64_t)i);
        open_stage(&s, NULL);
        for (int k = 0; k < 40; k++)
            write_box(s.array, &r, 30);
        OK(pyr_read(s.array, PYR_LATEST, zero, shape, was));
        halted h;
        halt_begin(&h, points[i], write_one, s.array);
        OK(pyr_forget(s.array, 0, PYR_LATEST, 1, 0, NULL));
        OK(pyr_reclaim(s.store, NULL, &gone));
        CHECK(gone.left == 0 && gone.folded > 0);
        halt_end(&h);
        for (uint32_t k = 0; k < 4; k++)
            was[(3 + k / 2) * SIDE + 3 + k % 2] = k + 1;
        OK(pyr_read(s.array, PYR_LATEST, zero, shape, now));
        CHECK(memcmp(was, now, sizeof now) == 0);
        ledger_check(s.store);
        nothing_is_harmed(s.store);
        close_stage(&s);
    }
    pyri_fault_hook = NULL;
}

/* A version that is complete, and waits for one before it. */
static void
a_version_that_waits_keeps_what_it_lies_on(void)
{
    stage s;
    pyr_reclaimed gone;
    pyr_status status;
    static uint32_t now[SIDE * SIDE];
    uint64_t shape[2] = {SIDE, SIDE};
    rng r = rng_of(test_seed());
    open_stage(&s, NULL);
    for (int k = 0; k < 40; k++)
        write_box(s.array, &r, 30);
    halted low;
    halt_begin(&low, "write.taken", write_one, s.array);
    pyr_version high;
    OK(pyr_write_list(s.array,
                      &(pyr_part){.offset = (uint64_t[2]){40, 3},
                                  .size = (uint64_t[2]){1, 2},
                                  .buf = (uint32_t[2]){7, 8}},
                      1, &(pyr_write_options){.flags = PYR_WRITE_NOWAIT},
                      &high));
    OK(pyr_store_status(s.store, &status, NULL, NULL));
    CHECK(status.in_flight == 2);
    OK(pyr_forget(s.array, 0, PYR_LATEST, 1, 0, NULL));
    OK(pyr_reclaim(s.store, NULL, &gone));
    halt_end(&low);
    OK(pyr_wait(s.array, high, -1));
    OK(pyr_read(s.array, PYR_LATEST, zero, shape, now));
    CHECK(now[3 * SIDE + 3] == 1 && now[40 * SIDE + 4] == 8);
    ledger_check(s.store);
    nothing_is_harmed(s.store);
    close_stage(&s);
    pyri_fault_hook = NULL;
}

/* Rows from..to, each cell with a number of its own. */
static pyr_part
rows(uint64_t from, uint64_t to, uint32_t number)
{
    static uint32_t cells[2][SIDE * SIDE];
    static uint64_t at[2][2], size[2][2];
    unsigned k = number % 2; /* two may be in use */
    at[k][0] = from;
    size[k][0] = to - from;
    size[k][1] = SIDE;
    for (uint32_t i = 0; i < SIDE * SIDE; i++)
        cells[k][i] = (number << 16) + i + 1;
    return (pyr_part){.offset = at[k], .size = size[k], .buf = cells[k]};
}

/*
 * Two writers fold the same chain, one after the other: each leaf has a fold
 * of its own, F and G, and above it a box that the version after hides.
 *
 *     v        [ upper | lower | F ]
 *     v + 1    [ own | upper | lower | G ]
 *     v + 2    [ own | upper | G ]
 *
 * Lower and F become one when all before v goes. With that on top, G shows
 * nothing in v + 1; but it does in v + 2. Whoever folds, it is when a chain has
 * some length: `n` fragments here.
 */
static void
hide_and_show(uint64_t n)
{
    static uint32_t was[2][SIDE * SIDE], now[SIDE * SIDE];
    uint64_t shape[2] = {SIDE, SIDE};
    stage s;
    halted h;
    pyr_version v;
    pyr_reclaimed gone;
    pyr_part part = rows(0, SIDE, 0), two[2];
    stage_open(&s, tmp_fresh("fold"), 60000, 2, SIDE, SIDE);
    OK(pyr_write_list(s.array, &part, 1, NULL, NULL));
    for (uint64_t i = 1; i < n; i++) {
        uint64_t at[2] = {16 + i % 48 / 8 * 8 - i / 48, i % 8 * 8};
        part = rows(0, 8, (uint32_t)i);
        OK(pyr_write(s.array, at, (uint64_t[2]){8, 8}, part.buf, NULL));
    }
    halt_begin(&h, "write.synced", write_one, s.array);
    two[0] = rows(0, 8, 100);
    two[1] = rows(4, 12, 101);
    OK(pyr_write_list(s.array, two, 2, NULL, &v));
    halt_end(&h);
    part = rows(0, 8, 102);
    OK(pyr_write_list(s.array, &part, 1, NULL, NULL));
    for (pyr_version i = 0; i < 2; i++)
        OK(pyr_read(s.array, v + 1 + i, zero, shape, was[i]));
    for (pyr_version last = v - 1; last <= v; last++) {
        OK(pyr_forget(s.array, 0, last, 1, 0, NULL));
        OK(pyr_reclaim(s.store, NULL, &gone));
        CHECK(gone.left == 0);
    }
    for (pyr_version i = 0; i < 2; i++) {
        OK(pyr_read(s.array, v + 1 + i, zero, shape, now));
        CHECK(memcmp(was[i], now, sizeof now) == 0);
    }
    ledger_check(s.store);
    nothing_is_harmed(s.store);
    close_stage(&s);
}

static void
what_a_fold_hides_in_one_leaf_is_shown_by_the_next(void)
{
    for (uint64_t n = 8; n < 80; n++)
        hide_and_show(n);
    pyri_fault_hook = NULL;
}

TESTS(T(cells_digests_and_statistics_stay_on_files),
      T(cells_digests_and_statistics_stay_in_memory),
      T(differences_and_last_changes_hold_as_far_as_versions_are_kept),
      T(a_version_that_is_being_made_lies_on_the_fold),
      T(a_version_that_waits_keeps_what_it_lies_on),
      T(what_a_fold_hides_in_one_leaf_is_shown_by_the_next))
