/*
 * nd/nd.h - n-dimensional arithmetic: cell types, boxes, strided runs, grids,
 * strided copies. No I/O, no allocation. An open shelf: every layer may look.
 */
#ifndef PYRI_ND_ND_H
#define PYRI_ND_ND_H

#include <pyramid/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- cell types (dtype.c) ------------------------------------------------ */

bool pyri_type_valid(int type);
size_t pyri_type_size(pyr_type type); /* 1, 2, 4 or 8 */
const char *pyri_type_name(pyr_type type); /* "i8" ... "f64" */
static inline bool
pyri_type_is_float(pyr_type type)
{
    return type == PYR_F32 || type == PYR_F64;
}
static inline bool
pyri_type_is_signed(pyr_type type)
{
    return type == PYR_I8 || type == PYR_I16 || type == PYR_I32 ||
           type == PYR_I64;
}
/* The bits of one cell, zero-extended, and back. */
uint64_t pyri_cell_load(pyr_type type, const void *cell);
void pyri_cell_store(pyr_type type, void *cell, uint64_t bits);
/* Its value as a double (i64 and u64 rounded). */
double pyri_cell_double(pyr_type type, uint64_t bits);

/* --- boxes (box.c): half-open, lo <= x < hi along each of n axes --------- */

typedef struct pyri_box {
    uint64_t lo[PYR_MAX_DIMS], hi[PYR_MAX_DIMS];
} pyri_box;

/* Copy just the axes that there are. */
static inline void
pyri_box_copy(int n, pyri_box *to, const pyri_box *from)
{
    for (int d = 0; d < n; d++) {
        to->lo[d] = from->lo[d];
        to->hi[d] = from->hi[d];
    }
}

bool pyri_box_empty(int n, const pyri_box *b);
uint64_t pyri_box_cells(int n, const pyri_box *b); /* UINT64_MAX if more */
bool pyri_box_equal(int n, const pyri_box *a, const pyri_box *b);
/* True, and the common part in *out (may be an argument), if there is one. */
bool pyri_box_intersect(int n, const pyri_box *a, const pyri_box *b,
                        pyri_box *out);
bool pyri_box_overlaps(int n, const pyri_box *a, const pyri_box *b);
bool pyri_box_contains(int n, const pyri_box *outer, const pyri_box *inner);
/* Grow *a to hold b as well; an empty *a becomes b. */
void pyri_box_cover(int n, pyri_box *a, const pyri_box *b);
/* a minus b as at most 2 n boxes that do not overlap; returns how many. They
 * and the common part together are a. b must overlap a. */
int pyri_box_subtract(int n, const pyri_box *a, const pyri_box *b,
                      pyri_box *out);
/* "[0:10, 5:7]" into text of the given size; returns text. */
char *pyri_box_text(int n, const pyri_box *b, char *text, size_t size);

/* --- strided runs (run.c): count blocks of `block` cells, stride apart --- */

typedef struct pyri_run {
    uint64_t start[PYR_MAX_DIMS], block[PYR_MAX_DIMS];
    uint64_t count[PYR_MAX_DIMS], stride[PYR_MAX_DIMS];
} pyri_run;

/* The run that is just a box. */
pyri_run pyri_run_of_box(int n, const pyri_box *b);
/* True if every count is 1, so that it is just a box. */
bool pyri_run_is_box(int n, const pyri_run *r);
void pyri_run_bounds(int n, const pyri_run *r, pyri_box *out);
/* True if any cell of the run is in the box. */
bool pyri_run_overlaps(int n, const pyri_run *r, const pyri_box *b);
/* Along axis d: the first block, from block i on, that has a cell in
 * [lo, hi); false if there is none. *at and *end are its cells inside. */
bool pyri_run_next(const pyri_run *r, int d, uint64_t lo, uint64_t hi,
                   uint64_t *i, uint64_t *at, uint64_t *end);

/* --- copies between strided memories (copy.c) ---------------------------- */

typedef struct pyri_mem {
    uint8_t *base;
    int64_t step[PYR_MAX_DIMS]; /* bytes to the neighbour along each axis */
} pyri_mem;

/* Memory that holds the box densely, row-major. */
pyri_mem pyri_mem_dense(int n, size_t cell, const pyri_box *box, void *base);
/* The same memory seen from another corner: where `to` is, if `from` is at
 * base. */
pyri_mem pyri_mem_move(int n, pyri_mem m, const uint64_t *from,
                       const uint64_t *to);
/* Copy extent[0] x ... cells of `cell` bytes from src to dst. */
void pyri_copy(int n, size_t cell, const uint64_t *extent,
               pyri_mem dst, pyri_mem src);
/* The same, with long rows written past the caches: for more than they hold. */
void pyri_copy_past(int n, size_t cell, const uint64_t *extent, pyri_mem dst,
                    pyri_mem src);
/* Set the cells to the given bits. */
void pyri_set(int n, size_t cell, const uint64_t *extent, pyri_mem dst,
              uint64_t bits);

/*
 * The shape of a copy from one side: axes that are contiguous are joined, so
 * that `run` bytes are in one piece and `outer` axes of pieces remain.
 */
typedef struct pyri_rows {
    int outer;
    uint64_t extent[PYR_MAX_DIMS];
    int64_t step[PYR_MAX_DIMS];
    uint64_t run;    /* bytes in one piece */
    uint64_t pieces; /* product of extents */
} pyri_rows;
void pyri_rows_of(int n, size_t cell, const uint64_t *extent,
                  const int64_t *step, pyri_rows *out);

/* --- rows that will be visited soon (prefetch.c) ------------------------- */

typedef struct pyri_prefetch {
    const pyri_rows *rows;
    uint64_t left; /* rows, with this one; 0: nothing is fetched */
    const uint8_t *row;
    uint64_t done; /* bytes of it */
    uint64_t index[PYR_MAX_DIMS];
} pyri_prefetch;

/* Borrows the rows for as long as it is used. */
void pyri_prefetch_begin(pyri_prefetch *p, const pyri_rows *rows,
                         const uint8_t *at);
/* Have so many bytes more brought into the cache, in the order of rows. */
void pyri_prefetch_more(pyri_prefetch *p, uint64_t bytes);
/* pyri_copy(), with rows that come next brought into the cache meanwhile: a few
 * for each that is copied. `next` may be NULL. */
void pyri_copy_before(int n, size_t cell, const uint64_t *extent,
                      pyri_mem dst, pyri_mem src, pyri_prefetch *next);

#endif
