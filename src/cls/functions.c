/*
 * cls/functions.c - functions of cells, run where the cells are.
 *
 * A computed blob is put into the object of those that it was computed from: a
 * method reaches no other object, and no cell leaves the OSD. What the client
 * must know of it may be more than a method that writes can answer; then it is
 * kept beside the blob until the blob goes, and "made" tells it. Where it fits,
 * nothing is kept: keys are what a write of an OSD costs beside its cells.
 */
#include "base/fail.h"
#include "base/scratch.h"
#include "cls/brief.h"
#include "cls/work.h"

#include <string.h>

static void
describe(const pyri_frag *f, const pyri_summary *sum, pyr_type type,
         pyri_buf *out)
{
    uint8_t bytes[PYRI_SUMMARY_BYTES];
    pyri_summary_encode(sum, type, bytes);
    pyri_buf_u64(out, f->ref[1]); /* its place */
    pyri_buf_u64(out, f->stored);
    pyri_buf_u64(out, f->check);
    pyri_buf_u64(out, f->cells.lo);
    pyri_buf_u64(out, f->cells.hi);
    pyri_buf_add(out, bytes, sizeof bytes);
}

/* What is too much for the answer is kept for "made". */
static int
keep(pyri_object *o, uint64_t number, const pyri_frag *f,
     const pyri_summary *sum, pyr_type type)
{
    pyri_okey key = pyri_okey_of('D', number);
    pyri_buf b = {0};
    describe(f, sum, type, &b);
    int err = b.failed ? -ENOMEM
                       : pyri_object_set(o, pyri_okey_bytes(&key),
                                         (pyri_bytes){b.data, b.size});
    pyri_buf_fini(&b);
    return err;
}

/* What the client is told, and whether that is all that it must know. */
static bool
answer(const pyri_frag *f, const pyri_summary *sum, pyr_type type,
       pyri_buf *out)
{
    pyri_buf b = {0};
    bool all = f->kind == PYRI_FRAG_SAME;
    if (all) {
        pyri_buf_u8(out, PYRI_MADE_SAME);
        pyri_buf_u64(out, f->bits);
    } else if (pyri_brief_encode(f, type, sum, &b) && !b.failed) {
        pyri_buf_u8(out, PYRI_MADE_BRIEF);
        pyri_buf_add(out, b.data, b.size);
        all = true;
    } else {
        pyri_buf_u8(out, PYRI_MADE_BLOB);
    }
    pyri_buf_fini(&b);
    return all;
}

/* Is it this very blob that an earlier request has put at a place? Its head
 * has the checksums of all its cells. PYRI_CLS_THERE if it is another. */
static int
compare(pyri_object *o, uint32_t at, const pyri_packer *k)
{
    size_t size = k->iov[0].iov_len;
    uint8_t *head = pyri_scratch_take(size);
    int err = head ? o->ops->read(o->ctx, (uint64_t)at * PYRI_SLOT_UNIT, size,
                                  head)
                   : -ENOMEM;
    if (err == 0 && memcmp(head, k->iov[0].iov_base, size) != 0)
        err = PYRI_CLS_THERE;
    pyri_scratch_give(head);
    return err;
}

/* A blob goes where there is a place, or, without slots, becomes the one that
 * the object is made for. One that is there already stays. */
static int
put(pyri_object *o, pyri_slots *s, const pyri_work *w, uint64_t number,
    pyri_packer *k, pyri_frag *f, const pyri_summary *sum, pyri_buf *out)
{
    const pyri_slot *there = s ? pyri_slots_find(s, number) : NULL;
    uint32_t at = there ? there->at : 0;
    int err = 0;
    if (there)
        err = compare(o, at, k);
    else if (s)
        err = pyri_slots_add(s, number, k->size, &at);
    if (err < 0)
        return err;
    f->ref[1] = at;
    if (!answer(f, sum, w->style.type, out) && !there)
        err = keep(o, number, f, sum, w->style.type);
    if (there || err < 0)
        return err;
    if (s && (err = pyri_slots_save(o, s)) < 0)
        return err;
    pyri_work_join(w, k);
    return o->ops->write(o->ctx, (uint64_t)at * PYRI_SLOT_UNIT, k->iov,
                         k->niov);
}

/* The sources are there: run, pack, put. */
static int
run(pyri_object *o, pyri_slots *s, pyri_work *w, uint64_t number,
    pyri_buf *out)
{
    pyri_packer k = {0};
    pyri_frag f = {.kind = PYRI_FRAG_SAME};
    pyri_summary sum;
    pyri_summary_init(&sum);
    int err = pyri_work_run(o, w);
    if (err < 0)
        return err;
    pyri_mem mem = pyri_mem_dense(w->style.ndim,
                                  pyri_type_size(w->style.type), &w->box,
                                  w->result);
    if (pyri_frag_pack(&k, &w->style, &w->box, mem, NULL, 0, &f, &sum) < 0)
        err = -ENOMEM;
    if (err == 0 && f.kind == PYRI_FRAG_SAME)
        answer(&f, &sum, w->style.type, out);
    else if (err == 0)
        err = put(o, s, w, number, &k, &f, &sum, out);
    pyri_packer_fini(&k);
    return err;
}

/*
 * compute: asks the number of the new blob (8) and the work. Answers a
 * PYRI_MADE_... and what belongs to it. Repeated with the same number it
 * computes again and answers the same, but changes nothing; PYRI_CLS_THERE if
 * the number is that of another blob. PYRI_CLS_FULL, PYRI_CLS_NONE, PYRI_CLS_BAD: the client does
 * it itself.
 */
int
pyri_cls_compute(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_slots s;
    pyri_work w = {.bytes = 0};
    uint64_t number = pyri_cursor_u64(in);
    int err = pyri_work_decode(in, &w);
    if (err == 0 && number == 0)
        err = PYRI_CLS_BAD;
    if (err == 0)
        err = pyri_slots_load(o, &s);
    if (err == 0 && (err = pyri_work_load(o, &s, &w)) == 0)
        err = run(o, &s, &w, number, out);
    pyri_work_fini(&w);
    return err;
}

/*
 * store: the blob that the object is made for, of cells that come along. Asks:
 * cells (a string), dense, and the work, which has x for its only source and no
 * pieces. Answers as compute, with place 0; "made" knows it as number 0.
 */
int
pyri_cls_store(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_work w = {.bytes = 0};
    pyri_bytes cells = pyri_cursor_str(in);
    uint64_t size = 0;
    pyri_slots s;
    int err = pyri_work_decode(in, &w);
    if (err == 0 && (w.npieces || w.programs[0].sources > 1 ||
                     cells.size != w.bytes))
        err = PYRI_CLS_BAD;
    if (err == 0 && o->ops->size(o->ctx, &size) == 0 &&
        (err = pyri_slots_load(o, &s)) == 0 && s.n)
        err = PYRI_CLS_THERE; /* others count on what is there */
    w.src[0] = cells.data;
    if (err == 0)
        err = run(o, NULL, &w, 0, out);
    pyri_work_fini(&w);
    return err;
}

/* made: what is known of a computed blob, if PYRI_MADE_BLOB was answered. Asks:
 * its number. Answers: place, bytes of payload, checksum of the head, digest,
 * summary. */
int
pyri_cls_made(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_okey key = pyri_okey_of('D', pyri_cursor_u64(in));
    int err = pyri_cursor_done(in);
    return err < 0 ? err : pyri_object_get(o, pyri_okey_bytes(&key), out);
}

/* reduce: asks the reduction, as op/ encodes it (a string), and the work.
 * Answers the result of these cells, likewise. */
int
pyri_cls_reduce(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    pyri_slots s;
    pyri_work w = {.bytes = 0};
    pyri_bytes how = pyri_cursor_str(in);
    int err = pyri_work_decode(in, &w);
    if (err == 0 && w.nprograms > 1)
        err = PYRI_CLS_BAD;
    if (err == 0)
        err = pyri_slots_load(o, &s);
    if (err == 0)
        err = pyri_work_load(o, &s, &w);
    if (err == 0)
        switch (pyri_serve_run(how, &w.programs[0], w.style.ndim, &w.box,
                               w.src, out)) {
        case 0: break;
        case PYR_ENOMEM: err = -ENOMEM; break;
        default: err = PYRI_CLS_BAD;
        }
    pyri_work_fini(&w);
    return err;
}

/* --- for people ---------------------------------------------------------- */

static const pyri_bytes TALLY = {"@T", 2};

static int
load_tally(pyri_object *o, uint64_t *there, uint64_t *here)
{
    pyri_buf b = {0};
    int err = pyri_object_get(o, TALLY, &b);
    pyri_cursor c = pyri_cursor_of(b.data, err == 0 ? b.size : 0);
    *there = err == 0 ? pyri_cursor_u64(&c) : 0;
    *here = err == 0 ? pyri_cursor_u64(&c) : 0;
    if (err == 0)
        err = pyri_cursor_done(&c);
    pyri_buf_fini(&b);
    return err == PYRI_CLS_NONE ? 0 : err;
}

/* tally: add to the bytes that functions ran on (8), and to those that went to
 * clients for one (8). */
int
pyri_cls_tally(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    uint64_t there, here;
    pyri_buf b = {0};
    int err = load_tally(o, &there, &here);
    (void)out;
    pyri_buf_u64(&b, there + pyri_cursor_u64(in));
    pyri_buf_u64(&b, here + pyri_cursor_u64(in));
    if (err == 0)
        err = b.failed ? -ENOMEM : pyri_cursor_done(in);
    if (err == 0)
        err = pyri_object_set(o, TALLY, (pyri_bytes){b.data, b.size});
    pyri_buf_fini(&b);
    return err;
}

int
pyri_cls_tallied(pyri_object *o, pyri_cursor *in, pyri_buf *out)
{
    uint64_t there, here;
    int err = pyri_cursor_done(in);
    if (err < 0 || (err = load_tally(o, &there, &here)) < 0)
        return err;
    pyri_buf_u64(out, there);
    pyri_buf_u64(out, here);
    return 0;
}
