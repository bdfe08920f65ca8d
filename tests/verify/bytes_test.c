/*
 * verify/bytes_test.c - every byte of a tiny store is changed, one after the
 * other: every read gives the right cells or an error, and what cannot be
 * read any more, verify names.
 *
 * PYR_TEST_SCALE=large takes every byte of every file. Otherwise it is some of
 * them in every kind of place, most of all where LMDB follows without asking:
 * heads of pages, their tables, heads of entries. What became of them is told
 * for each kind.
 *
 * `bytes_test FILE@AT^BITS` tries one byte, as a failure prints it.
 */
#include "verify/flips.h"

#include <dirent.h>

enum { SIDE = 12, CHUNK = 4, VERSIONS = 9, LONG = 8300, PAGE = 4096 };

/* What the parent knows, and its children by fork. */
static char path[4096];
static int32_t grid[VERSIONS + 2][SIDE * SIDE];
static int32_t twin[2][SIDE * SIDE];
static double row[LONG];
static const char *only; /* the byte that the command line names */

static const uint64_t zero[2], whole[2] = {SIDE, SIDE};

/* --- a tiny store -------------------------------------------------------- */

static void
write_box(pyr_array *a, int v, int32_t *now, const int32_t *before)
{
    uint64_t at[2] = {(uint64_t)v * 5 % 7, (uint64_t)v * 3 % 5};
    uint64_t size[2] = {1 + (uint64_t)v % 5, 7};
    int32_t cells[SIDE * SIDE];
    if (v == 1)
        memcpy(at, zero, sizeof at), memcpy(size, whole, sizeof size);
    memcpy(now, before, SIDE * SIDE * sizeof *now);
    for (uint64_t i = 0; i < size[0] * size[1]; i++) {
        cells[i] = (int32_t)(i * 17 + (uint64_t)v * 100003);
        now[(at[0] + i / size[1]) * SIDE + at[1] + i % size[1]] = cells[i];
    }
    OK(pyr_write(a, at, size, cells, NULL));
}

static void
make_row(pyr_store *s)
{
    uint64_t shape = LONG;
    pyr_array *a;
    OK(pyr_create(s, "row", &(pyr_spec){.ndim = 1, .shape = &shape,
                                        .chunk = &shape, .type = PYR_F64},
                  &a));
    for (int i = 0; i < LONG; i++)
        row[i] = i * 0.37;
    OK(pyr_write(a, zero, &shape, row, NULL));
    pyr_array_close(a);
}

/* Version 3 is forgotten, so that there are free pages. */
static void
make_store(void)
{
    uint64_t chunk[2] = {CHUNK, CHUNK};
    pyr_store *s;
    pyr_array *a, *c;
    pyr_reclaimed gone;
    snprintf(path, sizeof path, "%s", tmp_fresh("bytes"));
    OK(pyr_open_with(path, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS},
                     &s));
    OK(pyr_create(s, "grid", &(pyr_spec){.ndim = 2, .shape = whole,
                                         .chunk = chunk, .type = PYR_I32},
                  &a));
    for (int v = 1; v <= VERSIONS; v++)
        write_box(a, v, grid[v], grid[v - 1]);
    OK(pyr_tag(a, "good", 4));
    OK(pyr_clone(a, 2, "twin", &c));
    memcpy(twin[0], grid[2], sizeof twin[0]);
    write_box(c, 4, twin[1], twin[0]);
    make_row(s);
    OK(pyr_forget(a, 3, 3, 0, 0, NULL));
    OK(pyr_reclaim(s, NULL, &gone));
    pyr_array_close(c);
    pyr_array_close(a);
    pyr_close(s);
}

/* --- children ------------------------------------------------------------ */

typedef struct asking {
    pyr_store *store;
    bool refused, wrong;
} asking;

static void
tell(asking *q, int err, bool right)
{
    if (err < 0 && getenv("PYR_TEST_VERBOSE"))
        fprintf(stderr, "# refused: %s\n", pyr_errmsg());
    q->refused |= err < 0;
    q->wrong |= err == 0 && !right;
}

static void
ask_cells(asking *q, pyr_array *a, pyr_version v, const int32_t *want)
{
    int32_t got[SIDE * SIDE];
    pyr_stats s;
    double sum = 0;
    int err = pyr_read(a, v, zero, whole, got);
    tell(q, err, err < 0 || memcmp(got, want, sizeof got) == 0);
    for (int i = 0; i < SIDE * SIDE; i++)
        sum += want[i];
    err = pyr_stat(a, v, zero, whole, 0, &s);
    tell(q, err, err < 0 || s.sum == sum);
}

static void
ask_grid(asking *q)
{
    pyr_array *a;
    pyr_version v;
    int err = pyr_array_open(q->store, "grid", &a);
    tell(q, err, true);
    if (err < 0)
        return;
    for (int i = 0; i <= VERSIONS; i++)
        if (i != 3)
            ask_cells(q, a, (pyr_version)i, grid[i]);
    ask_cells(q, a, PYR_LATEST, grid[VERSIONS]);
    err = pyr_read(a, 3, zero, whole, grid[VERSIONS + 1]);
    tell(q, err == PYR_ENOVERSION ? 0 : err, err != 0);
    err = pyr_tag_version(a, "good", &v);
    tell(q, err, err < 0 || v == 4);
    err = pyr_latest(a, &v);
    tell(q, err, err < 0 || v == VERSIONS);
    pyr_array_close(a);
}

static void
ask_others(asking *q)
{
    static double got[LONG];
    uint64_t all = LONG;
    pyr_array *a;
    int err = pyr_array_open(q->store, "twin", &a);
    tell(q, err, true);
    if (err == 0) {
        ask_cells(q, a, 0, twin[0]);
        ask_cells(q, a, PYR_LATEST, twin[1]);
        pyr_array_close(a);
    }
    err = pyr_array_open(q->store, "row", &a);
    tell(q, err, true);
    if (err == 0) {
        err = pyr_read(a, PYR_LATEST, zero, &all, got);
        tell(q, err, err < 0 || memcmp(got, row, sizeof row) == 0);
        pyr_array_close(a);
    }
}

static int
read_all(void *arg)
{
    asking q = {0};
    (void)arg;
    no_core();
    if (pyr_open(path, PYR_OPEN_READONLY, &q.store) < 0)
        return REFUSED;
    ask_grid(&q);
    ask_others(&q);
    pyr_close(q.store);
    return q.wrong ? WRONG : q.refused ? REFUSED : ALL_RIGHT;
}

static int
verify_all(void *arg)
{
    (void)arg;
    return verify_store(path);
}

/* --- which bytes --------------------------------------------------------- */

/* Kinds of places; the last are those of other files. */
typedef enum region {
    META, BRANCH, LEAF, OVERFLOW, OTHER, MARKER, SEGMENT, NREGIONS
} region;

static const char *const region_names[NREGIONS] = {
    "LMDB's first pages", "branches", "leaves", "long values", "unused pages",
    "markers", "segments"};

typedef struct tally {
    unsigned flips, refused, died, verify_alone;
} tally;

typedef struct file {
    char name[5000];
    region region;
    uint8_t *bytes;
    uint64_t size;
} file;

static region
region_of(const file *f, uint64_t at)
{
    if (f->region != META)
        return f->region;
    const uint8_t *p = f->bytes + at / PAGE * PAGE;
    uint64_t number;
    memcpy(&number, p, sizeof number);
    if (number != at / PAGE)
        return OTHER;
    return p[10] & 8 ? META : p[10] & 1 ? BRANCH : p[10] & 2 ? LEAF
           : p[10] & 4 ? OVERFLOW : OTHER;
}

/* Head of a page, table of its entries, heads of its entries. */
static bool
is_followed(const file *f, uint64_t at)
{
    region r = region_of(f, at);
    const uint8_t *p = f->bytes + at / PAGE * PAGE;
    unsigned in = (unsigned)(at % PAGE), lower = p[12] | (unsigned)p[13] << 8;
    if (r == META)
        return in < 16 + 24 + 2 * 48 + 16;
    if (r != BRANCH && r != LEAF)
        return r == OVERFLOW && in < 16;
    if (in < lower)
        return true;
    for (unsigned i = 16; i + 1 < lower && lower <= PAGE; i += 2) {
        unsigned entry = p[i] | (unsigned)p[i + 1] << 8;
        if (in >= entry && in < entry + 8)
            return true;
    }
    return false;
}

static bool
is_wanted(const file *f, uint64_t at, uint64_t some)
{
    return f->region == MARKER    ? at % (some / 4) == 0
           : is_followed(f, at)   ? rng_mix(at) % some == 0
           : f->region == SEGMENT ? at % (257 * some) == 5
                                  : at % (97 * some) == 7;
}

static void
load(file *f, const char *name, region r)
{
    struct stat st;
    *f = (file){.region = r};
    snprintf(f->name, sizeof f->name, "%s/%s", path, name);
    REQUIRE(stat(f->name, &st) == 0);
    f->size = (uint64_t)st.st_size;
    f->bytes = malloc(f->size + PAGE);
    FILE *in = fopen(f->name, "rb");
    REQUIRE(in && f->bytes && fread(f->bytes, 1, f->size, in) == f->size);
    fclose(in);
}

/* --- trying -------------------------------------------------------------- */

static void
try_flip(const file *f, uint64_t at, uint8_t bits, tally *t)
{
    proc_end verify = {0};
    flip(f->name, at, bits);
    proc_end reads = run_child(read_all);
    bool harmed = reads.signal || reads.code == REFUSED;
    if (harmed || at % 8 == 0)
        verify = run_child(verify_all);
    flip(f->name, at, bits);
    bool odd = verify.signal || (!reads.signal && reads.code != ALL_RIGHT &&
                                 reads.code != REFUSED && reads.code != WRONG);
    t->flips++;
    t->refused += reads.code == REFUSED;
    t->died += reads.signal != 0;
    t->verify_alone += verify.code == REFUSED && !harmed;
    /* Which of LMDB's two states is the newer one is told by its first two
     * pages alone: the one before it is whole, too. */
    bool wrong = reads.code == WRONG && region_of(f, at) != META;
    bool died = reads.signal && f->region != META;
    if (reads.signal && getenv("PYR_TEST_VERBOSE"))
        printf("# died of %d: %s@%llu^%02x (%s, page %llu + %llu)\n",
               reads.signal, f->name + strlen(path) + 1,
               (unsigned long long)at, bits, region_names[region_of(f, at)],
               (unsigned long long)at / PAGE, (unsigned long long)at % PAGE);
    if (!wrong && !odd && !died && (!harmed || verify.code == REFUSED))
        return;
    CHECK_NOTE("%s: reads ended with %d (signal %d), verify with %d (signal "
               "%d); again: verify_bytes_test %s@%llu^%02x",
               region_names[region_of(f, at)], reads.code, reads.signal,
               verify.code, verify.signal, f->name + strlen(path) + 1,
               (unsigned long long)at, bits);
}

static void
try_file(const char *name, region r, tally *tallies)
{
    uint64_t some = by_scale(32, 8, 1);
    bool all = by_scale(0, 0, 1);
    file f;
    load(&f, name, r);
    for (uint64_t at = 0; at < f.size && check_failures < 20; at++) {
        tally *t = &tallies[region_of(&f, at)];
        uint64_t dice = rng_mix(test_seed() + at);
        if (all || is_wanted(&f, at, some))
            try_flip(&f, at, dice >> 40 & 1 ? (uint8_t)(1u << dice % 8)
                                           : (uint8_t)(1 + dice % 255), t);
    }
    free(f.bytes);
}

static void
try_only(void)
{
    char name[300];
    unsigned long long at;
    unsigned bits;
    file f;
    tally t = {0};
    REQUIRE(sscanf(only, "%299[^@]@%llu^%x", name, &at, &bits) == 3);
    load(&f, name, strstr(name, ".mdb") ? META
                   : strstr(name, ".seg") ? SEGMENT : MARKER);
    REQUIRE(at < f.size);
    try_flip(&f, at, (uint8_t)bits, &t);
    printf("# %s: refused %u, died %u, found by verify alone %u\n",
           region_names[region_of(&f, at)], t.refused, t.died,
           t.verify_alone);
    free(f.bytes);
}

static void
try_data(tally *tallies)
{
    char dir[5000], name[300];
    snprintf(dir, sizeof dir, "%s/data", path);
    DIR *d = opendir(dir);
    REQUIRE(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "data/%.250s", e->d_name);
        try_file(name, strstr(name, ".seg") ? SEGMENT : MARKER, tallies);
    }
    closedir(d);
}

static void
a_flipped_byte_gives_right_cells_or_an_error(void)
{
    tally tallies[NREGIONS] = {{0}};
    test_seed();
    make_store();
    REQUIRE(run_child(read_all).code == ALL_RIGHT);
    REQUIRE(run_child(verify_all).code == ALL_RIGHT);
    if (only) {
        try_only();
    } else {
        try_file("pyramid.store", MARKER, tallies);
        try_file("meta/data.mdb", META, tallies);
        try_data(tallies);
    }
    for (int i = 0; i < NREGIONS; i++)
        if (tallies[i].flips)
            printf("# %s: %u bytes, %u refused, %u processes died, %u found "
                   "by verify alone\n", region_names[i], tallies[i].flips,
                   tallies[i].refused, tallies[i].died,
                   tallies[i].verify_alone);
    CHECK(run_child(read_all).code == ALL_RIGHT);
    tmp_remove(path);
}

int
main(int argc, char **argv)
{
    static const check_case cases[] = {
        T(a_flipped_byte_gives_right_cells_or_an_error)};
    if (argc == 2 && strchr(argv[1], '@'))
        only = argv[1], argc = 1;
    return check_main(cases, 1, argc, argv);
}
