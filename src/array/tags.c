/*
 * array/tags.c - names for snapshots.
 */
#include "array/keys.h"

#include "base/bytes.h"
#include "base/io.h"

#include <string.h>

int
pyri_tag_set(pyri_array *a, const char *tag, pyr_version v)
{
    pyri_snapshot s;
    uint8_t value[8];
    pyri_key k = pyri_key_tag(a->id, tag);
    int err = pyri_snapshot_open(a, v, &s);
    if (err < 0)
        return err;
    pyri_store64(value, s.label);
    pyri_snapshot_close(&s);
    pyri_key gone, counter = pyri_key_id("tagged/", a->id);
    uint8_t change[8];
    int errnum = pyri_io_random(change, sizeof change);
    if (errnum)
        return pyri_fail_errno(errnum, "random numbers");
    pyri_edit edits[] = {
        pyri_edit_kept(a, pyri_load64(value), &gone),
        {.kind = PYRI_EDIT_PUT, .key = pyri_key_bytes(&k), .value = {value, 8}},
        {.kind = PYRI_EDIT_PUT,
         .key = pyri_key_bytes(&counter),
         .value = {change, sizeof change}},
    };
    err = pyri_engine_edit(a->engine, edits, sizeof edits / sizeof *edits);
    return pyri_fail_kept(a, pyri_load64(value), err);
}

static int
no_tag(pyri_array *a, const char *tag)
{
    return pyri_fail(PYR_ENOTFOUND, "array '%s' has no tag '%s'", a->name, tag);
}

int
pyri_tag_delete(pyri_array *a, const char *tag)
{
    pyri_key k = pyri_key_tag(a->id, tag);
    pyri_edit edit = {.kind = PYRI_EDIT_DELETE, .key = pyri_key_bytes(&k)};
    int err = pyri_engine_edit(a->engine, &edit, 1);
    return err == PYR_ENOTFOUND ? no_tag(a, tag) : err;
}

/* A label that is not the array's own would turn into a huge version, or into
 * PYR_LATEST. */
static int
tagged(const pyri_array *a, pyri_bytes value, pyr_version *out)
{
    if (value.size != 8 || pyri_load64(value.data) < a->first)
        return pyri_fail(PYR_ECORRUPT, "a tag of array '%s' is damaged",
                         a->name);
    *out = pyri_load64(value.data) - a->first;
    return 0;
}

int
pyri_tag_get(pyri_array *a, const char *tag, pyr_version *out)
{
    pyri_key k = pyri_key_tag(a->id, tag);
    pyri_reader *r;
    pyri_bytes value;
    bool found;
    int err = pyri_engine_begin(a->engine, &r);
    if (err < 0)
        return err;
    err = pyri_engine_get_record(a->engine, r, pyri_key_bytes(&k), &value, &found);
    if (err == 0)
        err = found ? tagged(a, value, out) : no_tag(a, tag);
    pyri_engine_end(a->engine, r);
    return err;
}

typedef struct tag_lister {
    pyri_array *a;
    pyr_tag_fn *each;
    void *ctx;
} tag_lister;

static int
list_tag(void *ctx, pyri_bytes k, pyri_bytes value)
{
    const tag_lister *l = ctx;
    char tag[PYR_MAX_NAME + 1];
    pyr_version v = 0;
    if (!pyri_key_rest(k, strlen("tag/") + 8 + 1, tag))
        return pyri_fail(PYR_ECORRUPT, "the name of a tag of array '%s' is "
                                       "damaged",
                         l->a->name);
    int err = tagged(l->a, value, &v);
    return err < 0 ? err : l->each(l->ctx, tag, v);
}

int
pyri_tag_list(pyri_array *a, pyr_tag_fn *each, void *ctx)
{
    tag_lister l = {a, each, ctx};
    pyri_key k = pyri_key_tag(a->id, "");
    pyri_reader *r;
    int err = pyri_engine_begin(a->engine, &r);
    if (err < 0)
        return err;
    err = pyri_engine_scan_records(a->engine, r, pyri_key_bytes(&k), list_tag, &l);
    pyri_engine_end(a->engine, r);
    return err;
}
