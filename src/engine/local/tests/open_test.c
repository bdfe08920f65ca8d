/*
 * Opening a directory: what is a store, what is not, and who shares one.
 */
#include "engine/local/tests/fixture.h"

#include <dirent.h>
#include <pthread.h>

static int
entries(const char *path)
{
    int n = 0;
    DIR *d = opendir(path);
    REQUIRE(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

static void
refused(int code, const char *path, unsigned flags)
{
    pyri_engine *e = (pyri_engine *)1;
    FAILS(code, pyri_engine_local.open(path, flags, NULL, &e));
    CHECK(e == NULL);
}

static void
nothing_there_is_not_found(void)
{
    const char *path = tmp_fresh("none");
    refused(PYR_ENOTFOUND, path, 0);
    refused(PYR_ENOTFOUND, path, PYR_OPEN_READONLY);
    refused(PYR_ENOTFOUND, inside(path, "deeper"), PYR_OPEN_CREATE);
    CHECK(!tmp_exists(path));
    refused(PYR_EINVAL, "", PYR_OPEN_CREATE);
}

static void
what_is_no_store_is_left_alone(void)
{
    const char *file = tmp_fresh("file"), *dir = tmp_fresh("dir");
    REQUIRE(tmp_write_file(file, "mine"));
    REQUIRE(mkdir(dir, 0777) == 0);
    REQUIRE(tmp_write_file(inside(dir, "thesis.txt"), "mine"));
    refused(PYR_EFORMAT, file, PYR_OPEN_CREATE);
    refused(PYR_EFORMAT, file, 0);
    refused(PYR_EFORMAT, dir, PYR_OPEN_CREATE);
    refused(PYR_EFORMAT, dir, 0);
    CHECK(entries(dir) == 1);
}

static void
an_empty_directory_becomes_a_store_if_asked_to(void)
{
    const char *path = tmp_fresh("empty");
    REQUIRE(mkdir(path, 0777) == 0);
    refused(PYR_EFORMAT, path, 0);
    CHECK(entries(path) == 0);
    pyri_engine_close(open_store(path));
    pyri_engine_close(open_at(path, 0, PYR_DURABILITY_OS));
}

static void
markers_that_make_no_sense_are_refused(void)
{
    static const char *const texts[] = {
        "", "\n", "pyramid", "pyramid store\n", "pyramid store\nend\n",
        "pyramid store\nformat one\nend\n", "pyramid store\nformat 1\nend\n",
        "pyramid store\nformat 1\nuuid short\n",
        "pyramid store\nformat 99999999999\n", "pyramid store\nwhat 1\nend\n",
        "pyramid store\nformat 1\nuuid 00000000-0000-0000-0000-000000000000\n"
        "durability maybe\nlease_ms 1\ndata data\nend\n",
        "pyramid store\nformat 1\nuuid 00000000-0000-0000-0000-000000000000\n"
        "durability os\nlease_ms 0\ndata data\nend\n",
        "pyramid store\nformat 1\nuuid 00000000-0000-0000-0000-000000000000\n"
        "durability os\nlease_ms 1\ndata data\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *path = tmp_fresh("garbled");
        REQUIRE(mkdir(path, 0777) == 0);
        REQUIRE(tmp_write_file(inside(path, "pyramid.store"), texts[i]));
        refused(PYR_EFORMAT, path, 0);
        refused(PYR_EFORMAT, path, PYR_OPEN_CREATE);
        CHECK(entries(path) == 1);
    }
}

static void
a_newer_format_says_which(void)
{
    const char *path = tmp_fresh("newer");
    REQUIRE(mkdir(path, 0777) == 0);
    REQUIRE(tmp_write_file(inside(path, "pyramid.store"),
                           "pyramid store\nformat 7\nmystery 1\n"));
    refused(PYR_EFORMAT, path, 0);
    CHECK(strstr(pyr_errmsg(), "format 7") != NULL);
    CHECK(strstr(pyr_errmsg(), "up to 1") != NULL);
}

static void
an_unfinished_store_is_finished_by_the_next_creator(void)
{
    const char *path = tmp_fresh("unfinished");
    REQUIRE(mkdir(path, 0777) == 0);
    REQUIRE(mkdir(inside(path, "meta"), 0777) == 0);
    REQUIRE(tmp_write_file(inside(path, "pyramid.making"), ""));
    refused(PYR_EFORMAT, path, 0);
    pyri_engine_close(open_store(path));
    CHECK(!tmp_exists(inside(path, "pyramid.making")));
}

/* Its data directory bears its mark already. */
static void
an_unfinished_store_knows_its_data_directories_again(void)
{
    const char *path = tmp_fresh("half"), *dir = tmp_fresh("half-data");
    const char *const data[] = {dir, NULL};
    pyr_store_options options = {.data = data};
    char text[256] = "", uuid[64] = "", making[128];
    pyri_engine *e;
    OK(pyri_engine_local.open(path, PYR_OPEN_CREATE, &options, &e));
    pyri_engine_close(e);
    FILE *f = fopen(inside(dir, "pyramid.data"), "r");
    REQUIRE(f && fread(text, 1, sizeof text - 1, f) > 0);
    fclose(f);
    REQUIRE(sscanf(text, "pyramid data store %63s", uuid) == 1);
    REQUIRE(unlink(inside(path, "pyramid.store")) == 0);
    snprintf(making, sizeof making, "a store is being made\nuuid %s\n", uuid);
    REQUIRE(tmp_write_file(inside(path, "pyramid.making"), making));
    OK(pyri_engine_local.open(path, PYR_OPEN_CREATE, &options, &e));
    pyri_engine_close(e);
    CHECK(!tmp_exists(inside(path, "pyramid.making")));
}

static void
a_store_without_its_metadata_is_not_taken_for_an_empty_one(void)
{
    const char *path = tmp_fresh("headless");
    pyri_engine *e = open_store(path);
    make_array(e);
    pyri_engine_close(e);
    REQUIRE(unlink(inside(path, "meta/data.mdb")) == 0);
    refused(PYR_ECORRUPT, path, PYR_OPEN_CREATE);
    refused(PYR_ECORRUPT, path, PYR_OPEN_READONLY);
    CHECK(!tmp_exists(inside(path, "meta/data.mdb")));
}

static void *
create_and_close(void *path)
{
    pyri_engine *e;
    if (pyri_engine_local.open(path, PYR_OPEN_CREATE, NULL, &e) < 0)
        return (void *)1;
    pyri_engine_close(e);
    return NULL;
}

static int
create_in_child(void *path)
{
    return create_and_close(path) != NULL;
}

static void
any_number_may_create_at_once(void)
{
    for (int round = 0; round < 10; round++) {
        char path[PATH_MAX];
        pid_t pids[6];
        pthread_t thread;
        snprintf(path, sizeof path, "%s", tmp_fresh("race"));
        for (int i = 0; i < 6; i++)
            pids[i] = proc_fork(create_in_child, path);
        void *bad;
        REQUIRE(pthread_create(&thread, NULL, create_and_close, path) == 0);
        pthread_join(thread, &bad);
        CHECK(bad == NULL);
        for (int i = 0; i < 6; i++) {
            int status = -1;
            waitpid(pids[i], &status, 0);
            proc_forget(pids[i]);
            CHECK(status == 0);
        }
        CHECK(entries(path) == 4); /* marker, meta, live, data */
    }
}

static void
one_process_may_open_a_store_often_and_by_many_names(void)
{
    char path[PATH_MAX], odd[PATH_MAX];
    snprintf(path, sizeof path, "%s", tmp_fresh("often"));
    pyri_engine *a = open_store(path);
    make_array(a);
    snprintf(odd, sizeof odd, "%.2000s/../%s", path, strrchr(path, '/') + 1);
    pyri_engine *b = open_at(odd, 0, PYR_DURABILITY_OS);
    pyri_engine *c = open_at(path, PYR_OPEN_READONLY, PYR_DURABILITY_OS);
    pyri_ticket t = take_one(a);
    OK(complete_one(b, &t));
    CHECK(latest_of(c) == 1);
    pyr_status st = {0};
    OK(pyri_engine_status(c, &st, NULL, NULL));
    CHECK(st.writers == 2);
    pyri_engine_close(a);
    CHECK(latest_of(b) == 1 && latest_of(c) == 1);
    pyri_engine_close(b);
    OK(pyri_engine_status(c, &st, NULL, NULL));
    CHECK(st.writers == 0);
    CHECK(latest_of(c) == 1);
    pyri_engine_close(c);
}

static void
a_site_opened_for_reading_can_be_written_to_later(void)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", tmp_fresh("upgrade"));
    pyri_engine *w = open_store(path);
    make_array(w);
    pyri_engine_close(w);
    tmp_remove(inside(path, "live"));
    pyri_engine *r = open_at(path, PYR_OPEN_READONLY, PYR_DURABILITY_OS);
    CHECK(!tmp_exists(inside(path, "live")));
    FAILS(PYR_ETIMEOUT, pyri_engine_wait(r, ARRAY, 1, 20));
    pyri_flights f = {0};
    OK(pyri_engine_flights(r, ARRAY, &f));
    CHECK(f.n == 0 && f.base == 0);
    pyri_flights_fini(&f);
    w = open_at(path, 0, PYR_DURABILITY_OS);
    pyri_ticket t = take_one(w);
    OK(complete_one(w, &t));
    OK(pyri_engine_wait(r, ARRAY, 1, 1000));
    pyri_engine_close(w);
    CHECK(latest_of(r) == 1);
    pyri_engine_close(r);
}

static int
use_in_child(void *arg)
{
    pyri_engine *e = arg, *own;
    pyri_reader *r;
    struct iovec iov = {(void *)(uintptr_t)"x", 1};
    pyri_blob_put put = {.iov = &iov, .niov = 1, .size = 1};
    if (pyri_engine_begin(e, &r) != PYR_EINVAL ||
        pyri_engine_put_blobs(e, &put, 1) != PYR_EINVAL ||
        !strstr(pyr_errmsg(), "fork"))
        return 1;
    pyri_engine_close(e); /* the parent must not notice */
    const char *path = getenv("CHILD_PATH");
    if (pyri_engine_local.open(path, 0, NULL, &own) < 0)
        return 2;
    pyri_ticket t = take_one(own);
    if (complete_one(own, &t) < 0)
        return 3;
    pyri_engine_close(own);
    return 0;
}

static void
a_child_must_open_for_itself_and_harms_nobody(void)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", tmp_fresh("fork"));
    setenv("CHILD_PATH", path, 1);
    pyri_engine *e = open_store(path);
    make_array(e);
    pyri_ticket t = take_one(e);
    OK(complete_one(e, &t));
    pyri_reader *r;
    OK(pyri_engine_begin(e, &r));
    int status = -1;
    waitpid(proc_fork(use_in_child, e), &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    uint64_t version;
    OK(pyri_engine_latest(e, r, ARRAY, &version, NULL));
    CHECK(version == 1); /* as when the reader began */
    pyri_engine_end(e, r);
    CHECK(latest_of(e) == 2);
    t = take_one(e);
    OK(complete_one(e, &t));
    pyri_engine_close(e);
}

static int
read_as_nobody(void *arg)
{
    pyri_engine *e;
    if (setgid(65534) != 0 || setuid(65534) != 0)
        return 77;
    if (pyri_engine_local.open(arg, 0, NULL, &e) != PYR_EREADONLY)
        return 1;
    if (pyri_engine_local.open(arg, PYR_OPEN_READONLY, NULL, &e) < 0)
        return 2;
    if (latest_of(e) != 1 || !has_node_of(e, 1))
        return 3;
    pyri_engine_close(e);
    return 0;
}

static void
one_without_permission_to_write_can_read(void)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", tmp_fresh("nobody"));
    pyri_engine *e = open_store(path);
    make_array(e);
    pyri_ticket t = take_one(e);
    OK(complete_one(e, &t));
    pyri_engine_close(e);
    REQUIRE(chmod(tmp_dir(), 0755) == 0);
    if (geteuid() != 0)
        return; /* cannot become somebody else */
    int status = -1;
    waitpid(proc_fork(read_as_nobody, path), &status, 0);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code != 0 && code != 77)
        CHECK_NOTE("the child gave %d", code);
}

/* Bytes of metadata that LMDB uses. */
static off_t
used_of(const char *file)
{
    enum { PAGE = 4096, LAST = 136, TXN = 144 };
    uint8_t pages[2 * PAGE];
    FILE *f = fopen(file, "rb");
    REQUIRE(f && fread(pages, 1, sizeof pages, f) == sizeof pages);
    fclose(f);
    bool second = pyri_load64(pages + PAGE + TXN) > pyri_load64(pages + TXN);
    return (off_t)(pyri_load64(pages + PAGE * second + LAST) + 1) * PAGE;
}

/* Room behind metadata is made by who has LMDB's lock, synced or not. Zeros of
 * one who only looks would land on what another is storing there. */
static void
who_opens_a_store_does_not_make_room_in_metadata(void)
{
    for (int synced = 0; synced < 2; synced++) {
        const char *path = tmp_fresh("still");
        const char *file = inside(path, "meta/data.mdb");
        pyri_engine *e = synced ? open_synced(path) : open_store(path);
        pyri_reader *r;
        struct stat st;
        make_array(e);
        for (int i = 0; i < 20; i++) {
            pyri_ticket t = take_one(e);
            OK(complete_one(e, &t));
        }
        pyri_engine_close(e);
        off_t used = used_of(file);
        REQUIRE(stat(file, &st) == 0);
        CHECK(st.st_size > used);
        REQUIRE(truncate(file, used) == 0);
        e = open_at(path, PYR_OPEN_READONLY, PYR_DURABILITY_COMMIT);
        OK(pyri_engine_begin(e, &r));
        CHECK(latest_of(e) == 20);
        pyri_engine_end(e, r);
        REQUIRE(stat(file, &st) == 0);
        CHECK(st.st_size == used && used_of(file) == used);
        pyri_engine_close(e);
    }
}

TESTS(T(nothing_there_is_not_found), T(what_is_no_store_is_left_alone),
      T(an_empty_directory_becomes_a_store_if_asked_to),
      T(markers_that_make_no_sense_are_refused), T(a_newer_format_says_which),
      T(an_unfinished_store_is_finished_by_the_next_creator),
      T(an_unfinished_store_knows_its_data_directories_again),
      T(a_store_without_its_metadata_is_not_taken_for_an_empty_one),
      T(any_number_may_create_at_once),
      T(one_process_may_open_a_store_often_and_by_many_names),
      T(a_site_opened_for_reading_can_be_written_to_later),
      T(a_child_must_open_for_itself_and_harms_nobody),
      T(one_without_permission_to_write_can_read),
      T(who_opens_a_store_does_not_make_room_in_metadata))
