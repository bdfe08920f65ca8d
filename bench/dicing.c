/*
 * bench/dicing.c - P processes write and read square subdomains of one array.
 *
 *        +-------+-------+     P = 4: each process owns a square of
 *        |   0   |   1   |     SIDE x SIDE chunks of 1024 x 1024 bytes,
 *        +-------+-------+     held row-major in its memory, and writes
 *        |   2   |   3   |     or reads it by one call
 *        +-------+-------+
 *
 * Three sides do the same work:
 *   raw      calls of 1 MiB to a file per process, cells in any order: what
 *            the system can do at best
 *   floor    plain C that gathers each chunk's 1024 row pieces into a bounce
 *            buffer and writes it by one call; a file per process. Reading is
 *            the reverse
 *   pyramid  one pyr_write() or pyr_read() per process, into one store
 *
 * Every repetition makes new files on every side. Readers open the store anew,
 * so that "read" verifies the checksums of all it touches; "read again" has
 * them verified before.
 */
#include "common.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1024, CHUNK_BYTES = CHUNK * CHUNK };
enum { RAW, FLOOR, PYRAMID, SIDES };
enum { WRITE, READ, AGAIN, PHASES };
enum { LEAST = 3 }; /* rounds, however slow the machine is */

/* What one process has in hand. */
typedef struct job {
    bench_crew *crew;
    int rank, size;
    uint64_t chunks; /* along one edge of the subdomain */
    uint64_t edge;   /* in cells */
    size_t bytes;
    uint8_t *cells; /* what is written */
    uint8_t *back;  /* what is read */
    uint8_t *bounce;
    pyr_durability durability;
    char *path; /* of this process's file */
    char *url;  /* of the store of all */
    int fd;
    pyr_store *store;
    pyr_array *array;
} job;

typedef struct result {
    bench_sample rate, cpu; /* MB/s; CPU ms per MB */
} result;

/* --- raw ----------------------------------------------------------------- */

static void
raw_write(void *ctx)
{
    job *j = ctx;
    for (size_t at = 0; at < j->bytes; at += CHUNK_BYTES)
        bench_pwrite(j->fd, j->cells + at, CHUNK_BYTES, at);
    if (j->durability == PYR_DURABILITY_COMMIT)
        SYS(fdatasync(j->fd));
}

static void
raw_read(void *ctx)
{
    job *j = ctx;
    for (size_t at = 0; at < j->bytes; at += CHUNK_BYTES)
        bench_pread(j->fd, j->back + at, CHUNK_BYTES, at);
}

/* --- floor --------------------------------------------------------------- */

/* The first cell of a chunk in a row-major subdomain. */
static uint8_t *
corner(const job *j, uint8_t *cells, uint64_t chunk)
{
    return cells + chunk / j->chunks * CHUNK * j->edge +
           chunk % j->chunks * CHUNK;
}

static void
floor_write(void *ctx)
{
    job *j = ctx;
    for (uint64_t c = 0; c < j->chunks * j->chunks; c++) {
        const uint8_t *from = corner(j, j->cells, c);
        for (size_t row = 0; row < CHUNK; row++)
            memcpy(j->bounce + row * CHUNK, from + row * j->edge, CHUNK);
        bench_pwrite(j->fd, j->bounce, CHUNK_BYTES, c * CHUNK_BYTES);
    }
    if (j->durability == PYR_DURABILITY_COMMIT)
        SYS(fdatasync(j->fd));
}

static void
floor_read(void *ctx)
{
    job *j = ctx;
    for (uint64_t c = 0; c < j->chunks * j->chunks; c++) {
        uint8_t *to = corner(j, j->back, c);
        bench_pread(j->fd, j->bounce, CHUNK_BYTES, c * CHUNK_BYTES);
        for (size_t row = 0; row < CHUNK; row++)
            memcpy(to + row * j->edge, j->bounce + row * CHUNK, CHUNK);
    }
}

/* --- pyramid ------------------------------------------------------------- */

/* P = 2 stand side by side, P = 4 in a square. */
static void
subdomain(const job *j, uint64_t offset[2], uint64_t shape[2])
{
    uint64_t across = j->size == 1 ? 1 : 2;
    offset[0] = (uint64_t)j->rank / across * j->edge;
    offset[1] = (uint64_t)j->rank % across * j->edge;
    shape[0] = (uint64_t)j->size / across * j->edge;
    shape[1] = across * j->edge;
}

static void
pyramid_write(void *ctx)
{
    job *j = ctx;
    uint64_t offset[2], shape[2], size[2] = {j->edge, j->edge};
    subdomain(j, offset, shape);
    OK(pyr_write(j->array, offset, size, j->cells, NULL));
}

static void
pyramid_read(void *ctx)
{
    job *j = ctx;
    uint64_t offset[2], shape[2], size[2] = {j->edge, j->edge};
    subdomain(j, offset, shape);
    OK(pyr_read(j->array, PYR_LATEST, offset, size, j->back));
}

static void
pyramid_create(job *j)
{
    uint64_t offset[2], shape[2], chunk[2] = {CHUNK, CHUNK};
    subdomain(j, offset, shape);
    pyr_store *store = bench_store(j->url, j->durability);
    OK(pyr_create(
        store, "dicing",
        &(pyr_spec){.ndim = 2, .shape = shape, .chunk = chunk, .type = PYR_U8},
        NULL));
    pyr_close(store);
}

static void
pyramid_open(job *j)
{
    OK(pyr_open(j->url, 0, &j->store));
    OK(pyr_array_open(j->store, "dicing", &j->array));
}

static void
pyramid_close(job *j)
{
    pyr_array_close(j->array);
    pyr_close(j->store);
}

/* --- one repetition ------------------------------------------------------ */

static void
note(result *r, const job *j, bench_time t)
{
    double mb = (double)j->bytes * j->size * 1e-6;
    bench_add(&r->rate, mb / t.wall);
    bench_add(&r->cpu, t.cpu * 1e3 / mb);
}

static void
timed(job *j, result *r, bench_job *work)
{
    note(r, j, bench_together(j->crew, j->rank, work, j));
}

static void
plain_round(job *j, int side, result r[PHASES][SIDES])
{
    j->fd = bench_create(j->path);
    bench_warm(j->bytes + j->bytes / 8);
    timed(j, &r[WRITE][side], side == RAW ? raw_write : floor_write);
    if (j->durability == PYR_DURABILITY_OS) {
        timed(j, &r[READ][side], side == RAW ? raw_read : floor_read);
        CHECK(memcmp(j->cells, j->back, j->bytes) == 0);
        timed(j, &r[AGAIN][side], side == RAW ? raw_read : floor_read);
    }
    close(j->fd);
    bench_remove(j->path);
    memset(j->back, 0, j->bytes);
}

static void
pyramid_round(job *j, result r[PHASES][SIDES])
{
    if (j->rank == 0)
        pyramid_create(j);
    bench_meet(j->crew);
    pyramid_open(j);
    bench_warm(j->bytes + j->bytes / 8);
    timed(j, &r[WRITE][PYRAMID], pyramid_write);
    pyramid_close(j);
    if (j->durability == PYR_DURABILITY_OS) {
        pyramid_open(j);
        timed(j, &r[READ][PYRAMID], pyramid_read);
        CHECK(memcmp(j->cells, j->back, j->bytes) == 0);
        timed(j, &r[AGAIN][PYRAMID], pyramid_read);
        pyramid_close(j);
    }
    bench_meet(j->crew);
    if (j->rank == 0)
        bench_remove(j->url);
    memset(j->back, 0, j->bytes);
    bench_meet(j->crew);
}

/* --- all of them --------------------------------------------------------- */

static void
report(const char *what, int size, const result r[SIDES], bool target)
{
    double ratio = bench_ratio(&r[FLOOR].rate, &r[PYRAMID].rate);
    bench_row("%s P=%d|%.0f|%.0f|%.0f|%.2f|%.2f|%.3f|%.3f|%s|%s", what, size,
              bench_median(&r[RAW].rate), bench_median(&r[FLOOR].rate),
              bench_median(&r[PYRAMID].rate), ratio,
              bench_ratio(&r[RAW].rate, &r[PYRAMID].rate),
              bench_median(&r[FLOOR].cpu), bench_median(&r[PYRAMID].cpu),
              target ? ">= 0.90" : "",
              target ? bench_at_least(ratio, 0.9) : "");
}

static void
rounds(job *j, int n, double seconds)
{
    double deadline = bench_now().wall + seconds;
    static result r[PHASES][SIDES];
    memset(r, 0, sizeof r);
    if (j->rank == 0)
        bench_settle();
    for (int i = 0; i < n * SIDES; i++) {
        if (i >= LEAST * SIDES && i % SIDES == 0 &&
            bench_over(j->crew, j->rank, deadline))
            break;
        /* each round starts with another side */
        int side = (i % SIDES + i / SIDES) % SIDES;
        if (side == PYRAMID)
            pyramid_round(j, r);
        else
            plain_round(j, side, r);
    }
    if (j->rank != 0)
        return;
    if (j->durability == PYR_DURABILITY_COMMIT) {
        report("write, commit", j->size, r[WRITE], true);
        return;
    }
    report("write, os", j->size, r[WRITE], true);
    report("read", j->size, r[READ], true);
    report("read again", j->size, r[AGAIN], false);
}

static void
work(bench_crew *crew, int rank, void *ctx)
{
    job j = {.crew = crew, .rank = rank, .size = *(int *)ctx};
    j.chunks = bench_quick ? 6 : 12;
    j.edge = j.chunks * CHUNK;
    j.bytes = (size_t)(j.edge * j.edge);
    j.cells = bench_alloc(j.bytes);
    j.back = bench_alloc(j.bytes);
    j.bounce = bench_alloc(CHUNK_BYTES);
    j.path = bench_path("file%d", rank);
    j.url = bench_path("store");
    bench_fill(j.cells, j.bytes, (uint64_t)rank + 1);
    j.durability = PYR_DURABILITY_OS;
    rounds(&j, bench_quick ? 5 : 15, bench_quick ? 6 : 25);
    j.durability = PYR_DURABILITY_COMMIT;
    rounds(&j, bench_quick ? 5 : 9, bench_quick ? 4 : 15);
}

int
main(int argc, char **argv)
{
    bench_begin(argc, argv);
    bench_table("Dicing: 2-D subdomains in chunks of 1024 x 1024 bytes",
                "case|raw MB/s|floor MB/s|pyramid MB/s|pyramid/floor|"
                "pyramid/raw|floor CPU ms/MB|pyramid CPU ms/MB|target|");
    for (int p = 1; p <= 4; p *= 2)
        bench_run(p, work, &p);
    return 0;
}
