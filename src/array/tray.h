/*
 * array/tray.h - small fragments that are put together.
 */
#ifndef PYRI_ARRAY_TRAY_H
#define PYRI_ARRAY_TRAY_H

#include "array/draft.h"

enum { PYRI_TRAY = 16 };

/* One worker's. Zero-initialise; end with pyri_tray_fini(). */
typedef struct pyri_tray {
    pyri_packer small[PYRI_TRAY]; /* n of them are waiting */
    pyri_packer large;            /* for what does not wait */
    struct {
        pyri_painted *of;
        int place; /* counted from the last: others come before it */
    } waiting[PYRI_TRAY];
    int n, used; /* of the small ones; those that were ever */
    uint64_t bytes;
} pyri_tray;

void pyri_tray_fini(pyri_tray *t);

/* What a fragment of so many bytes of cells is to be packed with: they count as
 * they are in memory, which the packer holds, not as they are stored. */
static inline pyri_packer *
pyri_tray_packer(pyri_tray *t, uint64_t bytes)
{
    if (bytes >= PYRI_LARGE)
        return &t->large;
    if (t->used == t->n)
        t->used++;
    return &t->small[t->n];
}

/* The newest fragment of `of` was packed with a small one and has no blob yet.
 * It gets one with the flush; until then the cells must stay where they are.
 * Full trays are flushed. */
int pyri_tray_add(pyri_tray *t, pyri_draft *d, pyri_painted *of);
int pyri_tray_flush(pyri_tray *t, pyri_draft *d);

#endif
