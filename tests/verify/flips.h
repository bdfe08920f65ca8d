/*
 * verify/flips.h - a byte of a file is changed behind the library's back, and
 * a child process looks what became of it.
 *
 * LMDB trusts its pages: one whose structure is damaged would kill the process
 * that looks at it, if nobody had looked before. So reads happen in a child,
 * and its death is seen for what it is.
 */
#ifndef VERIFY_FLIPS_H
#define VERIFY_FLIPS_H

#include "support/check.h"
#include "support/proc.h"
#include "support/rng.h"
#include "support/tmp_store.h"

#include <pyramid/pyramid.h>

#include <sys/resource.h>

/* How a child ends. */
enum { ALL_RIGHT = 0, REFUSED = 10, WRONG = 11 };

/* Let signals be signals, so that only what the sanitizer itself finds ends
 * with a code of its own. */
const char *__asan_default_options(void);
const char *
__asan_default_options(void)
{
    return "handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigfpe=0";
}

static inline void
flip(const char *file, uint64_t at, uint8_t bits)
{
    FILE *f = fopen(file, "r+b");
    REQUIRE(f && fseek(f, (long)at, SEEK_SET) == 0);
    int was = fgetc(f);
    REQUIRE(was >= 0 && fseek(f, (long)at, SEEK_SET) == 0);
    REQUIRE(fputc(was ^ bits, f) != EOF && fclose(f) == 0);
}

static inline proc_end
run_child(int (*fn)(void *))
{
    pid_t pid = proc_fork(fn, NULL);
    proc_end end = proc_wait(pid, 300000);
    if (end.late) {
        kill(pid, SIGKILL);
        proc_wait(pid, 5000);
        end.signal = SIGKILL;
    }
    return end;
}

static inline int
show_harm(void *ctx, const pyr_harm *h)
{
    (void)ctx;
    if (getenv("PYR_TEST_VERBOSE"))
        printf("# '%s', version %llu: %s\n", h->array,
               (unsigned long long)h->version, h->what);
    return 0;
}

static inline void
no_core(void)
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
}

/* For a child: is anything said to be harmed? */
static inline int
verify_store(const char *path)
{
    pyr_verify_spec spec = {.deep = 1, .jobs = 1, .each = show_harm};
    pyr_verified seen;
    pyr_store *s;
    no_core();
    if (pyr_open(path, PYR_OPEN_READONLY, &s) < 0)
        return REFUSED;
    int err = pyr_verify(s, &spec, &seen);
    pyr_close(s);
    return err < 0 || seen.harms ? REFUSED : ALL_RIGHT;
}

#endif
