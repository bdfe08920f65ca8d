/*
 * op/narrow.c - programs whose values fit into fewer bits.
 *
 * Expressions of integers mean 64 bits. But `x*2 + 1` of u8 stays below 512:
 * computed in 16 bits it is the same. Going through the code once with the
 * least and greatest value that each register can have tells whether all of
 * them fit. Every instruction that is not understood here, every coordinate
 * and every real says no.
 */
#include "op/narrow.h"

enum {
    WORTH = 256,                     /* cells; below, looking costs as much */
    ROOM = 4096 + 64,                /* bytes of a register */
};

/* What a value can be. 32-bit ones, so that sums and products of two fit. */
typedef struct range {
    int64_t lo, hi;
} range;

static range
range_of(int64_t a, int64_t b)
{
    return a < b ? (range){a, b} : (range){b, a};
}

static range
both(range a, range b)
{
    return (range){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}

static range
times(range a, range b)
{
    return both(range_of(a.lo * b.lo, a.lo * b.hi),
                range_of(a.hi * b.lo, a.hi * b.hi));
}

/* All numbers of as many bits as these have. */
static range
bits_of(range a, range b)
{
    range all = both(a, b);
    int64_t most = 0;
    while (most < all.hi || -most - 1 > all.lo)
        most = 2 * most + 1;
    return (range){all.lo < 0 ? -most - 1 : 0, most};
}

static range
magnitude(range a)
{
    range r = range_of(a.lo < 0 ? -a.lo : a.lo, a.hi < 0 ? -a.hi : a.hi);
    if (a.lo < 0 && a.hi > 0)
        r.lo = 0;
    return r;
}

/* By a constant. False if lanes cannot do it. */
static bool
shift(int op, range a, range by, range *out)
{
    if (by.lo != by.hi || by.lo < 0 || by.lo > 31)
        return false;
    if (op == PYRI_SHL_W)
        *out = times(a, (range){(int64_t)1 << by.lo, (int64_t)1 << by.lo});
    else
        *out = (range){a.lo >> by.lo, a.hi >> by.lo};
    return true;
}

/* What an instruction gives; false if it is none of those. */
static bool
result_of(int op, range a, range b, range c, range *out)
{
    switch (op) {
    case PYRI_ADD_W: *out = (range){a.lo + b.lo, a.hi + b.hi}; return true;
    case PYRI_SUB_W: *out = (range){a.lo - b.hi, a.hi - b.lo}; return true;
    case PYRI_MUL_W: *out = times(a, b); return true;
    case PYRI_SQR_W: *out = times(magnitude(a), magnitude(a)); return true;
    case PYRI_MIN_I:
        *out = (range){a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
        return true;
    case PYRI_MAX_I:
        *out = (range){a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
        return true;
    case PYRI_AND_W:
    case PYRI_OR_W:
    case PYRI_XOR_W: *out = bits_of(a, b); return true;
    case PYRI_SHL_W:
    case PYRI_SHR_I: return shift(op, a, b, out);
    case PYRI_ABS_I: *out = magnitude(a); return true;
    case PYRI_SIGN_I: *out = (range){-1, 1}; return true;
    case PYRI_EQ_W:
    case PYRI_NE_W:
    case PYRI_LT_I:
    case PYRI_LE_I: *out = (range){0, 1}; return true;
    case PYRI_WHERE_W: *out = both(b, c); return true;
    default: return false;
    }
}

/* --- which lanes ---------------------------------------------------------- */

typedef struct looking {
    const pyri_program *p;
    range cell, reg[PYRI_OP_MAX_REGS];
    range all; /* what any value is */
} looking;

static bool
note(looking *l, range r)
{
    l->all = both(l->all, r);
    return r.lo >= INT32_MIN && r.hi <= INT32_MAX;
}

static bool
argument(looking *l, uint8_t arg, range *out)
{
    *out = (range){0, 0};
    if (arg == PYRI_ARG_NONE)
        return true;
    if (arg < PYRI_OP_MAX_REGS) {
        *out = l->reg[arg];
        return true;
    }
    if (arg >= PYRI_ARG_SOURCE)
        return false; /* of 64 bits */
    int64_t v = (int64_t)l->p->constant[arg - PYRI_ARG_CONST];
    *out = (range){v, v};
    return note(l, *out);
}

static bool
look(looking *l)
{
    const pyri_program *p = l->p;
    for (int i = 0; i < p->code_size; i++) {
        const pyri_instr *c = &p->code[i];
        range a, b, d, r = l->cell;
        if (c->op != PYRI_LOAD_W &&
            (!argument(l, c->arg[0], &a) || !argument(l, c->arg[1], &b) ||
             !argument(l, c->arg[2], &d) || !result_of(c->op, a, b, d, &r)))
            return false;
        if (!note(l, r))
            return false;
        l->reg[c->dst] = r;
    }
    return p->code_size > 0;
}

static bool
cell_range(pyr_type type, range *out)
{
    switch (type) {
    case PYR_I8: *out = (range){INT8_MIN, INT8_MAX}; return true;
    case PYR_U8: *out = (range){0, UINT8_MAX}; return true;
    case PYR_I16: *out = (range){INT16_MIN, INT16_MAX}; return true;
    case PYR_U16: *out = (range){0, UINT16_MAX}; return true;
    case PYR_I32: *out = (range){INT32_MIN, INT32_MAX}; return true;
    default: return false;
    }
}

/* NULL: none will do. *width is the bytes of a value. */
static const pyri_narrow *
choose(const pyri_program *p, const pyri_lanes *lanes, pyr_type out_type,
       size_t *width)
{
    looking l = {.p = p};
    if (p->kind != PYRI_INT || p->axes || !cell_range(p->cell, &l.cell) ||
        !look(&l))
        return NULL;
    bool half = l.all.lo >= INT16_MIN && l.all.hi <= INT16_MAX;
    const pyri_narrow *n = half ? lanes->narrow_16 : lanes->narrow_32;
    *width = half ? 2 : 4;
    return n->load[p->cell] && n->store[out_type] ? n : NULL;
}

/* --- running -------------------------------------------------------------- */

typedef struct machine {
    const pyri_program *p;
    const pyri_narrow *lanes;
    const uint8_t *const *src;
    size_t cell; /* bytes */
    uint64_t first;
    size_t n;
    uint8_t (*reg)[ROOM];
    const void *constant[PYRI_OP_MAX_CONSTS];
} machine;

static void
step(const machine *m, const pyri_instr *i)
{
    const void *arg[3] = {NULL, NULL, NULL};
    int variant = 0;
    if (i->op == PYRI_LOAD_W) {
        m->lanes->load[m->p->cell](m->reg[i->dst],
                                   m->src[i->arg[0] - PYRI_ARG_SOURCE] +
                                       m->first * m->cell,
                                   m->n);
        return;
    }
    for (int k = 0; k < 3 && i->arg[k] != PYRI_ARG_NONE; k++) {
        bool constant = i->arg[k] >= PYRI_OP_MAX_REGS;
        arg[k] = constant ? m->constant[i->arg[k] - PYRI_ARG_CONST]
                          : m->reg[i->arg[k]];
        variant |= constant << k;
    }
    m->lanes->op[i->op][variant](m->reg[i->dst], arg[0], arg[1], arg[2], m->n);
}

/* Is there a loop for each? Constants may stand where none has been needed. */
static bool
complete(const pyri_program *p, const pyri_narrow *lanes)
{
    for (int i = 0; i < p->code_size; i++) {
        const pyri_instr *c = &p->code[i];
        int variant = 0;
        for (int k = 0; k < 3; k++)
            variant |= (c->arg[k] != PYRI_ARG_NONE &&
                        c->arg[k] >= PYRI_OP_MAX_REGS)
                       << k;
        if (c->op != PYRI_LOAD_W && !lanes->op[c->op][variant])
            return false;
    }
    return true;
}

bool
pyri_narrow_run(const pyri_program *p, const pyri_lanes *lanes,
                uint64_t cells, const uint8_t *const *src, pyr_type out_type,
                uint8_t *out)
{
    uint8_t reg[PYRI_OP_MAX_REGS][ROOM] __attribute__((aligned(64)));
    int32_t constant[PYRI_OP_MAX_CONSTS]; /* its low half is the 16-bit one */
    size_t width, step_out = pyri_type_size(out_type);
    machine m = {.p = p, .src = src, .cell = pyri_type_size(p->cell)};
    if (cells < WORTH || !(m.lanes = choose(p, lanes, out_type, &width)) ||
        !complete(p, m.lanes))
        return false;
    for (int i = 0; i < p->consts; i++) {
        constant[i] = (int32_t)(int64_t)p->constant[i];
        m.constant[i] = &constant[i];
    }
    m.reg = reg;
    for (; m.first < cells; m.first += m.n, out += m.n * step_out) {
        uint64_t left = cells - m.first, most = 4096 / width;
        m.n = (size_t)(left < most ? left : most);
        for (int i = 0; i < p->code_size; i++)
            step(&m, &p->code[i]);
        m.lanes->store[out_type](out, reg[p->result], m.n);
    }
    return true;
}
