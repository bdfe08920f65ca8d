/*
 * chunk/regions.h - where in a chunk its least and greatest numbers may be.
 *
 * A chunk's summary has one minimum and one maximum. When a write hides the
 * cell that has it, the next one could be anywhere, and all would have to be
 * read. So a leaf may also tell, of each of up to 16 parts of its chunk, what no
 * number in it is below, and above; and whether there is a number that has it.
 * Then it is enough to read the part in which the next one is.
 *
 * Ends are kept as orders (pyri_cell_order). A region without numbers has a
 * least order above all, and a greatest below all.
 */
#ifndef PYRI_CHUNK_REGIONS_H
#define PYRI_CHUNK_REGIONS_H

#include "base/bytes.h"
#include "chunk/chunk.h"
#include "nd/nd.h"

enum {
    PYRI_REGIONS = 16,
    PYRI_REGIONS_BYTES = 4 + 2 * 8 * PYRI_REGIONS /* stored, at most */
};

typedef struct pyri_regions {
    int n; /* 0: nothing is known */
    uint64_t least[PYRI_REGIONS], greatest[PYRI_REGIONS];
    uint32_t least_is, greatest_is; /* bitmaps: some number has it */
} pyri_regions;

/* How many a chunk has; 1 if it cannot be halved. */
int pyri_regions_of(int ndim, const pyri_box *chunk);
/* The cells of region i; may be empty. */
void pyri_region_box(int ndim, const pyri_box *chunk, int i, pyri_box *out);

/* The cells of region i were summed up. */
void pyri_region_set(pyri_regions *r, int i, pyr_type type,
                     const pyri_summary *cells);
/* From all cells to those outside of a box, whose cells sum up to `hidden`. */
void pyri_regions_hide(pyri_regions *r, int ndim, const pyri_box *chunk,
                       pyr_type type, const pyri_box *box,
                       const pyri_summary *hidden);
/* And back: the box has cells that sum up to `own`. */
void pyri_regions_add(pyri_regions *r, int ndim, const pyri_box *chunk,
                      pyr_type type, const pyri_box *box,
                      const pyri_summary *own);

/* A region that has the least (greatest) number, or may have; *is: it has. */
int pyri_regions_least(const pyri_regions *r, bool *is);
int pyri_regions_greatest(const pyri_regions *r, bool *is);
/* NULL, or what cells of region i contradict. */
const char *pyri_region_differs(const pyri_regions *r, int i, pyr_type type,
                                const pyri_summary *cells);

/* The stored form, and how long it is; 0 if nothing is known. */
size_t pyri_regions_encode(const pyri_regions *r, pyr_type type,
                           uint8_t out[PYRI_REGIONS_BYTES]);
/* PYR_ECORRUPT if it is none. `n` as pyri_regions_of() has it. */
int pyri_regions_decode(pyri_regions *r, pyr_type type, int n, pyri_bytes in);

#endif
