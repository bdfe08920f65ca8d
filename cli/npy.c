/*
 * cli/npy.c - the header of NumPy's .npy files, formats 1.0, 2.0 and 3.0.
 *
 *   offset  bytes  what
 *   0       6      "\x93NUMPY"
 *   6       2      major and minor version
 *   8       2 | 4  length of the header, little-endian; 4 bytes from 2.0 on
 *   10 | 12        a Python dictionary, padded with spaces, ended by '\n'
 *   then           the cells
 *
 * The dictionary is taken strictly: the keys descr, fortran_order and shape,
 * each once and no other. Files come from anywhere, so lengths, products and
 * every character are checked before they are used.
 */
#include "cmd.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

typedef struct cursor {
    const char *p, *end;
    char *why;
} cursor;

static const uint16_t one = 1;

static bool
machine_is_little(void)
{
    return *(const uint8_t *)&one == 1;
}

__attribute__((format(printf, 2, 3))) static int
refuse(char *why, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(why, WHY_SIZE, format, list);
    va_end(list);
    return -1;
}

int
npy_prefix(const uint8_t *bytes, size_t n, size_t *start, size_t *length,
           char *why)
{
    if (n < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return refuse(why, "not a .npy file");
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
        return refuse(why, ".npy format %d.%d is not known", bytes[6],
                      bytes[7]);
    *start = bytes[6] == 1 ? 10 : 12;
    if (n < *start)
        return refuse(why, ".npy header is cut short");
    *length = bytes[8] | (size_t)bytes[9] << 8;
    if (bytes[6] > 1)
        *length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (*length > NPY_MAX_HEADER)
        return refuse(why, ".npy header of %zu bytes is too long", *length);
    return 0;
}

static void
skip_blank(cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\t'))
        c->p++;
}

static bool
take(cursor *c, char wanted)
{
    skip_blank(c);
    if (c->p == c->end || *c->p != wanted)
        return false;
    c->p++;
    return true;
}

static int
expect(cursor *c, char wanted)
{
    return take(c, wanted) ? 0
                           : refuse(c->why, ".npy header lacks a '%c'", wanted);
}

/* A quoted string without escapes, of printable ASCII. */
static int
take_string(cursor *c, char *out, size_t n)
{
    skip_blank(c);
    char quote = c->p < c->end ? *c->p : 0;
    if (quote != '\'' && quote != '"')
        return refuse(c->why, ".npy header lacks a string");
    size_t length = 0;
    for (c->p++; c->p < c->end && *c->p != quote; c->p++) {
        if (*c->p < ' ' || *c->p > '~' || *c->p == '\\' || length + 1 >= n)
            return refuse(c->why, ".npy header has an odd string");
        out[length++] = *c->p;
    }
    out[length] = 0;
    if (c->p == c->end)
        return refuse(c->why, ".npy header has an open string");
    c->p++;
    return 0;
}

static int
set_type(cursor *c, const char *descr, npy *out)
{
    static const struct {
        const char *code;
        pyr_type type;
    } known[] = {
        {"i1", PYR_I8},  {"u1", PYR_U8},  {"b1", PYR_U8},  {"i2", PYR_I16},
        {"u2", PYR_U16}, {"i4", PYR_I32}, {"u4", PYR_U32}, {"i8", PYR_I64},
        {"u8", PYR_U64}, {"f4", PYR_F32}, {"f8", PYR_F64},
    };
    char order = descr[0];
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (!order || strcmp(descr + 1, known[i].code) != 0)
            continue;
        bool wide = type_size(known[i].type) > 1;
        if (!strchr("<>=|", order) || (wide && order == '|'))
            break;
        out->type = known[i].type;
        out->swap = wide && order == (machine_is_little() ? '>' : '<');
        return 0;
    }
    return refuse(c->why, "cells of NumPy type '%s' are not supported", descr);
}

static int
take_descr(cursor *c, npy *out)
{
    char descr[32];
    skip_blank(c);
    if (c->p < c->end && *c->p == '[')
        return refuse(c->why, "structured NumPy types are not supported");
    int err = take_string(c, descr, sizeof descr);
    return err ? err : set_type(c, descr, out);
}

static int
take_order(cursor *c, npy *out)
{
    skip_blank(c);
    size_t left = (size_t)(c->end - c->p);
    if (left >= 4 && memcmp(c->p, "True", 4) == 0) {
        out->fortran = true;
        c->p += 4;
    } else if (left >= 5 && memcmp(c->p, "False", 5) == 0) {
        out->fortran = false;
        c->p += 5;
    } else {
        return refuse(c->why, ".npy header: fortran_order is not True or "
                              "False");
    }
    return 0;
}

static int
take_extent(cursor *c, npy *out)
{
    uint64_t value = 0;
    if (c->p == c->end || !isdigit((unsigned char)*c->p))
        return refuse(c->why, ".npy header: shape is not a tuple of numbers");
    for (; c->p < c->end && isdigit((unsigned char)*c->p); c->p++)
        if (!mul_u64(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*c->p - '0'), &value))
            return refuse(c->why, ".npy header: shape is too large");
    if (c->p < c->end && *c->p == 'L') /* of Python 2 */
        c->p++;
    if (out->ndim == PYR_MAX_DIMS)
        return refuse(c->why, ".npy header: more than %d dimensions",
                      PYR_MAX_DIMS);
    out->shape[out->ndim++] = value;
    return 0;
}

/* A tuple: (), (3,), (3, 4) or (3, 4,). */
static int
take_shape(cursor *c, npy *out)
{
    int err = expect(c, '(');
    out->ndim = 0;
    while (!err && !take(c, ')')) {
        skip_blank(c);
        err = take_extent(c, out);
        if (!err && !take(c, ',')) {
            if (out->ndim == 1)
                return refuse(c->why, ".npy header: shape is not a tuple");
            return expect(c, ')');
        }
    }
    return err;
}

/* One pair of the dictionary; `seen` has a bit for each key. */
static int
take_pair(cursor *c, npy *out, unsigned *seen)
{
    static const struct {
        const char *name;
        int (*take)(cursor *c, npy *out);
    } keys[] = {
        {"descr", take_descr},
        {"fortran_order", take_order},
        {"shape", take_shape},
    };
    char key[32];
    int err = take_string(c, key, sizeof key);
    if (err)
        return err;
    for (unsigned i = 0; i < 3; i++) {
        if (strcmp(key, keys[i].name) != 0)
            continue;
        if (*seen & 1u << i)
            return refuse(c->why, ".npy header has '%s' twice", key);
        *seen |= 1u << i;
        return expect(c, ':') ? -1 : keys[i].take(c, out);
    }
    return refuse(c->why, ".npy header has an unknown key '%s'", key);
}

static int
measure(npy *out, char *why)
{
    uint64_t cells = 1;
    bool empty = false, fits = true;
    for (int d = 0; d < out->ndim; d++) {
        if (out->shape[d] == 0)
            empty = true;
        else
            fits = fits && mul_u64(cells, out->shape[d], &cells);
    }
    fits = fits && mul_u64(cells, type_size(out->type), &out->bytes);
    if (!fits || out->bytes > INT64_MAX)
        return refuse(why, ".npy header: shape is too large");
    out->cells = empty ? 0 : cells;
    out->bytes = empty ? 0 : out->bytes;
    return 0;
}

int
npy_header(const char *text, size_t length, npy *out, char *why)
{
    cursor c = {text, text + length, why};
    unsigned seen = 0;
    *out = (npy){0};
    int err = expect(&c, '{');
    while (!err && !take(&c, '}')) {
        err = take_pair(&c, out, &seen);
        if (!err && !take(&c, ',')) {
            err = expect(&c, '}');
            break;
        }
    }
    if (err)
        return err;
    skip_blank(&c);
    if (c.p != c.end)
        return refuse(why, ".npy header has more than one dictionary");
    if (seen != 7)
        return refuse(why, ".npy header lacks descr, fortran_order or shape");
    return measure(out, why);
}

size_t
npy_format(pyr_type type, int ndim, const uint64_t *shape, char *out)
{
    static const char letters[] = "iuiuiuiuff";
    size_t size = type_size(type);
    char order = size == 1 ? '|' : machine_is_little() ? '<' : '>';
    int n = 10;
    n += snprintf(out + n, NPY_MAX_OWN - (size_t)n,
                  "{'descr': '%c%c%zu', 'fortran_order': False, 'shape': (",
                  order, letters[type], size);
    for (int d = 0; d < ndim; d++)
        n += snprintf(out + n, NPY_MAX_OWN - (size_t)n, "%s%llu", d ? ", " : "",
                      (unsigned long long)shape[d]);
    n += snprintf(out + n, NPY_MAX_OWN - (size_t)n, "%s), }",
                  ndim == 1 ? "," : "");
    size_t whole = ((size_t)n + 1 + 63) / 64 * 64;
    memset(out + n, ' ', whole - (size_t)n);
    out[whole - 1] = '\n';
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)((whole - 10) & 0xff);
    out[9] = (char)((whole - 10) >> 8);
    return whole;
}
