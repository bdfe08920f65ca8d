/*
 * Completions for other processes: letters as bytes, and a mailbox that lies
 * between two of them.
 */
#include "engine/local/mailbox.h"

#include "base/hash.h"
#include "engine/local/env.h"
#include "engine/local/tests/fixture.h"
#include "support/rng.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { BOUND_MS = 120000 };

/* As engine/local/local.c has it. */
typedef struct handle {
    pyri_engine base;
    pyri_site *site;
} handle;

static pyri_site *
site_of(pyri_engine *e)
{
    return ((handle *)e)->site;
}

static char path[PATH_MAX];

enum { USUAL = 10, LONG = 400, ENDLESS = 1 << 26 }; /* patience */

static pyri_engine *
fresh(void)
{
    proc_kill_all();
    pyri_mailbox_patience = USUAL;
    snprintf(path, sizeof path, "%s", tmp_fresh("mailbox"));
    pyri_engine *e = open_synced(path);
    make_array(e);
    return e;
}

/* --- letters ------------------------------------------------------------- */

static const pyri_postmark mark = {0x1234567890abcdef, 77};

/* Two requests, with nodes, a small blob and a large one. */
typedef struct sample {
    uint64_t shape[2];
    pyri_node_put nodes[3];
    pyri_blob blobs[2];
    pyri_complete c[2];
    pyri_request r[2];
} sample;

static void
make_sample(pyri_engine *e, sample *x)
{
    static const char keys[] = "one key, another key, a third key";
    *x = (sample){.shape = {10, 20}};
    for (int i = 0; i < 3; i++)
        x->nodes[i] = (pyri_node_put){{keys + 9 * i, 7 + (size_t)i},
                                      {keys + 5 * i, 20 - (size_t)i}};
    OK(put_bytes(e, "small bytes", 11, false, &x->blobs[0].ref));
    x->blobs[0].size = 11;
    x->blobs[1] = (pyri_blob){{3, 4096}, 100000};
    x->c[0] = (pyri_complete){.array = 7, .version = 8, .shape = x->shape,
                              .nodes = x->nodes, .nnodes = 2,
                              .blobs = x->blobs, .nblobs = 2,
                              .record = {"a record", 8}, .family = 5,
                              .folds = 6};
    x->c[1] = (pyri_complete){.array = 9, .version = 1, .shape = x->shape,
                              .nodes = x->nodes + 2, .nnodes = 1};
    for (int i = 0; i < 2; i++)
        x->r[i] = (pyri_request){.c = &x->c[i], .ndim = 2};
    x->r[0].next = &x->r[1];
}

static bool
same_bytes(pyri_bytes a, pyri_bytes b)
{
    return a.size == b.size && (!a.size || !memcmp(a.data, b.data, a.size));
}

static void
check_same(const pyri_request *a, const pyri_request *b)
{
    const pyri_complete *x = a->c, *y = b->c;
    REQUIRE(x->nnodes == y->nnodes && x->nblobs == y->nblobs);
    CHECK(x->array == y->array && x->version == y->version);
    CHECK(x->family == y->family && x->folds == y->folds);
    CHECK(a->ndim == b->ndim && x->shape[1] == y->shape[1]);
    CHECK(same_bytes(x->record, y->record));
    for (size_t i = 0; i < x->nnodes; i++)
        CHECK(same_bytes(x->nodes[i].key, y->nodes[i].key) &&
              same_bytes(x->nodes[i].value, y->nodes[i].value));
    for (size_t i = 0; i < x->nblobs; i++)
        CHECK(memcmp(&x->blobs[i], &y->blobs[i], sizeof x->blobs[i]) == 0);
}

static void
a_letter_is_read_as_it_was_written(void)
{
    static uint8_t bytes[PYRI_LETTER_SIZE];
    pyri_engine *e = fresh();
    sample x;
    pyri_letter *l;
    make_sample(e, &x);
    size_t size = pyri_letter_write(site_of(e), x.r, mark, bytes,
                                    sizeof bytes);
    REQUIRE(size > 0 && size < 500);
    OK(pyri_letter_read(bytes, sizeof bytes, mark, &l));
    CHECK(l->n == 2);
    check_same(l->requests, x.r);
    check_same(l->requests->next, x.r + 1);
    CHECK(l->requests->next->next == NULL);
    CHECK(same_bytes(l->requests->small[0], (pyri_bytes){"small bytes", 11}));
    CHECK(l->requests->small[1].data == NULL);
    free(l);
    CHECK(pyri_letter_write(site_of(e), x.r, mark, bytes, size) == size);
    CHECK(pyri_letter_write(site_of(e), x.r, mark, bytes, size - 1) == 0);
    pyri_small_drop(site_of(e), x.blobs[0].ref);
    CHECK(pyri_letter_write(site_of(e), x.r, mark, bytes, sizeof bytes) == 0);
    pyri_engine_close(e);
}

static void
too_many_requests_are_no_letter(void)
{
    static pyri_request r[PYRI_LETTER_REQUESTS + 1];
    static uint8_t bytes[PYRI_LETTER_SIZE];
    pyri_engine *e = fresh();
    pyri_complete c = {.array = 7, .version = 1, .shape = fixture_shape};
    for (int i = 0; i <= PYRI_LETTER_REQUESTS; i++)
        r[i] = (pyri_request){.c = &c, .ndim = 2,
                              .next = i < PYRI_LETTER_REQUESTS ? &r[i + 1]
                                                               : NULL};
    CHECK(pyri_letter_write(site_of(e), r, mark, bytes, sizeof bytes) == 0);
    CHECK(pyri_letter_write(site_of(e), r + 1, mark, bytes, sizeof bytes) > 0);
    pyri_engine_close(e);
}

/* Every byte, cut off anywhere, or of another owner. */
static void
a_damaged_letter_is_refused(void)
{
    static uint8_t bytes[PYRI_LETTER_SIZE];
    pyri_engine *e = fresh();
    sample x;
    pyri_letter *l;
    make_sample(e, &x);
    size_t size = pyri_letter_write(site_of(e), x.r, mark, bytes,
                                    sizeof bytes);
    REQUIRE(size > 0);
    for (size_t i = 0; i < 8 * size; i++) {
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        FAILS(PYR_ECORRUPT, pyri_letter_read(bytes, sizeof bytes, mark, &l));
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    for (size_t room = 40; room < size; room++)
        FAILS(PYR_ECORRUPT, pyri_letter_read(bytes, room, mark, &l));
    pyri_postmark other = mark;
    other.number++;
    FAILS(PYR_ECORRUPT, pyri_letter_read(bytes, sizeof bytes, other, &l));
    other = mark;
    other.owner++;
    FAILS(PYR_ECORRUPT, pyri_letter_read(bytes, sizeof bytes, other, &l));
    FAILS(PYR_ECORRUPT, pyri_answer_read(bytes, mark, x.r));
    OK(pyri_letter_read(bytes, sizeof bytes, mark, &l));
    free(l);
    pyri_engine_close(e);
}

/* With sums that fit: lengths must not be believed all the same. */
static void
a_letter_with_wrong_lengths_is_refused_or_is_whole(void)
{
    static uint8_t good[PYRI_LETTER_SIZE], bytes[PYRI_LETTER_SIZE];
    pyri_engine *e = fresh();
    sample x;
    pyri_letter *l;
    rng random = rng_of(test_seed());
    make_sample(e, &x);
    size_t size = pyri_letter_write(site_of(e), x.r, mark, good, sizeof good);
    int refused = 0;
    for (int i = 0; i < 20000; i++) {
        memcpy(bytes, good, size);
        for (uint64_t n = rng_from(&random, 1, 3); n > 0; n--)
            bytes[rng_from(&random, 24, size - 1)] =
                (uint8_t)(rng_below(&random, 3) ? rng_below(&random, 40)
                                                : rng_next(&random));
        pyri_store64(bytes, pyri_hash64(bytes + 8, size - 8));
        if (pyri_letter_read(bytes, sizeof bytes, mark, &l) < 0) {
            refused++;
            continue;
        }
        uint64_t sum = 0; /* all of it can be read */
        for (pyri_request *r = l->requests; r; r = r->next) {
            for (size_t k = 0; k < r->c->nnodes; k++)
                sum += pyri_hash64(r->c->nodes[k].value.data,
                                   r->c->nodes[k].value.size);
            for (size_t k = 0; k < r->c->nblobs; k++)
                sum += pyri_hash64(r->small[k].data, r->small[k].size);
            sum += pyri_hash64(r->c->record.data, r->c->record.size);
        }
        CHECK(sum != 1);
        free(l);
    }
    CHECK(refused > 1000);
    pyri_engine_close(e);
}

static void
an_answer_is_read_as_it_was_written_or_refused(void)
{
    static uint8_t bytes[PYRI_LETTER_SIZE];
    pyri_engine *e = fresh();
    sample x;
    pyri_letter *l;
    make_sample(e, &x);
    REQUIRE(pyri_letter_write(site_of(e), x.r, mark, bytes, sizeof bytes));
    OK(pyri_letter_read(bytes, sizeof bytes, mark, &l));
    l->requests[0].c->latest = 12;
    l->requests[0].before = 11;
    l->requests[1].err = PYR_EFENCED;
    snprintf(l->requests[1].text, sizeof l->requests[1].text, "too late");
    pyri_answer_write(l, bytes);
    OK(pyri_answer_read(bytes, mark, x.r));
    CHECK(x.r[0].err == 0 && x.c[0].latest == 12 && x.r[0].before == 11);
    CHECK(x.r[1].err == PYR_EFENCED && !strcmp(x.r[1].text, "too late"));
    size_t size = pyri_load32(bytes + 8);
    for (size_t i = 0; i < 8 * size; i++) {
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        FAILS(PYR_ECORRUPT, pyri_answer_read(bytes, mark, x.r));
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    FAILS(PYR_ECORRUPT, pyri_answer_read(bytes, mark, x.r + 1));
    pyri_postmark other = {mark.owner, mark.number - 1};
    FAILS(PYR_ECORRUPT, pyri_answer_read(bytes, other, x.r));
    free(l);
    pyri_engine_close(e);
}

/* --- between processes --------------------------------------------------- */

enum { HEAD = 24, SLOT = 16, SLOTS = 32, PENDING = 2, TAKEN = 4 };

/* The slots that are in this state, as the file says. */
static int
count_slots(uint32_t state)
{
    uint8_t bytes[HEAD + SLOTS * SLOT] = {0};
    int fd = open(inside(path, "live/mailbox"), O_RDONLY), n = 0;
    REQUIRE(fd >= 0 && pread(fd, bytes, sizeof bytes, 0) == sizeof bytes);
    close(fd);
    for (int i = 0; i < SLOTS; i++)
        n += pyri_load32(bytes + HEAD + i * SLOT) % 8 == state;
    return n;
}

static void
wait_for_slots(uint32_t state, int n)
{
    int64_t bound = now_ns() + (int64_t)BOUND_MS * 1000000;
    while (count_slots(state) < n && now_ns() < bound)
        nap_ms(1);
    REQUIRE(count_slots(state) == n);
}

/* A child: take a version, with a small blob, and complete it. If `arg` is not
 * NULL, it points to what is to be the newest version then. */
static int
take_and_complete(void *arg)
{
    const uint64_t *latest = arg;
    pyri_engine *e = open_synced(path);
    pyri_ticket t = take_one(e);
    uint8_t key[20] = {0}, value[8];
    pyri_blob blob = {.size = 3000};
    static uint8_t bytes[3000];
    memset(bytes, (int)t.version, sizeof bytes);
    OK(put_bytes(e, bytes, sizeof bytes, false, &blob.ref));
    pyri_store64_be(key, t.array);
    pyri_store64_be(key + 8, t.version);
    pyri_store64(value, t.version);
    pyri_node_put node = {{key, sizeof key}, {value, sizeof value}};
    pyri_complete c = {.array = t.array, .version = t.version,
                       .shape = t.shape, .nodes = &node, .nnodes = 1,
                       .blobs = &blob, .nblobs = 1, .record = {"record", 6}};
    OK(pyri_engine_complete(e, &c));
    CHECK(!latest || c.latest == *latest);
    CHECK(has_node_of(e, t.version));
    CHECK(holds(e, blob.ref, bytes, sizeof bytes));
    pyri_engine_close(e);
    return check_failures ? 1 : 0;
}

static uint64_t
commits(pyri_engine *e)
{
    MDB_envinfo info;
    REQUIRE(mdb_env_info(site_of(e)->meta, &info) == 0);
    return info.me_last_txnid;
}

static void
those_who_wait_share_one_transaction(void)
{
    enum { N = 5 };
    pid_t pid[N];
    uint64_t latest = N;
    pyri_engine *e = fresh();
    pyri_mailbox_patience = ENDLESS;
    pyri_request none = {0};
    CHECK(!pyri_mailbox_enter(site_of(e), &none)); /* nobody else is there */
    for (int i = 0; i < N; i++)
        pid[i] = proc_fork(take_and_complete, &latest);
    wait_for_slots(PENDING, N);
    uint64_t before = commits(e);
    pyri_mailbox_leave(site_of(e));
    for (int i = 0; i < N; i++)
        CHECK(proc_ends_well(pid[i], BOUND_MS));
    CHECK(commits(e) == before + 1);
    CHECK(latest_of(e) == N && count_slots(0) == SLOTS);
    pyri_engine_close(e);
}

/* In a child that others wait for: takes the letters of two. */
static int
take_letters_and(void *arg)
{
    const char *then = arg;
    pyri_engine *e = open_synced(path);
    pyri_request none = {0};
    pyri_txn *txn;
    CHECK(!pyri_mailbox_enter(site_of(e), &none));
    wait_for_slots(PENDING, 2);
    OK(pyri_env_write(site_of(e)->meta, &txn));
    pyri_letter *l = pyri_mailbox_take(site_of(e));
    CHECK(l && l->next && !l->next->next);
    CHECK(count_slots(TAKEN) == 2);
    pyri_env_abort(txn);
    pyri_mailbox_answer(site_of(e), NULL, false); /* not inside any more */
    if (!strcmp(then, "die"))
        kill(getpid(), SIGKILL);
    if (!strcmp(then, "stop"))
        kill(getpid(), SIGSTOP);
    pyri_mailbox_answer(site_of(e), l, false);
    pyri_mailbox_leave(site_of(e));
    pyri_engine_close(e);
    return check_failures ? 1 : 0;
}

static bool
somebody_is_busy(void)
{
    uint8_t busy[8] = {0};
    int fd = open(inside(path, "live/mailbox"), O_RDONLY);
    REQUIRE(fd >= 0 && pread(fd, busy, sizeof busy, 0) == sizeof busy);
    close(fd);
    return pyri_load64(busy) != 0;
}

/* A leader that does not do its work, and then this; two who wait for it. */
static pid_t
rely_on_one_who(const char *then)
{
    pid_t leader = proc_fork(take_letters_and, (void *)(uintptr_t)then);
    int64_t bound = now_ns() + (int64_t)BOUND_MS * 1000000;
    while (!somebody_is_busy() && now_ns() < bound)
        nap_ms(1);
    pid_t a = proc_fork(take_and_complete, NULL);
    pid_t b = proc_fork(take_and_complete, NULL);
    CHECK(proc_ends_well(a, BOUND_MS));
    CHECK(proc_ends_well(b, BOUND_MS));
    return leader;
}

static void
letters_that_are_handed_back_are_done_by_their_owners(void)
{
    pyri_engine *e = fresh();
    pyri_mailbox_patience = ENDLESS;
    CHECK(proc_ends_well(rely_on_one_who("hand back"), BOUND_MS));
    CHECK(latest_of(e) == 2);
    pyri_engine_close(e);
}

static void
letters_that_a_dead_one_took_are_done_by_their_owners(void)
{
    pyri_engine *e = fresh();
    pyri_mailbox_patience = ENDLESS;
    CHECK(proc_wait(rely_on_one_who("die"), BOUND_MS).signal == SIGKILL);
    CHECK(latest_of(e) == 2);
    pyri_engine_close(e);
}

static void
letters_that_a_stopped_one_took_are_done_by_their_owners(void)
{
    pyri_engine *e = fresh();
    pyri_mailbox_patience = LONG;
    pid_t leader = rely_on_one_who("stop");
    CHECK(proc_wait(leader, BOUND_MS).stopped);
    CHECK(latest_of(e) == 2);
    kill(leader, SIGCONT); /* and answers, far too late */
    CHECK(proc_ends_well(leader, BOUND_MS));
    CHECK(proc_ends_well(proc_fork(take_and_complete, NULL), BOUND_MS));
    CHECK(latest_of(e) == 3);
    pyri_engine_close(e);
}

static void
one_who_is_busy_and_does_nothing_is_not_waited_for_long(void)
{
    pyri_engine *e = fresh();
    pyri_request none = {0};
    CHECK(!pyri_mailbox_enter(site_of(e), &none));
    CHECK(proc_ends_well(proc_fork(take_and_complete, NULL), BOUND_MS));
    pyri_mailbox_leave(site_of(e));
    CHECK(latest_of(e) == 1);
    pyri_engine_close(e);
}

/* Files cannot grow to where the first letter would end. */
static int
complete_without_room(void *arg)
{
    struct rlimit limit = {96 << 10, 96 << 10};
    signal(SIGXFSZ, SIG_IGN);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    return take_and_complete(arg);
}

static void
without_room_for_a_letter_all_goes_as_if_there_were_no_mailbox(void)
{
    pyri_engine *e = fresh();
    pyri_mailbox_patience = ENDLESS;
    pyri_request none = {0};
    struct stat st;
    CHECK(!pyri_mailbox_enter(site_of(e), &none)); /* and does not leave */
    CHECK(proc_ends_well(proc_fork(complete_without_room, NULL), BOUND_MS));
    CHECK(latest_of(e) == 1);
    CHECK(stat(inside(path, "live/mailbox"), &st) == 0 && st.st_size == 4096);
    pyri_mailbox_leave(site_of(e));
    pyri_engine_close(e);
}

/* --- what a dead one asked for ------------------------------------------- */

/* Its letter may be stored or not, until its segments are swept: then it never
 * is. */
static void
letters_of_the_dead_are_dropped_before_their_segments_are_swept(void)
{
    pyri_engine *e = fresh();
    pyri_mailbox_patience = ENDLESS;
    pyri_request none = {0};
    pyri_txn *txn;
    CHECK(!pyri_mailbox_enter(site_of(e), &none));
    OK(pyri_env_write(site_of(e)->meta, &txn));
    pid_t pid = proc_fork(take_and_complete, NULL);
    wait_for_slots(PENDING, 1);
    kill(pid, SIGKILL);
    CHECK(proc_wait(pid, BOUND_MS).signal == SIGKILL);
    CHECK(count_slots(PENDING) == 1);
    OK(pyri_mailbox_drop_dead(site_of(e)));
    CHECK(count_slots(PENDING) == 0);
    CHECK(pyri_mailbox_take(site_of(e)) == NULL);
    pyri_env_abort(txn);
    pyri_mailbox_leave(site_of(e));
    pyri_engine_close(e);
}

/* --- garbage ------------------------------------------------------------- */

static void
garbage_in_the_mailbox_harms_nobody(void)
{
    enum { N = 3, BYTES = 4096 + (128 << 10) };
    static uint8_t bytes[BYTES];
    rng random = rng_of(test_seed());
    uint64_t done = 0;
    for (int round = 0; round < 12; round++) {
        pyri_engine *e = fresh();
        pid_t pid[N];
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)rng_next(&random);
        if (round % 3 == 1) /* words that have a meaning */
            for (int i = 0; i < SLOTS; i++)
                pyri_store64(bytes + HEAD + i * SLOT,
                             rng_below(&random, 8));
        int fd = open(inside(path, "live/mailbox"), O_RDWR);
        size_t size = round % 2 ? sizeof bytes : 4096;
        REQUIRE(fd >= 0 && pwrite(fd, bytes, size, 0) == (ssize_t)size);
        close(fd);
        for (int i = 0; i < N; i++)
            pid[i] = proc_fork(take_and_complete, NULL);
        for (int i = 0; i < N; i++)
            done += proc_ends_well(pid[i], BOUND_MS);
        CHECK(latest_of(e) == N);
        OK(pyri_mailbox_drop_dead(site_of(e)));
        pyri_engine_close(e);
    }
    CHECK(done == 12 * N);
}

TESTS(T(a_letter_is_read_as_it_was_written),
      T(too_many_requests_are_no_letter), T(a_damaged_letter_is_refused),
      T(a_letter_with_wrong_lengths_is_refused_or_is_whole),
      T(an_answer_is_read_as_it_was_written_or_refused),
      T(those_who_wait_share_one_transaction),
      T(letters_that_are_handed_back_are_done_by_their_owners),
      T(letters_that_a_dead_one_took_are_done_by_their_owners),
      T(letters_that_a_stopped_one_took_are_done_by_their_owners),
      T(one_who_is_busy_and_does_nothing_is_not_waited_for_long),
      T(without_room_for_a_letter_all_goes_as_if_there_were_no_mailbox),
      T(letters_of_the_dead_are_dropped_before_their_segments_are_swept),
      T(garbage_in_the_mailbox_harms_nobody))
