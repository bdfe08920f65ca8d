/*
 * engine/mem/mem.h - inside the memory engine: its map and its store.
 */
#ifndef PYRI_ENGINE_MEM_MEM_H
#define PYRI_ENGINE_MEM_MEM_H

#include "engine/engine.h"

#include <pthread.h>

/* --- ordered maps (mem_map.c) -------------------------------------------- */

enum { PYRI_MEM_HEIGHT = 12 }; /* a quarter as many per level: 4^12 entries */

/* One key and value; neither changes once the entry is in a map. A lock of the
 * store guards the rest. */
typedef struct pyri_mem_entry {
    struct pyri_mem_entry *dead; /* the next one in the graveyard */
    pyri_bytes key, value;
    bool dying; /* erased, as soon as there are no readers */
    int height;
    struct pyri_mem_entry *next[]; /* one for each level, then the bytes */
} pyri_mem_entry;

/* A skip list, in order of keys. Zero-initialise. */
typedef struct pyri_mem_map {
    pyri_mem_entry *first[PYRI_MEM_HEIGHT];
    uint64_t made;  /* entries, ever: decides their heights */
    uint64_t bytes; /* in keys and values */
} pyri_mem_map;

void pyri_mem_map_fini(pyri_mem_map *map);

/* The first entry whose key is at least `key`; those after it are ->next[0]. */
pyri_mem_entry *pyri_mem_from(pyri_mem_map *map, pyri_bytes key);
/* The entry with that very key, or NULL. */
pyri_mem_entry *pyri_mem_find(pyri_mem_map *map, pyri_bytes key);

/* Gives the entries from `from` on, as long as their keys, cut to the size of
 * `to`, are not above it. From a prefix to the same one: all that begin so. */
int pyri_mem_range(pyri_mem_map *map, pyri_bytes from, pyri_bytes to,
                   const pyri_mem_entry ***out, size_t *n);

/* Changes to maps that happen all or not at all. Begin, make changes, then
 * undo or keep them. */
typedef struct pyri_mem_change {
    pyri_mem_map *map;
    pyri_mem_entry *was, *now; /* or NULL */
} pyri_mem_change;

typedef struct pyri_mem_batch {
    pyri_mem_change *changes;
    size_t n;
} pyri_mem_batch;

int pyri_mem_batch_begin(pyri_mem_batch *b, size_t most);
/* A NULL value.data makes zeros. */
int pyri_mem_batch_put(pyri_mem_batch *b, pyri_mem_map *map, pyri_bytes key,
                       pyri_bytes value);
void pyri_mem_batch_delete(pyri_mem_batch *b, pyri_mem_map *map,
                           pyri_bytes key);
void pyri_mem_batch_undo(pyri_mem_batch *b);
/* What was replaced goes to the graveyard. */
void pyri_mem_batch_keep(pyri_mem_batch *b, pyri_mem_entry **graveyard);
void pyri_mem_clear_graveyard(pyri_mem_entry **graveyard);

/* --- the store (mem.c) --------------------------------------------------- */

typedef struct pyri_mem_blob {
    uint8_t *data; /* NULL: it has gone */
    uint64_t size;
    bool named;    /* by a complete version: this one */
    bool dying;    /* as of entries */
    uint64_t array, version;
} pyri_mem_blob;

typedef struct pyri_mem_dying pyri_mem_dying; /* mem_upkeep.c */

typedef struct pyri_mem_store {
    char *name;                  /* "" for one that is not shared */
    struct pyri_mem_store *next; /* guarded by the lock of all stores, */
    unsigned handles;            /* as is this */
    pyr_durability durability;   /* as it was made; means nothing here */
    unsigned lease_ms;

    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t published;
    pyri_mem_map records, nodes;
    pyri_mem_map heads;   /* array -> pyri_mem_head, see mem_versions.c */
    pyri_mem_map history; /* array, version -> record of that version */
    pyri_mem_map forgotten; /* array, version -> nothing */
    pyri_mem_dying *dying;  /* goes when there are no readers */
    bool upkeep;            /* someone is at it */
    bool deciding;          /* on a fold: nothing is completed meanwhile */
    pthread_cond_t decided;
    pyri_mem_map folds;     /* family -> count */
    pyri_mem_blob *blobs;
    size_t nblobs, blob_room;
    uint64_t data_bytes;
    unsigned readers, writers;
    pyri_mem_entry *graveyard; /* replaced while there were readers */
} pyri_mem_store;

typedef struct pyri_mem {
    pyri_engine base;
    pyri_mem_store *store;
} pyri_mem;

static inline pyri_mem_store *
pyri_mem_store_of(pyri_engine *e)
{
    return ((pyri_mem *)e)->store;
}

/* End a batch: keep what it did if `err` is 0, else undo. Returns err. */
int pyri_mem_finish(pyri_mem_store *s, pyri_mem_batch *b, int err);

/* What begins with `prefix`, of one moment; `each` is called without the lock,
 * and may use the engine. */
int pyri_mem_scan(pyri_mem_store *s, pyri_mem_map *m, pyri_bytes prefix,
                  pyri_record_fn *each, void *ctx);

/* --- giving space back (mem_upkeep.c) ------------------------------------ */

int pyri_mem_forget(pyri_mem_store *s, pyri_mem_batch *b,
                    const pyri_edit *edit);
int pyri_mem_kept(pyri_mem_store *s, const pyri_edit *edit);
bool pyri_mem_is_forgotten(pyri_mem_store *s, uint64_t array,
                           uint64_t version);
/* Erase what waits for it, if there are no readers. */
void pyri_mem_bury(pyri_mem_store *s);

void pyri_mem_drop_blobs(pyri_engine *e, const pyri_blob *blobs, size_t n,
                         const pyri_blob *near, size_t nnear);
int pyri_mem_begin_upkeep(pyri_engine *e);
void pyri_mem_end_upkeep(pyri_engine *e);
int pyri_mem_scan_forgotten(pyri_engine *e, pyri_reader *r,
                            pyri_forgotten_fn *each, void *ctx);
int pyri_mem_erase(pyri_engine *e, pyri_erase *x);
int pyri_mem_settle(pyri_engine *e, pyri_settled *out);
int pyri_mem_scan_nodes(pyri_engine *e, pyri_reader *r, uint64_t array,
                        pyri_node_fn *each, void *ctx);
int pyri_mem_replace_nodes(pyri_engine *e, const pyri_node_put *puts,
                           size_t n);
int pyri_mem_scan_blobs(pyri_engine *e, pyri_reader *r, pyri_blob_fn *each,
                        void *ctx);
int pyri_mem_fold(pyri_engine *e, pyri_fold *f);
int pyri_mem_folds(pyri_engine *e, pyri_reader *r, uint64_t family,
                   uint64_t *out);
/* With the lock held, which is given up meanwhile: until nobody decides. */
void pyri_mem_fold_wait(pyri_mem_store *s);
/* PYR_ENOVERSION if the family was folded since the version's maker looked. */
int pyri_mem_fold_check(pyri_mem_store *s, const pyri_complete *c);

/* --- version managers (mem_versions.c) ----------------------------------- */

int pyri_mem_add_head(pyri_mem_store *s, pyri_mem_batch *b,
                      const pyri_edit *edit);
void pyri_mem_free_heads(pyri_mem_store *s);
uint64_t pyri_mem_in_flight(pyri_mem_store *s);
void pyri_mem_version_key(uint8_t key[16], uint64_t array, uint64_t version);
/* Newest published version; 0 if there is no such array. */
uint64_t pyri_mem_newest(pyri_mem_store *s, uint64_t array);

int pyri_mem_latest(pyri_engine *e, pyri_reader *r, uint64_t array,
                    uint64_t *version, uint64_t *shape);
int pyri_mem_take(pyri_engine *e, const pyri_take *take, pyri_ticket *ticket,
                  pyri_flights *below);
int pyri_mem_renew(pyri_engine *e, pyri_ticket *ticket);
int pyri_mem_flights(pyri_engine *e, uint64_t array, pyri_flights *out);
int pyri_mem_complete(pyri_engine *e, pyri_complete *c);
int pyri_mem_import(pyri_engine *e, pyri_complete *c);
int pyri_mem_wait(pyri_engine *e, uint64_t array, uint64_t version,
                  int timeout_ms);
int pyri_mem_get_version(pyri_engine *e, pyri_reader *r, uint64_t array,
                         uint64_t version, pyri_version_get *out);
int pyri_mem_scan_versions(pyri_engine *e, pyri_reader *r, uint64_t array,
                           uint64_t first, uint64_t last, pyri_version_fn *each,
                           void *ctx);

#endif
