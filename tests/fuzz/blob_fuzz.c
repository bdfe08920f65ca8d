/*
 * fuzz/blob_fuzz.c - what a blob holds: blocks behind checksums, masks,
 * pressed cells.
 *
 * Input: how (1; bit 0: pressed, bit 1: masked, bits 2-3: the codec to store
 * it with again), type (1), axes (1), extents (varints); the rest is the
 * payload. Its checksums are made here, or nothing would get past them.
 */
#include "fuzz/fuzz.h"

#include "chunk/frag.h"

enum { PRESSED = 1, MASKED = 2, MOST_CELLS = 1 << 18 };

/* A head with the right table, and the description that fits it. */
static uint8_t *
make_head(pyri_frag *f, const uint8_t *payload)
{
    size_t size = (size_t)pyri_frag_head_size(f);
    uint8_t *head = calloc(1, size);
    MUST(head);
    for (uint64_t at = 0; at < f->stored; at += PYRI_BLOCK) {
        uint64_t left = f->stored - at;
        size_t n = left < PYRI_BLOCK ? (size_t)left : PYRI_BLOCK;
        pyri_store64(head + 64 + 8 * (at / PYRI_BLOCK),
                     pyri_hash64(payload + at, n));
    }
    f->check = pyri_hash64(head, size);
    return head;
}

static uint64_t
count_blocks(const pyri_frag *f)
{
    return (f->stored + PYRI_BLOCK - 1) / PYRI_BLOCK;
}

static void
check_sums(pyri_frag *f, uint8_t *payload)
{
    uint8_t *head = make_head(f, payload);
    size_t at = (size_t)(f->check % f->stored);
    MUST(pyri_frag_check_head(f, head) == 0);
    MUST(pyri_frag_check_blocks(f, head, payload, 0, count_blocks(f)) == 0);
    payload[at] ^= 1;
    MUST(pyri_frag_check_blocks(f, head, payload, 0, count_blocks(f)) ==
         PYR_ECORRUPT);
    payload[at] ^= 1;
    head[at % 64] ^= 1;
    MUST(pyri_frag_check_head(f, head) == PYR_ECORRUPT);
    free(head);
}

/* The payload of a packed fragment, in one piece. */
static uint8_t *
gather(const pyri_packer *p, const pyri_frag *f)
{
    uint8_t *blob = malloc((size_t)p->size), *payload;
    size_t at = 0, head = (size_t)pyri_frag_head_size(f);
    MUST(blob && p->size == pyri_frag_blob_size(f));
    for (int i = 0; i < p->niov; i++) {
        memcpy(blob + at, p->iov[i].iov_base, p->iov[i].iov_len);
        at += p->iov[i].iov_len;
    }
    MUST(at == p->size);
    MUST(pyri_frag_check_head(f, blob) == 0);
    MUST(pyri_frag_check_blocks(f, blob, blob + head, 0, count_blocks(f)) == 0);
    MUST((payload = malloc((size_t)f->stored)));
    memcpy(payload, blob + head, (size_t)f->stored);
    free(blob);
    return payload;
}

/* Cells that were accepted are stored anew, and read back the same. */
static void
pack_again(const pyri_frag_style *style, const pyri_box *box,
           const uint8_t *cells, const uint8_t *mask, uint64_t set)
{
    pyri_packer packer = {0};
    pyri_summary sum;
    pyri_frag f;
    size_t cell = pyri_type_size(style->type);
    uint8_t *own = malloc(set * cell + 1);
    MUST(own);
    memcpy(own, cells, set * cell);
    pyri_summary_init(&sum);
    pyri_mem src = pyri_mem_dense(style->ndim, cell, box, own);
    MUST(pyri_frag_pack(&packer, style, box, src, mask, set, &f, &sum) == 0);
    MUST(sum.count == set);
    if (f.kind == PYRI_FRAG_SAME) {
        for (uint64_t i = 0; i < set; i++)
            MUST(pyri_cell_load(style->type, own + i * cell) == f.bits);
    } else {
        pyri_buf room = {0};
        const uint8_t *cells2, *mask2;
        uint8_t *payload = gather(&packer, &f);
        MUST(pyri_frag_expand(&f, style, payload, &room, &cells2, &mask2) == 0);
        MUST(set == 0 || memcmp(cells2, own, set * cell) == 0);
        MUST(!mask == !mask2);
        pyri_buf_fini(&room);
        free(payload);
    }
    free(own);
    pyri_packer_fini(&packer);
}

static void
check_cells(const pyri_frag *f, pyri_frag_style *style, const uint8_t *cells,
            const uint8_t *mask)
{
    uint64_t all = pyri_box_cells(style->ndim, &f->box), set = all;
    if (mask) {
        set = 0;
        for (uint64_t i = 0; i < all; i++)
            set += mask[i / 8] >> (i % 8) & 1;
    }
    touch(cells, (size_t)set * pyri_type_size(style->type));
    if (!mask) {
        pack_again(style, &f->box, cells, NULL, set);
        return;
    }
    size_t size = (size_t)pyri_mask_size(all);
    uint8_t *clean = calloc(1, size);
    MUST(clean);
    for (uint64_t i = 0; i < all; i++)
        clean[i / 8] |= (uint8_t)(mask[i / 8] & 1 << i % 8);
    pack_again(style, &f->box, cells, clean, set);
    free(clean);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_size)
{
    pyri_cursor in = pyri_cursor_of(data, data_size);
    uint8_t how = pyri_cursor_u8(&in);
    pyri_frag f = {.kind = how & PRESSED ? PYRI_FRAG_PRESSED : PYRI_FRAG_PLAIN,
                   .masked = how & MASKED};
    pyri_frag_style style = {.type = take_type(&in),
                             .codec = (pyr_codec)((how >> 2 & 3) % 3)};
    style.ndim = take_below(&in, PYR_MAX_DIMS) + 1;
    for (int d = 0; d < style.ndim; d++)
        if ((f.box.hi[d] = pyri_cursor_varint(&in)) == 0)
            f.box.hi[d] = 1;
    size_t size;
    uint8_t *payload = take_rest(&in, &size);
    f.stored = size;
    /* Descriptions of more cells than a file can hold are refused before;
     * large ones are slow, and no different. */
    if (size > 0 && pyri_box_cells(style.ndim, &f.box) <= MOST_CELLS) {
        pyri_buf room = {0};
        const uint8_t *cells, *mask;
        check_sums(&f, payload);
        int err = pyri_frag_expand(&f, &style, payload, &room, &cells, &mask);
        if (err < 0)
            must_refuse(err);
        else
            check_cells(&f, &style, cells, mask);
        pyri_buf_fini(&room);
    }
    free(payload);
    return 0;
}
