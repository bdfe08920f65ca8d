/*
 * bench/dice.h - the dicing of the papers: P processes, each with its square
 * of one array of bytes.
 *
 *        +-------+-------+     each process owns tall x wide chunks of
 *        |   0   |   1   |     1024 x 1024 bytes, held row-major in its
 *        +-------+-------+     memory; the processes stand in a grid of
 *        |   2   |   3   |     rows x cols
 *        +-------+-------+
 *
 * A program that plays one side does one round: all write, all read, all read
 * again, and what was read is compared. It prints a line of JSON per phase.
 * bench.py starts the sides in turns.
 */
#ifndef BENCH_DICE_H
#define BENCH_DICE_H

#include "common.h"

enum { DICE_CHUNK = 1024, DICE_BYTES = DICE_CHUNK * DICE_CHUNK };

typedef struct dice {
    const char *side;
    int rows, cols;      /* of processes */
    uint64_t tall, wide; /* chunks of one process */
    bool sync;           /* writes end on stable storage */
    int size, rank;
    /* in cells: */
    uint64_t offset[2], edge[2], shape[2];
    size_t bytes; /* of one process */
    uint8_t *cells;
} dice;

/* SIDE ROWS COLS TALL WIDE os|commit */
dice dice_options(int argc, char **argv);

/* Say who we are, and get memory. */
void dice_join(dice *d, int rank);

void dice_fill(dice *d);
void dice_clear(dice *d);
/* Ends the program unless the cells are those of dice_fill(). */
void dice_compare(const dice *d);

void dice_report(const dice *d, const char *phase, bench_time t);

/* The first cell of our chunk number c. */
uint8_t *dice_corner(const dice *d, uint64_t c);

#endif
