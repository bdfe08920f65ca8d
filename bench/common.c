/*
 * bench/common.c - beginning, time, numbers, memory, files.
 */
#include "common.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

bench_effort bench_how;

static char *dir;
static pid_t owner;

/* --- beginning and failing ----------------------------------------------- */

static void
remove_dir(void)
{
    if (getpid() == owner)
        bench_remove(dir);
}

int
bench_pick(int full, int quick, int check)
{
    return bench_how == BENCH_FULL    ? full
           : bench_how == BENCH_QUICK ? quick
                                      : check;
}

void
bench_begin(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            bench_how = BENCH_QUICK;
        else if (strcmp(argv[i], "--check") == 0)
            bench_how = BENCH_CHECK;
        else
            bench_die("usage: %s [--quick | --check]", argv[0]);
    }
    bench_begin_dir();
}

void
bench_begin_dir(void)
{
    const char *base = getenv("BENCH_DIR");
    if (asprintf(&dir, "%s/bench-XXXXXX", base ? base : ".") < 0 ||
        !mkdtemp(dir))
        bench_die("%s: %m", base ? base : ".");
    owner = getpid();
    atexit(remove_dir);
}

char *
bench_path(const char *fmt, ...)
{
    char name[256], *path;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    CHECK(asprintf(&path, "%s/%s", dir, name) > 0);
    return path;
}

static void
remove_inside(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char *inner;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (asprintf(&inner, "%s/%s", path, e->d_name) < 0)
            break;
        bench_remove(inner);
        free(inner);
    }
    if (d)
        closedir(d);
}

void
bench_remove(const char *path)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return;
    if (!S_ISDIR(st.st_mode)) {
        unlink(path);
        return;
    }
    remove_inside(path);
    rmdir(path);
}

_Noreturn void
bench_die(const char *fmt, ...)
{
    va_list ap;
    fflush(stdout);
    fputs("bench: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

/* --- time and numbers ---------------------------------------------------- */

static double
seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

bench_time
bench_now(void)
{
    return (bench_time){seconds(CLOCK_MONOTONIC),
                        seconds(CLOCK_PROCESS_CPUTIME_ID)};
}

bench_time
bench_since(bench_time start)
{
    bench_time now = bench_now();
    return (bench_time){now.wall - start.wall, now.cpu - start.cpu};
}

void
bench_add(bench_sample *s, double value)
{
    CHECK(s->n < BENCH_SAMPLES);
    s->v[s->n++] = value;
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double
bench_median(const bench_sample *s)
{
    bench_sample sorted = *s;
    if (s->n == 0)
        return NAN;
    qsort(sorted.v, (size_t)s->n, sizeof *sorted.v, by_value);
    return (sorted.v[(s->n - 1) / 2] + sorted.v[s->n / 2]) / 2;
}

double
bench_ratio(const bench_sample *a, const bench_sample *b)
{
    bench_sample ratio = {0};
    for (int i = 0; i < a->n && i < b->n; i++)
        bench_add(&ratio, b->v[i] / a->v[i]);
    return bench_median(&ratio);
}

const char *
bench_at_least(double value, double target)
{
    return value >= target ? "met" : "MISSED";
}

const char *
bench_at_most(double value, double target)
{
    return value <= target ? "met" : "MISSED";
}

uint64_t
bench_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t
bench_place(uint64_t *state, uint64_t extent, uint64_t size)
{
    return bench_random(state) % (extent - size + 1);
}

/* --- memory and files ---------------------------------------------------- */

static void *
map(size_t size, int flags)
{
    void *m = mmap(NULL, size, PROT_READ | PROT_WRITE,
                   flags | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (m == MAP_FAILED)
        bench_die("%zu bytes of memory: %m", size);
    return m;
}

void *
bench_alloc(size_t size)
{
    return map(size, MAP_PRIVATE);
}

void *
bench_shared(size_t size)
{
    return map(size, MAP_SHARED);
}

void
bench_free(void *memory, size_t size)
{
    munmap(memory, size);
}

void
bench_fill(void *memory, size_t size, uint64_t seed)
{
    uint8_t *at = memory;
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t r = bench_random(&seed);
        memcpy(at, &r, 8);
    }
    uint64_t r = bench_random(&seed);
    memcpy(at, &r, size);
}

bool
bench_filled(const void *memory, size_t size, uint64_t seed)
{
    const uint8_t *at = memory;
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t r = bench_random(&seed);
        if (memcmp(at, &r, 8) != 0)
            return false;
    }
    uint64_t r = bench_random(&seed);
    return memcmp(at, &r, size) == 0;
}

void
bench_fill_f64(double *cells, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        cells[i] = (double)(bench_random(&seed) >> 11) * 0x1p-53;
}

void
bench_fill_f32(float *cells, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        cells[i] = (float)(bench_random(&seed) >> 40) * 0x1p-24f;
}

void
bench_warm(size_t size)
{
    if (size > 0)
        bench_free(bench_alloc(size), size);
}

void
bench_settle(void)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    SYS(fd);
    SYS(syncfs(fd));
    close(fd);
}

void
bench_pwrite(int fd, const void *buf, size_t size, uint64_t at)
{
    for (const uint8_t *from = buf; size > 0;) {
        ssize_t n = pwrite(fd, from, size, (off_t)at);
        if (n <= 0)
            bench_die("pwrite: %m");
        from += n, at += (uint64_t)n, size -= (size_t)n;
    }
}

void
bench_pread(int fd, void *buf, size_t size, uint64_t at)
{
    for (uint8_t *to = buf; size > 0;) {
        ssize_t n = pread(fd, to, size, (off_t)at);
        if (n <= 0)
            bench_die("pread: %s", n < 0 ? strerror(errno) : "end of file");
        to += n, at += (uint64_t)n, size -= (size_t)n;
    }
}

int
bench_create(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        bench_die("%s: %m", path);
    return fd;
}

int
bench_open(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
}

pyr_store *
bench_store(const char *path, pyr_durability durability)
{
    pyr_store *store;
    OK(pyr_open_with(path, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = durability}, &store));
    return store;
}
