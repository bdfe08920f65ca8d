/*
 * A second evaluator of expressions, for tests: it walks a tree, cell by cell,
 * in the plainest way, and shares nothing with op/ but the language.
 */
#ifndef OP_TESTS_PLAIN_H
#define OP_TESTS_PLAIN_H

#include "nd/nd.h"

#include <math.h>
#include <string.h>

typedef __int128 big;

enum { VERSIONS = 3 };

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
    static const uint64_t max[] = {INT8_MAX,   UINT8_MAX, INT16_MAX,
                                   UINT16_MAX, INT32_MAX, UINT32_MAX,
                                   INT64_MAX,  UINT64_MAX};
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
    CELL,
    COORD,
    LITERAL,
    NEG,
    PLUS,
    INVERT,
    NOT,
    ADD,
    SUB,
    MUL,
    DIV,
    FDIV,
    MOD,
    POW,
    EQ,
    NE,
    LT,
    LE,
    GT,
    GE,
    AND,
    OR,
    BAND,
    BOR,
    BXOR,
    SHL,
    SHR,
    WHERE,
    CLIP,
    MIN,
    MAX,
    ABS,
    SIGN,
    CALL1,
    CALL2,
    ROUNDING,
    TEST,
    CAST
} what;

typedef struct tree {
    what what;
    char kind;
    int index; /* source, axis, function or type */
    val literal;
    char text[32];
    struct tree *a, *b, *c;
} tree;

static double (*const real1[])(double) = {sqrt, exp,  log,  log2, log10,
                                          sin,  cos,  tan,  asin, acos,
                                          atan, sinh, cosh, tanh};
static const char *const real1_names[] = {"sqrt",  "exp",  "log",  "log2",
                                          "log10", "sin",  "cos",  "tan",
                                          "asin",  "acos", "atan", "sinh",
                                          "cosh",  "tanh"};
static double (*const rounding[])(double) = {floor, ceil, rint, trunc};
static const char *const rounding_names[] = {"floor", "ceil", "round", "trunc"};
static const char *const test_names[] = {"isnan", "isinf", "isfinite"};

static char
joined(char a, char b)
{
    return a == 'r' || b == 'r' ? 'r' : a == 'u' || b == 'u' ? 'u' : 'i';
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
    a = isnan(a) ? (double)NAN : a; /* all NaNs are one */
    b = isnan(b) ? (double)NAN : b;
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
        return val_r(
            real_op(&(tree){.what = w, .a = t->a, .b = t->b}, a.r, b.r));
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

static val
eval(const tree *t, const place *p)
{
    switch (t->what) {
    case CELL: return p->cell[t->index];
    case COORD: return val_i((int64_t)p->at[t->index]);
    case LITERAL: return t->literal;
    default: break;
    }
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

static val
cell_val(pyr_type t, uint64_t bits)
{
    if (t == PYR_U64)
        return val_u(bits);
    if (pyri_type_is_float(t))
        return val_r(pyri_cell_double(t, bits));
    if (!pyri_type_is_signed(t))
        return val_i((int64_t)bits);
    int unused = (int)(64 - 8 * pyri_type_size(t));
    return val_i((int64_t)(bits << unused) >> unused);
}

/* The bits of a value as a cell of the type holds it. */
static uint64_t
val_bits(pyr_type t, val v)
{
    uint64_t bits = 0;
    uint8_t cell[8] = {0};
    v = convert(t, v);
    float f = (float)v.r;
    if (t == PYR_F32)
        memcpy(&bits, &f, sizeof f);
    else if (t == PYR_F64)
        memcpy(&bits, &v.r, sizeof v.r);
    else
        bits = v.kind == 'u' ? v.u : (uint64_t)v.i;
    pyri_cell_store(t, cell, bits);
    return pyri_cell_load(t, cell);
}

/* All NaNs are the same. */
static bool
same_bits(pyr_type t, uint64_t a, uint64_t b)
{
    return a == b || (pyri_type_is_float(t) && isnan(pyri_cell_double(t, a)) &&
                      isnan(pyri_cell_double(t, b)));
}

#endif
