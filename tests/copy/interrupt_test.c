/*
 * copy/interrupt_test.c - copies that are killed at each named point, that
 * meet writers, other copies, and damage.
 */
#include "base/sys.h"
#include "copy/compare.h"

#include <errno.h>
#include <pthread.h>

enum { VERSIONS = 12, BOUND = 300000 };

/* --- a child that copies ------------------------------------------------- */

static const pyr_version some[] = {2, 3, 7, 8, 11};

/* FROM TO ARRAY NAME all|some */
static int
child(char **args)
{
    pyr_store *from = NULL, *to = NULL;
    pyr_array *a = NULL;
    pyr_copy_spec spec = {.versions = some, .n = 5};
    bool all = strcmp(args[4], "all") == 0;
    if (pyr_open(args[0], PYR_OPEN_READONLY, &from) < 0 ||
        pyr_open(args[1], 0, &to) < 0 ||
        pyr_array_open(from, args[2], &a) < 0 ||
        pyr_copy(a, to, args[3], all ? NULL : &spec, NULL) < 0) {
        fprintf(stderr, "# copy: %s\n", pyr_errmsg());
        return 1;
    }
    pyr_array_close(a);
    pyr_close(from);
    pyr_close(to);
    return 0;
}

/* --- killed -------------------------------------------------------------- */

typedef struct pair {
    char from_url[PATH_MAX], to_url[PATH_MAX];
    pyr_store *from, *to;
    subject s, clone;
} pair;

static pyr_store *
fresh_at(char *url)
{
    pyr_store *store;
    pyr_store_options os = {.durability = PYR_DURABILITY_OS};
    snprintf(url, PATH_MAX, "%s", tmp_store("kill"));
    OK(pyr_open_with(url, PYR_OPEN_CREATE, &os, &store));
    return store;
}

/* How far apart the points are that are tried. */
static unsigned long
steps(unsigned long all, unsigned long small, unsigned long tiny)
{
    const char *scale = getenv("PYR_TEST_SCALE");
    if (!scale || strcmp(scale, "large") == 0)
        return all;
    return strcmp(scale, "tiny") == 0 ? tiny : small;
}

static void
pair_make(pair *p, uint64_t seed)
{
    *p = (pair){0};
    p->from = fresh_at(p->from_url);
    p->to = fresh_at(p->to_url);
    subject_create(&p->s, p->from, "a", seed);
    subject_go_on(&p->s, VERSIONS, 4);
    p->clone = (subject){.with = p->s.with, .store = p->from};
    OK(pyr_clone(p->s.array, 5, "c", &p->clone.array));
    model_clone(&p->s.m, 5, &p->clone.m);
    subject_go_on(&p->clone, VERSIONS, 4);
}

static void
pair_end(pair *p)
{
    subject_close(&p->clone);
    subject_close(&p->s);
    pyr_close(p->from);
    pyr_close(p->to);
    tmp_remove(p->from_url);
    tmp_remove(p->to_url);
}

static proc_end
run_copy(const pair *p, const char *fault, const char *array, const char *name,
         const char *which)
{
    const char *args[] = {"--child", p->from_url, p->to_url, array,
                          name,      which,       NULL};
    return proc_wait(proc_start(fault, args), BOUND);
}

static void
check_copy(pair *p, const char *array, const char *name, bool all)
{
    const subject *s = strcmp(array, "c") == 0 ? &p->clone : &p->s;
    pyr_array *copy;
    OK(pyr_array_open(p->to, name, &copy));
    for (pyr_version v = 0; v < s->m.n; v++) {
        bool there = all || v == 0;
        for (size_t i = 0; i < 5; i++)
            there |= some[i] == v;
        if (there)
            check_version(s, copy, v);
        else if (v < some[4])
            check_missing(copy, v);
    }
    pyr_array_close(copy);
}

static void
killed_at(const char *point, const char *array, const char *which)
{
    pair p;
    pair_make(&p, test_seed());
    int step = (int)steps(1, 5, 11);
    for (int nth = 1; nth < 40; nth += step) {
        char fault[64], name[32];
        snprintf(fault, sizeof fault, "%s=kill@%d", point, nth);
        snprintf(name, sizeof name, "copy%d", nth);
        proc_end end = run_copy(&p, fault, array, name, which);
        if (end.signal == 0) { /* it does not pass there so often */
            CHECK(end.code == 0 && nth > 1);
            nth = 100;
        }
        end = run_copy(&p, NULL, array, name, which);
        if (end.code != 0)
            CHECK_NOTE("killed at %s, it does not go on", fault);
        check_copy(&p, array, name, strcmp(which, "all") == 0);
    }
    pair_end(&p);
}

static const char *const points[] = {
    "copy.created",   "copy.noted",   "copy.begin",     "copy.data_sent",
    "copy.synced",    "write.built",  "publish.commit", "publish.done",
    "copy.published",
};
enum { NPOINTS = sizeof points / sizeof points[0] };

static void
killed_anywhere_a_copy_goes_on(void)
{
    for (int i = 0; i < NPOINTS; i++)
        killed_at(points[i], "a", "all");
}

static void
killed_anywhere_a_copy_of_some_goes_on(void)
{
    for (int i = 0; i < NPOINTS; i++)
        killed_at(points[i], "a", "some");
}

static void
killed_anywhere_the_copy_of_a_clone_goes_on(void)
{
    for (int i = 0; i < NPOINTS; i++)
        killed_at(points[i], "c", "all");
}

/* Killed, then its last version is forgotten at the source, then resumed. */
static void
what_the_source_forgot_meanwhile_stays(void)
{
    pair p;
    pyr_array *copy;
    pair_make(&p, test_seed());
    proc_end end = run_copy(&p, "copy.published=kill@6", "a", "copy", "all");
    CHECK(end.signal == SIGKILL);
    for (pyr_version v = 1; v <= 6; v++)
        forget(p.s.array, v);
    end = run_copy(&p, NULL, "a", "copy", "all");
    CHECK(end.code == 0);
    OK(pyr_array_open(p.to, "copy", &copy));
    for (pyr_version v = 1; v <= VERSIONS; v++)
        check_cells(&p.s.m, (size_t)v, copy, v);
    pyr_array_close(copy);
    pair_end(&p);
}

/* --- beside others ------------------------------------------------------- */

typedef struct writer {
    pyr_array *array;
    uint64_t seed;
    _Atomic bool stop;
    _Atomic int err;
} writer;

static void *
keep_writing(void *ctx)
{
    writer *w = ctx;
    rng r = rng_of(w->seed);
    while (!w->stop && w->err == 0) {
        int32_t cells[100];
        uint64_t at[2] = {rng_below(&r, 91), rng_below(&r, 91)};
        for (int i = 0; i < 100; i++)
            cells[i] = (int32_t)rng_next(&r);
        int err = pyr_write(w->array, at, (uint64_t[]){10, 10}, cells, NULL);
        if (err < 0)
            w->err = err;
    }
    return NULL;
}

/* Every version of the copy has the cells that it has at the source. */
static void
check_same(pyr_array *a, pyr_array *copy)
{
    static int32_t x[10000], y[10000];
    static const uint64_t zero[2], shape[2] = {100, 100};
    pyr_version latest;
    OK(pyr_latest(copy, &latest));
    for (pyr_version v = 0; v <= latest; v++) {
        OK(pyr_read(a, v, zero, shape, x));
        OK(pyr_read(copy, v, zero, shape, y));
        CHECK(memcmp(x, y, sizeof x) == 0);
    }
}

static void
a_source_can_be_written_to_meanwhile(void)
{
    pyr_store *from = fresh_store(false), *to = fresh_store(false);
    pyr_array *a, *copy;
    pthread_t thread[2];
    pyr_version v = 0;
    OK(pyr_create(from, "a", &(pyr_spec){.ndim = 2,
                                         .shape = (uint64_t[]){100, 100},
                                         .chunk = (uint64_t[]){32, 32},
                                         .type = PYR_I32}, &a));
    writer w = {.array = a, .seed = test_seed()};
    for (int i = 0; i < 2; i++)
        REQUIRE(pthread_create(&thread[i], NULL, keep_writing, &w) == 0);
    while (v < by_scale(100, 300, 300)) {
        OK(pyr_copy(a, to, "copy", NULL, NULL));
        OK(pyr_array_open(to, "copy", &copy));
        OK(pyr_latest(copy, &v));
        pyr_array_close(copy);
    }
    w.stop = true;
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    CHECK(w.err == 0);
    OK(pyr_copy(a, to, "copy", NULL, NULL));
    OK(pyr_array_open(to, "copy", &copy));
    check_same(a, copy);
    pyr_array_close(copy);
    pyr_array_close(a);
    pyr_close(from);
    pyr_close(to);
}

/* Of two copies at once one may have to give up, but none does harm. */
static void
two_copies_at_once_do_no_harm(void)
{
    pair p;
    pair_make(&p, test_seed());
    for (int round = 0; round < 10; round++) {
        char name[32];
        snprintf(name, sizeof name, "copy%d", round);
        const char *args[] = {"--child", p.from_url, p.to_url, "a",
                              name,      "all",      NULL};
        pid_t one = proc_start(NULL, args), two = proc_start(NULL, args);
        proc_wait(one, BOUND);
        proc_wait(two, BOUND);
        CHECK(run_copy(&p, NULL, "a", name, "all").code == 0);
        check_copy(&p, "a", name, true);
    }
    pair_end(&p);
}

/* --- calls that fail ----------------------------------------------------- */

/* Copy all anew while the nth call of a group fails, then once more. False if
 * there are not so many calls. */
static bool
copy_with_failure(pair *p, unsigned groups, int error, unsigned long nth)
{
    char name[64];
    pyr_store *to;
    const subject *s = nth % 2 ? &p->s : &p->clone;
    snprintf(name, sizeof name, "copy-%u-%lu", groups, nth);
    OK(pyr_open(p->to_url, 0, &to));
    pyri_sys_order(
        &(pyri_sys_plan){.groups = groups, .nth = nth, .error = error});
    int err = pyr_copy(s->array, to, name, NULL, NULL);
    bool acted = pyri_sys_acted() > 0;
    pyri_sys_order(NULL);
    if (err < 0)
        CHECK(acted && pyr_errmsg()[0]);
    pyr_close(to);
    OK(pyr_copy(s->array, p->to, name, NULL, NULL));
    check_copy(p, nth % 2 ? "a" : "c", name, true);
    return acted;
}

static void
whatever_memory_is_short_a_copy_goes_on(void)
{
    unsigned long step = steps(3, 29, 113);
    unsigned long nth = 1 + test_seed() % step;
    pair p;
    pair_make(&p, test_seed());
    while (copy_with_failure(&p, PYRI_SYS_MEMORY, ENOMEM, nth))
        nth += step;
    CHECK(nth > 100);
    if (tmp_is_path(p.to_url)) /* elsewhere there are ids for each version */
        CHECK(!copy_with_failure(&p, PYRI_SYS_RANDOM, EIO, 2));
    CHECK(copy_with_failure(&p, PYRI_SYS_RANDOM, EIO, 1));
    pair_end(&p);
}

/* Large fragments, which go to files of their own. */
static void
whatever_file_call_fails_a_copy_goes_on(void)
{
    enum { CELLS = 1 << 16 };
    static uint64_t cells[CELLS], got[CELLS];
    static const uint64_t zero[1], shape[1] = {CELLS};
    static const int errors[] = {EIO, ENOSPC};
    pyr_store *from = fresh_store(true), *to;
    pyr_array *a, *copy;
    OK(pyr_create(from, "a", &(pyr_spec){.ndim = 1, .shape = shape,
                                         .chunk = (uint64_t[]){CELLS / 4},
                                         .type = PYR_U64}, &a));
    for (int v = 1; v <= 3; v++) {
        for (size_t i = 0; i < CELLS; i++)
            cells[i] = rng_mix(i + (size_t)v * CELLS);
        OK(pyr_write(a, zero, shape, cells, NULL));
    }
    bool acted = true;
    for (unsigned long nth = 1; acted; nth++) {
        const char *url = tmp_fresh("file");
        OK(pyr_open(url, PYR_OPEN_CREATE, &to));
        pyri_sys_order(&(pyri_sys_plan){.groups = PYRI_SYS_FILE, .nth = nth,
                                        .error = errors[nth % 2]});
        int err = pyr_copy(a, to, "copy", NULL, NULL);
        acted = pyri_sys_acted() > 0;
        pyri_sys_order(NULL);
        CHECK(acted || (nth > 5 && err == 0));
        pyr_close(to);
        OK(pyr_open(url, 0, &to));
        OK(pyr_copy(a, to, "copy", NULL, NULL));
        OK(pyr_array_open(to, "copy", &copy));
        OK(pyr_read(copy, 3, zero, shape, got));
        CHECK(memcmp(got, cells, sizeof got) == 0);
        pyr_array_close(copy);
        pyr_close(to);
        tmp_remove(url);
    }
    pyr_array_close(a);
    pyr_close(from);
}

/* --- damage -------------------------------------------------------------- */

/* Change a byte near the end of the largest segment file of a store. */
static void
damage(const char *url)
{
    char command[2 * PATH_MAX];
    snprintf(command, sizeof command,
             "f=$(find '%s' -path '*seg*' -type f -printf '%%s %%p\\n' | "
             "sort -n | tail -1 | cut -d' ' -f2-); "
             "printf '\\377\\376' | dd of=\"$f\" bs=1 seek=200000 "
             "conv=notrunc 2>/dev/null", url);
    REQUIRE(system(command) == 0);
}

/* A disk that does not keep what it was given is found out at once. */
static char damaged_url[PATH_MAX];

static int
damage_when_published(const char *name)
{
    if (strcmp(name, "copy.published") == 0)
        damage(damaged_url);
    return 0;
}

extern int (*pyri_fault_hook)(const char *name);

static void
a_copy_that_the_disk_changed_is_found_out(void)
{
    static const uint64_t zero[1], shape[1] = {1 << 17};
    pyr_store *from = fresh_store(true), *to;
    pyr_array *a;
    snprintf(damaged_url, sizeof damaged_url, "%s", tmp_fresh("damaged"));
    OK(pyr_open(damaged_url, PYR_OPEN_CREATE, &to));
    uint64_t *cells = malloc(8u << 17);
    REQUIRE(cells);
    for (size_t i = 0; i < 1 << 17; i++)
        cells[i] = rng_mix(i);
    OK(pyr_create(from, "a", &(pyr_spec){.ndim = 1, .shape = shape,
                                         .type = PYR_U64}, &a));
    OK(pyr_write(a, zero, shape, cells, NULL));
    pyri_fault_hook = damage_when_published;
    FAILS(PYR_ECORRUPT, pyr_copy(a, to, "copy", NULL, NULL));
    pyri_fault_hook = NULL;
    FAILS(PYR_ECORRUPT, pyr_copy(a, to, "copy", NULL, NULL));
    free(cells);
    pyr_array_close(a);
    pyr_close(from);
    pyr_close(to);
}

static const check_case cases[] = {
    T(killed_anywhere_a_copy_goes_on),
    T(killed_anywhere_a_copy_of_some_goes_on),
    T(killed_anywhere_the_copy_of_a_clone_goes_on),
    T(what_the_source_forgot_meanwhile_stays),
    T(a_source_can_be_written_to_meanwhile),
    T(two_copies_at_once_do_no_harm),
    T(whatever_memory_is_short_a_copy_goes_on),
    T(whatever_file_call_fails_a_copy_goes_on),
    T(a_copy_that_the_disk_changed_is_found_out),
};

int
main(int argc, char **argv)
{
    if (argc == 7 && strcmp(argv[1], "--child") == 0)
        return child(argv + 2);
    return check_main(cases, (int)(sizeof cases / sizeof cases[0]), argc,
                      argv);
}
