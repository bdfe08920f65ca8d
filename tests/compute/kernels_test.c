/*
 * compute/kernels_test.c - kernels called through the public interface: what
 * they make, at edges and across chunks; and what happens if one is missing
 * or misbehaves.
 */
#include "api/fixture.h"
#include "compute/kernels.h"
#include "nd/nd.h"

enum { MOST = 4096 };

static pyr_array *array;
static rng dice;

static void
open_store(const char *kernels)
{
    snprintf(url, sizeof url, "%s", tmp_fresh("kernels"));
    OK(pyr_open_with(url, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS,
                                          .kernels = kernels},
                     &store));
}

static void
finish(void)
{
    pyr_array_close(array);
    array = NULL;
    tear_down();
}

/* --- another way to do it ------------------------------------------------- */

typedef struct picture {
    int ndim;
    pyr_type type;
    uint64_t shape[3], fill;
    uint64_t cells[MOST]; /* bits */
} picture;

static uint64_t
count(const picture *p)
{
    uint64_t n = 1;
    for (int d = 0; d < p->ndim; d++)
        n *= p->shape[d];
    return n;
}

/* The cell at a place that may lie outside. */
static uint64_t
cell_at(const picture *p, const int64_t *place, char edge)
{
    uint64_t i = 0;
    for (int d = 0; d < p->ndim; d++) {
        int64_t at = place[d], n = (int64_t)p->shape[d];
        if ((at < 0 || at >= n) && edge == 'f')
            return p->fill;
        while (at < 0 || at >= n) {
            if (edge == 'c')
                at = at < 0 ? 0 : n - 1;
            else
                at = at < 0 ? -1 - at : 2 * n - 1 - at;
        }
        i = i * p->shape[d] + (uint64_t)at;
    }
    return p->cells[i];
}

static double
real_of(pyr_type type, uint64_t bits)
{
    uint8_t bytes[8];
    float f;
    double v;
    pyri_cell_store(type, bytes, bits);
    memcpy(&f, bytes, sizeof f);
    memcpy(&v, bytes, sizeof v);
    return type == PYR_F32 ? (double)f : v;
}

/* What kernels/around.c makes; of small whole numbers, so that reals are
 * exact. */
static uint64_t
around(const picture *p, uint64_t index, char edge)
{
    int64_t place[3] = {0};
    uint64_t whole = 0;
    double real = 0;
    uint8_t bytes[8] = {0};
    for (int d = p->ndim; d-- > 0; index /= p->shape[d])
        place[d] = (int64_t)(index % p->shape[d]);
    for (int d = 0; d < p->ndim; d++)
        for (int k = -2; k <= 2; k++) {
            place[d] += k;
            uint64_t bits = cell_at(p, place, edge);
            place[d] -= k;
            whole += bits * (uint64_t)(k + 3 + 5 * d);
            real += real_of(p->type, bits) * (k + 3 + 5 * d);
        }
    if (!pyri_type_is_float(p->type)) {
        memcpy(bytes, &whole, sizeof bytes);
    } else if (p->type == PYR_F32) {
        float f = (float)real;
        memcpy(bytes, &f, sizeof f);
    } else {
        memcpy(bytes, &real, sizeof real);
    }
    return pyri_cell_load(p->type, bytes);
}

static uint64_t
small_number(pyr_type type)
{
    uint8_t bytes[8] = {0};
    uint64_t n = rng_below(&dice, 100);
    float f = (float)n;
    double v = (double)n;
    memcpy(bytes, type == PYR_F32   ? (void *)&f
                  : type == PYR_F64 ? (void *)&v
                                    : (void *)&n,
           pyri_type_size(type));
    return pyri_cell_load(type, bytes);
}

/* --- what they make ------------------------------------------------------- */

static void
write_picture(picture *p)
{
    uint8_t buf[8 * MOST], fill[8];
    uint64_t chunk[3];
    size_t width = pyri_type_size(p->type);
    p->fill = small_number(p->type);
    for (int d = 0; d < p->ndim; d++) {
        p->shape[d] = rng_from(&dice, 1, p->ndim == 3 ? 12 : 40);
        chunk[d] = rng_from(&dice, 1, 9);
    }
    pyri_cell_store(p->type, fill, p->fill);
    OK(pyr_create(store, "t",
                  &(pyr_spec){.ndim = p->ndim, .shape = p->shape,
                              .chunk = chunk, .type = p->type, .fill = fill},
                  &array));
    uint64_t n = count(p), part[3] = {0};
    bool constant = rng_once_in(&dice, 4); /* in one value, but its last rows */
    memcpy(part, p->shape, sizeof part);
    part[0] = rng_from(&dice, 0, p->shape[0]);
    uint64_t row = n / p->shape[0], same = small_number(p->type);
    for (uint64_t i = 0; i < n; i++) {
        bool written = i < part[0] * row;
        p->cells[i] = !written ? p->fill
                      : constant ? same
                                 : small_number(p->type);
        pyri_cell_store(p->type, buf + i * width, p->cells[i]);
    }
    if (part[0])
        OK(pyr_write(array, zero, part, buf, NULL));
}

static void
check_picture(const picture *p, char edge, const char *name)
{
    uint8_t buf[8 * MOST];
    uint64_t lo[3] = {0}, size[3] = {0}, at[3] = {0};
    size_t width = pyri_type_size(p->type);
    pyr_version source, made;
    OK(pyr_latest(array, &source));
    for (int d = 0; d < p->ndim; d++) {
        lo[d] = rng_below(&dice, p->shape[d]);
        size[d] = rng_from(&dice, 1, p->shape[d] - lo[d]);
    }
    OK(pyr_compute(array, source, lo, size, name, &made));
    OK(pyr_read(array, made, zero, p->shape, buf));
    uint64_t n = count(p), wrong = 0;
    for (uint64_t i = 0; i < n; i++) {
        bool inside = true;
        uint64_t rest = i;
        for (int d = p->ndim; d-- > 0; rest /= p->shape[d]) {
            at[d] = rest % p->shape[d];
            inside &= at[d] >= lo[d] && at[d] < lo[d] + size[d];
        }
        uint64_t want = inside ? around(p, i, edge) : p->cells[i];
        wrong += pyri_cell_load(p->type, buf + i * width) != want;
    }
    if (wrong)
        CHECK_NOTE("%s of %s in %d dimensions: %d cells are wrong", name,
                   pyri_type_name(p->type), p->ndim, (int)wrong);
}

static void
halos_cross_chunks_and_edges(void)
{
    static picture p;
    dice = rng_of(test_seed());
    for (uint64_t i = 0; i < by_scale(15, 50, 1500); i++) {
        p.type = (pyr_type)rng_below(&dice, 10);
        p.ndim = (int)rng_from(&dice, 1, 3);
        open_store(kernels_dir());
        write_picture(&p);
        check_picture(&p, 'c', "clamped()");
        finish();
        open_store(kernels_dir());
        write_picture(&p);
        check_picture(&p, 'm', "mirrored()");
        finish();
        open_store(kernels_dir());
        write_picture(&p);
        check_picture(&p, 'f', "filled()");
        finish();
    }
}

static void
make_i32(uint64_t n, uint64_t chunk)
{
    int32_t cells[256];
    OK(pyr_create(store, "t",
                  &(pyr_spec){.ndim = 1, .shape = &n, .chunk = &chunk,
                              .type = PYR_I32}, &array));
    REQUIRE(n <= 256);
    for (uint64_t i = 0; i < n; i++)
        cells[i] = (int32_t)i;
    OK(pyr_write(array, zero, &n, cells, NULL));
}

static void
kernels_are_operands_like_any_other(void)
{
    uint64_t n = 100;
    int32_t cells[100];
    pyr_value v;
    open_store(kernels_dir());
    make_i32(n, 7);
    OK(pyr_compute(array, 1, zero, &n,
                   "gain(factor=2.5) * 2 - x@0 + gain(factor=0, offset=3) + "
                   "place(base=1000, step=0)",
                   NULL));
    OK(pyr_read(array, 2, zero, &n, cells));
    for (int i = 0; i < 100; i++)
        CHECK(cells[i] == (5 * i + 1) / 2 * 2 + 1003);
    OK(pyr_reduce(array, 1, zero, &n, "sum(gain(factor=3) - x)", &v));
    CHECK(v.kind == PYR_VALUE_INTEGER && v.low == 2 * 4950);
    OK(pyr_reduce(array, 1, zero, &n, "argmax(place(base=0, step=-1) + 3 * x)",
                  &v));
    CHECK(v.at[0] == 99);
    OK(pyr_compute(array, 1, (uint64_t[1]){10}, (uint64_t[1]){30},
                   "place(base=5)", NULL));
    OK(pyr_read(array, 3, (uint64_t[1]){10}, (uint64_t[1]){30}, cells));
    for (int i = 0; i < 30; i++)
        CHECK(cells[i] == 5 + 10 + i);
    OK(pyr_compute(array, 1, zero, zero, "place(base=5)", NULL));
    finish();
}

static int
check_note(void *ctx, const pyr_change *c)
{
    CHECK(c->source == 1);
    if (strcmp(c->expression, ctx) != 0)
        CHECK_NOTE("%s", c->expression);
    return 0;
}

static void
history_tells_kernels_and_their_versions(void)
{
    static char said[] = "x - clamped() + gain(factor=0.5)"
                         "  # clamped 2.1-test, gain 1.0";
    uint64_t n = 20;
    open_store(kernels_dir());
    make_i32(n, 7);
    OK(pyr_compute(array, 1, zero, &n,
                   "x-clamped()+(gain( factor = .5 )) # anything", NULL));
    OK(pyr_history(array, 2, 2, check_note, said));
    OK(pyr_compute(array, 1, zero, &n, said, NULL)); /* as it stands */
    OK(pyr_history(array, 3, 3, check_note, said));
    finish();
}

static void
an_ocean_of_zeros_is_filtered_at_once(void)
{
    uint64_t shape[2] = {1000000000, 1000000}, at[2] = {123456789, 3};
    uint64_t size[2] = {4, 4};
    float cells[16] = {[5] = 100, [10] = 9};
    pyr_version made;
    pyr_value v;
    open_store(kernels_dir());
    OK(pyr_create(store, "t",
                  &(pyr_spec){.ndim = 2, .shape = shape, .type = PYR_F32},
                  &array));
    OK(pyr_write(array, at, size, cells, NULL));
    OK(pyr_compute(array, 1, zero, shape, "gain(factor=2)", &made));
    OK(pyr_read(array, made, at, size, cells));
    CHECK(cells[5] == 200 && cells[10] == 18 && cells[0] == 0);
    OK(pyr_compute(array, 1, zero, shape, "median3()", &made));
    OK(pyr_read(array, made, at, size, cells));
    for (int i = 0; i < 16; i++)
        CHECK(cells[i] == 0);
    OK(pyr_reduce(array, 1, zero, shape, "max(x - median3())", &v));
    CHECK(v.real == 100);
    OK(pyr_reduce(array, 1, zero, shape, "count(laplacian() != 0)", &v));
    CHECK(v.low == 8);
    OK(pyr_verify(store, &(pyr_verify_spec){.deep = 1}, NULL));
    finish();
}

/* --- what goes wrong ------------------------------------------------------ */

static void
refuse(int code, const char *function, const char *says)
{
    uint64_t n = 20;
    pyr_version made = 77;
    pyr_value v;
    char reduce[200];
    FAILS(code, pyr_compute(array, 1, zero, &n, function, &made));
    if (!strstr(pyr_errmsg(), says))
        CHECK_NOTE("%s: %s", function, pyr_errmsg());
    snprintf(reduce, sizeof reduce, "max(%s)", function);
    FAILS(code, pyr_reduce(array, 1, zero, &n, reduce, &v));
    CHECK(made == 77);
    OK(pyr_latest(array, &made));
    CHECK(made == 1);
}

static void
a_kernel_that_misbehaves_is_named_and_publishes_nothing(void)
{
    open_store(kernels_dir());
    make_i32(20, 7);
    refuse(PYR_EKERNEL, "nowhere()", "'nowhere'");
    refuse(PYR_EKERNEL, "bad_abi()", "interface 77");
    refuse(PYR_EKERNEL, "bad_halo()", "'bad_halo'");
    refuse(PYR_EKERNEL, "bad_name()", "another kernel");
    refuse(PYR_EKERNEL, "bad_symbol()", "'pyramid_kernel'");
    refuse(PYR_EKERNEL, "bad_types()", "no type");
    refuse(PYR_EKERNEL, "bad_version()", "no version");
    refuse(PYR_EKERNEL, "bad_fails()", "'bad_fails' failed with 7: 13 is bad");
    refuse(PYR_EKERNEL, "median3()", "1 dimension");
    refuse(PYR_EKERNEL, "laplacian()", "cells of i32");
    refuse(PYR_EINVAL, "gain(faktor=2)", "'faktor'; it has factor, offset");
    refuse(PYR_EINVAL, "place()", "'base'");
    refuse(PYR_EINVAL, "place(base=0.5)", "whole");
    refuse(PYR_EINVAL, "place(base=1, step=11)", "from -10 to 10");
    finish();
}

static void
kernels_come_only_from_where_nobody_else_can_write(void)
{
    static char dir[PATH_MAX], file[PATH_MAX + 20];
    snprintf(dir, sizeof dir, "%s", tmp_path("shared"));
    REQUIRE(mkdir(dir, 0755) == 0);
    copy_kernels(kernels_dir(), dir);
    snprintf(file, sizeof file, "%s/gain.so", dir);
    open_store(dir);
    make_i32(20, 7);
    REQUIRE(chmod(dir, 0777) == 0);
    refuse(PYR_EKERNEL, "gain()", "written to by others");
    REQUIRE(chmod(dir, 0755) == 0 && chmod(file, 0664) == 0);
    refuse(PYR_EKERNEL, "gain()", "written to by others");
    if (geteuid() == 0) { /* else it cannot be given away */
        REQUIRE(chmod(file, 0644) == 0 && chown(file, 12345, 0) == 0);
        refuse(PYR_EKERNEL, "gain()", "another user");
        REQUIRE(chown(file, 0, 0) == 0);
    }
    REQUIRE(chmod(file, 0644) == 0);
    OK(pyr_compute(array, 1, zero, (uint64_t[1]){20}, "gain()", NULL));
    finish();
    open_store("");
    make_i32(20, 7);
    refuse(PYR_EKERNEL, "gain()", "off");
    finish();
    FAILS(PYR_EINVAL,
          pyr_open_with(url, PYR_OPEN_CREATE,
                        &(pyr_store_options){.kernels = "kernels"}, &store));
}

TESTS(T(halos_cross_chunks_and_edges), T(kernels_are_operands_like_any_other),
      T(history_tells_kernels_and_their_versions),
      T(an_ocean_of_zeros_is_filtered_at_once),
      T(a_kernel_that_misbehaves_is_named_and_publishes_nothing),
      T(kernels_come_only_from_where_nobody_else_can_write))
