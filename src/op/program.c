/*
 * op/program.c - programs as bytes, which go to where the cells are.
 *
 * Layout, little-endian:
 *
 *      0  'P' 'X'          magic
 *      2  1                version of the layout and of the instructions
 *      3  cell             type of the cells, pyr_type
 *      4  kind             of the result, pyri_kind
 *      5  regs             registers, at most 16
 *      6  consts           constants, at most 64
 *      7  sources          1 to 16; x is the first
 *      8  result           operand
 *      9  0
 *     10  code_size        2 bytes; instructions, at most 512
 *     12  versions         8 bytes for each source but x
 *         constants        8 bytes each: the bits of an integer or a double
 *         code             5 bytes each: op, dst, arg[0], arg[1], arg[2]
 *
 * An operand is 0 to 15: register; 0x40 + n: constant n; 0x80 + n: source n,
 * as it stands, where cells are of 64 bits and of the class that is asked for;
 * 0xff: none. LOAD_W and LOAD_F take a source of any type, COORD an axis.
 */
#include "op/op.h"

#include "base/fail.h"
#include "op/verify.h"

#include <assert.h>
#include <string.h>

enum { LAYOUT = 1, INSTR_BYTES = 5 };

void
pyri_program_encode(const pyri_program *p, pyri_buf *b)
{
    const uint8_t head[10] = {
        'P',     'X',       LAYOUT,     (uint8_t)p->cell, (uint8_t)p->kind,
        p->regs, p->consts, p->sources, p->result,        0};
    assert(p->calls == 0);
    pyri_buf_add(b, head, sizeof head);
    pyri_buf_u16(b, p->code_size);
    for (int i = 1; i < p->sources; i++)
        pyri_buf_u64(b, p->version[i]);
    for (int i = 0; i < p->consts; i++)
        pyri_buf_u64(b, p->constant[i]);
    for (int i = 0; i < p->code_size; i++) {
        const pyri_instr *c = &p->code[i];
        const uint8_t bytes[INSTR_BYTES] = {c->op, c->dst, c->arg[0], c->arg[1],
                                            c->arg[2]};
        pyri_buf_add(b, bytes, sizeof bytes);
    }
}

void
pyri_programs_encode(const pyri_program *const *list, int n, pyri_buf *b,
                     pyri_bytes *out)
{
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        pyri_program_encode(list[i], b);
        out[i].size = b->size - at;
        at = b->size;
    }
    at = 0;
    for (int i = 0; i < n && !b->failed; i++) {
        out[i].data = b->data + at;
        at += out[i].size;
    }
}

static const char *
read_head(pyri_program *p, pyri_cursor *c)
{
    p->cell = (pyr_type)pyri_cursor_u8(c);
    p->kind = (pyri_kind)pyri_cursor_u8(c);
    p->regs = pyri_cursor_u8(c);
    p->consts = pyri_cursor_u8(c);
    p->sources = pyri_cursor_u8(c);
    p->result = pyri_cursor_u8(c);
    uint8_t zero = pyri_cursor_u8(c);
    p->code_size = pyri_cursor_u16(c);
    if (c->failed)
        return "it is cut short";
    if (zero != 0)
        return "bytes that must be zero are not";
    if (p->consts > PYRI_OP_MAX_CONSTS || p->sources > PYRI_OP_MAX_SOURCES ||
        p->code_size > PYRI_OP_MAX_CODE)
        return "more than the limits allow";
    return NULL;
}

static const char *
read_body(pyri_program *p, pyri_cursor *c)
{
    for (int i = 1; i < p->sources; i++)
        p->version[i] = pyri_cursor_u64(c);
    for (int i = 0; i < p->consts; i++)
        p->constant[i] = pyri_cursor_u64(c);
    for (int i = 0; i < p->code_size; i++) {
        const uint8_t *at = pyri_cursor_take(c, INSTR_BYTES);
        if (at)
            p->code[i] = (pyri_instr){at[0], at[1], {at[2], at[3], at[4]}};
    }
    if (c->failed)
        return "it is cut short";
    return c->at == c->end ? NULL : "bytes follow it";
}

int
pyri_program_decode(const void *bytes, size_t size, pyri_program *p)
{
    pyri_cursor c = pyri_cursor_of(bytes, size);
    const uint8_t *magic = pyri_cursor_take(&c, 3);
    const char *wrong = NULL;
    memset(p, 0, sizeof *p);
    if (!magic || magic[0] != 'P' || magic[1] != 'X')
        return pyri_fail(PYR_ECORRUPT, "these bytes are no program");
    if (magic[2] != LAYOUT)
        return pyri_fail(PYR_EFORMAT, "program of an unknown layout %u",
                         magic[2]);
    if (!(wrong = read_head(p, &c)) && !(wrong = read_body(p, &c)))
        wrong = pyri_program_verify(p);
    if (!wrong)
        return 0;
    memset(p, 0, sizeof *p);
    return pyri_fail(PYR_ECORRUPT, "program refused: %s", wrong);
}
