/*
 * compute/functions.h - random expressions, their text and their meaning: plain.h
 * of op/ evaluates them, cell by cell.
 */
#ifndef COMPUTE_FUNCTIONS_H
#define COMPUTE_FUNCTIONS_H

#include "op/tests/plain.h"
#include "support/check.h"
#include "support/rng.h"

enum { MAX_TREE = 64 };

static rng dice;
static tree trees[MAX_TREE];
static int used;
static pyr_type cell_type;
static int ndim;

static uint64_t
pick(uint64_t n)
{
    return rng_below(&dice, n);
}

/* What a random expression is made of; x@V is of one of these. */
static pyr_version sources[VERSIONS + 1]; /* [0] is x */

static tree *
new_tree(what w, char kind)
{
    trees[used] = (tree){.what = w, .kind = kind};
    return &trees[used++];
}

static char
cell_kind(void)
{
    return pyri_type_is_float(cell_type) ? 'r'
           : cell_type == PYR_U64        ? 'u'
                                         : 'i';
}

static tree *
random_leaf(bool uniform)
{
    static const int64_t wholes[] = {0, 1, 2, 3, 7, 100, 255};
    tree *t;
    switch (pick(uniform ? 5 : 6)) {
    case 0:
        t = new_tree(LITERAL, 'i');
        t->literal = val_i(wholes[pick(7)]);
        sprintf(t->text, "%d", (int)t->literal.i);
        return t;
    case 1:
        t = new_tree(LITERAL, 'r');
        t->literal = val_r((double)pick(64) / 8);
        sprintf(t->text, "%.3f", t->literal.r);
        return t;
    case 5:
        t = new_tree(COORD, 'i');
        t->index = (int)pick((uint64_t)ndim);
        sprintf(t->text, "i%d", t->index);
        return t;
    default:
        t = new_tree(CELL, cell_kind());
        t->index = rng_once_in(&dice, 3) ? 1 + (int)pick(VERSIONS) : 0;
        if (t->index)
            sprintf(t->text, "x@%llu", (unsigned long long)sources[t->index]);
        else
            strcpy(t->text, "x");
        return t;
    }
}

static tree *
random_tree(int depth, bool uniform)
{
    static const what some[] = {ADD, SUB, MUL, DIV, LT, GE, EQ,
                                MIN, MAX, WHERE, ABS, NEG};
    if (depth == 0 || used > MAX_TREE - 16)
        return random_leaf(uniform);
    what w = some[pick(sizeof some / sizeof some[0])];
    tree *t = new_tree(w, 'i');
    t->a = random_tree(depth - 1, uniform);
    if (w == ABS || w == NEG) {
        t->kind = t->a->kind;
        return t;
    }
    t->b = random_tree(depth - 1, uniform);
    t->kind = joined(t->a->kind, t->b->kind);
    if (w == LT || w == GE || w == EQ)
        t->kind = 'i';
    if (w == WHERE) {
        t->c = random_tree(depth - 1, uniform);
        t->kind = joined(t->b->kind, t->c->kind);
    }
    return t;
}

static char text[8192];
static size_t text_size;

static void
print(const tree *t)
{
    static const char *const names[] = {
        [NEG] = "-",  [ADD] = "+",  [SUB] = "-",   [MUL] = "*",
        [DIV] = "/",  [LT] = "<",   [GE] = ">=",   [EQ] = "==",
        [MIN] = "min", [MAX] = "max", [WHERE] = "where", [ABS] = "abs"};
    const tree *args[] = {t->a, t->b, t->c};
    bool between = t->what >= ADD && t->what <= SHR;
    if (t->what <= LITERAL) {
        text_size += (size_t)sprintf(text + text_size, "%s", t->text);
        return;
    }
    text_size += (size_t)sprintf(text + text_size, "%s(",
                                 between ? "" : names[t->what]);
    for (int i = 0; i < 3 && args[i]; i++) {
        if (i)
            text_size += (size_t)sprintf(text + text_size, "%s",
                                         between ? names[t->what] : ", ");
        print(args[i]);
    }
    text_size += (size_t)sprintf(text + text_size, ")");
}

static tree *
random_function(void)
{
    used = 0;
    text_size = 0;
    tree *t = random_tree(1 + (int)pick(3), rng_once_in(&dice, 2));
    print(t);
    return t;
}

/* --- cells ---------------------------------------------------------------- */

static uint64_t
random_bits(void)
{
    static const double edges[] = {0.0, -0.0, NAN, INFINITY, -INFINITY,
                                   1e300, -1e300, 0x1p-1060, 0.5, 255};
    val v = val_i((int64_t)pick(100) - 20);
    if (pyri_type_is_float(cell_type))
        v = val_r(rng_once_in(&dice, 8)
                      ? edges[pick(10)]
                      : (double)(int64_t)pick(2000) / 8 - 100);
    else if (rng_once_in(&dice, 4))
        v = cell_type == PYR_U64 ? val_u(rng_next(&dice))
                                 : val_i((int64_t)rng_next(&dice));
    return val_bits(cell_type, v);
}

#endif
