/*
 * array/chain.h - the fragments of a chunk in one list, and cells out of them.
 */
#ifndef PYRI_ARRAY_CHAIN_H
#define PYRI_ARRAY_CHAIN_H

#include "array/array.h"

typedef struct pyri_link {
    pyri_frag frag;
    pyri_box shown; /* the part that this snapshot shows; may be empty */
    uint64_t from, to; /* fetch.c: bytes of payload that are needed; to == 0:
                          none */
    uint64_t bytes;    /* fetch.c: of the cells that are wanted there */
    size_t get;        /* fetch.c: the first of its two gets */
} pyri_link;

/* A chunk as it is in one snapshot: links are laid over each other, the first
 * on top; cells that none shows are fill. */
typedef struct pyri_chain {
    pyri_link *links;
    int n;
    size_t room;
} pyri_chain; /* zero-initialise; end with pyri_chain_fini() */

void pyri_chain_fini(pyri_chain *c);
void pyri_chain_reset(pyri_chain *c); /* empty, keeping the memory */

/* Add one below the others. `form` tells what is shown of it. */
int pyri_chain_add(pyri_chain *c, const pyri_form *form, const pyri_frag *f);

/*
 * Add the fragments of a leaf and of those it lies on that are newer than
 * `after`, as shown by the tree's snapshot. With `box`, only those that are
 * needed to know its cells.
 */
int pyri_chain_load(pyri_chain *c, const pyri_tree *t, const uint64_t *pos,
                    const pyri_node *leaf, const pyri_box *box,
                    uint64_t after);

/* Drop links that show nothing, or nothing that those above do not hide. */
void pyri_chain_prune(pyri_chain *c, int ndim);

/* --- cells (fetch.c) ----------------------------------------------------- */

/* Cells to be fetched: a box of a chunk, and where its first cell goes; or,
 * with `sum`, cells that are only to be summed up, where they are. */
typedef struct pyri_fetch {
    pyri_link *links; /* the chain, newest first; nobody else's meanwhile */
    int n;
    pyri_box box;
    pyri_mem to;
    pyri_summary *sum;
    size_t pieces; /* fetch.c: the first of its pieces */
    bool painted;  /* fetch.c: there are masks, and so no pieces */
} pyri_fetch;

/* Memory of one worker. Zero-initialise; end with pyri_fetcher_fini(). */
typedef struct pyri_fetcher {
    pyri_array *array;
    pyri_reader *reader;
    bool past_caches;    /* cells are more than these would hold */
    bool afresh; /* verify all, also what was verified before */
    pyri_blob_get *gets; /* two per link: its head, and what is needed of its
                            payload */
    size_t ngets, gets_room;
    uint8_t *slab; /* bytes on their way from the engine to the caller */
    pyri_buf expanded;
    const pyri_frag *expanded_of;
    struct pyri_piece *pieces; /* of all jobs, one after the other */
    size_t npieces, pieces_room;
    pyri_prefetch ahead;   /* rows of the piece after the one that is copied */
    pyri_rows ahead_rows;
} pyri_fetcher;

void pyri_fetcher_fini(pyri_fetcher *f);

/* Sum up the cells of a box, which are in memory. */
void pyri_sum_memory(const pyri_schema *s, const pyri_box *box, pyri_mem mem,
                     pyri_summary *sum);

/* Fetch all of them, asking the engine once. */
int pyri_fetch_run(pyri_fetcher *f, pyri_fetch *jobs, size_t n);

#endif
