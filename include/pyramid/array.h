/*
 * pyramid/array.h - create, open, read and write n-dimensional arrays.
 *
 *   pyr_array *t;
 *   uint64_t offset[2] = {0, 50}, size[2] = {100, 10};
 *   pyr_version made;
 *   if (pyr_array_open(store, "ocean/temperature", &t) < 0 ||
 *       pyr_write(t, offset, size, cells, &made) < 0 ||
 *       pyr_read(t, made - 1, offset, size, before) < 0)
 *       die(pyr_errmsg());
 *   pyr_array_close(t);
 *
 * Every write makes exactly one new version, visible all at once; versions of
 * an array are totally ordered and never change. Version 0 is all fill (of a
 * clone: the snapshot it was made from). Writers wait for nobody while they
 * work, readers wait for nobody at all. Handles may be shared by threads.
 * Cells in memory are of the array's type, in the machine's byte order,
 * row-major unless a part says otherwise.
 */
#ifndef PYRAMID_ARRAY_H
#define PYRAMID_ARRAY_H

#include <pyramid/error.h>
#include <pyramid/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- arrays -------------------------------------------------------------- */

/*
 * Create an array; costs the same for 10 cells and 10^18 (up to 2^64 - 2).
 * Names are 1 to PYR_MAX_NAME bytes of UTF-8, parts divided by '/'; no part
 * is empty, "." or "..", none holds control characters.
 *
 * Gives *array, which may be NULL if it is not wanted, to the caller.
 *
 * Errors: PYR_EEXIST, PYR_EREADONLY, PYR_EINVAL (which field, and why).
 */
PYR_API int pyr_create(pyr_store *store, const char *name,
                       const pyr_spec *spec, pyr_array **array);

/* Open an array. Gives *array; the store must stay open as long.
 * Errors: PYR_ENOTFOUND. */
PYR_API int pyr_array_open(pyr_store *store, const char *name,
                           pyr_array **array);

/* End a handle. NULL is allowed. */
PYR_API void pyr_array_close(pyr_array *array);

/* What an array is, as of one version. */
typedef struct pyr_info {
    int         ndim;
    uint64_t    shape[PYR_MAX_DIMS]; /* of that version */
    uint64_t    chunk[PYR_MAX_DIMS];
    pyr_type    type;
    uint8_t     fill[8];             /* one cell, in its first bytes */
    pyr_codec   codec;
    int         level;
    pyr_version version;             /* that was asked for, as a number */
    pyr_version latest;              /* newest published */
    int64_t     created_ns;          /* since 1970 */
    char        clone_of[PYR_MAX_NAME + 1]; /* "" if it is no clone */
    pyr_version clone_version;
} pyr_info;

/* Errors: PYR_ENOVERSION. */
PYR_API int pyr_array_info(pyr_array *array, pyr_version version,
                           pyr_info *out);

/* The JSON attributes: `*out` is given to the caller, who frees it with
 * free(). Setting replaces them all, at once, outside any version.
 * Errors: PYR_EINVAL if the text is not a JSON object. */
PYR_API int pyr_attributes(pyr_array *array, char **out);
PYR_API int pyr_set_attributes(pyr_array *array, const char *json);

/* The newest published version. */
PYR_API int pyr_latest(pyr_array *array, pyr_version *version);

/* --- reading ------------------------------------------------------------- */

/*
 * Read a box of one snapshot into `buf`, densely, in row-major order. Cells
 * never written read as fill. A size of 0 along any axis reads nothing.
 *
 * Errors: PYR_EBOUNDS if the box leaves that snapshot's shape,
 *         PYR_ENOVERSION if it was never published,
 *         PYR_ECORRUPT if stored cells fail their checksum (buf is then
 *         undefined); the text names version and box.
 */
PYR_API int pyr_read(pyr_array *array, pyr_version version,
                     const uint64_t *offset, const uint64_t *size, void *buf);

/* Read many parts of one snapshot, strided or not, into any memory. */
PYR_API int pyr_read_list(pyr_array *array, pyr_version version,
                          const pyr_part *parts, size_t n);

/* As pyr_read(), refusing with PYR_ETYPE unless cells are of `type`. */
PYR_API int pyr_read_as(pyr_array *array, pyr_version version, pyr_type type,
                        const uint64_t *offset, const uint64_t *size,
                        void *buf);

/* --- writing ------------------------------------------------------------- */

/*
 * Write a box and publish the result as a new version, whose number is stored
 * in *made (may be NULL). Returns once the version is readable, by anyone, and
 * as durable as the store promises. Two writers may overlap: the later version
 * wins, whole box by whole box, and neither waits for the other's data.
 *
 * Errors: PYR_EBOUNDS, PYR_EREADONLY, PYR_ENOSPC, PYR_EIO, PYR_ENOMEM: nothing
 *         changed (if it failed late, a version is there that says so);
 *         PYR_EFENCED if this writer was silent for longer than its lease and
 *         was given up for dead: nothing changed, write again if you like.
 */
PYR_API int pyr_write(pyr_array *array, const uint64_t *offset,
                      const uint64_t *size, const void *buf,
                      pyr_version *made);

/* As pyr_write(), refusing with PYR_ETYPE unless the array is of `type`. */
PYR_API int pyr_write_as(pyr_array *array, pyr_type type,
                         const uint64_t *offset, const uint64_t *size,
                         const void *buf, pyr_version *made);

#define PYR_WRITE_NOWAIT 1u /* return when the version is complete, though
                               earlier ones may still be in flight; it is
                               published, and from then on as durable as any,
                               when they are (pyr_wait) */

typedef struct pyr_write_options {
    unsigned    flags;
    const char *message; /* for the history; NULL: none */
} pyr_write_options;     /* zero-initialise; may grow at the end */

/*
 * Write many parts as one version: all of them or nothing. Where parts
 * overlap, the later in the list wins. `options` may be NULL.
 */
PYR_API int pyr_write_list(pyr_array *array, const pyr_part *parts, size_t n,
                           const pyr_write_options *options,
                           pyr_version *made);

/*
 * Wait until `version` is published; timeout_ms < 0 waits for as long as it
 * takes. Resolves dead writers that stand in the way.
 * Errors: PYR_ETIMEOUT; PYR_ENOVERSION if nobody has taken that version.
 */
PYR_API int pyr_wait(pyr_array *array, pyr_version version, int timeout_ms);

/*
 * A batch gathers writes over time and makes them one version at the end.
 * Each pyr_batch_write() stores its cells at once, so `buf` is free again when
 * it returns; nothing is visible before the commit. One thread at a time.
 * Commit and abort end the batch, whatever they return.
 */
typedef struct pyr_batch pyr_batch;
PYR_API int  pyr_batch_begin(pyr_array *array, pyr_batch **batch);
PYR_API int  pyr_batch_write(pyr_batch *batch, const uint64_t *offset,
                             const uint64_t *size, const void *buf);
PYR_API int  pyr_batch_commit(pyr_batch *batch,
                              const pyr_write_options *options,
                              pyr_version *made);
PYR_API void pyr_batch_abort(pyr_batch *batch);

/* --- shape --------------------------------------------------------------- */

/*
 * Make a version of another shape. Cells inside both shapes stay; cells that
 * a smaller shape drops are gone from later versions, also if they grow again.
 * One that fails late may have changed the shape, as others may have built on
 * it already; pyr_array_info() tells.
 */
PYR_API int pyr_resize(pyr_array *array, const uint64_t *shape,
                       pyr_version *made);

/*
 * Grow by `count` along `axis` and fill the new cells from `buf` (dense, all
 * other axes whole), as one version. Any number of appenders may run at once;
 * each gets cells of its own, whose first index is stored in *at (may be
 * NULL). The other axes must not change meanwhile: PYR_EBOUNDS. An appender
 * that dies, is fenced or fails once it was given its cells leaves them as
 * fill, as others may stand behind them already.
 */
PYR_API int pyr_append(pyr_array *array, int axis, uint64_t count,
                       const void *buf, uint64_t *at, pyr_version *made);

/* --- from the index ------------------------------------------------------ */

typedef struct pyr_stats {
    uint64_t count;         /* cells of the box */
    uint64_t nans;          /* of them NaN; left out of all below */
    uint64_t not_fill;      /* cells that differ from the fill value */
    double   min, max;      /* NaN if there is no number */
    union {
        int64_t  i;
        uint64_t u;
        double   f;
    } exact_min, exact_max; /* i for i8..i64, u for u8..u64, f for f32, f64 */
    double   sum;
    double   sum_squares;
    double   mean;          /* NaN if there is no number */
    int      all_equal;     /* every cell is the same */
    uint64_t nodes_read;    /* what the answer cost */
    uint64_t chunks_read;
} pyr_stats;

#define PYR_STAT_BOUNDS 1u /* read no chunk: min and max are bounds that the
                              cells keep; sums, nans, not_fill are not set */

/* Statistics of a box of a snapshot: whole subtrees from their summaries,
 * cells only from chunks that the edge of the box cuts. */
PYR_API int pyr_stat(pyr_array *array, pyr_version version,
                     const uint64_t *offset, const uint64_t *size,
                     unsigned flags, pyr_stats *out);

#ifdef __cplusplus
}
#endif

#endif
