/*
 * support/check.h - the test harness: plain programs that print TAP.
 *
 *   static void boxes_that_only_touch_share_nothing(void) { CHECK(...); }
 *   TESTS(T(boxes_that_only_touch_share_nothing))
 *
 * CHECK notes a failure and goes on, REQUIRE notes it and leaves the test,
 * OK(call) shows pyr_errmsg(), FAILS(code, call) wants that very code. A
 * program runs all its tests, or those named as arguments; of one that fails
 * it prints the command that runs it again. REQUIRE and OK leave through
 * longjmp, so they may stand in helper functions too, on the thread that runs
 * the tests. SKIP(reason) leaves a test out, as its first deed;
 * tools/check-skips.py knows which reasons are good.
 */
#ifndef SUPPORT_CHECK_H
#define SUPPORT_CHECK_H

#include <pyramid/error.h>

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct check_case {
    const char *name;
    void (*run)(void);
} check_case;

static jmp_buf check_leave;
static int check_failures;
static const char *check_skipped; /* why, if the test was left out */

#define CHECK_NOTE(...)                                                       \
    (check_failures++, printf("# %s:%d: ", __FILE__, __LINE__),               \
     printf(__VA_ARGS__), printf("\n"), fflush(stdout))

#define CHECK(cond) ((cond) ? (void)0 : (void)CHECK_NOTE("not so: %s", #cond))

#define REQUIRE(cond)                                                         \
    do {                                                                      \
        if (!(cond)) {                                                        \
            CHECK_NOTE("not so: %s", #cond);                                  \
            longjmp(check_leave, 1);                                          \
        }                                                                     \
    } while (0)

#define OK(call)                                                              \
    do {                                                                      \
        int check_err = (call);                                               \
        if (check_err != 0) {                                                 \
            CHECK_NOTE("%s gave %d: %s", #call, check_err, pyr_errmsg());     \
            longjmp(check_leave, 1);                                          \
        }                                                                     \
    } while (0)

#define FAILS(code, call)                                                     \
    do {                                                                      \
        int check_err = (call);                                               \
        if (check_err != (code))                                              \
            CHECK_NOTE("%s gave %d (%s), not %s", #call, check_err,           \
                       check_err ? pyr_errmsg() : "success", #code);          \
    } while (0)

#define SKIP(reason) (check_skipped = (reason), longjmp(check_leave, 1))

static inline bool
check_wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc < 2;
}

/* Apart from its caller, whose variables longjmp would spoil. */
static __attribute__((noinline)) void
check_run(const check_case *c)
{
    check_failures = 0;
    check_skipped = NULL;
    if (setjmp(check_leave) == 0)
        c->run();
}

/* One command that does the same again, as far as a seed decides. */
static inline void
check_print_again(const char *program, const char *name)
{
    static const char *const knobs[] = {"PYR_TEST_SCALE", "PYR_TEST_SEED"};
    printf("# again:");
    for (int i = 0; i < 2; i++)
        if (getenv(knobs[i]) && *getenv(knobs[i]))
            printf(" %s=%s", knobs[i], getenv(knobs[i]));
    printf(" %s %s\n", program, name);
}

static inline int
check_main(const check_case *cases, int n, int argc, char **argv)
{
    int planned = 0, number = 0, bad = 0;
    for (int i = 0; i < n; i++)
        planned += check_wanted(cases[i].name, argc, argv);
    printf("1..%d\n", planned);
    fflush(stdout);
    for (int i = 0; i < n; i++) {
        if (!check_wanted(cases[i].name, argc, argv))
            continue;
        check_run(&cases[i]);
        if (check_failures)
            check_print_again(argv[0], cases[i].name);
        printf("%sok %d - %s%s%s\n", check_failures ? "not " : "", ++number,
               cases[i].name, check_skipped ? " # SKIP " : "",
               check_skipped ? check_skipped : "");
        fflush(stdout);
        bad += check_failures != 0;
    }
    return bad || planned == 0;
}

#define T(name) {#name, name}
#define TESTS(...)                                                            \
    int main(int argc, char **argv)                                           \
    {                                                                         \
        static const check_case cases[] = {__VA_ARGS__};                      \
        return check_main(cases, (int)(sizeof cases / sizeof cases[0]),       \
                          argc, argv);                                        \
    }

#endif
