/*
 * api/shapes_test.c - arrays of any size and shape, as users are told.
 */
#include "api/fixture.h"

/* --- huge and strange shapes --------------------------------------------- */

static void
huge_arrays_cost_no_more_than_small_ones(void)
{
    uint64_t shape[3] = {3000000, 2000000, 1000000}; /* 6 * 10^18 cells */
    uint64_t far_corner[3] = {2999997, 1999998, 999996}, size[3] = {3, 2, 4};
    uint64_t across[3] = {2999990, 1999990, 999990}, ten[3] = {10, 10, 10};
    int16_t cells[24], got[1000];
    pyr_array *a;
    pyr_stats s;
    set_up();
    OK(pyr_create(store, "huge",
                  &(pyr_spec){.ndim = 3, .shape = shape, .type = PYR_I16},
                  &a));
    for (int i = 0; i < 24; i++)
        cells[i] = (int16_t)(i - 7);
    OK(pyr_write(a, zero, size, cells, NULL));
    OK(pyr_write(a, far_corner, size, cells, NULL));
    OK(pyr_read(a, PYR_LATEST, across, ten, got));
    for (uint64_t i = 0, n = 0; i < 1000; i++) {
        uint64_t x = i / 100, y = i / 10 % 10, z = i % 10;
        bool in = x >= 7 && y >= 8 && z >= 6;
        CHECK(got[i] == (in ? cells[n] : 0));
        n += in;
    }
    OK(pyr_stat(a, PYR_LATEST, zero, shape, 0, &s));
    CHECK(s.count == 6000000000000000000u && s.chunks_read == 0);
    CHECK(s.not_fill == 46 && s.exact_min.i == -7 && s.exact_max.i == 16);
    CHECK(s.sum == 2 * (23 * 24 / 2 - 7 * 24) && s.nodes_read < 16);
    pyr_version v;
    OK(pyr_last_change(a, PYR_LATEST, zero, shape, &v));
    CHECK(v == 2);
    OK(pyr_last_change(a, PYR_LATEST, zero, ten, &v));
    CHECK(v == 1);
    pyr_array_close(a);
    tear_down();
}

static void
the_largest_array_has_two_to_the_64_less_two_cells(void)
{
    static const struct {
        int ndim;
        uint64_t shape[3];
    } samples[] = {{1, {UINT64_MAX - 1}},
                   {2, {1ull << 32, (1ull << 32) - 1}},
                   {3, {3, 5, (UINT64_MAX - 1) / 15}},
                   {2, {UINT64_MAX - 1, 1}},
                   {2, {1, UINT64_MAX - 1}}};
    uint64_t beyond[1] = {UINT64_MAX};
    pyr_array *a;
    pyr_stats s;
    set_up();
    for (int i = 0; i < 5; i++) {
        int n = samples[i].ndim;
        char name[16];
        uint64_t corner[3], one[3] = {1, 1, 1};
        double cell = 2.5, got = 0;
        snprintf(name, sizeof name, "n%d", i);
        OK(pyr_create(store, name,
                      &(pyr_spec){.ndim = n, .shape = samples[i].shape,
                                  .type = PYR_F64}, &a));
        for (int d = 0; d < n; d++)
            corner[d] = samples[i].shape[d] - 1;
        OK(pyr_write(a, corner, one, &cell, NULL));
        OK(pyr_write(a, zero, one, &cell, NULL));
        OK(pyr_read(a, 1, corner, one, &got));
        CHECK(got == 2.5);
        OK(pyr_read(a, 1, zero, one, &got));
        CHECK(got == 0);
        OK(pyr_stat(a, 2, zero, samples[i].shape, 0, &s));
        CHECK(s.count == model_count(n, samples[i].shape));
        CHECK(s.not_fill == 2 && s.sum == 5 && s.max == 2.5);
        FAILS(PYR_EINVAL, pyr_append(a, 0, UINT64_MAX / 2, &cell, NULL, NULL));
        pyr_array_close(a);
    }
    FAILS(PYR_EINVAL, pyr_create(store, "n", &(pyr_spec){.ndim = 1,
                                                         .shape = beyond},
                                 NULL));
    tear_down();
}

static void
default_chunks_are_equal_sided_and_about_a_mebibyte(void)
{
    set_up();
    for (int n = 1; n <= PYR_MAX_DIMS; n++)
        for (int type = PYR_I8; type <= PYR_F64; type++) {
            uint64_t shape[PYR_MAX_DIMS], low = UINT64_MAX, high = 0;
            uint64_t bytes = model_type_size((pyr_type)type);
            for (int d = 0; d < n; d++)
                shape[d] = (uint64_t)pow(2, 63.0 / n);
            char name[16];
            pyr_array *a;
            pyr_info info;
            snprintf(name, sizeof name, "%d/%d", n, type);
            OK(pyr_create(store, name,
                          &(pyr_spec){.ndim = n, .shape = shape,
                                      .type = (pyr_type)type}, &a));
            OK(pyr_array_info(a, PYR_LATEST, &info));
            for (int d = 0; d < n; d++) {
                low = info.chunk[d] < low ? info.chunk[d] : low;
                high = info.chunk[d] > high ? info.chunk[d] : high;
                bytes *= info.chunk[d];
            }
            if (high > 2 * low || bytes < (1u << (n > 8 ? 15 : 18)) ||
                bytes > (1u << (n > 8 ? 24 : 22)))
                CHECK_NOTE("%d dimensions, type %d: sides from %d to %d, %d "
                           "bytes", n, type, (int)low, (int)high, (int)bytes);
            pyr_array_close(a);
        }
    tear_down();
}

static void
default_chunks_are_clipped_to_the_array(void)
{
    static const uint64_t shape[2] = {10, 1000000}, small[2] = {30, 40};
    pyr_array *a;
    pyr_info info;
    set_up();
    OK(pyr_create(store, "flat",
                  &(pyr_spec){.ndim = 2, .shape = shape, .type = PYR_F64},
                  &a));
    OK(pyr_array_info(a, PYR_LATEST, &info));
    CHECK(info.chunk[0] <= 10 && info.chunk[1] <= 1000000);
    CHECK(info.chunk[0] * info.chunk[1] * 8 <= 4u << 20);
    pyr_array_close(a);
    OK(pyr_create(store, "small",
                  &(pyr_spec){.ndim = 2, .shape = small, .type = PYR_F64},
                  &a));
    OK(pyr_array_info(a, PYR_LATEST, &info));
    CHECK(info.chunk[0] == 30 && info.chunk[1] == 40);
    pyr_array_close(a);
    tear_down();
}

static void
an_extent_may_be_zero_until_a_resize(void)
{
    uint64_t none[2] = {0, 5}, some[2] = {3, 5}, at;
    uint32_t cells[15], got[15], fill = 9;
    pyr_array *a;
    pyr_stats s;
    pyr_version v;
    set_up();
    OK(pyr_create(store, "a",
                  &(pyr_spec){.ndim = 2, .shape = none, .type = PYR_U32,
                              .fill = &fill}, &a));
    OK(pyr_read(a, 0, zero, none, got));
    OK(pyr_stat(a, 0, zero, none, 0, &s));
    CHECK(s.count == 0 && isnan(s.min) && s.sum == 0);
    FAILS(PYR_EBOUNDS, pyr_write(a, zero, some, cells, NULL));
    OK(pyr_resize(a, some, &v));
    CHECK(v == 1);
    OK(pyr_read(a, 1, zero, some, got));
    for (int i = 0; i < 15; i++) {
        CHECK(got[i] == 9);
        cells[i] = (uint32_t)i;
    }
    OK(pyr_write(a, zero, some, cells, NULL));
    OK(pyr_resize(a, none, NULL));
    OK(pyr_append(a, 0, 3, cells, &at, &v));
    CHECK(at == 0 && v == 4);
    OK(pyr_read(a, PYR_LATEST, zero, some, got));
    CHECK(memcmp(got, cells, sizeof got) == 0);
    OK(pyr_resize(a, none, NULL));
    OK(pyr_resize(a, some, NULL));
    OK(pyr_read(a, PYR_LATEST, zero, some, got));
    for (int i = 0; i < 15; i++)
        CHECK(got[i] == 9);
    OK(pyr_read(a, 4, zero, some, got));
    CHECK(memcmp(got, cells, sizeof got) == 0);
    pyr_array_close(a);
    tear_down();
}

static void
arrays_may_grow_far_beyond_where_they_began(void)
{
    uint64_t shape[2] = {1, 1}, chunk[2] = {2, 3}, one[2] = {1, 1};
    pyr_array *a;
    pyr_stats s;
    int32_t cell = 1;
    set_up();
    OK(pyr_create(store, "a",
                  &(pyr_spec){.ndim = 2, .shape = shape, .chunk = chunk,
                              .type = PYR_I32}, &a));
    for (int i = 0; i < 29; i++) {
        uint64_t corner[2] = {shape[0] - 1, shape[1] - 1};
        OK(pyr_write(a, corner, one, &cell, NULL));
        shape[0] *= 2;
        shape[1] = shape[1] * 2 + 1;
        OK(pyr_resize(a, shape, NULL));
        OK(pyr_stat(a, PYR_LATEST, zero, shape, 0, &s));
        CHECK(s.count == shape[0] * shape[1]);
        CHECK(s.sum == i + 1 && s.not_fill == (uint64_t)i + 1);
    }
    pyr_array_close(a);
    tear_down();
}

/* Each turn drops cells that older versions stored, and shows them as fill. */
static void
arrays_may_shrink_and_grow_any_number_of_times(void)
{
    uint64_t chunk[2] = {3, 4}, full[2] = {8, 9}, less[2];
    uint16_t cells[72], got[72];
    pyr_array *a;
    set_up();
    OK(pyr_create(store, "a",
                  &(pyr_spec){.ndim = 2, .shape = full, .chunk = chunk,
                              .type = PYR_U16}, &a));
    for (uint16_t turn = 0; turn < 600; turn++) {
        less[0] = 1 + turn % 8u;
        less[1] = 1 + turn * 5 % 9u;
        for (int i = 0; i < 72; i++)
            cells[i] = (uint16_t)(turn + 1);
        OK(pyr_write(a, zero, full, cells, NULL));
        OK(pyr_resize(a, less, NULL));
        OK(pyr_resize(a, full, NULL));
        OK(pyr_read(a, PYR_LATEST, zero, full, got));
        for (uint64_t i = 0; i < 72; i++) {
            bool kept = i / 9 < less[0] && i % 9 < less[1];
            if (got[i] != (kept ? turn + 1 : 0)) {
                CHECK_NOTE("turn %d: cell %d is %d", turn, (int)i, got[i]);
                break;
            }
        }
    }
    for (pyr_version v = 1; v < 1800; v += 3) {
        OK(pyr_read(a, v, zero, full, got));
        CHECK(got[0] == v / 3 + 1 && got[71] == v / 3 + 1);
    }
    pyr_array_close(a);
    tear_down();
}

/* What a history of shapes cannot hold is refused, and harms nobody. */
static void
shapes_that_are_refused_leave_a_working_array(void)
{
    uint64_t one[5] = {1, 1, 1, 1, 1}, shape[5], size[1] = {1}, long_one[1];
    uint8_t cell = 5, got;
    pyr_array *a;
    pyr_version v;
    int err = 0;
    snprintf(url, sizeof url, "%s", tmp_store("shapes"));
    OK(pyr_open_with(url, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS,
                                          .lease_ms = 300}, &store));
    OK(pyr_create(store, "a", &(pyr_spec){.ndim = 5, .shape = one,
                                          .chunk = one, .type = PYR_U8}, &a));
    for (int d = 0; d < 5 && err == 0; d++) {
        memcpy(shape, one, sizeof shape);
        shape[d] = 1ull << 60;
        err = pyr_resize(a, shape, NULL);
        CHECK(err == 0 || err == PYR_EINVAL);
    }
    OK(pyr_resize(a, one, NULL));
    OK(pyr_write(a, zero, one, &cell, &v));
    OK(pyr_read(a, v, zero, one, &got));
    CHECK(got == 5);
    pyr_array_close(a);

    long_one[0] = 1000;
    OK(pyr_create(store, "b", &(pyr_spec){.ndim = 1, .shape = long_one,
                                          .type = PYR_U8}, &a));
    err = 0;
    for (uint64_t i = 1; i < 400 && err == 0; i++) {
        OK(pyr_write(a, (uint64_t[1]){999}, size, &cell, NULL));
        err = pyr_resize(a, &i, NULL);
        CHECK(err == 0 || err == PYR_EINVAL);
        if (err == 0)
            OK(pyr_resize(a, long_one, NULL));
        OK(pyr_read(a, PYR_LATEST, (uint64_t[1]){999}, size, &got));
        CHECK(got == (err == 0 ? 0 : 5));
    }
    OK(pyr_write(a, zero, size, &cell, &v));
    OK(pyr_read(a, v, zero, size, &got));
    CHECK(got == 5);
    pyr_array_close(a);
    tear_down();
}

/* A clone of a clone of a clone: as deep as it is said to go, then refused in
 * words. */
static void
clones_can_be_cloned(void)
{
    uint64_t shape[1] = {100}, chunk[1] = {7}, one[1] = {1};
    uint8_t got[100];
    pyr_array *a, *next;
    set_up();
    OK(pyr_create(store, "c0", &(pyr_spec){.ndim = 1, .shape = shape,
                                           .chunk = chunk, .type = PYR_U8},
                  &a));
    int depth = 0;
    for (; depth < 80; depth++) {
        char name[16];
        uint64_t at[1] = {(uint64_t)depth};
        uint8_t cell = (uint8_t)(depth + 1);
        pyr_version v;
        OK(pyr_write(a, at, one, &cell, &v));
        CHECK(v == 1);
        OK(pyr_read(a, 1, zero, shape, got));
        for (int i = 0; i < 100; i++)
            CHECK(got[i] == (i <= depth ? i + 1 : 0));
        snprintf(name, sizeof name, "c%d", depth + 1);
        int err = pyr_clone(a, 1, name, &next);
        if (err < 0) {
            CHECK(strlen(pyr_errmsg()) > 8);
            break;
        }
        pyr_array_close(a);
        a = next;
    }
    printf("# %d deep\n", depth);
    CHECK(depth >= 16);
    pyr_array_close(a);
    tear_down();
}

static void
nothing_to_read_or_write_is_fine(void)
{
    uint64_t shape[2] = {6, 4}, none[2] = {0, 2}, end[2] = {6, 4};
    pyr_array *a;
    pyr_version v = 9, latest;
    uint8_t byte = 7;
    set_up();
    OK(pyr_create(store, "a", &(pyr_spec){.ndim = 2, .shape = shape,
                                          .type = PYR_U8}, &a));
    OK(pyr_read(a, 0, zero, none, &byte));
    OK(pyr_read(a, 0, end, zero, &byte));
    OK(pyr_read_list(a, 0, NULL, 0));
    CHECK(byte == 7);
    OK(pyr_write(a, zero, none, &byte, &v));
    OK(pyr_latest(a, &latest));
    CHECK(v == latest && v == 1);
    uint8_t all[24];
    memset(all, 3, sizeof all);
    OK(pyr_write(a, zero, shape, all, NULL));
    int err = pyr_append(a, 0, 0, &byte, NULL, NULL);
    CHECK(err == 0 || err == PYR_EINVAL);
    OK(pyr_read(a, PYR_LATEST, zero, shape, all));
    for (int i = 0; i < 24; i++)
        CHECK(all[i] == 3);
    pyr_array_close(a);
    tear_down();
}

TESTS(T(huge_arrays_cost_no_more_than_small_ones),
      T(the_largest_array_has_two_to_the_64_less_two_cells),
      T(default_chunks_are_equal_sided_and_about_a_mebibyte),
      T(default_chunks_are_clipped_to_the_array),
      T(an_extent_may_be_zero_until_a_resize),
      T(arrays_may_grow_far_beyond_where_they_began),
      T(arrays_may_shrink_and_grow_any_number_of_times),
      T(shapes_that_are_refused_leave_a_working_array),
      T(clones_can_be_cloned), T(nothing_to_read_or_write_is_fine))
