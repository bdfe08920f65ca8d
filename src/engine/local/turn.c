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

#include <errno.h>
#include <signal.h>

enum { SLICE_MS = 20 };
#define PATIENCE_NS INT64_C(1000000000)

static bool
swap(pyri_turn *t, uint32_t from, uint32_t to)
{
    return atomic_compare_exchange_strong(&t->whose, &from, to);
}

/* In another space of process numbers a living one may seem to be dead. */
static bool
is_gone(uint32_t whose)
{
    return kill((pid_t)whose, 0) < 0 && errno == ESRCH;
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
        if (now - since >= SLICE_MS * INT64_C(1000000) &&
            (now - since > PATIENCE_NS || is_gone(whose)) &&
            swap(t, whose, me))
            break;
        pyri_futex_wait_shared(&t->whose, whose, SLICE_MS);
    }
    atomic_fetch_sub(&t->waiting, 1);
}

void
pyri_turn_pass(pyri_turn *t, uint32_t me)
{
    if (swap(t, me, 0) && atomic_load(&t->waiting))
        pyri_futex_wake_one(&t->whose);
}
