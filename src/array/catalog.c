/*
 * array/catalog.c - which arrays there are: names, attributes, clones. The
 * records are listed in keys.h.
 */
#include "array/handlers.h"
#include "array/keys.h"

#include "base/bytes.h"
#include "base/io.h"
#include "base/sys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

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

int
pyri_array_put(pyri_engine *e, const char *name, pyri_schema *s,
               const char *attributes, const pyri_edit *kept,
               const pyri_bytes *copy)
{
    pyri_buf schema = {0};
    uint8_t id_bytes[8];
    pyri_ancestor *self = &s->lineage.line[s->lineage.n - 1];
    int err = new_id(&self->array);
    if (err < 0)
        return err;
    if (!s->who[0]) {
        s->created_ns = now_ns();
        snprintf(s->who, sizeof s->who, "%s", pyri_record_who());
    }
    pyri_store64(id_bytes, self->array);
    pyri_schema_encode(s, &schema);
    pyri_key by_name = pyri_key_name(name), by_id = pyri_key_id("array/", self->array),
        attr = pyri_key_id("attr/", self->array);
    uint8_t first[8];
    pyri_store64(first, self->first);
    pyri_key child =
        pyri_key_child(pyri_lineage_owner(&s->lineage, self->first),
                       self->array);
    pyri_key copied = pyri_key_id("copy/", self->array);
    size_t n = 4;
    pyri_edit edits[7] = {
        {.kind = PYRI_EDIT_CREATE,
         .key = pyri_key_bytes(&by_name),
         .value = {id_bytes, 8}},
        {.kind = PYRI_EDIT_CREATE,
         .key = pyri_key_bytes(&by_id),
         .value = {schema.data, schema.size}},
        {.kind = PYRI_EDIT_PUT,
         .key = pyri_key_bytes(&attr),
         .value = {attributes, strlen(attributes)}},
        {.kind = PYRI_EDIT_ARRAY,
         .array = self->array,
         .version = self->first,
         .ndim = s->ndim,
         .shape = s->form.shape},
    };
    if (kept) {
        edits[n++] = (pyri_edit){.kind = PYRI_EDIT_PUT,
                                 .key = pyri_key_bytes(&child),
                                 .value = {first, 8}};
        edits[n++] = *kept;
    }
    if (copy)
        edits[n++] = (pyri_edit){.kind = PYRI_EDIT_PUT,
                                 .key = pyri_key_bytes(&copied),
                                 .value = *copy};
    if ((err = pyri_buf_check(&schema, "the record of an array")) == 0)
        err = pyri_engine_edit(e, edits, n);
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
             const char *attributes, const pyri_edit *kept, pyri_array **out)
{
    pyri_array *a = NULL;
    if (out && !(a = new_array(e, name)))
        return pyri_fail_nomem("an array");
    int err = pyri_array_put(e, name, schema, attributes, kept, NULL);
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
    return put_and_open(e, name, schema, attributes, NULL, out);
}

static int
find_id(pyri_engine *e, pyri_reader *r, const char *name, uint64_t *id)
{
    pyri_key k = pyri_key_name(name);
    pyri_bytes value;
    bool found;
    int err = pyri_engine_get_record(e, r, pyri_key_bytes(&k), &value, &found);
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
    pyri_key k = pyri_key_id("array/", a->id);
    pyri_bytes value;
    bool found;
    int err = pyri_engine_get_record(e, r, pyri_key_bytes(&k), &value, &found);
    if (err < 0)
        return err;
    if (!found)
        return pyri_fail(PYR_ECORRUPT, "array '%s' has no record", a->name);
    if ((err = pyri_schema_decode(value, &a->schema)) < 0)
        return pyri_fail_at(err, "array '%s'", a->name);
    const pyri_schema *s = &a->schema;
    if (s->lineage.line[s->lineage.n - 1].array != a->id)
        return pyri_fail(PYR_ECORRUPT, "array '%s' has the record of another",
                         a->name);
    settle(a);
    return 0;
}

/* By name, or, if that is NULL, by id. */
static int
open_array(pyri_engine *e, const char *name, uint64_t id, pyri_array **out)
{
    pyri_reader *r = NULL;
    char number[32];
    *out = NULL;
    snprintf(number, sizeof number, "%llu", (unsigned long long)id);
    pyri_array *a = new_array(e, name ? name : number);
    if (!a)
        return pyri_fail_nomem("an array");
    a->id = id;
    int err = pyri_engine_begin(e, &r);
    if (err == 0 && name)
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

int
pyri_array_open(pyri_engine *e, const char *name, pyri_array **out)
{
    return open_array(e, name, 0, out);
}

int
pyri_array_open_id(pyri_engine *e, uint64_t id, pyri_array **out)
{
    return open_array(e, NULL, id, out);
}

void
pyri_array_close(pyri_array *a)
{
    if (!a)
        return;
    pyri_form_fini(&a->schema.form);
    pyri_handlers_end(a->handlers);
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
    if (!pyri_key_rest(k, strlen("name/"), name))
        return pyri_fail(PYR_ECORRUPT, "a name in the catalog is damaged");
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
    pyri_key k = pyri_key_id("attr/", a->id);
    pyri_reader *r;
    pyri_bytes value;
    bool found;
    int err = pyri_engine_begin(a->engine, &r);
    if (err < 0)
        return err;
    err = pyri_engine_get_record(a->engine, r, pyri_key_bytes(&k), &value, &found);
    if (err == 0)
        pyri_buf_add(out, found ? value.data : "{}", found ? value.size : 2);
    pyri_buf_u8(out, 0);
    pyri_engine_end(a->engine, r);
    return err < 0 ? err : pyri_buf_check(out, "attributes");
}

int
pyri_array_set_attributes(pyri_array *a, const char *json)
{
    pyri_key k = pyri_key_id("attr/", a->id);
    pyri_edit edit = {.kind = PYRI_EDIT_PUT,
                      .key = pyri_key_bytes(&k),
                      .value = {json, strlen(json)}};
    return pyri_engine_edit(a->engine, &edit, 1);
}

/* --- clones -------------------------------------------------------------- */

int
pyri_clone_schema(const pyri_array *a, uint64_t label, const pyri_form *form,
                  pyri_schema *clone)
{
    *clone = a->schema;
    clone->who[0] = 0;
    int err = pyri_form_copy(&clone->form, form);
    if (err < 0)
        return err;
    /* ancestors that the snapshot is older than have no part in it */
    pyri_lineage *l = &clone->lineage;
    while (l->n > 1 && l->line[l->n - 1].first >= label)
        l->n--;
    if (l->n == PYRI_MAX_LINE) {
        pyri_form_fini(&clone->form);
        return pyri_fail(PYR_EINVAL, "'%s' is a clone of a clone %d times over",
                         a->name, PYRI_MAX_LINE);
    }
    l->line[l->n++].first = label;
    snprintf(clone->clone_of, sizeof clone->clone_of, "%s", a->name);
    clone->clone_version = label - a->first;
    return 0;
}

int
pyri_clone(pyri_array *a, pyr_version v, const char *name, pyri_array **out)
{
    pyri_snapshot s;
    pyri_schema clone;
    pyri_buf attributes = {0};
    int err = pyri_snapshot_open(a, v, &s);
    if (err < 0)
        return err;
    uint64_t label = s.label;
    err = pyri_clone_schema(a, label, &s.record.form, &clone);
    pyri_snapshot_close(&s);
    if (err < 0)
        return err;
    pyri_key gone;
    pyri_edit kept = pyri_edit_kept(a, label, &gone);
    if ((err = pyri_array_attributes(a, &attributes)) == 0)
        err = put_and_open(a->engine, name, &clone,
                           (const char *)attributes.data, &kept, out);
    err = pyri_fail_kept(a, label, err);
    pyri_form_fini(&clone.form);
    pyri_buf_fini(&attributes);
    return err;
}

int
pyri_array_is_gone(const pyri_array *a, pyri_reader *r, bool *gone)
{
    pyri_key k = pyri_key_id("gone/", a->id);
    pyri_bytes value;
    *gone = false;
    if (a->schema.lineage.n < 2)
        return 0;
    return pyri_engine_get_record(a->engine, r, pyri_key_bytes(&k), &value,
                                  gone);
}
