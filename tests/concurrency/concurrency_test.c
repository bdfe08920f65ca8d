/*
 * concurrency/concurrency_test.c - many processes and threads at once.
 *
 * Writers are this program again (see child_main), so that each process opens
 * the store for itself; under the thread sanitizer they are threads of this
 * one. What they did is in their logs, and work_check() compares every version
 * with the replay.
 */
#include "support/check.h"
#include "support/model.h"
#include "support/rng.h"
#include "support/tmp_store.h"
#include "support/work.h"

#include <pyramid/pyramid.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

enum { MAX_THREADS = 16, BOUND_MS = 300000, LEASE_MS = 3600000 };

/* Which handles the threads of a process use. */
typedef enum sharing { SHARE_ARRAY, SHARE_STORE, SHARE_NOTHING } sharing;

typedef struct crew {
    const char *url, *logs;
    int sample;
    uint64_t seed;
    int processes, threads; /* of each process */
    sharing sharing;
    uint32_t first_writer;
    uint32_t writes;        /* of each thread at most */
    uint32_t ms;            /* for so long */
    bool nowait, batch;
} crew;

/* --- writers ------------------------------------------------------------- */

typedef struct worker {
    const crew *c;
    work_order order;
    pyr_store *store;
    pyr_array *array;
    char error[300];
    pthread_t thread;
} worker;

static void
note_error(worker *w, const char *what)
{
    if (!w->error[0])
        snprintf(w->error, sizeof w->error, "writer %d: %s: %s",
                 (int)w->order.writer, what, pyr_errmsg());
}

/* Everybody sees a write that has returned; the last may not have waited. */
static void
check_newest(worker *w, pyr_array *array)
{
    pyr_version latest = 0;
    if (pyr_latest(array, &latest) < 0)
        note_error(w, "latest");
    else if (w->c->nowait && pyr_wait(array, latest, BOUND_MS) < 0)
        note_error(w, "wait");
}

static void *
work_in_thread(void *arg)
{
    worker *w = arg;
    work k = work_sample(w->c->sample, w->c->seed);
    pyr_store *store = NULL;
    pyr_array *array = NULL;
    if (w->c->sharing == SHARE_NOTHING &&
        pyr_open(w->c->url, 0, &store) < 0)
        note_error(w, "open");
    else if (w->c->sharing != SHARE_ARRAY &&
             pyr_array_open(store ? store : w->store, k.array, &array) < 0)
        note_error(w, "open array");
    else if (work_write(&k, array ? array : w->array, &w->order) < 0)
        note_error(w, "write");
    else
        check_newest(w, array ? array : w->array);
    pyr_array_close(array);
    pyr_close(store);
    return NULL;
}

/* The threads of one process; false and a line on stderr if one fails. */
static bool
run_threads(const crew *c, int threads)
{
    worker w[MAX_THREADS] = {{0}};
    work k = work_sample(c->sample, c->seed);
    pyr_store *store = NULL;
    pyr_array *array = NULL;
    bool ok = pyr_open(c->url, 0, &store) == 0 &&
              pyr_array_open(store, k.array, &array) == 0;
    if (!ok)
        fprintf(stderr, "# open: %s\n", pyr_errmsg());
    int64_t until = now_ns() + (int64_t)c->ms * 1000000;
    for (int i = 0; ok && i < threads; i++) {
        w[i] = (worker){.c = c, .store = store, .array = array};
        w[i].order = (work_order){.logs = c->logs,
                                  .writer = c->first_writer + (uint32_t)i,
                                  .n = c->writes, .until_ns = until,
                                  .nowait = c->nowait ? 2 : 0,
                                  .batch = c->batch};
        pthread_create(&w[i].thread, NULL, work_in_thread, &w[i]);
    }
    for (int i = 0; i < threads; i++) {
        if (w[i].thread)
            pthread_join(w[i].thread, NULL);
        if (w[i].error[0])
            fprintf(stderr, "# %s\n", w[i].error);
        ok &= !w[i].error[0];
    }
    pyr_array_close(array);
    pyr_close(store);
    return ok;
}

static pid_t
start_process(const crew *c, int number)
{
    char text[8][32];
    uint64_t numbers[8] = {
        (uint64_t)c->sample, c->seed, (uint64_t)c->threads,
        (uint64_t)c->sharing,
        c->first_writer + (uint64_t)(number * c->threads),
        c->writes, c->ms, (uint64_t)c->nowait * 2 + c->batch};
    const char *args[12] = {"--child", c->url, c->logs};
    for (int i = 0; i < 8; i++) {
        snprintf(text[i], sizeof text[i], "%" PRIu64, numbers[i]);
        args[3 + i] = text[i];
    }
    return proc_start(NULL, args);
}

static int
child_main(int argc, char **argv)
{
    uint64_t x[8] = {0};
    if (argc != 12)
        return 2;
    for (int i = 0; i < 8; i++)
        x[i] = strtoull(argv[4 + i], NULL, 10);
    crew c = {.url = argv[2], .logs = argv[3], .sample = (int)x[0],
              .seed = x[1], .threads = (int)x[2], .sharing = (sharing)x[3],
              .first_writer = (uint32_t)x[4], .writes = (uint32_t)x[5],
              .ms = (uint32_t)x[6], .nowait = x[7] & 2, .batch = x[7] & 1};
    return run_threads(&c, c.threads) ? 0 : 1;
}

/* Start the crew; under the thread sanitizer, and for stores in memory, all
 * of it runs and ends in here. */
static void
start_crew(const crew *c, pid_t *pids)
{
    bool here = TEST_TSAN || strncmp(c->url, "mem:", 4) == 0;
    if (here)
        CHECK(run_threads(c, c->processes * c->threads));
    for (int i = 0; i < c->processes; i++)
        pids[i] = here ? 0 : start_process(c, i);
}

static void
end_crew(const crew *c, const pid_t *pids)
{
    for (int i = 0; i < c->processes; i++)
        if (pids[i])
            CHECK(proc_ends_well(pids[i], (int)c->ms + BOUND_MS));
}

/* --- stores -------------------------------------------------------------- */

typedef struct place {
    char url[4096], logs[2][4096];
    pyr_store *store;
    pyr_array *array;
    work k;
} place;

static void
place_open(place *p, bool mem, pyr_durability durability, int sample)
{
    proc_kill_all();
    *p = (place){.k = work_sample(sample, test_seed())};
    if (mem)
        snprintf(p->url, sizeof p->url, "mem:%s",
                 strrchr(tmp_fresh("shared"), '/') + 1);
    else
        snprintf(p->url, sizeof p->url, "%s", tmp_store("shared"));
    for (int i = 0; i < 2; i++) {
        snprintf(p->logs[i], sizeof p->logs[i], "%s", tmp_fresh("logs"));
        REQUIRE(mkdir(p->logs[i], 0777) == 0);
    }
    OK(pyr_open_with(p->url, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = durability,
                                          .lease_ms = LEASE_MS},
                     &p->store));
    OK(work_create(&p->k, p->store, &p->array));
}

static void
place_close(place *p)
{
    pyr_array_close(p->array);
    pyr_close(p->store);
    if (strncmp(p->url, "mem:", 4) != 0)
        tmp_remove(p->url);
    tmp_remove(p->logs[0]);
    tmp_remove(p->logs[1]);
}

static void
check_replay(const work *k, pyr_array *array, const char *logs)
{
    work_report report;
    if (!work_check(k, array, logs, 1, &report))
        CHECK_NOTE("%s", report.text);
    printf("# %s: %" PRIu64 " versions\n", k->array, report.versions);
    CHECK(report.unsure == 0 && report.nothing == 0);
    CHECK(report.acked == report.versions && report.acked > 0);
}

static void
crew_replays(const crew *how, bool mem, pyr_durability durability)
{
    place p;
    pid_t pids[8] = {0};
    place_open(&p, mem, durability, how->sample);
    crew c = *how;
    c.url = p.url;
    c.logs = p.logs[0];
    c.seed = p.k.seed;
    start_crew(&c, pids);
    end_crew(&c, pids);
    check_replay(&p.k, p.array, p.logs[0]);
    pyr_status status;
    OK(pyr_store_status(p.store, &status, NULL, NULL));
    CHECK(status.in_flight == 0);
    place_close(&p);
}

/* --- replays ------------------------------------------------------------- */

static void
every_version_is_the_replay_of_the_writes_that_made_it(void)
{
    crew c = {.processes = 4, .threads = 2, .sharing = SHARE_ARRAY,
              .writes = (uint32_t)by_scale(150, 2000, 8000), .batch = true,
              .ms = (uint32_t)by_scale(1500, 4000, 30000)};
    crew_replays(&c, false, PYR_DURABILITY_OS);
}

static void
it_is_so_with_synced_files_in_three_dimensions(void)
{
    crew c = {.processes = 3, .threads = 2, .sharing = SHARE_STORE,
              .sample = 2, .writes = (uint32_t)by_scale(60, 300, 2000),
              .ms = (uint32_t)by_scale(1500, 3000, 20000)};
    crew_replays(&c, false, PYR_DURABILITY_COMMIT);
}

static void
it_is_so_in_memory_with_threads(void)
{
    crew c = {.processes = 2, .threads = 4, .sharing = SHARE_NOTHING,
              .writes = (uint32_t)by_scale(100, 1500, 8000), .batch = true,
              .ms = (uint32_t)by_scale(1500, 3000, 20000)};
    crew_replays(&c, true, PYR_DURABILITY_OS);
}

static void
many_handles_of_one_store_in_one_process_agree(void)
{
    crew c = {.processes = 1, .threads = 8, .sharing = SHARE_NOTHING,
              .sample = 1, .writes = (uint32_t)by_scale(80, 1200, 6000),
              .ms = (uint32_t)by_scale(1500, 3000, 20000)};
    crew_replays(&c, false, PYR_DURABILITY_OS);
}

static void
writes_that_do_not_wait_are_published_in_order(void)
{
    crew c = {.processes = 3, .threads = 2, .sharing = SHARE_ARRAY,
              .writes = (uint32_t)by_scale(100, 1500, 6000), .nowait = true,
              .ms = (uint32_t)by_scale(1500, 3000, 20000)};
    crew_replays(&c, false, PYR_DURABILITY_OS);
}

static void
two_arrays_at_once_do_not_disturb_each_other(void)
{
    place p;
    pid_t pids[2][4] = {{0}};
    pyr_array *other;
    place_open(&p, false, PYR_DURABILITY_OS, 0);
    work k = work_sample(1, test_seed() + 1);
    OK(work_create(&k, p.store, &other));
    crew c = {.url = p.url, .logs = p.logs[0], .seed = p.k.seed,
              .processes = 2, .threads = 2,
              .writes = (uint32_t)by_scale(80, 1200, 6000),
              .ms = (uint32_t)by_scale(1500, 3000, 20000)};
    crew d = c;
    d.logs = p.logs[1];
    d.sample = 1;
    d.seed = k.seed;
    d.sharing = SHARE_STORE;
    start_crew(&c, pids[0]);
    start_crew(&d, pids[1]);
    end_crew(&c, pids[0]);
    end_crew(&d, pids[1]);
    check_replay(&p.k, p.array, p.logs[0]);
    check_replay(&k, other, p.logs[1]);
    pyr_array_close(other);
    place_close(&p);
}

/* --- the program --------------------------------------------------------- */

static const check_case cases[] = {
    T(every_version_is_the_replay_of_the_writes_that_made_it),
    T(it_is_so_with_synced_files_in_three_dimensions),
    T(it_is_so_in_memory_with_threads),
    T(many_handles_of_one_store_in_one_process_agree),
    T(writes_that_do_not_wait_are_published_in_order),
    T(two_arrays_at_once_do_not_disturb_each_other),
};

int
main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--child") == 0)
        return child_main(argc, argv);
    return check_main(cases, (int)(sizeof cases / sizeof cases[0]), argc,
                      argv);
}
