/*
 * cls/brief.h - what is to be known of a computed blob, in the 64 bytes that a
 * method which writes may answer. It fits for cells of up to four bytes, and
 * mostly not for others; then the client has to ask for it.
 *
 *   place (varint), checksum of the head (8), digest (16), NaNs, cells that are
 *   fill (varints), min and max (a cell each), sum (of integers a varint, sign
 *   in the lowest bit; of reals two doubles), sum of squares (8)
 */
#ifndef PYRI_CLS_BRIEF_H
#define PYRI_CLS_BRIEF_H

#include "base/bytes.h"
#include "chunk/frag.h"

#include <string.h>

enum { PYRI_BRIEF_BYTES = 63 }; /* one more tells what it is */

/* False if it does not fit; then there may be something in b. */
static inline bool
pyri_brief_encode(const pyri_frag *f, pyr_type type, const pyri_summary *s,
                  pyri_buf *b)
{
    uint8_t cell[8];
    int64_t sum = (int64_t)(uint64_t)s->sum_int;
    bool real = pyri_type_is_float(type);
    pyri_buf_varint(b, f->ref[1]);
    pyri_buf_u64(b, f->check);
    pyri_buf_u64(b, f->cells.lo);
    pyri_buf_u64(b, f->cells.hi);
    pyri_buf_varint(b, s->nans);
    pyri_buf_varint(b, s->count - s->not_fill);
    pyri_cell_store(type, cell, s->min);
    pyri_buf_add(b, cell, pyri_type_size(type));
    pyri_cell_store(type, cell, s->max);
    pyri_buf_add(b, cell, pyri_type_size(type));
    if (real) {
        pyri_buf_f64(b, s->sum);
        pyri_buf_f64(b, s->sum_lost);
    } else {
        pyri_buf_varint(b, (uint64_t)sum << 1 ^ (uint64_t)(sum >> 63));
    }
    pyri_buf_f64(b, s->squares);
    return b->size <= PYRI_BRIEF_BYTES && !s->equal &&
           (real || (pyri_u128)(__int128)sum == s->sum_int);
}

/* `cells` is how many there are, all stored. Asks nothing but that it is all
 * there: see to it that the summary makes sense. */
static inline bool
pyri_brief_decode(pyri_cursor *c, pyr_type type, uint64_t cells, pyri_frag *f,
                  pyri_summary *s)
{
    memset(f, 0, sizeof *f);
    memset(s, 0, sizeof *s);
    f->kind = PYRI_FRAG_PLAIN;
    f->stored = cells * pyri_type_size(type);
    f->ref[1] = pyri_cursor_varint(c);
    f->check = pyri_cursor_u64(c);
    f->cells.lo = pyri_cursor_u64(c);
    f->cells.hi = pyri_cursor_u64(c);
    s->count = cells;
    s->nans = pyri_cursor_varint(c);
    s->not_fill = cells - pyri_cursor_varint(c);
    const uint8_t *min = pyri_cursor_take(c, pyri_type_size(type));
    const uint8_t *max = pyri_cursor_take(c, pyri_type_size(type));
    if (!min || !max)
        return false;
    s->min = pyri_cell_load(type, min);
    s->max = pyri_cell_load(type, max);
    if (pyri_type_is_float(type)) {
        s->sum = pyri_cursor_f64(c);
        s->sum_lost = pyri_cursor_f64(c);
    } else {
        uint64_t v = pyri_cursor_varint(c);
        s->sum_int = (pyri_u128)(__int128)((int64_t)(v >> 1) ^
                                           -(int64_t)(v & 1));
    }
    s->squares = pyri_cursor_f64(c);
    return !c->failed && c->at == c->end;
}

#endif
