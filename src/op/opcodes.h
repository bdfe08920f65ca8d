/*
 * op/opcodes.h - the instructions of programs.
 *
 * X(NAME, result, arguments, cost): classes are W (64 bits of an integer, of
 * either sign) and F (a double); cost is a guess in ns per 1000 cells. The
 * number of an instruction is its place: it is stored and never changes, so
 * new ones go to the end. An argument may be a constant where the loops in
 * lanes.inc have a variant for it.
 *
 * Also understood, by number: where an integer means it, _I is signed and _U
 * unsigned; W operations are the same for both.
 */
#ifndef PYRI_OP_OPCODES_H
#define PYRI_OP_OPCODES_H

#define PYRI_OPCODES(X)                                                        \
    /* sources to registers; arg[0] is a source, or an axis */                 \
    X(LOAD_W, W, "S", 300)                                                     \
    X(LOAD_F, F, "S", 300)                                                     \
    X(COORD, W, "A", 300)                                                      \
    /* between classes; the saturating ones say so */                          \
    X(I_TO_F, F, "W", 500)                                                     \
    X(U_TO_F, F, "W", 500)                                                     \
    X(F_TO_I, W, "F", 1500) /* saturates; NaN is 0 */                          \
    X(F_TO_U, W, "F", 1500)                                                    \
    X(F_TO_F32, F, "F", 300)                                                   \
    X(I_SAT_U, W, "W", 300)                                                    \
    X(U_SAT_I, W, "W", 300)                                                    \
    /* integers */                                                             \
    X(ADD_W, W, "WW", 300)                                                     \
    X(SUB_W, W, "WW", 300)                                                     \
    X(MUL_W, W, "WW", 600)                                                     \
    X(SQR_W, W, "W", 600)                                                      \
    X(DIV_I, W, "WW", 8000)                                                    \
    X(DIV_U, W, "WW", 8000)                                                    \
    X(FLOORDIV_I, W, "WW", 8000)                                               \
    X(MOD_I, W, "WW", 8000)                                                    \
    X(MOD_U, W, "WW", 8000)                                                    \
    X(POW_I, W, "WW", 50000)                                                   \
    X(POW_U, W, "WW", 50000)                                                   \
    X(POW_UI, W, "WW", 50000) /* unsigned base, signed exponent */             \
    X(MIN_I, W, "WW", 300)                                                     \
    X(MIN_U, W, "WW", 400)                                                     \
    X(MAX_I, W, "WW", 300)                                                     \
    X(MAX_U, W, "WW", 400)                                                     \
    X(AND_W, W, "WW", 300)                                                     \
    X(OR_W, W, "WW", 300)                                                      \
    X(XOR_W, W, "WW", 300)                                                     \
    X(SHL_W, W, "WW", 400)                                                     \
    X(SHR_I, W, "WW", 800)                                                     \
    X(SHR_U, W, "WW", 400)                                                     \
    X(ABS_I, W, "W", 300)                                                      \
    X(SIGN_I, W, "W", 400)                                                     \
    X(EQ_W, W, "WW", 300)                                                      \
    X(NE_W, W, "WW", 300)                                                      \
    X(LT_I, W, "WW", 300)                                                      \
    X(LE_I, W, "WW", 300)                                                      \
    X(LT_U, W, "WW", 400)                                                      \
    X(LE_U, W, "WW", 400)                                                      \
    X(EQ_IU, W, "WW", 400) /* signed with unsigned, by value */                \
    X(LT_IU, W, "WW", 400)                                                     \
    X(LE_IU, W, "WW", 400)                                                     \
    /* reals */                                                                \
    X(ADD_F, F, "FF", 300)                                                     \
    X(SUB_F, F, "FF", 300)                                                     \
    X(MUL_F, F, "FF", 300)                                                     \
    X(SQR_F, F, "F", 300)                                                      \
    X(DIV_F, F, "FF", 1500)                                                    \
    X(FLOORDIV_F, F, "FF", 2000)                                               \
    X(MOD_F, F, "FF", 1000000)                                                 \
    X(POW_F, F, "FF", 50000)                                                   \
    X(MIN_F, F, "FF", 300)                                                     \
    X(MAX_F, F, "FF", 300)                                                     \
    X(ATAN2_F, F, "FF", 50000)                                                 \
    X(HYPOT_F, F, "FF", 20000)                                                 \
    X(EQ_F, W, "FF", 300)                                                      \
    X(NE_F, W, "FF", 300)                                                      \
    X(LT_F, W, "FF", 300)                                                      \
    X(LE_F, W, "FF", 300)                                                      \
    X(NEG_F, F, "F", 300)                                                      \
    X(ABS_F, F, "F", 300)                                                      \
    X(SIGN_F, F, "F", 400)                                                     \
    X(SQRT_F, F, "F", 3000)                                                    \
    X(EXP_F, F, "F", 10000)                                                    \
    X(LOG_F, F, "F", 10000)                                                    \
    X(LOG2_F, F, "F", 10000)                                                   \
    X(LOG10_F, F, "F", 20000)                                                  \
    X(SIN_F, F, "F", 30000)                                                    \
    X(COS_F, F, "F", 30000)                                                    \
    X(TAN_F, F, "F", 40000)                                                    \
    X(ASIN_F, F, "F", 30000)                                                   \
    X(ACOS_F, F, "F", 30000)                                                   \
    X(ATAN_F, F, "F", 30000)                                                   \
    X(SINH_F, F, "F", 30000)                                                   \
    X(COSH_F, F, "F", 30000)                                                   \
    X(TANH_F, F, "F", 30000)                                                   \
    X(FLOOR_F, F, "F", 500)                                                    \
    X(CEIL_F, F, "F", 500)                                                     \
    X(ROUND_F, F, "F", 500) /* halves to even */                               \
    X(TRUNC_F, F, "F", 500)                                                    \
    X(ISNAN_F, W, "F", 300)                                                    \
    X(ISINF_F, W, "F", 300)                                                    \
    X(ISFINITE_F, W, "F", 300)                                                 \
    /* two in one: c OUTER (a INNER b), rounded twice; see values.c */         \
    X(ADD_ADD_F, F, "FFF", 400)                                                \
    X(ADD_SUB_F, F, "FFF", 400)                                                \
    X(ADD_RSUB_F, F, "FFF", 400)                                               \
    X(ADD_MUL_F, F, "FFF", 400)                                                \
    X(ADD_DIV_F, F, "FFF", 1500)                                               \
    X(ADD_RDIV_F, F, "FFF", 1500)                                              \
    X(SUB_ADD_F, F, "FFF", 400)                                                \
    X(SUB_SUB_F, F, "FFF", 400)                                                \
    X(SUB_RSUB_F, F, "FFF", 400)                                               \
    X(SUB_MUL_F, F, "FFF", 400)                                                \
    X(SUB_DIV_F, F, "FFF", 1500)                                               \
    X(SUB_RDIV_F, F, "FFF", 1500)                                              \
    X(MUL_ADD_F, F, "FFF", 400)                                                \
    X(MUL_SUB_F, F, "FFF", 400)                                                \
    X(MUL_RSUB_F, F, "FFF", 400)                                               \
    X(MUL_MUL_F, F, "FFF", 400)                                                \
    X(MUL_DIV_F, F, "FFF", 1500)                                               \
    X(MUL_RDIV_F, F, "FFF", 1500)                                              \
    /* arg[0] ? arg[1] : arg[2] */                                             \
    X(WHERE_W, W, "WWW", 400)                                                  \
    X(WHERE_F, F, "WFF", 400)

enum pyri_opcode {
#define PYRI_OPCODE_NAME(name, result, args, cost) PYRI_##name,
    PYRI_OPCODES(PYRI_OPCODE_NAME)
#undef PYRI_OPCODE_NAME
        PYRI_OPS
};

#endif
