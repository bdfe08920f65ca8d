/*
 * chunk/errand.h - functions that are sent to where the cells are.
 *
 * An errand is a function of the cells of one box of one chunk, and a list of
 * the fragments that show there. An engine that can do it where the fragments
 * are stored saves their way to the caller and back. It need not be able to do
 * all: what it leaves, the caller does with the cells at hand, and gets the
 * same result, as both run the code of op/ and chunk/.
 *
 * Pieces of a source lie on each other, the last one on top, and on fill; so a
 * source without pieces is all fill. Fragments are plain or of one value.
 */
#ifndef PYRI_CHUNK_ERRAND_H
#define PYRI_CHUNK_ERRAND_H

#include "chunk/frag.h"

typedef struct pyri_errand_piece {
    int source;
    const pyri_frag *frag;
    pyri_box shown; /* inside the box of the errand, and of the fragment */
} pyri_errand_piece;

typedef struct pyri_errand {
    const pyri_frag_style *style;
    pyri_box box;
    const pyri_bytes *programs; /* as pyri_program_encode() gives them: a
                                   function of the sources, and others that
                                   what comes out goes through */
    int nprograms;
    const pyri_errand_piece *pieces;
    size_t npieces;
    const void *cells; /* of compute: x, dense, comes along and is not stored
                          anywhere yet; there are no pieces. Else NULL */
    pyri_bytes reduction; /* of reduce: as pyri_serve_ask() gives it */

    bool done;        /* set; false: the caller has to do it itself */
    pyri_frag frag;   /* of compute, set: a fragment that was put, or one of a
                         single value; all of it but its version */
    pyri_summary sum; /* of its cells */
    pyri_bytes answer; /* of reduce: for pyri_serve_take(); view */
} pyri_errand;

#endif
