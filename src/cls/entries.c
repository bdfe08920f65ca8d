/*
 * cls/entries.c - many small immutable values in one object: tree nodes, and
 * the list of blobs that versions named.
 *
 *   "@N"    how many there are: count, bytes of keys and values, weight
 *   "@X"    the object is closed: nothing is put any more
 *   'E' KEY epoch (4), weight (8), value
 *
 * A version may be made by one writer after the other, if the first is given
 * up; what they store has the same keys. An entry of a later epoch takes the
 * place of an earlier one, and never the other way round, in whatever order
 * they arrive.
 */
#include "cls/object.h"

#include "base/bytes.h"
#include "base/checked.h"

#include <string.h>

enum { ENTRY_HEAD = 12 };

static const pyri_bytes TOTALS = {"@N", 2}, CLOSED = {"@X", 2};

/* --- totals -------------------------------------------------------------- */

typedef struct totals {
    uint64_t count, bytes, weight;
} totals;

static int
load_totals(pyri_object *o, totals *t)
{
    pyri_buf b = {0};
    *t = (totals){0, 0, 0};
    int err = pyri_object_get(o, TOTALS, &b);
    if (err == 0) {
        pyri_cursor c = pyri_cursor_of(b.data, b.size);
        t->count = pyri_cursor_u64(&c);
        t->bytes = pyri_cursor_u64(&c);
        t->weight = pyri_cursor_u64(&c);
        err = pyri_cursor_done(&c);
    }
    pyri_buf_fini(&b);
    return err == PYRI_CLS_NONE ? 0 : err;
}

static int
save_totals(pyri_object *o, const totals *t)
{
    uint8_t b[24];
    pyri_store64(b, t->count);
    pyri_store64(b + 8, t->bytes);
    pyri_store64(b + 16, t->weight);
    return pyri_object_set(o, TOTALS, (pyri_bytes){b, sizeof b});
}

int
pyri_cls_count(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    totals t;
    int err = pyri_cursor_done(in);
    if (err < 0 || (err = load_totals(o, &t)) < 0)
        return err;
    pyri_buf_u64(out, t.count);
    pyri_buf_u64(out, t.bytes);
    pyri_buf_u64(out, t.weight);
    return 0;
}

static int
is_closed(pyri_object *o, bool *closed)
{
    pyri_buf b = {0};
    int err = pyri_object_get(o, CLOSED, &b);
    *closed = err == 0;
    pyri_buf_fini(&b);
    return err == PYRI_CLS_NONE ? 0 : err;
}

int
pyri_cls_sweep(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    int err = pyri_cursor_done(in);
    return err < 0 ? err : pyri_object_set(o, CLOSED, (pyri_bytes){"1", 1});
}

/* --- one entry ----------------------------------------------------------- */

typedef struct entry {
    uint32_t epoch;
    uint64_t weight;
    pyri_bytes value;
    pyri_buf bytes;
} entry;

static int
load_entry(pyri_object *o, pyri_bytes key, entry *e)
{
    memset(e, 0, sizeof *e);
    int err = pyri_object_get(o, key, &e->bytes);
    if (err == 0 && e->bytes.size < ENTRY_HEAD)
        err = PYRI_CLS_BAD;
    if (err < 0) {
        pyri_buf_fini(&e->bytes);
        return err;
    }
    e->epoch = pyri_load32(e->bytes.data);
    e->weight = pyri_load64(e->bytes.data + 4);
    e->value = (pyri_bytes){e->bytes.data + ENTRY_HEAD,
                            e->bytes.size - ENTRY_HEAD};
    return 0;
}

static void
count_in(totals *t, pyri_bytes key, const entry *e)
{
    t->count++;
    t->bytes += key.size - 1 + e->value.size;
    t->weight += e->weight;
}

static void
count_out(totals *t, pyri_bytes key, const entry *e)
{
    t->count--;
    t->bytes -= key.size - 1 + e->value.size;
    t->weight -= e->weight;
}

static int
store_entry(pyri_object *o, pyri_bytes key, const entry *e)
{
    pyri_buf b = {0};
    pyri_buf_u32(&b, e->epoch);
    pyri_buf_u64(&b, e->weight);
    if (e->value.size)
        pyri_buf_add(&b, e->value.data, e->value.size);
    int err = b.failed ? -ENOMEM : 0;
    if (err == 0)
        err = pyri_object_set(o, key, (pyri_bytes){b.data, b.size});
    pyri_buf_fini(&b);
    return err;
}

static int
put_one(pyri_object *o, int mode, pyri_bytes key, entry *e, totals *t)
{
    entry was;
    int err = load_entry(o, key, &was);
    bool there = err == 0;
    if (!there && err != PYRI_CLS_NONE)
        return err;
    bool skip = mode == PYRI_ENTRY_REPLACE ? !there
                                           : there && was.epoch > e->epoch;
    if (there && mode == PYRI_ENTRY_REPLACE) {
        e->epoch = was.epoch;
        e->weight = was.weight;
    }
    if (there && !skip)
        count_out(t, key, &was);
    pyri_buf_fini(&was.bytes);
    if (skip)
        return 0;
    count_in(t, key, e);
    return store_entry(o, key, e);
}

/* --- methods ------------------------------------------------------------- */

int
pyri_cls_put(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    totals t;
    bool closed = false;
    int mode = pyri_cursor_u8(in);
    uint32_t epoch = pyri_cursor_u32(in);
    uint64_t n = pyri_cursor_varint(in);
    int err = load_totals(o, &t);
    if (err == 0)
        err = is_closed(o, &closed);
    if (err < 0)
        return err;
    if (closed && mode == PYRI_ENTRY_PUT)
        return PYRI_CLS_FENCED;
    if (n > PYRI_CLS_BATCH || mode > PYRI_ENTRY_REPLACE)
        return PYRI_CLS_BAD;
    for (uint64_t i = 0; i < n && err == 0; i++) {
        pyri_okey key;
        bool named = pyri_okey_name('E', pyri_cursor_str(in), &key);
        entry e = {.epoch = epoch, .weight = pyri_cursor_varint(in)};
        e.value = pyri_cursor_str(in);
        if (in->failed || !named)
            return PYRI_CLS_BAD;
        err = put_one(o, mode, pyri_okey_bytes(&key), &e, &t);
    }
    if (err == 0)
        err = pyri_cursor_done(in);
    return err < 0 ? err : save_totals(o, &t);
}

/* Entries by key, as many as fill a page; the caller asks again for the
 * others. */
int
pyri_cls_find(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    uint64_t n = pyri_cursor_varint(in);
    int err = 0;
    if (n > PYRI_CLS_BATCH)
        return PYRI_CLS_BAD;
    for (uint64_t i = 0; i < n && err == 0 && out->size <= PYRI_CLS_PAGE; i++) {
        pyri_okey key;
        entry e;
        bool named = pyri_okey_name('E', pyri_cursor_str(in), &key);
        if (in->failed || !named)
            return PYRI_CLS_BAD;
        err = load_entry(o, pyri_okey_bytes(&key), &e);
        if (err < 0 && err != PYRI_CLS_NONE)
            return err;
        pyri_buf_u8(out, err == 0);
        if (err == 0) {
            pyri_buf_varint(out, e.weight);
            pyri_buf_varint(out, e.value.size);
            pyri_buf_add(out, e.value.data, e.value.size);
            pyri_buf_fini(&e.bytes);
        }
        err = 0;
    }
    return err;
}

/* Remove entries, all or, if `some`, those of one epoch; tells what that came
 * to. An object that becomes empty goes, too. */
static int
remove_entries(pyri_object *o, pyri_cursor *in, bool some, pyri_buf *out)
{
    totals t, went = {0, 0, 0};
    bool closed = false;
    uint32_t epoch = pyri_cursor_u32(in);
    uint64_t n = pyri_cursor_varint(in);
    int err = load_totals(o, &t);
    if (err == 0)
        err = is_closed(o, &closed);
    if (err < 0)
        return err;
    if (n > PYRI_CLS_BATCH)
        return PYRI_CLS_BAD;
    for (uint64_t i = 0; i < n; i++) {
        pyri_okey name;
        entry e;
        bool named = pyri_okey_name('E', pyri_cursor_str(in), &name);
        pyri_bytes key = pyri_okey_bytes(&name);
        if (in->failed || !named)
            return PYRI_CLS_BAD;
        err = load_entry(o, key, &e);
        if (err == PYRI_CLS_NONE)
            continue;
        if (err == 0 && (!some || e.epoch == epoch)) {
            count_in(&went, key, &e);
            count_out(&t, key, &e);
            err = pyri_object_del(o, key);
        }
        pyri_buf_fini(&e.bytes);
        if (err < 0)
            return err;
    }
    if ((err = pyri_cursor_done(in)) < 0)
        return err;
    pyri_buf_u64(out, went.count);
    pyri_buf_u64(out, went.bytes);
    pyri_buf_u64(out, went.weight);
    if (went.count == 0)
        return 0;
    return t.count == 0 && !closed ? pyri_object_remove(o)
                                   : save_totals(o, &t);
}

int
pyri_cls_drop(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_cursor_u8(in); /* how they are put, which is nothing to us */
    return remove_entries(o, in, false, out);
}

/* What a writer stored whose version went to another. */
int
pyri_cls_undo(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_cursor_u8(in);
    return remove_entries(o, in, true, out);
}

typedef struct disowning {
    pyri_object *o;
    pyri_bytes name; /* with which values begin */
    uint32_t epoch;
    totals t;
    uint64_t n;
    pyri_okey last;
} disowning;

static int
disown_one(void *ctx, pyri_bytes key, pyri_bytes value)
{
    disowning *d = ctx;
    entry e, none = {0};
    if (!pyri_okey_name('E', (pyri_bytes){(const uint8_t *)key.data + 1,
                                          key.size - 1}, &d->last) ||
        value.size < ENTRY_HEAD)
        return PYRI_CLS_BAD;
    if (pyri_load32(value.data) >= d->epoch ||
        value.size < ENTRY_HEAD + d->name.size ||
        memcmp((const uint8_t *)value.data + ENTRY_HEAD, d->name.data,
               d->name.size) != 0)
        return 0;
    int err = load_entry(d->o, key, &e);
    if (err < 0)
        return err;
    count_out(&d->t, key, &e);
    bool more = e.value.size > d->name.size;
    pyri_buf_fini(&e.bytes);
    d->n++;
    if (!more)
        return pyri_object_del(d->o, key);
    count_in(&d->t, key, &none);
    return store_entry(d->o, key, &none);
}

/* What values name that begin with these bytes went to another, in this epoch:
 * what was put in earlier ones goes. If there is more in a value than that, the
 * key stays, with nothing, as if it had only been intended. */
int
pyri_cls_disown(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    disowning d = {.o = o, .last = {.bytes = {'E'}, .size = 1}};
    bool more = true, closed = false;
    d.epoch = pyri_cursor_u32(in);
    d.name = pyri_cursor_str(in);
    int err = d.name.size ? pyri_cursor_done(in) : PYRI_CLS_BAD;
    if (err == 0)
        err = load_totals(o, &d.t);
    if (err == 0)
        err = is_closed(o, &closed);
    while (err == 0 && more) {
        pyri_okey from = d.last;
        err = pyri_object_list(o, pyri_okey_bytes(&from), (pyri_bytes){"E", 1},
                               PYRI_CLS_ITEMS, disown_one, &d, &more);
    }
    pyri_buf_u64(out, d.n);
    if (err < 0 || d.n == 0)
        return err;
    return d.t.count == 0 && !closed ? pyri_object_remove(o)
                                     : save_totals(o, &d.t);
}

typedef struct page {
    pyri_buf *out;
    bool full;
} page;

static int
add_entry(void *ctx, pyri_bytes key, pyri_bytes value)
{
    page *p = ctx;
    const uint8_t *data = value.data;
    if (p->out->size > PYRI_CLS_PAGE) {
        p->full = true;
        return 1;
    }
    if (value.size < ENTRY_HEAD)
        return PYRI_CLS_BAD;
    pyri_buf_u8(p->out, PYRI_PAGE_ITEM);
    pyri_buf_varint(p->out, key.size - 1);
    pyri_buf_add(p->out, (const uint8_t *)key.data + 1, key.size - 1);
    pyri_buf_varint(p->out, pyri_load64(data + 4));
    pyri_buf_varint(p->out, value.size - ENTRY_HEAD);
    pyri_buf_add(p->out, data + ENTRY_HEAD, value.size - ENTRY_HEAD);
    return 0;
}

int
pyri_cls_list(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_bytes after = pyri_cursor_str(in);
    pyri_okey from = {.bytes = {'E'}, .size = 1};
    page p = {.out = out};
    bool more = false;
    int err = pyri_cursor_done(in);
    if (err < 0)
        return err;
    if (after.size && !pyri_okey_name('E', after, &from))
        return PYRI_CLS_BAD;
    err = pyri_object_list(o, pyri_okey_bytes(&from), (pyri_bytes){"E", 1},
                           PYRI_CLS_ITEMS, add_entry, &p, &more);
    if (err >= 0)
        pyri_buf_u8(out, more || p.full ? PYRI_PAGE_MORE : PYRI_PAGE_END);
    return err < 0 ? err : 0;
}
