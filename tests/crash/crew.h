/*
 * crash/crew.h - the processes of the crash tests: writers and readers that
 * can be killed or stopped at a named point, and the store that they share.
 *
 * Every one is the test program again (see crew_main), with its fault in the
 * environment. Stores whose dead must be noticed at once have a lease of an
 * hour, far more than any bound in here; and the bounds are for what hangs, so
 * far more than a machine with much else to do takes.
 */
#ifndef CRASH_CREW_H
#define CRASH_CREW_H

#include "support/check.h"
#include "support/proc.h"
#include "support/rng.h"
#include "support/tmp_store.h"
#include "support/work.h"

#include <pyramid/pyramid.h>

#include <inttypes.h>

enum { LONG_LEASE = 3600000, SHORT_LEASE = 700, BOUND = 300000 };

/* --- what children do ---------------------------------------------------- */

typedef struct job {
    const char *role, *url, *logs;
    int sample;
    uint64_t seed;
    uint32_t writer, n, nowait;
    int extra; /* retries, or the code to expect */
} job;

static inline int
complain(const char *what)
{
    fprintf(stderr, "# %s: %s\n", what, pyr_errmsg());
    return 1;
}

static inline int
open_work(const job *j, unsigned flags, work *k, pyr_store **store,
          pyr_array **array)
{
    *k = work_sample(j->sample, j->seed);
    int err = pyr_open(j->url, flags, store);
    return err < 0 ? err : pyr_array_open(*store, k->array, array);
}

static inline int
role_write(const job *j)
{
    work k;
    pyr_store *store = NULL;
    pyr_array *array = NULL;
    work_order order = {.logs = j->logs, .writer = j->writer, .n = j->n,
                        .nowait = j->nowait, .retries = j->extra};
    /* a fold in between may refuse what would be stored at once else */
    if (open_work(j, PYR_OPEN_NO_UPKEEP, &k, &store, &array) < 0)
        return complain("open");
    if (work_write(&k, array, &order) < 0)
        return complain("write");
    pyr_array_close(array);
    pyr_close(store);
    return 0;
}

/* Reads every version whole; leaves a digest of them in a file. */
static inline int
read_all(const job *j, const work *k, pyr_array *array)
{
    static const uint64_t zero[PYR_MAX_DIMS];
    size_t bytes = work_bytes(k);
    uint8_t *cells = calloc(1, bytes + 8);
    uint64_t digest = 0, latest;
    if (!cells || pyr_latest(array, &latest) < 0)
        return complain("latest");
    for (pyr_version v = 0; v <= j->n && v <= latest; v++) {
        if (pyr_read(array, v, zero, k->shape, cells) < 0)
            return complain("read");
        for (size_t i = 0; i < bytes; i += 8) {
            uint64_t bits;
            memcpy(&bits, cells + i, 8);
            digest = rng_mix(digest ^ bits);
        }
    }
    free(cells);
    char path[4200], text[32];
    snprintf(path, sizeof path, "%s/digest%" PRIu32, j->logs, j->writer);
    snprintf(text, sizeof text, "%" PRIx64, digest);
    return tmp_write_file(path, text) ? 0 : 1;
}

static inline int
role_read(const job *j)
{
    work k;
    pyr_store *store = NULL;
    pyr_array *array = NULL;
    if (open_work(j, PYR_OPEN_READONLY, &k, &store, &array) < 0)
        return complain("open");
    int code = read_all(j, &k, array);
    pyr_array_close(array);
    pyr_close(store);
    return code;
}

/* Opens, says so, and reads when it is told to. */
static inline int
role_read_later(const job *j)
{
    work k;
    char ready[4200], go[4200];
    pyr_store *store = NULL;
    pyr_array *array = NULL;
    if (open_work(j, j->extra ? 0 : PYR_OPEN_READONLY, &k, &store, &array) < 0)
        return complain("open");
    snprintf(ready, sizeof ready, "%s/ready%" PRIu32, j->logs, j->writer);
    snprintf(go, sizeof go, "%s/go", j->logs);
    tmp_write_file(ready, "");
    while (!tmp_exists(go))
        nap_ms(1);
    int code = read_all(j, &k, array);
    pyr_array_close(array);
    pyr_close(store);
    return code;
}

/* Random cells for all of the array. */
static inline int
write_all(const work *k, pyr_array *array)
{
    static const uint64_t zero[PYR_MAX_DIMS];
    size_t bytes = work_bytes(k);
    uint8_t *cells = malloc(bytes);
    rng r = rng_of(k->seed);
    for (size_t i = 0; cells && i < bytes; i++)
        cells[i] = (uint8_t)rng_next(&r);
    int err = cells ? pyr_write(array, zero, k->shape, cells, NULL) : 1;
    free(cells);
    return err;
}

/* The first write is made to fail, with nothing changed (but `nowait` versions
 * that change nothing); the next work. */
static inline int
role_fail(const job *j)
{
    work k;
    pyr_store *store = NULL;
    pyr_array *array = NULL;
    pyr_version before = 0, after = 0;
    work_order order = {.logs = j->logs, .writer = j->writer, .n = j->n};
    if (open_work(j, 0, &k, &store, &array) < 0)
        return complain("open");
    pyr_latest(array, &before);
    int err = write_all(&k, array), code = 0;
    if (err != j->extra || !pyr_errmsg()[0]) {
        fprintf(stderr, "# gave %d, not %d\n", err, j->extra);
        code = complain("failing write");
    } else if (pyr_latest(array, &after) < 0 || after != before + j->nowait) {
        code = complain("something was published");
    } else if (work_write(&k, array, &order) < 0) {
        code = complain("next write");
    }
    pyr_array_close(array);
    pyr_close(store);
    return code;
}

/* --- starting them ------------------------------------------------------- */

static inline pid_t
start(const char *fault, const job *j)
{
    char text[6][32];
    const char *args[12] = {"--child", j->role, j->url, j->logs};
    uint64_t numbers[6] = {(uint64_t)j->sample, j->seed, j->writer, j->n,
                           j->nowait, (uint64_t)(int64_t)j->extra};
    for (int i = 0; i < 6; i++) {
        snprintf(text[i], sizeof text[i], "%" PRIu64, numbers[i]);
        args[4 + i] = text[i];
    }
    return proc_start(fault, args);
}

static inline pid_t
start_at(const char *point, const char *action, int nth, const job *j)
{
    char fault[100];
    snprintf(fault, sizeof fault, "%s=%s@%d", point, action, nth);
    return start(fault, j);
}

/* --- a store and its crew ------------------------------------------------ */

typedef struct place {
    char url[4096], logs[4096];
    int sample;
    work k;
    pyr_store *store;
    pyr_array *array;
    uint32_t writers; /* numbers given out */
} place;

static inline void
place_open(place *p, pyr_durability durability, unsigned lease_ms, int sample)
{
    proc_kill_all();
    *p = (place){.sample = sample, .k = work_sample(sample, test_seed())};
    snprintf(p->url, sizeof p->url, "%s", tmp_store("crash"));
    snprintf(p->logs, sizeof p->logs, "%s", tmp_fresh("logs"));
    REQUIRE(mkdir(p->logs, 0777) == 0);
    pyr_store_options options = {.durability = durability,
                                 .lease_ms = lease_ms};
    OK(pyr_open_with(p->url, PYR_OPEN_CREATE, &options, &p->store));
    OK(work_create(&p->k, p->store, &p->array));
}

static inline void
place_close(place *p)
{
    pyr_array_close(p->array);
    pyr_close(p->store);
    tmp_remove(p->url);
    tmp_remove(p->logs);
}

static inline job
writer_of(place *p, uint32_t n)
{
    return (job){.role = "write", .url = p->url, .logs = p->logs,
                 .sample = p->sample, .seed = p->k.seed,
                 .writer = ++p->writers, .n = n};
}

/* A process that lives writes a few times, without trouble. */
static inline void
others_can_write(place *p)
{
    job j = writer_of(p, 5);
    CHECK(proc_ends_well(start(NULL, &j), BOUND));
}

static inline work_report
check_replay(place *p)
{
    work_report report;
    if (!work_check(&p->k, p->array, p->logs, 1, &report))
        CHECK_NOTE("%s", report.text);
    pyr_status status;
    OK(pyr_store_status(p->store, &status, NULL, NULL));
    CHECK(status.in_flight == 0);
    return report;
}

static inline bool
is_killed(pid_t pid)
{
    proc_end end = proc_wait(pid, BOUND);
    if (end.signal != SIGKILL)
        printf("# not killed: late %d, code %d\n", end.late, end.code);
    return end.signal == SIGKILL;
}

static inline bool
is_stopped(pid_t pid)
{
    return proc_wait(pid, BOUND).stopped;
}

/* --- the points of a write ----------------------------------------------- */

typedef enum fate { ABSENT, NOTHING, PRESENT } fate;

/* Where the version of a writer that dies there ends. */
typedef struct fault_point {
    const char *name;
    fate fate;
} fault_point;

static const fault_point points[] = {
    {"write.begin", ABSENT},     {"write.data_sent", ABSENT},
    {"write.synced", ABSENT},    {"ticket.taken", NOTHING},
    {"write.taken", NOTHING},    {"write.built", NOTHING},
    {"publish.commit", NOTHING}, {"publish.done", PRESENT},
    {"write.completed", PRESENT}, {"write.published", PRESENT},
};
enum { NPOINTS = sizeof points / sizeof points[0] };

/* Those that only a large write passes; the second if files are synced. */
static const fault_point segment_points[] = {
    {"segment.append", ABSENT}, {"segment.sync", ABSENT}};

/* --- the program --------------------------------------------------------- */

typedef struct crew_role {
    const char *name;
    int (*run)(const job *j);
} crew_role;

/* Run as a child if that is what the arguments say, with roles of the
 * program's own (ended by NULL) besides those above; else run the tests. */
static inline int
crew_main(int argc, char **argv, const check_case *cases, int n,
          const crew_role *own)
{
    static const crew_role common[] = {{"write", role_write},
                                       {"read", role_read},
                                       {"read_later", role_read_later},
                                       {"fail", role_fail},
                                       {NULL, NULL}};
    if (argc < 2 || strcmp(argv[1], "--child") != 0)
        return check_main(cases, n, argc, argv);
    if (argc != 11)
        return 2;
    uint64_t x[6];
    for (int i = 0; i < 6; i++)
        x[i] = strtoull(argv[5 + i], NULL, 10);
    job j = {.role = argv[2], .url = argv[3], .logs = argv[4],
             .sample = (int)x[0], .seed = x[1], .writer = (uint32_t)x[2],
             .n = (uint32_t)x[3], .nowait = (uint32_t)x[4],
             .extra = (int)(int64_t)x[5]};
    for (const crew_role *r = common; r->name; r++)
        if (strcmp(r->name, j.role) == 0)
            return r->run(&j);
    for (const crew_role *r = own; r->name; r++)
        if (strcmp(r->name, j.role) == 0)
            return r->run(&j);
    return 2;
}

#define CREW_TESTS(own, ...)                                                  \
    int main(int argc, char **argv)                                           \
    {                                                                         \
        static const check_case cases[] = {__VA_ARGS__};                      \
        return crew_main(argc, argv, cases,                                   \
                         (int)(sizeof cases / sizeof cases[0]), own);         \
    }

#endif
