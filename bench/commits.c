/*
 * bench/commits.c - how many small writes are published per second.
 *
 * A commit is one pyr_write() of a 64 x 64 f64 box (32 KiB) at a random place
 * of an 8192 x 8192 array in chunks of 256 x 256.
 *   - durability os, one process: the rate while history grows, beside an array
 *     that has none, in turns; of arrays that are full at first, and empty;
 *   - durability os, eight processes on one array;
 *   - durability commit, against a loop of bare 32 KiB append + fdatasync, for
 *     one and for several writers (each bare writer has a file of its own).
 */
#include "common.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    EDGE = 8192,
    STEPS = 10,
    TURNS = 2,
    CHUNK = 256,
    BOX = 64,
    BOX_BYTES = BOX * BOX * 8
};
enum { POOL = 1 << 17 }; /* random cells that boxes are taken from */

/* One writer: of a store, or of a bare file. */
typedef struct writer {
    pyr_array *array;
    int fd;
    uint64_t at; /* end of the file */
    bool sync;
    uint64_t seed;
    double *cells; /* POOL of them */
    int count;     /* commits to make */
    double limit;  /* give up after so many seconds; 0: never */
    int done;
} writer;

static const double *
some_cells(writer *w)
{
    return w->cells + bench_place(&w->seed, POOL, BOX * BOX);
}

static bool
late(const writer *w, bench_time start)
{
    return w->limit > 0 && w->done % 16 == 15 &&
           bench_since(start).wall > w->limit;
}

static void
commit_boxes(void *ctx)
{
    writer *w = ctx;
    bench_time start = bench_now();
    uint64_t size[2] = {BOX, BOX};
    for (w->done = 0; w->done < w->count; w->done++) {
        uint64_t offset[2] = {bench_place(&w->seed, EDGE, BOX),
                              bench_place(&w->seed, EDGE, BOX)};
        OK(pyr_write(w->array, offset, size, some_cells(w), NULL));
        if (late(w, start))
            break;
    }
}

static void
append_boxes(void *ctx)
{
    writer *w = ctx;
    bench_time start = bench_now();
    for (w->done = 0; w->done < w->count; w->done++) {
        bench_pwrite(w->fd, some_cells(w), BOX_BYTES, w->at);
        w->at += BOX_BYTES;
        if (w->sync)
            SYS(fdatasync(w->fd));
        if (late(w, start))
            break;
    }
}

static writer
new_writer(uint64_t seed)
{
    writer w = {.seed = seed, .cells = bench_alloc(POOL * 8)};
    bench_fill_f64(w.cells, POOL, seed);
    return w;
}

static pyr_array *
create(pyr_store *store, const char *name)
{
    pyr_array *array;
    uint64_t shape[2] = {EDGE, EDGE}, chunk[2] = {CHUNK, CHUNK};
    OK(pyr_create(
        store, name,
        &(pyr_spec){.ndim = 2, .shape = shape, .chunk = chunk, .type = PYR_F64},
        &array));
    return array;
}

/* Pages that so many commits may dirty, folding included. */
static size_t
warm_bytes(int commits)
{
    return (size_t)commits * BOX_BYTES * 5;
}

/* --- history grows ------------------------------------------------------- */

/* A store with an array that is written to, and what it cost. */
typedef struct growing {
    pyr_store *store;
    const char *name;
    writer w;
    int done; /* in this step */
    bench_time took;
} growing;

static uint64_t
stored(pyr_store *store)
{
    pyr_status status;
    OK(pyr_store_status(store, &status, NULL, NULL));
    return status.data_bytes + status.metadata_bytes;
}

/* Version 1: all cells, so that all that follow lie on cells. */
static void
fill(pyr_array *array)
{
    size_t n = (size_t)EDGE * EDGE;
    uint64_t zero[2] = {0, 0}, all[2] = {EDGE, EDGE};
    double *cells = bench_alloc(n * 8);
    bench_fill_f64(cells, n, 3);
    OK(pyr_write(array, zero, all, cells, NULL));
    bench_free(cells, n * 8);
}

static void
begin_growing(growing *g, const char *name, bool full)
{
    g->name = name;
    g->store = bench_store(bench_path(name), PYR_DURABILITY_OS);
    g->w.array = create(g->store, "a");
    if (full)
        fill(g->w.array);
}

static void
end_growing(growing *g)
{
    pyr_array_close(g->w.array);
    pyr_close(g->store);
    bench_remove(bench_path(g->name));
}

static void
commit_some(growing *g, int count)
{
    g->w.count = count;
    bench_warm(warm_bytes(TURNS * count)); /* more is freed than is used */
    bench_time start = bench_now();
    commit_boxes(&g->w);
    bench_time t = bench_since(start);
    g->took.wall += t.wall;
    g->took.cpu += t.cpu;
    g->done += g->w.done;
}

/* One step of history, and as many commits into an array that has none, in
 * turns; the rate of the first to that of the second. */
static double
grow(growing *old, growing *young, writer *bare, int count, int step)
{
    uint64_t bytes = stored(old->store);
    old->took = young->took = (bench_time){0};
    old->done = young->done = 0;
    bench_settle();
    for (int turn = 0; turn < TURNS; turn++) {
        commit_some(turn % 2 ? old : young, count / TURNS);
        commit_some(turn % 2 ? young : old, count / TURNS);
    }
    bytes = stored(old->store) - bytes;
    bare->count = count / 10;
    bench_time start = bench_now();
    append_boxes(bare);
    double append = bench_since(start).wall / bare->done;
    double rate = old->done / old->took.wall;
    double first = young->done / young->took.wall;
    bench_row("versions to %d|%.0f|%.1f|%.1f|%.0f|%.1f|%.1f|%.2f",
              (step + 1) * count, rate, 1e6 / rate,
              old->took.cpu * 1e6 / old->done, first, append * 1e6,
              (double)bytes / 1024 / old->done, rate / first);
    return rate / first;
}

/* The first commits into an empty array are cheaper for another reason than
 * that there are few: they hide nothing that had to be summed up. */
static void
history(bool full)
{
    int count = bench_pick(10000, 2000, 20);
    growing old = {.w = new_writer(1)}, young = {.w = new_writer(3)};
    writer bare = new_writer(2);
    bare.fd = bench_create(bench_path("bare"));
    begin_growing(&old, "history", full);
    bench_table(full ? "Commits of 32 KiB boxes, durability os, one process"
                     : "The same into an array that is empty at first",
                "history|commits/s|us each|CPU us each|of a young array|"
                "bare append us|KiB stored each|against young");
    bench_sample later = {0}, rates = {0};
    bench_time start = bench_now();
    int step = 0;
    while (step < STEPS &&
           bench_since(start).wall < bench_pick(90, 20, 1)) {
        begin_growing(&young, "young", full);
        double ratio = grow(&old, &young, &bare, count, step++);
        bench_add(&rates, young.done / young.took.wall);
        if (step > 1)
            bench_add(&later, ratio);
        end_growing(&young);
    }
    double first = bench_median(&rates), last = bench_median(&later);
    bench_note("A young array: target >= 10000/s, %s. Later ones against it, "
               "in the same step, median: %.2f, target >= 0.90, %s.%s",
               bench_at_least(first, 10000), last, bench_at_least(last, 0.9),
               step < STEPS ? " STOPPED EARLY: too slow." : "");
    end_growing(&old);
    bench_remove(bench_path("bare"));
}

/* --- several processes --------------------------------------------------- */

/* What a crew shares and reports. */
typedef struct contest {
    int size;
    pyr_durability durability;
    int count; /* commits of each writer */
    int reps;
    char *url;
    int *done; /* by each writer; shared memory */
} contest;

typedef struct hands {
    bench_crew *crew;
    int rank;
    writer bare, one, all; /* bare file; array "one"; array "all" */
} hands;

/* All members, or the first only, do the job; commits per second. */
static double
rate_of(const contest *c, hands *h, bench_job *job, writer *w, int members)
{
    int done = 0;
    w->count = c->count * c->size / members;
    w->limit = 1;
    if (h->rank == 0)
        bench_warm(warm_bytes(c->count * c->size));
    bench_time t = bench_together(h->crew, h->rank,
                                  h->rank < members ? job : NULL, w);
    c->done[h->rank] = w->done;
    bench_meet(h->crew);
    for (int i = 0; i < members; i++)
        done += c->done[i];
    return done / t.wall;
}

static void
report(const contest *c, const bench_sample *bare1, const bench_sample *bareP,
       const bench_sample *one, const bench_sample *all)
{
    bool sync = c->durability == PYR_DURABILITY_COMMIT;
    double ratio = sync ? bench_ratio(bareP, all) : bench_ratio(one, all);
    double target = sync ? 0.4 : 1;
    bench_row("%s, %d process%s|%.0f|%.0f|%.0f|%.0f|%.2f|%.2f|%.2f|%s|%s",
              sync ? "commit" : "os", c->size, c->size > 1 ? "es" : "",
              bench_median(bare1), bench_median(bareP), bench_median(one),
              bench_median(all), bench_ratio(bare1, all),
              bench_ratio(bareP, all), bench_ratio(one, all),
              sync ? "all/bare >= 0.40" : "all/one >= 1.00",
              bench_at_least(ratio, target));
}

static void
compete(bench_crew *crew, int rank, void *ctx)
{
    const contest *c = ctx;
    pyr_store *store;
    OK(pyr_open(c->url, 0, &store));
    hands h = {.crew = crew, .rank = rank};
    h.bare = new_writer(100 + (uint64_t)rank);
    h.bare.fd = bench_create(bench_path("bare%d", rank));
    h.bare.sync = c->durability == PYR_DURABILITY_COMMIT;
    h.one = h.all = h.bare;
    OK(pyr_array_open(store, "one", &h.one.array));
    OK(pyr_array_open(store, "all", &h.all.array));
    bench_sample bare1 = {0}, bareP = {0}, one = {0}, all = {0};
    double deadline = bench_now().wall + bench_pick(5, 3, 1);
    for (int i = 0; i < c->reps; i++) {
        if (i > 0 && bench_over(crew, rank, deadline))
            break;
        bench_add(&all, rate_of(c, &h, commit_boxes, &h.all, c->size));
        bench_add(&bareP, rate_of(c, &h, append_boxes, &h.bare, c->size));
        bench_add(&one, rate_of(c, &h, commit_boxes, &h.one, 1));
        bench_add(&bare1, rate_of(c, &h, append_boxes, &h.bare, 1));
    }
    if (rank == 0)
        report(c, &bare1, &bareP, &one, &all);
    pyr_array_close(h.one.array);
    pyr_array_close(h.all.array);
    pyr_close(store);
    bench_remove(bench_path("bare%d", rank));
}

static void
processes(int size, pyr_durability durability, int count, int reps)
{
    contest c = {
        size, durability,          count,
        reps, bench_path("crowd"), bench_shared(BENCH_CREW * sizeof *c.done)};
    pyr_store *store = bench_store(c.url, durability);
    pyr_array_close(create(store, "one"));
    pyr_array_close(create(store, "all"));
    pyr_close(store);
    bench_settle();
    bench_run(size, compete, &c);
    bench_remove(c.url);
}

/* --- threads of one process ---------------------------------------------- */

static void *
commit_thread(void *ctx)
{
    commit_boxes(ctx);
    return NULL;
}

static void *
append_thread(void *ctx)
{
    append_boxes(ctx);
    return NULL;
}

static double
run_threads(int n, void *(*body)(void *), writer *w)
{
    pthread_t thread[BENCH_CREW];
    bench_time start = bench_now();
    for (int i = 0; i < n; i++)
        CHECK(pthread_create(&thread[i], NULL, body, &w[i]) == 0);
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    double rate = 0, wall = bench_since(start).wall;
    for (int i = 0; i < n; i++)
        rate += w[i].done / wall;
    return rate;
}

/* In a child: the parent must not have a store open when it forks again. */
static void
compete_threads(bench_crew *crew, int rank, void *ctx)
{
    const contest *c = ctx;
    pyr_store *store = bench_store(c->url, c->durability);
    pyr_array *array = create(store, "all");
    writer w[BENCH_CREW];
    bench_sample bare1 = {0}, bareP = {0}, all = {0};
    for (int i = 0; i < c->size; i++) {
        w[i] = new_writer(200 + (uint64_t)i);
        w[i].array = array;
        w[i].sync = c->durability == PYR_DURABILITY_COMMIT;
        w[i].fd = bench_create(bench_path("bare%d", i));
        w[i].count = c->count;
        w[i].limit = 1;
    }
    bench_warm(warm_bytes(3 * c->reps * c->count * c->size));
    for (int i = 0; i < c->reps; i++) {
        bench_add(&all, run_threads(c->size, commit_thread, w));
        bench_add(&bareP, run_threads(c->size, append_thread, w));
        bench_add(&bare1, run_threads(1, append_thread, w));
    }
    double ratio = bench_ratio(&bareP, &all);
    bench_row("commit, %d threads|%.0f|%.0f||%.0f|%.2f|%.2f||"
              "all/bare >= 0.40|%s",
              c->size, bench_median(&bare1), bench_median(&bareP),
              bench_median(&all), bench_ratio(&bare1, &all), ratio,
              bench_at_least(ratio, 0.4));
    pyr_array_close(array);
    pyr_close(store);
    for (int i = 0; i < c->size; i++)
        bench_remove(bench_path("bare%d", i));
}

static void
threads(int size, int count, int reps)
{
    contest c = {size, PYR_DURABILITY_COMMIT, count,
                 reps, bench_path("threads"), NULL};
    bench_settle();
    bench_run(1, compete_threads, &c);
    bench_remove(c.url);
}

int
main(int argc, char **argv)
{
    bench_begin(argc, argv);
    history(true);
    history(false);
    int reps = bench_pick(5, 3, 1);
    bench_table("Commits of 32 KiB boxes, several writers",
                "case|bare/s, 1 writer|bare/s, all writers|"
                "pyramid/s, 1 writer|pyramid/s, all|all/bare 1|"
                "all/bare|all/one|target|");
    processes(2, PYR_DURABILITY_OS, bench_pick(4000, 1000, 10), reps);
    processes(8, PYR_DURABILITY_OS, bench_pick(1000, 250, 10), reps);
    for (int p = 1; p <= 8; p *= 2)
        processes(p, PYR_DURABILITY_COMMIT, bench_pick(1600, 400, 16) / p,
                  reps);
    for (int n = 4; n <= 8; n *= 2)
        threads(n, bench_pick(1600, 400, 16) / n, reps);
    return 0;
}
