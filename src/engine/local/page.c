/*
 * engine/local/page.c - one page of an LMDB file.
 */
#include "engine/local/page.h"

enum { NUMBER_KEYS = 8, /* flag of a tree: that of free pages */ FORMAT = 1 };

const char *
pyri_page_head(const pyri_page_want *w, const uint8_t *p)
{
    unsigned lower = pyri_load16(p + 12), upper = pyri_load16(p + 14);
    unsigned least = w->leaf ? 1 : 2; /* entries */
    if (pyri_load64(p) != w->page ||
        pyri_load16(p + 10) != (w->leaf ? PYRI_PAGE_LEAF : PYRI_PAGE_BRANCH))
        return "is not what it is taken for";
    if (lower < PYRI_PAGE_HEAD + 2 * least || lower % 2 || lower > upper ||
        upper > w->size)
        return "has a damaged head";
    return NULL;
}

/* Keys of free lists are numbers, of others bytes. */
static bool
in_order(bool numbers, const uint8_t *a, const uint8_t *b)
{
    size_t an = pyri_entry_key(a), bn = pyri_entry_key(b);
    a += PYRI_PAGE_ENTRY;
    b += PYRI_PAGE_ENTRY;
    if (numbers)
        return an == 8 && bn == 8 && pyri_load64(a) < pyri_load64(b);
    return pyri_page_compare(a, an, b, bn) < 0;
}

static const char order[] = "has keys out of order";

/* Are keys where a search for them leads? They are in order. */
const char *
pyri_page_limits(const pyri_page_want *w, const uint8_t *p, pyri_limits lim)
{
    const uint8_t *first = pyri_page_entry(p, w->leaf ? 0 : 1);
    const uint8_t *last = pyri_page_entry(p, pyri_page_entries(p) - 1);
    return (!lim.from || !in_order(w->numbers, first, lim.from)) &&
                   (!lim.to || in_order(w->numbers, last, lim.to))
               ? NULL
               : order;
}

/* Bytes of an entry in its page. */
static size_t
room_of(const uint8_t *entry, bool leaf)
{
    size_t n = PYRI_PAGE_ENTRY + pyri_entry_key(entry);
    if (leaf)
        n += pyri_entry_flags(entry) & PYRI_ENTRY_BIG
                 ? 8
                 : (size_t)pyri_entry_size(entry);
    return n;
}

static bool
is_known_kind(const uint8_t *entry)
{
    unsigned flags = pyri_entry_flags(entry);
    return flags == 0 || flags == PYRI_ENTRY_BIG ||
           flags == PYRI_ENTRY_DATABASE;
}

/* The first key of a branch is not looked at, and may be empty. */
const char *
pyri_page_all(const pyri_page_want *w, const uint8_t *p, pyri_limits lim)
{
    const char *wrong = pyri_page_head(w, p);
    if (wrong)
        return wrong;
    unsigned n = pyri_page_entries(p), upper = pyri_load16(p + 14);
    const uint8_t *before = NULL;
    size_t filled = 0;
    for (unsigned i = 0; i < n; i++) {
        const uint8_t *entry = pyri_page_entry(p, i);
        size_t where = (size_t)(entry - p);
        if (where < upper || where + PYRI_PAGE_ENTRY > w->size || where % 2)
            return "has an entry that leaves it";
        size_t room = room_of(entry, w->leaf);
        if (room > w->size - where)
            return "has an entry that leaves it";
        if (w->leaf && !is_known_kind(entry))
            return "has an entry of a kind that is not known";
        if (before && !in_order(w->numbers, before, entry))
            return order;
        before = w->leaf || i > 0 ? entry : NULL;
        filled += (room + 1) & ~(size_t)1;
    }
    if (filled != w->size - upper)
        return "has entries that do not fill it";
    return pyri_page_limits(w, p, lim);
}

const char *
pyri_page_overflow(const uint8_t *p, uint64_t page, uint64_t size,
                   size_t page_size)
{
    return pyri_load64(p) == page &&
                   pyri_load16(p + 10) == PYRI_PAGE_OVERFLOW &&
                   pyri_load32(p + 12) == pyri_page_count(size, page_size)
               ? NULL
               : "is no value, and is taken for one";
}

const char *
pyri_page_root(const uint8_t *bytes, pyri_root *out)
{
    *out = (pyri_root){.depth = pyri_load16(bytes + 6),
                       .page = pyri_load64(bytes + 40),
                       .pages = pyri_load64(bytes + 8) +
                                pyri_load64(bytes + 16) +
                                pyri_load64(bytes + 24),
                       .entries = pyri_load64(bytes + 32)};
    bool empty = out->page == UINT64_MAX;
    return empty ? out->depth == 0 ? NULL : "has a damaged root"
           : out->depth == 0 || out->depth > PYRI_PAGE_MAX_DEPTH
               ? "has a root of a damaged depth"
               : NULL;
}

const char *
pyri_page_list(const uint8_t *list, uint64_t size, uint64_t last)
{
    uint64_t n = size >= 8 ? pyri_load64(list) : 0, before = last + 1;
    if (size < 8 || n > size / 8 - 1)
        return "has a damaged list";
    for (uint64_t i = 1; i <= n; i++) {
        uint64_t page = pyri_load64(list + 8 * i);
        if (page < 2 || page >= before)
            return "has a damaged list";
        before = page;
    }
    return NULL;
}

const char *
pyri_page_constants(const uint8_t *p, uint32_t page_size)
{
    const uint8_t *roots = p + PYRI_META_ROOTS;
    if (pyri_load32(roots) != page_size || page_size < 512 ||
        page_size > PYRI_PAGE_MAX || page_size & (page_size - 1))
        return "has a damaged size of pages";
    if (pyri_load16(roots + 4) != NUMBER_KEYS ||
        pyri_load32(roots + PYRI_PAGE_ROOT) != 0 ||
        pyri_load16(roots + PYRI_PAGE_ROOT + 4) != 0)
        return "says that this is no store's metadata";
    return NULL;
}
