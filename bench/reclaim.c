/*
 * bench/reclaim.c - forgetting all but 100 of many small snapshots, and giving
 * their space back: is it in proportion to what they alone held?
 *
 * An array of 1024 x 1024 doubles in chunks of 64 x 64, all of it written;
 * then small boxes at random places, each a version.
 */
#include "common.h"

#include <string.h>
#include <sys/stat.h>

enum { SIDE = 1024, CHUNK = 64, BOX = 8, KEPT = 100 };

static pyr_store *
make_store(const char *url, int versions, pyr_array **array)
{
    static double cells[SIDE * SIDE];
    uint64_t shape[2] = {SIDE, SIDE}, chunk[2] = {CHUNK, CHUNK};
    uint64_t zero[2] = {0, 0}, size[2] = {BOX, BOX}, seed = 11;
    pyr_store *store = bench_store(url, PYR_DURABILITY_OS);
    bench_fill_f64(cells, SIDE * SIDE, 1);
    OK(pyr_create(
        store, "a",
        &(pyr_spec){.ndim = 2, .shape = shape, .chunk = chunk, .type = PYR_F64},
        array));
    OK(pyr_write(*array, zero, shape, cells, NULL));
    for (int i = 1; i < versions; i++) {
        uint64_t at[2] = {bench_place(&seed, SIDE, BOX),
                          bench_place(&seed, SIDE, BOX)};
        OK(pyr_write(*array, at, size, cells + i, NULL));
    }
    return store;
}

static void
curve_point(int versions)
{
    char *url = bench_path("v%d", versions);
    pyr_array *array;
    pyr_store *store = make_store(url, versions, &array);
    pyr_reclaimed gone;
    uint64_t n;
    bench_time start = bench_now();
    OK(pyr_forget(array, 0, PYR_LATEST, KEPT, 0, &n));
    bench_time forget = bench_since(start);
    start = bench_now();
    OK(pyr_reclaim(store, NULL, &gone));
    bench_time reclaim = bench_since(start);
    double each = (double)gone.versions;
    bench_row("%d|%.1f|%.1f|%.1f|%.1f|%.1f|%.2f|%.1f", versions,
              forget.cpu * 1e3, reclaim.cpu * 1e3, reclaim.cpu * 1e6 / each,
              (double)gone.nodes / each, (double)gone.bytes / 1e3 / each,
              reclaim.cpu * 1e6 / (double)(gone.nodes + gone.fragments),
              (double)gone.returned / 1e6);
    pyr_array_close(array);
    pyr_close(store);
    bench_remove(url);
}

int
main(int argc, char **argv)
{
    bench_begin(argc, argv);
    const int sizes[] = {bench_pick(1000, 1000, 200), 2000, 5000, 10000};
    bench_table("Forgetting all but 100 versions and reclaiming, durability os",
                "versions|forget CPU ms|reclaim CPU ms|us per version|"
                "nodes per version|KB per version|us per thing that went|"
                "MB given back");
    for (int i = 0; i < bench_pick(4, 2, 1); i++)
        curve_point(sizes[i]);
    return 0;
}
