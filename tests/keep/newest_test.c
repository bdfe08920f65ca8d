/*
 * keep/newest_test.c - pyr_fold(): chains of the newest snapshot become short,
 * and what that takes.
 */
#include "keep/newest.h"

/* --- short chains -------------------------------------------------------- */

static void
chains_become_short(const char *url)
{
    stage s;
    rng r;
    pyr_folded done, again;
    open_stage(&s, url, &r, 60);
    past p = keep_past(s.array);
    links before = links_of(s.array, PYR_LATEST);
    CHECK(before.n > 4 * CHUNKS);
    OK(pyr_fold(s.store, NULL, 0, NULL, &done));
    links after = links_of(s.array, PYR_LATEST);
    CHECK(after.n == CHUNKS);
    CHECK(done.chunks > 0 && done.chunks <= CHUNKS && done.left == 0);
    CHECK(done.fragments - done.chunks == (uint64_t)(before.n - after.n));
    CHECK(done.written >= done.chunks * 256 &&
          done.written < 2 * SIDE * SIDE * 4);
    CHECK(done.erased < done.written); /* but for the newest, all is needed */
    OK(pyr_fold(s.store, NULL, 0, NULL, &again));
    CHECK(again.chunks == 0 && again.written == 0);
    pyr_version latest;
    OK(pyr_latest(s.array, &latest));
    CHECK(latest == p.latest); /* none was made */
    same_past(s.array, &p);
    ledger_check(s.store);
    free(p.cells);
    close_stage(&s);
}

static void
chains_become_short_and_stay_so(void)
{
    chains_become_short(NULL);
}

static void
chains_become_short_in_memory(void)
{
    chains_become_short("mem:");
}

/* Five cells in a chunk of 1 MiB become one piece of a quarter of that; which
 * is then worth being one with the rest, in the same run. */
static void
what_comes_of_a_fold_is_folded_at_once(void)
{
    enum { LARGE = 512, PART = 250 };
    stage s;
    pyr_folded done;
    uint32_t *cells = calloc(LARGE * LARGE, 4), one = 7;
    REQUIRE(cells);
    cells[1] = 1;
    stage_open(&s, tmp_fresh("newest"), 60000, 2, LARGE, LARGE);
    OK(pyr_write(s.array, zero, (uint64_t[2]){LARGE, LARGE}, cells, NULL));
    for (uint64_t i = 0; i < 5; i++)
        OK(pyr_write(s.array, (uint64_t[2]){i % 2 * PART, i / 2 * PART / 2},
                     (uint64_t[2]){1, 1}, &one, NULL));
    OK(pyr_fold(s.store, NULL, 0, NULL, &done));
    CHECK(done.chunks == 1 && done.fragments == 6);
    CHECK(links_of(s.array, PYR_LATEST).n == 1);
    OK(pyr_fold(s.store, NULL, 0, NULL, &done));
    CHECK(done.chunks == 0);
    free(cells);
    close_stage(&s);
}

/* But two are not worth it. */
static void
a_large_chunk_is_not_copied_for_two_cells(void)
{
    enum { LARGE = 512 };
    stage s;
    pyr_folded done;
    uint32_t *cells = calloc(LARGE * LARGE, 4), one = 7;
    REQUIRE(cells);
    cells[1] = 1;
    stage_open(&s, tmp_fresh("newest"), 60000, 2, LARGE, LARGE);
    OK(pyr_write(s.array, zero, (uint64_t[2]){LARGE, LARGE}, cells, NULL));
    for (uint64_t i = 0; i < 2; i++)
        OK(pyr_write(s.array, (uint64_t[2]){i * 400, i * 400},
                     (uint64_t[2]){1, 1}, &one, NULL));
    OK(pyr_fold(s.store, NULL, 0, NULL, &done));
    CHECK(done.chunks == 0 && done.written == 0);
    free(cells);
    close_stage(&s);
}

static void
only_arrays_that_are_named_are_folded(void)
{
    stage s;
    rng r;
    pyr_array *b;
    pyr_folded done;
    open_stage(&s, NULL, &r, 40);
    OK(pyr_create(s.store, "b",
                  &(pyr_spec){.ndim = 2, .shape = whole,
                              .chunk = (uint64_t[2]){CHUNK, CHUNK},
                              .type = PYR_U32},
                  &b));
    for (int i = 0; i < 60; i++)
        write_box(b, &r, 20);
    int before = links_of(s.array, PYR_LATEST).n;
    OK(pyr_fold(s.store, (const char *[]){"b"}, 1, NULL, &done));
    CHECK(done.chunks > 0 && links_of(b, PYR_LATEST).longest == 1);
    CHECK(links_of(s.array, PYR_LATEST).n == before);
    pyr_array_close(b);
    close_stage(&s);
}

static void
a_clone_is_folded_and_its_parent_reads_on(void)
{
    stage s;
    rng r;
    pyr_array *clone;
    pyr_folded done;
    open_stage(&s, NULL, &r, 30);
    OK(pyr_clone(s.array, 20, "clone", &clone));
    for (int i = 0; i < 30; i++)
        write_box(clone, &r, 16);
    past mine = keep_past(s.array), its = keep_past(clone);
    OK(pyr_fold(s.store, (const char *[]){"clone"}, 1, NULL, &done));
    CHECK(done.chunks > 0 && links_of(clone, PYR_LATEST).longest == 1);
    same_past(s.array, &mine);
    same_past(clone, &its);
    /* the same leaves from the other end: all after 20 of both lie on them */
    OK(pyr_fold(s.store, (const char *[]){"a"}, 1, NULL, &done));
    CHECK(done.chunks > 0 && links_of(s.array, PYR_LATEST).longest == 1);
    same_past(s.array, &mine);
    same_past(clone, &its);
    ledger_check(s.store);
    nothing_is_harmed(s.store);
    free(mine.cells);
    free(its.cells);
    pyr_array_close(clone);
    close_stage(&s);
}

/* Leaves of a clone that lie on what its parent's newest snapshot has. */
static void
clones_of_the_newest_snapshot_come_to_lie_on_the_fold(void)
{
    stage s;
    rng r;
    pyr_array *clones[3];
    past its[3];
    pyr_folded done;
    open_stage(&s, NULL, &r, 30);
    for (int i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "c%d", i);
        OK(pyr_clone(s.array, PYR_LATEST, name, &clones[i]));
        for (int k = 0; k < 3 * i; k++)
            write_box(clones[i], &r, 12);
        its[i] = keep_past(clones[i]);
    }
    OK(pyr_fold(s.store, (const char *[]){"a"}, 1, NULL, &done));
    CHECK(done.chunks > 0);
    ledger_check(s.store);
    for (int i = 0; i < 3; i++) {
        CHECK(links_of(clones[i], PYR_LATEST).n <= CHUNKS + 12 * i);
        same_past(clones[i], &its[i]);
        free(its[i].cells);
        pyr_array_close(clones[i]);
    }
    OK(pyr_forget(s.array, 0, PYR_LATEST, 1, 0, NULL));
    OK(pyr_reclaim(s.store, NULL, NULL));
    ledger_check(s.store);
    nothing_is_harmed(s.store);
    close_stage(&s);
}

/* --- space --------------------------------------------------------------- */

static void
what_older_snapshots_needed_goes_with_them(void)
{
    stage s;
    rng r;
    pyr_folded done;
    open_stage(&s, NULL, &r, 60);
    uint64_t before = ledger_check(s.store);
    OK(pyr_fold(s.store, NULL, 0, NULL, &done));
    uint64_t folded = ledger_check(s.store);
    CHECK(folded > before && folded <= before + done.written + 4096);
    OK(pyr_forget(s.array, 0, PYR_LATEST, 1, 0, NULL));
    OK(pyr_reclaim(s.store, NULL, NULL));
    uint64_t left = ledger_check(s.store);
    CHECK(left < SIDE * SIDE * 4 + SIDE * SIDE);
    nothing_is_harmed(s.store);
    close_stage(&s);
}

/* Halves of a chunk, which reclaiming leaves as they are. */
static void
what_nobody_needs_goes_at_once(void)
{
    stage s;
    pyr_folded done;
    static uint32_t cells[CHUNK * CHUNK];
    for (int i = 0; i < CHUNK * CHUNK; i++)
        cells[i] = (uint32_t)i;
    stage_open(&s, tmp_fresh("newest"), 60000, 2, SIDE, CHUNK);
    for (uint64_t i = 0; i < 2; i++)
        OK(pyr_write(s.array, (uint64_t[2]){i * CHUNK / 2, 0},
                     (uint64_t[2]){CHUNK / 2, CHUNK}, cells, NULL));
    OK(pyr_forget(s.array, 0, PYR_LATEST, 1, 0, NULL));
    OK(pyr_reclaim(s.store, NULL, NULL));
    REQUIRE(links_of(s.array, PYR_LATEST).n == 2);
    uint64_t before = ledger_check(s.store);
    OK(pyr_fold(s.store, NULL, 0, NULL, &done));
    CHECK(done.chunks == 1 && done.fragments == 2);
    CHECK(done.erased >= sizeof cells && done.erased >= done.written);
    CHECK(ledger_check(s.store) <= before);
    nothing_is_harmed(s.store);
    close_stage(&s);
}

/* --- differences --------------------------------------------------------- */

/* Cells that are told, as a map. */
static int
mark_box(void *ctx, int ndim, const uint64_t *offset, const uint64_t *size)
{
    uint8_t *map = ctx;
    (void)ndim;
    for (uint64_t y = 0; y < size[0]; y++)
        memset(map + (offset[0] + y) * SIDE + offset[1], 1, size[1]);
    return 0;
}

enum { TRACKS = 30 };

/* A diagonal of small boxes, one version each, from version 2 on. */
static void
write_tracks(pyr_array *a)
{
    static const uint32_t cells[4] = {1, 2, 3, 4};
    for (uint64_t i = 0; i < TRACKS; i++)
        OK(pyr_write(a, (uint64_t[2]){i, i + 2}, (uint64_t[2]){2, 2}, cells,
                     NULL));
}

/* Are just those cells told that versions a + 1 to b wrote? */
static void
check_tracks(pyr_array *array, pyr_version a, pyr_version b)
{
    static uint8_t told[SIDE * SIDE], want[SIDE * SIDE];
    memset(told, 0, sizeof told);
    memset(want, 0, sizeof want);
    for (pyr_version v = a + 1; v <= b; v++)
        mark_box(want, 2, (uint64_t[2]){v - 2, v}, (uint64_t[2]){2, 2});
    OK(pyr_diff(array, a, b, mark_box, told));
    CHECK(memcmp(told, want, sizeof told) == 0);
}

static void
differences_are_what_was_written_also_after_a_fold(void)
{
    stage s;
    rng r;
    pyr_folded done;
    open_stage(&s, NULL, &r, 0);
    write_tracks(s.array);
    OK(pyr_fold(s.store, NULL, 0, NULL, &done));
    CHECK(done.chunks > 0);
    pyr_version last = TRACKS + 1;
    check_tracks(s.array, last - 1, last);
    check_tracks(s.array, last - 9, last);
    check_tracks(s.array, 3, last);
    check_tracks(s.array, 3, last - 1); /* that one was not folded */
    /* of what has gone nobody knows what it wrote; but nothing is left out */
    static uint8_t told[SIDE * SIDE];
    OK(pyr_forget(s.array, 10, 12, 1, 0, NULL));
    OK(pyr_reclaim(s.store, NULL, NULL));
    OK(pyr_diff(s.array, 3, last, mark_box, told));
    for (pyr_version v = 4; v <= last; v++)
        CHECK(told[(v - 2) * SIDE + v] && told[(v - 1) * SIDE + v + 1]);
    check_tracks(s.array, 13, last);
    close_stage(&s);
}

/* --- how it is called ---------------------------------------------------- */

typedef struct telling {
    uint64_t calls, done, total;
    int answer;
} telling;

static int
tell(void *ctx, uint64_t done, uint64_t total)
{
    telling *t = ctx;
    CHECK(done == t->done + 1 && done <= total);
    t->calls++;
    t->done = done;
    t->total = total;
    return t->answer;
}

static void
progress_is_told_and_may_end_it(void)
{
    stage s;
    rng r;
    pyr_folded done;
    telling t = {.answer = 7};
    open_stage(&s, NULL, &r, 60);
    past p = keep_past(s.array);
    FAILS(7, pyr_fold(s.store, NULL, 0, &(pyr_progress){tell, &t}, &done));
    CHECK(t.calls == 1 && t.total == CHUNKS);
    same_past(s.array, &p);
    t = (telling){0};
    OK(pyr_fold(s.store, NULL, 0, &(pyr_progress){tell, &t}, &done));
    CHECK(t.done == t.total && t.total == CHUNKS && done.chunks > 0);
    free(p.cells);
    OK(pyr_reclaim(s.store, NULL, NULL));
    ledger_check(s.store);
    close_stage(&s);
}

static void
calls_that_make_no_sense_are_refused(void)
{
    stage s;
    rng r;
    pyr_store *reader;
    pyr_folded done;
    char name[2 * PYR_MAX_NAME] = "";
    open_stage(&s, NULL, &r, 5);
    FAILS(PYR_ENOTFOUND,
          pyr_fold(s.store, (const char *[]){"none"}, 1, NULL, &done));
    FAILS(PYR_EINVAL, pyr_fold(NULL, NULL, 0, NULL, NULL));
    FAILS(PYR_EINVAL, pyr_fold(s.store, NULL, 1, NULL, NULL));
    FAILS(PYR_EINVAL, pyr_fold(s.store, (const char *[]){NULL}, 1, NULL, NULL));
    FAILS(PYR_EINVAL, pyr_fold(s.store, (const char *[]){""}, 1, NULL, NULL));
    memset(name, 'x', sizeof name - 1);
    FAILS(PYR_EINVAL,
          pyr_fold(s.store, (const char *[]){name}, 1, NULL, NULL));
    OK(pyr_fold(s.store, NULL, 0, NULL, NULL));
    OK(pyr_open(s.url, PYR_OPEN_READONLY, &reader));
    FAILS(PYR_EREADONLY, pyr_fold(reader, NULL, 0, NULL, &done));
    pyr_close(reader);
    close_stage(&s);
}

TESTS(T(chains_become_short_and_stay_so), T(chains_become_short_in_memory),
      T(what_comes_of_a_fold_is_folded_at_once),
      T(a_large_chunk_is_not_copied_for_two_cells),
      T(only_arrays_that_are_named_are_folded),
      T(a_clone_is_folded_and_its_parent_reads_on),
      T(clones_of_the_newest_snapshot_come_to_lie_on_the_fold),
      T(what_older_snapshots_needed_goes_with_them),
      T(what_nobody_needs_goes_at_once),
      T(differences_are_what_was_written_also_after_a_fold),
      T(progress_is_told_and_may_end_it),
      T(calls_that_make_no_sense_are_refused))
