/*
 * array/keys.c - the keys of the catalog's records.
 */
#include "array/keys.h"

#include "base/bytes.h"

#include <stdio.h>
#include <string.h>

pyri_bytes
pyri_key_bytes(const pyri_key *k)
{
    return (pyri_bytes){k->bytes, k->size};
}

pyri_key
pyri_key_name(const char *name)
{
    pyri_key k;
    k.size = (size_t)snprintf((char *)k.bytes, sizeof k.bytes, "name/%s", name);
    return k;
}

pyri_key
pyri_key_id(const char *kind, uint64_t id)
{
    pyri_key k;
    size_t n = strlen(kind);
    memcpy(k.bytes, kind, n);
    pyri_store64_be(k.bytes + n, id);
    k.size = n + 8;
    return k;
}

pyri_key
pyri_key_tag(uint64_t id, const char *tag)
{
    pyri_key k = pyri_key_id("tag/", id);
    size_t n = strlen(tag);
    k.bytes[k.size++] = '/';
    memcpy(k.bytes + k.size, tag, n);
    k.size += n;
    return k;
}

/* The name that follows `skip` bytes of a key; false if it cannot be one. */
bool
pyri_key_rest(pyri_bytes k, size_t skip, char out[PYR_MAX_NAME + 1])
{
    const char *name = (const char *)k.data + skip;
    if (k.size <= skip || k.size - skip > PYR_MAX_NAME ||
        memchr(name, 0, k.size - skip))
        return false;
    memcpy(out, name, k.size - skip);
    out[k.size - skip] = 0;
    return true;
}

pyri_key
pyri_key_child(uint64_t parent, uint64_t child)
{
    pyri_key k = pyri_key_id("child/", parent);
    k.bytes[k.size++] = '/';
    pyri_store64_be(k.bytes + k.size, child);
    k.size += 8;
    return k;
}

pyri_edit
pyri_edit_kept(const pyri_array *a, uint64_t label, pyri_key *k)
{
    if (label == a->first) { /* ours for as long as we have not said so */
        *k = pyri_key_id("gone/", a->id);
        return (pyri_edit){.kind = PYRI_EDIT_SAME, .key = pyri_key_bytes(k)};
    }
    return (pyri_edit){.kind = PYRI_EDIT_KEPT,
                       .array = pyri_lineage_owner(&a->schema.lineage, label),
                       .version = label};
}

int
pyri_fail_kept(const pyri_array *a, uint64_t label, int err)
{
    if (err != PYR_EFENCED && err != PYR_ENOVERSION)
        return err;
    return pyri_fail(PYR_ENOVERSION, "version %llu of array '%s' was forgotten",
                     (unsigned long long)(label - a->first), a->name);
}
