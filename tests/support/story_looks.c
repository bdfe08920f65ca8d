/*
 * support/story_looks.c - every operation that only looks, and compares what it
 * is told with the model.
 */
#include "support/story_ops.h"

#include <math.h>

static bool
near(double a, double b)
{
    return a == b || fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b) + 1);
}

bool
story_same_stats(const model *m, const pyr_stats *s, const model_stats *want)
{
    double lo = m->type == PYR_F64 ? want->min_f : (double)want->min_i;
    double hi = m->type == PYR_F64 ? want->max_f : (double)want->max_i;
    return s->count == want->count && s->not_fill == want->not_fill &&
           s->min == lo && s->max == hi && near(s->sum, want->sum) &&
           near(s->sum_squares, want->sum_squares);
}

int
story_look_stat(world *w)
{
    thing *t = story_any_thing(w);
    uint64_t v = story_any_version(w, t), offset[2], size[2];
    story_any_box(w, t->m.snaps[v].shape, offset, size);
    model_stats want;
    pyr_stats have = {0};
    model_stat(&t->m, v, offset, size, &want);
    int err = story_open_thing(w, t);
    if (err == 0 && w->live) {
        CALL(w, err, pyr_stat(t->array, v, offset, size, 0, &have));
        if (err == 0 && !story_same_stats(&t->m, &have, &want))
            err = STORY_WRONG;
    }
    return err;
}

int
story_look_reduce(world *w)
{
    thing *t = story_any_thing(w);
    uint64_t v = story_any_version(w, t), offset[2], size[2];
    story_any_box(w, t->m.snaps[v].shape, offset, size);
    model_stats want;
    pyr_value have = {0}, lowest = {0};
    model_stat(&t->m, v, offset, size, &want);
    int err = story_open_thing(w, t);
    if (err == 0 && w->live) {
        CALL(w, err,
             pyr_reduce(t->array, v, offset, size, "sum(x * 1)", &have));
        if (err == 0)
            CALL(w, err,
                 pyr_reduce(t->array, v, offset, size, "quantile(x, 0)",
                            &lowest));
        if (err == 0 && !near(have.real, want.sum))
            err = STORY_WRONG;
        double least = t->m.type == PYR_F64 ? want.min_f : (double)want.min_i;
        if (err == 0 && want.count > want.nans && lowest.real != least)
            err = STORY_WRONG;
    }
    return err;
}

typedef struct differences {
    const model *m;
    uint64_t a, b;
    uint8_t *seen; /* a byte per cell of b's shape */
} differences;

static int
note_difference(void *ctx, int ndim, const uint64_t *offset,
                const uint64_t *size)
{
    differences *d = ctx;
    const uint64_t *shape = d->m->snaps[d->b].shape;
    for (uint64_t i = offset[0]; i < offset[0] + size[0] && i < shape[0]; i++)
        for (uint64_t j = offset[1]; j < offset[1] + size[1] && j < shape[1];
             j++)
            d->seen[i * shape[1] + j] = 1;
    return 0;
}

static bool
all_differences_seen(const differences *d)
{
    const uint64_t *shape = d->m->snaps[d->b].shape;
    for (uint64_t i = 0; i < shape[0] * shape[1]; i++) {
        uint64_t index[2] = {i / shape[1], i % shape[1]};
        if (model_inside(d->m, d->a, index) && !d->seen[i] &&
            memcmp(model_cell(d->m, d->a, index), model_cell(d->m, d->b, index),
                   d->m->cell) != 0)
            return false;
    }
    return true;
}

int
story_look_diff(world *w)
{
    thing *t = story_any_thing(w);
    differences d = {.m = &t->m,
                     .a = story_any_version(w, t),
                     .b = story_any_version(w, t)};
    d.seen = calloc(1, t->m.snaps[d.b].ncells + 1);
    int err = story_open_thing(w, t);
    if (err == 0 && w->live) {
        CALL(w, err, pyr_diff(t->array, d.a, d.b, note_difference, &d));
        if (err == 0 && !all_differences_seen(&d))
            err = STORY_WRONG;
    }
    free(d.seen);
    return err;
}

int
story_look_last_change(world *w)
{
    thing *t = story_any_thing(w);
    uint64_t v = story_any_version(w, t), offset[2], size[2], lo, hi, have = 0;
    story_any_box(w, t->m.snaps[v].shape, offset, size);
    model_last_change(&t->m, v, offset, size, &lo, &hi);
    int err = story_open_thing(w, t);
    if (err == 0 && w->live) {
        CALL(w, err, pyr_last_change(t->array, v, offset, size, &have));
        for (uint64_t i = 0; i < v; i++)
            hi = t->gone[i] ? v : hi; /* who wrote it may be forgotten */
        if (err == 0 && (have < lo || have > hi))
            err = STORY_WRONG;
    }
    return err;
}

int
story_see_change(void *ctx, const pyr_change *c)
{
    story_walk *k = ctx;
    while (k->n + 1 < k->t->m.n && k->t->gone[k->n])
        k->n++;
    const model_snap *s = &k->t->m.snaps[k->n];
    k->wrong |= c->version != k->n || c->shape[0] != s->shape[0] ||
                c->shape[1] != s->shape[1];
    k->n++;
    return 0;
}

int
story_look_history(world *w)
{
    story_walk k = {.t = story_any_thing(w)};
    thing *t = &w->things[k.t - w->things];
    int err = story_open_thing(w, t);
    if (err == 0 && w->live) {
        CALL(w, err,
             pyr_history(t->array, 0, PYR_LATEST, story_see_change, &k));
        if (err == 0 && (k.wrong || k.n != t->m.n))
            err = STORY_WRONG;
    }
    return err;
}

int
story_see_tag(void *ctx, const char *tag, pyr_version version)
{
    story_walk *k = ctx;
    bool found = false;
    for (int i = 0; i < k->t->ntags; i++)
        found |= strcmp(k->t->tags[i], tag) == 0 && k->t->tagged[i] == version;
    k->wrong |= !found;
    k->n++;
    return 0;
}

int
story_look_tags(world *w)
{
    story_walk k = {.t = story_any_thing(w)};
    thing *t = &w->things[k.t - w->things];
    int err = story_open_thing(w, t);
    if (err == 0 && w->live) {
        CALL(w, err, pyr_tags(t->array, story_see_tag, &k));
        if (err == 0 && (k.wrong || k.n != (uint64_t)t->ntags))
            err = STORY_WRONG;
    }
    return err;
}

int
story_see_handler(void *ctx, const pyr_handler *h)
{
    story_walk *k = ctx;
    k->wrong |= k->n >= (uint64_t)k->t->nhandlers ||
                h->number != k->t->handlers[k->n] ||
                strcmp(h->function, "x + 1") != 0;
    k->n++;
    return 0;
}

int
story_look_handlers(world *w)
{
    story_walk k = {.t = story_any_thing(w)};
    thing *t = &w->things[k.t - w->things];
    int err = story_open_thing(w, t);
    if (err == 0 && w->live) {
        CALL(w, err, pyr_handler_list(t->array, story_see_handler, &k));
        if (err == 0 && (k.wrong || k.n != (uint64_t)t->nhandlers))
            err = STORY_WRONG;
    }
    return err;
}

int
story_look_attributes(world *w)
{
    thing *t = story_any_thing(w);
    char *text = NULL;
    int err = story_open_thing(w, t);
    if (err == 0 && w->live) {
        CALL(w, err, pyr_attributes(t->array, &text));
        if (err == 0 && strcmp(text, t->attributes) != 0)
            err = STORY_WRONG;
    }
    free(text);
    return err;
}

int
story_look_info(world *w)
{
    thing *t = story_any_thing(w);
    pyr_info info;
    int err = story_open_thing(w, t);
    if (err == 0 && w->live) {
        CALL(w, err, pyr_array_info(t->array, PYR_LATEST, &info));
        if (err == 0 &&
            (info.latest != t->m.n - 1 ||
             info.shape[0] != story_shape_of(t)[0] ||
             info.shape[1] != story_shape_of(t)[1]))
            err = STORY_WRONG;
    }
    return err;
}

int
story_see_name(void *ctx, const char *name)
{
    world *w = ((void **)ctx)[0];
    int *n = ((void **)ctx)[1];
    for (int i = 0; i < w->nthings; i++)
        *n += strcmp(w->things[i].name, name) == 0 ? 1 : 0;
    return 0;
}

int
story_look_arrays(world *w)
{
    int n = 0, err = 0;
    void *ctx[2] = {w, &n};
    if (w->live) {
        CALL(w, err, pyr_arrays(w->store, story_see_name, ctx));
        if (err == 0 && n != w->nthings)
            err = STORY_WRONG;
    }
    return err;
}

int
story_look_status(world *w)
{
    pyr_status s;
    int err = 0;
    if (w->live) {
        CALL(w, err, pyr_store_status(w->store, &s, NULL, NULL));
        if (err == 0 && s.arrays != (uint64_t)w->nthings)
            err = STORY_WRONG;
    }
    return err;
}
