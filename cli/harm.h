/*
 * cli/harm.h - one line, or one JSON object, for each thing that is harmed.
 */
#ifndef CLI_HARM_H
#define CLI_HARM_H

#include "cmd.h"

/* A verb that walks a whole store. */
typedef struct walk_verb {
    unsigned flags; /* the store is opened with */
    bool deep;
    /* Does it; the counts go into *counts, the number of harms into *harms. */
    int (*walk)(pyr_store *s, const pyr_verify_spec *spec, void *counts,
                uint64_t *harms);
    void (*show)(json *j, const void *counts);
    void (*print)(const void *counts);
    const char *beyond; /* says more of what is harmed, for stderr */
} walk_verb;

/* With the option --jobs. `counts` has room for what `walk` tells. */
int harm_run(const args *a, const walk_verb *w, void *counts);

#endif
