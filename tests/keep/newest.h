/*
 * keep/newest.h - an array whose newest snapshot has long chains, for the tests
 * of pyr_fold().
 */
#ifndef KEEP_NEWEST_H
#define KEEP_NEWEST_H

#include "keep/ledger.h"
#include "keep/stage.h"
#include "support/rng.h"

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

#endif
