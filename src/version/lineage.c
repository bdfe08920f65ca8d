/*
 * version/lineage.c - which array of a line of clones made a version.
 */
#include "version/version.h"

#include <assert.h>

uint64_t
pyri_lineage_owner(const pyri_lineage *l, uint64_t label)
{
    assert(l->n > 0);
    for (int i = l->n - 1; i > 0; i--)
        if (label > l->line[i].first)
            return l->line[i].array;
    return l->line[0].array;
}
