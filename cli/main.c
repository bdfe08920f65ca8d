/*
 * cli/main.c - the `pyramid` tool: finds the verb, runs it, and makes sure
 * that what it printed has arrived.
 */
#include "cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#ifndef PYRAMID_VERSION
#define PYRAMID_VERSION "unknown"
#endif

extern const verb verb_init, verb_create, verb_write, verb_append, verb_read,
    verb_stat, verb_ls, verb_info, verb_log, verb_diff, verb_last, verb_tag,
    verb_clone, verb_copy, verb_resize, verb_attrs, verb_wait, verb_status,
    verb_forget, verb_reclaim, verb_fold, verb_verify, verb_repair,
    verb_compute, verb_reduce, verb_handler;

static const verb *const verbs[] = {
    &verb_init, &verb_create, &verb_write, &verb_append, &verb_read,
    &verb_compute, &verb_reduce, &verb_handler,
    &verb_stat, &verb_ls,     &verb_info,  &verb_log,    &verb_diff,
    &verb_last, &verb_tag,    &verb_clone, &verb_resize, &verb_attrs,
    &verb_wait, &verb_forget, &verb_reclaim, &verb_fold, &verb_verify,
    &verb_repair, &verb_copy, &verb_status,
};

#define NVERBS (sizeof verbs / sizeof verbs[0])

static const verb *
find_verb(const char *name)
{
    for (size_t i = 0; i < NVERBS; i++)
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
    return NULL;
}

static void
help(void)
{
    puts("Pyramid keeps huge multi-dimensional arrays; every write makes a "
         "new,\nimmutable snapshot of the whole array.\n\n"
         "Usage: pyramid VERB STORE [ARRAY] ...\n\nVerbs:");
    for (size_t i = 0; i < NVERBS; i++)
        printf("  %-8s %s\n", verbs[i]->name, verbs[i]->about);
    puts("\n'pyramid VERB --help' tells more and shows examples. Start with\n"
         "\n"
         "  pyramid create demo.pyr t --shape 1000,1000 --type f64\n"
         "  pyramid write demo.pyr t --at 0,0 part.npy\n"
         "  pyramid read demo.pyr t --box 0:4,0:4\n"
         "  pyramid log demo.pyr t");
}

/* A file that the library opens must not become standard output or error.
 * What was closed is opened the wrong way round, so that using it fails. */
static void
hold_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

static int
finish(int code)
{
    bool bad = ferror(stdout) != 0;
    errno = 0;
    if (fclose(stdout) != 0)
        bad = true;
    if (bad && code == 0)
        return fail("standard output: %s",
                    errno ? strerror(errno) : "write failed");
    return code;
}

static int
run(const verb *v, int argc, char **argv)
{
    args a;
    int code = args_parse(&a, v, argc, argv);
    if (code == 0 && a.help)
        verb_help(v, stdout);
    else if (code == 0)
        code = v->run(&a);
    args_free(&a);
    return code;
}

static int
unknown(const char *name)
{
    if (!name)
        fail("no verb given; try 'pyramid --help'");
    else
        fail("unknown verb '%s'; try 'pyramid --help'", name);
    return MISUSED;
}

int
main(int argc, char **argv)
{
    hold_standard_files();
    const char *name = argc > 1 ? argv[1] : NULL;
    bool asks = name && strcmp(name, "help") == 0 && argc > 2;
    const verb *v = find_verb(asks ? argv[2] : name ? name : "");
    if (v && asks) {
        verb_help(v, stdout);
        return finish(0);
    }
    if (v)
        return finish(run(v, argc - 2, argv + 2));
    if (name && !asks &&
        (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ||
         strcmp(name, "help") == 0)) {
        help();
        return finish(0);
    }
    if (name && strcmp(name, "--version") == 0) {
        puts("pyramid " PYRAMID_VERSION);
        return finish(0);
    }
    return unknown(asks ? argv[2] : name);
}
