/*
 * array/draft.h - a version that is being made.
 *
 * The path of a write, and the file that each step is in:
 *
 *     plan.c     which chunks the cells fall into
 *     paint.c    the cells of a chunk become fragments, stored at once
 *     tray.c     or, small ones, several together
 *     prepare.c  fold chains that have grown long
 *     sum.c      what chunks will sum up to
 *     sheets.c   regions of one value, which are no chunks' fragments
 *     tickets.c  what a version in flight says to those above it
 *     leaves.c   what was painted on top of the leaf that was there
 *     commit.c  take a version, build its nodes, complete it, wait for it;
 *                and give up versions whose writers died
 */
#ifndef PYRI_ARRAY_DRAFT_H
#define PYRI_ARRAY_DRAFT_H

#include "array/chain.h"
#include "array/handlers.h"

/* What a draft has stored for one chunk. */
typedef struct pyri_painted {
    uint64_t pos[PYR_MAX_DIMS];
    pyri_frag *frags;  /* its own, newest first; heap */
    int n;
    pyri_summary own;  /* of the cells of the newest fragment */

    /* What was found out before the version was taken (prepare.c), good if
     * the leaf below turns out to be the one that was seen. */
    bool prepared;
    uint64_t below;      /* label of the leaf seen; 0: none */
    bool known;          /* `after` is there */
    pyri_summary after;  /* of the chunk with this write on top */
    pyri_regions *regions; /* likewise; NULL: nothing is known; heap */
    pyri_frag *floor;    /* the chunk as of the snapshot seen, its newest
                            links folded: the first one, put for this; heap */
    int nfloor;          /* 0: not folded */
} pyri_painted;

/* What a version brings along that is a copy of another one. */
typedef struct pyri_given {
    uint64_t label;            /* its own; above the newest that there is */
    const pyri_record *record; /* kind, claim, provenance; form.shape */
    const uint64_t *least;     /* what its shape shrank to on the way there */
} pyri_given;

/*
 * Cells that a version leaves out of its claim because they have the value
 * that it would give them. True only as long as no version in between writes
 * there: see kept.c.
 */
typedef struct pyri_kept {
    pyri_box box;
    uint64_t bits;
} pyri_kept;

typedef struct pyri_kept_list {
    pyri_kept *list; /* heap */
    size_t n, room;
    uint64_t label;  /* of the snapshot that has them */
    uint64_t shape[PYR_MAX_DIMS]; /* of that */
} pyri_kept_list;

typedef struct pyri_draft {
    pyri_array *array;
    const pyri_given *given; /* NULL: it is a version of our own */
    pyr_kind kind;
    pyri_claim claim;
    pyri_painted *painted;
    size_t n, room;
    pyri_sheet *sheets;  /* regions of one value; sheets.c; heap */
    size_t nsheets, sheet_room;
    bool flat;           /* chunks of one value are not stored; nobody predicts
                            what this version has: tickets.c */
    uint64_t seen;       /* label of the snapshot that prepare.c looked at */
    bool looked;         /* it did, */
    uint64_t folds;      /* and the family had been folded so often */
    const char *message; /* NULL: none */
    uint64_t source;        /* of a computed one: label, */
    const char *expression; /* and canonical text */
    const pyri_handlers *handlers; /* that cells go through now, or NULL; */
    pyri_buf handled;              /* texts of all that they went through */
    pyri_kept_list kept;
    bool disturbed;      /* what should be kept was written to by others */
    pyri_ticket *ticket; /* of ours, to be renewed in long work; or NULL */
    _Atomic uint64_t unsynced; /* bytes put while in flight, not yet synced */
    struct pyri_stashed *stash; /* every blob that was put for it, stash.c */
    size_t nstash, stash_room;
    bool sorted;         /* the stash is in order of references */
    bool doubtful;       /* it may have been published: drop no blob */
} pyri_draft;            /* zero-initialise; end with pyri_draft_fini() */

void pyri_draft_fini(pyri_draft *d);
/* From here on cells go through these, which the draft takes. */
int pyri_draft_handle(pyri_draft *d, const pyri_handlers *h);

/* Bring fragments of the same chunk together, later ones on top. */
int pyri_draft_merge(pyri_draft *d);

/* --- plan.c -------------------------------------------------------------- */

typedef int pyri_chunk_fn(void *ctx, const uint64_t *pos);
/* Visit every chunk that a run touches inside a shape (NULL: anywhere). */
int pyri_plan_run(const uint64_t *chunk, int ndim, const pyri_run *run,
                  const uint64_t *shape, pyri_chunk_fn *each, void *ctx);

/* --- paint.c ------------------------------------------------------------- */

/* Store the cells of all parts and add them to the claim. The parts must be
 * inside the shape that the version will have, or the version will be refused
 * later. */
int pyri_paint(pyri_draft *d, const pyri_part *parts, size_t n);

/* Pack cells as pyri_frag_pack() does, and put the blob if there is one: sets
 * all of *frag but the version. */
int pyri_paint_frag(pyri_draft *d, pyri_packer *packer,
                    const pyri_box *box, pyri_mem src, const uint8_t *mask,
                    uint64_t set, pyri_frag *frag, pyri_summary *sum);

/* --- stash.c ------------------------------------------------------------- */

/* The blobs of a draft: all that were put are noted; those that its leaves
 * name are marked; the others are dropped in the end. Adding takes those of one
 * put, from any thread, and drops them if it fails. */
int pyri_stash_add(pyri_draft *d, const pyri_blob *blobs, size_t n);
void pyri_stash_mark(pyri_draft *d, const pyri_frag *frags, int n);
void pyri_stash_unmark(pyri_draft *d);
/* Gives the marked ones. */
int pyri_stash_list(pyri_draft *d, pyri_blob **out, size_t *n);
/* Drop those that are not marked (or all), and forget about the others. */
void pyri_stash_settle(pyri_draft *d, bool published);

/* --- prepare.c ----------------------------------------------------------- */

int pyri_prepare(pyri_draft *d);

/* --- sum.c --------------------------------------------------------------- */

/* The cells of the box in a chunk, summed up by reading them. */
int pyri_sum_cells(pyri_fetcher *f, const pyri_chain *chain,
                   const pyri_box *box, pyri_summary *s);

/*
 * What a chunk sums up to with `p` on top of what the tree's snapshot has
 * there, the leaf `node` or fill (NULL): goes into the new leaf, unless it was
 * too dear to find out.
 */
int pyri_sum_after(const pyri_array *a, const pyri_tree *t,
                   const pyri_painted *p, const pyri_node *node,
                   pyri_leaf *leaf);

/* --- sheets.c ------------------------------------------------------------ */

enum { PYRI_FEW_CHUNKS = 256 }; /* a version of no more than these has none */

/* How many chunks a box touches; UINT64_MAX if more. */
uint64_t pyri_chunks_touched(const pyri_schema *s, const pyri_box *box);
/* The part of a box (inside the shape) that has chunks wholly; false if there
 * is none. */
bool pyri_sheet_inside(const pyri_schema *s, const uint64_t *shape,
                       const pyri_box *box, pyri_box *out);
int pyri_sheet_add(pyri_draft *d, const pyri_box *box, uint64_t bits);
/* All is painted and claimed: will it have flats? */
void pyri_sheets_settle(pyri_draft *d);

/* --- tickets.c ----------------------------------------------------------- */

void pyri_ticket_encode(const pyri_draft *d, pyri_buf *out);
int pyri_ticket_decode(int ndim, pyri_bytes bytes, const uint64_t *before,
                       const uint64_t *after, pyr_kind *kind, pyri_claim *out);
/* The cells that were added between two shapes that differ along one axis. */
int pyri_ticket_appended(int ndim, const uint64_t *before,
                         const uint64_t *after, pyri_claim *out);
/* May it have flats, so that it cannot be predicted? */
bool pyri_ticket_flat(const pyri_flight *f);
/* Wait until those of them are published, with our own lease renewed. */
int pyri_ticket_await(pyri_draft *d, const pyri_flights *below);

/* --- kept.c -------------------------------------------------------------- */

/*
 * Do the cells of the draft's kept list still have their values just below the
 * new version? `base` is the newest snapshot, `rivals` are in flight above it.
 * And have those the shape that its sheets were cut for? Else PYR_EFENCED, and
 * the draft is marked as disturbed.
 */
int pyri_kept_check(pyri_draft *d, const pyri_snapshot *base,
                    const pyri_rival *rivals, size_t n);
int pyri_kept_add(pyri_kept_list *k, const pyri_box *box, uint64_t bits);

/* --- write.c ------------------------------------------------------------- */

/* Publish what is painted, with a new shape unless that is NULL, and wait for
 * it unless told not to. The draft is still to be ended. */
int pyri_draft_publish(pyri_draft *d, const uint64_t *shape,
                       const pyri_write_how *how, pyr_version *made);

/* --- commit.c ------------------------------------------------------------ */

/* Take a version for the draft, with a new shape unless that is NULL, and make
 * it. Returns when it is complete: *label is its, *latest the newest version
 * published by then. */
int pyri_commit(pyri_draft *d, const uint64_t *shape, uint64_t *label,
                uint64_t *latest);

/* Make a version that is given, at once, without taking it: it is there when
 * this returns, or nothing is. PYR_EFENCED if others write to the array. */
int pyri_commit_given(pyri_draft *d);

/* The same in two steps, for a draft that needs to know its version's shape
 * before it can store its cells. */
int pyri_commit_take(pyri_draft *d, const uint64_t *shape, int grow_axis,
                      uint64_t grow_by, pyri_ticket *ticket,
                      pyri_flights *below);
int pyri_commit_finish(pyri_draft *d, pyri_ticket *ticket,
                        const pyri_flights *below, uint64_t *latest);
/* The version will not be made: complete it as one that changes nothing, so
 * that those above it need not wait for our lease. Keeps the caller's error. */
void pyri_commit_abandon(pyri_draft *d, pyri_ticket *ticket,
                          const pyri_flights *below);

/* In long work for a version in flight: keep its lease from running out. Any
 * thread; costs next to nothing if it is not time yet. PYR_EFENCED. */
int pyri_commit_renew(pyri_draft *d);

/* Wait until the label is published, resolving dead writers in the way. */
int pyri_commit_wait(pyri_array *a, uint64_t label, int timeout_ms);

/* Complete the versions of dead writers. */
int pyri_resolve(pyri_array *a);

#endif
