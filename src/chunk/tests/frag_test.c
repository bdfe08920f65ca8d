/*
 * Fragments: cells of all shapes, types and layouts come back, equal cells
 * have equal digests, and no damage goes unnoticed.
 */
#include "base/checked.h"
#include "chunk/frag.h"
#include "support/check.h"
#include "support/rng.h"

enum { MEMORY = 1 << 20 };

typedef enum look { ALL_SAME, RAMP, NOISE, NEARLY_SAME, LOOKS } look;

/* Some cells, where they are, and what became of them. */
typedef struct sample {
    rng r;
    pyri_frag_style style;
    pyri_box box;
    uint64_t cells;  /* of the box */
    size_t cell;     /* bytes */
    uint8_t *dense;  /* all cells of the box, row-major */
    uint8_t *memory; /* the same, strided */
    pyri_mem src;
    uint8_t *mask;   /* or NULL */
    uint64_t set;
    pyri_frag frag;
    pyri_summary summary;
    pyri_packer packer;
    uint8_t *blob;   /* or NULL */
} sample;

static void
pick_cells(sample *s, look how)
{
    uint64_t value = rng_next(&s->r);
    for (uint64_t i = 0; i < s->cells; i++) {
        uint64_t bits = how == RAMP    ? i / 3
                        : how == NOISE ? rng_next(&s->r)
                                       : value;
        memcpy(s->dense + i * s->cell, &bits, s->cell);
    }
    if (how == NEARLY_SAME)
        s->dense[rng_below(&s->r, s->cells * s->cell)] ^= 0x10;
}

/* Put the cells into memory in any order of axes, either way, with gaps. */
static void
lay_out(sample *s)
{
    int n = s->style.ndim, order[PYR_MAX_DIMS];
    int64_t step = (int64_t)s->cell, low = 0;
    uint64_t wild = rng_below(&s->r, 3); /* 0: dense, 1: rows with gaps */
    uint64_t extent[PYR_MAX_DIMS];
    for (int d = 0; d < n; d++)
        order[d] = n - 1 - d;
    for (int d = n - 1; d > 0 && wild == 2; d--) {
        int k = (int)rng_below(&s->r, (uint64_t)d + 1), was = order[d];
        order[d] = order[k];
        order[k] = was;
    }
    for (int i = 0; i < n; i++) {
        int d = order[i];
        extent[d] = s->box.hi[d] - s->box.lo[d];
        if (wild == 1 ? i > 0 : wild && rng_once_in(&s->r, 3))
            step += (int64_t)(s->cell * rng_below(&s->r, 4));
        s->src.step[d] = step;
        if (wild == 2 && rng_once_in(&s->r, 4)) {
            s->src.step[d] = -step;
            low -= step * (int64_t)(extent[d] - 1);
        }
        step *= (int64_t)extent[d];
    }
    REQUIRE((uint64_t)step <= MEMORY);
    s->src.base = s->memory - low;
    memset(s->memory, 0xee, MEMORY);
    pyri_mem from = pyri_mem_dense(n, s->cell, &s->box, s->dense);
    pyri_copy(n, s->cell, extent, s->src, from);
}

/* A mask over the box; masked cells stand densely. */
static void
pick_mask(sample *s)
{
    size_t size = (size_t)pyri_mask_size(s->cells);
    uint64_t one_in = 1 + rng_below(&s->r, 4);
    s->mask = calloc(1, size);
    REQUIRE(s->mask);
    for (uint64_t i = 0; i < s->cells; i++) {
        if (!rng_once_in(&s->r, one_in) && s->set)
            continue;
        s->mask[i / 8] |= (uint8_t)(1u << (i % 8));
        memcpy(s->memory + s->set++ * s->cell, s->dense + i * s->cell, s->cell);
    }
    s->src = pyri_mem_dense(s->style.ndim, s->cell, &s->box, s->memory);
}

static void
pick_box(sample *s, uint64_t bytes)
{
    int n = s->style.ndim;
    uint64_t left = bytes / s->cell;
    for (int d = 0; d < n; d++) {
        uint64_t size = d == n - 1 ? left : rng_from(&s->r, 1, 6);
        size = size == 0 ? 1 : size > left && left ? left : size;
        s->box.lo[d] = rng_below(&s->r, 1000);
        s->box.hi[d] = s->box.lo[d] + size;
        left /= size;
    }
    s->cells = pyri_box_cells(n, &s->box);
}

/* Pack the cells, and gather the blob as an engine would. */
static void
pack(sample *s)
{
    pyri_summary_init(&s->summary);
    OK(pyri_frag_pack(&s->packer, &s->style, &s->box, s->src, s->mask, s->set,
                      &s->frag, &s->summary));
    free(s->blob);
    s->blob = NULL;
    if (s->frag.kind == PYRI_FRAG_SAME)
        return;
    uint64_t at = 0;
    REQUIRE(s->packer.size == pyri_frag_blob_size(&s->frag));
    REQUIRE(s->packer.aligned == pyri_frag_aligned(&s->frag));
    REQUIRE((s->blob = malloc((size_t)s->packer.size)));
    for (int i = 0; i < s->packer.niov; i++) {
        const struct iovec *iov = &s->packer.iov[i];
        REQUIRE(iov->iov_len <= s->packer.size - at);
        memcpy(s->blob + at, iov->iov_base, iov->iov_len);
        at += iov->iov_len;
    }
    REQUIRE(at == s->packer.size);
}

static void
begin(sample *s, uint64_t seed)
{
    *s = (sample){.r = rng_of(seed)};
    s->style = (pyri_frag_style){.array = rng_next(&s->r),
                                 .ndim = (int)rng_from(&s->r, 1, 4),
                                 .type = (pyr_type)rng_below(&s->r, 10),
                                 .codec = (pyr_codec)rng_below(&s->r, 3)};
    s->cell = pyri_type_size(s->style.type);
    REQUIRE((s->dense = malloc(MEMORY)) && (s->memory = malloc(MEMORY)));
}

/* A sample of about so many bytes of cells. */
static void
make(sample *s, uint64_t seed, uint64_t bytes, look how, bool masked)
{
    begin(s, seed);
    pick_box(s, bytes);
    pick_cells(s, how);
    if (masked)
        pick_mask(s);
    else
        lay_out(s);
    pack(s);
}

static void
end(sample *s)
{
    free(s->dense);
    free(s->memory);
    free(s->mask);
    free(s->blob);
    pyri_packer_fini(&s->packer);
}

static const uint8_t *
payload_of(const sample *s)
{
    return s->blob + pyri_frag_head_size(&s->frag);
}

static uint64_t
blocks_of(const sample *s)
{
    return (s->frag.stored + PYRI_BLOCK - 1) / PYRI_BLOCK;
}

/* Sizes at and around the borders of blocks and of large blobs, and others. */
static uint64_t
pick_size(uint64_t seed)
{
    static const uint64_t sizes[] = {8,    65536, 64,    4088, 65528,
                                     4096, 4104,  65544, 8184, 8192,
                                     8200, 40960, 66000, 500,  20000};
    rng r = rng_of(~seed);
    return rng_once_in(&r, 2) ? sizes[seed % 15] : rng_from(&r, 8, 72000);
}

static void
check_back(sample *s)
{
    pyri_buf room = {0};
    const uint8_t *cells = payload_of(s), *mask = NULL;
    OK(pyri_frag_check_head(&s->frag, s->blob));
    OK(pyri_frag_check_blocks(&s->frag, s->blob, payload_of(s), 0,
                              blocks_of(s)));
    if (s->frag.masked || s->frag.kind == PYRI_FRAG_PRESSED)
        OK(pyri_frag_expand(&s->frag, &s->style, payload_of(s), &room, &cells,
                            &mask));
    REQUIRE(!mask == !s->mask);
    if (mask) {
        size_t size = (size_t)pyri_mask_size(s->cells);
        CHECK(pyri_frag_mask_size(&s->frag, s->style.ndim) == size);
        CHECK(memcmp(mask, s->mask, size) == 0);
        CHECK(memcmp(cells, s->memory, (size_t)(s->set * s->cell)) == 0);
    } else {
        CHECK(memcmp(cells, s->dense, (size_t)(s->cells * s->cell)) == 0);
    }
    pyri_buf_fini(&room);
}

static void
check_summary(const sample *s)
{
    pyri_summary want;
    pyri_summary_init(&want);
    pyri_summary_add(&want, s->style.type, s->style.fill,
                     s->mask ? s->memory : s->dense,
                     (size_t)(s->mask ? s->set : s->cells));
    CHECK(s->summary.count == want.count && s->summary.nans == want.nans);
    CHECK(s->summary.not_fill == want.not_fill);
    CHECK(s->summary.min == want.min && s->summary.max == want.max);
    CHECK(s->summary.sum_int == want.sum_int);
    CHECK(s->summary.equal == want.equal);
}

static void
packed_cells_come_back(void)
{
    int kinds[3] = {0}, masks = 0, gathered = 0, large = 0;
    for (uint64_t seed = 0; seed < 1500; seed++) {
        sample s;
        make(&s, seed, pick_size(seed), (look)(seed % LOOKS), seed % 5 == 0);
        kinds[s.frag.kind]++;
        masks += s.frag.masked;
        gathered += s.packer.bounce != NULL;
        large += s.blob && s.packer.aligned;
        CHECK(pyri_box_equal(s.style.ndim, &s.frag.box, &s.box));
        check_summary(&s);
        if (s.blob)
            check_back(&s);
        end(&s);
        REQUIRE(check_failures == 0);
    }
    CHECK(kinds[0] > 50 && kinds[1] > 50 && kinds[2] > 50);
    CHECK(masks > 50 && gathered > 20 && large > 50);
}

/* Rows of a row-major memory that is wider than they are. */
static void
pack_rows(sample *s, uint64_t rows, uint64_t row, uint64_t width)
{
    *s = (sample){.r = rng_of(row), .cell = 1, .cells = rows * row};
    s->style = (pyri_frag_style){.ndim = 2, .type = PYR_U8};
    s->box = (pyri_box){.hi = {rows, row}};
    REQUIRE((s->dense = malloc(s->cells)) &&
            (s->memory = malloc(rows * width)));
    pick_cells(s, NOISE);
    s->src = (pyri_mem){s->memory, {(int64_t)width, 1}};
    for (uint64_t i = 0; i < rows; i++)
        memcpy(s->memory + i * width, s->dense + i * row, row);
    pack(s);
    REQUIRE(s->blob);
    check_summary(s);
    check_back(s);
}

static void
long_rows_and_very_many_are_gathered_by_the_engine(void)
{
    sample s;
    pack_rows(&s, 5, 20000, 20001);
    CHECK(s.packer.niov == 1 + 5);
    end(&s);
    pack_rows(&s, 5000, 1000, 1003);
    CHECK(s.packer.niov == 1 + 5000);
    end(&s);
    pack_rows(&s, 1000, 1000, 1003);
    CHECK(s.packer.niov == 2);
    end(&s);
}

static void
pack_bytes(sample *s, uint64_t bytes)
{
    begin(s, bytes);
    s->style = (pyri_frag_style){.ndim = 1, .type = PYR_U8};
    s->cell = 1;
    pick_box(s, bytes);
    pick_cells(s, NOISE);
    s->src = pyri_mem_dense(1, 1, &s->box, s->dense);
    pack(s);
}

static void
large_blobs_begin_on_pages_and_small_heads_are_short(void)
{
    static const uint64_t borders[] = {4096, 8192, 60 << 10, 64 << 10,
                                       128 << 10};
    for (int i = 0; i < 5; i++)
        for (uint64_t bytes = borders[i] - 6; bytes < borders[i] + 7;
             bytes++) {
            sample s;
            pack_bytes(&s, bytes);
            bool large = bytes >= 65536;
            uint64_t table = (bytes + 4095) / 4096 * 8;
            CHECK(s.packer.aligned == large && s.frag.stored == bytes);
            CHECK(pyri_frag_head_size(&s.frag) == (large ? 4096 : 64 + table));
            check_back(&s);
            end(&s);
        }
}

static void
cells_of_one_value_make_no_blob(void)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        sample s;
        uint64_t bits = 0;
        make(&s, seed, pick_size(seed), ALL_SAME, false);
        memcpy(&bits, s.dense, s.cell);
        CHECK(s.frag.kind == PYRI_FRAG_SAME && s.frag.stored == 0);
        CHECK(s.frag.bits == bits && !s.frag.masked);
        end(&s);
        make(&s, seed, 4096, NEARLY_SAME, false);
        CHECK(s.frag.kind != PYRI_FRAG_SAME || s.cells == 1);
        end(&s);
    }
}

static void
masked_cells_of_one_value_keep_their_mask(void)
{
    sample s;
    make(&s, 3, 4096, ALL_SAME, true);
    CHECK(s.frag.kind != PYRI_FRAG_SAME && s.frag.masked);
    check_back(&s);
    end(&s);
}

static void
equal_cells_have_equal_digests_however_they_are_stored(void)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        sample s;
        bool masked = seed % 5 == 0;
        make(&s, seed, pick_size(seed), (look)(seed % LOOKS), masked);
        pyri_digest first = s.frag.cells;
        for (int k = 0; k < 4; k++) {
            if (!masked)
                lay_out(&s);
            s.style.codec = (pyr_codec)(k % 3);
            s.style.level = k;
            s.style.array++;
            pack(&s);
            REQUIRE(s.frag.cells.lo == first.lo && s.frag.cells.hi == first.hi);
        }
        end(&s);
    }
}

static void
different_cells_have_different_digests(void)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        sample s;
        make(&s, seed, pick_size(seed), (look)(seed % LOOKS), false);
        pyri_digest first = s.frag.cells;
        s.dense[rng_below(&s.r, s.cells * s.cell)] ^= 1;
        lay_out(&s);
        pack(&s);
        REQUIRE(s.frag.cells.lo != first.lo || s.frag.cells.hi != first.hi);
        end(&s);
    }
}

/* --- damage -------------------------------------------------------------- */

static void
every_damaged_byte_of_the_head_is_noticed(void)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        sample s;
        make(&s, seed, pick_size(seed), NOISE, seed % 4 == 0);
        for (uint64_t i = 0; i < pyri_frag_head_size(&s.frag); i++) {
            uint8_t bit = (uint8_t)(1u << rng_below(&s.r, 8));
            s.blob[i] ^= bit;
            REQUIRE(pyri_frag_check_head(&s.frag, s.blob) == PYR_ECORRUPT);
            s.blob[i] ^= bit;
        }
        end(&s);
    }
}

static void
every_damaged_byte_of_the_payload_is_noticed_in_its_block(void)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        sample s;
        make(&s, seed, pick_size(seed), NOISE, seed % 4 == 0);
        uint8_t *payload = s.blob + pyri_frag_head_size(&s.frag);
        for (uint64_t i = 0; i < s.frag.stored; i++) {
            uint8_t bit = (uint8_t)(1u << rng_below(&s.r, 8));
            uint64_t bad = i / PYRI_BLOCK;
            payload[i] ^= bit;
            REQUIRE(pyri_frag_check_blocks(&s.frag, s.blob,
                                           payload + bad * PYRI_BLOCK, bad,
                                           1) == PYR_ECORRUPT);
            if (i % 97 == 0)
                for (uint64_t k = 0; k < blocks_of(&s); k++)
                    REQUIRE(pyri_frag_check_blocks(
                                &s.frag, s.blob, payload + k * PYRI_BLOCK, k,
                                1) == (k == bad ? PYR_ECORRUPT : 0));
            payload[i] ^= bit;
        }
        end(&s);
    }
}

/* Payloads that no check has seen are taken apart without harm. */
static void
forged_payloads_are_refused_or_harmless(void)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        sample s;
        make(&s, seed, 600, (look)(seed % LOOKS), seed % 2 == 0);
        for (int k = 0; k < 40 && s.blob; k++) {
            pyri_frag f = s.frag;
            pyri_buf room = {0};
            const uint8_t *cells, *mask;
            if (k % 2)
                f.stored = rng_from(&s.r, 1, f.stored);
            uint8_t *exact = malloc((size_t)f.stored);
            REQUIRE(exact);
            memcpy(exact, payload_of(&s), (size_t)f.stored);
            for (uint64_t i = rng_below(&s.r, 4); i; i--)
                exact[rng_below(&s.r, k % 3 ? f.stored : 1)] =
                    (uint8_t)rng_next(&s.r);
            int err = pyri_frag_expand(&f, &s.style, exact, &room, &cells,
                                       &mask);
            if (err < 0)
                FAILS(PYR_ECORRUPT, err);
            pyri_buf_fini(&room);
            free(exact);
        }
        end(&s);
    }
}

static void
a_mask_with_more_bits_than_cells_is_refused(void)
{
    const pyri_frag_style style = {.ndim = 1, .type = PYR_U8};
    const uint8_t *cells, *mask;
    pyri_frag f = {.kind = PYRI_FRAG_PLAIN, .masked = true, .box = {{0}, {9}}};
    uint8_t payload[8 + 16] = {0xff, 0xff};
    pyri_buf room = {0};
    f.stored = 8 + 16;
    FAILS(PYR_ECORRUPT,
          pyri_frag_expand(&f, &style, payload, &room, &cells, &mask));
    payload[1] = 0x01;
    f.stored = 8 + 9;
    OK(pyri_frag_expand(&f, &style, payload, &room, &cells, &mask));
    CHECK(cells == payload + 8 && mask == payload);
    f.stored = 8 + 8; /* a cell is missing */
    FAILS(PYR_ECORRUPT,
          pyri_frag_expand(&f, &style, payload, &room, &cells, &mask));
    f.stored = 7; /* not even the mask is there */
    FAILS(PYR_ECORRUPT,
          pyri_frag_expand(&f, &style, payload, &room, &cells, &mask));
}

/* --- descriptions -------------------------------------------------------- */

static void
pick_frag(rng *r, int ndim, const pyri_box *chunk, pyri_frag *f)
{
    *f = (pyri_frag){.version = rng_next(r) >> rng_below(r, 64),
                     .kind = (pyri_frag_kind)rng_below(r, 3),
                     .fold = rng_once_in(r, 2),
                     .cells = {rng_next(r), rng_next(r)}};
    for (int d = 0; d < ndim; d++) {
        f->box.lo[d] = rng_from(r, chunk->lo[d], chunk->hi[d] - 1);
        f->box.hi[d] = rng_from(r, f->box.lo[d] + 1, chunk->hi[d]);
    }
    if (f->kind == PYRI_FRAG_SAME) {
        f->bits = rng_next(r);
        return;
    }
    f->masked = rng_once_in(r, 2);
    f->ref[0] = rng_next(r);
    f->ref[1] = rng_next(r);
    f->stored = rng_from(r, 1, 1ull << rng_from(r, 1, 50));
    f->check = rng_next(r);
}

static void
pick_chunk(rng *r, int ndim, pyri_box *chunk)
{
    for (int d = 0; d < ndim; d++) {
        /* numbers of cells are stored in two, four or eight bytes */
        uint64_t most = ndim <= 3 ? 300 : 12;
        uint64_t side = rng_from(r, 1, most)
                        << (ndim <= 3 ? rng_below(r, 2) * 12 : 0);
        chunk->lo[d] = (rng_next(r) >> rng_from(r, 9, 63)) / side * side;
        chunk->hi[d] = chunk->lo[d] + side;
    }
}

static bool
same_frag(int ndim, const pyri_frag *a, const pyri_frag *b)
{
    bool blob = a->kind != PYRI_FRAG_SAME;
    return a->version == b->version && a->kind == b->kind &&
           a->masked == b->masked && a->fold == b->fold &&
           pyri_box_equal(ndim, &a->box, &b->box) && a->bits == b->bits &&
           a->stored == b->stored && a->cells.lo == b->cells.lo &&
           a->cells.hi == b->cells.hi &&
           (!blob || (a->ref[0] == b->ref[0] && a->ref[1] == b->ref[1] &&
                      a->check == b->check));
}

static void
a_description_survives_being_stored(void)
{
    for (uint64_t seed = 0; seed < 3000; seed++) {
        rng r = rng_of(seed);
        int ndim = (int)rng_from(&r, 1, PYR_MAX_DIMS);
        pyri_box chunk;
        pyri_frag f, back;
        pyri_buf b = {0};
        pick_chunk(&r, ndim, &chunk);
        pick_frag(&r, ndim, &chunk, &f);
        pyri_frag_encode(&f, ndim, &chunk, &b);
        pyri_buf_u8(&b, 0xab);
        pyri_cursor c = pyri_cursor_of(b.data, b.size);
        OK(pyri_frag_decode(&c, ndim, &chunk, &back));
        REQUIRE(same_frag(ndim, &f, &back) && c.end - c.at == 1);
        pyri_buf_fini(&b);
    }
}

static bool
decodes(const uint8_t *bytes, size_t size, int ndim, const pyri_box *chunk)
{
    uint8_t *exact = malloc(size + !size);
    pyri_frag f;
    REQUIRE(exact);
    memcpy(exact, bytes, size);
    pyri_cursor c = pyri_cursor_of(exact, size);
    int err = pyri_frag_decode(&c, ndim, chunk, &f);
    if (err < 0) {
        FAILS(PYR_ECORRUPT, err);
    } else {
        REQUIRE(f.kind <= PYRI_FRAG_PRESSED);
        REQUIRE(!pyri_box_empty(ndim, &f.box));
        REQUIRE(pyri_box_contains(ndim, chunk, &f.box));
        REQUIRE(f.kind == PYRI_FRAG_SAME ? !f.masked && !f.stored
                                         : f.stored > 0);
        REQUIRE(pyri_frag_blob_size(&f) >= f.stored);
    }
    free(exact);
    return err == 0;
}

static void
damaged_descriptions_are_refused_or_harmless(void)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        rng r = rng_of(seed);
        int ndim = (int)rng_from(&r, 1, 4);
        pyri_box chunk;
        pyri_frag f;
        pyri_buf b = {0};
        pick_chunk(&r, ndim, &chunk);
        pick_frag(&r, ndim, &chunk, &f);
        pyri_frag_encode(&f, ndim, &chunk, &b);
        for (size_t size = 0; size < b.size; size++)
            REQUIRE(!decodes(b.data, size, ndim, &chunk));
        for (size_t i = 0; i < 8 * b.size; i++) {
            b.data[i / 8] ^= (uint8_t)(1u << (i % 8));
            decodes(b.data, b.size, ndim, &chunk);
            b.data[i / 8] ^= (uint8_t)(1u << (i % 8));
        }
        CHECK(decodes(b.data, b.size, ndim, &chunk));
        pyri_buf_fini(&b);
    }
}

static void
a_box_that_leaves_its_chunk_is_refused(void)
{
    const pyri_box chunk = {{10}, {20}}, good = {{12}, {20}};
    static const pyri_box bad[] = {{{12}, {21}}, {{20}, {21}}, {{9}, {12}},
                                   {{12}, {12}}, {{12}, {11}}};
    pyri_frag f = {.version = 1, .box = good};
    pyri_buf b = {0};
    pyri_frag_encode(&f, 1, &chunk, &b);
    CHECK(decodes(b.data, b.size, 1, &chunk));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        pyri_buf_reset(&b);
        f.box = bad[i];
        pyri_frag_encode(&f, 1, &chunk, &b);
        CHECK(!decodes(b.data, b.size, 1, &chunk));
    }
    pyri_buf_fini(&b);
}

/* Whatever is passed over is newer, and has nothing of the box; the cursor is
 * at the next then. */
static void
descriptions_that_are_passed_over_are_of_no_use(void)
{
    rng r = rng_of(77);
    uint64_t passed = 0;
    for (int i = 0; i < 2000; i++) {
        enum { N = 12 };
        int ndim = (int)rng_from(&r, 1, 3);
        pyri_box chunk, box;
        pyri_frag list[N], f;
        pyri_frag_window w;
        pyri_buf b = {0};
        pick_chunk(&r, ndim, &chunk);
        for (int k = 0; k < N; k++) {
            pick_frag(&r, ndim, &chunk, &list[k]);
            pyri_frag_encode(&list[k], ndim, &chunk, &b);
        }
        pick_frag(&r, ndim, &chunk, &f);
        box = f.box;
        uint64_t newer = rng_next(&r) >> rng_from(&r, 8, 63);
        pyri_cursor c = pyri_cursor_of(b.data, b.size);
        pyri_frag_look_for(ndim, &chunk, &box, &w);
        for (uint64_t k = 0; k < N; k++) {
            uint64_t n = pyri_frag_skip_apart(&c, &w, newer, N - k);
            for (; n; n--, k++, passed++)
                CHECK(list[k].version > newer &&
                      !pyri_box_overlaps(ndim, &list[k].box, &box));
            if (k == N)
                break;
            OK(pyri_frag_decode(&c, ndim, &chunk, &f));
            CHECK(same_frag(ndim, &f, &list[k]));
        }
        CHECK(c.at == c.end);
        pyri_buf_fini(&b);
    }
    CHECK(passed > 1000);
}

TESTS(T(packed_cells_come_back),
      T(long_rows_and_very_many_are_gathered_by_the_engine),
      T(large_blobs_begin_on_pages_and_small_heads_are_short),
      T(cells_of_one_value_make_no_blob),
      T(masked_cells_of_one_value_keep_their_mask),
      T(equal_cells_have_equal_digests_however_they_are_stored),
      T(different_cells_have_different_digests),
      T(every_damaged_byte_of_the_head_is_noticed),
      T(every_damaged_byte_of_the_payload_is_noticed_in_its_block),
      T(forged_payloads_are_refused_or_harmless),
      T(a_mask_with_more_bits_than_cells_is_refused),
      T(a_description_survives_being_stored),
      T(descriptions_that_are_passed_over_are_of_no_use),
      T(damaged_descriptions_are_refused_or_harmless),
      T(a_box_that_leaves_its_chunk_is_refused))
