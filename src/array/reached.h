/*
 * array/reached.h - a set of names, by their hashes.
 */
#ifndef PYRI_ARRAY_REACHED_H
#define PYRI_ARRAY_REACHED_H

#include "base/hash.h"

#include <stdbool.h>
#include <stddef.h>

/* 128 bits of hash stand for a name: that two names meet there is less likely
 * than that the machine makes a mistake. */
typedef struct pyri_reached {
    pyri_digest *slots; /* both words 0: empty */
    size_t n, room;     /* a power of two */
} pyri_reached;         /* zero-initialise; end with pyri_reached_fini() */

void pyri_reached_fini(pyri_reached *r);
/* *fresh tells if it was not there before. */
int pyri_reached_add(pyri_reached *r, const void *name, size_t size,
                     bool *fresh);
bool pyri_reached_has(const pyri_reached *r, const void *name, size_t size);

#endif
