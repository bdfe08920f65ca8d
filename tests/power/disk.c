/*
 * power/disk.c - what a disk may hold after the power failed.
 */
#include "power/disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_NAMES = 64, SECTOR = 512 };

typedef struct entry {
    char name[120];
    int node;
} entry;

typedef struct node {
    bool dir;
    uint8_t *data;
    size_t size;
    int n;
    entry *names; /* MAX_NAMES of them, of a directory */
} node;

struct disk {
    node *nodes; /* the first is the root */
    int n;
};

static void *
must(void *p)
{
    if (!p)
        abort();
    return p;
}

static int
add_node(disk *d, bool dir)
{
    d->nodes = must(realloc(d->nodes, ((size_t)d->n + 1) * sizeof *d->nodes));
    d->nodes[d->n] = (node){.dir = dir};
    if (dir)
        d->nodes[d->n].names = must(calloc(MAX_NAMES, sizeof(entry)));
    return d->n++;
}

disk *
disk_new(void)
{
    disk *d = must(calloc(1, sizeof *d));
    add_node(d, true);
    return d;
}

void
disk_free(disk *d)
{
    for (int i = 0; d && i < d->n; i++) {
        free(d->nodes[i].data);
        free(d->nodes[i].names);
    }
    if (d)
        free(d->nodes);
    free(d);
}

static disk *
copy(const disk *from)
{
    disk *d = must(calloc(1, sizeof *d));
    for (int i = 0; i < from->n; i++) {
        const node *f = &from->nodes[i];
        int made = add_node(d, f->dir);
        node *t = &d->nodes[made];
        t->size = f->size;
        t->n = f->n;
        if (f->size)
            t->data = memcpy(must(malloc(f->size)), f->data, f->size);
        if (f->dir)
            memcpy(t->names, f->names, MAX_NAMES * sizeof(entry));
    }
    return d;
}

/* --- names --------------------------------------------------------------- */

static int
find_name(const node *dir, const char *name)
{
    for (int i = 0; i < dir->n; i++)
        if (strcmp(dir->names[i].name, name) == 0)
            return i;
    return -1;
}

static void
set_name(node *dir, const char *name, int to)
{
    int i = find_name(dir, name);
    if (i < 0) {
        if (dir->n == MAX_NAMES)
            abort();
        i = dir->n++;
        snprintf(dir->names[i].name, sizeof dir->names[i].name, "%s", name);
    }
    dir->names[i].node = to;
}

static void
remove_name(node *dir, const char *name, int is)
{
    int i = find_name(dir, name);
    if (i >= 0 && dir->names[i].node == is)
        dir->names[i] = dir->names[--dir->n];
}

/* The node of a path, or -1. */
static int
look_up(const disk *d, const char *path)
{
    int at = 0;
    char name[120];
    while (at >= 0 && *path) {
        size_t n = strcspn(path, "/");
        snprintf(name, sizeof name, "%.*s", (int)n, path);
        int i = d->nodes[at].dir ? find_name(&d->nodes[at], name) : -1;
        at = i < 0 ? -1 : d->nodes[at].names[i].node;
        path += n + (path[n] == '/');
    }
    return at;
}

const uint8_t *
disk_file(const disk *d, const char *path, size_t *size)
{
    static const uint8_t nothing;
    int at = look_up(d, path);
    *size = at < 0 ? 0 : d->nodes[at].size;
    return at < 0 ? NULL : *size ? d->nodes[at].data : &nothing;
}

/* --- the real file system ------------------------------------------------ */

static void
load_file(node *f, const char *path)
{
    FILE *in = must(fopen(path, "r"));
    struct stat st;
    if (fstat(fileno(in), &st) != 0)
        abort();
    f->size = (size_t)st.st_size;
    f->data = must(malloc(f->size + 1));
    if (fread(f->data, 1, f->size, in) != f->size)
        abort();
    fclose(in);
}

static void
load(disk *d, int at, const char *path)
{
    DIR *dir = must(opendir(path));
    for (struct dirent *e; (e = readdir(dir));) {
        char below[PATH_MAX];
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(below, sizeof below, "%s/%s", path, e->d_name);
        if (stat(below, &st) != 0)
            abort();
        int made = add_node(d, S_ISDIR(st.st_mode));
        set_name(&d->nodes[at], e->d_name, made);
        if (S_ISDIR(st.st_mode))
            load(d, made, below);
        else
            load_file(&d->nodes[made], below);
    }
    closedir(dir);
}

disk *
disk_load(const char *path)
{
    disk *d = disk_new();
    load(d, 0, path);
    return d;
}

/* Where the zeros at the end begin, give or take a page. */
static size_t
end_of_data(const node *f)
{
    static const uint8_t zeros[4096];
    size_t end = f->size;
    while (end >= sizeof zeros &&
           memcmp(f->data + end - sizeof zeros, zeros, sizeof zeros) == 0)
        end -= sizeof zeros;
    return end;
}

/* Zeros at the end become a hole: LMDB's lock file is large and empty. */
static bool
save_file(const node *f, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return false;
    size_t end = end_of_data(f);
    bool ok = write(fd, f->data, end) == (ssize_t)end &&
              ftruncate(fd, (off_t)f->size) == 0;
    close(fd);
    return ok;
}

static bool
save(const disk *d, int at, const char *path)
{
    const node *dir = &d->nodes[at];
    if (mkdir(path, 0777) != 0)
        return false;
    for (int i = 0; i < dir->n; i++) {
        char below[PATH_MAX];
        int to = dir->names[i].node;
        snprintf(below, sizeof below, "%s/%s", path, dir->names[i].name);
        if (d->nodes[to].dir ? !save(d, to, below)
                             : !save_file(&d->nodes[to], below))
            return false;
    }
    return true;
}

bool
disk_save(const disk *d, const char *path)
{
    return save(d, 0, path);
}

/* --- replay -------------------------------------------------------------- */

static void
resize(node *f, size_t size)
{
    if (size > f->size) {
        f->data = must(realloc(f->data, size));
        memset(f->data + f->size, 0, size - f->size);
    }
    f->size = size;
}

static void
put(node *f, uint64_t at, const uint8_t *data, size_t size)
{
    if (at + size > f->size)
        resize(f, (size_t)at + size);
    memcpy(f->data + at, data, size);
}

/* Some sectors of a write and not others, counted as on the disk; perhaps only
 * the size that the file has got by it. */
static void
put_torn(node *f, const trace_event *e, rng *r)
{
    uint64_t pos = e->at, end = e->at + e->size;
    if (end > f->size && rng_once_in(r, 2))
        resize(f, (size_t)end);
    bool prefix = rng_once_in(r, 3);
    uint64_t stop = prefix ? rng_from(r, e->at, end) / SECTOR * SECTOR : end;
    while (pos < end) {
        uint64_t next = (pos / SECTOR + 1) * SECTOR;
        next = next < end ? next : end;
        if (prefix ? next <= stop : rng_once_in(r, 2))
            put(f, pos, trace_data(e) + (pos - e->at), (size_t)(next - pos));
        pos = next;
    }
}

typedef struct replay {
    disk *d;
    int nodes[DISK_MAX_IDS];     /* by the trace's ids */
    size_t synced[DISK_MAX_IDS]; /* the last event that did, counted from 1 */
    bool fleeting[DISK_MAX_IDS]; /* nobody wants it after a restart */
} replay;

static bool
is_name_change(const trace_event *e)
{
    return e->kind == TRACE_CREATE || e->kind == TRACE_MKDIR ||
           e->kind == TRACE_RENAME || e->kind == TRACE_UNLINK;
}

static bool
is_change(const trace_event *e)
{
    return is_name_change(e) || e->kind == TRACE_WRITE ||
           e->kind == TRACE_RESIZE;
}

/* Event number i, from 1, is it there for sure? The last one was under way
 * when the power failed. */
static bool
is_durable(const replay *p, const trace_event *e, size_t i, bool last)
{
    if (e->kind == TRACE_RENAME)
        return p->synced[e->dir] > i && p->synced[e->dir_to] > i;
    return (e->durable && !last) ||
           p->synced[is_name_change(e) ? e->dir : e->id] > i;
}

static bool
is_fleeting(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return strcmp(name, "live") == 0 || strcmp(name, "lock.mdb") == 0 ||
           strstr(path, "live/");
}

/* Nodes are made whether or not their names are. */
static void
meet(replay *p, const trace_event *e)
{
    if (e->id >= DISK_MAX_IDS)
        abort();
    if (e->kind == TRACE_KNOWN) {
        p->nodes[e->id] = look_up(p->d, e->name);
        if (p->nodes[e->id] < 0)
            abort();
        p->fleeting[e->id] = is_fleeting(e->name);
    }
    if (e->kind == TRACE_CREATE || e->kind == TRACE_MKDIR) {
        p->nodes[e->id] = add_node(p->d, e->kind == TRACE_MKDIR);
        p->fleeting[e->id] = p->fleeting[e->dir] || is_fleeting(e->name);
    }
}

static void
apply(replay *p, const trace_event *e)
{
    node *nodes = p->d->nodes;
    int own = p->nodes[e->id];
    switch (e->kind) {
    case TRACE_CREATE:
    case TRACE_MKDIR: set_name(&nodes[p->nodes[e->dir]], e->name, own); break;
    case TRACE_UNLINK:
        remove_name(&nodes[p->nodes[e->dir]], e->name, own);
        break;
    case TRACE_RENAME:
        remove_name(&nodes[p->nodes[e->dir]], e->name, own);
        set_name(&nodes[p->nodes[e->dir_to]], e->to, own);
        break;
    case TRACE_WRITE:
        put(&nodes[own], e->at, trace_data(e), (size_t)e->size);
        break;
    case TRACE_RESIZE: resize(&nodes[own], (size_t)e->at); break;
    default: break;
    }
}

/* The number k of the loose events, from 0; SIZE_MAX: a fleeting one. */
static void
apply_loose(replay *p, const trace_event *e, size_t k, disk_policy policy,
            rng *r)
{
    bool torn = false, there = true;
    switch (policy.fate) {
    case DISK_NONE: there = false; break;
    case DISK_ALL: break;
    case DISK_ALL_BUT: there = k != policy.number; break;
    case DISK_ONLY: there = k == policy.number; break;
    case DISK_TORN_ONE: torn = k == policy.number; break;
    case DISK_RANDOM:
        there = rng_once_in(r, 2);
        torn = rng_once_in(r, 3);
        break;
    }
    if (torn && e->kind == TRACE_WRITE)
        put_torn(&p->d->nodes[p->nodes[e->id]], e, r);
    else if (there)
        apply(p, e);
}

disk *
disk_cut(const disk *before, const trace *t, size_t count, disk_policy policy,
         size_t *loose)
{
    replay *p = must(calloc(1, sizeof *p));
    rng r = rng_of(policy.number + 5);
    const trace_event *e = NULL;
    p->d = copy(before);
    *loose = 0;
    for (size_t i = 1; i <= count && (e = trace_next(t, e)); i++)
        if (e->kind == TRACE_SYNC)
            p->synced[e->id] = i;
    e = NULL;
    for (size_t i = 1; i <= count && (e = trace_next(t, e)); i++) {
        meet(p, e);
        if (!is_change(e))
            continue;
        if (is_durable(p, e, i, i == count))
            apply(p, e);
        else
            apply_loose(p, e, p->fleeting[e->id] ? SIZE_MAX : (*loose)++,
                        policy, &r);
    }
    disk *d = p->d;
    free(p);
    return d;
}
