/*
 * array/keys.h - the catalog's records in the engine, by key:
 *
 *   name/NAME       id of the array (8)
 *   array/ID        its schema (array/schema.c); ID is 8 bytes, big-endian
 *   attr/ID         its attributes, JSON text
 *   tag/ID/TAG      label of the tagged version (8)
 *   tagged/ID       changes whenever a tag is set (8)
 *   child/ID/ID2    array ID2 is a clone that begins with a version that array
 *                   ID made: its label (8)
 *   gone/ID         version 0 of this clone was forgotten (empty but for a 1)
 *   handler/ID      what is stored goes through these (handler_list.c)
 *   copy/ID         the array is a copy: of which one, and how far (copies.c)
 *   unfolded/ID     versions were erased, and what is left not folded yet
 *                   (unfolded.c)
 */
#ifndef PYRI_ARRAY_KEYS_H
#define PYRI_ARRAY_KEYS_H

#include "array/array.h"

typedef struct pyri_key {
    uint8_t bytes[PYRI_MAX_KEY];
    size_t size;
} pyri_key;

pyri_bytes pyri_key_bytes(const pyri_key *k);
pyri_key pyri_key_name(const char *name);
pyri_key pyri_key_id(const char *kind, uint64_t id); /* kind ends in '/' */
pyri_key pyri_key_tag(uint64_t id, const char *tag);
pyri_key pyri_key_child(uint64_t parent, uint64_t child);
/* The name in a key from byte `skip` on; false if it cannot be one. */
bool pyri_key_rest(pyri_bytes key, size_t skip, char name[PYR_MAX_NAME + 1]);

/* Put a schema whose line is complete but for the new array at its end; `kept`
 * makes it a clone, `copy` a copy (the value of copy/ID). Who made it and when
 * is set unless it is there already. */
int pyri_array_put(pyri_engine *e, const char *name, pyri_schema *s,
                   const char *attributes, const pyri_edit *kept,
                   const pyri_bytes *copy);
/* The schema of a clone that begins with a snapshot of `a`; end its form. */
int pyri_clone_schema(const pyri_array *a, uint64_t label,
                      const pyri_form *form, pyri_schema *clone);

/* The edit that refuses, with PYR_ENOVERSION or PYR_EFENCED, if a snapshot of
 * the array is forgotten by then. `k` is memory for it. */
pyri_edit pyri_edit_kept(const pyri_array *a, uint64_t label, pyri_key *k);
/* The result of edits with such a one among them, in the user's words. */
int pyri_fail_kept(const pyri_array *a, uint64_t label, int err);

#endif
