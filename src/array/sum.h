/*
 * array/sum.h - what a chunk sums up to with new cells on top.
 */
#ifndef PYRI_ARRAY_SUM_H
#define PYRI_ARRAY_SUM_H

#include "array/draft.h"

/* What is to be summed up: the cells of a chunk that are shown, with `p` on
 * top of the old ones. */
typedef struct pyri_change {
    pyri_fetcher *f;
    const pyri_tree *t;
    const pyri_painted *p;
    const pyri_node *leaf; /* of the old cells; NULL: they are fill */
    pyri_chain old;        /* what is needed of it at the time, */
    bool whole;            /* or all of it */
    pyri_box chunk, shown;
    pyri_regions regions; /* known of the old cells; once they are summed up, of
                             the new ones */
} pyri_change; /* end with pyri_chain_fini(&c.old) */

/* False if it is too dear, or if a shrink has come in between. */
bool pyri_change_begin(pyri_change *c);
/* Have in `old` what the leaf has of a box (NULL: all of it). A leaf may list
 * many fragments, of which few have any, so it is gone through for each box;
 * but all is loaded, once, if it lies on others. */
int pyri_change_load(pyri_change *c, const pyri_box *box);
/* One plain box is put on top, nothing else. */
bool pyri_change_is_plain(const pyri_change *c);

/* What is known of the old cells; of leaves that lie on others the cells on top
 * are read to know it, but not the chunk. */
int pyri_change_about(pyri_change *c, pyri_about *out);
/* From what is known of the old cells (`about`), less those that are hidden
 * now: *known is false if that cannot be said. */
int pyri_sum_difference(pyri_change *c, const pyri_about *about, bool *known,
                        pyri_summary *after);
/* By reading them. */
int pyri_sum_chunk(pyri_change *c, pyri_summary *after);

#endif
