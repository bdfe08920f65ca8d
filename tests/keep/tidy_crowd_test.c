/*
 * keep/tidy_crowd_test.c - processes whose chunks are folded behind their
 * backs: many at once, and killed. (Apart from tidy_test.c, as a forked child
 * that starts threads is more than the thread sanitizer can follow.)
 */
#include "base/fault.h"
#include "keep/newest.h"
#include "support/proc.h"

enum { BOUND_MS = 60000, READS = 200000 };

static int
use_and_die(void *ctx)
{
    pyri_fault_hook = die_there;
    return write_many(ctx);
}

static void
every_version_is_there(stage *s)
{
    static replay p;
    pyr_version latest;
    p = (replay){.array = s->array};
    OK(pyr_latest(s->array, &latest));
    if (latest)
        OK(pyr_history(s->array, 1, PYR_LATEST, compare_next, &p));
}

static void
who_is_killed_at_it_harms_nobody(void)
{
    static const char *const points[] = {"fold.put", "fold.commit",
                                         "fold.done"};
    for (int i = 0; i < 3; i++) {
        stage s;
        stage_open(&s, tmp_fresh("tidy"), 1000, 2, SIDE, CHUNK);
        writer w = {.url = s.url, .id = 1, .reads = READS};
        fatal = points[i];
        proc_end end = proc_wait(proc_fork(use_and_die, &w), BOUND_MS);
        CHECK(end.signal == SIGKILL);
        w = (writer){.url = s.url, .id = 2, .reads = 5000};
        end = proc_wait(proc_fork(write_many, &w), BOUND_MS);
        CHECK(end.signal == 0 && end.code == 0);
        OK(pyr_reclaim(s.store, NULL, NULL));
        every_version_is_there(&s);
        ledger_check(s.store);
        nothing_is_harmed(s.store);
        close_stage(&s);
    }
}

static void
many_processes_tidy_up_at_once(void)
{
    stage s;
    writer w[4];
    pid_t pids[4];
    pyr_version latest;
    stage_open(&s, tmp_fresh("tidy"), 60000, 2, SIDE, CHUNK);
    for (unsigned i = 0; i < 4; i++) {
        w[i] = (writer){.url = s.url, .id = i + 1, .reads = 5000};
        pids[i] = proc_fork(write_many, &w[i]);
    }
    for (int i = 0; i < 4; i++) {
        proc_end end = proc_wait(pids[i], BOUND_MS);
        CHECK(!end.late && end.signal == 0 && end.code == 0);
    }
    OK(pyr_latest(s.array, &latest));
    CHECK(latest == 4 * WRITES);
    CHECK(folds_of(s.array) > 0);
    every_version_is_there(&s);
    ledger_check(s.store);
    nothing_is_harmed(s.store);
    close_stage(&s);
}

TESTS(T(who_is_killed_at_it_harms_nobody),
      T(many_processes_tidy_up_at_once))
