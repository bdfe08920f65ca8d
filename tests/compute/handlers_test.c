/*
 * compute/handlers_test.c - handlers: which cells go through them, from when
 * on, and what happens if one fails.
 */
#include "api/fixture.h"
#include "compute/kernels.h"
#include "support/proc.h"

#include <stdatomic.h>
#include <sys/mman.h>

static pyr_array *array;

static void
open_with(const char *where, const char *kernels)
{
    snprintf(url, sizeof url, "%s", where);
    OK(pyr_open_with(url, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS,
                                          .kernels = kernels},
                     &store));
}

static void
make(pyr_type type, uint64_t n, uint64_t chunk)
{
    OK(pyr_create(store, "t",
                  &(pyr_spec){.ndim = 1, .shape = &n, .chunk = &chunk,
                              .type = type}, &array));
}

static void
begin(pyr_type type, uint64_t n, uint64_t chunk)
{
    open_with(tmp_fresh("handlers"), kernels_dir());
    make(type, n, chunk);
}

static void
finish(void)
{
    pyr_array_close(array);
    array = NULL;
    tear_down();
}

static unsigned
add(const char *function)
{
    unsigned number = 0;
    OK(pyr_handler_add(array, PYR_ON_WRITE, function, &number));
    return number;
}

/* --- which cells ---------------------------------------------------------- */

static int
check_through(void *ctx, const pyr_change *c)
{
    if (strcmp(c->handlers, ctx) != 0)
        CHECK_NOTE("version %d went through '%s', not '%s'", (int)c->version,
                   c->handlers, (char *)ctx);
    return 0;
}

/* Cells [lo, hi) of a version are `first`, and more by `step` each. */
static void
check_cells(pyr_version v, uint64_t lo, uint64_t hi, int first, int step)
{
    int32_t cells[300];
    uint64_t n = hi - lo;
    REQUIRE(n <= 300);
    OK(pyr_read(array, v, &lo, &n, cells));
    for (uint64_t i = 0; i < n; i++)
        if (cells[i] != first + (int)i * step) {
            CHECK_NOTE("version %d, cell %d is %d", (int)v, (int)(lo + i),
                       cells[i]);
            break;
        }
}

static void
cells_go_through_on_every_way_in(void)
{
    static char through[] = "x * 10; x + i0";
    uint64_t all = 100, at, half = 50;
    int32_t ramp[100], ones[100];
    pyr_batch *batch;
    begin(PYR_I32, all, 8);
    for (int i = 0; i < 100; i++) {
        ramp[i] = i;
        ones[i] = 1;
    }
    OK(pyr_write(array, zero, &all, ramp, NULL));
    CHECK(add("x*10") == 1 && add("(x + i0)") == 2);
    OK(pyr_write(array, zero, &all, ramp, NULL));
    check_cells(2, 0, 100, 0, 11);
    CHECK(ramp[7] == 7); /* his own stay as they are */
    /* one cell of three, in chunks with holes */
    pyr_part part = {.offset = zero, .size = (uint64_t[1]){1},
                     .count = (uint64_t[1]){34}, .stride = (uint64_t[1]){3},
                     .buf = ones};
    OK(pyr_write_list(array, &part, 1, NULL, NULL));
    for (uint64_t i = 0; i < 100; i++)
        check_cells(3, i, i + 1, (i % 3 ? 10 * (int)i : 10) + (int)i, 0);
    OK(pyr_batch_begin(array, &batch));
    OK(pyr_batch_write(batch, zero, &half, ones));
    OK(pyr_batch_write(batch, &half, &half, ramp));
    OK(pyr_batch_commit(batch, NULL, NULL));
    check_cells(4, 0, 50, 10, 1);
    check_cells(4, 50, 100, 50, 11);
    OK(pyr_append(array, 0, 20, ones, &at, NULL));
    check_cells(5, 100, 120, 110, 1);
    OK(pyr_compute(array, 1, zero, &all, "x + 1", NULL));
    check_cells(6, 0, 100, 10, 11);
    OK(pyr_compute(array, 0, zero, &all, "x + 2", NULL)); /* of one value */
    check_cells(7, 0, 100, 20, 1);
    OK(pyr_resize(array, (uint64_t[1]){200}, NULL)); /* no cells are stored */
    check_cells(8, 120, 200, 0, 0);
    OK(pyr_history(array, 1, 1, check_through, (void *)(uintptr_t)""));
    OK(pyr_history(array, 2, 7, check_through, through));
    OK(pyr_history(array, 8, 8, check_through, (void *)(uintptr_t)""));
    OK(pyr_handler_remove(array, 1));
    OK(pyr_write(array, zero, &all, ones, NULL));
    check_cells(9, 0, 100, 1, 1);
    OK(pyr_history(array, 9, 9, check_through, (void *)(uintptr_t)"x + i0"));
    OK(pyr_handler_remove(array, 2));
    OK(pyr_write(array, zero, &all, ones, NULL));
    check_cells(10, 0, 100, 1, 0);
    OK(pyr_history(array, 10, 10, check_through, (void *)(uintptr_t)""));
    OK(pyr_verify(store, &(pyr_verify_spec){.deep = 1}, NULL));
    finish();
}

static void
large_writes_go_through_too(void)
{
    uint64_t shape[2] = {700, 500}, chunk[2] = {128, 200}, at[2] = {3, 4};
    uint64_t size[2] = {690, 490};
    double *cells = malloc(700 * 500 * sizeof *cells);
    pyr_value v;
    REQUIRE(cells);
    open_with(tmp_fresh("handlers"), kernels_dir());
    OK(pyr_create(store, "t",
                  &(pyr_spec){.ndim = 2, .shape = shape, .chunk = chunk,
                              .type = PYR_F64, .codec = PYR_CODEC_LZ4},
                  &array));
    for (int i = 0; i < 690 * 490; i++)
        cells[i] = i % 7 ? i : NAN;
    add("where(isnan(x), -1, gain(factor=2))");
    add("x + 0");
    OK(pyr_write(array, at, size, cells, NULL));
    OK(pyr_read(array, 1, at, size, cells));
    for (int i = 0; i < 690 * 490; i++)
        if (cells[i] != (i % 7 ? 2.0 * i : -1)) {
            CHECK_NOTE("cell %d is %g", i, cells[i]);
            break;
        }
    OK(pyr_reduce(array, 1, zero, shape, "count(isnan(x))", &v));
    CHECK(v.low == 0);
    OK(pyr_history(array, 1, 1, check_through,
                   (void *)(uintptr_t) "where(isnan(x), -1, gain(factor=2)); "
                                       "x + 0  # gain 1.0"));
    free(cells);
    finish();
}

static void
each_part_of_a_batch_goes_its_own_way(void)
{
    uint64_t n = 30, at[3] = {0, 10, 20}, ten = 10;
    int32_t ones[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    pyr_batch *batch;
    begin(PYR_I32, n, 4);
    OK(pyr_batch_begin(array, &batch));
    add("x + 1");
    OK(pyr_batch_write(batch, &at[0], &ten, ones));
    add("x * 3");
    OK(pyr_batch_write(batch, &at[1], &ten, ones));
    OK(pyr_handler_remove(array, 1));
    OK(pyr_handler_remove(array, 2));
    OK(pyr_batch_write(batch, &at[2], &ten, ones));
    OK(pyr_batch_commit(batch, NULL, NULL));
    check_cells(1, 0, 10, 2, 0);
    check_cells(1, 10, 20, 6, 0);
    check_cells(1, 20, 30, 1, 0);
    OK(pyr_history(array, 1, 1, check_through,
                   (void *)(uintptr_t)"x + 1; x + 1; x * 3"));
    finish();
}

static void
clones_and_copies_have_none(void)
{
    uint64_t n = 10;
    int32_t ones[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    pyr_array *clone, *original;
    begin(PYR_I32, n, 4);
    add("x * 5");
    OK(pyr_write(array, zero, &n, ones, NULL));
    OK(pyr_clone(array, 1, "u", &clone));
    OK(pyr_write(clone, zero, &n, ones, NULL));
    original = array;
    array = clone;
    check_cells(0, 0, 10, 5, 0);
    check_cells(1, 0, 10, 1, 0);
    array = original;
    pyr_array_close(clone);
    OK(pyr_copy(original, store, "copy", NULL, NULL));
    OK(pyr_array_open(store, "copy", &array));
    check_cells(1, 0, 10, 5, 0); /* once, not twice */
    OK(pyr_history(array, 1, 1, check_through, (void *)(uintptr_t)"x * 5"));
    OK(pyr_write(array, zero, &n, ones, NULL));
    check_cells(2, 0, 10, 1, 0);
    pyr_array_close(original);
    finish();
}

static void
an_engine_without_marks_does_it_as_well(void)
{
    uint64_t n = 10;
    int32_t ones[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    open_with("mem:handlers", kernels_dir());
    make(PYR_I32, n, 4);
    OK(pyr_write(array, zero, &n, ones, NULL));
    CHECK(add("x + 1") == 1);
    OK(pyr_write(array, zero, &n, ones, NULL));
    check_cells(2, 0, 10, 2, 0);
    OK(pyr_handler_remove(array, 1));
    OK(pyr_write(array, zero, &n, ones, NULL));
    check_cells(3, 0, 10, 1, 0);
    CHECK(add("x + 2") == 2);
    OK(pyr_write(array, zero, &n, ones, NULL));
    check_cells(4, 0, 10, 3, 0);
    pyr_array_close(array);
    array = NULL;
    pyr_close(store);
}

/* --- what goes wrong ------------------------------------------------------ */

static void
refuse(int code, const char *function, const char *says)
{
    unsigned number = 77;
    FAILS(code, pyr_handler_add(array, PYR_ON_WRITE, function, &number));
    CHECK(number == 77);
    if (!strstr(pyr_errmsg(), says))
        CHECK_NOTE("%s: %s", function, pyr_errmsg());
}

static int
count_handlers(void *ctx, const pyr_handler *h)
{
    CHECK(h->event == PYR_ON_WRITE && *h->who && h->time_ns > 0);
    ++*(int *)ctx;
    return 0;
}

static void
what_cannot_be_a_handler_is_refused(void)
{
    pyr_store *other;
    pyr_array *a;
    int n = 0;
    begin(PYR_F32, 10, 4);
    refuse(PYR_EINVAL, "x@1", "forgotten");
    refuse(PYR_EINVAL, "mean(x)", "one value");
    refuse(PYR_EINVAL, "x +", "column 4");
    refuse(PYR_EINVAL, "i1", "axes");
    refuse(PYR_EINVAL, "laplacian()", "around");
    refuse(PYR_EKERNEL, "nowhere()", "'nowhere'");
    FAILS(PYR_EINVAL, pyr_handler_add(array, (pyr_event)9, "x", NULL));
    FAILS(PYR_EINVAL, pyr_handler_add(NULL, PYR_ON_WRITE, "x", NULL));
    FAILS(PYR_EINVAL, pyr_handler_add(array, PYR_ON_WRITE, NULL, NULL));
    FAILS(PYR_EINVAL, pyr_handler_list(array, NULL, NULL));
    FAILS(PYR_ENOTFOUND, pyr_handler_remove(array, 1));
    OK(pyr_open(url, PYR_OPEN_READONLY, &other));
    OK(pyr_array_open(other, "t", &a));
    FAILS(PYR_EREADONLY, pyr_handler_add(a, PYR_ON_WRITE, "x", NULL));
    FAILS(PYR_EREADONLY, pyr_handler_remove(a, 1));
    OK(pyr_handler_list(a, count_handlers, &n));
    CHECK(n == 0);
    for (unsigned i = 1; i <= 16; i++)
        CHECK(add("x") == i);
    refuse(PYR_EINVAL, "x", "no more");
    OK(pyr_handler_remove(array, 5));
    FAILS(PYR_ENOTFOUND, pyr_handler_remove(array, 5));
    CHECK(add("x") == 17);
    OK(pyr_handler_list(a, count_handlers, &n));
    CHECK(n == 16);
    pyr_array_close(a);
    pyr_close(other);
    finish();
}

static void
a_failing_handler_fails_the_write_and_publishes_nothing(void)
{
    uint64_t n = 20, one = 1, bytes;
    int32_t cells[20];
    pyr_version latest;
    pyr_batch *batch;
    begin(PYR_I32, n, 8);
    for (int i = 0; i < 20; i++)
        cells[i] = i;
    add("x + 0");
    add("bad_fails()");
    bytes = data_bytes();
    FAILS(PYR_EKERNEL, pyr_write(array, zero, &n, cells, NULL));
    CHECK(strstr(pyr_errmsg(), "array 't', handler 2, bad_fails()"));
    CHECK(strstr(pyr_errmsg(), "13 is bad luck"));
    FAILS(PYR_EKERNEL, pyr_compute(array, 0, zero, &n, "i0", NULL));
    CHECK(strstr(pyr_errmsg(), "handler 2"));
    OK(pyr_batch_begin(array, &batch));
    FAILS(PYR_EKERNEL, pyr_batch_write(batch, zero, &n, cells));
    FAILS(PYR_EKERNEL, pyr_batch_commit(batch, NULL, NULL));
    OK(pyr_latest(array, &latest));
    CHECK(latest == 0 && data_bytes() == bytes);
    /* an append has its version by then: it is over at once, not in a lease */
    FAILS(PYR_EKERNEL, pyr_append(array, 0, 20, cells, NULL, NULL));
    CHECK(strstr(pyr_errmsg(), "handler 2"));
    OK(pyr_write(array, zero, &one, cells, &latest));
    CHECK(latest == 2);
    OK(pyr_verify(store, &(pyr_verify_spec){.deep = 1}, NULL));
    finish();
}

static void
a_handler_that_this_machine_lacks_is_named(void)
{
    uint64_t n = 10;
    int32_t cells[10] = {1};
    pyr_store *other;
    pyr_array *a;
    pyr_version latest;
    begin(PYR_I32, n, 4);
    add("gain(factor=3)");
    OK(pyr_write(array, zero, &n, cells, NULL));
    OK(pyr_open_with(url, 0, &(pyr_store_options){.kernels = "/nowhere"},
                     &other));
    OK(pyr_array_open(other, "t", &a));
    FAILS(PYR_EKERNEL, pyr_write(a, zero, &n, cells, NULL));
    CHECK(strstr(pyr_errmsg(), "array 't', handler 1, gain(factor=3)"));
    FAILS(PYR_EKERNEL, pyr_append(a, 0, 1, cells, NULL, NULL));
    OK(pyr_latest(a, &latest));
    CHECK(latest == 1); /* an append asks before it takes a version */
    OK(pyr_read(a, 1, zero, &n, cells));
    CHECK(cells[0] == 3);
    OK(pyr_handler_remove(a, 1));
    OK(pyr_write(a, zero, &n, cells, NULL));
    pyr_array_close(a);
    pyr_close(other);
    finish();
}

/* --- from when on --------------------------------------------------------- */

enum { WRITERS = 4, CELLS = 64 };

/* Shared by processes. */
typedef struct board {
    _Atomic int added, removed; /* changes that have returned */
    _Atomic int stop, ready;
    _Atomic uint64_t made; /* versions that must have gone through */
} board;

static board *b;

/* Cells of an odd value; the handler makes them even. */
static int
write_on(void *arg)
{
    uint64_t n = CELLS;
    int32_t cells[CELLS];
    pyr_store *s;
    pyr_array *a;
    (void)arg;
    alarm(120);
    if (pyr_open_with(url, 0, &(pyr_store_options){.kernels = ""}, &s) < 0 ||
        pyr_array_open(s, "t", &a) < 0)
        return 1;
    for (int i = 0; i < CELLS; i++)
        cells[i] = 2 * (int)getpid() + 1;
    atomic_fetch_add(&b->ready, 1);
    for (int round = 0; !atomic_load(&b->stop); round++) {
        pyr_version made;
        int32_t first;
        /* changes before it begins, and after it has returned */
        int removed = atomic_load(&b->removed), added = atomic_load(&b->added);
        if (pyr_write(a, zero, &n, cells, &made) < 0 ||
            pyr_read(a, made, zero, (uint64_t[1]){1}, &first) < 0)
            return 2;
        bool still = added == atomic_load(&b->added) &&
                     removed == atomic_load(&b->removed);
        if (still && added > removed && first % 2 != 0)
            return 3; /* it was there all the time */
        if (added > removed && still)
            atomic_fetch_add(&b->made, 1);
    }
    pyr_array_close(a);
    pyr_close(s);
    return 0;
}

static int
check_version(void *ctx, const pyr_change *c)
{
    int32_t cells[CELLS];
    uint64_t n = CELLS;
    pyr_array *a = ctx;
    bool through = *c->handlers;
    if (c->kind != PYR_KIND_WRITE)
        return 0;
    OK(pyr_read(a, c->version, zero, &n, cells));
    for (int i = 0; i < CELLS; i++)
        if ((cells[i] % 2 == 0) != through) {
            CHECK_NOTE("version %d: history and cells disagree",
                       (int)c->version);
            return 0;
        }
    return 0;
}

/* Adding and removing while others write: `added` counts after the call, and
 * `removed` before it, so that in between it is there for certain. */
static void
writers_elsewhere_notice_at_once(void)
{
    pid_t pid[WRITERS];
    unsigned rounds = (unsigned)by_scale(5, 30, 300);
    pyr_array *reader;
    bool dead = false;
    begin(PYR_I32, CELLS, 16);
    b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(b != MAP_FAILED);
    for (int i = 0; i < WRITERS; i++)
        pid[i] = proc_fork(write_on, NULL);
    while (atomic_load(&b->ready) < WRITERS)
        sched_yield();
    for (unsigned i = 0; i < rounds; i++) {
        unsigned number = add("x + 1");
        atomic_fetch_add(&b->added, 1);
        uint64_t before = atomic_load(&b->made);
        while (atomic_load(&b->made) < before + WRITERS && !dead) {
            sched_yield(); /* some writes in between */
            dead = waitpid(-1, NULL, WNOHANG) > 0;
        }
        atomic_fetch_add(&b->removed, 1);
        OK(pyr_handler_remove(array, number));
    }
    atomic_store(&b->stop, 1);
    for (int i = 0; i < WRITERS; i++) {
        int status = -1;
        waitpid(pid[i], &status, 0);
        proc_forget(pid[i]);
        if (status != 0)
            CHECK_NOTE("a writer ended with status %x", status);
    }
    OK(pyr_array_open(store, "t", &reader));
    OK(pyr_history(array, 0, PYR_LATEST, check_version, reader));
    pyr_array_close(reader);
    munmap(b, sizeof *b);
    OK(pyr_verify(store, &(pyr_verify_spec){.deep = 1}, NULL));
    finish();
}

static void *
add_some(void *arg)
{
    pyr_array *a;
    int *bad = arg;
    if (pyr_array_open(store, "t", &a) < 0)
        return NULL;
    for (int i = 0; i < 4; i++)
        *bad += pyr_handler_add(a, PYR_ON_WRITE, "x + 1", NULL) < 0;
    pyr_array_close(a);
    return NULL;
}

static void
handlers_added_side_by_side_are_all_kept(void)
{
    pthread_t thread[4];
    int bad[4] = {0}, n = 0;
    uint64_t all = 10;
    int32_t ones[10] = {0};
    begin(PYR_I32, all, 4);
    for (int i = 0; i < 4; i++)
        REQUIRE(pthread_create(&thread[i], NULL, add_some, &bad[i]) == 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        CHECK(bad[i] == 0);
    }
    OK(pyr_handler_list(array, count_handlers, &n));
    CHECK(n == 16);
    OK(pyr_write(array, zero, &all, ones, NULL));
    check_cells(1, 0, 10, 16, 0);
    finish();
}

TESTS(T(cells_go_through_on_every_way_in), T(large_writes_go_through_too),
      T(each_part_of_a_batch_goes_its_own_way),
      T(clones_and_copies_have_none),
      T(an_engine_without_marks_does_it_as_well),
      T(what_cannot_be_a_handler_is_refused),
      T(a_failing_handler_fails_the_write_and_publishes_nothing),
      T(a_handler_that_this_machine_lacks_is_named),
      T(writers_elsewhere_notice_at_once),
      T(handlers_added_side_by_side_are_all_kept))
