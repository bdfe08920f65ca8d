/*
 * array/sources.h - the snapshots that a program reads: x, and every x@V.
 *
 * Cells outside a snapshot's shape read as fill: x@V may be of a version with
 * another shape.
 */
#ifndef PYRI_ARRAY_SOURCES_H
#define PYRI_ARRAY_SOURCES_H

#include "array/chain.h"
#include "op/op.h"

typedef struct pyri_sources {
    pyri_array *array;
    const pyri_program *program;
    int first, n;                      /* program->sources; 1: x is not used */
    uint64_t label;                    /* of x, used or not */
    uint64_t nodes_read;
    pyri_snapshot *snap;               /* n of them; heap */
} pyri_sources;                        /* end with pyri_sources_close() */

/* `v` is x's version. PYR_ENOVERSION. */
int pyri_sources_open(pyri_sources *s, pyri_array *a, pyr_version v,
                      const pyri_program *p);
void pyri_sources_close(pyri_sources *s);
/* `err` of work on them: one that was forgotten meanwhile is no damage. */
int pyri_sources_explain(const pyri_sources *s, int err);

/*
 * Visit what a box is made of. Either every source has one value in the region,
 * given as bits in `values`, and it may be huge; or `values` is NULL, and it is
 * inside one chunk. A result other than 0 ends the walk and is returned.
 */
typedef int pyri_region_fn(void *ctx, const pyri_box *region,
                           const uint64_t *values);
int pyri_sources_walk(pyri_sources *s, const pyri_box *box,
                      pyri_region_fn *each, void *ctx);

/* The cells of a box of one chunk, in every source. One thread's. */
typedef struct pyri_loaded {
    bool same;                                  /* src[s] is one cell */
    const void *src[PYRI_OP_MAX_SOURCES];       /* for pyri_program_run() */
    uint8_t *cells[PYRI_OP_MAX_SOURCES];        /* scratch; x's is there even
                                                   if it is not used */
    uint8_t one[PYRI_OP_MAX_SOURCES][8];
    uint64_t bytes;                             /* of cells that were read */
} pyri_loaded;                                  /* end with pyri_loaded_fini() */

/* If all sources are of one value there and the program is uniform, `same` is
 * set and no cell is read. */
int pyri_sources_load(const pyri_sources *s, const pyri_box *box,
                      pyri_loaded *out);
/* Without looking: the cells have these values. */
int pyri_sources_fill(const pyri_sources *s, const pyri_box *box,
                      const uint64_t *values, pyri_loaded *out);
void pyri_loaded_fini(pyri_loaded *l);

#endif
