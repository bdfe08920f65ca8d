/*
 * examples/threshold.c - a volume becomes a mask.
 *
 * A scan of 4000^3 voxels of which a small part was ever written: what was not
 * costs nothing, neither here nor there. Otsu's threshold is found from a
 * histogram, then applied; the volume before it is still version 1.
 */
#include <pyramid/pyramid.h>

#include "scratch.h"

#include <stdint.h>

enum { SIDE = 4000, PART = 96, BINS = 256 };

static void
check(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "threshold: %s: %s\n", what, pyr_errmsg());
    exit(1);
}

/* A ball of about 180 in something of about 60. */
static void
scan(uint8_t *voxels)
{
    for (int i = 0; i < PART * PART * PART; i++) {
        int x = i % PART - 48, y = i / PART % PART - 48, z = i / PART / PART - 48;
        int ball = x * x + y * y + z * z < 30 * 30;
        voxels[i] = (uint8_t)((ball ? 180 : 60) + (x * 5 + y * 3 + z) % 17);
    }
}

/* Where both sides of the histogram are most alike in themselves. */
static int
otsu(const uint64_t *counts)
{
    double all = 0, sum = 0, low = 0, low_sum = 0, best = -1;
    int at = 0;
    for (int i = 1; i < BINS; i++) { /* 0 is what nobody scanned */
        all += (double)counts[i];
        sum += (double)counts[i] * i;
    }
    for (int i = 1; i < BINS; i++) {
        low += (double)counts[i];
        low_sum += (double)counts[i] * i;
        if (low == 0 || low == all)
            continue;
        double gap = low_sum / low - (sum - low_sum) / (all - low);
        double between = low * (all - low) * gap * gap;
        if (between > best) {
            best = between;
            at = i;
        }
    }
    return at;
}

int
main(void)
{
    static uint8_t voxels[PART * PART * PART];
    const uint64_t shape[3] = {SIDE, SIDE, SIDE}, chunk[3] = {64, 64, 64};
    const uint64_t origin[3] = {0, 0, 0}, at[3] = {1000, 2000, 3000};
    const uint64_t size[3] = {PART, PART, PART};
    pyr_spec spec = {.ndim = 3, .shape = shape, .chunk = chunk, .type = PYR_U8};
    pyr_store *store;
    pyr_array *array;
    pyr_version made;
    pyr_value histogram, inside;
    char function[100];

    check(pyr_open(scratch_store(), PYR_OPEN_CREATE, &store) == 0, "open");
    check(pyr_create(store, "scan", &spec, &array) == 0, "create");
    scan(voxels);
    check(pyr_write(array, at, size, voxels, NULL) == 0, "write");
    check(pyr_reduce(array, PYR_LATEST, origin, shape,
                     "histogram(x, 0, 256, 256)", &histogram) == 0,
          "histogram");
    int level = otsu(histogram.counts);
    pyr_value_free(&histogram);
    snprintf(function, sizeof function, "where(x > %d, 255, 0)", level);
    check(pyr_compute(array, PYR_LATEST, origin, shape, function, &made) == 0,
          "compute");
    check(pyr_reduce(array, made, origin, shape, "count(x)", &inside) == 0,
          "count");
    printf("%s: %llu voxels of %llu\n", function,
           (unsigned long long)inside.low,
           (unsigned long long)SIDE * SIDE * SIDE);
    check(inside.low > 110000 && inside.low < 115000, "not the ball");
    pyr_array_close(array);
    pyr_close(store);
    return 0;
}
