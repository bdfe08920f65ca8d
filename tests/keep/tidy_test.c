/*
 * keep/tidy_test.c - chunks in many pieces that are folded behind the back of
 * those who read them (src/array/tidy.c). Processes: tidy_crowd_test.c.
 */
#include "base/fault.h"
#include "keep/newest.h"
#include "support/proc.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { BOUND_MS = 60000, READS = 200000 };

static void
pause_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

/* An array with chains, opened anew. */
static void
open_chains(stage *s, rng *r, int boxes, unsigned flags)
{
    open_stage(s, NULL, r, boxes);
    pyr_array_close(s->array);
    pyr_close(s->store);
    reopen_stage(s, flags);
}

static void
close_whole(stage *s, past *p)
{
    same_past(s->array, p);
    ledger_check(s->store);
    nothing_is_harmed(s->store);
    free(p->cells);
    close_stage(s);
}

/* --- readers ------------------------------------------------------------- */

static int
read_often(pyr_array *a, pyr_version v, int until)
{
    static uint32_t cells[SIDE * SIDE];
    int n = 0;
    for (; n < READS && links_of(a, PYR_LATEST).longest > until; n += 100)
        for (int i = 0; i < 100; i++)
            OK(pyr_read(a, v, zero, whole, cells));
    return n;
}

static void
what_is_read_often_is_folded(void)
{
    stage s;
    rng r;
    open_chains(&s, &r, 40, PYR_OPEN_NO_UPKEEP);
    past p = keep_past(s.array);
    CHECK(links_of(s.array, PYR_LATEST).longest > 4);
    pyr_array_close(s.array);
    pyr_close(s.store);
    reopen_stage(&s, 0);
    CHECK(read_often(s.array, PYR_LATEST, 1) < READS);
    CHECK(links_of(s.array, PYR_LATEST).n == CHUNKS);
    close_whole(&s, &p);
}

/* A chunk of 1 MiB is not copied for the sake of a few cells. */
static void
what_small_writes_did_not_bring_is_not_written(void)
{
    enum { LARGE = 512 };
    stage s;
    uint32_t *cells = calloc(LARGE * LARGE, 4), one = 7, got[64];
    REQUIRE(cells);
    cells[1] = 1;
    stage_open(&s, tmp_fresh("tidy"), 60000, 2, LARGE, LARGE);
    OK(pyr_write(s.array, zero, (uint64_t[2]){LARGE, LARGE}, cells, NULL));
    for (uint64_t i = 0; i < 8; i++)
        OK(pyr_write(s.array, (uint64_t[2]){i, i * 60}, (uint64_t[2]){1, 1},
                     &one, NULL));
    pyr_array_close(s.array);
    pyr_close(s.store);
    reopen_stage(&s, 0);
    uint64_t before = ledger_check(s.store);
    for (int i = 0; i < 5000; i++)
        OK(pyr_read(s.array, PYR_LATEST, zero, (uint64_t[2]){1, 64}, got));
    pause_ms(100);
    CHECK(ledger_check(s.store) < before + 65536);
    free(cells);
    close_stage(&s);
}

static void
who_reads_an_old_snapshot_folds_nothing(void)
{
    stage s;
    rng r;
    pyr_version latest;
    static uint32_t cells[SIDE * SIDE];
    open_chains(&s, &r, 20, PYR_OPEN_NO_UPKEEP);
    OK(pyr_latest(s.array, &latest));
    for (uint64_t i = 0; i < CHUNKS; i++) /* new leaves everywhere */
        OK(pyr_write(s.array, (uint64_t[2]){i / 2 * CHUNK, i % 2 * CHUNK},
                     (uint64_t[2]){2, 2}, cells, NULL));
    pyr_array_close(s.array);
    pyr_close(s.store);
    reopen_stage(&s, 0);
    for (int i = 0; i < 5000; i++)
        OK(pyr_read(s.array, latest, zero, whole, cells));
    pause_ms(100);
    CHECK(folds_of(s.array) == 0);
    close_stage(&s);
}

static void
who_may_not_or_must_not_folds_nothing(void)
{
    static const unsigned flags[] = {PYR_OPEN_READONLY, PYR_OPEN_NO_UPKEEP};
    static uint32_t cells[SIDE * SIDE];
    for (int k = 0; k < 2; k++) {
        stage s;
        rng r;
        open_chains(&s, &r, 40, flags[k]);
        for (int i = 0; i < 5000; i++)
            OK(pyr_read(s.array, PYR_LATEST, zero, whole, cells));
        pause_ms(100);
        CHECK(folds_of(s.array) == 0);
        close_stage(&s);
    }
}

static pthread_t reading;
static atomic_int refused;

static int
disk_is_full_for_others(const char *name)
{
    if (strcmp(name, "segment.append") != 0 ||
        pthread_equal(pthread_self(), reading))
        return 0;
    atomic_fetch_add(&refused, 1);
    return PYR_ENOSPC;
}

/* It is tried once, and not again; all else goes on. */
static void
where_folding_fails_nothing_else_does(void)
{
    stage s;
    rng r;
    static uint32_t cells[SIDE * SIDE];
    reading = pthread_self();
    atomic_store(&refused, 0);
    pyri_fault_hook = disk_is_full_for_others; /* before there is a thread */
    open_chains(&s, &r, 40, 0);
    for (int i = 0; i < READS && !atomic_load(&refused); i++)
        OK(pyr_read(s.array, PYR_LATEST, zero, whole, cells));
    pause_ms(100);
    int once = atomic_load(&refused); /* in more than one place, maybe */
    CHECK(once > 0);
    for (int i = 0; i < 5000; i++)
        OK(pyr_read(s.array, PYR_LATEST, zero, whole, cells));
    write_box(s.array, &r, 16);
    pause_ms(100);
    CHECK(atomic_load(&refused) == once);
    CHECK(folds_of(s.array) == 0);
    past p = keep_past(s.array);
    OK(pyr_reclaim(s.store, NULL, NULL)); /* blobs that were put for it */
    close_whole(&s, &p);
    pyri_fault_hook = NULL;
}

/* --- others -------------------------------------------------------------- */

static atomic_int folding;

static int
fold_slowly(const char *name)
{
    if (strcmp(name, "fold.put") == 0) {
        atomic_store(&folding, 1);
        pause_ms(200);
    }
    return 0;
}

/* It has what one of them at a time may have; who asks for it waits. */
static void
reclaiming_and_folding_wait_for_it(void)
{
    stage s;
    rng r;
    static uint32_t cells[SIDE * SIDE];
    for (int k = 0; k < 2; k++) {
        pyri_fault_hook = fold_slowly; /* before there is a thread */
        open_chains(&s, &r, 40, 0);
        past p = keep_past(s.array);
        atomic_store(&folding, 0);
        for (int i = 0; i < READS && !atomic_load(&folding); i++)
            OK(pyr_read(s.array, PYR_LATEST, zero, whole, cells));
        CHECK(atomic_load(&folding));
        if (k == 0)
            OK(pyr_reclaim(s.store, NULL, NULL));
        else
            OK(pyr_fold(s.store, NULL, 0, NULL, NULL));
        close_whole(&s, &p);
        pyri_fault_hook = NULL;
    }
}

static int
close_inherited(void *ctx)
{
    stage *s = ctx;
    pyr_array_close(s->array);
    pyr_close(s->store);
    return 0;
}

static void
a_child_closes_what_it_inherited(void)
{
    stage s;
    rng r;
    open_chains(&s, &r, 40, 0);
    static uint32_t cells[SIDE * SIDE];
    for (int i = 0; i < 60; i++) /* the thread is at work */
        OK(pyr_read(s.array, PYR_LATEST, zero, whole, cells));
    proc_end end = proc_wait(proc_fork(close_inherited, &s), BOUND_MS);
    CHECK(!end.late && end.signal == 0 && end.code == 0);
    write_box(s.array, &r, 16);
    past p = keep_past(s.array);
    close_whole(&s, &p);
}

TESTS(T(what_is_read_often_is_folded),
      T(what_small_writes_did_not_bring_is_not_written),
      T(who_reads_an_old_snapshot_folds_nothing),
      T(who_may_not_or_must_not_folds_nothing),
      T(where_folding_fails_nothing_else_does),
      T(reclaiming_and_folding_wait_for_it),
      T(a_child_closes_what_it_inherited))
