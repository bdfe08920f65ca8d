/*
 * engine/rados/rados.h - inside the Ceph engine: what its files share.
 *
 * Objects of a store, all in one namespace of one pool:
 *
 *   pyramid         the catalog: marker, names, sessions, transactions
 *   h.ARRAY         the head of an array: its version manager and records
 *   n.ARRAY.BUCKET  nodes of 64 versions that have few nodes each
 *   w.ARRAY.VERSION.SHARDS.SHARD  nodes of a version that has many
 *   b.NUMBER[.PART] a blob, and blobs that were computed from it there
 *   pyramid.tally   how many bytes of cells functions ran on, and where
 *   l.NUMBER        which of 4096 blobs in a row are named, and by what
 */
#ifndef PYRI_ENGINE_RADOS_RADOS_H
#define PYRI_ENGINE_RADOS_RADOS_H

#include "base/hash.h"
#include "cls/wire.h"
#include "engine/engine.h"
#include "engine/rados/rados_lib.h"

#include <pthread.h>
#include <sys/types.h>

enum {
    PYRI_RADOS_OID = 96,
    PYRI_RADOS_NAME = 256 /* of pools, namespaces, users */
};

typedef struct pyri_cluster pyri_cluster;

/* --- calls (calls.c) ----------------------------------------------------- */

/* One call of a class method, or the removal of an object. */
typedef struct pyri_call {
    char oid[PYRI_RADOS_OID];
    const char *method; /* NULL: remove the object */
    bool writes;
    pyri_buf in;
    int result;         /* 0 or a negative errno */
    pyri_cursor answer; /* views `out` */

    char small[128]; /* answers of methods that write */
    char *out;       /* others' */
    size_t size;
    int unused;
    rados_read_op_t op;
    rados_completion_t done;
} pyri_call;

void pyri_call_begin(pyri_call *c, const char *method, bool writes,
                     const char *oid);
void pyri_call_fini(pyri_call *c);
/* Run all at once, and wait. Fails only if a call could not be made; what came
 * of each is its result. */
int pyri_calls_run(pyri_cluster *s, pyri_call *calls, size_t n);
/* One call; its result is the failure. */
int pyri_call_run(pyri_cluster *s, pyri_call *c);

/* A list of calls that grows. */
typedef struct pyri_calls {
    pyri_call *list;
    size_t n, room;
} pyri_calls;

pyri_call *pyri_calls_add(pyri_calls *c, const char *method, bool writes,
                          const char *oid); /* or NULL: no memory */
void pyri_calls_fini(pyri_calls *c);

/* The code that stands for an errno of Ceph or of the class. */
int pyri_rados_fail(const pyri_cluster *s, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* An answer that makes no sense. */
int pyri_rados_garbled(const pyri_call *c);

void pyri_rados_head_oid(char oid[PYRI_RADOS_OID], uint64_t array);
#define PYRI_RADOS_CATALOG "pyramid"
#define PYRI_RADOS_TALLY "pyramid.tally"

/* --- readers ------------------------------------------------------------- */

struct pyri_reader {
    pyri_cluster *site;
    pyri_reader *next, *prev;
    uint64_t began; /* erasures before it are not seen */
    uint64_t array, latest; /* the newest version that it was told of, */
    pyri_version_get told;  /* and what there is of it */
    struct pyri_rados_block *blocks;
};

/* Memory that lives as long as the reader. */
void *pyri_rados_keep(pyri_reader *r, size_t size);
/* A copy of bytes in it; also of none. */
int pyri_rados_copy(pyri_reader *r, pyri_bytes from, pyri_bytes *to);
void pyri_rados_free_blocks(pyri_reader *r);

/* --- the site: a store as this process has it open ------------------------ */

/* A blob that was put and is not yet named. */
typedef struct pyri_runnamed {
    struct pyri_runnamed *next;
    uint64_t number, size;
    uint64_t home; /* ref.b of one that was computed, else 0 */
    int pending; /* writes under way */
    int err;     /* errno of one that failed */
    pyri_cluster *site;
} pyri_runnamed;

/* By which right a version is completed: see cls/heads.c. */
typedef struct pyri_turn {
    uint32_t epoch;
    bool contested;
} pyri_turn;

/* A version that this process took. */
typedef struct pyri_rheld {
    struct pyri_rheld *next;
    uint64_t array, version;
    pyri_turn turn;
    bool used; /* completing it was tried: the next try is another's */
} pyri_rheld;

typedef struct pyri_rerased {
    uint64_t array, version, when;
    uint8_t *record;
    size_t size;
} pyri_rerased;

typedef struct pyri_rlimbo {
    uint64_t array, id, when, bytes;
    bool headless; /* its list is in the catalog */
} pyri_rlimbo;

/* A node, by the hash of its key. */
typedef struct pyri_cached {
    pyri_digest name;
    uint8_t *value; /* NULL: nothing is here */
    size_t size;
} pyri_cached;

enum {
    PYRI_RADOS_BUCKETS = 4096,
    PYRI_RADOS_AXES = 256,
    PYRI_RADOS_TIERS = 3,
    PYRI_RADOS_CACHED = 16384
};

struct pyri_cluster {
    pyri_cluster *next; /* guarded by the lock of all sites, as are */
    unsigned handles;
    char *url;
    pid_t pid;

    rados_t cluster;
    rados_ioctx_t io;
    char pool[PYRI_RADOS_NAME], space[PYRI_RADOS_NAME], user[PYRI_RADOS_NAME];
    pyr_durability durability;
    unsigned lease_ms;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed; /* a put ended, a version was published */
    pyri_reader *readers;
    uint64_t clock; /* counts erasures */
    pyri_rerased *erased;
    size_t nerased, erased_room;
    pyri_rlimbo *limbo;
    size_t nlimbo, limbo_room;
    pyri_digest *dying;  /* what waits in limbo, to be counted once */
    size_t ndying, dying_room;

    pyri_runnamed *unnamed[PYRI_RADOS_BUCKETS];
    uint64_t unnamed_bytes;
    unsigned under_way; /* puts */
    uint64_t under_way_bytes;
    pyri_rheld *held[256];
    uint8_t tiers[4096]; /* of versions, by hash: 1 + tier, 0 unknown */
    uint64_t tier_of[4096];
    uint64_t axes_of[PYRI_RADOS_AXES]; /* arrays, by hash: how many axes */
    uint8_t axes[PYRI_RADOS_AXES];

    pthread_mutex_t cache_lock; /* guards these two */
    pyri_cached *cached;
    size_t cached_bytes;

    uint64_t there, here; /* bytes of cells, not yet told to the cluster */
    int64_t told;         /* when it was */

    unsigned writers;
    uint64_t session; /* 0: none */
    uint64_t used;    /* blobs that it has put */
    uint64_t noted;   /* how many the catalog knows of */
    bool upkeep;
    uint8_t upkeep_id[PYRI_CLS_ID];

    pthread_t keeper; /* renews what has to be renewed */
    bool kept, stop;
    pthread_cond_t ring;
};

typedef struct pyri_rados {
    pyri_engine base;
    pyri_cluster *site;
    bool upkeep; /* begun through this handle */
} pyri_rados;

static inline pyri_cluster *
pyri_cluster_of(pyri_engine *e)
{
    return ((pyri_rados *)e)->site;
}

/* PYR_EINVAL in a child of the process that opened the store. */
int pyri_cluster_check(const pyri_cluster *s);
int pyri_cluster_open(const char *rest, unsigned flags,
                   const pyr_store_options *options, pyri_cluster **out);
void pyri_cluster_close(pyri_cluster *s);
int64_t pyri_rados_now(void);
/* Wait for a change, at most so long; the lock is held. */
void pyri_cluster_wait(pyri_cluster *s, int ms);
void pyri_cluster_sleep(int ms);
/* See to it that the thread runs that renews. */
int pyri_cluster_keep(pyri_cluster *s);
int pyri_rados_random(void *to, size_t size);

/* --- sessions and upkeep (sessions.c) ------------------------------------ */

int pyri_session_begin(pyri_cluster *s);
/* A random id that begins with the number of the session. */
int pyri_session_id(pyri_cluster *s, uint8_t id[PYRI_CLS_ID]);
/* A number for a blob. */
int pyri_session_number(pyri_cluster *s, uint64_t *out);
/* At the end of the last writer: give back what was never named. */
void pyri_session_end(pyri_cluster *s);
void pyri_session_renew(pyri_cluster *s); /* by the keeper */
/* Clear away what sessions that died have left. One that took a version of
 * these arrays which is still to be completed has to wait: who does that wants
 * to know of it. */
int pyri_sessions_sweep(pyri_cluster *s, const uint64_t *arrays, size_t n,
                        pyri_settled *out);
int pyri_rados_begin_upkeep(pyri_engine *e);
void pyri_rados_end_upkeep(pyri_engine *e);
void pyri_upkeep_renew(pyri_cluster *s);
uint64_t pyri_sessions_alive(pyri_cluster *s);
/* How many blobs it may have put; 0 if it has ended. */
int pyri_session_used(pyri_cluster *s, uint64_t number, uint64_t *used);
/* Which of these sessions belong to a process that lives? */
int pyri_sessions_there(pyri_cluster *s, const uint64_t *numbers, size_t n,
                        bool *there);
/* Has the process ended that made this id, by pyri_session_id()? */
int pyri_session_ended(pyri_cluster *s, const uint8_t id[PYRI_CLS_ID],
                       bool *ended);

enum { PYRI_WHEREABOUTS = 28 };
/* What tells this process from all others; false if the system does not say. */
bool pyri_whereabouts_own(uint8_t out[PYRI_WHEREABOUTS]);
/* Has that process ended, certainly? */
bool pyri_whereabouts_gone(pyri_bytes of);

/* --- records (rados_records.c, rados_edit.c) ----------------------------- */

/* Where a record is: in the head of an array, or in the catalog. */
typedef struct pyri_home {
    bool head;
    uint64_t array;
} pyri_home;

pyri_home pyri_rados_home(pyri_bytes key);
int pyri_rados_get_record(pyri_engine *e, pyri_reader *r, pyri_bytes key,
                          pyri_bytes *value, bool *found);
int pyri_rados_scan_records(pyri_engine *e, pyri_reader *r, pyri_bytes prefix,
                            pyri_record_fn *each, void *ctx);
int pyri_rados_edit(pyri_engine *e, const pyri_edit *edits, size_t n);
/* Finish or undo what others began and did not end. */
int pyri_rados_settle_edits(pyri_cluster *s);
/* Gives the ids of all arrays, in order. */
int pyri_rados_heads(pyri_cluster *s, uint64_t **out, size_t *n);

/* --- versions (rados_versions.c, rados_history.c) ------------------------ */

int pyri_rados_latest(pyri_engine *e, pyri_reader *r, uint64_t array,
                      uint64_t *version, uint64_t *shape);
int pyri_rados_marked(pyri_engine *e, pyri_reader *r, uint64_t array,
                      uint64_t *version, uint64_t *shape, uint64_t *mark);
int pyri_rados_take(pyri_engine *e, const pyri_take *take, pyri_ticket *ticket,
                    pyri_flights *below);
int pyri_rados_renew(pyri_engine *e, pyri_ticket *ticket);
int pyri_rados_flights(pyri_engine *e, uint64_t array, pyri_flights *out);
int pyri_rados_complete(pyri_engine *e, pyri_complete *c);
int pyri_rados_import(pyri_engine *e, pyri_complete *c);
int pyri_rados_wait(pyri_engine *e, uint64_t array, uint64_t version,
                    int timeout_ms);
int pyri_rados_get_version(pyri_engine *e, pyri_reader *r, uint64_t array,
                           uint64_t version, pyri_version_get *out);
int pyri_rados_scan_versions(pyri_engine *e, pyri_reader *r, uint64_t array,
                             uint64_t first, uint64_t last,
                             pyri_version_fn *each, void *ctx);
int pyri_rados_scan_forgotten(pyri_engine *e, pyri_reader *r,
                              pyri_forgotten_fn *each, void *ctx);
/* The reader was told of the newest version, and of its record: who asks for
 * that through it is not sent there again. */
int pyri_rados_note_latest(pyri_reader *r, uint64_t array, uint64_t version,
                           pyri_cursor *c);
int pyri_rados_in_flight(pyri_cluster *s, uint64_t *out);
/* Sets any[i] if sessions[i] took a version that is not complete. */
int pyri_rados_takers(pyri_cluster *s, uint64_t array, const uint64_t *sessions,
                      size_t n, bool *any);

/* --- nodes (rados_nodes.c) ----------------------------------------------- */

int pyri_rados_get_nodes(pyri_engine *e, pyri_reader *r, pyri_node_get *gets,
                         size_t n);
int pyri_rados_replace_nodes(pyri_engine *e, const pyri_node_put *puts,
                             size_t n);
int pyri_rados_scan_nodes(pyri_engine *e, pyri_reader *r, uint64_t array,
                          pyri_node_fn *each, void *ctx);
/* Adds the calls that store the nodes of a version. */
int pyri_rnodes_put(pyri_cluster *s, const pyri_complete *c, pyri_turn turn,
                    pyri_calls *calls);
/* Those of one epoch only; what cannot be removed stays as an orphan. */
void pyri_rnodes_undo(pyri_cluster *s, const pyri_complete *c, pyri_turn turn);
/* Nodes on lists of what was erased: they are there, and count no more. */
typedef struct pyri_rwaiting {
    pyri_digest *names; /* heap */
    size_t n, room;
} pyri_rwaiting; /* zero-initialise */
/* Those of an array (rados_upkeep.c); what was noted before stays. */
int pyri_rwaiting_add(pyri_rwaiting *w, pyri_cluster *s, uint64_t array);
bool pyri_rwaiting_has(const pyri_rwaiting *w, pyri_bytes key);
/* Remove nodes, wherever they are; adds the bytes that went. */
int pyri_rnodes_drop(pyri_cluster *s, const pyri_bytes *keys, size_t n,
                    uint64_t *bytes);

/* Called with the name of every object whose name begins so. */
typedef int pyri_oid_fn(void *ctx, const char *oid);
int pyri_rados_objects(pyri_cluster *s, const char *prefix, pyri_oid_fn *each,
                       void *ctx);
/* Called with all entries of an object; the bytes are the reader's. */
typedef int pyri_item_fn(void *ctx, pyri_bytes key, uint64_t weight,
                         pyri_bytes value);
int pyri_rados_entries(pyri_cluster *s, pyri_reader *r, const char *oid,
                       pyri_item_fn *each, void *ctx);

/* What was read lately (rados_cache.c). */
int pyri_rcache_get(pyri_cluster *s, pyri_reader *r, pyri_node_get *get);
void pyri_rcache_put(pyri_cluster *s, pyri_bytes key, pyri_bytes value);
void pyri_rcache_drop(pyri_cluster *s, pyri_bytes key);
void pyri_rcache_clear(pyri_cluster *s);

/* --- blobs (rados_blobs.c, rados_lists.c) -------------------------------- */

enum { PYRI_RADOS_PART = 32 << 20 }; /* bytes of a blob in one object */

void pyri_rblobs_oid(char oid[PYRI_RADOS_OID], uint64_t number, uint64_t part);

/*
 * Where a blob is. What was put is alone in the object of its number: its ref
 * is (number, 0). What was computed is in the object of another blob, behind
 * it; b of its ref is the number of that object and the place in it: session
 * (24 bits), count (24), place in PYRI_SLOT_UNIT (16). Its own number, a, tells
 * whose it is and which list it is on.
 */
typedef struct pyri_rplace {
    uint64_t number; /* of the object */
    uint64_t at;     /* offset in it */
} pyri_rplace;

enum { PYRI_RADOS_PLACE_BITS = 16 };
pyri_rplace pyri_rblobs_place(pyri_ref ref);
/* b of a ref to what is in that object, at place 0; 0 if it has no such. */
uint64_t pyri_rblobs_home(uint64_t number);
/* There is a blob that nobody has named yet. Takes u. */
void pyri_rblobs_note(pyri_cluster *s, pyri_runnamed *u);
/* It is named, or has gone. */
void pyri_rblobs_forget(pyri_cluster *s, uint64_t number);

int pyri_rados_put_blobs(pyri_engine *e, pyri_blob_put *puts, size_t n);
int pyri_rados_sync(pyri_engine *e);
int pyri_rados_get_blobs(pyri_engine *e, pyri_reader *r, pyri_blob_get *gets,
                         size_t n);
void pyri_rados_drop_blobs(pyri_engine *e, const pyri_blob *blobs, size_t n,
                           const pyri_blob *near, size_t nnear);
int pyri_rados_scan_blobs(pyri_engine *e, pyri_reader *r, pyri_blob_fn *each,
                          void *ctx);
int pyri_rados_compute(pyri_engine *e, pyri_errand *errands, size_t n);
int pyri_rados_reduce(pyri_engine *e, pyri_reader *r, pyri_errand *errands,
                      size_t n);
void pyri_rados_tally(pyri_engine *e, uint64_t there, uint64_t here);
/* Tell the cluster what was counted so far; the totals of all, and of it. */
void pyri_tally_flush(pyri_cluster *s);
void pyri_tally_get(pyri_cluster *s, uint64_t *there, uint64_t *here);
/* Are all of these stored? Then list them as named by a version. */
int pyri_rblobs_stored(pyri_cluster *s, const pyri_blob *blobs, size_t n);
int pyri_rblobs_list(const pyri_complete *c, uint32_t epoch,
                     pyri_calls *calls);
void pyri_rblobs_undo(pyri_cluster *s, const pyri_complete *c, uint32_t epoch);
/* The version is in other hands since this epoch: what the session that took
 * it has listed is named by nobody. */
int pyri_rblobs_disown(pyri_cluster *s, const pyri_complete *c, uint32_t epoch,
                       uint64_t session);
void pyri_rblobs_named(pyri_cluster *s, const pyri_blob *blobs, size_t n);
/* Note that blobs of these refs may come to be, where they are not found by
 * their own numbers. */
int pyri_rblobs_intend(pyri_cluster *s, const pyri_blob *blobs, size_t n);
/* They will not; those of them that were put and not computed do not count. */
int pyri_rblobs_renounce(pyri_cluster *s, const pyri_blob *blobs, size_t n);
/* They are not named any more; adds the bytes of those that were. */
int pyri_rblobs_unlist(pyri_cluster *s, const pyri_blob *blobs, size_t n,
                       uint64_t *bytes);
/* Remove blobs that were named. */
int pyri_rblobs_drop(pyri_cluster *s, const pyri_blob *blobs, size_t n);
/* Which of a row of blobs are named? Remove the others. */
int pyri_rblobs_sweep(pyri_cluster *s, uint64_t first, uint64_t n,
                     uint64_t *bytes);
int pyri_rblobs_remove(pyri_cluster *s, const pyri_blob *blobs, size_t n);
void pyri_rblobs_forget_all(pyri_cluster *s);

/* --- giving space back (rados_upkeep.c) ---------------------------------- */

int pyri_rados_erase(pyri_engine *e, pyri_erase *x);
int pyri_rados_settle(pyri_engine *e, pyri_settled *out);

#endif
