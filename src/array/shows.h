/*
 * array/shows.h - which cells of a chunk each of its fragments shows.
 */
#ifndef PYRI_ARRAY_SHOWS_H
#define PYRI_ARRAY_SHOWS_H

#include "array/chain.h"

/* What one link shows that none above it hides. */
typedef struct pyri_shown {
    uint64_t held;   /* cells that the fragment holds at all */
    uint64_t cells;
    pyri_box bounds; /* of them; empty if there are none */
} pyri_shown;

typedef struct pyri_shows {
    int ndim;
    pyri_box box;    /* that was looked at */
    uint16_t *owner; /* of each of its cells, row-major: a link, counted from
                        1; 0: fill */
    uint16_t *also;  /* a link that others show there; NULL: nobody asked */
    pyri_shown *links;
    int n;
} pyri_shows; /* end with pyri_shows_fini() */

enum { PYRI_SHOWS_CELLS = 16 << 20 }; /* at most, in the box */

/* Look at the cells of a box. Reads the masks of links that have one. */
int pyri_shows_find(pyri_shows *s, const pyri_array *a, pyri_reader *r,
                    const pyri_chain *chain, const pyri_box *box);
/*
 * Where another chain shows one of these links, and this one something else,
 * let that count as shown, too. link[i] is the one that is link i of the other
 * chain, or -1. A cell can count for one link in this way: of others that it
 * should count for, `left` becomes true. *any: is there one at all?
 */
int pyri_shows_also(pyri_shows *s, const pyri_shows *other, const int *link,
                    bool *left, bool *any);
void pyri_shows_fini(pyri_shows *s);

/*
 * The mask of those cells in `bounds` (inside the box) that are shown by a link
 * that `of` is true for, here or elsewhere; `mask` has room for it, and is zeroed. Returns how
 * many.
 */
uint64_t pyri_shows_mask(const pyri_shows *s, const pyri_box *bounds,
                         const bool *of, uint8_t *mask);

/* Has a masked fragment any cell of the box? Reads its mask. */
int pyri_mask_overlaps(const pyri_array *a, pyri_reader *r, const pyri_frag *f,
                       const pyri_box *box, bool *out);

#endif
