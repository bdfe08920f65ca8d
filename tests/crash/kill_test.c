/*
 * crash/kill_test.c - writers that are killed, or refused by the disk, at each
 * named point of a write and at random, and what the others see of it.
 */
#include "crash/crew.h"

/* --- killed at each point ------------------------------------------------ */

static void
kill_one(fault_point at, pyr_durability durability, int sample, uint32_t writes)
{
    place p;
    place_open(&p, durability, LONG_LEASE, sample);
    int before = check_failures;
    job a = writer_of(&p, writes), b = writer_of(&p, writes);
    job victim = writer_of(&p, 1000);
    pid_t pa = start(NULL, &a), pb = start(NULL, &b);
    pid_t pv = start_at(at.name, "kill", 4, &victim);
    CHECK(is_killed(pv));
    CHECK(proc_ends_well(pa, BOUND)); /* the lease is not waited for */
    CHECK(proc_ends_well(pb, BOUND));
    others_can_write(&p);
    work_report r = check_replay(&p);
    CHECK(r.unsure == 1);
    CHECK(r.landed == (at.fate == PRESENT));
    CHECK(r.nothing == (at.fate == NOTHING));
    CHECK(r.acked >= 2 * writes + 5);
    if (check_failures > before)
        printf("# when killed at %s, sample %d\n", at.name, sample);
    place_close(&p);
}

static void
a_writer_killed_at_any_point_harms_nobody(void)
{
    for (int i = 0; i < NPOINTS; i++)
        kill_one(points[i], PYR_DURABILITY_OS, i % WORK_LARGE,
                 (uint32_t)by_scale(40, 150, 1000));
}

static void
it_is_so_with_synced_files(void)
{
    for (int i = 0; i < NPOINTS; i++)
        kill_one(points[i], PYR_DURABILITY_COMMIT, (i + 1) % WORK_LARGE,
                 (uint32_t)by_scale(15, 50, 300));
}

static void
it_is_so_with_writes_that_go_into_segments(void)
{
    uint32_t writes = (uint32_t)by_scale(4, 10, 60);
    for (int i = 0; i < NPOINTS; i++) {
        kill_one(points[i], PYR_DURABILITY_OS, WORK_LARGE, writes);
        kill_one(points[i], PYR_DURABILITY_COMMIT, WORK_LARGE, writes);
    }
    kill_one(segment_points[0], PYR_DURABILITY_OS, WORK_LARGE, writes);
    kill_one(segment_points[0], PYR_DURABILITY_COMMIT, WORK_LARGE, writes);
    kill_one(segment_points[1], PYR_DURABILITY_COMMIT, WORK_LARGE, writes);
}

/* Several die in a row, each in the other's way. */
static void
many_dead_writers_in_a_row_are_resolved_by_the_next(void)
{
    place p;
    place_open(&p, PYR_DURABILITY_OS, LONG_LEASE, 0);
    job first = writer_of(&p, 1);
    pid_t stopped = start_at("write.taken", "stop", 1, &first);
    REQUIRE(is_stopped(stopped));
    for (int i = 0; i < 6; i++) {
        job j = writer_of(&p, 1);
        CHECK(is_killed(start_at(i % 2 ? "write.built" : "ticket.taken",
                                 "kill", 1, &j)));
    }
    kill(stopped, SIGKILL);
    CHECK(is_killed(stopped));
    others_can_write(&p);
    work_report r = check_replay(&p);
    CHECK(r.nothing == 7 && r.landed == 0 && r.acked == 5);
    CHECK(r.versions == 12);
    place_close(&p);
}

/* One that had completed behind a dead one dies too: its write stays. */
static void
a_completed_write_survives_its_writer_and_the_one_before_it(void)
{
    place p;
    place_open(&p, PYR_DURABILITY_OS, LONG_LEASE, 0);
    job first = writer_of(&p, 1), second = writer_of(&p, 1);
    pid_t one = start_at("write.taken", "stop", 1, &first);
    REQUIRE(is_stopped(one));
    pid_t two = start_at("write.completed", "kill", 1, &second);
    CHECK(is_killed(two));
    kill(one, SIGKILL);
    CHECK(is_killed(one));
    others_can_write(&p);
    work_report r = check_replay(&p);
    CHECK(r.nothing == 1 && r.landed == 1 && r.unsure == 2);
    place_close(&p);
}

/* Waiting alone is enough to get dead writers out of the way. */
static void
waiting_for_a_version_resolves_the_dead_before_it(void)
{
    place p;
    place_open(&p, PYR_DURABILITY_OS, LONG_LEASE, 0);
    job first = writer_of(&p, 1), second = writer_of(&p, 3);
    pid_t one = start_at("write.taken", "stop", 1, &first);
    REQUIRE(is_stopped(one));
    second.nowait = 1;
    CHECK(proc_ends_well(start(NULL, &second), BOUND));
    FAILS(PYR_ETIMEOUT, pyr_wait(p.array, 4, 50));
    kill(one, SIGKILL);
    CHECK(is_killed(one));
    OK(pyr_wait(p.array, 4, BOUND));
    work_report r = check_replay(&p);
    CHECK(r.nothing == 1 && r.acked == 3 && r.versions == 4);
    place_close(&p);
}

/* --- killed at random ---------------------------------------------------- */

static void
kill_at_random(pyr_durability durability, int sample, uint64_t ms)
{
    enum { CREW = 4 };
    place p;
    pid_t crew[CREW] = {0};
    rng r = rng_of(test_seed() + (uint64_t)sample);
    place_open(&p, durability, LONG_LEASE, sample);
    uint64_t kills = 0;
    bool synced = durability == PYR_DURABILITY_COMMIT;
    uint32_t writes = p.k.large ? 20 : synced ? 60 : 400;
    int64_t end = now_ns() + (int64_t)ms * 1000000;
    while (now_ns() < end) {
        for (int i = 0; i < CREW; i++)
            if (crew[i] == 0) {
                job j = writer_of(&p, writes);
                crew[i] = start(NULL, &j);
            }
        nap_ms((int)rng_from(&r, 5, 80)); /* when to kill, not what to see */
        int who = (int)rng_below(&r, CREW);
        kill(crew[who], SIGKILL);
        for (int i = 0; i < CREW; i++) {
            proc_end e = proc_wait(crew[i], i == who ? BOUND : 0);
            if (e.late)
                continue;
            CHECK(e.code == 0 || (i == who && e.signal == SIGKILL));
            kills += e.signal == SIGKILL;
            crew[i] = 0;
        }
    }
    for (int i = 0; i < CREW; i++)
        if (crew[i])
            CHECK(proc_ends_well(crew[i], BOUND));
    others_can_write(&p);
    work_report report = check_replay(&p);
    printf("# %" PRIu64 " kills, %" PRIu64 " versions, %" PRIu64
           " resolved, %" PRIu64 " of %" PRIu64 " unsure ones landed\n",
           kills, report.versions, report.nothing, report.landed,
           report.unsure);
    CHECK(report.unsure <= kills);
    CHECK(report.nothing + report.landed <= report.unsure);
    place_close(&p);
}

static void
writers_killed_at_random_lose_nothing_that_was_acknowledged(void)
{
    kill_at_random(PYR_DURABILITY_OS, 0, by_scale(3000, 9000, 60000));
    kill_at_random(PYR_DURABILITY_COMMIT, 2, by_scale(1500, 4000, 30000));
    kill_at_random(PYR_DURABILITY_COMMIT, WORK_LARGE,
                   by_scale(1000, 3000, 20000));
}

/* --- the disk refuses ---------------------------------------------------- */

/* `nothing`: versions that are left, and change nothing. */
static void
refuse(const char *fault, int code, int sample, uint32_t nothing)
{
    place p;
    int before = check_failures;
    place_open(&p, PYR_DURABILITY_COMMIT, LONG_LEASE, sample);
    others_can_write(&p);
    job j = writer_of(&p, 5);
    j.role = "fail";
    j.extra = code;
    j.nowait = nothing;
    CHECK(proc_ends_well(start(fault, &j), BOUND));
    others_can_write(&p);
    work_report r = check_replay(&p);
    CHECK(r.acked == 15 && r.nothing == nothing);
    if (check_failures > before)
        printf("# with %s, sample %d\n", fault, sample);
    place_close(&p);
}

static void
a_write_that_the_disk_refuses_changes_nothing(void)
{
    refuse("segment.append=fail@1", PYR_EIO, WORK_LARGE, 0);
    refuse("segment.append=nospc@1", PYR_ENOSPC, WORK_LARGE, 0);
    refuse("segment.sync=fail@1", PYR_EIO, WORK_LARGE, 0);
    refuse("segment.sync=nospc@1", PYR_ENOSPC, WORK_LARGE, 0);
    for (int sample = 0; sample < WORK_SAMPLES; sample++) {
        refuse("publish.commit=fail@1", PYR_EIO, sample, 1);
        refuse("publish.commit=nospc@1", PYR_ENOSPC, sample, 1);
    }
}

static const crew_role none[] = {{NULL, NULL}};

CREW_TESTS(none, T(a_writer_killed_at_any_point_harms_nobody),
           T(it_is_so_with_synced_files),
           T(it_is_so_with_writes_that_go_into_segments),
           T(many_dead_writers_in_a_row_are_resolved_by_the_next),
           T(a_completed_write_survives_its_writer_and_the_one_before_it),
           T(waiting_for_a_version_resolves_the_dead_before_it),
           T(writers_killed_at_random_lose_nothing_that_was_acknowledged),
           T(a_write_that_the_disk_refuses_changes_nothing))
