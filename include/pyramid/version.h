/*
 * pyramid/version.h - the history of an array: who changed what, tags,
 * clones, differences.
 */
#ifndef PYRAMID_VERSION_H
#define PYRAMID_VERSION_H

#include <pyramid/error.h>
#include <pyramid/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pyr_kind {
    PYR_KIND_CREATE,  /* version 0 */
    PYR_KIND_WRITE,
    PYR_KIND_RESIZE,
    PYR_KIND_APPEND,
    PYR_KIND_COMPUTE,
    PYR_KIND_CLONE,   /* version 0 of a clone */
    PYR_KIND_NOTHING  /* its writer died; changes nothing */
} pyr_kind;

/* The provenance of one version. Pointers live until the callback returns. */
typedef struct pyr_change {
    pyr_version     version;
    pyr_kind        kind;
    int64_t         time_ns; /* since 1970, when it was completed */
    const char     *who;     /* user@host:pid of the writer */
    const char     *message; /* "" if none */
    int             ndim;
    const uint64_t *shape;   /* from this version on */
    size_t          nparts;
    const pyr_part *parts;   /* what it wrote; buf and step are NULL */
    pyr_version     source;  /* computed or cloned from this version */
    const char     *expression; /* by this; "" otherwise */
    const char     *handlers; /* that the cells went through; "" if none */
} pyr_change;                   /* may grow at the end */

/* A result other than 0 ends the walk and is returned. */
typedef int pyr_change_fn(void *ctx, const pyr_change *change);

/*
 * Call `each` for the versions from `first` to `last`, both included, in that
 * direction: (PYR_LATEST, 0) is newest first.
 */
PYR_API int pyr_history(pyr_array *array, pyr_version first, pyr_version last,
                        pyr_change_fn *each, void *ctx);

/* Tags name snapshots. Setting moves a tag that exists; names as of arrays. */
typedef int pyr_tag_fn(void *ctx, const char *tag, pyr_version version);
PYR_API int pyr_tag(pyr_array *array, const char *tag, pyr_version version);
PYR_API int pyr_untag(pyr_array *array, const char *tag);
PYR_API int pyr_tag_version(pyr_array *array, const char *tag,
                            pyr_version *version);
PYR_API int pyr_tags(pyr_array *array, pyr_tag_fn *each, void *ctx);

/*
 * Make a new array in the same store that starts as a snapshot of this one,
 * for the price of one record. Gives *clone, which may be NULL if unwanted.
 * The snapshot is the clone's version 0; neither sees the other's later ones.
 */
PYR_API int pyr_clone(pyr_array *array, pyr_version version, const char *name,
                      pyr_array **clone);

/*
 * Call `each` for boxes that together hold every cell in which two snapshots
 * may differ; cells outside them are the same. Only subtrees that differ are
 * walked, so the cost is that of the difference. Where versions in between were
 * reclaimed, or hundreds of them wrote to one chunk, boxes may be larger than
 * what was written.
 */
typedef int pyr_box_fn(void *ctx, int ndim, const uint64_t *offset,
                       const uint64_t *size);
PYR_API int pyr_diff(pyr_array *array, pyr_version a, pyr_version b,
                     pyr_box_fn *each, void *ctx);

/* The last version, not after `version`, that wrote a cell of the box; 0 if
 * none ever did. Read off the labels in the tree. If that version has been
 * reclaimed, or others after it were before a fold, it may be a later one. */
PYR_API int pyr_last_change(pyr_array *array, pyr_version version,
                            const uint64_t *offset, const uint64_t *size,
                            pyr_version *out);

#ifdef __cplusplus
}
#endif

#endif
