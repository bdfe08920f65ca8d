/*
 * array/paint.c - the cells of a write become fragments, chunk by chunk.
 *
 * A chunk that one box falls into is gathered straight from the caller's
 * memory. Where several boxes or the blocks of a strided run fall into one
 * chunk, a few are stored as fragments of their own; more are painted into a
 * scratch copy of the chunk, in the order of the list, and stored as one
 * fragment with a mask of the cells that were written.
 */
#include "array/draft.h"

#include "array/sender.h"
#include "array/tray.h"

#include "base/checked.h"
#include "base/fault.h"
#include "base/pool.h"
#include "base/room.h"
#include "base/scratch.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

enum {
    FEW_BOXES = 8,
    SOME_BOXES = 64,
    MASK_COST = 64,
    ALONE = 1 << 20,    /* bytes that are not worth waking a worker */
    SYNC_STEP = 32 << 20
};

/* A chunk, and which part of the write falls into it. */
typedef struct touch {
    size_t part;
    uint64_t pos[PYR_MAX_DIMS];
} touch;

typedef struct painting {
    pyri_draft *d;
    const pyri_part *parts;
    size_t part; /* while listing */
    touch *touches;
    size_t n, room;
    size_t *groups; /* first touch of each chunk, and one past the last */
    size_t ngroups;
    pyri_painted *out;
    pyri_tray trays[PYRI_MAX_WORKERS];
} painting;

/* --- listing ------------------------------------------------------------- */

static int
list_touch(void *ctx, const uint64_t *pos)
{
    painting *p = ctx;
    if (!pyri_room(&p->touches, &p->room, p->n + 1, sizeof *p->touches))
        return pyri_fail_nomem("the plan of a write");
    touch *t = &p->touches[p->n++];
    t->part = p->part;
    memcpy(t->pos, pos, sizeof t->pos);
    return 0;
}

static int
compare_pos(const uint64_t *a, const uint64_t *b)
{
    for (int d = 0; d < PYR_MAX_DIMS; d++)
        if (a[d] != b[d])
            return a[d] < b[d] ? -1 : 1;
    return 0;
}

static int
compare_touches(const void *a, const void *b)
{
    const touch *x = a, *y = b;
    int order = compare_pos(x->pos, y->pos);
    return order ? order : (x->part > y->part) - (x->part < y->part);
}

static int
list(painting *p, size_t nparts)
{
    const pyri_schema *s = &p->d->array->schema;
    int err = 0;
    for (p->part = 0; p->part < nparts && err == 0; p->part++)
        err = pyri_plan_run(s->chunk, s->ndim, &p->parts[p->part].run, NULL,
                            list_touch, p);
    if (err < 0)
        return err;
    if (nparts > 1 && p->n > 1)
        qsort(p->touches, p->n, sizeof *p->touches, compare_touches);
    p->groups = pyri_sys_malloc((p->n + 1) * sizeof *p->groups);
    if (!p->groups)
        return pyri_fail_nomem("the plan of a write");
    for (size_t i = 0; i < p->n; i++)
        if (i == 0 ||
            compare_pos(p->touches[i - 1].pos, p->touches[i].pos) != 0)
            p->groups[p->ngroups++] = i;
    p->groups[p->ngroups] = p->n;
    return 0;
}

/* --- boxes of a part inside a chunk -------------------------------------- */

/* A box inside a chunk, and where its first cell is in memory. */
typedef struct patch {
    pyri_box box;
    pyri_mem mem;
} patch;

typedef int patch_fn(void *ctx, const patch *p);

static int
each_patch(const pyri_part *part, int ndim, const pyri_box *chunk, int axis,
           patch *at, patch_fn *fn, void *ctx)
{
    if (axis == ndim)
        return fn(ctx, at);
    uint8_t *base = at->mem.base;
    int err = 0;
    for (uint64_t i = 0; err == 0; i++) {
        uint64_t lo, hi;
        if (!pyri_run_next(&part->run, axis, chunk->lo[axis], chunk->hi[axis],
                           &i, &lo, &hi))
            break;
        uint64_t block = part->run.start[axis] + i * part->run.stride[axis];
        uint64_t index = i * part->run.block[axis] + (lo - block);
        at->box.lo[axis] = lo;
        at->box.hi[axis] = hi;
        at->mem.base = base + (int64_t)index * part->mem.step[axis];
        err = each_patch(part, ndim, chunk, axis + 1, at, fn, ctx);
    }
    at->mem.base = base;
    return err;
}

/* Visit the boxes of a group of touches, in the order of the list. */
static int
each_patch_of(const painting *p, size_t group, const pyri_box *chunk,
              patch_fn *fn, void *ctx)
{
    int err = 0;
    for (size_t i = p->groups[group]; i < p->groups[group + 1] && !err; i++) {
        const pyri_part *part = &p->parts[p->touches[i].part];
        patch at = {.mem = part->mem};
        err = each_patch(part, p->d->array->schema.ndim, chunk, 0, &at, fn,
                         ctx);
    }
    return err;
}

/* --- storing fragments --------------------------------------------------- */

typedef struct chunk_job {
    const painting *p; /* NULL: of a batch, painted before */
    pyri_draft *d;
    pyri_tray *tray;     /* for cells that stay in the caller's memory */
    pyri_packer *packer; /* for others */
    pyri_painted *out;
    uint64_t patches;
    pyri_box bounds;
    uint8_t *cells, *mask; /* a scratch copy of the bounds */
} chunk_job;

static int
count_patch(void *ctx, const patch *p)
{
    chunk_job *j = ctx;
    pyri_box_cover(j->p->d->array->schema.ndim, &j->bounds, &p->box);
    j->patches++;
    return 0;
}

static int
put_blob(pyri_draft *d, const pyri_packer *k, pyri_frag *frag)
{
    pyri_blob_put put = {k->iov, k->niov, k->size, k->aligned, {0, 0}};
    int err = pyri_engine_put_blobs(d->array->engine, &put, 1);
    if (err < 0)
        return err;
    frag->ref[0] = put.ref.a;
    frag->ref[1] = put.ref.b;
    return pyri_stash_add(d, &(pyri_blob){put.ref, put.size}, 1);
}

int
pyri_paint_frag(pyri_draft *d, pyri_packer *k, const pyri_box *box,
                pyri_mem src, const uint8_t *mask, uint64_t set,
                pyri_frag *frag, pyri_summary *sum)
{
    int err = pyri_frag_pack(k, &d->array->style, box, src, mask, set, frag,
                             sum);
    return err < 0 || frag->kind == PYRI_FRAG_SAME ? err
                                                   : put_blob(d, k, frag);
}

static int
add_frag(pyri_painted *to, const pyri_frag *frag)
{
    pyri_frag *frags = pyri_sys_realloc(to->frags,
                                        ((size_t)to->n + 1) * sizeof *frags);
    if (!frags)
        return pyri_fail_nomem("the fragments of a write");
    memmove(frags + 1, frags, (size_t)to->n * sizeof *frags);
    frags[0] = *frag;
    to->frags = frags;
    to->n++;
    return 0;
}

/* A version that is in flight already must not be silent for as long as it
 * takes to sync all its data at the end: sync as it goes. */
static int
keep_up(pyri_draft *d, uint64_t bytes)
{
    if (!d->ticket || atomic_fetch_add(&d->unsynced, bytes) + bytes < SYNC_STEP)
        return 0;
    atomic_store(&d->unsynced, 0);
    int err = pyri_engine_sync(d->array->engine);
    return err < 0 ? err : pyri_commit_renew(d);
}

/* Pack cells and put the blob; the fragment goes on top of the others. */
static int
store(chunk_job *j, const pyri_box *box, pyri_mem src, const uint8_t *mask,
      uint64_t set)
{
    pyri_painted *out = j->out;
    pyri_packer *k = j->packer;
    pyri_frag frag;
    pyri_summary_init(&out->own);
    int err =
        pyri_paint_frag(j->d, k, box, src, mask, set, &frag, &out->own);
    if (err == 0 && j->p && frag.kind != PYRI_FRAG_SAME)
        err = keep_up(j->p->d, k->size);
    return err < 0 ? err : add_frag(out, &frag);
}

/* The same for cells that stay where they are until all is painted: the blob
 * may wait for others. */
static int
store_later(chunk_job *j, const patch *p)
{
    pyri_packer *k = pyri_tray_packer(j->tray,
                                      pyri_box_bytes(j->d->array, &p->box));
    pyri_frag frag = {.version = 0};
    pyri_summary_init(&j->out->own);
    int err = pyri_frag_pack(k, &j->d->array->style, &p->box, p->mem, NULL, 0,
                             &frag, &j->out->own);
    bool blob = err == 0 && frag.kind != PYRI_FRAG_SAME;
    bool waits = blob && k != &j->tray->large;
    if (blob && !waits)
        err = put_blob(j->d, k, &frag);
    if (err == 0 && blob)
        err = keep_up(j->d, k->size);
    if (err == 0)
        err = add_frag(j->out, &frag);
    return err == 0 && waits ? pyri_tray_add(j->tray, j->d, j->out) : err;
}

/* The cells of a patch, changed by handlers: those of the user stay as they
 * are. */
static int
store_handled(chunk_job *j, const patch *p)
{
    const pyri_schema *s = &j->d->array->schema;
    size_t cell = pyri_type_size(s->type);
    uint64_t extent[PYR_MAX_DIMS], bytes;
    uint8_t *cells = NULL;
    for (int d = 0; d < s->ndim; d++)
        extent[d] = p->box.hi[d] - p->box.lo[d];
    if (pyri_mul64(pyri_box_cells(s->ndim, &p->box), cell, &bytes) &&
        bytes <= SIZE_MAX / 2)
        cells = pyri_scratch_take((size_t)bytes);
    if (!cells)
        return pyri_fail_nomem("the cells of a handler");
    pyri_mem mem = pyri_mem_dense(s->ndim, cell, &p->box, cells);
    pyri_copy(s->ndim, cell, extent, mem, p->mem);
    int err = pyri_handlers_run(j->d->handlers, &p->box, cells);
    if (err == 0)
        err = store(j, &p->box, mem, NULL, 0);
    pyri_scratch_give(cells);
    return err;
}

static int
store_patch(void *ctx, const patch *p)
{
    chunk_job *j = ctx;
    return j->d->handlers ? store_handled(j, p) : store_later(j, p);
}

/* Set the bits of a box in the mask of the bounds that it is in. */
static void
mark(int ndim, uint8_t *mask, const pyri_box *bounds, const pyri_box *box)
{
    int last = ndim - 1;
    uint64_t at[PYR_MAX_DIMS];
    memcpy(at, box->lo, sizeof at);
    for (int d = last; d >= 0;) {
        uint64_t bit = 0;
        for (int k = 0; k < ndim; k++)
            bit = bit * (bounds->hi[k] - bounds->lo[k]) +
                  (at[k] - bounds->lo[k]);
        for (uint64_t i = box->lo[last]; i < box->hi[last]; i++, bit++)
            mask[bit / 8] |= (uint8_t)(1u << (bit % 8));
        for (d = last - 1; d >= 0 && ++at[d] == box->hi[d]; d--)
            at[d] = box->lo[d];
    }
}

static int
paint_patch(void *ctx, const patch *p)
{
    chunk_job *j = ctx;
    const pyri_schema *s = &j->p->d->array->schema;
    size_t cell = pyri_type_size(s->type);
    uint64_t extent[PYR_MAX_DIMS];
    for (int d = 0; d < s->ndim; d++)
        extent[d] = p->box.hi[d] - p->box.lo[d];
    pyri_mem dst = pyri_mem_dense(s->ndim, cell, &j->bounds, j->cells);
    pyri_copy(s->ndim, cell, extent,
              pyri_mem_move(s->ndim, dst, j->bounds.lo, p->box.lo), p->mem);
    mark(s->ndim, j->mask, &j->bounds, &p->box);
    return 0;
}

/* Move the cells that are set to the front; returns how many. */
static uint64_t
squeeze(uint8_t *cells, size_t cell, const uint8_t *mask, uint64_t n)
{
    uint64_t set = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (!(mask[i / 8] >> (i % 8) & 1))
            continue;
        if (set != i)
            memcpy(cells + set * cell, cells + i * cell, cell);
        set++;
    }
    return set;
}

static int
get_canvas(chunk_job *j)
{
    const pyri_schema *s = &j->d->array->schema;
    uint64_t n = pyri_box_cells(s->ndim, &j->bounds), bytes;
    if (pyri_mul64(n, pyri_type_size(s->type), &bytes) &&
        bytes <= SIZE_MAX / 2) {
        j->cells = pyri_scratch_take((size_t)bytes);
        j->mask = pyri_sys_calloc(1, (size_t)pyri_mask_size(n));
    }
    return j->cells && j->mask ? 0
                               : pyri_fail_nomem("a chunk to paint boxes into");
}

static void
give_canvas(chunk_job *j)
{
    pyri_scratch_give(j->cells);
    free(j->mask);
}

/* Store the cells of the canvas whose bits are set. */
static int
store_canvas(chunk_job *j)
{
    const pyri_schema *s = &j->d->array->schema;
    size_t cell = pyri_type_size(s->type);
    uint64_t n = pyri_box_cells(s->ndim, &j->bounds), set = 0;
    for (uint64_t i = 0; i < pyri_mask_size(n); i++)
        set += (unsigned)__builtin_popcount(j->mask[i]);
    if (set < n)
        squeeze(j->cells, cell, j->mask, n);
    return store(j, &j->bounds,
                 pyri_mem_dense(s->ndim, cell, &j->bounds, j->cells),
                 set < n ? j->mask : NULL, set);
}

/* Cells of the canvas that were not written get the value of one that was, so
 * that handlers meet nothing that nobody wrote. */
static void
cover_gaps(chunk_job *j)
{
    const pyri_schema *s = &j->d->array->schema;
    size_t cell = pyri_type_size(s->type);
    uint64_t n = pyri_box_cells(s->ndim, &j->bounds), first = 0;
    while (first < n && !(j->mask[first / 8] >> (first % 8) & 1))
        first++;
    for (uint64_t i = 0; i < n; i++)
        if (!(j->mask[i / 8] >> (i % 8) & 1))
            memcpy(j->cells + i * cell, j->cells + first * cell, cell);
}

static int
store_painted(chunk_job *j, size_t group, const pyri_box *chunk)
{
    int err = get_canvas(j);
    if (err == 0)
        err = each_patch_of(j->p, group, chunk, paint_patch, j);
    if (err == 0 && j->d->handlers) {
        cover_gaps(j);
        err = pyri_handlers_run(j->d->handlers, &j->bounds, j->cells);
    }
    if (err == 0)
        err = store_canvas(j);
    give_canvas(j);
    return err;
}

/* The chunk of a group of touches. */
static pyri_box
chunk_of(const painting *p, size_t group)
{
    const pyri_schema *s = &p->d->array->schema;
    const uint64_t *pos = p->touches[p->groups[group]].pos;
    pyri_box chunk = {.lo = {0}};
    for (int d = 0; d < s->ndim; d++) {
        chunk.lo[d] = pos[d] * s->chunk[d];
        if (!pyri_add64(chunk.lo[d], s->chunk[d], &chunk.hi[d]))
            chunk.hi[d] = UINT64_MAX;
    }
    return chunk;
}

static int
paint_chunk(void *ctx, size_t group, unsigned worker)
{
    painting *p = ctx;
    const pyri_schema *s = &p->d->array->schema;
    const uint64_t *pos = p->touches[p->groups[group]].pos;
    pyri_painted *out = &p->out[group];
    chunk_job j = {.p = p,
                   .d = p->d,
                   .tray = &p->trays[worker],
                   .packer = &p->trays[worker].large,
                   .out = out};
    if (out->n)
        return 0; /* its handlers ran where it is stored */
    pyri_box chunk = chunk_of(p, group);
    int err = pyri_commit_renew(p->d);
    if (err < 0)
        return err;
    memcpy(out->pos, pos, sizeof out->pos);
    err = each_patch_of(p, group, &chunk, count_patch, &j);
    if (err < 0)
        return err;
    uint64_t mask = pyri_mask_size(pyri_box_cells(s->ndim, &j.bounds));
    if (j.patches <= FEW_BOXES ||
        (j.patches <= SOME_BOXES && mask > MASK_COST * j.patches))
        return each_patch_of(p, group, &chunk, store_patch, &j);
    return store_painted(&j, group, &chunk);
}

/* --- handlers where the cells go ----------------------------------------- */

typedef struct sent_chunk {
    pyri_sender *sender;
    pyri_painted *out;
} sent_chunk;

static int
send_patch(void *ctx, const patch *p)
{
    const sent_chunk *c = ctx;
    return pyri_sender_add(c->sender, &p->box, p->mem, c->out);
}

/* Have the engine store those chunks that one box of some size falls into, if
 * it can run the handlers; what it leaves is painted here. */
static int
paint_sent(painting *p)
{
    const pyri_schema *s = &p->d->array->schema;
    pyri_sender *sender = NULL;
    int err = p->d->handlers ? pyri_sender_new(p->d, &sender) : 0;
    for (size_t g = 0; sender && g < p->ngroups && err == 0; g++) {
        const uint64_t *pos = p->touches[p->groups[g]].pos;
        pyri_box chunk = chunk_of(p, g);
        chunk_job j = {.p = p, .d = p->d};
        sent_chunk c = {sender, &p->out[g]};
        uint64_t least = PYRI_LARGE / pyri_type_size(s->type);
        memcpy(c.out->pos, pos, sizeof c.out->pos);
        err = each_patch_of(p, g, &chunk, count_patch, &j);
        if (err == 0 && j.patches == 1 &&
            pyri_box_cells(s->ndim, &j.bounds) >= least)
            err = each_patch_of(p, g, &chunk, send_patch, &c);
    }
    if (sender && err == 0)
        err = pyri_sender_flush(sender);
    pyri_sender_free(sender);
    return err;
}

/* --- the draft ----------------------------------------------------------- */

static void
fini_painted(pyri_painted *p)
{
    free(p->frags);
    free(p->floor);
    free(p->regions);
}

void
pyri_draft_fini(pyri_draft *d)
{
    pyri_stash_settle(d, false);
    for (size_t i = 0; i < d->n; i++)
        fini_painted(&d->painted[i]);
    free(d->painted);
    free(d->kept.list);
    free(d->sheets);
    pyri_claim_fini(&d->claim);
    pyri_handlers_end(d->handlers);
    pyri_buf_fini(&d->handled);
    *d = (pyri_draft){0};
}

int
pyri_draft_handle(pyri_draft *d, const pyri_handlers *h)
{
    bool same = d->handlers == h;
    pyri_handlers_end(d->handlers);
    d->handlers = h;
    if (same || !h)
        return 0;
    if (d->handled.size) { /* they were changed while a batch was written */
        d->handled.size--;
        pyri_buf_add(&d->handled, "; ", 2);
    }
    const char *text = pyri_handlers_text(h);
    pyri_buf_add(&d->handled, text, strlen(text) + 1);
    return pyri_buf_check(&d->handled, "handlers");
}

static int
make_room(pyri_draft *d, size_t more)
{
    size_t room = d->room ? d->room : 1;
    while (room < d->n + more)
        room *= 2;
    if (room > d->room) {
        pyri_painted *painted = pyri_sys_realloc(d->painted,
                                                 room * sizeof *painted);
        if (!painted)
            return pyri_fail_nomem("the chunks of a write");
        d->painted = painted;
        d->room = room;
    }
    memset(d->painted + d->n, 0, more * sizeof *d->painted);
    return 0;
}

static uint64_t
bytes_of(const painting *p, size_t n)
{
    const pyri_schema *s = &p->d->array->schema;
    uint64_t bytes = 0;
    for (size_t i = 0; i < n && bytes <= ALONE; i++) {
        uint64_t part = pyri_type_size(s->type);
        for (int d = 0; d < s->ndim; d++)
            part *= p->parts[i].run.count[d] * p->parts[i].run.block[d];
        bytes += part;
    }
    return bytes;
}

int
pyri_paint(pyri_draft *d, const pyri_part *parts, size_t n)
{
    painting p = {.d = d, .parts = parts};
    d->claim.ndim = d->array->schema.ndim;
    int err = list(&p, n);
    if (err == 0)
        err = make_room(d, p.ngroups);
    if (err == 0) {
        p.out = d->painted + d->n;
        d->n += p.ngroups; /* whatever is stored is freed with the draft */
        err = paint_sent(&p);
        if (err == 0)
            err = pyri_pool_run_if(bytes_of(&p, n) > ALONE, p.ngroups,
                                   paint_chunk, &p);
    }
    for (size_t i = 0; i < n && err == 0; i++) {
        pyri_box bounds;
        pyri_run_bounds(d->claim.ndim, &parts[i].run, &bounds);
        if (!pyri_box_empty(d->claim.ndim, &bounds))
            err = pyri_claim_add(&d->claim, &parts[i].run);
    }
    for (int i = 0; i < PYRI_MAX_WORKERS; i++) {
        if (err == 0)
            err = pyri_tray_flush(&p.trays[i], d);
        pyri_tray_fini(&p.trays[i]);
    }
    free(p.touches);
    free(p.groups);
    return err;
}

/* --- merging ------------------------------------------------------------- */

typedef struct order {
    size_t index;
    const uint64_t *pos;
} order;

static int
compare_orders(const void *a, const void *b)
{
    const order *x = a, *y = b;
    int by_pos = compare_pos(x->pos, y->pos);
    return by_pos ? by_pos : (x->index > y->index) - (x->index < y->index);
}

/* Put the fragments of `top` over those of `under`. */
static int
put_over(pyri_painted *under, pyri_painted *top)
{
    size_t n = (size_t)under->n + (size_t)top->n;
    pyri_frag *frags = pyri_sys_malloc(n * sizeof *frags);
    if (!frags)
        return pyri_fail_nomem("the fragments of a write");
    memcpy(frags, top->frags, (size_t)top->n * sizeof *frags);
    memcpy(frags + top->n, under->frags, (size_t)under->n * sizeof *frags);
    free(under->frags);
    under->frags = frags;
    under->n = (int)n;
    under->own = top->own;
    fini_painted(top);
    *top = (pyri_painted){0};
    return 0;
}

/* Many small fragments of one batch in a chunk: read them back and store them
 * as one, as a list write would have. */
static int
squash(pyri_draft *d, pyri_reader *r, pyri_packer *packer, pyri_painted *p)
{
    const pyri_schema *s = &d->array->schema;
    pyri_chain chain = {0};
    pyri_fetcher f = {.array = d->array, .reader = r};
    pyri_form all = {.ndim = s->ndim};
    pyri_painted one = {.n = 0};
    chunk_job j = {.d = d, .packer = packer, .out = &one};
    int err = 0;
    memset(all.shape, 0xff, sizeof all.shape);
    for (int i = 0; i < p->n && err == 0; i++) {
        err = pyri_chain_add(&chain, &all, &p->frags[i]);
        pyri_box_cover(s->ndim, &j.bounds, &p->frags[i].box);
    }
    if (err == 0)
        err = get_canvas(&j);
    for (int i = 0; i < p->n && err == 0; i++)
        mark(s->ndim, j.mask, &j.bounds, &p->frags[i].box);
    pyri_fetch job = {.links = chain.links, .n = chain.n, .box = j.bounds};
    job.to = pyri_mem_dense(s->ndim, pyri_type_size(s->type), &j.bounds,
                            j.cells);
    if (err == 0)
        err = pyri_fetch_run(&f, &job, 1);
    if (err == 0)
        err = store_canvas(&j);
    if (err == 0) {
        free(p->frags);
        p->frags = one.frags;
        p->n = one.n;
        p->own = one.own;
    } else {
        free(one.frags);
    }
    give_canvas(&j);
    pyri_fetcher_fini(&f);
    pyri_chain_fini(&chain);
    return err;
}

static int
squash_all(pyri_draft *d)
{
    pyri_packer packer = {0};
    pyri_reader *r = NULL;
    int err = 0;
    for (size_t i = 0; i < d->n && err == 0; i++) {
        if (d->painted[i].n <= SOME_BOXES)
            continue;
        if (!r)
            err = pyri_engine_begin(d->array->engine, &r);
        if (err == 0)
            err = squash(d, r, &packer, &d->painted[i]);
    }
    pyri_engine_end(d->array->engine, r);
    pyri_packer_fini(&packer);
    return err;
}

int
pyri_draft_merge(pyri_draft *d)
{
    order *orders = pyri_sys_malloc((d->n + 1) * sizeof *orders);
    size_t kept = 0;
    int err = 0;
    if (!orders)
        return pyri_fail_nomem("the chunks of a write");
    for (size_t i = 0; i < d->n; i++)
        orders[i] = (order){i, d->painted[i].pos};
    qsort(orders, d->n, sizeof *orders, compare_orders);
    for (size_t i = 0; i < d->n && err == 0;) {
        size_t under = orders[i].index, k = i + 1;
        for (; k < d->n && err == 0 &&
               compare_pos(orders[k].pos, orders[i].pos) == 0;
             k++)
            err = put_over(&d->painted[under], &d->painted[orders[k].index]);
        i = k;
    }
    for (size_t i = 0; i < d->n && err == 0; i++)
        if (d->painted[i].n > 0)
            d->painted[kept++] = d->painted[i];
    if (err == 0)
        d->n = kept;
    free(orders);
    return err < 0 ? err : squash_all(d);
}
