/*
 * pyramid/store.h - open stores, see what is in them.
 *
 *   pyr_store *store;
 *   if (pyr_open("climate.pyr", PYR_OPEN_CREATE, &store) < 0)
 *       die(pyr_errmsg());
 *   ...
 *   pyr_close(store);
 *
 * A store is named by a URL: a path or file:///path is a directory on this
 * machine with no server to start; rados://POOL[/NAMESPACE][?conf=FILE&user=NAME]
 * is a namespace of a Ceph pool; mem:NAME lives in this process, for tests.
 * A store may be open in any number of processes and threads at once. A child
 * made by fork() must open the store for itself.
 */
#ifndef PYRAMID_STORE_H
#define PYRAMID_STORE_H

#include <pyramid/error.h>
#include <pyramid/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PYR_OPEN_CREATE   1u /* make the store if it is not there */
#define PYR_OPEN_READONLY 2u
#define PYR_OPEN_NO_UPKEEP 4u /* start no thread: else, where small writes left
                                 a chunk in many pieces, and it was read often
                                 enough, one stores it anew, as pyr_fold()
                                 does */

typedef enum pyr_durability {
    PYR_DURABILITY_COMMIT, /* on stable storage when a write returns */
    PYR_DURABILITY_OS      /* handed to the operating system: survives any
                              death of processes, not of the machine */
} pyr_durability;

/* How to make a store; an existing one keeps what it was made with. */
typedef struct pyr_store_options {
    pyr_durability durability;
    const char *const *data; /* directories for chunk data, ended by NULL;
                                NULL: one inside the store */
    unsigned lease_ms;       /* how long others wait for a writer that is
                                alive but silent; 0: 10 seconds. (One that is
                                stopped by a debugger or SIGSTOP in the very
                                moment of a transaction is waited for.) */
    /* Of this opening, not kept in the store: */
    const char *kernels;     /* absolute path of the directory that kernels
                                are loaded from; "": none; NULL: as the
                                environment or the installation says, see
                                docs/kernels.md */
} pyr_store_options;         /* zero-initialise; may grow at the end */

/*
 * Open a store. Gives *store to the caller, who ends it with pyr_close(), or
 * leaves it NULL.
 *
 * Errors: PYR_ENOTFOUND if nothing is there and PYR_OPEN_CREATE is not given,
 *         PYR_EFORMAT if what is there is no store, or of a newer format,
 *         PYR_EINVAL for a URL or flags that make no sense,
 *         PYR_EUNSUPPORTED for a store on Ceph if this build has no engine for
 *         it, or Ceph's client library cannot be loaded.
 */
PYR_API int pyr_open(const char *url, unsigned flags, pyr_store **store);

/* The same, saying how to make it. `options` may be NULL. */
PYR_API int pyr_open_with(const char *url, unsigned flags,
                          const pyr_store_options *options, pyr_store **store);

/* End a store; its arrays must be closed before. NULL is allowed. */
PYR_API void pyr_close(pyr_store *store);

/* Call `each` with the name of every array, in order of bytes; a result other
 * than 0 ends the walk and is returned. */
typedef int pyr_name_fn(void *ctx, const char *name);
PYR_API int pyr_arrays(pyr_store *store, pyr_name_fn *each, void *ctx);

/* How a store is, for people and monitors. */
typedef struct pyr_status {
    const char    *engine;         /* "file", "mem", "rados" */
    unsigned       format;         /* of what is stored */
    pyr_durability durability;
    unsigned       lease_ms;
    uint64_t       arrays;
    uint64_t       metadata_bytes; /* catalog, versions, tree nodes */
    uint64_t       data_bytes;     /* chunk data, in all data directories */
    uint64_t       writers;        /* handles open for writing, anywhere */
    uint64_t       in_flight;      /* versions taken and not yet published */
    uint64_t       computed_bytes; /* cells that functions ran on where they
                                      are stored, since the store was made */
    uint64_t       moved_bytes;    /* cells that went to a caller and back for
                                      a function; both only if the engine can
                                      run functions itself, and roughly */
} pyr_status;

/* One data directory, as the storage manager sees it. */
typedef struct pyr_data_dir {
    const char *path;
    uint64_t    free_bytes;
    uint64_t    total_bytes;
    uint64_t    data_bytes; /* held there by this store */
    uint64_t    segments;
    uint64_t    writers;    /* appending there now */
    int         error;      /* 0, or why it is out of use */
} pyr_data_dir;

typedef int pyr_data_dir_fn(void *ctx, const pyr_data_dir *dir);

/* Fill *out and call `each` (may be NULL) for every data directory. A cluster
 * counts as one: `path` says in words how it is, `segments` counts objects. */
PYR_API int pyr_store_status(pyr_store *store, pyr_status *out,
                             pyr_data_dir_fn *each, void *ctx);

#ifdef __cplusplus
}
#endif

#endif
