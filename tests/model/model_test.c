/*
 * model/model_test.c - random operations on each engine, against a plain array
 * per version.
 *
 * One case is one seed: a store with one array and its clones, some dozens of
 * random steps, after each a few random questions about random versions, and
 * in the end every version read whole. A case that fails prints the command
 * that runs it again.
 */
#include "model/forget.h"
#include "model/handle.h"
#include "support/health.h"

#include <errno.h>
#include <math.h>

/* --- steps --------------------------------------------------------------- */

static uint64_t *
latest_shape(twin *t)
{
    return t->m.snaps[t->m.n - 1].shape;
}

static void
expect_version(twin *t, pyr_version made)
{
    pyr_version latest;
    CHECK(made == t->m.n - 1);
    OK(pyr_latest(t->array, &latest));
    CHECK(latest == t->m.n - 1);
}

static void
step_write_list(bench *b, twin *t)
{
    random_part p[MAX_PARTS];
    pyr_part parts[MAX_PARTS];
    size_t n = rng_from(&b->d.r, 1, MAX_PARTS);
    pyr_version made = 0;
    for (size_t i = 0; i < n; i++) {
        random_part_make(&b->d, &t->m, latest_shape(t), &p[i]);
        parts[i] = p[i].part;
    }
    model_write(&t->m, parts, n);
    unsigned flags = rng_once_in(&b->d.r, 4) ? PYR_WRITE_NOWAIT : 0;
    OK(pyr_write_list(t->array, parts, n,
                      &(pyr_write_options){.flags = flags, .message = "m"},
                      &made));
    if (flags)
        OK(pyr_wait(t->array, made, 20000));
    for (size_t i = 0; i < n; i++)
        CHECK(memcmp(p[i].ours, p[i].theirs, p[i].bytes) == 0);
    random_parts_free(p, n);
    expect_version(t, made);
}

static void
step_write_box(bench *b, twin *t)
{
    uint64_t offset[PYR_MAX_DIMS], size[PYR_MAX_DIMS];
    pyr_version made = 0;
    random_box(&b->d.r, t->m.ndim, latest_shape(t), offset, size);
    uint64_t n = model_count(t->m.ndim, size);
    uint8_t *cells = malloc(n * t->m.cell + 1);
    REQUIRE(cells);
    random_cells(&b->d, &t->m, cells, n);
    model_write(&t->m, &(pyr_part){.offset = offset, .size = size,
                                   .buf = cells}, 1);
    if (rng_once_in(&b->d.r, 2))
        OK(pyr_write(t->array, offset, size, cells, &made));
    else
        OK(pyr_write_as(t->array, t->m.type, offset, size, cells, &made));
    free(cells);
    expect_version(t, made);
}

static void
step_batch(bench *b, twin *t)
{
    size_t n = rng_from(&b->d.r, 1, MAX_PARTS);
    random_part p[MAX_PARTS];
    pyr_part parts[MAX_PARTS];
    pyr_batch *batch;
    pyr_version made = 0, latest;
    OK(pyr_batch_begin(t->array, &batch));
    for (size_t i = 0; i < n; i++) {
        random_part_make(&b->d, &t->m, latest_shape(t), &p[i]);
        p[i].part.count = p[i].part.stride = NULL;
        p[i].part.step = NULL;
        for (int d = 0; d < t->m.ndim; d++)
            p[i].size[d] = p[i].size[d] * p[i].count[d];
        for (int d = 0; d < t->m.ndim; d++)
            if (p[i].size[d] > latest_shape(t)[d] - p[i].offset[d])
                p[i].size[d] = latest_shape(t)[d] - p[i].offset[d];
        p[i].part.buf = p[i].ours;
        parts[i] = p[i].part;
        OK(pyr_batch_write(batch, p[i].offset, p[i].size, p[i].theirs));
        memset(p[i].theirs, 0x5a, p[i].bytes); /* it was given back */
    }
    OK(pyr_latest(t->array, &latest));
    CHECK(latest == t->m.n - 1);
    if (rng_once_in(&b->d.r, 6)) {
        pyr_batch_abort(batch);
        made = t->m.n - 1;
    } else {
        OK(pyr_batch_commit(batch, NULL, &made));
        model_write(&t->m, parts, n);
    }
    random_parts_free(p, n);
    expect_version(t, made);
}

static void
step_resize(bench *b, twin *t)
{
    uint64_t shape[PYR_MAX_DIMS];
    pyr_version made = 0;
    do
        for (int d = 0; d < t->m.ndim; d++) {
            uint64_t was = latest_shape(t)[d];
            shape[d] = rng_once_in(&b->d.r, 3) ? was
                       : rng_once_in(&b->d.r, 40)
                           ? 0
                           : rng_from(&b->d.r, was / 2, was + was / 2 + 1);
        }
    while (model_count(t->m.ndim, shape) > MAX_CELLS);
    model_resize(&t->m, shape);
    OK(pyr_resize(t->array, shape, &made));
    expect_version(t, made);
}

static void
step_append(bench *b, twin *t)
{
    int axis = (int)rng_below(&b->d.r, (uint64_t)t->m.ndim);
    uint64_t count = rng_from(&b->d.r, 1, 3), size[PYR_MAX_DIMS];
    uint64_t at = 0, want;
    pyr_version made = 0;
    memcpy(size, latest_shape(t), sizeof size);
    size[axis] += count;
    if (model_count(t->m.ndim, size) > MAX_CELLS)
        return;
    size[axis] = count;
    uint64_t n = model_count(t->m.ndim, size);
    uint8_t *cells = malloc(n * t->m.cell + 1);
    REQUIRE(cells);
    random_cells(&b->d, &t->m, cells, n);
    model_append(&t->m, axis, count, cells, &want);
    OK(pyr_append(t->array, axis, count, cells, &at, &made));
    free(cells);
    CHECK(at == want);
    expect_version(t, made);
}

static void
step_clone(bench *b, twin *t)
{
    if (b->ntwins == MAX_TWINS)
        return;
    size_t v = kept_version(b, t);
    twin *c = &b->twins[b->ntwins];
    *c = (twin){0};
    snprintf(c->name, sizeof c->name, "clones/%d", b->ntwins);
    OK(pyr_clone(t->array, v, c->name, &c->array));
    model_clone(&t->m, v, &c->m);
    b->ntwins++;
    pyr_info info;
    OK(pyr_array_info(c->array, PYR_LATEST, &info));
    CHECK(strcmp(info.clone_of, t->name) == 0);
    CHECK(info.clone_version == v);
    CHECK(info.latest == 0);
}

static void
step_tag(bench *b, twin *t)
{
    uint64_t which = rng_below(&b->d.r, MAX_TAGS);
    char name[32];
    pyr_version got;
    snprintf(name, sizeof name, "tags/%d", (int)which);
    if (rng_once_in(&b->d.r, 4)) {
        FAILS(t->tagged[which] ? 0 : PYR_ENOTFOUND, pyr_untag(t->array, name));
        t->tagged[which] = false;
        FAILS(PYR_ENOTFOUND, pyr_tag_version(t->array, name, &got));
        return;
    }
    t->tagged[which] = true;
    t->tag[which] = kept_version(b, t);
    OK(pyr_tag(t->array, name, t->tag[which]));
    OK(pyr_tag_version(t->array, name, &got));
    CHECK(got == t->tag[which]);
}

static void
step_reopen(bench *b)
{
    for (int i = 0; i < b->ntwins; i++)
        pyr_array_close(b->twins[i].array);
    if (!b->on->mem) {
        pyr_close(b->store);
        b->store = NULL;
        OK(pyr_open(b->url, 0, &b->store));
    }
    for (int i = 0; i < b->ntwins; i++)
        OK(pyr_array_open(b->store, b->twins[i].name, &b->twins[i].array));
}

static void
random_step(bench *b)
{
    twin *t = &b->twins[rng_below(&b->d.r, (uint64_t)b->ntwins)];
    uint64_t pick = rng_below(&b->d.r, 48);
    if (t->m.n + 2 > MAX_VERSIONS)
        return;
    if (pick < 14)
        step_write_list(b, t);
    else if (pick < 22)
        step_write_box(b, t);
    else if (pick < 26)
        step_batch(b, t);
    else if (pick < 30)
        step_resize(b, t);
    else if (pick < 33)
        step_append(b, t);
    else if (pick < 35)
        step_clone(b, t);
    else if (pick < 39)
        step_tag(b, t);
    else if (pick < 42)
        step_forget(b, t);
    else if (pick < 45)
        step_reclaim(b);
    else if (pick < 47)
        step_handler(b, t);
    else
        step_reopen(b);
}

/* --- questions ----------------------------------------------------------- */

static void
ask_cells(bench *b, twin *t, size_t v)
{
    random_part p[MAX_PARTS];
    pyr_part parts[MAX_PARTS];
    size_t n = rng_from(&b->d.r, 1, MAX_PARTS);
    for (size_t i = 0; i < n; i++) {
        random_part_make(&b->d, &t->m, t->m.snaps[v].shape, &p[i]);
        parts[i] = p[i].part;
    }
    OK(pyr_read_list(t->array, v, parts, n));
    for (size_t i = 0; i < n; i++) {
        p[i].part.buf = p[i].ours + p[i].start;
        model_read(&t->m, v, &p[i].part);
        if (memcmp(p[i].ours, p[i].theirs, p[i].bytes) != 0)
            CHECK_NOTE("%s: part %zu of a list read from version %zu differs",
                       t->name, i, v);
    }
    random_parts_free(p, n);
}

static void
ask_box(bench *b, twin *t, size_t v)
{
    uint64_t offset[PYR_MAX_DIMS], size[PYR_MAX_DIMS];
    random_box(&b->d.r, t->m.ndim, t->m.snaps[v].shape, offset, size);
    size_t bytes = (size_t)model_count(t->m.ndim, size) * t->m.cell;
    uint8_t *ours = malloc(bytes + 1), *theirs = malloc(bytes + 1);
    REQUIRE(ours && theirs);
    model_read(&t->m, v, &(pyr_part){.offset = offset, .size = size,
                                     .buf = ours});
    OK(pyr_read(t->array, v, offset, size, theirs));
    if (memcmp(ours, theirs, bytes) != 0)
        CHECK_NOTE("%s: a box read from version %zu differs", t->name, v);
    if (v + 1 == t->m.n) {
        memset(theirs, 1, bytes);
        OK(pyr_read_as(t->array, PYR_LATEST, t->m.type, offset, size,
                       theirs));
        CHECK(memcmp(ours, theirs, bytes) == 0);
    }
    free(ours);
    free(theirs);
}

static bool
close_to(double x, double want, double scale)
{
    return x == want || fabs(x - want) <= 1e-9 * scale;
}

static void
check_sums(const model *m, const model_stats *want, const pyr_stats *got)
{
    uint64_t numbers = want->count - want->nans;
    if (want->infinite)
        return;
    if (model_type_is_real(m->type))
        CHECK(close_to(got->sum, want->sum, want->sum_abs));
    else
        CHECK(got->sum == want->sum);
    CHECK(close_to(got->sum_squares, want->sum_squares, want->sum_squares));
    if (numbers == 0)
        CHECK(isnan(got->mean));
    else
        CHECK(close_to(got->mean, want->sum / (double)numbers,
                       want->sum_abs / (double)numbers));
}

static void
check_extremes(const model *m, const model_stats *want, const pyr_stats *got)
{
    if (want->count == want->nans) {
        CHECK(isnan(got->min) && isnan(got->max));
        return;
    }
    CHECK(got->min == want->min_f);
    CHECK(got->max == want->max_f);
    switch (m->type) {
    case PYR_F32: case PYR_F64:
        CHECK(got->exact_min.f == want->min_f);
        CHECK(got->exact_max.f == want->max_f);
        break;
    case PYR_I8: case PYR_I16: case PYR_I32: case PYR_I64:
        CHECK(got->exact_min.i == want->min_i);
        CHECK(got->exact_max.i == want->max_i);
        break;
    default:
        CHECK(got->exact_min.u == want->min_u);
        CHECK(got->exact_max.u == want->max_u);
    }
}

static void
ask_stat(bench *b, twin *t, size_t v)
{
    uint64_t offset[PYR_MAX_DIMS] = {0}, size[PYR_MAX_DIMS];
    pyr_stats got, bounds;
    model_stats want;
    int before = check_failures;
    memcpy(size, t->m.snaps[v].shape, sizeof size);
    if (!rng_once_in(&b->d.r, 3))
        random_box(&b->d.r, t->m.ndim, t->m.snaps[v].shape, offset, size);
    model_stat(&t->m, v, offset, size, &want);
    OK(pyr_stat(t->array, v, offset, size, 0, &got));
    CHECK(got.count == want.count);
    CHECK(got.nans == want.nans);
    CHECK(got.not_fill == want.not_fill);
    if (want.count > 0)
        CHECK(!got.all_equal == !want.all_equal);
    check_extremes(&t->m, &want, &got);
    check_sums(&t->m, &want, &got);
    OK(pyr_stat(t->array, v, offset, size, PYR_STAT_BOUNDS, &bounds));
    CHECK(bounds.chunks_read == 0);
    if (want.count > want.nans &&
        !(bounds.min <= want.min_f && bounds.max >= want.max_f))
        CHECK_NOTE("bounds %g to %g of cells from %g to %g", bounds.min,
                   bounds.max, want.min_f, want.max_f);
    if (check_failures > before)
        printf("# in the stat of %s, version %zu, type %d, ndim %d, first "
               "axis %d + %d\n", t->name, v, (int)t->m.type, t->m.ndim,
               (int)offset[0], (int)size[0]);
}

static void
ask_last_change(bench *b, twin *t, size_t v)
{
    uint64_t offset[PYR_MAX_DIMS], size[PYR_MAX_DIMS], lo, hi;
    pyr_version got;
    random_box(&b->d.r, t->m.ndim, t->m.snaps[v].shape, offset, size);
    model_last_change(&t->m, v, offset, size, &lo, &hi);
    OK(pyr_last_change(t->array, v, offset, size, &got));
    if (t->forgot)
        hi = v; /* who wrote a cell may be forgotten; not that it was then */
    if (got < lo || got > hi)
        CHECK_NOTE("%s: last change of a box of version %zu: %d, not %d to "
                   "%d", t->name, v, (int)got, (int)lo, (int)hi);
}

/* Marks the cells that a diff speaks of. */
typedef struct cover {
    int ndim;
    size_t boxes;
    bool outside;
    uint64_t shape[PYR_MAX_DIMS];
    uint8_t *marks;
} cover;

static int
mark_box(void *ctx, int ndim, const uint64_t *offset, const uint64_t *size)
{
    cover *c = ctx;
    uint64_t at[PYR_MAX_DIMS] = {0};
    c->boxes++;
    for (int d = 0; d < ndim; d++)
        if (offset[d] > c->shape[d] || size[d] > c->shape[d] - offset[d])
            c->outside = true;
    if (c->outside || ndim != c->ndim || model_count(ndim, size) == 0)
        return 0;
    do {
        uint64_t i = 0;
        for (int d = 0; d < ndim; d++)
            i = i * c->shape[d] + offset[d] + at[d];
        c->marks[i] = 1;
    } while (model_next(ndim, size, at));
    return 0;
}

static void
check_cover(twin *t, size_t v, size_t w, const cover *c)
{
    uint64_t index[PYR_MAX_DIMS] = {0};
    uint64_t missed = 0, i = 0;
    if (model_count(t->m.ndim, c->shape) == 0)
        return;
    do {
        bool both = model_inside(&t->m, v, index) &&
                    model_inside(&t->m, w, index);
        if (both && !c->marks[i] &&
            memcmp(model_cell(&t->m, v, index), model_cell(&t->m, w, index),
                   t->m.cell) != 0)
            missed++;
        i++;
    } while (model_next(t->m.ndim, c->shape, index));
    if (missed)
        CHECK_NOTE("%s: the diff of %zu and %zu misses %d cells", t->name, v,
                   w, (int)missed);
}

static void
ask_diff(bench *b, twin *t, size_t v)
{
    size_t w = rng_once_in(&b->d.r, 4) ? v : kept_version(b, t);
    cover c = {.ndim = t->m.ndim};
    double cells = 1;
    for (int d = 0; d < t->m.ndim; d++) {
        uint64_t x = t->m.snaps[v].shape[d], y = t->m.snaps[w].shape[d];
        c.shape[d] = x > y ? x : y;
        cells *= (double)c.shape[d];
    }
    if (cells > 1 << 24) /* two small shapes may span a huge one */
        return;
    c.marks = calloc(model_count(t->m.ndim, c.shape) + 1, 1);
    REQUIRE(c.marks);
    OK(pyr_diff(t->array, v, w, mark_box, &c));
    CHECK(!c.outside);
    CHECK(v != w || c.boxes == 0);
    check_cover(t, v, w, &c);
    free(c.marks);
}

static void
random_question(bench *b)
{
    twin *t = &b->twins[rng_below(&b->d.r, (uint64_t)b->ntwins)];
    bool newest = rng_once_in(&b->d.r, 3);
    size_t v = newest ? t->m.n - 1 : kept_version(b, t);
    uint64_t pick = rng_below(&b->d.r, 12);
    if (pick < 3)
        ask_cells(b, t, v);
    else if (pick < 6)
        ask_box(b, t, v);
    else if (pick < 8)
        ask_stat(b, t, v);
    else if (pick < 9)
        ask_last_change(b, t, v);
    else if (pick < 10)
        ask_diff(b, t, v);
    else if (pick < 11)
        ask_forgotten(b, t);
    else
        ask_usage(b, t);
}

/* --- at the end ---------------------------------------------------------- */

static void
check_whole(twin *t, size_t v)
{
    const model_snap *s = &t->m.snaps[v];
    uint64_t zero[PYR_MAX_DIMS] = {0};
    pyr_info info;
    OK(pyr_array_info(t->array, v, &info));
    CHECK(info.ndim == t->m.ndim && info.type == t->m.type);
    CHECK(info.version == v && info.latest == t->m.n - 1);
    CHECK(memcmp(info.shape, s->shape, (size_t)t->m.ndim * 8) == 0);
    CHECK(memcmp(info.fill, t->m.fill, t->m.cell) == 0);
    uint8_t *theirs = malloc(s->ncells * t->m.cell + 1);
    REQUIRE(theirs);
    OK(pyr_read(t->array, v, zero, s->shape, theirs));
    if (memcmp(theirs, s->cells, s->ncells * t->m.cell) != 0)
        CHECK_NOTE("%s: version %zu of %zu differs from the model", t->name,
                   v, t->m.n - 1);
    free(theirs);
}

typedef struct history {
    twin *t;
    uint64_t next;
} history;

static size_t
parts_with_cells(const twin *t, const model_snap *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->nparts; i++)
        n += model_count(t->m.ndim, s->parts[i].size) > 0;
    return n;
}

static int
check_change(void *ctx, const pyr_change *c)
{
    history *h = ctx;
    twin *t = h->t;
    while (h->next < t->m.n && t->gone[h->next])
        h->next--;
    CHECK(c->version == h->next);
    h->next--;
    if (c->version >= t->m.n)
        return -99;
    const model_snap *s = &t->m.snaps[c->version];
    CHECK(c->kind == s->kind);
    CHECK(c->ndim == t->m.ndim);
    CHECK(memcmp(c->shape, s->shape, (size_t)t->m.ndim * 8) == 0);
    CHECK(c->who && c->who[0] && c->message && c->expression);
    if (s->kind != PYR_KIND_WRITE && s->kind != PYR_KIND_APPEND)
        return 0;
    CHECK(c->time_ns > 1000000000000000000);
    bool all = c->nparts == s->nparts;
    if (!all && c->nparts != parts_with_cells(t, s)) {
        CHECK_NOTE("%s: history of %d has %zu parts, not %zu", t->name,
                   (int)c->version, c->nparts, s->nparts);
        return 0;
    }
    for (size_t i = 0, j = 0; i < s->nparts; i++)
        if (all || model_count(t->m.ndim, s->parts[i].size) > 0)
            CHECK(model_same_part(t->m.ndim, &s->parts[i], &c->parts[j++]));
    return 0;
}

static int
check_one_tag(void *ctx, const char *tag, pyr_version version)
{
    twin *t = ctx;
    int which = -1;
    CHECK(sscanf(tag, "tags/%d", &which) == 1);
    if (which >= 0 && which < MAX_TAGS)
        CHECK(t->tagged[which] && t->tag[which] == version);
    t->tagged[which] = false;
    return 0;
}

static void
check_everything(bench *b)
{
    for (int i = 0; i < b->ntwins; i++) {
        twin *t = &b->twins[i];
        history h = {t, t->m.n - 1};
        for (size_t v = 0; v < t->m.n; v++)
            if (!t->gone[v])
                check_whole(t, v);
        OK(pyr_history(t->array, PYR_LATEST, 0, check_change, &h));
        while (h.next < t->m.n && t->gone[h.next])
            h.next--;
        CHECK(h.next == UINT64_MAX);
        OK(pyr_tags(t->array, check_one_tag, t));
        for (int k = 0; k < MAX_TAGS; k++)
            CHECK(!t->tagged[k]);
    }
}

/* --- cases --------------------------------------------------------------- */

static void
open_bench(bench *b, const engine *on, uint64_t seed)
{
    *b = (bench){.on = on, .d = {.r = rng_of(seed)}};
    if (on->mem)
        snprintf(b->url, sizeof b->url, "mem:%s",
                 strrchr(tmp_fresh("model"), '/') + 1);
    else
        snprintf(b->url, sizeof b->url, "%s", tmp_store("model"));
    OK(pyr_open_with(b->url, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = on->durability},
                     &b->store));
}

static void
first_array(bench *b, const uint64_t *given, const uint64_t *given_chunk,
            int given_ndim)
{
    uint64_t shape[PYR_MAX_DIMS], chunk[PYR_MAX_DIMS];
    uint8_t fill[8];
    twin *t = &b->twins[0];
    int ndim = rng_once_in(&b->d.r, 12) ? 16 : (int)rng_from(&b->d.r, 1, 5);
    ndim = given_ndim ? given_ndim : ndim;
    random_shape(&b->d.r, ndim, shape);
    random_chunk(&b->d.r, ndim, shape, chunk);
    if (given_ndim) {
        memcpy(shape, given, (size_t)ndim * 8);
        memcpy(chunk, given_chunk, (size_t)ndim * 8);
    } else if (rng_once_in(&b->d.r, 12)) {
        shape[rng_below(&b->d.r, (uint64_t)ndim)] = 0;
    }
    pyr_spec spec = {.ndim = ndim, .shape = shape};
    spec.type = (pyr_type)rng_below(&b->d.r, 10);
    spec.codec = (pyr_codec)rng_below(&b->d.r, 3);
    spec.chunk = !given_ndim && rng_once_in(&b->d.r, 10) ? NULL : chunk;
    random_fill(&b->d, spec.type, fill);
    spec.fill = fill;
    b->d.flavour = (int)rng_below(&b->d.r, 2);
    snprintf(t->name, sizeof t->name, "a");
    OK(pyr_create(b->store, t->name, &spec, &t->array));
    b->ntwins = 1;
    model_init(&t->m, ndim, shape, spec.type, fill);
}

static void
close_bench(bench *b)
{
    for (int i = 0; i < b->ntwins; i++) {
        pyr_array_close(b->twins[i].array);
        model_fini(&b->twins[i].m);
    }
    pyr_close(b->store);
    if (!b->on->mem)
        tmp_remove(b->url);
    *b = (bench){0};
}

static bench now; /* the case that runs */

static void
run_case(const engine *on, uint64_t seed)
{
    open_bench(&now, on, seed);
    first_array(&now, NULL, NULL, 0);
    uint64_t steps = rng_from(&now.d.r, 5, by_scale(40, 50, 120));
    for (uint64_t i = 0; i < steps && check_failures == 0; i++) {
        random_step(&now);
        for (uint64_t q = rng_below(&now.d.r, 5); q > 0; q--)
            random_question(&now);
    }
    if (rng_once_in(&now.d.r, 2))
        step_reopen(&now);
    check_everything(&now);
    check_health(now.store, (uint64_t)now.ntwins);
    close_bench(&now);
}

/* Many tiny writes to few chunks: long chains, and what folds them. */
static void
run_chain(const engine *on, uint64_t seed)
{
    static const uint64_t shape[2] = {24, 20}, chunk[2] = {24, 20};
    static const uint64_t half[2] = {13, 20};
    open_bench(&now, on, seed);
    first_array(&now, shape, rng_once_in(&now.d.r, 2) ? chunk : half, 2);
    twin *t = &now.twins[0];
    for (int i = 0; i < 300 && check_failures == 0; i++) {
        uint64_t offset[2] = {rng_below(&now.d.r, 22), rng_below(&now.d.r, 18)};
        uint64_t size[2] = {rng_from(&now.d.r, 1, 2), rng_from(&now.d.r, 1, 2)};
        uint8_t cells[4 * 8];
        random_cells(&now.d, &t->m, cells, 4);
        model_write(&t->m, &(pyr_part){.offset = offset, .size = size,
                                       .buf = cells}, 1);
        pyr_version made = 0;
        OK(pyr_write(t->array, offset, size, cells, &made));
        expect_version(t, made);
        if (i % 10 == 0)
            random_question(&now);
        if (i == 150)
            step_clone(&now, t);
        if (i % 40 == 39)
            step_forget(&now, t);
        if (i % 50 == 49)
            step_reclaim(&now);
    }
    check_everything(&now);
    check_health(now.store, (uint64_t)now.ntwins);
    close_bench(&now);
}

/* True if the case went well; says how to run it again if it did not. */
static bool
case_goes_well(void (*run)(const engine *, uint64_t), const engine *on,
               uint64_t seed)
{
    jmp_buf outer;
    int before = check_failures;
    memcpy(&outer, &check_leave, sizeof outer);
    if (setjmp(check_leave) == 0)
        run(on, seed);
    memcpy(&check_leave, &outer, sizeof outer);
    if (check_failures == before)
        return true;
    printf("# run it again: PYR_TEST_ONE=1 PYR_TEST_SEED=0x%llx "
           "PYR_TEST_SCALE=%s %s %s\n",
           (unsigned long long)seed,
           getenv("PYR_TEST_SCALE") ? getenv("PYR_TEST_SCALE") : "normal",
           program_invocation_name, on->test);
    return false;
}

static void
run_cases(void (*run)(const engine *, uint64_t), const engine *on,
          uint64_t ms)
{
    int64_t end = now_ns() + (int64_t)ms * 1000000;
    uint64_t seed = test_seed(), cases = 0;
    do
        cases++;
    while (case_goes_well(run, on, seed++) && now_ns() < end &&
           !getenv("PYR_TEST_ONE"));
    printf("# %d cases\n", (int)cases);
}

static void
random_operations_in_memory_agree_with_the_model(void)
{
    static const engine on = {.test = __func__, .mem = true};
    run_cases(run_case, &on, by_scale(4000, 16000, 120000));
}

static void
random_operations_on_files_agree_with_the_model(void)
{
    static const engine on = {.test = __func__,
                              .durability = PYR_DURABILITY_OS};
    run_cases(run_case, &on, by_scale(5000, 18000, 180000));
}

static void
random_operations_on_synced_files_agree_with_the_model(void)
{
    static const engine on = {.test = __func__,
                              .durability = PYR_DURABILITY_COMMIT};
    run_cases(run_case, &on, by_scale(4000, 14000, 120000));
}

static void
long_chains_in_memory_are_folded_and_nothing_is_lost(void)
{
    static const engine on = {.test = __func__, .mem = true};
    run_cases(run_chain, &on, by_scale(1000, 3000, 30000));
}

static void
long_chains_on_files_are_folded_and_nothing_is_lost(void)
{
    static const engine on = {.test = __func__,
                              .durability = PYR_DURABILITY_OS};
    run_cases(run_chain, &on, by_scale(1000, 3000, 30000));
}

TESTS(T(random_operations_in_memory_agree_with_the_model),
      T(random_operations_on_files_agree_with_the_model),
      T(random_operations_on_synced_files_agree_with_the_model),
      T(long_chains_in_memory_are_folded_and_nothing_is_lost),
      T(long_chains_on_files_are_folded_and_nothing_is_lost))
