/*
 * op/verify.h - what programs are made of, shared inside the layer.
 */
#ifndef PYRI_OP_VERIFY_H
#define PYRI_OP_VERIFY_H

#include "op/op.h"
#include "op/opcodes.h"

typedef struct pyri_opcode_info {
    char result;  /* class: 'W' or 'F' */
    char args[4]; /* classes; 'S': a source, 'A': an axis */
    uint32_t cost;
} pyri_opcode_info;

extern const pyri_opcode_info pyri_opcodes[PYRI_OPS];

static inline char
pyri_kind_class(pyri_kind kind)
{
    return kind == PYRI_REAL ? 'F' : 'W';
}

/* True if cells of a type can be used as they stand where a class is asked. */
static inline bool
pyri_type_is_class(pyr_type type, char class_)
{
    if (class_ == 'F')
        return type == PYR_F64;
    return type == PYR_I64 || type == PYR_U64;
}

static inline pyri_kind
pyri_type_kind(pyr_type type)
{
    if (type == PYR_F32 || type == PYR_F64)
        return PYRI_REAL;
    return type == PYR_U64 ? PYRI_UINT : PYRI_INT;
}

/* NULL, or what is wrong with the program. Sets what is derived from its code:
 * uses_x, identity, axes, cost. */
const char *pyri_program_verify(pyri_program *p);

#endif
