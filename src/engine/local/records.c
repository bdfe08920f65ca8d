/*
 * engine/local/records.c - records: small named values that may change.
 *
 *   key -> value, then a checksum of key and value (8)
 */
#include "engine/local/local.h"

#include "base/bytes.h"
#include "engine/local/env.h"

#include <string.h>

enum { SUM = 8 };

static uint64_t
sum_of(pyri_bytes key, pyri_bytes value)
{
    return pyri_meta_sum(key, value, (pyri_bytes){"", 0});
}

/* The value without its checksum; PYR_ECORRUPT. */
static int
decode(pyri_bytes key, const MDB_val *v, pyri_bytes *out)
{
    const uint8_t *at = v->mv_data;
    if (v->mv_size >= SUM) {
        *out = (pyri_bytes){at, v->mv_size - SUM};
        if (pyri_load64(at + out->size) == sum_of(key, *out))
            return 0;
    }
    *out = (pyri_bytes){0};
    return pyri_fail(PYR_ECORRUPT, "record %.*s is damaged", (int)key.size,
                     (const char *)key.data);
}

int
pyri_meta_get_record(pyri_site *s, pyri_reader *r, pyri_bytes key,
                     pyri_bytes *value, bool *found)
{
    MDB_val v;
    *value = (pyri_bytes){0};
    int err = pyri_env_get(r->txn, s->records_db, key.data, key.size, &v,
                           found);
    return err < 0 || !*found ? err : decode(key, &v, value);
}

int
pyri_meta_scan_records(pyri_site *s, pyri_reader *r, pyri_bytes prefix,
                       pyri_record_fn *each, void *ctx)
{
    pyri_walk *cursor;
    MDB_val key = {prefix.size, (void *)(uintptr_t)prefix.data}, value;
    bool more;
    int err = pyri_env_cursor(r->txn, s->records_db, &cursor);
    if (err < 0)
        return err;
    err = pyri_env_step(cursor, prefix.size ? MDB_SET_RANGE : MDB_FIRST,
                        prefix, &key, &value, &more);
    while (err == 0 && more) {
        pyri_bytes k = {key.mv_data, key.mv_size}, plain;
        decode(k, &value, &plain); /* damaged ones are shown without value */
        err = each(ctx, k, plain);
        if (err == 0)
            err = pyri_env_step(cursor, MDB_NEXT, prefix, &key, &value, &more);
    }
    pyri_env_cursor_close(cursor);
    return err;
}

static bool
has_value(bool found, pyri_bytes value, pyri_bytes want)
{
    if (!found || want.size == 0)
        return !found && want.size == 0;
    return value.size == want.size &&
           memcmp(value.data, want.data, want.size) == 0;
}

static int
apply_edit(pyri_site *s, pyri_txn *txn, const pyri_edit *e)
{
    if (e->kind == PYRI_EDIT_ARRAY)
        return pyri_meta_make_array(s, txn, e);
    if (e->kind == PYRI_EDIT_FORGET)
        return pyri_erase_forget(s, txn, e);
    if (e->kind == PYRI_EDIT_KEPT)
        return pyri_meta_kept(s, txn, e);
    if (e->kind == PYRI_EDIT_MARK)
        return pyri_meta_mark(s, txn, e);
    if (e->key.size == 0 || e->key.size > PYRI_MAX_KEY)
        return pyri_fail(PYR_EINVAL, "a record's key cannot have %zu bytes",
                         e->key.size);
    bool found = false;
    MDB_val v;
    pyri_bytes now = {0};
    int err = 0;
    if (e->kind != PYRI_EDIT_PUT)
        err = pyri_env_get(txn, s->records_db, e->key.data, e->key.size, &v,
                           &found);
    if (err == 0 && found && e->kind != PYRI_EDIT_DELETE)
        err = decode(e->key, &v, &now);
    if (err < 0)
        return err;
    if (e->kind == PYRI_EDIT_SAME)
        return has_value(found, now, e->value)
                   ? 0
                   : pyri_fail(PYR_EFENCED, "record %.*s has changed",
                               (int)e->key.size, (const char *)e->key.data);
    if (e->kind == PYRI_EDIT_CREATE && found)
        return pyri_fail(PYR_EEXIST, "record %.*s exists", (int)e->key.size,
                         (const char *)e->key.data);
    if ((e->kind == PYRI_EDIT_DELETE || e->kind == PYRI_EDIT_EXPECT) && !found)
        return pyri_fail(PYR_ENOTFOUND, "there is no record %.*s",
                         (int)e->key.size, (const char *)e->key.data);
    if (e->kind == PYRI_EDIT_DELETE)
        return pyri_env_delete(txn, s->records_db, e->key.data, e->key.size,
                               &found);
    if (e->kind == PYRI_EDIT_EXPECT)
        return 0;
    uint8_t sum[SUM];
    pyri_store64(sum, sum_of(e->key, e->value));
    return pyri_env_put_two(txn, s->records_db, e->key.data, e->key.size,
                            e->value, (pyri_bytes){sum, sizeof sum});
}

int
pyri_meta_edit(pyri_site *s, const pyri_edit *edits, size_t n)
{
    pyri_txn *txn;
    int err = pyri_env_write(s->meta, &txn);
    if (err < 0)
        return err;
    for (size_t i = 0; i < n && err == 0; i++)
        err = apply_edit(s, txn, &edits[i]);
    if (err == 0)
        return pyri_env_commit(txn, "edit records");
    pyri_env_abort(txn);
    return err;
}
