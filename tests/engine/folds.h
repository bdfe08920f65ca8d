/*
 * engine/folds.h - nodes that are stored anew because what they name is.
 */
#ifndef ENGINE_FOLDS_H
#define ENGINE_FOLDS_H

#include "engine/upkeep.h"

/* The nodes of `h` get other values, its second blob goes, and a new one comes
 * for it. */
typedef struct folding {
    pyri_engine *e;
    held *h;
    bool empty; /* nothing is decided */
    uint8_t value[300];
    pyri_node_put nodes[OWN_NODES];
    pyri_fold_blob fresh;
    pyri_blob gone;
    pyri_bytes gone_node;
    uint64_t seen; /* newest version, when it was decided */
} folding;

static int
decide(pyri_fold *f, pyri_reader *r)
{
    folding *x = f->ctx;
    pyri_bytes keys[OWN_NODES];
    pyri_blob blobs[OWN_BLOBS];
    OK(pyri_engine_latest(x->e, r, x->h->array, &x->seen, NULL));
    if (x->empty)
        return 0;
    list_held(x->h, keys, blobs);
    x->nodes[0] = (pyri_node_put){keys[0], {x->value, sizeof x->value}};
    x->gone_node = keys[1];
    x->gone = blobs[0]; /* a large one is seen until it is settled */
    f->nodes = x->nodes;
    f->nnodes = 1;
    f->blobs = &x->fresh;
    f->nblobs = 1;
    f->gone.nodes = &x->gone_node;
    f->gone.nnodes = 1;
    f->gone.blobs = &x->gone;
    f->gone.nblobs = 1;
    return 0;
}

static void
fold_held(folding *x, blob *fresh)
{
    pyri_fold f = {.family = FAMILY, .decide = decide, .ctx = x};
    *fresh = (blob){.seed = 4711, .size = 700};
    OK(put_blob(x->e, fresh));
    x->fresh = (pyri_fold_blob){{fresh->ref, fresh->size}, x->h->array,
                                x->h->version};
    fill(x->value, 5, sizeof x->value);
    OK(pyri_engine_begin_upkeep(x->e));
    OK(pyri_engine_fold(x->e, &f));
    pyri_engine_end_upkeep(x->e);
}

static bool
has_value(pyri_engine *e, pyri_reader *r, const uint8_t *key,
          pyri_bytes value)
{
    pyri_node_get get = {.key = {key, OWN_KEY}};
    OK(pyri_engine_get_nodes(e, r, &get, 1));
    return get.found && same(get.value, value);
}

/* NULL: the engine says that it does not fold. */
static pyri_engine *
fresh_that_folds(void)
{
    pyri_engine *e = fresh_with_array();
    if (pyri_engine_can_fold(e))
        return e;
    printf("# it does not fold\n");
    pyri_engine_close(e);
    return NULL;
}

static void
a_fold_changes_nodes_and_what_they_name_at_once(void)
{
    pyri_engine *e = fresh_that_folds();
    if (!e)
        return;
    held h = publish_held(e, ARRAY);
    folding x = {.e = e, .h = &h};
    blob fresh;
    pyri_reader *r;
    fold_held(&x, &fresh);
    CHECK(x.seen == 1 && folds_now(e) == 1);
    OK(pyri_engine_begin(e, &r));
    CHECK(has_value(e, r, h.keys[0], (pyri_bytes){x.value, sizeof x.value}));
    pyri_blob_get get = {.ref = fresh.ref, .size = fresh.size};
    OK(pyri_engine_get_blobs(e, r, &get, 1));
    CHECK(is_filled(get.data, fresh.seed, 0, fresh.size));
    CHECK(count_seen(e, r, &h) == OWN_BLOBS - 1); /* one node is another */
    pyri_engine_end(e, r);
    pyri_engine_close(e);
}

static void
a_fold_that_finds_nothing_to_do_changes_nothing(void)
{
    pyri_engine *e = fresh_that_folds();
    if (!e)
        return;
    held h = publish_held(e, ARRAY);
    folding x = {.e = e, .h = &h, .empty = true};
    blob fresh;
    fold_held(&x, &fresh);
    CHECK(folds_now(e) == 0 && seen_now(e, &h) == ALL_OF_IT);
    pyri_engine_drop_blobs(e, &(pyri_blob){fresh.ref, fresh.size}, 1, NULL,
                           0);
    pyri_engine_close(e);
}

static void
a_version_that_was_begun_before_a_fold_stores_nothing(void)
{
    pyri_engine *e = fresh_that_folds();
    if (!e)
        return;
    held first = publish_held(e, ARRAY);
    folding x = {.e = e, .h = &first};
    blob fresh;
    pyri_ticket t = take(e, ARRAY, "");
    held h = begin_held(e, &t);
    fold_held(&x, &fresh);
    FAILS(PYR_ENOVERSION, complete_held(e, &t, &h, 0));
    CHECK(latest(e, ARRAY) == 1 && state_of(e, 2) == UNKNOWN);
    pyri_reader *r;
    OK(pyri_engine_begin(e, &r));
    CHECK(count_seen(e, r, &h) == OWN_BLOBS); /* no node */
    pyri_engine_end(e, r);
    OK(complete_held(e, &t, &h, 1)); /* the blobs are still there for it */
    CHECK(latest(e, ARRAY) == 2 && seen_now(e, &h) == ALL_OF_IT);
    pyri_engine_close(e);
}

#endif
