/*
 * copy/files_test.c - stores that are copied as files: docs/backup.md says how.
 */
#include "copy/compare.h"

static void
shell(const char *format, const char *a, const char *b)
{
    char command[3 * PATH_MAX];
    snprintf(command, sizeof command, format, a, b);
    REQUIRE(system(command) == 0);
}

static pyr_store *
opened(const char *url, unsigned flags)
{
    pyr_store *store;
    OK(pyr_open(url, flags, &store));
    return store;
}

static void
check_all(const subject *s, pyr_array *a)
{
    for (pyr_version v = 0; v < s->m.n; v++)
        check_cells(&s->m, (size_t)v, a, v);
}

/* Both go on from where they were, each its own way. */
static void
go_own_ways(subject *s, pyr_array *copy)
{
    subject other = {.with = s->with, .array = copy};
    size_t n = s->m.n;
    rng_next(&other.with.r);
    model_clone(&s->m, n - 1, &other.m); /* its version 0 is our last */
    subject_go_on(s, 20, 4);
    subject_go_on(&other, 20, 4);
    check_all(s, s->array);
    for (size_t v = 0; v < n; v++)
        check_cells(&s->m, v, copy, v);
    for (size_t i = 0; i < other.m.n; i++)
        check_cells(&other.m, i, copy, n - 1 + i);
    model_fini(&other.m);
}

static void
copy_files(bool open_meanwhile)
{
    char from_url[PATH_MAX], to_url[PATH_MAX];
    subject s;
    pyr_array *copy;
    snprintf(from_url, sizeof from_url, "%s", tmp_fresh("files"));
    snprintf(to_url, sizeof to_url, "%s", tmp_fresh("files"));
    pyr_store *from = opened(from_url, PYR_OPEN_CREATE);
    subject_create(&s, from, "a", test_seed());
    subject_go_on(&s, 30, 4);
    if (!open_meanwhile) {
        pyr_array_close(s.array);
        pyr_close(from);
    }
    shell("cp -a '%s' '%s'", from_url, to_url);
    if (!open_meanwhile) {
        from = opened(from_url, 0);
        OK(pyr_array_open(from, "a", &s.array));
    }
    pyr_store *to = opened(to_url, 0);
    OK(pyr_array_open(to, "a", &copy));
    check_all(&s, copy);
    go_own_ways(&s, copy);
    pyr_array_close(copy);
    subject_close(&s);
    pyr_close(from);
    pyr_close(to);
}

static void
a_store_that_is_closed_can_be_copied_as_files(void)
{
    copy_files(false);
}

static void
a_store_that_is_open_but_idle_can_be_copied_as_files(void)
{
    copy_files(true);
}

/* Data directories outside the store are copied, too, and named anew. */
static void
data_directories_outside_are_copied_along(void)
{
    char from_url[PATH_MAX], to_url[PATH_MAX], data[PATH_MAX], more[PATH_MAX];
    subject s;
    pyr_array *copy;
    pyr_store *from;
    snprintf(from_url, sizeof from_url, "%s", tmp_fresh("files"));
    snprintf(to_url, sizeof to_url, "%s", tmp_fresh("files"));
    snprintf(data, sizeof data, "%s", tmp_fresh("data"));
    snprintf(more, sizeof more, "%s", tmp_fresh("data"));
    const char *dirs[] = {data, NULL};
    pyr_store_options options = {.data = dirs};
    OK(pyr_open_with(from_url, PYR_OPEN_CREATE, &options, &from));
    subject_create(&s, from, "a", test_seed());
    subject_go_on(&s, 30, 4);
    shell("cp -a '%s' '%s'", from_url, to_url);
    shell("cp -a '%s' '%s'", data, more);
    REQUIRE(chdir(to_url) == 0);
    shell("sed -i 's|^data %s$|data %s|' pyramid.store", data, more);
    pyr_store *to = opened(to_url, 0);
    OK(pyr_array_open(to, "a", &copy));
    check_all(&s, copy);
    go_own_ways(&s, copy);
    pyr_array_close(copy);
    subject_close(&s);
    pyr_close(from);
    pyr_close(to);
}

/* Two stores with one past are told apart by what each did since. */
static void
a_backup_is_not_mixed_with_another_one(void)
{
    char from_url[PATH_MAX], twin_url[PATH_MAX];
    static const uint64_t zero[PYR_MAX_DIMS];
    subject s;
    pyr_array *a;
    pyr_store *backup = fresh_store(true);
    snprintf(from_url, sizeof from_url, "%s", tmp_fresh("files"));
    snprintf(twin_url, sizeof twin_url, "%s", tmp_fresh("files"));
    pyr_store *from = opened(from_url, PYR_OPEN_CREATE);
    subject_create(&s, from, "a", test_seed());
    subject_go_on(&s, 5, 2);
    OK(pyr_copy(s.array, backup, "a", NULL, NULL));
    shell("cp -a '%s' '%s'", from_url, twin_url);
    subject_go_on(&s, 2, 2);
    OK(pyr_copy(s.array, backup, "a", NULL, NULL));
    pyr_store *twin = opened(twin_url, 0);
    OK(pyr_array_open(twin, "a", &a));
    for (int i = 0; i < 3; i++)
        OK(pyr_write(a, zero, zero, "", NULL));
    FAILS(PYR_EEXIST, pyr_copy(a, backup, "a", NULL, NULL));
    pyr_array_close(a);
    subject_close(&s);
    pyr_close(twin);
    pyr_close(from);
    pyr_close(backup);
}

TESTS(T(a_store_that_is_closed_can_be_copied_as_files),
      T(a_store_that_is_open_but_idle_can_be_copied_as_files),
      T(data_directories_outside_are_copied_along),
      T(a_backup_is_not_mixed_with_another_one))
