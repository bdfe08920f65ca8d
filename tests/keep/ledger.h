/*
 * keep/ledger.h - everything that is stored, and everything that is needed:
 * they must be the same.
 *
 * What is needed is found by walking the whole tree of every version that is
 * there, one by one; nothing is shared with the code that erases.
 */
#ifndef KEEP_LEDGER_H
#define KEEP_LEDGER_H

#include "support/check.h"

#include "api/handle.h"
#include "base/hash.h"

#include <inttypes.h>

typedef struct ledger_set {
    pyri_digest *list;
    size_t n, room;
} ledger_set;

typedef struct ledger {
    pyri_engine *engine;
    pyri_reader *reader;
    pyri_array *array; /* that is looked at */
    ledger_set stored_nodes, stored_blobs, needed_nodes, needed_blobs;
    uint64_t bytes; /* stored */
} ledger;

static inline void
ledger_add(ledger_set *s, pyri_digest d)
{
    if (s->n == s->room) {
        s->room = s->room ? 2 * s->room : 1024;
        s->list = realloc(s->list, s->room * sizeof *s->list);
        REQUIRE(s->list);
    }
    s->list[s->n++] = d;
}

static inline int
ledger_compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(pyri_digest));
}

static inline void
ledger_sort(ledger_set *s)
{
    size_t kept = 0;
    if (s->n)
        qsort(s->list, s->n, sizeof *s->list, ledger_compare);
    for (size_t i = 0; i < s->n; i++)
        if (kept == 0 || ledger_compare(&s->list[kept - 1], &s->list[i]) != 0)
            s->list[kept++] = s->list[i];
    s->n = kept;
}

/* How many of a are not in b. */
static inline size_t
ledger_missing(const ledger_set *a, const ledger_set *b)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++)
        n += b->n == 0 || !bsearch(&a->list[i], b->list, b->n,
                                   sizeof *b->list, ledger_compare);
    return n;
}

/* --- what is stored ------------------------------------------------------ */

static inline int
ledger_node(void *ctx, pyri_bytes key, pyri_bytes value)
{
    ledger *l = ctx;
    ledger_add(&l->stored_nodes, pyri_hash128(key.data, key.size));
    l->bytes += key.size + value.size;
    return 0;
}

static inline int
ledger_blob(void *ctx, const pyri_blob *b, uint64_t array, uint64_t version)
{
    ledger *l = ctx;
    (void)array, (void)version;
    ledger_add(&l->stored_blobs, pyri_hash128(&b->ref, sizeof b->ref));
    l->bytes += b->size;
    return 0;
}

/* --- what is needed ------------------------------------------------------ */

static inline void
ledger_need(ledger *l, const pyri_tree *t, uint64_t label, int level,
            const uint64_t *pos)
{
    uint8_t key[PYRI_MAX_KEY];
    size_t n = pyri_node_key(pyri_lineage_owner(t->lineage, label), label,
                             level, t->grid->ndim, pos, key);
    ledger_add(&l->needed_nodes, pyri_hash128(key, n));
}

static inline void
ledger_leaf(ledger *l, const pyri_tree *t, const uint64_t *pos, uint64_t label)
{
    pyri_box chunk;
    pyri_grid_domain(t->grid, 0, pos, &chunk);
    while (label) {
        pyri_node node;
        pyri_leaf_walk w;
        OK(pyri_tree_get(t, label, 0, pos, &node));
        ledger_need(l, t, label, 0, pos);
        OK(pyri_leaf_begin(&node, t->grid->ndim, &chunk, &w));
        while (w.left) {
            pyri_frag f;
            OK(pyri_leaf_next(&w, &f));
            if (f.kind != PYRI_FRAG_SAME)
                ledger_add(&l->needed_blobs,
                           pyri_hash128(&(pyri_ref){f.ref[0], f.ref[1]},
                                        sizeof(pyri_ref)));
        }
        label = w.prev;
    }
}

static inline void
ledger_walk(ledger *l, const pyri_tree *t, int level, const uint64_t *pos,
            uint64_t label, int stored)
{
    uint64_t child[PYR_MAX_DIMS];
    pyri_node node;
    if (stored < level) {
        pyri_grid_child(t->grid, level, pos, 0, child);
        ledger_walk(l, t, level - 1, child, label, stored);
        return;
    }
    if (level == 0) {
        ledger_leaf(l, t, pos, label);
        return;
    }
    OK(pyri_tree_get(t, label, level, pos, &node));
    ledger_need(l, t, label, level, pos);
    for (unsigned slot = 0; slot < PYRI_FAN; slot++) {
        uint64_t below;
        int at;
        if (!(node.slots >> slot & 1))
            continue;
        OK(pyri_node_child(&node, slot, &below, &at));
        pyri_grid_child(t->grid, level, pos, slot, child);
        ledger_walk(l, t, level - 1, child, below, at);
    }
}

static inline int
ledger_version(void *ctx, uint64_t label, const pyri_version_get *v)
{
    ledger *l = ctx;
    uint64_t pos[PYR_MAX_DIMS] = {0};
    pyri_snapshot s;
    (void)v;
    OK(pyri_snapshot_open_label(l->array, l->reader, label, &s));
    if (s.tree.root)
        ledger_walk(l, &s.tree, s.grid.levels, pos, s.tree.root,
                    s.tree.root_level);
    pyri_snapshot_close(&s);
    return 0;
}

static inline int
ledger_array(void *ctx, const char *name)
{
    ledger *l = ctx;
    uint64_t latest;
    OK(pyri_array_open(l->engine, name, &l->array));
    OK(pyri_engine_scan_nodes(l->engine, l->reader, l->array->id, ledger_node,
                              l));
    OK(pyri_engine_latest(l->engine, l->reader, l->array->id, &latest, NULL));
    if (latest > l->array->first)
        OK(pyri_engine_scan_versions(l->engine, l->reader, l->array->id,
                                     l->array->first + 1, latest,
                                     ledger_version, l));
    pyri_array_close(l->array);
    return 0;
}

/* --- both ---------------------------------------------------------------- */

/* Of an idle store: nothing is stored that no version needs, and all that
 * they need is. Returns the bytes of nodes and blobs. */
static inline uint64_t
ledger_check(pyr_store *store)
{
    ledger l = {.engine = store->engine};
    OK(pyri_engine_begin(l.engine, &l.reader));
    OK(pyri_array_list(l.engine, ledger_array, &l));
    OK(pyri_engine_scan_blobs(l.engine, l.reader, ledger_blob, &l));
    pyri_engine_end(l.engine, l.reader);
    ledger_set *sets[] = {&l.stored_nodes, &l.needed_nodes, &l.stored_blobs,
                          &l.needed_blobs};
    for (int i = 0; i < 4; i++)
        ledger_sort(sets[i]);
    size_t orphan_nodes = ledger_missing(sets[0], sets[1]);
    size_t lost_nodes = ledger_missing(sets[1], sets[0]);
    size_t orphan_blobs = ledger_missing(sets[2], sets[3]);
    size_t lost_blobs = ledger_missing(sets[3], sets[2]);
    if (orphan_nodes + lost_nodes + orphan_blobs + lost_blobs)
        CHECK_NOTE("%zu nodes and %zu blobs are orphans, %zu and %zu are lost",
                   orphan_nodes, orphan_blobs, lost_nodes, lost_blobs);
    for (int i = 0; i < 4; i++)
        free(sets[i]->list);
    return l.bytes;
}

#endif
