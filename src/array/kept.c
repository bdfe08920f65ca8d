/*
 * array/kept.c - cells that a version need not write: they have the value that
 * it would give them.
 *
 * A computed version may cover more chunks than can be listed, most of them of
 * one value that the function does not change (x*2 of zeros). They are left
 * out of its claim, so that it has no nodes there. But inside its box the
 * version must show what the function says, not what a version just below it
 * happened to write. So, once the version is taken, and all that may come below
 * it is known, it is checked that none of those writes there; if one does, the
 * version is given up and made anew.
 */
#include "array/draft.h"

#include "base/room.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

int
pyri_kept_add(pyri_kept_list *k, const pyri_box *box, uint64_t bits)
{
    if (!pyri_room(&k->list, &k->room, k->n + 1, sizeof *k->list))
        return pyri_fail_nomem("the cells that stay as they are");
    k->list[k->n++] = (pyri_kept){*box, bits};
    return 0;
}

static int
disturbed(pyri_draft *d)
{
    d->disturbed = true;
    return pyri_fail(PYR_EFENCED,
                     "others wrote to array '%s' where a computed version "
                     "would have left cells as they were, or changed its shape",
                     d->array->name);
}

static bool
rival_disturbs(const pyri_draft *d, const pyri_rival *r)
{
    size_t size = (size_t)d->claim.ndim * sizeof *r->shape;
    if (memcmp(r->shape, d->kept.shape, size) != 0)
        return true;
    for (size_t i = 0; i < d->kept.n; i++)
        if (pyri_rival_touches(r, &d->kept.list[i].box))
            return true;
    return false;
}

static int
compare_hit(void *ctx, const pyri_hit *hit)
{
    const pyri_kept *k = ctx;
    return hit->leaf || hit->bits != k->bits; /* ends the walk */
}

int
pyri_kept_check(pyri_draft *d, const pyri_snapshot *base,
                const pyri_rival *rivals, size_t n)
{
    const pyri_kept_list *k = &d->kept;
    size_t size = (size_t)d->claim.ndim * sizeof *k->shape;
    int err = 0;
    if (k->n == 0 && (d->nsheets == 0 || d->given))
        return 0;
    for (size_t i = 0; i < n; i++)
        if (rival_disturbs(d, &rivals[i]))
            return disturbed(d);
    if (base->label == k->label)
        return 0;
    if (memcmp(base->grid.shape, k->shape, size) != 0)
        return disturbed(d);
    for (size_t i = 0; i < k->n && err == 0; i++) {
        pyri_run run = pyri_run_of_box(d->claim.ndim, &k->list[i].box);
        err = pyri_tree_find(&base->tree, &run, compare_hit, &k->list[i]);
    }
    return err > 0 ? disturbed(d) : err;
}
