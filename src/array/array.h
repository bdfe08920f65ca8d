/*
 * array/array.h - from boxes of cells to chunks and versions. The door of the
 * layer: everything that the public calls do is a function here.
 *
 * Arguments are checked in api/: boxes are inside 64 bits, types and names are
 * valid. What depends on the store's state (does the version exist, is the box
 * inside its shape) is checked here.
 */
#ifndef PYRI_ARRAY_ARRAY_H
#define PYRI_ARRAY_ARRAY_H

#include "chunk/frag.h"
#include "engine/engine.h"
#include "kernel/kernel.h"
#include "nd/nd.h"
#include "op/op.h"
#include "tree/tree.h"
#include "version/version.h"

#include <pyramid/array.h>
#include <pyramid/keep.h>
#include <pyramid/op.h>
#include <pyramid/version.h>

/* --- arrays (schema.c, catalog.c) ---------------------------------------- */

/* What an array is for ever. */
typedef struct pyri_schema {
    int ndim;
    pyr_type type;
    uint64_t chunk[PYR_MAX_DIMS];
    uint64_t fill; /* bits of a cell */
    pyr_codec codec;
    int level;
    int64_t created_ns;
    char who[256];
    pyri_form form;       /* of version 0 */
    pyri_lineage lineage; /* the last of the line is the array itself */
    char clone_of[PYR_MAX_NAME + 1];
    uint64_t clone_version;
} pyri_schema;

typedef struct pyri_array {
    pyri_engine *engine;
    uint64_t id;
    uint64_t first; /* label of version 0 */
    char name[PYR_MAX_NAME + 1];
    pyri_schema schema;
    pyri_frag_style style;
    struct pyri_handlers *handlers; /* that were met last; handlers.c */
    struct pyri_tidy *tidy; /* of the store; NULL: readers leave all as it is */
} pyri_array;

/* Bytes of the cells of a box; UINT64_MAX if they are more. */
uint64_t pyri_box_bytes(const pyri_array *a, const pyri_box *box);

/* The chunk shape for a spec that leaves it open: equal-sided, about 1 MiB. */
void pyri_schema_choose_chunk(int ndim, pyr_type type, const uint64_t *shape,
                              uint64_t *chunk);
void pyri_schema_encode(const pyri_schema *s, pyri_buf *out);
int pyri_schema_decode(pyri_bytes bytes, pyri_schema *s);

/* Give a handle of what was made, unless out is NULL; the form of the schema
 * may have gone over to it. */
int pyri_array_create(pyri_engine *e, const char *name, pyri_schema *schema,
                      const char *attributes, pyri_array **out);
int pyri_array_open(pyri_engine *e, const char *name, pyri_array **out);
/* By id; it has no name then but the id. */
int pyri_array_open_id(pyri_engine *e, uint64_t id, pyri_array **out);
void pyri_array_close(pyri_array *a);
int pyri_array_list(pyri_engine *e, pyr_name_fn *each, void *ctx);
int pyri_array_attributes(pyri_array *a, pyri_buf *out);
int pyri_array_set_attributes(pyri_array *a, const char *json);

int pyri_tag_set(pyri_array *a, const char *tag, pyr_version v);
int pyri_tag_delete(pyri_array *a, const char *tag);
int pyri_tag_get(pyri_array *a, const char *tag, pyr_version *out);
int pyri_tag_list(pyri_array *a, pyr_tag_fn *each, void *ctx);
int pyri_clone(pyri_array *a, pyr_version v, const char *name,
               pyri_array **out); /* which may be NULL */
/* Has version 0, which is the snapshot of another array, been forgotten? */
int pyri_array_is_gone(const pyri_array *a, pyri_reader *r, bool *gone);

/* --- handlers (handler_list.c; handlers.h has them at work) --------------- */

/* A text that may be a handler of the array, as pyri_expr_parse(). */
int pyri_handler_parse(const pyri_array *a, const char *text, pyri_expr *e,
                       pyri_kernels *k, pyri_buf *canon);
int pyri_handler_add(pyri_array *a, const char *text, uint32_t *number);
int pyri_handler_remove(pyri_array *a, uint32_t number);
int pyri_handler_each(pyri_array *a, pyr_handler_fn *each, void *ctx);

/* --- parts --------------------------------------------------------------- */

/* Cells of the array and where they are in memory: what pyr_part says, checked
 * and complete. */
typedef struct pyri_part {
    pyri_run run;
    pyri_mem mem;
} pyri_part;

/* --- snapshots (snapshot.c) ---------------------------------------------- */

/* A published version, open for reading through one reader. */
typedef struct pyri_snapshot {
    pyri_array *array;
    pyri_reader *reader; /* its own, unless borrowed */
    bool borrowed;
    bool forgotten;      /* some of it may have gone */
    uint64_t label;
    pyri_record record;  /* root and form only */
    pyri_grid grid;
    pyri_tree tree;
} pyri_snapshot;

/* `v` as users count, or PYR_LATEST. PYR_ENOVERSION. */
int pyri_snapshot_open(pyri_array *a, pyr_version v, pyri_snapshot *s);
/* By label, through a reader that the caller ends later; a forgotten one,
 * too, as long as its record is there. */
int pyri_snapshot_open_label(pyri_array *a, pyri_reader *r, uint64_t label,
                             pyri_snapshot *s);
void pyri_snapshot_close(pyri_snapshot *s);
/* `err` of a read of that label; a part that was not found is no damage if the
 * version was forgotten meanwhile: PYR_ENOVERSION. */
int pyri_snapshot_explain(pyri_array *a, uint64_t label, int err);
/* PYR_EBOUNDS unless the run is inside the shape; the second one is for a
 * shape that is known without opening the snapshot. */
int pyri_snapshot_check(const pyri_snapshot *s, const pyri_run *run);
int pyri_shape_check(const pyri_array *a, uint64_t label,
                     const uint64_t *shape, const pyri_run *run);

/* How often leaves of the array and its kin were folded, as the reader sees
 * it: if it is the same later, all that they named then is there still. */
int pyri_folds(const pyri_array *a, pyri_reader *r, uint64_t *out);

int pyri_latest(pyri_array *a, pyr_version *out);
int pyri_info(pyri_array *a, pyr_version v, pyr_info *out);
int pyri_history(pyri_array *a, pyr_version first, pyr_version last,
                 pyr_change_fn *each, void *ctx);

/* The digest of a snapshot's root; *known is false if there is none. */
int pyri_snapshot_digest(pyri_array *a, pyr_version v, pyri_digest *out,
                         bool *known);

/* --- is it whole? (verify.c, repair.c) ----------------------------------- */

int pyri_verify(pyri_engine *e, const pyr_verify_spec *spec,
                pyr_verified *out);
int pyri_repair(pyri_engine *e, const pyr_verify_spec *spec,
                pyr_repaired *out);

/* --- doing things -------------------------------------------------------- */

int pyri_read(pyri_array *a, pyr_version v, const pyri_part *parts, size_t n);
/* `afresh` trusts nothing that was verified or written before. */
int pyri_read_snapshot(pyri_snapshot *s, const pyri_part *parts, size_t n,
                       bool afresh);

typedef struct pyri_write_how {
    bool nowait;
    const char *message;
} pyri_write_how;

int pyri_write(pyri_array *a, const pyri_part *parts, size_t n,
               const pyri_write_how *how, pyr_version *made);
int pyri_resize(pyri_array *a, const uint64_t *shape, pyr_version *made);
int pyri_append(pyri_array *a, int axis, uint64_t count, const void *buf,
                uint64_t *at, pyr_version *made);
int pyri_wait(pyri_array *a, pyr_version v, int timeout_ms);

typedef struct pyri_batch pyri_batch;
int pyri_batch_begin(pyri_array *a, pyri_batch **out);
int pyri_batch_write(pyri_batch *b, const pyri_part *part);
int pyri_batch_commit(pyri_batch *b, const pyri_write_how *how,
                      pyr_version *made); /* takes b */
void pyri_batch_abort(pyri_batch *b);

int pyri_stat(pyri_array *a, pyr_version v, const pyri_box *box,
              unsigned flags, pyr_stats *out);
/* `e` is of cells, `k` what it calls, `canon` its canonical text. */
int pyri_compute(pyri_array *a, pyr_version v, const pyri_box *box,
                 const pyri_expr *e, const pyri_kernels *k, const char *canon,
                 const pyri_write_how *how, pyr_version *made);
/* `e` is a reduction. *out is zero but for what it costs if this fails. */
int pyri_reduce(pyri_array *a, pyr_version v, const pyri_box *box,
                const pyri_expr *e, const pyri_kernels *k, pyr_value *out);
int pyri_diff(pyri_array *a, pyr_version va, pyr_version vb, pyr_box_fn *each,
              void *ctx);
int pyri_last_change(pyri_array *a, pyr_version v, const pyri_box *box,
                     pyr_version *out);

/* --- what is kept (forget.c, reclaim.c, fold_newest.c, tidy.c) ----------- */

int pyri_forget(pyri_array *a, pyr_version first, pyr_version last,
                uint64_t keep, unsigned flags, uint64_t *forgotten);
int pyri_reclaim(pyri_engine *e, const pyr_progress *progress,
                 pyr_reclaimed *out);
/* The arrays that are named; none: all of them. */
int pyri_fold_newest(pyri_engine *e, const char *const *names, size_t n,
                     const pyr_progress *progress, pyr_folded *out);
/*
 * A thread that folds chunks behind the back of those who read them (tidy.c),
 * for arrays whose `tidy` it is. *out is NULL if the engine cannot fold, or is
 * read-only. Freeing it waits for what is being folded, and drops the rest;
 * arrays are closed by then.
 */
typedef struct pyri_tidy pyri_tidy;
int pyri_tidy_new(pyri_engine *e, pyri_tidy **out);
void pyri_tidy_free(pyri_tidy *t);

int pyri_version_usage(pyri_array *a, pyr_version v, pyr_usage *out);

/* --- copies (copies.c) --------------------------------------------------- */

int pyri_copy_array(pyri_array *from, pyri_engine *e, const char *name,
                    const pyr_copy_spec *spec, pyr_copied *out);

#endif
