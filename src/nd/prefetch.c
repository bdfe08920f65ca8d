/*
 * nd/prefetch.c - rows that are fetched before they are looked at.
 *
 * The processor foresees the rest of a row, but not where the next one is. It
 * is told, block by block or row by row, ahead of the loop that visits them.
 * Lines go to the second-level cache: the first one cannot await so many and
 * go on working.
 */
#include "nd/nd.h"

#include "base/checked.h"

enum { LINE = 64 };

void
pyri_prefetch_begin(pyri_prefetch *p, const pyri_rows *rows,
                    const uint8_t *at)
{
    *p = (pyri_prefetch){.rows = rows, .left = rows->pieces, .row = at};
}

static void
next_row(pyri_prefetch *p)
{
    const pyri_rows *r = p->rows;
    p->done = 0;
    p->left--;
    for (int d = r->outer - 1; d >= 0; d--) {
        p->row += r->step[d];
        if (++p->index[d] < r->extent[d])
            return;
        p->row -= (int64_t)r->extent[d] * r->step[d];
        p->index[d] = 0;
    }
}

void
pyri_prefetch_more(pyri_prefetch *p, uint64_t bytes)
{
    while (bytes && p->left) {
        uint64_t n = pyri_min64(bytes, p->rows->run - p->done);
        for (uint64_t k = 0; k < n; k += LINE)
            __builtin_prefetch(p->row + p->done + k, 0, 2);
        bytes -= n;
        p->done += n;
        if (p->done == p->rows->run)
            next_row(p);
    }
}
