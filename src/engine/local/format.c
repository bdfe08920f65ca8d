/*
 * engine/local/format.c - the marker that makes a directory a store.
 *
 * STORE/pyramid.store is text, one fact a line, and in this order:
 *
 *   pyramid store
 *   format 1
 *   uuid 3e0c6f5e-...            random; also in each data directory outside
 *   durability commit            or os
 *   lease_ms 10000
 *   data data                    one line per data directory: absolute, or
 *   data /mnt/disk2/climate      relative to the store
 *   end
 *
 * The number of a data directory is stored in references to chunks, so lines
 * may change when a directory moves, but not their order.
 *
 * A store is made in four steps, each durable before the next: STORE and in it
 * pyramid.making appear, the parts are made, the marker is renamed into place,
 * pyramid.making goes. So a directory with the marker is whole; one with
 * pyramid.making can be finished by the next who wants to create it; any other
 * is not ours and is left alone. pyramid.making holds the uuid, by which the
 * next knows what it marked outside. Those who create at once take turns by
 * flock() on the directory.
 */
#include "engine/local/local.h"

#include "base/io.h"
#include "base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MARKER_ROOM = 65536, DEFAULT_LEASE_MS = 10000 };

#define MAKING "pyramid.making"

void
pyri_format_fini(pyri_format *f)
{
    for (size_t i = 0; i < f->ndata; i++)
        free(f->data[i]);
    *f = (pyri_format){0};
}

/* --- reading ------------------------------------------------------------- */

static int
garbled(const char *path, const char *line)
{
    return pyri_fail(PYR_EFORMAT, "%s/%s: damaged, or not of a Pyramid store: "
                     "cannot make sense of \"%.40s\"", path, PYRI_MARKER, line);
}

/* The text after "<word> ", or NULL. */
static const char *
after(const char *line, const char *word)
{
    size_t n = strlen(word);
    return strncmp(line, word, n) == 0 && line[n] == ' ' ? line + n + 1 : NULL;
}

static bool
number_of(const char *text, unsigned *out)
{
    char *end;
    errno = 0;
    unsigned long v = strtoul(text, &end, 10);
    *out = (unsigned)v;
    return *text >= '0' && *text <= '9' && *end == 0 && errno == 0 &&
           v <= UINT_MAX;
}

/* Returns 0, or PYR_EFORMAT without a text. */
static int
read_fact(pyri_format *f, const char *line)
{
    const char *v;
    if ((v = after(line, "format")))
        return number_of(v, &f->number) ? 0 : PYR_EFORMAT;
    if ((v = after(line, "lease_ms")))
        return number_of(v, &f->lease_ms) && f->lease_ms > 0 ? 0 : PYR_EFORMAT;
    if ((v = after(line, "uuid"))) {
        bool fits = strlen(v) == sizeof f->uuid - 1;
        if (fits)
            memcpy(f->uuid, v, sizeof f->uuid);
        return fits ? 0 : PYR_EFORMAT;
    }
    if ((v = after(line, "durability"))) {
        f->durability = strcmp(v, "os") == 0 ? PYR_DURABILITY_OS
                                             : PYR_DURABILITY_COMMIT;
        return strcmp(v, "os") == 0 || strcmp(v, "commit") == 0 ? 0
                                                                 : PYR_EFORMAT;
    }
    if (!(v = after(line, "data")) || !*v || f->ndata == PYRI_MAX_DIRS)
        return PYR_EFORMAT;
    if (!(f->data[f->ndata] = pyri_sys_strdup(v)))
        return pyri_fail_nomem("the path of a data directory");
    f->ndata++;
    return 0;
}

static int
parse(const char *path, char *text, pyri_format *f)
{
    char *save = NULL, *line = strtok_r(text, "\n", &save);
    if (!line || strcmp(line, "pyramid store") != 0)
        return garbled(path, line ? line : "");
    while ((line = strtok_r(NULL, "\n", &save)) && strcmp(line, "end") != 0) {
        int err = read_fact(f, line);
        if (err < 0)
            return err == PYR_EFORMAT ? garbled(path, line) : err;
        if (f->number > PYRI_STORE_FORMAT)
            return pyri_fail(PYR_EFORMAT, "%s: a store of format %u; this "
                             "library understands formats up to %d: use a "
                             "newer one", path, f->number, PYRI_STORE_FORMAT);
    }
    if (!line)
        return garbled(path, "end of file");
    if (!f->number || !f->uuid[0] || !f->lease_ms || !f->ndata)
        return garbled(path, "end, with facts missing");
    return 0;
}

int
pyri_format_read(const char *path, pyri_format *out, bool *found)
{
    char name[PATH_MAX];
    *out = (pyri_format){0};
    *found = false;
    int err = pyri_path_join(name, sizeof name, path, PYRI_MARKER);
    if (err < 0)
        return err;
    char *text = pyri_sys_malloc(MARKER_ROOM);
    if (!text)
        return pyri_fail_nomem("the marker of a store");
    err = pyri_file_read(name, text, MARKER_ROOM);
    if (err == 0) {
        *found = true;
        err = parse(path, text, out);
    } else if (err == PYR_ENOTFOUND) {
        err = 0;
    }
    free(text);
    if (err < 0)
        pyri_format_fini(out);
    return err;
}

int
pyri_format_missing(const char *path)
{
    struct stat st;
    char making[PATH_MAX];
    if (pyri_sys_stat(path, &st) < 0)
        return pyri_fail_errno(errno, "no store at %s", path);
    if (!S_ISDIR(st.st_mode))
        return pyri_fail(PYR_EFORMAT, "%s is not a Pyramid store: a store is "
                         "a directory, this is a file", path);
    if (pyri_path_join(making, sizeof making, path, MAKING) == 0 &&
        pyri_sys_access(making, F_OK) == 0)
        return pyri_fail(PYR_EFORMAT, "%s: the making of this store was not "
                         "finished; create it again to finish it", path);
    return pyri_fail(PYR_EFORMAT, "%s is not a Pyramid store: it has no file "
                     "%s", path, PYRI_MARKER);
}

/* --- making -------------------------------------------------------------- */

static int
make_uuid(char out[PYRI_UUID_TEXT])
{
    uint8_t b[16];
    int errnum = pyri_io_random(b, sizeof b);
    if (errnum)
        return pyri_fail_errno(errnum, "random numbers");
    snprintf(out, PYRI_UUID_TEXT, "%02x%02x%02x%02x-%02x%02x-%02x%02x-"
             "%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3], b[4],
             b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
             b[15]);
    return 0;
}

static int
make_directory(const char *path)
{
    if (pyri_sys_mkdir(path, 0777) < 0 && errno != EEXIST)
        return pyri_fail_errno(errno, "cannot make the directory %s", path);
    struct stat st;
    if (pyri_sys_stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return pyri_fail(PYR_EFORMAT, "%s is not a directory", path);
    return 0;
}

/* A data directory outside the store says whose it is, so that a wrong or
 * missing mount is noticed. One that this store left unfinished is taken. */
static int
mark_directory(const char *path, const char *uuid)
{
    char name[PATH_MAX], text[256], have[256];
    int err = pyri_path_join(name, sizeof name, path, PYRI_DATA_MARKER);
    if (err < 0)
        return err;
    snprintf(text, sizeof text, "pyramid data\nstore %s\n", uuid);
    if (pyri_sys_access(name, F_OK) == 0 &&
        (pyri_file_read(name, have, sizeof have) < 0 ||
         strcmp(have, text) != 0))
        return pyri_fail(PYR_EEXIST, "%s holds the data of a store already (it "
                         "has a file %s); if that store is gone, empty it",
                         path, PYRI_DATA_MARKER);
    return pyri_file_write(name, text, true);
}

static int
make_outer(pyri_format *f, const char *given)
{
    char real[PATH_MAX];
    if (strchr(given, '\n') || !*given)
        return pyri_fail(PYR_EINVAL, "\"%s\" cannot be a data directory",
                         given);
    int err = make_directory(given);
    if (err < 0)
        return err;
    if (!pyri_sys_realpath(given, real))
        return pyri_fail_errno(errno, "%s", given);
    if ((err = pyri_path_sync_parent(real)) < 0)
        return err;
    for (size_t i = 0; i < f->ndata; i++)
        if (strcmp(f->data[i], real) == 0)
            return pyri_fail(PYR_EEXIST, "%s is named twice", real);
    if ((err = mark_directory(real, f->uuid)) < 0)
        return err;
    if (!(f->data[f->ndata] = pyri_sys_strdup(real)))
        return pyri_fail_nomem("the path of a data directory");
    f->ndata++;
    return 0;
}

/* Take the marks of a store off that could not be made. */
static void
unmark_directories(const pyri_format *f)
{
    char name[PATH_MAX];
    for (size_t i = 0; i < f->ndata; i++)
        if (f->data[i][0] == '/' &&
            pyri_path_join(name, sizeof name, f->data[i],
                           PYRI_DATA_MARKER) == 0)
            pyri_sys_unlink(name);
}

static int
make_data(const char *path, pyri_format *f, const char *const *data)
{
    char inner[PATH_MAX];
    int err;
    if (!data || !data[0]) {
        if ((err = pyri_path_join(inner, sizeof inner, path, "data")) < 0 ||
            (err = make_directory(inner)) < 0)
            return err;
        if (!(f->data[0] = pyri_sys_strdup("data")))
            return pyri_fail_nomem("the path of a data directory");
        f->ndata = 1;
        return 0;
    }
    for (size_t i = 0; data[i]; i++) {
        if (i == PYRI_MAX_DIRS)
            return pyri_fail(PYR_EINVAL, "more than %d data directories",
                             PYRI_MAX_DIRS);
        if ((err = make_outer(f, data[i])) < 0)
            return err;
    }
    return 0;
}

static int
write_marker(const char *path, const pyri_format *f)
{
    char name[PATH_MAX];
    pyri_buf text = {0};
    char line[256];
    int err = pyri_path_join(name, sizeof name, path, PYRI_MARKER);
    if (err < 0)
        return err;
    int n = snprintf(line, sizeof line, "pyramid store\nformat %u\nuuid %s\n"
                     "durability %s\nlease_ms %u\n", f->number, f->uuid,
                     f->durability == PYR_DURABILITY_OS ? "os" : "commit",
                     f->lease_ms);
    pyri_buf_add(&text, line, (size_t)n);
    for (size_t i = 0; i < f->ndata; i++) {
        pyri_buf_add(&text, "data ", 5);
        pyri_buf_add(&text, f->data[i], strlen(f->data[i]));
        pyri_buf_add(&text, "\n", 1);
    }
    pyri_buf_add(&text, "end\n", 5); /* with its zero */
    if ((err = pyri_buf_check(&text, "the marker of a store")) == 0)
        err = pyri_file_write(name, (const char *)text.data, true);
    pyri_buf_fini(&text);
    return err;
}

/* Make the parts, then the marker. STORE exists, pyramid.making is in it, and
 * the directory is locked. */
static int
make_parts(const char *path, const pyr_store_options *options,
           const char *uuid)
{
    pyri_format f = {.number = PYRI_STORE_FORMAT,
                     .durability = options ? options->durability : 0,
                     .lease_ms = DEFAULT_LEASE_MS};
    char name[PATH_MAX];
    if (options && options->lease_ms)
        f.lease_ms = options->lease_ms;
    memcpy(f.uuid, uuid, sizeof f.uuid);
    int err = pyri_path_join(name, sizeof name, path, "meta");
    if (err == 0 && (err = make_directory(name)) == 0 &&
        (err = pyri_meta_make(path)) == 0 &&
        (err = make_data(path, &f, options ? options->data : NULL)) == 0 &&
        (err = pyri_path_sync(path)) == 0)
        err = write_marker(path, &f);
    if (err < 0)
        unmark_directories(&f);
    pyri_format_fini(&f);
    return err;
}

/* Leave an empty directory behind, as far as that can be. */
static void
unmake_parts(const char *path)
{
    static const char *const parts[] = {"meta", "data"};
    char name[PATH_MAX];
    pyri_meta_unmake(path);
    for (size_t i = 0; i < 2; i++)
        if (pyri_path_join(name, sizeof name, path, parts[i]) == 0)
            pyri_sys_rmdir(name);
}

/* Is there anything in the directory that no unfinished store put there? */
static int
is_foreign(const char *path, bool *foreign)
{
    DIR *d = pyri_sys_opendir(path);
    if (!d)
        return pyri_fail_errno(errno, "%s", path);
    bool making = false, others = false;
    for (struct dirent *e; (e = pyri_sys_readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            strcmp(e->d_name, "lost+found") == 0)
            continue;
        if (strncmp(e->d_name, MAKING, strlen(MAKING)) == 0)
            making = true;
        else
            others = true;
    }
    closedir(d);
    *foreign = others && !making;
    return 0;
}

/* Say that a store is being made here; *uuid is the one that an unfinished one
 * was to have. */
static int
begin_making(const char *path, char making[PATH_MAX],
             char uuid[PYRI_UUID_TEXT])
{
    static const char head[] = "a store is being made\nuuid ";
    char text[sizeof head + PYRI_UUID_TEXT];
    int err = pyri_path_join(making, PATH_MAX, path, MAKING);
    if (err < 0)
        return err;
    size_t n = sizeof head - 1;
    if (pyri_file_read(making, text, sizeof text) == 0 &&
        strncmp(text, head, n) == 0 &&
        strlen(text) == n + PYRI_UUID_TEXT /* with its newline */) {
        memcpy(uuid, text + n, PYRI_UUID_TEXT - 1);
        uuid[PYRI_UUID_TEXT - 1] = 0;
        return 0;
    }
    if ((err = make_uuid(uuid)) < 0)
        return err;
    snprintf(text, sizeof text, "%s%s\n", head, uuid);
    return pyri_file_write(making, text, true);
}

/* With the directory locked: make the store, if nobody did before us. */
static int
make_locked(const char *path, const pyr_store_options *options)
{
    char making[PATH_MAX], uuid[PYRI_UUID_TEXT];
    pyri_format f;
    bool found, foreign = false;
    int err = pyri_format_read(path, &f, &found);
    pyri_format_fini(&f);
    if (err < 0 || found)
        return err;
    if ((err = is_foreign(path, &foreign)) < 0)
        return err;
    if (foreign)
        return pyri_fail(PYR_EFORMAT, "%s is not a Pyramid store, and not "
                         "empty: a store is made in a new or an empty "
                         "directory", path);
    if ((err = begin_making(path, making, uuid)) < 0)
        return err;
    if ((err = make_parts(path, options, uuid)) < 0)
        unmake_parts(path);
    pyri_sys_unlink(making);
    return err;
}

int
pyri_format_create(const char *path, const pyr_store_options *options)
{
    struct stat st;
    if (pyri_sys_stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
        return pyri_format_missing(path);
    int err = make_directory(path);
    if (err < 0 || (err = pyri_path_sync_parent(path)) < 0)
        return err;
    int fd;
    if ((err = pyri_path_lock(path, &fd)) < 0)
        return err;
    err = make_locked(path, options);
    pyri_sys_close(fd);
    return err;
}
