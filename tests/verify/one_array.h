/*
 * verify/one_array.h - a store with one array, "t", that a test closes, changes
 * behind its back and opens again.
 */
#ifndef PYR_TEST_ONE_ARRAY_H
#define PYR_TEST_ONE_ARRAY_H

#include "support/check.h"
#include "support/tmp_store.h"

#include <pyramid/pyramid.h>

static char path[4096];
static pyr_store *store;
static pyr_array *array;

static void
shut(void)
{
    pyr_array_close(array);
    pyr_close(store);
    array = NULL;
    store = NULL;
}

static void
reopen(void)
{
    OK(pyr_open(path, PYR_OPEN_NO_UPKEEP, &store));
    OK(pyr_array_open(store, "t", &array));
}

static void
tear_down(void)
{
    shut();
    tmp_remove(path);
}

#endif
