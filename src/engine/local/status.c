/*
 * engine/local/status.c - how a store is, for people and monitors.
 */
#include "engine/local/local.h"

#include "base/checked.h"
#include "base/io.h"
#include "base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static bool
is_segment(const char *name)
{
    return strlen(name) == 12 && strcmp(name + 8, ".seg") == 0;
}

static int
sum_segments(int fd, pyr_data_dir *out)
{
    int own = PYRI_RETRY(
        pyri_sys_openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    DIR *d = own < 0 ? NULL : pyri_sys_fdopendir(own);
    if (!d) {
        int err = pyri_fail_errno(errno, "data directory %s", out->path);
        if (own >= 0)
            pyri_sys_close(own);
        return err;
    }
    for (struct dirent *e; (e = pyri_sys_readdir(d));) {
        struct stat st;
        if (!is_segment(e->d_name) ||
            pyri_sys_fstatat(own, e->d_name, &st, 0) < 0)
            continue;
        out->segments++;
        /* Not the holes in it, nor blocks set aside behind its end. */
        out->data_bytes += pyri_min64((uint64_t)st.st_size,
                                      (uint64_t)st.st_blocks * 512);
    }
    closedir(d);
    return 0;
}

static int
measure(pyri_site *s, size_t i, pyr_data_dir *out)
{
    struct statvfs v;
    int fd, err = pyri_dirs_get(s, i, &fd);
    if (err < 0)
        return err;
    if (pyri_sys_fstatvfs(fd, &v) < 0)
        return pyri_fail_errno(errno, "data directory %s", out->path);
    out->free_bytes = (uint64_t)v.f_bavail * v.f_frsize;
    out->total_bytes = (uint64_t)v.f_blocks * v.f_frsize;
    return sum_segments(fd, out);
}

static int
measure_meta(pyri_site *s, pyr_status *out)
{
    char path[PATH_MAX];
    struct stat st;
    int err = pyri_path_join(path, sizeof path, s->path, "meta/data.mdb");
    if (err < 0)
        return err;
    if (pyri_sys_stat(path, &st) < 0)
        return pyri_fail_errno(errno, "%s", path);
    out->metadata_bytes = (uint64_t)st.st_blocks * 512;
    return 0;
}

int
pyri_site_status(pyri_site *s, pyr_status *out, pyr_data_dir_fn *each,
                 void *ctx)
{
    uint64_t load[PYRI_MAX_DIRS] = {0};
    *out = (pyr_status){.engine = "file", .format = s->format.number,
                        .durability = s->format.durability,
                        .lease_ms = s->format.lease_ms,
                        .arrays = out->arrays}; /* not ours to tell */
    int err = measure_meta(s, out);
    if (err == 0 && pyri_live_there(s) &&
        ((err = pyri_presence_count(s, &out->writers)) < 0 ||
         (err = pyri_ticket_count(s, &out->in_flight)) < 0 ||
         (err = pyri_place_load(s, load)) < 0))
        return err;
    for (size_t i = 0; i < s->dirs.n && err == 0; i++) {
        pyr_data_dir dir = {.path = s->dirs.list[i].path, .writers = load[i]};
        dir.error = measure(s, i, &dir);
        out->data_bytes += dir.data_bytes;
        if (each)
            err = each(ctx, &dir);
    }
    return err;
}
