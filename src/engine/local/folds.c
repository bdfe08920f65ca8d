/*
 * engine/local/folds.c - nodes that are stored anew, see pyri_fold.
 *
 * Who makes a version copies names of blobs from the leaves that it finds, in
 * a reader that has ended when the version is completed. If these leaves were
 * folded meanwhile, the blobs may have gone. So there is a count of folds for
 * each family, in the main database,
 *
 *   'f' family (8, big-endian) -> count (8)
 *
 * and a version is completed only if it is what its maker saw. Both are one
 * transaction each, so one of them is first.
 */
#include "engine/local/local.h"

#include "base/bytes.h"
#include "base/fault.h"
#include "engine/local/env.h"

enum { FOLDS_KEY = 9 };

static int
get_folds(pyri_site *s, pyri_txn *txn, uint64_t family, uint8_t key[FOLDS_KEY],
          uint64_t *out)
{
    MDB_val v;
    bool found;
    key[0] = 'f';
    pyri_store64_be(key + 1, family);
    int err = pyri_env_get(txn, s->main_db, key, FOLDS_KEY, &v, &found);
    if (err == 0 && found && v.mv_size != 8)
        err = pyri_fail(PYR_ECORRUPT, "a count of folds is damaged");
    *out = err == 0 && found ? pyri_load64(v.mv_data) : 0;
    return err;
}

int
pyri_fold_count(pyri_site *s, pyri_reader *r, uint64_t family, uint64_t *out)
{
    uint8_t key[FOLDS_KEY];
    return get_folds(s, r->txn, family, key, out);
}

int
pyri_fold_check(pyri_site *s, pyri_txn *txn, const pyri_complete *c)
{
    uint8_t key[FOLDS_KEY];
    uint64_t now;
    if (c->family == 0)
        return 0;
    int err = get_folds(s, txn, c->family, key, &now);
    return err < 0 || now == c->folds
               ? err
               : pyri_fail(PYR_ENOVERSION, "what version %llu of array %llu "
                           "lies on was folded meanwhile",
                           (unsigned long long)c->version,
                           (unsigned long long)c->array);
}

static pyri_complete
named_by(const pyri_fold_blob *b)
{
    return (pyri_complete){.array = b->array,
                           .version = b->version,
                           .blobs = &b->blob,
                           .nblobs = 1};
}

static int
store(pyri_site *s, pyri_txn *txn, pyri_fold *f)
{
    uint8_t key[FOLDS_KEY], value[8];
    uint64_t count = 0;
    int err = 0;
    for (size_t i = 0; i < f->nblobs && err == 0; i++) {
        pyri_complete c = named_by(&f->blobs[i]);
        err = pyri_blobs_name(s, txn, &c, NULL);
    }
    for (size_t i = 0; i < f->nnodes && err == 0; i++)
        err = pyri_meta_replace_node(s, txn, &f->nodes[i]);
    if (err == 0)
        err = pyri_meta_count_replaced(s, txn);
    if (err == 0)
        err = pyri_erase_all(s, txn, &f->gone);
    if (err == 0)
        err = get_folds(s, txn, f->family, key, &count);
    pyri_store64(value, count + 1);
    return err < 0 ? err
                   : pyri_env_put(txn, s->main_db, key, sizeof key, value,
                                  sizeof value);
}

int
pyri_fold_run(pyri_site *s, pyri_fold *f)
{
    pyri_txn *txn;
    pyri_reader *r = NULL;
    int err = pyri_env_write(s->meta, &txn);
    if (err < 0)
        return err;
    if ((err = pyri_reader_begin(s, &r)) == 0)
        err = f->decide(f, r);
    pyri_reader_end(s, r);
    if (err == 0 && f->nnodes)
        err = store(s, txn, f);
    if (err != 0 || f->nnodes == 0) {
        pyri_env_abort(txn);
        return err;
    }
    PYRI_FAULT("fold.commit");
    if ((err = pyri_env_commit(txn, "fold")) < 0)
        return err;
    PYRI_FAULT("fold.done");
    for (size_t i = 0; i < f->nblobs; i++) {
        pyri_complete c = named_by(&f->blobs[i]);
        pyri_blobs_named(s, &c);
    }
    return 0;
}
