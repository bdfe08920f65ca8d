/*
 * compute/compute_test.c - computed versions against a model: every version is
 * kept as plain cells, functions are evaluated by another evaluator.
 */
#include "compute/functions.h"
#include "support/tmp_store.h"

#include <pyramid/pyramid.h>

enum { MAX_VERSIONS = 24, MAX_CELLS = 4096 };

/* --- the model ------------------------------------------------------------ */

typedef struct model_version {
    uint64_t shape[PYR_MAX_DIMS];
    uint64_t *cells; /* bits, row-major */
} model_version;

static model_version past[MAX_VERSIONS];
static pyr_version newest;
static uint64_t fill;
static pyr_store *store;
static pyr_array *array;

static uint64_t
count(const uint64_t *shape)
{
    uint64_t n = 1;
    for (int d = 0; d < ndim; d++)
        n *= shape[d];
    return n;
}

/* A cell of a version; fill outside its shape. */
static uint64_t
model_cell(const model_version *m, const uint64_t *at)
{
    uint64_t i = 0;
    for (int d = 0; d < ndim; d++) {
        if (at[d] >= m->shape[d])
            return fill;
        i = i * m->shape[d] + at[d];
    }
    return m->cells[i];
}

static void
next_place(const uint64_t *lo, const uint64_t *size, uint64_t *at)
{
    for (int d = ndim - 1; d >= 0; d--) {
        if (++at[d] < lo[d] + size[d])
            return;
        at[d] = lo[d];
    }
}

/* The version after the newest one: same cells, maybe another shape. */
static model_version *
model_next(const uint64_t *shape)
{
    static const uint64_t zero[PYR_MAX_DIMS];
    model_version *from = &past[newest], *to = &past[++newest];
    uint64_t at[PYR_MAX_DIMS] = {0}, n = count(shape);
    memcpy(to->shape, shape, sizeof to->shape);
    to->cells = malloc((n + 1) * sizeof *to->cells);
    REQUIRE(to->cells);
    for (uint64_t i = 0; i < n; i++, next_place(zero, shape, at))
        to->cells[i] = model_cell(from, at);
    return to;
}

static void
check_version(pyr_version v)
{
    static uint8_t buf[8 * MAX_CELLS];
    static const uint64_t zero[PYR_MAX_DIMS];
    const model_version *m = &past[v];
    size_t width = pyri_type_size(cell_type);
    uint64_t n = count(m->shape), wrong = 0;
    OK(pyr_read(array, v, zero, m->shape, buf));
    for (uint64_t i = 0; i < n; i++) {
        uint64_t got = pyri_cell_load(cell_type, buf + i * width);
        if (!same_bits(cell_type, got, m->cells[i]) && wrong++ == 0)
            CHECK_NOTE("version %d, cell %d: %llx, not %llx", (int)v, (int)i,
                       (unsigned long long)got,
                       (unsigned long long)m->cells[i]);
    }
}

/* --- what happens --------------------------------------------------------- */

static void
random_box(const uint64_t *within, uint64_t *lo, uint64_t *size)
{
    for (int d = 0; d < ndim; d++) {
        lo[d] = within[d] ? pick(within[d]) : 0;
        size[d] = within[d] ? 1 + pick(within[d] - lo[d]) : 0;
        if (rng_once_in(&dice, 3)) {
            lo[d] = 0;
            size[d] = within[d];
        }
    }
}

static void
do_write(void)
{
    static uint8_t buf[8 * MAX_CELLS];
    uint64_t lo[PYR_MAX_DIMS] = {0}, size[PYR_MAX_DIMS] = {0},
             at[PYR_MAX_DIMS];
    size_t width = pyri_type_size(cell_type);
    random_box(past[newest].shape, lo, size);
    uint64_t n = count(size), same = random_bits();
    bool constant = rng_once_in(&dice, 3);
    model_version *m = model_next(past[newest].shape);
    memcpy(at, lo, sizeof at);
    for (uint64_t i = 0; i < n; i++, next_place(lo, size, at)) {
        uint64_t bits = constant ? same : random_bits(), k = 0;
        pyri_cell_store(cell_type, buf + i * width, bits);
        for (int d = 0; d < ndim; d++)
            k = k * m->shape[d] + at[d];
        m->cells[k] = bits;
    }
    OK(pyr_write(array, lo, size, buf, NULL));
}

static void
do_resize(void)
{
    uint64_t shape[PYR_MAX_DIMS] = {0}, most = ndim == 1 ? 400 : ndim == 2 ? 40
                                                                           : 12;
    for (int d = 0; d < ndim; d++)
        shape[d] = 1 + pick(most);
    model_next(shape);
    OK(pyr_resize(array, shape, NULL));
}

static void
do_compute(void)
{
    uint64_t lo[PYR_MAX_DIMS] = {0}, size[PYR_MAX_DIMS] = {0},
             within[PYR_MAX_DIMS] = {0}, at[PYR_MAX_DIMS];
    pyr_version made = 0;
    for (int k = 0; k <= VERSIONS; k++)
        sources[k] = pick(newest + 1);
    if (rng_once_in(&dice, 2))
        sources[0] = newest;
    for (int d = 0; d < ndim; d++) {
        uint64_t a = past[sources[0]].shape[d], b = past[newest].shape[d];
        within[d] = a < b ? a : b;
    }
    random_box(within, lo, size);
    const tree *t = random_function();
    OK(pyr_compute(array, sources[0], lo, size, text, &made));
    model_version *m = model_next(past[newest].shape);
    CHECK(made == newest);
    memcpy(at, lo, sizeof at);
    for (uint64_t i = 0, n = count(size); i < n; i++, next_place(lo, size, at)) {
        place p;
        uint64_t k = 0;
        memcpy(p.at, at, sizeof p.at);
        for (int s = 0; s <= VERSIONS; s++)
            p.cell[s] = cell_val(cell_type, model_cell(&past[sources[s]], at));
        for (int d = 0; d < ndim; d++)
            k = k * m->shape[d] + at[d];
        m->cells[k] = val_bits(cell_type, eval(t, &p));
    }
}

static void
begin(void)
{
    uint64_t chunk[PYR_MAX_DIMS] = {0}, shape[PYR_MAX_DIMS] = {0};
    uint8_t cell[8] = {0};
    cell_type = (pyr_type)pick(10);
    ndim = 1 + (int)pick(3);
    uint64_t most = ndim == 1 ? 400 : ndim == 2 ? 40 : 12;
    bool small = rng_once_in(&dice, 3);
    for (int d = 0; d < ndim; d++) {
        shape[d] = 1 + pick(most);
        chunk[d] = small ? 1 : 1 + pick(most);
    }
    fill = rng_once_in(&dice, 2) ? 0 : random_bits();
    pyri_cell_store(cell_type, cell, fill);
    newest = 0;
    memcpy(past[0].shape, shape, sizeof shape);
    uint64_t n = count(shape);
    past[0].cells = malloc((n + 1) * sizeof *past[0].cells);
    REQUIRE(past[0].cells);
    for (uint64_t i = 0; i < n; i++)
        past[0].cells[i] = fill;
    pyr_spec spec = {.ndim = ndim, .shape = shape, .chunk = chunk,
                     .type = cell_type, .fill = cell,
                     .codec = rng_once_in(&dice, 4) ? PYR_CODEC_LZ4
                                                    : PYR_CODEC_NONE};
    OK(pyr_create(store, "t", &spec, &array));
}

static void
computed_versions_are_as_another_evaluator_says(void)
{
    uint64_t seed = test_seed();
    int rounds = (int)by_scale(60, 150, 3000);
    for (int round = 0; round < rounds; round++) {
        char url[4096];
        int before = check_failures;
        dice = rng_of(seed + (uint64_t)round);
        snprintf(url, sizeof url, "%s", tmp_quick_store("compute"));
        OK(pyr_open(url, PYR_OPEN_CREATE, &store));
        begin();
        for (int i = 0; i < 16 && check_failures == before; i++) {
            uint64_t draw = pick(10);
            if (draw < 4)
                do_write();
            else if (draw < 5)
                do_resize();
            else
                do_compute();
            check_version(newest);
        }
        for (pyr_version v = 0; v <= newest && check_failures == before; v++)
            check_version(v);
        if (check_failures > before)
            printf("# round %d, %s, %d axes: %s of version %d\n", round,
                   pyri_type_name(cell_type), ndim, text, (int)sources[0]);
        for (pyr_version v = 0; v <= newest; v++)
            free(past[v].cells);
        pyr_array_close(array);
        pyr_close(store);
    }
}

TESTS(T(computed_versions_are_as_another_evaluator_says))
