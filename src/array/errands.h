/*
 * array/errands.h - functions of chunks that the engine runs where their
 * fragments are (chunk/errand.h).
 */
#ifndef PYRI_ARRAY_ERRANDS_H
#define PYRI_ARRAY_ERRANDS_H

#include "array/handlers.h"
#include "array/sources.h"
#include "chunk/errand.h"

enum { PYRI_ERRANDS = 256 }; /* that are sent at a time */

/* A list of errands of one function. Zero-initialise; end with
 * pyri_errands_fini(). */
typedef struct pyri_errands {
    const pyri_sources *s;
    pyri_reader *reader;
    pyri_bytes programs[1 + PYRI_MAX_HANDLERS]; /* the function first */
    int nprograms;
    pyri_buf code; /* behind these */
    pyri_buf reduction;
    size_t n;
    pyri_errand *list; /* PYRI_ERRANDS of them; heap */
    size_t *tag;       /* what the caller knows each by */
    uint64_t *bytes;   /* that it would have to read */
    struct pyri_trip *trips;
} pyri_errands;

/* *can is false if the engine runs no such function; then there is nothing to
 * end. */
int pyri_errands_begin(pyri_errands *e, const pyri_sources *s, bool *can);
void pyri_errands_fini(pyri_errands *e);
/* Add the function of a box of one chunk, unless no cell would be saved its
 * way: what is of one value in each source is better done at once. */
int pyri_errands_add(pyri_errands *e, const pyri_box *box, size_t tag);
static inline bool
pyri_errands_full(const pyri_errands *e)
{
    return e->n == PYRI_ERRANDS;
}
/* Send them; the list says which are done. Then begin a new list. */
int pyri_errands_compute(pyri_errands *e);
int pyri_errands_reduce(pyri_errands *e);
void pyri_errands_clear(pyri_errands *e);

#endif
