/*
 * verify/saved.h - the files of a store, kept in memory to be put back as they
 * were.
 */
#ifndef VERIFY_SAVED_H
#define VERIFY_SAVED_H

#include "support/check.h"

#include <ftw.h>
#include <stdint.h>

enum { MAX_SAVED = 32 };

static struct {
    char name[5000];
    uint8_t *bytes;
    size_t size;
} saved[MAX_SAVED];
static int nsaved;

/* Files that hold nothing but who is there now. */
static inline bool
is_fleeting(const char *name)
{
    return strstr(name, "lock.mdb") || strstr(name, "/presence") ||
           strstr(name, "/wake") || strstr(name, "/upkeep") ||
           strstr(name, "/mailbox");
}

static inline int
find_saved(const char *name)
{
    for (int i = 0; i < nsaved; i++)
        if (strcmp(saved[i].name, name) == 0)
            return i;
    return -1;
}

static inline int
save_file(const char *name, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)ftw;
    if (kind != FTW_F || is_fleeting(name))
        return 0;
    REQUIRE(nsaved < MAX_SAVED);
    snprintf(saved[nsaved].name, sizeof saved->name, "%s", name);
    saved[nsaved].size = (size_t)st->st_size;
    REQUIRE((saved[nsaved].bytes = malloc((size_t)st->st_size + 1)));
    FILE *in = fopen(name, "rb");
    REQUIRE(in && fread(saved[nsaved].bytes, 1, saved[nsaved].size, in) ==
                      saved[nsaved].size);
    fclose(in);
    nsaved++;
    return 0;
}

static inline int
drop_new_file(const char *name, const struct stat *st, int kind,
              struct FTW *ftw)
{
    (void)st, (void)ftw;
    if (kind == FTW_F && !is_fleeting(name) && find_saved(name) < 0)
        unlink(name);
    return 0;
}

static inline void
save_store(const char *path)
{
    REQUIRE(nftw(path, save_file, 8, FTW_PHYS) == 0);
}

/* Nobody has it open. */
static inline void
restore_store(const char *path)
{
    REQUIRE(nftw(path, drop_new_file, 8, FTW_PHYS) == 0);
    for (int i = 0; i < nsaved; i++) {
        FILE *out = fopen(saved[i].name, "wb");
        REQUIRE(out && fwrite(saved[i].bytes, 1, saved[i].size, out) ==
                           saved[i].size);
        REQUIRE(fclose(out) == 0);
    }
}

static inline void
forget_saved(void)
{
    while (nsaved > 0)
        free(saved[--nsaved].bytes);
}

#endif
