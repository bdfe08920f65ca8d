/*
 * tree/lookup.c - walk down from a root.
 *
 * The walk keeps a stack of nodes still to be read and takes many of them off
 * at once, so that an engine far away is asked in batches; what is on the
 * stack is bounded by the depth of the tree, not by the size of the box.
 */
#include "tree/tree.h"

#include "base/checked.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 32 };

/* A node to be read. The node of a tree that has grown since may be stored at
 * a lower level than where it is looked for: then it is the whole of it. */
typedef struct pending {
    uint64_t label;
    int level;  /* where we are */
    int stored; /* where it is */
    uint64_t pos[PYR_MAX_DIMS];
} pending;

typedef struct walk {
    const pyri_tree *t;
    const pyri_run *run;
    bool box; /* the run is one */
    pyri_box bounds;
    uint64_t lo[PYR_MAX_DIMS], hi[PYR_MAX_DIMS]; /* chunks, both included */
    pyri_hit_fn *each;
    void *ctx;
    pending *stack;
    size_t n, room;
    pending small[2 * BATCH]; /* the stack, as long as it fits */
    pyri_hit hit;
} walk;

static void
count_node(const pyri_tree *t, uint64_t n)
{
    if (t->nodes_read)
        *t->nodes_read += n;
}

/* Say of which cells it is that a node cannot be read. */
static int
told(const pyri_tree *t, int level, const uint64_t *pos, int err)
{
    char text[512];
    pyri_box box;
    if (err == 0 || !t->array || level > t->grid->levels)
        return err;
    if (!pyri_grid_shown(t->grid, level, pos, &box))
        pyri_grid_domain(t->grid, level, pos, &box);
    return pyri_fail_at(err, "array '%s', version %llu, box %s", t->array,
                        (unsigned long long)t->version,
                        pyri_box_text(t->grid->ndim, &box, text, sizeof text));
}

/* The node that was asked for. */
static int
open_node(const pyri_tree *t, uint64_t label, int level, const uint64_t *pos,
          const pyri_node_get *get, pyri_node *out)
{
    int err;
    if (!get->found)
        err = pyri_fail(PYR_ECORRUPT, "a node of the tree is missing (version "
                        "label %llu, level %d)", (unsigned long long)label,
                        level);
    else if (get->trusted)
        err = pyri_node_open_trusted(get->key, get->value, out);
    else if ((err = pyri_node_open(get->key, get->value, out)) == 0)
        pyri_engine_vouch_node(t->engine, t->reader, get);
    return told(t, level, pos, err);
}

int
pyri_tree_get(const pyri_tree *t, uint64_t label, int level,
              const uint64_t *pos, pyri_node *out)
{
    uint8_t key[PYRI_MAX_KEY];
    size_t size = pyri_node_key(pyri_lineage_owner(t->lineage, label), label,
                                level, t->grid->ndim, pos, key);
    pyri_node_get get = {.key = {key, size}};
    int err = pyri_engine_get_nodes(t->engine, t->reader, &get, 1);
    if (err < 0)
        return err;
    count_node(t, get.found);
    return open_node(t, label, level, pos, &get, out);
}

static int
push(walk *w, const pending *p)
{
    if (w->n == w->room) {
        size_t room = 2 * w->room;
        bool small = w->stack == w->small;
        pending *stack = pyri_sys_realloc(small ? NULL : w->stack,
                                          room * sizeof *stack);
        if (!stack)
            return pyri_fail_nomem("a walk of the tree");
        if (small)
            memcpy(stack, w->small, sizeof w->small);
        w->stack = stack;
        w->room = room;
    }
    pending *top = &w->stack[w->n++];
    top->label = p->label;
    top->level = p->level;
    top->stored = p->stored;
    for (int d = 0; d < w->t->grid->ndim; d++)
        top->pos[d] = p->pos[d];
    return 0;
}

/* Tell of a region of one value. */
static int
found_same(walk *w, int level, const uint64_t *pos, uint64_t bits)
{
    pyri_grid_domain(w->t->grid, level, pos, &w->hit.box);
    pyri_box_intersect(w->t->grid->ndim, &w->hit.box, &w->bounds, &w->hit.box);
    w->hit.leaf = false;
    w->hit.bits = bits;
    w->hit.flat = 0;
    return w->each(w->ctx, &w->hit);
}

/* Tell of a flat child: what it shows, and fill around that. */
static int
found_flat(walk *w, int level, const uint64_t *pos, const pyri_flat *f)
{
    const pyri_tree *t = w->t;
    int n = t->grid->ndim;
    pyri_box domain, shown, rest[2 * PYR_MAX_DIMS];
    pyri_grid_domain(t->grid, level, pos, &domain);
    if (!pyri_flat_shown(f, t->form, &domain, &shown) ||
        !pyri_box_overlaps(n, &shown, &w->bounds))
        return found_same(w, level, pos, t->fill);
    pyri_box_intersect(n, &domain, &w->bounds, &domain);
    int count = pyri_box_subtract(n, &domain, &shown, rest), err = 0;
    for (int i = 0; i <= count && err == 0; i++) {
        pyri_box_intersect(n, &domain, i < count ? &rest[i] : &shown,
                           &w->hit.box);
        w->hit.leaf = false;
        w->hit.bits = i < count ? t->fill : f->bits;
        w->hit.flat = i < count ? 0 : f->label;
        err = w->each(w->ctx, &w->hit);
    }
    return err;
}

/*
 * Which children of a node have chunks inside the bounds of the walk, a bit
 * for each slot. A slot's bit i says in which half the child is along one axis;
 * so of each axis the places that are too low or too high are struck out, all
 * their slots at once.
 */
static unsigned
slots_inside(const walk *w, const pending *at)
{
    static const unsigned set[PYRI_FAN_BITS] = {0xaaaa, 0xcccc, 0xf0f0, 0xff00};
    const pyri_grid *g = w->t->grid;
    const uint8_t *below = g->shift[at->level - 1];
    int first = (at->level - 1) * PYRI_FAN_BITS;
    int n = g->norder - first < PYRI_FAN_BITS ? g->norder - first
                                              : PYRI_FAN_BITS;
    unsigned slots = (1u << (1u << n)) - 1;
    for (int d = 0; d < g->ndim; d++) {
        unsigned shift = below[d], halvings = g->shift[at->level][d] - shift;
        if (shift > 63) /* all of an axis of more than 2^63 chunks */
            continue;
        uint64_t lo = w->lo[d] >> shift, hi = w->hi[d] >> shift;
        for (uint64_t half = 0; half < 1u << halvings; half++) {
            uint64_t pos = at->pos[d] << halvings | half;
            if (pos >= lo && pos <= hi)
                continue;
            unsigned there = slots;
            for (int i = 0; i < n; i++)
                if (g->axis[first + i] == d)
                    there &= half >> (g->bit[first + i] - shift) & 1
                                 ? set[i]
                                 : ~set[i];
            slots &= ~there;
        }
    }
    return slots;
}

/* Does a run that is no box touch the child? */
static bool
run_touches(const walk *w, const pending *child)
{
    pyri_box domain;
    pyri_grid_domain(w->t->grid, child->level, child->pos, &domain);
    return pyri_run_overlaps(w->t->grid->ndim, w->run, &domain);
}

/* All cells of the child, as they are in this snapshot, are the same. */
static bool
child_same(const walk *w, const pyri_node *node, unsigned slot,
           const pending *child, uint64_t *bits)
{
    const pyri_form *form = w->t->form;
    uint64_t count;
    if (w->t->leaves_only ||
        !pyri_node_same(node, slot, bits, &count))
        return false;
    pyri_box domain, shown;
    pyri_grid_domain(w->t->grid, child->level, child->pos, &domain);
    for (int i = 0; i < form->ncuts && form->cuts[i].label > child->label; i++)
        if (form->cuts[i].extent < domain.hi[form->cuts[i].axis])
            return false; /* cells were lost that count still counts */
    return pyri_grid_shown(w->t->grid, child->level, child->pos, &shown) &&
           pyri_box_cells(form->ndim, &shown) == count;
}

/* Look at the children of a node, or (NULL) of one that is stored lower. */
static int
expand(walk *w, const pending *at, const pyri_node *node)
{
    int err = 0;
    pending child;
    for (unsigned left = slots_inside(w, at); left && err == 0;
         left &= left - 1) {
        unsigned slot = (unsigned)__builtin_ctz(left);
        uint64_t same = w->t->fill;
        child.label = at->label;
        child.level = at->level - 1;
        child.stored = at->stored;
        pyri_grid_child(w->t->grid, at->level, at->pos, slot, child.pos);
        if (!w->box && !run_touches(w, &child))
            continue;
        if (node ? !(node->slots >> slot & 1) : slot != 0) {
            err = found_same(w, child.level, child.pos, same);
            continue;
        }
        if (node && node->flats >> slot & 1) {
            pyri_flat flat;
            if ((err = pyri_node_flat(node, slot, &flat)) < 0)
                return told(w->t, child.level, child.pos, err);
            err = found_flat(w, child.level, child.pos, &flat);
            continue;
        }
        if (node) {
            err = pyri_node_child(node, slot, &child.label, &child.stored);
            if (err == 0 && child.stored > child.level)
                err = pyri_fail(PYR_ECORRUPT, "a node of the tree is damaged");
            if (err < 0)
                return told(w->t, child.level, child.pos, err);
            if (child_same(w, node, slot, &child, &same)) {
                err = found_same(w, child.level, child.pos, same);
                continue;
            }
        }
        err = push(w, &child);
    }
    return err;
}

static int
found_leaf(walk *w, const pending *at, const pyri_node *node)
{
    pyri_hit *hit = &w->hit;
    pyri_grid_domain(w->t->grid, 0, at->pos, &hit->box);
    pyri_box_intersect(w->t->grid->ndim, &hit->box, &w->bounds, &hit->box);
    hit->leaf = true;
    hit->flat = 0;
    hit->node = *node;
    memcpy(hit->pos, at->pos, sizeof hit->pos);
    return w->each(w->ctx, hit);
}

/* Take a batch off the stack and deal with it. */
static int
step(walk *w)
{
    const pyri_tree *t = w->t;
    pending at[BATCH];
    uint8_t keys[BATCH][192];
    pyri_node_get gets[BATCH];
    size_t n = 0;
    int err;
    while (w->n && n < BATCH) {
        pending *p = &at[n];
        *p = w->stack[--w->n];
        if (p->stored < p->level) {
            if ((err = expand(w, p, NULL)) != 0)
                return err;
            continue;
        }
        uint64_t owner = pyri_lineage_owner(t->lineage, p->label);
        gets[n].key.data = keys[n];
        gets[n].key.size = pyri_node_key(owner, p->label, p->level,
                                         t->grid->ndim, p->pos, keys[n]);
        n++;
    }
    if (n && (err = pyri_engine_get_nodes(t->engine, t->reader, gets, n)) < 0)
        return err;
    count_node(t, n);
    for (size_t i = 0; i < n; i++) {
        pyri_node node;
        if ((err = open_node(t, at[i].label, at[i].level, at[i].pos, &gets[i],
                             &node)) < 0)
            return err;
        err = at[i].level ? expand(w, &at[i], &node)
                          : found_leaf(w, &at[i], &node);
        if (err != 0)
            return err;
    }
    return 0;
}

int
pyri_tree_find(const pyri_tree *t, const pyri_run *run, pyri_hit_fn *each,
               void *ctx)
{
    const pyri_grid *g = t->grid;
    walk w; /* large: not worth clearing */
    w.t = t;
    w.run = run;
    w.each = each;
    w.ctx = ctx;
    w.stack = w.small;
    w.n = 0;
    w.room = 2 * BATCH;
    w.box = pyri_run_is_box(g->ndim, run);
    pyri_run_bounds(g->ndim, run, &w.bounds);
    if (pyri_box_empty(g->ndim, &w.bounds))
        return 0;
    for (int d = 0; d < g->ndim; d++) {
        w.lo[d] = w.bounds.lo[d] / g->chunk[d];
        w.hi[d] = (w.bounds.hi[d] - 1) / g->chunk[d];
    }
    pending root = {t->root, g->levels, t->root_level, {0}};
    if (t->root == 0)
        return found_same(&w, g->levels, root.pos, t->fill);
    int err = push(&w, &root);
    while (err == 0 && w.n)
        err = step(&w);
    if (w.stack != w.small)
        free(w.stack);
    return err;
}
