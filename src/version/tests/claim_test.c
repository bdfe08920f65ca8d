/*
 * Claims: strided runs of cells, against marking every cell.
 */
#include "base/checked.h"
#include "support/check.h"
#include "support/rng.h"
#include "version/version.h"

enum { SIDE = 24 }; /* cells along each of at most two axes */

static pyri_run
pick_run(rng *r, int ndim)
{
    pyri_run run = {.start = {0}};
    for (int d = 0; d < ndim; d++) {
        run.start[d] = rng_below(r, 8);
        run.block[d] = rng_from(r, 1, 3);
        run.count[d] = rng_once_in(r, 3) ? 1 : rng_from(r, 1, 4);
        run.stride[d] = run.block[d] + rng_below(r, 3);
        while (run.start[d] + (run.count[d] - 1) * run.stride[d] +
                   run.block[d] > SIDE)
            run.count[d]--;
    }
    return run;
}

static pyri_claim
pick_claim(rng *r, int ndim)
{
    pyri_claim c = {.ndim = ndim};
    for (uint64_t n = rng_below(r, 4); n; n--) {
        pyri_run run = pick_run(r, ndim);
        OK(pyri_claim_add(&c, &run));
    }
    return c;
}

static void
mark(const pyri_run *run, bool cells[SIDE][SIDE])
{
    for (uint64_t i = 0; i < run->count[0] * run->block[0]; i++)
        for (uint64_t k = 0; k < run->count[1] * run->block[1]; k++) {
            uint64_t y = run->start[0] + i / run->block[0] * run->stride[0] +
                         i % run->block[0];
            uint64_t x = run->start[1] + k / run->block[1] * run->stride[1] +
                         k % run->block[1];
            cells[y][x] = true;
        }
}

static void
a_claim_overlaps_exactly_the_boxes_it_has_cells_in(void)
{
    int hits = 0, misses = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        rng r = rng_of(seed);
        bool cells[SIDE][SIDE] = {{false}};
        pyri_claim c = pick_claim(&r, 2);
        for (size_t i = 0; i < c.n; i++)
            mark(&c.runs[i], cells);
        for (int k = 0; k < 100; k++) {
            pyri_box box;
            bool any = false;
            for (int d = 0; d < 2; d++) {
                box.lo[d] = rng_below(&r, SIDE);
                box.hi[d] = pyri_min64(SIDE, box.lo[d] + rng_below(&r, 5));
            }
            for (uint64_t y = box.lo[0]; y < box.hi[0]; y++)
                for (uint64_t x = box.lo[1]; x < box.hi[1]; x++)
                    any |= cells[y][x];
            REQUIRE(pyri_claim_overlaps(&c, &box) == any);
            *(any ? &hits : &misses) += 1;
        }
        pyri_claim_fini(&c);
    }
    CHECK(hits > 1000 && misses > 1000);
}

static bool
same_claim(const pyri_claim *a, const pyri_claim *b)
{
    bool same = a->ndim == b->ndim && a->n == b->n;
    for (size_t i = 0; i < a->n && same; i++) {
        const pyri_run *x = &a->runs[i], *y = &b->runs[i];
        bool box = pyri_run_is_box(a->ndim, x);
        for (int d = 0; d < a->ndim; d++) /* the stride of one block is moot */
            same &= x->start[d] == y->start[d] && x->block[d] == y->block[d] &&
                    x->count[d] == y->count[d] &&
                    (box || x->stride[d] == y->stride[d]);
    }
    return same;
}

static void
a_claim_survives_being_stored(void)
{
    for (uint64_t seed = 0; seed < 2000; seed++) {
        rng r = rng_of(seed);
        int ndim = (int)rng_from(&r, 1, PYR_MAX_DIMS);
        pyri_claim c = pick_claim(&r, ndim), back;
        pyri_buf b = {0};
        if (c.n && rng_once_in(&r, 3)) /* to the end of 64 bits */
            c.runs[0].start[0] = UINT64_MAX - SIDE;
        pyri_claim_encode(&c, &b);
        pyri_buf_u8(&b, 0xab);
        pyri_cursor cur = pyri_cursor_of(b.data, b.size);
        OK(pyri_claim_decode(&cur, ndim, &back));
        REQUIRE(same_claim(&c, &back) && cur.end - cur.at == 1);
        pyri_claim_fini(&back);
        pyri_claim_fini(&c);
        pyri_buf_fini(&b);
    }
}

/* Decode from memory of just that size; what comes out must be safe. */
static bool
decodes(const uint8_t *bytes, size_t size, int ndim)
{
    uint8_t *exact = malloc(size + !size);
    pyri_claim c;
    REQUIRE(exact);
    memcpy(exact, bytes, size);
    pyri_cursor cur = pyri_cursor_of(exact, size);
    int err = pyri_claim_decode(&cur, ndim, &c);
    if (err < 0)
        FAILS(PYR_ECORRUPT, err);
    for (size_t i = 0; err == 0 && i < c.n; i++)
        for (int d = 0; d < ndim; d++) {
            const pyri_run *r = &c.runs[i];
            unsigned __int128 end =
                (unsigned __int128)(r->count[d] - 1) * r->stride[d] +
                r->block[d] + r->start[d];
            REQUIRE(r->count[d] > 0 && r->block[d] > 0 && end <= UINT64_MAX);
        }
    if (err == 0)
        pyri_claim_fini(&c);
    else
        CHECK(c.n == 0 && !c.runs);
    free(exact);
    return err == 0;
}

static void
a_claim_cut_short_is_refused(void)
{
    for (uint64_t seed = 0; seed < 100; seed++) {
        rng r = rng_of(seed);
        int ndim = (int)rng_from(&r, 1, 4);
        pyri_claim c = pick_claim(&r, ndim);
        pyri_buf b = {0};
        pyri_claim_encode(&c, &b);
        for (size_t size = 0; size < b.size; size++)
            REQUIRE(!decodes(b.data, size, ndim));
        CHECK(decodes(b.data, b.size, ndim));
        pyri_claim_fini(&c);
        pyri_buf_fini(&b);
    }
}

static void
a_claim_with_flipped_bits_is_refused_or_harmless(void)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        rng r = rng_of(seed);
        int ndim = (int)rng_from(&r, 1, 4);
        pyri_claim c = pick_claim(&r, ndim);
        pyri_buf b = {0};
        pyri_claim_encode(&c, &b);
        for (size_t i = 0; i < 8 * b.size; i++) {
            b.data[i / 8] ^= (uint8_t)(1u << (i % 8));
            decodes(b.data, b.size, ndim);
            b.data[i / 8] ^= (uint8_t)(1u << (i % 8));
        }
        pyri_claim_fini(&c);
        pyri_buf_fini(&b);
    }
}

static void
runs_that_leave_64_bits_or_are_empty_are_refused(void)
{
    static const pyri_run bad[] = {
        {{UINT64_MAX}, {1}, {2}, {1}}, {{0}, {1}, {3}, {1ull << 63}},
        {{1}, {UINT64_MAX}, {1}, {1}}, {{0}, {0}, {1}, {1}},
        {{0}, {1}, {0}, {1}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        pyri_claim c = {.ndim = 1};
        pyri_buf b = {0};
        OK(pyri_claim_add(&c, &bad[i]));
        pyri_claim_encode(&c, &b);
        CHECK(!decodes(b.data, b.size, 1));
        pyri_claim_fini(&c);
        pyri_buf_fini(&b);
    }
}

static void
random_bytes_are_refused_or_harmless(void)
{
    for (uint64_t seed = 0; seed < 20000; seed++) {
        rng r = rng_of(seed);
        uint8_t bytes[40];
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)(rng_next(&r) >> (i % 2 ? 56 : 61));
        decodes(bytes, sizeof bytes, (int)rng_from(&r, 1, 3));
    }
}

TESTS(T(a_claim_overlaps_exactly_the_boxes_it_has_cells_in),
      T(a_claim_survives_being_stored), T(a_claim_cut_short_is_refused),
      T(a_claim_with_flipped_bits_is_refused_or_harmless),
      T(runs_that_leave_64_bits_or_are_empty_are_refused),
      T(random_bytes_are_refused_or_harmless))
