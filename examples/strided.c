/*
 * examples/strided.c - parts that are not boxes, in memory that is not dense.
 *
 * A part may be a run of blocks, as MPI vector types describe them, and its
 * memory may be laid out in any way. However many parts a list has, they
 * become one version.
 */
#include <pyramid/pyramid.h>

#include "scratch.h"

static void
check(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "strided: %s: %s\n", what, pyr_errmsg());
    exit(1);
}

/* Two combs in one version:
 *
 *     1 1 . . 1 1 . . 1 1 . .     blocks of 2 x 2, 4 apart
 *     1 1 . . 1 1 . . 1 1 . .
 *     . . 2 . . . 2 . . . 2 .     every fourth cell of rows 2, 6 and 10
 *     . . . . . . . . . . . .
 */
static pyr_version
write_combs(pyr_array *array)
{
    int32_t ones[36], twos[9];
    for (int i = 0; i < 36; i++)
        ones[i] = 1;
    for (int i = 0; i < 9; i++)
        twos[i] = 2;
    const uint64_t corner[2] = {0, 0}, block[2] = {2, 2}, three[2] = {3, 3};
    const uint64_t four[2] = {4, 4}, inner[2] = {2, 2}, cell[2] = {1, 1};
    pyr_part parts[2] = {
        {.offset = corner,
         .size = block,
         .count = three,
         .stride = four,
         .buf = ones},
        {.offset = inner,
         .size = cell,
         .count = three,
         .stride = four,
         .buf = twos},
    };
    pyr_write_options how = {.message = "two combs"};
    pyr_version made;
    check(pyr_write_list(array, parts, 2, &how, &made) == 0, "write");
    return made;
}

/* Read the array into memory that is column-major: `step` says how. */
static void
read_transposed(pyr_array *array, int32_t out[12][12])
{
    const uint64_t offset[2] = {0, 0}, size[2] = {12, 12};
    const int64_t step[2] = {sizeof(int32_t), 12 * sizeof(int32_t)};
    pyr_part part = {.offset = offset, .size = size, .buf = out, .step = step};
    check(pyr_read_list(array, PYR_LATEST, &part, 1) == 0, "read");
}

int
main(void)
{
    uint64_t shape[2] = {12, 12}, chunk[2] = {5, 5};
    pyr_spec spec = {.ndim = 2,
                     .shape = shape,
                     .chunk = chunk,
                     .type = PYR_I32};
    pyr_store *store;
    pyr_array *array;
    static int32_t columns[12][12];

    check(pyr_open(scratch_store(), PYR_OPEN_CREATE, &store) == 0, "open");
    check(pyr_create(store, "combs", &spec, &array) == 0, "create");
    check(write_combs(array) == 1, "not one version");
    read_transposed(array, columns);
    for (int r = 0; r < 12; r++) {
        for (int c = 0; c < 12; c++) {
            int want = r % 4 < 2 && c % 4 < 2     ? 1
                       : r % 4 == 2 && c % 4 == 2 ? 2
                                                  : 0;
            check(columns[c][r] == want, "a cell differs");
            putchar(".12"[columns[c][r]]);
        }
        putchar('\n');
    }
    pyr_array_close(array);
    pyr_close(store);
    return 0;
}
