/*
 * engine/local/local.h - shared by the files of the embedded engine.
 *
 * A *site* is one store directory opened by one process, however often; an
 * engine handle is a reference to a site. Names of the parts:
 *
 *   STORE/pyramid.store   the marker: what kind of store this is   format.c
 *   STORE/meta/           durable LMDB: records, nodes, versions   meta.c
 *   STORE/live/           of this boot of the machine only         live.c
 *        data.mdb         tickets, writers, open segments
 *        presence         a locked byte per living writer          presence.c
 *        wake             futex words to wait on; turns to write   wake.c, turn.c
 *        mailbox          completions for another process          mailbox.c
 *        boot             which boot of which store it belongs to
 *   STORE/data/           segments of chunk data, append-only      segment.c
 *
 * Lock order: registry, site.lock, segment pool, live transaction, meta
 * transaction; the map table's lock is innermost.
 */
#ifndef PYRI_ENGINE_LOCAL_LOCAL_H
#define PYRI_ENGINE_LOCAL_LOCAL_H

#include "engine/engine.h"
#include "engine/local/company.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* LMDB's, as far as it must be named here; see env.h. */
struct MDB_env;
struct pyri_txn;

typedef struct pyri_site pyri_site;

/* --- format.c: the marker ------------------------------------------------ */

enum {
    PYRI_STORE_FORMAT = 1, /* that this code writes, and the newest it reads */
    PYRI_MAX_DIRS = 64,    /* data directories of a store */
    PYRI_UUID_TEXT = 37    /* with the closing zero */
};

#define PYRI_MARKER "pyramid.store"
#define PYRI_DATA_MARKER "pyramid.data"

typedef struct pyri_format {
    unsigned number;
    char uuid[PYRI_UUID_TEXT];
    pyr_durability durability;
    unsigned lease_ms;
    char *data[PYRI_MAX_DIRS]; /* absolute, or inside the store */
    size_t ndata;
} pyri_format; /* zero-initialise; end with pyri_format_fini() */

void pyri_format_fini(pyri_format *f);

/* Read the marker of the store at `path`. *found is false if it has none. */
int pyri_format_read(const char *path, pyri_format *out, bool *found);

/*
 * Make sure that a store is at `path`: make one if nothing or only an empty
 * directory is there. Any number of processes may do so at once. Fails with
 * PYR_EFORMAT, and changes nothing, if something else is there.
 */
int pyri_format_create(const char *path, const pyr_store_options *options);

/* Why there is no store at `path`: PYR_ENOTFOUND or PYR_EFORMAT. */
int pyri_format_missing(const char *path);

/* --- file.c: paths and small files --------------------------------------- */

/* The whole of a small text file, ended by zero. PYR_ENOTFOUND, PYR_EIO;
 * PYR_EFORMAT if it is larger than `room` or no text. */
int pyri_file_read(const char *path, char *out, size_t room);
/* Replace a small file at once: readers see the old or the new. */
int pyri_file_write(const char *path, const char *text, bool durable);

/* STORE/name; PYR_EINVAL if that is too long. */
int pyri_path_join(char *out, size_t room, const char *path, const char *name);

/* Make the names in a directory durable: a file that is synced may still be
 * without its name after a power cut. The second is for the directory that
 * `path` itself is named in. */
int pyri_path_sync(const char *path);
int pyri_path_sync_parent(const char *path);

/* Lock a directory against others who do so; closing *fd ends it. Held while a
 * store is made, opened or put in order, never for longer. */
int pyri_path_lock(const char *path, int *fd);

/* --- place.c: the data directories, and the choice among them ------------ */

typedef struct pyri_dir {
    char *path; /* as one can open it */
    int fd;     /* of the directory; -1 until it was found in order */
} pyri_dir;

typedef struct pyri_dirs {
    pthread_mutex_t lock; /* guards the opening of fd's */
    pyri_dir list[PYRI_MAX_DIRS];
    size_t n;
} pyri_dirs;

int pyri_dirs_init(pyri_dirs *d, const char *path, const pyri_format *f);
void pyri_dirs_fini(pyri_dirs *d);
/* The open directory, or why it is out of use: PYR_EIO. */
int pyri_dirs_get(pyri_site *s, size_t i, int *fd);

/* Which segment to append to: one that nobody does any more (`id` != 0), or
 * a new one in directory `dir`. Directories whose bit is set in `exclude` are
 * left out; PYR_ENOSPC if none remains. */
typedef struct pyri_placement {
    size_t dir;
    uint32_t id;
    bool dead; /* of a chosen one: its writer died, and may have left what
                  nobody will name */
} pyri_placement;

int pyri_place_choose(pyri_site *s, uint64_t exclude, pyri_placement *out);
/* Note that this site appends to it; that nobody does and anyone may; that
 * nobody ever will again. */
int pyri_place_enter(pyri_site *s, pyri_placement p);
int pyri_place_leave(pyri_site *s, pyri_placement p);
int pyri_place_forget(pyri_site *s, pyri_placement p);
/* Note that it is full; what this site put there may not be named yet. */
int pyri_place_full(pyri_site *s, pyri_placement p);
/* All that this site put anywhere is named: it closes. */
int pyri_place_done(pyri_site *s);
/* Take a segment that no living writer has, to look through it; *mine is
 * false if one has. *full: nobody will append to it. */
int pyri_place_claim(pyri_site *s, pyri_placement p, bool *mine, bool *full);
/* Gives the segments whose writers died. */
int pyri_place_dead(pyri_site *s, pyri_placement **list, size_t *n);
/* Segments appended to by living writers, per directory. */
int pyri_place_load(pyri_site *s, uint64_t load[PYRI_MAX_DIRS]);

/* --- segment.c: append-only files; see segment.h for the writing side ---- */

enum { PYRI_SEGMENT_HEADER = 4096, PYRI_SECTOR = 1024 };
#define PYRI_SEGMENT_LIMIT (UINT64_C(1) << 30)

typedef struct pyri_segment pyri_segment;

void pyri_segment_name(char out[16], uint32_t id);
/* Check the header of a segment of this store. */
int pyri_segment_check(const pyri_site *s, const uint8_t *header, size_t dir,
                       uint32_t id);

/* --- append.c: the segments that a site appends to ----------------------- */

enum { PYRI_MAX_OPEN_SEGMENTS = 8 };

typedef struct pyri_segments {
    pthread_mutex_t opening; /* held while one more is opened */
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t freed;
    pyri_segment *open[PYRI_MAX_OPEN_SEGMENTS];
    size_t n;
    bool broken; /* a sync failed: nothing later can be promised */
    char why[200];
} pyri_segments;

void pyri_segments_init(pyri_segments *p);
void pyri_segments_fini(pyri_site *s);
int pyri_segments_put(pyri_site *s, pyri_blob_put *puts, size_t n);
int pyri_segments_sync(pyri_site *s);
/* Give back what was set aside for appends to come. */
void pyri_segments_trim(pyri_site *s);

/* --- blobs.c: which blobs there are, and the small ones ------------------- */

#define PYRI_SMALL_BIT (UINT64_C(1) << 63) /* of a reference's a */
#define PYRI_SMALL_BLOB ((64 << 10) + 256)  /* the largest, head included */
#define PYRI_SMALL_UNSYNCED 1536            /* the same, durability os */
#define PYRI_SMALL_WAITING (1 << 20)        /* bytes that may wait */
enum { PYRI_PENDING_BUCKETS = 64, PYRI_TRUST_BITS = 15 };

typedef struct pyri_pending pyri_pending;

typedef struct pyri_small {
    _Atomic uint64_t last;    /* time that named one */
    _Atomic uint64_t waiting; /* bytes */
    _Atomic uint64_t *trusted;
    pthread_mutex_t lock; /* guards what is below */
    pyri_pending *pending[PYRI_PENDING_BUCKETS];
} pyri_small;

void pyri_small_init(pyri_small *t);
int pyri_small_open(pyri_small *t);
void pyri_small_fini(pyri_small *t);
/* Is it small, and may it wait in memory? */
bool pyri_small_fits(pyri_site *s, const pyri_blob_put *put);
int pyri_small_put(pyri_site *s, pyri_blob_put *put);
/* The bytes of one that waits for its version; none if there is no such. */
pyri_bytes pyri_small_waiting(pyri_site *s, pyri_ref ref);
void pyri_small_drop(pyri_site *s, pyri_ref ref);
void pyri_small_vouch(pyri_site *s, pyri_ref ref);
int pyri_small_get(pyri_site *s, pyri_reader *r, pyri_blob_get *g);

typedef struct pyri_named_blob {
    bool damaged; /* then only the reference is known */
    pyri_blob blob;
    uint64_t array, version;
} pyri_named_blob;

/* List the blobs of a version, and store the small ones: their bytes are in
 * small[i] for blobs[i], or, if it is NULL, wait here. And after that. */
int pyri_blobs_name(pyri_site *s, struct pyri_txn *txn,
                    const pyri_complete *c, const pyri_bytes *small);
void pyri_blobs_named(pyri_site *s, const pyri_complete *c);
int pyri_blobs_erase(pyri_site *s, struct pyri_txn *txn, pyri_ref ref,
                     pyri_named_blob *was, bool *found);
/* A result other than 0 ends the walk and is returned. */
typedef int pyri_named_blob_fn(void *ctx, const pyri_named_blob *b);
int pyri_blobs_scan(pyri_site *s, struct pyri_txn *txn, pyri_ref from,
                    pyri_named_blob_fn *each, void *ctx);

/* --- erase.c: forgotten versions, and erasing ----------------------------- */

enum { PYRI_LIMBO_KEY = 24 };

int pyri_erase_forget(pyri_site *s, struct pyri_txn *txn, const pyri_edit *e);
int pyri_erase_scan_forgotten(pyri_site *s, pyri_reader *r,
                              pyri_forgotten_fn *each, void *ctx);
int pyri_erase_all(pyri_site *s, struct pyri_txn *txn, pyri_erase *x);
int pyri_erase_run(pyri_site *s, pyri_erase *x);
int pyri_erase_replace(pyri_site *s, const pyri_node_put *puts, size_t n);
/* The blobs of versions that never were published. */
int pyri_erase_unpublished(pyri_site *s, struct pyri_txn *txn);

/* --- folds.c: nodes that are stored anew ---------------------------------- */

int pyri_fold_run(pyri_site *s, pyri_fold *f);
int pyri_fold_count(pyri_site *s, pyri_reader *r, uint64_t family,
                    uint64_t *out);
/* PYR_ENOVERSION if it was folded since the version's maker looked. */
int pyri_fold_check(pyri_site *s, struct pyri_txn *txn,
                    const pyri_complete *c);

/* --- dense.c: pages that are made full again ------------------------------ */

/* So many entries were erased in this transaction. */
int pyri_dense_count(pyri_site *s, struct pyri_txn *txn, uint64_t more);
/* The caller has begun upkeep. */
int pyri_dense(pyri_site *s);

/* --- pages.c: the pages under meta ---------------------------------------- */

/* PYR_ECORRUPT if LMDB would be led astray. */
int pyri_pages_check(pyri_site *s);

/* --- settle.c: giving space back to the system ---------------------------- */

int pyri_settle_lock(pyri_site *s);
void pyri_settle_unlock(pyri_site *s);
int pyri_settle(pyri_site *s, pyri_settled *out);
/* limbo.c: a blob in a segment that no version will name, and those near it
 * that stay. */
void pyri_limbo_drop(pyri_site *s, const pyri_blob *b, const pyri_blob *near,
                     size_t n);
/* sweep.c: punch out all that is not named of a segment that is ours alone, and
 * remove it if that is all. */
int pyri_sweep(pyri_site *s, pyri_placement p, bool *empty, uint64_t *bytes);
/* List all segments there are, to be looked through later. */
int pyri_sweep_note_old(pyri_site *s, struct pyri_txn *txn);

/* --- map.c: segments mapped for reading ---------------------------------- */

typedef struct pyri_map pyri_map;
typedef struct pyri_maps pyri_maps;

int pyri_maps_new(pyri_maps **out);
void pyri_maps_free(pyri_maps *m);
/* Blobs that were just written need not be verified when this process reads
 * them back. */
void pyri_map_note(pyri_site *s, const pyri_blob_put *puts, size_t n);
/* The same for one that was verified as a whole. */
void pyri_map_vouch(pyri_site *s, pyri_ref ref);
int pyri_map_get(pyri_site *s, pyri_reader *r, pyri_blob_get *gets, size_t n);
void pyri_map_release(pyri_site *s, pyri_reader *r);

/* --- reader.c: pooled read transactions ---------------------------------- */

enum { PYRI_POOLED_READERS = 16 };

struct pyri_reader {
    struct pyri_txn *txn;  /* of meta */
    struct pyri_txn *live; /* of live; NULL until it is asked for */
    bool live_begun;
    struct pyri_walk *nodes; /* where the last node was found; NULL until one
                                 is asked for */
    bool nodes_begun;
    struct pyri_recent *recent; /* nodes that it got; NULL: none yet */
    bool again;          /* it was used before */
    bool recent_begun;
    uint64_t recent_of;  /* the transaction that it counted in, */
    uint64_t replaced;   /* and what it found there */
    unsigned doubts;     /* of the site, when it began */
    struct {
        pyri_ref ref;
        pyri_bytes bytes;
    } small; /* the one that was got last */
    pyri_map **held;     /* mapped segments in use; the latest last */
    size_t nheld, held_room;
};

typedef struct pyri_readers {
    _Atomic(pyri_reader *) idle[PYRI_POOLED_READERS];
} pyri_readers;

int pyri_reader_begin(pyri_site *s, pyri_reader **out);
void pyri_reader_end(pyri_site *s, pyri_reader *r);
/* Begin to read the live environment too; the site has one. */
int pyri_reader_live(pyri_site *s, pyri_reader *r);
void pyri_readers_fini(pyri_site *s);

/* --- presence.c: who is alive -------------------------------------------- */

typedef struct pyri_presence {
    int fd;          /* of live/presence; -1 if there is none */
    bool member;     /* this site holds a slot */
    uint32_t slot;
    uint64_t writer; /* random: never the same twice */
    unsigned handles; /* open for writing, in this process */
} pyri_presence;

int pyri_presence_open(pyri_site *s);
/* One handle for writing more (+1) or less (-1). */
int pyri_presence_change(pyri_site *s, int by);
void pyri_presence_close(pyri_site *s);
/* Is the writer that held `slot` still there? `txn` is of live. */
int pyri_presence_alive(pyri_site *s, struct pyri_txn *txn, uint32_t slot,
                        uint64_t writer, bool *alive);
/* A site that may write in one word: its slot (16 bits) and as much of its id
 * as there is room for; 0: it may not. */
uint64_t pyri_presence_badge(const pyri_site *s);
int pyri_presence_has_badge(pyri_site *s, uint64_t badge, bool *alive);
/* Handles open for writing, in all processes. */
int pyri_presence_count(pyri_site *s, uint64_t *out);

/* --- wake.c: waiting across processes ------------------------------------ */

typedef struct pyri_wake pyri_wake;

int pyri_wake_open(const char *path, pyri_wake **out);
void pyri_wake_close(pyri_wake *w);
/* To write to meta, or to live. */
struct pyri_turn *pyri_wake_turn(pyri_wake *w, bool live);
/* `array` has a newer latest version. */
void pyri_wake_all(pyri_wake *w, uint64_t array);
int pyri_wake_wait(pyri_site *s, uint64_t array, uint64_t version,
                   int timeout_ms);

/* A word to sleep on inside this process. */
void pyri_futex_wait(_Atomic uint32_t *word, uint32_t seen);
void pyri_futex_wake(_Atomic uint32_t *word);
/* One in a file that processes share; for `ns` at most. */
void pyri_futex_wait_shared(_Atomic uint32_t *word, uint32_t seen, int64_t ns);
void pyri_futex_wake_shared(_Atomic uint32_t *word);
void pyri_futex_wake_one(_Atomic uint32_t *word);

/* --- turn.c: who may write to an environment ------------------------------- */

typedef struct pyri_turn {
    _Atomic uint32_t whose; /* process; 0: nobody's. A futex, shared */
    _Atomic uint32_t waiting;
    uint8_t apart[56];
} pyri_turn;

/* `me` is this process. Between them others wait, as a rule, but not forever. */
void pyri_turn_take(pyri_turn *t, uint32_t me);
void pyri_turn_pass(pyri_turn *t, uint32_t me);
extern int64_t pyri_turn_patience_ns; /* with one who seems to live */

/* --- mailbox.c: completions for another process -------------------------- */

typedef struct pyri_mailbox pyri_mailbox;

int pyri_mailbox_open(const char *path, pyri_mailbox **out);
void pyri_mailbox_close(pyri_mailbox *m);
/* After the next write transaction of meta nobody will complete for a process
 * that is dead by now. */
int pyri_mailbox_drop_dead(pyri_site *s);

/* --- meta.c: records, nodes, versions, heads ----------------------------- */

typedef struct pyri_head {
    uint64_t latest;
    int ndim;
    uint64_t mark; /* below 2^56 */
    uint64_t shape[PYR_MAX_DIMS];
} pyri_head;

/* While a store is made: empty metadata, durable; and its end. */
int pyri_meta_make(const char *store);
void pyri_meta_unmake(const char *store);
int pyri_meta_open(pyri_site *s, bool readonly);
void pyri_meta_close(pyri_site *s);
/* PYR_ENOTFOUND if the array has no version manager. */
int pyri_meta_head(pyri_site *s, struct pyri_txn *txn, uint64_t array,
                   pyri_head *out);
int pyri_meta_put_head(pyri_site *s, struct pyri_txn *txn, uint64_t array,
                       const pyri_head *head);
/* Has this version a record, published or not? */
int pyri_meta_has_version(pyri_site *s, struct pyri_txn *txn, uint64_t array,
                          uint64_t version, bool *has);
int pyri_meta_put_version(pyri_site *s, struct pyri_txn *txn,
                          const pyri_complete *c, int ndim);
/* Is what is stored of a version just this? *has is false if it has no
 * record. */
int pyri_meta_same_version(pyri_site *s, struct pyri_txn *txn,
                           const pyri_complete *c, int ndim, bool *has,
                           bool *same);
/* Shape of a version that has a record. */
int pyri_meta_version_shape(pyri_site *s, struct pyri_txn *txn, uint64_t array,
                            uint64_t version, pyri_head *head, bool *has);
/* Put an entry of `tree`: made of two parts, the second may be empty. */
int pyri_meta_put_tree(pyri_site *s, struct pyri_txn *txn, const void *key,
                       size_t size, pyri_bytes first, pyri_bytes second);
int pyri_meta_put_nodes(pyri_site *s, struct pyri_txn *txn,
                        const pyri_complete *c);
/* After a restart of the machine: delete what was stored for versions that
 * never were published, and list the segments there are. */
int pyri_meta_drop_unpublished(pyri_site *s);

int pyri_meta_get_record(pyri_site *s, pyri_reader *r, pyri_bytes key,
                         pyri_bytes *value, bool *found);
int pyri_meta_scan_records(pyri_site *s, pyri_reader *r, pyri_bytes prefix,
                           pyri_record_fn *each, void *ctx);
int pyri_meta_edit(pyri_site *s, const pyri_edit *edits, size_t n);
int pyri_meta_get_nodes(pyri_site *s, pyri_reader *r, pyri_node_get *gets,
                        size_t n);
/* An entry of the tree: a reader finds those near to the last one sooner. */
int pyri_meta_find_tree(pyri_site *s, pyri_reader *r, const void *key,
                        size_t size, pyri_bytes *value, bool *found);
void pyri_meta_vouch_node(pyri_site *s, pyri_reader *r,
                          const pyri_node_get *got);
/* Nodes are replaced, or deleted and perhaps made again, by this transaction:
 * readers are to forget those that they got. */
int pyri_meta_count_replaced(pyri_site *s, struct pyri_txn *txn);
int pyri_meta_get_version(pyri_site *s, pyri_reader *r, uint64_t array,
                          uint64_t version, pyri_version_get *out);
/* PYR_ENOVERSION if that version is forgotten or has gone. */
int pyri_meta_kept(pyri_site *s, struct pyri_txn *txn, const pyri_edit *e);
int pyri_meta_mark(pyri_site *s, struct pyri_txn *txn, const pyri_edit *e);
int pyri_meta_make_array(pyri_site *s, struct pyri_txn *txn,
                         const pyri_edit *e);
/* Is this entry of the tree a version's, and whole? */
bool pyri_meta_is_version(const uint8_t key[16], const void *value,
                          size_t value_size);
/* A checksum of a key and a value, in up to two pieces. */
uint64_t pyri_meta_sum(pyri_bytes key, pyri_bytes a, pyri_bytes b);
/* Mark it; *found is false if it was, or has gone. */
int pyri_meta_mark_forgotten(pyri_site *s, struct pyri_txn *txn, uint64_t array,
                             uint64_t version, bool *found);
int pyri_meta_drop_version(pyri_site *s, struct pyri_txn *txn, uint64_t array,
                           uint64_t version);
/* Adds its size to *bytes; nothing if it is not there. */
/* Nothing if it is not there. */
int pyri_meta_replace_node(pyri_site *s, struct pyri_txn *txn,
                           const pyri_node_put *put);
int pyri_meta_drop_node(pyri_site *s, struct pyri_txn *txn, pyri_bytes key,
                        uint64_t *bytes);
int pyri_meta_scan_nodes(pyri_site *s, pyri_reader *r, uint64_t array,
                         pyri_node_fn *each, void *ctx);
int pyri_meta_scan_versions(pyri_site *s, pyri_reader *r, uint64_t array,
                            uint64_t first, uint64_t last,
                            pyri_version_fn *each, void *ctx);

/* --- ticket.c: versions in flight ---------------------------------------- */

int pyri_ticket_take(pyri_site *s, const pyri_take *take, pyri_ticket *ticket,
                     pyri_flights *below);
int pyri_ticket_renew(pyri_site *s, pyri_ticket *ticket);
int pyri_ticket_flights(pyri_site *s, uint64_t array, pyri_flights *out);
/* The first version of (latest, version] that is not complete, if its writer
 * is dead; else *dead is 0. */
int pyri_ticket_stuck(pyri_site *s, uint64_t array, uint64_t version,
                      uint64_t *dead);
/* PYR_EFENCED if there is no ticket for this version: it was never given, or
 * is published. */
int pyri_ticket_check(pyri_site *s, uint64_t array, uint64_t version,
                      int *ndim);
/* How many versions of all arrays are in flight. */
/* PYR_EFENCED if any version above `head` is in flight. Through a write
 * transaction, so that none is taken before that ends. */
int pyri_ticket_none(pyri_site *s, struct pyri_txn *live, struct pyri_txn *meta,
                     uint64_t array, const pyri_head *head);
int pyri_ticket_count(pyri_site *s, uint64_t *out);
int64_t pyri_now_ns(void); /* CLOCK_MONOTONIC */

/* --- publish.c: completion ----------------------------------------------- */

typedef struct pyri_request pyri_request;

typedef struct pyri_publisher {
    pthread_mutex_t lock;        /* guards the next three */
    pyri_request *first, **last; /* waiting for the next transaction */
    bool leading;                /* someone is at one */
    atomic_uint waiting;         /* how many there are from `first` on */
    pyri_company threads;        /* who took part; only the leader's, */
    uint32_t turns;              /* as are these */
} pyri_publisher; /* zeroed, then pyri_publisher_init() */

void pyri_publisher_init(pyri_publisher *p);
int pyri_publish(pyri_site *s, pyri_complete *c);
/* Publish a version that nobody took. */
int pyri_import(pyri_site *s, pyri_complete *c);

/* --- live.c: what is valid for one boot of the machine ------------------- */

/* Open live/, made or emptied first if need be. */
int pyri_live_open(pyri_site *s);
/* Is it open? Whoever only reads opens it now, the first time that it is asked
 * for, if it is in order and may be written to; else it does without. */
bool pyri_live_there(pyri_site *s);
void pyri_live_close(pyri_site *s);

/* --- status.c ------------------------------------------------------------ */

int pyri_site_status(pyri_site *s, pyr_status *out, pyr_data_dir_fn *each,
                     void *ctx);

/* --- the site ------------------------------------------------------------ */

struct pyri_site {
    pyri_site *next;     /* in the registry, which guards it and refs */
    unsigned refs;
    dev_t dev;
    ino_t ino;
    unsigned generation; /* of forks in which it was opened */

    char *path;
    pyri_format format;

    atomic_uint publications; /* of this site, counted */
    struct MDB_env *meta;
    unsigned tree_db, records_db, main_db, blobs_db, limbo_db; /* of meta */
    bool meta_readonly;
    bool meta_unlocked; /* pages may change under a reader, if at all */

    pthread_mutex_t lock; /* guards the change from no live part to one, and
                             presence.handles */
    atomic_bool live_ready; /* false: opened for reading, and not asked for yet
                               or not in order; those below are set before */
    struct MDB_env *live;
    unsigned live_db;
    pyri_wake *wake;
    pyri_mailbox *mailbox; /* NULL if nothing is synced */
    pyri_presence presence;

    pyri_readers readers;
    atomic_uint doubts; /* how often all was to be looked at anew */
    pyri_publisher publisher;
    pyri_dirs dirs;
    pyri_segments segments;
    pyri_small small;
    pyri_maps *maps;
    atomic_int upkeep_fd; /* of whoever gives space back; -1: nobody */
};

/* Until it is undone this process has no child, and opens and closes no store;
 * see local.c. It comes before site.lock. */
void pyri_site_hold_forks(bool hold);

#endif
