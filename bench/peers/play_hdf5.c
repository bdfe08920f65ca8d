/*
 * bench/peers/play_hdf5.c - the player whose store is HDF5, in C.
 *
 * The newest file format, no fill values, and a chunk cache: of the default
 * size, or, if the program is called with "cache", one that holds all chunks of
 * the array and thus a second copy of it.
 */
#include "../player.h"

#include <hdf5.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define H5(call) ((call) < 0 ? bench_die("HDF5: %s", #call) : (void)0)

static bool big_cache;

typedef struct hold {
    hid_t file, set, space, type;
} hold;

static hid_t
creation_list(const slate *s)
{
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[PLAYER_AXES];
    for (int d = 0; d < s->ndim; d++)
        chunk[d] = s->chunk[d];
    H5(H5Pset_chunk(dcpl, s->ndim, chunk));
    H5(H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER));
    if (s->pressed) {
        H5(H5Pset_shuffle(dcpl));
        H5(H5Pset_deflate(dcpl, 1));
    }
    return dcpl;
}

static void
transfer(slate *s, const uint64_t *offset, const uint64_t *size,
         const void *from, void *to)
{
    hold *h = s->own;
    hsize_t at[PLAYER_AXES], n[PLAYER_AXES];
    for (int d = 0; d < s->ndim; d++)
        at[d] = offset[d], n[d] = size[d];
    hid_t memory = H5Screate_simple(s->ndim, n, NULL);
    H5(H5Sselect_hyperslab(h->space, H5S_SELECT_SET, at, NULL, n, NULL));
    if (from)
        H5(H5Dwrite(h->set, h->type, memory, h->space, H5P_DEFAULT, from));
    else
        H5(H5Dread(h->set, h->type, memory, h->space, H5P_DEFAULT, to));
    H5Sclose(memory);
}

static void
open_array(slate *s, const char *path, bool make)
{
    hold *h = s->own = calloc(1, sizeof *h);
    CHECK(h);
    hsize_t shape[PLAYER_AXES], most[PLAYER_AXES];
    for (int d = 0; d < s->ndim; d++)
        shape[d] = most[d] = s->shape[d];
    most[0] = s->ndim == 3 ? H5S_UNLIMITED : most[0];
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    hid_t dapl = H5Pcreate(H5P_DATASET_ACCESS), dcpl = creation_list(s);
    H5(H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
    if (big_cache)
        H5(H5Pset_chunk_cache(dapl, 100003, (size_t)2 << 30, 0.75));
    h->type = s->real32 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
    H5(h->file = make ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)
                      : H5Fopen(path, H5F_ACC_RDWR, fapl));
    if (make) {
        hid_t space = H5Screate_simple(s->ndim, shape, most);
        H5(h->set = H5Dcreate2(h->file, "a", h->type, space, H5P_DEFAULT, dcpl,
                               dapl));
        H5Sclose(space);
    } else {
        H5(h->set = H5Dopen2(h->file, "a", dapl));
    }
    H5(h->space = H5Dget_space(h->set));
    H5Pclose(fapl), H5Pclose(dcpl), H5Pclose(dapl);
    uint64_t zero[PLAYER_AXES] = {0};
    if (make) {
        transfer(s, zero, s->shape, s->source, NULL);
        H5(H5Fflush(h->file, H5F_SCOPE_GLOBAL));
    }
}

static void
close_array(slate *s)
{
    hold *h = s->own;
    H5Sclose(h->space), H5Dclose(h->set);
    H5(H5Fclose(h->file));
    free(h);
}

static void
read_box(slate *s, uint64_t snapshot, const uint64_t *offset,
         const uint64_t *size, void *buf)
{
    CHECK(snapshot == 0);
    transfer(s, offset, size, NULL, buf);
}

/* To the system, and to the disk if that is asked for. */
static void
flush(const slate *s)
{
    const hold *h = s->own;
    void *fd;
    H5(H5Fflush(h->file, H5F_SCOPE_GLOBAL));
    if (!s->sync)
        return;
    H5(H5Fget_vfd_handle(h->file, H5P_DEFAULT, &fd));
    SYS(fdatasync(*(int *)fd));
}

static void
update(slate *s, const uint64_t *offset, const uint64_t *size,
       const void *cells)
{
    transfer(s, offset, size, cells, NULL);
    flush(s);
}

static void
append(slate *s, const void *frame)
{
    hold *h = s->own;
    hsize_t shape[PLAYER_AXES];
    uint64_t at[PLAYER_AXES] = {s->shape[0]}, size[PLAYER_AXES] = {1};
    shape[0] = s->shape[0] + 1;
    for (int d = 1; d < s->ndim; d++)
        size[d] = shape[d] = s->shape[d];
    H5(H5Dset_extent(h->set, shape));
    H5Sclose(h->space);
    H5(h->space = H5Dget_space(h->set));
    transfer(s, at, size, frame, NULL);
    flush(s);
}

static double
mean(slate *s, const uint64_t *offset, const uint64_t *size)
{
    size_t n = 1;
    for (int d = 0; d < s->ndim; d++)
        n *= (size_t)size[d];
    double *cells = malloc(n * 8), sum = 0;
    CHECK(cells && !s->real32);
    transfer(s, offset, size, NULL, cells);
    for (size_t i = 0; i < n; i++)
        sum += cells[i];
    free(cells);
    return sum / (double)n;
}

int
main(int argc, char **argv)
{
    static const backend b = {.open = open_array,
                              .close = close_array,
                              .read = read_box,
                              .update = update,
                              .append = append,
                              .mean = mean};
    big_cache = argc > 2 && strcmp(argv[2], "cache") == 0;
    return player_main(argc, argv, &b);
}
