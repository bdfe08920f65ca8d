/*
 * base/sys.h - every call of the library for files, memory, time and chance.
 *
 * The library says pyri_sys_open() where it means open(), and so on, so that
 * tests can take over in one place. tools/check-layers.py sees to it. In
 * release builds the names below are libc's own and nothing is in between; a
 * build with -Dfaults=true goes through base/sys.c, which asks the plan below
 * before each call. What only gives back (free, munmap, closedir) has nothing
 * to fail, and is called directly.
 *
 * What other libraries call (LMDB, Blosc) does not come by here. A test that
 * wants it too links tests/support/interpose.c, which follows the same plan.
 */
#ifndef PYRI_BASE_SYS_H
#define PYRI_BASE_SYS_H

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef PYRI_FAULTS

#define pyri_sys_malloc malloc
#define pyri_sys_dlopen dlopen
#define pyri_sys_calloc calloc
#define pyri_sys_realloc realloc
#define pyri_sys_aligned_alloc aligned_alloc
#define pyri_sys_strdup strdup
#define pyri_sys_clock_gettime clock_gettime
#define pyri_sys_nanosleep nanosleep
#define pyri_sys_getrandom getrandom
#define pyri_sys_open open
#define pyri_sys_openat openat
#define pyri_sys_close close
#define pyri_sys_read read
#define pyri_sys_pread pread
#define pyri_sys_write write
#define pyri_sys_pwrite pwrite
#define pyri_sys_pwritev pwritev
#define pyri_sys_fsync fsync
#define pyri_sys_fdatasync fdatasync
#define pyri_sys_ftruncate ftruncate
#define pyri_sys_fallocate fallocate
#define pyri_sys_rename rename
#define pyri_sys_unlink unlink
#define pyri_sys_unlinkat unlinkat
#define pyri_sys_mkdir mkdir
#define pyri_sys_rmdir rmdir
#define pyri_sys_opendir opendir
#define pyri_sys_fdopendir fdopendir
#define pyri_sys_readdir readdir
#define pyri_sys_stat stat
#define pyri_sys_fstat fstat
#define pyri_sys_lseek lseek
#define pyri_sys_fstatat fstatat
#define pyri_sys_statvfs statvfs
#define pyri_sys_fstatvfs fstatvfs
#define pyri_sys_access access
#define pyri_sys_chmod chmod
#define pyri_sys_realpath realpath
#define pyri_sys_flock flock
#define pyri_sys_fcntl fcntl
#define pyri_sys_mmap mmap
#define pyri_sys_madvise madvise
#define pyri_sys_mincore mincore

#else

#include <stdbool.h>
#include <stdint.h>

#define CALL(type, bad, group, name, params, args, ...)                        \
    type pyri_sys_##name params;
#include "base/sys_calls.inc"
#undef CALL

int pyri_sys_clock_gettime(clockid_t id, struct timespec *t);
int pyri_sys_open(const char *path, int flags, ...);
int pyri_sys_openat(int dirfd, const char *path, int flags, ...);
int pyri_sys_close(int fd);
int pyri_sys_fcntl(int fd, int what, ...);
ssize_t pyri_sys_pwritev(int fd, const struct iovec *iov, int n, off_t at);

/* Groups of calls; a set of them is their sum. */
enum {
    PYRI_SYS_FILE = 1,
    PYRI_SYS_MEMORY = 2,
    PYRI_SYS_CLOCK = 4,
    PYRI_SYS_RANDOM = 8,
    PYRI_SYS_ALL = 15,
};

/* A call that is about to be made. */
typedef struct pyri_sys_call {
    const char *name; /* libc's: "pwritev" */
    unsigned group;
    bool foreign;     /* not the library's own call */
    int fd;           /* or -1 */
    const char *path; /* or NULL */
    size_t size;      /* bytes to read or write; may be made less, not 0 */
    int error;        /* set: the call is not made, and fails with it */
    bool kill;        /* set: the process kills itself after the call */
} pyri_sys_call;

typedef enum pyri_sys_action {
    PYRI_SYS_FAIL,  /* the call is not made, and fails with `error` */
    PYRI_SYS_SHORT, /* at most `most` bytes; other calls pass */
    PYRI_SYS_TEAR,  /* the same, and then SIGKILL */
    PYRI_SYS_DELAY, /* `usec` microseconds before it */
    PYRI_SYS_KILL,  /* SIGKILL instead of the call */
} pyri_sys_action;

/* Something to happen at the Nth call among those that are named. */
typedef struct pyri_sys_plan {
    unsigned groups;  /* of these groups */
    const char *only; /* just these, divided by spaces; NULL: all */
    bool foreign;     /* count what other libraries call, too */
    bool (*spare)(const pyri_sys_call *call); /* but not these; or NULL */
    unsigned long nth;   /* from 1; 0: count, and do nothing */
    unsigned long times; /* so many calls from there on; 0: one */
    pyri_sys_action action;
    int error;
    size_t most;
    unsigned usec;
} pyri_sys_plan;

/* Sets the plan of this process, which is copied but for `only`, and counts
 * from 0 again; NULL ends it. */
void pyri_sys_order(const pyri_sys_plan *plan);

/* How many calls the plan has counted, and how many it has acted on. */
unsigned long pyri_sys_counted(void);
unsigned long pyri_sys_acted(void);

/* Nanoseconds that the clocks are ahead, or behind, of what the system says. */
extern _Atomic int64_t pyri_sys_ahead_real, pyri_sys_ahead_monotonic;

/* Asked before every call, after the plan. It is called by any thread, and may
 * not itself call what it is asked about. */
extern void (*pyri_sys_hook)(pyri_sys_call *call);

/* For interpose.c. enter() says whether to make the call, else errno is set;
 * then leave() must follow. inside() is true in between, on this thread. */
bool pyri_sys_enter(pyri_sys_call *call);
void pyri_sys_leave(const pyri_sys_call *call);
bool pyri_sys_inside(void);

/* Copies at most n parts of at most `size` bytes in all; gives their number. */
int pyri_sys_cut(const struct iovec *iov, int n, size_t size,
                 struct iovec *out);

#endif

#endif
