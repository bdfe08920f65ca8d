/*
 * array/leaves.c - the leaves of a version that is being completed.
 *
 * What was painted goes on top of the leaf that the base snapshot has of the
 * chunk, less what it hides; or, if an older version is in flight there, on that
 * one, whatever it will turn out to be.
 */
#include "array/making.h"

#include "base/bytes.h"
#include "base/sys.h"

#include <string.h>

/* The digest of a leaf: what was there before (unless all of it is hidden),
 * then what this version wrote. */
static int
digest_of(const pyri_making *m, const pyri_painted *p, const pyri_digest *before,
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
is_hidden(const pyri_making *m, const pyri_chain *c, int n)
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
stack(pyri_making *m, const pyri_painted *p, pyri_chain *below, pyri_leaf *leaf)
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
stack_alone(pyri_making *m, const pyri_painted *p, pyri_leaf *leaf)
{
    pyri_painted bare = {.n = p->n, .frags = p->frags};
    pyri_chain none = {0};
    return stack(m, &bare, &none, leaf);
}

static bool
hides_all(const pyri_making *m, const pyri_painted *p, const pyri_box *shown)
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
lay_on_base(pyri_making *m, const pyri_painted *p, const pyri_node *node,
            bool seen, pyri_leaf *leaf)
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
leaf_on_base(pyri_making *m, const pyri_painted *p, uint64_t base,
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

int
pyri_make_leaf(void *ctx, const pyri_touch *touch, uint64_t prev,
               uint64_t base, const pyri_flat *flat, pyri_leaf *leaf)
{
    pyri_making *m = ctx;
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
