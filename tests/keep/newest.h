/*
 * keep/newest.h - an array whose newest snapshot has long chains, for the tests
 * of pyr_fold().
 */
#ifndef KEEP_NEWEST_H
#define KEEP_NEWEST_H

#include "keep/ledger.h"
#include "keep/stage.h"
#include "support/rng.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

enum { SIDE = 64, CHUNK = 32, CHUNKS = 4 };

static const uint64_t zero[2], whole[2] = {SIDE, SIDE};

static inline void
write_box(pyr_array *a, rng *r, uint64_t most)
{
    static uint32_t cells[SIDE * SIDE];
    uint64_t at[2], size[2];
    for (int d = 0; d < 2; d++) {
        at[d] = rng_below(r, SIDE);
        size[d] = rng_from(r, 1, most < SIDE - at[d] ? most : SIDE - at[d]);
    }
    for (uint64_t i = 0; i < size[0] * size[1]; i++)
        cells[i] = (uint32_t)rng_next(r);
    OK(pyr_write(a, at, size, cells, NULL));
}

/* All of it, and then some boxes on top. */
static inline void
open_stage(stage *s, const char *url, rng *r, int boxes)
{
    static uint32_t cells[SIDE * SIDE];
    *r = rng_of(test_seed());
    stage_open(s, url ? url : tmp_fresh("newest"), 60000, 2, SIDE, CHUNK);
    for (int i = 0; i < SIDE * SIDE; i++)
        cells[i] = (uint32_t)i;
    OK(pyr_write(s->array, zero, whole, cells, NULL));
    for (int i = 0; i < boxes; i++)
        write_box(s->array, r, 16);
}

/* --- what is there ------------------------------------------------------- */

typedef struct links {
    const pyri_snapshot *s;
    int n, longest;
} links;

static inline int
count_links(void *ctx, const uint64_t *pos, const pyri_node *leaf,
            const pyri_box *region, uint64_t bits)
{
    links *l = ctx;
    pyri_leaf_walk w;
    pyri_box domain;
    (void)region, (void)bits;
    REQUIRE(leaf);
    pyri_grid_domain(&l->s->grid, 0, pos, &domain);
    OK(pyri_leaf_begin(leaf, 2, &domain, &w));
    CHECK(w.prev == 0);
    l->n += (int)w.left;
    if ((int)w.left > l->longest)
        l->longest = (int)w.left;
    return 0;
}

static inline links
links_of(pyr_array *a, pyr_version v)
{
    links l = {0};
    pyri_snapshot s;
    OK(pyri_snapshot_open(a->array, v, &s));
    l.s = &s;
    OK(pyri_tree_newer(&s.tree, 0, count_links, &l));
    pyri_snapshot_close(&s);
    return l;
}

/* How often leaves of the array were replaced by folds. */
static inline uint64_t
folds_of(pyr_array *a)
{
    pyri_reader *r;
    uint64_t n;
    OK(pyri_engine_begin(a->array->engine, &r));
    OK(pyri_folds(a->array, r, &n));
    pyri_engine_end(a->array->engine, r);
    return n;
}

static inline void
nothing_is_harmed(pyr_store *store)
{
    pyr_verified found;
    OK(pyr_verify(store, &(pyr_verify_spec){.deep = true}, &found));
    CHECK(found.harms == 0 && found.orphan_blobs == 0 &&
          found.orphan_nodes == 0);
}

/* Every version, to be compared with later. */
typedef struct past {
    uint32_t *cells;
    pyr_version latest;
} past;

static inline past
keep_past(pyr_array *a)
{
    past p;
    OK(pyr_latest(a, &p.latest));
    p.cells = malloc((p.latest + 1) * SIDE * SIDE * 4);
    REQUIRE(p.cells);
    for (pyr_version v = 0; v <= p.latest; v++)
        OK(pyr_read(a, v, zero, whole, p.cells + v * SIDE * SIDE));
    return p;
}

static inline void
same_past(pyr_array *a, const past *p)
{
    static uint32_t now[SIDE * SIDE];
    for (pyr_version v = 0; v <= p->latest; v++) {
        OK(pyr_read(a, v, zero, whole, now));
        if (memcmp(now, p->cells + v * SIDE * SIDE, sizeof now) != 0)
            CHECK_NOTE("version %d differs", (int)v);
    }
}

/* --- writers in other processes ------------------------------------------ */

enum { WRITERS = 2, WRITES = 150 };

typedef struct writer {
    const char *url;
    unsigned id;
    unsigned flags;     /* of the store */
    int reads;          /* of the newest snapshot, when all is written */
    atomic_int *enough; /* shared: they go on until it is set; or NULL */
} writer;

/* What a writer writes: a box that its number tells. */
static inline void
box_of(unsigned id, unsigned seq, uint64_t at[2], uint64_t size[2],
       uint32_t *cells)
{
    rng r = rng_of(id * 100000 + seq);
    for (int d = 0; d < 2; d++) {
        at[d] = rng_below(&r, SIDE - 12);
        size[d] = rng_from(&r, 1, 12);
    }
    for (uint64_t i = 0; i < size[0] * size[1]; i++)
        cells[i] = (uint32_t)rng_next(&r);
}

static inline bool
more_is_wanted(const writer *w, unsigned seq)
{
    return w->enough && !atomic_load(w->enough) && seq < 20 * WRITES;
}

static inline int
read_newest(const writer *w, pyr_array *array)
{
    static uint32_t now[SIDE * SIDE];
    int err = 0;
    for (int i = 0; i < w->reads && err == 0; i++)
        err = pyr_read(array, PYR_LATEST, zero, whole, now);
    return err;
}

static inline int
write_many(void *ctx)
{
    const writer *w = ctx;
    pyr_store *store;
    pyr_array *array;
    int err = pyr_open(w->url, w->flags, &store);
    if (err < 0 || (err = pyr_array_open(store, "a", &array)) < 0)
        return 1;
    for (unsigned seq = 0; seq < WRITES || more_is_wanted(w, seq); seq++) {
        uint64_t at[2], size[2];
        uint32_t cells[12 * 12];
        char message[32];
        box_of(w->id, seq, at, size, cells);
        snprintf(message, sizeof message, "%u %u", w->id, seq);
        err = pyr_write_list(
            array, &(pyr_part){.offset = at, .size = size, .buf = cells}, 1,
            &(pyr_write_options){.message = message}, NULL);
        if (err < 0)
            break;
    }
    if (err == 0)
        err = read_newest(w, array);
    pyr_array_close(array);
    pyr_close(store);
    return err < 0 ? 2 : 0;
}

typedef struct replay {
    pyr_array *array;
    uint32_t cells[SIDE * SIDE];
} replay;

/* For pyr_history(): the writes of the versions so far, replayed. */
static inline int
compare_next(void *ctx, const pyr_change *c)
{
    replay *p = ctx;
    static uint32_t now[SIDE * SIDE];
    unsigned id, seq;
    uint32_t cells[12 * 12];
    uint64_t at[2], size[2] = {0, 0};
    if (c->kind != PYR_KIND_NOTHING) { /* that is what a killed one leaves */
        REQUIRE(sscanf(c->message, "%u %u", &id, &seq) == 2);
        box_of(id, seq, at, size, cells);
    }
    for (uint64_t y = 0; y < size[0]; y++)
        memcpy(p->cells + (at[0] + y) * SIDE + at[1], cells + y * size[1],
               size[1] * 4);
    OK(pyr_read(p->array, c->version, zero, whole, now));
    if (memcmp(now, p->cells, sizeof now) != 0)
        CHECK_NOTE("version %d differs", (int)c->version);
    return 0;
}

/* --- killed -------------------------------------------------------------- */

/* For pyri_fault_hook: this point kills. */
static const char *fatal;

static inline int
die_there(const char *name)
{
    if (fatal && strcmp(name, fatal) == 0)
        kill(getpid(), SIGKILL);
    return 0;
}

#endif
