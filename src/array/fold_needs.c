/*
 * array/fold_needs.c - one chunk: what later leaves show of K's fragments
 * that K does not.
 *
 * A leaf is laid on the one before, so what K hides, later ones hide, too; but
 * not if a fold does it that they have not got. Two writers that fold the same
 * chain leave a fold of their own each, and when fragments are folded behind
 * their backs (fold_leaves.c), the new one goes into leaves that name one of
 * these:
 *
 *     K      [ own | 5 and F as one | G ]    G shows nothing here
 *     next   [ own that hides 5 | G ]        but all but that here
 *
 * Cells that they show count as if K showed them: the value is the same, or K
 * would not be right. Boxes tell most of the time that there are none.
 */
#include "array/fold_plan.h"

#include "base/room.h"
#include "base/sys.h"

#include <stdlib.h>

/* --- by boxes ------------------------------------------------------------ */

static int
find_link(const pyri_chain *c, int ndim, const pyri_frag *f)
{
    for (int i = 0; i < c->n; i++)
        if (pyri_same_frag(ndim, &c->links[i].frag, f))
            return i;
    return -1;
}

/* Does one of the first n links hide the box? */
static bool
hides(const pyri_chain *c, int n, int ndim, const pyri_box *box)
{
    for (int i = 0; i < n; i++)
        if (!c->links[i].frag.masked &&
            pyri_box_contains(ndim, &c->links[i].shown, box))
            return true;
    return false;
}

/* May the carrier show more of link `i` of K than K does? `at` tells where it
 * has the links of K; -1: nowhere. */
static bool
may_show_more(const pyri_planning *x, const pyri_chain *c, int i,
              const int *at)
{
    int ndim = x->a->schema.ndim;
    const pyri_link *links = x->chain.links;
    pyri_box common;
    for (int k = 0; k < i; k++)
        if ((at[k] < 0 || at[k] > at[i]) &&
            pyri_box_intersect(ndim, &links[k].shown, &links[i].shown,
                               &common) &&
            !hides(c, at[i], ndim, &common))
            return true;
    return false;
}

static bool
is_doubtful(const pyri_planning *x, const pyri_chain *c, int *at)
{
    for (int i = 0; i < x->chain.n; i++) {
        at[i] = find_link(c, x->a->schema.ndim, &x->chain.links[i].frag);
        if (x->wanted[i] && at[i] >= 0 && may_show_more(x, c, i, at))
            return true;
    }
    return false;
}

/* --- by cells ------------------------------------------------------------ */

/* What the carrier shows of wanted links counts as if K showed it. */
static int
count_carrier(pyri_planning *x, const pyri_chain *c, int *link, bool *left,
              bool *any)
{
    pyri_shows theirs;
    bool more = false;
    for (int i = 0; i < c->n; i++) {
        link[i] = find_link(&x->chain, x->a->schema.ndim, &c->links[i].frag);
        if (link[i] >= 0 && !x->wanted[link[i]])
            link[i] = -1;
    }
    int err = pyri_shows_find(&theirs, x->a, x->t->snap.reader, c,
                              &x->shows.box);
    if (err < 0)
        return err;
    err = pyri_shows_also(&x->shows, &theirs, link, left, &more);
    *any |= more;
    pyri_shows_fini(&theirs);
    return err;
}

/* --- all carriers -------------------------------------------------------- */

typedef struct room {
    int *numbers; /* one for each link of K and of a carrier */
    size_t n;
    bool *left;   /* links of K */
} room;

static int
look_at(pyri_planning *x, const pyri_carrier *carrier, room *r, bool *any)
{
    pyri_opened o;
    pyri_chain c = {0};
    int err = pyri_carrier_open(x, carrier, &o);
    if (err < 0)
        return err;
    err = pyri_chain_load(&c, &o.s.tree, x->pos, &o.node, NULL, 0);
    if (err == 0 && !pyri_room(&r->numbers, &r->n, (size_t)(x->chain.n + c.n),
                               sizeof *r->numbers))
        err = pyri_fail_nomem("the fragments of a chunk");
    if (err == 0 && is_doubtful(x, &c, r->numbers))
        err = count_carrier(x, &c, r->numbers, r->left, any);
    pyri_chain_fini(&c);
    pyri_carrier_close(&o);
    return err;
}

int
pyri_fold_needs(pyri_planning *x, bool *any)
{
    const pyri_fold_plan *p = x->p;
    room r = {.left = pyri_sys_calloc((size_t)x->chain.n + 1, sizeof *r.left)};
    int err = r.left ? 0 : pyri_fail_nomem("the fragments of a chunk");
    *any = false;
    for (size_t i = 0; i < p->ncarriers && err == 0; i++)
        err = look_at(x, &p->carriers[i], &r, any);
    for (int i = 0; i < x->chain.n && err == 0; i++)
        x->wanted[i] = x->wanted[i] && !r.left[i];
    free(r.numbers);
    free(r.left);
    return err;
}
