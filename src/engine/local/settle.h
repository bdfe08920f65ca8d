/*
 * engine/local/settle.h - giving space back: what its parts know of each other.
 *
 *     settle.c   one at a time, and in which order; metadata
 *     limbo.c    bytes that were erased, once nobody can read them
 *     sweep.c    segments that nobody appends to
 */
#ifndef PYRI_ENGINE_LOCAL_SETTLE_H
#define PYRI_ENGINE_LOCAL_SETTLE_H

#include "engine/local/env.h"
#include "engine/local/segment.h"

typedef struct pyri_range { /* of a file */
    uint64_t from, to;
} pyri_range;

static inline uint64_t
pyri_page_up(uint64_t v)
{
    return (v + PYRI_PAGE - 1) & ~(uint64_t)(PYRI_PAGE - 1);
}

static inline uint64_t
pyri_page_down(uint64_t v)
{
    return v & ~(uint64_t)(PYRI_PAGE - 1);
}

/* --- settle.c ------------------------------------------------------------ */

/* Have what the last transaction did told to all, also if it was cut off. */
int pyri_settle_see(pyri_site *s);

/* --- limbo.c ------------------------------------------------------------- */

typedef struct pyri_limbo_entry {
    uint64_t txn; /* that erased it */
    pyri_blob blob;
} pyri_limbo_entry;

/* A result other than 0 ends the walk; 1 is no failure. */
typedef int pyri_limbo_fn(void *ctx, const pyri_limbo_entry *e);

int pyri_limbo_scan(pyri_site *s, pyri_txn *txn, pyri_limbo_fn *each,
                    void *ctx);
int pyri_limbo_empty(pyri_site *s, pyri_settled *out);

/* --- sweep.c ------------------------------------------------------------- */

pyri_placement pyri_place_of(uint64_t segment); /* `a` of its references */
/* *fd is to be closed, *dir is not. */
int pyri_segment_look(pyri_site *s, pyri_placement p, int *dir, int *fd);
/* Whole pages inside [from, to). A system that knows no holes keeps them. */
int pyri_punch(int fd, uint64_t from, uint64_t to);
uint64_t pyri_blocks(int fd); /* in bytes */
/* Sweep a segment if nobody appends to it; and remove it if it is empty. */
int pyri_sweep_tend(pyri_site *s, pyri_placement p, pyri_settled *out);
int pyri_sweep_dead(pyri_site *s, pyri_settled *out);
int pyri_sweep_old(pyri_site *s, pyri_settled *out);

#endif
