/*
 * pyramid/keep.h - what is kept, whether it is whole, and copies of it.
 *
 *   uint64_t n;
 *   pyr_reclaimed gone;
 *   pyr_forget(array, 0, PYR_LATEST, 100, 0, &n);  // all but the newest 100
 *   pyr_reclaim(store, NULL, &gone);               // and their space
 *   pyr_verify(store, &(pyr_verify_spec){.deep = 1}, NULL);
 */
#ifndef PYRAMID_KEEP_H
#define PYRAMID_KEEP_H

#include <pyramid/error.h>
#include <pyramid/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How far long work has come; `total` is 0 while it is not known. A result
 * other than 0 ends the work, which returns it and can be taken up again. */
typedef int pyr_progress_fn(void *ctx, uint64_t done, uint64_t total);

typedef struct pyr_progress {
    pyr_progress_fn *each; /* NULL: nobody asks */
    void            *ctx;
} pyr_progress;

/* --- forgetting, reclaiming, folding ------------------------------------- */

#define PYR_FORGET_TAGGED 1u /* tagged versions too, and their tags */

/*
 * Forget versions `first` to `last` (PYR_LATEST is the newest) of an array,
 * but for version 0 of an array that is no clone, the newest `keep` versions
 * (at least one), and those with a tag. They cannot be read, tagged or cloned
 * any more; others are as they were, clones too. *forgotten, which may be NULL,
 * says how many. Their space is given back by pyr_reclaim().
 *
 * Errors: PYR_EINVAL if first and last are one version, and it must be kept;
 *         PYR_ENOVERSION if it was never published.
 */
PYR_API int pyr_forget(pyr_array *array, pyr_version first, pyr_version last,
                       uint64_t keep, unsigned flags, uint64_t *forgotten);

typedef struct pyr_reclaimed {
    uint64_t versions;  /* forgotten versions that have gone */
    uint64_t left;      /* that could not go: a clone begins there, or a write
                           that is in flight needs them */
    uint64_t nodes;     /* tree nodes, and */
    uint64_t fragments; /* pieces of chunks, that went with them */
    uint64_t bytes;     /* that those took */
    uint64_t returned;  /* bytes given back to the system */
    uint64_t waiting;   /* bytes not given back yet: someone is reading */
    int64_t folded;     /* bytes that kept versions take less: of pieces that
                           others hide, what is hidden went, too */
} pyr_reclaimed;        /* may grow at the end */

/*
 * Give back the space of forgotten versions that no kept version, clone or
 * running reader needs, and of writers that died. Others may read and write
 * meanwhile; a read of a forgotten version that began before ends well. If it
 * is interrupted, the next one goes on. Works in proportion to what goes, and
 * looks at every array for versions of dead writers. If these cannot be put in
 * order in one array, the others are done all the same, and then it fails.
 *
 * Pieces of which kept versions show a part only are written anew without the
 * rest, where that is worth it: the store then takes about what a fresh copy
 * of the kept versions would. Cells, digests and summaries stay as they are.
 *
 * Errors: PYR_ETIMEOUT if another is at it (in a directory: for two seconds).
 */
PYR_API int pyr_reclaim(pyr_store *store, const pyr_progress *progress,
                        pyr_reclaimed *out);

typedef struct pyr_folded {
    uint64_t chunks;    /* of newest snapshots that were stored anew, */
    uint64_t fragments; /* from so many pieces, as one piece each */
    uint64_t written;   /* bytes of new pieces */
    uint64_t erased;    /* bytes of old ones that no snapshot needs any more */
    uint64_t left;      /* chunks that others wrote to again and again */
} pyr_folded;           /* may grow at the end */

/*
 * Make the newest snapshots of these arrays (n is 0: of all) read like freshly
 * written ones: chunks that small writes left in many pieces are stored anew.
 * (What is read often is folded by itself, as far as no more than eight bytes
 * are written for each that small writes brought; see PYR_OPEN_NO_UPKEEP. This
 * folds all, up to sixteen.)
 * No version is made; every snapshot and clone shows what it showed, and has
 * the digest that it had. It takes space, up to that of the chunks, as long as
 * older snapshots need the old pieces. Others may read and write meanwhile. If
 * it is interrupted, the next one goes on. Progress is told in chunks. `out`
 * may be NULL.
 *
 * Errors: PYR_ENOTFOUND if there is no such array, PYR_EINVAL if there cannot
 *         be one; PYR_ETIMEOUT if another is at it, or reclaims (in a
 *         directory: for two seconds); PYR_EUNSUPPORTED on Ceph.
 */
PYR_API int pyr_fold(pyr_store *store, const char *const *names, size_t n,
                     const pyr_progress *progress, pyr_folded *out);

/* What a version holds alone: what would go if it were forgotten now. */
typedef struct pyr_usage {
    uint64_t nodes;
    uint64_t fragments;
    uint64_t bytes;
} pyr_usage; /* may grow at the end */

PYR_API int pyr_version_usage(pyr_array *array, pyr_version version,
                              pyr_usage *out);

/* --- verifying ----------------------------------------------------------- */

/* Something that is harmed. Pointers live until the callback returns. */
typedef struct pyr_harm {
    const char     *array;   /* "" if it concerns the store as a whole */
    pyr_version     version; /* the first that shows it */
    int             ndim;    /* 0 if no cells are harmed */
    const uint64_t *offset;  /* the box that cannot be read, or not be */
    const uint64_t *size;    /* trusted */
    const char     *what;
} pyr_harm; /* may grow at the end */

/* A result other than 0 ends the walk and is returned. */
typedef int pyr_harm_fn(void *ctx, const pyr_harm *harm);

typedef struct pyr_verify_spec {
    int             deep; /* read every cell; else nodes and heads only */
    unsigned        jobs; /* threads; 0: as many as there are cores */
    pyr_harm_fn    *each; /* NULL: count only */
    void           *ctx;
    pyr_progress    progress; /* in bytes */
} pyr_verify_spec; /* zero-initialise; may grow at the end */

typedef struct pyr_verified {
    uint64_t arrays, versions, nodes, fragments;
    uint64_t bytes;        /* of fragments that were read */
    uint64_t harms;        /* that were found */
    uint64_t orphan_nodes; /* stored, but no version needs them */
    uint64_t orphan_blobs;
    uint64_t orphan_bytes;
} pyr_verified; /* may grow at the end */

/*
 * Walk everything that any kept version of any array needs, each thing once,
 * and check checksums, digests and summaries. A version that is neither
 * forgotten nor there is harm, too, as far as its tree tells. Returns 0 also if
 * harm was found: see out->harms. Others may use the store meanwhile.
 */
PYR_API int pyr_verify(pyr_store *store, const pyr_verify_spec *spec,
                       pyr_verified *out);

typedef struct pyr_repaired {
    uint64_t orphan_nodes, orphan_blobs, orphan_bytes; /* dropped */
    uint64_t summaries; /* rebuilt from cells */
    uint64_t harms;     /* left: cells that are lost are never guessed */
} pyr_repaired; /* may grow at the end */

/* Drop orphans and rebuild what can be derived. */
PYR_API int pyr_repair(pyr_store *store, const pyr_verify_spec *spec,
                       pyr_repaired *out);

/* The digest of a snapshot: equal history on any engine gives equal digests.
 * *known is 0 if it was not worked out: some of it was in flight then. */
PYR_API int pyr_digest(pyr_array *array, pyr_version version,
                       unsigned char digest[16], int *known);

/* --- copying ------------------------------------------------------------- */

typedef struct pyr_copy_spec {
    const pyr_version *versions; /* ascending; NULL: all that are kept */
    size_t             n;
    pyr_progress       progress; /* in versions */
} pyr_copy_spec; /* zero-initialise; may grow at the end */

typedef struct pyr_copied {
    uint64_t versions; /* made now; those that were there count not */
    uint64_t cells;
    uint64_t bytes;
} pyr_copied; /* may grow at the end */

/*
 * Copy snapshots of an array into another store, under a name that is free or
 * that an earlier copy of the same array has: then it goes on from there, to
 * newer ones. Versions keep their numbers, provenance and tags; what they share
 * they share again; those that are not copied are missing, as if forgotten.
 * Every snapshot is read back and compared before the next. The source may be
 * written to meanwhile. Version 0 of a clone is a snapshot of its parent: it is
 * found in a copy of that in the same store, or put into one, NAME.origin.
 * `spec` and `out` may be NULL. See docs/backup.md.
 *
 * Errors: PYR_EEXIST if the name is taken by something else, or others wrote to
 *         the copy; PYR_ENOVERSION if a version that is named is not there;
 *         PYR_EINVAL if one was left out when newer ones were copied, or they
 *         do not ascend; PYR_EFENCED if others write to the copy now;
 *         PYR_ECORRUPT if cells are damaged, here or there.
 */
PYR_API int pyr_copy(pyr_array *from, pyr_store *to, const char *name,
                     const pyr_copy_spec *spec, pyr_copied *out);

#ifdef __cplusplus
}
#endif

#endif
