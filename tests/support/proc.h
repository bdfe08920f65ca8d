/*
 * support/proc.h - other processes for tests: this program again, with other
 * arguments, and children that run one function. No wait is without a bound,
 * and no child outlives the test that started it.
 */
#ifndef SUPPORT_PROC_H
#define SUPPORT_PROC_H

#include "support/rng.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROC_MAX = 64, PROC_MAX_ENV = 512 };

extern char **environ;

static pid_t proc_alive[PROC_MAX];

static inline pid_t
proc_note(pid_t pid)
{
    for (int i = 0; pid > 0 && i < PROC_MAX; i++)
        if (proc_alive[i] == 0) {
            proc_alive[i] = pid;
            break;
        }
    return pid;
}

static inline void
proc_forget(pid_t pid)
{
    for (int i = 0; i < PROC_MAX; i++)
        if (proc_alive[i] == pid)
            proc_alive[i] = 0;
}

/* End what earlier tests of this program left behind. */
static inline void
proc_kill_all(void)
{
    for (int i = 0; i < PROC_MAX; i++)
        if (proc_alive[i] > 0) {
            kill(proc_alive[i], SIGKILL);
            waitpid(proc_alive[i], NULL, 0);
            proc_alive[i] = 0;
        }
}

/* Looking for leaks takes the address sanitizer longer than most children live,
 * and they do the same again and again: one in eight is looked at. */
static inline char *
proc_sanitizer(char *setting)
{
    static char without[512];
    static unsigned started;
    if (strncmp(setting, "ASAN_OPTIONS=", 13) != 0 || started++ % 8 == 0 ||
        strlen(setting) + 32 > sizeof without)
        return setting;
    snprintf(without, sizeof without, "%s:detect_leaks=0", setting);
    return without;
}

/* Start this program again with `args` (ended by NULL), and with the fault
 * orders in its environment; NULL: none. What it prints goes to stderr. */
static inline pid_t
proc_start(const char *fault, const char *const *args)
{
    char self[] = "/proc/self/exe", order[256];
    char *argv[32] = {self}, *env[PROC_MAX_ENV];
    int n = 1, e = 0;
    for (; args[n - 1] && n < 31; n++)
        argv[n] = strdup(args[n - 1]);
    for (int i = 0; environ[i] && e < PROC_MAX_ENV - 2; i++)
        if (strncmp(environ[i], "PYRAMID_FAULT=", 14) != 0)
            env[e++] = proc_sanitizer(environ[i]);
    snprintf(order, sizeof order, "PYRAMID_FAULT=%s", fault ? fault : "");
    env[e++] = order;
    env[e] = NULL;
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(2, 1);
        if (getppid() == parent)
            execve(self, argv, env);
        _exit(127);
    }
    for (int i = 1; i < n; i++)
        free(argv[i]);
    return proc_note(pid);
}

/* Run fn(arg) in a forked child, which ends with its result as exit code. */
static inline pid_t
proc_fork(int (*fn)(void *arg), void *arg)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int code = fn(arg);
        fflush(NULL);
        _exit(code);
    }
    return proc_note(pid);
}

typedef struct proc_end {
    bool late;    /* neither ended nor stopped within the bound */
    bool stopped;
    int code;     /* of exit, or -1 */
    int signal;   /* that killed it, or 0 */
} proc_end;

/* Wait until a child ends, or is stopped; it is left alone if it is late. */
static inline proc_end
proc_wait(pid_t pid, int ms)
{
    int64_t end = now_ns() + (int64_t)ms * 1000000;
    int status;
    for (;;) {
        pid_t got = waitpid(pid, &status, WNOHANG | WUNTRACED);
        if (got == pid)
            break;
        if (got < 0 || now_ns() > end)
            return (proc_end){.late = true, .code = -1};
        nap_ms(1);
    }
    if (WIFSTOPPED(status))
        return (proc_end){.stopped = true, .code = -1};
    proc_forget(pid);
    if (WIFSIGNALED(status))
        return (proc_end){.code = -1, .signal = WTERMSIG(status)};
    return (proc_end){.code = WEXITSTATUS(status)};
}

/* Wait for the end; a late child is killed. True if it ended with code 0. */
static inline bool
proc_ends_well(pid_t pid, int ms)
{
    proc_end end = proc_wait(pid, ms);
    if (end.late || end.stopped) {
        kill(pid, SIGKILL);
        proc_wait(pid, 5000);
        printf("# process %d was %s\n", (int)pid,
               end.late ? "not done in time" : "stopped");
        return false;
    }
    if (end.code != 0)
        printf("# process %d: code %d, signal %d\n", (int)pid, end.code,
               end.signal);
    return end.code == 0;
}

/* What this process has open, give or take what looking takes. */
static inline int
proc_open_files(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    if (!d) {
        perror("/proc/self/fd");
        abort(); /* no number would be right */
    }
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

#endif
