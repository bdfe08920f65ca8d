/*
 * engine/rados/whereabouts.c - has a process of this machine ended?
 *
 * Elsewhere the end of a process shows by its silence only; on its own machine
 * the kernel knows at once. A session tells where its process is:
 *
 *   machine (16)  digest of the boot, and of the spaces in which process
 *                 numbers and start times mean what they say
 *   pid (4), start (8)  field 22 of /proc/PID/stat
 *
 * Only what is certain counts: no process has the number, or another one has
 * it, or it has ended and nobody asked for its code yet. What cannot be known
 * is not gone.
 */
#include "engine/rados/rados.h"

#include "base/bytes.h"
#include "base/io.h"
#include "base/sys.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the kernel tells of a process. */
typedef struct sight {
    uint32_t pid;
    char state;
    unsigned long threads;
    unsigned long long start;
} sight;

/* A small file whole, as a string; an errno. */
static int
read_file(const char *path, char *out, size_t room)
{
    int fd = PYRI_RETRY(pyri_sys_open(path, O_RDONLY | O_CLOEXEC));
    if (fd < 0)
        return errno;
    ssize_t n = PYRI_RETRY(pyri_sys_read(fd, out, room - 1));
    int errnum = n < 0 ? errno : n == 0 ? EIO : 0;
    pyri_sys_close(fd);
    out[n > 0 ? n : 0] = 0;
    return errnum;
}

/* Its name, in parentheses, may hold anything. */
static int
look(const char *path, sight *out)
{
    char text[1024];
    unsigned pid;
    int errnum = read_file(path, text, sizeof text);
    if (errnum)
        return errnum;
    const char *rest = strrchr(text, ')');
    if (!rest || sscanf(text, "%u", &pid) != 1 ||
        sscanf(rest + 1,
               " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
               "%*s %*s %lu %*s %llu",
               &out->state, &out->threads, &out->start) != 3)
        return EIO;
    out->pid = pid;
    return 0;
}

static bool
name_machine(uint8_t out[16])
{
    static const char *const spaces[] = {"/proc/self/ns/pid",
                                         "/proc/self/ns/time"};
    char text[256];
    if (read_file("/proc/sys/kernel/random/boot_id", text, 100) != 0)
        return false;
    size_t n = strlen(text);
    for (int i = 0; i < 2; i++) {
        struct stat st = {0};
        if (pyri_sys_stat(spaces[i], &st) != 0 && (i == 0 || errno != ENOENT))
            return false; /* kernels before 5.6 have one time for all */
        n += (size_t)snprintf(text + n, sizeof text - n, " %llu %llu",
                              (unsigned long long)st.st_dev,
                              (unsigned long long)st.st_ino);
    }
    pyri_digest d = pyri_hash128(text, n);
    pyri_store64(out, d.lo);
    pyri_store64(out + 8, d.hi);
    return true;
}

bool
pyri_whereabouts_own(uint8_t out[PYRI_WHEREABOUTS])
{
    sight own;
    if (look("/proc/self/stat", &own) != 0 || own.pid != (uint32_t)getpid() ||
        !name_machine(out))
        return false; /* also if /proc shows another space of processes */
    pyri_store32(out + 16, own.pid);
    pyri_store64(out + 20, own.start);
    return true;
}

static bool
has_ended(uint32_t pid, uint64_t start)
{
    char path[64];
    sight now;
    snprintf(path, sizeof path, "/proc/%u/stat", (unsigned)pid);
    int errnum = look(path, &now);
    if (errnum == ENOENT || errnum == ESRCH) /* or it is hidden from us */
        return kill((pid_t)pid, 0) < 0 && errno == ESRCH;
    if (errnum)
        return false;
    /* its first thread may have ended before the others */
    return now.start != start ||
           ((now.state == 'Z' || now.state == 'X') && now.threads <= 1);
}

bool
pyri_whereabouts_gone(pyri_bytes of)
{
    uint8_t own[PYRI_WHEREABOUTS];
    const uint8_t *theirs = of.data;
    if (of.size != PYRI_WHEREABOUTS || !pyri_whereabouts_own(own) ||
        memcmp(own, theirs, 16) != 0)
        return false;
    uint32_t pid = pyri_load32(theirs + 16);
    return pid > 0 && pid <= INT32_MAX &&
           has_ended(pid, pyri_load64(theirs + 20));
}
