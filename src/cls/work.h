/*
 * cls/work.h - a function and the cells that it is sent to: a request that was
 * checked, and what it reads.
 *
 * On the wire, after what the method itself asks: id of the array (8), axes
 * (1), cell type (1), fill (8), the box (varints, lo and hi of each axis); the
 * number of programs (1), each a string; the number of pieces (varint), each:
 * source (1), is it of one value (1), what is shown of it (a box); then its
 * bits (8), or the box of the fragment, its place in the object (varint, in
 * PYRI_SLOT_UNIT), bytes of payload (varint) and checksum of its head (8).
 *
 * Pieces of a source lie on each other, the last one on top, and on fill.
 */
#ifndef PYRI_CLS_WORK_H
#define PYRI_CLS_WORK_H

#include "chunk/frag.h"
#include "cls/object.h"
#include "cls/slots.h"
#include "op/op.h"

typedef struct pyri_piece {
    uint8_t source;
    bool same;
    uint32_t at;
    uint64_t bits;
    pyri_box shown; /* inside the box of the work and of the fragment */
    pyri_frag frag; /* box, stored and check of one that has cells */
} pyri_piece;

typedef struct pyri_work {
    pyri_frag_style style;
    pyri_box box;
    size_t bytes; /* of the cells in it, in one source */
    int nprograms;
    pyri_program *programs; /* the first one reads the sources, each other one
                               what the one before it gave */
    size_t npieces;
    pyri_piece *pieces;
    const void *src[PYRI_OP_MAX_SOURCES];
    uint8_t *cells[PYRI_OP_MAX_SOURCES]; /* memory behind src; scratch */
    uint8_t *room;   /* the object's memory: place for a head, */
    uint8_t *result; /* and what comes out */
} pyri_work; /* zero-initialise; end with pyri_work_fini() */

void pyri_work_fini(pyri_work *w);
/* From the request, up to its end. PYRI_CLS_BAD if it makes no sense,
 * PYRI_CLS_FULL if it is too much for an OSD. */
int pyri_work_decode(pyri_cursor *in, pyri_work *w);
/* Read and verify the cells. PYRI_CLS_NONE if a blob is not in the object;
 * PYRI_CLS_BAD if its bytes are not those that were meant. */
int pyri_work_load(pyri_object *o, const pyri_slots *s, pyri_work *w);
/* Run the programs: w->result, in memory of the object. */
int pyri_work_run(pyri_object *o, pyri_work *w);
/* What was packed of the result, in one piece: the head goes in front of it, in
 * memory that is written as it is. */
void pyri_work_join(const pyri_work *w, pyri_packer *k);

#endif
