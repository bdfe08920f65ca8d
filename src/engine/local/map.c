/*
 * engine/local/map.c - segments mapped for reading.
 *
 * A segment is mapped once per process and whole, up to where it may grow, so
 * that a mapping never changes while it exists. Bytes beyond the end of the
 * file are not touched: a range is compared with the size of the file first.
 * Where address space is short (a limit, a checker) only what is there now is
 * mapped; a reader that needs what came later gets a mapping of its own.
 *
 * The table is a cache of 512 sets of 8. Finding a mapping takes no lock: its
 * key is compared, its count of users raised, its key compared again. Changes
 * are made under a lock, to entries whose count was moved from 0 to CHANGING.
 * A reader that finds all entries of a set in use gets a mapping of its own.
 *
 * Bounds: 4096 mappings of 1 GiB of address space, 162 KiB of bits each
 * (touched as pages are, and most of them by small blobs), 64 open files of
 * those mapped last (others are not copied from, but always shown); and one
 * mapping more for each reader that needs one of its own.
 */
#include "engine/local/local.h"

#include "base/checked.h"
#include "base/io.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SETS = 512,
    WAYS = 8,
    KEPT_FILES = 64,
    HELD_LOOK = 8,  /* how far to look back in a reader's list */
    FEW_PAGES = 16,  /* not worth a system call to fault them in */
    GROUP = 16       /* pages that are faulted in together */
};
#define CHANGING (INT32_MIN / 2)

struct pyri_map {
    _Atomic uint64_t key;   /* as in a reference; 0: none */
    _Atomic int32_t users;  /* negative: being changed */
    _Atomic uint32_t stamp; /* of the last use */
    _Atomic uint64_t size;  /* of the file, as last seen */
    const uint8_t *base;
    uint64_t length;
    _Atomic uint64_t *seen;  /* a bit per page, of blobs that have theirs */
    _Atomic uint64_t *there; /* a bit per GROUP: was faulted in; behind seen */
    _Atomic uint64_t *whole; /* a bit per sector: the blob that begins there is
                                verified; behind those */
    int fd;                 /* of the file, if it is kept open; or -1 */
    bool own;               /* one reader's, not in the table */
};

struct pyri_maps {
    pthread_mutex_t lock; /* guards changes of the table, and `kept` */
    int kept;             /* files kept open */
    _Atomic uint32_t clock;
    pyri_map sets[SETS][WAYS];
};

static atomic_bool cannot_populate; /* an old kernel */

/* --- one mapping --------------------------------------------------------- */

static int
fail_segment(pyri_site *s, uint64_t key, int errnum)
{
    size_t dir = (size_t)(key >> 32);
    pyri_fail_errno(errnum, "segment %s/%08x.seg", s->dirs.list[dir].path,
                    (uint32_t)key);
    if (errnum == ENOENT)
        return PYR_ECORRUPT; /* it is referred to, so it must be there */
    return errnum == ENOMEM ? PYR_ENOMEM : PYR_EIO;
}

static int
open_file(pyri_site *s, uint64_t key, int *fd, uint64_t *size)
{
    char name[16];
    struct stat st;
    int dirfd, err = pyri_dirs_get(s, (size_t)(key >> 32), &dirfd);
    if (err < 0)
        return err;
    pyri_segment_name(name, (uint32_t)key);
    *fd = PYRI_RETRY(pyri_sys_openat(dirfd, name, O_RDONLY | O_CLOEXEC));
    if (*fd < 0)
        return fail_segment(s, key, errno);
    if (pyri_sys_fstat(*fd, &st) < 0) {
        err = fail_segment(s, key, errno);
        pyri_sys_close(*fd);
        return err;
    }
    *size = (uint64_t)st.st_size;
    return 0;
}

static int
check_header(pyri_site *s, uint64_t key, int fd)
{
    uint8_t header[PYRI_SEGMENT_HEADER];
    ssize_t n = pyri_io_pread(fd, header, sizeof header, 0);
    if (n < 0)
        return fail_segment(s, key, errno);
    if (n != (ssize_t)sizeof header)
        return pyri_fail(PYR_ECORRUPT, "segment %08x.seg is cut off",
                         (uint32_t)key);
    return pyri_segment_check(s, header, (size_t)(key >> 32), (uint32_t)key);
}

static int
map_file(pyri_site *s, pyri_map *m, uint64_t key, int fd, uint64_t size)
{
    uint64_t whole = (size + PYRI_PAGE - 1) & ~(uint64_t)(PYRI_PAGE - 1);
    m->length = whole > PYRI_SEGMENT_LIMIT ? whole : PYRI_SEGMENT_LIMIT;
    void *base = pyri_sys_mmap(NULL, (size_t)m->length, PROT_READ, MAP_SHARED,
                               fd, 0);
    if (base == MAP_FAILED && errno == ENOMEM && whole < m->length) {
        m->length = whole;
        base = pyri_sys_mmap(NULL, (size_t)whole, PROT_READ, MAP_SHARED, fd, 0);
    }
    if (base == MAP_FAILED)
        return fail_segment(s, key, errno);
    size_t words = (size_t)(m->length / PYRI_PAGE + 63) / 64;
    size_t sectors = (size_t)(m->length / PYRI_SECTOR + 63) / 64;
    m->seen = pyri_sys_calloc(words + words / GROUP + 1 + sectors,
                              sizeof *m->seen);
    if (!m->seen) {
        munmap(base, (size_t)m->length);
        return pyri_fail_nomem("a mapped segment");
    }
    m->there = m->seen + words;
    m->whole = m->there + words / GROUP + 1;
    m->base = base;
    atomic_store(&m->size, size);
    return 0;
}

static bool
begin_change(pyri_map *m)
{
    int32_t none = 0;
    return atomic_compare_exchange_strong(&m->users, &none, CHANGING);
}

static void
end_change(pyri_map *m, int32_t users)
{
    atomic_fetch_add(&m->users, users - CHANGING);
}

static void
drop_file(pyri_maps *t, pyri_map *m)
{
    if (m->fd < 0)
        return;
    pyri_sys_close(m->fd);
    m->fd = -1;
    t->kept--;
}

/* May one more file be kept open? If need be, the one unused for longest is
 * closed; its mapping stays. With the lock held. */
static bool
may_keep_file(pyri_maps *t)
{
    pyri_map *best = NULL;
    uint32_t now = atomic_load(&t->clock), oldest = 0;
    for (size_t i = 0; t->kept >= KEPT_FILES && i < SETS * WAYS; i++) {
        pyri_map *m = &t->sets[i / WAYS][i % WAYS];
        uint32_t age = now - atomic_load(&m->stamp);
        if (atomic_load(&m->key) && atomic_load(&m->users) == 0 &&
            m->fd >= 0 && (!best || age > oldest)) {
            best = m;
            oldest = age;
        }
    }
    if (best && begin_change(best)) {
        drop_file(t, best);
        end_change(best, 0);
    }
    return t->kept < KEPT_FILES;
}

/* Fill in a mapping that nobody can find yet. */
static int
map_segment(pyri_site *s, pyri_map *m, uint64_t key)
{
    int fd;
    uint64_t size;
    int err = open_file(s, key, &fd, &size);
    if (err < 0)
        return err;
    if ((err = check_header(s, key, fd)) == 0)
        err = map_file(s, m, key, fd, size);
    m->fd = -1;
    if (err == 0 && !m->own && may_keep_file(s->maps)) {
        m->fd = fd;
        s->maps->kept++;
    } else {
        pyri_sys_close(fd);
    }
    return err;
}

static void
unmap_segment(pyri_maps *t, pyri_map *m)
{
    munmap((void *)(uintptr_t)m->base, (size_t)m->length);
    free(m->seen);
    drop_file(t, m);
    m->base = NULL;
    m->seen = NULL;
}

/* --- the table ----------------------------------------------------------- */

int
pyri_maps_new(pyri_maps **out)
{
    *out = pyri_sys_calloc(1, sizeof **out);
    if (!*out)
        return pyri_fail_nomem("the table of segments");
    pthread_mutex_init(&(*out)->lock, NULL);
    return 0;
}

void
pyri_maps_free(pyri_maps *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < SETS * WAYS; i++) {
        pyri_map *m = &t->sets[i / WAYS][i % WAYS];
        if (atomic_load(&m->key))
            unmap_segment(t, m);
    }
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static pyri_map *
set_of(pyri_maps *t, uint64_t key)
{
    return t->sets[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 55];
}

/* A mapping with its count of users raised, or NULL. */
static pyri_map *
find(pyri_map *set, uint64_t key)
{
    for (int i = 0; i < WAYS; i++) {
        pyri_map *m = &set[i];
        if (atomic_load_explicit(&m->key, memory_order_relaxed) != key)
            continue;
        if (atomic_fetch_add(&m->users, 1) >= 0 && atomic_load(&m->key) == key)
            return m;
        atomic_fetch_sub(&m->users, 1);
    }
    return NULL;
}

/* An empty entry of the set, or the one unused for longest, emptied; being
 * changed. NULL if all are in use. With the lock held. */
static pyri_map *
make_room(pyri_maps *t, pyri_map *set)
{
    pyri_map *best = NULL;
    uint32_t now = atomic_load(&t->clock), oldest = 0;
    for (int i = 0; i < WAYS; i++) {
        pyri_map *m = &set[i];
        uint32_t age = atomic_load(&m->key) == 0
            ? UINT32_MAX : now - atomic_load(&m->stamp);
        if (atomic_load(&m->users) == 0 && (!best || age > oldest)) {
            best = m;
            oldest = age;
        }
    }
    if (!best || !begin_change(best))
        return NULL;
    if (atomic_load(&best->key)) {
        atomic_store(&best->key, 0);
        unmap_segment(t, best);
    }
    return best;
}

/* A mapping outside the table. */
static int
map_own(pyri_site *s, uint64_t key, pyri_map **out)
{
    pyri_map *m = pyri_sys_calloc(1, sizeof *m);
    if (!m)
        return pyri_fail_nomem("a mapped segment");
    m->own = true;
    atomic_store(&m->key, key);
    int err = map_segment(s, m, key);
    if (err < 0)
        free(m);
    else
        *out = m;
    return err;
}

/* With the lock held. */
static int
insert(pyri_site *s, pyri_map *set, uint64_t key, pyri_map **out)
{
    pyri_map *m = make_room(s->maps, set);
    if (!m)
        return map_own(s, key, out);
    int err = map_segment(s, m, key);
    if (err == 0)
        atomic_store(&m->key, key);
    end_change(m, err == 0);
    *out = m;
    return err;
}

static void
let_go(pyri_site *s, pyri_map *m)
{
    if (!m->own) {
        atomic_fetch_sub(&m->users, 1);
        return;
    }
    unmap_segment(s->maps, m);
    free(m);
}

/* --- a reader's mappings ------------------------------------------------- */

void
pyri_map_release(pyri_site *s, pyri_reader *r)
{
    while (r->nheld > 0)
        let_go(s, r->held[--r->nheld]);
}

static int
hold(pyri_site *s, pyri_reader *r, pyri_map *m)
{
    if (r->nheld == r->held_room) {
        size_t room = r->held_room ? 2 * r->held_room : 16;
        pyri_map **held = pyri_sys_realloc(r->held, room * sizeof *held);
        if (!held) {
            let_go(s, m);
            return pyri_fail_nomem("a reader");
        }
        r->held = held;
        r->held_room = room;
    }
    r->held[r->nheld++] = m;
    atomic_store_explicit(&m->stamp,
                          atomic_fetch_add_explicit(&s->maps->clock, 1,
                                                    memory_order_relaxed),
                          memory_order_relaxed);
    return 0;
}

/* The mapping of a segment, held by the reader until it ends. */
static int
get_map(pyri_site *s, pyri_reader *r, uint64_t key, pyri_map **out)
{
    for (size_t i = 0; i < HELD_LOOK && i < r->nheld; i++) {
        pyri_map *m = r->held[r->nheld - 1 - i];
        if (atomic_load_explicit(&m->key, memory_order_relaxed) == key) {
            *out = m;
            return 0;
        }
    }
    if (key == 0 || key >> 48 || (key >> 32) >= s->dirs.n)
        return pyri_fail(PYR_ECORRUPT, "a reference to data is damaged");
    pyri_map *set = set_of(s->maps, key);
    int err = 0;
    if (!(*out = find(set, key))) {
        pthread_mutex_lock(&s->maps->lock);
        if (!(*out = find(set, key)))
            err = insert(s, set, key, out);
        pthread_mutex_unlock(&s->maps->lock);
    }
    return err < 0 ? err : hold(s, r, *out);
}

/* --- ranges -------------------------------------------------------------- */

static int
update_size(pyri_site *s, pyri_map *m)
{
    struct stat st;
    uint64_t size, key = atomic_load(&m->key);
    int fd = m->fd, err;
    if (fd >= 0) {
        if (pyri_sys_fstat(fd, &st) < 0)
            return fail_segment(s, key, errno);
        size = (uint64_t)st.st_size;
    } else {
        if ((err = open_file(s, key, &fd, &size)) < 0)
            return err;
        pyri_sys_close(fd);
    }
    atomic_store(&m->size, size);
    return 0;
}

static int
check_range(pyri_site *s, pyri_map *m, uint64_t from, uint64_t size)
{
    int err = 0;
    if (from + size > atomic_load_explicit(&m->size, memory_order_relaxed) &&
        (err = update_size(s, m)) < 0)
        return err;
    uint64_t have = atomic_load_explicit(&m->size, memory_order_relaxed);
    if (from + size <= have)
        return 0;
    return pyri_fail(PYR_ECORRUPT, "segment %08x.seg has %llu bytes, not the "
                     "%llu at %llu", (uint32_t)atomic_load(&m->key),
                     (unsigned long long)have, (unsigned long long)size,
                     (unsigned long long)from);
}

/* Are the bits first..last all set? */
static bool
all_set(_Atomic uint64_t *bits, uint64_t first, uint64_t last)
{
    for (uint64_t w = first / 64; w <= last / 64; w++) {
        uint64_t want = UINT64_MAX;
        if (w == first / 64)
            want &= UINT64_MAX << (first % 64);
        if (w == last / 64)
            want &= UINT64_MAX >> (63 - last % 64);
        if (want & ~atomic_load_explicit(&bits[w], memory_order_relaxed))
            return false;
    }
    return true;
}

static void
set_bits(_Atomic uint64_t *bits, uint64_t first, uint64_t last)
{
    for (; first <= last; first++)
        atomic_fetch_or_explicit(&bits[first / 64], UINT64_C(1) << first % 64,
                                 memory_order_relaxed);
}

/* Have the system read the pages now: all at once, and with an error instead
 * of a signal if it cannot. Not again for pages of which some are hidden, and
 * so never seen. */
static int
fault_in(pyri_site *s, pyri_map *m, uint64_t from, uint64_t size)
{
    uint64_t first = from / PYRI_PAGE, last = (from + size - 1) / PYRI_PAGE;
    if (last - first < FEW_PAGES ||
        atomic_load_explicit(&cannot_populate, memory_order_relaxed) ||
        all_set(m->there, first / GROUP, last / GROUP) ||
        all_set(m->seen, first, last))
        return 0;
    uint64_t end = (last / GROUP + 1) * GROUP * PYRI_PAGE;
    first = first / GROUP * GROUP;
    end = pyri_min64(end, m->length);
    end = pyri_min64(end, atomic_load_explicit(&m->size, memory_order_relaxed));
    void *at = (void *)(uintptr_t)(m->base + first * PYRI_PAGE);
    int rc;
    do
        rc = pyri_sys_madvise(at, (size_t)(end - first * PYRI_PAGE),
                              MADV_POPULATE_READ);
    while (rc < 0 && (errno == EINTR || errno == EAGAIN));
    if (rc == 0) {
        set_bits(m->there, first / GROUP, last / GROUP);
        return 0;
    }
    if (errno == EINVAL) {
        atomic_store(&cannot_populate, true);
        return 0;
    }
    int errnum = errno == EFAULT ? EIO : errno;
    int err = update_size(s, m);
    if (err < 0 || (err = check_range(s, m, from, size)) < 0)
        return err;
    return fail_segment(s, atomic_load(&m->key), errnum);
}

/* Are its first and its last page in memory? To whom the system does not tell,
 * it says that they are. */
static bool
is_cached(const pyri_map *m, uint64_t from, uint64_t size)
{
    uint64_t ends[2] = {from, from + size - 1};
    for (int i = 0; i < 2; i++) {
        unsigned char there = 1;
        uintptr_t page = (uintptr_t)m->base + ends[i] / PYRI_PAGE * PYRI_PAGE;
        if (pyri_sys_mincore((void *)page, 1, &there) == 0 && !(there & 1))
            return false;
    }
    return true;
}

/* Much that is looked at once is cheaper to copy than to map page by page; and
 * here, too, a failing device gives an error and no signal. */
static int
copy_out(pyri_site *s, pyri_map *m, uint64_t from, uint8_t *to, uint64_t size)
{
    while (size > 0) {
        ssize_t n = pyri_sys_pread(m->fd, to, (size_t)size, (off_t)from);
        int err;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_segment(s, atomic_load(&m->key), errno);
        if (n == 0 && ((err = update_size(s, m)) < 0 || /* it was cut off */
                       (err = check_range(s, m, from, size)) < 0))
            return err;
        to += n;
        from += (uint64_t)n;
        size -= (uint64_t)n;
    }
    return 0;
}

/* Show a range that is inside the file and the mapping. */
static int
show(pyri_site *s, pyri_map *m, uint64_t from, pyri_blob_get *g)
{
    g->data = g->size > 0 ? m->base + from : m->base;
    if (g->size == 0 || g->later)
        return 0;
    if (!g->room || m->fd < 0 || (g->cold && is_cached(m, from, g->size)))
        return fault_in(s, m, from, g->size);
    g->data = g->room;
    return copy_out(s, m, from, g->room, g->size);
}

static int
get_one(pyri_site *s, pyri_reader *r, pyri_blob_get *g)
{
    pyri_map *m = NULL;
    uint64_t from, end;
    if (g->ref.a & PYRI_SMALL_BIT)
        return pyri_small_get(s, r, g);
    int err = get_map(s, r, g->ref.a, &m);
    if (err < 0)
        return err;
    if (__builtin_add_overflow(g->ref.b, g->offset, &from) ||
        __builtin_add_overflow(from, g->size, &end) ||
        g->ref.b < PYRI_SEGMENT_HEADER || g->ref.b % PYRI_SECTOR)
        return pyri_fail(PYR_ECORRUPT, "a reference to data is damaged");
    if (g->size > 0 && (err = check_range(s, m, from, g->size)) < 0)
        return err;
    if (end > m->length && g->size > 0 &&
        ((err = map_own(s, g->ref.a, &m)) < 0 || (err = hold(s, r, m)) < 0 ||
         (err = check_range(s, m, from, g->size)) < 0))
        return err;
    if ((err = show(s, m, from, g)) < 0)
        return err;
    g->seen = m->seen;
    g->seen_first = g->ref.b / PYRI_PAGE;
    uint64_t sector = g->ref.b / PYRI_SECTOR;
    g->trusted = g->size > 0 && all_set(m->whole, sector, sector);
    return 0;
}

int
pyri_map_get(pyri_site *s, pyri_reader *r, pyri_blob_get *gets, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int err = get_one(s, r, &gets[i]);
        if (err < 0)
            return err;
    }
    return 0;
}

/* The mapping of a segment, if there is one and the bytes are inside. */
static pyri_map *
find_bytes(pyri_site *s, pyri_ref ref, uint64_t size)
{
    pyri_map *m = find(set_of(s->maps, ref.a), ref.a);
    if (m && ref.b < m->length && size <= m->length - ref.b)
        return m;
    if (m)
        let_go(s, m);
    return NULL;
}

void
pyri_map_vouch(pyri_site *s, pyri_ref ref)
{
    uint64_t sector = ref.b / PYRI_SECTOR;
    pyri_map *m = find_bytes(s, ref, 1);
    if (!m)
        return;
    set_bits(m->whole, sector, sector);
    let_go(s, m);
}

void
pyri_map_note(pyri_site *s, const pyri_blob_put *puts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t first = puts[i].ref.b, size = puts[i].size;
        pyri_map *m = size ? find_bytes(s, puts[i].ref, size) : NULL;
        if (!m)
            continue;
        set_bits(m->whole, first / PYRI_SECTOR, first / PYRI_SECTOR);
        if (puts[i].aligned)
            set_bits(m->seen, first / PYRI_PAGE,
                     (first + size - 1) / PYRI_PAGE);
        let_go(s, m);
    }
}
