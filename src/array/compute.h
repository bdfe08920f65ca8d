/*
 * array/compute.h - a version that is being computed.
 *
 *     spare.c    which chunks must be computed, which regions become one
 *                value, and which stay as they are
 *     compute.c  the cells of those chunks, and the order of the steps
 */
#ifndef PYRI_ARRAY_COMPUTE_H
#define PYRI_ARRAY_COMPUTE_H

#include "array/draft.h"
#include "array/sources.h"

enum {
    PYRI_COMPUTE_MAX_CHUNKS = 1 << 20, /* that one version may list */
    PYRI_COMPUTE_MAX_NODES = 1 << 18   /* to say where its sheets are */
};

/* Positions of chunks. */
typedef struct pyri_places {
    uint64_t (*pos)[PYR_MAX_DIMS]; /* heap */
    size_t n, room;
} pyri_places;

/* List those that a box touches. PYR_EUNSUPPORTED beyond the limit. */
int pyri_places_add(pyri_places *p, const pyri_schema *s,
                    const pyri_box *box);

/* The value that the program gives where sources have these values. */
int pyri_compute_same(const pyri_sources *s, const uint64_t *at,
                      const void *const *src, uint64_t *bits);

/*
 * Sort out a box of many chunks: those to be computed come to `places`, regions
 * that become one value to the draft's sheets; those that have their value in
 * the newest snapshot, if `keep`, to its kept list. The claim is set
 * accordingly.
 */
int pyri_spare(pyri_draft *d, pyri_sources *s, const pyri_box *box, bool keep,
               pyri_places *places);

#endif
