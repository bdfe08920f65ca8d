/*
 * keep/stage.h - a store with one array of u32, "a", for one test.
 */
#ifndef KEEP_STAGE_H
#define KEEP_STAGE_H

#include "support/check.h"
#include "support/tmp_store.h"

#include <pyramid/pyramid.h>

typedef struct stage {
    char url[4096];
    pyr_store *store;
    pyr_array *array;
} stage;

/* At `url`, with a lease (0: as always); `side` cells along each axis. Nobody
 * folds behind its back: what is there is what was asked for. */
static inline void
stage_open(stage *s, const char *url, unsigned lease_ms, int ndim,
           uint64_t side, uint64_t chunk)
{
    uint64_t shape[2] = {side, side}, chunks[2] = {chunk, chunk};
    snprintf(s->url, sizeof s->url, "%s", url);
    OK(pyr_open_with(url, PYR_OPEN_CREATE | PYR_OPEN_NO_UPKEEP,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS,
                                          .lease_ms = lease_ms},
                     &s->store));
    OK(pyr_create(s->store, "a",
                  &(pyr_spec){.ndim = ndim, .shape = shape, .chunk = chunks,
                              .type = PYR_U32},
                  &s->array));
}

/* With other flags, once it was closed or its process has died. */
static inline void
reopen_stage(stage *s, unsigned flags)
{
    OK(pyr_open(s->url, flags, &s->store));
    OK(pyr_array_open(s->store, "a", &s->array));
}

static inline void
close_stage(stage *s)
{
    pyr_array_close(s->array);
    pyr_close(s->store);
    if (strncmp(s->url, "mem:", 4) != 0)
        tmp_remove(s->url);
}

#endif
