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

bool pyri_scratch_grow(void *list, size_t *room, size_t used, size_t want,
                       size_t size);

/* As pyri_room() (base/room.h), of a list in such a buffer, of which `used`
 * elements are kept. End it with pyri_scratch_give(). */
static inline bool
pyri_scratch_room(void *list, size_t *room, size_t used, size_t want,
                  size_t size)
{
    return want <= *room || pyri_scratch_grow(list, room, used, want, size);
}

#endif
