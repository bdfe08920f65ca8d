/*
 * base/buf.c - growing bytes, and reading them back with care.
 */
#include "base/buf.h"

#include "base/bytes.h"
#include "base/fail.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

void
pyri_buf_fini(pyri_buf *b)
{
    free(b->data);
    *b = (pyri_buf){0};
}

void
pyri_buf_reset(pyri_buf *b)
{
    b->size = 0;
    b->failed = false;
}

uint8_t *
pyri_buf_extend(pyri_buf *b, size_t size)
{
    if (b->failed || size > SIZE_MAX / 2 - b->size) {
        b->failed = true;
        return NULL;
    }
    if (b->size + size > b->room || !b->data) { /* also for no bytes */
        size_t room = b->room ? b->room * 2 : 256;
        while (room < b->size + size)
            room *= 2;
        uint8_t *data = pyri_sys_realloc(b->data, room);
        if (!data) {
            b->failed = true;
            return NULL;
        }
        b->data = data;
        b->room = room;
    }
    uint8_t *at = b->data + b->size;
    b->size += size;
    return at;
}

void
pyri_buf_add(pyri_buf *b, const void *data, size_t size)
{
    uint8_t *at = pyri_buf_extend(b, size);
    if (at && size)
        memcpy(at, data, size);
}

void
pyri_buf_u8(pyri_buf *b, uint8_t v)
{
    pyri_buf_add(b, &v, 1);
}

void
pyri_buf_u16(pyri_buf *b, uint16_t v)
{
    uint8_t *at = pyri_buf_extend(b, sizeof v);
    if (at)
        pyri_store16(at, v);
}

void
pyri_buf_u32(pyri_buf *b, uint32_t v)
{
    uint8_t *at = pyri_buf_extend(b, sizeof v);
    if (at)
        pyri_store32(at, v);
}

void
pyri_buf_u64(pyri_buf *b, uint64_t v)
{
    uint8_t *at = pyri_buf_extend(b, sizeof v);
    if (at)
        pyri_store64(at, v);
}

void
pyri_buf_f64(pyri_buf *b, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    pyri_buf_u64(b, bits);
}

void
pyri_buf_varint(pyri_buf *b, uint64_t v)
{
    uint8_t bytes[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        bytes[n++] = (uint8_t)(v | 0x80);
    bytes[n++] = (uint8_t)v;
    pyri_buf_add(b, bytes, n);
}

void
pyri_buf_str(pyri_buf *b, const char *s)
{
    size_t size = strlen(s);
    pyri_buf_varint(b, size);
    pyri_buf_add(b, s, size);
}

int
pyri_buf_check(const pyri_buf *b, const char *what)
{
    return b->failed ? pyri_fail_nomem(what) : 0;
}

const uint8_t *
pyri_cursor_take(pyri_cursor *c, size_t size)
{
    if (c->failed || size > (size_t)(c->end - c->at)) {
        c->failed = true;
        return NULL;
    }
    const uint8_t *at = c->at;
    c->at += size;
    return at;
}

uint8_t
pyri_cursor_u8(pyri_cursor *c)
{
    const uint8_t *at = pyri_cursor_take(c, 1);
    return at ? *at : 0;
}

uint16_t
pyri_cursor_u16(pyri_cursor *c)
{
    const uint8_t *at = pyri_cursor_take(c, 2);
    return at ? pyri_load16(at) : 0;
}

uint32_t
pyri_cursor_u32(pyri_cursor *c)
{
    const uint8_t *at = pyri_cursor_take(c, 4);
    return at ? pyri_load32(at) : 0;
}

uint64_t
pyri_cursor_u64(pyri_cursor *c)
{
    const uint8_t *at = pyri_cursor_take(c, 8);
    return at ? pyri_load64(at) : 0;
}

double
pyri_cursor_f64(pyri_cursor *c)
{
    uint64_t bits = pyri_cursor_u64(c);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

uint64_t
pyri_cursor_long_varint(pyri_cursor *c)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = pyri_cursor_u8(c);
        if (c->failed || (shift == 63 && byte > 1))
            break;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return v;
    }
    c->failed = true;
    return 0;
}

pyri_bytes
pyri_cursor_str(pyri_cursor *c)
{
    uint64_t size = pyri_cursor_varint(c);
    if (size > (uint64_t)(c->end - c->at))
        c->failed = true;
    const uint8_t *at = c->failed ? NULL : pyri_cursor_take(c, (size_t)size);
    return (pyri_bytes){at ? (const void *)at : "", at ? (size_t)size : 0};
}
