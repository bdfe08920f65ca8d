/*
 * api/storage_test.c - what is stored and where: little, and in all places.
 */
#include "api/fixture.h"

/* --- what is stored ------------------------------------------------------ */

static void
fill_and_constant_chunks_take_no_storage(void)
{
    uint64_t shape[2] = {512, 512}, chunk[2] = {128, 128};
    uint64_t mid[2] = {128, 256}, size[2] = {256, 128}, n = 512 * 512;
    double *cells = malloc(n * 8), fill = 3.25, got;
    pyr_array *a;
    pyr_stats s;
    REQUIRE(cells);
    set_up();
    OK(pyr_create(store, "a",
                  &(pyr_spec){.ndim = 2, .shape = shape, .chunk = chunk,
                              .type = PYR_F64, .fill = &fill}, &a));
    uint64_t before = data_bytes();
    for (uint64_t i = 0; i < n; i++)
        cells[i] = fill;
    OK(pyr_write(a, zero, shape, cells, NULL));
    CHECK(data_bytes() == before);
    for (uint64_t i = 0; i < n; i++)
        cells[i] = -7;
    OK(pyr_write(a, mid, size, cells, NULL));
    CHECK(data_bytes() == before);
    OK(pyr_read(a, 2, (uint64_t[2]){383, 383}, (uint64_t[2]){1, 1}, &got));
    CHECK(got == -7);
    OK(pyr_read(a, 2, (uint64_t[2]){383, 384}, (uint64_t[2]){1, 1}, &got));
    CHECK(got == 3.25);
    OK(pyr_stat(a, 2, zero, shape, 0, &s));
    CHECK(s.not_fill == 256 * 128 && s.chunks_read == 0);
    cells[5] = 1; /* now the first chunk is of two values */
    OK(pyr_write(a, zero, chunk, cells, NULL));
    CHECK(data_bytes() > before);
    free(cells);
    pyr_array_close(a);
    tear_down();
}

/* Small fragments are stored with the index, large ones in segments. */
static void
a_write_stores_little_more_than_its_cells(void)
{
    uint64_t shape[2] = {1024, 1024}, small[2] = {10, 10};
    uint64_t large[2] = {70, 1000};
    uint8_t *cells = random_bytes(1024 * 1024), got[100];
    pyr_array *a;
    set_up();
    OK(pyr_create(store, "a", &(pyr_spec){.ndim = 2, .shape = shape,
                                          .type = PYR_U8}, &a));
    OK(pyr_write(a, zero, shape, cells, NULL));
    uint64_t before = data_bytes(), index = metadata_bytes();
    CHECK(before >= 1024 * 1024 && before < 1200 * 1024);
    for (uint64_t i = 0; i < 8; i++)
        OK(pyr_write(a, (uint64_t[2]){i * 100, i * 37}, small, cells, NULL));
    CHECK(data_bytes() == before);
    CHECK(metadata_bytes() - index < 8 * 32768);
    OK(pyr_read(a, PYR_LATEST, (uint64_t[2]){700, 7 * 37}, small, got));
    CHECK(memcmp(got, cells, 100) == 0);
    index = metadata_bytes();
    for (uint64_t i = 0; i < 8; i++)
        OK(pyr_write(a, (uint64_t[2]){i * 100, i}, large, cells, NULL));
    CHECK(data_bytes() - before >= 8 * 70000);
    CHECK(data_bytes() - before < 8 * (70000 + 3 * 4096));
    CHECK(metadata_bytes() - index < 8 * 32768);
    free(cells);
    pyr_array_close(a);
    tear_down();
}

/* Each becomes a fragment of its own; they are put together. */
static void
small_boxes_of_one_write_lie_side_by_side(void)
{
    enum { BOXES = 20, EDGE = 44, CHUNK = 256 };
    uint64_t shape[2] = {CHUNK, BOXES * CHUNK}, chunk[2] = {CHUNK, CHUNK};
    uint64_t size[2] = {EDGE, EDGE}, at[BOXES][2];
    uint8_t *cells = random_bytes(BOXES * EDGE * EDGE), got[EDGE * EDGE];
    pyr_part parts[BOXES];
    pyr_array *a;
    set_up();
    OK(pyr_create(store, "a", &(pyr_spec){.ndim = 2, .shape = shape,
                                          .chunk = chunk, .type = PYR_U8}, &a));
    for (int i = 0; i < BOXES; i++) {
        at[i][0] = 7;
        at[i][1] = (uint64_t)i * CHUNK + 9;
        parts[i] = (pyr_part){.offset = at[i], .size = size,
                              .buf = cells + i * EDGE * EDGE};
    }
    uint64_t before = data_bytes();
    OK(pyr_write_list(a, parts, BOXES, NULL, NULL));
    uint64_t more = data_bytes() - before;
    CHECK(more >= BOXES * EDGE * EDGE);
    CHECK(more < BOXES * (EDGE * EDGE + 512) + 8192); /* and a segment's head */
    for (int i = 0; i < BOXES; i++) {
        OK(pyr_read(a, PYR_LATEST, at[i], size, got));
        CHECK(memcmp(got, cells + i * EDGE * EDGE, sizeof got) == 0);
    }
    free(cells);
    pyr_array_close(a);
    tear_down();
}

/* Batches that are given up, of boxes whose fragments fill no page. */
static void
what_is_not_published_takes_no_space(void)
{
    static const uint64_t sizes[] = {2000, 5000, 70000};
    uint64_t shape[1] = {1 << 20};
    uint8_t *cells = random_bytes(1 << 20);
    pyr_array *a;
    set_up();
    OK(pyr_create(store, "a", &(pyr_spec){.ndim = 1, .shape = shape,
                                          .chunk = (uint64_t[1]){4096},
                                          .type = PYR_U8}, &a));
    OK(pyr_write(a, zero, (uint64_t[1]){100000}, cells, NULL));
    uint64_t before = data_bytes();
    for (int i = 0; i < 12; i++) {
        pyr_batch *batch;
        uint64_t size = sizes[i % 3], n = 200000 / size;
        OK(pyr_batch_begin(a, &batch));
        for (uint64_t k = 0; k < n; k++) /* most of them across two chunks */
            OK(pyr_batch_write(batch, (uint64_t[1]){k * size + 3000}, &size,
                               cells + k));
        pyr_batch_abort(batch);
    }
    CHECK(data_bytes() <= before + 4 * 4096);
    free(cells);
    pyr_array_close(a);
    tear_down();
}

static void
a_clone_costs_one_record(void)
{
    uint64_t shape[2] = {1024, 1024};
    uint8_t *cells = random_bytes(1024 * 1024), got = 0;
    pyr_array *a, *c;
    set_up();
    OK(pyr_create(store, "a", &(pyr_spec){.ndim = 2, .shape = shape,
                                          .type = PYR_U8}, &a));
    OK(pyr_write(a, zero, shape, cells, NULL));
    uint64_t before = data_bytes();
    OK(pyr_clone(a, 1, "c", &c));
    CHECK(data_bytes() == before);
    OK(pyr_write(a, zero, (uint64_t[2]){1, 1}, "\1", NULL));
    OK(pyr_write(c, zero, (uint64_t[2]){1, 1}, "\2", NULL));
    OK(pyr_read(a, PYR_LATEST, zero, (uint64_t[2]){1, 1}, &got));
    CHECK(got == 1);
    OK(pyr_read(c, PYR_LATEST, zero, (uint64_t[2]){1, 1}, &got));
    CHECK(got == 2);
    OK(pyr_read(c, 0, zero, (uint64_t[2]){1, 1}, &got));
    CHECK(got == cells[0]);
    free(cells);
    pyr_array_close(a);
    pyr_array_close(c);
    tear_down();
}

static void
compression_shrinks_what_is_stored(void)
{
    static const char *const names[] = {"none", "lz4", "zstd"};
    uint64_t shape[2] = {1000, 1000}, chunk[2] = {500, 500}, used[3];
    uint64_t n = 1000000;
    int32_t *cells = malloc(n * 4), *got = malloc(n * 4);
    uint8_t *noise = random_bytes(n);
    REQUIRE(cells && got);
    for (uint64_t i = 0; i < n; i++)
        cells[i] = (int32_t)(i / 1000 * 256 + noise[i]); /* 8 bits to store */
    set_up();
    for (int codec = 0; codec < 3; codec++) {
        pyr_array *a;
        pyr_info info;
        OK(pyr_create(store, names[codec],
                      &(pyr_spec){.ndim = 2, .shape = shape, .chunk = chunk,
                                  .type = PYR_I32, .codec = (pyr_codec)codec,
                                  .level = codec ? 3 : 0}, &a));
        uint64_t before = data_bytes();
        OK(pyr_write(a, zero, shape, cells, NULL));
        used[codec] = data_bytes() - before;
        OK(pyr_write(a, (uint64_t[2]){77, 3}, (uint64_t[2]){150, 200}, cells,
                     NULL));
        memset(got, 1, n * 4);
        OK(pyr_read(a, 1, zero, shape, got));
        CHECK(memcmp(got, cells, n * 4) == 0);
        OK(pyr_array_info(a, PYR_LATEST, &info));
        CHECK(info.codec == (pyr_codec)codec);
        pyr_array_close(a);
    }
    printf("# %d bytes as they are, %d lz4, %d zstd\n", (int)used[0],
           (int)used[1], (int)used[2]);
    CHECK(used[0] >= n * 4);
    CHECK(used[1] < used[0] / 2 && used[2] < used[0] / 2);
    CHECK(used[1] >= n && used[2] >= n); /* not hidden elsewhere */
    free(noise);
    free(cells);
    free(got);
    tear_down();
}

/* --- data directories ---------------------------------------------------- */

typedef struct dirs {
    int n;
    uint64_t bytes[4], segments[4];
    char path[4][4096];
    int error[4];
} dirs;

static int
note_dir(void *ctx, const pyr_data_dir *d)
{
    dirs *all = ctx;
    int i = all->n++;
    if (i < 4) {
        all->bytes[i] = d->data_bytes;
        all->segments[i] = d->segments;
        all->error[i] = d->error;
        snprintf(all->path[i], sizeof all->path[i], "%s", d->path);
        CHECK(d->total_bytes > 0 && d->free_bytes <= d->total_bytes);
    }
    return 0;
}

static void *
write_much(void *arg)
{
    uint64_t size[1] = {1 << 20}, offset[1];
    uint8_t *cells = arg;
    pyr_store *s;
    pyr_array *a;
    if (pyr_open(url, 0, &s) < 0 || pyr_array_open(s, "a", &a) < 0)
        return cells;
    for (uint64_t i = 0; i < 4; i++) {
        offset[0] = i << 20;
        if (pyr_write(a, offset, size, cells, NULL) < 0)
            return cells;
    }
    pyr_array_close(a);
    pyr_close(s);
    return NULL;
}

static void
several_data_directories_are_all_used(void)
{
    char first[4096], second[4096];
    snprintf(url, sizeof url, "%s", tmp_fresh("spread"));
    snprintf(first, sizeof first, "%s", tmp_fresh("disk"));
    snprintf(second, sizeof second, "%s", tmp_fresh("disk"));
    REQUIRE(mkdir(first, 0777) == 0 && mkdir(second, 0777) == 0);
    const char *data[] = {first, second, NULL};
    OK(pyr_open_with(url, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS,
                                          .data = data}, &store));
    uint64_t shape[1] = {4 << 20};
    pyr_array *a;
    OK(pyr_create(store, "a", &(pyr_spec){.ndim = 1, .shape = shape,
                                          .type = PYR_U8}, &a));
    uint8_t *cells = random_bytes(1 << 20), *got = malloc(4 << 20);
    REQUIRE(got);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, write_much, cells);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        CHECK(!failed);
    }
    dirs all = {0};
    pyr_status status;
    OK(pyr_store_status(store, &status, note_dir, &all));
    REQUIRE(all.n == 2);
    CHECK(all.bytes[0] > 0 && all.bytes[1] > 0);
    CHECK(all.segments[0] > 0 && all.segments[1] > 0);
    CHECK(all.error[0] == 0 && all.error[1] == 0);
    CHECK(all.bytes[0] + all.bytes[1] == status.data_bytes);
    CHECK(strstr(all.path[0], "disk") && strstr(all.path[1], "disk"));
    OK(pyr_read(a, PYR_LATEST, zero, shape, got));
    for (int i = 0; i < 4; i++)
        CHECK(memcmp(got + ((size_t)i << 20), cells, 1 << 20) == 0);
    free(cells);
    free(got);
    pyr_array_close(a);
    pyr_close(store);
    /* It knows where they are when it is opened again. */
    OK(pyr_open(url, PYR_OPEN_READONLY, &store));
    OK(pyr_array_open(store, "a", &a));
    uint8_t byte;
    OK(pyr_read(a, 1, zero, (uint64_t[1]){1}, &byte));
    pyr_array_close(a);
    tear_down();
}

/* --- memory --------------------------------------------------------------- */

/* The most that this process ever had, in KiB. */
static long
peak(void)
{
    char line[256];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    REQUIRE(f);
    while (fgets(line, sizeof line, f) &&
           sscanf(line, "VmHWM: %ld", &kib) != 1)
        ;
    fclose(f);
    return kib;
}

/* Each worker presses one chunk at a time, however little comes out of it. (A
 * sanitizer keeps what is freed, so only the cells count there.) */
static void
chunks_are_pressed_one_at_a_time(void)
{
    enum { CHUNK = 2 << 20, CHUNKS = 24 };
    uint64_t shape[1] = {(uint64_t)CHUNK * CHUNKS}, chunk[1] = {CHUNK};
    int32_t *cells = malloc(shape[0] * sizeof *cells), last;
    pyr_array *a;
    REQUIRE(cells);
    set_up();
    OK(pyr_create(store, "a",
                  &(pyr_spec){.ndim = 1, .shape = shape, .chunk = chunk,
                              .type = PYR_I32, .codec = PYR_CODEC_ZSTD}, &a));
    for (uint64_t i = 0; i < shape[0]; i++)
        cells[i] = (int32_t)(i / 100000);
    long before = peak();
    OK(pyr_write(a, zero, shape, cells, NULL));
    long grown = peak() - before;
    CHECK(data_bytes() < 4 << 20);
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
    if (grown > 120 << 10) /* four workers have two copies of 8 MiB each */
        CHECK_NOTE("writing took %ld KiB of memory", grown);
#endif
    OK(pyr_read(a, PYR_LATEST, (uint64_t[1]){shape[0] - 1},
                (uint64_t[1]){1}, &last));
    CHECK(last == cells[shape[0] - 1] && grown >= 0);
    free(cells);
    pyr_array_close(a);
    tear_down();
}

TESTS(T(fill_and_constant_chunks_take_no_storage),
      T(a_write_stores_little_more_than_its_cells),
      T(small_boxes_of_one_write_lie_side_by_side),
      T(what_is_not_published_takes_no_space),
      T(a_clone_costs_one_record), T(compression_shrinks_what_is_stored),
      T(chunks_are_pressed_one_at_a_time),
      T(several_data_directories_are_all_used))
