/*
 * array/snapshot.c - published versions: opening one, listing them.
 */
#include "array/array.h"

#include "base/sys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
no_version(const pyri_array *a, pyr_version v, pyr_version latest)
{
    return pyri_fail(PYR_ENOVERSION,
                     "array '%s' has no version %llu; the newest published one "
                     "is %llu",
                     a->name, (unsigned long long)v,
                     (unsigned long long)latest);
}

static int
fail_forgotten(const pyri_array *a, uint64_t label)
{
    return pyri_fail(PYR_ENOVERSION, "version %lld of array '%s' was forgotten",
                     (long long)(label - a->first), a->name);
}

/* The record of a label; version 0 of the oldest array of a line has none. */
static int
load_record(pyri_array *a, pyri_reader *r, uint64_t label, pyri_record *out,
            bool *forgotten)
{
    const pyri_lineage *l = &a->schema.lineage;
    pyri_version_get get = {0};
    bool found = false;
    int err = 0;
    *out = (pyri_record){.kind = PYR_KIND_CREATE};
    *forgotten = false;
    if (label != l->line[0].first) {
        err = pyri_engine_get_version(a->engine, r,
                                      pyri_lineage_owner(l, label), label,
                                      &get);
        found = get.found;
        if (err == 0 && !found)
            err = fail_forgotten(a, label);
        if (err == 0)
            err = pyri_record_decode_root(get.record, out);
        if (err < 0)
            return err;
        /* an ancestor's snapshot is ours as long as we say so */
        *forgotten = label > a->first && get.forgotten;
    }
    if (label == a->first && (err = pyri_array_is_gone(a, r, forgotten)) < 0)
        return err;
    if (label == a->first) {
        pyri_form_fini(&out->form);
        err = pyri_form_copy(&out->form, &a->schema.form);
    } else if (!found) { /* version 0 of an ancestor: nothing is stored */
        err = pyri_form_copy(&out->form, &a->schema.form);
    }
    return err;
}

static int
damaged(const pyri_array *a, uint64_t label)
{
    return pyri_fail(PYR_ECORRUPT, "version %lld of array '%s' is damaged",
                     (long long)(label - a->first), a->name);
}

/* Cells outside the tree would be found nowhere, and never be set. */
static bool
tree_covers_shape(const pyri_grid *g)
{
    const uint64_t origin[PYR_MAX_DIMS] = {0};
    pyri_box root;
    pyri_grid_domain(g, g->levels, origin, &root);
    for (int d = 0; d < g->ndim; d++)
        if (root.hi[d] < g->shape[d])
            return false;
    return true;
}

int
pyri_snapshot_open_label(pyri_array *a, pyri_reader *r, uint64_t label,
                         pyri_snapshot *s)
{
    s->array = a;
    s->reader = r;
    s->borrowed = true;
    s->label = label;
    int err = load_record(a, r, label, &s->record, &s->forgotten);
    if (err == PYR_ECORRUPT || err == PYR_EFORMAT)
        return pyri_fail_at(err, "array '%s', version %lld", a->name,
                            (long long)(label - a->first));
    if (err < 0)
        return err;
    if (s->record.form.ndim != a->schema.ndim ||
        (s->record.root &&
         (s->record.root > label || s->record.root_level < 1 ||
          s->record.root_level > pyri_grid_levels(&s->record.form)))) {
        pyri_record_fini(&s->record);
        return damaged(a, label);
    }
    pyri_grid_init(&s->grid, &s->record.form, a->schema.chunk);
    if (!tree_covers_shape(&s->grid)) {
        pyri_record_fini(&s->record);
        return damaged(a, label);
    }
    s->tree = (pyri_tree){.engine = a->engine,
                          .reader = r,
                          .lineage = &a->schema.lineage,
                          .form = &s->record.form,
                          .grid = &s->grid,
                          .type = a->schema.type,
                          .fill = a->schema.fill,
                          .array = a->name,
                          .version = label - a->first,
                          .root = s->record.root,
                          .root_level = s->record.root_level};
    return 0;
}

int
pyri_snapshot_open(pyri_array *a, pyr_version v, pyri_snapshot *s)
{
    pyri_reader *r;
    uint64_t latest;
    int err = pyri_engine_begin(a->engine, &r);
    if (err < 0)
        return err;
    if ((err = pyri_engine_latest(a->engine, r, a->id, &latest, NULL)) < 0)
        goto fail;
    latest -= a->first;
    if (v != PYR_LATEST && v > latest) {
        err = no_version(a, v, latest);
        goto fail;
    }
    uint64_t label = a->first + (v == PYR_LATEST ? latest : v);
    if ((err = pyri_snapshot_open_label(a, r, label, s)) < 0)
        goto fail;
    s->borrowed = false;
    if (!s->forgotten)
        return 0;
    pyri_record_fini(&s->record);
    err = fail_forgotten(a, label);
fail:
    pyri_engine_end(a->engine, r);
    return err;
}

void
pyri_snapshot_close(pyri_snapshot *s)
{
    pyri_record_fini(&s->record);
    if (!s->borrowed)
        pyri_engine_end(s->array->engine, s->reader);
    s->reader = NULL;
}

int
pyri_snapshot_explain(pyri_array *a, uint64_t label, int err)
{
    pyri_snapshot again;
    char text[1024];
    if (err != PYR_ECORRUPT)
        return err;
    snprintf(text, sizeof text, "%s", pyr_errmsg());
    int now = pyri_snapshot_open(a, label - a->first, &again);
    if (now == 0)
        pyri_snapshot_close(&again);
    if (now == PYR_ENOVERSION)
        return pyri_fail(PYR_ENOVERSION, "version %llu of array '%s' was "
                         "forgotten while it was read",
                         (unsigned long long)(label - a->first), a->name);
    return pyri_fail(err, "%s", text);
}

int
pyri_shape_check(const pyri_array *a, uint64_t label, const uint64_t *shape,
                 const pyri_run *run)
{
    pyri_box box;
    int n = a->schema.ndim;
    pyri_run_bounds(n, run, &box);
    for (int d = 0; d < n; d++) {
        char text[512];
        if (box.hi[d] <= shape[d])
            continue;
        return pyri_fail(PYR_EBOUNDS,
                         "box %s leaves array '%s' along axis %d: its extent "
                         "in version %llu is %llu",
                         pyri_box_text(n, &box, text, sizeof text), a->name, d,
                         (unsigned long long)(label - a->first),
                         (unsigned long long)shape[d]);
    }
    return 0;
}

/* Of all that makes up what a snapshot shows: type, form, tree. */
static int
digest_of(const pyri_array *a, const pyri_snapshot *s, const pyri_about *root,
          pyri_digest *out)
{
    pyri_buf text = {0};
    pyri_buf_u8(&text, (uint8_t)a->schema.type);
    pyri_buf_u64(&text, a->schema.fill);
    for (int d = 0; d < a->schema.ndim; d++)
        pyri_buf_u64(&text, a->schema.chunk[d]);
    pyri_form_encode(&s->record.form, &text);
    pyri_buf_u64(&text, root->digest.lo);
    pyri_buf_u64(&text, root->digest.hi);
    int err = pyri_buf_check(&text, "a digest");
    if (err == 0)
        *out = pyri_hash128(text.data, text.size);
    pyri_buf_fini(&text);
    return err;
}

int
pyri_snapshot_digest(pyri_array *a, pyr_version v, pyri_digest *out,
                     bool *known)
{
    pyri_snapshot s;
    pyri_node node;
    pyri_about about = {.digested = true};
    uint64_t pos[PYR_MAX_DIMS] = {0};
    int err = pyri_snapshot_open(a, v, &s);
    if (err < 0)
        return err;
    if (s.tree.root) {
        err = pyri_tree_get(&s.tree, s.tree.root, s.tree.root_level, pos,
                            &node);
        if (err == 0)
            err = pyri_node_about(&node, s.tree.type, &about);
    }
    *known = about.digested;
    *out = (pyri_digest){0, 0};
    if (err == 0 && *known)
        err = digest_of(a, &s, &about, out);
    pyri_snapshot_close(&s);
    return err;
}

int
pyri_snapshot_check(const pyri_snapshot *s, const pyri_run *run)
{
    return pyri_shape_check(s->array, s->label, s->grid.shape, run);
}

int
pyri_folds(const pyri_array *a, pyri_reader *r, uint64_t *out)
{
    return pyri_engine_folds(a->engine, r, a->schema.lineage.line[0].array,
                             out);
}

int
pyri_latest(pyri_array *a, pyr_version *out)
{
    pyri_reader *r;
    uint64_t label;
    int err = pyri_engine_begin(a->engine, &r);
    if (err < 0)
        return err;
    err = pyri_engine_latest(a->engine, r, a->id, &label, NULL);
    pyri_engine_end(a->engine, r);
    if (err == 0)
        *out = label - a->first;
    return err;
}

int
pyri_info(pyri_array *a, pyr_version v, pyr_info *out)
{
    const pyri_schema *s = &a->schema;
    pyri_snapshot snap;
    memset(out, 0, sizeof *out);
    int err = pyri_snapshot_open(a, v, &snap);
    if (err < 0)
        return err;
    out->ndim = s->ndim;
    memcpy(out->shape, snap.grid.shape, (size_t)s->ndim * sizeof *out->shape);
    memcpy(out->chunk, s->chunk, (size_t)s->ndim * sizeof *out->chunk);
    out->type = s->type;
    pyri_cell_store(s->type, out->fill, s->fill);
    out->codec = s->codec;
    out->level = s->level;
    out->version = snap.label - a->first;
    out->created_ns = s->created_ns;
    memcpy(out->clone_of, s->clone_of, sizeof out->clone_of);
    out->clone_version = s->clone_version;
    pyri_snapshot_close(&snap);
    return pyri_latest(a, &out->latest);
}

/* --- history ------------------------------------------------------------- */

typedef struct teller {
    pyri_array *a;
    pyr_change_fn *each;
    void *ctx;
} teller;

/* Show a claim as the parts that a user would have written. */
static int
show(const teller *t, const pyri_record *r, pyr_change *change)
{
    pyr_part small[16], *parts = small;
    if (r->claim.n > 16 &&
        !(parts = pyri_sys_calloc(r->claim.n, sizeof *parts)))
        return pyri_fail_nomem("the boxes of a version");
    for (size_t i = 0; i < r->claim.n; i++) {
        const pyri_run *run = &r->claim.runs[i];
        bool box = pyri_run_is_box(r->claim.ndim, run);
        parts[i] = (pyr_part){.offset = run->start,
                              .size = run->block,
                              .count = box ? NULL : run->count,
                              .stride = box ? NULL : run->stride};
    }
    change->nparts = r->claim.n;
    change->parts = parts;
    int err = t->each(t->ctx, change);
    if (parts != small)
        free(parts);
    return err;
}

static int
tell(void *ctx, uint64_t label, const pyri_version_get *v)
{
    const teller *t = ctx;
    pyri_record r;
    if (v->forgotten)
        return 0;
    int err = pyri_record_decode(v->record, &r);
    if (err < 0)
        return pyri_fail_at(err, "array '%s', version %llu", t->a->name,
                            (unsigned long long)(label - t->a->first));
    pyr_change change = {.version = label - t->a->first,
                         .kind = r.kind,
                         .time_ns = r.time_ns,
                         .who = r.who,
                         .message = r.message,
                         .ndim = r.form.ndim,
                         .shape = r.form.shape,
                         .source = r.source,
                         .expression = r.expression,
                         .handlers = r.handlers};
    if (r.kind == PYR_KIND_COMPUTE)
        change.source -= t->a->first;
    err = show(t, &r, &change);
    pyri_record_fini(&r);
    return err;
}

static int
tell_first(const teller *t, pyri_reader *r)
{
    const pyri_schema *s = &t->a->schema;
    bool gone, clone = s->clone_of[0];
    int err = pyri_array_is_gone(t->a, r, &gone);
    if (err < 0 || gone)
        return err;
    pyr_change change = {.kind = clone ? PYR_KIND_CLONE : PYR_KIND_CREATE,
                         .time_ns = s->created_ns,
                         .who = s->who,
                         .message = "",
                         .ndim = s->ndim,
                         .shape = s->form.shape,
                         .source = s->clone_version,
                         .expression = s->clone_of,
                         .handlers = ""};
    return t->each(t->ctx, &change);
}

int
pyri_history(pyri_array *a, pyr_version first, pyr_version last,
             pyr_change_fn *each, void *ctx)
{
    teller t = {a, each, ctx};
    pyri_reader *r;
    uint64_t latest;
    int err = pyri_engine_begin(a->engine, &r);
    if (err < 0)
        return err;
    if ((err = pyri_engine_latest(a->engine, r, a->id, &latest, NULL)) < 0)
        goto out;
    latest -= a->first;
    first = first == PYR_LATEST ? latest : first;
    last = last == PYR_LATEST ? latest : last;
    if (first > latest || last > latest) {
        err = no_version(a, first > latest ? first : last, latest);
        goto out;
    }
    if (first == 0)
        err = tell_first(&t, r);
    if (err == 0 && (first > 0 || last > 0))
        err = pyri_engine_scan_versions(
            a->engine, r, a->id, a->first + (first ? first : 1),
            a->first + (last ? last : 1), tell, &t);
    if (err == 0 && last == 0 && first > 0)
        err = tell_first(&t, r);
out:
    pyri_engine_end(a->engine, r);
    return err;
}
