/*
 * op/emit.c - from values to a program.
 *
 * Of the arguments of an instruction the one that needs most registers is
 * computed first, so that a tree of n leaves needs about log n of them.
 */
#include "op/syntax.h"

#include "op/verify.h"

#include <string.h>

/* A source that instructions can use as it stands. */
static bool
is_direct(const pyri_parse *p, const pyri_ir *v)
{
    return v->what == VALUE_SOURCE &&
           pyri_type_is_class(p->cell, pyri_kind_class((pyri_kind)v->kind));
}

/* The order in which to compute arguments. */
static void
order(const pyri_parse *p, const pyri_ir *v, int k[3])
{
    for (int i = 0; i < v->n; i++) {
        int at = i;
        for (; at > 0 &&
               p->value[v->arg[k[at - 1]]].need < p->value[v->arg[i]].need;
             at--)
            k[at] = k[at - 1];
        k[at] = i;
    }
}

static uint8_t
need_of(const pyri_parse *p, const pyri_ir *v)
{
    int k[3] = {0}, held = 0, most = 1;
    if (v->what == VALUE_CONST || is_direct(p, v))
        return 0;
    order(p, v, k);
    for (int i = 0; i < v->n; i++) {
        int need = p->value[v->arg[k[i]]].need;
        most = need + held > most ? need + held : most;
        held += need > 0;
    }
    return (uint8_t)most;
}

/* How many instructions a value takes; marks sources as used. Arguments stand
 * before what uses them, so one way back through them meets all. */
static int
count_code(pyri_parse *p, int root, bool *reached, bool *source)
{
    int n = 0;
    reached[root] = true;
    for (int i = root; i >= 0; i--) {
        const pyri_ir *v = &p->value[i];
        if (!reached[i])
            continue;
        if (v->what == VALUE_SOURCE)
            source[v->index] = true;
        n += v->what != VALUE_CONST && !is_direct(p, v);
        for (int k = 0; v->what == VALUE_OP && k < v->n; k++)
            reached[v->arg[k]] = true;
    }
    return n;
}

/* Sources whose cells turned out not to matter go. */
static void
drop_sources(pyri_parse *p, pyri_program *out, const bool *source)
{
    uint8_t now[PYRI_OP_MAX_SOURCES] = {0}, n = 1;
    uint16_t calls = out->calls;
    out->calls = 0;
    for (int i = 1; i < out->sources; i++) {
        now[i] = n;
        if (source[i]) {
            uint64_t version = out->version[i];
            out->version[i] = 0;
            out->calls |= (uint16_t)((calls >> i & 1) << n);
            out->version[n++] = version;
        } else {
            out->version[i] = 0;
        }
    }
    out->sources = n;
    for (int i = 0; i < p->values; i++)
        if (p->value[i].what == VALUE_SOURCE)
            p->value[i].index = now[p->value[i].index];
}

static int
constant(pyri_parse *p, pyri_program *out, uint64_t bits)
{
    for (int i = 0; i < out->consts; i++)
        if (out->constant[i] == bits)
            return PYRI_ARG_CONST + i;
    if (out->consts == PYRI_OP_MAX_CONSTS)
        return pyri_parse_fail(p, 1, "more than %d constants",
                               PYRI_OP_MAX_CONSTS);
    out->constant[out->consts] = bits;
    return PYRI_ARG_CONST + out->consts++;
}

/* The lowest register that is free is where the result of i goes. */
static int
append(pyri_parse *p, pyri_program *out, pyri_instr i)
{
    int reg = 0;
    while (p->used >> reg & 1)
        reg++;
    if (reg >= PYRI_OP_MAX_REGS)
        return pyri_parse_fail(p, 1, "the expression is nested too deeply");
    p->used |= (uint32_t)1 << reg;
    out->regs = reg >= out->regs ? (uint8_t)(reg + 1) : out->regs;
    i.dst = (uint8_t)reg;
    out->code[out->code_size++] = i;
    return reg;
}

static int
emit(pyri_parse *p, int value, pyri_program *out)
{
    const pyri_ir *v = &p->value[value];
    pyri_instr i = {v->op, 0, {PYRI_ARG_NONE, PYRI_ARG_NONE, PYRI_ARG_NONE}};
    int k[3] = {0};
    if (v->what == VALUE_CONST)
        return constant(p, out, v->bits);
    if (is_direct(p, v))
        return PYRI_ARG_SOURCE + v->index;
    if (v->what != VALUE_OP) {
        bool source = v->what == VALUE_SOURCE;
        i.op = !source                ? PYRI_COORD
               : v->kind == PYRI_REAL ? PYRI_LOAD_F
                                      : PYRI_LOAD_W;
        i.arg[0] = (uint8_t)(v->index + (source ? PYRI_ARG_SOURCE : 0));
        return append(p, out, i);
    }
    order(p, v, k);
    for (int a = 0; a < v->n; a++) {
        int arg = emit(p, v->arg[k[a]], out);
        if (arg < 0)
            return arg;
        i.arg[k[a]] = (uint8_t)arg;
    }
    for (int a = 0; a < v->n; a++)
        if (i.arg[a] < PYRI_OP_MAX_REGS)
            p->used &= ~((uint32_t)1 << i.arg[a]);
    return append(p, out, i);
}

int
pyri_emit(pyri_parse *p, int value, pyri_program *out)
{
    bool reached[PYRI_MAX_VALUES] = {false};
    bool source[PYRI_OP_MAX_SOURCES] = {false};
    if (count_code(p, value, reached, source) > PYRI_OP_MAX_CODE)
        return pyri_parse_fail(p, 1, "more than %d steps", PYRI_OP_MAX_CODE);
    drop_sources(p, out, source);
    for (int i = 0; i <= value; i++)
        p->value[i].need = need_of(p, &p->value[i]);
    p->used = 0;
    out->cell = p->cell;
    out->kind = (pyri_kind)p->value[value].kind;
    int result = emit(p, value, out);
    if (result < 0)
        return result;
    out->result = (uint8_t)result;
    const char *wrong = pyri_program_verify(out);
    if (wrong)
        return pyri_parse_fail(p, 1, "the program has %s", wrong);
    return 0;
}
