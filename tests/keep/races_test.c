/*
 * keep/races_test.c - forgetting beside writers that stand at a chosen point.
 *
 * Fault points are hooks here: a writer on a thread of its own waits at one
 * while others go on.
 */
#include "keep/halted.h"
#include "keep/ledger.h"
#include "keep/stage.h"

#include <stdatomic.h>

enum { CELLS = 4096 };

static int
write_cell(pyr_array *array, uint64_t at, pyr_version *v)
{
    uint32_t cells[2] = {(uint32_t)at + 1, (uint32_t)at + 2};
    uint64_t size = 2;
    return pyr_write(array, &at, &size, cells, v);
}

/* A write of two cells that stands at a point. */
typedef struct writer {
    halted at_point;
    pyr_array *array;
    uint64_t at;
    pyr_version version;
} writer;

static int
run_writer(void *ctx)
{
    writer *w = ctx;
    return write_cell(w->array, w->at, &w->version);
}

static void
begin(writer *w, pyr_array *array, uint64_t at, const char *point)
{
    *w = (writer){.array = array, .at = at};
    halt_begin(&w->at_point, point, run_writer, w);
}

static void
finish(writer *w)
{
    halt_end(&w->at_point);
}

static void
open_stage(stage *s)
{
    stage_open(s, tmp_store("race"), 3600000, 1, CELLS, CELLS);
}

static pyr_version
write_many(stage *s, uint64_t from, int n)
{
    pyr_version v = 0;
    for (int i = 0; i < n; i++)
        OK(write_cell(s->array, from + 4 * (uint64_t)i, &v));
    return v;
}

static void
forget_one(stage *s, pyr_version v)
{
    pyr_reclaimed gone;
    OK(pyr_forget(s->array, v, v, 1, 0, NULL));
    OK(pyr_reclaim(s->store, NULL, &gone));
    CHECK(gone.left == 0);
}

/* All cells of `at`, and those of write_many from 0 on, are there. */
static void
check_cells(stage *s, pyr_version v, int n, const uint64_t *at, int more)
{
    static uint32_t cells[CELLS];
    uint64_t zero = 0, size = CELLS;
    OK(pyr_read(s->array, v, &zero, &size, cells));
    for (int i = 0; i < n; i++)
        CHECK(cells[4 * i] == (uint32_t)(4 * i + 1));
    for (int i = 0; i < more; i++)
        CHECK(cells[at[i]] == (uint32_t)(at[i] + 1));
}

/*
 * Three writers fold one chunk, each as of another snapshot. The last one
 * began to lie on the fold of the second, which the first then replaced.
 */
static void
a_fold_is_kept_as_long_as_a_version_lies_on_it(void)
{
    for (int n = 29; n < 36; n++) {
        stage s;
        writer first, last;
        pyr_version q;
        uint64_t at[] = {1000, 1004, 1008};
        open_stage(&s);
        write_many(&s, 0, n);
        begin(&first, s.array, at[0], "write.synced");
        OK(write_cell(s.array, at[1], &q));
        begin(&last, s.array, at[2], "write.synced");
        finish(&first);
        finish(&last);
        forget_one(&s, q);
        check_cells(&s, last.version, n, at, 3);
        forget_one(&s, first.version);
        check_cells(&s, last.version, n, at, 3);
        ledger_check(s.store);
        close_stage(&s);
    }
}

/* The same, but the first is in flight while the last is made. */
static void
a_fold_below_a_version_in_flight_is_kept(void)
{
    for (int n = 29; n < 36; n++) {
        stage s;
        writer first, last, low;
        pyr_version q;
        uint64_t at[] = {1000, 1004, 1008, 1012};
        open_stage(&s);
        write_many(&s, 0, n);
        begin(&first, s.array, at[0], "write.synced");
        OK(write_cell(s.array, at[1], &q));
        begin(&low, s.array, at[3], "write.taken");
        begin(&last, s.array, at[2], "write.synced");
        halt_release(&first.at_point); /* it completes, and waits for the low one */
        pyr_status status;
        do
            OK(pyr_store_status(s.store, &status, NULL, NULL));
        while (status.in_flight < 2);
        halt_release(&last.at_point);
        do
            OK(pyr_store_status(s.store, &status, NULL, NULL));
        while (status.in_flight < 3);
        finish(&low);
        halt_join(&first.at_point);
        halt_join(&last.at_point);
        forget_one(&s, q);
        forget_one(&s, low.version);
        check_cells(&s, last.version, n, at, 4);
        ledger_check(s.store);
        close_stage(&s);
    }
}

static int
write_all(void *ctx)
{
    writer *w = ctx;
    static uint32_t cells[CELLS];
    for (uint64_t i = 0; i < CELLS; i++)
        cells[i] = (uint32_t)i + 1;
    return pyr_write(w->array, &(uint64_t){0}, &(uint64_t){CELLS}, cells,
                     &w->version);
}

static int
write_and_go(void *ctx)
{
    writer *w = ctx;
    uint32_t cells[2] = {(uint32_t)w->at + 1, (uint32_t)w->at + 2};
    pyr_part part = {.offset = &w->at, .size = &(uint64_t){2}, .buf = cells};
    return pyr_write_list(w->array, &part, 1,
                          &(pyr_write_options){.flags = PYR_WRITE_NOWAIT},
                          &w->version);
}

/* Reclaiming has put it, into the newest snapshot. Who saw it there lies on a
 * version in flight that hides it, so that nobody in between needs it. */
static void
the_fold_of_another_is_not_taken_along(void)
{
    stage s;
    writer over = {.at = 0}, last = {.at = 1000};
    pyr_reclaimed gone;
    open_stage(&s);
    over.array = last.array = s.array;
    pyr_version newest = write_many(&s, 0, 8);
    OK(pyr_forget(s.array, 0, PYR_LATEST, 1, 0, NULL));
    OK(pyr_reclaim(s.store, NULL, &gone));
    CHECK(gone.folded > 0 || !tmp_is_path(s.url)); /* nobody folds there */
    halt_begin(&last.at_point, "write.synced", write_and_go, &last);
    halt_begin(&over.at_point, "write.taken", write_all, &over);
    halt_end(&last.at_point);
    halt_end(&over.at_point);
    CHECK(over.version == newest + 1 && last.version == newest + 2);
    forget_one(&s, newest);
    check_cells(&s, last.version, 8, &last.at, 1);
    ledger_check(s.store);
    close_stage(&s);
}

/* --- tags and clones beside it ------------------------------------------- */

typedef struct naming {
    stage *s;
    int made, refused, wrong;
    atomic_bool over;
} naming;

/* Tags and clones versions until it is over. What it could name stays. */
static void *
name_versions(void *arg)
{
    naming *n = arg;
    for (int i = 0; !atomic_load(&n->over) || i < 50; i++) {
        char name[32];
        pyr_version v;
        snprintf(name, sizeof name, "n%d", i);
        pyr_latest(n->s->array, &v);
        v -= (uint64_t)i / 2 % 4 < v ? (uint64_t)i / 2 % 4 : v;
        int err = i % 2 ? pyr_tag(n->s->array, name, v)
                        : pyr_clone(n->s->array, v, name, NULL);
        n->made += err == 0;
        n->refused += err == PYR_ENOVERSION;
        n->wrong += err != 0 && err != PYR_ENOVERSION;
        if (i > 4000)
            break;
    }
    return NULL;
}

static int
check_tag(void *ctx, const char *tag, pyr_version v)
{
    stage *s = ctx;
    uint32_t cell;
    (void)tag;
    OK(pyr_read(s->array, v, &(uint64_t){0}, &(uint64_t){1}, &cell));
    return 0;
}

static int
check_clone(void *ctx, const char *name)
{
    stage *s = ctx;
    static uint32_t cells[CELLS];
    pyr_array *clone;
    OK(pyr_array_open(s->store, name, &clone));
    OK(pyr_read(clone, 0, &(uint64_t){0}, &(uint64_t){CELLS}, cells));
    pyr_array_close(clone);
    return 0;
}

static void
a_version_that_got_a_tag_or_a_clone_is_not_lost(void)
{
    stage s;
    naming n = {.s = &s};
    pthread_t thread;
    pyr_reclaimed gone;
    open_stage(&s);
    write_many(&s, 0, 10);
    REQUIRE(pthread_create(&thread, NULL, name_versions, &n) == 0);
    for (int i = 0; i < (int)by_scale(60, 200, 2000); i++) {
        CHECK(write_cell(s.array, (uint64_t)(i % 500) * 8, NULL) == 0);
        CHECK(pyr_forget(s.array, 0, PYR_LATEST, 2, 0, NULL) == 0);
        if (i % 7 == 0)
            CHECK(pyr_reclaim(s.store, NULL, &gone) == 0);
    }
    atomic_store(&n.over, true);
    pthread_join(thread, NULL);
    CHECK(n.wrong == 0 && n.made > 0);
    OK(pyr_reclaim(s.store, NULL, &gone));
    printf("# %d were named, %d refused\n", n.made, n.refused);
    OK(pyr_tags(s.array, check_tag, &s));
    OK(pyr_arrays(s.store, check_clone, &s));
    ledger_check(s.store);
    close_stage(&s);
}

TESTS(T(a_fold_is_kept_as_long_as_a_version_lies_on_it),
      T(a_fold_below_a_version_in_flight_is_kept),
      T(the_fold_of_another_is_not_taken_along),
      T(a_version_that_got_a_tag_or_a_clone_is_not_lost))
