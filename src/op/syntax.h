/*
 * op/syntax.h - from text to a tree, shared by the files that do it.
 *
 *   text -> lexer.c -> parser.c -> nodes -> lower.c -> values -> emit.c
 *                                    |       (typed, folded)       |
 *                                 canon.c                       program
 *
 * Everything lives in one pyri_parse of fixed size. A node is made after its
 * operands, so that going through them in order goes from the leaves up.
 */
#ifndef PYRI_OP_SYNTAX_H
#define PYRI_OP_SYNTAX_H

#include "op/op.h"
#include "op/opcodes.h"

/* Operators, and the other tokens after them. */
typedef enum pyri_token {
    TOK_OR,
    TOK_AND,
    TOK_EQ,
    TOK_NE,
    TOK_LT,
    TOK_LE,
    TOK_GT,
    TOK_GE,
    TOK_BIT_OR,
    TOK_BIT_XOR,
    TOK_BIT_AND,
    TOK_SHL,
    TOK_SHR,
    TOK_ADD,
    TOK_SUB,
    TOK_MUL,
    TOK_DIV,
    TOK_FLOORDIV,
    TOK_MOD,
    TOK_POW,
    TOK_NOT,
    TOK_INVERT,
    TOK_OPERATORS,
    TOK_NOT_WORD = TOK_OPERATORS,
    TOK_OPEN,
    TOK_CLOSE,
    TOK_COMMA,
    TOK_ASSIGN,
    TOK_AT,
    TOK_INT,
    TOK_REAL,
    TOK_NAME,
    TOK_END
} pyri_token;

/* How tightly operators bind; comparisons do not chain. */
enum {
    PREC_OR = 1,
    PREC_AND,
    PREC_NOT,
    PREC_COMPARE,
    PREC_BIT_OR,
    PREC_BIT_XOR,
    PREC_BIT_AND,
    PREC_SHIFT,
    PREC_SUM,
    PREC_PRODUCT,
    PREC_UNARY,
    PREC_POWER,
    PREC_ATOM
};

typedef struct pyri_operator {
    const char *text;
    uint8_t prec;
} pyri_operator;
extern const pyri_operator pyri_operators[TOK_OPERATORS];

/* Names (names.c). */
typedef enum pyri_function_id {
    FN_WHERE,
    FN_CLIP,
    FN_MIN,
    FN_MAX,
    FN_ABS,
    FN_SIGN,
    FN_POW,
    FN_REAL,     /* of reals, by `op` */
    FN_ROUNDING, /* likewise, but integers stay as they are */
    FN_TEST,     /* likewise, gives 0 or 1; of integers it gives `type` */
    FN_CAST      /* to `type` */
} pyri_function_id;

typedef struct pyri_function {
    const char *name;
    uint8_t id, least, most; /* arguments */
    uint8_t op, type;
} pyri_function;

typedef struct pyri_reducer {
    const char *name;
    uint8_t op, args;
} pyri_reducer;

typedef struct pyri_constant {
    const char *name;
    pyri_kind kind;
    bool boolean;
    double real;
    uint64_t whole;
} pyri_constant;

const pyri_function *pyri_function_named(const char *name);
const pyri_reducer *pyri_reducer_named(const char *name);
const pyri_constant *pyri_constant_named(const char *name);

/* Nodes. */
typedef enum pyri_node_what {
    NODE_INT,
    NODE_REAL,
    NODE_CONSTANT,
    NODE_CELL,
    NODE_COORD,
    NODE_UNARY,
    NODE_BINARY,
    NODE_FUNCTION,
    NODE_REDUCE,
    NODE_CALL
} pyri_node_what;

enum { PYRI_NODE_ARGS = 4 };

typedef struct pyri_node {
    uint8_t what;
    uint8_t token; /* of operators; axis of coordinates */
    uint8_t n;
    bool snapshot; /* of a cell: x@value */
    uint16_t arg[PYRI_NODE_ARGS];
    uint32_t column;
    union {
        uint64_t whole; /* also which call */
        double real;
        const pyri_function *function;
        const pyri_reducer *reducer;
        const pyri_constant *constant;
    };
} pyri_node;

/* Values: what nodes compute, typed, with constants folded. Each is used by
 * one other value at most. */
typedef enum pyri_value_what {
    VALUE_CONST,
    VALUE_SOURCE,
    VALUE_COORD,
    VALUE_OP
} pyri_value_what;

typedef struct pyri_ir {
    uint8_t what, kind, op, n;
    bool boolean;  /* it is 0 or 1 */
    uint8_t index; /* of a source, or axis */
    uint8_t need;  /* registers; emit.c */
    uint16_t arg[3];
    uint64_t bits; /* of a constant */
} pyri_ir;

enum { PYRI_MAX_VALUES = 8192 };

typedef struct pyri_parse {
    const char *text;
    pyr_type cell;
    int ndim;
    pyri_expr *out;
    pyri_expr_error error;

    /* lexer.c: the token at hand */
    const char *at; /* after it */
    pyri_token token;
    unsigned column;
    uint64_t whole;
    double real;
    char name[PYRI_CALL_MAX_NAME + 1];

    /* parser.c */
    int depth, nodes;
    int special;  /* the reduction, or -1 */
    bool in_call; /* among the parameters of a kernel */
    /* nodes of the parameters of calls */
    uint16_t params[PYRI_EXPR_MAX_CALLS][PYRI_CALL_MAX_PARAMS];
    pyri_node node[PYRI_EXPR_MAX_NODES];

    /* lower.c */
    int values;
    uint16_t value_of[PYRI_EXPR_MAX_NODES];
    pyri_ir value[PYRI_MAX_VALUES];

    /* emit.c */
    uint32_t used; /* registers, as bits */
} pyri_parse;

/* Note an error; returns PYR_EINVAL. The first one counts. */
int pyri_parse_fail(pyri_parse *p, unsigned column, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Go to the next token. 0 or PYR_EINVAL. */
int pyri_lex(pyri_parse *p);
/* The whole text: returns the root, or PYR_EINVAL. */
int pyri_parse_text(pyri_parse *p);
/* The parameters of a call are known: note them. Returns the number of the
 * first call that is the same, or PYR_EINVAL. */
int pyri_call_read(pyri_parse *p, const pyri_node *node);
/* Values of all nodes; each node's one is in value_of. */
int pyri_lower(pyri_parse *p);
/* The program that computes a value. */
int pyri_emit(pyri_parse *p, int value, pyri_program *out);
void pyri_canon(const pyri_parse *p, int root, pyri_buf *b);

#endif
