/*
 * bench/cells.c - write a file of cells that all players fill their arrays
 * from.
 *
 *   bench-cells FILE f64|f32 COUNT random|smooth
 *
 * Random cells cannot be compressed; smooth ones are a slow wave with a little
 * noise in its last digits, as measured fields are.
 */
#include "common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEP = 1 << 17 };

static double
wave(uint64_t i, uint64_t *seed)
{
    double noise = (double)(bench_random(seed) >> 56) / 256;
    double w = sin((double)(i % 2048) * 0.01) + cos((double)(i / 2048) * 0.003);
    return floor(w * 4096 + noise * 8) / 256;
}

int
main(int argc, char **argv)
{
    if (argc != 5)
        bench_die("usage: %s FILE f64|f32 COUNT random|smooth", argv[0]);
    bool real32 = strcmp(argv[2], "f32") == 0;
    bool smooth = strcmp(argv[4], "smooth") == 0;
    uint64_t count = strtoull(argv[3], NULL, 10), seed = 1;
    static double f64[STEP];
    static float f32[STEP];
    int fd = bench_create(argv[1]);
    for (uint64_t at = 0; at < count; at += STEP) {
        size_t n = (size_t)(count - at < STEP ? count - at : STEP);
        bench_fill_f64(f64, n, at + 1);
        for (size_t i = 0; smooth && i < n; i++)
            f64[i] = wave(at + i, &seed);
        for (size_t i = 0; real32 && i < n; i++)
            f32[i] = (float)f64[i];
        bench_pwrite(fd, real32 ? (void *)f32 : (void *)f64,
                     n * (real32 ? 4 : 8), at * (real32 ? 4 : 8));
    }
    close(fd);
    return 0;
}
