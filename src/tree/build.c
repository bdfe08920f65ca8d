/*
 * tree/build.c - the nodes of a new version, bottom up.
 *
 * For every node whose domain the version touches there is a new one. Each of
 * its children is, in this order,
 *   - the new version's own, if it touches the child too; flat (flat.c), if
 *     all its cells become one value;
 *   - that of the newest rival (a version in flight below ours) that touches
 *     it: predicted, as its name follows from what the rival claims. Nothing
 *     is known of it yet, so it has no summary and no digest here;
 *   - the one that the base snapshot has there, with all that is known of it;
 *   - none: all is fill.
 * Nobody is waited for. A version that is given up is built the same way with
 * no fragments, so that names predicted by others come to be all the same.
 * What is asked of the base was got before, level by level (gather.c).
 */
#include "tree/tree.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/room.h"
#include "base/sys.h"
#include "tree/gather.h"

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
    const pyri_flat *flat; /* it is (part of) this; else NULL */
    const pyri_gathered *got; /* where it was gathered; NULL: nowhere */
} under;

/* Some of the sheets, in job.at. */
typedef struct some {
    size_t first, n;
} some;

/* A rival, and which of its runs touch the node where we are. */
typedef struct near {
    const pyri_rival *rival;
    size_t first, n; /* in job.runs; n == ALL: all of them */
} near;

enum { FEW_RUNS = 8 };
#define ALL SIZE_MAX

typedef struct job {
    pyri_build *b;
    const pyri_gather *gather;
    near *rivals; /* a row of nrivals for each level */
    uint32_t *runs; /* indices of runs, as a stack */
    size_t nruns, runs_room;
    uint32_t *at; /* indices of sheets, as a stack */
    size_t nat, at_room;
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

/* How many cells of a domain are inside the shape. */
static uint64_t
cells_shown(const pyri_form *form, const pyri_box *domain)
{
    pyri_box shown;
    for (int d = 0; d < form->ndim; d++) {
        shown.lo[d] = domain->lo[d];
        shown.hi[d] = pyri_min64(domain->hi[d], form->shape[d]);
    }
    return pyri_box_cells(form->ndim, &shown);
}

bool
pyri_summary_now(const pyri_form *form, pyr_type type, uint64_t fill,
                 uint64_t label, const pyri_box *domain, pyri_summary *s)
{
    for (int i = 0; i < form->ncuts && form->cuts[i].label > label; i++)
        if (form->cuts[i].extent < domain->hi[form->cuts[i].axis])
            return false;
    uint64_t cells = cells_shown(form, domain);
    if (cells < s->count)
        return false;
    pyri_summary_add_same(s, type, fill, fill, cells - s->count);
    return true;
}

/* --- putting nodes out --------------------------------------------------- */

static int
begin_node(job *j, int level, const uint64_t *pos, uint8_t *key,
           pyri_bytes *out)
{
    pyri_build *b = j->b;
    if (!pyri_room(&j->placed, &j->room, j->n + 1, sizeof *j->placed))
        return pyri_fail_nomem("the nodes of a version");
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
    int err = pyri_buf_check(&j->b->bytes, "the nodes of a version");
    if (err == 0 && j->b->alive && j->n % 1024 == 0)
        err = j->b->alive(j->b->ctx);
    return err;
}

static int
compare_keys(const void *a, const void *b)
{
    const pyri_node_put *x = a, *y = b;
    size_t size = x->key.size < y->key.size ? x->key.size : y->key.size;
    int order = memcmp(x->key.data, y->key.data, size);
    return order ? order : (x->key.size > y->key.size) -
                               (x->key.size < y->key.size);
}

/* In order of their keys: so an engine may store them side by side. */
static int
hand_over(job *j)
{
    pyri_build *b = j->b;
    b->nodes = pyri_sys_malloc(j->n * sizeof *b->nodes);
    if (!b->nodes)
        return pyri_fail_nomem("the nodes of a version");
    for (size_t i = 0; i < j->n; i++) {
        const placed *p = &j->placed[i];
        b->nodes[i].key = (pyri_bytes){b->bytes.data + p->key, p->key_size};
        b->nodes[i].value =
            (pyri_bytes){b->bytes.data + p->value, p->value_size};
    }
    b->nnodes = j->n;
    qsort(b->nodes, b->nnodes, sizeof *b->nodes, compare_keys);
    return 0;
}

/* --- flats --------------------------------------------------------------- */

static void
flat_entry(const job *j, int level, const pyri_flat *f, const pyri_box *region,
           pyri_entry *out)
{
    const pyri_tree *base = j->b->base;
    out->level = level;
    out->flat = true;
    memcpy(out->shape, f->shape, sizeof out->shape);
    pyri_flat_about(f, base->grid->ndim, base->type, base->fill, region,
                    &out->about);
}

/* The new version gives all these cells, which are all of the child's inside
 * its shape, one value. */
static void
own_flat(const job *j, int level, uint64_t bits, const pyri_box *shown,
         pyri_entry *out)
{
    pyri_flat f = {.label = j->b->label, .bits = bits};
    memcpy(f.shape, j->b->form->shape, sizeof f.shape);
    flat_entry(j, level, &f, shown, out);
}

/* Of the sheets, those that touch the box; and one that covers it, or NULL. */
static int
pick(job *j, some from, const pyri_box *box, some *out,
     const pyri_sheet **whole)
{
    int n = j->b->grid->ndim;
    *out = (some){j->nat, 0};
    *whole = NULL;
    for (size_t i = 0; i < from.n; i++) {
        uint32_t k = j->at[from.first + i];
        const pyri_sheet *sheet = &j->b->sheets[k];
        if (!pyri_box_overlaps(n, &sheet->box, box))
            continue;
        if (pyri_box_contains(n, &sheet->box, box))
            *whole = sheet;
        if (!pyri_room(&j->at, &j->at_room, j->nat + 1, sizeof *j->at))
            return pyri_fail_nomem("the nodes of a version");
        j->at[j->nat++] = k;
        out->n++;
    }
    return 0;
}

/* Is that all: one value for every cell of the chunk inside the shape? */
static bool
is_flat(const pyri_build *b, const pyri_leaf *leaf, const pyri_box *shown)
{
    const pyri_frag *f = leaf->frags;
    return b->flat && leaf->n == 1 && !leaf->nbelow && !leaf->prev &&
           !f->fold && !f->masked &&
           f->kind == PYRI_FRAG_SAME && f->version == b->label &&
           pyri_box_equal(b->grid->ndim, &f->box, shown);
}

/* Are all children that are shown the new version's, and flat, and alike? */
static bool
all_flat(const job *j, int level, const uint64_t *pos,
         const pyri_entry *entries, int n, pyri_box *shown, uint64_t *bits)
{
    const pyri_grid *g = j->b->grid;
    if (!j->b->flat || level == g->levels ||
        !pyri_grid_shown(g, level, pos, shown))
        return false;
    uint64_t cells = 0;
    for (int i = 0; i < n; i++) {
        const pyri_entry *e = &entries[i];
        uint64_t child[PYR_MAX_DIMS];
        pyri_box box;
        pyri_grid_child(g, level, pos, e->slot, child);
        if (!pyri_grid_shown(g, level - 1, child, &box))
            continue; /* it was cut off */
        if (cells == 0)
            *bits = e->about.summary.min;
        if (!e->flat || e->about.label != j->b->label ||
            e->about.summary.min != *bits)
            return false;
        cells += e->about.summary.count;
    }
    return cells == pyri_box_cells(g->ndim, shown);
}

/* --- leaves -------------------------------------------------------------- */

static int
build_leaf(job *j, const pyri_touch *touch, const pyri_rival *rival,
           under base, pyri_entry *out)
{
    pyri_build *b = j->b;
    pyri_leaf leaf = {.n = 0};
    pyri_box domain, shown;
    uint8_t key[PYRI_MAX_KEY];
    pyri_bytes k;
    int err = b->leaf(b->ctx, touch, rival ? rival->label : 0, base.label,
                      base.flat, &leaf);
    if (err < 0)
        goto out;
    leaf.about.label = b->label;
    if (pyri_grid_shown(b->grid, 0, touch->pos, &shown) &&
        is_flat(b, &leaf, &shown)) {
        own_flat(j, 0, leaf.frags[0].bits, &shown, out);
        goto out;
    }
    pyri_grid_domain(b->grid, 0, touch->pos, &domain);
    if ((err = begin_node(j, 0, touch->pos, key, &k)) < 0)
        goto out;
    pyri_leaf_encode(k, &leaf, b->base->type, b->grid->ndim, &domain,
                     &b->bytes);
    err = end_node(j);
    out->level = 0;
    out->about = leaf.about;
out:
    pyri_leaf_fini(&leaf);
    return err;
}

/* --- inner nodes --------------------------------------------------------- */

bool
pyri_rival_touches(const pyri_rival *r, const pyri_box *box)
{
    pyri_box shape = {.lo = {0}}, inside;
    memcpy(shape.hi, r->shape, sizeof shape.hi);
    return pyri_box_intersect(r->claim.ndim, box, &shape, &inside) &&
           pyri_claim_overlaps(&r->claim, &inside);
}

static int
push_run(job *j, size_t run)
{
    if (!pyri_room(&j->runs, &j->runs_room, j->nruns + 1, sizeof *j->runs))
        return pyri_fail_nomem("the versions in flight");
    j->runs[j->nruns++] = (uint32_t)run;
    return 0;
}

/* Of a rival with many runs, keep those that touch the box. */
static int
narrow(job *j, const near *from, const pyri_box *box, near *out)
{
    const pyri_rival *r = from->rival;
    pyri_box shape = {.lo = {0}}, inside;
    size_t n = from->n == ALL ? r->claim.n : from->n;
    int err = 0;
    *out = (near){r, j->nruns, 0};
    memcpy(shape.hi, r->shape, sizeof shape.hi);
    if (!pyri_box_intersect(r->claim.ndim, box, &shape, &inside))
        return 0;
    for (size_t i = 0; i < n && err == 0; i++) {
        size_t run = from->n == ALL ? i : j->runs[from->first + i];
        if (!pyri_run_overlaps(r->claim.ndim, &r->claim.runs[run], &inside))
            continue;
        if (n <= FEW_RUNS) { /* not worth a list: ask them all again */
            *out = *from;
            return 0;
        }
        err = push_run(j, run);
    }
    out->n = j->nruns - out->first;
    return err;
}

/* Rivals of the row that touch the box go into the row below. */
static int
filter(job *j, const near *row, size_t n, const pyri_box *box, near *below,
       size_t *nbelow)
{
    int err = 0;
    *nbelow = 0;
    for (size_t i = 0; i < n && err == 0; i++) {
        err = narrow(j, &row[i], box, &below[*nbelow]);
        *nbelow += err == 0 && below[*nbelow].n > 0;
    }
    return err;
}

/* An entry of the base that was made when the child was in flight: by now the
 * child is there and may know what its parent did not. */
static int
heal(job *j, under base, unsigned slot, const uint64_t *pos, pyri_entry *e)
{
    pyri_node node;
    const pyri_gathered *got = pyri_gather_kid(j->gather, base.got, slot);
    int err = pyri_gather_get(j->gather, got, e->about.label, e->level, pos,
                              &node);
    if (err == 0)
        err = pyri_node_about(&node, j->b->base->type, &e->about);
    if (err < 0) /* damage there is no reason to fail here */
        e->about.known = e->about.digested = false;
    return err == PYR_ECORRUPT ? 0 : err;
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
    if (base.flat) {
        pyri_box domain, region;
        pyri_grid_domain(j->b->grid, level, pos, &domain);
        *there = pyri_flat_region(base.flat, j->b->grid->ndim, &domain,
                                  &region);
        if (*there)
            flat_entry(j, level, base.flat, &region, e);
        return 0;
    }
    if (node && node->slots >> slot & 1) {
        int err = pyri_node_entry(node, slot, j->b->base->type, e);
        if (err == 0 && !e->lost && !(e->about.known && e->about.digested))
            err = heal(j, base, slot, pos, e);
        return err;
    }
    if (!node && base.label && slot == 0) {
        e->level = base.stored;
        e->about = (pyri_about){.label = base.label};
        return heal(j, base, slot, pos, e);
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
    pyri_summary_add_same(&s->about.summary, j->b->base->type,
                          j->b->base->fill, j->b->base->fill,
                          cells_shown(j->b->form, domain));
}

/* What the base has for a child; `flat` is memory, if that is needed. */
static int
base_child(const job *j, const pyri_node *node, under base, unsigned slot,
           const pyri_box *domain, pyri_flat *flat, under *out)
{
    pyri_box region;
    int err;
    *out = (under){0};
    if (node && node->flats >> slot & 1) {
        if ((err = pyri_node_flat(node, slot, flat)) < 0)
            return err;
        *out = (under){.label = flat->label, .flat = flat};
        return 0;
    }
    if (node && node->slots >> slot & 1) {
        out->got = pyri_gather_kid(j->gather, base.got, slot);
        return pyri_node_child(node, slot, &out->label, &out->stored);
    }
    if (base.flat ? pyri_flat_region(base.flat, j->b->grid->ndim, domain,
                                     &region)
                  : !node && slot == 0)
        *out = (under){base.label, base.stored, base.flat,
                       pyri_gather_kid(j->gather, base.got, slot)};
    return 0;
}

/* The node of the base is damaged, and we change nothing: what it knew of its
 * children is lost, and who reads them is told so. */
static int
lost_child(int level, under base, unsigned slot, pyri_entry *e)
{
    *e = (pyri_entry){.slot = slot, .level = level, .lost = true};
    e->about.label = base.label;
    return 0;
}

static int
build_node(job *j, int level, const uint64_t *pos, pyri_touch *touches,
           size_t n, some sheets, under base, const near *rivals,
           size_t nrivals, pyri_entry *out)
{
    pyri_build *b = j->b;
    const pyri_grid *g = b->grid;
    pyri_node stored, *node = NULL;
    pyri_entry entries[PYRI_FAN];
    sum s = {.about = {.label = b->label, .known = true, .digested = true}};
    int count = 0, err, bits = g->norder - (level - 1) * PYRI_FAN_BITS;
    unsigned slots = 1u << (bits < PYRI_FAN_BITS ? bits : PYRI_FAN_BITS);
    near *below = j->rivals + b->nrivals * (size_t)(g->levels - level + 1);
    size_t done = 0, first_node = j->n, first_byte = b->bytes.size;
    bool lost = false;

    pyri_summary_init(&s.about.summary);
    if (base.label && !base.flat && base.stored == level) {
        err = pyri_gather_get(j->gather, base.got, base.label, level, pos,
                              &stored);
        lost = err == PYR_ECORRUPT && b->tolerant;
        if (err < 0 && !lost)
            return err;
        node = lost ? NULL : &stored;
    }
    for (unsigned slot = 0; slot < slots; slot++) {
        pyri_entry *e = &entries[count];
        uint64_t child[PYR_MAX_DIMS];
        pyri_box domain, shown;
        size_t here = 0, nbelow;
        bool there = true;
        under base_here = {0};
        pyri_flat base_flat;
        size_t runs = j->nruns, picked = j->nat;
        some sheets_here = {0, 0};
        const pyri_sheet *whole = NULL;
        pyri_grid_child(g, level, pos, slot, child);
        pyri_grid_domain(g, level - 1, child, &domain);
        if (sheets.n && pyri_grid_shown(g, level - 1, child, &shown) &&
            (err = pick(j, sheets, &shown, &sheets_here, &whole)) < 0)
            return err;
        if ((err = filter(j, rivals, nrivals, &domain, below, &nbelow)) < 0)
            return err;
        const pyri_rival *rival = nbelow ? below[0].rival : NULL;
        while (done + here < n &&
               pyri_grid_slot(touches[done + here].code, level) == slot)
            here++;
        if (!lost && (err = base_child(j, node, base, slot, &domain,
                                       &base_flat, &base_here)) < 0 &&
            !b->tolerant)
            return err;
        err = 0;
        *e = (pyri_entry){.slot = slot};
        if (whole && here)
            err = pyri_fail(PYR_EINVAL, "a constant region has other cells");
        else if (whole)
            own_flat(j, level - 1, whole->bits, &shown, e);
        else if (lost && here == 0 && !rival)
            err = lost_child(level - 1, base, slot, e);
        else if (here == 0 && sheets_here.n == 0)
            err = other_child(j, level - 1, child, rival, node, base, slot, e,
                              &there);
        else if (level == 1)
            err = here == 1 && sheets_here.n == 0
                      ? build_leaf(j, &touches[done], rival, base_here, e)
                      : pyri_fail(PYR_EINVAL, "a constant region cuts a chunk");
        else
            err = build_node(j, level - 1, child, touches + done, here,
                             sheets_here, base_here, below, nbelow, e);
        if (err < 0)
            return err;
        done += here;
        j->nruns = runs;
        j->nat = picked;
        if (there) {
            e->slot = slot;
            sum_child(j, &s, &domain, e);
            count++;
        } else {
            sum_fill(j, &s, &domain);
        }
    }
    pyri_box all;
    uint64_t value = 0;
    if (all_flat(j, level, pos, entries, count, &all, &value)) {
        j->n = first_node; /* what is below is not needed any more */
        b->bytes.size = first_byte;
        own_flat(j, level, value, &all, out);
        return 0;
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

static void
sort_touches(pyri_build *b)
{
    for (size_t i = 0; i < b->ntouches; i++)
        pyri_grid_code(b->grid, b->touches[i].pos, b->touches[i].code);
    if (b->ntouches)
        qsort(b->touches, b->ntouches, sizeof *b->touches, compare);
}

/* At the root all rivals and all sheets are near. */
static int
begin_job(job *j)
{
    const pyri_build *b = j->b;
    size_t rows = (size_t)b->grid->levels + 2;
    j->rivals = pyri_sys_calloc(rows * (b->nrivals + 1), sizeof *j->rivals);
    if (!j->rivals ||
        !pyri_room(&j->at, &j->at_room, b->nsheets, sizeof *j->at))
        return pyri_fail_nomem("the nodes of a version");
    for (size_t i = 0; i < b->nrivals; i++)
        j->rivals[i] = (near){&b->rivals[i], 0, ALL};
    for (; j->nat < b->nsheets; j->nat++)
        j->at[j->nat] = (uint32_t)j->nat;
    return 0;
}

int
pyri_build_run(pyri_build *b)
{
    pyri_gather gather;
    job j = {.b = b, .gather = &gather};
    pyri_entry root;
    uint64_t pos[PYR_MAX_DIMS] = {0};
    sort_touches(b);
    int err = pyri_gather_run(&gather, b);
    if (err == 0)
        err = begin_job(&j);
    under base = {b->base->root, b->base->root_level, NULL,
                  pyri_gather_root(&gather)};
    if (err == 0)
        err = build_node(&j, b->grid->levels, pos, b->touches, b->ntouches,
                         (some){0, j.nat}, base, j.rivals, b->nrivals, &root);
    if (err == 0)
        err = hand_over(&j);
    if (err == 0)
        b->root = root.about;
    pyri_gather_fini(&gather);
    free(j.placed);
    free(j.rivals);
    free(j.runs);
    free(j.at);
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
