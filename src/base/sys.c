/*
 * base/sys.c - the calls of base/sys.h, where tests can take over.
 *
 * Every call passes pyri_sys_enter(), which counts it, asks plan and hook for
 * its fate, and says whether to make it. Only in builds with -Dfaults=true.
 */
#include "base/sys.h"

#ifdef PYRI_FAULTS

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>

void (*pyri_sys_hook)(pyri_sys_call *call);
_Atomic int64_t pyri_sys_ahead_real, pyri_sys_ahead_monotonic;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `plan` */
static pyri_sys_plan plan;
static atomic_bool planned;
static atomic_ulong counted, acted;
static _Thread_local int depth;

void
pyri_sys_order(const pyri_sys_plan *given)
{
    pthread_mutex_lock(&lock);
    plan = given ? *given : (pyri_sys_plan){0};
    counted = acted = 0;
    planned = given != NULL;
    pthread_mutex_unlock(&lock);
}

unsigned long
pyri_sys_counted(void)
{
    return counted;
}

unsigned long
pyri_sys_acted(void)
{
    return acted;
}

bool
pyri_sys_inside(void)
{
    return depth > 0;
}

/* Is name one of the words of list? */
static bool
listed(const char *list, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += size)
        if ((at == list || at[-1] == ' ') &&
            (at[size] == ' ' || at[size] == '\0'))
            return true;
    return false;
}

static bool
matches(const pyri_sys_plan *p, const pyri_sys_call *c)
{
    return p->groups & c->group && (p->foreign || !c->foreign) &&
           (!p->only || listed(p->only, c->name)) && !(p->spare && p->spare(c));
}

/* Counts the call; is it one to act on? Then *now is how. */
static bool
its_turn(const pyri_sys_call *c, pyri_sys_plan *now)
{
    bool turn = false;
    pthread_mutex_lock(&lock);
    if (matches(&plan, c)) {
        unsigned long n = ++counted;
        turn = plan.nth && n >= plan.nth &&
               n - plan.nth < (plan.times ? plan.times : 1);
        acted += turn;
    }
    *now = plan;
    pthread_mutex_unlock(&lock);
    return turn;
}

static void
act(const pyri_sys_plan *p, pyri_sys_call *c)
{
    switch (p->action) {
    case PYRI_SYS_FAIL: c->error = p->error; break;
    case PYRI_SYS_TEAR:
        c->kill = true;
        /* fall through */
    case PYRI_SYS_SHORT:
        if (c->size > p->most && p->most > 0)
            c->size = p->most;
        break;
    case PYRI_SYS_DELAY:
        nanosleep(&(struct timespec){p->usec / 1000000,
                                     p->usec % 1000000 * 1000},
                  NULL);
        break;
    case PYRI_SYS_KILL: raise(SIGKILL); break;
    }
}

bool
pyri_sys_enter(pyri_sys_call *c)
{
    int before = errno;
    depth++;
    pyri_sys_plan now;
    if (planned && its_turn(c, &now))
        act(&now, c);
    if (pyri_sys_hook)
        pyri_sys_hook(c);
    errno = c->error ? c->error : before;
    if (c->error)
        depth--;
    return c->error == 0;
}

void
pyri_sys_leave(const pyri_sys_call *c)
{
    if (c->kill)
        raise(SIGKILL);
    depth--;
}

#define CALL(type, bad, set, name, params, args, ...)                          \
    type pyri_sys_##name params                                                \
    {                                                                          \
        pyri_sys_call c = {#name, set, __VA_ARGS__};                           \
        if (!pyri_sys_enter(&c))                                               \
            return bad;                                                        \
        type result = name args;                                               \
        pyri_sys_leave(&c);                                                    \
        return result;                                                         \
    }
#include "base/sys_calls.inc"
#undef CALL

int
pyri_sys_clock_gettime(clockid_t id, struct timespec *t)
{
    pyri_sys_call c = {"clock_gettime", PYRI_SYS_CLOCK, .fd = -1};
    if (!pyri_sys_enter(&c))
        return -1;
    int result = clock_gettime(id, t);
    int64_t ahead = id == CLOCK_REALTIME    ? pyri_sys_ahead_real
                    : id == CLOCK_MONOTONIC ? pyri_sys_ahead_monotonic
                                            : 0;
    int64_t ns = t->tv_sec * INT64_C(1000000000) + t->tv_nsec + ahead;
    if (result == 0 && ahead)
        *t = (struct timespec){ns / 1000000000, ns % 1000000000};
    pyri_sys_leave(&c);
    return result;
}

int
pyri_sys_openat(int dirfd, const char *path, int flags, ...)
{
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list args;
        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
    }
    pyri_sys_call c = {"openat", PYRI_SYS_FILE, .fd = dirfd, .path = path};
    if (!pyri_sys_enter(&c))
        return -1;
    int fd = openat(dirfd, path, flags, mode);
    pyri_sys_leave(&c);
    return fd;
}

int
pyri_sys_open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list args;
        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
    }
    pyri_sys_call c = {"open", PYRI_SYS_FILE, .fd = -1, .path = path};
    if (!pyri_sys_enter(&c))
        return -1;
    int fd = open(path, flags, mode);
    pyri_sys_leave(&c);
    return fd;
}

/* One that fails has closed the file all the same. */
int
pyri_sys_close(int fd)
{
    pyri_sys_call c = {"close", PYRI_SYS_FILE, .fd = fd};
    bool entered = pyri_sys_enter(&c);
    int errnum = errno, result = close(fd);
    if (!entered) {
        errno = errnum;
        return -1;
    }
    pyri_sys_leave(&c);
    return result;
}

/* All that the library asks for has an int or a pointer, which are passed
 * alike. */
int
pyri_sys_fcntl(int fd, int what, ...)
{
    va_list args;
    va_start(args, what);
    void *arg = va_arg(args, void *);
    va_end(args);
    pyri_sys_call c = {"fcntl", PYRI_SYS_FILE, .fd = fd};
    if (!pyri_sys_enter(&c))
        return -1;
    int result = fcntl(fd, what, arg);
    pyri_sys_leave(&c);
    return result;
}

int
pyri_sys_cut(const struct iovec *iov, int n, size_t size, struct iovec *out)
{
    int i = 0;
    for (; i < n && size > 0; i++) {
        out[i] = iov[i];
        if (out[i].iov_len > size)
            out[i].iov_len = size;
        size -= out[i].iov_len;
    }
    return i;
}

ssize_t
pyri_sys_pwritev(int fd, const struct iovec *iov, int n, off_t at)
{
    struct iovec cut[IOV_MAX];
    size_t all = 0;
    for (int i = 0; i < n; i++)
        all += iov[i].iov_len;
    pyri_sys_call c = {"pwritev", PYRI_SYS_FILE, .fd = fd, .size = all};
    if (!pyri_sys_enter(&c))
        return -1;
    if (c.size < all && n <= IOV_MAX) {
        n = pyri_sys_cut(iov, n, c.size, cut);
        iov = cut;
    }
    ssize_t result = pwritev(fd, iov, n, at);
    pyri_sys_leave(&c);
    return result;
}

#else
typedef int pyri_sys_is_libc;
#endif
