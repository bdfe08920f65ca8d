/*
 * engine/local/append.c - the segments that a site appends to, and making them
 * durable.
 *
 * A site appends to segments that no other site appends to, a thread to one
 * that no other thread does at that time: writers share no file. A thread that
 * finds none free opens one more, up to a limit; then it waits.
 */
#include "engine/local/segment.h"

#include "base/fault.h"
#include "base/sys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the pool ------------------------------------------------------------ */

void
pyri_segments_init(pyri_segments *p)
{
    pthread_mutex_init(&p->lock, NULL);
    pthread_mutex_init(&p->opening, NULL);
    pthread_cond_init(&p->freed, NULL);
}

static pyri_segment *
new_segment(void)
{
    pyri_segment *g = pyri_sys_calloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->fd = g->dirfd = -1;
    g->busy = true;
    g->refs = 1;
    g->where.dir = SIZE_MAX; /* not known yet */
    pthread_mutex_init(&g->sync_lock, NULL);
    return g;
}

/* With the pool's lock held. */
static void
drop_ref(pyri_segment *g)
{
    if (--g->refs > 0)
        return;
    if (g->fd >= 0) {
        pyri_segment_trim(g);
        pyri_sys_close(g->fd);
    }
    pthread_mutex_destroy(&g->sync_lock);
    free(g);
}

/* With the pool's lock held. */
static void
remove_segment(pyri_segments *p, pyri_segment *g)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->open[i] == g) {
            p->open[i] = p->open[--p->n];
            break;
        }
    drop_ref(g);
    pthread_cond_signal(&p->freed);
}

static bool
is_excluded(const pyri_segment *g, uint64_t exclude)
{
    return g->where.dir < PYRI_MAX_DIRS && (exclude >> g->where.dir & 1);
}

/* The shortest free segment with room, made busy; NULL if there is none. Until
 * a site has one for each directory it opens more: so that all are used. */
static pyri_segment *
find_free(pyri_segments *p, size_t dirs, uint64_t size, uint64_t exclude)
{
    pyri_segment *best = NULL;
    if (p->n < dirs && p->n < PYRI_MAX_OPEN_SEGMENTS)
        return NULL;
    for (size_t i = 0; i < p->n; i++) {
        pyri_segment *g = p->open[i];
        if (!g->busy && !atomic_load(&g->poisoned) &&
            !is_excluded(g, exclude) && pyri_segment_has_room(g, size) &&
            (!best || (dirs > 1 && g->end < best->end)))
            best = g;
    }
    if (best)
        best->busy = true;
    return best;
}

/* A free segment of no use for this blob, made busy; NULL if there is none. */
static pyri_segment *
find_useless(pyri_segments *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (!p->open[i]->busy) {
            p->open[i]->busy = true;
            return p->open[i];
        }
    return NULL;
}

/* --- making durable ------------------------------------------------------ */

/* After a failed sync the system may have dropped the bytes, and say so only
 * once. Threads that have yet to sync must not be told that all is well. */
static int
poison(pyri_site *s, pyri_segment *g, int errnum)
{
    pyri_segments *p = &s->segments;
    atomic_store(&g->poisoned, true);
    pthread_mutex_lock(&p->lock);
    if (!p->broken)
        snprintf(p->why, sizeof p->why, "segment %.100s/%08x.seg could not be "
                 "made durable (%s); close the store and open it again",
                 s->dirs.list[g->where.dir].path, g->where.id,
                 strerror(errnum));
    p->broken = true;
    pthread_cond_broadcast(&p->freed);
    pthread_mutex_unlock(&p->lock);
    return pyri_fail(PYR_EIO, "%s", p->why);
}

/* Threads that meet here share: who waited for the lock often finds its
 * appends covered by the sync of the one before. */
static int
sync_segment(pyri_site *s, pyri_segment *g)
{
    uint64_t want = atomic_load(&g->written);
    int err = 0;
    if (atomic_load(&g->synced) >= want)
        return 0;
    pthread_mutex_lock(&g->sync_lock);
    if (atomic_load(&g->synced) < want &&
        (err = PYRI_FAULT_FAILS("segment.sync")) == 0) {
        uint64_t covers = atomic_load(&g->written);
        int errnum = pyri_segment_sync_file(g);
        if (errnum)
            err = poison(s, g, errnum);
        else
            atomic_store(&g->synced, covers);
    }
    pthread_mutex_unlock(&g->sync_lock);
    return err;
}

/* --- taking and giving back ---------------------------------------------- */

/* No more appends to a busy segment. Its bytes are made durable first, as it
 * will no longer be there when its users call sync. */
static void
retire(pyri_site *s, pyri_segment *g)
{
    if (s->format.durability == PYR_DURABILITY_COMMIT &&
        sync_segment(s, g) < 0)
        poison(s, g, EIO);
    if (g->fd >= 0)
        pyri_place_full(s, g->where);
    pthread_mutex_lock(&s->segments.lock);
    remove_segment(&s->segments, g);
    pthread_mutex_unlock(&s->segments.lock);
}

static void
release(pyri_site *s, pyri_segment *g)
{
    if (g->end > PYRI_SEGMENT_FULL || atomic_load(&g->poisoned)) {
        retire(s, g);
        return;
    }
    pthread_mutex_lock(&s->segments.lock);
    g->busy = false;
    pthread_cond_signal(&s->segments.freed);
    pthread_mutex_unlock(&s->segments.lock);
}

/* Wait for a segment with room, or for a place in the pool for a new one:
 * *fresh. Returns with the segment busy. */
static int
reserve(pyri_site *s, uint64_t size, uint64_t exclude, pyri_segment **out,
        bool *fresh)
{
    pyri_segments *p = &s->segments;
    int err = 0;
    *fresh = false;
    pthread_mutex_lock(&p->lock);
    while (!p->broken && !(*out = find_free(p, s->dirs.n, size, exclude))) {
        if (p->n < PYRI_MAX_OPEN_SEGMENTS) {
            *fresh = true;
            *out = new_segment();
            if (*out)
                p->open[p->n++] = *out;
            break;
        }
        pyri_segment *useless = find_useless(p);
        if (useless) {
            pthread_mutex_unlock(&p->lock);
            retire(s, useless);
            pthread_mutex_lock(&p->lock);
        } else {
            pthread_cond_wait(&p->freed, &p->lock);
        }
    }
    if (p->broken)
        err = pyri_fail(PYR_EIO, "%s", p->why);
    else if (!*out)
        err = pyri_fail_nomem("a segment");
    pthread_mutex_unlock(&p->lock);
    return err;
}

/* Open a segment in the best directory that we do not append to yet, if there
 * is one. One thread at a time, so that each sees what the others chose. */
static int
open_apart(pyri_site *s, uint64_t exclude, pyri_segment *g)
{
    pyri_segments *p = &s->segments;
    uint64_t used = 0, all = s->dirs.n >= 64 ? ~UINT64_C(0)
                                             : (UINT64_C(1) << s->dirs.n) - 1;
    pthread_mutex_lock(&p->opening);
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->n; i++)
        if (p->open[i]->where.dir < PYRI_MAX_DIRS)
            used |= UINT64_C(1) << p->open[i]->where.dir;
    pthread_mutex_unlock(&p->lock);
    if ((exclude | used) == all)
        used = 0;
    int err = pyri_segment_open(s, exclude | used, g);
    if (err < 0 && used)
        err = pyri_segment_open(s, exclude, g);
    pthread_mutex_unlock(&p->opening);
    return err;
}

/* Gives a segment with room for `size` bytes; the caller releases it. On
 * failure *dir says where, if that is known (else SIZE_MAX). */
static int
acquire(pyri_site *s, uint64_t size, uint64_t exclude, pyri_segment **out,
        size_t *dir)
{
    pyri_segment *g = NULL;
    bool fresh;
    *dir = SIZE_MAX;
    int err = reserve(s, size, exclude, &g, &fresh);
    if (err < 0)
        return err;
    /* One taken over may lack the room; leave it to smaller blobs. */
    if (fresh && (err = open_apart(s, exclude, g)) == 0 &&
        !pyri_segment_has_room(g, size)) {
        pyri_place_leave(s, g->where);
        pyri_sys_close(g->fd);
        g->fd = -1;
        err = pyri_segment_make(s, g);
    }
    if (err < 0) {
        *dir = g->where.dir;
        pthread_mutex_lock(&s->segments.lock);
        remove_segment(&s->segments, g);
        pthread_mutex_unlock(&s->segments.lock);
        return err;
    }
    *out = g;
    return 0;
}

/* --- the calls ----------------------------------------------------------- */

/* Put some of the blobs, at least one; *done of them. */
static int
put_some(pyri_site *s, pyri_blob_put *puts, size_t n, size_t *done)
{
    uint64_t exclude = 0;
    for (;;) {
        pyri_segment *g;
        size_t dir;
        int err = acquire(s, puts[0].size, exclude, &g, &dir);
        if (err == 0) {
            *done = pyri_segment_count_run(g, puts, n);
            dir = g->where.dir;
            err = pyri_segment_append(s, g, puts, *done);
            release(s, g);
            if (err == 0)
                pyri_map_note(s, puts, *done);
        }
        if (err == 0)
            return 0;
        /* Full or failing: is there another? */
        bool elsewhere = dir < PYRI_MAX_DIRS && s->dirs.n > 1 &&
                         !(exclude >> dir & 1) &&
                         (uint64_t)__builtin_popcountll(exclude) + 1 <
                             s->dirs.n;
        if (!elsewhere)
            return err;
        exclude |= UINT64_C(1) << dir;
    }
}

int
pyri_segments_put(pyri_site *s, pyri_blob_put *puts, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t done = 0;
        int err = put_some(s, puts + i, n - i, &done);
        if (err < 0)
            return err;
        i += done;
    }
    return 0;
}

int
pyri_segments_sync(pyri_site *s)
{
    pyri_segments *p = &s->segments;
    pyri_segment *list[PYRI_MAX_OPEN_SEGMENTS];
    int err = 0;
    if (s->format.durability == PYR_DURABILITY_OS)
        return 0;
    pthread_mutex_lock(&p->lock);
    size_t n = p->n;
    for (size_t i = 0; i < n; i++) {
        list[i] = p->open[i];
        list[i]->refs++;
    }
    if (p->broken)
        err = pyri_fail(PYR_EIO, "%s", p->why);
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < n && err == 0; i++)
        err = sync_segment(s, list[i]);
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < n; i++)
        drop_ref(list[i]);
    pthread_mutex_unlock(&p->lock);
    return err;
}

/* --- the end ------------------------------------------------------------- */

void
pyri_segments_trim(pyri_site *s)
{
    pyri_segments *p = &s->segments;
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->n; i++)
        if (!p->open[i]->busy)
            pyri_segment_trim(p->open[i]);
    pthread_mutex_unlock(&p->lock);
}

void
pyri_segments_fini(pyri_site *s)
{
    pyri_segments *p = &s->segments;
    while (p->n > 0) {
        pyri_segment *g = p->open[--p->n];
        if (atomic_load(&g->poisoned))
            pyri_place_forget(s, g->where);
        else
            pyri_place_leave(s, g->where);
        drop_ref(g);
    }
    pyri_place_done(s);
    pthread_cond_destroy(&p->freed);
    pthread_mutex_destroy(&p->opening);
    pthread_mutex_destroy(&p->lock);
}
