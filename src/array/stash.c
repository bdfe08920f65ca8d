/*
 * array/stash.c - the blobs that were put for a draft.
 *
 * Not all of them end up in a version: later parts of a batch hide earlier
 * ones, a fold comes too late, the write fails. What no leaf names in the end
 * is dropped, so that it takes no space.
 */
#include "array/draft.h"

#include "base/sys.h"

#include <pthread.h>

typedef struct pyri_stashed {
    pyri_blob blob;
    bool marked;
} stashed;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all stashes */

int
pyri_stash_add(pyri_draft *d, const pyri_blob *blob)
{
    int err = 0;
    pthread_mutex_lock(&lock);
    if (d->nstash == d->stash_room) {
        size_t room = d->stash_room ? 2 * d->stash_room : 4;
        stashed *grown = pyri_sys_realloc(d->stash, room * sizeof *grown);
        if (grown) {
            d->stash = grown;
            d->stash_room = room;
        } else {
            err = pyri_fail_nomem("the data of a write");
        }
    }
    if (err == 0)
        d->stash[d->nstash++] = (stashed){*blob, false};
    d->sorted = false;
    pthread_mutex_unlock(&lock);
    if (err < 0)
        pyri_engine_drop_blobs(d->array->engine, blob, 1);
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

void
pyri_stash_mark(pyri_draft *d, const pyri_frag *frags, int n)
{
    if (!d->sorted && d->nstash > 1)
        qsort(d->stash, d->nstash, sizeof *d->stash, compare);
    d->sorted = true;
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

void
pyri_stash_settle(pyri_draft *d, bool published)
{
    for (size_t i = 0; i < d->nstash; i++)
        if (!d->stash[i].marked || !(published || d->doubtful))
            pyri_engine_drop_blobs(d->array->engine, &d->stash[i].blob, 1);
    free(d->stash);
    d->stash = NULL;
    d->nstash = d->stash_room = 0;
}
