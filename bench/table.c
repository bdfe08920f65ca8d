/*
 * bench/table.c - rows of tables as lines of JSON.
 */
#include "common.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *title, *columns;

static void
print_text(const char *text, size_t len)
{
    putchar('"');
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"' || text[i] == '\\')
            putchar('\\');
        putchar(text[i]);
    }
    putchar('"');
}

/* Pieces divided by '|', as a JSON array of strings. */
static void
print_pieces(const char *pieces)
{
    putchar('[');
    while (pieces) {
        const char *bar = strchr(pieces, '|');
        print_text(pieces, bar ? (size_t)(bar - pieces) : strlen(pieces));
        pieces = bar ? bar + 1 : NULL;
        if (pieces)
            putchar(',');
    }
    putchar(']');
}

void
bench_table(const char *name, const char *heads)
{
    static char kept[1024];
    snprintf(kept, sizeof kept, "%s", heads); /* the caller's may go away */
    title = name;
    columns = kept;
}

void
bench_row(const char *fmt, ...)
{
    char row[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(row, sizeof row, fmt, ap);
    va_end(ap);
    fputs("{\"table\":", stdout);
    print_text(title, strlen(title));
    fputs(",\"columns\":", stdout);
    print_pieces(columns);
    fputs(",\"row\":", stdout);
    print_pieces(row);
    puts("}");
    fflush(stdout);
}

void
bench_note(const char *fmt, ...)
{
    char note[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(note, sizeof note, fmt, ap);
    va_end(ap);
    fputs("{\"table\":", stdout);
    print_text(title, strlen(title));
    fputs(",\"note\":", stdout);
    print_text(note, strlen(note));
    puts("}");
    fflush(stdout);
}
