/*
 * What a build asks of its base: level by level, in as few calls as there are
 * levels, and nothing that is built depends on it.
 *
 * The engine here is a list of nodes that counts what it is asked for. Arrays
 * have two axes and chunks of one cell; a node of level l covers 4^l x 4^l of
 * them.
 */
#include "support/check.h"
#include "tree/tree.h"

enum { SIDE = 256, LEVELS = 4, ARRAY = 77, CLONE = 78, MADE = 8, MANY = 1024 };

static const uint64_t unit[2] = {1, 1};

/* --- an engine that counts ----------------------------------------------- */

static struct {
    pyri_build made[MADE]; /* by label; their nodes are the store */
    size_t calls, keys;
    size_t blind;          /* which call finds nothing; 0: all do */
    uint64_t label;        /* one node is damaged: of this version, if not 0, */
    int level;             /* of this level, */
    uint64_t pos[2];       /* here; */
    int damage;            /* or calls about it fail with this code */
    uint8_t torn[4096];
} store;

static bool
is_damaged(pyri_bytes key)
{
    uint8_t bad[PYRI_MAX_KEY];
    size_t size = pyri_node_key(ARRAY, store.label, store.level, 2, store.pos,
                                bad);
    return store.label && key.size == size &&
           memcmp(key.data, bad, size) == 0;
}

static void
find(pyri_node_get *get)
{
    get->found = false;
    for (int v = 0; v < MADE; v++)
        for (size_t i = 0; i < store.made[v].nnodes; i++) {
            const pyri_node_put *put = &store.made[v].nodes[i];
            if (put->key.size != get->key.size ||
                memcmp(put->key.data, get->key.data, get->key.size) != 0)
                continue;
            get->found = store.calls != store.blind;
            get->value = put->value;
            return;
        }
}

static int
get_nodes(pyri_engine *e, pyri_reader *r, pyri_node_get *gets, size_t n)
{
    (void)e, (void)r;
    store.calls++;
    store.keys += n;
    for (size_t i = 0; i < n; i++) {
        find(&gets[i]);
        if (!gets[i].found || !is_damaged(gets[i].key))
            continue;
        if (store.damage)
            return pyri_fail(store.damage, "a call fails");
        REQUIRE(gets[i].value.size <= sizeof store.torn);
        memcpy(store.torn, gets[i].value.data, gets[i].value.size);
        store.torn[gets[i].value.size - 1] ^= 1;
        gets[i].value.data = store.torn;
    }
    return 0;
}

static const pyri_engine_ops counting = {.scheme = "count",
                                         .get_nodes = get_nodes};

/* --- an array ------------------------------------------------------------ */

static pyri_engine engine = {.ops = &counting};
static pyri_lineage lineage;
static uint64_t array; /* that versions are made of */
static pyri_form form[MADE];
static pyri_grid grid[MADE];
static uint64_t shape[MADE][PYR_MAX_DIMS];
static pyri_tree base; /* of the newest build */
static pyri_touch touches[MANY];
static size_t ntouches;
static int alive_calls, alive_answer;

static void
end(void)
{
    for (int i = 0; i < MADE; i++) {
        pyri_build_fini(&store.made[i]);
        pyri_form_fini(&form[i]);
    }
    memset(&store, 0, sizeof store);
    memset(form, 0, sizeof form);
}

static void
begin(uint64_t y, uint64_t x)
{
    end(); /* of a test that left early */
    lineage = (pyri_lineage){1, {{ARRAY, 0}}};
    array = ARRAY;
    alive_calls = alive_answer = 0;
    ntouches = 0;
    for (int i = 0; i < MADE; i++) {
        shape[i][0] = y;
        shape[i][1] = x;
        OK(pyri_form_init(&form[i], 2, shape[i], unit));
        pyri_grid_init(&grid[i], &form[i], unit);
    }
}

/* From that version on it is larger. */
static void
grow(int from, uint64_t y, uint64_t x)
{
    for (int i = from; i < MADE; i++) {
        shape[i][0] = y;
        shape[i][1] = x;
        OK(pyri_form_change(&form[i], (uint64_t)from, shape[i], unit));
        pyri_grid_init(&grid[i], &form[i], unit);
    }
}

static void
touch(uint64_t y, uint64_t x)
{
    REQUIRE(ntouches < MANY);
    touches[ntouches++] = (pyri_touch){.pos = {y, x}};
}

static int
make_leaf(void *ctx, const pyri_touch *t, uint64_t prev, uint64_t below,
          const pyri_flat *flat, pyri_leaf *leaf)
{
    uint64_t label = *(const uint64_t *)ctx;
    (void)prev, (void)below, (void)flat;
    leaf->about.known = leaf->about.digested = true;
    leaf->about.digest = (pyri_digest){label, t->pos[0] * SIDE + t->pos[1]};
    pyri_summary_init(&leaf->about.summary);
    pyri_summary_add_same(&leaf->about.summary, PYR_U16, 0, label, 1);
    return 0;
}

static int
alive(void *ctx)
{
    (void)ctx;
    alive_calls++;
    return alive_answer;
}

static pyri_build
build_of(uint64_t *label, uint64_t on, pyri_rival *rival)
{
    base = (pyri_tree){.engine = &engine,
                       .reader = (pyri_reader *)(void *)&store,
                       .lineage = &lineage,
                       .form = &form[on],
                       .grid = &grid[on],
                       .type = PYR_U16,
                       .root = on,
                       .root_level = on ? grid[on].levels : 0};
    store.calls = store.keys = 0;
    return (pyri_build){.base = &base,
                        .form = &form[*label],
                        .grid = &grid[*label],
                        .array = array,
                        .label = *label,
                        .rivals = rival,
                        .nrivals = rival ? 1 : 0,
                        .touches = touches,
                        .ntouches = ntouches,
                        .leaf = make_leaf,
                        .alive = alive,
                        .ctx = label};
}

static void
same_bytes(const pyri_build *a, const pyri_build *b)
{
    REQUIRE(a->nnodes == b->nnodes && a->bytes.size == b->bytes.size);
    CHECK(memcmp(a->bytes.data, b->bytes.data, a->bytes.size) == 0);
}

/* Make the version of what was touched, on another one, and keep it. If the
 * nodes of a level are not gathered, it must be the same. */
static const pyri_build *
make(uint64_t label, uint64_t on, pyri_rival *rival)
{
    pyri_build *kept = &store.made[label], without;
    *kept = build_of(&label, on, rival);
    OK(pyri_build_run(kept));
    size_t calls = store.calls, keys = store.keys;
    for (store.blind = 2; store.blind > 0; store.blind--) {
        without = build_of(&label, on, rival);
        OK(pyri_build_run(&without));
        same_bytes(kept, &without);
        CHECK(store.calls >= calls);
        pyri_build_fini(&without);
    }
    store.calls = calls;
    store.keys = keys;
    ntouches = 0;
    return kept;
}

/* Build and throw away: what comes of it. */
static int
attempt(uint64_t label, uint64_t on, bool tolerant, pyri_about *root)
{
    pyri_build b = build_of(&label, on, NULL);
    b.tolerant = tolerant;
    int err = pyri_build_run(&b);
    *root = b.root;
    pyri_build_fini(&b);
    return err;
}

/* Chunks far from each other: 1, 16, 256 and 1024 nodes of the four levels. */
static void
touch_far_and_wide(void)
{
    for (uint64_t y = 0; y < SIDE; y += 8)
        for (uint64_t x = 0; x < SIDE; x += 8)
            touch(y, x);
}

/* A rival that touches, seen from chunk (0, 1), the next chunk and the next
 * node of each level. */
static const uint64_t aside[LEVELS][2] = {{0, 0}, {0, 8}, {0, 32}, {0, 128}};

static void
touch_aside(void)
{
    for (int i = 0; i < LEVELS; i++)
        touch(aside[i][0], aside[i][1]);
}

static pyri_rival
rival_aside(uint64_t label)
{
    pyri_rival r = {.label = label, .levels = LEVELS, .shape = shape[label]};
    r.claim.ndim = 2;
    for (int i = 0; i < LEVELS; i++) {
        const pyri_run run = {{aside[i][0], aside[i][1]}, {1, 1}, {1, 1},
                              {1, 1}};
        OK(pyri_claim_add(&r.claim, &run));
    }
    return r;
}

/* Version 3, which had 2 for a rival, does not know what 2 wrote. */
static void
predict(void)
{
    begin(SIDE, SIDE);
    touch_far_and_wide();
    make(1, 0, NULL);
    touch_aside();
    make(2, 1, NULL);
    pyri_rival r = rival_aside(2);
    touch(0, 1);
    const pyri_build *b = make(3, 1, &r);
    pyri_claim_fini(&r.claim);
    CHECK(!b->root.known && !b->root.digested);
}

/* --- tests --------------------------------------------------------------- */

static void
a_chunk_costs_a_call_per_level(void)
{
    begin(SIDE, SIDE);
    touch(3, 200);
    CHECK(make(1, 0, NULL)->nnodes == LEVELS + 1);
    CHECK(store.calls == 0);
    touch(3, 200);
    make(2, 1, NULL);
    CHECK(store.calls == LEVELS && store.keys == LEVELS);
    touch(4, 200); /* in another node of level 1, that is not there */
    make(3, 2, NULL);
    CHECK(store.calls == LEVELS - 1 && store.keys == LEVELS - 1);
    end();
}

static void
many_chunks_cost_a_call_per_level_and_256_nodes(void)
{
    begin(SIDE, SIDE);
    touch_far_and_wide();
    make(1, 0, NULL);
    touch_far_and_wide();
    make(2, 1, NULL);
    CHECK(store.keys == 1 + 16 + 256 + 1024);
    CHECK(store.calls == 1 + 1 + 1 + 4);
    end();
}

static void
children_that_were_in_flight_come_along(void)
{
    predict();
    touch(0, 1);
    const pyri_build *b = make(4, 3, NULL);
    CHECK(store.calls == LEVELS + 1); /* the last one for a leaf */
    CHECK(store.keys == LEVELS + 4);
    CHECK(b->root.known && b->root.digested);
    end();
}

static void
what_a_rival_will_replace_is_not_got(void)
{
    predict();
    pyri_rival r = rival_aside(4);
    touch(0, 1);
    make(5, 3, &r);
    pyri_claim_fini(&r.claim);
    CHECK(store.calls == LEVELS && store.keys == LEVELS);
    end();
}

static void
a_tree_that_has_grown_is_found(void)
{
    begin(4, 4);
    touch(1, 1);
    make(1, 0, NULL);
    grow(2, SIDE, SIDE);
    touch(SIDE - 1, SIDE - 1); /* the old root is asked what it knows */
    const pyri_build *b = make(2, 1, NULL);
    CHECK(store.calls == 1 && store.keys == 1);
    CHECK(b->root.known);
    touch(2, 2); /* or is on the way */
    make(3, 1, NULL);
    CHECK(store.calls == 1 && store.keys == 1);
    touch(SIDE - 1, 1); /* the entry of a root of level 1 is that of level 4 */
    make(4, 2, NULL);
    CHECK(store.calls == 1 && store.keys == 1);
    end();
}

static void
nodes_of_an_ancestor_are_found(void)
{
    begin(SIDE, SIDE);
    touch_far_and_wide();
    make(1, 0, NULL);
    lineage = (pyri_lineage){2, {{ARRAY, 0}, {CLONE, 1}}};
    array = CLONE;
    touch(0, 0);
    make(2, 1, NULL);
    touch(8, 8);
    make(3, 2, NULL);
    CHECK(store.calls == LEVELS && store.keys == LEVELS);
    end();
}

static void
what_is_under_a_sheet_is_got_one_by_one(void)
{
    begin(SIDE, SIDE);
    touch_far_and_wide();
    make(1, 0, NULL);
    pyri_sheet sheet = {{{16, 16}, {32, 32}}, 5};
    uint64_t label = 2;
    touch(0, 0);
    pyri_build b = build_of(&label, 1, NULL);
    b.sheets = &sheet;
    b.nsheets = 1;
    b.flat = true;
    OK(pyri_build_run(&b));
    CHECK(b.root.known);
    CHECK(store.calls == LEVELS);
    pyri_build_fini(&b);
    sheet.box = (pyri_box){{128, 128}, {136, 136}};
    b = build_of(&label, 1, NULL);
    b.sheets = &sheet;
    b.nsheets = 1;
    b.flat = true;
    OK(pyri_build_run(&b));
    CHECK(b.root.known);
    CHECK(store.calls == LEVELS + 2);
    pyri_build_fini(&b);
    ntouches = 0;
    end();
}

/* Damage on the way: met as it always was, also if it is the engine that
 * tells of it. */
static void
damage_on_the_way_fails_but_for_who_tolerates_it(void)
{
    static const int how[] = {0, PYR_ECORRUPT};
    pyri_about root;
    predict();
    for (int i = 0; i < 2; i++) {
        touch(0, 1);
        touch(8, 8);
        store.label = 3;
        store.level = 2;
        store.damage = how[i];
        FAILS(PYR_ECORRUPT, attempt(4, 3, false, &root));
        OK(attempt(4, 3, true, &root));
        CHECK(!root.known); /* children were lost */
        ntouches = 0;
    }
    end();
}

static void
damage_beside_the_way_leaves_its_entry_unknown(void)
{
    static const int how[] = {0, PYR_ECORRUPT};
    pyri_about root;
    predict();
    for (int i = 0; i < 2; i++) {
        touch(0, 1);
        store.label = 2;
        store.level = 1;
        store.pos[1] = 2;
        store.damage = how[i];
        OK(attempt(4, 3, false, &root));
        CHECK(!root.known);
        ntouches = 0;
    }
    end();
}

static void
failures_of_the_engine_and_of_the_lease_are_passed_on(void)
{
    pyri_about root;
    predict();
    touch(0, 1);
    store.label = 3;
    store.level = 1;
    store.damage = PYR_EIO;
    FAILS(PYR_EIO, attempt(4, 3, true, &root));
    store.label = 0;
    ntouches = 0;
    touch_far_and_wide();
    alive_calls = 0;
    alive_answer = PYR_EFENCED;
    FAILS(PYR_EFENCED, attempt(4, 3, true, &root));
    CHECK(alive_calls == 1 && store.keys < 1 + 16 + 256 + 256);
    ntouches = 0;
    end();
}

TESTS(T(a_chunk_costs_a_call_per_level),
      T(many_chunks_cost_a_call_per_level_and_256_nodes),
      T(children_that_were_in_flight_come_along),
      T(what_a_rival_will_replace_is_not_got),
      T(a_tree_that_has_grown_is_found),
      T(nodes_of_an_ancestor_are_found),
      T(what_is_under_a_sheet_is_got_one_by_one),
      T(damage_on_the_way_fails_but_for_who_tolerates_it),
      T(damage_beside_the_way_leaves_its_entry_unknown),
      T(failures_of_the_engine_and_of_the_lease_are_passed_on))
