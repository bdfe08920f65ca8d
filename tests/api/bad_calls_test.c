/*
 * api/bad_calls_test.c - calls that make no sense get their own clear error,
 * and change nothing.
 */
#include "api/refused.h"

/* --- arguments ----------------------------------------------------------- */

static void
missing_arguments_are_refused(void)
{
    pyr_store *s;
    pyr_array *a;
    pyr_spec spec = {.ndim = 2, .shape = shape, .type = PYR_I32};
    pyr_part part = {.offset = zero, .size = one, .buf = cells};
    pyr_part no_offset = {.size = one, .buf = cells};
    pyr_part no_size = {.offset = zero, .buf = cells};
    pyr_part no_cells = {.offset = zero, .size = one};
    pyr_batch *batch;
    pyr_version v;
    pyr_stats stats;
    set_up();
    REFUSED(PYR_EINVAL, NULL, pyr_open(NULL, 0, &s));
    REFUSED(PYR_EINVAL, NULL, pyr_open(url, 0, NULL));
    REFUSED(PYR_EINVAL, NULL, pyr_create(NULL, "n", &spec, &a));
    REFUSED(PYR_EINVAL, NULL, pyr_create(store, NULL, &spec, &a));
    REFUSED(PYR_EINVAL, NULL, pyr_create(store, "n", NULL, &a));
    spec.shape = NULL;
    REFUSED(PYR_EINVAL, "shape", pyr_create(store, "n", &spec, &a));
    REFUSED(PYR_EINVAL, NULL, pyr_array_open(NULL, "a/first", &a));
    REFUSED(PYR_EINVAL, NULL, pyr_array_open(store, NULL, &a));
    REFUSED(PYR_EINVAL, NULL, pyr_array_open(store, "a/first", NULL));
    REFUSED(PYR_EINVAL, NULL, pyr_latest(NULL, &v));
    REFUSED(PYR_EINVAL, NULL, pyr_latest(array, NULL));
    REFUSED(PYR_EINVAL, NULL, pyr_array_info(array, 0, NULL));
    REFUSED(PYR_EINVAL, NULL, pyr_read(NULL, 0, zero, one, cells));
    REFUSED(PYR_EINVAL, NULL, pyr_read(array, 0, NULL, one, cells));
    REFUSED(PYR_EINVAL, NULL, pyr_read(array, 0, zero, NULL, cells));
    REFUSED(PYR_EINVAL, NULL, pyr_read(array, 0, zero, one, NULL));
    REFUSED(PYR_EINVAL, NULL, pyr_read_list(array, 0, NULL, 1));
    REFUSED(PYR_EINVAL, NULL, pyr_read_list(array, 0, &no_offset, 1));
    REFUSED(PYR_EINVAL, NULL, pyr_write(NULL, zero, one, cells, &v));
    REFUSED(PYR_EINVAL, NULL, pyr_write(array, NULL, one, cells, &v));
    REFUSED(PYR_EINVAL, NULL, pyr_write(array, zero, NULL, cells, &v));
    REFUSED(PYR_EINVAL, NULL, pyr_write(array, zero, one, NULL, &v));
    REFUSED(PYR_EINVAL, NULL, pyr_write_list(array, NULL, 1, NULL, &v));
    REFUSED(PYR_EINVAL, NULL, pyr_write_list(array, &no_size, 1, NULL, &v));
    REFUSED(PYR_EINVAL, NULL, pyr_write_list(array, &no_cells, 1, NULL, &v));
    REFUSED(PYR_EINVAL, NULL, pyr_write_list(NULL, &part, 1, NULL, &v));
    REFUSED(PYR_EINVAL, NULL, pyr_batch_begin(NULL, &batch));
    REFUSED(PYR_EINVAL, NULL, pyr_batch_begin(array, NULL));
    REFUSED(PYR_EINVAL, NULL, pyr_resize(array, NULL, &v));
    REFUSED(PYR_EINVAL, NULL, pyr_append(array, 0, 1, NULL, NULL, &v));
    REFUSED(PYR_EINVAL, NULL, pyr_stat(array, 0, zero, one, 0, NULL));
    REFUSED(PYR_EINVAL, NULL, pyr_stat(array, 0, NULL, one, 0, &stats));
    REFUSED(PYR_EINVAL, NULL, pyr_history(array, 0, 1, NULL, NULL));
    REFUSED(PYR_EINVAL, NULL, pyr_tag(array, NULL, 1));
    REFUSED(PYR_EINVAL, NULL, pyr_untag(array, NULL));
    REFUSED(PYR_EINVAL, NULL, pyr_tag_version(array, "good", NULL));
    REFUSED(PYR_EINVAL, NULL, pyr_tags(array, NULL, NULL));
    REFUSED(PYR_EINVAL, NULL, pyr_clone(array, 1, NULL, &a));
    REFUSED(PYR_EINVAL, NULL, pyr_diff(array, 0, 1, NULL, NULL));
    REFUSED(PYR_EINVAL, NULL, pyr_last_change(array, 1, zero, one, NULL));
    REFUSED(PYR_EINVAL, NULL, pyr_arrays(store, NULL, NULL));
    REFUSED(PYR_EINVAL, NULL, pyr_store_status(store, NULL, NULL, NULL));
    REFUSED(PYR_EINVAL, NULL, pyr_set_attributes(array, NULL));
    REFUSED(PYR_EINVAL, NULL, pyr_attributes(array, NULL));
    pyr_close(NULL);
    pyr_array_close(NULL);
    pyr_batch_abort(NULL);
    tear_down();
}

static void
arrays_that_cannot_be_are_refused(void)
{
    uint64_t many[17], half[2] = {1ull << 32, 1ull << 32};
    uint64_t none[2] = {4, 0};
    set_up();
    for (int i = 0; i < 17; i++)
        many[i] = 1;
    pyr_spec good = {.ndim = 2, .shape = shape, .type = PYR_I32}, s;
    s = good, s.ndim = 0;
    REFUSED(PYR_EINVAL, "0", pyr_create(store, "n", &s, NULL));
    s = good, s.ndim = 17, s.shape = many;
    REFUSED(PYR_EINVAL, "17", pyr_create(store, "n", &s, NULL));
    s = good, s.ndim = -1;
    REFUSED(PYR_EINVAL, NULL, pyr_create(store, "n", &s, NULL));
    s = good, s.chunk = none;
    REFUSED(PYR_EINVAL, "chunk", pyr_create(store, "n", &s, NULL));
    s = good, s.shape = half;
    REFUSED(PYR_EINVAL, "shape", pyr_create(store, "n", &s, NULL));
    s = good, s.type = (pyr_type)10;
    REFUSED(PYR_EINVAL, "type", pyr_create(store, "n", &s, NULL));
    s = good, s.type = (pyr_type)-1;
    REFUSED(PYR_EINVAL, "type", pyr_create(store, "n", &s, NULL));
    s = good, s.codec = (pyr_codec)3;
    REFUSED(PYR_EINVAL, "codec", pyr_create(store, "n", &s, NULL));
    s = good, s.codec = PYR_CODEC_ZSTD, s.level = 10;
    REFUSED(PYR_EINVAL, "level", pyr_create(store, "n", &s, NULL));
    s = good, s.codec = PYR_CODEC_LZ4, s.level = -1;
    REFUSED(PYR_EINVAL, "level", pyr_create(store, "n", &s, NULL));
    pyr_array *a = array;
    s = good, s.ndim = 0;
    FAILS(PYR_EINVAL, pyr_create(store, "n", &s, &a));
    CHECK(a == NULL);
    tear_down();
}

static void
attributes_that_are_no_json_object_are_refused(void)
{
    static const char *const bad[] = {
        "", " ", "{", "}", "[]", "3", "null", "\"x\"", "{\"a\":}", "{a: 1}",
        "{\"a\": 1,}", "{} x", "{\"a\" 1}", "{\"a\": tru}", "{\"a\": 01}",
        "{\"a\": \"\n\"}", "{\"a\": \"\\x\"}", "{\"a\": \"\xff\"}",
        "{\"a\": 1 \"b\": 2}", "{\"a\": [1, 2}", "{'a': 1}"};
    static const char *const good[] = {
        "{}", "{\"a\": 1}", "{\"a\": [1, -2.5e3, {\"b\": null}]}",
        "{\"c\": \"\\u00e9\\n\", \"d\": true}", "{\"\xc3\xa9\": false}"};
    set_up();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        pyr_spec s = {.ndim = 2, .shape = shape, .attributes = bad[i]};
        int before = check_failures;
        REFUSED(PYR_EINVAL, NULL, pyr_set_attributes(array, bad[i]));
        REFUSED(PYR_EINVAL, NULL, pyr_create(store, "n", &s, NULL));
        if (check_failures > before)
            printf("# with attributes number %zu\n", i);
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        char *got;
        OK(pyr_set_attributes(array, good[i]));
        OK(pyr_attributes(array, &got));
        CHECK(strcmp(got, good[i]) == 0);
        free(got);
    }
    /* Nesting without end must not run off the stack. */
    size_t deep = 1000000;
    char *text = malloc(2 * deep + 16);
    REQUIRE(text);
    strcpy(text, "{\"a\":");
    memset(text + 5, '[', deep);
    memset(text + 5 + deep, ']', deep);
    strcpy(text + 5 + 2 * deep, "}");
    int err = pyr_set_attributes(array, text);
    CHECK(err == 0 || err == PYR_EINVAL);
    free(text);
    tear_down();
}

static void
hostile_names_are_refused(void)
{
    char longest[257];
    memset(longest, 'x', sizeof longest);
    longest[256] = 0;
    const char *const bad[] = {
        "", "/", "a//b", "..", ".", "a/..", "a/../b", "./a", "a/.", "/a",
        "a/", "a\nb", "a\x7f", "\x01", "a\tb", longest, "\xff", "a\xc3",
        "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "a/\xe2\x82",
        "\xc2\x85"};
    set_up();
    pyr_spec s = {.ndim = 2, .shape = shape, .type = PYR_I32};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int before = check_failures;
        REFUSED(PYR_EINVAL, NULL, pyr_create(store, bad[i], &s, NULL));
        REFUSED(PYR_EINVAL, NULL, pyr_clone(array, 1, bad[i], NULL));
        REFUSED(PYR_EINVAL, NULL, pyr_tag(array, bad[i], 1));
        pyr_array *none = array;
        make_stale();
        int err = pyr_array_open(store, bad[i], &none);
        CHECK(err == PYR_EINVAL || err == PYR_ENOTFOUND);
        CHECK(none == NULL);
        if (check_failures > before)
            printf("# with name number %zu\n", i);
    }
    longest[255] = 0;
    const char *const good[] = {longest, "...", "a b", "\xc3\xa9\xe2\x82\xac",
                                "a/b/c.d", "-", "%41", "\xf0\x9f\x90\x98"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        pyr_array *a;
        OK(pyr_create(store, good[i], &s, &a));
        pyr_array_close(a);
        OK(pyr_array_open(store, good[i], &a));
        OK(pyr_tag(a, good[i], 0));
        pyr_array_close(a);
    }
    tear_down();
}

static void
names_that_are_taken_or_unknown_are_refused(void)
{
    pyr_array *a = array;
    pyr_version v;
    pyr_spec s = {.ndim = 2, .shape = shape, .type = PYR_I32};
    set_up();
    REFUSED(PYR_EEXIST, "a/first", pyr_create(store, "a/first", &s, &a));
    CHECK(a == NULL);
    REFUSED(PYR_EEXIST, "a/first", pyr_clone(array, 1, "a/first", NULL));
    REFUSED(PYR_ENOTFOUND, "nowhere", pyr_array_open(store, "nowhere", &a));
    REFUSED(PYR_ENOTFOUND, "a", pyr_array_open(store, "a", &a));
    REFUSED(PYR_ENOTFOUND, "untold", pyr_tag_version(array, "untold", &v));
    REFUSED(PYR_ENOTFOUND, "untold", pyr_untag(array, "untold"));
    tear_down();
}

/* --- boxes --------------------------------------------------------------- */

static void
box_is_refused(const uint64_t *offset, const uint64_t *size)
{
    pyr_stats stats;
    pyr_version v;
    pyr_batch *batch;
    pyr_part parts[2] = {{.offset = zero, .size = one, .buf = cells},
                         {.offset = offset, .size = size, .buf = cells}};
    REFUSED(PYR_EBOUNDS, NULL, pyr_read(array, 2, offset, size, cells));
    REFUSED(PYR_EBOUNDS, NULL,
            pyr_read(array, PYR_LATEST, offset, size, cells));
    REFUSED(PYR_EBOUNDS, NULL, pyr_read_list(array, 2, parts, 2));
    REFUSED(PYR_EBOUNDS, NULL, pyr_write(array, offset, size, cells, &v));
    REFUSED(PYR_EBOUNDS, NULL, pyr_write_list(array, parts, 2, NULL, &v));
    REFUSED(PYR_EBOUNDS, NULL, pyr_stat(array, 2, offset, size, 0, &stats));
    REFUSED(PYR_EBOUNDS, NULL, pyr_last_change(array, 2, offset, size, &v));
    OK(pyr_batch_begin(array, &batch));
    REFUSED(PYR_EBOUNDS, NULL, pyr_batch_write(batch, offset, size, cells));
    pyr_batch_abort(batch);
}

static void
boxes_that_leave_the_array_are_refused(void)
{
    static const struct {
        uint64_t offset[2], size[2];
    } bad[] = {
        {{0, 0}, {ROWS + 1, COLUMNS}},
        {{0, 0}, {ROWS, COLUMNS + 1}},
        {{1, 0}, {ROWS, 1}},
        {{0, 1}, {1, COLUMNS}},
        {{ROWS, 0}, {1, 1}},
        {{0, COLUMNS}, {1, 1}},
        {{UINT64_MAX, 0}, {1, 1}},
        {{0, UINT64_MAX}, {1, 2}},
        {{2, 0}, {UINT64_MAX, 1}},
        {{0, 3}, {1, UINT64_MAX - 1}},
        {{UINT64_MAX, UINT64_MAX}, {UINT64_MAX, UINT64_MAX}},
        {{1ull << 63, 0}, {1ull << 63, 1}},
    };
    set_up();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int before = check_failures;
        box_is_refused(bad[i].offset, bad[i].size);
        if (check_failures > before)
            printf("# with box number %zu\n", i);
    }
    /* The text says where. */
    make_stale();
    FAILS(PYR_EBOUNDS, pyr_read(array, 1, zero, (uint64_t[2]){11, 1}, cells));
    check_text("read", "11");
    tear_down();
}

static void
strided_runs_that_leave_the_array_are_refused(void)
{
    static const struct {
        uint64_t offset[2], size[2], count[2], stride[2];
        int code;
    } bad[] = {
        {{0, 0}, {2, 1}, {2, 1}, {1, 1}, PYR_EINVAL}, /* blocks overlap */
        {{0, 0}, {1, 2}, {1, 2}, {1, 1}, PYR_EINVAL},
        {{0, 0}, {1, 1}, {2, 1}, {0, 1}, PYR_EINVAL},
        {{1, 0}, {1, 1}, {4, 1}, {3, 1}, PYR_EBOUNDS}, /* by one */
        {{0, 0}, {1, 1}, {1, 3}, {1, 4}, PYR_EBOUNDS},
        {{0, 0}, {2, 1}, {2, 1}, {9, 1}, PYR_EBOUNDS},
        {{0, 0}, {1, 1}, {2, 1}, {UINT64_MAX, 1}, PYR_EBOUNDS},
        {{0, 0}, {1, 1}, {UINT64_MAX, 1}, {2, 1}, PYR_EBOUNDS},
        {{5, 0}, {1, 1}, {3, 1}, {1ull << 63, 1}, PYR_EBOUNDS},
        {{0, 0}, {1, 1}, {(1ull << 62) + 1, 1}, {4, 1}, PYR_EBOUNDS},
    };
    pyr_version v;
    set_up();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        pyr_part p = {.offset = bad[i].offset, .size = bad[i].size,
                      .count = bad[i].count, .stride = bad[i].stride,
                      .buf = cells};
        int before = check_failures;
        REFUSED(bad[i].code, NULL, pyr_read_list(array, 1, &p, 1));
        REFUSED(bad[i].code, NULL, pyr_write_list(array, &p, 1, NULL, &v));
        if (check_failures > before)
            printf("# with run number %zu\n", i);
    }
    tear_down();
}

static void
appends_and_resizes_that_make_no_sense_are_refused(void)
{
    pyr_version v;
    uint64_t at, vast[2] = {UINT64_MAX, 2};
    set_up();
    REFUSED(PYR_EINVAL, "2", pyr_append(array, 2, 1, cells, &at, &v));
    REFUSED(PYR_EINVAL, NULL, pyr_append(array, -1, 1, cells, &at, &v));
    REFUSED(PYR_EINVAL, NULL,
            pyr_append(array, 0, UINT64_MAX, cells, &at, &v));
    REFUSED(PYR_EINVAL, NULL,
            pyr_append(array, 1, UINT64_MAX / 8, cells, &at, &v));
    REFUSED(PYR_EINVAL, "shape", pyr_resize(array, vast, &v));
    tear_down();
}

/* --- versions and types -------------------------------------------------- */

static int
no_box(void *ctx, int ndim, const uint64_t *offset, const uint64_t *size)
{
    return 0;
}

static int
no_change(void *ctx, const pyr_change *change)
{
    return 0;
}

static void
versions_that_were_never_published_are_refused(void)
{
    static const pyr_version bad[] = {4, 5, 1ull << 40, UINT64_MAX - 1};
    pyr_info info;
    pyr_stats stats;
    pyr_version v;
    set_up();
    for (int i = 0; i < 4; i++) {
        char number[32];
        snprintf(number, sizeof number, "%llu", (unsigned long long)bad[i]);
        pyr_part p = {.offset = zero, .size = one, .buf = cells};
        REFUSED(PYR_ENOVERSION, number,
                pyr_read(array, bad[i], zero, one, cells));
        REFUSED(PYR_ENOVERSION, number, pyr_read_list(array, bad[i], &p, 1));
        REFUSED(PYR_ENOVERSION, number, pyr_array_info(array, bad[i], &info));
        REFUSED(PYR_ENOVERSION, number,
                pyr_stat(array, bad[i], zero, one, 0, &stats));
        REFUSED(PYR_ENOVERSION, number, pyr_tag(array, "x", bad[i]));
        REFUSED(PYR_ENOVERSION, number, pyr_clone(array, bad[i], "x", NULL));
        REFUSED(PYR_ENOVERSION, number,
                pyr_diff(array, bad[i], 1, no_box, NULL));
        REFUSED(PYR_ENOVERSION, number,
                pyr_diff(array, 1, bad[i], no_box, NULL));
        REFUSED(PYR_ENOVERSION, number,
                pyr_last_change(array, bad[i], zero, one, &v));
        REFUSED(PYR_ENOVERSION, number, pyr_wait(array, bad[i], 0));
        REFUSED(PYR_ENOVERSION, number,
                pyr_history(array, bad[i], 0, no_change, NULL));
    }
    tear_down();
}

static void
cells_of_another_type_are_refused(void)
{
    pyr_version v;
    set_up();
    for (int type = PYR_I8; type <= PYR_F64; type++) {
        if (type == PYR_I32)
            continue;
        REFUSED(PYR_ETYPE, "i32",
                pyr_read_as(array, 1, (pyr_type)type, zero, one, cells));
        REFUSED(PYR_ETYPE, "i32",
                pyr_write_as(array, (pyr_type)type, zero, one, cells, &v));
    }
    OK(pyr_read_as(array, 1, PYR_I32, zero, one, cells));
    OK(pyr_write_as(array, PYR_I32, zero, one, cells, &v));
    CHECK(v == 4);
    tear_down();
}

static void
unknown_flags_are_refused(void)
{
    pyr_store *s = store;
    pyr_stats stats;
    pyr_version v;
    pyr_part p = {.offset = zero, .size = one, .buf = cells};
    set_up();
    REFUSED(PYR_EINVAL, NULL, pyr_open(url, 0x80, &s));
    CHECK(s == NULL);
    REFUSED(PYR_EINVAL, NULL, pyr_stat(array, 1, zero, one, 0x80, &stats));
    REFUSED(PYR_EINVAL, NULL,
            pyr_write_list(array, &p, 1, &(pyr_write_options){.flags = 0x80},
                           &v));
    tear_down();
}

TESTS(T(missing_arguments_are_refused), T(arrays_that_cannot_be_are_refused),
      T(attributes_that_are_no_json_object_are_refused),
      T(hostile_names_are_refused),
      T(names_that_are_taken_or_unknown_are_refused),
      T(boxes_that_leave_the_array_are_refused),
      T(strided_runs_that_leave_the_array_are_refused),
      T(appends_and_resizes_that_make_no_sense_are_refused),
      T(versions_that_were_never_published_are_refused),
      T(cells_of_another_type_are_refused), T(unknown_flags_are_refused))
