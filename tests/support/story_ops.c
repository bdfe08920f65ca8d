/*
 * support/story_ops.c - every operation, done by the library and by the model.
 */
#include "support/story_ops.h"

enum { SMALL = 12, MOST = 96, MAX_PARTS = 3 };

/* --- calls, arrays, cells ------------------------------------------------ */

int
story_open_thing(world *w, thing *t)
{
    int err = 0;
    if (w->live && !t->array)
        CALL(w, err, pyr_array_open(w->store, t->name, &t->array));
    return err;
}

thing *
story_any_thing(world *w)
{
    return &w->things[rng_below(&w->r, (uint64_t)w->nthings)];
}

const uint64_t *
story_shape_of(const thing *t)
{
    return t->m.snaps[t->m.n - 1].shape;
}

/* Cells for a write; the caller frees them. One write in eight is constant. */
static void *
make_cells(world *w, const thing *t, uint64_t n)
{
    uint8_t *cells = malloc(n * t->m.cell + 1);
    bool same = rng_once_in(&w->r, 8);
    uint64_t x = rng_below(&w->r, 1000);
    for (uint64_t i = 0; cells && i < n; i++) {
        if (!same)
            x = rng_below(&w->r, 100000);
        int32_t whole = (int32_t)x - 50000;
        double real = (double)x / 8;
        memcpy(cells + i * t->m.cell,
               t->m.type == PYR_F64 ? (void *)&real : (void *)&whole,
               t->m.cell);
    }
    return cells;
}

/* What handlers make of cells before they are stored. */
static void
handle(const thing *t, void *cells, uint64_t n)
{
    for (uint64_t i = 0; i < n && t->nhandlers; i++)
        if (t->m.type == PYR_F64)
            ((double *)cells)[i] += t->nhandlers;
        else
            ((int32_t *)cells)[i] += t->nhandlers;
}

void
story_any_box(world *w, const uint64_t *shape, uint64_t offset[2],
              uint64_t size[2])
{
    bool whole = rng_once_in(&w->r, 3);
    for (int d = 0; d < 2; d++) {
        offset[d] = whole ? 0 : rng_below(&w->r, shape[d]);
        size[d] = whole ? shape[d] : rng_from(&w->r, 1, shape[d] - offset[d]);
    }
}

uint64_t
story_any_version(world *w, const thing *t)
{
    uint64_t v = rng_below(&w->r, t->m.n);
    while (t->gone[v])
        v++; /* the newest never is */
    return v;
}

static int
made_is(uint64_t made, const thing *t)
{
    return made == t->m.n ? 0 : STORY_WRONG;
}

/* --- beginning ----------------------------------------------------------- */

static int
run_open(world *w)
{
    int err = 0;
    story_close(w);
    if (w->live) {
        pyr_store_options options = {.data = w->dirs,
                                     .lease_ms = w->lease_ms};
        CALL(w, err,
             pyr_open_with(w->path,
                           PYR_OPEN_NO_UPKEEP | (w->made ? 0 : PYR_OPEN_CREATE),
                           &options, &w->store));
    }
    if (err == 0)
        w->made = true;
    return err;
}

/* Array 0 is small, array 1 has chunks of 128 KiB, array 2 is compressed. */
static int
run_create(world *w)
{
    static const uint64_t shapes[3][2] = {{SMALL, 10}, {140, 130}, {40, 50}};
    static const uint64_t chunks[3][2] = {{4, 4}, {128, 128}, {32, 32}};
    int err = 0, kind = w->nthings % 3;
    thing *t = &w->things[w->nthings];
    if (w->nthings == STORY_THINGS)
        return 0;
    *t = (thing){0};
    snprintf(t->name, sizeof t->name, "made/%d", w->nthings);
    snprintf(t->attributes, sizeof t->attributes, "{\"kind\": %d}", kind);
    double real = 2.5;
    int32_t whole = -7;
    pyr_spec spec = {.ndim = 2,
                     .shape = shapes[kind],
                     .chunk = chunks[kind],
                     .type = kind == 1 ? PYR_F64 : PYR_I32,
                     .fill = kind == 1 ? (void *)&real : (void *)&whole,
                     .codec = kind == 2 ? PYR_CODEC_LZ4 : PYR_CODEC_NONE,
                     .attributes = t->attributes};
    if (w->live)
        CALL(w, err, pyr_create(w->store, t->name, &spec, &t->array));
    if (err == 0) {
        model_init(&t->m, 2, spec.shape, spec.type, spec.fill);
        w->nthings++;
    }
    return err;
}

/* --- versions ------------------------------------------------------------ */

static int
run_write(world *w)
{
    thing *t = story_any_thing(w);
    uint64_t offset[2], size[2], made = t->m.n;
    story_any_box(w, story_shape_of(t), offset, size);
    void *cells = make_cells(w, t, size[0] * size[1]);
    int err = story_open_thing(w, t);
    if (err == 0 && w->live)
        CALL(w, err, pyr_write(t->array, offset, size, cells, &made));
    if (err == 0) {
        err = made_is(made, t);
        handle(t, cells, size[0] * size[1]);
        pyr_part part = {.offset = offset, .size = size, .buf = cells};
        model_write(&t->m, &part, 1);
    }
    free(cells);
    return err;
}

/* A box of an older version comes back, by way of a function. */
static int
run_compute(world *w)
{
    thing *t = story_any_thing(w);
    uint64_t v = story_any_version(w, t), offset[2], size[2], common[2];
    uint64_t made = t->m.n;
    for (int d = 0; d < 2; d++) {
        common[d] = t->m.snaps[v].shape[d];
        if (story_shape_of(t)[d] < common[d])
            common[d] = story_shape_of(t)[d];
    }
    story_any_box(w, common, offset, size);
    pyr_part part = {.offset = offset, .size = size};
    part.buf = calloc(size[0] * size[1] + 1, t->m.cell);
    if (!part.buf)
        return PYR_ENOMEM;
    model_read(&t->m, v, &part);
    int err = story_open_thing(w, t);
    if (err == 0 && w->live)
        CALL(w, err,
             pyr_compute(t->array, v, offset, size, "x * 1", &made));
    if (err == 0) {
        err = made_is(made, t);
        handle(t, part.buf, size[0] * size[1]);
        model_write(&t->m, &part, 1);
        t->m.snaps[t->m.n - 1].kind = PYR_KIND_COMPUTE;
    }
    free(part.buf);
    return err;
}

typedef struct list {
    pyr_part parts[MAX_PARTS];
    uint64_t offset[MAX_PARTS][2], size[MAX_PARTS][2];
    uint64_t count[MAX_PARTS][2], stride[MAX_PARTS][2];
    size_t n;
} list;

/* Boxes, and runs of single cells with gaps. */
static void
any_list(world *w, const thing *t, list *l)
{
    const uint64_t *shape = story_shape_of(t);
    l->n = rng_from(&w->r, 2, MAX_PARTS);
    for (size_t i = 0; i < l->n; i++) {
        pyr_part *p = &l->parts[i];
        *p = (pyr_part){.offset = l->offset[i], .size = l->size[i]};
        story_any_box(w, shape, l->offset[i], l->size[i]);
        uint64_t cells = l->size[i][0] * l->size[i][1];
        if (rng_once_in(&w->r, 2)) {
            for (int d = 0; d < 2; d++) {
                l->count[i][d] = (l->size[i][d] + 2) / 3;
                l->size[i][d] = 1;
                l->stride[i][d] = 3;
            }
            p->count = l->count[i];
            p->stride = l->stride[i];
            cells = l->count[i][0] * l->count[i][1];
        }
        p->buf = make_cells(w, t, cells);
    }
}

static void
handle_list(const thing *t, list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const pyr_part *p = &l->parts[i];
        handle(t, p->buf,
               p->count ? p->count[0] * p->count[1] : p->size[0] * p->size[1]);
    }
}

static void
free_list(list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->parts[i].buf);
}

static int
run_write_list(world *w)
{
    thing *t = story_any_thing(w);
    list l;
    uint64_t made = t->m.n;
    any_list(w, t, &l);
    int err = story_open_thing(w, t);
    pyr_write_options options = {.message = "a list"};
    if (err == 0 && w->live)
        CALL(w, err, pyr_write_list(t->array, l.parts, l.n, &options, &made));
    if (err == 0) {
        err = made_is(made, t);
        handle_list(t, &l);
        model_write(&t->m, l.parts, l.n);
    }
    free_list(&l);
    return err;
}

static int
write_batch(thing *t, const list *l, uint64_t *made)
{
    pyr_batch *b;
    int err = pyr_batch_begin(t->array, &b);
    if (err < 0)
        return err;
    for (size_t i = 0; i < l->n; i++)
        if ((err = pyr_batch_write(b, l->offset[i], l->size[i],
                                   l->parts[i].buf)) < 0) {
            pyr_batch_abort(b);
            return err;
        }
    return pyr_batch_commit(b, NULL, made);
}

static int
run_batch(world *w)
{
    thing *t = story_any_thing(w);
    list l = {.n = 2};
    uint64_t made = t->m.n;
    for (size_t i = 0; i < l.n; i++) {
        story_any_box(w, story_shape_of(t), l.offset[i], l.size[i]);
        l.parts[i] = (pyr_part){.offset = l.offset[i],
                                .size = l.size[i],
                                .buf = make_cells(w, t,
                                                  l.size[i][0] * l.size[i][1])};
    }
    int err = story_open_thing(w, t);
    if (err == 0 && w->live)
        CALL(w, err, write_batch(t, &l, &made));
    if (err == 0) {
        err = made_is(made, t);
        handle_list(t, &l);
        model_write(&t->m, l.parts, l.n);
    }
    free_list(&l);
    return err;
}

static int
run_resize(world *w)
{
    thing *t = story_any_thing(w);
    uint64_t shape[2], made = t->m.n;
    for (int d = 0; d < 2; d++) {
        uint64_t now = story_shape_of(t)[d];
        shape[d] = rng_from(&w->r, now / 2 + 1, now > MOST ? MOST : now + 6);
    }
    int err = story_open_thing(w, t);
    if (err == 0 && w->live)
        CALL(w, err, pyr_resize(t->array, shape, &made));
    if (err == 0) {
        err = made_is(made, t);
        model_resize(&t->m, shape);
    }
    return err;
}

static int
run_append(world *w)
{
    thing *t = story_any_thing(w);
    int axis = (int)rng_below(&w->r, 2);
    uint64_t count = rng_from(&w->r, 1, 5), made = t->m.n, want, at;
    if (story_shape_of(t)[axis] > MOST)
        return run_resize(w);
    at = want = story_shape_of(t)[axis];
    void *cells = make_cells(w, t, count * story_shape_of(t)[1 - axis]);
    int err = story_open_thing(w, t);
    if (err == 0 && w->live)
        CALL(w, err, pyr_append(t->array, axis, count, cells, &at, &made));
    if (err == 0) {
        err = at == want ? made_is(made, t) : STORY_WRONG;
        handle(t, cells, count * story_shape_of(t)[1 - axis]);
        model_append(&t->m, axis, count, cells, &at);
    }
    free(cells);
    return err;
}

/* --- looking ------------------------------------------------------------- */

static int
run_array_open(world *w)
{
    thing *t = story_any_thing(w);
    pyr_array_close(t->array);
    t->array = NULL;
    return story_open_thing(w, t);
}

static int
run_read(world *w)
{
    thing *t = story_any_thing(w);
    uint64_t v = story_any_version(w, t), offset[2], size[2];
    story_any_box(w, t->m.snaps[v].shape, offset, size);
    size_t bytes = size[0] * size[1] * t->m.cell;
    uint8_t *want = malloc(bytes + 1), *have = calloc(1, bytes + 1);
    model_read(&t->m, v,
               &(pyr_part){.offset = offset, .size = size, .buf = want});
    int err = story_open_thing(w, t);
    if (err == 0 && w->live) {
        CALL(w, err, pyr_read(t->array, v, offset, size, have));
        if (err == 0 && memcmp(have, want, bytes) != 0)
            err = STORY_WRONG;
    }
    free(want);
    free(have);
    return err;
}

static int
run_read_list(world *w)
{
    thing *t = story_any_thing(w);
    uint64_t v = t->m.n - 1;
    list want, have;
    rng before = w->r;
    any_list(w, t, &want);
    w->r = before; /* so that it is the same again */
    any_list(w, t, &have);
    for (size_t i = 0; i < want.n; i++)
        model_read(&t->m, v, &want.parts[i]);
    int err = story_open_thing(w, t);
    if (err == 0 && w->live)
        CALL(w, err, pyr_read_list(t->array, v, have.parts, have.n));
    for (size_t i = 0; err == 0 && w->live && i < have.n; i++) {
        const pyr_part *p = &want.parts[i];
        uint64_t n = p->count ? p->count[0] * p->count[1]
                              : p->size[0] * p->size[1];
        if (memcmp(p->buf, have.parts[i].buf, n * t->m.cell) != 0)
            err = STORY_WRONG;
    }
    free_list(&want);
    free_list(&have);
    return err;
}

/* --- the table ----------------------------------------------------------- */

const story_op story_ops[] = {
    {"open", STORY_CHANGES | STORY_FIRST, 2, run_open},
    {"create", STORY_CHANGES | STORY_FIRST, 1, run_create},
    {"write", STORY_CHANGES | STORY_VERSION, 6, run_write},
    {"write_list", STORY_CHANGES | STORY_VERSION, 4, run_write_list},
    {"batch", STORY_CHANGES | STORY_VERSION, 3, run_batch},
    {"compute", STORY_CHANGES | STORY_VERSION, 2, run_compute},
    {"resize", STORY_CHANGES | STORY_VERSION | STORY_SHAPES, 2, run_resize},
    {"append", STORY_CHANGES | STORY_VERSION | STORY_SHAPES, 3, run_append},
    {"clone", STORY_CHANGES, 1, story_do_clone},
    {"tag", STORY_CHANGES, 1, story_do_tag},
    {"untag", STORY_CHANGES, 1, story_do_untag},
    {"set_attributes", STORY_CHANGES, 1, story_do_set_attributes},
    {"handler_add", STORY_CHANGES, 1, story_do_handler_add},
    {"handler_remove", STORY_CHANGES, 1, story_do_handler_remove},
    {"forget", STORY_CHANGES, 2, story_do_forget},
    {"reclaim", STORY_CHANGES, 2, story_do_reclaim},
    {"fold", STORY_CHANGES, 0, story_do_reclaim}, /* after story_folds */
    {"fold_newest", STORY_CHANGES, 2, story_do_fold},
    {"usage", 0, 0, story_do_usage},
    {"verify", 0, 0, story_do_verify},
    {"array_open", 0, 0, run_array_open},
    {"read", 0, 0, run_read},
    {"read_list", 0, 0, run_read_list},
    {"stat", 0, 0, story_look_stat},
    {"reduce", 0, 0, story_look_reduce},
    {"diff", 0, 0, story_look_diff},
    {"last_change", 0, 0, story_look_last_change},
    {"history", 0, 0, story_look_history},
    {"tags", 0, 0, story_look_tags},
    {"handlers", 0, 0, story_look_handlers},
    {"attributes", 0, 0, story_look_attributes},
    {"info", 0, 0, story_look_info},
    {"arrays", 0, 0, story_look_arrays},
    {"status", 0, 0, story_look_status},
};
const int story_nops = sizeof story_ops / sizeof story_ops[0];
