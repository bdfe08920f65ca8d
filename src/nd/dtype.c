/*
 * nd/dtype.c - cell types: their sizes, names and single cells.
 */
#include "nd/nd.h"

#include <string.h>

static const struct {
    const char *name;
    uint8_t size;
} types[] = {
    [PYR_I8] = {"i8", 1},   [PYR_U8] = {"u8", 1},   [PYR_I16] = {"i16", 2},
    [PYR_U16] = {"u16", 2}, [PYR_I32] = {"i32", 4}, [PYR_U32] = {"u32", 4},
    [PYR_I64] = {"i64", 8}, [PYR_U64] = {"u64", 8}, [PYR_F32] = {"f32", 4},
    [PYR_F64] = {"f64", 8},
};

bool
pyri_type_valid(int type)
{
    return type >= PYR_I8 && type <= PYR_F64;
}

size_t
pyri_type_size(pyr_type type)
{
    return types[type].size;
}

const char *
pyri_type_name(pyr_type type)
{
    return pyri_type_valid((int)type) ? types[type].name : "unknown";
}

uint64_t
pyri_cell_load(pyr_type type, const void *cell)
{
    uint8_t v8;
    uint16_t v16;
    uint32_t v32;
    uint64_t v64;
    switch (types[type].size) {
    case 1: memcpy(&v8, cell, 1); return v8;
    case 2: memcpy(&v16, cell, 2); return v16;
    case 4: memcpy(&v32, cell, 4); return v32;
    default: memcpy(&v64, cell, 8); return v64;
    }
}

void
pyri_cell_store(pyr_type type, void *cell, uint64_t bits)
{
    uint8_t v8 = (uint8_t)bits;
    uint16_t v16 = (uint16_t)bits;
    uint32_t v32 = (uint32_t)bits;
    switch (types[type].size) {
    case 1: memcpy(cell, &v8, 1); break;
    case 2: memcpy(cell, &v16, 2); break;
    case 4: memcpy(cell, &v32, 4); break;
    default: memcpy(cell, &bits, 8); break;
    }
}

double
pyri_cell_double(pyr_type type, uint64_t bits)
{
    float f32;
    double f64;
    uint32_t low = (uint32_t)bits;
    switch (type) {
    case PYR_I8: return (int8_t)bits;
    case PYR_I16: return (int16_t)bits;
    case PYR_I32: return (int32_t)bits;
    case PYR_I64: return (double)(int64_t)bits;
    case PYR_F32: memcpy(&f32, &low, 4); return (double)f32;
    case PYR_F64: memcpy(&f64, &bits, 8); return f64;
    default: return (double)bits;
    }
}
