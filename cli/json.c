/*
 * cli/json.c - one JSON document, printed when it is complete.
 *
 * Strings are UTF-8; bytes that are not become U+FFFD. Numbers that JSON has
 * no form for become the strings "NaN", "Infinity" and "-Infinity".
 */
#include "cmd.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int
json_begin(json *j)
{
    *j = (json){0};
    j->out = open_memstream(&j->text, &j->size);
    return j->out ? 0 : fail("out of memory");
}

int
json_print(json *j)
{
    int bad = ferror(j->out) | fclose(j->out);
    j->out = NULL;
    if (!bad) {
        fwrite(j->text, 1, j->size, stdout);
        putchar('\n');
    }
    json_drop(j);
    return bad ? fail("out of memory") : 0;
}

void
json_drop(json *j)
{
    if (j->out)
        fclose(j->out);
    free(j->text);
    *j = (json){0};
}

/* Length of the valid UTF-8 character at p, 0 if there is none. */
static size_t
utf8_length(const unsigned char *p)
{
    size_t n = *p < 0x80   ? 1
               : *p < 0xc2 ? 0
               : *p < 0xe0 ? 2
               : *p < 0xf0 ? 3
               : *p < 0xf5 ? 4
                           : 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
        (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f))
        return 0;
    return n;
}

static void
put_string(FILE *out, const char *text)
{
    fputc('"', out);
    const unsigned char *p = (const unsigned char *)text;
    while (*p) {
        size_t n = utf8_length(p);
        if (n == 0)
            fputs("\xef\xbf\xbd", out);
        else if (*p == '"' || *p == '\\')
            fprintf(out, "\\%c", *p);
        else if (*p < 0x20 || *p == 0x7f)
            fprintf(out, "\\u%04x", *p);
        else
            fwrite(p, 1, n, out);
        p += n ? n : 1;
    }
    fputc('"', out);
}

/* A comma if one is due, and the key. */
static void
lead(json *j, const char *key)
{
    if (j->comma)
        fputc(',', j->out);
    j->comma = true;
    if (key) {
        put_string(j->out, key);
        fputc(':', j->out);
    }
}

void
json_open(json *j, const char *key, char bracket)
{
    lead(j, key);
    fputc(bracket, j->out);
    j->comma = false;
}

void
json_shut(json *j, char bracket)
{
    fputc(bracket, j->out);
    j->comma = true;
}

void
json_text(json *j, const char *key, const char *value)
{
    lead(j, key);
    put_string(j->out, value);
}

void
json_u64(json *j, const char *key, uint64_t value)
{
    lead(j, key);
    fprintf(j->out, "%" PRIu64, value);
}

void
json_i64(json *j, const char *key, int64_t value)
{
    lead(j, key);
    fprintf(j->out, "%" PRId64, value);
}

void
json_f64(json *j, const char *key, double value)
{
    json_cell(j, key, PYR_F64, &value);
}

void
json_bool(json *j, const char *key, bool value)
{
    json_raw(j, key, value ? "true" : "false");
}

void
json_raw(json *j, const char *key, const char *value)
{
    lead(j, key);
    fputs(value, j->out);
}

void
json_list(json *j, const char *key, int n, const uint64_t *values)
{
    json_open(j, key, '[');
    for (int i = 0; i < n; i++)
        json_u64(j, NULL, values[i]);
    json_shut(j, ']');
}

void
json_cell(json *j, const char *key, pyr_type type, const void *cell)
{
    char text[CELL_TEXT];
    double value = 0;
    if (type == PYR_F64)
        memcpy(&value, cell, sizeof value);
    else if (type == PYR_F32)
        value = *(const float *)cell;
    cell_text(type, cell, text);
    if (isnan(value))
        json_text(j, key, "NaN");
    else if (isinf(value))
        json_text(j, key, value < 0 ? "-Infinity" : "Infinity");
    else
        json_raw(j, key, text);
}

/* ISO 8601 in UTC, with milliseconds. */
void
json_time(json *j, const char *key, int64_t ns)
{
    char text[40];
    time_t s = (time_t)(ns / 1000000000);
    struct tm tm;
    gmtime_r(&s, &tm);
    size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + n, sizeof text - n, ".%03dZ",
             (int)(ns / 1000000 % 1000 + 1000) % 1000);
    json_text(j, key, text);
}

static void
json_part(json *j, int ndim, const pyr_part *part)
{
    json_open(j, NULL, '{');
    json_list(j, "offset", ndim, part->offset);
    json_list(j, "size", ndim, part->size);
    if (part->count)
        json_list(j, "count", ndim, part->count);
    if (part->count && part->stride)
        json_list(j, "stride", ndim, part->stride);
    json_shut(j, '}');
}

void
json_change(json *j, const pyr_change *c, const char *digest)
{
    json_open(j, NULL, '{');
    json_u64(j, "version", c->version);
    json_text(j, "kind", kind_name(c->kind));
    json_time(j, "time", c->time_ns);
    json_i64(j, "time_ns", c->time_ns);
    json_text(j, "who", c->who);
    json_text(j, "message", c->message);
    json_list(j, "shape", c->ndim, c->shape);
    json_open(j, "parts", '[');
    for (size_t i = 0; i < c->nparts; i++)
        json_part(j, c->ndim, &c->parts[i]);
    json_shut(j, ']');
    if (c->kind == PYR_KIND_COMPUTE || c->kind == PYR_KIND_CLONE)
        json_u64(j, "source", c->source);
    if (c->expression && *c->expression)
        json_text(j, "expression", c->expression);
    if (c->handlers && *c->handlers)
        json_text(j, "handlers", c->handlers);
    if (digest)
        json_text(j, "digest", digest);
    json_shut(j, '}');
}
