/*
 * api/index_test.c - what the index tells: statistics, differences, history,
 * lists; and handles by the dozen.
 */
#include "api/fixture.h"

#include <math.h>

/* --- statistics and differences ------------------------------------------ */

enum { SIDE = 640, CHUNK = 20 }; /* 32 x 32 chunks */

static pyr_array *
field(float *cells)
{
    uint64_t shape[2] = {SIDE, SIDE}, chunk[2] = {CHUNK, CHUNK};
    rng r = rng_of(test_seed());
    pyr_array *a;
    for (int i = 0; i < SIDE * SIDE; i++)
        cells[i] = (float)rng_below(&r, 1000) + 1;
    OK(pyr_create(store, "field",
                  &(pyr_spec){.ndim = 2, .shape = shape, .chunk = chunk,
                              .type = PYR_F32}, &a));
    OK(pyr_write(a, zero, shape, cells, NULL));
    return a;
}

static double
plain_sum(const float *cells, const uint64_t *offset, const uint64_t *size)
{
    double sum = 0;
    for (uint64_t i = offset[0]; i < offset[0] + size[0]; i++)
        for (uint64_t j = offset[1]; j < offset[1] + size[1]; j++)
            sum += cells[i * SIDE + j];
    return sum;
}

static void
check_stat_costs(pyr_array *a, const float *cells)
{
    static const struct {
        uint64_t offset[2], size[2], nodes;
    } aligned[] = {
        {{0, 0}, {SIDE, SIDE}, 8}, /* whole: a handful */
        {{0, 0}, {SIDE / 2, SIDE / 2}, 8},
        {{CHUNK, 0}, {CHUNK * 7, SIDE}, 100},
        {{CHUNK * 3, CHUNK * 5}, {CHUNK * 21, CHUNK * 17}, 100},
        {{CHUNK * 30, CHUNK * 31}, {CHUNK, CHUNK}, 12},
    };
    pyr_stats s;
    for (int i = 0; i < 5; i++) {
        OK(pyr_stat(a, PYR_LATEST, aligned[i].offset, aligned[i].size, 0,
                    &s));
        CHECK(s.sum == plain_sum(cells, aligned[i].offset, aligned[i].size));
        if (s.chunks_read != 0 || s.nodes_read > aligned[i].nodes)
            CHECK_NOTE("aligned box %d read %d nodes and %d chunks", i,
                       (int)s.nodes_read, (int)s.chunks_read);
    }
    uint64_t offset[2] = {CHUNK + 1, 0}, size[2] = {CHUNK * 4, SIDE};
    OK(pyr_stat(a, PYR_LATEST, offset, size, 0, &s));
    CHECK(s.sum == plain_sum(cells, offset, size));
    if (s.chunks_read > 64) /* two rows of chunks are cut */
        CHECK_NOTE("a cut box read %d chunks", (int)s.chunks_read);
    OK(pyr_stat(a, PYR_LATEST, offset, size, PYR_STAT_BOUNDS, &s));
    CHECK(s.chunks_read == 0);
}

static void
statistics_of_aligned_boxes_read_no_chunk(void)
{
    static float cells[SIDE * SIDE];
    set_up();
    pyr_array *a = field(cells);
    check_stat_costs(a, cells);
    rng r = rng_of(test_seed() + 1);
    for (int i = 0; i < 30; i++) {
        float part[50 * 50];
        uint64_t offset[2] = {rng_below(&r, SIDE - 50),
                              rng_below(&r, SIDE - 50)};
        uint64_t size[2] = {rng_from(&r, 1, 50), rng_from(&r, 1, 50)};
        for (uint64_t c = 0; c < size[0] * size[1]; c++) {
            part[c] = (float)rng_below(&r, 3000);
            cells[(offset[0] + c / size[1]) * SIDE + offset[1] +
                  c % size[1]] = part[c];
        }
        OK(pyr_write(a, offset, size, part, NULL));
    }
    check_stat_costs(a, cells);
    pyr_array_close(a);
    tear_down();
}

typedef struct extent {
    uint64_t boxes, cells;
    uint64_t stop_after;
} extent;

static int
add_box(void *ctx, int ndim, const uint64_t *offset, const uint64_t *size)
{
    extent *e = ctx;
    e->boxes++;
    e->cells += model_count(ndim, size);
    return e->boxes == e->stop_after ? 42 : 0;
}

static void
a_diff_speaks_of_little_more_than_what_was_written(void)
{
    static float cells[SIDE * SIDE];
    set_up();
    pyr_array *a = field(cells);
    uint64_t offset[2] = {35, 35}, size[2] = {10, 10};
    pyr_version v;
    OK(pyr_write(a, offset, size, cells, &v));
    extent e = {0};
    OK(pyr_diff(a, v - 1, v, add_box, &e));
    CHECK(e.boxes > 0 && e.cells >= 100);
    CHECK(e.cells <= 4 * CHUNK * CHUNK); /* it touches four chunks */
    e = (extent){0};
    OK(pyr_diff(a, v, v - 1, add_box, &e));
    CHECK(e.cells >= 100 && e.cells <= 4 * CHUNK * CHUNK);
    e = (extent){0};
    OK(pyr_diff(a, v, v, add_box, &e));
    CHECK(e.boxes == 0);
    e = (extent){.stop_after = 1};
    CHECK(pyr_diff(a, 0, v, add_box, &e) == 42);
    CHECK(e.boxes == 1);
    pyr_array_close(a);
    tear_down();
}

/* --- history and lists --------------------------------------------------- */

typedef struct seen {
    pyr_version versions[16];
    int n, stop_after;
    char who[300], message[300];
} seen;

static int
see_change(void *ctx, const pyr_change *c)
{
    seen *s = ctx;
    if (s->n < 16)
        s->versions[s->n] = c->version;
    s->n++;
    snprintf(s->who, sizeof s->who, "%s", c->who);
    snprintf(s->message, sizeof s->message, "%s", c->message);
    return s->n == s->stop_after ? 7 : 0;
}

/* Each write of a box hides the least and greatest cells again and again. */
static void
what_is_known_of_chunks_is_never_lost(void)
{
    enum { EDGE = 50, BOXES = 400 };
    static float cells[EDGE * EDGE], box[EDGE * EDGE];
    uint64_t shape[2] = {EDGE, EDGE}, chunk[2] = {32, 32};
    rng r = rng_of(test_seed());
    pyr_array *a;
    pyr_stats s;
    set_up();
    OK(pyr_create(store, "a", &(pyr_spec){.ndim = 2, .shape = shape,
                                          .chunk = chunk, .type = PYR_F32}, &a));
    for (int k = 0; k < BOXES; k++) {
        uint64_t at[2] = {rng_below(&r, EDGE), rng_below(&r, EDGE)}, size[2];
        float low = INFINITY, high = -INFINITY;
        for (int d = 0; d < 2; d++)
            size[d] = 1 + rng_below(&r, EDGE - at[d]);
        for (uint64_t i = 0; i < size[0] * size[1]; i++)
            cells[(at[0] + i / size[1]) * EDGE + at[1] + i % size[1]] = box[i] =
                k % 3 ? (float)rng_below(&r, 100) : (float)rng_below(&r, 1000000);
        OK(pyr_write(a, at, size, box, NULL));
        for (int i = 0; i < EDGE * EDGE; i++) {
            low = fminf(low, cells[i]);
            high = fmaxf(high, cells[i]);
        }
        OK(pyr_stat(a, PYR_LATEST, zero, shape, 0, &s));
        CHECK(s.chunks_read == 0 && s.min == low && s.max == high);
    }
    pyr_array_close(a);
    tear_down();
}

static void
history_goes_both_ways_and_stops_when_told(void)
{
    uint64_t shape[1] = {10}, one[1] = {1};
    uint8_t cell = 1;
    char pid[32];
    pyr_array *a;
    set_up();
    OK(pyr_create(store, "a", &(pyr_spec){.ndim = 1, .shape = shape,
                                          .type = PYR_U8}, &a));
    pyr_part p = {.offset = zero, .size = one, .buf = &cell};
    for (int i = 0; i < 5; i++)
        OK(pyr_write_list(a, &p, 1,
                          &(pyr_write_options){.message = "caf\xc3\xa9 \"x\""},
                          NULL));
    seen s = {0};
    OK(pyr_history(a, PYR_LATEST, 0, see_change, &s));
    CHECK(s.n == 6 && s.versions[0] == 5 && s.versions[5] == 0);
    s = (seen){0};
    OK(pyr_history(a, 1, 3, see_change, &s));
    CHECK(s.n == 3 && s.versions[0] == 1 && s.versions[2] == 3);
    snprintf(pid, sizeof pid, ":%d", (int)getpid());
    CHECK(strchr(s.who, '@') && strstr(s.who, pid));
    CHECK(strcmp(s.message, "caf\xc3\xa9 \"x\"") == 0);
    s = (seen){0};
    OK(pyr_history(a, 2, 2, see_change, &s));
    CHECK(s.n == 1 && s.versions[0] == 2);
    s = (seen){.stop_after = 2};
    CHECK(pyr_history(a, 0, PYR_LATEST, see_change, &s) == 7);
    CHECK(s.n == 2);
    pyr_array_close(a);
    tear_down();
}

typedef struct names {
    char text[500];
    int n, stop_after;
} names;

static int
see_name(void *ctx, const char *name)
{
    names *s = ctx;
    strncat(s->text, name, 60);
    strncat(s->text, " ", 2);
    return ++s->n == s->stop_after ? -1234 : 0;
}

static int
see_tag(void *ctx, const char *tag, pyr_version version)
{
    return see_name(ctx, tag);
}

static void
arrays_and_tags_are_listed_in_order_of_bytes(void)
{
    static const char *const made[] = {"b", "a/z", "a", "B", "a-", "\xc3\xa9",
                                       "a/a"};
    static const char order[] = "B a a- a/a a/z b \xc3\xa9 ";
    uint64_t shape[1] = {10};
    pyr_array *a = NULL;
    set_up();
    for (int i = 0; i < 7; i++) {
        pyr_array_close(a);
        OK(pyr_create(store, made[i],
                      &(pyr_spec){.ndim = 1, .shape = shape}, &a));
    }
    for (int i = 0; i < 7; i++)
        OK(pyr_tag(a, made[i], 0));
    names s = {0}, t = {0}, u = {.stop_after = 2};
    OK(pyr_arrays(store, see_name, &s));
    CHECK(strcmp(s.text, order) == 0);
    OK(pyr_tags(a, see_tag, &t));
    CHECK(strcmp(t.text, order) == 0);
    CHECK(pyr_arrays(store, see_name, &u) == -1234);
    CHECK(u.n == 2);
    pyr_status status;
    OK(pyr_store_status(store, &status, NULL, NULL));
    CHECK(status.arrays == 7);
    pyr_array_close(a);
    tear_down();
}

static void
a_batch_is_seen_only_when_it_is_committed(void)
{
    uint64_t shape[1] = {100}, five[1] = {5};
    uint16_t cells[5] = {1, 2, 3, 4, 5}, got[5];
    pyr_array *a;
    pyr_batch *batch;
    pyr_version v;
    set_up();
    OK(pyr_create(store, "a", &(pyr_spec){.ndim = 1, .shape = shape,
                                          .type = PYR_U16}, &a));
    OK(pyr_batch_begin(a, &batch));
    OK(pyr_batch_write(batch, zero, five, cells));
    OK(pyr_batch_write(batch, (uint64_t[1]){3}, five, cells));
    OK(pyr_latest(a, &v));
    CHECK(v == 0);
    OK(pyr_write(a, (uint64_t[1]){50}, five, cells, &v));
    CHECK(v == 1);
    OK(pyr_batch_commit(batch, NULL, &v));
    CHECK(v == 2);
    OK(pyr_read(a, 2, zero, five, got));
    CHECK(got[0] == 1 && got[2] == 3 && got[3] == 1 && got[4] == 2);
    OK(pyr_read(a, 2, (uint64_t[1]){50}, five, got));
    CHECK(memcmp(got, cells, sizeof got) == 0);
    OK(pyr_batch_begin(a, &batch));
    OK(pyr_batch_write(batch, (uint64_t[1]){70}, five, cells));
    pyr_batch_abort(batch);
    OK(pyr_latest(a, &v));
    CHECK(v == 2);
    pyr_array_close(a);
    tear_down();
}

/* --- handles ------------------------------------------------------------- */

static void *
open_and_read(void *arg)
{
    for (int i = 0; i < 25; i++) {
        pyr_store *s = NULL;
        pyr_array *a = NULL;
        uint8_t cell = 0;
        unsigned flags = i % 2 ? PYR_OPEN_READONLY : 0;
        int err = pyr_open(url, flags, &s);
        if (err == 0)
            err = pyr_array_open(s, "a", &a);
        if (err == 0)
            err = pyr_read(a, 1, zero, (uint64_t[1]){1}, &cell);
        pyr_array_close(a);
        pyr_close(s);
        if (err < 0 || cell != 9) {
            printf("# %s\n", err < 0 ? pyr_errmsg() : "wrong cell");
            return arg;
        }
    }
    return NULL;
}

static void
a_store_can_be_opened_by_many_threads_at_once(void)
{
    uint64_t shape[1] = {10};
    uint8_t cell = 9;
    pthread_t threads[8];
    pyr_array *a;
    set_up();
    OK(pyr_create(store, "a", &(pyr_spec){.ndim = 1, .shape = shape,
                                          .type = PYR_U8}, &a));
    OK(pyr_write(a, zero, (uint64_t[1]){1}, &cell, NULL));
    pyr_array_close(a);
    pyr_close(store);
    store = NULL;
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, open_and_read, threads);
    for (int i = 0; i < 8; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        CHECK(!failed);
    }
    tear_down();
}

TESTS(T(statistics_of_aligned_boxes_read_no_chunk),
      T(a_diff_speaks_of_little_more_than_what_was_written),
      T(what_is_known_of_chunks_is_never_lost),
      T(history_goes_both_ways_and_stops_when_told),
      T(arrays_and_tags_are_listed_in_order_of_bytes),
      T(a_batch_is_seen_only_when_it_is_committed),
      T(a_store_can_be_opened_by_many_threads_at_once))
