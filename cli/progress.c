/*
 * cli/progress.c - how far long work is: percentage, speed, time left.
 */
#include "cmd.h"

#include <time.h>
#include <unistd.h>

#define LARGE ((uint64_t)32 << 20)
#define REDRAW 100000000 /* ns */
#define WIDTH 30

static bool on_screen;

static int64_t
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void
progress_begin(progress *p, const args *a, uint64_t bytes)
{
    *p = (progress){.total = bytes, .began = now()};
    p->shown = !a->quiet && bytes > LARGE && isatty(STDERR_FILENO);
}

void
progress_begin_steps(progress *p, const args *a)
{
    *p = (progress){.began = now(), .steps = true};
    p->shown = !a->quiet && isatty(STDERR_FILENO);
}

void
progress_steps(progress *p, uint64_t done, uint64_t total)
{
    p->total = total ? total : 1;
    p->done = 0;
    progress_add(p, total ? done : 0);
}

static void
draw(progress *p, int64_t time)
{
    double part = (double)p->done / (double)p->total;
    double seconds = (double)(time - p->began) / 1e9;
    double speed = seconds > 0 ? (double)p->done / seconds : 0;
    double left = speed > 0 ? (double)(p->total - p->done) / speed : 0;
    int filled = (int)(part * WIDTH);
    fprintf(stderr, "\r[%.*s%*s] %3.0f%%  ", filled,
            "##############################", WIDTH - filled, "", part * 100);
    if (!p->steps)
        fprintf(stderr, "%.0f MB/s  ", speed / 1e6);
    fprintf(stderr, "%d:%02d left\033[K", (int)(left / 60), (int)left % 60);
    fflush(stderr);
    on_screen = true;
    p->drawn = time;
}

void
progress_add(progress *p, uint64_t bytes)
{
    p->done += bytes;
    if (!p->shown)
        return;
    int64_t time = now();
    if (time - p->drawn >= REDRAW)
        draw(p, time);
}

void
progress_end(progress *p)
{
    progress_clear();
    p->shown = false;
}

void
progress_clear(void)
{
    if (on_screen)
        fputs("\r\033[K", stderr);
    on_screen = false;
}
