/*
 * concurrency/sharing_test.c - readers beside writers, appenders beside each
 * other, writers in an array that grows.
 */
#include "support/check.h"
#include "support/model.h"
#include "support/rng.h"
#include "support/tmp_store.h"

#include <pyramid/pyramid.h>

#include <inttypes.h>
#include <pthread.h>

enum { BOUND_MS = 300000, LEASE_MS = 3600000 };

static pyr_store *
fresh_store(char *url, size_t size)
{
    pyr_store *store;
    proc_kill_all();
    snprintf(url, size, "%s", tmp_store("shared"));
    OK(pyr_open_with(url, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS,
                                          .lease_ms = LEASE_MS},
                     &store));
    return store;
}

/* --- a write without waiting --------------------------------------------- */

static void
a_write_that_does_not_wait_can_be_waited_for(void)
{
    char url[4096];
    pyr_store *store = fresh_store(url, sizeof url);
    pyr_array *array;
    uint64_t shape[2] = {61, 47}, chunk[2] = {16, 16};
    OK(pyr_create(store, "a",
                  &(pyr_spec){.ndim = 2, .shape = shape, .chunk = chunk,
                              .type = PYR_U32}, &array));
    uint64_t offset[2] = {3, 4}, size[2] = {2, 2};
    uint32_t cells[4] = {1, 2, 3, 4}, got[4] = {0};
    pyr_part part = {.offset = offset, .size = size, .buf = cells};
    pyr_version made = 0, latest;
    for (int i = 1; i <= 20; i++) {
        cells[0] = (uint32_t)i;
        OK(pyr_write_list(array, &part, 1,
                          &(pyr_write_options){.flags = PYR_WRITE_NOWAIT},
                          &made));
        CHECK(made == (pyr_version)i);
        OK(pyr_wait(array, made, BOUND_MS));
        OK(pyr_latest(array, &latest));
        CHECK(latest >= made);
        OK(pyr_read(array, made, offset, size, got));
        CHECK(memcmp(got, cells, sizeof got) == 0);
    }
    FAILS(PYR_ENOVERSION, pyr_wait(array, made + 1, 0));
    FAILS(PYR_ENOVERSION, pyr_wait(array, made + 1, -1));
    pyr_array_close(array);
    pyr_close(store);
    tmp_remove(url);
}

/* --- appending ----------------------------------------------------------- */

typedef struct appender {
    const char *url;
    uint32_t number;
    int n;
    struct { uint64_t at, count, version; } got[400];
    char error[300];
    pthread_t thread;
} appender;

static uint64_t
appended_cell(uint32_t appender_number, int i, uint64_t row, uint64_t column)
{
    return ((uint64_t)appender_number << 48) + ((uint64_t)i << 32) +
           (row << 16) + column + 1;
}

static void *
append_in_thread(void *arg)
{
    appender *a = arg;
    pyr_store *store = NULL;
    pyr_array *array = NULL;
    int err = pyr_open(a->url, 0, &store);
    if (err == 0)
        err = pyr_array_open(store, "log", &array);
    for (int i = 0; err == 0 && i < a->n; i++) {
        uint64_t cells[4][5], count = 1 + (a->number + (uint64_t)i) % 4;
        for (uint64_t r = 0; r < count; r++)
            for (uint64_t c = 0; c < 5; c++)
                cells[r][c] = appended_cell(a->number, i, r, c);
        a->got[i].count = count;
        err = pyr_append(array, 0, count, cells, &a->got[i].at,
                         &a->got[i].version);
    }
    if (err < 0)
        snprintf(a->error, sizeof a->error, "%s", pyr_errmsg());
    pyr_array_close(array);
    pyr_close(store);
    return NULL;
}

static char notes[4096]; /* where processes leave what they did */

static int
append_in_process(void *arg)
{
    appender *a = arg;
    append_in_thread(a);
    char path[4200];
    snprintf(path, sizeof path, "%s.%d", notes, (int)a->number);
    FILE *f = fopen(path, "w");
    if (!f || fwrite(a, sizeof *a, 1, f) != 1 || fclose(f) != 0)
        return 3;
    return a->error[0] != 0;
}

static void
run_appenders(appender *a, int n)
{
    pid_t pids[8] = {0};
    snprintf(notes, sizeof notes, "%s", tmp_fresh("appenders"));
    for (int i = 0; i < n; i++)
        if (TEST_TSAN)
            pthread_create(&a[i].thread, NULL, append_in_thread, &a[i]);
        else
            pids[i] = proc_fork(append_in_process, &a[i]);
    for (int i = 0; i < n; i++) {
        if (TEST_TSAN) {
            pthread_join(a[i].thread, NULL);
            continue;
        }
        const char *url = a[i].url;
        CHECK(proc_ends_well(pids[i], BOUND_MS));
        char path[4200];
        snprintf(path, sizeof path, "%s.%d", notes, i);
        FILE *f = fopen(path, "r");
        REQUIRE(f && fread(&a[i], sizeof a[i], 1, f) == 1);
        a[i].url = url;
        fclose(f);
    }
}

static void
check_appended(pyr_array *array, const appender *a, uint8_t *taken,
               uint64_t rows)
{
    for (int i = 0; i < a->n; i++) {
        uint64_t at = a->got[i].at, count = a->got[i].count, got[4][5];
        REQUIRE(at + count <= rows);
        for (uint64_t r = 0; r < count; r++) {
            CHECK(!taken[at + r]);
            taken[at + r] = 1;
        }
        uint64_t offset[2] = {at, 0}, size[2] = {count, 5};
        for (int late = 0; late < 2; late++) {
            OK(pyr_read(array, late ? PYR_LATEST : a->got[i].version, offset,
                        size, got));
            for (uint64_t r = 0; r < count; r++)
                for (uint64_t c = 0; c < 5; c++)
                    CHECK(got[r][c] == appended_cell(a->number, i, r, c));
        }
        pyr_info info;
        OK(pyr_array_info(array, a->got[i].version, &info));
        CHECK(info.shape[0] == at + count);
    }
}

static void
appenders_at_once_get_cells_of_their_own(void)
{
    enum { N = 5 };
    static appender a[N];
    char url[4096];
    pyr_store *store = fresh_store(url, sizeof url);
    for (int i = 0; i < N; i++)
        a[i] = (appender){.url = url, .number = (uint32_t)i,
                          .n = (int)by_scale(60, 200, 400)};
    uint64_t shape[2] = {0, 5}, chunk[2] = {7, 3}, rows = 0;
    pyr_array *array;
    OK(pyr_create(store, "log",
                  &(pyr_spec){.ndim = 2, .shape = shape, .chunk = chunk,
                              .type = PYR_U64}, NULL));
    pyr_close(store);
    run_appenders(a, N);
    for (int i = 0; i < N; i++) {
        if (a[i].error[0])
            CHECK_NOTE("appender %d: %s", i, a[i].error);
        for (int j = 0; j < a[i].n; j++)
            rows += a[i].got[j].count;
    }
    OK(pyr_open(url, PYR_OPEN_READONLY, &store));
    OK(pyr_array_open(store, "log", &array));
    pyr_info info;
    OK(pyr_array_info(array, PYR_LATEST, &info));
    CHECK(info.shape[0] == rows);
    CHECK(info.latest == (pyr_version)(N * a[0].n));
    uint8_t *taken = calloc(rows + 1, 1);
    REQUIRE(taken);
    for (int i = 0; i < N; i++)
        check_appended(array, &a[i], taken, rows);
    free(taken);
    pyr_array_close(array);
    pyr_close(store);
    tmp_remove(url);
}

/* --- readers ------------------------------------------------------------- */

enum { FAR = 4000, BLOCK = 12, SPOTS = 2 * BLOCK * BLOCK };

/* Two boxes far apart, each over the corner of four chunks. */
static const uint64_t spot[2][2] = {{94, 95}, {3893, 3794}};
static const uint64_t spot_size[2] = {BLOCK, BLOCK};

typedef struct scene {
    const char *url;
    int64_t until;
    int number;
    uint64_t done;
    char error[300];
    pthread_t thread;
} scene;

static void
spots_parts(uint64_t *cells, pyr_part *parts)
{
    for (int i = 0; i < 2; i++)
        parts[i] = (pyr_part){.offset = spot[i], .size = spot_size,
                              .buf = cells + i * BLOCK * BLOCK};
}

static int
open_scene(scene *s, unsigned flags, pyr_store **store, pyr_array **array)
{
    int err = pyr_open(s->url, flags, store);
    return err < 0 ? err : pyr_array_open(*store, "field", array);
}

static void *
paint_in_thread(void *arg)
{
    scene *s = arg;
    uint64_t cells[SPOTS];
    pyr_part parts[2];
    pyr_store *store = NULL;
    pyr_array *array = NULL;
    spots_parts(cells, parts);
    int err = open_scene(s, 0, &store, &array);
    while (err == 0 && now_ns() < s->until) {
        uint64_t value = ((uint64_t)s->number << 40) + ++s->done;
        for (int i = 0; i < SPOTS; i++)
            cells[i] = value;
        err = pyr_write_list(array, parts, 2, NULL, NULL);
    }
    if (err < 0)
        snprintf(s->error, sizeof s->error, "painter: %s", pyr_errmsg());
    pyr_array_close(array);
    pyr_close(store);
    return NULL;
}

static int
paint_in_process(void *arg)
{
    scene *s = arg;
    paint_in_thread(s);
    if (s->error[0])
        printf("# %s\n", s->error);
    return s->error[0] != 0;
}

static bool
all_equal(const uint64_t *cells)
{
    for (int i = 1; i < SPOTS; i++)
        if (cells[i] != cells[0])
            return false;
    return true;
}

static uint64_t
snapshot_digest(pyr_array *array, pyr_version v, int *err)
{
    uint64_t offset[2] = {80, 80}, size[2] = {40, 40}, cells[40 * 40];
    uint64_t digest = 0;
    *err = pyr_read(array, v, offset, size, cells);
    for (int i = 0; *err == 0 && i < 40 * 40; i++)
        digest = rng_mix(digest ^ cells[i]);
    return digest;
}

static int
look_once(scene *s, pyr_array *array, rng *r, pyr_version *newest)
{
    uint64_t cells[SPOTS];
    pyr_part parts[2];
    pyr_version latest;
    spots_parts(cells, parts);
    int err = pyr_latest(array, &latest);
    if (err < 0)
        return err;
    if (latest < *newest)
        snprintf(s->error, sizeof s->error, "latest went back");
    *newest = latest;
    pyr_version which = rng_once_in(r, 2) ? PYR_LATEST
                        : rng_once_in(r, 2) ? latest
                                            : rng_below(r, latest + 1);
    err = pyr_read_list(array, which, parts, 2);
    if (err == 0 && !all_equal(cells))
        snprintf(s->error, sizeof s->error,
                 "half a write in version %" PRId64, (int64_t)which);
    return err;
}

static void *
look_in_thread(void *arg)
{
    scene *s = arg;
    rng r = rng_of(test_seed() + (uint64_t)s->number);
    pyr_store *store = NULL;
    pyr_array *array = NULL;
    pyr_version newest = 0;
    unsigned flags = s->number % 2 ? PYR_OPEN_READONLY : 0;
    int err = open_scene(s, flags, &store, &array);
    uint64_t first = err == 0 ? snapshot_digest(array, 3, &err) : 0;
    while (err == 0 && !s->error[0] && (!s->done || now_ns() < s->until)) {
        err = look_once(s, array, &r, &newest);
        if (err == 0 && snapshot_digest(array, 3, &err) != first)
            snprintf(s->error, sizeof s->error, "an old snapshot changed");
        s->done++;
    }
    if (err < 0 && !s->error[0])
        snprintf(s->error, sizeof s->error, "reader: %s", pyr_errmsg());
    pyr_array_close(array);
    pyr_close(store);
    return NULL;
}

static void
readers_never_see_half_a_write_and_old_snapshots_stay(void)
{
    enum { PAINTERS = 3, LOOKERS = 3 };
    static scene s[PAINTERS + LOOKERS];
    char url[4096];
    pyr_store *store = fresh_store(url, sizeof url);
    pyr_array *array;
    uint64_t shape[2] = {FAR, FAR}, chunk[2] = {100, 100};
    OK(pyr_create(store, "field",
                  &(pyr_spec){.ndim = 2, .shape = shape, .chunk = chunk,
                              .type = PYR_U64}, &array));
    uint64_t cells[SPOTS];
    pyr_part parts[2];
    spots_parts(cells, parts);
    for (uint64_t v = 1; v <= 5; v++) {
        for (int i = 0; i < SPOTS; i++)
            cells[i] = v;
        OK(pyr_write_list(array, parts, 2, NULL, NULL));
    }
    pyr_array_close(array);
    pyr_close(store);
    test_seed();
    pid_t pids[PAINTERS] = {0};
    int64_t until = now_ns() + (int64_t)by_scale(1500, 4000, 20000) * 1000000;
    for (int i = 0; i < PAINTERS + LOOKERS; i++) {
        s[i] = (scene){.url = url, .until = until, .number = i + 1};
        if (i < PAINTERS && !TEST_TSAN)
            pids[i] = proc_fork(paint_in_process, &s[i]);
    }
    for (int i = 0; i < PAINTERS + LOOKERS; i++)
        if (i >= PAINTERS || TEST_TSAN)
            pthread_create(&s[i].thread, NULL,
                           i < PAINTERS ? paint_in_thread : look_in_thread,
                           &s[i]);
    for (int i = 0; i < PAINTERS + LOOKERS; i++) {
        if (i >= PAINTERS || TEST_TSAN)
            pthread_join(s[i].thread, NULL);
        else
            CHECK(proc_ends_well(pids[i], BOUND_MS));
        if (s[i].error[0])
            CHECK_NOTE("%s", s[i].error);
        CHECK(i < PAINTERS || s[i].done > 0);
    }
    printf("# %" PRIu64 " looks by one reader\n", s[PAINTERS].done);
    tmp_remove(url);
}

/* --- growing under writers ----------------------------------------------- */

typedef struct grower {
    pyr_array *array;
    int number, n;
    char error[300];
    pthread_t thread;
} grower;

static void *
grow_in_thread(void *arg)
{
    grower *g = arg;
    int err = 0;
    for (int i = 0; err == 0 && i < g->n; i++) {
        uint64_t offset[2] = {(uint64_t)g->number * 3, 1}, size[2] = {3, 2};
        uint32_t cells[6], column[12];
        for (int c = 0; c < 6; c++)
            cells[c] = (uint32_t)(g->number * 1000 + i);
        for (int c = 0; c < 12; c++)
            column[c] = (uint32_t)(g->number * 1000 + i + 500000);
        if (g->number == 3)
            err = pyr_append(g->array, 1, 1, column, NULL, NULL);
        else
            err = pyr_write(g->array, offset, size, cells, NULL);
    }
    if (err < 0)
        snprintf(g->error, sizeof g->error, "%s", pyr_errmsg());
    return NULL;
}

typedef struct growth {
    model m;
    pyr_array *array;
} growth;

static int
replay_growth(void *ctx, const pyr_change *c)
{
    growth *g = ctx;
    model *m = &g->m;
    uint32_t cells[64] = {0};
    uint64_t zero[2] = {0, 0}, at;
    CHECK(c->version == m->n);
    REQUIRE(c->nparts == 1);
    pyr_part part = {.offset = c->parts[0].offset, .size = c->parts[0].size,
                     .buf = cells};
    OK(pyr_read(g->array, c->version, part.offset, part.size, cells));
    for (uint64_t i = 1; i < model_count(2, part.size); i++)
        CHECK(cells[i] == cells[0]);
    if (c->kind == PYR_KIND_APPEND)
        model_append(m, 1, part.size[1], cells, &at);
    else
        model_write(m, &part, 1);
    const model_snap *s = &m->snaps[m->n - 1];
    CHECK(memcmp(s->shape, c->shape, 16) == 0);
    uint32_t *got = malloc(s->ncells * 4);
    REQUIRE(got);
    OK(pyr_read(g->array, c->version, zero, s->shape, got));
    CHECK(memcmp(got, s->cells, s->ncells * 4) == 0);
    free(got);
    return 0;
}

static void
an_array_can_grow_while_others_write_to_it(void)
{
    char url[4096];
    pyr_store *store = fresh_store(url, sizeof url);
    pyr_array *array;
    grower g[4];
    growth whole;
    uint64_t shape[2] = {12, 4}, chunk[2] = {5, 5};
    OK(pyr_create(store, "growing",
                  &(pyr_spec){.ndim = 2, .shape = shape, .chunk = chunk,
                              .type = PYR_U32}, &array));
    for (int i = 0; i < 4; i++) {
        g[i] = (grower){.array = array, .number = i,
                        .n = (int)by_scale(60, 200, 600)};
        pthread_create(&g[i].thread, NULL, grow_in_thread, &g[i]);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(g[i].thread, NULL);
        if (g[i].error[0])
            CHECK_NOTE("%s", g[i].error);
    }
    whole.array = array;
    model_init(&whole.m, 2, shape, PYR_U32, NULL);
    OK(pyr_history(array, 1, PYR_LATEST, replay_growth, &whole));
    CHECK(whole.m.n == 4 * (size_t)g[0].n + 1);
    model_fini(&whole.m);
    pyr_array_close(array);
    pyr_close(store);
    tmp_remove(url);
}

TESTS(T(a_write_that_does_not_wait_can_be_waited_for),
      T(appenders_at_once_get_cells_of_their_own),
      T(readers_never_see_half_a_write_and_old_snapshots_stay),
      T(an_array_can_grow_while_others_write_to_it))
