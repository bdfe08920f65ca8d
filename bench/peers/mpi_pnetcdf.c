/*
 * bench/peers/mpi_pnetcdf.c - dicing by PnetCDF: one flat CDF-5 variable.
 *
 *   nc-ind   independent calls
 *   nc-coll  collective calls
 */
#include "mpi_dice.h"

#include <pnetcdf.h>

static int nc, var;

#define NC(call)                                                               \
    do {                                                                       \
        int nc_err = (call);                                                   \
        if (nc_err != NC_NOERR)                                                \
            bench_die("PnetCDF: %s: %s", #call, ncmpi_strerror(nc_err));       \
    } while (0)

static void
create(const dice *d, const char *path)
{
    int dims[2];
    NC(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA,
                    MPI_INFO_NULL, &nc));
    NC(ncmpi_def_dim(nc, "y", (MPI_Offset)d->shape[0], &dims[0]));
    NC(ncmpi_def_dim(nc, "x", (MPI_Offset)d->shape[1], &dims[1]));
    NC(ncmpi_def_var(nc, "a", NC_UBYTE, 2, dims, &var));
    NC(ncmpi_enddef(nc));
}

static void
create_alone(const dice *d, const char *path)
{
    create(d, path);
    NC(ncmpi_begin_indep_data(nc));
}

static void
close_file(void)
{
    NC(ncmpi_close(nc));
}

static void
reopen(const dice *d, const char *path)
{
    close_file();
    NC(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &nc));
    NC(ncmpi_inq_varid(nc, "a", &var));
}

static void
reopen_alone(const dice *d, const char *path)
{
    reopen(d, path);
    NC(ncmpi_begin_indep_data(nc));
}

typedef struct slab {
    MPI_Offset start[2], count[2];
} slab;

static slab
slab_of(const dice *d)
{
    return (slab){{(MPI_Offset)d->offset[0], (MPI_Offset)d->offset[1]},
                  {(MPI_Offset)d->edge[0], (MPI_Offset)d->edge[1]}};
}

static void
write_alone(dice *d)
{
    slab s = slab_of(d);
    NC(ncmpi_put_vara_uchar(nc, var, s.start, s.count, d->cells));
    if (d->sync)
        NC(ncmpi_sync(nc));
}

static void
write_all(dice *d)
{
    slab s = slab_of(d);
    NC(ncmpi_put_vara_uchar_all(nc, var, s.start, s.count, d->cells));
    if (d->sync)
        NC(ncmpi_sync(nc));
}

static void
read_alone(dice *d)
{
    slab s = slab_of(d);
    NC(ncmpi_get_vara_uchar(nc, var, s.start, s.count, d->cells));
}

static void
read_all(dice *d)
{
    slab s = slab_of(d);
    NC(ncmpi_get_vara_uchar_all(nc, var, s.start, s.count, d->cells));
}

const mpi_side mpi_library_sides[] = {
    {"nc-ind", create_alone, write_alone, reopen_alone, read_alone, close_file},
    {"nc-coll", create, write_all, reopen, read_all, close_file},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
