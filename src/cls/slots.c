/*
 * cls/slots.c - the blobs in one object.
 *
 *   "@S"      the table: layout 1 (1), is the original wanted (1), next place
 *             (4), how many (2); of each: number (8), place (4), size (4), both
 *             in units of 4096 bytes
 *   'D' NUMBER  what "compute" found out about a blob, for "made", if it was too
 *             much for an answer
 *
 * An object without a table holds the blob that it was made for, and no other:
 * most are such, and cost nothing. Blobs come and go by themselves. The space
 * of one that goes is given back by a hole; the last one takes the object with
 * it. A place is not used twice, so that a name never means two things.
 */
#include "cls/slots.h"

#include <string.h>

enum { LAYOUT = 1 };

static const pyri_bytes TABLE = {"@S", 2};

static uint32_t
units_of(uint64_t bytes)
{
    return (uint32_t)((bytes + PYRI_SLOT_UNIT - 1) / PYRI_SLOT_UNIT);
}

static int
decode(pyri_cursor *c, pyri_slots *s)
{
    uint8_t layout = pyri_cursor_u8(c), original = pyri_cursor_u8(c);
    s->original = original != 0;
    s->next = pyri_cursor_u32(c);
    s->n = pyri_cursor_u16(c);
    if (layout != LAYOUT || original > 1 || s->n > PYRI_SLOTS)
        return PYRI_CLS_BAD;
    for (uint32_t i = 0; i < s->n; i++) {
        pyri_slot *slot = &s->list[i];
        slot->number = pyri_cursor_u64(c);
        slot->at = pyri_cursor_u32(c);
        slot->units = pyri_cursor_u32(c);
        if (slot->at > s->next || slot->units > s->next - slot->at)
            return PYRI_CLS_BAD;
    }
    return pyri_cursor_done(c);
}

int
pyri_slots_load(pyri_object *o, pyri_slots *s)
{
    pyri_buf b = {0};
    uint64_t size;
    memset(s, 0, sizeof *s);
    int err = o->ops->size(o->ctx, &size);
    if (err < 0)
        return err;
    err = pyri_object_get(o, TABLE, &b);
    if (err == PYRI_CLS_NONE) {
        s->original = true;
        s->next = size < UINT32_MAX ? units_of(size) : UINT32_MAX;
        err = 0;
    } else if (err == 0) {
        pyri_cursor c = pyri_cursor_of(b.data, b.size);
        err = decode(&c, s);
    }
    pyri_buf_fini(&b);
    return err;
}

int
pyri_slots_save(pyri_object *o, const pyri_slots *s)
{
    pyri_buf b = {0};
    pyri_buf_u8(&b, LAYOUT);
    pyri_buf_u8(&b, s->original);
    pyri_buf_u32(&b, s->next);
    pyri_buf_u16(&b, (uint16_t)s->n);
    for (uint32_t i = 0; i < s->n; i++) {
        pyri_buf_u64(&b, s->list[i].number);
        pyri_buf_u32(&b, s->list[i].at);
        pyri_buf_u32(&b, s->list[i].units);
    }
    int err = b.failed
                  ? -ENOMEM
                  : pyri_object_set(o, TABLE, (pyri_bytes){b.data, b.size});
    pyri_buf_fini(&b);
    return err;
}

const pyri_slot *
pyri_slots_find(const pyri_slots *s, uint64_t number)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->list[i].number == number)
            return &s->list[i];
    return NULL;
}

bool
pyri_slots_has(const pyri_slots *s, uint32_t at, uint64_t size)
{
    if (at == 0)
        return s->original;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->list[i].at == at)
            return units_of(size) <= s->list[i].units;
    return false;
}

int
pyri_slots_add(pyri_slots *s, uint64_t number, uint64_t size, uint32_t *at)
{
    const uint32_t most = PYRI_OBJECT_BYTES / PYRI_SLOT_UNIT;
    if (s->n == PYRI_SLOTS || size > PYRI_OBJECT_BYTES || s->next > most ||
        units_of(size) > most - s->next)
        return PYRI_CLS_FULL;
    *at = s->next;
    s->list[s->n++] = (pyri_slot){number, s->next, units_of(size)};
    s->next += units_of(size);
    return 0;
}

/* --- giving back --------------------------------------------------------- */

static int
drop_slot(pyri_object *o, pyri_slots *s, const pyri_slot *slot)
{
    pyri_okey key = pyri_okey_of('D', slot->number);
    pyri_slot gone = *slot;
    s->list[slot - s->list] = s->list[s->n - 1];
    s->n--;
    if (!s->original && s->n == 0)
        return 0;
    int err = pyri_object_del(o, pyri_okey_bytes(&key));
    return err < 0 ? err
                   : o->ops->zero(o->ctx, (uint64_t)gone.at * PYRI_SLOT_UNIT,
                                  (uint64_t)gone.units * PYRI_SLOT_UNIT);
}

/* Where the first computed blob begins, which is where the original ended; its
 * hole goes up to there. */
static uint32_t
end_of_original(const pyri_slots *s)
{
    uint32_t end = s->next;
    for (uint32_t i = 0; i < s->n; i++)
        end = s->list[i].at < end ? s->list[i].at : end;
    return end;
}

/*
 * release: a blob is not wanted any more. Asks: its number, or 0 for the one
 * that the object was made for. One that has gone is no failure.
 */
int
pyri_cls_release(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_slots s;
    uint64_t number = pyri_cursor_u64(in);
    int err = pyri_cursor_done(in);
    (void)out;
    if (err < 0 || (err = pyri_slots_load(o, &s)) < 0)
        return err == PYRI_CLS_NO_OBJECT ? 0 : err;
    if (number) {
        const pyri_slot *slot = pyri_slots_find(&s, number);
        if (!slot)
            return 0;
        err = drop_slot(o, &s, slot);
    } else if (!s.original) {
        return 0;
    } else {
        s.original = false;
        if (s.n)
            err = o->ops->zero(o->ctx, 0, (uint64_t)end_of_original(&s) *
                                              PYRI_SLOT_UNIT);
    }
    if (err < 0)
        return err;
    return s.original || s.n ? pyri_slots_save(o, &s) : pyri_object_remove(o);
}
