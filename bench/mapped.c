/*
 * bench/mapped.c - boxes from a mapped file of chunks.
 */
#include "mapped.h"

#include "common.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t
chunk_bytes(const grid *g)
{
    return (size_t)(g->chunk[0] * g->chunk[1] * g->chunk[2]) * g->cell;
}

static size_t
grid_bytes(const grid *g)
{
    return (size_t)(g->shape[0] * g->shape[1] * g->shape[2]) * g->cell;
}

/* Where the chunk with these coordinates begins. */
static size_t
chunk_at(const grid *g, const uint64_t c[3])
{
    uint64_t n1 = g->shape[1] / g->chunk[1], n2 = g->shape[2] / g->chunk[2];
    return (size_t)((c[0] * n1 + c[1]) * n2 + c[2]) * chunk_bytes(g);
}

/* --- writing ------------------------------------------------------------- */

static void
gather(const grid *g, const uint64_t c[3], const uint8_t *cells, uint8_t *out)
{
    size_t run = (size_t)g->chunk[2] * g->cell;
    for (uint64_t i = 0; i < g->chunk[0]; i++)
        for (uint64_t j = 0; j < g->chunk[1]; j++, out += run) {
            uint64_t at = ((c[0] * g->chunk[0] + i) * g->shape[1] +
                           c[1] * g->chunk[1] + j) *
                              g->shape[2] +
                          c[2] * g->chunk[2];
            memcpy(out, cells + at * g->cell, run);
        }
}

void
mapped_create(const char *path, const grid *g, const void *cells)
{
    int fd = bench_create(path);
    uint8_t *bounce = bench_alloc(chunk_bytes(g));
    uint64_t c[3];
    for (c[0] = 0; c[0] < g->shape[0] / g->chunk[0]; c[0]++)
        for (c[1] = 0; c[1] < g->shape[1] / g->chunk[1]; c[1]++)
            for (c[2] = 0; c[2] < g->shape[2] / g->chunk[2]; c[2]++) {
                gather(g, c, cells, bounce);
                bench_pwrite(fd, bounce, chunk_bytes(g), chunk_at(g, c));
            }
    bench_free(bounce, chunk_bytes(g));
    close(fd);
}

/* --- reading ------------------------------------------------------------- */

void
mapped_open(mapped *m, const char *path, const grid *g)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    SYS(fd);
    m->g = *g;
    m->bytes = grid_bytes(g);
    m->base = mmap(NULL, m->bytes, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(m->base != MAP_FAILED);
    close(fd);
}

void
mapped_close(mapped *m)
{
    munmap(m->base, m->bytes);
}

/* The part of a box that lies in one chunk. */
static void
copy_chunk(const mapped *m, const uint64_t c[3], const uint64_t offset[3],
           const uint64_t size[3], uint8_t *buf)
{
    const grid *g = &m->g;
    uint64_t lo[3], hi[3];
    for (int d = 0; d < 3; d++) {
        uint64_t first = c[d] * g->chunk[d], end = offset[d] + size[d];
        lo[d] = offset[d] > first ? offset[d] : first;
        hi[d] = end < first + g->chunk[d] ? end : first + g->chunk[d];
    }
    const uint8_t *from = m->base + chunk_at(g, c);
    size_t run = (size_t)(hi[2] - lo[2]) * g->cell;
    for (uint64_t i = lo[0]; i < hi[0]; i++)
        for (uint64_t j = lo[1]; j < hi[1]; j++) {
            uint64_t in = (i % g->chunk[0] * g->chunk[1] + j % g->chunk[1]) *
                              g->chunk[2] +
                          lo[2] % g->chunk[2];
            uint64_t out = ((i - offset[0]) * size[1] + j - offset[1]) *
                               size[2] +
                           lo[2] - offset[2];
            memcpy(buf + out * g->cell, from + in * g->cell, run);
        }
}

void
mapped_read(const mapped *m, const uint64_t offset[3], const uint64_t size[3],
            void *buf)
{
    const grid *g = &m->g;
    uint64_t c[3], first[3], last[3];
    for (int d = 0; d < 3; d++) {
        first[d] = offset[d] / g->chunk[d];
        last[d] = (offset[d] + size[d] - 1) / g->chunk[d];
    }
    for (c[0] = first[0]; c[0] <= last[0]; c[0]++)
        for (c[1] = first[1]; c[1] <= last[1]; c[1]++)
            for (c[2] = first[2]; c[2] <= last[2]; c[2]++)
                copy_chunk(m, c, offset, size, buf);
}
