/*
 * array/copies.h - copies of arrays in other stores.
 *
 *     copies.c  which versions are copied, and how far a copy has come
 *     origin.c  where the copy of a clone begins
 *     replay.c  one version, from one array to the other
 */
#ifndef PYRI_ARRAY_COPIES_H
#define PYRI_ARRAY_COPIES_H

#include "array/array.h"

/* --- how far a copy has come (copies.c) ---------------------------------- */

enum { PYRI_COPY_WINDOW = 256 };

/* A version, and a hash of all that its record says to people. */
typedef struct pyri_copied_version {
    uint64_t label, hash;
} pyri_copied_version;

/* The record copy/ID of array ID. Whatever version it has beyond `done` is one
 * of the window; else others have written to it. */
typedef struct pyri_copy_state {
    uint64_t source;          /* id of the array that it is a copy of */
    pyri_copied_version done; /* the newest that was copied and compared; label
                                 and hash are 0 at the beginning */
    size_t n;
    pyri_copied_version window[PYRI_COPY_WINDOW]; /* those that come next */
} pyri_copy_state;

void pyri_copy_state_encode(const pyri_copy_state *s, pyri_buf *out);
int pyri_copy_state_decode(pyri_bytes bytes, pyri_copy_state *s);
/* PYR_ENOTFOUND if the array is no copy. */
int pyri_copy_state_get(const pyri_array *a, pyri_copy_state *s);
/* Change it from what it was; *was becomes that. PYR_EFENCED if another copy
 * has changed it meanwhile. */
int pyri_copy_state_put(const pyri_array *a, pyri_copy_state *was,
                        const pyri_copy_state *s);

/* --- making the array (origin.c) ----------------------------------------- */

/* Make the array that copies of `from` go to, with its version 0. */
int pyri_copy_create(pyri_array *from, pyri_engine *e, const char *name);

/* --- one version (replay.c) ---------------------------------------------- */

typedef struct pyri_replay {
    pyri_array *from, *to;
    uint64_t label;  /* of the version */
    uint64_t before; /* the newest that `to` has (or had, to compare) */
    uint64_t cells;  /* set: how many were written */
} pyri_replay;

/* The hash of what the record of a version says. PYR_ENOVERSION if it is not
 * there, or forgotten (unless that is `allowed`). */
int pyri_replay_hash(pyri_array *a, uint64_t label, bool allowed,
                     uint64_t *hash);
/* Make the version of `to` that equals that of `from`, read it back and
 * compare. PYR_ECORRUPT if it came out differently. */
int pyri_replay_version(pyri_replay *p);
/* Compare one that is there. */
int pyri_replay_compare(pyri_replay *p);

#endif
