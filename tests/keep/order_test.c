/*
 * keep/order_test.c - maintenance in every order.
 *
 * The same steps are done to equal stores in different orders; whatever the
 * order, the versions that are kept hold the same cells, and nothing else is
 * left; a copy that was made on the way, and went on in the end, holds them,
 * too. Versions of a store differ only in the numbers that resizes and folds
 * got; so what is compared are the snapshots that were there before. Meanwhile
 * a thread reads snapshots that are kept, and writes to an array beside.
 */
#include "keep/ledger.h"
#include "support/tmp_store.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SIDE = 48, VERSIONS = 40, STEPS = 10 };

typedef struct stage {
    const char *path, *copy;
    pyr_store *store;
    pyr_array *array;
    uint32_t *cells[VERSIONS + 1];
    pthread_t beside;
    atomic_bool over;
    char trouble[300]; /* of the one beside */
} stage;

static const uint64_t zero[2], whole[2] = {SIDE, SIDE};

static void
open_again(stage *s, unsigned flags)
{
    OK(pyr_open_with(s->path, flags,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS},
                     &s->store));
    if (!(flags & PYR_OPEN_CREATE))
        OK(pyr_array_open(s->store, "a", &s->array));
}

static void
close_both(stage *s)
{
    pyr_array_close(s->array);
    pyr_close(s->store);
}

static void
write_box(pyr_array *a, uint32_t number, uint64_t side)
{
    uint32_t cells[SIDE * SIDE];
    uint64_t at[2] = {number * 11 % (SIDE - side), number * 7 % (SIDE - side)};
    for (uint64_t i = 0; i < side * side; i++)
        cells[i] = number * 10000 + (uint32_t)i;
    OK(pyr_write(a, at, (uint64_t[2]){side, side}, cells, NULL));
}

static void
make_stage(stage *s)
{
    *s = (stage){.path = tmp_store("order"), .copy = tmp_store("copy")};
    open_again(s, PYR_OPEN_CREATE);
    OK(pyr_create(s->store, "a",
                  &(pyr_spec){.ndim = 2, .shape = whole,
                              .chunk = (uint64_t[2]){16, 16},
                              .type = PYR_U32},
                  &s->array));
    for (uint32_t i = 1; i <= VERSIONS; i++)
        write_box(s->array, i, 3 + i % 20);
    for (pyr_version v = 0; v <= VERSIONS; v++) {
        s->cells[v] = malloc(SIDE * SIDE * 4);
        OK(pyr_read(s->array, v, zero, whole, s->cells[v]));
    }
}

/* --- the steps ----------------------------------------------------------- */

static void
forget_some(stage *s)
{
    OK(pyr_forget(s->array, 3, 17, 0, 0, NULL));
}

static void
forget_others(stage *s)
{
    for (pyr_version v = 15; v < 36; v += 2)
        OK(pyr_forget(s->array, v, v + 1, 0, 0, NULL));
}

static void
reclaim(stage *s)
{
    pyr_reclaimed gone;
    OK(pyr_reclaim(s->store, NULL, &gone));
}

static void
fold(stage *s)
{
    for (uint32_t i = 0; i < 70; i++)
        write_box(s->array, 1000 * (i % 3), 1 + i % 2);
}

static void
tag(stage *s)
{
    OK(pyr_tag(s->array, "kept", 38));
}

/* As all steps, it must work whatever was before: version 2 is never
 * forgotten. */
static void
make_clone(stage *s)
{
    pyr_array *b;
    OK(pyr_clone(s->array, 2, "b", &b));
    for (uint32_t i = 0; i < 5; i++)
        write_box(b, 500 + i, 9);
    OK(pyr_forget(b, 0, PYR_LATEST, 1, 0, NULL));
    pyr_array_close(b);
}

static void
resize(stage *s)
{
    OK(pyr_resize(s->array, (uint64_t[2]){SIDE / 2, SIDE}, NULL));
    OK(pyr_resize(s->array, (uint64_t[2]){SIDE, 2 * SIDE}, NULL));
}

static void
open_anew(stage *s)
{
    close_both(s);
    open_again(s, 0);
}

static int
show(void *ctx, const pyr_harm *h)
{
    (void)ctx;
    printf("# '%s' version %d: %s\n", h->array, (int)h->version, h->what);
    return 0;
}

static void
verify(stage *s)
{
    pyr_verified seen;
    OK(pyr_verify(s->store, &(pyr_verify_spec){.deep = 1, .each = show},
                  &seen));
    CHECK(seen.harms == 0);
}

static void
copy(stage *s)
{
    pyr_store *to;
    OK(pyr_open_with(s->copy, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS},
                     &to));
    OK(pyr_copy(s->array, to, "a", NULL, NULL));
    pyr_close(to);
}

static void (*const steps[STEPS])(stage *s) = {
    forget_some, forget_others, reclaim,   fold,   tag,
    make_clone,  resize,        open_anew, verify, copy};

/* --- load ---------------------------------------------------------------- */

static bool
must_be_kept(pyr_version v)
{
    return v < 3 || v > 36;
}

static int
look_and_write(stage *s, pyr_array *a, pyr_array *own, uint32_t turn)
{
    uint32_t cells[SIDE * SIDE];
    pyr_version v = turn % (VERSIONS + 1);
    int err = 0;
    if (must_be_kept(v) && (err = pyr_read(a, v, zero, whole, cells)) == 0 &&
        memcmp(cells, s->cells[v], sizeof cells) != 0)
        snprintf(s->trouble, sizeof s->trouble, "wrong cells beside it");
    return err < 0 ? err
                   : pyr_write(own, (uint64_t[2]){turn % SIDE, 0},
                               (uint64_t[2]){1, 1}, &turn, NULL);
}

static void *
be_beside(void *arg)
{
    stage *s = arg;
    pyr_store *store = NULL;
    pyr_array *a = NULL, *own = NULL;
    pyr_spec spec = {.ndim = 2, .shape = whole, .type = PYR_U32};
    int err;
    if ((err = pyr_open(s->path, 0, &store)) == 0 &&
        (err = pyr_array_open(store, "a", &a)) == 0)
        err = pyr_create(store, "beside", &spec, &own);
    for (uint32_t i = 0; err == 0 && !s->trouble[0] && !s->over; i++)
        err = look_and_write(s, a, own, i);
    if (err < 0)
        snprintf(s->trouble, sizeof s->trouble, "%s", pyr_errmsg());
    pyr_array_close(own);
    pyr_array_close(a);
    pyr_close(store);
    return NULL;
}

static void
end_load(stage *s)
{
    atomic_store(&s->over, true);
    pthread_join(s->beside, NULL);
    if (s->trouble[0])
        CHECK_NOTE("beside: %s", s->trouble);
}

/* --- every order --------------------------------------------------------- */

/* What was forgotten before it was copied is not in the copy. */
static void
check_copy(stage *s)
{
    uint32_t cells[SIDE * SIDE];
    pyr_store *store;
    pyr_array *a;
    copy(s);
    OK(pyr_open(s->copy, PYR_OPEN_READONLY, &store));
    OK(pyr_array_open(store, "a", &a));
    for (pyr_version v = 0; v <= VERSIONS; v++) {
        int err = pyr_read(a, v, zero, whole, cells);
        if (err != 0 && (must_be_kept(v) || err != PYR_ENOVERSION))
            CHECK_NOTE("version %d of the copy: %d, %s", (int)v, err,
                       pyr_errmsg());
        else if (err == 0)
            CHECK(memcmp(cells, s->cells[v], sizeof cells) == 0);
    }
    pyr_array_close(a);
    pyr_close(store);
}

static void
check_stage(stage *s, uint32_t *latest, uint32_t *clone_cells)
{
    uint32_t cells[SIDE * SIDE];
    pyr_array *b;
    for (pyr_version v = 0; v <= VERSIONS; v++) {
        int err = pyr_read(s->array, v, zero, whole, cells);
        if (err != (must_be_kept(v) ? 0 : PYR_ENOVERSION))
            CHECK_NOTE("version %d: %d, %s", (int)v, err, pyr_errmsg());
        else if (err == 0)
            CHECK(memcmp(cells, s->cells[v], sizeof cells) == 0);
    }
    OK(pyr_read(s->array, PYR_LATEST, zero, whole, latest));
    OK(pyr_array_open(s->store, "b", &b));
    OK(pyr_read(b, PYR_LATEST, zero, whole, clone_cells));
    pyr_array_close(b);
    ledger_check(s->store);
}

static void
end_stage(stage *s)
{
    for (pyr_version v = 0; v <= VERSIONS; v++)
        free(s->cells[v]);
    close_both(s);
    tmp_remove(s->path);
    tmp_remove(s->copy);
}

/* Each step once, in a random order; then what remains is reclaimed. */
static void
the_order_of_maintenance_does_not_matter(void)
{
    static uint32_t clone_first[SIDE * SIDE], clone_now[SIDE * SIDE];
    static uint32_t latest[SIDE * SIDE];
    rng r = rng_of(test_seed());
    for (uint64_t round = 0; round < by_scale(16, 60, 3000); round++) {
        stage s;
        int order[STEPS], before = check_failures;
        char text[64] = "";
        make_stage(&s);
        REQUIRE(pthread_create(&s.beside, NULL, be_beside, &s) == 0);
        for (int i = 0; i < STEPS; i++)
            order[i] = i;
        for (int i = 0; i < STEPS; i++) {
            int k = i + (int)rng_below(&r, (uint64_t)(STEPS - i));
            int swap = order[i];
            order[i] = order[k], order[k] = swap;
            snprintf(text + 2 * i, sizeof text - 2 * (size_t)i, "%d ",
                     order[i]);
            steps[order[i]](&s);
            if (rng_once_in(&r, 4))
                reclaim(&s);
        }
        end_load(&s);
        reclaim(&s);
        check_copy(&s);
        check_stage(&s, latest, round ? clone_now : clone_first);
        CHECK(!round || memcmp(clone_now, clone_first, sizeof clone_now) == 0);
        end_stage(&s);
        if (check_failures > before) {
            printf("# order %s\n", text);
            return;
        }
    }
}

TESTS(T(the_order_of_maintenance_does_not_matter))
