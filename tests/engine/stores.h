/*
 * tests/engine/stores.h - fresh stores of the engine under test, and small
 * helpers. Part of conformance.c: the harness wants one translation unit.
 */
#ifndef TESTS_ENGINE_STORES_H
#define TESTS_ENGINE_STORES_H

#include "base/hash.h"
#include "engine/engine.h"
#include "support/check.h"
#include "support/tmp_store.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, PATIENCE_S = 120 /* for what must come, but takes time */ };

/* --- stores -------------------------------------------------------------- */

static bool in_memory;            /* else in files below `dir` */
static bool elsewhere;            /* where PYR_TEST_STORE says */
static pyr_durability durability; /* of stores in files */
static char dir[4000];
static char last_url[4096]; /* of the store that fresh() made */

static pyri_engine *
open_as(unsigned flags, unsigned lease_ms)
{
    pyri_engine *e;
    pyr_store_options options = {.durability = durability,
                                 .lease_ms = lease_ms};
    OK(pyri_engine_open(last_url, flags, &options, &e));
    return e;
}

/* Point last_url at a place where nothing is. */
static void
name_another(void)
{
    static int number;
    if (elsewhere)
        snprintf(last_url, sizeof last_url, "%s", tmp_store("engine"));
    else
        snprintf(last_url, sizeof last_url, "%s%s%d",
                 in_memory ? "mem:" : dir, in_memory ? "" : "/store", ++number);
}

static pyri_engine *
fresh_with_lease(unsigned lease_ms)
{
    name_another();
    return open_as(PYR_OPEN_CREATE, lease_ms);
}

static pyri_engine *
fresh(void)
{
    return fresh_with_lease(0);
}

/* Fewer rounds where each one waits for a disk. */
static int
rounds(int n)
{
    return !in_memory && durability == PYR_DURABILITY_COMMIT ? n / 5 : n;
}

/* --- bytes --------------------------------------------------------------- */

static pyri_bytes
text(const char *s)
{
    return (pyri_bytes){s, strlen(s)};
}

static bool
same(pyri_bytes a, pyri_bytes b)
{
    return a.size == b.size &&
           (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* As memcmp. */
static int
order(pyri_bytes a, pyri_bytes b)
{
    size_t n = a.size < b.size ? a.size : b.size;
    int by_bytes = n ? memcmp(a.data, b.data, n) : 0;
    return by_bytes ? by_bytes : (a.size > b.size) - (a.size < b.size);
}

/* Numbers without pattern, the same in every run. */
static uint64_t
mixed(uint64_t n)
{
    return pyri_hash64(&n, sizeof n);
}

/* Byte i of the bytes that `seed` stands for. */
static uint8_t
byte_of(uint64_t seed, uint64_t i)
{
    return (uint8_t)((seed + i / 251) * 31 + i);
}

static void
fill(uint8_t *to, uint64_t seed, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = byte_of(seed, i);
}

static bool
is_filled(const uint8_t *data, uint64_t seed, uint64_t offset, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++)
        if (data[i] != byte_of(seed, offset + i))
            return false;
    return true;
}

static void *
need(size_t size)
{
    void *memory = calloc(1, size ? size : 1);
    REQUIRE(memory != NULL);
    return memory;
}

/* Order 0..n-1 without pattern. */
static void
shuffle(uint64_t *list, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        list[i] = i;
    for (size_t i = n; i > 1; i--) {
        size_t j = mixed(seed + i) % i;
        uint64_t kept = list[i - 1];
        list[i - 1] = list[j];
        list[j] = kept;
    }
}

/* --- time ---------------------------------------------------------------- */

/* To poll: false when patience is at its end, else true after a moment. */
static bool
patient(int64_t since_ns)
{
    usleep(500);
    return now_ns() - since_ns < (int64_t)PATIENCE_S * 1000000000;
}

/* --- threads ------------------------------------------------------------- */

/* One of several at work on the same store. Its function notes failures with
 * worked(); it must not leave as REQUIRE and OK do. */
typedef struct worker {
    pyri_engine *e;
    int number;
    void *shared;
    int failures;
    char why[256];
    pthread_t thread;
} worker;

static bool
worked(worker *w, bool ok, const char *what)
{
    if (!ok && w->failures++ == 0)
        snprintf(w->why, sizeof w->why, "%s (%s)", what, pyr_errmsg());
    return ok;
}

#define WORKED(w, cond) worked(w, cond, #cond)

static void
run_threads(pyri_engine *e, void *(*work)(void *), void *shared)
{
    static worker workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.e = e, .number = i, .shared = shared};
        REQUIRE(pthread_create(&workers[i].thread, NULL, work, &workers[i]) ==
                0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].failures)
            CHECK_NOTE("thread %d, %d failures: %s", i, workers[i].failures,
                       workers[i].why);
    }
}

/* --- records ------------------------------------------------------------- */

static int
edit_one(pyri_engine *e, pyri_edit_kind kind, const char *key,
         const char *value)
{
    pyri_edit edit = {.kind = kind, .key = text(key), .value = text(value)};
    return pyri_engine_edit(e, &edit, 1);
}

/* Whether the record is there with that value; NULL: is not there. */
static bool
record_is(pyri_engine *e, const char *key, const char *value)
{
    pyri_reader *r;
    pyri_bytes got;
    bool found;
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_get_record(e, r, text(key), &got, &found));
    bool is = found == (value != NULL) && (!value || same(got, text(value)));
    pyri_engine_end(e, r);
    return is;
}

/* --- arrays -------------------------------------------------------------- */

enum { ARRAY = 7, NDIM = 2 };

static const uint64_t SHAPE[NDIM] = {100, 50};

static void
make_array(pyri_engine *e, uint64_t array, uint64_t latest)
{
    pyri_edit edit = {.kind = PYRI_EDIT_ARRAY,
                      .array = array,
                      .version = latest,
                      .ndim = NDIM,
                      .shape = SHAPE};
    OK(pyri_engine_edit(e, &edit, 1));
}

static pyri_engine *
fresh_with_array(void)
{
    pyri_engine *e = fresh();
    make_array(e, ARRAY, 0);
    return e;
}

static uint64_t
latest(pyri_engine *e, uint64_t array)
{
    pyri_reader *r;
    uint64_t version = 0;
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_latest(e, r, array, &version, NULL));
    pyri_engine_end(e, r);
    return version;
}

static pyri_ticket
take(pyri_engine *e, uint64_t array, const char *claim)
{
    pyri_take want = {.array = array, .claim = text(claim), .grow_axis = -1};
    pyri_ticket ticket;
    pyri_flights below = {0};
    OK(pyri_engine_take(e, &want, &ticket, &below));
    pyri_flights_fini(&below);
    return ticket;
}

static int
complete(pyri_engine *e, const pyri_ticket *ticket, const char *record)
{
    pyri_complete c = {.array = ticket->array,
                       .version = ticket->version,
                       .shape = ticket->shape,
                       .record = text(record)};
    return pyri_engine_complete(e, &c);
}

/* Make and publish n versions, with records "1", "2", ... */
static void
publish(pyri_engine *e, uint64_t array, int n)
{
    for (int i = 0; i < n; i++) {
        pyri_ticket ticket = take(e, array, "");
        char record[32];
        snprintf(record, sizeof record, "%llu",
                 (unsigned long long)ticket.version);
        OK(complete(e, &ticket, record));
    }
}

/* Whether the version is published with that record; NULL: is not. */
static bool
version_is(pyri_engine *e, uint64_t array, uint64_t version, const char *record)
{
    pyri_reader *r;
    pyri_version_get got;
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_get_version(e, r, array, version, &got));
    bool is = got.found == (record != NULL) &&
              (!record || same(got.record, text(record)));
    pyri_engine_end(e, r);
    return is;
}

/* Whether a node is there. */
static bool
has_node(pyri_engine *e, const char *key)
{
    pyri_reader *r;
    pyri_node_get get = {.key = text(key)};
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_get_nodes(e, r, &get, 1));
    pyri_engine_end(e, r);
    return get.found;
}

#endif
