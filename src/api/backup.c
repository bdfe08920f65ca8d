/*
 * api/backup.c - copies of arrays in other stores.
 */
#include "api/handle.h"

int
pyr_copy(pyr_array *from, pyr_store *to, const char *name,
         const pyr_copy_spec *spec, pyr_copied *out)
{
    pyr_copied copied = {0};
    int err;
    if ((err = pyri_need(from, "pyr_copy", "from")) < 0 ||
        (err = pyri_need(to, "pyr_copy", "to")) < 0 ||
        (err = pyri_need_writable(to->engine, "pyr_copy")) < 0 ||
        (err = pyri_check_name(name, "an array")) < 0)
        return err;
    if (spec && !spec->versions && spec->n)
        return pyri_need(NULL, "pyr_copy", "spec->versions");
    err = pyri_copy_array(from->array, to->engine, name, spec, &copied);
    if (out)
        *out = copied;
    return err;
}
