/*
 * support/last_write.h - dying between the last write of a commit of LMDB and
 * the note that readers go by: it is done, and nobody sees it.
 */
#ifndef SUPPORT_LAST_WRITE_H
#define SUPPORT_LAST_WRITE_H

#include "support/rng.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* One commit in so many, by chance, is the last; 0: none is. */
static unsigned die_in_commit;

/* LMDB calls this as pwrite(); its last write is of less than a page. */
ssize_t write_for_lmdb(int fd, const void *bytes, size_t size, off_t at)
    __asm__("pwrite");

ssize_t
write_for_lmdb(int fd, const void *bytes, size_t size, off_t at)
{
    ssize_t n = syscall(SYS_pwrite64, fd, bytes, size, at);
    if (die_in_commit && size < 1024) {
        rng r = rng_of((uint64_t)now_ns() ^ (uint64_t)getpid());
        if (rng_once_in(&r, die_in_commit))
            kill(getpid(), SIGKILL);
    }
    return n;
}

#endif
