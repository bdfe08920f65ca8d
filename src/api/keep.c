/*
 * api/keep.c - what is kept: forgetting, reclaiming, folding, accounts.
 */
#include "api/handle.h"

int
pyr_forget(pyr_array *array, pyr_version first, pyr_version last,
           uint64_t keep, unsigned flags, uint64_t *forgotten)
{
    uint64_t n;
    int err;
    if ((err = pyri_need(array, "pyr_forget", "array")) < 0 ||
        (err = pyri_need_writable(array->array->engine, "pyr_forget")) < 0)
        return err;
    if (flags & ~PYR_FORGET_TAGGED)
        return pyri_fail(PYR_EINVAL, "pyr_forget: unknown flags %#x", flags);
    return pyri_forget(array->array, first, last, keep, flags,
                       forgotten ? forgotten : &n);
}

int
pyr_reclaim(pyr_store *store, const pyr_progress *progress,
            pyr_reclaimed *out)
{
    pyr_reclaimed unasked;
    int err;
    if ((err = pyri_need(store, "pyr_reclaim", "store")) < 0 ||
        (err = pyri_need_writable(store->engine, "pyr_reclaim")) < 0)
        return err;
    return pyri_reclaim(store->engine, progress, out ? out : &unasked);
}

int
pyr_fold(pyr_store *store, const char *const *names, size_t n,
         const pyr_progress *progress, pyr_folded *out)
{
    pyr_folded unasked;
    int err;
    if ((err = pyri_need(store, "pyr_fold", "store")) < 0 ||
        (n && (err = pyri_need(names, "pyr_fold", "names")) < 0))
        return err;
    for (size_t i = 0; i < n; i++)
        if ((err = pyri_check_name(names[i], "an array")) < 0)
            return err;
    if ((err = pyri_need_writable(store->engine, "pyr_fold")) < 0)
        return err;
    return pyri_fold_newest(store->engine, names, n, progress,
                            out ? out : &unasked);
}

int
pyr_version_usage(pyr_array *array, pyr_version version, pyr_usage *out)
{
    int err;
    if ((err = pyri_need(array, "pyr_version_usage", "array")) < 0 ||
        (err = pyri_need(out, "pyr_version_usage", "out")) < 0)
        return err;
    return pyri_version_usage(array->array, version, out);
}
