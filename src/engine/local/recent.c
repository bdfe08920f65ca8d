/*
 * engine/local/recent.c - nodes that a reader got lately.
 *
 * A node is found in LMDB by way of three or four pages, and the nodes of a
 * late snapshot are on as many pages as there are versions that made them. Who
 * reads one snapshot box by box comes by the same nodes again and again; so a
 * reader keeps copies of them, side by side. It belongs to one thread at a
 * time, so there is no lock.
 *
 * Nodes do not change, but for two steps that put others in their place
 * (folding and repairing) and are counted in the metadata. A reader that sees
 * another count than last time drops all it has (nodes.c). Nodes that were
 * erased may stay: nothing leads to them.
 *
 * There are two halves, each a table and the bytes that it leads to. What is
 * kept goes into the first one. When that is full, they change places before
 * the reader begins anew, and the old one is emptied; what is found in the
 * second is taken along to the first. So nothing moves while a reader is
 * shown it, and what is not asked for goes by itself.
 *
 *     table of a half    hash of the key -> WAYS marks, places of the copies
 *     bytes of a half    key's size (2), value's size (4), 0 (2), key, 0...,
 *                        value; each on a multiple of 8
 *
 * A node is copied when it is offered for the second time: the first time only
 * its mark is noted. Who writes version after version gets each node once.
 */
#include "engine/local/recent.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = 8192,
    WAYS = 4, /* slots that a key may be in: so that few drive others out */
    ROOM = 2 << 20,  /* bytes of a half */
    MOST = 64 << 10, /* of a node that is kept */
    HEAD = 8
};

typedef struct place {
    uint32_t mark; /* of a key; 0: none */
    uint32_t at;   /* behind the copy's head; 0: it was only offered */
} place;

typedef struct half {
    place table[SLOTS];
    uint8_t *bytes; /* NULL until one is kept */
    size_t used;
} half;

struct pyri_recent {
    half halves[2];
    unsigned first; /* of them */
    unsigned next;  /* way to give up when all of them are taken */
    bool full;
    uint64_t mark;
};

pyri_recent *
pyri_recent_new(void)
{
    return pyri_sys_calloc(1, sizeof(pyri_recent));
}

void
pyri_recent_free(pyri_recent *c)
{
    for (int i = 0; c && i < 2; i++)
        free(c->halves[i].bytes);
    free(c);
}

static void
empty(half *h)
{
    memset(h->table, 0, sizeof h->table);
    h->used = 0;
}

void
pyri_recent_begin(pyri_recent *c, uint64_t mark)
{
    if (c->mark != mark) {
        empty(&c->halves[0]);
        empty(&c->halves[1]);
    } else if (c->full) {
        c->first = !c->first;
        empty(&c->halves[c->first]);
    } else {
        return;
    }
    c->mark = mark;
    c->full = false;
}

static size_t
round_up(size_t size)
{
    return (size + 7) / 8 * 8;
}

/* The first of its places in the table, and what it is known by there. */
static place *
find(half *h, uint64_t hash, uint32_t *mark)
{
    *mark = (uint32_t)hash | 1;
    return &h->table[(hash >> 32 & (SLOTS - 1)) / WAYS * WAYS];
}

static bool
is_at(const half *h, const place *p, uint32_t mark, pyri_bytes key)
{
    if (p->mark != mark || p->at == 0)
        return false;
    const uint8_t *at = h->bytes + p->at;
    return pyri_load16(at - HEAD) == key.size &&
           memcmp(at, key.data, key.size) == 0;
}

/* Where it is; NULL: nowhere. */
static const place *
copy_of(half *h, uint64_t hash, pyri_bytes key)
{
    uint32_t mark;
    const place *p = find(h, hash, &mark);
    for (int i = 0; i < WAYS; i++)
        if (is_at(h, &p[i], mark, key))
            return &p[i];
    return NULL;
}

/* Its place, or the one that it is to have: one that nobody has; else that of
 * one that was only offered; else that of another copy, whose bytes stay where
 * they are. */
static place *
place_for(pyri_recent *c, half *h, uint64_t hash, uint32_t *mark)
{
    place *p = find(h, hash, mark), *best = &p[c->next++ % WAYS];
    for (int i = 0; i < WAYS; i++) {
        if (p[i].mark == *mark)
            return &p[i];
        if (best->mark != 0 && p[i].at == 0 &&
            (p[i].mark == 0 || best->at != 0))
            best = &p[i];
    }
    return best;
}

static pyri_bytes
value_at(const half *h, const place *p)
{
    const uint8_t *at = h->bytes + p->at;
    return (pyri_bytes){at + round_up(pyri_load16(at - HEAD)),
                        pyri_load32(at - HEAD + 2)};
}

static bool
copy_in(half *h, place *p, pyri_bytes key, pyri_bytes value)
{
    size_t size = HEAD + round_up(key.size) + round_up(value.size);
    if (!h->bytes && !(h->bytes = pyri_sys_malloc(ROOM)))
        return false;
    if (h->used + size > ROOM)
        return false;
    uint8_t *at = h->bytes + h->used;
    pyri_store16(at, (uint16_t)key.size);
    pyri_store32(at + 2, (uint32_t)value.size);
    memcpy(at + HEAD, key.data, key.size);
    memcpy(at + HEAD + round_up(key.size), value.data, value.size);
    p->at = (uint32_t)(h->used + HEAD);
    h->used += size;
    return true;
}

bool
pyri_recent_get(pyri_recent *c, pyri_bytes key, pyri_bytes *value)
{
    half *first = &c->halves[c->first], *second = &c->halves[!c->first];
    uint64_t hash = pyri_hash64(key.data, key.size);
    uint32_t mark;
    const place *p = copy_of(first, hash, key);
    if (p) {
        *value = value_at(first, p);
        return true;
    }
    if (!(p = copy_of(second, hash, key)))
        return false;
    *value = value_at(second, p);
    place *to = place_for(c, first, hash, &mark);
    if (copy_in(first, to, key, *value))
        to->mark = mark;
    else
        c->full = true;
    return true;
}

void
pyri_recent_offer(pyri_recent *c, pyri_bytes key, pyri_bytes value)
{
    half *first = &c->halves[c->first];
    uint32_t mark;
    if (key.size == 0 || key.size > PYRI_MAX_KEY || value.size > MOST)
        return;
    place *p = place_for(c, first, pyri_hash64(key.data, key.size), &mark);
    if (p->mark != mark)
        *p = (place){mark, 0};
    else if (p->at == 0 && !copy_in(first, p, key, value))
        c->full = true;
}
