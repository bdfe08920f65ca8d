/*
 * bench/peers/mpi_dice.c - dicing on one flat file, through MPI-IO.
 *
 * The array is a row-major file, as the papers' PVFS2 case has it; the view of
 * a process is its subarray. Sides:
 *   ind    independent calls, hints as the library chooses them
 *   nosieve  the same without data sieving for writes (ROMIO's hint)
 *   coll   collective calls: two-phase I/O
 * With a library on top (HDF5, PnetCDF) see the file of that name.
 *
 * Built once with each MPI; the program's name tells which it is.
 */
#include "mpi_dice.h"

#include <string.h>

static MPI_File file;
static MPI_Datatype row; /* of a subdomain: counts then fit an int */
static MPI_Info info;

static void
set_view(const dice *d)
{
    int shape[2] = {(int)d->shape[0], (int)d->shape[1]};
    int edge[2] = {(int)d->edge[0], (int)d->edge[1]};
    int offset[2] = {(int)d->offset[0], (int)d->offset[1]};
    MPI_Datatype view;
    char native[] = "native";
    MPI_OK(MPI_Type_create_subarray(2, shape, edge, offset, MPI_ORDER_C,
                                    MPI_BYTE, &view));
    MPI_OK(MPI_Type_commit(&view));
    MPI_OK(MPI_File_set_view(file, 0, MPI_BYTE, view, native, info));
    MPI_Type_free(&view);
}

static void
open_flat(const dice *d, const char *path, int mode)
{
    MPI_OK(MPI_File_open(MPI_COMM_WORLD, path, mode, info, &file));
    set_view(d);
    MPI_OK(MPI_Type_contiguous((int)d->edge[1], MPI_BYTE, &row));
    MPI_OK(MPI_Type_commit(&row));
}

static void
create_flat(const dice *d, const char *path)
{
    MPI_Info_create(&info);
    open_flat(d, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
}

static void
create_nosieve(const dice *d, const char *path)
{
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_ds_write", "disable");
    open_flat(d, path, MPI_MODE_CREATE | MPI_MODE_RDWR);
}

static void
close_flat(void)
{
    MPI_Type_free(&row);
    MPI_OK(MPI_File_close(&file));
}

static void
reopen_flat(const dice *d, const char *path)
{
    close_flat();
    open_flat(d, path, MPI_MODE_RDONLY);
}

static void
end_write(const dice *d)
{
    if (d->sync)
        MPI_OK(MPI_File_sync(file));
}

static void
write_alone(dice *d)
{
    MPI_OK(MPI_File_write(file, d->cells, (int)d->edge[0], row,
                          MPI_STATUS_IGNORE));
    end_write(d);
}

static void
write_all(dice *d)
{
    MPI_OK(MPI_File_write_all(file, d->cells, (int)d->edge[0], row,
                              MPI_STATUS_IGNORE));
    end_write(d);
}

static void
rewind_view(void)
{
    MPI_OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
}

static void
read_alone(dice *d)
{
    rewind_view();
    MPI_OK(
        MPI_File_read(file, d->cells, (int)d->edge[0], row, MPI_STATUS_IGNORE));
}

static void
read_all(dice *d)
{
    rewind_view();
    MPI_OK(MPI_File_read_all(file, d->cells, (int)d->edge[0], row,
                             MPI_STATUS_IGNORE));
}

const mpi_side mpi_io_sides[] = {
    {"ind", create_flat, write_alone, reopen_flat, read_alone, close_flat},
    {"nosieve", create_nosieve, write_alone, reopen_flat, read_alone,
     close_flat},
    {"coll", create_flat, write_all, reopen_flat, read_all, close_flat},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};

/* --- one round ----------------------------------------------------------- */

/* From the first start to the last end, and all CPU time. */
static void
timed(dice *d, const char *phase, void (*job)(dice *))
{
    MPI_Barrier(MPI_COMM_WORLD);
    bench_time start = bench_now();
    job(d);
    bench_time end = bench_now();
    double mine[3] = {-start.wall, end.wall, 0}, all[3], cpu;
    double spent = end.cpu - start.cpu;
    MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&spent, &cpu, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (d->rank == 0)
        dice_report(d, phase, (bench_time){all[1] + all[0], cpu});
}

static void
play(dice *d, const mpi_side *s, const char *path)
{
    s->create(d, path);
    bench_warm(d->bytes + d->bytes / 8);
    timed(d, "write", s->write);
    if (!d->sync) {
        MPI_Barrier(MPI_COMM_WORLD);
        s->reopen(d, path);
        dice_clear(d);
        timed(d, "read", s->read);
        dice_compare(d);
        timed(d, "again", s->read);
    }
    s->close();
}

static const mpi_side *
find(const mpi_side *sides, const char *name)
{
    while (sides->name && strcmp(sides->name, name) != 0)
        sides++;
    return sides->name ? sides : NULL;
}

int
main(int argc, char **argv)
{
    int rank, size;
    char path[4096] = "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    dice d = dice_options(argc, argv);
    const mpi_side *s = find(mpi_io_sides, d.side);
    if (!s && !(s = find(mpi_library_sides, d.side)))
        bench_die("no side '%s'", d.side);
    CHECK(size == d.size);
    if (rank == 0) {
        bench_begin_dir();
        bench_settle();
        strncpy(path, bench_path("shared"), sizeof path - 1);
    }
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    dice_join(&d, rank);
    play(&d, s, path);
    MPI_Finalize();
    return 0;
}
