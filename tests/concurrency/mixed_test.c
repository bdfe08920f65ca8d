/*
 * concurrency/mixed_test.c - all ways to make a version at once: boxes, lists,
 * strided runs, batches, appends and resizes, by threads of several processes,
 * which may be killed, while another forgets, reclaims and verifies.
 *
 * Each deed follows from its writer and number, and can be told from the
 * version: by the message, or, of an append, by its first cell. What the
 * version's entry in the history says is noted before it is forgotten. In the
 * end all versions are replayed, and those that are kept are compared.
 */
#include "support/check.h"
#include "support/model.h"
#include "support/rng.h"
#include "support/tmp_store.h"

#include <pyramid/pyramid.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum {
    COLUMNS = 10,
    LEAST = 8, /* rows there always are */
    MOST = 40,
    PARTS = 3,
    DEEDS = 1 << 12,
    WRITERS = 1 << 8,
    VERSIONS = 1 << 17,
    CREW = 3,
    THREADS = 2,
    BOUND = 300000
};

/* --- deeds --------------------------------------------------------------- */

typedef enum way { BOX, LIST, RUN, BATCH, APPEND, RESIZE, NWAYS } way;

typedef struct deed {
    way way;
    bool nowait;
    bool far; /* may be out of bounds when it comes to it */
    size_t n;
    uint64_t at[PARTS][2], size[PARTS][2], count[2], stride[2];
    uint64_t rows; /* of APPEND and RESIZE */
    pyr_part parts[PARTS];
    uint32_t cells[PARTS][MOST * COLUMNS];
    char message[32];
} deed;

static void
make_part(deed *d, rng *r, size_t i, uint32_t name)
{
    uint64_t room[2] = {d->far ? MOST : LEAST, COLUMNS}, n = 1;
    for (int k = 0; k < 2; k++) {
        d->at[i][k] = rng_below(r, room[k]);
        d->size[i][k] = rng_from(r, 1, room[k] - d->at[i][k]);
        if (d->way == RUN) {
            d->stride[k] = rng_from(r, 1, 3);
            d->count[k] = (d->size[i][k] - 1) / d->stride[k] + 1;
            d->size[i][k] = 1;
            n *= d->count[k];
        }
        n *= d->size[i][k];
    }
    for (uint64_t c = 0; c < n; c++)
        d->cells[i][c] = name + (uint32_t)(c & 0xfff);
    d->parts[i] = (pyr_part){.offset = d->at[i], .size = d->size[i],
                             .count = d->way == RUN ? d->count : NULL,
                             .stride = d->way == RUN ? d->stride : NULL,
                             .buf = d->cells[i]};
}

static void
make_deed(deed *d, uint32_t writer, uint32_t seq)
{
    rng r = rng_of(test_seed() ^ rng_mix(writer * UINT64_C(100003) + seq));
    uint32_t name = writer << 24 | seq << 12;
    *d = (deed){.way = (way)rng_below(&r, NWAYS)};
    d->nowait = rng_once_in(&r, 4);
    d->far = rng_once_in(&r, 4);
    d->n = d->way == LIST || d->way == BATCH ? PARTS : 1;
    d->rows = d->way == APPEND ? rng_from(&r, 1, 3) : rng_from(&r, LEAST, MOST);
    for (size_t i = 0; i < d->n; i++)
        make_part(d, &r, i, name);
    for (uint32_t c = 0; d->way == APPEND && c < d->rows * COLUMNS; c++)
        d->cells[0][c] = name + c;
    snprintf(d->message, sizeof d->message, "w%" PRIu32 " s%" PRIu32, writer,
             seq);
}

static int
do_batch(pyr_array *a, const deed *d, const pyr_write_options *o,
         pyr_version *made)
{
    pyr_batch *batch;
    int err = pyr_batch_begin(a, &batch);
    if (err < 0)
        return err;
    for (size_t i = 0; i < d->n && err == 0; i++)
        err = pyr_batch_write(batch, d->at[i], d->size[i], d->cells[i]);
    if (err == 0)
        return pyr_batch_commit(batch, o, made);
    pyr_batch_abort(batch);
    return err;
}

static int
do_deed(pyr_array *a, const deed *d, pyr_version *made)
{
    pyr_write_options o = {.message = d->message,
                           .flags = d->nowait ? PYR_WRITE_NOWAIT : 0};
    switch (d->way) {
    case APPEND: return pyr_append(a, 0, d->rows, d->cells[0], NULL, made);
    case RESIZE:
        return pyr_resize(a, (uint64_t[2]){d->rows, COLUMNS}, made);
    case BATCH: return do_batch(a, d, &o, made);
    default: return pyr_write_list(a, d->parts, d->n, &o, made);
    }
}

/* --- what all processes share -------------------------------------------- */

typedef struct line {
    _Atomic uint32_t over; /* 1: has returned */
    int32_t err;
    uint64_t version;
} line;

/* A version, as the history has it; kind 0: not known yet. */
typedef struct note {
    bool known;
    pyr_kind kind;
    uint32_t writer, seq; /* of writes and appends */
    uint64_t rows;
} note;

typedef struct board {
    char url[4096];
    atomic_bool over;
    uint32_t deeds;
    uint64_t forgotten;
    line lines[WRITERS][DEEDS];
    note notes[VERSIONS];
} board;

static board *b;

/* --- writers ------------------------------------------------------------- */

typedef struct worker {
    pyr_array *array;
    uint32_t writer;
    char error[300];
    pthread_t thread;
} worker;

static void *
work(void *arg)
{
    worker *w = arg;
    deed *d = malloc(sizeof *d);
    for (uint32_t i = 0; d && i < b->deeds && !w->error[0]; i++) {
        line *l = &b->lines[w->writer][i];
        make_deed(d, w->writer, i);
        l->err = do_deed(w->array, d, &l->version);
        if (l->err < 0 && !(d->far && l->err == PYR_EBOUNDS))
            snprintf(w->error, sizeof w->error, "%s", pyr_errmsg());
        atomic_store(&l->over, 1);
    }
    free(d);
    return NULL;
}

static int
run_writer(void *arg)
{
    uint32_t first = *(uint32_t *)arg;
    worker w[THREADS] = {{0}};
    pyr_store *store;
    pyr_array *array;
    int code = 0;
    if (pyr_open(b->url, 0, &store) < 0 ||
        pyr_array_open(store, "m", &array) < 0)
        return 1;
    for (uint32_t i = 0; i < THREADS; i++) {
        w[i] = (worker){.array = array, .writer = first + i};
        pthread_create(&w[i].thread, NULL, work, &w[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(w[i].thread, NULL);
        if (w[i].error[0])
            code = 3, printf("# %s\n", w[i].error);
    }
    pyr_array_close(array);
    pyr_close(store);
    return code;
}

/* --- who keeps house ----------------------------------------------------- */

static int
note_change(void *ctx, const pyr_change *c)
{
    pyr_array *a = ctx;
    note n = {.known = true, .kind = c->kind, .rows = c->shape[0]};
    uint32_t cell;
    int err = 0;
    if (c->version >= VERSIONS)
        return 99;
    if (c->kind == PYR_KIND_WRITE &&
        sscanf(c->message, "w%" SCNu32 " s%" SCNu32, &n.writer, &n.seq) != 2)
        return 98;
    if (c->kind == PYR_KIND_APPEND) {
        err = pyr_read(a, c->version, c->parts[0].offset,
                       (uint64_t[2]){1, 1}, &cell);
        n.writer = cell >> 24;
        n.seq = cell >> 12 & 0xfff;
    }
    if (err == 0)
        b->notes[c->version] = n;
    return err;
}

static int
keep_once(pyr_store *store, pyr_array *array, rng *r, pyr_version *known)
{
    pyr_version latest;
    pyr_reclaimed gone;
    pyr_verified seen = {0};
    uint64_t n = 0;
    int err = pyr_latest(array, &latest);
    if (err == 0 && latest > *known)
        err = pyr_history(array, *known + 1, latest, note_change, array);
    *known = latest;
    if (err == 0 && latest > 8) {
        pyr_version first = rng_below(r, latest);
        pyr_version last = first + rng_below(r, latest - first);
        uint64_t keep = rng_below(r, 30);
        if (first < last) /* one alone could be among those to keep */
            err = pyr_forget(array, first, last, keep, 0, &n);
        b->forgotten += n;
    }
    if (err == 0 && rng_once_in(r, 3))
        err = pyr_reclaim(store, NULL, &gone);
    if (err == 0 && rng_once_in(r, 8))
        err = pyr_verify(store, &(pyr_verify_spec){.deep = 1}, &seen);
    return err ? err : seen.harms ? 97 : 0;
}

static int
run_keeper(void *arg)
{
    pyr_store *store;
    pyr_array *array;
    pyr_version known = 0;
    rng r = rng_of(test_seed() + 1);
    (void)arg;
    if (pyr_open(b->url, 0, &store) < 0 ||
        pyr_array_open(store, "m", &array) < 0)
        return 1;
    int err = 0;
    while (!b->over && (err = keep_once(store, array, &r, &known)) == 0)
        nap_ms(1);
    if (err)
        printf("# keeping house: %d, %s\n", err, pyr_errmsg());
    pyr_array_close(array);
    pyr_close(store);
    return err != 0;
}

/* --- the replay ---------------------------------------------------------- */

static void
replay_note(model *m, const note *n)
{
    deed *d = malloc(sizeof *d);
    uint64_t shape[2] = {n->rows, COLUMNS}, at;
    REQUIRE(d && n->writer < WRITERS && n->seq < DEEDS);
    make_deed(d, n->writer, n->seq);
    if (n->kind == PYR_KIND_WRITE)
        model_write(m, d->parts, d->n);
    else if (n->kind == PYR_KIND_APPEND)
        model_append(m, 0, d->rows, d->cells[0], &at);
    else if (n->kind == PYR_KIND_RESIZE)
        model_resize(m, shape);
    else
        model_nothing(m, shape);
    CHECK(m->snaps[m->n - 1].shape[0] == n->rows);
    free(d);
}

static bool
same_cells(pyr_array *a, const model *m, pyr_version v, uint64_t *kept)
{
    const model_snap *s = &m->snaps[v];
    uint32_t *got = malloc(s->ncells * 4 + 4);
    int err = pyr_read(a, v, (uint64_t[2]){0, 0}, s->shape, got);
    bool same = err == PYR_ENOVERSION ||
                (err == 0 && memcmp(got, s->cells, s->ncells * 4) == 0);
    *kept += err == 0;
    free(got);
    return same;
}

/* What was acknowledged is there, under its number and no other. */
static void
check_lines(pyr_version latest)
{
    deed *d = malloc(sizeof *d);
    for (uint32_t w = 0; w < WRITERS; w++)
        for (uint32_t i = 0; i < b->deeds; i++) {
            const line *l = &b->lines[w][i];
            if (!l->over || l->err != 0)
                continue;
            make_deed(d, w, i);
            REQUIRE(l->version > 0 && l->version <= latest);
            const note *n = &b->notes[l->version];
            bool right = d->way == RESIZE
                             ? n->kind == PYR_KIND_RESIZE && n->rows == d->rows
                             : n->writer == w && n->seq == i;
            if (!right)
                CHECK_NOTE("w%u s%u is not version %d", w, i, (int)l->version);
        }
    free(d);
}

static void
replay(void)
{
    pyr_store *store;
    pyr_array *array;
    pyr_version latest, v;
    uint64_t shape[2] = {20, COLUMNS}, kept = 0;
    model m;
    pyr_reclaimed gone;
    OK(pyr_open(b->url, 0, &store));
    OK(pyr_array_open(store, "m", &array));
    OK(pyr_write(array, (uint64_t[2]){0, 0}, (uint64_t[2]){1, 0}, NULL, &v));
    OK(pyr_reclaim(store, NULL, &gone)); /* the dead are resolved by now */
    latest = v - 1;
    OK(pyr_history(array, 1, latest, note_change, array));
    model_init(&m, 2, shape, PYR_U32, NULL);
    for (v = 1; v <= latest; v++) {
        REQUIRE(b->notes[v].known);
        replay_note(&m, &b->notes[v]);
        if (!same_cells(array, &m, v, &kept))
            CHECK_NOTE("version %d is not the replay: %s", (int)v,
                       pyr_errmsg());
        model_drop(&m, v - 1);
    }
    check_lines(latest);
    printf("# %d versions, %d kept, %d forgotten\n", (int)latest, (int)kept,
           (int)b->forgotten);
    model_fini(&m);
    pyr_array_close(array);
    pyr_close(store);
}

/* --- all of it ----------------------------------------------------------- */

static void
set_up(void)
{
    pyr_store *store;
    proc_kill_all();
    test_seed();
    b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(b != MAP_FAILED);
    b->deeds = (uint32_t)by_scale(30, 80, 1000);
    snprintf(b->url, sizeof b->url, "%s", tmp_fresh("mixed"));
    OK(pyr_open_with(b->url, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS,
                                          .lease_ms = 3600000},
                     &store));
    OK(pyr_create(store, "m",
                  &(pyr_spec){.ndim = 2, .shape = (uint64_t[2]){20, COLUMNS},
                              .chunk = (uint64_t[2]){6, 5}, .type = PYR_U32},
                  NULL));
    pyr_close(store);
}

/* `kills`: so many of the writers, each at some time. */
static void
run_mixed(bool keeper, int kills)
{
    pid_t crew[CREW] = {0}, house = 0;
    rng r = rng_of(test_seed() + 2);
    uint32_t next = 0;
    set_up();
    if (keeper)
        house = proc_fork(run_keeper, NULL);
    for (int i = 0; i < CREW + kills; i++) {
        int k = i % CREW;
        if (i >= CREW) {
            nap_ms((int)rng_from(&r, 1, 60)); /* when to kill */
            kill(crew[k], SIGKILL);
            proc_end end = proc_wait(crew[k], BOUND);
            CHECK(end.signal == SIGKILL || end.code == 0);
        }
        crew[k] = proc_fork(run_writer, &next);
        next += THREADS;
    }
    for (int i = 0; i < CREW; i++)
        CHECK(proc_ends_well(crew[i], BOUND));
    atomic_store(&b->over, true);
    if (house)
        CHECK(proc_ends_well(house, BOUND));
    replay();
    tmp_remove(b->url);
    munmap(b, sizeof *b);
}

static void
versions_made_in_all_ways_at_once_are_the_replay(void)
{
    run_mixed(false, 0);
}

static void
it_is_so_while_others_forget_and_reclaim(void)
{
    run_mixed(true, 0);
}

static void
it_is_so_though_writers_are_killed(void)
{
    run_mixed(false, (int)by_scale(6, 12, 60));
    run_mixed(true, (int)by_scale(6, 12, 60));
}

TESTS(T(versions_made_in_all_ways_at_once_are_the_replay),
      T(it_is_so_while_others_forget_and_reclaim),
      T(it_is_so_though_writers_are_killed))
