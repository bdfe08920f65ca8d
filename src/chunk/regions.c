/*
 * chunk/regions.c - where in a chunk its least and greatest numbers may be.
 *
 * Regions. The longest axis is halved, four times; of equal ones the first.
 * Bits of a region's index say which half, the first halving lowest. Halves of
 * an odd extent are rounded up, so regions at the far edge may be empty.
 *
 * Stored form, little-endian:
 *
 *      0  4  bitmaps: least ones that some number has, then greatest ones
 *      4     for each region the least, then the greatest order, in as many
 *            bytes as a cell has
 */
#include "chunk/regions.h"

#include "base/checked.h"
#include "base/fail.h"

#include <assert.h>
#include <math.h>

enum { HALVINGS = 4 };

static_assert(PYRI_REGIONS == 1 << HALVINGS, "regions");

/* The order above that of all numbers. */
static uint64_t
above(pyr_type type)
{
    return UINT64_MAX >> (64 - 8 * pyri_type_size(type));
}

/* --- boxes --------------------------------------------------------------- */

/* The axis to halve, by what is left of each; -1: there is none. */
static int
longest(int ndim, const uint64_t *extent)
{
    int axis = -1;
    for (int d = 0; d < ndim; d++)
        if (extent[d] > 1 && (axis < 0 || extent[d] > extent[axis]))
            axis = d;
    return axis;
}

typedef struct halved {
    int n, axis[HALVINGS];
    uint64_t extent[PYR_MAX_DIMS]; /* of a region */
} halved;

static halved
halve(int ndim, const pyri_box *chunk)
{
    halved h;
    for (int d = 0; d < ndim; d++)
        h.extent[d] = chunk->hi[d] - chunk->lo[d];
    for (h.n = 0; h.n < HALVINGS; h.n++) {
        int axis = longest(ndim, h.extent);
        if (axis < 0)
            break;
        h.extent[axis] -= h.extent[axis] / 2;
        h.axis[h.n] = axis;
    }
    return h;
}

static void
box_of(const halved *h, int ndim, const pyri_box *chunk, int i, pyri_box *out)
{
    uint64_t index[PYR_MAX_DIMS];
    for (int d = 0; d < ndim; d++)
        index[d] = 0;
    for (int k = 0; k < h->n; k++)
        index[h->axis[k]] = 2 * index[h->axis[k]] + (unsigned)(i >> k & 1);
    for (int d = 0; d < ndim; d++) {
        uint64_t all = chunk->hi[d] - chunk->lo[d];
        uint64_t from = pyri_min64(all, index[d] * h->extent[d]);
        out->lo[d] = chunk->lo[d] + from;
        out->hi[d] = out->lo[d] + pyri_min64(h->extent[d], all - from);
    }
}

int
pyri_regions_of(int ndim, const pyri_box *chunk)
{
    return 1 << halve(ndim, chunk).n;
}

void
pyri_region_box(int ndim, const pyri_box *chunk, int i, pyri_box *out)
{
    halved h = halve(ndim, chunk);
    box_of(&h, ndim, chunk, i, out);
}

/* --- knowing ------------------------------------------------------------- */

static bool
has_numbers(const pyri_summary *s)
{
    return s->count > s->nans;
}

static void
set_end(uint64_t *end, uint32_t *is, int i, uint64_t order, bool exact)
{
    end[i] = order;
    *is = (*is & ~(1u << i)) | (uint32_t)exact << i;
}

static void
set_none(pyri_regions *r, int i, pyr_type type)
{
    set_end(r->least, &r->least_is, i, above(type), true);
    set_end(r->greatest, &r->greatest_is, i, 0, true);
}

void
pyri_region_set(pyri_regions *r, int i, pyr_type type,
                const pyri_summary *cells)
{
    set_none(r, i, type);
    if (has_numbers(cells)) {
        r->least[i] = pyri_cell_order(type, cells->min);
        r->greatest[i] = pyri_cell_order(type, cells->max);
    }
}

void
pyri_regions_hide(pyri_regions *r, int ndim, const pyri_box *chunk,
                  pyr_type type, const pyri_box *box,
                  const pyri_summary *hidden)
{
    uint64_t least = pyri_cell_order(type, hidden->min);
    uint64_t greatest = pyri_cell_order(type, hidden->max);
    halved h = halve(ndim, chunk);
    pyri_box region;
    for (int i = 0; i < r->n; i++) {
        box_of(&h, ndim, chunk, i, &region);
        if (!pyri_box_overlaps(ndim, &region, box))
            continue;
        if (pyri_box_contains(ndim, box, &region)) {
            set_none(r, i, type);
        } else if (has_numbers(hidden)) {
            /* may the number that has it be one of the hidden ones? */
            if (least <= r->least[i])
                r->least_is &= ~(1u << i);
            if (greatest >= r->greatest[i])
                r->greatest_is &= ~(1u << i);
        }
    }
}

void
pyri_regions_add(pyri_regions *r, int ndim, const pyri_box *chunk,
                 pyr_type type, const pyri_box *box, const pyri_summary *own)
{
    uint64_t least = pyri_cell_order(type, own->min);
    uint64_t greatest = pyri_cell_order(type, own->max);
    halved h = halve(ndim, chunk);
    pyri_box region;
    for (int i = 0; i < r->n && has_numbers(own); i++) {
        box_of(&h, ndim, chunk, i, &region);
        if (!pyri_box_overlaps(ndim, &region, box))
            continue;
        bool all = pyri_box_contains(ndim, &region, box);
        if (least < r->least[i])
            set_end(r->least, &r->least_is, i, least, all);
        if (greatest > r->greatest[i])
            set_end(r->greatest, &r->greatest_is, i, greatest, all);
    }
}

/* Of those that are alike, one that has it. */
int
pyri_regions_least(const pyri_regions *r, bool *is)
{
    int at = 0;
    for (int i = 1; i < r->n; i++)
        if (r->least[i] < r->least[at] ||
            (r->least[i] == r->least[at] && r->least_is >> i & 1))
            at = i;
    *is = r->least_is >> at & 1;
    return at;
}

int
pyri_regions_greatest(const pyri_regions *r, bool *is)
{
    int at = 0;
    for (int i = 1; i < r->n; i++)
        if (r->greatest[i] > r->greatest[at] ||
            (r->greatest[i] == r->greatest[at] && r->greatest_is >> i & 1))
            at = i;
    *is = r->greatest_is >> at & 1;
    return at;
}

const char *
pyri_region_differs(const pyri_regions *r, int i, pyr_type type,
                    const pyri_summary *cells)
{
    pyri_regions now = {.n = r->n};
    pyri_region_set(&now, i, type, cells);
    bool least_is = r->least_is >> i & 1, greatest_is = r->greatest_is >> i & 1;
    if (least_is ? now.least[i] != r->least[i] : now.least[i] < r->least[i])
        return "minimum of a region";
    if (greatest_is ? now.greatest[i] != r->greatest[i]
                    : now.greatest[i] > r->greatest[i])
        return "maximum of a region";
    return NULL;
}

/* --- stored form --------------------------------------------------------- */

size_t
pyri_regions_encode(const pyri_regions *r, pyr_type type,
                    uint8_t out[PYRI_REGIONS_BYTES])
{
    size_t cell = pyri_type_size(type);
    uint8_t *at = out + 4;
    if (r->n == 0)
        return 0;
    pyri_store16(out, (uint16_t)r->least_is);
    pyri_store16(out + 2, (uint16_t)r->greatest_is);
    for (int i = 0; i < r->n; i++, at += 2 * cell) {
        pyri_cell_store(type, at, r->least[i]);
        pyri_cell_store(type, at + cell, r->greatest[i]);
    }
    return (size_t)(at - out);
}

/* Of reals: a number, or what stands for none. */
static bool
makes_sense(pyr_type type, uint64_t order, uint64_t none)
{
    return !pyri_type_is_float(type) || order == none ||
           !isnan(pyri_cell_double(type, pyri_cell_of_order(type, order)));
}

int
pyri_regions_decode(pyri_regions *r, pyr_type type, int n, pyri_bytes in)
{
    size_t cell = pyri_type_size(type);
    const uint8_t *at = (const uint8_t *)in.data + 4;
    bool good = in.size == 4 + 2 * cell * (size_t)n;
    *r = (pyri_regions){0};
    if (!good)
        n = 0;
    r->n = n;
    if (good) {
        r->least_is = pyri_load16(in.data);
        r->greatest_is = pyri_load16((const uint8_t *)in.data + 2);
    }
    for (int i = 0; i < n; i++, at += 2 * cell) {
        r->least[i] = pyri_cell_load(type, at);
        r->greatest[i] = pyri_cell_load(type, at + cell);
        good = good && makes_sense(type, r->least[i], above(type)) &&
               makes_sense(type, r->greatest[i], 0);
    }
    if (good)
        return 0;
    *r = (pyri_regions){0};
    return pyri_fail(PYR_ECORRUPT, "what a leaf tells of regions is damaged");
}
