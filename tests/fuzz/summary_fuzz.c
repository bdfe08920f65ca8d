/*
 * fuzz/summary_fuzz.c - stored summaries.
 *
 * Input: type (1), fill (8), two summaries (72 each).
 */
#include "fuzz/fuzz.h"

#include "chunk/chunk.h"

static bool
decode(pyri_cursor *in, pyr_type type, pyri_summary *out)
{
    uint8_t bytes[PYRI_SUMMARY_BYTES] = {0}, again[PYRI_SUMMARY_BYTES];
    const uint8_t *at = pyri_cursor_take(in, sizeof bytes);
    uint64_t bits, count;
    if (at)
        memcpy(bytes, at, sizeof bytes);
    int err = pyri_summary_decode(out, type, bytes);
    if (err < 0) {
        must_refuse(err);
        MUST(out->count == 0);
        return false;
    }
    MUST(out->nans <= out->count && out->not_fill <= out->count);
    if (pyri_summary_peek_same(bytes, &bits, &count))
        MUST(out->equal && out->min == bits && out->count == count);
    pyri_summary_encode(out, type, again);
    if (out->count)
        MUST(memcmp(bytes, again, sizeof bytes) == 0);
    return true;
}

/* What the library makes of summaries it accepts, it accepts. */
static void
must_be_good(const pyri_summary *s, pyr_type type)
{
    uint8_t bytes[PYRI_SUMMARY_BYTES];
    pyri_summary again;
    if (s->count == 0)
        return;
    pyri_summary_encode(s, type, bytes);
    MUST(pyri_summary_decode(&again, type, bytes) == 0);
}

/* Only with the fill value at hand can this be told. */
static bool
fill_fits(const pyri_summary *s, uint64_t fill)
{
    return !s->equal || (s->not_fill == 0) == (s->min == fill);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pyri_cursor in = pyri_cursor_of(data, size);
    pyr_type type = take_type(&in);
    uint64_t cells, fill = pyri_cursor_u64(&in);
    fill &= UINT64_MAX >> (64 - 8 * pyri_type_size(type));
    pyri_summary a, b;
    if (!decode(&in, type, &a) || !decode(&in, type, &b) ||
        __builtin_add_overflow(a.count, b.count, &cells))
        return 0;
    pyri_summary both = a;
    pyri_summary_merge(&both, type, &b);
    MUST(both.count == cells && both.nans == a.nans + b.nans);
    if (fill_fits(&a, fill) && fill_fits(&b, fill))
        must_be_good(&both, type);
    if (pyri_summary_subtract(&a, type, fill, &b, NULL))
        MUST(a.count <= cells);
    return 0;
}
