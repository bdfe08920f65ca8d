/*
 * bench/hdf5_peer.c - the same work done by HDF5, which keeps no versions and
 * lets one process write: the peer that most users come from.
 *
 * HDF5 is asked in the ways that suit it best: the latest file format, a chunk
 * cache of the default size and one that holds the whole array, chunks written
 * directly past the cache.
 */
#include "common.h"

#include <hdf5.h>
#include <string.h>
#include <unistd.h>

enum { EDGE = 8192, CHUNK = 256, BOX = 100, UPDATE = 64 };
enum { TILE = 1024 };

#define H5(call) ((call) < 0 ? bench_die("HDF5: %s", #call) : (void)0)

/* --- files --------------------------------------------------------------- */

typedef struct peer {
    hid_t file, set, space;
} peer;

/* A chunked data set, new or there already. cache: bytes; 0: the default. */
static peer
open_peer(const char *path, hid_t type, hsize_t edge, hsize_t chunk,
          size_t cache, bool create)
{
    peer p;
    hsize_t shape[2] = {edge, edge}, tile[2] = {chunk, chunk};
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    hid_t dapl = H5Pcreate(H5P_DATASET_ACCESS);
    H5(H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
    H5(H5Pset_chunk(dcpl, 2, tile));
    H5(H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER));
    if (cache)
        H5(H5Pset_chunk_cache(dapl, 12421, cache, 0.75));
    if (create) {
        p.file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
        p.space = H5Screate_simple(2, shape, NULL);
        p.set = H5Dcreate2(p.file, "a", type, p.space, H5P_DEFAULT, dcpl, dapl);
    } else {
        p.file = H5Fopen(path, H5F_ACC_RDWR, fapl);
        p.set = H5Dopen2(p.file, "a", dapl);
        p.space = H5Dget_space(p.set);
    }
    if (p.file < 0 || p.set < 0 || p.space < 0)
        bench_die("HDF5 cannot open %s", path);
    H5Pclose(fapl), H5Pclose(dcpl), H5Pclose(dapl);
    return p;
}

static void
close_peer(peer *p)
{
    H5Sclose(p->space), H5Dclose(p->set);
    H5(H5Fclose(p->file));
}

static void
transfer(peer *p, hid_t type, const uint64_t at[2], uint64_t edge,
         const void *from, void *to)
{
    hsize_t offset[2] = {at[0], at[1]}, size[2] = {edge, edge};
    hid_t memory = H5Screate_simple(2, size, NULL);
    H5(H5Sselect_hyperslab(p->space, H5S_SELECT_SET, offset, NULL, size, NULL));
    if (from)
        H5(H5Dwrite(p->set, type, memory, p->space, H5P_DEFAULT, from));
    else
        H5(H5Dread(p->set, type, memory, p->space, H5P_DEFAULT, to));
    H5Sclose(memory);
}

static pyr_array *
open_pyramid(pyr_store *store, pyr_type type, uint64_t edge, uint64_t tile)
{
    pyr_array *array;
    uint64_t shape[2] = {edge, edge}, chunk[2] = {tile, tile};
    OK(pyr_create(
        store, "a",
        &(pyr_spec){.ndim = 2, .shape = shape, .chunk = chunk, .type = type},
        &array));
    return array;
}

/* --- small reads --------------------------------------------------------- */

static double
read_peer(peer *p, int count, uint64_t seed, double *box)
{
    bench_time start = bench_now();
    for (int i = 0; i < count; i++) {
        uint64_t at[2] = {bench_place(&seed, EDGE, BOX),
                          bench_place(&seed, EDGE, BOX)};
        transfer(p, H5T_NATIVE_DOUBLE, at, BOX, NULL, box);
    }
    return bench_since(start).cpu * 1e6 / count;
}

static double
read_pyramid(pyr_array *array, int count, uint64_t seed, double *box)
{
    uint64_t size[2] = {BOX, BOX};
    bench_time start = bench_now();
    for (int i = 0; i < count; i++) {
        uint64_t at[2] = {bench_place(&seed, EDGE, BOX),
                          bench_place(&seed, EDGE, BOX)};
        OK(pyr_read(array, PYR_LATEST, at, size, box));
    }
    return bench_since(start).cpu * 1e6 / count;
}

static void
read_case(const char *name, const char *path, size_t cache, pyr_array *array)
{
    static double box[BOX * BOX], other[BOX * BOX];
    int count = bench_quick ? 1000 : 2000;
    bench_sample peers = {0}, ours = {0};
    peer p = open_peer(path, H5T_NATIVE_DOUBLE, EDGE, CHUNK, cache, false);
    for (int rep = -1; rep < 5; rep++) {
        double a = read_peer(&p, count, 7, box);
        double b = read_pyramid(array, count, 7, other);
        CHECK(memcmp(box, other, sizeof box) == 0);
        if (rep < 0)
            continue;
        bench_add(&peers, a);
        bench_add(&ours, b);
    }
    close_peer(&p);
    bench_row("%s|CPU us|%.1f|%.1f|%.1f", name, bench_median(&peers),
              bench_median(&ours), bench_ratio(&ours, &peers));
}

static void
small_reads(void)
{
    size_t bytes = (size_t)EDGE * EDGE * 8;
    uint64_t zero[2] = {0, 0}, all[2] = {EDGE, EDGE};
    double *cells = bench_alloc(bytes);
    bench_fill_f64(cells, (size_t)EDGE * EDGE, 1);
    peer p = open_peer(bench_path("reads.h5"), H5T_NATIVE_DOUBLE, EDGE, CHUNK,
                       0, true);
    transfer(&p, H5T_NATIVE_DOUBLE, zero, EDGE, cells, NULL);
    close_peer(&p);
    pyr_store *store = bench_store(bench_path("reads"), PYR_DURABILITY_OS);
    pyr_array *array = open_pyramid(store, PYR_F64, EDGE, CHUNK);
    OK(pyr_write(array, zero, all, cells, NULL));
    bench_free(cells, bytes);
    read_case("read 100 x 100, default cache", bench_path("reads.h5"), 0,
              array);
    read_case("read 100 x 100, 512 MB of cache", bench_path("reads.h5"),
              2 * bytes, array);
    pyr_array_close(array);
    pyr_close(store);
    bench_remove(bench_path("reads.h5"));
    bench_remove(bench_path("reads"));
}

/* --- dicing -------------------------------------------------------------- */

static double
write_chunks(peer *p, uint64_t tiles, const uint8_t *cells, uint8_t *bounce)
{
    bench_time start = bench_now();
    for (uint64_t c = 0; c < tiles * tiles; c++) {
        hsize_t at[2] = {c / tiles * TILE, c % tiles * TILE};
        const uint8_t *from = cells + at[0] * tiles * TILE + at[1];
        for (size_t row = 0; row < TILE; row++)
            memcpy(bounce + row * TILE, from + row * tiles * TILE, TILE);
        H5(H5Dwrite_chunk(p->set, H5P_DEFAULT, 0, at, TILE * TILE, bounce));
    }
    H5(H5Fflush(p->file, H5F_SCOPE_GLOBAL));
    return bench_since(start).wall;
}

static double
write_whole(peer *p, uint64_t tiles, const uint8_t *cells)
{
    uint64_t zero[2] = {0, 0};
    bench_time start = bench_now();
    transfer(p, H5T_NATIVE_UINT8, zero, tiles * TILE, cells, NULL);
    H5(H5Fflush(p->file, H5F_SCOPE_GLOBAL));
    return bench_since(start).wall;
}

static double
dice_peer(uint64_t tiles, const uint8_t *cells, uint8_t *bounce, bool whole)
{
    size_t bytes = (size_t)(tiles * tiles) * TILE * TILE;
    bench_warm(bytes + bytes / 8);
    peer p = open_peer(bench_path("dice.h5"), H5T_NATIVE_UINT8, tiles * TILE,
                       TILE, 0, true);
    double took = whole ? write_whole(&p, tiles, cells)
                        : write_chunks(&p, tiles, cells, bounce);
    close_peer(&p);
    bench_remove(bench_path("dice.h5"));
    return (double)bytes * 1e-6 / took;
}

static double
dice_pyramid(uint64_t tiles, const uint8_t *cells)
{
    size_t bytes = (size_t)(tiles * tiles) * TILE * TILE;
    uint64_t zero[2] = {0, 0}, all[2] = {tiles * TILE, tiles * TILE};
    bench_warm(bytes + bytes / 8);
    pyr_store *store = bench_store(bench_path("dice"), PYR_DURABILITY_OS);
    pyr_array *array = open_pyramid(store, PYR_U8, all[0], TILE);
    bench_time start = bench_now();
    OK(pyr_write(array, zero, all, cells, NULL));
    double took = bench_since(start).wall;
    pyr_array_close(array);
    pyr_close(store);
    bench_remove(bench_path("dice"));
    return (double)bytes * 1e-6 / took;
}

static void
dicing(void)
{
    uint64_t tiles = bench_quick ? 6 : 12;
    size_t bytes = (size_t)(tiles * tiles) * TILE * TILE;
    uint8_t *cells = bench_alloc(bytes), *bounce = bench_alloc(TILE * TILE);
    bench_sample chunks = {0}, whole = {0}, ours = {0};
    bench_fill(cells, bytes, 1);
    for (int rep = 0; rep < 5; rep++) {
        bench_add(&chunks, dice_peer(tiles, cells, bounce, false));
        bench_add(&ours, dice_pyramid(tiles, cells));
        bench_add(&whole, dice_peer(tiles, cells, bounce, true));
    }
    bench_row("dicing write P=1, chunks past the cache|MB/s|%.0f|%.0f|%.2f",
              bench_median(&chunks), bench_median(&ours),
              bench_ratio(&chunks, &ours));
    bench_row("dicing write P=1, whole subdomain|MB/s|%.0f|%.0f|%.2f",
              bench_median(&whole), bench_median(&ours),
              bench_ratio(&whole, &ours));
    bench_free(cells, bytes);
}

/* --- updates ------------------------------------------------------------- */

static double
update_peer(peer *p, int count, uint64_t *seed, const double *cells, bool sync)
{
    void *fd;
    H5(H5Fget_vfd_handle(p->file, H5P_DEFAULT, &fd));
    bench_time start = bench_now();
    for (int i = 0; i < count; i++) {
        uint64_t at[2] = {bench_place(seed, EDGE, UPDATE),
                          bench_place(seed, EDGE, UPDATE)};
        transfer(p, H5T_NATIVE_DOUBLE, at, UPDATE, cells + i % 1024, NULL);
        H5(H5Fflush(p->file, H5F_SCOPE_GLOBAL));
        if (sync)
            SYS(fdatasync(*(int *)fd));
    }
    return bench_since(start).wall * 1e6 / count;
}

static double
update_pyramid(pyr_array *array, int count, uint64_t *seed, const double *cells)
{
    uint64_t size[2] = {UPDATE, UPDATE};
    bench_time start = bench_now();
    for (int i = 0; i < count; i++) {
        uint64_t at[2] = {bench_place(seed, EDGE, UPDATE),
                          bench_place(seed, EDGE, UPDATE)};
        OK(pyr_write(array, at, size, cells + i % 1024, NULL));
    }
    return bench_since(start).wall * 1e6 / count;
}

/* Into an array that is there in full, as an update in place wants it. */
static void
update_case(const double *all, pyr_durability durability)
{
    bool sync = durability == PYR_DURABILITY_COMMIT;
    uint64_t zero[2] = {0, 0}, size[2] = {EDGE, EDGE}, seed = 1;
    int count = bench_quick ? 300 : 1000;
    bench_sample peers = {0}, ours = {0};
    peer p = open_peer(bench_path("update.h5"), H5T_NATIVE_DOUBLE, EDGE, CHUNK,
                       0, true);
    transfer(&p, H5T_NATIVE_DOUBLE, zero, EDGE, all, NULL);
    pyr_store *store = bench_store(bench_path("update"), durability);
    pyr_array *array = open_pyramid(store, PYR_F64, EDGE, CHUNK);
    OK(pyr_write(array, zero, size, all, NULL));
    bench_settle();
    for (int rep = 0; rep < 5; rep++) {
        bench_warm((size_t)count * 4 * UPDATE * UPDATE * 8);
        bench_add(&peers, update_peer(&p, count, &seed, all, sync));
        bench_add(&ours, update_pyramid(array, count, &seed, all));
    }
    bench_row("update of 32 KiB, %s|us|%.0f|%.0f|%.2f", sync ? "commit" : "os",
              bench_median(&peers), bench_median(&ours),
              bench_ratio(&ours, &peers));
    close_peer(&p);
    pyr_array_close(array);
    pyr_close(store);
    bench_remove(bench_path("update.h5"));
    bench_remove(bench_path("update"));
}

int
main(int argc, char **argv)
{
    bench_begin(argc, argv);
    bench_table("Beside HDF5 (which keeps no versions)",
                "case|unit|HDF5|pyramid|times better");
    small_reads();
    dicing();
    size_t n = (size_t)EDGE * EDGE;
    double *all = bench_alloc(n * 8);
    bench_fill_f64(all, n, 1);
    update_case(all, PYR_DURABILITY_OS);
    update_case(all, PYR_DURABILITY_COMMIT);
    bench_free(all, n * 8);
    return 0;
}
