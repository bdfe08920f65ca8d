/*
 * Chains: leaves of versions that were made while others were in flight, and
 * folded ones, laid over each other must show what a plain model holds.
 *
 * One chunk of one axis. Version v sets some of its cells to v.
 */
#include "array/chain.h"
#include "base/checked.h"
#include "support/check.h"
#include "support/rng.h"

enum { CELLS = 12, VERSIONS = 25, ARRAY = 5, MANY = 6000 };

static const uint64_t shape[1] = {CELLS}, chunk[1] = {CELLS}, pos[1] = {0};
static const pyri_box whole = {{0}, {CELLS}};

typedef struct world {
    rng r;
    pyri_engine *engine;
    pyri_lineage lineage;
    pyri_form form;
    pyri_grid grid;
    pyri_reader *reader;
    pyri_tree tree;
    uint64_t latest;
    uint64_t cells[VERSIONS + 1][CELLS];
    uint64_t base[VERSIONS + 1]; /* the snapshot that it was made on */
    int hops, folds;
} world;

static void
begin(world *w, uint64_t seed)
{
    const pyri_edit edit = {
        .kind = PYRI_EDIT_ARRAY, .array = ARRAY, .ndim = 1, .shape = shape};
    *w = (world){.r = rng_of(seed), .lineage = {1, {{ARRAY, 0}}}};
    OK(pyri_form_init(&w->form, 1, shape, chunk));
    pyri_grid_init(&w->grid, &w->form, chunk);
    OK(pyri_engine_open("mem:", PYR_OPEN_CREATE, NULL, &w->engine));
    OK(pyri_engine_edit(w->engine, &edit, 1));
    OK(pyri_engine_begin(w->engine, &w->reader));
    w->tree = (pyri_tree){.engine = w->engine,
                          .reader = w->reader,
                          .lineage = &w->lineage,
                          .form = &w->form,
                          .grid = &w->grid,
                          .type = PYR_U64};
}

static void
end(world *w)
{
    pyri_engine_end(w->engine, w->reader);
    pyri_engine_close(w->engine);
    pyri_form_fini(&w->form);
}

/* Store a leaf as the next version. */
static void
put(world *w, uint64_t prev, pyri_frag *frags, int n)
{
    uint8_t key[PYRI_MAX_KEY];
    uint64_t label = ++w->latest;
    pyri_leaf leaf = {.about.label = label, .prev = prev, .frags = frags,
                      .n = n};
    pyri_bytes k = {key, pyri_node_key(ARRAY, label, 0, 1, pos, key)};
    pyri_buf b = {0};
    pyri_ticket ticket;
    pyri_flights below = {0};
    const pyri_take take = {.array = ARRAY, .grow_axis = -1};
    pyri_leaf_encode(k, &leaf, PYR_U64, 1, &whole, &b);
    pyri_node_put node = {k, {b.data, b.size}};
    pyri_complete c = {.array = ARRAY, .version = label, .shape = shape,
                       .nodes = &node, .nnodes = 1, .record = {"r", 1}};
    OK(pyri_engine_take(w->engine, &take, &ticket, &below));
    OK(pyri_engine_complete(w->engine, &c));
    pyri_flights_fini(&below);
    pyri_buf_fini(&b);
}

static void
load(world *w, uint64_t label, const pyri_box *box, uint64_t after,
     pyri_chain *c)
{
    pyri_node node;
    OK(pyri_tree_get(&w->tree, label, 0, pos, &node));
    OK(pyri_chain_load(c, &w->tree, pos, &node, box, after));
}

/* --- painting ------------------------------------------------------------ */

/* Fragments of one value keep it; of masked ones it is their blob's name, and
 * every other cell is set. */
static pyri_frag
frag_of(uint64_t version, uint64_t lo, uint64_t hi, uint64_t value, bool masked)
{
    pyri_frag f = {.version = version, .box = {{lo}, {hi}}};
    if (masked) {
        f.kind = PYRI_FRAG_PLAIN;
        f.masked = true;
        f.ref[0] = value;
        f.stored = 1;
    } else {
        f.bits = value;
    }
    return f;
}

static void
paint_frag(const pyri_frag *f, const pyri_box *shown, uint64_t *cells)
{
    for (uint64_t x = shown->lo[0]; x < shown->hi[0]; x++)
        if (!f->masked)
            cells[x] = f->bits;
        else if ((x + f->version) % 2)
            cells[x] = f->ref[0];
}

static void
paint(const pyri_chain *c, uint64_t *cells)
{
    for (int i = c->n - 1; i >= 0; i--)
        paint_frag(&c->links[i].frag, &c->links[i].shown, cells);
}

/* --- making versions ----------------------------------------------------- */

/* The chunk as of a snapshot, written down: a fragment per run of equals. */
static int
fold(world *w, uint64_t label, pyri_frag *out)
{
    const uint64_t *cells = w->cells[label];
    int n = 0;
    for (uint64_t lo = 0, hi; lo < CELLS; lo = hi) {
        for (hi = lo + 1; hi < CELLS && cells[hi] == cells[lo];)
            hi++;
        out[n] = frag_of(label, lo, hi, cells[lo], false);
        out[n++].fold = true;
    }
    w->folds++;
    return n;
}

/* Make the next version the way a writer does, knowing its base and that all
 * above it were in flight. */
static void
write_next(world *w)
{
    static pyri_frag frags[4 * CELLS * VERSIONS];
    uint64_t v = w->latest + 1, lo = rng_below(&w->r, CELLS);
    uint64_t hi = rng_once_in(&w->r, 8) ? (lo = 0, CELLS)
                                        : rng_from(&w->r, lo + 1, CELLS);
    bool masked = rng_once_in(&w->r, 4);
    pyri_frag own = frag_of(v, lo, hi, v, masked);
    pyri_chain all = {0}, below = {0};
    w->base[v] = rng_from(&w->r, w->base[v - 1], v - 1);
    memcpy(w->cells[v], w->cells[v - 1], sizeof w->cells[v]);
    paint_frag(&own, &own.box, w->cells[v]);
    uint64_t prev = w->base[v] < v - 1 ? v - 1 : 0, floor = 0;
    bool hides = !masked && hi - lo == CELLS;
    OK(pyri_chain_add(&all, &w->form, &own));
    if (!hides && w->base[v] && rng_once_in(&w->r, 3))
        floor = rng_from(&w->r, 1, w->base[v]);
    if (!hides && !prev && w->base[v])
        load(w, w->base[v], NULL, floor, &below);
    for (int i = 0; i < below.n; i++)
        OK(pyri_chain_add(&all, &w->form, &below.links[i].frag));
    int n = floor ? fold(w, floor, frags) : 0;
    for (int i = 0; i < n; i++)
        OK(pyri_chain_add(&all, &w->form, &frags[i]));
    pyri_chain_prune(&all, 1);
    for (int i = 0; i < all.n; i++)
        frags[i] = all.links[i].frag;
    w->hops += prev && !hides;
    put(w, hides ? 0 : prev, frags, all.n);
    pyri_chain_fini(&all);
    pyri_chain_fini(&below);
}

static void
check_version(world *w, uint64_t v)
{
    pyri_chain c = {0};
    uint64_t got[CELLS] = {0};
    load(w, v, NULL, 0, &c);
    paint(&c, got);
    REQUIRE(memcmp(got, w->cells[v], sizeof got) == 0);
    for (int i = 1; i < c.n; i++) /* newest first */
        REQUIRE(c.links[i].frag.version <= c.links[i - 1].frag.version);

    pyri_chain_prune(&c, 1);
    memset(got, 0, sizeof got);
    paint(&c, got);
    REQUIRE(memcmp(got, w->cells[v], sizeof got) == 0);

    uint64_t after = rng_below(&w->r, v); /* on top of an older snapshot */
    pyri_chain_reset(&c);
    load(w, v, NULL, after, &c);
    memcpy(got, w->cells[after], sizeof got);
    paint(&c, got);
    REQUIRE(memcmp(got, w->cells[v], sizeof got) == 0);
    for (int i = 0; i < c.n; i++)
        REQUIRE(c.links[i].frag.version > after);
    pyri_chain_fini(&c);
}

/* Of a box, no more is loaded than what can be seen of it. */
static void
check_box(world *w, uint64_t v)
{
    pyri_chain c = {0};
    uint64_t got[CELLS] = {0};
    pyri_box box;
    box.lo[0] = rng_below(&w->r, CELLS);
    box.hi[0] = rng_from(&w->r, box.lo[0] + 1, CELLS);
    load(w, v, &box, 0, &c);
    paint(&c, got);
    for (uint64_t x = box.lo[0]; x < box.hi[0]; x++)
        REQUIRE(got[x] == w->cells[v][x]);
    for (int i = 0; i < c.n; i++) {
        const pyri_link *link = &c.links[i];
        REQUIRE(pyri_box_overlaps(1, &link->frag.box, &box));
        if (!link->frag.masked && pyri_box_contains(1, &link->shown, &box))
            REQUIRE(i == c.n - 1);
    }
    pyri_chain_fini(&c);
}

static void
chains_show_what_the_model_holds(void)
{
    static world w;
    int hops = 0, folds = 0;
    for (uint64_t i = 0; i < 100; i++) {
        begin(&w, test_seed() + i);
        while (w.latest < VERSIONS)
            write_next(&w);
        for (uint64_t v = 1; v <= VERSIONS; v++) {
            check_version(&w, v);
            check_box(&w, v);
        }
        hops += w.hops;
        folds += w.folds;
        end(&w);
    }
    CHECK(hops > 100 && folds > 100);
}

/* --- the rules, one by one ----------------------------------------------- */

static void
check_versions(const pyri_chain *c, const uint64_t *want, int n)
{
    REQUIRE(c->n == n);
    for (int i = 0; i < n; i++)
        CHECK(c->links[i].frag.version == want[i]);
}

static void
prev_comes_between_newer_and_older_fragments(void)
{
    static world w;
    pyri_chain c = {0};
    begin(&w, 1);
    pyri_frag one[] = {frag_of(1, 0, 3, 1, false)};
    put(&w, 0, one, 1);
    pyri_frag two[] = {frag_of(2, 1, 4, 2, false), one[0]};
    put(&w, 0, two, 2);
    pyri_frag three[] = {frag_of(3, 2, 5, 3, false)}; /* 2 was in flight */
    put(&w, 2, three, 1);
    load(&w, 3, NULL, 0, &c);
    check_versions(&c, (const uint64_t[]){3, 2, 1}, 3);
    pyri_chain_fini(&c);
    end(&w);
}

/* What was folded below `prev` makes older fragments needless, however far
 * the chain goes. */
static void
nothing_as_old_as_the_floor_is_taken_from_prev(void)
{
    static world w;
    pyri_chain c = {0};
    begin(&w, 1);
    pyri_frag one[] = {frag_of(1, 0, 3, 1, false)};
    put(&w, 0, one, 1);
    pyri_frag two[] = {frag_of(2, 1, 4, 2, false), one[0]};
    put(&w, 0, two, 2);
    pyri_frag three[] = {frag_of(3, 2, 5, 3, false)};
    put(&w, 2, three, 1);
    pyri_frag four[] = {frag_of(4, 3, 6, 4, false),
                        frag_of(1, 0, 3, 1, false)}; /* folded as of 1 */
    put(&w, 3, four, 2);
    load(&w, 4, NULL, 0, &c);
    check_versions(&c, (const uint64_t[]){4, 3, 2, 1}, 4);
    pyri_chain_reset(&c);
    load(&w, 4, NULL, 2, &c);
    check_versions(&c, (const uint64_t[]){4, 3}, 2);
    pyri_chain_fini(&c);
    end(&w);
}

static void
a_link_shows_what_its_snapshot_has_not_cut(void)
{
    static world w;
    const uint64_t less[1] = {7};
    pyri_chain c = {0};
    pyri_frag old = frag_of(1, 2, 10, 1, false), new = old;
    pyri_frag gone = frag_of(1, 8, 10, 1, false);
    new.version = 6;
    begin(&w, 1);
    OK(pyri_form_change(&w.form, 5, less, chunk));
    OK(pyri_form_change(&w.form, 6, shape, chunk));
    OK(pyri_chain_add(&c, &w.form, &new));
    OK(pyri_chain_add(&c, &w.form, &old));
    OK(pyri_chain_add(&c, &w.form, &gone));
    CHECK(c.links[0].shown.lo[0] == 2 && c.links[0].shown.hi[0] == 10);
    CHECK(c.links[1].shown.lo[0] == 2 && c.links[1].shown.hi[0] == 7);
    CHECK(pyri_box_empty(1, &c.links[2].shown));
    pyri_chain_prune(&c, 1);
    check_versions(&c, (const uint64_t[]){6}, 1);
    pyri_chain_fini(&c);
    end(&w);
}

static void
prune_keeps_what_a_mask_lets_through(void)
{
    static world w;
    pyri_chain c = {0};
    pyri_frag under = frag_of(1, 2, 10, 1, false);
    pyri_frag mask = frag_of(2, 2, 10, 2, true);
    pyri_frag over = frag_of(3, 2, 9, 3, false);
    begin(&w, 1);
    OK(pyri_chain_add(&c, &w.form, &over));
    OK(pyri_chain_add(&c, &w.form, &mask));
    OK(pyri_chain_add(&c, &w.form, &under));
    pyri_chain_prune(&c, 1);
    check_versions(&c, (const uint64_t[]){3, 2, 1}, 3);
    under.box.hi[0] = 9;
    pyri_chain_reset(&c);
    OK(pyri_chain_add(&c, &w.form, &over));
    OK(pyri_chain_add(&c, &w.form, &mask));
    OK(pyri_chain_add(&c, &w.form, &under));
    pyri_chain_prune(&c, 1);
    check_versions(&c, (const uint64_t[]){3, 2}, 2);
    pyri_chain_fini(&c);
    end(&w);
}

static void
a_leaf_that_lies_on_itself_is_damage(void)
{
    static world w;
    pyri_chain c = {0};
    pyri_node node;
    begin(&w, 1);
    pyri_frag one[] = {frag_of(1, 0, 3, 1, false)};
    put(&w, 1, one, 1);
    OK(pyri_tree_get(&w.tree, 1, 0, pos, &node));
    FAILS(PYR_ECORRUPT, pyri_chain_load(&c, &w.tree, pos, &node, NULL, 0));
    pyri_chain_fini(&c);
    end(&w);
}

/* Each of them was in flight when the next one was made. */
static void
any_number_of_versions_in_flight_can_be_read_later(void)
{
    static world w;
    pyri_chain c = {0};
    begin(&w, 1);
    for (uint64_t v = 1; v <= MANY; v++) {
        pyri_frag own[] = {frag_of(v, v % CELLS, v % CELLS + 1, v, false)};
        put(&w, v - 1, own, 1);
    }
    load(&w, MANY, NULL, 0, &c);
    CHECK(c.n == MANY);
    pyri_chain_fini(&c);
    end(&w);
}

TESTS(T(chains_show_what_the_model_holds),
      T(prev_comes_between_newer_and_older_fragments),
      T(nothing_as_old_as_the_floor_is_taken_from_prev),
      T(a_link_shows_what_its_snapshot_has_not_cut),
      T(prune_keeps_what_a_mask_lets_through),
      T(a_leaf_that_lies_on_itself_is_damage),
      T(any_number_of_versions_in_flight_can_be_read_later))
