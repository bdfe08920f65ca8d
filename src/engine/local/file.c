/*
 * engine/local/file.c - paths, and small text files read and replaced whole.
 */
#include "engine/local/local.h"

#include "base/io.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

int
pyri_path_join(char *out, size_t room, const char *path, const char *name)
{
    int n = name[0] == '/' ? snprintf(out, room, "%s", name)
                           : snprintf(out, room, "%s/%s", path, name);
    if (n < 0 || (size_t)n >= room)
        return pyri_fail(PYR_EINVAL, "%s/%s: the path is too long", path,
                         name);
    return 0;
}

int
pyri_path_lock(const char *path, int *fd)
{
    *fd = PYRI_RETRY(
        pyri_sys_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (*fd < 0)
        return pyri_fail_errno(errno, "%s", path);
    if (PYRI_RETRY(pyri_sys_flock(*fd, LOCK_EX)) == 0)
        return 0;
    int err = pyri_fail_errno(errno, "%s: lock", path);
    pyri_sys_close(*fd);
    return err;
}

static ssize_t
read_all(int fd, char *out, size_t room)
{
    size_t size = 0;
    while (size < room) {
        ssize_t n = PYRI_RETRY(pyri_sys_read(fd, out + size, room - size));
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        size += (size_t)n;
    }
    return (ssize_t)size;
}

int
pyri_file_read(const char *path, char *out, size_t room)
{
    int fd = PYRI_RETRY(pyri_sys_open(path, O_RDONLY | O_CLOEXEC));
    if (fd < 0)
        return pyri_fail_errno(errno, "%s", path);
    ssize_t size = read_all(fd, out, room);
    int errnum = errno;
    pyri_sys_close(fd);
    if (size < 0)
        return pyri_fail_errno(errnum, "%s", path);
    if ((size_t)size == room || memchr(out, 0, (size_t)size))
        return pyri_fail(PYR_EFORMAT, "%s: not the small text that belongs "
                                      "there", path);
    out[size] = 0;
    return 0;
}

static int
write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t n = PYRI_RETRY(pyri_sys_write(fd, text, size));
        if (n < 0)
            return -1;
        text += n;
        size -= (size_t)n;
    }
    return 0;
}

int
pyri_path_sync(const char *path)
{
    int fd = PYRI_RETRY(
        pyri_sys_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0)
        return pyri_fail_errno(errno, "%s", path);
    int rc = PYRI_RETRY(pyri_sys_fsync(fd)), errnum = errno;
    pyri_sys_close(fd);
    return rc < 0 ? pyri_fail_errno(errnum, "%s", path) : 0;
}

int
pyri_path_sync_parent(const char *path)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    const char *parent = dirname(copy);
    if (pyri_sys_access(parent, R_OK) < 0 && errno == EACCES)
        return 0; /* who may not read it cannot sync it, and did not make it */
    return pyri_path_sync(parent);
}

int
pyri_file_write(const char *path, const char *text, bool durable)
{
    char temp[PATH_MAX];
    int n = snprintf(temp, sizeof temp, "%s.new", path);
    if (n < 0 || (size_t)n >= sizeof temp)
        return pyri_fail(PYR_EINVAL, "%s: the path is too long", path);
    int fd = PYRI_RETRY(pyri_sys_open(
        temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (fd < 0)
        return pyri_fail_errno(errno, "%s", temp);
    bool ok = write_all(fd, text, strlen(text)) == 0 &&
              (!durable || PYRI_RETRY(pyri_sys_fsync(fd)) == 0);
    int errnum = errno;
    pyri_sys_close(fd);
    if (ok && pyri_sys_rename(temp, path) == 0)
        return durable ? pyri_path_sync_parent(path) : 0;
    if (ok)
        errnum = errno;
    pyri_sys_unlink(temp);
    return pyri_fail_errno(errnum, "%s", path);
}
