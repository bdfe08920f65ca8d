/*
 * engine/local/env.h - LMDB, wrapped: the only file that names lmdb.h.
 *
 * A store has two environments. Both are opened with MDB_NOTLS, so that a
 * read transaction belongs to a pyri_reader and not to a thread.
 *
 * LMDB trusts its pages. It is not asked about them here before they have been
 * looked at: read transactions search by themselves (search.c), and what a
 * write transaction may touch is checked first (guard.c). A damaged page is
 * PYR_ECORRUPT with file and page.
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
    bool grows;          /* see ahead.c */
    const char *remedy;  /* what to do if it is damaged, a sentence; lives as
                            long as the environment */
} pyri_env_plan;

/*
 * One process at a time may do this to an environment: if it fails or is
 * killed half-way, LMDB leaves a table of readers that says "transaction 0",
 * and a process that waited for it meanwhile would go on with that, writing
 * over newer transactions. One that comes after sets the table up again.
 */
int pyri_env_open(const pyri_env_plan *plan, MDB_env **out);
void pyri_env_close(MDB_env *env);
/* From now on who writes waits for its turn; NULL: no more. */
struct pyri_turn;
void pyri_env_take_turns(MDB_env *env, struct pyri_turn *turn);

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

/* A reader that died in a read keeps old pages from being used again, until
 * someone notices. */
void pyri_env_forget_dead(MDB_env *env);
/* What was used of a file, and after which transaction; zeroed: not known. */
typedef struct pyri_growth {
    uint64_t used, id;
} pyri_growth;

/* While a write transaction is held; the file is so long now. See ahead.c. */
void pyri_env_ahead(MDB_env *env, uint64_t length, pyri_growth *g);
/* Make durable what was committed by others, too. */
int pyri_env_sync(MDB_env *env);

/* --- txn.c: transactions, values, cursors -------------------------------- */

typedef struct pyri_txn pyri_txn;
typedef struct pyri_walk pyri_walk;

/* A write transaction is the caller's thread's own. */
int pyri_env_read(MDB_env *env, pyri_txn **out);
int pyri_env_write(MDB_env *env, pyri_txn **out);
int pyri_env_commit(pyri_txn *txn, const char *what); /* ends it either way */
void pyri_env_abort(pyri_txn *txn);
/* A read transaction that is put aside, and begins anew. */
void pyri_env_reset(pyri_txn *txn);
int pyri_env_renew(pyri_txn *txn);
/* Its number; of a read transaction, that of what it sees. */
uint64_t pyri_env_id(const pyri_txn *txn);

/* A database, for all that follows if the transaction commits; NULL names the
 * main one. `name` must last. *lost: there is none. */
int pyri_env_database(pyri_txn *txn, const char *name, unsigned flags,
                      MDB_dbi *out, bool *lost);
/* How many entries and pages it had when the transaction began. */
int pyri_env_entries(pyri_txn *txn, MDB_dbi db, uint64_t *out);
int pyri_env_pages(pyri_txn *txn, MDB_dbi db, uint64_t *out);

/* One value; *found is false if there is none. */
int pyri_env_get(pyri_txn *txn, MDB_dbi db, const void *key, size_t size,
                 MDB_val *out, bool *found);
int pyri_env_put(pyri_txn *txn, MDB_dbi db, const void *key, size_t size,
                 const void *value, size_t value_size);
/* The same with a value in two pieces. They are copied first, as they may be in
 * a page that LMDB is about to change. */
int pyri_env_put_two(pyri_txn *txn, MDB_dbi db, const void *key, size_t size,
                     pyri_bytes first, pyri_bytes second);
/* The same of what is probably the last entry. It is written where it stays,
 * so its pieces must not be in LMDB's pages. */
int pyri_env_append_two(pyri_txn *txn, MDB_dbi db, const void *key,
                        size_t size, pyri_bytes first, pyri_bytes second);
int pyri_env_delete(pyri_txn *txn, MDB_dbi db, const void *key, size_t size,
                    bool *found);

/*
 * Step a cursor. `op` is MDB_SET_RANGE (from *key on), MDB_NEXT, MDB_PREV,
 * MDB_FIRST, MDB_LAST. *more is false past the end, and past the first key that
 * does not begin with the `prefix` bytes.
 */
int pyri_env_step(pyri_walk *cursor, MDB_cursor_op op, pyri_bytes prefix,
                  MDB_val *key, MDB_val *value, bool *more);
int pyri_env_cursor(pyri_txn *txn, MDB_dbi db, pyri_walk **out);
void pyri_env_cursor_close(pyri_walk *cursor);
/* Of a write transaction: delete what it is at. */
int pyri_env_cursor_delete(pyri_walk *cursor);
/* Of a read transaction that was renewed. */
int pyri_env_cursor_renew(pyri_walk *cursor);
/* Of a read transaction: as pyri_env_get(), but it looks on the page where it
 * is before it goes back to the root. */
int pyri_env_cursor_find(pyri_walk *cursor, const void *key, size_t size,
                         MDB_val *out, bool *found);

#endif
