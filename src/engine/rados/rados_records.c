/*
 * engine/rados/rados_records.c - reading records, and the memory of readers.
 *
 * Records that are about an array are in its head: their keys are a word and
 * the array's id. So what has to happen at once, such as setting a tag on a
 * version that must be kept, happens in one object. All others are in the
 * catalog.
 */
#include "engine/rados/rados.h"

#include "base/bytes.h"
#include "base/room.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

/* --- memory -------------------------------------------------------------- */

struct pyri_rados_block {
    struct pyri_rados_block *next;
    size_t used, room;
    max_align_t bytes[];
};

enum { BLOCK = 16 << 10 };

void *
pyri_rados_keep(pyri_reader *r, size_t size)
{
    struct pyri_rados_block *b = r->blocks;
    size = (size + 15) / 16 * 16;
    if (!b || b->room - b->used < size) {
        size_t room = size > BLOCK / 2 ? size : BLOCK;
        b = pyri_sys_malloc(sizeof *b + room);
        if (!b)
            return NULL;
        b->used = 0;
        b->room = room;
        b->next = r->blocks;
        if (r->blocks && size > BLOCK / 2) { /* the open one stays in front */
            b->next = r->blocks->next;
            r->blocks->next = b;
        } else {
            r->blocks = b;
        }
    }
    void *p = (uint8_t *)b->bytes + b->used;
    b->used += size;
    return p;
}

void
pyri_rados_free_blocks(pyri_reader *r)
{
    while (r->blocks) {
        struct pyri_rados_block *b = r->blocks;
        r->blocks = b->next;
        free(b);
    }
}

int
pyri_rados_copy(pyri_reader *r, pyri_bytes from, pyri_bytes *to)
{
    uint8_t *copy = pyri_rados_keep(r, from.size + 1);
    if (!copy)
        return pyri_fail_nomem("what was read");
    if (from.size)
        memcpy(copy, from.data, from.size);
    *to = (pyri_bytes){copy, from.size};
    return 0;
}

/* --- where records are --------------------------------------------------- */

static const char *const words[] = {"array/",   "attr/", "child/", "copy/",
                                    "gone/",    "handler/",
                                    "tag/",     "tagged/"};

enum { NWORDS = sizeof words / sizeof words[0] };

pyri_home
pyri_rados_home(pyri_bytes key)
{
    for (int i = 0; i < NWORDS; i++) {
        size_t n = strlen(words[i]);
        if (key.size >= n + 8 && memcmp(key.data, words[i], n) == 0)
            return (pyri_home){true,
                               pyri_load64_be((const uint8_t *)key.data + n)};
    }
    return (pyri_home){false, 0};
}

/* May keys that begin so be in a head? */
static bool
concerns_heads(pyri_bytes prefix)
{
    for (int i = 0; i < NWORDS; i++) {
        size_t n = strlen(words[i]);
        size_t common = n < prefix.size ? n : prefix.size;
        if (common == 0 || memcmp(prefix.data, words[i], common) == 0)
            return true;
    }
    return false;
}

static void
home_oid(pyri_home home, char oid[PYRI_RADOS_OID])
{
    if (home.head)
        pyri_rados_head_oid(oid, home.array);
    else
        strcpy(oid, PYRI_RADOS_CATALOG);
}

/* --- one ----------------------------------------------------------------- */

int
pyri_rados_get_record(pyri_engine *e, pyri_reader *r, pyri_bytes key,
                      pyri_bytes *value, bool *found)
{
    pyri_cluster *s = pyri_cluster_of(e);
    pyri_call c;
    char oid[PYRI_RADOS_OID];
    int err = pyri_cluster_check(s);
    if (err < 0)
        return err;
    home_oid(pyri_rados_home(key), oid);
    pyri_call_begin(&c, "get", false, oid);
    pyri_buf_varint(&c.in, key.size);
    pyri_buf_add(&c.in, key.data, key.size);
    err = pyri_call_run(s, &c);
    if (err == 0) {
        *found = pyri_cursor_u8(&c.answer);
        pyri_bytes got = pyri_cursor_str(&c.answer);
        err = c.answer.failed ? pyri_rados_garbled(&c)
              : *found        ? pyri_rados_copy(r, got, value)
                              : 0;
    } else {
        err = err == -ENOENT ? 0 : pyri_rados_fail(s, err, "a record");
    }
    pyri_call_fini(&c);
    return err;
}

/* --- many ---------------------------------------------------------------- */

typedef struct record {
    pyri_bytes key, value;
} record;

typedef struct finds {
    pyri_reader *r;
    record *list;
    size_t n, room;
} finds;

static int
note_page(finds *f, pyri_call *c, bool *more)
{
    uint8_t what;
    int err = 0;
    while (err == 0 &&
           (what = pyri_cursor_u8(&c->answer)) == PYRI_PAGE_ITEM) {
        pyri_bytes key = pyri_cursor_str(&c->answer);
        pyri_bytes value = pyri_cursor_str(&c->answer);
        if (c->answer.failed)
            break;
        if (!pyri_room(&f->list, &f->room, f->n + 1, sizeof *f->list))
            return pyri_fail_nomem("a list of records");
        record *to = &f->list[f->n++];
        if ((err = pyri_rados_copy(f->r, key, &to->key)) == 0)
            err = pyri_rados_copy(f->r, value, &to->value);
    }
    *more = err == 0 && what == PYRI_PAGE_MORE;
    return err == 0 && c->answer.failed ? pyri_rados_garbled(c) : err;
}

static void
ask_page(pyri_call *c, const char *oid, pyri_bytes prefix, pyri_bytes after)
{
    pyri_call_begin(c, "scan", false, oid);
    pyri_buf_varint(&c->in, prefix.size);
    if (prefix.size)
        pyri_buf_add(&c->in, prefix.data, prefix.size);
    pyri_buf_varint(&c->in, after.size);
    if (after.size)
        pyri_buf_add(&c->in, after.data, after.size);
}

/* The rest of an object whose first page was asked for. */
static int
note_object(pyri_cluster *s, finds *f, pyri_call *c, pyri_bytes prefix)
{
    bool more = true;
    int err = c->result;
    while (true) {
        if (err < 0)
            return err == -ENOENT ? 0 : pyri_rados_fail(s, err, "records");
        if ((err = note_page(f, c, &more)) < 0 || !more)
            return err;
        char oid[PYRI_RADOS_OID];
        memcpy(oid, c->oid, sizeof oid);
        pyri_call_fini(c);
        ask_page(c, oid, prefix, f->list[f->n - 1].key);
        err = pyri_call_run(s, c);
    }
}

static int
find_in_heads(pyri_cluster *s, finds *f, pyri_bytes prefix)
{
    uint64_t *heads;
    size_t n;
    char oid[PYRI_RADOS_OID];
    pyri_calls calls = {0};
    int err = pyri_rados_heads(s, &heads, &n);
    for (size_t i = 0; i < n && err == 0; i++) {
        pyri_rados_head_oid(oid, heads[i]);
        pyri_call *c = pyri_calls_add(&calls, "scan", false, oid);
        if (!c) {
            err = pyri_fail_nomem("records");
            break;
        }
        pyri_buf_fini(&c->in);
        ask_page(c, oid, prefix, (pyri_bytes){0});
    }
    if (err == 0)
        err = pyri_calls_run(s, calls.list, calls.n);
    for (size_t i = 0; i < calls.n && err == 0; i++)
        err = note_object(s, f, &calls.list[i], prefix);
    pyri_calls_fini(&calls);
    free(heads);
    return err;
}

static int
find_in_one(pyri_cluster *s, finds *f, pyri_home home, pyri_bytes prefix)
{
    char oid[PYRI_RADOS_OID];
    pyri_call c;
    home_oid(home, oid);
    ask_page(&c, oid, prefix, (pyri_bytes){0});
    pyri_call_run(s, &c);
    int err = note_object(s, f, &c, prefix);
    pyri_call_fini(&c);
    return err;
}

static int
by_key(const void *a, const void *b)
{
    const record *x = a, *y = b;
    size_t n = x->key.size < y->key.size ? x->key.size : y->key.size;
    int order = memcmp(x->key.data, y->key.data, n);
    return order ? order : (x->key.size > y->key.size) -
                               (x->key.size < y->key.size);
}

/* One object is shown as it is at one moment, up to a thousand records; many
 * are not. */
int
pyri_rados_scan_records(pyri_engine *e, pyri_reader *r, pyri_bytes prefix,
                        pyri_record_fn *each, void *ctx)
{
    pyri_cluster *s = pyri_cluster_of(e);
    pyri_home home = pyri_rados_home(prefix);
    finds f = {.r = r};
    int err = pyri_cluster_check(s);
    if (err < 0)
        return err;
    err = find_in_one(s, &f, home, prefix);
    if (err == 0 && !home.head && concerns_heads(prefix)) {
        err = find_in_heads(s, &f, prefix);
        if (f.n > 1)
            qsort(f.list, f.n, sizeof *f.list, by_key);
    }
    for (size_t i = 0; i < f.n && err == 0; i++)
        err = each(ctx, f.list[i].key, f.list[i].value);
    free(f.list);
    return err;
}

/* --- arrays -------------------------------------------------------------- */

int
pyri_rados_heads(pyri_cluster *s, uint64_t **out, size_t *n)
{
    size_t room = 0;
    bool more = true;
    int err = 0;
    *out = NULL;
    *n = 0;
    while (more && err == 0) {
        pyri_call c;
        uint8_t what = PYRI_PAGE_END;
        pyri_call_begin(&c, "heads", false, PYRI_RADOS_CATALOG);
        pyri_buf_u64(&c.in, *n ? (*out)[*n - 1] : 0);
        pyri_buf_u8(&c.in, *n == 0);
        if ((err = pyri_call_run(s, &c)) < 0)
            err = pyri_rados_fail(s, err, "the list of arrays");
        while (err == 0 &&
               (what = pyri_cursor_u8(&c.answer)) == PYRI_PAGE_ITEM) {
            if (pyri_room(out, &room, *n + 1, sizeof **out))
                (*out)[(*n)++] = pyri_cursor_u64(&c.answer);
            else
                err = pyri_fail_nomem("a list of arrays");
        }
        if (err == 0 && c.answer.failed)
            err = pyri_rados_garbled(&c);
        more = what == PYRI_PAGE_MORE;
        pyri_call_fini(&c);
    }
    if (err < 0) {
        free(*out);
        *out = NULL;
        *n = 0;
    }
    return err;
}
