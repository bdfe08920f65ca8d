/*
 * cls/work.c - a function and the cells that it is sent to.
 *
 * Everything here comes from outside: the request, and the bytes that are
 * stored. Boxes are checked against each other, so that no copy leaves its
 * memory; payloads against checksums that came with the request; programs by
 * op/, again, however often the client has done so.
 */
#include "cls/work.h"

#include "base/checked.h"
#include "base/scratch.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

void
pyri_work_fini(pyri_work *w)
{
    for (int i = 0; i < PYRI_OP_MAX_SOURCES; i++)
        pyri_scratch_give(w->cells[i]);
    free(w->programs);
    free(w->pieces);
    memset(w, 0, sizeof *w);
}

/* --- the request --------------------------------------------------------- */

static void
read_box(pyri_cursor *in, int ndim, pyri_box *b)
{
    memset(b, 0, sizeof *b);
    for (int d = 0; d < ndim; d++) {
        b->lo[d] = pyri_cursor_varint(in);
        b->hi[d] = pyri_cursor_varint(in);
    }
}

/* Bytes of cells in a box; false if it is empty or that is too much. */
static bool
bytes_in(const pyri_frag_style *s, const pyri_box *b, uint64_t *bytes)
{
    return !pyri_box_empty(s->ndim, b) &&
           pyri_mul64(pyri_box_cells(s->ndim, b), pyri_type_size(s->type),
                      bytes) &&
           *bytes <= PYRI_WORK_BYTES;
}

static int
read_style(pyri_cursor *in, pyri_work *w)
{
    pyri_frag_style *s = &w->style;
    uint64_t bytes;
    s->array = pyri_cursor_u64(in);
    s->ndim = pyri_cursor_u8(in);
    s->type = (pyr_type)pyri_cursor_u8(in);
    s->fill = pyri_cursor_u64(in);
    if (in->failed || s->ndim < 1 || s->ndim > PYR_MAX_DIMS ||
        !pyri_type_valid((int)s->type))
        return PYRI_CLS_BAD;
    read_box(in, s->ndim, &w->box);
    if (in->failed || pyri_box_empty(s->ndim, &w->box))
        return PYRI_CLS_BAD;
    if (!bytes_in(s, &w->box, &bytes))
        return PYRI_CLS_FULL;
    w->bytes = (size_t)bytes;
    return 0;
}

/* Is it a program for such cells, and short enough? */
static int
check_program(const pyri_work *w, int i, uint64_t *ns)
{
    const pyri_program *p = &w->programs[i];
    uint64_t cells = w->bytes / pyri_type_size(w->style.type);
    if (p->cell != w->style.type || p->axes >> w->style.ndim ||
        (i > 0 && p->sources > 1))
        return PYRI_CLS_BAD;
    *ns += (cells / 1000 + 1) * p->cost;
    if (*ns / 1000000 > PYRI_WORK_MS ||
        w->bytes > PYRI_WORK_MEMORY / p->sources)
        return PYRI_CLS_FULL;
    return 0;
}

static int
read_programs(pyri_cursor *in, pyri_work *w)
{
    uint64_t ns = 0;
    int n = pyri_cursor_u8(in), err = 0;
    if (n < 1 || n > PYRI_WORK_PROGRAMS)
        return PYRI_CLS_BAD;
    w->programs = pyri_sys_calloc((size_t)n, sizeof *w->programs);
    if (!w->programs)
        return -ENOMEM;
    w->nprograms = n;
    for (int i = 0; i < n && err == 0; i++) {
        pyri_bytes code = pyri_cursor_str(in);
        if (in->failed ||
            pyri_program_decode(code.data, code.size, &w->programs[i]) < 0)
            return PYRI_CLS_BAD;
        err = check_program(w, i, &ns);
    }
    return err;
}

static int
read_piece(pyri_cursor *in, const pyri_work *w, pyri_piece *p)
{
    int ndim = w->style.ndim;
    uint64_t bytes;
    p->source = pyri_cursor_u8(in);
    p->same = pyri_cursor_u8(in);
    read_box(in, ndim, &p->shown);
    if (in->failed || p->source >= w->programs[0].sources ||
        pyri_box_empty(ndim, &p->shown) ||
        !pyri_box_contains(ndim, &w->box, &p->shown))
        return PYRI_CLS_BAD;
    if (p->same) {
        p->bits = pyri_cursor_u64(in);
        return in->failed ? PYRI_CLS_BAD : 0;
    }
    p->frag.kind = PYRI_FRAG_PLAIN;
    read_box(in, ndim, &p->frag.box);
    uint64_t at = pyri_cursor_varint(in);
    p->frag.stored = pyri_cursor_varint(in);
    p->frag.check = pyri_cursor_u64(in);
    if (in->failed || at > PYRI_OBJECT_BYTES / PYRI_SLOT_UNIT ||
        !pyri_box_contains(ndim, &p->frag.box, &p->shown))
        return PYRI_CLS_BAD;
    p->at = (uint32_t)at;
    if (!bytes_in(&w->style, &p->frag.box, &bytes))
        return PYRI_CLS_FULL;
    return bytes == p->frag.stored ? 0 : PYRI_CLS_BAD;
}

static int
read_pieces(pyri_cursor *in, pyri_work *w)
{
    uint64_t n = pyri_cursor_varint(in);
    int err = 0;
    if (in->failed || n > PYRI_WORK_PIECES)
        return PYRI_CLS_BAD;
    w->pieces = pyri_sys_calloc((size_t)n + 1, sizeof *w->pieces);
    if (!w->pieces)
        return -ENOMEM;
    w->npieces = (size_t)n;
    for (size_t i = 0; i < w->npieces && err == 0; i++)
        err = read_piece(in, w, &w->pieces[i]);
    return err;
}

int
pyri_work_decode(pyri_cursor *in, pyri_work *w)
{
    int err = read_style(in, w);
    if (err == 0)
        err = read_programs(in, w);
    if (err == 0)
        err = read_pieces(in, w);
    return err < 0 ? err : pyri_cursor_done(in);
}

/* --- cells --------------------------------------------------------------- */

/* Where a cell of the fragment is in its payload. */
static uint64_t
offset_in(const pyri_frag_style *s, const pyri_box *box, const uint64_t *cell)
{
    uint64_t at = 0;
    for (int d = 0; d < s->ndim; d++)
        at = at * (box->hi[d] - box->lo[d]) + (cell[d] - box->lo[d]);
    return at * pyri_type_size(s->type);
}

/* The blocks of payload that hold what is shown: *first is where they begin.
 * The head comes along, and both are verified. Gives *room, scratch that they
 * are in, also if that fails. */
static int
read_payload(pyri_object *o, const pyri_work *w, const pyri_piece *p,
             uint8_t **room, uint64_t *first, const uint8_t **bytes)
{
    const pyri_frag *f = &p->frag;
    uint64_t last[PYR_MAX_DIMS], at = (uint64_t)p->at * PYRI_SLOT_UNIT;
    for (int d = 0; d < w->style.ndim; d++)
        last[d] = p->shown.hi[d] - 1;
    uint64_t from = offset_in(&w->style, &f->box, p->shown.lo);
    uint64_t to = offset_in(&w->style, &f->box, last) +
                  pyri_type_size(w->style.type);
    size_t head = (size_t)pyri_frag_head_size(f);
    *first = from / PYRI_BLOCK * PYRI_BLOCK;
    to = pyri_min64((to + PYRI_BLOCK - 1) / PYRI_BLOCK * PYRI_BLOCK,
                    f->stored);
    size_t size = (size_t)(to - *first);
    *room = pyri_scratch_take(head + size);
    if (!*room)
        return -ENOMEM;
    *bytes = *room + head;
    int err = o->ops->read(o->ctx, at, head + (*first ? 0 : size), *room);
    if (err == 0 && *first)
        err = o->ops->read(o->ctx, at + head + *first, size, *room + head);
    if (err < 0)
        return err;
    uint64_t blocks = (size + PYRI_BLOCK - 1) / PYRI_BLOCK;
    if (pyri_frag_check_head(f, *room) < 0 ||
        pyri_frag_check_blocks(f, *room, *bytes, *first / PYRI_BLOCK,
                               blocks) < 0)
        return PYRI_CLS_BAD;
    return 0;
}

static void
extent_of(int ndim, const pyri_box *b, uint64_t *extent)
{
    for (int d = 0; d < ndim; d++)
        extent[d] = b->hi[d] - b->lo[d];
}

/* Lay a piece over the cells of its source. */
static int
paint(pyri_object *o, pyri_work *w, const pyri_piece *p, uint8_t *cells)
{
    int ndim = w->style.ndim;
    size_t cell = pyri_type_size(w->style.type);
    uint64_t extent[PYR_MAX_DIMS], first;
    const uint8_t *bytes;
    uint8_t *room = NULL;
    pyri_mem to = pyri_mem_move(
        ndim, pyri_mem_dense(ndim, cell, &w->box, cells), w->box.lo,
        p->shown.lo);
    extent_of(ndim, &p->shown, extent);
    if (p->same) {
        pyri_set(ndim, cell, extent, to, p->bits);
        return 0;
    }
    int err = read_payload(o, w, p, &room, &first, &bytes);
    if (err < 0) {
        pyri_scratch_give(room);
        return err;
    }
    pyri_mem from = pyri_mem_dense(ndim, cell, &p->frag.box, NULL);
    uint64_t at = offset_in(&w->style, &p->frag.box, p->shown.lo);
    from.base = (uint8_t *)(uintptr_t)bytes + (at - first);
    pyri_copy(ndim, cell, extent, to, from);
    pyri_scratch_give(room);
    return 0;
}

/* A source that is just one fragment of this very box is used as it was read,
 * behind its head. */
static const pyri_piece *
only_piece(const pyri_work *w, int source)
{
    const pyri_piece *only = NULL;
    for (size_t i = 0; i < w->npieces; i++) {
        const pyri_piece *p = &w->pieces[i];
        if (p->source != source)
            continue;
        if (only || p->same ||
            !pyri_box_equal(w->style.ndim, &p->frag.box, &w->box) ||
            !pyri_box_equal(w->style.ndim, &p->shown, &w->box))
            return NULL;
        only = p;
    }
    return only;
}

static int
load_source(pyri_object *o, pyri_work *w, int source)
{
    const pyri_piece *only = only_piece(w, source);
    const uint8_t *bytes;
    uint64_t first, extent[PYR_MAX_DIMS];
    int err = 0, ndim = w->style.ndim;
    if (only) {
        err = read_payload(o, w, only, &w->cells[source], &first, &bytes);
        w->src[source] = bytes;
        return err;
    }
    uint8_t *cells = w->cells[source] = pyri_scratch_take(w->bytes);
    if (!cells)
        return -ENOMEM;
    size_t cell = pyri_type_size(w->style.type);
    extent_of(ndim, &w->box, extent);
    pyri_set(ndim, cell, extent, pyri_mem_dense(ndim, cell, &w->box, cells),
             w->style.fill);
    for (size_t i = 0; i < w->npieces && err == 0; i++)
        if (w->pieces[i].source == source)
            err = paint(o, w, &w->pieces[i], cells);
    w->src[source] = cells;
    return err;
}

int
pyri_work_load(pyri_object *o, const pyri_slots *s, pyri_work *w)
{
    int err = 0;
    for (size_t i = 0; i < w->npieces; i++)
        if (!w->pieces[i].same &&
            !pyri_slots_has(s, w->pieces[i].at,
                            pyri_frag_blob_size(&w->pieces[i].frag)))
            return PYRI_CLS_NONE;
    for (int k = 0; k < w->programs[0].sources && err == 0; k++)
        if (k > 0 || w->programs[0].uses_x)
            err = load_source(o, w, k);
    return err;
}

/* The head of a blob of so many bytes of cells. */
static size_t
head_of(const pyri_work *w)
{
    pyri_frag f = {.kind = PYRI_FRAG_PLAIN, .stored = w->bytes};
    return (size_t)pyri_frag_head_size(&f);
}

int
pyri_work_run(pyri_object *o, pyri_work *w)
{
    const pyri_frag_style *s = &w->style;
    size_t head = head_of(w);
    int err = 0;
    w->room = o->ops->room(o->ctx, head + w->bytes);
    if (!w->room)
        return -ENOMEM;
    w->result = w->room + head;
    for (int i = 0; i < w->nprograms && err == 0; i++) {
        const void *again[PYRI_OP_MAX_SOURCES] = {w->result};
        err = pyri_program_run(&w->programs[i], s->ndim, &w->box,
                               i ? again : w->src, s->type, w->result);
    }
    return err < 0 ? PYRI_CLS_BAD : 0;
}

void
pyri_work_join(const pyri_work *w, pyri_packer *k)
{
    size_t head = head_of(w);
    if (k->niov != 2 || k->iov[0].iov_len != head ||
        k->iov[1].iov_base != w->result || k->iov[1].iov_len != w->bytes)
        return;
    memcpy(w->room, k->iov[0].iov_base, head);
    k->iov[0] = (struct iovec){w->room, head + w->bytes};
    k->niov = 1;
}
