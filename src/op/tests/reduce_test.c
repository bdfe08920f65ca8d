/*
 * Reductions against plain loops in long double and 128 bits; cut into boxes
 * in many ways; with summaries in place of cells.
 */
#include "op/op.h"
#include "support/check.h"
#include "support/rng.h"

#include <math.h>

typedef __int128 big;

enum { ROWS = 37, COLUMNS = 91, CELLS = ROWS * COLUMNS };

static rng dice;
static uint8_t cells[8 * CELLS];
static pyri_expr expr;
static const pyri_box all = {.lo = {10, 20}, .hi = {10 + ROWS, 20 + COLUMNS}};

static uint64_t
pick(uint64_t n)
{
    return rng_below(&dice, n);
}

static void
parse(const char *text, pyr_type type)
{
    OK(pyri_expr_parse(text, type, 2, &expr, NULL, NULL));
    REQUIRE(expr.form == PYRI_FORM_REDUCE);
}

/* The part of a row of the array, which is dense. */
static const void *
part_of(pyr_type type, uint64_t row, uint64_t column)
{
    return cells +
           ((row - 10) * COLUMNS + (column - 20)) * pyri_type_size(type);
}

/* Reduce in random parts of rows, merged in a random order. */
static pyri_value
in_parts(pyr_type type, uint64_t longest)
{
    pyri_partial side[4];
    pyri_value value;
    for (int i = 0; i < 4; i++)
        pyri_partial_init(&side[i]);
    for (uint64_t row = all.hi[0]; row-- > all.lo[0];)
        for (uint64_t at = all.lo[1], n; at < all.hi[1]; at += n) {
            n = 1 + pick(longest);
            n = n < all.hi[1] - at ? n : all.hi[1] - at;
            pyri_box box = {.lo = {row, at}, .hi = {row + 1, at + n}};
            const void *src[] = {part_of(type, row, at)};
            OK(pyri_partial_run(&side[pick(4)], &expr.reduction, &expr.program,
                                2, &box, src));
        }
    for (int i = 1; i < 4; i++) {
        uint8_t bytes[PYRI_PARTIAL_BYTES];
        pyri_partial back;
        pyri_partial_encode(&side[i], bytes);
        OK(pyri_partial_decode(&back, bytes));
        pyri_partial_merge(&side[0], &expr.reduction, 2, &back);
    }
    pyri_partial_finish(&side[0], &expr.reduction, expr.program.kind, 2,
                        &value);
    return value;
}

static pyri_value
at_once(void)
{
    pyri_partial t;
    pyri_value value;
    const void *src[] = {cells};
    pyri_partial_init(&t);
    OK(pyri_partial_run(&t, &expr.reduction, &expr.program, 2, &all, src));
    pyri_partial_finish(&t, &expr.reduction, expr.program.kind, 2, &value);
    return value;
}

static double *
random_reals(double offset, bool nans)
{
    double *v = (double *)(void *)cells;
    for (int i = 0; i < CELLS; i++)
        v[i] = nans && rng_once_in(&dice, 5)
                   ? (double)NAN
                   : offset + ((double)pick(1 << 20) - 0x1p19) / 4096;
    return v;
}

/* --- numbers -------------------------------------------------------------- */

typedef struct plain {
    uint64_t count, truths, least, most; /* the latter two: which cell */
    long double sum, abs, mean, var;
} plain;

static plain
plain_of(const double *v)
{
    plain p = {0};
    for (uint64_t i = 0; i < CELLS; i++) {
        if (isnan(v[i]))
            continue;
        if (p.count == 0 || v[i] < v[p.least])
            p.least = i;
        if (p.count == 0 || v[i] > v[p.most])
            p.most = i;
        p.count++;
        p.truths += v[i] != 0;
        p.sum += v[i];
        p.abs += fabsl(v[i]);
    }
    p.mean = p.sum / p.count;
    for (uint64_t i = 0; i < CELLS; i++)
        if (!isnan(v[i]))
            p.var += (v[i] - p.mean) * (v[i] - p.mean) / p.count;
    return p;
}

static void
reals_agree_with_plain_loops(void)
{
    static const double offsets[] = {0, 1000, 1e9, -1e12};
    dice = rng_of(test_seed());
    for (int round = 0; round < 40; round++) {
        const double *v = random_reals(offsets[round % 4], round % 3 == 0);
        plain p = plain_of(v);
        uint64_t longest = 1 + pick(COLUMNS);
        parse("sum(x)", PYR_F64);
        long double bound = 37 * 0x1p-53L * p.abs;
        CHECK(fabsl(in_parts(PYR_F64, longest).real - p.sum) <= bound);
        CHECK(fabsl(at_once().real - p.sum) <= bound);
        parse("mean(x)", PYR_F64);
        CHECK(fabsl(in_parts(PYR_F64, longest).real - p.mean) <=
              2 * bound / p.count);
        parse("var(x)", PYR_F64);
        bound = (200 + 10 * CELLS) * 0x1p-53L * p.var;
        CHECK(fabsl(in_parts(PYR_F64, longest).real - p.var) <= bound);
        CHECK(fabsl(at_once().real - p.var) <= bound);
        parse("std(x)", PYR_F64);
        CHECK(fabsl(at_once().real - sqrtl(p.var)) <= bound / sqrtl(p.var));
        parse("min(x)", PYR_F64);
        CHECK(in_parts(PYR_F64, longest).real == v[p.least]);
        parse("max(x)", PYR_F64);
        CHECK(in_parts(PYR_F64, longest).real == v[p.most]);
        parse("count(x != 0)", PYR_F64);
        CHECK(in_parts(PYR_F64, longest).whole ==
              (big)(p.truths + (CELLS - p.count))); /* NaN != 0 */
        parse("count(x)", PYR_F64);
        CHECK(in_parts(PYR_F64, longest).whole == (big)p.truths);
    }
}

static void
positions_are_the_first_in_row_major_order(void)
{
    uint8_t *v = cells;
    dice = rng_of(test_seed() + 1);
    for (int round = 0; round < 40; round++) {
        int least = 0, most = 0;
        for (int i = 0; i < CELLS; i++)
            v[i] = (uint8_t)pick(round < 20 ? 256 : 2); /* many ties */
        for (int i = 0; i < CELLS; i++) {
            least = v[i] < v[least] ? i : least;
            most = v[i] > v[most] ? i : most;
        }
        for (int way = 0; way < 2; way++) {
            parse("argmin(x)", PYR_U8);
            pyri_value a = way ? at_once() : in_parts(PYR_U8, 1 + pick(91));
            CHECK(a.at[0] == 10 + (uint64_t)least / COLUMNS &&
                  a.at[1] == 20 + (uint64_t)least % COLUMNS);
            parse("argmax(x)", PYR_U8);
            a = way ? at_once() : in_parts(PYR_U8, 1 + pick(91));
            CHECK(a.at[0] == 10 + (uint64_t)most / COLUMNS &&
                  a.at[1] == 20 + (uint64_t)most % COLUMNS);
        }
    }
}

static void
positions_skip_nans(void)
{
    double *v = (double *)(void *)cells;
    for (int i = 0; i < CELLS; i++)
        v[i] = (double)NAN;
    v[700] = 3;
    v[701] = -3;
    parse("argmax(x)", PYR_F64);
    pyri_value a = at_once();
    CHECK(!a.none && a.at[0] == 10 + 700 / COLUMNS &&
          a.at[1] == 20 + 700 % COLUMNS);
    parse("argmin(x)", PYR_F64);
    CHECK(at_once().at[1] == 20 + 701 % COLUMNS);
}

static void
sums_of_integers_are_exact(void)
{
    dice = rng_of(test_seed() + 2);
    for (int round = 0; round < 20; round++) {
        big sum = 0, unsigned_sum = 0;
        for (int i = 0; i < CELLS; i++) {
            uint64_t bits = rng_once_in(&dice, 3)   ? (uint64_t)INT64_MIN
                            : rng_once_in(&dice, 2) ? UINT64_MAX
                                                    : rng_next(&dice);
            pyri_cell_store(PYR_U64, cells + 8 * i, bits);
            sum += (int64_t)bits;
            unsigned_sum += bits;
        }
        parse("sum(x)", PYR_I64);
        CHECK(in_parts(PYR_I64, 91).whole == sum && at_once().whole == sum);
        parse("sum(x)", PYR_U64);
        CHECK(in_parts(PYR_U64, 91).whole == unsigned_sum);
        parse("mean(x)", PYR_U64);
        long double mean = (long double)unsigned_sum / CELLS;
        CHECK(fabsl(at_once().real - mean) <= 0x1p-51L * mean);
    }
}

static void
any_and_all_ask_for_truth(void)
{
    memset(cells, 1, CELLS);
    parse("all(x)", PYR_U8);
    CHECK(at_once().whole == 1);
    cells[2000] = 0;
    CHECK(at_once().whole == 0 && in_parts(PYR_U8, 91).whole == 0);
    memset(cells, 0, CELLS);
    parse("any(x)", PYR_U8);
    CHECK(at_once().whole == 0);
    cells[CELLS - 1] = 9;
    CHECK(at_once().whole == 1 && in_parts(PYR_U8, 91).whole == 1);
}

static void
nothing_has_no_mean(void)
{
    pyri_partial t;
    pyri_value v;
    static const char *const texts[] = {"mean(x)", "var(x)", "std(x)",
                                        "min(x)",  "max(x)", "argmin(x)"};
    for (int i = 0; i < 6; i++) {
        parse(texts[i], PYR_F32);
        pyri_partial_init(&t);
        pyri_partial_finish(&t, &expr.reduction, expr.program.kind, 2, &v);
        CHECK(v.none);
    }
    parse("sum(x)", PYR_F32);
    pyri_partial_init(&t);
    pyri_partial_finish(&t, &expr.reduction, expr.program.kind, 2, &v);
    CHECK(!v.none && v.real == 0);
}

static void
infinite_sums_stay_infinite(void)
{
    double *v = random_reals(0, false);
    v[100] = (double)INFINITY;
    parse("sum(x)", PYR_F64);
    CHECK(in_parts(PYR_F64, 30).real == (double)INFINITY);
    v[2000] = -(double)INFINITY;
    CHECK(isnan(in_parts(PYR_F64, 30).real));
    parse("max(x)", PYR_F64);
    CHECK(at_once().real == (double)INFINITY);
}

static void
forged_partials_are_refused(void)
{
    pyri_partial t;
    uint8_t bytes[PYRI_PARTIAL_BYTES] = {0};
    OK(pyri_partial_decode(&t, bytes));
    bytes[16] = 1; /* a truth of no cells */
    FAILS(PYR_ECORRUPT, pyri_partial_decode(&t, bytes));
    bytes[16] = 0;
    bytes[79] = 0xc0; /* squares of -2 */
    FAILS(PYR_ECORRUPT, pyri_partial_decode(&t, bytes));
}

/* --- bins ----------------------------------------------------------------- */

static void
histograms_count_every_cell_once(void)
{
    uint64_t bins[10] = {0}, more[10] = {0}, want[12] = {0};
    pyri_histogram h = {.bin = bins}, other = {.bin = more};
    dice = rng_of(test_seed() + 3);
    double *v = random_reals(0, true);
    v[5] = 100;
    v[6] = -100;
    v[7] = (double)INFINITY;
    parse("histogram(x, -100, 100, 10)", PYR_F64);
    uint64_t nans = 0;
    for (int i = 0; i < CELLS; i++) {
        if (isnan(v[i]))
            nans++;
        else if (v[i] < -100)
            want[10]++;
        else if (v[i] > 100)
            want[11]++;
        else
            want[v[i] == 100 ? 9 : (int)floor((v[i] + 100) / 20)]++;
    }
    pyri_box half = all, rest = all;
    half.hi[0] = rest.lo[0] = 25;
    const void *src[] = {cells}, *src2[] = {part_of(PYR_F64, 25, 20)};
    OK(pyri_histogram_run(&h, &expr.reduction, &expr.program, 2, &half, src));
    OK(pyri_histogram_run(&other, &expr.reduction, &expr.program, 2, &rest,
                          src2));
    pyri_histogram_merge(&h, 10, &other);
    for (int i = 0; i < 10; i++)
        CHECK(bins[i] == want[i]);
    CHECK(h.below == want[10] && h.above == want[11] && h.nans == nans);
    double same = 42;
    const void *one[] = {&same};
    OK(pyri_histogram_run_same(&h, &expr.reduction, &expr.program, 2, &all,
                               one));
    CHECK(bins[7] == want[7] + CELLS);
    expr.reduction.bins = 70000;
    FAILS(PYR_EINVAL, pyri_histogram_run(&h, &expr.reduction, &expr.program, 2,
                                         &half, src));
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* q of the cells, in two parts per pass; *passes are counted. */
static pyri_value
quantile(pyr_type type, uint32_t bins, int *passes)
{
    static uint64_t bin[PYRI_OP_MAX_BINS], more[PYRI_OP_MAX_BINS];
    pyri_quantile q;
    pyri_value v;
    pyri_box half = all, rest = all;
    half.hi[0] = rest.lo[0] = 25;
    const void *src[] = {cells}, *src2[] = {part_of(type, 25, 20)};
    pyri_quantile_init(&q, &expr.reduction, expr.program.kind, bins, bin);
    for (*passes = 0; !q.done; ++*passes) {
        pyri_quantile other = q;
        memset(more, 0, sizeof more);
        other.bin = more;
        OK(pyri_quantile_run(&q, &expr.program, 2, &half, src));
        OK(pyri_quantile_run(&other, &expr.program, 2, &rest, src2));
        pyri_quantile_merge(&q, &other);
        OK(pyri_quantile_next(&q));
        REQUIRE(*passes < 64);
    }
    pyri_quantile_finish(&q, &v);
    return v;
}

static void
quantiles_are_exact(void)
{
    static double sorted[CELLS];
    static const char *const texts[] = {
        "quantile(x, 0)",   "quantile(x, 0.25)", "quantile(x, 0.5)",
        "quantile(x, 0.9)", "quantile(x, 1)",    "quantile(x, 0.123)"};
    dice = rng_of(test_seed() + 4);
    for (int round = 0; round < 24; round++) {
        const double *v = random_reals(round % 2 ? 0 : 1e15, round % 3 == 0);
        size_t n = 0;
        for (int i = 0; i < CELLS; i++)
            if (!isnan(v[i]))
                sorted[n++] = v[i];
        qsort(sorted, n, sizeof *sorted, by_value);
        parse(texts[round % 6], PYR_F64);
        double at = expr.reduction.q * (double)(n - 1);
        size_t k = (size_t)at;
        double want = sorted[k];
        if (at > (double)k)
            want += (at - (double)k) * (sorted[k + 1] - sorted[k]);
        int passes;
        CHECK(quantile(PYR_F64, 65536, &passes).real == want);
        CHECK(passes <= 4);
        CHECK(quantile(PYR_F64, 16, &passes).real == want);
    }
}

static void
quantiles_of_integers_stay_integers(void)
{
    int passes;
    for (int i = 0; i < CELLS; i++)
        pyri_cell_store(PYR_I64, cells + 8 * i,
                        (uint64_t)(i % 2 ? INT64_MIN + i : INT64_MAX - i));
    parse("quantile(x, 1)", PYR_I64);
    pyri_value v = quantile(PYR_I64, 65536, &passes);
    CHECK(v.kind == PYRI_INT && v.whole == INT64_MAX);
    parse("quantile(x, 0)", PYR_I64);
    CHECK(quantile(PYR_I64, 1000, &passes).whole == (big)INT64_MIN + 1);
    for (int i = 0; i < CELLS; i++)
        cells[i] = (uint8_t)(i % 7);
    parse("quantile(x * 2, 0.5)", PYR_U8);
    CHECK(quantile(PYR_U8, 65536, &passes).real == 6);
}

static void
a_known_range_saves_passes(void)
{
    static uint64_t bin[256];
    pyri_quantile q;
    pyri_value v;
    const void *src[] = {cells};
    for (int i = 0; i < CELLS; i++)
        cells[i] = (uint8_t)i;
    parse("quantile(x, 0.5)", PYR_U8);
    pyri_quantile_init(&q, &expr.reduction, expr.program.kind, 256, bin);
    pyri_quantile_limit(&q, 0, 255);
    OK(pyri_quantile_run(&q, &expr.program, 2, &all, src));
    OK(pyri_quantile_next(&q));
    CHECK(q.done);
    pyri_quantile_finish(&q, &v);
    CHECK(v.whole == 126);
    pyri_quantile_init(&q, &expr.reduction, expr.program.kind, 256, bin);
    OK(pyri_quantile_next(&q));
    pyri_quantile_finish(&q, &v);
    CHECK(q.done && v.none);
}

static void
cells_that_change_between_passes_are_noticed(void)
{
    static uint64_t bin[16];
    pyri_quantile q;
    const void *src[] = {cells};
    random_reals(0, false);
    parse("quantile(x, 0.5)", PYR_F64);
    pyri_quantile_init(&q, &expr.reduction, expr.program.kind, 16, bin);
    OK(pyri_quantile_run(&q, &expr.program, 2, &all, src));
    OK(pyri_quantile_next(&q));
    FAILS(PYR_EINVAL, pyri_quantile_next(&q));
}

/* --- cells that are not looked at ----------------------------------------- */

static void
cells_that_are_alike_are_computed_once(void)
{
    static const char *const texts[] = {"sum(x*2+1)", "mean(x)",   "var(x)",
                                        "min(-x)",    "argmax(x)", "count(x>3)",
                                        "any(x)",     "all(x)"};
    int16_t cell = 7;
    const void *one[] = {&cell};
    for (int i = 0; i < CELLS; i++)
        memcpy(cells + 2 * i, &cell, 2);
    for (int i = 0; i < 8; i++) {
        pyri_partial t;
        pyri_value v, want;
        parse(texts[i], PYR_I16);
        want = at_once();
        pyri_partial_init(&t);
        OK(pyri_partial_run_same(&t, &expr.reduction, &expr.program, 2, &all,
                                 one));
        pyri_partial_finish(&t, &expr.reduction, expr.program.kind, 2, &v);
        CHECK(v.real == want.real && v.whole == want.whole);
        CHECK(v.at[0] == want.at[0] && v.at[1] == want.at[1]);
    }
    pyri_partial t;
    pyri_partial_init(&t);
    parse("sum(x + i0)", PYR_I16);
    FAILS(PYR_EINVAL, pyri_partial_run_same(&t, &expr.reduction, &expr.program,
                                            2, &all, one));
    /* 2^63 cells */
    const pyri_box huge = {.hi = {(uint64_t)1 << 62, 2}};
    parse("sum(x)", PYR_I16);
    OK(pyri_partial_run_same(&t, &expr.reduction, &expr.program, 2, &huge,
                             one));
    CHECK(t.sum_int == (big)7 << 63);
}

static pyri_known
known_of(const int32_t *v)
{
    pyri_known k = {.count = CELLS};
    int32_t min = v[0], max = v[0];
    for (int i = 0; i < CELLS; i++) {
        min = v[i] < min ? v[i] : min;
        max = v[i] > max ? v[i] : max;
        k.not_fill += v[i] != 0;
        k.sum_int += v[i];
        k.squares += (double)v[i] * v[i];
    }
    k.min = (uint32_t)min;
    k.max = (uint32_t)max;
    return k;
}

static void
summaries_answer_what_they_can(void)
{
    static const struct {
        const char *text;
        bool told;
    } cases[] = {
        {"sum(x)", true},
        {"mean(x)", true},
        {"var(x)", true},
        {"std(x)", true},
        {"min(x)", true},
        {"max(x)", true},
        {"count(x)", true},
        {"any(x)", true},
        {"all(x)", true},
        {"argmin(x)", false},
        {"sum(x+1)", false},
        {"sum(x@3)", false},
        {"histogram(x,0,1,2)", false},
        {"quantile(x,0.5)", false},
    };
    int32_t *v = (int32_t *)(void *)cells;
    dice = rng_of(test_seed() + 5);
    for (int i = 0; i < CELLS; i++)
        v[i] = (int32_t)pick(2001) - 1000;
    pyri_known k = known_of(v);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pyri_partial t;
        pyri_value value;
        parse(cases[i].text, PYR_I32);
        pyri_partial_init(&t);
        bool told = pyri_partial_known(&t, &expr.reduction, &expr.program, 2,
                                       &all, &k, 0);
        if (told != cases[i].told)
            CHECK_NOTE("%s", cases[i].text);
        if (!told || !cases[i].told)
            continue;
        pyri_value want = at_once();
        pyri_partial_finish(&t, &expr.reduction, expr.program.kind, 2, &value);
        CHECK(value.whole == want.whole);
        CHECK(fabs(value.real - want.real) <= 1e-14 * fabs(want.real));
    }
}

static void
summaries_of_reals_tell_variance_only_if_asked_to(void)
{
    pyri_partial t;
    pyri_known k = {.count = 1000, .sum = 0, .squares = 1000};
    double min = -3, max = 3;
    memcpy(&k.min, &min, 8);
    memcpy(&k.max, &max, 8);
    parse("var(x)", PYR_F64);
    pyri_partial_init(&t);
    CHECK(!pyri_partial_known(&t, &expr.reduction, &expr.program, 2, &all, &k,
                              0));
    CHECK(pyri_partial_known(&t, &expr.reduction, &expr.program, 2, &all, &k,
                             1e-12));
    CHECK(t.count == 1000 && t.squares == 1000);
    k.sum = 1e9; /* far from zero: nothing is left of the difference */
    k.squares = 1e15 + 1000;
    CHECK(!pyri_partial_known(&t, &expr.reduction, &expr.program, 2, &all, &k,
                              1e-12));
    parse("count(x)", PYR_F64);
    CHECK(!pyri_partial_known(&t, &expr.reduction, &expr.program, 2, &all, &k,
                              1e-12));
}

TESTS(T(reals_agree_with_plain_loops),
      T(positions_are_the_first_in_row_major_order), T(positions_skip_nans),
      T(sums_of_integers_are_exact), T(any_and_all_ask_for_truth),
      T(nothing_has_no_mean), T(infinite_sums_stay_infinite),
      T(forged_partials_are_refused), T(histograms_count_every_cell_once),
      T(quantiles_are_exact), T(quantiles_of_integers_stay_integers),
      T(a_known_range_saves_passes),
      T(cells_that_change_between_passes_are_noticed),
      T(cells_that_are_alike_are_computed_once),
      T(summaries_answer_what_they_can),
      T(summaries_of_reals_tell_variance_only_if_asked_to))
