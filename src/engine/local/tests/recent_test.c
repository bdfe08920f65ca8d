/*
 * Nodes that a reader got lately: what comes back is what was kept, it goes
 * when nodes are replaced, and it is bounded.
 */
#include "engine/local/recent.h"
#include "engine/local/tests/fixture.h"

enum { KEYS = 3000, LONGEST = 2000 };

/* --- the table ----------------------------------------------------------- */

static pyri_bytes
key_of(uint32_t number, uint8_t key[20])
{
    memset(key, 7, 20);
    pyri_store32(key + 3, number);
    return (pyri_bytes){key, 10 + number % 11};
}

static pyri_bytes
value_of(uint32_t number, unsigned round, uint8_t *value)
{
    size_t size = 8 + number * 37 % (LONGEST - 8);
    memset(value, (int)(number + round), size);
    pyri_store32(value, number);
    return (pyri_bytes){value, size};
}

static bool
is_kept(pyri_recent *c, uint32_t number, unsigned round)
{
    uint8_t key[20], value[LONGEST];
    pyri_bytes want = value_of(number, round, value), got;
    if (!pyri_recent_get(c, key_of(number, key), &got))
        return false;
    CHECK(got.size == want.size);
    CHECK(memcmp(got.data, want.data, want.size) == 0);
    CHECK((uintptr_t)got.data % 8 == 0);
    return true;
}

static void
offer(pyri_recent *c, uint32_t number, unsigned round)
{
    uint8_t key[20], value[LONGEST];
    pyri_recent_offer(c, key_of(number, key), value_of(number, round, value));
}

static void
a_node_is_kept_when_it_is_offered_twice(void)
{
    pyri_recent *c = pyri_recent_new();
    pyri_recent_begin(c, 1);
    CHECK(!is_kept(c, 5, 0));
    offer(c, 5, 0);
    CHECK(!is_kept(c, 5, 0));
    offer(c, 5, 0);
    CHECK(is_kept(c, 5, 0));
    CHECK(!is_kept(c, 6, 0));
    pyri_recent_free(c);
}

static void
all_goes_when_the_mark_is_another(void)
{
    pyri_recent *c = pyri_recent_new();
    pyri_recent_begin(c, 1);
    offer(c, 5, 0);
    offer(c, 5, 0);
    pyri_recent_begin(c, 1);
    CHECK(is_kept(c, 5, 0));
    pyri_recent_begin(c, 2);
    CHECK(!is_kept(c, 5, 0));
    offer(c, 5, 1);
    offer(c, 5, 1);
    CHECK(is_kept(c, 5, 1));
    pyri_recent_free(c);
}

/* A large box has thousands of leaves: all but a few are kept side by side. */
static void
half_as_many_as_there_are_slots_hardly_drive_each_other_out(void)
{
    enum { MANY = 4000 };
    pyri_recent *c = pyri_recent_new();
    uint8_t key[20], value[8] = {0};
    pyri_bytes got;
    int kept = 0;
    pyri_recent_begin(c, 1);
    for (int round = 0; round < 4; round++)
        for (uint32_t i = 0; i < MANY; i++)
            if (!pyri_recent_get(c, key_of(i, key), &got))
                pyri_recent_offer(c, key_of(i, key), (pyri_bytes){value, 8});
    for (uint32_t i = 0; i < MANY; i++)
        kept += pyri_recent_get(c, key_of(i, key), &got);
    CHECK(kept > MANY * 9 / 10);
    pyri_recent_free(c);
}

/* Many more bytes than there is room for; in each round the same few are asked
 * for again and again. */
static void
what_is_asked_for_stays_and_all_of_it_is_right(void)
{
    pyri_recent *c = pyri_recent_new();
    unsigned kept = 0, asked = 0;
    for (unsigned round = 1; round < 40; round++) {
        pyri_recent_begin(c, 9);
        for (uint32_t i = 0; i < KEYS; i++) {
            uint32_t number = i % 10 ? round * KEYS + i : i;
            bool has = is_kept(c, number, 0);
            if (!has) {
                offer(c, number, 0);
                offer(c, number, 0);
            }
            asked += i % 10 == 0;
            kept += i % 10 == 0 && has;
        }
    }
    CHECK(kept > asked / 2);
    pyri_recent_free(c);
}

/* What a reader is shown stays where it is until it begins anew. */
static void
views_are_good_until_the_next_begin(void)
{
    pyri_recent *c = pyri_recent_new();
    uint8_t key[20], value[LONGEST];
    for (unsigned round = 0; round < 6; round++) {
        pyri_bytes seen;
        pyri_recent_begin(c, 3);
        offer(c, 1, 0);
        offer(c, 1, 0);
        if (!pyri_recent_get(c, key_of(1, key), &seen))
            continue; /* the first one, when it has just become full */
        for (uint32_t i = 2; i < KEYS; i++) {
            offer(c, i, 0);
            offer(c, i, 0);
            is_kept(c, i, 0);
        }
        pyri_bytes want = value_of(1, 0, value);
        CHECK(seen.size == want.size);
        CHECK(memcmp(seen.data, want.data, want.size) == 0);
    }
    pyri_recent_free(c);
}

/* --- through the engine -------------------------------------------------- */

/* The node of a version, whether it is trusted; vouches for it if not. */
static uint64_t
get_node(pyri_engine *e, uint64_t version, bool *trusted)
{
    uint8_t key[20] = {0};
    pyri_reader *r;
    pyri_store64_be(key, ARRAY);
    pyri_store64_be(key + 8, version);
    pyri_node_get get = {.key = {key, sizeof key}};
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_get_nodes(e, r, &get, 1));
    CHECK(get.found && get.value.size == 8);
    uint64_t value = get.value.size == 8 ? pyri_load64(get.value.data) : 0;
    *trusted = get.trusted;
    if (!get.trusted)
        pyri_engine_vouch_node(e, r, &get);
    pyri_engine_end(e, r);
    return value;
}

/* Got until it is trusted, which takes a few times. */
static bool
becomes_trusted(pyri_engine *e, uint64_t version, uint64_t value)
{
    bool trusted = false;
    for (int i = 0; i < 6 && !trusted; i++)
        CHECK(get_node(e, version, &trusted) == value);
    return trusted;
}

static pyri_engine *
with_versions(int n)
{
    pyri_engine *e = open_store(tmp_fresh("recent"));
    make_array(e);
    for (int i = 0; i < n; i++) {
        pyri_ticket t = take_one(e);
        OK(complete_one(e, &t));
    }
    return e;
}

static void
nodes_are_trusted_once_they_were_vouched_for(void)
{
    pyri_engine *e = with_versions(2);
    CHECK(becomes_trusted(e, 1, 1));
    pyri_ticket t = take_one(e);
    bool trusted;
    OK(complete_one(e, &t)); /* another version changes no node */
    CHECK(get_node(e, 1, &trusted) == 1 && trusted);
    CHECK(get_node(e, 2, &trusted) == 2 && !trusted);
    pyri_engine_close(e);
}

/* Another in the place of the node of version 1: its value is 1001. */
static const pyri_node_put *
other_node(void)
{
    static uint8_t key[20], value[8];
    static pyri_node_put put = {{key, sizeof key}, {value, sizeof value}};
    pyri_store64_be(key, ARRAY);
    pyri_store64_be(key + 8, 1);
    pyri_store64(value, 1001);
    return &put;
}

static void
a_node_that_is_repaired_is_not_remembered(void)
{
    pyri_engine *e = with_versions(1);
    bool trusted;
    CHECK(becomes_trusted(e, 1, 1));
    OK(pyri_engine_replace_nodes(e, other_node(), 1));
    CHECK(get_node(e, 1, &trusted) == 1001 && !trusted);
    CHECK(becomes_trusted(e, 1, 1001));
    pyri_engine_close(e);
}

static int
decide(pyri_fold *f, pyri_reader *r)
{
    (void)r;
    f->nodes = other_node();
    f->nnodes = 1;
    return 0;
}

static void
a_node_that_is_folded_is_not_remembered(void)
{
    pyri_engine *e = with_versions(1);
    bool trusted;
    CHECK(becomes_trusted(e, 1, 1));
    pyri_fold f = {.family = ARRAY, .decide = decide};
    OK(pyri_engine_fold(e, &f));
    CHECK(get_node(e, 1, &trusted) == 1001 && !trusted);
    pyri_engine_close(e);
}

static void
who_verifies_is_shown_what_is_stored(void)
{
    pyri_engine *e = with_versions(1);
    bool trusted;
    CHECK(becomes_trusted(e, 1, 1));
    OK(pyri_engine_check(e));
    CHECK(get_node(e, 1, &trusted) == 1 && !trusted);
    pyri_engine_close(e);
}

TESTS(T(a_node_is_kept_when_it_is_offered_twice),
      T(all_goes_when_the_mark_is_another),
      T(half_as_many_as_there_are_slots_hardly_drive_each_other_out),
      T(what_is_asked_for_stays_and_all_of_it_is_right),
      T(views_are_good_until_the_next_begin),
      T(nodes_are_trusted_once_they_were_vouched_for),
      T(a_node_that_is_repaired_is_not_remembered),
      T(a_node_that_is_folded_is_not_remembered),
      T(who_verifies_is_shown_what_is_stored))
