/*
 * fuzz/marker_fuzz.c - the marker file of a store.
 *
 * Input: the file.
 */
#include "fuzz/fuzz.h"

#include "engine/local/local.h"
#include "support/tmp_store.h"

static void
put_file(const char *dir, const void *bytes, size_t size)
{
    static int fd = -1;
    char path[PATH_MAX];
    if (fd < 0) {
        snprintf(path, sizeof path, "%.3000s/%s", dir, PYRI_MARKER);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    }
    MUST(fd >= 0 && pwrite(fd, bytes, size, 0) == (ssize_t)size);
    MUST(ftruncate(fd, (off_t)size) == 0);
}

static bool
same(const pyri_format *a, const pyri_format *b)
{
    bool same = a->number == b->number && strcmp(a->uuid, b->uuid) == 0 &&
                a->durability == b->durability && a->lease_ms == b->lease_ms &&
                a->ndata == b->ndata;
    for (size_t i = 0; same && i < a->ndata; i++)
        same = strcmp(a->data[i], b->data[i]) == 0;
    return same;
}

/* The marker that says the same, as docs/format.md has it. */
static void
write_again(const char *dir, const pyri_format *f)
{
    pyri_buf text = {0};
    char line[200];
    snprintf(line, sizeof line,
             "pyramid store\nformat %u\nuuid %s\ndurability %s\n"
             "lease_ms %u\n",
             f->number, f->uuid,
             f->durability == PYR_DURABILITY_OS ? "os" : "commit", f->lease_ms);
    pyri_buf_add(&text, line, strlen(line));
    for (size_t i = 0; i < f->ndata; i++) {
        pyri_buf_add(&text, "data ", 5);
        pyri_buf_add(&text, f->data[i], strlen(f->data[i]));
        pyri_buf_u8(&text, '\n');
    }
    pyri_buf_add(&text, "end\n", 4);
    put_file(dir, text.data, text.size);
    pyri_buf_fini(&text);
}

static void
check(const char *dir, const pyri_format *f)
{
    pyri_format again;
    bool found;
    MUST(f->number >= 1 && f->number <= PYRI_STORE_FORMAT);
    MUST(strlen(f->uuid) == PYRI_UUID_TEXT - 1 && f->lease_ms > 0);
    MUST(f->ndata >= 1 && f->ndata <= PYRI_MAX_DIRS);
    for (size_t i = 0; i < f->ndata; i++)
        MUST(f->data[i][0] != 0);
    write_again(dir, f);
    MUST(pyri_format_read(dir, &again, &found) == 0 && found);
    MUST(same(f, &again));
    pyri_format_fini(&again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *dir = tmp_dir();
    pyri_format f;
    bool found;
    put_file(dir, data, size);
    int err = pyri_format_read(dir, &f, &found);
    if (err < 0) {
        must_refuse(err);
    } else {
        MUST(found);
        check(dir, &f);
        pyri_format_fini(&f);
    }
    return 0;
}
