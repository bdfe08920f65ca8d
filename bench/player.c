/*
 * bench/player.c - the lines a player understands.
 */
#include "player.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS = 24, SLATES = 16, LATENCIES = 1 << 20 };

static const backend *store;
static const char *home; /* directory of this player */
static slate slates[SLATES];
static int nslates;

/* --- words --------------------------------------------------------------- */

static struct {
    char *key[WORDS], *value[WORDS];
    int n;
} words;

static const char *
split(char *line)
{
    char *save, *verb = strtok_r(line, " \n", &save);
    words.n = 0;
    for (char *w; (w = strtok_r(NULL, " \n", &save)) && words.n < WORDS;) {
        char *equals = strchr(w, '=');
        if (!equals)
            bench_die("a word without '=': %s", w);
        *equals = '\0';
        words.key[words.n] = w;
        words.value[words.n++] = equals + 1;
    }
    return verb ? verb : "";
}

static const char *
word(const char *key, const char *otherwise)
{
    for (int i = 0; i < words.n; i++)
        if (strcmp(words.key[i], key) == 0)
            return words.value[i];
    if (!otherwise)
        bench_die("word %s is missing", key);
    return otherwise;
}

static uint64_t
number(const char *key, const char *otherwise)
{
    return strtoull(word(key, otherwise), NULL, 10);
}

static int
numbers(const char *key, uint64_t out[PLAYER_AXES])
{
    const char *at = word(key, NULL);
    int n = 0;
    for (char *end; n < PLAYER_AXES; at = end + 1) {
        out[n++] = strtoull(at, &end, 10);
        if (*end != ',')
            break;
    }
    return n;
}

static slate *
the_slate(void)
{
    const char *name = word("array", NULL);
    for (int i = 0; i < nslates; i++)
        if (strcmp(slates[i].name, name) == 0)
            return &slates[i];
    bench_die("no array '%s'", name);
}

/* --- places and cells ---------------------------------------------------- */

static size_t
cells_of(int ndim, const uint64_t *size)
{
    size_t n = 1;
    for (int d = 0; d < ndim; d++)
        n *= (size_t)size[d];
    return n;
}

static void
some_place(const slate *s, const uint64_t *size, uint64_t *seed,
           uint64_t *offset)
{
    for (int d = 0; d < s->ndim; d++)
        offset[d] = bench_place(seed, s->shape[d], size[d]);
}

/* Cells for an update, from the source at a place that the seed tells. */
static const uint8_t *
some_cells(const slate *s, size_t bytes, uint64_t *seed)
{
    size_t room = s->source_bytes - bytes;
    return s->source + bench_random(seed) % (room / 8 + 1) * 8;
}

/* What the box holds by the source. */
static void
from_source(const slate *s, const uint64_t *offset, const uint64_t *size,
            uint8_t *out)
{
    uint64_t shape[3] = {1, 1, 1}, at[3] = {0, 0, 0}, n[3] = {1, 1, 1};
    for (int d = 0; d < s->ndim; d++) {
        int to = 3 - s->ndim + d;
        shape[to] = s->shape[d], at[to] = offset[d], n[to] = size[d];
    }
    size_t run = (size_t)n[2] * s->cell;
    for (uint64_t i = 0; i < n[0]; i++)
        for (uint64_t j = 0; j < n[1]; j++, out += run) {
            uint64_t from = ((at[0] + i) * shape[1] + at[1] + j) * shape[2] +
                            at[2];
            memcpy(out, s->source + from * s->cell, run);
        }
}

/* --- answers ------------------------------------------------------------- */

static void
answer(uint64_t n, bench_time t)
{
    printf("{\"n\":%llu,\"wall\":%.9f,\"cpu\":%.9f}\n", (unsigned long long)n,
           t.wall, t.cpu);
}

static double latency[LATENCIES];

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void
answer_latencies(uint64_t n, bench_time t)
{
    size_t kept = n < LATENCIES ? (size_t)n : LATENCIES;
    qsort(latency, kept, sizeof *latency, by_value);
    printf("{\"n\":%llu,\"wall\":%.9f,\"cpu\":%.9f,\"conflicts\":0,"
           "\"p50\":%.9f,\"p99\":%.9f,\"worst\":%.9f}\n",
           (unsigned long long)n, t.wall, t.cpu, latency[kept / 2],
           latency[kept * 99 / 100], latency[kept - 1]);
}

/* --- verbs --------------------------------------------------------------- */

static void
map_source(slate *s, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        bench_die("%s: %m", path);
    s->source_bytes = (size_t)st.st_size;
    s->source = mmap(NULL, s->source_bytes, PROT_READ,
                     MAP_SHARED | MAP_POPULATE, fd, 0);
    CHECK(s->source != MAP_FAILED);
    close(fd);
}

static void
do_open(bool make)
{
    char path[4096];
    CHECK(nslates < SLATES);
    slate *s = &slates[nslates++];
    memset(s, 0, sizeof *s);
    snprintf(s->name, sizeof s->name, "%s", word("array", NULL));
    s->ndim = numbers("shape", s->shape);
    CHECK(numbers("chunk", s->chunk) == s->ndim);
    s->real32 = strcmp(word("type", "f64"), "f32") == 0;
    s->cell = s->real32 ? 4 : 8;
    s->sync = number("sync", "0") != 0;
    s->pressed = number("pressed", "0") != 0;
    map_source(s, word("file", NULL));
    snprintf(path, sizeof path, "%s/%s", home, s->name);
    bench_time start = bench_now();
    store->open(s, path, make);
    answer(1, bench_since(start));
}

static void
do_make(void)
{
    do_open(true);
}

static void
do_join(void)
{
    do_open(false);
}

static void
do_drop(void)
{
    slate *s = the_slate();
    store->close(s);
    munmap((void *)(uintptr_t)s->source, s->source_bytes);
    *s = slates[--nslates];
    answer(1, (bench_time){0, 0});
}

static void
do_read(void)
{
    slate *s = the_slate();
    uint64_t size[3], offset[3], seed = number("seed", "7");
    uint64_t count = number("count", NULL), snapshot = number("snapshot", "0");
    numbers("size", size);
    size_t bytes = cells_of(s->ndim, size) * s->cell;
    void *buf = bench_alloc(bytes);
    bench_time start = bench_now();
    for (uint64_t i = 0; i < count; i++) {
        some_place(s, size, &seed, offset);
        store->read(s, snapshot, offset, size, buf);
    }
    bench_time t = bench_since(start);
    bench_free(buf, bytes);
    answer(count, t);
}

/* Cell by cell, against the source. */
static void
do_check(void)
{
    slate *s = the_slate();
    uint64_t size[3], offset[3], seed = number("seed", "99");
    uint64_t count = number("count", "8"), snapshot = number("snapshot", "0");
    numbers("size", size);
    size_t bytes = cells_of(s->ndim, size) * s->cell;
    uint8_t *buf = bench_alloc(bytes), *want = bench_alloc(bytes);
    for (uint64_t i = 0; i < count; i++) {
        some_place(s, size, &seed, offset);
        store->read(s, snapshot, offset, size, buf);
        from_source(s, offset, size, want);
        if (memcmp(buf, want, bytes) != 0)
            bench_die("cells read are not those written");
    }
    bench_free(buf, bytes);
    bench_free(want, bytes);
    answer(count, (bench_time){0, 0});
}

static void
check_box(slate *s, const uint64_t *offset, const uint64_t *size,
          const uint8_t *cells)
{
    size_t bytes = cells_of(s->ndim, size) * s->cell;
    uint8_t *buf = bench_alloc(bytes);
    store->read(s, 0, offset, size, buf);
    if (memcmp(buf, cells, bytes) != 0)
        bench_die("an update cannot be read back");
    bench_free(buf, bytes);
}

/* Random boxes, each its own update: so many, or for so long. */
static void
do_update(void)
{
    slate *s = the_slate();
    uint64_t size[3], offset[3], seed = number("seed", "1");
    uint64_t count = number("count", "0"), n = 0;
    double seconds = atof(word("seconds", "0"));
    bool verify = number("verify", "1") != 0; /* no one else writes */
    numbers("size", size);
    size_t bytes = cells_of(s->ndim, size) * s->cell;
    const uint8_t *cells = NULL;
    bench_warm((size_t)count * bytes * 2);
    bench_time start = bench_now();
    double last = start.wall;
    while (count ? n < count : last - start.wall < seconds) {
        some_place(s, size, &seed, offset);
        cells = some_cells(s, bytes, &seed);
        store->update(s, offset, size, cells);
        double now = bench_now().wall;
        latency[n++ % LATENCIES] = now - last;
        last = now;
    }
    bench_time t = bench_since(start);
    if (verify)
        check_box(s, offset, size, cells);
    answer_latencies(n, t);
}

/* Random boxes of the newest snapshot, for so long. */
static void
do_watch(void)
{
    slate *s = the_slate();
    uint64_t size[3], offset[3], seed = number("seed", "1"), n = 0;
    double seconds = atof(word("seconds", NULL));
    numbers("size", size);
    size_t bytes = cells_of(s->ndim, size) * s->cell;
    void *buf = bench_alloc(bytes);
    bench_time start = bench_now();
    double last = start.wall;
    while (last - start.wall < seconds) {
        some_place(s, size, &seed, offset);
        store->read(s, 0, offset, size, buf);
        double now = bench_now().wall;
        latency[n++ % LATENCIES] = now - last;
        last = now;
    }
    bench_time t = bench_since(start);
    bench_free(buf, bytes);
    answer_latencies(n, t);
}

/* Say so if the store has no such thing. */
static bool
cannot(bool can, const char *what)
{
    if (!can)
        printf("{\"cannot\":\"%s\"}\n", what);
    return !can;
}

static void
do_append(void)
{
    slate *s = the_slate();
    if (cannot(store->append, "append"))
        return;
    uint64_t count = number("count", NULL), offset[3] = {0}, size[3];
    memcpy(size, s->shape, sizeof size);
    size[0] = 1;
    size_t bytes = cells_of(s->ndim, size) * s->cell;
    const uint8_t *frame = s->source;
    bench_warm((size_t)count * bytes * 2);
    bench_time start = bench_now();
    for (uint64_t i = 0; i < count; i++) {
        frame = s->source + i * bytes % (s->source_bytes - bytes + 1);
        store->append(s, frame);
        s->shape[0]++;
    }
    bench_time t = bench_since(start);
    offset[0] = s->shape[0] - 1;
    check_box(s, offset, size, frame);
    answer(count, t);
}

static void
do_mean(void)
{
    slate *s = the_slate();
    uint64_t size[3], offset[3], seed = number("seed", "7");
    uint64_t count = number("count", NULL);
    double sum = 0;
    numbers("size", size);
    bench_time start = bench_now();
    for (uint64_t i = 0; i < count; i++) {
        some_place(s, size, &seed, offset);
        sum += store->mean(s, offset, size);
    }
    bench_time t = bench_since(start);
    printf("{\"n\":%llu,\"wall\":%.9f,\"cpu\":%.9f,\"value\":%.15g}\n",
           (unsigned long long)count, t.wall, t.cpu, sum / (double)count);
}

/* `versions` snapshots, each of `boxes` boxes; the number of the last. */
static void
do_change(void)
{
    slate *s = the_slate();
    if (cannot(store->change, "change"))
        return;
    uint64_t size[3], seed = number("seed", "5"), last = 0;
    int boxes = (int)number("boxes", "1");
    uint64_t versions = number("versions", "1"), offsets[64 * PLAYER_AXES];
    CHECK(boxes >= 1 && boxes <= 64);
    numbers("size", size);
    size_t bytes = cells_of(s->ndim, size) * s->cell;
    bench_time start = bench_now();
    for (uint64_t v = 0; v < versions; v++) {
        for (int i = 0; i < boxes; i++)
            some_place(s, size, &seed, offsets + i * s->ndim);
        const uint8_t *cells = some_cells(s, bytes * (size_t)boxes, &seed);
        last = store->change(s, offsets, size, cells, boxes);
    }
    bench_time t = bench_since(start);
    printf("{\"n\":%llu,\"wall\":%.9f,\"cpu\":%.9f,\"snapshot\":%llu}\n",
           (unsigned long long)versions, t.wall, t.cpu,
           (unsigned long long)last);
}

static void
do_versions(void)
{
    if (cannot(store->versions, "versions"))
        return;
    answer(store->versions(the_slate()), (bench_time){0, 0});
}

static void
do_diff(void)
{
    slate *s = the_slate();
    if (cannot(store->diff, "diff"))
        return;
    uint64_t count = number("count", "1"), boxes = 0;
    uint64_t a = number("a", NULL), b = number("b", NULL);
    bench_time start = bench_now();
    for (uint64_t i = 0; i < count; i++)
        boxes = store->diff(s, a, b);
    bench_time t = bench_since(start);
    printf("{\"n\":%llu,\"wall\":%.9f,\"cpu\":%.9f,\"boxes\":%llu}\n",
           (unsigned long long)count, t.wall, t.cpu, (unsigned long long)boxes);
}

/* --- lines --------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(void);
} verbs[] = {{"make", do_make},   {"join", do_join},
             {"drop", do_drop},   {"read", do_read},
             {"check", do_check}, {"update", do_update},
             {"watch", do_watch}, {"append", do_append},
             {"mean", do_mean},   {"change", do_change},
             {"diff", do_diff},   {"versions", do_versions}};

static void
obey(const char *verb)
{
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verbs[i].name, verb) == 0) {
            verbs[i].run();
            fflush(stdout);
            return;
        }
    bench_die("no verb '%s'", verb);
}

int
player_main(int argc, char **argv, const backend *b)
{
    char line[4096];
    if (argc < 2)
        bench_die("usage: %s DIRECTORY", argv[0]);
    home = argv[1];
    store = b;
    while (fgets(line, sizeof line, stdin))
        obey(split(line));
    for (int i = 0; i < nslates; i++)
        store->close(&slates[i]);
    return 0;
}
