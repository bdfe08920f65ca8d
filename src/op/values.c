/*
 * op/values.c - typed values: conversions, constant folding, and instructions
 * that can be replaced by cheaper ones that give the same bits.
 */
#include "op/values.h"

#include "op/lanes.h"
#include "op/verify.h"

#include <math.h>
#include <string.h>

static int
new_value(pyri_parse *p, pyri_ir v)
{
    if (p->values == PYRI_MAX_VALUES)
        return pyri_parse_fail(p, 1, "the expression is too long");
    p->value[p->values] = v;
    return p->values++;
}

int
pyri_value_whole(pyri_parse *p, pyri_kind kind, uint64_t bits)
{
    return new_value(p, (pyri_ir){.what = VALUE_CONST,
                                  .kind = (uint8_t)kind,
                                  .bits = bits});
}

int
pyri_value_real(pyri_parse *p, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return pyri_value_whole(p, PYRI_REAL, bits);
}

bool
pyri_value_is_const(const pyri_parse *p, int v, uint64_t *bits)
{
    *bits = p->value[v].bits;
    return p->value[v].what == VALUE_CONST;
}

static bool
is_real_const(const pyri_parse *p, int v, double *out)
{
    memcpy(out, &p->value[v].bits, sizeof *out);
    return p->value[v].what == VALUE_CONST;
}

bool
pyri_value_not_negative(const pyri_parse *p, int v)
{
    const pyri_ir *ir = &p->value[v];
    return ir->kind == PYRI_UINT || ir->boolean ||
           (ir->what == VALUE_CONST && (int64_t)ir->bits >= 0);
}

/* --- instructions that are better said otherwise -------------------------- */

static bool
power_of_two(uint64_t v, uint64_t *exponent)
{
    *exponent = v ? (uint64_t)__builtin_ctzll(v) : 0;
    return v != 0 && (v & (v - 1)) == 0 && *exponent < 63;
}

/* Division by 2^k rounds down like a shift. */
static bool
shift_instead(pyri_parse *p, pyri_ir *ir)
{
    uint64_t b, k;
    if (ir->n != 2 || !pyri_value_is_const(p, ir->arg[1], &b) ||
        !power_of_two(b, &k))
        return false;
    switch (ir->op) {
    case PYRI_DIV_U: ir->op = PYRI_SHR_U; break;
    case PYRI_FLOORDIV_I: ir->op = PYRI_SHR_I; break;
    case PYRI_MOD_I:
    case PYRI_MOD_U:
        ir->op = PYRI_AND_W;
        k = b - 1;
        break;
    default: return false;
    }
    p->value[ir->arg[1]].bits = k;
    return true;
}

/* x / 2^k and x * 2^-k are the same number before they are rounded. */
static void
multiply_instead(pyri_parse *p, pyri_ir *ir)
{
    double b;
    int exponent;
    if (ir->op != PYRI_DIV_F || !is_real_const(p, ir->arg[1], &b) ||
        !isfinite(b) || b == 0)
        return;
    if (fabs(frexp(b, &exponent)) != 0.5 || exponent < -1000 || exponent > 1000)
        return;
    b = 1 / b;
    memcpy(&p->value[ir->arg[1]].bits, &b, sizeof b);
    ir->op = PYRI_MUL_F;
}

/* Which of the six that two in one have is op, if what is inside is its
 * argument k; -1: none. */
static int
outer_of(int op, int k)
{
    switch (op) {
    case PYRI_ADD_F: return PYRI_ADD_ADD_F;
    case PYRI_SUB_F: return k ? PYRI_ADD_RSUB_F : PYRI_ADD_SUB_F;
    case PYRI_MUL_F: return PYRI_ADD_MUL_F;
    case PYRI_DIV_F: return k ? PYRI_ADD_RDIV_F : PYRI_ADD_DIV_F;
    default: return -1;
    }
}

static int
inner_of(const pyri_ir *v)
{
    enum { ROW = PYRI_SUB_ADD_F - PYRI_ADD_ADD_F };
    if (v->what != VALUE_OP)
        return -1;
    return v->op == PYRI_ADD_F   ? 0
           : v->op == PYRI_SUB_F ? ROW
           : v->op == PYRI_MUL_F ? 2 * ROW
                                 : -1;
}

/* (a * b) + c in one go, and its like; it is still rounded twice. */
static void
fuse(pyri_parse *p, pyri_ir *ir)
{
    for (int k = 0; k < 2 && outer_of(ir->op, k) >= 0; k++) {
        const pyri_ir *v = &p->value[ir->arg[k]];
        int inner = inner_of(v);
        if (inner < 0)
            continue;
        uint16_t other = ir->arg[1 - k];
        ir->op = (uint8_t)(outer_of(ir->op, k) + inner);
        ir->n = 3;
        ir->arg[0] = v->arg[0];
        ir->arg[1] = v->arg[1];
        ir->arg[2] = other;
        return;
    }
}

/* --- instructions --------------------------------------------------------- */

static bool
fold(pyri_parse *p, const pyri_ir *ir, uint64_t *bits)
{
    const void *arg[3] = {NULL, NULL, NULL};
    for (int k = 0; k < ir->n; k++) {
        if (p->value[ir->arg[k]].what != VALUE_CONST)
            return false;
        arg[k] = &p->value[ir->arg[k]].bits;
    }
    pyri_lanes_baseline.op[ir->op][0](bits, arg[0], arg[1], arg[2], 1);
    return true;
}

static bool
gives_boolean(int op)
{
    return (op >= PYRI_EQ_W && op <= PYRI_LE_IU) ||
           (op >= PYRI_EQ_F && op <= PYRI_LE_F) ||
           (op >= PYRI_ISNAN_F && op <= PYRI_ISFINITE_F);
}

int
pyri_value_op(pyri_parse *p, int op, pyri_kind kind, int a, int b, int c)
{
    uint64_t bits;
    if (a < 0)
        return a;
    pyri_ir ir = {.what = VALUE_OP,
                  .kind = (uint8_t)kind,
                  .op = (uint8_t)op,
                  .n = (uint8_t)strlen(pyri_opcodes[op].args),
                  .boolean = gives_boolean(op)};
    if ((ir.n > 1 && b < 0) || (ir.n > 2 && c < 0))
        return PYR_EINVAL;
    ir.arg[0] = (uint16_t)a;
    ir.arg[1] = (uint16_t)(ir.n > 1 ? b : 0);
    ir.arg[2] = (uint16_t)(ir.n > 2 ? c : 0);
    if (op == PYRI_AND_W || op == PYRI_OR_W || op == PYRI_XOR_W)
        ir.boolean = p->value[a].boolean && p->value[b].boolean;
    if (fold(p, &ir, &bits)) {
        int v = pyri_value_whole(p, kind, bits);
        if (v >= 0)
            p->value[v].boolean = ir.boolean;
        return v;
    }
    if (!shift_instead(p, &ir)) {
        multiply_instead(p, &ir);
        fuse(p, &ir);
    }
    return new_value(p, ir);
}

/* --- conversions ---------------------------------------------------------- */

/* Cells become reals as they are loaded. */
static int
to_real(pyri_parse *p, int v)
{
    pyri_ir *ir = &p->value[v];
    if (ir->what == VALUE_SOURCE) {
        ir->kind = PYRI_REAL;
        return v;
    }
    return pyri_value_op(p, ir->kind == PYRI_UINT ? PYRI_U_TO_F : PYRI_I_TO_F,
                         PYRI_REAL, v, -1, -1);
}

static int
from_real(pyri_parse *p, int v, pyri_kind kind)
{
    return pyri_value_op(p, kind == PYRI_UINT ? PYRI_F_TO_U : PYRI_F_TO_I, kind,
                         v, -1, -1);
}

int
pyri_value_wrap(pyri_parse *p, int v, pyri_kind kind)
{
    if (v < 0 || p->value[v].kind == kind)
        return v;
    if (kind == PYRI_REAL)
        return to_real(p, v);
    if (p->value[v].kind == PYRI_REAL)
        return from_real(p, v, kind);
    p->value[v].kind = (uint8_t)kind;
    return v;
}

int
pyri_value_saturate(pyri_parse *p, int v, pyri_kind kind)
{
    if (v < 0 || p->value[v].kind == kind)
        return v;
    bool wholes = kind != PYRI_REAL && p->value[v].kind != PYRI_REAL;
    if (wholes && kind == PYRI_INT)
        return pyri_value_op(p, PYRI_U_SAT_I, kind, v, -1, -1);
    if (wholes && !pyri_value_not_negative(p, v))
        return pyri_value_op(p, PYRI_I_SAT_U, kind, v, -1, -1);
    return pyri_value_wrap(p, v, kind);
}

int
pyri_value_truth(pyri_parse *p, int v)
{
    if (v < 0 || p->value[v].boolean)
        return v;
    if (p->value[v].kind == PYRI_REAL)
        return pyri_value_op(p, PYRI_NE_F, PYRI_INT, v, pyri_value_real(p, 0),
                             -1);
    return pyri_value_op(p, PYRI_NE_W, PYRI_INT, v,
                         pyri_value_whole(p, PYRI_INT, 0), -1);
}

int
pyri_value_not(pyri_parse *p, int v)
{
    if (v < 0)
        return v;
    if (p->value[v].boolean) {
        int one = pyri_value_whole(p, PYRI_INT, 1);
        if (one >= 0)
            p->value[one].boolean = true;
        return pyri_value_op(p, PYRI_XOR_W, PYRI_INT, v, one, -1);
    }
    if (p->value[v].kind == PYRI_REAL)
        return pyri_value_op(p, PYRI_EQ_F, PYRI_INT, v, pyri_value_real(p, 0),
                             -1);
    return pyri_value_op(p, PYRI_EQ_W, PYRI_INT, v,
                         pyri_value_whole(p, PYRI_INT, 0), -1);
}
