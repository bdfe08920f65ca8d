/*
 * support/tmp_store.h - a directory for the stores of one test program, under
 * $TMPDIR or /tmp, that is gone when the program is, however it ends.
 *
 *   const char *path = tmp_fresh("a");     a name inside it, nothing made yet
 *   const char *url = tmp_store("a");      the same, of a store
 *   pyr_open(url, PYR_OPEN_CREATE, &store);
 *   tmp_remove(url);
 *
 * Stores are directories in there unless PYR_TEST_STORE names another place:
 * rados://POOL?... (each store gets a namespace of its own in that pool),
 * mem: or file:DIR. Such stores are not removed: a cluster for tests is thrown
 * away whole.
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
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Run a shell's script, with $0 and $1, when this process has ended. It has to
 * read its input to the end first. */
static inline void
tmp_after(const char *script, const char *zero, const char *one)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        abort();
    char sh[] = "/bin/sh", c[] = "-c";
    char *argv[] = {sh, c, strdup(script), strdup(zero), strdup(one), NULL};
    fflush(NULL);
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
    for (int i = 2; i < 5; i++)
        free(argv[i]);
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
    tmp_after("cat >/dev/null; rm -rf -- \"$0\"", dir, "");
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

/* A path inside the directory that was never given before. */
static inline const char *
tmp_fresh(const char *prefix)
{
    static unsigned number;
    char name[300];
    snprintf(name, sizeof name, "%.200s-%u", prefix, number++);
    return tmp_path(name);
}

/* As snprintf gives it: the URL of a store in the place that `base` names. */
static inline void
tmp_url_in(const char *base, const char *prefix, char *url, size_t size)
{
    static unsigned number;
    static uint64_t mark; /* process ids come again */
    if (!mark)
        mark = (uint64_t)now_ns() ^ ((uint64_t)getpid() << 40) ^ 1;
    char name[300];
    snprintf(name, sizeof name, "%.200s-%llx-%u", prefix,
             (unsigned long long)mark, number++);
    if (strncmp(base, "mem:", 4) == 0) {
        snprintf(url, size, "%.1000s%s", base, name);
        return;
    }
    if (strncmp(base, "file:", 5) == 0) /* tests want a path */
        base += 5;
    bool rados = strncmp(base, "rados://", 8) == 0;
    size_t stem = rados ? strcspn(base, "?") : strlen(base);
    while (stem > 0 && base[stem - 1] == '/')
        stem--;
    snprintf(url, size, "%.*s/%s%s", (int)stem, base, name,
             rados ? base + strcspn(base, "?") : "");
}

/* The URL of a store that was never given before; nothing is made yet. */
static inline const char *
tmp_store(const char *prefix)
{
    static char urls[8][PATH_MAX];
    static unsigned next;
    const char *base = getenv("PYR_TEST_STORE");
    if (!base || !*base)
        return tmp_fresh(prefix);
    char *url = urls[next++ % 8];
    tmp_url_in(base, prefix, url, PATH_MAX);
    return url;
}

/* The same for tests that are content with memory. */
static inline const char *
tmp_quick_store(const char *prefix)
{
    static char urls[8][PATH_MAX];
    static unsigned next;
    const char *base = getenv("PYR_TEST_STORE");
    char *url = urls[next++ % 8];
    tmp_url_in(base && *base ? base : "mem:", prefix, url, PATH_MAX);
    return url;
}

/* Whether a store is a directory that a test may look into. */
static inline bool
tmp_is_path(const char *url)
{
    return strncmp(url, "mem:", 4) != 0 && strncmp(url, "rados:", 6) != 0;
}

static inline void
tmp_remove(const char *path)
{
    if (!tmp_is_path(path))
        return;
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
tmp_write_file(const char *path, const char *content)
{
    FILE *f = fopen(path, "w");
    if (!f)
        return false;
    bool ok = fputs(content, f) >= 0;
    return fclose(f) == 0 && ok;
}

static inline bool
tmp_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

#endif
