/*
 * verify/repair_test.c - metadata that lies, with checksums that are good:
 * verify names it, and repair puts right what can be derived, drops what is
 * left over, and touches nothing that it cannot judge.
 */
#include "support/meta_edit.h"
#include "verify/one_array.h"

#include <pyramid/pyramid.h>

enum { CHUNK = 16, CHUNKS = 64, CELLS = CHUNK * CHUNKS, LAST = 5 };

static int64_t want[LAST + 1][CELLS];
static unsigned char digests[LAST + 1][16];

/* Versions after the first write one chunk each; 2, 4 and 5 the same one. */
static void
set_up(void)
{
    uint64_t shape = CELLS, chunk = CHUNK;
    int known;
    snprintf(path, sizeof path, "%s", tmp_fresh("repair"));
    OK(pyr_open_with(path, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS},
                     &store));
    OK(pyr_create(store, "t",
                  &(pyr_spec){.ndim = 1, .shape = &shape, .chunk = &chunk,
                              .type = PYR_I64}, &array));
    for (int v = 1; v <= LAST; v++) {
        uint64_t at = v == 1 ? 0 : v == 3 ? 33 * CHUNK : 20 * CHUNK;
        uint64_t size = v == 1 ? CELLS : CHUNK;
        memcpy(want[v], want[v - 1], sizeof want[v]);
        for (uint64_t i = 0; i < size; i++)
            want[v][at + i] = v * 1000003 + (int64_t)(i * i);
        OK(pyr_write(array, &at, &size, want[v] + at, NULL));
        OK(pyr_digest(array, (pyr_version)v, digests[v], &known));
        CHECK(known);
    }
}

/* The store is closed, changed and opened again. */
static void
change(const char *db, meta_fn *fn, void *ctx, int count)
{
    shut();
    CHECK(meta_change(path, db, fn, ctx) == count);
    reopen();
}

/* --- what is asked ------------------------------------------------------- */

static void
check_version(pyr_version v)
{
    int64_t got[CELLS];
    uint64_t zero = 0, all = CELLS;
    unsigned char digest[16];
    pyr_stats stats;
    double sum = 0;
    int known;
    OK(pyr_read(array, v, &zero, &all, got));
    CHECK(memcmp(got, want[v], sizeof got) == 0);
    for (int i = 0; i < CELLS; i++)
        sum += (double)want[v][i];
    OK(pyr_stat(array, v, &zero, &all, 0, &stats));
    CHECK(stats.sum == sum && stats.chunks_read == 0);
    OK(pyr_digest(array, v, digest, &known));
    CHECK(known && memcmp(digest, digests[v], sizeof digest) == 0);
}

static void
check_versions(pyr_version but)
{
    for (pyr_version v = 1; v <= LAST; v++)
        if (v != but)
            check_version(v);
}

typedef struct finding {
    int n;
    pyr_version version;
    uint64_t offset, size;
    char what[256];
} finding;

static int
note(void *ctx, const pyr_harm *h)
{
    finding *f = ctx;
    if (f->n++ == 0) {
        f->version = h->version;
        f->offset = h->ndim ? h->offset[0] : 0;
        f->size = h->ndim ? h->size[0] : 0;
        snprintf(f->what, sizeof f->what, "%s", h->what);
    }
    printf("# '%s', version %d: %s\n", h->array, (int)h->version, h->what);
    return 0;
}

static pyr_verified
verify(bool deep, finding *f)
{
    pyr_verified seen;
    *f = (finding){0};
    OK(pyr_verify(store, &(pyr_verify_spec){.deep = deep, .each = note,
                                            .ctx = f}, &seen));
    CHECK(seen.harms == (uint64_t)f->n);
    return seen;
}

static void
is_whole(void)
{
    finding f;
    pyr_verified seen = verify(true, &f);
    CHECK(f.n == 0 && seen.orphan_nodes == 0 && seen.orphan_blobs == 0);
}

/* --- summaries ----------------------------------------------------------- */

/* In a node: 40 + 48; in its first entry: 120 + 32 + 48. */
typedef struct place {
    unsigned label, level, at;
} place;

static meta_verdict
raise_sum(void *ctx, meta_entry *e)
{
    const place *p = ctx;
    if (!meta_is_node(e, p->label, p->level))
        return META_LEAVE;
    e->value[p->at] ^= 1;
    meta_seal_node(e);
    return META_STORE;
}

static void
a_summary_that_is_wrong_is_worked_out_again(void)
{
    static const place places[] = {
        {2, 0, 88}, {2, 1, 88}, {2, 2, 88}, {2, 1, 200}, {2, 2, 200}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        pyr_repaired r;
        finding f;
        set_up();
        change("tree", raise_sum, (void *)(uintptr_t)&places[i], 1);
        verify(true, &f);
        CHECK(f.n > 0 && f.version == 2 && strstr(f.what, "summary"));
        CHECK(f.size > 0 && f.offset <= 20 * CHUNK &&
              f.offset + f.size >= 21 * CHUNK);
        OK(pyr_repair(store, NULL, &r));
        CHECK(r.summaries > 0 && r.harms == 0 && r.orphan_nodes == 0);
        is_whole();
        check_versions(0);
        tear_down();
    }
}

/* --- digests ------------------------------------------------------------- */

/* Nodes of version 2 say nothing of their digests, nor of their children's. */
static meta_verdict
hide_digests(void *ctx, meta_entry *e)
{
    (void)ctx;
    if (e->key_size < 19 || e->key[15] != 2)
        return META_LEAVE;
    e->value[11] &= (uint8_t)~2;
    memset(e->value + 24, 0, 16);
    for (uint8_t *at = e->value + 120; e->key[17] && at < e->value + e->size;
         at += 104)
        if (at[8] == 2) {
            at[0] &= (uint8_t)~2;
            memset(at + 16, 0, 16);
        }
    meta_seal_node(e);
    return META_STORE;
}

static void
a_leaf_whose_digest_is_missing_is_named(void)
{
    finding f;
    set_up();
    change("tree", hide_digests, NULL, 3);
    verify(false, &f);
    CHECK(f.n > 0 && f.version == 2 && strstr(f.what, "digest"));
    CHECK(f.offset == 20 * CHUNK && f.size == CHUNK);
    tear_down();
}

/* --- versions that vanish ------------------------------------------------ */

static meta_verdict
take_record(void *ctx, meta_entry *e)
{
    if (!meta_is_version(e, 4))
        return META_LEAVE;
    memcpy(ctx, e, sizeof *e);
    return META_DROP;
}

/* Version 4 needs a leaf of version 3, which is erased, and one of its own:
 * nobody but it does. */
static void
a_version_without_its_record_is_named_and_nothing_of_it_goes(void)
{
    static meta_entry taken;
    uint64_t at = 33 * CHUNK, size = CHUNK;
    pyr_reclaimed gone;
    pyr_repaired r;
    finding f;
    set_up();
    OK(pyr_write(array, &at, &size, want[1], NULL)); /* version 6 */
    OK(pyr_forget(array, 5, 5, 0, 0, NULL));
    OK(pyr_forget(array, 3, 3, 0, 0, NULL));
    OK(pyr_reclaim(store, NULL, &gone));
    CHECK(gone.versions == 2);
    is_whole();
    change("tree", take_record, &taken, 1);
    pyr_verified seen = verify(false, &f);
    CHECK(f.n == 1 && f.version == 4 && strstr(f.what, "record"));
    CHECK(seen.orphan_nodes == 0 && seen.orphan_blobs == 0);
    OK(pyr_repair(store, NULL, &r));
    CHECK(r.harms == 1 && r.orphan_nodes == 0 && r.orphan_blobs == 0);
    check_version(1);
    check_version(2);
    shut();
    meta_put(path, "tree", &taken);
    reopen();
    is_whole();
    check_version(4);
    tear_down();
}

static void
forgotten_versions_are_not_missed(void)
{
    pyr_reclaimed gone;
    set_up();
    OK(pyr_forget(array, 2, 2, 0, 0, NULL));
    is_whole();
    OK(pyr_forget(array, 4, 4, 0, 0, NULL));
    OK(pyr_reclaim(store, NULL, &gone));
    CHECK(gone.versions == 2);
    is_whole();
    check_version(3);
    check_version(5);
    tear_down();
}

/* The head of an array of two axes. */
static meta_verdict
harm_head(void *ctx, meta_entry *e)
{
    (void)ctx;
    if (e->key[0] != 'h' || e->key_size != 9 || e->size != 40)
        return META_LEAVE;
    e->value[9] ^= 0x10;
    return META_STORE;
}

static void
an_array_that_is_harmed_keeps_no_other_from_being_reclaimed(void)
{
    uint64_t shape[2] = {4, 4};
    pyr_array *other;
    pyr_reclaimed gone;
    pyr_version latest;
    set_up();
    OK(pyr_create(store, "other", &(pyr_spec){.ndim = 2, .shape = shape,
                                              .type = PYR_I64}, &other));
    pyr_array_close(other);
    OK(pyr_forget(array, 2, 4, 0, 0, NULL));
    change(NULL, harm_head, NULL, 1);
    OK(pyr_array_open(store, "other", &other));
    FAILS(PYR_ECORRUPT, pyr_latest(other, &latest));
    pyr_array_close(other);
    OK(pyr_reclaim(store, NULL, &gone));
    CHECK(gone.versions == 3);
    check_version(5);
    tear_down();
}

/* --- what is left over --------------------------------------------------- */

static meta_verdict
take_leaf(void *ctx, meta_entry *e)
{
    if (meta_is_node(e, 2, 0))
        memcpy(ctx, e, sizeof *e);
    return META_LEAVE;
}

static meta_verdict
take_blob(void *ctx, meta_entry *e)
{
    if (e->key[0] & 0x80)
        memcpy(ctx, e, sizeof *e);
    return META_LEAVE;
}

static void
orphans_are_counted_and_go(void)
{
    static meta_entry leaf, blob;
    pyr_repaired r;
    finding f;
    set_up();
    change("tree", take_leaf, &leaf, 0);
    change("blobs", take_blob, &blob, 0);
    REQUIRE(leaf.size && blob.size);
    leaf.key[leaf.key_size - 1]++; /* the chunk beside it */
    meta_seal_node(&leaf);
    blob.key[1] ^= 0x55;
    meta_seal_small(&blob);
    shut();
    meta_put(path, "tree", &leaf);
    meta_put(path, "blobs", &blob);
    reopen();
    pyr_verified seen = verify(true, &f);
    CHECK(f.n == 0 && seen.orphan_nodes == 1 && seen.orphan_blobs == 1);
    OK(pyr_repair(store, NULL, &r));
    CHECK(r.harms == 0 && r.orphan_nodes == 1 && r.orphan_blobs == 1);
    is_whole();
    check_versions(0);
    tear_down();
}

/* --- records of clones --------------------------------------------------- */

static meta_verdict
drop_child(void *ctx, meta_entry *e)
{
    (void)ctx;
    return memcmp(e->key, "child/", 6) == 0 ? META_DROP : META_LEAVE;
}

static void
an_origin_learns_of_its_clone_again(void)
{
    int64_t got[CELLS];
    uint64_t zero = 0, all = CELLS;
    pyr_reclaimed gone;
    pyr_repaired r;
    pyr_array *clone;
    finding f;
    set_up();
    OK(pyr_clone(array, 2, "clone", &clone));
    pyr_array_close(clone);
    change("records", drop_child, NULL, 1);
    verify(false, &f);
    CHECK(f.n == 1 && strstr(f.what, "clone"));
    OK(pyr_repair(store, NULL, &r));
    CHECK(r.harms == 0);
    is_whole();
    OK(pyr_forget(array, 1, 4, 0, 0, NULL));
    OK(pyr_reclaim(store, NULL, &gone));
    OK(pyr_array_open(store, "clone", &clone));
    OK(pyr_read(clone, 0, &zero, &all, got));
    CHECK(memcmp(got, want[2], sizeof got) == 0);
    pyr_array_close(clone);
    is_whole();
    tear_down();
}

TESTS(T(a_summary_that_is_wrong_is_worked_out_again),
      T(a_leaf_whose_digest_is_missing_is_named),
      T(a_version_without_its_record_is_named_and_nothing_of_it_goes),
      T(forgotten_versions_are_not_missed),
      T(an_array_that_is_harmed_keeps_no_other_from_being_reclaimed), T(orphans_are_counted_and_go),
      T(an_origin_learns_of_its_clone_again))
