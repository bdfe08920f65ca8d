/*
 * Segments: where blobs go, what becomes of segments, and what goes wrong.
 */
#include "base/fault.h"
#include "engine/local/tests/fixture.h"

#include <dirent.h>
#include <pthread.h>

static int
segments_in(const char *path)
{
    int n = 0;
    DIR *d = opendir(path);
    REQUIRE(d);
    for (struct dirent *e; (e = readdir(d));)
        n += strstr(e->d_name, ".seg") != NULL;
    closedir(d);
    return n;
}

/* More than waits in memory for its version. */
enum { LARGE = 70000 };

/* Put LARGE times a byte. */
static int
put_large(pyri_engine *e, int byte, pyri_ref *ref)
{
    uint8_t bytes[LARGE];
    memset(bytes, byte, sizeof bytes);
    return put_bytes(e, bytes, sizeof bytes, false, ref);
}

static bool
holds_large(pyri_engine *e, pyri_ref ref, int byte)
{
    uint8_t bytes[LARGE];
    memset(bytes, byte, sizeof bytes);
    return holds(e, ref, bytes, sizeof bytes);
}

static bool
is_small(pyri_ref ref)
{
    return ref.a >> 63;
}

/* --- where blobs go ------------------------------------------------------ */

static void
blobs_in_segments_share_no_page_and_small_ones_wait_elsewhere(void)
{
    pyri_engine *e = open_synced(tmp_fresh("layout"));
    static const struct { size_t size; bool aligned, small; } blobs[] = {
        {1, false, true}, {66000, false, false}, {5000, true, false},
        {1, false, true}, {4096, true, false}, {8192, true, false},
        {65792, false, true}, {65793, false, false}, {0, false, true},
        {0, true, false}, {70001, false, false}, {1, true, false},
        {65536, true, false}, {4096, false, true}};
    enum { N = sizeof blobs / sizeof blobs[0], MOST = 70001 };
    uint8_t *bytes = malloc(N * MOST);
    struct iovec iov[N];
    pyri_blob_put puts[N] = {{0}};
    REQUIRE(bytes);
    for (size_t i = 0; i < N; i++) {
        memset(bytes + i * MOST, (int)i + 1, MOST);
        iov[i] = (struct iovec){bytes + i * MOST, blobs[i].size};
        puts[i] = (pyri_blob_put){.iov = &iov[i], .niov = 1,
                                  .size = blobs[i].size,
                                  .aligned = blobs[i].aligned};
    }
    OK(pyri_engine_put_blobs(e, puts, N));
    uint64_t end = 4096;
    for (size_t i = 0; i < N; i++) {
        CHECK(is_small(puts[i].ref) == blobs[i].small);
        CHECK(holds(e, puts[i].ref, bytes + i * MOST, blobs[i].size));
        if (blobs[i].small)
            continue;
        uint64_t at = puts[i].ref.b;
        CHECK(at == end && at % PYRI_PAGE == 0);
        end = (at + blobs[i].size + PYRI_PAGE - 1) / PYRI_PAGE * PYRI_PAGE;
        CHECK(puts[i].ref.a == puts[1].ref.a);
    }
    free(bytes);
    pyri_engine_close(e);
}

/* Where no sync is saved by waiting, segments are the better place: they are
 * read without a search. */
static void
where_nothing_is_synced_only_the_smallest_blobs_wait(void)
{
    static const size_t sizes[] = {1, 1536, 1537, 32768, 65792};
    pyri_engine *e = open_store(tmp_fresh("unsynced"));
    uint8_t bytes[65792];
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        pyri_ref ref;
        memset(bytes, (int)i + 1, sizeof bytes);
        OK(put_bytes(e, bytes, sizes[i], false, &ref));
        CHECK(is_small(ref) == (sizes[i] <= 1536));
        CHECK(holds(e, ref, bytes, sizes[i]));
    }
    pyri_engine_close(e);
}

/* A writer that names nothing must not fill the memory. */
static void
what_waits_in_memory_is_bounded_and_the_rest_goes_into_segments(void)
{
    enum { N = 40, SIZE = 60000 };
    char path[PATH_MAX];
    uint8_t bytes[SIZE];
    pyri_ref refs[N], more;
    uint64_t waiting = 0;
    snprintf(path, sizeof path, "%s", tmp_fresh("bound"));
    pyri_engine *e = open_synced(path);
    for (int i = 0; i < N; i++) {
        memset(bytes, i, SIZE);
        OK(put_bytes(e, bytes, SIZE, false, &refs[i]));
        waiting += is_small(refs[i]) ? SIZE : 0;
    }
    CHECK(waiting > (1 << 20) - SIZE && waiting <= 1 << 20);
    for (int i = 0; i < N; i++) {
        memset(bytes, i, SIZE);
        CHECK(holds(e, refs[i], bytes, SIZE));
    }
    pyri_blob first = {refs[0], SIZE}; /* dropped, it makes room */
    REQUIRE(is_small(refs[0]));
    pyri_engine_drop_blobs(e, &first, 1, NULL, 0);
    OK(put_bytes(e, bytes, SIZE, false, &more));
    CHECK(is_small(more) && holds(e, more, bytes, SIZE));
    pyri_engine_close(e);
}

static void
blobs_of_many_pieces_are_gathered(void)
{
    enum { PIECES = 10000 };
    pyri_engine *e = open_store(tmp_fresh("pieces"));
    uint8_t *bytes = malloc(PIECES * 7);
    struct iovec *iov = calloc(PIECES, sizeof *iov);
    REQUIRE(bytes && iov);
    for (size_t i = 0; i < PIECES * 7; i++)
        bytes[i] = (uint8_t)(i * 31 >> 3);
    for (size_t i = 0; i < PIECES; i++)
        iov[i] = (struct iovec){bytes + 7 * i, 7};
    pyri_blob_put puts[2] = {
        {.iov = iov, .niov = PIECES, .size = PIECES * 7, .aligned = true},
        {.iov = iov + 1, .niov = PIECES - 1, .size = PIECES * 7 - 7}};
    OK(pyri_engine_put_blobs(e, puts, 2));
    CHECK(holds(e, puts[0].ref, bytes, PIECES * 7));
    CHECK(holds(e, puts[1].ref, bytes + 7, PIECES * 7 - 7));
    free(bytes);
    free(iov);
    pyri_engine_close(e);
}

static void
a_segment_is_gone_on_with_after_reopening(void)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", tmp_fresh("again"));
    pyri_ref refs[10];
    for (int i = 0; i < 10; i++) {
        pyri_engine *e = open_store(path);
        OK(put_large(e, 'a' + i, &refs[i]));
        pyri_engine_close(e);
    }
    CHECK(segments_in(inside(path, "data")) == 1);
    pyri_engine *e = open_store(path);
    for (int i = 0; i < 10; i++)
        CHECK(holds_large(e, refs[i], 'a' + i));
    pyri_engine_close(e);
}

static int
put_and_die(void *path)
{
    pyri_ref ref;
    pyri_engine *e = open_store(path);
    if (put_large(e, 'd', &ref) < 0)
        return 1;
    kill(getpid(), SIGKILL);
    return 2;
}

static void
a_dead_writers_segment_is_taken_over_a_living_ones_is_not(void)
{
    char path[PATH_MAX];
    pyri_ref ref;
    snprintf(path, sizeof path, "%s", tmp_fresh("heir"));
    pyri_engine *e = open_store(path);
    OK(put_large(e, 'm', &ref));
    for (int i = 0; i < 3; i++) {
        int status;
        waitpid(proc_fork(put_and_die, path), &status, 0);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    CHECK(segments_in(inside(path, "data")) == 2);
    CHECK(holds_large(e, ref, 'm'));
    pyr_status st = {0};
    OK(pyri_engine_status(e, &st, NULL, NULL));
    CHECK(st.writers == 1);
    pyri_engine_close(e);
}

/* --- failures ------------------------------------------------------------ */

#ifdef PYRI_FAULTS
static const char *failing;
static int fail_with;
static atomic_int fail_times;

static int
fail_by_name(const char *name)
{
    if (!failing || strcmp(name, failing) != 0 || fail_times-- <= 0)
        return 0;
    return pyri_fail(fail_with, "made to fail");
}

static void
order(const char *name, int code, int times)
{
    failing = name;
    fail_with = code;
    fail_times = times;
    pyri_fault_hook = fail_by_name;
}

static void
a_failed_append_leaves_the_segment_usable(void)
{
    pyri_engine *e = open_store(tmp_fresh("full"));
    pyri_ref a, b;
    OK(put_large(e, 1, &a));
    order("segment.append", PYR_ENOSPC, 1);
    FAILS(PYR_ENOSPC, put_large(e, 2, &b));
    OK(put_large(e, 2, &b));
    CHECK(a.a == b.a && b.b == a.b + 18 * PYRI_PAGE);
    CHECK(holds_large(e, a, 1) && holds_large(e, b, 2));
    pyri_engine_close(e);
}

/* Of those that are put together, none is left behind: small ones would wait in
 * memory until there is no more room for them. */
static void
when_one_of_several_cannot_be_put_none_is(void)
{
    enum { SIZE = 60000, TIMES = 40 };
    static uint8_t bytes[70001];
    pyri_engine *e = open_synced(tmp_fresh("several"));
    pyri_ref ref;
    struct iovec iov[2] = {{bytes, SIZE}, {bytes, sizeof bytes}};
    pyri_blob_put puts[2] = {{.iov = &iov[0], .niov = 1, .size = SIZE},
                             {.iov = &iov[1], .niov = 1,
                              .size = sizeof bytes}};
    for (int i = 0; i < TIMES; i++) {
        order("segment.append", PYR_ENOSPC, 1);
        FAILS(PYR_ENOSPC, pyri_engine_put_blobs(e, puts, 2));
    }
    OK(put_bytes(e, bytes, SIZE, false, &ref));
    CHECK(is_small(ref));
    pyri_engine_close(e);
}

static void
a_sync_that_fails_before_it_began_can_be_repeated(void)
{
    pyri_engine *e = open_at(tmp_fresh("sync"), PYR_OPEN_CREATE,
                             PYR_DURABILITY_COMMIT);
    pyri_ref ref;
    OK(put_large(e, 1, &ref));
    order("segment.sync", PYR_EIO, 1);
    FAILS(PYR_EIO, pyri_engine_sync(e));
    OK(pyri_engine_sync(e));
    OK(pyri_engine_sync(e));
    pyri_engine_close(e);
}

static void
after_a_failed_sync_nothing_is_promised_until_reopening(void)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", tmp_fresh("poison"));
    pyri_engine *e = open_at(path, PYR_OPEN_CREATE, PYR_DURABILITY_COMMIT);
    pyri_ref a, b;
    OK(put_large(e, 1, &a));
    order("segment.poison", PYR_EIO, 1);
    FAILS(PYR_EIO, pyri_engine_sync(e));
    FAILS(PYR_EIO, pyri_engine_sync(e));
    FAILS(PYR_EIO, put_large(e, 2, &b));
    pyri_engine_close(e);
    e = open_at(path, 0, PYR_DURABILITY_COMMIT);
    OK(put_large(e, 2, &b));
    OK(pyri_engine_sync(e));
    CHECK(a.a != b.a); /* the segment is not used again */
    pyri_engine_close(e);
}

static void
where_one_directory_fails_another_serves(void)
{
    const char *one = tmp_fresh("d1"), *two = tmp_fresh("d2");
    const char *const data[] = {one, two, NULL};
    pyr_store_options options = {.durability = PYR_DURABILITY_OS,
                                 .data = data};
    pyri_engine *e;
    pyri_ref a, b;
    OK(pyri_engine_local.open(tmp_fresh("two"), PYR_OPEN_CREATE, &options,
                              &e));
    OK(put_large(e, 1, &a));
    order("segment.append", PYR_ENOSPC, 1);
    OK(put_large(e, 2, &b));
    CHECK(holds_large(e, a, 1) && holds_large(e, b, 2));
    order("segment.append", PYR_ENOSPC, 2);
    FAILS(PYR_ENOSPC, put_large(e, 3, &b));
    pyri_engine_close(e);
}
#endif

/* --- data directories ---------------------------------------------------- */

static int
note_dir(void *ctx, const pyr_data_dir *dir)
{
    int *errors = ctx;
    errors[0]++;
    errors[1] += dir->error != 0;
    errors[2] += (int)dir->segments;
    return 0;
}

static void
a_directory_that_is_not_mounted_is_noticed_and_not_written_to(void)
{
    char path[PATH_MAX], one[PATH_MAX], two[PATH_MAX], away[PATH_MAX];
    snprintf(path, sizeof path, "%s", tmp_fresh("mounts"));
    snprintf(one, sizeof one, "%s", tmp_fresh("disk1"));
    snprintf(two, sizeof two, "%s", tmp_fresh("disk2"));
    snprintf(away, sizeof away, "%s", tmp_fresh("away"));
    const char *const data[] = {one, two, NULL};
    pyr_store_options options = {.durability = PYR_DURABILITY_OS,
                                 .data = data};
    pyri_engine *e;
    OK(pyri_engine_local.open(path, PYR_OPEN_CREATE, &options, &e));
    pyri_ref refs[8];
    for (int i = 0; i < 8; i++)
        OK(put_large(e, 4, &refs[i]));
    size_t used = (size_t)(refs[0].a >> 32);
    pyri_engine_close(e);

    const char *gone = used == 0 ? one : two, *left = used == 0 ? two : one;
    REQUIRE(rename(gone, away) == 0 && mkdir(gone, 0777) == 0);
    OK(pyri_engine_local.open(path, 0, NULL, &e));
    int seen[3] = {0};
    pyr_status st = {0};
    OK(pyri_engine_status(e, &st, note_dir, seen));
    CHECK(seen[0] == 2 && seen[1] == 1);
    pyri_ref ref;
    OK(put_large(e, 4, &ref));
    CHECK(ref.a >> 32 != used);
    pyri_reader *r;
    pyri_blob_get get = {.ref = refs[0], .size = 4};
    OK(pyri_engine_begin(e, &r));
    FAILS(PYR_EIO, pyri_engine_get_blobs(e, r, &get, 1));
    pyri_engine_end(e, r);
    CHECK(segments_in(gone) == 0 && segments_in(left) >= 1);

    REQUIRE(rmdir(gone) == 0 && rename(away, gone) == 0); /* mounted again */
    CHECK(holds_large(e, refs[0], 4));
    pyri_engine_close(e);
}

static void
a_data_directory_belongs_to_one_store(void)
{
    const char *dir = tmp_fresh("shared"), *second = tmp_fresh("second");
    const char *const data[] = {dir, NULL}, *const twice[] = {
        tmp_path("twice"), tmp_path("twice"), NULL};
    pyr_store_options options = {.data = data}, doubled = {.data = twice};
    pyri_engine *e;
    OK(pyri_engine_local.open(tmp_fresh("first"), PYR_OPEN_CREATE, &options,
                              &e));
    pyri_engine_close(e);
    FAILS(PYR_EEXIST, pyri_engine_local.open(second, PYR_OPEN_CREATE, &options,
                                             &e));
    FAILS(PYR_EEXIST, pyri_engine_local.open(second, PYR_OPEN_CREATE, &doubled,
                                             &e));
    pyri_engine_close(open_store(second)); /* it was left clean */
}

static void *
put_some(void *arg)
{
    pyri_engine *e = arg;
    char bytes[20000];
    pyri_ref ref;
    for (int i = 0; i < 200; i++) {
        memset(bytes, i, sizeof bytes);
        if (put_bytes(e, bytes, sizeof bytes, i & 1, &ref) < 0 ||
            pyri_engine_sync(e) < 0 || !holds(e, ref, bytes, sizeof bytes))
            return (void *)1;
    }
    return NULL;
}

static void
threads_append_to_segments_of_their_own(void)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", tmp_fresh("threads"));
    pyri_engine *e = open_at(path, PYR_OPEN_CREATE, PYR_DURABILITY_COMMIT);
    pthread_t threads[12];
    for (int i = 0; i < 12; i++)
        REQUIRE(pthread_create(&threads[i], NULL, put_some, e) == 0);
    for (int i = 0; i < 12; i++) {
        void *bad;
        pthread_join(threads[i], &bad);
        CHECK(bad == NULL);
    }
    CHECK(segments_in(inside(path, "data")) <= 8);
    pyri_engine_close(e);
}

static void
a_blob_larger_than_a_segment_gets_one_for_itself(void)
{
    enum { PIECES = 140, PIECE = 8 << 20 }; /* 1.1 GiB out of 8 MiB */
    char path[PATH_MAX], *bytes = malloc(PIECE);
    struct iovec iov[PIECES];
    pyri_ref small, after;
    snprintf(path, sizeof path, "%s", tmp_fresh("large"));
    pyri_engine *e = open_store(path);
    REQUIRE(bytes);
    memset(bytes, 5, PIECE);
    for (int i = 0; i < PIECES; i++)
        iov[i] = (struct iovec){bytes, PIECE};
    pyri_blob_put put = {.iov = iov, .niov = PIECES, .aligned = true,
                         .size = (uint64_t)PIECE * PIECES};
    OK(put_large(e, 1, &small));
    OK(pyri_engine_put_blobs(e, &put, 1));
    OK(put_large(e, 2, &after));
    CHECK(put.ref.a != small.a && put.ref.b == 4096 && after.a == small.a);
    pyri_reader *r;
    pyri_blob_get get = {.ref = put.ref, .offset = put.size - PIECE,
                         .size = PIECE};
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_get_blobs(e, r, &get, 1));
    CHECK(memcmp(get.data, bytes, PIECE) == 0);
    pyri_engine_end(e, r);
    free(bytes);
    pyri_engine_close(e);
    tmp_remove(path);
}

TESTS(T(blobs_in_segments_share_no_page_and_small_ones_wait_elsewhere),
      T(where_nothing_is_synced_only_the_smallest_blobs_wait),
      T(what_waits_in_memory_is_bounded_and_the_rest_goes_into_segments),
      T(blobs_of_many_pieces_are_gathered),
      T(a_segment_is_gone_on_with_after_reopening),
      T(a_dead_writers_segment_is_taken_over_a_living_ones_is_not),
#ifdef PYRI_FAULTS
      T(a_failed_append_leaves_the_segment_usable),
      T(when_one_of_several_cannot_be_put_none_is),
      T(a_sync_that_fails_before_it_began_can_be_repeated),
      T(after_a_failed_sync_nothing_is_promised_until_reopening),
      T(where_one_directory_fails_another_serves),
#endif
      T(a_directory_that_is_not_mounted_is_noticed_and_not_written_to),
      T(a_data_directory_belongs_to_one_store),
      T(threads_append_to_segments_of_their_own),
      T(a_blob_larger_than_a_segment_gets_one_for_itself))
