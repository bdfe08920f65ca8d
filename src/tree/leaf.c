/*
 * tree/leaf.c - leaves: the fragments of a chunk, and their bytes.
 *
 * After the head that all nodes have (tree/node.c), whose digest is here the
 * XXH3 (128 bits) of the digest of the leaf before it and of the boxes and
 * digests of the fragments that this version wrote:
 *
 *  varint  label of `prev`; 0: none
 *  varint  number of fragments, then each, newest first:
 *       1  kind: 0 same, 1 plain, 2 pressed; +128 masked, +64 fold
 *       8  label of the version whose cells it holds
 *   w + w  along each axis: first cell, from the corner of the chunk; size. w
 *          is the least of 2, 4, 8 that all extents of the chunk fit in
 *      16  digest of the cells
 *          of a same one: 8 bits of the cell
 *          of others: 16 name of the blob, 8 bytes of payload, 8 XXH3 of the
 *          blob's head
 *  and, if the head says so (in the two bytes at 14), in its last bytes what is
 *  known of the regions of the chunk (chunk/regions.c), of those cells that the
 *  summary is of
 *
 * All of them are of one size, or of two, so that those which a reader has no
 * use for are stepped over.
 */
#include "tree/tree.h"

#include "base/bytes.h"
#include "tree/node_layout.h"

#include <stdlib.h>

void
pyri_leaf_fini(pyri_leaf *l)
{
    free(l->frags);
    pyri_buf_fini(&l->below);
    l->frags = NULL;
    l->n = 0;
    l->nbelow = 0;
}

pyri_digest
pyri_leaf_digest(int ndim, const pyri_frag *f, pyri_digest before)
{
    uint8_t text[32 + 16 * PYR_MAX_DIMS], *at = text + 16;
    pyri_store64(text, before.lo);
    pyri_store64(text + 8, before.hi);
    for (int d = 0; d < ndim; d++, at += 16) {
        pyri_store64(at, f->box.lo[d]);
        pyri_store64(at + 8, f->box.hi[d]);
    }
    pyri_store64(at, f->cells.lo);
    pyri_store64(at + 8, f->cells.hi);
    return pyri_hash128(text, (size_t)(at + 16 - text));
}

void
pyri_leaf_encode(pyri_bytes key, const pyri_leaf *l, pyr_type type, int ndim,
                 const pyri_box *chunk, pyri_buf *out)
{
    uint8_t regions[PYRI_REGIONS_BYTES];
    size_t start = out->size;
    size_t tail = l->about.known
                      ? pyri_regions_encode(&l->regions, type, regions)
                      : 0;
    if (!pyri_node_begin(&l->about, type, 0, 0, NODE_HEAD, out))
        return;
    pyri_buf_varint(out, l->prev);
    pyri_buf_varint(out, (uint64_t)l->n + l->nbelow);
    for (int i = 0; i < l->n; i++)
        pyri_frag_encode(&l->frags[i], ndim, chunk, out);
    pyri_buf_add(out, l->below.data, l->below.size);
    pyri_buf_add(out, regions, tail);
    if (out->failed)
        return;
    pyri_store16(out->data + start + NODE_TAIL, (uint16_t)tail);
    pyri_node_seal(key, out->data + start, out->size - start);
}

int
pyri_leaf_regions(const pyri_node *node, pyr_type type, int ndim,
                  const pyri_box *chunk, pyri_regions *out)
{
    size_t tail = pyri_load16(node->bytes + NODE_TAIL);
    *out = (pyri_regions){0};
    if (tail == 0)
        return 0;
    if (tail > node->size - NODE_HEAD)
        return pyri_fail(PYR_ECORRUPT, "a leaf of the tree is damaged");
    return pyri_regions_decode(out, type, pyri_regions_of(ndim, chunk),
                               (pyri_bytes){node->bytes + node->size - tail,
                                            tail});
}

int
pyri_leaf_begin(const pyri_node *node, int ndim, const pyri_box *chunk,
                pyri_leaf_walk *w)
{
    if (node->level != 0)
        return pyri_fail(PYR_ECORRUPT, "a node of the tree is no leaf");
    size_t tail = pyri_load16(node->bytes + NODE_TAIL);
    if (tail > node->size - NODE_HEAD)
        return pyri_fail(PYR_ECORRUPT, "a leaf of the tree is damaged");
    w->at = pyri_cursor_of(node->bytes + NODE_HEAD,
                           node->size - NODE_HEAD - tail);
    w->ndim = ndim;
    for (int d = 0; d < ndim; d++) {
        w->chunk.lo[d] = chunk->lo[d];
        w->chunk.hi[d] = chunk->hi[d];
    }
    w->prev = pyri_cursor_varint(&w->at);
    w->left = pyri_cursor_varint(&w->at);
    if (w->at.failed || w->left > node->size)
        return pyri_fail(PYR_ECORRUPT, "a leaf of the tree is damaged");
    return 0;
}

void
pyri_leaf_skip_apart(pyri_leaf_walk *w, const pyri_frag_window *box,
                     uint64_t newer)
{
    w->left -= pyri_frag_skip_apart(&w->at, box, newer, w->left);
}

int
pyri_leaf_peek(pyri_leaf_walk *w, pyri_frag *frag)
{
    w->left--;
    return pyri_frag_decode_box(&w->at, w->ndim, &w->chunk, frag);
}

int
pyri_leaf_take(pyri_leaf_walk *w, pyri_frag *frag)
{
    return pyri_frag_decode_rest(&w->at, w->ndim, frag);
}

int
pyri_leaf_next(pyri_leaf_walk *w, pyri_frag *frag)
{
    int err = pyri_leaf_peek(w, frag);
    return err < 0 ? err : pyri_leaf_take(w, frag);
}

int
pyri_leaf_skip(pyri_leaf_walk *w, const pyri_frag *frag)
{
    return pyri_frag_skip_rest(&w->at, frag);
}

/* --- a leaf on another one ----------------------------------------------- */

enum { COVERS = 8 };

/* Boxes all of whose cells are above what comes next. */
typedef struct covers {
    pyri_box boxes[COVERS];
    int n, ndim;
} covers;

static bool
add_cover(covers *c, const pyri_frag *f)
{
    if (f->masked)
        return true;
    if (c->n == COVERS)
        return false;
    for (int d = 0; d < c->ndim; d++) {
        c->boxes[c->n].lo[d] = f->box.lo[d];
        c->boxes[c->n].hi[d] = f->box.hi[d];
    }
    c->n++;
    return true;
}

static bool
is_covered(const covers *c, const pyri_box *box)
{
    for (int i = 0; i < c->n; i++)
        if (pyri_box_contains(c->ndim, &c->boxes[i], box))
            return true;
    return false;
}

/* Lists are without what one of their fragments hides, but for what was put in
 * later: folds, and, seldom and harmlessly, what reclaiming wrote anew. */
static int
lay(pyri_leaf *l, pyri_leaf_walk *w, covers *above, bool *done)
{
    const uint8_t *from = w->at.at;
    int err = 0;
    while (err == 0 && w->left && *done) {
        pyri_frag f;
        const uint8_t *start = w->at.at;
        if ((err = pyri_leaf_peek(w, &f)) < 0 ||
            (err = pyri_leaf_skip(w, &f)) < 0)
            break;
        if (is_covered(above, &f.box)) {
            pyri_buf_add(&l->below, from, (size_t)(start - from));
            from = w->at.at;
            continue;
        }
        l->nbelow++;
        *done = !f.fold || add_cover(above, &f);
    }
    pyri_buf_add(&l->below, from, (size_t)(w->at.at - from));
    return err < 0 ? err : pyri_buf_check(&l->below, "a leaf of the tree");
}

int
pyri_leaf_lay(pyri_leaf *l, const pyri_node *on, int ndim,
              const pyri_box *chunk, bool *done)
{
    covers above = {.ndim = ndim};
    pyri_leaf_walk w;
    int err = pyri_leaf_begin(on, ndim, chunk, &w);
    *done = err == 0 && !w.prev;
    for (int i = 0; i < l->n && *done; i++)
        *done = add_cover(&above, &l->frags[i]);
    if (*done)
        err = lay(l, &w, &above, done);
    *done = *done && err == 0;
    if (!*done) {
        pyri_buf_fini(&l->below);
        l->nbelow = 0;
    }
    return err;
}
