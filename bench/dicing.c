/*
 * bench/dicing.c - dicing by Pyramid, and by plain C (see dice.h).
 *
 *   raw      calls of 1 MiB to a file per process, cells in any order: what
 *            the system can do at best
 *   floor    plain C that gathers each chunk's 1024 row pieces into a bounce
 *            buffer and writes it by one call; a file per process. Reading is
 *            the reverse
 *   flat     a call per row of the subdomain into one flat shared file
 *   pyramid  one pyr_write() or pyr_read() per process, into one store
 *
 * Readers open the store anew, so that "read" verifies the checksums of all it
 * touches; "again" has them verified before.
 */
#include "dice.h"

#include <string.h>
#include <unistd.h>

/* What one process has in hand. */
typedef struct hand {
    dice d;
    char *path; /* of this process's file, or the file of all */
    char *url;  /* of the store of all */
    uint8_t *bounce;
    int fd;
    pyr_store *store;
    pyr_array *array;
} hand;

/* --- plain --------------------------------------------------------------- */

static void
end_write(const hand *h)
{
    if (h->d.sync)
        SYS(fdatasync(h->fd));
}

static void
raw_write(void *ctx)
{
    hand *h = ctx;
    for (size_t at = 0; at < h->d.bytes; at += DICE_BYTES)
        bench_pwrite(h->fd, h->d.cells + at, DICE_BYTES, at);
    end_write(h);
}

static void
raw_read(void *ctx)
{
    hand *h = ctx;
    for (size_t at = 0; at < h->d.bytes; at += DICE_BYTES)
        bench_pread(h->fd, h->d.cells + at, DICE_BYTES, at);
}

static void
floor_write(void *ctx)
{
    hand *h = ctx;
    for (uint64_t c = 0; c < h->d.tall * h->d.wide; c++) {
        const uint8_t *from = dice_corner(&h->d, c);
        for (size_t row = 0; row < DICE_CHUNK; row++)
            memcpy(h->bounce + row * DICE_CHUNK, from + row * h->d.edge[1],
                   DICE_CHUNK);
        bench_pwrite(h->fd, h->bounce, DICE_BYTES, c * DICE_BYTES);
    }
    end_write(h);
}

static void
floor_read(void *ctx)
{
    hand *h = ctx;
    for (uint64_t c = 0; c < h->d.tall * h->d.wide; c++) {
        uint8_t *to = dice_corner(&h->d, c);
        bench_pread(h->fd, h->bounce, DICE_BYTES, c * DICE_BYTES);
        for (size_t row = 0; row < DICE_CHUNK; row++)
            memcpy(to + row * h->d.edge[1], h->bounce + row * DICE_CHUNK,
                   DICE_CHUNK);
    }
}

static uint64_t
row_at(const dice *d, uint64_t row)
{
    return (d->offset[0] + row) * d->shape[1] + d->offset[1];
}

static void
flat_write(void *ctx)
{
    hand *h = ctx;
    size_t len = (size_t)h->d.edge[1];
    for (uint64_t row = 0; row < h->d.edge[0]; row++)
        bench_pwrite(h->fd, h->d.cells + row * len, len, row_at(&h->d, row));
    end_write(h);
}

static void
flat_read(void *ctx)
{
    hand *h = ctx;
    size_t len = (size_t)h->d.edge[1];
    for (uint64_t row = 0; row < h->d.edge[0]; row++)
        bench_pread(h->fd, h->d.cells + row * len, len, row_at(&h->d, row));
}

static void
plain_open(hand *h)
{
    h->fd = bench_create(h->path);
}

static void
shared_open(hand *h)
{
    h->path = bench_path("flat");
    SYS(h->fd = bench_open(h->path));
}

static void
plain_close(hand *h)
{
    close(h->fd);
}

/* --- pyramid ------------------------------------------------------------- */

static void
pyramid_create(hand *h)
{
    uint64_t chunk[2] = {DICE_CHUNK, DICE_CHUNK};
    pyr_store *store = bench_store(h->url, h->d.sync ? PYR_DURABILITY_COMMIT
                                                     : PYR_DURABILITY_OS);
    OK(pyr_create(store, "dicing",
                  &(pyr_spec){.ndim = 2,
                              .shape = h->d.shape,
                              .chunk = chunk,
                              .type = PYR_U8},
                  NULL));
    pyr_close(store);
}

static void
pyramid_open(hand *h)
{
    OK(pyr_open(h->url, 0, &h->store));
    OK(pyr_array_open(h->store, "dicing", &h->array));
}

static void
pyramid_close(hand *h)
{
    pyr_array_close(h->array);
    pyr_close(h->store);
}

static void
pyramid_write(void *ctx)
{
    hand *h = ctx;
    OK(pyr_write(h->array, h->d.offset, h->d.edge, h->d.cells, NULL));
}

static void
pyramid_read(void *ctx)
{
    hand *h = ctx;
    OK(pyr_read(h->array, PYR_LATEST, h->d.offset, h->d.edge, h->d.cells));
}

/* --- one round ----------------------------------------------------------- */

typedef struct side {
    const char *name;
    void (*create)(hand *); /* by the first process; may be NULL */
    void (*open)(hand *);
    void (*close)(hand *);
    bench_job *write, *read;
} side;

static const side sides[] = {
    {"raw", NULL, plain_open, plain_close, raw_write, raw_read},
    {"floor", NULL, plain_open, plain_close, floor_write, floor_read},
    {"flat", NULL, shared_open, plain_close, flat_write, flat_read},
    {"pyramid", pyramid_create, pyramid_open, pyramid_close, pyramid_write,
     pyramid_read},
};

static void
timed(bench_crew *crew, hand *h, const char *phase, bench_job *job)
{
    bench_time t = bench_together(crew, h->d.rank, job, h);
    if (h->d.rank == 0)
        dice_report(&h->d, phase, t);
}

static void
read_phases(bench_crew *crew, hand *h, const side *s)
{
    if (s->create) { /* checksums are to be verified */
        s->close(h);
        s->open(h);
    }
    dice_clear(&h->d);
    timed(crew, h, "read", s->read);
    dice_compare(&h->d);
    timed(crew, h, "again", s->read);
}

static void
play(bench_crew *crew, int rank, void *ctx)
{
    hand h = {.d = *(dice *)ctx};
    const side *s = sides;
    while (s < sides + 3 && strcmp(s->name, h.d.side) != 0)
        s++;
    dice_join(&h.d, rank);
    h.bounce = bench_alloc(DICE_BYTES);
    h.path = bench_path("file%d", rank);
    h.url = bench_path("store");
    if (rank == 0 && s->create)
        s->create(&h);
    bench_meet(crew);
    s->open(&h);
    bench_warm(h.d.bytes + h.d.bytes / 8);
    timed(crew, &h, "write", s->write);
    if (!h.d.sync)
        read_phases(crew, &h, s);
    s->close(&h);
    bench_meet(crew);
}

int
main(int argc, char **argv)
{
    dice d = dice_options(argc, argv);
    bool known = false;
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
        known |= strcmp(sides[i].name, d.side) == 0;
    if (!known)
        bench_die("no side '%s'", d.side);
    bench_begin_dir();
    bench_settle();
    bench_run(d.size, play, &d);
    return 0;
}
