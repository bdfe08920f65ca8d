/*
 * Regions: they divide a chunk, and what is known of them stays true whatever is
 * written over it.
 */
#include "chunk/regions.h"
#include "support/check.h"
#include "support/rng.h"

#include <math.h>
#include <string.h>

enum { CELLS = 4096 };

/* A chunk of cells in memory, row-major. */
typedef struct scene {
    rng r;
    pyr_type type;
    int ndim;
    pyri_box chunk;
    uint64_t cells[CELLS];
    pyri_regions known;
} scene;

static uint64_t
random_cell(scene *s)
{
    uint64_t bits = rng_next(&s->r) >> (64 - 8 * pyri_type_size(s->type));
    double d = (double)rng_below(&s->r, 40) - 20;
    float f = (float)d;
    if (rng_once_in(&s->r, 4) && pyri_type_is_float(s->type))
        d = f = NAN;
    if (rng_once_in(&s->r, 3))
        return bits;
    if (s->type == PYR_F64)
        memcpy(&bits, &d, sizeof d);
    else if (s->type == PYR_F32) {
        bits = 0;
        memcpy(&bits, &f, sizeof f);
    } else {
        bits %= 5;
    }
    return bits;
}

static uint64_t
place_of(const scene *s, const uint64_t *at)
{
    uint64_t i = 0;
    for (int d = 0; d < s->ndim; d++)
        i = i * (s->chunk.hi[d] - s->chunk.lo[d]) + at[d] - s->chunk.lo[d];
    return i;
}

static bool
next(const scene *s, const pyri_box *box, uint64_t *at)
{
    for (int d = s->ndim - 1; d >= 0; d--) {
        if (++at[d] < box->hi[d])
            return true;
        at[d] = box->lo[d];
    }
    return false;
}

/* Sum up the cells of a box that are not in `but`. */
static pyri_summary
sum_of(const scene *s, const pyri_box *box, const pyri_box *but)
{
    pyri_summary out;
    uint64_t at[PYR_MAX_DIMS];
    pyri_summary_init(&out);
    if (pyri_box_empty(s->ndim, box))
        return out;
    memcpy(at, box->lo, sizeof at);
    do {
        pyri_box one = {.lo = {0}};
        for (int d = 0; d < s->ndim; d++)
            one.hi[d] = (one.lo[d] = at[d]) + 1;
        if (!but || !pyri_box_contains(s->ndim, but, &one))
            pyri_summary_add_same(&out, s->type, 0, s->cells[place_of(s, at)],
                                  1);
    } while (next(s, box, at));
    return out;
}

static void
begin_scene(scene *s, uint64_t seed)
{
    uint64_t cells = 1;
    *s = (scene){.r = rng_of(seed)};
    s->type = (pyr_type)rng_below(&s->r, 10);
    s->ndim = 1 + (int)rng_below(&s->r, 4);
    for (int d = 0; d < s->ndim; d++) {
        uint64_t most = s->ndim == 1 ? 300 : s->ndim == 2 ? 40 : 8;
        uint64_t extent = 1 + rng_below(&s->r, most);
        s->chunk.lo[d] = rng_below(&s->r, 3) * 1000;
        s->chunk.hi[d] = s->chunk.lo[d] + extent;
        cells *= extent;
    }
    CHECK(cells <= CELLS);
    for (uint64_t i = 0; i < cells; i++)
        s->cells[i] = random_cell(s);
}

static pyri_box
random_box(scene *s)
{
    pyri_box box = {.lo = {0}};
    for (int d = 0; d < s->ndim; d++) {
        uint64_t extent = s->chunk.hi[d] - s->chunk.lo[d];
        box.lo[d] = s->chunk.lo[d] + rng_below(&s->r, extent);
        box.hi[d] = box.lo[d] + 1 +
                    rng_below(&s->r, s->chunk.hi[d] - box.lo[d]);
    }
    return box;
}

static void
look_at_all(scene *s)
{
    s->known.n = pyri_regions_of(s->ndim, &s->chunk);
    for (int i = 0; i < s->known.n; i++) {
        pyri_box region;
        pyri_region_box(s->ndim, &s->chunk, i, &region);
        pyri_summary sum = sum_of(s, &region, NULL);
        pyri_region_set(&s->known, i, s->type, &sum);
    }
}

static void
check_regions(const scene *s, const pyri_box *but)
{
    for (int i = 0; i < s->known.n; i++) {
        pyri_box region;
        pyri_region_box(s->ndim, &s->chunk, i, &region);
        pyri_summary sum = sum_of(s, &region, but);
        CHECK(!pyri_region_differs(&s->known, i, s->type, &sum));
    }
}

static void
regions_divide_a_chunk(void)
{
    uint64_t seed = test_seed();
    for (uint64_t k = 0; k < 300; k++) {
        scene s;
        begin_scene(&s, seed + k);
        int n = pyri_regions_of(s.ndim, &s.chunk);
        uint64_t cells = 0;
        CHECK(n >= 1 && n <= PYRI_REGIONS);
        for (int i = 0; i < n; i++) {
            pyri_box one, other;
            pyri_region_box(s.ndim, &s.chunk, i, &one);
            if (pyri_box_empty(s.ndim, &one))
                continue;
            CHECK(pyri_box_contains(s.ndim, &s.chunk, &one));
            cells += pyri_box_cells(s.ndim, &one);
            for (int j = 0; j < i; j++) {
                pyri_region_box(s.ndim, &s.chunk, j, &other);
                CHECK(pyri_box_empty(s.ndim, &other) ||
                      !pyri_box_overlaps(s.ndim, &one, &other));
            }
        }
        CHECK(cells == pyri_box_cells(s.ndim, &s.chunk));
    }
}

static void
write_cells(scene *s, const pyri_box *box)
{
    uint64_t at[PYR_MAX_DIMS];
    memcpy(at, box->lo, sizeof at);
    do
        s->cells[place_of(s, at)] = random_cell(s);
    while (next(s, box, at));
}

/* What is known is never wrong, before, between and after; and some of it is
 * still known exactly. */
static void
what_is_known_stays_true(void)
{
    uint64_t seed = test_seed();
    int exact = 0, bounds = 0;
    for (uint64_t k = 0; k < 200; k++) {
        scene s;
        begin_scene(&s, seed + k);
        look_at_all(&s);
        for (int round = 0; round < 10; round++) {
            pyri_box box = random_box(&s);
            pyri_summary hidden = sum_of(&s, &box, NULL);
            pyri_regions_hide(&s.known, s.ndim, &s.chunk, s.type, &box,
                              &hidden);
            check_regions(&s, &box);
            write_cells(&s, &box);
            pyri_summary own = sum_of(&s, &box, NULL);
            pyri_regions_add(&s.known, s.ndim, &s.chunk, s.type, &box, &own);
            check_regions(&s, NULL);
            exact += __builtin_popcount(s.known.least_is);
            bounds += s.known.n - __builtin_popcount(s.known.least_is);
        }
    }
    CHECK(exact > 1000 && bounds > 1000);
}

/* The way to the least number: look where it may be until it is there. */
static void
the_least_number_is_where_it_is_looked_for(void)
{
    uint64_t seed = test_seed();
    for (uint64_t k = 0; k < 200; k++) {
        scene s;
        pyri_box region;
        bool is;
        int looks = 0, i;
        begin_scene(&s, seed + k);
        look_at_all(&s);
        pyri_box box = random_box(&s);
        pyri_summary hidden = sum_of(&s, &box, NULL);
        pyri_summary rest = sum_of(&s, &s.chunk, &box);
        pyri_regions_hide(&s.known, s.ndim, &s.chunk, s.type, &box, &hidden);
        while (i = pyri_regions_greatest(&s.known, &is), !is) {
            pyri_region_box(s.ndim, &s.chunk, i, &region);
            pyri_summary sum = sum_of(&s, &region, &box);
            pyri_region_set(&s.known, i, s.type, &sum);
            CHECK(++looks <= PYRI_REGIONS);
        }
        if (rest.count > rest.nans)
            CHECK(pyri_cell_of_order(s.type, s.known.greatest[i]) == rest.max);
        while (i = pyri_regions_least(&s.known, &is), !is) {
            pyri_region_box(s.ndim, &s.chunk, i, &region);
            pyri_summary sum = sum_of(&s, &region, &box);
            pyri_region_set(&s.known, i, s.type, &sum);
            CHECK(++looks <= PYRI_REGIONS);
        }
        if (rest.count > rest.nans)
            CHECK(pyri_cell_of_order(s.type, s.known.least[i]) == rest.min);
    }
}

static void
orders_are_those_of_cells(void)
{
    const double in_order[] = {-INFINITY, -1e300, -1.5, -0x1p-1074, -0.0,
                               0.0,       0x1p-1074, 2, INFINITY};
    uint64_t last = 0;
    for (size_t i = 0; i < sizeof in_order / sizeof in_order[0]; i++) {
        uint64_t bits;
        memcpy(&bits, &in_order[i], sizeof bits);
        uint64_t order = pyri_cell_order(PYR_F64, bits);
        CHECK(order > last && pyri_cell_of_order(PYR_F64, order) == bits);
        last = order;
    }
    for (uint64_t bits = 0; bits < 256; bits++) {
        CHECK(pyri_cell_order(PYR_U8, bits) == bits);
        CHECK(pyri_cell_order(PYR_I8, bits) == (bits ^ 128));
        CHECK(pyri_cell_of_order(PYR_I8, bits ^ 128) == bits);
    }
}

static void
the_stored_form_is_refused_if_it_is_none(void)
{
    uint64_t seed = test_seed();
    for (uint64_t k = 0; k < 100; k++) {
        scene s;
        uint8_t bytes[PYRI_REGIONS_BYTES];
        pyri_regions again;
        begin_scene(&s, seed + k);
        look_at_all(&s);
        int n = s.known.n;
        size_t size = pyri_regions_encode(&s.known, s.type, bytes);
        CHECK(size > 0 && size <= sizeof bytes);
        OK(pyri_regions_decode(&again, s.type, n, (pyri_bytes){bytes, size}));
        CHECK(again.n == n && again.least_is == s.known.least_is &&
              again.greatest_is == s.known.greatest_is &&
              memcmp(again.least, s.known.least,
                     (size_t)n * sizeof again.least[0]) == 0);
        FAILS(PYR_ECORRUPT, pyri_regions_decode(&again, s.type, n,
                                        (pyri_bytes){bytes, size - 1}));
        CHECK(again.n == 0);
        if (!pyri_type_is_float(s.type))
            continue;
        pyri_cell_store(s.type, bytes + 4, 1); /* the order of a NaN */
        FAILS(PYR_ECORRUPT, pyri_regions_decode(&again, s.type, n,
                                        (pyri_bytes){bytes, size}));
    }
    uint8_t bytes[PYRI_REGIONS_BYTES];
    CHECK(pyri_regions_encode(&(pyri_regions){0}, PYR_U8, bytes) == 0);
}

TESTS(T(regions_divide_a_chunk), T(what_is_known_stays_true),
      T(the_least_number_is_where_it_is_looked_for),
      T(orders_are_those_of_cells),
      T(the_stored_form_is_refused_if_it_is_none))
