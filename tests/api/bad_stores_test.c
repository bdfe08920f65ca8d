/*
 * api/bad_stores_test.c - stores that cannot be opened or changed, handles
 * after a fork, and the texts of failures.
 */
#include "api/refused.h"

/* --- stores -------------------------------------------------------------- */

static void
a_read_only_store_refuses_every_change(void)
{
    pyr_store *s;
    pyr_array *a;
    pyr_version v;
    pyr_spec spec = {.ndim = 2, .shape = shape, .type = PYR_I32};
    pyr_part p = {.offset = zero, .size = one, .buf = cells};
    set_up();
    OK(pyr_open(url, PYR_OPEN_READONLY, &s));
    OK(pyr_array_open(s, "a/first", &a));
    REFUSED(PYR_EREADONLY, NULL, pyr_create(s, "n", &spec, NULL));
    REFUSED(PYR_EREADONLY, NULL, pyr_write(a, zero, one, cells, &v));
    REFUSED(PYR_EREADONLY, NULL,
            pyr_write_as(a, PYR_I32, zero, one, cells, &v));
    REFUSED(PYR_EREADONLY, NULL, pyr_write_list(a, &p, 1, NULL, &v));
    REFUSED(PYR_EREADONLY, NULL, pyr_resize(a, shape, &v));
    REFUSED(PYR_EREADONLY, NULL, pyr_append(a, 0, 1, cells, NULL, &v));
    REFUSED(PYR_EREADONLY, NULL, pyr_tag(a, "n", 1));
    REFUSED(PYR_EREADONLY, NULL, pyr_untag(a, "good"));
    REFUSED(PYR_EREADONLY, NULL, pyr_clone(a, 1, "n", NULL));
    REFUSED(PYR_EREADONLY, NULL, pyr_set_attributes(a, "{}"));
    pyr_batch *batch = NULL;
    REFUSED(PYR_EREADONLY, NULL, pyr_batch_begin(a, &batch));
    CHECK(batch == NULL);
    OK(pyr_read(a, 1, zero, one, cells));
    OK(pyr_wait(a, 3, 1000));
    pyr_array_close(a);
    pyr_close(s);
    tear_down();
}

static void
paths_that_are_no_store_are_refused(void)
{
    pyr_store *s = store;
    set_up();
    const char *file = tmp_fresh("file");
    REQUIRE(tmp_write_file(file, "hello\n"));
    REFUSED(PYR_EFORMAT, file, pyr_open(file, 0, &s));
    REFUSED(PYR_EFORMAT, file, pyr_open(file, PYR_OPEN_CREATE, &s));
    const char *dir = tmp_fresh("dir");
    REQUIRE(mkdir(dir, 0777) == 0);
    char inside[4200];
    snprintf(inside, sizeof inside, "%s/precious", dir);
    REQUIRE(tmp_write_file(inside, "mine"));
    REFUSED(PYR_EFORMAT, dir, pyr_open(dir, 0, &s));
    REFUSED(PYR_EFORMAT, dir, pyr_open(dir, PYR_OPEN_CREATE, &s));
    REFUSED(PYR_EFORMAT, dir, pyr_open(dir, PYR_OPEN_READONLY, &s));
    struct stat st;
    CHECK(stat(inside, &st) == 0 && st.st_size == 4);
    const char *missing = tmp_fresh("missing");
    REFUSED(PYR_ENOTFOUND, missing, pyr_open(missing, 0, &s));
    REFUSED(PYR_ENOTFOUND, missing, pyr_open(missing, PYR_OPEN_READONLY, &s));
    CHECK(!tmp_exists(missing));
    CHECK(s == NULL);
    char deep[4300];
    snprintf(deep, sizeof deep, "%s/x/y", file);
    make_stale();
    CHECK(pyr_open(deep, PYR_OPEN_CREATE, &s) < 0);
    check_text("open", deep);
    static const char *const urls[] = {"", "ftp://host/x", "file:", "file://"};
    for (int i = 0; i < 4; i++) {
        make_stale();
        int err = pyr_open(urls[i], PYR_OPEN_CREATE, &s);
        CHECK(err == PYR_EINVAL || err == PYR_EUNSUPPORTED);
        check_text("open", NULL);
    }
    FAILS(PYR_ENOTFOUND, pyr_open("mem:nothing-here", 0, &s));
    tear_down();
}

static void
a_directory_that_is_empty_becomes_a_store_only_if_asked(void)
{
    pyr_store *s = NULL;
    const char *dir = tmp_fresh("empty");
    REQUIRE(mkdir(dir, 0777) == 0);
    int err = pyr_open(dir, 0, &s);
    CHECK(err == PYR_ENOTFOUND || err == PYR_EFORMAT);
    CHECK(s == NULL);
    OK(pyr_open(dir, PYR_OPEN_CREATE, &s));
    pyr_close(s);
    char with_scheme[4200];
    snprintf(with_scheme, sizeof with_scheme, "file://%s", dir);
    OK(pyr_open(with_scheme, 0, &s));
    pyr_close(s);
}

static void
marker_is_refused(const char *marker, const char *names)
{
    char path[4200];
    pyr_store *s = store;
    pyr_close(store);
    store = NULL;
    snprintf(path, sizeof path, "%s/pyramid.store", url);
    char saved[4096];
    FILE *f = fopen(path, "r");
    REQUIRE(f);
    size_t n = fread(saved, 1, sizeof saved - 1, f);
    saved[n] = 0;
    fclose(f);
    REQUIRE(tmp_write_file(path, marker));
    for (unsigned flags = 0; flags <= PYR_OPEN_READONLY; flags++) {
        FAILS(PYR_EFORMAT, pyr_open(url, flags, &s));
        CHECK(s == NULL);
        check_text("open", names);
    }
    REQUIRE(tmp_write_file(path, saved));
    OK(pyr_open(url, 0, &store));
}

static void
a_store_of_a_newer_format_is_refused(void)
{
    char path[4200], text[4096], newer[4200];
    set_up();
    pyr_array_close(array);
    array = NULL;
    uint64_t print = fingerprint();
    snprintf(path, sizeof path, "%s/pyramid.store", url);
    FILE *f = fopen(path, "r");
    REQUIRE(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    fclose(f);
    char *line = strstr(text, "\nformat ");
    REQUIRE(line);
    char *rest = strchr(line + 1, '\n');
    snprintf(newer, sizeof newer, "%.*s\nformat 999%s", (int)(line - text),
             text, rest ? rest : "\n");
    marker_is_refused(newer, "999");
    marker_is_refused("", NULL);
    marker_is_refused("garbage\nformat 1\n", NULL);
    CHECK(fingerprint() == print);
    tear_down();
}

static void
an_existing_store_keeps_what_it_was_made_with(void)
{
    pyr_store *s;
    pyr_status status;
    const char *dir = tmp_fresh("kept");
    pyr_store_options made = {.durability = PYR_DURABILITY_OS,
                              .lease_ms = 1234};
    pyr_store_options later = {.durability = PYR_DURABILITY_COMMIT,
                               .lease_ms = 99};
    OK(pyr_open_with(dir, PYR_OPEN_CREATE, &made, &s));
    pyr_close(s);
    OK(pyr_open_with(dir, PYR_OPEN_CREATE, &later, &s));
    OK(pyr_store_status(s, &status, NULL, NULL));
    CHECK(status.durability == PYR_DURABILITY_OS);
    CHECK(status.lease_ms == 1234);
    CHECK(strcmp(status.engine, "file") == 0);
    pyr_close(s);
    OK(pyr_open(tmp_fresh("kept"), PYR_OPEN_CREATE, &s));
    OK(pyr_store_status(s, &status, NULL, NULL));
    CHECK(status.durability == PYR_DURABILITY_COMMIT);
    CHECK(status.lease_ms == 10000);
    pyr_close(s);
}

/* --- fork ---------------------------------------------------------------- */

/* 0 if all that is tried with the parent's handles is refused in words. */
static int
use_after_fork(void *arg)
{
    int32_t cell = 1;
    pyr_version v;
    pyr_stats stats;
    pyr_array *a;
    alarm(20);
    if (pyr_write(array, zero, one, &cell, &v) == 0)
        return 10;
    if (!pyr_errmsg()[0] || !strstr(pyr_errmsg(), "fork"))
        return 11;
    if (pyr_read(array, 1, zero, one, &cell) == 0)
        return 12;
    if (pyr_latest(array, &v) == 0)
        return 13;
    if (pyr_array_open(store, "a/first", &a) == 0)
        return 14;
    if (pyr_stat(array, 1, zero, one, 0, &stats) == 0)
        return 15;
    return 0;
}

static int
open_after_fork(void *arg)
{
    int32_t cell = 77;
    pyr_store *s;
    pyr_array *a;
    pyr_version v;
    alarm(20);
    if (pyr_open(url, 0, &s) < 0 || pyr_array_open(s, "a/first", &a) < 0)
        return 10;
    if (pyr_write(a, zero, one, &cell, &v) < 0)
        return 11;
    cell = 0;
    if (pyr_read(a, v, zero, one, &cell) < 0 || cell != 77)
        return 12;
    pyr_array_close(a);
    pyr_close(s);
    return 0;
}

static void
handles_are_refused_in_a_forked_child_which_can_open_its_own(void)
{
    int32_t cell = 5, got = 0;
    pyr_version v;
    set_up();
    OK(pyr_read(array, 1, zero, one, &got));
    CHECK(proc_ends_well(proc_fork(use_after_fork, NULL), 30000));
    CHECK(proc_ends_well(proc_fork(open_after_fork, NULL), 30000));
    OK(pyr_latest(array, &v));
    CHECK(v == 4);
    OK(pyr_write(array, zero, one, &cell, &v));
    CHECK(v == 5);
    OK(pyr_read(array, v, zero, one, &got));
    CHECK(got == 5);
    OK(pyr_read(array, 4, zero, one, &got));
    CHECK(got == 77);
    tear_down();
}

/* --- texts --------------------------------------------------------------- */

static void
every_code_has_words_of_its_own(void)
{
    for (int a = PYR_EKERNEL; a <= 0; a++) {
        CHECK(pyr_strerror(a) && strlen(pyr_strerror(a)) > 2);
        for (int b = PYR_EKERNEL; b < a; b++)
            CHECK(strcmp(pyr_strerror(a), pyr_strerror(b)) != 0);
    }
    CHECK(pyr_strerror(1) && pyr_strerror(1)[0]);
    CHECK(pyr_strerror(-1000) && pyr_strerror(-1000)[0]);
    CHECK(pyr_strerror(-2147483647 - 1)[0]);
}

static void *
fail_in_thread(void *arg)
{
    pyr_array *a;
    int *ok = arg;
    const char *fresh = pyr_errmsg();
    *ok = fresh != NULL && !strstr(fresh, "main/thread");
    *ok &= pyr_array_open(store, "other/thread", &a) == PYR_ENOTFOUND;
    *ok &= strstr(pyr_errmsg(), "other/thread") != NULL;
    return NULL;
}

static void
the_text_of_a_failure_belongs_to_its_thread(void)
{
    pyr_array *a;
    pthread_t thread;
    int ok = 0;
    set_up();
    FAILS(PYR_ENOTFOUND, pyr_array_open(store, "main/thread", &a));
    REQUIRE(pthread_create(&thread, NULL, fail_in_thread, &ok) == 0);
    pthread_join(thread, NULL);
    CHECK(ok);
    CHECK(strstr(pyr_errmsg(), "main/thread") != NULL);
    tear_down();
}

TESTS(T(a_read_only_store_refuses_every_change),
      T(paths_that_are_no_store_are_refused),
      T(a_directory_that_is_empty_becomes_a_store_only_if_asked),
      T(a_store_of_a_newer_format_is_refused),
      T(an_existing_store_keeps_what_it_was_made_with),
      T(handles_are_refused_in_a_forked_child_which_can_open_its_own),
      T(every_code_has_words_of_its_own),
      T(the_text_of_a_failure_belongs_to_its_thread))
