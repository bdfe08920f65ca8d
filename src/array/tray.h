/*
 * array/tray.h - small fragments that are put together.
 */
#ifndef PYRI_ARRAY_TRAY_H
#define PYRI_ARRAY_TRAY_H

#include "array/draft.h"

enum { PYRI_TRAY = 16 };

/* One worker's. Zero-initialise; end with pyri_tray_fini(). */
typedef struct pyri_tray {
    pyri_packer packers[PYRI_TRAY];
    struct {
        pyri_painted *of;
        int place; /* counted from the last: others come before it */
    } waiting[PYRI_TRAY];
    int n;
    uint64_t bytes;
} pyri_tray;

void pyri_tray_fini(pyri_tray *t);

/* What the next fragment is to be packed with. */
static inline pyri_packer *
pyri_tray_packer(pyri_tray *t)
{
    return &t->packers[t->n];
}

/* Is what was packed with it to wait for others? */
static inline bool
pyri_tray_takes(const pyri_packer *k)
{
    return !k->aligned;
}

/* The newest fragment of `of` was packed and has no blob yet. It gets one with
 * the flush; until then the cells must stay where they are. Full trays are
 * flushed. */
int pyri_tray_add(pyri_tray *t, pyri_draft *d, pyri_painted *of);
int pyri_tray_flush(pyri_tray *t, pyri_draft *d);

#endif
