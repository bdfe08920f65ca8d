/*
 * api/fixture.h - a store of its own for each test of the public calls.
 */
#ifndef API_FIXTURE_H
#define API_FIXTURE_H

#include "support/check.h"
#include "support/model.h"
#include "support/rng.h"
#include "support/tmp_store.h"

#include <pyramid/pyramid.h>

#include <math.h>
#include <pthread.h>

static char url[4096];
static pyr_store *store;
static const uint64_t zero[PYR_MAX_DIMS];

static inline void
set_up(void)
{
    snprintf(url, sizeof url, "%s", tmp_store("promises"));
    OK(pyr_open_with(url, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS},
                     &store));
}

static inline void
tear_down(void)
{
    pyr_close(store);
    store = NULL;
    tmp_remove(url);
}

static inline uint64_t
data_bytes(void)
{
    pyr_status status;
    OK(pyr_store_status(store, &status, NULL, NULL));
    return status.data_bytes;
}

static inline uint64_t
metadata_bytes(void)
{
    pyr_status status;
    OK(pyr_store_status(store, &status, NULL, NULL));
    return status.metadata_bytes;
}

static inline uint8_t *
random_bytes(size_t n)
{
    rng r = rng_of(test_seed());
    uint8_t *bytes = malloc(n);
    REQUIRE(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)rng_next(&r);
    return bytes;
}

#endif
