/*
 * regress/regress.h - a store of its own for each test, and processes that do
 * one thing to it, to be stopped or killed at a named point.
 *
 * A child is the test program again, see REGRESS_TESTS. Those that a test
 * stops live in stores with a lease far longer than the test.
 */
#ifndef REGRESS_REGRESS_H
#define REGRESS_REGRESS_H

#include "support/check.h"
#include "support/proc.h"
#include "support/rng.h"
#include "support/tmp_store.h"

#include <pyramid/pyramid.h>

#include <inttypes.h>

enum { LONG_LEASE = 600000, SHORT_LEASE = 300, BOUND = 100000 };

#define AT(...) ((const uint64_t[]){__VA_ARGS__})

static char url[4096];
static pyr_store *store;
static pyr_array *array;

/* A store that survives the death of processes, and no array yet. */
static inline void
set_up(unsigned lease_ms)
{
    proc_kill_all();
    snprintf(url, sizeof url, "%s", tmp_store("regress"));
    OK(pyr_open_with(url, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS,
                                          .lease_ms = lease_ms},
                     &store));
}

/* Array "x" along one axis. */
static inline void
make_line(uint64_t cells, uint64_t chunk, pyr_type type)
{
    pyr_spec spec = {.ndim = 1, .shape = &cells, .chunk = &chunk,
                     .type = type};
    OK(pyr_create(store, "x", &spec, &array));
}

static inline void
close_all(void)
{
    pyr_array_close(array);
    array = NULL;
    pyr_close(store);
    store = NULL;
}

static inline void
tear_down(void)
{
    close_all();
    proc_kill_all();
    tmp_remove(url);
}

static inline uint64_t
in_flight(void)
{
    pyr_status status;
    OK(pyr_store_status(store, &status, NULL, NULL));
    return status.in_flight;
}

/* --- children ------------------------------------------------------------ */

/* What one does with array "x", and how many times; its exit code. */
typedef struct role {
    const char *name;
    int (*run)(uint64_t n);
} role;

static inline int
complain(const char *what)
{
    fprintf(stderr, "# %s: %s\n", what, pyr_errmsg());
    return 1;
}

static inline int
open_line(unsigned flags)
{
    int err = pyr_open(url, flags, &store);
    return err < 0 ? err : pyr_array_open(store, "x", &array);
}

static inline pid_t
start(const char *fault, const char *what, uint64_t n)
{
    char number[32];
    snprintf(number, sizeof number, "%" PRIu64, n);
    const char *args[] = {"--child", what, url, number, NULL};
    return proc_start(fault, args);
}

static inline pid_t
start_and_stop(const char *fault, const char *what, uint64_t n)
{
    pid_t pid = start(fault, what, n);
    REQUIRE(proc_wait(pid, BOUND).stopped);
    return pid;
}

static inline void
kill_off(pid_t pid)
{
    kill(pid, SIGKILL);
    CHECK(proc_wait(pid, BOUND).signal == SIGKILL);
}

static inline int
regress_main(int argc, char **argv, const role *roles, const check_case *cases,
             int n)
{
    if (argc != 5 || strcmp(argv[1], "--child") != 0)
        return check_main(cases, n, argc, argv);
    snprintf(url, sizeof url, "%s", argv[3]);
    for (const role *r = roles; r->name; r++)
        if (strcmp(r->name, argv[2]) == 0)
            return r->run(strtoull(argv[4], NULL, 10));
    return 2;
}

#define REGRESS_TESTS(roles, ...)                                             \
    int main(int argc, char **argv)                                           \
    {                                                                         \
        static const check_case cases[] = {__VA_ARGS__};                      \
        return regress_main(argc, argv, roles, cases,                         \
                            (int)(sizeof cases / sizeof cases[0]));           \
    }

#endif
