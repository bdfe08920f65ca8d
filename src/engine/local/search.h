/*
 * engine/local/search.h - finding entries in the pages of a snapshot, with
 * every step checked.
 *
 * Read transactions do not ask LMDB for entries: it trusts its pages, and a
 * damaged one would end the process. They look themselves, in a mapping of
 * their own, and LMDB only keeps the pages of their snapshot from being used
 * again. What leads nowhere is PYR_ECORRUPT with file and page.
 */
#ifndef PYRI_ENGINE_LOCAL_SEARCH_H
#define PYRI_ENGINE_LOCAL_SEARCH_H

#include "base/buf.h"
#include "engine/local/page.h"

#include <stdatomic.h>

/* An LMDB file, mapped for reading. */
typedef struct pyri_pagefile {
    int fd;               /* LMDB's */
    const uint8_t *at;
    size_t page_size;
    uint64_t room;        /* pages that are mapped */
    atomic_ullong there;  /* pages that the file has, when last asked */
    char name[64];        /* "meta/data.mdb", for errors */
} pyri_pagefile;

/* Maps `room` bytes of address space; *f must have fd and name. */
int pyri_pagefile_open(pyri_pagefile *f, size_t page_size, uint64_t room);
void pyri_pagefile_close(pyri_pagefile *f);
/* PYR_ECORRUPT, "<file>: page <page> <what>". */
int pyri_pagefile_fail(const pyri_pagefile *f, uint64_t page,
                       const char *what);

/* What a transaction sees. */
typedef struct pyri_state {
    pyri_pagefile *file;
    uint64_t last; /* the number of its last page */
    pyri_root free, main;
} pyri_state;

/* The state that transaction `id` left behind. *found is false if its
 * description is there no more; *sure, if it may be being written over. */
int pyri_state_find(pyri_pagefile *f, uint64_t id, pyri_state *out,
                    bool *found, bool *sure);
/* The bytes of a page, and of those behind it that a long value has. */
int pyri_state_page(const pyri_state *s, uint64_t page, uint64_t count,
                    const uint8_t **out);
/* The value of an entry of a leaf whose bytes are inside. */
int pyri_state_value(const pyri_state *s, const uint8_t *entry,
                     pyri_bytes *out);

/* A place in a tree. */
typedef struct pyri_spot {
    const pyri_state *state;
    pyri_root root;
    bool is_set;
    struct {
        const uint8_t *page;
        unsigned at, entries;
    } level[PYRI_PAGE_MAX_DEPTH]; /* root first */
} pyri_spot;

void pyri_spot_init(pyri_spot *p, const pyri_state *s, pyri_root root);
/* To the key, or if it is not there (*exact) to the next one; *more is false
 * if there is none. */
int pyri_spot_seek(pyri_spot *p, const void *key, size_t size, bool *exact,
                   bool *more);
/* To the first or last entry, or to the one beside. */
int pyri_spot_edge(pyri_spot *p, bool last, bool *more);
int pyri_spot_move(pyri_spot *p, bool back, bool *more);
/* Key and value there. */
int pyri_spot_get(const pyri_spot *p, pyri_bytes *key, pyri_bytes *value,
                  unsigned *flags);

/* One value. */
int pyri_state_get(const pyri_state *s, pyri_root root, const void *key,
                   size_t size, pyri_bytes *out, unsigned *flags,
                   bool *found);

/* --- guard.c: before LMDB changes pages ---------------------------------- */

/* LMDB looks at pages when it writes, too, moves what is in them, and takes
 * their word for which pages are free. So before it is asked to do something at
 * a key, all of the pages that it may touch are looked at as they were when
 * its transaction began; those that it has made since are its own. */
typedef struct pyri_guard {
    uint64_t seen[256]; /* pages that were looked at, and as what; by their
                           last bits */
} pyri_guard; /* zero-initialise; may be kept for some transactions: if a page
                 is another one then, LMDB has just written it */

/* Pages on the way to a key; with `beside` also those to the left and the
 * right of these, on every level, which LMDB takes entries from when it
 * deletes, and steps to; past those that are nearly empty, one more. */
int pyri_guard_key(pyri_guard *g, const pyri_state *s, pyri_root root,
                   const void *key, size_t size, bool beside);
/* On the way to the first or last entry. */
int pyri_guard_edge(pyri_guard *g, const pyri_state *s, pyri_root root,
                    bool last);
/* Lists of free pages. */
int pyri_guard_free(const pyri_state *s);
/* Is the number of the last page what it can be? Nobody else may write. Tells
 * how long the file is. */
int pyri_guard_last(const pyri_state *s, uint64_t id, uint64_t *length);

#endif
