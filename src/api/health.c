/*
 * api/health.c - verifying, repairing, digests.
 */
#include "api/handle.h"

#include "base/bytes.h"

int
pyr_verify(pyr_store *store, const pyr_verify_spec *spec, pyr_verified *out)
{
    int err = pyri_need(store, "pyr_verify", "store");
    return err < 0 ? err : pyri_verify(store->engine, spec, out);
}

int
pyr_repair(pyr_store *store, const pyr_verify_spec *spec, pyr_repaired *out)
{
    int err;
    if ((err = pyri_need(store, "pyr_repair", "store")) < 0 ||
        (err = pyri_need_writable(store->engine, "pyr_repair")) < 0)
        return err;
    return pyri_repair(store->engine, spec, out);
}

int
pyr_digest(pyr_array *array, pyr_version version, unsigned char digest[16],
           int *known)
{
    pyri_digest d;
    bool is_known;
    int err;
    if ((err = pyri_need(array, "pyr_digest", "array")) < 0 ||
        (err = pyri_need(digest, "pyr_digest", "digest")) < 0 ||
        (err = pyri_need(known, "pyr_digest", "known")) < 0)
        return err;
    err = pyri_snapshot_digest(array->array, version, &d, &is_known);
    if (err < 0)
        return err;
    pyri_store64(digest, d.lo);
    pyri_store64(digest + 8, d.hi);
    *known = is_known;
    return 0;
}
