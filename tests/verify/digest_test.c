/*
 * verify/digest_test.c - equal histories have equal digests, whatever engine
 * keeps them and however cells are stored; different cells have others.
 */
#include "support/check.h"
#include "support/rng.h"
#include "support/tmp_store.h"

#include <pyramid/pyramid.h>

enum { STEPS = 40, MAX = 30 };

typedef struct place {
    pyr_store *store;
    pyr_array *array, *clone;
    char url[4096];
} place;

static void
open_place(place *p, bool mem, pyr_codec codec)
{
    uint64_t shape[2] = {MAX, MAX}, chunk[2] = {7, 9};
    pyr_spec spec = {.ndim = 2, .shape = shape, .chunk = chunk,
                     .type = PYR_I32, .codec = codec};
    *p = (place){0};
    if (mem)
        snprintf(p->url, sizeof p->url, "mem:%s",
                 strrchr(tmp_fresh("digest"), '/') + 1);
    else
        snprintf(p->url, sizeof p->url, "%s", tmp_store("digest"));
    OK(pyr_open_with(p->url, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS},
                     &p->store));
    OK(pyr_create(p->store, "a", &spec, &p->array));
}

static void
close_place(place *p)
{
    pyr_array_close(p->clone);
    pyr_array_close(p->array);
    pyr_close(p->store);
    if (strncmp(p->url, "mem:", 4) != 0)
        tmp_remove(p->url);
}

static void
some_box(rng *r, const uint64_t *shape, uint64_t *at, uint64_t *size)
{
    for (int d = 0; d < 2; d++) {
        at[d] = rng_below(r, shape[d]);
        size[d] = rng_from(r, 1, shape[d] - at[d]);
    }
}

static void
some_cells(rng *r, int32_t *cells)
{
    uint64_t kind = rng_below(r, 3);
    for (int i = 0; i < MAX * MAX; i++)
        cells[i] = kind == 0 ? 5 : (int32_t)rng_below(r, kind == 1 ? 4 : 1000);
}

static void
step(rng *r, pyr_array *a)
{
    static int32_t cells[3][MAX * MAX];
    uint64_t at[3][2], size[3][2];
    pyr_version made;
    pyr_info info;
    pyr_part parts[3];
    OK(pyr_array_info(a, PYR_LATEST, &info));
    for (int i = 0; i < 3; i++) {
        some_box(r, info.shape, at[i], size[i]);
        some_cells(r, cells[i]);
        parts[i] = (pyr_part){.offset = at[i], .size = size[i],
                              .buf = cells[i]};
    }
    uint64_t what = rng_below(r, 6);
    if (what < 3) {
        OK(pyr_write(a, at[0], size[0], cells[0], &made));
    } else if (what == 3) {
        OK(pyr_write_list(a, parts, 3, NULL, &made));
    } else if (what == 4) {
        pyr_batch *b;
        OK(pyr_batch_begin(a, &b));
        for (int i = 0; i < 3; i++)
            OK(pyr_batch_write(b, at[i], size[i], cells[i]));
        OK(pyr_batch_commit(b, NULL, &made));
    } else {
        uint64_t shape[2] = {rng_from(r, 1, MAX), rng_from(r, 1, MAX)};
        OK(pyr_resize(a, shape, &made));
    }
}

static void
play(place *p, uint64_t seed)
{
    rng r = rng_of(seed);
    for (int i = 0; i < STEPS; i++) {
        step(&r, p->clone && rng_once_in(&r, 2) ? p->clone : p->array);
        if (i == STEPS / 2)
            OK(pyr_clone(p->array, PYR_LATEST, "b", &p->clone));
    }
}

static void
compare(pyr_array *a, pyr_array *b)
{
    pyr_info info, other;
    OK(pyr_array_info(a, PYR_LATEST, &info));
    OK(pyr_array_info(b, PYR_LATEST, &other));
    REQUIRE(info.latest == other.latest);
    unsigned char before[16] = {0};
    for (pyr_version v = 0; v <= info.latest; v++) {
        unsigned char x[16], y[16];
        int known[2];
        OK(pyr_digest(a, v, x, &known[0]));
        OK(pyr_digest(b, v, y, &known[1]));
        CHECK(known[0] && known[1]);
        CHECK(memcmp(x, y, sizeof x) == 0);
        memcpy(before, x, sizeof x);
    }
}

static void
equal_histories_have_equal_digests(void)
{
    uint64_t seed = test_seed();
    for (uint64_t i = 0; i < by_scale(3, 12, 200); i++) {
        place p[3];
        open_place(&p[0], true, PYR_CODEC_NONE);
        open_place(&p[1], false, PYR_CODEC_NONE);
        open_place(&p[2], false, PYR_CODEC_ZSTD);
        for (int k = 0; k < 3; k++)
            play(&p[k], seed + i);
        for (int k = 1; k < 3; k++) {
            compare(p[0].array, p[k].array);
            compare(p[0].clone, p[k].clone);
        }
        for (int k = 0; k < 3; k++)
            close_place(&p[k]);
    }
}

static void
one_cell_more_or_a_shape_makes_another_digest(void)
{
    place p, q;
    uint64_t at[2] = {3, 4}, one[2] = {1, 1}, shape[2] = {MAX, MAX + 1};
    unsigned char x[16], y[16];
    int32_t cell = 77;
    int known;
    pyr_version made;
    open_place(&p, true, PYR_CODEC_NONE);
    open_place(&q, true, PYR_CODEC_NONE);
    play(&p, test_seed());
    play(&q, test_seed());
    compare(p.array, q.array);
    OK(pyr_resize(p.array, (uint64_t[2]){MAX, MAX}, &made));
    OK(pyr_resize(q.array, (uint64_t[2]){MAX, MAX}, &made));
    compare(p.array, q.array);
    OK(pyr_write(p.array, at, one, &cell, &made));
    OK(pyr_digest(p.array, made, x, &known));
    cell++;
    OK(pyr_write(q.array, at, one, &cell, &made));
    OK(pyr_digest(q.array, made, y, &known));
    CHECK(memcmp(x, y, sizeof x) != 0);
    OK(pyr_resize(q.array, shape, &made));
    OK(pyr_digest(q.array, made, x, &known));
    CHECK(memcmp(x, y, sizeof x) != 0);
    close_place(&p);
    close_place(&q);
}

TESTS(T(equal_histories_have_equal_digests),
      T(one_cell_more_or_a_shape_makes_another_digest))
