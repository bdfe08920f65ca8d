/*
 * The memory engine: how long its stores live, and its map beside a plain one.
 */
#include "engine/mem/mem.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "support/check.h"

static const pyri_bytes key = {"key", 3}, value = {"value", 5};

static pyri_engine *
open_store(const char *url, unsigned flags)
{
    pyri_engine *e;
    OK(pyri_engine_open(url, flags, NULL, &e));
    return e;
}

static void
put_record(pyri_engine *e)
{
    const pyri_edit put = {.kind = PYRI_EDIT_PUT, .key = key, .value = value};
    OK(pyri_engine_edit(e, &put, 1));
}

static bool
has_record(pyri_engine *e)
{
    pyri_reader *r;
    pyri_bytes got;
    bool found;
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_get_record(e, r, key, &got, &found));
    pyri_engine_end(e, r);
    return found;
}

static void
a_named_store_lives_as_long_as_a_handle(void)
{
    pyri_engine *a = open_store("mem:shared", PYR_OPEN_CREATE);
    put_record(a);
    pyri_engine *b = open_store("mem:shared", 0);
    pyri_engine_close(a);
    CHECK(has_record(b));
    pyri_engine_close(b);
    FAILS(PYR_ENOTFOUND, pyri_engine_open("mem:shared", 0, NULL, &b));
    b = open_store("mem:shared", PYR_OPEN_CREATE);
    CHECK(!has_record(b));
    pyri_engine_close(b);
}

static void
stores_of_two_names_are_two(void)
{
    pyri_engine *a = open_store("mem:a", PYR_OPEN_CREATE);
    pyri_engine *b = open_store("mem:b", PYR_OPEN_CREATE);
    put_record(a);
    CHECK(!has_record(b));
    pyri_engine_close(a);
    pyri_engine_close(b);
}

static void
a_store_without_a_name_is_private(void)
{
    pyri_engine *a = open_store("mem:", PYR_OPEN_CREATE);
    pyri_engine *b = open_store("mem:", PYR_OPEN_CREATE);
    put_record(a);
    CHECK(has_record(a) && !has_record(b));
    pyri_engine_close(a);
    pyri_engine_close(b);
}

static void
writers_are_the_handles_open_for_writing(void)
{
    pyri_engine *a = open_store("mem:a", PYR_OPEN_CREATE);
    pyri_engine *b = open_store("mem:a", 0);
    pyri_engine *c = open_store("mem:a", PYR_OPEN_READONLY);
    pyr_status status = {.arrays = 99};
    OK(pyri_engine_status(c, &status, NULL, NULL));
    CHECK(status.writers == 2 && status.arrays == 99);
    pyri_engine_close(a);
    OK(pyri_engine_status(c, &status, NULL, NULL));
    CHECK(status.writers == 1);
    pyri_engine_close(b);
    pyri_engine_close(c);
}

/* --- the map ------------------------------------------------------------- */

enum { RANGE = 500 };

static pyri_bytes
key_of(uint8_t bytes[2], unsigned n)
{
    bytes[0] = (uint8_t)(n >> 8);
    bytes[1] = (uint8_t)n;
    return (pyri_bytes){bytes, 2};
}

/* One random change to map and model. */
static void
change(pyri_mem_map *map, pyri_mem_batch *b, bool *model, uint64_t dice)
{
    uint8_t bytes[2];
    unsigned n = (unsigned)(dice % RANGE);
    if (dice >> 63)
        OK(pyri_mem_batch_put(b, map, key_of(bytes, n), value));
    else
        pyri_mem_batch_delete(b, map, key_of(bytes, n));
    model[n] = dice >> 63;
}

static void
check_same(pyri_mem_map *map, const bool *model)
{
    uint8_t bytes[2];
    pyri_mem_entry *e = map->first[0];
    uint64_t total = 0;
    for (unsigned n = 0; n < RANGE; n++) {
        REQUIRE((pyri_mem_find(map, key_of(bytes, n)) != NULL) == model[n]);
        if (model[n]) {
            REQUIRE(e && memcmp(e->key.data, bytes, 2) == 0);
            e = e->next[0];
            total += 2 + value.size;
        }
    }
    CHECK(e == NULL && map->bytes == total);
}

static void
random_batches_kept_or_undone_match_a_plain_set(void)
{
    static pyri_mem_map map;
    static bool model[RANGE], before[RANGE];
    pyri_mem_entry *graveyard = NULL;
    for (uint64_t round = 0; round < 300; round++) {
        pyri_mem_batch b;
        memcpy(before, model, sizeof model);
        OK(pyri_mem_batch_begin(&b, 40));
        for (uint64_t i = 0; i < 40; i++) {
            uint64_t seed = round * 40 + i;
            change(&map, &b, model, pyri_hash64(&seed, sizeof seed));
        }
        if (round % 3 == 0) {
            pyri_mem_batch_undo(&b);
            memcpy(model, before, sizeof model);
        } else {
            pyri_mem_batch_keep(&b, &graveyard);
        }
        check_same(&map, model);
    }
    pyri_mem_clear_graveyard(&graveyard);
    pyri_mem_map_fini(&map);
}

static void
a_hundred_thousand_in_a_row_are_quick(void)
{
    enum { N = 100000 };
    pyri_mem_map map = {0};
    pyri_mem_batch b;
    uint8_t bytes[8];
    OK(pyri_mem_batch_begin(&b, N));
    for (uint64_t i = 0; i < N; i++) {
        pyri_store64_be(bytes, i);
        OK(pyri_mem_batch_put(&b, &map, (pyri_bytes){bytes, 8}, value));
    }
    pyri_mem_entry *graveyard = NULL;
    pyri_mem_batch_keep(&b, &graveyard);
    CHECK(graveyard == NULL);
    uint64_t n = 0;
    for (pyri_mem_entry *e = map.first[0]; e; e = e->next[0])
        REQUIRE(pyri_load64_be(e->key.data) == n++);
    CHECK(n == N);
    pyri_mem_map_fini(&map);
}

TESTS(T(a_named_store_lives_as_long_as_a_handle),
      T(stores_of_two_names_are_two), T(a_store_without_a_name_is_private),
      T(writers_are_the_handles_open_for_writing),
      T(random_batches_kept_or_undone_match_a_plain_set),
      T(a_hundred_thousand_in_a_row_are_quick))
