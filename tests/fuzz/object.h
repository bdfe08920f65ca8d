/*
 * fuzz/object.h - an object as a class method finds it, always the same: one
 * blob of cells, for requests that name it.
 */
#ifndef FUZZ_OBJECT_H
#define FUZZ_OBJECT_H

#include "fuzz/fuzz.h"

#include "chunk/frag.h"

enum { OBJECT_ROWS = 12, OBJECT_COLUMNS = 20,
       OBJECT_CELLS = OBJECT_ROWS * OBJECT_COLUMNS };

/* What requests to the class are about. */
enum { OBJECT_COMPUTE, OBJECT_REDUCE, OBJECT_STORE, OBJECT_MADE,
       OBJECT_RELEASE, OBJECT_TABLE, OBJECT_HARM, OBJECT_DEEDS };

static const pyri_box object_box = {.hi = {OBJECT_ROWS, OBJECT_COLUMNS}};

/* The blob, in `k`, of cells of two or eight bytes, two axes; end `k` with
 * pyri_packer_fini(). */
static inline void
object_pack(pyr_type type, pyri_packer *k, pyri_frag *f)
{
    static int16_t shorts[OBJECT_CELLS];
    static double reals[OBJECT_CELLS];
    void *cells = type == PYR_I16 ? (void *)shorts : (void *)reals;
    pyri_frag_style style = {.array = 7, .ndim = 2, .type = type, .fill = 0};
    pyri_summary sum;
    for (int i = 0; i < OBJECT_CELLS; i++) {
        shorts[i] = (int16_t)(i * i);
        reals[i] = i / 8.0;
    }
    pyri_summary_init(&sum);
    *k = (pyri_packer){0};
    MUST(pyri_frag_pack(k, &style, &object_box,
                        pyri_mem_dense(2, pyri_type_size(type), &object_box,
                                       cells),
                        NULL, 0, f, &sum) == 0);
    MUST(f->kind == PYRI_FRAG_PLAIN);
}

#endif
