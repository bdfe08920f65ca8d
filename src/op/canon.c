/*
 * op/canon.c - nodes as text again: one spelling for what means the same to
 * the parser, with no parentheses that it does not need.
 */
#include "op/syntax.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print(const pyri_parse *p, int node, int least, pyri_buf *b);

static void
add(pyri_buf *b, const char *text)
{
    pyri_buf_add(b, text, strlen(text));
}

/* The shortest digits that are read as the same number. */
static void
add_real(pyri_buf *b, double v)
{
    char text[40];
    int digits = 15;
    do
        snprintf(text, sizeof text, "%.*g", digits, v);
    while (strtod(text, NULL) != v && digits++ < 17);
    add(b, text);
    if (!strpbrk(text, ".en"))
        add(b, ".0");
}

static void
add_whole(pyri_buf *b, uint64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)v);
    add(b, text);
}

static int
prec_of(const pyri_node *node)
{
    if (node->what == NODE_UNARY)
        return PREC_UNARY;
    return node->what == NODE_BINARY ? pyri_operators[node->token].prec
                                     : PREC_ATOM;
}

static void
print_args(const pyri_parse *p, const pyri_node *node, const char *name,
           pyri_buf *b)
{
    add(b, name);
    add(b, "(");
    for (int i = 0; i < node->n; i++) {
        add(b, i ? ", " : "");
        print(p, node->arg[i], PREC_OR, b);
    }
    add(b, ")");
}

static void
print_call(const pyri_parse *p, const pyri_node *node, pyri_buf *b)
{
    const pyri_call *c = &p->out->call[node->whole];
    add(b, c->name);
    add(b, "(");
    for (int i = 0; i < c->n; i++) {
        add(b, i ? ", " : "");
        add(b, c->param[i].key);
        add(b, "=");
        print(p, p->params[node->whole][i], PREC_OR, b);
    }
    add(b, ")");
}

/* Left to right, but for powers; and comparisons do not chain. */
static void
print_binary(const pyri_parse *p, const pyri_node *node, pyri_buf *b)
{
    int prec = prec_of(node);
    bool power = prec == PREC_POWER, chain = prec != PREC_COMPARE && !power;
    print(p, node->arg[0], chain ? prec : prec + 1, b);
    add(b, " ");
    add(b, pyri_operators[node->token].text);
    add(b, " ");
    print(p, node->arg[1], power ? PREC_UNARY : prec + 1, b);
}

static void
print_atom(const pyri_parse *p, const pyri_node *node, pyri_buf *b)
{
    switch (node->what) {
    case NODE_INT: add_whole(b, node->whole); break;
    case NODE_REAL: add_real(b, node->real); break;
    case NODE_CONSTANT: add(b, node->constant->name); break;
    case NODE_CELL:
        add(b, node->snapshot ? "x@" : "x");
        if (node->snapshot)
            add_whole(b, node->whole);
        break;
    case NODE_COORD:
        add(b, "i");
        add_whole(b, node->token);
        break;
    case NODE_FUNCTION: print_args(p, node, node->function->name, b); break;
    case NODE_REDUCE: print_args(p, node, node->reducer->name, b); break;
    default: print_call(p, node, b); break;
    }
}

static void
print(const pyri_parse *p, int number, int least, pyri_buf *b)
{
    const pyri_node *node = &p->node[number];
    bool parens = prec_of(node) < least;
    add(b, parens ? "(" : "");
    if (node->what == NODE_BINARY) {
        print_binary(p, node, b);
    } else if (node->what == NODE_UNARY) {
        add(b, pyri_operators[node->token].text);
        print(p, node->arg[0], PREC_UNARY, b);
    } else {
        print_atom(p, node, b);
    }
    add(b, parens ? ")" : "");
}

void
pyri_canon(const pyri_parse *p, int root, pyri_buf *b)
{
    print(p, root, PREC_OR, b);
    pyri_buf_u8(b, 0);
}
