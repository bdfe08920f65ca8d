/*
 * tests/engine/blobs.h - what an engine promises of blobs.
 */
#ifndef TESTS_ENGINE_BLOBS_H
#define TESTS_ENGINE_BLOBS_H

#include "engine/stores.h"

/* What is known of a blob: bytes of `seed`, see byte_of(). */
typedef struct blob {
    pyri_ref ref;
    uint64_t seed, size;
    bool aligned;
} blob;

enum { PIECES = 5000 };

/* Store a blob cut into `n` pieces, some of them empty. */
static int
put_in_pieces(pyri_engine *e, blob *b, int n, uint8_t *bytes)
{
    static _Thread_local struct iovec iov[PIECES];
    uint64_t done = 0;
    fill(bytes, b->seed, b->size);
    for (int i = 0; i < n; i++) {
        uint64_t left = b->size - done;
        uint64_t piece = left / (uint64_t)(n - i);
        if (i < n - 1 && i % 5 == 1)
            piece = 0;
        iov[i] = (struct iovec){bytes + done, piece};
        done += piece;
    }
    pyri_blob_put put = {.iov = iov,
                         .niov = n,
                         .size = b->size,
                         .aligned = b->aligned};
    int err = pyri_engine_put_blobs(e, &put, 1);
    b->ref = put.ref;
    return err;
}

static int
put_blob(pyri_engine *e, blob *b)
{
    uint8_t *bytes = malloc(b->size);
    int err = put_in_pieces(e, b, 1, bytes);
    free(bytes);
    return err;
}

/* Complete a version, record "1" and a node of that name, that names blobs. */
static void
name_blobs(pyri_engine *e, const pyri_ticket *t, const blob *blobs, size_t n)
{
    pyri_blob list[8];
    pyri_node_put node = {text("1"), text("1")};
    for (size_t i = 0; i < n; i++)
        list[i] = (pyri_blob){blobs[i].ref, blobs[i].size};
    pyri_complete c = {.array = t->array,
                       .version = t->version,
                       .shape = t->shape,
                       .nodes = &node,
                       .nnodes = 1,
                       .blobs = list,
                       .nblobs = n,
                       .record = text("1")};
    OK(pyri_engine_complete(e, &c));
}

/* Whether a range of a blob reads back as it was put. */
static bool
range_is(pyri_engine *e, const blob *b, uint64_t offset, uint64_t size)
{
    pyri_reader *r;
    pyri_blob_get get = {.ref = b->ref, .offset = offset, .size = size};
    if (pyri_engine_begin(e, &r) < 0)
        return false;
    bool is = pyri_engine_get_blobs(e, r, &get, 1) == 0 &&
              is_filled(get.data, b->seed, offset, size);
    pyri_engine_end(e, r);
    return is;
}

static const uint64_t BLOB_SIZES[] = {1,    63,   64,      4095,   4096,
                                      4097, 8192, 1 << 20, 5 << 20};

enum { NSIZES = sizeof BLOB_SIZES / sizeof BLOB_SIZES[0] };

static void
blobs_of_all_sizes_and_pieces_read_back(void)
{
    const int pieces[] = {1, 3, 1023, 1024, 1025, PIECES};
    pyri_engine *e = fresh();
    uint8_t *bytes = need(5 << 20);
    blob blobs[NSIZES * 6 * 2];
    size_t n = 0;
    for (size_t i = 0; i < NSIZES; i++)
        for (int p = 0; p < 6; p++)
            for (int aligned = 0; aligned < 2; aligned++, n++) {
                blobs[n] = (blob){.seed = n,
                                  .size = BLOB_SIZES[i],
                                  .aligned = aligned};
                OK(put_in_pieces(e, &blobs[n], pieces[p], bytes));
            }
    for (size_t i = 0; i < n; i++)
        CHECK(range_is(e, &blobs[i], 0, blobs[i].size));
    free(bytes);
    pyri_engine_close(e);
}

static void
blobs_are_put_and_got_in_batches(void)
{
    enum { N = 500 };
    pyri_engine *e = fresh();
    uint8_t *bytes = need(N * 100);
    struct iovec iov[N];
    pyri_blob_put puts[N] = {0};
    for (uint64_t i = 0; i < N; i++) {
        fill(bytes + i * 100, i, 100);
        iov[i] = (struct iovec){bytes + i * 100, 1 + i % 100};
        puts[i] = (pyri_blob_put){.iov = &iov[i],
                                  .niov = 1,
                                  .size = iov[i].iov_len,
                                  .aligned = i % 50 == 0};
    }
    OK(pyri_engine_put_blobs(e, puts, N));
    memset(bytes, 0, N * 100); /* it was borrowed for the call only */
    pyri_blob_get gets[N] = {0};
    uint64_t turns[N];
    shuffle(turns, N, 1);
    for (int i = 0; i < N; i++)
        gets[i] = (pyri_blob_get){.ref = puts[turns[i]].ref,
                                  .size = puts[turns[i]].size};
    pyri_reader *r;
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_get_blobs(e, r, gets, N));
    for (int i = 0; i < N; i++)
        CHECK(is_filled(gets[i].data, turns[i], 0, gets[i].size));
    OK(pyri_engine_get_blobs(e, r, gets, 0));
    OK(pyri_engine_put_blobs(e, puts, 0));
    pyri_engine_end(e, r);
    pyri_engine_close(e);
    free(bytes);
}

static void
any_range_of_a_blob_can_be_read(void)
{
    pyri_engine *e = fresh();
    for (int aligned = 0; aligned < 2; aligned++) {
        blob b = {.seed = 11, .size = 100003, .aligned = aligned};
        OK(put_blob(e, &b));
        for (uint64_t i = 0; i < 500; i++) {
            uint64_t from = mixed(i) % b.size;
            CHECK(range_is(e, &b, from, mixed(~i) % (b.size - from) + 1));
        }
        CHECK(range_is(e, &b, 0, b.size));
        CHECK(range_is(e, &b, 0, 1));
        CHECK(range_is(e, &b, b.size - 1, 1));
        CHECK(range_is(e, &b, 4095, 2));
    }
    pyri_engine_close(e);
}

static void
views_of_blobs_last_as_long_as_their_reader(void)
{
    pyri_engine *e = fresh();
    blob first = {.seed = 1, .size = 70000};
    blob more = {.seed = 2, .size = 1 << 20};
    pyri_reader *r;
    OK(put_blob(e, &first));
    OK(pyri_engine_begin(e, &r));
    pyri_blob_get get = {.ref = first.ref, .size = first.size};
    OK(pyri_engine_get_blobs(e, r, &get, 1));
    for (int i = 0; i < 40; i++)
        OK(put_blob(e, &more));
    CHECK(is_filled(get.data, 1, 0, first.size));
    pyri_engine_end(e, r);
    pyri_engine_close(e);
}

static void
a_range_outside_is_corrupt_not_a_crash(void)
{
    pyri_engine *e = fresh();
    blob b = {.seed = 1, .size = 1000};
    OK(put_blob(e, &b));
    const pyri_ref none = {UINT64_MAX, UINT64_MAX};
    const pyri_blob_get bad[] = {
        {.ref = b.ref, .offset = 1ull << 50, .size = 1},
        {.ref = b.ref, .offset = 0, .size = 1ull << 50},
        {.ref = b.ref, .offset = UINT64_MAX, .size = 2},
        {.ref = b.ref, .offset = 2, .size = UINT64_MAX},
        {.ref = b.ref, .offset = 1ull << 63, .size = 1ull << 63},
        {.ref = b.ref, .offset = UINT64_MAX - 2000, .size = 1000},
        {.ref = none, .offset = 0, .size = 1},
        {.ref = none, .offset = UINT64_MAX, .size = UINT64_MAX},
        {.ref = {b.ref.a ^ 1ull << 63, b.ref.b}, .offset = 0, .size = 1},
        {.ref = {b.ref.a, b.ref.b ^ 1ull << 63}, .offset = 0, .size = 1},
    };
    pyri_reader *r;
    OK(pyri_engine_begin(e, &r));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        pyri_blob_get gets[2] = {{.ref = b.ref, .size = 1000}, bad[i]};
        int err = pyri_engine_get_blobs(e, r, gets, 2);
        if (err != PYR_ECORRUPT)
            CHECK_NOTE("range %zu gave %d (%s)", i, err, pyr_errmsg());
    }
    pyri_engine_end(e, r);
    CHECK(range_is(e, &b, 0, b.size));
    pyri_engine_close(e);
}

static bool
test_and_set(const pyri_blob_get *get, uint64_t page)
{
    uint64_t bit = get->seen_first + page, mask = 1ull << bit % 64;
    return atomic_fetch_or_explicit(&get->seen[bit / 64], mask,
                                    memory_order_relaxed) &
           mask;
}

static void
seen_bits_are_of_one_page_of_one_blob(void)
{
    enum { N = 300 };
    pyri_engine *e = fresh();
    pyri_blob_get gets[N] = {0};
    for (uint64_t i = 0; i < N; i++) {
        blob b = {.seed = i, .size = mixed(i) % 30000 + 1, .aligned = true};
        blob other = {.seed = i, .size = mixed(i) % 5000 + 1};
        OK(put_blob(e, &b));
        OK(put_blob(e, &other));
        gets[i] = (pyri_blob_get){.ref = b.ref, .size = b.size};
    }
    pyri_reader *r;
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_get_blobs(e, r, gets, N));
    for (int i = 0; i < N && gets[i].seen; i++)
        for (uint64_t page = 0; page * PYRI_PAGE < gets[i].size; page++)
            CHECK(!test_and_set(&gets[i], page));
    pyri_engine_end(e, r);
    pyri_engine_close(e);
}

static void
seen_bits_belong_to_the_blob_not_to_the_range(void)
{
    pyri_engine *e = fresh();
    blob b = {.seed = 1, .size = 10 * PYRI_PAGE + 5, .aligned = true};
    OK(put_blob(e, &b));
    pyri_blob_get whole = {.ref = b.ref, .size = b.size};
    pyri_blob_get part = {.ref = b.ref,
                          .offset = 3 * PYRI_PAGE + 7,
                          .size = 100};
    pyri_reader *r;
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_get_blobs(e, r, &whole, 1));
    OK(pyri_engine_get_blobs(e, r, &part, 1));
    CHECK(!whole.seen == !part.seen);
    if (whole.seen && part.seen) {
        CHECK(!test_and_set(&whole, 3));
        CHECK(test_and_set(&part, 3));
        CHECK(!test_and_set(&part, 10));
        CHECK(test_and_set(&whole, 10));
    }
    pyri_engine_end(e, r);
    pyri_engine_close(e);
}

static void
with_room_a_range_may_be_a_copy_of_the_same_bytes(void)
{
    enum { SIZE = 1 << 20 };
    pyri_engine *e = fresh();
    blob b = {.seed = 1, .size = SIZE, .aligned = true};
    uint8_t *room = need(SIZE);
    OK(put_blob(e, &b));
    pyri_blob_get view = {.ref = b.ref, .size = SIZE, .later = true};
    pyri_reader *r;
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_get_blobs(e, r, &view, 1));
    for (uint64_t from = 0; from < SIZE; from += SIZE / 4 - 1) {
        uint64_t left = SIZE - from, size = left < 99999 ? left : 99999;
        pyri_blob_get get = {
            .ref = b.ref, .offset = from, .size = size, .room = room};
        OK(pyri_engine_get_blobs(e, r, &get, 1));
        CHECK(is_filled(get.data, b.seed, from, size));
        CHECK(get.seen == view.seen && get.seen_first == view.seen_first);
    }
    CHECK(is_filled(view.data, b.seed, 0, SIZE));
    pyri_engine_end(e, r);
    pyri_engine_close(e);
    free(room);
}

/* Blobs of all threads, so that each can read those of the others. */
typedef struct blob_board {
    blob blobs[THREADS][100];
    atomic_int done[THREADS];
} blob_board;

/* Read a blob of another thread that is on the board. */
static void
read_others(worker *w, blob_board *board, int i)
{
    int whose = (w->number + 1 + i) % THREADS;
    int done = atomic_load(&board->done[whose]);
    if (done > 0) {
        const blob *b = &board->blobs[whose][mixed((uint64_t)i) % (size_t)done];
        WORKED(w, range_is(w->e, b, 0, b->size));
    }
}

static void *
put_and_get_blobs(void *arg)
{
    worker *w = arg;
    blob_board *board = w->shared;
    for (int i = 0; i < 100 && !w->failures; i++) {
        blob *b = &board->blobs[w->number][i];
        uint64_t seed = (uint64_t)(w->number * 100 + i);
        *b = (blob){.seed = seed,
                    .size = mixed(seed) % 60000 + 1,
                    .aligned = i % 2};
        WORKED(w, put_blob(w->e, b) == 0);
        if (i % 20 == 0)
            WORKED(w, pyri_engine_sync(w->e) == 0);
        pyri_ticket t = take(w->e, ARRAY, "");
        name_blobs(w->e, &t, b, 1);
        atomic_store(&board->done[w->number], i + 1);
        read_others(w, board, i);
    }
    return NULL;
}

static void
many_threads_put_and_get_blobs_at_once(void)
{
    pyri_engine *e = fresh_with_array();
    static blob_board board;
    memset(&board, 0, sizeof board);
    run_threads(e, put_and_get_blobs, &board);
    OK(pyri_engine_sync(e));
    for (int t = 0; t < THREADS; t++)
        for (int i = 0; i < 100; i++)
            CHECK(range_is(e, &board.blobs[t][i], 0, board.blobs[t][i].size));
    pyri_engine_close(e);
}

static void
another_handle_reads_a_blob_as_soon_as_it_is_put(void)
{
    pyri_engine *a = fresh();
    pyri_engine *b = open_as(PYR_OPEN_READONLY, 0);
    for (uint64_t i = 0; i < 50; i++) {
        blob put = {.seed = i, .size = 3000 * i + 1, .aligned = i % 2};
        OK(put_blob(a, &put));
        CHECK(range_is(b, &put, 0, put.size));
    }
    pyri_engine_close(b);
    pyri_engine_close(a);
}

#endif
