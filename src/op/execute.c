/*
 * op/execute.c - programs at work.
 *
 * A box is cut into blocks of 512 cells, which with the registers stay in the
 * first-level cache. Each instruction goes over a whole block, so that the cost
 * of finding it is small beside its work. Where cells are of the class that an
 * instruction wants it reads them in place, and where the output is of the
 * class of the result the last instruction writes it in place.
 */
#include "op/execute.h"

#include "base/fail.h"
#include "op/blocks.h"
#include "op/narrow.h"
#include "op/verify.h"

#include <string.h>

/* Registers are not a page apart, or stores would hold up loads that only look
 * like them. */
enum { REG_CELLS = PYRI_OP_CELLS + 8 };

typedef struct machine {
    const pyri_program *p;
    const pyri_lanes *lanes;
    int ndim;
    const pyri_box *box;
    const uint8_t *const *src;
    size_t cell;    /* bytes */
    uint64_t first; /* cell of the box that the block begins with */
    size_t n;       /* cells in the block */
    uint64_t (*reg)[REG_CELLS];
} machine;

/* --- coordinates ---------------------------------------------------------- */

static void
ramp(uint64_t *d, uint64_t from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        d[i] = from + i;
}

static void
flat(uint64_t *d, uint64_t value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        d[i] = value;
}

/* The coordinates along an axis of n cells from number `first` on. */
static void
coordinates(const machine *m, int axis, uint64_t *d)
{
    const pyri_box *b = m->box;
    uint64_t inner = 1, lo = b->lo[axis], hi = b->hi[axis];
    for (int k = axis + 1; k < m->ndim; k++)
        inner *= b->hi[k] - b->lo[k];
    uint64_t at = lo + m->first / inner % (hi - lo);
    uint64_t left = inner - m->first % inner; /* cells that share it */
    for (size_t i = 0, n; i < m->n; i += n) {
        n = m->n - i;
        if (inner == 1) {
            n = n < hi - at ? n : (size_t)(hi - at);
            ramp(d + i, at, n);
            at += n;
        } else {
            n = n < left ? n : (size_t)left;
            flat(d + i, at, n);
            left = inner;
            at++;
        }
        at = at == hi ? lo : at;
    }
}

/* --- instructions --------------------------------------------------------- */

static const void *
source(const machine *m, uint8_t arg)
{
    return m->src[arg - PYRI_ARG_SOURCE] + m->first * m->cell;
}

/* Where an operand is; *constant if it is one. */
static const void *
operand(const machine *m, uint8_t arg, bool *constant)
{
    *constant = false;
    if (arg < PYRI_OP_MAX_REGS)
        return m->reg[arg];
    if (arg == PYRI_ARG_NONE)
        return NULL;
    if (arg >= PYRI_ARG_SOURCE)
        return source(m, arg);
    *constant = true;
    return &m->p->constant[arg - PYRI_ARG_CONST];
}

static void
step(const machine *m, const pyri_instr *i, void *d)
{
    const pyri_lanes *l = m->lanes;
    if (i->op == PYRI_LOAD_W) {
        l->load_w[m->p->cell](d, source(m, i->arg[0]), m->n);
    } else if (i->op == PYRI_LOAD_F) {
        l->load_f[m->p->cell](d, source(m, i->arg[0]), m->n);
    } else if (i->op == PYRI_COORD) {
        coordinates(m, i->arg[0], (uint64_t *)d);
    } else {
        const void *arg[3];
        int variant = 0;
        for (int k = 0; k < 3; k++) {
            bool constant;
            arg[k] = operand(m, i->arg[k], &constant);
            variant |= constant << k;
        }
        l->op[i->op][variant](d, arg[0], arg[1], arg[2], m->n);
    }
}

/* The last instruction writes to `direct` if that is not NULL. Returns where
 * the values are. */
static const void *
run_block(const machine *m, void *direct)
{
    const pyri_program *p = m->p;
    int last = p->code_size - 1;
    for (int i = 0; i < last; i++)
        step(m, &p->code[i], m->reg[p->code[i].dst]);
    if (last >= 0) {
        void *d = direct ? direct : m->reg[p->result];
        step(m, &p->code[last], d);
        return d;
    }
    bool constant;
    const void *values = operand(m, p->result, &constant);
    if (constant) {
        flat(m->reg[0], p->constant[p->result - PYRI_ARG_CONST], m->n);
        return m->reg[0];
    }
    return values;
}

/* --- boxes ---------------------------------------------------------------- */

static int
check_box(const pyri_program *p, int ndim, const pyri_box *box, uint64_t *cells)
{
    *cells = 0;
    if (ndim < 1 || ndim > PYR_MAX_DIMS)
        return pyri_fail(PYR_EINVAL, "a box of %d dimensions", ndim);
    if (p->axes >> ndim)
        return pyri_fail(PYR_EINVAL, "a program for more than %d dimensions",
                         ndim);
    for (int k = 0; k < ndim; k++)
        if (box->hi[k] <= box->lo[k])
            return 0;
    *cells = pyri_box_cells(ndim, box);
    return 0;
}

/* Cells that are in memory, 8 bytes each or less, cannot be more. */
static int
check_cells(const pyri_program *p, int ndim, const pyri_box *box,
            uint64_t *cells)
{
    int err = check_box(p, ndim, box, cells);
    if (err == 0 && *cells > SIZE_MAX / 16)
        return pyri_fail(PYR_EINVAL, "a box of too many cells");
    return err;
}

static machine
machine_of(const pyri_program *p, int ndim, const pyri_box *box,
           const void *const *src, uint64_t (*reg)[REG_CELLS])
{
    return (machine){.p = p,
                     .lanes = pyri_lanes_best(),
                     .ndim = ndim,
                     .box = box,
                     .src = (const uint8_t *const *)src,
                     .cell = pyri_type_size(p->cell),
                     .reg = reg};
}

/* COORD writes whole words at their alignment, so not to any output. */
static bool
writes_anywhere(const pyri_program *p, const void *out)
{
    return p->code_size == 0 || p->code[p->code_size - 1].op != PYRI_COORD ||
           (uintptr_t)out % 8 == 0;
}

static bool
is_native(pyri_kind kind, pyr_type type)
{
    return (kind == PYRI_REAL && type == PYR_F64) ||
           (kind == PYRI_INT && type == PYR_I64) ||
           (kind == PYRI_UINT && type == PYR_U64);
}

/* While a block is in work the next one can come from memory: instructions
 * would wait for it, the first one for cells, the last one for the output. */
static void
fetch_ahead(const machine *m, uint64_t cells, const uint8_t *out, size_t width)
{
    const pyri_program *p = m->p;
    uint64_t next = m->first + m->n;
    uint64_t n = cells - next < PYRI_OP_CELLS ? cells - next : PYRI_OP_CELLS;
    if (p->code_size < 3)
        return;
    for (int s = p->uses_x ? 0 : 1; s < p->sources; s++)
        for (size_t i = 0; i < n * m->cell; i += 64)
            __builtin_prefetch(m->src[s] + next * m->cell + i);
    for (size_t i = 0; i < n * width; i += 64)
        __builtin_prefetch(out + m->n * width + i, 1);
}

int
pyri_program_run(const pyri_program *p, int ndim, const pyri_box *box,
                 const void *const *src, pyr_type out_type, void *out)
{
    uint64_t reg[PYRI_OP_MAX_REGS][REG_CELLS] __attribute__((aligned(64)));
    uint64_t cells;
    int err;
    if (!pyri_type_valid((int)out_type))
        return pyri_fail(PYR_EINVAL, "cells of an unknown type");
    if ((err = check_cells(p, ndim, box, &cells)) < 0)
        return err;
    machine m = machine_of(p, ndim, box, src, reg);
    if (pyri_narrow_run(p, m.lanes, cells, m.src, out_type, out))
        return 0;
    pyri_cast_fn *store = m.lanes->store[p->kind][out_type];
    bool native = is_native(p->kind, out_type) && writes_anywhere(p, out);
    uint8_t *to = (uint8_t *)out;
    for (; m.first < cells;
         m.first += m.n, to += m.n * pyri_type_size(out_type)) {
        uint64_t left = cells - m.first;
        m.n = left < PYRI_OP_CELLS ? (size_t)left : PYRI_OP_CELLS;
        fetch_ahead(&m, cells, to, pyri_type_size(out_type));
        const void *values = run_block(&m, native ? to : NULL);
        if (!native || values != to)
            store(to, values, m.n);
    }
    return 0;
}

int
pyri_program_blocks(const pyri_program *p, int ndim, const pyri_box *box,
                    const void *const *src, pyri_block_fn *fn, void *ctx)
{
    uint64_t reg[PYRI_OP_MAX_REGS][REG_CELLS] __attribute__((aligned(64)));
    uint64_t cells;
    int err;
    if ((err = check_cells(p, ndim, box, &cells)) < 0)
        return err;
    machine m = machine_of(p, ndim, box, src, reg);
    for (; m.first < cells; m.first += m.n) {
        uint64_t left = cells - m.first;
        m.n = left < PYRI_OP_CELLS ? (size_t)left : PYRI_OP_CELLS;
        if (fn(ctx, run_block(&m, NULL), m.n, m.first) != 0)
            break;
    }
    return 0;
}

static int
keep_value(void *ctx, const void *values, size_t n, uint64_t first)
{
    memcpy(ctx, values, 8);
    return 1;
}

int
pyri_program_same(const pyri_program *p, int ndim, const pyri_box *box,
                  const void *const *src, uint64_t *bits, uint64_t *cells)
{
    const pyri_box one = {.hi = {1}};
    int err = check_box(p, ndim, box, cells);
    if (err < 0)
        return err;
    if (!pyri_program_uniform(p))
        return pyri_fail(PYR_EINVAL, "cells that are alike have coordinates "
                                     "that are not");
    return pyri_program_blocks(p, 1, &one, src, keep_value, bits);
}
