/*
 * base/pool.h - a few worker threads for work that falls into equal parts.
 */
#ifndef PYRI_BASE_POOL_H
#define PYRI_BASE_POOL_H

#include <stdbool.h>
#include <stddef.h>

/* Part `i` of a job; returns 0 or a PYR_E code. `worker` numbers the threads
 * at work on this job from 0, so that each can have memory of its own. */
typedef int pyri_part_fn(void *ctx, size_t i, unsigned worker);

enum { PYRI_MAX_WORKERS = 4 };

/*
 * Do parts 0..n-1, in any order, on the caller's thread and up to
 * PYRI_MAX_WORKERS - 1 others. Returns when all are done: 0, or the failure of
 * one part, its text set for the caller's thread; parts not yet begun when
 * one fails are left out. Any thread may call; a caller that finds the workers
 * busy works alone.
 */
int pyri_pool_run(size_t n, pyri_part_fn *fn, void *ctx);

/* The same, but on the caller's thread alone unless it is worth waking others,
 * which takes some microseconds. */
int pyri_pool_run_if(bool worth, size_t n, pyri_part_fn *fn, void *ctx);

#endif
