/*
 * version/form.c - the form of an array as of some version.
 */
#include "version/version.h"

#include "base/checked.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

/* Halvings that it takes to tell apart the chunks along an axis. */
static int
bits_of(uint64_t extent, uint64_t chunk)
{
    uint64_t chunks = extent / chunk + (extent % chunk != 0);
    return chunks <= 1 ? 0 : 64 - __builtin_clzll(chunks - 1);
}

/* Add what the shape needs at the coarse end, one axis after the other. */
static int
extend_order(pyri_form *f, const uint64_t *chunk)
{
    int have[PYR_MAX_DIMS] = {0}, want[PYR_MAX_DIMS];
    for (int i = 0; i < f->norder; i++)
        have[f->order[i]]++;
    for (int d = 0; d < f->ndim; d++)
        want[d] = bits_of(f->shape[d], chunk[d]);
    for (bool more = true; more;) {
        more = false;
        for (int d = f->ndim - 1; d >= 0; d--) {
            if (have[d] >= want[d])
                continue;
            if (f->norder == PYRI_MAX_ORDER)
                return pyri_fail(PYR_EINVAL,
                                 "the array has too many chunks; take larger "
                                 "chunks");
            f->order[f->norder++] = (uint8_t)d;
            have[d]++;
            more = true;
        }
    }
    return 0;
}

int
pyri_form_init(pyri_form *f, int ndim, const uint64_t *shape,
               const uint64_t *chunk)
{
    *f = (pyri_form){.ndim = ndim};
    memcpy(f->shape, shape, (size_t)ndim * sizeof *shape);
    return extend_order(f, chunk);
}

void
pyri_form_fini(pyri_form *f)
{
    free(f->cuts);
    f->cuts = NULL;
    f->ncuts = 0;
}

int
pyri_form_copy(pyri_form *to, const pyri_form *from)
{
    *to = *from;
    to->cuts = NULL;
    if (from->ncuts == 0)
        return 0;
    size_t size = (size_t)from->ncuts * sizeof *to->cuts;
    to->cuts = pyri_sys_malloc(size);
    if (!to->cuts) {
        to->ncuts = 0;
        return pyri_fail_nomem("the form of an array");
    }
    memcpy(to->cuts, from->cuts, size);
    return 0;
}

/* Earlier cuts along the axis that reach no deeper say nothing any more. */
static int
add_cut(pyri_form *f, pyri_cut cut)
{
    int kept = 1;
    pyri_cut *cuts = pyri_sys_malloc(((size_t)f->ncuts + 1) * sizeof *cuts);
    if (!cuts)
        return pyri_fail_nomem("the form of an array");
    cuts[0] = cut;
    for (int i = 0; i < f->ncuts; i++)
        if (f->cuts[i].axis != cut.axis || f->cuts[i].extent < cut.extent)
            cuts[kept++] = f->cuts[i];
    free(f->cuts);
    f->cuts = cuts;
    f->ncuts = kept;
    return 0;
}

int
pyri_form_change(pyri_form *f, uint64_t label, const uint64_t *shape,
                 const uint64_t *chunk)
{
    int err = 0;
    for (int d = 0; d < f->ndim && err == 0; d++) {
        if (shape[d] < f->shape[d])
            err = add_cut(f, (pyri_cut){label, shape[d], d});
        f->shape[d] = shape[d];
    }
    return err < 0 ? err : extend_order(f, chunk);
}

int
pyri_form_fits(const pyri_form *f, const uint64_t *shape,
               const uint64_t *chunk)
{
    pyri_form next;
    int err = pyri_form_copy(&next, f);
    if (err == 0)
        err = pyri_form_change(&next, 0, shape, chunk);
    if (err == 0 && next.ncuts > PYRI_MAX_CUTS / 2)
        err = pyri_fail(PYR_EINVAL, "the array was shrunk too many times");
    if (err == 0 && next.norder > PYRI_MAX_ORDER / 2)
        err = pyri_fail(PYR_EINVAL,
                        "the array has had too many chunks along too many "
                        "axes; take larger chunks");
    pyri_form_fini(&next);
    return err;
}

void
pyri_form_clip(const pyri_form *f, uint64_t label, uint64_t *clip)
{
    memcpy(clip, f->shape, (size_t)f->ndim * sizeof *clip);
    for (int i = 0; i < f->ncuts && f->cuts[i].label > label; i++) {
        const pyri_cut *cut = &f->cuts[i];
        clip[cut->axis] = pyri_min64(clip[cut->axis], cut->extent);
    }
}

void
pyri_form_encode(const pyri_form *f, pyri_buf *out)
{
    pyri_buf_u8(out, (uint8_t)f->ndim);
    for (int d = 0; d < f->ndim; d++)
        pyri_buf_varint(out, f->shape[d]);
    pyri_buf_varint(out, (uint64_t)f->norder);
    pyri_buf_add(out, f->order, (size_t)f->norder);
    pyri_buf_varint(out, (uint64_t)f->ncuts);
    for (int i = 0; i < f->ncuts; i++) {
        pyri_buf_varint(out, f->cuts[i].label);
        pyri_buf_varint(out, f->cuts[i].extent);
        pyri_buf_u8(out, (uint8_t)f->cuts[i].axis);
    }
}

static int
decode_cuts(pyri_cursor *c, pyri_form *f, uint64_t n)
{
    if (n == 0)
        return 0;
    f->cuts = pyri_sys_calloc((size_t)n, sizeof *f->cuts);
    if (!f->cuts)
        return pyri_fail_nomem("the form of an array");
    f->ncuts = (int)n;
    for (uint64_t i = 0; i < n; i++) {
        f->cuts[i].label = pyri_cursor_varint(c);
        f->cuts[i].extent = pyri_cursor_varint(c);
        f->cuts[i].axis = pyri_cursor_u8(c);
        c->failed |= f->cuts[i].axis >= f->ndim ||
                     (i > 0 && f->cuts[i].label > f->cuts[i - 1].label);
    }
    return 0;
}

int
pyri_form_decode(pyri_cursor *c, pyri_form *f)
{
    *f = (pyri_form){.ndim = pyri_cursor_u8(c)};
    if (f->ndim < 1 || f->ndim > PYR_MAX_DIMS)
        return pyri_fail(PYR_ECORRUPT, "a version has %d axes", f->ndim);
    for (int d = 0; d < f->ndim; d++)
        f->shape[d] = pyri_cursor_varint(c);
    /* those above multiply extents without looking */
    c->failed |= !pyri_countable(f->ndim, f->shape);
    uint64_t norder = pyri_cursor_varint(c);
    const uint8_t *order = norder <= PYRI_MAX_ORDER
                               ? pyri_cursor_take(c, (size_t)norder)
                               : NULL;
    f->norder = order ? (int)norder : 0;
    uint8_t halvings[256] = {0};
    for (int i = 0; order && i < f->norder; i++) {
        f->order[i] = order[i];
        c->failed |= order[i] >= f->ndim || ++halvings[order[i]] > 64;
    }
    uint64_t ncuts = pyri_cursor_varint(c);
    int err = 0;
    if (order && ncuts <= PYRI_MAX_CUTS)
        err = decode_cuts(c, f, ncuts);
    if (err == 0 && (c->failed || !order || ncuts > PYRI_MAX_CUTS))
        err = pyri_fail(PYR_ECORRUPT, "the form of a version is damaged");
    if (err < 0)
        pyri_form_fini(f);
    return err;
}
