/*
 * array/fold.h - folding what snapshots that are kept lie on: when others have
 * gone, and on demand.
 *
 *   fold.c         which chunks; and the step that stores them anew
 *   fold_plan.c    one chunk: what to fold
 *   fold_needs.c   one chunk: what later leaves show more of
 *   fold_leaves.c  one chunk: the leaves to write
 *   fold_newest.c  on demand: long chains of the newest snapshots
 *   tidy.c         on demand: chunks that readers come by
 *   carriers.c     one chunk: the leaves that hold what a snapshot saw first
 *   shows.c        one chunk: which cells each fragment shows
 */
#ifndef PYRI_ARRAY_FOLD_H
#define PYRI_ARRAY_FOLD_H

#include "array/draft.h"
#include "array/family.h"
#include "array/reached.h"

/* --- chunks to look at (fold.c) ------------------------------------------ */

/* A leaf went with a version that lay behind `older`. If both are the same,
 * nothing went: the leaf of that snapshot is meant. */
typedef struct pyri_fold_spot {
    pyri_vertex gone, older;
    uint64_t pos[PYR_MAX_DIMS];
} pyri_fold_spot;

typedef struct pyri_folding {
    pyri_family *family;
    pyri_reached noted; /* so that each is noted once */
    pyri_fold_spot *spots;
    size_t n, room;
    bool left; /* chunks that others were at again and again */
    unsigned spend; /* on long chains (fold_newest.c): so many bytes may be
                       written for each that small writes brought; 0: only what
                       pays in space */
    unsigned tries; /* for a chunk that others write to; 0: many */
    /* Told of those that were left as they are; NULL: nobody asks. */
    void (*missed)(void *ctx, const pyri_array *a, const uint64_t *pos,
                   uint64_t leaf);
    void *ctx;
    const pyr_progress *progress; /* in chunks; NULL: nobody asks */
    uint64_t looked, total;
    pyr_folded done;
} pyri_folding; /* set the family, zero the rest; end with _fini() */

void pyri_folding_fini(pyri_folding *f);
int pyri_fold_note(pyri_folding *f, const pyri_fold_spot *spot, int ndim);
/* Fold what was noted, as far as it pays. Upkeep has begun. */
int pyri_fold_all(pyri_folding *f, pyr_reclaimed *out);

/* --- arrays to look at (unfolded.c) -------------------------------------- */

/*
 * What was noted is lost if the process is killed. So, before anything of an
 * array is erased, a record says so, and goes when all is folded. Who finds
 * one looks at all chunks of that array.
 */
typedef struct pyri_unfolded {
    struct {
        uint64_t array;
        bool found; /* it was there before */
    } *list;
    size_t n, room;
} pyri_unfolded; /* zero-initialise; end with _fini() */

void pyri_unfolded_fini(pyri_unfolded *u);
int pyri_unfolded_find(pyri_unfolded *u, pyri_engine *e);
int pyri_unfolded_begin(pyri_unfolded *u, pyri_engine *e, uint64_t array);
/* Fold what was noted, and whatever others left behind. */
int pyri_unfolded_end(pyri_unfolded *u, pyri_folding *f, pyr_reclaimed *out);

/* --- what leaves of a chunk hold (carriers.c) ---------------------------- */

typedef struct pyri_leaf_name {
    uint64_t owner, label;
    size_t end; /* in a list of what leaves hold: past its last fragment */
} pyri_leaf_name;

/* All that the leaf of a chunk names, and the leaves that it lies on. */
typedef struct pyri_held {
    pyri_frag *frags;
    size_t n, room;
    pyri_leaf_name *leaves;
    size_t nleaves, leaf_room;
} pyri_held; /* zero-initialise; end with pyri_held_fini() */

void pyri_held_fini(pyri_held *h);
int pyri_held_add(pyri_held *h, const pyri_tree *t, const uint64_t *pos,
                  const pyri_node *leaf);
int pyri_held_note(pyri_held *h, const pyri_frag *frags, size_t n);
bool pyri_same_frag(int ndim, const pyri_frag *a, const pyri_frag *b);
bool pyri_held_has(const pyri_held *h, int ndim, const pyri_frag *f);
bool pyri_held_leaf(const pyri_held *h, pyri_leaf_name name);

/* A leaf of the chunk, and a snapshot that has it. */
typedef struct pyri_carrier {
    pyri_leaf_name name;
    pyri_vertex snapshot;
    bool holds;   /* some of what is looked for */
    bool changed; /* it is stored anew */
} pyri_carrier;

/*
 * The leaves that a chunk has in snapshot `from` and those after it, along all
 * branches, as long as they hold a fragment of `sought`. What a snapshot was
 * the first to see those after it see, up to some point: so most of the others
 * are not even looked at.
 */
typedef struct pyri_carriers {
    pyri_family *family;
    pyri_reader *reader;
    pyri_vertex from;
    const uint64_t *pos;
    const pyri_held *sought;
    size_t limit;  /* leaves to look at */
    size_t looked;
    bool dear;     /* set: it was reached */
    pyri_carrier *list;
    size_t n, room;
    uint64_t *arrays; /* that were come by */
    size_t narrays, array_room;
} pyri_carriers; /* end with pyri_carriers_fini() */

int pyri_carriers_find(pyri_carriers *c);
void pyri_carriers_fini(pyri_carriers *c);

/* --- on demand (fold_newest.c) ------------------------------------------- */

/* The box of a chain that is worth folding into one fragment: *any is false if
 * there is none. The chain is left as it will be then. */
int pyri_fold_choose(const pyri_array *a, const pyri_form *form, unsigned spend,
                     pyri_chain *c, pyri_box *bounds, bool *any);

/* A chunk of the newest snapshot of an array. */
typedef struct pyri_fold_want {
    uint64_t array;
    uint64_t leaf; /* label of the leaf that is meant */
    uint64_t pos[PYR_MAX_DIMS];
} pyri_fold_want;

/* Fold the long chains of these; best if those of one array are neighbours in
 * the list. PYR_ETIMEOUT if another is giving space back. */
int pyri_fold_wanted(pyri_engine *e, const pyri_fold_want *wants, size_t n,
                     pyri_folding *how);

/* --- one chunk (fold_plan.c) --------------------------------------------- */

/* A snapshot behind a gap, and those that are not after it: open. */
typedef struct pyri_fold_target {
    pyri_vertex vertex;
    pyri_snapshot snap;
    pyri_snapshot *before;
    size_t nbefore;
} pyri_fold_target;

/* Leaves of a chunk to be stored anew. */
typedef struct pyri_fold_plan {
    pyri_vertex from;
    uint64_t pos[PYR_MAX_DIMS];
    pyri_draft draft;       /* of the new blobs */
    uint64_t label;         /* of the leaf that names them first, */
    uint64_t owner;         /* and whose it is */
    pyri_held first;        /* what only `from` and those after it hold, and
                               what else is folded */
    pyri_carrier *carriers; /* as they were */
    size_t ncarriers;
    pyri_node_put *nodes;   /* in `bytes`, once it has stopped growing */
    size_t nnodes;
    pyri_buf bytes;
    pyri_bytes *gone_nodes; /* likewise */
    size_t ngone_nodes;
    pyri_blob *gone;
    size_t ngone;
    int64_t saved; /* bytes of leaves and new blobs */
    uint64_t fragments; /* that are folded */
    uint64_t put;       /* bytes of new blobs */
    uint64_t folds; /* of the family, when it was made */
    unsigned tries;
    bool stale; /* others wrote there meanwhile */
} pyri_fold_plan;

/* Plan what is worth it, and put new blobs; nnodes is 0 if nothing is. With
 * `spend`, a long chain becomes a short one, also if that takes more space.
 * End it with pyri_fold_plan_fini() in any case: drops the blobs unless they
 * were `stored`. */
int pyri_fold_plan_make(pyri_fold_plan *p, pyri_family *f,
                        const pyri_fold_target *t, const uint64_t *pos,
                        unsigned spend);
void pyri_fold_plan_fini(pyri_fold_plan *p, bool stored);

#endif
