/*
 * cls/history.c - the versions of an array that are complete: what there is of
 * them, forgetting, erasing. The layout is in heads.c.
 */
#include "cls/object.h"

#include "base/bytes.h"
#include "base/checked.h"

#include <string.h>

/* --- marks --------------------------------------------------------------- */

static bool
has(pyri_object *o, char kind, uint64_t version, int *err)
{
    pyri_okey key = pyri_okey_of(kind, version);
    pyri_buf bytes = {0};
    int got = pyri_object_get(o, pyri_okey_bytes(&key), &bytes);
    pyri_buf_fini(&bytes);
    if (got < 0 && got != PYRI_CLS_NONE)
        *err = got;
    return got == 0;
}

int
pyri_head_kept(pyri_object *o, const pyri_head *h, uint64_t version)
{
    int err = 0;
    bool kept = version <= h->latest && has(o, 'V', version, &err) &&
                !has(o, 'G', version, &err);
    return err < 0 ? err : kept ? 0 : PYRI_CLS_GONE;
}

int
pyri_head_forget(pyri_object *o, const pyri_head *h, uint64_t version)
{
    int err = 0;
    pyri_okey key = pyri_okey_of('G', version);
    if (version >= h->latest)
        return PYRI_CLS_INVALID;
    if (!has(o, 'V', version, &err))
        return err;
    return pyri_object_set(o, pyri_okey_bytes(&key), (pyri_bytes){"", 0});
}

/* --- one version, and many ----------------------------------------------- */

static int
tell(pyri_object *o, uint64_t version, pyri_bytes value, pyri_buf *out)
{
    int err = 0;
    if (value.size < PYRI_CLS_ID)
        return PYRI_CLS_BAD;
    bool forgotten = has(o, 'G', version, &err);
    pyri_buf_u8(out, (uint8_t)(PYRI_V_PUBLISHED | PYRI_V_FOUND |
                               (forgotten ? PYRI_V_FORGOTTEN : 0)));
    pyri_buf_varint(out, value.size - PYRI_CLS_ID);
    pyri_buf_add(out, (const uint8_t *)value.data + PYRI_CLS_ID,
                 value.size - PYRI_CLS_ID);
    return err;
}

int
pyri_head_tell(pyri_object *o, const pyri_head *h, uint64_t version,
               pyri_buf *out)
{
    pyri_buf bytes = {0};
    pyri_okey key = pyri_okey_of('V', version);
    int err = version > h->latest
              ? PYRI_CLS_NONE
              : pyri_object_get(o, pyri_okey_bytes(&key), &bytes);
    if (err == 0) {
        err = tell(o, version, (pyri_bytes){bytes.data, bytes.size}, out);
    } else if (err == PYRI_CLS_NONE) {
        pyri_buf_u8(out, version <= h->latest ? PYRI_V_PUBLISHED : 0);
        pyri_buf_varint(out, 0);
        err = 0;
    }
    pyri_buf_fini(&bytes);
    return err;
}

int
pyri_cls_version(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_head h;
    uint64_t version = pyri_cursor_u64(in);
    int err = pyri_cursor_done(in);
    if (err < 0 || (err = pyri_head_load(o, &h)) < 0)
        return err;
    return pyri_head_tell(o, &h, version, out);
}

/* Versions on their way into a page. */
typedef struct page {
    pyri_object *o;
    uint64_t last; /* none above it */
    pyri_buf *out;
    bool full, past;
    size_t n;
} page;

static int
add_version(void *ctx, pyri_bytes key, pyri_bytes value)
{
    page *p = ctx;
    if (key.size != 9)
        return PYRI_CLS_BAD;
    uint64_t version = pyri_load64_be((const uint8_t *)key.data + 1);
    if (version > p->last) {
        p->past = true;
        return 1;
    }
    if (p->out->size > PYRI_CLS_PAGE) {
        p->full = true;
        return 1;
    }
    pyri_buf_u8(p->out, PYRI_PAGE_ITEM);
    pyri_buf_u64(p->out, version);
    p->n++;
    return tell(p->o, version, value, p->out);
}

/* A page of versions from `low` on. */
static int
list_up(page *p, uint64_t low, bool *more)
{
    pyri_okey after = pyri_okey_of('V', low - 1);
    if (low == 0)
        after.size = 1;
    int err = pyri_object_list(p->o, pyri_okey_bytes(&after),
                               (pyri_bytes){"V", 1}, PYRI_CLS_ITEMS,
                               add_version, p, more);
    *more = (*more || p->full) && !p->past;
    return err < 0 ? err : 0;
}

/*
 * The newest versions up to `high`: an object lists upwards only. So look at
 * the last few numbers first; if there is nothing, at more and more; if there
 * is more than fits, at fewer. What is found fills no more than a page, and
 * comes in rising order.
 */
static int
list_down(pyri_object *o, uint64_t low, uint64_t high, pyri_buf *out,
          uint64_t *begin)
{
    uint64_t span = 256;
    size_t start = out->size;
    bool shrinking = false;
    while (true) {
        page p = {.o = o, .last = high, .out = out};
        bool more;
        uint64_t from = high - low < span ? low : high - span + 1;
        out->size = start;
        int err = list_up(&p, from, &more);
        if (err < 0)
            return err;
        *begin = from;
        if (more && span > 1) {
            span = shrinking ? span / 2 : span / 16 ? span / 16 : 1;
            shrinking = true;
            continue;
        }
        if (p.n || from == low || shrinking)
            return 0;
        span = span > UINT64_MAX / 16 ? UINT64_MAX : span * 16;
    }
}

/*
 * Answer: how they are ordered, the first number that was looked at when going
 * down, then the versions.
 */
int
pyri_cls_versions(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_head h;
    uint64_t first = pyri_cursor_u64(in), last = pyri_cursor_u64(in);
    int err = pyri_cursor_done(in);
    bool down = first > last, more = false;
    if (err < 0 || (err = pyri_head_load(o, &h)) < 0)
        return err;
    uint64_t low = pyri_min64(first, last);
    uint64_t high = pyri_min64(pyri_max64(first, last), h.latest);
    uint64_t begin = low;
    pyri_buf_u64(out, 0);
    if (low <= high && down) {
        err = list_down(o, low, high, out, &begin);
        more = begin > low;
    } else if (low <= high) {
        page p = {.o = o, .last = high, .out = out};
        err = list_up(&p, low, &more);
    }
    if (!out->failed)
        pyri_store64(out->data, begin);
    pyri_buf_u8(out, more ? PYRI_PAGE_MORE : PYRI_PAGE_END);
    return err;
}

static int
add_number(void *ctx, pyri_bytes key, pyri_bytes value)
{
    pyri_buf *out = ctx;
    (void)value;
    if (key.size != 9)
        return PYRI_CLS_BAD;
    pyri_buf_u8(out, PYRI_PAGE_ITEM);
    pyri_buf_u64(out, pyri_load64_be((const uint8_t *)key.data + 1));
    return 0;
}

int
pyri_cls_forgotten(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_okey after = pyri_okey_of('G', pyri_cursor_u64(in));
    bool more;
    if (pyri_cursor_u8(in)) /* from the beginning */
        after.size = 1;
    int err = pyri_cursor_done(in);
    if (err == 0)
        err = pyri_object_list(o, pyri_okey_bytes(&after),
                               (pyri_bytes){"G", 1}, PYRI_CLS_ITEMS,
                               add_number, out, &more);
    if (err == 0)
        pyri_buf_u8(out, more ? PYRI_PAGE_MORE : PYRI_PAGE_END);
    return err;
}

/* --- erasing ------------------------------------------------------------- */

static int
erase_version(pyri_object *o, uint64_t version)
{
    int err = 0;
    pyri_okey v = pyri_okey_of('V', version), g = pyri_okey_of('G', version);
    if (!has(o, 'V', version, &err))
        return err;
    if (!has(o, 'G', version, &err))
        return err < 0 ? err : PYRI_CLS_INVALID;
    err = pyri_object_del(o, pyri_okey_bytes(&v));
    return err < 0 ? err : pyri_object_del(o, pyri_okey_bytes(&g));
}

/* Erase versions, and note what else is to go: one step, after which nothing
 * leads there. The list is worked off later, by anyone. */
int
pyri_cls_erase(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    int err = 0;
    uint64_t n = pyri_cursor_varint(in);
    if (n > PYRI_CLS_BATCH)
        return PYRI_CLS_BAD;
    for (uint64_t i = 0; i < n && err == 0 && !in->failed; i++)
        err = erase_version(o, pyri_cursor_u64(in));
    uint64_t id = pyri_cursor_u64(in);
    pyri_bytes list = pyri_cursor_str(in);
    pyri_okey key = pyri_okey_of('L', id);
    if (err == 0)
        err = pyri_cursor_done(in);
    if (err == 0 && list.size)
        err = pyri_object_set(o, pyri_okey_bytes(&key), list);
    return err;
}

static int
add_list(void *ctx, pyri_bytes key, pyri_bytes value)
{
    pyri_buf *out = ctx;
    int err = add_number(ctx, key, value);
    pyri_buf_varint(out, value.size);
    if (value.size)
        pyri_buf_add(out, value.data, value.size);
    return err;
}

/* One list that waits, after the given one. */
int
pyri_cls_limbo(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_okey after = pyri_okey_of('L', pyri_cursor_u64(in));
    bool more;
    if (pyri_cursor_u8(in))
        after.size = 1;
    int err = pyri_cursor_done(in);
    if (err == 0)
        err = pyri_object_list(o, pyri_okey_bytes(&after),
                               (pyri_bytes){"L", 1}, 1, add_list, out, &more);
    if (err == 0)
        pyri_buf_u8(out, PYRI_PAGE_END);
    return err;
}

int
pyri_cls_bury(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_okey key = pyri_okey_of('L', pyri_cursor_u64(in));
    int err = pyri_cursor_done(in);
    return err < 0 ? err : pyri_object_del(o, pyri_okey_bytes(&key));
}
