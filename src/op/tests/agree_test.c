/*
 * Random expressions, on cells of all types with all their edges, against a
 * second evaluator, the one in plain.h.
 */
#include "op/op.h"
#include "op/tests/plain.h"
#include "support/check.h"
#include "support/rng.h"

#include <assert.h>
#include <float.h>
#include <math.h>

enum { MAX_CELLS = 3000, MAX_TREE = 256 };

static rng dice;

static uint64_t
pick(uint64_t n)
{
    return rng_below(&dice, n);
}

/* --- random trees ----------------------------------------------------- */

static tree pool[MAX_TREE];
static int used;

static tree *
new_tree(what w)
{
    assert(used < MAX_TREE);
    pool[used] = (tree){.what = w};
    return &pool[used++];
}

static pyr_type cell_type;
static int ndim;

static char
cell_kind(void)
{
    return pyri_type_is_float(cell_type) ? 'r'
           : cell_type == PYR_U64        ? 'u'
                                         : 'i';
}

static tree *
literal(void)
{
    static const struct {
        const char *text;
        char kind;
        uint64_t whole;
        double real;
    } all[] = {
        {"0", 'i', 0, 0},
        {"1", 'i', 1, 0},
        {"2", 'i', 2, 0},
        {"3", 'i', 3, 0},
        {"7", 'i', 7, 0},
        {"64", 'i', 64, 0},
        {"100", 'i', 100, 0},
        {"0xff", 'i', 255, 0},
        {"9223372036854775807", 'i', INT64_MAX, 0},
        {"18446744073709551615", 'u', UINT64_MAX, 0},
        {"0x8000000000000001", 'u', 0x8000000000000001, 0},
        {"4294967296", 'i', 4294967296, 0},
        {"0.5", 'r', 0, 0.5},
        {"1.8", 'r', 0, 1.8},
        {"2.0", 'r', 0, 2},
        {"1e300", 'r', 0, 1e300},
        {"1e-310", 'r', 0, 1e-310},
        {"3.25", 'r', 0, 3.25},
        {"inf", 'r', 0, INFINITY},
        {"nan", 'r', 0, NAN},
        {"pi", 'r', 0, M_PI},
        {"e", 'r', 0, M_E},
        {"true", 'i', 1, 0},
        {"false", 'i', 0, 0},
        {"0.0", 'r', 0, 0},
    };
    size_t k = pick(sizeof all / sizeof all[0]);
    tree *t = new_tree(LITERAL);
    t->kind = all[k].kind;
    t->literal = t->kind == 'r'   ? val_r(all[k].real)
                 : t->kind == 'u' ? val_u(all[k].whole)
                                  : val_i((int64_t)all[k].whole);
    strcpy(t->text, all[k].text);
    return t;
}

static tree *
leaf(void)
{
    tree *t;
    switch (pick(5)) {
    case 0: return literal();
    case 1:
        t = new_tree(COORD);
        t->kind = 'i';
        t->index = (int)pick((uint64_t)ndim);
        sprintf(t->text, "i%d", t->index);
        return t;
    default:
        t = new_tree(CELL);
        t->kind = cell_kind();
        t->index = rng_once_in(&dice, 3) ? (int)pick(VERSIONS) + 1 : 0;
        if (t->index)
            sprintf(t->text, "x@%d", t->index * 10);
        else
            strcpy(t->text, "x");
        return t;
    }
}

static tree *random_tree(int depth);

/* An integer: reals are cast. */
static tree *
random_whole(int depth)
{
    tree *t = random_tree(depth);
    if (t->kind != 'r')
        return t;
    tree *c = new_tree(CAST);
    c->index = (int)pick(8);
    c->kind = c->index == PYR_U64 ? 'u' : 'i';
    c->a = t;
    return c;
}

static tree *
random_unary(what w, int depth)
{
    tree *t = new_tree(w);
    t->a = w == INVERT ? random_whole(depth) : random_tree(depth);
    t->kind = t->a->kind;
    if (w == NOT || w == TEST || (w == SIGN && t->kind == 'u'))
        t->kind = 'i';
    if (w == CALL1)
        t->kind = 'r';
    t->index = (int)pick(w == CALL1      ? sizeof real1 / sizeof real1[0]
                         : w == ROUNDING ? 4
                         : w == TEST     ? 3
                                         : 10);
    if (w == CAST)
        t->kind = t->index >= PYR_F32 ? 'r' : t->index == PYR_U64 ? 'u' : 'i';
    return t;
}

static tree *
random_binary(what w, int depth)
{
    tree *t = new_tree(w);
    bool bits = w >= BAND && w <= SHR;
    t->a = bits ? random_whole(depth) : random_tree(depth);
    /* x ** 2 is x * x if the 2 is a constant: leave no doubt about that. */
    t->b = w == POW ? leaf() : bits ? random_whole(depth) : random_tree(depth);
    t->kind = joined(t->a->kind, t->b->kind);
    if (w >= EQ && w <= OR)
        t->kind = 'i';
    if (w == SHL || w == SHR)
        t->kind = t->a->kind;
    if (w == CALL2)
        t->kind = 'r';
    t->index = (int)pick(2);
    return t;
}

static tree *
random_tree(int depth)
{
    if (depth == 0 || used > MAX_TREE - 40 || rng_once_in(&dice, 8))
        return leaf();
    what w = (what)(NEG + pick(CAST - NEG + 1));
    if (w == WHERE || w == CLIP) {
        tree *t = new_tree(w);
        t->a = random_tree(depth - 1);
        t->b = random_tree(depth - 1);
        t->c = random_tree(depth - 1);
        t->kind = joined(t->b->kind, t->c->kind);
        if (w == CLIP)
            t->kind = joined(t->a->kind, t->kind);
        return t;
    }
    bool two = (w >= ADD && w <= SHR) || w == MIN || w == MAX || w == CALL2;
    return two ? random_binary(w, depth - 1) : random_unary(w, depth - 1);
}

/* --- text ----------------------------------------------------------------- */

static const struct {
    const char *text, *other;
    int prec;
} signs[] = {
    [ADD] = {"+", "+", 9},    [SUB] = {"-", "-", 9},     [MUL] = {"*", "*", 10},
    [DIV] = {"/", "/", 10},   [FDIV] = {"//", "//", 10}, [MOD] = {"%", "%", 10},
    [POW] = {"**", "**", 12}, [EQ] = {"==", "==", 4},    [NE] = {"!=", "!=", 4},
    [LT] = {"<", "<", 4},     [LE] = {"<=", "<=", 4},    [GT] = {">", ">", 4},
    [GE] = {">=", ">=", 4},   [AND] = {"&&", "and", 2},  [OR] = {"||", "or", 1},
    [BAND] = {"&", "&", 7},   [BOR] = {"|", "|", 5},     [BXOR] = {"^", "^", 6},
    [SHL] = {"<<", "<<", 8},  [SHR] = {">>", ">>", 8},
};

static char text[32768];
static size_t size;

static void
put(const char *s)
{
    size += (size_t)sprintf(text + size, "%s%s", s,
                            rng_once_in(&dice, 6) ? " " : "");
}

static const char *
name_of(const tree *t)
{
    switch (t->what) {
    case WHERE: return "where";
    case CLIP: return "clip";
    case MIN: return "min";
    case MAX: return "max";
    case ABS: return "abs";
    case SIGN: return "sign";
    case CALL1: return real1_names[t->index];
    case CALL2: return t->index ? "hypot" : "atan2";
    case ROUNDING: return rounding_names[t->index];
    case TEST: return test_names[t->index];
    default: return pyri_type_name((pyr_type)t->index);
    }
}

static void print(const tree *t, int least);

static void
print_open(const tree *t)
{
    const tree *args[] = {t->a, t->b, t->c};
    static const char *const before[] = {
        [NEG] = "-", [PLUS] = "+", [INVERT] = "~", [NOT] = "!"};
    if (t->what <= LITERAL) {
        size += (size_t)sprintf(text + size, "%s ", t->text);
    } else if (t->what <= NOT) {
        put(before[t->what]);
        print(t->a, 11);
    } else if (t->what <= SHR) {
        int prec = signs[t->what].prec;
        print(t->a, prec + (prec == 4 || prec == 12));
        put(" ");
        put(rng_once_in(&dice, 2) ? signs[t->what].text : signs[t->what].other);
        put(" ");
        print(t->b, prec == 12 ? 11 : prec + 1);
    } else {
        put(name_of(t));
        put("(");
        for (int i = 0; i < 3 && args[i]; i++) {
            put(i ? "," : "");
            print(args[i], 1);
        }
        put(")");
    }
}

static void
print(const tree *t, int least)
{
    int prec = t->what >= NEG && t->what <= NOT   ? 11
               : t->what >= ADD && t->what <= SHR ? signs[t->what].prec
                                                  : 13;
    bool parens = prec < least || rng_once_in(&dice, 10);
    put(parens ? "(" : "");
    print_open(t);
    put(parens ? ")" : "");
}

/* --- cells ---------------------------------------------------------------- */

static double
random_real(void)
{
    static const double edges[] = {
        0.0,          -0.0,    1.0,      -1.0,      0.5,     -2.5,
        3.5,          NAN,     INFINITY, -INFINITY, DBL_MIN, 0x1p-1074,
        -0x1p-1060,   DBL_MAX, -DBL_MAX, 0x1p63,    -0x1p63, 0x1p64,
        2147483648.5, 1e10,    -1e10,    255.9,     256,     -128.9,
        0x1p52 + 1,   4e9};
    double r;
    uint64_t bits = rng_next(&dice);
    switch (pick(4)) {
    case 0: return edges[pick(sizeof edges / sizeof edges[0])];
    case 1: memcpy(&r, &bits, sizeof r); return r;
    case 2: return (double)(int64_t)pick(2000) - 1000;
    default: return ((double)(int64_t)pick(20000) - 10000) / 64;
    }
}

static uint64_t
random_bits(pyr_type t)
{
    uint64_t top = (uint64_t)1 << (8 * pyri_type_size(t) - 1);
    const uint64_t edges[] = {0, 1, top, top - 1, top + 1, UINT64_MAX, 2, 63};
    uint64_t bits = 0;
    double r = random_real();
    float f = (float)r;
    if (t == PYR_F32)
        memcpy(&bits, &f, sizeof f);
    else if (t == PYR_F64)
        memcpy(&bits, &r, sizeof r);
    else
        bits = rng_once_in(&dice, 2)   ? edges[pick(8)]
               : rng_once_in(&dice, 2) ? pick(200) - 100
                                       : rng_next(&dice);
    return bits;
}

/* --- one round ------------------------------------------------------------ */

static uint8_t cells[VERSIONS + 1][8 * MAX_CELLS + 16];
static uint8_t out[8 * MAX_CELLS + 16];

static pyri_box
random_box(uint64_t *n)
{
    static const uint64_t origins[] = {0, 5, 1000000007, 0x7ffffffffffffff0};
    pyri_box box = {.lo = {0}};
    *n = 1;
    for (int k = 0; k < ndim; k++) {
        uint64_t most = MAX_CELLS / *n;
        uint64_t extent = 1 + pick(most < 1500 ? most : 1500);
        if (ndim > 1 && rng_once_in(&dice, 2))
            extent = 1 + pick(most < 12 ? most : 12);
        box.lo[k] = origins[pick(4)];
        box.hi[k] = box.lo[k] + extent;
        *n *= extent;
    }
    return box;
}

static void
next_place(const pyri_box *box, uint64_t *at)
{
    for (int k = ndim - 1; k >= 0; k--) {
        if (++at[k] < box->hi[k])
            return;
        at[k] = box->lo[k];
    }
}

/* The whole box against the evaluator; false, once, for the first that is
 * wrong. */
static bool
agrees(const tree *t, const pyri_box *box, uint64_t n, uint8_t *const *src,
       pyr_type out_type, const uint8_t *got)
{
    place p;
    size_t width = pyri_type_size(cell_type), step = pyri_type_size(out_type);
    memcpy(p.at, box->lo, sizeof p.at);
    for (uint64_t i = 0; i < n; i++, next_place(box, p.at)) {
        for (int s = 0; s <= VERSIONS; s++)
            p.cell[s] = cell_val(
                cell_type, pyri_cell_load(cell_type, src[s] + i * width));
        val v = eval(t, &p);
        uint64_t want = val_bits(out_type, v);
        uint64_t cell = pyri_cell_load(out_type, got + i * step);
        if (same_bits(out_type, want, cell))
            continue;
        CHECK_NOTE("%s over %s to %s, cell %d, x = %a = %lld: got %llx, not "
                   "%llx",
                   text, pyri_type_name(cell_type), pyri_type_name(out_type),
                   (int)i, as_real(p.cell[0]), (long long)p.cell[0].i,
                   (unsigned long long)cell,
                   (unsigned long long)want);
        return false;
    }
    return true;
}

/* The canonical text must make the same program. */
static bool
spelling_agrees(const pyri_expr *e, const pyri_buf *canon)
{
    pyri_expr again;
    bool same = pyri_expr_parse((const char *)canon->data, cell_type, ndim,
                                &again, NULL, NULL) == 0 &&
                memcmp(&again.program, &e->program, sizeof again.program) == 0;
    if (!same)
        CHECK_NOTE("%s is not %s", (const char *)canon->data, text);
    return same;
}

static bool
one_round(void)
{
    static pyri_expr e;
    uint64_t n;
    uint8_t *src[VERSIONS + 1];
    const void *given[VERSIONS + 1] = {NULL};
    pyri_buf canon = {0};
    used = 0;
    size = 0;
    cell_type = (pyr_type)pick(10);
    ndim = 1 + (int)pick(4);
    pyri_box box = random_box(&n);
    const tree *t = random_tree(1 + (int)pick(5));
    print(t, 1);
    if (size > PYRI_EXPR_MAX_TEXT)
        return true;
    if (pyri_expr_parse(text, cell_type, ndim, &e, &canon, NULL) < 0) {
        CHECK_NOTE("%s", pyr_errmsg());
        return false;
    }
    size_t width = pyri_type_size(cell_type);
    for (int s = 0; s <= VERSIONS; s++) {
        src[s] = cells[s] + pick(9);
        for (uint64_t i = 0; i < n; i++)
            pyri_cell_store(cell_type, src[s] + i * width,
                            random_bits(cell_type));
    }
    given[0] = src[0];
    for (int s = 1; s < e.program.sources; s++)
        given[s] = src[e.program.version[s] / 10];
    pyr_type out_type = rng_once_in(&dice, 2) ? (pyr_type)pick(10) : cell_type;
    OK(pyri_program_run(&e.program, ndim, &box, given, out_type, out + 1));
    bool ok = spelling_agrees(&e, &canon) &&
              agrees(t, &box, n, src, out_type, out + 1);
    /* The same in place. */
    if (ok && pyri_type_size(out_type) <= width && e.program.uses_x) {
        uint8_t before[8 * MAX_CELLS];
        memcpy(before, src[0], n * width);
        OK(pyri_program_run(&e.program, ndim, &box, given, out_type, src[0]));
        uint8_t *now = src[0];
        src[0] = before;
        ok = agrees(t, &box, n, src, out_type, now);
    }
    pyri_buf_fini(&canon);
    return ok;
}

static void
random_expressions_agree_with_a_plain_evaluator(void)
{
    uint64_t rounds = by_scale(800, 3000, 500000);
    uint64_t seed = test_seed();
    for (uint64_t i = 0; i < rounds; i++) {
        dice = rng_of(seed + i);
        if (!one_round()) {
            printf("# PYR_TEST_SEED=0x%llx\n", (unsigned long long)(seed + i));
            return;
        }
    }
}

TESTS(T(random_expressions_agree_with_a_plain_evaluator))
