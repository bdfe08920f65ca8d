/*
 * engine/tests/whereabouts_test.c - a process that lives is never taken for
 * one that has ended; one that has ended is seen at once.
 */
#include "engine/rados/rados.h"

#include "base/bytes.h"
#include "support/check.h"
#include "support/proc.h"

typedef struct place {
    uint8_t bytes[PYRI_WHEREABOUTS];
} place;

static bool
gone(const place *p)
{
    return pyri_whereabouts_gone((pyri_bytes){p->bytes, sizeof p->bytes});
}

/* A child tells its place through a pipe, and then does as it is told. */
static pid_t
begin_child(int (*fn)(void *), place *out)
{
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        place own = {{0}};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!pyri_whereabouts_own(own.bytes) ||
            write(ends[1], &own, sizeof own) != (ssize_t)sizeof own)
            _exit(1);
        close(ends[1]);
        _exit(fn(NULL));
    }
    close(ends[1]);
    REQUIRE(read(ends[0], out, sizeof *out) == (ssize_t)sizeof *out);
    close(ends[0]);
    return proc_note(pid);
}

static int
sleep_on(void *arg)
{
    (void)arg;
    while (pause() != 0)
        ; /* only a signal ends it */
    return 0;
}

static void *
sleep_in_thread(void *arg)
{
    sleep_on(arg);
    return NULL;
}

static int
leave_it_to_a_thread(void *arg)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleep_in_thread, arg) != 0)
        return 1;
    pthread_exit(NULL); /* the process lives on */
}

/* The letter that /proc has for the state of a process. */
static void
await_state(pid_t pid, char state)
{
    char path[64], text[512];
    for (int i = 0; i < 60000; i++, nap_ms(1)) {
        snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        FILE *f = fopen(path, "r");
        REQUIRE(f);
        size_t n = fread(text, 1, sizeof text - 1, f);
        fclose(f);
        text[n] = 0;
        const char *at = strrchr(text, ')');
        if (at && at[1] && at[2] == state)
            return;
    }
    REQUIRE(!"the state came");
}

static void
one_lives_oneself(void)
{
    place own;
    REQUIRE(pyri_whereabouts_own(own.bytes));
    CHECK(!gone(&own));
}

static void
a_process_that_lives_or_is_stopped_is_not_gone(void)
{
    place p;
    pid_t pid = begin_child(sleep_on, &p);
    CHECK(!gone(&p));
    kill(pid, SIGSTOP);
    await_state(pid, 'T');
    CHECK(!gone(&p));
    kill(pid, SIGKILL);
    CHECK(proc_wait(pid, 60000).signal == SIGKILL);
}

static void
a_process_that_ended_is_gone_whether_or_not_anyone_asked_for_its_code(void)
{
    place p;
    pid_t pid = begin_child(sleep_on, &p);
    kill(pid, SIGKILL);
    for (int i = 0; i < 60000 && !gone(&p); i++)
        nap_ms(1); /* its threads end one by one, and some tools add theirs */
    await_state(pid, 'Z');
    CHECK(gone(&p));
    CHECK(proc_wait(pid, 60000).signal == SIGKILL);
    CHECK(gone(&p));
}

static void
a_process_whose_first_thread_ended_is_not_gone(void)
{
    place p;
    pid_t pid = begin_child(leave_it_to_a_thread, &p);
    await_state(pid, 'Z');
    CHECK(!gone(&p));
    kill(pid, SIGKILL);
    CHECK(proc_wait(pid, 60000).signal == SIGKILL);
    CHECK(gone(&p));
}

static void
a_number_that_another_process_has_by_now_is_of_one_that_is_gone(void)
{
    place p;
    REQUIRE(pyri_whereabouts_own(p.bytes));
    pyri_store64(p.bytes + 20, pyri_load64(p.bytes + 20) - 1);
    CHECK(gone(&p));
}

static void
of_other_machines_and_of_nonsense_nothing_is_known(void)
{
    place p;
    pid_t pid = begin_child(sleep_on, &p);
    kill(pid, SIGKILL);
    CHECK(proc_wait(pid, 60000).signal == SIGKILL);
    CHECK(gone(&p));
    p.bytes[3] ^= 1; /* as if on another one */
    CHECK(!gone(&p));
    p.bytes[3] ^= 1;
    CHECK(!pyri_whereabouts_gone((pyri_bytes){p.bytes, sizeof p.bytes - 1}));
    CHECK(!pyri_whereabouts_gone((pyri_bytes){NULL, 0}));
    pyri_store32(p.bytes + 16, 0);
    CHECK(!gone(&p));
    pyri_store32(p.bytes + 16, UINT32_MAX);
    CHECK(!gone(&p));
}

TESTS(T(one_lives_oneself), T(a_process_that_lives_or_is_stopped_is_not_gone),
      T(a_process_that_ended_is_gone_whether_or_not_anyone_asked_for_its_code),
      T(a_process_whose_first_thread_ended_is_not_gone),
      T(a_number_that_another_process_has_by_now_is_of_one_that_is_gone),
      T(of_other_machines_and_of_nonsense_nothing_is_known))
