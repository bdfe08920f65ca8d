/*
 * op/lower.c - what each node means: its kind, its conversions, its
 * instructions. Refuses what means nothing, such as bits of reals.
 *
 * Kinds: cells of u64 are PYRI_UINT, all other integers PYRI_INT, reals
 * PYRI_REAL. Of two different ones a real wins, then an unsigned integer.
 */
#include "op/values.h"
#include "op/verify.h"

#include <string.h>

static pyri_kind
kind_of(const pyri_parse *p, int v)
{
    return (pyri_kind)p->value[v].kind;
}

/* PYRI_INT < PYRI_UINT < PYRI_REAL */
static pyri_kind
common(const pyri_parse *p, int a, int b)
{
    pyri_kind ka = kind_of(p, a), kb = kind_of(p, b);
    return ka > kb ? ka : kb;
}

/* --- operands ------------------------------------------------------------- */

static int
constant(pyri_parse *p, const pyri_constant *c)
{
    int v = c->kind == PYRI_REAL ? pyri_value_real(p, c->real)
                                 : pyri_value_whole(p, c->kind, c->whole);
    if (v >= 0)
        p->value[v].boolean = c->boolean;
    return v;
}

/* The number of a source, which is added if it is new: x, another snapshot, or
 * what a kernel makes. */
static int
source_of(pyri_parse *p, const pyri_node *node)
{
    pyri_program *out = &p->out->program;
    bool call = node->what == NODE_CALL;
    uint64_t which = node->whole;
    if (!call && !node->snapshot)
        return 0;
    if (call) {
        int found = pyri_call_read(p, node);
        if (found < 0)
            return found;
        which = (uint64_t)found;
    }
    for (int i = 1; i < out->sources; i++)
        if (out->version[i] == which && (out->calls >> i & 1) == call)
            return i;
    if (out->sources == PYRI_OP_MAX_SOURCES)
        return pyri_parse_fail(p, node->column,
                               "more than %d snapshots and kernels",
                               PYRI_OP_MAX_SOURCES - 1);
    out->version[out->sources] = which;
    out->calls |= (uint16_t)(call << out->sources);
    return out->sources++;
}

/* A leaf of the tree that depends on the cell. */
static int
leaf(pyri_parse *p, const pyri_node *node)
{
    bool cell = node->what != NODE_COORD;
    int index = cell ? source_of(p, node) : node->token;
    int v = index < 0 ? index : pyri_value_whole(p, PYRI_INT, 0);
    if (v < 0)
        return v;
    p->value[v].what = cell ? VALUE_SOURCE : VALUE_COORD;
    p->value[v].kind = cell ? (uint8_t)pyri_type_kind(p->cell) : PYRI_INT;
    p->value[v].index = (uint8_t)index;
    return v;
}

/* --- operators ------------------------------------------------------------ */

static int
unary(pyri_parse *p, const pyri_node *node, int a)
{
    const pyri_node *inside = &p->node[node->arg[0]];
    pyri_kind kind = kind_of(p, a);
    switch (node->token) {
    case TOK_NOT: return pyri_value_not(p, a);
    case TOK_SUB:
        if (kind == PYRI_REAL)
            return pyri_value_op(p, PYRI_NEG_F, kind, a, -1, -1);
        /* The one number that is written with a sign but has no opposite; of
         * what was computed the kind does not depend on its value. */
        if (inside->what == NODE_INT && inside->whole == (uint64_t)INT64_MIN)
            kind = PYRI_INT;
        return pyri_value_op(p, PYRI_SUB_W, kind, pyri_value_whole(p, kind, 0),
                             a, -1);
    case TOK_INVERT:
        if (kind == PYRI_REAL)
            return pyri_parse_fail(p, node->column,
                                   "~ is for integers; this is a real");
        return pyri_value_op(p, PYRI_XOR_W, kind, a,
                             pyri_value_whole(p, kind, UINT64_MAX), -1);
    default: p->value[a].boolean = false; return a; /* + */
    }
}

/* a power of b. */
static int
power(pyri_parse *p, int a, int b)
{
    pyri_kind kind = common(p, a, b);
    uint64_t bits;
    double e;
    /* A negative exponent is not a large one. */
    bool mixed = kind == PYRI_UINT && kind_of(p, b) == PYRI_INT;
    a = pyri_value_wrap(p, a, kind);
    b = pyri_value_wrap(p, b, kind);
    if (a < 0 || b < 0)
        return PYR_EINVAL;
    bool constant_ = pyri_value_is_const(p, b, &bits);
    memcpy(&e, &bits, sizeof e);
    if (constant_ && (kind == PYRI_REAL ? e == 2 : bits == 2))
        return pyri_value_op(p, kind == PYRI_REAL ? PYRI_SQR_F : PYRI_SQR_W,
                             kind, a, -1, -1);
    return pyri_value_op(p,
                         kind == PYRI_REAL   ? PYRI_POW_F
                         : mixed             ? PYRI_POW_UI
                         : kind == PYRI_UINT ? PYRI_POW_U
                                             : PYRI_POW_I,
                         kind, a, b, -1);
}

static const uint8_t arithmetic_ops[][3] = {
    /* by PYRI_INT, PYRI_UINT, PYRI_REAL */
    [TOK_ADD] = {PYRI_ADD_W, PYRI_ADD_W, PYRI_ADD_F},
    [TOK_SUB] = {PYRI_SUB_W, PYRI_SUB_W, PYRI_SUB_F},
    [TOK_MUL] = {PYRI_MUL_W, PYRI_MUL_W, PYRI_MUL_F},
    [TOK_DIV] = {PYRI_DIV_I, PYRI_DIV_U, PYRI_DIV_F},
    [TOK_FLOORDIV] = {PYRI_FLOORDIV_I, PYRI_DIV_U, PYRI_FLOORDIV_F},
    [TOK_MOD] = {PYRI_MOD_I, PYRI_MOD_U, PYRI_MOD_F},
};

static int
arithmetic(pyri_parse *p, int token, int a, int b)
{
    pyri_kind kind = common(p, a, b);
    a = pyri_value_wrap(p, a, kind);
    b = pyri_value_wrap(p, b, kind);
    return pyri_value_op(p, arithmetic_ops[token][kind], kind, a, b, -1);
}

static int
bits(pyri_parse *p, const pyri_node *node, int a, int b)
{
    pyri_kind kind = common(p, a, b), left = kind_of(p, a);
    if (kind == PYRI_REAL)
        return pyri_parse_fail(p, node->column,
                               "%s is for integers; the %s "
                               "side is a real",
                               pyri_operators[node->token].text,
                               left == PYRI_REAL ? "left" : "right");
    switch (node->token) {
    case TOK_BIT_OR: return pyri_value_op(p, PYRI_OR_W, kind, a, b, -1);
    case TOK_BIT_XOR: return pyri_value_op(p, PYRI_XOR_W, kind, a, b, -1);
    case TOK_BIT_AND: return pyri_value_op(p, PYRI_AND_W, kind, a, b, -1);
    case TOK_SHL: return pyri_value_op(p, PYRI_SHL_W, left, a, b, -1);
    default:
        return pyri_value_op(p, left == PYRI_UINT ? PYRI_SHR_U : PYRI_SHR_I,
                             left, a, b, -1);
    }
}

/* a signed, b unsigned; `swapped`: the text has them the other way round. */
static int
compare_mixed(pyri_parse *p, int token, int a, int b, bool swapped)
{
    int op, v;
    bool negate = token == TOK_NE || (token >= TOK_LT && swapped);
    if (token == TOK_EQ || token == TOK_NE)
        op = PYRI_EQ_IU;
    else /* b < a is not a <= b */
        op = (token == TOK_LT) != swapped ? PYRI_LT_IU : PYRI_LE_IU;
    v = pyri_value_op(p, op, PYRI_INT, a, b, -1);
    return negate ? pyri_value_not(p, v) : v;
}

static int
compare(pyri_parse *p, int token, int a, int b)
{
    static const uint8_t ops[][3] = {
        [TOK_EQ] = {PYRI_EQ_W, PYRI_EQ_W, PYRI_EQ_F},
        [TOK_NE] = {PYRI_NE_W, PYRI_NE_W, PYRI_NE_F},
        [TOK_LT] = {PYRI_LT_I, PYRI_LT_U, PYRI_LT_F},
        [TOK_LE] = {PYRI_LE_I, PYRI_LE_U, PYRI_LE_F},
    };
    if (token == TOK_GT || token == TOK_GE) {
        int t = a;
        a = b;
        b = t;
        token = token == TOK_GT ? TOK_LT : TOK_LE;
    }
    pyri_kind kind = common(p, a, b);
    if (kind == PYRI_UINT && kind_of(p, a) != kind_of(p, b)) {
        bool swapped = kind_of(p, a) == PYRI_UINT;
        int whole = swapped ? b : a;
        if (!pyri_value_not_negative(p, whole))
            return compare_mixed(p, token, whole, swapped ? a : b, swapped);
    }
    a = pyri_value_wrap(p, a, kind);
    b = pyri_value_wrap(p, b, kind);
    return pyri_value_op(p, ops[token][kind], PYRI_INT, a, b, -1);
}

static int
binary(pyri_parse *p, const pyri_node *node, int a, int b)
{
    int token = node->token;
    switch (pyri_operators[token].prec) {
    case PREC_OR:
    case PREC_AND:
        a = pyri_value_truth(p, a);
        b = pyri_value_truth(p, b);
        return pyri_value_op(p, token == TOK_OR ? PYRI_OR_W : PYRI_AND_W,
                             PYRI_INT, a, b, -1);
    case PREC_COMPARE: return compare(p, token, a, b);
    case PREC_SUM:
    case PREC_PRODUCT: return arithmetic(p, token, a, b);
    case PREC_POWER: return power(p, a, b);
    default: return bits(p, node, a, b);
    }
}

/* --- functions ------------------------------------------------------------ */

static int
smaller(pyri_parse *p, bool greater, int a, int b)
{
    static const uint8_t ops[2][3] = {{PYRI_MIN_I, PYRI_MIN_U, PYRI_MIN_F},
                                      {PYRI_MAX_I, PYRI_MAX_U, PYRI_MAX_F}};
    if (a < 0 || b < 0)
        return PYR_EINVAL;
    pyri_kind kind = common(p, a, b);
    a = pyri_value_saturate(p, a, kind);
    b = pyri_value_saturate(p, b, kind);
    return pyri_value_op(p, ops[greater][kind], kind, a, b, -1);
}

static int
choose(pyri_parse *p, int c, int a, int b)
{
    uint64_t chosen;
    pyri_kind kind = common(p, a, b);
    bool boolean = p->value[a].boolean && p->value[b].boolean;
    if (kind_of(p, c) == PYRI_REAL)
        c = pyri_value_truth(p, c);
    a = pyri_value_saturate(p, a, kind);
    b = pyri_value_saturate(p, b, kind);
    if (a < 0 || b < 0 || c < 0)
        return PYR_EINVAL;
    if (pyri_value_is_const(p, c, &chosen))
        return chosen ? a : b;
    int v = pyri_value_op(p, kind == PYRI_REAL ? PYRI_WHERE_F : PYRI_WHERE_W,
                          kind, c, a, b);
    if (v >= 0)
        p->value[v].boolean = boolean;
    return v;
}

/* To an integer type of less than 64 bits. */
static int
narrow(pyri_parse *p, pyr_type type, int a)
{
    int width = (int)(8 * pyri_type_size(type));
    bool is_signed = pyri_type_is_signed(type);
    uint64_t high = ((uint64_t)1 << (width - is_signed)) - 1;
    uint64_t low = is_signed ? ~high : 0;
    if (kind_of(p, a) == PYRI_REAL)
        a = pyri_value_saturate(p, a, PYRI_INT);
    if (a < 0)
        return a;
    if (kind_of(p, a) == PYRI_UINT)
        return pyri_value_op(p, PYRI_MIN_U, PYRI_INT, a,
                             pyri_value_whole(p, PYRI_UINT, high), -1);
    a = pyri_value_op(p, PYRI_MAX_I, PYRI_INT, a,
                      pyri_value_whole(p, PYRI_INT, low), -1);
    return pyri_value_op(p, PYRI_MIN_I, PYRI_INT, a,
                         pyri_value_whole(p, PYRI_INT, high), -1);
}

static int
cast(pyri_parse *p, pyr_type type, int a)
{
    if (type == PYR_I64 || type == PYR_U64 || type == PYR_F64)
        return pyri_value_saturate(p, a, pyri_type_kind(type));
    if (type != PYR_F32)
        return narrow(p, type, a);
    return pyri_value_op(p, PYRI_F_TO_F32, PYRI_REAL,
                         pyri_value_wrap(p, a, PYRI_REAL), -1, -1);
}

static int
absolute(pyri_parse *p, int a, int of_reals, int of_integers)
{
    pyri_kind kind = kind_of(p, a);
    if (kind == PYRI_UINT) /* its sign is signed, also if it is 1 or 0 itself */
        return of_integers == PYRI_ABS_I
                   ? a
                   : pyri_value_wrap(p, pyri_value_truth(p, a), PYRI_INT);
    return pyri_value_op(p, kind == PYRI_REAL ? of_reals : of_integers, kind, a,
                         -1, -1);
}

static int
function(pyri_parse *p, const pyri_node *node)
{
    const pyri_function *f = node->function;
    int arg[3] = {-1, -1, -1};
    for (int i = 0; i < node->n; i++)
        arg[i] = p->value_of[node->arg[i]];
    bool real = kind_of(p, arg[0]) == PYRI_REAL;
    switch (f->id) {
    case FN_WHERE: return choose(p, arg[0], arg[1], arg[2]);
    case FN_CLIP:
        return smaller(p, false, smaller(p, true, arg[0], arg[1]), arg[2]);
    case FN_MIN: return smaller(p, false, arg[0], arg[1]);
    case FN_MAX: return smaller(p, true, arg[0], arg[1]);
    case FN_ABS: return absolute(p, arg[0], PYRI_ABS_F, PYRI_ABS_I);
    case FN_SIGN: return absolute(p, arg[0], PYRI_SIGN_F, PYRI_SIGN_I);
    case FN_POW: return power(p, arg[0], arg[1]);
    case FN_ROUNDING:
        return real ? pyri_value_op(p, f->op, PYRI_REAL, arg[0], -1, -1)
                    : arg[0];
    case FN_TEST:
        return real ? pyri_value_op(p, f->op, PYRI_INT, arg[0], -1, -1)
                    : pyri_value_whole(p, PYRI_INT, f->type);
    case FN_CAST: return cast(p, (pyr_type)f->type, arg[0]);
    default:
        for (int i = 0; i < node->n; i++)
            arg[i] = pyri_value_wrap(p, arg[i], PYRI_REAL);
        return pyri_value_op(p, f->op, PYRI_REAL, arg[0], arg[1], -1);
    }
}

/* --- nodes ---------------------------------------------------------------- */

static int
lower_node(pyri_parse *p, const pyri_node *node)
{
    int a = p->value_of[node->arg[0]], b = p->value_of[node->arg[1]];
    switch (node->what) {
    case NODE_INT:
        return pyri_value_whole(p,
                                node->whole > INT64_MAX ? PYRI_UINT : PYRI_INT,
                                node->whole);
    case NODE_REAL: return pyri_value_real(p, node->real);
    case NODE_CONSTANT: return constant(p, node->constant);
    case NODE_CELL:
    case NODE_CALL:
    case NODE_COORD: return leaf(p, node);
    case NODE_UNARY: return unary(p, node, a);
    case NODE_BINARY: return binary(p, node, a, b);
    case NODE_FUNCTION: return function(p, node);
    default: return 0; /* reductions have no value; expr.c */
    }
}

int
pyri_lower(pyri_parse *p)
{
    for (int i = 0; i < p->nodes; i++) {
        int v = lower_node(p, &p->node[i]);
        if (v < 0)
            return v;
        p->value_of[i] = (uint16_t)v;
    }
    return 0;
}
