/*
 * engine/rados/rados_errands.c - functions that run inside OSDs.
 *
 * A class method reaches one object. So an errand is done there if all its
 * fragments are in one object, and what is computed goes into that object,
 * too: then the next errand finds it beside them. All others are left to the
 * caller, as are those that the class refuses: because the object is full, the
 * work too much, or a blob not what it should be, which the caller will then
 * tell in its own words.
 *
 * Cells that are not stored yet, on their way through handlers, come along with
 * their errand and make an object of their own ("store").
 *
 *   intend    what may come to be, on the list of our session: one call
 *   compute   one call per errand; the blob is durable when it answers
 *   made      what is to be known of it, if that is more than 64 bytes
 */
#include "engine/rados/rados.h"

#include "base/sys.h"
#include "chunk/errand.h"
#include "cls/brief.h"

#include <stdlib.h>
#include <string.h>

typedef struct sent {
    pyri_errand *errand;
    uint64_t object; /* number */
    uint64_t home;   /* b of refs there; 0: an object of its own */
    uint64_t number; /* of the blob that is made */
    bool blob;       /* there is one, */
    bool known;      /* and what there is to know of it */
} sent;

/* --- which, and where ---------------------------------------------------- */

static bool
fits(const pyri_errand *e)
{
    uint64_t cells = pyri_box_cells(e->style->ndim, &e->box);
    return e->style->codec == PYR_CODEC_NONE && !(e->cells && e->npieces) &&
           e->npieces <= PYRI_WORK_PIECES &&
           e->nprograms <= PYRI_WORK_PROGRAMS &&
           cells <= PYRI_WORK_BYTES / pyri_type_size(e->style->type);
}

/* The one object that all its fragments are in, or 0. */
static uint64_t
object_of(const pyri_errand *e)
{
    uint64_t object = 0;
    if (!fits(e))
        return 0;
    for (size_t i = 0; i < e->npieces; i++) {
        const pyri_frag *f = e->pieces[i].frag;
        if (f->kind == PYRI_FRAG_SAME)
            continue;
        uint64_t there =
            pyri_rblobs_place((pyri_ref){f->ref[0], f->ref[1]}).number;
        if (f->kind != PYRI_FRAG_PLAIN || f->masked ||
            f->stored > PYRI_WORK_BYTES || (object && there != object) ||
            pyri_frag_blob_size(f) > PYRI_RADOS_PART)
            return 0;
        object = there;
    }
    return object && pyri_rblobs_home(object) ? object : 0;
}

/* --- what is asked ------------------------------------------------------- */

static void
add_box(pyri_buf *b, int ndim, const pyri_box *box)
{
    for (int d = 0; d < ndim; d++) {
        pyri_buf_varint(b, box->lo[d]);
        pyri_buf_varint(b, box->hi[d]);
    }
}

static void
add_piece(pyri_buf *b, int ndim, const pyri_errand_piece *p)
{
    const pyri_frag *f = p->frag;
    bool same = f->kind == PYRI_FRAG_SAME;
    pyri_buf_u8(b, (uint8_t)p->source);
    pyri_buf_u8(b, same);
    add_box(b, ndim, &p->shown);
    if (same) {
        pyri_buf_u64(b, f->bits);
        return;
    }
    add_box(b, ndim, &f->box);
    pyri_rplace place = pyri_rblobs_place((pyri_ref){f->ref[0], f->ref[1]});
    pyri_buf_varint(b, place.at / PYRI_SLOT_UNIT);
    pyri_buf_varint(b, f->stored);
    pyri_buf_u64(b, f->check);
}

static void
add_bytes(pyri_buf *b, pyri_bytes bytes)
{
    pyri_buf_varint(b, bytes.size);
    pyri_buf_add(b, bytes.data, bytes.size);
}

/* The layout is in cls/work.h. */
static void
add_work(pyri_buf *b, const pyri_errand *e)
{
    const pyri_frag_style *s = e->style;
    pyri_buf_u64(b, s->array);
    pyri_buf_u8(b, (uint8_t)s->ndim);
    pyri_buf_u8(b, (uint8_t)s->type);
    pyri_buf_u64(b, s->fill);
    add_box(b, s->ndim, &e->box);
    pyri_buf_u8(b, (uint8_t)e->nprograms);
    for (int i = 0; i < e->nprograms; i++)
        add_bytes(b, e->programs[i]);
    pyri_buf_varint(b, e->npieces);
    for (size_t i = 0; i < e->npieces; i++)
        add_piece(b, s->ndim, &e->pieces[i]);
}

static pyri_bytes
cells_of(const pyri_errand *e)
{
    return (pyri_bytes){e->cells,
                        (size_t)pyri_box_cells(e->style->ndim, &e->box) *
                            pyri_type_size(e->style->type)};
}

/* Is it a refusal that leaves the errand to the caller? */
static bool
is_left(int result)
{
    return result == PYRI_CLS_FULL || result == PYRI_CLS_NONE ||
           result == PYRI_CLS_BAD || result == PYRI_CLS_NO_OBJECT ||
           result == -EOPNOTSUPP || result == -ENOMEM;
}

/* --- computing ----------------------------------------------------------- */

/* Give each a number, and note where it will be. */
static int
intend(pyri_cluster *s, sent *list, size_t n)
{
    pyri_blob *blobs = pyri_sys_malloc((n + 1) * sizeof *blobs);
    int err = blobs ? 0 : pyri_fail_nomem("a computed version");
    size_t k = 0;
    for (size_t i = 0; i < n && err == 0; i++) {
        err = pyri_session_number(s, &list[i].number);
        if (list[i].home)
            blobs[k++] = (pyri_blob){{list[i].number, list[i].home}, 0};
        else
            list[i].object = list[i].number; /* found by its number */
    }
    if (err == 0)
        err = pyri_rblobs_intend(s, blobs, k);
    free(blobs);
    return err;
}

/* They did not come to be, or have no blob: take them off the list. */
static int
renounce(pyri_cluster *s, const sent *list, size_t n)
{
    pyri_blob *blobs = pyri_sys_malloc((n + 1) * sizeof *blobs);
    size_t gone = 0;
    if (!blobs)
        return pyri_fail_nomem("a computed version");
    for (size_t i = 0; i < n; i++)
        if (!list[i].blob && list[i].home)
            blobs[gone++] = (pyri_blob){{list[i].number, list[i].home}, 0};
    int err = pyri_rblobs_renounce(s, blobs, gone);
    free(blobs);
    return err;
}

static void
take_same(pyri_errand *e, uint64_t bits)
{
    pyri_summary_init(&e->sum);
    pyri_frag_same(e->style, &e->box, bits, &e->frag, &e->sum);
    e->done = true;
}

/* What was made, if it makes sense; `f` has the place in ref[1]. */
static int
take_blob(const pyri_call *c, const pyri_frag *f, const pyri_summary *sum,
          sent *x)
{
    pyri_errand *e = x->errand;
    uint8_t bytes[PYRI_SUMMARY_BYTES];
    uint64_t cells = pyri_box_cells(e->style->ndim, &e->box);
    uint64_t place = f->ref[1];
    pyri_summary_encode(sum, e->style->type, bytes);
    if ((place == 0) != (x->home == 0) || place >> PYRI_RADOS_PLACE_BITS ||
        sum->count != cells ||
        f->stored != cells * pyri_type_size(e->style->type) ||
        pyri_summary_decode(&e->sum, e->style->type, bytes) < 0)
        return pyri_rados_garbled(c);
    e->frag = *f;
    pyri_box_copy(e->style->ndim, &e->frag.box, &e->box);
    e->frag.ref[0] = x->number;
    e->frag.ref[1] = x->home | place;
    e->done = true;
    x->known = true;
    return 0;
}

static int
take_answer(const pyri_call *c, pyri_cursor answer, sent *x)
{
    pyri_errand *e = x->errand;
    uint64_t cells = pyri_box_cells(e->style->ndim, &e->box);
    pyri_frag f;
    pyri_summary sum;
    uint8_t what = pyri_cursor_u8(&answer);
    x->blob = what != PYRI_MADE_SAME;
    switch (what) {
    case PYRI_MADE_SAME: take_same(e, pyri_cursor_u64(&answer)); break;
    case PYRI_MADE_BLOB: break;
    case PYRI_MADE_BRIEF:
        if (pyri_brief_decode(&answer, e->style->type, cells, &f, &sum))
            return take_blob(c, &f, &sum, x);
        return pyri_rados_garbled(c);
    default: answer.failed = true;
    }
    return answer.failed ? pyri_rados_garbled(c) : 0;
}

static int
send_all(pyri_cluster *s, sent *list, size_t n)
{
    pyri_calls calls = {0};
    char oid[PYRI_RADOS_OID];
    int err = 0;
    for (size_t i = 0; i < n && err == 0; i++) {
        pyri_rblobs_oid(oid, list[i].object, 0);
        const pyri_errand *e = list[i].errand;
        pyri_call *c = pyri_calls_add(&calls, e->cells ? "store" : "compute",
                                      true, oid);
        if (!c) {
            err = pyri_fail_nomem("a computed version");
            break;
        }
        if (e->cells)
            add_bytes(&c->in, cells_of(e));
        else
            pyri_buf_u64(&c->in, list[i].number);
        add_work(&c->in, e);
    }
    if (err == 0)
        err = pyri_calls_run(s, calls.list, calls.n);
    for (size_t i = 0; i < calls.n && err == 0; i++) {
        pyri_call *c = &calls.list[i];
        if (c->result == 0)
            err = take_answer(c, c->answer, &list[i]);
        else if (!is_left(c->result))
            err = pyri_rados_fail(s, c->result, "computing cells");
    }
    pyri_calls_fini(&calls);
    return err;
}

static int
take_made(const pyri_call *c, pyri_cursor answer, sent *x)
{
    pyri_frag f = {.kind = PYRI_FRAG_PLAIN};
    pyri_summary sum;
    f.ref[1] = pyri_cursor_u64(&answer);
    f.stored = pyri_cursor_u64(&answer);
    f.check = pyri_cursor_u64(&answer);
    f.cells.lo = pyri_cursor_u64(&answer);
    f.cells.hi = pyri_cursor_u64(&answer);
    const uint8_t *bytes = pyri_cursor_take(&answer, PYRI_SUMMARY_BYTES);
    if (!bytes ||
        pyri_summary_decode(&sum, x->errand->style->type, bytes) < 0)
        return pyri_rados_garbled(c);
    return take_blob(c, &f, &sum, x);
}

static int
ask_made(pyri_cluster *s, sent *list, size_t n)
{
    pyri_calls calls = {0};
    char oid[PYRI_RADOS_OID];
    int err = 0;
    for (size_t i = 0; i < n && err == 0; i++) {
        if (!list[i].blob || list[i].known)
            continue;
        pyri_rblobs_oid(oid, list[i].object, 0);
        pyri_call *c = pyri_calls_add(&calls, "made", false, oid);
        if (c)
            pyri_buf_u64(&c->in, list[i].home ? list[i].number : 0);
        else
            err = pyri_fail_nomem("a computed version");
    }
    if (err == 0)
        err = pyri_calls_run(s, calls.list, calls.n);
    for (size_t i = 0, k = 0; i < n && err == 0; i++) {
        if (!list[i].blob || list[i].known)
            continue;
        const pyri_call *c = &calls.list[k++];
        err = c->result < 0 ? pyri_rados_fail(s, c->result, "computed cells")
                            : take_made(c, c->answer, &list[i]);
    }
    pyri_calls_fini(&calls);
    return err;
}

/* From now on they are blobs that were put. */
static int
note_all(pyri_cluster *s, const sent *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!list[i].blob)
            continue;
        const pyri_frag *f = &list[i].errand->frag;
        pyri_runnamed *u = pyri_sys_calloc(1, sizeof *u);
        if (!u)
            return pyri_fail_nomem("a computed version");
        *u = (pyri_runnamed){.number = list[i].number,
                             .home = f->ref[1],
                             .size = pyri_frag_blob_size(f),
                             .site = s};
        pyri_rblobs_note(s, u);
    }
    return 0;
}

/* Those that have an object. */
static size_t
sort_out(pyri_errand *errands, size_t n, sent *list)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t object = object_of(&errands[i]);
        if (errands[i].cells && fits(&errands[i]))
            list[k++] = (sent){.errand = &errands[i]};
        else if (object)
            list[k++] = (sent){.errand = &errands[i],
                               .object = object,
                               .home = pyri_rblobs_home(object)};
    }
    return k;
}

/* What was made and will not be known of goes again. */
static void
undo(pyri_cluster *s, pyri_errand *errands, size_t n, const sent *list,
     size_t sent_n)
{
    for (size_t i = 0; i < n; i++)
        errands[i].done = false;
    for (size_t i = 0; i < sent_n; i++) {
        pyri_blob blob = {{list[i].number, list[i].home}, 0};
        pyri_rblobs_forget(s, list[i].number);
        if (list[i].number)
            pyri_rblobs_remove(s, &blob, 1);
    }
}

int
pyri_rados_compute(pyri_engine *e, pyri_errand *errands, size_t n)
{
    pyri_cluster *s = pyri_cluster_of(e);
    int err = pyri_cluster_check(s);
    sent *list = pyri_sys_calloc(n + 1, sizeof *list);
    if (!list && err == 0)
        err = pyri_fail_nomem("a computed version");
    size_t k = err == 0 ? sort_out(errands, n, list) : 0;
    if (k == 0) {
        free(list);
        return err;
    }
    err = intend(s, list, k);
    if (err == 0)
        err = send_all(s, list, k);
    if (err == 0)
        err = ask_made(s, list, k);
    if (err == 0)
        err = note_all(s, list, k);
    if (err == 0)
        err = renounce(s, list, k);
    if (err < 0)
        undo(s, errands, n, list, k);
    free(list);
    return err;
}

/* --- reducing ------------------------------------------------------------ */

int
pyri_rados_reduce(pyri_engine *e, pyri_reader *r, pyri_errand *errands,
                  size_t n)
{
    pyri_cluster *s = pyri_cluster_of(e);
    pyri_calls calls = {0};
    char oid[PYRI_RADOS_OID];
    int err = pyri_cluster_check(s);
    sent *list = pyri_sys_calloc(n + 1, sizeof *list);
    if (!list && err == 0)
        err = pyri_fail_nomem("a reduction");
    size_t k = err == 0 ? sort_out(errands, n, list) : 0;
    for (size_t i = 0; i < k && err == 0; i++) {
        pyri_rblobs_oid(oid, list[i].object, 0);
        pyri_call *c = pyri_calls_add(&calls, "reduce", false, oid);
        if (c) {
            add_bytes(&c->in, list[i].errand->reduction);
            add_work(&c->in, list[i].errand);
        } else {
            err = pyri_fail_nomem("a reduction");
        }
    }
    if (err == 0)
        err = pyri_calls_run(s, calls.list, calls.n);
    for (size_t i = 0; i < calls.n && err == 0; i++) {
        pyri_call *c = &calls.list[i];
        pyri_errand *x = list[i].errand;
        pyri_bytes answer = {c->answer.at,
                             (size_t)(c->answer.end - c->answer.at)};
        if (c->result < 0 && !is_left(c->result))
            err = pyri_rados_fail(s, c->result, "reducing cells");
        else if (c->result == 0)
            err = pyri_rados_copy(r, answer, &x->answer);
        x->done = c->result == 0 && err == 0;
    }
    pyri_calls_fini(&calls);
    free(list);
    return err;
}

/* --- for people ---------------------------------------------------------- */

static const int64_t TELL_NS = 1000000000; /* at most so often */

/* Who may not write is not counted. */
void
pyri_tally_flush(pyri_cluster *s)
{
    pyri_call c;
    pthread_mutex_lock(&s->lock);
    uint64_t there = s->there, here = s->here;
    s->there = s->here = 0;
    s->told = pyri_rados_now();
    pthread_mutex_unlock(&s->lock);
    if (there + here == 0)
        return;
    pyri_call_begin(&c, "tally", true, PYRI_RADOS_TALLY);
    pyri_buf_u64(&c.in, there);
    pyri_buf_u64(&c.in, here);
    pyri_call_run(s, &c);
    pyri_call_fini(&c);
}

void
pyri_rados_tally(pyri_engine *e, uint64_t there, uint64_t here)
{
    pyri_cluster *s = pyri_cluster_of(e);
    if (e->readonly || pyri_cluster_check(s) < 0)
        return;
    pthread_mutex_lock(&s->lock);
    s->there += there;
    s->here += here;
    bool late = pyri_rados_now() - s->told > TELL_NS;
    pthread_mutex_unlock(&s->lock);
    if (late)
        pyri_tally_flush(s);
}

void
pyri_tally_get(pyri_cluster *s, uint64_t *there, uint64_t *here)
{
    pyri_call c;
    pyri_call_begin(&c, "tallied", false, PYRI_RADOS_TALLY);
    pyri_call_run(s, &c); /* none is there: nothing was counted */
    *there = pyri_cursor_u64(&c.answer);
    *here = pyri_cursor_u64(&c.answer);
    pyri_call_fini(&c);
    pthread_mutex_lock(&s->lock);
    *there += s->there;
    *here += s->here;
    pthread_mutex_unlock(&s->lock);
}
