/*
 * bench/player.h - a player: a process that holds one store and does what it
 * is told, line by line.
 *
 * bench.py starts a player for each side, lets them prepare, and then calls
 * them in turns; a player that is not called waits. The peers in Python speak
 * the same lines (peers/player.py):
 *
 *   make array=square shape=8192,8192 chunk=256,256 type=f64 file=cells sync=0
 *   read array=square size=100,100 count=2000 seed=7
 *   {"n": 2000, "wall": 0.031, "cpu": 0.031}
 *
 * A line is a verb and its words; the answer is one line of JSON, or
 * {"error": "..."} after which the player ends.
 */
#ifndef BENCH_PLAYER_H
#define BENCH_PLAYER_H

#include "common.h"

enum { PLAYER_AXES = 3 };

/* An array of a player, and the file of cells that it was filled from. */
typedef struct slate {
    char name[64];
    int ndim;
    uint64_t shape[PLAYER_AXES], chunk[PLAYER_AXES];
    size_t cell;           /* bytes */
    bool real32;           /* f32, else f64 */
    bool sync;             /* updates end on stable storage */
    bool pressed;          /* compressed */
    const uint8_t *source; /* mapped; row-major */
    size_t source_bytes;
    void *own; /* what the backend knows of it */
} slate;

/* What stores do. Whatever fails ends the program. */
typedef struct backend {
    /* Make it and fill it from s->source, or open one that is there. */
    void (*open)(slate *s, const char *path, bool make);
    void (*close)(slate *s);
    /* snapshot: a number that change() gave; 0: the newest */
    void (*read)(slate *s, uint64_t snapshot, const uint64_t *offset,
                 const uint64_t *size, void *buf);
    /* Each is durable as s->sync says, and a version if there are any. */
    void (*update)(slate *s, const uint64_t *offset, const uint64_t *size,
                   const void *cells);
    /* Those below may be NULL: it cannot do that. */
    void (*append)(slate *s, const void *frame); /* along axis 0, by one */
    double (*mean)(slate *s, const uint64_t *offset, const uint64_t *size);
    /* n boxes as one version; its number */
    uint64_t (*change)(slate *s, const uint64_t *offsets, const uint64_t *size,
                       const void *cells, int n);
    uint64_t (*versions)(slate *s); /* the first fill among them */
    uint64_t (*diff)(slate *s, uint64_t a, uint64_t b); /* boxes */
} backend;

/* Read lines and do what they say until they end. */
int player_main(int argc, char **argv, const backend *b);

#endif
