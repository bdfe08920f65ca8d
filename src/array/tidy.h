/*
 * array/tidy.h - chunks that are worth folding, as readers find them.
 */
#ifndef PYRI_ARRAY_TIDY_H
#define PYRI_ARRAY_TIDY_H

#include "array/array.h"

/* A reader had to go to `n` fragments for cells of one chunk, and found them
 * in the leaf of that label. */
void pyri_tidy_read(const pyri_array *a, const uint64_t *pos, uint64_t leaf,
                    int n);

#endif
