/*
 * bench/peers/mpi_hdf5.c - dicing by parallel HDF5, chunked.
 *
 *   h5-chunks  a call per chunk, independent; its rows are gathered before, so
 *              that the library has one piece of memory for one piece of file
 *   h5-whole   a call per subdomain, independent
 *   h5-coll    a call per subdomain, collective
 *
 * As its documentation advises for speed: the newest file format, no fill
 * values, chunks aligned to 1 MiB, metadata read and written collectively.
 */
#include "mpi_dice.h"

#include <hdf5.h>
#include <string.h>

#define H5(call) ((call) < 0 ? bench_die("HDF5: %s", #call) : (void)0)

static hid_t file = -1, set = -1;

static hid_t
access_list(void)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    H5(H5Pset_fapl_mpio(fapl, MPI_COMM_WORLD, MPI_INFO_NULL));
    H5(H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
    H5(H5Pset_alignment(fapl, DICE_BYTES, DICE_BYTES));
    H5(H5Pset_coll_metadata_write(fapl, 1));
    H5(H5Pset_all_coll_metadata_ops(fapl, 1));
    return fapl;
}

static void
create(const dice *d, const char *path)
{
    hsize_t shape[2] = {d->shape[0], d->shape[1]};
    hsize_t chunk[2] = {DICE_CHUNK, DICE_CHUNK};
    hid_t fapl = access_list(), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(2, shape, NULL);
    H5(H5Pset_chunk(dcpl, 2, chunk));
    H5(H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER));
    H5(file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl));
    H5(set = H5Dcreate2(file, "a", H5T_NATIVE_UINT8, space, H5P_DEFAULT, dcpl,
                        H5P_DEFAULT));
    H5Sclose(space), H5Pclose(dcpl), H5Pclose(fapl);
}

static void
close_file(void)
{
    H5(H5Dclose(set));
    H5(H5Fclose(file));
}

static void
reopen(const dice *d, const char *path)
{
    close_file();
    hid_t fapl = access_list();
    H5(file = H5Fopen(path, H5F_ACC_RDONLY, fapl));
    H5(set = H5Dopen2(file, "a", H5P_DEFAULT));
    H5Pclose(fapl);
}

/* A box of the subdomain, by one call, from or to dense memory. */
static void
transfer(const dice *d, const hsize_t at[2], const hsize_t size[2], bool all,
         const void *from, void *to)
{
    hsize_t offset[2] = {d->offset[0] + at[0], d->offset[1] + at[1]};
    hid_t memory = H5Screate_simple(2, size, NULL);
    hid_t space = H5Dget_space(set), dxpl = H5Pcreate(H5P_DATASET_XFER);
    H5(H5Pset_dxpl_mpio(dxpl,
                        all ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT));
    H5(H5Sselect_hyperslab(space, H5S_SELECT_SET, offset, NULL, size, NULL));
    if (from)
        H5(H5Dwrite(set, H5T_NATIVE_UINT8, memory, space, dxpl, from));
    else
        H5(H5Dread(set, H5T_NATIVE_UINT8, memory, space, dxpl, to));
    H5Pclose(dxpl), H5Sclose(space), H5Sclose(memory);
}

static void
each_chunk(dice *d, bool write)
{
    static uint8_t bounce[DICE_BYTES];
    const hsize_t size[2] = {DICE_CHUNK, DICE_CHUNK};
    for (uint64_t c = 0; c < d->tall * d->wide; c++) {
        hsize_t at[2] = {c / d->wide * DICE_CHUNK, c % d->wide * DICE_CHUNK};
        uint8_t *cells = dice_corner(d, c);
        for (size_t row = 0; write && row < DICE_CHUNK; row++)
            memcpy(bounce + row * DICE_CHUNK, cells + row * d->edge[1],
                   DICE_CHUNK);
        transfer(d, at, size, false, write ? bounce : NULL, bounce);
        for (size_t row = 0; !write && row < DICE_CHUNK; row++)
            memcpy(cells + row * d->edge[1], bounce + row * DICE_CHUNK,
                   DICE_CHUNK);
    }
}

static void
whole(dice *d, bool all, bool write)
{
    const hsize_t at[2] = {0, 0}, size[2] = {d->edge[0], d->edge[1]};
    transfer(d, at, size, all, write ? d->cells : NULL, d->cells);
}

/* H5Fflush() would sync the file, which is not asked for here: what the
 * library still holds of metadata goes out untimed. */
static void
end_write(const dice *d)
{
    void *handle;
    if (!d->sync)
        return;
    H5(H5Fflush(file, H5F_SCOPE_GLOBAL));
    H5(H5Fget_vfd_handle(file, H5P_DEFAULT, &handle));
    MPI_OK(MPI_File_sync(*(MPI_File *)handle));
}

static void
write_chunks(dice *d)
{
    each_chunk(d, true);
    end_write(d);
}

static void
read_chunks(dice *d)
{
    each_chunk(d, false);
}

static void
write_whole(dice *d)
{
    whole(d, false, true);
    end_write(d);
}

static void
read_whole(dice *d)
{
    whole(d, false, false);
}

static void
write_coll(dice *d)
{
    whole(d, true, true);
    end_write(d);
}

static void
read_coll(dice *d)
{
    whole(d, true, false);
}

const mpi_side mpi_library_sides[] = {
    {"h5-chunks", create, write_chunks, reopen, read_chunks, close_file},
    {"h5-whole", create, write_whole, reopen, read_whole, close_file},
    {"h5-coll", create, write_coll, reopen, read_coll, close_file},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
