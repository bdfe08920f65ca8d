/*
 * cli/sink.c - .npy files to be written: under a temporary name beside their
 * own, which they get when they are complete.
 */
#include "cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What to take away if a signal ends us. */
static char *volatile unfinished;

static void
clean_up(int signal_number)
{
    if (unfinished)
        unlink(unfinished);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void
catch_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (signal(signals[i], clean_up) == SIG_IGN)
            signal(signals[i], SIG_IGN);
}

static int
fail_system(const sink *s)
{
    return fail("%s: %s", s->name, strerror(errno));
}

/* DIR/NAME becomes DIR/.NAME.XXXXXX, opened with the usual permissions. */
static int
open_temporary(sink *s)
{
    const char *slash = strrchr(s->name, '/');
    const char *base = slash ? slash + 1 : s->name;
    if (asprintf(&s->temp, "%.*s.%.200s.XXXXXX", (int)(base - s->name), s->name,
                 base) < 0) {
        s->temp = NULL;
        return fail("out of memory");
    }
    s->fd = mkostemp(s->temp, O_CLOEXEC);
    if (s->fd < 0)
        return fail_system(s);
    unfinished = s->temp;
    catch_signals();
    mode_t mask = umask(0);
    umask(mask);
    return fchmod(s->fd, 0666 & ~mask) < 0 ? fail_system(s) : 0;
}

int
sink_open(sink *s, const char *name)
{
    struct stat st;
    *s = (sink){.name = name, .fd = -1};
    if (strcmp(name, "-") == 0) {
        s->name = "standard output";
        s->fd = dup(STDOUT_FILENO);
    } else if (stat(name, &st) == 0 && !S_ISREG(st.st_mode)) {
        s->fd = open(name, O_WRONLY | O_CLOEXEC); /* a device or a pipe */
    } else {
        return open_temporary(s);
    }
    return s->fd < 0 ? fail_system(s) : 0;
}

int
sink_write(sink *s, const void *buf, size_t n)
{
    const char *p = buf;
    while (n > 0) {
        ssize_t w = write(s->fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return fail_system(s);
        p += w;
        n -= (size_t)w;
    }
    return 0;
}

int
sink_finish(sink *s)
{
    int bad = close(s->fd);
    s->fd = -1;
    if (bad < 0 || (s->temp && rename(s->temp, s->name) < 0))
        return fail_system(s);
    unfinished = NULL;
    free(s->temp);
    s->temp = NULL;
    return 0;
}

void
sink_close(sink *s)
{
    if (s->fd >= 0)
        close(s->fd);
    if (s->temp && unfinished == s->temp)
        unlink(s->temp);
    unfinished = NULL;
    free(s->temp);
    *s = (sink){.fd = -1};
}
