/*
 * Nodes and leaves as bytes: they come back whole, and damage is noticed.
 */
#include "base/bytes.h"
#include "support/check.h"
#include "support/rng.h"
#include "tree/node_layout.h"
#include "tree/tree.h"

static const pyr_type type = PYR_I32;

static void
pick_about(rng *r, pyri_about *a)
{
    *a = (pyri_about){.label = rng_from(r, 1, 1ull << rng_from(r, 1, 60)),
                      .known = rng_once_in(r, 2),
                      .digested = rng_once_in(r, 2)};
    if (a->digested)
        a->digest = (pyri_digest){rng_next(r), rng_next(r)};
    pyri_summary_init(&a->summary);
    if (!a->known)
        return;
    int32_t cells[6];
    bool same = rng_once_in(r, 3);
    for (int i = 0; i < 6; i++)
        cells[i] = (int32_t)(same && i ? (uint64_t)cells[0] : rng_next(r));
    pyri_summary_add(&a->summary, type, 0, cells, rng_from(r, 1, 6));
}

static bool
same_about(const pyri_about *a, const pyri_about *b)
{
    uint8_t x[PYRI_SUMMARY_BYTES] = {0}, y[PYRI_SUMMARY_BYTES] = {0};
    if (a->known && b->known) {
        pyri_summary_encode(&a->summary, type, x);
        pyri_summary_encode(&b->summary, type, y);
    }
    return a->label == b->label && a->known == b->known &&
           a->digested == b->digested &&
           (!a->digested ||
            (a->digest.lo == b->digest.lo && a->digest.hi == b->digest.hi)) &&
           memcmp(x, y, sizeof x) == 0;
}

/* --- inner nodes --------------------------------------------------------- */

typedef struct inner {
    uint8_t key[PYRI_MAX_KEY];
    size_t key_size;
    pyri_about own;
    pyri_entry entries[PYRI_FAN];
    int n, level;
    pyri_buf bytes;
} inner;

static pyri_bytes
key_of(const inner *i)
{
    return (pyri_bytes){i->key, i->key_size};
}

static void
make_flat(const inner *in, rng *r, pyri_entry *e)
{
    pyri_flat f = {.label = 1 + rng_below(r, in->own.label),
                   .bits = rng_below(r, 100),
                   .shape = {rng_from(r, 1, 1000), rng_next(r) >> 1}};
    pyri_box region = {.hi = {f.shape[0], 3}};
    e->level = in->level - 1;
    e->flat = true;
    memcpy(e->shape, f.shape, sizeof e->shape);
    pyri_flat_about(&f, 2, type, 0, &region, &e->about);
}

static void
make(inner *in, rng *r)
{
    const uint64_t pos[2] = {rng_next(r) >> rng_below(r, 64), 3};
    *in = (inner){.level = (int)rng_from(r, 1, 20)};
    pick_about(r, &in->own);
    in->key_size = pyri_node_key(7, in->own.label, in->level, 2, pos, in->key);
    for (unsigned slot = 0; slot < PYRI_FAN; slot++) {
        if (rng_once_in(r, 2))
            continue;
        pyri_entry *e = &in->entries[in->n++];
        e->slot = slot;
        e->level = (int)rng_below(r, (uint64_t)in->level);
        pick_about(r, &e->about);
        if (rng_once_in(r, 3))
            make_flat(in, r, e);
    }
    pyri_node_encode(key_of(in), &in->own, type, in->level, in->entries, in->n,
                     &in->bytes);
    OK(pyri_buf_check(&in->bytes, "a node"));
}

static void
check_entry(const inner *in, const pyri_node *node, const pyri_entry *want)
{
    pyri_entry e;
    uint64_t label, bits = 0, count = 0;
    int level;
    REQUIRE(node->slots >> want->slot & 1);
    OK(pyri_node_entry(node, want->slot, type, &e));
    REQUIRE(e.slot == want->slot && e.level == want->level);
    REQUIRE(same_about(&e.about, &want->about));
    REQUIRE(e.flat == want->flat &&
            (node->flats >> want->slot & 1) == want->flat);
    if (e.flat) {
        pyri_flat f;
        OK(pyri_node_flat(node, want->slot, &f));
        REQUIRE(f.label == e.about.label && f.bits == e.about.summary.min);
        REQUIRE(f.shape[0] == want->shape[0] && e.shape[1] == want->shape[1]);
        return;
    }
    pyri_node_child(node, want->slot, &label, &level);
    REQUIRE(label == want->about.label && level == want->level);
    const pyri_summary *s = &want->about.summary;
    REQUIRE(pyri_node_same(node, want->slot, &bits, &count) ==
            (want->about.known && s->equal));
    if (want->about.known && s->equal)
        REQUIRE(bits == s->min && count == s->count);
}

static void
an_inner_node_survives_being_stored(void)
{
    for (uint64_t seed = 0; seed < 1000; seed++) {
        rng r = rng_of(seed);
        inner in;
        pyri_node node;
        pyri_about own;
        make(&in, &r);
        OK(pyri_node_open(key_of(&in),
                          (pyri_bytes){in.bytes.data, in.bytes.size}, &node));
        CHECK(node.level == in.level && node.label == in.own.label);
        CHECK(__builtin_popcount(node.slots) == in.n);
        OK(pyri_node_about(&node, type, &own));
        CHECK(same_about(&own, &in.own));
        for (int i = 0; i < in.n; i++)
            check_entry(&in, &node, &in.entries[i]);
        pyri_buf_fini(&in.bytes);
    }
}

static void
every_flipped_bit_of_an_inner_node_is_noticed(void)
{
    for (uint64_t seed = 0; seed < 5; seed++) {
        rng r = rng_of(seed);
        inner in;
        pyri_node node;
        make(&in, &r);
        pyri_bytes b = {in.bytes.data, in.bytes.size};
        for (size_t i = 0; i < 8 * b.size; i++) {
            in.bytes.data[i / 8] ^= (uint8_t)(1u << (i % 8));
            REQUIRE(pyri_node_open(key_of(&in), b, &node) == PYR_ECORRUPT);
            in.bytes.data[i / 8] ^= (uint8_t)(1u << (i % 8));
        }
        for (b.size = 0; b.size < in.bytes.size; b.size++)
            REQUIRE(pyri_node_open(key_of(&in), b, &node) == PYR_ECORRUPT);
        pyri_buf_fini(&in.bytes);
    }
}

static void
a_node_under_the_key_of_another_is_refused(void)
{
    rng r = rng_of(1);
    inner in;
    pyri_node node;
    make(&in, &r);
    pyri_bytes b = {in.bytes.data, in.bytes.size};
    for (size_t i = 0; i < 8 * in.key_size; i++) {
        in.key[i / 8] ^= (uint8_t)(1u << (i % 8));
        REQUIRE(pyri_node_open(key_of(&in), b, &node) == PYR_ECORRUPT);
        in.key[i / 8] ^= (uint8_t)(1u << (i % 8));
    }
    OK(pyri_node_open(key_of(&in), b, &node));
    pyri_buf_fini(&in.bytes);
}

/* Bytes that someone made up and gave a good checksum. */
static void
forged_nodes_are_refused_or_harmless(void)
{
    int taken = 0;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        rng r = rng_of(seed);
        inner in;
        pyri_node node;
        pyri_entry e;
        make(&in, &r);
        size_t size = in.bytes.size;
        if (rng_once_in(&r, 4))
            size = rng_from(&r, NODE_HEAD - 4, size);
        uint8_t *exact = malloc(size);
        REQUIRE(exact);
        memcpy(exact, in.bytes.data, size);
        exact[rng_from(&r, 8, rng_once_in(&r, 2) ? 20 : size - 1)] =
            (uint8_t)rng_next(&r);
        pyri_node_seal(key_of(&in), exact, size);
        int err = pyri_node_open(key_of(&in), (pyri_bytes){exact, size}, &node);
        taken += err == 0;
        for (unsigned slot = 0; err == 0 && slot < PYRI_FAN; slot++)
            if (node.slots >> slot & 1 && node.level > 0)
                if (pyri_node_entry(&node, slot, type, &e) == 0)
                    REQUIRE(e.level < node.level);
        if (err < 0 && err != PYR_EFORMAT)
            REQUIRE(err == PYR_ECORRUPT);
        free(exact);
        pyri_buf_fini(&in.bytes);
    }
    CHECK(taken > 100 && taken < 2900);
}

static void
a_node_of_another_format_says_so(void)
{
    rng r = rng_of(2);
    inner in;
    pyri_node node;
    make(&in, &r);
    in.bytes.data[8] = 9;
    pyri_node_seal(key_of(&in), in.bytes.data, in.bytes.size);
    FAILS(PYR_EFORMAT,
          pyri_node_open(key_of(&in),
                         (pyri_bytes){in.bytes.data, in.bytes.size}, &node));
    pyri_buf_fini(&in.bytes);
}

/* --- keys ---------------------------------------------------------------- */

static void
keys_differ_where_names_differ_and_fit_their_room(void)
{
    uint64_t far[16];
    uint8_t a[PYRI_MAX_KEY], b[PYRI_MAX_KEY];
    for (int d = 0; d < 16; d++)
        far[d] = UINT64_MAX;
    CHECK(pyri_node_key(~0ull, ~0ull, 255, 16, far, a) <= PYRI_MAX_KEY);
    for (uint64_t x = 0; x < 300; x++)
        for (uint64_t y = 0; y < 300; y += 7) {
            const uint64_t p[2] = {x, y}, q[2] = {y, x};
            size_t n = pyri_node_key(1, 2, 3, 2, p, a);
            size_t m = pyri_node_key(1, 2, 3, 2, q, b);
            REQUIRE((n == m && memcmp(a, b, n) == 0) == (x == y));
        }
    const uint64_t pos[1] = {5};
    size_t n = pyri_node_key(1, 2, 3, 1, pos, a);
    CHECK(pyri_node_key(2, 2, 3, 1, pos, b) == n && memcmp(a, b, n) < 0);
    CHECK(pyri_node_key(1, 300, 3, 1, pos, b) == n && memcmp(a, b, n) < 0);
    CHECK(pyri_node_key(1, 2, 4, 1, pos, b) == n && memcmp(a, b, n) < 0);
}

/* --- leaves -------------------------------------------------------------- */

typedef struct bundle {
    pyri_leaf leaf;
    pyri_box chunk;
    uint8_t key[PYRI_MAX_KEY];
    size_t key_size;
    pyri_buf bytes;
} bundle;

static void
make_leaf(bundle *b, rng *r)
{
    const uint64_t pos[2] = {3, 400};
    *b = (bundle){.chunk = {{30, 4000}, {40, 4010}}};
    pick_about(r, &b->leaf.about);
    b->leaf.prev = rng_once_in(r, 2) ? rng_next(r) >> rng_below(r, 64) : 0;
    b->leaf.n = (int)rng_below(r, 6);
    b->leaf.frags = calloc(6, sizeof *b->leaf.frags);
    REQUIRE(b->leaf.frags);
    for (int i = 0; i < b->leaf.n; i++) {
        pyri_frag *f = &b->leaf.frags[i];
        f->version = rng_next(r) >> rng_below(r, 64);
        f->kind = (pyri_frag_kind)rng_below(r, 3);
        f->stored = f->kind ? rng_from(r, 1, 100000) : 0;
        f->bits = f->kind ? 0 : rng_next(r);
        f->ref[1] = f->check = f->kind ? rng_next(r) : 0;
        for (int d = 0; d < 2; d++) {
            f->box.lo[d] = b->chunk.lo[d] + rng_below(r, 10);
            f->box.hi[d] = rng_from(r, f->box.lo[d] + 1, b->chunk.hi[d]);
        }
    }
    b->key_size = pyri_node_key(9, b->leaf.about.label, 0, 2, pos, b->key);
    pyri_leaf_encode((pyri_bytes){b->key, b->key_size}, &b->leaf, type, 2,
                     &b->chunk, &b->bytes);
}

static void
end_leaf(bundle *b)
{
    pyri_leaf_fini(&b->leaf);
    CHECK(!b->leaf.frags && b->leaf.n == 0);
    pyri_buf_fini(&b->bytes);
}

static int
open_leaf(const bundle *b, size_t size, pyri_node *node, pyri_leaf_walk *w)
{
    int err = pyri_node_open((pyri_bytes){b->key, b->key_size},
                             (pyri_bytes){b->bytes.data, size}, node);
    return err < 0 ? err : pyri_leaf_begin(node, 2, &b->chunk, w);
}

static void
a_leaf_survives_being_stored(void)
{
    for (uint64_t seed = 0; seed < 1000; seed++) {
        rng r = rng_of(seed);
        bundle b;
        pyri_node node;
        pyri_leaf_walk w;
        pyri_about about;
        make_leaf(&b, &r);
        OK(open_leaf(&b, b.bytes.size, &node, &w));
        OK(pyri_node_about(&node, type, &about));
        CHECK(same_about(&about, &b.leaf.about));
        CHECK(node.level == 0 && node.label == about.label);
        CHECK(w.prev == b.leaf.prev);
        REQUIRE(w.left == (uint64_t)b.leaf.n);
        for (int i = 0; i < b.leaf.n; i++) {
            pyri_frag f = {0}, *want = &b.leaf.frags[i];
            OK(pyri_leaf_peek(&w, &f));
            OK(pyri_leaf_take(&w, &f));
            CHECK(f.version == want->version && f.kind == want->kind);
            CHECK(f.stored == want->stored && f.bits == want->bits);
            CHECK(f.ref[1] == want->ref[1] && f.check == want->check);
            CHECK(pyri_box_equal(2, &f.box, &want->box));
        }
        CHECK(w.left == 0 && w.at.at == w.at.end);
        end_leaf(&b);
    }
}

static void
every_flipped_bit_of_a_leaf_is_noticed(void)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        rng r = rng_of(seed);
        bundle b;
        pyri_node node;
        pyri_leaf_walk w;
        make_leaf(&b, &r);
        for (size_t i = 0; i < 8 * b.bytes.size; i++) {
            b.bytes.data[i / 8] ^= (uint8_t)(1u << (i % 8));
            REQUIRE(open_leaf(&b, b.bytes.size, &node, &w) == PYR_ECORRUPT);
            b.bytes.data[i / 8] ^= (uint8_t)(1u << (i % 8));
        }
        for (size_t size = 0; size < b.bytes.size; size++)
            REQUIRE(open_leaf(&b, size, &node, &w) == PYR_ECORRUPT);
        end_leaf(&b);
    }
}

static void
forged_leaves_are_refused_or_harmless(void)
{
    for (uint64_t seed = 0; seed < 3000; seed++) {
        rng r = rng_of(seed);
        bundle b;
        pyri_node node;
        pyri_leaf_walk w;
        pyri_frag f;
        make_leaf(&b, &r);
        size_t size = b.bytes.size;
        if (rng_once_in(&r, 3))
            size = rng_from(&r, NODE_HEAD, size);
        uint8_t *exact = malloc(size), *whole = b.bytes.data;
        REQUIRE(exact);
        memcpy(exact, whole, size);
        if (size > NODE_HEAD)
            exact[rng_from(&r, NODE_HEAD, size - 1)] = (uint8_t)rng_next(&r);
        pyri_node_seal((pyri_bytes){b.key, b.key_size}, exact, size);
        b.bytes.data = exact;
        int err = open_leaf(&b, size, &node, &w);
        while (err == 0 && w.left)
            if ((err = pyri_leaf_peek(&w, &f)) == 0 &&
                (err = pyri_leaf_take(&w, &f)) == 0)
                REQUIRE(pyri_box_contains(2, &b.chunk, &f.box));
        if (err < 0)
            REQUIRE(err == PYR_ECORRUPT);
        b.bytes.data = whole;
        free(exact);
        end_leaf(&b);
    }
}

/* --- leaves on others ---------------------------------------------------- */

/* Is fragment i of a leaf hidden by `own`, or by a fold above it? */
static bool
is_hidden(const pyri_leaf *l, int i, const pyri_frag *own)
{
    bool hidden = !own->masked &&
                  pyri_box_contains(2, &own->box, &l->frags[i].box);
    for (int k = 0; k < i; k++)
        hidden |= l->frags[k].fold && !l->frags[k].masked &&
                  pyri_box_contains(2, &l->frags[k].box, &l->frags[i].box);
    return hidden;
}

/* Store a leaf again, with folds and masks, and open it. */
static void
fold_some(bundle *b, rng *r, pyri_node *node)
{
    pyri_leaf_walk w;
    b->leaf.prev = 0;
    for (int i = 0; i < b->leaf.n; i++) {
        b->leaf.frags[i].fold = rng_once_in(r, 3);
        b->leaf.frags[i].masked = b->leaf.frags[i].kind && rng_once_in(r, 4);
    }
    b->bytes.size = 0;
    pyri_leaf_encode((pyri_bytes){b->key, b->key_size}, &b->leaf, type, 2,
                     &b->chunk, &b->bytes);
    OK(open_leaf(b, b->bytes.size, node, &w));
}

static void
a_leaf_laid_on_another_lists_what_it_does_not_hide(void)
{
    int hidden = 0;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        rng r = rng_of(seed);
        bundle on, top;
        pyri_node node;
        pyri_leaf_walk w;
        bool done;
        make_leaf(&on, &r);
        fold_some(&on, &r, &node);
        make_leaf(&top, &r);
        top.leaf.prev = 0;
        top.leaf.n = 1;
        if (top.leaf.frags[0].version == 0 || !rng_once_in(&r, 4))
            top.leaf.frags[0] = (pyri_frag){.box = {{31, 4001}, {39, 4009}},
                                            .version = 7};
        OK(pyri_leaf_lay(&top.leaf, &node, 2, &top.chunk, &done));
        REQUIRE(done);
        top.bytes.size = 0;
        pyri_leaf_encode((pyri_bytes){top.key, top.key_size}, &top.leaf, type,
                         2, &top.chunk, &top.bytes);
        OK(open_leaf(&top, top.bytes.size, &node, &w));
        pyri_frag f = {0};
        OK(pyri_leaf_next(&w, &f));
        for (int i = 0; i < on.leaf.n; i++) {
            const pyri_frag *want = &on.leaf.frags[i];
            if (is_hidden(&on.leaf, i, &top.leaf.frags[0])) {
                hidden++;
                continue;
            }
            REQUIRE(w.left);
            OK(pyri_leaf_next(&w, &f));
            CHECK(f.version == want->version && f.fold == want->fold);
            CHECK(f.masked == want->masked && f.check == want->check);
            CHECK(pyri_box_equal(2, &f.box, &want->box));
        }
        CHECK(w.left == 0 && w.at.at == w.at.end);
        end_leaf(&on);
        end_leaf(&top);
    }
    CHECK(hidden > 500);
}

static void
a_leaf_that_lies_on_another_or_has_many_folds_is_not_copied(void)
{
    rng r = rng_of(1);
    bundle b;
    pyri_node node;
    pyri_leaf_walk w;
    pyri_leaf top = {.n = 0};
    bool done;
    make_leaf(&b, &r);
    for (int folds = 0; folds < 2; folds++) {
        pyri_leaf many = {.prev = folds ? 0 : 1, .about = b.leaf.about};
        many.frags = calloc(20, sizeof *many.frags);
        REQUIRE(many.frags);
        for (; folds && many.n < 20; many.n++)
            many.frags[many.n] = (pyri_frag){
                .fold = true,
                .box = {{30, 4000}, {31, 4001 + (uint64_t)many.n % 9}}};
        b.bytes.size = 0;
        pyri_leaf_encode((pyri_bytes){b.key, b.key_size}, &many, type, 2,
                         &b.chunk, &b.bytes);
        OK(open_leaf(&b, b.bytes.size, &node, &w));
        OK(pyri_leaf_lay(&top, &node, 2, &b.chunk, &done));
        CHECK(!done && top.nbelow == 0 && top.below.size == 0);
        pyri_leaf_fini(&many);
    }
    pyri_leaf_fini(&top);
    end_leaf(&b);
}

static void
an_inner_node_is_no_leaf(void)
{
    rng r = rng_of(3);
    inner in;
    pyri_node node;
    pyri_leaf_walk w;
    const pyri_box chunk = {{0, 0}, {1, 1}};
    make(&in, &r);
    OK(pyri_node_open(key_of(&in), (pyri_bytes){in.bytes.data, in.bytes.size},
                      &node));
    FAILS(PYR_ECORRUPT, pyri_leaf_begin(&node, 2, &chunk, &w));
    pyri_buf_fini(&in.bytes);
}

TESTS(T(an_inner_node_survives_being_stored),
      T(every_flipped_bit_of_an_inner_node_is_noticed),
      T(a_node_under_the_key_of_another_is_refused),
      T(forged_nodes_are_refused_or_harmless),
      T(a_node_of_another_format_says_so),
      T(keys_differ_where_names_differ_and_fit_their_room),
      T(a_leaf_survives_being_stored),
      T(every_flipped_bit_of_a_leaf_is_noticed),
      T(forged_leaves_are_refused_or_harmless),
      T(a_leaf_laid_on_another_lists_what_it_does_not_hide),
      T(a_leaf_that_lies_on_another_or_has_many_folds_is_not_copied),
      T(an_inner_node_is_no_leaf))
