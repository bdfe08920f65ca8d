/*
 * Expressions of integers mean 64 bits, however few of them are computed with:
 * many cells at once, which may be computed in 16 or 32 bits, against the same
 * cells few at a time, which are not.
 */
#include "op/op.h"
#include "op/narrow.h"
#include "support/check.h"
#include "support/rng.h"

enum { CELLS = 5000, FEW = 100 };

static rng dice;
static char text[2000];
static size_t size;
static uint8_t x[4 * CELLS], y[4 * CELLS], many[8 * CELLS], few[8 * CELLS];

static void
say(const char *part)
{
    size += (size_t)snprintf(text + size, sizeof text - size, "%s", part);
}

static void
random_leaf(void)
{
    static const char *const leaves[] = {"x",   "x",   "x@1", "1",    "2",
                                         "3",   "-7",  "100", "255",  "1000",
                                         "-128", "30000", "65535", "70000"};
    say(leaves[rng_below(&dice, sizeof leaves / sizeof *leaves)]);
}

static void
random_expression(int depth)
{
    static const char *const binary[] = {
        " + ", " - ", " * ", " & ", " | ",  " ^ ",  " < ",
        " <= ", " == ", " != ", " > ", " >= ", " && ", " || "};
    static const char *const unary[] = {"abs(", "sign(", "-(", "!(", "~("};
    static const char *const pairs[] = {"min(", "max("};
    static const char *const shifts[] = {" << 1", " << 3", " >> 1", " >> 4",
                                         " << 31", " >> 40", " << 64"};
    if (depth == 0) {
        random_leaf();
        return;
    }
    switch (rng_below(&dice, 6)) {
    case 0:
        say(unary[rng_below(&dice, 5)]);
        random_expression(depth - 1);
        break;
    case 1:
        say(pairs[rng_below(&dice, 2)]);
        random_expression(depth - 1);
        say(", ");
        random_expression(depth - 1);
        break;
    case 2:
        say("where(");
        random_expression(depth - 1);
        say(", ");
        random_expression(depth - 1);
        say(", ");
        random_expression(depth - 1);
        break;
    case 3:
        say("((");
        random_expression(depth - 1);
        say(")");
        say(shifts[rng_below(&dice, 7)]);
        break;
    default:
        say("((");
        random_expression(depth - 1);
        say(")");
        say(binary[rng_below(&dice, 14)]);
        say("(");
        random_expression(depth - 1);
        say(")");
    }
    say(")");
}

/* Edges often. */
static void
fill_cells(pyr_type type, uint8_t *cells)
{
    size_t width = pyri_type_size(type);
    static const int64_t edges[] = {0, 1, -1, 127, 128, -128, 255, 32767,
                                    -32768, 65535, INT32_MAX, INT32_MIN};
    for (int i = 0; i < CELLS; i++) {
        uint64_t bits = rng_next(&dice);
        if (rng_once_in(&dice, 3))
            bits = (uint64_t)edges[rng_below(&dice, 12)];
        memcpy(cells + (size_t)i * width, &bits, width);
    }
}

/* How many rounds were computed in fewer bits; counted so that the test does
 * not pass by never meeting one. */
static unsigned narrow;

static bool
one_round(void)
{
    static pyri_expr e;
    pyr_type type = (pyr_type)rng_below(&dice, 6);
    pyr_type to = rng_once_in(&dice, 3) ? (pyr_type)rng_below(&dice, 10) : type;
    size_t width = pyri_type_size(type), wide = pyri_type_size(to);
    size = 0;
    random_expression((int)rng_from(&dice, 1, 4));
    if (size >= sizeof text ||
        pyri_expr_parse(text, type, 1, &e, NULL, NULL) < 0)
        return true; /* too long */
    fill_cells(type, x);
    fill_cells(type, y);
    const void *src[] = {x, y};
    const uint8_t *bytes[] = {x, y};
    pyri_box box = {.hi = {CELLS}};
    OK(pyri_program_run(&e.program, 1, &box, src, to, many));
    narrow += pyri_narrow_run(&e.program, pyri_lanes_best(), CELLS, bytes, to,
                              few);
    for (uint64_t at = 0; at < CELLS; at += FEW) {
        const void *part[] = {x + at * width, y + at * width};
        pyri_box some = {.lo = {at}, .hi = {at + FEW}};
        OK(pyri_program_run(&e.program, 1, &some, part, to, few + at * wide));
    }
    if (memcmp(many, few, CELLS * wide) == 0)
        return true;
    CHECK_NOTE("%s over %s to %s differs", text, pyri_type_name(type),
               pyri_type_name(to));
    return false;
}

static void
few_bits_give_what_64_do(void)
{
    uint64_t rounds = by_scale(300, 2000, 200000), seed = test_seed();
    for (uint64_t i = 0; i < rounds; i++) {
        dice = rng_of(seed + i);
        if (!one_round()) {
            printf("# PYR_TEST_SEED=0x%llx\n", (unsigned long long)(seed + i));
            return;
        }
    }
    printf("# %u of %u in fewer bits\n", narrow, (unsigned)rounds);
    CHECK(narrow > rounds / 20);
}

static bool
is_narrow(const char *function, pyr_type type)
{
    static pyri_expr e;
    const uint8_t *bytes[] = {x, y};
    OK(pyri_expr_parse(function, type, 1, &e, NULL, NULL));
    return pyri_narrow_run(&e.program, pyri_lanes_best(), CELLS, bytes, type,
                           many);
}

static void
what_may_not_fit_is_left_alone(void)
{
    CHECK(is_narrow("x*2 + 1", PYR_U8));
    CHECK(is_narrow("where(x > 1000, 65535, 0)", PYR_U16));
    CHECK(is_narrow("where(x > 1000, x, 0)", PYR_I32));
    CHECK(!is_narrow("x + 1", PYR_I32));
    CHECK(!is_narrow("x + 1", PYR_U32));
    CHECK(!is_narrow("x * 40000", PYR_U16));
    CHECK(!is_narrow("x ** 3", PYR_I8));
    CHECK(!is_narrow("x + i0", PYR_I8));
    CHECK(!is_narrow("x * 1.5", PYR_I8));
    CHECK(!is_narrow("x / 2", PYR_I8));
    CHECK(!is_narrow("x & 0xffffffff", PYR_I8));
    CHECK(!is_narrow("x << 64", PYR_I8));
}

TESTS(T(few_bits_give_what_64_do), T(what_may_not_fit_is_left_alone))
