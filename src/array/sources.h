/*
 * array/sources.h - the snapshots that a program reads: x, and every x@V.
 *
 * Cells outside a snapshot's shape read as fill: x@V may be of a version with
 * another shape. Beside them are the sources that kernels make of x (made.c).
 */
#ifndef PYRI_ARRAY_SOURCES_H
#define PYRI_ARRAY_SOURCES_H

#include "array/chain.h"
#include "kernel/kernel.h"
#include "op/op.h"

typedef struct pyri_sources {
    pyri_array *array;
    const pyri_program *program;
    const pyri_kernels *kernels;       /* that make some of the sources */
    const struct pyri_handlers *handlers; /* that what is computed goes
                                          through, or NULL */
    bool reads_x;                      /* its cells, not only its values */
    int first, n;                      /* program->sources; 1: x is not used */
    uint64_t label;                    /* of x, used or not */
    uint64_t nodes_read;
    pyri_snapshot *snap;               /* n of them; heap; zero if made */
} pyri_sources;                        /* end with pyri_sources_close() */

/* `v` is x's version. PYR_ENOVERSION. */
int pyri_sources_open(pyri_sources *s, pyri_array *a, pyr_version v,
                      const pyri_program *p, const pyri_kernels *k);
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

/* What one source has in a box of one chunk: one value, or a chain. */
typedef struct pyri_holding {
    bool same;
    bool leaf; /* the chain is a leaf's */
    uint64_t bits;
    pyri_box inside; /* the shape; what is outside is fill */
    pyri_chain chain;
    const pyri_tree *tree; /* of no meaning afterwards */
} pyri_holding;

/* Gives s->n of them. *same: each snapshot has one value there. */
int pyri_sources_hold(const pyri_sources *s, pyri_reader *reader,
                      const pyri_box *box, pyri_holding **out, bool *same);
void pyri_holdings_free(const pyri_sources *s, pyri_holding *h);

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

/* --- made.c: the sources that kernels make ------------------------------- */

/* Which kernel makes a source; NULL: none. */
static inline const pyri_bound *
pyri_maker(const pyri_sources *s, int source)
{
    int which = s->kernels->of[source];
    return which < 0 ? NULL : &s->kernels->bound[which];
}

/* All snapshots have one value in the box: visit it as it is with what kernels
 * make there, in parts if that is not of one value. */
int pyri_made_walk(pyri_sources *s, const pyri_box *box, uint64_t *values,
                   pyri_region_fn *each, void *ctx);
/* x is `bits` in the box. Will what the kernels make be of one value there? */
int pyri_made_same(const pyri_sources *s, pyri_reader *reader,
                   const pyri_box *box, uint64_t bits, bool *same);
/* What a kernel makes of cells that are all `bits`, at some place. */
int pyri_made_one(const pyri_sources *s, const pyri_bound *b,
                  const uint64_t *at, uint64_t bits, uint64_t *out);
/* What it makes in the box, which has x in `cells` if the kernel needs only
 * that. Adds to *bytes what it read. */
int pyri_made_cells(const pyri_sources *s, pyri_reader *reader,
                    const pyri_bound *b, const pyri_box *box, uint8_t *cells,
                    uint8_t *out, uint64_t *bytes);

#endif
