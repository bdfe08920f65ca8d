/*
 * cli/guard.c - work on stores that may be damaged in any way.
 */
#include "guard.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int
run_child(const args *a, int (*run)(const args *a))
{
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    int rc = run(a);
    if (fflush(stdout) != 0)
        rc = fail("cannot write to standard output: %s", strerror(errno));
    return rc;
}

int
guard(const args *a, int (*run)(const args *a))
{
    int status;
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        return run(a);
    if (pid == 0)
        _exit(run_child(a, run));
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return fail("waiting: %s", strerror(errno));
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    return fail("%s: its metadata is damaged beyond reading (%s)",
                a->words[0], strsignal(WTERMSIG(status)));
}
