/*
 * engine/local/segment.c - append-only files of chunk data.
 *
 * A segment ends near 1 GiB; a larger blob gets one for itself.
 *
 *   +--------+------+--+-----------+----+------+-+------+-+----+
 *   | header | blob |  | blob      |    | blob | | blob | |    | ...
 *   +--------+------+--+-----------+----+------+-+------+-+----+
 *   0        4096      (4096 n)         (4096 n) (1024 n)
 *
 * What is put in one go begins on a page and has all its pages for itself. In
 * it small blobs (those that need not be on a page, and are no larger than
 * PYRI_SMALL_BLOB) begin on the next sector of 1024 bytes: they are of one
 * version, which names all of them at the same time or drops some, so whoever
 * gives space back can tell who else is on a page.
 *
 * Header, the rest of its page being zero (numbers are little-endian):
 *
 *    0  8 bytes  "PYRSEG1\n"
 *    8  4        format, 1
 *   12  4        number of the segment: the name of its file, in hex
 *   16  40       uuid of the store, as text, and zeros
 *   56  8        id of the writer that made it
 *   64  8        when, in ns since 1970
 *   72  8        XXH3 of the bytes before
 *
 * A reference (a, b) to a blob: bits 0..31 of a are the number of the segment,
 * bits 32..47 that of its directory, the rest 0; b is the blob's offset in the
 * file, a multiple of 4096, or of a small one of 1024.
 *
 * Numbers are random, and a file is created exclusively: no allocation to keep
 * durable. Bytes after the last blob that a published version refers to are
 * garbage of writers that failed.
 */
#include "engine/local/segment.h"

#include "base/bytes.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/sys.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    HEADER_SUM = 72,
    IOV_BATCH = 1024,  /* pieces gathered into one write: as many as go */
    NAME_TRIES = 100,
    TAKE_TRIES = 8
};
#define MAX_RUN (UINT64_C(64) << 20) /* bytes appended in one go */
#define LARGE_RUN (UINT64_C(256) << 10) /* worth setting blocks aside for, */
#define LONG_FILE (UINT64_C(4) << 20)   /* and any at the end of such a one */
#define ASIDE_MAX (UINT64_C(64) << 20)

/* Between blobs: the rest of a page. */
static const uint8_t zeros[PYRI_PAGE];

static uint64_t
round_up(uint64_t v, uint64_t to)
{
    return (v + to - 1) & ~(to - 1);
}

void
pyri_segment_name(char out[16], uint32_t id)
{
    snprintf(out, 16, "%08x.seg", id);
}

/* --- header -------------------------------------------------------------- */

static void
make_header(const pyri_site *s, uint32_t id, uint8_t *h)
{
    struct timespec ts;
    pyri_sys_clock_gettime(CLOCK_REALTIME, &ts);
    memset(h, 0, PYRI_SEGMENT_HEADER);
    memcpy(h, "PYRSEG1\n", 8);
    pyri_store32(h + 8, 1);
    pyri_store32(h + 12, id);
    memcpy(h + 16, s->format.uuid, sizeof s->format.uuid);
    pyri_store64(h + 56, s->presence.writer);
    pyri_store64(h + 64, (uint64_t)ts.tv_sec * 1000000000 +
                         (uint64_t)ts.tv_nsec);
    pyri_store64(h + HEADER_SUM, pyri_hash64(h, HEADER_SUM));
}

int
pyri_segment_check(const pyri_site *s, const uint8_t *h, size_t dir,
                   uint32_t id)
{
    const char *wrong = NULL;
    if (memcmp(h, "PYRSEG1\n", 8) != 0 ||
        pyri_load64(h + HEADER_SUM) != pyri_hash64(h, HEADER_SUM))
        wrong = "its header is damaged";
    else if (pyri_load32(h + 8) != 1)
        wrong = "it is of a newer format";
    else if (memcmp(h + 16, s->format.uuid, sizeof s->format.uuid) != 0)
        wrong = "it belongs to another store";
    else if (pyri_load32(h + 12) != id)
        wrong = "it was renamed";
    if (!wrong)
        return 0;
    return pyri_fail(PYR_ECORRUPT, "segment %s/%08x.seg: %s",
                     s->dirs.list[dir].path, id, wrong);
}

/* --- making and opening -------------------------------------------------- */

static int
fail_at(pyri_site *s, const pyri_segment *g, int errnum)
{
    return pyri_fail_errno(errnum, "segment %s/%08x.seg",
                           s->dirs.list[g->where.dir].path, g->where.id);
}

static int
create_file(pyri_site *s, pyri_segment *g)
{
    char name[16];
    for (int i = 0; i < NAME_TRIES; i++) {
        int errnum = pyri_io_random(&g->where.id, sizeof g->where.id);
        if (errnum)
            return pyri_fail_errno(errnum, "random numbers");
        if (g->where.id == 0)
            continue;
        pyri_segment_name(name, g->where.id);
        g->fd = PYRI_RETRY(
            pyri_sys_openat(g->dirfd, name,
                            O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
        if (g->fd >= 0)
            return 0;
        if (errno != EEXIST)
            return fail_at(s, g, errno);
    }
    return pyri_fail(PYR_EIO, "%s: no free name for a segment",
                     s->dirs.list[g->where.dir].path);
}

int
pyri_segment_make(pyri_site *s, pyri_segment *g)
{
    uint8_t header[PYRI_SEGMENT_HEADER];
    char name[16];
    int err = create_file(s, g);
    if (err < 0)
        return err;
    make_header(s, g->where.id, header);
    int errnum = pyri_io_pwrite(g->fd, header, sizeof header, 0);
    if (errnum)
        err = fail_at(s, g, errnum);
    if (err == 0)
        err = pyri_place_enter(s, g->where);
    if (err < 0) {
        pyri_segment_name(name, g->where.id);
        pyri_sys_unlinkat(g->dirfd, name, 0);
        pyri_sys_close(g->fd);
        g->fd = -1;
        return err;
    }
    g->end = PYRI_SEGMENT_HEADER;
    return 0;
}

/* Go on with a segment that another writer left. *ok is false if it cannot be
 * used; it is off the list then. */
static int
take_over(pyri_site *s, pyri_segment *g, bool *ok)
{
    uint8_t header[PYRI_SEGMENT_HEADER];
    char name[16];
    struct stat st;
    pyri_segment_name(name, g->where.id);
    g->fd = PYRI_RETRY(pyri_sys_openat(g->dirfd, name, O_RDWR | O_CLOEXEC));
    *ok = g->fd >= 0 && pyri_sys_fstat(g->fd, &st) == 0 &&
          (uint64_t)st.st_size < PYRI_SEGMENT_FULL &&
          pyri_io_pread(g->fd, header, sizeof header, 0) ==
              (ssize_t)sizeof header &&
          pyri_segment_check(s, header, g->where.dir, g->where.id) == 0;
    bool empty = false;
    if (*ok && g->where.dead)
        *ok = pyri_sweep(s, g->where, &empty, &(uint64_t){0}) == 0 &&
              !empty;
    if (*ok) {
        g->end = round_up((uint64_t)st.st_size, PYRI_PAGE);
        return 0;
    }
    if (g->fd >= 0)
        pyri_sys_close(g->fd);
    g->fd = -1;
    return pyri_place_forget(s, g->where);
}

int
pyri_segment_open(pyri_site *s, uint64_t exclude, pyri_segment *g)
{
    for (int i = 0; i < TAKE_TRIES; i++) {
        bool ok;
        int err = pyri_place_choose(s, exclude, &g->where);
        if (err < 0)
            return err;
        if ((err = pyri_dirs_get(s, g->where.dir, &g->dirfd)) < 0)
            return err;
        if (g->where.id == 0)
            return pyri_segment_make(s, g);
        if ((err = take_over(s, g, &ok)) < 0 || ok)
            return err;
    }
    return pyri_segment_make(s, g);
}

/* --- appending ----------------------------------------------------------- */

typedef struct gather {
    int fd;
    uint64_t at; /* in the file, of the first piece */
    int n;
    struct iovec iov[IOV_BATCH];
} gather;

static int
flush(gather *w)
{
    struct iovec *iov = w->iov;
    while (w->n > 0) {
        ssize_t n = pyri_sys_pwritev(w->fd, iov, w->n, (off_t)w->at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : ENOSPC;
        w->at += (uint64_t)n;
        for (; w->n > 0 && (size_t)n >= iov->iov_len; w->n--)
            n -= (ssize_t)(iov++)->iov_len;
        if (n > 0) {
            iov->iov_base = (uint8_t *)iov->iov_base + n;
            iov->iov_len -= (size_t)n;
        }
    }
    return 0;
}

static int
add_piece(gather *w, const void *data, size_t size)
{
    int errnum = w->n == IOV_BATCH ? flush(w) : 0;
    if (errnum == 0 && size > 0)
        w->iov[w->n++] = (struct iovec){(void *)(uintptr_t)data, size};
    return errnum;
}

static_assert(PYRI_PAGE / PYRI_SECTOR <= PYRI_NEAR, "blobs on a page");

/* Where a blob goes that is put at `end` or later; *next is the end then. */
static uint64_t
lay_out(uint64_t end, const pyri_blob_put *p, uint64_t *next)
{
    bool small = !p->aligned && p->size <= PYRI_SMALL_BLOB;
    uint64_t unit = small ? PYRI_SECTOR : PYRI_PAGE, at = round_up(end, unit);
    *next = round_up(at + p->size, unit);
    return at;
}

bool
pyri_segment_has_room(const pyri_segment *g, uint64_t size)
{
    return g->end == PYRI_SEGMENT_HEADER ||
           (g->end <= PYRI_SEGMENT_FULL &&
            size <= PYRI_SEGMENT_LIMIT - PYRI_PAGE - g->end);
}

size_t
pyri_segment_count_run(const pyri_segment *g, const pyri_blob_put *puts,
                       size_t n)
{
    uint64_t end = g->end;
    size_t k = 0;
    while (k < n) {
        if (k > 0 && (puts[k].size > PYRI_SEGMENT_LIMIT ||
                      end + puts[k].size > PYRI_SEGMENT_LIMIT - PYRI_PAGE ||
                      end + puts[k].size - g->end > MAX_RUN))
            break;
        lay_out(end, &puts[k++], &end);
    }
    return k;
}

/*
 * Blocks set aside beforehand make appends a tenth cheaper than blocks found
 * one write at a time. As much again as the segment has, so that little is set
 * aside in vain; where the system cannot, nothing is lost.
 */
static void
set_aside(pyri_segment *g, const pyri_blob_put *puts, size_t n)
{
    uint64_t end = g->end;
    for (size_t i = 0; i < n; i++)
        lay_out(end, &puts[i], &end);
    end = round_up(end, PYRI_PAGE);
    if (end <= g->reserved ||
        (end - g->end < LARGE_RUN && g->end < LONG_FILE))
        return;
    uint64_t more = g->end < ASIDE_MAX ? g->end : ASIDE_MAX;
    g->reserved = end + more;
    (void)!pyri_sys_fallocate(g->fd, FALLOC_FL_KEEP_SIZE, (off_t)g->end,
                              (off_t)(g->reserved - g->end));
}

void
pyri_segment_trim(pyri_segment *g)
{
    struct stat st;
    if (g->fd >= 0 && g->reserved > g->end && pyri_sys_fstat(g->fd, &st) == 0)
        (void)!pyri_sys_ftruncate(g->fd, st.st_size);
    g->reserved = 0;
}

/* Returns an errno. */
static int
append_run(pyri_segment *g, pyri_blob_put *puts, size_t n)
{
    set_aside(g, puts, n);
    uint64_t end = g->end, next;
    uint64_t written = lay_out(end, &puts[0], &next);
    gather w;
    w.fd = g->fd;
    w.at = written;
    w.n = 0;
    for (size_t i = 0; i < n; i++) {
        int errnum;
        uint64_t at = lay_out(end, &puts[i], &next);
        if ((errnum = add_piece(&w, zeros, (size_t)(at - written))) != 0)
            return errnum;
        for (int k = 0; k < puts[i].niov; k++)
            if ((errnum = add_piece(&w, puts[i].iov[k].iov_base,
                                    puts[i].iov[k].iov_len)) != 0)
                return errnum;
        puts[i].ref.a = (uint64_t)g->where.dir << 32 | g->where.id;
        puts[i].ref.b = at;
        written = at + puts[i].size;
        end = next;
    }
    /* a page that is written in part costs the system more than a whole one */
    end = round_up(end, PYRI_PAGE);
    int errnum = add_piece(&w, zeros, (size_t)(end - written));
    if (errnum == 0)
        errnum = flush(&w);
    if (errnum == 0) {
        assert(w.at == end);
        g->end = end;
        atomic_fetch_add(&g->written, 1);
    }
    return errnum;
}

int
pyri_segment_append(pyri_site *s, pyri_segment *g, pyri_blob_put *puts,
                    size_t n)
{
    int err = PYRI_FAULT_FAILS("segment.append");
    if (err < 0)
        return err;
    int errnum = append_run(g, puts, n);
    if (!errnum)
        return 0;
    for (size_t i = 0; i < n; i++) /* the next one will go there */
        puts[i].ref = (pyri_ref){0, 0};
    return fail_at(s, g, errnum);
}

/* --- making durable ------------------------------------------------------ */

int
pyri_segment_sync_file(pyri_segment *g)
{
    if (PYRI_FAULT_FAILS("segment.poison") < 0)
        return EIO;
    if (PYRI_RETRY(pyri_sys_fdatasync(g->fd)) < 0)
        return errno;
    if (!g->entry_synced && PYRI_RETRY(pyri_sys_fsync(g->dirfd)) < 0)
        return errno;
    g->entry_synced = true;
    return 0;
}
