/*
 * bench/stat.c - statistics from the index against reading the cells.
 *
 * An 8192 x 8192 f64 array in chunks of 256 x 256: pyr_stat() of all of it, of
 * boxes along chunk borders and of boxes anywhere, against pyr_read() of the
 * same box and a loop over its cells.
 */
#include "common.h"

#include <math.h>

enum { CHUNK = 256 };

#define EDGE ((uint64_t)bench_pick(8192, 8192, 2048))

typedef struct query {
    const char *name;
    uint64_t edge;  /* of the box */
    uint64_t align; /* of its corner */
    int count;
} query;

static pyr_array *
make(pyr_store *store, double *cells)
{
    pyr_array *array;
    uint64_t shape[2] = {EDGE, EDGE}, chunk[2] = {CHUNK, CHUNK};
    uint64_t zero[2] = {0, 0};
    OK(pyr_create(
        store, "a",
        &(pyr_spec){.ndim = 2, .shape = shape, .chunk = chunk, .type = PYR_F64},
        &array));
    bench_fill_f64(cells, (size_t)(EDGE * EDGE), 1);
    OK(pyr_write(array, zero, shape, cells, NULL));
    return array;
}

static void
place(const query *q, uint64_t *seed, uint64_t offset[2])
{
    for (int d = 0; d < 2; d++) {
        uint64_t at = bench_place(seed, EDGE, q->edge);
        offset[d] = at - at % q->align;
    }
}

typedef struct answer {
    double sum, min, max;   /* of the last box */
    uint64_t nodes, chunks; /* read, in all */
    double us, cpu;         /* per box */
} answer;

static answer
by_index(pyr_array *array, const query *q, uint64_t seed)
{
    answer a = {0};
    uint64_t offset[2], size[2] = {q->edge, q->edge};
    bench_time start = bench_now();
    for (int i = 0; i < q->count; i++) {
        pyr_stats s;
        place(q, &seed, offset);
        OK(pyr_stat(array, PYR_LATEST, offset, size, 0, &s));
        a.sum = s.sum, a.min = s.min, a.max = s.max;
        a.nodes += s.nodes_read, a.chunks += s.chunks_read;
    }
    bench_time t = bench_since(start);
    a.us = t.wall * 1e6 / q->count, a.cpu = t.cpu * 1e6 / q->count;
    return a;
}

static void
sum_up(const double *cells, size_t n, answer *a)
{
    double sum = 0, min = INFINITY, max = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        sum += cells[i];
        min = cells[i] < min ? cells[i] : min;
        max = cells[i] > max ? cells[i] : max;
    }
    a->sum = sum, a->min = min, a->max = max;
}

static answer
by_cells(pyr_array *array, const query *q, double *buf, uint64_t seed)
{
    answer a = {0};
    uint64_t offset[2], size[2] = {q->edge, q->edge};
    bench_time start = bench_now();
    for (int i = 0; i < q->count; i++) {
        place(q, &seed, offset);
        OK(pyr_read(array, PYR_LATEST, offset, size, buf));
        sum_up(buf, (size_t)(q->edge * q->edge), &a);
    }
    bench_time t = bench_since(start);
    a.us = t.wall * 1e6 / q->count, a.cpu = t.cpu * 1e6 / q->count;
    return a;
}

static void
stat_case(pyr_array *array, const query *q, double *buf)
{
    bench_sample index = {0}, cells = {0}, cpu = {0};
    answer a = {0};
    for (int rep = -1; rep < bench_pick(4, 3, 1); rep++) {
        a = by_index(array, q, 7);
        answer b = by_cells(array, q, buf, 7);
        CHECK(a.min == b.min && a.max == b.max &&
              fabs(a.sum - b.sum) <= 1e-9 * fabs(b.sum));
        if (rep < 0)
            continue;
        bench_add(&index, a.us);
        bench_add(&cells, b.us);
        bench_add(&cpu, a.cpu);
    }
    double chunks = (double)(q->edge * q->edge) / (CHUNK * CHUNK);
    bench_row("%s|%.1f|%.1f|%.0f|%.1f|%.1f|%.0f|%.1f", q->name,
              bench_median(&index), bench_median(&cpu), bench_median(&cells),
              (double)a.nodes / q->count, (double)a.chunks / q->count, chunks,
              bench_ratio(&index, &cells));
}

int
main(int argc, char **argv)
{
    bench_begin(argc, argv);
    const query queries[] = {
        {"all of it", EDGE, 1, 2},
        {"a quarter, chunk borders", EDGE / 2, CHUNK, 4},
        {"a quarter, anywhere", EDGE / 2, 1, 4},
        {"1000 x 1000, anywhere", 1000, 1, 20},
        {"100 x 100, anywhere", 100, 1, bench_pick(500, 500, 20)},
    };
    pyr_store *store = bench_store(bench_path("store"), PYR_DURABILITY_OS);
    double *buf = bench_alloc((size_t)(EDGE * EDGE * 8));
    pyr_array *array = make(store, buf);
    bench_table("Statistics: from the index, and by reading the cells",
                "box|index us|index CPU us|cells us|nodes read|chunks read|"
                "chunks in box|times faster");
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        stat_case(array, &queries[i], buf);
    pyr_array_close(array);
    pyr_close(store);
    return 0;
}
