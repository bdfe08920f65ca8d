/*
 * bench/peers/mpi_dice.h - one side of dicing among MPI processes.
 */
#ifndef BENCH_MPI_DICE_H
#define BENCH_MPI_DICE_H

#include "../dice.h"

#include <mpi.h>

/* What a side does; each gets the path of the one file of all. */
typedef struct mpi_side {
    const char *name;
    void (*create)(const dice *d, const char *path); /* by all, untimed */
    void (*write)(dice *d); /* to stable storage if d->sync */
    void (*reopen)(const dice *d, const char *path); /* by all, untimed */
    void (*read)(dice *d);
    void (*close)(void); /* by all */
} mpi_side;

extern const mpi_side mpi_io_sides[], mpi_library_sides[]; /* ended by NULL */

#define MPI_OK(call)                                                           \
    ((call) != MPI_SUCCESS ? bench_die("MPI: %s", #call) : (void)0)

#endif
