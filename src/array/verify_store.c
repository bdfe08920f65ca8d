/*
 * array/verify_store.c - VERIFY: a walk over everything that any version needs.
 *
 * All of it is seen through one reader, so of one moment: what is written
 * meanwhile is no part of it, and what is erased meanwhile still is. First the
 * versions that are kept, of each array from the oldest on, ancestors before
 * their clones; each node is looked at where it is met first, and its subtree
 * with it. Then those that are forgotten and have not gone, quietly, just to
 * know what they need.
 */
#include "array/verifier.h"

#include "base/room.h"
#include "base/sys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 32 };

/* A node to be looked at. */
typedef struct spot {
    uint64_t label;
    int level;
    bool below; /* a leaf that another lies on: it may do without */
    uint64_t pos[PYR_MAX_DIMS];
} spot;

typedef struct walk {
    pyri_verifier *v;
    pyri_view *view;
    spot *stack;
    size_t n, room;
} walk;

/* --- reporting ----------------------------------------------------------- */

int
pyri_verify_harm(pyri_verifier *v, const char *array, pyr_version version,
                 int ndim, const pyri_box *box, const char *what)
{
    uint64_t size[PYR_MAX_DIMS];
    for (int d = 0; box && d < ndim; d++)
        size[d] = box->hi[d] - box->lo[d];
    pyr_harm harm = {.array = array,
                     .version = version,
                     .ndim = box ? ndim : 0,
                     .offset = box ? box->lo : NULL,
                     .size = box ? size : NULL,
                     .what = what};
    if (v->quiet)
        return 0;
    v->out->harms++;
    return v->spec->each ? v->spec->each(v->spec->ctx, &harm) : 0;
}

int
pyri_verify_harm_in(pyri_verifier *v, const pyri_view *view,
                    const pyri_box *box, const char *what)
{
    const pyri_array *a = view->kin->array;
    if (v->forgotten)
        return 0;
    return pyri_verify_harm(v, a->name, view->snap.label - a->first,
                            a->schema.ndim, box, what);
}

/* A node cannot be read: what is below it is not known. */
static int
lose(walk *w, const spot *s, const char *what)
{
    pyri_box box;
    char text[1024];
    bool some = pyri_grid_shown(&w->view->snap.grid, s->level, s->pos, &box);
    snprintf(text, sizeof text, "%s", what ? what : pyr_errmsg());
    w->view->kin->lost = true;
    return pyri_verify_harm_in(w->v, w->view, some ? &box : NULL, text);
}

/* It can be read, and is wrong. */
static int
doubt(walk *w, const spot *s, const char *what)
{
    pyri_box box;
    bool some = pyri_grid_shown(&w->view->snap.grid, s->level, s->pos, &box);
    return pyri_verify_harm_in(w->v, w->view, some ? &box : NULL, what);
}

/* --- the stack ----------------------------------------------------------- */

static size_t
key_of(const walk *w, const spot *s, uint8_t *key)
{
    const pyri_tree *t = &w->view->snap.tree;
    return pyri_node_key(pyri_lineage_owner(t->lineage, s->label), s->label,
                         s->level, t->grid->ndim, s->pos, key);
}

/* Take note of a node, unless it was met before. `level` is where it is looked
 * for, `stored` where it is: less if the tree has grown since. */
static int
push(walk *w, uint64_t label, int level, int stored, const uint64_t *pos,
     bool below)
{
    const pyri_grid *g = &w->view->snap.grid;
    uint8_t key[PYRI_MAX_KEY];
    bool fresh;
    int err;
    if (!pyri_room(&w->stack, &w->room, w->n + 1, sizeof *w->stack))
        return pyri_fail_nomem("a walk of the tree");
    spot *s = &w->stack[w->n];
    *s = (spot){.label = label, .level = level, .below = below};
    memcpy(s->pos, pos, (size_t)g->ndim * sizeof *pos);
    for (; s->level > stored; s->level--) {
        uint64_t child[PYR_MAX_DIMS];
        pyri_grid_child(g, s->level, s->pos, 0, child);
        memcpy(s->pos, child, (size_t)g->ndim * sizeof *child);
    }
    err = pyri_reached_add(&w->v->nodes, key, key_of(w, s, key), &fresh);
    w->n += err == 0 && fresh;
    return err;
}

/* --- inner nodes --------------------------------------------------------- */

/* What a node says of a child against what the child says of itself. */
static int
check_entry(walk *w, const spot *s, const pyri_node *node, pyri_bytes key,
            unsigned slot, const pyri_node *child)
{
    pyr_type type = w->view->snap.tree.type;
    pyri_entry e;
    pyri_about own;
    uint8_t a[PYRI_SUMMARY_BYTES], b[PYRI_SUMMARY_BYTES];
    if (pyri_node_entry(node, slot, type, &e) < 0 ||
        pyri_node_about(child, type, &own) < 0)
        return 0; /* told elsewhere */
    if (e.about.digested &&
        (!own.digested || memcmp(&e.about.digest, &own.digest,
                                 sizeof own.digest) != 0))
        return doubt(w, s, "the digest of a child is another than it says "
                           "itself");
    if (!e.about.known)
        return 0;
    pyri_summary_encode(&e.about.summary, type, a);
    pyri_summary_encode(&own.summary, type, b);
    if (own.known && memcmp(a, b, sizeof a) == 0)
        return 0;
    if (w->v->repairing && own.known)
        return pyri_verify_amend(w->v, key, node, type, (int)slot,
                                 &own.summary);
    return doubt(w, s, "the summary of a child is another than it says "
                       "itself");
}

static int
check_entries(walk *w, const spot *s, const pyri_node *node, pyri_bytes key)
{
    const pyri_tree *t = &w->view->snap.tree;
    pyri_node_get gets[PYRI_FAN];
    uint8_t keys[PYRI_FAN][192];
    unsigned slots[PYRI_FAN];
    size_t n = 0;
    int err = 0;
    for (unsigned slot = 0; slot < PYRI_FAN; slot++) {
        spot c = {0};
        int stored;
        if (!((node->slots & ~node->flats) >> slot & 1) ||
            pyri_node_child(node, slot, &c.label, &stored) < 0 ||
            stored >= node->level)
            continue;
        c.level = s->level - 1;
        pyri_grid_child(t->grid, s->level, s->pos, slot, c.pos);
        for (; c.level > stored; c.level--) {
            uint64_t below[PYR_MAX_DIMS] = {0};
            pyri_grid_child(t->grid, c.level, c.pos, 0, below);
            memcpy(c.pos, below, sizeof below);
        }
        gets[n] = (pyri_node_get){.key = {keys[n], key_of(w, &c, keys[n])}};
        slots[n++] = slot;
    }
    err = n ? pyri_engine_get_nodes(w->v->e, w->v->r, gets, n) : 0;
    for (size_t i = 0; i < n && err == 0; i++) {
        pyri_node child;
        if (gets[i].found &&
            pyri_node_open(gets[i].key, gets[i].value, &child) == 0)
            err = check_entry(w, s, node, key, slots[i], &child);
    }
    return err;
}

/* What it says of itself against what it says of its children. */
static int
check_inner(walk *w, const spot *s, const pyri_node *node, pyri_bytes key)
{
    const pyri_tree *t = &w->view->snap.tree;
    pyri_about own, derived;
    pyri_box domain;
    int err;
    if ((err = pyri_node_about(node, t->type, &own)) < 0 ||
        (err = pyri_node_derive(t, node, s->pos, &derived)) < 0)
        return err == PYR_ECORRUPT ? doubt(w, s, pyr_errmsg()) : err;
    if (own.digested != derived.digested ||
        (own.digested &&
         memcmp(&own.digest, &derived.digest, sizeof own.digest) != 0))
        return doubt(w, s, "the digest is not that of its children");
    bool now = node->label == w->view->snap.label;
    pyri_grid_domain(t->grid, s->level, s->pos, &domain);
    if (!own.known || (!now && !pyri_summary_now(t->form, t->type, t->fill,
                                                 own.label, &domain,
                                                 &own.summary)))
        return 0;
    if (!derived.known)
        return now ? doubt(w, s, "the summary is of what is not known") : 0;
    const char *what = pyri_summary_differs(t->type, &own.summary,
                                            &derived.summary);
    if (!what)
        return 0;
    if (w->v->repairing && now)
        return pyri_verify_amend(w->v, key, node, t->type, -1,
                                 &derived.summary);
    return doubt(w, s, "the summary is not that of its children");
}

static int
push_children(walk *w, const spot *s, const pyri_node *node)
{
    const pyri_grid *g = &w->view->snap.grid;
    int err = 0;
    for (unsigned slot = 0; slot < PYRI_FAN && err == 0; slot++) {
        spot child = {.level = s->level - 1};
        int stored;
        if (!((node->slots & ~node->flats) >> slot & 1))
            continue; /* of a flat the entry was looked at */
        pyri_grid_child(g, s->level, s->pos, slot, child.pos);
        err = pyri_node_child(node, slot, &child.label, &stored);
        if (err == 0 && (stored >= s->level || child.label > s->label))
            err = pyri_fail(PYR_ECORRUPT, "a child makes no sense");
        err = err == PYR_ECORRUPT ? lose(w, &child, NULL)
              : err < 0           ? err
                                  : push(w, child.label, child.level, stored,
                                         child.pos, false);
    }
    return err;
}

static int
visit_inner(walk *w, const spot *s, const pyri_node *node, pyri_bytes key)
{
    int err = 0;
    size_t amended = w->v->namended;
    if (!w->v->forgotten)
        err = check_entries(w, s, node, key);
    /* what is put right in this pass is gone through in the next */
    if (err == 0 && !w->v->forgotten && amended == w->v->namended)
        err = check_inner(w, s, node, key);
    return err != 0 ? err : push_children(w, s, node);
}

/* --- leaves -------------------------------------------------------------- */

static int
visit_leaf(walk *w, const spot *s, const pyri_node *node)
{
    const pyri_grid *g = &w->view->snap.grid;
    pyri_leaf_walk leaf;
    pyri_box domain;
    pyri_grid_domain(g, 0, s->pos, &domain);
    int err = pyri_leaf_begin(node, g->ndim, &domain, &leaf);
    if (err == 0 && leaf.prev >= node->label)
        err = pyri_fail(PYR_ECORRUPT, "a leaf lies on a newer one");
    if (err == PYR_ECORRUPT)
        return lose(w, s, NULL);
    bool wrong = false;
    if (err == 0 && leaf.prev)
        err = push(w, leaf.prev, 0, 0, s->pos, true);
    if (err == 0 && !w->v->forgotten)
        err = pyri_verify_leaf_digest(w->v, w->view, node, s->pos, &wrong);
    if (err == 0 && wrong)
        err = doubt(w, s, "the digest is not that of what was written");
    return err != 0 ? err : pyri_verify_leaf(w->v, w->view, node, s->pos);
}

/* --- one version --------------------------------------------------------- */

static int
visit(walk *w, const spot *s, const pyri_node_get *get)
{
    pyri_node node;
    int err;
    if (!get->found && (s->below || w->v->forgotten))
        return 0; /* not needed, or gone already */
    if (!get->found)
        return lose(w, s, "a node of the tree is missing");
    err = pyri_node_open(get->key, get->value, &node);
    if (err == 0 && (node.label != s->label || node.level != s->level))
        err = pyri_fail(PYR_ECORRUPT, "a node has the name of another");
    if (err == PYR_ECORRUPT || err == PYR_EFORMAT)
        return lose(w, s, NULL);
    if (err < 0)
        return err;
    w->v->out->nodes += !w->v->forgotten;
    return s->level ? visit_inner(w, s, &node, get->key)
                    : visit_leaf(w, s, &node);
}

static int
step(walk *w)
{
    spot at[BATCH];
    uint8_t keys[BATCH][192];
    pyri_node_get gets[BATCH];
    size_t n = 0;
    while (w->n && n < BATCH) {
        at[n] = w->stack[--w->n];
        gets[n] = (pyri_node_get){.key = {keys[n],
                                          key_of(w, &at[n], keys[n])}};
        n++;
    }
    int err = pyri_engine_get_nodes(w->v->e, w->v->r, gets, n);
    for (size_t i = 0; i < n && err == 0; i++)
        err = visit(w, &at[i], &gets[i]);
    return err;
}

static int
walk_tree(pyri_verifier *v, pyri_view *view)
{
    walk w = {.v = v, .view = view};
    const pyri_tree *t = &view->snap.tree;
    uint64_t pos[PYR_MAX_DIMS] = {0};
    if (t->root == 0)
        return 0;
    int err = push(&w, t->root, t->grid->levels, t->root_level, pos, false);
    while (err == 0 && w.n)
        err = step(&w);
    free(w.stack);
    return err;
}

/* A version that cannot be opened: its record is harmed. */
static int
lose_version(pyri_verifier *v, pyri_kin *k, uint64_t label)
{
    char what[1024];
    snprintf(what, sizeof what, "%s", pyr_errmsg());
    k->lost = true;
    if (v->forgotten)
        return 0;
    return pyri_verify_harm(v, k->array->name, label - k->array->first, 0,
                            NULL, what);
}

static int
walk_version(pyri_verifier *v, pyri_kin *k, uint64_t label,
             const pyri_record *told)
{
    pyri_view *view = pyri_sys_calloc(1, sizeof *view);
    if (!view)
        return pyri_fail_nomem("a snapshot");
    view->kin = k;
    view->users = 1;
    int err = pyri_snapshot_open_label(k->array, v->r, label, &view->snap);
    if (err < 0) {
        free(view);
        return pyri_is_harm(err) ? lose_version(v, k, label) : err;
    }
    v->out->versions += !v->forgotten;
    if (told)
        pyri_verify_told(view, told);
    err = walk_tree(v, view);
    pyri_view_leave(view);
    return err;
}

/* --- one array ----------------------------------------------------------- */

typedef struct versions {
    pyri_verifier *v;
    pyri_kin *k;
} versions;

/* The record of the first version is that of the array. */
static int
misplaced(pyri_verifier *v, pyri_kin *k)
{
    k->lost = true;
    return v->forgotten ? 0
                        : pyri_verify_harm(v, k->array->name, 0, 0, NULL,
                                           "the record of a version is under "
                                           "another one's number");
}

static int
see_version(void *ctx, uint64_t label, const pyri_version_get *get)
{
    versions *x = ctx;
    pyri_record record;
    if (label <= x->k->array->first)
        return misplaced(x->v, x->k);
    if (get->forgotten != x->v->forgotten || label > x->k->head)
        return 0;
    int err = pyri_record_decode(get->record, &record);
    if (pyri_is_harm(err))
        return lose_version(x->v, x->k, label);
    if (err < 0)
        return err;
    err = walk_version(x->v, x->k, label, &record);
    pyri_record_fini(&record);
    return err;
}

/* The newest version must be there. */
static int
check_head(pyri_verifier *v, pyri_kin *k)
{
    const pyri_array *a = k->array;
    pyri_version_get get = {.found = true};
    int err = 0;
    if (k->head > a->first)
        err = pyri_engine_get_version(v->e, v->r, a->id, k->head, &get);
    if (pyri_is_harm(err))
        return 0; /* told when it is walked */
    if (err < 0 || (get.found && !get.forgotten))
        return err;
    k->lost = true;
    return pyri_verify_harm(v, a->name, k->head - a->first, 0, NULL,
                            "the record of the newest version is missing");
}

static int
walk_array(pyri_verifier *v, pyri_kin *k)
{
    versions x = {v, k};
    pyri_array *a = k->array;
    bool gone = false;
    int err = 0;
    if (k->head < a->first)
        return 0;
    if (!v->forgotten) {
        if ((err = check_head(v, k)) == 0)
            err = pyri_verify_records(v, k);
        if (err == 0)
            err = pyri_folds(a, v->r, &k->folds);
        if (err == 0)
            err = pyri_array_is_gone(a, v->r, &gone);
        if (err == 0 && !gone)
            err = walk_version(v, k, a->first, NULL);
    }
    if (err == 0)
        err = pyri_engine_scan_versions(v->e, v->r, a->id, 0, k->head,
                                        see_version, &x);
    if (pyri_is_harm(err))
        err = lose_version(v, k, k->head);
    return err;
}

/* --- all of it ----------------------------------------------------------- */

pyri_kin *
pyri_verifier_kin(pyri_verifier *v, uint64_t id)
{
    for (size_t i = 0; i < v->nkin; i++)
        if (v->kin[i].array->id == id)
            return &v->kin[i];
    return NULL;
}

static int
add_size(void *ctx, const pyri_blob *blob, uint64_t array, uint64_t version)
{
    (void)array, (void)version;
    *(uint64_t *)ctx += blob->size;
    return 0;
}

/* Where the engine itself is harmed, nothing else can be asked safely. */
static int
check_engine(pyri_verifier *v)
{
    char what[1024];
    int err = pyri_engine_check(v->e);
    if (!pyri_is_harm(err))
        return err;
    snprintf(what, sizeof what, "%s", pyr_errmsg());
    v->blind = v->broken = true;
    return pyri_verify_harm(v, "", 0, 0, NULL, what);
}

int
pyri_verifier_walk(pyri_verifier *v)
{
    int err = check_engine(v);
    if (err != 0 || v->broken || (err = pyri_engine_begin(v->e, &v->r)) < 0)
        return err;
    if (v->spec->progress.each && !v->quiet)
        err = pyri_engine_scan_blobs(v->e, v->r, add_size, &v->total);
    if (err == 0 || pyri_is_harm(err))
        err = pyri_verify_catalog(v);
    for (int pass = 0; pass < 2; pass++) {
        v->forgotten = pass;
        for (size_t i = 0; i < v->nkin && err == 0; i++)
            err = walk_array(v, &v->kin[i]);
        if (err == 0)
            err = pyri_verify_flush(v);
    }
    v->forgotten = false;
    return err;
}

void
pyri_verifier_fini(pyri_verifier *v)
{
    for (size_t i = 0; i < v->njobs; i++)
        pyri_view_leave(v->jobs[i].view);
    for (size_t i = 0; i < v->nkin; i++)
        pyri_array_close(v->kin[i].array);
    pyri_engine_end(v->e, v->r);
    pyri_reached_fini(&v->nodes);
    pyri_reached_fini(&v->blobs);
    pyri_buf_fini(&v->bytes);
    free(v->kin);
    free(v->jobs);
    free(v->turns);
    free(v->amended);
}

int
pyri_verify(pyri_engine *e, const pyr_verify_spec *spec, pyr_verified *out)
{
    static const pyr_verify_spec none;
    pyr_verified unused;
    pyri_verifier v = {.e = e, .spec = spec ? spec : &none,
                       .out = out ? out : &unused};
    memset(v.out, 0, sizeof *v.out);
    v.deep = v.spec->deep;
    int err = pyri_verifier_walk(&v);
    if (err == 0 && !v.broken)
        err = pyri_verify_orphans(&v);
    pyri_verifier_fini(&v);
    return err;
}
