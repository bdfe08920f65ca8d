/*
 * regress/lists_test.c - long lists of boxes in flight. Work that grows with
 * the square of their number would run into the time limit of the test.
 */
#include "regress/regress.h"

enum { CHUNK = 1024, FAR = 10 * CHUNK };

typedef struct list {
    uint64_t n;
    uint64_t *offsets;
    pyr_part *parts;
} list;

/* n parts of one cell, each in a chunk of its own. */
static list
list_of(uint64_t n, int32_t *cell)
{
    static const uint64_t one = 1;
    list l = {n, calloc(n, sizeof *l.offsets), calloc(n, sizeof *l.parts)};
    if (!l.offsets || !l.parts)
        abort();
    for (uint64_t i = 0; i < n; i++) {
        l.offsets[i] = i * FAR;
        l.parts[i] = (pyr_part){
            .offset = &l.offsets[i], .size = &one, .buf = cell};
    }
    return l;
}

static void
list_fini(list *l)
{
    free(l->offsets);
    free(l->parts);
}

static int
write_list(uint64_t n)
{
    int32_t cell = 7;
    list l = list_of(n, &cell);
    if (open_line(0) < 0)
        return complain("open");
    int err = pyr_write_list(array, l.parts, n, NULL, NULL);
    list_fini(&l);
    close_all();
    return err == PYR_EBOUNDS ? 3 : err < 0 ? complain("write") : 0;
}

/* Every part of the list holds `value`. */
static void
check_list(pyr_version version, uint64_t n, int32_t value)
{
    list l = list_of(n, NULL);
    int32_t *got = calloc(n, sizeof *got);
    uint64_t wrong = 0;
    REQUIRE(got);
    for (uint64_t i = 0; i < n; i++)
        l.parts[i].buf = &got[i];
    OK(pyr_read_list(array, version, l.parts, n));
    for (uint64_t i = 0; i < n; i++)
        wrong += got[i] != value;
    CHECK(wrong == 0);
    free(got);
    list_fini(&l);
}

static void
a_killed_writer_of_many_boxes_is_resolved(void)
{
    uint64_t n = by_scale(3000, 100000, 300000);
    pyr_version made;
    set_up(LONG_LEASE);
    make_line(1ull << 40, CHUNK, PYR_I32);
    pid_t killed = start("write.taken=kill", "list", n);
    CHECK(proc_wait(killed, BOUND).signal == SIGKILL);
    OK(pyr_write(array, AT(5), AT(1), &(int32_t){1}, &made));
    CHECK(made == 2 && in_flight() == 0);
    check_list(made, n, 0);
    tear_down();
}

static void
a_list_may_be_written_on_top_of_the_same_list_in_flight(void)
{
    uint64_t n = by_scale(2000, 30000, 100000);
    int32_t cell = 9;
    pyr_version made;
    set_up(LONG_LEASE);
    make_line(1ull << 40, CHUNK, PYR_I32);
    list l = list_of(n, &cell);
    pid_t stopped = start_and_stop("write.taken=stop", "list", n);
    OK(pyr_write_list(array, l.parts, n,
                      &(pyr_write_options){.flags = PYR_WRITE_NOWAIT}, &made));
    CHECK(made == 2 && in_flight() == 2);
    kill(stopped, SIGCONT);
    CHECK(proc_ends_well(stopped, BOUND));
    OK(pyr_wait(array, made, BOUND));
    check_list(1, n, 7);
    check_list(2, n, 9);
    list_fini(&l);
    tear_down();
}

/* Nothing of the list is inside when its turn comes. */
static void
a_list_that_a_shrink_leaves_outside_is_refused(void)
{
    pyr_version made;
    set_up(LONG_LEASE);
    make_line(1 << 20, CHUNK, PYR_I32);
    pid_t late = start_and_stop("write.data_sent=stop", "list", 4);
    OK(pyr_resize(array, AT(0), &made));
    kill(late, SIGCONT);
    CHECK(proc_wait(late, BOUND).code == 3);
    CHECK(in_flight() == 0);
    OK(pyr_resize(array, AT(1 << 20), &made));
    OK(pyr_write(array, AT(5), AT(1), &(int32_t){1}, &made));
    check_list(made, 4, 0);
    tear_down();
}

static const role roles[] = {{"list", write_list}, {NULL, NULL}};

REGRESS_TESTS(roles, T(a_killed_writer_of_many_boxes_is_resolved),
              T(a_list_may_be_written_on_top_of_the_same_list_in_flight),
              T(a_list_that_a_shrink_leaves_outside_is_refused))
