/*
 * cli/cmd_diff.c - pyramid diff: where two snapshots differ, and by how much.
 */
#include "cmd.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const option options[] = {
    {"cells", 0, NULL,
     "read both sides: how many cells differ, and the "
     "largest difference"},
    {NULL, 0, NULL, NULL},
};

typedef struct comparison {
    const target *t;
    pyr_info side[2];
    pyr_version version[2];
    bool cells;
    json *j;
    uint64_t boxes, covered, differing;
    long double largest; /* exact for 64-bit integers */
    int err;
} comparison;

/* Cell i of a side, as a number wide enough for any type. */
static long double
cell_at(pyr_type type, const void *cells, uint64_t i)
{
    switch (type) {
    case PYR_I8: return ((const int8_t *)cells)[i];
    case PYR_U8: return ((const uint8_t *)cells)[i];
    case PYR_I16: return ((const int16_t *)cells)[i];
    case PYR_U16: return ((const uint16_t *)cells)[i];
    case PYR_I32: return ((const int32_t *)cells)[i];
    case PYR_U32: return ((const uint32_t *)cells)[i];
    case PYR_I64: return ((const int64_t *)cells)[i];
    case PYR_U64: return ((const uint64_t *)cells)[i];
    case PYR_F32: return ((const float *)cells)[i];
    case PYR_F64: return ((const double *)cells)[i];
    }
    return 0;
}

static void
compare(comparison *c, const void *a, const void *b, uint64_t n)
{
    pyr_type type = c->side[0].type;
    for (uint64_t i = 0; i < n; i++) {
        long double x = cell_at(type, a, i), y = cell_at(type, b, i);
        if (x == y || (x != x && y != y))
            continue;
        c->differing++;
        long double by = x > y ? x - y : y - x;
        if (by > c->largest)
            c->largest = by;
    }
}

static int
compare_slab(comparison *c, const uint64_t *offset, const slabs *s, void *a,
             void *b)
{
    uint64_t at[PYR_MAX_DIMS];
    for (int d = 0; d < s->ndim; d++)
        at[d] = offset[d] + s->offset[d];
    if (pyr_read(c->t->array, c->version[0], at, s->size, a) < 0 ||
        pyr_read(c->t->array, c->version[1], at, s->size, b) < 0)
        return target_fail(c->t);
    compare(c, a, b, s->cells);
    return 0;
}

/* The cells of a box that both snapshots have; those that only one has
 * differ. */
static int
compare_box(comparison *c, int ndim, const uint64_t *offset,
            const uint64_t *size)
{
    uint64_t common[PYR_MAX_DIMS], all = 1, both = 1;
    size_t cell = type_size(c->side[0].type);
    slabs s;
    for (int d = 0; d < ndim; d++) {
        uint64_t end = offset[d] + size[d];
        for (int i = 0; i < 2; i++)
            if (c->side[i].shape[d] < end)
                end = c->side[i].shape[d];
        common[d] = end > offset[d] ? end - offset[d] : 0;
        all *= size[d];
        both *= common[d];
    }
    c->differing += all - both;
    slabs_begin(&s, ndim, common, cell, NULL, NULL);
    size_t most = (size_t)slabs_most_cells(&s) * cell + 1;
    void *a = malloc(most), *b = malloc(most);
    int err = a && b ? 0 : fail("out of memory");
    while (!err && slabs_next(&s))
        err = compare_slab(c, offset, &s, a, b);
    free(a);
    free(b);
    return err;
}

static int
show_box(void *ctx, int ndim, const uint64_t *offset, const uint64_t *size)
{
    comparison *c = ctx;
    uint64_t cells = 1;
    for (int d = 0; d < ndim; d++)
        cells *= size[d];
    c->boxes++;
    c->covered += cells;
    if (c->j) {
        json_open(c->j, NULL, '{');
        json_list(c->j, "offset", ndim, offset);
        json_list(c->j, "size", ndim, size);
        json_shut(c->j, '}');
    } else {
        print_box(ndim, offset, size);
        putchar('\n');
    }
    if (c->cells)
        c->err = compare_box(c, ndim, offset, size);
    return c->err;
}

static void
largest_text(const comparison *c, char *out)
{
    if (type_is_float(c->side[0].type))
        f64_text((double)c->largest, out);
    else
        snprintf(out, CELL_TEXT, "%.0Lf", c->largest);
}

static int
walk(comparison *c)
{
    int err = pyr_diff(c->t->array, c->version[0], c->version[1], show_box, c);
    if (c->err)
        return c->err;
    return err < 0 ? target_fail(c->t) : 0;
}

static int
show_text(comparison *c)
{
    char largest[CELL_TEXT];
    int err = walk(c);
    if (err)
        return err;
    largest_text(c, largest);
    if (memcmp(c->side[0].shape, c->side[1].shape,
               sizeof(uint64_t) * (size_t)c->side[0].ndim) != 0) {
        printf("shape ");
        print_list(",", c->side[0].ndim, c->side[0].shape);
        printf(" -> ");
        print_list(",", c->side[1].ndim, c->side[1].shape);
        putchar('\n');
    }
    if (c->cells)
        printf("%" PRIu64 " of %" PRIu64 " cells differ, by at most %s\n",
               c->differing, c->covered, largest);
    return 0;
}

static int
show_json(comparison *c)
{
    char largest[CELL_TEXT];
    json j;
    int err = json_begin(&j);
    if (err)
        return err;
    c->j = &j;
    json_open(&j, NULL, '{');
    json_u64(&j, "from", c->version[0]);
    json_u64(&j, "to", c->version[1]);
    json_list(&j, "from_shape", c->side[0].ndim, c->side[0].shape);
    json_list(&j, "to_shape", c->side[1].ndim, c->side[1].shape);
    json_open(&j, "boxes", '[');
    err = walk(c);
    json_shut(&j, ']');
    json_u64(&j, "cells_in_boxes", c->covered);
    largest_text(c, largest);
    if (c->cells) {
        json_u64(&j, "differing", c->differing);
        if (isinf((double)c->largest))
            json_f64(&j, "largest", (double)c->largest);
        else
            json_raw(&j, "largest", largest);
    }
    json_shut(&j, '}');
    if (!err)
        return json_print(&j);
    json_drop(&j);
    return err;
}

static int
run(const args *a)
{
    target t;
    comparison c = {.t = &t, .cells = args_has(a, "cells")};
    int err = target_array(a, PYR_OPEN_READONLY, &t);
    for (int i = 0; i < 2 && !err; i++) {
        err = target_version(a, &t, a->words[2 + i], &c.version[i]);
        if (!err && pyr_array_info(t.array, c.version[i], &c.side[i]) < 0)
            err = target_fail(&t);
    }
    if (!err)
        err = a->json ? show_json(&c) : show_text(&c);
    target_close(&t);
    return err;
}

const verb verb_diff = {
    .name = "diff",
    .usage = "STORE ARRAY V1 V2 [--cells]",
    .about = "Show the boxes in which two snapshots differ.",
    .more = "Found by walking only the parts of the index that differ: cells "
            "outside the boxes\nare the same, cells inside may differ. "
            "--cells reads them and counts.",
    .examples = "  pyramid diff demo.pyr t 3 latest\n"
                "  pyramid diff demo.pyr t -1 latest --cells\n",
    .options = options,
    .min_words = 4,
    .max_words = 4,
    .run = run,
};
