/*
 * bench/mapped.h - the yardstick of small reads: a mapped file of chunks.
 *
 * Chunks stand one after the other in the file, row-major among themselves and
 * within. A box is copied out by one memcpy() per row of every chunk that it
 * meets. There are no versions, no checksums, no locks: the least that any
 * chunked store could do.
 */
#ifndef BENCH_MAPPED_H
#define BENCH_MAPPED_H

#include <stddef.h>
#include <stdint.h>

/* Up to three axes; an array of two has a first axis of length 1. Extents are
 * multiples of the chunk's. */
typedef struct grid {
    uint64_t shape[3], chunk[3];
    size_t cell; /* bytes */
} grid;

typedef struct mapped {
    grid g;
    uint8_t *base;
    size_t bytes;
} mapped;

/* Write row-major `cells` as chunks, one pwrite() each. */
void mapped_create(const char *path, const grid *g, const void *cells);
void mapped_open(mapped *m, const char *path, const grid *g);
void mapped_close(mapped *m);

void mapped_read(const mapped *m, const uint64_t offset[3],
                 const uint64_t size[3], void *buf);

#endif
