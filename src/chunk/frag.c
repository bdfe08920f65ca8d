/*
 * chunk/frag.c - fragments: cells of one chunk as they are stored.
 *
 * The head of a blob:
 *
 *   at  bytes
 *    0     4  "PYRF"
 *    4     1  format of the head, 1
 *    5     1  kind: 1 plain, 2 pressed
 *    6     1  1 if masked
 *    7     1  cell type
 *    8     8  id of the array it was written for
 *   16     8  cells in the payload
 *   24     8  bytes of payload
 *   32     8  bytes of mask at the beginning of the payload
 *   40     8  lowest corner of the box, hashed: finds the owner of an orphan
 *   48    16  digest of mask and cells
 *   64   8*n  table: XXH3 (64 bits) of each 4096 bytes of payload
 *
 * padded with zeros to a multiple of 4096 if the payload has 64 KiB or more,
 * else to a multiple of 8. All numbers are little-endian.
 *
 * The digest vouches for the cells, not for their stored form: it is the
 * 128-bit XXH3 of the checksums of every 4096 bytes of mask and unpressed
 * cells (of a PYRI_FRAG_SAME: of its value and count).
 */
#include "chunk/frag.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/scratch.h"
#include "base/sys.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEAD = 64,
    MIN_ROW = 512,        /* rows below this are gathered before the scan, */
    LONG_ROW = 16 << 10,  /* below this while they are scanned, if they are */
    MAX_BOUNCE = 4 << 20  /* no more than this in all, */
};                        /* and others written from where they are */

static uint64_t
blocks_of(uint64_t bytes)
{
    return bytes / PYRI_BLOCK + (bytes % PYRI_BLOCK != 0);
}

uint64_t
pyri_frag_head_size(const pyri_frag *f)
{
    uint64_t size = HEAD + 8 * blocks_of(f->stored);
    uint64_t unit = pyri_frag_aligned(f) ? PYRI_BLOCK : 8;
    return (size + unit - 1) / unit * unit;
}

uint64_t
pyri_frag_blob_size(const pyri_frag *f)
{
    return pyri_frag_head_size(f) + f->stored;
}

uint64_t
pyri_mask_size(uint64_t cells)
{
    return (cells / 8 + 8) / 8 * 8;
}

uint64_t
pyri_frag_mask_size(const pyri_frag *f, int ndim)
{
    if (!f->masked)
        return 0;
    return pyri_mask_size(pyri_box_cells(ndim, &f->box));
}

void
pyri_packer_fini(pyri_packer *p)
{
    free(p->iov);
    pyri_buf_fini(&p->head);
    pyri_buf_fini(&p->cells);
    pyri_buf_fini(&p->pressed);
    pyri_scratch_give(p->bounce);
    *p = (pyri_packer){0};
}

/* --- scanning: checksums and summary in one pass over the cells ---------- */

typedef struct scan {
    const pyri_frag_style *style;
    pyri_summary *summary; /* NULL: checksums only */
    uint8_t *table;        /* next checksum goes here */
    bool keep;             /* blocks are gathered one after the other */
    uint8_t *block;        /* a block that spans rows, or any block to keep */
    size_t held;           /* bytes that it has so far */
    pyri_prefetch next;    /* rows to fetch while a block is scanned */
    uint8_t own[PYRI_BLOCK];
} scan;

static void
scan_begin(scan *s, const pyri_frag_style *style, pyri_summary *summary,
           uint8_t *table)
{
    s->style = style;
    s->summary = summary;
    s->table = table;
    s->keep = false;
    s->block = s->own;
    s->held = 0;
    s->next.left = 0;
}

static void
scan_block(scan *s, const uint8_t *bytes, size_t size)
{
    pyri_prefetch_more(&s->next, PYRI_BLOCK);
    pyri_store64(s->table, pyri_hash64(bytes, size));
    s->table += 8;
    if (s->summary)
        pyri_summary_add(s->summary, s->style->type, s->style->fill, bytes,
                         size / pyri_type_size(s->style->type));
}

static void
scan_held(scan *s)
{
    scan_block(s, s->block, s->held);
    if (s->keep)
        s->block += s->held;
    s->held = 0;
}

/* Blocks that lie inside one row are read in place, others are gathered. */
static void
scan_row(scan *s, const uint8_t *row, uint64_t size)
{
    while (size) {
        size_t n = (size_t)pyri_min64(size, PYRI_BLOCK - s->held);
        if (n == PYRI_BLOCK && !s->keep) {
            scan_block(s, row, n);
        } else {
            memcpy(s->block + s->held, row, n);
            s->held += n;
            if (s->held == PYRI_BLOCK)
                scan_held(s);
        }
        row += n;
        size -= n;
    }
}

static void
scan_end(scan *s)
{
    if (s->held)
        scan_held(s);
}

/* --- gathering ----------------------------------------------------------- */

static int
add_iov(pyri_packer *p, const void *base, size_t size)
{
    if (p->niov == p->iov_room) {
        int room = p->iov_room ? 2 * p->iov_room : 64;
        struct iovec *iov = pyri_sys_realloc(p->iov,
                                             (size_t)room * sizeof *iov);
        if (!iov)
            return pyri_fail_nomem("a gather list");
        p->iov = iov;
        p->iov_room = room;
    }
    p->iov[p->niov++] = (struct iovec){(void *)(uintptr_t)base, size};
    return 0;
}

/* Visit every row of strided memory: scan it, and list it for gathering, if
 * that is not done on the way. */
static int
scan_rows(pyri_packer *p, scan *s, const pyri_rows *rows, int axis,
          const uint8_t *at)
{
    if (axis == rows->outer) {
        scan_row(s, at, rows->run);
        return s->keep ? 0 : add_iov(p, at, rows->run);
    }
    for (uint64_t i = 0; i < rows->extent[axis]; i++) {
        int err = scan_rows(p, s, rows, axis + 1, at);
        if (err < 0)
            return err;
        at += rows->step[axis];
    }
    return 0;
}

static int
get_bounce(pyri_packer *p, size_t size)
{
    if (size <= p->bounce_size)
        return 0;
    pyri_scratch_give(p->bounce);
    p->bounce = pyri_scratch_take(size);
    p->bounce_size = p->bounce ? size : 0;
    return p->bounce ? 0 : pyri_fail_nomem("the cells of a fragment");
}

/* The system copies one piece that is still in the cache in half the time that
 * it takes for a thousand rows. */
static int
scan_strided(pyri_packer *p, scan *s, const pyri_rows *rows,
             const uint8_t *at, size_t size)
{
    int err;
    s->keep = rows->run < LONG_ROW && rows->pieces > 1 && size <= MAX_BOUNCE;
    if (s->keep) {
        if ((err = get_bounce(p, size)) < 0 ||
            (err = add_iov(p, p->bounce, size)) < 0)
            return err;
        s->block = p->bounce;
    }
    if (rows->run < LONG_ROW) {
        pyri_prefetch_begin(&s->next, rows, at);
        pyri_prefetch_more(&s->next, 2 * PYRI_BLOCK);
    }
    return scan_rows(p, s, rows, 0, at);
}

/* --- packing ------------------------------------------------------------- */

static pyri_digest
digest_of_same(uint64_t bits, uint64_t cells)
{
    uint8_t text[16];
    pyri_store64(text, bits);
    pyri_store64(text + 8, cells);
    return pyri_hash128(text, sizeof text);
}

static uint8_t *
begin_head(pyri_packer *p, uint64_t payload)
{
    pyri_frag sized = {.stored = payload};
    size_t size = (size_t)pyri_frag_head_size(&sized);
    pyri_buf_reset(&p->head);
    uint8_t *head = pyri_buf_extend(&p->head, size);
    if (head)
        memset(head, 0, size);
    return head;
}

/* Fill in the head around a table that is there already. */
static void
end_head(pyri_packer *p, const pyri_frag_style *style, uint64_t cells,
         pyri_frag *f)
{
    uint8_t *head = p->head.data;
    uint8_t corner[8 * PYR_MAX_DIMS];
    for (int d = 0; d < style->ndim; d++)
        pyri_store64(corner + 8 * d, f->box.lo[d]);
    memcpy(head, "PYRF", 4);
    head[4] = 1;
    head[5] = (uint8_t)f->kind;
    head[6] = f->masked;
    head[7] = (uint8_t)style->type;
    pyri_store64(head + 8, style->array);
    pyri_store64(head + 16, cells);
    pyri_store64(head + 24, f->stored);
    pyri_store64(head + 32, pyri_frag_mask_size(f, style->ndim));
    pyri_store64(head + 40,
                 pyri_hash64(corner, 8 * (size_t)style->ndim));
    pyri_store64(head + 48, f->cells.lo);
    pyri_store64(head + 56, f->cells.hi);
    f->check = pyri_hash64(head, (size_t)pyri_frag_head_size(f));
    p->iov[0] = (struct iovec){head, (size_t)pyri_frag_head_size(f)};
    p->size = pyri_frag_blob_size(f);
    p->aligned = pyri_frag_aligned(f);
}

/* Put dense cells (and a mask before them) into one piece of memory. */
static uint8_t *
gather(pyri_packer *p, const pyri_frag_style *style, const uint64_t *extent,
       pyri_mem src, const uint8_t *mask, size_t mask_size, size_t size)
{
    size_t cell = pyri_type_size(style->type);
    pyri_buf_reset(&p->cells);
    uint8_t *to = pyri_buf_extend(&p->cells, size);
    if (!to)
        return NULL;
    if (mask) {
        memcpy(to, mask, mask_size);
        memcpy(to + mask_size, src.base, size - mask_size);
        return to;
    }
    pyri_box whole = {.lo = {0}};
    memcpy(whole.hi, extent, (size_t)style->ndim * sizeof *extent);
    pyri_mem dst = pyri_mem_dense(style->ndim, cell, &whole, to);
    pyri_copy(style->ndim, cell, extent, dst, src);
    return to;
}

/* Press the gathered payload, keeping the mask in front as it is. Sets
 * f->stored, or leaves it where pressing does not pay. */
static int
press(pyri_packer *p, const pyri_frag_style *style, size_t mask_size,
      pyri_frag *f)
{
    size_t size = (size_t)f->stored - mask_size, pressed = 0;
    pyri_buf_reset(&p->pressed);
    uint8_t *to = pyri_buf_extend(&p->pressed, (size_t)f->stored);
    if (!to)
        return pyri_fail_nomem("a pressed fragment");
    int err = pyri_codec_press(style->codec, style->level,
                               pyri_type_size(style->type),
                               p->cells.data + mask_size, size,
                               to + mask_size, &pressed);
    if (err < 0 || pressed == 0)
        return err;
    memcpy(to, p->cells.data, mask_size);
    f->kind = PYRI_FRAG_PRESSED;
    f->stored = mask_size + pressed;
    return 0;
}

/* The stored bytes differ from the cells: a table of their own. */
static int
table_of_pressed(pyri_packer *p, const pyri_frag_style *style, pyri_frag *f)
{
    uint8_t *head = begin_head(p, f->stored);
    if (!head)
        return pyri_fail_nomem("a fragment's head");
    scan s;
    scan_begin(&s, style, NULL, head + HEAD);
    scan_row(&s, p->pressed.data, f->stored);
    scan_end(&s);
    p->niov = 1;
    return add_iov(p, p->pressed.data, (size_t)f->stored);
}

void
pyri_frag_same(const pyri_frag_style *style, const pyri_box *box, uint64_t bits,
               pyri_frag *f, pyri_summary *summary)
{
    uint64_t cells = pyri_box_cells(style->ndim, box);
    *f = (pyri_frag){.kind = PYRI_FRAG_SAME,
                     .bits = bits,
                     .cells = digest_of_same(bits, cells)};
    for (int d = 0; d < style->ndim; d++) {
        f->box.lo[d] = box->lo[d];
        f->box.hi[d] = box->hi[d];
    }
    pyri_summary_add_same(summary, style->type, style->fill, bits, cells);
}

int
pyri_frag_pack(pyri_packer *p, const pyri_frag_style *style,
               const pyri_box *box, pyri_mem src, const uint8_t *mask,
               uint64_t set, pyri_frag *f, pyri_summary *summary)
{
    int n = style->ndim, err;
    size_t cell = pyri_type_size(style->type);
    uint64_t extent[PYR_MAX_DIMS], cells = mask ? set : pyri_box_cells(n, box);
    pyri_summary own;
    pyri_summary_init(&own);
    *f = (pyri_frag){.kind = PYRI_FRAG_PLAIN, .masked = mask != NULL};
    for (int d = 0; d < n; d++) {
        f->box.lo[d] = box->lo[d];
        f->box.hi[d] = box->hi[d];
        extent[d] = box->hi[d] - box->lo[d];
    }
    size_t mask_size = (size_t)pyri_frag_mask_size(f, n);
    f->stored = cells * cell + mask_size;

    uint8_t *head = begin_head(p, f->stored);
    if (!head)
        return pyri_fail_nomem("a fragment's head");
    p->niov = 0;
    if ((err = add_iov(p, head, 0)) < 0)
        return err;

    scan s;
    scan_begin(&s, style, summary ? &own : NULL, head + HEAD);
    pyri_rows rows;
    pyri_rows_of(n, cell, extent, src.step, &rows);
    if (mask || style->codec || (rows.run < MIN_ROW && rows.pieces > 1)) {
        uint8_t *dense =
            gather(p, style, extent, src, mask, mask_size, f->stored);
        if (!dense)
            return pyri_fail_nomem("the cells of a fragment");
        if (mask && summary) /* its bytes are no cells: summary by itself */
            pyri_summary_add(&own, style->type, style->fill,
                             dense + mask_size, cells);
        if (mask)
            s.summary = NULL;
        scan_row(&s, dense, f->stored);
        if ((err = add_iov(p, dense, (size_t)f->stored)) < 0)
            return err;
    } else if ((err = scan_strided(p, &s, &rows, src.base,
                                   (size_t)f->stored)) < 0) {
        return err;
    }
    scan_end(&s);
    if (summary)
        pyri_summary_merge(summary, style->type, &own);

    if (own.equal && !mask) {
        f->kind = PYRI_FRAG_SAME;
        f->bits = own.min;
        f->stored = 0;
        f->cells = digest_of_same(own.min, cells);
        return 0;
    }
    f->cells = pyri_hash128(head + HEAD, 8 * (size_t)blocks_of(f->stored));
    if (style->codec && (err = press(p, style, mask_size, f)) < 0)
        return err;
    if (f->kind == PYRI_FRAG_PRESSED &&
        (err = table_of_pressed(p, style, f)) < 0)
        return err;
    end_head(p, style, cells, f);
    return 0;
}

/* --- reading back -------------------------------------------------------- */

int
pyri_frag_check_head(const pyri_frag *f, const uint8_t *head)
{
    if (pyri_hash64(head, (size_t)pyri_frag_head_size(f)) != f->check)
        return pyri_fail(PYR_ECORRUPT, "checksums of a fragment are damaged");
    return 0;
}

int
pyri_frag_check_blocks(const pyri_frag *f, const uint8_t *head,
                       const uint8_t *bytes, uint64_t first, uint64_t n)
{
    for (uint64_t i = first; i < first + n; i++, bytes += PYRI_BLOCK) {
        size_t size =
            (size_t)pyri_min64(PYRI_BLOCK, f->stored - i * PYRI_BLOCK);
        if (pyri_hash64(bytes, size) != pyri_load64(head + HEAD + 8 * i))
            return pyri_fail(PYR_ECORRUPT, "cells fail their checksum");
    }
    return 0;
}

int
pyri_frag_expand(const pyri_frag *f, const pyri_frag_style *style,
                 const uint8_t *payload, pyri_buf *room, const uint8_t **cells,
                 const uint8_t **mask)
{
    size_t cell = pyri_type_size(style->type);
    uint64_t all = pyri_box_cells(style->ndim, &f->box), count = all;
    size_t mask_size = (size_t)pyri_frag_mask_size(f, style->ndim);
    *mask = f->masked ? payload : NULL;
    if (f->masked) {
        if (mask_size > f->stored)
            return pyri_fail(PYR_ECORRUPT, "a fragment's mask is cut short");
        count = 0;
        for (uint64_t i = 0; i < all / 8 + 1; i++)
            count += (unsigned)__builtin_popcount(payload[i]);
    }
    if (count > all)
        return pyri_fail(PYR_ECORRUPT, "a fragment's mask is too full");
    if (f->kind == PYRI_FRAG_PLAIN) {
        if (f->stored - mask_size != count * cell)
            return pyri_fail(PYR_ECORRUPT, "a fragment has the wrong size");
        *cells = payload + mask_size;
        return 0;
    }
    size_t size = (size_t)(count * cell), pressed = (size_t)f->stored - mask_size;
    int err = pyri_codec_check(payload + mask_size, pressed, size);
    if (err < 0)
        return err;
    pyri_buf_reset(room);
    uint8_t *to = pyri_buf_extend(room, size);
    if (!to)
        return pyri_fail_nomem("the cells of a fragment");
    *cells = to;
    return pyri_codec_expand(payload + mask_size, pressed, to, size);
}

/* --- looking at all of it ------------------------------------------------ */

enum { SLAB = 64 << 10 }; /* bytes that stay in the nearest cache */

static int
wrong_digest(void)
{
    return pyri_fail(PYR_ECORRUPT, "cells are not those of their digest");
}

static bool
is_digest(const pyri_frag *f, const uint8_t *table, uint64_t blocks)
{
    pyri_digest d = pyri_hash128(table, 8 * (size_t)blocks);
    return d.lo == f->cells.lo && d.hi == f->cells.hi;
}

/* Block i of a mask and the cells behind it; gathered in `block` if it has
 * some of both. */
static const uint8_t *
block_of(const uint8_t *mask, size_t mask_size, const uint8_t *cells,
         uint64_t i, size_t size, uint8_t *block)
{
    uint64_t at = i * PYRI_BLOCK;
    if (at >= mask_size)
        return cells + (at - mask_size);
    if (at + size <= mask_size)
        return mask + at;
    size_t first = mask_size - (size_t)at;
    memcpy(block, mask + at, first);
    memcpy(block + first, cells, size - first);
    return block;
}

/* The digest of cells that came out of a codec. */
static int
check_pressed(const pyri_frag *f, const pyri_frag_style *style,
              const uint8_t *cells, size_t cell_bytes, const uint8_t *mask)
{
    size_t mask_size = (size_t)pyri_frag_mask_size(f, style->ndim);
    uint64_t all = mask_size + cell_bytes, blocks = blocks_of(all);
    uint8_t block[PYRI_BLOCK];
    uint8_t *table = pyri_sys_malloc(8 * (size_t)blocks + 8);
    if (!table)
        return pyri_fail_nomem("the checksums of a fragment");
    for (uint64_t i = 0; i < blocks; i++) {
        size_t size = (size_t)pyri_min64(PYRI_BLOCK, all - i * PYRI_BLOCK);
        pyri_store64(table + 8 * i,
                     pyri_hash64(block_of(mask, mask_size, cells, i, size,
                                          block), size));
    }
    bool good = is_digest(f, table, blocks);
    free(table);
    return good ? 0 : wrong_digest();
}

static int
check_fields(const pyri_frag *f, const pyri_frag_style *style,
             const uint8_t *head)
{
    if (memcmp(head, "PYRF", 4) != 0 || head[4] != 1 || head[5] != f->kind ||
        head[6] != f->masked || head[7] != (uint8_t)style->type ||
        pyri_load64(head + 24) != f->stored ||
        pyri_load64(head + 48) != f->cells.lo ||
        pyri_load64(head + 56) != f->cells.hi)
        return pyri_fail(PYR_ECORRUPT, "the head of a fragment is of another");
    return 0;
}

int
pyri_frag_check(const pyri_frag *f, const pyri_frag_style *style,
                const uint8_t *head, const uint8_t *payload, pyri_buf *room,
                pyri_summary *sum)
{
    size_t cell = pyri_type_size(style->type), bytes;
    bool plain = f->kind == PYRI_FRAG_PLAIN;
    const uint8_t *cells, *mask;
    uint64_t count = pyri_load64(head + 16);
    int err;
    if ((err = pyri_frag_check_head(f, head)) < 0 ||
        (err = check_fields(f, style, head)) < 0)
        return err;
    for (uint64_t at = 0; at < f->stored; at += SLAB) {
        uint64_t n = pyri_min64(SLAB, f->stored - at);
        if ((err = pyri_frag_check_blocks(f, head, payload + at,
                                          at / PYRI_BLOCK,
                                          blocks_of(n))) < 0)
            return err;
        if (sum && plain)
            pyri_summary_add(sum, style->type, style->fill, payload + at,
                             (size_t)n / cell);
    }
    if ((err = pyri_frag_expand(f, style, payload, room, &cells, &mask)) < 0)
        return err;
    if (plain)
        return is_digest(f, head + HEAD, blocks_of(f->stored))
                   ? 0
                   : wrong_digest();
    bytes = room->size;
    if (count != bytes / cell)
        return pyri_fail(PYR_ECORRUPT, "a fragment has the wrong size");
    if (sum)
        pyri_summary_add(sum, style->type, style->fill, cells,
                         (size_t)count);
    return check_pressed(f, style, cells, bytes, mask);
}

int
pyri_frag_check_same(const pyri_frag *f, int ndim)
{
    pyri_digest d = digest_of_same(f->bits, pyri_box_cells(ndim, &f->box));
    return d.lo == f->cells.lo && d.hi == f->cells.hi ? 0 : wrong_digest();
}

/* --- the description ----------------------------------------------------- */

/* Its parts: kind and version, then the box, then one of the others. */
enum { PLACE = 9, SAME = 24, STORED = 48 };
enum { MASKED = 0x80, FOLD = 0x40 };

/* Bytes of a number that counts cells inside the chunk. */
static size_t
width_of(int ndim, const pyri_box *chunk)
{
    uint64_t most = 0;
    for (int d = 0; d < ndim; d++)
        most |= chunk->hi[d] - chunk->lo[d];
    return most <= UINT16_MAX ? 2 : most <= UINT32_MAX ? 4 : 8;
}

static inline uint64_t
load_cells(const uint8_t *at, size_t width)
{
    return width == 2   ? pyri_load16(at)
           : width == 4 ? pyri_load32(at)
                        : pyri_load64(at);
}

static void
store_cells(uint8_t *at, size_t width, uint64_t v)
{
    if (width == 2)
        pyri_store16(at, (uint16_t)v);
    else if (width == 4)
        pyri_store32(at, (uint32_t)v);
    else
        pyri_store64(at, v);
}

void
pyri_frag_encode(const pyri_frag *f, int ndim, const pyri_box *chunk,
                 pyri_buf *out)
{
    bool same = f->kind == PYRI_FRAG_SAME;
    size_t width = width_of(ndim, chunk), box = 2 * width * (size_t)ndim;
    uint8_t *at = pyri_buf_extend(out, PLACE + box + (same ? SAME : STORED));
    if (!at)
        return;
    at[0] = (uint8_t)(f->kind | (f->masked ? MASKED : 0) |
                      (f->fold ? FOLD : 0));
    pyri_store64(at + 1, f->version);
    at += PLACE;
    for (int d = 0; d < ndim; d++, at += 2 * width) {
        store_cells(at, width, f->box.lo[d] - chunk->lo[d]);
        store_cells(at + width, width, f->box.hi[d] - f->box.lo[d]);
    }
    pyri_store64(at, f->cells.lo);
    pyri_store64(at + 8, f->cells.hi);
    pyri_store64(at + 16, same ? f->bits : f->ref[0]);
    if (same)
        return;
    pyri_store64(at + 24, f->ref[1]);
    pyri_store64(at + 32, f->stored);
    pyri_store64(at + 40, f->check);
}

static int
damaged(void)
{
    return pyri_fail(PYR_ECORRUPT, "a fragment's description is damaged");
}

int
pyri_frag_decode_box(pyri_cursor *c, int ndim, const pyri_box *chunk,
                     pyri_frag *f)
{
    size_t width = width_of(ndim, chunk);
    const uint8_t *at =
        pyri_cursor_take(c, PLACE + 2 * width * (size_t)ndim);
    if (!at)
        return damaged();
    f->masked = at[0] & MASKED;
    f->fold = at[0] & FOLD;
    f->kind = (pyri_frag_kind)(at[0] & ~(MASKED | FOLD));
    f->version = pyri_load64(at + 1);
    at += PLACE;
    bool good = f->kind <= PYRI_FRAG_PRESSED &&
                !(f->masked && f->kind == PYRI_FRAG_SAME);
    for (int d = 0; d < ndim; d++, at += 2 * width) {
        uint64_t from = load_cells(at, width);
        uint64_t size = load_cells(at + width, width);
        uint64_t room = chunk->hi[d] - chunk->lo[d];
        good &= from < room && size > 0 && size <= room - from;
        f->box.lo[d] = chunk->lo[d] + from;
        f->box.hi[d] = f->box.lo[d] + size;
    }
    return good ? 0 : damaged();
}

int
pyri_frag_decode_rest(pyri_cursor *c, int ndim, pyri_frag *f)
{
    bool same = f->kind == PYRI_FRAG_SAME;
    const uint8_t *at = pyri_cursor_take(c, same ? SAME : STORED);
    if (!at)
        return damaged();
    f->cells.lo = pyri_load64(at);
    f->cells.hi = pyri_load64(at + 8);
    f->bits = f->stored = f->check = f->ref[0] = f->ref[1] = 0;
    if (same) {
        f->bits = pyri_load64(at + 16);
        return 0;
    }
    f->ref[0] = pyri_load64(at + 16);
    f->ref[1] = pyri_load64(at + 24);
    f->stored = pyri_load64(at + 32);
    f->check = pyri_load64(at + 40);
    /* so that bytes can be counted */
    return f->stored > 0 && f->stored < UINT64_MAX / 16 &&
                   pyri_box_cells(ndim, &f->box) < UINT64_MAX / 16
               ? 0
               : damaged();
}

int
pyri_frag_skip_rest(pyri_cursor *c, const pyri_frag *f)
{
    bool same = f->kind == PYRI_FRAG_SAME;
    return pyri_cursor_take(c, same ? SAME : STORED) ? 0 : damaged();
}

void
pyri_frag_look_for(int ndim, const pyri_box *chunk, const pyri_box *box,
                   pyri_frag_window *w)
{
    w->ndim = ndim;
    w->usable = width_of(ndim, chunk) == 2 &&
                pyri_box_contains(ndim, chunk, box);
    for (int d = 0; d < ndim && w->usable; d++) {
        w->room[d] = (uint32_t)(chunk->hi[d] - chunk->lo[d]);
        w->lo[d] = (uint32_t)(box->lo[d] - chunk->lo[d]);
        w->hi[d] = (uint32_t)(box->hi[d] - chunk->lo[d]);
    }
}

/* Is it a box inside the chunk that has nothing of the window? */
static inline bool
is_apart(const uint8_t *at, const pyri_frag_window *w)
{
    bool good = true, apart = false;
    for (int d = 0; d < w->ndim; d++, at += 4) {
        uint32_t from = pyri_load16(at), size = pyri_load16(at + 2);
        good &= size > 0 && from + size <= w->room[d];
        apart |= from >= w->hi[d] || from + size <= w->lo[d];
    }
    return good && apart;
}

uint64_t
pyri_frag_skip_apart(pyri_cursor *c, const pyri_frag_window *w,
                     uint64_t newer, uint64_t most)
{
    const size_t place = PLACE + 4 * (size_t)w->ndim;
    uint64_t n = 0;
    for (; w->usable && n < most; n++) {
        const uint8_t *at = c->at;
        if ((size_t)(c->end - at) < place + STORED)
            break;
        unsigned kind = at[0] & ~(unsigned)(FOLD | MASKED);
        if (kind > PYRI_FRAG_PRESSED || pyri_load64(at + 1) <= newer ||
            !is_apart(at + PLACE, w))
            break;
        c->at += place + (kind == PYRI_FRAG_SAME ? SAME : STORED);
    }
    return n;
}

int
pyri_frag_decode(pyri_cursor *c, int ndim, const pyri_box *chunk, pyri_frag *f)
{
    int err = pyri_frag_decode_box(c, ndim, chunk, f);
    return err < 0 ? err : pyri_frag_decode_rest(c, ndim, f);
}
