/*
 * op/serve.c - reductions of cells elsewhere: what is asked, what is answered.
 *
 * Asked: op (1); of a histogram lo and hi (8 each, bits of doubles) and bins
 * (4); of a quantile, for one pass, bins (4) and the keys lo and hi (8 each).
 * Answered: a partial result as partial.c has it; or of a histogram below,
 * above, nans, of a quantile below, inside, above, nans (varints) and the least
 * key above (8), and then the bins that are not zero: how many zeros come
 * before it, and the count (varints).
 */
#include "op/op.h"

#include "base/fail.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

void
pyri_serve_ask(const pyri_reduction *r, const pyri_quantile *q, pyri_buf *out)
{
    pyri_buf_u8(out, (uint8_t)r->op);
    if (r->op == PYRI_RED_HISTOGRAM) {
        pyri_buf_f64(out, r->lo);
        pyri_buf_f64(out, r->hi);
        pyri_buf_u32(out, r->bins);
    } else if (r->op == PYRI_RED_QUANTILE) {
        pyri_buf_u32(out, q->bins);
        pyri_buf_u64(out, (uint64_t)q->lo);
        pyri_buf_u64(out, (uint64_t)q->hi);
    }
}

/* --- there --------------------------------------------------------------- */

typedef struct serving {
    pyri_reduction r;
    int64_t lo, hi; /* of a quantile */
    const pyri_program *p;
    int ndim;
    const pyri_box *box;
    const void *const *src;
} serving;

static bool
understand(pyri_bytes how, serving *s)
{
    pyri_cursor c = pyri_cursor_of(how.data, how.size);
    uint8_t op = pyri_cursor_u8(&c);
    if (op > PYRI_RED_QUANTILE)
        return false;
    s->r.op = (pyri_reduce_op)op;
    if (s->r.op == PYRI_RED_HISTOGRAM) {
        s->r.lo = pyri_cursor_f64(&c);
        s->r.hi = pyri_cursor_f64(&c);
        s->r.bins = pyri_cursor_u32(&c);
    } else if (s->r.op == PYRI_RED_QUANTILE) {
        s->r.bins = pyri_cursor_u32(&c);
        s->lo = (int64_t)pyri_cursor_u64(&c);
        s->hi = (int64_t)pyri_cursor_u64(&c);
    }
    return !c.failed && c.at == c.end && s->r.bins <= PYRI_OP_MAX_BINS;
}

static void
add_bins(pyri_buf *out, const uint64_t *bin, uint32_t n)
{
    uint32_t zeros = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (bin[i] == 0) {
            zeros++;
            continue;
        }
        pyri_buf_varint(out, zeros);
        pyri_buf_varint(out, bin[i]);
        zeros = 0;
    }
}

static int
serve_histogram(const serving *s, uint64_t *bin, pyri_buf *out)
{
    pyri_histogram h = {.bin = bin};
    int err = pyri_histogram_run(&h, &s->r, s->p, s->ndim, s->box, s->src);
    pyri_buf_varint(out, h.below);
    pyri_buf_varint(out, h.above);
    pyri_buf_varint(out, h.nans);
    add_bins(out, bin, s->r.bins);
    return err;
}

static int
serve_quantile(const serving *s, uint64_t *bin, pyri_buf *out)
{
    pyri_quantile q = {.kind = s->p->kind,
                       .bins = s->r.bins,
                       .lo = s->lo,
                       .hi = s->hi,
                       .next_above = INT64_MAX,
                       .bin = bin};
    int err = pyri_quantile_run(&q, s->p, s->ndim, s->box, s->src);
    pyri_buf_varint(out, q.below);
    pyri_buf_varint(out, q.inside);
    pyri_buf_varint(out, q.above);
    pyri_buf_varint(out, q.nans);
    pyri_buf_u64(out, (uint64_t)q.next_above);
    add_bins(out, bin, s->r.bins);
    return err;
}

static int
serve_partial(const serving *s, pyri_buf *out)
{
    uint8_t bytes[PYRI_PARTIAL_BYTES];
    pyri_partial t;
    pyri_partial_init(&t);
    int err = pyri_partial_run(&t, &s->r, s->p, s->ndim, s->box, s->src);
    pyri_partial_encode(&t, bytes);
    pyri_buf_add(out, bytes, sizeof bytes);
    return err;
}

int
pyri_serve_run(pyri_bytes how, const pyri_program *p, int ndim,
               const pyri_box *box, const void *const *src, pyri_buf *out)
{
    serving s = {.p = p, .ndim = ndim, .box = box, .src = src};
    if (!understand(how, &s))
        return pyri_fail(PYR_ECORRUPT, "these bytes are no reduction");
    if (s.r.op < PYRI_RED_HISTOGRAM)
        return serve_partial(&s, out);
    uint64_t *bin = pyri_sys_calloc((size_t)s.r.bins + 1, sizeof *bin);
    if (!bin)
        return pyri_fail_nomem("the bins of a reduction");
    int err = s.r.op == PYRI_RED_HISTOGRAM ? serve_histogram(&s, bin, out)
                                           : serve_quantile(&s, bin, out);
    free(bin);
    return err;
}

/* --- and back ------------------------------------------------------------ */

static bool
take_bins(pyri_cursor *c, uint64_t *bin, uint32_t n)
{
    uint64_t at = 0;
    while (c->at != c->end && !c->failed) {
        uint64_t zeros = pyri_cursor_varint(c);
        uint64_t count = pyri_cursor_varint(c);
        if (c->failed || zeros >= n - at)
            return false;
        at += zeros;
        bin[at++] += count;
        if (at == n)
            break;
    }
    return !c->failed && c->at == c->end;
}

static bool
take_histogram(pyri_cursor *c, const pyri_reduction *r, pyri_histogram *h)
{
    h->below += pyri_cursor_varint(c);
    h->above += pyri_cursor_varint(c);
    h->nans += pyri_cursor_varint(c);
    return take_bins(c, h->bin, r->bins);
}

static bool
take_quantile(pyri_cursor *c, pyri_quantile *q)
{
    q->below += pyri_cursor_varint(c);
    q->inside += pyri_cursor_varint(c);
    q->above += pyri_cursor_varint(c);
    q->nans += pyri_cursor_varint(c);
    int64_t next = (int64_t)pyri_cursor_u64(c);
    q->next_above = next < q->next_above ? next : q->next_above;
    return take_bins(c, q->bin, q->bins);
}

int
pyri_serve_take(const pyri_reduction *r, pyri_bytes answer, pyri_partial *t,
                pyri_histogram *h, pyri_quantile *q)
{
    pyri_cursor c = pyri_cursor_of(answer.data, answer.size);
    if (r->op < PYRI_RED_HISTOGRAM && answer.size == PYRI_PARTIAL_BYTES)
        return pyri_partial_decode(t, answer.data);
    if (r->op == PYRI_RED_HISTOGRAM && take_histogram(&c, r, h))
        return 0;
    if (r->op == PYRI_RED_QUANTILE && take_quantile(&c, q))
        return 0;
    return pyri_fail(PYR_ECORRUPT, "a partial result that makes no sense");
}
