/*
 * fuzz/work_fuzz.c - requests that a client sends to blobs and functions inside
 * an OSD, one after the other, to one object.
 *
 * Input: is the blob of doubles (1), then up to DEEDS times: what (1), bytes
 * (2), and the bytes: a request without its first byte; or a table of slots to
 * be put in place of the one that is there; or a place (4) and what to change
 * there (1).
 *
 * As long as only requests were sent: what was answered of a blob is so, blobs
 * do not share a byte, and when all are released the object is gone. Once the
 * stored bytes were changed, too, there is an answer, and no more. A request
 * for more than MOST bytes of cells is decoded, not run: it would take long.
 */
#include "fuzz/object.h"

#define REQUIRE(condition) MUST(condition)
#define CHECK(condition) MUST(condition)
#include "cls/brief.h"
#include "cls/tests/memory.h"
#include "cls/work.h"

enum { DEEDS = 6, MOST = 16 << 10 };

static const char *const methods[] = {"compute", "reduce", "store", "made",
                                      "release"};

typedef struct scene {
    memory object;
    bool harmed;
} scene;

/* What an object is; of a large one, its size. */
static uint64_t
look(const memory *m)
{
    uint64_t sum = m->size + m->exists;
    if (m->size <= 1 << 20)
        sum += touch(m->bytes, m->size);
    for (size_t i = 0; i < m->n; i++)
        sum = sum * 31 + touch(m->cells[i].key, m->cells[i].key_size) +
              7 * touch(m->cells[i].value, m->cells[i].value_size);
    return sum;
}

/* --- what comes out ------------------------------------------------------ */

/* What is known of a blob fits what lies in the object. */
static void
check_blob(scene *s, const pyri_work *w, const pyri_frag *told,
           const pyri_summary *sum)
{
    pyri_buf room = {0};
    pyri_summary own;
    pyri_frag f = *told;
    uint64_t at = told->ref[1] * PYRI_SLOT_UNIT;
    f.box = w->box;
    MUST(f.stored == w->bytes);
    MUST(at + pyri_frag_blob_size(&f) <= s->object.size);
    const uint8_t *head = s->object.bytes + at;
    pyri_summary_init(&own);
    MUST(pyri_frag_check(&f, &w->style, head, head + pyri_frag_head_size(&f),
                         &room, &own) == 0);
    MUST(!pyri_summary_differs(w->style.type, &own, sum));
    pyri_buf_fini(&room);
}

static void
check_made(scene *s, uint64_t number, const pyri_work *w)
{
    pyri_frag f = {.kind = PYRI_FRAG_PLAIN};
    pyri_summary sum;
    request q = ask();
    pyri_buf_u64(&q.in, number);
    MUST(call(&s->object, "made", &q) == 0);
    f.ref[1] = pyri_cursor_u64(&q.answer);
    f.stored = pyri_cursor_u64(&q.answer);
    f.check = pyri_cursor_u64(&q.answer);
    f.cells.lo = pyri_cursor_u64(&q.answer);
    f.cells.hi = pyri_cursor_u64(&q.answer);
    const uint8_t *bytes = pyri_cursor_take(&q.answer, PYRI_SUMMARY_BYTES);
    MUST(bytes && pyri_cursor_done(&q.answer) == 0);
    MUST(pyri_summary_decode(&sum, w->style.type, bytes) == 0);
    check_blob(s, w, &f, &sum);
    done(&q);
}

static void
check_answer(scene *s, uint64_t number, const pyri_work *w, pyri_cursor answer)
{
    pyri_frag f;
    pyri_summary sum;
    uint64_t cells = w->bytes / pyri_type_size(w->style.type);
    switch (pyri_cursor_u8(&answer)) {
    case PYRI_MADE_SAME:
        pyri_cursor_u64(&answer);
        MUST(pyri_cursor_done(&answer) == 0);
        break;
    case PYRI_MADE_BRIEF:
        MUST(pyri_brief_decode(&answer, w->style.type, cells, &f, &sum));
        check_blob(s, w, &f, &sum);
        break;
    case PYRI_MADE_BLOB: check_made(s, number, w); break;
    default: MUST(false);
    }
}

/* --- requests ------------------------------------------------------------ */

/* The work in a request, decoded as the method does it. */
static int
decode(int what, pyri_cursor in, uint64_t *number, pyri_work *w)
{
    *number = what == OBJECT_COMPUTE ? pyri_cursor_u64(&in) : 0;
    if (what != OBJECT_COMPUTE)
        pyri_cursor_str(&in);
    return pyri_work_decode(&in, w);
}

static void
must_be_known(int err)
{
    MUST(err == 0 || err == PYRI_CLS_NONE || err == PYRI_CLS_THERE ||
         err == PYRI_CLS_BAD || err == PYRI_CLS_FULL ||
         err == PYRI_CLS_NO_OBJECT);
}

static void
send(scene *s, int what, pyri_bytes bytes)
{
    uint64_t number = 0, before = look(&s->object);
    pyri_work w = {.bytes = 0};
    pyri_cursor in = pyri_cursor_of(bytes.data, bytes.size);
    bool works = what <= OBJECT_STORE;
    if (works)
        must_be_known(decode(what, in, &number, &w));
    if (w.bytes <= MOST) {
        request q = ask();
        pyri_buf_add(&q.in, bytes.data, bytes.size);
        int err = call(&s->object, methods[what], &q);
        must_be_known(err);
        if (err < 0)
            MUST(look(&s->object) == before);
        else if (what != OBJECT_REDUCE && works && !s->harmed)
            check_answer(s, number, &w, q.answer);
        touch(q.out.data, q.out.size);
        done(&q);
    }
    pyri_work_fini(&w);
}

/* --- harm ---------------------------------------------------------------- */

static void
put_table(scene *s, pyri_bytes bytes)
{
    pyri_bytes key = {"@S", 2};
    s->harmed = true;
    if (s->object.exists)
        memory_set(&s->object, &key, &bytes, 1);
}

static void
change(scene *s, pyri_bytes bytes)
{
    pyri_cursor c = pyri_cursor_of(bytes.data, bytes.size);
    uint32_t at = pyri_cursor_u32(&c);
    uint8_t bits = pyri_cursor_u8(&c);
    s->harmed = true;
    if (s->object.size)
        s->object.bytes[at % s->object.size] ^= bits;
}

/* --- the object ---------------------------------------------------------- */

static void
begin(scene *s, pyr_type type)
{
    pyri_packer k;
    pyri_frag f;
    *s = (scene){.object.now = 1};
    object_pack(type, &k, &f);
    memory_write(&s->object, 0, k.iov, k.niov);
    pyri_packer_fini(&k);
}

static void
check_places(const pyri_slots *t)
{
    for (uint32_t i = 0; i < t->n; i++) {
        MUST(t->list[i].at + t->list[i].units <= t->next);
        for (uint32_t k = 0; k < i; k++) {
            const pyri_slot *a = &t->list[i], *b = &t->list[k];
            MUST(a->number != b->number);
            MUST(a->at + a->units <= b->at || b->at + b->units <= a->at);
        }
    }
}

static void
give_back(scene *s, uint64_t number)
{
    request q = ask();
    pyri_buf_u64(&q.in, number);
    MUST(call(&s->object, "release", &q) == 0);
    done(&q);
}

/* All that is there is listed, and goes. */
static void
end(scene *s)
{
    pyri_slots t;
    pyri_object o = {.ops = &memory_ops, .ctx = &s->object};
    if (!s->harmed && s->object.exists) {
        MUST(pyri_slots_load(&o, &t) == 0);
        check_places(&t);
        give_back(s, 0);
        for (uint32_t i = 0; i < t.n; i++) {
            MUST(s->object.exists);
            give_back(s, t.list[i].number);
        }
        MUST(!s->object.exists);
    }
    pyri_object_fini(&o);
    memory_remove(&s->object);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_size)
{
    scene s;
    pyri_cursor in = pyri_cursor_of(data, data_size);
    begin(&s, pyri_cursor_u8(&in) & 1 ? PYR_F64 : PYR_I16);
    for (int i = 0; i < DEEDS && in.at < in.end; i++) {
        int what = take_below(&in, OBJECT_DEEDS);
        size_t size = pyri_cursor_u16(&in), left = (size_t)(in.end - in.at);
        size = size < left ? size : left;
        const uint8_t *from = pyri_cursor_take(&in, size);
        uint8_t *copy = malloc(size); /* a look past its end is noticed */
        if (from && size)
            memcpy(copy, from, size);
        pyri_bytes bytes = {copy, size};
        if (what == OBJECT_TABLE)
            put_table(&s, bytes);
        else if (what == OBJECT_HARM)
            change(&s, bytes);
        else
            send(&s, what, bytes);
        free(copy);
    }
    end(&s);
    return 0;
}
