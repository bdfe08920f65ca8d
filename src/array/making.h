/*
 * array/making.h - a version that is being completed.
 */
#ifndef PYRI_ARRAY_MAKING_H
#define PYRI_ARRAY_MAKING_H

#include "array/draft.h"

typedef struct pyri_making {
    pyri_draft *d;
    pyri_snapshot base;
    pyri_form form; /* of the new version */
    pyri_grid grid;
    uint64_t label;
    pyri_rival *rivals; /* newest first */
    size_t nrivals;
    pyri_touch *touches;
    size_t ntouches;
    unsigned leaves; /* made so far */
    bool distrust;   /* do without what was prepared */
    uint64_t folds;  /* of the family, when leaves were first looked at */
    bool refused;    /* they were folded meanwhile */
} pyri_making;

/* The leaf of a chunk (leaves.c); `ctx` is a pyri_making. */
int pyri_make_leaf(void *ctx, const pyri_touch *touch, uint64_t prev,
                   uint64_t base, const pyri_flat *flat, pyri_leaf *leaf);

#endif
