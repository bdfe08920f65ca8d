/*
 * engine/local/pages.c - are all pages of an LMDB file what LMDB takes them
 * for?
 *
 * This walks the pages of one snapshot as the file has them, from the roots
 * down, and looks whether every number that LMDB would follow leads to where
 * it may (page.h), and whether each page is in one place only: in one tree, in
 * one value, or free.
 */
#include "engine/local/local.h"

#include "base/io.h"
#include "base/sys.h"
#include "engine/local/env.h"
#include "engine/local/page.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { TRIES = 16 };

typedef struct checking {
    int fd;
    size_t psize;
    uint64_t last;  /* number of the last page */
    uint8_t *seen;  /* a bit for each */
    bool free_list; /* in the tree of free pages */
} checking;

static int
damaged(uint64_t page, const char *what)
{
    return pyri_fail(PYR_ECORRUPT, "meta/data.mdb: page %llu %s",
                     (unsigned long long)page, what);
}

static int
read_page(const checking *c, uint64_t page, uint8_t *out)
{
    ssize_t n = pyri_io_pread(c->fd, out, c->psize,
                               (off_t)(page * c->psize));
    if (n < 0)
        return pyri_fail_errno(errno, "meta/data.mdb: page %llu",
                               (unsigned long long)page);
    return n == (ssize_t)c->psize ? 0 : damaged(page, "cannot be read");
}

/* Each page is reached once. */
static int
mark(checking *c, uint64_t page)
{
    if (page < 2 || page > c->last)
        return damaged(page, "is outside the file, and is linked to");
    if (c->seen[page / 8] >> (page % 8) & 1)
        return damaged(page, "is in two places");
    c->seen[page / 8] |= (uint8_t)(1u << (page % 8));
    return 0;
}

/* --- values in pages of their own ---------------------------------------- */

static int
check_overflow(checking *c, uint64_t first, uint64_t size)
{
    uint8_t head[PYRI_PAGE_MAX];
    uint64_t pages = pyri_page_count(size, c->psize);
    int err;
    if (first > c->last || pages > c->last - first + 1)
        return damaged(first, "is outside the file, and is linked to");
    if ((err = read_page(c, first, head)) < 0)
        return err;
    const char *wrong = pyri_page_overflow(head, first, size, c->psize);
    if (wrong)
        return damaged(first, wrong);
    for (uint64_t i = 0; i < pages && err == 0; i++)
        err = mark(c, first + i);
    return err;
}

/* A list of free pages: none of them may be in use. */
static int
check_free(checking *c, uint64_t page, const uint8_t *list, uint64_t size)
{
    const char *wrong = pyri_page_list(list, size, c->last);
    int err = wrong ? damaged(page, wrong) : 0;
    uint64_t n = err < 0 ? 0 : pyri_load64(list);
    for (uint64_t i = 1; i <= n && err == 0; i++)
        err = mark(c, pyri_load64(list + 8 * i));
    return err;
}

static int
check_free_far(checking *c, uint64_t first, uint64_t size)
{
    uint8_t *list = pyri_sys_malloc((size_t)size);
    if (!list)
        return pyri_fail_nomem("a list of free pages");
    ssize_t n = pyri_io_pread(c->fd, list, (size_t)size,
                               (off_t)(first * c->psize + PYRI_PAGE_HEAD));
    int err = n == (ssize_t)size ? check_free(c, first, list, size)
                                 : damaged(first, "cannot be read");
    free(list);
    return err;
}

/* --- branches and leaves ------------------------------------------------- */

static int check_tree(checking *c, pyri_root t, uint64_t page, unsigned depth,
                      pyri_limits lim);

/* A root that page `page` tells of. */
static int
check_root(checking *c, uint64_t page, const uint8_t *bytes)
{
    pyri_root t;
    const char *wrong = pyri_page_root(bytes, &t);
    if (wrong)
        return damaged(page, wrong);
    return t.depth ? check_tree(c, t, t.page, 1, (pyri_limits){NULL, NULL})
                   : 0;
}

static int
check_value(checking *c, uint64_t page, const uint8_t *entry)
{
    uint64_t size = pyri_entry_size(entry);
    unsigned flags = pyri_entry_flags(entry);
    const uint8_t *value = pyri_entry_value(entry);
    if (flags & PYRI_ENTRY_DATABASE)
        return size == PYRI_PAGE_ROOT && !c->free_list
                   ? check_root(c, page, value)
                   : damaged(page, "has a damaged database");
    int err = 0;
    if (flags & PYRI_ENTRY_BIG)
        err = check_overflow(c, pyri_load64(value), size);
    if (err < 0 || !c->free_list)
        return err;
    return flags & PYRI_ENTRY_BIG
               ? check_free_far(c, pyri_load64(value), size)
               : check_free(c, page, value, size);
}

static int
check_entries(checking *c, pyri_root t, const uint8_t *p, uint64_t page,
              unsigned depth, pyri_limits lim)
{
    unsigned n = pyri_page_entries(p);
    int err = 0;
    for (unsigned i = 0; i < n && err == 0; i++) {
        const uint8_t *entry = pyri_page_entry(p, i);
        if (depth == t.depth) {
            err = check_value(c, page, entry);
            continue;
        }
        pyri_limits inner = {i == 0 ? lim.from : entry,
                             i + 1 < n ? pyri_page_entry(p, i + 1) : lim.to};
        err = check_tree(c, t, pyri_entry_child(entry), depth + 1, inner);
    }
    return err;
}

static int
check_tree(checking *c, pyri_root t, uint64_t page, unsigned depth,
           pyri_limits lim)
{
    pyri_page_want want = {.size = c->psize, .page = page,
                           .leaf = depth == t.depth, .numbers = c->free_list};
    int err = mark(c, page);
    if (err < 0)
        return err;
    uint8_t *p = pyri_sys_malloc(c->psize);
    if (!p)
        return pyri_fail_nomem("a page");
    if ((err = read_page(c, page, p)) == 0) {
        const char *wrong = pyri_page_all(&want, p, lim);
        err = wrong ? damaged(page, wrong)
                    : check_entries(c, t, p, page, depth, lim);
    }
    free(p);
    return err;
}

/* --- all of it ----------------------------------------------------------- */

/* Pages that a transaction took and gave back again are not written, and may be
 * the last ones: then the file ends before them. */
static int
check_snapshot(checking *c, uint64_t page, const uint8_t *meta)
{
    struct stat st;
    c->last = pyri_load64(meta + PYRI_META_LAST);
    if (pyri_sys_fstat(c->fd, &st) < 0 ||
        c->last >= (uint64_t)st.st_size / c->psize + PYRI_PAGE_UNWRITTEN)
        return damaged(c->last, "is missing");
    c->seen = pyri_sys_calloc(1, (size_t)(c->last / 8 + 1));
    if (!c->seen)
        return pyri_fail_nomem("the pages of metadata");
    int err = check_root(c, page, meta + PYRI_META_ROOTS + PYRI_PAGE_ROOT);
    c->free_list = true;
    if (err == 0)
        err = check_root(c, page, meta + PYRI_META_ROOTS);
    free(c->seen);
    return err;
}

/* The page that describes the snapshot of a transaction; newer ones may have
 * taken its place by now. */
static int
find_meta(const checking *c, uint64_t id, uint8_t *meta, uint64_t *page,
          bool *found)
{
    *page = id & 1;
    int err = read_page(c, *page, meta);
    *found = err == 0 && pyri_load64(meta + PYRI_META_TXN) == id;
    return err;
}

int
pyri_pages_check(pyri_site *s)
{
    uint8_t meta[PYRI_PAGE_MAX];
    checking c = {.fd = -1};
    MDB_stat st;
    uint64_t page;
    bool found = false;
    int err = 0;
    if (mdb_env_get_fd(s->meta, &c.fd) != 0 ||
        mdb_env_stat(s->meta, &st) != 0 || st.ms_psize > PYRI_PAGE_MAX)
        return pyri_fail(PYR_EIO, "%s/meta: cannot be looked at", s->path);
    c.psize = st.ms_psize;
    for (int i = 0; i < TRIES && err == 0 && !found; i++) {
        pyri_txn *txn;
        if ((err = pyri_env_read(s->meta, &txn)) < 0)
            return err;
        err = find_meta(&c, pyri_env_id(txn), meta, &page, &found);
        if (err == 0 && found)
            err = check_snapshot(&c, page, meta);
        pyri_env_abort(txn);
    }
    return err;
}
