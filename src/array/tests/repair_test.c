/*
 * What repair puts right: summaries that are not those of the cells, and what
 * is stored and needed by nobody; on both engines.
 */
#include "array/array.h"
#include "base/sys.h"
#include "support/check.h"
#include "support/tmp_store.h"

enum { SIDE = 20, CHUNK = 10, CELLS = SIDE * SIDE };

typedef struct world {
    char url[4096];
    pyri_engine *e;
    pyri_array *a;
    int32_t cells[CELLS];
} world;

static world w;

static void
write_box(uint64_t at, uint64_t size)
{
    pyri_box box = {{at, at}, {at + size, at + size}};
    pyr_version made;
    static int32_t next;
    int32_t cells[CELLS];
    for (uint64_t i = 0; i < size * size; i++) {
        cells[i] = next++ * 7 % 1000;
        w.cells[(at + i / size) * SIDE + at + i % size] = cells[i];
    }
    pyri_part part = {pyri_run_of_box(2, &box),
                      pyri_mem_dense(2, 4, &box, cells)};
    pyri_write_how how = {.message = ""};
    OK(pyri_write(w.a, &part, 1, &how, &made));
}

static void
set_up(bool mem)
{
    static unsigned number;
    uint64_t shape[2] = {SIDE, SIDE};
    pyri_schema s = {.ndim = 2, .type = PYR_I32, .chunk = {CHUNK, CHUNK}};
    memset(&w, 0, sizeof w);
    if (mem)
        snprintf(w.url, sizeof w.url, "mem:repair-%u", number++);
    else
        snprintf(w.url, sizeof w.url, "%s", tmp_store("repair"));
    OK(pyri_engine_open(w.url, PYR_OPEN_CREATE,
                        &(pyr_store_options){.durability = PYR_DURABILITY_OS},
                        &w.e));
    OK(pyri_form_init(&s.form, 2, shape, s.chunk));
    OK(pyri_array_create(w.e, "x", &s, "{}", NULL));
    pyri_form_fini(&s.form);
    OK(pyri_array_open(w.e, "x", &w.a));
    write_box(0, 20);
    write_box(3, 4);
    write_box(12, 8);
}

static void
tear_down(void)
{
    pyri_array_close(w.a);
    pyri_engine_close(w.e);
    if (strncmp(w.url, "mem:", 4) != 0)
        tmp_remove(w.url);
}

static pyr_verified
verified(bool deep)
{
    pyr_verified seen;
    OK(pyri_verify(w.e, &(pyr_verify_spec){.deep = deep}, &seen));
    return seen;
}

static pyr_repaired
repaired(void)
{
    pyr_repaired r;
    OK(pyri_repair(w.e, NULL, &r));
    return r;
}

static void
check_sums(void)
{
    pyri_box all = {{0, 0}, {SIDE, SIDE}};
    pyr_stats stats;
    double sum = 0;
    for (int i = 0; i < CELLS; i++)
        sum += w.cells[i];
    OK(pyri_stat(w.a, PYR_LATEST, &all, 0, &stats));
    CHECK(stats.sum == sum && stats.count == CELLS);
}

/* --- summaries ----------------------------------------------------------- */

typedef struct picking {
    int level;
    uint64_t label;
    uint8_t key[PYRI_MAX_KEY], bytes[8192];
    size_t key_size, size;
} picking;

static int
pick(void *ctx, pyri_bytes key, pyri_bytes value)
{
    picking *p = ctx;
    pyri_node node;
    OK(pyri_node_open(key, value, &node));
    if (node.level != p->level || node.label != p->label)
        return 0;
    REQUIRE(key.size <= sizeof p->key && value.size <= sizeof p->bytes);
    memcpy(p->key, key.data, key.size);
    memcpy(p->bytes, value.data, value.size);
    p->key_size = key.size;
    p->size = value.size;
    return 1;
}

/* Give the first node of that level and label another summary: its own, or
 * that of its first child. */
static void
spoil(int level, uint64_t label, int slot)
{
    picking p = {.level = level, .label = label};
    pyri_reader *r;
    pyri_node node;
    pyri_about about;
    OK(pyri_engine_begin(w.e, &r));
    CHECK(pyri_engine_scan_nodes(w.e, r, w.a->id, pick, &p) == 1);
    pyri_engine_end(w.e, r);
    pyri_bytes key = {p.key, p.key_size};
    OK(pyri_node_open(key, (pyri_bytes){p.bytes, p.size}, &node));
    OK(pyri_node_about(&node, PYR_I32, &about));
    about.summary.sum_int += 5;
    OK(pyri_node_amend(key, p.bytes, p.size, PYR_I32, slot, &about.summary));
    pyri_node_put put = {key, {p.bytes, p.size}};
    OK(pyri_engine_replace_nodes(w.e, &put, 1));
}

static void
try_summaries(bool mem)
{
    static const struct {
        int level, slot;
    } where[] = {{0, -1}, {1, -1}, {1, 0}};
    for (size_t i = 0; i < sizeof where / sizeof *where; i++)
        for (uint64_t label = 1; label <= 3; label++) {
            set_up(mem);
            CHECK(verified(true).harms == 0);
            spoil(where[i].level, label, where[i].slot);
            CHECK(verified(false).harms > 0);
            CHECK(verified(true).harms > 0);
            pyr_repaired r = repaired();
            CHECK(r.summaries > 0 && r.harms == 0);
            CHECK(r.orphan_nodes == 0 && r.orphan_blobs == 0);
            CHECK(verified(true).harms == 0);
            CHECK(repaired().summaries == 0);
            check_sums();
            tear_down();
        }
}

static void
wrong_summaries_in_memory_are_found_and_rebuilt(void)
{
    try_summaries(true);
}

static void
wrong_summaries_on_files_are_found_and_rebuilt(void)
{
    try_summaries(false);
}

/* --- digests ------------------------------------------------------------- */

static int
note_digest(void *ctx, const pyr_harm *harm)
{
    if (strcmp(harm->what, "the digest is not that of what was written") == 0)
        ++*(int *)ctx;
    return 0;
}

/* The first leaf of that label says another digest of itself. */
static void
spoil_digest(uint64_t label)
{
    picking p = {.level = 0, .label = label};
    pyri_reader *r;
    pyri_node node;
    pyri_leaf leaf = {.n = 0};
    pyri_leaf_walk walk;
    pyri_box domain = {{0, 0}, {CHUNK, CHUNK}};
    pyri_frag frags[8];
    pyri_buf bytes = {0};
    OK(pyri_engine_begin(w.e, &r));
    CHECK(pyri_engine_scan_nodes(w.e, r, w.a->id, pick, &p) == 1);
    pyri_engine_end(w.e, r);
    pyri_bytes key = {p.key, p.key_size};
    OK(pyri_node_open(key, (pyri_bytes){p.bytes, p.size}, &node));
    OK(pyri_node_about(&node, PYR_I32, &leaf.about));
    OK(pyri_leaf_begin(&node, 2, &domain, &walk));
    leaf.prev = walk.prev;
    leaf.frags = frags;
    while (walk.left && leaf.n < 8)
        OK(pyri_leaf_next(&walk, &frags[leaf.n++]));
    leaf.about.digest.lo ^= 1;
    pyri_leaf_encode(key, &leaf, PYR_I32, 2, &domain, &bytes);
    pyri_node_put put = {key, {bytes.data, bytes.size}};
    OK(pyri_engine_replace_nodes(w.e, &put, 1));
    pyri_buf_fini(&bytes);
}

static void
wrong_digests_are_found(void)
{
    for (uint64_t label = 1; label <= 2; label++) {
        int found = 0;
        pyr_verified seen;
        set_up(true);
        spoil_digest(label); /* whole chunks; and a part of the first */
        OK(pyri_verify(w.e, &(pyr_verify_spec){.each = note_digest,
                                               .ctx = &found}, &seen));
        CHECK(found == (label == 1 ? 2 : 1)); /* what lies on it, too */
        CHECK(repaired().harms > 0); /* who knows which one is right */
        tear_down();
    }
}

/* --- orphans ------------------------------------------------------------- */

/* A version that is the one before it, with a node and a blob too many. */
static void
add_orphans(void)
{
    uint64_t far[2] = {900, 900};
    uint8_t key[PYRI_MAX_KEY], byte = 7;
    pyri_ticket ticket;
    pyri_flights below = {0};
    pyri_snapshot snap;
    pyri_buf record = {0}, node = {0}, claim = {0};
    pyri_about about = {.known = false};
    struct iovec iov = {&byte, 1};
    pyri_blob_put put = {.iov = &iov, .niov = 1, .size = 1};
    pyri_take take = {.array = w.a->id, .grow_axis = -1};
    pyri_buf_u8(&claim, PYR_KIND_RESIZE);
    pyri_buf_varint(&claim, 0);
    take.claim = (pyri_bytes){claim.data, claim.size};
    OK(pyri_snapshot_open(w.a, PYR_LATEST, &snap));
    OK(pyri_engine_take(w.e, &take, &ticket, &below));
    OK(pyri_engine_put_blobs(w.e, &put, 1));
    snap.record.kind = PYR_KIND_RESIZE;
    snap.record.claim.ndim = 2;
    pyri_record_encode(&snap.record, &record);
    about.label = ticket.version;
    size_t size = pyri_node_key(w.a->id, ticket.version, 2, 2, far, key);
    pyri_node_encode((pyri_bytes){key, size}, &about, PYR_I32, 2, NULL, 0,
                     &node);
    pyri_node_put one = {{key, size}, {node.data, node.size}};
    pyri_blob blob = {put.ref, 1};
    pyri_complete c = {.array = w.a->id,
                       .version = ticket.version,
                       .shape = snap.grid.shape,
                       .nodes = &one,
                       .nnodes = 1,
                       .blobs = &blob,
                       .nblobs = 1,
                       .record = {record.data, record.size}};
    OK(pyri_engine_complete(w.e, &c));
    CHECK(c.latest == ticket.version);
    pyri_snapshot_close(&snap);
    pyri_flights_fini(&below);
    pyri_buf_fini(&record);
    pyri_buf_fini(&node);
    pyri_buf_fini(&claim);
}

static void
try_orphans(bool mem)
{
    set_up(mem);
    add_orphans();
    pyr_verified seen = verified(true);
    CHECK(seen.harms == 0);
    CHECK(seen.orphan_nodes == 1 && seen.orphan_blobs == 1);
    CHECK(seen.orphan_bytes > 1);
    pyr_repaired r = repaired();
    CHECK(r.orphan_nodes == 1 && r.orphan_blobs == 1 && r.harms == 0);
    seen = verified(true);
    CHECK(seen.harms == 0 && seen.orphan_nodes == 0 && seen.orphan_blobs == 0);
    r = repaired();
    CHECK(r.orphan_nodes == 0 && r.orphan_blobs == 0);
    check_sums();
    tear_down();
}

static void
what_nothing_needs_in_memory_goes(void)
{
    try_orphans(true);
}

static void
what_nothing_needs_on_files_goes(void)
{
    try_orphans(false);
}

/* Below a node that is lost nobody knows what is needed. */
static void
nothing_goes_where_a_node_is_lost(void)
{
    set_up(false);
    add_orphans();
    picking p = {.level = 1, .label = 2};
    pyri_reader *r;
    OK(pyri_engine_begin(w.e, &r));
    CHECK(pyri_engine_scan_nodes(w.e, r, w.a->id, pick, &p) == 1);
    pyri_engine_end(w.e, r);
    p.bytes[60] ^= 1;
    pyri_node_put put = {{p.key, p.key_size}, {p.bytes, p.size}};
    OK(pyri_engine_replace_nodes(w.e, &put, 1));
    pyr_repaired done = repaired();
    CHECK(done.orphan_nodes == 0 && done.orphan_blobs == 0);
    CHECK(done.harms > 0);
    tear_down();
}

TESTS(T(wrong_summaries_in_memory_are_found_and_rebuilt),
      T(wrong_summaries_on_files_are_found_and_rebuilt),
      T(wrong_digests_are_found), T(what_nothing_needs_in_memory_goes),
      T(what_nothing_needs_on_files_goes),
      T(nothing_goes_where_a_node_is_lost))
