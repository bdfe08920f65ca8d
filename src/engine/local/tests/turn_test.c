/*
 * Who waits for its turn gets it, whoever is killed meanwhile.
 */
#include "engine/local/local.h"

#include "support/check.h"
#include "support/proc.h"

#include <sys/mman.h>

enum { WORKERS = 6, BOUND_MS = 20000 };

typedef struct board {
    pyri_turn turn;
    _Atomic uint32_t inside, doubled;
    _Atomic uint64_t done[WORKERS];
} board;

typedef struct worker {
    board *b;
    int i;
} worker;

static board *
new_board(void)
{
    board *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(b != MAP_FAILED);
    return b;
}

static uint32_t
me(void)
{
    return (uint32_t)getpid();
}

/* Takes turns without end. */
static int
go_round(void *arg)
{
    const worker *w = arg;
    board *b = w->b;
    for (rng r = rng_of((uint64_t)me());;) {
        pyri_turn_take(&b->turn, me());
        if (atomic_exchange(&b->inside, me()))
            atomic_fetch_add(&b->doubled, 1);
        for (volatile uint64_t k = rng_below(&r, 4000); k; k--)
            ;
        atomic_store(&b->inside, 0);
        pyri_turn_pass(&b->turn, me());
        atomic_fetch_add(&b->done[w->i], 1);
    }
    return 0;
}

static pid_t
start(board *b, int i)
{
    worker w = {b, i};
    return proc_fork(go_round, &w);
}

static void
end(pid_t pid)
{
    kill(pid, SIGKILL);
    proc_wait(pid, BOUND_MS);
}

static bool
goes_on(board *b, int i)
{
    uint64_t before = atomic_load(&b->done[i]);
    int64_t until = now_ns() + BOUND_MS * INT64_C(1000000);
    while (atomic_load(&b->done[i]) < before + 3 && now_ns() < until)
        nap_ms(1);
    return atomic_load(&b->done[i]) >= before + 3;
}

static void
one_at_a_time_as_long_as_nobody_dies(void)
{
    board *b = new_board();
    pid_t pid[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        pid[i] = start(b, i);
    for (int i = 0; i < WORKERS; i++)
        CHECK(goes_on(b, i));
    CHECK(atomic_load(&b->doubled) == 0);
    for (int i = 0; i < WORKERS; i++)
        end(pid[i]);
    munmap(b, sizeof *b);
}

/* Many are killed, in whatever they do; then all but one: that one goes on. */
static void
nobody_sleeps_on_when_others_are_killed(void)
{
    board *b = new_board();
    pid_t pid[WORKERS];
    rng r = rng_of(test_seed());
    int rounds = (int)by_scale(3, 6, 100);
    for (int i = 0; i < WORKERS; i++)
        pid[i] = start(b, i);
    for (int round = 0; round < rounds; round++) {
        for (int k = 0; k < 200; k++) {
            int i = (int)rng_below(&r, WORKERS);
            end(pid[i]);
            pid[i] = start(b, i);
        }
        int left = round % WORKERS;
        for (int i = 0; i < WORKERS; i++)
            if (i != left)
                end(pid[i]);
        CHECK(goes_on(b, left));
        for (int i = 0; i < WORKERS; i++)
            if (i != left)
                pid[i] = start(b, i);
    }
    for (int i = 0; i < WORKERS; i++)
        end(pid[i]);
    munmap(b, sizeof *b);
}

static int
take_and_die(void *arg)
{
    pyri_turn_take(arg, me());
    return 0;
}

static void
the_turn_of_one_who_is_gone_is_taken(void)
{
    board *b = new_board();
    CHECK(proc_ends_well(proc_fork(take_and_die, &b->turn), BOUND_MS));
    CHECK(atomic_load(&b->turn.whose) != 0);
    pyri_turn_take(&b->turn, me());
    CHECK(atomic_load(&b->turn.whose) == me());
    pyri_turn_pass(&b->turn, me());
    CHECK(atomic_load(&b->turn.whose) == 0 && b->turn.waiting == 0);
    munmap(b, sizeof *b);
}

/* Its parent has not asked for it yet. */
static void
the_turn_of_a_zombie_is_taken(void)
{
    board *b = new_board();
    siginfo_t info;
    int64_t patience = pyri_turn_patience_ns;
    pid_t pid = proc_fork(take_and_die, &b->turn);
    REQUIRE(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
    CHECK(atomic_load(&b->turn.whose) == (uint32_t)pid);
    pyri_turn_patience_ns = INT64_MAX;
    pyri_turn_take(&b->turn, me());
    pyri_turn_patience_ns = patience;
    CHECK(atomic_load(&b->turn.whose) == me());
    CHECK(proc_ends_well(pid, BOUND_MS));
    munmap(b, sizeof *b);
}

/* It may be stopped: LMDB's lock will tell. Its end is not ours then. */
static void
nobody_is_waited_for_forever(void)
{
    board *b = new_board();
    uint32_t parent = (uint32_t)getppid();
    pyri_turn_take(&b->turn, parent);
    pyri_turn_take(&b->turn, me());
    pyri_turn_pass(&b->turn, parent);
    CHECK(atomic_load(&b->turn.whose) == me());
    munmap(b, sizeof *b);
}

TESTS(T(one_at_a_time_as_long_as_nobody_dies),
      T(nobody_sleeps_on_when_others_are_killed),
      T(the_turn_of_one_who_is_gone_is_taken),
      T(the_turn_of_a_zombie_is_taken),
      T(nobody_is_waited_for_forever))
