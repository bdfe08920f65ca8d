/*
 * tree/derive.c - what a node says of itself against what it says of its
 * children.
 *
 * The same steps as in build.c, in the same order, so that even sums of reals
 * come out alike.
 */
#include "tree/tree.h"

#include "base/bytes.h"
#include "tree/node_layout.h"

#include <string.h>

static void
add_fill(const pyri_tree *t, const pyri_box *domain, pyri_summary *s)
{
    pyri_box inside, shape = {.lo = {0}};
    memcpy(shape.hi, t->form->shape, sizeof t->form->shape);
    if (pyri_box_intersect(t->form->ndim, domain, &shape, &inside))
        pyri_summary_add_same(s, t->type, t->fill, t->fill,
                              pyri_box_cells(t->form->ndim, &inside));
}

static void
add_entry(const pyri_tree *t, const pyri_box *domain, const pyri_entry *e,
          uint8_t *text, pyri_about *out)
{
    pyri_summary child = e->about.summary;
    text[0] = (uint8_t)e->slot;
    pyri_store64(text + 1, e->about.digested ? e->about.digest.lo : 0);
    pyri_store64(text + 9, e->about.digested ? e->about.digest.hi : 0);
    out->digested &= e->about.digested;
    out->known = out->known && e->about.known &&
                 pyri_summary_now(t->form, t->type, t->fill, e->about.label,
                                  domain, &child);
    if (out->known)
        pyri_summary_merge(&out->summary, t->type, &child);
}

/* A flat child is nothing but its entry: all of that follows from the rest. */
static int
check_flat(const pyri_tree *t, const pyri_box *domain, const pyri_entry *e)
{
    uint8_t a[PYRI_SUMMARY_BYTES], b[PYRI_SUMMARY_BYTES];
    pyri_flat f = {.label = e->about.label, .bits = e->about.summary.min};
    pyri_box region;
    pyri_about want;
    memcpy(f.shape, e->shape, sizeof f.shape);
    if (!pyri_flat_region(&f, t->grid->ndim, domain, &region))
        return pyri_fail(PYR_ECORRUPT, "a flat child is outside its shape");
    pyri_flat_about(&f, t->grid->ndim, t->type, t->fill, &region, &want);
    pyri_summary_encode(&e->about.summary, t->type, a);
    pyri_summary_encode(&want.summary, t->type, b);
    if (memcmp(a, b, sizeof a) != 0)
        return pyri_fail(PYR_ECORRUPT,
                         "the summary of a flat child is not that of its value");
    if (memcmp(&e->about.digest, &want.digest, sizeof want.digest) != 0)
        return pyri_fail(PYR_ECORRUPT,
                         "the digest of a flat child is not that of its value");
    return 0;
}

int
pyri_node_derive(const pyri_tree *t, const pyri_node *node,
                 const uint64_t *pos, pyri_about *out)
{
    const pyri_grid *g = t->grid;
    int bits = g->norder - (node->level - 1) * PYRI_FAN_BITS;
    unsigned slots = 1u << (bits < 0               ? 0
                            : bits < PYRI_FAN_BITS ? bits
                                                   : PYRI_FAN_BITS);
    uint8_t text[PYRI_FAN * 17];
    size_t size = 0;
    *out = (pyri_about){.label = node->label, .known = true, .digested = true};
    pyri_summary_init(&out->summary);
    if (node->slots >> slots)
        return pyri_fail(PYR_ECORRUPT, "a node has children past its domain");
    for (unsigned slot = 0; slot < slots; slot++) {
        uint64_t child[PYR_MAX_DIMS];
        pyri_entry e = {.slot = slot};
        pyri_box domain;
        pyri_grid_child(g, node->level, pos, slot, child);
        pyri_grid_domain(g, node->level - 1, child, &domain);
        if (!(node->slots >> slot & 1)) {
            add_fill(t, &domain, &out->summary);
            continue;
        }
        int err = pyri_node_entry(node, slot, t->type, &e);
        if (err < 0)
            return err;
        if (e.about.label > node->label)
            return pyri_fail(PYR_ECORRUPT, "a node has a newer child");
        if (e.flat && (err = check_flat(t, &domain, &e)) < 0)
            return err;
        add_entry(t, &domain, &e, text + size, out);
        size += 17;
    }
    out->digest = pyri_hash128(text, size);
    return 0;
}

int
pyri_node_amend(pyri_bytes key, uint8_t *bytes, size_t size, pyr_type type,
                int slot, const pyri_summary *s)
{
    pyri_node node;
    int err = pyri_node_open(key, (pyri_bytes){bytes, size}, &node);
    if (err < 0)
        return err;
    uint8_t *bits = bytes + 11, *at = bytes + 40;
    if (slot >= 0) {
        unsigned before = node.slots & ((1u << slot) - 1);
        bits = bytes + NODE_HEAD +
               NODE_ENTRY * (size_t)__builtin_popcount(before);
        at = bits + 32;
    }
    if (node.level == 0)
        pyri_store16(bytes + NODE_TAIL, 0); /* of what was wrong */
    *bits |= 1;
    pyri_summary_encode(s, type, at);
    pyri_node_seal(key, bytes, size);
    return 0;
}
