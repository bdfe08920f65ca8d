/*
 * engine/local/records.c - small named values: the database `records` of meta.
 */
#include "engine/local/local.h"

#include "engine/local/env.h"

#include <string.h>

int
pyri_records_get(pyri_site *s, pyri_reader *r, pyri_bytes key,
                     pyri_bytes *value, bool *found)
{
    MDB_val v;
    *value = (pyri_bytes){0};
    int err = pyri_env_get(r->txn, s->records_db, key.data, key.size, &v,
                           found);
    if (err == 0 && *found)
        *value = (pyri_bytes){v.mv_data, v.mv_size};
    return err;
}

int
pyri_records_scan(pyri_site *s, pyri_reader *r, pyri_bytes prefix,
                       pyri_record_fn *each, void *ctx)
{
    MDB_cursor *cursor;
    MDB_val key = {prefix.size, (void *)(uintptr_t)prefix.data}, value;
    bool more;
    int err = pyri_env_cursor(r->txn, s->records_db, &cursor);
    if (err < 0)
        return err;
    err = pyri_env_step(cursor, prefix.size ? MDB_SET_RANGE : MDB_FIRST,
                        prefix, &key, &value, &more);
    while (err == 0 && more) {
        err = each(ctx, (pyri_bytes){key.mv_data, key.mv_size},
                   (pyri_bytes){value.mv_data, value.mv_size});
        if (err == 0)
            err = pyri_env_step(cursor, MDB_NEXT, prefix, &key, &value, &more);
    }
    mdb_cursor_close(cursor);
    return err;
}

static int
make_array(pyri_site *s, MDB_txn *txn, const pyri_edit *e)
{
    pyri_head head = {0};
    bool found;
    int err = pyri_meta_find_head(s, txn, e->array, &head, &found);
    if (err < 0)
        return err;
    if (found)
        return pyri_fail(PYR_EEXIST, "array %llu exists",
                         (unsigned long long)e->array);
    if (e->ndim < 1 || e->ndim > PYR_MAX_DIMS)
        return pyri_fail(PYR_EINVAL, "an array of %d dimensions", e->ndim);
    head = (pyri_head){.latest = e->version, .ndim = e->ndim};
    memcpy(head.shape, e->shape, (size_t)e->ndim * sizeof head.shape[0]);
    return pyri_meta_put_head(s, txn, e->array, &head);
}

static bool
has_value(bool found, const MDB_val *v, pyri_bytes want)
{
    if (!found || want.size == 0)
        return !found && want.size == 0;
    return v->mv_size == want.size &&
           memcmp(v->mv_data, want.data, want.size) == 0;
}

static int
apply_edit(pyri_site *s, MDB_txn *txn, const pyri_edit *e)
{
    if (e->kind == PYRI_EDIT_ARRAY)
        return make_array(s, txn, e);
    if (e->kind == PYRI_EDIT_FORGET)
        return pyri_erase_forget(s, txn, e);
    if (e->kind == PYRI_EDIT_KEPT)
        return pyri_meta_kept(s, txn, e);
    if (e->key.size == 0 || e->key.size > PYRI_MAX_KEY)
        return pyri_fail(PYR_EINVAL, "a record's key cannot have %zu bytes",
                         e->key.size);
    bool found = false;
    MDB_val v;
    int err = 0;
    if (e->kind != PYRI_EDIT_PUT)
        err = pyri_env_get(txn, s->records_db, e->key.data, e->key.size, &v,
                           &found);
    if (err < 0)
        return err;
    if (e->kind == PYRI_EDIT_SAME)
        return has_value(found, &v, e->value)
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
    return pyri_env_put(txn, s->records_db, e->key.data, e->key.size,
                        e->value.data, e->value.size);
}

int
pyri_records_edit(pyri_site *s, const pyri_edit *edits, size_t n)
{
    MDB_txn *txn;
    int err = pyri_env_write(s->meta, &txn);
    if (err < 0)
        return err;
    for (size_t i = 0; i < n && err == 0; i++)
        err = apply_edit(s, txn, &edits[i]);
    if (err == 0)
        return pyri_env_commit(txn, "edit records");
    mdb_txn_abort(txn);
    return err;
}
