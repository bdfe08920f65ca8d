/*
 * Small blobs side by side, on pages that they share: each is there as long as
 * somebody may look at it, and no page is kept when nobody is left on it. Random
 * versions put, drop, name and erase blobs, while space is given back and
 * readers stay in the past.
 */
#include "engine/local/tests/fixture.h"
#include "support/rng.h"

#include <dirent.h>

enum { BLOBS = 14, VERSIONS = 12, MOST = 80000, READERS = 3 };

typedef enum state { NONE, PUT, NAMED, ERASED } state;

typedef struct one {
    state state;
    pyri_blob blob;
    uint32_t id; /* what is in it */
} one;

typedef struct past { /* of a reader: what was named when it began */
    pyri_reader *reader;
    one seen[VERSIONS * BLOBS];
    int n;
} past;

typedef struct world {
    rng r;
    char path[PATH_MAX];
    pyri_engine *e;
    one versions[VERSIONS][BLOBS];
    past pasts[READERS];
    uint32_t ids;
    int shared, dropped;
} world;

static world w;

/* --- bytes ---------------------------------------------------------------- */

static void
fill(uint8_t *bytes, uint64_t size, uint32_t id)
{
    rng r = rng_of(id);
    for (uint64_t i = 0; i < size; i += 8) {
        uint64_t word = rng_next(&r) | 1; /* no byte run of zeros: a hole */
        memcpy(bytes + i, &word, (size_t)(size - i < 8 ? size - i : 8));
    }
}

static bool
is_whole(pyri_reader *reader, const one *o)
{
    static uint8_t want[MOST];
    pyri_blob_get get = {.ref = o->blob.ref, .size = o->blob.size};
    OK(pyri_engine_get_blobs(w.e, reader, &get, 1));
    fill(want, o->blob.size, o->id);
    return memcmp(get.data, want, (size_t)get.size) == 0;
}

static void
all_named_are_whole(void)
{
    pyri_reader *reader;
    OK(pyri_engine_begin(w.e, &reader));
    for (int v = 0; v < VERSIONS; v++)
        for (int i = 0; i < BLOBS; i++)
            if (w.versions[v][i].state == NAMED)
                CHECK(is_whole(reader, &w.versions[v][i]));
    pyri_engine_end(w.e, reader);
}

/* --- what happens --------------------------------------------------------- */

/* Several blobs in one call, not yet named: as a write in flight. */
static void
put(one *version)
{
    static uint8_t bytes[BLOBS][MOST];
    pyri_blob_put puts[BLOBS];
    struct iovec iov[BLOBS];
    size_t n = (size_t)rng_from(&w.r, 1, BLOBS);
    for (size_t i = 0; i < n; i++) {
        uint64_t size = rng_once_in(&w.r, 8) ? rng_from(&w.r, 60000, MOST)
                                             : rng_from(&w.r, 1537, 9000);
        fill(bytes[i], size, ++w.ids);
        iov[i] = (struct iovec){bytes[i], size};
        puts[i] = (pyri_blob_put){.iov = &iov[i], .niov = 1, .size = size,
                                  .aligned = size > 65536};
        version[i] = (one){PUT, {{0, 0}, size}, w.ids};
    }
    OK(pyri_engine_put_blobs(w.e, puts, n));
    for (size_t i = 0; i < n; i++) {
        version[i].blob.ref = puts[i].ref;
        w.shared += puts[i].ref.b % PYRI_PAGE != 0;
        if (puts[i].aligned)
            CHECK(puts[i].ref.b % PYRI_PAGE == 0);
    }
}

/* Those that are named stay. */
static void
drop(one *version, int i)
{
    pyri_blob near[BLOBS];
    size_t n = 0;
    for (int k = i - PYRI_NEAR; k <= i + PYRI_NEAR; k++)
        if (k >= 0 && k < BLOBS && version[k].state == NAMED)
            near[n++] = version[k].blob;
    pyri_engine_drop_blobs(w.e, &version[i].blob, 1, near, n);
    version[i].state = NONE;
    w.dropped++;
}

/* Some are dropped first, as hidden parts of a batch are. */
static void
name(one *version)
{
    pyri_ticket t = take_one(w.e);
    pyri_blob blobs[BLOBS];
    uint8_t key[20] = {0};
    pyri_store64_be(key, t.array);
    pyri_store64_be(key + 8, t.version);
    pyri_node_put node = {{key, sizeof key}, {key, sizeof key}};
    pyri_complete c = {.array = t.array, .version = t.version,
                       .shape = t.shape, .nodes = &node, .nnodes = 1,
                       .blobs = blobs, .record = {"record", 6}};
    for (int i = 0; i < BLOBS; i++)
        if (version[i].state == PUT && !rng_once_in(&w.r, 9)) {
            blobs[c.nblobs++] = version[i].blob;
            version[i].state = NAMED;
        }
    for (int i = 0; i < BLOBS; i++)
        if (version[i].state == PUT)
            drop(version, i);
    OK(pyri_engine_complete(w.e, &c));
}

static void
erase(one *version, uint64_t once_in)
{
    pyri_blob blobs[BLOBS];
    pyri_erase x = {.blobs = blobs, .array = ARRAY};
    for (int i = 0; i < BLOBS; i++)
        if (version[i].state == NAMED && rng_once_in(&w.r, once_in)) {
            blobs[x.nblobs++] = version[i].blob;
            version[i].state = ERASED;
        }
    OK(pyri_engine_erase(w.e, &x));
}

static void
settle(void)
{
    pyri_settled out = {0};
    OK(pyri_engine_begin_upkeep(w.e));
    OK(pyri_engine_settle(w.e, &out));
    pyri_engine_end_upkeep(w.e);
}

static void
begin_past(past *p)
{
    OK(pyri_engine_begin(w.e, &p->reader));
    p->n = 0;
    for (int v = 0; v < VERSIONS; v++)
        for (int i = 0; i < BLOBS; i++)
            if (w.versions[v][i].state == NAMED)
                p->seen[p->n++] = w.versions[v][i];
}

static void
end_past(past *p)
{
    for (int i = 0; i < p->n; i++)
        CHECK(is_whole(p->reader, &p->seen[i]));
    pyri_engine_end(w.e, p->reader);
    p->reader = NULL;
}

/* --- space ---------------------------------------------------------------- */

static uint64_t
data_bytes(void)
{
    uint64_t sum = 0;
    char data[PATH_MAX];
    struct stat st;
    snprintf(data, sizeof data, "%s", inside(w.path, "data"));
    DIR *d = opendir(data);
    REQUIRE(d);
    for (struct dirent *e; (e = readdir(d));)
        if (strstr(e->d_name, ".seg") &&
            stat(inside(data, e->d_name), &st) == 0)
            sum += (uint64_t)st.st_blocks * 512;
    closedir(d);
    return sum;
}

/* Pages that some blob has bytes in. */
static uint64_t
pages_in_use(void)
{
    uint64_t *pages = malloc(VERSIONS * BLOBS * 32 * sizeof *pages), n = 0;
    REQUIRE(pages);
    for (int v = 0; v < VERSIONS; v++)
        for (int i = 0; i < BLOBS; i++) {
            const one *o = &w.versions[v][i];
            if (o->state != PUT && o->state != NAMED)
                continue;
            uint64_t last = (o->blob.ref.b + o->blob.size - 1) / PYRI_PAGE;
            for (uint64_t p = o->blob.ref.b / PYRI_PAGE; p <= last; p++) {
                uint64_t k = 0; /* neighbours are of one version */
                while (k < 32 && k < n && pages[n - 1 - k] != p)
                    k++;
                if (k == 32 || k == n)
                    pages[n++] = p;
            }
        }
    free(pages);
    return n;
}

static void
little_is_left_over(void)
{
    uint64_t most = pages_in_use() + 8; /* heads, and the system's own */
    CHECK(data_bytes() <= most * PYRI_PAGE);
}

/* --- tests ---------------------------------------------------------------- */

static void
step(void)
{
    one *version = w.versions[rng_below(&w.r, VERSIONS)];
    past *p = &w.pasts[rng_below(&w.r, READERS)];
    bool put_before = false, named = false;
    for (int i = 0; i < BLOBS; i++) {
        put_before |= version[i].state == PUT;
        named |= version[i].state == NAMED;
    }
    if (put_before)
        name(version);
    else if (named)
        erase(version, rng_from(&w.r, 1, 3));
    else
        put(version);
    if (rng_once_in(&w.r, 6)) {
        if (p->reader)
            end_past(p);
        else
            begin_past(p);
    }
    if (rng_once_in(&w.r, 3)) {
        settle();
        all_named_are_whole();
    }
}

static void
close_world(void)
{
    for (int i = 0; i < READERS; i++)
        if (w.pasts[i].reader)
            end_past(&w.pasts[i]);
    for (int v = 0; v < VERSIONS; v++) {
        name(w.versions[v]);
        erase(w.versions[v], 1);
    }
    settle();
    settle(); /* past the transactions of the first one */
    little_is_left_over();
    pyri_engine_close(w.e);
}

static void
blobs_that_share_pages_come_and_go(void)
{
    for (int round = 0; round < (int)by_scale(4, 12, 100); round++) {
        rng r = rng_of(test_seed() + (uint64_t)round);
        w = (world){.r = r};
        snprintf(w.path, sizeof w.path, "%s", tmp_fresh("shared"));
        w.e = open_store(w.path);
        make_array(w.e);
        for (int i = 0; i < 150; i++)
            step();
        for (int i = 0; i < READERS; i++)
            if (w.pasts[i].reader)
                end_past(&w.pasts[i]);
        settle();
        settle();
        all_named_are_whole();
        little_is_left_over();
        CHECK(w.shared > 20 && w.dropped > 5);
        close_world();
    }
}

/* They are verified one by one, though their pages are the same. */
static void
that_one_was_verified_says_nothing_of_its_neighbours(void)
{
    enum { N = 8, SIZE = 2000 };
    static uint8_t bytes[N][SIZE];
    pyri_blob_put puts[N];
    struct iovec iov[N];
    pyri_reader *reader;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", tmp_fresh("trust"));
    pyri_engine *e = open_store(path);
    for (size_t i = 0; i < N; i++) {
        fill(bytes[i], SIZE, (uint32_t)i + 1);
        iov[i] = (struct iovec){bytes[i], SIZE};
        puts[i] = (pyri_blob_put){.iov = &iov[i], .niov = 1, .size = SIZE};
    }
    OK(pyri_engine_put_blobs(e, puts, N));
    CHECK(puts[1].ref.b == puts[0].ref.b + 2048);
    pyri_engine_close(e); /* it knows what it wrote itself */
    e = open_store(path);
    OK(pyri_engine_begin(e, &reader));
    for (size_t i = 0; i < N; i += 2)
        for (int again = 0; again < 2; again++) {
            pyri_blob_get get = {.ref = puts[i].ref, .size = SIZE};
            OK(pyri_engine_get_blobs(e, reader, &get, 1));
            CHECK(memcmp(get.data, bytes[i], SIZE) == 0);
            CHECK(get.trusted == (again == 1));
            pyri_engine_vouch(e, puts[i].ref);
        }
    for (size_t i = 1; i < N; i += 2) {
        pyri_blob_get get = {.ref = puts[i].ref, .size = SIZE};
        OK(pyri_engine_get_blobs(e, reader, &get, 1));
        CHECK(!get.trusted);
    }
    pyri_engine_end(e, reader);
    pyri_engine_close(e);
}

TESTS(T(blobs_that_share_pages_come_and_go),
      T(that_one_was_verified_says_nothing_of_its_neighbours))
