/*
 * tree/build.c - the nodes of a new version, bottom up.
 *
 * For every node whose domain the version touches there is a new one. Each of
 * its children is, in this order,
 *   - the new version's own, if it touches the child too;
 *   - that of the newest rival (a version in flight below ours) that touches
 *     it: predicted, as its name follows from what the rival claims. Nothing
 *     is known of it yet, so it has no summary and no digest here;
 *   - the one that the base snapshot has there, with all that is known of it;
 *   - none: all is fill.
 * Nobody is waited for. A version that is given up is built the same way with
 * no fragments, so that names predicted by others come to be all the same.
 */
#include "tree/tree.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

/* Where a node is in the bytes, until they stop moving. */
typedef struct placed {
    size_t key, key_size, value, value_size;
} placed;

/* What the base snapshot has at the place where we are. */
typedef struct under {
    uint64_t label; /* 0: nothing */
    int stored;     /* its level; may be below where we are */
} under;

typedef struct job {
    pyri_build *b;
    const pyri_rival **rivals; /* a row of nrivals for each level */
    placed *placed;
    size_t n, room;
} job;

static int
compare(const void *a, const void *b)
{
    const pyri_touch *x = a, *y = b;
    for (int i = 0; i < PYRI_CODE_WORDS; i++)
        if (x->code[i] != y->code[i])
            return x->code[i] < y->code[i] ? -1 : 1;
    return 0;
}

bool
pyri_summary_now(const pyri_form *form, pyr_type type, uint64_t fill,
                 uint64_t label, const pyri_box *domain, pyri_summary *s)
{
    pyri_box now = *domain, shape = {.lo = {0}};
    for (int i = 0; i < form->ncuts && form->cuts[i].label > label; i++)
        if (form->cuts[i].extent < domain->hi[form->cuts[i].axis])
            return false;
    memcpy(shape.hi, form->shape, sizeof form->shape);
    if (!pyri_box_intersect(form->ndim, &now, &shape, &now))
        return s->count == 0;
    uint64_t cells = pyri_box_cells(form->ndim, &now);
    if (cells < s->count)
        return false;
    pyri_summary_add_same(s, type, fill, fill, cells - s->count);
    return true;
}

/* --- putting nodes out ------------------------------------------------------------------ */

static int
begin_node(job *j, int level, const uint64_t *pos, uint8_t *key, pyri_bytes *out)
{
    pyri_build *b = j->b;
    if (j->n == j->room) {
        size_t room = j->room ? 2 * j->room : 64;
        placed *list = realloc(j->placed, room * sizeof *list);
        if (!list)
            return pyri_fail_nomem("the nodes of a version");
        j->placed = list;
        j->room = room;
    }
    size_t size =
        pyri_node_key(b->array, b->label, level, b->grid->ndim, pos, key);
    j->placed[j->n] = (placed){.key = b->bytes.size, .key_size = size};
    pyri_buf_add(&b->bytes, key, size);
    j->placed[j->n].value = b->bytes.size;
    *out = (pyri_bytes){key, size};
    return 0;
}

static int
end_node(job *j)
{
    placed *p = &j->placed[j->n++];
    p->value_size = j->b->bytes.size - p->value;
    return pyri_buf_check(&j->b->bytes, "the nodes of a version");
}

static int
hand_over(job *j)
{
    pyri_build *b = j->b;
    b->nodes = malloc(j->n * sizeof *b->nodes);
    if (!b->nodes)
        return pyri_fail_nomem("the nodes of a version");
    for (size_t i = 0; i < j->n; i++) {
        const placed *p = &j->placed[i];
        b->nodes[i].key = (pyri_bytes){b->bytes.data + p->key, p->key_size};
        b->nodes[i].value =
            (pyri_bytes){b->bytes.data + p->value, p->value_size};
    }
    b->nnodes = j->n;
    return 0;
}

/* --- leaves ----------------------------------------------------------------------------------- */

static int
build_leaf(job *j, const pyri_touch *touch, const pyri_rival *rival,
           under base, pyri_entry *out)
{
    pyri_build *b = j->b;
    pyri_leaf leaf = {.n = 0};
    pyri_box domain;
    uint8_t key[PYRI_MAX_KEY];
    pyri_bytes k;
    int err = b->leaf(b->ctx, touch, rival ? rival->label : 0, base.label,
                      &leaf);
    if (err < 0)
        goto out;
    leaf.about.label = b->label;
    pyri_grid_domain(b->grid, 0, touch->pos, &domain);
    if ((err = begin_node(j, 0, touch->pos, key, &k)) < 0)
        goto out;
    pyri_leaf_encode(k, &leaf, b->base->type, b->grid->ndim, domain.lo,
                     &b->bytes);
    err = end_node(j);
    out->level = 0;
    out->about = leaf.about;
out:
    pyri_leaf_fini(&leaf);
    return err;
}

/* --- inner nodes -------------------------------------------------------------------------------- */

bool
pyri_rival_touches(const pyri_rival *r, const pyri_box *box)
{
    pyri_box shape = {.lo = {0}}, inside;
    memcpy(shape.hi, r->shape, sizeof shape.hi);
    return pyri_box_intersect(r->claim.ndim, box, &shape, &inside) &&
           pyri_claim_overlaps(&r->claim, &inside);
}

/* Rivals of the row that touch the box go into the row below; returns the
 * newest, or NULL. */
static const pyri_rival *
filter(const pyri_rival **row, size_t n, const pyri_box *box,
       const pyri_rival **below, size_t *nbelow)
{
    *nbelow = 0;
    for (size_t i = 0; i < n; i++)
        if (pyri_rival_touches(row[i], box))
            below[(*nbelow)++] = row[i];
    return *nbelow ? below[0] : NULL;
}

/* An entry of the base that was made when the child was in flight: by now the
 * child is there and may know what its parent did not. */
static int
heal(job *j, const uint64_t *pos, pyri_entry *e)
{
    pyri_node node;
    const pyri_tree *base = j->b->base;
    int err = pyri_tree_get(base, e->about.label, e->level, pos, &node);
    return err < 0 ? err : pyri_node_about(&node, base->type, &e->about);
}

/* The child that is not ours: predicted, shared with the base, or none. */
static int
other_child(job *j, int level, const uint64_t *pos, const pyri_rival *rival,
            const pyri_node *node, under base, unsigned slot, pyri_entry *e,
            bool *there)
{
    *there = true;
    if (rival) {
        e->level = rival->levels < level ? rival->levels : level;
        e->about = (pyri_about){.label = rival->label};
        return 0;
    }
    if (node && node->slots >> slot & 1) {
        int err = pyri_node_entry(node, slot, j->b->base->type, e);
        if (err == 0 && !(e->about.known && e->about.digested))
            err = heal(j, pos, e);
        return err;
    }
    if (!node && base.label && slot == 0) {
        e->level = base.stored;
        e->about = (pyri_about){.label = base.label};
        return heal(j, pos, e);
    }
    *there = false;
    return 0;
}

/* What a node says of itself, gathered from its children. */
typedef struct sum {
    pyri_about about;
    uint8_t text[PYRI_FAN * 17]; /* slot and digest of each child */
    size_t size;
} sum;

static void
sum_child(job *j, sum *s, const pyri_box *domain, const pyri_entry *e)
{
    const pyri_tree *base = j->b->base;
    pyri_summary child = e->about.summary;
    s->text[s->size] = (uint8_t)e->slot;
    pyri_store64(s->text + s->size + 1, e->about.digest.lo);
    pyri_store64(s->text + s->size + 9, e->about.digest.hi);
    s->size += 17;
    s->about.digested &= e->about.digested;
    s->about.known =
        s->about.known && e->about.known &&
        pyri_summary_now(j->b->form, base->type, base->fill, e->about.label,
                         domain, &child);
    if (s->about.known)
        pyri_summary_merge(&s->about.summary, base->type, &child);
}

static void
sum_fill(job *j, sum *s, const pyri_box *domain)
{
    const pyri_form *form = j->b->form;
    pyri_box inside, shape = {.lo = {0}};
    memcpy(shape.hi, form->shape, sizeof form->shape);
    if (pyri_box_intersect(form->ndim, domain, &shape, &inside))
        pyri_summary_add_same(&s->about.summary, j->b->base->type,
                              j->b->base->fill, j->b->base->fill,
                              pyri_box_cells(form->ndim, &inside));
}

static void
base_child(const pyri_node *node, under base, unsigned slot, under *out)
{
    *out = (under){0};
    if (!node) {
        if (slot == 0)
            *out = base;
    } else if (node->slots >> slot & 1) {
        pyri_node_child(node, slot, &out->label, &out->stored);
    }
}

static int
build_node(job *j, int level, const uint64_t *pos, pyri_touch *touches,
           size_t n, under base, const pyri_rival **rivals, size_t nrivals,
           pyri_entry *out)
{
    pyri_build *b = j->b;
    const pyri_grid *g = b->grid;
    pyri_node stored, *node = NULL;
    pyri_entry entries[PYRI_FAN];
    sum s = {.about = {.label = b->label, .known = true, .digested = true}};
    int count = 0, err, bits = g->norder - (level - 1) * PYRI_FAN_BITS;
    unsigned slots = 1u << (bits < PYRI_FAN_BITS ? bits : PYRI_FAN_BITS);
    const pyri_rival **below = rivals + b->nrivals;
    size_t done = 0;

    pyri_summary_init(&s.about.summary);
    if (base.label && base.stored == level) {
        if ((err = pyri_tree_get(b->base, base.label, level, pos, &stored)) < 0)
            return err;
        node = &stored;
    }
    for (unsigned slot = 0; slot < slots; slot++) {
        pyri_entry *e = &entries[count];
        uint64_t child[PYR_MAX_DIMS];
        pyri_box domain;
        size_t here = 0, nbelow;
        bool there = true;
        under base_here;
        pyri_grid_child(g, level, pos, slot, child);
        pyri_grid_domain(g, level - 1, child, &domain);
        const pyri_rival *rival =
            filter(rivals, nrivals, &domain, below, &nbelow);
        while (done + here < n &&
               pyri_grid_slot(touches[done + here].code, level) == slot)
            here++;
        base_child(node, base, slot, &base_here);
        e->slot = slot;
        if (here == 0)
            err = other_child(j, level - 1, child, rival, node, base, slot, e,
                              &there);
        else if (level == 1)
            err = build_leaf(j, &touches[done], rival, base_here, e);
        else
            err = build_node(j, level - 1, child, touches + done, here,
                             base_here, below, nbelow, e);
        if (err < 0)
            return err;
        done += here;
        if (there) {
            e->slot = slot;
            sum_child(j, &s, &domain, e);
            count++;
        } else {
            sum_fill(j, &s, &domain);
        }
    }
    s.about.digest = pyri_hash128(s.text, s.size);
    out->level = level;
    out->about = s.about;

    uint8_t key[PYRI_MAX_KEY];
    pyri_bytes k;
    if ((err = begin_node(j, level, pos, key, &k)) < 0)
        return err;
    pyri_node_encode(k, &s.about, b->base->type, level, entries, count,
                     &b->bytes);
    return end_node(j);
}

int
pyri_build_run(pyri_build *b)
{
    job j = {.b = b};
    pyri_entry root;
    uint64_t pos[PYR_MAX_DIMS] = {0};
    size_t rows = (size_t)b->grid->levels + 2;
    int err;
    for (size_t i = 0; i < b->ntouches; i++)
        pyri_grid_code(b->grid, b->touches[i].pos, b->touches[i].code);
    qsort(b->touches, b->ntouches, sizeof *b->touches, compare);
    j.rivals = calloc(rows * (b->nrivals + 1), sizeof *j.rivals);
    if (!j.rivals)
        return pyri_fail_nomem("the nodes of a version");
    for (size_t i = 0; i < b->nrivals; i++)
        j.rivals[i] = &b->rivals[i];
    under base = {b->base->root, b->base->root_level};
    err = build_node(&j, b->grid->levels, pos, b->touches, b->ntouches, base,
                     j.rivals, b->nrivals, &root);
    if (err == 0)
        err = hand_over(&j);
    if (err == 0)
        b->root = root.about;
    free(j.placed);
    free(j.rivals);
    return err;
}

void
pyri_build_fini(pyri_build *b)
{
    free(b->nodes);
    pyri_buf_fini(&b->bytes);
    b->nodes = NULL;
    b->nnodes = 0;
}
