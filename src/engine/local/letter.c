/*
 * engine/local/letter.c - completions as bytes, from one process to another,
 * and what became of them, back.
 *
 *   letter    sum (8), size of all (4), number (4), owner (8), requests (4),
 *             nodes and blobs of all of them (4 each), then each request:
 *             array, version, family, folds (8 each), dimensions, nodes, blobs,
 *             size of the record (4 each), shape (8 each), record;
 *             of each node: sizes of key and value (4 each), key, value;
 *             of each blob: its reference and size (8 each), and, if it is
 *             small, how many bytes (4), and these
 *   answer    sum (8), size of all (4), number (4), owner (8), requests plus
 *             65536 (4), then of each: code (4), latest (8), latest before
 *             (8), size of the text (4), text
 *
 * Sums cover all that follows them. The other process may die or be late at
 * any moment, and this one use the place again: so bytes are copied first and
 * believed only if the copy has its sum, and the owner and number that are
 * looked for; sizes are checked all the same.
 */
#include "engine/local/mailbox.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/sys.h"

#include <string.h>

enum {
    SUM = 8,
    ANSWER_HEAD = 28,
    LETTER_HEAD = 36,
    MIN_REQUEST = 48,
    MIN_NODE = 8,
    MIN_BLOB = 24,
    IS_ANSWER = 1 << 16 /* in the number of requests */
};

/* --- writing ------------------------------------------------------------- */

typedef struct pen {
    uint8_t *start, *at, *end;
    bool failed;
} pen;

static void
put(pen *p, const void *data, size_t size)
{
    if (p->failed || size > (size_t)(p->end - p->at)) {
        p->failed = true;
        return;
    }
    if (size)
        memcpy(p->at, data, size);
    p->at += size;
}

static void
put32(pen *p, uint64_t v)
{
    uint8_t bytes[4];
    p->failed = p->failed || v > UINT32_MAX;
    pyri_store32(bytes, (uint32_t)v);
    put(p, bytes, sizeof bytes);
}

static void
put64(pen *p, uint64_t v)
{
    uint8_t bytes[8];
    pyri_store64(bytes, v);
    put(p, bytes, sizeof bytes);
}

static pen
begin(uint8_t *to, size_t room, pyri_postmark mark, size_t requests)
{
    pen p = {to, to, to + room, false};
    put64(&p, 0); /* the sum and the size, when they are known */
    put32(&p, 0);
    put32(&p, mark.number);
    put64(&p, mark.owner);
    put32(&p, requests);
    return p;
}

/* Returns the size of all, 0 if there was no room. */
static size_t
finish(pen *p)
{
    if (p->failed)
        return 0;
    size_t size = (size_t)(p->at - p->start);
    pyri_store32(p->start + SUM, (uint32_t)size);
    pyri_store64(p->start, pyri_hash64(p->start + SUM, size - SUM));
    return size;
}

static void
put_blob(pyri_site *s, pen *p, const pyri_blob *b)
{
    put64(p, b->ref.a);
    put64(p, b->ref.b);
    put64(p, b->size);
    if (!(b->ref.a & PYRI_SMALL_BIT))
        return;
    pyri_bytes bytes = pyri_small_waiting(s, b->ref);
    p->failed = p->failed || !bytes.data;
    put32(p, bytes.size);
    put(p, bytes.data, bytes.size);
}

static void
put_request(pyri_site *s, pen *p, const pyri_request *r)
{
    const pyri_complete *c = r->c;
    put64(p, c->array);
    put64(p, c->version);
    put64(p, c->family);
    put64(p, c->folds);
    put32(p, (uint64_t)r->ndim);
    put32(p, c->nnodes);
    put32(p, c->nblobs);
    put32(p, c->record.size);
    for (int d = 0; d < r->ndim; d++)
        put64(p, c->shape[d]);
    put(p, c->record.data, c->record.size);
    for (size_t i = 0; i < c->nnodes && !p->failed; i++) {
        put32(p, c->nodes[i].key.size);
        put32(p, c->nodes[i].value.size);
        put(p, c->nodes[i].key.data, c->nodes[i].key.size);
        put(p, c->nodes[i].value.data, c->nodes[i].value.size);
    }
    for (size_t i = 0; i < c->nblobs && !p->failed; i++)
        put_blob(s, p, &c->blobs[i]);
}

size_t
pyri_letter_write(pyri_site *s, const pyri_request *requests,
                  pyri_postmark mark, uint8_t *to, size_t room)
{
    size_t n = 0, nodes = 0, blobs = 0;
    for (const pyri_request *r = requests; r; r = r->next) {
        n++;
        nodes += r->c->nnodes;
        blobs += r->c->nblobs;
    }
    if (n > PYRI_LETTER_REQUESTS)
        return 0;
    pen p = begin(to, room, mark, n);
    put32(&p, nodes);
    put32(&p, blobs);
    for (const pyri_request *r = requests; r && !p.failed; r = r->next)
        put_request(s, &p, r);
    return finish(&p);
}

/* --- reading ------------------------------------------------------------- */

static int
not_it(void)
{
    return pyri_fail(PYR_ECORRUPT, "what lies in live/mailbox is damaged");
}

/* The size that bytes at `from` say they have; 0 if they cannot. */
static size_t
size_at(const uint8_t *from, size_t least, size_t room)
{
    size_t size = pyri_load32(from + SUM);
    return size >= least && size <= room ? size : 0;
}

/* Of a copy: has it its sum, its mark? A cursor at what follows these. */
static bool
is_whole(const uint8_t *bytes, size_t size, pyri_postmark mark,
         pyri_cursor *rest)
{
    *rest = pyri_cursor_of(bytes, size);
    uint64_t sum = pyri_cursor_u64(rest);
    return pyri_cursor_u32(rest) == size &&
           pyri_cursor_u32(rest) == mark.number &&
           pyri_cursor_u64(rest) == mark.owner && !rest->failed &&
           sum == pyri_hash64(bytes + SUM, size - SUM);
}

/* All that the requests of a letter point to, in one piece of memory. */
typedef struct tables {
    pyri_request *requests;
    pyri_complete *completes;
    uint64_t (*shapes)[PYR_MAX_DIMS];
    pyri_node_put *nodes;
    pyri_blob *blobs;
    pyri_bytes *small;
    size_t nnodes, nblobs; /* left */
} tables;

static pyri_bytes
take_bytes(pyri_cursor *c, size_t size)
{
    return (pyri_bytes){pyri_cursor_take(c, size), size};
}

static void
read_node(pyri_cursor *c, pyri_node_put *out)
{
    size_t key = pyri_cursor_u32(c), value = pyri_cursor_u32(c);
    out->key = take_bytes(c, key);
    out->value = take_bytes(c, value);
}

static void
read_blob(pyri_cursor *c, pyri_blob *out, pyri_bytes *small)
{
    out->ref.a = pyri_cursor_u64(c);
    out->ref.b = pyri_cursor_u64(c);
    out->size = pyri_cursor_u64(c);
    *small = (pyri_bytes){0};
    if (out->ref.a & PYRI_SMALL_BIT)
        *small = take_bytes(c, pyri_cursor_u32(c));
}

static bool
read_request(pyri_cursor *c, tables *t, size_t i)
{
    pyri_complete *to = &t->completes[i];
    *to = (pyri_complete){.array = pyri_cursor_u64(c)};
    to->version = pyri_cursor_u64(c);
    to->family = pyri_cursor_u64(c);
    to->folds = pyri_cursor_u64(c);
    uint32_t ndim = pyri_cursor_u32(c);
    to->nnodes = pyri_cursor_u32(c);
    to->nblobs = pyri_cursor_u32(c);
    size_t record = pyri_cursor_u32(c);
    if (c->failed || ndim < 1 || ndim > PYR_MAX_DIMS ||
        to->nnodes > t->nnodes || to->nblobs > t->nblobs)
        return false;
    to->nodes = t->nodes;
    to->blobs = t->blobs;
    to->shape = t->shapes[i];
    for (uint32_t d = 0; d < ndim; d++)
        t->shapes[i][d] = pyri_cursor_u64(c);
    to->record = take_bytes(c, record);
    t->requests[i] = (pyri_request){.c = to, .ndim = (int)ndim,
                                    .small = t->small};
    for (size_t k = 0; k < to->nnodes; k++)
        read_node(c, t->nodes++);
    for (size_t k = 0; k < to->nblobs; k++)
        read_blob(c, t->blobs++, t->small++);
    t->nnodes -= to->nnodes;
    t->nblobs -= to->nblobs;
    return !c->failed;
}

static bool
read_requests(pyri_cursor *c, tables *t, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!read_request(c, t, i))
            return false;
        if (i > 0)
            t->requests[i - 1].next = &t->requests[i];
    }
    return c->at == c->end && t->nnodes == 0 && t->nblobs == 0;
}

/* Bytes of the letter and its tables; what is asked for is bounded by the
 * size of the letter. */
static pyri_letter *
new_letter(size_t size, size_t n, tables *t)
{
    size_t bytes = (size + 15) & ~(size_t)15;
    size_t each = sizeof *t->requests + sizeof *t->completes +
                  sizeof *t->shapes;
    pyri_letter *l = pyri_sys_malloc(
        sizeof *l + 16 + bytes + n * each + t->nnodes * sizeof *t->nodes +
        t->nblobs * (sizeof *t->blobs + sizeof *t->small));
    if (!l)
        return NULL;
    uintptr_t at = ((uintptr_t)l->bytes + bytes + 15) & ~(uintptr_t)15;
    t->requests = (void *)at;
    t->completes = (void *)(t->requests + n);
    t->shapes = (void *)(t->completes + n);
    t->nodes = (void *)(t->shapes + n);
    t->blobs = (void *)(t->nodes + t->nnodes);
    t->small = (void *)(t->blobs + t->nblobs);
    *l = (pyri_letter){.requests = t->requests, .n = n};
    return l;
}

int
pyri_letter_read(const uint8_t *from, size_t room, pyri_postmark mark,
                 pyri_letter **out)
{
    size_t size = size_at(from, LETTER_HEAD, room);
    tables t = {0};
    pyri_cursor c;
    *out = NULL;
    if (size == 0)
        return not_it();
    uint32_t n = pyri_load32(from + ANSWER_HEAD - 4);
    t.nnodes = pyri_load32(from + ANSWER_HEAD);
    t.nblobs = pyri_load32(from + ANSWER_HEAD + 4);
    if (n < 1 || n > PYRI_LETTER_REQUESTS ||
        LETTER_HEAD + n * (size_t)MIN_REQUEST + t.nnodes * MIN_NODE +
                t.nblobs * MIN_BLOB > size)
        return not_it();
    size_t nnodes = t.nnodes, nblobs = t.nblobs;
    pyri_letter *l = new_letter(size, n, &t);
    if (!l)
        return pyri_fail_nomem("a letter");
    memcpy(l->bytes, from, size);
    l->mark = mark;
    if (!is_whole(l->bytes, size, mark, &c) || pyri_cursor_u32(&c) != n ||
        pyri_cursor_u32(&c) != nnodes || pyri_cursor_u32(&c) != nblobs ||
        !read_requests(&c, &t, n)) {
        free(l);
        return not_it();
    }
    *out = l;
    return 0;
}

/* --- answers ------------------------------------------------------------- */

void
pyri_answer_write(const pyri_letter *l, uint8_t *to)
{
    pen p = begin(to, PYRI_ANSWER_SIZE, l->mark, l->n | IS_ANSWER);
    for (size_t i = 0; i < l->n; i++) {
        const pyri_request *r = &l->requests[i];
        size_t text = r->err < 0 ? strlen(r->text) : 0;
        put32(&p, (uint32_t)r->err);
        put64(&p, r->c->latest);
        put64(&p, r->before);
        put32(&p, text);
        put(&p, r->text, text);
    }
    finish(&p);
}

static bool
read_answer(pyri_cursor *c, pyri_request *r)
{
    int err = (int)pyri_cursor_u32(c);
    uint64_t latest = pyri_cursor_u64(c), before = pyri_cursor_u64(c);
    size_t size = pyri_cursor_u32(c);
    const uint8_t *text = pyri_cursor_take(c, size);
    if (c->failed || err > 0 || size >= sizeof r->text)
        return false;
    r->err = err;
    r->c->latest = latest;
    r->before = before;
    if (size)
        memcpy(r->text, text, size);
    r->text[size] = 0;
    return true;
}

int
pyri_answer_read(const uint8_t *from, pyri_postmark mark,
                 pyri_request *requests)
{
    uint8_t copy[PYRI_ANSWER_SIZE];
    size_t size = size_at(from, ANSWER_HEAD, sizeof copy), n = 0;
    pyri_cursor c;
    for (pyri_request *r = requests; r; r = r->next)
        n++;
    if (size == 0)
        return not_it();
    memcpy(copy, from, size);
    if (!is_whole(copy, size, mark, &c) ||
        pyri_cursor_u32(&c) != (n | IS_ANSWER))
        return not_it();
    bool good = true;
    for (pyri_request *r = requests; r && good; r = r->next)
        good = read_answer(&c, r);
    return good && c.at == c.end ? 0 : not_it();
}
