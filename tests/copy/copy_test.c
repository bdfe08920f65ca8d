/*
 * copy/copy_test.c - an array and its copies, whatever its history.
 */
#include "copy/compare.h"

static int
scale(int small, int normal)
{
    const char *text = getenv("PYR_TEST_SCALE");
    return text && strcmp(text, "small") == 0 ? small : normal;
}

static pyr_array *
copy_of(pyr_array *a, pyr_store *to, const pyr_copy_spec *spec,
        pyr_copied *out)
{
    pyr_array *copy;
    OK(pyr_copy(a, to, "copy", spec, out));
    OK(pyr_array_open(to, "copy", &copy));
    return copy;
}

/* --- all versions -------------------------------------------------------- */

static void
copy_whole(uint64_t seed, bool from_memory, bool to_memory)
{
    subject s;
    pyr_copied copied, again;
    pyr_version tagged;
    pyri_digest x, y;
    pyr_store *from = fresh_store(from_memory), *to = fresh_store(to_memory);
    subject_create(&s, from, "a", seed);
    bool lists = seed % 2; /* boxes of one write overlap */
    subject_go_on(&s, 25, lists ? 16 : 1);
    OK(pyr_tag(s.array, "third", 3));
    pyr_array *copy = copy_of(s.array, to, NULL, &copied);
    CHECK(copied.versions == 25);
    check_info(s.array, copy);
    for (pyr_version v = 0; v < s.m.n; v++) {
        check_version(&s, copy, v);
        CHECK(digest_of(s.array, v, &x) && digest_of(copy, v, &y));
        if (!lists)
            CHECK(x.lo == y.lo && x.hi == y.hi);
    }
    OK(pyr_tag_version(copy, "third", &tagged));
    CHECK(tagged == 3);
    OK(pyr_copy(s.array, to, "copy", NULL, &again));
    CHECK(again.versions == 0 && again.cells == 0);
    pyr_array_close(copy);
    subject_close(&s);
    pyr_close(from);
    pyr_close(to);
}

static void
a_copy_of_all_versions_is_the_same_array(void)
{
    for (int i = 0; i < scale(8, 60); i++)
        copy_whole(test_seed() + (uint64_t)i, i % 4 < 2, i % 2);
}

/* --- some versions ------------------------------------------------------- */

enum { VERSIONS = 40 };

static size_t
choose(rng *r, uint64_t one_in, pyr_version *list, bool *chosen)
{
    size_t n = 0;
    for (pyr_version v = 1; v <= VERSIONS; v++) {
        chosen[v] = rng_once_in(r, one_in);
        if (chosen[v])
            list[n++] = v;
    }
    return n;
}

static void
check_chosen(const subject *s, pyr_array *copy, const bool *chosen,
             pyr_version last)
{
    pyr_version latest;
    check_version(s, copy, 0);
    for (pyr_version v = 1; v <= last; v++)
        if (chosen[v])
            check_version(s, copy, v);
        else
            check_missing(copy, v);
    OK(pyr_latest(copy, &latest));
    CHECK(latest == last);
}

static void
copy_some(uint64_t seed)
{
    subject s;
    pyr_version list[VERSIONS];
    bool chosen[VERSIONS + 1];
    pyr_copied copied;
    pyr_store *from = fresh_store(seed % 2), *to = fresh_store(seed % 3 == 0);
    subject_create(&s, from, "a", seed);
    subject_go_on(&s, VERSIONS, 12);
    size_t n = choose(&s.with.r, rng_from(&s.with.r, 1, 12), list, chosen);
    if (n) {
        pyr_copy_spec spec = {.versions = list, .n = n};
        pyr_array *copy = copy_of(s.array, to, &spec, &copied);
        CHECK(copied.versions == n);
        check_chosen(&s, copy, chosen, list[n - 1]);
        pyr_array_close(copy);
    }
    subject_close(&s);
    pyr_close(from);
    pyr_close(to);
}

static void
chosen_versions_are_copied_and_the_others_are_not_there(void)
{
    for (int i = 0; i < scale(10, 80); i++)
        copy_some(test_seed() + (uint64_t)i);
}

static void
forgotten_versions_are_passed_over(void)
{
    subject s;
    bool kept[VERSIONS + 1];
    pyr_copied copied;
    pyr_store *from = fresh_store(false), *to = fresh_store(false);
    subject_create(&s, from, "a", test_seed());
    subject_go_on(&s, VERSIONS, 3);
    for (pyr_version v = 1; v <= VERSIONS; v++) {
        kept[v] = v == VERSIONS || v % 7 == 3;
        if (!kept[v])
            forget(s.array, v);
    }
    pyr_array *copy = copy_of(s.array, to, NULL, &copied);
    check_chosen(&s, copy, kept, VERSIONS);
    pyr_array_close(copy);
    subject_close(&s);
    pyr_close(from);
    pyr_close(to);
}

/* --- going on ------------------------------------------------------------ */

static void
a_second_copy_brings_what_is_new(void)
{
    subject s;
    pyr_copied copied;
    pyr_version at;
    pyr_store *from = fresh_store(false), *to = fresh_store(false);
    subject_create(&s, from, "a", test_seed());
    subject_go_on(&s, 10, 4);
    OK(pyr_tag(s.array, "t", 4));
    pyr_array_close(copy_of(s.array, to, NULL, NULL));
    subject_go_on(&s, 10, 4);
    for (pyr_version v = 1; v < 15; v++) /* the one that was last, too */
        forget(s.array, v);
    OK(pyr_tag(s.array, "t", 17));
    OK(pyr_set_attributes(s.array, "{\"unit\": \"mK\"}"));
    pyr_array *copy = copy_of(s.array, to, NULL, &copied);
    CHECK(copied.versions == 6);
    check_info(s.array, copy);
    for (pyr_version v = 0; v <= 20; v++)
        if (v <= 10)
            check_cells(&s.m, (size_t)v, copy, v);
        else if (v < 15)
            check_missing(copy, v);
        else
            check_version(&s, copy, v);
    OK(pyr_tag_version(copy, "t", &at));
    CHECK(at == 17);
    pyr_array_close(copy);
    subject_close(&s);
    pyr_close(from);
    pyr_close(to);
}

static void
a_version_that_was_left_out_cannot_be_added_later(void)
{
    subject s;
    pyr_store *from = fresh_store(true), *to = fresh_store(true);
    pyr_copied copied;
    subject_create(&s, from, "a", test_seed());
    subject_go_on(&s, 6, 2);
    pyr_copy_spec odd = {.versions = (pyr_version[]){1, 3}, .n = 2};
    OK(pyr_copy(s.array, to, "copy", &odd, NULL));
    pyr_copy_spec more = {.versions = (pyr_version[]){2, 5}, .n = 2};
    FAILS(PYR_EINVAL, pyr_copy(s.array, to, "copy", &more, NULL));
    pyr_copy_spec fine = {.versions = (pyr_version[]){1, 3, 5}, .n = 3};
    OK(pyr_copy(s.array, to, "copy", &fine, &copied));
    CHECK(copied.versions == 1);
    subject_close(&s);
    pyr_close(from);
    pyr_close(to);
}

static void
a_name_that_is_taken_is_refused(void)
{
    subject s, other;
    static const uint64_t zero[PYR_MAX_DIMS];
    pyr_array *copy;
    pyr_store *from = fresh_store(false), *to = fresh_store(false);
    subject_create(&s, from, "a", test_seed());
    subject_create(&other, from, "b", test_seed() + 1);
    subject_go_on(&s, 3, 2);
    OK(pyr_create(to, "plain", &(pyr_spec){.ndim = 1, .shape = (uint64_t[]){3},
                                           .type = PYR_I8}, NULL));
    FAILS(PYR_EEXIST, pyr_copy(s.array, to, "plain", NULL, NULL));
    OK(pyr_copy(s.array, to, "copy", NULL, NULL));
    FAILS(PYR_EEXIST, pyr_copy(other.array, to, "copy", NULL, NULL));
    OK(pyr_array_open(to, "copy", &copy)); /* someone else writes to it */
    OK(pyr_write(copy, zero, zero, "", NULL));
    FAILS(PYR_EEXIST, pyr_copy(s.array, to, "copy", NULL, NULL));
    pyr_array_close(copy);
    subject_close(&s);
    subject_close(&other);
    pyr_close(from);
    pyr_close(to);
}

static void
bad_calls_are_refused(void)
{
    subject s;
    pyr_store *from = fresh_store(true), *to = fresh_store(true);
    subject_create(&s, from, "a", test_seed());
    subject_go_on(&s, 3, 2);
    pyr_copy_spec twice = {.versions = (pyr_version[]){2, 2}, .n = 2};
    pyr_copy_spec above = {.versions = (pyr_version[]){4}, .n = 1};
    pyr_copy_spec none = {.n = 1};
    FAILS(PYR_EINVAL, pyr_copy(s.array, to, "copy", &twice, NULL));
    FAILS(PYR_ENOVERSION, pyr_copy(s.array, to, "copy", &above, NULL));
    FAILS(PYR_EINVAL, pyr_copy(s.array, to, "copy", &none, NULL));
    FAILS(PYR_EINVAL, pyr_copy(NULL, to, "copy", NULL, NULL));
    FAILS(PYR_EINVAL, pyr_copy(s.array, NULL, "copy", NULL, NULL));
    FAILS(PYR_EINVAL, pyr_copy(s.array, to, "", NULL, NULL));
    subject_close(&s);
    pyr_close(from);
    pyr_close(to);
}

/* --- clones -------------------------------------------------------------- */

/* A clone that begins with version 5, and goes on. */
static void
make_clone(const subject *s, const char *name, subject *clone)
{
    *clone = (subject){.with = s->with, .store = s->store};
    OK(pyr_clone(s->array, 5, name, &clone->array));
    model_clone(&s->m, 5, &clone->m);
    subject_go_on(clone, 8, 4);
}

static uint64_t
data_bytes(pyr_store *store)
{
    pyr_status status;
    OK(pyr_store_status(store, &status, NULL, NULL));
    return status.data_bytes;
}

static void
a_clone_is_copied_as_a_clone_where_its_parent_is(void)
{
    subject s, clone;
    pyr_array *copy, *second;
    pyr_store *from = fresh_store(true), *to = fresh_store(true);
    subject_create(&s, from, "a", test_seed());
    subject_go_on(&s, 9, 4);
    make_clone(&s, "c", &clone);
    forget(s.array, 5); /* its own copy needs it all the same */
    OK(pyr_copy(s.array, to, "a", NULL, NULL));
    uint64_t before = data_bytes(to);
    pyr_copy_spec none = {.versions = (pyr_version[]){0}, .n = 1};
    OK(pyr_copy(clone.array, to, "c", &none, NULL));
    CHECK(data_bytes(to) == before); /* shared */
    OK(pyr_copy(clone.array, to, "c", NULL, NULL));
    OK(pyr_array_open(to, "c", &copy));
    check_info(clone.array, copy);
    for (pyr_version v = 0; v < clone.m.n; v++)
        check_version(&clone, copy, v);
    FAILS(PYR_ENOTFOUND, pyr_array_open(to, "c.origin", &second));
    pyr_array_close(copy);
    subject_close(&clone);
    subject_close(&s);
    pyr_close(from);
    pyr_close(to);
}

static void
a_clone_that_is_copied_alone_brings_where_it_begins(void)
{
    subject s, clone, deeper;
    pyr_array *copy;
    pyr_store *from = fresh_store(false), *to = fresh_store(false);
    subject_create(&s, from, "a", test_seed());
    subject_go_on(&s, 9, 4);
    make_clone(&s, "c", &clone);
    make_clone(&clone, "d", &deeper);
    for (int i = 0; i < 2; i++) {
        subject *x = i ? &deeper : &clone;
        const char *name = i ? "deep" : "alone";
        OK(pyr_copy(x->array, to, name, NULL, NULL));
        OK(pyr_array_open(to, name, &copy));
        check_info(x->array, copy);
        for (pyr_version v = 0; v < x->m.n; v++)
            check_version(x, copy, v);
        pyr_array_close(copy);
    }
    OK(pyr_array_open(to, "alone.origin", &copy));
    pyr_array_close(copy);
    subject_close(&deeper);
    subject_close(&clone);
    subject_close(&s);
    pyr_close(from);
    pyr_close(to);
}

/* --- large and far ------------------------------------------------------- */

/* One version of 96 MiB in boxes and runs, then small ones. */
static void
slabs_make_up_the_whole(void)
{
    enum { SIDE = 3500 };
    static const uint64_t shape[2] = {SIDE, SIDE}, zero[2];
    static const uint64_t block[2] = {1, 1}, count[2] = {1700, 1700},
                          stride[2] = {2, 2};
    pyr_store *from = fresh_store(false), *to = fresh_store(false);
    pyr_array *a, *copy;
    pyri_digest x, y;
    size_t bytes = (size_t)SIDE * SIDE * 8;
    uint64_t *cells = malloc(bytes), *got = malloc(bytes);
    REQUIRE(cells && got);
    for (size_t i = 0; i < bytes / 8; i++)
        cells[i] = rng_mix(i);
    OK(pyr_create(from, "a", &(pyr_spec){.ndim = 2, .shape = shape,
                                         .chunk = (uint64_t[]){300, 300},
                                         .type = PYR_U64}, &a));
    OK(pyr_write(a, zero, shape, cells, NULL));
    pyr_part run = {.offset = zero, .size = block, .count = count,
                    .stride = stride, .buf = cells};
    OK(pyr_write_list(a, &run, 1, NULL, NULL));
    pyr_copied copied;
    OK(pyr_copy(a, to, "copy", NULL, &copied));
    CHECK(copied.cells == SIDE * SIDE + 1700 * 1700);
    OK(pyr_array_open(to, "copy", &copy));
    CHECK(digest_of(a, 1, &x) && digest_of(copy, 1, &y));
    CHECK(x.lo == y.lo && x.hi == y.hi);
    for (pyr_version v = 1; v <= 2; v++) {
        OK(pyr_read(a, v, zero, shape, cells));
        OK(pyr_read(copy, v, zero, shape, got));
        CHECK(memcmp(cells, got, bytes) == 0);
    }
    free(cells);
    free(got);
    pyr_array_close(a);
    pyr_array_close(copy);
    pyr_close(from);
    pyr_close(to);
}

/* 10^18 cells, of which a few are stored; and most versions are left out. */
static void
gaps_and_empty_space_cost_nothing(void)
{
    enum { WRITES = 3000 };
    static const uint64_t shape[2] = {4, 4}, huge[2] = {1u << 30, 1u << 30};
    pyr_store *from = fresh_store(true), *to = fresh_store(false);
    pyr_array *a, *copy;
    pyr_copied copied;
    int32_t got, cell = 1;
    uint64_t at[2] = {3, 3}, one[2] = {1, 1}, far[2] = {999999999, 7};
    OK(pyr_create(from, "a", &(pyr_spec){.ndim = 2, .shape = shape,
                                         .chunk = (uint64_t[]){64, 64},
                                         .type = PYR_I32}, &a));
    OK(pyr_resize(a, huge, NULL));
    for (cell = 2; cell < WRITES; cell++)
        OK(pyr_write(a, cell % 2 ? at : far, one, &cell, NULL));
    pyr_copy_spec few = {.versions = (pyr_version[]){WRITES / 2, WRITES - 1},
                         .n = 2};
    OK(pyr_copy(a, to, "copy", &few, &copied));
    CHECK(copied.versions == 2 && copied.cells <= 4);
    OK(pyr_array_open(to, "copy", &copy));
    OK(pyr_read(copy, WRITES - 1, at, one, &got));
    CHECK(got == WRITES - 1);
    OK(pyr_read(copy, WRITES / 2, far, one, &got));
    CHECK(got == WRITES / 2);
    pyr_array_close(a);
    pyr_array_close(copy);
    pyr_close(from);
    pyr_close(to);
}

static void
a_copy_takes_no_more_space_than_its_source(void)
{
    subject s;
    pyr_store *from = fresh_store(true), *to = fresh_store(true);
    subject_create(&s, from, "a", test_seed());
    subject_go_on(&s, 200, 1);
    OK(pyr_copy(s.array, to, "copy", NULL, NULL));
    uint64_t ours = data_bytes(from), theirs = data_bytes(to);
    if (theirs > ours + ours / 10)
        CHECK_NOTE("the copy takes %" PRIu64 " bytes, its source %" PRIu64,
                   theirs, ours);
    subject_close(&s);
    pyr_close(from);
    pyr_close(to);
}

static void
a_store_can_be_copied_into_itself(void)
{
    subject s;
    for (int i = 0; i < 2; i++) {
        pyr_store *store = fresh_store(i);
        subject_create(&s, store, "a", test_seed());
        subject_go_on(&s, 12, 4);
        pyr_array *copy = copy_of(s.array, store, NULL, NULL);
        for (pyr_version v = 0; v < s.m.n; v++)
            check_version(&s, copy, v);
        pyr_array_close(copy);
        subject_close(&s);
        pyr_close(store);
    }
}

/* --- stopping ------------------------------------------------------------ */

static int
stop_at(void *ctx, uint64_t done, uint64_t total)
{
    CHECK(total >= done);
    return done == *(uint64_t *)ctx ? 77 : 0;
}

static void
a_copy_that_is_stopped_goes_on(void)
{
    subject s;
    pyr_copied copied;
    uint64_t made = 0;
    pyr_store *from = fresh_store(true), *to = fresh_store(false);
    subject_create(&s, from, "a", test_seed());
    subject_go_on(&s, 20, 4);
    for (uint64_t stop = 1; stop < 5; stop++) {
        pyr_copy_spec spec = {.progress = {stop_at, &stop}};
        CHECK(pyr_copy(s.array, to, "copy", &spec, &copied) == 77);
        CHECK(copied.versions == stop);
        made += stop;
    }
    pyr_array *copy = copy_of(s.array, to, NULL, &copied);
    CHECK(copied.versions == 20 - made);
    for (pyr_version v = 0; v < s.m.n; v++)
        check_version(&s, copy, v);
    pyr_array_close(copy);
    subject_close(&s);
    pyr_close(from);
    pyr_close(to);
}

TESTS(T(a_copy_of_all_versions_is_the_same_array),
      T(chosen_versions_are_copied_and_the_others_are_not_there),
      T(forgotten_versions_are_passed_over),
      T(a_second_copy_brings_what_is_new),
      T(a_version_that_was_left_out_cannot_be_added_later),
      T(a_name_that_is_taken_is_refused), T(bad_calls_are_refused),
      T(a_clone_is_copied_as_a_clone_where_its_parent_is),
      T(a_clone_that_is_copied_alone_brings_where_it_begins),
      T(slabs_make_up_the_whole), T(gaps_and_empty_space_cost_nothing),
      T(a_copy_takes_no_more_space_than_its_source),
      T(a_store_can_be_copied_into_itself), T(a_copy_that_is_stopped_goes_on))
