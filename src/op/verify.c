/*
 * op/verify.c - refuse every program that could do harm.
 *
 * What holds of a program that passes:
 *   1. every instruction and every variant of it (which arguments are
 *      constants) is known;
 *   2. a register is read only after it was written, and as what it was
 *      written: an integer or a real; the same for constants and sources;
 *   3. registers, constants, sources and axes are within their declared
 *      numbers, which are within the limits of op.h;
 *   4. a register result is what the last instruction writes, so that this one
 *      may write to the output instead;
 *   5. there are no jumps: each instruction runs once per block.
 */
#include "op/verify.h"

#include "op/lanes.h"

#include <string.h>

const pyri_opcode_info pyri_opcodes[PYRI_OPS] = {
#define INFO_W 'W'
#define INFO_F 'F'
#define INFO(name, result, args, cost)                                         \
    [PYRI_##name] = {INFO_##result, args, cost},
    PYRI_OPCODES(INFO)};

/* What is known while going through the code. */
typedef struct state {
    pyri_program *p;
    char reg[PYRI_OP_MAX_REGS]; /* class, or 0: not written */
    bool source[PYRI_OP_MAX_SOURCES];
    uint64_t cost;
} state;

/* Arguments that are constants are noted in *variant. */
static const char *
check_value(const state *s, uint8_t arg, char class_, int bit, int *variant)
{
    const pyri_program *p = s->p;
    if (arg < PYRI_OP_MAX_REGS) {
        if (arg >= p->regs)
            return "a register that it did not declare";
        return s->reg[arg] == class_ ? NULL : "a register of another class";
    }
    if (arg >= PYRI_ARG_CONST && arg < PYRI_ARG_CONST + PYRI_OP_MAX_CONSTS) {
        *variant |= 1 << bit;
        return arg - PYRI_ARG_CONST < p->consts
                   ? NULL
                   : "a constant that is not there";
    }
    if (arg >= PYRI_ARG_SOURCE && arg < PYRI_ARG_SOURCE + PYRI_OP_MAX_SOURCES) {
        if (arg - PYRI_ARG_SOURCE >= p->sources)
            return "a source that is not there";
        return pyri_type_is_class(p->cell, class_)
                   ? NULL
                   : "a source of another class";
    }
    return "an operand that makes no sense";
}

static void
note_source(state *s, uint8_t arg)
{
    if (arg >= PYRI_ARG_SOURCE && arg < PYRI_ARG_SOURCE + PYRI_OP_MAX_SOURCES)
        s->source[arg - PYRI_ARG_SOURCE] = true;
}

/* LOAD and COORD. */
static const char *
check_origin(state *s, const pyri_instr *i)
{
    pyri_program *p = s->p;
    if (i->op == PYRI_COORD) {
        if (i->arg[0] >= PYR_MAX_DIMS)
            return "an axis that is not there";
        p->axes |= (uint16_t)(1 << i->arg[0]);
        return NULL;
    }
    if (i->arg[0] < PYRI_ARG_SOURCE ||
        i->arg[0] >= PYRI_ARG_SOURCE + p->sources)
        return "a source that is not there";
    if (i->op == PYRI_LOAD_W && pyri_type_is_float(p->cell))
        return "reals loaded as integers";
    note_source(s, i->arg[0]);
    return NULL;
}

static const char *
check_values(state *s, const pyri_instr *i, const char *classes)
{
    int variant = 0;
    for (int k = 0; classes[k]; k++) {
        const char *wrong = check_value(s, i->arg[k], classes[k], k, &variant);
        if (wrong)
            return wrong;
        note_source(s, i->arg[k]);
    }
    if (!pyri_lanes_baseline.op[i->op][variant])
        return "constants where there are none";
    return NULL;
}

static const char *
check_instr(state *s, const pyri_instr *i)
{
    if (i->op >= PYRI_OPS)
        return "an unknown instruction";
    const pyri_opcode_info *info = &pyri_opcodes[i->op];
    for (size_t k = strlen(info->args); k < 3; k++)
        if (i->arg[k] != PYRI_ARG_NONE)
            return "an operand too many";
    bool origin = info->args[0] == 'S' || info->args[0] == 'A';
    const char *wrong = origin ? check_origin(s, i)
                               : check_values(s, i, info->args);
    if (wrong)
        return wrong;
    if (i->dst >= s->p->regs)
        return "a register that it did not declare";
    s->reg[i->dst] = info->result;
    s->cost += info->cost;
    return NULL;
}

static const char *
check_result(state *s)
{
    pyri_program *p = s->p;
    int variant = 0;
    const char *wrong = check_value(s, p->result, pyri_kind_class(p->kind), 0,
                                    &variant);
    if (wrong)
        return wrong;
    note_source(s, p->result);
    bool in_register = p->result < PYRI_OP_MAX_REGS;
    if (in_register != (p->code_size > 0) ||
        (in_register && p->code[p->code_size - 1].dst != p->result))
        return "a result that is not its last";
    return NULL;
}

static bool
is_identity(const pyri_program *p)
{
    if (p->kind != pyri_type_kind(p->cell))
        return false;
    if (p->code_size == 0)
        return p->result == PYRI_ARG_SOURCE;
    const pyri_instr *i = &p->code[0];
    return p->code_size == 1 &&
           (i->op == PYRI_LOAD_W || i->op == PYRI_LOAD_F) &&
           i->arg[0] == PYRI_ARG_SOURCE;
}

const char *
pyri_program_verify(pyri_program *p)
{
    state s = {.p = p};
    const char *wrong = NULL;
    if (!pyri_type_valid((int)p->cell))
        return "an unknown type of cells";
    if ((int)p->kind < PYRI_INT || p->kind > PYRI_REAL)
        return "an unknown kind of result";
    if (p->regs > PYRI_OP_MAX_REGS || p->consts > PYRI_OP_MAX_CONSTS ||
        p->sources < 1 || p->sources > PYRI_OP_MAX_SOURCES ||
        p->code_size > PYRI_OP_MAX_CODE)
        return "more than the limits allow";
    p->axes = 0;
    for (int i = 0; i < p->code_size; i++)
        if ((wrong = check_instr(&s, &p->code[i])))
            return wrong;
    if ((wrong = check_result(&s)))
        return wrong;
    for (int i = 1; i < p->sources; i++)
        if (!s.source[i])
            return "a source that it does not use";
    p->uses_x = s.source[0];
    p->identity = is_identity(p);
    p->cost = (uint32_t)s.cost + 500; /* 512 times a million fits */
    return NULL;
}
