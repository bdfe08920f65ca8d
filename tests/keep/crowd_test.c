/*
 * keep/crowd_test.c - writers, readers, clones, and those who forget and
 * reclaim, all at once in many processes, any of which may be killed.
 */
#include "keep/crowd.h"
#include "keep/ledger.h"
#include "support/last_write.h"

#include <stdlib.h>

enum { SLOTS = 6 };

/* In the environment of children: one commit of theirs in so many is the last. */
#define IN_COMMIT "CROWD_DIES_IN_COMMIT"

static void __attribute__((constructor))
read_chance(void)
{
    const char *text = getenv(IN_COMMIT);
    die_in_commit = text ? (unsigned)strtoul(text, NULL, 10) : 0;
}

typedef struct crowd {
    place p;
    rng r;
    pid_t pid[SLOTS];
    bool armed[SLOTS]; /* has a fault, or was killed: may die */
    int jobs;          /* of writers, still to be started */
    bool kills, clones;
    const char *writer_point, *reclaim_point;
    int killed;
} crowd;

/* The first two slots write. */
static const char *const roles[SLOTS] = {"write",   "write", "forget",
                                         "reclaim", "peek",  "clone"};

static void
fill_slot(crowd *c, int i)
{
    job j = writer_of(&c->p, i < 2 ? 60 : 40);
    const char *point = NULL;
    j.role = roles[i];
    j.seed = c->p.k.seed;
    j.nowait = i == 1 ? 3 : 0;
    if (i < 2 && c->jobs-- <= 0)
        return;
    if (strcmp(j.role, "clone") == 0 && (!c->clones || c->jobs <= 0))
        return;
    if (i == 0)
        point = c->writer_point;
    if (strcmp(j.role, "reclaim") == 0)
        point = c->reclaim_point;
    c->armed[i] = point || getenv(IN_COMMIT);
    c->pid[i] = point ? start_at(point, "kill", (int)rng_from(&c->r, 1, 12), &j)
                      : start(NULL, &j);
}

/* A process that ended: killed because it was to be, or well. */
static void
look_after(crowd *c, int i)
{
    proc_end end = proc_wait(c->pid[i], 0);
    if (end.late)
        return;
    c->pid[i] = 0;
    c->killed += end.signal == SIGKILL;
    if (end.signal ? !c->armed[i] || end.signal != SIGKILL : end.code != 0)
        CHECK_NOTE("a process to %s ended with code %d, signal %d", roles[i],
                   end.code, end.signal);
    if (end.signal == 0 && i >= 2)
        return; /* it has done its work */
    fill_slot(c, i);
}

static bool
is_writing(const crowd *c)
{
    return c->jobs > 0 || c->pid[0] || c->pid[1];
}

static void
run_crowd(crowd *c)
{
    char stop[4200];
    int64_t bound = now_ns() + INT64_C(600) * 1000000000;
    for (int i = 0; i < SLOTS; i++)
        fill_slot(c, i);
    while (is_writing(c) && !check_failures) {
        REQUIRE(now_ns() < bound);
        for (int i = 0; i < SLOTS; i++)
            if (c->pid[i])
                look_after(c, i);
        if (c->kills && rng_once_in(&c->r, 20)) {
            int i = (int)rng_below(&c->r, SLOTS);
            c->armed[i] = true;
            if (c->pid[i])
                kill(c->pid[i], SIGKILL);
        }
        nap_ms(1);
    }
    snprintf(stop, sizeof stop, "%s/stop", c->p.logs);
    tmp_write_file(stop, "");
    for (int i = 0; i < SLOTS; i++)
        if (c->pid[i]) {
            proc_end end = proc_wait(c->pid[i], BOUND);
            CHECK(end.code == 0 || (c->armed[i] && end.signal == SIGKILL));
            c->pid[i] = 0;
        }
}

/* When all is quiet: everything goes that can, and everything else holds. */
static void
settle_and_check(crowd *c)
{
    pyr_reclaimed gone;
    unsetenv(IN_COMMIT);
    others_can_write(&c->p); /* resolves the dead */
    chronicle(&c->p);
    OK(pyr_forget(c->p.array, 0, PYR_LATEST, 30, 0, NULL));
    OK(pyr_reclaim(c->p.store, NULL, &gone));
    OK(pyr_reclaim(c->p.store, NULL, &gone));
    CHECK(gone.waiting == 0 && gone.versions == 0);
    CHECK(c->clones || gone.left == 0);
    check_crowd(&c->p);
    ledger_check(c->p.store);
}

static void
one_crowd(int sample, bool kills, bool clones, const char *writer_point,
          const char *reclaim_point, int jobs)
{
    crowd c = {.r = rng_of(test_seed()), .kills = kills, .clones = clones,
               .writer_point = writer_point, .reclaim_point = reclaim_point,
               .jobs = jobs};
    int before = check_failures;
    place_open(&c.p, PYR_DURABILITY_OS, LONG_LEASE, sample);
    run_crowd(&c);
    settle_and_check(&c);
    if (kills || writer_point || reclaim_point)
        printf("# %d killed\n", c.killed);
    if (check_failures > before)
        printf("# sample %d, %s, %s\n", sample,
               writer_point ? writer_point : "-",
               reclaim_point ? reclaim_point : "-");
    place_close(&c.p);
}

static int
jobs(void)
{
    return (int)by_scale(4, 6, 60);
}

static void
versions_that_are_kept_stay_right_and_others_go(void)
{
    for (int sample = 0; sample < WORK_SAMPLES; sample++)
        one_crowd(sample, false, false, NULL, NULL, jobs());
}

static void
clones_hold_what_they_began_with(void)
{
    one_crowd(0, false, true, NULL, NULL, jobs());
    one_crowd(WORK_LARGE, false, true, NULL, NULL, jobs());
}

static void
anyone_may_be_killed_at_any_time(void)
{
    for (int sample = 0; sample < WORK_SAMPLES; sample++)
        one_crowd(sample, true, sample % 3 == 0, NULL, NULL, 2 * jobs());
}

/* When all of it is done, but readers do not see it yet. Only LMDB knows such a
 * moment. */
static void
anyone_may_be_killed_in_its_commit(void)
{
    int rounds = getenv("PYR_TEST_STORE") ? 0 : (int)by_scale(2, 4, 60);
    for (int i = 0; i < rounds; i++) {
        REQUIRE(setenv(IN_COMMIT, i % 2 ? "10" : "40", 1) == 0);
        one_crowd(i % 4 / 2 ? WORK_LARGE : 2, true, false, NULL, NULL,
                  4 * jobs());
    }
}

static void
a_reclaimer_may_be_killed_at_every_point(void)
{
    static const char *const at[] = {"erase.commit", "erase.done",
                                     "fold.put",     "fold.commit",
                                     "fold.done",    "dense.commit",
                                     "settle.punched"};
    for (int i = 0; i < (int)(sizeof at / sizeof at[0]); i++)
        one_crowd(i == 0 ? 0 : WORK_LARGE, false, false, NULL, at[i], jobs());
}

static void
a_writer_may_be_killed_at_every_point(void)
{
    for (int i = 0; i < NPOINTS; i++)
        one_crowd(i % 2 ? WORK_LARGE : 0, false, false, points[i].name, NULL,
                  jobs() / 2);
}

CREW_TESTS(crowd_roles, T(versions_that_are_kept_stay_right_and_others_go),
           T(clones_hold_what_they_began_with),
           T(anyone_may_be_killed_at_any_time),
           T(anyone_may_be_killed_in_its_commit),
           T(a_reclaimer_may_be_killed_at_every_point),
           T(a_writer_may_be_killed_at_every_point))
