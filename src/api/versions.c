/*
 * api/versions.c - history, tags, clones, differences.
 */
#include "api/handle.h"

#include "base/sys.h"

#include <stdlib.h>

int
pyr_history(pyr_array *array, pyr_version first, pyr_version last,
            pyr_change_fn *each, void *ctx)
{
    int err = pyri_need(array, "pyr_history", "array");
    if (err == 0 && !each)
        err = pyri_need(NULL, "pyr_history", "each");
    return err < 0 ? err : pyri_history(array->array, first, last, each, ctx);
}

int
pyr_tag(pyr_array *array, const char *tag, pyr_version version)
{
    int err;
    if ((err = pyri_need(array, "pyr_tag", "array")) < 0 ||
        (err = pyri_need_writable(array->array->engine, "pyr_tag")) < 0 ||
        (err = pyri_check_name(tag, "a tag")) < 0)
        return err;
    return pyri_tag_set(array->array, tag, version);
}

int
pyr_untag(pyr_array *array, const char *tag)
{
    int err;
    if ((err = pyri_need(array, "pyr_untag", "array")) < 0 ||
        (err = pyri_need_writable(array->array->engine, "pyr_untag")) < 0 ||
        (err = pyri_check_name(tag, "a tag")) < 0)
        return err;
    return pyri_tag_delete(array->array, tag);
}

int
pyr_tag_version(pyr_array *array, const char *tag, pyr_version *version)
{
    int err;
    if ((err = pyri_need(array, "pyr_tag_version", "array")) < 0 ||
        (err = pyri_need(version, "pyr_tag_version", "version")) < 0 ||
        (err = pyri_check_name(tag, "a tag")) < 0)
        return err;
    return pyri_tag_get(array->array, tag, version);
}

int
pyr_tags(pyr_array *array, pyr_tag_fn *each, void *ctx)
{
    int err = pyri_need(array, "pyr_tags", "array");
    if (err == 0 && !each)
        err = pyri_need(NULL, "pyr_tags", "each");
    return err < 0 ? err : pyri_tag_list(array->array, each, ctx);
}

int
pyr_clone(pyr_array *array, pyr_version version, const char *name,
          pyr_array **clone)
{
    int err;
    if (clone)
        *clone = NULL;
    if ((err = pyri_need(array, "pyr_clone", "array")) < 0 ||
        (err = pyri_need_writable(array->array->engine, "pyr_clone")) < 0 ||
        (err = pyri_check_name(name, "an array")) < 0)
        return err;
    pyr_array *a = NULL;
    if (clone && !(a = pyri_sys_calloc(1, sizeof *a)))
        return pyri_fail_nomem("an array");
    err = pyri_clone(array->array, version, name, a ? &a->array : NULL);
    if (err < 0)
        free(a);
    if (err < 0 || !clone)
        return err;
    a->array->tidy = array->array->tidy;
    *clone = a;
    return 0;
}

int
pyr_diff(pyr_array *array, pyr_version a, pyr_version b, pyr_box_fn *each,
         void *ctx)
{
    int err = pyri_need(array, "pyr_diff", "array");
    if (err == 0 && !each)
        err = pyri_need(NULL, "pyr_diff", "each");
    return err < 0 ? err : pyri_diff(array->array, a, b, each, ctx);
}

int
pyr_last_change(pyr_array *array, pyr_version version, const uint64_t *offset,
                const uint64_t *size, pyr_version *out)
{
    pyri_box box;
    int err;
    if ((err = pyri_need(array, "pyr_last_change", "array")) < 0 ||
        (err = pyri_need(out, "pyr_last_change", "out")) < 0 ||
        (err = pyri_check_box(array->array, offset, size, &box)) < 0)
        return err;
    return pyri_last_change(array->array, version, &box, out);
}
