/*
 * keep/rules_test.c - which versions are forgotten, what is refused, and what
 * is left when all but a few have gone.
 */
#include "keep/ledger.h"
#include "keep/stage.h"

enum { SIDE = 64, CHUNK = 16 };

static void
open_stage(stage *s)
{
    stage_open(s, tmp_store("keep"), 0, 2, SIDE, CHUNK);
}

/* Two rows, at a place that the number tells, hold it. */
static void
write_one(pyr_array *a, uint32_t number)
{
    uint32_t cells[40];
    uint64_t at[2] = {number * 7 % (SIDE - 2), number * 5 % (SIDE - 20)};
    uint64_t size[2] = {2, 20};
    for (int i = 0; i < 40; i++)
        cells[i] = number * 1000 + (uint32_t)i;
    OK(pyr_write(a, at, size, cells, NULL));
}

static void
write_some(pyr_array *a, uint32_t from, uint32_t n)
{
    for (uint32_t i = from; i < from + n; i++)
        write_one(a, i);
}

static bool
is_kept(pyr_array *a, pyr_version v)
{
    pyr_info info;
    int err = pyr_array_info(a, v, &info);
    CHECK(err == 0 || err == PYR_ENOVERSION);
    return err == 0;
}

/* The versions 0 to 9 that are kept, as "0 3 9". */
static const char *
kept(pyr_array *a)
{
    static char text[64];
    size_t n = 0;
    text[0] = 0;
    for (pyr_version v = 0; v < 10; v++)
        if (is_kept(a, v))
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%d",
                                  n ? " " : "", (int)v);
    return text;
}

static void
reclaim(stage *s)
{
    pyr_reclaimed gone;
    OK(pyr_reclaim(s->store, NULL, &gone));
    CHECK(gone.waiting == 0);
}

#define KEPT(a, want)                                                         \
    do {                                                                      \
        const char *have = kept(a);                                           \
        if (strcmp(have, want) != 0)                                          \
            CHECK_NOTE("kept: %s, not %s", have, want);                       \
    } while (0)

/* --- which --------------------------------------------------------------- */

static void
a_version_or_a_range_is_forgotten_and_no_other(void)
{
    stage s;
    uint64_t n;
    open_stage(&s);
    write_some(s.array, 1, 9);
    OK(pyr_forget(s.array, 4, 4, 0, 0, &n));
    CHECK(n == 1);
    OK(pyr_forget(s.array, 6, 7, 0, 0, &n));
    CHECK(n == 2);
    KEPT(s.array, "0 1 2 3 5 8 9");
    OK(pyr_forget(s.array, 3, 8, 0, 0, &n));
    CHECK(n == 3); /* some had been */
    reclaim(&s);
    KEPT(s.array, "0 1 2 9");
    OK(pyr_forget(s.array, 3, 8, 0, 0, &n));
    CHECK(n == 0);
    close_stage(&s);
}

static void
the_newest_and_the_empty_one_stay(void)
{
    stage s;
    uint64_t n;
    open_stage(&s);
    write_some(s.array, 1, 9);
    FAILS(PYR_EINVAL, pyr_forget(s.array, 9, 9, 0, 0, &n));
    FAILS(PYR_EINVAL, pyr_forget(s.array, PYR_LATEST, PYR_LATEST, 0, 0, &n));
    FAILS(PYR_EINVAL, pyr_forget(s.array, 0, 0, 0, 0, &n));
    FAILS(PYR_EINVAL, pyr_forget(s.array, 5, 4, 0, 0, &n));
    FAILS(PYR_ENOVERSION, pyr_forget(s.array, 10, 10, 0, 0, &n));
    KEPT(s.array, "0 1 2 3 4 5 6 7 8 9");
    OK(pyr_forget(s.array, 0, PYR_LATEST, 3, 0, &n));
    CHECK(n == 6);
    KEPT(s.array, "0 7 8 9");
    FAILS(PYR_EINVAL, pyr_forget(s.array, 8, 8, 2, 0, &n));
    OK(pyr_forget(s.array, 0, PYR_LATEST, 0, 0, NULL));
    KEPT(s.array, "0 9");
    close_stage(&s);
}

static void
so_many_are_kept_counts_only_those_that_are_left(void)
{
    stage s;
    uint64_t n;
    open_stage(&s);
    write_some(s.array, 1, 9);
    OK(pyr_forget(s.array, 6, 8, 0, 0, NULL));
    OK(pyr_forget(s.array, 0, PYR_LATEST, 3, 0, &n));
    CHECK(n == 3);
    KEPT(s.array, "0 4 5 9");
    close_stage(&s);
}

static void
tagged_versions_stay_unless_asked_for(void)
{
    stage s;
    uint64_t n;
    pyr_version v;
    open_stage(&s);
    write_some(s.array, 1, 9);
    OK(pyr_tag(s.array, "one", 3));
    OK(pyr_tag(s.array, "two", 3));
    OK(pyr_tag(s.array, "three", 5));
    FAILS(PYR_EINVAL, pyr_forget(s.array, 3, 3, 0, 0, &n));
    CHECK(strstr(pyr_errmsg(), "tag"));
    OK(pyr_forget(s.array, 0, PYR_LATEST, 1, 0, &n));
    CHECK(n == 6);
    KEPT(s.array, "0 3 5 9");
    OK(pyr_forget(s.array, 3, 3, 0, PYR_FORGET_TAGGED, &n));
    CHECK(n == 1);
    KEPT(s.array, "0 5 9");
    FAILS(PYR_ENOTFOUND, pyr_tag_version(s.array, "one", &v));
    FAILS(PYR_ENOTFOUND, pyr_tag_version(s.array, "two", &v));
    OK(pyr_tag_version(s.array, "three", &v));
    FAILS(PYR_ENOVERSION, pyr_tag(s.array, "three", 3));
    FAILS(PYR_ENOVERSION, pyr_clone(s.array, 3, "b", NULL));
    OK(pyr_tag_version(s.array, "three", &v));
    CHECK(v == 5);
    close_stage(&s);
}

static void
a_read_only_store_forgets_nothing(void)
{
    stage s;
    pyr_reclaimed gone;
    open_stage(&s);
    write_some(s.array, 1, 3);
    pyr_array_close(s.array);
    pyr_close(s.store);
    OK(pyr_open(s.url, PYR_OPEN_READONLY, &s.store));
    OK(pyr_array_open(s.store, "a", &s.array));
    FAILS(PYR_EREADONLY, pyr_forget(s.array, 1, 1, 0, 0, NULL));
    FAILS(PYR_EREADONLY, pyr_reclaim(s.store, NULL, &gone));
    close_stage(&s);
}

/* --- what is left -------------------------------------------------------- */

/* The usage of every version is what goes with it. */
static void
what_a_version_holds_is_what_goes_with_it(void)
{
    stage s;
    open_stage(&s);
    write_some(s.array, 1, 60);
    for (pyr_version v = 1; v < 60; v++) {
        pyr_version x = v * 37 % 60; /* in a mixed order */
        pyr_usage usage;
        pyr_reclaimed gone;
        if (x == 0)
            continue;
        uint64_t before = ledger_check(s.store);
        OK(pyr_version_usage(s.array, x, &usage));
        OK(pyr_forget(s.array, x, x, 0, 0, NULL));
        OK(pyr_reclaim(s.store, NULL, &gone));
        uint64_t after = ledger_check(s.store);
        CHECK(gone.versions == 1 && gone.left == 0);
        CHECK(gone.nodes == usage.nodes && gone.fragments == usage.fragments);
        if (gone.bytes != usage.bytes ||
            before - after != usage.bytes + (uint64_t)gone.folded)
            CHECK_NOTE("version %d: says %d bytes, %d went, stored %d less",
                       (int)x, (int)usage.bytes, (int)gone.bytes,
                       (int)(before - after));
    }
    close_stage(&s);
}

/* What one version holds, if there is no other, is all that is stored. */
static void
the_last_version_holds_all_that_is_stored(void)
{
    stage s;
    pyr_usage usage;
    open_stage(&s);
    write_some(s.array, 1, 200);
    OK(pyr_forget(s.array, 0, PYR_LATEST, 1, 0, NULL));
    reclaim(&s);
    OK(pyr_version_usage(s.array, PYR_LATEST, &usage));
    CHECK(ledger_check(s.store) == usage.bytes);
    close_stage(&s);
}

/* --- clones in every order ----------------------------------------------- */

enum { FAMILY = 4 };

typedef struct family {
    stage s;
    pyr_array *of[FAMILY]; /* a, a clone, a clone of that, one of version 0 */
    uint32_t *cells[FAMILY][12];
    uint64_t versions[FAMILY];
} family;

static uint32_t *
read_all(pyr_array *a, pyr_version v, uint64_t *n)
{
    pyr_info info;
    uint64_t zero[2] = {0, 0};
    OK(pyr_array_info(a, v, &info));
    *n = info.shape[0] * info.shape[1];
    uint32_t *cells = malloc((size_t)*n * 4 + 4);
    OK(pyr_read(a, v, zero, info.shape, cells));
    return cells;
}

static void
make_family(family *f)
{
    *f = (family){0};
    open_stage(&f->s);
    f->of[0] = f->s.array;
    write_some(f->of[0], 1, 5);
    OK(pyr_clone(f->of[0], 3, "b", &f->of[1]));
    write_some(f->of[1], 20, 4);
    OK(pyr_resize(f->of[1], (uint64_t[2]){SIDE + 40, SIDE}, NULL));
    OK(pyr_clone(f->of[1], 2, "c", &f->of[2]));
    write_some(f->of[2], 40, 3);
    OK(pyr_resize(f->of[2], (uint64_t[2]){SIDE, 20}, NULL));
    OK(pyr_resize(f->of[2], (uint64_t[2]){SIDE, SIDE}, NULL));
    OK(pyr_clone(f->of[0], 0, "d", &f->of[3]));
    write_some(f->of[3], 60, 4);
    write_some(f->of[0], 6, 4);
    uint64_t n;
    for (int i = 0; i < FAMILY; i++) {
        OK(pyr_latest(f->of[i], &f->versions[i]));
        for (pyr_version v = 0; v <= f->versions[i]; v++)
            f->cells[i][v] = read_all(f->of[i], v, &n);
    }
}

static void
check_family(family *f)
{
    for (int i = 0; i < FAMILY; i++)
        for (pyr_version v = 0; v <= f->versions[i]; v++) {
            uint64_t n;
            if (!is_kept(f->of[i], v))
                continue;
            uint32_t *cells = read_all(f->of[i], v, &n);
            if (memcmp(cells, f->cells[i][v], (size_t)n * 4) != 0)
                CHECK_NOTE("array %d, version %d: wrong cells", i, (int)v);
            free(cells);
        }
    ledger_check(f->s.store);
}

static void
end_family(family *f)
{
    for (int i = 0; i < FAMILY; i++)
        for (pyr_version v = 0; v <= f->versions[i]; v++)
            free(f->cells[i][v]);
    for (int i = 1; i < FAMILY; i++)
        pyr_array_close(f->of[i]);
    close_stage(&f->s);
}

/* Forgets all but the newest of each, one by one in a random order, and
 * reclaims now and then. */
static void
forget_family(family *f, rng *r)
{
    struct { int of; pyr_version v; } list[64], swap;
    int n = 0;
    for (int i = 0; i < FAMILY; i++)
        for (pyr_version v = i == 0; v < f->versions[i]; v++)
            list[n].of = i, list[n++].v = v;
    for (int i = 0; i < n; i++) {
        int k = i + (int)rng_below(r, (uint64_t)(n - i));
        swap = list[i], list[i] = list[k], list[k] = swap;
        OK(pyr_forget(f->of[list[i].of], list[i].v, list[i].v, 0, 0, NULL));
        if (rng_once_in(r, 3)) {
            reclaim(&f->s);
            check_family(f);
        }
    }
}

static void
clones_are_right_in_whatever_order_versions_are_forgotten(void)
{
    rng r = rng_of(test_seed());
    for (uint64_t i = 0; i < by_scale(5, 30, 1000); i++) {
        family f;
        int before = check_failures;
        pyr_reclaimed gone;
        make_family(&f);
        forget_family(&f, &r);
        OK(pyr_reclaim(f.s.store, NULL, &gone));
        if (gone.left) /* one that held another up has gone now */
            OK(pyr_reclaim(f.s.store, NULL, &gone));
        CHECK(gone.left == 0);
        check_family(&f);
        end_family(&f);
        if (check_failures > before)
            REQUIRE(!"a family");
    }
}

static const uint64_t one[2] = {1, 1};

/* Cells of 2 x 2 chunks; the array and its clone grow along different axes,
 * and then the version that they share goes, and the clone's next one. */
static void
grow_apart(void)
{
    uint64_t two[2] = {2, 2}, at[2] = {0, 0};
    uint32_t cells[4] = {1, 2, 3, 4}, got[4] = {0};
    pyr_store *store;
    pyr_array *a, *c;
    pyr_reclaimed gone;
    const char *url = tmp_store("apart");
    OK(pyr_open_with(url, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS},
                     &store));
    OK(pyr_create(store, "a", &(pyr_spec){.ndim = 2, .shape = two,
                                          .chunk = one, .type = PYR_U32}, &a));
    OK(pyr_write(a, at, two, cells, NULL));
    OK(pyr_clone(a, 1, "c", &c));
    OK(pyr_resize(a, (uint64_t[2]){4, 2}, NULL));
    OK(pyr_resize(c, (uint64_t[2]){2, 4}, NULL));
    OK(pyr_write(c, at, one, cells, NULL));
    OK(pyr_forget(a, 1, 1, 0, 0, NULL));
    OK(pyr_forget(c, 0, 1, 0, 0, NULL));
    for (int i = 0; i < 2; i++)
        OK(pyr_reclaim(store, NULL, &gone));
    CHECK(gone.left == 0);
    OK(pyr_read(a, PYR_LATEST, at, two, got));
    CHECK(memcmp(got, cells, sizeof got) == 0);
    OK(pyr_read(c, PYR_LATEST, at, two, got));
    CHECK(memcmp(got, cells, sizeof got) == 0);
    pyr_array_close(c);
    pyr_array_close(a);
    pyr_close(store);
    tmp_remove(url);
}

/* Which array is looked at first hangs on its id, which is random. */
static void
clones_that_grew_another_way_share_what_was_before(void)
{
    for (int i = 0; i < 12; i++)
        grow_apart();
}

TESTS(T(a_version_or_a_range_is_forgotten_and_no_other),
      T(the_newest_and_the_empty_one_stay),
      T(so_many_are_kept_counts_only_those_that_are_left),
      T(tagged_versions_stay_unless_asked_for),
      T(a_read_only_store_forgets_nothing),
      T(what_a_version_holds_is_what_goes_with_it),
      T(the_last_version_holds_all_that_is_stored),
      T(clones_are_right_in_whatever_order_versions_are_forgotten),
      T(clones_that_grew_another_way_share_what_was_before))
