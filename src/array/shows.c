/*
 * array/shows.c - which cells of a chunk each of its fragments shows.
 *
 * The links of a chain are painted over each other, the oldest first, each in
 * a colour of its own.
 */
#include "array/shows.h"

#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

void
pyri_shows_fini(pyri_shows *s)
{
    free(s->owner);
    free(s->also);
    free(s->links);
    *s = (pyri_shows){0};
}

/* --- rows ---------------------------------------------------------------- */

/* The number of a cell of a box, row-major. */
static uint64_t
index_of(int ndim, const pyri_box *box, const uint64_t *at)
{
    uint64_t index = 0;
    for (int d = 0; d < ndim; d++)
        index = index * (box->hi[d] - box->lo[d]) + (at[d] - box->lo[d]);
    return index;
}

/* To the next row of a box; false if it was the last. */
static bool
next_row(int ndim, const pyri_box *box, uint64_t *at)
{
    int d = ndim - 2;
    for (; d >= 0 && ++at[d] == box->hi[d]; d--)
        at[d] = box->lo[d];
    return d >= 0;
}

/* --- painting ------------------------------------------------------------ */

static int
get_mask(const pyri_array *a, pyri_reader *r, const pyri_frag *f,
         pyri_buf *room, const uint8_t **mask)
{
    pyri_ref ref = {f->ref[0], f->ref[1]};
    uint64_t head = pyri_frag_head_size(f);
    const uint8_t *cells;
    pyri_blob_get gets[2] = {{.ref = ref, .size = head},
                             {.ref = ref, .offset = head, .size = f->stored}};
    int err = pyri_engine_get_blobs(a->engine, r, gets, 2);
    if (err == 0)
        err = pyri_frag_check(f, &a->style, gets[0].data, gets[1].data, room,
                              NULL);
    return err < 0 ? err
                   : pyri_frag_expand(f, &a->style, gets[1].data, room, &cells,
                                      mask);
}

static uint64_t
count_bits(const uint8_t *mask, uint64_t n)
{
    uint64_t count = 0; /* those past the last are 0 */
    for (uint64_t i = 0; i < (n + 7) / 8; i++)
        count += (unsigned)__builtin_popcount(mask[i]);
    return count;
}

/* Paint what a link shows of the box; all of it, or what is in the mask. */
static void
paint(pyri_shows *s, const pyri_link *link, const uint8_t *mask,
      uint16_t colour)
{
    int last = s->ndim - 1;
    pyri_box part;
    uint64_t at[PYR_MAX_DIMS];
    if (!pyri_box_intersect(s->ndim, &link->shown, &s->box, &part))
        return;
    memcpy(at, part.lo, sizeof at);
    do {
        uint16_t *to = s->owner + index_of(s->ndim, &s->box, at);
        uint64_t n = part.hi[last] - part.lo[last];
        uint64_t bit = mask ? index_of(s->ndim, &link->frag.box, at) : 0;
        for (uint64_t i = 0; i < n; i++, bit++)
            if (!mask || mask[bit / 8] >> (bit % 8) & 1)
                to[i] = colour;
    } while (next_row(s->ndim, &part, at));
}

static int
paint_all(pyri_shows *s, const pyri_array *a, pyri_reader *r,
          const pyri_chain *chain)
{
    pyri_buf room = {0};
    int err = 0;
    for (int i = chain->n - 1; i >= 0 && err == 0; i--) {
        const pyri_link *link = &chain->links[i];
        const uint8_t *mask = NULL;
        if (link->frag.masked && link->frag.kind != PYRI_FRAG_SAME)
            err = get_mask(a, r, &link->frag, &room, &mask);
        if (err == 0)
            paint(s, link, mask, (uint16_t)(i + 1));
        uint64_t all = pyri_box_cells(s->ndim, &link->frag.box);
        s->links[i].held = mask && err == 0 ? count_bits(mask, all) : all;
    }
    pyri_buf_fini(&room);
    return err;
}

/* --- counting ------------------------------------------------------------ */

/* A row of the owners, or of what is shown elsewhere. */
static void
count_row(pyri_shows *s, const uint16_t *owners, const uint64_t *at)
{
    int last = s->ndim - 1;
    const uint16_t *row = owners + index_of(s->ndim, &s->box, at);
    uint64_t n = s->box.hi[last] - s->box.lo[last];
    for (uint64_t i = 0, k; i < n; i = k) {
        for (k = i + 1; k < n && row[k] == row[i]; k++)
            ;
        if (row[i] == 0)
            continue;
        pyri_shown *link = &s->links[row[i] - 1];
        pyri_box run = {.lo = {0}};
        for (int d = 0; d < last; d++) {
            run.lo[d] = at[d];
            run.hi[d] = at[d] + 1;
        }
        run.lo[last] = s->box.lo[last] + i;
        run.hi[last] = s->box.lo[last] + k;
        if (link->cells == 0)
            link->bounds = run;
        else
            pyri_box_cover(s->ndim, &link->bounds, &run);
        link->cells += k - i;
    }
}

static void
count_rows(pyri_shows *s, const uint16_t *owners)
{
    uint64_t at[PYR_MAX_DIMS];
    memcpy(at, s->box.lo, sizeof at);
    do
        count_row(s, owners, at);
    while (next_row(s->ndim, &s->box, at));
}

int
pyri_shows_find(pyri_shows *s, const pyri_array *a, pyri_reader *r,
                const pyri_chain *chain, const pyri_box *box)
{
    *s = (pyri_shows){.ndim = a->schema.ndim, .box = *box, .n = chain->n};
    uint64_t cells = pyri_box_cells(s->ndim, box);
    if (cells == 0 || cells > PYRI_SHOWS_CELLS || chain->n >= UINT16_MAX)
        return pyri_fail(PYR_EINVAL, "a chunk is too large to be looked at");
    s->owner = pyri_sys_calloc((size_t)cells, sizeof *s->owner);
    s->links = pyri_sys_calloc((size_t)chain->n + 1, sizeof *s->links);
    int err = s->owner && s->links ? paint_all(s, a, r, chain)
                                   : pyri_fail_nomem("the cells of a chunk");
    if (err == 0)
        count_rows(s, s->owner);
    else
        pyri_shows_fini(s);
    return err;
}

/* What it was counted for before is taken off again by counting anew. */
static void
count_again(pyri_shows *s)
{
    for (int i = 0; i < s->n; i++)
        s->links[i].cells = 0;
    count_rows(s, s->owner);
    count_rows(s, s->also);
}

int
pyri_shows_also(pyri_shows *s, const pyri_shows *other, const int *link,
                bool *left, bool *any)
{
    uint64_t cells = pyri_box_cells(s->ndim, &s->box);
    *any = false;
    if (!s->also)
        s->also = pyri_sys_calloc((size_t)cells, sizeof *s->also);
    if (!s->also)
        return pyri_fail_nomem("the cells of a chunk");
    for (uint64_t i = 0; i < cells; i++) {
        int shown = other->owner[i] ? link[other->owner[i] - 1] : -1;
        if (shown < 0 || s->owner[i] == shown + 1)
            continue;
        *any = true;
        if (s->also[i] && s->also[i] != shown + 1)
            left[shown] = true;
        else
            s->also[i] = (uint16_t)(shown + 1);
    }
    if (*any)
        count_again(s);
    return 0;
}

static bool
is_of(const bool *of, uint16_t owner)
{
    return owner && of[owner - 1];
}

uint64_t
pyri_shows_mask(const pyri_shows *s, const pyri_box *bounds, const bool *of,
                uint8_t *mask)
{
    int last = s->ndim - 1;
    uint64_t at[PYR_MAX_DIMS], bit = 0, set = 0;
    memcpy(at, bounds->lo, sizeof at);
    do {
        uint64_t cell = index_of(s->ndim, &s->box, at);
        uint64_t end = cell + bounds->hi[last] - bounds->lo[last];
        for (; cell < end; cell++, bit++) {
            if (!is_of(of, s->owner[cell]) &&
                !(s->also && is_of(of, s->also[cell])))
                continue;
            mask[bit / 8] |= (uint8_t)(1u << (bit % 8));
            set++;
        }
    } while (next_row(s->ndim, bounds, at));
    return set;
}

int
pyri_mask_overlaps(const pyri_array *a, pyri_reader *r, const pyri_frag *f,
                   const pyri_box *box, bool *out)
{
    int ndim = a->schema.ndim, last = ndim - 1;
    uint64_t at[PYR_MAX_DIMS];
    const uint8_t *mask;
    pyri_buf room = {0};
    pyri_box part;
    *out = false;
    if (!pyri_box_intersect(ndim, &f->box, box, &part))
        return 0;
    int err = get_mask(a, r, f, &room, &mask);
    memcpy(at, part.lo, sizeof at);
    if (err == 0)
        do {
            uint64_t bit = index_of(ndim, &f->box, at);
            for (uint64_t i = part.lo[last]; i < part.hi[last]; i++, bit++)
                *out |= mask[bit / 8] >> (bit % 8) & 1;
        } while (!*out && next_row(ndim, &part, at));
    pyri_buf_fini(&room);
    return err;
}
