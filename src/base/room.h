/*
 * base/room.h - lists that grow.
 *
 *   struct { thing *list; size_t n, room; } l;
 *   if (!pyri_room(&l.list, &l.room, l.n + 1, sizeof *l.list))
 *       return pyri_fail_nomem("a list of things");
 *   l.list[l.n++] = thing;
 */
#ifndef PYRI_BASE_ROOM_H
#define PYRI_BASE_ROOM_H

#include <stdbool.h>
#include <stddef.h>

/* What a list with that room grows to, at least to `want`; false: too large. */
bool pyri_room_next(size_t *room, size_t want, size_t size, size_t *bytes);
bool pyri_room_grow(void *list, size_t *room, size_t want, size_t size);

/*
 * See to it that a list has room for `want` elements of `size` bytes; `list` is
 * the address of the pointer to it, which may be NULL and may move. It at least
 * doubles when it grows. False if there is no memory; then it is as it was.
 */
static inline bool
pyri_room(void *list, size_t *room, size_t want, size_t size)
{
    return want <= *room || pyri_room_grow(list, room, want, size);
}

#endif
