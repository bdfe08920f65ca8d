/*
 * support/health.h - a store must be whole: nothing harmed, nothing left over.
 */
#ifndef SUPPORT_HEALTH_H
#define SUPPORT_HEALTH_H

#include "support/check.h"

#include <pyramid/pyramid.h>

static inline int
health_show(void *ctx, const pyr_harm *harm)
{
    (void)ctx;
    printf("# harm: array '%s', version %llu, %d axes: %s\n", harm->array,
           (unsigned long long)harm->version, harm->ndim, harm->what);
    return 0;
}

/* Reads every cell. `arrays` is how many there are. */
static inline void
check_health(pyr_store *store, uint64_t arrays)
{
    pyr_verified seen;
    pyr_verify_spec spec = {.deep = 1, .each = health_show};
    OK(pyr_verify(store, &spec, &seen));
    CHECK(seen.harms == 0);
    CHECK(seen.orphan_nodes == 0 && seen.orphan_blobs == 0);
    CHECK(seen.arrays == arrays);
}

#endif
