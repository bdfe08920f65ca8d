/*
 * engine/local/pages.c - are the pages of an LMDB file what LMDB takes them
 * for?
 *
 * LMDB follows what its pages say without asking: a damaged one can send it
 * anywhere. This walks the pages of one snapshot as the file has them (LMDB's
 * format 1, 64-bit), from the roots down, and looks whether every number that
 * LMDB would follow leads to where it may. Pages:
 *
 *    0  number (8)   8  0 (2)   10  flags (2)   12  lower (2)   14  upper (2)
 *       of overflow pages, at 12: how many (4)
 *   16  of branches and leaves: places of entries in the page (2 each) up to
 *       `lower`; the entries lie from `upper` on
 *
 * An entry: size, or the number of the child page (2 + 2 [+ 2]); flags (2);
 * size of the key (2); key; value, or the number of an overflow page (8).
 */
#include "engine/local/local.h"

#include "base/bytes.h"
#include "base/io.h"
#include "base/sys.h"
#include "engine/local/env.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    HEAD = 16,
    ENTRY = 8,
    BRANCH = 1,
    LEAF = 2,
    OVERFLOW = 4,
    BIG = 1,      /* flag of an entry: its value is in overflow pages */
    DATABASE = 2, /* its value is the root of another tree */
    DB_SIZE = 48,
    MAX_DEPTH = 32,
    MAX_PAGE = 65536,
    MAX_UNWRITTEN = 1 << 17, /* pages of a transaction */
    META_DBS = HEAD + 24,
    META_END = META_DBS + 2 * DB_SIZE + 16,
    NUMBER_KEYS = 8, /* flag of a tree: that of free pages */
    TRIES = 16
};

typedef struct checking {
    int fd;
    size_t psize;
    uint64_t last;  /* number of the last page */
    uint8_t *seen;  /* a bit for each */
    bool free_list; /* in the tree of free pages */
    const char *only; /* look at the pages on the way to this key, and no
                         further; or NULL: all */
} checking;

/* Keys of a page are not below `from`, and below `to`: entries of pages above
 * it, or NULL. */
typedef struct limits {
    const uint8_t *from, *to;
} limits;

typedef struct tree_root {
    unsigned depth;
    uint64_t root;
} tree_root;

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
    if (c->only)
        return 0;
    if (c->seen[page / 8] >> (page % 8) & 1)
        return damaged(page, "is in two places");
    c->seen[page / 8] |= (uint8_t)(1u << (page % 8));
    return 0;
}

/* --- values in pages of their own ---------------------------------------- */

static int
check_overflow(checking *c, uint64_t first, uint64_t size)
{
    uint8_t head[MAX_PAGE];
    uint64_t pages = (HEAD + size - 1) / c->psize + 1;
    int err;
    if (first > c->last || pages > c->last - first + 1)
        return damaged(first, "is outside the file, and is linked to");
    if ((err = read_page(c, first, head)) < 0)
        return err;
    if (pyri_load64(head) != first || pyri_load16(head + 10) != OVERFLOW ||
        pyri_load32(head + 12) != pages)
        return damaged(first, "is no value, and is taken for one");
    for (uint64_t i = 0; i < pages && err == 0; i++)
        err = mark(c, first + i);
    return err;
}

/* A list of free pages: none of them may be in use. */
static int
check_free(checking *c, uint64_t page, const uint8_t *list, uint64_t size)
{
    uint64_t n = size >= 8 ? pyri_load64(list) : UINT64_MAX;
    int err = n <= size / 8 - 1 ? 0 : damaged(page, "has a damaged list");
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
                               (off_t)(first * c->psize + HEAD));
    int err = n == (ssize_t)size ? check_free(c, first, list, size)
                                 : damaged(first, "cannot be read");
    free(list);
    return err;
}

/* --- branches and leaves ------------------------------------------------- */

static int check_tree(checking *c, tree_root t, uint64_t page, unsigned depth,
                      limits lim);

static tree_root
root_of(const uint8_t *db)
{
    return (tree_root){pyri_load16(db + 6), pyri_load64(db + 40)};
}

static int
check_root(checking *c, tree_root t)
{
    if (t.root == UINT64_MAX) /* empty */
        return t.depth == 0 ? 0 : damaged(0, "has a damaged root");
    if (t.depth == 0 || t.depth > MAX_DEPTH)
        return damaged(t.root, "is a root of a damaged depth");
    return check_tree(c, t, t.root, 1, (limits){NULL, NULL});
}

static int
check_value(checking *c, uint64_t page, const uint8_t *entry, size_t room)
{
    uint64_t size = pyri_load16(entry) |
                    (uint64_t)pyri_load16(entry + 2) << 16;
    unsigned flags = pyri_load16(entry + 4), key = pyri_load16(entry + 6);
    const uint8_t *value = entry + ENTRY + key;
    if (flags & ~(unsigned)(BIG | DATABASE) || flags == (BIG | DATABASE))
        return damaged(page, "has an entry of a kind that is not known");
    if (ENTRY + key + (flags & BIG ? 8 : size) > room)
        return damaged(page, "has an entry that leaves it");
    if (c->only)
        return 0;
    if (flags & DATABASE)
        return size == DB_SIZE && !c->free_list
                   ? check_root(c, root_of(value))
                   : damaged(page, "has a damaged database");
    int err = 0;
    if (flags & BIG)
        err = check_overflow(c, pyri_load64(value), size);
    if (err < 0 || !c->free_list)
        return err;
    return flags & BIG ? check_free_far(c, pyri_load64(value), size)
                       : check_free(c, page, value, size);
}

static int
compare_keys(const uint8_t *a, size_t an, const uint8_t *b, size_t bn)
{
    int order = memcmp(a, b, an < bn ? an : bn);
    return order ? order : (an > bn) - (an < bn);
}

/* Keys of free lists are numbers, of others bytes. */
static bool
in_order(const checking *c, const uint8_t *a, const uint8_t *b)
{
    size_t an = pyri_load16(a + 6), bn = pyri_load16(b + 6);
    if (c->free_list)
        return an == 8 && bn == 8 &&
               pyri_load64(a + ENTRY) < pyri_load64(b + ENTRY);
    return compare_keys(a + ENTRY, an, b + ENTRY, bn) < 0;
}

/* Is the entry where a search for its key leads? */
static bool
in_limits(const checking *c, limits lim, const uint8_t *entry)
{
    return (!lim.from || !in_order(c, entry, lim.from)) &&
           (!lim.to || in_order(c, entry, lim.to));
}

/* Would a search for the key go below this entry of a branch? */
static bool
leads_to(const checking *c, limits lim)
{
    size_t n = strlen(c->only);
    const uint8_t *key = (const uint8_t *)c->only;
    return (!lim.from || compare_keys(key, n, lim.from + ENTRY,
                                      pyri_load16(lim.from + 6)) >= 0) &&
           (!lim.to || compare_keys(key, n, lim.to + ENTRY,
                                    pyri_load16(lim.to + 6)) < 0);
}

/* Bytes of an entry in its page. */
static size_t
room_of(const uint8_t *entry, bool leaf)
{
    size_t n = ENTRY + (size_t)pyri_load16(entry + 6);
    if (leaf)
        n += pyri_load16(entry + 4) & BIG
                 ? 8
                 : pyri_load16(entry) | (size_t)pyri_load16(entry + 2) << 16;
    return n + n % 2;
}

/* Are the entries inside the page, in order, and where they belong? Together
 * they fill it from `upper` on: so a place that leads into the middle of one
 * shows. The first key of a branch is not looked at, and may be empty. */
static int
check_places(const checking *c, const uint8_t *p, uint64_t page, bool leaf,
             limits lim)
{
    unsigned lower = pyri_load16(p + 12), upper = pyri_load16(p + 14);
    const uint8_t *before = NULL;
    size_t filled = 0;
    for (unsigned at = HEAD; at < lower; at += 2) {
        unsigned where = pyri_load16(p + at);
        const uint8_t *entry = p + where;
        bool mute = !leaf && at == HEAD;
        if (where < upper || where + ENTRY > c->psize || where % 2 ||
            ENTRY + (size_t)pyri_load16(entry + 6) > c->psize - where)
            return damaged(page, "has an entry that leaves it");
        if ((before && !in_order(c, before, entry)) ||
            (!mute && !in_limits(c, lim, entry)))
            return damaged(page, "has keys out of order");
        before = mute ? NULL : entry;
        filled += room_of(entry, leaf);
    }
    return filled == c->psize - upper
               ? 0
               : damaged(page, "has entries that do not fill it");
}

static int
check_entries(checking *c, tree_root t, const uint8_t *p, uint64_t page,
              unsigned depth, limits lim)
{
    unsigned lower = pyri_load16(p + 12);
    bool leaf = depth == t.depth;
    int err = check_places(c, p, page, leaf, lim);
    for (unsigned at = HEAD; at < lower && err == 0; at += 2) {
        const uint8_t *entry = p + pyri_load16(p + at);
        if (leaf) {
            err = check_value(c, page, entry, c->psize - (size_t)(entry - p));
            continue;
        }
        uint64_t child = pyri_load16(entry) |
                         (uint64_t)pyri_load16(entry + 2) << 16 |
                         (uint64_t)pyri_load16(entry + 4) << 32;
        limits inner = {at == HEAD ? lim.from : entry,
                        at + 2 < lower ? p + pyri_load16(p + at + 2) : lim.to};
        if (!c->only || leads_to(c, inner))
            err = check_tree(c, t, child, depth + 1, inner);
    }
    return err;
}

static int
check_tree(checking *c, tree_root t, uint64_t page, unsigned depth, limits lim)
{
    int err = mark(c, page);
    if (err < 0)
        return err;
    uint8_t *p = pyri_sys_malloc(c->psize);
    if (!p)
        return pyri_fail_nomem("a page");
    if ((err = read_page(c, page, p)) < 0)
        goto out;
    unsigned flags = pyri_load16(p + 10);
    unsigned lower = pyri_load16(p + 12), upper = pyri_load16(p + 14);
    if (pyri_load64(p) != page ||
        flags != (unsigned)(depth == t.depth ? LEAF : BRANCH))
        err = damaged(page, "is not what it is taken for");
    else if (lower < HEAD + (flags == BRANCH ? 4 : 2) || lower % 2 || lower > upper || upper > c->psize)
        err = damaged(page, "has a damaged head");
    else
        err = check_entries(c, t, p, page, depth, lim);
out:
    free(p);
    return err;
}

/* --- all of it ----------------------------------------------------------- */

/* Pages that a transaction took and gave back again are not written, and may be
 * the last ones: then the file ends before them. */
static int
check_snapshot(checking *c, const uint8_t *meta)
{
    struct stat st;
    c->last = pyri_load64(meta + META_DBS + 2 * DB_SIZE);
    if (pyri_sys_fstat(c->fd, &st) < 0 ||
        c->last >= (uint64_t)st.st_size / c->psize + MAX_UNWRITTEN)
        return damaged(c->last, "is missing");
    c->seen = pyri_sys_calloc(1, (size_t)(c->last / 8 + 1));
    if (!c->seen)
        return pyri_fail_nomem("the pages of metadata");
    int err = check_root(c, root_of(meta + META_DBS + DB_SIZE));
    c->free_list = true;
    if (err == 0)
        err = check_root(c, root_of(meta + META_DBS));
    free(c->seen);
    return err;
}

/* The page that describes the snapshot of a transaction; newer ones may have
 * taken its place by now. */
static int
find_meta(const checking *c, uint64_t id, uint8_t *meta, bool *found)
{
    int err = 0;
    *found = false;
    for (uint64_t page = 0; page < 2 && err == 0 && !*found; page++) {
        err = read_page(c, page, meta);
        *found = err == 0 &&
                 pyri_load64(meta + META_DBS + 2 * DB_SIZE + 8) == id;
    }
    return err;
}

/* Call `look` with the page that describes the snapshot of a transaction. */
static int
with_meta(pyri_site *s, int (*look)(checking *c, const uint8_t *meta))
{
    uint8_t meta[MAX_PAGE];
    checking c = {.fd = -1};
    MDB_stat st;
    bool found = false;
    int err = 0;
    if (mdb_env_get_fd(s->meta, &c.fd) != 0 ||
        mdb_env_stat(s->meta, &st) != 0 || st.ms_psize > MAX_PAGE)
        return pyri_fail(PYR_EIO, "%s/meta: cannot be looked at", s->path);
    c.psize = st.ms_psize;
    for (int i = 0; i < TRIES && err == 0 && !found; i++) {
        MDB_txn *txn;
        if ((err = pyri_env_read(s->meta, &txn)) < 0)
            return err;
        err = find_meta(&c, mdb_txn_id(txn), meta, &found);
        if (err == 0 && found)
            err = look(&c, meta);
        mdb_txn_abort(txn);
    }
    return err;
}

int
pyri_pages_check(pyri_site *s)
{
    return with_meta(s, check_snapshot);
}

static int
check_names(checking *c, const uint8_t *meta)
{
    static const char *const names[] = {"tree", "records", "blobs", "limbo"};
    int err = 0;
    c->last = pyri_load64(meta + META_DBS + 2 * DB_SIZE);
    for (size_t i = 0; i < sizeof names / sizeof *names && err == 0; i++) {
        c->only = names[i];
        err = check_root(c, root_of(meta + META_DBS + DB_SIZE));
    }
    return err;
}

int
pyri_pages_names(pyri_site *s)
{
    return with_meta(s, check_names);
}

/* --- before it is opened ------------------------------------------------- */

/* Others may be writing to these pages; what is looked at stays the same. */
static int
check_constants(const uint8_t *meta, uint64_t page, uint32_t psize)
{
    const uint8_t *dbs = meta + META_DBS;
    if (pyri_load32(dbs) != psize || psize < 512 || psize > MAX_PAGE ||
        psize & (psize - 1))
        return damaged(page, "has a damaged size of pages");
    if (pyri_load16(dbs + 4) != NUMBER_KEYS ||
        pyri_load32(dbs + DB_SIZE) != 0 ||
        pyri_load16(dbs + DB_SIZE + 4) != 0)
        return damaged(page, "says that this is no store's metadata");
    return 0;
}

int
pyri_pages_glance(const char *dir)
{
    uint8_t meta[META_END];
    char name[PATH_MAX];
    int err = pyri_path_join(name, sizeof name, dir, "data.mdb");
    if (err < 0)
        return err;
    int fd = PYRI_RETRY(pyri_sys_open(name, O_RDONLY | O_CLOEXEC));
    if (fd < 0)
        return 0; /* LMDB has more to say about that */
    uint32_t psize = 0;
    for (uint64_t page = 0; page < 2 && err == 0; page++) {
        ssize_t n = pyri_io_pread(fd, meta, sizeof meta,
                                  (off_t)(page * psize));
        if (n < 0)
            err = pyri_fail_errno(errno, "%s", name);
        else if (n < (ssize_t)sizeof meta)
            break; /* as above */
        else if (page == 0)
            psize = pyri_load32(meta + META_DBS);
        if (err == 0)
            err = check_constants(meta, page, psize);
    }
    pyri_sys_close(fd);
    return err;
}
