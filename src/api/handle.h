/*
 * api/handle.h - what is behind the public handles, and the checks that every
 * public call begins with.
 */
#ifndef PYRI_API_HANDLE_H
#define PYRI_API_HANDLE_H

#include "array/array.h"

#include <pyramid/pyramid.h>

struct pyr_store {
    pyri_engine *engine;
    pyri_tidy *tidy; /* or NULL */
};

struct pyr_array {
    pyri_array *array;
};

struct pyr_batch {
    pyri_batch *batch;
    pyri_array *array;
};

/* PYR_EINVAL "<call>: <what> is NULL" if it is. */
int pyri_need(const void *pointer, const char *call, const char *what);
/* PYR_EREADONLY unless the store may be changed. */
int pyri_need_writable(const pyri_engine *e, const char *call);
/* The length of the UTF-8 sequence that a text begins with; 0 if it is none. */
size_t pyri_utf8_length(const char *text);
/* Names of arrays and tags; `kind` is for the text. */
int pyri_check_name(const char *name, const char *kind);
/* A spec, as a schema; *schema is to be ended with pyri_form_fini(form). */
int pyri_check_spec(const pyr_spec *spec, pyri_schema *schema);
/* A shape: its cells can be counted. */
int pyri_check_shape(int ndim, const uint64_t *shape);
/* A part, checked and completed. */
int pyri_check_part(const pyri_array *a, const pyr_part *part, pyri_part *out);
/* A box: no wrapping. */
int pyri_check_box(const pyri_array *a, const uint64_t *offset,
                   const uint64_t *size, pyri_box *out);
/* How a version is to be made; options may be NULL. */
int pyri_check_how(const pyr_write_options *options, pyri_write_how *how);
/* PYR_EINVAL, saying where, unless the text is one JSON object. */
int pyri_check_json(const char *text);

#endif
