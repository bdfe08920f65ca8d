/*
 * keep/newest_races_test.c - pyr_fold() beside writers, at chosen points and in
 * other processes; and killed.
 */
#include "keep/halted.h"
#include "keep/newest.h"
#include "support/proc.h"

#include <sys/mman.h>

enum { BOUND_MS = 60000 };

/* --- writers that stand still --------------------------------------------- */

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
    for (int i = 0; i < 3; i++) {
        stage s;
        rng r;
        pyr_folded done;
        open_stage(&s, NULL, &r, 40);
        past p = keep_past(s.array);
        OK(pyr_read(s.array, PYR_LATEST, zero, whole, was));
        halted h;
        halt_begin(&h, points[i], write_one, s.array);
        OK(pyr_fold(s.store, NULL, 0, NULL, &done));
        CHECK(done.left == 0 && done.chunks > 0);
        halt_end(&h);
        for (uint32_t k = 0; k < 4; k++)
            was[(3 + k / 2) * SIDE + 3 + k % 2] = k + 1;
        OK(pyr_read(s.array, PYR_LATEST, zero, whole, now));
        CHECK(memcmp(was, now, sizeof now) == 0);
        CHECK(links_of(s.array, PYR_LATEST).longest == 2);
        same_past(s.array, &p);
        ledger_check(s.store);
        nothing_is_harmed(s.store);
        free(p.cells);
        close_stage(&s);
    }
    pyri_fault_hook = NULL;
}

/* A version that is complete, and waits for one before it: its chunk is left
 * alone, the others are folded. */
static void
a_version_that_waits_keeps_what_it_lies_on(void)
{
    stage s;
    rng r;
    pyr_folded done;
    pyr_version high;
    static uint32_t now[SIDE * SIDE];
    open_stage(&s, NULL, &r, 60);
    past p = keep_past(s.array);
    halted low;
    halt_begin(&low, "write.taken", write_one, s.array);
    OK(pyr_write_list(s.array,
                      &(pyr_part){.offset = (uint64_t[2]){40, 3},
                                  .size = (uint64_t[2]){1, 2},
                                  .buf = (uint32_t[2]){7, 8}},
                      1, &(pyr_write_options){.flags = PYR_WRITE_NOWAIT},
                      &high));
    OK(pyr_fold(s.store, NULL, 0, NULL, &done));
    CHECK(done.left == 1 && done.chunks == CHUNKS - 1);
    halt_end(&low);
    OK(pyr_wait(s.array, high, -1));
    OK(pyr_read(s.array, PYR_LATEST, zero, whole, now));
    CHECK(now[3 * SIDE + 3] == 1 && now[40 * SIDE + 4] == 8);
    OK(pyr_fold(s.store, NULL, 0, NULL, &done));
    CHECK(done.left == 0 && done.chunks == 2); /* and that of the other */
    same_past(s.array, &p);
    ledger_check(s.store);
    nothing_is_harmed(s.store);
    free(p.cells);
    close_stage(&s);
    pyri_fault_hook = NULL;
}

static bool
has_prev(pyr_array *a, pyr_version v)
{
    pyri_snapshot s;
    pyri_node leaf;
    pyri_leaf_walk w;
    pyri_box domain;
    uint64_t pos[PYR_MAX_DIMS] = {0};
    bool found;
    OK(pyri_snapshot_open(a->array, v, &s));
    OK(pyri_tree_leaf_at(&s.tree, pos, &leaf, NULL, &found));
    REQUIRE(found);
    pyri_grid_domain(&s.grid, 0, pos, &domain);
    OK(pyri_leaf_begin(&leaf, 2, &domain, &w));
    pyri_snapshot_close(&s);
    return w.prev != 0;
}

enum { WIDE = 256, STRIPES = 32, STRIPE = WIDE / STRIPES };

/* Every second cell of a part of the chunk. */
static int
write_gaps(void *array)
{
    static uint32_t cells[30 * 30];
    pyr_part part = {.offset = (uint64_t[2]){100, 100},
                     .size = (uint64_t[2]){1, 1},
                     .count = (uint64_t[2]){30, 30},
                     .stride = (uint64_t[2]){2, 1},
                     .buf = cells};
    return pyr_write_list(array, &part, 1, NULL, NULL);
}

/* One chunk in stripes, each a version; the largest cell is the first. A plain
 * write on them folds them, one with gaps does not yet. */
static void
write_stripes(pyr_array *a, uint32_t *cells)
{
    for (uint64_t i = 0; i < STRIPES; i++) {
        for (uint32_t k = 0; k < STRIPE * WIDE; k++)
            cells[k] = 1000000 - k - (uint32_t)i * 7;
        OK(pyr_write(a, (uint64_t[2]){i * STRIPE, 0},
                     (uint64_t[2]){STRIPE, WIDE}, cells, NULL));
    }
}

/*
 * A version of the clone lies on a leaf of one that has gone, which names all
 * stripes, but shows none of them: it brought a fold of its own. It must not
 * go on naming them, as they go with the versions before the fold.
 */
static void
what_a_leaf_names_and_does_not_show_is_not_lost(void)
{
    stage s;
    pyr_array *clone;
    pyr_folded done;
    halted low;
    static uint32_t cells[WIDE * WIDE], now[WIDE * WIDE], was[WIDE * WIDE];
    uint64_t all[2] = {WIDE, WIDE};
    stage_open(&s, tmp_fresh("newest"), 60000, 2, WIDE, WIDE);
    write_stripes(s.array, cells);
    OK(pyr_clone(s.array, PYR_LATEST, "clone", &clone));
    halt_begin(&low, "write.taken", write_gaps, clone);
    OK(pyr_write_list(clone,
                      &(pyr_part){.offset = zero,
                                  .size = (uint64_t[2]){30, 30},
                                  .buf = cells},
                      1, &(pyr_write_options){.flags = PYR_WRITE_NOWAIT},
                      NULL));
    halt_end(&low);
    OK(pyr_wait(clone, 2, -1));
    OK(pyr_forget(clone, 1, 1, 1, 0, NULL));
    OK(pyr_reclaim(s.store, NULL, NULL));
    OK(pyr_read(clone, 2, zero, all, was));
    REQUIRE(has_prev(clone, 2));
    OK(pyr_fold(s.store, (const char *[]){"a"}, 1, NULL, &done));
    CHECK(done.chunks == 1 && done.fragments == STRIPES);
    ledger_check(s.store);
    OK(pyr_forget(s.array, 1, STRIPES - 1, 1, 0, NULL));
    OK(pyr_reclaim(s.store, NULL, NULL));
    ledger_check(s.store);
    OK(pyr_read(clone, 2, zero, all, now));
    CHECK(memcmp(was, now, sizeof now) == 0);
    nothing_is_harmed(s.store);
    pyr_array_close(clone);
    close_stage(&s);
    pyri_fault_hook = NULL;
}

/* --- writers in other processes ------------------------------------------ */

static void
writers_of_other_processes_go_on_meanwhile(void)
{
    stage s;
    writer w[WRITERS];
    pid_t pids[WRITERS];
    pyr_folded done;
    uint64_t chunks = 0;
    static replay p;
    atomic_int *enough = mmap(NULL, sizeof *enough, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(enough != MAP_FAILED);
    stage_open(&s, tmp_fresh("newest"), 60000, 2, SIDE, CHUNK);
    for (unsigned i = 0; i < WRITERS; i++) {
        w[i] = (writer){s.url, i + 1, PYR_OPEN_NO_UPKEEP, 0, enough};
        pids[i] = proc_fork(write_many, &w[i]);
    }
    for (int i = 0; i < WRITERS; i++) {
        proc_end end = proc_wait(pids[i], 0);
        for (; end.late; end = proc_wait(pids[i], 0)) {
            OK(pyr_fold(s.store, NULL, 0, NULL, &done));
            chunks += done.chunks;
            atomic_store(enough, chunks > 0);
        }
        CHECK(end.signal == 0 && end.code == 0);
    }
    p = (replay){.array = s.array};
    OK(pyr_history(s.array, 1, PYR_LATEST, compare_next, &p));
    pyr_version latest;
    OK(pyr_latest(s.array, &latest));
    CHECK(latest >= WRITERS * WRITES);
    printf("# %llu chunks were folded beside writers\n",
           (unsigned long long)chunks);
    CHECK(chunks > 0);
    ledger_check(s.store);
    nothing_is_harmed(s.store);
    munmap(enough, sizeof *enough);
    close_stage(&s);
}

/* --- killed -------------------------------------------------------------- */

static int
fold_and_die(void *url)
{
    pyr_store *store;
    if (pyr_open(url, 0, &store) < 0)
        return 1;
    pyri_fault_hook = die_there;
    pyr_fold(store, NULL, 0, NULL, NULL);
    return 2;
}

static void
who_is_killed_leaves_all_as_it_was(void)
{
    static const char *const points[] = {"fold.put", "fold.commit",
                                         "fold.done"};
    for (int i = 0; i < 3; i++) {
        stage s;
        rng r;
        pyr_folded done;
        open_stage(&s, NULL, &r, 40);
        past p = keep_past(s.array);
        pyr_array_close(s.array);
        pyr_close(s.store);
        fatal = points[i];
        proc_end end = proc_wait(proc_fork(fold_and_die, s.url), BOUND_MS);
        REQUIRE(end.signal == SIGKILL);
        reopen_stage(&s, PYR_OPEN_NO_UPKEEP);
        same_past(s.array, &p);
        OK(pyr_reclaim(s.store, NULL, NULL));
        ledger_check(s.store);
        nothing_is_harmed(s.store);
        OK(pyr_fold(s.store, NULL, 0, NULL, &done));
        CHECK((done.chunks > 0) == (i < 2)); /* done is done */
        CHECK(links_of(s.array, PYR_LATEST).longest == 1);
        same_past(s.array, &p);
        free(p.cells);
        close_stage(&s);
    }
}

TESTS(T(a_version_that_is_being_made_lies_on_the_fold),
      T(a_version_that_waits_keeps_what_it_lies_on),
      T(what_a_leaf_names_and_does_not_show_is_not_lost),
      T(writers_of_other_processes_go_on_meanwhile),
      T(who_is_killed_leaves_all_as_it_was))
