/*
 * support/model.h - what an array must hold, kept the simplest way there is:
 * every version as a full copy of its cells, changed one cell at a time.
 *
 *   model m;
 *   model_init(&m, 2, shape, PYR_I16, NULL);
 *   model_write(&m, parts, n);            makes version 1
 *   model_read(&m, 0, &part);             into part.buf
 *   model_fini(&m);
 *
 * It shares no code with the library, only its public types, and trusts its
 * caller: everything must be inside the array.
 */
#ifndef SUPPORT_MODEL_H
#define SUPPORT_MODEL_H

#include <pyramid/pyramid.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A pyr_part with memory of its own, every field given, no cells. */
typedef struct model_part {
    uint64_t offset[PYR_MAX_DIMS], size[PYR_MAX_DIMS];
    uint64_t count[PYR_MAX_DIMS], stride[PYR_MAX_DIMS];
} model_part;

typedef struct model_snap {
    pyr_kind kind;
    uint64_t shape[PYR_MAX_DIMS];
    uint64_t ncells;
    uint8_t *cells;         /* row-major; NULL once dropped */
    uint32_t *wrote;        /* per cell: the version that wrote it last */
    uint32_t *wrote_at_most;/* the same, if dropping a cell and growing again
                               counts as writing it */
    size_t nparts;
    model_part *parts;      /* what made this version */
} model_snap;

typedef struct model {
    int ndim;
    pyr_type type;
    size_t cell;            /* bytes */
    uint8_t fill[8];
    bool shrank;            /* ever */
    bool flips;             /* the lowest bit of what is written (integers) */
    size_t n;               /* versions 0 to n - 1 */
    model_snap *snaps;
} model;

size_t model_type_size(pyr_type type);
bool model_type_is_real(pyr_type type);

/* `fill` is one cell; NULL: zero. */
void model_init(model *m, int ndim, const uint64_t *shape, pyr_type type,
                const void *fill);
void model_fini(model *m);
/* Another one like it. */
void model_copy(const model *m, model *out);

/* Each makes the next version. */
void model_write(model *m, const pyr_part *parts, size_t n);
void model_resize(model *m, const uint64_t *shape);
void model_append(model *m, int axis, uint64_t count, const void *buf,
                  uint64_t *at);
/* A writer died: no cell is written, the shape may have grown. */
void model_nothing(model *m, const uint64_t *shape);

/* *out begins as version v of *m. */
void model_clone(const model *m, size_t v, model *out);
/* Free the cells of a version that is not read again. */
void model_drop(model *m, size_t v);

void model_read(const model *m, size_t v, const pyr_part *part);
/* One cell. */
const uint8_t *model_cell(const model *m, size_t v, const uint64_t *index);
bool model_inside(const model *m, size_t v, const uint64_t *index);

typedef struct model_stats {
    uint64_t count, nans, not_fill;
    bool all_equal;         /* bit for bit */
    bool infinite;          /* some cell is: sums mean little */
    int64_t min_i, max_i;   /* of signed integers */
    uint64_t min_u, max_u;  /* of unsigned ones */
    double min_f, max_f;    /* of reals; NaN if there is none */
    double sum, sum_squares, sum_abs;
} model_stats;

void model_stat(const model *m, size_t v, const uint64_t *offset,
                const uint64_t *size, model_stats *out);

/* The last version that wrote a cell of the box lies from *lo to *hi. */
void model_last_change(const model *m, size_t v, const uint64_t *offset,
                       const uint64_t *size, uint64_t *lo, uint64_t *hi);

/* True if a part of a history is what the model was told: the same cells. */
bool model_same_part(int ndim, const model_part *a, const pyr_part *b);

/* Move index to the next one inside extent, last axis fastest; false, and all
 * zero, after the last one. Any extent of 0 must be kept out by the caller. */
bool model_next(int ndim, const uint64_t *extent, uint64_t *index);
uint64_t model_count(int ndim, const uint64_t *extent);

#endif
