/*
 * tests/engine/versions.h - what an engine promises of versions.
 */
#ifndef TESTS_ENGINE_VERSIONS_H
#define TESTS_ENGINE_VERSIONS_H

#include "engine/stores.h"

static pyri_flights
flights(pyri_engine *e)
{
    pyri_flights list = {0};
    OK(pyri_engine_flights(e, ARRAY, &list));
    return list;
}

/* --- taking -------------------------------------------------------------- */

static void
versions_are_given_one_after_another(void)
{
    pyri_engine *e = fresh_with_array();
    for (uint64_t i = 1; i <= 20; i++) {
        pyri_ticket ticket = take(e, ARRAY, "");
        CHECK(ticket.version == i && ticket.array == ARRAY);
        if (i % 3)
            OK(complete(e, &ticket, ""));
    }
    CHECK(latest(e, ARRAY) == 2);
    pyri_engine_close(e);
}

static void
an_array_begins_after_the_version_it_was_made_with(void)
{
    pyri_engine *e = fresh();
    make_array(e, ARRAY, 41);
    pyri_reader *r;
    uint64_t version, shape[PYR_MAX_DIMS];
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_latest(e, r, ARRAY, &version, shape));
    CHECK(version == 41 && shape[0] == SHAPE[0] && shape[1] == SHAPE[1]);
    pyri_engine_end(e, r);
    CHECK(version_is(e, ARRAY, 41, NULL)); /* published, without a record */
    CHECK(take(e, ARRAY, "").version == 42);
    pyri_engine_close(e);
}

static uint64_t
mark_of(pyri_engine *e, uint64_t array)
{
    pyri_reader *r;
    uint64_t version, shape[PYR_MAX_DIMS], mark = 1;
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_marked(e, r, array, &version, shape, &mark));
    CHECK(shape[0] == SHAPE[0] && shape[1] == SHAPE[1]);
    pyri_engine_end(e, r);
    return mark;
}

static void
a_mark_stays_with_its_array(void)
{
    pyri_engine *e = fresh_with_array();
    pyri_edit edits[] = {
        {.kind = PYRI_EDIT_MARK, .array = ARRAY, .version = 0xffffffffffffff},
        {.kind = PYRI_EDIT_MARK, .array = 99, .version = 5}};
    make_array(e, ARRAY + 1, 0);
    if (pyri_engine_has_marks(e)) {
        CHECK(mark_of(e, ARRAY) == 0);
        FAILS(PYR_ENOTFOUND, pyri_engine_edit(e, edits, 2)); /* or none */
        CHECK(mark_of(e, ARRAY) == 0);
        OK(pyri_engine_edit(e, edits, 1));
        pyri_ticket ticket = take(e, ARRAY, "");
        OK(complete(e, &ticket, ""));
        CHECK(latest(e, ARRAY) == 1);
        CHECK(mark_of(e, ARRAY) == 0xffffffffffffff);
        CHECK(mark_of(e, ARRAY + 1) == 0);
    } else {
        FAILS(PYR_EINVAL, pyri_engine_edit(e, edits, 1));
    }
    pyri_engine_close(e);
}

enum { CLAIMS = 12 };

/* Claims of 0 bytes to 100 KB, each with its own bytes. */
static pyri_bytes
claim_of(int i)
{
    static uint8_t bytes[100000];
    size_t size = i % 4 == 3 ? sizeof bytes : (size_t)(i % 4) * 100;
    fill(bytes, (uint64_t)i, size);
    return (pyri_bytes){bytes, size};
}

/* Whether the list is what versions base + 1 ... base + n claimed. */
static void
check_flights(const pyri_flights *list, uint64_t base, size_t n)
{
    CHECK(list->base == base);
    CHECK(list->base_shape[0] == SHAPE[0] + base);
    CHECK(list->base_shape[1] == SHAPE[1]);
    REQUIRE(list->n == n);
    for (size_t i = 0; i < n; i++) {
        const pyri_flight *f = &list->list[i];
        CHECK(f->version == base + 1 + i);
        CHECK(!f->dead);
        CHECK(same(f->claim, claim_of((int)f->version)));
        CHECK(f->shape[0] == SHAPE[0] + f->version);
        CHECK(f->shape[1] == SHAPE[1]);
    }
}

static void
a_taker_learns_all_that_is_in_flight_below_it(void)
{
    pyri_engine *e = fresh_with_array();
    pyri_ticket tickets[CLAIMS + 1];
    uint64_t base = 0;
    for (int v = 1; v <= CLAIMS; v++) { /* each makes axis 0 one longer */
        pyri_take want = {.array = ARRAY, .claim = claim_of(v), .grow_by = 1};
        pyri_flights below = {0};
        OK(pyri_engine_take(e, &want, &tickets[v], &below));
        CHECK(tickets[v].before[0] + 1 == tickets[v].shape[0]);
        CHECK(tickets[v].version == (uint64_t)v);
        check_flights(&below, base, (size_t)v - 1 - base);
        pyri_flights_fini(&below);
        if (v % 4 == 0) /* 1, 2 and 3 land when 4, 8 and 12 are taken */
            OK(complete(e, &tickets[++base], ""));
    }
    pyri_flights all = flights(e);
    check_flights(&all, base, CLAIMS - base);
    pyri_flights_fini(&all);
    pyri_engine_close(e);
}

static void
those_complete_but_not_published_show_as_complete(void)
{
    pyri_engine *e = fresh_with_array();
    pyri_ticket first = take(e, ARRAY, "1"), second = take(e, ARRAY, "2");
    take(e, ARRAY, "3");
    OK(complete(e, &second, ""));
    pyri_flights all = flights(e);
    REQUIRE(all.n == 3);
    CHECK(!all.list[0].complete && all.list[1].complete &&
          !all.list[2].complete);
    CHECK(same(all.list[1].claim, text("2")));
    pyri_flights_fini(&all);
    OK(complete(e, &first, ""));
    all = flights(e);
    CHECK(all.base == 2 && all.n == 1 && all.list[0].version == 3);
    pyri_flights_fini(&all);
    pyri_engine_close(e);
}

static void
two_arrays_are_independent(void)
{
    pyri_engine *e = fresh_with_array();
    make_array(e, ARRAY + 1, 10);
    make_array(e, UINT64_MAX, 0);
    pyri_ticket a = take(e, ARRAY, "a"), b = take(e, ARRAY + 1, "b");
    CHECK(a.version == 1 && b.version == 11);
    OK(complete(e, &b, "of b"));
    CHECK(latest(e, ARRAY) == 0 && latest(e, ARRAY + 1) == 11);
    OK(complete(e, &a, "of a"));
    CHECK(version_is(e, ARRAY, 1, "of a"));
    CHECK(version_is(e, ARRAY + 1, 11, "of b"));
    CHECK(version_is(e, ARRAY + 1, 1, NULL));
    publish(e, UINT64_MAX, 3);
    CHECK(latest(e, UINT64_MAX) == 3 && latest(e, ARRAY) == 1);
    pyri_engine_close(e);
}

static int
note_nothing(void *ctx, uint64_t version, const pyri_version_get *record)
{
    (void)ctx;
    (void)version;
    (void)record;
    return 0;
}

static void
an_unknown_array_is_not_found(void)
{
    pyri_engine *e = fresh_with_array();
    pyri_take want = {.array = 99, .grow_axis = -1};
    pyri_ticket ticket = {.array = 99, .version = 1};
    pyri_flights list = {0};
    uint64_t version;
    pyri_version_get get;
    pyri_reader *r;
    FAILS(PYR_ENOTFOUND, pyri_engine_take(e, &want, &ticket, &list));
    ticket = (pyri_ticket){.array = 99, .version = 1};
    FAILS(PYR_ENOTFOUND, pyri_engine_renew(e, &ticket));
    FAILS(PYR_ENOTFOUND, complete(e, &ticket, ""));
    FAILS(PYR_ENOTFOUND, pyri_engine_flights(e, 99, &list));
    FAILS(PYR_ENOTFOUND, pyri_engine_wait(e, 99, 1, 0));
    OK(pyri_engine_begin(e, &r));
    FAILS(PYR_ENOTFOUND, pyri_engine_latest(e, r, 99, &version, NULL));
    FAILS(PYR_ENOTFOUND, pyri_engine_get_version(e, r, 99, 1, &get));
    FAILS(PYR_ENOTFOUND,
          pyri_engine_scan_versions(e, r, 99, 0, 9, note_nothing, NULL));
    pyri_engine_end(e, r);
    pyri_engine_close(e);
}

/* --- shapes -------------------------------------------------------------- */

static pyri_ticket
take_shape(pyri_engine *e, const uint64_t *shape, int axis, uint64_t by)
{
    pyri_take want = {.array = ARRAY,
                      .shape = shape,
                      .grow_axis = axis,
                      .grow_by = by};
    pyri_ticket ticket;
    pyri_flights below = {0};
    OK(pyri_engine_take(e, &want, &ticket, &below));
    pyri_flights_fini(&below);
    return ticket;
}

static bool
shape_is(const uint64_t *shape, uint64_t a, uint64_t b)
{
    return shape[0] == a && shape[1] == b;
}

static void
a_shape_holds_from_its_version_on(void)
{
    const uint64_t other[NDIM] = {3, 4};
    pyri_engine *e = fresh_with_array();
    pyri_ticket a = take_shape(e, NULL, -1, 0);
    pyri_ticket b = take_shape(e, other, -1, 0);
    pyri_ticket c = take_shape(e, NULL, -1, 0);
    CHECK(shape_is(a.before, 100, 50) && shape_is(a.shape, 100, 50));
    CHECK(shape_is(b.before, 100, 50) && shape_is(b.shape, 3, 4));
    CHECK(shape_is(c.before, 3, 4) && shape_is(c.shape, 3, 4));
    OK(complete(e, &b, ""));
    OK(complete(e, &a, ""));
    pyri_reader *r;
    uint64_t version, shape[PYR_MAX_DIMS];
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_latest(e, r, ARRAY, &version, shape));
    CHECK(version == 2 && shape_is(shape, 3, 4));
    pyri_engine_end(e, r);
    pyri_flights all = flights(e);
    CHECK(shape_is(all.base_shape, 3, 4) && all.n == 1);
    pyri_flights_fini(&all);
    pyri_ticket d = take_shape(e, NULL, 1, 6);
    CHECK(shape_is(d.before, 3, 4) && shape_is(d.shape, 3, 10));
    pyri_engine_close(e);
}

static void
two_that_grow_an_axis_get_parts_of_their_own(void)
{
    pyri_engine *e = fresh_with_array();
    pyri_ticket a = take_shape(e, NULL, 0, 10);
    pyri_ticket b = take_shape(e, NULL, 0, 7);
    CHECK(a.before[0] == 100 && a.shape[0] == 110);
    CHECK(b.before[0] == 110 && b.shape[0] == 117);
    OK(complete(e, &b, ""));
    OK(complete(e, &a, ""));
    pyri_ticket c = take_shape(e, NULL, 0, 1);
    CHECK(shape_is(c.before, 117, 50) && shape_is(c.shape, 118, 50));
    pyri_engine_close(e);
}

static void
a_shape_that_overflows_is_refused_and_takes_nothing(void)
{
    pyri_engine *e = fresh_with_array();
    pyri_take want = {.array = ARRAY,
                      .grow_axis = 1,
                      .grow_by = UINT64_MAX - 49};
    pyri_ticket ticket;
    pyri_flights below = {0};
    FAILS(PYR_EINVAL, pyri_engine_take(e, &want, &ticket, &below));
    CHECK(!below.list && !below.claims.data);
    want.grow_by = UINT64_MAX / 100 - 49; /* an axis fits, all cells do not */
    FAILS(PYR_EINVAL, pyri_engine_take(e, &want, &ticket, &below));
    CHECK(!below.list && !below.claims.data);
    pyri_flights all = flights(e);
    CHECK(all.n == 0);
    pyri_flights_fini(&all);
    ticket = take_shape(e, NULL, 1, UINT64_MAX / 100 - 50);
    CHECK(ticket.version == 1 &&
          shape_is(ticket.shape, 100, UINT64_MAX / 100));
    FAILS(PYR_EINVAL, pyri_engine_take(e, &(pyri_take){.array = ARRAY,
                                                       .grow_axis = 0,
                                                       .grow_by = 1},
                                       &ticket, &below));
    pyri_engine_close(e);
}

static void
shapes_of_sixteen_axes_are_kept(void)
{
    pyri_engine *e = fresh();
    uint64_t shape[PYR_MAX_DIMS], got[PYR_MAX_DIMS];
    for (uint64_t i = 0; i < PYR_MAX_DIMS; i++)
        shape[i] = i ? mixed(i) % 12 + 1 : 401; /* cells can be counted */
    pyri_edit edit = {.kind = PYRI_EDIT_ARRAY,
                      .array = ARRAY,
                      .ndim = PYR_MAX_DIMS,
                      .shape = shape};
    OK(pyri_engine_edit(e, &edit, 1));
    pyri_ticket ticket = take_shape(e, NULL, PYR_MAX_DIMS - 1, 5);
    CHECK(memcmp(ticket.before, shape, sizeof shape) == 0);
    shape[PYR_MAX_DIMS - 1] += 5;
    CHECK(memcmp(ticket.shape, shape, sizeof shape) == 0);
    OK(complete(e, &ticket, ""));
    pyri_reader *r;
    uint64_t version;
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_latest(e, r, ARRAY, &version, got));
    CHECK(version == 1 && memcmp(got, shape, sizeof shape) == 0);
    pyri_engine_end(e, r);
    pyri_engine_close(e);
}

/* --- publishing ---------------------------------------------------------- */

static void
versions_publish_in_order_however_they_complete(void)
{
    enum { N = 60 };
    pyri_engine *e = fresh_with_array();
    pyri_ticket tickets[N];
    bool done[N + 1] = {false};
    uint64_t turns[N], expected = 0;
    shuffle(turns, N, 3);
    for (int i = 0; i < N; i++)
        tickets[i] = take(e, ARRAY, "");
    for (int i = 0; i < N; i++) {
        pyri_ticket *t = &tickets[turns[i]];
        pyri_complete c = {.array = ARRAY,
                           .version = t->version,
                           .shape = t->shape,
                           .record = text("record")};
        OK(pyri_engine_complete(e, &c));
        done[turns[i]] = true;
        while (done[expected])
            expected++;
        CHECK(c.latest == expected && latest(e, ARRAY) == expected);
        CHECK(version_is(e, ARRAY, t->version,
                         t->version <= expected ? "record" : NULL));
        pyri_flights all = flights(e);
        CHECK(all.base == expected && all.n == N - expected);
        pyri_flights_fini(&all);
    }
    CHECK(expected == N);
    pyri_engine_close(e);
}

/* Complete with one node whose key is the record too. */
static int
complete_with_node(pyri_engine *e, const pyri_ticket *t, const char *record)
{
    pyri_node_put node = {text(record), text("node")};
    pyri_complete c = {.array = t->array,
                       .version = t->version,
                       .shape = t->shape,
                       .nodes = &node,
                       .nnodes = 1,
                       .record = text(record)};
    return pyri_engine_complete(e, &c);
}

static void
nodes_are_there_once_their_version_is_complete(void)
{
    pyri_engine *e = fresh_with_array();
    take(e, ARRAY, "");
    pyri_ticket second = take(e, ARRAY, "");
    OK(complete_with_node(e, &second, "n2"));
    CHECK(latest(e, ARRAY) == 0 && has_node(e, "n2"));
    pyri_engine_close(e);
}

static void
a_second_completion_is_fenced_and_stores_nothing(void)
{
    pyri_engine *e = fresh_with_array();
    pyri_ticket first = take(e, ARRAY, ""), second = take(e, ARRAY, "");
    OK(complete_with_node(e, &second, "b1")); /* waits for the first */
    FAILS(PYR_EFENCED, complete_with_node(e, &second, "b2"));
    FAILS(PYR_EFENCED, pyri_engine_renew(e, &second));
    OK(complete_with_node(e, &first, "a1"));
    FAILS(PYR_EFENCED, complete_with_node(e, &first, "a2"));
    FAILS(PYR_EFENCED, complete_with_node(e, &second, "b3"));
    FAILS(PYR_EFENCED, pyri_engine_renew(e, &first));
    CHECK(latest(e, ARRAY) == 2);
    CHECK(version_is(e, ARRAY, 1, "a1") && version_is(e, ARRAY, 2, "b1"));
    CHECK(has_node(e, "a1") && has_node(e, "b1"));
    CHECK(!has_node(e, "a2") && !has_node(e, "b2") && !has_node(e, "b3"));
    CHECK(take(e, ARRAY, "").version == 3);
    pyri_engine_close(e);
}

static void
a_version_that_was_never_given_cannot_be_completed(void)
{
    pyri_engine *e = fresh_with_array();
    pyri_ticket ticket = take(e, ARRAY, "");
    const uint64_t never[] = {2, 3, 1000, UINT64_MAX};
    for (int i = 0; i < 4; i++) {
        pyri_ticket forged = ticket;
        forged.version = never[i];
        FAILS(PYR_EFENCED, complete_with_node(e, &forged, "forged"));
        FAILS(PYR_EFENCED, pyri_engine_renew(e, &forged));
    }
    CHECK(!has_node(e, "forged"));
    OK(complete(e, &ticket, ""));
    CHECK(latest(e, ARRAY) == 1 && take(e, ARRAY, "").version == 2);
    pyri_engine_close(e);
}

/* --- history ------------------------------------------------------------- */

typedef struct trail {
    uint64_t versions[64];
    size_t n, stop;
    bool wrong;
} trail;

static int
note_version(void *ctx, uint64_t version, const pyri_version_get *v)
{
    trail *t = ctx;
    char want[32];
    snprintf(want, sizeof want, "%llu", (unsigned long long)version);
    t->wrong |= !v->found || v->forgotten || !same(v->record, text(want));
    t->versions[t->n++] = version;
    return t->n == t->stop ? -99 : 0;
}

/* Whether a scan gives first, first +- 1, ... up to last, n in all. */
static bool
scan_is(pyri_engine *e, pyri_reader *r, uint64_t from, uint64_t to,
        uint64_t first, size_t n)
{
    trail t = {.n = 0};
    OK(pyri_engine_scan_versions(e, r, ARRAY, from, to, note_version, &t));
    for (size_t i = 0; i < t.n; i++)
        t.wrong |= t.versions[i] != (from <= to ? first + i : first - i);
    return t.n == n && !t.wrong;
}

static void
a_scan_of_versions_goes_both_ways_within_bounds(void)
{
    pyri_engine *e = fresh();
    make_array(e, ARRAY - 1, 0);
    make_array(e, ARRAY, 4);
    make_array(e, ARRAY + 1, 0);
    publish(e, ARRAY - 1, 20);
    publish(e, ARRAY + 1, 20);
    publish(e, ARRAY, 10); /* 5 to 14 */
    take(e, ARRAY, "");
    pyri_ticket above = take(e, ARRAY, "");
    OK(complete(e, &above, "16")); /* complete, but not published */
    pyri_reader *r;
    OK(pyri_engine_begin(e, &r));
    CHECK(scan_is(e, r, 6, 9, 6, 4) && scan_is(e, r, 9, 6, 9, 4));
    CHECK(scan_is(e, r, 8, 8, 8, 1));
    CHECK(scan_is(e, r, 0, UINT64_MAX, 5, 10));
    CHECK(scan_is(e, r, UINT64_MAX, 0, 14, 10));
    CHECK(scan_is(e, r, 14, 99, 14, 1) && scan_is(e, r, 99, 14, 14, 1));
    CHECK(scan_is(e, r, 5, 0, 5, 1) && scan_is(e, r, 0, 5, 5, 1));
    CHECK(scan_is(e, r, 15, 99, 0, 0) && scan_is(e, r, 99, 15, 0, 0));
    CHECK(scan_is(e, r, 0, 4, 0, 0) && scan_is(e, r, 4, 0, 0, 0));
    trail t = {.stop = 3};
    FAILS(-99, pyri_engine_scan_versions(e, r, ARRAY, 14, 0, note_version, &t));
    CHECK(t.n == 3);
    pyri_engine_end(e, r);
    pyri_engine_close(e);
}

static void
records_of_versions_are_any_bytes(void)
{
    pyri_engine *e = fresh_with_array();
    const size_t sizes[] = {0, 1, 4096, 100000};
    static uint8_t bytes[100000];
    fill(bytes, 9, sizeof bytes);
    for (int i = 0; i < 4; i++) {
        pyri_ticket t = take(e, ARRAY, "");
        pyri_complete c = {.array = ARRAY,
                           .version = t.version,
                           .shape = t.shape,
                           .record = {bytes, sizes[i]}};
        OK(pyri_engine_complete(e, &c));
    }
    pyri_reader *r;
    OK(pyri_engine_begin(e, &r));
    for (uint64_t i = 0; i < 4; i++) {
        pyri_version_get got;
        OK(pyri_engine_get_version(e, r, ARRAY, i + 1, &got));
        CHECK(got.found && same(got.record, (pyri_bytes){bytes, sizes[i]}));
    }
    pyri_engine_end(e, r);
    pyri_engine_close(e);
}

/* --- many at once -------------------------------------------------------- */

enum { HELD = 4, MOST_TAKEN = 4096 };

static bool
claim_matches(const pyri_flight *f)
{
    uint64_t by; /* how much its version grew axis 0 */
    if (f->claim.size != sizeof by)
        return false;
    memcpy(&by, f->claim.data, sizeof by);
    return by == 1 && f->shape[0] == SHAPE[0] + f->version;
}

/* Take a version that makes axis 0 one longer; check what is below. */
static bool
take_checked(pyri_engine *e, pyri_ticket *ticket)
{
    const uint64_t one = 1;
    pyri_take want = {.array = ARRAY,
                      .claim = {&one, sizeof one},
                      .grow_axis = 0,
                      .grow_by = 1};
    pyri_flights below = {0};
    if (pyri_engine_take(e, &want, ticket, &below) < 0)
        return false;
    bool good = below.base + below.n + 1 == ticket->version &&
                ticket->shape[0] == SHAPE[0] + ticket->version &&
                ticket->before[0] + 1 == ticket->shape[0];
    for (size_t i = 0; i < below.n; i++)
        good &= below.list[i].version == below.base + 1 + i &&
                claim_matches(&below.list[i]);
    pyri_flights_fini(&below);
    return good;
}

/* Hold up to HELD tickets, complete any of them at a time; count in `given`
 * how often each version was given. Returns the number of failures. */
static int
take_and_complete(pyri_engine *e, int n, int number, atomic_uchar *given)
{
    pyri_ticket held[HELD];
    int nheld = 0, taken = 0, bad = 0;
    for (uint64_t turn = 0; taken < n || nheld > 0; turn++) {
        uint64_t dice = mixed(turn * 100 + (uint64_t)number);
        if (taken < n && nheld < HELD && (nheld == 0 || dice & 1)) {
            bad += !take_checked(e, &held[nheld]);
            uint64_t v = held[nheld].version;
            bad += v >= MOST_TAKEN || atomic_fetch_add(&given[v], 1) != 0;
            taken++;
            nheld++;
        } else {
            int which = (int)((dice >> 1) % (uint64_t)nheld);
            bad += complete(e, &held[which], "record") != 0;
            held[which] = held[--nheld];
        }
        if (bad)
            break;
    }
    return bad;
}

static void *
thread_take_and_complete(void *arg)
{
    worker *w = arg;
    WORKED(w, take_and_complete(w->e, rounds(500), w->number, w->shared) == 0);
    return NULL;
}

static void
check_all_given_once(pyri_engine *e, uint64_t total, atomic_uchar *given)
{
    CHECK(latest(e, ARRAY) == total);
    for (uint64_t v = 1; v <= total; v++)
        CHECK(given[v] == 1);
    CHECK(given[0] == 0 && given[total + 1] == 0);
    pyri_flights all = flights(e);
    CHECK(all.n == 0 && all.base == total);
    CHECK(all.base_shape[0] == SHAPE[0] + total);
    pyri_flights_fini(&all);
}

static void
many_threads_take_and_complete_at_once(void)
{
    static atomic_uchar given[MOST_TAKEN];
    memset(given, 0, sizeof given);
    pyri_engine *e = fresh_with_array();
    run_threads(e, thread_take_and_complete, given);
    check_all_given_once(e, (uint64_t)rounds(500) * THREADS, given);
    pyri_engine_close(e);
}

/* --- versions that nobody took -------------------------------------------- */

static int
import(pyri_engine *e, uint64_t version, const char *record)
{
    uint64_t shape[2] = {SHAPE[0] + version, SHAPE[1]};
    pyri_complete c = {.array = ARRAY,
                       .version = version,
                       .shape = shape,
                       .record = text(record)};
    int err = pyri_engine_import(e, &c);
    if (err == 0)
        CHECK(c.latest == version);
    return err;
}

static void
an_imported_version_is_the_newest_at_once(void)
{
    pyri_engine *e = fresh_with_array();
    OK(import(e, 1, "one"));
    OK(import(e, 7, "seven"));
    CHECK(latest(e, ARRAY) == 7);
    CHECK(version_is(e, ARRAY, 1, "one"));
    CHECK(version_is(e, ARRAY, 7, "seven"));
    pyri_ticket t = take(e, ARRAY, "");
    CHECK(t.version == 8 && t.before[0] == SHAPE[0] + 7);
    OK(complete(e, &t, "eight"));
    CHECK(latest(e, ARRAY) == 8);
    pyri_engine_close(e);
}

static void
versions_that_were_passed_over_have_gone(void)
{
    pyri_engine *e = fresh_with_array();
    OK(import(e, 100000, "far"));
    pyri_reader *r;
    pyri_version_get v;
    OK(pyri_engine_begin(e, &r));
    for (uint64_t i = 1; i < 100000; i += 999) {
        OK(pyri_engine_get_version(e, r, ARRAY, i, &v));
        CHECK(!v.found && v.forgotten);
    }
    pyri_engine_end(e, r);
    pyri_engine_close(e);
}

static void
nothing_is_imported_beside_writers_or_below_the_newest(void)
{
    pyri_engine *e = fresh_with_array();
    pyri_ticket t = take(e, ARRAY, "");
    FAILS(PYR_EFENCED, import(e, 1, "late"));
    FAILS(PYR_EFENCED, import(e, 5, "late"));
    CHECK(latest(e, ARRAY) == 0);
    OK(complete(e, &t, "mine"));
    FAILS(PYR_EFENCED, import(e, 1, "late"));
    CHECK(version_is(e, ARRAY, 1, "mine"));
    OK(import(e, 5, "five"));
    FAILS(PYR_EFENCED, import(e, 5, "again"));
    FAILS(PYR_EFENCED, import(e, 3, "below"));
    CHECK(version_is(e, ARRAY, 5, "five"));
    pyri_engine_close(e);
}

#endif
