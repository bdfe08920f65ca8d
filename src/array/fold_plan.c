/*
 * array/fold_plan.c - one chunk: what of it to fold, and the leaves to write.
 *
 * Snapshot K is the first that is left behind a gap. Its leaf names fragments
 * of versions in the gap, which those that have gone showed whole; K shows a
 * part of each, and those after K no more than that (nearly: fold_needs.c). So
 * what K was the first to see is replaced in all leaves that name it:
 *
 *     before    leaf of K   [ own | 6 | 5 | 4 ] and 3, which others need, too
 *     after                 [ fold            ] and 3
 *
 * A new fragment holds just the cells that K shows of those that it replaces.
 * It lies on top of all others of K's leaf: none of these shows such a cell. If
 * it takes the place of one fragment, it keeps its version and its place.
 *
 * On demand (`spend`) a long chain becomes a short one in the same way: the
 * fold is K's content of a box, and stands for every fragment in that box, also
 * for those that older snapshots show. These keep them, in their own leaves.
 *
 * Who gains: a fragment of which a SHARE is hidden, and small ones, each of
 * which costs OVERHEAD beside its cells. It is done if no more than SHARE bytes
 * are written for each that goes.
 */
#include "array/fold_plan.h"

#include "base/checked.h"
#include "base/room.h"
#include "base/scratch.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

enum {
    SHARE = 16,
    OVERHEAD = 128,    /* of a fragment: entries in a leaf and of the blob */
    SMALL = 2000,      /* bytes of a blob; larger ones take whole pages */
    TINY_SAME = 64,    /* bytes of cells of one value that may be spelt out */
    LARGE = 64 << 20,  /* bytes of a chunk that is left alone */
    LEAST_GAIN = 256,  /* bytes */
    SOME_LEAVES = 16,  /* are looked at in any case, */
    MANY_LEAVES = 256  /* and on demand */
};

/* --- costs --------------------------------------------------------------- */

/* What a blob with that payload takes on the disk, about. */
static uint64_t
disk_of(uint64_t payload)
{
    uint64_t size = 64 + 8 * (payload / PYRI_BLOCK + 1) + payload;
    if (size <= SMALL)
        return size + OVERHEAD;
    if (payload >= PYRI_LARGE) /* the head is padded */
        size += PYRI_PAGE;
    return (size + PYRI_PAGE - 1) / PYRI_PAGE * PYRI_PAGE + OVERHEAD;
}

static uint64_t
disk_of_link(const pyri_planning *x, int i)
{
    const pyri_frag *f = &x->chain.links[i].frag;
    (void)x;
    return f->kind == PYRI_FRAG_SAME ? OVERHEAD / 2 : disk_of(f->stored);
}

static bool
is_small(const pyri_planning *x, int i)
{
    const pyri_frag *f = &x->chain.links[i].frag;
    size_t cell = pyri_type_size(x->a->schema.type);
    if (f->kind == PYRI_FRAG_SAME)
        return !f->masked &&
               pyri_box_cells(x->a->schema.ndim, &f->box) <= TINY_SAME / cell;
    return disk_of(f->stored) <= SMALL;
}

static bool
pays(uint64_t gain, uint64_t cost)
{
    return gain >= LEAST_GAIN && gain >= cost / SHARE;
}

/* --- which fragments ----------------------------------------------------- */

/* At least so many cells of a link would have to be hidden. */
static bool
may_be_hidden(const pyri_planning *x, int i)
{
    int ndim = x->a->schema.ndim;
    const pyri_link *link = &x->chain.links[i];
    uint64_t cells = pyri_box_cells(ndim, &link->frag.box);
    uint64_t hidden = cells - pyri_box_cells(ndim, &link->shown);
    for (int k = 0; k < i && hidden < cells; k++) {
        pyri_box common;
        if (pyri_box_intersect(ndim, &x->chain.links[k].shown, &link->shown,
                               &common))
            hidden += pyri_box_cells(ndim, &common);
    }
    return hidden >= cells / SHARE && hidden > 0;
}

/* A first choice, by boxes alone. */
static bool
choose_by_box(pyri_planning *x, pyri_box *bounds)
{
    int ndim = x->a->schema.ndim, small = 0, hidden = 0;
    *bounds = (pyri_box){.lo = {0}};
    for (int i = 0; i < x->chain.n; i++) {
        const pyri_link *link = &x->chain.links[i];
        if (!x->first[i])
            continue;
        bool same = link->frag.kind == PYRI_FRAG_SAME;
        bool tiny = is_small(x, i);
        bool over = may_be_hidden(x, i);
        if (!tiny && (!over || (same && link->frag.masked)))
            continue;
        x->wanted[i] = true;
        small += tiny;
        hidden += over;
        if (!pyri_box_empty(ndim, &link->shown))
            pyri_box_cover(ndim, bounds, &link->shown);
    }
    return hidden > 0 || small > 1;
}

/* Now that it is known what they show. */
static void
choose_by_cells(pyri_planning *x)
{
    for (int i = 0; i < x->chain.n; i++) {
        const pyri_frag *f = &x->chain.links[i].frag;
        const pyri_shown *s = &x->shows.links[i];
        if (!x->wanted[i] || s->cells == 0)
            continue;
        if (f->kind == PYRI_FRAG_SAME)
            x->wanted[i] = is_small(x, i);
        else
            x->wanted[i] = is_small(x, i) ||
                           s->held - s->cells >= s->held / SHARE + 1;
    }
}

/* --- groups -------------------------------------------------------------- */

/* Bytes per cell, as the fragments of the group are pressed, in 1/256. */
static uint64_t
density(const pyri_planning *x, const pyri_fold_group *g)
{
    uint64_t stored = 0, cells = 0, cell = pyri_type_size(x->a->schema.type);
    for (int i = 0; i < x->chain.n; i++) {
        const pyri_frag *f = &x->chain.links[i].frag;
        if (!g->of[i] || f->kind != PYRI_FRAG_PRESSED)
            continue;
        stored += f->stored;
        cells += x->shows.links[i].held;
    }
    return cells == 0 ? cell * 256 : pyri_min64(cell, stored / cells + 1) * 256;
}

/* What a group costs now, and what it would cost. */
static void
weigh(const pyri_planning *x, pyri_fold_group *g, uint64_t *now, uint64_t *then)
{
    int ndim = x->a->schema.ndim;
    *now = 0;
    g->n = 0;
    g->cells = 0;
    for (int i = 0; i < x->chain.n; i++) {
        const pyri_shown *s = &x->shows.links[i];
        if (!g->of[i])
            continue;
        *now += disk_of_link(x, i);
        g->n++;
        if (s->cells == 0)
            continue;
        if (g->cells == 0)
            g->bounds = s->bounds;
        else
            pyri_box_cover(ndim, &g->bounds, &s->bounds);
        g->cells += s->cells;
    }
    *then = 0;
    if (g->cells == 0)
        return;
    uint64_t all = pyri_box_cells(ndim, &g->bounds), each = density(x, g);
    uint64_t plain = disk_of(all * each / 256);
    uint64_t masked = disk_of(g->cells * each / 256 + pyri_mask_size(all));
    g->plain = all <= g->cells || (g->n > 1 && plain <= masked + masked / 32);
    *then = g->plain ? plain : masked;
}

static pyri_fold_group *
new_group(pyri_planning *x)
{
    pyri_fold_group *g = &x->groups[x->ngroups];
    *g = (pyri_fold_group){
        .of = pyri_sys_calloc((size_t)x->chain.n + 1, sizeof *g->of)};
    x->ngroups += g->of != NULL;
    return g->of ? g : NULL;
}

static void
drop_group(pyri_planning *x)
{
    free(x->groups[--x->ngroups].of);
}

static void
drop_groups(pyri_planning *x)
{
    while (x->ngroups)
        drop_group(x);
    free(x->groups);
    x->groups = NULL;
    x->gain = x->cost = 0;
}

/* All that may be folded as one; or else each by itself. */
static int
make_groups(pyri_planning *x)
{
    uint64_t now, then;
    x->groups = pyri_sys_calloc((size_t)x->chain.n + 2, sizeof *x->groups);
    pyri_fold_group *g = x->groups ? new_group(x) : NULL;
    if (!g)
        return pyri_fail_nomem("the fragments of a chunk");
    memcpy(g->of, x->wanted, (size_t)x->chain.n * sizeof *g->of);
    weigh(x, g, &now, &then);
    if (now > then && pays(now - then, then)) {
        x->gain = now - then;
        x->cost = then;
        return 0;
    }
    drop_group(x);
    for (int i = 0; i < x->chain.n; i++) {
        if (!x->wanted[i])
            continue;
        if (!(g = new_group(x)))
            return pyri_fail_nomem("the fragments of a chunk");
        g->of[i] = true;
        weigh(x, g, &now, &then);
        if (now > then && now - then >= then / SHARE) {
            x->gain += now - then;
            x->cost += then;
        } else {
            drop_group(x);
        }
    }
    return 0;
}

/* --- on demand ----------------------------------------------------------- */

static int
choose_whole(const pyri_planning *x, pyri_box *bounds, bool *any)
{
    const pyri_form *form = x->t->snap.tree.form;
    pyri_chain c = {0};
    int err = 0;
    for (int i = 0; i < x->chain.n && err == 0; i++)
        err = pyri_chain_add(&c, form, &x->chain.links[i].frag);
    if (err == 0)
        err = pyri_fold_choose(x->a, form, x->spend, &c, bounds, any);
    pyri_chain_fini(&c);
    return err;
}

/* All that the box hides becomes one group. Who comes after K may hold some of
 * it, too, whoever saw it first. */
static int
make_whole(pyri_planning *x, const pyri_box *bounds)
{
    int ndim = x->a->schema.ndim, err = 0;
    x->groups = pyri_sys_calloc(2, sizeof *x->groups);
    pyri_fold_group *g = x->groups ? new_group(x) : NULL;
    if (!g)
        return pyri_fail_nomem("the fragments of a chunk");
    g->bounds = *bounds;
    g->cells = pyri_box_cells(ndim, bounds);
    g->plain = true;
    for (int i = 0; i < x->chain.n && err == 0; i++) {
        const pyri_link *link = &x->chain.links[i];
        g->of[i] = pyri_box_empty(ndim, &link->shown) ||
                   pyri_box_contains(ndim, bounds, &link->shown);
        g->n += g->of[i];
        if (g->of[i] && !x->first[i])
            err = pyri_held_note(&x->p->first, &link->frag, 1);
    }
    return err;
}

/* --- new fragments ------------------------------------------------------- */

static void
squeeze(uint8_t *cells, size_t cell, const uint8_t *mask, uint64_t n)
{
    uint8_t *to = cells;
    for (uint64_t i = 0; i < n; i++)
        if (mask[i / 8] >> (i % 8) & 1) {
            memmove(to, cells + i * cell, cell);
            to += cell;
        }
}

static int
pack(pyri_planning *x, pyri_fold_group *g, uint8_t *cells, const uint8_t *mask)
{
    const pyri_schema *s = &x->a->schema;
    size_t cell = pyri_type_size(s->type);
    uint64_t n = pyri_box_cells(s->ndim, &g->bounds);
    pyri_mem mem = pyri_mem_dense(s->ndim, cell, &g->bounds, cells);
    pyri_summary unused;
    pyri_summary_init(&unused);
    if (mask)
        squeeze(cells, cell, mask, n);
    bool alike = !mask &&
                 memcmp(cells, cells + cell, (size_t)(n - 1) * cell) == 0;
    return pyri_paint_frag(&x->p->draft, &x->packer, &g->bounds, mem, mask,
                           mask ? g->cells : 0, &g->frag,
                           alike ? &unused : NULL);
}

static int
make_frag(pyri_planning *x, pyri_fold_group *g)
{
    const pyri_schema *s = &x->a->schema;
    size_t cell = pyri_type_size(s->type);
    uint64_t n = pyri_box_cells(s->ndim, &g->bounds);
    pyri_fetcher f = {.array = x->a, .reader = x->t->snap.reader};
    uint8_t *mask = NULL, *cells = pyri_scratch_take((size_t)n * cell);
    int err = cells ? 0 : pyri_fail_nomem("a chunk to fold");
    if (err == 0 && !g->plain) {
        mask = pyri_sys_calloc(1, (size_t)pyri_mask_size(n));
        if (!mask)
            err = pyri_fail_nomem("a chunk to fold");
        else
            g->cells = pyri_shows_mask(&x->shows, &g->bounds, g->of, mask);
    }
    pyri_fetch job = {.links = x->chain.links, .n = x->chain.n,
                      .box = g->bounds,
                      .to = pyri_mem_dense(s->ndim, cell, &g->bounds, cells)};
    if (err == 0)
        err = pyri_fetch_run(&f, &job, 1);
    if (err == 0)
        err = pack(x, g, cells, mask);
    if (err == 0)
        pyri_stash_mark(&x->p->draft, &g->frag, 1);
    if (err == 0 && g->frag.kind != PYRI_FRAG_SAME)
        x->p->put += pyri_frag_blob_size(&g->frag);
    x->p->fragments += (uint64_t)g->n;
    g->frag.version = x->leaf.label;
    g->frag.fold = true;
    for (int i = 0; g->n == 1 && i < x->chain.n; i++)
        if (g->of[i]) { /* the same one, without what nobody sees */
            g->frag.version = x->chain.links[i].frag.version;
            g->frag.fold = x->chain.links[i].frag.fold;
        }
    pyri_fetcher_fini(&f);
    pyri_scratch_give(cells);
    free(mask);
    return err;
}

/* --- the plan ------------------------------------------------------------ */

static int
find_carriers(pyri_planning *x)
{
    pyri_fold_plan *p = x->p;
    size_t limit = x->spend ? MANY_LEAVES
                            : SOME_LEAVES + (size_t)(x->gain / OVERHEAD);
    pyri_carriers c = {.family = x->family,
                       .reader = x->t->snap.reader,
                       .from = p->from,
                       .pos = x->pos,
                       .sought = &p->first,
                       .limit = limit};
    int err = pyri_carriers_find(&c);
    if (err == 0 && !c.dear) {
        p->carriers = c.list;
        p->ncarriers = c.n;
        c.list = NULL;
    }
    pyri_carriers_fini(&c);
    return err;
}

/* What K holds, and no one that is not after it. */
static int
find_first(pyri_planning *x)
{
    pyri_held own = {0};
    int n = x->chain.n, ndim = x->a->schema.ndim;
    x->first = pyri_sys_calloc((size_t)n + 1, sizeof *x->first);
    x->wanted = pyri_sys_calloc((size_t)n + 1, sizeof *x->wanted);
    if (!x->first || !x->wanted)
        return pyri_fail_nomem("the fragments of a chunk");
    for (int i = 0; i < n; i++)
        x->first[i] =
            !pyri_held_has(&x->theirs, ndim, &x->chain.links[i].frag);
    int err = pyri_held_add(&own, &x->t->snap.tree, x->pos, &x->leaf);
    for (size_t i = 0; i < own.n && err == 0; i++)
        if (!pyri_held_has(&x->theirs, ndim, &own.frags[i]))
            err = pyri_held_note(&x->p->first, &own.frags[i], 1);
    pyri_held_fini(&own);
    return err;
}

/* Look at K's leaf, and at those of the others; *shared if one has the same. */
static int
look(pyri_planning *x, bool *shared)
{
    const pyri_fold_target *t = x->t;
    bool found;
    *shared = true;
    int err = pyri_tree_leaf_at(&t->snap.tree, x->pos, &x->leaf, NULL,
                                &found);
    if (err < 0 || !found)
        return err;
    x->p->label = x->leaf.label;
    x->p->owner = pyri_lineage_owner(t->snap.tree.lineage, x->leaf.label);
    for (size_t i = 0; i < t->nbefore; i++) {
        const pyri_tree *tree = &t->before[i].tree;
        pyri_node node;
        if ((err = pyri_tree_leaf_at(tree, x->pos, &node, NULL, &found)) < 0)
            return err;
        if (!found)
            continue;
        if (node.label == x->leaf.label &&
            pyri_lineage_owner(tree->lineage, node.label) == x->p->owner)
            return 0;
        if ((err = pyri_held_add(&x->theirs, tree, x->pos, &node)) < 0)
            return err;
    }
    *shared = false;
    err = pyri_chain_load(&x->chain, &t->snap.tree, x->pos, &x->leaf, NULL, 0);
    return err < 0 ? err : find_first(x);
}

static int
store(pyri_planning *x)
{
    int err = 0;
    for (size_t i = 0; i < x->ngroups && err == 0; i++)
        if (x->groups[i].cells)
            err = make_frag(x, &x->groups[i]);
    return err < 0 ? err : pyri_fold_leaves(x);
}

static int
plan_whole(pyri_planning *x)
{
    pyri_box bounds;
    bool any;
    int err = choose_whole(x, &bounds, &any);
    if (err < 0 || !any || (err = make_whole(x, &bounds)) < 0 ||
        (err = find_carriers(x)) < 0)
        return err;
    return x->p->ncarriers ? store(x) : 0; /* none: too many */
}

static bool
are_worth_it(const pyri_planning *x)
{
    return x->ngroups > 0 && pays(x->gain, x->cost);
}

/* Choose again if carriers show more. */
static int
mind_carriers(pyri_planning *x)
{
    bool any;
    int err = pyri_fold_needs(x, &any);
    if (err < 0 || !any)
        return err;
    drop_groups(x);
    choose_by_cells(x);
    return make_groups(x);
}

static int
plan_parts(pyri_planning *x)
{
    pyri_box bounds;
    uint64_t bytes;
    size_t cell = pyri_type_size(x->a->schema.type);
    int err;
    if (!choose_by_box(x, &bounds))
        return 0;
    uint64_t cells = pyri_box_cells(x->a->schema.ndim, &bounds);
    if (cells == 0 || cells > PYRI_SHOWS_CELLS ||
        !pyri_mul64(cells, cell, &bytes) || bytes > LARGE)
        return 0;
    if ((err = pyri_shows_find(&x->shows, x->a, x->t->snap.reader, &x->chain,
                               &bounds)) < 0)
        return err;
    choose_by_cells(x);
    if ((err = make_groups(x)) < 0 || !are_worth_it(x) ||
        (err = find_carriers(x)) < 0)
        return err;
    if (x->p->ncarriers == 0)
        return 0; /* too many */
    if ((err = mind_carriers(x)) < 0 || !are_worth_it(x))
        return err;
    x->cost += (x->p->ncarriers - 1) * x->leaf.size;
    return pays(x->gain, x->cost) ? store(x) : 0;
}

static int
plan(pyri_planning *x)
{
    bool shared;
    int err = look(x, &shared);
    if (err < 0 || shared)
        return err;
    return x->spend ? plan_whole(x) : plan_parts(x);
}

int
pyri_fold_plan_make(pyri_fold_plan *p, pyri_family *f,
                    const pyri_fold_target *t, const uint64_t *pos,
                    unsigned spend)
{
    pyri_planning x = {.p = p, .family = f, .t = t, .spend = spend,
                       .a = t->snap.array, .pos = pos};
    p->from = t->vertex;
    memcpy(p->pos, pos, sizeof p->pos);
    p->draft.array = x.a;
    int err = plan(&x);
    drop_groups(&x);
    free(x.first);
    free(x.wanted);
    pyri_chain_fini(&x.chain);
    pyri_held_fini(&x.theirs);
    pyri_shows_fini(&x.shows);
    pyri_packer_fini(&x.packer);
    return err;
}

void
pyri_fold_plan_fini(pyri_fold_plan *p, bool stored)
{
    p->draft.doubtful = stored; /* keeps those that are marked */
    pyri_draft_fini(&p->draft);
    pyri_held_fini(&p->first);
    pyri_buf_fini(&p->bytes);
    free(p->carriers);
    free(p->nodes);
    free(p->gone_nodes);
    free(p->gone);
    *p = (pyri_fold_plan){.tries = p->tries};
}
