/*
 * base/io.c - going on where a system call was interrupted, or did only part.
 */
#include "base/io.h"

ssize_t
pyri_io_pread(int fd, void *out, size_t size, off_t at)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = PYRI_RETRY(pyri_sys_pread(fd, (char *)out + done,
                                              size - done, at + (off_t)done));
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

int
pyri_io_pwrite(int fd, const void *data, size_t size, off_t at)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = PYRI_RETRY(pyri_sys_pwrite(fd, (const char *)data + done,
                                               size - done, at + (off_t)done));
        if (n < 0)
            return errno;
        if (n == 0)
            return ENOSPC;
        done += (size_t)n;
    }
    return 0;
}

int
pyri_io_random(void *out, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = PYRI_RETRY(
            pyri_sys_getrandom((char *)out + done, size - done, 0));
        if (n < 0)
            return errno;
        done += (size_t)n;
    }
    return 0;
}

int
pyri_io_reserve(int fd, size_t size)
{
    if (PYRI_RETRY(pyri_sys_fallocate(fd, 0, 0, (off_t)size)) == 0)
        return 0;
    if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)
        return errno;
    struct stat st; /* there are file systems that cannot */
    if (pyri_sys_fstat(fd, &st) < 0 ||
        ((size_t)st.st_size < size &&
         PYRI_RETRY(pyri_sys_ftruncate(fd, (off_t)size)) < 0))
        return errno;
    return 0;
}

int
pyri_io_share(const char *path, size_t reserved, size_t size, void **out)
{
    int fd = PYRI_RETRY(
        pyri_sys_open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (fd < 0)
        return errno;
    int errnum = pyri_io_reserve(fd, reserved);
    if (errnum == 0) {
        void *at = pyri_sys_mmap(NULL, size, PROT_READ | PROT_WRITE,
                                 MAP_SHARED, fd, 0);
        errnum = at == MAP_FAILED ? errno : 0;
        *out = errnum ? NULL : at;
    }
    pyri_sys_close(fd);
    return errnum;
}
