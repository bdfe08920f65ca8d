/*
 * Copies between strided memories, against the plainest loop.
 */
#include "nd/nd.h"
#include "support/check.h"

static uint64_t state = 88172645463325252u;

static uint64_t
next(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static void
every_layout_copies_every_cell(void)
{
    static uint8_t src[1 << 16], dst[1 << 16], want[1 << 16];
    static const size_t sizes[] = {1, 2, 4, 8};
    for (int round = 0; round < 3000; round++) {
        size_t cell = sizes[next(4)];
        int n = 1 + (int)next(4);
        uint64_t extent[PYR_MAX_DIMS];
        pyri_mem a = {src + 32768, {0}}, b = {dst + 32768, {0}};
        int64_t sa = (int64_t)cell, sb = (int64_t)cell;
        for (int d = n - 1; d >= 0; d--) {
            extent[d] = 1 + next(6);
            sa *= (int64_t)(1 + next(3) / 2);
            sb *= (int64_t)(1 + next(3) / 2);
            a.step[d] = next(5) ? sa : -sa;
            b.step[d] = next(5) ? sb : -sb;
            sa *= (int64_t)extent[d];
            sb *= (int64_t)extent[d];
        }
        if (sa > 30000 || sb > 30000)
            continue;
        for (size_t i = 0; i < sizeof src; i++) {
            src[i] = (uint8_t)next(256);
            dst[i] = want[i] = 0;
        }
        uint64_t total = 1;
        for (int d = 0; d < n; d++)
            total *= extent[d];
        for (uint64_t i = 0; i < total; i++) {
            int64_t from = 32768, to = 32768;
            uint64_t rest = i;
            for (int d = n - 1; d >= 0; d--) {
                from += (int64_t)(rest % extent[d]) * a.step[d];
                to += (int64_t)(rest % extent[d]) * b.step[d];
                rest /= extent[d];
            }
            memcpy(want + to, src + from, cell);
        }
        pyri_rows rows = {.outer = 1,
                          .extent = {9},
                          .step = {100},
                          .run = 1 + next(100),
                          .pieces = 9};
        pyri_prefetch ahead;
        pyri_prefetch_begin(&ahead, &rows, src);
        if (round % 3 == 0)
            pyri_copy(n, cell, extent, b, a);
        else if (round % 3 == 1)
            pyri_copy_before(n, cell, extent, b, a, &ahead);
        else
            pyri_copy_past(n, cell, extent, b, a);
        REQUIRE(memcmp(dst, want, sizeof dst) == 0);
    }
}

static void
rows_written_past_the_caches_have_any_length_and_place(void)
{
    static uint8_t src[3 * 2048], dst[3 * 2048], want[3 * 2048];
    for (size_t i = 0; i < sizeof src; i++)
        src[i] = (uint8_t)next(256);
    for (int round = 0; round < 3000; round++) {
        uint64_t extent[2] = {1 + next(2), 1 + next(1500)};
        size_t from = next(100), to = next(200);
        pyri_mem a = {src + from, {1700, 1}}, b = {dst + to, {1900, 1}};
        memset(dst, 0xee, sizeof dst);
        memset(want, 0xee, sizeof want);
        for (uint64_t i = 0; i < extent[0]; i++)
            memcpy(want + to + 1900 * i, src + from + 1700 * i, extent[1]);
        pyri_copy_past(2, 1, extent, b, a);
        REQUIRE(memcmp(dst, want, sizeof dst) == 0);
    }
}

static void
setting_fills_every_cell_and_no_other(void)
{
    static const size_t sizes[] = {1, 2, 4, 8};
    for (int k = 0; k < 4; k++) {
        uint64_t bits = 0x0102030405060708u, extent[2] = {3, 4};
        uint8_t cells[5 * 8 * 8];
        size_t cell = sizes[k];
        memset(cells, 0xee, sizeof cells);
        pyri_mem m = {cells, {8 * (int64_t)cell, (int64_t)cell}};
        pyri_set(2, cell, extent, m, bits);
        for (size_t i = 0; i < 40; i++) {
            bool inside = i / 8 < 3 && i % 8 < 4;
            uint64_t got = 0, other = 0, value = bits;
            memset(&other, 0xee, cell);
            memcpy(&got, cells + i * cell, cell);
            if (cell < 8)
                value &= (1ull << (8 * cell)) - 1;
            CHECK(got == (inside ? value : other));
        }
    }
}

static void
as_much_is_fetched_for_later_as_is_copied(void)
{
    static uint8_t src[1000], dst[1000], later[10000];
    uint64_t extent[2] = {7, 50};
    pyri_mem a = {src, {60, 1}}, b = {dst, {70, 1}};
    pyri_rows rows = {
        .outer = 1, .extent = {20}, .step = {400}, .run = 100, .pieces = 20};
    pyri_prefetch ahead;
    pyri_prefetch_begin(&ahead, &rows, later);
    pyri_copy_before(2, 1, extent, b, a, &ahead);
    CHECK(ahead.left == 17 && ahead.done == 50);
    CHECK(ahead.row == later + 3 * 400);
    ahead.left = 0;
    pyri_copy_before(2, 1, extent, b, a, &ahead);
    CHECK(ahead.left == 0);
}

static void
rows_join_what_is_contiguous(void)
{
    uint64_t extent[3] = {4, 5, 6};
    int64_t dense[3] = {240, 48, 8}, cut[3] = {480, 48, 8},
            gaps[3] = {480, 96, 16};
    pyri_rows r;
    pyri_rows_of(3, 8, extent, dense, &r);
    CHECK(r.run == 960 && r.pieces == 1 && r.outer == 0);
    pyri_rows_of(3, 8, extent, cut, &r);
    CHECK(r.run == 240 && r.pieces == 4 && r.outer == 1);
    pyri_rows_of(3, 8, extent, gaps, &r);
    CHECK(r.run == 8 && r.pieces == 120);
}

TESTS(T(every_layout_copies_every_cell),
      T(rows_written_past_the_caches_have_any_length_and_place),
      T(setting_fills_every_cell_and_no_other),
      T(as_much_is_fetched_for_later_as_is_copied),
      T(rows_join_what_is_contiguous))
