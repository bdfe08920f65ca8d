/*
 * support/story.c - a store and its model, step by step.
 */
#include "support/story.h"

#include "support/story_ops.h"

#include <stdarg.h>

enum { BEGINNING = 3 }; /* steps: the store and two arrays */

const char *const story_folds[] = {
    "write", "write",      "write",  "batch", "write",  "write", "write",
    "write", "write_list", "write",  "batch", "write",  "write", "write",
    "tag",   "write",      "write",  "write", "write",  "batch", "write",
    "write", "forget",     "forget", "write", "forget", "fold",  NULL};
const unsigned story_nfolds =
    BEGINNING + sizeof story_folds / sizeof story_folds[0] - 2;

const story_op *
story_find(const char *name)
{
    for (int i = 0; i < story_nops; i++)
        if (strcmp(story_ops[i].name, name) == 0)
            return &story_ops[i];
    return NULL;
}

/* The row that a script names for a step; NULL: none. */
static const story_op *
scripted(const char *const *script, unsigned step)
{
    while (script && *script && step--)
        script++;
    return script && *script ? story_find(*script) : NULL;
}

const story_op *
story_next(world *w)
{
    if (w->step < BEGINNING)
        return &story_ops[w->step == 0 ? 0 : 1];
    const story_op *row = scripted(w->script, w->step - BEGINNING);
    if (row)
        return row;
    rng r = rng_of(w->seed ^ rng_mix(w->step + 77));
    int all = 0;
    for (int i = 0; i < story_nops; i++)
        all += story_ops[i].often;
    int pick = (int)rng_below(&r, (uint64_t)all);
    const story_op *op = story_ops;
    while (pick >= op->often)
        pick -= op++->often;
    return op;
}

int
story_run(world *w, const story_op *op)
{
    w->r = rng_of(w->seed + w->step * 1000003u + 1);
    int err = op->run(w);
    w->step += err == 0;
    return err;
}

int
story_warm(world *w)
{
    int err = 0;
    for (int i = 0; err == 0 && i < w->nthings; i++)
        err = story_open_thing(w, &w->things[i]);
    return err;
}

/* --- checking ------------------------------------------------------------ */

static bool
differs(char *why, size_t room, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, room, format, args);
    va_end(args);
    return false;
}

static bool
check_cells(thing *t, uint64_t v, char *why, size_t room)
{
    static const uint64_t zero[2];
    const model_snap *s = &t->m.snaps[v];
    size_t bytes = s->ncells * t->m.cell;
    uint8_t *have = malloc(bytes + 1);
    bool ok = true;
    if (pyr_read(t->array, v, zero, s->shape, have) < 0)
        ok = differs(why, room, "%s version %llu: %s", t->name,
                     (unsigned long long)v, pyr_errmsg());
    else if (memcmp(have, s->cells, bytes) != 0)
        ok = differs(why, room, "%s version %llu: other cells", t->name,
                     (unsigned long long)v);
    free(have);
    return ok;
}

static bool
check_stats(thing *t, uint64_t v, char *why, size_t room)
{
    static const uint64_t zero[2];
    pyr_stats have;
    model_stats want;
    model_stat(&t->m, v, zero, t->m.snaps[v].shape, &want);
    if (pyr_stat(t->array, v, zero, t->m.snaps[v].shape, 0, &have) < 0)
        return differs(why, room, "%s version %llu: statistics: %s", t->name,
                       (unsigned long long)v, pyr_errmsg());
    return story_same_stats(&t->m, &have, &want) ||
           differs(why, room, "%s version %llu: other statistics", t->name,
                   (unsigned long long)v);
}

static bool
check_records(thing *t, char *why, size_t room)
{
    story_walk tags = {.t = t}, history = {.t = t}, handlers = {.t = t};
    char *text = NULL;
    if (pyr_attributes(t->array, &text) < 0 ||
        pyr_tags(t->array, story_see_tag, &tags) < 0 ||
        pyr_handler_list(t->array, story_see_handler, &handlers) < 0 ||
        pyr_history(t->array, 0, PYR_LATEST, story_see_change, &history) < 0) {
        free(text);
        return differs(why, room, "%s: %s", t->name, pyr_errmsg());
    }
    bool same = strcmp(text, t->attributes) == 0;
    free(text);
    if (!same)
        return differs(why, room, "%s: other attributes", t->name);
    if (tags.wrong || tags.n != (uint64_t)t->ntags)
        return differs(why, room, "%s: other tags", t->name);
    if (handlers.wrong || handlers.n != (uint64_t)t->nhandlers)
        return differs(why, room, "%s: other handlers", t->name);
    if (history.wrong || history.n != t->m.n)
        return differs(why, room, "%s: another history", t->name);
    return true;
}

static bool
check_thing(world *w, thing *t, char *why, size_t room)
{
    pyr_version latest;
    if (story_open_thing(w, t) < 0 || pyr_latest(t->array, &latest) < 0)
        return differs(why, room, "%s: %s", t->name, pyr_errmsg());
    if (latest != t->m.n - 1)
        return differs(why, room, "%s: the newest version is %llu, not %llu",
                       t->name, (unsigned long long)latest,
                       (unsigned long long)t->m.n - 1);
    for (uint64_t v = 0; v < t->m.n; v++)
        if (!t->gone[v] && !check_cells(t, v, why, room))
            return false;
    return check_stats(t, latest, why, room) && check_records(t, why, room);
}

static int
count_name(void *ctx, const char *name)
{
    ++*(int *)ctx;
    return 0;
}

bool
story_check(world *w, char *why, size_t room)
{
    int n = 0, known = 0;
    void *ctx[2] = {w, &known};
    story_close(w);
    if (pyr_open(w->path, PYR_OPEN_NO_UPKEEP, &w->store) < 0)
        return differs(why, room, "open: %s", pyr_errmsg());
    if (pyr_arrays(w->store, count_name, &n) < 0 ||
        pyr_arrays(w->store, story_see_name, ctx) < 0)
        return differs(why, room, "arrays: %s", pyr_errmsg());
    if (n != w->nthings || known != n)
        return differs(why, room, "%d arrays, %d of them known, not %d", n,
                       known, w->nthings);
    for (int i = 0; i < w->nthings; i++)
        if (!check_thing(w, &w->things[i], why, room))
            return false;
    return true;
}

/* --- ending -------------------------------------------------------------- */

void
story_close(world *w)
{
    for (int i = 0; i < w->nthings; i++) {
        pyr_array_close(w->things[i].array);
        w->things[i].array = NULL;
    }
    pyr_close(w->store);
    w->store = NULL;
}

void
story_fini(world *w)
{
    story_close(w);
    for (int i = 0; i < w->nthings; i++)
        model_fini(&w->things[i].m);
    w->nthings = 0;
}
