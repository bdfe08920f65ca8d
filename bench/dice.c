/*
 * bench/dice.c - options, cells and reports of dicing.
 */
#include "dice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

dice
dice_options(int argc, char **argv)
{
    if (argc != 7)
        bench_die("usage: %s SIDE ROWS COLS TALL WIDE os|commit", argv[0]);
    dice d = {.side = argv[1],
              .rows = atoi(argv[2]),
              .cols = atoi(argv[3]),
              .tall = (uint64_t)atoi(argv[4]),
              .wide = (uint64_t)atoi(argv[5]),
              .sync = strcmp(argv[6], "commit") == 0};
    CHECK(d.rows > 0 && d.cols > 0 && d.tall > 0 && d.wide > 0);
    d.size = d.rows * d.cols;
    CHECK(d.size <= BENCH_CREW);
    return d;
}

void
dice_join(dice *d, int rank)
{
    d->rank = rank;
    d->edge[0] = d->tall * DICE_CHUNK;
    d->edge[1] = d->wide * DICE_CHUNK;
    d->offset[0] = (uint64_t)(rank / d->cols) * d->edge[0];
    d->offset[1] = (uint64_t)(rank % d->cols) * d->edge[1];
    d->shape[0] = (uint64_t)d->rows * d->edge[0];
    d->shape[1] = (uint64_t)d->cols * d->edge[1];
    d->bytes = (size_t)(d->edge[0] * d->edge[1]);
    d->cells = bench_alloc(d->bytes);
    dice_fill(d);
}

void
dice_fill(dice *d)
{
    bench_fill(d->cells, d->bytes, (uint64_t)d->rank + 1);
}

void
dice_clear(dice *d)
{
    memset(d->cells, 0, d->bytes);
}

void
dice_compare(const dice *d)
{
    CHECK(bench_filled(d->cells, d->bytes, (uint64_t)d->rank + 1));
}

void
dice_report(const dice *d, const char *phase, bench_time t)
{
    printf("{\"side\":\"%s\",\"p\":%d,\"phase\":\"%s\",\"bytes\":%zu,"
           "\"wall\":%.9f,\"cpu\":%.9f}\n",
           d->side, d->size, phase, d->bytes * (size_t)d->size, t.wall, t.cpu);
    fflush(stdout);
}

uint8_t *
dice_corner(const dice *d, uint64_t c)
{
    return d->cells + c / d->wide * DICE_CHUNK * d->edge[1] +
           c % d->wide * DICE_CHUNK;
}
