/*
 * ceph/scene.h - processes that write and compute while parts of a cluster
 * fail, and the checker of what came of it.
 *
 * Writers work on one array as everywhere (support/work.h). Others compute
 * x + 1 of the newest snapshot of a second array, again and again: its history
 * names the source of each version, so every version can be told from those
 * before it. Both note what was acknowledged.
 */
#ifndef CEPH_SCENE_H
#define CEPH_SCENE_H

#include "ceph/cluster.h"
#include "crash/crew.h"
#include "support/health.h"

enum {
    WRITERS = 2,
    COMPUTERS = 2,
    CELLS = 4096,
    STEPS = 6,         /* versions of each array before and after a fault */
    PATIENCE_MS = 150000
};

static const uint64_t all_cells[1] = {CELLS}, origin[1];

/* --- what children do ---------------------------------------------------- */

static bool
is_told(const job *j, const char *what)
{
    char path[4200];
    snprintf(path, sizeof path, "%s.%s", j->logs, what);
    return tmp_exists(path);
}

/* Between two versions. While the cluster heals there is no hurry: each of
 * them is looked at in the end. */
static bool
told_to_stop(const job *j)
{
    if (is_told(j, "slow"))
        nap_ms(200);
    return is_told(j, "stop");
}

static int
role_write_on(const job *j)
{
    work k;
    pyr_store *store = NULL;
    pyr_array *array = NULL;
    work_order order = {.logs = j->logs, .writer = j->writer, .n = 1,
                        .nowait = 3, .retries = 1000};
    if (open_work(j, 0, &k, &store, &array) < 0)
        return complain("open");
    for (; !told_to_stop(j); order.first += order.n)
        if (work_write(&k, array, &order) < 0)
            return complain("write");
    pyr_array_close(array);
    pyr_close(store);
    return 0;
}

/* One computation, by its name; it is noted when it was acknowledged. */
static int
compute_once(pyr_array *array, uint32_t who, uint32_t number, FILE *log)
{
    char name[40];
    pyr_version made;
    snprintf(name, sizeof name, "c%" PRIu32 " s%" PRIu32, who, number);
    int err = pyr_compute_with(array, PYR_LATEST, origin, all_cells, "x + 1",
                               &(pyr_write_options){.message = name}, &made);
    if (err == 0) {
        fprintf(log, "%" PRIu64 " %s\n", (uint64_t)made, name);
        fflush(log);
    }
    return err == PYR_EFENCED ? 0 : err;
}

static int
role_compute_on(const job *j)
{
    pyr_store *store = NULL;
    pyr_array *array = NULL;
    char path[4200];
    snprintf(path, sizeof path, "%s.computed%" PRIu32, j->logs, j->writer);
    FILE *log = fopen(path, "a");
    if (!log || pyr_open(j->url, 0, &store) < 0 ||
        pyr_array_open(store, "counter", &array) < 0)
        return complain("open");
    for (uint32_t i = 0; !told_to_stop(j); i++)
        if (compute_once(array, j->writer, i, log) < 0)
            return complain("compute");
    fclose(log);
    pyr_array_close(array);
    pyr_close(store);
    return 0;
}

/* --- a scene ------------------------------------------------------------- */

typedef struct scene {
    place p;
    pyr_array *counter;
    pid_t crew[WRITERS + COMPUTERS];
    uint32_t computers;
} scene;

static inline void
begin_crew(scene *s, const char *url)
{
    for (int i = 0; i < WRITERS + COMPUTERS; i++) {
        job j = writer_of(&s->p, 0);
        j.url = url;
        j.role = i < WRITERS ? "write_on" : "compute_on";
        s->crew[i] = start(NULL, &j);
    }
    s->computers = s->p.writers;
}

static void
scene_open(scene *s, int sample)
{
    int32_t cells[CELLS];
    *s = (scene){.counter = NULL};
    place_open(&s->p, PYR_DURABILITY_COMMIT, 0, sample);
    OK(pyr_create(s->p.store, "counter",
                  &(pyr_spec){.ndim = 1, .shape = all_cells,
                              .chunk = (uint64_t[1]){CELLS / 4},
                              .type = PYR_I32},
                  &s->counter));
    for (int i = 0; i < CELLS; i++)
        cells[i] = 1000 * i;
    OK(pyr_write(s->counter, origin, all_cells, cells, NULL));
}

/* Both arrays get so many new versions; whoever failed is noticed at once. */
static inline void
goes_on(scene *s, const char *when)
{
    pyr_version first[2], now[2];
    int64_t begin = now_ns(), end = begin + (int64_t)PATIENCE_MS * 1000000;
    OK(pyr_latest(s->p.array, &first[0]));
    OK(pyr_latest(s->counter, &first[1]));
    do {
        nap_ms(5);
        OK(pyr_latest(s->p.array, &now[0]));
        OK(pyr_latest(s->counter, &now[1]));
        REQUIRE(now_ns() < end);
    } while (now[0] < first[0] + STEPS || now[1] < first[1] + STEPS);
    printf("# %s: %.1f s for %d versions\n", when,
           (double)(now_ns() - begin) / 1e9, STEPS);
}

/* All goes on while the cluster is made whole again, but slowly. */
static inline bool
heals(scene *s)
{
    char path[4200];
    snprintf(path, sizeof path, "%s.slow", s->p.logs);
    REQUIRE(tmp_write_file(path, ""));
    bool healed = cluster_heals();
    unlink(path);
    return healed;
}

/* --- the checker --------------------------------------------------------- */

enum { MAX_COMPUTED = 100000 };

typedef struct counted {
    int32_t added[MAX_COMPUTED]; /* to what the first version has */
    char names[MAX_COMPUTED][24];
    pyr_version last;
    bool wrong;
} counted;

static inline int
count_change(void *ctx, const pyr_change *c)
{
    counted *k = ctx;
    if (c->version == 0 || c->version >= MAX_COMPUTED)
        return 0;
    if (c->version != k->last + 1 || c->source >= c->version)
        k->wrong = true;
    k->last = c->version;
    k->added[c->version] = k->added[c->version - 1];
    if (c->kind == PYR_KIND_COMPUTE)
        k->added[c->version] = k->added[c->source] + 1;
    snprintf(k->names[c->version], sizeof k->names[0], "%s", c->message);
    return 0;
}

/* Each one that was acknowledged is there, under that number. */
static inline uint64_t
check_acknowledged(const scene *s, const counted *k)
{
    uint64_t n = 0;
    for (uint32_t who = 1; who <= s->computers; who++) {
        char path[4200], a[12], b[12], name[24];
        uint64_t version;
        snprintf(path, sizeof path, "%s.computed%" PRIu32, s->p.logs, who);
        FILE *f = fopen(path, "r");
        while (f && fscanf(f, "%" SCNu64 " %11s %11s", &version, a, b) == 3) {
            snprintf(name, sizeof name, "%.11s %.11s", a, b);
            CHECK(version <= k->last && version < MAX_COMPUTED &&
                  strcmp(k->names[version], name) == 0);
            n++;
        }
        if (f)
            fclose(f);
    }
    return n;
}

static bool
holds(pyr_array *array, pyr_version v, int32_t added)
{
    static int32_t cells[CELLS];
    OK(pyr_read(array, v, origin, all_cells, cells));
    for (int i = 0; i < CELLS; i++)
        if (cells[i] != 1000 * i + added)
            return false;
    return true;
}

static inline void
check_counter(scene *s)
{
    static counted k;
    k = (counted){.last = 0};
    OK(pyr_history(s->counter, 0, PYR_LATEST, count_change, &k));
    CHECK(!k.wrong);
    for (pyr_version v = 1; v <= k.last && v < MAX_COMPUTED; v++)
        if (!holds(s->counter, v, k.added[v])) {
            CHECK_NOTE("version %" PRIu64 " of counter is wrong", (uint64_t)v);
            break;
        }
    for (pyr_version v = 2; v <= k.last; v++) /* none is there twice */
        for (pyr_version w = v - 1; k.names[v][0] && w > 0 && w + 50 > v; w--)
            CHECK(strcmp(k.names[v], k.names[w]) != 0);
    uint64_t n = check_acknowledged(s, &k);
    printf("# %" PRIu64 " computed versions, %" PRIu64 " acknowledged\n",
           (uint64_t)k.last, n);
    CHECK(n > 0);
}

static inline void
end_crew(scene *s, pid_t killed)
{
    char path[4200];
    snprintf(path, sizeof path, "%s.stop", s->p.logs);
    REQUIRE(tmp_write_file(path, ""));
    for (int i = 0; i < WRITERS + COMPUTERS; i++)
        if (s->crew[i] != killed)
            CHECK(proc_ends_well(s->crew[i], PATIENCE_MS));
}

static inline void
scene_close(scene *s)
{
    pyr_version latest;
    OK(pyr_latest(s->p.array, &latest));
    OK(pyr_wait(s->p.array, latest, PATIENCE_MS));
    work_report r;
    if (!work_check(&s->p.k, s->p.array, s->p.logs, 1, &r))
        CHECK_NOTE("%s", r.text);
    printf("# %" PRIu64 " versions, %" PRIu64 " acknowledged\n", r.versions,
           r.acked);
    check_counter(s);
    check_health(s->p.store, 2);
    pyr_array_close(s->counter);
    place_close(&s->p);
}

static const crew_role scene_roles[] = {{"write_on", role_write_on},
                                        {"compute_on", role_compute_on},
                                        {NULL, NULL}};

#endif
