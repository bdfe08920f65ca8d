/*
 * cls/tests/functions_test.c - functions of cells inside an object, in memory.
 */
#include "cls/brief.h"
#include "cls/tests/memory.h"
#include "cls/work.h"
#include "support/rng.h"

enum { SIDE = 160, CELLS = SIDE * SIDE, BYTES = CELLS * 4 };

static const pyri_frag_style style = {
    .array = 7, .ndim = 2, .type = PYR_I32, .fill = 5};
static const pyri_box whole = {.hi = {SIDE, SIDE}};

/* A fragment in an object, and where. */
typedef struct stored {
    pyri_frag frag;
    uint32_t at;
} stored;

/* An object with one blob in it, of these cells. */
static stored
put_cells(memory *m, const int32_t *cells)
{
    pyri_packer k = {0};
    pyri_summary sum;
    stored f = {.at = 0};
    int32_t *copy = malloc(BYTES);
    REQUIRE(copy);
    memcpy(copy, cells, BYTES);
    pyri_summary_init(&sum);
    REQUIRE(pyri_frag_pack(&k, &style, &whole,
                           pyri_mem_dense(2, 4, &whole, copy), NULL, 0,
                           &f.frag, &sum) == 0);
    REQUIRE(f.frag.kind == PYRI_FRAG_PLAIN);
    memory_write(m, 0, k.iov, k.niov);
    pyri_packer_fini(&k);
    free(copy);
    return f;
}

static void
random_cells(rng *r, int32_t *cells)
{
    for (int i = 0; i < CELLS; i++)
        cells[i] = (int32_t)rng_below(r, 100000) - 50000;
}

static void
ask_box(request *q, const pyri_box *b)
{
    for (int d = 0; d < 2; d++) {
        pyri_buf_varint(&q->in, b->lo[d]);
        pyri_buf_varint(&q->in, b->hi[d]);
    }
}

static void
ask_program(pyri_buf *b, pyr_type type, const char *text)
{
    pyri_expr e;
    pyri_buf code = {0};
    REQUIRE(pyri_expr_parse(text, type, 2, &e, NULL, NULL) == 0);
    pyri_program_encode(&e.program, &code);
    pyri_buf_varint(b, code.size);
    pyri_buf_add(b, code.data, code.size);
    pyri_buf_fini(&code);
}

/* The work up to its pieces; handlers are optional. */
static void
ask_work(request *q, const pyri_box *box, const char *text,
         const char *handler, uint64_t pieces)
{
    pyri_buf_u64(&q->in, style.array);
    pyri_buf_u8(&q->in, 2);
    pyri_buf_u8(&q->in, PYR_I32);
    pyri_buf_u64(&q->in, style.fill);
    ask_box(q, box);
    pyri_buf_u8(&q->in, handler ? 2 : 1);
    ask_program(&q->in, PYR_I32, text);
    if (handler)
        ask_program(&q->in, PYR_I32, handler);
    pyri_buf_varint(&q->in, pieces);
}

static void
ask_stored(request *q, uint8_t source, const stored *f, const pyri_box *shown)
{
    pyri_buf_u8(&q->in, source);
    pyri_buf_u8(&q->in, 0);
    ask_box(q, shown);
    ask_box(q, &f->frag.box);
    pyri_buf_varint(&q->in, f->at);
    pyri_buf_varint(&q->in, f->frag.stored);
    pyri_buf_u64(&q->in, f->frag.check);
}

static void
ask_same(request *q, uint8_t source, uint32_t bits, const pyri_box *shown)
{
    pyri_buf_u8(&q->in, source);
    pyri_buf_u8(&q->in, 1);
    ask_box(q, shown);
    pyri_buf_u64(&q->in, bits);
}

/* What "made" tells of a blob; an error if it knows nothing. */
static int
ask_made(memory *m, uint64_t number, pyr_type type, const pyri_box *box,
         stored *f, pyri_summary *sum)
{
    request q = ask();
    *f = (stored){.frag.kind = PYRI_FRAG_PLAIN, .frag.box = *box};
    pyri_buf_u64(&q.in, number);
    int err = call(m, "made", &q);
    if (err == 0) {
        f->at = (uint32_t)pyri_cursor_u64(&q.answer);
        f->frag.stored = pyri_cursor_u64(&q.answer);
        f->frag.check = pyri_cursor_u64(&q.answer);
        f->frag.cells.lo = pyri_cursor_u64(&q.answer);
        f->frag.cells.hi = pyri_cursor_u64(&q.answer);
        const uint8_t *s = pyri_cursor_take(&q.answer, PYRI_SUMMARY_BYTES);
        REQUIRE(s && pyri_summary_decode(sum, type, s) == 0);
    }
    done(&q);
    return err;
}

/* The cells of a blob, checked in all ways that there are. */
static const int32_t *
cells_of(const memory *m, const stored *f)
{
    pyri_buf room = {0};
    pyri_summary sum;
    const uint8_t *at = m->bytes + (size_t)f->at * PYRI_SLOT_UNIT;
    REQUIRE((size_t)f->at * PYRI_SLOT_UNIT + pyri_frag_blob_size(&f->frag) <=
            m->size);
    pyri_summary_init(&sum);
    const uint8_t *payload = at + pyri_frag_head_size(&f->frag);
    REQUIRE(pyri_frag_check(&f->frag, &style, at, payload, &room, &sum) == 0);
    pyri_buf_fini(&room);
    return (const int32_t *)payload;
}

/* What was told of blobs when they were made. */
static struct {
    stored f;
    pyri_summary sum;
} told[256];

/* An answer tells all of a blob, and it is so; then nothing is kept of it. */
static void
take_brief(memory *m, uint64_t number, const pyri_box *box, pyri_cursor answer)
{
    stored *f = &told[number % 256].f;
    pyri_summary *sum = &told[number % 256].sum, want;
    uint64_t n = pyri_box_cells(2, box);
    stored none;
    REQUIRE(pyri_cursor_u8(&answer) == PYRI_MADE_BRIEF);
    REQUIRE(pyri_brief_decode(&answer, PYR_I32, n, &f->frag, sum));
    f->frag.box = *box;
    f->at = (uint32_t)f->frag.ref[1];
    pyri_summary_init(&want);
    pyri_summary_add(&want, PYR_I32, style.fill, cells_of(m, f), n);
    CHECK(!pyri_summary_differs(PYR_I32, sum, &want));
    CHECK(ask_made(m, number, PYR_I32, box, &none, &want) == PYRI_CLS_NONE);
}

static stored
made(uint64_t number, pyri_summary *sum)
{
    *sum = told[number % 256].sum;
    return told[number % 256].f;
}

static int
compute(memory *m, uint64_t number, const stored *f, const char *text,
        const char *handler)
{
    request q = ask();
    pyri_buf_u64(&q.in, number);
    ask_work(&q, &whole, text, handler, 1);
    ask_stored(&q, 0, f, &whole);
    int err = call(m, "compute", &q);
    if (err == 0)
        take_brief(m, number, &whole, q.answer);
    done(&q);
    return err;
}

static void
release(memory *m, uint64_t number)
{
    request q = ask();
    pyri_buf_u64(&q.in, number);
    CHECK(call(m, "release", &q) == 0);
    done(&q);
}

/* --- computing ----------------------------------------------------------- */

static int32_t cells[CELLS], other[CELLS];

static void
what_is_computed_is_a_blob_beside_its_source(void)
{
    rng r = rng_of(test_seed());
    memory m = {.now = 1};
    pyri_summary sum, want;
    random_cells(&r, cells);
    stored f = put_cells(&m, cells);
    REQUIRE(compute(&m, 100, &f, "x*3 + i0", NULL) == 0);
    stored g = made(100, &sum);
    CHECK(g.at > 0);
    const int32_t *got = cells_of(&m, &g);
    for (int i = 0; i < CELLS; i++)
        other[i] = cells[i] * 3 + i / SIDE;
    CHECK(memcmp(got, other, BYTES) == 0);
    CHECK(memcmp(cells_of(&m, &f), cells, BYTES) == 0);
    pyri_summary_init(&want);
    pyri_summary_add(&want, PYR_I32, style.fill, other, CELLS);
    CHECK(!pyri_summary_differs(PYR_I32, &sum, &want));
    /* and from that, another one, through a handler */
    REQUIRE(compute(&m, 101, &g, "x - 1", "x*2") == 0);
    stored h = made(101, &sum);
    got = cells_of(&m, &h);
    for (int i = 0; i < CELLS; i++)
        REQUIRE(got[i] == (other[i] - 1) * 2);
    memory_remove(&m);
}

static void
a_chain_and_another_snapshot_are_read_if_they_are_in_the_object(void)
{
    rng r = rng_of(test_seed());
    memory m = {.now = 1};
    pyri_summary sum;
    const pyri_box box = {.lo = {3, 5}, .hi = {120, 150}};
    const pyri_box low = {.lo = {3, 5}, .hi = {100, 100}};
    const pyri_box top = {.lo = {50, 60}, .hi = {120, 90}};
    const pyri_box one = {.lo = {60, 70}, .hi = {61, 150}};
    random_cells(&r, cells);
    stored f = put_cells(&m, cells);
    REQUIRE(compute(&m, 100, &f, "x + 7", NULL) == 0);
    stored g = made(100, &sum);
    request q = ask();
    pyri_buf_u64(&q.in, 200);
    ask_work(&q, &box, "x*2 - x@1", NULL, 4);
    ask_stored(&q, 0, &f, &low);
    ask_stored(&q, 0, &g, &top);
    ask_same(&q, 0, 9, &one);
    ask_stored(&q, 1, &f, &box);
    REQUIRE(call(&m, "compute", &q) == 0);
    take_brief(&m, 200, &box, q.answer);
    done(&q);
    stored h = made(200, &sum);
    const int32_t *got = cells_of(&m, &h);
    for (uint64_t i = box.lo[0]; i < box.hi[0]; i++)
        for (uint64_t k = box.lo[1]; k < box.hi[1]; k++) {
            int32_t was = cells[i * SIDE + k], x = 5;
            if (i < 100 && k < 100)
                x = was;
            if (i >= 50 && k >= 60 && k < 90)
                x = was + 7;
            if (i == 60 && k >= 70)
                x = 9;
            REQUIRE(*got++ == x * 2 - was);
        }
    memory_remove(&m);
}

static void
a_repeated_request_makes_no_second_blob(void)
{
    memory m = {.now = 1};
    pyri_summary sum;
    rng r = rng_of(test_seed());
    random_cells(&r, cells);
    stored f = put_cells(&m, cells);
    REQUIRE(compute(&m, 100, &f, "x + 1", NULL) == 0);
    stored g = made(100, &sum);
    size_t size = m.size;
    REQUIRE(compute(&m, 100, &f, "x + 1", NULL) == 0);
    CHECK(m.size == size && made(100, &sum).at == g.at);
    CHECK(compute(&m, 100, &f, "x + 2", NULL) == PYRI_CLS_THERE);
    CHECK(m.size == size && cells_of(&m, &g)[9] == cells[9] + 1);
    memory_remove(&m);
}

/* Doubles have summaries that are more than an answer holds. */
static void
what_an_answer_has_no_room_for_is_kept(void)
{
    memory m = {.now = 1};
    enum { N = 64 * 64 };
    static double reals[N];
    const pyri_box box = {.hi = {64, 64}};
    pyri_summary sum, want;
    stored f;
    rng r = rng_of(test_seed());
    for (int i = 0; i < N; i++)
        reals[i] = (double)rng_below(&r, 1000000) / 7;
    request q = ask();
    pyri_buf_varint(&q.in, sizeof reals);
    pyri_buf_add(&q.in, reals, sizeof reals);
    pyri_buf_u64(&q.in, style.array);
    pyri_buf_u8(&q.in, 2);
    pyri_buf_u8(&q.in, PYR_F64);
    pyri_buf_u64(&q.in, 0);
    ask_box(&q, &box);
    pyri_buf_u8(&q.in, 1);
    ask_program(&q.in, PYR_F64, "x + 1");
    pyri_buf_varint(&q.in, 0);
    REQUIRE(call(&m, "store", &q) == 0);
    CHECK(pyri_cursor_u8(&q.answer) == PYRI_MADE_BLOB && q.out.size == 1);
    done(&q);
    REQUIRE(ask_made(&m, 0, PYR_F64, &box, &f, &sum) == 0);
    for (int i = 0; i < N; i++)
        reals[i]++;
    CHECK(f.at == 0 && f.frag.stored == sizeof reals);
    CHECK(memcmp(m.bytes + pyri_frag_head_size(&f.frag), reals,
                 sizeof reals) == 0);
    pyri_summary_init(&want);
    pyri_summary_add(&want, PYR_F64, 0, reals, N);
    CHECK(!pyri_summary_differs(PYR_F64, &sum, &want));
    release(&m, 0);
    CHECK(!m.exists);
    memory_remove(&m);
}

static void
a_result_of_one_value_takes_no_space(void)
{
    memory m = {.now = 1};
    rng r = rng_of(test_seed());
    random_cells(&r, cells);
    stored f = put_cells(&m, cells);
    size_t size = m.size;
    request q = ask();
    pyri_buf_u64(&q.in, 100);
    ask_work(&q, &whole, "x*0 + 4", NULL, 1);
    ask_stored(&q, 0, &f, &whole);
    REQUIRE(call(&m, "compute", &q) == 0);
    CHECK(pyri_cursor_u8(&q.answer) == PYRI_MADE_SAME);
    CHECK(pyri_cursor_u64(&q.answer) == 4);
    CHECK(m.size == size && m.n == 0);
    done(&q);
    memory_remove(&m);
}

static int
store_cells(memory *m, const int32_t *from, size_t size, const char *text)
{
    request q = ask();
    pyri_buf_varint(&q.in, size);
    pyri_buf_add(&q.in, from, size);
    ask_work(&q, &whole, text, NULL, 0);
    int err = call(m, "store", &q);
    if (err == 0 && m->exists)
        take_brief(m, 0, &whole, q.answer);
    done(&q);
    return err;
}

static void
cells_that_come_along_are_stored_as_the_function_makes_them(void)
{
    memory m = {.now = 1};
    pyri_summary sum;
    rng r = rng_of(test_seed());
    random_cells(&r, cells);
    CHECK(store_cells(&m, cells, BYTES - 4, "x + 1") == PYRI_CLS_BAD);
    CHECK(store_cells(&m, cells, BYTES, "x - x@1") == PYRI_CLS_BAD);
    CHECK(!m.exists);
    CHECK(store_cells(&m, cells, BYTES, "x * 0 + 3") == 0 && !m.exists);
    for (int again = 0; again < 2; again++)
        REQUIRE(store_cells(&m, cells, BYTES, "x + i1") == 0);
    stored f = made(0, &sum);
    CHECK(f.at == 0);
    const int32_t *got = cells_of(&m, &f);
    for (int i = 0; i < CELLS; i++)
        REQUIRE(got[i] == cells[i] + i % SIDE);
    REQUIRE(compute(&m, 100, &f, "x + 1", NULL) == 0);
    CHECK(store_cells(&m, cells, BYTES, "x") == PYRI_CLS_THERE);
    release(&m, 100);
    release(&m, 0);
    CHECK(!m.exists);
    memory_remove(&m);
}

/* --- space --------------------------------------------------------------- */

static void
blobs_go_one_by_one_and_the_last_takes_the_object_along(void)
{
    memory m = {.now = 1};
    pyri_summary sum;
    rng r = rng_of(test_seed());
    random_cells(&r, cells);
    stored f = put_cells(&m, cells);
    REQUIRE(compute(&m, 100, &f, "x + 1", NULL) == 0);
    REQUIRE(compute(&m, 101, &f, "x + 2", NULL) == 0);
    stored a = made(100, &sum), b = made(101, &sum);
    release(&m, 0);
    CHECK(m.exists && cells_of(&m, &a)[5] == cells[5] + 1);
    for (size_t i = 0; i < pyri_frag_blob_size(&f.frag); i++)
        REQUIRE(m.bytes[i] == 0);
    CHECK(compute(&m, 102, &f, "x", NULL) == PYRI_CLS_NONE);
    release(&m, 0); /* again */
    release(&m, 999); /* none */
    release(&m, 100);
    CHECK(m.exists && cells_of(&m, &b)[5] == cells[5] + 2);
    REQUIRE(compute(&m, 103, &b, "x + 3", NULL) == 0);
    stored c = made(103, &sum);
    CHECK(c.at > b.at); /* places are not used again */
    release(&m, 101);
    CHECK(m.exists && cells_of(&m, &c)[5] == cells[5] + 5);
    release(&m, 103);
    CHECK(!m.exists);
    release(&m, 103);
    CHECK(!m.exists);
    memory_remove(&m);
}

static void
an_object_that_nothing_was_computed_in_just_goes(void)
{
    memory m = {.now = 1};
    rng r = rng_of(test_seed());
    random_cells(&r, cells);
    put_cells(&m, cells);
    release(&m, 0);
    CHECK(!m.exists);
    memory_remove(&m);
}

static void
a_full_object_says_so_and_stays_as_it_is(void)
{
    memory m = {.now = 1};
    rng r = rng_of(test_seed());
    random_cells(&r, cells);
    stored f = put_cells(&m, cells);
    uint64_t n = 0;
    int err = 0;
    while (err == 0 && n < 2 * PYRI_SLOTS)
        err = compute(&m, ++n, &f, "x + 1", NULL);
    CHECK(err == PYRI_CLS_FULL && n == PYRI_SLOTS + 1);
    CHECK(m.size <= PYRI_OBJECT_BYTES);
    release(&m, 3); /* there is a slot again */
    CHECK(compute(&m, 1000, &f, "x + 1", NULL) == 0);
    memory_remove(&m);
}

static void
more_than_an_osd_should_do_is_refused(void)
{
    memory m = {.now = 1};
    const pyri_box huge = {.hi = {1 << 20, 1 << 20}};
    request q = ask();
    rng r = rng_of(test_seed());
    random_cells(&r, cells);
    stored f = put_cells(&m, cells);
    pyri_buf_u64(&q.in, 100);
    ask_work(&q, &huge, "x", NULL, 1);
    ask_stored(&q, 0, &f, &whole);
    CHECK(call(&m, "compute", &q) == PYRI_CLS_FULL);
    done(&q);
    memory_remove(&m);
}

/* --- reducing ------------------------------------------------------------ */

static void
a_part_of_a_reduction_is_what_the_client_would_get(void)
{
    static const char *const texts[] = {
        "sum(x*2)", "var(x)", "argmax(x)", "count(x > 3)",
        "histogram(x, -30000, 30000, 50)", "quantile(x*3, 0.5)"};
    memory m = {.now = 1};
    rng r = rng_of(test_seed());
    random_cells(&r, cells);
    stored f = put_cells(&m, cells);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        pyri_expr e;
        pyri_buf how = {0};
        uint64_t here_bins[64] = {0}, there_bins[64] = {0};
        const void *src[PYRI_OP_MAX_SOURCES] = {cells};
        pyri_partial here, there;
        pyri_histogram h = {.bin = here_bins}, g = {.bin = there_bins};
        pyri_quantile p, q;
        if (pyri_expr_parse(texts[i], PYR_I32, 2, &e, NULL, NULL) < 0) {
            printf("# %s\n", texts[i]);
            CHECK(false);
            continue;
        }
        pyri_partial_init(&here);
        pyri_quantile_init(&p, &e.reduction, e.program.kind, 64, here_bins);
        pyri_quantile_init(&q, &e.reduction, e.program.kind, 64, there_bins);
        request ask_it = ask();
        pyri_serve_ask(&e.reduction, &q, &how);
        pyri_buf_varint(&ask_it.in, how.size);
        pyri_buf_add(&ask_it.in, how.data, how.size);
        pyri_buf_u64(&ask_it.in, style.array);
        pyri_buf_u8(&ask_it.in, 2);
        pyri_buf_u8(&ask_it.in, PYR_I32);
        pyri_buf_u64(&ask_it.in, style.fill);
        ask_box(&ask_it, &whole);
        pyri_buf code = {0};
        pyri_program_encode(&e.program, &code);
        pyri_buf_u8(&ask_it.in, 1);
        pyri_buf_varint(&ask_it.in, code.size);
        pyri_buf_add(&ask_it.in, code.data, code.size);
        pyri_buf_varint(&ask_it.in, 1);
        ask_stored(&ask_it, 0, &f, &whole);
        REQUIRE(call(&m, "reduce", &ask_it) == 0);
        REQUIRE(pyri_serve_take(&e.reduction,
                                (pyri_bytes){ask_it.out.data,
                                             ask_it.out.size},
                                &there, &g, &q) == 0);
        if (e.reduction.op == PYRI_RED_HISTOGRAM) {
            pyri_histogram_run(&h, &e.reduction, &e.program, 2, &whole, src);
            CHECK(h.below == g.below && h.above == g.above);
        } else if (e.reduction.op == PYRI_RED_QUANTILE) {
            pyri_quantile_run(&p, &e.program, 2, &whole, src);
            CHECK(p.inside == q.inside && p.below == q.below);
            CHECK(p.above == q.above && p.next_above == q.next_above);
        } else {
            uint8_t a[PYRI_PARTIAL_BYTES], b[PYRI_PARTIAL_BYTES];
            pyri_partial_run(&here, &e.reduction, &e.program, 2, &whole, src);
            pyri_partial_encode(&here, a);
            pyri_partial_encode(&there, b);
            CHECK(memcmp(a, b, sizeof a) == 0);
        }
        CHECK(memcmp(here_bins, there_bins, sizeof here_bins) == 0);
        done(&ask_it);
        pyri_buf_fini(&how);
        pyri_buf_fini(&code);
    }
    memory_remove(&m);
}

/* --- anything ------------------------------------------------------------ */

static void
cells_that_are_not_those_that_were_meant_are_refused(void)
{
    memory m = {.now = 1};
    rng r = rng_of(test_seed());
    random_cells(&r, cells);
    stored f = put_cells(&m, cells), wrong = f;
    m.bytes[m.size - 5000] ^= 1;
    CHECK(compute(&m, 100, &f, "x + 1", NULL) == PYRI_CLS_BAD);
    m.bytes[m.size - 5000] ^= 1;
    wrong.frag.check ^= 1;
    CHECK(compute(&m, 100, &wrong, "x + 1", NULL) == PYRI_CLS_BAD);
    wrong = f;
    wrong.at = 1;
    CHECK(compute(&m, 100, &wrong, "x + 1", NULL) == PYRI_CLS_NONE);
    CHECK(m.n == 0);
    memory_remove(&m);
}

/* A request that is right but for a few bytes. */
static void
requests_with_wrong_bytes_do_no_harm(void)
{
    rng r = rng_of(test_seed());
    memory m = {.now = 1};
    const pyri_box part = {.lo = {1, 2}, .hi = {150, 9}};
    random_cells(&r, cells);
    stored f = put_cells(&m, cells);
    for (int i = 0; i < 6000; i++) {
        request q = ask();
        bool reduces = rng_below(&r, 2), stores = rng_below(&r, 4) == 0;
        if (stores) {
            pyri_buf_varint(&q.in, 149 * 7 * 4);
            pyri_buf_add(&q.in, cells, 149 * 7 * 4);
            reduces = true; /* no second program */
        } else if (reduces) {
            pyri_buf_varint(&q.in, 1);
            pyri_buf_u8(&q.in, (uint8_t)rng_below(&r, 14));
        } else {
            pyri_buf_u64(&q.in, 1 + rng_below(&r, 200));
        }
        ask_work(&q, &part, stores ? "x*2" : "x*2 + x@1",
                 reduces ? NULL : "x + 1", stores ? 0 : 3);
        if (!stores) {
            ask_stored(&q, 0, &f, &part);
            ask_same(&q, 0, 3, &part);
            ask_stored(&q, 1, &f, &part);
        }
        for (uint64_t n = rng_below(&r, 4); n; n--)
            q.in.data[1 + rng_below(&r, q.in.size - 1)] =
                (uint8_t)rng_below(&r, 256);
        if (rng_below(&r, 8) == 0)
            q.in.size = 1 + rng_below(&r, q.in.size);
        memory fresh = {.now = 1};
        int err = call(stores ? &fresh : &m,
                       stores    ? "store"
                       : reduces ? "reduce"
                                 : "compute",
                       &q);
        CHECK(err <= 0 && q.out.size < 4u << 20);
        done(&q);
        memory_remove(&fresh);
        if (rng_below(&r, 8) == 0)
            release(&m, 1 + rng_below(&r, 200));
    }
    CHECK(memcmp(cells_of(&m, &f), cells, BYTES) == 0);
    memory_remove(&m);
}

static void
a_damaged_table_is_refused(void)
{
    rng r = rng_of(test_seed());
    random_cells(&r, cells);
    for (int i = 0; i < 300; i++) {
        memory m = {.now = 1};
        stored f = put_cells(&m, cells);
        REQUIRE(compute(&m, 100, &f, "x + 1", NULL) == 0);
        for (size_t k = 0; k < m.n; k++)
            for (uint64_t n = rng_below(&r, 3); n; n--)
                m.cells[k].value[rng_below(&r, m.cells[k].value_size)] =
                    (uint8_t)rng_below(&r, 256);
        int err = compute(&m, 101, &f, "x + 1", NULL);
        CHECK(err <= 0 && m.size < 256u << 20);
        request q = ask();
        pyri_buf_u64(&q.in, 100);
        CHECK(call(&m, "release", &q) <= 0);
        done(&q);
        memory_remove(&m);
    }
}

TESTS(T(what_is_computed_is_a_blob_beside_its_source),
      T(a_chain_and_another_snapshot_are_read_if_they_are_in_the_object),
      T(a_repeated_request_makes_no_second_blob),
      T(what_an_answer_has_no_room_for_is_kept),
      T(a_result_of_one_value_takes_no_space),
      T(cells_that_come_along_are_stored_as_the_function_makes_them),
      T(blobs_go_one_by_one_and_the_last_takes_the_object_along),
      T(an_object_that_nothing_was_computed_in_just_goes),
      T(a_full_object_says_so_and_stays_as_it_is),
      T(more_than_an_osd_should_do_is_refused),
      T(a_part_of_a_reduction_is_what_the_client_would_get),
      T(cells_that_are_not_those_that_were_meant_are_refused),
      T(requests_with_wrong_bytes_do_no_harm), T(a_damaged_table_is_refused))
