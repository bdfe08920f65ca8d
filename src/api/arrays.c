/*
 * api/arrays.c - arrays: create, open, read, write, reshape, sum up.
 */
#include "api/handle.h"

#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

/* --- arrays -------------------------------------------------------------- */

static int
open_handle(pyr_store *store, const char *name, pyr_array **out)
{
    pyr_array *a = pyri_sys_calloc(1, sizeof *a);
    if (!a)
        return pyri_fail_nomem("an array");
    int err = pyri_array_open(store->engine, name, &a->array);
    if (err < 0) {
        free(a);
        return err;
    }
    a->array->tidy = store->tidy;
    *out = a;
    return 0;
}

int
pyr_create(pyr_store *store, const char *name, const pyr_spec *spec,
           pyr_array **array)
{
    pyri_schema schema;
    int err;
    if (array)
        *array = NULL;
    if ((err = pyri_need(store, "pyr_create", "store")) < 0 ||
        (err = pyri_need(spec, "pyr_create", "spec")) < 0 ||
        (err = pyri_need_writable(store->engine, "pyr_create")) < 0 ||
        (err = pyri_check_name(name, "an array")) < 0 ||
        (err = pyri_check_spec(spec, &schema)) < 0)
        return err;
    pyr_array *a = NULL;
    if (array && !(a = pyri_sys_calloc(1, sizeof *a)))
        err = pyri_fail_nomem("an array");
    if (err == 0)
        err = pyri_array_create(store->engine, name, &schema,
                                spec->attributes ? spec->attributes : "{}",
                                a ? &a->array : NULL);
    pyri_form_fini(&schema.form);
    if (err < 0)
        free(a);
    if (err < 0 || !array)
        return err;
    a->array->tidy = store->tidy;
    *array = a;
    return 0;
}

int
pyr_array_open(pyr_store *store, const char *name, pyr_array **array)
{
    int err = pyri_need(array, "pyr_array_open", "array");
    if (err < 0)
        return err;
    *array = NULL;
    if ((err = pyri_need(store, "pyr_array_open", "store")) < 0 ||
        (err = pyri_check_name(name, "an array")) < 0)
        return err;
    return open_handle(store, name, array);
}

void
pyr_array_close(pyr_array *array)
{
    if (!array)
        return;
    pyri_array_close(array->array);
    free(array);
}

int
pyr_array_info(pyr_array *array, pyr_version version, pyr_info *out)
{
    int err = pyri_need(array, "pyr_array_info", "array");
    if (err < 0 || (err = pyri_need(out, "pyr_array_info", "out")) < 0)
        return err;
    return pyri_info(array->array, version, out);
}

int
pyr_attributes(pyr_array *array, char **out)
{
    pyri_buf text = {0};
    int err = pyri_need(out, "pyr_attributes", "out");
    if (err < 0)
        return err;
    *out = NULL;
    if ((err = pyri_need(array, "pyr_attributes", "array")) < 0)
        return err;
    err = pyri_array_attributes(array->array, &text);
    if (err == 0 && (strlen((char *)text.data) + 1 != text.size ||
                     pyri_check_json((char *)text.data) < 0))
        err = pyri_fail(PYR_ECORRUPT, "the attributes of array '%s' are "
                                      "damaged",
                        array->array->name);
    if (err < 0)
        pyri_buf_fini(&text);
    else
        *out = (char *)text.data;
    return err;
}

int
pyr_set_attributes(pyr_array *array, const char *json)
{
    int err;
    if ((err = pyri_need(array, "pyr_set_attributes", "array")) < 0 ||
        (err = pyri_need(json, "pyr_set_attributes", "json")) < 0 ||
        (err = pyri_need_writable(array->array->engine,
                                  "pyr_set_attributes")) < 0 ||
        (err = pyri_check_json(json)) < 0)
        return err;
    return pyri_array_set_attributes(array->array, json);
}

int
pyr_latest(pyr_array *array, pyr_version *version)
{
    int err = pyri_need(array, "pyr_latest", "array");
    if (err < 0 || (err = pyri_need(version, "pyr_latest", "version")) < 0)
        return err;
    return pyri_latest(array->array, version);
}

static int
check_type(const pyri_array *a, pyr_type type)
{
    return a->schema.type == type
               ? 0
               : pyri_fail(PYR_ETYPE, "array '%s' has cells of %s, not of %s",
                           a->name, pyri_type_name(a->schema.type),
                           pyri_type_name(type));
}

/* --- reading ------------------------------------------------------------- */

/* The parts of a call, checked; *parts is `one` or heap. */
static int
check_parts(const pyri_array *a, const pyr_part *given, size_t n,
            pyri_part *one, pyri_part **parts)
{
    int err = 0;
    *parts = one;
    if (n && !given)
        return pyri_fail(PYR_EINVAL, "the list of parts is NULL");
    if (n > 1 && (n > SIZE_MAX / sizeof **parts ||
                  !(*parts = pyri_sys_malloc(n * sizeof **parts)))) {
        *parts = one;
        return pyri_fail_nomem("a list of parts");
    }
    for (size_t i = 0; i < n && err == 0; i++)
        err = pyri_check_part(a, &given[i], &(*parts)[i]);
    return err;
}

int
pyr_read_list(pyr_array *array, pyr_version version, const pyr_part *given,
              size_t n)
{
    pyri_part one, *parts = &one;
    int err = pyri_need(array, "pyr_read", "array");
    if (err < 0)
        return err;
    err = check_parts(array->array, given, n, &one, &parts);
    if (err == 0)
        err = pyri_read(array->array, version, parts, n);
    if (parts != &one)
        free(parts);
    return err;
}

int
pyr_read(pyr_array *array, pyr_version version, const uint64_t *offset,
         const uint64_t *size, void *buf)
{
    pyr_part part = {.offset = offset, .size = size, .buf = buf};
    return pyr_read_list(array, version, &part, 1);
}

int
pyr_read_as(pyr_array *array, pyr_version version, pyr_type type,
            const uint64_t *offset, const uint64_t *size, void *buf)
{
    int err = pyri_need(array, "pyr_read_as", "array");
    if (err < 0 || (err = check_type(array->array, type)) < 0)
        return err;
    return pyr_read(array, version, offset, size, buf);
}

/* --- writing ------------------------------------------------------------- */

int
pyr_write_list(pyr_array *array, const pyr_part *given, size_t n,
               const pyr_write_options *options, pyr_version *made)
{
    pyri_part one, *parts = &one;
    pyri_write_how how;
    pyr_version ignored;
    int err;
    if ((err = pyri_need(array, "pyr_write", "array")) < 0 ||
        (err = pyri_need_writable(array->array->engine, "pyr_write")) < 0 ||
        (err = pyri_check_how(options, &how)) < 0)
        return err;
    err = check_parts(array->array, given, n, &one, &parts);
    if (err == 0)
        err = pyri_write(array->array, parts, n, &how, made ? made : &ignored);
    if (parts != &one)
        free(parts);
    return err;
}

int
pyr_write(pyr_array *array, const uint64_t *offset, const uint64_t *size,
          const void *buf, pyr_version *made)
{
    pyr_part part = {.offset = offset,
                     .size = size,
                     .buf = (void *)(uintptr_t)buf};
    return pyr_write_list(array, &part, 1, NULL, made);
}

int
pyr_write_as(pyr_array *array, pyr_type type, const uint64_t *offset,
             const uint64_t *size, const void *buf, pyr_version *made)
{
    int err = pyri_need(array, "pyr_write_as", "array");
    if (err < 0 || (err = check_type(array->array, type)) < 0)
        return err;
    return pyr_write(array, offset, size, buf, made);
}

int
pyr_wait(pyr_array *array, pyr_version version, int timeout_ms)
{
    int err = pyri_need(array, "pyr_wait", "array");
    return err < 0 ? err : pyri_wait(array->array, version, timeout_ms);
}

/* --- batches ------------------------------------------------------------- */

int
pyr_batch_begin(pyr_array *array, pyr_batch **batch)
{
    int err = pyri_need(batch, "pyr_batch_begin", "batch");
    if (err < 0)
        return err;
    *batch = NULL;
    if ((err = pyri_need(array, "pyr_batch_begin", "array")) < 0 ||
        (err = pyri_need_writable(array->array->engine, "pyr_batch_begin")) <
            0)
        return err;
    pyr_batch *b = pyri_sys_calloc(1, sizeof *b);
    if (!b)
        return pyri_fail_nomem("a batch");
    b->array = array->array;
    err = pyri_batch_begin(array->array, &b->batch);
    if (err < 0)
        free(b);
    else
        *batch = b;
    return err;
}

int
pyr_batch_write(pyr_batch *batch, const uint64_t *offset, const uint64_t *size,
                const void *buf)
{
    pyri_part part;
    pyr_part given = {.offset = offset,
                      .size = size,
                      .buf = (void *)(uintptr_t)buf};
    int err = pyri_need(batch, "pyr_batch_write", "batch");
    if (err < 0 || (err = pyri_check_part(batch->array, &given, &part)) < 0)
        return err;
    return pyri_batch_write(batch->batch, &part);
}

int
pyr_batch_commit(pyr_batch *batch, const pyr_write_options *options,
                 pyr_version *made)
{
    pyri_write_how how;
    pyr_version ignored;
    int err = pyri_need(batch, "pyr_batch_commit", "batch");
    if (err < 0)
        return err;
    if ((err = pyri_check_how(options, &how)) < 0) {
        pyr_batch_abort(batch);
        return err;
    }
    err = pyri_batch_commit(batch->batch, &how, made ? made : &ignored);
    free(batch);
    return err;
}

void
pyr_batch_abort(pyr_batch *batch)
{
    if (!batch)
        return;
    pyri_batch_abort(batch->batch);
    free(batch);
}

/* --- shape --------------------------------------------------------------- */

int
pyr_resize(pyr_array *array, const uint64_t *shape, pyr_version *made)
{
    pyr_version ignored;
    int err;
    if ((err = pyri_need(array, "pyr_resize", "array")) < 0 ||
        (err = pyri_need(shape, "pyr_resize", "shape")) < 0 ||
        (err = pyri_need_writable(array->array->engine, "pyr_resize")) < 0 ||
        (err = pyri_check_shape(array->array->schema.ndim, shape)) < 0)
        return err;
    return pyri_resize(array->array, shape, made ? made : &ignored);
}

int
pyr_append(pyr_array *array, int axis, uint64_t count, const void *buf,
           uint64_t *at, pyr_version *made)
{
    uint64_t ignored_at;
    pyr_version ignored;
    int err;
    if ((err = pyri_need(array, "pyr_append", "array")) < 0 ||
        (err = pyri_need_writable(array->array->engine, "pyr_append")) < 0)
        return err;
    if (axis < 0 || axis >= array->array->schema.ndim)
        return pyri_fail(PYR_EINVAL, "array '%s' has no axis %d",
                         array->array->name, axis);
    if (count && (err = pyri_need(buf, "pyr_append", "buf")) < 0)
        return err;
    return pyri_append(array->array, axis, count, buf, at ? at : &ignored_at,
                       made ? made : &ignored);
}

/* --- from the index ------------------------------------------------------ */

int
pyr_stat(pyr_array *array, pyr_version version, const uint64_t *offset,
         const uint64_t *size, unsigned flags, pyr_stats *out)
{
    pyri_box box;
    int err;
    if ((err = pyri_need(array, "pyr_stat", "array")) < 0 ||
        (err = pyri_need(out, "pyr_stat", "out")) < 0 ||
        (err = pyri_check_box(array->array, offset, size, &box)) < 0)
        return err;
    if (flags & ~PYR_STAT_BOUNDS)
        return pyri_fail(PYR_EINVAL, "unknown flags 0x%x", flags);
    return pyri_stat(array->array, version, &box, flags, out);
}
