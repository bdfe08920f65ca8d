/*
 * regress/shapes64_test.c - extents and versions at the end of 64 bits.
 */
#include "regress/regress.h"

static void
set_up_in_memory(void)
{
    OK(pyr_open(tmp_quick_store("shapes64"), PYR_OPEN_CREATE, &store));
}

/* The tree keeps the levels that the first shape needed. */
static void
an_axis_of_all_64_bits_may_shrink_while_another_grows(void)
{
    int32_t cells[5] = {1, 2, 3, 4, 5}, got[5];
    pyr_version made, last;
    pyr_stats stats;
    set_up_in_memory();
    pyr_spec spec = {.ndim = 2, .shape = AT(UINT64_MAX - 1, 1),
                     .chunk = AT(1, 1), .type = PYR_I32};
    OK(pyr_create(store, "x", &spec, &array));
    OK(pyr_resize(array, AT(5, UINT64_MAX / 5 - 1), &made));
    OK(pyr_write(array, AT(0, 0), AT(5, 1), cells, &made));
    memset(got, 0xee, sizeof got);
    OK(pyr_read(array, made, AT(0, 0), AT(5, 1), got));
    CHECK(memcmp(got, cells, sizeof cells) == 0);
    for (uint64_t i = 0; i < 5; i++) {
        got[0] = -1;
        OK(pyr_read(array, made, AT(i, 0), AT(1, 1), got));
        CHECK(got[0] == cells[i]);
        OK(pyr_last_change(array, made, AT(i, 0), AT(1, 1), &last));
        CHECK(last == made);
    }
    OK(pyr_stat(array, made, AT(0, 0), AT(5, 2), 0, &stats));
    CHECK(stats.sum == 15 && stats.count == 10);
    close_all();
}

static int
no_box(void *ctx, int ndim, const uint64_t *offset, const uint64_t *size)
{
    ++*(int *)ctx;
    return 0;
}

/* Versions of a clone count from where its parent stood. */
static void
versions_of_a_clone_do_not_wrap(void)
{
    pyr_array *clone;
    pyr_version made;
    int boxes = 0;
    set_up_in_memory();
    make_line(10, 10, PYR_I32);
    for (uint64_t i = 0; i < 3; i++)
        OK(pyr_write(array, AT(i), AT(1), &(int32_t){1}, &made));
    OK(pyr_clone(array, made, "y", &clone));
    for (uint64_t back = 1; back <= 4; back++) {
        pyr_version v = UINT64_MAX - back;
        FAILS(PYR_ENOVERSION, pyr_wait(clone, v, 0));
        FAILS(PYR_ENOVERSION, pyr_diff(clone, v, PYR_LATEST, no_box, &boxes));
        FAILS(PYR_ENOVERSION, pyr_diff(clone, PYR_LATEST, v, no_box, &boxes));
    }
    CHECK(boxes == 0);
    OK(pyr_wait(clone, 0, 0));
    OK(pyr_diff(clone, 0, PYR_LATEST, no_box, &boxes));
    CHECK(boxes == 0);
    pyr_array_close(clone);
    close_all();
}

static const role roles[] = {{NULL, NULL}};

REGRESS_TESTS(roles, T(an_axis_of_all_64_bits_may_shrink_while_another_grows),
              T(versions_of_a_clone_do_not_wrap))
