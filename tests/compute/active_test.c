/*
 * compute/active_test.c - what computed versions promise: provenance, space,
 * bounds, errors.
 */
#include "api/fixture.h"

static pyr_array *array;

static void
make(pyr_type type, uint64_t n, uint64_t chunk)
{
    OK(pyr_create(store, "t",
                  &(pyr_spec){.ndim = 1, .shape = &n, .chunk = &chunk,
                              .type = type}, &array));
}

/* 0, 1, 2, ... */
static void
ramp(uint64_t n)
{
    int32_t cells[256];
    REQUIRE(n <= 256);
    for (uint64_t i = 0; i < n; i++)
        cells[i] = (int32_t)i;
    OK(pyr_write(array, zero, &n, cells, NULL));
}

static void
finish(void)
{
    pyr_array_close(array);
    tear_down();
}

static int
check_change(void *ctx, const pyr_change *c)
{
    CHECK(c->kind == PYR_KIND_COMPUTE && c->source == 1);
    CHECK(strcmp(c->expression, "x * 2 + 1") == 0);
    CHECK(c->nparts == 1 && c->parts[0].offset[0] == 5 &&
          c->parts[0].size[0] == 10);
    return 0;
}

static void
a_computed_version_knows_where_it_came_from(void)
{
    pyr_version made;
    int32_t cells[20];
    set_up();
    make(PYR_I32, 20, 8);
    ramp(20);
    OK(pyr_write(array, zero, (uint64_t[1]){20}, (int32_t[20]){0}, NULL));
    OK(pyr_compute(array, 1, (uint64_t[1]){5}, (uint64_t[1]){10}, "(x*2)+1",
                   &made));
    CHECK(made == 3);
    OK(pyr_history(array, 3, 3, check_change, NULL));
    OK(pyr_read(array, 3, zero, (uint64_t[1]){20}, cells));
    for (int i = 0; i < 20; i++)
        CHECK(cells[i] == (i >= 5 && i < 15 ? 2 * i + 1 : 0));
    OK(pyr_verify(store, &(pyr_verify_spec){.deep = 1}, NULL));
    finish();
}

static void
an_empty_box_makes_a_version_that_changes_nothing(void)
{
    pyr_version made;
    set_up();
    make(PYR_I32, 20, 8);
    OK(pyr_compute(array, 0, zero, zero, "x + 1", &made));
    CHECK(made == 1);
    OK(pyr_compute(array, 0, zero, (uint64_t[1]){1}, "x + 1", NULL));
    finish();
}

static void
what_makes_no_sense_is_refused_with_a_caret(void)
{
    pyr_version made = 77;
    pyr_value v;
    uint64_t all[1] = {20}, more[1] = {21};
    set_up();
    make(PYR_I32, 20, 8);
    FAILS(PYR_EINVAL, pyr_compute(array, 0, zero, all, "x + y * 2", &made));
    CHECK(strstr(pyr_errmsg(), "column 5"));
    CHECK(strstr(pyr_errmsg(), "\n        ^"));
    FAILS(PYR_EINVAL, pyr_compute(array, 0, zero, all, "mean(x)", &made));
    FAILS(PYR_EINVAL, pyr_compute(array, 0, zero, all, "x + i1", &made));
    FAILS(PYR_EINVAL, pyr_compute(array, 0, zero, all, "", &made));
    FAILS(PYR_EINVAL, pyr_compute(array, 0, zero, all, NULL, &made));
    FAILS(PYR_EINVAL, pyr_compute(array, 0, NULL, all, "x", &made));
    FAILS(PYR_EINVAL, pyr_compute(NULL, 0, zero, all, "x", &made));
    FAILS(PYR_EKERNEL, pyr_compute(array, 0, zero, all, "blur()", &made));
    FAILS(PYR_EBOUNDS, pyr_compute(array, 0, zero, more, "x", &made));
    FAILS(PYR_EBOUNDS, pyr_compute(array, 0, (uint64_t[1]){UINT64_MAX}, all,
                                   "x", &made));
    FAILS(PYR_ENOVERSION, pyr_compute(array, 1, zero, all, "x", &made));
    FAILS(PYR_ENOVERSION, pyr_compute(array, 0, zero, all, "x@1", &made));
    FAILS(PYR_EINVAL, pyr_reduce(array, 0, zero, all, "x + 1", &v));
    FAILS(PYR_EINVAL, pyr_reduce(array, 0, zero, all, "mean(x", &v));
    FAILS(PYR_EINVAL, pyr_reduce(array, 0, zero, all, "mean(x)", NULL));
    FAILS(PYR_EBOUNDS, pyr_reduce(array, 0, zero, more, "mean(x)", &v));
    FAILS(PYR_ENOVERSION, pyr_reduce(array, 1, zero, all, "mean(x)", &v));
    CHECK(made == 77);
    OK(pyr_latest(array, &made));
    CHECK(made == 0);
    finish();
}

static void
a_store_for_reading_only_computes_nothing(void)
{
    pyr_store *other;
    pyr_array *a;
    pyr_value v;
    set_up();
    make(PYR_I32, 20, 8);
    OK(pyr_open(url, PYR_OPEN_READONLY, &other));
    OK(pyr_array_open(other, "t", &a));
    FAILS(PYR_EREADONLY, pyr_compute(a, 0, zero, (uint64_t[1]){20}, "x", NULL));
    OK(pyr_reduce(a, 0, zero, (uint64_t[1]){20}, "count(x == 0)", &v));
    CHECK(v.low == 20);
    pyr_array_close(a);
    pyr_close(other);
    finish();
}

static void
a_forgotten_source_is_no_source(void)
{
    uint64_t all[1] = {20};
    set_up();
    make(PYR_I32, 20, 8);
    ramp(20);
    ramp(20);
    OK(pyr_forget(array, 1, 1, 1, 0, NULL));
    FAILS(PYR_ENOVERSION, pyr_compute(array, 1, zero, all, "x", NULL));
    FAILS(PYR_ENOVERSION, pyr_compute(array, 2, zero, all, "x + x@1", NULL));
    OK(pyr_compute(array, 2, zero, all, "x", NULL));
    finish();
}

/* x must be there; x@V outside V's shape is fill. */
static void
sources_of_another_shape_are_fill_outside_it(void)
{
    int32_t cells[20];
    set_up();
    make(PYR_I32, 10, 4);
    ramp(10);
    OK(pyr_resize(array, (uint64_t[1]){20}, NULL));
    FAILS(PYR_EBOUNDS,
          pyr_compute(array, 1, zero, (uint64_t[1]){11}, "x", NULL));
    OK(pyr_compute(array, 2, zero, (uint64_t[1]){20}, "x@1 * 2 + 3", NULL));
    OK(pyr_read(array, 3, zero, (uint64_t[1]){20}, cells));
    for (int i = 0; i < 20; i++)
        CHECK(cells[i] == (i < 10 ? 2 * i : 0) + 3);
    OK(pyr_resize(array, (uint64_t[1]){6}, NULL));
    FAILS(PYR_EBOUNDS,
          pyr_compute(array, 3, zero, (uint64_t[1]){7}, "x", NULL));
    finish();
}

static void
constants_take_no_space(void)
{
    uint64_t n = 1 << 20, data;
    double cell;
    set_up();
    make(PYR_F64, n, 1 << 13);
    OK(pyr_compute(array, 0, zero, &n, "x + 7", NULL));
    data = data_bytes();
    OK(pyr_compute(array, 1, (uint64_t[1]){5}, (uint64_t[1]){n - 9},
                   "x * 2 - x@0", NULL));
    CHECK(data_bytes() == data);
    OK(pyr_read(array, 2, (uint64_t[1]){5}, (uint64_t[1]){1}, &cell));
    CHECK(cell == 14);
    OK(pyr_read(array, 2, (uint64_t[1]){4}, (uint64_t[1]){1}, &cell));
    CHECK(cell == 7);
    OK(pyr_verify(store, &(pyr_verify_spec){.deep = 1}, NULL));
    finish();
}

static void
a_huge_array_of_zeros_can_be_doubled(void)
{
    uint64_t shape[2] = {1000000000, 1000000}, metadata;
    float cells[4] = {1, 2, 3, 4};
    pyr_version made;
    set_up();
    OK(pyr_create(store, "t",
                  &(pyr_spec){.ndim = 2, .shape = shape, .type = PYR_F32},
                  &array));
    OK(pyr_write(array, (uint64_t[2]){123456789, 3}, (uint64_t[2]){2, 2}, cells,
                 NULL));
    metadata = metadata_bytes();
    OK(pyr_compute(array, 1, zero, shape, "x * 2", &made));
    CHECK(made == 2 && metadata_bytes() < metadata + (1 << 20));
    OK(pyr_read(array, 2, (uint64_t[2]){123456789, 3}, (uint64_t[2]){2, 2},
                cells));
    CHECK(cells[0] == 2 && cells[3] == 8);
    OK(pyr_compute(array, 1, zero, shape, "x + 1", &made));
    CHECK(made == 3 && metadata_bytes() < metadata + (1 << 20));
    OK(pyr_read(array, 3, (uint64_t[2]){123456789, 2}, (uint64_t[2]){2, 2},
                cells));
    CHECK(cells[0] == 1 && cells[1] == 2);
    FAILS(PYR_EUNSUPPORTED,
          pyr_compute(array, 1, zero, shape, "x + i0", NULL));
    OK(pyr_verify(store, &(pyr_verify_spec){.deep = 1}, NULL));
    finish();
}

TESTS(T(a_computed_version_knows_where_it_came_from),
      T(an_empty_box_makes_a_version_that_changes_nothing),
      T(what_makes_no_sense_is_refused_with_a_caret),
      T(a_store_for_reading_only_computes_nothing),
      T(a_forgotten_source_is_no_source),
      T(sources_of_another_shape_are_fill_outside_it),
      T(constants_take_no_space), T(a_huge_array_of_zeros_can_be_doubled))
