/*
 * base/buf.h - growing bytes, and reading them back with care.
 *
 * Appending never fails on the spot: a buffer that could not grow is `failed`
 * and stays so; the writer asks once, at the end, with pyri_buf_check().
 * Reading is the mirror image: a cursor that ran past the end is `failed` and
 * gives zeros from then on; the decoder asks once, at the end.
 */
#ifndef PYRI_BASE_BUF_H
#define PYRI_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pyri_bytes {
    const void *data;
    size_t size;
} pyri_bytes;

typedef struct pyri_buf {
    uint8_t *data;
    size_t size;
    size_t room;
    bool failed;
} pyri_buf; /* zero-initialise */

void pyri_buf_fini(pyri_buf *b);
void pyri_buf_reset(pyri_buf *b); /* empty, keeping the memory */

/* Room for `size` more bytes, to be filled in; NULL if there is no memory. */
uint8_t *pyri_buf_extend(pyri_buf *b, size_t size);
void pyri_buf_add(pyri_buf *b, const void *data, size_t size);
void pyri_buf_u8(pyri_buf *b, uint8_t v);
void pyri_buf_u16(pyri_buf *b, uint16_t v);
void pyri_buf_u32(pyri_buf *b, uint32_t v);
void pyri_buf_u64(pyri_buf *b, uint64_t v);
void pyri_buf_f64(pyri_buf *b, double v); /* its bits */
void pyri_buf_varint(pyri_buf *b, uint64_t v); /* LEB128, 1 to 10 bytes */
void pyri_buf_str(pyri_buf *b, const char *s); /* varint length, then bytes */

/* 0, or PYR_ENOMEM if any append failed. */
int pyri_buf_check(const pyri_buf *b, const char *what);

typedef struct pyri_cursor {
    const uint8_t *at, *end;
    bool failed;
} pyri_cursor;

static inline pyri_cursor
pyri_cursor_of(const void *data, size_t size)
{
    const uint8_t *at = (const uint8_t *)data;
    pyri_cursor c = {at, at + size, false}; /* also C++ */
    return c;
}

const uint8_t *pyri_cursor_take(pyri_cursor *c, size_t size); /* or NULL */
uint8_t pyri_cursor_u8(pyri_cursor *c);
uint16_t pyri_cursor_u16(pyri_cursor *c);
uint32_t pyri_cursor_u32(pyri_cursor *c);
uint64_t pyri_cursor_u64(pyri_cursor *c);
double pyri_cursor_f64(pyri_cursor *c);
uint64_t pyri_cursor_long_varint(pyri_cursor *c);
static inline uint64_t
pyri_cursor_varint(pyri_cursor *c)
{
    const uint8_t *at = c->at; /* most are of one byte or two */
    if (at < c->end && at[0] < 0x80) {
        c->at = at + 1;
        return c->failed ? 0 : at[0];
    }
    if (c->end - at >= 2 && at[1] < 0x80) {
        c->at = at + 2;
        return c->failed ? 0 : (at[0] & 0x7fu) | (uint64_t)at[1] << 7;
    }
    return pyri_cursor_long_varint(c);
}
/* The bytes of a string, not ended by zero. */
pyri_bytes pyri_cursor_str(pyri_cursor *c);

#endif
