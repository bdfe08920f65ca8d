/*
 * cli/cmd_write.c - pyramid write: a .npy file into an array.
 *
 *   mapped file, this machine's byte order   written where it lies; beyond
 *     64 MiB in slabs that follow the chunks, for the progress bar
 *   stream, or the other byte order          slab by slab through a buffer
 *   Fortran's order and not mapped           through a temporary file
 *
 * However many slabs there are, they become one version.
 */
#include "cmd.h"

#include <stdlib.h>
#include <string.h>

static const option options[] = {
    {"at", 0, "I,I,...", "where its first cell goes; 0,0,..."},
    {"message", 'm', "TEXT", "to be kept in the history"},
    {"no-wait", 0, NULL, "do not wait for earlier versions to be published"},
    {NULL, 0, NULL, NULL},
};

typedef struct job {
    const args *a;
    target t;
    source in;
    uint64_t at[PYR_MAX_DIMS];
    pyr_write_options how;
    pyr_version made;
} job;

static int
set_place(job *w)
{
    char why[WHY_SIZE];
    extents at = {0};
    const char *text = args_value(w->a, "at");
    int ndim = w->t.info.ndim;
    if (w->in.npy.ndim == 0 && !text)
        return fail("%s: is a single cell; say where it goes with --at",
                    w->in.name);
    if (text && parse_extents(text, &at, why) < 0)
        return misuse(w->a->verb, "write: --at %s", why);
    if (text && at.n != ndim)
        return fail("%s: --at %s has %d numbers, the array has %d dimensions",
                    w->t.array_name, text, at.n, ndim);
    memcpy(w->at, at.of, sizeof w->at);
    return 0;
}

static int
check_type(const job *w)
{
    if (w->in.npy.type == w->t.info.type)
        return 0;
    return fail("%s: has cells of type %s, array %s has %s", w->in.name,
                type_name(w->in.npy.type), w->t.array_name,
                type_name(w->t.info.type));
}

/* All in one call; the cells stay where they are. */
static int
write_whole(job *w)
{
    int64_t step[PYR_MAX_DIMS];
    source_steps(&w->in, step);
    static char nothing;
    pyr_part part = {
        .offset = w->at,
        .size = w->in.npy.shape,
        .buf = w->in.map ? (void *)(uintptr_t)w->in.cells : &nothing,
        .step = w->in.npy.fortran ? step : NULL,
    };
    if (pyr_write_list(w->t.array, &part, 1, &w->how, &w->made) < 0)
        return target_fail(&w->t);
    return 0;
}

static int
write_slab(job *w, pyr_batch *batch, const slabs *s, void *buf)
{
    uint64_t to[PYR_MAX_DIMS];
    size_t bytes = (size_t)s->cells * type_size(w->in.npy.type);
    const void *cells = buf;
    int err = 0;
    for (int d = 0; d < s->ndim; d++)
        if (__builtin_add_overflow(w->at[d], s->offset[d], &to[d]))
            return fail("%s: --at is too large", w->t.array_name);
    if (buf) {
        err = source_read(&w->in, buf, bytes);
    } else {
        cells = w->in.cells + w->in.read;
        w->in.read += bytes;
    }
    if (!err && pyr_batch_write(batch, to, s->size, cells) < 0)
        err = target_fail(&w->t);
    return err;
}

/* Slab by slab; a NULL `buf` takes them from the map. */
static int
write_slabs(job *w, slabs *s, void *buf)
{
    pyr_batch *batch;
    progress bar;
    int err = 0;
    if (pyr_batch_begin(w->t.array, &batch) < 0)
        return target_fail(&w->t);
    progress_begin(&bar, w->a, w->in.npy.bytes);
    while (!err && slabs_next(s)) {
        err = write_slab(w, batch, s, buf);
        progress_add(&bar, s->cells * type_size(w->in.npy.type));
    }
    progress_end(&bar);
    if (err) {
        pyr_batch_abort(batch);
        return err;
    }
    if (pyr_batch_commit(batch, &w->how, &w->made) < 0)
        return target_fail(&w->t);
    return 0;
}

static int
write_cells(job *w)
{
    const npy *n = &w->in.npy;
    const void *cells;
    slabs s;
    if (n->fortran && !source_is_plain(&w->in)) {
        int err = source_dense(&w->in, &cells);
        if (err)
            return err;
        w->in.npy.fortran = w->in.npy.swap = false;
    }
    slabs_begin(&s, n->ndim, n->shape, type_size(n->type), w->at,
                w->t.info.chunk);
    bool plain = source_is_plain(&w->in);
    bool small = n->bytes <= SLAB_BYTES;
    if (n->cells == 0 || (plain && (small || n->fortran || !s.whole_chunks)))
        return write_whole(w);
    if (plain)
        return write_slabs(w, &s, NULL);
    void *buf = malloc((size_t)slabs_most_cells(&s) * type_size(n->type));
    int err = buf ? write_slabs(w, &s, buf) : fail("out of memory");
    free(buf);
    return err;
}

static int
print_made(const job *w)
{
    json j;
    int err;
    if (!w->a->json) {
        printf("%llu\n", (unsigned long long)w->made);
        return 0;
    }
    if ((err = json_begin(&j)))
        return err;
    json_open(&j, NULL, '{');
    json_u64(&j, "version", w->made);
    json_list(&j, "offset", w->in.npy.ndim, w->at);
    json_list(&j, "size", w->in.npy.ndim, w->in.npy.shape);
    json_shut(&j, '}');
    return json_print(&j);
}

static int
run(const args *a)
{
    job w = {.a = a, .in = {.fd = -1}};
    w.how.message = args_value(a, "message");
    w.how.flags = args_has(a, "no-wait") ? PYR_WRITE_NOWAIT : 0;
    int err = target_array(a, 0, &w.t);
    if (!err)
        err = source_open(&w.in, a->words[2]);
    if (!err)
        err = check_type(&w);
    if (!err)
        err = set_place(&w);
    if (!err)
        err = source_raise(&w.in, w.t.info.ndim);
    if (!err)
        err = write_cells(&w);
    if (!err)
        err = print_made(&w);
    source_close(&w.in);
    target_close(&w.t);
    return err;
}

const verb verb_write = {
    .name = "write",
    .usage = "STORE ARRAY [--at I,I,...] [-m TEXT] [--no-wait] FILE.npy|-",
    .about = "Write a .npy file into an array; prints the new version.",
    .more = "'-' is standard input. However large the file, it becomes one "
            "version, visible all\nat once. A file with fewer dimensions than "
            "the array gets leading axes of size 1;\na single cell needs "
            "--at. Types must be the same; booleans are taken as u8.",
    .examples = "  pyramid write demo.pyr t part.npy\n"
                "  make-cells | pyramid write demo.pyr t --at 1024,0 "
                "-m 'run 7' -\n",
    .options = options,
    .min_words = 3,
    .max_words = 3,
    .run = run,
};
