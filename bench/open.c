/*
 * bench/open.c - the price of coming: opening a store and reading one cell,
 * and the memory of a reader that stays.
 *
 * The opener is this program, run anew as a process of its own many times; an
 * empty process (the same program, same libraries, which returns at once) is
 * subtracted. CPU time is what the system charges to the children.
 */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHUNK = 256, BOX = 100 };

/* --- the reader in its own process --------------------------------------- */

/* Prints what it cost as seen from inside: CPU and wall microseconds. */
static int
read_one_cell(const char *url)
{
    pyr_store *store;
    pyr_array *array;
    double cell;
    uint64_t offset[2] = {123, 200}, size[2] = {1, 1};
    bench_time start = bench_now();
    OK(pyr_open(url, PYR_OPEN_READONLY, &store));
    OK(pyr_array_open(store, "a", &array));
    OK(pyr_read(array, PYR_LATEST, offset, size, &cell));
    pyr_array_close(array);
    pyr_close(store);
    bench_time t = bench_since(start);
    printf("%.3f %.3f\n", t.cpu * 1e6, t.wall * 1e6);
    return 0;
}

/* A line of /proc/self/status, in KiB. */
static long
status_kib(const char *name)
{
    char line[256];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "r");
    CHECK(f);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = atol(line + strlen(name));
    fclose(f);
    return kib;
}

static void
read_boxes(pyr_array *array, int count, uint64_t *seed)
{
    static double box[BOX * BOX];
    uint64_t size[2] = {BOX, BOX};
    pyr_info info;
    OK(pyr_array_info(array, PYR_LATEST, &info));
    for (int i = 0; i < count; i++) {
        uint64_t offset[2] = {bench_place(seed, info.shape[0], BOX),
                              bench_place(seed, info.shape[1], BOX)};
        OK(pyr_read(array, PYR_LATEST, offset, size, box));
    }
}

/* Prints anonymous and file-backed KiB after 0, 100, ... boxes. */
static int
read_and_weigh(const char *url)
{
    pyr_store *store;
    pyr_array *array;
    uint64_t seed = 5;
    printf("%ld %ld", status_kib("RssAnon:"), status_kib("RssFile:"));
    OK(pyr_open(url, PYR_OPEN_READONLY, &store));
    OK(pyr_array_open(store, "a", &array));
    for (int count = 100, done = 0; count <= 100000; count *= 10) {
        read_boxes(array, count - done, &seed);
        done = count;
        printf(" %ld %ld", status_kib("RssAnon:"), status_kib("RssFile:"));
    }
    putchar('\n');
    pyr_array_close(array);
    pyr_close(store);
    return 0;
}

/* --- running it ---------------------------------------------------------- */

/* Run ourselves with two arguments; returns CPU seconds, fills `out`. */
static double
run(const char *verb, const char *url, char *out, int room)
{
    int fd[2];
    struct rusage used;
    int status;
    SYS(pipe(fd));
    fflush(stdout);
    pid_t pid = fork();
    SYS(pid);
    if (pid == 0) {
        dup2(fd[1], STDOUT_FILENO);
        execl("/proc/self/exe", "open", verb, url, (char *)NULL);
        _exit(127);
    }
    close(fd[1]);
    FILE *f = fdopen(fd[0], "r");
    if (!fgets(out, room, f))
        out[0] = '\0';
    fclose(f);
    SYS(wait4(pid, &status, 0, &used));
    CHECK(status == 0);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

static void
open_case(const char *name, const char *url)
{
    bench_sample extra = {0}, empty = {0}, inside = {0}, wall = {0};
    char line[256];
    for (int rep = 0; rep < bench_pick(9, 5, 1); rep++) {
        double full = 0, none = 0, cpu = 0, took = 0;
        int n = bench_pick(20, 10, 1);
        for (int i = 0; i < n; i++) {
            double c, w;
            none += run("--empty", url, line, sizeof line);
            full += run("--cell", url, line, sizeof line);
            CHECK(sscanf(line, "%lf %lf", &c, &w) == 2);
            cpu += c, took += w;
        }
        bench_add(&empty, none * 1e6 / n);
        bench_add(&extra, (full - none) * 1e6 / n);
        bench_add(&inside, cpu / n);
        bench_add(&wall, took / n);
    }
    double us = bench_median(&extra);
    bench_row("%s|%.0f|%.0f|%.0f|%.0f|<= 1000|%s", name, bench_median(&empty),
              us, bench_median(&inside), bench_median(&wall),
              bench_at_most(us, 1000));
}

static void
memory_case(const char *name, const char *url)
{
    char line[256];
    long v[10] = {0};
    run("--weigh", url, line, sizeof line);
    CHECK(sscanf(line, "%ld %ld %ld %ld %ld %ld %ld %ld %ld %ld", &v[0], &v[1],
                 &v[2], &v[3], &v[4], &v[5], &v[6], &v[7], &v[8], &v[9]) == 10);
    bench_row("%s|%ld|%ld|%ld|%ld|%ld|%ld|%ld", name, v[0], v[2], v[4], v[6],
              v[8], v[1], v[9]);
}

/* --- stores -------------------------------------------------------------- */

/* An array that is written in bands of 8 chunks, all with the same cells; if
 * `cells` is NULL, one of which only a corner is written. */
static char *
make_store(const char *name, uint64_t rows, uint64_t columns,
           const double *cells)
{
    char *url = bench_path("%s", name);
    uint64_t shape[2] = {rows, columns}, chunk[2] = {CHUNK, CHUNK};
    uint64_t offset[2] = {0, 0}, size[2] = {CHUNK, CHUNK};
    static double corner[CHUNK * CHUNK];
    pyr_store *store = bench_store(url, PYR_DURABILITY_OS);
    pyr_array *array;
    OK(pyr_create(
        store, "a",
        &(pyr_spec){.ndim = 2, .shape = shape, .chunk = chunk, .type = PYR_F64},
        &array));
    bench_fill_f64(corner, CHUNK * CHUNK, 1);
    if (!cells)
        OK(pyr_write(array, offset, size, corner, NULL));
    size[0] = 8 * CHUNK, size[1] = columns;
    for (; cells && offset[0] < rows; offset[0] += size[0])
        OK(pyr_write(array, offset, size, cells, NULL));
    pyr_array_close(array);
    pyr_close(store);
    return url;
}

static void
add_history(const char *url, int versions)
{
    static double box[64 * 64];
    uint64_t seed = 3, size[2] = {64, 64};
    pyr_store *store;
    pyr_array *array;
    OK(pyr_open(url, 0, &store));
    OK(pyr_array_open(store, "a", &array));
    for (int i = 0; i < versions; i++) {
        uint64_t offset[2] = {bench_place(&seed, 2048, 64),
                              bench_place(&seed, 8192, 64)};
        bench_fill_f64(box, 64 * 64, (uint64_t)i);
        OK(pyr_write(array, offset, size, box, NULL));
    }
    pyr_array_close(array);
    pyr_close(store);
}

static int
bench(void)
{
    size_t n = (size_t)8 * CHUNK * 8192;
    double *cells = bench_alloc(n * 8);
    bench_fill_f64(cells, n, 1);
    int versions = bench_pick(10000, 2000, 20);
    char *small = make_store("small", CHUNK, CHUNK, NULL);
    uint64_t rows = (uint64_t)bench_pick(32768, 16384, 2048);
    char *large = make_store("large", rows, 8192, cells);
    char *vast = make_store("vast", (uint64_t)1 << 30, (uint64_t)1 << 30, NULL);
    add_history(large, versions);
    bench_free(cells, n * 8);
    bench_table("Opening a store and reading one cell, in a new process",
                "case|empty process CPU us|open + cell CPU us|"
                "seen inside CPU us|seen inside wall us|target|");
    open_case("one array of one chunk", small);
    open_case(bench_how == BENCH_FULL ? "array of 2 GB, 10000 versions"
                                      : "large array, 2000 versions",
              large);
    bench_table("Memory of a reader of random 100 x 100 boxes, KiB",
                "case|anonymous, start|100 boxes|1000 boxes|10000 boxes|"
                "100000 boxes|mapped files, start|mapped, end");
    memory_case("array of one chunk", small);
    if (bench_how == BENCH_CHECK)
        return 0;
    memory_case(bench_how == BENCH_FULL ? "array of 2 GB" : "large array",
                large);
    memory_case("array of 10^18 cells, one chunk written", vast);
    return 0;
}

int
main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--empty") == 0)
        return 0;
    if (argc == 3 && strcmp(argv[1], "--cell") == 0)
        return read_one_cell(argv[2]);
    if (argc == 3 && strcmp(argv[1], "--weigh") == 0)
        return read_and_weigh(argv[2]);
    bench_begin(argc, argv);
    return bench();
}
