/*
 * model/random.h - random cells, shapes, chunks and parts for the model test.
 */
#ifndef MODEL_RANDOM_H
#define MODEL_RANDOM_H

#include "support/check.h"
#include "support/model.h"
#include "support/rng.h"

#include <math.h>

enum { MAX_CELLS = 2600 }; /* of an array at its largest */

typedef struct dice {
    rng r;
    int flavour; /* of the cells */
} dice;

static inline uint64_t
real_bits(dice *with, pyr_type type)
{
    double x = ((double)rng_below(&with->r, 2000001) - 1000000) / 1000;
    uint64_t pick = rng_below(&with->r, 40);
    if (pick == 0)
        x = NAN;
    else if (pick == 1 && rng_once_in(&with->r, 8))
        x = INFINITY;
    else if (pick == 2)
        x = 0;
    uint64_t bits = 0;
    float f = (float)x;
    if (type == PYR_F32)
        memcpy(&bits, &f, 4);
    else
        memcpy(&bits, &x, 8);
    return bits;
}

/* `n` cells, of a kind that changes from case to case and call to call. */
static inline void
random_cells(dice *with, const model *m, uint8_t *out, uint64_t n)
{
    bool real = model_type_is_real(m->type);
    uint64_t pick = rng_below(&with->r, 10);
    uint64_t same = real ? real_bits(with, m->type) : rng_next(&with->r);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t bits;
        if (pick == 0)
            bits = same;
        else if (pick == 1)
            memcpy(&bits, m->fill, 8);
        else if (real)
            bits = real_bits(with, m->type);
        else if (with->flavour == 0)
            bits = rng_next(&with->r);
        else
            bits = rng_below(&with->r, 5) - (pick > 6 ? 2 : 0);
        memcpy(out + i * m->cell, &bits, m->cell);
    }
}

static inline void
random_fill(dice *with, pyr_type type, uint8_t *fill)
{
    static const uint64_t nan32 = 0x7fc00001u, nan64 = 0x7ff8000000000003u;
    uint64_t bits = 0;
    uint64_t pick = rng_below(&with->r, 3);
    if (pick == 1)
        bits = model_type_is_real(type) ? real_bits(with, type)
                                        : rng_below(&with->r, 9) - 4;
    if (pick == 2)
        bits = type == PYR_F32   ? nan32
               : type == PYR_F64 ? nan64
                                 : rng_next(&with->r);
    memset(fill, 0, 8);
    memcpy(fill, &bits, model_type_size(type));
}

static inline void
random_shape(rng *r, int ndim, uint64_t *shape)
{
    uint64_t top = (uint64_t)(2 * pow(MAX_CELLS / 2, 1.0 / ndim)) + 1;
    do
        for (int d = 0; d < ndim; d++)
            shape[d] = rng_from(r, 1, top);
    while (model_count(ndim, shape) > MAX_CELLS / 2);
}

static inline void
random_chunk(rng *r, int ndim, const uint64_t *shape, uint64_t *chunk)
{
    uint64_t kind = rng_below(r, 5);
    for (int d = 0; d < ndim; d++)
        chunk[d] = kind == 0   ? 1
                   : kind == 1 ? shape[d] + rng_below(r, 4) + 1
                   : kind == 2 ? rng_from(r, 1, 4)
                               : rng_from(r, 1, shape[d] + 1);
}

/* A box inside shape, seldom empty; any axis of extent 0 makes it so. */
static inline void
random_box(rng *r, int ndim, const uint64_t *shape, uint64_t *offset,
           uint64_t *size)
{
    bool small = rng_once_in(r, 2);
    for (int d = 0; d < ndim; d++) {
        offset[d] = rng_below(r, shape[d] + 1);
        uint64_t room = shape[d] - offset[d];
        if (room == 0 && shape[d] > 0 && !rng_once_in(r, 30)) {
            offset[d] = rng_below(r, shape[d]);
            room = shape[d] - offset[d];
        }
        size[d] = room == 0 ? 0 : rng_from(r, 1, small && room > 3 ? 3 : room);
    }
}

/* A part with all the memory behind it, and the same memory twice: one copy
 * for the library, one for the model. */
typedef struct random_part {
    uint64_t offset[PYR_MAX_DIMS], size[PYR_MAX_DIMS];
    uint64_t count[PYR_MAX_DIMS], stride[PYR_MAX_DIMS];
    int64_t step[PYR_MAX_DIMS];
    size_t bytes, start;
    uint8_t *ours, *theirs;
    pyr_part part; /* on theirs */
} random_part;

static inline void
random_run(rng *r, int ndim, const uint64_t *shape, random_part *p)
{
    for (int d = 0; d < ndim; d++) {
        uint64_t room = shape[d] - p->offset[d];
        p->count[d] = 1;
        p->stride[d] = p->size[d];
        if (room < 2 || rng_once_in(r, 3))
            continue;
        p->size[d] = rng_from(r, 1, room / 2);
        p->stride[d] = rng_from(r, p->size[d], room);
        p->count[d] = 1 + rng_below(r, (room - p->size[d]) / p->stride[d] + 1);
    }
}

/* Axes in any order, with gaps, forwards and backwards. */
static inline void
random_steps(rng *r, int ndim, size_t cell, const uint64_t *extent,
             random_part *p)
{
    int order[PYR_MAX_DIMS];
    int64_t width = (int64_t)cell;
    p->start = 0;
    for (int d = 0; d < ndim; d++)
        order[d] = d;
    for (int d = ndim - 1; d > 0; d--) {
        int other = (int)rng_below(r, (uint64_t)d + 1), had = order[d];
        order[d] = order[other];
        order[other] = had;
    }
    for (int i = 0; i < ndim; i++) {
        int d = order[i];
        bool gap = ndim < 6 && rng_once_in(r, 3);
        width += gap ? (int64_t)(cell * rng_below(r, 3)) : 0;
        p->step[d] = width;
        width *= (int64_t)(extent[d] > 0 ? extent[d] : 1);
        if (rng_once_in(r, 3)) {
            if (extent[d] > 0)
                p->start += (size_t)p->step[d] * (size_t)(extent[d] - 1);
            p->step[d] = -p->step[d];
        }
    }
    p->bytes = (size_t)width + cell;
}

static inline void
random_part_make(dice *with, const model *m, const uint64_t *shape,
                 random_part *p)
{
    rng *r = &with->r;
    uint64_t extent[PYR_MAX_DIMS];
    *p = (random_part){0};
    random_box(r, m->ndim, shape, p->offset, p->size);
    bool run = rng_once_in(r, 3), steps = rng_once_in(r, 3);
    for (int d = 0; d < m->ndim; d++) {
        p->count[d] = 1;
        p->stride[d] = p->size[d];
    }
    if (run)
        random_run(r, m->ndim, shape, p);
    for (int d = 0; d < m->ndim; d++)
        extent[d] = p->size[d] * p->count[d];
    p->bytes = (size_t)model_count(m->ndim, extent) * m->cell;
    if (steps)
        random_steps(r, m->ndim, m->cell, extent, p);
    p->ours = malloc(p->bytes + 1);
    p->theirs = malloc(p->bytes + 1);
    REQUIRE(p->ours && p->theirs);
    random_cells(with, m, p->theirs, p->bytes / m->cell);
    memset(p->theirs + p->bytes / m->cell * m->cell, 0, p->bytes % m->cell);
    memcpy(p->ours, p->theirs, p->bytes);
    p->part = (pyr_part){.offset = p->offset, .size = p->size,
                         .count = run ? p->count : NULL,
                         .stride = run ? p->stride : NULL,
                         .buf = p->theirs + p->start,
                         .step = steps ? p->step : NULL};
}

static inline void
random_parts_free(random_part *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(p[i].ours);
        free(p[i].theirs);
    }
}

#endif
