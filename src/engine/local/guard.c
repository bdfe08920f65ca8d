/*
 * engine/local/guard.c - before LMDB changes pages.
 *
 * A delete may leave a page so empty that LMDB merges it with one beside it,
 * or takes entries from there; so those are looked at, too, and, if they are
 * nearly empty themselves, those behind them. A page that it comes to in this
 * way it writes anew, and is asked about no more.
 */
#include "engine/local/search.h"

#include "base/fail.h"
#include "base/sys.h"

#include <errno.h>

typedef struct guarding {
    pyri_guard *guard;
    const pyri_state *state;
    pyri_root root;
    bool numbers; /* the tree of free pages */
} guarding;

static int
look_at(const guarding *g, uint64_t page, unsigned depth, pyri_limits lim,
        const uint8_t **out)
{
    const pyri_pagefile *f = g->state->file;
    int err = pyri_state_page(g->state, page, 1, out);
    if (err < 0)
        return err;
    pyri_page_want want = {.size = f->page_size, .page = page,
                           .leaf = depth == g->root.depth,
                           .numbers = g->numbers};
    uint64_t *seen =
        &g->guard->seen[page % (sizeof g->guard->seen / sizeof *seen)];
    uint64_t as = page << 8 | (uint64_t)g->root.tree << 1 | want.leaf;
    /* It may be linked to twice: then it is where it belongs only once. */
    const char *wrong = *seen == as ? pyri_page_head(&want, *out) : NULL;
    if (!wrong)
        wrong = *seen == as ? pyri_page_limits(&want, *out, lim)
                            : pyri_page_all(&want, *out, lim);
    if (wrong)
        return pyri_pagefile_fail(f, page, wrong);
    *seen = as;
    return 0;
}

/* What the keys below entry `i` of a branch are between. */
static pyri_limits
limits_of(const uint8_t *p, unsigned i, pyri_limits lim)
{
    return (pyri_limits){
        i == 0 ? lim.from : pyri_page_entry(p, i),
        i + 1 < pyri_page_entries(p) ? pyri_page_entry(p, i + 1) : lim.to};
}

/* Less is in it than a third: LMDB merges leaves that are a quarter full. */
static bool
is_thin(const guarding *g, const uint8_t *p)
{
    size_t all = g->state->file->page_size - PYRI_PAGE_HEAD;
    return 3 * (all - pyri_page_left(p)) < all;
}

/* Pages below entry `i` of a branch, along one edge. A leaf that is thin may be
 * merged with where we come from, and then with the one behind it. */
static int
look_along(const guarding *g, const uint8_t *p, unsigned i, unsigned depth,
           pyri_limits lim, bool last)
{
    int err = 0;
    for (; depth + 1 < g->root.depth && err == 0; depth++) {
        uint64_t child = pyri_entry_child(pyri_page_entry(p, i));
        lim = limits_of(p, i, lim);
        if ((err = look_at(g, child, depth + 1, lim, &p)) == 0)
            i = last ? pyri_page_entries(p) - 1 : 0;
    }
    for (bool thin = err == 0; thin && i < pyri_page_entries(p);
         i += last ? -1u : 1u) {
        const uint8_t *leaf;
        err = look_at(g, pyri_entry_child(pyri_page_entry(p, i)), depth + 1,
                      limits_of(p, i, lim), &leaf);
        thin = err == 0 && is_thin(g, leaf);
    }
    return err;
}

/* The last entry from `low` on that is not above the key, or the one before
 * `low`. */
static unsigned
find_in(const uint8_t *p, unsigned low, pyri_bytes key)
{
    unsigned n = pyri_page_entries(p);
    while (low < n) {
        unsigned middle = (low + n) / 2;
        const uint8_t *e = pyri_page_entry(p, middle);
        if (pyri_page_compare(e + PYRI_PAGE_ENTRY, pyri_entry_key(e),
                              key.data, key.size) <= 0)
            low = middle + 1;
        else
            n = middle;
    }
    return low - 1;
}

/* The value that is there now: its pages would be free then. */
static int
look_at_value(const guarding *g, const uint8_t *leaf, pyri_bytes key)
{
    unsigned i = find_in(leaf, 0, key);
    pyri_bytes value;
    const uint8_t *e = i == -1u ? NULL : pyri_page_entry(leaf, i);
    if (!e || pyri_entry_key(e) != key.size ||
        memcmp(e + PYRI_PAGE_ENTRY, key.data, key.size) != 0)
        return 0;
    return pyri_state_value(g->state, e, &value);
}

int
pyri_guard_key(pyri_guard *guard, const pyri_state *s, pyri_root root,
               const void *key, size_t size, bool beside)
{
    guarding g = {guard, s, root, false};
    pyri_bytes k = {key, size};
    pyri_limits lim = {NULL, NULL};
    uint64_t page = root.page;
    const uint8_t *p;
    int err = 0;
    for (unsigned depth = 1; depth <= root.depth && err == 0; depth++) {
        if ((err = look_at(&g, page, depth, lim, &p)) < 0)
            break;
        if (depth == root.depth)
            return look_at_value(&g, p, k);
        unsigned i = find_in(p, 1, k);
        if (beside && i > 0)
            err = look_along(&g, p, i - 1, depth, lim, true);
        if (beside && err == 0 && i + 1 < pyri_page_entries(p))
            err = look_along(&g, p, i + 1, depth, lim, false);
        page = pyri_entry_child(pyri_page_entry(p, i));
        lim = limits_of(p, i, lim);
    }
    return err;
}

int
pyri_guard_edge(pyri_guard *guard, const pyri_state *s, pyri_root root,
                bool last)
{
    guarding g = {guard, s, root, false};
    pyri_limits all = {NULL, NULL};
    const uint8_t *p;
    if (root.depth == 0)
        return 0;
    int err = look_at(&g, root.page, 1, all, &p);
    return err < 0 || root.depth == 1
               ? err
               : look_along(&g, p, last ? pyri_page_entries(p) - 1 : 0, 1, all,
                            last);
}

/* --- free pages ---------------------------------------------------------- */

static int
look_at_lists(const guarding *g, const uint8_t *p, uint64_t page)
{
    int err = 0;
    for (unsigned i = 0; i < pyri_page_entries(p) && err == 0; i++) {
        const uint8_t *e = pyri_page_entry(p, i);
        pyri_bytes list;
        if ((err = pyri_state_value(g->state, e, &list)) < 0)
            break;
        const char *wrong = pyri_entry_key(e) != 8
                                ? "has a damaged list"
                                : pyri_page_list(list.data, list.size,
                                                 g->state->last);
        err = wrong ? pyri_pagefile_fail(g->state->file, page, wrong) : 0;
    }
    return err;
}

/* Limits become narrower on the way down, so there is an end. */
static int
look_below(const guarding *g, uint64_t page, unsigned depth, pyri_limits lim)
{
    const uint8_t *p;
    int err = look_at(g, page, depth, lim, &p);
    if (err < 0 || depth == g->root.depth)
        return err < 0 ? err : look_at_lists(g, p, page);
    for (unsigned i = 0; i < pyri_page_entries(p) && err == 0; i++)
        err = look_below(g, pyri_entry_child(pyri_page_entry(p, i)), depth + 1,
                         limits_of(p, i, lim));
    return err;
}

int
pyri_guard_free(const pyri_state *s)
{
    pyri_guard guard = {{0}};
    guarding g = {&guard, s, s->free, true};
    return s->free.depth == 0
               ? 0
               : look_below(&g, s->free.page, 1, (pyri_limits){NULL, NULL});
}

/*
 * LMDB takes new pages behind the last one: one that is too low would be in
 * use. It never becomes less.
 *
 * The length is had by seeking: after fstat() the kernel gives the file's next
 * write a time of its own, which costs more than the write. LMDB sets the place
 * before it writes from there.
 */
int
pyri_guard_last(const pyri_state *s, uint64_t id, uint64_t *length)
{
    pyri_pagefile *f = s->file;
    const uint8_t *other = f->at + (~id & 1) * f->page_size;
    off_t end = pyri_sys_lseek(f->fd, 0, SEEK_END);
    if (end < 0)
        return pyri_fail_errno(errno, "%s", f->name);
    *length = (uint64_t)end;
    if (s->last >= *length / f->page_size + PYRI_PAGE_UNWRITTEN)
        return pyri_pagefile_fail(f, s->last, "is missing");
    if (pyri_load64(other + PYRI_META_TXN) < id &&
        pyri_load64(other + PYRI_META_LAST) > s->last)
        return pyri_pagefile_fail(f, id & 1, "says that there are fewer pages "
                                             "than there were");
    return 0;
}
