/*
 * pyramid/op.h - functions sent to the data.
 *
 *   pyr_compute(array, PYR_LATEST, offset, size, "x*1.8 + 32", &made);
 *
 *   pyr_value mean;
 *   pyr_reduce(array, PYR_LATEST, offset, size, "mean(where(x > 0, x, 0))", &mean);
 *   printf("%g\n", mean.real);
 *   pyr_value_free(&mean);
 *
 * docs/expressions.md tells what can be written. A text that makes no sense
 * gives PYR_EINVAL, and pyr_errmsg() shows it with a caret under the place.
 */
#ifndef PYRAMID_OP_H
#define PYRAMID_OP_H

#include <pyramid/array.h>
#include <pyramid/error.h>
#include <pyramid/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- a new version ------------------------------------------------------- */

/*
 * Make a new version: inside the box, which may be empty, the function of the
 * cells that snapshot `version` has there; outside it what the snapshot just
 * before the new one holds, as for a write. *made, which may be NULL, is its
 * number. It is durable and readable when this returns.
 *
 * `x` in the function is the cell in `version`, which must have all of the
 * box. `x@V` is the same cell in version V; where the box leaves the shape
 * that V had, it is the fill value. What comes out is converted to the array's
 * type: it saturates, and NaN becomes 0 in integers.
 *
 * Regions that have one value in every source are computed once and take no
 * space, however large: x*2 of 10^15 cells of fill makes a node or a few. A
 * version can list about a million chunks besides: those with cells of their
 * own (all of them, if the function names coordinates), and those that the
 * edge of the box cuts. If others change the shape, or keep writing into parts
 * of a box that should stay as they are, the call may fail with PYR_EFENCED;
 * each time that it was disturbed leaves a version that changes nothing.
 * Writers who come while a version with such regions is in flight wait for it.
 *
 * Errors: PYR_EINVAL for the function; PYR_EBOUNDS if the box leaves the array
 *         in `version` or in the newest snapshot; PYR_ENOVERSION if `version`
 *         or one that the function names is not there (any more);
 *         PYR_EUNSUPPORTED if too many chunks would have to be listed;
 *         PYR_EKERNEL if a kernel is not on this machine, or failed.
 */
PYR_API int pyr_compute(pyr_array *array, pyr_version version,
                        const uint64_t *offset, const uint64_t *size,
                        const char *function, pyr_version *made);

/* The same with a message for the history, or without waiting until it is
 * published. `options` may be NULL. */
PYR_API int pyr_compute_with(pyr_array *array, pyr_version version,
                             const uint64_t *offset, const uint64_t *size,
                             const char *function,
                             const pyr_write_options *options,
                             pyr_version *made);

/* --- handlers ------------------------------------------------------------ */

/*
 * Functions that an array's cells go through on their way into storage, in the
 * order in which they were added. They see what is stored by pyr_write() and
 * all its variants, batches, appends and pyr_compute(); not what is there
 * already, nor copies of other arrays' versions. The user's memory stays as it
 * is. History tells of each version which handlers its cells went through.
 *
 * A change applies to every write that begins, in any process, after the call
 * has returned (each pyr_batch_write() is one); those under way may still go
 * without it. If a handler fails, the write does, and nothing is published.
 */
typedef enum pyr_event {
    PYR_ON_WRITE = 1
} pyr_event;

typedef struct pyr_handler {
    unsigned    number;   /* never given twice in an array */
    pyr_event   event;
    const char *function; /* canonical text */
    int64_t     time_ns;  /* since 1970, when it was added */
    const char *who;      /* user@host:pid */
} pyr_handler;            /* may grow at the end */

/*
 * Add a handler: an expression over x and coordinates, and kernels without a
 * halo. *number, which may be NULL, is its number. An array has up to 16.
 *
 * Errors: PYR_EINVAL for the function; x@V is refused, as versions can be
 *         forgotten. PYR_EKERNEL if a kernel is not on this machine.
 */
PYR_API int pyr_handler_add(pyr_array *array, pyr_event event,
                            const char *function, unsigned *number);

/* Call `each` for every handler, in order. A result other than 0 ends the walk
 * and is returned. */
typedef int pyr_handler_fn(void *ctx, const pyr_handler *handler);
PYR_API int pyr_handler_list(pyr_array *array, pyr_handler_fn *each,
                             void *ctx);

/* Take a handler away. PYR_ENOTFOUND if there is none of that number. */
PYR_API int pyr_handler_remove(pyr_array *array, unsigned number);

/* --- one value ----------------------------------------------------------- */

typedef enum pyr_value_kind {
    PYR_VALUE_NONE,      /* there is none: no cell took part */
    PYR_VALUE_INTEGER,   /* exact, in high and low; real is the nearest */
    PYR_VALUE_REAL,
    PYR_VALUE_POSITION,  /* at[] */
    PYR_VALUE_HISTOGRAM  /* bins, counts, ... */
} pyr_value_kind;

typedef struct pyr_value {
    pyr_value_kind kind;
    double   real;
    int64_t  high;             /* the integer is high * 2^64 + low */
    uint64_t low;
    int      ndim;
    uint64_t at[PYR_MAX_DIMS]; /* of argmin and argmax */
    /* of histograms: */
    double   lo, hi;
    uint32_t bins;
    uint64_t *counts;          /* bins of them; pyr_value_free() */
    uint64_t below, above;     /* cells outside [lo, hi] */
    uint64_t nans;
    /* what the answer cost: */
    uint64_t nodes_read;
    uint64_t chunks_read;      /* chunks (or pieces of large ones) whose cells
                                  were looked at, once per pass */
    uint64_t bytes_read;       /* of cells */
} pyr_value;                   /* may grow at the end */

/*
 * Reduce the cells of a box of a snapshot to one value: count, any, all, sum,
 * mean, var, std, min, max, argmin, argmax, histogram or quantile of any
 * expression. Where the tree's summaries tell it exactly no cell is read. The
 * value does not depend on the number of threads.
 *
 * Errors: as pyr_compute(); PYR_EINVAL also if the function is no reduction.
 */
PYR_API int pyr_reduce(pyr_array *array, pyr_version version,
                       const uint64_t *offset, const uint64_t *size,
                       const char *function, pyr_value *out);

/* The value as text: "17", "0.1", "3, 5", "none"; of a histogram its counts up
 * to the size. Returns text. */
PYR_API char *pyr_value_text(const pyr_value *value, char *text, size_t size);

/* Give back what a value holds. NULL is allowed. */
PYR_API void pyr_value_free(pyr_value *value);

#ifdef __cplusplus
}
#endif

#endif
