/*
 * cli/source.c - .npy files to be read: mapped if they are regular files,
 * else streamed.
 */
#include "cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Read until n bytes or the end; returns how many, or -1. */
static ssize_t
read_full(int fd, void *buf, size_t n)
{
    size_t got = 0;
    while (got < n) {
        ssize_t r = read(fd, (char *)buf + got, n - got);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -1;
        if (r == 0)
            break;
        got += (size_t)r;
    }
    return (ssize_t)got;
}

static int
fail_system(const source *s)
{
    return fail("%s: %s", s->name, strerror(errno));
}

static int
read_header(source *s)
{
    uint8_t prefix[12];
    char why[WHY_SIZE];
    size_t start, length;
    ssize_t n = read_full(s->fd, prefix, 10);
    if (n == 10 && prefix[6] > 1) {
        ssize_t more = read_full(s->fd, prefix + 10, 2);
        n = more < 0 ? -1 : n + more;
    }
    if (n < 0)
        return fail_system(s);
    if (npy_prefix(prefix, (size_t)n, &start, &length, why) < 0)
        return fail("%s: %s", s->name, why);
    char *text = malloc(length + 1);
    if (!text)
        return fail("%s: out of memory", s->name);
    int err = 0;
    n = read_full(s->fd, text, length);
    if (n < 0)
        err = fail_system(s);
    else if ((size_t)n < length)
        err = fail("%s: .npy header is cut short", s->name);
    else if (npy_header(text, length, &s->npy, why) < 0)
        err = fail("%s: %s", s->name, why);
    free(text);
    return err;
}

static int
cut_short(const source *s, uint64_t have)
{
    return fail("%s: file is cut short: %llu bytes of cells, %llu expected",
                s->name, (unsigned long long)have,
                (unsigned long long)s->npy.bytes);
}

/* A regular file is mapped; anything else stays a stream. */
static int
map_file(source *s)
{
    struct stat st;
    if (fstat(s->fd, &st) < 0)
        return fail_system(s);
    off_t here = S_ISREG(st.st_mode) ? lseek(s->fd, 0, SEEK_CUR) : -1;
    if (here < 0)
        return 0;
    uint64_t have = st.st_size > here ? (uint64_t)(st.st_size - here) : 0;
    if (have < s->npy.bytes)
        return cut_short(s, have);
    if (s->npy.bytes == 0)
        return 0;
    s->map_size = (size_t)here + (size_t)s->npy.bytes;
    void *map = mmap(NULL, s->map_size, PROT_READ, MAP_PRIVATE, s->fd, 0);
    if (map == MAP_FAILED) {
        s->map_size = 0;
        return 0; /* then it is read */
    }
    madvise(map, s->map_size, MADV_SEQUENTIAL);
    s->map = map;
    s->cells = s->map + here;
    return 0;
}

int
source_open(source *s, const char *name)
{
    bool is_stdin = strcmp(name, "-") == 0;
    *s = (source){.name = is_stdin ? "standard input" : name, .fd = -1};
    s->fd = is_stdin ? dup(STDIN_FILENO) : open(name, O_RDONLY | O_CLOEXEC);
    if (s->fd < 0)
        return fail_system(s);
    int err = read_header(s);
    return err ? err : map_file(s);
}

void
source_close(source *s)
{
    if (s->map)
        munmap(s->map, s->map_size);
    if (s->fd >= 0)
        close(s->fd);
    *s = (source){.fd = -1};
}

static void
swap_cells(void *buf, size_t n, size_t size)
{
    uint8_t *p = buf;
    for (size_t i = 0; i + size <= n; i += size)
        for (size_t j = 0; j < size / 2; j++) {
            uint8_t byte = p[i + j];
            p[i + j] = p[i + size - 1 - j];
            p[i + size - 1 - j] = byte;
        }
}

int
source_read(source *s, void *buf, size_t n)
{
    if (s->map) {
        memcpy(buf, s->cells + s->read, n);
    } else {
        ssize_t got = read_full(s->fd, buf, n);
        if (got < 0)
            return fail_system(s);
        if ((size_t)got < n)
            return cut_short(s, s->read + (uint64_t)got);
    }
    s->read += n;
    if (s->npy.swap)
        swap_cells(buf, n, type_size(s->npy.type));
    return 0;
}

bool
source_is_plain(const source *s)
{
    return s->map && !s->npy.swap &&
           (uintptr_t)s->cells % type_size(s->npy.type) == 0;
}

int
source_raise(source *s, int ndim)
{
    npy *n = &s->npy;
    int more = ndim - n->ndim;
    if (more < 0)
        return fail("%s: has %d dimensions, the array has %d", s->name, n->ndim,
                    ndim);
    memmove(n->shape + more, n->shape, (size_t)n->ndim * sizeof *n->shape);
    for (int d = 0; d < more; d++)
        n->shape[d] = 1;
    n->ndim = ndim;
    return 0;
}

void
source_steps(const source *s, int64_t *step)
{
    const npy *n = &s->npy;
    int64_t bytes = (int64_t)type_size(n->type);
    for (int i = 0; i < n->ndim; i++) {
        int d = n->fortran ? i : n->ndim - 1 - i;
        step[d] = bytes;
        bytes *= (int64_t)n->shape[d];
    }
}

/* Map a temporary file that has no name, to hold n bytes. */
static uint8_t *
map_temporary(size_t n)
{
    char path[4096];
    const char *dir = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/pyramid.XXXXXX",
             dir && *dir ? dir : "/tmp");
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) {
        fail("%s: %s", path, strerror(errno));
        return NULL;
    }
    unlink(path);
    void *map = MAP_FAILED;
    int err = posix_fallocate(fd, 0, (off_t)n);
    if (err == 0)
        map = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        fail("%s: %s", path, strerror(err ? err : errno));
    close(fd);
    return map == MAP_FAILED ? NULL : map;
}

/* Lay a run of cells, which begins at cell `at` of Fortran's order, where
 * row-major order has them. */
static void
scatter(const npy *n, uint64_t at, const uint8_t *run, size_t cells,
        uint8_t *out)
{
    size_t size = type_size(n->type);
    uint64_t index[PYR_MAX_DIMS], step[PYR_MAX_DIMS], to = 0, bytes = size;
    for (int d = n->ndim - 1; d >= 0; d--) {
        step[d] = bytes;
        bytes *= n->shape[d];
    }
    for (int d = 0; d < n->ndim; d++) {
        index[d] = at % n->shape[d];
        at /= n->shape[d];
        to += index[d] * step[d];
    }
    for (size_t i = 0; i < cells; i++) {
        memcpy(out + to, run + i * size, size);
        for (int d = 0; d < n->ndim; d++) {
            to += step[d];
            if (++index[d] < n->shape[d])
                break;
            to -= step[d] * n->shape[d];
            index[d] = 0;
        }
    }
}

/* Read all cells into `out`, which is as large. */
static int
read_dense(source *s, uint8_t *out)
{
    size_t size = type_size(s->npy.type), most = (size_t)1 << 20;
    if (!s->npy.fortran)
        return source_read(s, out, (size_t)s->npy.bytes);
    uint8_t *run = malloc(most);
    if (!run)
        return fail("out of memory");
    int err = 0;
    while (!err && s->read < s->npy.bytes) {
        uint64_t at = s->read, left = s->npy.bytes - at;
        size_t n = left < most ? (size_t)left : most;
        err = source_read(s, run, n);
        if (!err)
            scatter(&s->npy, at / size, run, n / size, out);
    }
    free(run);
    return err;
}

int
source_dense(source *s, const void **cells)
{
    *cells = s->cells ? (const void *)s->cells : "";
    if (s->npy.bytes == 0 || (source_is_plain(s) && !s->npy.fortran))
        return 0;
    uint8_t *all = map_temporary((size_t)s->npy.bytes);
    int err = all ? read_dense(s, all) : FAILED;
    if (all && err)
        munmap(all, (size_t)s->npy.bytes);
    if (err)
        return err;
    if (s->map)
        munmap(s->map, s->map_size);
    s->map = all;
    s->map_size = (size_t)s->npy.bytes;
    s->cells = all;
    *cells = all;
    return 0;
}
