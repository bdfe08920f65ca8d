/*
 * cli/print.c - cells, boxes, times and sizes for people.
 */
#include "cmd.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SHOWN_BOXES 3 /* of one version in the log */

/* The shortest text that reads back as the same number. */
static void
shortest(double value, bool narrow, char *out)
{
    if (value != value) {
        strcpy(out, "nan");
        return;
    }
    for (int digits = narrow ? 6 : 15; digits <= 17; digits++) {
        snprintf(out, CELL_TEXT, "%.*g", digits, value);
        if (narrow ? strtof(out, NULL) == (float)value
                   : strtod(out, NULL) == value)
            return;
    }
}

void
f64_text(double value, char *out)
{
    shortest(value, false, out);
}

void
cell_text(pyr_type type, const void *cell, char *out)
{
    union {
        int8_t i8;
        uint8_t u8;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        float f32;
        double f64;
    } c;
    memcpy(&c, cell, type_size(type));
    switch (type) {
    case PYR_I8: snprintf(out, CELL_TEXT, "%d", c.i8); break;
    case PYR_U8: snprintf(out, CELL_TEXT, "%u", c.u8); break;
    case PYR_I16: snprintf(out, CELL_TEXT, "%d", c.i16); break;
    case PYR_U16: snprintf(out, CELL_TEXT, "%u", c.u16); break;
    case PYR_I32: snprintf(out, CELL_TEXT, "%" PRId32, c.i32); break;
    case PYR_U32: snprintf(out, CELL_TEXT, "%" PRIu32, c.u32); break;
    case PYR_I64: snprintf(out, CELL_TEXT, "%" PRId64, c.i64); break;
    case PYR_U64: snprintf(out, CELL_TEXT, "%" PRIu64, c.u64); break;
    case PYR_F32: shortest(c.f32, true, out); break;
    case PYR_F64: shortest(c.f64, false, out); break;
    }
}

void
print_safe(FILE *out, const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        bool c1 = *p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0;
        if (*p < 0x20 || *p == 0x7f || c1)
            fprintf(out, "\\x%02x", *p);
        else
            fputc(*p, out);
        if (c1)
            fprintf(out, "\\x%02x", *++p);
    }
}

static int
widest(const char *cells, pyr_type type, uint64_t n)
{
    char text[CELL_TEXT];
    size_t most = 0;
    for (uint64_t i = 0; i < n; i++) {
        cell_text(type, cells + i * type_size(type), text);
        most = strlen(text) > most ? strlen(text) : most;
    }
    return (int)most;
}

/* Rows along the last axis; an empty line where an earlier axis steps on. */
void
print_cells(const void *cells, pyr_type type, int ndim, const uint64_t *shape)
{
    uint64_t n = 1, row = ndim > 0 ? shape[ndim - 1] : 1;
    uint64_t plane = ndim > 1 ? row * shape[ndim - 2] : 0;
    for (int d = 0; d < ndim; d++)
        n *= shape[d];
    int width = widest(cells, type, n);
    char text[CELL_TEXT];
    for (uint64_t i = 0; i < n; i++) {
        if (i > 0 && plane > 0 && i % plane == 0)
            putchar('\n');
        cell_text(type, (const char *)cells + i * type_size(type), text);
        printf("%*s%c", width, text, (i + 1) % row == 0 ? '\n' : ' ');
    }
}

void
print_list(const char *between, int n, const uint64_t *values)
{
    for (int i = 0; i < n; i++)
        printf("%s%" PRIu64, i ? between : "", values[i]);
}

void
print_time(int64_t ns)
{
    char text[40];
    time_t s = (time_t)(ns / 1000000000);
    struct tm tm;
    localtime_r(&s, &tm);
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
    fputs(text, stdout);
}

void
print_box(int ndim, const uint64_t *offset, const uint64_t *size)
{
    for (int d = 0; d < ndim; d++)
        printf("%s%" PRIu64 ":%" PRIu64, d ? "," : "", offset[d],
               offset[d] + size[d]);
}

/* A strided run of single cells is a slice with a step; other runs are said
 * as start, count and stride. */
static void
print_part(int ndim, const pyr_part *p)
{
    if (!p->count) {
        print_box(ndim, p->offset, p->size);
        return;
    }
    for (int d = 0; d < ndim; d++) {
        uint64_t n = p->count[d], size = p->size[d], at = p->offset[d];
        uint64_t stride = p->stride ? p->stride[d] : size;
        fputs(d ? "," : "", stdout);
        if (n <= 1 || stride == size)
            printf("%" PRIu64 ":%" PRIu64, at, at + n * size);
        else if (size == 1)
            printf("%" PRIu64 ":%" PRIu64 ":%" PRIu64, at,
                   at + (n - 1) * stride + 1, stride);
        else
            printf("%" PRIu64 "+%" PRIu64 "x%" PRIu64 "/%" PRIu64, at, n, size,
                   stride);
    }
}

/* The axis along which part b goes on where a ended, or -1. */
static int
continues(int ndim, const pyr_part *a, const pyr_part *b,
          const uint64_t *a_size)
{
    int axis = -1;
    if (a->count || b->count)
        return -1;
    for (int d = 0; d < ndim; d++) {
        if (a->offset[d] == b->offset[d] && a_size[d] == b->size[d])
            continue;
        if (axis >= 0 || a->offset[d] + a_size[d] != b->offset[d])
            return -1;
        axis = d;
    }
    return axis;
}

/* Boxes that were written piece after piece are shown as the one they make. */
static void
print_parts(const pyr_change *c)
{
    size_t shown = 0, i = 0;
    while (i < c->nparts && shown < SHOWN_BOXES) {
        uint64_t size[PYR_MAX_DIMS];
        pyr_part part = c->parts[i++];
        memcpy(size, part.size, (size_t)c->ndim * sizeof *size);
        int axis;
        while (i < c->nparts &&
               (axis = continues(c->ndim, &part, &c->parts[i], size)) >= 0)
            size[axis] += c->parts[i++].size[axis];
        part.size = size;
        fputs(shown++ ? " " : "  ", stdout);
        print_part(c->ndim, &part);
    }
    if (i < c->nparts)
        printf(" and %zu more", c->nparts - i);
}

/* number, time, who, kind, what, message. */
void
print_change(const pyr_change *c)
{
    printf("%6" PRIu64 "  ", c->version);
    print_time(c->time_ns);
    fputs("  ", stdout);
    print_safe(stdout, *c->who ? c->who : "-");
    printf("  %-7s", kind_name(c->kind));
    print_parts(c);
    if (c->kind == PYR_KIND_CREATE || c->kind == PYR_KIND_RESIZE) {
        fputs("  shape ", stdout);
        print_list(",", c->ndim, c->shape);
    }
    if (c->kind == PYR_KIND_COMPUTE || c->kind == PYR_KIND_CLONE)
        printf("  from version %" PRIu64, c->source);
    if (c->expression && *c->expression) {
        fputs("  by ", stdout);
        print_safe(stdout, c->expression);
    }
    if (c->handlers && *c->handlers) {
        fputs("  through ", stdout);
        print_safe(stdout, c->handlers);
    }
    if (*c->message) {
        fputs("  ", stdout);
        print_safe(stdout, c->message);
    }
    putchar('\n');
}

const char *
bytes_text(uint64_t bytes, char *out, size_t n)
{
    static const char *const units[] = {"B",   "KiB", "MiB", "GiB",
                                        "TiB", "PiB", "EiB"};
    int unit = 0;
    double value = (double)bytes;
    while (value >= 1024 && unit < 6) {
        value /= 1024;
        unit++;
    }
    snprintf(out, n, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return out;
}
