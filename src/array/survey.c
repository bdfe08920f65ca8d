/*
 * array/survey.c - a walk over the summaries of a box.
 *
 * A subtree that lies inside the box is told by its summary, where it is known
 * and the visitor is content with it; else its children are asked. Cells are
 * left to the visitor only of chunks that the edge of the box cuts, and of
 * chunks that know no summary: they were written in part while the version
 * before was still in flight.
 */
#include "array/survey.h"

typedef struct place {
    uint64_t label;
    int level, stored;
    uint64_t pos[PYR_MAX_DIMS];
} place;

static const pyri_schema *
schema_of(const pyri_survey *s)
{
    return &s->snap->array->schema;
}

/* What a node says of itself, as of this snapshot; false if it is not known. */
static bool
as_of_now(const pyri_survey *s, const pyri_about *about, const pyri_box *domain,
          pyri_summary *sum)
{
    const pyri_schema *sc = schema_of(s);
    *sum = about->summary;
    return about->known && pyri_summary_now(s->snap->tree.form, sc->type,
                                            sc->fill, about->label, domain,
                                            sum);
}

static int
survey_leaf(pyri_survey *s, const place *at, const pyri_node *node)
{
    const pyri_schema *sc = schema_of(s);
    pyri_box domain, cells = {.lo = {0}}, shown;
    pyri_about about;
    pyri_summary sum;
    pyri_grid_domain(&s->snap->grid, 0, at->pos, &domain);
    pyri_grid_shown(&s->snap->grid, 0, at->pos, &shown);
    pyri_box_intersect(sc->ndim, &domain, &s->box, &cells);
    int err = pyri_node_about(node, sc->type, &about);
    if (err < 0)
        return err;
    if (pyri_box_contains(sc->ndim, &s->box, &shown) &&
        as_of_now(s, &about, &domain, &sum) && s->known(s->ctx, &cells, &sum))
        return 0;
    return s->leaf(s->ctx, &cells, at->pos, node);
}

/* A flat child: what it shows is of one value, the rest is fill. */
static int
survey_flat(pyri_survey *s, const place *at, const pyri_flat *f)
{
    const pyri_schema *sc = schema_of(s);
    pyri_box domain, wanted, shown, rest[2 * PYR_MAX_DIMS];
    int err = 0;
    pyri_grid_domain(&s->snap->grid, at->level, at->pos, &domain);
    if (!pyri_box_intersect(sc->ndim, &domain, &s->box, &wanted))
        return 0;
    if (!pyri_flat_shown(f, s->snap->tree.form, &domain, &shown) ||
        !pyri_box_intersect(sc->ndim, &shown, &wanted, &shown))
        return s->same(s->ctx, &wanted, sc->fill);
    int n = pyri_box_subtract(sc->ndim, &wanted, &shown, rest);
    for (int i = 0; i < n && err == 0; i++)
        err = s->same(s->ctx, &rest[i], sc->fill);
    return err != 0 ? err : s->same(s->ctx, &shown, f->bits);
}

static int survey_node(pyri_survey *s, const place *at);

/* A child, with what its parent says of it (NULL: nothing). */
static int
survey_child(pyri_survey *s, const place *at, const pyri_about *about)
{
    const pyri_schema *sc = schema_of(s);
    pyri_box domain, wanted, shown;
    pyri_summary now;
    pyri_grid_domain(&s->snap->grid, at->level, at->pos, &domain);
    if (!pyri_box_intersect(sc->ndim, &domain, &s->box, &wanted))
        return 0;
    pyri_grid_shown(&s->snap->grid, at->level, at->pos, &shown);
    if (at->label == 0)
        return s->same(s->ctx, &wanted, sc->fill);
    bool inside = pyri_box_contains(sc->ndim, &s->box, &shown);
    if (about && about->known && (inside || about->summary.equal) &&
        as_of_now(s, about, &domain, &now)) {
        if (inside && s->known(s->ctx, &wanted, &now))
            return 0;
        if (now.equal) /* one value, however it is cut */
            return s->same(s->ctx, &wanted, now.min);
    }
    return survey_node(s, at);
}

static int
survey_node(pyri_survey *s, const place *at)
{
    const pyri_grid *g = &s->snap->grid;
    const pyri_schema *sc = schema_of(s);
    pyri_node node;
    bool open = at->stored == at->level;
    int err = 0, bits = g->norder - (at->level - 1) * PYRI_FAN_BITS;
    if (open && (err = pyri_tree_get(&s->snap->tree, at->label, at->level,
                                     at->pos, &node)) < 0)
        return err;
    if (at->level == 0)
        return survey_leaf(s, at, &node);
    unsigned slots = 1u << (bits < PYRI_FAN_BITS ? bits : PYRI_FAN_BITS);
    for (unsigned slot = 0; slot < slots && err == 0; slot++) {
        place child = {0, at->level - 1, at->stored, {0}};
        pyri_entry e;
        bool told = false;
        pyri_grid_child(g, at->level, at->pos, slot, child.pos);
        if (open && node.flats >> slot & 1) {
            pyri_flat flat;
            if ((err = pyri_node_flat(&node, slot, &flat)) == 0)
                err = survey_flat(s, &child, &flat);
            continue;
        }
        if (!open) {
            child.label = slot == 0 ? at->label : 0;
        } else if (node.slots >> slot & 1) {
            if ((err = pyri_node_entry(&node, slot, sc->type, &e)) < 0)
                return err;
            if ((err = pyri_node_child(&node, slot, &child.label,
                                       &child.stored)) < 0 &&
                !e.about.known)
                return err;
            err = 0;
            told = true;
        }
        err = survey_child(s, &child, told ? &e.about : NULL);
    }
    return err;
}

int
pyri_survey_run(pyri_survey *s)
{
    const pyri_snapshot *snap = s->snap;
    place root = {snap->tree.root, snap->grid.levels, snap->tree.root_level,
                  {0}};
    return pyri_box_empty(schema_of(s)->ndim, &s->box)
               ? 0
               : survey_child(s, &root, NULL);
}
