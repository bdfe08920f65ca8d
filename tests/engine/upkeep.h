/*
 * tests/engine/upkeep.h - what an engine promises of forgetting, erasing and
 * giving space back.
 */
#ifndef TESTS_ENGINE_UPKEEP_H
#define TESTS_ENGINE_UPKEEP_H

#include "engine/blobs.h"
#include "engine/processes.h"
#include "engine/stores.h"
#include "engine/versions.h"

#include <pyramid/error.h>

/* A version with two nodes and three blobs: small, large and in between. */
enum { OWN_NODES = 2, OWN_BLOBS = 3, OWN_KEY = 17 };

typedef struct held {
    uint64_t array, version;
    uint8_t keys[OWN_NODES][OWN_KEY];
    uint8_t value[2000];
    blob blobs[OWN_BLOBS];
} held;

static void
store_be(uint8_t *to, uint64_t n)
{
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(n >> (56 - 8 * i));
}

static void
list_held(const held *h, pyri_bytes keys[OWN_NODES],
          pyri_blob blobs[OWN_BLOBS])
{
    for (int i = 0; i < OWN_NODES; i++)
        keys[i] = (pyri_bytes){h->keys[i], OWN_KEY};
    for (int i = 0; i < OWN_BLOBS; i++)
        blobs[i] = (pyri_blob){h->blobs[i].ref, h->blobs[i].size};
}

static void
put_held_blobs(pyri_engine *e, held *h)
{
    static const uint64_t sizes[OWN_BLOBS] = {500, 200000, 60000};
    for (int i = 0; i < OWN_BLOBS; i++) {
        h->blobs[i] = (blob){.seed = h->version * 10 + (uint64_t)i,
                             .size = sizes[i], .aligned = i == 1};
        OK(put_blob(e, &h->blobs[i]));
    }
    OK(pyri_engine_sync(e));
}

enum { FAMILY = 77 };

/* `folds` of the family were seen. */
static int
complete_held(pyri_engine *e, const pyri_ticket *t, const held *h,
              uint64_t folds)
{
    pyri_bytes keys[OWN_NODES];
    pyri_blob blobs[OWN_BLOBS];
    pyri_node_put nodes[OWN_NODES];
    list_held(h, keys, blobs);
    for (int i = 0; i < OWN_NODES; i++)
        nodes[i] = (pyri_node_put){keys[i], {h->value, sizeof h->value}};
    pyri_complete c = {.array = h->array, .version = h->version,
                       .shape = t->shape, .nodes = nodes,
                       .nnodes = OWN_NODES, .blobs = blobs,
                       .nblobs = OWN_BLOBS, .record = text("held"),
                       .family = FAMILY, .folds = folds};
    return pyri_engine_complete(e, &c);
}

static held
begin_held(pyri_engine *e, const pyri_ticket *t)
{
    held h = {.array = t->array, .version = t->version};
    fill(h.value, t->version, sizeof h.value);
    for (int i = 0; i < OWN_NODES; i++) {
        store_be(h.keys[i], t->array);
        store_be(h.keys[i] + 8, t->version);
        h.keys[i][16] = (uint8_t)i;
    }
    put_held_blobs(e, &h);
    return h;
}

static uint64_t
folds_now(pyri_engine *e)
{
    uint64_t n;
    pyri_reader *r;
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_folds(e, r, FAMILY, &n));
    pyri_engine_end(e, r);
    return n;
}

static held
publish_held(pyri_engine *e, uint64_t array)
{
    pyri_ticket t = take(e, array, "");
    held h = begin_held(e, &t);
    OK(complete_held(e, &t, &h, folds_now(e)));
    return h;
}

/* How many nodes and blobs of it a reader finds, with the right bytes. */
static int
count_seen(pyri_engine *e, pyri_reader *r, const held *h)
{
    int n = 0;
    for (int i = 0; i < OWN_NODES; i++) {
        pyri_node_get get = {.key = {h->keys[i], OWN_KEY}};
        OK(pyri_engine_get_nodes(e, r, &get, 1));
        n += get.found &&
             same(get.value, (pyri_bytes){h->value, sizeof h->value});
    }
    for (int i = 0; i < OWN_BLOBS; i++) {
        const blob *b = &h->blobs[i];
        pyri_blob_get get = {.ref = b->ref, .size = b->size};
        n += pyri_engine_get_blobs(e, r, &get, 1) == 0 &&
             is_filled(get.data, b->seed, 0, b->size);
    }
    return n;
}

static int
seen_now(pyri_engine *e, const held *h)
{
    pyri_reader *r;
    OK(pyri_engine_begin(e, &r));
    int n = count_seen(e, r, h);
    pyri_engine_end(e, r);
    return n;
}

enum { ALL_OF_IT = OWN_NODES + OWN_BLOBS };

static int
forget(pyri_engine *e, uint64_t version)
{
    pyri_edit edit = {.kind = PYRI_EDIT_FORGET, .array = ARRAY,
                      .version = version};
    return pyri_engine_edit(e, &edit, 1);
}

static int
kept(pyri_engine *e, uint64_t version)
{
    pyri_edit edit = {.kind = PYRI_EDIT_KEPT, .array = ARRAY,
                      .version = version};
    return pyri_engine_edit(e, &edit, 1);
}

/* "found", "forgotten", both as a number: 2, 1. */
static int
state_of(pyri_engine *e, uint64_t version)
{
    pyri_reader *r;
    pyri_version_get got;
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_get_version(e, r, ARRAY, version, &got));
    pyri_engine_end(e, r);
    return 2 * got.found + got.forgotten;
}

enum { UNKNOWN = 0, GONE = 1, KEPT = 2, FORGOTTEN = 3 };

static uint64_t
erase(pyri_engine *e, const held *h)
{
    pyri_bytes keys[OWN_NODES];
    pyri_blob blobs[OWN_BLOBS];
    list_held(h, keys, blobs);
    pyri_erase x = {.nodes = keys, .nnodes = OWN_NODES, .blobs = blobs,
                    .nblobs = OWN_BLOBS, .array = h->array,
                    .versions = &h->version, .nversions = 1,
                    .bytes = 77};
    OK(pyri_engine_erase(e, &x));
    return x.bytes;
}

static uint64_t
bytes_of(const held *h)
{
    uint64_t n = OWN_NODES * (sizeof h->value + OWN_KEY);
    for (int i = 0; i < OWN_BLOBS; i++)
        n += h->blobs[i].size;
    return n;
}

/* --- forgetting ---------------------------------------------------------- */

typedef struct numbers {
    uint64_t list[64];
    int n;
} numbers;

static int
note_forgotten(void *ctx, uint64_t array, uint64_t version)
{
    numbers *all = ctx;
    if (all->n < 64)
        all->list[all->n++] = array * 1000 + version;
    return 0;
}

static void
check_forgotten(pyri_engine *e, const uint64_t *want, int n)
{
    pyri_reader *r;
    numbers got = {.n = 0};
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_scan_forgotten(e, r, note_forgotten, &got));
    pyri_engine_end(e, r);
    REQUIRE(got.n == n);
    for (int i = 0; i < n; i++)
        CHECK(got.list[i] == want[i]);
}

static void
forgotten_versions_are_marked_and_listed_in_order(void)
{
    pyri_engine *e = fresh_with_array();
    make_array(e, 3, 0);
    publish(e, ARRAY, 5);
    publish(e, 3, 2);
    check_forgotten(e, NULL, 0);
    OK(forget(e, 4));
    OK(forget(e, 2));
    OK(forget(e, 2));
    pyri_edit other = {.kind = PYRI_EDIT_FORGET, .array = 3, .version = 1};
    OK(pyri_engine_edit(e, &other, 1));
    check_forgotten(e, (uint64_t[]){3001, 7002, 7004}, 3);
    CHECK(state_of(e, 1) == KEPT && state_of(e, 2) == FORGOTTEN);
    CHECK(state_of(e, 4) == FORGOTTEN && state_of(e, 5) == KEPT);
    CHECK(state_of(e, 6) == UNKNOWN);
    CHECK(version_is(e, ARRAY, 2, "2")); /* its record is still there */
    CHECK(latest(e, ARRAY) == 5);
    pyri_engine_close(e);
}

static void
the_newest_version_cannot_be_forgotten_until_it_is_not(void)
{
    pyri_engine *e = fresh_with_array();
    publish(e, ARRAY, 3);
    FAILS(PYR_EINVAL, forget(e, 3));
    FAILS(PYR_EINVAL, forget(e, 4));
    take(e, ARRAY, ""); /* in flight: 3 is still the newest */
    FAILS(PYR_EINVAL, forget(e, 3));
    FAILS(PYR_EINVAL, forget(e, 4));
    check_forgotten(e, NULL, 0);
    CHECK(state_of(e, 3) == KEPT);
    pyri_engine_close(e);
    e = fresh_with_array();
    publish(e, ARRAY, 4);
    OK(forget(e, 3));
    pyri_engine_close(e);
}

static int
note_state(void *ctx, uint64_t version, const pyri_version_get *v)
{
    numbers *all = ctx;
    if (all->n < 64)
        all->list[all->n++] = version * 10 + (v->forgotten ? 1 : 0);
    return v->found ? 0 : 1;
}

static void
check_scan(pyri_engine *e, uint64_t first, uint64_t last,
           const uint64_t *want, int n)
{
    pyri_reader *r;
    numbers got = {.n = 0};
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_scan_versions(e, r, ARRAY, first, last, note_state, &got));
    pyri_engine_end(e, r);
    REQUIRE(got.n == n);
    for (int i = 0; i < n; i++)
        CHECK(got.list[i] == want[i]);
}

static void
scans_of_versions_tell_the_forgotten_and_skip_what_has_gone(void)
{
    pyri_engine *e = fresh_with_array();
    held h[5];
    for (int i = 0; i < 5; i++)
        h[i] = publish_held(e, ARRAY);
    OK(forget(e, 2));
    OK(forget(e, 3));
    check_scan(e, 1, 5, (uint64_t[]){10, 21, 31, 40, 50}, 5);
    pyri_erase x = {.array = ARRAY, .versions = &(uint64_t){3},
                    .nversions = 1};
    OK(pyri_engine_erase(e, &x)); /* the version goes, its nodes stay */
    CHECK(x.bytes == 0 && seen_now(e, &h[2]) == ALL_OF_IT);
    check_scan(e, 1, 5, (uint64_t[]){10, 21, 40, 50}, 4);
    check_scan(e, 5, 1, (uint64_t[]){50, 40, 21, 10}, 4);
    check_scan(e, 3, 3, NULL, 0);
    CHECK(state_of(e, 3) == GONE && state_of(e, 2) == FORGOTTEN);
    check_forgotten(e, (uint64_t[]){7002}, 1);
    OK(forget(e, 3)); /* gone already: nothing to do */
    check_forgotten(e, (uint64_t[]){7002}, 1);
    pyri_engine_close(e);
}

/* --- edits that depend --------------------------------------------------- */

static void
edits_that_expect_a_version_to_be_kept_fail_whole(void)
{
    pyri_engine *e = fresh_with_array();
    publish(e, ARRAY, 3);
    OK(kept(e, 1));
    OK(forget(e, 1));
    FAILS(PYR_ENOVERSION, kept(e, 1));
    FAILS(PYR_ENOVERSION, kept(e, 4));
    pyri_edit edits[3] = {
        {.kind = PYRI_EDIT_PUT, .key = text("tag"), .value = text("1")},
        {.kind = PYRI_EDIT_FORGET, .array = ARRAY, .version = 2},
        {.kind = PYRI_EDIT_KEPT, .array = ARRAY, .version = 1}};
    FAILS(PYR_ENOVERSION, pyri_engine_edit(e, edits, 3));
    CHECK(record_is(e, "tag", NULL) && state_of(e, 2) == KEPT);
    check_forgotten(e, (uint64_t[]){7001}, 1);
    edits[2].version = 2; /* forgotten by the edit before it */
    FAILS(PYR_ENOVERSION, pyri_engine_edit(e, edits, 3));
    CHECK(record_is(e, "tag", NULL) && state_of(e, 2) == KEPT);
    edits[2].version = 3;
    OK(pyri_engine_edit(e, edits, 3));
    CHECK(record_is(e, "tag", "1") && state_of(e, 2) == FORGOTTEN);
    pyri_engine_close(e);
}

static void
edits_that_expect_a_value_fail_whole(void)
{
    pyri_engine *e = fresh_with_array();
    publish(e, ARRAY, 3);
    OK(edit_one(e, PYRI_EDIT_SAME, "a", "")); /* it is not there */
    FAILS(PYR_EFENCED, edit_one(e, PYRI_EDIT_SAME, "a", "x"));
    OK(edit_one(e, PYRI_EDIT_PUT, "a", "x"));
    OK(edit_one(e, PYRI_EDIT_SAME, "a", "x"));
    FAILS(PYR_EFENCED, edit_one(e, PYRI_EDIT_SAME, "a", ""));
    FAILS(PYR_EFENCED, edit_one(e, PYRI_EDIT_SAME, "a", "xx"));
    FAILS(PYR_EFENCED, edit_one(e, PYRI_EDIT_SAME, "a", "y"));
    CHECK(record_is(e, "a", "x"));
    pyri_edit edits[3] = {
        {.kind = PYRI_EDIT_FORGET, .array = ARRAY, .version = 1},
        {.kind = PYRI_EDIT_PUT, .key = text("b"), .value = text("1")},
        {.kind = PYRI_EDIT_SAME, .key = text("a"), .value = text("y")}};
    FAILS(PYR_EFENCED, pyri_engine_edit(e, edits, 3));
    CHECK(state_of(e, 1) == KEPT && record_is(e, "b", NULL));
    edits[2].value = text("x");
    OK(pyri_engine_edit(e, edits, 3));
    CHECK(state_of(e, 1) == FORGOTTEN && record_is(e, "b", "1"));
    pyri_engine_close(e);
}

/* --- erasing ------------------------------------------------------------- */

static void
what_is_erased_is_gone_and_counted_once(void)
{
    pyri_engine *e = fresh_with_array();
    held first = publish_held(e, ARRAY), second = publish_held(e, ARRAY);
    publish(e, ARRAY, 1);
    OK(forget(e, 1));
    CHECK(seen_now(e, &first) == ALL_OF_IT);
    CHECK(erase(e, &first) == bytes_of(&first));
    CHECK(state_of(e, 1) == GONE && version_is(e, ARRAY, 1, NULL));
    check_forgotten(e, NULL, 0);
    CHECK(seen_now(e, &second) == ALL_OF_IT);
    CHECK(erase(e, &first) == 0); /* again: no failure */
    FAILS(PYR_ENOVERSION, kept(e, 1));
    held never = first;
    never.version = 900;
    for (int i = 0; i < OWN_NODES; i++)
        never.keys[i][OWN_KEY - 1] = 99;
    CHECK(erase(e, &never) == 0); /* unknown keys: likewise */
    pyri_settled got;
    OK(pyri_engine_begin_upkeep(e));
    OK(pyri_engine_settle(e, &got));
    pyri_engine_end_upkeep(e);
    CHECK(got.waiting == 0);
    CHECK(seen_now(e, &first) == 0 && seen_now(e, &second) == ALL_OF_IT);
    pyri_engine_close(e);
}

static void
a_version_that_is_not_forgotten_is_not_erased(void)
{
    pyri_engine *e = fresh_with_array();
    held h = publish_held(e, ARRAY);
    publish(e, ARRAY, 1);
    pyri_bytes keys[OWN_NODES];
    pyri_blob blobs[OWN_BLOBS];
    list_held(&h, keys, blobs);
    pyri_erase x = {.nodes = keys, .nnodes = OWN_NODES, .array = ARRAY,
                    .versions = &(uint64_t){1}, .nversions = 1};
    FAILS(PYR_EINVAL, pyri_engine_erase(e, &x));
    CHECK(state_of(e, 1) == KEPT && seen_now(e, &h) == ALL_OF_IT);
    pyri_engine_close(e);
}

static void
readers_from_before_see_what_is_erased_and_settled(void)
{
    pyri_engine *e = fresh_with_array();
    held h = publish_held(e, ARRAY);
    publish(e, ARRAY, 1);
    OK(forget(e, 1));
    pyri_reader *before;
    pyri_version_get v;
    pyri_settled got;
    OK(pyri_engine_begin(e, &before));
    CHECK(erase(e, &h) == bytes_of(&h));
    CHECK(erase(e, &h) == 0);
    OK(pyri_engine_begin_upkeep(e));
    OK(pyri_engine_settle(e, &got));
    CHECK(got.waiting >= h.blobs[1].size);
    CHECK(count_seen(e, before, &h) == ALL_OF_IT);
    OK(pyri_engine_get_version(e, before, ARRAY, 1, &v));
    CHECK(v.found && v.forgotten && same(v.record, text("held")));
    pyri_engine_end(e, before);
    OK(pyri_engine_settle(e, &got));
    CHECK(got.waiting == 0);
    pyri_engine_end_upkeep(e);
    CHECK(seen_now(e, &h) == 0 && state_of(e, 1) == GONE);
    pyri_engine_close(e);
}

static void
blobs_that_were_dropped_are_named_nowhere(void)
{
    pyri_engine *e = fresh_with_array();
    pyri_bytes keys[OWN_NODES];
    pyri_blob blobs[OWN_BLOBS];
    pyr_status before = {0}, after = {0};
    held h = publish_held(e, ARRAY);
    OK(pyri_engine_status(e, &before, NULL, NULL));
    pyri_ticket t = take(e, ARRAY, "");
    held lost = begin_held(e, &t);
    list_held(&lost, keys, blobs);
    pyri_engine_drop_blobs(e, blobs, OWN_BLOBS, NULL, 0);
    OK(pyri_engine_status(e, &after, NULL, NULL));
    CHECK(after.data_bytes < before.data_bytes + 2 * PYRI_PAGE);
    CHECK(seen_now(e, &lost) == 0 && seen_now(e, &h) == ALL_OF_IT);
    pyri_engine_close(e);
}

/* --- everything ---------------------------------------------------------- */

typedef struct tour {
    int n;
    uint8_t last[PYRI_MAX_KEY];
    size_t last_size;
    const held *held; /* two of them */
    bool wrong;
} tour;

static int
visit_node(void *ctx, pyri_bytes key, pyri_bytes value)
{
    tour *t = ctx;
    const held *h = &t->held[t->n / OWN_NODES % 2];
    t->wrong |= order((pyri_bytes){t->last, t->last_size}, key) >= 0;
    t->wrong |= !same(key, (pyri_bytes){h->keys[t->n % OWN_NODES], OWN_KEY});
    t->wrong |= !same(value, (pyri_bytes){h->value, sizeof h->value});
    memcpy(t->last, key.data, key.size);
    t->last_size = key.size;
    t->n++;
    return 0;
}

static int
visit_blob(void *ctx, const pyri_blob *b, uint64_t array, uint64_t version)
{
    tour *t = ctx;
    bool known = false;
    for (int i = 0; i < 2 * OWN_BLOBS; i++) {
        const held *h = &t->held[i / OWN_BLOBS];
        const blob *own = &h->blobs[i % OWN_BLOBS];
        known |= own->ref.a == b->ref.a && own->ref.b == b->ref.b &&
                 own->size == b->size && h->array == array &&
                 h->version == version;
    }
    t->wrong |= !known;
    t->n++;
    return 0;
}

static int
stop_at_node(void *ctx, pyri_bytes key, pyri_bytes value)
{
    (void)key;
    (void)value;
    return ++*(int *)ctx == 3 ? 33 : 0;
}

static void
scans_show_all_nodes_and_named_blobs(void)
{
    pyri_engine *e = fresh_with_array();
    pyri_reader *r;
    make_array(e, ARRAY + 1, 0);
    held h[2] = {publish_held(e, ARRAY), publish_held(e, ARRAY)};
    held other = publish_held(e, ARRAY + 1);
    blob orphan = {.seed = 5, .size = 300}, large = {.seed = 6, .size = 90000};
    OK(put_blob(e, &orphan));
    OK(put_blob(e, &large));
    OK(pyri_engine_begin(e, &r));
    tour nodes = {.held = h}, blobs = {.held = h};
    OK(pyri_engine_scan_nodes(e, r, ARRAY, visit_node, &nodes));
    CHECK(nodes.n == 2 * OWN_NODES && !nodes.wrong);
    int n = 0;
    CHECK(pyri_engine_scan_nodes(e, r, ARRAY, stop_at_node, &n) == 33);
    CHECK(n == 3);
    OK(pyri_engine_scan_blobs(e, r, visit_blob, &blobs));
    CHECK(blobs.n == 3 * OWN_BLOBS && blobs.wrong); /* the other array's */
    held both[2] = {h[0], other};
    pyri_engine_end(e, r);
    publish(e, ARRAY, 1);
    OK(forget(e, 2));
    erase(e, &h[1]);
    blobs = (tour){.held = both};
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_scan_blobs(e, r, visit_blob, &blobs));
    CHECK(blobs.n == 2 * OWN_BLOBS && !blobs.wrong);
    nodes = (tour){.held = both}; /* what is erased may wait; it is not shown */
    OK(pyri_engine_scan_nodes(e, r, ARRAY, visit_node, &nodes));
    CHECK(nodes.n == OWN_NODES && !nodes.wrong);
    pyri_engine_end(e, r);
    pyri_engine_close(e);
}

static void
flights_tell_on_what_they_are_based(void)
{
    pyri_engine *e = fresh_with_array();
    pyri_ticket one = take(e, ARRAY, "1"), two = take(e, ARRAY, "2");
    OK(complete(e, &one, ""));
    take(e, ARRAY, "3");
    pyri_flights all = flights(e);
    REQUIRE(all.n == 2 && all.base == 1);
    CHECK(all.list[0].base == 0 && all.list[1].base == 1);
    pyri_flights_fini(&all);
    OK(pyri_engine_renew(e, &two));
    all = flights(e);
    REQUIRE(all.n == 2);
    CHECK(all.list[0].base == 0); /* not changed by the renewal */
    pyri_flights_fini(&all);
    pyri_engine_close(e);
}

/* --- one at a time ------------------------------------------------------- */

static void
upkeep_is_for_one_handle_at_a_time(void)
{
    pyri_engine *e = fresh(), *other = open_as(0, 0);
    OK(pyri_engine_begin_upkeep(e));
    FAILS(PYR_ETIMEOUT, pyri_engine_try_upkeep(e));
    FAILS(PYR_ETIMEOUT, pyri_engine_try_upkeep(other));
    pyri_engine_end_upkeep(e);
    OK(pyri_engine_begin_upkeep(other));
    FAILS(PYR_ETIMEOUT, pyri_engine_try_upkeep(e));
    pyri_engine_end_upkeep(other);
    pyri_engine *reader = open_as(PYR_OPEN_READONLY, 0);
    FAILS(PYR_EREADONLY, pyri_engine_begin_upkeep(reader));
    pyri_engine_close(reader);
    OK(pyri_engine_begin_upkeep(e));
    pyri_engine_end_upkeep(e);
    pyri_engine_close(other);
    pyri_engine_close(e);
}

typedef struct turns {
    atomic_int inside, turns;
} turns;

static void *
take_turns(void *arg)
{
    worker *w = arg;
    turns *t = w->shared;
    int64_t since = now_ns();
    for (int done = 0; done < 50;) {
        int err = pyri_engine_begin_upkeep(w->e);
        if (err == PYR_ETIMEOUT && patient(since))
            continue;
        if (!WORKED(w, err == 0))
            break;
        WORKED(w, atomic_fetch_add(&t->inside, 1) == 0);
        atomic_fetch_add(&t->turns, 1);
        atomic_fetch_sub(&t->inside, 1);
        pyri_engine_end_upkeep(w->e);
        done++;
    }
    return NULL;
}

static void
upkeep_is_for_one_thread_at_a_time(void)
{
    pyri_engine *e = fresh();
    turns t = {0};
    run_threads(e, take_turns, &t);
    CHECK(t.turns == 50 * THREADS);
    OK(pyri_engine_begin_upkeep(e)); /* nobody left it locked */
    pyri_engine_end_upkeep(e);
    pyri_engine_close(e);
}

static int
process_holds_upkeep(pyri_engine *e, int number, void *shared)
{
    (void)number;
    if (pyri_engine_begin_upkeep(e) < 0)
        return 1;
    atomic_store((atomic_int *)shared, 1);
    for (int64_t since = now_ns(); patient(since);)
        ;
    return 1;
}

static void
upkeep_ends_when_its_process_is_killed(void)
{
    atomic_int *holds = mmap(NULL, sizeof *holds, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(holds != MAP_FAILED);
    pyri_engine_close(fresh());
    pid_t pid = start_process(process_holds_upkeep, 0, holds);
    REQUIRE(pid > 0);
    pyri_engine *e = open_as(0, 0);
    for (int64_t since = now_ns(); !atomic_load(holds) && patient(since);)
        ;
    FAILS(PYR_ETIMEOUT, pyri_engine_try_upkeep(e));
    int status;
    REQUIRE(kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid);
    OK(pyri_engine_begin_upkeep(e));
    pyri_engine_end_upkeep(e);
    pyri_engine_close(e);
    munmap(holds, sizeof *holds);
}

/* A child that was forked in between has a copy of everything. */
static void
upkeep_ends_though_a_child_lives_on(void)
{
    pyri_engine *e = fresh();
    int pipes[2];
    REQUIRE(pipe(pipes) == 0);
    OK(pyri_engine_begin_upkeep(e));
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        close(pipes[1]);
        pyri_engine_end_upkeep(e); /* the parent's: changes nothing */
        _exit(read(pipes[0], &byte, 1) != 0);
    }
    close(pipes[0]);
    pyri_engine *other = open_as(0, 0);
    FAILS(PYR_ETIMEOUT, pyri_engine_try_upkeep(other));
    pyri_engine_end_upkeep(e);
    OK(pyri_engine_begin_upkeep(other));
    pyri_engine_end_upkeep(other);
    pyri_engine_close(other);
    pyri_engine_close(e);
    int status;
    close(pipes[1]);
    REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#endif
