/*
 * compute/huge.h - a model of huge arrays: it knows what was done, and works
 * out a cell of a version when it is asked for one.
 */
#ifndef COMPUTE_HUGE_H
#define COMPUTE_HUGE_H

#include "support/check.h"
#include "support/health.h"
#include "support/rng.h"
#include "support/tmp_store.h"

#include <pyramid/pyramid.h>

enum { MAX_VERSIONS = 40, MAX_POINTS = 512 };

/* What a version is. */
typedef struct deed {
    enum { NOTHING, WRITE, COMPUTE } what;
    uint64_t shape[PYR_MAX_DIMS], lo[PYR_MAX_DIMS], size[PYR_MAX_DIMS];
    int64_t cell;              /* that was written */
    int function;
    pyr_version source, other; /* of a computed one */
    bool forgotten;
} deed;

static rng dice;
static int ndim;
static uint64_t chunk[PYR_MAX_DIMS];
static int64_t fill;
static deed deeds[MAX_VERSIONS];
static pyr_version newest, cloned_at;
static pyr_store *store;
static pyr_array *array;
static char where[4096];
static uint64_t points[MAX_POINTS][PYR_MAX_DIMS];
static int npoints;

static inline uint64_t
pick(uint64_t n)
{
    return rng_below(&dice, n);
}

/* --- the model ------------------------------------------------------------ */

static const char *const functions[] = {
    "x * 2", "x + 1", "5", "where(x > 10, x % 10, x)", "x - x@%d", "x", "x * 0",
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static inline int64_t
apply(int function, int64_t x, int64_t y)
{
    switch (function) {
    case 0:
        return (int64_t)((uint64_t)x * 2);
    case 1:
        return (int64_t)((uint64_t)x + 1);
    case 2:
        return 5;
    case 3:
        return x > 10 ? x % 10 : x;
    case 4:
        return (int64_t)((uint64_t)x - (uint64_t)y);
    case 5:
        return x;
    default:
        return 0;
    }
}

static inline bool
is_in(const uint64_t *at, const uint64_t *lo, const uint64_t *size)
{
    for (int d = 0; d < ndim; d++)
        if (at[d] < lo[d] || at[d] - lo[d] >= size[d])
            return false;
    return true;
}

/* For the one who has to find out what went wrong. */
static inline void
tell_deeds(void)
{
    printf("# %d axes, fill %d\n", ndim, (int)fill);
    for (pyr_version v = 0; v <= newest; v++) {
        const deed *e = &deeds[v];
        printf("# %d: %s", (int)v, e->what == WRITE ? "write" : e->what == COMPUTE
               ? functions[e->function] : "shape");
        for (int d = 0; d < ndim; d++)
            printf(" [%llu:%llu of %llu by %llu]", (unsigned long long)e->lo[d],
                   (unsigned long long)(e->lo[d] + e->size[d]),
                   (unsigned long long)e->shape[d],
                   (unsigned long long)chunk[d]);
        printf(" %d of %d, %d%s\n", (int)e->cell, (int)e->source,
               (int)e->other, e->forgotten ? " (forgotten)" : "");
    }
}

/* A cell of a version; fill outside its shape. */
static inline int64_t
model_cell(pyr_version v, const uint64_t *at)
{
    static const uint64_t none[PYR_MAX_DIMS];
    const deed *d = &deeds[v];
    if (!is_in(at, none, d->shape) || v == 0)
        return fill;
    if (d->what == NOTHING || !is_in(at, d->lo, d->size))
        return model_cell(v - 1, at);
    if (d->what == WRITE)
        return d->cell;
    int64_t y = d->function == 4 ? model_cell(d->other, at) : 0;
    return apply(d->function, model_cell(d->source, at), y);
}

/* --- places to look at ---------------------------------------------------- */

static inline void
add_point(const uint64_t *at)
{
    memcpy(points[npoints < MAX_POINTS ? npoints++ : (int)pick(MAX_POINTS)], at,
           sizeof points[0]);
}

/* Near the corners of a box, where it cuts chunks, and inside it. */
static inline void
add_points(const uint64_t *lo, const uint64_t *size)
{
    for (int i = 0; i < 8; i++) {
        uint64_t at[PYR_MAX_DIMS] = {0};
        for (int d = 0; d < ndim; d++) {
            uint64_t draw = pick(6), end = lo[d] + size[d];
            at[d] = draw == 0   ? lo[d]
                    : draw == 1 ? (lo[d] ? lo[d] - 1 : 0)
                    : draw == 2 ? end - 1
                    : draw == 3 ? end
                    : draw == 4 ? end / chunk[d] * chunk[d]
                                : lo[d] + pick(size[d]);
        }
        add_point(at);
    }
}

static inline void
check_points(pyr_array *a, pyr_version v)
{
    static const uint64_t none[PYR_MAX_DIMS];
    const deed *d = &deeds[cloned_at + v];
    uint64_t one[PYR_MAX_DIMS];
    int wrong = 0;
    if (d->forgotten)
        return;
    for (int k = 0; k < ndim; k++)
        one[k] = 1;
    for (int i = 0; i < npoints; i++) {
        int64_t got, want = model_cell(cloned_at + v, points[i]);
        if (!is_in(points[i], none, d->shape))
            continue;
        OK(pyr_read(a, v, points[i], one, &got));
        if (got != want && wrong++ == 0)
            CHECK_NOTE("version %d, cell %llu, %llu, %llu: %lld, not %lld",
                       (int)v, (unsigned long long)points[i][0],
                       (unsigned long long)points[i][1],
                       (unsigned long long)points[i][2], (long long)got,
                       (long long)want);
    }
    if (wrong)
        tell_deeds();
}

/* --- what happens --------------------------------------------------------- */

static inline deed *
next_deed(void)
{
    REQUIRE(newest + 1 < MAX_VERSIONS);
    deed *d = &deeds[++newest];
    *d = (deed){.what = NOTHING};
    memcpy(d->shape, deeds[newest - 1].shape, sizeof d->shape);
    return d;
}

/* A box inside the shape: large, or small; along chunks, or anywhere. */
static inline void
any_box(const uint64_t *within, bool large, deed *out)
{
    bool along = rng_once_in(&dice, 2), all = large && rng_once_in(&dice, 3);
    for (int d = 0; d < ndim; d++) {
        uint64_t lo = pick(within[d]), n = within[d] - lo;
        n = large ? 1 + pick(n) : 1 + pick(n < 3 * chunk[d] ? n : 3 * chunk[d]);
        if (large && rng_once_in(&dice, 3)) {
            n += lo;
            lo = 0;
        }
        if (along && large) {
            lo -= lo % chunk[d];
            n = n - n % chunk[d] + chunk[d];
            n = n > within[d] - lo ? within[d] - lo : n;
        }
        out->lo[d] = all ? 0 : lo;
        out->size[d] = all ? within[d] : n;
    }
    add_points(out->lo, out->size);
}

static inline void
do_write(void)
{
    static int64_t cells[3 * 3 * 3 * 64 * 64];
    deed *d = next_deed();
    pyr_version made;
    uint64_t n = 1;
    any_box(d->shape, false, d);
    for (int k = 0; k < ndim; k++) {
        d->size[k] = d->size[k] > 40 ? 40 : d->size[k];
        n *= d->size[k];
    }
    REQUIRE(n <= sizeof cells / sizeof *cells);
    d->what = WRITE;
    d->cell = (int64_t)pick(20);
    for (uint64_t i = 0; i < n; i++)
        cells[i] = d->cell;
    OK(pyr_write(array, d->lo, d->size, cells, &made));
    CHECK(made == newest - cloned_at);
}

static inline void
compute_some(bool large)
{
    char text[64];
    pyr_version made, source = newest;
    if (rng_once_in(&dice, 3))
        source = cloned_at + pick(newest - cloned_at + 1);
    pyr_version other = cloned_at + pick(newest - cloned_at + 1);
    if (deeds[source].forgotten)
        source = newest;
    if (deeds[other].forgotten)
        other = newest;
    uint64_t within[PYR_MAX_DIMS] = {0};
    for (int k = 0; k < ndim; k++) {
        uint64_t a = deeds[source].shape[k], b = deeds[newest].shape[k];
        within[k] = a < b ? a : b;
    }
    deed *d = next_deed();
    any_box(within, large, d);
    d->what = COMPUTE;
    d->source = source;
    d->other = other;
    d->function = (int)pick(FUNCTIONS);
    snprintf(text, sizeof text, functions[d->function],
             (int)(other - cloned_at));
    OK(pyr_compute(array, source - cloned_at, d->lo, d->size, text, &made));
    CHECK(made == newest - cloned_at);
}

static inline void
do_compute(void)
{
    compute_some(true);
}

static inline void
do_fill(void)
{
    compute_some(false);
}

static inline uint64_t
any_extent(int d)
{
    static const uint64_t most[3] = {1000000000000, 10000, 200};
    uint64_t n = most[ndim - 1];
    return rng_once_in(&dice, 4)   ? 1 + pick(5 * chunk[d])
           : rng_once_in(&dice, 3) ? chunk[d] << pick(9)
                                   : 1 + pick(n);
}

static inline void
do_resize(void)
{
    pyr_version made;
    deed *d = next_deed();
    for (int k = 0; k < ndim; k++)
        if (rng_once_in(&dice, 2))
            d->shape[k] = any_extent(k);
    memset(d->lo, 0, sizeof d->lo);
    memcpy(d->size, d->shape, sizeof d->size);
    add_points(d->lo, d->size);
    OK(pyr_resize(array, d->shape, &made));
    CHECK(made == newest - cloned_at);
}

static inline void
begin_huge(bool on_disk)
{
    static int count;
    if (on_disk)
        snprintf(where, sizeof where, "%s", tmp_fresh("huge"));
    else
        snprintf(where, sizeof where, "mem:huge%d", count++);
    OK(pyr_open_with(where, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS},
                     &store));
    ndim = 1 + (int)pick(3);
    memset(deeds, 0, sizeof deeds);
    memset(points, 0, sizeof points);
    newest = cloned_at = 0;
    npoints = 0;
    fill = rng_once_in(&dice, 2) ? 0 : 3;
    for (int d = 0; d < ndim; d++) {
        chunk[d] = ndim == 1 ? 1 + pick(2000) : ndim == 2 ? 20 + pick(30)
                                                          : 6 + pick(8);
        deeds[0].shape[d] = any_extent(d);
    }
    pyr_spec spec = {.ndim = ndim, .shape = deeds[0].shape, .chunk = chunk,
                     .type = PYR_I64, .fill = &fill};
    OK(pyr_create(store, "t", &spec, &array));
}

static inline void
end_huge(void)
{
    pyr_array_close(array);
    pyr_close(store);
    if (strncmp(where, "mem:", 4) != 0)
        tmp_remove(where);
}

/* --- what is asked -------------------------------------------------------- */

typedef struct boxes {
    bool held[MAX_POINTS];
    uint64_t n;
} boxes;

static inline int
note_box(void *ctx, int n, const uint64_t *lo, const uint64_t *size)
{
    boxes *b = ctx;
    REQUIRE(n == ndim);
    b->n++;
    for (int i = 0; i < npoints; i++)
        b->held[i] |= is_in(points[i], lo, size);
    return 0;
}

/* Where the model differs, so must the difference say. */
static inline void
check_diff(pyr_version a, pyr_version b)
{
    static const uint64_t none[PYR_MAX_DIMS];
    boxes told = {.n = 0};
    OK(pyr_diff(array, a, b, note_box, &told));
    for (int i = 0; i < npoints; i++) {
        bool ina = is_in(points[i], none, deeds[a].shape);
        bool inb = is_in(points[i], none, deeds[b].shape);
        if (ina != inb || model_cell(a, points[i]) != model_cell(b, points[i]))
            CHECK(told.held[i]);
    }
}

/* Not before the cell last changed, not after it was last written. */
static inline void
check_last_change(pyr_version v)
{
    static const uint64_t none[PYR_MAX_DIMS];
    uint64_t one[PYR_MAX_DIMS];
    for (int k = 0; k < ndim; k++)
        one[k] = 1;
    for (int i = 0; i < npoints; i += 7) {
        pyr_version got, least = 0, most = 0;
        bool cut = false;
        if (!is_in(points[i], none, deeds[v].shape))
            continue;
        for (pyr_version k = 1; k <= v; k++) {
            const deed *d = &deeds[k];
            cut |= !is_in(points[i], none, d->shape);
            if (d->what == NOTHING || !is_in(points[i], d->lo, d->size))
                continue;
            most = k;
            if (model_cell(k, points[i]) != model_cell(k - 1, points[i]))
                least = k;
        }
        if (cut)
            continue; /* what was written there is gone */
        OK(pyr_last_change(array, v, points[i], one, &got));
        if (got < least || got > most)
            CHECK_NOTE("version %d: last changed by %d, not %d to %d", (int)v,
                       (int)got, (int)least, (int)most);
    }
}

static inline void
check_changes(void)
{
    for (int i = 0; i < 6; i++) {
        pyr_version a = pick(newest + 1), b = pick(newest + 1);
        if (deeds[a].forgotten || deeds[b].forgotten)
            continue;
        check_diff(a < b ? a : b, a < b ? b : a);
    }
    bool all = true; /* a fold asks versions that are there */
    for (pyr_version v = 0; v <= newest; v++)
        all &= !deeds[v].forgotten;
    if (all)
        check_last_change(newest);
}

/* A box of one value in the model has that value in the statistics; and what
 * is counted is all there is. */
static inline void
check_reductions(void)
{
    static const uint64_t none[PYR_MAX_DIMS];
    const deed *d = &deeds[newest];
    pyr_stats st;
    pyr_value v;
    uint64_t cells = 1;
    for (int k = 0; k < ndim; k++)
        cells *= d->shape[k];
    OK(pyr_stat(array, PYR_LATEST, none, d->shape, 0, &st));
    CHECK(st.count == cells);
    for (int i = 0; i < npoints; i++) {
        if (!is_in(points[i], none, d->shape))
            continue;
        int64_t cell = model_cell(newest, points[i]);
        CHECK(cell >= st.exact_min.i && cell <= st.exact_max.i);
    }
    OK(pyr_reduce(array, PYR_LATEST, none, d->shape, "count(x == x)", &v));
    CHECK(v.low == cells);
    OK(pyr_reduce(array, PYR_LATEST, none, d->shape, "max(x)", &v));
    CHECK((int64_t)v.low == st.exact_max.i);
}

static inline void
same_digests(pyr_array *a, pyr_array *b, pyr_version v)
{
    unsigned char x[16], y[16];
    int known, known_too;
    OK(pyr_digest(a, v, x, &known));
    OK(pyr_digest(b, v, y, &known_too));
    CHECK(known == known_too);
    if (known && memcmp(x, y, sizeof x) != 0)
        CHECK_NOTE("digests of version %d differ", (int)v);
}

#endif
