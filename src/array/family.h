/*
 * array/family.h - the snapshots of an array and its clones as one tree of
 * versions, and which are neighbours there.
 */
#ifndef PYRI_ARRAY_FAMILY_H
#define PYRI_ARRAY_FAMILY_H

#include "array/array.h"

/* A snapshot that is there: of the array that made it. */
typedef struct pyri_vertex {
    uint64_t array, label;
} pyri_vertex;

/* The nearest snapshots that are there around one. */
typedef struct pyri_neighbours {
    pyri_vertex older; /* before it on its line; label 0: none */
    pyri_vertex *others;
    size_t n, room;
} pyri_neighbours; /* zero-initialise; end with pyri_neighbours_fini() */

void pyri_neighbours_fini(pyri_neighbours *n);

/* Arrays that were opened by id, of one engine. */
typedef struct pyri_family {
    pyri_engine *engine;
    pyri_array **arrays;
    size_t n, room;
    /* Labels of `erased_of` that count as gone: from the first on, all that
     * are there up to the last; and what is before them. */
    uint64_t erased_of, erased_last, erased_before;
} pyri_family; /* set the engine, zero the rest; end with _fini() */

void pyri_family_fini(pyri_family *f);
int pyri_family_array(pyri_family *f, uint64_t id, pyri_array **out);

/* Find the neighbours of a snapshot that array `id` made. */
int pyri_family_around(pyri_family *f, pyri_reader *r, pyri_vertex v,
                       pyri_neighbours *out);

/* The first version that array `id` made from label `from` towards `to` that
 * is there; 0: none. */
int pyri_family_version(pyri_family *f, pyri_reader *r, uint64_t id,
                        uint64_t from, uint64_t to, uint64_t *out);

/* Call `each` with the clones that begin with a snapshot that array `id` made,
 * from label `low` to `high`; a result other than 0 ends it. */
typedef int pyri_clone_fn(void *ctx, uint64_t clone, uint64_t label);
int pyri_family_clones(pyri_family *f, pyri_reader *r, uint64_t id,
                       uint64_t low, uint64_t high, pyri_clone_fn *each,
                       void *ctx);

#endif
