/*
 * op/expr.c - the whole way from a text to what it asks for.
 */
#include "base/sys.h"
#include "op/op.h"

#include "base/fail.h"
#include "op/syntax.h"

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- errors --------------------------------------------------------------- */

int
pyri_parse_fail(pyri_parse *p, unsigned column, const char *format, ...)
{
    va_list args;
    if (p->error.column)
        return PYR_EINVAL;
    p->error.column = column;
    va_start(args, format);
    vsnprintf(p->error.text, sizeof p->error.text, format, args);
    va_end(args);
    return PYR_EINVAL;
}

/* The part of the text around the column, and a caret under it. */
static int
fail_with_caret(const pyri_parse *p)
{
    enum { BEFORE = 50, SHOWN = 70 };
    const pyri_expr_error *e = &p->error;
    size_t at = e->column - 1, size = strlen(p->text);
    size_t from = at > BEFORE ? at - BEFORE : 0, n = 0;
    char shown[SHOWN + 1];
    for (; n < SHOWN && from + n < size; n++) {
        unsigned char c = (unsigned char)p->text[from + n];
        shown[n] = c < ' ' || c >= 0x7f ? '?' : (char)c;
        if (c >= '\t' && c <= '\r')
            shown[n] = ' ';
    }
    shown[n] = 0;
    return pyri_fail(PYR_EINVAL, "column %u: %s\n    %s\n    %*s^", e->column,
                     e->text, shown, (int)(at - from), "");
}

/* --- what is not of cells ------------------------------------------------- */

/* The value of a node that must be constant. */
static int
constant_of(pyri_parse *p, int node, const char *what, pyri_param *out)
{
    const pyri_ir *v = &p->value[p->value_of[node]];
    if (v->what != VALUE_CONST)
        return pyri_parse_fail(p, p->node[node].column, "%s must be a constant",
                               what);
    out->kind = (pyri_kind)v->kind;
    out->bits = v->bits;
    if (v->kind == PYRI_REAL)
        memcpy(&out->real, &v->bits, sizeof out->real);
    else
        out->real = v->kind == PYRI_UINT ? (double)v->bits
                                         : (double)(int64_t)v->bits;
    return 0;
}

static int
read_histogram(pyri_parse *p, const pyri_node *node, pyri_reduction *r)
{
    pyri_param lo = {0}, hi = {0}, bins = {0};
    int err;
    if ((err = constant_of(p, node->arg[1], "the lower end", &lo)) < 0 ||
        (err = constant_of(p, node->arg[2], "the upper end", &hi)) < 0 ||
        (err = constant_of(p, node->arg[3], "the number of bins", &bins)) < 0)
        return err;
    r->lo = lo.real;
    r->hi = hi.real;
    if (!isfinite(r->lo) || !isfinite(r->hi) || !isfinite(r->hi - r->lo) ||
        !(r->lo < r->hi))
        return pyri_parse_fail(p, p->node[node->arg[1]].column,
                               "a histogram goes from a number to a greater "
                               "one");
    if (!(bins.real >= 1 && bins.real <= PYRI_OP_MAX_BINS) ||
        bins.real != floor(bins.real))
        return pyri_parse_fail(p, p->node[node->arg[3]].column,
                               "a histogram has 1 to %d bins",
                               PYRI_OP_MAX_BINS);
    r->bins = (uint32_t)bins.real;
    return 0;
}

static int
read_reduction(pyri_parse *p, const pyri_node *node)
{
    pyri_reduction *r = &p->out->reduction;
    pyri_param q = {0};
    int err;
    r->op = (pyri_reduce_op)node->reducer->op;
    if (r->op == PYRI_RED_HISTOGRAM)
        return read_histogram(p, node, r);
    if (r->op != PYRI_RED_QUANTILE)
        return 0;
    if ((err = constant_of(p, node->arg[1], "which quantile", &q)) < 0)
        return err;
    if (!(q.real >= 0 && q.real <= 1))
        return pyri_parse_fail(p, p->node[node->arg[1]].column,
                               "a quantile is from 0 to 1");
    r->q = q.real;
    return 0;
}

static bool
same_call(const pyri_call *a, const pyri_call *b)
{
    bool same = a->n == b->n && strcmp(a->name, b->name) == 0;
    for (int i = 0; i < a->n && same; i++)
        same = strcmp(a->param[i].key, b->param[i].key) == 0 &&
               a->param[i].kind == b->param[i].kind &&
               a->param[i].bits == b->param[i].bits;
    return same;
}

int
pyri_call_read(pyri_parse *p, const pyri_node *node)
{
    pyri_call *call = p->out->call;
    int which = (int)node->whole, err;
    for (int i = 0; i < call[which].n; i++)
        if ((err = constant_of(p, p->params[which][i], "a parameter",
                               &call[which].param[i])) < 0)
            return err;
    for (int i = 0; i < which; i++)
        if (same_call(&call[i], &call[which]))
            return i;
    return which;
}

/* --- all of it ------------------------------------------------------------ */

static int
compile(pyri_parse *p, pyri_buf *canon)
{
    pyri_expr *out = p->out;
    int root = pyri_parse_text(p), err = root;
    if (err < 0 || (err = pyri_lower(p)) < 0)
        return err;
    const pyri_node *node = &p->node[root];
    if (node->what == NODE_REDUCE) {
        out->form = PYRI_FORM_REDUCE;
        if ((err = read_reduction(p, node)) == 0)
            err = pyri_emit(p, p->value_of[node->arg[0]], &out->program);
    } else {
        err = pyri_emit(p, p->value_of[root], &out->program);
    }
    if (err == 0 && canon)
        pyri_canon(p, root, canon);
    return err;
}

static int
parse(pyri_parse *p, pyri_buf *canon, pyri_expr_error *where)
{
    if (strnlen(p->text, PYRI_EXPR_MAX_TEXT + 1) > PYRI_EXPR_MAX_TEXT)
        pyri_parse_fail(p, 1, "an expression of more than %d bytes",
                        PYRI_EXPR_MAX_TEXT);
    else if (compile(p, canon) == 0)
        return canon ? pyri_buf_check(canon, "text of an expression") : 0;
    if (where)
        *where = p->error;
    return fail_with_caret(p);
}

int
pyri_expr_parse(const char *text, pyr_type cell, int ndim, pyri_expr *out,
                pyri_buf *canon, pyri_expr_error *where)
{
    /* Numbers have a point in every locale. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    pyri_parse *p = pyri_sys_calloc(1, sizeof *p);
    int err;
    memset(out, 0, sizeof *out);
    if (where)
        memset(where, 0, sizeof *where);
    if (!p || !c) {
        err = pyri_fail_nomem("an expression");
        goto out;
    }
    p->text = p->at = text;
    p->cell = cell;
    p->ndim = ndim;
    p->out = out;
    p->special = -1;
    out->program.sources = 1;
    locale_t before = uselocale(c);
    err = parse(p, canon, where);
    uselocale(before);
    if (err < 0)
        memset(out, 0, sizeof *out);
out:
    free(p);
    if (c)
        freelocale(c);
    return err;
}
