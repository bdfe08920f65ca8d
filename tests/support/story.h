/*
 * support/story.h - a store with a model beside it, and every operation there
 * is, one row of a table each.
 *
 *   world w = {.seed = seed, .path = path};
 *   const story_op *op = story_next(&w);    what comes next, by the seed
 *   story_run(&w, op);                      the library does it, then the model
 *   story_check(&w, why, sizeof why);       what is stored is what the model has
 *
 * Without `live` the library is left out: so another process can learn what
 * must be there after as many steps of the same seed. A new public call is a
 * function and a row in support/story_ops.c; the power-cut simulator and the
 * sweeps take it from there.
 */
#ifndef SUPPORT_STORY_H
#define SUPPORT_STORY_H

#include "support/model.h"
#include "support/rng.h"

#include <limits.h>

enum {
    STORY_THINGS = 5,
    STORY_TAGS = 4,
    STORY_HANDLERS = 3,
    STORY_VERSIONS = 512
};

typedef struct thing {
    char name[32];
    model m;
    char attributes[64];
    int ntags;
    char tags[STORY_TAGS][16];
    uint64_t tagged[STORY_TAGS];
    int nhandlers; /* each adds 1 to what is stored */
    unsigned handlers[STORY_HANDLERS], had_handlers; /* numbers; ever */
    bool clone;
    bool gone[STORY_VERSIONS]; /* forgotten */
    pyr_array *array; /* open, or NULL */
} thing;

typedef struct world {
    uint64_t seed;
    const char *path;        /* of the store */
    const char *const *dirs; /* data directories elsewhere, or NULL */
    unsigned lease_ms;       /* of a store to be made; 0: as always */
    const char *const *script; /* names of the rows that follow the beginning,
                                  and NULL; then the seed decides */
    bool live;               /* is there a library? */
    pyr_store *store;        /* open, or NULL */
    bool made;               /* the store was */
    int nthings;
    thing things[STORY_THINGS];
    unsigned step;       /* operations that were done */
    rng r;               /* of the operation at hand */
    void (*enter)(void); /* right before a call of the library, */
    void (*leave)(void); /* and right after; may be NULL */
} world;

/* What a row is good for. */
enum {
    STORY_CHANGES = 1, /* makes something; else it only looks */
    STORY_FIRST = 2,   /* part of the beginning */
    STORY_VERSION = 4, /* makes a version; if it fails after it was given its
                          number, a version that changes nothing is left, */
    STORY_SHAPES = 8,  /* but for the shape: pyr_append(), pyr_resize() */
};

typedef struct story_op {
    const char *name;
    unsigned flags;
    int often; /* in a random story */
    /* 0 and the model follows; or the failure of the library, and the model
     * stays. STORY_WRONG: it succeeded, and what it gave is not so. */
    int (*run)(world *w);
} story_op;

enum { STORY_WRONG = 1 };

extern const story_op story_ops[];
extern const int story_nops;

/* The operation that follows, by script, or by seed and step. */
const story_op *story_next(world *w);
const story_op *story_find(const char *name);

/* A script: boxes on boxes, most of which are then forgotten. What is left is
 * worth folding, and LMDB's pages are worth filling, when the last step, "fold",
 * reclaims. */
extern const char *const story_folds[];
extern const unsigned story_nfolds; /* steps before the last one */

/* Does an operation, as step w->step, and counts it if it succeeds. */
int story_run(world *w, const story_op *op);

/* Opens the arrays, so that operations find them open. */
int story_warm(world *w);

/* Opens the store and compares all of it with the model. False: `why`. */
bool story_check(world *w, char *why, size_t room);

void story_close(world *w); /* handles only */
void story_fini(world *w);

#endif
