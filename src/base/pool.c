/*
 * base/pool.c - a few worker threads for work that falls into equal parts.
 *
 * The threads are started by the first job that has use for them, and sleep
 * until the process ends. One job at a time:
 *
 *   1. The caller takes the pool (`busy`), describes the job, opens it under
 *      the lock, wakes the workers, and begins with the parts right away.
 *   2. A worker that wakes while the job is open joins it under the lock; it
 *      gets its number there. One that comes too late sleeps on.
 *   3. Each takes the next part until there are none, or one has failed.
 *   4. The caller closes the job and waits for those who joined. Only then
 *      does the job's memory, the caller's, go out of use.
 *
 * A child of fork() has none of the threads, and locks that may never be
 * released: it leaves the pool of its parent alone and makes one of its own.
 */
#include "base/pool.h"

#include "base/fail.h"
#include "base/sys.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A worker about to finish is faster than going to sleep and being woken. */
enum { SPINS = 1000 };

typedef struct job {
    size_t n;
    pyri_part_fn *fn;
    void *ctx;
    atomic_size_t next; /* the first part that nobody has taken */
    atomic_bool failed;
    pthread_mutex_t lock; /* guards what is below */
    int err;
    char text[1024];
} job;

typedef struct pool {
    pid_t pid;
    struct pool *parent; /* left behind by fork(); never touched */
    atomic_bool busy;    /* guards `started`, `threads` and who may open */
    bool started;
    unsigned threads;
    atomic_uint at_work;  /* workers in the job; changed under the lock */
    pthread_mutex_t lock; /* guards what is below */
    pthread_cond_t opened, left;
    job *open;       /* what workers may join, or NULL */
    uint64_t number; /* of the job that was opened last */
    unsigned joined; /* workers in that job, so far */
} pool;

static _Atomic(pool *) current;

static void
pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* --- one job ------------------------------------------------------------- */

static void
note_failure(job *j, int err)
{
    pthread_mutex_lock(&j->lock);
    if (j->err == 0) {
        j->err = err;
        snprintf(j->text, sizeof j->text, "%s", pyr_errmsg());
    }
    pthread_mutex_unlock(&j->lock);
    atomic_store_explicit(&j->failed, true, memory_order_relaxed);
}

static void
do_parts(job *j, unsigned worker)
{
    while (!atomic_load_explicit(&j->failed, memory_order_relaxed)) {
        size_t i = atomic_fetch_add_explicit(&j->next, 1,
                                             memory_order_relaxed);
        if (i >= j->n)
            return;
        int err = j->fn(j->ctx, i, worker);
        if (err < 0)
            note_failure(j, err);
    }
}

static int
do_alone(size_t n, pyri_part_fn *fn, void *ctx)
{
    int err = 0;
    for (size_t i = 0; i < n && err == 0; i++)
        err = fn(ctx, i, 0);
    return err;
}

/* --- workers ------------------------------------------------------------- */

static void *
work(void *arg)
{
    pool *p = arg;
    uint64_t last = 0; /* a job is joined once */
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->open || p->number == last)
            pthread_cond_wait(&p->opened, &p->lock);
        job *j = p->open;
        unsigned worker = ++p->joined;
        last = p->number;
        atomic_fetch_add(&p->at_work, 1);
        pthread_mutex_unlock(&p->lock);

        do_parts(j, worker);

        pthread_mutex_lock(&p->lock);
        if (atomic_fetch_sub(&p->at_work, 1) == 1)
            pthread_cond_signal(&p->left);
    }
    return NULL;
}

static unsigned
threads_wanted(void)
{
    cpu_set_t set;
    int cores = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        cores = CPU_COUNT(&set);
    return (unsigned)(cores < PYRI_MAX_WORKERS ? cores : PYRI_MAX_WORKERS) - 1;
}

/* Threads that cannot be had are done without. They take no signals: those are
 * for the program's own threads. */
static void
start_threads(pool *p)
{
    unsigned wanted = threads_wanted();
    pthread_attr_t attr;
    sigset_t all, before;
    p->started = true;
    if (wanted == 0 || pthread_attr_init(&attr) != 0)
        return;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (pthread_t t; p->threads < wanted; p->threads++)
        if (pthread_create(&t, &attr, work, p) != 0)
            break;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
}

/* --- the pool ------------------------------------------------------------ */

/* This process's pool; NULL if there is no memory for one. */
static pool *
get_pool(void)
{
    pid_t pid = getpid();
    pool *p = atomic_load(&current);
    if (p && p->pid == pid)
        return p;
    pool *made = pyri_sys_calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->pid = pid;
    made->parent = p;
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->opened, NULL);
    pthread_cond_init(&made->left, NULL);
    if (atomic_compare_exchange_strong(&current, &p, made))
        return made;
    free(made); /* another thread was faster */
    return p;
}

/* The pool, with threads, for the caller alone; NULL if that cannot be. */
static pool *
take_pool(void)
{
    pool *p = get_pool();
    if (!p || atomic_exchange_explicit(&p->busy, true, memory_order_acquire))
        return NULL;
    if (!p->started)
        start_threads(p);
    if (p->threads > 0)
        return p;
    atomic_store_explicit(&p->busy, false, memory_order_release);
    return NULL;
}

static void
open_job(pool *p, job *j)
{
    pthread_mutex_lock(&p->lock);
    p->open = j;
    p->number++;
    p->joined = 0;
    pthread_mutex_unlock(&p->lock);
    if (j->n > p->threads) {
        pthread_cond_broadcast(&p->opened);
        return;
    }
    for (size_t i = 1; i < j->n; i++)
        pthread_cond_signal(&p->opened);
}

static void
close_job(pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->open = NULL;
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < SPINS && atomic_load(&p->at_work) > 0; i++)
        pause_briefly();
    pthread_mutex_lock(&p->lock);
    while (atomic_load(&p->at_work) > 0)
        pthread_cond_wait(&p->left, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

int
pyri_pool_run(size_t n, pyri_part_fn *fn, void *ctx)
{
    pool *p = n > 1 ? take_pool() : NULL;
    if (!p)
        return do_alone(n, fn, ctx);
    job j = {.n = n, .fn = fn, .ctx = ctx};
    pthread_mutex_init(&j.lock, NULL);
    open_job(p, &j);
    do_parts(&j, 0);
    close_job(p);
    atomic_store_explicit(&p->busy, false, memory_order_release);
    pthread_mutex_destroy(&j.lock);
    return j.err < 0 ? pyri_fail(j.err, "%s", j.text) : 0;
}

int
pyri_pool_run_if(bool worth, size_t n, pyri_part_fn *fn, void *ctx)
{
    return worth ? pyri_pool_run(n, fn, ctx) : do_alone(n, fn, ctx);
}
