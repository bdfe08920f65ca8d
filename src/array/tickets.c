/*
 * array/tickets.c - what the ticket of a version in flight says to others.
 *
 *   1 byte kind, then the claim as in version/record.c. An append has none: it
 *   writes the cells by which its shape differs from the one before it.
 *
 * From its claim others predict the nodes of a version. One that has flats
 * (tree/flat.c) has no nodes there, and cannot be predicted. It says so: 128 is
 * added to its kind, and before the claim stands a number of runs that there
 * cannot be, so that no one takes it for another one's. Whoever comes after it
 * waits until it is published before it builds its own nodes: since a version
 * is not seen before those below it are, nobody who reads waits any longer for
 * that. So, if its writer dies, the version needs no nodes to come to nothing.
 */
#include "array/draft.h"

#include "base/bytes.h"

#include <string.h>

enum { FLAT = 0x80, SLICE_MS = 50 };

void
pyri_ticket_encode(const pyri_draft *d, pyri_buf *out)
{
    pyri_buf_u8(out, (uint8_t)(d->kind | (d->flat ? FLAT : 0)));
    if (d->flat)
        pyri_buf_varint(out, UINT64_MAX);
    if (d->kind != PYR_KIND_APPEND)
        pyri_claim_encode(&d->claim, out);
}

int
pyri_ticket_appended(int ndim, const uint64_t *before, const uint64_t *after,
                     pyri_claim *out)
{
    pyri_box box;
    *out = (pyri_claim){.ndim = ndim};
    if (memcmp(before, after, (size_t)ndim * sizeof *after) == 0)
        return 0;
    for (int d = 0; d < ndim; d++) {
        box.lo[d] = before[d] < after[d] ? before[d] : 0;
        box.hi[d] = after[d];
    }
    if (pyri_box_empty(ndim, &box))
        return 0;
    pyri_run run = pyri_run_of_box(ndim, &box);
    return pyri_claim_add(out, &run);
}

int
pyri_ticket_decode(int ndim, pyri_bytes bytes, const uint64_t *before,
                   const uint64_t *after, pyr_kind *kind, pyri_claim *out)
{
    pyri_cursor c = pyri_cursor_of(bytes.data, bytes.size);
    uint8_t first = pyri_cursor_u8(&c);
    *kind = (pyr_kind)(first & ~FLAT);
    if (*kind == PYR_KIND_APPEND)
        return pyri_ticket_appended(ndim, before, after, out);
    if (first & FLAT)
        pyri_cursor_varint(&c);
    return pyri_claim_decode(&c, ndim, out);
}

bool
pyri_ticket_flat(const pyri_flight *f)
{
    return f->claim.size && *(const uint8_t *)f->claim.data & FLAT;
}

int
pyri_ticket_await(pyri_draft *d, const pyri_flights *below)
{
    uint64_t last = 0;
    for (size_t i = 0; i < below->n; i++)
        if (pyri_ticket_flat(&below->list[i]))
            last = below->list[i].version;
    int err = last ? PYR_ETIMEOUT : 0;
    while (err == PYR_ETIMEOUT) {
        err = pyri_commit_wait(d->array, last, SLICE_MS);
        int renewed = err == PYR_ETIMEOUT ? pyri_commit_renew(d) : 0;
        if (renewed < 0)
            err = renewed;
    }
    return err;
}
