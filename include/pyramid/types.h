/*
 * pyramid/types.h - cells, versions and parts of arrays: plain values.
 */
#ifndef PYRAMID_TYPES_H
#define PYRAMID_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PYR_MAX_DIMS 16
#define PYR_MAX_NAME 255 /* bytes in the name of an array or tag */

typedef struct pyr_store pyr_store; /* an open store */
typedef struct pyr_array pyr_array; /* an open array of it */

typedef uint64_t pyr_version;
#define PYR_LATEST UINT64_MAX /* the newest published snapshot */

typedef enum pyr_type {
    PYR_I8,
    PYR_U8,
    PYR_I16,
    PYR_U16,
    PYR_I32,
    PYR_U32,
    PYR_I64,
    PYR_U64,
    PYR_F32,
    PYR_F64
} pyr_type;

typedef enum pyr_codec {
    PYR_CODEC_NONE, /* cells as they are: small reads touch only their bytes */
    PYR_CODEC_LZ4,  /* Blosc: shuffle, then LZ4; fast */
    PYR_CODEC_ZSTD  /* Blosc: shuffle, then Zstandard; small */
} pyr_codec;

/* What a new array is. Zero-initialise, then set what matters. */
typedef struct pyr_spec {
    int             ndim;
    const uint64_t *shape;
    const uint64_t *chunk; /* NULL: chosen */
    pyr_type        type;
    const void     *fill;  /* one cell; NULL: zero */
    pyr_codec       codec;
    int             level; /* of compression, 1 to 9; 0: chosen */
    const char     *attributes; /* JSON; NULL: {} */
} pyr_spec;                     /* may grow at the end */

/*
 * One part of an array and the memory that holds its cells. Zero-initialise;
 * offset, size and buf make a plain box.
 *
 * With `count`, the part is a strided run as MPI vector types describe them:
 * along each axis d, count[d] blocks of size[d] cells whose first cells are
 * stride[d] apart. In memory the cells of a run stand close together, as an
 * array of count[d] * size[d] cells along each axis.
 *
 *     offset 1, size 2, stride 5, count 3 along one axis:
 *       . X X . . . X X . . . X X . .
 */
typedef struct pyr_part {
    const uint64_t *offset; /* its first cell */
    const uint64_t *size;   /* cells along each axis (of one block) */
    const uint64_t *count;  /* blocks along each axis; NULL: 1 */
    const uint64_t *stride; /* between blocks, at least size; NULL: size */
    void           *buf;    /* its cells; only read from by writes */
    const int64_t  *step;   /* bytes in memory from a cell to its neighbour
                               along each axis; NULL: row-major, no gaps */
} pyr_part;

#ifdef __cplusplus
}
#endif

#endif
