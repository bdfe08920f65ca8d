/*
 * engine/mem/mem_map.c - ordered maps, and changes to them as one step.
 *
 * A map is a skip list. Level 0 links all entries in order of keys, and each
 * level above links about every fourth of the level below:
 *
 *   first[1] -----------> c -----------------> NULL
 *   first[0] --> a --> b --> c --> d --> e --> NULL
 *
 * An entry in a map never changes; another value is another entry in its
 * place. So a view of an entry is good for as long as the entry is not freed,
 * and to undo a change is to put the old entry back.
 */
#include "engine/mem/mem.h"

#include "base/hash.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

static int
compare(pyri_bytes a, pyri_bytes b)
{
    size_t n = a.size < b.size ? a.size : b.size;
    int order = n ? memcmp(a.data, b.data, n) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

static pyri_mem_entry *
entry_new(pyri_mem_map *map, pyri_bytes key, pyri_bytes value)
{
    uint64_t dice = pyri_hash64(&map->made, sizeof map->made);
    int height = 1;
    for (; height < PYRI_MEM_HEIGHT && (dice & 3) == 0; dice >>= 2)
        height++;
    size_t head = sizeof(pyri_mem_entry) +
                  (size_t)height * sizeof(pyri_mem_entry *);
    pyri_mem_entry *e = pyri_sys_calloc(1, head + value.size + key.size);
    if (!e)
        return NULL;
    map->made++;
    uint8_t *bytes = (uint8_t *)e + head;
    if (value.data && value.size)
        memcpy(bytes, value.data, value.size);
    if (key.size)
        memcpy(bytes + value.size, key.data, key.size);
    e->value = (pyri_bytes){bytes, value.size};
    e->key = (pyri_bytes){bytes + value.size, key.size};
    e->height = height;
    return e;
}

/* The first entry at or after `key`; links[i] is what points there, or past
 * there, on level i. */
static pyri_mem_entry *
descend(pyri_mem_map *map, pyri_bytes key,
        pyri_mem_entry **links[PYRI_MEM_HEIGHT])
{
    pyri_mem_entry **tower = map->first;
    for (int level = PYRI_MEM_HEIGHT - 1; level >= 0; level--) {
        while (tower[level] && compare(tower[level]->key, key) < 0)
            tower = tower[level]->next;
        links[level] = &tower[level];
    }
    return *links[0];
}

pyri_mem_entry *
pyri_mem_from(pyri_mem_map *map, pyri_bytes key)
{
    pyri_mem_entry **links[PYRI_MEM_HEIGHT];
    return descend(map, key, links);
}

pyri_mem_entry *
pyri_mem_find(pyri_mem_map *map, pyri_bytes key)
{
    pyri_mem_entry *e = pyri_mem_from(map, key);
    return e && compare(e->key, key) == 0 ? e : NULL;
}

/* Put `now` (NULL: nothing) in the place of what is under `key`; returns what
 * was there, or NULL. */
static pyri_mem_entry *
swap(pyri_mem_map *map, pyri_bytes key, pyri_mem_entry *now)
{
    pyri_mem_entry **links[PYRI_MEM_HEIGHT];
    pyri_mem_entry *was = descend(map, key, links);
    if (was && compare(was->key, key) != 0)
        was = NULL;
    if (was) {
        for (int i = 0; i < was->height; i++)
            *links[i] = was->next[i];
        map->bytes -= was->key.size + was->value.size;
    }
    if (now) {
        for (int i = 0; i < now->height; i++) {
            now->next[i] = *links[i];
            *links[i] = now;
        }
        map->bytes += now->key.size + now->value.size;
    }
    return was;
}

void
pyri_mem_map_fini(pyri_mem_map *map)
{
    for (pyri_mem_entry *e = map->first[0], *next; e; e = next) {
        next = e->next[0];
        free(e);
    }
    *map = (pyri_mem_map){0};
}

static bool
within(const pyri_mem_entry *e, pyri_bytes to)
{
    size_t n = e->key.size < to.size ? e->key.size : to.size;
    return n == 0 || memcmp(e->key.data, to.data, n) <= 0;
}

int
pyri_mem_range(pyri_mem_map *map, pyri_bytes from, pyri_bytes to,
               const pyri_mem_entry ***out, size_t *n)
{
    const pyri_mem_entry *first = pyri_mem_from(map, from);
    *n = 0;
    for (const pyri_mem_entry *e = first; e && within(e, to); e = e->next[0])
        (*n)++;
    *out = pyri_sys_malloc((*n + 1) * sizeof **out);
    if (!*out)
        return pyri_fail_nomem("a scan");
    const pyri_mem_entry *e = first;
    for (size_t i = 0; i < *n; i++, e = e->next[0])
        (*out)[i] = e;
    return 0;
}

/* --- batches ------------------------------------------------------------- */

int
pyri_mem_batch_begin(pyri_mem_batch *b, size_t most)
{
    *b = (pyri_mem_batch){pyri_sys_calloc(most + 1, sizeof *b->changes), 0};
    return b->changes ? 0 : pyri_fail_nomem("a batch of changes");
}

int
pyri_mem_batch_put(pyri_mem_batch *b, pyri_mem_map *map, pyri_bytes key,
                   pyri_bytes value)
{
    pyri_mem_entry *now = entry_new(map, key, value);
    if (!now)
        return pyri_fail_nomem("a value");
    b->changes[b->n++] = (pyri_mem_change){map, swap(map, key, now), now};
    return 0;
}

void
pyri_mem_batch_delete(pyri_mem_batch *b, pyri_mem_map *map, pyri_bytes key)
{
    pyri_mem_entry *was = swap(map, key, NULL);
    if (was)
        b->changes[b->n++] = (pyri_mem_change){map, was, NULL};
}

void
pyri_mem_batch_undo(pyri_mem_batch *b)
{
    while (b->n > 0) {
        pyri_mem_change *c = &b->changes[--b->n];
        swap(c->map, c->was ? c->was->key : c->now->key, c->was);
        free(c->now);
    }
    free(b->changes);
}

void
pyri_mem_batch_keep(pyri_mem_batch *b, pyri_mem_entry **graveyard)
{
    for (size_t i = 0; i < b->n; i++) {
        pyri_mem_entry *was = b->changes[i].was;
        if (was) {
            was->dead = *graveyard;
            *graveyard = was;
        }
    }
    free(b->changes);
}

void
pyri_mem_clear_graveyard(pyri_mem_entry **graveyard)
{
    for (pyri_mem_entry *e = *graveyard, *next; e; e = next) {
        next = e->dead;
        free(e);
    }
    *graveyard = NULL;
}
