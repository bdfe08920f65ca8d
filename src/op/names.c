/*
 * op/names.c - the names that expressions may use.
 */
#include "op/syntax.h"

#include <math.h>
#include <string.h>

static const pyri_function functions[] = {
    {"where", FN_WHERE, 3, 3, 0, 0},
    {"clip", FN_CLIP, 3, 3, 0, 0},
    {"min", FN_MIN, 2, 255, 0, 0},
    {"max", FN_MAX, 2, 255, 0, 0},
    {"abs", FN_ABS, 1, 1, 0, 0},
    {"sign", FN_SIGN, 1, 1, 0, 0},
    {"pow", FN_POW, 2, 2, 0, 0},
    {"sqrt", FN_REAL, 1, 1, PYRI_SQRT_F, 0},
    {"exp", FN_REAL, 1, 1, PYRI_EXP_F, 0},
    {"log", FN_REAL, 1, 1, PYRI_LOG_F, 0},
    {"log2", FN_REAL, 1, 1, PYRI_LOG2_F, 0},
    {"log10", FN_REAL, 1, 1, PYRI_LOG10_F, 0},
    {"sin", FN_REAL, 1, 1, PYRI_SIN_F, 0},
    {"cos", FN_REAL, 1, 1, PYRI_COS_F, 0},
    {"tan", FN_REAL, 1, 1, PYRI_TAN_F, 0},
    {"asin", FN_REAL, 1, 1, PYRI_ASIN_F, 0},
    {"acos", FN_REAL, 1, 1, PYRI_ACOS_F, 0},
    {"atan", FN_REAL, 1, 1, PYRI_ATAN_F, 0},
    {"atan2", FN_REAL, 2, 2, PYRI_ATAN2_F, 0},
    {"sinh", FN_REAL, 1, 1, PYRI_SINH_F, 0},
    {"cosh", FN_REAL, 1, 1, PYRI_COSH_F, 0},
    {"tanh", FN_REAL, 1, 1, PYRI_TANH_F, 0},
    {"hypot", FN_REAL, 2, 2, PYRI_HYPOT_F, 0},
    {"floor", FN_ROUNDING, 1, 1, PYRI_FLOOR_F, 0},
    {"ceil", FN_ROUNDING, 1, 1, PYRI_CEIL_F, 0},
    {"round", FN_ROUNDING, 1, 1, PYRI_ROUND_F, 0},
    {"trunc", FN_ROUNDING, 1, 1, PYRI_TRUNC_F, 0},
    {"isnan", FN_TEST, 1, 1, PYRI_ISNAN_F, 0},
    {"isinf", FN_TEST, 1, 1, PYRI_ISINF_F, 0},
    {"isfinite", FN_TEST, 1, 1, PYRI_ISFINITE_F, 1},
    {"i8", FN_CAST, 1, 1, 0, PYR_I8},
    {"u8", FN_CAST, 1, 1, 0, PYR_U8},
    {"i16", FN_CAST, 1, 1, 0, PYR_I16},
    {"u16", FN_CAST, 1, 1, 0, PYR_U16},
    {"i32", FN_CAST, 1, 1, 0, PYR_I32},
    {"u32", FN_CAST, 1, 1, 0, PYR_U32},
    {"i64", FN_CAST, 1, 1, 0, PYR_I64},
    {"u64", FN_CAST, 1, 1, 0, PYR_U64},
    {"f32", FN_CAST, 1, 1, 0, PYR_F32},
    {"f64", FN_CAST, 1, 1, 0, PYR_F64},
};

static const pyri_reducer reducers[] = {
    {"count", PYRI_RED_COUNT, 1},       {"sum", PYRI_RED_SUM, 1},
    {"mean", PYRI_RED_MEAN, 1},         {"var", PYRI_RED_VAR, 1},
    {"std", PYRI_RED_STD, 1},           {"min", PYRI_RED_MIN, 1},
    {"max", PYRI_RED_MAX, 1},           {"argmin", PYRI_RED_ARGMIN, 1},
    {"argmax", PYRI_RED_ARGMAX, 1},     {"any", PYRI_RED_ANY, 1},
    {"all", PYRI_RED_ALL, 1},           {"histogram", PYRI_RED_HISTOGRAM, 4},
    {"quantile", PYRI_RED_QUANTILE, 2},
};

static const pyri_constant constants[] = {
    {"pi", PYRI_REAL, false, 0x1.921fb54442d18p+1, 0},
    {"e", PYRI_REAL, false, 0x1.5bf0a8b145769p+1, 0},
    {"nan", PYRI_REAL, false, (double)NAN, 0},
    {"inf", PYRI_REAL, false, (double)INFINITY, 0},
    {"true", PYRI_INT, true, 0, 1},
    {"false", PYRI_INT, true, 0, 0},
};

#define FIND(table, wanted)                                                    \
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)                \
        if (strcmp(table[i].name, wanted) == 0)                                \
            return &table[i];                                                  \
    return NULL

const pyri_function *
pyri_function_named(const char *name)
{
    FIND(functions, name);
}

const pyri_reducer *
pyri_reducer_named(const char *name)
{
    FIND(reducers, name);
}

const pyri_constant *
pyri_constant_named(const char *name)
{
    FIND(constants, name);
}
