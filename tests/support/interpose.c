/*
 * support/interpose.c - system calls as this program sees fit.
 *
 * Everything here asks the kernel by syscall(), so that nothing comes around a
 * second time; only memory is asked for where it would have been without us.
 */
#undef _FILE_OFFSET_BITS /* open() is open() here; see the aliases */
#include "support/interpose.h"

#include "base/sys.h"

#include <dlfcn.h>
#include <errno.h>
#include <ftw.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

int __fxstat(int version, int fd, struct stat *st);

enum { MAX_KNOWN = 4096 };

typedef struct known {
    dev_t dev;
    ino_t ino;
    uint32_t id;
} known;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static trace *now; /* NULL: nothing is noted */
static known table[MAX_KNOWN];
static int nknown;
static uint32_t next_id;
static bool skip_syncs;
static uint64_t random_state; /* 0: the system's */
static _Thread_local bool memory_on;

/* --- the trace ----------------------------------------------------------- */

trace *
trace_new(size_t room)
{
    void *at = (void *)syscall(SYS_mmap, NULL, sizeof(trace) + room,
                               PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                               0);
    if (at == MAP_FAILED)
        return NULL;
    trace *t = at;
    t->room = room;
    return t;
}

void
trace_free(trace *t)
{
    if (t)
        munmap(t, sizeof *t + t->room);
}

static size_t
event_size(uint64_t data)
{
    return (sizeof(trace_event) + (size_t)data + 7) & ~(size_t)7;
}

const trace_event *
trace_next(const trace *t, const trace_event *e)
{
    const uint8_t *at = e ? (const uint8_t *)e + event_size(e->size) : t->bytes;
    return at < t->bytes + t->used ? (const trace_event *)(const void *)at
                                   : NULL;
}

const uint8_t *
trace_data(const trace_event *e)
{
    return (const uint8_t *)(e + 1);
}

/* With the lock held. The data is `size` bytes of iov. */
static void
note(trace_event e, const struct iovec *iov)
{
    size_t size = event_size(e.size);
    if (now->used + size > now->room) {
        now->overflow = true;
        return;
    }
    uint8_t *at = now->bytes + now->used, *data = at + sizeof e;
    memcpy(at, &e, sizeof e);
    for (size_t left = (size_t)e.size; left > 0; iov++) {
        size_t n = iov->iov_len < left ? iov->iov_len : left;
        memcpy(data, iov->iov_base, n);
        data += n;
        left -= n;
    }
    now->used += size;
}

void
trace_note(uint64_t at)
{
    pthread_mutex_lock(&lock);
    if (now)
        note((trace_event){.kind = TRACE_NOTE, .at = at}, NULL);
    pthread_mutex_unlock(&lock);
}

/* --- which files are ours ------------------------------------------------ */

static bool
stat_raw(int dirfd, const char *path, int flags, struct stat *st)
{
    return syscall(SYS_newfstatat, dirfd, path, st, flags) == 0;
}

static known *
find(const struct stat *st)
{
    for (int i = 0; i < nknown; i++)
        if (table[i].dev == st->st_dev && table[i].ino == st->st_ino)
            return &table[i];
    return NULL;
}

static uint32_t
add(const struct stat *st)
{
    known *k = find(st);
    if (!k) {
        if (nknown == MAX_KNOWN)
            abort();
        k = &table[nknown++];
    }
    *k = (known){st->st_dev, st->st_ino, next_id++};
    return k->id;
}

static bool
id_of_fd(int fd, uint32_t *id)
{
    struct stat st;
    known *k;
    if (!stat_raw(fd, "", AT_EMPTY_PATH, &st) || !(k = find(&st)))
        return false;
    *id = k->id;
    return true;
}

/* The directory that a path names something in, and the name. */
static bool
split(int dirfd, const char *path, uint32_t *dir, char *name, size_t room)
{
    char copy[PATH_MAX];
    struct stat st;
    known *k;
    const char *slash = strrchr(path, '/');
    snprintf(copy, sizeof copy, "%.*s", slash ? (int)(slash - path) : 1,
             slash ? path : ".");
    if (slash == path)
        strcpy(copy, "/");
    if (!stat_raw(dirfd, copy, 0, &st) || !(k = find(&st)))
        return false;
    *dir = k->id;
    int n = snprintf(name, room, "%s", slash ? slash + 1 : path);
    if (n < 0 || (size_t)n >= room)
        abort(); /* make it longer */
    return true;
}

static size_t root_length;

static int
add_old(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    trace_event e = {.kind = TRACE_KNOWN, .id = add(st)};
    const char *below = path + root_length;
    snprintf(e.name, sizeof e.name, "%s", *below == '/' ? below + 1 : below);
    note(e, NULL);
    return 0;
}

void
interpose_trace(trace *t, const char *root)
{
    now = NULL;
    nknown = 0;
    next_id = 0;
    if (!t)
        return;
    root_length = strlen(root);
    now = t;
    if (nftw(root, add_old, 16, FTW_PHYS) != 0)
        abort();
}

void
interpose_skip_syncs(bool skip)
{
    skip_syncs = skip;
}

void
interpose_seed(uint64_t seed)
{
    random_state = seed;
}

void
interpose_memory(bool on)
{
    memory_on = on;
}

/* --- what happened ------------------------------------------------------- */

static void
note_written(int fd, const struct iovec *iov, ssize_t size, off_t at)
{
    uint32_t id;
    pthread_mutex_lock(&lock);
    if (now && size > 0 && id_of_fd(fd, &id)) {
        if (at < 0)
            at = syscall(SYS_lseek, fd, 0, SEEK_CUR) - size;
        long flags = syscall(SYS_fcntl, fd, F_GETFL);
        note((trace_event){.kind = TRACE_WRITE,
                           .id = id,
                           .at = (uint64_t)at,
                           .size = (uint64_t)size,
                           .durable = flags & O_DSYNC},
             iov);
    }
    pthread_mutex_unlock(&lock);
}

static void
note_synced(int fd)
{
    uint32_t id;
    pthread_mutex_lock(&lock);
    if (now && id_of_fd(fd, &id))
        note((trace_event){.kind = TRACE_SYNC, .id = id}, NULL);
    pthread_mutex_unlock(&lock);
}

static void
note_resized(int fd, off_t size)
{
    uint32_t id;
    pthread_mutex_lock(&lock);
    if (now && id_of_fd(fd, &id))
        note((trace_event){.kind = TRACE_RESIZE,
                           .id = id,
                           .at = (uint64_t)size},
             NULL);
    pthread_mutex_unlock(&lock);
}

static void
note_made(trace_kind kind, int dirfd, const char *path)
{
    trace_event e = {.kind = kind};
    struct stat st;
    pthread_mutex_lock(&lock);
    if (now && split(dirfd, path, &e.dir, e.name, sizeof e.name) &&
        stat_raw(dirfd, path, AT_SYMLINK_NOFOLLOW, &st)) {
        e.id = add(&st);
        note(e, NULL);
    }
    pthread_mutex_unlock(&lock);
}

/* Before a name goes: the event to note if it did. */
static bool
before_leaving(int dirfd, const char *path, trace_event *e)
{
    struct stat st;
    known *k;
    bool ours = now && split(dirfd, path, &e->dir, e->name, sizeof e->name) &&
                stat_raw(dirfd, path, AT_SYMLINK_NOFOLLOW, &st) &&
                (k = find(&st));
    if (ours)
        e->id = k->id;
    return ours;
}

/* --- the calls ----------------------------------------------------------- */

/* Is this call one that only the plan of base/sys.h knows of? Then enter. */
#define FOREIGN(c, bad)                                                        \
    bool own = pyri_sys_inside();                                              \
    if (!own && !pyri_sys_enter(c))                                            \
        return bad;

#define LEAVE(c)                                                               \
    do {                                                                       \
        if (!own)                                                              \
            pyri_sys_leave(c);                                                 \
    } while (0)

static int
open_any(const char *name, int dirfd, const char *path, int flags, mode_t mode)
{
    pyri_sys_call c = {name, PYRI_SYS_FILE, .foreign = true, .fd = -1,
                       .path = path};
    struct stat st;
    FOREIGN(&c, -1)
    bool there = now && stat_raw(dirfd, path, 0, &st);
    if (skip_syncs && !now)
        flags &= ~(O_DSYNC | O_SYNC);
    int fd = (int)syscall(SYS_openat, dirfd, path, flags, mode);
    if (fd >= 0 && now && flags & O_CREAT && !there)
        note_made(TRACE_CREATE, dirfd, path);
    if (fd >= 0 && now && flags & O_TRUNC && there && st.st_size > 0)
        note_resized(fd, 0);
    LEAVE(&c);
    return fd;
}

int
open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return open_any("open", AT_FDCWD, path, flags, mode);
}

int
openat(int dirfd, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return open_any("openat", dirfd, path, flags, mode);
}

int
close(int fd)
{
    pyri_sys_call c = {"close", PYRI_SYS_FILE, .foreign = true, .fd = fd};
    bool own = pyri_sys_inside(), entered = own || pyri_sys_enter(&c);
    int errnum = errno, result = (int)syscall(SYS_close, fd);
    if (!entered) { /* but closed it is */
        errno = errnum;
        return -1;
    }
    LEAVE(&c);
    return result;
}

ssize_t
read(int fd, void *out, size_t size)
{
    pyri_sys_call c = {"read", PYRI_SYS_FILE, .foreign = true, .fd = fd,
                       .size = size};
    FOREIGN(&c, -1)
    ssize_t n = syscall(SYS_read, fd, out, c.size);
    LEAVE(&c);
    return n;
}

ssize_t
pread(int fd, void *out, size_t size, off_t at)
{
    pyri_sys_call c = {"pread", PYRI_SYS_FILE, .foreign = true, .fd = fd,
                       .size = size};
    FOREIGN(&c, -1)
    ssize_t n = syscall(SYS_pread64, fd, out, c.size, at);
    LEAVE(&c);
    return n;
}

ssize_t
write(int fd, const void *data, size_t size)
{
    pyri_sys_call c = {"write", PYRI_SYS_FILE, .foreign = true, .fd = fd,
                       .size = size};
    struct iovec iov = {(void *)(uintptr_t)data, size};
    FOREIGN(&c, -1)
    ssize_t n = syscall(SYS_write, fd, data, c.size);
    if (now)
        note_written(fd, &iov, n, -1);
    LEAVE(&c);
    return n;
}

ssize_t
pwrite(int fd, const void *data, size_t size, off_t at)
{
    pyri_sys_call c = {"pwrite", PYRI_SYS_FILE, .foreign = true, .fd = fd,
                       .size = size};
    struct iovec iov = {(void *)(uintptr_t)data, size};
    FOREIGN(&c, -1)
    ssize_t n = syscall(SYS_pwrite64, fd, data, c.size, at);
    if (now)
        note_written(fd, &iov, n, at);
    LEAVE(&c);
    return n;
}

/* At -1: where the file stands. */
static ssize_t
write_many(const char *name, int fd, const struct iovec *iov, int n, off_t at)
{
    struct iovec cut[IOV_MAX];
    size_t all = 0;
    for (int i = 0; i < n; i++)
        all += iov[i].iov_len;
    pyri_sys_call c = {name, PYRI_SYS_FILE, .foreign = true, .fd = fd,
                       .size = all};
    FOREIGN(&c, -1)
    if (c.size < all) {
        n = pyri_sys_cut(iov, n, c.size, cut);
        iov = cut;
    }
    ssize_t done = at < 0 ? syscall(SYS_writev, fd, iov, n)
                          : syscall(SYS_pwritev, fd, iov, n, at, 0);
    if (now)
        note_written(fd, iov, done, at);
    LEAVE(&c);
    return done;
}

ssize_t
writev(int fd, const struct iovec *iov, int n)
{
    return write_many("writev", fd, iov, n, -1);
}

ssize_t
pwritev(int fd, const struct iovec *iov, int n, off_t at)
{
    return write_many("pwritev", fd, iov, n, at);
}

static int
sync_any(const char *name, long number, int fd)
{
    pyri_sys_call c = {name, PYRI_SYS_FILE, .foreign = true, .fd = fd};
    FOREIGN(&c, -1)
    int result = skip_syncs ? 0 : (int)syscall(number, fd);
    if (result == 0 && now)
        note_synced(fd);
    LEAVE(&c);
    return result;
}

int
fsync(int fd)
{
    return sync_any("fsync", SYS_fsync, fd);
}

int
fdatasync(int fd)
{
    return sync_any("fdatasync", SYS_fdatasync, fd);
}

int
ftruncate(int fd, off_t size)
{
    pyri_sys_call c = {"ftruncate", PYRI_SYS_FILE, .foreign = true, .fd = fd};
    FOREIGN(&c, -1)
    int result = (int)syscall(SYS_ftruncate, fd, size);
    if (result == 0 && now)
        note_resized(fd, size);
    LEAVE(&c);
    return result;
}

int
fallocate(int fd, int mode, off_t at, off_t size)
{
    pyri_sys_call c = {"fallocate", PYRI_SYS_FILE, .foreign = true, .fd = fd};
    struct stat st;
    FOREIGN(&c, -1)
    int result = (int)syscall(SYS_fallocate, fd, mode, at, size);
    if (result == 0 && now && !(mode & FALLOC_FL_KEEP_SIZE) &&
        stat_raw(fd, "", AT_EMPTY_PATH, &st))
        note_resized(fd, st.st_size);
    LEAVE(&c);
    return result;
}

int
rename(const char *from, const char *to)
{
    pyri_sys_call c = {"rename", PYRI_SYS_FILE, .foreign = true, .fd = -1,
                       .path = from};
    FOREIGN(&c, -1)
    trace_event e = {.kind = TRACE_RENAME};
    pthread_mutex_lock(&lock);
    bool ours = before_leaving(AT_FDCWD, from, &e) &&
                split(AT_FDCWD, to, &e.dir_to, e.to, sizeof e.to);
    int result = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (result == 0 && ours)
        note(e, NULL);
    pthread_mutex_unlock(&lock);
    LEAVE(&c);
    return result;
}

static int
unlink_any(const char *name, int dirfd, const char *path, int flags)
{
    pyri_sys_call c = {name, PYRI_SYS_FILE, .foreign = true, .fd = -1,
                       .path = path};
    FOREIGN(&c, -1)
    trace_event e = {.kind = TRACE_UNLINK};
    pthread_mutex_lock(&lock);
    bool ours = before_leaving(dirfd, path, &e);
    int result = (int)syscall(SYS_unlinkat, dirfd, path, flags);
    if (result == 0 && ours)
        note(e, NULL);
    pthread_mutex_unlock(&lock);
    LEAVE(&c);
    return result;
}

int
unlink(const char *path)
{
    return unlink_any("unlink", AT_FDCWD, path, 0);
}

int
unlinkat(int dirfd, const char *path, int flags)
{
    return unlink_any("unlinkat", dirfd, path, flags);
}

int
rmdir(const char *path)
{
    return unlink_any("rmdir", AT_FDCWD, path, AT_REMOVEDIR);
}

int
mkdir(const char *path, mode_t mode)
{
    pyri_sys_call c = {"mkdir", PYRI_SYS_FILE, .foreign = true, .fd = -1,
                       .path = path};
    FOREIGN(&c, -1)
    int result = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    if (result == 0 && now)
        note_made(TRACE_MKDIR, AT_FDCWD, path);
    LEAVE(&c);
    return result;
}

void *
mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
    pyri_sys_call c = {"mmap", PYRI_SYS_FILE, .foreign = true, .fd = fd};
    FOREIGN(&c, MAP_FAILED)
    void *got = (void *)syscall(SYS_mmap, at, size, prot, flags, fd, offset);
    LEAVE(&c);
    return got;
}

int
fcntl(int fd, int what, ...)
{
    va_list args;
    va_start(args, what);
    void *arg = va_arg(args, void *);
    va_end(args);
    pyri_sys_call c = {"fcntl", PYRI_SYS_FILE, .foreign = true, .fd = fd};
    FOREIGN(&c, -1)
    int result = (int)syscall(SYS_fcntl, fd, what, arg);
    LEAVE(&c);
    return result;
}

int
fstatfs(int fd, struct statfs *out)
{
    pyri_sys_call c = {"fstatfs", PYRI_SYS_FILE, .foreign = true, .fd = fd};
    FOREIGN(&c, -1)
    int result = (int)syscall(SYS_fstatfs, fd, out);
    LEAVE(&c);
    return result;
}

/* What fstat() was before glibc 2.33. */
int
__fxstat(int version, int fd, struct stat *st)
{
    pyri_sys_call c = {"fstat", PYRI_SYS_FILE, .foreign = true, .fd = fd};
    FOREIGN(&c, -1)
    int result = (int)syscall(SYS_fstat, fd, st);
    LEAVE(&c);
    return result;
}

off_t
lseek(int fd, off_t at, int whence)
{
    pyri_sys_call c = {"lseek", PYRI_SYS_FILE, .foreign = true, .fd = fd};
    FOREIGN(&c, -1)
    off_t result = syscall(SYS_lseek, fd, at, whence);
    LEAVE(&c);
    return result;
}

/* What programs call that are compiled for large files; it is all the same. */
#define ALIAS(of) __attribute__((alias(#of)))
int open64(const char *path, int flags, ...) ALIAS(open);
int openat64(int dirfd, const char *path, int flags, ...) ALIAS(openat);
ssize_t pread64(int fd, void *out, size_t size, off_t at) ALIAS(pread);
ssize_t pwrite64(int fd, const void *d, size_t size, off_t at) ALIAS(pwrite);
ssize_t pwritev64(int fd, const struct iovec *v, int n, off_t at)
    ALIAS(pwritev);
int ftruncate64(int fd, off_t size) ALIAS(ftruncate);
int fallocate64(int fd, int mode, off_t at, off_t size) ALIAS(fallocate);
void *mmap64(void *at, size_t size, int prot, int flags, int fd, off_t offset)
    ALIAS(mmap);
off_t lseek64(int fd, off_t at, int whence) ALIAS(lseek);
int fcntl64(int fd, int what, ...) ALIAS(fcntl);

ssize_t
getrandom(void *out, size_t size, unsigned flags)
{
    if (random_state == 0)
        return syscall(SYS_getrandom, out, size, flags);
    for (size_t i = 0; i < size; i++) {
        random_state = random_state * 6364136223846793005u + 1442695040888963u;
        ((uint8_t *)out)[i] = (uint8_t)(random_state >> 56);
    }
    return (ssize_t)size;
}

/* --- memory -------------------------------------------------------------- */

/* The address sanitizer asks for memory before it is ready to check anybody. */
#define EARLY                                                                  \
    __attribute__((no_sanitize_address, no_sanitize_undefined, noinline))

/* What the linker would have given without us, found at the first call; until
 * then, looking it up may itself ask for a little. */
static _Alignas(16) uint8_t early[8192];
static size_t early_used;

EARLY static void *
early_memory(size_t size)
{
    void *at = early + early_used;
    early_used += (size + 15) & ~(size_t)15;
    if (early_used > sizeof early)
        abort();
    return at;
}

EARLY static void *
find_next(void **next, const char *name)
{
    static _Thread_local volatile bool finding; /* dlsym() comes back here */
    if (!*next && !finding) {
        finding = true;
        *next = dlsym(RTLD_NEXT, name);
        finding = false;
    }
    return *next;
}

static bool
ask(const char *name)
{
    pyri_sys_call c = {name, PYRI_SYS_MEMORY, .foreign = true, .fd = -1};
    if (!pyri_sys_enter(&c))
        return true;
    pyri_sys_leave(&c);
    return false;
}

EARLY static bool
refused(const char *name)
{
    return memory_on && !pyri_sys_inside() && ask(name);
}

EARLY void *
malloc(size_t size)
{
    static void *next;
    if (!find_next(&next, "malloc"))
        return early_memory(size);
    return refused("malloc") ? NULL : ((void *(*)(size_t))next)(size);
}

EARLY void *
calloc(size_t n, size_t size)
{
    static void *next;
    if (!find_next(&next, "calloc"))
        return early_memory(n * size);
    return refused("calloc") ? NULL
                             : ((void *(*)(size_t, size_t))next)(n, size);
}

EARLY void *
realloc(void *old, size_t size)
{
    static void *next;
    if (!find_next(&next, "realloc"))
        abort();
    return refused("realloc") ? NULL
                              : ((void *(*)(void *, size_t))next)(old, size);
}

EARLY int
posix_memalign(void **out, size_t align, size_t size)
{
    static void *next;
    if (!find_next(&next, "posix_memalign"))
        abort();
    return refused("posix_memalign")
               ? ENOMEM
               : ((int (*)(void **, size_t, size_t))next)(out, align, size);
}

EARLY void
free(void *p)
{
    static void *next;
    if ((uint8_t *)p >= early && (uint8_t *)p < early + sizeof early)
        return;
    if (find_next(&next, "free"))
        ((void (*)(void *))next)(p);
}
