/*
 * tests/engine/processes.h - what engines that outlive a process promise:
 * reopening, and many processes on one store.
 */
#ifndef TESTS_ENGINE_PROCESSES_H
#define TESTS_ENGINE_PROCESSES_H

#include "engine/blobs.h"
#include "engine/leases.h"
#include "engine/stores.h"
#include "engine/versions.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static void
reopening_keeps_everything(void)
{
    pyri_engine *e = fresh_with_array();
    blob blobs[2] = {{.seed = 1, .size = 100000},
                     {.seed = 2, .size = 9000, .aligned = true}};
    OK(edit_one(e, PYRI_EDIT_PUT, "key", "value"));
    OK(put_blob(e, &blobs[0]));
    OK(put_blob(e, &blobs[1]));
    OK(pyri_engine_sync(e));
    pyri_ticket first = take_shape(e, NULL, 0, 11);
    name_blobs(e, &first, blobs, 2);
    pyri_ticket second = take(e, ARRAY, "claim"), third = take(e, ARRAY, "");
    OK(complete_with_node(e, &third, "3"));
    pyri_engine_close(e);

    e = open_as(0, 0);
    CHECK(record_is(e, "key", "value"));
    CHECK(range_is(e, &blobs[0], 0, 100000) && range_is(e, &blobs[1], 0, 9000));
    CHECK(version_is(e, ARRAY, 1, "1") && version_is(e, ARRAY, 3, NULL));
    CHECK(has_node(e, "1") && has_node(e, "3"));
    pyri_flights all = flights(e);
    CHECK(all.base == 1 && all.base_shape[0] == SHAPE[0] + 11);
    REQUIRE(all.n == 2);
    CHECK(!all.list[0].complete && all.list[1].complete);
    CHECK(same(all.list[0].claim, text("claim")));
    CHECK(all.list[0].shape[0] == SHAPE[0] + 11);
    pyri_flights_fini(&all);
    OK(complete(e, &second, "2"));
    CHECK(latest(e, ARRAY) == 3 && version_is(e, ARRAY, 3, "3"));
    CHECK(take(e, ARRAY, "").version == 4);
    pyri_engine_close(e);
}

/* Run `work` in a process of its own, which opens the store for itself; the
 * parent must not have it open. */
static pid_t
start_process(int (*work)(pyri_engine *e, int number, void *shared), int number,
              void *shared)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    pyri_engine *e;
    int bad = 1;
    if (pyri_engine_open(last_url, 0, NULL, &e) == 0) {
        bad = work(e, number, shared);
        pyri_engine_close(e);
    }
    if (bad)
        printf("# process %d: %d failures; %s\n", number, bad, pyr_errmsg());
    fflush(stdout);
    _exit(bad != 0);
}

static int
process_take_and_complete(pyri_engine *e, int number, void *shared)
{
    return take_and_complete(e, rounds(200), number, shared);
}

static void
many_processes_take_and_complete_at_once(void)
{
    atomic_uchar *given = mmap(NULL, MOST_TAKEN, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(given != MAP_FAILED);
    pyri_engine_close(fresh_with_array());
    pid_t pids[THREADS];
    for (int i = 0; i < THREADS; i++)
        pids[i] = start_process(process_take_and_complete, i, given);
    for (int i = 0; i < THREADS; i++) {
        int status = 0;
        REQUIRE(pids[i] > 0 && waitpid(pids[i], &status, 0) == pids[i]);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    pyri_engine *e = open_as(0, 0);
    check_all_given_once(e, (uint64_t)rounds(200) * THREADS, given);
    pyri_engine_close(e);
    munmap(given, MOST_TAKEN);
}

/* Blobs of all processes, and how many each has put. */
static int
process_put_and_get(pyri_engine *e, int number, void *shared)
{
    worker w = {.e = e, .number = number, .shared = shared};
    put_and_get_blobs(&w);
    if (w.failures)
        printf("# process %d: %s\n", number, w.why);
    return w.failures;
}

static void
many_processes_put_and_get_blobs_at_once(void)
{
    blob_board *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(board != MAP_FAILED);
    pyri_engine_close(fresh_with_array());
    pid_t pids[THREADS];
    for (int i = 0; i < THREADS; i++)
        pids[i] = start_process(process_put_and_get, i, board);
    for (int i = 0; i < THREADS; i++) {
        int status = 0;
        REQUIRE(pids[i] > 0 && waitpid(pids[i], &status, 0) == pids[i]);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    pyri_engine *e = open_as(PYR_OPEN_READONLY, 0);
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < 100; i++)
            CHECK(range_is(e, &board->blobs[t][i], 0, board->blobs[t][i].size));
    pyri_engine_close(e);
    munmap(board, sizeof *board);
}

static int
process_take_and_die(pyri_engine *e, int number, void *shared)
{
    (void)number;
    pyri_take want = {.array = ARRAY, .claim = text("victim"), .grow_axis = -1};
    pyri_flights below = {0};
    if (pyri_engine_take(e, &want, shared, &below) == 0)
        raise(SIGKILL);
    return 1;
}

/* A new store, with version 1 taken by a process that was killed: its ticket,
 * to be unmapped. */
static pyri_ticket *
leave_a_dead_writer(unsigned lease_ms)
{
    pyri_ticket *ticket = mmap(NULL, sizeof *ticket, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(ticket != MAP_FAILED);
    pyri_engine *e = fresh_with_lease(lease_ms);
    make_array(e, ARRAY, 0);
    pyri_engine_close(e);
    int status;
    pid_t pid = start_process(process_take_and_die, 0, ticket);
    REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid);
    REQUIRE(WIFSIGNALED(status) && ticket->version == 1);
    return ticket;
}

static void
a_writer_whose_process_was_killed_is_dead(void)
{
    pyri_ticket *ticket = leave_a_dead_writer(LEASE_MS);
    pyri_engine *e = open_as(0, 0);
    pyri_ticket next = take(e, ARRAY, "");
    CHECK(next.version == 2);
    OK(complete(e, &next, "next"));
    await_death(e, 0); /* it may show before the lease ran out */
    OK(complete(e, ticket, "resolved"));
    CHECK(latest(e, ARRAY) == 2 && version_is(e, ARRAY, 1, "resolved"));
    pyri_engine_close(e);
    munmap(ticket, sizeof *ticket);
}

/* Neither a lease nor any silence is waited for. */
static void
a_death_on_this_machine_shows_at_the_first_look(void)
{
    pyri_ticket *ticket = leave_a_dead_writer(3600000);
    pyri_engine *e = open_as(0, 0);
    pyri_flights all = flights(e);
    CHECK(all.n == 1 && all.list[0].dead);
    pyri_flights_fini(&all);
    pyri_engine_close(e);
    munmap(ticket, sizeof *ticket);
}

/* A process waits for a version that its parent completes. */
static int
process_wait(pyri_engine *e, int number, void *shared)
{
    (void)number;
    atomic_store((atomic_int *)shared, 1);
    int64_t start = now_ns();
    int err = PYR_ETIMEOUT;
    while (err == PYR_ETIMEOUT && patient(start))
        err = pyri_engine_wait(e, ARRAY, 1, PATIENCE_S * 1000);
    return err != 0 || now_ns() - start > PATIENCE_S * 500000000ll;
}

static void
those_who_wait_in_another_process_are_woken(void)
{
    atomic_int *waiting = mmap(NULL, sizeof *waiting, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(waiting != MAP_FAILED);
    pyri_engine_close(fresh_with_array());
    pid_t pid = start_process(process_wait, 0, waiting);
    REQUIRE(pid > 0);
    pyri_engine *e = open_as(0, 0);
    pyri_ticket ticket = take(e, ARRAY, "");
    int64_t start = now_ns();
    while (!atomic_load(waiting) && patient(start))
        ;
    OK(complete(e, &ticket, ""));
    int status;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    pyri_engine_close(e);
    munmap(waiting, sizeof *waiting);
}

#endif
