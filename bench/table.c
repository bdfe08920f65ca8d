/*
 * bench/table.c - Markdown tables that are also readable as they are.
 */
#include "common.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { COLUMNS = 16, FIRST = 40, REST = 9 };

static int width[COLUMNS];

/* Print cells divided by '|', the first flush left, the others flush right. */
static void
print_row(const char *cells)
{
    for (int i = 0; i < COLUMNS && cells; i++) {
        const char *bar = strchr(cells, '|');
        int len = bar ? (int)(bar - cells) : (int)strlen(cells);
        printf("| %*.*s ", i == 0 ? -width[i] : width[i], len, cells);
        cells = bar ? bar + 1 : NULL;
    }
    puts("|");
    fflush(stdout);
}

static void
measure(const char *columns)
{
    for (int i = 0; i < COLUMNS && columns; i++) {
        const char *bar = strchr(columns, '|');
        int len = bar ? (int)(bar - columns) : (int)strlen(columns);
        int least = i == 0 ? FIRST : REST;
        width[i] = len > least ? len : least;
        columns = bar ? bar + 1 : NULL;
    }
}

void
bench_table(const char *title, const char *columns)
{
    char rule[512] = "---";
    memset(width, 0, sizeof width);
    measure(columns);
    for (const char *bar = strchr(columns, '|'); bar;
         bar = strchr(bar + 1, '|'))
        strcat(rule, "|---:");
    printf("\n### %s\n\n", title);
    print_row(columns);
    print_row(rule);
}

void
bench_row(const char *fmt, ...)
{
    char row[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(row, sizeof row, fmt, ap);
    va_end(ap);
    print_row(row);
}

void
bench_note(const char *fmt, ...)
{
    va_list ap;
    putchar('\n');
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    fflush(stdout);
}
