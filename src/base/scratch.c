/*
 * base/scratch.c - large buffers for a moment.
 *
 * A few are kept (SLOTS of up to KEEP_MAX bytes: the bound on what this holds
 * on to), each in a slot that is emptied and filled with an atomic exchange.
 */
#include "base/scratch.h"

#include "base/room.h"
#include "base/sys.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 8, KEEP_MAX = 4 << 20, SMALL = 64 << 10, LEAST = 256 << 10 };

/* In front of each buffer; keeps what follows aligned. */
typedef struct head {
    size_t size;
    uint8_t pad[64 - sizeof(size_t)];
} head;

static _Atomic(head *) slots[SLOTS];

void *
pyri_scratch_take(size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    if (size > SMALL && size < LEAST)
        size = LEAST; /* so that the next who asks can use it */
    int small = 0;
    for (int i = 0; size > SMALL && i < SLOTS; i++) {
        head *h = atomic_exchange(&slots[i], NULL), *none = NULL;
        if (h && h->size >= size)
            return h + 1;
        if (h && atomic_compare_exchange_strong(&slots[i], &none, h))
            small++;
        else
            free(h);
    }
    if (small == SLOTS) /* so that this one can be kept */
        free(atomic_exchange(&slots[0], NULL));
    head *h = pyri_sys_malloc(sizeof *h + size);
    if (!h)
        return NULL;
    h->size = size;
    return h + 1;
}

void
pyri_scratch_give(void *buffer)
{
    if (!buffer)
        return;
    head *h = (head *)buffer - 1;
    for (int i = 0; h && i < SLOTS && h->size > SMALL && h->size <= KEEP_MAX;
         i++) {
        head *none = NULL;
        if (atomic_compare_exchange_strong(&slots[i], &none, h))
            h = NULL;
    }
    free(h);
}

bool
pyri_scratch_grow(void *list, size_t *room, size_t used, size_t want,
                  size_t size)
{
    size_t more = *room, bytes;
    void *old, *data;
    if (!pyri_room_next(&more, want, size, &bytes) ||
        !(data = pyri_scratch_take(bytes)))
        return false;
    memcpy(&old, list, sizeof old); /* a pointer of any type */
    if (used)
        memcpy(data, old, used * size);
    pyri_scratch_give(old);
    memcpy(list, &data, sizeof data);
    *room = (((head *)data - 1)->size) / size; /* it may be a larger one */
    return true;
}
