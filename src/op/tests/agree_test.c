/*
 * Random expressions, on cells of all types with all their edges, against a
 * second evaluator: one that walks a tree of its own, cell by cell, in the
 * plainest way, and shares nothing with the first but the language.
 */
#include "op/op.h"
#include "support/check.h"
#include "support/rng.h"

#include <assert.h>
#include <float.h>
#include <math.h>

typedef __int128 big;

enum { MAX_CELLS = 3000, MAX_TREE = 256, VERSIONS = 3 };

static rng dice;

static uint64_t
pick(uint64_t n)
{
    return rng_below(&dice, n);
}

/* --- values --------------------------------------------------------------- */

typedef struct val {
    char kind; /* 'i', 'u', 'r' */
    int64_t i;
    uint64_t u;
    double r;
} val;

static val
val_i(int64_t i)
{
    return (val){.kind = 'i', .i = i};
}

static val
val_u(uint64_t u)
{
    return (val){.kind = 'u', .u = u};
}

static val
val_r(double r)
{
    return (val){.kind = 'r', .r = r};
}

static big
as_big(val v)
{
    return v.kind == 'u' ? (big)v.u : (big)v.i;
}

static double
as_real(val v)
{
    return v.kind == 'r' ? v.r : v.kind == 'u' ? (double)v.u : (double)v.i;
}

static bool
is_true(val v)
{
    return v.kind == 'r' ? v.r != 0 : as_big(v) != 0;
}

/* The low 64 bits of any integer, of either kind. */
static val
wrap(char kind, big v)
{
    uint64_t low = (uint64_t)((unsigned __int128)v);
    return kind == 'u' ? val_u(low) : val_i((int64_t)low);
}

static big
cut(big v, big lo, big hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* long double has 64 bits of precision: all integers of interest are exact. */
static big
real_to_big(double r, big lo, big hi)
{
    if (isnan(r))
        return 0;
    long double whole = truncl((long double)r);
    if (whole <= (long double)lo)
        return lo;
    return whole >= (long double)hi ? hi : (big)whole;
}

static big
type_min(pyr_type t)
{
    return t == PYR_I8    ? INT8_MIN
           : t == PYR_I16 ? INT16_MIN
           : t == PYR_I32 ? INT32_MIN
           : t == PYR_I64 ? (big)INT64_MIN
                          : 0;
}

static big
type_max(pyr_type t)
{
    static const uint64_t max[] = {INT8_MAX,  UINT8_MAX,  INT16_MAX,
                                   UINT16_MAX, INT32_MAX, UINT32_MAX,
                                   INT64_MAX, UINT64_MAX};
    return (big)max[t];
}

static val
convert(pyr_type t, val v)
{
    if (t == PYR_F64)
        return val_r(as_real(v));
    if (t == PYR_F32)
        return val_r((double)(float)as_real(v));
    big lo = type_min(t), hi = type_max(t);
    big b = v.kind == 'r' ? real_to_big(v.r, lo, hi) : cut(as_big(v), lo, hi);
    return t == PYR_U64 ? val_u((uint64_t)b) : val_i((int64_t)b);
}

/* --- trees ---------------------------------------------------------------- */

typedef enum what {
    CELL, COORD, LITERAL, NEG, PLUS, INVERT, NOT, ADD, SUB, MUL, DIV, FDIV,
    MOD, POW, EQ, NE, LT, LE, GT, GE, AND, OR, BAND, BOR, BXOR, SHL, SHR,
    WHERE, CLIP, MIN, MAX, ABS, SIGN, CALL1, CALL2, ROUNDING, TEST, CAST
} what;

typedef struct tree {
    what what;
    char kind;
    int index; /* source, axis, function or type */
    val literal;
    char text[32];
    struct tree *a, *b, *c;
} tree;

static tree pool[MAX_TREE];
static int used;

static tree *
new_tree(what w)
{
    assert(used < MAX_TREE);
    pool[used] = (tree){.what = w};
    return &pool[used++];
}

static double (*const real1[])(double) = {sqrt, exp,  log,  log2, log10,
                                          sin,  cos,  tan,  asin, acos,
                                          atan, sinh, cosh, tanh};
static const char *const real1_names[] = {
    "sqrt", "exp",  "log",  "log2", "log10", "sin",  "cos",
    "tan",  "asin", "acos", "atan", "sinh",  "cosh", "tanh"};
static double (*const rounding[])(double) = {floor, ceil, rint, trunc};
static const char *const rounding_names[] = {"floor", "ceil", "round",
                                             "trunc"};
static const char *const test_names[] = {"isnan", "isinf", "isfinite"};

static char
joined(char a, char b)
{
    return a == 'r' || b == 'r' ? 'r' : a == 'u' || b == 'u' ? 'u' : 'i';
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
        {"0", 'i', 0, 0},      {"1", 'i', 1, 0},   {"2", 'i', 2, 0},
        {"3", 'i', 3, 0},      {"7", 'i', 7, 0},   {"64", 'i', 64, 0},
        {"100", 'i', 100, 0},  {"0xff", 'i', 255, 0},
        {"9223372036854775807", 'i', INT64_MAX, 0},
        {"18446744073709551615", 'u', UINT64_MAX, 0},
        {"0x8000000000000001", 'u', 0x8000000000000001, 0},
        {"4294967296", 'i', 4294967296, 0},
        {"0.5", 'r', 0, 0.5},  {"1.8", 'r', 0, 1.8},
        {"2.0", 'r', 0, 2},    {"1e300", 'r', 0, 1e300},
        {"1e-310", 'r', 0, 1e-310}, {"3.25", 'r', 0, 3.25},
        {"inf", 'r', 0, INFINITY},  {"nan", 'r', 0, NAN},
        {"pi", 'r', 0, M_PI},  {"e", 'r', 0, M_E},
        {"true", 'i', 1, 0},   {"false", 'i', 0, 0}, {"0.0", 'r', 0, 0},
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
    [ADD] = {"+", "+", 9},    [SUB] = {"-", "-", 9},  [MUL] = {"*", "*", 10},
    [DIV] = {"/", "/", 10},   [FDIV] = {"//", "//", 10},
    [MOD] = {"%", "%", 10},   [POW] = {"**", "**", 12},
    [EQ] = {"==", "==", 4},   [NE] = {"!=", "!=", 4}, [LT] = {"<", "<", 4},
    [LE] = {"<=", "<=", 4},   [GT] = {">", ">", 4},   [GE] = {">=", ">=", 4},
    [AND] = {"&&", "and", 2}, [OR] = {"||", "or", 1}, [BAND] = {"&", "&", 7},
    [BOR] = {"|", "|", 5},    [BXOR] = {"^", "^", 6}, [SHL] = {"<<", "<<", 8},
    [SHR] = {">>", ">>", 8},
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
    static const char *const before[] = {[NEG] = "-", [PLUS] = "+",
                                         [INVERT] = "~", [NOT] = "!"};
    if (t->what <= LITERAL) {
        size += (size_t)sprintf(text + size, "%s ", t->text);
    } else if (t->what <= NOT) {
        put(before[t->what]);
        print(t->a, 11);
    } else if (t->what <= SHR) {
        int prec = signs[t->what].prec;
        print(t->a, prec + (prec == 4 || prec == 12));
        put(" ");
        put(rng_once_in(&dice, 2) ? signs[t->what].text
                                  : signs[t->what].other);
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
    int prec = t->what >= NEG && t->what <= NOT    ? 11
               : t->what >= ADD && t->what <= SHR ? signs[t->what].prec
                                                  : 13;
    bool parens = prec < least || rng_once_in(&dice, 10);
    put(parens ? "(" : "");
    print_open(t);
    put(parens ? ")" : "");
}

/* --- the evaluator -------------------------------------------------------- */

typedef struct place {
    val cell[VERSIONS + 1];
    uint64_t at[PYR_MAX_DIMS];
} place;

static big
floor_div(big a, big b)
{
    big q = a / b;
    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

static uint64_t
power(uint64_t a, uint64_t e)
{
    if (e == 0)
        return 1;
    uint64_t half = power(a, e / 2);
    return half * half * (e % 2 ? a : 1);
}

static val
power_val(val a, val b, char kind)
{
    uint64_t base = (uint64_t)(unsigned __int128)as_big(a);
    if (b.kind == 'u' || b.i >= 0)
        return wrap(kind, (big)power(base, (uint64_t)as_big(b)));
    if (kind == 'i' && a.i == -1)
        return val_i(b.i % 2 ? -1 : 1);
    return wrap(kind, base == 1);
}

static double
real_op(const tree *t, double a, double b)
{
    double m;
    switch (t->what) {
    case ADD: return a + b;
    case SUB: return a - b;
    case MUL: return a * b;
    case DIV: return a / b;
    case FDIV: return floor(a / b);
    case POW: return t->b->what == LITERAL && b == 2 ? a * a : pow(a, b);
    case CALL2: return t->index ? hypot(a, b) : atan2(a, b);
    case MIN: return isnan(a) ? a : a < b ? a : b;
    case MAX: return isnan(a) ? a : a > b ? a : b;
    default:
        m = fmod(a, b);
        if (m == 0)
            return copysign(0, b);
        return (m < 0) != (b < 0) ? m + b : m;
    }
}

static val
whole_op(const tree *t, val va, val vb)
{
    big a = as_big(va), b = as_big(vb);
    char k = t->kind;
    /* as the kind of the result sees them */
    big wa = as_big(wrap(k, a)), wb = as_big(wrap(k, b));
    switch (t->what) {
    case ADD: return wrap(k, a + b);
    case SUB: return wrap(k, a - b);
    case MUL:
        return wrap(k, (big)((unsigned __int128)a * (unsigned __int128)b));
    case DIV: return wrap(k, wb ? wa / wb : 0);
    case FDIV: return wrap(k, wb ? floor_div(wa, wb) : 0);
    case MOD: return wrap(k, wb ? wa - floor_div(wa, wb) * wb : 0);
    case POW: return power_val(va, vb, k);
    case BAND: return wrap(k, a & b);
    case BOR: return wrap(k, a | b);
    case BXOR: return wrap(k, a ^ b);
    case SHL:
        return b < 0 || b > 63 ? wrap(k, 0)
                               : wrap(k, (big)((unsigned __int128)a << b));
    default: /* SHR */
        if (b < 0 || b > 63)
            return wrap(k, a < 0 ? -1 : 0);
        return wrap(k, a >> b);
    }
}

static bool
compare(what w, val va, val vb)
{
    bool real = va.kind == 'r' || vb.kind == 'r';
    double a = as_real(va), b = as_real(vb);
    big ba = real ? 0 : as_big(va), bb = real ? 0 : as_big(vb);
    switch (w) {
    case EQ: return real ? a == b : ba == bb;
    case NE: return real ? a != b : ba != bb;
    case LT: return real ? a < b : ba < bb;
    case LE: return real ? a <= b : ba <= bb;
    case GT: return real ? a > b : ba > bb;
    default: return real ? a >= b : ba >= bb;
    }
}

/* As where, min, max and clip convert: by value. */
static val
to_kind(char kind, val v)
{
    return convert(kind == 'r' ? PYR_F64 : kind == 'u' ? PYR_U64 : PYR_I64, v);
}

static val
lesser(const tree *t, what w, char kind, val a, val b)
{
    a = to_kind(kind, a);
    b = to_kind(kind, b);
    if (kind == 'r')
        return val_r(real_op(&(tree){.what = w, .a = t->a, .b = t->b}, a.r,
                             b.r));
    bool first = (w == MIN) == (as_big(a) < as_big(b));
    return first ? a : b;
}

static val eval(const tree *t, const place *p);

static val
eval_unary(const tree *t, val a)
{
    bool real = a.kind == 'r';
    double r = real ? a.r : 0;
    switch (t->what) {
    case NEG: return real ? val_r(-r) : wrap(a.kind, -as_big(a));
    case PLUS: return a;
    case INVERT: return wrap(a.kind, ~as_big(a));
    case NOT: return val_i(!is_true(a));
    case ABS:
        if (real)
            return val_r(fabs(r));
        return wrap(a.kind, as_big(a) < 0 ? -as_big(a) : as_big(a));
    case SIGN:
        if (real)
            return val_r(r > 0 ? 1 : r < 0 ? -1 : r);
        return val_i((as_big(a) > 0) - (as_big(a) < 0));
    case CALL1: return val_r(real1[t->index](as_real(a)));
    case ROUNDING: return real ? val_r(rounding[t->index](r)) : a;
    case TEST:
        return val_i(t->index == 0   ? real && isnan(r)
                     : t->index == 1 ? real && isinf(r)
                                     : !real || isfinite(r));
    default: return convert((pyr_type)t->index, a);
    }
}

/* The sign of the smallest integer: it is written with a minus. */
static bool
is_lowest(const tree *t)
{
    return t->what == NEG && t->a->what == LITERAL && t->a->kind == 'u' &&
           t->a->literal.u == (uint64_t)INT64_MIN;
}

static val
eval(const tree *t, const place *p)
{
    switch (t->what) {
    case CELL: return p->cell[t->index];
    case COORD: return val_i((int64_t)p->at[t->index]);
    case LITERAL: return t->literal;
    default: break;
    }
    assert(!is_lowest(t));
    val a = eval(t->a, p);
    if (!t->b)
        return eval_unary(t, a);
    val b = eval(t->b, p), c = t->c ? eval(t->c, p) : b;
    if (t->what == AND || t->what == OR)
        return val_i(t->what == AND ? is_true(a) && is_true(b)
                                    : is_true(a) || is_true(b));
    if (t->what >= EQ && t->what <= GE)
        return val_i(compare(t->what, a, b));
    if (t->what == WHERE)
        return to_kind(t->kind, is_true(a) ? b : c);
    if (t->what == MIN || t->what == MAX)
        return lesser(t, t->what, t->kind, a, b);
    if (t->what == CLIP) {
        val m = lesser(t, MAX, joined(t->a->kind, t->b->kind), a, b);
        return lesser(t, MIN, t->kind, m, c);
    }
    if (t->kind == 'r')
        return val_r(real_op(t, as_real(a), as_real(b)));
    return whole_op(t, a, b);
}

/* --- cells ---------------------------------------------------------------- */

static double
random_real(void)
{
    static const double edges[] = {
        0.0,     -0.0,     1.0,      -1.0,    0.5,      -2.5,     3.5,
        NAN,     INFINITY, -INFINITY, DBL_MIN, 0x1p-1074, -0x1p-1060,
        DBL_MAX, -DBL_MAX, 0x1p63,   -0x1p63, 0x1p64,   2147483648.5,
        1e10,    -1e10,    255.9,    256,     -128.9,   0x1p52 + 1, 4e9};
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

static val
cell_val(pyr_type t, const uint8_t *at)
{
    uint64_t bits = pyri_cell_load(t, at);
    if (t == PYR_U64)
        return val_u(bits);
    if (pyri_type_is_float(t))
        return val_r(pyri_cell_double(t, bits));
    if (!pyri_type_is_signed(t))
        return val_i((int64_t)bits);
    int unused = (int)(64 - 8 * pyri_type_size(t));
    return val_i((int64_t)(bits << unused) >> unused);
}

static bool
same_cell(pyr_type t, const uint8_t *a, const uint8_t *b)
{
    uint64_t x = pyri_cell_load(t, a), y = pyri_cell_load(t, b);
    if (pyri_type_is_float(t) && isnan(pyri_cell_double(t, x)) &&
        isnan(pyri_cell_double(t, y)))
        return true;
    return x == y;
}

static void
store_val(pyr_type t, val v, uint8_t *at)
{
    uint64_t bits = 0;
    v = convert(t, v);
    float f = (float)v.r;
    if (t == PYR_F32)
        memcpy(&bits, &f, sizeof f);
    else if (t == PYR_F64)
        memcpy(&bits, &v.r, sizeof v.r);
    else
        bits = v.kind == 'u' ? v.u : (uint64_t)v.i;
    pyri_cell_store(t, at, bits);
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
        uint8_t want[8];
        for (int s = 0; s <= VERSIONS; s++)
            p.cell[s] = cell_val(cell_type, src[s] + i * width);
        val v = eval(t, &p);
        store_val(out_type, v, want);
        if (same_cell(out_type, want, got + i * step))
            continue;
        CHECK_NOTE("%s over %s to %s, cell %d, x = %a = %lld: got %llx, not "
                   "%llx",
                   text, pyri_type_name(cell_type), pyri_type_name(out_type),
                   (int)i, as_real(p.cell[0]), (long long)p.cell[0].i,
                   (unsigned long long)pyri_cell_load(out_type,
                                                      got + i * step),
                   (unsigned long long)pyri_cell_load(out_type, want));
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
    pyr_type out_type =
        rng_once_in(&dice, 2) ? (pyr_type)pick(10) : cell_type;
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
    uint64_t rounds = by_scale(1000, 4000, 500000);
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
