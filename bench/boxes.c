/*
 * bench/boxes.c - what a small read costs, in CPU time, once data are warm.
 *
 * Boxes, rows and columns of an 8192 x 8192 f64 array in chunks of 256 x 256,
 * planes of a 512^3 f32 array in chunks of 32^3; the same places are read by
 * pyr_read() and from a mapped file of chunks (mapped.h). Then the price of
 * history (snapshot 1 against snapshot 10,000; where each version writes a
 * small box anywhere, and where it writes a chunk), what pyr_fold() gives back
 * of it, and the price of the first touch, when checksums are verified.
 */
#include "common.h"
#include "mapped.h"

#include <stdio.h>
#include <string.h>

/* One kind of box, read from both sides. */
typedef struct shape {
    const char *name;
    uint64_t size[3];
    int count; /* boxes in one repetition */
} shape;

/* An array and its twin, the mapped file. */
typedef struct twins {
    grid g;
    int ndim;
    char *url, *path;
    pyr_store *store;
    pyr_array *array;
    mapped map;
    uint8_t *buf, *check; /* a box each */
} twins;

enum { BUF = 4 << 20 };

#define SIDE ((uint64_t)bench_pick(8192, 8192, 1024)) /* of the square */
#define EDGE ((uint64_t)bench_pick(512, 512, 64))     /* of the cube */

/* --- making them --------------------------------------------------------- */

static const uint64_t *
axes(const twins *t, const uint64_t v[3])
{
    return v + 3 - t->ndim;
}

static void
open_twins(twins *t, unsigned flags)
{
    OK(pyr_open(t->url, flags, &t->store));
    OK(pyr_array_open(t->store, "a", &t->array));
    mapped_open(&t->map, t->path, &t->g);
}

static void
close_twins(twins *t)
{
    pyr_array_close(t->array);
    pyr_close(t->store);
    mapped_close(&t->map);
}

static void
create_twins(twins *t, const char *name, pyr_type type, const void *cells)
{
    uint64_t zero[3] = {0, 0, 0};
    t->url = bench_path("%s-store", name);
    t->path = bench_path("%s-file", name);
    t->buf = bench_alloc(BUF);
    t->check = bench_alloc(BUF);
    pyr_store *store = bench_store(t->url, PYR_DURABILITY_OS);
    pyr_array *array;
    OK(pyr_create(store, "a",
                  &(pyr_spec){.ndim = t->ndim,
                              .shape = axes(t, t->g.shape),
                              .chunk = axes(t, t->g.chunk),
                              .type = type},
                  &array));
    OK(pyr_write(array, zero, axes(t, t->g.shape), cells, NULL));
    pyr_array_close(array);
    pyr_close(store);
    mapped_create(t->path, &t->g, cells);
    open_twins(t, 0);
}

static void
remove_twins(twins *t)
{
    close_twins(t);
    bench_remove(t->url);
    bench_remove(t->path);
}

/* --- reading ------------------------------------------------------------- */

static void
place(const twins *t, const shape *s, uint64_t *seed, uint64_t offset[3])
{
    for (int d = 0; d < 3; d++)
        offset[d] = bench_place(seed, t->g.shape[d], s->size[d]);
}

/* CPU microseconds per box. */
static double
read_pyramid(twins *t, const shape *s, pyr_version version, uint64_t seed)
{
    uint64_t offset[3];
    bench_time start = bench_now();
    for (int i = 0; i < s->count; i++) {
        place(t, s, &seed, offset);
        OK(pyr_read(t->array, version, axes(t, offset), axes(t, s->size),
                    t->buf));
    }
    return bench_since(start).cpu * 1e6 / s->count;
}

static double
read_mapped(twins *t, const shape *s, uint64_t seed)
{
    uint64_t offset[3];
    bench_time start = bench_now();
    for (int i = 0; i < s->count; i++) {
        place(t, s, &seed, offset);
        mapped_read(&t->map, offset, s->size, t->buf);
    }
    return bench_since(start).cpu * 1e6 / s->count;
}

/* Both must give the same cells. */
static void
compare(twins *t, const shape *s, uint64_t seed)
{
    uint64_t offset[3];
    size_t bytes = (size_t)(s->size[0] * s->size[1] * s->size[2]) * t->g.cell;
    CHECK(bytes <= BUF);
    for (int i = 0; i < 10; i++) {
        place(t, s, &seed, offset);
        mapped_read(&t->map, offset, s->size, t->check);
        OK(pyr_read(t->array, 1, axes(t, offset), axes(t, s->size), t->buf));
        CHECK(memcmp(t->buf, t->check, bytes) == 0);
    }
}

static void
warm_case(twins *t, const shape *s)
{
    bench_sample pyramid = {0}, plain = {0};
    compare(t, s, 99);
    for (int rep = -1; rep < bench_pick(7, 5, 1); rep++) {
        /* repetition -1 only warms; all read the same places */
        double a = read_mapped(t, s, 7), b = read_pyramid(t, s, 1, 7);
        if (rep < 0)
            continue;
        bench_add(&plain, a);
        bench_add(&pyramid, b);
    }
    double ratio = bench_ratio(&plain, &pyramid);
    bench_row("%s|%.1f|%.1f|%.2f|<= 2.00|%s", s->name, bench_median(&plain),
              bench_median(&pyramid), ratio, bench_at_most(ratio, 2));
}

/* --- history ------------------------------------------------------------- */

/* Boxes of 64 x 64 at multiples of `step`. */
static void
make_history(twins *t, int versions, uint64_t step)
{
    uint64_t seed = 3, size[2] = {64, 64}, side = t->g.shape[1];
    double *cells = bench_alloc(64 * 64 * 8);
    for (int v = 2; v <= versions; v++) {
        pyr_version made;
        uint64_t offset[2] = {bench_place(&seed, side, 64) / step * step,
                              bench_place(&seed, side, 64) / step * step};
        bench_fill_f64(cells, 64 * 64, (uint64_t)v);
        OK(pyr_write(t->array, offset, size, cells, &made));
        CHECK(made == (pyr_version)v);
    }
    bench_free(cells, 64 * 64 * 8);
}

static void
history_case(twins *t, const shape *s, pyr_version last)
{
    bench_sample first = {0}, late = {0}, plain = {0};
    for (int rep = -1; rep < bench_pick(7, 5, 1); rep++) {
        double p = read_mapped(t, s, 7), a = read_pyramid(t, s, 1, 7),
               b = read_pyramid(t, s, last, 7);
        if (rep < 0)
            continue;
        bench_add(&plain, p);
        bench_add(&first, a);
        bench_add(&late, b);
    }
    double ratio = bench_ratio(&first, &late);
    bench_row("%s|%.1f|%.1f|%.1f|%.2f|%.2f|<= 1.10|%s", s->name,
              bench_median(&plain), bench_median(&first), bench_median(&late),
              bench_ratio(&plain, &late), ratio, bench_at_most(ratio, 1.1));
}

/* --- first touch --------------------------------------------------------- */

static void
first_touch_case(twins *t, const shape *s)
{
    bench_sample plain1 = {0}, plain2 = {0}, first = {0}, later = {0};
    for (int rep = 0; rep < bench_pick(7, 5, 1); rep++) {
        close_twins(t);
        open_twins(t, 0);
        uint64_t seed = 1000 + (uint64_t)rep;
        bench_add(&plain1, read_mapped(t, s, seed));
        bench_add(&plain2, read_mapped(t, s, seed));
        bench_add(&first, read_pyramid(t, s, 1, seed));
        bench_add(&later, read_pyramid(t, s, 1, seed));
    }
    bench_row("%s|%.1f|%.1f|%.1f|%.1f|%.2f|%.2f", s->name,
              bench_median(&plain1), bench_median(&plain2),
              bench_median(&first), bench_median(&later),
              bench_ratio(&plain1, &first), bench_ratio(&later, &first));
}

/* --- all of them --------------------------------------------------------- */

static twins
square(const char *name, uint64_t side, uint64_t chunk)
{
    twins t = {.g = {{1, side, side}, {1, chunk, chunk}, 8}, .ndim = 2};
    size_t n = (size_t)(side * side);
    double *cells = bench_alloc(n * 8);
    bench_fill_f64(cells, n, 1);
    create_twins(&t, name, PYR_F64, cells);
    bench_free(cells, n * 8);
    return t;
}

static twins
cube(void)
{
    twins t = {.g = {{EDGE, EDGE, EDGE}, {32, 32, 32}, 4}, .ndim = 3};
    size_t n = (size_t)(EDGE * EDGE * EDGE);
    float *cells = bench_alloc(n * 4);
    bench_fill_f32(cells, n, 1);
    create_twins(&t, "cube", PYR_F32, cells);
    bench_free(cells, n * 4);
    return t;
}

static void
history_table(twins *t, const char *title, int versions, const shape *shapes,
              int n)
{
    char columns[256];
    snprintf(columns, sizeof columns,
             "case|mapped us|snapshot 1 us|snapshot %d us|late/mapped|"
             "late/first|target|",
             versions);
    bench_table(title, columns);
    for (int i = 0; i < n; i++)
        history_case(t, &shapes[i], (pyr_version)versions);
}

static void
fold_store(twins *t)
{
    pyr_folded done;
    bench_time start = bench_now();
    OK(pyr_fold(t->store, NULL, 0, NULL, &done));
    bench_note("pyramid fold: %.2f s of CPU time, %.1f MiB written, "
               "%llu chunks of %llu fragments",
               bench_since(start).cpu, (double)done.written / (1 << 20),
               (unsigned long long)done.chunks,
               (unsigned long long)done.fragments);
}

static uint64_t
stored(const twins *t)
{
    pyr_status status;
    OK(pyr_store_status(t->store, &status, NULL, NULL));
    return status.data_bytes;
}

/* Read the newest snapshot until nothing is folded any more for it, in ten
 * rounds. */
static void
read_for_a_while(twins *t, const shape *s)
{
    uint64_t first = stored(t), now = first;
    bench_time start = bench_now();
    int rounds = 0;
    for (int idle = 0; idle < 10 && rounds < bench_pick(200, 200, 2); idle++) {
        uint64_t before = now;
        read_pyramid(t, s, PYR_LATEST, 1000 + (uint64_t)rounds++);
        now = stored(t);
        if (now != before)
            idle = -1;
    }
    bench_time took = bench_since(start);
    bench_note("Then %d boxes of the newest snapshot were read, in %.2f s (%.2f "
               "s of CPU time); chunks that this folded took %.1f MiB",
               rounds * s->count, took.wall, took.cpu,
               (double)(now - first) / (1 << 20));
}

/* As it was written; after it was read for a while, which folds; and after
 * all that is left was folded. */
static void
later_snapshots(twins *t, const char *title, uint64_t step,
                const shape *shapes, int n)
{
    int versions = bench_pick(10000, 2000, 50);
    char used[256], folded[256];
    snprintf(used, sizeof used, "%s, when it has been read for a while", title);
    snprintf(folded, sizeof folded, "%s, after pyramid fold", title);
    make_history(t, versions, step);
    close_twins(t);
    open_twins(t, PYR_OPEN_NO_UPKEEP);
    history_table(t, title, versions, shapes, n);
    close_twins(t);
    open_twins(t, 0);
    read_for_a_while(t, &shapes[0]);
    history_table(t, used, versions, shapes, n);
    fold_store(t);
    history_table(t, folded, versions, shapes, n);
}

int
main(int argc, char **argv)
{
    bench_begin(argc, argv);
    int many = bench_pick(4000, 2000, 20), few = bench_pick(400, 200, 4);
    const shape in_square[] = {{"100 x 100 box", {1, 100, 100}, many},
                               {"column N x 1", {1, SIDE, 1}, few},
                               {"row 1 x N", {1, 1, SIDE}, many}};
    const shape in_tiles[] = {{"100 x 100 box", {1, 100, 100}, many},
                              {"column N x 1", {1, SIDE / 4, 1}, few},
                              {"row 1 x N", {1, 1, SIDE / 4}, many}};
    const shape in_cube[] = {{"plane 1 x N x N", {1, EDGE, EDGE}, few / 2},
                             {"plane N x 1 x N", {EDGE, 1, EDGE}, few / 2},
                             {"plane N x N x 1", {EDGE, EDGE, 1}, few / 4}};
    const shape touch = {"100 x 100 box", {1, 100, 100}, many / 8};
    twins s = square("square", SIDE, 256), c = cube();
    const char *columns = "case|mapped us|pyramid us|ratio|target|";
    bench_table("Small reads, warm: CPU time of each", columns);
    for (int i = 0; i < 3; i++)
        warm_case(&s, &in_square[i]);
    for (int i = 0; i < 3; i++)
        warm_case(&c, &in_cube[i]);
    remove_twins(&c);
    bench_table("First touch: checksums verified, pages mapped; CPU time",
                "case|mapped first us|mapped later us|pyramid first us|"
                "pyramid later us|first/mapped first|first/later");
    first_touch_case(&s, &touch);
    later_snapshots(&s, "The same on an old and on a late snapshot", 1,
                    in_square, 3);
    remove_twins(&s);
    s = square("tiles", SIDE / 4, 64);
    later_snapshots(&s, "The same where each version writes a whole chunk",
                    64, in_tiles, 3);
    remove_twins(&s);
    return 0;
}
