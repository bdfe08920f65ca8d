/*
 * engine/local/turn.c - whose turn it is to write to an environment.
 *
 * LMDB's lock is a robust mutex, and those forget to wake: if one of several
 * who wait is woken and killed before it has the lock, another one may get it
 * in between and leave it without waking the rest, who then sleep on, though
 * nobody has it, until the next one has to wait for it. So who is to write
 * waits here, where sleepers look up from time to time; then LMDB's lock can
 * mostly be had at once.
 *
 * This excludes nobody; LMDB's lock does. So nobody needs to be believed dead:
 * if the one whose turn it is has gone, or takes long, others go on to LMDB's
 * lock. The count of those who wait may be too high, if one was killed; that
 * costs a needless system call.
 */
#include "engine/local/local.h"

#include "base/io.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { SLICE_NS = 20000000 };

int64_t pyri_turn_patience_ns = 1000000000;

static bool
swap(pyri_turn *t, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong(&t->whose, &from, to);
}

/* Has it ended, and only its parent not looked yet? */
static bool
is_zombie(uint32_t whose)
{
    char path[32], text[128];
    snprintf(path, sizeof path, "/proc/%u/stat", (unsigned)whose);
    int fd = PYRI_RETRY(pyri_sys_open(path, O_RDONLY | O_CLOEXEC));
    if (fd < 0)
        return false;
    ssize_t n = PYRI_RETRY(pyri_sys_read(fd, text, sizeof text - 1));
    pyri_sys_close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *name = strrchr(text, ')'); /* then its state */
    return name && (strncmp(name, ") Z", 3) == 0 ||
                    strncmp(name, ") X", 3) == 0);
}

/* In another space of process numbers a living one may seem to be dead. */
static bool
is_gone(uint32_t whose)
{
    return (kill((pid_t)whose, 0) < 0 && errno == ESRCH) || is_zombie(whose);
}

void
pyri_turn_take(pyri_turn *t, uint32_t me)
{
    uint32_t before = 0;
    int64_t since = 0;
    if (swap(t, 0, me))
        return;
    atomic_fetch_add(&t->waiting, 1);
    while (!swap(t, 0, me)) {
        uint32_t whose = atomic_load(&t->whose);
        int64_t now = pyri_now_ns();
        if (whose != before) {
            before = whose;
            since = now;
        }
        if (whose == 0)
            continue;
        if (now - since >= SLICE_NS &&
            (now - since > pyri_turn_patience_ns || is_gone(whose)) &&
            swap(t, whose, me))
            break;
        pyri_futex_wait_shared(&t->whose, whose, SLICE_NS);
    }
    atomic_fetch_sub(&t->waiting, 1);
}

void
pyri_turn_pass(pyri_turn *t, uint32_t me)
{
    if (swap(t, me, 0) && atomic_load(&t->waiting))
        pyri_futex_wake_one(&t->whose);
}
