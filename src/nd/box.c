/*
 * nd/box.c - boxes: half-open, lo <= x < hi along each axis.
 */
#include "nd/nd.h"

#include "base/checked.h"

#include <stdio.h>
#include <string.h>

bool
pyri_box_empty(int n, const pyri_box *b)
{
    for (int d = 0; d < n; d++)
        if (b->lo[d] >= b->hi[d])
            return true;
    return false;
}

uint64_t
pyri_box_cells(int n, const pyri_box *b)
{
    uint64_t cells = 1;
    if (pyri_box_empty(n, b))
        return 0;
    for (int d = 0; d < n; d++)
        if (!pyri_mul64(cells, b->hi[d] - b->lo[d], &cells))
            return UINT64_MAX;
    return cells;
}

bool
pyri_box_equal(int n, const pyri_box *a, const pyri_box *b)
{
    for (int d = 0; d < n; d++)
        if (a->lo[d] != b->lo[d] || a->hi[d] != b->hi[d])
            return false;
    return true;
}

bool
pyri_box_intersect(int n, const pyri_box *a, const pyri_box *b, pyri_box *out)
{
    bool some = true;
    for (int d = 0; d < n; d++) {
        uint64_t lo = pyri_max64(a->lo[d], b->lo[d]);
        uint64_t hi = pyri_min64(a->hi[d], b->hi[d]);
        some &= lo < hi;
        out->lo[d] = lo;
        out->hi[d] = hi;
    }
    return some;
}

bool
pyri_box_overlaps(int n, const pyri_box *a, const pyri_box *b)
{
    for (int d = 0; d < n; d++)
        if (pyri_max64(a->lo[d], b->lo[d]) >= pyri_min64(a->hi[d], b->hi[d]))
            return false;
    return true;
}

bool
pyri_box_contains(int n, const pyri_box *outer, const pyri_box *inner)
{
    for (int d = 0; d < n; d++)
        if (inner->lo[d] < outer->lo[d] || inner->hi[d] > outer->hi[d])
            return false;
    return true;
}

void
pyri_box_cover(int n, pyri_box *a, const pyri_box *b)
{
    if (pyri_box_empty(n, a)) {
        *a = *b;
        return;
    }
    for (int d = 0; d < n; d++) {
        a->lo[d] = pyri_min64(a->lo[d], b->lo[d]);
        a->hi[d] = pyri_max64(a->hi[d], b->hi[d]);
    }
}

int
pyri_box_subtract(int n, const pyri_box *a, const pyri_box *b, pyri_box *out)
{
    pyri_box rest = *a;
    int count = 0;
    for (int d = 0; d < n; d++) {
        if (rest.lo[d] < b->lo[d]) {
            out[count] = rest;
            out[count++].hi[d] = b->lo[d];
            rest.lo[d] = b->lo[d];
        }
        if (rest.hi[d] > b->hi[d]) {
            out[count] = rest;
            out[count++].lo[d] = b->hi[d];
            rest.hi[d] = b->hi[d];
        }
    }
    return count;
}

char *
pyri_box_text(int n, const pyri_box *b, char *text, size_t size)
{
    size_t used = 0;
    for (int d = 0; d < n && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%llu:%llu",
                                 d ? ", " : "[", (unsigned long long)b->lo[d],
                                 (unsigned long long)b->hi[d]);
    if (used < size)
        snprintf(text + used, size - used, "]");
    return text;
}
