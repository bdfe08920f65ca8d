/*
 * array/survey.h - what a box of a snapshot is made of, from the summaries in
 * the tree as far as they are of use.
 */
#ifndef PYRI_ARRAY_SURVEY_H
#define PYRI_ARRAY_SURVEY_H

#include "array/array.h"

typedef struct pyri_survey {
    pyri_snapshot *snap;
    pyri_box box;
    void *ctx;
    /* All cells of a subtree, `cells`, and what they sum up to. False: that
     * will not do, look below. */
    bool (*known)(void *ctx, const pyri_box *cells, const pyri_summary *sum);
    /* Cells of one value. */
    int (*same)(void *ctx, const pyri_box *cells, uint64_t bits);
    /* Cells of a chunk that nobody has summed up. */
    int (*leaf)(void *ctx, const pyri_box *cells, const uint64_t *pos,
                const pyri_node *node);
} pyri_survey;

/* Visit all of the box, which is inside the shape, always in the same order.
 * A result of a visit other than 0 ends it and is returned. */
int pyri_survey_run(pyri_survey *s);

#endif
