/*
 * fuzz/claim_fuzz.c - claims: the runs of cells that a version writes.
 *
 * Input: axes (1), two corners of a box (1 byte each, per axis), the claim.
 */
#include "fuzz/fuzz.h"

#include "version/version.h"

enum { SMALL = 300 };

/* Along one axis, block by block. */
static bool
touches(const pyri_run *r, int d, uint64_t lo, uint64_t hi)
{
    for (uint64_t i = 0; i < r->count[d] && lo < hi; i++) {
        uint64_t from = r->start[d] + i * r->stride[d];
        if (from < hi && from + r->block[d] > lo)
            return true;
    }
    return false;
}

static bool
is_small(const pyri_claim *c)
{
    for (size_t i = 0; i < c->n; i++)
        for (int d = 0; d < c->ndim; d++)
            if (c->runs[i].count[d] > SMALL)
                return false;
    return c->n <= SMALL;
}

static void
ask(const pyri_claim *c, const pyri_box *box)
{
    bool want = false;
    for (size_t i = 0; i < c->n; i++) {
        pyri_box bounds;
        bool all = true;
        pyri_run_bounds(c->ndim, &c->runs[i], &bounds);
        MUST(!pyri_box_empty(c->ndim, &bounds));
        for (int d = 0; d < c->ndim; d++)
            all = all && touches(&c->runs[i], d, box->lo[d], box->hi[d]);
        MUST(!all || pyri_box_overlaps(c->ndim, &bounds, box));
        want |= all;
    }
    MUST(pyri_claim_overlaps(c, box) == want);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pyri_cursor in = pyri_cursor_of(data, size), back;
    pyri_claim claim, again;
    pyri_buf first = {0}, second = {0};
    pyri_box box;
    int ndim = take_below(&in, PYR_MAX_DIMS) + 1;
    for (int d = 0; d < ndim; d++) {
        box.lo[d] = pyri_cursor_u8(&in);
        box.hi[d] = pyri_cursor_u8(&in);
    }
    int err = pyri_claim_decode(&in, ndim, &claim);
    if (err < 0) {
        must_refuse(err);
        MUST(claim.n == 0 && claim.runs == NULL);
        return 0;
    }
    pyri_claim_encode(&claim, &first);
    back = pyri_cursor_of(first.data, first.size);
    MUST(pyri_claim_decode(&back, ndim, &again) == 0 && back.at == back.end);
    MUST(again.n == claim.n);
    pyri_claim_encode(&again, &second);
    must_be_same(&first, &second);
    if (is_small(&claim))
        ask(&claim, &box);
    pyri_claim_fini(&claim);
    pyri_claim_fini(&again);
    pyri_buf_fini(&first);
    pyri_buf_fini(&second);
    return 0;
}
