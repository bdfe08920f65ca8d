/*
 * regress/damage_test.c - metadata changed behind the library's back: the
 * damage is told where it is met, and the rest of the array goes on.
 */
#include "regress/regress.h"
#include "support/meta_edit.h"

enum { CHUNK = 16, CHUNKS = 256, HEALTHY = 200 * CHUNK };

static int32_t cells[CHUNK] = {3, 1, 4, 1, 5, 9, 2, 6};

/* Two levels of inner nodes; the version numbered last is 2. */
static void
set_up_tree(void)
{
    pyr_version made;
    set_up(SHORT_LEASE);
    make_line(CHUNKS * CHUNK, CHUNK, PYR_I32);
    OK(pyr_write(array, AT(0), AT(CHUNK), cells, &made));
    OK(pyr_write(array, AT(HEALTHY), AT(CHUNK), cells, &made));
    close_all();
}

/* The store must be closed; it is open again afterwards. */
static void
change_store(meta_fn *change)
{
    CHECK(meta_change(url, "tree", change, NULL) == 1);
    OK(open_line(0));
}

static meta_verdict
flip_inner_node(void *ctx, meta_entry *e)
{
    (void)ctx;
    if (!meta_is_node(e, 1, 1))
        return META_LEAVE;
    e->value[e->size / 2] ^= 1;
    return META_STORE;
}

static void
a_damaged_inner_node_harms_only_what_is_below_it(void)
{
    int32_t got[CHUNK];
    pyr_version made, latest;
    set_up_tree();
    change_store(flip_inner_node);
    OK(pyr_write(array, AT(HEALTHY), AT(CHUNK), cells, &made));
    FAILS(PYR_ECORRUPT, pyr_read(array, made, AT(0), AT(CHUNK), got));
    for (int i = 0; i < 3; i++) {
        FAILS(PYR_ECORRUPT,
              pyr_write(array, AT(2 * CHUNK), AT(CHUNK), cells, &made));
        CHECK(in_flight() == 0);
        cells[0]++;
        OK(pyr_write(array, AT(HEALTHY), AT(CHUNK), cells, &made));
        OK(pyr_latest(array, &latest));
        CHECK(latest == made);
        OK(pyr_read(array, made, AT(HEALTHY), AT(CHUNK), got));
        CHECK(memcmp(got, cells, sizeof cells) == 0);
    }
    FAILS(PYR_ECORRUPT, pyr_read(array, made, AT(0), AT(CHUNK), got));
    OK(pyr_read(array, 0, AT(0), AT(CHUNK), got));
    tear_down();
}

/* Before the record stand the number of axes and the shape. Its checksum is of
 * what follows it. */
static meta_verdict
raise_root(void *ctx, meta_entry *e)
{
    (void)ctx;
    if (!meta_is_version(e, 2))
        return META_LEAVE;
    uint8_t *record = e->value + 1 + 8 * e->value[0];
    size_t rest = e->size - (size_t)(record - e->value) - 8;
    record[10] = 200;
    uint64_t sum = pyri_hash64(record + 8, rest);
    memcpy(record, &sum, 8);
    return META_STORE;
}

static void
a_root_above_all_levels_is_refused(void)
{
    int32_t got[CHUNK];
    pyr_stats stats;
    pyr_version last;
    set_up_tree();
    change_store(raise_root);
    FAILS(PYR_ECORRUPT, pyr_read(array, 2, AT(0), AT(CHUNK), got));
    FAILS(PYR_ECORRUPT,
          pyr_stat(array, 2, AT(0), AT(CHUNKS * CHUNK), 0, &stats));
    FAILS(PYR_ECORRUPT, pyr_last_change(array, 2, AT(0), AT(1), &last));
    OK(pyr_read(array, 1, AT(0), AT(CHUNK), got));
    CHECK(memcmp(got, cells, sizeof cells) == 0);
    tear_down();
}

static const role roles[] = {{NULL, NULL}};

REGRESS_TESTS(roles, T(a_damaged_inner_node_harms_only_what_is_below_it),
              T(a_root_above_all_levels_is_refused))
