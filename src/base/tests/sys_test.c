/*
 * Every system call of the library can be counted, failed, cut short or torn.
 */
#include "base/sys.h"
#include "support/check.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>

#ifdef PYRI_FAULTS

/* A file without a name. */
static int
scratch_file(void)
{
    FILE *f = tmpfile();
    REQUIRE(f);
    int fd = dup(fileno(f));
    REQUIRE(fd >= 0);
    fclose(f);
    return fd;
}

static int
ask_memory(void)
{
    void *p = pyri_sys_malloc(10);
    int got = p != NULL;
    free(p);
    return got;
}

static void
without_a_plan_calls_are_libcs(void)
{
    int fd = scratch_file();
    char back[4] = "";
    CHECK(pyri_sys_pwrite(fd, "abc", 3, 0) == 3);
    CHECK(pyri_sys_pread(fd, back, 3, 0) == 3 && strcmp(back, "abc") == 0);
    CHECK(pyri_sys_close(fd) == 0);
    CHECK(pyri_sys_open("/nowhere/at/all", O_RDONLY) == -1 && errno == ENOENT);
    CHECK(pyri_sys_counted() == 0);
}

static void
the_nth_call_of_a_group_fails_and_no_other(void)
{
    pyri_sys_order(
        &(pyri_sys_plan){.groups = PYRI_SYS_MEMORY, .nth = 3, .error = ENOMEM});
    struct timespec t;
    for (int i = 1; i <= 5; i++) {
        CHECK(ask_memory() == (i != 3));
        CHECK(pyri_sys_clock_gettime(CLOCK_MONOTONIC, &t) == 0);
    }
    CHECK(pyri_sys_counted() == 5 && pyri_sys_acted() == 1);
    pyri_sys_order(NULL);
    CHECK(ask_memory());
}

static void
a_plan_can_name_calls_and_go_on_for_a_while(void)
{
    int fd = scratch_file();
    pyri_sys_order(&(pyri_sys_plan){.groups = PYRI_SYS_ALL,
                                    .only = "fsync pwrite",
                                    .nth = 2,
                                    .times = 2,
                                    .error = ENOSPC});
    CHECK(pyri_sys_fsync(fd) == 0);
    CHECK(pyri_sys_fdatasync(fd) == 0);
    CHECK(pyri_sys_pwrite(fd, "a", 1, 0) == -1 && errno == ENOSPC);
    CHECK(pyri_sys_fsync(fd) == -1 && errno == ENOSPC);
    CHECK(pyri_sys_fsync(fd) == 0);
    CHECK(pyri_sys_counted() == 4);
    pyri_sys_order(NULL);
    close(fd);
}

static void
counts_can_be_cut_short(void)
{
    int fd = scratch_file();
    char back[8] = "";
    struct iovec iov[3] = {{(void *)(uintptr_t) "ab", 2},
                           {(void *)(uintptr_t) "cde", 3},
                           {(void *)(uintptr_t) "f", 1}};
    pyri_sys_order(&(pyri_sys_plan){.groups = PYRI_SYS_FILE,
                                    .nth = 1,
                                    .times = 9,
                                    .action = PYRI_SYS_SHORT,
                                    .most = 4});
    CHECK(pyri_sys_pwritev(fd, iov, 3, 0) == 4);
    CHECK(pyri_sys_pread(fd, back, 2, 0) == 2);
    CHECK(pyri_sys_pread(fd, back, 8, 0) == 4 && memcmp(back, "abcd", 4) == 0);
    pyri_sys_order(NULL);
    CHECK(lseek(fd, 0, SEEK_END) == 4);
    CHECK(pyri_sys_pwritev(fd, iov, 3, 0) == 6);
    close(fd);
}

static void
a_write_can_be_torn_by_death(void)
{
    int fd = scratch_file(), status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        pyri_sys_order(&(pyri_sys_plan){.groups = PYRI_SYS_FILE,
                                        .nth = 2,
                                        .action = PYRI_SYS_TEAR,
                                        .most = 2});
        (void)!pyri_sys_pwrite(fd, "one", 3, 0);
        (void)!pyri_sys_pwrite(fd, "two", 3, 3);
        _exit(0);
    }
    REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK(lseek(fd, 0, SEEK_END) == 5);
    close(fd);
}

static char seen[64];

static void
note(pyri_sys_call *c)
{
    strncat(seen, c->name, sizeof seen - strlen(seen) - 1);
    if (strcmp(c->name, "rmdir") == 0)
        c->error = EBUSY;
}

static void
a_hook_sees_and_decides_every_call(void)
{
    pyri_sys_hook = note;
    int fd = pyri_sys_open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(pyri_sys_fcntl(fd, F_GETFD) == FD_CLOEXEC);
    CHECK(pyri_sys_close(fd) == 0);
    CHECK(pyri_sys_rmdir("/nowhere/at/all") == -1 && errno == EBUSY);
    pyri_sys_hook = NULL;
    CHECK(strcmp(seen, "openfcntlclosermdir") == 0);
}

TESTS(T(without_a_plan_calls_are_libcs),
      T(the_nth_call_of_a_group_fails_and_no_other),
      T(a_plan_can_name_calls_and_go_on_for_a_while),
      T(counts_can_be_cut_short), T(a_write_can_be_torn_by_death),
      T(a_hook_sees_and_decides_every_call))

#else

static void
in_a_release_build_nothing_is_in_between(void)
{
    CHECK((void *)pyri_sys_pwritev == (void *)pwritev);
    CHECK((void *)pyri_sys_malloc == (void *)malloc);
    CHECK((void *)pyri_sys_clock_gettime == (void *)clock_gettime);
}

TESTS(T(in_a_release_build_nothing_is_in_between))

#endif
