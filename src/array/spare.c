/*
 * array/spare.c - a box of many chunks: which must be computed?
 *
 * Where every source has one value, so has the result. Chunks that are wholly
 * in such a region need not even be listed: it becomes a sheet (sheets.c), and
 * is stored as one entry of the tree or a few. And where the newest snapshot
 * has that value already nothing need be stored (kept.c tells why that can be
 * wrong, and what is done about it). All other chunks are listed.
 */
#include "array/compute.h"

#include "base/checked.h"
#include "base/room.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_KEPT = 1 << 16, /* regions */
    MAX_SHEETS = 1 << 16,
    MAX_RUNS = 1 << 14  /* of a claim that is not just the box */
};

/* --- places -------------------------------------------------------------- */

static int
add_place(void *ctx, const uint64_t *pos)
{
    pyri_places *p = ctx;
    if (!pyri_room(&p->pos, &p->room, p->n + 1, sizeof *p->pos))
        return pyri_fail_nomem("the chunks to compute");
    memcpy(p->pos[p->n++], pos, sizeof *p->pos);
    return 0;
}

int
pyri_places_add(pyri_places *p, const pyri_schema *s, const pyri_box *box)
{
    char text[512];
    uint64_t count = pyri_chunks_touched(s, box);
    if (count > PYRI_COMPUTE_MAX_CHUNKS ||
        p->n + count > PYRI_COMPUTE_MAX_CHUNKS)
        return pyri_fail(PYR_EUNSUPPORTED,
                         "more than %d chunks would change, among them those "
                         "of box %s: compute smaller boxes, one after the "
                         "other",
                         (int)PYRI_COMPUTE_MAX_CHUNKS,
                         pyri_box_text(s->ndim, box, text, sizeof text));
    pyri_run run = pyri_run_of_box(s->ndim, box);
    return pyri_plan_run(s->chunk, s->ndim, &run, NULL, add_place, p);
}

static int
compare_places(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    for (int d = 0; d < PYR_MAX_DIMS; d++)
        if (x[d] != y[d])
            return x[d] < y[d] ? -1 : 1;
    return 0;
}

/* In order, each once: regions may cut a chunk into pieces. */
static void
sort_places(pyri_places *p)
{
    size_t kept = 0;
    if (p->n < 2)
        return;
    qsort(p->pos, p->n, sizeof *p->pos, compare_places);
    for (size_t i = 0; i < p->n; i++)
        if (kept == 0 || compare_places(p->pos[kept - 1], p->pos[i]) != 0)
            memmove(p->pos[kept++], p->pos[i], sizeof *p->pos);
    p->n = kept;
}

/* --- the claim ----------------------------------------------------------- */

/* Which axis boxes are joined along, for compare_boxes(); the rest is by the
 * other axes, then by this. */
typedef struct joint {
    pyri_box box;
    int ndim, axis;
} joint;

static int
compare_joints(const void *a, const void *b)
{
    const joint *x = a, *y = b;
    for (int d = 0; d < x->ndim; d++) {
        if (d == x->axis)
            continue;
        if (x->box.lo[d] != y->box.lo[d])
            return x->box.lo[d] < y->box.lo[d] ? -1 : 1;
        if (x->box.hi[d] != y->box.hi[d])
            return x->box.hi[d] < y->box.hi[d] ? -1 : 1;
    }
    uint64_t l = x->box.lo[x->axis], r = y->box.lo[x->axis];
    return (l > r) - (l < r);
}

static bool
may_join(const joint *a, const joint *b)
{
    for (int d = 0; d < a->ndim; d++)
        if (d != a->axis && (a->box.lo[d] != b->box.lo[d] ||
                             a->box.hi[d] != b->box.hi[d]))
            return false;
    return a->box.hi[a->axis] == b->box.lo[a->axis];
}

static size_t
join(joint *list, size_t n, int axis)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        list[i].axis = axis;
    if (n)
        qsort(list, n, sizeof *list, compare_joints);
    for (size_t i = 0; i < n; i++)
        if (kept && may_join(&list[kept - 1], &list[i]))
            list[kept - 1].box.hi[axis] = list[i].box.hi[axis];
        else
            list[kept++] = list[i];
    return kept;
}

/* Claim the parts of the box that are in the listed chunks, and the sheets. */
static int
claim_places(pyri_draft *d, const pyri_box *box, const pyri_places *p)
{
    const pyri_schema *s = &d->array->schema;
    size_t n = p->n + d->nsheets;
    joint *list = pyri_sys_malloc((n + 1) * sizeof *list);
    int err = 0;
    if (!list)
        return pyri_fail_nomem("the boxes of a computed version");
    for (size_t i = 0; i < d->nsheets; i++)
        list[p->n + i] = (joint){.box = d->sheets[i].box, .ndim = s->ndim};
    for (size_t i = 0; i < p->n; i++) {
        list[i].ndim = s->ndim;
        for (int k = 0; k < s->ndim; k++) {
            uint64_t lo = p->pos[i][k] * s->chunk[k], hi;
            if (!pyri_add64(lo, s->chunk[k], &hi))
                hi = UINT64_MAX;
            list[i].box.lo[k] = pyri_max64(lo, box->lo[k]);
            list[i].box.hi[k] = pyri_min64(hi, box->hi[k]);
        }
    }
    for (int axis = s->ndim - 1; axis >= 0; axis--)
        n = join(list, n, axis);
    if (n > MAX_RUNS)
        err = pyri_fail(PYR_EUNSUPPORTED,
                        "the chunks that would change are scattered over more "
                        "than %d places: compute smaller boxes, one after the "
                        "other",
                        (int)MAX_RUNS);
    for (size_t i = 0; i < n && err == 0; i++) {
        pyri_run run = pyri_run_of_box(s->ndim, &list[i].box);
        err = pyri_claim_add(&d->claim, &run);
    }
    free(list);
    return err;
}

/* --- sorting out --------------------------------------------------------- */

typedef struct sparing {
    pyri_draft *d;
    pyri_sources *s;
    pyri_snapshot newest;
    pyri_places *places;
    bool keep;
    uint64_t bits; /* what the region at hand becomes */
} sparing;

/* Whole chunks of the box become a sheet; those that it cuts are listed. */
static int
lay_sheet(sparing *p, const pyri_box *box)
{
    const pyri_schema *sc = &p->d->array->schema;
    pyri_box inside, rest[2 * PYR_MAX_DIMS];
    if (p->d->nsheets == MAX_SHEETS ||
        !pyri_sheet_inside(sc, p->newest.grid.shape, box, &inside))
        return pyri_places_add(p->places, sc, box);
    int err = pyri_sheet_add(p->d, &inside, p->bits);
    int n = pyri_box_subtract(sc->ndim, box, &inside, rest);
    for (int i = 0; i < n && err == 0; i++)
        err = pyri_places_add(p->places, sc, &rest[i]);
    return err;
}

static int
keep_or_lay(void *ctx, const pyri_hit *hit)
{
    sparing *p = ctx;
    if (!hit->leaf && hit->bits == p->bits && p->d->kept.n < MAX_KEPT)
        return pyri_kept_add(&p->d->kept, &hit->box, hit->bits);
    return lay_sheet(p, &hit->box);
}

/* Cells that are alike, and a function that tells them apart. */
static int
list_all(sparing *p, const pyri_box *region)
{
    const pyri_schema *sc = &p->d->array->schema;
    if (pyri_chunks_touched(sc, region) > PYRI_COMPUTE_MAX_CHUNKS)
        return pyri_fail(PYR_EUNSUPPORTED,
                         "the function names coordinates, so that every cell "
                         "may get a value of its own, and more than %d chunks "
                         "would have to be stored: compute smaller boxes, one "
                         "after the other",
                         (int)PYRI_COMPUTE_MAX_CHUNKS);
    return pyri_places_add(p->places, sc, region);
}

static int
sort_region(void *ctx, const pyri_box *region, const uint64_t *values)
{
    sparing *p = ctx;
    const pyri_schema *sc = &p->d->array->schema;
    if (!values || !pyri_program_uniform(p->s->program))
        return list_all(p, region);
    pyri_loaded one;
    int err = pyri_sources_fill(p->s, region, values, &one);
    if (err == 0)
        err = pyri_compute_same(p->s, region->lo, one.src, &p->bits);
    if (err < 0 || !p->keep)
        return err < 0 ? err : lay_sheet(p, region);
    pyri_run run = pyri_run_of_box(sc->ndim, region);
    return pyri_tree_find(&p->newest.tree, &run, keep_or_lay, p);
}

/* Sheets that lie across the tree take many nodes. */
static int
check_cost(const sparing *p)
{
    uint64_t nodes;
    int err = pyri_sheets_nodes(&p->newest.grid, p->d->sheets, p->d->nsheets,
                                PYRI_COMPUTE_MAX_NODES, &nodes);
    if (err == 0 && nodes > PYRI_COMPUTE_MAX_NODES)
        err = pyri_fail(PYR_EUNSUPPORTED,
                        "it would take more than %d nodes of the tree to say "
                        "where the new values are: compute smaller boxes, one "
                        "after the other",
                        (int)PYRI_COMPUTE_MAX_NODES);
    return err;
}

int
pyri_spare(pyri_draft *d, pyri_sources *s, const pyri_box *box, bool keep,
           pyri_places *places)
{
    int ndim = d->array->schema.ndim;
    sparing p = {.d = d, .s = s, .places = places, .keep = keep};
    pyri_run run = pyri_run_of_box(ndim, box);
    d->kept.n = d->nsheets = places->n = 0;
    int err = pyri_snapshot_open(d->array, PYR_LATEST, &p.newest);
    if (err < 0)
        return err;
    d->kept.label = p.newest.label;
    memcpy(d->kept.shape, p.newest.grid.shape, sizeof d->kept.shape);
    err = pyri_snapshot_check(&p.newest, &run);
    if (err == 0)
        err = pyri_sources_walk(s, box, sort_region, &p);
    if (err == 0)
        err = check_cost(&p);
    pyri_snapshot_close(&p.newest);
    if (err < 0)
        return err;
    sort_places(places);
    return d->kept.n ? claim_places(d, box, places)
                     : pyri_claim_add(&d->claim, &run);
}
