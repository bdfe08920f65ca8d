/*
 * bench/common.h - clocks, medians, crews of processes and tables: what all
 * benchmarks share.
 *
 *   int
 *   main(int argc, char **argv)
 *   {
 *       bench_begin(argc, argv);
 *       bench_table("Reads", "case|plain us|pyramid us|ratio");
 *       ...
 *       bench_row("box|%.1f|%.1f|%.2f", bench_median(&plain),
 *                 bench_median(&pyramid), bench_median(&ratio));
 *       return 0;
 *   }
 *
 * Nothing here can fail halfway: what goes wrong ends the program.
 */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <pyramid/pyramid.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- beginning and failing ----------------------------------------------- */

/* How much is done: all of it, a subset (--quick), or just so much that the
 * program is proved to work (--check). */
typedef enum bench_effort { BENCH_FULL, BENCH_QUICK, BENCH_CHECK } bench_effort;
extern bench_effort bench_how;

/* One of three numbers, by effort. */
int bench_pick(int full, int quick, int check);

/* Read the options and make a directory of our own for all files, under
 * $BENCH_DIR or else here. It is removed when the program ends. */
void bench_begin(int argc, char **argv);
/* Only the directory, for programs with options of their own. */
void bench_begin_dir(void);

/* A path in that directory. Gives it to the caller; most leak it. */
char *bench_path(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Remove a file or a directory with all that is in it; need not be there. */
void bench_remove(const char *path);

_Noreturn void bench_die(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));

#define OK(call)                                                               \
    ((call) < 0 ? bench_die("%s: %s", #call, pyr_errmsg()) : (void)0)
#define SYS(call) ((call) < 0 ? bench_die("%s: %m", #call) : (void)0)
#define CHECK(truth)                                                           \
    ((truth) ? (void)0 : bench_die("%s:%d: %s", __FILE__, __LINE__, #truth))

/* --- time and numbers ---------------------------------------------------- */

typedef struct bench_time {
    double wall, cpu; /* seconds; cpu is of all threads of the process */
} bench_time;

bench_time bench_now(void);
bench_time bench_since(bench_time start);

enum { BENCH_SAMPLES = 64 };

typedef struct bench_sample {
    double v[BENCH_SAMPLES];
    int n;
} bench_sample; /* zero-initialise */

void bench_add(bench_sample *s, double value);
double bench_median(const bench_sample *s); /* NaN if there is none */

/* The median of b[i] / a[i]: repetitions that ran side by side. */
double bench_ratio(const bench_sample *a, const bench_sample *b);

/* "met" or "MISSED". */
const char *bench_at_least(double value, double target);
const char *bench_at_most(double value, double target);

uint64_t bench_random(uint64_t *state); /* any state, also 0 */

/* A place for a length of `size` in `extent` cells. */
uint64_t bench_place(uint64_t *state, uint64_t extent, uint64_t size);

/* --- memory and files ---------------------------------------------------- */

/* Memory whose pages have all been touched. Never fails. */
void *bench_alloc(size_t size);
void *bench_shared(size_t size); /* also with processes forked later */
void bench_free(void *memory, size_t size);

/* Fill with random bytes (random doubles or floats in [0, 1)): no two chunks
 * are alike and none is constant. */
void bench_fill(void *memory, size_t size, uint64_t seed);
void bench_fill_f64(double *cells, size_t n, uint64_t seed);
void bench_fill_f32(float *cells, size_t n, uint64_t seed);

/* Is it what bench_fill() put there? */
bool bench_filled(const void *memory, size_t size, uint64_t seed);

/* Touch so much memory and free it again: a virtual machine that gave freed
 * pages back to its host has them again for what is timed next. */
void bench_warm(size_t size);

/* Write out what earlier cases left dirty: it must not be synced by others. */
void bench_settle(void);

/* All of it, or the program ends. */
void bench_pwrite(int fd, const void *buf, size_t size, uint64_t at);
void bench_pread(int fd, void *buf, size_t size, uint64_t at);

int bench_create(const char *path); /* a new empty file, open to read, write */
int bench_open(const char *path);   /* the same, but it may be there already */

/* Make a store and open it. */
pyr_store *bench_store(const char *path, pyr_durability durability);

/* --- crews --------------------------------------------------------------- */

enum { BENCH_CREW = 32 };

typedef struct bench_crew bench_crew;
typedef void bench_job(void *ctx);

/* Run work(crew, rank, ctx) in `size` new processes and wait for them all. If
 * one fails, the others are ended and so is the program. */
void bench_run(int size, void (*work)(bench_crew *, int rank, void *ctx),
               void *ctx);

/* Wait for each other. */
void bench_meet(bench_crew *crew);

/*
 * Everyone calls this; those with `job` start it together. The result is the
 * same for all: wall from the first start to the last end, and the CPU time
 * of all together.
 */
bench_time bench_together(bench_crew *crew, int rank, bench_job *job,
                          void *ctx);

/* Has this time passed? All get the same answer. */
bool bench_over(bench_crew *crew, int rank, double deadline);

/* --- tables -------------------------------------------------------------- */

/* Begin a table. Columns are divided by '|', and so are the cells of a row,
 * which is printed as a line of JSON; bench.py makes Markdown of them. */
void bench_table(const char *title, const char *columns);
void bench_row(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A sentence below the table. */
void bench_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
