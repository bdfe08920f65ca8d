/*
 * cls/tests/memory.h - an object in memory, for the methods to work on. What
 * REQUIRE and CHECK do may be said before this is included.
 */
#ifndef CLS_TESTS_MEMORY_H
#define CLS_TESTS_MEMORY_H

#include "cls/object.h"
#ifndef REQUIRE
#include "support/check.h"
#endif

#include <stdlib.h>
#include <string.h>

typedef struct cell {
    uint8_t *key, *value;
    size_t key_size, value_size;
} cell;

/* Keys in order; a change is kept aside until the call is over, as in an OSD. */
typedef struct memory {
    bool exists;
    cell *cells;
    size_t n;
    int64_t now;
    uint8_t *bytes; /* beside the keys */
    size_t size;
    void *room; /* of this call, or the one before it */
} memory;

static int
memory_compare(const cell *c, pyri_bytes key)
{
    size_t n = c->key_size < key.size ? c->key_size : key.size;
    int order = n ? memcmp(c->key, key.data, n) : 0;
    return order ? order : (c->key_size > key.size) - (c->key_size < key.size);
}

/* The first that is not below a key. */
static size_t
memory_at(const memory *m, pyri_bytes key)
{
    size_t i = 0;
    while (i < m->n && memory_compare(&m->cells[i], key) < 0)
        i++;
    return i;
}

static int
memory_exists(void *ctx)
{
    return ((memory *)ctx)->exists ? 0 : PYRI_CLS_NO_OBJECT;
}

static int
memory_create(void *ctx)
{
    ((memory *)ctx)->exists = true;
    return 0;
}

static int
memory_remove(void *ctx)
{
    memory *m = ctx;
    for (size_t i = 0; i < m->n; i++) {
        free(m->cells[i].key);
        free(m->cells[i].value);
    }
    free(m->cells);
    free(m->bytes);
    free(m->room);
    m->room = NULL;
    m->cells = NULL;
    m->bytes = NULL;
    m->n = m->size = 0;
    m->exists = false;
    return 0;
}

static int
memory_get(void *ctx, pyri_bytes key, pyri_buf *out)
{
    memory *m = ctx;
    size_t i = memory_at(m, key);
    if (i == m->n || memory_compare(&m->cells[i], key) != 0)
        return PYRI_CLS_NONE;
    pyri_buf_add(out, m->cells[i].value, m->cells[i].value_size);
    return 0;
}

static int
memory_del(void *ctx, pyri_bytes key)
{
    memory *m = ctx;
    size_t i = memory_at(m, key);
    if (i == m->n || memory_compare(&m->cells[i], key) != 0)
        return 0;
    free(m->cells[i].key);
    free(m->cells[i].value);
    m->n--;
    memmove(m->cells + i, m->cells + i + 1, (m->n - i) * sizeof *m->cells);
    return 0;
}

static uint8_t *
memory_copy(pyri_bytes from)
{
    uint8_t *to = malloc(from.size + 1);
    REQUIRE(to);
    if (from.size)
        memcpy(to, from.data, from.size);
    return to;
}

static int
memory_set(void *ctx, const pyri_bytes *keys, const pyri_bytes *values,
           size_t n)
{
    memory *m = ctx;
    for (size_t k = 0; k < n; k++) {
        memory_del(m, keys[k]);
        size_t i = memory_at(m, keys[k]);
        m->cells = realloc(m->cells, (m->n + 1) * sizeof *m->cells);
        REQUIRE(m->cells);
        memmove(m->cells + i + 1, m->cells + i,
                (m->n - i) * sizeof *m->cells);
        m->cells[i] = (cell){memory_copy(keys[k]), memory_copy(values[k]),
                             keys[k].size, values[k].size};
        m->n++;
    }
    return 0;
}

static int
memory_list(void *ctx, pyri_bytes after, pyri_bytes prefix, size_t most,
            pyri_entry_fn *each, void *each_ctx, bool *more)
{
    memory *m = ctx;
    size_t given = 0;
    *more = false;
    for (size_t i = 0; i < m->n; i++) {
        const cell *c = &m->cells[i];
        if (memory_compare(c, after) <= 0 || c->key_size < prefix.size ||
            (prefix.size && memcmp(c->key, prefix.data, prefix.size) != 0))
            continue;
        if (given++ == most) {
            *more = true;
            return 0;
        }
        int err = each(each_ctx, (pyri_bytes){c->key, c->key_size},
                       (pyri_bytes){c->value, c->value_size});
        if (err != 0)
            return err;
    }
    return 0;
}

static int64_t
memory_now(void *ctx)
{
    return ((memory *)ctx)->now;
}

static int
memory_read(void *ctx, uint64_t at, size_t size, void *to)
{
    memory *m = ctx;
    if (at > m->size || size > m->size - at)
        return PYRI_CLS_NONE;
    memcpy(to, m->bytes + at, size);
    return 0;
}

static void *
memory_room(void *ctx, size_t size)
{
    memory *m = ctx;
    free(m->room);
    m->room = malloc(size);
    return m->room;
}

static int
memory_write(void *ctx, uint64_t at, const struct iovec *iov, int n)
{
    memory *m = ctx;
    size_t end = (size_t)at;
    for (int i = 0; i < n; i++)
        end += iov[i].iov_len;
    REQUIRE(end <= 256u << 20);
    if (end > m->size) {
        m->bytes = realloc(m->bytes, end);
        REQUIRE(m->bytes);
        memset(m->bytes + m->size, 0, end - m->size);
        m->size = end;
    }
    for (int i = 0; i < n; at += iov[i].iov_len, i++)
        memcpy(m->bytes + at, iov[i].iov_base, iov[i].iov_len);
    m->exists = true;
    return 0;
}

static int
memory_zero(void *ctx, uint64_t at, uint64_t size)
{
    memory *m = ctx;
    for (uint64_t i = at; i < at + size && i < m->size; i++)
        m->bytes[i] = 0;
    return 0;
}

static int
memory_size(void *ctx, uint64_t *out)
{
    memory *m = ctx;
    *out = m->size;
    return m->exists ? 0 : PYRI_CLS_NO_OBJECT;
}

static const pyri_object_ops memory_ops = {
    .exists = memory_exists, .create = memory_create, .remove = memory_remove,
    .get = memory_get,       .set = memory_set,       .del = memory_del,
    .list = memory_list,     .now_ns = memory_now,
    .read = memory_read,     .write = memory_write,
    .zero = memory_zero,     .size = memory_size,
    .room = memory_room,
};

/* --- calls --------------------------------------------------------------- */

typedef struct request {
    pyri_buf in, out;
    pyri_cursor answer;
} request;

static request
ask(void)
{
    request q = {.in = {0}};
    pyri_buf_u8(&q.in, PYRI_WIRE);
    return q;
}

static inline void
ask_text(request *q, const char *text)
{
    pyri_buf_str(&q->in, text);
}

static inline void
ask_id(request *q, uint8_t id)
{
    for (int i = 0; i < PYRI_CLS_ID; i++)
        pyri_buf_u8(&q->in, id);
}

static const pyri_method *
method(const char *name)
{
    const pyri_method *m = pyri_methods;
    while (m->name && strcmp(m->name, name) != 0)
        m++;
    REQUIRE(m->name);
    return m;
}

static int
call(memory *m, const char *name, request *q)
{
    const pyri_method *what = method(name);
    int err = pyri_method_run(what, &memory_ops, m,
                              (pyri_bytes){q->in.data, q->in.size}, &q->out);
    bool answered = err == 0 && q->out.size;
    q->answer = pyri_cursor_of(answered ? (const void *)q->out.data : "",
                               answered ? q->out.size : 0);
    if (err == 0 && what->writes)
        CHECK(q->out.size <= 64);
    return err;
}

static void
done(request *q)
{
    pyri_buf_fini(&q->in);
    pyri_buf_fini(&q->out);
}

#endif
