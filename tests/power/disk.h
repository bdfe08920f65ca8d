/*
 * power/disk.h - what a disk may hold after the power failed.
 *
 * A disk is a tree of files in memory. disk_cut() replays the first events of
 * a trace onto a disk, as a file system that promises what POSIX does and no
 * more:
 *
 * - what was written to a file is there for sure once that file was synced, or
 *   once a write through O_DSYNC has returned; so is its size;
 * - a name (made, renamed or removed) is there or gone for sure once its
 *   directory was synced: syncing the file is not enough;
 * - all else is there or not as the policy says, one write without the other,
 *   later ones without earlier ones, some sectors of 512 bytes of a write and
 *   not others, the size of the file without what was written.
 *
 * A rename happens or does not; it is not half done. What nobody wants after a
 * restart (live/, lock.mdb) follows the policy, too, but has no number.
 */
#ifndef POWER_DISK_H
#define POWER_DISK_H

#include "support/interpose.h"
#include "support/rng.h"

enum { DISK_MAX_IDS = 4096 }; /* of a trace */

typedef struct disk disk;

typedef enum disk_fate {
    DISK_NONE,     /* nothing that was not synced */
    DISK_ALL,      /* all of it */
    DISK_ALL_BUT,  /* all but the one with this number */
    DISK_ONLY,     /* just the one with this number */
    DISK_TORN_ONE, /* all, but the one with this number is torn */
    DISK_RANDOM,   /* any of them, some of them torn; the number is the seed */
} disk_fate;

typedef struct disk_policy {
    disk_fate fate;
    uint64_t number;
} disk_policy;

disk *disk_new(void); /* empty */
void disk_free(disk *d);

/* Reads and writes a whole directory of the real file system. */
disk *disk_load(const char *path);
bool disk_save(const disk *d, const char *path);

/* Gives the disk after `count` events, and in *loose how many of them were up
 * to the policy. */
disk *disk_cut(const disk *before, const trace *t, size_t count,
               disk_policy policy, size_t *loose);

/* Bytes of a file by its path, or NULL: for tests. */
const uint8_t *disk_file(const disk *d, const char *path, size_t *size);

#endif
