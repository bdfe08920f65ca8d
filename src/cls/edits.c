/*
 * cls/edits.c - records: in the catalog, and in the head of the array that they
 * are about; edits of one object, and its part in edits of several.
 *
 * Edits that concern several objects are prepared in the heads first: checked,
 * and kept under "@P" with the id of the transaction. Until that is decided the
 * object takes no other edits; versions come and go meanwhile. The catalog
 * decides, in the step that applies its own part (catalog_methods.c). A head
 * that a transaction makes is made when it is prepared: nobody knows its id
 * before the name that leads to it is there.
 */
#include "cls/object.h"

#include "base/bytes.h"

#include <string.h>

static const pyri_bytes PREPARED = {"@P", 2};

/* --- reading ------------------------------------------------------------- */

static int
get_one(pyri_object *o, pyri_bytes name, pyri_buf *out)
{
    pyri_okey key;
    pyri_buf value = {0};
    if (!pyri_okey_name('R', name, &key))
        return PYRI_CLS_BAD;
    int err = pyri_object_get(o, pyri_okey_bytes(&key), &value);
    if (err == 0 || err == PYRI_CLS_NONE) {
        pyri_buf_u8(out, err == 0);
        pyri_buf_varint(out, err == 0 ? value.size : 0);
        if (err == 0 && value.size)
            pyri_buf_add(out, value.data, value.size);
        err = 0;
    }
    pyri_buf_fini(&value);
    return err;
}

/* One record; then the id of the transaction that is prepared, if any. */
int
pyri_cls_get(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_bytes name = pyri_cursor_str(in);
    int err = pyri_cursor_done(in);
    if (err < 0 || (err = get_one(o, name, out)) < 0)
        return err;
    pyri_buf prepared = {0};
    err = pyri_object_get(o, PREPARED, &prepared);
    if (err == 0 && prepared.size >= PYRI_CLS_ID)
        pyri_buf_add(out, prepared.data, PYRI_CLS_ID);
    pyri_buf_fini(&prepared);
    return err == PYRI_CLS_NONE ? 0 : err;
}

typedef struct page {
    pyri_buf *out;
    bool full;
} page;

static int
add_record(void *ctx, pyri_bytes key, pyri_bytes value)
{
    page *p = ctx;
    if (p->out->size > PYRI_CLS_PAGE) {
        p->full = true;
        return 1;
    }
    pyri_buf_u8(p->out, PYRI_PAGE_ITEM);
    pyri_buf_varint(p->out, key.size - 1);
    pyri_buf_add(p->out, (const uint8_t *)key.data + 1, key.size - 1);
    pyri_buf_varint(p->out, value.size);
    if (value.size)
        pyri_buf_add(p->out, value.data, value.size);
    return 0;
}

int
pyri_cls_scan(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_bytes prefix = pyri_cursor_str(in), after = pyri_cursor_str(in);
    pyri_okey from = {.bytes = {'R'}, .size = 1}, begin = from;
    page p = {.out = out};
    bool more = false;
    int err = pyri_cursor_done(in);
    if (err < 0)
        return err;
    if ((prefix.size && !pyri_okey_name('R', prefix, &begin)) ||
        (after.size && !pyri_okey_name('R', after, &from)))
        return PYRI_CLS_BAD;
    err = pyri_object_list(o, pyri_okey_bytes(&from), pyri_okey_bytes(&begin),
                           PYRI_CLS_ITEMS, add_record, &p, &more);
    if (err >= 0)
        pyri_buf_u8(out, more || p.full ? PYRI_PAGE_MORE : PYRI_PAGE_END);
    return err < 0 ? err : 0;
}

/* --- editing ------------------------------------------------------------- */

typedef struct edit {
    int kind;
    pyri_bytes key, value;
    uint64_t version;
    int ndim;
    uint64_t shape[PYRI_HEAD_MAX_DIMS];
} edit;

static int
read_edit(pyri_cursor *in, edit *e)
{
    e->kind = pyri_cursor_u8(in);
    e->key = pyri_cursor_str(in);
    e->value = pyri_cursor_str(in);
    e->version = pyri_cursor_u64(in);
    e->ndim = pyri_cursor_u8(in);
    if (in->failed || e->ndim > PYRI_HEAD_MAX_DIMS)
        return PYRI_CLS_BAD;
    for (int d = 0; d < e->ndim; d++)
        e->shape[d] = pyri_cursor_u64(in);
    return in->failed ? PYRI_CLS_BAD : 0;
}

static int
same(pyri_object *o, pyri_bytes key, pyri_bytes value)
{
    pyri_buf now = {0};
    int err = pyri_object_get(o, key, &now);
    bool there = err == 0, is;
    if (!there && err != PYRI_CLS_NONE)
        return err;
    if (!there || value.size == 0)
        is = !there && value.size == 0;
    else
        is = now.size == value.size &&
             memcmp(now.data, value.data, value.size) == 0;
    pyri_buf_fini(&now);
    return is ? 0 : PYRI_CLS_FENCED;
}

static int
edit_record(pyri_object *o, const edit *e)
{
    pyri_okey name;
    pyri_buf now = {0};
    if (!pyri_okey_name('R', e->key, &name))
        return PYRI_CLS_BAD;
    pyri_bytes key = pyri_okey_bytes(&name);
    if (e->kind == PYRI_WIRE_PUT)
        return pyri_object_set(o, key, e->value);
    if (e->kind == PYRI_WIRE_SAME)
        return same(o, key, e->value);
    int err = pyri_object_get(o, key, &now);
    pyri_buf_fini(&now);
    if (err < 0 && err != PYRI_CLS_NONE)
        return err;
    if (e->kind == PYRI_WIRE_CREATE)
        return err == 0 ? PYRI_CLS_THERE : pyri_object_set(o, key, e->value);
    if (err == 0 && e->kind == PYRI_WIRE_DELETE)
        err = pyri_object_del(o, key);
    return err; /* PYRI_CLS_NONE: it is not there */
}

static int
make_head(pyri_object *o, const edit *e)
{
    pyri_head h = {0};
    int err = pyri_head_load(o, &h);
    if (err == 0)
        return PYRI_CLS_THERE;
    if (err != PYRI_CLS_NO_OBJECT)
        return err;
    if (e->ndim < 1 || e->version >= UINT64_MAX - 1)
        return PYRI_CLS_BAD;
    h = (pyri_head){.latest = e->version,
                    .next = e->version + 1,
                    .ndim = e->ndim};
    memcpy(h.shape, e->shape, sizeof h.shape);
    return pyri_head_save(o, &h);
}

static int
edit_version(pyri_object *o, const edit *e)
{
    pyri_head h;
    int err = pyri_head_load(o, &h);
    if (err == PYRI_CLS_NO_OBJECT) /* all of its versions have gone */
        return e->kind == PYRI_WIRE_KEPT ? PYRI_CLS_GONE : PYRI_CLS_INVALID;
    if (err < 0)
        return err;
    return e->kind == PYRI_WIRE_KEPT ? pyri_head_kept(o, &h, e->version)
                                     : pyri_head_forget(o, &h, e->version);
}

static int
set_mark(pyri_object *o, uint64_t mark)
{
    pyri_head h;
    int err = pyri_head_load(o, &h);
    h.mark = mark;
    return err == PYRI_CLS_NO_OBJECT ? PYRI_CLS_NONE
           : err < 0                 ? err
                                     : pyri_head_save(o, &h);
}

static int
apply_one(pyri_object *o, const edit *e)
{
    pyri_okey note = pyri_okey_of('A', e->version);
    switch (e->kind) {
    case PYRI_WIRE_ARRAY: return make_head(o, e);
    case PYRI_WIRE_FORGET:
    case PYRI_WIRE_KEPT: return edit_version(o, e);
    case PYRI_WIRE_MARK: return set_mark(o, e->version);
    case PYRI_WIRE_NOTE:
        return pyri_object_set(o, pyri_okey_bytes(&note), (pyri_bytes){"", 0});
    case PYRI_WIRE_PUT:
    case PYRI_WIRE_CREATE:
    case PYRI_WIRE_DELETE:
    case PYRI_WIRE_EXPECT:
    case PYRI_WIRE_SAME: return edit_record(o, e);
    }
    return PYRI_CLS_BAD;
}

/* Is a version to be forgotten? That is for those who may, by a method of its
 * own. */
static bool
forgets(pyri_bytes edits)
{
    pyri_cursor in = pyri_cursor_of(edits.data, edits.size);
    edit e = {0};
    while (in.at < in.end && read_edit(&in, &e) == 0)
        if (e.kind == PYRI_WIRE_FORGET)
            return true;
    return false;
}

/* Apply a batch; tells whether it made the head. Each edit is at least 12
 * bytes long, so there cannot be many more of them than bytes came in. */
static int
apply(pyri_object *o, pyri_bytes edits, bool *made)
{
    pyri_cursor in = pyri_cursor_of(edits.data, edits.size);
    int err = 0;
    *made = false;
    while (err == 0 && in.at < in.end) {
        edit e = {0};
        if ((err = read_edit(&in, &e)) == 0)
            err = apply_one(o, &e);
        *made |= e.kind == PYRI_WIRE_ARRAY;
    }
    return err;
}

/* --- transactions -------------------------------------------------------- */

/* "@P": id, whether the object was made by it, edits. */
static int
load_prepared(pyri_object *o, pyri_buf *out)
{
    int err = pyri_object_get(o, PREPARED, out);
    if (err == 0 && out->size < PYRI_CLS_ID + 1)
        err = PYRI_CLS_BAD;
    return err;
}

static int
prepare(pyri_object *o, pyri_bytes id, pyri_bytes edits)
{
    bool made;
    pyri_buf b = {0};
    int err = apply(o, edits, &made);
    if (err < 0)
        return err;
    if (!made)
        pyri_object_reset(o);
    pyri_buf_add(&b, id.data, id.size);
    pyri_buf_u8(&b, made);
    if (!made && edits.size)
        pyri_buf_add(&b, edits.data, edits.size);
    err = b.failed ? -ENOMEM : 0;
    if (err == 0)
        err = pyri_object_set(o, PREPARED, (pyri_bytes){b.data, b.size});
    pyri_buf_fini(&b);
    return err;
}

/* End what was prepared under this id; nothing if that has happened. */
static int
end_prepared(pyri_object *o, pyri_bytes id, const pyri_buf *p, bool apply_it)
{
    bool made = p->data[PYRI_CLS_ID], unused;
    if (memcmp(p->data, id.data, PYRI_CLS_ID) != 0)
        return 0;
    if (made && !apply_it)
        return pyri_object_remove(o);
    int err = 0;
    if (apply_it && !made)
        err = apply(o, (pyri_bytes){p->data + PYRI_CLS_ID + 1,
                                    p->size - PYRI_CLS_ID - 1}, &unused);
    return err < 0 ? err : pyri_object_del(o, PREPARED);
}

static int
run_edit(pyri_object *o, pyri_cursor *in, bool may_forget)
{
    pyri_buf p = {0};
    int mode = pyri_cursor_u8(in);
    pyri_bytes id = {pyri_cursor_take(in, PYRI_CLS_ID), PYRI_CLS_ID};
    pyri_bytes edits = pyri_cursor_str(in);
    bool made;
    int err = pyri_cursor_done(in);
    if (err < 0)
        return err;
    if (!may_forget && forgets(edits))
        return PYRI_CLS_BAD;
    err = load_prepared(o, &p);
    bool prepared = err == 0;
    bool ours = prepared && memcmp(p.data, id.data, PYRI_CLS_ID) == 0;
    if (err == PYRI_CLS_NONE)
        err = 0;
    if (err < 0)
        goto out;
    switch (mode) {
    case PYRI_MODE_NOW:
        err = prepared ? PYRI_CLS_BUSY : apply(o, edits, &made);
        break;
    case PYRI_MODE_PREPARE:
        if (prepared)
            err = ours ? 0 : PYRI_CLS_BUSY;
        else
            err = prepare(o, id, edits);
        break;
    case PYRI_MODE_APPLY:
    case PYRI_MODE_CANCEL:
        if (prepared)
            err = end_prepared(o, id, &p, mode == PYRI_MODE_APPLY);
        break;
    case PYRI_MODE_COMMIT:
        if ((err = pyri_txn_decide(o, id)) == 0)
            err = apply(o, edits, &made);
        break;
    default: err = PYRI_CLS_BAD;
    }
out:
    pyri_buf_fini(&p);
    return err;
}

int
pyri_cls_edit(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    return run_edit(o, in, false);
}

int
pyri_cls_forget(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    return run_edit(o, in, true);
}
