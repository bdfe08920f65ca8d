/*
 * verify/bytes_test.c - every byte of a tiny store is changed, one after the
 * other: every read gives the right cells or an error, and what cannot be
 * read any more, verify names. Whoever writes to such a store succeeds or gets
 * an error; what was there before is still right then, or an error. No process
 * dies of it; but for writers that LMDB ends itself, and those say why.
 *
 * PYR_TEST_SCALE=large takes every byte of every file, for readers and for
 * writers; of files of the moment (LMDB's locks, who is there) the first page.
 * That takes hours: PYR_TEST_BYTES=FROM+COUNT takes COUNT of them, counted
 * through all files, and tells where to go on. Otherwise it is some of them in
 * every kind of place, most of all where LMDB follows without asking: heads of
 * pages, their tables, heads of entries. What became of them is told for each
 * kind.
 *
 * `bytes_test FILE@AT^BITS` tries one byte, as a failure prints it.
 */
#include "verify/flips.h"
#include "verify/saved.h"

enum {
    SIDE = 12,
    CHUNK = 4,
    VERSIONS = 9,
    LONG = 2300, /* of 8 bytes: some pages of a segment */
    PAGE = 4096,
    TELL = 5000 /* bytes, and how far it has come is told */
};

/* What the parent knows, and its children by fork. */
static char path[4096];
static int32_t grid[VERSIONS + 2][SIDE * SIDE]; /* and the next one */
static int32_t twin[2][SIDE * SIDE];
static double row[LONG];
static const char *only; /* the byte that the command line names */
static bool is_written;  /* the next version: what was refused is as before */
static FILE *said;       /* by writers, on stderr */

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
    dup2(fileno(said), 2);
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
    META, BRANCH, LEAF, OVERFLOW, OTHER, MARKER, SEGMENT, MOMENT, NREGIONS
} region;

static const char *const region_names[NREGIONS] = {
    "LMDB's first pages", "branches", "leaves", "long values", "unused pages",
    "markers", "segments", "files of the moment"};

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

/* Files of the store; those that hold nothing but who is there now end after
 * a page. */
typedef struct listed {
    char name[300];
    region region;
    uint64_t size;
} listed;

enum { MAX_FILES = 32 };
static listed files[MAX_FILES];
static int nfiles;

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
    return f->region == MOMENT    ? at % (31 * some) == 3
           : f->region == MARKER  ? at % ((some + 3) / 4) == 0
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

/* The last word of a writer that was ended: which file, and what to do. */
static bool
had_a_last_word(const file *f)
{
    char text[16384];
    rewind(said);
    text[fread(text, 1, sizeof text - 1, said)] = 0;
    const char *word = strstr(text, "pyramid: ");
    return word && strstr(word, f->name) && strstr(word, " is damaged") &&
           strstr(word, "Nothing of what it was about to store is stored") &&
           strstr(word, f->live ? "remove that folder" : "pyramid verify");
}

static proc_end
run_writer(void)
{
    rewind(said);
    REQUIRE(ftruncate(fileno(said), 0) == 0);
    return run_child(write_all);
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
    proc_end then = {0}, writes = run_writer();
    is_written = writes.code != NOT_WRITTEN;
    if (ended(writes) || gave_up(writes))
        then = run_child(read_later);
    t->write_refused += writes.code != ALL_RIGHT;
    t->write_died += !ended(writes);
    bool wrong = then.signal || (then.code == WRONG && ended(writes) &&
                                 region_of(f, at) != META);
    bool silent = gave_up(writes) && !had_a_last_word(f);
    if ((!ended(writes) && !gave_up(writes)) || wrong || silent)
        complain(silent ? "without a word, writes ended with"
                        : "writes ended with", f, at, bits, writes, then);
}

/* As it was, whatever has become of it. */
static void
put_back(const file *f)
{
    FILE *out = fopen(f->name, "wb");
    REQUIRE(out && fwrite(f->bytes, 1, f->size, out) == f->size);
    REQUIRE(fclose(out) == 0);
}

static void
try_flip(const file *f, uint64_t at, uint8_t bits, bool write, tally *t)
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
    if (write) {
        try_write(f, at, bits, t);
        restore_store(path);
    }
    put_back(f); /* which may be none of those that are saved */
}

static uint8_t
bits_at(uint64_t at)
{
    uint64_t dice = rng_mix(test_seed() + at);
    return dice >> 40 & 1 ? (uint8_t)(1u << dice % 8)
                          : (uint8_t)(1 + dice % 255);
}

/* Some of a file; or of its bytes from..end each one. */
static void
try_file(const listed *l, bool each, uint64_t from, uint64_t end,
         tally *tallies)
{
    uint64_t some = by_scale(32, 8, 1);
    file f;
    load(&f, l->name, l->region);
    for (uint64_t at = from; at < end && check_failures < 20; at++) {
        bool write = each || (f.region == META &&
                              (is_followed(&f, at) || at % 8 == 0));
        if (each || is_wanted(&f, at, some))
            try_flip(&f, at, bits_at(at), write, &tallies[region_of(&f, at)]);
        if (each && at % TELL == 0)
            printf("# %s: byte %llu of %llu\n", l->name,
                   (unsigned long long)at, (unsigned long long)end);
        fflush(stdout);
    }
    free(f.bytes);
}

/* `count` bytes from number `from` on, counted through all files. */
static void
try_each(uint64_t from, uint64_t count, tally *tallies)
{
    uint64_t before = 0, end = from + count;
    for (int i = 0; i < nfiles; i++) {
        uint64_t size = files[i].size, first = before, last = before + size;
        before = last;
        if (last <= from || first >= end)
            continue;
        try_file(&files[i], true, from > first ? from - first : 0,
                 (end < last ? end : last) - first, tallies);
    }
    if (end < before)
        printf("# %llu of %llu bytes are done; go on: PYR_TEST_BYTES=%llu+%llu\n",
               (unsigned long long)end, (unsigned long long)before,
               (unsigned long long)end, (unsigned long long)count);
    else
        printf("# all %llu bytes are done\n", (unsigned long long)before);
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
try_only(tally *tallies)
{
    char name[300];
    unsigned long long at;
    unsigned bits;
    file f;
    REQUIRE(sscanf(only, "%299[^@]@%llu^%x", name, &at, &bits) == 3);
    for (int i = 0; i < nfiles; i++) {
        if (strcmp(files[i].name, name) != 0)
            continue;
        load(&f, name, files[i].region);
        REQUIRE(at < f.size);
        try_flip(&f, at, (uint8_t)bits, true, &tallies[region_of(&f, at)]);
        free(f.bytes);
    }
}

static int
list_file(const char *name, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)ftw;
    if (kind != FTW_F || st->st_size == 0)
        return 0;
    REQUIRE(nfiles < MAX_FILES);
    listed *l = &files[nfiles++];
    snprintf(l->name, sizeof l->name, "%s", name + strlen(path) + 1);
    l->region = is_fleeting(name)             ? MOMENT
                : strstr(name, "data.mdb")    ? META
                : strstr(name, ".seg")        ? SEGMENT
                                              : MARKER;
    l->size = (uint64_t)st->st_size;
    if (l->region == MOMENT && l->size > PAGE)
        l->size = PAGE;
    return 0;
}

static int
by_name(const void *a, const void *b)
{
    const listed *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* The same order each time: what is counted through them goes on there. */
static void
list_files(void)
{
    nfiles = 0;
    REQUIRE(nftw(path, list_file, 8, FTW_PHYS) == 0);
    qsort(files, (size_t)nfiles, sizeof *files, by_name);
}

static void
try_as_asked(tally *tallies)
{
    const char *range = getenv("PYR_TEST_BYTES");
    unsigned long long from = 0, count = by_scale(0, 0, 1) ? UINT32_MAX : 0;
    if (range)
        REQUIRE(sscanf(range, "%llu+%llu", &from, &count) == 2);
    if (only)
        try_only(tallies);
    else if (count)
        try_each(from, count, tallies);
    else
        for (int i = 0; i < nfiles; i++)
            try_file(&files[i], false, 0, files[i].size, tallies);
    for (int i = 0; i < NREGIONS; i++)
        if (tallies[i].flips)
            print_tally(region_names[i], &tallies[i]);
}

/* Makes the store, and sees what children do to it as it is. */
static void
begin(void)
{
    test_seed();
    REQUIRE((said = tmpfile()));
    make_store();
    REQUIRE(run_child(read_all).code == ALL_RIGHT);
    REQUIRE(run_child(verify_all).code == ALL_RIGHT);
    OK(write_box(NULL, VERSIONS + 1, grid[VERSIONS + 1], grid[VERSIONS]));
    save_store(path);
    REQUIRE(run_writer().code == ALL_RIGHT);
    is_written = true;
    REQUIRE(run_child(read_later).code == REFUSED); /* what was forgotten */
    restore_store(path);
    list_files();
    REQUIRE(run_child(read_all).code == ALL_RIGHT);
}

static void
end(void)
{
    CHECK(run_child(read_all).code == ALL_RIGHT);
    forget_saved();
    fclose(said);
    tmp_remove(path);
}

static void
a_flipped_byte_gives_right_cells_or_an_error(void)
{
    tally tallies[NREGIONS] = {{0}};
    begin();
    try_as_asked(tallies);
    end();
}

/* --- writers that LMDB ends ---------------------------------------------- */

static uint64_t
load64(const uint8_t *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

enum { TXN = 144 }; /* its number, in a page that describes a state */

static const uint8_t *
newest_state(const file *f)
{
    const uint8_t *a = f->bytes, *b = f->bytes + PAGE;
    return load64(a + TXN) > load64(b + TXN) ? a : b;
}

/* Has a transaction been committed since the file was as in `f`? */
static bool
was_changed(const file *f)
{
    file now;
    load(&now, "meta/data.mdb", META);
    bool changed = load64(newest_state(&now) + TXN) !=
                   load64(newest_state(f) + TXN);
    free(now.bytes);
    return changed;
}

/* The leaf of free pages of LMDB's newest state, if there is just that one: in
 * a tree of depth 1. NULL if not. */
static uint8_t *
free_leaf(const file *f, uint64_t *page)
{
    enum { FREE = 40, DEPTH = 6, ROOT = 40 };
    const uint8_t *newest = newest_state(f);
    *page = load64(newest + FREE + ROOT);
    return newest[FREE + DEPTH] == 1 && (*page + 1) * PAGE <= f->size
               ? f->bytes + *page * PAGE
               : NULL;
}

/* A list of free pages names `page` instead of its `k`th, if it stays in order;
 * how does a writer end? Of one that committed something before it was ended no
 * more is asked: that may have gone over a page in use (docs/format.md). */
static bool
ends_a_writer(const file *f, uint8_t *list, uint64_t k, uint64_t page)
{
    uint64_t n = load64(list), was = load64(list + 8 * k);
    if (page == was || (k > 1 && load64(list + 8 * (k - 1)) <= page) ||
        (k < n && load64(list + 8 * (k + 1)) >= page))
        return false;
    memcpy(list + 8 * k, &page, sizeof page);
    put_back(f);
    proc_end end = run_writer();
    memcpy(list + 8 * k, &was, sizeof was);
    if (!ended(end) && !gave_up(end))
        CHECK_NOTE("a writer ended with signal %d", end.signal);
    bool told = gave_up(end) && !was_changed(f);
    if (gave_up(end))
        CHECK(had_a_last_word(f));
    if (told)
        CHECK(run_child(read_all).code == ALL_RIGHT);
    restore_store(path);
    return told;
}

/* Lists of free pages that are in order, and name a page that another one
 * names, too, or that is in use: LMDB finds that out in the end. */
static void
a_writer_that_lmdb_ends_says_so(void)
{
    file f;
    uint64_t root, tried = 0;
    begin();
    load(&f, "meta/data.mdb", META);
    uint8_t *leaf = free_leaf(&f, &root);
    REQUIRE(leaf);
    unsigned lower = leaf[12] | (unsigned)leaf[13] << 8, ends = 0;
    for (unsigned i = 16; i + 1 < lower && ends == 0; i += 2) {
        uint8_t *list = leaf + (leaf[i] | (unsigned)leaf[i + 1] << 8) + 16;
        for (uint64_t k = 1; k <= load64(list) && ends == 0; k++)
            for (uint64_t page = 2; page * PAGE < f.size && ends == 0; page++)
                tried++, ends += ends_a_writer(&f, list, k, page);
    }
    printf("# one of %llu\n", (unsigned long long)tried);
    CHECK(ends > 0);
    free(f.bytes);
    end();
}

int
main(int argc, char **argv)
{
    static const check_case cases[] = {
        T(a_flipped_byte_gives_right_cells_or_an_error),
        T(a_writer_that_lmdb_ends_says_so)};
    if (argc == 2 && strchr(argv[1], '@'))
        only = argv[1], argc = 1;
    bool all = !only && !getenv("PYR_TEST_BYTES");
    return check_main(cases, all ? 2 : 1, argc, argv);
}
