/*
 * array/catalog.c - which arrays there are: names, attributes, tags, clones.
 *
 * Records of the engine, by key:
 *   name/NAME       id of the array (8)
 *   array/ID        its schema (array/schema.c); ID is 8 bytes, big-endian
 *   attr/ID         its attributes, JSON text
 *   tag/ID/TAG      label of the tagged version (8)
 */
#include "array/array.h"

#include "base/bytes.h"
#include "base/io.h"
#include "base/sys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

typedef struct key {
    uint8_t bytes[PYRI_MAX_KEY];
    size_t size;
} key;

static pyri_bytes
bytes_of(const key *k)
{
    return (pyri_bytes){k->bytes, k->size};
}

static key
name_key(const char *name)
{
    key k;
    k.size = (size_t)snprintf((char *)k.bytes, sizeof k.bytes, "name/%s", name);
    return k;
}

static key
id_key(const char *kind, uint64_t id)
{
    key k;
    size_t n = strlen(kind);
    memcpy(k.bytes, kind, n);
    pyri_store64_be(k.bytes + n, id);
    k.size = n + 8;
    return k;
}

static key
tag_key(uint64_t id, const char *tag)
{
    key k = id_key("tag/", id);
    size_t n = strlen(tag);
    k.bytes[k.size++] = '/';
    memcpy(k.bytes + k.size, tag, n);
    k.size += n;
    return k;
}

/* --- creating and opening ------------------------------------------------ */

static int
new_id(uint64_t *out)
{
    do {
        int errnum = pyri_io_random(out, sizeof *out);
        if (errnum)
            return pyri_fail_errno(errnum, "random numbers");
    } while (*out == 0);
    return 0;
}

static int64_t
now_ns(void)
{
    struct timespec t;
    pyri_sys_clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Put a schema whose line is complete but for the new array at its end. */
static int
put_array(pyri_engine *e, const char *name, pyri_schema *s,
          const char *attributes)
{
    pyri_buf schema = {0};
    uint8_t id_bytes[8];
    pyri_ancestor *self = &s->lineage.line[s->lineage.n - 1];
    int err = new_id(&self->array);
    if (err < 0)
        return err;
    s->created_ns = now_ns();
    snprintf(s->who, sizeof s->who, "%s", pyri_record_who());
    pyri_store64(id_bytes, self->array);
    pyri_schema_encode(s, &schema);
    key by_name = name_key(name), by_id = id_key("array/", self->array),
        attr = id_key("attr/", self->array);
    const pyri_edit edits[] = {
        {.kind = PYRI_EDIT_CREATE,
         .key = bytes_of(&by_name),
         .value = {id_bytes, 8}},
        {.kind = PYRI_EDIT_CREATE,
         .key = bytes_of(&by_id),
         .value = {schema.data, schema.size}},
        {.kind = PYRI_EDIT_PUT,
         .key = bytes_of(&attr),
         .value = {attributes, strlen(attributes)}},
        {.kind = PYRI_EDIT_ARRAY,
         .array = self->array,
         .latest = self->first,
         .ndim = s->ndim,
         .shape = s->form.shape},
    };
    if ((err = pyri_buf_check(&schema, "the record of an array")) == 0)
        err = pyri_engine_edit(e, edits, sizeof edits / sizeof *edits);
    if (err == PYR_EEXIST)
        err = pyri_fail(PYR_EEXIST, "array '%s' exists already", name);
    pyri_buf_fini(&schema);
    return err;
}

static pyri_array *
new_array(pyri_engine *e, const char *name)
{
    pyri_array *a = pyri_sys_calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->engine = e;
    snprintf(a->name, sizeof a->name, "%s", name);
    return a;
}

/* What follows from the schema. */
static void
settle(pyri_array *a)
{
    const pyri_schema *s = &a->schema;
    a->first = s->lineage.line[s->lineage.n - 1].first;
    a->style = (pyri_frag_style){a->id,   s->ndim,  s->type,
                                 s->fill, s->codec, s->level};
}

/* Put an array and give a handle of it: nothing can fail once it is there.
 * Takes the schema's form, if it succeeds and a handle is wanted. */
static int
put_and_open(pyri_engine *e, const char *name, pyri_schema *schema,
             const char *attributes, pyri_array **out)
{
    pyri_array *a = NULL;
    if (out && !(a = new_array(e, name)))
        return pyri_fail_nomem("an array");
    int err = put_array(e, name, schema, attributes);
    if (err < 0 || !out) {
        free(a);
        return err;
    }
    a->id = schema->lineage.line[schema->lineage.n - 1].array;
    a->schema = *schema;
    schema->form = (pyri_form){0};
    settle(a);
    *out = a;
    return 0;
}

int
pyri_array_create(pyri_engine *e, const char *name, pyri_schema *schema,
                  const char *attributes, pyri_array **out)
{
    schema->lineage.n = 1;
    schema->lineage.line[0].first = 0;
    return put_and_open(e, name, schema, attributes, out);
}

static int
find_id(pyri_engine *e, pyri_reader *r, const char *name, uint64_t *id)
{
    key k = name_key(name);
    pyri_bytes value;
    bool found;
    int err = pyri_engine_get_record(e, r, bytes_of(&k), &value, &found);
    if (err < 0)
        return err;
    if (!found)
        return pyri_fail(PYR_ENOTFOUND, "no array '%s' in this store", name);
    if (value.size != 8)
        return pyri_fail(PYR_ECORRUPT, "the name '%s' is damaged", name);
    *id = pyri_load64(value.data);
    return 0;
}

static int
load_schema(pyri_engine *e, pyri_reader *r, pyri_array *a)
{
    key k = id_key("array/", a->id);
    pyri_bytes value;
    bool found;
    int err = pyri_engine_get_record(e, r, bytes_of(&k), &value, &found);
    if (err < 0)
        return err;
    if (!found)
        return pyri_fail(PYR_ECORRUPT, "array '%s' has no record", a->name);
    if ((err = pyri_schema_decode(value, &a->schema)) < 0)
        return pyri_fail_at(err, "array '%s'", a->name);
    settle(a);
    return 0;
}

int
pyri_array_open(pyri_engine *e, const char *name, pyri_array **out)
{
    pyri_reader *r = NULL;
    *out = NULL;
    pyri_array *a = new_array(e, name);
    if (!a)
        return pyri_fail_nomem("an array");
    int err = pyri_engine_begin(e, &r);
    if (err == 0)
        err = find_id(e, r, name, &a->id);
    if (err == 0)
        err = load_schema(e, r, a);
    pyri_engine_end(e, r);
    if (err < 0)
        pyri_array_close(a);
    else
        *out = a;
    return err;
}

void
pyri_array_close(pyri_array *a)
{
    if (!a)
        return;
    pyri_form_fini(&a->schema.form);
    free(a);
}

typedef struct lister {
    pyr_name_fn *each;
    void *ctx;
} lister;

static int
list_name(void *ctx, pyri_bytes k, pyri_bytes value)
{
    const lister *l = ctx;
    char name[PYR_MAX_NAME + 1];
    size_t skip = strlen("name/");
    if (k.size <= skip || k.size - skip >= sizeof name)
        return pyri_fail(PYR_ECORRUPT, "a name in the catalog is damaged");
    memcpy(name, (const char *)k.data + skip, k.size - skip);
    name[k.size - skip] = 0;
    return l->each(l->ctx, name);
}

int
pyri_array_list(pyri_engine *e, pyr_name_fn *each, void *ctx)
{
    lister l = {each, ctx};
    pyri_reader *r;
    int err = pyri_engine_begin(e, &r);
    if (err < 0)
        return err;
    err = pyri_engine_scan_records(e, r, (pyri_bytes){"name/", 5}, list_name,
                                   &l);
    pyri_engine_end(e, r);
    return err;
}

/* --- attributes ---------------------------------------------------------- */

int
pyri_array_attributes(pyri_array *a, pyri_buf *out)
{
    key k = id_key("attr/", a->id);
    pyri_reader *r;
    pyri_bytes value;
    bool found;
    int err = pyri_engine_begin(a->engine, &r);
    if (err < 0)
        return err;
    err = pyri_engine_get_record(a->engine, r, bytes_of(&k), &value, &found);
    if (err == 0)
        pyri_buf_add(out, found ? value.data : "{}", found ? value.size : 2);
    pyri_buf_u8(out, 0);
    pyri_engine_end(a->engine, r);
    return err < 0 ? err : pyri_buf_check(out, "attributes");
}

int
pyri_array_set_attributes(pyri_array *a, const char *json)
{
    key k = id_key("attr/", a->id);
    pyri_edit edit = {.kind = PYRI_EDIT_PUT,
                      .key = bytes_of(&k),
                      .value = {json, strlen(json)}};
    return pyri_engine_edit(a->engine, &edit, 1);
}

/* --- tags ---------------------------------------------------------------- */

int
pyri_tag_set(pyri_array *a, const char *tag, pyr_version v)
{
    pyri_snapshot s;
    uint8_t value[8];
    key k = tag_key(a->id, tag);
    int err = pyri_snapshot_open(a, v, &s);
    if (err < 0)
        return err;
    pyri_store64(value, s.label);
    pyri_snapshot_close(&s);
    pyri_edit edit = {
        .kind = PYRI_EDIT_PUT, .key = bytes_of(&k), .value = {value, 8}};
    return pyri_engine_edit(a->engine, &edit, 1);
}

static int
no_tag(pyri_array *a, const char *tag)
{
    return pyri_fail(PYR_ENOTFOUND, "array '%s' has no tag '%s'", a->name, tag);
}

int
pyri_tag_delete(pyri_array *a, const char *tag)
{
    key k = tag_key(a->id, tag);
    pyri_edit edit = {.kind = PYRI_EDIT_DELETE, .key = bytes_of(&k)};
    int err = pyri_engine_edit(a->engine, &edit, 1);
    return err == PYR_ENOTFOUND ? no_tag(a, tag) : err;
}

int
pyri_tag_get(pyri_array *a, const char *tag, pyr_version *out)
{
    key k = tag_key(a->id, tag);
    pyri_reader *r;
    pyri_bytes value;
    bool found;
    int err = pyri_engine_begin(a->engine, &r);
    if (err < 0)
        return err;
    err = pyri_engine_get_record(a->engine, r, bytes_of(&k), &value, &found);
    if (err == 0 && (!found || value.size != 8))
        err = no_tag(a, tag);
    if (err == 0)
        *out = pyri_load64(value.data) - a->first;
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
    size_t skip = strlen("tag/") + 8 + 1;
    if (k.size <= skip || k.size - skip >= sizeof tag || value.size != 8)
        return pyri_fail(PYR_ECORRUPT, "a tag of array '%s' is damaged",
                         l->a->name);
    memcpy(tag, (const char *)k.data + skip, k.size - skip);
    tag[k.size - skip] = 0;
    return l->each(l->ctx, tag, pyri_load64(value.data) - l->a->first);
}

int
pyri_tag_list(pyri_array *a, pyr_tag_fn *each, void *ctx)
{
    tag_lister l = {a, each, ctx};
    key k = tag_key(a->id, "");
    pyri_reader *r;
    int err = pyri_engine_begin(a->engine, &r);
    if (err < 0)
        return err;
    err = pyri_engine_scan_records(a->engine, r, bytes_of(&k), list_tag, &l);
    pyri_engine_end(a->engine, r);
    return err;
}

/* --- clones -------------------------------------------------------------- */

int
pyri_clone(pyri_array *a, pyr_version v, const char *name, pyri_array **out)
{
    pyri_snapshot s;
    pyri_schema clone = a->schema;
    pyri_buf attributes = {0};
    int err = pyri_snapshot_open(a, v, &s);
    if (err < 0)
        return err;
    uint64_t label = s.label;
    err = pyri_form_copy(&clone.form, &s.record.form);
    pyri_snapshot_close(&s);
    if (err < 0)
        return err;
    /* ancestors that the snapshot is older than have no part in it */
    while (clone.lineage.n > 1 &&
           clone.lineage.line[clone.lineage.n - 1].first >= label)
        clone.lineage.n--;
    if (clone.lineage.n == PYRI_MAX_LINE) {
        err = pyri_fail(PYR_EINVAL, "'%s' is a clone of a clone %d times over",
                        a->name, PYRI_MAX_LINE);
        goto out;
    }
    clone.lineage.line[clone.lineage.n++].first = label;
    snprintf(clone.clone_of, sizeof clone.clone_of, "%s", a->name);
    clone.clone_version = label - a->first;
    if ((err = pyri_array_attributes(a, &attributes)) == 0)
        err = put_and_open(a->engine, name, &clone,
                           (const char *)attributes.data, out);
out:
    pyri_form_fini(&clone.form);
    pyri_buf_fini(&attributes);
    return err;
}
