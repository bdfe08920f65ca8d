/*
 * verify/bytes_test.c - every byte of a tiny store is changed, one after the
 * other: every read gives the right cells or an error, and what cannot be
 * read any more, verify names. Whoever writes to such a store succeeds or gets
 * an error; what was there before is still right then, or an error. No process
 * dies of it.
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
#include <ftw.h>

enum { SIDE = 12, CHUNK = 4, VERSIONS = 9, LONG = 8300, PAGE = 4096 };

/* What the parent knows, and its children by fork. */
static char path[4096];
static int32_t grid[VERSIONS + 2][SIDE * SIDE]; /* and the next one */
static int32_t twin[2][SIDE * SIDE];
static double row[LONG];
static const char *only; /* the byte that the command line names */
static bool is_written;  /* the next version: what was refused is as before */

enum { NOT_WRITTEN = 12 }; /* how a writer may end, too */

static const uint64_t zero[2], whole[2] = {SIDE, SIDE};

/* --- a tiny store -------------------------------------------------------- */

/* Without an array, only the model's. */
static int
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
    return a ? pyr_write(a, at, size, cells, NULL) : 0;
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
        OK(write_box(a, v, grid[v], grid[v - 1]));
    OK(pyr_tag(a, "good", 4));
    OK(pyr_clone(a, 2, "twin", &c));
    memcpy(twin[0], grid[2], sizeof twin[0]);
    OK(write_box(c, 4, twin[1], twin[0]));
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
    bool later; /* someone has tried to write */
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

/* Versions that a writer forgot meanwhile are refused. */
static void
ask_grid(asking *q)
{
    int32_t got[SIDE * SIDE];
    pyr_array *a;
    pyr_version v;
    int err = pyr_array_open(q->store, "grid", &a);
    tell(q, err, true);
    if (err < 0)
        return;
    for (int i = 0; i <= VERSIONS; i++)
        if (i != 3)
            ask_cells(q, a, (pyr_version)i, grid[i]);
    err = pyr_read(a, 3, zero, whole, got);
    tell(q, err == PYR_ENOVERSION ? 0 : err, err != 0);
    err = pyr_tag_version(a, "good", &v);
    tell(q, err, err < 0 || v == 4);
    err = pyr_latest(a, &v);
    tell(q, err, err < 0 || v == VERSIONS || (q->later && v == VERSIONS + 1));
    if (err == 0 && v <= VERSIONS + 1)
        ask_cells(q, a, PYR_LATEST, grid[is_written ? v : VERSIONS]);
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
        ask_cells(q, a, 1, twin[1]);
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
read_store(bool later)
{
    asking q = {.later = later};
    no_core();
    if (pyr_open(path, PYR_OPEN_READONLY, &q.store) < 0)
        return REFUSED;
    ask_grid(&q);
    ask_others(&q);
    pyr_close(q.store);
    return q.wrong ? WRONG : q.refused ? REFUSED : ALL_RIGHT;
}

static int
read_all(void *arg)
{
    (void)arg;
    return read_store(false);
}

static int
read_later(void *arg)
{
    (void)arg;
    return read_store(true);
}

/* A bit of everything that changes metadata. A write that fails in flight is
 * a version without cells of its own. */
static int
write_all(void *arg)
{
    asking q = {0};
    uint64_t n = 5;
    int32_t cells[5] = {1, 2, 3, 4, 5};
    bool written = false;
    pyr_reclaimed gone;
    pyr_array *a, *c;
    (void)arg;
    no_core();
    int err = pyr_open(path, 0, &q.store);
    tell(&q, err, true);
    if (err < 0)
        return NOT_WRITTEN;
    if ((err = pyr_array_open(q.store, "grid", &a)) == 0) {
        int wrote = write_box(a, VERSIONS + 1, grid[VERSIONS + 1],
                              grid[VERSIONS]);
        written = wrote == 0;
        tell(&q, wrote, true);
        tell(&q, pyr_tag(a, "later", 7), true);
        tell(&q, pyr_forget(a, 5, 6, 0, 0, NULL), true);
        pyr_array_close(a);
    }
    tell(&q, err, true);
    err = pyr_create(q.store, "new", &(pyr_spec){.ndim = 1, .shape = &n,
                                                 .chunk = &n, .type = PYR_I32},
                     &c);
    tell(&q, err, true);
    if (err == 0) {
        tell(&q, pyr_write(c, zero, &n, cells, NULL), true);
        pyr_array_close(c);
    }
    tell(&q, pyr_reclaim(q.store, NULL, &gone), true);
    pyr_close(q.store);
    return !written ? NOT_WRITTEN : q.refused ? REFUSED : ALL_RIGHT;
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
    unsigned write_refused, write_died;
} tally;

typedef struct file {
    char name[5000];
    region region;
    bool live; /* of this boot; readers can do without, verify does not look */
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
    return f->region == MARKER    ? at % ((some + 3) / 4) == 0
           : is_followed(f, at)   ? rng_mix(at) % some == 0
           : f->region == SEGMENT ? at % (257 * some) == 5
                                  : at % (97 * some) == 7;
}

static void
load(file *f, const char *name, region r)
{
    struct stat st;
    *f = (file){.region = r, .live = strstr(name, "live/") != NULL};
    snprintf(f->name, sizeof f->name, "%s/%s", path, name);
    REQUIRE(stat(f->name, &st) == 0);
    f->size = (uint64_t)st.st_size;
    f->bytes = malloc(f->size + PAGE);
    FILE *in = fopen(f->name, "rb");
    REQUIRE(in && f->bytes && fread(f->bytes, 1, f->size, in) == f->size);
    fclose(in);
}

/* --- a store as it was --------------------------------------------------- */

enum { MAX_FILES = 32 };

static struct {
    char name[5000];
    uint8_t *bytes;
    size_t size;
} saved[MAX_FILES];
static int nsaved;

/* Files that hold nothing but who is there now. */
static bool
is_fleeting(const char *name)
{
    return strstr(name, "lock.mdb") || strstr(name, "/presence") ||
           strstr(name, "/wake") || strstr(name, "/upkeep");
}

static int
find_saved(const char *name)
{
    for (int i = 0; i < nsaved; i++)
        if (strcmp(saved[i].name, name) == 0)
            return i;
    return -1;
}

static int
save_file(const char *name, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)ftw;
    if (kind != FTW_F || is_fleeting(name))
        return 0;
    REQUIRE(nsaved < MAX_FILES);
    snprintf(saved[nsaved].name, sizeof saved->name, "%s", name);
    saved[nsaved].size = (size_t)st->st_size;
    REQUIRE((saved[nsaved].bytes = malloc((size_t)st->st_size + 1)));
    FILE *in = fopen(name, "rb");
    REQUIRE(in && fread(saved[nsaved].bytes, 1, saved[nsaved].size, in) ==
                      saved[nsaved].size);
    fclose(in);
    nsaved++;
    return 0;
}

static int
drop_new_file(const char *name, const struct stat *st, int kind,
              struct FTW *ftw)
{
    (void)st, (void)ftw;
    if (kind == FTW_F && !is_fleeting(name) && find_saved(name) < 0)
        unlink(name);
    return 0;
}

static void
save_store(void)
{
    REQUIRE(nftw(path, save_file, 8, FTW_PHYS) == 0);
}

/* Nobody has it open. */
static void
restore_store(void)
{
    REQUIRE(nftw(path, drop_new_file, 8, FTW_PHYS) == 0);
    for (int i = 0; i < nsaved; i++) {
        FILE *out = fopen(saved[i].name, "wb");
        REQUIRE(out && fwrite(saved[i].bytes, 1, saved[i].size, out) ==
                           saved[i].size);
        REQUIRE(fclose(out) == 0);
    }
}

static void
forget_saved(void)
{
    while (nsaved > 0)
        free(saved[--nsaved].bytes);
}

/* --- trying -------------------------------------------------------------- */

static bool
ended(proc_end end)
{
    return !end.signal && (end.code == ALL_RIGHT || end.code == REFUSED ||
                           end.code == NOT_WRITTEN);
}

/* LMDB found its list of free pages at odds with itself when it was about to
 * commit (docs/format.md): it ends the process then, with nothing stored. */
static bool
gave_up(proc_end end)
{
    return end.signal == SIGABRT;
}

static void
complain(const char *who, const file *f, uint64_t at, uint8_t bits,
         proc_end end, proc_end then)
{
    CHECK_NOTE("%s, page %llu + %llu: %s %d (signal %d), then %d (signal %d); "
               "again: verify_bytes_test %s@%llu^%02x",
               region_names[region_of(f, at)], (unsigned long long)at / PAGE,
               (unsigned long long)at % PAGE, who, end.code, end.signal,
               then.code, then.signal, f->name + strlen(path) + 1,
               (unsigned long long)at, bits);
}

/* Someone writes to the harmed store, and another reads. */
static void
try_write(const file *f, uint64_t at, uint8_t bits, tally *t)
{
    proc_end then = {0}, writes = run_child(write_all);
    is_written = writes.code != NOT_WRITTEN;
    if (ended(writes) || gave_up(writes))
        then = run_child(read_later);
    t->write_refused += writes.code != ALL_RIGHT;
    t->write_died += !ended(writes);
    bool wrong = then.signal || (then.code == WRONG && ended(writes) &&
                                 region_of(f, at) != META);
    if ((!ended(writes) && !gave_up(writes)) || wrong)
        complain("writes ended with", f, at, bits, writes, then);
    restore_store();
}

static void
try_flip(const file *f, uint64_t at, uint8_t bits, tally *t)
{
    proc_end verify = {0};
    flip(f->name, at, bits);
    proc_end reads = run_child(read_all);
    bool harmed = reads.code == REFUSED;
    if (harmed || at % 8 == 0)
        verify = run_child(verify_all);
    t->flips++;
    t->refused += harmed;
    t->died += reads.signal != 0;
    t->verify_alone += verify.code == REFUSED && !harmed;
    /* Which of LMDB's two states is the newer one is told by its first two
     * pages alone: the one before it is whole, too. */
    bool right = ended(reads) || (reads.code == WRONG &&
                                  region_of(f, at) == META);
    if (!right || !ended(verify) ||
        (harmed && verify.code != REFUSED && !f->live))
        complain("reads ended with", f, at, bits, reads, verify);
    if (f->region == META && (only || is_followed(f, at) || at % 8 == 0))
        try_write(f, at, bits, t); /* which puts all back */
    else
        flip(f->name, at, bits);
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
print_tally(const char *what, const tally *t)
{
    printf("# %s: %u bytes, %u refused to readers, %u found by verify alone, "
           "%u refused to writers; %u readers and %u writers died\n", what,
           t->flips, t->refused, t->verify_alone, t->write_refused, t->died,
           t->write_died);
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
    print_tally(region_names[region_of(&f, at)], &t);
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
    OK(write_box(NULL, VERSIONS + 1, grid[VERSIONS + 1], grid[VERSIONS]));
    save_store();
    REQUIRE(run_child(write_all).code == ALL_RIGHT);
    is_written = true;
    REQUIRE(run_child(read_later).code == REFUSED); /* what was forgotten */
    restore_store();
    REQUIRE(run_child(read_all).code == ALL_RIGHT);
    if (only) {
        try_only();
    } else {
        try_file("pyramid.store", MARKER, tallies);
        try_file("meta/data.mdb", META, tallies);
        try_file("live/data.mdb", META, tallies);
        try_data(tallies);
    }
    for (int i = 0; i < NREGIONS; i++)
        if (tallies[i].flips)
            print_tally(region_names[i], &tallies[i]);
    CHECK(run_child(read_all).code == ALL_RIGHT);
    forget_saved();
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
