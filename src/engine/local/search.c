/*
 * engine/local/search.c - finding entries in the pages of a snapshot.
 *
 * Only what a search touches is looked at: heads of pages, and the entries
 * that keys are compared with. What else is damaged in a page can hide entries
 * but lead nowhere.
 */
#include "engine/local/search.h"

#include "base/fail.h"
#include "base/sys.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

static const char outside[] = "is outside the file, and is linked to";
static const char leaves[] = "has an entry that leaves it";

/* --- the file ------------------------------------------------------------ */

int
pyri_pagefile_fail(const pyri_pagefile *f, uint64_t page, const char *what)
{
    return pyri_fail(PYR_ECORRUPT, "%s: page %llu %s", f->name,
                     (unsigned long long)page, what);
}

int
pyri_pagefile_open(pyri_pagefile *f, size_t page_size, uint64_t room)
{
    void *at = pyri_sys_mmap(NULL, (size_t)room, PROT_READ, MAP_SHARED, f->fd,
                             0);
    f->page_size = page_size;
    f->room = room / page_size;
    atomic_init(&f->there, 0);
    if (at == MAP_FAILED)
        return pyri_fail_errno(errno, "%s: map it", f->name);
    f->at = at;
    return 0;
}

void
pyri_pagefile_close(pyri_pagefile *f)
{
    if (f->at)
        munmap((void *)(uintptr_t)f->at, (size_t)(f->room * f->page_size));
    f->at = NULL;
}

/* Are there so many pages? The file grows; only pages that nothing leads to are
 * cut off its end (holes.c). */
static int
check_there(pyri_pagefile *f, uint64_t page, uint64_t end,
            const char *wrong)
{
    struct stat st;
    if (end <= atomic_load_explicit(&f->there, memory_order_relaxed))
        return 0;
    if (pyri_sys_fstat(f->fd, &st) < 0)
        return pyri_fail_errno(errno, "%s", f->name);
    uint64_t n = (uint64_t)st.st_size / f->page_size;
    if (n > f->room)
        n = f->room;
    atomic_store_explicit(&f->there, n, memory_order_relaxed);
    return end <= n ? 0 : pyri_pagefile_fail(f, page, wrong);
}

/* --- snapshots ----------------------------------------------------------- */

static uint64_t
load_meta(const pyri_pagefile *f, uint64_t page, size_t offset)
{
    const void *at = f->at + page * f->page_size + offset;
    return atomic_load_explicit((const atomic_ullong *)at,
                                memory_order_acquire);
}

/* The description of state `id` is written over by the transaction after the
 * next one, and that begins once the next one is described beside it: as long
 * as it is not, nothing can have changed while we read. */
int
pyri_state_find(pyri_pagefile *f, uint64_t id, pyri_state *out,
                bool *found, bool *sure)
{
    uint8_t meta[PYRI_META_END];
    const char *wrong;
    *found = *sure = false;
    int err = check_there(f, 1, 2, "is missing");
    if (err < 0)
        return err;
    for (size_t i = 0; i < sizeof meta; i += 8) /* in this order */
        pyri_store64(meta + i, load_meta(f, id & 1, i));
    *sure = load_meta(f, ~id & 1, PYRI_META_TXN) != id + 1;
    if (pyri_load64(meta + PYRI_META_TXN) != id)
        return 0;
    *out = (pyri_state){.file = f,
                           .last = pyri_load64(meta + PYRI_META_LAST)};
    if ((wrong = pyri_page_root(meta + PYRI_META_ROOTS, &out->free)) ||
        (wrong = pyri_page_root(meta + PYRI_META_ROOTS + PYRI_PAGE_ROOT,
                                &out->main)))
        return pyri_pagefile_fail(f, id & 1, wrong);
    *found = true;
    return 0;
}

int
pyri_state_page(const pyri_state *s, uint64_t page, uint64_t count,
                const uint8_t **out)
{
    *out = NULL;
    if (page < 2 || page > s->last || count > s->last - page + 1)
        return pyri_pagefile_fail(s->file, page, outside);
    int err = check_there(s->file, page, page + count, outside);
    if (err == 0)
        *out = s->file->at + page * s->file->page_size;
    return err;
}

int
pyri_state_value(const pyri_state *s, const uint8_t *entry,
                 pyri_bytes *out)
{
    uint64_t size = pyri_entry_size(entry);
    const uint8_t *value = pyri_entry_value(entry);
    *out = (pyri_bytes){value, (size_t)size};
    if (!(pyri_entry_flags(entry) & PYRI_ENTRY_BIG))
        return 0;
    uint64_t first = pyri_load64(value);
    size_t page_size = s->file->page_size;
    const uint8_t *p;
    int err = pyri_state_page(s, first, pyri_page_count(size, page_size),
                              &p);
    if (err < 0)
        return err;
    const char *wrong = pyri_page_overflow(p, first, size, page_size);
    if (wrong)
        return pyri_pagefile_fail(s->file, first, wrong);
    out->data = p + PYRI_PAGE_HEAD;
    return 0;
}

/* --- in a page ----------------------------------------------------------- */

/* Entry `i`, if its key is inside the page; else NULL. */
static inline const uint8_t *
entry_at(const uint8_t *p, size_t page_size, unsigned i)
{
    size_t where = pyri_load16(p + PYRI_PAGE_HEAD + 2 * (size_t)i);
    if (where < PYRI_PAGE_HEAD || where + PYRI_PAGE_ENTRY > page_size ||
        where + PYRI_PAGE_ENTRY + pyri_entry_key(p + where) > page_size)
        return NULL;
    return p + where;
}

/* The first entry from `low` on that is not below the key; `n` if all are. */
static int
find_in(const pyri_pagefile *f, const uint8_t *p, unsigned low, unsigned n,
        pyri_bytes key, unsigned *at, bool *exact)
{
    *exact = false;
    *at = low;
    while (low < n) {
        unsigned middle = (low + n) / 2;
        const uint8_t *e = entry_at(p, f->page_size, middle);
        if (!e)
            return pyri_pagefile_fail(f, pyri_load64(p), leaves);
        int order = pyri_page_compare(e + PYRI_PAGE_ENTRY, pyri_entry_key(e),
                                      key.data, key.size);
        if (order == 0) {
            *at = middle;
            *exact = true;
            return 0;
        }
        if (order < 0)
            low = middle + 1;
        else
            n = middle;
    }
    *at = low;
    return 0;
}

/* --- places -------------------------------------------------------------- */

void
pyri_spot_init(pyri_spot *p, const pyri_state *s, pyri_root root)
{
    p->state = s;
    p->root = root;
    p->is_set = false;
}

/* Make page `number` that of level `depth`. */
static int
enter(pyri_spot *s, unsigned depth, uint64_t number)
{
    const pyri_pagefile *f = s->state->file;
    const uint8_t *p;
    int err = pyri_state_page(s->state, number, 1, &p);
    if (err < 0)
        return err;
    pyri_page_want want = {.size = f->page_size, .page = number,
                           .leaf = depth + 1 == s->root.depth};
    const char *wrong = pyri_page_head(&want, p);
    if (wrong)
        return pyri_pagefile_fail(f, number, wrong);
    s->level[depth].page = p;
    s->level[depth].entries = pyri_page_entries(p);
    return 0;
}

/* The child where level `depth` is. */
static int
enter_child(pyri_spot *s, unsigned depth)
{
    const pyri_pagefile *f = s->state->file;
    const uint8_t *p = s->level[depth].page;
    const uint8_t *e = entry_at(p, f->page_size, s->level[depth].at);
    if (!e)
        return pyri_pagefile_fail(f, pyri_load64(p), leaves);
    return enter(s, depth + 1, pyri_entry_child(e));
}

/* Is the key between the first and the last of the leaf where we are? Nodes
 * that are asked for one after the other are often neighbours. */
static bool
is_here(const pyri_spot *s, pyri_bytes key)
{
    unsigned leaf = s->root.depth - 1;
    const uint8_t *p = s->level[leaf].page;
    size_t size = s->state->file->page_size;
    const uint8_t *first = entry_at(p, size, 0);
    const uint8_t *last = entry_at(p, size, s->level[leaf].entries - 1);
    return first && last &&
           pyri_page_compare(first + PYRI_PAGE_ENTRY, pyri_entry_key(first),
                             key.data, key.size) <= 0 &&
           pyri_page_compare(last + PYRI_PAGE_ENTRY, pyri_entry_key(last),
                             key.data, key.size) >= 0;
}

/* From the root to the leaf where the key would be. */
static int
descend(pyri_spot *s, pyri_bytes key)
{
    int err = enter(s, 0, s->root.page);
    for (unsigned d = 0; err == 0 && d + 1 < s->root.depth; d++) {
        unsigned at;
        bool exact;
        err = find_in(s->state->file, s->level[d].page, 1, s->level[d].entries,
                      key, &at, &exact);
        if (err < 0)
            return err;
        s->level[d].at = exact ? at : at - 1;
        err = enter_child(s, d);
    }
    return err;
}

int
pyri_spot_seek(pyri_spot *s, const void *key, size_t size, bool *exact,
               bool *more)
{
    pyri_bytes k = {key, size};
    *exact = *more = false;
    if (s->root.depth == 0)
        return 0;
    unsigned leaf = s->root.depth - 1;
    int err = 0;
    if (!s->is_set || !is_here(s, k)) {
        s->is_set = false;
        if ((err = descend(s, k)) < 0)
            return err;
    }
    err = find_in(s->state->file, s->level[leaf].page, 0,
                  s->level[leaf].entries, k, &s->level[leaf].at, exact);
    if (err < 0)
        return err;
    s->is_set = true;
    if (s->level[leaf].at < s->level[leaf].entries) {
        *more = true;
        return 0;
    }
    s->level[leaf].at--; /* behind the last one of this leaf */
    return pyri_spot_move(s, false, more);
}

/* Down to a leaf along the first or last children, from level `d`. */
static int
follow_edge(pyri_spot *s, unsigned d, bool last)
{
    int err = 0;
    for (;; d++) {
        s->level[d].at = last ? s->level[d].entries - 1 : 0;
        if (d + 1 == s->root.depth)
            return 0;
        if ((err = enter_child(s, d)) < 0)
            return err;
    }
}

int
pyri_spot_edge(pyri_spot *s, bool last, bool *more)
{
    s->is_set = *more = false;
    if (s->root.depth == 0)
        return 0;
    int err = enter(s, 0, s->root.page);
    if (err == 0)
        err = follow_edge(s, 0, last);
    s->is_set = *more = err == 0;
    return err;
}

/* Past the end a place stays where it is. */
int
pyri_spot_move(pyri_spot *s, bool back, bool *more)
{
    unsigned d = s->root.depth;
    *more = false;
    if (!s->is_set)
        return 0;
    while (d > 0 && s->level[d - 1].at ==
                        (back ? 0 : s->level[d - 1].entries - 1))
        d--;
    if (d == 0)
        return 0;
    s->level[d - 1].at += back ? -1u : 1u;
    int err = 0;
    if (d < s->root.depth) {
        s->is_set = false;
        if ((err = enter_child(s, d - 1)) == 0)
            err = follow_edge(s, d, back);
    }
    s->is_set = *more = err == 0;
    return err;
}

int
pyri_spot_get(const pyri_spot *s, pyri_bytes *key, pyri_bytes *value,
              unsigned *flags)
{
    const pyri_pagefile *f = s->state->file;
    unsigned leaf = s->root.depth - 1;
    const uint8_t *p = s->level[leaf].page;
    const uint8_t *e = entry_at(p, f->page_size, s->level[leaf].at);
    if (!e)
        return pyri_pagefile_fail(f, pyri_load64(p), leaves);
    *flags = pyri_entry_flags(e);
    if (*flags & ~(unsigned)(PYRI_ENTRY_BIG | PYRI_ENTRY_DATABASE))
        return pyri_pagefile_fail(f, pyri_load64(p),
                                  "has an entry of a kind that is not known");
    size_t room = f->page_size - (size_t)(pyri_entry_value(e) - p);
    if ((*flags & PYRI_ENTRY_BIG ? 8 : pyri_entry_size(e)) > room)
        return pyri_pagefile_fail(f, pyri_load64(p), leaves);
    *key = (pyri_bytes){e + PYRI_PAGE_ENTRY, pyri_entry_key(e)};
    return pyri_state_value(s->state, e, value);
}

int
pyri_state_get(const pyri_state *s, pyri_root root, const void *key,
               size_t size, pyri_bytes *out, unsigned *flags, bool *found)
{
    pyri_spot spot;
    pyri_bytes own;
    bool more;
    pyri_spot_init(&spot, s, root);
    int err = pyri_spot_seek(&spot, key, size, found, &more);
    return err < 0 || !*found ? err : pyri_spot_get(&spot, &own, out, flags);
}
