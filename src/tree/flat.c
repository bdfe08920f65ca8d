/*
 * tree/flat.c - subtrees of one value, which are not stored.
 *
 * A version that gives all cells of a subtree (those inside its shape) one
 * value has no nodes there. The entry in the parent is marked as flat, and
 * holds all that there is to know: the version, the value (in the summary,
 * which says that all cells are equal) and the shape that the version had, as
 * cells that were added later are fill.
 *
 *     root/7 ---- [0] flat/7 = 4.0
 *            |--- [1] flat/7 = 4.0
 *            '--- [2]/7 --- [8] flat/7 = 4.0
 *                       |-- [9] leaf/7              the edge of a box
 *                       '-- [10] flat/3 = 0.0       of an older version
 *
 * Whoever writes into a flat of an older version makes nodes on the way to its
 * chunks; the other children there are flats of that older version again, each
 * of its part of the domain. So a flat is never referred to from elsewhere, and
 * nothing has to be kept for it. The root itself is always a node.
 */
#include "tree/tree.h"

#include "base/checked.h"
#include "base/room.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

bool
pyri_flat_region(const pyri_flat *f, int ndim, const pyri_box *domain,
                 pyri_box *out)
{
    bool some = true;
    for (int d = 0; d < ndim; d++) {
        out->lo[d] = domain->lo[d];
        out->hi[d] = pyri_min64(domain->hi[d], f->shape[d]);
        some &= out->lo[d] < out->hi[d];
    }
    return some;
}

bool
pyri_flat_shown(const pyri_flat *f, const pyri_form *form,
                const pyri_box *domain, pyri_box *out)
{
    uint64_t clip[PYR_MAX_DIMS];
    bool some = pyri_flat_region(f, form->ndim, domain, out);
    pyri_form_clip(form, f->label, clip);
    for (int d = 0; d < form->ndim; d++) {
        out->hi[d] = pyri_min64(out->hi[d], clip[d]);
        some &= out->lo[d] < out->hi[d];
    }
    return some;
}

/* The one fragment of the leaf that a region would be. */
static void
fragment(const pyri_flat *f, int ndim, pyr_type type, uint64_t fill,
         const pyri_box *region, pyri_frag *out, pyri_summary *sum)
{
    pyri_frag_style style = {.ndim = ndim, .type = type, .fill = fill};
    pyri_summary_init(sum);
    pyri_frag_same(&style, region, f->bits, out, sum);
    out->version = f->label;
}

void
pyri_flat_about(const pyri_flat *f, int ndim, pyr_type type, uint64_t fill,
                const pyri_box *region, pyri_about *out)
{
    pyri_frag frag;
    *out = (pyri_about){.label = f->label, .known = true, .digested = true};
    fragment(f, ndim, type, fill, region, &frag, &out->summary);
    out->digest = pyri_leaf_digest(ndim, &frag, (pyri_digest){0, 0});
}

int
pyri_flat_leaf(const pyri_tree *t, const pyri_flat *f, const uint64_t *pos,
               pyri_buf *room, pyri_node *out)
{
    int ndim = t->grid->ndim;
    uint8_t key[PYRI_MAX_KEY];
    pyri_box domain, region;
    pyri_frag frag;
    pyri_summary unused;
    pyri_leaf leaf = {.frags = &frag, .n = 1};
    pyri_grid_domain(t->grid, 0, pos, &domain);
    if (!pyri_flat_region(f, ndim, &domain, &region))
        return pyri_fail(PYR_ECORRUPT, "a flat child is outside its shape");
    fragment(f, ndim, t->type, t->fill, &region, &frag, &unused);
    pyri_flat_about(f, ndim, t->type, t->fill, &region, &leaf.about);
    size_t size = pyri_node_key(pyri_lineage_owner(t->lineage, f->label),
                                f->label, 0, ndim, pos, key);
    pyri_buf_reset(room);
    pyri_leaf_encode((pyri_bytes){key, size}, &leaf, t->type, ndim, &domain,
                     room);
    int err = pyri_buf_check(room, "a chunk of one value");
    return err < 0 ? err
                   : pyri_node_open((pyri_bytes){key, size},
                                    (pyri_bytes){room->data, room->size}, out);
}

/* --- what sheets cost ---------------------------------------------------- */

typedef struct counting {
    const pyri_grid *g;
    const pyri_sheet *sheets;
    uint32_t *list; /* indices of sheets, as a stack */
    size_t n, room;
    uint64_t count, limit;
} counting;

/* Push those of the list that touch the box; *whole if one covers it. */
static int
narrow(counting *c, size_t first, size_t n, const pyri_box *box, bool *whole)
{
    *whole = false;
    for (size_t i = 0; i < n; i++) {
        uint32_t k = c->list[first + i];
        const pyri_box *sheet = &c->sheets[k].box;
        if (!pyri_box_overlaps(c->g->ndim, sheet, box))
            continue;
        *whole |= pyri_box_contains(c->g->ndim, sheet, box);
        if (!pyri_room(&c->list, &c->room, c->n + 1, sizeof *c->list))
            return pyri_fail_nomem("the constant regions of a version");
        c->list[c->n++] = k;
    }
    return 0;
}

static int
count_node(counting *c, int level, const uint64_t *pos, size_t first, size_t n)
{
    const pyri_grid *g = c->g;
    int err = 0, bits = g->norder - (level - 1) * PYRI_FAN_BITS;
    unsigned slots = 1u << (bits < PYRI_FAN_BITS ? bits : PYRI_FAN_BITS);
    c->count++;
    for (unsigned slot = 0; level > 1 && slot < slots && err == 0; slot++) {
        uint64_t child[PYR_MAX_DIMS];
        pyri_box shown;
        bool whole;
        size_t here = c->n;
        pyri_grid_child(g, level, pos, slot, child);
        if (c->count > c->limit ||
            !pyri_grid_shown(g, level - 1, child, &shown))
            continue;
        err = narrow(c, first, n, &shown, &whole);
        if (err == 0 && !whole && c->n > here)
            err = count_node(c, level - 1, child, here, c->n - here);
        c->n = here;
    }
    return err;
}

int
pyri_sheets_nodes(const pyri_grid *g, const pyri_sheet *sheets, size_t n,
                  uint64_t limit, uint64_t *out)
{
    counting c = {.g = g, .sheets = sheets, .limit = limit};
    uint64_t pos[PYR_MAX_DIMS] = {0};
    *out = 0;
    if (n == 0)
        return 0;
    if (n > UINT32_MAX || !pyri_room(&c.list, &c.room, n, sizeof *c.list))
        return pyri_fail_nomem("the constant regions of a version");
    for (size_t i = 0; i < n; i++)
        c.list[c.n++] = (uint32_t)i;
    int err = count_node(&c, g->levels, pos, 0, n);
    *out = c.count;
    free(c.list);
    return err;
}
