/*
 * array/fetch.c - cells out of chains of fragments, into the caller's memory.
 *
 * First each box is laid out from the top: what the newest fragment shows of
 * it is one piece, the rest is cut into boxes and looked for in the fragments
 * below. Then what the pieces need is asked of the engine at once, and they
 * are copied. So every cell is copied once, however long the chain, and of
 * fragments that are hidden nothing is asked (unless masks let cells below
 * show through: then fragments are painted over each other).
 *
 * Nothing is copied that was not verified: block by block, just the blocks
 * that the box touches. Where the engine keeps its views (a mapped file),
 * blocks verified once are remembered.
 */
#include "array/chain.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

enum {
    SLAB = 128 << 10, /* bytes verified before they are copied */
    LARGE = 256 << 10, /* bytes got slab by slab, if they are new */
    LONG_ROW = 16 << 10, /* bytes that the processor foresees by itself */
    FORESEEN = 8 << 10   /* bytes of a piece that are fetched before its turn */
};

void
pyri_fetcher_fini(pyri_fetcher *f)
{
    pyri_scratch_give(f->gets);
    pyri_scratch_give(f->pieces);
    pyri_scratch_give(f->slab);
    pyri_buf_fini(&f->expanded);
    f->slab = NULL;
    f->gets = NULL;
    f->pieces = NULL;
    f->gets_room = f->ngets = f->pieces_room = f->npieces = 0;
    f->expanded_of = NULL;
}

/* --- laying out ---------------------------------------------------------- */

/* A box to be copied from one link, or set to fill (link == job->n). Before it
 * is settled: a box that links from `link` on may have something of. */
typedef struct pyri_piece {
    pyri_box box;
    int link;
} piece;

static int
add_pieces(pyri_fetcher *f, const pyri_box *boxes, int n, int link)
{
    if (!pyri_scratch_room(&f->pieces, &f->pieces_room, f->npieces,
                           f->npieces + (size_t)n, sizeof *f->pieces))
        return pyri_fail_nomem("a read");
    int ndim = f->array->schema.ndim;
    for (int i = 0; i < n; i++) {
        piece *p = &f->pieces[f->npieces++];
        pyri_box_copy(ndim, &p->box, &boxes[i]);
        p->link = link;
    }
    return 0;
}

/* The bytes of a plain fragment's payload from the first to the last cell of
 * a box inside it. */
static void
span_of(int n, size_t cell, const pyri_box *frag, const pyri_box *box,
        uint64_t *from, uint64_t *to)
{
    uint64_t first = 0, last = 0;
    for (int d = 0; d < n; d++) {
        uint64_t extent = frag->hi[d] - frag->lo[d];
        first = first * extent + (box->lo[d] - frag->lo[d]);
        last = last * extent + (box->hi[d] - 1 - frag->lo[d]);
    }
    *from = first * cell;
    *to = (last + 1) * cell;
}

static bool
whole_needed(const pyri_frag *f)
{
    return f->masked || f->kind == PYRI_FRAG_PRESSED || !pyri_frag_aligned(f);
}

/* A box of what the link shows will be copied: note which bytes it needs. */
static void
need(const pyri_fetcher *f, pyri_link *link, const pyri_box *box)
{
    const pyri_frag *g = &link->frag;
    int n = f->array->schema.ndim;
    size_t cell = pyri_type_size(f->array->schema.type);
    uint64_t from = 0, to = g->stored;
    if (!whole_needed(g))
        span_of(n, cell, &g->box, box, &from, &to);
    link->bytes += pyri_box_cells(n, box) * cell;
    link->from = pyri_min64(link->from, from);
    link->to = pyri_max64(link->to, to);
}

/* Find the newest link that has something of a piece, and make it the piece of
 * that link; what is left of it are new pieces. */
static int
settle(pyri_fetcher *f, const pyri_fetch *job, size_t at)
{
    int n = f->array->schema.ndim;
    pyri_box common, rest[2 * PYR_MAX_DIMS];
    piece *p = &f->pieces[at];
    for (; p->link < job->n; p->link++) {
        pyri_link *link = &job->links[p->link];
        if (!pyri_box_intersect(n, &link->shown, &p->box, &common))
            continue;
        need(f, link, &common);
        if (pyri_box_contains(n, &common, &p->box))
            return 0;
        int left = pyri_box_subtract(n, &p->box, &common, rest);
        pyri_box_copy(n, &p->box, &common);
        return add_pieces(f, rest, left, p->link + 1);
    }
    return 0;
}

static int
lay_out(pyri_fetcher *f, pyri_fetch *job)
{
    size_t at = f->npieces;
    int err = add_pieces(f, &job->box, 1, 0);
    for (; err == 0 && at < f->npieces; at++)
        err = settle(f, job, at);
    return err;
}

/* --- what to ask for ----------------------------------------------------- */

static int
add_gets(pyri_fetcher *f, pyri_link *link)
{
    if (!pyri_scratch_room(&f->gets, &f->gets_room, f->ngets, f->ngets + 2,
                           sizeof *f->gets))
        return pyri_fail_nomem("a read");
    const pyri_frag *g = &link->frag;
    if (link->to > g->stored)
        return pyri_fail(PYR_ECORRUPT, "a fragment has the wrong size");
    uint64_t head = pyri_frag_head_size(g);
    uint64_t from = link->from / PYRI_BLOCK * PYRI_BLOCK;
    uint64_t to =
        pyri_min64((link->to + PYRI_BLOCK - 1) / PYRI_BLOCK * PYRI_BLOCK,
                   g->stored);
    /* large, and most of it is wanted: got a slab at a time, as it is copied */
    bool later = !whole_needed(g) && link->to - link->from >= LARGE &&
                 link->bytes >= (link->to - link->from) / 2;
    pyri_ref ref = {g->ref[0], g->ref[1]};
    link->get = f->ngets;
    f->gets[f->ngets++] =
        (pyri_blob_get){.ref = ref, .offset = 0, .size = head};
    f->gets[f->ngets++] = (pyri_blob_get){
        .ref = ref, .offset = head + from, .size = to - from, .later = later};
    return 0;
}

static bool
any_masked(const pyri_fetcher *f, const pyri_fetch *job)
{
    for (int i = 0; i < job->n; i++)
        if (job->links[i].frag.masked &&
            pyri_box_overlaps(f->array->schema.ndim, &job->links[i].shown,
                              &job->box))
            return true;
    return false;
}

/* Fragments that will be painted over each other are needed as far as the box
 * reaches. */
static void
need_all(const pyri_fetcher *f, const pyri_fetch *job)
{
    pyri_box common;
    for (int i = 0; i < job->n; i++)
        if (pyri_box_intersect(f->array->schema.ndim, &job->links[i].shown,
                               &job->box, &common))
            need(f, &job->links[i], &common);
}

/* Lay a job out, and ask for what it needs. */
static int
plan(pyri_fetcher *f, pyri_fetch *job)
{
    int err = 0;
    for (int i = 0; i < job->n; i++) {
        job->links[i].from = UINT64_MAX;
        job->links[i].bytes = 0;
        job->links[i].to = 0;
    }
    job->pieces = f->npieces;
    job->painted = any_masked(f, job);
    if (job->painted)
        need_all(f, job);
    else
        err = lay_out(f, job);
    for (int i = 0; i < job->n && err == 0; i++)
        if (job->links[i].to > 0 &&
            job->links[i].frag.kind != PYRI_FRAG_SAME)
            err = add_gets(f, &job->links[i]);
    return err;
}

/* --- verifying ----------------------------------------------------------- */

static bool
all_seen(const pyri_blob_get *get, uint64_t first, uint64_t n)
{
    uint64_t bit = get->seen_first + first;
    while (n) {
        unsigned at = bit % 64;
        uint64_t take = pyri_min64(n, 64 - at);
        uint64_t mask = (take == 64 ? ~0ull : (1ull << take) - 1) << at;
        uint64_t word = atomic_load_explicit(&get->seen[bit / 64],
                                             memory_order_relaxed);
        if ((word & mask) != mask)
            return false;
        bit += take;
        n -= take;
    }
    return true;
}

static void
set_seen(const pyri_blob_get *get, uint64_t first, uint64_t n)
{
    for (uint64_t i = get->seen_first + first; n; i++, n--)
        atomic_fetch_or_explicit(&get->seen[i / 64], 1ull << (i % 64),
                                 memory_order_relaxed);
}

/* Were all blocks from the first to the last byte verified before? */
static bool
span_seen(const pyri_frag *g, const pyri_blob_get *gets, uint64_t from,
          uint64_t to)
{
    uint64_t first = from / PYRI_BLOCK;
    if (!pyri_frag_aligned(g))
        return gets->trusted;
    return gets->seen &&
           all_seen(&gets[1], gets->size / PYRI_BLOCK + first,
                    (to + PYRI_BLOCK - 1) / PYRI_BLOCK - first);
}

/* Verify all of a small fragment, once. */
static int
verify_small(pyri_fetcher *f, const pyri_frag *g, const pyri_blob_get *gets)
{
    int err;
    if (gets->trusted)
        return 0;
    if ((err = pyri_frag_check_head(g, gets[0].data)) < 0 ||
        (err = pyri_frag_check_blocks(
             g, gets[0].data, gets[1].data, 0,
             (g->stored + PYRI_BLOCK - 1) / PYRI_BLOCK)) < 0)
        return err;
    pyri_engine_vouch(f->array->engine, gets->ref);
    return 0;
}

/* Verify payload bytes [from, to) of a large fragment, given its two gets. */
static int
verify(const pyri_frag *g, const pyri_blob_get *gets, uint64_t from,
       uint64_t to)
{
    const pyri_blob_get *head = &gets[0], *payload = &gets[1];
    uint64_t pages = head->size / PYRI_BLOCK; /* of the head */
    uint64_t first = from / PYRI_BLOCK;
    uint64_t n = (to + PYRI_BLOCK - 1) / PYRI_BLOCK - first;
    bool remember = head->seen;
    int err;
    if (remember && all_seen(payload, pages + first, n))
        return 0;
    if (!remember || !all_seen(head, 0, 1))
        if ((err = pyri_frag_check_head(g, head->data)) < 0)
            return err;
    const uint8_t *at =
        payload->data + (head->size + first * PYRI_BLOCK - payload->offset);
    for (uint64_t i = 0; i < n; i++, at += PYRI_BLOCK) {
        if (remember && all_seen(payload, pages + first + i, 1))
            continue;
        if ((err = pyri_frag_check_blocks(g, head->data, at, first + i, 1)) < 0)
            return err;
    }
    if (remember) {
        set_seen(payload, 0, 1);
        set_seen(payload, pages + first, n);
    }
    return 0;
}

/* Verify the rows of a box that lie far apart one by one. */
static int
verify_rows(const pyri_frag *g, const pyri_blob_get *gets,
            const pyri_rows *rows, int axis, uint64_t at)
{
    int err = 0;
    if (axis == rows->outer)
        return verify(g, gets, at, at + rows->run);
    for (uint64_t i = 0; i < rows->extent[axis] && err == 0; i++)
        err = verify_rows(g, gets, rows, axis + 1,
                          at + i * (uint64_t)rows->step[axis]);
    return err;
}

/* --- copying ------------------------------------------------------------- */

static void
extents(int n, const pyri_box *box, uint64_t *out)
{
    for (int d = 0; d < n; d++)
        out[d] = box->hi[d] - box->lo[d];
}

/* Rows of cells on their way into a summary; short ones are gathered first, as
 * each call has its price. */
typedef struct summing {
    const pyri_schema *s;
    pyri_summary *sum;
    pyri_prefetch next;
    size_t held;
    uint8_t block[PYRI_BLOCK];
} summing;

static void
sum_bytes(summing *g, const uint8_t *at, uint64_t size)
{
    pyri_summary_add(g->sum, g->s->type, g->s->fill, at,
                     (size_t)(size / pyri_type_size(g->s->type)));
}

static void
sum_nest(summing *g, const pyri_rows *rows, int axis, const uint8_t *at)
{
    if (axis < rows->outer) {
        for (uint64_t i = 0; i < rows->extent[axis]; i++) {
            sum_nest(g, rows, axis + 1, at);
            at += rows->step[axis];
        }
        return;
    }
    if (g->held && g->held + rows->run > sizeof g->block) {
        sum_bytes(g, g->block, g->held);
        g->held = 0;
    }
    pyri_prefetch_more(&g->next, rows->run);
    if (rows->run > sizeof g->block / 2) {
        sum_bytes(g, at, rows->run);
    } else {
        memcpy(g->block + g->held, at, (size_t)rows->run);
        g->held += (size_t)rows->run;
    }
}

static void
sum_rows(const pyri_schema *s, const pyri_rows *rows, const uint8_t *at,
         pyri_summary *sum)
{
    summing g;
    g.s = s;
    g.sum = sum;
    g.held = 0;
    g.next.left = 0;
    if (rows->run < LONG_ROW) {
        pyri_prefetch_begin(&g.next, rows, at);
        pyri_prefetch_more(&g.next, 2 * PYRI_BLOCK);
    }
    sum_nest(&g, rows, 0, at);
    if (g.held)
        sum_bytes(&g, g.block, g.held);
}

/* Get payload bytes [from, end) of a fragment, at most a slab, with the rest
 * of their blocks. Sets the two gets that stand for them. */
static int
get_slab(pyri_fetcher *f, const pyri_blob_get *gets, uint64_t from,
         uint64_t end, pyri_blob_get *out)
{
    const pyri_blob_get *all = &gets[1];
    if (!f->slab)
        f->slab = pyri_scratch_take(SLAB + 2 * PYRI_BLOCK);
    if (!f->slab)
        return pyri_fail_nomem("a read");
    uint64_t first = gets->size + from / PYRI_BLOCK * PYRI_BLOCK;
    uint64_t last = gets->size + (end + PYRI_BLOCK - 1) / PYRI_BLOCK *
                                     PYRI_BLOCK;
    out[0] = gets[0];
    out[1] = (pyri_blob_get){.ref = all->ref,
                             .offset = first,
                             .size = pyri_min64(last, all->offset + all->size) -
                                     first,
                             .room = f->slab};
    return pyri_engine_get_blobs(f->array->engine, f->reader, &out[1], 1);
}

void
pyri_sum_memory(const pyri_schema *s, const pyri_box *box, pyri_mem mem,
                pyri_summary *sum)
{
    uint64_t extent[PYR_MAX_DIMS];
    pyri_rows rows;
    extents(s->ndim, box, extent);
    pyri_rows_of(s->ndim, pyri_type_size(s->type), extent, mem.step, &rows);
    sum_rows(s, &rows, mem.base, sum);
}

static int copy_halves(pyri_fetcher *f, const pyri_frag *g,
                       const pyri_blob_get *gets, const pyri_box *box,
                       pyri_mem to, pyri_summary *sum);

static int
copy_plain(pyri_fetcher *f, const pyri_frag *g, const pyri_blob_get *gets,
           const pyri_box *box, pyri_mem to, pyri_summary *sum)
{
    int n = f->array->schema.ndim, err;
    size_t cell = pyri_type_size(f->array->schema.type);
    uint64_t extent[PYR_MAX_DIMS], from, end;
    span_of(n, cell, &g->box, box, &from, &end);
    if (end > g->stored ||
        g->stored != pyri_box_cells(n, &g->box) * cell)
        return pyri_fail(PYR_ECORRUPT, "a fragment has the wrong size");
    pyri_mem src = pyri_mem_dense(n, cell, &g->box, NULL);
    pyri_rows rows;
    pyri_blob_get slab[2];
    extents(n, box, extent);
    bool seen = span_seen(g, gets, from, end);
    if (!seen && end - from > SLAB)
        return copy_halves(f, g, gets, box, to, sum);
    if (!seen && gets[1].later) {
        if ((err = get_slab(f, gets, from, end, slab)) < 0)
            return err;
        gets = slab;
    }
    if (sum || !seen) {
        pyri_rows_of(n, cell, extent, src.step, &rows);
        if (!pyri_frag_aligned(g))
            err = verify_small(f, g, gets);
        else if (end - from <= rows.pieces * (rows.run + PYRI_BLOCK))
            err = verify(g, gets, from, end);
        else
            err = verify_rows(g, gets, &rows, 0, from);
        if (err < 0)
            return err;
    }
    src.base = (uint8_t *)(uintptr_t)gets[1].data +
               (gets[0].size + from - gets[1].offset);
    if (sum)
        sum_rows(&f->array->schema, &rows, src.base, sum);
    else if (f->past_caches)
        pyri_copy_past(n, cell, extent, to, src);
    else
        pyri_copy_before(n, cell, extent, to, src, &f->ahead);
    return 0;
}

/* Cells that have yet to be verified are best copied a little at a time, as
 * long as they are still in the nearest cache. */
static int
copy_halves(pyri_fetcher *f, const pyri_frag *g, const pyri_blob_get *gets,
            const pyri_box *box, pyri_mem to, pyri_summary *sum)
{
    int n = f->array->schema.ndim, axis = 0;
    pyri_box low = *box, high = *box;
    while (box->hi[axis] - box->lo[axis] == 1)
        axis++;
    low.hi[axis] = high.lo[axis] =
        box->lo[axis] + (box->hi[axis] - box->lo[axis]) / 2;
    int err = copy_plain(f, g, gets, &low, to, sum);
    if (err < 0)
        return err;
    return copy_plain(f, g, gets, &high,
                      pyri_mem_move(n, to, box->lo, high.lo), sum);
}

static uint64_t
count_bits(const uint8_t *mask, uint64_t from, uint64_t n)
{
    uint64_t count = 0;
    for (; n && from % 8; from++, n--)
        count += mask[from / 8] >> (from % 8) & 1;
    for (; n >= 8; from += 8, n -= 8)
        count += (unsigned)__builtin_popcount(mask[from / 8]);
    for (; n; from++, n--)
        count += mask[from / 8] >> (from % 8) & 1;
    return count;
}

/* One row of a masked fragment: cells [lo, hi) of it go to `to`. */
static void
copy_masked_row(const uint8_t *mask, uint64_t bit, const uint8_t *cells,
                uint64_t n, size_t cell, uint8_t *to, int64_t step)
{
    for (uint64_t i = 0; i < n; i++, bit++, to += step) {
        if (!(mask[bit / 8] >> (bit % 8) & 1))
            continue;
        memcpy(to, cells, cell);
        cells += cell;
    }
}

static void
copy_masked(pyri_fetcher *f, const pyri_box *frag, const uint8_t *cells,
            const uint8_t *mask, const pyri_box *box, pyri_mem to)
{
    int n = f->array->schema.ndim, last = n - 1;
    size_t cell = pyri_type_size(f->array->schema.type);
    uint64_t at[PYR_MAX_DIMS], bit = 0, rank = 0;
    uint64_t width = frag->hi[last] - frag->lo[last];
    memcpy(at, frag->lo, sizeof at);
    while (true) {
        bool inside = true;
        for (int d = 0; d < last; d++)
            inside &= at[d] >= box->lo[d] && at[d] < box->hi[d];
        if (inside) {
            uint64_t skip = box->lo[last] - frag->lo[last];
            at[last] = box->lo[last];
            pyri_mem row = pyri_mem_move(n, to, box->lo, at);
            copy_masked_row(mask, bit + skip,
                            cells + (rank + count_bits(mask, bit, skip)) * cell,
                            box->hi[last] - box->lo[last], cell, row.base,
                            to.step[last]);
        }
        rank += count_bits(mask, bit, width);
        bit += width;
        int d = last - 1;
        for (; d >= 0 && ++at[d] == frag->hi[d]; d--)
            at[d] = frag->lo[d];
        if (d < 0)
            return;
    }
}

/* Fragments that must be taken apart as a whole. */
static int
copy_whole(pyri_fetcher *f, const pyri_frag *g, const pyri_blob_get *gets,
           const pyri_box *box, pyri_mem to, pyri_summary *sum)
{
    int n = f->array->schema.ndim;
    size_t cell = pyri_type_size(f->array->schema.type);
    const uint8_t *cells, *mask;
    bool kept = f->expanded_of == g && g->kind == PYRI_FRAG_PRESSED;
    int err = 0;
    if (!kept)
        err = pyri_frag_aligned(g) ? verify(g, gets, 0, g->stored)
                                   : verify_small(f, g, gets);
    if (err < 0)
        return err;
    if (kept) {
        cells = f->expanded.data;
        mask = g->masked ? gets[1].data : NULL;
    } else if ((err = pyri_frag_expand(g, &f->array->style, gets[1].data,
                                       &f->expanded, &cells, &mask)) < 0) {
        return err;
    }
    f->expanded_of = g->kind == PYRI_FRAG_PRESSED ? g : NULL;
    if (mask) {
        copy_masked(f, &g->box, cells, mask, box, to);
        return 0;
    }
    uint64_t extent[PYR_MAX_DIMS];
    pyri_mem src = pyri_mem_dense(n, cell, &g->box,
                                  (uint8_t *)(uintptr_t)cells);
    extents(n, box, extent);
    src = pyri_mem_move(n, src, g->box.lo, box->lo);
    if (sum)
        pyri_sum_memory(&f->array->schema, box, src, sum);
    else
        pyri_copy(n, cell, extent, to, src);
    return 0;
}

static void
set_or_sum(const pyri_schema *s, const pyri_box *box, uint64_t bits,
           pyri_mem to, pyri_summary *sum)
{
    uint64_t extent[PYR_MAX_DIMS];
    if (sum) {
        pyri_summary_add_same(sum, s->type, s->fill, bits,
                              pyri_box_cells(s->ndim, box));
        return;
    }
    extents(s->ndim, box, extent);
    pyri_set(s->ndim, pyri_type_size(s->type), extent, to, bits);
}

static int
copy_from(pyri_fetcher *f, const pyri_frag *g, const pyri_blob_get *gets,
          const pyri_box *box, pyri_mem to, pyri_summary *sum)
{
    const pyri_schema *s = &f->array->schema;
    if (g->kind == PYRI_FRAG_SAME) {
        set_or_sum(s, box, g->bits, to, sum);
        return 0;
    }
    int err = g->masked || g->kind == PYRI_FRAG_PRESSED
                  ? copy_whole(f, g, gets, box, to, sum)
                  : copy_plain(f, g, gets, box, to, sum);
    if (err < 0) {
        char text[512];
        return pyri_fail_at(
            err, "array '%s', version %lld, box %s", f->array->name,
            (long long)(g->version - f->array->first),
            pyri_box_text(s->ndim, &g->box, text, sizeof text));
    }
    return 0;
}

/* --- whole jobs ---------------------------------------------------------- */

static pyri_mem
place_of(const pyri_fetcher *f, const pyri_fetch *job, const pyri_box *box)
{
    return pyri_mem_move(f->array->schema.ndim, job->to, job->box.lo, box->lo);
}

/* The two gets of a link; one of a single value has none. */
static const pyri_blob_get *
gets_of(const pyri_fetcher *f, const pyri_link *link)
{
    return link->frag.kind == PYRI_FRAG_SAME ? NULL : f->gets + link->get;
}

/* Note the first rows of a piece: they are brought into the cache while the one
 * before is copied, as the processor cannot know where they are. */
static void
foresee(pyri_fetcher *f, const pyri_fetch *job, const piece *p)
{
    if (p->link == job->n || job->sum) /* summing fetches for itself */
        return;
    int n = f->array->schema.ndim;
    size_t cell = pyri_type_size(f->array->schema.type);
    const pyri_frag *g = &job->links[p->link].frag;
    const pyri_blob_get *gets = gets_of(f, &job->links[p->link]);
    if (!gets || g->masked || g->kind != PYRI_FRAG_PLAIN || !gets[1].data ||
        gets[1].later)
        return;
    uint64_t extent[PYR_MAX_DIMS], from, end;
    pyri_mem src = pyri_mem_dense(n, cell, &g->box, NULL);
    pyri_rows *rows = &f->ahead_rows;
    extents(n, &p->box, extent);
    pyri_rows_of(n, cell, extent, src.step, rows);
    span_of(n, cell, &g->box, &p->box, &from, &end);
    if (rows->run >= LONG_ROW || end > g->stored)
        return;
    rows->pieces = pyri_min64(rows->pieces, FORESEEN / rows->run + 1);
    pyri_prefetch_begin(&f->ahead, rows,
                        gets[1].data + (gets[0].size + from - gets[1].offset));
}

/* Copy the pieces of a job, or sum them up. `next` comes after it, or NULL. */
static int
copy_pieces(pyri_fetcher *f, const pyri_fetch *job, size_t end,
            const pyri_fetch *next)
{
    const pyri_schema *s = &f->array->schema;
    int err = 0;
    for (size_t i = job->pieces; i < end && err == 0; i++) {
        const piece *p = &f->pieces[i];
        pyri_prefetch_more(&f->ahead, FORESEEN); /* what is left of its own */
        f->ahead.left = 0;
        if (i + 1 < end)
            foresee(f, job, p + 1);
        else if (next && !next->painted)
            foresee(f, next, p + 1);
        pyri_mem to = place_of(f, job, &p->box);
        if (p->link == job->n) {
            set_or_sum(s, &p->box, s->fill, to, job->sum);
            continue;
        }
        const pyri_link *link = &job->links[p->link];
        err = copy_from(f, &link->frag, gets_of(f, link), &p->box, to,
                        job->sum);
    }
    return err;
}

/* A masked fragment lets some cells of those below show through: then all are
 * painted, the oldest first. */
static int
paint_all(pyri_fetcher *f, const pyri_fetch *job)
{
    const pyri_schema *s = &f->array->schema;
    pyri_box common;
    int err = 0;
    set_or_sum(s, &job->box, s->fill, job->to, NULL);
    for (int i = job->n - 1; i >= 0 && err == 0; i--) {
        const pyri_link *link = &job->links[i];
        if (pyri_box_intersect(s->ndim, &link->shown, &job->box, &common))
            err = copy_from(f, &link->frag, gets_of(f, link), &common,
                            place_of(f, job, &common), NULL);
    }
    return err;
}

/* The same, to be summed up: through a copy. */
static int
paint_and_sum(pyri_fetcher *f, const pyri_fetch *job)
{
    const pyri_schema *s = &f->array->schema;
    size_t cell = pyri_type_size(s->type);
    uint64_t cells = pyri_box_cells(s->ndim, &job->box);
    uint8_t *scratch = pyri_scratch_take((size_t)(cells * cell));
    if (!scratch)
        return pyri_fail_nomem("cells to sum up");
    pyri_fetch copy = *job;
    copy.to = pyri_mem_dense(s->ndim, cell, &job->box, scratch);
    int err = paint_all(f, &copy);
    if (err == 0)
        pyri_summary_add(job->sum, s->type, s->fill, scratch, (size_t)cells);
    pyri_scratch_give(scratch);
    return err;
}

int
pyri_fetch_run(pyri_fetcher *f, pyri_fetch *jobs, size_t n)
{
    int err = 0;
    f->ngets = f->npieces = 0;
    f->ahead.left = 0;
    f->expanded_of = NULL;
    for (size_t i = 0; i < n && err == 0; i++)
        err = plan(f, &jobs[i]);
    if (err == 0 && f->ngets)
        err = pyri_engine_get_blobs(f->array->engine, f->reader, f->gets,
                                    f->ngets);
    for (size_t i = 0; f->afresh && i < f->ngets; i++) {
        f->gets[i].trusted = false;
        f->gets[i].seen = NULL;
    }
    for (size_t i = 0; i < n && err == 0; i++) {
        size_t end = i + 1 < n ? jobs[i + 1].pieces : f->npieces;
        if (!jobs[i].painted)
            err = copy_pieces(f, &jobs[i], end,
                              i + 1 < n ? &jobs[i + 1] : NULL);
        else
            err = jobs[i].sum ? paint_and_sum(f, &jobs[i])
                              : paint_all(f, &jobs[i]);
    }
    return err;
}
