/*
 * cli/fail.c - the one line on stderr that says what went wrong.
 */
#include "cmd.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void
say(const char *format, va_list list, const char *hint)
{
    char *text = NULL;
    fflush(stdout);
    progress_clear();
    fputs("pyramid: ", stderr);
    if (vasprintf(&text, format, list) < 0)
        text = NULL;
    print_safe(stderr, text ? text : "out of memory");
    if (hint)
        fprintf(stderr, "; try 'pyramid %s --help'", hint);
    fputc('\n', stderr);
    free(text);
}

int
fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say(format, list, NULL);
    va_end(list);
    return FAILED;
}

int
misuse(const verb *v, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    say(format, list, v->name);
    va_end(list);
    return MISUSED;
}

/* Whether a text names something, as a word of its own. */
static bool
names(const char *text, const char *what)
{
    size_t n = strlen(what);
    for (const char *p = text; n > 0 && (p = strstr(p, what)); p++)
        if ((p == text || !isalnum((unsigned char)p[-1])) &&
            !isalnum((unsigned char)p[n]))
            return true;
    return false;
}

int
fail_pyr(const char *where)
{
    const char *text = pyr_errmsg();
    if (!*where || names(text, where))
        return fail("%s", text);
    return fail("%s: %s", where, text);
}
