/*
 * array/fold_plan.c - one chunk: what of it to fold, and the leaves to write.
 *
 * Snapshot K is the first that is left behind a gap. Its leaf names fragments
 * of versions in the gap, which those that have gone showed whole; K shows a
 * part of each, and those after K no more than that. So what K was the first
 * to see is replaced in all leaves that name it:
 *
 *     before    leaf of K   [ own | 6 | 5 | 4 ] and 3, which others need, too
 *     after                 [ fold            ] and 3
 *
 * A new fragment holds just the cells that K shows of those that it replaces.
 * It lies on top of all others of K's leaf: none of these shows such a cell. If
 * it takes the place of one fragment, it keeps its version and its place.
 *
 * Who gains: a fragment of which a SHARE is hidden, and small ones, each of
 * which costs OVERHEAD beside its cells. It is done if no more than SHARE bytes
 * are written for each that goes.
 */
#include "array/fold.h"
#include "array/shows.h"

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
    SOME_LEAVES = 16   /* are looked at in any case */
};

/* Fragments that become one. */
typedef struct group {
    bool *of; /* links */
    int n;
    pyri_box bounds;
    uint64_t cells; /* that are shown; 0: they just go */
    bool plain;     /* all of the bounds is stored */
    pyri_frag frag;
} group;

typedef struct planning {
    pyri_fold_plan *p;
    pyri_family *family;
    const pyri_fold_target *t;
    pyri_array *a;
    const uint64_t *pos;
    pyri_node leaf;
    pyri_chain chain; /* of K */
    bool *first;      /* links that K was the first to see */
    bool *wanted;     /* of these, those that may be folded */
    pyri_held theirs; /* what those have that are not after K */
    pyri_shows shows;
    group *groups;
    size_t ngroups;
    uint64_t gain, cost; /* bytes */
    pyri_packer packer;
} planning;

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
disk_of_link(const planning *x, int i)
{
    const pyri_frag *f = &x->chain.links[i].frag;
    (void)x;
    return f->kind == PYRI_FRAG_SAME ? OVERHEAD / 2 : disk_of(f->stored);
}

static bool
is_small(const planning *x, int i)
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
may_be_hidden(const planning *x, int i)
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
choose_by_box(planning *x, pyri_box *bounds)
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
choose_by_cells(planning *x)
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
density(const planning *x, const group *g)
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
weigh(const planning *x, group *g, uint64_t *now, uint64_t *then)
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
    g->plain = all == g->cells || (g->n > 1 && plain <= masked + masked / 32);
    *then = g->plain ? plain : masked;
}

static group *
new_group(planning *x)
{
    group *g = &x->groups[x->ngroups];
    *g = (group){.of = pyri_sys_calloc((size_t)x->chain.n + 1, sizeof *g->of)};
    x->ngroups += g->of != NULL;
    return g->of ? g : NULL;
}

static void
drop_group(planning *x)
{
    free(x->groups[--x->ngroups].of);
}

/* All that may be folded as one; or else each by itself. */
static int
make_groups(planning *x)
{
    uint64_t now, then;
    x->groups = pyri_sys_calloc((size_t)x->chain.n + 2, sizeof *x->groups);
    group *g = x->groups ? new_group(x) : NULL;
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
pack(planning *x, group *g, uint8_t *cells, const uint8_t *mask)
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
make_frag(planning *x, group *g)
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
            pyri_shows_mask(&x->shows, &g->bounds, g->of, mask);
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

/* --- new leaves ---------------------------------------------------------- */

/* The group that a fragment goes into; NULL: none. */
static group *
group_of(const planning *x, const pyri_frag *f, int *link)
{
    for (*link = 0; *link < x->chain.n; (*link)++)
        if (pyri_same_frag(x->a->schema.ndim, &x->chain.links[*link].frag, f))
            break;
    for (size_t i = 0; *link < x->chain.n && i < x->ngroups; i++)
        if (x->groups[i].of[*link])
            return &x->groups[i];
    return NULL;
}

/* Add the folds that stand for a fragment of this leaf, on top of all that K
 * has, too, and of folds as of older snapshots. */
static void
add_folds(const planning *x, const pyri_chain *old, pyri_leaf *leaf)
{
    for (size_t i = 0; i < x->ngroups; i++) {
        const group *g = &x->groups[i];
        bool any = false;
        int link;
        for (int k = 0; k < old->n && !any; k++)
            any = group_of(x, &old->links[k].frag, &link) == g;
        if (any && g->n > 1 && g->cells)
            leaf->frags[leaf->n++] = g->frag;
    }
}

/* What the leaf becomes; *changed is false if it stays as it is. */
static int
rewrite(const planning *x, const pyri_chain *old, pyri_leaf *leaf,
        bool *changed)
{
    bool folded = false;
    *changed = false;
    size_t room = (size_t)old->n + x->ngroups + 1;
    leaf->frags = pyri_sys_malloc(room * sizeof *leaf->frags);
    if (!leaf->frags)
        return pyri_fail_nomem("the fragments of a chunk");
    for (int i = 0; i < old->n; i++) {
        const pyri_frag *f = &old->links[i].frag;
        int link;
        const group *g = group_of(x, f, &link);
        if (!folded && (link < x->chain.n || f->version < x->leaf.label)) {
            add_folds(x, old, leaf);
            folded = true;
        }
        *changed |= g != NULL;
        if (!g)
            leaf->frags[leaf->n++] = *f;
        else if (g->n == 1 && g->cells)
            leaf->frags[leaf->n++] = g->frag;
    }
    return 0;
}

/* The carriers' leaves are gone through; what they will hold is noted. */
typedef struct writing {
    planning *x;
    pyri_held were, are; /* fragments and leaves that are named */
} writing;

static int
note_frags(pyri_held *h, const pyri_frag *list, size_t n)
{
    if (!pyri_room(&h->frags, &h->room, h->n + n + 1, sizeof *h->frags))
        return pyri_fail_nomem("the fragments of a chunk");
    if (n)
        memcpy(h->frags + h->n, list, n * sizeof *list);
    h->n += n;
    return 0;
}

static int
add_node(planning *x, pyri_leaf_name name, const pyri_leaf *leaf)
{
    pyri_fold_plan *p = x->p;
    const pyri_grid *g = &x->t->snap.grid;
    uint8_t key[PYRI_MAX_KEY];
    pyri_box domain;
    pyri_grid_domain(g, 0, x->pos, &domain);
    size_t n = pyri_node_key(name.owner, name.label, 0, g->ndim, x->pos, key);
    pyri_buf_add(&p->bytes, key, n);
    size_t start = p->bytes.size;
    pyri_leaf_encode((pyri_bytes){key, n}, leaf, x->a->schema.type, g->ndim,
                     &domain, &p->bytes);
    p->nodes[p->nnodes].key.size = n;
    p->nodes[p->nnodes++].value.size = p->bytes.size - start;
    return pyri_buf_check(&p->bytes, "the leaves of a chunk");
}

static int
note_leaf(pyri_held *h, pyri_leaf_name name)
{
    if (!pyri_room(&h->leaves, &h->leaf_room, h->nleaves + 1,
                   sizeof *h->leaves))
        return pyri_fail_nomem("the leaves of a chunk");
    h->leaves[h->nleaves++] = name;
    return 0;
}

/* A carrier's leaf, through a snapshot that has it. */
typedef struct opened {
    pyri_snapshot s;
    pyri_node node;
    pyri_held held;
} opened;

static void
close_carrier(opened *o)
{
    pyri_held_fini(&o->held);
    pyri_snapshot_close(&o->s);
}

static int
open_carrier(const planning *x, const pyri_carrier *c, opened *o)
{
    pyri_array *a;
    o->held = (pyri_held){0};
    int err = pyri_family_array(x->family, c->snapshot.array, &a);
    if (err < 0 || (err = pyri_snapshot_open_label(a, x->t->snap.reader,
                                                   c->snapshot.label,
                                                   &o->s)) < 0)
        return err;
    err = pyri_tree_get(&o->s.tree, c->name.label, 0, x->pos, &o->node);
    if (err == 0)
        err = pyri_held_add(&o->held, &o->s.tree, x->pos, &o->node);
    if (err < 0)
        close_carrier(o);
    return err;
}

static int
write_carrier(writing *w, pyri_carrier *c)
{
    planning *x = w->x;
    opened o;
    pyri_chain chain = {0};
    pyri_leaf leaf = {.prev = 0};
    int err = open_carrier(x, c, &o);
    if (err < 0)
        return err;
    err = pyri_chain_load(&chain, &o.s.tree, x->pos, &o.node, NULL, 0);
    if (err == 0)
        err = rewrite(x, &chain, &leaf, &c->changed);
    if (err == 0)
        err = note_frags(&w->were, o.held.frags, o.held.n);
    if (err == 0 && c->changed &&
        (err = pyri_node_about(&o.node, x->a->schema.type, &leaf.about)) == 0 &&
        (err = add_node(x, c->name, &leaf)) == 0 &&
        (err = note_leaf(&w->are, c->name)) == 0) {
        x->p->saved += (int64_t)o.node.size -
                       (int64_t)x->p->nodes[x->p->nnodes - 1].value.size;
        err = note_frags(&w->are, leaf.frags, (size_t)leaf.n);
    }
    for (size_t i = 1; i < o.held.nleaves && err == 0 && c->changed; i++)
        err = note_leaf(&w->were, o.held.leaves[i]);
    pyri_leaf_fini(&leaf);
    pyri_chain_fini(&chain);
    close_carrier(&o);
    return err;
}

static bool
is_changed(const pyri_fold_plan *p, pyri_leaf_name name)
{
    for (size_t i = 0; i < p->ncarriers; i++)
        if (p->carriers[i].name.owner == name.owner &&
            p->carriers[i].name.label == name.label)
            return p->carriers[i].changed;
    return false;
}

/* One that stays as it is goes on needing the leaves that it lies on, as they
 * will be. */
static int
note_unchanged(writing *w, const pyri_carrier *c)
{
    opened o;
    size_t from = 0;
    int err = open_carrier(w->x, c, &o);
    if (err < 0)
        return err;
    for (size_t i = 0; i < o.held.nleaves && err == 0; i++) {
        pyri_leaf_name name = o.held.leaves[i];
        err = note_leaf(&w->are, name);
        if (err == 0 && !is_changed(w->x->p, name))
            err = note_frags(&w->are, o.held.frags + from, name.end - from);
        from = name.end;
    }
    close_carrier(&o);
    return err;
}

/* Leaves that others lay on, and do no more. */
static int
drop_leaves(writing *w)
{
    planning *x = w->x;
    pyri_fold_plan *p = x->p;
    p->gone_nodes = pyri_sys_calloc(w->were.nleaves + 1,
                                    sizeof *p->gone_nodes);
    if (!p->gone_nodes)
        return pyri_fail_nomem("the leaves of a chunk");
    for (size_t i = 0; i < w->were.nleaves; i++) {
        pyri_leaf_name name = w->were.leaves[i];
        uint8_t key[PYRI_MAX_KEY];
        if (pyri_held_leaf(&w->are, name) ||
            pyri_held_leaf(&x->theirs, name))
            continue;
        size_t n = pyri_node_key(name.owner, name.label, 0,
                                 x->a->schema.ndim, x->pos, key);
        pyri_buf_add(&p->bytes, key, n);
        p->gone_nodes[p->ngone_nodes++].size = n;
    }
    return pyri_buf_check(&p->bytes, "the leaves of a chunk");
}

/* Blobs that nobody names any more. */
static int
drop_blobs(writing *w)
{
    pyri_fold_plan *p = w->x->p;
    int ndim = w->x->a->schema.ndim;
    p->gone = pyri_sys_calloc(w->were.n + 1, sizeof *p->gone);
    if (!p->gone)
        return pyri_fail_nomem("the fragments of a chunk");
    for (size_t i = 0; i < w->were.n; i++) {
        const pyri_frag *f = &w->were.frags[i];
        bool told = false;
        for (size_t k = 0; k < p->ngone && !told; k++)
            told = p->gone[k].ref.a == f->ref[0] &&
                   p->gone[k].ref.b == f->ref[1];
        if (told || f->kind == PYRI_FRAG_SAME ||
            pyri_held_has(&w->are, ndim, f) ||
            pyri_held_has(&w->x->theirs, ndim, f))
            continue;
        p->gone[p->ngone++] = (pyri_blob){{f->ref[0], f->ref[1]},
                                          pyri_frag_blob_size(f)};
    }
    return 0;
}

/* Keys and values are where they will be. */
static void
point_at_bytes(pyri_fold_plan *p)
{
    const uint8_t *at = p->bytes.data;
    for (size_t i = 0; i < p->nnodes; i++) {
        p->nodes[i].key.data = at;
        at += p->nodes[i].key.size;
        p->nodes[i].value.data = at;
        at += p->nodes[i].value.size;
    }
    for (size_t i = 0; i < p->ngone_nodes; i++) {
        p->gone_nodes[i].data = at;
        at += p->gone_nodes[i].size;
    }
}

static int
write_leaves(planning *x)
{
    pyri_fold_plan *p = x->p;
    writing w = {.x = x};
    int err = 0;
    p->nodes = pyri_sys_calloc(p->ncarriers + 1, sizeof *p->nodes);
    if (!p->nodes)
        return pyri_fail_nomem("the leaves of a chunk");
    for (size_t i = 0; i < p->ncarriers && err == 0; i++)
        err = write_carrier(&w, &p->carriers[i]);
    for (size_t i = 0; i < p->ncarriers && err == 0; i++)
        if (!p->carriers[i].changed)
            err = note_unchanged(&w, &p->carriers[i]);
    if (err == 0)
        err = drop_leaves(&w);
    if (err == 0)
        err = drop_blobs(&w);
    if (err == 0)
        point_at_bytes(p);
    pyri_held_fini(&w.were);
    pyri_held_fini(&w.are);
    return err;
}

/* --- the plan ------------------------------------------------------------ */

static int
find_carriers(planning *x)
{
    pyri_fold_plan *p = x->p;
    pyri_carriers c = {.family = x->family,
                       .reader = x->t->snap.reader,
                       .from = p->from,
                       .pos = x->pos,
                       .sought = &p->first,
                       .limit = SOME_LEAVES + (size_t)(x->gain / OVERHEAD)};
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
find_first(planning *x)
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
            err = note_frags(&x->p->first, &own.frags[i], 1);
    pyri_held_fini(&own);
    return err;
}

/* Look at K's leaf, and at those of the others; *shared if one has the same. */
static int
look(planning *x, bool *shared)
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
plan(planning *x)
{
    pyri_box bounds;
    bool shared;
    uint64_t bytes;
    size_t cell = pyri_type_size(x->a->schema.type);
    int err = look(x, &shared);
    if (err < 0 || shared || !choose_by_box(x, &bounds))
        return err;
    uint64_t cells = pyri_box_cells(x->a->schema.ndim, &bounds);
    if (cells == 0 || cells > PYRI_SHOWS_CELLS ||
        !pyri_mul64(cells, cell, &bytes) || bytes > LARGE)
        return 0;
    if ((err = pyri_shows_find(&x->shows, x->a, x->t->snap.reader, &x->chain,
                               &bounds)) < 0)
        return err;
    choose_by_cells(x);
    if ((err = make_groups(x)) < 0 || x->ngroups == 0 ||
        !pays(x->gain, x->cost) || (err = find_carriers(x)) < 0)
        return err;
    if (x->p->ncarriers == 0)
        return 0; /* too many */
    x->cost += (x->p->ncarriers - 1) * x->leaf.size;
    if (!pays(x->gain, x->cost))
        return 0;
    for (size_t i = 0; i < x->ngroups && err == 0; i++)
        if (x->groups[i].cells)
            err = make_frag(x, &x->groups[i]);
    return err < 0 ? err : write_leaves(x);
}

int
pyri_fold_plan_make(pyri_fold_plan *p, pyri_family *f,
                    const pyri_fold_target *t, const uint64_t *pos)
{
    planning x = {.p = p, .family = f, .t = t, .a = t->snap.array, .pos = pos};
    p->from = t->vertex;
    memcpy(p->pos, pos, sizeof p->pos);
    p->draft.array = x.a;
    int err = plan(&x);
    while (x.ngroups)
        drop_group(&x);
    free(x.groups);
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
