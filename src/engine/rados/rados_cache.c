/*
 * engine/rados/rados_cache.c - nodes read or written lately.
 *
 * Nodes never change, so what was read once need not be asked for again. One
 * that is erased or replaced through this store leaves; one that is erased by
 * others may stay, and is asked for by nobody, as nothing leads there. check()
 * empties it: what is verified comes from the cluster.
 */
#include "engine/rados/rados.h"

#include "base/hash.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 32 << 20, MOST_VALUE = 64 << 10 };

/* The lock is held. */
static void
empty_slot(pyri_cluster *s, pyri_cached *c)
{
    s->cached_bytes -= c->size;
    free(c->value);
    *c = (pyri_cached){.value = NULL};
}

static pyri_cached *
slot_of(pyri_cluster *s, pyri_digest name)
{
    return &s->cached[name.lo % PYRI_RADOS_CACHED];
}

static bool
is(const pyri_cached *c, pyri_digest name)
{
    return c->value && c->name.lo == name.lo && c->name.hi == name.hi;
}

int
pyri_rcache_get(pyri_cluster *s, pyri_reader *r, pyri_node_get *get)
{
    pyri_digest name = pyri_hash128(get->key.data, get->key.size);
    int err = 0;
    pthread_mutex_lock(&s->cache_lock);
    const pyri_cached *c = slot_of(s, name);
    if (is(c, name)) {
        err = pyri_rados_copy(r, (pyri_bytes){c->value, c->size}, &get->value);
        get->found = err == 0;
    }
    pthread_mutex_unlock(&s->cache_lock);
    return err;
}

void
pyri_rcache_put(pyri_cluster *s, pyri_bytes key, pyri_bytes value)
{
    if (value.size > MOST_VALUE)
        return;
    pyri_digest name = pyri_hash128(key.data, key.size);
    uint8_t *copy = pyri_sys_malloc(value.size + 1);
    if (!copy)
        return;
    if (value.size)
        memcpy(copy, value.data, value.size);
    pthread_mutex_lock(&s->cache_lock);
    pyri_cached *c = slot_of(s, name);
    empty_slot(s, c);
    if (s->cached_bytes + value.size <= MOST_BYTES) {
        *c = (pyri_cached){name, copy, value.size};
        s->cached_bytes += value.size;
        copy = NULL;
    }
    pthread_mutex_unlock(&s->cache_lock);
    free(copy);
}

void
pyri_rcache_drop(pyri_cluster *s, pyri_bytes key)
{
    pyri_digest name = pyri_hash128(key.data, key.size);
    pthread_mutex_lock(&s->cache_lock);
    pyri_cached *c = slot_of(s, name);
    if (is(c, name))
        empty_slot(s, c);
    pthread_mutex_unlock(&s->cache_lock);
}

void
pyri_rcache_clear(pyri_cluster *s)
{
    pthread_mutex_lock(&s->cache_lock);
    for (size_t i = 0; i < PYRI_RADOS_CACHED; i++)
        if (s->cached[i].value)
            empty_slot(s, &s->cached[i]);
    pthread_mutex_unlock(&s->cache_lock);
}
