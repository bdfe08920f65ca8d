/*
 * crash/group_test.c - processes that complete for each other: eight at once,
 * and what becomes of it when one of them is killed or stopped on the way.
 * Where that is: src/engine/local/mailbox.c.
 */
#include "crash/crew.h"

enum { CREW = 7 };

typedef struct group {
    place p;
    pid_t crew[CREW];
    uint32_t writes, nowait;
    uint64_t ended; /* of the crew, and so their writes acknowledged */
} group;

static void
group_open(group *g, int sample, uint32_t nowait)
{
    *g = (group){.writes = (uint32_t)by_scale(10, 25, 60), .nowait = nowait};
    if (sample == WORK_LARGE)
        g->writes = 3;
    place_open(&g->p, PYR_DURABILITY_COMMIT, LONG_LEASE, sample);
}

/* Whoever has ended is replaced, so that there is always a crowd. */
static void
keep_busy(group *g)
{
    for (int i = 0; i < CREW; i++) {
        if (g->crew[i]) {
            proc_end e = proc_wait(g->crew[i], 0);
            if (e.late)
                continue;
            CHECK(e.code == 0);
            g->ended++;
        }
        job j = writer_of(&g->p, g->writes);
        j.nowait = g->nowait;
        g->crew[i] = start(NULL, &j);
    }
}

static void
end_crew(group *g)
{
    for (int i = 0; i < CREW; i++) {
        CHECK(proc_ends_well(g->crew[i], BOUND));
        g->ended++;
    }
}

/* Starts one that dies or stops at a point, in a crowd; its last state. */
static proc_end
meet_fate(group *g, const char *point, const char *action, int nth, pid_t *pid)
{
    job victim = writer_of(&g->p, 100000);
    proc_end end = {.late = true};
    int64_t bound = now_ns() + (int64_t)BOUND * 1000000;
    keep_busy(g);
    *pid = start_at(point, action, nth, &victim);
    while (end.late && now_ns() < bound) {
        keep_busy(g);
        end = proc_wait(*pid, 5);
    }
    return end;
}

/* --- all is well --------------------------------------------------------- */

static void
eight_processes_are_replayed(void)
{
    for (int sample = 0; sample < WORK_SAMPLES; sample++) {
        group g;
        group_open(&g, sample, 0);
        keep_busy(&g);
        job last = writer_of(&g.p, g.writes);
        CHECK(proc_ends_well(start(NULL, &last), BOUND));
        end_crew(&g);
        work_report r = check_replay(&g.p);
        CHECK(r.acked == (CREW + 1) * g.writes && r.unsure == 0);
        CHECK(r.nothing == 0 && r.fenced == 0 && r.versions == r.acked);
        place_close(&g.p);
    }
}

/* --- killed -------------------------------------------------------------- */

typedef struct group_point {
    const char *name;
    bool may_land, may_not;
} group_point;

static const group_point group_points[] = {
    {"mailbox.filling", false, true}, {"mailbox.pending", true, true},
    {"mailbox.lead", false, true},    {"mailbox.taken", false, true},
    {"publish.done", true, false},    {"mailbox.answered", true, false},
    {"mailbox.done", true, false},
};
enum { NGROUP = sizeof group_points / sizeof group_points[0] };

static void
kill_in_group(const group_point *at, int sample, int nth)
{
    group g;
    pid_t pid;
    int before = check_failures;
    group_open(&g, sample, 0);
    CHECK(meet_fate(&g, at->name, "kill", nth, &pid).signal == SIGKILL);
    end_crew(&g);
    others_can_write(&g.p);
    work_report r = check_replay(&g.p);
    CHECK(r.unsure == 1 && r.fenced == 0);
    CHECK(r.landed + r.nothing == 1);
    CHECK(at->may_land || r.landed == 0);
    CHECK(at->may_not || r.landed == 1);
    CHECK(r.acked >= g.ended * g.writes + 5);
    if (check_failures > before)
        printf("# when killed at %s, sample %d\n", at->name, sample);
    place_close(&g.p);
}

static void
one_that_is_killed_on_the_way_harms_nobody(void)
{
    for (int i = 0; i < NGROUP; i++)
        for (int nth = 1; nth <= 3; nth += 2)
            kill_in_group(&group_points[i], (i + nth) % WORK_LARGE, nth);
}

/* What a dead one had in a segment, and others were to complete, is swept by
 * the next who takes the segment over. */
static void
it_is_so_with_what_lies_in_segments(void)
{
    for (int i = 0; i < NGROUP; i++)
        kill_in_group(&group_points[i], WORK_LARGE, 2);
}

static void
many_that_are_killed_leave_room_for_others(void)
{
    group g;
    uint64_t kills = by_scale(8, 40, 80); /* there are 32 slots */
    group_open(&g, 0, 0);
    for (uint64_t k = 0; k < kills; k++) {
        pid_t pid;
        const group_point *at = &group_points[k % 2];
        CHECK(meet_fate(&g, at->name, "kill", 1, &pid).signal == SIGKILL);
    }
    end_crew(&g);
    others_can_write(&g.p);
    work_report r = check_replay(&g.p);
    CHECK(r.unsure == kills && r.landed + r.nothing == kills);
    CHECK(r.fenced == 0);
    place_close(&g.p);
}

/* --- stopped ------------------------------------------------------------- */

/* Not in a transaction: those who wait for one that is stopped there go on
 * without it. Their writes do not wait to be published, as its version is
 * alive. */
static void
stop_in_group(const char *point)
{
    group g;
    pid_t pid;
    int before = check_failures;
    group_open(&g, 0, 1);
    CHECK(meet_fate(&g, point, "stop", 1, &pid).stopped);
    end_crew(&g);
    job more = writer_of(&g.p, 10);
    more.nowait = 1;
    CHECK(proc_ends_well(start(NULL, &more), BOUND));
    kill(pid, SIGCONT);
    for (int i = 0; i < 3; i++)
        others_can_write(&g.p); /* now waiting for what it has in flight */
    kill(pid, SIGKILL);
    CHECK(is_killed(pid));
    others_can_write(&g.p);
    work_report r = check_replay(&g.p);
    CHECK(r.fenced == 0 && r.unsure <= 1);
    if (check_failures > before)
        printf("# when stopped at %s\n", point);
    place_close(&g.p);
}

static void
one_that_is_stopped_on_the_way_holds_nobody_up(void)
{
    stop_in_group("mailbox.filling");
    stop_in_group("mailbox.pending");
    stop_in_group("mailbox.lead");
    stop_in_group("publish.done");
    stop_in_group("mailbox.answered");
    stop_in_group("mailbox.done");
}

/* --- the disk refuses ---------------------------------------------------- */

/* The one that does it for all fails: all the others succeed. */
static void
a_failure_of_the_one_who_leads_is_its_own(void)
{
    for (int nth = 1; nth <= 4; nth++) {
        group g;
        group_open(&g, nth % WORK_LARGE, 0);
        keep_busy(&g);
        job victim = writer_of(&g.p, 5);
        char fault[64];
        snprintf(fault, sizeof fault, "publish.commit=nospc@%d", nth);
        proc_end end = proc_wait(start(fault, &victim), BOUND);
        CHECK(!end.late && end.signal == 0); /* shared: tried again alone */
        end_crew(&g);
        others_can_write(&g.p);
        work_report r = check_replay(&g.p);
        CHECK(r.unsure == 0 && r.fenced == 0);
        CHECK(r.acked >= g.ended * g.writes + 5);
        place_close(&g.p);
    }
}

static const crew_role none[] = {{NULL, NULL}};

CREW_TESTS(none, T(eight_processes_are_replayed),
           T(one_that_is_killed_on_the_way_harms_nobody),
           T(it_is_so_with_what_lies_in_segments),
           T(many_that_are_killed_leave_room_for_others),
           T(one_that_is_stopped_on_the_way_holds_nobody_up),
           T(a_failure_of_the_one_who_leads_is_its_own))
