/*
 * engine/local/segment.h - a segment that is being appended to.
 */
#ifndef PYRI_ENGINE_LOCAL_SEGMENT_H
#define PYRI_ENGINE_LOCAL_SEGMENT_H

#include "engine/local/local.h"

/* A segment that ends beyond this is not worth going on with. */
#define PYRI_SEGMENT_FULL (PYRI_SEGMENT_LIMIT - (UINT64_C(1) << 20))

struct pyri_segment {
    pyri_placement where;
    int fd, dirfd;
    uint64_t end;  /* where the next blob may begin; its user's */
    uint64_t reserved; /* the system has set blocks aside up to here */
    bool busy;     /* some thread appends to it; the pool's lock guards it */
    unsigned refs; /* the pool, and syncs under way; likewise */
    atomic_bool poisoned;
    _Atomic uint64_t written, synced; /* counts of appends */
    pthread_mutex_t sync_lock;        /* guards the one below */
    bool entry_synced;                /* the directory knows it for good */
};

/* Open some segment to append to, in none of the directories whose bit is set
 * in `exclude`. g->where.dir is set even on failure, if it got that far. */
int pyri_segment_open(pyri_site *s, uint64_t exclude, pyri_segment *g);
/* Make a new one in the directory g->where.dir. */
int pyri_segment_make(pyri_site *s, pyri_segment *g);

/* Is there room for a blob of `size` bytes? Always, in one that is empty. */
bool pyri_segment_has_room(const pyri_segment *g, uint64_t size);
/* How many of the puts are best appended in one go: at least one. */
size_t pyri_segment_count_run(const pyri_segment *g, const pyri_blob_put *puts,
                              size_t n);
/* Append the puts one after the other, gathered into as few writes as can be,
 * and set their references. If it fails, nothing is taken to be there. */
int pyri_segment_append(pyri_site *s, pyri_segment *g, pyri_blob_put *puts,
                        size_t n);
/* Give back the blocks that were set aside and not used. */
void pyri_segment_trim(pyri_segment *g);
/* Make everything in it durable; returns an errno. With g->sync_lock held. */
int pyri_segment_sync_file(pyri_segment *g);

#endif
