/*
 * Mapped segments: references that are wrong, files that grow or shrink, more
 * segments than the table holds, and what is copied instead of shown.
 */
#include "base/hash.h"
#include "base/sys.h"
#include "engine/local/tests/fixture.h"

#include <errno.h>
#include <pthread.h>

static char path[PATH_MAX];

static pyri_engine *
fresh(void)
{
    snprintf(path, sizeof path, "%s", tmp_fresh("map"));
    return open_store(path);
}

static int
get_range(pyri_engine *e, pyri_ref ref, uint64_t offset, uint64_t size)
{
    pyri_reader *r;
    pyri_blob_get get = {.ref = ref, .offset = offset, .size = size};
    OK(pyri_engine_begin(e, &r));
    int err = pyri_engine_get_blobs(e, r, &get, 1);
    pyri_engine_end(e, r);
    return err;
}

static const char *
segment_file(pyri_ref ref)
{
    char name[32];
    snprintf(name, sizeof name, "data/%08x.seg", (unsigned)ref.a);
    return inside(path, name);
}

static void
references_that_are_wrong_are_noticed(void)
{
    pyri_engine *e = fresh();
    pyri_ref ref;
    OK(put_bytes(e, "bytes", 5, true, &ref));
    const pyri_ref wrong[] = {
        {0, ref.b}, {ref.a ^ 1, ref.b}, {ref.a | UINT64_C(1) << 32, ref.b},
        {ref.a | UINT64_C(1) << 63, ref.b}, {ref.a, ref.b + 4096},
        {ref.a, ref.b + 1}, {ref.a, ref.b + 512},
        {ref.a, UINT64_MAX}, {ref.a, 0}, {UINT64_MAX, UINT64_MAX}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        FAILS(PYR_ECORRUPT, get_range(e, wrong[i], 0, 5));
    FAILS(PYR_ECORRUPT, get_range(e, ref, 4092, 5));
    FAILS(PYR_ECORRUPT, get_range(e, ref, UINT64_MAX, 5));
    FAILS(PYR_ECORRUPT, get_range(e, ref, 5, UINT64_MAX));
    OK(get_range(e, ref, 0, 5));
    OK(get_range(e, ref, 5, 0));
    pyri_engine_close(e);
}

static void
a_mapped_segment_shows_what_is_appended_later(void)
{
    pyri_engine *e = fresh();
    pyri_reader *r;
    OK(pyri_engine_begin(e, &r));
    char bytes[1500];
    for (int i = 0; i < 300; i++) {
        pyri_ref ref;
        memset(bytes, i, sizeof bytes);
        OK(put_bytes(e, bytes, sizeof bytes, i % 3 == 0, &ref));
        pyri_blob_get get = {.ref = ref, .size = sizeof bytes};
        OK(pyri_engine_get_blobs(e, r, &get, 1));
        CHECK(memcmp(get.data, bytes, sizeof bytes) == 0);
        CHECK((get.seen != NULL) == (i % 3 == 0));
    }
    pyri_engine_end(e, r);
    pyri_engine_close(e);
}

static bool
is_trusted(pyri_engine *e, pyri_ref ref)
{
    pyri_reader *r;
    pyri_blob_get get = {.ref = ref, .size = 64};
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_get_blobs(e, r, &get, 1));
    pyri_engine_end(e, r);
    return get.trusted;
}

static void
a_blob_that_someone_vouched_for_is_trusted_and_no_other(void)
{
    pyri_engine *e = fresh();
    uint8_t bytes[9000] = {1};
    pyri_ref a, b, own;
    OK(put_bytes(e, bytes, sizeof bytes, false, &a));
    OK(put_bytes(e, bytes, sizeof bytes, false, &b));
    CHECK(!is_trusted(e, a) && !is_trusted(e, b));
    pyri_engine_vouch(e, a);
    CHECK(is_trusted(e, a) && !is_trusted(e, b));
    OK(put_bytes(e, bytes, sizeof bytes, false, &own)); /* mapped by now */
    CHECK(is_trusted(e, own) && !is_trusted(e, b));
    pyri_engine_close(e);
}

static void
a_segment_that_was_cut_off_is_an_error_not_a_crash(void)
{
    pyri_engine *e = fresh();
    enum { SIZE = 1 << 20 };
    char *bytes = calloc(1, SIZE);
    pyri_ref ref;
    OK(put_bytes(e, bytes, SIZE, true, &ref));
    OK(get_range(e, ref, 0, 4096));
    REQUIRE(truncate(segment_file(ref), SIZE / 2) == 0);
    FAILS(PYR_ECORRUPT, get_range(e, ref, 0, SIZE)); /* while it is mapped */
    pyri_engine_close(e);
    e = open_store(path);
    FAILS(PYR_ECORRUPT, get_range(e, ref, 0, SIZE));
    OK(get_range(e, ref, 0, 4096));
    pyri_engine_close(e);
    free(bytes);
}

static void
a_copy_from_a_segment_that_was_cut_off_is_an_error(void)
{
    enum { SIZE = 1 << 20 };
    pyri_engine *e = fresh();
    char *bytes = calloc(1, SIZE);
    pyri_ref ref;
    OK(put_bytes(e, bytes, SIZE, true, &ref));
    OK(get_range(e, ref, 0, SIZE));
    REQUIRE(truncate(segment_file(ref), SIZE / 2) == 0);
    pyri_reader *r;
    pyri_blob_get get = {.ref = ref, .size = SIZE, .room = (uint8_t *)bytes};
    OK(pyri_engine_begin(e, &r));
    FAILS(PYR_ECORRUPT, pyri_engine_get_blobs(e, r, &get, 1));
    get.size = 4096;
    OK(pyri_engine_get_blobs(e, r, &get, 1));
    CHECK(get.data == get.room);
    pyri_engine_end(e, r);
    pyri_engine_close(e);
    free(bytes);
}

static void
a_segment_whose_header_is_damaged_is_refused(void)
{
    pyri_engine *e = fresh();
    pyri_ref ref;
    OK(put_bytes(e, "bytes", 5, true, &ref));
    for (int at = 0; at < 80; at += 9) {
        FILE *f = fopen(segment_file(ref), "r+");
        REQUIRE(f);
        fseek(f, at, SEEK_SET);
        int byte = fgetc(f);
        fseek(f, at, SEEK_SET);
        fputc(byte ^ 4, f);
        fclose(f);
        pyri_engine_close(e);
        e = open_store(path);
        FAILS(PYR_ECORRUPT, get_range(e, ref, 0, 5));
        f = fopen(segment_file(ref), "r+");
        fseek(f, at, SEEK_SET);
        fputc(byte, f);
        fclose(f);
        OK(get_range(e, ref, 0, 5));
    }
    REQUIRE(unlink(segment_file(ref)) == 0);
    pyri_engine_close(e);
    e = open_store(path);
    FAILS(PYR_ECORRUPT, get_range(e, ref, 0, 5));
    pyri_engine_close(e);
}

static void
seen_bits_last_as_long_as_the_mapping(void)
{
    pyri_engine *e = fresh();
    char bytes[3 * PYRI_PAGE] = {0};
    pyri_ref first, ref;
    OK(put_bytes(e, bytes, 1, true, &first));
    OK(put_bytes(e, bytes, sizeof bytes, true, &ref));
    for (int round = 0; round < 2; round++) {
        pyri_reader *r;
        pyri_blob_get get = {.ref = ref, .offset = PYRI_PAGE, .size = 10};
        OK(pyri_engine_begin(e, &r));
        OK(pyri_engine_get_blobs(e, r, &get, 1));
        REQUIRE(get.seen);
        uint64_t bit = get.seen_first + 1;
        bool set = atomic_load(&get.seen[bit / 64]) >> (bit % 64) & 1;
        CHECK(set == (round == 1));
        atomic_fetch_or(&get.seen[bit / 64], UINT64_C(1) << (bit % 64));
        pyri_engine_end(e, r);
    }
    pyri_engine_close(e);
}

/* --- more segments than the table holds ---------------------------------- */

enum { SEGMENTS = 5000 };
static pyri_ref refs[SEGMENTS];

/* Many short segments: one, again and again with another number, its header
 * and only blob corrected. */
static void
make_many(pyri_engine *e)
{
    uint8_t bytes[4096 + sizeof(int)];
    pyri_ref ref;
    int zero = 0;
    OK(put_bytes(e, &zero, sizeof zero, true, &ref));
    FILE *f = fopen(segment_file(ref), "r");
    REQUIRE(f && fread(bytes, 1, sizeof bytes, f) == sizeof bytes);
    fclose(f);
    for (int i = 0; i < SEGMENTS; i++) {
        refs[i] = (pyri_ref){(uint64_t)i + 1, 4096};
        pyri_store32(bytes + 12, (uint32_t)i + 1);
        pyri_store64(bytes + 72, pyri_hash64(bytes, 72));
        memcpy(bytes + 4096, &i, sizeof i);
        f = fopen(segment_file(refs[i]), "w");
        REQUIRE(f && fwrite(bytes, 1, sizeof bytes, f) == sizeof bytes);
        fclose(f);
    }
}

static void *
read_at_random(void *arg)
{
    pyri_engine *e = arg;
    unsigned seed = (unsigned)(uintptr_t)&seed;
    for (int round = 0; round < 300; round++) {
        pyri_reader *r;
        if (pyri_engine_begin(e, &r) < 0)
            return (void *)1;
        int n = rand_r(&seed) % 200;
        for (int k = 0; k < n; k++) {
            int i = rand_r(&seed) % SEGMENTS;
            pyri_blob_get get = {.ref = refs[i], .size = sizeof i};
            if (pyri_engine_get_blobs(e, r, &get, 1) < 0 ||
                memcmp(get.data, &i, sizeof i) != 0)
                return (void *)2;
        }
        pyri_engine_end(e, r);
    }
    return NULL;
}

static void
more_segments_than_the_table_holds_are_read(void)
{
    pyri_engine *e = fresh();
    make_many(e);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        REQUIRE(pthread_create(&threads[i], NULL, read_at_random, e) == 0);
    for (int i = 0; i < 3; i++) {
        void *bad;
        pthread_join(threads[i], &bad);
        CHECK(bad == NULL);
    }
    pyri_reader *r; /* one reader, all of them at once */
    OK(pyri_engine_begin(e, &r));
    for (int i = 0; i < SEGMENTS; i++) {
        pyri_blob_get get = {.ref = refs[i], .size = sizeof i};
        OK(pyri_engine_get_blobs(e, r, &get, 1));
        CHECK(memcmp(get.data, &i, sizeof i) == 0);
    }
    pyri_engine_end(e, r);
    pyri_engine_close(e);
    tmp_remove(path);
}

/* --- copies -------------------------------------------------------------- */

/* However many there are, those that are new to the process can be copied from,
 * and no more than some files are open. */
static void
files_of_the_latest_segments_are_kept_open(void)
{
    pyri_engine *e = fresh();
    make_many(e);
    for (int i = 0; i < SEGMENTS; i += 10) {
        int room;
        pyri_blob_get get = {.ref = refs[i], .size = sizeof i,
                             .room = (uint8_t *)&room};
        pyri_reader *r;
        OK(pyri_engine_begin(e, &r));
        OK(pyri_engine_get_blobs(e, r, &get, 1));
        CHECK(get.data == (uint8_t *)&room && room == i);
        pyri_engine_end(e, r);
    }
    CHECK(proc_open_files() < 64 + 32);
    pyri_engine_close(e);
    tmp_remove(path);
}

static uint8_t large[1 << 20], room_for_large[sizeof large];

/* A blob that is large, to be got with room if it is cold. */
static pyri_blob_get
put_large(pyri_engine *e, char cell)
{
    pyri_blob_get get = {
        .size = sizeof large, .room = room_for_large, .cold = true};
    memset(large, cell, sizeof large);
    OK(put_bytes(e, large, sizeof large, true, &get.ref));
    return get;
}

/* Room for what is cold is not used for what is in memory. */
static void
what_is_in_memory_is_shown_and_not_copied(void)
{
    pyri_engine *e = fresh();
    pyri_blob_get get = put_large(e, 'x');
    pyri_reader *r;
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_get_blobs(e, r, &get, 1));
    CHECK(get.data != get.room && memcmp(get.data, large, sizeof large) == 0);
#ifdef PYRI_FAULTS
    /* nor is it a failure not to be told */
    pyri_sys_order(&(pyri_sys_plan){.groups = PYRI_SYS_FILE, .only = "mincore",
                                    .nth = 1, .times = 2, .error = ENOMEM});
    OK(pyri_engine_get_blobs(e, r, &get, 1));
    CHECK(pyri_sys_acted() == 2);
    pyri_sys_order(NULL);
    CHECK(get.data != get.room && memcmp(get.data, large, sizeof large) == 0);
#endif
    pyri_engine_end(e, r);
    pyri_engine_close(e);
}

/* Pages that the system let go are read into the room. Where it keeps them
 * (tmpfs) they are shown. */
static void
what_is_not_in_memory_is_copied(void)
{
    pyri_engine *e = fresh();
    pyri_blob_get get = put_large(e, 'y');
    pyri_reader *r;
    int fd = open(segment_file(get.ref), O_RDONLY);
    REQUIRE(fd >= 0 && fdatasync(fd) == 0);
    REQUIRE(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
    unsigned char there = 1;
    void *at = mmap(NULL, 2 << 20, PROT_READ, MAP_SHARED, fd, 0);
    REQUIRE(at != MAP_FAILED);
    OK(pyri_engine_begin(e, &r));
    REQUIRE(mincore((uint8_t *)at + get.ref.b, 1, &there) == 0);
    OK(pyri_engine_get_blobs(e, r, &get, 1));
    CHECK((get.data == get.room) == !(there & 1));
    CHECK(memcmp(get.data, large, sizeof large) == 0);
    pyri_engine_end(e, r);
    munmap(at, 2 << 20);
    close(fd);
    pyri_engine_close(e);
}

TESTS(T(references_that_are_wrong_are_noticed),
      T(a_mapped_segment_shows_what_is_appended_later),
      T(a_blob_that_someone_vouched_for_is_trusted_and_no_other),
      T(a_segment_that_was_cut_off_is_an_error_not_a_crash),
      T(a_copy_from_a_segment_that_was_cut_off_is_an_error),
      T(a_segment_whose_header_is_damaged_is_refused),
      T(seen_bits_last_as_long_as_the_mapping),
      T(more_segments_than_the_table_holds_are_read),
      T(files_of_the_latest_segments_are_kept_open),
      T(what_is_in_memory_is_shown_and_not_copied),
      T(what_is_not_in_memory_is_copied))
