/*
 * bench/play_pyramid.c - the player whose store is Pyramid.
 */
#include "player.h"

#include <stdlib.h>

typedef struct hold {
    pyr_store *store;
    pyr_array *array;
} hold;

static void
open_array(slate *s, const char *path, bool make)
{
    hold *h = s->own = calloc(1, sizeof *h);
    uint64_t zero[PLAYER_AXES] = {0};
    CHECK(h);
    if (!make) {
        OK(pyr_open(path, 0, &h->store));
        OK(pyr_array_open(h->store, "a", &h->array));
        return;
    }
    h->store = bench_store(path,
                           s->sync ? PYR_DURABILITY_COMMIT : PYR_DURABILITY_OS);
    OK(pyr_create(h->store, "a",
                  &(pyr_spec){.ndim = s->ndim,
                              .shape = s->shape,
                              .chunk = s->chunk,
                              .type = s->real32 ? PYR_F32 : PYR_F64,
                              .codec = s->pressed ? PYR_CODEC_ZSTD
                                                  : PYR_CODEC_NONE},
                  &h->array));
    OK(pyr_write(h->array, zero, s->shape, s->source, NULL));
}

static void
close_array(slate *s)
{
    hold *h = s->own;
    pyr_array_close(h->array);
    pyr_close(h->store);
    free(h);
}

static void
read_box(slate *s, uint64_t snapshot, const uint64_t *offset,
         const uint64_t *size, void *buf)
{
    hold *h = s->own;
    OK(pyr_read(h->array, snapshot ? snapshot : PYR_LATEST, offset, size, buf));
}

static void
update(slate *s, const uint64_t *offset, const uint64_t *size,
       const void *cells)
{
    hold *h = s->own;
    OK(pyr_write(h->array, offset, size, cells, NULL));
}

static void
append(slate *s, const void *frame)
{
    hold *h = s->own;
    OK(pyr_append(h->array, 0, 1, frame, NULL, NULL));
}

static double
mean(slate *s, const uint64_t *offset, const uint64_t *size)
{
    hold *h = s->own;
    pyr_stats stats;
    OK(pyr_stat(h->array, PYR_LATEST, offset, size, 0, &stats));
    return stats.mean;
}

static uint64_t
change(slate *s, const uint64_t *offsets, const uint64_t *size,
       const void *cells, int n)
{
    hold *h = s->own;
    pyr_part parts[64] = {{0}};
    pyr_version made;
    size_t bytes = s->cell;
    for (int d = 0; d < s->ndim; d++)
        bytes *= (size_t)size[d];
    for (int i = 0; i < n; i++) {
        parts[i].offset = offsets + i * s->ndim;
        parts[i].size = size;
        parts[i].buf = (void *)((uintptr_t)cells + (size_t)i * bytes);
    }
    OK(pyr_write_list(h->array, parts, (size_t)n, NULL, &made));
    return made;
}

static uint64_t
versions(slate *s)
{
    hold *h = s->own;
    pyr_version latest;
    OK(pyr_latest(h->array, &latest));
    return latest;
}

static int
count_box(void *ctx, int ndim, const uint64_t *offset, const uint64_t *size)
{
    ++*(uint64_t *)ctx;
    return 0;
}

static uint64_t
diff(slate *s, uint64_t a, uint64_t b)
{
    hold *h = s->own;
    uint64_t boxes = 0;
    OK(pyr_diff(h->array, a, b, count_box, &boxes));
    return boxes;
}

int
main(int argc, char **argv)
{
    static const backend b = {.open = open_array,
                              .close = close_array,
                              .read = read_box,
                              .update = update,
                              .append = append,
                              .mean = mean,
                              .change = change,
                              .versions = versions,
                              .diff = diff};
    return player_main(argc, argv, &b);
}
