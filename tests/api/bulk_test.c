/*
 * api/bulk_test.c - boxes of many megabytes: right on the first read and on
 * those after it, and no damage goes unnoticed.
 */
#include "api/fixture.h"

#include <dirent.h>

enum { EDGE = 3100, CHUNK = 1024 };

static pyr_array *array;

static void
make_square(uint64_t edge, const uint8_t *cells)
{
    uint64_t shape[2] = {edge, edge}, chunk[2] = {CHUNK, CHUNK};
    set_up();
    OK(pyr_create(store, "a", &(pyr_spec){.ndim = 2, .shape = shape,
                                          .chunk = chunk, .type = PYR_U8},
                  &array));
    OK(pyr_write(array, zero, shape, cells, NULL));
}

static void
open_anew(void)
{
    pyr_array_close(array);
    pyr_close(store);
    OK(pyr_open(url, 0, &store));
    OK(pyr_array_open(store, "a", &array));
}

static void
check_box(const uint8_t *cells, uint8_t *got, uint64_t row, uint64_t column,
          uint64_t rows, uint64_t columns)
{
    uint64_t at[2] = {row, column}, size[2] = {rows, columns};
    memset(got, 0xee, rows * columns);
    OK(pyr_read(array, PYR_LATEST, at, size, got));
    for (uint64_t i = 0; i < rows; i++)
        REQUIRE(memcmp(got + i * columns, cells + (row + i) * EDGE + column,
                       columns) == 0);
}

static void
large_boxes_are_the_same_on_the_first_read_and_later(void)
{
    uint8_t *cells = random_bytes(EDGE * EDGE), *got = malloc(EDGE * EDGE);
    REQUIRE(got);
    make_square(EDGE, cells);
    for (int round = 0; round < 2; round++) {
        open_anew();
        for (int again = 0; again < 2; again++) {
            if (round == 0)
                check_box(cells, got, 0, 0, EDGE, EDGE);
            check_box(cells, got, 7, 13, 3000, 3001);
            check_box(cells, got, 1000, 1000, 2000, 300);
            check_box(cells, got, 1, 1500, EDGE - 1, 3);
            check_box(cells, got, 500, 1, 2, EDGE - 1);
        }
    }
    pyr_array_close(array);
    tear_down();
    free(cells);
    free(got);
}

/* Flip a byte of the stored cells, found by those that follow it. */
static void
flip(const uint8_t *cells, size_t at)
{
    char path[4400] = "";
    static uint8_t bytes[2 * CHUNK * CHUNK];
    snprintf(path, sizeof path, "%s/data", url);
    DIR *dir = opendir(path);
    REQUIRE(dir);
    for (struct dirent *d; (d = readdir(dir));) {
        if (!strstr(d->d_name, ".seg"))
            continue;
        snprintf(path, sizeof path, "%s/data/%s", url, d->d_name);
        FILE *f = fopen(path, "r+");
        REQUIRE(f);
        size_t n = fread(bytes, 1, sizeof bytes, f);
        uint8_t *found = memmem(bytes, n, cells + at + 1, 50);
        REQUIRE(found);
        fseek(f, found - bytes - 1, SEEK_SET);
        fputc(found[-1] ^ 1, f);
        fclose(f);
    }
    closedir(dir);
}

static void
one_wrong_bit_anywhere_fails_a_large_first_read(void)
{
    const size_t size = CHUNK * CHUNK, places[] = {
        0, 4095, 4096, 131071, 131072, 524288, size - 4097, size - 51};
    uint8_t *cells = random_bytes(size), *got = malloc(size);
    uint64_t all[2] = {CHUNK, CHUNK};
    REQUIRE(got);
    make_square(CHUNK, cells);
    if (!tmp_is_path(url))
        SKIP("looks into files");
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        flip(cells, places[i]);
        open_anew();
        FAILS(PYR_ECORRUPT, pyr_read(array, 1, zero, all, got));
        flip(cells, places[i]);
        OK(pyr_read(array, 1, zero, all, got));
        CHECK(memcmp(got, cells, size) == 0);
    }
    pyr_array_close(array);
    tear_down();
    free(cells);
    free(got);
}

TESTS(T(large_boxes_are_the_same_on_the_first_read_and_later),
      T(one_wrong_bit_anywhere_fails_a_large_first_read))
