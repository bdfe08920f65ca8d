/*
 * array/verify_digest.c - is the digest of a leaf that of what its version
 * wrote, on top of what was there before?
 *
 * A leaf need not keep fragments that cannot be seen, so what a version wrote can be
 * told from it for sure only if that was one box. (Digests of inner nodes are
 * always worked out again.)
 */
#include "array/verifier.h"

#include "base/bytes.h"

#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

void
pyri_verify_told(pyri_view *view, const pyri_record *record)
{
    const pyri_claim *c = &record->claim;
    view->one_box = record->kind == PYR_KIND_WRITE && c->n == 1 &&
                    pyri_run_is_box(c->ndim, &c->runs[0]);
}

void
pyri_verify_untold(pyri_view *view)
{
    if (view->before)
        pyri_snapshot_close(view->before);
    free(view->before);
    view->before = NULL;
}

/* The snapshot just before; NULL if it has gone. */
static int
open_before(pyri_verifier *v, pyri_view *view)
{
    if (view->before || !view->one_box)
        return 0;
    view->before = pyri_sys_calloc(1, sizeof *view->before);
    if (!view->before)
        return pyri_fail_nomem("a snapshot");
    int err = pyri_snapshot_open_label(view->kin->array, v->r,
                                       view->snap.label - 1, view->before);
    if (err == 0)
        return 0;
    free(view->before);
    view->before = NULL;
    view->one_box = false;
    return pyri_is_harm(err) ? 0 : err;
}

/* What was there before, unless the fragment hides all of it. */
static int
digest_below(pyri_verifier *v, pyri_view *view, const pyri_frag *f,
             const uint64_t *pos, pyri_about *below)
{
    pyri_box shown;
    pyri_node node;
    bool found;
    *below = (pyri_about){.digested = true};
    if (pyri_grid_shown(&view->snap.grid, 0, pos, &shown) && !f->masked &&
        pyri_box_contains(view->snap.grid.ndim, &f->box, &shown))
        return 0;
    int err = open_before(v, view);
    if (err < 0 || !view->before)
        return err;
    pyri_flat flat;
    pyri_box domain, region;
    const pyri_tree *tree = &view->before->tree;
    err = pyri_tree_leaf_at(tree, pos, &node, &flat, &found);
    if (err == 0 && found)
        return pyri_node_about(&node, tree->type, below);
    if (err < 0 || !flat.label)
        return err;
    pyri_grid_domain(tree->grid, 0, pos, &domain);
    if (pyri_flat_region(&flat, tree->grid->ndim, &domain, &region))
        pyri_flat_about(&flat, tree->grid->ndim, tree->type, tree->fill,
                        &region, below);
    return 0;
}

int
pyri_verify_leaf_digest(pyri_verifier *v, pyri_view *view,
                        const pyri_node *node, const uint64_t *pos,
                        bool *wrong)
{
    const pyri_grid *g = &view->snap.grid;
    pyri_leaf_walk leaf;
    pyri_about own, below;
    pyri_box domain;
    pyri_frag f;
    *wrong = false;
    if (!view->one_box || node->label != view->snap.label)
        return 0;
    pyri_grid_domain(g, 0, pos, &domain);
    if (pyri_leaf_begin(node, g->ndim, &domain, &leaf) < 0 || leaf.prev ||
        leaf.left == 0 || pyri_leaf_next(&leaf, &f) < 0 ||
        pyri_node_about(node, view->snap.tree.type, &own) < 0 ||
        f.version != node->label || f.fold)
        return 0; /* told elsewhere, or nothing to tell */
    int err = digest_below(v, view, &f, pos, &below);
    if (err < 0 || !view->one_box)
        return pyri_is_harm(err) ? 0 : err;
    if (!below.digested) { /* nothing is known of what was there */
        *wrong = own.digested;
        return 0;
    }
    /* one that lay on `prev` has none, also after it was folded */
    pyri_digest want = pyri_leaf_digest(g->ndim, &f, below.digest);
    *wrong = own.digested ? want.lo != own.digest.lo ||
                                want.hi != own.digest.hi
                          : view->kin->folds == 0;
    return 0;
}
