/*
 * chunk/chunk.h - what is known of cells without looking at them: summaries;
 * and how they are pressed: codecs. The door of the layer; fragments, the
 * stored form of cells, are in chunk/frag.h.
 */
#ifndef PYRI_CHUNK_CHUNK_H
#define PYRI_CHUNK_CHUNK_H

#include "base/buf.h"
#include "base/hash.h"
#include "nd/nd.h"

/* --- summaries (summary.c) ----------------------------------------------- */

typedef unsigned __int128 pyri_u128;

/*
 * What some cells have in common. NaNs count in count, nans and not_fill and
 * in nothing else. Sums of integers are exact (two's complement, 128 bits);
 * sums of reals carry a second double with what the first one lost.
 */
typedef struct pyri_summary {
    uint64_t count;     /* cells */
    uint64_t nans;
    uint64_t not_fill;  /* cells whose bits differ from the fill value's */
    uint64_t min, max;  /* bits of a cell; if count == nans, min holds the
                           bits of the first cell and max is the same */
    pyri_u128 sum_int;  /* of integer types */
    double sum, sum_lost; /* of real types */
    double squares;     /* sum of squares, all types */
    bool equal;         /* all cells have the same bits; then they are min's */
} pyri_summary;

enum { PYRI_SUMMARY_BYTES = 72 }; /* stored size; layout in summary.c */

/* A number whose order is that of the cells, of as many bits as they have; -0.0
 * is below +0.0. And back. */
uint64_t pyri_cell_order(pyr_type type, uint64_t bits);
uint64_t pyri_cell_of_order(pyr_type type, uint64_t order);

/* Of no cells: the start of a merge. */
void pyri_summary_init(pyri_summary *s);
/* Add n cells that stand one after the other. Vectorised; fast enough to run
 * on every byte that is written. */
void pyri_summary_add(pyri_summary *s, pyr_type type, uint64_t fill,
                      const void *cells, size_t n);
/* Add n cells of one value. */
void pyri_summary_add_same(pyri_summary *s, pyr_type type, uint64_t fill,
                           uint64_t bits, uint64_t n);
/* *s becomes the summary of both. */
void pyri_summary_merge(pyri_summary *s, pyr_type type,
                        const pyri_summary *other);
/* *s becomes the summary of its cells without those of `part`, if that can be
 * said without looking at them: false, and *s unchanged, if the part may hold
 * the only minimum or maximum, if a real sum would lose its accuracy, or if it
 * cannot be a part. `rest` has the minimum and maximum of what remains. NULL:
 * nobody has looked. */
bool pyri_summary_subtract(pyri_summary *s, pyr_type type, uint64_t fill,
                           const pyri_summary *part, const pyri_summary *rest);
/* NULL if both can be of the same cells, put together in any order; else what
 * tells them apart. */
const char *pyri_summary_differs(pyr_type type, const pyri_summary *a,
                                 const pyri_summary *b);
void pyri_summary_encode(const pyri_summary *s, pyr_type type,
                         uint8_t out[PYRI_SUMMARY_BYTES]);
/* PYR_ECORRUPT if the bytes contradict themselves. */
int pyri_summary_decode(pyri_summary *s, pyr_type type,
                        const uint8_t in[PYRI_SUMMARY_BYTES]);

/* Is it of cells that are all the same? Then their bits and how many. Looks at
 * a stored summary without decoding the rest. */
bool pyri_summary_peek_same(const uint8_t *in, uint64_t *bits,
                            uint64_t *count);

/* --- codecs (codec_blosc.c) ---------------------------------------------- */

bool pyri_codec_valid(int codec, int level); /* level 0: chosen */
const char *pyri_codec_name(pyr_codec codec); /* "none", "lz4", "zstd" */

/*
 * Press `size` bytes of cells into out (room for size bytes); *pressed is set
 * to the pressed size, or to 0 if it would not be smaller. No threads of its
 * own; any number of threads may call.
 */
int pyri_codec_press(pyr_codec codec, int level, size_t cell, const void *in,
                     size_t size, void *out, size_t *pressed);

/* PYR_ECORRUPT unless they say of themselves that `size` bytes are in them: to
 * be asked before there is memory for so many. */
int pyri_codec_check(const void *in, size_t pressed, size_t size);

/* Undo it: exactly `size` bytes must come out, else PYR_ECORRUPT. */
int pyri_codec_expand(const void *in, size_t pressed, void *out, size_t size);

#endif
