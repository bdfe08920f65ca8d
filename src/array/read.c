/*
 * array/read.c - READ: a box of a snapshot into the caller's memory.
 *
 * The tree is walked for the leaves of the chunks that the box touches; their
 * chains are gathered, a bounded number at a time, and fetched: a few on the
 * spot, many by the worker threads, each chunk straight into its place.
 */
#include "array/chain.h"
#include "array/tidy.h"

#include "base/checked.h"
#include "base/pool.h"
#include "base/scratch.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

enum {
    FEW = 4,                /* chunks of a small read */
    WINDOW = 256,           /* chunks gathered before they are fetched */
    GROUP = 8,              /* chunks that a worker takes at a time */
    ALONE = 1 << 20,        /* bytes that are not worth waking a worker */
    FEW_BLOCKS = 16,        /* of a strided run in a chunk: one by one */
    MAX_SCRATCH = 64 << 20, /* bytes to read more blocks through */
    PAST_CACHES = 8 << 20   /* bytes that are out of the caches by the end */
};

typedef struct reading {
    pyri_array *array;
    bool afresh; /* see pyri_fetcher */
    pyri_snapshot *snap;
    const pyri_part *part;
    bool box; /* the part is one */
    pyri_fetch *jobs; /* room for FEW, or for a WINDOW in a large read */
    size_t n, room;
    pyri_fetch few[FEW];
    pyri_chain links; /* of all jobs, one after the other */
    uint64_t bytes;
    pyri_fetcher fetcher; /* of this thread */
    uint8_t *scratch;
    size_t scratch_size;
} reading;

/* --- fetching what was gathered ------------------------------------------ */

static int
fetch_group(void *ctx, size_t i, unsigned worker)
{
    reading *r = ctx;
    size_t first = i * GROUP, n = r->n - first;
    pyri_fetcher f = {.array = r->array,
                      .past_caches = r->fetcher.past_caches,
                      .afresh = r->afresh};
    int err = pyri_engine_begin(r->array->engine, &f.reader);
    if (err < 0)
        return err;
    err = pyri_fetch_run(&f, r->jobs + first, n < GROUP ? n : GROUP);
    pyri_engine_end(r->array->engine, f.reader);
    pyri_fetcher_fini(&f);
    return err;
}

static int
flush(reading *r)
{
    int err = 0;
    int at = 0;
    for (size_t i = 0; i < r->n; i++) {
        r->jobs[i].links = r->jobs[i].n ? r->links.links + at : NULL;
        at += r->jobs[i].n;
    }
    if (r->n <= 1 || r->bytes <= ALONE)
        err = pyri_fetch_run(&r->fetcher, r->jobs, r->n);
    else
        err = pyri_pool_run((r->n + GROUP - 1) / GROUP, fetch_group, r);
    if (err == PYR_ECORRUPT) /* a worker's reader began later than ours: what
                                was folded meanwhile is there for us only */
        err = pyri_fetch_run(&r->fetcher, r->jobs, r->n);
    pyri_chain_reset(&r->links);
    r->n = 0;
    r->bytes = 0;
    return err;
}

/* --- boxes --------------------------------------------------------------- */

/* Where a cell of the part is in memory. */
static pyri_mem
memory_of(const reading *r, const uint64_t *cell)
{
    const pyri_part *p = r->part;
    pyri_mem m = p->mem;
    for (int d = 0; d < r->array->schema.ndim; d++) {
        uint64_t from = cell[d] - p->run.start[d], index = from;
        if (p->run.count[d] > 1)
            index = from / p->run.stride[d] * p->run.block[d] +
                    from % p->run.stride[d];
        m.base += (int64_t)index * m.step[d];
    }
    return m;
}

static void
set_box(const reading *r, const pyri_box *box, uint64_t bits)
{
    const pyri_schema *s = &r->array->schema;
    uint64_t extent[PYR_MAX_DIMS];
    for (int d = 0; d < s->ndim; d++)
        extent[d] = box->hi[d] - box->lo[d];
    pyri_set(s->ndim, pyri_type_size(s->type), extent,
             memory_of(r, box->lo), bits);
}

/* The read is a large one: make room for a window. */
static int
widen(reading *r)
{
    pyri_fetch *jobs = pyri_scratch_take(WINDOW * sizeof *jobs);
    if (!jobs)
        return pyri_fail_nomem("a read");
    memcpy(jobs, r->few, sizeof r->few);
    r->jobs = jobs;
    r->room = WINDOW;
    return 0;
}

static int
want(reading *r, const pyri_hit *hit, const pyri_box *box)
{
    const pyri_schema *s = &r->array->schema;
    int err = r->n == FEW && r->room == FEW ? widen(r) : 0;
    if (err < 0)
        return err;
    int first = r->links.n;
    err = pyri_chain_load(&r->links, &r->snap->tree, hit->pos, &hit->node, box,
                          0);
    if (err < 0)
        return err;
    pyri_fetch *job = &r->jobs[r->n++];
    job->n = r->links.n - first; /* flush() tells where they are */
    pyri_tidy_read(r->array, hit->pos, hit->node.label, job->n);
    job->to = memory_of(r, box->lo);
    job->sum = NULL;
    for (int d = 0; d < s->ndim; d++) {
        job->box.lo[d] = box->lo[d];
        job->box.hi[d] = box->hi[d];
    }
    r->bytes += pyri_box_cells(s->ndim, box) * pyri_type_size(s->type);
    return r->n == WINDOW ? flush(r) : 0;
}

/* --- strided runs -------------------------------------------------------- */

/* Call fn for every block of the run inside a box. */
typedef int block_fn(reading *r, const pyri_hit *hit, const pyri_box *block);

static int
each_block(reading *r, const pyri_hit *hit, int axis, pyri_box *block,
           block_fn *fn)
{
    if (axis == r->array->schema.ndim)
        return fn(r, hit, block);
    int err = 0;
    for (uint64_t i = 0; err == 0; i++) {
        if (!pyri_run_next(&r->part->run, axis, hit->box.lo[axis],
                           hit->box.hi[axis], &i, &block->lo[axis],
                           &block->hi[axis]))
            break;
        err = each_block(r, hit, axis + 1, block, fn);
    }
    return err;
}

static uint64_t
count_blocks(const reading *r, const pyri_box *box)
{
    const pyri_run *run = &r->part->run;
    uint64_t count = 1;
    for (int d = 0; d < r->array->schema.ndim; d++) {
        uint64_t cells = box->hi[d] - box->lo[d];
        uint64_t blocks = pyri_min64(run->count[d], cells / run->stride[d] + 2);
        if (!pyri_mul64(count, blocks, &count))
            return UINT64_MAX;
    }
    return count;
}

static int
set_block(reading *r, const pyri_hit *hit, const pyri_box *block)
{
    set_box(r, block, hit->bits);
    return 0;
}

static int
copy_block(reading *r, const pyri_hit *hit, const pyri_box *block)
{
    const pyri_schema *s = &r->array->schema;
    size_t cell = pyri_type_size(s->type);
    uint64_t extent[PYR_MAX_DIMS];
    for (int d = 0; d < s->ndim; d++)
        extent[d] = block->hi[d] - block->lo[d];
    pyri_mem src = pyri_mem_dense(s->ndim, cell, &hit->box, r->scratch);
    pyri_copy(s->ndim, cell, extent, memory_of(r, block->lo),
              pyri_mem_move(s->ndim, src, hit->box.lo, block->lo));
    return 0;
}

/* Many small blocks: read the whole that they are in, then pick them out. */
static int
read_through(reading *r, const pyri_hit *hit, size_t size)
{
    const pyri_schema *s = &r->array->schema;
    if (size > r->scratch_size) {
        uint8_t *scratch = pyri_sys_realloc(r->scratch, size);
        if (!scratch)
            return pyri_fail_nomem("a strided read");
        r->scratch = scratch;
        r->scratch_size = size;
    }
    pyri_chain chain = {0};
    pyri_fetch job = {.box = hit->box};
    job.to = pyri_mem_dense(s->ndim, pyri_type_size(s->type), &hit->box,
                            r->scratch);
    int err = pyri_chain_load(&chain, &r->snap->tree, hit->pos, &hit->node,
                              &hit->box, 0);
    job.links = chain.links;
    job.n = chain.n;
    if (err == 0)
        err = pyri_fetch_run(&r->fetcher, &job, 1);
    pyri_chain_fini(&chain);
    pyri_box block = {.lo = {0}};
    return err < 0 ? err : each_block(r, hit, 0, &block, copy_block);
}

static int
found(void *ctx, const pyri_hit *hit)
{
    reading *r = ctx;
    pyri_box block = {.lo = {0}};
    if (r->box) {
        if (hit->leaf)
            return want(r, hit, &hit->box);
        set_box(r, &hit->box, hit->bits);
        return 0;
    }
    if (!hit->leaf)
        return each_block(r, hit, 0, &block, set_block);
    const pyri_schema *s = &r->array->schema;
    uint64_t size;
    if (count_blocks(r, &hit->box) > FEW_BLOCKS &&
        pyri_mul64(pyri_box_cells(s->ndim, &hit->box), pyri_type_size(s->type),
                   &size) &&
        size <= MAX_SCRATCH)
        return read_through(r, hit, (size_t)size);
    return each_block(r, hit, 0, &block, want);
}

/* --- the whole ----------------------------------------------------------- */

static bool
is_large(const pyri_schema *s, const pyri_part *parts, size_t n)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < n && bytes < PAST_CACHES; i++) {
        uint64_t part = pyri_type_size(s->type);
        for (int d = 0; d < s->ndim; d++)
            part *= parts[i].run.count[d] * parts[i].run.block[d];
        bytes += part;
    }
    return bytes >= PAST_CACHES;
}

static int
read_parts(reading *r, const pyri_part *parts, size_t n)
{
    int ndim = r->array->schema.ndim, err = 0;
    r->fetcher.past_caches = is_large(&r->array->schema, parts, n);
    for (size_t i = 0; i < n && err == 0; i++)
        err = pyri_snapshot_check(r->snap, &parts[i].run);
    for (size_t i = 0; i < n && err == 0; i++) {
        r->part = &parts[i];
        r->box = pyri_run_is_box(ndim, &parts[i].run);
        err = pyri_tree_find(&r->snap->tree, &parts[i].run, found, r);
        if (err == 0 && (r->bytes > ALONE || i + 1 == n))
            err = flush(r);
    }
    return err;
}

int
pyri_read_snapshot(pyri_snapshot *snap, const pyri_part *parts, size_t n,
                   bool afresh)
{
    reading r;
    pyri_array *a = snap->array;
    r.array = a;
    r.afresh = afresh;
    r.snap = snap;
    r.jobs = r.few;
    r.links = (pyri_chain){0};
    r.room = FEW;
    r.n = 0;
    r.bytes = 0;
    r.fetcher = (pyri_fetcher){
        .array = a, .reader = snap->reader, .afresh = afresh};
    r.scratch = NULL;
    r.scratch_size = 0;
    int err = read_parts(&r, parts, n);
    if (r.jobs != r.few)
        pyri_scratch_give(r.jobs);
    pyri_chain_fini(&r.links);
    pyri_fetcher_fini(&r.fetcher);
    free(r.scratch);
    return err;
}

int
pyri_read(pyri_array *a, pyr_version v, const pyri_part *parts, size_t n)
{
    pyri_snapshot snap;
    int err = pyri_snapshot_open(a, v, &snap);
    if (err < 0)
        return err;
    err = pyri_read_snapshot(&snap, parts, n, false);
    pyri_snapshot_close(&snap);
    return pyri_snapshot_explain(a, snap.label, err);
}
