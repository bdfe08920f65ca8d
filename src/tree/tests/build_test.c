/*
 * Trees of many versions against a plain model. Versions are taken in order
 * and completed in any; what is in flight meanwhile must be predicted right.
 */
#include "tree/tests/world.h"

/* --- building ------------------------------------------------------------ */

typedef struct making {
    world *w;
    uint64_t label;
    size_t leaves;
} making;

static int
make_leaf(void *ctx, const pyri_touch *touch, uint64_t prev, uint64_t base,
          const pyri_flat *flat, pyri_leaf *leaf)
{
    making *m = ctx;
    const world *w = m->w;
    const version *v = &w->v[m->label];
    uint64_t chunk = chunk_number(w, touch->pos), rival = 0;
    for (uint64_t l = v->below.base + 1; l < m->label; l++)
        if (w->v[l].touched[chunk])
            rival = l;
    CHECK(prev == rival);
    CHECK(is_writer(w, base, v->below.base, chunk));
    m->leaves++;
    pyri_frag *f = calloc(1, sizeof *f);
    REQUIRE(f);
    f->version = m->label;
    f->bits = m->label;
    shown_of(w, m->label, touch->pos, &f->box);
    leaf->frags = f;
    leaf->n = 1;
    leaf->about.digested = true;
    leaf->about.digest = (pyri_digest){m->label, chunk};
    leaf->about.known = (m->label + chunk) % 5 != 0; /* some never find out */
    pyri_summary_init(&leaf->about.summary);
    if (leaf->about.known)
        pyri_summary_add_same(&leaf->about.summary, type, 0, m->label,
                              pyri_box_cells(w->ndim, &f->box));
    return 0;
}

static const pyri_node_put *
find_put(const pyri_build *b, pyri_bytes key)
{
    for (size_t i = 0; i < b->nnodes; i++)
        if (b->nodes[i].key.size == key.size &&
            memcmp(b->nodes[i].key.data, key.data, key.size) == 0)
            return &b->nodes[i];
    return NULL;
}

/* What a new node says of a child must be what the child says of itself; of
 * one in flight, nothing. */
static void
check_child(world *w, const pyri_build *b, const pyri_entry *e,
            const uint64_t *pos)
{
    uint8_t key[PYRI_MAX_KEY];
    pyri_about about;
    pyri_node node;
    REQUIRE(e->about.label > 0 && e->about.label <= b->label);
    if (e->flat) {
        pyri_flat f = {.label = e->about.label,
                       .bits = e->about.summary.min};
        pyri_box domain, region;
        memcpy(f.shape, w->v[f.label].shape, sizeof f.shape);
        CHECK(memcmp(f.shape, e->shape, sizeof(uint64_t) * (size_t)w->ndim) ==
              0);
        pyri_grid_domain(b->grid, e->level, pos, &domain);
        REQUIRE(pyri_flat_region(&f, w->ndim, &domain, &region));
        pyri_flat_about(&f, w->ndim, type, 0, &region, &about);
        CHECK(about.summary.min == f.label && f.bits == f.label);
        CHECK(e->about.known && same_sum(&about.summary, &e->about.summary));
        CHECK(e->about.digested && about.digest.lo == e->about.digest.lo &&
              about.digest.hi == e->about.digest.hi);
        w->flat += f.label == b->label;
        w->flat_shared += f.label != b->label;
        return;
    }
    pyri_bytes k = {key, pyri_node_key(ARRAY, e->about.label, e->level,
                                       w->ndim, pos, key)};
    if (e->about.label == b->label) {
        const pyri_node_put *put = find_put(b, k);
        REQUIRE(put);
        OK(pyri_node_open(k, put->value, &node));
    } else if (e->about.label > w->v[b->label].below.base) {
        CHECK(!e->about.known && !e->about.digested);
        w->predicted++;
        return;
    } else {
        OK(pyri_tree_get(b->base, e->about.label, e->level, pos, &node));
    }
    OK(pyri_node_about(&node, type, &about));
    CHECK(about.known == e->about.known);
    CHECK(about.digested == e->about.digested);
    CHECK(!about.known || same_sum(&about.summary, &e->about.summary));
    CHECK(!about.digested || (about.digest.lo == e->about.digest.lo &&
                              about.digest.hi == e->about.digest.hi));
}

/* Look at all that was built, from a node downwards. */
static size_t
check_built(world *w, const pyri_build *b, int level, const uint64_t *pos)
{
    uint8_t key[PYRI_MAX_KEY];
    pyri_bytes k = {key, pyri_node_key(ARRAY, b->label, level, w->ndim, pos,
                                       key)};
    const pyri_node_put *put = find_put(b, k);
    pyri_node node;
    pyri_about own;
    pyri_box domain;
    size_t found = 1;
    REQUIRE(put);
    OK(pyri_node_open(k, put->value, &node));
    OK(pyri_node_about(&node, type, &own));
    REQUIRE(node.level == level && node.label == b->label);
    pyri_grid_domain(b->grid, level, pos, &domain);
    if (own.known) {
        pyri_summary want = model_sum(w, b->label, &domain);
        CHECK(same_sum(&own.summary, &want));
    }
    for (unsigned slot = 0; level > 0 && slot < PYRI_FAN; slot++) {
        uint64_t child[PYR_MAX_DIMS];
        pyri_entry e;
        if (!(node.slots >> slot & 1))
            continue;
        pyri_grid_child(b->grid, level, pos, slot, child);
        OK(pyri_node_entry(&node, slot, type, &e));
        check_child(w, b, &e, child);
        if (e.about.label == b->label && !e.flat)
            found += check_built(w, b, level - 1, child);
    }
    return found;
}

static void
check_rival(world *w, const pyri_rival *r)
{
    uint64_t cell[PYR_MAX_DIMS], pos[PYR_MAX_DIMS];
    pyri_box domain;
    for (uint64_t n = 0; n < all_cells(w); n++) {
        cell_of(w, n, cell);
        if (chunk_of(w, cell, pos) != n)
            continue;
        pyri_grid_domain(&w->v[r->label].grid, 0, pos, &domain);
        REQUIRE(pyri_rival_touches(r, &domain) == w->v[r->label].touched[n]);
    }
}

/* A rival for every version in flight below, newest first. */
static pyri_rival *
rivals_of(world *w, const version *v)
{
    pyri_rival *rivals = calloc(v->below.n + 1, sizeof *rivals);
    REQUIRE(rivals);
    for (size_t i = 0; i < v->below.n; i++) {
        const pyri_flight *f = &v->below.list[i];
        pyri_rival *r = &rivals[v->below.n - 1 - i];
        pyri_cursor c = pyri_cursor_of(f->claim.data, f->claim.size);
        OK(pyri_claim_decode(&c, w->ndim, &r->claim));
        r->label = f->version;
        r->shape = f->shape;
        r->levels = w->v[f->version].grid.levels;
        check_rival(w, r);
    }
    return rivals;
}

static size_t
touches_of(world *w, const version *v, pyri_touch *touches)
{
    size_t n = 0;
    uint64_t cell[PYR_MAX_DIMS], pos[PYR_MAX_DIMS];
    for (uint64_t i = 0; i < all_cells(w); i++) {
        cell_of(w, i, cell);
        if (!v->touched[i] || chunk_of(w, cell, pos) != i)
            continue;
        memcpy(touches[n].pos, pos, sizeof pos);
        touches[n].payload = n;
        n++;
    }
    for (size_t i = n; i > 1; i--) { /* in any order */
        size_t k = (size_t)rng_below(&w->r, i);
        pyri_touch was = touches[i - 1];
        touches[i - 1] = touches[k];
        touches[k] = was;
    }
    return n;
}

static void
complete(world *w, uint64_t label)
{
    static pyri_touch touches[CELLS];
    static pyri_sheet sheets[CELLS];
    const uint64_t root[PYR_MAX_DIMS] = {0};
    version *v = &w->v[label];
    making m = {w, label, 0};
    pyri_reader *r;
    OK(pyri_engine_begin(w->engine, &r));
    pyri_tree base = tree_of(w, r, v->below.base, &w->v[v->below.base].grid);
    pyri_build b = {.base = &base,
                    .form = &v->form,
                    .grid = &v->grid,
                    .array = ARRAY,
                    .label = label,
                    .rivals = rivals_of(w, v),
                    .nrivals = v->below.n,
                    .touches = touches,
                    .ntouches = touches_of(w, v, touches),
                    .leaf = make_leaf,
                    .ctx = &m};
    b.flat = w->flats && label % 3 != 0;
    b.sheets = sheets;
    if (b.flat)
        b.nsheets = sheets_of(w, v, &b, sheets);
    if (b.ntouches || b.nsheets) {
        OK(pyri_build_run(&b));
        CHECK(m.leaves == b.ntouches);
        CHECK(check_built(w, &b, v->grid.levels, root) == b.nnodes);
        CHECK(in_order(&b));
        w->unknown_roots += !b.root.known;
    }
    pyri_engine_end(w->engine, r);
    pyri_complete c = {.array = ARRAY,
                       .version = label,
                       .shape = v->shape,
                       .nodes = b.nodes,
                       .nnodes = b.nnodes,
                       .record = {"record", 6}};
    OK(pyri_engine_complete(w->engine, &c));
    for (size_t i = 0; i < b.nrivals; i++)
        pyri_claim_fini(&b.rivals[i].claim);
    free(b.rivals);
    pyri_build_fini(&b);
    v->complete = true;
    while (w->latest < w->taken && w->v[w->latest + 1].complete)
        w->latest++;
    REQUIRE(c.latest == w->latest);
}

/* --- looking at snapshots ------------------------------------------------ */

typedef struct sight {
    const world *w;
    uint64_t label;
    bool leaves_only;
    uint8_t cells[CELLS]; /* how many hits showed it */
} sight;

/* The value of a cell by the fragment of a leaf. */
static uint64_t
leaf_cell(const sight *s, const pyri_hit *hit, const uint64_t *cell)
{
    uint64_t clip[PYR_MAX_DIMS];
    pyri_leaf_walk walk;
    pyri_frag f;
    pyri_box domain;
    pyri_grid_domain(&s->w->v[s->label].grid, 0, hit->pos, &domain);
    OK(pyri_leaf_begin(&hit->node, s->w->ndim, &domain, &walk));
    REQUIRE(walk.left == 1);
    OK(pyri_leaf_peek(&walk, &f));
    OK(pyri_leaf_take(&walk, &f));
    pyri_form_clip(&s->w->v[s->label].form, f.version, clip);
    for (int d = 0; d < s->w->ndim; d++)
        if (cell[d] >= clip[d] || cell[d] >= f.box.hi[d])
            return 0;
    return f.bits;
}

static int
see(void *ctx, const pyri_hit *hit)
{
    sight *s = ctx;
    const world *w = s->w;
    const version *v = &w->v[s->label];
    uint64_t cell[PYR_MAX_DIMS], pos[PYR_MAX_DIMS];
    REQUIRE(!pyri_box_empty(w->ndim, &hit->box));
    if (hit->leaf)
        REQUIRE(hit->node.label == v->writer[chunk_number(w, hit->pos)]);
    for (uint64_t n = 0; n < all_cells(w); n++) {
        bool in = true;
        cell_of(w, n, cell);
        for (int d = 0; d < w->ndim; d++)
            in &= cell[d] >= hit->box.lo[d] && cell[d] < hit->box.hi[d];
        if (!in)
            continue;
        REQUIRE(inside(w, cell, v->shape));
        s->cells[n]++;
        uint64_t chunk = chunk_of(w, cell, pos);
        if (hit->leaf) {
            REQUIRE(chunk == chunk_number(w, hit->pos));
            REQUIRE(leaf_cell(s, hit, cell) == v->cells[n]);
        } else if (hit->flat) {
            REQUIRE(v->writer[chunk] == hit->flat);
            REQUIRE(hit->bits == v->cells[n]);
        } else if (s->leaves_only && !w->flats) {
            REQUIRE(v->writer[chunk] == 0);
            REQUIRE(hit->bits == 0);
        } else {
            REQUIRE(hit->bits == v->cells[n]);
        }
    }
    return 0;
}

static void
look(world *w, pyri_reader *r, uint64_t label, const pyri_run *run,
     bool leaves_only)
{
    const version *v = &w->v[label];
    sight s = {w, label, leaves_only, {0}};
    uint64_t cell[PYR_MAX_DIMS];
    pyri_tree t = tree_of(w, r, label, &v->grid);
    t.leaves_only = leaves_only;
    OK(pyri_tree_find(&t, run, see, &s));
    for (uint64_t n = 0; n < all_cells(w); n++) {
        cell_of(w, n, cell);
        REQUIRE(s.cells[n] <= 1);
        if (inside(w, cell, v->shape) && in_run(w, run, cell))
            REQUIRE(s.cells[n] == 1);
    }
}

/* A run inside the shape. */
static bool
cut_run(world *w, const uint64_t *shape, pyri_run *run)
{
    pick_run(w, run);
    for (int d = 0; d < w->ndim; d++) {
        while (run->count[d] > 1 && run->start[d] + run->block[d] +
                       (run->count[d] - 1) * run->stride[d] > shape[d])
            run->count[d]--;
        if (run->start[d] + run->block[d] > shape[d])
            return false;
    }
    return true;
}

/* --- summing up, from the top -------------------------------------------- */

typedef struct place {
    uint64_t label;
    int level, stored;
    uint64_t pos[PYR_MAX_DIMS];
} place;

static void
add_model(world *w, uint64_t v, const pyri_box *domain, pyri_summary *s)
{
    pyri_summary cells = model_sum(w, v, domain);
    pyri_summary_merge(s, type, &cells);
}

/* Take what a node says of itself, if it still holds; else ask below. */
static void
sum_up(world *w, const pyri_tree *t, uint64_t v, place at,
       const pyri_about *about, pyri_summary *s)
{
    pyri_box domain;
    pyri_node node = {0};
    pyri_about own;
    pyri_grid_domain(t->grid, at.level, at.pos, &domain);
    for (int d = 0; d < w->ndim; d++)
        if (domain.lo[d] >= w->v[v].shape[d])
            return;
    bool here = at.label && at.stored == at.level;
    if (here) {
        OK(pyri_tree_get(t, at.label, at.level, at.pos, &node));
        OK(pyri_node_about(&node, type, &own));
        w->deeper += about && !about->known && own.known;
        if (own.known && pyri_summary_now(t->form, type, 0, at.label, &domain,
                                          &own.summary)) {
            pyri_summary_merge(s, type, &own.summary);
            return;
        }
        w->clipped += own.known;
    }
    if (at.label == 0 || at.level == 0) {
        add_model(w, v, &domain, s);
        return;
    }
    for (unsigned slot = 0; slot < PYRI_FAN; slot++) {
        place child = {at.label, at.level - 1, at.stored, {0}};
        pyri_entry e;
        int bits = t->grid->norder - (at.level - 1) * PYRI_FAN_BITS;
        if (bits < PYRI_FAN_BITS && slot >> bits)
            break;
        bool there = here ? node.slots >> slot & 1 : slot == 0;
        pyri_grid_child(t->grid, at.level, at.pos, slot, child.pos);
        if (node.flats >> slot & 1) {
            sum_flat(t, &node, slot, child.level, child.pos, s);
            continue;
        }
        if (there && here) {
            OK(pyri_node_entry(&node, slot, type, &e));
            child.label = e.about.label;
            child.stored = e.level;
        }
        child.label = there ? child.label : 0;
        sum_up(w, t, v, child, there && here ? &e.about : NULL, s);
    }
}

/* --- differences --------------------------------------------------------- */

typedef struct visit {
    const world *w;
    uint64_t a, b;
    bool seen[CELLS];
} visit;

static int
differ(void *ctx, const uint64_t *pos, const pyri_box *domain, bool flat,
       uint64_t a, uint64_t b)
{
    visit *v = ctx;
    if (flat) { /* all chunks of the domain */
        uint64_t cell[PYR_MAX_DIMS], chunk[PYR_MAX_DIMS];
        for (uint64_t i = 0; i < all_cells(v->w); i++) {
            bool in = true;
            cell_of(v->w, i, cell);
            for (int d = 0; d < v->w->ndim; d++)
                in &= cell[d] >= domain->lo[d] && cell[d] < domain->hi[d];
            if (in && inside(v->w, cell, v->w->v[v->a].shape) &&
                inside(v->w, cell, v->w->v[v->b].shape))
                v->seen[chunk_of(v->w, cell, chunk)] = true;
        }
        return 0;
    }
    uint64_t n = chunk_number(v->w, pos);
    REQUIRE(!v->seen[n]);
    v->seen[n] = true;
    for (int d = 0; d < v->w->ndim; d++)
        REQUIRE(domain->lo[d] == pos[d] * v->w->chunk[d]);
    REQUIRE(is_writer(v->w, a, v->a, n) && is_writer(v->w, b, v->b, n));
    return 0;
}

/* Exactly the chunks that differ by label, and those of one label in which a
 * shape in between has cut cells away; flats may tell of more then. */
static void
compare(world *w, pyri_reader *r, uint64_t a, uint64_t b)
{
    visit v = {w, a, b, {false}};
    const version *va = &w->v[a], *vb = &w->v[b];
    bool must[CELLS] = {false}, may[CELLS] = {false};
    uint64_t cell[PYR_MAX_DIMS], pos[PYR_MAX_DIMS];
    pyri_tree ta = tree_of(w, r, a, &vb->grid);
    pyri_tree tb = tree_of(w, r, b, &vb->grid);
    OK(pyri_tree_diff(&ta, &tb, differ, &v));
    bool shrunk = false;
    for (uint64_t l = a + 1; l <= b; l++)
        for (int d = 0; d < w->ndim; d++)
            shrunk |= w->v[l].shape[d] < w->v[l - 1].shape[d];
    for (uint64_t n = 0; n < all_cells(w); n++) {
        cell_of(w, n, cell);
        if (!inside(w, cell, va->shape) || !inside(w, cell, vb->shape))
            continue;
        uint64_t c = chunk_of(w, cell, pos);
        bool other = va->writer[c] != vb->writer[c];
        must[c] |= va->cells[n] != vb->cells[n] || (other && !w->flats);
        may[c] |= must[c] || other || (shrunk && (va->writer[c] || w->flats));
    }
    for (uint64_t n = 0; n < all_cells(w); n++) {
        REQUIRE(v.seen[n] || !must[n]);
        REQUIRE(!v.seen[n] || may[n]);
    }
}

static void
check_snapshot(world *w, uint64_t label)
{
    const version *v = &w->v[label];
    pyri_run run = {.start = {0}};
    pyri_reader *r;
    pyri_summary got, want;
    OK(pyri_engine_begin(w->engine, &r));
    for (int d = 0; d < w->ndim; d++) {
        run.block[d] = run.stride[d] = v->shape[d];
        run.count[d] = 1;
    }
    look(w, r, label, &run, true);
    look(w, r, label, &run, false);
    for (int i = 0; i < 4; i++)
        if (cut_run(w, v->shape, &run))
            look(w, r, label, &run, i % 2);
    pyri_tree t = tree_of(w, r, label, &v->grid);
    place root = {t.root, v->grid.levels, t.root_level, {0}};
    pyri_box all = {.lo = {0}};
    memcpy(all.hi, v->shape, sizeof v->shape);
    pyri_summary_init(&got);
    sum_up(w, &t, label, root, NULL, &got);
    want = model_sum(w, label, &all);
    CHECK(same_sum(&got, &want));
    compare(w, r, rng_below(&w->r, label + 1), label);
    pyri_engine_end(w->engine, r);
}

/* --- the tests ----------------------------------------------------------- */

/* Take and complete versions until all are there; keeps at most `flying` in
 * flight. */
static void
live(world *w, uint64_t flying)
{
    while (w->latest < VERSIONS) {
        bool full = w->taken == VERSIONS || w->taken - w->latest >= flying;
        if (!full && (w->taken == w->latest || rng_once_in(&w->r, 2))) {
            take(w);
            continue;
        }
        uint64_t label = rng_from(&w->r, w->latest + 1, w->taken);
        if (w->v[label].complete)
            continue;
        uint64_t was = w->latest;
        complete(w, label);
        while (was++ < w->latest)
            check_snapshot(w, was);
        check_snapshot(w, rng_below(&w->r, w->latest + 1));
        REQUIRE(check_failures == 0);
    }
}

static world w;

static void
versions_one_after_the_other_match_the_model(void)
{
    for (uint64_t i = 0; i < 12; i++) {
        begin(&w, test_seed() + i);
        live(&w, 1);
        CHECK(w.predicted == 0);
        end(&w);
    }
}

static void
versions_with_flats_match_the_model(void)
{
    int flat = 0, shared = 0, sheets = 0;
    for (uint64_t i = 0; i < 8; i++) {
        begin(&w, test_seed() + 2000 + i);
        w.flats = true;
        live(&w, 1);
        flat += w.flat;
        shared += w.flat_shared;
        sheets += w.sheets;
        end(&w);
    }
    CHECK(flat > 0 && shared > 0 && sheets > 0);
}

static void
versions_completed_in_any_order_match_the_model(void)
{
    int predicted = 0, unknown = 0, deeper = 0, clipped = 0;
    for (uint64_t i = 0; i < 25; i++) {
        begin(&w, test_seed() + 1000 + i);
        live(&w, 3 + i % 10);
        predicted += w.predicted;
        unknown += w.unknown_roots;
        deeper += w.deeper;
        clipped += w.clipped;
        end(&w);
    }
    CHECK(predicted > 0 && unknown > 0);
    CHECK(deeper > 0 && clipped > 0);
}

static void
a_node_that_is_not_there_is_damage(void)
{
    begin(&w, 1);
    pyri_reader *r;
    pyri_node node;
    const uint64_t pos[PYR_MAX_DIMS] = {0};
    OK(pyri_engine_begin(w.engine, &r));
    pyri_tree t = tree_of(&w, r, 0, &w.v[0].grid);
    FAILS(PYR_ECORRUPT, pyri_tree_get(&t, 5, 1, pos, &node));
    pyri_engine_end(w.engine, r);
    end(&w);
}

/* --- huge arrays, a chunk at a time -------------------------------------- */

/* Two axes; versions touch one chunk (of one cell) each. */
typedef struct vast {
    pyri_engine *engine;
    pyri_lineage lineage;
    uint64_t shape[4][PYR_MAX_DIMS];
    pyri_form form[4]; /* by label */
    pyri_grid grid[4];
    uint64_t pos[4][PYR_MAX_DIMS];
    pyri_claim claim[4];
} vast;

static const uint64_t unit[2] = {1, 1};

static void
begin_vast(vast *v, uint64_t y, uint64_t x)
{
    *v = (vast){.lineage = {1, {{ARRAY, 0}}}, .shape = {{y, x}}};
    const pyri_edit edit = {.kind = PYRI_EDIT_ARRAY, .array = ARRAY, .ndim = 2,
                            .shape = v->shape[0]};
    OK(pyri_form_init(&v->form[0], 2, v->shape[0], unit));
    pyri_grid_init(&v->grid[0], &v->form[0], unit);
    OK(pyri_engine_open("mem:", PYR_OPEN_CREATE, NULL, &v->engine));
    OK(pyri_engine_edit(v->engine, &edit, 1));
}

static void
end_vast(vast *v)
{
    for (int i = 0; i < 4; i++) {
        pyri_form_fini(&v->form[i]);
        pyri_claim_fini(&v->claim[i]);
    }
    pyri_engine_close(v->engine);
}

/* Take version `label`: a shape, and a chunk that it touches. */
static void
take_vast(vast *v, uint64_t label, uint64_t y, uint64_t x, uint64_t at_y,
          uint64_t at_x)
{
    const pyri_take how = {
        .array = ARRAY, .shape = v->shape[label], .grow_axis = -1};
    const pyri_run run = {{at_y, at_x}, {1, 1}, {1, 1}, {1, 1}};
    pyri_ticket ticket;
    pyri_flights below = {0};
    v->shape[label][0] = y;
    v->shape[label][1] = x;
    v->pos[label][0] = at_y;
    v->pos[label][1] = at_x;
    v->claim[label].ndim = 2;
    OK(pyri_claim_add(&v->claim[label], &run));
    OK(pyri_form_copy(&v->form[label], &v->form[label - 1]));
    OK(pyri_form_change(&v->form[label], label, v->shape[label], unit));
    pyri_grid_init(&v->grid[label], &v->form[label], unit);
    OK(pyri_engine_take(v->engine, &how, &ticket, &below));
    REQUIRE(ticket.version == label);
    pyri_flights_fini(&below);
}

static pyri_tree
tree_of_vast(vast *v, pyri_reader *r, uint64_t label)
{
    return (pyri_tree){.engine = v->engine,
                       .reader = r,
                       .lineage = &v->lineage,
                       .form = &v->form[label],
                       .grid = &v->grid[label],
                       .type = type,
                       .root = label,
                       .root_level = v->grid[label].levels};
}

static int
empty_leaf(void *ctx, const pyri_touch *touch, uint64_t prev, uint64_t base,
           const pyri_flat *flat, pyri_leaf *leaf)
{
    (void)ctx, (void)touch, (void)prev, (void)base, (void)flat;
    leaf->about.known = false;
    return 0;
}

/* Build and complete a version on a base, with all in between in flight. */
static void
complete_vast(vast *v, uint64_t label, uint64_t base)
{
    pyri_rival rivals[4];
    pyri_touch touch = {.payload = 0};
    pyri_reader *r;
    size_t n = 0;
    for (uint64_t l = label - 1; l > base; l--)
        rivals[n++] = (pyri_rival){l, v->grid[l].levels, v->shape[l],
                                   v->claim[l]};
    memcpy(touch.pos, v->pos[label], sizeof touch.pos);
    OK(pyri_engine_begin(v->engine, &r));
    pyri_tree t = tree_of_vast(v, r, base);
    pyri_build b = {.base = &t, .form = &v->form[label],
                    .grid = &v->grid[label], .array = ARRAY, .label = label,
                    .rivals = rivals, .nrivals = n, .touches = &touch,
                    .ntouches = 1, .leaf = empty_leaf};
    OK(pyri_build_run(&b));
    pyri_engine_end(v->engine, r);
    pyri_complete c = {.array = ARRAY, .version = label,
                       .shape = v->shape[label], .nodes = b.nodes,
                       .nnodes = b.nnodes, .record = {"record", 6}};
    OK(pyri_engine_complete(v->engine, &c));
    pyri_build_fini(&b);
}

typedef struct found {
    int hits;
    uint64_t label; /* 0: no leaf */
} found;

static int
keep_hit(void *ctx, const pyri_hit *hit)
{
    found *f = ctx;
    f->hits++;
    f->label = hit->leaf ? hit->node.label : 0;
    return 0;
}

/* Who wrote that chunk, as of a version? */
static uint64_t
writer_of(vast *v, uint64_t label, uint64_t y, uint64_t x)
{
    const pyri_run cell = {{y, x}, {1, 1}, {1, 1}, {1, 1}};
    found f = {0, 0};
    pyri_reader *r;
    OK(pyri_engine_begin(v->engine, &r));
    pyri_tree t = tree_of_vast(v, r, label);
    OK(pyri_tree_find(&t, &cell, keep_hit, &f));
    pyri_engine_end(v->engine, r);
    CHECK(f.hits == 1);
    return f.label;
}

/* A version in flight whose tree is many levels lower than ours. */
static void
a_small_tree_in_flight_below_a_huge_one_is_found(void)
{
    static vast v;
    begin_vast(&v, 1, 4);
    take_vast(&v, 1, 1, 4, 0, 2);
    take_vast(&v, 2, 1000, 1ull << 40, 999, 1ull << 39);
    take_vast(&v, 3, 1000, 1ull << 50, 3, 1ull << 49);
    complete_vast(&v, 3, 0);
    complete_vast(&v, 2, 0);
    complete_vast(&v, 1, 0);
    for (uint64_t label = 1; label <= 3; label++) {
        CHECK(writer_of(&v, label, 0, 2) == 1);
        CHECK(writer_of(&v, label, 0, 1) == 0);
    }
    for (uint64_t label = 2; label <= 3; label++) {
        CHECK(writer_of(&v, label, 999, 1ull << 39) == 2);
        CHECK(writer_of(&v, label, 999, (1ull << 39) + 1) == 0);
    }
    CHECK(writer_of(&v, 3, 3, 1ull << 49) == 3);
    end_vast(&v);
}

/* The same, with each version published before the next one is taken. */
static void
a_small_tree_published_below_a_huge_one_is_found(void)
{
    static vast v;
    begin_vast(&v, 1, 4);
    take_vast(&v, 1, 1, 4, 0, 2);
    complete_vast(&v, 1, 0);
    take_vast(&v, 2, 1000, 1ull << 40, 999, 1ull << 39);
    complete_vast(&v, 2, 1);
    take_vast(&v, 3, 1000, 1ull << 40, 0, 3);
    complete_vast(&v, 3, 2);
    CHECK(writer_of(&v, 2, 0, 2) == 1 && writer_of(&v, 3, 0, 2) == 1);
    CHECK(writer_of(&v, 2, 999, 1ull << 39) == 2);
    CHECK(writer_of(&v, 3, 999, 1ull << 39) == 2);
    CHECK(writer_of(&v, 2, 0, 3) == 0 && writer_of(&v, 3, 0, 3) == 3);
    end_vast(&v);
}

/* An axis that once needed every bit of an index, shortened, beside one that
 * makes the tree higher still. */
static void
chunks_along_an_axis_that_once_had_64_bits_are_found(void)
{
    static vast v;
    begin_vast(&v, UINT64_MAX - 1, 1);
    take_vast(&v, 1, 100, 1ull << 40, 50, 7);
    complete_vast(&v, 1, 0);
    CHECK(writer_of(&v, 1, 50, 7) == 1);
    CHECK(writer_of(&v, 1, 51, 7) == 0);
    end_vast(&v);
}

TESTS(T(versions_one_after_the_other_match_the_model),
      T(versions_with_flats_match_the_model),
      T(versions_completed_in_any_order_match_the_model),
      T(a_node_that_is_not_there_is_damage),
      T(a_small_tree_in_flight_below_a_huge_one_is_found),
      T(a_small_tree_published_below_a_huge_one_is_found),
      T(chunks_along_an_axis_that_once_had_64_bits_are_found))
