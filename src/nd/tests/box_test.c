/*
 * Boxes: what two of them share, and what is left of one.
 */
#include "nd/nd.h"
#include "support/check.h"

static const pyri_box left = {{0, 0}, {4, 8}};

static void
overlap_is_the_common_part(void)
{
    const pyri_box right = {{3, 2}, {7, 4}};
    pyri_box got;
    REQUIRE(pyri_box_intersect(2, &left, &right, &got));
    CHECK(got.lo[0] == 3 && got.hi[0] == 4);
    CHECK(got.lo[1] == 2 && got.hi[1] == 4);
}

static void
boxes_that_only_touch_share_nothing(void)
{
    const pyri_box after = {{4, 0}, {8, 8}};
    pyri_box got;
    CHECK(!pyri_box_intersect(2, &left, &after, &got));
    CHECK(!pyri_box_overlaps(2, &left, &after));
}

static void
cells_are_counted_and_saturate(void)
{
    const pyri_box huge = {{0, 0}, {UINT64_MAX, 3}};
    const pyri_box empty = {{5, 0}, {5, 3}};
    CHECK(pyri_box_cells(2, &left) == 32);
    CHECK(pyri_box_cells(2, &huge) == UINT64_MAX);
    CHECK(pyri_box_cells(2, &empty) == 0);
}

/* Every cell of a is in exactly one of: the rest, the common part. */
static void
what_is_left_and_the_common_part_are_the_whole(void)
{
    for (uint64_t seed = 0; seed < 2000; seed++) {
        uint64_t r = seed * 0x9e3779b97f4a7c15u;
        pyri_box a = {{r % 4, r / 4 % 4, r / 16 % 4}, {0}};
        pyri_box b = {{r / 64 % 5, r / 320 % 5, r / 1600 % 5}, {0}};
        pyri_box rest[6];
        for (int d = 0; d < 3; d++) {
            a.hi[d] = a.lo[d] + 1 + (r >> (20 + d * 3)) % 5;
            b.hi[d] = b.lo[d] + 1 + (r >> (30 + d * 3)) % 5;
        }
        if (!pyri_box_overlaps(3, &a, &b))
            continue;
        int n = pyri_box_subtract(3, &a, &b, rest);
        for (uint64_t i = 0; i < 1000; i++) {
            uint64_t c[3] = {i / 100, i / 10 % 10, i % 10};
            pyri_box cell = {{c[0], c[1], c[2]},
                             {c[0] + 1, c[1] + 1, c[2] + 1}};
            int times = pyri_box_overlaps(3, &cell, &b) ? 1 : 0;
            for (int k = 0; k < n; k++)
                times += pyri_box_overlaps(3, &cell, &rest[k]);
            if (pyri_box_overlaps(3, &cell, &a))
                CHECK(times == 1);
        }
    }
}

static void
a_cover_holds_both(void)
{
    pyri_box all = {{0}, {0}}, b = {{7, 1}, {9, 2}};
    pyri_box_cover(2, &all, &b);
    CHECK(pyri_box_equal(2, &all, &b));
    pyri_box_cover(2, &all, &left);
    CHECK(all.lo[0] == 0 && all.hi[0] == 9 && all.hi[1] == 8);
}

TESTS(T(overlap_is_the_common_part), T(boxes_that_only_touch_share_nothing),
      T(cells_are_counted_and_saturate),
      T(what_is_left_and_the_common_part_are_the_whole),
      T(a_cover_holds_both))
