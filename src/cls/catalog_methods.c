/*
 * cls/catalog_methods.c - the catalog: one object for the store as a whole.
 *
 *   "@M"     the marker: what the store was made with
 *   "@S"     the number of the newest session
 *   "@U"     who gives space back now: owner, deadline, renewals
 *   'A' ID   there is an array of this id
 *   'R' KEY  records that belong to no array (edits.c)
 *   'S' NR   a session: a writer that is at work
 *   'T' ID   a transaction that is not over: decided, given up or neither, the
 *            deadline, and the arrays that it concerns
 *
 * Deadlines are of the clocks of OSDs. None of them decides about data: who is
 * taken for dead is told so when it comes back, and has changed nothing.
 */
#include "cls/object.h"

#include "base/bytes.h"

#include <string.h>

enum { MAX_MARKER = 4096, MAX_PARTS = 1024 };

static const pyri_bytes MARKER = {"@M", 2}, SESSIONS = {"@S", 2},
                        UPKEEP = {"@U", 2};

static int64_t
deadline(pyri_object *o, uint32_t ms)
{
    return pyri_object_now(o) + (int64_t)ms * 1000000;
}

/* --- the store ----------------------------------------------------------- */

/* Answers on any object, also one that is not there. */
int
pyri_cls_hello(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_buf marker = {0};
    int err = pyri_cursor_done(in);
    if (err < 0)
        return err;
    err = pyri_object_get(o, MARKER, &marker);
    pyri_buf_u32(out, PYRI_CLS_VERSION);
    pyri_buf_varint(out, marker.size);
    if (err == 0 && marker.size)
        pyri_buf_add(out, marker.data, marker.size);
    pyri_buf_fini(&marker);
    return err == PYRI_CLS_NONE || err == PYRI_CLS_NO_OBJECT ? 0 : err;
}

int
pyri_cls_make(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_buf now = {0};
    pyri_bytes marker = pyri_cursor_str(in);
    int err = pyri_cursor_done(in);
    if (err < 0)
        return err;
    if (marker.size == 0 || marker.size > MAX_MARKER)
        return PYRI_CLS_BAD;
    err = pyri_object_get(o, MARKER, &now);
    pyri_buf_fini(&now);
    if (err == PYRI_CLS_NONE)
        return pyri_object_set(o, MARKER, marker);
    return err < 0 ? err : PYRI_CLS_THERE;
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

/* A page of the entries of one kind, whose keys are numbers. */
static int
list_numbers(pyri_object *o, pyri_cursor *in, char kind, pyri_entry_fn *each,
             pyri_buf *out)
{
    pyri_okey after = pyri_okey_of(kind, pyri_cursor_u64(in));
    bool more = false;
    if (pyri_cursor_u8(in)) /* from the beginning */
        after.size = 1;
    int err = pyri_cursor_done(in);
    if (err == 0)
        err = pyri_object_list(o, pyri_okey_bytes(&after),
                               (pyri_bytes){after.bytes, 1}, PYRI_CLS_ITEMS,
                               each, out, &more);
    if (err == 0)
        pyri_buf_u8(out, more ? PYRI_PAGE_MORE : PYRI_PAGE_END);
    return err;
}

int
pyri_cls_heads(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    return list_numbers(o, in, 'A', add_number, out);
}

/* --- sessions ------------------------------------------------------------ */

/* 'S': deadline (8), how many blobs it may have put (8), given up (1), and
 * what tells others on its machine whether its process lives. */
enum { SESSION_HEAD = 17 };

typedef struct session {
    int64_t deadline_ns;
    uint64_t used;
    bool dead;
    uint8_t where[PYRI_CLS_WHERE];
    size_t where_size;
} session;

static int
set_where(session *s, pyri_bytes where)
{
    if (where.size > sizeof s->where)
        return PYRI_CLS_BAD;
    if (where.size)
        memcpy(s->where, where.data, where.size);
    s->where_size = where.size;
    return 0;
}

static int
load_session(pyri_object *o, uint64_t number, session *s)
{
    pyri_okey key = pyri_okey_of('S', number);
    pyri_buf b = {0};
    int err = pyri_object_get(o, pyri_okey_bytes(&key), &b);
    pyri_cursor c = pyri_cursor_of(b.data, b.size);
    s->deadline_ns = (int64_t)pyri_cursor_u64(&c);
    s->used = pyri_cursor_u64(&c);
    s->dead = pyri_cursor_u8(&c);
    if (err == 0 && c.failed)
        err = PYRI_CLS_BAD;
    if (err == 0)
        err = set_where(s, (pyri_bytes){c.at, (size_t)(c.end - c.at)});
    pyri_buf_fini(&b);
    return err;
}

static int
save_session(pyri_object *o, uint64_t number, const session *s)
{
    pyri_okey key = pyri_okey_of('S', number);
    uint8_t b[SESSION_HEAD + PYRI_CLS_WHERE];
    pyri_store64(b, (uint64_t)s->deadline_ns);
    pyri_store64(b + 8, s->used);
    b[16] = s->dead;
    memcpy(b + SESSION_HEAD, s->where, s->where_size);
    return pyri_object_set(o, pyri_okey_bytes(&key),
                           (pyri_bytes){b, SESSION_HEAD + s->where_size});
}

static int
new_session(pyri_object *o, const session *s, pyri_buf *out)
{
    pyri_buf b = {0};
    uint8_t bytes[8];
    int err = pyri_object_get(o, SESSIONS, &b);
    uint64_t number = err == 0 && b.size == 8 ? pyri_load64(b.data) + 1 : 1;
    pyri_buf_fini(&b);
    if (err < 0 && err != PYRI_CLS_NONE)
        return err;
    pyri_store64(bytes, number);
    pyri_buf_u64(out, number);
    err = pyri_object_set(o, SESSIONS, (pyri_bytes){bytes, sizeof bytes});
    return err < 0 ? err : save_session(o, number, s);
}

int
pyri_cls_session(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    session s = {0};
    int what = pyri_cursor_u8(in);
    uint64_t number = pyri_cursor_u64(in), used = pyri_cursor_u64(in);
    uint32_t ms = pyri_cursor_u32(in);
    pyri_bytes where = pyri_cursor_str(in);
    pyri_okey key = pyri_okey_of('S', number);
    int err = pyri_cursor_done(in);
    if (err < 0)
        return err;
    if (what == PYRI_SESSION_NEW) {
        s = (session){.deadline_ns = deadline(o, ms), .used = used};
        err = set_where(&s, where);
        return err < 0 ? err : new_session(o, &s, out);
    }
    if (what == PYRI_SESSION_END)
        return pyri_object_del(o, pyri_okey_bytes(&key));
    err = load_session(o, number, &s);
    if (err == PYRI_CLS_NONE || (err == 0 && what == PYRI_SESSION_RENEW &&
                                 s.dead))
        return PYRI_CLS_FENCED;
    if (err < 0)
        return err;
    if (what == PYRI_SESSION_RENEW) {
        s.deadline_ns = deadline(o, ms);
        s.used = used > s.used ? used : s.used;
    } else if (what == PYRI_SESSION_EXPIRE) {
        if (!s.dead && pyri_object_now(o) <= s.deadline_ns)
            return PYRI_CLS_BUSY;
        s.dead = true;
    } else {
        return PYRI_CLS_BAD;
    }
    pyri_buf_u64(out, s.used);
    return save_session(o, number, &s);
}

typedef struct telling {
    pyri_buf *out;
    int64_t now;
} telling;

static int
add_session(void *ctx, pyri_bytes key, pyri_bytes value)
{
    telling *t = ctx;
    const uint8_t *b = value.data;
    if (value.size < SESSION_HEAD ||
        value.size > SESSION_HEAD + PYRI_CLS_WHERE)
        return PYRI_CLS_BAD;
    int err = add_number(t->out, key, value);
    int64_t left = (int64_t)pyri_load64(b) - t->now;
    pyri_buf_u8(t->out, b[16] || left < 0);
    pyri_buf_u64(t->out, left > 0 ? (uint64_t)left / 1000000 : 0);
    pyri_buf_u64(t->out, pyri_load64(b + 8));
    pyri_buf_varint(t->out, value.size - SESSION_HEAD);
    if (value.size > SESSION_HEAD)
        pyri_buf_add(t->out, b + SESSION_HEAD, value.size - SESSION_HEAD);
    return err;
}

/* Number, whether it is dead, how many milliseconds it has left, how many blobs
 * it may have put, where. */
int
pyri_cls_sessions(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_okey after = pyri_okey_of('S', pyri_cursor_u64(in));
    telling t = {out, pyri_object_now(o)};
    bool more = false;
    if (pyri_cursor_u8(in))
        after.size = 1;
    int err = pyri_cursor_done(in);
    if (err == 0)
        err = pyri_object_list(o, pyri_okey_bytes(&after),
                               (pyri_bytes){"S", 1}, PYRI_CLS_ITEMS,
                               add_session, &t, &more);
    if (err == 0)
        pyri_buf_u8(out, more ? PYRI_PAGE_MORE : PYRI_PAGE_END);
    return err;
}

/* --- one at a time ------------------------------------------------------- */

/* Answer: whether it is granted, how often its holder renewed it, how many
 * milliseconds it has left, and who that holder was. To seize it one has to
 * name the holder that is meant. */
int
pyri_cls_lease(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_buf now = {0}, b = {0};
    int what = pyri_cursor_u8(in);
    const uint8_t *owner = pyri_cursor_take(in, PYRI_CLS_ID);
    uint32_t ms = pyri_cursor_u32(in);
    const uint8_t *from = pyri_cursor_take(in, PYRI_CLS_ID);
    uint8_t holder[PYRI_CLS_ID] = {0};
    int err = pyri_cursor_done(in);
    if (err < 0)
        return err;
    err = pyri_object_get(o, UPKEEP, &now);
    bool held = err == 0 && now.size == PYRI_CLS_ID + 16;
    if (held)
        memcpy(holder, now.data, sizeof holder);
    bool ours = held && memcmp(holder, owner, PYRI_CLS_ID) == 0;
    bool meant = held && memcmp(holder, from, PYRI_CLS_ID) == 0;
    int64_t until = held ? (int64_t)pyri_load64(now.data + PYRI_CLS_ID) : 0;
    uint64_t count = held ? pyri_load64(now.data + PYRI_CLS_ID + 8) : 0;
    int64_t left = until - pyri_object_now(o);
    pyri_buf_fini(&now);
    if (err < 0 && err != PYRI_CLS_NONE)
        return err;
    bool granted = what == PYRI_LEASE_TAKE    ? ours || left <= 0
                   : what == PYRI_LEASE_SEIZE ? ours || left <= 0 || meant
                                              : ours;
    pyri_buf_u8(out, granted);
    pyri_buf_u64(out, count);
    pyri_buf_u64(out, left > 0 ? (uint64_t)left / 1000000 : 0);
    pyri_buf_add(out, holder, sizeof holder);
    if (!granted)
        return 0;
    if (what == PYRI_LEASE_GIVE)
        return pyri_object_del(o, UPKEEP);
    pyri_buf_add(&b, owner, PYRI_CLS_ID);
    pyri_buf_u64(&b, (uint64_t)deadline(o, ms));
    pyri_buf_u64(&b, count + 1);
    err = b.failed ? -ENOMEM
                   : pyri_object_set(o, UPKEEP, (pyri_bytes){b.data, b.size});
    pyri_buf_fini(&b);
    return err;
}

/* --- transactions -------------------------------------------------------- */

/* 'T': state (1), deadline (8), what it concerns. */
enum { TXN_HEAD = 9 };
enum { OPEN, DECIDED, GIVEN_UP };

static int
load_txn(pyri_object *o, pyri_bytes id, pyri_okey *key, pyri_buf *out)
{
    if (!id.data || !pyri_okey_name('T', id, key))
        return PYRI_CLS_BAD;
    int err = pyri_object_get(o, pyri_okey_bytes(key), out);
    if (err == 0 && out->size < TXN_HEAD)
        err = PYRI_CLS_BAD;
    return err;
}

static int
begin_txn(pyri_object *o, const pyri_okey *key, uint32_t ms, pyri_bytes parts)
{
    pyri_buf b = {0};
    pyri_buf_u8(&b, 0);
    pyri_buf_u64(&b, (uint64_t)deadline(o, ms));
    if (parts.size)
        pyri_buf_add(&b, parts.data, parts.size);
    int err = b.failed ? -ENOMEM : 0;
    if (err == 0)
        err = pyri_object_set(o, pyri_okey_bytes(key),
                              (pyri_bytes){b.data, b.size});
    pyri_buf_fini(&b);
    return err;
}

static int
set_state(pyri_object *o, const pyri_okey *key, pyri_buf *b, uint8_t state)
{
    b->data[0] = state;
    return pyri_object_set(o, pyri_okey_bytes(key),
                           (pyri_bytes){b->data, b->size});
}

int
pyri_txn_decide(pyri_object *o, pyri_bytes id)
{
    pyri_okey key;
    pyri_buf b = {0};
    int err = load_txn(o, id, &key, &b);
    if (err == PYRI_CLS_NONE || (err == 0 && b.data[0] != OPEN))
        err = PYRI_CLS_FENCED;
    if (err == 0)
        err = set_state(o, &key, &b, DECIDED);
    pyri_buf_fini(&b);
    return err;
}

/* Whose time has run out, or who is known to be gone, is given up for good. */
static int
judge(pyri_object *o, const pyri_okey *key, pyri_buf *b, bool gone,
      pyri_buf *out)
{
    bool open = b->size && b->data[0] == OPEN;
    bool late = open && (gone || pyri_object_now(o) >
                                     (int64_t)pyri_load64(b->data + 1));
    pyri_buf_u8(out, b->size == 0      ? GIVEN_UP
                     : open && !late   ? OPEN
                     : open            ? GIVEN_UP
                                       : b->data[0]);
    return late ? set_state(o, key, b, GIVEN_UP) : 0;
}

/*
 * Begin; end; or judge: answers 1 if it is decided, 0 if it is not and its
 * time has not run out; else it is given up, and can never be decided: 2.
 */
int
pyri_cls_txn(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_okey key;
    pyri_buf b = {0};
    int what = pyri_cursor_u8(in);
    pyri_bytes id = {pyri_cursor_take(in, PYRI_CLS_ID), PYRI_CLS_ID};
    uint32_t ms = pyri_cursor_u32(in);
    pyri_bytes parts = pyri_cursor_str(in);
    int err = pyri_cursor_done(in);
    if (err < 0)
        return err;
    if (parts.size > 8 * MAX_PARTS)
        return PYRI_CLS_BAD;
    err = load_txn(o, id, &key, &b);
    bool there = err == 0;
    if (err == PYRI_CLS_NONE)
        err = 0;
    if (err == 0 && what == PYRI_TXN_BEGIN)
        err = there ? 0 : begin_txn(o, &key, ms, parts);
    else if (err == 0 && what == PYRI_TXN_END)
        err = pyri_object_del(o, pyri_okey_bytes(&key));
    else if (err == 0)
        err = what == PYRI_TXN_JUDGE || what == PYRI_TXN_GIVE_UP
                  ? judge(o, &key, &b, what == PYRI_TXN_GIVE_UP, out)
                  : PYRI_CLS_BAD;
    pyri_buf_fini(&b);
    return err;
}

static int
add_txn(void *ctx, pyri_bytes key, pyri_bytes value)
{
    telling *t = ctx;
    const uint8_t *b = value.data;
    if (key.size != 1 + PYRI_CLS_ID || value.size < TXN_HEAD)
        return PYRI_CLS_BAD;
    pyri_buf_u8(t->out, PYRI_PAGE_ITEM);
    pyri_buf_add(t->out, (const uint8_t *)key.data + 1, PYRI_CLS_ID);
    pyri_buf_u8(t->out, b[0]);
    pyri_buf_u8(t->out, t->now > (int64_t)pyri_load64(b + 1));
    pyri_buf_varint(t->out, value.size - TXN_HEAD);
    pyri_buf_add(t->out, b + TXN_HEAD, value.size - TXN_HEAD);
    return 0;
}

/* Transactions that are not over: id, state, late, what they concern. */
int
pyri_cls_txns(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    telling t = {out, pyri_object_now(o)};
    bool more = false;
    int err = pyri_cursor_done(in);
    if (err == 0)
        err = pyri_object_list(o, (pyri_bytes){"T", 1}, (pyri_bytes){"T", 1},
                               PYRI_CLS_ITEMS, add_txn, &t, &more);
    if (err == 0)
        pyri_buf_u8(out, PYRI_PAGE_END);
    return err;
}
