/*
 * array/sum.c - what a chunk sums up to with new cells on top.
 *
 * From what it summed up to before, less the cells that are hidden now, which
 * are read for it; else from all its cells. If only the least or greatest cell
 * is in doubt, as it may be one of the hidden ones, the leaf may know in which
 * part of the chunk the next one is (chunk/regions.h), and that part is read.
 * If it does not, the chunk is read part by part, and the leaf to come will
 * know.
 *
 * Who wrote while another version was in flight in that chunk could not know
 * what both sum up to. Once both are published it can be said as for any write:
 * the leaf below, with the cells of the one above on top.
 */
#include "array/sum.h"

#include <string.h>

enum {
    SUM_LARGE = 64 << 20, /* bytes: chunks beyond this are left alone */
    LEAVES_DEEP = 4       /* that lie on each other: beyond, cells are read */
};

/* Bytes of a chunk; below, all of it is read as soon as a part. Tests have small
 * chunks, and are to go both ways. */
#ifdef PYRI_FAULTS
enum { REGIONS_WORTH = 256 };
#else
enum { REGIONS_WORTH = 64 << 10 };
#endif

int
pyri_sum_cells(pyri_fetcher *f, const pyri_chain *chain, const pyri_box *box,
               pyri_summary *s)
{
    pyri_fetch job = {.links = chain->links,
                      .n = chain->n,
                      .box = *box,
                      .sum = s};
    return pyri_fetch_run(f, &job, 1);
}

bool
pyri_change_begin(pyri_change *c)
{
    const pyri_array *a = c->f->array;
    pyri_grid_domain(c->t->grid, 0, c->p->pos, &c->chunk);
    if (!pyri_grid_shown(c->t->grid, 0, c->p->pos, &c->shown) ||
        pyri_box_bytes(a, &c->shown) > SUM_LARGE)
        return false;
    for (int i = 0; i < c->p->n; i++)
        if (!pyri_box_contains(a->schema.ndim, &c->shown, &c->p->frags[i].box))
            return false;
    return true;
}

bool
pyri_change_is_plain(const pyri_change *c)
{
    return c->p->n == 1 && !c->p->frags[0].masked;
}

int
pyri_change_load(pyri_change *c, const pyri_box *box)
{
    pyri_leaf_walk leaf;
    if (c->whole || !c->leaf)
        return 0;
    int err = pyri_leaf_begin(c->leaf, c->t->grid->ndim, &c->chunk, &leaf);
    c->whole = err == 0 && (!box || leaf.prev);
    pyri_chain_reset(&c->old);
    return err < 0 ? err
                   : pyri_chain_load(&c->old, c->t, c->p->pos, c->leaf,
                                     c->whole ? NULL : box, 0);
}

/* The old cells of a box. */
static int
sum_old(pyri_change *c, const pyri_box *box, pyri_summary *out)
{
    int err = pyri_change_load(c, box);
    return err < 0 ? err : pyri_sum_cells(c->f, &c->old, box, out);
}

/* --- regions ------------------------------------------------------------- */

/* The cells of region i that stay as they are. */
static int
sum_region(pyri_change *c, int i, pyri_summary *out)
{
    int ndim = c->f->array->schema.ndim, err = 0;
    pyri_box region, part, hidden, rest[2 * PYR_MAX_DIMS];
    pyri_summary_init(out);
    pyri_region_box(ndim, &c->chunk, i, &region);
    if (!pyri_box_intersect(ndim, &region, &c->shown, &part))
        return 0;
    if (!pyri_box_intersect(ndim, &part, &c->p->frags[0].box, &hidden))
        return sum_old(c, &part, out);
    int n = pyri_box_subtract(ndim, &part, &hidden, rest);
    for (int k = 0; k < n && err == 0; k++)
        err = sum_old(c, &rest[k], out);
    return err;
}

/* The least number of those that stay, or one that a new cell has, if none of
 * those is below it; and so the greatest. */
static int
find_ends(pyri_change *c, pyri_summary *out)
{
    pyr_type type = c->f->array->schema.type;
    const pyri_summary *own = &c->p->own;
    pyri_regions *r = &c->regions;
    bool numbers = own->count > own->nans, is;
    uint64_t low = pyri_cell_order(type, own->min);
    uint64_t high = pyri_cell_order(type, own->max);
    int i, err = 0;
    pyri_summary cells;
    while (err == 0 && (i = pyri_regions_least(r, &is), !is) &&
           !(numbers && r->least[i] >= low))
        if ((err = sum_region(c, i, &cells)) == 0)
            pyri_region_set(r, i, type, &cells);
    uint64_t least = err == 0 && is ? r->least[i] : low;
    while (err == 0 && (i = pyri_regions_greatest(r, &is), !is) &&
           !(numbers && r->greatest[i] <= high))
        if ((err = sum_region(c, i, &cells)) == 0)
            pyri_region_set(r, i, type, &cells);
    uint64_t greatest = err == 0 && is ? r->greatest[i] : high;
    pyri_summary_init(out);
    out->count = 1;
    out->min = pyri_cell_of_order(type, least);
    out->max = pyri_cell_of_order(type, greatest);
    return err;
}

/* --- by difference ------------------------------------------------------- */

/* All is known but whether the least and the greatest cell are still there. */
static bool
only_ends_are_in_doubt(const pyri_schema *s, const pyri_summary *before,
                       const pyri_summary *hidden)
{
    pyri_summary trial = *before;
    return pyri_summary_subtract(&trial, s->type, s->fill, hidden, before);
}

int
pyri_sum_difference(pyri_change *c, const pyri_about *about, bool *known,
                    pyri_summary *after)
{
    const pyri_schema *s = &c->f->array->schema;
    pyri_summary hidden, ends;
    int err = 0;
    *known = false;
    *after = about->summary;
    if (!pyri_change_is_plain(c) || !about->known ||
        !pyri_summary_now(c->t->form, s->type, s->fill, about->label, &c->chunk,
                          after))
        return 0;
    const pyri_box *box = &c->p->frags[0].box;
    if (after->count != about->summary.count)
        c->regions.n = 0; /* there are more cells by now */
    pyri_summary_init(&hidden);
    if (after->equal)
        pyri_summary_add_same(&hidden, s->type, s->fill, after->min,
                              pyri_box_cells(s->ndim, box));
    else
        err = sum_old(c, box, &hidden);
    if (err < 0)
        return err;
    pyri_regions_hide(&c->regions, s->ndim, &c->chunk, s->type, box, &hidden);
    *known = pyri_summary_subtract(after, s->type, s->fill, &hidden, NULL);
    if (!*known && c->regions.n && only_ends_are_in_doubt(s, after, &hidden)) {
        if ((err = find_ends(c, &ends)) < 0)
            return err;
        *known = pyri_summary_subtract(after, s->type, s->fill, &hidden, &ends);
    }
    if (!*known)
        return 0;
    pyri_summary_merge(after, s->type, &c->p->own);
    pyri_regions_add(&c->regions, s->ndim, &c->chunk, s->type, box, &c->p->own);
    return 0;
}

/* --- leaves that lie on others -------------------------------------------- */

/* The label that the leaf lies on, and what it put on that in `own`; 0 if it
 * does not, or if that is not one plain fragment. */
static int
top_of(const pyri_change *c, pyri_frag *own, uint64_t *prev)
{
    pyri_leaf_walk walk;
    pyri_frag next = {.version = 0};
    *prev = 0;
    int err = pyri_leaf_begin(c->leaf, c->t->grid->ndim, &c->chunk, &walk);
    if (err < 0 || !walk.prev || !walk.left)
        return err;
    err = pyri_leaf_next(&walk, own);
    if (err == 0 && walk.left)
        err = pyri_leaf_peek(&walk, &next);
    if (err == 0 && !own->masked && own->version == c->leaf->label &&
        next.version <= walk.prev)
        *prev = walk.prev;
    return err;
}

static int about_leaf(pyri_change *c, int deep, pyri_about *out);

/* `p` on what `c->leaf` sums up to, if that is known. */
static int
about_both(pyri_change *c, pyri_painted *p, int deep, pyri_about *out)
{
    pyri_chain top = {0};
    pyri_about below;
    int err = about_leaf(c, deep, &below);
    if (err < 0 || !below.known)
        return err;
    pyri_summary_init(&p->own);
    err = pyri_chain_add(&top, c->t->form, p->frags);
    if (err == 0)
        err = pyri_sum_cells(c->f, &top, &p->frags->box, &p->own);
    if (err == 0)
        err = pyri_sum_difference(c, &below, &out->known, &out->summary);
    pyri_chain_fini(&top);
    return err;
}

static int
about_leaf(pyri_change *c, int deep, pyri_about *out)
{
    pyri_frag own;
    pyri_node leaf;
    uint64_t prev;
    int err = pyri_node_about(c->leaf, c->t->type, out);
    if (err == 0 && out->known)
        return pyri_leaf_regions(c->leaf, c->t->type, c->t->grid->ndim,
                                 &c->chunk, &c->regions);
    if (err < 0 || deep == 0 || (err = top_of(c, &own, &prev)) < 0 || !prev ||
        !pyri_box_contains(c->t->grid->ndim, &c->shown, &own.box))
        return err;
    pyri_painted p = {.frags = &own, .n = 1};
    pyri_change below = {.f = c->f, .t = c->t, .p = &p, .leaf = &leaf,
                         .chunk = c->chunk, .shown = c->shown};
    memcpy(p.pos, c->p->pos, sizeof p.pos);
    if ((err = pyri_tree_get(c->t, prev, 0, p.pos, &leaf)) == 0)
        err = about_both(&below, &p, deep - 1, out);
    if (err == PYR_ECORRUPT) { /* of cells that may be hidden now */
        out->known = false;
        err = 0;
    }
    out->label = UINT64_MAX; /* as of now */
    if (out->known)
        c->regions = below.regions;
    pyri_chain_fini(&below.old);
    return err;
}

int
pyri_change_about(pyri_change *c, pyri_about *out)
{
    *out = (pyri_about){.label = UINT64_MAX, .known = true};
    pyri_summary_init(&out->summary);
    return c->leaf ? about_leaf(c, LEAVES_DEEP, out) : 0;
}

/* --- by reading ---------------------------------------------------------- */

/* Several boxes, or a masked one: read the chunk as it will be. */
static int
sum_all(pyri_change *c, pyri_summary *after)
{
    int err = 0;
    pyri_chain_reset(&c->old);
    c->whole = false;
    for (int i = 0; i < c->p->n && err == 0; i++) {
        pyri_frag frag = c->p->frags[i];
        frag.version = UINT64_MAX; /* newer than any cut */
        err = pyri_chain_add(&c->old, c->t->form, &frag);
    }
    if (err == 0 && c->leaf)
        err = pyri_chain_load(&c->old, c->t, c->p->pos, c->leaf, NULL, 0);
    return err < 0 ? err : pyri_sum_cells(c->f, &c->old, &c->shown, after);
}

/* All but the new cells, region by region. */
static int
sum_regions(pyri_change *c, pyri_summary *after)
{
    const pyri_schema *s = &c->f->array->schema;
    pyri_summary cells;
    int err = 0, n = pyri_regions_of(s->ndim, &c->chunk);
    for (int i = 0; i < n && err == 0; i++) {
        if ((err = sum_region(c, i, &cells)) < 0)
            break;
        pyri_region_set(&c->regions, i, s->type, &cells);
        pyri_summary_merge(after, s->type, &cells);
    }
    c->regions.n = err == 0 ? n : 0;
    pyri_regions_add(&c->regions, s->ndim, &c->chunk, s->type,
                     &c->p->frags[0].box, &c->p->own);
    return err;
}

int
pyri_sum_chunk(pyri_change *c, pyri_summary *after)
{
    const pyri_array *a = c->f->array;
    pyri_box rest[2 * PYR_MAX_DIMS];
    int err = 0;
    c->regions.n = 0;
    pyri_summary_init(after);
    if (!pyri_change_is_plain(c))
        return sum_all(c, after);
    if (pyri_box_bytes(a, &c->shown) >= REGIONS_WORTH) {
        err = sum_regions(c, after);
    } else {
        int n = pyri_box_subtract(a->schema.ndim, &c->shown,
                                  &c->p->frags[0].box, rest);
        for (int i = 0; i < n && err == 0; i++)
            err = sum_old(c, &rest[i], after);
    }
    pyri_summary_merge(after, a->schema.type, &c->p->own);
    return err;
}

int
pyri_sum_after(const pyri_array *a, const pyri_tree *t, const pyri_painted *p,
               const pyri_node *node, pyri_leaf *leaf)
{
    pyri_fetcher f = {.array = (pyri_array *)(uintptr_t)a, .reader = t->reader};
    pyri_change c = {.f = &f, .t = t, .p = p, .leaf = node};
    pyri_about about, *own = &leaf->about;
    own->known = false;
    if (!pyri_change_begin(&c))
        return 0;
    int err = pyri_change_about(&c, &about);
    if (err == 0)
        err = pyri_sum_difference(&c, &about, &own->known, &own->summary);
    if (err == 0 && !own->known) {
        err = pyri_sum_chunk(&c, &own->summary);
        own->known = err == 0;
    }
    leaf->regions = c.regions;
    pyri_fetcher_fini(&f);
    pyri_chain_fini(&c.old);
    return err;
}
