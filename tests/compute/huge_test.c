/*
 * compute/huge_test.c - functions of huge arrays, whose constant regions take
 * no space: against a model that keeps what was done, and works out a cell
 * when it is asked for one.
 */
#include "compute/huge.h"

/* --- what happens --------------------------------------------------------- */

static void
do_anything(void)
{
    uint64_t draw = pick(20);
    if (draw < 5)
        do_write();
    else if (draw < 15)
        do_compute();
    else if (draw < 18)
        do_resize();
    else
        do_fill();
}

/* Forget some versions in the middle, and give back what only they had. */
static void
do_forget(void)
{
    pyr_version v = pick(newest), to = v + pick(3);
    pyr_reclaimed gone;
    if (to >= newest)
        return;
    int err = pyr_forget(array, v, to, 0, 0, NULL);
    if (err < 0) /* a clone begins there */
        return;
    for (pyr_version i = v; i <= to; i++)
        deeds[i].forgotten = true;
    OK(pyr_reclaim(store, NULL, &gone));
}

static void
huge_arrays_are_as_the_model_says(void)
{
    uint64_t seed = test_seed();
    int rounds = (int)by_scale(20, 50, 3000);
    for (int round = 0; round < rounds; round++) {
        int before = check_failures;
        dice = rng_of(seed + (uint64_t)round);
        begin_huge(round % 8 == 0);
        for (int i = 0; i < 14 && check_failures == before; i++) {
            do_anything();
            check_points(array, newest);
            if (rng_once_in(&dice, 6) && newest > 2)
                do_forget();
        }
        for (pyr_version v = 0; v <= newest && check_failures == before; v++)
            check_points(array, v);
        check_changes();
        check_reductions();
        check_health(store, 1);
        if (check_failures > before)
            printf("# round %d\n", round);
        end_huge();
    }
}

static void
clones_of_huge_arrays_go_their_own_ways(void)
{
    uint64_t seed = test_seed();
    int rounds = (int)by_scale(8, 20, 1000);
    for (int round = 0; round < rounds; round++) {
        pyr_array *origin;
        deed was[MAX_VERSIONS];
        dice = rng_of(seed + 1000 + (uint64_t)round);
        begin_huge(false);
        for (int i = 0; i < 6; i++)
            do_anything();
        pyr_version at = newest;
        origin = array;
        memcpy(was, deeds, sizeof was);
        OK(pyr_clone(origin, at, "clone", &array));
        cloned_at = at;
        for (int i = 0; i < 5; i++)
            do_anything();
        check_points(array, newest - at);
        for (pyr_version v = at; v <= newest; v++)
            check_points(array, v - at);
        /* the origin goes on as if nothing had happened, then goes */
        memcpy(deeds, was, sizeof was);
        newest = at;
        cloned_at = 0;
        pyr_array *clone = array;
        array = origin;
        for (int i = 0; i < 3; i++)
            do_anything();
        check_points(array, newest);
        uint64_t forgotten;
        OK(pyr_forget(array, 0, newest - 1, 0, 0, &forgotten));
        OK(pyr_reclaim(store, NULL, NULL));
        check_points(array, newest);
        check_health(store, 2);
        pyr_array_close(clone);
        end_huge();
    }
}

/* --- copies --------------------------------------------------------------- */

static void
copies_of_huge_arrays_are_equal(void)
{
    uint64_t seed = test_seed();
    int rounds = (int)by_scale(8, 20, 1000);
    for (int round = 0; round < rounds; round++) {
        pyr_store *other;
        pyr_array *copy;
        pyr_copied out;
        char name[64];
        dice = rng_of(seed + 2000 + (uint64_t)round);
        begin_huge(false);
        for (int i = 0; i < 10; i++)
            do_anything();
        if (rng_once_in(&dice, 2))
            do_forget();
        snprintf(name, sizeof name, "mem:copy%d", round);
        OK(pyr_open(name, PYR_OPEN_CREATE, &other));
        OK(pyr_copy(array, other, "copy", NULL, &out));
        OK(pyr_array_open(other, "copy", &copy));
        bool whole = true; /* digests are equal if no version is left out */
        for (pyr_version v = 0; v <= newest; v++) {
            whole &= !deeds[v].forgotten;
            if (deeds[v].forgotten)
                continue;
            check_points(copy, v);
            if (whole)
                same_digests(array, copy, v);
        }
        check_health(other, 1);
        pyr_array_close(copy);
        pyr_close(other);
        end_huge();
    }
}

/* --- what it costs -------------------------------------------------------- */

static void
make(const uint64_t *shape, double value)
{
    ndim = 2;
    OK(pyr_open("mem:cost", PYR_OPEN_CREATE, &store));
    OK(pyr_create(store, "t",
                  &(pyr_spec){.ndim = 2, .shape = shape, .type = PYR_F64,
                              .fill = &value},
                  &array));
}

static double
cell_of(pyr_version v, uint64_t i, uint64_t k)
{
    double cell;
    OK(pyr_read(array, v, (uint64_t[2]){i, k}, (uint64_t[2]){1, 1}, &cell));
    return cell;
}

static void
doubling_10_to_the_15_cells_makes_one_node(void)
{
    static const uint64_t zero[2], shape[2] = {31622777, 31622777};
    pyr_usage use;
    pyr_stats st;
    make(shape, 1.5);
    OK(pyr_compute(array, 0, zero, shape, "x * 2", NULL));
    CHECK(cell_of(1, 0, 0) == 3 && cell_of(1, 31622776, 31622776) == 3);
    OK(pyr_version_usage(array, 1, &use));
    CHECK(use.nodes == 1 && use.fragments == 0 && use.bytes < 4096);
    OK(pyr_stat(array, 1, zero, shape, 0, &st));
    CHECK(st.min == 3 && st.max == 3 && st.count == shape[0] * shape[1]);
    CHECK(st.nodes_read <= 1 && st.chunks_read == 0);

    /* one cell: a path of nodes */
    double seven = 7;
    OK(pyr_write(array, (uint64_t[2]){12345678, 7}, (uint64_t[2]){1, 1},
                 &seven, NULL));
    CHECK(cell_of(2, 12345678, 7) == 7 && cell_of(2, 12345678, 8) == 3);
    OK(pyr_version_usage(array, 2, &use));
    CHECK(use.nodes <= 12 && use.bytes < 65536);
    OK(pyr_compute(array, 2, zero, shape, "x + 1", NULL));
    CHECK(cell_of(3, 12345678, 7) == 8 && cell_of(3, 12345678, 8) == 4);
    OK(pyr_version_usage(array, 3, &use));
    CHECK(use.nodes <= 12 && use.fragments == 1);

    pyr_value v;
    OK(pyr_reduce(array, 3, zero, shape, "max(x)", &v));
    CHECK(v.real == 8);
    OK(pyr_reduce(array, 3, zero, shape, "count(x < 5)", &v));
    CHECK(v.low == shape[0] * shape[1] - 1);
    check_health(store, 1);
    pyr_array_close(array);
    pyr_close(store);
}

static void
so_does_doubling_10_to_the_18(void)
{
    static const uint64_t zero[2], shape[2] = {1000000000, 1000000000};
    pyr_usage use;
    pyr_value v;
    make(shape, 1.5);
    OK(pyr_compute(array, 0, zero, shape, "x * 2", NULL));
    OK(pyr_version_usage(array, 1, &use));
    CHECK(use.nodes == 1 && use.fragments == 0);
    OK(pyr_reduce(array, 1, zero, shape, "mean(x)", &v));
    CHECK(v.real == 3 && v.bytes_read == 0);
    OK(pyr_reduce(array, 1, (uint64_t[2]){5, 5},
                  (uint64_t[2]){999999990, 999999990}, "min(x * x)", &v));
    CHECK(v.real == 9 && v.bytes_read == 0);
    check_health(store, 1);
    pyr_array_close(array);
    pyr_close(store);
}

static void
what_is_in_the_way_of_a_box_is_its_edge(void)
{
    static const uint64_t shape[2] = {5000000, 3000};
    uint64_t at[2] = {7, 11}, size[2] = {4999000, 2900};
    pyr_usage use;
    make(shape, 1);
    OK(pyr_compute(array, 0, at, size, "x * 2", NULL));
    CHECK(cell_of(1, 7, 11) == 2 && cell_of(1, 6, 11) == 1);
    CHECK(cell_of(1, 4999006, 2910) == 2 && cell_of(1, 4999007, 2910) == 1);
    OK(pyr_version_usage(array, 1, &use));
    /* both long sides cut chunks; each takes a leaf, and nodes above them */
    uint64_t long_side = 4999000 / 362 + 2;
    CHECK(use.nodes < 4 * long_side && use.fragments == 0);
    pyr_array_close(array);
    pyr_close(store);
}

static void
functions_of_coordinates_are_refused_if_the_box_is_huge(void)
{
    static const uint64_t zero[2], shape[2] = {31622777, 31622777};
    pyr_version latest;
    make(shape, 0);
    FAILS(PYR_EUNSUPPORTED, pyr_compute(array, 0, zero, shape, "x + i0", NULL));
    CHECK(strstr(pyr_errmsg(), "coordinates"));
    OK(pyr_latest(array, &latest));
    CHECK(latest == 0);
    /* and so is an edge that is too long */
    uint64_t long_[2] = {9000000000000, 1000}, size[2] = {9000000000000, 990};
    pyr_array *other;
    double value = 3;
    OK(pyr_create(store, "long",
                  &(pyr_spec){.ndim = 2, .shape = long_, .type = PYR_F64,
                              .fill = &value},
                  &other));
    FAILS(PYR_EUNSUPPORTED,
          pyr_compute(other, 0, (uint64_t[2]){0, 5}, size, "x + 1", NULL));
    CHECK(strstr(pyr_errmsg(), "smaller boxes"));
    pyr_array_close(other);
    pyr_array_close(array);
    pyr_close(store);
}

static void
equal_histories_have_equal_digests(void)
{
    static const uint64_t zero[2], shape[2] = {40000, 30000};
    pyr_array *a, *b;
    pyr_store *s;
    double value = 2, cells[4] = {1, 2, 3, 4};
    OK(pyr_open("mem:equal", PYR_OPEN_CREATE, &s));
    pyr_spec spec = {.ndim = 2, .shape = shape, .chunk = (uint64_t[2]){100, 100},
                     .type = PYR_F64, .fill = &value};
    OK(pyr_create(s, "a", &spec, &a));
    OK(pyr_create(s, "b", &spec, &b));
    for (int i = 0; i < 2; i++) {
        pyr_array *t = i ? b : a;
        OK(pyr_write(t, (uint64_t[2]){99, 99}, (uint64_t[2]){2, 2}, cells,
                     NULL));
        OK(pyr_compute(t, 1, zero, shape, "where(x == 4, 5, x * 3)", NULL));
        OK(pyr_compute(t, 2, (uint64_t[2]){1000, 1000},
                       (uint64_t[2]){20000, 20050}, "9", NULL));
    }
    for (pyr_version v = 0; v <= 3; v++)
        same_digests(a, b, v);
    pyr_array_close(a);
    pyr_array_close(b);
    pyr_close(s);
}

TESTS(T(doubling_10_to_the_15_cells_makes_one_node),
      T(so_does_doubling_10_to_the_18),
      T(what_is_in_the_way_of_a_box_is_its_edge),
      T(functions_of_coordinates_are_refused_if_the_box_is_huge),
      T(equal_histories_have_equal_digests),
      T(huge_arrays_are_as_the_model_says),
      T(clones_of_huge_arrays_go_their_own_ways),
      T(copies_of_huge_arrays_are_equal))
