/*
 * array/reached.c - a set of names, by their hashes.
 */
#include "array/reached.h"

#include "base/fail.h"
#include "base/sys.h"

#include <stdlib.h>

void
pyri_reached_fini(pyri_reached *r)
{
    free(r->slots);
    *r = (pyri_reached){0};
}

static pyri_digest
hash_of(const void *name, size_t size)
{
    pyri_digest d = pyri_hash128(name, size);
    d.hi |= 1; /* never empty */
    return d;
}

/* Where it is, or the empty slot where it belongs. */
static pyri_digest *
slot_of(const pyri_reached *r, pyri_digest d)
{
    for (size_t i = (size_t)d.lo;; i++) {
        pyri_digest *s = &r->slots[i & (r->room - 1)];
        if ((s->lo == d.lo && s->hi == d.hi) || s->hi == 0)
            return s;
    }
}

static int
grow(pyri_reached *r)
{
    pyri_reached more = {.n = r->n, .room = r->room ? 2 * r->room : 1024};
    more.slots = pyri_sys_calloc(more.room, sizeof *more.slots);
    if (!more.slots)
        return pyri_fail_nomem("a list of what was reached");
    for (size_t i = 0; i < r->room; i++)
        if (r->slots[i].hi)
            *slot_of(&more, r->slots[i]) = r->slots[i];
    free(r->slots);
    *r = more;
    return 0;
}

int
pyri_reached_add(pyri_reached *r, const void *name, size_t size, bool *fresh)
{
    int err;
    if (r->n >= r->room / 4 * 3 && (err = grow(r)) < 0)
        return err;
    pyri_digest d = hash_of(name, size), *s = slot_of(r, d);
    *fresh = s->hi == 0;
    r->n += *fresh;
    *s = d;
    return 0;
}

bool
pyri_reached_has(const pyri_reached *r, const void *name, size_t size)
{
    return r->n && slot_of(r, hash_of(name, size))->hi != 0;
}
