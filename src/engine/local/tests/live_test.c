/*
 * The live part: who is alive, what is in flight, and what becomes of both
 * when the machine restarts or the store is copied.
 */
#include "base/fault.h"
#include "engine/local/tests/fixture.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

static char path[PATH_MAX];

static pyri_engine *
fresh(void)
{
    snprintf(path, sizeof path, "%s", tmp_fresh("live"));
    pyri_engine *e = open_store(path);
    make_array(e);
    return e;
}

static pyri_flights
flights_of(pyri_engine *e)
{
    pyri_flights f = {0};
    OK(pyri_engine_flights(e, ARRAY, &f));
    return f;
}

static double
seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* Is a file of live/ mapped here? */
static bool
has_live(void)
{
    char line[PATH_MAX + 200];
    bool has = false;
    FILE *f = fopen("/proc/self/maps", "r");
    REQUIRE(f);
    while (!has && fgets(line, sizeof line, f))
        has = strstr(line, "/live/data.mdb");
    fclose(f);
    return has;
}

/* --- death --------------------------------------------------------------- */

static int
take_and_hang(void *arg)
{
    int *ready = arg;
    pyri_engine *e = open_store(path);
    take_one(e);
    __atomic_store_n(ready, 1, __ATOMIC_SEQ_CST);
    while (pause() < 0)
        continue;
    return 0;
}

static pid_t
start_writer(void)
{
    int *ready = mmap(NULL, sizeof *ready, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(ready != MAP_FAILED);
    pid_t pid = proc_fork(take_and_hang, ready);
    while (!__atomic_load_n(ready, __ATOMIC_SEQ_CST))
        usleep(100);
    munmap(ready, sizeof *ready);
    return pid;
}

static void
end_writer(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    proc_forget(pid);
}

/* The one in flight is alive, until it is killed. */
static void
its_death_is_seen(pyri_engine *e, pid_t pid)
{
    pyri_flights f = flights_of(e);
    CHECK(f.n == 1 && !f.list[0].dead);
    pyri_flights_fini(&f);
    end_writer(pid);
    f = flights_of(e);
    CHECK(f.n == 1 && f.list[0].dead);
    pyri_flights_fini(&f);
}

static void
a_killed_writer_is_dead_at_once_a_living_one_is_not(void)
{
    pyri_engine *e = fresh();
    pid_t pid = start_writer();
    pyri_flights f = flights_of(e);
    CHECK(f.n == 1 && !f.list[0].dead && !f.list[0].complete);
    pyri_flights_fini(&f);
    end_writer(pid);
    f = flights_of(e);
    CHECK(f.n == 1 && f.list[0].dead);
    CHECK(f.list[0].claim.size == 5 &&
          memcmp(f.list[0].claim.data, "claim", 5) == 0);
    pyri_flights_fini(&f);
    /* Another takes the dead one's slot; it stays dead. */
    pid = start_writer();
    f = flights_of(e);
    CHECK(f.n == 2 && f.list[0].dead && !f.list[1].dead);
    pyri_flights_fini(&f);
    end_writer(pid);
    pyri_engine_close(e);
}

/* Most never do, and opening is cheaper without it. */
static void
who_only_reads_opens_it_when_that_is_asked_for(void)
{
    pyri_reader *r;
    pyri_engine_close(fresh());
    pid_t pid = start_writer();
    pyri_engine *e = open_at(path, PYR_OPEN_READONLY, PYR_DURABILITY_OS);
    OK(pyri_engine_begin(e, &r));
    CHECK(latest_of(e) == 0);
    pyri_engine_end(e, r);
    CHECK(!has_live());
    FAILS(PYR_ETIMEOUT, pyri_engine_wait(e, ARRAY, 1, 1));
    CHECK(has_live());
    its_death_is_seen(e, pid);
    pyri_engine_close(e);
}

static void
one_who_waits_behind_a_dead_writer_is_told_early(void)
{
    pyri_engine *e = fresh();
    pid_t pid = start_writer();
    pyri_ticket mine = take_one(e);
    OK(complete_one(e, &mine));
    double from = seconds();
    FAILS(PYR_ETIMEOUT, pyri_engine_wait(e, ARRAY, 2, 60));
    CHECK(seconds() - from >= 0.059);
    end_writer(pid);
    from = seconds();
    FAILS(PYR_ETIMEOUT, pyri_engine_wait(e, ARRAY, 2, 600000));
    CHECK(seconds() - from < 300);
    CHECK(strstr(pyr_errmsg(), "gone") != NULL);
    pyri_ticket dead = {.array = ARRAY, .version = 1, .shape = {10, 20}};
    OK(complete_one(e, &dead)); /* resolve it */
    OK(pyri_engine_wait(e, ARRAY, 2, 0));
    CHECK(latest_of(e) == 2);
    pyri_engine_close(e);
}

static int
hang(void *arg)
{
    int *ready = arg;
    __atomic_store_n(ready, (int)getpid(), __ATOMIC_SEQ_CST);
    while (pause() < 0)
        continue;
    return 0;
}

static int
take_and_leave_a_child(void *arg)
{
    pyri_engine *e = open_store(path);
    take_one(e);
    fflush(NULL);
    if (fork() == 0)
        return hang(arg); /* outlives its parent */
    while (pause() < 0)
        continue;
    return 0;
}

static void
a_child_does_not_keep_its_dead_parent_alive(void)
{
    pyri_engine *e = fresh();
    int *child = mmap(NULL, sizeof *child, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(child != MAP_FAILED);
    pid_t pid = proc_fork(take_and_leave_a_child, child);
    while (!__atomic_load_n(child, __ATOMIC_SEQ_CST))
        usleep(100);
    its_death_is_seen(e, pid);
    kill(*child, SIGKILL);
    munmap(child, sizeof *child);
    pyri_engine_close(e);
}

static void
what_a_closed_handle_left_in_flight_is_dead(void)
{
    pyri_engine *e = fresh();
    take_one(e);
    pyri_engine_close(e);
    e = open_store(path);
    pyri_flights f = flights_of(e);
    CHECK(f.n == 1 && f.list[0].dead);
    pyri_flights_fini(&f);
    pyri_engine_close(e);
}

/* --- another boot -------------------------------------------------------- */

/* Three versions: 1 published, 2 in flight, 3 complete above it. */
static void
leave_work_in_flight(void)
{
    pyri_engine *e = fresh();
    pyri_ticket one = take_one(e);
    OK(complete_one(e, &one));
    take_one(e);
    pyri_ticket three = take_one(e);
    OK(complete_one(e, &three));
    CHECK(has_node_of(e, 3) && latest_of(e) == 1);
    pyri_engine_close(e);
}

static void
check_reset(const char *where)
{
    pyri_engine *e = open_store(where);
    CHECK(latest_of(e) == 1);
    CHECK(has_node_of(e, 1) && !has_node_of(e, 3));
    pyri_flights f = flights_of(e);
    CHECK(f.n == 0 && f.base == 1);
    pyri_flights_fini(&f);
    pyri_ticket t = take_one(e);
    CHECK(t.version == 2);
    OK(complete_one(e, &t));
    t = take_one(e);
    OK(complete_one(e, &t));
    CHECK(t.version == 3 && latest_of(e) == 3 && has_node_of(e, 3));
    pyri_engine_close(e);
}

static void
without_a_restart_nothing_is_lost(void)
{
    leave_work_in_flight();
    pyri_engine *e = open_store(path);
    pyri_flights f = flights_of(e);
    CHECK(f.n == 2 && f.list[0].dead && f.list[1].complete);
    pyri_flights_fini(&f);
    CHECK(has_node_of(e, 3));
    pyri_engine_close(e);
}

static void
after_a_restart_only_what_was_published_remains(void)
{
    leave_work_in_flight();
    REQUIRE(tmp_write_file(inside(path, "live/boot"), "boot another\n"));
    REQUIRE(tmp_write_file(inside(path, "live/data.mdb"), "torn"));
    REQUIRE(tmp_write_file(inside(path, "live/lock.mdb"), "torn"));
    check_reset(path);
}

static void
a_missing_live_part_is_made_anew(void)
{
    leave_work_in_flight();
    tmp_remove(inside(path, "live"));
    check_reset(path);
}

static void
a_copy_is_a_store_of_its_own(void)
{
    char copy[PATH_MAX], command[3 * PATH_MAX];
    leave_work_in_flight();
    snprintf(copy, sizeof copy, "%s", tmp_fresh("copy"));
    snprintf(command, sizeof command, "cp -a '%s' '%s'", path, copy);
    REQUIRE(system(command) == 0);
    check_reset(copy);
    pyri_engine *e = open_store(path); /* and the first is as it was */
    CHECK(has_node_of(e, 3) && latest_of(e) == 1);
    pyri_engine_close(e);
}

static void
a_moved_store_stays_itself(void)
{
    char moved[PATH_MAX];
    leave_work_in_flight();
    snprintf(moved, sizeof moved, "%s", tmp_fresh("moved"));
    REQUIRE(rename(path, moved) == 0);
    pyri_engine *e = open_store(moved);
    CHECK(has_node_of(e, 3));
    pyri_ref ref;
    OK(put_bytes(e, "here", 4, false, &ref));
    CHECK(holds(e, ref, "here", 4));
    pyri_engine_close(e);
}

static int
open_and_look(void *arg)
{
    (void)arg;
    pyri_engine *e = open_store(path);
    int code = latest_of(e) != 1 || has_node_of(e, 3);
    pyri_engine_close(e);
    return code;
}

static void
many_may_find_a_restarted_store_at_once(void)
{
    for (int round = 0; round < 5; round++) {
        pid_t pids[8];
        leave_work_in_flight();
        REQUIRE(tmp_write_file(inside(path, "live/boot"), "another\n"));
        for (int i = 0; i < 8; i++)
            pids[i] = proc_fork(open_and_look, NULL);
        for (int i = 0; i < 8; i++) {
            int status = -1;
            waitpid(pids[i], &status, 0);
            proc_forget(pids[i]);
            if (status != 0)
                CHECK_NOTE("a child ended with status %x", status);
        }
    }
}

/* --- many writers, some of whom die -------------------------------------- */

enum { WRITERS = 4, WRITES = 60 };

/* Resolves whoever is dead, until `version` is published. */
static int
see_through(pyri_engine *e, uint64_t version)
{
    int err;
    while ((err = pyri_engine_wait(e, ARRAY, version, 1000)) ==
           PYR_ETIMEOUT) {
        pyri_flights f = flights_of(e);
        for (size_t i = 0; i < f.n; i++)
            if (f.list[i].dead) {
                pyri_ticket t = {.array = ARRAY,
                                 .version = f.list[i].version,
                                 .shape = {10, 20}};
                err = complete_one(e, &t);
                if (err < 0 && err != PYR_EFENCED)
                    CHECK_NOTE("resolve: %s", pyr_errmsg());
            }
        pyri_flights_fini(&f);
    }
    return err;
}

static int
write_and_maybe_die(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    pyri_engine *e = open_store(path);
    for (int i = 0; i < WRITES; i++) {
        pyri_ref ref;
        if (put_bytes(e, &i, sizeof i, false, &ref) < 0)
            return 1;
        pyri_ticket t = take_one(e);
        if (rand_r(&seed) % WRITES == 0)
            kill(getpid(), SIGKILL);
        if (complete_one(e, &t) < 0 || see_through(e, t.version) < 0)
            return 2;
    }
    pyri_engine_close(e);
    return 0;
}

static void
writers_that_die_hold_nobody_up(void)
{
    pyri_engine *e = fresh();
    pid_t pids[WRITERS];
    for (int i = 0; i < WRITERS; i++)
        pids[i] = proc_fork(write_and_maybe_die,
                            (void *)(uintptr_t)(17 * i + 3));
    for (int i = 0; i < WRITERS; i++) {
        int status = -1;
        waitpid(pids[i], &status, 0);
        proc_forget(pids[i]);
        CHECK(status == 0 || (WIFSIGNALED(status) &&
                              WTERMSIG(status) == SIGKILL));
    }
    pyri_ticket t = take_one(e);
    OK(complete_one(e, &t));
    OK(see_through(e, t.version));
    CHECK(latest_of(e) == t.version);
    for (uint64_t v = 1; v <= t.version; v++)
        CHECK(has_node_of(e, v));
    pyri_engine_close(e);
}

/* --- threads ------------------------------------------------------------- */

static void *
write_in_thread(void *arg)
{
    pyri_engine *e = arg;
    for (int i = 0; i < WRITES; i++) {
        pyri_take take = {.array = ARRAY, .grow_axis = 0, .grow_by = 1};
        pyri_ticket t;
        pyri_flights below = {0};
        if (pyri_engine_take(e, &take, &t, &below) < 0)
            return (void *)1;
        pyri_flights_fini(&below);
        if (t.shape[0] != 10 + t.version || t.before[0] != 9 + t.version ||
            complete_one(e, &t) < 0 || complete_one(e, &t) != PYR_EFENCED ||
            pyri_engine_wait(e, ARRAY, t.version, 60000) < 0)
            return (void *)2;
    }
    return NULL;
}

static void
threads_share_commits_and_each_gets_its_own_result(void)
{
    snprintf(path, sizeof path, "%s", tmp_fresh("group"));
    pyri_engine *e = open_at(path, PYR_OPEN_CREATE, PYR_DURABILITY_COMMIT);
    make_array(e);
    pthread_t threads[WRITERS];
    for (int i = 0; i < WRITERS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, write_in_thread, e) == 0);
    for (int i = 0; i < WRITERS; i++) {
        void *bad;
        pthread_join(threads[i], &bad);
        CHECK(bad == NULL);
    }
    CHECK(latest_of(e) == WRITERS * WRITES);
    pyri_reader *r;
    uint64_t version, shape[PYR_MAX_DIMS];
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_latest(e, r, ARRAY, &version, shape));
    CHECK(shape[0] == 10 + version && shape[1] == 20);
    pyri_engine_end(e, r);
    pyri_engine_close(e);
}

#ifdef PYRI_FAULTS
enum { TURNS = 8192, APART = 64 }; /* in live/wake, see docs/format.md */

static uint32_t
whose_turn(bool live)
{
    uint32_t pid = UINT32_MAX;
    int fd = open(inside(path, "live/wake"), O_RDONLY);
    REQUIRE(fd >= 0);
    REQUIRE(pread(fd, &pid, sizeof pid, TURNS + APART * live) == sizeof pid);
    close(fd);
    return pid;
}

static int met;

static int
look_at_turns(const char *name)
{
    if (strcmp(name, "publish.commit") == 0) {
        met++;
        CHECK(whose_turn(false) == (uint32_t)getpid());
        CHECK(whose_turn(true) == 0);
    }
    return 0;
}

static void
it_is_the_turn_of_who_writes(void)
{
    pyri_engine *e = fresh();
    pyri_ticket mine = take_one(e);
    pyri_fault_hook = look_at_turns;
    OK(complete_one(e, &mine));
    pyri_fault_hook = NULL;
    CHECK(met == 1 && whose_turn(false) == 0);
    pyri_engine_close(e);
}
#endif

TESTS(
#ifdef PYRI_FAULTS
      T(it_is_the_turn_of_who_writes),
#endif
      T(a_killed_writer_is_dead_at_once_a_living_one_is_not),
      T(who_only_reads_opens_it_when_that_is_asked_for),
      T(one_who_waits_behind_a_dead_writer_is_told_early),
      T(a_child_does_not_keep_its_dead_parent_alive),
      T(what_a_closed_handle_left_in_flight_is_dead),
      T(without_a_restart_nothing_is_lost),
      T(after_a_restart_only_what_was_published_remains),
      T(a_missing_live_part_is_made_anew), T(a_copy_is_a_store_of_its_own),
      T(a_moved_store_stays_itself),
      T(many_may_find_a_restarted_store_at_once),
      T(writers_that_die_hold_nobody_up),
      T(threads_share_commits_and_each_gets_its_own_result))
