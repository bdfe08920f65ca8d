/*
 * bench/scale.c - metadata at scale, by simulation: the real tree code, driven
 * without data.
 *
 * Nodes live in a table in memory; every request for one is noted by the hash
 * of its key, and the server that would get it is that hash modulo the number
 * of servers (the papers' distributed hash table; Ceph places objects so).
 * Chunks are not stored at all: their requests are noted by array, version and
 * place. What an operation asks for does not depend on what else was ever
 * written: it meets the nodes over its box, whose paths exist once the box was
 * written. So an array of 10^18 cells needs just the boxes that are looked at.
 * Within one operation a node is asked for once, as the engine for clusters
 * keeps nodes: a write looks at the chunks that it changes in part before it
 * takes its version, and finds most of what it then builds on there.
 *
 * This is the one benchmark that sees inside (tree/tree.h).
 */
#include "common.h"

#include "base/hash.h"
#include "tree/tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 512, BOX = 1000, NDIM = 2, ARRAY = 7, TOUCHES = 1024 };

/* --- requests ------------------------------------------------------------ */

typedef enum kind { NODE_GET, NODE_PUT, CHUNK_GET, STEP, KINDS } kind;

typedef struct request {
    uint64_t hash; /* of what is asked for */
    uint32_t client;
    kind what;
} request;

static struct {
    request *list;
    size_t n, room;
    size_t trips;    /* calls for nodes, each of one or many */
    uint32_t client; /* who is at it */
    uint32_t operation;
    bool on;
} notes;

static void
note(kind what, uint64_t hash)
{
    if (!notes.on)
        return;
    if (notes.n == notes.room) {
        notes.room = notes.room ? notes.room * 2 : 1 << 16;
        notes.list = realloc(notes.list, notes.room * sizeof *notes.list);
        CHECK(notes.list);
    }
    notes.list[notes.n++] = (request){hash, notes.client, what};
}

static double
noted(kind what)
{
    size_t n = 0;
    for (size_t i = 0; i < notes.n; i++)
        n += notes.list[i].what == what;
    return (double)n;
}

/* --- the table of nodes -------------------------------------------------- */

typedef struct stored {
    uint64_t hash;
    uint8_t *bytes; /* key, then value */
    uint32_t key, value;
    uint32_t got; /* by that operation */
} stored;

static struct {
    stored *slot;
    size_t n, room; /* room is a power of two */
} nodes;

static uint64_t
hash_of(pyri_bytes key)
{
    uint64_t h = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < key.size; i++)
        h = (h ^ ((const uint8_t *)key.data)[i]) * 0x100000001b3u;
    return bench_random(&h);
}

static stored *
slot_of(pyri_bytes key, uint64_t hash)
{
    size_t i = (size_t)hash & (nodes.room - 1);
    while (nodes.slot[i].bytes &&
           (nodes.slot[i].hash != hash || nodes.slot[i].key != key.size ||
            memcmp(nodes.slot[i].bytes, key.data, key.size) != 0))
        i = (i + 1) & (nodes.room - 1);
    return &nodes.slot[i];
}

static void
clear_nodes(void)
{
    for (size_t i = 0; i < nodes.room; i++)
        free(nodes.slot[i].bytes);
    free(nodes.slot);
    nodes.room = 1 << 21;
    nodes.n = 0;
    nodes.slot = calloc(nodes.room, sizeof *nodes.slot);
    CHECK(nodes.slot);
}

static void
put_node(const pyri_node_put *put)
{
    uint64_t hash = hash_of(put->key);
    stored *s = slot_of(put->key, hash);
    CHECK(!s->bytes && ++nodes.n < nodes.room / 2);
    s->hash = hash;
    s->got = 0;
    s->key = (uint32_t)put->key.size;
    s->value = (uint32_t)put->value.size;
    s->bytes = malloc(put->key.size + put->value.size);
    CHECK(s->bytes);
    memcpy(s->bytes, put->key.data, put->key.size);
    memcpy(s->bytes + put->key.size, put->value.data, put->value.size);
    note(NODE_PUT, hash);
}

static int
get_nodes(pyri_engine *e, pyri_reader *r, pyri_node_get *gets, size_t n)
{
    bool asks = false;
    for (size_t i = 0; i < n; i++) {
        uint64_t hash = hash_of(gets[i].key);
        stored *s = slot_of(gets[i].key, hash);
        CHECK(s->bytes);
        gets[i].found = true;
        gets[i].value = (pyri_bytes){s->bytes + s->key, s->value};
        if (s->got == notes.operation)
            continue;
        s->got = notes.operation;
        asks = true;
        note(NODE_GET, hash);
    }
    notes.trips += asks;
    return 0;
}

/* --- an array without data ----------------------------------------------- */

typedef struct array {
    pyri_engine engine;
    pyri_lineage lineage;
    pyri_form form;
    pyri_grid grid;
    uint64_t side;
    uint64_t label; /* of the newest version */
    char reader;
} array;

static const pyri_engine_ops sim = {.scheme = "sim", .get_nodes = get_nodes};

static void
start_array(array *a, double cells)
{
    uint64_t chunk[NDIM] = {CHUNK, CHUNK};
    memset(a, 0, sizeof *a);
    a->engine.ops = &sim;
    a->lineage.n = 1;
    a->lineage.line[0].array = ARRAY;
    a->side = (uint64_t)sqrt(cells);
    uint64_t shape[NDIM] = {a->side, a->side};
    OK(pyri_form_init(&a->form, NDIM, shape, chunk));
    pyri_grid_init(&a->grid, &a->form, chunk);
    clear_nodes();
}

static pyri_tree
tree_of(array *a)
{
    return (pyri_tree){.engine = &a->engine,
                       .reader = (pyri_reader *)(void *)&a->reader,
                       .lineage = &a->lineage,
                       .form = &a->form,
                       .grid = &a->grid,
                       .type = PYR_F64,
                       .root = a->label,
                       .root_level = a->label ? a->grid.levels : 0};
}

static uint64_t
chunk_hash(uint64_t label, const uint64_t *pos)
{
    uint64_t key[3] = {label, pos[0], pos[1]};
    return hash_of((pyri_bytes){(const uint8_t *)key, sizeof key});
}

/* A leaf with one fragment that covers the chunk, whose cells differ. */
static int
make_leaf(void *ctx, const pyri_touch *touch, uint64_t prev, uint64_t base,
          const pyri_flat *flat, pyri_leaf *leaf)
{
    array *a = ctx;
    (void)prev, (void)base, (void)flat;
    pyri_frag *f = calloc(1, sizeof *f);
    CHECK(f);
    f->version = a->label + 1;
    f->kind = PYRI_FRAG_PLAIN;
    f->stored = CHUNK * CHUNK * 8;
    f->ref[0] = touch->pos[0], f->ref[1] = touch->pos[1];
    CHECK(pyri_grid_shown(&a->grid, 0, touch->pos, &f->box));
    uint64_t cells = pyri_box_cells(NDIM, &f->box);
    leaf->frags = f;
    leaf->n = 1;
    leaf->about.known = leaf->about.digested = true;
    leaf->about.digest = (pyri_digest){f->version, touch->pos[0]};
    pyri_summary_init(&leaf->about.summary);
    pyri_summary_add_same(&leaf->about.summary, PYR_F64, 0, 1, 1);
    if (cells > 1)
        pyri_summary_add_same(&leaf->about.summary, PYR_F64, 0, 2, cells - 1);
    return 0;
}

static int
touches_of(array *a, const pyri_box *box, pyri_touch *touches, int n)
{
    uint64_t first[NDIM], last[NDIM], end[NDIM];
    for (int d = 0; d < NDIM; d++)
        end[d] = box->hi[d] - 1;
    pyri_grid_chunk_of(&a->grid, box->lo, first);
    pyri_grid_chunk_of(&a->grid, end, last);
    for (uint64_t i = first[0]; i <= last[0]; i++)
        for (uint64_t j = first[1]; j <= last[1]; j++) {
            CHECK(n < TOUCHES);
            memset(&touches[n], 0, sizeof *touches);
            touches[n].pos[0] = i, touches[n].pos[1] = j;
            n++;
        }
    return n;
}

/* --- operations ---------------------------------------------------------- */

static int
see(void *ctx, const pyri_hit *hit)
{
    CHECK(hit->leaf);
    note(CHUNK_GET, chunk_hash(hit->node.label, hit->pos));
    return 0;
}

static void
find_box(array *a, const pyri_box *box, pyri_hit_fn *each)
{
    pyri_tree t = tree_of(a);
    pyri_run run = pyri_run_of_box(NDIM, box);
    OK(pyri_tree_find(&t, &run, each, NULL));
}

static void
read_box(array *a, const pyri_box *box)
{
    notes.operation++;
    find_box(a, box, see);
}

static void
make_version(array *a, pyri_touch *touches, int n)
{
    pyri_tree base = tree_of(a);
    pyri_build b = {.base = &base,
                    .form = &a->form,
                    .grid = &a->grid,
                    .array = ARRAY,
                    .label = a->label + 1,
                    .touches = touches,
                    .ntouches = (size_t)n,
                    .leaf = make_leaf,
                    .ctx = a};
    OK(pyri_build_run(&b));
    note(STEP, 1); /* take */
    for (size_t i = 0; i < b.nnodes; i++)
        put_node(&b.nodes[i]);
    note(STEP, 1); /* complete */
    pyri_build_fini(&b);
    a->label++;
}

static int
look(void *ctx, const pyri_hit *hit)
{
    (void)ctx, (void)hit;
    return 0;
}

/* A version that writes the box, chunks at its border in part: what they were
 * is looked up first (array/prepare.c). */
static void
write_box(array *a, const pyri_box *box)
{
    static pyri_touch touches[TOUCHES];
    notes.operation++;
    find_box(a, box, look);
    make_version(a, touches, touches_of(a, box, touches, 0));
}

/* A version that writes all chunks of many boxes wholly. */
static void
write_chunks(array *a, const pyri_box *boxes, int count)
{
    static pyri_touch touches[TOUCHES];
    int n = 0;
    notes.operation++;
    for (int i = 0; i < count; i++)
        n = touches_of(a, &boxes[i], touches, n);
    make_version(a, touches, n);
}

static pyri_box
some_box(const array *a, uint64_t edge, uint64_t *seed)
{
    pyri_box box = {{0}, {0}};
    for (int d = 0; d < NDIM; d++) {
        box.lo[d] = bench_place(seed, a->side, edge);
        box.hi[d] = box.lo[d] + edge;
    }
    return box;
}

/* --- as the array grows -------------------------------------------------- */

static void
grow(double cells, int count)
{
    array a;
    double got[8] = {0};
    uint64_t seed = 3;
    start_array(&a, cells);
    notes.on = true;
    for (int i = 0; i < count; i++) {
        pyri_box box = some_box(&a, BOX, &seed), cell = box;
        cell.hi[0] = cell.lo[0] + 1, cell.hi[1] = cell.lo[1] + 1;
        write_box(&a, &box); /* there is something at all */
        notes.n = 0;
        read_box(&a, &cell);
        got[0] += noted(NODE_GET), got[1] += noted(CHUNK_GET);
        notes.n = notes.trips = 0;
        read_box(&a, &box);
        got[6] += (double)notes.trips;
        got[2] += noted(NODE_GET), got[3] += noted(CHUNK_GET);
        notes.n = notes.trips = 0;
        write_box(&a, &box);
        got[7] += (double)notes.trips;
        got[4] += noted(NODE_GET), got[5] += noted(NODE_PUT);
    }
    notes.on = false;
    bench_row("%.0e|%d|%.1f|%.1f|%.1f|%.1f|%.1f|%.1f|%.1f|%.1f|2", cells,
              a.grid.levels, got[0] / count, got[1] / count, got[2] / count,
              got[3] / count, got[6] / count, got[4] / count, got[7] / count,
              got[5] / count);
    pyri_form_fini(&a.form);
}

/* A version of many boxes: the nodes that it is built on, and how often the
 * engine is asked for some of them. */
static void
spread(int count, int times)
{
    array a;
    double got = 0, calls = 0, put = 0;
    uint64_t seed = 7;
    pyri_box boxes[TOUCHES / 9];
    CHECK(count <= TOUCHES / 9);
    start_array(&a, 1e18);
    notes.on = true;
    for (int i = 0; i < times; i++) {
        for (int k = 0; k < count; k++)
            boxes[k] = some_box(&a, BOX, &seed);
        write_chunks(&a, boxes, count); /* there is something at all */
        notes.n = notes.trips = 0;
        write_chunks(&a, boxes, count);
        calls += (double)notes.trips;
        got += noted(NODE_GET), put += noted(NODE_PUT);
    }
    notes.on = false;
    bench_row("%d|%.1f|%.1f|%.1f", count, got / times, calls / times,
              put / times);
    pyri_form_fini(&a.form);
}

/* --- as the cluster grows ------------------------------------------------ */

static int
by_client(const void *a, const void *b)
{
    const request *x = a, *y = b;
    if (x->client != y->client)
        return x->client < y->client ? -1 : 1;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

/* A client that keeps the nodes it has seen asks for each but once. */
static void
cache_nodes(void)
{
    size_t n = 0;
    qsort(notes.list, notes.n, sizeof *notes.list, by_client);
    for (size_t i = 0; i < notes.n; i++)
        if (i == 0 || by_client(&notes.list[i], &notes.list[i - 1]) != 0)
            notes.list[n++] = notes.list[i];
    notes.n = n;
}

/* The load of servers by some kinds of requests. */
static void
balance(const char *name, unsigned kinds, int operations, int least)
{
    static const int sizes[] = {10, 30, 100, 300, 1000};
    for (int i = least; i < 5; i++) {
        double *load = calloc((size_t)sizes[i], sizeof *load), most = 0,
               all = 0;
        CHECK(load);
        for (size_t k = 0; k < notes.n; k++)
            if (kinds >> notes.list[k].what & 1) {
                load[notes.list[k].hash % (uint64_t)sizes[i]]++;
                all++;
            }
        for (int s = 0; s < sizes[i]; s++)
            most = load[s] > most ? load[s] : most;
        double mean = all / sizes[i];
        bench_row("%s|%d|%.2f|%.3f|%.4f|%.0f", name, sizes[i], most / mean,
                  all / operations, most / operations, 1e4 * operations / most);
        free(load);
    }
}

/* Version managers spread over so many arrays. */
static void
spread_steps(uint64_t arrays)
{
    uint64_t seed = 11;
    for (size_t i = 0; i < notes.n; i++)
        if (notes.list[i].what == STEP) {
            uint64_t h = bench_random(&seed) % arrays;
            notes.list[i].hash = bench_random(&h);
        }
}

static void
cluster(int clients, int each)
{
    array a;
    int n = clients * each, least = bench_pick(0, 0, 3);
    pyri_box *boxes = calloc((size_t)n, sizeof *boxes);
    uint64_t seed = 5;
    CHECK(boxes);
    start_array(&a, 1e18);
    for (int i = 0; i < n; i++) { /* so that there is something */
        boxes[i] = some_box(&a, BOX, &seed);
        write_box(&a, &boxes[i]);
    }
    notes.on = true, notes.n = 0;
    for (int i = 0; i < n; i++)
        write_box(&a, &boxes[i]);
    balance("nodes that writers put", 1u << NODE_PUT, n, least);
    balance("nodes that writers get", 1u << NODE_GET, n, least);
    balance("steps of versions, one array", 1u << STEP, n, least);
    spread_steps(1000);
    balance("steps of versions, 1000 arrays", 1u << STEP, n, least);
    notes.n = 0;
    for (int i = 0; i < n; i++) {
        notes.client = (uint32_t)(i / each);
        read_box(&a, &boxes[i]);
    }
    balance("chunks that readers get", 1u << CHUNK_GET, n, least);
    balance("nodes, readers of one snapshot without a cache", 1u << NODE_GET, n,
            least);
    cache_nodes();
    balance("nodes, readers that keep nodes", 1u << NODE_GET, n, least);
    free(boxes);
}

int
main(int argc, char **argv)
{
    bench_begin(argc, argv);
    bench_table("Requests of one operation as the array grows",
                "cells|levels of the tree|read of a cell: nodes|chunks|"
                "read of a box: nodes|chunks|read of a box: calls|"
                "write of a box: nodes got|write of a box: calls|nodes put|"
                "steps of the version manager");
    for (int e = 7; e <= 18; e++)
        grow(pow(10, e), bench_pick(300, 300, 5));
    bench_note("Arrays of two axes, chunks of 512 x 512 cells, boxes of 1000 x "
               "1000 at random places; means. A call asks for one node or for "
               "many at once.");
    bench_table("Requests of one version of many boxes",
                "boxes|nodes got|calls|nodes put");
    for (int n = 1; n <= 100; n *= 10)
        spread(n, bench_pick(30, 30, 2));
    bench_note("Chunks of 512 x 512 cells, written wholly: those that boxes of "
               "1000 x 1000 at random places in 10^18 cells fall into.");
    bench_table("Load of the busiest server",
                "requests|servers|max/mean|per operation, in all|"
                "per operation, busiest|operations/s if a server answers "
                "10,000 requests/s");
    cluster(bench_pick(400, 400, 10), bench_pick(50, 50, 5));
    bench_note("An array of 10^18 cells, 400 clients, 50 operations each on "
               "boxes of 1000 x 1000 cells at random places.");
    return 0;
}
