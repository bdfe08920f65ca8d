/*
 * array/origin.c - the array that copies go to, and where it begins.
 *
 * Version 0 of most arrays is all fill. That of a clone is a snapshot of
 * another array, which has to be there before the clone can be made:
 *
 *   - in the copy of that array, if it is in the same store and has it: then
 *     clone and parent share what they shared;
 *   - else in an array of its own, called NAME.origin, that holds just this
 *     one snapshot.
 *
 * If version 0 of the clone was forgotten, nothing has to be there: the copy
 * is an array of its own, and what the first version holds is written whole.
 */
#include "array/copies.h"

#include "array/keys.h"
#include "base/bytes.h"
#include "base/fault.h"

#include <stdio.h>
#include <string.h>

/* --- finding a parent ---------------------------------------------------- */

typedef struct search {
    pyri_engine *engine;
    pyri_reader *reader;
    uint64_t source, label;
    pyri_array *found;
} search;

/* Can a clone begin with this label of the array? */
static int
has_label(pyri_array *a, pyri_reader *r, uint64_t label, bool *has)
{
    pyri_version_get get;
    bool gone = false;
    int err = 0;
    *has = label == a->first && a->schema.lineage.n == 1;
    if (*has || label < a->first)
        return 0;
    if (label == a->first)
        err = pyri_array_is_gone(a, r, &gone);
    if (err == 0)
        err = pyri_engine_get_version(
            a->engine, r, pyri_lineage_owner(&a->schema.lineage, label), label,
            &get);
    if (err == 0)
        *has = get.found && !gone && (label == a->first || !get.forgotten);
    return err;
}

static int
look_at(void *ctx, pyri_bytes key, pyri_bytes value)
{
    search *s = ctx;
    pyri_copy_state state;
    pyri_array *a;
    size_t skip = strlen("copy/");
    bool has;
    if (key.size != skip + 8 || pyri_copy_state_decode(value, &state) < 0 ||
        state.source != s->source)
        return 0;
    uint64_t id = pyri_load64_be((const uint8_t *)key.data + skip);
    int err = pyri_array_open_id(s->engine, id, &a);
    if (err == 0)
        err = has_label(a, s->reader, s->label, &has);
    if (err == 0 && has) {
        s->found = a;
        return 1;
    }
    pyri_array_close(a);
    return err;
}

/* A copy of array `source` that has the label; *out is NULL if there is none. */
static int
find_parent(pyri_engine *e, uint64_t source, uint64_t label, pyri_array **out)
{
    search s = {.engine = e, .source = source, .label = label};
    int err = pyri_engine_begin(e, &s.reader);
    if (err < 0)
        return err;
    err = pyri_engine_scan_records(e, s.reader, (pyri_bytes){"copy/", 5},
                                   look_at, &s);
    pyri_engine_end(e, s.reader);
    *out = s.found;
    return err < 0 ? err : 0;
}

/* --- making arrays ------------------------------------------------------- */

/* Put an array that is a copy of array `source`. */
static int
put_copy(pyri_array *from, pyri_engine *e, const char *name, uint64_t source,
         pyri_schema *schema, const pyri_edit *kept)
{
    pyri_copy_state state = {.source = source};
    pyri_buf bytes = {0}, attributes = {0};
    pyri_copy_state_encode(&state, &bytes);
    int err = pyri_buf_check(&bytes, "the record of a copy");
    pyri_bytes copy = {bytes.data, bytes.size};
    if (err == 0)
        err = pyri_array_attributes(from, &attributes);
    if (err == 0)
        err = pyri_array_put(e, name, schema, (const char *)attributes.data,
                             kept, &copy);
    if (err == 0)
        PYRI_FAULT("copy.created");
    pyri_buf_fini(&bytes);
    pyri_buf_fini(&attributes);
    return err;
}

/* An array that begins as all fill, its versions counted from `first` on. */
static int
put_plain(pyri_array *from, pyri_engine *e, const char *name, uint64_t source,
          uint64_t first)
{
    pyri_schema schema = from->schema;
    schema.lineage.n = 1;
    schema.lineage.line[0].first = first;
    schema.clone_of[0] = 0;
    schema.clone_version = 0;
    int err = pyri_form_init(&schema.form, schema.ndim, from->schema.form.shape,
                             schema.chunk);
    if (err == 0)
        err = put_copy(from, e, name, source, &schema, NULL);
    pyri_form_fini(&schema.form);
    return err;
}

static int
put_clone(pyri_array *from, pyri_array *parent, const char *name)
{
    pyri_snapshot s;
    pyri_schema clone;
    pyri_reader *r;
    pyri_key gone;
    uint64_t label = from->first;
    int err = pyri_engine_begin(parent->engine, &r);
    if (err < 0)
        return err;
    if ((err = pyri_snapshot_open_label(parent, r, label, &s)) == 0) {
        err = pyri_clone_schema(parent, label, &s.record.form, &clone);
        pyri_snapshot_close(&s);
    }
    pyri_engine_end(parent->engine, r);
    if (err < 0)
        return err;
    clone.created_ns = from->schema.created_ns;
    clone.clone_version = from->schema.clone_version;
    memcpy(clone.who, from->schema.who, sizeof clone.who);
    memcpy(clone.clone_of, from->schema.clone_of, sizeof clone.clone_of);
    pyri_edit kept = pyri_edit_kept(parent, label, &gone);
    err = put_copy(from, parent->engine, name, from->id, &clone, &kept);
    pyri_form_fini(&clone.form);
    return err;
}

/* --- where a clone begins ------------------------------------------------ */

/* Make the array that holds the snapshot with which a clone begins, or go on
 * with it. */
static int
make_origin(pyri_array *from, pyri_engine *e, const char *name, uint64_t owner,
            pyri_array **out)
{
    char origin[PYR_MAX_NAME + 1];
    pyri_copy_state state;
    pyr_version latest;
    int n = snprintf(origin, sizeof origin, "%s.origin", name);
    if (n < 0 || (size_t)n >= sizeof origin)
        return pyri_fail(PYR_EINVAL, "the name '%s' is too long for a copy of "
                         "a clone: '%s.origin' is needed, too", name, name);
    int err = pyri_array_open(e, origin, out);
    if (err == PYR_ENOTFOUND) {
        err = put_plain(from, e, origin, owner, 0);
        if (err == 0)
            err = pyri_array_open(e, origin, out);
    }
    if (err < 0)
        return err;
    err = pyri_copy_state_get(*out, &state);
    if (err == 0)
        err = pyri_latest(*out, &latest);
    if (err == PYR_ENOTFOUND ||
        (err == 0 && (state.source != owner || latest)))
        err = pyri_fail(PYR_EEXIST, "array '%s', where the copy of the clone "
                        "'%s' would begin, is something else", origin, name);
    pyri_replay p = {.from = from, .to = *out, .label = from->first};
    if (err == 0 && from->first)
        err = pyri_replay_version(&p);
    pyri_copy_state was = state;
    state.done.label = from->first;
    if (err == 0 && from->first)
        err = pyri_replay_hash(*out, from->first, true, &state.done.hash);
    if (err == 0)
        err = pyri_copy_state_put(*out, &was, &state);
    if (err < 0) {
        pyri_array_close(*out);
        *out = NULL;
    }
    return err;
}

static int
create_clone(pyri_array *from, pyri_engine *e, const char *name)
{
    uint64_t owner = pyri_lineage_owner(&from->schema.lineage, from->first);
    pyri_array *parent = NULL;
    int err = find_parent(e, owner, from->first, &parent);
    if (err == 0 && !parent)
        err = make_origin(from, e, name, owner, &parent);
    if (err == 0)
        err = put_clone(from, parent, name);
    pyri_array_close(parent);
    return err;
}

int
pyri_copy_create(pyri_array *from, pyri_engine *e, const char *name)
{
    bool gone = false;
    pyri_reader *r;
    int err = pyri_engine_begin(from->engine, &r);
    if (err < 0)
        return err;
    err = pyri_array_is_gone(from, r, &gone);
    pyri_engine_end(from->engine, r);
    if (err < 0)
        return err;
    if (from->schema.lineage.n == 1 || gone)
        return put_plain(from, e, name, from->id, from->first);
    return create_clone(from, e, name);
}
