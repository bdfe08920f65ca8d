/*
 * base/io.h - going on where a system call was interrupted, or did only part.
 *
 *   int fd = PYRI_RETRY(pyri_sys_open(path, O_RDONLY | O_CLOEXEC));
 */
#ifndef PYRI_BASE_IO_H
#define PYRI_BASE_IO_H

#include "base/sys.h"

#include <errno.h>

/* The result of a call that returns -1 on failure, made again as long as a
 * signal interrupts it. */
#define PYRI_RETRY(call)                                                       \
    __extension__({                                                            \
        __typeof__(call) pyri_retry_result;                                    \
        do                                                                     \
            pyri_retry_result = (call);                                        \
        while (pyri_retry_result == -1 && errno == EINTR);                     \
        pyri_retry_result;                                                     \
    })

/* Bytes read, fewer only at the end of the file; -1 and errno. */
ssize_t pyri_io_pread(int fd, void *out, size_t size, off_t at);

/* These return 0, or an errno. */
int pyri_io_pwrite(int fd, const void *data, size_t size, off_t at);
int pyri_io_random(void *out, size_t size);

/* Sees to it that the first bytes of a file can be written through a map: on a
 * full disk that would be a SIGBUS. The file grows to that size. */
int pyri_io_reserve(int fd, size_t size);
/* Map `size` bytes of a file, made if need be, to write to and to share; the
 * first `reserved` of them are reserved. */
int pyri_io_share(const char *path, size_t reserved, size_t size, void **out);

#endif
