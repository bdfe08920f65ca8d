/*
 * base/scratch.h - large buffers for a moment. They are kept and handed out
 * again: giving a megabyte back to the system and asking for it anew costs
 * more than what it is used for.
 */
#ifndef PYRI_BASE_SCRATCH_H
#define PYRI_BASE_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

/* Gives a buffer of at least `size` bytes, or NULL. Any thread. */
void *pyri_scratch_take(size_t size);
/* Takes it back; NULL is allowed. */
void pyri_scratch_give(void *buffer);

/* `list` points to a pointer to `*room` elements of a size in such a buffer (or
 * to NULL), of which `used` are kept: see to room for `want`. */
bool pyri_scratch_room(void *list, size_t *room, size_t used, size_t want,
                       size_t size);

#endif
