/*
 * engine/local/page.h - one page of an LMDB file, and what LMDB takes it for.
 *
 * LMDB follows what its pages say without asking: a damaged one can send it
 * anywhere. So pages are looked at before they are used, by whoever reads them
 * (search.c), before LMDB changes them (guard.c), and by verify (pages.c).
 * The format is LMDB's number 1 on machines of 64 bits. Pages:
 *
 *    0  number (8)   8  0 (2)   10  flags (2)   12  lower (2)   14  upper (2)
 *       of overflow pages, at 12: how many (4)
 *   16  of branches and leaves: places of entries in the page (2 each) up to
 *       `lower`; the entries lie from `upper` on
 *
 * An entry: size, or the number of the child page (2 + 2 [+ 2]); flags (2);
 * size of the key (2); key; value, or the number of an overflow page (8).
 *
 * Pages 0 and 1 describe the two newest states in turn: at 16 a magic number
 * and constants (24), the roots of the tree of free pages and of the main one
 * (48 each), the number of the last page (8) and of the transaction (8).
 */
#ifndef PYRI_ENGINE_LOCAL_PAGE_H
#define PYRI_ENGINE_LOCAL_PAGE_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PYRI_PAGE_HEAD = 16,
    PYRI_PAGE_ENTRY = 8, /* head of an entry */
    PYRI_PAGE_BRANCH = 1,
    PYRI_PAGE_LEAF = 2,
    PYRI_PAGE_OVERFLOW = 4,
    PYRI_ENTRY_BIG = 1,      /* its value is in overflow pages */
    PYRI_ENTRY_DATABASE = 2, /* its value is the root of another tree */
    PYRI_PAGE_ROOT = 48,     /* bytes that tell of a tree */
    PYRI_PAGE_MAX_DEPTH = 32,
    PYRI_PAGE_MAX = 65536,
    PYRI_META_ROOTS = PYRI_PAGE_HEAD + 24,
    PYRI_META_LAST = PYRI_META_ROOTS + 2 * PYRI_PAGE_ROOT,
    PYRI_META_TXN = PYRI_META_LAST + 8,
    PYRI_META_END = PYRI_META_TXN + 8,
    PYRI_PAGE_UNWRITTEN = 1 << 17 /* pages that a file may end before: a
                                     transaction took and gave them back */
};

typedef struct pyri_root {
    unsigned depth;
    uint64_t page;    /* UINT64_MAX: the tree is empty */
    uint64_t pages;   /* of the tree, and of its long values */
    uint64_t entries;
    unsigned tree;    /* which one; for who remembers pages of several */
} pyri_root;

/* Keys of a page are not below `from`, and below `to`: entries of pages above
 * it, or NULL. */
typedef struct pyri_limits {
    const uint8_t *from, *to;
} pyri_limits;

/* What a page is to be. */
typedef struct pyri_page_want {
    size_t size;   /* of pages */
    uint64_t page; /* its number */
    bool leaf;
    bool numbers;  /* keys are numbers: of the tree of free pages */
} pyri_page_want;

static inline unsigned
pyri_page_entries(const uint8_t *p)
{
    return (pyri_load16(p + 12) - (unsigned)PYRI_PAGE_HEAD) / 2;
}

/* Bytes that are not used. */
static inline size_t
pyri_page_left(const uint8_t *p)
{
    return pyri_load16(p + 14) - (size_t)pyri_load16(p + 12);
}

/* Entry `i` of a page whose table of entries is sound. */
static inline const uint8_t *
pyri_page_entry(const uint8_t *p, unsigned i)
{
    return p + pyri_load16(p + PYRI_PAGE_HEAD + 2 * (size_t)i);
}

static inline size_t
pyri_entry_key(const uint8_t *e)
{
    return pyri_load16(e + 6);
}

static inline uint64_t
pyri_entry_size(const uint8_t *e)
{
    return pyri_load16(e) | (uint64_t)pyri_load16(e + 2) << 16;
}

static inline unsigned
pyri_entry_flags(const uint8_t *e)
{
    return pyri_load16(e + 4);
}

static inline uint64_t
pyri_entry_child(const uint8_t *e)
{
    return pyri_entry_size(e) | (uint64_t)pyri_load16(e + 4) << 32;
}

static inline const uint8_t *
pyri_entry_value(const uint8_t *e)
{
    return e + PYRI_PAGE_ENTRY + pyri_entry_key(e);
}

/* Overflow pages of a value. */
static inline uint64_t
pyri_page_count(uint64_t size, size_t page_size)
{
    return (PYRI_PAGE_HEAD + size - 1) / page_size + 1;
}

static inline int
pyri_page_compare(const void *a, size_t an, const void *b, size_t bn)
{
    int order = memcmp(a, b, an < bn ? an : bn);
    return order ? order : (an > bn) - (an < bn);
}

/* Each says what is wrong, as the end of a sentence that begins with the
 * page's number, or NULL. */

/* Head of a branch or leaf: its table of entries can be used then. */
const char *pyri_page_head(const pyri_page_want *w, const uint8_t *p);
/* All of it: entries are inside, in order, within the limits, and together
 * fill the page, so that a place in the middle of one shows. Where their
 * values and children lead is not looked at. */
const char *pyri_page_all(const pyri_page_want *w, const uint8_t *p,
                          pyri_limits lim);
/* Only whether its keys are within the limits, if all else was looked at. */
const char *pyri_page_limits(const pyri_page_want *w, const uint8_t *p,
                             pyri_limits lim);
/* The first page of a value of `size` bytes. */
const char *pyri_page_overflow(const uint8_t *p, uint64_t page,
                               uint64_t size, size_t page_size);
/* A tree as its root says. */
const char *pyri_page_root(const uint8_t *bytes, pyri_root *out);
/* A list of free pages: how many, and then their numbers from the largest to
 * the smallest. */
const char *pyri_page_list(const uint8_t *list, uint64_t size, uint64_t last);
/* What is the same in pages 0 and 1 for as long as a store lives. */
const char *pyri_page_constants(const uint8_t *p, uint32_t page_size);

#endif
