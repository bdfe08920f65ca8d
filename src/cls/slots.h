/*
 * cls/slots.h - the blobs in one object: the one that it was made for, and
 * those that were computed there.
 */
#ifndef PYRI_CLS_SLOTS_H
#define PYRI_CLS_SLOTS_H

#include "cls/object.h"

typedef struct pyri_slot {
    uint64_t number;  /* the name of the blob */
    uint32_t at, units; /* where, in PYRI_SLOT_UNIT */
} pyri_slot;

typedef struct pyri_slots {
    bool original; /* the blob at 0 is still wanted */
    uint32_t next; /* where the next one goes: places are never used again */
    uint32_t n;
    pyri_slot list[PYRI_SLOTS];
} pyri_slots;

/* PYRI_CLS_NO_OBJECT; PYRI_CLS_BAD if the table is damaged. */
int pyri_slots_load(pyri_object *o, pyri_slots *s);
int pyri_slots_save(pyri_object *o, const pyri_slots *s);
const pyri_slot *pyri_slots_find(const pyri_slots *s, uint64_t number);
/* Is there a blob at this place, as far as the table knows of that size? */
bool pyri_slots_has(const pyri_slots *s, uint32_t at, uint64_t size);
/* A place for a blob of so many bytes; PYRI_CLS_FULL. */
int pyri_slots_add(pyri_slots *s, uint64_t number, uint64_t size,
                   uint32_t *at);

#endif
