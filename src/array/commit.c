/*
 * array/commit.c - from a draft to a published version.
 *
 *   take      the version manager gives a version and lists what is in flight
 *   build     the nodes: own leaves, children predicted or shared
 *   complete  nodes and record are stored in one step; versions are published
 *             in order by whoever completes the lowest one
 *   wait      until ours is published; a writer in the way that died is given
 *             up: its version is completed by us as one that changes nothing
 */
#include "array/draft.h"

#include "base/bytes.h"
#include "base/fault.h"
#include "base/sys.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A version being completed. */
typedef struct making {
    pyri_draft *d;
    pyri_snapshot base;
    pyri_form form; /* of the new version */
    pyri_grid grid;
    uint64_t label;
    pyri_rival *rivals; /* newest first */
    size_t nrivals;
    pyri_touch *touches;
    size_t ntouches;
    unsigned leaves; /* made so far */
    bool distrust;   /* do without what was prepared */
    uint64_t folds;  /* of the family, when leaves were first looked at */
    bool refused;    /* they were folded meanwhile */
} making;

static int64_t
clock_ns(clockid_t clock)
{
    struct timespec t;
    pyri_sys_clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- leaves -------------------------------------------------------------- */

/* The digest of a leaf: what was there before (unless all of it is hidden),
 * then what this version wrote. */
static int
digest_of(const making *m, const pyri_painted *p, const pyri_digest *before,
          pyri_digest *out)
{
    pyri_buf text = {0};
    pyri_buf_u64(&text, before ? before->lo : 0);
    pyri_buf_u64(&text, before ? before->hi : 0);
    for (int i = 0; i < p->n; i++) {
        for (int d = 0; d < m->form.ndim; d++) {
            pyri_buf_u64(&text, p->frags[i].box.lo[d]);
            pyri_buf_u64(&text, p->frags[i].box.hi[d]);
        }
        pyri_buf_u64(&text, p->frags[i].cells.lo);
        pyri_buf_u64(&text, p->frags[i].cells.hi);
    }
    int err = pyri_buf_check(&text, "a digest");
    if (err == 0)
        *out = pyri_hash128(text.data, text.size);
    pyri_buf_fini(&text);
    return err;
}

/* Do the first n links hide the last one? */
static bool
is_hidden(const making *m, const pyri_chain *c, int n)
{
    const pyri_box *shown = &c->links[c->n - 1].shown;
    bool hidden = pyri_box_empty(m->form.ndim, shown);
    for (int i = 0; i < n && !hidden; i++)
        hidden = !c->links[i].frag.masked &&
                 pyri_box_contains(m->form.ndim, &c->links[i].shown, shown);
    return hidden;
}

/* Own fragments first, then what they lie on, without what is hidden. */
static int
stack(making *m, const pyri_painted *p, pyri_chain *below, pyri_leaf *leaf)
{
    pyri_chain all = {0};
    int err = 0;
    for (int i = 0; i < p->n && err == 0; i++) {
        pyri_frag own = p->frags[i];
        own.version = m->label;
        err = pyri_chain_add(&all, &m->form, &own);
    }
    for (int i = 0; i < below->n && err == 0; i++)
        err = pyri_chain_add(&all, &m->form, &below->links[i].frag);
    for (int i = 0; i < p->nfloor && err == 0; i++) {
        err = pyri_chain_add(&all, &m->form, &p->floor[i]);
        if (err == 0 && is_hidden(m, &all, p->n))
            all.n--; /* those below the fold are pruned already */
    }
    if (err == 0) {
        if (below->n || p->n > 1)
            pyri_chain_prune(&all, m->form.ndim);
        leaf->frags = pyri_sys_malloc(((size_t)all.n + 1) *
                                      sizeof *leaf->frags);
        err = leaf->frags ? 0 : pyri_fail_nomem("the fragments of a chunk");
    }
    for (int i = 0; i < all.n && err == 0; i++)
        pyri_frag_copy(m->form.ndim, &leaf->frags[leaf->n++],
                       &all.links[i].frag);
    if (err == 0)
        pyri_stash_mark(m->d, leaf->frags, leaf->n);
    pyri_chain_fini(&all);
    return err;
}

/* Own fragments and nothing else. */
static int
stack_alone(making *m, const pyri_painted *p, pyri_leaf *leaf)
{
    pyri_painted bare = {.n = p->n, .frags = p->frags};
    pyri_chain none = {0};
    return stack(m, &bare, &none, leaf);
}

static bool
hides_all(const making *m, const pyri_painted *p, const pyri_box *shown)
{
    return p->n && !p->frags[0].masked &&
           pyri_box_contains(m->form.ndim, &p->frags[0].box, shown);
}

/*
 * What was prepared lies on the leaf that the chunk had then: `floor` is a fold
 * of its newest fragments, then the others. If it has another leaf now, a blob
 * of the old one may be needed by no version in between, and go when those
 * before are forgotten: what a leaf names must be its own, or named by the
 * version just before it. A fold that prepare.c put is its own; it may stay if
 * that is so of all that is left below it. (A leaf may also have one on top that
 * another one put.)
 */
static bool
may_stay(const pyri_painted *p, const pyri_chain *now)
{
    if (p->nfloor == 0)
        return false;
    for (int i = 1; i < p->nfloor; i++) {
        const pyri_frag *f = &p->floor[i];
        bool named = f->kind == PYRI_FRAG_SAME;
        for (int k = 0; k < now->n && !named; k++)
            named = now->links[k].frag.kind != PYRI_FRAG_SAME &&
                    now->links[k].frag.ref[0] == f->ref[0] &&
                    now->links[k].frag.ref[1] == f->ref[1];
        if (!named)
            return false;
    }
    return true;
}

/* Leave out what a fold as of that version took the place of. */
static void
keep_newer(pyri_chain *c, uint64_t version)
{
    int kept = 0;
    for (int i = 0; i < c->n; i++)
        if (c->links[i].frag.version > version)
            c->links[kept++] = c->links[i];
    c->n = kept;
}

/* What lies on the leaf of the base: what was prepared, if that is of use; else
 * own fragments only, on a copy of its list, or on what is left of it. */
static int
lay_on_base(making *m, const pyri_painted *p, const pyri_node *node, bool seen,
            pyri_leaf *leaf)
{
    const pyri_tree *t = &m->base.tree;
    pyri_painted bare = *p;
    pyri_chain below = {0};
    pyri_box domain;
    bool done = false;
    int err = 0;
    pyri_grid_domain(&m->grid, 0, p->pos, &domain);
    /* the newest cut is first: is the leaf from before it? */
    bool cut = m->form.ncuts && m->form.cuts[0].label > node->label;
    if (p->nfloor == 0 && !cut) {
        if ((err = stack_alone(m, p, leaf)) == 0)
            err = pyri_leaf_lay(leaf, node, m->form.ndim, &domain, &done);
        if (err < 0 || done)
            return err;
        pyri_leaf_fini(leaf);
    }
    if (!seen || p->nfloor == 0) {
        err = pyri_chain_load(&below, t, p->pos, node, NULL, 0);
        if (err == 0 && may_stay(p, &below))
            keep_newer(&below, m->d->seen);
        else
            bare.nfloor = 0;
    }
    if (err == 0)
        err = stack(m, &bare, &below, leaf);
    pyri_chain_fini(&below);
    return err;
}

/* The chunk lies on a leaf of the base snapshot, or on nothing. */
static int
leaf_on_base(making *m, const pyri_painted *p, uint64_t base,
             const pyri_flat *flat, pyri_leaf *leaf)
{
    const pyri_schema *s = &m->d->array->schema;
    pyri_node node;
    pyri_box domain;
    pyri_about about = {.label = UINT64_MAX, .known = true, .digested = true};
    int err = 0;
    bool seen = !flat && p->prepared && p->below == base; /* nothing new */
    pyri_buf room = {0}; /* for a leaf that is not stored */
    pyri_summary_init(&about.summary);
    if (base) {
        err = flat ? pyri_flat_leaf(&m->base.tree, flat, p->pos, &room, &node)
                   : pyri_tree_get(&m->base.tree, base, 0, p->pos, &node);
        if (err == 0)
            err = pyri_node_about(&node, s->type, &about);
        if (err == 0)
            err = lay_on_base(m, p, &node, seen, leaf);
    } else {
        err = stack_alone(m, p, leaf);
    }
    if (err == PYR_ECORRUPT && p->n == 0) {
        /* nothing changes: who reads it meets the damage there */
        pyri_leaf_fini(leaf);
        leaf->prev = base;
        pyri_buf_fini(&room);
        return 0;
    }
    if (err < 0) {
        pyri_buf_fini(&room);
        return err;
    }

    pyri_about *own = &leaf->about;
    uint64_t as_of = m->base.label;
    if (p->n == 0) { /* changes nothing */
        own->known = about.known;
        own->summary = about.summary;
        as_of = about.label;
    } else if (seen) {
        own->known = p->known;
        own->summary = p->after;
        as_of = m->d->seen;
        if (p->regions)
            leaf->regions = *p->regions;
    } else {
        err = pyri_sum_after(m->d->array, &m->base.tree, p, base ? &node : NULL,
                             leaf);
    }
    pyri_grid_domain(&m->grid, 0, p->pos, &domain);
    uint64_t cells = own->summary.count;
    own->known = err == 0 && own->known &&
                 pyri_summary_now(&m->form, s->type, s->fill, as_of, &domain,
                                  &own->summary);
    if (own->summary.count != cells)
        leaf->regions.n = 0; /* cells were added */
    own->digested = about.digested;
    own->digest = about.digest;
    if (err == 0 && p->n)
        err = digest_of(m, p, base ? &about.digest : NULL, &own->digest);
    pyri_buf_fini(&room);
    return err;
}

static int
make_leaf(void *ctx, const pyri_touch *touch, uint64_t prev, uint64_t base,
          const pyri_flat *flat, pyri_leaf *leaf)
{
    making *m = ctx;
    pyri_painted nothing = {.n = 0};
    const pyri_painted *p = &nothing;
    pyri_box shown;
    int err;
    memcpy(nothing.pos, touch->pos, sizeof nothing.pos);
    if (m->d->n)
        p = &m->d->painted[touch->payload];
    if (m->distrust) {
        nothing = *p;
        nothing.prepared = false;
        nothing.nfloor = 0;
        p = &nothing;
    }
    if (++m->leaves % 64 == 0 && (err = pyri_commit_renew(m->d)) < 0)
        return err;
    pyri_grid_shown(&m->grid, 0, p->pos, &shown);
    if (hides_all(m, p, &shown)) {
        pyri_painted top = {.n = 1, .frags = p->frags};
        leaf->about.known = true;
        leaf->about.summary = p->own;
        leaf->about.digested = true;
        if ((err = digest_of(m, &top, NULL, &leaf->about.digest)) < 0)
            return err;
        return stack_alone(m, &top, leaf);
    }
    if (!prev)
        return leaf_on_base(m, p, base, flat, leaf);
    pyri_chain none = {0};
    pyri_painted bare = *p;
    leaf->prev = prev;
    if (!may_stay(p, &none))
        bare.nfloor = 0;
    return stack(m, &bare, &none, leaf);
}

static int
stay_alive(void *ctx)
{
    making *m = ctx;
    return pyri_commit_renew(m->d);
}

/* --- making a version ---------------------------------------------------- */

/* Forms and claims of all in flight below, oldest first; then our own form. */
static int
meet_rivals(making *m, const pyri_flights *below, const uint64_t *shape)
{
    const pyri_schema *s = &m->d->array->schema;
    const uint64_t *before = m->base.record.form.shape;
    int err = pyri_form_copy(&m->form, &m->base.record.form);
    m->rivals = pyri_sys_calloc(below->n + 1, sizeof *m->rivals);
    if (err == 0 && !m->rivals)
        err = pyri_fail_nomem("the versions in flight");
    for (size_t i = 0; i < below->n && err == 0; i++) {
        const pyri_flight *f = &below->list[i];
        pyri_rival *rival = &m->rivals[below->n - 1 - i];
        pyr_kind kind;
        err = pyri_form_change(&m->form, f->version, f->shape, s->chunk);
        if (err == 0)
            err = pyri_ticket_decode(s->ndim, f->claim, before, f->shape, &kind,
                                     &rival->claim);
        rival->label = f->version;
        rival->shape = f->shape;
        rival->levels = pyri_grid_levels(&m->form);
        before = f->shape;
    }
    m->nrivals = below->n;
    if (err == 0 && m->d->given)
        err = pyri_form_change(&m->form, m->label, m->d->given->least,
                               s->chunk);
    if (err == 0)
        err = pyri_form_change(&m->form, m->label, shape, s->chunk);
    if (err == 0)
        pyri_grid_init(&m->grid, &m->form, s->chunk);
    return err;
}

/* A shape that another version changed meanwhile may not hold our boxes. */
static int
check_bounds(const making *m)
{
    const pyri_claim *c = &m->d->claim;
    if (m->d->kind == PYR_KIND_NOTHING)
        return 0;
    for (size_t i = 0; i < c->n; i++) {
        pyri_box box;
        char text[512];
        pyri_run_bounds(c->ndim, &c->runs[i], &box);
        for (int d = 0; d < c->ndim; d++)
            if (box.hi[d] > m->form.shape[d])
                return pyri_fail(
                    PYR_EBOUNDS,
                    "box %s leaves array '%s' along axis %d: a version before "
                    "this one changed its extent to %llu",
                    pyri_box_text(c->ndim, &box, text, sizeof text),
                    m->d->array->name, d, (unsigned long long)m->form.shape[d]);
    }
    return 0;
}

static int
add_touch(void *ctx, const uint64_t *pos)
{
    making *m = ctx;
    if ((m->ntouches & (m->ntouches - 1)) == 0) { /* a power of two is full */
        size_t room = m->ntouches ? 2 * m->ntouches : 1;
        pyri_touch *touches = pyri_sys_realloc(m->touches,
                                               room * sizeof *touches);
        if (!touches)
            return pyri_fail_nomem("the chunks of a version");
        m->touches = touches;
    }
    pyri_touch *t = &m->touches[m->ntouches];
    memcpy(t->pos, pos, sizeof t->pos);
    t->payload = m->ntouches++;
    return 0;
}

static int
compare_touches(const void *a, const void *b)
{
    const pyri_touch *x = a, *y = b;
    return memcmp(x->pos, y->pos, sizeof x->pos);
}

/* The chunks that the version touches: as painted, or, where nothing is
 * stored, as claimed. */
static int
list_touches(making *m)
{
    const pyri_schema *s = &m->d->array->schema;
    int err = 0;
    for (size_t i = 0; i < m->d->n && err == 0; i++)
        err = add_touch(m, m->d->painted[i].pos);
    if (m->d->n || m->d->flat) /* which nobody predicts */
        return err;
    for (size_t i = 0; i < m->d->claim.n && err == 0; i++)
        err = pyri_plan_run(s->chunk, s->ndim, &m->d->claim.runs[i],
                            m->form.shape, add_touch, m);
    if (err < 0 || m->d->claim.n < 2 || m->ntouches < 2)
        return err;
    size_t kept = 0;
    qsort(m->touches, m->ntouches, sizeof *m->touches, compare_touches);
    for (size_t i = 0; i < m->ntouches; i++)
        if (kept == 0 ||
            compare_touches(&m->touches[kept - 1], &m->touches[i]) != 0)
            m->touches[kept++] = m->touches[i];
    m->ntouches = kept;
    return 0;
}

static int
encode_record(const making *m, const pyri_build *build, pyri_buf *out)
{
    const pyri_draft *d = m->d;
    pyri_record r = {.kind = d->kind,
                     .root = m->base.record.root,
                     .root_level = m->base.record.root_level,
                     .form = m->form,
                     .claim = d->claim,
                     .time_ns = clock_ns(CLOCK_REALTIME),
                     .who = pyri_record_who(),
                     .message = d->message,
                     .source = d->source,
                     .expression = d->expression,
                     .handlers = (const char *)d->handled.data};
    if (d->given) {
        r.claim = d->given->record->claim;
        r.time_ns = d->given->record->time_ns;
        r.source = d->given->record->source;
        r.who = d->given->record->who;
        r.expression = d->given->record->expression;
        r.handlers = d->given->record->handlers;
    }
    if (d->kind == PYR_KIND_NOTHING)
        r.claim = (pyri_claim){.ndim = d->claim.ndim};
    for (size_t i = m->nrivals; i-- > 0;) { /* the newest that has nodes */
        pyri_box all = {.lo = {0}};
        memcpy(all.hi, m->rivals[i].shape, sizeof all.hi);
        if (!pyri_rival_touches(&m->rivals[i], &all))
            continue;
        r.root = m->rivals[i].label;
        r.root_level = m->rivals[i].levels;
    }
    if (build->nnodes) {
        r.root = m->label;
        r.root_level = m->grid.levels;
    }
    r.claim.ndim = m->form.ndim;
    pyri_record_encode(&r, out);
    return pyri_buf_check(out, "the record of a version");
}

/*
 * Versions that were in flight when ours was taken may be published by now:
 * the newest snapshot is the base. (It cannot be forgotten while we are in
 * flight; older ones can.)
 */
static int
open_base(making *m, pyri_reader *r, pyri_flights *below)
{
    pyri_array *a = m->d->array;
    uint64_t latest;
    int err = pyri_engine_latest(a->engine, r, a->id, &latest, NULL);
    if (err < 0)
        return err;
    if (m->d->given && latest >= m->label)
        return pyri_fail(PYR_EFENCED, "others wrote to array '%s'", a->name);
    if (m->d->given)
        below->base = latest;
    if (latest >= m->label)
        latest = m->label - 1; /* someone resolved us: we shall be told */
    size_t landed = latest > below->base ? (size_t)(latest - below->base) : 0;
    below->base += landed;
    below->list += landed;
    below->n -= landed;
    return pyri_snapshot_open_label(a, r, below->base, &m->base);
}

static int
complete(making *m, const pyri_build *build, pyri_bytes record,
         const uint64_t *shape, uint64_t *latest)
{
    pyri_draft *d = m->d;
    pyri_blob *blobs;
    pyri_complete c = {.array = d->array->id,
                       .version = m->label,
                       .shape = shape,
                       .nodes = build->nodes,
                       .nnodes = build->nnodes,
                       .record = record,
                       .family = d->array->schema.lineage.line[0].array,
                       .folds = m->folds};
    int err = pyri_stash_list(d, &blobs, &c.nblobs);
    if (err < 0)
        return err;
    c.blobs = blobs;
    err = d->given ? pyri_engine_import(d->array->engine, &c)
                   : pyri_engine_complete(d->array->engine, &c);
    *latest = c.latest;
    m->refused = err == PYR_ENOVERSION;
    d->doubtful = err < 0 && err != PYR_EFENCED && err != PYR_ENOVERSION;
    if (err == 0)
        pyri_stash_settle(d, true);
    free(blobs);
    return err;
}

/* Build the nodes and complete the version. */
static int
build_and_complete(making *m, pyri_flights below, const uint64_t *shape,
                   uint64_t *latest)
{
    pyri_draft *d = m->d;
    pyri_engine *e = d->array->engine;
    pyri_build build = {0};
    pyri_buf record = {0};
    pyri_reader *r = NULL;
    int err = pyri_ticket_await(d, &below);
    if (err < 0 || (err = pyri_engine_begin(e, &r)) < 0)
        return err;
    m->folds = d->folds;
    if ((!d->looked || m->distrust) &&
        (err = pyri_folds(d->array, r, &m->folds)) < 0)
        goto out;
    if ((err = open_base(m, r, &below)) < 0)
        goto out;
    if ((err = meet_rivals(m, &below, shape)) < 0 ||
        (err = check_bounds(m)) < 0 ||
        (err = pyri_kept_check(d, &m->base, m->rivals, m->nrivals)) < 0 ||
        (err = list_touches(m)) < 0)
        goto close;
    build = (pyri_build){.base = &m->base.tree,
                         .form = &m->form,
                         .grid = &m->grid,
                         .array = d->array->id,
                         .label = m->label,
                         .rivals = m->rivals,
                         .nrivals = m->nrivals,
                         .touches = m->touches,
                         .ntouches = m->ntouches,
                         .sheets = d->sheets,
                         .nsheets = d->nsheets,
                         .flat = d->flat,
                         .leaf = make_leaf,
                         .alive = stay_alive,
                         .ctx = m,
                         .tolerant = d->kind == PYR_KIND_NOTHING};
    if ((m->ntouches || d->nsheets) && (err = pyri_build_run(&build)) < 0)
        goto close;
    if ((err = encode_record(m, &build, &record)) < 0)
        goto close;
    PYRI_FAULT("write.built");
    pyri_engine_end(e, r);
    r = NULL;
    err = complete(m, &build, (pyri_bytes){record.data, record.size}, shape,
                   latest);
close:
    pyri_snapshot_close(&m->base);
    for (size_t i = 0; m->rivals && i < m->nrivals; i++)
        pyri_claim_fini(&m->rivals[i].claim);
    free(m->rivals);
    free(m->touches);
    pyri_form_fini(&m->form);
    pyri_build_fini(&build);
    pyri_buf_fini(&record);
out:
    pyri_engine_end(e, r);
    return err;
}

/* Make version `label` of the draft. The leaves that it lies on may be folded
 * by fold.c while it is made: then it is made again, without what prepare.c
 * found out. */
static int
make(pyri_draft *d, uint64_t label, const uint64_t *shape,
     const pyri_flights *below, uint64_t *latest)
{
    making m = {.d = d, .label = label};
    int err = build_and_complete(&m, *below, shape, latest);
    while (m.refused) {
        pyri_stash_unmark(d);
        m = (making){.d = d, .label = label, .distrust = true};
        err = build_and_complete(&m, *below, shape, latest);
    }
    return err;
}

/* --- the steps of a writer ----------------------------------------------- */

int
pyri_commit_take(pyri_draft *d, const uint64_t *shape, int grow_axis,
                 uint64_t grow_by, pyri_ticket *ticket, pyri_flights *below)
{
    pyri_buf claim = {0};
    pyri_ticket_encode(d, &claim);
    int err = pyri_buf_check(&claim, "the list of boxes of a write");
    pyri_take take = {.array = d->array->id,
                      .claim = {claim.data, claim.size},
                      .shape = shape,
                      .grow_axis = grow_axis,
                      .grow_by = grow_by};
    if (err == 0)
        err = pyri_engine_take(d->array->engine, &take, ticket, below);
    if (err == 0)
        PYRI_FAULT("write.taken");
    pyri_buf_fini(&claim);
    return err;
}

void
pyri_commit_abandon(pyri_draft *d, pyri_ticket *ticket,
                    const pyri_flights *below)
{
    char text[1024];
    uint64_t latest;
    pyri_draft nothing = {.array = d->array,
                          .kind = PYR_KIND_NOTHING,
                          .flat = d->flat,
                          .ticket = ticket};
    int err = 0;
    snprintf(text, sizeof text, "%s", pyr_errmsg());
    if (d->kind == PYR_KIND_APPEND) /* as others predict it */
        err = pyri_ticket_appended(d->array->schema.ndim, ticket->before,
                                   ticket->shape, &nothing.claim);
    else
        nothing.claim = d->claim;
    /* Should it fail, others do it when our lease runs out. If not, the draft
     * was not published, whatever happened to it. */
    if (err == 0 &&
        make(&nothing, ticket->version, ticket->shape, below, &latest) == 0)
        d->doubtful = false;
    if (d->kind == PYR_KIND_APPEND)
        pyri_claim_fini(&nothing.claim);
    pyri_fail(PYR_EIO, "%s", text);
}

int
pyri_commit_finish(pyri_draft *d, pyri_ticket *ticket,
                   const pyri_flights *below, uint64_t *latest)
{
    d->ticket = ticket;
    int err = make(d, ticket->version, ticket->shape, below, latest);
    if (err == 0)
        PYRI_FAULT("write.completed");
    else if (err != PYR_EFENCED || d->disturbed)
        pyri_commit_abandon(d, ticket, below);
    return err;
}

int
pyri_commit(pyri_draft *d, const uint64_t *shape, uint64_t *label,
            uint64_t *latest)
{
    pyri_ticket ticket;
    pyri_flights below = {0};
    int err = pyri_commit_take(d, shape, -1, 0, &ticket, &below);
    if (err == 0) {
        *label = ticket.version;
        *latest = 0;
        err = pyri_commit_finish(d, &ticket, &below, latest);
    }
    pyri_flights_fini(&below);
    return err;
}

int
pyri_commit_given(pyri_draft *d)
{
    pyri_flights none = {0};
    uint64_t latest;
    return make(d, d->given->label, d->given->record->form.shape, &none,
                &latest);
}

int
pyri_commit_renew(pyri_draft *d)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pyri_engine *e = d->array->engine;
    int err = 0;
    if (!d->ticket)
        return 0;
    pthread_mutex_lock(&lock); /* guards the deadline of every ticket */
    int64_t left = d->ticket->deadline_ns - clock_ns(CLOCK_MONOTONIC);
    if (left < (int64_t)e->lease_ms * 500000)
        err = pyri_engine_renew(e, d->ticket);
    pthread_mutex_unlock(&lock);
    return err;
}

/* --- dead writers -------------------------------------------------------- */

/* Complete version i of the flights in the place of its writer. */
static int
resolve_one(pyri_array *a, const pyri_flights *all, size_t i)
{
    const pyri_flight *f = &all->list[i];
    const uint64_t *before = i ? all->list[i - 1].shape : all->base_shape;
    pyri_draft d = {.array = a};
    pyri_flights below = *all;
    uint64_t latest;
    below.n = i;
    d.flat = pyri_ticket_flat(f);
    int err = pyri_ticket_decode(a->schema.ndim, f->claim, before, f->shape,
                                 &d.kind, &d.claim);
    if (err == 0) {
        if (d.kind != PYR_KIND_RESIZE) /* which has nothing left to do */
            d.kind = PYR_KIND_NOTHING;
        d.message = "given up: its writer died or was silent for too long";
        err = make(&d, f->version, f->shape, &below, &latest);
    }
    pyri_draft_fini(&d);
    return err == PYR_EFENCED ? 0 : err; /* someone was faster */
}

/* Complete what is dead, up to the first version with flats: what lies above
 * that is completed once it is published, which it may be now (*again). */
static int
resolve_some(pyri_array *a, bool *again)
{
    pyri_flights all = {0};
    int err = pyri_engine_flights(a->engine, a->id, &all);
    *again = false;
    for (size_t i = 0; err == 0 && i < all.n; i++) {
        if (all.list[i].dead)
            err = resolve_one(a, &all, i);
        if (pyri_ticket_flat(&all.list[i])) {
            *again = all.list[i].dead;
            break;
        }
    }
    pyri_flights_fini(&all);
    return err;
}

int
pyri_resolve(pyri_array *a)
{
    bool again = true;
    int err = 0;
    while (err == 0 && again)
        err = resolve_some(a, &again);
    return err;
}

/* --- waiting ------------------------------------------------------------- */

enum { SLICE_MS = 100 };

int
pyri_commit_wait(pyri_array *a, uint64_t label, int timeout_ms)
{
    int64_t end = clock_ns(CLOCK_MONOTONIC) + (int64_t)timeout_ms * 1000000;
    while (true) {
        int64_t left = (end - clock_ns(CLOCK_MONOTONIC)) / 1000000;
        int slice = SLICE_MS;
        if (timeout_ms >= 0 && left < slice)
            slice = left < 0 ? 0 : (int)left;
        int err = pyri_engine_wait(a->engine, a->id, label, slice);
        if (err != PYR_ETIMEOUT)
            return err;
        if (!a->engine->readonly && (err = pyri_resolve(a)) < 0)
            return err;
        if (timeout_ms >= 0 && clock_ns(CLOCK_MONOTONIC) >= end) {
            err = pyri_engine_wait(a->engine, a->id, label, 0);
            return err != PYR_ETIMEOUT
                       ? err
                       : pyri_fail(PYR_ETIMEOUT,
                                   "version %llu of array '%s' was not "
                                   "published in %d ms",
                                   (unsigned long long)(label - a->first),
                                   a->name, timeout_ms);
        }
    }
}
