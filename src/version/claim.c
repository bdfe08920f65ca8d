/*
 * version/claim.c - what a version writes: strided runs of cells.
 */
#include "version/version.h"

#include "base/checked.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

void
pyri_claim_fini(pyri_claim *c)
{
    free(c->runs);
    c->runs = NULL;
    c->n = 0;
}

int
pyri_claim_add(pyri_claim *c, const pyri_run *run)
{
    if ((c->n & (c->n - 1)) == 0) { /* room is the next power of two */
        size_t room = c->n ? 2 * c->n : 1;
        pyri_run *runs = pyri_sys_realloc(c->runs, room * sizeof *runs);
        if (!runs)
            return pyri_fail_nomem("the list of boxes of a write");
        c->runs = runs;
    }
    c->runs[c->n++] = *run;
    return 0;
}

bool
pyri_claim_overlaps(const pyri_claim *c, const pyri_box *box)
{
    for (size_t i = 0; i < c->n; i++)
        if (pyri_run_overlaps(c->ndim, &c->runs[i], box))
            return true;
    return false;
}

void
pyri_claim_encode(const pyri_claim *c, pyri_buf *out)
{
    pyri_buf_varint(out, c->n);
    for (size_t i = 0; i < c->n; i++) {
        const pyri_run *r = &c->runs[i];
        bool box = pyri_run_is_box(c->ndim, r);
        pyri_buf_u8(out, box);
        for (int d = 0; d < c->ndim; d++) {
            pyri_buf_varint(out, r->start[d]);
            pyri_buf_varint(out, r->block[d]);
            if (box)
                continue;
            pyri_buf_varint(out, r->count[d]);
            pyri_buf_varint(out, r->stride[d]);
        }
    }
}

/* No cell of a run may lie past 2^64 - 1, or sums above would wrap; and blocks
 * do not overlap. */
static bool
fits(int ndim, const pyri_run *r)
{
    for (int d = 0; d < ndim; d++) {
        uint64_t last;
        if (r->count[d] == 0 || r->block[d] == 0 ||
            (r->count[d] > 1 && r->stride[d] < r->block[d]) ||
            !pyri_mul64(r->count[d] - 1, r->stride[d], &last) ||
            !pyri_add64(last, r->block[d], &last) ||
            !pyri_add64(last, r->start[d], &last))
            return false;
    }
    return true;
}

int
pyri_claim_decode(pyri_cursor *cur, int ndim, pyri_claim *c)
{
    uint64_t n = pyri_cursor_varint(cur);
    *c = (pyri_claim){.ndim = ndim};
    for (uint64_t i = 0; i < n && !cur->failed; i++) {
        pyri_run r;
        bool box = pyri_cursor_u8(cur);
        for (int d = 0; d < ndim; d++) {
            r.start[d] = pyri_cursor_varint(cur);
            r.block[d] = pyri_cursor_varint(cur);
            r.count[d] = box ? 1 : pyri_cursor_varint(cur);
            r.stride[d] = box ? r.block[d] : pyri_cursor_varint(cur);
        }
        int err = cur->failed || !fits(ndim, &r)
                      ? pyri_fail(PYR_ECORRUPT, "a list of boxes is damaged")
                      : pyri_claim_add(c, &r);
        if (err < 0) {
            pyri_claim_fini(c);
            return err;
        }
    }
    if (cur->failed) {
        pyri_claim_fini(c);
        return pyri_fail(PYR_ECORRUPT, "a list of boxes is cut short");
    }
    return 0;
}
