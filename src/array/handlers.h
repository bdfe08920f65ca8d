/*
 * array/handlers.h - functions that cells go through on their way into an
 * array.
 *
 * The record handler/ID lists them. The array's mark (engine.h) changes with
 * it and is 0 if there are none: every writer is told the mark with the newest
 * version, which it asks for anyway, and reads the record if the mark is
 * another one than it knows.
 */
#ifndef PYRI_ARRAY_HANDLERS_H
#define PYRI_ARRAY_HANDLERS_H

#include "array/array.h"
#include "op/op.h"

enum {
    PYRI_MAX_HANDLERS = 16, /* of an array */
    PYRI_HANDLER_ON_WRITE = PYR_ON_WRITE
};

/* --- their list ---------------------------------------------------------- */

typedef struct pyri_handler {
    uint32_t number;
    uint8_t event;
    int64_t time_ns;
    const char *who, *text; /* in `texts` of the list */
} pyri_handler;

typedef struct pyri_handler_list {
    uint32_t next; /* number of the one that is added next */
    size_t n;
    pyri_handler list[PYRI_MAX_HANDLERS];
    pyri_buf texts; /* each ended by zero */
} pyri_handler_list; /* zero-initialise; end with pyri_handler_list_fini() */

void pyri_handler_list_fini(pyri_handler_list *l);
void pyri_handler_list_encode(const pyri_handler_list *l, pyri_buf *out);
int pyri_handler_list_decode(pyri_bytes bytes, pyri_handler_list *l);

/* --- at work ------------------------------------------------------------- */

/* The handlers of an array, ready to run; shared, never changed. */
typedef struct pyri_handlers pyri_handlers;

/* Newest version of the array, its shape, and its handlers from now on: *out
 * is NULL if there are none. A reference that the caller ends. */
int pyri_handlers_latest(pyri_array *a, pyri_reader *r, uint64_t *label,
                         uint64_t *shape, const pyri_handlers **out);
/* The same without a reader at hand. */
int pyri_handlers_begin(pyri_array *a, uint64_t *label, uint64_t *shape,
                        const pyri_handlers **out);
const pyri_handlers *pyri_handlers_again(const pyri_handlers *h); /* one more */
void pyri_handlers_end(const pyri_handlers *h); /* NULL is allowed */

/* Their texts, for the history. */
const char *pyri_handlers_text(const pyri_handlers *h);
/* True if cells that are alike stay so: no coordinate is looked at. */
bool pyri_handlers_uniform(const pyri_handlers *h);
/* Append their programs to a list that has room for PYRI_MAX_HANDLERS; false if
 * one of them is not all there is to it: it calls kernels. */
bool pyri_handlers_list(const pyri_handlers *h, const pyri_program **list,
                        int *n);
/* Run them over the cells of a box, dense, in place. Any thread. The failure
 * names handler and array. */
int pyri_handlers_run(const pyri_handlers *h, const pyri_box *box,
                      void *cells);

#endif
