/*
 * array/sheets.c - regions of one value in a version that is being made.
 *
 * They become flats (tree/flat.c): no chunk of theirs is listed, painted or
 * stored. A sheet has all cells of a chunk inside the shape, or none; what is
 * left of a region along its edges is for the caller to paint.
 */
#include "array/draft.h"

#include "base/checked.h"
#include "base/room.h"

#include <string.h>

uint64_t
pyri_chunks_touched(const pyri_schema *s, const pyri_box *box)
{
    uint64_t count = 1;
    if (pyri_box_empty(s->ndim, box))
        return 0;
    for (int d = 0; d < s->ndim; d++) {
        uint64_t last = (box->hi[d] - 1) / s->chunk[d];
        if (!pyri_mul64(count, last - box->lo[d] / s->chunk[d] + 1, &count))
            return UINT64_MAX;
    }
    return count;
}

bool
pyri_sheet_inside(const pyri_schema *s, const uint64_t *shape,
                  const pyri_box *box, pyri_box *out)
{
    for (int d = 0; d < s->ndim; d++) {
        uint64_t chunk = s->chunk[d], lo = box->lo[d], hi = box->hi[d];
        uint64_t past = lo % chunk ? chunk - lo % chunk : 0;
        if (!pyri_add64(lo, past, &lo))
            return false;
        out->lo[d] = lo;
        out->hi[d] = hi == shape[d] ? hi : hi - hi % chunk;
        if (out->lo[d] >= out->hi[d])
            return false;
    }
    return true;
}

int
pyri_sheet_add(pyri_draft *d, const pyri_box *box, uint64_t bits)
{
    if (!pyri_room(&d->sheets, &d->sheet_room, d->nsheets + 1,
                   sizeof *d->sheets))
        return pyri_fail_nomem("the constant regions of a version");
    d->sheets[d->nsheets++] = (pyri_sheet){*box, bits};
    return 0;
}

/* Does it write to many chunks? */
static bool
is_wide(const pyri_draft *d)
{
    uint64_t chunks = 0;
    for (size_t i = 0; i < d->claim.n && chunks <= PYRI_FEW_CHUNKS; i++) {
        pyri_box box;
        pyri_run_bounds(d->claim.ndim, &d->claim.runs[i], &box);
        uint64_t more = pyri_chunks_touched(&d->array->schema, &box);
        if (!pyri_add64(chunks, more, &chunks))
            return true;
    }
    return chunks > PYRI_FEW_CHUNKS;
}

/*
 * So that equal versions have equal digests, it is all chunks of one value that
 * become flat, however they were found, or none. Small versions have none:
 * they are better predicted by those who come after them. A copy is as its
 * source is.
 */
void
pyri_sheets_settle(pyri_draft *d)
{
    d->flat = d->nsheets > 0;
    if (d->flat || d->given || d->kind != PYR_KIND_COMPUTE || !is_wide(d))
        return;
    for (size_t i = 0; i < d->n && !d->flat; i++) {
        const pyri_frag *f = d->painted[i].frags;
        d->flat = d->painted[i].n == 1 && f->kind == PYRI_FRAG_SAME;
    }
}
