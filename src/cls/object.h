/*
 * cls/object.h - one RADOS object, as the class methods see it.
 *
 * The methods are plain C and know Ceph only through this table, so that they
 * run in tests on an object in memory. An object is a map of keys to values,
 * and all that a call does to it happens at once when the call succeeds.
 *
 * Inside an OSD a call does not see what it has written itself. So writes are
 * gathered here first, reads look there, and pyri_object_flush() passes them
 * on at the end.
 */
#ifndef PYRI_CLS_OBJECT_H
#define PYRI_CLS_OBJECT_H

#include "base/buf.h"
#include "cls/wire.h"

#include <sys/uio.h>

typedef struct pyri_object pyri_object;

/* Called with entries in order of keys; a result other than 0 ends the list. */
typedef int pyri_entry_fn(void *ctx, pyri_bytes key, pyri_bytes value);

/* All return 0 or a negative errno. Keys that begin with '@' are few and
 * short, and are never listed. */
typedef struct pyri_object_ops {
    int (*exists)(void *ctx); /* or PYRI_CLS_NO_OBJECT */
    int (*create)(void *ctx);
    int (*remove)(void *ctx);
    /* Adds the value to `out`; PYRI_CLS_NONE. */
    int (*get)(void *ctx, pyri_bytes key, pyri_buf *out);
    int (*set)(void *ctx, const pyri_bytes *keys, const pyri_bytes *values,
               size_t n);
    int (*del)(void *ctx, pyri_bytes key);
    /* Up to `most` entries above `after` that begin with `prefix`. */
    int (*list)(void *ctx, pyri_bytes after, pyri_bytes prefix, size_t most,
                pyri_entry_fn *each, void *each_ctx, bool *more);
    int64_t (*now_ns)(void *ctx); /* of the day */
    /* Bytes beside the keys: exactly so many, or PYRI_CLS_NONE if there are
     * less. */
    int (*read)(void *ctx, uint64_t at, size_t size, void *to);
    /* Memory, for the time of the call, that write() need not copy; NULL if
     * there is none. */
    void *(*room)(void *ctx, size_t size);
    /* These two are not shown to later reads of the call. */
    int (*write)(void *ctx, uint64_t at, const struct iovec *iov, int n);
    int (*zero)(void *ctx, uint64_t at, uint64_t size);
    int (*size)(void *ctx, uint64_t *out); /* or PYRI_CLS_NO_OBJECT */
} pyri_object_ops;

typedef struct pyri_change {
    size_t key, key_size, value, value_size; /* places in `bytes` */
    bool del;
} pyri_change;

struct pyri_object {
    const pyri_object_ops *ops;
    void *ctx;
    pyri_buf bytes;
    pyri_change *changes;
    size_t n, room;
    uint32_t *index; /* hash table of changes, from 1; 0 is free */
    size_t index_size;
    bool removed;
}; /* zero-initialise but for the first two; end with pyri_object_fini() */

void pyri_object_fini(pyri_object *o);

int pyri_object_get(pyri_object *o, pyri_bytes key, pyri_buf *out);
int pyri_object_set(pyri_object *o, pyri_bytes key, pyri_bytes value);
int pyri_object_del(pyri_object *o, pyri_bytes key);
int pyri_object_remove(pyri_object *o);
/* Drop all that was written. */
void pyri_object_reset(pyri_object *o);
/* Does not see what the call has written. */
int pyri_object_list(pyri_object *o, pyri_bytes after, pyri_bytes prefix,
                     size_t most, pyri_entry_fn *each, void *ctx, bool *more);
int64_t pyri_object_now(pyri_object *o);
int pyri_object_flush(pyri_object *o);

/* A letter and up to two numbers, big-endian. */
typedef struct pyri_okey {
    uint8_t bytes[PYRI_CLS_MAX_KEY + 1];
    size_t size;
} pyri_okey;

pyri_okey pyri_okey_of(char kind, uint64_t n);
/* A letter and bytes; false if that is too long, or empty. */
bool pyri_okey_name(char kind, pyri_bytes name, pyri_okey *out);
static inline pyri_bytes
pyri_okey_bytes(const pyri_okey *k)
{
    pyri_bytes b = {k->bytes, k->size};
    return b;
}

/* --- the methods --------------------------------------------------------- */

/* Reads `in`, adds the answer to `out`. */
typedef int pyri_method_fn(pyri_object *o, pyri_cursor *in, pyri_buf *out);

typedef struct pyri_method {
    const char *name;
    pyri_method_fn *fn;
    bool writes;
} pyri_method;

extern const pyri_method pyri_methods[]; /* ended by a NULL name */

/* Run a method on an object: check the request, call, flush. */
int pyri_method_run(const pyri_method *m, const pyri_object_ops *ops, void *ctx,
                    pyri_bytes in, pyri_buf *out);

/* edits.c: records, in heads and in the catalog */
int pyri_cls_get(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_scan(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_edit(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_forget(pyri_object *o, pyri_cursor *in, pyri_buf *out);

/* heads.c, history.c: version managers */
int pyri_cls_latest(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_take(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_renew(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_fence(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_reserve(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_complete(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_flights(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_version(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_versions(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_forgotten(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_erase(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_limbo(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_bury(pyri_object *o, pyri_cursor *in, pyri_buf *out);

/* entries.c: tree nodes, and lists of blobs */
int pyri_cls_put(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_find(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_drop(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_undo(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_disown(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_list(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_count(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_sweep(pyri_object *o, pyri_cursor *in, pyri_buf *out);

/* catalog_methods.c: the store as a whole */
int pyri_cls_hello(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_make(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_heads(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_session(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_sessions(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_lease(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_txn(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_txns(pyri_object *o, pyri_cursor *in, pyri_buf *out);

/* slots.c, functions.c: blobs, and functions of their cells */
int pyri_cls_release(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_compute(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_store(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_made(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_reduce(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_tally(pyri_object *o, pyri_cursor *in, pyri_buf *out);
int pyri_cls_tallied(pyri_object *o, pyri_cursor *in, pyri_buf *out);

/* --- shared by the files above ------------------------------------------- */

enum { PYRI_HEAD_MAX_DIMS = 16 };

/* What there is of an array's head, under "@H". */
typedef struct pyri_head {
    uint64_t latest, next; /* newest published; the one to be given next */
    uint32_t epoch;        /* grows with every change of hands of a version */
    int ndim;
    uint64_t shape[PYRI_HEAD_MAX_DIMS]; /* as of latest */
    uint64_t reserved;     /* version that an import is about to set, or 0 */
    uint32_t reserved_epoch;
    uint64_t mark;         /* a number that writers look at */
    uint64_t spoiled;      /* up to here, others may have stored nodes of
                              versions that they never completed */
} pyri_head;

int pyri_head_load(pyri_object *o, pyri_head *h);
int pyri_head_save(pyri_object *o, const pyri_head *h);
/* 0 if the version is published, has its record and is not forgotten;
 * PYRI_CLS_GONE. */
int pyri_head_kept(pyri_object *o, const pyri_head *h, uint64_t version);
/* Adds what there is of a version. */
int pyri_head_tell(pyri_object *o, const pyri_head *h, uint64_t version,
                   pyri_buf *out);
int pyri_head_forget(pyri_object *o, const pyri_head *h, uint64_t version);

/* Note in the catalog that a transaction is decided; PYRI_CLS_FENCED if it was
 * not begun, or was given up. */
int pyri_txn_decide(pyri_object *o, pyri_bytes id);

/* Fails with PYRI_CLS_BAD unless all of the request was read and is right. */
int pyri_cursor_done(const pyri_cursor *in);
int pyri_out_done(const pyri_buf *out);

#endif
