/*
 * version/version.h - what a version is: its label, what it wrote, the form
 * that the array has from it on, where it came from. The door of the layer.
 *
 * The order of versions, and the moment one becomes visible, is the engine's
 * part (engine.h, versions); this layer gives the numbers their meaning.
 */
#ifndef PYRI_VERSION_VERSION_H
#define PYRI_VERSION_VERSION_H

#include "base/buf.h"
#include "engine/engine.h"
#include "nd/nd.h"

#include <pyramid/version.h>

/* --- labels (lineage.c) -------------------------------------------------- */

/*
 * Inside Pyramid a version is known by its label. The labels of a clone go on
 * where those of its parent were when it was made, so that along a line of
 * clones a higher label is always newer, and a label tells which array of the
 * line made it:
 *
 *     ocean      0 1 2 3 4 5 6 ...
 *     its clone        3 4 5 6 ...     first = 3: its version 0 is label 3
 */
typedef struct pyri_ancestor {
    uint64_t array; /* id */
    uint64_t first; /* label of its version 0 */
} pyri_ancestor;

enum { PYRI_MAX_LINE = 64 }; /* clones of clones of ... */

typedef struct pyri_lineage {
    int n;
    pyri_ancestor line[PYRI_MAX_LINE]; /* oldest first; the last is us */
} pyri_lineage;

/* The array that made the version with this label. Labels up to `first` of a
 * clone belong to its ancestors. */
uint64_t pyri_lineage_owner(const pyri_lineage *l, uint64_t label);

/* --- forms (form.c) ------------------------------------------------------ */

/*
 * The form of an array as of some version: its shape, and what older shapes
 * left behind.
 *
 * order  the axes whose halvings make the levels of the tree, finest first.
 *        When an axis outgrows its share, halvings are added at the coarse
 *        end, so that nodes of older versions keep their place.
 * cuts   shrinkings whose lost cells must read as fill though older versions
 *        stored them: cells at or past `extent` along `axis` of all versions
 *        before `label` are gone.
 */
enum {
    PYRI_MAX_ORDER = 1020, /* 16 axes of less than 64 bits each */
    PYRI_MAX_CUTS = 1 << 16
};

typedef struct pyri_cut {
    uint64_t label, extent;
    int axis;
} pyri_cut;

typedef struct pyri_form {
    int ndim;
    uint64_t shape[PYR_MAX_DIMS];
    int norder;
    uint8_t order[PYRI_MAX_ORDER];
    int ncuts;
    pyri_cut *cuts; /* by label, falling; heap, see pyri_form_fini() */
} pyri_form;

/* The form of a new array. PYR_EINVAL if it is too big. */
int pyri_form_init(pyri_form *f, int ndim, const uint64_t *shape,
                   const uint64_t *chunk);
void pyri_form_fini(pyri_form *f);
int pyri_form_copy(pyri_form *to, const pyri_form *from);
/* Change to the shape of version `label`. Which form comes out depends on the
 * sequence of shapes alone, so that every writer finds the same. Fails only
 * for lack of memory: callers have kept well below the limits by asking
 * pyri_form_fits() before they took the version. */
int pyri_form_change(pyri_form *f, uint64_t label, const uint64_t *shape,
                     const uint64_t *chunk);
/* PYR_EINVAL if changing to this shape comes near a limit. */
int pyri_form_fits(const pyri_form *f, const uint64_t *shape,
                   const uint64_t *chunk);
/* The cells that a version `label` stored and that this form still shows:
 * [0, clip). */
void pyri_form_clip(const pyri_form *f, uint64_t label,
                    uint64_t *clip);
void pyri_form_encode(const pyri_form *f, pyri_buf *out);
int pyri_form_decode(pyri_cursor *c, pyri_form *f); /* then fini it */

/* --- claims (claim.c) ---------------------------------------------------- */

/* What a version writes: strided runs of cells. Other writers predict its
 * nodes from it, so it is exact. */
typedef struct pyri_claim {
    int ndim;
    size_t n;
    pyri_run *runs; /* heap, see pyri_claim_fini() */
} pyri_claim;

void pyri_claim_fini(pyri_claim *c);
int pyri_claim_add(pyri_claim *c, const pyri_run *run);
bool pyri_claim_overlaps(const pyri_claim *c, const pyri_box *box);
void pyri_claim_encode(const pyri_claim *c, pyri_buf *out);
int pyri_claim_decode(pyri_cursor *cur, int ndim, pyri_claim *c);

/* --- records (record.c) -------------------------------------------------- */

/* The record of a version: its root in the tree, and its provenance. */
typedef struct pyri_record {
    pyr_kind kind;
    uint64_t root;   /* label of the root node; 0: all is fill */
    int root_level;
    pyri_form form;
    pyri_claim claim;
    int64_t time_ns;
    uint64_t source; /* label, of computed ones */
    pyri_buf texts;  /* who, message, ...; each ended by zero */
    const char *who, *message, *expression, *handlers;
} pyri_record;       /* zero-initialise; end with pyri_record_fini() */

void pyri_record_fini(pyri_record *r);
void pyri_record_encode(const pyri_record *r, pyri_buf *out);
int pyri_record_decode(pyri_bytes bytes, pyri_record *r);
/* Only what reading needs: kind, root, form. */
int pyri_record_decode_root(pyri_bytes bytes, pyri_record *r);
/* "user@host:pid" of this process. */
const char *pyri_record_who(void);

#endif
