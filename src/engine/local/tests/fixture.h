/*
 * engine/local/tests/fixture.h - stores to test the embedded engine on, and
 * short words for what is done to them.
 */
#ifndef PYRI_ENGINE_LOCAL_TESTS_FIXTURE_H
#define PYRI_ENGINE_LOCAL_TESTS_FIXTURE_H

#include "base/bytes.h"
#include "engine/engines.h"
#include "support/check.h"
#include "support/tmp_store.h"

enum { ARRAY = 7 };

static const uint64_t fixture_shape[2] = {10, 20};

static inline pyri_engine *
open_at(const char *path, unsigned flags, pyr_durability durability)
{
    pyri_engine *e;
    pyr_store_options options = {.durability = durability,
                                 .lease_ms = 3600000};
    OK(pyri_engine_local.open(path, flags, &options, &e));
    return e;
}

static inline pyri_engine *
open_store(const char *path)
{
    return open_at(path, PYR_OPEN_CREATE, PYR_DURABILITY_OS);
}

/* One where blobs up to 64 KiB are stored with their version. */
static inline pyri_engine *
open_synced(const char *path)
{
    return open_at(path, PYR_OPEN_CREATE, PYR_DURABILITY_COMMIT);
}

static inline void
make_array(pyri_engine *e)
{
    pyri_edit edit = {.kind = PYRI_EDIT_ARRAY, .array = ARRAY, .ndim = 2,
                      .shape = fixture_shape};
    OK(pyri_engine_edit(e, &edit, 1));
}

static inline pyri_ticket
take_one(pyri_engine *e)
{
    pyri_take take = {.array = ARRAY, .claim = {"claim", 5}, .grow_axis = -1};
    pyri_ticket ticket;
    pyri_flights below = {0};
    OK(pyri_engine_take(e, &take, &ticket, &below));
    pyri_flights_fini(&below);
    return ticket;
}

/* Completes with one node, whose value is the version. */
static inline int
complete_one(pyri_engine *e, const pyri_ticket *t)
{
    uint8_t key[20] = {0}, value[8];
    pyri_store64_be(key, t->array);
    pyri_store64_be(key + 8, t->version);
    pyri_store64(value, t->version);
    pyri_node_put node = {{key, sizeof key}, {value, sizeof value}};
    pyri_complete c = {.array = t->array, .version = t->version,
                       .shape = t->shape, .nodes = &node, .nnodes = 1,
                       .record = {"record", 6}};
    return pyri_engine_complete(e, &c);
}

static inline uint64_t
latest_of(pyri_engine *e)
{
    pyri_reader *r;
    uint64_t version = UINT64_MAX;
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_latest(e, r, ARRAY, &version, NULL));
    pyri_engine_end(e, r);
    return version;
}

static inline bool
has_node_of(pyri_engine *e, uint64_t version)
{
    uint8_t key[20] = {0};
    pyri_reader *r;
    pyri_store64_be(key, ARRAY);
    pyri_store64_be(key + 8, version);
    pyri_node_get get = {.key = {key, sizeof key}};
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_get_nodes(e, r, &get, 1));
    pyri_engine_end(e, r);
    return get.found;
}

static inline int
put_bytes(pyri_engine *e, const void *data, size_t size, bool aligned,
          pyri_ref *ref)
{
    struct iovec iov = {(void *)(uintptr_t)data, size};
    pyri_blob_put put = {.iov = &iov, .niov = 1, .size = size,
                         .aligned = aligned};
    int err = pyri_engine_put_blobs(e, &put, 1);
    *ref = put.ref;
    return err;
}

/* Does the blob hold these bytes? */
static inline bool
holds(pyri_engine *e, pyri_ref ref, const void *data, size_t size)
{
    pyri_reader *r;
    pyri_blob_get get = {.ref = ref, .size = size};
    OK(pyri_engine_begin(e, &r));
    OK(pyri_engine_get_blobs(e, r, &get, 1));
    bool same = memcmp(get.data, data, size) == 0;
    pyri_engine_end(e, r);
    return same;
}

/* PATH/name; lives until the next call but three. */
static inline const char *
inside(const char *path, const char *name)
{
    static char out[4][PATH_MAX];
    static unsigned next;
    char *at = out[next++ % 4];
    snprintf(at, PATH_MAX, "%.2000s/%.2000s", path, name);
    return at;
}

#endif
