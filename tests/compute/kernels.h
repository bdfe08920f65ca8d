/*
 * compute/kernels.h - a directory of kernels for a test: the shipped ones and
 * those of tests/compute/kernels. They are copied, so that nobody else may
 * write there.
 */
#ifndef COMPUTE_KERNELS_H
#define COMPUTE_KERNELS_H

#include "support/check.h"
#include "support/tmp_store.h"

#include <dirent.h>

/* Copies every *.so of a folder; test_NAME.so becomes NAME.so. */
static inline void
copy_kernels(const char *from, const char *to)
{
    DIR *dir = opendir(from);
    REQUIRE(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        char path[PATH_MAX], command[3 * PATH_MAX];
        const char *name = e->d_name;
        size_t n = strlen(name);
        if (n < 4 || strcmp(name + n - 3, ".so") != 0)
            continue;
        snprintf(path, sizeof path, "%.2000s/%s", to,
                 strncmp(name, "test_", 5) == 0 ? name + 5 : name);
        snprintf(command, sizeof command, "install -m 644 '%.2000s/%s' '%s'",
                 from, name, path);
        REQUIRE(system(command) == 0);
    }
    closedir(dir);
}

/* The directory, made once. The folders come from the build. */
static inline const char *
kernels_dir(void)
{
    static char dir[PATH_MAX];
    const char *folders = getenv("PYR_TEST_KERNELS");
    char from[2][2000];
    if (dir[0])
        return dir;
    REQUIRE(folders && sscanf(folders, "%1999[^:]:%1999s", from[0], from[1]) ==
                           2);
    snprintf(dir, sizeof dir, "%s", tmp_path("kernels"));
    REQUIRE(mkdir(dir, 0755) == 0);
    copy_kernels(from[0], dir);
    copy_kernels(from[1], dir);
    return dir;
}

#endif
