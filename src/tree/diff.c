/*
 * tree/diff.c - what differs between two snapshots.
 *
 * Both trees are walked together, from the top. Where both have the same
 * label they share everything below, and it is skipped: the walk costs what
 * the difference does. Only shapes that were cut in between can make shared
 * nodes read differently.
 */
#include "tree/tree.h"

#include "base/checked.h"

#include <string.h>

typedef struct side {
    uint64_t label; /* 0: nothing there */
    int stored;
    pyri_node node;
    bool open;
    bool flat; /* nothing is stored here or below */
    pyri_flat value;
} side;

typedef struct pair {
    const pyri_tree *a, *b;
    pyri_diff_fn *each;
    void *ctx;
} pair;

static int
open_side(const pyri_tree *t, side *s, int level, const uint64_t *pos)
{
    s->open = s->label && !s->flat && s->stored == level;
    return s->open ? pyri_tree_get(t, s->label, level, pos, &s->node) : 0;
}

static int
child_side(const side *s, unsigned slot, int ndim, const pyri_box *domain,
           side *out)
{
    pyri_box region;
    *out = (side){0};
    if (s->open && s->node.flats >> slot & 1) {
        out->flat = true;
        int err = pyri_node_flat(&s->node, slot, &out->value);
        out->label = out->value.label;
        return err;
    }
    if (s->flat) { /* a part of it */
        if (pyri_flat_region(&s->value, ndim, domain, &region))
            *out = *s;
        return 0;
    }
    if (s->open) {
        if (s->node.slots >> slot & 1)
            return pyri_node_child(&s->node, slot, &out->label, &out->stored);
    } else if (s->label && slot == 0) {
        out->label = s->label;
        out->stored = s->stored;
    }
    return 0;
}

/* Do both snapshots show the cells of this shared node alike? */
static bool
alike(const pair *p, uint64_t label, const pyri_box *domain)
{
    uint64_t a[PYR_MAX_DIMS], b[PYR_MAX_DIMS];
    pyri_form_clip(p->a->form, label, a);
    pyri_form_clip(p->b->form, label, b);
    for (int d = 0; d < p->a->grid->ndim; d++) {
        uint64_t both =
            pyri_min64(p->a->form->shape[d], p->b->form->shape[d]);
        uint64_t top = pyri_min64(domain->hi[d], both);
        if (pyri_min64(a[d], top) != pyri_min64(b[d], top))
            return false;
    }
    return true;
}

static int
compare_nodes(const pair *p, int level, const uint64_t *pos, side a, side b)
{
    const pyri_grid *g = p->b->grid;
    pyri_box domain;
    int err;
    pyri_grid_domain(g, level, pos, &domain);
    for (int d = 0; d < g->ndim; d++)
        if (domain.lo[d] >= p->a->form->shape[d] ||
            domain.lo[d] >= p->b->form->shape[d])
            return 0;
    if (a.label == b.label && (a.label == 0 || alike(p, a.label, &domain)))
        return 0;
    /* Where the newer one is flat and differs, all of it is newer. */
    bool flat = b.flat || (a.flat && b.label == 0);
    if (level == 0 || flat)
        return p->each(p->ctx, pos, &domain, flat, a.label, b.label);
    if ((err = open_side(p->a, &a, level, pos)) < 0 ||
        (err = open_side(p->b, &b, level, pos)) < 0)
        return err;
    int bits = g->norder - (level - 1) * PYRI_FAN_BITS;
    unsigned slots = 1u << (bits < PYRI_FAN_BITS ? bits : PYRI_FAN_BITS);
    for (unsigned slot = 0; slot < slots && err == 0; slot++) {
        uint64_t child[PYR_MAX_DIMS];
        side ca, cb;
        pyri_grid_child(g, level, pos, slot, child);
        pyri_grid_domain(g, level - 1, child, &domain);
        if ((err = child_side(&a, slot, g->ndim, &domain, &ca)) == 0 &&
            (err = child_side(&b, slot, g->ndim, &domain, &cb)) == 0)
            err = compare_nodes(p, level - 1, child, ca, cb);
    }
    return err;
}

int
pyri_tree_diff(const pyri_tree *a, const pyri_tree *b, pyri_diff_fn *each,
               void *ctx)
{
    pair p = {a, b, each, ctx};
    uint64_t pos[PYR_MAX_DIMS] = {0};
    side sa = {.label = a->root, .stored = a->root_level};
    side sb = {.label = b->root, .stored = b->root_level};
    return compare_nodes(&p, b->grid->levels, pos, sa, sb);
}

/* --- leaves that are newer ------------------------------------------------ */

typedef struct newer {
    const pyri_tree *t;
    uint64_t after;
    pyri_newer_fn *each;
    void *ctx;
} newer;

static int
visit_newer(const newer *n, int level, const uint64_t *pos, side s)
{
    const pyri_grid *g = n->t->grid;
    pyri_box shown, domain;
    int err;
    if (s.label <= n->after || !pyri_grid_shown(g, level, pos, &shown))
        return 0;
    pyri_grid_domain(g, level, pos, &domain);
    if (s.flat)
        return pyri_flat_shown(&s.value, n->t->form, &domain, &shown)
                   ? n->each(n->ctx, pos, NULL, &shown, s.value.bits)
                   : 0;
    if ((err = open_side(n->t, &s, level, pos)) < 0)
        return err;
    if (level == 0)
        return s.open ? n->each(n->ctx, pos, &s.node, NULL, 0)
                      : pyri_fail(PYR_ECORRUPT, "a node of the tree is damaged");
    int bits = g->norder - (level - 1) * PYRI_FAN_BITS;
    unsigned slots = 1u << (bits < PYRI_FAN_BITS ? bits : PYRI_FAN_BITS);
    for (unsigned slot = 0; slot < slots && err == 0; slot++) {
        uint64_t child[PYR_MAX_DIMS];
        side c;
        pyri_grid_child(g, level, pos, slot, child);
        pyri_grid_domain(g, level - 1, child, &domain);
        if ((err = child_side(&s, slot, g->ndim, &domain, &c)) == 0)
            err = visit_newer(n, level - 1, child, c);
    }
    return err;
}

int
pyri_tree_newer(const pyri_tree *t, uint64_t after, pyri_newer_fn *each,
                void *ctx)
{
    newer n = {t, after, each, ctx};
    uint64_t pos[PYR_MAX_DIMS] = {0};
    side root = {.label = t->root, .stored = t->root_level};
    return visit_newer(&n, t->grid->levels, pos, root);
}
