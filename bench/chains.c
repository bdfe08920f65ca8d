/*
 * bench/chains.c - what a chain of fragments costs readers, and what folding
 * it costs writers: the figures behind the folding threshold.
 *
 * One chunk (256 x 256 f64, 512 KiB) of an array of 16 is written whole and
 * then k times in part. Snapshot k + 1 has seen k small writes; unless the
 * library folded, its chunk is made of k + 1 fragments. Random 100 x 100 boxes
 * of that chunk are read at every k.
 */
#include "common.h"

#include <stdio.h>

enum { CHUNK = 256, EDGE = 4 * CHUNK, LONGEST = 64, READ = 100 };

typedef struct chain {
    uint64_t box; /* edge of the small writes */
    char *url;
    pyr_store *store;
    pyr_array *array;
    double took[LONGEST + 1];    /* seconds of commit k */
    uint64_t bytes[LONGEST + 1]; /* stored after commit k */
} chain;

static uint64_t
stored(pyr_store *store)
{
    pyr_status status;
    OK(pyr_store_status(store, &status, NULL, NULL));
    return status.data_bytes;
}

static void
write_box(chain *c, int k, uint64_t at0, uint64_t at1, uint64_t edge)
{
    static double cells[EDGE * EDGE];
    uint64_t offset[2] = {at0, at1}, size[2] = {edge, edge};
    bench_fill_f64(cells, (size_t)(edge * edge), (uint64_t)k + 1);
    bench_time start = bench_now();
    OK(pyr_write(c->array, offset, size, cells, NULL));
    c->took[k] = bench_since(start).wall;
    c->bytes[k] = stored(c->store);
}

static void
make_chain(chain *c)
{
    uint64_t shape[2] = {EDGE, EDGE}, chunk[2] = {CHUNK, CHUNK}, seed = 9;
    c->url = bench_path("chain%d", (int)c->box);
    c->store = bench_store(c->url, PYR_DURABILITY_OS);
    OK(pyr_create(
        c->store, "a",
        &(pyr_spec){.ndim = 2, .shape = shape, .chunk = chunk, .type = PYR_F64},
        &c->array));
    write_box(c, 0, 0, 0, EDGE);
    for (int k = 1; k <= LONGEST; k++)
        write_box(c, k, CHUNK + bench_place(&seed, CHUNK, c->box),
                  CHUNK + bench_place(&seed, CHUNK, c->box), c->box);
}

/* CPU microseconds per box. */
static double
read_boxes(chain *c, int k, int count)
{
    static double cells[READ * READ];
    uint64_t size[2] = {READ, READ}, seed = 4;
    bench_time start = bench_now();
    for (int i = 0; i < count; i++) {
        uint64_t offset[2] = {CHUNK + bench_place(&seed, CHUNK, READ),
                              CHUNK + bench_place(&seed, CHUNK, READ)};
        OK(pyr_read(c->array, (pyr_version)k + 1, offset, size, cells));
    }
    return bench_since(start).cpu * 1e6 / count;
}

static const int lengths[] = {0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

/* Mean microseconds and KiB of the commits since the row before. */
static void
report(const chain *c, int i, double read, double base)
{
    int k = lengths[i], from = i > 0 ? lengths[i - 1] : -1;
    double took = 0, worst = 0;
    for (int v = from + 1; v <= k; v++) {
        took += c->took[v] / (k - from);
        worst = c->took[v] > worst ? c->took[v] : worst;
    }
    uint64_t bytes = c->bytes[k] - (from >= 0 ? c->bytes[from] : 0);
    bench_row("%d x %d, k = %d|%.1f|%.2f|%.0f|%.0f|%.1f", (int)c->box,
              (int)c->box, k, read, read / base, took * 1e6, worst * 1e6,
              (double)bytes / 1024 / (k - from));
}

static void
chain_case(uint64_t box)
{
    chain c = {.box = box};
    bench_sample us[LENGTHS] = {{{0}, 0}};
    make_chain(&c);
    for (int rep = -1; rep < bench_pick(7, 5, 1); rep++)
        for (int i = 0; i < LENGTHS; i++) {
            double t = read_boxes(&c, lengths[i], bench_pick(800, 300, 5));
            if (rep >= 0)
                bench_add(&us[i], t);
        }
    for (int i = 0; i < LENGTHS; i++)
        report(&c, i, bench_median(&us[i]), bench_median(&us[0]));
    pyr_array_close(c.array);
    pyr_close(c.store);
    bench_remove(c.url);
}

int
main(int argc, char **argv)
{
    bench_begin(argc, argv);
    bench_table("Chains: one chunk written in part, k times",
                "write box, k|100 x 100 read CPU us|against k = 0|"
                "commit us, mean|commit us, worst|KiB of data each");
    chain_case(8);
    chain_case(64);
    chain_case(128);
    bench_note("Row k = 0 is the first write, of the whole array (16 chunks); "
               "the columns on commits cover those since the row before.");
    return 0;
}
