/*
 * api/open.c - stores: open, list, look after.
 */
#include "api/handle.h"

#include "base/sys.h"

#include <stdlib.h>

int
pyr_open_with(const char *url, unsigned flags,
              const pyr_store_options *options, pyr_store **store)
{
    static const pyr_store_options defaults;
    int err = pyri_need(store, "pyr_open", "store");
    if (err < 0)
        return err;
    *store = NULL;
    if ((err = pyri_need(url, "pyr_open", "url")) < 0)
        return err;
    if (options && options->kernels && *options->kernels &&
        *options->kernels != '/')
        return pyri_fail(PYR_EINVAL, "the directory of kernels, '%s', is no "
                                     "absolute path",
                         options->kernels);
    pyr_store *s = pyri_sys_calloc(1, sizeof *s);
    if (!s)
        return pyri_fail_nomem("a store");
    err = pyri_engine_open(url, flags & ~PYR_OPEN_NO_UPKEEP,
                           options ? options : &defaults, &s->engine);
    if (err == 0 && !(flags & PYR_OPEN_NO_UPKEEP))
        err = pyri_tidy_new(s->engine, &s->tidy);
    if (err < 0)
        pyr_close(s);
    else
        *store = s;
    return err;
}

int
pyr_open(const char *url, unsigned flags, pyr_store **store)
{
    return pyr_open_with(url, flags, NULL, store);
}

void
pyr_close(pyr_store *store)
{
    if (!store)
        return;
    pyri_tidy_free(store->tidy);
    pyri_engine_close(store->engine);
    free(store);
}

int
pyr_arrays(pyr_store *store, pyr_name_fn *each, void *ctx)
{
    int err = pyri_need(store, "pyr_arrays", "store");
    if (err == 0 && !each)
        err = pyri_need(NULL, "pyr_arrays", "each");
    return err < 0 ? err : pyri_array_list(store->engine, each, ctx);
}

static int
count_name(void *ctx, const char *name)
{
    (void)name;
    ++*(uint64_t *)ctx;
    return 0;
}

int
pyr_store_status(pyr_store *store, pyr_status *out, pyr_data_dir_fn *each,
                 void *ctx)
{
    int err = pyri_need(store, "pyr_store_status", "store");
    if (err < 0 || (err = pyri_need(out, "pyr_store_status", "out")) < 0)
        return err;
    *out = (pyr_status){0};
    err = pyri_engine_status(store->engine, out, each, ctx);
    return err ? err : pyri_array_list(store->engine, count_name, &out->arrays);
}
