/*
 * engine/engine.h - where the bytes live: the one interface to storage.
 *
 * The layers above see a store as four things, whatever holds them:
 *
 *   records   small named values that may change: the catalog, tags
 *   nodes     immutable small values under keys chosen by the tree
 *   blobs     immutable byte strings, named by the engine when they are put:
 *             fragments of chunks
 *   versions  one version manager per array: it gives out version numbers,
 *             knows which are in flight, and publishes them in order
 *
 * An engine fills in one pyri_engine_ops. Rules for all entries:
 *   - any thread may call, any number at once; the engine locks for itself;
 *   - arguments are borrowed for the call; what is returned as a view lives
 *     until the reader that it was got through ends;
 *   - what a returned call stored, a later call anywhere finds; but a blob may
 *     be found through this store in this process only, until a version that
 *     names it is complete;
 *   - calls take batches: a cluster keeps them all in the air at once, the
 *     embedded engine just loops;
 *   - every failure goes through pyri_fail(): PYR_ENOTFOUND, PYR_EEXIST,
 *     PYR_EFENCED, PYR_ETIMEOUT, PYR_ECORRUPT, PYR_EIO, PYR_ENOSPC,
 *     PYR_ENOMEM, PYR_EREADONLY, PYR_EINVAL (a shape that overflows).
 *
 * tests/engine/conformance.c holds these rules as a program; a new engine is
 * done when it passes there. engine/mem/ is the shortest one to read first.
 */
#ifndef PYRI_ENGINE_ENGINE_H
#define PYRI_ENGINE_ENGINE_H

#include "base/buf.h"
#include "base/fail.h"

#include <pyramid/store.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

typedef struct pyri_engine pyri_engine;
typedef struct pyri_errand pyri_errand; /* chunk/errand.h */

/* A reader: a lease on everything that it was shown. Not shared by threads;
 * cheap, made for each call of the user, never held while waiting. In one
 * process it is a moment of the store; on a cluster each answer is of the time
 * when it was asked for, and only readers of the same process are waited for
 * before space is given back (engine/rados/README.md). */
typedef struct pyri_reader pyri_reader;

/* --- records and nodes --------------------------------------------------- */

enum { PYRI_MAX_KEY = 400 }; /* bytes in a key of a record or node */

/* The key of a node begins with its array and its version, 8 bytes each,
 * big-endian: an engine may keep the nodes of a version together, and drop
 * them together. */

typedef enum pyri_edit_kind {
    PYRI_EDIT_PUT,    /* set the record, whether it is there or not */
    PYRI_EDIT_CREATE, /* PYR_EEXIST if it is there */
    PYRI_EDIT_DELETE, /* PYR_ENOTFOUND if it is not */
    PYRI_EDIT_EXPECT, /* PYR_ENOTFOUND if it is not there; changes nothing */
    PYRI_EDIT_SAME,   /* PYR_EFENCED unless it has this value (or, if that is
                         empty, is not there); changes nothing */
    PYRI_EDIT_ARRAY,  /* a new version manager, see below; PYR_EEXIST */
    PYRI_EDIT_FORGET, /* mark a published version, not the latest, as
                         forgotten; nothing if it is or has gone already */
    PYRI_EDIT_KEPT,   /* PYR_ENOVERSION if it is forgotten or has gone */
    PYRI_EDIT_MARK    /* set the mark of an array; see marked() */
} pyri_edit_kind;

typedef struct pyri_edit {
    pyri_edit_kind kind;
    pyri_bytes key, value;
    /* for the last four only: */
    uint64_t array;        /* id */
    uint64_t version;      /* that is meant; of PYRI_EDIT_ARRAY the one that
                              counts as published, of PYRI_EDIT_MARK the mark */
    int ndim;
    const uint64_t *shape; /* as of that version */
} pyri_edit;

/* Called with records in order of keys; a result other than 0 ends the walk
 * and is returned by it. A record that is damaged has no value. */
typedef int pyri_record_fn(void *ctx, pyri_bytes key, pyri_bytes value);

typedef struct pyri_node_put {
    pyri_bytes key, value;
} pyri_node_put;

typedef struct pyri_node_get {
    pyri_bytes key;
    bool found;       /* set by the engine; false is no failure */
    bool trusted;     /* set: someone vouched for it, see vouch_node() */
    pyri_bytes value; /* view */
} pyri_node_get;

/* --- blobs --------------------------------------------------------------- */

/* Names one blob inside one engine; opaque above, stored in tree nodes. */
typedef struct pyri_ref {
    uint64_t a, b;
} pyri_ref;

typedef struct pyri_blob {
    pyri_ref ref;
    uint64_t size;
} pyri_blob;

enum {
    PYRI_PAGE = 4096,
    PYRI_NEAR = 4 /* no more blobs than that are on a page */
};

typedef struct pyri_blob_put {
    const struct iovec *iov; /* gathered straight from here */
    int niov;                /* any number */
    uint64_t size;           /* in all */
    bool aligned;            /* begin at a multiple of PYRI_PAGE, and let no
                                other blob share the last page */
    pyri_ref ref;            /* set by the engine */
} pyri_blob_put;

/*
 * A range of a blob. `size` bytes at `data` are a view; or, if the caller lends
 * `room` for them and the engine finds that cheaper, a copy in it. With `cold`
 * the room is for what has to come from a device: it is read, as a file is from
 * one end to the other, and what is in memory already is shown. With
 * `later` nothing need be read yet: the caller looks only at pages that were
 * `seen`, and gets others again with room for them. An engine that has read all
 * of it nevertheless clears `later`.
 *
 * `seen` lets the layers above remember which pages of an aligned blob they
 * have verified: bit `seen_first + i` of the bitmap belongs to page i of the
 * *blob*; NULL if the engine keeps none (then verify each time). Bits are only
 * ever set, with relaxed atomics. They are dropped when the engine drops its
 * copy of the bytes.
 */
typedef struct pyri_blob_get {
    pyri_ref ref;
    uint64_t offset, size;
    uint8_t *room; /* or NULL */
    bool cold;
    bool later;
    const uint8_t *data;
    _Atomic uint64_t *seen;
    uint64_t seen_first;
    bool trusted; /* someone vouched for all of it, see vouch(); of an aligned
                     blob this says nothing */
} pyri_blob_get;

/* --- versions ------------------------------------------------------------ */

/* What a writer asks of the version manager. */
typedef struct pyri_take {
    uint64_t array;
    pyri_bytes claim;      /* what it writes, encoded; shown to other writers
                              while this one is in flight */
    const uint64_t *shape; /* from this version on; NULL: as before it */
    int grow_axis;         /* or -1; else shape[grow_axis] += grow_by */
    uint64_t grow_by;
} pyri_take;

/* A version that is in flight: taken, not published. */
typedef struct pyri_flight {
    uint64_t version;
    /* These two are not told when a version is taken. */
    bool complete;        /* all is stored, waits for those before it */
    bool dead;            /* not complete, and its writer is gone or silent
                             for longer than its lease */
    uint64_t base;        /* the newest published version when it was taken:
                             its writer may be reading that one */
    pyri_bytes claim;
    uint64_t shape[PYR_MAX_DIMS]; /* as of that version */
} pyri_flight;

/* What is in flight above `base`, the newest published version; in order of
 * versions, without gaps: base + 1, base + 2, ... */
typedef struct pyri_flights {
    uint64_t base;
    uint64_t base_shape[PYR_MAX_DIMS];
    pyri_flight *list;
    size_t n;
    pyri_buf claims;      /* memory behind the claims */
} pyri_flights;           /* zero-initialise; end with pyri_flights_fini() */

typedef struct pyri_ticket {
    uint64_t array;
    uint64_t version;             /* that was given: never given twice */
    uint64_t shape[PYR_MAX_DIMS]; /* as of this version */
    uint64_t before[PYR_MAX_DIMS];/* as of the version just before it */
    int64_t deadline_ns;          /* monotonic; the lease runs out then */
} pyri_ticket;

typedef struct pyri_complete {
    uint64_t array, version;
    const uint64_t *shape; /* as of that version */
    pyri_node_put *nodes;  /* of this version; may be many. Cheapest in order
                              of their keys */
    size_t nnodes;
    const pyri_blob *blobs; /* that its nodes are the first to name */
    size_t nblobs;
    pyri_bytes record;     /* its provenance */
    uint64_t family, folds; /* how often nodes of this family had been folded
                              when the version's maker looked at them: if it
                              is more by now, PYR_ENOVERSION, and nothing is
                              stored; family 0: it did not look */
    uint64_t latest;       /* set: newest published version afterwards */
} pyri_complete;

/* What there is of a version. */
typedef struct pyri_version_get {
    bool found;       /* it is published, and its record is there */
    bool forgotten;   /* it waits to be reclaimed; or, if not found, it was
                         published once and has gone */
    pyri_bytes record; /* view */
} pyri_version_get;

/* Called for versions whose record is there; as pyri_record_fn. One that is
 * damaged is empty. */
typedef int pyri_version_fn(void *ctx, uint64_t version,
                            const pyri_version_get *v);

/* --- giving space back --------------------------------------------------- */

/* Called for each version that is forgotten and has not gone, in order. */
typedef int pyri_forgotten_fn(void *ctx, uint64_t array, uint64_t version);

/* Called for each blob that a complete version named; the size is that of its
 * put. As pyri_record_fn. */
typedef int pyri_blob_fn(void *ctx, const pyri_blob *blob, uint64_t array,
                         uint64_t version);

/* Called with the key and value of nodes, in order of keys; likewise. */
typedef int pyri_node_fn(void *ctx, pyri_bytes key, pyri_bytes value);

/* What to erase in one step: nothing that a version which is kept needs. */
typedef struct pyri_erase {
    const pyri_bytes *nodes; /* keys; one that is not there is no failure */
    size_t nnodes;
    const pyri_blob *blobs;  /* likewise */
    size_t nblobs;
    uint64_t array;          /* the records of these versions of it go, too: */
    const uint64_t *versions; /* forgotten ones */
    size_t nversions;
    uint64_t bytes;          /* set: what nodes, with their keys, and blobs took
                                that went */
} pyri_erase;

/* A blob, and the version that counts as the one to name it. */
typedef struct pyri_fold_blob {
    pyri_blob blob;
    uint64_t array, version;
} pyri_fold_blob;

/*
 * Nodes that are stored anew because what they name is stored anew; they show
 * what they showed. `decide` is called when no version can become complete any
 * more until the step is over, with a reader that sees all that are; it fills
 * in the rest, which must last until the step is over, or leaves it empty.
 * Versions that are being made may lie on what goes here: so the family, any
 * number that their makers know it by, is folded once more, and they are
 * refused (pyri_complete).
 */
typedef struct pyri_fold {
    uint64_t family; /* not 0 */
    int (*decide)(struct pyri_fold *f, pyri_reader *r);
    void *ctx;
    const pyri_node_put *nodes; /* in the place of those with the same keys */
    size_t nnodes;
    const pyri_fold_blob *blobs; /* that they are the first to name */
    size_t nblobs;
    pyri_erase gone; /* nodes and blobs; no versions */
} pyri_fold;

typedef struct pyri_settled {
    uint64_t bytes;   /* given back to the system */
    uint64_t waiting; /* bytes that someone is still reading */
} pyri_settled;

/* --- the table ----------------------------------------------------------- */

typedef struct pyri_engine_ops {
    const char *scheme; /* "mem", "file": what precedes ':' in a URL */
    bool folds_aside;   /* `fold` may be called beside all else, by itself */

    /* --- lifetime --- */

    /* Gives an engine, or leaves *out NULL. `rest` is the URL after "scheme:"
     * ("//" and a host taken off). flags are PYR_OPEN_*. */
    int (*open)(const char *rest, unsigned flags,
                const pyr_store_options *options, pyri_engine **out);
    /* Ends the engine. No call is under way and no reader open. */
    void (*close)(pyri_engine *e);

    /* --- readers --- */

    int (*begin)(pyri_engine *e, pyri_reader **out);
    void (*end)(pyri_engine *e, pyri_reader *r);

    /* --- records --- */

    /* View of a record; *found is false if there is none. */
    int (*get_record)(pyri_engine *e, pyri_reader *r, pyri_bytes key,
                      pyri_bytes *value, bool *found);
    int (*scan_records)(pyri_engine *e, pyri_reader *r, pyri_bytes prefix,
                        pyri_record_fn *each, void *ctx);
    /* All the edits or none, atomically and durably. */
    int (*edit)(pyri_engine *e, const pyri_edit *edits, size_t n);

    /* --- nodes (they are put by complete) --- */

    int (*get_nodes)(pyri_engine *e, pyri_reader *r, pyri_node_get *gets,
                     size_t n);
    /* The caller has verified a node that it got through this reader: later
     * gets may say that it is trusted. May be NULL. */
    void (*vouch_node)(pyri_engine *e, pyri_reader *r,
                       const pyri_node_get *got);

    /* --- blobs --- */

    /* Blobs that are put together are cheaper, and may take less space; then
     * they are of one version. On failure those that were stored nevertheless
     * have a `ref`, to be dropped by the caller (engine.c does). */
    int (*put_blobs)(pyri_engine *e, pyri_blob_put *puts, size_t n);
    /* Everything that this thread's and other threads' returned put_blobs()
     * stored through this engine is durable when this returns (nothing to do
     * where the store's durability is PYR_DURABILITY_OS). */
    int (*sync)(pyri_engine *e);
    /* PYR_ECORRUPT if a range is not inside its blob's file. */
    int (*get_blobs)(pyri_engine *e, pyri_reader *r, pyri_blob_get *gets,
                     size_t n);
    /* The caller has verified all of a blob, or made it: later gets of it may
     * say that it is trusted. */
    void (*vouch)(pyri_engine *e, pyri_ref ref);
    /* Blobs that were put, and that no version will ever name. `near`: those
     * that stay, of those that were put with them; of one blob, the PYRI_NEAR
     * before and after it in order of references are enough. */
    void (*drop_blobs)(pyri_engine *e, const pyri_blob *blobs, size_t n,
                       const pyri_blob *near, size_t nnear);

    /* --- functions where blobs are: see chunk/errand.h. NULL: none is run there */

    /* Make blobs of blobs. What is made is as if it had been put. */
    int (*compute)(pyri_engine *e, pyri_errand *errands, size_t n);
    int (*reduce)(pyri_engine *e, pyri_reader *r, pyri_errand *errands,
                  size_t n);
    /* For people: functions ran on so many bytes of cells where they are, and
     * so many went to the caller or back for one. Cheap; may be lost. */
    void (*tally)(pyri_engine *e, uint64_t there, uint64_t here);

    /* --- versions: each entry is one atomic step --- */

    /* Newest published version of an array and its shape (may be NULL).
     * PYR_ENOTFOUND if there is no such version manager. */
    int (*latest)(pyri_engine *e, pyri_reader *r, uint64_t array,
                  uint64_t *version, uint64_t *shape);
    /* The same, and the array's mark: a number below 2^56, 0 at first, that
     * comes along for nothing, for what every writer must notice. NULL: the
     * engine has no marks, and refuses PYRI_EDIT_MARK. */
    int (*marked)(pyri_engine *e, pyri_reader *r, uint64_t array,
                  uint64_t *version, uint64_t *shape, uint64_t *mark);
    /* Give the next version, and tell what is in flight below it. */
    int (*take)(pyri_engine *e, const pyri_take *take, pyri_ticket *ticket,
                pyri_flights *below);
    /* Start the lease of a ticket anew. PYR_EFENCED if it is too late. */
    int (*renew)(pyri_engine *e, pyri_ticket *ticket);
    /* All that is in flight now, and who of them is dead. */
    int (*flights)(pyri_engine *e, uint64_t array, pyri_flights *out);
    /* Store the nodes and the record; the version is complete. Publishes it,
     * and those above it that are complete, if all below are published: sets
     * c->latest. Durable as the store promises. PYR_EFENCED, and nothing
     * stored, if the version has a record already: someone resolved it (or if
     * it was never given). */
    int (*complete)(pyri_engine *e, pyri_complete *c);
    /* The same for a version that nobody took, above the newest published one,
     * which publishes it at once: for copies, whose numbers are given. Those in
     * between are as if they had been published, and had gone. PYR_EFENCED,
     * and nothing stored, if any version of the array is in flight, or if this
     * one is not above the newest. */
    int (*import)(pyri_engine *e, pyri_complete *c);
    /* Wait until `version` is published, at most timeout_ms: PYR_ETIMEOUT.
     * May return early with PYR_ETIMEOUT, e.g. when a writer died. */
    int (*wait)(pyri_engine *e, uint64_t array, uint64_t version,
                int timeout_ms);
    int (*get_version)(pyri_engine *e, pyri_reader *r, uint64_t array,
                       uint64_t version, pyri_version_get *out);
    /* Published versions from `first` to `last`, in that direction, forgotten
     * ones too as long as their records are there. */
    int (*scan_versions)(pyri_engine *e, pyri_reader *r, uint64_t array,
                         uint64_t first, uint64_t last,
                         pyri_version_fn *each, void *ctx);

    /* --- giving space back --- */

    /* One at a time, anywhere: PYR_ETIMEOUT if another is at it. Ends by
     * itself when the process dies. */
    int (*begin_upkeep)(pyri_engine *e);
    void (*end_upkeep)(pyri_engine *e);
    int (*scan_forgotten)(pyri_engine *e, pyri_reader *r,
                          pyri_forgotten_fn *each, void *ctx);
    /* Atomic and durable. Readers that began before still see all of it. */
    int (*erase)(pyri_engine *e, pyri_erase *x);
    /* Give to the system what was erased and nobody reads any more, and what
     * writers that died left behind. The caller has begun upkeep. */
    int (*settle)(pyri_engine *e, pyri_settled *out);
    /* Everything that is stored, reachable or not: for verification; but not
     * what was erased and waits for readers. Nodes of one array, or, if that is
     * 0, of all. */
    int (*scan_nodes)(pyri_engine *e, pyri_reader *r, uint64_t array,
                      pyri_node_fn *each, void *ctx);
    int (*scan_blobs)(pyri_engine *e, pyri_reader *r, pyri_blob_fn *each,
                      void *ctx);

    /* Is what the engine itself rests on whole, so that all of it can be asked
     * for? NULL: there is nothing to look at. PYR_ECORRUPT. */
    int (*check)(pyri_engine *e);
    /* Store nodes anew, in the place of those with the same keys: all that
     * are there still, in one step. The caller has begun upkeep. */
    int (*replace_nodes)(pyri_engine *e, const pyri_node_put *puts, size_t n);
    /* See pyri_fold; atomic and durable, and readers that began before see
     * what they saw. The caller has begun upkeep. NULL: nothing is folded. */
    int (*fold)(pyri_engine *e, pyri_fold *f);
    /* How often a family was folded. NULL if `fold` is. */
    int (*folds)(pyri_engine *e, pyri_reader *r, uint64_t family,
                 uint64_t *out);

    /* --- for people --- */

    /* All but `arrays` of *out; calls `each` (may be NULL) per directory. */
    int (*status)(pyri_engine *e, pyr_status *out, pyr_data_dir_fn *each,
                  void *ctx);
} pyri_engine_ops;

/* Every engine's own struct begins with this one. */
struct pyri_engine {
    const pyri_engine_ops *ops;
    bool readonly;
    pyr_durability durability;
    unsigned lease_ms;
    char *kernels; /* directory, or NULL; set by pyri_engine_open() */
};

/* Open the engine that a URL names. */
int pyri_engine_open(const char *url, unsigned flags,
                     const pyr_store_options *options, pyri_engine **out);

/* Callers use these, never ->ops->. Those that store refuse a read-only
 * engine with PYR_EREADONLY. */
void pyri_engine_close(pyri_engine *e); /* NULL is allowed */
int pyri_engine_begin(pyri_engine *e, pyri_reader **out);
void pyri_engine_end(pyri_engine *e, pyri_reader *r); /* NULL is allowed */
int pyri_engine_get_record(pyri_engine *e, pyri_reader *r, pyri_bytes key,
                           pyri_bytes *value, bool *found);
int pyri_engine_scan_records(pyri_engine *e, pyri_reader *r, pyri_bytes prefix,
                             pyri_record_fn *each, void *ctx);
int pyri_engine_edit(pyri_engine *e, const pyri_edit *edits, size_t n);
int pyri_engine_get_nodes(pyri_engine *e, pyri_reader *r, pyri_node_get *gets,
                          size_t n);
void pyri_engine_vouch_node(pyri_engine *e, pyri_reader *r,
                            const pyri_node_get *got);
int pyri_engine_put_blobs(pyri_engine *e, pyri_blob_put *puts, size_t n);
int pyri_engine_sync(pyri_engine *e);
int pyri_engine_get_blobs(pyri_engine *e, pyri_reader *r, pyri_blob_get *gets,
                          size_t n);
/* Can it do errands at all? If not, these leave all of them. */
bool pyri_engine_does_errands(const pyri_engine *e);
int pyri_engine_compute(pyri_engine *e, pyri_errand *errands, size_t n);
int pyri_engine_reduce(pyri_engine *e, pyri_reader *r, pyri_errand *errands,
                       size_t n);
void pyri_engine_tally(pyri_engine *e, uint64_t there, uint64_t here);
int pyri_engine_latest(pyri_engine *e, pyri_reader *r, uint64_t array,
                       uint64_t *version, uint64_t *shape);
bool pyri_engine_has_marks(const pyri_engine *e);
int pyri_engine_marked(pyri_engine *e, pyri_reader *r, uint64_t array,
                       uint64_t *version, uint64_t *shape, uint64_t *mark);
int pyri_engine_take(pyri_engine *e, const pyri_take *take,
                     pyri_ticket *ticket, pyri_flights *below);
int pyri_engine_renew(pyri_engine *e, pyri_ticket *ticket);
int pyri_engine_flights(pyri_engine *e, uint64_t array, pyri_flights *out);
int pyri_engine_complete(pyri_engine *e, pyri_complete *c);
int pyri_engine_import(pyri_engine *e, pyri_complete *c);
int pyri_engine_wait(pyri_engine *e, uint64_t array, uint64_t version,
                     int timeout_ms);
int pyri_engine_get_version(pyri_engine *e, pyri_reader *r, uint64_t array,
                            uint64_t version, pyri_version_get *out);
int pyri_engine_scan_versions(pyri_engine *e, pyri_reader *r, uint64_t array,
                              uint64_t first, uint64_t last,
                              pyri_version_fn *each, void *ctx);
void pyri_engine_vouch(pyri_engine *e, pyri_ref ref);
void pyri_engine_drop_blobs(pyri_engine *e, const pyri_blob *blobs, size_t n,
                            const pyri_blob *near, size_t nnear);
/* Waits for a moment if another is at it, where some fold aside; the second
 * one does not. */
int pyri_engine_begin_upkeep(pyri_engine *e);
int pyri_engine_try_upkeep(pyri_engine *e);
void pyri_engine_end_upkeep(pyri_engine *e);
int pyri_engine_scan_forgotten(pyri_engine *e, pyri_reader *r,
                               pyri_forgotten_fn *each, void *ctx);
int pyri_engine_erase(pyri_engine *e, pyri_erase *x);
int pyri_engine_settle(pyri_engine *e, pyri_settled *out);
int pyri_engine_scan_nodes(pyri_engine *e, pyri_reader *r, uint64_t array,
                           pyri_node_fn *each, void *ctx);
int pyri_engine_scan_blobs(pyri_engine *e, pyri_reader *r, pyri_blob_fn *each,
                           void *ctx);
int pyri_engine_check(pyri_engine *e);
int pyri_engine_replace_nodes(pyri_engine *e, const pyri_node_put *puts,
                              size_t n);
bool pyri_engine_can_fold(const pyri_engine *e);
bool pyri_engine_folds_aside(const pyri_engine *e);
int pyri_engine_fold(pyri_engine *e, pyri_fold *f);
int pyri_engine_folds(pyri_engine *e, pyri_reader *r, uint64_t family,
                      uint64_t *out);
int pyri_engine_status(pyri_engine *e, pyr_status *out, pyr_data_dir_fn *each,
                       void *ctx);

void pyri_flights_fini(pyri_flights *f);

#endif
