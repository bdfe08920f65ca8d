/*
 * array/compute.h - a version that is being computed.
 *
 *     spare.c    which chunks must be computed, and which regions stay as they
 *                are
 *     compute.c  the cells of those chunks, and the order of the steps
 */
#ifndef PYRI_ARRAY_COMPUTE_H
#define PYRI_ARRAY_COMPUTE_H

#include "array/draft.h"
#include "array/sources.h"

enum {
    PYRI_COMPUTE_FEW = 256,         /* chunks that are just computed */
    PYRI_COMPUTE_MAX_CHUNKS = 1 << 20 /* that one version may change */
};

/* Positions of chunks. */
typedef struct pyri_places {
    uint64_t (*pos)[PYR_MAX_DIMS]; /* heap */
    size_t n, room;
} pyri_places;

/* How many chunks a box touches; UINT64_MAX if more. */
uint64_t pyri_places_count(const pyri_schema *s, const pyri_box *box);
/* List those that a box touches. PYR_EUNSUPPORTED beyond the limit. */
int pyri_places_add(pyri_places *p, const pyri_schema *s,
                    const pyri_box *box);

/* The value that the program gives where sources have these values. */
int pyri_compute_same(const pyri_sources *s, const uint64_t *at,
                      const void *const *src, uint64_t *bits);

/*
 * Sort out a box of many chunks: those to be computed come to `places`, the
 * rest, which stays as it is in the newest snapshot, to the draft's kept list.
 * The claim is set accordingly.
 */
int pyri_spare(pyri_draft *d, pyri_sources *s, const pyri_box *box,
               pyri_places *places);

#endif
