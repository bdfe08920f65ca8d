/*
 * array/replay.c - one version of an array, made again in another one.
 *
 * What has to be written is what the version wrote, if the one just before it
 * was copied, too: then claim, fragments and digests come out as they were.
 * Otherwise it is what lies in fragments that are newer than the last version
 * that was copied; the tree leads there by the labels of its nodes. Shapes
 * that were cut on the way are cut in the copy as well.
 *
 * Cells go through one buffer, a slab at a time, however large the version. What
 * is of one value, and covers chunks wholly, is not read at all: it becomes a
 * sheet of the copy (sheets.c), as it may be huge.
 * The digest of the cells is kept, and compared with that of the same cells read back
 * from the copy, past all that is remembered as verified.
 */
#include "array/copies.h"

#include "array/draft.h"
#include "base/checked.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

enum {
    SLAB = 16 << 20,     /* bytes that are on their way at a time */
    CHUNK_MAX = 64 << 20, /* a part of one chunk is not cut below this */
    MANY_PARTS = 1 << 16,
    FEW_BOXES = 8 /* of a chunk: more are copied as one that holds them all */
};

/* Parts of the version on their way. */
typedef struct moving {
    pyri_replay *p;
    pyri_snapshot *from;   /* which cells: as of this */
    pyri_record *record;
    pyri_snapshot *source; /* and where to read them */
    bool afresh;
    pyri_draft *draft;     /* where they go; NULL: nowhere */
    unsigned slabs;
    pyri_part *parts;
    size_t n, room;
    uint64_t bytes; /* of the parts */
    uint8_t *cells;
    size_t cells_room;
    pyri_digest digest; /* of all cells so far */
    bool differs;       /* a constant region of the copy */
} moving;

/* The version that the copy holds so far. One that begins as all fill holds
 * none, whatever the number of its version 0. */
static uint64_t
since(const pyri_replay *p)
{
    bool empty = p->before == p->to->first && p->to->schema.lineage.n == 1;
    return empty ? 0 : p->before;
}

/* --- slabs --------------------------------------------------------------- */

static int
flush(moving *m)
{
    int err = 0;
    uint64_t at = 0, cell = pyri_type_size(m->p->from->schema.type);
    if (m->n == 0)
        return 0;
    if (m->bytes > m->cells_room) {
        free(m->cells);
        m->cells_room = 0;
        if (!(m->cells = pyri_sys_malloc((size_t)m->bytes)))
            return pyri_fail_nomem("cells that are copied");
        m->cells_room = (size_t)m->bytes;
    }
    for (size_t i = 0; i < m->n; i++) {
        uint64_t step = cell;
        m->parts[i].mem.base = m->cells + at;
        for (int d = m->p->from->schema.ndim - 1; d >= 0; d--) {
            m->parts[i].mem.step[d] = (int64_t)step;
            step *= m->parts[i].run.count[d] * m->parts[i].run.block[d];
        }
        at += step;
    }
    err = pyri_read_snapshot(m->source, m->parts, m->n, m->afresh);
    if (err == 0) {
        pyri_digest both[2] = {m->digest,
                               pyri_hash128(m->cells, (size_t)m->bytes)};
        m->digest = pyri_hash128(both, sizeof both);
    }
    if (err == 0 && m->draft)
        err = pyri_paint(m->draft, m->parts, m->n);
    m->p->cells += m->bytes / cell;
    m->slabs++;
    m->n = 0;
    m->bytes = 0;
    return err;
}

static int
add_part(moving *m, const pyri_run *run, uint64_t bytes)
{
    int err = 0;
    if (m->n && (m->bytes + bytes > SLAB || m->n == MANY_PARTS))
        err = flush(m);
    if (err == 0 && m->n == m->room) {
        size_t room = m->room ? 2 * m->room : 16;
        pyri_part *parts = pyri_sys_realloc(m->parts, room * sizeof *parts);
        if (!parts)
            return pyri_fail_nomem("boxes that are copied");
        m->parts = parts;
        m->room = room;
    }
    if (err == 0)
        m->parts[m->n++].run = *run;
    m->bytes += bytes;
    return err;
}

/* --- cutting ------------------------------------------------------------- */

static uint64_t
bytes_of(const pyri_schema *s, const pyri_run *run)
{
    uint64_t bytes = pyri_type_size(s->type);
    for (int d = 0; d < s->ndim; d++) {
        uint64_t extent;
        if (!pyri_mul64(run->count[d], run->block[d], &extent) ||
            !pyri_mul64(bytes, extent, &bytes))
            return UINT64_MAX;
    }
    return bytes;
}

/* Cut the blocks of a run into two lots. */
static void
cut_run(pyri_run *a, pyri_run *b, int axis)
{
    uint64_t half = a->count[axis] / 2;
    b->start[axis] += half * a->stride[axis];
    b->count[axis] -= half;
    a->count[axis] = half;
    if (half == 1)
        a->stride[axis] = a->block[axis];
    if (b->count[axis] == 1)
        b->stride[axis] = b->block[axis];
}

static void
cut_box(pyri_run *a, pyri_run *b, int axis, uint64_t at)
{
    b->start[axis] = at;
    b->block[axis] = a->start[axis] + a->block[axis] - at;
    a->block[axis] = at - a->start[axis];
    a->stride[axis] = a->block[axis];
    b->stride[axis] = b->block[axis];
}

/* Where to cut a box: between chunks, or, if it is in one, anywhere. Returns
 * the axis; -1 if it is in one chunk, which may stay whole. */
static int
choose_cut(const pyri_schema *s, const pyri_run *run, uint64_t bytes,
           uint64_t *at)
{
    uint64_t most = 1, longest = 1;
    int axis = -1;
    for (int d = 0; d < s->ndim; d++) {
        uint64_t first = run->start[d] / s->chunk[d];
        uint64_t n = (run->start[d] + run->block[d] - 1) / s->chunk[d] - first;
        if (n + 1 <= most)
            continue;
        most = n + 1;
        axis = d;
        *at = (first + most / 2) * s->chunk[d];
    }
    for (int d = 0; axis < 0 && bytes > CHUNK_MAX && d < s->ndim; d++)
        longest = pyri_max64(longest, run->block[d]);
    for (int d = 0; longest > 1 && d < s->ndim; d++)
        if (run->block[d] == longest) {
            *at = run->start[d] + longest / 2;
            return d;
        }
    return axis;
}

/* Add a run of cells, in parts that are no larger than a slab. */
static int
add_run(moving *m, const pyri_run *run)
{
    const pyri_schema *s = &m->p->from->schema;
    uint64_t bytes = bytes_of(s, run), at = 0;
    pyri_run a = *run, b = *run;
    int axis = -1;
    if (bytes == 0)
        return 0;
    if (bytes <= SLAB)
        return add_part(m, run, bytes);
    for (int d = 0; d < s->ndim; d++)
        if (run->count[d] > 1 &&
            (axis < 0 || run->count[d] > run->count[axis]))
            axis = d;
    if (axis >= 0) {
        cut_run(&a, &b, axis);
    } else {
        axis = choose_cut(s, run, bytes, &at);
        if (axis < 0)
            return add_part(m, run, bytes);
        cut_box(&a, &b, axis, at);
    }
    int err = add_run(m, &a);
    return err < 0 ? err : add_run(m, &b);
}

/* --- constant regions ---------------------------------------------------- */

/* Is the copy of that value there? */
typedef struct comparing {
    moving *m;
    uint64_t bits;
} comparing;

static int
compare_hit(void *ctx, const pyri_hit *hit)
{
    const comparing *c = ctx;
    pyri_array *a = c->m->p->to;
    pyri_summary sum;
    pyri_chain chain = {0};
    if (!hit->leaf)
        return hit->bits != c->bits;
    pyri_fetcher f = {
        .array = a, .reader = c->m->source->reader, .afresh = true};
    pyri_summary_init(&sum);
    int err = pyri_chain_load(&chain, &c->m->source->tree, hit->pos,
                              &hit->node, &hit->box, 0);
    if (err == 0)
        err = pyri_sum_cells(&f, &chain, &hit->box, &sum);
    pyri_fetcher_fini(&f);
    pyri_chain_fini(&chain);
    return err < 0 ? err : !sum.equal || sum.min != c->bits;
}

/* Whole chunks of one value: laid in the copy, or compared with it. */
static int
move_sheet(moving *m, const pyri_box *box, uint64_t bits)
{
    int n = m->from->grid.ndim, err = 0;
    uint64_t text[2 * PYR_MAX_DIMS + 3] = {m->digest.lo, m->digest.hi, bits};
    comparing c = {m, bits};
    memcpy(text + 3, box->lo, (size_t)n * sizeof *text);
    memcpy(text + 3 + n, box->hi, (size_t)n * sizeof *text);
    m->digest = pyri_hash128(text, (size_t)(3 + 2 * n) * sizeof *text);
    pyri_run run = pyri_run_of_box(n, box);
    if (m->draft)
        err = pyri_sheet_add(m->draft, box, bits);
    if (m->draft && err == 0)
        err = pyri_claim_add(&m->draft->claim, &run);
    if (m->afresh) /* else what is there is the source itself */
        err = pyri_tree_find(&m->source->tree, &run, compare_hit, &c);
    if (err > 0)
        m->differs = true;
    return err > 0 ? 0 : err;
}

/* A region of one value: chunks that it cuts go with the others. */
static int
add_same(moving *m, const pyri_box *box, uint64_t bits)
{
    int n = m->from->grid.ndim;
    pyri_box inside, rest[2 * PYR_MAX_DIMS];
    pyri_run run = pyri_run_of_box(n, box);
    if (!pyri_sheet_inside(&m->p->from->schema, m->from->grid.shape, box,
                           &inside))
        return add_run(m, &run);
    int count = pyri_box_subtract(n, box, &inside, rest);
    int err = move_sheet(m, &inside, bits);
    for (int i = 0; i < count && err == 0; i++) {
        run = pyri_run_of_box(n, &rest[i]);
        err = add_run(m, &run);
    }
    return err;
}

static int
add_hit(void *ctx, const pyri_hit *hit)
{
    moving *m = ctx;
    pyri_run run = pyri_run_of_box(m->from->grid.ndim, &hit->box);
    return hit->flat == m->p->label ? add_same(m, &hit->box, hit->bits)
                                    : add_run(m, &run);
}

/* --- what to copy -------------------------------------------------------- */

static int
add_chunk(void *ctx, const uint64_t *pos, const pyri_node *leaf,
          const pyri_box *region, uint64_t bits)
{
    moving *m = ctx;
    if (!leaf)
        return add_same(m, region, bits);
    pyri_chain chain = {0};
    int n = m->from->grid.ndim;
    pyri_box bounds = {.lo = {0}};
    int err = pyri_chain_load(&chain, &m->from->tree, pos, leaf, NULL,
                              since(m->p));
    if (err == 0)
        pyri_chain_prune(&chain, n);
    for (int i = 0; i < chain.n && err == 0; i++) {
        pyri_run run = pyri_run_of_box(n, &chain.links[i].shown);
        pyri_box_cover(n, &bounds, &chain.links[i].shown);
        if (chain.n <= FEW_BOXES)
            err = add_run(m, &run);
    }
    if (err == 0 && chain.n > FEW_BOXES) {
        pyri_run run = pyri_run_of_box(n, &bounds);
        err = add_run(m, &run);
    }
    pyri_chain_fini(&chain);
    return err;
}

/* What the version wrote. Large parts of a computed one may be flat. */
static int
move_claim(moving *m)
{
    const pyri_claim *c = &m->record->claim;
    bool computed = m->record->kind == PYR_KIND_COMPUTE;
    pyri_tree t = m->from->tree;
    int err = 0;
    t.leaves_only = true; /* and each flat by itself */
    for (size_t i = 0; i < c->n && err == 0; i++)
        err = computed ? pyri_tree_find(&t, &c->runs[i], add_hit, m)
                       : add_run(m, &c->runs[i]);
    return err;
}

/* Move all cells that the version changed since `before`. */
static int
move_all(moving *m)
{
    int err = 0;
    m->digest = (pyri_digest){0, 0};
    m->p->cells = 0;
    m->slabs = 0;
    if (m->p->label - since(m->p) == 1)
        err = move_claim(m);
    else
        err = pyri_tree_newer(&m->from->tree, since(m->p), add_chunk, m);
    return err < 0 ? err : flush(m);
}

/* --- records ------------------------------------------------------------- */

static int
load_record(pyri_array *a, pyri_reader *r, uint64_t label, bool allowed,
            pyri_record *out)
{
    pyri_version_get get;
    int err = pyri_engine_get_version(
        a->engine, r, pyri_lineage_owner(&a->schema.lineage, label), label,
        &get);
    if (err == 0 && (!get.found || (get.forgotten && !allowed)))
        err = pyri_fail(PYR_ENOVERSION, "version %llu of array '%s' was "
                        "forgotten", (unsigned long long)(label - a->first),
                        a->name);
    return err < 0 ? err : pyri_record_decode(get.record, out);
}

int
pyri_replay_hash(pyri_array *a, uint64_t label, bool allowed, uint64_t *hash)
{
    pyri_reader *r;
    pyri_record record;
    pyri_buf text = {0};
    int err = pyri_engine_begin(a->engine, &r);
    if (err < 0)
        return err;
    if ((err = load_record(a, r, label, allowed, &record)) < 0)
        goto out;
    pyri_buf_u64(&text, label);
    pyri_buf_u8(&text, (uint8_t)record.kind);
    pyri_buf_u64(&text, (uint64_t)record.time_ns);
    pyri_buf_u64(&text, record.source);
    pyri_buf_str(&text, record.who);
    pyri_buf_str(&text, record.message);
    pyri_buf_str(&text, record.expression);
    if (*record.handlers)
        pyri_buf_str(&text, record.handlers);
    pyri_buf_add(&text, record.form.shape,
                 (size_t)record.form.ndim * sizeof record.form.shape[0]);
    pyri_claim_encode(&record.claim, &text);
    if ((err = pyri_buf_check(&text, "the record of a version")) == 0)
        *hash = pyri_hash64(text.data, text.size);
    pyri_record_fini(&record);
    pyri_buf_fini(&text);
out:
    pyri_engine_end(a->engine, r);
    return err;
}

/* --- making -------------------------------------------------------------- */

/* The least shape on the way: that of the copy so far, and each cut since. */
static int
least_shape(moving *m, uint64_t *least)
{
    pyri_reader *r;
    const pyri_form *form = &m->from->record.form;
    pyri_engine *e = m->p->to->engine;
    uint64_t latest;
    int err = pyri_engine_begin(e, &r);
    if (err < 0)
        return err;
    err = pyri_engine_latest(e, r, m->p->to->id, &latest, least);
    pyri_engine_end(e, r);
    if (err == 0 && latest != m->p->before)
        err = pyri_fail(PYR_EFENCED, "others wrote to array '%s'",
                        m->p->to->name);
    for (int i = 0; i < form->ncuts && form->cuts[i].label > since(m->p); i++)
        least[form->cuts[i].axis] =
            pyri_min64(least[form->cuts[i].axis], form->cuts[i].extent);
    return err;
}

static int
make(moving *m)
{
    uint64_t least[PYR_MAX_DIMS];
    pyri_given given = {m->p->label, m->record, least};
    pyri_draft draft = {.array = m->p->to,
                        .given = &given,
                        .kind = m->record->kind,
                        .claim = {.ndim = m->p->to->schema.ndim},
                        .message = m->record->message};
    m->draft = &draft;
    m->source = m->from;
    PYRI_FAULT("copy.begin");
    int err = least_shape(m, least);
    if (err == 0)
        err = move_all(m);
    if (err == 0 && m->slabs > 1)
        err = pyri_draft_merge(&draft);
    if (err == 0)
        err = pyri_prepare(&draft);
    PYRI_FAULT("copy.data_sent");
    if (err == 0)
        err = pyri_engine_sync(m->p->to->engine);
    PYRI_FAULT("copy.synced");
    if (err == 0)
        pyri_sheets_settle(&draft);
    if (err == 0)
        err = pyri_commit_given(&draft);
    if (err == PYR_EFENCED)
        err = pyri_fail(PYR_EFENCED, "others write or copy to array '%s'",
                        m->p->to->name);
    PYRI_FAULT("copy.published");
    m->draft = NULL;
    pyri_draft_fini(&draft);
    return err;
}

/* --- comparing ----------------------------------------------------------- */

static int
fail_different(const moving *m, const char *what)
{
    return pyri_fail(PYR_ECORRUPT, "version %llu of array '%s' was copied, but "
                     "%s of the copy differ", (unsigned long long)
                     (m->p->label - m->p->to->first), m->p->to->name, what);
}

/* Read the copy back; its cells must have the digest that was found. */
static int
compare(moving *m)
{
    pyri_snapshot made;
    pyri_digest want = m->digest;
    const pyri_form *form = &m->from->record.form;
    pyri_reader *r;
    int err = pyri_engine_begin(m->p->to->engine, &r);
    if (err < 0)
        return err;
    err = pyri_snapshot_open_label(m->p->to, r, m->p->label, &made);
    if (err < 0)
        goto out;
    m->source = &made;
    m->afresh = true;
    if (memcmp(made.record.form.shape, form->shape,
               (size_t)form->ndim * sizeof form->shape[0]) != 0)
        err = fail_different(m, "the shape");
    if (err == 0)
        err = move_all(m);
    if (err == 0 && (m->differs || m->digest.lo != want.lo ||
                     m->digest.hi != want.hi))
        err = fail_different(m, "the cells");
    pyri_snapshot_close(&made);
out:
    pyri_engine_end(m->p->to->engine, r);
    return err;
}

/* --- the whole ----------------------------------------------------------- */

static int
replay(pyri_replay *p, bool again)
{
    pyri_snapshot from;
    pyri_record record;
    moving m = {.p = p, .from = &from, .record = &record};
    pyri_reader *r;
    int err = pyri_engine_begin(p->from->engine, &r);
    if (err < 0)
        return err;
    if ((err = load_record(p->from, r, p->label, true, &record)) < 0)
        goto out;
    if ((err = pyri_snapshot_open_label(p->from, r, p->label, &from)) == 0) {
        m.source = &from;
        err = again ? move_all(&m) : make(&m);
        if (err == 0)
            err = compare(&m);
        pyri_snapshot_close(&from);
    }
    free(m.parts);
    free(m.cells);
    pyri_record_fini(&record);
out:
    pyri_engine_end(p->from->engine, r);
    return err;
}

int
pyri_replay_version(pyri_replay *p)
{
    return replay(p, false);
}

int
pyri_replay_compare(pyri_replay *p)
{
    return replay(p, true);
}
