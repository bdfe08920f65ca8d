/*
 * keep/halted.h - a writer on a thread of its own that waits at a fault point
 * while others go on.
 *
 *   halted h;
 *   halt_begin(&h, "write.taken", write_it, &what);   it is there
 *   ...
 *   halt_end(&h);                                      it goes on, and is done
 */
#ifndef KEEP_HALTED_H
#define KEEP_HALTED_H

#include "base/fault.h"
#include "support/check.h"

#include <pthread.h>
#include <semaphore.h>

typedef struct halted {
    const char *point;
    int (*run)(void *ctx);
    void *ctx;
    int err; /* what it returned */
    sem_t there, go;
    pthread_t thread;
} halted;

static __thread halted *halted_here;

static inline int
halt_at_point(const char *name)
{
    halted *h = halted_here;
    if (h && h->point && strcmp(name, h->point) == 0) {
        h->point = NULL; /* once */
        sem_post(&h->there);
        sem_wait(&h->go);
    }
    return 0;
}

static inline void *
halt_run(void *arg)
{
    halted *h = arg;
    halted_here = h;
    h->err = h->run(h->ctx);
    return NULL;
}

static inline void
halt_begin(halted *h, const char *point, int (*run)(void *ctx), void *ctx)
{
    *h = (halted){.point = point, .run = run, .ctx = ctx};
    pyri_fault_hook = halt_at_point;
    sem_init(&h->there, 0, 0);
    sem_init(&h->go, 0, 0);
    REQUIRE(pthread_create(&h->thread, NULL, halt_run, h) == 0);
    sem_wait(&h->there);
}

/* Lets it go on; halt_join() waits for its end. */
static inline void
halt_release(halted *h)
{
    sem_post(&h->go);
}

static inline void
halt_join(halted *h)
{
    pthread_join(h->thread, NULL);
    CHECK(h->err == 0);
}

static inline void
halt_end(halted *h)
{
    halt_release(h);
    halt_join(h);
}

#endif
