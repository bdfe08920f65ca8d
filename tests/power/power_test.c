/*
 * power/power_test.c - the power fails at every step of every operation, and
 * no acknowledged version is lost.
 *
 * A process does what support/story.c tells, and support/interpose.c notes all
 * that it does to files and when each operation returned. Then, for points of
 * that trace, power/disk.c makes directories as a disk could be left, and
 * another process opens the store that is there: it must open by itself, hold
 * what was acknowledged, equal to the model, the operation that was cut off
 * wholly or not at all, and go on working. The restart is itself cut short in
 * the same way.
 *
 * A failure prints the one command that repeats it.
 */
#include "base/fault.h"
#include "power/disk.h"
#include "support/check.h"
#include "support/proc.h"
#include "support/story.h"
#include "support/tmp_store.h"

#include <ftw.h>
#include <sys/mman.h>

enum { ROOM = 256 << 20, EXIT_BAD = 9, SECONDS = 600 };

/* --- one run ------------------------------------------------------------- */

/* Where everything happens: data directories are named by absolute paths, so
 * each disk is put in the same place. */
static const char *
place(void)
{
    return tmp_path("disk");
}

static const char *
store_path(void)
{
    return tmp_path("disk/store");
}

static const char *const *
data_dirs(bool outer)
{
    static char one[PATH_MAX], two[PATH_MAX];
    static const char *dirs[] = {one, two, NULL};
    snprintf(one, sizeof one, "%s/one", place());
    snprintf(two, sizeof two, "%s/two", place());
    return outer ? dirs : NULL;
}

typedef struct run {
    uint64_t seed;
    bool outer;     /* data directories outside the store */
    const char *const *script; /* of the story, or NULL */
    unsigned steps; /* operations */
    trace *t;
    disk *before;
    size_t nevents;
    const trace_event **events;
} run;

static world
world_of(const run *u, bool live)
{
    return (world){.seed = u->seed,
                   .path = store_path(),
                   .dirs = data_dirs(u->outer),
                   .script = u->script,
                   .live = live};
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static void
clear(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A trace's events, so that they can be counted and pointed at. */
static void
list_events(run *u)
{
    u->nevents = 0;
    for (const trace_event *e = NULL; (e = trace_next(u->t, e));)
        u->nevents++;
    u->events = calloc(u->nevents + 1, sizeof *u->events);
    size_t i = 0;
    for (const trace_event *e = NULL; (e = trace_next(u->t, e));)
        u->events[i++] = e;
}

/* The notes in a trace: 2 n when operation n begins, and 2 n + 1 when it has
 * returned. */
static int
record(void *arg)
{
    run *u = arg;
    world w = world_of(u, true);
    interpose_seed(u->seed | 1);
    interpose_skip_syncs(true);
    interpose_trace(u->t, place());
    while (w.step < u->steps) {
        unsigned step = w.step;
        trace_note(2 * step);
        if (story_run(&w, story_next(&w)) != 0) {
            printf("# step %u: %s\n", step, pyr_errmsg());
            return EXIT_BAD;
        }
        trace_note(2 * step + 1);
    }
    story_fini(&w);
    return 0;
}

static int
reopen(void *arg)
{
    run *u = arg;
    pyr_store *store;
    interpose_seed(u->seed + 12345);
    interpose_skip_syncs(true);
    interpose_trace(u->t, place());
    int err = pyr_open(store_path(), PYR_OPEN_NO_UPKEEP, &store);
    if (err == 0)
        pyr_close(store);
    return err == 0 || err == PYR_ENOTFOUND || err == PYR_EFORMAT ? 0
                                                                  : EXIT_BAD;
}

static bool
ends_well(pid_t pid)
{
    int status = 0;
    if (waitpid(pid, &status, 0) != pid)
        return false;
    proc_forget(pid);
    if (WIFSIGNALED(status))
        printf("# killed by signal %d\n", WTERMSIG(status));
    return status == 0;
}

static void
run_fini(run *u)
{
    trace_free(u->t);
    disk_free(u->before);
    free(u->events);
    *u = (run){0};
}

/* --- one cut ------------------------------------------------------------- */

typedef struct cut {
    const run *u;
    unsigned acked, begun; /* operations, at that moment */
    bool quiet;            /* it is meant to fail */
} cut;

static void
count_operations(const run *u, size_t count, cut *c)
{
    for (size_t i = 0; i < count; i++)
        if (u->events[i]->kind == TRACE_NOTE) {
            unsigned n = (unsigned)(u->events[i]->at / 2) + 1;
            *(u->events[i]->at & 1 ? &c->acked : &c->begun) = n;
        }
}

/* Does the store hold what it does after so many operations? */
static bool
holds(const run *u, unsigned steps, world *w, char *why, size_t room)
{
    *w = world_of(u, false);
    while (w->step < steps)
        story_run(w, story_next(w));
    w->live = true;
    return story_check(w, why, room);
}

static bool
goes_on(world *w, const story_op *op)
{
    int err = story_run(w, op);
    if (err != 0)
        printf("# %s after it: %s\n", op->name,
               err < 0 ? pyr_errmsg() : "a wrong answer");
    return err == 0;
}

/* Another three operations, what was begun of reclaiming is ended, and all is
 * still as it must be. */
static int
go_on(world *w)
{
    char why[512];
    w->seed = rng_mix(w->seed + w->step);
    for (int i = 0; i < 3 || w->step < 5; i++) {
        const story_op *op = story_next(w);
        if (w->made && w->step == 0)
            op = story_ops + 1;
        if (!goes_on(w, op))
            return EXIT_BAD;
    }
    if (!goes_on(w, story_find("reclaim")) ||
        !goes_on(w, story_find("verify")))
        return EXIT_BAD;
    if (story_check(w, why, sizeof why))
        return 0;
    printf("# after more operations: %s\n", why);
    return EXIT_BAD;
}

static int
inspect(void *arg)
{
    cut *c = arg;
    char early[512] = "", late[512] = "";
    world w;
    alarm(SECONDS);
    if (c->quiet && !freopen("/dev/null", "w", stdout))
        return EXIT_BAD;
    interpose_seed(0);
    interpose_skip_syncs(true);
    if (c->acked == 0) { /* it may not be there; then it is made */
        w = world_of(c->u, true);
        if (story_run(&w, story_next(&w)) != 0) {
            printf("# create again: %s\n", pyr_errmsg());
            return EXIT_BAD;
        }
        if (!story_check(&w, early, sizeof early)) {
            printf("# created again: %s\n", early);
            return EXIT_BAD;
        }
    } else if (!holds(c->u, c->acked, &w, early, sizeof early)) {
        story_fini(&w);
        if (c->begun == c->acked ||
            !holds(c->u, c->begun, &w, late, sizeof late)) {
            printf("# %u operations were acknowledged: %s\n", c->acked, early);
            if (*late)
                printf("# nor is the next one done: %s\n", late);
            return EXIT_BAD;
        }
    }
    int code = go_on(&w);
    story_fini(&w);
    return code;
}

/* True if the store survives on this disk. */
static bool
survives(const disk *d, cut *c)
{
    clear(place());
    if (!disk_save(d, place())) {
        printf("# cannot make %s\n", place());
        return false;
    }
    return ends_well(proc_fork(inspect, c));
}

static const char *const fates[] = {"none", "all",  "but",
                                    "only", "torn", "random"};

static void
tell_case(const run *u, size_t count, disk_policy p, const char *test,
          const char *more)
{
    printf("# again: PYR_TEST_SEED=0x%llx PYR_POWER_CASE=%zu,%s,%llu%s "
           "build/test/tests/power/power_test %s\n",
           (unsigned long long)test_seed(), count, fates[p.fate],
           (unsigned long long)p.number, more, test);
    const trace_event *e = u->events[count - 1];
    printf("# the last event of %zu: kind %d, %s %s, %llu bytes at %llu\n",
           u->nevents, (int)e->kind, e->name, e->to,
           (unsigned long long)e->size, (unsigned long long)e->at);
}

/* --- which cuts ---------------------------------------------------------- */

typedef struct plan {
    const char *test;
    uint64_t cases; /* about so many */
    size_t from;    /* events that come before any cut */
    rng r;
    uint64_t all, done, bad;
    bool counting;
    bool (*each)(struct plan *p, const run *u, size_t count, disk_policy how);
} plan;

static void
offer(plan *p, const run *u, size_t count, disk_fate fate, uint64_t number)
{
    disk_policy how = {fate, number};
    p->all += p->counting;
    if (p->counting || p->bad > 3 || rng_below(&p->r, p->all) >= p->cases)
        return;
    p->done++;
    if (!p->each(p, u, count, how))
        p->bad++;
}

static bool
is_barrier(const trace_event *e)
{
    return e->kind == TRACE_SYNC || e->durable || e->kind == TRACE_NOTE;
}

/* Every point at which something happened, and right before each sync also
 * every single write that is still loose. */
static void
offer_cuts(plan *p, const run *u)
{
    for (size_t count = p->from + 1; count <= u->nevents; count++) {
        const trace_event *e = u->events[count - 1];
        if (e->kind == TRACE_KNOWN)
            continue;
        offer(p, u, count, DISK_NONE, 0);
        offer(p, u, count, DISK_ALL, 0);
        offer(p, u, count, DISK_RANDOM, 2 * count);
        offer(p, u, count, DISK_RANDOM, 2 * count + 1);
        if (count == u->nevents || !is_barrier(u->events[count]))
            continue;
        size_t loose;
        disk_free(disk_cut(u->before, u->t, count, (disk_policy){0}, &loose));
        for (size_t i = 0; i < loose; i++) {
            offer(p, u, count, DISK_ALL_BUT, i);
            offer(p, u, count, DISK_ONLY, i);
            offer(p, u, count, DISK_TORN_ONE, i);
        }
    }
}

/* PYR_POWER_CASE=COUNT,FATE,NUMBER: just that one. */
static bool
parse_case(const char *text, size_t *count, disk_policy *how)
{
    char fate[16];
    unsigned long long number;
    if (!text || sscanf(text, "%zu,%15[a-z],%llu", count, fate, &number) != 3)
        return false;
    *how = (disk_policy){DISK_NONE, number};
    for (int i = 0; i <= DISK_RANDOM; i++)
        if (strcmp(fates[i], fate) == 0)
            how->fate = (disk_fate)i;
    return true;
}

static void
try_cuts(plan *p, const run *u)
{
    size_t count;
    disk_policy how;
    if (parse_case(getenv("PYR_POWER_CASE"), &count, &how)) {
        REQUIRE(count > 0 && count <= u->nevents);
        CHECK(p->each(p, u, count, how));
        return;
    }
    p->r = rng_of(u->seed);
    p->counting = true;
    offer_cuts(p, u);
    p->counting = false;
    offer_cuts(p, u);
    printf("# %zu events, %llu of %llu cuts tried, %llu bad\n", u->nevents,
           (unsigned long long)p->done, (unsigned long long)p->all,
           (unsigned long long)p->bad);
}

/* --- the tests ----------------------------------------------------------- */

/* The traced directory is kept, so that no other live/ can be taken for its:
 * on another boot it could not be either. */
static void
record_run(run *u)
{
    clear(place());
    clear(tmp_path("kept"));
    u->before = disk_new();
    u->t = trace_new(ROOM);
    REQUIRE(u->t && disk_save(u->before, place()));
    REQUIRE(ends_well(proc_fork(record, u)));
    REQUIRE(!u->t->overflow);
    REQUIRE(rename(place(), tmp_path("kept")) == 0);
    list_events(u);
}

static void
make_run(run *u, uint64_t seed, bool outer, unsigned steps)
{
    *u = (run){.seed = seed, .outer = outer, .steps = steps};
    record_run(u);
}

static bool
cut_once(plan *p, const run *u, size_t count, disk_policy how)
{
    cut c = {.u = u};
    size_t loose;
    disk *d = disk_cut(u->before, u->t, count, how, &loose);
    count_operations(u, count, &c);
    bool ok = survives(d, &c);
    if (!ok)
        tell_case(u, count, how, p->test, "");
    disk_free(d);
    return ok;
}

static void
power_cut(const char *test, uint64_t salt, bool outer)
{
    run u;
    plan p = {.test = test,
              .cases = by_scale(100, 1000, 20000),
              .each = cut_once};
    make_run(&u, test_seed() + salt, outer, (unsigned)by_scale(12, 24, 60));
    try_cuts(&p, &u);
    CHECK(p.bad == 0);
    run_fini(&u);
}

static void
a_power_cut_loses_nothing_that_was_acknowledged(void)
{
    power_cut(__func__, 0, false);
}

static void
nor_with_several_data_directories(void)
{
    power_cut(__func__, 1, true);
}

/* --- reclaiming that folds ----------------------------------------------- */

/* Points that the recording process came by. */
typedef struct visits {
    unsigned folds, packs;
} visits;

static visits *seen; /* shared with it */

static int
count_points(const char *name)
{
    seen->folds += strcmp(name, "fold.done") == 0;
    seen->packs += strcmp(name, "dense.commit") == 0;
    return 0;
}

/* A story whose last step folds leaves, and fills LMDB's pages: where that is
 * depends on the boxes, so some seeds are tried. */
static void
make_folds(run *u)
{
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(seen != MAP_FAILED);
    pyri_fault_hook = count_points;
    for (uint64_t i = 0; i < 20; i++) {
        *seen = (visits){0, 0};
        *u = (run){.seed = test_seed() + 3 + i * 1000,
                   .script = story_folds,
                   .steps = story_nfolds + 1};
        record_run(u);
        if (seen->folds && seen->packs)
            break;
        run_fini(u);
    }
    pyri_fault_hook = NULL;
    REQUIRE(u->nevents && seen->folds && seen->packs);
    munmap(seen, sizeof *seen);
}

static size_t
begin_of_step(const run *u, unsigned step)
{
    size_t i = 0;
    while (i < u->nevents && !(u->events[i]->kind == TRACE_NOTE &&
                               u->events[i]->at == 2 * step))
        i++;
    return i;
}

static void
nor_while_reclaiming_folds(void)
{
    run u;
    plan p = {.test = __func__,
              .cases = by_scale(60, 600, 20000),
              .each = cut_once};
    make_folds(&u);
    p.from = begin_of_step(&u, story_nfolds);
    REQUIRE(p.from < u.nevents);
    try_cuts(&p, &u);
    CHECK(p.bad == 0);
    run_fini(&u);
}

/* --- restarts ------------------------------------------------------------ */

/* A disk, the restart on it, and the restart cut short once more. */
static bool
cut_twice(plan *p, const run *u, size_t count, disk_policy how)
{
    run again = {.seed = u->seed, .outer = u->outer, .t = trace_new(ROOM)};
    cut c = {.u = u};
    size_t loose;
    bool ok = true;
    again.before = disk_cut(u->before, u->t, count, how, &loose);
    count_operations(u, count, &c);
    clear(place());
    clear(tmp_path("first"));
    REQUIRE(again.t && disk_save(again.before, place()));
    REQUIRE(ends_well(proc_fork(reopen, &again)));
    REQUIRE(rename(place(), tmp_path("first")) == 0);
    list_events(&again);
    rng r = rng_of(u->seed + count);
    for (size_t i = 1; ok && i <= again.nevents; i++) {
        if (again.events[i - 1]->kind == TRACE_KNOWN)
            continue;
        disk_policy second = {(disk_fate)rng_below(&r, 2), 0};
        if (rng_once_in(&r, 2))
            second = (disk_policy){DISK_RANDOM, rng_next(&r) >> 40};
        disk *d = disk_cut(again.before, again.t, i, second, &loose);
        if (!(ok = survives(d, &c))) {
            printf("# the restart was cut after %zu of %zu events, %s\n", i,
                   again.nevents, fates[second.fate]);
            tell_case(u, count, how, p->test, "");
        }
        disk_free(d);
    }
    run_fini(&again);
    return ok;
}

static void
a_restart_can_be_cut_short_as_well(void)
{
    run u;
    plan p = {.test = __func__,
              .cases = by_scale(4, 40, 600),
              .each = cut_twice};
    make_run(&u, test_seed() + 2, false, (unsigned)by_scale(8, 16, 30));
    try_cuts(&p, &u);
    CHECK(p.bad == 0);
    run_fini(&u);
}

/* --- the simulator itself ------------------------------------------------ */

static bool
never_mind(plan *p, const run *u, size_t count, disk_policy how)
{
    cut c = {.u = u, .quiet = true};
    size_t loose;
    disk *d = disk_cut(u->before, u->t, count, how, &loose);
    count_operations(u, count, &c);
    bool ok = survives(d, &c);
    disk_free(d);
    return ok;
}

/* Forgets the syncs of what was made under names that end like this. */
static void
forget_syncs(run *u, const char *end)
{
    uint32_t ids[512];
    size_t n = 0;
    for (size_t i = 0; i < u->nevents; i++) {
        const trace_event *e = u->events[i];
        size_t size = strlen(e->name);
        if ((e->kind == TRACE_CREATE || e->kind == TRACE_MKDIR) && n < 512 &&
            size >= strlen(end) &&
            strcmp(e->name + size - strlen(end), end) == 0)
            ids[n++] = e->id;
        for (size_t k = 0; k < n && e->kind == TRACE_SYNC; k++)
            if (e->id == ids[k]) /* then it is nobody's */
                ((trace_event *)(uintptr_t)e)->id = DISK_MAX_IDS - 1;
    }
}

/* Were one of the syncs left out, this test would see it. */
static void
a_missing_sync_is_noticed(void)
{
    static const char *const ends[] = {".seg", "data", "data.mdb", "meta",
                                       "store"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        run u;
        plan p = {.test = __func__, .cases = 300, .each = never_mind};
        make_run(&u, 3, false, 20); /* the same in every run */
        forget_syncs(&u, ends[i]);
        p.r = rng_of(u.seed);
        fflush(stdout);
        p.counting = true;
        offer_cuts(&p, &u);
        p.counting = false;
        offer_cuts(&p, &u);
        if (p.bad == 0)
            CHECK_NOTE("nobody misses the syncs of %s", ends[i]);
        run_fini(&u);
    }
}

TESTS(T(a_power_cut_loses_nothing_that_was_acknowledged),
      T(nor_with_several_data_directories), T(nor_while_reclaiming_folds),
      T(a_restart_can_be_cut_short_as_well), T(a_missing_sync_is_noticed))
