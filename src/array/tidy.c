/*
 * array/tidy.c - folding chunks behind the back of those who read them.
 *
 * A reader pays for every fragment beyond the first that it has to go to. When
 * as much has been paid for a chunk as folding it would cost, it should have
 * been folded; nobody can know sooner. To keep no accounts, a throw of dice
 * says when that is: each fragment brings the chunk here with a chance of one
 * to what folding costs, in fragments. So what many short-lived readers pay
 * adds up, too, and reading costs at most twice what it would if the future
 * were known, or so. Leaves that the newest snapshot does not have are left
 * alone.
 *
 * Only so many bytes are written as are in proportion to what small writes
 * brought (SPEND). Nothing here is promised to anyone: whatever is interrupted
 * is dropped, and after a failure, be it a full disk, nothing is folded any
 * more. Writers do not leave their long chains to this (prepare.c): their folds
 * would cost more here, and have been in vain where others write to the chunk.
 */
#include "array/tidy.h"

#include "array/fold.h"
#include "base/hash.h"
#include "base/sys.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SPEND = 8,      /* see pyri_folding */
    ROOM = 64,      /* chunks that may wait */
    BATCH = 8,      /* that are folded by one step, */
    PATIENCE = 20,  /* or fewer after so many milliseconds */
    BUSY = 5,       /* milliseconds until another's upkeep may be over */
    VAIN = 1024,    /* leaves that are remembered */
    DEAR = 32,      /* what folding costs at least, in fragments read, */
    DEARER = 4096   /* and one more for so many bytes */
};

typedef struct note {
    pyri_fold_want want;
    uint64_t name; /* hash of array and place */
} note;

struct pyri_tidy {
    pyri_engine *engine;
    pid_t pid;
    pthread_t thread;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t more;
    bool started, stopping;
    bool tired; /* folding failed: there may be no space for it */
    note notes[ROOM];
    size_t n;
    /* Leaves that were left as they are, each at a place of its own; read
     * without the lock. */
    _Atomic uint64_t vain[VAIN];
};

/* --- what was tried in vain ---------------------------------------------- */

/* Of a leaf, whichever clone it is come by in; of the chunk, if that is 0. */
static uint64_t
name_of(const pyri_array *a, const uint64_t *pos, uint64_t leaf)
{
    int ndim = a->schema.ndim;
    uint64_t of = leaf ? pyri_lineage_owner(&a->schema.lineage, leaf) : a->id;
    uint64_t key[2 + PYR_MAX_DIMS] = {of, leaf};
    memcpy(key + 2, pos, (size_t)ndim * sizeof *key);
    return pyri_hash64(key, (size_t)(2 + ndim) * sizeof *key);
}

static bool
was_vain(pyri_tidy *t, uint64_t name)
{
    return atomic_load_explicit(&t->vain[name % VAIN],
                                memory_order_relaxed) == name;
}

static void
note_vain(void *ctx, const pyri_array *a, const uint64_t *pos, uint64_t leaf)
{
    pyri_tidy *t = ctx;
    uint64_t name = name_of(a, pos, leaf);
    atomic_store_explicit(&t->vain[name % VAIN], name, memory_order_relaxed);
}

/* --- notes --------------------------------------------------------------- */

static bool
is_noted(const pyri_tidy *t, uint64_t name)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->notes[i].name == name)
            return true;
    return false;
}

static void
drop_first(pyri_tidy *t, size_t n)
{
    t->n -= n;
    memmove(t->notes, t->notes + n, t->n * sizeof *t->notes);
}

static void *run(void *arg);

/* It takes no signals: those are for the program's own threads. */
static bool
start(pyri_tidy *t)
{
    sigset_t all, before;
    if (t->started)
        return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    t->started = pthread_create(&t->thread, NULL, run, t) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return t->started;
}

static void
add(pyri_tidy *t, const pyri_array *a, const uint64_t *pos, uint64_t leaf)
{
    uint64_t name = name_of(a, pos, 0);
    if (t->tired || t->n == ROOM || is_noted(t, name) || !start(t))
        return;
    note *new = &t->notes[t->n++];
    *new = (note){.want = {.array = a->id, .leaf = leaf}, .name = name};
    memcpy(new->want.pos, pos, (size_t)a->schema.ndim * sizeof *pos);
    if (t->n == 1 || t->n == BATCH)
        pthread_cond_signal(&t->more);
}

/* Even, and different in every thread and process. */
static uint64_t
throw_dice(void)
{
    static _Thread_local uint64_t state;
    if (state == 0)
        state = (uint64_t)(uintptr_t)&state ^ ((uint64_t)getpid() << 32);
    state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t x = (state ^ (state >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ (x >> 31);
}

void
pyri_tidy_read(const pyri_array *a, const uint64_t *pos, uint64_t leaf, int n)
{
    pyri_tidy *t = a->tidy;
    if (!t || n < 2)
        return;
    uint64_t bytes = pyri_type_size(a->schema.type);
    for (int d = 0; d < a->schema.ndim; d++)
        bytes *= a->schema.chunk[d];
    if (throw_dice() % (DEAR + bytes / DEARER) >= (uint64_t)n - 1)
        return;
    if (was_vain(t, name_of(a, pos, leaf)) ||
        pthread_mutex_trylock(&t->lock) != 0) /* a reader waits for nobody */
        return;
    add(t, a, pos, leaf);
    pthread_mutex_unlock(&t->lock);
}

/* --- the thread ---------------------------------------------------------- */

/* Until there is a batch, or it took too long; with the lock. */
static void
wait_for(pyri_tidy *t, size_t n, int ms)
{
    struct timespec end = {0};
    int err = pyri_sys_clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += (long)ms * 1000000;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    while (t->n < n && !t->stopping && err == 0)
        err = pthread_cond_timedwait(&t->more, &t->lock, &end);
}

/* With the lock, which is let go of meanwhile. */
static void
fold_some(pyri_tidy *t)
{
    pyri_fold_want wants[BATCH];
    size_t n = t->n < BATCH ? t->n : BATCH;
    for (size_t i = 0; i < n; i++)
        wants[i] = t->notes[i].want;
    drop_first(t, n);
    pthread_mutex_unlock(&t->lock);
    pyri_folding how = {
        .spend = SPEND, .tries = 1, .missed = note_vain, .ctx = t};
    int err = pyri_fold_wanted(t->engine, wants, n, &how);
    pthread_mutex_lock(&t->lock);
    if (err == PYR_ETIMEOUT)
        wait_for(t, ROOM, BUSY);
    else if (err < 0)
        t->tired = true;
}

static void *
run(void *arg)
{
    pyri_tidy *t = arg;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (t->n == 0 && !t->stopping)
            pthread_cond_wait(&t->more, &t->lock);
        if (!t->stopping)
            wait_for(t, BATCH, PATIENCE);
        if (t->stopping)
            break;
        if (t->n > 0)
            fold_some(t);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* --- lifetime ------------------------------------------------------------ */

int
pyri_tidy_new(pyri_engine *e, pyri_tidy **out)
{
    *out = NULL;
    if (!pyri_engine_folds_aside(e))
        return 0;
    pyri_tidy *t = pyri_sys_calloc(1, sizeof *t);
    if (!t)
        return pyri_fail_nomem("a store");
    t->engine = e;
    t->pid = getpid();
    pthread_mutex_init(&t->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&t->more, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *out = t;
    return 0;
}

void
pyri_tidy_free(pyri_tidy *t)
{
    if (!t)
        return;
    if (t->pid == getpid()) { /* a child of fork() has no such thread */
        pthread_mutex_lock(&t->lock);
        t->stopping = true;
        pthread_cond_signal(&t->more);
        pthread_mutex_unlock(&t->lock);
        if (t->started)
            pthread_join(t->thread, NULL);
    }
    free(t);
}
