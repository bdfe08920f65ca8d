/*
 * support/interpose.h - the system calls of a whole process: the library's, and
 * those of the libraries that it uses.
 *
 * A program that links interpose.c defines open(), pwrite(), malloc() and so
 * on itself, and the dynamic linker lets all shared libraries use these. They
 * follow the plan of base/sys.h, as calls that are `foreign` (calls of Pyramid
 * itself were counted there already), and can note all that happens to files:
 *
 *   trace *t = trace_new(room);            in memory that a child shares
 *   interpose_trace(t, "/tmp/x");          from now on, below this directory
 *
 * Only system calls are seen: what is written into a mapped file is not. LMDB
 * and Pyramid do that in lock.mdb and live/ only, which no restart keeps.
 */
#ifndef SUPPORT_INTERPOSE_H
#define SUPPORT_INTERPOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum trace_kind {
    TRACE_KNOWN,  /* `name` is the path of what was there before, as `id` */
    TRACE_CREATE, /* a file `id`, as `name` in directory `dir` */
    TRACE_MKDIR,  /* likewise */
    TRACE_WRITE,  /* `size` bytes at `at`, which follow the event */
    TRACE_RESIZE, /* to `at` bytes */
    TRACE_RENAME, /* `id`, `name` in `dir`, to `to` in `dir_to` */
    TRACE_UNLINK, /* `name` in `dir`, which is `id` */
    TRACE_SYNC,   /* `id` is on stable storage: data, or names in it */
    TRACE_NOTE,   /* trace_note(): `at` */
} trace_kind;

typedef struct trace_event {
    trace_kind kind;
    bool durable; /* a write through O_DSYNC */
    uint32_t id, dir, dir_to;
    uint64_t at, size;
    char name[120], to[64];
} trace_event;

typedef struct trace {
    size_t used, room;
    bool overflow;
    _Alignas(8) uint8_t bytes[]; /* events, each followed by its data, 8-aligned */
} trace;

trace *trace_new(size_t room);
void trace_free(trace *t);

/* The event after `e`, from NULL on; NULL at the end. */
const trace_event *trace_next(const trace *t, const trace_event *e);
const uint8_t *trace_data(const trace_event *e);

/* Begins to note what happens below `root`, which exists, and what is in it
 * now; NULL ends it. */
void interpose_trace(trace *t, const char *root);
void trace_note(uint64_t at);

/* Calls that sync return at once, for tests that only look at what they are
 * told. */
void interpose_skip_syncs(bool skip);

/* Makes random numbers the same in every run; 0: random again. */
void interpose_seed(uint64_t seed);

/* Lets foreign calls for memory follow the plan, too; per thread. */
void interpose_memory(bool on);

#endif
