/*
 * bench/compute.c - functions sent to the data, against plain loops.
 *
 * An array of doubles in chunks of 1 MiB, warm in the page cache. pyr_compute()
 * makes a version of it; the plain loop reads a file of the same cells by
 * pread(), computes, and writes another file by pwrite(), a MiB at a time and
 * with as many threads. It keeps no versions, no checksums, no summaries. NumPy
 * has the same cells in memory, and keeps nothing (peers/expression.py, by
 * $BENCH_PYTHON). Then reductions, against reading the cells.
 */
#include "common.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHUNK = 1 << 17, CHUNK_BYTES = 8 * CHUNK, MAX_THREADS = 4 };

typedef void loop_fn(double *cells, size_t n);

typedef struct bench_function {
    const char *text;
    loop_fn *loop;
    double target; /* of the plain loop's speed */
} bench_function;

static void
fahrenheit(double *cells, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cells[i] = cells[i] * 1.8 + 32;
}

static void
ten_operators(double *cells, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double x = cells[i];
        cells[i] = (x * 1.5 - 2) * (x + 3) + x * x / (fabs(x) + 1) - 0.25;
    }
}

/* --- the plain loop ------------------------------------------------------ */

typedef struct hand {
    pthread_t thread;
    loop_fn *loop;
    int from, to;
    uint64_t first, last; /* chunks */
} hand;

static void *
work(void *ctx)
{
    hand *h = ctx;
    double *cells = bench_alloc(CHUNK_BYTES);
    for (uint64_t c = h->first; c < h->last; c++) {
        bench_pread(h->from, cells, CHUNK_BYTES, c * CHUNK_BYTES);
        h->loop(cells, CHUNK);
        bench_pwrite(h->to, cells, CHUNK_BYTES, c * CHUNK_BYTES);
    }
    bench_free(cells, CHUNK_BYTES);
    return NULL;
}

static int
threads(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : (int)n;
}

static bench_time
by_loop(const bench_function *f, int from, uint64_t chunks)
{
    hand hands[MAX_THREADS];
    int n = threads(), to;
    char *path = bench_path("computed");
    bench_time start = bench_now();
    SYS(to = open(path, O_RDWR | O_CREAT, 0600));
    for (int i = 0; i < n; i++) {
        hands[i] = (hand){.loop = f->loop,
                          .from = from,
                          .to = to,
                          .first = chunks * (uint64_t)i / (uint64_t)n,
                          .last = chunks * (uint64_t)(i + 1) / (uint64_t)n};
        CHECK(pthread_create(&hands[i].thread, NULL, work, &hands[i]) == 0);
    }
    for (int i = 0; i < n; i++)
        pthread_join(hands[i].thread, NULL);
    bench_time t = bench_since(start);
    close(to);
    return t;
}

/* --- NumPy --------------------------------------------------------------- */

typedef struct peer {
    FILE *to, *from;
    pid_t pid;
} peer;

static void
peer_begin(peer *p, const char *text, const char *cells)
{
    const char *python = getenv("BENCH_PYTHON"), *peers = getenv("BENCH_PEERS");
    int to[2], from[2];
    char script[4096], line[64] = "";
    CHECK(python && peers);
    snprintf(script, sizeof script, "%s/expression.py", peers);
    SYS(pipe2(to, O_CLOEXEC));
    SYS(pipe2(from, O_CLOEXEC));
    SYS(p->pid = fork());
    if (p->pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        execlp(python, python, script, text, cells, (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    p->to = fdopen(to[1], "w");
    p->from = fdopen(from[0], "r");
    CHECK(p->to && p->from && fgets(line, sizeof line, p->from));
    CHECK(strcmp(line, "ready\n") == 0);
}

static bench_time
by_peer(peer *p, double *cell)
{
    bench_time t;
    CHECK(fputs("go\n", p->to) >= 0 && fflush(p->to) == 0);
    CHECK(fscanf(p->from, "%lf %lf %la", &t.wall, &t.cpu, cell) == 3);
    return t;
}

static void
peer_end(peer *p)
{
    fclose(p->to);
    fclose(p->from);
    waitpid(p->pid, NULL, 0);
}

/* --- pyramid ------------------------------------------------------------- */

static bench_time
by_pyramid(const bench_function *f, pyr_array *array, uint64_t cells,
           double *cell)
{
    uint64_t zero = 0, at = cells / 3;
    pyr_version made;
    double before, after;
    bench_time start = bench_now();
    OK(pyr_compute(array, 1, &zero, &cells, f->text, &made));
    bench_time t = bench_since(start);
    OK(pyr_read(array, 1, &at, &(uint64_t){1}, &before));
    OK(pyr_read(array, made, &at, &(uint64_t){1}, &after));
    f->loop(&before, 1);
    CHECK(before == after);
    *cell = after;
    return t;
}

/* What was computed is not needed any more; the next round begins as this one
 * did. */
static void
clean_up(pyr_store *store, pyr_array *array)
{
    uint64_t zero = 0, forgotten;
    pyr_reclaimed gone;
    OK(pyr_compute(array, 0, &zero, &zero, "x", NULL)); /* the newest stays */
    OK(pyr_forget(array, 2, PYR_LATEST, 1, 0, &forgotten));
    OK(pyr_reclaim(store, NULL, &gone));
    bench_remove(bench_path("computed"));
}

static void
compute_case(const bench_function *f, pyr_store *store, pyr_array *array,
             uint64_t cells, int from)
{
    bench_sample loop = {0}, pyramid = {0}, loop_cpu = {0}, cpu = {0};
    for (int rep = -1; rep < bench_pick(4, 3, 1); rep++) {
        bench_time a = {0}, b = {0};
        double cell;
        for (int side = 0; side < 2; side++) /* who is first finds more room */
            if ((rep + side) % 2 == 0)
                a = by_loop(f, from, cells / CHUNK);
            else
                b = by_pyramid(f, array, cells, &cell);
        clean_up(store, array);
        if (rep < 0)
            continue;
        bench_add(&loop, a.wall * 1e3);
        bench_add(&pyramid, b.wall * 1e3);
        bench_add(&loop_cpu, a.cpu * 1e3);
        bench_add(&cpu, b.cpu * 1e3);
    }
    double ratio = bench_ratio(&pyramid, &loop);
    bench_row("%s|%.0f|%.0f|%.0f|%.0f|%.2f|%s", f->text, bench_median(&loop),
              bench_median(&loop_cpu), bench_median(&pyramid),
              bench_median(&cpu), ratio, bench_at_least(ratio, f->target));
}

static void
numpy_case(const bench_function *f, pyr_store *store, pyr_array *array,
           uint64_t cells)
{
    bench_sample numpy = {0}, pyramid = {0}, numpy_cpu = {0}, cpu = {0};
    peer p;
    peer_begin(&p, f->text, bench_path("cells"));
    for (int rep = -1; rep < bench_pick(4, 3, 1); rep++) {
        double theirs = 0, ours = 0;
        bench_time a = {0}, b = {0};
        for (int side = 0; side < 2; side++)
            if ((rep + side) % 2 == 0)
                a = by_peer(&p, &theirs);
            else
                b = by_pyramid(f, array, cells, &ours);
        clean_up(store, array);
        CHECK(fabs(theirs - ours) <= 1e-12 * fabs(ours));
        if (rep < 0)
            continue;
        bench_add(&numpy, a.wall * 1e3);
        bench_add(&pyramid, b.wall * 1e3);
        bench_add(&numpy_cpu, a.cpu * 1e3);
        bench_add(&cpu, b.cpu * 1e3);
    }
    peer_end(&p);
    double ratio = bench_ratio(&pyramid, &numpy);
    bench_row("%s|%.0f|%.0f|%.0f|%.0f|%.2f|%s", f->text, bench_median(&numpy),
              bench_median(&numpy_cpu), bench_median(&pyramid),
              bench_median(&cpu), ratio, bench_at_least(ratio, 3));
}

/* --- reductions ---------------------------------------------------------- */

static double
mean_of(const double *cells, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += cells[i];
    return sum / (double)n;
}

static void
reduce_case(const char *text, pyr_array *array, uint64_t cells, double *buf,
            double target)
{
    bench_sample reduce = {0}, read = {0};
    uint64_t zero = 0;
    pyr_value v;
    for (int rep = -1; rep < 3; rep++) {
        bench_time start = bench_now();
        OK(pyr_reduce(array, 1, &zero, &cells, text, &v));
        bench_time a = bench_since(start);
        start = bench_now();
        OK(pyr_read(array, 1, &zero, &cells, buf));
        double mean = mean_of(buf, (size_t)cells);
        bench_time b = bench_since(start);
        CHECK(fabs(v.real - mean) <= 1e-9 * fabs(mean) + 1e-9);
        if (rep < 0)
            continue;
        bench_add(&reduce, a.wall * 1e3);
        bench_add(&read, b.wall * 1e3);
    }
    double ratio = bench_ratio(&reduce, &read);
    bench_row("%s|%.3f|%.1f|%.1f|%.1f|%s", text, bench_median(&reduce),
              bench_median(&read), (double)v.bytes_read / 1048576, ratio,
              bench_at_least(ratio, target));
}

/* --- boxes in two dimensions --------------------------------------------- */

enum { PLANE_CHUNK = 256 };

/* Cells of the box in chunks that its edge cuts. */
static uint64_t
cells_cut(const uint64_t at[2], const uint64_t size[2])
{
    uint64_t whole = 1;
    for (int d = 0; d < 2; d++) {
        uint64_t first = (at[d] + PLANE_CHUNK - 1) / PLANE_CHUNK;
        uint64_t end = (at[d] + size[d]) / PLANE_CHUNK;
        whole *= end > first ? (end - first) * PLANE_CHUNK : 0;
    }
    return size[0] * size[1] - whole;
}

static void
box_case(pyr_array *plane, uint64_t side, double *buf)
{
    bench_sample reduce = {0}, read = {0}, part = {0};
    uint64_t dice = 5, size[2] = {side / 2 + 3, side / 2 + 5};
    for (int rep = -1; rep < bench_pick(20, 10, 2); rep++) {
        uint64_t at[2] = {bench_place(&dice, side, size[0]),
                          bench_place(&dice, side, size[1])};
        pyr_value v;
        bench_time start = bench_now();
        OK(pyr_reduce(plane, PYR_LATEST, at, size, "mean(x)", &v));
        bench_time a = bench_since(start);
        start = bench_now();
        OK(pyr_read(plane, PYR_LATEST, at, size, buf));
        double mean = mean_of(buf, (size_t)(size[0] * size[1]));
        bench_time b = bench_since(start);
        CHECK(fabs(v.real - mean) <= 1e-9 * fabs(mean) + 1e-9);
        CHECK(v.bytes_read == 8 * cells_cut(at, size));
        if (rep < 0)
            continue;
        bench_add(&reduce, a.wall * 1e3);
        bench_add(&read, b.wall * 1e3);
        bench_add(&part, (double)v.bytes_read /
                             (double)(8 * size[0] * size[1]));
    }
    bench_row("mean(x), %llu x %llu|%.3f|%.1f|%.1f|%.2f",
              (unsigned long long)size[0], (unsigned long long)size[1],
              bench_median(&reduce), bench_median(&read),
              bench_ratio(&reduce, &read), bench_median(&part));
}

static void
box_cases(pyr_store *store, double *buf)
{
    uint64_t side = (uint64_t)bench_pick(8192, 4096, 700), zero[2] = {0, 0};
    uint64_t shape[2] = {side, side};
    pyr_array *plane;
    OK(pyr_create(store, "plane",
                  &(pyr_spec){.ndim = 2,
                              .shape = shape,
                              .chunk = (uint64_t[2]){PLANE_CHUNK, PLANE_CHUNK},
                              .type = PYR_F64},
                  &plane));
    OK(pyr_write(plane, zero, shape, buf, NULL));
    bench_table("Means of random boxes in two dimensions: cells are read of "
                "chunks that the edge cuts, and of no others",
                "function|reduce ms|read and loop ms|times faster|"
                "part of the cells that is read");
    box_case(plane, side, buf);
    pyr_array_close(plane);
}

int
main(int argc, char **argv)
{
    static const bench_function functions[] = {
        {"x*1.8 + 32", fahrenheit, 0.7},
        {"(x*1.5 - 2)*(x + 3) + x*x/(abs(x) + 1) - 0.25", ten_operators, 0.5},
    };
    bench_begin(argc, argv);
    uint64_t cells = (uint64_t)bench_pick(1024, 128, 4) << 17, zero = 0;
    pyr_store *store = bench_store(bench_path("store"), PYR_DURABILITY_OS);
    pyr_array *array;
    double *buf = bench_alloc((size_t)cells * 8);
    int from;
    bench_fill_f64(buf, (size_t)cells, 1);
    OK(pyr_create(store, "a",
                  &(pyr_spec){.ndim = 1,
                              .shape = &cells,
                              .chunk = (uint64_t[1]){CHUNK},
                              .type = PYR_F64},
                  &array));
    OK(pyr_write(array, &zero, &cells, buf, NULL));
    SYS(from = open(bench_path("cells"), O_RDWR | O_CREAT, 0600));
    for (uint64_t c = 0; c < cells / CHUNK; c++)
        bench_pwrite(from, buf + c * CHUNK, CHUNK_BYTES, c * CHUNK_BYTES);

    bench_table("Functions of all cells, warm",
                "function|loop ms|loop CPU ms|pyramid ms|pyramid CPU ms|"
                "speed, loop = 1|target");
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        compute_case(&functions[i], store, array, cells, from);
    if (getenv("BENCH_PYTHON")) {
        bench_table("A function of all cells, and NumPy on the same cells in "
                    "memory",
                    "function|NumPy ms|NumPy CPU ms|pyramid ms|"
                    "pyramid CPU ms|times faster|target");
        numpy_case(&functions[1], store, array, cells);
    }
    bench_table("Reductions of all cells, and reading them",
                "function|reduce ms|read and loop ms|MiB read|times faster|"
                "target");
    reduce_case("mean(x)", array, cells, buf, bench_pick(1000, 100, 1));
    reduce_case("mean(x + 0)", array, cells, buf, 1);
    bench_fill_f64(buf, (size_t)cells, 2);
    box_cases(store, buf);
    pyr_array_close(array);
    pyr_close(store);
    return 0;
}
