/*
 * examples/calibrate.c - calibrate a detector image where it is stored.
 *
 * A camera's raw counts have an offset per pixel (the dark frame) and dead
 * pixels. The dark frame is version 1 of the array, the exposure version 2;
 * one function makes the calibrated image, version 3. No cell comes here but
 * those that are printed.
 */
#include <pyramid/pyramid.h>

#include "scratch.h"

#include <stdint.h>

enum { ROWS = 300, COLUMNS = 400, DARK = 40, DEAD = 65535 };

static void
check(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "calibrate: %s: %s\n", what, pyr_errmsg());
    exit(1);
}

/* A dark frame, then an exposure: a bright disc over the same offsets. */
static uint16_t frame[ROWS][COLUMNS];

static void
expose(int light)
{
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++) {
            int y = r - 150, x = c - 200;
            frame[r][c] = (uint16_t)(DARK + (r * 7 + c * 3) % 11);
            if (x * x + y * y < 100 * 100)
                frame[r][c] = (uint16_t)(frame[r][c] + light);
            if (r == 10 && c % 50 == 0)
                frame[r][c] = DEAD;
        }
}

int
main(void)
{
    const uint64_t shape[2] = {ROWS, COLUMNS}, chunk[2] = {64, 64};
    const uint64_t origin[2] = {0, 0}, centre[2] = {150, 200}, one[2] = {1, 1};
    pyr_spec spec = {
        .ndim = 2, .shape = shape, .chunk = chunk, .type = PYR_U16};
    pyr_store *store;
    pyr_array *array;
    pyr_version dark, raw, calibrated;
    pyr_value mean, hot;
    char function[200];
    uint16_t pixel;

    check(pyr_open(scratch_store(), PYR_OPEN_CREATE, &store) == 0, "open");
    check(pyr_create(store, "camera", &spec, &array) == 0, "create");
    expose(0);
    check(pyr_write(array, origin, shape, frame, &dark) == 0, "dark frame");
    expose(1000);
    check(pyr_write(array, origin, shape, frame, &raw) == 0, "exposure");

    /* Dead pixels become 0; the rest loses its offset and gets a gain of 1.5.
     * In signed arithmetic, so that noise below the offset ends at 0. */
    snprintf(function, sizeof function,
             "where(x == %d, 0, max(i32(x) - i32(x@%llu), 0) * 1.5)", DEAD,
             (unsigned long long)dark);
    check(pyr_compute(array, raw, origin, shape, function, &calibrated) == 0,
          "compute");

    check(pyr_read(array, calibrated, centre, one, &pixel) == 0, "read");
    check(pixel == 1500, "the centre is not what it should be");
    check(pyr_reduce(array, calibrated, origin, shape, "mean(x)", &mean) == 0,
          "mean");
    check(pyr_reduce(array, calibrated, origin, shape, "count(x > 1500)",
                     &hot) == 0, "count");
    check(hot.low == 0, "a dead pixel is left");
    printf("version %llu = %s of version %llu\nmean %.2f\n",
           (unsigned long long)calibrated, function, (unsigned long long)raw,
           mean.real);
    pyr_array_close(array);
    pyr_close(store);
    return 0;
}
