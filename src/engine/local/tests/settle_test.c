/*
 * Giving space back: what was erased and what dead writers left goes, what
 * anyone reads or will name stays, and dying half-way does no harm.
 */
#include "base/fault.h"
#include "engine/local/tests/fixture.h"
#include "support/last_write.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

/* Too little for blocks to be set aside behind it: they would be counted. */
enum { LARGE = 200000, SMALL = 1500 };

/* --- words --------------------------------------------------------------- */

static uint64_t
blocks_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

/* Blocks of all segments; *n is how many there are. */
static uint64_t
segment_bytes(const char *path, int *n)
{
    uint64_t sum = 0;
    char data[PATH_MAX];
    snprintf(data, sizeof data, "%s", inside(path, "data"));
    DIR *d = opendir(data);
    *n = 0;
    REQUIRE(d);
    for (struct dirent *e; (e = readdir(d));)
        if (strstr(e->d_name, ".seg")) {
            ++*n;
            sum += blocks_of(inside(data, e->d_name));
        }
    closedir(d);
    return sum;
}

static uint64_t
meta_bytes(const char *path)
{
    return blocks_of(inside(path, "meta/data.mdb"));
}

/* A version and the blobs that it alone names: one large, one small, both of
 * the byte `version`. */
typedef struct owned {
    pyri_ticket ticket;
    pyri_blob blobs[2];
} owned;

static int
put_owned(pyri_engine *e, owned *o)
{
    static uint8_t bytes[LARGE];
    memset(bytes, (int)o->ticket.version, sizeof bytes);
    o->blobs[0].size = LARGE;
    o->blobs[1].size = SMALL;
    int err = put_bytes(e, bytes, LARGE, true, &o->blobs[0].ref);
    return err < 0 ? err : put_bytes(e, bytes, SMALL, false, &o->blobs[1].ref);
}

static int
name_owned(pyri_engine *e, const owned *o)
{
    uint8_t key[20] = {0};
    pyri_store64_be(key, o->ticket.array);
    pyri_store64_be(key + 8, o->ticket.version);
    pyri_node_put node = {{key, sizeof key}, {key, sizeof key}};
    pyri_complete c = {.array = o->ticket.array,
                       .version = o->ticket.version,
                       .shape = o->ticket.shape, .nodes = &node, .nnodes = 1,
                       .blobs = o->blobs, .nblobs = 2,
                       .record = {"record", 6}};
    return pyri_engine_complete(e, &c);
}

static owned
publish_owned(pyri_engine *e)
{
    owned o = {.ticket = take_one(e)};
    OK(put_owned(e, &o));
    OK(pyri_engine_sync(e));
    OK(name_owned(e, &o));
    return o;
}

static void
publish_nothing(pyri_engine *e)
{
    pyri_ticket t = take_one(e);
    OK(complete_one(e, &t));
}

/* How many of its two blobs a reader finds as they were. */
static int
count_seen(pyri_engine *e, pyri_reader *r, const owned *o)
{
    static uint8_t want[LARGE];
    int n = 0;
    memset(want, (int)o->ticket.version, sizeof want);
    for (int i = 0; i < 2; i++) {
        pyri_blob_get get = {.ref = o->blobs[i].ref,
                             .size = o->blobs[i].size};
        n += pyri_engine_get_blobs(e, r, &get, 1) == 0 &&
             memcmp(get.data, want, (size_t)get.size) == 0;
    }
    return n;
}

static int
seen_now(pyri_engine *e, const owned *o)
{
    pyri_reader *r;
    if (pyri_engine_begin(e, &r) < 0)
        return -1;
    int n = count_seen(e, r, o);
    pyri_engine_end(e, r);
    return n;
}

static int
forget_and_erase(pyri_engine *e, const owned *o)
{
    uint8_t key[20] = {0};
    pyri_store64_be(key, o->ticket.array);
    pyri_store64_be(key + 8, o->ticket.version);
    pyri_bytes node = {key, sizeof key};
    pyri_edit edit = {.kind = PYRI_EDIT_FORGET, .array = o->ticket.array,
                      .version = o->ticket.version};
    pyri_erase x = {.nodes = &node, .nnodes = 1, .blobs = o->blobs,
                    .nblobs = 2, .array = o->ticket.array,
                    .versions = &o->ticket.version,
                    .nversions = 1};
    int err = pyri_engine_edit(e, &edit, 1);
    return err < 0 ? err : pyri_engine_erase(e, &x);
}

static int
try_settle(pyri_engine *e, pyri_settled *out)
{
    int err = pyri_engine_begin_upkeep(e);
    if (err < 0)
        return err;
    err = pyri_engine_settle(e, out);
    pyri_engine_end_upkeep(e);
    return err;
}

static pyri_settled
settle(pyri_engine *e)
{
    pyri_settled out = {0};
    OK(try_settle(e, &out));
    return out;
}

static pyri_engine *
store_with_array(char path[PATH_MAX], const char *name)
{
    snprintf(path, PATH_MAX, "%s", tmp_fresh(name));
    pyri_engine *e = open_store(path);
    make_array(e);
    return e;
}

/* --- what was erased ----------------------------------------------------- */

enum { MANY = 20 };

static void
erased_bytes_go_back_to_the_system(void)
{
    char path[PATH_MAX];
    owned all[MANY];
    int n;
    pyri_engine *e = store_with_array(path, "erased");
    for (int i = 0; i < MANY; i++)
        all[i] = publish_owned(e);
    uint64_t data = segment_bytes(path, &n), meta = meta_bytes(path);
    CHECK(n == 1 && data >= MANY * LARGE && meta >= MANY * SMALL);
    for (int i = 0; i < MANY - 1; i++)
        if (i != 7)
            OK(forget_and_erase(e, &all[i]));
    pyri_settled one = settle(e), two = settle(e);
    CHECK(one.waiting == 0 && two.waiting == 0);
    uint64_t less = segment_bytes(path, &n);
    CHECK(less < 3 * (LARGE + PYRI_PAGE) + PYRI_PAGE);
    /* LMDB keeps what its last transactions freed. */
    CHECK(meta_bytes(path) < meta - (MANY - 6) * SMALL);
    CHECK(one.bytes + two.bytes >= data - less + (MANY - 6) * SMALL);
    CHECK(seen_now(e, &all[7]) == 2 && seen_now(e, &all[MANY - 1]) == 2);
    CHECK(settle(e).bytes < 64 << 10); /* there is nothing left to do */
    owned more = publish_owned(e); /* and all goes on */
    CHECK(seen_now(e, &more) == 2 && seen_now(e, &all[7]) == 2);
    pyri_engine_close(e);
    e = open_store(path);
    CHECK(seen_now(e, &more) == 2 && seen_now(e, &all[7]) == 2);
    pyri_engine_close(e);
}

static void
a_segment_in_which_nothing_is_left_is_removed(void)
{
    char path[PATH_MAX];
    owned all[3];
    int n;
    pyri_engine *e = store_with_array(path, "removed");
    for (int i = 0; i < 3; i++)
        all[i] = publish_owned(e);
    publish_nothing(e);
    for (int i = 0; i < 3; i++)
        OK(forget_and_erase(e, &all[i]));
    settle(e);
    segment_bytes(path, &n);
    CHECK(n == 1); /* this process appends to it */
    owned more = publish_owned(e);
    CHECK(seen_now(e, &more) == 2);
    publish_nothing(e);
    OK(forget_and_erase(e, &more));
    pyri_engine_close(e);
    e = open_store(path);
    settle(e);
    segment_bytes(path, &n);
    CHECK(n == 0);
    more = publish_owned(e);
    CHECK(seen_now(e, &more) == 2);
    pyri_engine_close(e);
}

/* --- readers elsewhere --------------------------------------------------- */

/* What processes tell each other; in shared memory. */
typedef struct board {
    char path[PATH_MAX];
    owned owned[4];
    atomic_int step;
} board;

static board *
new_board(const char *path)
{
    board *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(b != MAP_FAILED);
    snprintf(b->path, sizeof b->path, "%s", path);
    return b;
}

static bool
await(board *b, int step)
{
    for (int64_t end = now_ns() + INT64_C(600000000000); now_ns() < end;) {
        if (atomic_load(&b->step) >= step)
            return true;
        nap_ms(1);
    }
    return false;
}

/* Reads before and after the erasing, through one reader. */
static int
read_for_long(void *arg)
{
    board *b = arg;
    pyri_engine *e;
    pyri_reader *r;
    if (pyri_engine_local.open(b->path, PYR_OPEN_READONLY, NULL, &e) < 0 ||
        pyri_engine_begin(e, &r) < 0)
        return 1;
    int seen = count_seen(e, r, &b->owned[0]);
    atomic_store(&b->step, 1);
    if (!await(b, 2))
        return 2;
    /* The second was not looked at before. */
    int still = count_seen(e, r, &b->owned[0]) +
                count_seen(e, r, &b->owned[1]);
    pyri_engine_end(e, r);
    atomic_store(&b->step, 3);
    bool ended = await(b, 4);
    int after = seen_now(e, &b->owned[0]) + seen_now(e, &b->owned[1]);
    pyri_engine_close(e);
    return seen == 2 && still == 4 && ended && after == 0 ? 0 : 3;
}

static void
what_another_process_reads_stays_until_it_ends(void)
{
    char path[PATH_MAX];
    int n;
    pyri_engine *e = store_with_array(path, "reader");
    board *b = new_board(path);
    for (int i = 0; i < 3; i++)
        b->owned[i] = publish_owned(e);
    uint64_t before = segment_bytes(path, &n);
    pid_t child = proc_fork(read_for_long, b);
    REQUIRE(await(b, 1));
    OK(forget_and_erase(e, &b->owned[0]));
    OK(forget_and_erase(e, &b->owned[1]));
    CHECK(settle(e).waiting == 2 * LARGE);
    CHECK(settle(e).waiting == 2 * LARGE);
    CHECK(segment_bytes(path, &n) == before);
    atomic_store(&b->step, 2);
    REQUIRE(await(b, 3));
    pyri_settled last = settle(e);
    CHECK(last.waiting == 0 && last.bytes >= 2 * LARGE);
    CHECK(segment_bytes(path, &n) <= before - 2 * LARGE);
    atomic_store(&b->step, 4);
    CHECK(proc_ends_well(child, 600000));
    CHECK(seen_now(e, &b->owned[2]) == 2);
    pyri_engine_close(e);
    munmap(b, sizeof *b);
}

/* --- writers elsewhere --------------------------------------------------- */

static int
put_and_die(void *arg)
{
    board *b = arg;
    pyri_engine *e = open_store(b->path);
    b->owned[0].ticket = take_one(e);
    if (put_owned(e, &b->owned[0]) < 0 || put_owned(e, &b->owned[0]) < 0)
        return 1;
    kill(getpid(), SIGKILL);
    return 2;
}

static void
let_one_die(board *b)
{
    int status;
    waitpid(proc_fork(put_and_die, b), &status, 0);
    REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void
orphans_of_a_killed_writer_go(void)
{
    char path[PATH_MAX];
    int n;
    pyri_engine *e = store_with_array(path, "orphans");
    owned mine = publish_owned(e);
    board *b = new_board(path);
    uint64_t before = segment_bytes(path, &n);
    let_one_die(b);
    CHECK(segment_bytes(path, &n) >= before + 2 * LARGE && n == 2);
    CHECK(settle(e).bytes >= 2 * LARGE);
    CHECK(segment_bytes(path, &n) == before && n == 1);
    CHECK(seen_now(e, &mine) == 2);
    pyri_engine_close(e);
    munmap(b, sizeof *b);
}

static void
orphans_go_also_after_a_reader_came_and_went(void)
{
    char path[PATH_MAX];
    int n;
    pyri_engine *e = store_with_array(path, "passer-by");
    pyri_engine_close(e);
    board *b = new_board(path);
    let_one_die(b);
    e = open_at(path, PYR_OPEN_READONLY, PYR_DURABILITY_OS);
    pyri_engine_close(e);
    segment_bytes(path, &n);
    CHECK(n == 1);
    e = open_store(path);
    CHECK(settle(e).bytes >= 2 * LARGE);
    segment_bytes(path, &n);
    CHECK(n == 0);
    pyri_engine_close(e);
    munmap(b, sizeof *b);
}

/* A writer that takes a dead one's segment keeps what is named in it. */
static void
an_heir_clears_away_orphans_and_keeps_the_rest(void)
{
    char path[PATH_MAX];
    int n;
    pyri_engine *e = store_with_array(path, "heir");
    owned old = publish_owned(e);
    pyri_engine_close(e);
    board *b = new_board(path);
    uint64_t before = segment_bytes(path, &n);
    let_one_die(b); /* in the segment that was left */
    CHECK(segment_bytes(path, &n) >= before + 2 * LARGE && n == 1);
    e = open_store(path);
    pyri_ticket dead = {.array = ARRAY, .version = 2,
                        .shape = {fixture_shape[0], fixture_shape[1]}};
    OK(complete_one(e, &dead));
    owned mine = publish_owned(e);
    CHECK(mine.blobs[0].ref.a == old.blobs[0].ref.a);
    CHECK(segment_bytes(path, &n) <= before + LARGE + 8 * PYRI_PAGE && n == 1);
    CHECK(seen_now(e, &old) == 2 && seen_now(e, &mine) == 2);
    pyri_engine_close(e);
    munmap(b, sizeof *b);
}

static int
name_and_die(void *arg)
{
    board *b = arg;
    pyri_engine *e = open_store(b->path);
    b->owned[0].ticket = take_one(e);
    if (put_owned(e, &b->owned[0]) < 0)
        return 1;
    die_in_commit = 1;
    name_owned(e, &b->owned[0]);
    return 2;
}

static void
what_a_writer_named_as_it_died_is_no_orphan(void)
{
    for (int heir = 0; heir < 2; heir++) {
        char path[PATH_MAX];
        int status;
        pyri_engine *e = store_with_array(path, "last");
        board *b = new_board(path);
        waitpid(proc_fork(name_and_die, b), &status, 0);
        REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        owned mine = {.ticket = {.version = 9}};
        if (heir)
            OK(put_owned(e, &mine)); /* goes on in the dead one's segment */
        else
            settle(e);
        CHECK(latest_of(e) == 1 && seen_now(e, &b->owned[0]) == 2);
        pyri_engine_close(e);
        munmap(b, sizeof *b);
    }
}

/* Puts blobs and names them only when it is told to: in the segment that it
 * appends to, and in one that it filled. */
static int
name_late(void *arg)
{
    enum { PIECES = 128, PIECE = 8 << 20 };
    board *b = arg;
    static struct iovec iov[PIECES];
    uint8_t *bytes = malloc(PIECE);
    pyri_engine *e = open_store(b->path);
    b->owned[0].ticket = take_one(e);
    b->owned[1].ticket = take_one(e);
    if (!bytes || put_owned(e, &b->owned[0]) < 0)
        return 1;
    memset(bytes, (int)b->owned[1].ticket.version, PIECE);
    for (int i = 0; i < PIECES; i++)
        iov[i] = (struct iovec){bytes, PIECE};
    pyri_blob_put full = {.iov = iov, .niov = PIECES, .aligned = true,
                          .size = (uint64_t)PIECE * PIECES};
    if (put_owned(e, &b->owned[1]) < 0 ||
        pyri_engine_put_blobs(e, &full, 1) < 0)
        return 2;
    b->owned[1].blobs[0] = (pyri_blob){full.ref, LARGE}; /* of it, as much */
    atomic_store(&b->step, 1);
    if (!await(b, 2) || name_owned(e, &b->owned[0]) < 0 ||
        name_owned(e, &b->owned[1]) < 0 || seen_now(e, &b->owned[0]) != 2 ||
        seen_now(e, &b->owned[1]) != 2)
        return 3;
    free(bytes);
    pyri_engine_close(e);
    return 0;
}

static void
blobs_that_a_living_writer_has_yet_to_name_stay(void)
{
    char path[PATH_MAX];
    int n;
    pyri_engine *e = store_with_array(path, "late");
    board *b = new_board(path);
    pid_t child = proc_fork(name_late, b);
    REQUIRE(await(b, 1));
    uint64_t before = segment_bytes(path, &n);
    CHECK(n == 2);
    for (int i = 0; i < 3; i++)
        settle(e);
    CHECK(segment_bytes(path, &n) == before && n == 2);
    atomic_store(&b->step, 2);
    CHECK(proc_ends_well(child, 600000));
    CHECK(seen_now(e, &b->owned[0]) == 2 && seen_now(e, &b->owned[1]) == 2);
    publish_nothing(e);
    OK(forget_and_erase(e, &b->owned[1]));
    settle(e); /* the full segment has nothing else: it goes whole */
    CHECK(segment_bytes(path, &n) < 4 * LARGE && n == 1);
    CHECK(seen_now(e, &b->owned[0]) == 2);
    pyri_engine_close(e);
    munmap(b, sizeof *b);
    tmp_remove(path);
}

/* Writes and erases its own, while the parent settles. */
static int
write_and_erase(void *arg)
{
    board *b = arg;
    pyri_engine *e = open_store(b->path);
    owned kept[4], last = {.blobs = {{{0}}}};
    int nkept = 0, bad = 0;
    for (int i = 0; i < 60 && !bad; i++) {
        owned o = {.ticket = take_one(e)};
        bad += put_owned(e, &o) < 0 || name_owned(e, &o) < 0;
        bad += pyri_engine_wait(e, ARRAY, o.ticket.version, 600000) < 0;
        if (i % 15 == 7)
            kept[nkept++] = o;
        else if (last.ticket.version)
            bad += forget_and_erase(e, &last) < 0;
        if (i % 15 != 7)
            last = o;
        bad += seen_now(e, &last) != 2;
        for (int k = 0; k < nkept; k++)
            bad += seen_now(e, &kept[k]) != 2;
    }
    atomic_fetch_add(&b->step, 1);
    pyri_engine_close(e);
    return bad != 0;
}

static void
settling_beside_writers_harms_none(void)
{
    enum { CREW = 3 };
    char path[PATH_MAX];
    pid_t crew[CREW];
    pyri_engine *e = store_with_array(path, "beside");
    board *b = new_board(path);
    for (int i = 0; i < CREW; i++)
        crew[i] = proc_fork(write_and_erase, b);
    int64_t end = now_ns() + INT64_C(600000000000);
    int n;
    while (atomic_load(&b->step) < CREW && now_ns() < end)
        settle(e);
    for (int i = 0; i < CREW; i++)
        CHECK(proc_ends_well(crew[i], 600000));
    settle(e);
    CHECK(settle(e).waiting == 0);
    /* Each kept four, and one was its last. */
    CHECK(segment_bytes(path, &n) <
          (CREW * 6) * (uint64_t)(LARGE + PYRI_PAGE) + 8 * PYRI_PAGE);
    pyri_engine_close(e);
    munmap(b, sizeof *b);
}

/* --- dying half-way ------------------------------------------------------ */

#ifdef PYRI_FAULTS
static const char *fatal;

static int
die_there(const char *name)
{
    if (strcmp(name, fatal) == 0)
        kill(getpid(), SIGKILL);
    return 0;
}

static int
erase_and_die(void *arg)
{
    board *b = arg;
    pyri_engine *e = open_store(b->path);
    pyri_settled out;
    pyri_fault_hook = die_there;
    if (forget_and_erase(e, &b->owned[0]) < 0 || try_settle(e, &out) < 0)
        return 1;
    return 2;
}

static void
who_dies_while_erasing_or_settling_leaves_it_to_the_next(void)
{
    static const char *const points[] = {"erase.commit", "erase.done",
                                         "settle.punched"};
    for (int i = 0; i < 3; i++) {
        char path[PATH_MAX];
        int status, n;
        pyri_engine *e = store_with_array(path, "half-way");
        board *b = new_board(path);
        b->owned[0] = publish_owned(e);
        owned last = publish_owned(e);
        fatal = points[i];
        waitpid(proc_fork(erase_and_die, b), &status, 0);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        if (i == 0) /* nothing of it happened but the mark */
            CHECK(seen_now(e, &b->owned[0]) == 2);
        OK(forget_and_erase(e, &b->owned[0]));
        settle(e);
        CHECK(settle(e).waiting == 0);
        CHECK(segment_bytes(path, &n) < LARGE + 3 * PYRI_PAGE && n == 1);
        CHECK(seen_now(e, &last) == 2);
        if (check_failures)
            printf("# when killed at %s\n", points[i]);
        pyri_engine_close(e);
        munmap(b, sizeof *b);
    }
}
#endif

/* --- after a restart of the machine -------------------------------------- */

static void
restart_machine(const char *path)
{
    REQUIRE(tmp_write_file(inside(path, "live/boot"), "boot of yesterday\n"));
}

static void
old_segments_are_looked_through_after_a_restart(void)
{
    char path[PATH_MAX];
    int n;
    pyri_engine *e = store_with_array(path, "restart");
    owned kept = publish_owned(e), lost = {.ticket = take_one(e)};
    OK(put_owned(e, &lost)); /* and never named */
    pyri_engine_close(e);
    uint64_t before = segment_bytes(path, &n);
    restart_machine(path);
    e = open_store(path);
    owned more = publish_owned(e);
    CHECK(more.blobs[0].ref.a != kept.blobs[0].ref.a);
    CHECK(settle(e).bytes >= LARGE);
    CHECK(segment_bytes(path, &n) < before + 3 * PYRI_PAGE && n == 2);
    CHECK(seen_now(e, &kept) == 2 && seen_now(e, &more) == 2);
    CHECK(settle(e).bytes < 64 << 10);
    pyri_engine_close(e);
}

static int
count_blob(void *ctx, const pyri_blob *blob, uint64_t array, uint64_t version)
{
    (void)blob;
    (void)array;
    *(uint64_t *)ctx += version;
    return 0;
}

static void
blobs_of_unpublished_versions_go_after_a_restart(void)
{
    char path[PATH_MAX];
    pyri_reader *r;
    uint64_t sum = 0;
    int n;
    pyri_engine *e = store_with_array(path, "unpublished");
    owned one = publish_owned(e);
    owned gap = {.ticket = take_one(e)}, above = {.ticket = take_one(e)};
    OK(put_owned(e, &above));
    OK(name_owned(e, &above)); /* complete, but version 2 is not */
    CHECK(gap.ticket.version == 2 && latest_of(e) == 1);
    pyri_engine_close(e);
    restart_machine(path);
    e = open_store(path);
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_scan_blobs(e, r, count_blob, &sum));
    pyri_engine_end(e, r);
    CHECK(sum == 2); /* version 1 has two */
    settle(e);
    CHECK(segment_bytes(path, &n) < LARGE + 3 * PYRI_PAGE && n == 1);
    CHECK(seen_now(e, &one) == 2 && seen_now(e, &above) == 0);
    CHECK(take_one(e).version == 2);
    pyri_engine_close(e);
}

TESTS(T(erased_bytes_go_back_to_the_system),
      T(a_segment_in_which_nothing_is_left_is_removed),
      T(what_another_process_reads_stays_until_it_ends),
      T(orphans_of_a_killed_writer_go),
      T(orphans_go_also_after_a_reader_came_and_went),
      T(an_heir_clears_away_orphans_and_keeps_the_rest),
      T(what_a_writer_named_as_it_died_is_no_orphan),
      T(blobs_that_a_living_writer_has_yet_to_name_stay),
      T(settling_beside_writers_harms_none),
#ifdef PYRI_FAULTS
      T(who_dies_while_erasing_or_settling_leaves_it_to_the_next),
#endif
      T(old_segments_are_looked_through_after_a_restart),
      T(blobs_of_unpublished_versions_go_after_a_restart))
