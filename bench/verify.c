/*
 * bench/verify.c - reading all of a store to see whether it is whole, against
 * reading as many bytes from one file.
 *
 * An array of doubles in chunks of 1 MiB. pyr_verify() with `deep` reads every
 * cell, compares checksums and digests and works out summaries; the plain side
 * reads a file of the same size from one end to the other, 1 MiB at a time.
 * Cold: the page cache is asked to let go of the files before.
 */
#include "common.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

enum { CHUNK = 1 << 17, CHUNK_BYTES = 8 * CHUNK };

static void
let_go(const char *path)
{
    int fd;
    SYS(fd = open(path, O_RDONLY));
    SYS(fdatasync(fd));
    SYS(-posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
    close(fd);
}

static void
let_go_of_segments(void)
{
    DIR *d = opendir(bench_path("store/data"));
    CHECK(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        let_go(bench_path("store/data/%s", e->d_name));
    }
    closedir(d);
}

static bench_time
by_reading(const char *path, bool cold)
{
    char *buf = bench_alloc(CHUNK_BYTES);
    int fd;
    if (cold)
        let_go(path);
    bench_time start = bench_now();
    SYS(fd = open(path, O_RDONLY));
    ssize_t n;
    do
        SYS(n = read(fd, buf, CHUNK_BYTES));
    while (n > 0);
    bench_time t = bench_since(start);
    close(fd);
    bench_free(buf, CHUNK_BYTES);
    return t;
}

/* The store is opened for each: a process looks at a checksum once. */
static bench_time
by_verifying(const char *path, uint64_t bytes, bool cold)
{
    pyr_store *store;
    pyr_verified seen;
    if (cold)
        let_go_of_segments();
    bench_time start = bench_now();
    OK(pyr_open(path, PYR_OPEN_READONLY, &store));
    OK(pyr_verify(store, &(pyr_verify_spec){.deep = 1}, &seen));
    bench_time t = bench_since(start);
    CHECK(seen.harms == 0 && seen.bytes >= bytes);
    pyr_close(store);
    return t;
}

static void
verify_case(const char *store, const char *file, uint64_t bytes, bool cold)
{
    bench_sample raw = {0}, verify = {0}, raw_cpu = {0}, cpu = {0};
    for (int rep = -1; rep < bench_pick(4, 3, 1); rep++) {
        bench_time a = {0}, b = {0};
        for (int side = 0; side < 2; side++)
            if ((rep + side) % 2 == 0)
                a = by_reading(file, cold);
            else
                b = by_verifying(store, bytes, cold);
        if (rep < 0)
            continue;
        bench_add(&raw, a.wall * 1e3);
        bench_add(&verify, b.wall * 1e3);
        bench_add(&raw_cpu, a.cpu * 1e3);
        bench_add(&cpu, b.cpu * 1e3);
    }
    double ratio = bench_ratio(&verify, &raw);
    bench_row("%s|%.0f|%.0f|%.0f|%.0f|%.2f|%s", cold ? "cold" : "warm",
              bench_median(&raw), bench_median(&raw_cpu),
              bench_median(&verify), bench_median(&cpu), ratio,
              cold ? bench_at_least(ratio, 0.5) : "-");
}

int
main(int argc, char **argv)
{
    bench_begin(argc, argv);
    uint64_t cells = (uint64_t)bench_pick(1024, 128, 4) << 17, zero = 0;
    char *path = bench_path("store"), *file = bench_path("cells");
    pyr_store *store = bench_store(path, PYR_DURABILITY_OS);
    double *buf = bench_alloc((size_t)cells * 8);
    pyr_array *array;
    bench_fill_f64(buf, (size_t)cells, 1);
    OK(pyr_create(store, "a",
                  &(pyr_spec){.ndim = 1,
                              .shape = &cells,
                              .chunk = (uint64_t[1]){CHUNK},
                              .type = PYR_F64},
                  &array));
    OK(pyr_write(array, &zero, &cells, buf, NULL));
    pyr_array_close(array);
    pyr_close(store);
    int fd = bench_create(file);
    bench_pwrite(fd, buf, (size_t)cells * 8, 0);
    close(fd);
    bench_free(buf, (size_t)cells * 8);
    bench_table("verify --deep, and reading a file of the same size",
                "page cache|read ms|read CPU ms|verify ms|verify CPU ms|"
                "speed, read = 1|target");
    verify_case(path, file, cells * 8, true);
    verify_case(path, file, cells * 8, false);
    return 0;
}
