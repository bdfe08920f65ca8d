/*
 * chunk/frag.h - fragments: cells of one chunk as they are stored.
 *
 * A fragment holds the cells of a box inside one chunk: all of them, or with a
 * mask some of them. Cells that are all equal are stored in the fragment's
 * description alone. The others are a blob:
 *
 *     head                          payload
 *     64 bytes | table | padding    [mask |] cells, row-major, maybe pressed
 *
 * The table holds one XXH3 checksum for every PYRI_BLOCK bytes of payload, so
 * that a small read verifies just the blocks it touches; the description holds
 * the checksum of the head, and is itself guarded by the node it stands in.
 * Blobs with a payload of PYRI_LARGE bytes or more are aligned: the payload
 * begins on a page, and so does each block.
 */
#ifndef PYRI_CHUNK_FRAG_H
#define PYRI_CHUNK_FRAG_H

#include "chunk/chunk.h"

#include <sys/uio.h>

enum {
    PYRI_BLOCK = 4096,     /* bytes of payload behind one checksum */
    PYRI_LARGE = 64 << 10  /* smaller payloads are verified as a whole */
};

typedef enum pyri_frag_kind {
    PYRI_FRAG_SAME,   /* every cell is `bits`; no blob */
    PYRI_FRAG_PLAIN,  /* cells as they are in memory, little-endian */
    PYRI_FRAG_PRESSED /* cells through the array's codec */
} pyri_frag_kind;

typedef struct pyri_frag {
    uint64_t version; /* the cells are as of this version */
    pyri_frag_kind kind;
    bool masked;      /* only the cells whose bit is set in the mask */
    bool fold;        /* written to shorten a chain: its cells are those of
                         snapshot `version`, which did not write them all */
    pyri_box box;     /* in cells of the array */
    uint64_t bits;    /* of PYRI_FRAG_SAME */
    uint64_t ref[2];  /* the engine's name of the blob */
    uint64_t stored;  /* bytes of payload */
    uint64_t check;   /* checksum of the head */
    pyri_digest cells;/* of mask and cells, however they are stored */
} pyri_frag;

/* As much of it as there are axes: chains are copied at every commit, and boxes
 * have room for 16. */
static inline void
pyri_frag_copy(int ndim, pyri_frag *to, const pyri_frag *from)
{
    to->version = from->version;
    to->kind = from->kind;
    to->masked = from->masked;
    to->fold = from->fold;
    pyri_box_copy(ndim, &to->box, &from->box);
    to->bits = from->bits;
    to->ref[0] = from->ref[0];
    to->ref[1] = from->ref[1];
    to->stored = from->stored;
    to->check = from->check;
    to->cells = from->cells;
}

/* --- packing ------------------------------------------------------------- */

/* What all fragments of an array have in common. */
typedef struct pyri_frag_style {
    uint64_t array;
    int ndim;
    pyr_type type;
    uint64_t fill;
    pyr_codec codec;
    int level;
} pyri_frag_style;

/* Memory of one worker. Zero-initialise; end with pyri_packer_fini(). After
 * pyri_frag_pack() made a blob, `iov` gathers it from here and from the
 * caller's cells, which must stay until it is put. */
typedef struct pyri_packer {
    struct iovec *iov;
    int niov;
    uint64_t size; /* of the blob */
    bool aligned;
    int iov_room;
    uint8_t *bounce; /* rows, gathered */
    size_t bounce_size;
    pyri_buf head, cells, pressed;
} pyri_packer;

void pyri_packer_fini(pyri_packer *p);

/*
 * Make a fragment of the cells of `box`, found in memory at src (whose base
 * is the box's first cell). Sets all of *frag but version and ref, and adds
 * the cells to *summary (NULL: they are not summed up, nor is it noticed if
 * they are all equal). frag->kind tells if there is a blob to put.
 *
 * With `mask` (a bit per cell of the box, row-major, in pyri_mask_size() bytes
 * whose rest is zero), src is dense and holds only the cells whose bit is set;
 * `set` is how many.
 */
int pyri_frag_pack(pyri_packer *p, const pyri_frag_style *style,
                   const pyri_box *box, pyri_mem src, const uint8_t *mask,
                   uint64_t set, pyri_frag *frag, pyri_summary *summary);

/* The same for cells that are all `bits`, without looking at any: there is no
 * blob. */
void pyri_frag_same(const pyri_frag_style *style, const pyri_box *box,
                    uint64_t bits, pyri_frag *frag, pyri_summary *summary);

/* --- reading back -------------------------------------------------------- */

uint64_t pyri_mask_size(uint64_t cells);
uint64_t pyri_frag_head_size(const pyri_frag *f);
uint64_t pyri_frag_blob_size(const pyri_frag *f);
static inline bool
pyri_frag_aligned(const pyri_frag *f)
{
    return f->stored >= PYRI_LARGE;
}
uint64_t pyri_frag_mask_size(const pyri_frag *f, int ndim); /* 0 if none */

/* PYR_ECORRUPT unless the head is the one that was packed. */
int pyri_frag_check_head(const pyri_frag *f, const uint8_t *head);
/* The same for `n` blocks of payload from block `first` on, which begins at
 * `bytes`; the head must have been checked. */
int pyri_frag_check_blocks(const pyri_frag *f, const uint8_t *head,
                           const uint8_t *bytes, uint64_t first, uint64_t n);

/*
 * The cells of a fragment that is pressed or masked, from its whole, checked
 * payload: *cells points to them, dense, one per cell of the box or per set
 * bit of *mask (NULL if there is none). They live in `room` or the payload.
 */
int pyri_frag_expand(const pyri_frag *f, const pyri_frag_style *style,
                     const uint8_t *payload, pyri_buf *room,
                     const uint8_t **cells, const uint8_t **mask);

/*
 * Look at all of a fragment that has a blob: head, blocks, the mask, and the
 * digest of the cells, pressed or not. With `sum`, which a masked one must not
 * have, the cells are added to it while they are at hand. `room` is memory.
 */
int pyri_frag_check(const pyri_frag *f, const pyri_frag_style *style,
                    const uint8_t *head, const uint8_t *payload, pyri_buf *room,
                    pyri_summary *sum);
/* The same for one that has none. */
int pyri_frag_check_same(const pyri_frag *f, int ndim);

/* --- the description, as it stands in leaves ----------------------------- */

/* `chunk` is the domain of the leaf. */
void pyri_frag_encode(const pyri_frag *f, int ndim, const pyri_box *chunk,
                      pyri_buf *out);
/*
 * Back, in two steps: what it is and where, then the rest of it, or nothing
 * but a step over it. Checks that the box is inside the chunk. A cursor at its
 * end or nonsense gives PYR_ECORRUPT.
 */
int pyri_frag_decode_box(pyri_cursor *c, int ndim, const pyri_box *chunk,
                         pyri_frag *f);
int pyri_frag_decode_rest(pyri_cursor *c, int ndim, pyri_frag *f);
int pyri_frag_skip_rest(pyri_cursor *c, const pyri_frag *f);

/* What to look for in descriptions: a box of the chunk, counted from its
 * corner. */
typedef struct pyri_frag_window {
    int ndim;
    bool usable; /* else none is passed over */
    uint32_t room[PYR_MAX_DIMS], lo[PYR_MAX_DIMS], hi[PYR_MAX_DIMS];
} pyri_frag_window;

void pyri_frag_look_for(int ndim, const pyri_box *chunk, const pyri_box *box,
                        pyri_frag_window *w);
/* Step over descriptions at the cursor, at most so many, as long as they are
 * of versions above `newer` and have nothing of the window. Returns how many;
 * it stops at any that make no sense. */
uint64_t pyri_frag_skip_apart(pyri_cursor *c, const pyri_frag_window *w,
                              uint64_t newer, uint64_t most);
/* Both steps. */
int pyri_frag_decode(pyri_cursor *c, int ndim, const pyri_box *chunk,
                     pyri_frag *f);

#endif
