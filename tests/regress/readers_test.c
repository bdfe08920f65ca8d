/*
 * regress/readers_test.c - readers of other users, readers that die, and
 * readers that have gone idle.
 */
#include "regress/regress.h"

enum { CHUNK = 64, CHUNKS = 2000, CELLS = CHUNK * CHUNKS };

static const char *
beside_store(const char *name)
{
    static char path[4200];
    snprintf(path, sizeof path, "%s.%s", url, name);
    return path;
}

static bool
wait_for(const char *name, int ms)
{
    int64_t end = now_ns() + (int64_t)ms * 1000000;
    while (!tmp_exists(beside_store(name)) && now_ns() < end)
        nap_ms(1);
    return tmp_exists(beside_store(name));
}

/* Cell i holds i, in all versions but 0. */
static int32_t *
line_of_indices(void)
{
    int32_t *cells = malloc(CELLS * sizeof *cells);
    if (!cells)
        abort();
    for (int32_t i = 0; i < CELLS; i++)
        cells[i] = i;
    return cells;
}

static void
set_up_line(void)
{
    set_up(LONG_LEASE);
    make_line(CELLS, CHUNK, PYR_I32);
    int32_t *cells = line_of_indices();
    OK(pyr_write(array, AT(0), AT(CELLS), cells, NULL));
    free(cells);
}

static void
write_some_cells(uint64_t n)
{
    rng r = rng_of(test_seed());
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = rng_below(&r, CELLS);
        OK(pyr_write(array, &at, AT(1), &(int32_t){(int32_t)at}, NULL));
    }
}

/* --- of another user ----------------------------------------------------- */

enum { NOBODY = 65534, NO_WAY = 77 };

/* Reads versions that others write past, until there is a file "done". */
static int
read_as_nobody(uint64_t n)
{
    if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
        return NO_WAY;
    prctl(PR_SET_DUMPABLE, 1); /* as before, for leak checks at the end */
    if (access(url, X_OK) != 0)
        return NO_WAY;
    if (open_line(PYR_OPEN_READONLY) < 0)
        return complain("open");
    int32_t *wanted = line_of_indices(), *got = line_of_indices();
    int code = 0;
    for (uint64_t i = 0; code == 0 && i < n; i++) {
        memset(got, 0xee, CELLS * sizeof *got);
        if (pyr_read(array, i % 2 ? 1 : PYR_LATEST, AT(0), AT(CELLS),
                     got) < 0)
            code = complain("read");
        else if (memcmp(got, wanted, CELLS * sizeof *got) != 0)
            code = 3;
        if (tmp_exists(beside_store("done")))
            break;
    }
    free(wanted);
    free(got);
    close_all();
    return code;
}

static void
a_reader_who_may_not_write_is_undisturbed_by_writers(void)
{
    if (geteuid() != 0) {
        printf("# only root can try this\n");
        return;
    }
    mode_t mask = umask(022);
    set_up_line();
    umask(mask);
    REQUIRE(chmod(tmp_dir(), 0755) == 0);
    pid_t reader = start(NULL, "nobody", UINT64_MAX);
    int64_t end = now_ns() + (int64_t)by_scale(2, 4, 20) * 1000000000;
    while (now_ns() < end)
        write_some_cells(50);
    REQUIRE(tmp_write_file(beside_store("done"), ""));
    proc_end ended = proc_wait(reader, BOUND);
    if (ended.code == NO_WAY)
        printf("# another user cannot get there\n");
    else
        CHECK(ended.code == 0 && ended.signal == 0);
    tear_down();
}

/* --- that die ------------------------------------------------------------ */

static int
die(void *ctx, const char *name)
{
    raise(SIGKILL);
    return 0;
}

static int
die_while_reading(uint64_t n)
{
    if (open_line(PYR_OPEN_READONLY) < 0)
        return complain("open");
    pyr_arrays(store, die, NULL);
    return 1;
}

static uint64_t
metadata_size(void)
{
    char path[4200];
    struct stat st;
    snprintf(path, sizeof path, "%s/meta/data.mdb", url);
    REQUIRE(stat(path, &st) == 0);
    return (uint64_t)st.st_size;
}

static void
metadata_does_not_swell_behind_a_killed_reader(void)
{
    uint64_t n = by_scale(1500, 4000, 20000);
    set_up_line();
    write_some_cells(n / 4); /* some pages to use again */
    uint64_t size = metadata_size();
    write_some_cells(n);
    uint64_t usual = metadata_size() - size;
    pid_t reader = start(NULL, "die", 1);
    CHECK(proc_wait(reader, BOUND).signal == SIGKILL);
    size = metadata_size();
    write_some_cells(n);
    uint64_t after = metadata_size() - size;
    printf("# %" PRIu64 " bytes, then %" PRIu64 "\n", usual, after);
    CHECK(after < 2 * usual + (16 << 20));
    tear_down();
}

/* --- idle ---------------------------------------------------------------- */

enum { DEPTH = 60, IDLERS = 20 };

/* Begins a read inside a read, and so on. */
static int
nest(void *ctx, const char *name)
{
    int *depth = ctx;
    return ++*depth < DEPTH ? pyr_arrays(store, nest, ctx) : 0;
}

/* Reads many times at once, then keeps the store open. */
static int
read_and_idle(uint64_t n)
{
    int depth = 0;
    char name[32];
    if (open_line(0) < 0)
        return complain("open");
    if (pyr_arrays(store, nest, &depth) != 0 || depth != DEPTH)
        return complain("nest");
    snprintf(name, sizeof name, "idle%" PRIu64, n);
    tmp_write_file(beside_store(name), "");
    bool told = wait_for("go", BOUND);
    close_all();
    return told ? 0 : 1;
}

/* Together they once read more than 1,024 times at once. */
static void
processes_that_have_read_leave_room_for_others(void)
{
    pid_t idlers[IDLERS];
    int32_t got = 0;
    set_up_line();
    for (uint64_t i = 0; i < IDLERS; i++) {
        char name[32];
        snprintf(name, sizeof name, "idle%" PRIu64, i);
        idlers[i] = start(NULL, "idle", i);
        REQUIRE(wait_for(name, BOUND / 4));
    }
    close_all();
    OK(open_line(0));
    int depth = 0;
    OK(pyr_arrays(store, nest, &depth));
    CHECK(depth == DEPTH);
    OK(pyr_read(array, PYR_LATEST, AT(7), AT(1), &got));
    CHECK(got == 7);
    write_some_cells(5);
    REQUIRE(tmp_write_file(beside_store("go"), ""));
    for (int i = 0; i < IDLERS; i++)
        CHECK(proc_ends_well(idlers[i], BOUND));
    tear_down();
}

static const role roles[] = {{"nobody", read_as_nobody},
                             {"die", die_while_reading},
                             {"idle", read_and_idle},
                             {NULL, NULL}};

REGRESS_TESTS(roles, T(a_reader_who_may_not_write_is_undisturbed_by_writers),
              T(metadata_does_not_swell_behind_a_killed_reader),
              T(processes_that_have_read_leave_room_for_others))
