/*
 * Workers: every part once, failures with their text, callers side by side.
 */
#include "base/fail.h"
#include "base/pool.h"
#include "support/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PARTS = 1000, THREADS = 4, ROUNDS = 200 };

typedef struct tally {
    atomic_uint visits[PARTS];
    atomic_uint at_work[PYRI_MAX_WORKERS]; /* by worker number */
    atomic_uint clashes;
    size_t fails_from; /* parts from here on fail; 0: none */
    atomic_uint done;
} tally;

static int
count_part(void *ctx, size_t i, unsigned worker)
{
    tally *t = ctx;
    if (worker >= PYRI_MAX_WORKERS ||
        atomic_fetch_add(&t->at_work[worker], 1) != 0)
        atomic_fetch_add(&t->clashes, 1);
    atomic_fetch_add(&t->visits[i], 1);
    atomic_fetch_add(&t->done, 1);
    if (worker < PYRI_MAX_WORKERS)
        atomic_fetch_sub(&t->at_work[worker], 1);
    if (t->fails_from && i >= t->fails_from)
        return pyri_fail(PYR_ENOSPC, "part %zu is too big", i);
    return 0;
}

static void
check_counts(const tally *t, size_t n)
{
    size_t wrong = 0;
    for (size_t i = 0; i < PARTS; i++)
        wrong += t->visits[i] != (i < n);
    CHECK(wrong == 0);
    CHECK(t->clashes == 0);
}

static void
every_part_is_done_once(void)
{
    static const size_t sizes[] = {0, 1, 2, 3, 4, 5, 17, PARTS};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
        for (int round = 0; round < ROUNDS; round++) {
            tally t = {0};
            OK(pyri_pool_run(sizes[k], count_part, &t));
            check_counts(&t, sizes[k]);
        }
}

static void
a_failure_comes_with_its_text(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        tally t = {.fails_from = 40};
        pyri_fail(PYR_EIO, "an older failure");
        FAILS(PYR_ENOSPC, pyri_pool_run(PARTS, count_part, &t));
        CHECK(strstr(pyr_errmsg(), "is too big") != NULL);
        CHECK(t.done < PARTS && t.clashes == 0);
    }
}

static int
fail_alone(void *ctx, size_t i, unsigned worker)
{
    (void)ctx;
    return pyri_fail(PYR_EINVAL, "part %zu, worker %u", i, worker);
}

static void
a_single_part_stays_on_the_callers_thread(void)
{
    FAILS(PYR_EINVAL, pyri_pool_run(1, fail_alone, NULL));
    CHECK(strcmp(pyr_errmsg(), "part 0, worker 0") == 0);
    OK(pyri_pool_run(0, fail_alone, NULL));
}

/* Slow enough for the workers to take their share, and to fail first. */
static int
fail_elsewhere(void *ctx, size_t i, unsigned worker)
{
    (void)i;
    usleep(1000);
    if (worker == 0)
        return 0;
    atomic_fetch_add((atomic_uint *)ctx, 1);
    return pyri_fail(PYR_EIO, "worker, not caller");
}

static void
a_workers_text_reaches_the_caller(void)
{
    atomic_uint failures = 0;
    int err = pyri_pool_run(200, fail_elsewhere, &failures);
    CHECK((err == PYR_EIO) == (failures > 0)); /* none on one core */
    CHECK(err == 0 || strcmp(pyr_errmsg(), "worker, not caller") == 0);
}

static int
run_inside(void *ctx, size_t i, unsigned worker)
{
    (void)i;
    (void)worker;
    tally t = {0};
    int err = pyri_pool_run(10, count_part, &t);
    atomic_fetch_add((atomic_uint *)ctx, t.done);
    return err;
}

static void
a_part_may_run_parts(void)
{
    atomic_uint done = 0;
    OK(pyri_pool_run(50, run_inside, &done));
    CHECK(done == 500);
}

static void *
call_often(void *arg)
{
    size_t wrong = 0;
    for (int round = 0; round < ROUNDS; round++) {
        tally t = {0};
        wrong += pyri_pool_run(100, count_part, &t) != 0 || t.done != 100 ||
                 t.clashes != 0;
    }
    *(size_t *)arg = wrong;
    return NULL;
}

static void
many_threads_may_call(void)
{
    pthread_t threads[THREADS];
    size_t wrong[THREADS];
    for (int i = 0; i < THREADS; i++)
        REQUIRE(!pthread_create(&threads[i], NULL, call_often, &wrong[i]));
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(wrong[i] == 0);
    }
}

static int
child_works(void)
{
#ifdef __SANITIZE_THREAD__
    return 0; /* it allows no threads in such a child */
#endif
    tally t = {0};
    alarm(20); /* rather than hang */
    for (int round = 0; round < 20; round++)
        if (pyri_pool_run(10, count_part, &t) < 0)
            return 1;
    return t.done == 200 ? 0 : 2;
}

static int
fork_in_part(void *ctx, size_t i, unsigned worker)
{
    (void)ctx;
    (void)i;
    (void)worker;
    int status = -1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(child_works());
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return pyri_fail(PYR_EIO, "cannot fork");
    return status == 0 ? 0 : pyri_fail(PYR_EIO, "child: %d", status);
}

static void
a_child_has_workers_of_its_own(void)
{
    tally t = {0};
    OK(pyri_pool_run(10, count_part, &t));
    OK(fork_in_part(NULL, 0, 0));
    OK(pyri_pool_run(10, count_part, &t));
    CHECK(t.done == 20);
}

static void
a_child_of_a_busy_pool_does_not_hang(void)
{
    OK(pyri_pool_run(8, fork_in_part, NULL));
}

TESTS(T(every_part_is_done_once), T(a_failure_comes_with_its_text),
      T(a_single_part_stays_on_the_callers_thread),
      T(a_workers_text_reaches_the_caller), T(a_part_may_run_parts),
      T(many_threads_may_call), T(a_child_has_workers_of_its_own),
      T(a_child_of_a_busy_pool_does_not_hang))
