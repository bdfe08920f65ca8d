/*
 * support/model.c - what an array must hold, kept the simplest way there is.
 */
#include "support/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *
must(void *p)
{
    if (!p)
        abort();
    return p;
}

size_t
model_type_size(pyr_type type)
{
    static const uint8_t sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
    return sizes[type];
}

bool
model_type_is_real(pyr_type type)
{
    return type == PYR_F32 || type == PYR_F64;
}

bool
model_next(int ndim, const uint64_t *extent, uint64_t *index)
{
    for (int d = ndim - 1; d >= 0; d--) {
        if (++index[d] < extent[d])
            return true;
        index[d] = 0;
    }
    return false;
}

uint64_t
model_count(int ndim, const uint64_t *extent)
{
    uint64_t n = 1;
    for (int d = 0; d < ndim; d++)
        n *= extent[d];
    return n;
}

static uint64_t
place(int ndim, const uint64_t *shape, const uint64_t *index)
{
    uint64_t at = 0;
    for (int d = 0; d < ndim; d++)
        at = at * shape[d] + index[d];
    return at;
}

static model_snap *
add_snap(model *m, pyr_kind kind, const uint64_t *shape)
{
    model_snap fresh = {.kind = kind};
    memcpy(fresh.shape, shape, (size_t)m->ndim * sizeof *shape);
    m->snaps = must(realloc(m->snaps, (m->n + 1) * sizeof *m->snaps));
    model_snap *s = &m->snaps[m->n++];
    *s = fresh;
    s->ncells = model_count(m->ndim, s->shape);
    s->cells = must(malloc(s->ncells * m->cell + 1));
    s->wrote = must(calloc(s->ncells + 1, sizeof *s->wrote));
    s->wrote_at_most = must(calloc(s->ncells + 1, sizeof *s->wrote));
    for (uint64_t i = 0; i < s->ncells; i++)
        memcpy(s->cells + i * m->cell, m->fill, m->cell);
    return s;
}

void
model_init(model *m, int ndim, const uint64_t *shape, pyr_type type,
           const void *fill)
{
    *m = (model){.ndim = ndim, .type = type, .cell = model_type_size(type)};
    if (fill)
        memcpy(m->fill, fill, m->cell);
    add_snap(m, PYR_KIND_CREATE, shape);
}

void
model_drop(model *m, size_t v)
{
    model_snap *s = &m->snaps[v];
    free(s->cells);
    free(s->wrote);
    free(s->wrote_at_most);
    free(s->parts);
    s->cells = NULL;
    s->wrote = s->wrote_at_most = NULL;
    s->parts = NULL;
}

void
model_fini(model *m)
{
    for (size_t v = 0; v < m->n; v++)
        model_drop(m, v);
    free(m->snaps);
    *m = (model){0};
}

static void *
copy_of(const void *from, size_t size)
{
    return from ? memcpy(must(malloc(size + 1)), from, size) : NULL;
}

void
model_copy(const model *m, model *out)
{
    *out = *m;
    out->snaps = copy_of(m->snaps, m->n * sizeof *m->snaps);
    for (size_t v = 0; v < m->n; v++) {
        model_snap *s = &out->snaps[v];
        size_t notes = s->ncells * sizeof *s->wrote;
        s->cells = copy_of(s->cells, s->ncells * m->cell);
        s->wrote = copy_of(s->wrote, notes);
        s->wrote_at_most = copy_of(s->wrote_at_most, notes);
        s->parts = copy_of(s->parts, s->nparts * sizeof *s->parts);
    }
}

/* The next version, as the one before it but for the shape. */
static model_snap *
follow(model *m, pyr_kind kind, const uint64_t *shape)
{
    model_snap *s = add_snap(m, kind, shape ? shape : m->snaps[m->n - 1].shape);
    const model_snap *old = s - 1;
    uint64_t index[PYR_MAX_DIMS] = {0};
    for (int d = 0; d < m->ndim; d++)
        m->shrank |= s->shape[d] < old->shape[d];
    if (s->ncells == 0)
        return s;
    if (memcmp(s->shape, old->shape, (size_t)m->ndim * sizeof *old->shape) ==
        0) {
        memcpy(s->cells, old->cells, s->ncells * m->cell);
        memcpy(s->wrote, old->wrote, s->ncells * sizeof *s->wrote);
        memcpy(s->wrote_at_most, old->wrote_at_most,
               s->ncells * sizeof *s->wrote);
        return s;
    }
    do {
        uint64_t to = place(m->ndim, s->shape, index);
        if (model_inside(m, m->n - 2, index)) {
            uint64_t from = place(m->ndim, old->shape, index);
            memcpy(s->cells + to * m->cell, old->cells + from * m->cell,
                   m->cell);
            s->wrote[to] = old->wrote[from];
            s->wrote_at_most[to] = old->wrote_at_most[from];
        } else if (m->shrank) {
            s->wrote_at_most[to] = (uint32_t)(m->n - 1);
        }
    } while (model_next(m->ndim, s->shape, index));
    return s;
}

static model_part
full_part(int ndim, const pyr_part *p)
{
    model_part full = {0};
    for (int d = 0; d < ndim; d++) {
        full.offset[d] = p->offset[d];
        full.size[d] = p->size[d];
        full.count[d] = p->count ? p->count[d] : 1;
        full.stride[d] = p->stride ? p->stride[d] : p->size[d];
    }
    return full;
}

/* Walks the cells of a part: index in the array, address in memory. */
typedef struct walk {
    int ndim;
    model_part part;
    uint64_t extent[PYR_MAX_DIMS];
    int64_t step[PYR_MAX_DIMS];
    uint64_t at[PYR_MAX_DIMS];
    bool more;
} walk;

static void
walk_begin(walk *w, int ndim, size_t cell, const pyr_part *p)
{
    *w = (walk){.ndim = ndim, .part = full_part(ndim, p), .more = true};
    int64_t dense = (int64_t)cell;
    for (int d = ndim - 1; d >= 0; d--) {
        w->extent[d] = w->part.size[d] * w->part.count[d];
        w->step[d] = p->step ? p->step[d] : dense;
        dense *= (int64_t)w->extent[d];
        w->more &= w->extent[d] > 0;
    }
}

static uint8_t *
walk_place(const walk *w, const pyr_part *p, uint64_t *index)
{
    int64_t at = 0;
    for (int d = 0; d < w->ndim; d++) {
        index[d] = w->part.offset[d] +
                   w->at[d] / w->part.size[d] * w->part.stride[d] +
                   w->at[d] % w->part.size[d];
        at += (int64_t)w->at[d] * w->step[d];
    }
    return (uint8_t *)p->buf + at;
}

static void
put_part(model *m, const pyr_part *p)
{
    model_snap *s = &m->snaps[m->n - 1];
    uint64_t index[PYR_MAX_DIMS];
    walk w;
    walk_begin(&w, m->ndim, m->cell, p);
    for (; w.more; w.more = model_next(m->ndim, w.extent, w.at)) {
        const uint8_t *from = walk_place(&w, p, index);
        uint64_t to = place(m->ndim, s->shape, index);
        memcpy(s->cells + to * m->cell, from, m->cell);
        s->cells[to * m->cell] ^= m->flips;
        s->wrote[to] = s->wrote_at_most[to] = (uint32_t)(m->n - 1);
    }
}

void
model_write(model *m, const pyr_part *parts, size_t n)
{
    model_snap *s = follow(m, PYR_KIND_WRITE, NULL);
    s->nparts = n;
    s->parts = must(calloc(n + 1, sizeof *s->parts));
    for (size_t i = 0; i < n; i++) {
        s->parts[i] = full_part(m->ndim, &parts[i]);
        put_part(m, &parts[i]);
    }
}

void
model_resize(model *m, const uint64_t *shape)
{
    follow(m, PYR_KIND_RESIZE, shape);
}

void
model_nothing(model *m, const uint64_t *shape)
{
    follow(m, PYR_KIND_NOTHING, shape);
}

void
model_append(model *m, int axis, uint64_t count, const void *buf,
             uint64_t *at)
{
    uint64_t shape[PYR_MAX_DIMS], offset[PYR_MAX_DIMS] = {0};
    uint64_t size[PYR_MAX_DIMS];
    memcpy(shape, m->snaps[m->n - 1].shape, sizeof shape);
    memcpy(size, shape, sizeof size);
    *at = offset[axis] = shape[axis];
    size[axis] = count;
    shape[axis] += count;
    model_snap *s = follow(m, PYR_KIND_APPEND, shape);
    pyr_part part = {.offset = offset, .size = size};
    memcpy(&part.buf, &buf, sizeof buf);
    s->nparts = 1;
    s->parts = must(calloc(1, sizeof *s->parts));
    s->parts[0] = full_part(m->ndim, &part);
    put_part(m, &part);
}

void
model_clone(const model *m, size_t v, model *out)
{
    model_init(out, m->ndim, m->snaps[v].shape, m->type, m->fill);
    out->snaps[0].kind = PYR_KIND_CLONE;
    memcpy(out->snaps[0].cells, m->snaps[v].cells,
           m->snaps[v].ncells * m->cell);
}

bool
model_inside(const model *m, size_t v, const uint64_t *index)
{
    for (int d = 0; d < m->ndim; d++)
        if (index[d] >= m->snaps[v].shape[d])
            return false;
    return true;
}

const uint8_t *
model_cell(const model *m, size_t v, const uint64_t *index)
{
    const model_snap *s = &m->snaps[v];
    return s->cells + place(m->ndim, s->shape, index) * m->cell;
}

void
model_read(const model *m, size_t v, const pyr_part *part)
{
    uint64_t index[PYR_MAX_DIMS];
    walk w;
    walk_begin(&w, m->ndim, m->cell, part);
    for (; w.more; w.more = model_next(m->ndim, w.extent, w.at)) {
        uint8_t *to = walk_place(&w, part, index);
        memcpy(to, model_cell(m, v, index), m->cell);
    }
}

/* --- statistics ---------------------------------------------------------- */

static int64_t
as_signed(pyr_type type, const void *cell)
{
    int8_t a;
    int16_t b;
    int32_t c;
    int64_t d = 0;
    switch (type) {
    case PYR_I8: memcpy(&a, cell, 1); return a;
    case PYR_I16: memcpy(&b, cell, 2); return b;
    case PYR_I32: memcpy(&c, cell, 4); return c;
    case PYR_I64: memcpy(&d, cell, 8); return d;
    default: return 0;
    }
}

static uint64_t
as_unsigned(pyr_type type, const void *cell)
{
    uint8_t a;
    uint16_t b;
    uint32_t c;
    uint64_t d = 0;
    switch (type) {
    case PYR_U8: memcpy(&a, cell, 1); return a;
    case PYR_U16: memcpy(&b, cell, 2); return b;
    case PYR_U32: memcpy(&c, cell, 4); return c;
    case PYR_U64: memcpy(&d, cell, 8); return d;
    default: return 0;
    }
}

static double
as_real(pyr_type type, const void *cell)
{
    float f;
    double d;
    switch (type) {
    case PYR_F32: memcpy(&f, cell, 4); return f;
    case PYR_F64: memcpy(&d, cell, 8); return d;
    case PYR_I8: case PYR_I16: case PYR_I32: case PYR_I64:
        return (double)as_signed(type, cell);
    default: return (double)as_unsigned(type, cell);
    }
}

typedef struct totals {
    __int128 whole;       /* of integers, exact */
    long double sum, squares, abs;
} totals;

static void
stat_cell(const model *m, const uint8_t *cell, model_stats *s, totals *t)
{
    s->count++;
    s->not_fill += memcmp(cell, m->fill, m->cell) != 0;
    double x = as_real(m->type, cell);
    if (isnan(x)) {
        s->nans++;
        return;
    }
    int64_t i = as_signed(m->type, cell);
    uint64_t u = as_unsigned(m->type, cell);
    s->min_i = i < s->min_i ? i : s->min_i;
    s->max_i = i > s->max_i ? i : s->max_i;
    s->min_u = u < s->min_u ? u : s->min_u;
    s->max_u = u > s->max_u ? u : s->max_u;
    s->min_f = isnan(s->min_f) || x < s->min_f ? x : s->min_f;
    s->max_f = isnan(s->max_f) || x > s->max_f ? x : s->max_f;
    s->infinite |= isinf(x);
    t->whole += i;
    t->whole += u;
    t->sum += x;
    t->squares += (long double)x * x;
    t->abs += fabsl(x);
}

void
model_stat(const model *m, size_t v, const uint64_t *offset,
           const uint64_t *size, model_stats *out)
{
    uint64_t at[PYR_MAX_DIMS] = {0}, index[PYR_MAX_DIMS];
    const uint8_t *first = NULL;
    totals t = {0};
    *out = (model_stats){.all_equal = true, .min_i = INT64_MAX,
                         .max_i = INT64_MIN, .min_u = UINT64_MAX,
                         .min_f = NAN, .max_f = NAN};
    bool more = model_count(m->ndim, size) > 0;
    for (; more; more = model_next(m->ndim, size, at)) {
        for (int d = 0; d < m->ndim; d++)
            index[d] = offset[d] + at[d];
        const uint8_t *cell = model_cell(m, v, index);
        first = first ? first : cell;
        out->all_equal &= memcmp(cell, first, m->cell) == 0;
        stat_cell(m, cell, out, &t);
    }
    out->sum = model_type_is_real(m->type) ? (double)t.sum : (double)t.whole;
    out->sum_squares = (double)t.squares;
    out->sum_abs = (double)t.abs;
}

void
model_last_change(const model *m, size_t v, const uint64_t *offset,
                  const uint64_t *size, uint64_t *lo, uint64_t *hi)
{
    const model_snap *s = &m->snaps[v];
    uint64_t at[PYR_MAX_DIMS] = {0}, index[PYR_MAX_DIMS];
    *lo = *hi = 0;
    bool more = model_count(m->ndim, size) > 0;
    for (; more; more = model_next(m->ndim, size, at)) {
        for (int d = 0; d < m->ndim; d++)
            index[d] = offset[d] + at[d];
        uint64_t i = place(m->ndim, s->shape, index);
        *lo = s->wrote[i] > *lo ? s->wrote[i] : *lo;
        *hi = s->wrote_at_most[i] > *hi ? s->wrote_at_most[i] : *hi;
    }
}

/* --- parts --------------------------------------------------------------- */

static bool
has_cell(uint64_t x, uint64_t offset, uint64_t size, uint64_t count,
         uint64_t stride)
{
    for (uint64_t i = 0; i < count; i++)
        if (x >= offset + i * stride && x - offset - i * stride < size)
            return true;
    return false;
}

bool
model_same_part(int ndim, const model_part *a, const pyr_part *b)
{
    model_part full = full_part(ndim, b);
    for (int d = 0; d < ndim; d++) {
        uint64_t end_a = a->offset[d] + a->count[d] * a->stride[d];
        uint64_t end_b = full.offset[d] + full.count[d] * full.stride[d];
        uint64_t end = (end_a > end_b ? end_a : end_b) + 1;
        for (uint64_t x = 0; x < end; x++)
            if (has_cell(x, a->offset[d], a->size[d], a->count[d],
                         a->stride[d]) !=
                has_cell(x, full.offset[d], full.size[d], full.count[d],
                         full.stride[d]))
                return false;
    }
    return true;
}
