/*
 * cli/cmd_read.c - pyramid read: a box of a snapshot, as text or as .npy.
 */
#include "cmd.h"

#include <stdlib.h>
#include <string.h>

#define MOST_PRINTED 1000 /* cells */

static const option options[] = {
    {"version", 0, "V", "a number, latest, -1 (the one before), a tag"},
    {"box", 0, "BOX", "which cells, as NumPy slices; all"},
    {"output", 'o', "FILE", "write a .npy file; '-' is standard output"},
    {NULL, 0, NULL, NULL},
};

/* Read `size` cells from `offset` on, both counted within the box. */
static int
read_piece(const target *t, const box *b, const uint64_t *offset,
           const uint64_t *size, void *buf)
{
    uint64_t from[PYR_MAX_DIMS], block[PYR_MAX_DIMS], count[PYR_MAX_DIMS];
    uint64_t stride[PYR_MAX_DIMS];
    for (int d = 0; d < b->ndim; d++) {
        bool runs = b->step[d] > 1 && size[d] > 1;
        from[d] = b->start[d] + offset[d] * b->step[d];
        block[d] = runs ? 1 : size[d];
        count[d] = runs ? size[d] : 1;
        stride[d] = runs ? b->step[d] : size[d];
    }
    pyr_part part = {.offset = from, .size = block, .buf = buf};
    if (box_is_strided(b)) {
        part.count = count;
        part.stride = stride;
    }
    if (pyr_read_list(t->array, t->info.version, &part, 1) < 0)
        return target_fail(t);
    return 0;
}

static int
copy_slabs(const args *a, const target *t, const box *b, sink *out)
{
    slabs s;
    progress bar;
    size_t cell = type_size(t->info.type);
    bool strided = box_is_strided(b);
    slabs_begin(&s, b->ndim, b->count, cell, strided ? NULL : b->start,
                strided ? NULL : t->info.chunk);
    void *buf = malloc((size_t)slabs_most_cells(&s) * cell + 1);
    if (!buf)
        return fail("out of memory");
    int err = 0;
    progress_begin(&bar, a, box_cells(b) * cell);
    while (!err && slabs_next(&s)) {
        err = read_piece(t, b, s.offset, s.size, buf);
        if (!err)
            err = sink_write(out, buf, (size_t)s.cells * cell);
        progress_add(&bar, s.cells * cell);
    }
    progress_end(&bar);
    free(buf);
    return err;
}

static void
json_head(json *j, const target *t, const box *b)
{
    uint64_t shape[PYR_MAX_DIMS];
    int ndim = box_shape(b, shape);
    json_open(j, NULL, '{');
    json_u64(j, "version", t->info.version);
    json_text(j, "type", type_name(t->info.type));
    json_list(j, "shape", ndim, shape);
}

static int
read_to_file(const args *a, const target *t, const box *b, const char *name)
{
    char head[NPY_MAX_OWN];
    uint64_t shape[PYR_MAX_DIMS];
    int ndim = box_shape(b, shape);
    size_t n = npy_format(t->info.type, ndim, shape, head);
    sink out;
    json j;
    int err = sink_open(&out, name);
    if (!err)
        err = sink_write(&out, head, n);
    if (!err)
        err = copy_slabs(a, t, b, &out);
    if (!err)
        err = sink_finish(&out);
    sink_close(&out);
    if (err || !a->json || (err = json_begin(&j)))
        return err;
    json_head(&j, t, b);
    json_text(&j, "file", name);
    json_shut(&j, '}');
    return json_print(&j);
}

/* Cells as nested lists, as Python would write them. */
static const char *
json_nested(json *j, const char *key, pyr_type type, const char *cells,
            int ndim, const uint64_t *shape)
{
    if (ndim == 0) {
        json_cell(j, key, type, cells);
        return cells + type_size(type);
    }
    json_open(j, key, '[');
    for (uint64_t i = 0; i < shape[0]; i++)
        cells = json_nested(j, NULL, type, cells, ndim - 1, shape + 1);
    json_shut(j, ']');
    return cells;
}

static int
read_to_screen(const args *a, const target *t, const box *b)
{
    uint64_t cells[MOST_PRINTED], shape[PYR_MAX_DIMS];
    static const uint64_t origin[PYR_MAX_DIMS];
    int ndim = box_shape(b, shape);
    json j;
    if (box_cells(b) > MOST_PRINTED)
        return fail("%s: %llu cells are too many to print; write them to a "
                    "file with -o FILE.npy",
                    t->array_name, (unsigned long long)box_cells(b));
    int err = 0;
    if (box_cells(b) > 0)
        err = read_piece(t, b, origin, b->count, cells);
    if (!err && !a->json)
        print_cells(cells, t->info.type, ndim, shape);
    if (err || !a->json || (err = json_begin(&j)))
        return err;
    json_head(&j, t, b);
    json_nested(&j, "cells", t->info.type, (const char *)cells, ndim, shape);
    json_shut(&j, '}');
    return json_print(&j);
}

static int
run(const args *a)
{
    target t;
    box b;
    const char *output = args_value(a, "output");
    if (output && strcmp(output, "-") == 0 && a->json)
        return misuse(a->verb, "read: --json and '-o -' both want standard "
                               "output");
    int err = target_array(a, PYR_OPEN_READONLY, &t);
    if (!err)
        err = target_snapshot(a, &t);
    if (!err)
        err = target_box(a, &t, &b);
    if (!err)
        err = output ? read_to_file(a, &t, &b, output)
                     : read_to_screen(a, &t, &b);
    target_close(&t);
    return err;
}

const verb verb_read = {
    .name = "read",
    .usage = "STORE ARRAY [--version V] [--box BOX] [-o FILE.npy|-]",
    .about = "Read cells of a snapshot, as text or into a .npy file.",
    .more =
        "A box is written as NumPy slices: 0:100,5,::2 is rows 0 to 99 of "
        "index 5 and every\nsecond cell of the third axis. An index drops its "
        "axis; negative numbers count from\nthe end; '...' stands for whole "
        "axes, as do those left out. Without -o, up to 1000\ncells are "
        "printed, a row on a line.",
    .examples = "  pyramid read demo.pyr t --box 0:4,0:4\n"
                "  pyramid read demo.pyr t --version -1 --box ...,::10 "
                "-o before.npy\n",
    .options = options,
    .min_words = 2,
    .max_words = 2,
    .run = run,
};
