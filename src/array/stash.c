/*
 * array/stash.c - the blobs that were put for a draft.
 *
 * Not all of them end up in a version: later parts of a batch hide earlier
 * ones, a fold comes too late, the write fails. What no leaf names in the end
 * is dropped, so that it takes no space.
 */
#include "array/draft.h"

#include "base/room.h"
#include "base/sys.h"

#include <pthread.h>

typedef struct pyri_stashed {
    pyri_blob blob;
    bool marked;
} stashed;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all stashes */

int
pyri_stash_add(pyri_draft *d, const pyri_blob *blobs, size_t n)
{
    int err = 0;
    pthread_mutex_lock(&lock);
    if (!pyri_room(&d->stash, &d->stash_room, d->nstash + n, sizeof *d->stash))
        err = pyri_fail_nomem("the data of a write");
    for (size_t i = 0; i < n && err == 0; i++)
        d->stash[d->nstash++] = (stashed){blobs[i], false};
    d->sorted = false;
    pthread_mutex_unlock(&lock);
    if (err < 0)
        pyri_engine_drop_blobs(d->array->engine, blobs, n, NULL, 0);
    return err;
}

static int
compare(const void *a, const void *b)
{
    const pyri_ref *x = &((const stashed *)a)->blob.ref;
    const pyri_ref *y = &((const stashed *)b)->blob.ref;
    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    return (x->b > y->b) - (x->b < y->b);
}

static void
sort(pyri_draft *d)
{
    if (!d->sorted && d->nstash > 1)
        qsort(d->stash, d->nstash, sizeof *d->stash, compare);
    d->sorted = true;
}

void
pyri_stash_mark(pyri_draft *d, const pyri_frag *frags, int n)
{
    sort(d);
    for (int i = 0; i < n && d->nstash; i++) {
        if (frags[i].kind == PYRI_FRAG_SAME)
            continue;
        stashed key = {.blob.ref = {frags[i].ref[0], frags[i].ref[1]}};
        stashed *found = bsearch(&key, d->stash, d->nstash, sizeof key,
                                 compare);
        if (found)
            found->marked = true;
    }
}

void
pyri_stash_unmark(pyri_draft *d)
{
    for (size_t i = 0; i < d->nstash; i++)
        d->stash[i].marked = false;
}

int
pyri_stash_list(pyri_draft *d, pyri_blob **out, size_t *n)
{
    *n = 0;
    *out = pyri_sys_malloc((d->nstash + 1) * sizeof **out);
    if (!*out)
        return pyri_fail_nomem("the data of a write");
    for (size_t i = 0; i < d->nstash; i++)
        if (d->stash[i].marked)
            (*out)[(*n)++] = d->stash[i].blob;
    return 0;
}

static void
drop(pyri_draft *d, size_t i, bool marked_stay)
{
    pyri_blob near[2 * PYRI_NEAR];
    size_t n = 0;
    for (size_t k = i < PYRI_NEAR ? 0 : i - PYRI_NEAR;
         k < d->nstash && k <= i + PYRI_NEAR; k++)
        if (k != i && d->stash[k].marked && marked_stay)
            near[n++] = d->stash[k].blob;
    pyri_engine_drop_blobs(d->array->engine, &d->stash[i].blob, 1, near, n);
}

void
pyri_stash_settle(pyri_draft *d, bool published)
{
    bool marked_stay = published || d->doubtful;
    sort(d);
    for (size_t i = 0; i < d->nstash; i++)
        if (!d->stash[i].marked || !marked_stay)
            drop(d, i, marked_stay);
    free(d->stash);
    d->stash = NULL;
    d->nstash = d->stash_room = 0;
}
