/*
 * cli/number.c - numbers, lists, types and cells as people write them.
 */
#include "cmd.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
} types[] = {
    [PYR_I8] = {"i8", 1},   [PYR_U8] = {"u8", 1},   [PYR_I16] = {"i16", 2},
    [PYR_U16] = {"u16", 2}, [PYR_I32] = {"i32", 4}, [PYR_U32] = {"u32", 4},
    [PYR_I64] = {"i64", 8}, [PYR_U64] = {"u64", 8}, [PYR_F32] = {"f32", 4},
    [PYR_F64] = {"f64", 8},
};

static const char *const codecs[] = {
    [PYR_CODEC_NONE] = "none",
    [PYR_CODEC_LZ4] = "lz4",
    [PYR_CODEC_ZSTD] = "zstd",
};

static const char *const kinds[] = {
    [PYR_KIND_CREATE] = "create",   [PYR_KIND_WRITE] = "write",
    [PYR_KIND_RESIZE] = "resize",   [PYR_KIND_APPEND] = "append",
    [PYR_KIND_COMPUTE] = "compute", [PYR_KIND_CLONE] = "clone",
    [PYR_KIND_NOTHING] = "nothing",
};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

const char *
type_name(pyr_type type)
{
    return (size_t)type < COUNT(types) ? types[type].name : "?";
}

size_t
type_size(pyr_type type)
{
    return (size_t)type < COUNT(types) ? types[type].size : 1;
}

bool
type_is_float(pyr_type type)
{
    return type == PYR_F32 || type == PYR_F64;
}

const char *
codec_name(pyr_codec codec)
{
    return (size_t)codec < COUNT(codecs) ? codecs[codec] : "?";
}

const char *
kind_name(pyr_kind kind)
{
    return (size_t)kind < COUNT(kinds) ? kinds[kind] : "?";
}

bool
mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static int
parse_digits(const char *text, size_t n, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++)
        if (!isdigit((unsigned char)text[i]) || !mul_u64(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
            return -1;
    *out = value;
    return n ? 0 : -1;
}

int
parse_u64(const char *text, uint64_t *out)
{
    return parse_digits(text, strlen(text), out);
}

int
parse_extents(const char *text, extents *out, char *why)
{
    *out = (extents){0};
    for (const char *p = text;; p++) {
        size_t n = strcspn(p, ",");
        if (out->n == PYR_MAX_DIMS) {
            snprintf(why, WHY_SIZE, "'%.60s' has more than %d numbers", text,
                     PYR_MAX_DIMS);
            return -1;
        }
        if (parse_digits(p, n, &out->of[out->n++]) < 0) {
            snprintf(why, WHY_SIZE,
                     "'%.60s' is not a list of whole numbers such as 100,200",
                     text);
            return -1;
        }
        p += n;
        if (!*p)
            return 0;
    }
}

int
parse_type(const char *text, pyr_type *out)
{
    for (size_t i = 0; i < COUNT(types); i++)
        if (strcmp(text, types[i].name) == 0) {
            *out = (pyr_type)i;
            return 0;
        }
    return -1;
}

int
parse_codec(const char *text, pyr_codec *out)
{
    for (size_t i = 0; i < COUNT(codecs); i++)
        if (strcmp(text, codecs[i]) == 0) {
            *out = (pyr_codec)i;
            return 0;
        }
    return -1;
}

static int
parse_float(const char *text, pyr_type type, void *out)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || isspace((unsigned char)*text))
        return -1;
    if (type == PYR_F64)
        memcpy(out, &value, sizeof value);
    else
        memcpy(out, &(float){strtof(text, NULL)}, sizeof(float));
    return 0;
}

/* A whole number with a sign, within the type's range. */
static int
parse_whole(const char *text, pyr_type type, void *out)
{
    bool is_signed = type == PYR_I8 || type == PYR_I16 || type == PYR_I32 ||
                     type == PYR_I64;
    bool minus = *text == '-';
    unsigned bits = 8 * (unsigned)type_size(type);
    uint64_t most = UINT64_MAX >> (64 - bits), value;
    if (parse_u64(text + (minus || *text == '+'), &value) < 0)
        return -1;
    if (is_signed)
        most = (most >> 1) + minus;
    else if (minus)
        most = 0;
    if (value > most)
        return -1;
    if (minus)
        value = 0 - value;
    switch (type_size(type)) {
    case 1: memcpy(out, &(uint8_t){(uint8_t)value}, 1); break;
    case 2: memcpy(out, &(uint16_t){(uint16_t)value}, 2); break;
    case 4: memcpy(out, &(uint32_t){(uint32_t)value}, 4); break;
    default: memcpy(out, &value, 8);
    }
    return 0;
}

int
parse_cell(const char *text, pyr_type type, void *out, char *why)
{
    memset(out, 0, 8);
    int err = type_is_float(type) ? parse_float(text, type, out)
                                  : parse_whole(text, type, out);
    if (err < 0)
        snprintf(why, WHY_SIZE, "'%.60s' is not a value of type %s", text,
                 type_name(type));
    return err;
}
