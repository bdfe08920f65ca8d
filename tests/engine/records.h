/*
 * tests/engine/records.h - what an engine promises of records, of nodes, and
 * of stores as a whole.
 */
#ifndef TESTS_ENGINE_RECORDS_H
#define TESTS_ENGINE_RECORDS_H

#include "engine/stores.h"

/* --- stores -------------------------------------------------------------- */

static void
a_store_that_is_not_there_is_not_found(void)
{
    pyri_engine *e = fresh();
    pyri_engine_close(e);
    name_another();
    FAILS(PYR_ENOTFOUND, pyri_engine_open(last_url, 0, NULL, &e));
    CHECK(e == NULL);
    FAILS(PYR_ENOTFOUND,
          pyri_engine_open(last_url, PYR_OPEN_READONLY, NULL, &e));
    CHECK(e == NULL);
}

static void
a_store_keeps_what_it_was_made_with(void)
{
    pyri_engine *a = fresh_with_lease(1234);
    CHECK(a->lease_ms == 1234 && a->durability == durability);
    pyr_store_options other = {.durability = !durability, .lease_ms = 77};
    pyri_engine *b;
    OK(pyri_engine_open(last_url, PYR_OPEN_CREATE, &other, &b));
    CHECK(b->lease_ms == 1234 && b->durability == durability);
    pyri_engine_close(b);
    OK(pyri_engine_open(last_url, 0, NULL, &b));
    CHECK(b->lease_ms == 1234 && b->durability == durability);
    pyri_engine_close(b);
    pyri_engine_close(a);
}

static void
the_lease_is_ten_seconds_if_none_is_given(void)
{
    pyri_engine *e = fresh();
    CHECK(e->lease_ms == 10000);
    pyri_engine_close(e);
}

static void
two_handles_see_each_others_work(void)
{
    pyri_engine *a = fresh_with_array();
    pyri_engine *b = open_as(0, 0);
    OK(edit_one(a, PYRI_EDIT_PUT, "key", "from a"));
    CHECK(record_is(b, "key", "from a"));
    pyri_ticket first = take(a, ARRAY, ""), second = take(b, ARRAY, "");
    CHECK(first.version == 1 && second.version == 2);
    OK(complete(b, &second, "two"));
    CHECK(latest(a, ARRAY) == 0);
    OK(complete(a, &first, "one"));
    CHECK(latest(b, ARRAY) == 2);
    pyri_engine_close(a);
    CHECK(version_is(b, ARRAY, 1, "one"));
    pyri_engine_close(b);
}

static void
a_read_only_engine_reads(void)
{
    pyri_engine *writer = fresh_with_array();
    OK(edit_one(writer, PYRI_EDIT_PUT, "key", "value"));
    publish(writer, ARRAY, 1);
    pyri_engine *e = open_as(PYR_OPEN_READONLY, 0);
    pyri_flights flights = {0};
    CHECK(record_is(e, "key", "value"));
    CHECK(version_is(e, ARRAY, 1, "1"));
    OK(pyri_engine_flights(e, ARRAY, &flights));
    CHECK(flights.base == 1 && flights.n == 0);
    pyri_flights_fini(&flights);
    OK(pyri_engine_wait(e, ARRAY, 1, 0));
    publish(writer, ARRAY, 1);
    CHECK(latest(e, ARRAY) == 2);
    pyri_engine_close(e);
    pyri_engine_close(writer);
}

static void
a_read_only_engine_refuses_to_store(void)
{
    pyri_engine *writer = fresh_with_array();
    pyri_ticket ticket = take(writer, ARRAY, "");
    pyri_engine *e = open_as(PYR_OPEN_READONLY, 0);
    struct iovec iov = {&ticket, sizeof ticket};
    pyri_blob_put put = {.iov = &iov, .niov = 1, .size = sizeof ticket};
    pyri_take want = {.array = ARRAY, .grow_axis = -1};
    pyri_ticket got;
    pyri_flights below = {0};
    FAILS(PYR_EREADONLY, edit_one(e, PYRI_EDIT_PUT, "key", "value"));
    FAILS(PYR_EREADONLY, pyri_engine_put_blobs(e, &put, 1));
    FAILS(PYR_EREADONLY, pyri_engine_take(e, &want, &got, &below));
    FAILS(PYR_EREADONLY, pyri_engine_renew(e, &ticket));
    FAILS(PYR_EREADONLY, complete(e, &ticket, "no"));
    CHECK(record_is(e, "key", NULL) && latest(e, ARRAY) == 0);
    pyri_engine_close(e);
    pyri_engine_close(writer);
}

static void
the_status_counts_what_is_there(void)
{
    pyri_engine *e = fresh_with_array();
    static uint8_t bytes[100000];
    struct iovec iov = {bytes, sizeof bytes};
    pyri_blob_put put = {.iov = &iov, .niov = 1, .size = sizeof bytes};
    OK(pyri_engine_put_blobs(e, &put, 1));
    pyri_ticket first = take(e, ARRAY, "");
    take(e, ARRAY, "");
    pyr_status status;
    OK(pyri_engine_status(e, &status, NULL, NULL));
    CHECK(strcmp(status.engine, e->ops->scheme) == 0);
    CHECK(status.durability == e->durability);
    CHECK(status.lease_ms == e->lease_ms);
    CHECK(status.data_bytes >= sizeof bytes);
    CHECK(status.metadata_bytes > 0);
    CHECK(status.writers == 1);
    CHECK(status.in_flight == 2);
    OK(complete(e, &first, ""));
    OK(pyri_engine_status(e, &status, NULL, NULL));
    CHECK(status.in_flight == 1);
    pyri_engine_close(e);
}

/* --- records ------------------------------------------------------------- */

static void
a_record_is_put_changed_and_deleted(void)
{
    pyri_engine *e = fresh();
    CHECK(record_is(e, "key", NULL));
    OK(edit_one(e, PYRI_EDIT_PUT, "key", "one"));
    CHECK(record_is(e, "key", "one"));
    OK(edit_one(e, PYRI_EDIT_PUT, "key", "another one"));
    CHECK(record_is(e, "key", "another one"));
    OK(edit_one(e, PYRI_EDIT_PUT, "key", ""));
    CHECK(record_is(e, "key", ""));
    OK(edit_one(e, PYRI_EDIT_DELETE, "key", ""));
    CHECK(record_is(e, "key", NULL));
    OK(edit_one(e, PYRI_EDIT_CREATE, "key", "again"));
    CHECK(record_is(e, "key", "again"));
    pyri_engine_close(e);
}

static void
edits_say_what_is_or_is_not_there(void)
{
    pyri_engine *e = fresh();
    OK(edit_one(e, PYRI_EDIT_CREATE, "key", "one"));
    FAILS(PYR_EEXIST, edit_one(e, PYRI_EDIT_CREATE, "key", "two"));
    CHECK(record_is(e, "key", "one"));
    FAILS(PYR_ENOTFOUND, edit_one(e, PYRI_EDIT_DELETE, "other", ""));
    FAILS(PYR_ENOTFOUND, edit_one(e, PYRI_EDIT_EXPECT, "other", ""));
    OK(edit_one(e, PYRI_EDIT_EXPECT, "key", "ignored"));
    CHECK(record_is(e, "key", "one"));
    make_array(e, ARRAY, 0);
    pyri_edit array = {.kind = PYRI_EDIT_ARRAY,
                       .array = ARRAY,
                       .ndim = NDIM,
                       .shape = SHAPE};
    FAILS(PYR_EEXIST, pyri_engine_edit(e, &array, 1));
    OK(pyri_engine_edit(e, NULL, 0));
    pyri_engine_close(e);
}

static void
a_failing_edit_undoes_the_whole_batch(void)
{
    const struct {
        pyri_edit_kind kind;
        const char *key;
        int code;
    } bad[] = {{PYRI_EDIT_CREATE, "a", PYR_EEXIST},
               {PYRI_EDIT_DELETE, "none", PYR_ENOTFOUND},
               {PYRI_EDIT_EXPECT, "none", PYR_ENOTFOUND},
               {PYRI_EDIT_EXPECT, "b", PYR_ENOTFOUND}}; /* just deleted */
    pyri_engine *e = fresh();
    OK(edit_one(e, PYRI_EDIT_PUT, "a", "old a"));
    OK(edit_one(e, PYRI_EDIT_PUT, "b", "old b"));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        pyri_edit edits[] = {
            {.kind = PYRI_EDIT_PUT, .key = text("a"), .value = text("new")},
            {.kind = PYRI_EDIT_DELETE, .key = text("b")},
            {.kind = PYRI_EDIT_CREATE, .key = text("c"), .value = text("c")},
            {.kind = PYRI_EDIT_ARRAY,
             .array = 99,
             .ndim = NDIM,
             .shape = SHAPE},
            {.kind = bad[i].kind, .key = text(bad[i].key)},
            {.kind = PYRI_EDIT_PUT, .key = text("d"), .value = text("d")},
        };
        FAILS(bad[i].code, pyri_engine_edit(e, edits, 6));
        CHECK(record_is(e, "a", "old a"));
        CHECK(record_is(e, "b", "old b"));
        CHECK(record_is(e, "c", NULL) && record_is(e, "d", NULL));
        pyri_flights flights = {0};
        FAILS(PYR_ENOTFOUND, pyri_engine_flights(e, 99, &flights));
    }
    pyri_engine_close(e);
}

static void
later_edits_of_a_batch_see_the_earlier(void)
{
    pyri_engine *e = fresh();
    pyri_edit edits[] = {
        {.kind = PYRI_EDIT_CREATE, .key = text("a"), .value = text("1")},
        {.kind = PYRI_EDIT_EXPECT, .key = text("a")},
        {.kind = PYRI_EDIT_PUT, .key = text("a"), .value = text("2")},
        {.kind = PYRI_EDIT_CREATE, .key = text("b"), .value = text("3")},
        {.kind = PYRI_EDIT_DELETE, .key = text("b")},
    };
    OK(pyri_engine_edit(e, edits, 5));
    CHECK(record_is(e, "a", "2") && record_is(e, "b", NULL));
    pyri_engine_close(e);
}

typedef struct walk {
    pyri_bytes keys[600], values[600]; /* views */
    size_t n;
    size_t stop; /* at this many with `answer` */
    int answer;
} walk;

static int
note_record(void *ctx, pyri_bytes key, pyri_bytes value)
{
    walk *w = ctx;
    w->keys[w->n] = key;
    w->values[w->n++] = value;
    return w->n == w->stop ? w->answer : 0;
}

static void
a_scan_gives_all_of_a_prefix_in_order_of_bytes(void)
{
    pyri_engine *e = fresh();
    const char *put[] = {"b/2",    "a",   "b/",    "b0",  "b/\xff\xff",
                         "b/10",   "c/1", "b",     "b/1", "B/1",
                         "b/\xff", "b.1", "b/\x01"};
    const char *want[] = {"b/",  "b/\x01", "b/1",       "b/10",
                          "b/2", "b/\xff", "b/\xff\xff"};
    for (size_t i = 0; i < sizeof put / sizeof put[0]; i++)
        OK(edit_one(e, PYRI_EDIT_PUT, put[i], put[i]));
    static walk w;
    pyri_reader *r;
    w = (walk){0};
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_scan_records(e, r, text("b/"), note_record, &w));
    REQUIRE(w.n == sizeof want / sizeof want[0]);
    for (size_t i = 0; i < w.n; i++)
        CHECK(same(w.keys[i], text(want[i])) && same(w.values[i], w.keys[i]));
    w = (walk){0};
    OK(pyri_engine_scan_records(e, r, text("b/3"), note_record, &w));
    CHECK(w.n == 0);
    OK(pyri_engine_scan_records(e, r, text("d"), note_record, &w));
    CHECK(w.n == 0);
    OK(pyri_engine_scan_records(e, r, text(""), note_record, &w));
    CHECK(w.n == sizeof put / sizeof put[0]);
    for (size_t i = 1; i < w.n; i++)
        CHECK(order(w.keys[i - 1], w.keys[i]) < 0);
    pyri_engine_end(e, r);
    pyri_engine_close(e);
}

static void
a_scan_of_bytes_that_are_all_ones_ends(void)
{
    pyri_engine *e = fresh();
    const char *keys[] = {"\xff", "\xff\xff", "\xfe", "\xff\xff\xff"};
    for (int i = 0; i < 4; i++)
        OK(edit_one(e, PYRI_EDIT_PUT, keys[i], "value"));
    static walk w;
    pyri_reader *r;
    w = (walk){0};
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_scan_records(e, r, text("\xff\xff"), note_record, &w));
    REQUIRE(w.n == 2);
    CHECK(w.keys[0].size == 2 && w.keys[1].size == 3);
    pyri_engine_end(e, r);
    pyri_engine_close(e);
}

static void
the_callback_ends_a_scan_with_its_answer(void)
{
    pyri_engine *e = fresh();
    for (const char *key = "a\0b\0c\0"; *key; key += 2)
        OK(edit_one(e, PYRI_EDIT_PUT, key, key));
    pyri_reader *r;
    static walk w;
    OK(pyri_engine_begin(e, &r));
    const int answers[] = {17, -17};
    for (int i = 0; i < 2; i++) {
        w = (walk){.stop = 2, .answer = answers[i]};
        CHECK(pyri_engine_scan_records(e, r, text(""), note_record, &w) ==
              answers[i]);
        CHECK(w.n == 2);
    }
    pyri_engine_end(e, r);
    pyri_engine_close(e);
}

static int
read_in_scan(void *ctx, pyri_bytes key, pyri_bytes value)
{
    pyri_engine *e = ctx;
    pyri_bytes got;
    bool found;
    pyri_reader *r;
    int err = pyri_engine_begin(e, &r);
    if (err < 0)
        return err;
    err = pyri_engine_get_record(e, r, key, &got, &found);
    bool is = err == 0 && found && same(got, value);
    pyri_engine_end(e, r);
    return err < 0 ? err : !is;
}

static void
the_callback_of_a_scan_may_read(void)
{
    pyri_engine *e = fresh();
    pyri_reader *r;
    OK(edit_one(e, PYRI_EDIT_PUT, "a", "1"));
    OK(edit_one(e, PYRI_EDIT_PUT, "b", "2"));
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_scan_records(e, r, text(""), read_in_scan, e));
    pyri_engine_end(e, r);
    pyri_engine_close(e);
}

static void
keys_and_values_are_any_bytes(void)
{
    pyri_engine *e = fresh();
    static uint8_t key[PYRI_MAX_KEY], value[100000];
    const size_t sizes[] = {1, 2, 255, 256, PYRI_MAX_KEY};
    for (size_t i = 0; i < sizeof value; i++)
        value[i] = (uint8_t)mixed(i);
    for (int i = 0; i < 5; i++) { /* all zeros, of growing sizes */
        pyri_edit put = {.kind = PYRI_EDIT_CREATE,
                         .key = {key, sizes[i]},
                         .value = {value, sizeof value - sizes[i]}};
        OK(pyri_engine_edit(e, &put, 1));
    }
    pyri_reader *r;
    OK(pyri_engine_begin(e, &r));
    for (int i = 0; i < 5; i++) {
        pyri_bytes got;
        bool found;
        OK(pyri_engine_get_record(e, r, (pyri_bytes){key, sizes[i]}, &got,
                                  &found));
        CHECK(found);
        CHECK(same(got, (pyri_bytes){value, sizeof value - sizes[i]}));
    }
    static walk w;
    w = (walk){0};
    OK(pyri_engine_scan_records(e, r, (pyri_bytes){key, 256}, note_record, &w));
    CHECK(w.n == 2);
    pyri_engine_end(e, r);
    pyri_engine_close(e);
}

static void
views_survive_until_their_reader_ends(void)
{
    pyri_engine *e = fresh();
    static char key[16], value[3000];
    pyri_reader *r;
    OK(edit_one(e, PYRI_EDIT_PUT, "small", "value"));
    for (int i = 0; i < 500; i++) {
        snprintf(key, sizeof key, "k%03d", i);
        memset(value, 'a' + i % 26, 6 * (size_t)i);
        value[6 * i] = 0;
        OK(edit_one(e, PYRI_EDIT_PUT, key, value));
    }
    OK(pyri_engine_begin(e, &r));
    pyri_bytes small;
    bool found;
    OK(pyri_engine_get_record(e, r, text("small"), &small, &found));
    static walk w;
    w = (walk){0};
    OK(pyri_engine_scan_records(e, r, text("k"), note_record, &w));
    REQUIRE(found && w.n == 500);
    for (int i = 0; i < 500; i++) {
        snprintf(key, sizeof key, "k%03d", i);
        OK(edit_one(e, i % 3 ? PYRI_EDIT_PUT : PYRI_EDIT_DELETE, key, "new"));
    }
    OK(edit_one(e, PYRI_EDIT_PUT, "small", "other"));
    OK(edit_one(e, PYRI_EDIT_DELETE, "small", ""));
    CHECK(same(small, text("value")));
    for (int i = 0; i < 500; i++) {
        memset(value, 'a' + i % 26, 6 * (size_t)i);
        CHECK(same(w.values[i], (pyri_bytes){value, 6 * (size_t)i}));
        snprintf(key, sizeof key, "k%03d", i);
        CHECK(same(w.keys[i], text(key)));
    }
    pyri_engine_end(e, r);
    CHECK(record_is(e, "small", NULL) && record_is(e, "k001", "new"));
    pyri_engine_close(e);
}

static void
a_thread_may_have_several_readers(void)
{
    pyri_engine *e = fresh();
    pyri_reader *old, *young;
    pyri_bytes a, b;
    bool found;
    OK(edit_one(e, PYRI_EDIT_PUT, "key", "old"));
    OK(pyri_engine_begin(e, &old));
    OK(pyri_engine_get_record(e, old, text("key"), &a, &found));
    OK(edit_one(e, PYRI_EDIT_PUT, "key", "new"));
    OK(pyri_engine_begin(e, &young));
    OK(pyri_engine_get_record(e, young, text("key"), &b, &found));
    CHECK(same(a, text("old")) && same(b, text("new")));
    pyri_engine_end(e, old);
    CHECK(same(b, text("new")));
    pyri_engine_end(e, young);
    pyri_engine_end(e, NULL);
    pyri_engine_close(e);
}

/* Each thread counts up in its own record, and all in steps of a pair. */
static void *
count_up(void *arg)
{
    worker *w = arg;
    char key[8], value[16];
    snprintf(key, sizeof key, "t%d", w->number);
    for (int i = 0; i < rounds(250) && !w->failures; i++) {
        snprintf(value, sizeof value, "%d %d", w->number, i);
        pyri_edit edits[] = {
            {.kind = PYRI_EDIT_PUT, .key = text(key), .value = text(value)},
            {.kind = PYRI_EDIT_PUT, .key = text("x"), .value = text(value)},
            {.kind = PYRI_EDIT_PUT, .key = text("y"), .value = text(value)},
        };
        WORKED(w, pyri_engine_edit(w->e, edits, 3) == 0);
        static _Thread_local walk seen;
        pyri_reader *r;
        pyri_bytes own;
        bool found;
        seen = (walk){0};
        if (!WORKED(w, pyri_engine_begin(w->e, &r) == 0))
            break;
        WORKED(w,
               pyri_engine_get_record(w->e, r, text(key), &own, &found) == 0);
        WORKED(w, found && same(own, text(value)));
        WORKED(w, pyri_engine_scan_records(w->e, r, text(""), note_record,
                                           &seen) == 0);
        size_t n = seen.n;
        WORKED(w, n >= 3 && same(seen.values[n - 1], seen.values[n - 2]));
        pyri_engine_end(w->e, r);
    }
    return NULL;
}

static void
a_scan_shows_batches_whole_while_others_edit(void)
{
    pyri_engine *e = fresh();
    run_threads(e, count_up, NULL);
    pyri_engine_close(e);
}

/* --- nodes --------------------------------------------------------------- */

enum { NODES = 3000 };

/* A key of 8 to PYRI_MAX_KEY bytes; many begin alike. */
static pyri_bytes
node_key(uint8_t *bytes, uint64_t n)
{
    size_t size = n % 50 == 0 ? PYRI_MAX_KEY : 8 + mixed(n) % 40;
    memset(bytes, n % 3 ? 0xff : 0, size);
    memcpy(bytes + size - 8, &n, 8);
    return (pyri_bytes){bytes, size};
}

static size_t
node_size(uint64_t n)
{
    return n % 7 == 0 ? 0 : mixed(n) % 600;
}

static int
complete_nodes(pyri_engine *e, pyri_node_put *nodes, size_t n)
{
    pyri_ticket ticket = take(e, ARRAY, "");
    pyri_complete c = {.array = ARRAY,
                       .version = ticket.version,
                       .shape = ticket.shape,
                       .nodes = nodes,
                       .nnodes = n};
    return pyri_engine_complete(e, &c);
}

static void
check_node(const pyri_node_get *get, uint64_t n)
{
    CHECK(get->found == (n < NODES));
    if (get->found)
        CHECK(get->value.size == node_size(n) &&
              is_filled(get->value.data, n, 0, get->value.size));
}

static void
nodes_are_found_by_their_keys_or_not_found(void)
{
    enum { ALL = NODES + 2000 };
    pyri_engine *e = fresh_with_array();
    uint8_t(*keys)[PYRI_MAX_KEY] = need(ALL * sizeof *keys);
    uint8_t(*values)[600] = need(ALL * sizeof *values);
    pyri_node_put *puts = need(NODES * sizeof *puts);
    pyri_node_get *gets = need(ALL * sizeof *gets);
    uint64_t *numbers = need(ALL * sizeof *numbers);
    for (uint64_t n = 0; n < NODES; n++) {
        puts[n].key = node_key(keys[n], n);
        puts[n].value = (pyri_bytes){values[n], node_size(n)};
        fill(values[n], n, node_size(n));
    }
    OK(complete_nodes(e, puts, NODES));
    shuffle(numbers, ALL, 5);
    for (int i = 0; i < ALL; i++)
        gets[i].key = node_key(keys[numbers[i]], numbers[i]);
    pyri_reader *r;
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_get_nodes(e, r, gets, ALL));
    for (int i = 0; i < ALL; i++)
        check_node(&gets[i], numbers[i]);
    OK(pyri_engine_get_nodes(e, r, gets, 0));
    pyri_engine_end(e, r);
    pyri_engine_close(e);
    free(keys);
    free(values);
    free(puts);
    free(gets);
    free(numbers);
}

static void
values_of_nodes_are_empty_to_large(void)
{
    const size_t sizes[] = {0,    1,    7,     8,      500,    2000,
                            4000, 4096, 65536, 200000, 1 << 20};
    enum { N = sizeof sizes / sizeof sizes[0] };
    pyri_engine *e = fresh_with_array();
    uint8_t *bytes = need(1 << 20);
    uint8_t keys[N];
    fill(bytes, 3, 1 << 20);
    pyri_node_put puts[N];
    pyri_node_get gets[N] = {0};
    for (uint8_t i = 0; i < N; i++) {
        keys[i] = i;
        puts[i].key = gets[i].key = (pyri_bytes){&keys[i], 1};
        puts[i].value = (pyri_bytes){bytes, sizes[i]};
    }
    OK(complete_nodes(e, puts, N));
    pyri_reader *r;
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_get_nodes(e, r, gets, N));
    for (int i = 0; i < N; i++)
        CHECK(gets[i].found && same(gets[i].value, puts[i].value));
    pyri_engine_end(e, r);
    pyri_engine_close(e);
    free(bytes);
}

static void
records_and_nodes_are_apart(void)
{
    pyri_engine *e = fresh_with_array();
    pyri_node_put put = {text("node"), text("value")};
    OK(edit_one(e, PYRI_EDIT_PUT, "record", "value"));
    OK(complete_nodes(e, &put, 1));
    CHECK(has_node(e, "node") && !has_node(e, "record"));
    CHECK(record_is(e, "node", NULL));
    static walk w;
    pyri_reader *r;
    w = (walk){0};
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_scan_records(e, r, text(""), note_record, &w));
    CHECK(w.n == 1); /* nor does the array show as one */
    pyri_engine_end(e, r);
    pyri_engine_close(e);
}

#endif
