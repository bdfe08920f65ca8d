/*
 * model/forget.h - forgetting and reclaiming, as steps of the model test.
 */
#ifndef TESTS_MODEL_FORGET_H
#define TESTS_MODEL_FORGET_H

#include "model/bench.h"

static bool
has_tag(const twin *t, size_t v)
{
    for (int i = 0; i < MAX_TAGS; i++)
        if (t->tagged[i] && t->tag[i] == v)
            return true;
    return false;
}

static bool
is_clone(const bench *b, const twin *t)
{
    return t != &b->twins[0];
}

/* What must go; returns how many. */
static uint64_t
model_forget(bench *b, twin *t, size_t first, size_t last, uint64_t keep,
             bool tagged)
{
    uint64_t n = 0;
    keep = keep ? keep : 1;
    for (size_t v = t->m.n; v-- > 0;) {
        if (t->gone[v] || (v == 0 && !is_clone(b, t)))
            continue;
        if (keep) {
            keep--;
            continue;
        }
        if (v < first || v > last || (has_tag(t, v) && !tagged))
            continue;
        t->gone[v] = t->forgot = true;
        n++;
        for (int i = 0; i < MAX_TAGS; i++)
            t->tagged[i] = t->tagged[i] && t->tag[i] != v;
    }
    return n;
}

static void
step_forget(bench *b, twin *t)
{
    size_t first = rng_below(&b->d.r, t->m.n), last = t->m.n;
    uint64_t keep = rng_below(&b->d.r, 5), n = 99;
    bool tagged = rng_once_in(&b->d.r, 5);
    if (rng_once_in(&b->d.r, 2))
        first = 0;
    if (rng_once_in(&b->d.r, 2))
        last = first + rng_below(&b->d.r, t->m.n - first);
    bool all = last == t->m.n;
    if (first == last)
        return; /* one alone may be refused: see the tests of the call */
    uint64_t want = model_forget(b, t, first, last, keep, tagged);
    OK(pyr_forget(t->array, first, all ? PYR_LATEST : last, keep,
                  tagged ? PYR_FORGET_TAGGED : 0, &n));
    if (n != want)
        CHECK_NOTE("%s: %d versions were forgotten, not %d", t->name, (int)n,
                   (int)want);
}

static void
step_reclaim(bench *b)
{
    pyr_reclaimed gone;
    OK(pyr_reclaim(b->store, NULL, &gone));
    CHECK(gone.waiting == 0);
}

/* A version that is forgotten cannot be used in any way. */
static void
ask_forgotten(bench *b, twin *t)
{
    uint64_t zero[PYR_MAX_DIMS] = {0}, none[PYR_MAX_DIMS] = {0};
    pyr_info info;
    pyr_stats stats;
    size_t v = rng_below(&b->d.r, t->m.n);
    if (!t->gone[v])
        return;
    FAILS(PYR_ENOVERSION, pyr_read(t->array, v, zero, none, none));
    FAILS(PYR_ENOVERSION, pyr_array_info(t->array, v, &info));
    FAILS(PYR_ENOVERSION, pyr_stat(t->array, v, zero, none, 0, &stats));
    FAILS(PYR_ENOVERSION, pyr_tag(t->array, "forgotten", v));
    FAILS(PYR_ENOVERSION, pyr_clone(t->array, v, "forgotten", NULL));
}

static void
ask_usage(bench *b, twin *t)
{
    pyr_usage usage;
    OK(pyr_version_usage(t->array, kept_version(b, t), &usage));
    CHECK(usage.bytes >= usage.nodes * 100);
}

#endif
