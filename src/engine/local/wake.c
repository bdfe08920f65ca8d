/*
 * engine/local/wake.c - waiting for a version, across processes.
 *
 * STORE/live/wake is mapped by all: 1024 words to sleep on (futex), chosen by
 * array, and as many counts of who sleeps on each. A count that a killed
 * process left too high costs others a needless system call, no more. Behind
 * them it is told whose turn it is to write (turn.c).
 *
 * A sleeper wakes by itself every few milliseconds to see whether the writer
 * that holds its version up is still there.
 */
#include "engine/local/local.h"

#include "base/io.h"
#include "base/sys.h"
#include "engine/local/env.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 1024, SLICE_MS = 5 };

struct pyri_wake {
    _Atomic uint32_t moved[WORDS];
    _Atomic uint32_t sleepers[WORDS];
    pyri_turn turns[2]; /* of meta/ and live/ */
};

/* --- futex --------------------------------------------------------------- */

static void
futex_wait(_Atomic uint32_t *word, int op, uint32_t seen,
           const struct timespec *timeout)
{
    syscall(SYS_futex, word, op, seen, timeout, NULL, 0);
}

void
pyri_futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
    futex_wait(word, FUTEX_WAIT_PRIVATE, seen, NULL);
}

void
pyri_futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void
pyri_futex_wait_shared(_Atomic uint32_t *word, uint32_t seen, int64_t ns)
{
    struct timespec ts = {ns / 1000000000, ns % 1000000000};
    futex_wait(word, FUTEX_WAIT, seen, &ts);
}

void
pyri_futex_wake_shared(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void
pyri_futex_wake_one(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* --- the file ------------------------------------------------------------ */

int
pyri_wake_open(const char *path, pyri_wake **out)
{
    void *at = NULL;
    int errnum = pyri_io_share(path, sizeof(pyri_wake), sizeof(pyri_wake),
                               &at);
    *out = at;
    return errnum ? pyri_fail_errno(errnum, "%s", path) : 0;
}

void
pyri_wake_close(pyri_wake *w)
{
    if (w)
        munmap(w, sizeof *w);
}

pyri_turn *
pyri_wake_turn(pyri_wake *w, bool live)
{
    return &w->turns[live];
}

static unsigned
word_of(uint64_t array)
{
    return (unsigned)((array * UINT64_C(0x9e3779b97f4a7c15)) >> 54);
}

void
pyri_wake_all(pyri_wake *w, uint64_t array)
{
    unsigned i = word_of(array);
    atomic_fetch_add(&w->moved[i], 1);
    if (atomic_load(&w->sleepers[i]))
        pyri_futex_wake_shared(&w->moved[i]);
}

/* --- waiting ------------------------------------------------------------- */

static int
is_published(pyri_site *s, uint64_t array, uint64_t version, bool *yes)
{
    pyri_reader *r;
    pyri_head head;
    int err = pyri_reader_begin(s, &r);
    if (err < 0)
        return err;
    err = pyri_meta_head(s, r->txn, array, &head);
    pyri_reader_end(s, r);
    *yes = err == 0 && head.latest >= version;
    return err;
}

/* Sleep until the word moves on from `seen`, or `ns` have passed. Without a
 * word (nothing may be written to the store) just sleep. */
static void
sleep_slice(pyri_wake *w, unsigned i, uint32_t seen, int64_t ns)
{
    struct timespec ts = {ns / 1000000000, ns % 1000000000};
    if (!w) {
        pyri_sys_nanosleep(&ts, NULL);
        return;
    }
    futex_wait(&w->moved[i], FUTEX_WAIT, seen, &ts);
}

static int
wait_loop(pyri_site *s, pyri_wake *w, uint64_t array, uint64_t version,
          int64_t until)
{
    const int64_t slice = SLICE_MS * INT64_C(1000000);
    unsigned i = word_of(array);
    int64_t check_at = pyri_now_ns() + slice;
    for (;;) {
        uint32_t seen = w ? atomic_load(&w->moved[i]) : 0;
        bool yes;
        int err = is_published(s, array, version, &yes);
        if (err < 0 || yes)
            return err;
        int64_t now = pyri_now_ns();
        if (now >= until)
            return pyri_fail(PYR_ETIMEOUT, "version %llu is not published yet",
                             (unsigned long long)version);
        if (w && now >= check_at) {
            uint64_t dead;
            if ((err = pyri_ticket_stuck(s, array, version, &dead)) < 0)
                return err;
            if (dead)
                return pyri_fail(PYR_ETIMEOUT, "version %llu waits for version "
                                 "%llu, whose writer is gone",
                                 (unsigned long long)version,
                                 (unsigned long long)dead);
            check_at = now + slice;
        }
        sleep_slice(w, i, seen, until - now < slice ? until - now : slice);
    }
}

int
pyri_wake_wait(pyri_site *s, uint64_t array, uint64_t version, int timeout_ms)
{
    int64_t until = pyri_now_ns() + timeout_ms * INT64_C(1000000);
    bool yes;
    int err = is_published(s, array, version, &yes); /* as it mostly is */
    if (err < 0 || yes)
        return err;
    pyri_wake *w = pyri_live_there(s) ? s->wake : NULL;
    if (w)
        atomic_fetch_add(&w->sleepers[word_of(array)], 1);
    err = wait_loop(s, w, array, version, until);
    if (w)
        atomic_fetch_sub(&w->sleepers[word_of(array)], 1);
    return err;
}
