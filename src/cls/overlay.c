/*
 * cls/overlay.c - an object that shows a call what it has written itself, and
 * the way from a request to a method.
 */
#include "cls/object.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/room.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

void
pyri_object_fini(pyri_object *o)
{
    pyri_buf_fini(&o->bytes);
    free(o->changes);
    free(o->index);
    o->changes = NULL;
    o->index = NULL;
    o->n = o->room = o->index_size = 0;
}

/* --- changes ------------------------------------------------------------- */

static pyri_bytes
key_at(const pyri_object *o, const pyri_change *c)
{
    return (pyri_bytes){o->bytes.data + c->key, c->key_size};
}

static pyri_bytes
value_at(const pyri_object *o, const pyri_change *c)
{
    return (pyri_bytes){o->bytes.data + c->value, c->value_size};
}

/* The slot of a key in the index: taken by it, or free. */
static uint32_t *
slot_of(pyri_object *o, pyri_bytes key)
{
    size_t at = (size_t)pyri_hash64(key.data, key.size);
    while (true) {
        uint32_t *slot = &o->index[at++ & (o->index_size - 1)];
        if (*slot == 0)
            return slot;
        pyri_bytes other = key_at(o, &o->changes[*slot - 1]);
        if (other.size == key.size &&
            memcmp(other.data, key.data, key.size) == 0)
            return slot;
    }
}

static pyri_change *
find_change(pyri_object *o, pyri_bytes key)
{
    uint32_t *slot = o->index_size ? slot_of(o, key) : NULL;
    return slot && *slot ? &o->changes[*slot - 1] : NULL;
}

static int
grow_index(pyri_object *o)
{
    size_t size = o->index_size ? 2 * o->index_size : 64;
    uint32_t *index = pyri_sys_calloc(size, sizeof *index);
    if (!index)
        return -ENOMEM;
    free(o->index);
    o->index = index;
    o->index_size = size;
    for (size_t i = 0; i < o->n; i++)
        *slot_of(o, key_at(o, &o->changes[i])) = (uint32_t)(i + 1);
    return 0;
}

static int
add_change(pyri_object *o, pyri_bytes key, pyri_bytes value, bool del)
{
    pyri_change c = {.key = o->bytes.size, .key_size = key.size, .del = del};
    if (2 * (o->n + 1) > o->index_size && grow_index(o) < 0)
        return -ENOMEM;
    pyri_change *was = find_change(o, key);
    if (!was)
        pyri_buf_add(&o->bytes, key.data, key.size);
    c.value = o->bytes.size;
    c.value_size = value.size;
    if (value.size)
        pyri_buf_add(&o->bytes, value.data, value.size);
    if (o->bytes.failed ||
        !pyri_room(&o->changes, &o->room, o->n + 1, sizeof *o->changes))
        return -ENOMEM;
    if (was) {
        c.key = was->key;
        *was = c;
        return 0;
    }
    o->changes[o->n++] = c;
    *slot_of(o, key) = (uint32_t)o->n;
    return 0;
}

/* --- the object ---------------------------------------------------------- */

int
pyri_object_get(pyri_object *o, pyri_bytes key, pyri_buf *out)
{
    const pyri_change *c = find_change(o, key);
    if (!c)
        return o->ops->get(o->ctx, key, out);
    if (c->del)
        return PYRI_CLS_NONE;
    pyri_bytes value = value_at(o, c);
    pyri_buf_add(out, value.data, value.size);
    return out->failed ? -ENOMEM : 0;
}

int
pyri_object_set(pyri_object *o, pyri_bytes key, pyri_bytes value)
{
    return add_change(o, key, value, false);
}

int
pyri_object_del(pyri_object *o, pyri_bytes key)
{
    return add_change(o, key, (pyri_bytes){0}, true);
}

void
pyri_object_reset(pyri_object *o)
{
    pyri_buf_reset(&o->bytes);
    o->n = 0;
    if (o->index)
        memset(o->index, 0, o->index_size * sizeof *o->index);
}

int
pyri_object_remove(pyri_object *o)
{
    o->removed = true;
    return 0;
}

int
pyri_object_list(pyri_object *o, pyri_bytes after, pyri_bytes prefix,
                 size_t most, pyri_entry_fn *each, void *ctx, bool *more)
{
    return o->ops->list(o->ctx, after, prefix, most, each, ctx, more);
}

int64_t
pyri_object_now(pyri_object *o)
{
    return o->ops->now_ns(o->ctx);
}

static int
flush_sets(pyri_object *o)
{
    size_t n = 0;
    pyri_bytes *list = pyri_sys_malloc((2 * o->n + 1) * sizeof *list);
    if (!list)
        return -ENOMEM;
    for (size_t i = 0; i < o->n; i++) {
        if (o->changes[i].del)
            continue;
        list[n] = key_at(o, &o->changes[i]);
        list[o->n + n++] = value_at(o, &o->changes[i]);
    }
    int err = n ? o->ops->set(o->ctx, list, list + o->n, n) : 0;
    free(list);
    return err;
}

int
pyri_object_flush(pyri_object *o)
{
    int err = 0;
    if (o->removed)
        return o->ops->remove(o->ctx);
    if (o->n == 0)
        return 0;
    bool there = o->ops->exists(o->ctx) == 0;
    if (!there)
        err = o->ops->create(o->ctx);
    for (size_t i = 0; there && i < o->n && err == 0; i++)
        if (o->changes[i].del)
            err = o->ops->del(o->ctx, key_at(o, &o->changes[i]));
    return err < 0 ? err : flush_sets(o);
}

/* --- keys ---------------------------------------------------------------- */

pyri_okey
pyri_okey_of(char kind, uint64_t n)
{
    pyri_okey k;
    k.bytes[0] = (uint8_t)kind;
    pyri_store64_be(k.bytes + 1, n);
    k.size = 9;
    return k;
}

bool
pyri_okey_name(char kind, pyri_bytes name, pyri_okey *out)
{
    if (name.size == 0 || name.size > PYRI_CLS_MAX_KEY)
        return false;
    out->bytes[0] = (uint8_t)kind;
    memcpy(out->bytes + 1, name.data, name.size);
    out->size = name.size + 1;
    return true;
}

/* --- methods ------------------------------------------------------------- */

int
pyri_cursor_done(const pyri_cursor *in)
{
    return in->failed || in->at != in->end ? PYRI_CLS_BAD : 0;
}

int
pyri_out_done(const pyri_buf *out)
{
    return out->failed ? -ENOMEM : 0;
}

int
pyri_method_run(const pyri_method *m, const pyri_object_ops *ops, void *ctx,
                pyri_bytes in, pyri_buf *out)
{
    pyri_object o = {.ops = ops, .ctx = ctx};
    pyri_cursor c = pyri_cursor_of(in.data, in.size);
    if (pyri_cursor_u8(&c) != PYRI_WIRE || c.failed)
        return PYRI_CLS_BAD;
    int err = m->fn(&o, &c, out);
    if (err == 0)
        err = pyri_out_done(out);
    if (err == 0 && m->writes)
        err = pyri_object_flush(&o);
    pyri_object_fini(&o);
    return err;
}

const pyri_method pyri_methods[] = {
    {"hello", pyri_cls_hello, false},
    {"make", pyri_cls_make, true},
    {"get", pyri_cls_get, false},
    {"scan", pyri_cls_scan, false},
    {"edit", pyri_cls_edit, true},
    {"forget", pyri_cls_forget, true},
    {"txn", pyri_cls_txn, true},
    {"txns", pyri_cls_txns, false},
    {"heads", pyri_cls_heads, false},
    {"session", pyri_cls_session, true},
    {"sessions", pyri_cls_sessions, false},
    {"lease", pyri_cls_lease, true},
    {"latest", pyri_cls_latest, false},
    {"take", pyri_cls_take, true},
    {"renew", pyri_cls_renew, true},
    {"fence", pyri_cls_fence, true},
    {"reserve", pyri_cls_reserve, true},
    {"complete", pyri_cls_complete, true},
    {"flights", pyri_cls_flights, false},
    {"version", pyri_cls_version, false},
    {"versions", pyri_cls_versions, false},
    {"forgotten", pyri_cls_forgotten, false},
    {"erase", pyri_cls_erase, true},
    {"limbo", pyri_cls_limbo, false},
    {"bury", pyri_cls_bury, true},
    {"put", pyri_cls_put, true},
    {"find", pyri_cls_find, false},
    {"drop", pyri_cls_drop, true},
    {"undo", pyri_cls_undo, true},
    {"disown", pyri_cls_disown, true},
    {"list", pyri_cls_list, false},
    {"count", pyri_cls_count, false},
    {"sweep", pyri_cls_sweep, true},
    {"release", pyri_cls_release, true},
    {"compute", pyri_cls_compute, true},
    {"store", pyri_cls_store, true},
    {"made", pyri_cls_made, false},
    {"reduce", pyri_cls_reduce, false},
    {"tally", pyri_cls_tally, true},
    {"tallied", pyri_cls_tallied, false},
    {NULL, NULL, false},
};
