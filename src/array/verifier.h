/*
 * array/verifier.h - shared by the files that walk a whole store.
 *
 *   verify_store.c  arrays, versions, and the walk over nodes
 *   verify_chunk.c  leaves: fragments, cells, summaries; by many threads
 *   verify_digest.c digests of leaves
 *   orphans.c       what is stored, and was not reached
 *   repair.c        what can be derived is derived again
 */
#ifndef PYRI_ARRAY_VERIFIER_H
#define PYRI_ARRAY_VERIFIER_H

#include "array/chain.h"
#include "array/reached.h"

#include <pthread.h>
#include <stdatomic.h>

enum { PYRI_READ_LOCKS = 16 };

/* An array of the store. */
typedef struct pyri_kin {
    pyri_array *array;
    uint64_t head; /* label of the newest version, at the moment */
    bool lost;     /* some nodes could not be read: who knows what they need */
    uint64_t bereft; /* label of a version whose record is lost; 0: none */
    uint64_t folds;  /* of leaves of its family */
} pyri_kin;

/* A snapshot that is walked, as long as leaves of it wait to be looked at. */
typedef struct pyri_view {
    pyri_snapshot snap;
    pyri_kin *kin;
    unsigned users;
    bool one_box;          /* its version wrote just one */
    pyri_snapshot *before; /* the one before it, once it was asked for */
} pyri_view;

/* A leaf that waits to be looked at. */
typedef struct pyri_leaf_job {
    pyri_view *view;
    pyri_node node;
    uint64_t pos[PYR_MAX_DIMS];
    uint64_t fresh; /* bits: fragments not looked at yet; those past 64 are */
    bool placed;
    uint64_t place[2]; /* of the first of them that is a blob */
    bool suspect;   /* set: something is wrong */
} pyri_leaf_job;

/* The turns in which leaves are looked at: by where their first blob is. */
typedef struct pyri_leaf_turn {
    uint64_t place[2]; /* a reference */
    size_t job;
} pyri_leaf_turn;

/* A node to be stored anew. */
typedef struct pyri_amendment {
    size_t key_size, value_size; /* in `bytes`, one after the other */
} pyri_amendment;

typedef struct pyri_verifier {
    pyri_engine *e;
    pyri_reader *r; /* for all that is reported: one moment */
    const pyr_verify_spec *spec;
    bool deep, quiet;
    pyr_verified *out;

    pyri_kin *kin;
    size_t nkin, kin_room;
    bool blind;       /* some array could not even be opened */
    bool broken;      /* what the engine rests on is: nothing was walked */
    bool forgotten;   /* walking what only forgotten versions need */
    pyri_reached nodes, blobs;
    uint64_t total, done; /* bytes, for progress */

    pyri_leaf_job *jobs;
    size_t njobs, job_room;
    uint64_t job_bytes;
    pyri_leaf_turn *turns; /* as many as jobs */
    size_t turn_room;
    atomic_size_t next_turn;
    bool in_order; /* with these locks; the first one is for taking a turn */
    pthread_mutex_t turn_lock, read_locks[PYRI_READ_LOCKS];

    /* repairing */
    bool repairing;
    pyri_amendment *amended;
    size_t namended, amended_room;
    pyri_buf bytes;
    uint64_t children; /* records of clones that were put right */
} pyri_verifier;

/* Is it something about what is stored, so that the walk goes on? */
static inline bool
pyri_is_harm(int err)
{
    return err == PYR_ECORRUPT || err == PYR_EIO || err == PYR_EFORMAT ||
           err == PYR_ENOTFOUND || err == PYR_ENOVERSION;
}

/* Report it; `box` may be NULL. The text may be that of the last failure. */
int pyri_verify_harm(pyri_verifier *v, const char *array, pyr_version version,
                     int ndim, const pyri_box *box, const char *what);
/* The same for a box of the snapshot that is walked. */
int pyri_verify_harm_in(pyri_verifier *v, const pyri_view *view,
                        const pyri_box *box, const char *what);

/* --- verify_store.c ------------------------------------------------------ */

/* Everything but orphans. End with pyri_verifier_fini(). */
int pyri_verifier_walk(pyri_verifier *v);
void pyri_verifier_fini(pyri_verifier *v);
pyri_kin *pyri_verifier_kin(pyri_verifier *v, uint64_t id); /* or NULL */

/* --- verify_catalog.c ---------------------------------------------------- */

/* Open all arrays, ancestors first. */
int pyri_verify_catalog(pyri_verifier *v);
/* Tags, and that its origin knows of a clone. */
int pyri_verify_records(pyri_verifier *v, pyri_kin *k);

/* --- verify_chunk.c ------------------------------------------------------ */

/* Note a leaf; its blobs are reached. */
int pyri_verify_leaf(pyri_verifier *v, pyri_view *view, const pyri_node *node,
                     const uint64_t *pos);
/* Look at all that wait. */
int pyri_verify_flush(pyri_verifier *v);
void pyri_view_leave(pyri_view *view);

/* --- verify_digest.c ----------------------------------------------------- */

/* What the version of a view wrote; and the end of it. */
void pyri_verify_told(pyri_view *view, const pyri_record *record);
void pyri_verify_untold(pyri_view *view);
/* Is the digest of a leaf another than it must be, as far as can be told? */
int pyri_verify_leaf_digest(pyri_verifier *v, pyri_view *view,
                            const pyri_node *node, const uint64_t *pos,
                            bool *wrong);

/* --- orphans.c ----------------------------------------------------------- */

/* Count what was not reached; if repairing, erase it. */
int pyri_verify_orphans(pyri_verifier *v);

/* --- repair.c ------------------------------------------------------------ */

/* The node gets another summary: its own (slot < 0), or a child's. */
int pyri_verify_amend(pyri_verifier *v, pyri_bytes key, const pyri_node *node,
                      pyr_type type, int slot, const pyri_summary *s);

#endif
