/*
 * engine/local/env.h - LMDB, wrapped: the only file that names lmdb.h.
 *
 * A store has two environments. Both are opened with MDB_NOTLS, so that a
 * read transaction belongs to a pyri_reader and not to a thread.
 */
#ifndef PYRI_ENGINE_LOCAL_ENV_H
#define PYRI_ENGINE_LOCAL_ENV_H

#include "base/buf.h"

#include <lmdb.h>

#include <stdbool.h>
#include <stdint.h>

/* An LMDB failure as ours: a text "<what>: <reason>". */
int pyri_fail_mdb(int rc, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* How to open an environment. */
typedef struct pyri_env_plan {
    const char *path;    /* a directory that exists */
    uint64_t map_sizes[3]; /* address space to reserve; smaller ones are tried
                              when there is none */
    unsigned flags;      /* MDB_*, beside MDB_NOTLS */
} pyri_env_plan;

/*
 * One process at a time may do this to an environment: if it fails or is
 * killed half-way, LMDB leaves a table of readers that says "transaction 0",
 * and a process that waited for it meanwhile would go on with that, writing
 * over newer transactions. One that comes after sets the table up again.
 */
int pyri_env_open(const pyri_env_plan *plan, MDB_env **out);

/* The oldest transaction that any reader sees; the newest if there are
 * none. */
uint64_t pyri_env_oldest_reader(MDB_env *env);
/* Make holes of pages that are free and that no reader sees. Adds to *bytes
 * what the file became smaller by. */
int pyri_env_punch(MDB_env *env, uint64_t *bytes);
/* How many pages are free, but not for that yet. */
int pyri_env_unripe(MDB_env *env, size_t *out);

/* Make an empty one, and its contents durable; the names of its files are left
 * to the caller. */
int pyri_env_make(const pyri_env_plan *plan);

/* Transactions. A write transaction is the caller's thread's own. */
/* A reader that died in a read keeps old pages from being used again, until
 * someone notices. */
void pyri_env_forget_dead(MDB_env *env);
int pyri_env_read(MDB_env *env, MDB_txn **out);
int pyri_env_write(MDB_env *env, MDB_txn **out);
int pyri_env_commit(MDB_txn *txn, const char *what); /* ends it either way */
/* While a write transaction is held: see ahead.c. */
void pyri_env_ahead(MDB_env *env);
/* Make durable what was committed by others, too. */
int pyri_env_sync(MDB_env *env);

/*
 * LMDB believes what its pages say of the size of a value; one that would
 * leave its page is an error here (PYR_ECORRUPT) and not a signal where it is
 * read. In a write transaction values may be in memory elsewhere, of which
 * nothing is known.
 */
struct pyri_env_map;
/* Learn where the map is from a read transaction that finds database `name` in
 * `main_db`, for all that follows; *map must last as long as the environment. */
int pyri_env_learn(MDB_txn *txn, MDB_dbi main_db, const char *name,
                   struct pyri_env_map *map);
/* Is a value, or a key, that LMDB has found where it can be? */
bool pyri_env_whole(MDB_txn *txn, const MDB_val *v);
int pyri_env_torn(void); /* fails as said above */

/* One value; *found is false if there is none. */
int pyri_env_get(MDB_txn *txn, MDB_dbi db, const void *key, size_t size,
                 MDB_val *out, bool *found);
int pyri_env_put(MDB_txn *txn, MDB_dbi db, const void *key, size_t size,
                 const void *value, size_t value_size);
/* The same with a value in two pieces. (Not MDB_RESERVE: only LMDB writes to
 * its map, so that the thread sanitizer can trust what it sees.) */
int pyri_env_put_two(MDB_txn *txn, MDB_dbi db, const void *key, size_t size,
                     pyri_bytes first, pyri_bytes second);
int pyri_env_delete(MDB_txn *txn, MDB_dbi db, const void *key, size_t size,
                    bool *found);

/*
 * Step a cursor. `op` is MDB_SET_RANGE (from *key on), MDB_NEXT, MDB_PREV,
 * MDB_LAST. *more is false past the end, and past the first key that does not
 * begin with the `prefix` bytes.
 */
int pyri_env_step(MDB_cursor *cursor, MDB_cursor_op op, pyri_bytes prefix,
                  MDB_val *key, MDB_val *value, bool *more);
int pyri_env_cursor(MDB_txn *txn, MDB_dbi db, MDB_cursor **out);

#endif
