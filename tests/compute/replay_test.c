/*
 * compute/replay_test.c - computing while others write: afterwards every
 * version is compared with the one before it. A computed one is its function
 * of its source inside its box, and as before outside it, whoever was in
 * flight at the time.
 */
#include "api/fixture.h"

enum { CELLS = 6000, CHUNK = 8, MAX_VERSIONS = 4000 };

static pyr_array *array;

/* What each version is, told by who made it. */
typedef struct deed {
    enum { NOTHING, WRITE, DOUBLE, SUM, TEN } what;
    pyr_version source, other;
    uint64_t lo, n;
    uint8_t cell;
} deed;

static deed deeds[MAX_VERSIONS];
static _Atomic int failures;

static const char *
function_of(const deed *d, char *text, size_t size)
{
    if (d->what == DOUBLE)
        snprintf(text, size, "x * 2");
    else if (d->what == SUM)
        snprintf(text, size, "x + x@%llu", (unsigned long long)d->other);
    else
        snprintf(text, size, "where(x > 0, 10, 0)");
    return text;
}

static int
do_one(rng *r, bool writer)
{
    char text[100];
    uint8_t cells[64];
    pyr_version made, latest;
    deed d = {.what = WRITE, .cell = (uint8_t)rng_below(r, 4)};
    int err = pyr_latest(array, &latest);
    if (err < 0)
        return err;
    if (writer) {
        d.lo = rng_below(r, CELLS - sizeof cells);
        d.n = 1 + rng_below(r, sizeof cells);
        memset(cells, d.cell, sizeof cells);
        err = pyr_write(array, &d.lo, &d.n, cells, &made);
    } else {
        d.what = DOUBLE + rng_below(r, 3);
        d.source = rng_once_in(r, 2) ? latest : rng_below(r, latest + 1);
        d.other = rng_below(r, latest + 1);
        d.lo = rng_below(r, CELLS);
        d.n = 1 + rng_below(r, CELLS - d.lo);
        if (rng_once_in(r, 2)) { /* so many chunks that zeros are kept */
            d.lo = 0;
            d.n = CELLS;
        }
        err = pyr_compute(array, d.source, &d.lo, &d.n,
                          function_of(&d, text, sizeof text), &made);
    }
    if (err == 0 && made < MAX_VERSIONS)
        deeds[made] = d;
    return err;
}

typedef struct hand {
    pthread_t thread;
    uint64_t seed;
    bool writer;
    int n;
} hand;

static void *
work(void *ctx)
{
    hand *h = ctx;
    rng r = rng_of(h->seed);
    for (int i = 0; i < h->n; i++)
        if (do_one(&r, h->writer) < 0) {
            printf("# %s\n", pyr_errmsg());
            failures++;
        }
    return NULL;
}

static uint8_t *past[MAX_VERSIONS];

static uint8_t
saturated(unsigned v)
{
    return v > 255 ? 255 : (uint8_t)v;
}

static void
check_version(pyr_version v)
{
    const deed *d = &deeds[v];
    unsigned wrong = 0;
    for (uint64_t i = 0; i < CELLS; i++) {
        uint8_t want = past[v - 1][i];
        if (i >= d->lo && i - d->lo < d->n) {
            uint8_t x = past[d->source][i];
            want = d->what == WRITE    ? d->cell
                   : d->what == DOUBLE ? saturated(2u * x)
                   : d->what == SUM    ? saturated(x + past[d->other][i])
                   : d->what == TEN    ? (x ? 10 : 0)
                                       : want;
        }
        wrong += past[v][i] != want;
    }
    if (wrong)
        CHECK_NOTE("version %d (%d of %d, at %d, %d cells): %u cells are wrong",
                   (int)v, (int)d->what, (int)d->source, (int)d->lo, (int)d->n,
                   wrong);
}

static void
computed_versions_are_exact_whoever_writes_meanwhile(void)
{
    enum { HANDS = 5 };
    hand hands[HANDS];
    uint64_t seed = test_seed(), n = CELLS;
    pyr_version latest;
    unsigned nothing = 0;
    int each = (int)by_scale(40, 80, 600);
    memset(deeds, 0, sizeof deeds);
    set_up();
    OK(pyr_create(store, "t",
                  &(pyr_spec){.ndim = 1, .shape = &n,
                              .chunk = (uint64_t[1]){CHUNK}, .type = PYR_U8},
                  &array));
    for (int i = 0; i < HANDS; i++) {
        hands[i] = (hand){.seed = seed + (unsigned)i, .writer = i < 2,
                          .n = each};
        REQUIRE(pthread_create(&hands[i].thread, NULL, work, &hands[i]) == 0);
    }
    for (int i = 0; i < HANDS; i++)
        pthread_join(hands[i].thread, NULL);
    CHECK(failures == 0);
    OK(pyr_latest(array, &latest));
    REQUIRE(latest < MAX_VERSIONS);
    for (pyr_version v = 0; v <= latest; v++) {
        past[v] = malloc(CELLS);
        REQUIRE(past[v]);
        OK(pyr_read(array, v, zero, &n, past[v]));
        if (v)
            check_version(v);
        nothing += v && deeds[v].what == NOTHING;
    }
    printf("# %d versions, of them %u disturbed\n", (int)latest, nothing);
    CHECK(latest >= (pyr_version)(HANDS * each));
    OK(pyr_verify(store, &(pyr_verify_spec){.deep = 1}, NULL));
    for (pyr_version v = 0; v <= latest; v++)
        free(past[v]);
    pyr_array_close(array);
    tear_down();
}

TESTS(T(computed_versions_are_exact_whoever_writes_meanwhile))
