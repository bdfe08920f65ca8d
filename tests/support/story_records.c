/*
 * support/story_records.c - operations that make no cells: clones, tags,
 * attributes, handlers; forgetting, reclaiming, verifying.
 */
#include "support/story_ops.h"

/* --- records ------------------------------------------------------------- */

int
story_do_clone(world *w)
{
    if (w->nthings == STORY_THINGS)
        return 0;
    thing *from = story_any_thing(w), *t = &w->things[w->nthings];
    uint64_t v = story_any_version(w, from);
    *t = (thing){.clone = true};
    snprintf(t->name, sizeof t->name, "cloned/%d", w->nthings);
    memcpy(t->attributes, from->attributes, sizeof t->attributes);
    int err = story_open_thing(w, from);
    if (err == 0 && w->live)
        CALL(w, err, pyr_clone(from->array, v, t->name, &t->array));
    if (err == 0) {
        model_clone(&from->m, v, &t->m);
        w->nthings++;
    }
    return err;
}

int
story_do_tag(world *w)
{
    thing *t = story_any_thing(w);
    uint64_t v = story_any_version(w, t);
    int k = (int)rng_below(&w->r, STORY_TAGS);
    k = k > t->ntags ? t->ntags : k;
    char name[16];
    snprintf(name, sizeof name, "tag-%d", k);
    int err = story_open_thing(w, t);
    if (err == 0 && w->live)
        CALL(w, err, pyr_tag(t->array, name, v));
    if (err == 0) {
        memcpy(t->tags[k], name, sizeof name);
        t->tagged[k] = v;
        t->ntags += k == t->ntags;
    }
    return err;
}

int
story_do_untag(world *w)
{
    thing *t = story_any_thing(w);
    if (t->ntags == 0)
        return story_do_tag(w);
    int err = story_open_thing(w, t);
    if (err == 0 && w->live)
        CALL(w, err, pyr_untag(t->array, t->tags[t->ntags - 1]));
    if (err == 0)
        t->ntags--;
    return err;
}

int
story_do_set_attributes(world *w)
{
    thing *t = story_any_thing(w);
    char text[64];
    snprintf(text, sizeof text, "{\"number\": %u}",
             (unsigned)rng_below(&w->r, 100000));
    int err = story_open_thing(w, t);
    if (err == 0 && w->live)
        CALL(w, err, pyr_set_attributes(t->array, text));
    if (err == 0)
        memcpy(t->attributes, text, sizeof text);
    return err;
}

int
story_do_handler_add(world *w)
{
    thing *t = story_any_thing(w);
    unsigned number = t->had_handlers + 1;
    if (t->nhandlers == STORY_HANDLERS)
        return 0;
    int err = story_open_thing(w, t);
    if (err == 0 && w->live)
        CALL(w, err, pyr_handler_add(t->array, PYR_ON_WRITE, "x+1", &number));
    if (err == 0) {
        err = number == ++t->had_handlers ? 0 : STORY_WRONG;
        t->handlers[t->nhandlers++] = number;
    }
    return err;
}

int
story_do_handler_remove(world *w)
{
    thing *t = story_any_thing(w);
    if (t->nhandlers == 0)
        return story_do_handler_add(w);
    int err = story_open_thing(w, t);
    if (err == 0 && w->live)
        CALL(w, err,
             pyr_handler_remove(t->array, t->handlers[t->nhandlers - 1]));
    if (err == 0)
        t->nhandlers--;
    return err;
}

/* --- forgetting ---------------------------------------------------------- */

static bool
has_tag(const thing *t, uint64_t v)
{
    for (int i = 0; i < t->ntags; i++)
        if (t->tagged[i] == v)
            return true;
    return false;
}

int
story_do_forget(world *w)
{
    thing *t = story_any_thing(w);
    uint64_t keep = rng_from(&w->r, 1, 3), n;
    int err = story_open_thing(w, t);
    if (err == 0 && w->live)
        CALL(w, err, pyr_forget(t->array, 0, PYR_LATEST, keep, 0, &n));
    for (uint64_t v = t->m.n; v-- > 0 && err == 0;) {
        if (t->gone[v] || (v == 0 && !t->clone))
            continue;
        if (keep)
            keep--;
        else
            t->gone[v] = !has_tag(t, v);
    }
    return err;
}

int
story_do_reclaim(world *w)
{
    pyr_reclaimed gone;
    int err = 0;
    if (w->live)
        CALL(w, err, pyr_reclaim(w->store, NULL, &gone));
    return err;
}

int
story_do_fold(world *w)
{
    pyr_folded done;
    int err = 0;
    if (w->live)
        CALL(w, err, pyr_fold(w->store, NULL, 0, NULL, &done));
    return err;
}

int
story_do_usage(world *w)
{
    thing *t = story_any_thing(w);
    pyr_usage usage;
    int err = story_open_thing(w, t);
    if (err == 0 && w->live)
        CALL(w, err,
             pyr_version_usage(t->array, story_any_version(w, t), &usage));
    return err;
}

/* What cannot be read is harm to it, not a failure. */
int
story_do_verify(world *w)
{
    pyr_verified found;
    int err = 0;
    if (w->live) {
        CALL(w, err,
             pyr_verify(w->store, &(pyr_verify_spec){.deep = 1}, &found));
        if (err == 0 && found.harms)
            err = PYR_EIO; /* the only harm there can be here */
    }
    return err;
}
