/*
 * verify/harm_test.c - whatever is harmed is named by array, version and box,
 * by the read that meets it and by verify; everything else stays readable.
 */
#include "support/meta_edit.h"
#include "verify/one_array.h"

#include <pyramid/pyramid.h>

#include <dirent.h>

enum { CELLS = 4096, CHUNK = 1024, LARGE = 32768 };

static int64_t first[CELLS], second[CELLS];

static void
set_up(void)
{
    uint64_t shape[1] = {CELLS}, chunk[1] = {CHUNK}, at[1] = {0};
    uint64_t some[1] = {CHUNK}, where[1] = {2 * CHUNK};
    pyr_spec spec = {.ndim = 1, .shape = shape, .chunk = chunk,
                     .type = PYR_I64};
    pyr_version made;
    snprintf(path, sizeof path, "%s", tmp_fresh("harm"));
    OK(pyr_open_with(path, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = PYR_DURABILITY_COMMIT},
                     &store));
    OK(pyr_create(store, "t", &spec, &array));
    for (int i = 0; i < CELLS; i++)
        first[i] = second[i] = 1000003 * (int64_t)i;
    OK(pyr_write(array, at, shape, first, &made));
    for (int i = 2 * CHUNK; i < 3 * CHUNK; i++)
        second[i] = -i;
    OK(pyr_write(array, where, some, second + 2 * CHUNK, &made));
    pyr_array_close(array);
    array = NULL;
}

static int
read_chunk(pyr_version v, uint64_t chunk, const int64_t *want)
{
    int64_t got[CHUNK];
    uint64_t at[1] = {chunk * CHUNK}, size[1] = {CHUNK};
    int err = pyr_read(array, v, at, size, got);
    if (err == 0)
        CHECK(memcmp(got, want + chunk * CHUNK, sizeof got) == 0);
    return err;
}

/* All but one chunk of one version can be read. */
static void
check_others(pyr_version v, uint64_t chunk)
{
    for (uint64_t c = 0; c < CELLS / CHUNK; c++) {
        if (v != 1 || c != chunk)
            OK(read_chunk(1, c, first));
        if (v != 2 || c != chunk)
            OK(read_chunk(2, c, second));
    }
}

typedef struct finding {
    int n;
    char array[64], what[256];
    pyr_version version;
    int ndim;
    uint64_t offset, size;
} finding;

static int
note(void *ctx, const pyr_harm *h)
{
    finding *f = ctx;
    f->n++;
    snprintf(f->array, sizeof f->array, "%s", h->array);
    snprintf(f->what, sizeof f->what, "%s", h->what);
    f->version = h->version;
    f->ndim = h->ndim;
    f->offset = h->ndim ? h->offset[0] : 0;
    f->size = h->ndim ? h->size[0] : 0;
    printf("# %s, version %d, %d+%d: %s\n", f->array, (int)f->version,
           (int)f->offset, (int)f->size, f->what);
    return 0;
}

static finding
find(bool deep)
{
    finding f = {0};
    pyr_verified seen;
    OK(pyr_verify(store, &(pyr_verify_spec){.deep = deep, .each = note,
                                            .ctx = &f}, &seen));
    CHECK(seen.harms == (uint64_t)f.n);
    return f;
}

static void
says(const char *text)
{
    if (!strstr(pyr_errmsg(), text))
        CHECK_NOTE("'%s' does not say '%s'", pyr_errmsg(), text);
}

/* --- metadata ------------------------------------------------------------ */

/* One byte of the first entry that is wanted; from the end if below 0. */
typedef struct spot {
    bool (*wanted)(const meta_entry *e);
    int at;
    bool done;
} spot;

static meta_verdict
harm(void *ctx, meta_entry *e)
{
    spot *s = ctx;
    if (s->done || !s->wanted(e))
        return META_LEAVE;
    e->value[s->at < 0 ? (int)e->size + s->at : s->at] ^= 4;
    s->done = true;
    return META_STORE;
}

static void
change(const char *name, bool (*wanted)(const meta_entry *e), int at)
{
    spot s = {.wanted = wanted, .at = at};
    shut();
    CHECK(meta_change(path, name, harm, &s) == 1);
    reopen();
}

static bool
is_leaf_of_2(const meta_entry *e)
{
    return meta_is_node(e, 2, 0);
}

static bool
is_root_of_2(const meta_entry *e)
{
    return meta_is_node(e, 2, 1);
}

static bool
is_version_2(const meta_entry *e)
{
    return meta_is_version(e, 2);
}

static bool
is_any(const meta_entry *e)
{
    return e->key_size > 0;
}

static void
a_harmed_leaf_is_named_and_others_are_read(void)
{
    set_up();
    change("tree", is_leaf_of_2, 130);
    CHECK(read_chunk(2, 2, second) == PYR_ECORRUPT);
    says("array 't', version 2, box [2048:3072]");
    check_others(2, 2);
    finding f = find(false);
    CHECK(f.n == 1 && strcmp(f.array, "t") == 0 && f.version == 2);
    CHECK(f.ndim == 1 && f.offset == 2 * CHUNK && f.size == CHUNK);
    tear_down();
}

static void
a_harmed_root_takes_one_version_with_it(void)
{
    set_up();
    change("tree", is_root_of_2, 130);
    CHECK(read_chunk(2, 0, second) == PYR_ECORRUPT);
    says("array 't', version 2, box [0:4096]");
    for (uint64_t c = 0; c < CELLS / CHUNK; c++)
        OK(read_chunk(1, c, first));
    finding f = find(false);
    CHECK(f.n == 1 && f.version == 2 && f.offset == 0 && f.size == CELLS);
    tear_down();
}

static void
a_harmed_record_takes_one_version_with_it(void)
{
    for (int at = -1; at < 12; at += 4) {
        set_up();
        change("tree", is_version_2, at);
        CHECK(read_chunk(2, 0, second) == PYR_ECORRUPT);
        says("array 't', version 2");
        for (uint64_t c = 0; c < CELLS / CHUNK; c++)
            OK(read_chunk(1, c, first));
        finding f = find(false);
        CHECK(f.n == 1 && strcmp(f.array, "t") == 0 && f.version == 2);
        tear_down();
    }
}

static void
harmed_cells_are_named_and_others_are_read(void)
{
    set_up();
    change("blobs", is_any, 5000); /* small: the first chunk of version 1 */
    CHECK(read_chunk(1, 0, first) == PYR_ECORRUPT);
    says("array 't', version 1, box [0:1024]");
    CHECK(read_chunk(2, 0, second) == PYR_ECORRUPT);
    for (uint64_t c = 1; c < CELLS / CHUNK; c++) {
        OK(read_chunk(1, c, first));
        OK(read_chunk(2, c, second));
    }
    CHECK(find(false).n == 0);
    finding f = find(true);
    CHECK(f.n == 1 && f.version == 1 && f.offset == 0 && f.size == CHUNK);
    tear_down();
}

static void
the_head_of_a_fragment_is_looked_at_always(void)
{
    set_up();
    change("blobs", is_any, 24 + 70);
    finding f = find(false);
    CHECK(f.n == 1 && f.version == 1 && f.offset == 0 && f.size == CHUNK);
    tear_down();
}

static void
an_entry_of_the_list_of_blobs_that_is_harmed_is_found(void)
{
    set_up();
    change("blobs", is_any, 8);
    CHECK(find(false).n == 1);
    tear_down();
}

/* --- segments ------------------------------------------------------------ */

static void
harm_in_a_segment_is_named(void)
{
    char dir[4200], file[5000] = "";
    static double cells[LARGE];
    uint64_t shape[1] = {LARGE}, at[1] = {0};
    pyr_spec spec = {.ndim = 1, .shape = shape, .chunk = shape,
                     .type = PYR_F64};
    pyr_version made;
    pyr_array *large;
    set_up();
    OK(pyr_create(store, "large", &spec, &large));
    for (int i = 0; i < LARGE; i++)
        cells[i] = i;
    OK(pyr_write(large, at, shape, cells, &made));
    pyr_array_close(large);
    shut();
    snprintf(dir, sizeof dir, "%s/data", path);
    DIR *d = opendir(dir);
    REQUIRE(d);
    for (struct dirent *e; (e = readdir(d));)
        if (strstr(e->d_name, ".seg"))
            snprintf(file, sizeof file, "%s/%s", dir, e->d_name);
    closedir(d);
    FILE *f = fopen(file, "r+b");
    REQUIRE(f && fseek(f, 100000, SEEK_SET) == 0);
    REQUIRE(fputc(0x77, f) != EOF && fclose(f) == 0);
    reopen();
    finding found = find(true);
    CHECK(found.n == 1 && strcmp(found.array, "large") == 0);
    CHECK(found.version == 1 && found.offset == 0 && found.size == LARGE);
    CHECK(find(false).n == 0);
    check_others(0, 0);
    pyr_repaired r;
    OK(pyr_repair(store, NULL, &r)); /* cells are never guessed */
    CHECK(r.harms == 1 && r.summaries == 0 && r.orphan_blobs == 0);
    CHECK(find(true).n == 1);
    tear_down();
}

static int
stop(void *ctx, const pyr_harm *h)
{
    (void)ctx, (void)h;
    return 77;
}

static void
a_callback_may_end_the_walk(void)
{
    set_up();
    change("blobs", is_any, 5000);
    CHECK(pyr_verify(store, &(pyr_verify_spec){.deep = 1, .each = stop},
                     NULL) == 77);
    tear_down();
}

TESTS(T(a_harmed_leaf_is_named_and_others_are_read),
      T(a_harmed_root_takes_one_version_with_it),
      T(a_harmed_record_takes_one_version_with_it),
      T(harmed_cells_are_named_and_others_are_read),
      T(the_head_of_a_fragment_is_looked_at_always),
      T(an_entry_of_the_list_of_blobs_that_is_harmed_is_found),
      T(harm_in_a_segment_is_named), T(a_callback_may_end_the_walk))
