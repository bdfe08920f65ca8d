/*
 * engine/local/aside.h - what is known of an environment beside LMDB: its user
 * context. Only env.c and txn.c need it.
 */
#ifndef PYRI_ENGINE_LOCAL_ASIDE_H
#define PYRI_ENGINE_LOCAL_ASIDE_H

#include "engine/local/env.h"
#include "engine/local/search.h"

#include <limits.h>
#include <pthread.h>

enum {
    PYRI_MAX_NAMED = 4,
    PYRI_MAX_DATABASES = 2 + PYRI_MAX_NAMED /* free pages, and the main one */
};

typedef struct pyri_aside {
    pyri_pagefile file;
    char path[PATH_MAX]; /* of the file */
    const char *remedy;
    const char *names[PYRI_MAX_DATABASES]; /* set when they are opened */
    /* Of writers. LMDB's lock guards these. The thread sanitizer does not see
     * that one; so each passes through ours, when it begins and before it
     * ends. */
    pthread_mutex_t gate;
    pyri_guard guard;
    unsigned guarded; /* transactions with it as it is */
    bool free_seen;   /* the lists of free pages were looked at once */
    uint64_t length;  /* of the file, when the transaction began */
    bool grows;       /* as planned */
    pyri_growth growth; /* what it was, for ahead.c */
    struct pyri_turn *turn; /* NULL: nobody else can be there */
    uint32_t pid;
} pyri_aside;

#endif
