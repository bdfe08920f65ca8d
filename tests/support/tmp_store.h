/*
 * support/tmp_store.h - a directory for the stores of one test program, under
 * $TMPDIR or /tmp, that is gone when the program is, however it ends.
 *
 *   const char *path = tmp_fresh("a");     a name inside it, nothing made yet
 *   pyr_open(path, PYR_OPEN_CREATE, &store);
 *   tmp_remove(path);
 *
 * A helper process waits for the end of this one on a pipe and then removes
 * the directory, so that also a test that is killed leaves nothing behind.
 */
#ifndef SUPPORT_TMP_STORE_H
#define SUPPORT_TMP_STORE_H

#include "support/proc.h"
#include "support/rng.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static inline void
tmp_start_remover(char *dir)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        abort();
    char sh[] = "/bin/sh", c[] = "-c";
    char script[] = "cat >/dev/null; rm -rf -- \"$0\"";
    char *argv[] = {sh, c, script, dir, NULL};
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        int none = open("/dev/null", O_RDWR);
        dup2(ends[0], 0);
        dup2(none, 1);
        dup2(none, 2);
        execve(sh, argv, environ);
        _exit(127);
    }
    close(ends[0]); /* the other end closes when this process ends */
}

/* The directory of this program. */
static inline const char *
tmp_dir(void)
{
    static char dir[PATH_MAX];
    if (dir[0])
        return dir;
    const char *base = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/pyramid-test-XXXXXX",
             base && *base ? base : "/tmp");
    if (!mkdtemp(dir)) {
        perror(dir);
        abort();
    }
    tmp_start_remover(dir);
    return dir;
}

/* DIR/name in one of a few static buffers. */
static inline const char *
tmp_path(const char *name)
{
    static char paths[8][PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, PATH_MAX, "%.2000s/%.2000s", tmp_dir(), name);
    return path;
}

/* Is this the name of a store, or of something else that a test needs? */
static inline bool
tmp_is_store(const char *prefix)
{
    static const char *const others[] = {"logs", "data", "disk",
                                         "file", "dir",  "empty"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(prefix, others[i]) == 0)
            return false;
    return true;
}

/* A namespace of the pool that PYR_TEST_RADOS names (a URL as tools/dev-ceph
 * prints it). */
static inline const char *
tmp_on_cluster(const char *cluster, const char *name)
{
    static char urls[8][PATH_MAX];
    static unsigned next;
    char *url = urls[next++ % 8];
    int pool = (int)strcspn(cluster, "?");
    snprintf(url, PATH_MAX, "%.*s/%s-%s%s", pool, cluster,
             strrchr(tmp_dir(), '-') + 1, name, cluster + pool);
    return url;
}

/* The name of a store, or a path inside the directory, that was never given
 * before. */
static inline const char *
tmp_fresh(const char *prefix)
{
    static unsigned number;
    char name[300];
    const char *cluster = getenv("PYR_TEST_RADOS");
    snprintf(name, sizeof name, "%.200s-%u", prefix, number++);
    return cluster && *cluster && tmp_is_store(prefix)
               ? tmp_on_cluster(cluster, name)
               : tmp_path(name);
}

static inline void
tmp_remove(const char *path)
{
    char rm[] = "/bin/rm", rf[] = "-rf", dashes[] = "--";
    char *target = strdup(path);
    char *argv[] = {rm, rf, dashes, target, NULL};
    pid_t pid = fork();
    if (pid == 0) {
        execve(rm, argv, environ);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
    free(target);
}

/* Writes text to a file; false if it cannot. */
static inline bool
tmp_write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    if (!f)
        return false;
    bool ok = fputs(text, f) >= 0;
    return fclose(f) == 0 && ok;
}

static inline bool
tmp_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

#endif
