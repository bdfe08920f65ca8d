/*
 * engine/local/recent.h - nodes that a reader got lately: see recent.c.
 */
#ifndef PYRI_ENGINE_LOCAL_RECENT_H
#define PYRI_ENGINE_LOCAL_RECENT_H

#include "engine/engine.h"

typedef struct pyri_recent pyri_recent;

/* NULL if there is no memory for it: then there is none. */
pyri_recent *pyri_recent_new(void);
void pyri_recent_free(pyri_recent *c); /* NULL is fine */

/* The reader begins to look for nodes: nothing that it was shown before is in
 * use. All is dropped if `mark` is another one than last time. */
void pyri_recent_begin(pyri_recent *c, uint64_t mark);
/* A view that is good until the next begin; false: it is not here. */
bool pyri_recent_get(pyri_recent *c, pyri_bytes key, pyri_bytes *value);
/* Keep a node, if it was offered lately. */
void pyri_recent_offer(pyri_recent *c, pyri_bytes key, pyri_bytes value);

#endif
