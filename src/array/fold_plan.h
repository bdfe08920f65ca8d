/*
 * array/fold_plan.h - a chunk while it is planned how to fold it.
 */
#ifndef PYRI_ARRAY_FOLD_PLAN_H
#define PYRI_ARRAY_FOLD_PLAN_H

#include "array/fold.h"
#include "array/shows.h"

/* Fragments that become one. */
typedef struct pyri_fold_group {
    bool *of; /* links */
    int n;
    pyri_box bounds;
    uint64_t cells; /* that are shown; 0: they just go */
    bool plain;     /* all of the bounds is stored */
    pyri_frag frag;
} pyri_fold_group;

typedef struct pyri_planning {
    pyri_fold_plan *p;
    pyri_family *family;
    const pyri_fold_target *t;
    unsigned spend; /* see pyri_folding; not 0: on demand */
    pyri_array *a;
    const uint64_t *pos;
    pyri_node leaf;
    pyri_chain chain; /* of K */
    bool *first;      /* links that K was the first to see */
    bool *wanted;     /* of these, those that may be folded */
    pyri_held theirs; /* what those have that are not after K */
    pyri_shows shows;
    pyri_fold_group *groups;
    size_t ngroups;
    uint64_t gain, cost; /* bytes */
    pyri_packer packer;
} pyri_planning; /* zero-initialise */

/* A carrier's leaf, through a snapshot that has it (fold_leaves.c). */
typedef struct pyri_opened {
    pyri_snapshot s;
    pyri_node node;
    pyri_held held;
} pyri_opened;

int pyri_carrier_open(const pyri_planning *x, const pyri_carrier *c,
                      pyri_opened *o);
void pyri_carrier_close(pyri_opened *o);

/* What carriers show of the wanted links, and K does not, is added to what K
 * shows (fold_needs.c); *any tells if there is such. Carriers were found. */
int pyri_fold_needs(pyri_planning *x, bool *any);

/* Fill in the leaves to write, and the leaves and blobs that go. Groups have
 * their fragments, and carriers were found. */
int pyri_fold_leaves(pyri_planning *x);

#endif
