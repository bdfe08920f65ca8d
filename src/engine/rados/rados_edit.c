/*
 * engine/rados/rados_edit.c - edits of records: all or none.
 *
 * Edits of one object are one call. Those of several are a transaction:
 *
 *   begin    in the catalog: its id, and what it concerns
 *   prepare  in every head: checked and kept; a new head is made
 *   commit   in the catalog: its own edits, and that it is decided
 *   apply    in every head; then the catalog forgets about it
 *
 * Who dies before the commit has changed nothing that others can see; who dies
 * after it has changed everything: whoever meets what was prepared asks the
 * catalog, and finishes or undoes it. One that takes too long, or whose process
 * has ended, is given up, and cannot commit any more.
 */
#include "engine/rados/rados.h"

#include "base/bytes.h"
#include "base/fault.h"
#include "base/sys.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { TXN_MS = 10000, PATIENCE_MS = 20000 };

static_assert((int)PYRI_EDIT_PUT == PYRI_WIRE_PUT &&
                  (int)PYRI_EDIT_SAME == PYRI_WIRE_SAME &&
                  (int)PYRI_EDIT_MARK == PYRI_WIRE_MARK,
              "kinds of edits are the same on the wire");

/* The edits of one object. */
typedef struct part {
    pyri_home home;
    pyri_buf edits;
    bool forgets; /* which not everybody may do */
} part;

typedef struct batch {
    pyri_cluster *s;
    part *parts; /* the catalog's is the first */
    size_t n;
    uint8_t id[PYRI_CLS_ID];
    bool makes; /* a new array */
} batch;

/* --- one object ---------------------------------------------------------- */

static void
edit_call(pyri_call *c, pyri_home home, int mode, const uint8_t *id,
          const part *p)
{
    const pyri_buf *edits = p ? &p->edits : NULL;
    char oid[PYRI_RADOS_OID];
    if (home.head)
        pyri_rados_head_oid(oid, home.array);
    else
        strcpy(oid, PYRI_RADOS_CATALOG);
    pyri_call_begin(c, p && p->forgets ? "forget" : "edit", true, oid);
    pyri_buf_u8(&c->in, (uint8_t)mode);
    pyri_buf_add(&c->in, id, PYRI_CLS_ID);
    pyri_buf_varint(&c->in, edits ? edits->size : 0);
    if (edits && edits->size)
        pyri_buf_add(&c->in, edits->data, edits->size);
}

static int
edit_object(pyri_cluster *s, pyri_home home, int mode, const uint8_t *id,
            const part *p)
{
    pyri_call c;
    edit_call(&c, home, mode, id, p);
    int err = pyri_call_run(s, &c);
    pyri_call_fini(&c);
    return err;
}

static int
txn_call(pyri_cluster *s, int what, const uint8_t *id, const pyri_buf *parts,
         uint8_t *answer)
{
    pyri_call c;
    pyri_call_begin(&c, "txn", true, PYRI_RADOS_CATALOG);
    pyri_buf_u8(&c.in, (uint8_t)what);
    pyri_buf_add(&c.in, id, PYRI_CLS_ID);
    pyri_buf_u32(&c.in, TXN_MS);
    pyri_buf_varint(&c.in, parts ? parts->size : 0);
    if (parts && parts->size)
        pyri_buf_add(&c.in, parts->data, parts->size);
    int err = pyri_call_run(s, &c);
    if (err == 0 && answer)
        *answer = pyri_cursor_u8(&c.answer);
    pyri_call_fini(&c);
    return err;
}

/* How did it end? 0: it is on its way; 1: it is decided; 2: given up. */
static int
judge(pyri_cluster *s, const uint8_t *id, uint8_t *verdict)
{
    bool ended = false;
    int err = txn_call(s, PYRI_TXN_JUDGE, id, NULL, verdict);
    if (err == 0 && *verdict == 0)
        err = pyri_session_ended(s, id, &ended) < 0 ? -EIO : 0;
    return ended ? txn_call(s, PYRI_TXN_GIVE_UP, id, NULL, verdict) : err;
}

/* What is prepared in an object; false if nothing is. */
static int
find_prepared(pyri_cluster *s, pyri_home home, uint8_t id[PYRI_CLS_ID],
              bool *found)
{
    pyri_call c;
    char oid[PYRI_RADOS_OID];
    pyri_rados_head_oid(oid, home.array);
    pyri_call_begin(&c, "get", false, home.head ? oid : PYRI_RADOS_CATALOG);
    pyri_buf_varint(&c.in, 1);
    pyri_buf_u8(&c.in, '?');
    int err = pyri_call_run(s, &c);
    pyri_cursor_u8(&c.answer);
    pyri_cursor_str(&c.answer);
    const uint8_t *got = pyri_cursor_take(&c.answer, PYRI_CLS_ID);
    *found = err == 0 && got;
    if (*found)
        memcpy(id, got, PYRI_CLS_ID);
    pyri_call_fini(&c);
    return err == -ENOENT ? 0 : err;
}

/* Someone prepared edits there: see how that ended, and end it. */
static int
clear_way(pyri_cluster *s, pyri_home home)
{
    uint8_t id[PYRI_CLS_ID], verdict = 0;
    bool found;
    int err = find_prepared(s, home, id, &found);
    if (err < 0 || !found)
        return err;
    if ((err = judge(s, id, &verdict)) < 0)
        return err;
    if (verdict == 0) { /* it is on its way */
        pyri_cluster_sleep(3);
        return 0;
    }
    return edit_object(s, home,
                       verdict == 1 ? PYRI_MODE_APPLY : PYRI_MODE_CANCEL, id,
                       NULL);
}

static int
fail_edit(pyri_cluster *s, int err)
{
    return pyri_rados_fail(s, err, "a change of the catalog");
}

/* Edit one object, or prepare it, when nobody else does. */
static int
edit_alone(pyri_cluster *s, const part *p, int mode, const uint8_t *id)
{
    int64_t end = pyri_rados_now() + PATIENCE_MS * 1000000ll;
    int err;
    while ((err = edit_object(s, p->home, mode, id, p)) == PYRI_CLS_BUSY &&
           pyri_rados_now() < end)
        if ((err = clear_way(s, p->home)) < 0)
            break;
    if (err == -ENOENT)
        err = PYRI_CLS_NONE;
    return err;
}

/* --- several ------------------------------------------------------------- */

static void
undo(batch *b)
{
    pyri_calls calls = {0};
    for (size_t i = 1; i < b->n; i++) {
        pyri_call *c = pyri_calls_add(&calls, NULL, false, "");
        if (c)
            edit_call(c, b->parts[i].home, PYRI_MODE_CANCEL, b->id, NULL);
    }
    pyri_calls_run(b->s, calls.list, calls.n);
    pyri_calls_fini(&calls);
    txn_call(b->s, PYRI_TXN_END, b->id, NULL, NULL);
}

/* It is decided. Should something fail here, others will do it. */
static void
carry_out(batch *b)
{
    bool whole = true;
    pyri_calls calls = {0};
    for (size_t i = 1; i < b->n; i++) {
        pyri_call *c = pyri_calls_add(&calls, NULL, false, "");
        if (c)
            edit_call(c, b->parts[i].home, PYRI_MODE_APPLY, b->id, NULL);
        whole &= c != NULL;
    }
    whole &= pyri_calls_run(b->s, calls.list, calls.n) == 0;
    for (size_t i = 0; i < calls.n; i++)
        whole &= calls.list[i].result == 0;
    pyri_calls_fini(&calls);
    if (whole)
        txn_call(b->s, PYRI_TXN_END, b->id, NULL, NULL);
}

static int
begin(batch *b)
{
    pyri_buf parts = {0};
    for (size_t i = 1; i < b->n; i++)
        pyri_buf_u64(&parts, b->parts[i].home.array);
    int err = parts.failed ? -ENOMEM
                           : txn_call(b->s, PYRI_TXN_BEGIN, b->id, &parts,
                                      NULL);
    pyri_buf_fini(&parts);
    return err;
}

static int
commit(batch *b)
{
    uint8_t verdict;
    int err = edit_object(b->s, b->parts[0].home, PYRI_MODE_COMMIT, b->id,
                          &b->parts[0]);
    while (err == -ETIMEDOUT) { /* and what came of it? */
        if ((err = txn_call(b->s, PYRI_TXN_JUDGE, b->id, NULL, &verdict)) < 0)
            continue;
        if (verdict == 1)
            return 0;
        if (verdict == 2)
            return PYRI_CLS_FENCED;
        err = edit_object(b->s, b->parts[0].home, PYRI_MODE_COMMIT, b->id,
                          &b->parts[0]);
    }
    return err;
}

/* `again`: it was given up before it could commit, and nothing is changed. */
static int
transact(batch *b, bool *again)
{
    int err = pyri_session_id(b->s, b->id);
    *again = false;
    if (err < 0)
        return err;
    if ((err = begin(b)) < 0)
        return fail_edit(b->s, err);
    for (size_t i = 1; i < b->n && err == 0; i++)
        err = edit_alone(b->s, &b->parts[i], PYRI_MODE_PREPARE, b->id);
    PYRI_FAULT("edit.prepared");
    if (err == 0) {
        err = commit(b);
        if (err == PYRI_CLS_FENCED) { /* given up, or a value has changed */
            uint8_t verdict = 0;
            *again = txn_call(b->s, PYRI_TXN_JUDGE, b->id, NULL, &verdict) ==
                         0 && verdict == 2;
        }
    }
    if (err < 0) {
        int kept = err;
        undo(b);
        return fail_edit(b->s, kept);
    }
    PYRI_FAULT("edit.committed");
    carry_out(b);
    return 0;
}

/* --- from edits to parts ------------------------------------------------- */

static part *
part_of(batch *b, pyri_home home)
{
    size_t i = 0;
    while (i < b->n && (b->parts[i].home.head != home.head ||
                        b->parts[i].home.array != home.array))
        i++;
    if (i == b->n)
        b->parts[b->n++].home = home;
    return &b->parts[i];
}

static void
add_edit(pyri_buf *to, int kind, const pyri_edit *e, uint64_t version)
{
    int ndim = kind == PYRI_WIRE_ARRAY ? e->ndim : 0;
    bool named = kind < PYRI_WIRE_ARRAY;
    pyri_buf_u8(to, (uint8_t)kind);
    pyri_buf_varint(to, named ? e->key.size : 0);
    if (named)
        pyri_buf_add(to, e->key.data, e->key.size);
    pyri_buf_varint(to, named ? e->value.size : 0);
    if (named && e->value.size)
        pyri_buf_add(to, e->value.data, e->value.size);
    pyri_buf_u64(to, version);
    pyri_buf_u8(to, (uint8_t)ndim);
    for (int d = 0; d < ndim; d++)
        pyri_buf_u64(to, e->shape[d]);
}

static int
sort_out(batch *b, const pyri_edit *edits, size_t n)
{
    bool failed = false;
    b->parts = pyri_sys_calloc(n + 1, sizeof *b->parts);
    if (!b->parts)
        return pyri_fail_nomem("a change of the catalog");
    b->n = 1; /* the catalog */
    for (size_t i = 0; i < n; i++) {
        const pyri_edit *e = &edits[i];
        pyri_home home = e->kind < PYRI_EDIT_ARRAY
                             ? pyri_rados_home(e->key)
                             : (pyri_home){true, e->array};
        part *p = part_of(b, home);
        add_edit(&p->edits, (int)e->kind, e, e->version);
        p->forgets |= e->kind == PYRI_EDIT_FORGET;
        if (e->kind == PYRI_EDIT_ARRAY) {
            add_edit(&b->parts[0].edits, PYRI_WIRE_NOTE, e, e->array);
            b->makes = true;
        }
        failed |= p->edits.failed || b->parts[0].edits.failed;
    }
    return failed ? pyri_fail_nomem("a change of the catalog") : 0;
}

int
pyri_rados_edit(pyri_engine *e, const pyri_edit *edits, size_t n)
{
    batch b = {.s = pyri_cluster_of(e)};
    bool again = true;
    int err = pyri_cluster_check(b.s);
    if (err < 0 || n == 0)
        return err;
    err = sort_out(&b, edits, n);
    bool catalog = err == 0 && b.parts[0].edits.size;
    if (err == 0 && b.n == (catalog ? 1u : 2u)) {
        part *only = &b.parts[catalog ? 0 : 1];
        err = edit_alone(b.s, only, PYRI_MODE_NOW, b.id);
        err = err < 0 ? fail_edit(b.s, err) : 0;
    } else {
        for (int i = 0; err == 0 && again && i < 10; i++) {
            err = transact(&b, &again);
            err = again && i < 9 ? 0 : err;
        }
    }
    for (size_t i = 0; b.parts && i < b.n; i++)
        pyri_buf_fini(&b.parts[i].edits);
    free(b.parts);
    return err;
}

/* --- what others left ---------------------------------------------------- */

static int
settle_one(pyri_cluster *s, const uint8_t *id, pyri_bytes parts)
{
    uint8_t verdict = 0;
    int err = judge(s, id, &verdict);
    if (err < 0 || verdict == 0)
        return err; /* it may still be on its way */
    for (size_t i = 0; i + 8 <= parts.size && err == 0; i += 8) {
        pyri_home home = {true, pyri_load64((const uint8_t *)parts.data + i)};
        err = edit_object(s, home,
                          verdict == 1 ? PYRI_MODE_APPLY : PYRI_MODE_CANCEL,
                          id, NULL);
        err = err == -ENOENT ? 0 : err;
    }
    return err < 0 ? err : txn_call(s, PYRI_TXN_END, id, NULL, NULL);
}

int
pyri_rados_settle_edits(pyri_cluster *s)
{
    pyri_call c;
    pyri_call_begin(&c, "txns", false, PYRI_RADOS_CATALOG);
    int err = pyri_call_run(s, &c);
    while (err == 0 && pyri_cursor_u8(&c.answer) == PYRI_PAGE_ITEM) {
        const uint8_t *id = pyri_cursor_take(&c.answer, PYRI_CLS_ID);
        pyri_cursor_u8(&c.answer);
        bool over = pyri_cursor_u8(&c.answer); /* its time has run out */
        pyri_bytes parts = pyri_cursor_str(&c.answer);
        if (!c.answer.failed && !over)
            err = pyri_session_ended(s, id, &over) < 0 ? -EIO : 0;
        if (!c.answer.failed && over && err == 0)
            err = settle_one(s, id, parts);
    }
    pyri_call_fini(&c);
    return err < 0 ? fail_edit(s, err) : 0;
}
