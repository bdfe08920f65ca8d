/*
 * keep/order_test.c - maintenance in every order.
 *
 * The same steps are done to equal stores in different orders; whatever the
 * order, the versions that are kept hold the same cells, and nothing else is
 * left. Versions of a store differ only in the numbers that resizes and folds
 * got; so what is compared are the snapshots that were there before.
 */
#include "keep/ledger.h"
#include "support/tmp_store.h"

enum { SIDE = 48, VERSIONS = 40, STEPS = 8 };

typedef struct stage {
    const char *path;
    pyr_store *store;
    pyr_array *array;
    uint32_t *cells[VERSIONS + 1];
    bool cloned;
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
    *s = (stage){.path = tmp_store("order")};
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
clone(stage *s)
{
    pyr_array *b;
    OK(pyr_clone(s->array, 2, "b", &b));
    for (uint32_t i = 0; i < 5; i++)
        write_box(b, 500 + i, 9);
    OK(pyr_forget(b, 0, PYR_LATEST, 1, 0, NULL));
    pyr_array_close(b);
    s->cloned = true;
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

static void (*const steps[STEPS])(stage *s) = {
    forget_some, forget_others, reclaim, fold, tag, clone, resize, open_anew};

/* --- every order --------------------------------------------------------- */

static bool
must_be_kept(pyr_version v)
{
    return v < 3 || v > 36;
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
}

/* Each step once, in a random order; then what remains is reclaimed. */
static void
the_order_of_maintenance_does_not_matter(void)
{
    static uint32_t clone_first[SIDE * SIDE], clone_now[SIDE * SIDE];
    static uint32_t latest[SIDE * SIDE];
    rng r = rng_of(test_seed());
    for (uint64_t round = 0; round < by_scale(20, 100, 3000); round++) {
        stage s;
        int order[STEPS], before = check_failures;
        char text[64] = "";
        make_stage(&s);
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
        reclaim(&s);
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
