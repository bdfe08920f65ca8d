/*
 * engine/rados/rados_history.c - versions that are published, and forgotten.
 */
#include "engine/rados/rados.h"

#include "base/room.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

static int
fail_history(pyri_cluster *s, int err, uint64_t array)
{
    if (err == -ENOENT)
        return pyri_fail(PYR_ENOTFOUND, "there is no array %llu",
                         (unsigned long long)array);
    return pyri_rados_fail(s, err, "the versions of array %llu",
                           (unsigned long long)array);
}

/* Was it erased through this site, after the reader began? */
static int
find_erased(pyri_cluster *s, pyri_reader *r, uint64_t array, uint64_t version,
            pyri_version_get *out)
{
    int err = 0;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->nerased; i++) {
        const pyri_rerased *x = &s->erased[i];
        if (x->array != array || x->version != version || x->when <= r->began)
            continue;
        out->found = true;
        err = pyri_rados_copy(r, (pyri_bytes){x->record, x->size},
                              &out->record);
        break;
    }
    pthread_mutex_unlock(&s->lock);
    return err;
}

static int
read_version(pyri_reader *r, pyri_cursor *c, pyri_version_get *out)
{
    int flags = pyri_cursor_u8(c);
    pyri_bytes record = pyri_cursor_str(c);
    if (c->failed)
        return 0;
    out->found = flags & PYRI_V_FOUND;
    out->forgotten = (flags & PYRI_V_FORGOTTEN) ||
                     ((flags & PYRI_V_PUBLISHED) && !out->found);
    return out->found ? pyri_rados_copy(r, record, &out->record) : 0;
}

int
pyri_rados_note_latest(pyri_reader *r, uint64_t array, uint64_t version,
                       pyri_cursor *c)
{
    r->array = array;
    r->latest = version;
    r->told = (pyri_version_get){0};
    int err = read_version(r, c, &r->told);
    if (c->failed || !r->told.found)
        r->array = 0;
    return err;
}

int
pyri_rados_get_version(pyri_engine *e, pyri_reader *r, uint64_t array,
                       uint64_t version, pyri_version_get *out)
{
    pyri_cluster *s = pyri_cluster_of(e);
    pyri_call c;
    char oid[PYRI_RADOS_OID];
    int err = pyri_cluster_check(s);
    if (err < 0)
        return err;
    if (r->array == array && r->latest == version && array) {
        *out = r->told;
        return 0;
    }
    pyri_rados_head_oid(oid, array);
    pyri_call_begin(&c, "version", false, oid);
    pyri_buf_u64(&c.in, version);
    if ((err = pyri_call_run(s, &c)) < 0)
        err = fail_history(s, err, array);
    else if ((err = read_version(r, &c.answer, out)) == 0 && c.answer.failed)
        err = pyri_rados_garbled(&c);
    pyri_call_fini(&c);
    if (err == 0 && !out->found && out->forgotten)
        err = find_erased(s, r, array, version, out);
    return err;
}

/* --- many ---------------------------------------------------------------- */

typedef struct told {
    uint64_t version;
    pyri_version_get get;
} told;

typedef struct page {
    told *list;
    size_t n, room;
    uint64_t begin; /* the lowest version that was looked at, going down */
    bool more;
} page;

static int
read_page(pyri_reader *r, pyri_call *c, page *p)
{
    uint8_t what = PYRI_PAGE_END;
    int err = 0;
    p->n = 0;
    p->begin = pyri_cursor_u64(&c->answer);
    while (err == 0 &&
           (what = pyri_cursor_u8(&c->answer)) == PYRI_PAGE_ITEM) {
        if (!pyri_room(&p->list, &p->room, p->n + 1, sizeof *p->list))
            return pyri_fail_nomem("a list of versions");
        told *t = &p->list[p->n++];
        *t = (told){.version = pyri_cursor_u64(&c->answer)};
        err = read_version(r, &c->answer, &t->get);
    }
    p->more = what == PYRI_PAGE_MORE;
    return err == 0 && c->answer.failed ? pyri_rados_garbled(c) : err;
}

static int
ask_page(pyri_cluster *s, pyri_reader *r, uint64_t array, uint64_t first,
         uint64_t last, page *p)
{
    pyri_call c;
    char oid[PYRI_RADOS_OID];
    pyri_rados_head_oid(oid, array);
    pyri_call_begin(&c, "versions", false, oid);
    pyri_buf_u64(&c.in, first);
    pyri_buf_u64(&c.in, last);
    int err = pyri_call_run(s, &c);
    err = err < 0 ? fail_history(s, err, array) : read_page(r, &c, p);
    pyri_call_fini(&c);
    return err;
}

/* Page by page: versions that come or go meanwhile may show or not. */
int
pyri_rados_scan_versions(pyri_engine *e, pyri_reader *r, uint64_t array,
                         uint64_t first, uint64_t last, pyri_version_fn *each,
                         void *ctx)
{
    pyri_cluster *s = pyri_cluster_of(e);
    page p = {.more = true};
    bool down = first > last;
    int err = pyri_cluster_check(s);
    while (err == 0 && p.more) {
        if ((err = ask_page(s, r, array, first, last, &p)) < 0)
            break;
        for (size_t i = 0; i < p.n && err == 0; i++) {
            const told *t = &p.list[down ? p.n - 1 - i : i];
            err = each(ctx, t->version, &t->get);
        }
        if (!p.more || (!down && p.n == 0))
            break;
        first = down ? p.begin - 1 : p.list[p.n - 1].version + 1;
        p.more = down ? first >= last : first <= last;
        if (down && first == last) { /* one is a range that goes up */
            down = false;
        }
    }
    free(p.list);
    return err;
}

/* --- forgotten ones ------------------------------------------------------ */

static int
tell_forgotten(pyri_cluster *s, uint64_t array, pyri_forgotten_fn *each,
               void *ctx)
{
    uint64_t last = 0;
    bool first = true, more = true;
    char oid[PYRI_RADOS_OID];
    int err = 0;
    pyri_rados_head_oid(oid, array);
    while (more && err == 0) {
        pyri_call c;
        uint8_t what = PYRI_PAGE_END;
        pyri_call_begin(&c, "forgotten", false, oid);
        pyri_buf_u64(&c.in, last);
        pyri_buf_u8(&c.in, first);
        first = false;
        if ((err = pyri_call_run(s, &c)) < 0)
            err = err == -ENOENT ? 0 : fail_history(s, err, array);
        while (err == 0 &&
               (what = pyri_cursor_u8(&c.answer)) == PYRI_PAGE_ITEM) {
            last = pyri_cursor_u64(&c.answer);
            err = c.answer.failed ? pyri_rados_garbled(&c)
                                  : each(ctx, array, last);
        }
        more = what == PYRI_PAGE_MORE;
        pyri_call_fini(&c);
    }
    return err;
}

int
pyri_rados_scan_forgotten(pyri_engine *e, pyri_reader *r,
                          pyri_forgotten_fn *each, void *ctx)
{
    pyri_cluster *s = pyri_cluster_of(e);
    uint64_t *heads = NULL;
    size_t n = 0;
    (void)r;
    int err = pyri_cluster_check(s);
    if (err == 0)
        err = pyri_rados_heads(s, &heads, &n);
    for (size_t i = 0; i < n && err == 0; i++)
        err = tell_forgotten(s, heads[i], each, ctx);
    free(heads);
    return err;
}
