/*
 * verify/flip_test.c - a byte of a store is changed behind its back, one after
 * the other: every read gives the right cells or an error, no process dies of
 * it, and what cannot be read any more, verify names.
 *
 * See "Damaged metadata" in docs/format.md. bytes_test.c does the same to each
 * byte of a smaller store, and writes to it, too; here it is some bytes, chosen
 * by the seed.
 */
#include "verify/flips.h"

#include <dirent.h>

enum {
    SIDE = 150,
    CHUNK = 100, /* chunks of 40 KB: some fragments are small, */
    VERSIONS = 6,
    LINE = 40000, /* of 8 bytes: large ones, aligned */
    PAGE = 4096,  /* of LMDB */
    PAGE_HEAD = 40 /* and the first places of entries */
};

/* What the parent knows, and its children by fork. */
static char path[4096];
static int32_t square[VERSIONS + 1][SIDE * SIDE];
static double line[2][LINE];
static int32_t clone[2][SIDE * SIDE];

/* --- a small store ------------------------------------------------------- */

static void
write_square(pyr_array *a, int v, int32_t now[SIDE * SIDE],
             const int32_t *before)
{
    uint64_t at[2] = {(uint64_t)v * 13, (uint64_t)v * 7};
    uint64_t size[2] = {v == 1 ? 120 : 30, 100};
    int32_t *cells = malloc(size[0] * size[1] * sizeof *cells);
    pyr_version made;
    REQUIRE(cells);
    memcpy(now, before, SIDE * SIDE * sizeof *now);
    for (uint64_t i = 0; i < size[0] * size[1]; i++) {
        cells[i] = (int32_t)(i * 17 + (uint64_t)v * 100003);
        now[(at[0] + i / size[1]) * SIDE + at[1] + i % size[1]] = cells[i];
    }
    OK(pyr_write(a, at, size, cells, &made));
    free(cells);
}

static void
make_line(pyr_store *s)
{
    uint64_t shape[1] = {LINE}, at[1] = {0};
    pyr_array *a;
    pyr_version made;
    pyr_spec spec = {.ndim = 1, .shape = shape, .type = PYR_F64,
                     .chunk = shape};
    OK(pyr_create(s, "line", &spec, &a));
    for (int i = 0; i < LINE; i++)
        line[1][i] = i * 0.37;
    OK(pyr_write(a, at, shape, line[1], &made));
    pyr_array_close(a);
}

static void
make_store(void)
{
    uint64_t shape[2] = {SIDE, SIDE}, chunk[2] = {CHUNK, CHUNK};
    pyr_spec spec = {.ndim = 2, .shape = shape, .type = PYR_I32,
                     .chunk = chunk, .codec = PYR_CODEC_LZ4};
    pyr_store *s;
    pyr_array *a, *c;
    snprintf(path, sizeof path, "%s", tmp_fresh("flip"));
    OK(pyr_open_with(path, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS},
                     &s));
    OK(pyr_create(s, "square", &spec, &a));
    for (int v = 1; v <= VERSIONS; v++)
        write_square(a, v, square[v], square[v - 1]);
    OK(pyr_tag(a, "good", 3));
    OK(pyr_clone(a, 2, "twin", &c));
    memcpy(clone[0], square[2], sizeof clone[0]);
    write_square(c, 4, clone[1], clone[0]);
    make_line(s);
    pyr_array_close(c);
    pyr_array_close(a);
    pyr_close(s);
}

/* --- children ------------------------------------------------------------ */

typedef struct asking {
    bool refused, wrong;
} asking;

static void
ask(asking *q, pyr_array *a, pyr_version v, int ndim, const void *want,
    size_t size)
{
    static uint8_t got[LINE * 8];
    uint64_t at[2] = {0, 0}, all[2] = {ndim == 2 ? SIDE : LINE, SIDE};
    if (pyr_read(a, v, at, all, got) < 0)
        q->refused = true;
    else if (memcmp(got, want, size) != 0)
        q->wrong = true;
}

static void
ask_square(asking *q, pyr_store *s)
{
    pyr_array *a;
    pyr_version good;
    if (pyr_array_open(s, "square", &a) < 0) {
        q->refused = true;
        return;
    }
    for (int v = 0; v <= VERSIONS; v++)
        ask(q, a, (pyr_version)v, 2, square[v], sizeof square[v]);
    ask(q, a, PYR_LATEST, 2, square[VERSIONS], sizeof square[0]);
    if (pyr_tag_version(a, "good", &good) < 0)
        q->refused = true;
    else
        ask(q, a, good, 2, square[3], sizeof square[3]);
    pyr_array_close(a);
}

static void
ask_clone(asking *q, pyr_store *s)
{
    pyr_array *a;
    if (pyr_array_open(s, "twin", &a) < 0) {
        q->refused = true;
        return;
    }
    ask(q, a, 0, 2, clone[0], sizeof clone[0]);
    ask(q, a, PYR_LATEST, 2, clone[1], sizeof clone[1]);
    pyr_array_close(a);
}

static void
ask_line(asking *q, pyr_store *s)
{
    pyr_array *a;
    if (pyr_array_open(s, "line", &a) < 0) {
        q->refused = true;
        return;
    }
    ask(q, a, 0, 1, line[0], sizeof line[0]);
    ask(q, a, PYR_LATEST, 1, line[1], sizeof line[1]);
    pyr_array_close(a);
}

static int
read_all(void *arg)
{
    asking q = {false, false};
    pyr_store *s;
    (void)arg;
    no_core();
    if (pyr_open(path, PYR_OPEN_READONLY, &s) < 0)
        return REFUSED;
    ask_square(&q, s);
    ask_clone(&q, s);
    ask_line(&q, s);
    pyr_close(s);
    return q.wrong ? WRONG : q.refused ? REFUSED : ALL_RIGHT;
}

static int
verify_all(void *arg)
{
    (void)arg;
    return verify_store(path);
}

/* --- flipping ------------------------------------------------------------ */

typedef struct tally {
    unsigned flips, harmless, refused, died, found_more;
} tally;

static void
try_flip(const char *file, uint64_t at, uint8_t bits, bool meta, tally *t)
{
    flip(file, at, bits);
    proc_end reads = run_child(read_all), verify = run_child(verify_all);
    flip(file, at, bits);
    bool died = reads.signal != 0;
    bool odd = verify.signal || (reads.code != -1 && reads.code != ALL_RIGHT &&
                                 reads.code != REFUSED && reads.code != WRONG);
    bool harmed = died || reads.code == REFUSED;
    bool found = verify.code == REFUSED;
    t->flips++;
    t->died += died;
    t->refused += harmed;
    t->harmless += !harmed;
    t->found_more += found && !harmed;
    /* The first two pages say which state of LMDB's is the newest; the one
     * before it is whole, too, and nobody can tell. */
    bool wrong = reads.code == WRONG && !(meta && at < 2 * PAGE);
    if (!wrong && !odd && !died && (!harmed || found))
        return;
    CHECK_NOTE("byte %llu of %s, bits %02x: reads ended with %d (signal %d), "
               "verify with %d (signal %d)", (unsigned long long)at,
               strrchr(file, '/') + 1, bits, reads.code, reads.signal,
               verify.code, verify.signal);
}

static void
flip_file(const char *file, bool meta, uint64_t some)
{
    rng r = rng_of(test_seed());
    struct stat st;
    tally t = {0};
    REQUIRE(stat(file, &st) == 0 && st.st_size > 0);
    uint64_t size = (uint64_t)st.st_size;
    uint64_t n = by_scale(some / 4, some, 10 * some);
    for (uint64_t i = 0; i < n && check_failures < 20; i++) {
        uint64_t at = n >= size ? i : rng_below(&r, size);
        if (meta && n < size && rng_once_in(&r, 4))
            at = at / PAGE * PAGE + rng_below(&r, PAGE_HEAD);
        uint8_t bits = (uint8_t)rng_from(&r, 1, 255);
        if (rng_once_in(&r, 2))
            bits = (uint8_t)(1u << rng_below(&r, 8));
        try_flip(file, at, bits, meta, &t);
    }
    printf("# %u of %llu bytes: %u harmless, %u refused, %u processes died, "
           "%u found by verify alone\n", t.flips, (unsigned long long)size,
           t.harmless, t.refused, t.died, t.found_more);
}

static void
flipped_bytes_of_metadata_never_give_wrong_cells(void)
{
    char file[5000];
    make_store();
    CHECK(run_child(read_all).code == ALL_RIGHT);
    CHECK(run_child(verify_all).code == ALL_RIGHT);
    snprintf(file, sizeof file, "%s/meta/data.mdb", path);
    flip_file(file, true, 400);
    CHECK(run_child(read_all).code == ALL_RIGHT);
    tmp_remove(path);
}

static void
flipped_bytes_of_segments_never_give_wrong_cells(void)
{
    char dir[5000], file[6000];
    make_store();
    snprintf(dir, sizeof dir, "%s/data", path);
    DIR *d = opendir(dir);
    REQUIRE(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (!strstr(e->d_name, ".seg"))
            continue;
        snprintf(file, sizeof file, "%s/%s", dir, e->d_name);
        flip_file(file, false, 120);
    }
    closedir(d);
    CHECK(run_child(read_all).code == ALL_RIGHT);
    tmp_remove(path);
}

TESTS(T(flipped_bytes_of_metadata_never_give_wrong_cells),
      T(flipped_bytes_of_segments_never_give_wrong_cells))
