/*
 * compute/reduce_test.c - reductions against cells that are gone over one by
 * one.
 */
#include "api/fixture.h"

static pyr_array *array;
static rng dice;

enum { ROWS = 60, COLUMNS = 70 };

static double cells[ROWS][COLUMNS]; /* what the array holds */

/* An array of a type whose cells are small whole numbers, written in several
 * steps so that chunks have chains, constants and never-written parts. */
static void
make(pyr_type type, bool nans)
{
    uint64_t shape[2] = {ROWS, COLUMNS};
    uint64_t chunk[2] = {1 + rng_below(&dice, 20), 1 + rng_below(&dice, 20)};
    OK(pyr_create(store, "t",
                  &(pyr_spec){.ndim = 2, .shape = shape, .chunk = chunk,
                              .type = type}, &array));
    memset(cells, 0, sizeof cells);
    for (int i = 0; i < 6; i++) {
        uint64_t lo[2] = {rng_below(&dice, ROWS), rng_below(&dice, COLUMNS)};
        uint64_t size[2] = {1 + rng_below(&dice, ROWS - lo[0]),
                            1 + rng_below(&dice, COLUMNS - lo[1])};
        static union {
            int16_t i16[ROWS * COLUMNS];
            double f64[ROWS * COLUMNS];
        } buf;
        bool same = i % 3 == 2;
        for (uint64_t r = 0, k = 0; r < size[0]; r++)
            for (uint64_t c = 0; c < size[1]; c++, k++) {
                double v = same ? 5 : (double)rng_below(&dice, 200) - 60;
                if (nans && !same && rng_once_in(&dice, 9))
                    v = NAN;
                cells[lo[0] + r][lo[1] + c] = v;
                if (type == PYR_I16)
                    buf.i16[k] = (int16_t)v;
                else
                    buf.f64[k] = v;
            }
        OK(pyr_write(array, lo, size, &buf, NULL));
    }
}

/* What a reduction should give. */
typedef struct truth {
    uint64_t numbers, truths;
    double sum, mean, var, min, max;
    uint64_t at_min[2], at_max[2];
    double sorted[ROWS * COLUMNS];
    uint64_t bins[10], below, above, nans;
} truth;

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of f(cell) for the cells of a box; f is x, or 2x + the row. */
static double
value(bool plain, uint64_t r, uint64_t c)
{
    return plain ? cells[r][c] : 2 * cells[r][c] + (double)r;
}

static truth *
know(const uint64_t *lo, const uint64_t *size, bool plain)
{
    static truth t;
    memset(&t, 0, sizeof t);
    for (uint64_t r = lo[0]; r < lo[0] + size[0]; r++)
        for (uint64_t c = lo[1]; c < lo[1] + size[1]; c++) {
            double v = value(plain, r, c);
            if (isnan(v)) {
                t.nans++;
                continue;
            }
            bool first = t.numbers == 0;
            if (first || v < t.min) {
                t.min = v;
                memcpy(t.at_min, (uint64_t[2]){r, c}, sizeof t.at_min);
            }
            if (first || v > t.max) {
                t.max = v;
                memcpy(t.at_max, (uint64_t[2]){r, c}, sizeof t.at_max);
            }
            t.sorted[t.numbers++] = v;
            t.truths += v != 0;
            t.sum += v; /* whole numbers: exact */
            if (v < -20)
                t.below++;
            else if (v > 80)
                t.above++;
            else
                t.bins[v == 80 ? 9 : (int)((v + 20) / 10)]++;
        }
    t.mean = t.sum / (double)t.numbers;
    for (uint64_t i = 0; i < t.numbers; i++)
        t.var += (t.sorted[i] - t.mean) * (t.sorted[i] - t.mean);
    t.var /= (double)t.numbers;
    qsort(t.sorted, t.numbers, sizeof *t.sorted, compare);
    return &t;
}

static bool
near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b)) || a == b;
}

static pyr_value
reduced(const char *name, const char *rest, bool plain, const uint64_t *lo,
        const uint64_t *size)
{
    char text[200];
    pyr_value v;
    snprintf(text, sizeof text, "%s(%s%s)", name, plain ? "x" : "2*x + i0",
             rest);
    OK(pyr_reduce(array, PYR_LATEST, lo, size, text, &v));
    return v;
}

static void
check_bins(const truth *t, bool plain, const uint64_t *lo,
           const uint64_t *size)
{
    pyr_value v = reduced("histogram", ", -20, 80, 10", plain, lo, size);
    CHECK(v.kind == PYR_VALUE_HISTOGRAM && v.bins == 10);
    for (int i = 0; i < 10 && v.counts; i++)
        CHECK(v.counts[i] == t->bins[i]);
    CHECK(v.below == t->below && v.above == t->above && v.nans == t->nans);
    pyr_value_free(&v);
    v = reduced("quantile", ", 0.3", plain, lo, size);
    if (t->numbers) {
        double at = 0.3 * (double)(t->numbers - 1);
        uint64_t k = (uint64_t)at, next = k + (k + 1 < t->numbers);
        double want = t->sorted[k] +
                      (at - (double)k) * (t->sorted[next] - t->sorted[k]);
        CHECK(near(v.real, want));
    } else {
        CHECK(v.kind == PYR_VALUE_NONE);
    }
}

static void
check_all(const uint64_t *lo, const uint64_t *size, bool plain)
{
    const truth *t = know(lo, size, plain);
    pyr_value v;
    v = reduced("count", "", plain, lo, size);
    CHECK(v.kind == PYR_VALUE_INTEGER && v.low == t->truths);
    v = reduced("any", "", plain, lo, size);
    CHECK(v.low == (t->truths > 0));
    v = reduced("all", "", plain, lo, size);
    CHECK(v.low == (t->truths == t->numbers));
    v = reduced("sum", "", plain, lo, size);
    CHECK(v.real == t->sum);
    check_bins(t, plain, lo, size);
    v = reduced("mean", "", plain, lo, size);
    CHECK(t->numbers ? near(v.real, t->mean) : v.kind == PYR_VALUE_NONE);
    if (t->numbers == 0)
        return;
    v = reduced("var", "", plain, lo, size);
    CHECK(near(v.real, t->var));
    v = reduced("std", "", plain, lo, size);
    CHECK(near(v.real, sqrt(t->var)));
    v = reduced("min", "", plain, lo, size);
    CHECK(v.real == t->min);
    v = reduced("max", "", plain, lo, size);
    CHECK(v.real == t->max);
    v = reduced("argmin", "", plain, lo, size);
    CHECK(v.kind == PYR_VALUE_POSITION && v.at[0] == t->at_min[0] &&
          v.at[1] == t->at_min[1]);
    v = reduced("argmax", "", plain, lo, size);
    CHECK(v.at[0] == t->at_max[0] && v.at[1] == t->at_max[1]);
}

static void
reductions_are_what_the_cells_amount_to(void)
{
    dice = rng_of(test_seed());
    for (int round = 0; round < (int)by_scale(10, 30, 300); round++) {
        int before = check_failures;
        set_up();
        make(round % 2 ? PYR_F64 : PYR_I16, round % 4 == 1);
        for (int i = 0; i < 6; i++) {
            uint64_t lo[2] = {rng_below(&dice, ROWS),
                              rng_below(&dice, COLUMNS)};
            uint64_t size[2] = {rng_below(&dice, ROWS - lo[0] + 1),
                                rng_below(&dice, COLUMNS - lo[1] + 1)};
            if (i == 0) {
                memset(lo, 0, sizeof lo);
                size[0] = ROWS;
                size[1] = COLUMNS;
            }
            check_all(lo, size, i % 2 == 0);
        }
        if (check_failures > before)
            printf("# round %d\n", round);
        pyr_array_close(array);
        tear_down();
    }
}

/* 16 x 16 chunks of 32 x 32 doubles. */
static void
make_grid(void)
{
    enum { N = 512 };
    static double grid[N][N];
    rng r = rng_of(7);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++)
            grid[i][k] = (double)rng_below(&r, 1000000) / 7;
    OK(pyr_create(store, "t",
                  &(pyr_spec){.ndim = 2, .shape = (uint64_t[2]){N, N},
                              .chunk = (uint64_t[2]){32, 32},
                              .type = PYR_F64}, &array));
    OK(pyr_write(array, zero, (uint64_t[2]){N, N}, grid, NULL));
}

static void
a_mean_of_a_box_reads_the_chunks_that_its_edge_cuts(void)
{
    pyr_value v;
    set_up();
    make_grid();
    /* rows 40..199, columns 64..400: chunks 1..6 by 2..12 */
    OK(pyr_reduce(array, PYR_LATEST, (uint64_t[2]){40, 64},
                  (uint64_t[2]){160, 337}, "mean(x)", &v));
    /* cut: row 1 (24 rows) and row 6 (8 rows) of 11 columns, of them column
     * 12 with 17 columns; and rows 2..5 of column 12 */
    CHECK(v.chunks_read == 11 + 11 + 4);
    CHECK(v.bytes_read == 8 * ((24 + 8) * 337 + 4 * 32 * 17));
    OK(pyr_reduce(array, PYR_LATEST, zero, (uint64_t[2]){512, 512}, "mean(x)",
                  &v));
    CHECK(v.chunks_read == 0 && v.bytes_read == 0 && v.nodes_read < 8);
    OK(pyr_reduce(array, PYR_LATEST, zero, (uint64_t[2]){512, 512},
                  "mean(x + 0)", &v));
    CHECK(v.bytes_read == 512 * 512 * 8);
    pyr_array_close(array);
    tear_down();
}

/* Of the chunks that a box touches: those that it does not hold whole, and its
 * cells in them. */
static void
count_cut(const uint64_t at[2], const uint64_t size[2], uint64_t *chunks,
          uint64_t *cut)
{
    *chunks = *cut = 0;
    for (uint64_t y = 0; y < 512; y += 32)
        for (uint64_t x = 0; x < 512; x += 32) {
            uint64_t in = 0;
            for (uint64_t k = 0; k < 32 * 32; k++)
                in += y + k / 32 - at[0] < size[0] &&
                      x + k % 32 - at[1] < size[1];
            *chunks += in > 0 && in < 32 * 32;
            *cut += in < 32 * 32 ? in : 0;
        }
}

static void
a_mean_of_any_box_reads_cut_chunks_and_no_others(void)
{
    static double got[512 * 512];
    rng r = rng_of(test_seed());
    set_up();
    make_grid();
    for (uint64_t i = 0; i < by_scale(20, 60, 2000); i++) {
        uint64_t at[2], size[2], chunks, cut;
        double sum = 0;
        pyr_value v;
        for (int d = 0; d < 2; d++) {
            at[d] = rng_below(&r, 512);
            size[d] = rng_from(&r, 1, 512 - at[d]);
        }
        count_cut(at, size, &chunks, &cut);
        OK(pyr_reduce(array, PYR_LATEST, at, size, "mean(x)", &v));
        CHECK(v.chunks_read == chunks && v.bytes_read == 8 * cut);
        OK(pyr_read(array, PYR_LATEST, at, size, got));
        for (uint64_t k = 0; k < size[0] * size[1]; k++)
            sum += got[k];
        sum /= (double)(size[0] * size[1]);
        CHECK(fabs(v.real - sum) <= 1e-9 * fabs(sum));
    }
    pyr_array_close(array);
    tear_down();
}

static void *
read_in_the_background(void *ctx)
{
    pyr_value *v = ctx;
    static const char *const texts[] = {"mean(x*x)", "var(x)", "sum(sqrt(x))"};
    for (int i = 0; i < 3; i++)
        if (pyr_reduce(array, PYR_LATEST, zero, (uint64_t[2]){512, 511},
                       texts[i], &v[i]) < 0)
            v[i].real = NAN;
    return NULL;
}

/* Callers that find the workers busy work alone: the same bits come out. */
static void
the_value_does_not_depend_on_the_number_of_threads(void)
{
    enum { CALLERS = 6 };
    pyr_value v[CALLERS][3];
    pthread_t threads[CALLERS];
    set_up();
    make_grid();
    for (int i = 0; i < CALLERS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, read_in_the_background,
                               v[i]) == 0);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < CALLERS; i++)
        for (int k = 0; k < 3; k++)
            CHECK(memcmp(&v[i][k].real, &v[0][k].real, sizeof(double)) == 0 &&
                  !isnan(v[i][k].real));
    pyr_array_close(array);
    tear_down();
}

static void
other_versions_take_part(void)
{
    int32_t a[20], b[20];
    pyr_value v;
    set_up();
    for (int i = 0; i < 20; i++) {
        a[i] = i;
        b[i] = i == 13 ? -50 : i + 1;
    }
    OK(pyr_create(store, "t",
                  &(pyr_spec){.ndim = 1, .shape = (uint64_t[1]){20},
                              .chunk = (uint64_t[1]){6}, .type = PYR_I32},
                  &array));
    OK(pyr_write(array, zero, (uint64_t[1]){20}, a, NULL));
    OK(pyr_write(array, zero, (uint64_t[1]){20}, b, NULL));
    OK(pyr_reduce(array, 2, zero, (uint64_t[1]){20}, "max(abs(x - x@1))", &v));
    CHECK(v.kind == PYR_VALUE_INTEGER && v.low == 63);
    OK(pyr_reduce(array, 2, zero, (uint64_t[1]){20}, "argmax(abs(x - x@1))",
                  &v));
    CHECK(v.at[0] == 13);
    pyr_array_close(array);
    tear_down();
}

static void
huge_arrays_of_fill_cost_nothing(void)
{
    pyr_value v;
    char text[64];
    uint64_t shape[2] = {1000000000, 1000000000};
    set_up();
    OK(pyr_create(store, "t",
                  &(pyr_spec){.ndim = 2, .shape = shape, .type = PYR_I64,
                              .fill = &(int64_t){4}}, &array));
    OK(pyr_reduce(array, 0, zero, shape, "sum(x * x@0 - 1)", &v));
    CHECK(strcmp(pyr_value_text(&v, text, sizeof text),
                 "15000000000000000000") == 0);
    OK(pyr_reduce(array, 0, zero, shape, "quantile(x, 0.5)", &v));
    CHECK(v.low == 4 && v.bytes_read == 0);
    OK(pyr_reduce(array, 0, zero, shape, "histogram(x, 0, 10, 5)", &v));
    CHECK(v.counts[2] == 1000000000000000000);
    pyr_value_free(&v);
    pyr_array_close(array);
    tear_down();
}

TESTS(T(reductions_are_what_the_cells_amount_to),
      T(a_mean_of_a_box_reads_the_chunks_that_its_edge_cuts),
      T(a_mean_of_any_box_reads_cut_chunks_and_no_others),
      T(the_value_does_not_depend_on_the_number_of_threads),
      T(other_versions_take_part), T(huge_arrays_of_fill_cost_nothing))
