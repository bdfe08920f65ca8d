/*
 * verify/busy_test.c - while others write, resize and clone, verify finds
 * nothing wrong and nothing left over, and repair finds nothing to do.
 */
#include "support/check.h"
#include "support/rng.h"
#include "support/tmp_store.h"

#include <pyramid/pyramid.h>

#include <pthread.h>
#include <stdatomic.h>

enum { WRITERS = 3, SIDE = 64, CHUNK = 16 };

typedef struct writer {
    pthread_t thread;
    pyr_store *store;
    uint64_t seed;
    int writes;
    const char *failed;
    atomic_int *running;
} writer;

static bool
write_some(writer *w, rng *r, pyr_array *a)
{
    int32_t cells[SIDE * SIDE];
    uint64_t at[2], size[2];
    pyr_version made;
    for (int d = 0; d < 2; d++) {
        at[d] = rng_below(r, SIDE / 2);
        size[d] = rng_from(r, 1, SIDE / 2);
    }
    for (uint64_t i = 0; i < size[0] * size[1]; i++)
        cells[i] = (int32_t)rng_next(r);
    int err = pyr_write(a, at, size, cells, &made);
    if (err == 0 && rng_once_in(r, 8)) {
        uint64_t shape[2] = {rng_from(r, SIDE, 3 * SIDE), SIDE};
        err = pyr_resize(a, shape, &made);
    }
    if (err == 0 && rng_once_in(r, 16)) {
        char name[64];
        snprintf(name, sizeof name, "clone-%llu",
                 (unsigned long long)rng_next(r));
        err = pyr_clone(a, PYR_LATEST, name, NULL);
    }
    if (err < 0)
        w->failed = strdup(pyr_errmsg());
    return err == 0;
}

static void *
write_on(void *arg)
{
    writer *w = arg;
    rng r = rng_of(w->seed);
    pyr_array *a;
    if (pyr_array_open(w->store, "x", &a) < 0)
        w->failed = "open";
    for (int i = 0; i < w->writes && !w->failed; i++)
        if (!write_some(w, &r, a))
            break;
    pyr_array_close(a);
    atomic_fetch_sub(w->running, 1);
    return NULL;
}

static int
show(void *ctx, const pyr_harm *h)
{
    (void)ctx;
    printf("# '%s' version %llu: %s\n", h->array,
           (unsigned long long)h->version, h->what);
    return 0;
}

static void
look(pyr_store *s, unsigned i)
{
    pyr_verify_spec spec = {.deep = 1, .each = show};
    if (i % 4 == 3) {
        pyr_repaired r;
        OK(pyr_repair(s, &spec, &r));
        CHECK(r.harms == 0 && r.summaries == 0);
        CHECK(r.orphan_nodes == 0 && r.orphan_blobs == 0);
        return;
    }
    pyr_verified v;
    spec.jobs = i % 4;
    OK(pyr_verify(s, &spec, &v));
    CHECK(v.harms == 0);
    CHECK(v.orphan_nodes == 0 && v.orphan_blobs == 0);
}

static void
run(const char *url)
{
    uint64_t shape[2] = {SIDE, SIDE}, chunk[2] = {CHUNK, CHUNK};
    pyr_spec spec = {.ndim = 2, .shape = shape, .chunk = chunk,
                     .type = PYR_I32};
    pyr_store *s;
    pyr_array *a;
    writer w[WRITERS];
    atomic_int running = WRITERS;
    unsigned looks = 0;
    OK(pyr_open_with(url, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS,
                                          .lease_ms = 3600000},
                     &s));
    OK(pyr_create(s, "x", &spec, &a));
    for (int i = 0; i < WRITERS; i++) {
        w[i] = (writer){.store = s, .seed = test_seed() + (uint64_t)i,
                        .writes = (int)by_scale(30, 120, 2000),
                        .running = &running};
        REQUIRE(pthread_create(&w[i].thread, NULL, write_on, &w[i]) == 0);
    }
    while (atomic_load(&running) > 0 && check_failures == 0)
        look(s, looks++);
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(w[i].thread, NULL);
        if (w[i].failed)
            CHECK_NOTE("a writer failed: %s", w[i].failed);
    }
    for (unsigned i = 0; i < 4; i++)
        look(s, i);
    printf("# looked %u times\n", looks);
    pyr_array_close(a);
    pyr_close(s);
}

static void
nothing_is_wrong_while_writers_run_in_memory(void)
{
    run("mem:busy");
}

static void
nothing_is_wrong_while_writers_run_on_files(void)
{
    const char *path = tmp_store("busy");
    run(path);
    tmp_remove(path);
}

TESTS(T(nothing_is_wrong_while_writers_run_in_memory),
      T(nothing_is_wrong_while_writers_run_on_files))
