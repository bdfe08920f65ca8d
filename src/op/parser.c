/*
 * op/parser.c - from tokens to nodes, by precedence climbing.
 *
 * Functions return the number of a node, or PYR_EINVAL. Recursion is counted
 * in `depth`, nodes in `nodes`; both have limits.
 */
#include "op/syntax.h"

#include <string.h>

const pyri_operator pyri_operators[TOK_OPERATORS] = {
    [TOK_OR] = {"||", PREC_OR},          [TOK_AND] = {"&&", PREC_AND},
    [TOK_EQ] = {"==", PREC_COMPARE},     [TOK_NE] = {"!=", PREC_COMPARE},
    [TOK_LT] = {"<", PREC_COMPARE},      [TOK_LE] = {"<=", PREC_COMPARE},
    [TOK_GT] = {">", PREC_COMPARE},      [TOK_GE] = {">=", PREC_COMPARE},
    [TOK_BIT_OR] = {"|", PREC_BIT_OR},   [TOK_BIT_XOR] = {"^", PREC_BIT_XOR},
    [TOK_BIT_AND] = {"&", PREC_BIT_AND}, [TOK_SHL] = {"<<", PREC_SHIFT},
    [TOK_SHR] = {">>", PREC_SHIFT},      [TOK_ADD] = {"+", PREC_SUM},
    [TOK_SUB] = {"-", PREC_SUM},         [TOK_MUL] = {"*", PREC_PRODUCT},
    [TOK_DIV] = {"/", PREC_PRODUCT},     [TOK_FLOORDIV] = {"//", PREC_PRODUCT},
    [TOK_MOD] = {"%", PREC_PRODUCT},     [TOK_POW] = {"**", PREC_POWER},
    [TOK_NOT] = {"!", PREC_UNARY},       [TOK_INVERT] = {"~", PREC_UNARY},
};

static int parse_at(pyri_parse *p, int prec);

/* --- nodes ---------------------------------------------------------------- */

static int
new_node(pyri_parse *p, pyri_node_what what, unsigned column)
{
    if (p->nodes == PYRI_EXPR_MAX_NODES)
        return pyri_parse_fail(p, column, "the expression is too long");
    p->node[p->nodes] = (pyri_node){.what = (uint8_t)what, .column = column};
    return p->nodes++;
}

static int
new_operator(pyri_parse *p, pyri_token token, unsigned column, int a, int b)
{
    int node = new_node(p, b < 0 ? NODE_UNARY : NODE_BINARY, column);
    if (node < 0)
        return node;
    p->node[node].token = (uint8_t)token;
    p->node[node].n = b < 0 ? 1 : 2;
    p->node[node].arg[0] = (uint16_t)a;
    p->node[node].arg[1] = (uint16_t)(b < 0 ? 0 : b);
    return node;
}

static int
expect(pyri_parse *p, pyri_token token, const char *what)
{
    if (p->token != token)
        return pyri_parse_fail(p, p->column, "%s is missing here", what);
    return pyri_lex(p);
}

/* --- calls ---------------------------------------------------------------- */

typedef struct args {
    int n;
    int node[PYRI_CALL_MAX_PARAMS];
    bool named; /* key=value */
} args;

/* `min(a, b, c)` is `min(min(a, b), c)`. */
static int
call_function(pyri_parse *p, const pyri_function *f, unsigned column,
              const args *a)
{
    if (a->n < f->least || a->n > f->most)
        return pyri_parse_fail(p, column, "%s() takes %d argument%s, not %d",
                               f->name, f->least, f->least == 1 ? "" : "s",
                               a->n);
    int first = a->node[0];
    for (int i = 1;; i++) {
        int node = new_node(p, NODE_FUNCTION, column);
        if (node < 0)
            return node;
        pyri_node *d = &p->node[node];
        d->function = f;
        d->arg[0] = (uint16_t)first;
        d->n = 1;
        bool chain = f->most > 3;
        for (int k = i; k < a->n && !(chain && k > i); k++)
            d->arg[d->n++] = (uint16_t)a->node[k];
        if (!chain || i >= a->n - 1)
            return node;
        first = node;
    }
}

/* What gives one value, or is no expression of cells at all. */
static int
new_special(pyri_parse *p, pyri_node_what what, unsigned column)
{
    int node = new_node(p, what, column);
    if (node < 0)
        return node;
    if (p->special >= 0)
        return pyri_parse_fail(p, p->node[p->special].column,
                               "this must stand alone: it is no value of a "
                               "cell");
    return p->special = node;
}

static int
call_reducer(pyri_parse *p, const pyri_reducer *r, unsigned column,
             const args *a)
{
    if (a->n != r->args)
        return pyri_parse_fail(p, column, "%s() takes %d argument%s, not %d",
                               r->name, r->args, r->args == 1 ? "" : "s", a->n);
    int node = new_special(p, NODE_REDUCE, column);
    if (node < 0)
        return node;
    p->node[node].reducer = r;
    for (int i = 0; i < a->n; i++)
        p->node[node].arg[i] = (uint16_t)a->node[i];
    p->node[node].n = (uint8_t)a->n;
    return node;
}

static int
call_kernel(pyri_parse *p, const char *name, unsigned column, const args *a)
{
    int which = p->out->calls;
    if (a->n > 0 && !a->named)
        return pyri_parse_fail(p, column,
                               "no function is called '%s' (kernels take "
                               "parameters as name=value)",
                               name);
    int node = new_node(p, NODE_CALL, column);
    if (node < 0)
        return node;
    pyri_call *c = &p->out->call[which];
    memcpy(c->name, name, strlen(name) + 1);
    c->n = a->n;
    for (int i = 0; i < a->n; i++)
        p->params[which][i] = (uint16_t)a->node[i];
    p->node[node].whole = (uint64_t)which;
    p->out->calls++;
    return node;
}

/* `key =` was seen to be next; the key is kept in the call, inside which there
 * is no other. */
static int
parse_key(pyri_parse *p, int n)
{
    pyri_call *c = &p->out->call[p->out->calls];
    int err;
    if (n >= PYRI_CALL_MAX_PARAMS)
        return pyri_parse_fail(p, p->column, "more than %d parameters",
                               PYRI_CALL_MAX_PARAMS);
    for (int i = 0; i < n; i++)
        if (strcmp(c->param[i].key, p->name) == 0)
            return pyri_parse_fail(p, p->column, "'%s' is given twice",
                                   p->name);
    memcpy(c->param[n].key, p->name, sizeof p->name);
    if ((err = pyri_lex(p)) < 0)
        return err;
    return pyri_lex(p);
}

static bool
is_key(const pyri_parse *p)
{
    const char *at = p->at;
    while (*at == ' ' || (*at >= '\t' && *at <= '\r'))
        at++;
    return p->token == TOK_NAME && at[0] == '=' && at[1] != '=';
}

/* One argument; a key if the call is of that kind. */
static int
parse_arg(pyri_parse *p, bool plain, args *a)
{
    int err;
    if (is_key(p)) {
        if (plain || (a->n > 0 && !a->named))
            return pyri_parse_fail(p, p->column,
                                   "name=value is for kernels only, and for "
                                   "all their parameters");
        a->named = true;
        if ((err = parse_key(p, a->n)) < 0)
            return err;
    } else if (a->named) {
        return pyri_parse_fail(p, p->column, "name=value is missing here");
    }
    if (a->n == PYRI_CALL_MAX_PARAMS)
        return pyri_parse_fail(p, p->column, "more than %d arguments",
                               PYRI_CALL_MAX_PARAMS);
    int node = parse_at(p, PREC_OR);
    if (node < 0)
        return node;
    a->node[a->n++] = node;
    return 0;
}

/* The token at hand is the parenthesis. */
static int
parse_args(pyri_parse *p, bool plain, args *a)
{
    int err = pyri_lex(p);
    if (err < 0)
        return err;
    if (p->token == TOK_CLOSE)
        return pyri_lex(p);
    for (;;) {
        if ((err = parse_arg(p, plain, a)) < 0)
            return err;
        if (p->token != TOK_COMMA)
            return expect(p, TOK_CLOSE, "')' or ','");
        if ((err = pyri_lex(p)) < 0)
            return err;
    }
}

static int
parse_call(pyri_parse *p, const char *name, unsigned column)
{
    const pyri_function *f = pyri_function_named(name);
    const pyri_reducer *r = pyri_reducer_named(name);
    args a = {0};
    bool kernel = !f && !r;
    if (kernel && p->in_call)
        return pyri_parse_fail(p, column, "a parameter must be a constant");
    if (kernel && p->out->calls == PYRI_EXPR_MAX_CALLS)
        return pyri_parse_fail(p, column, "more than %d kernels",
                               PYRI_EXPR_MAX_CALLS);
    p->in_call |= kernel;
    int err = parse_args(p, !kernel, &a);
    if (err < 0)
        return err;
    p->in_call &= !kernel;
    if (f && !(r && a.n == 1)) /* min and max of one thing reduce it */
        return call_function(p, f, column, &a);
    return r ? call_reducer(p, r, column, &a)
             : call_kernel(p, name, column, &a);
}

/* --- operands ------------------------------------------------------------- */

static int
parse_snapshot(pyri_parse *p, int node)
{
    int err = pyri_lex(p);
    if (err < 0)
        return err;
    if (p->token != TOK_INT)
        return pyri_parse_fail(p, p->column,
                               "the number of a version is missing here");
    if (p->whole == PYR_LATEST)
        return pyri_parse_fail(p, p->column, "there is no such version");
    p->node[node].snapshot = true;
    p->node[node].whole = p->whole;
    err = pyri_lex(p);
    return err < 0 ? err : node;
}

/* i0 to i15: the axis, or -1. */
static int
axis_named(const char *name)
{
    if (name[0] != 'i' || name[1] < '0' || name[1] > '9')
        return -1;
    if (name[2] == 0)
        return name[1] - '0';
    if (name[1] == '1' && name[2] >= '0' && name[2] <= '5' && name[3] == 0)
        return 10 + name[2] - '0';
    return -1;
}

static int
parse_plain_name(pyri_parse *p, const char *name, unsigned column)
{
    const pyri_constant *c = pyri_constant_named(name);
    int axis = axis_named(name);
    int node = new_node(p,
                        c           ? NODE_CONSTANT
                        : axis >= 0 ? NODE_COORD
                                    : NODE_CELL,
                        column);
    if (node < 0)
        return node;
    if (c) {
        p->node[node].constant = c;
    } else if (axis >= p->ndim) {
        return pyri_parse_fail(p, column,
                               "%s: the array has %d axes, the "
                               "last one is i%d",
                               name, p->ndim, p->ndim - 1);
    } else if (axis >= 0) {
        p->node[node].token = (uint8_t)axis;
    } else if (strcmp(name, "x") != 0) {
        bool callable = pyri_function_named(name) || pyri_reducer_named(name);
        return pyri_parse_fail(
            p, column,
            callable ? "'%s' is a function: '(' is missing"
                     : "'%s' is unknown: cells are x, coordinates "
                       "i0, i1, ...",
            name);
    } else if (p->token == TOK_AT) {
        return parse_snapshot(p, node);
    }
    return node;
}

static int
parse_name(pyri_parse *p)
{
    char name[sizeof p->name];
    unsigned column = p->column;
    int err;
    memcpy(name, p->name, sizeof name);
    if ((err = pyri_lex(p)) < 0)
        return err;
    return p->token == TOK_OPEN ? parse_call(p, name, column)
                                : parse_plain_name(p, name, column);
}

static int
parse_number(pyri_parse *p)
{
    bool real = p->token == TOK_REAL;
    int node = new_node(p, real ? NODE_REAL : NODE_INT, p->column);
    if (node < 0)
        return node;
    if (real)
        p->node[node].real = p->real;
    else
        p->node[node].whole = p->whole;
    int err = pyri_lex(p);
    return err < 0 ? err : node;
}

static int
parse_primary(pyri_parse *p)
{
    int err, node;
    switch (p->token) {
    case TOK_INT:
    case TOK_REAL: return parse_number(p);
    case TOK_NAME: return parse_name(p);
    case TOK_OPEN:
        if ((err = pyri_lex(p)) < 0 ||
            (node = err = parse_at(p, PREC_OR)) < 0 ||
            (err = expect(p, TOK_CLOSE, "')'")) < 0)
            return err;
        return node;
    case TOK_END:
        return pyri_parse_fail(p, p->column, "the expression ends too early");
    default:
        return pyri_parse_fail(p, p->column, "a value is missing before this");
    }
}

/* --- operators ------------------------------------------------------------ */

/* ** binds tighter than a sign before it, and less than one after it. */
static int
parse_power(pyri_parse *p)
{
    int base = parse_primary(p), err;
    unsigned column = p->column;
    if (base < 0 || p->token != TOK_POW)
        return base;
    if ((err = pyri_lex(p)) < 0)
        return err;
    int exponent = parse_at(p, PREC_UNARY);
    if (exponent < 0)
        return exponent;
    return new_operator(p, TOK_POW, column, base, exponent);
}

static int
parse_unary(pyri_parse *p)
{
    pyri_token token = p->token;
    unsigned column = p->column;
    int err, prec = token == TOK_NOT_WORD ? PREC_COMPARE : PREC_UNARY;
    if (token != TOK_SUB && token != TOK_ADD && token != TOK_NOT &&
        token != TOK_INVERT && token != TOK_NOT_WORD)
        return parse_power(p);
    if ((err = pyri_lex(p)) < 0)
        return err;
    int operand = parse_at(p, prec);
    if (operand < 0)
        return operand;
    if (token == TOK_NOT_WORD)
        token = TOK_NOT;
    return new_operator(p, token, column, operand, -1);
}

static int
prec_of(const pyri_parse *p)
{
    if (p->token >= TOK_POW)
        return 0;
    return pyri_operators[p->token].prec;
}

static int
parse_binary(pyri_parse *p, int least)
{
    int left = parse_unary(p), prec;
    while (left >= 0 && (prec = prec_of(p)) >= least && prec > 0) {
        pyri_token token = p->token;
        unsigned column = p->column;
        int err = pyri_lex(p);
        if (err < 0)
            return err;
        int right = parse_at(p, prec + 1);
        if (right < 0)
            return right;
        left = new_operator(p, token, column, left, right);
        if (prec == PREC_COMPARE && prec_of(p) == PREC_COMPARE)
            return pyri_parse_fail(p, p->column,
                                   "comparisons do not chain: "
                                   "write a < b && b < c");
    }
    return left;
}

/* Everything that recurses goes through here. */
static int
parse_at(pyri_parse *p, int prec)
{
    if (++p->depth > PYRI_EXPR_MAX_DEPTH)
        return pyri_parse_fail(p, p->column, "nested too deeply");
    int node = prec >= PREC_UNARY ? parse_unary(p) : parse_binary(p, prec);
    p->depth--;
    return node;
}

int
pyri_parse_text(pyri_parse *p)
{
    int err = pyri_lex(p);
    if (err < 0)
        return err;
    int root = parse_at(p, PREC_OR);
    if (root < 0)
        return root;
    if (p->token != TOK_END)
        return pyri_parse_fail(p, p->column,
                               p->token == TOK_CLOSE
                                   ? "')' without '('"
                                   : "an operator is missing before this");
    if (p->special >= 0 && p->special != root)
        return pyri_parse_fail(p, p->node[p->special].column,
                               "this must stand alone: it is no value of a "
                               "cell");
    return root;
}
