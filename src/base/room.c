/*
 * base/room.c - lists that grow.
 */
#include "base/room.h"

#include "base/sys.h"

#include <stdint.h>
#include <string.h>

enum { FIRST = 8 }; /* elements */

bool
pyri_room_next(size_t *room, size_t want, size_t size, size_t *bytes)
{
    *room = *room > SIZE_MAX / 2 ? SIZE_MAX : 2 * *room;
    *room = *room < FIRST ? FIRST : *room;
    *room = *room < want ? want : *room;
    return !__builtin_mul_overflow(*room, size, bytes);
}

bool
pyri_room_grow(void *list, size_t *room, size_t want, size_t size)
{
    size_t more = *room, bytes;
    void *data;
    if (!pyri_room_next(&more, want, size, &bytes))
        return false;
    memcpy(&data, list, sizeof data); /* a pointer of any type */
    if (!(data = pyri_sys_realloc(data, bytes)))
        return false;
    memcpy(list, &data, sizeof data);
    *room = more;
    return true;
}
