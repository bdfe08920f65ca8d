/*
 * crash/stop_test.c - writers that are stopped at a named point: they wake up
 * too late, others write past them, readers read beside them.
 */
#include "crash/crew.h"

/* --- fenced -------------------------------------------------------------- */

/* Others write `n` times while it sleeps: once is just enough to resolve its
 * version, more may sweep up behind it. */
static void
fence_one(const char *point, uint32_t n)
{
    place p;
    int before = check_failures;
    place_open(&p, PYR_DURABILITY_OS, SHORT_LEASE, 0);
    job victim = writer_of(&p, 4);
    victim.extra = 1; /* once, it may write again */
    pid_t pv = start_at(point, "stop", 2, &victim);
    REQUIRE(is_stopped(pv));
    job other = writer_of(&p, n);
    CHECK(proc_ends_well(start(NULL, &other), BOUND));
    work_report r = check_replay(&p);
    CHECK(r.nothing == 1 && r.acked == 1 + n);
    CHECK(r.unsure == 1 && r.landed == 0);
    kill(pv, SIGCONT);
    CHECK(proc_ends_well(pv, BOUND));
    r = check_replay(&p);
    CHECK(r.nothing == 1 && r.fenced == 1 && r.unsure == 0);
    CHECK(r.acked == 3 + n);
    if (check_failures > before)
        printf("# when stopped at %s\n", point);
    place_close(&p);
}

static void
a_writer_that_wakes_up_late_is_told_so_and_changes_nothing(void)
{
    for (uint32_t n = 1; n <= 5; n += 2) {
        fence_one("ticket.taken", n);
        fence_one("write.taken", n);
        fence_one("write.built", n);
    }
}

static void
a_writer_stopped_before_it_took_a_version_is_not_fenced(void)
{
    place p;
    place_open(&p, PYR_DURABILITY_OS, SHORT_LEASE, 0);
    job victim = writer_of(&p, 3);
    pid_t pv = start_at("write.data_sent", "stop", 2, &victim);
    REQUIRE(is_stopped(pv));
    others_can_write(&p);
    int64_t lease_over = now_ns() + 2 * (int64_t)SHORT_LEASE * 1000000;
    while (now_ns() < lease_over)
        nap_ms(10);
    others_can_write(&p);
    kill(pv, SIGCONT);
    CHECK(proc_ends_well(pv, BOUND));
    work_report r = check_replay(&p);
    CHECK(r.nothing == 0 && r.fenced == 0 && r.acked == 13);
    place_close(&p);
}

/* Alive and within its lease: others finish, and wait to be published. */
static void
a_stopped_writer_within_its_lease_is_waited_for(void)
{
    place p;
    place_open(&p, PYR_DURABILITY_OS, LONG_LEASE, 0);
    job victim = writer_of(&p, 2), other = writer_of(&p, 1);
    pid_t pv = start_at("write.taken", "stop", 1, &victim);
    REQUIRE(is_stopped(pv));
    pid_t po = start(NULL, &other);
    CHECK(proc_wait(po, 700).late); /* waits, though it has long finished */
    kill(pv, SIGCONT);
    CHECK(proc_ends_well(pv, BOUND));
    CHECK(proc_ends_well(po, BOUND));
    work_report r = check_replay(&p);
    CHECK(r.nothing == 0 && r.acked == 3);
    place_close(&p);
}

/* --- predicted ----------------------------------------------------------- */

static void
predict_past(const char *point, uint32_t n)
{
    place p;
    int before = check_failures;
    place_open(&p, PYR_DURABILITY_OS, LONG_LEASE, 0);
    others_can_write(&p);
    job victim = writer_of(&p, 2);
    pid_t pv = start_at(point, "stop", 1, &victim);
    REQUIRE(is_stopped(pv));
    job a = writer_of(&p, n), b = writer_of(&p, n);
    a.nowait = b.nowait = 1;
    pid_t pa = start(NULL, &a), pb = start(NULL, &b);
    CHECK(proc_ends_well(pa, BOUND));
    CHECK(proc_ends_well(pb, BOUND));
    pyr_version latest, all = 5 + 1 + 2 * (pyr_version)n;
    OK(pyr_latest(p.array, &latest));
    CHECK(latest == 5);
    pyr_status status;
    OK(pyr_store_status(p.store, &status, NULL, NULL));
    CHECK(status.in_flight == 1 + 2 * (uint64_t)n);
    uint64_t zero[2] = {0, 0}, one[2] = {1, 1};
    uint32_t cell;
    FAILS(PYR_ENOVERSION, pyr_read(p.array, 6, zero, one, &cell));
    FAILS(PYR_ENOVERSION, pyr_read(p.array, all, zero, one, &cell));
    FAILS(PYR_ETIMEOUT, pyr_wait(p.array, all, 20));
    kill(pv, SIGCONT);
    CHECK(proc_ends_well(pv, BOUND));
    OK(pyr_wait(p.array, all, BOUND));
    work_report r = check_replay(&p);
    CHECK(r.nothing == 0 && r.versions == all + 1);
    if (check_failures > before)
        printf("# past a writer stopped at %s\n", point);
    place_close(&p);
}

static void
nodes_of_writers_in_flight_are_predicted_and_not_waited_for(void)
{
    predict_past("ticket.taken", 10);
    predict_past("write.taken", (uint32_t)by_scale(20, 60, 200));
    predict_past("write.built", 10);
}

/* The predicted writer dies instead: what was built on it must still hold. */
static void
a_prediction_holds_when_the_predicted_writer_dies(void)
{
    place p;
    place_open(&p, PYR_DURABILITY_OS, LONG_LEASE, 0);
    others_can_write(&p);
    for (int round = 0; round < (int)by_scale(4, 10, 40); round++) {
        job victim = writer_of(&p, 1);
        pid_t pv = start_at(round % 2 ? "write.taken" : "write.built", "stop",
                            1, &victim);
        REQUIRE(is_stopped(pv));
        job a = writer_of(&p, 8);
        a.nowait = 1;
        CHECK(proc_ends_well(start(NULL, &a), BOUND));
        kill(pv, SIGKILL);
        CHECK(is_killed(pv));
    }
    others_can_write(&p);
    work_report r = check_replay(&p);
    CHECK(r.landed == 0);
    CHECK(r.nothing == r.unsure);
    place_close(&p);
}

/* --- readers ------------------------------------------------------------- */

static void
wait_for_file(const char *dir, const char *name, uint32_t number)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s%" PRIu32, dir, name, number);
    int64_t end = now_ns() + (int64_t)BOUND * 1000000;
    while (!tmp_exists(path)) {
        REQUIRE(now_ns() < end);
        nap_ms(1);
    }
}

static uint64_t
digest_of(place *p, uint32_t reader)
{
    char path[4200];
    unsigned long long digest = 0;
    snprintf(path, sizeof path, "%s/digest%" PRIu32, p->logs, reader);
    FILE *f = fopen(path, "r");
    CHECK(f && fscanf(f, "%llx", &digest) == 1);
    if (f)
        fclose(f);
    return digest;
}

static void
read_beside(const char *point, pyr_durability durability)
{
    place p;
    int before = check_failures;
    place_open(&p, durability, LONG_LEASE, 0);
    others_can_write(&p);
    job reader[4];
    pid_t pids[4];
    for (int i = 0; i < 4; i++) {
        reader[i] = writer_of(&p, 5);
        reader[i].role = i == 1 || i == 2 ? "read_later" : "read";
        reader[i].extra = i == 2; /* that one could write */
    }
    CHECK(proc_ends_well(start(NULL, &reader[0]), BOUND));
    for (int i = 1; i <= 2; i++) {
        pids[i] = start(NULL, &reader[i]);
        wait_for_file(p.logs, "ready", reader[i].writer);
    }
    job victim = writer_of(&p, 3);
    pid_t pv = start_at(point, "stop", 2, &victim);
    REQUIRE(is_stopped(pv));
    char go[4200];
    snprintf(go, sizeof go, "%s/go", p.logs);
    REQUIRE(tmp_write_file(go, ""));
    pids[3] = start(NULL, &reader[3]);
    for (int i = 1; i <= 3; i++) {
        CHECK(proc_ends_well(pids[i], BOUND));
        CHECK(digest_of(&p, reader[i].writer) ==
              digest_of(&p, reader[0].writer));
    }
    kill(pv, SIGCONT);
    CHECK(proc_ends_well(pv, BOUND));
    work_report r = check_replay(&p);
    CHECK(r.acked == 8 && r.nothing == 0);
    if (check_failures > before)
        printf("# beside a writer stopped at %s\n", point);
    place_close(&p);
}

static void
readers_are_undisturbed_by_a_writer_stopped_anywhere(void)
{
    for (int i = 0; i < NPOINTS; i++)
        read_beside(points[i].name, i % 2 ? PYR_DURABILITY_COMMIT
                                          : PYR_DURABILITY_OS);
    read_beside("publish.commit", PYR_DURABILITY_COMMIT);
    read_beside("publish.commit", PYR_DURABILITY_OS);
}

static const crew_role none[] = {{NULL, NULL}};

CREW_TESTS(none, T(a_writer_that_wakes_up_late_is_told_so_and_changes_nothing),
           T(a_writer_stopped_before_it_took_a_version_is_not_fenced),
           T(a_stopped_writer_within_its_lease_is_waited_for),
           T(nodes_of_writers_in_flight_are_predicted_and_not_waited_for),
           T(a_prediction_holds_when_the_predicted_writer_dies),
           T(readers_are_undisturbed_by_a_writer_stopped_anywhere))
