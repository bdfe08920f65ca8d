/*
 * examples/scratch.h - a directory for an example's store, gone at the end.
 * Programs of your own just name the path they want.
 */
#ifndef EXAMPLES_SCRATCH_H
#define EXAMPLES_SCRATCH_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

static char scratch_dir[4000];
static char scratch_url[sizeof scratch_dir + 8];

static int
scratch_remove(const char *path, const struct stat *st, int flag,
               struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static void
scratch_clean(void)
{
    nftw(scratch_dir, scratch_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* A path at which no store is yet. */
static const char *
scratch_store(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(scratch_dir, sizeof scratch_dir, "%s/pyramid-example.XXXXXX",
             tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(scratch_dir)) {
        perror(scratch_dir);
        exit(1);
    }
    atexit(scratch_clean);
    snprintf(scratch_url, sizeof scratch_url, "%s/s.pyr", scratch_dir);
    return scratch_url;
}

#endif
