/*
 * model/bench.h - what one case of the model test works on.
 */
#ifndef TESTS_MODEL_BENCH_H
#define TESTS_MODEL_BENCH_H

#include "model/random.h"
#include "support/check.h"
#include "support/model.h"
#include "support/rng.h"
#include "support/tmp_store.h"

#include <pyramid/pyramid.h>

enum {
    MAX_TWINS = 3,     /* an array and its clones */
    MAX_TAGS = 4,
    MAX_PARTS = 5,
    MAX_VERSIONS = 1024
};

typedef struct engine {
    const char *test;
    bool mem;
    pyr_durability durability;
} engine;

/* An array and what it must hold. */
typedef struct twin {
    char name[32];
    pyr_array *array;
    model m;
    bool tagged[MAX_TAGS];
    uint64_t tag[MAX_TAGS];
    unsigned handler; /* its number, if the model flips */
    bool forgot; /* some version, ever */
    bool gone[MAX_VERSIONS];
} twin;

typedef struct bench {
    const engine *on;
    dice d;
    char url[4096];
    pyr_store *store;
    int ntwins;
    twin twins[MAX_TWINS];
} bench;

/* A version that is not forgotten. */
static inline size_t
kept_version(bench *b, const twin *t)
{
    size_t v = rng_below(&b->d.r, t->m.n);
    while (t->gone[v])
        v++; /* the newest never is */
    return v;
}

#endif
