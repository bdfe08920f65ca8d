/*
 * cls/heads.c - the version manager of an array: one object, its head.
 *
 *   "@H"         newest published version and its shape, the next version to
 *                give, the epoch, the mark
 *   'F' VERSION  a version in flight: whose it is (an id that begins with the
 *                writer's session), until when, its claim, who took it
 *   'V' VERSION  a complete version: the id of its completion, its record
 *   'G' VERSION  it is forgotten
 *   'L' ID       a list of what was erased and is still to be removed
 *   'R' KEY      records of the array (edits.c)
 *
 * The epoch settles who of several may complete a version. It grows whenever
 * a version changes hands; who completes must say in which epoch it got the
 * version, and nodes are stored with that number, so that those of a writer
 * which was given up can never take the place of its successor's. A version of
 * which others may have stored nodes before is *contested*: its nodes go where
 * readers look first.
 */
#include "cls/object.h"

#include "base/bytes.h"
#include "base/checked.h"

#include <string.h>

enum { HEAD_FORMAT = 2 }; /* the first had no mark */

static const pyri_bytes HEAD = {"@H", 2};

/* --- head ---------------------------------------------------------------- */

int
pyri_head_load(pyri_object *o, pyri_head *h)
{
    pyri_buf bytes = {0};
    memset(h, 0, sizeof *h);
    int err = pyri_object_get(o, HEAD, &bytes);
    if (err == PYRI_CLS_NONE)
        err = PYRI_CLS_NO_OBJECT;
    if (err == 0) {
        pyri_cursor c = pyri_cursor_of(bytes.data, bytes.size);
        int format = pyri_cursor_u8(&c);
        h->latest = pyri_cursor_u64(&c);
        h->next = pyri_cursor_u64(&c);
        h->epoch = pyri_cursor_u32(&c);
        h->reserved = pyri_cursor_u64(&c);
        h->reserved_epoch = pyri_cursor_u32(&c);
        h->spoiled = pyri_cursor_u64(&c);
        h->mark = format == 1 ? 0 : pyri_cursor_u64(&c);
        h->ndim = pyri_cursor_u8(&c);
        for (int d = 0; d < h->ndim && d < PYRI_HEAD_MAX_DIMS; d++)
            h->shape[d] = pyri_cursor_u64(&c);
        if (format < 1 || format > HEAD_FORMAT || h->ndim < 1 || h->ndim > PYRI_HEAD_MAX_DIMS ||
            h->next <= h->latest || pyri_cursor_done(&c) < 0)
            err = PYRI_CLS_BAD;
    }
    pyri_buf_fini(&bytes);
    return err;
}

static void
add_shape(pyri_buf *out, const pyri_head *h, const uint64_t *shape)
{
    for (int d = 0; d < h->ndim; d++)
        pyri_buf_u64(out, shape[d]);
}

static void
take_shape(pyri_cursor *c, const pyri_head *h, uint64_t *shape)
{
    for (int d = 0; d < h->ndim; d++)
        shape[d] = pyri_cursor_u64(c);
}

static int
save(pyri_object *o, pyri_bytes key, pyri_buf *bytes)
{
    int err = bytes->failed ? -ENOMEM : 0;
    if (err == 0)
        err = pyri_object_set(o, key, (pyri_bytes){bytes->data, bytes->size});
    pyri_buf_fini(bytes);
    return err;
}

int
pyri_head_save(pyri_object *o, const pyri_head *h)
{
    pyri_buf b = {0};
    pyri_buf_u8(&b, HEAD_FORMAT);
    pyri_buf_u64(&b, h->latest);
    pyri_buf_u64(&b, h->next);
    pyri_buf_u32(&b, h->epoch);
    pyri_buf_u64(&b, h->reserved);
    pyri_buf_u32(&b, h->reserved_epoch);
    pyri_buf_u64(&b, h->spoiled);
    pyri_buf_u64(&b, h->mark);
    pyri_buf_u8(&b, (uint8_t)h->ndim);
    add_shape(&b, h, h->shape);
    return save(o, HEAD, &b);
}

int
pyri_cls_latest(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_head h;
    bool record = pyri_cursor_u8(in);
    int err = pyri_cursor_done(in);
    if (err < 0 || (err = pyri_head_load(o, &h)) < 0)
        return err;
    pyri_buf_u64(out, h.latest);
    pyri_buf_u64(out, h.next);
    pyri_buf_u64(out, h.mark);
    pyri_buf_u8(out, (uint8_t)h.ndim);
    add_shape(out, &h, h.shape);
    return record ? pyri_head_tell(o, &h, h.latest, out) : 0;
}

/* --- flights ------------------------------------------------------------- */

typedef struct flight {
    bool complete;
    uint32_t epoch;
    int64_t deadline_ns; /* by the clocks of OSDs */
    uint64_t base;
    uint8_t id[PYRI_CLS_ID];
    uint64_t shape[PYRI_HEAD_MAX_DIMS];
    pyri_bytes claim; /* in `bytes` */
    uint64_t taker;   /* the session that took it, whoever has it now */
    pyri_buf bytes;
} flight;

static int
load_flight(pyri_object *o, const pyri_head *h, uint64_t version, flight *f)
{
    pyri_okey key = pyri_okey_of('F', version);
    memset(f, 0, sizeof *f);
    int err = pyri_object_get(o, pyri_okey_bytes(&key), &f->bytes);
    if (err < 0) {
        pyri_buf_fini(&f->bytes);
        return err;
    }
    pyri_cursor c = pyri_cursor_of(f->bytes.data, f->bytes.size);
    f->complete = pyri_cursor_u8(&c);
    f->epoch = pyri_cursor_u32(&c);
    f->deadline_ns = (int64_t)pyri_cursor_u64(&c);
    f->base = pyri_cursor_u64(&c);
    const uint8_t *id = pyri_cursor_take(&c, PYRI_CLS_ID);
    if (id)
        memcpy(f->id, id, PYRI_CLS_ID);
    take_shape(&c, h, f->shape);
    f->claim = pyri_cursor_str(&c);
    /* classes before the fourth version did not note it */
    f->taker = c.at == c.end ? pyri_load64(f->id) : pyri_cursor_u64(&c);
    if (pyri_cursor_done(&c) == 0)
        return 0;
    pyri_buf_fini(&f->bytes);
    return PYRI_CLS_BAD;
}

static int
save_flight(pyri_object *o, const pyri_head *h, uint64_t version,
            const flight *f)
{
    pyri_okey key = pyri_okey_of('F', version);
    pyri_buf b = {0};
    pyri_buf_u8(&b, f->complete);
    pyri_buf_u32(&b, f->epoch);
    pyri_buf_u64(&b, (uint64_t)f->deadline_ns);
    pyri_buf_u64(&b, f->base);
    pyri_buf_add(&b, f->id, PYRI_CLS_ID);
    add_shape(&b, h, f->shape);
    pyri_buf_varint(&b, f->claim.size);
    if (f->claim.size)
        pyri_buf_add(&b, f->claim.data, f->claim.size);
    pyri_buf_u64(&b, f->taker);
    return save(o, pyri_okey_bytes(&key), &b);
}

/* A version that is still to be completed; else PYRI_CLS_FENCED. */
static int
open_flight(pyri_object *o, const pyri_head *h, uint64_t version, flight *f)
{
    memset(f, 0, sizeof *f);
    if (version <= h->latest || version >= h->next)
        return PYRI_CLS_FENCED;
    int err = load_flight(o, h, version, f);
    if (err == 0 && f->complete) {
        pyri_buf_fini(&f->bytes);
        return PYRI_CLS_FENCED;
    }
    return err == PYRI_CLS_NONE ? PYRI_CLS_BAD : err;
}

static int64_t
deadline(pyri_object *o, uint32_t lease_ms)
{
    return pyri_object_now(o) + (int64_t)lease_ms * 1000000;
}

/* --- taking -------------------------------------------------------------- */

typedef struct taking {
    const uint8_t *id;
    bool again; /* the answer to the same request may have been lost */
    uint32_t lease_ms;
    bool shaped;
    uint64_t shape[PYRI_HEAD_MAX_DIMS];
    int grow_axis;
    uint64_t grow_by;
    pyri_bytes claim;
} taking;

static int
read_taking(pyri_cursor *in, const pyri_head *h, taking *t)
{
    t->id = pyri_cursor_take(in, PYRI_CLS_ID);
    t->again = pyri_cursor_u8(in);
    t->lease_ms = pyri_cursor_u32(in);
    int ndim = pyri_cursor_u8(in); /* 0: as before */
    t->shaped = ndim != 0;
    if (t->shaped && ndim != h->ndim)
        return PYRI_CLS_BAD;
    if (t->shaped)
        take_shape(in, h, t->shape);
    t->grow_axis = pyri_cursor_u8(in); /* 255: none */
    t->grow_by = pyri_cursor_u64(in);
    t->claim = pyri_cursor_str(in);
    if (t->grow_axis != 255 && t->grow_axis >= h->ndim)
        return PYRI_CLS_BAD;
    return pyri_cursor_done(in);
}

/* The answer, within 64 bytes: shapes of more than five axes have to be asked
 * for. */
static int
tell_taken(const pyri_head *h, uint64_t version, const flight *f,
           const uint64_t *before, pyri_buf *out)
{
    bool told = before && h->ndim <= 5;
    pyri_buf_u64(out, version);
    pyri_buf_u64(out, h->latest);
    pyri_buf_u32(out, f->epoch);
    pyri_buf_u8(out, version <= h->spoiled);
    pyri_buf_u8(out, told);
    if (told)
        add_shape(out, h, before);
    return 0;
}

/* The flight that an earlier request with this id has made. */
static int
find_taken(pyri_object *o, const pyri_head *h, const taking *t, pyri_buf *out)
{
    int err = PYRI_CLS_NONE;
    for (uint64_t v = h->next - 1; v > h->latest && err == PYRI_CLS_NONE; v--) {
        flight f;
        if ((err = load_flight(o, h, v, &f)) < 0)
            return err == PYRI_CLS_NONE ? PYRI_CLS_BAD : err;
        if (memcmp(f.id, t->id, PYRI_CLS_ID) == 0)
            err = tell_taken(h, v, &f, NULL, out);
        else
            err = PYRI_CLS_NONE;
        pyri_buf_fini(&f.bytes);
    }
    return err;
}

/* Whoever reserved a version may be storing nodes of it even now. */
static void
give_up_reserved(pyri_head *h)
{
    if (h->reserved == 0)
        return;
    h->spoiled = pyri_max64(h->spoiled, h->reserved);
    h->reserved = 0;
    h->epoch++;
}

static int
shape_before(pyri_object *o, const pyri_head *h, uint64_t *shape)
{
    memcpy(shape, h->shape, sizeof h->shape);
    if (h->next - 1 == h->latest)
        return 0;
    flight last;
    int err = load_flight(o, h, h->next - 1, &last);
    if (err < 0)
        return err == PYRI_CLS_NONE ? PYRI_CLS_BAD : err;
    memcpy(shape, last.shape, sizeof last.shape);
    pyri_buf_fini(&last.bytes);
    return 0;
}

static int
grow(const pyri_head *h, const taking *t, uint64_t *shape)
{
    if (t->shaped)
        memcpy(shape, t->shape, sizeof t->shape);
    if (t->grow_axis == 255)
        return 0;
    uint64_t *extent = &shape[t->grow_axis];
    if (!pyri_add64(*extent, t->grow_by, extent) ||
        !pyri_countable(h->ndim, shape))
        return PYRI_CLS_RANGE;
    return 0;
}

int
pyri_cls_take(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_head h;
    taking t = {0};
    flight f = {0};
    uint64_t before[PYRI_HEAD_MAX_DIMS];
    int err = pyri_head_load(o, &h);
    if (err < 0 || (err = read_taking(in, &h, &t)) < 0)
        return err;
    if (t.again && (err = find_taken(o, &h, &t, out)) != PYRI_CLS_NONE)
        return err;
    uint64_t version = h.next;
    if (version == UINT64_MAX || version - h.latest > PYRI_CLS_FLIGHTS)
        return PYRI_CLS_BUSY;
    if ((err = shape_before(o, &h, before)) < 0)
        return err;
    memcpy(f.shape, before, sizeof before);
    if ((err = grow(&h, &t, f.shape)) < 0)
        return err;
    give_up_reserved(&h); /* an import that was about to begin is too late */
    f.epoch = h.epoch;
    f.deadline_ns = deadline(o, t.lease_ms);
    f.base = h.latest;
    memcpy(f.id, t.id, PYRI_CLS_ID);
    f.taker = pyri_load64(f.id);
    f.claim = t.claim;
    h.next++;
    if ((err = save_flight(o, &h, version, &f)) < 0 ||
        (err = pyri_head_save(o, &h)) < 0)
        return err;
    return tell_taken(&h, version, &f, before, out);
}

int
pyri_cls_renew(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_head h;
    flight f;
    uint64_t version = pyri_cursor_u64(in);
    bool any = pyri_cursor_u8(in); /* whoever it belongs to now */
    uint32_t epoch = pyri_cursor_u32(in);
    uint32_t lease_ms = pyri_cursor_u32(in);
    int err = pyri_cursor_done(in);
    if (err < 0 || (err = pyri_head_load(o, &h)) < 0 ||
        (err = open_flight(o, &h, version, &f)) < 0)
        return err;
    if (!any && f.epoch != epoch)
        err = PYRI_CLS_FENCED;
    f.deadline_ns = deadline(o, lease_ms);
    if (err == 0)
        err = save_flight(o, &h, version, &f);
    pyri_buf_fini(&f.bytes);
    return err;
}

/* Take a version out of its writer's hands. Whether that may be is for the
 * caller to judge. */
int
pyri_cls_fence(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_head h;
    flight f;
    uint64_t version = pyri_cursor_u64(in);
    const uint8_t *id = pyri_cursor_take(in, PYRI_CLS_ID);
    uint32_t lease_ms = pyri_cursor_u32(in);
    int err = pyri_cursor_done(in);
    if (err < 0 || (err = pyri_head_load(o, &h)) < 0 ||
        (err = open_flight(o, &h, version, &f)) < 0)
        return err;
    memcpy(f.id, id, PYRI_CLS_ID);
    f.epoch = ++h.epoch;
    f.deadline_ns = deadline(o, lease_ms);
    err = save_flight(o, &h, version, &f);
    pyri_buf_fini(&f.bytes);
    if (err == 0)
        err = pyri_head_save(o, &h);
    pyri_buf_u32(out, h.epoch);
    pyri_buf_u8(out, 1);
    pyri_buf_u64(out, f.taker);
    return err;
}

/* An import is about to store the nodes of a version that nobody took. */
int
pyri_cls_reserve(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_head h;
    uint64_t version = pyri_cursor_u64(in);
    int err = pyri_cursor_done(in);
    if (err < 0 || (err = pyri_head_load(o, &h)) < 0)
        return err;
    if (h.next != h.latest + 1 || version <= h.latest || version == UINT64_MAX)
        return PYRI_CLS_FENCED;
    give_up_reserved(&h);
    h.reserved = version;
    h.reserved_epoch = ++h.epoch;
    pyri_buf_u32(out, h.epoch);
    pyri_buf_u8(out, version <= h.spoiled);
    return pyri_head_save(o, &h);
}

/* --- completing ---------------------------------------------------------- */

typedef struct completing {
    bool import;
    uint64_t version;
    uint32_t epoch;
    const uint8_t *id;
    uint64_t shape[PYRI_HEAD_MAX_DIMS];
    pyri_bytes record;
} completing;

static int
read_completing(pyri_cursor *in, const pyri_head *h, completing *c)
{
    c->import = pyri_cursor_u8(in);
    c->version = pyri_cursor_u64(in);
    c->epoch = pyri_cursor_u32(in);
    c->id = pyri_cursor_take(in, PYRI_CLS_ID);
    take_shape(in, h, c->shape); /* as many axes as the head has */
    c->record = pyri_cursor_str(in);
    return pyri_cursor_done(in);
}

static int
load_version(pyri_object *o, uint64_t version, pyri_buf *bytes)
{
    pyri_okey key = pyri_okey_of('V', version);
    int err = pyri_object_get(o, pyri_okey_bytes(&key), bytes);
    if (err == 0 && bytes->size < PYRI_CLS_ID)
        err = PYRI_CLS_BAD;
    return err;
}

/* Was it this very request that completed the version? */
static bool
was_us(pyri_object *o, const completing *c)
{
    pyri_buf bytes = {0};
    bool us = load_version(o, c->version, &bytes) == 0 &&
              memcmp(bytes.data, c->id, PYRI_CLS_ID) == 0;
    pyri_buf_fini(&bytes);
    return us;
}

static int
store_record(pyri_object *o, const completing *c)
{
    pyri_okey key = pyri_okey_of('V', c->version);
    pyri_buf b = {0};
    pyri_buf_add(&b, c->id, PYRI_CLS_ID);
    if (c->record.size)
        pyri_buf_add(&b, c->record.data, c->record.size);
    return save(o, pyri_okey_bytes(&key), &b);
}

/* Publish all that is complete, up to the first that is not. */
static int
publish(pyri_object *o, pyri_head *h)
{
    while (h->latest + 1 < h->next) {
        flight f;
        pyri_okey key = pyri_okey_of('F', h->latest + 1);
        int err = load_flight(o, h, h->latest + 1, &f);
        if (err < 0)
            return err == PYRI_CLS_NONE ? PYRI_CLS_BAD : err;
        pyri_buf_fini(&f.bytes);
        if (!f.complete)
            break;
        h->latest++;
        memcpy(h->shape, f.shape, sizeof f.shape);
        if ((err = pyri_object_del(o, pyri_okey_bytes(&key))) < 0)
            return err;
    }
    return 0;
}

static int
complete_flight(pyri_object *o, pyri_head *h, const completing *c)
{
    flight f;
    int err = open_flight(o, h, c->version, &f);
    if (err < 0)
        return err;
    if (f.epoch != c->epoch)
        err = PYRI_CLS_FENCED;
    f.complete = true;
    memcpy(f.shape, c->shape, sizeof f.shape);
    if (err == 0)
        err = save_flight(o, h, c->version, &f);
    pyri_buf_fini(&f.bytes);
    return err < 0 ? err : publish(o, h);
}

static int
complete_import(pyri_object *o, pyri_head *h, const completing *c)
{
    if (h->next != h->latest + 1 || c->version <= h->latest ||
        h->reserved != c->version || h->reserved_epoch != c->epoch)
        return PYRI_CLS_FENCED;
    h->latest = c->version;
    h->next = c->version + 1;
    h->reserved = 0;
    memcpy(h->shape, c->shape, sizeof h->shape);
    return 0;
}

int
pyri_cls_complete(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_head h;
    completing c = {0};
    int err = pyri_head_load(o, &h);
    if (err < 0 || (err = read_completing(in, &h, &c)) < 0)
        return err;
    err = c.import ? complete_import(o, &h, &c) : complete_flight(o, &h, &c);
    if (err == PYRI_CLS_FENCED && was_us(o, &c)) {
        pyri_buf_u64(out, h.latest);
        return 0;
    }
    if (err < 0 || (err = store_record(o, &c)) < 0)
        return err;
    pyri_buf_u64(out, h.latest);
    return pyri_head_save(o, &h);
}

/* --- what is in flight --------------------------------------------------- */

int
pyri_cls_flights(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_head h;
    uint64_t from = pyri_cursor_u64(in), below = pyri_cursor_u64(in);
    int err = pyri_cursor_done(in);
    if (err < 0 || (err = pyri_head_load(o, &h)) < 0)
        return err;
    int64_t now = pyri_object_now(o);
    pyri_buf_u64(out, h.latest);
    pyri_buf_u64(out, h.next);
    pyri_buf_u8(out, (uint8_t)h.ndim);
    add_shape(out, &h, h.shape);
    uint64_t end = pyri_min64(h.next, below);
    for (uint64_t v = pyri_max64(from, h.latest + 1); v < end; v++) {
        flight f;
        if (out->size > PYRI_CLS_PAGE) {
            pyri_buf_u8(out, PYRI_PAGE_MORE);
            return 0;
        }
        if ((err = load_flight(o, &h, v, &f)) < 0)
            return err == PYRI_CLS_NONE ? PYRI_CLS_BAD : err;
        bool dead = !f.complete && now > f.deadline_ns;
        pyri_buf_u8(out, PYRI_PAGE_ITEM);
        pyri_buf_u64(out, v);
        pyri_buf_u8(out, (uint8_t)((f.complete ? PYRI_F_COMPLETE : 0) |
                                   (dead ? PYRI_F_DEAD : 0)));
        pyri_buf_u64(out, f.base);
        pyri_buf_u64(out, pyri_load64(f.id));
        pyri_buf_u64(out, f.taker);
        add_shape(out, &h, f.shape);
        pyri_buf_varint(out, f.claim.size);
        if (f.claim.size)
            pyri_buf_add(out, f.claim.data, f.claim.size);
        pyri_buf_fini(&f.bytes);
    }
    pyri_buf_u8(out, PYRI_PAGE_END);
    return 0;
}
