/*
 * tree/tree.h - the index: (version, box) -> chunks. The door of the layer.
 *
 * A 2^n-tree over the grid of chunks. Nodes never change; they are named by
 * array, version, level and position, so that anyone who knows what a version
 * wrote knows the names of its nodes before they exist. Level 0 is a leaf and
 * covers one chunk; a node of level l has up to 16 children of level l - 1.
 * What a version did not touch it shares with older ones: an entry says which
 * version's node the child is.
 */
#ifndef PYRI_TREE_TREE_H
#define PYRI_TREE_TREE_H

#include "chunk/frag.h"
#include "chunk/regions.h"
#include "engine/engine.h"
#include "nd/nd.h"
#include "version/version.h"

/* --- the grid (grid.c) --------------------------------------------------- */

enum {
    PYRI_FAN_BITS = 4,
    PYRI_FAN = 1 << PYRI_FAN_BITS,
    PYRI_MAX_LEVEL = PYRI_MAX_ORDER / PYRI_FAN_BITS
};

/* Where nodes are, as of one form. */
typedef struct pyri_grid {
    int ndim;
    uint64_t chunk[PYR_MAX_DIMS];
    uint64_t shape[PYR_MAX_DIMS];
    int levels; /* of the root; at least 1 */
    int norder;
    uint8_t axis[PYRI_MAX_ORDER]; /* of each halving, finest first */
    uint8_t bit[PYRI_MAX_ORDER];  /* and which bit of the chunk's index */
    uint8_t shift[PYRI_MAX_LEVEL + 1][PYR_MAX_DIMS];
} pyri_grid;

void pyri_grid_init(pyri_grid *g, const pyri_form *form,
                    const uint64_t *chunk);
/* The level of the root of a tree of this form. */
int pyri_grid_levels(const pyri_form *form);
/* The cells that a node covers; may reach past the shape. */
void pyri_grid_domain(const pyri_grid *g, int level, const uint64_t *pos,
                      pyri_box *out);
/* Those of them inside the shape; false if there are none. */
bool pyri_grid_shown(const pyri_grid *g, int level, const uint64_t *pos,
                     pyri_box *out);
/* The place of child `slot` of a node, one level below it. */
void pyri_grid_child(const pyri_grid *g, int level, const uint64_t *pos,
                     unsigned slot, uint64_t *child);
/* The chunk that holds a cell. */
void pyri_grid_chunk_of(const pyri_grid *g, const uint64_t *cell,
                        uint64_t *pos);
/* The chunk's place in the order of the tree, most significant word first:
 * compares as memcmp of the words would. */
enum { PYRI_CODE_WORDS = (PYRI_MAX_ORDER + 63) / 64 };
void pyri_grid_code(const pyri_grid *g, const uint64_t *pos,
                    uint64_t *code);
/* Which child of a node of this level a chunk with that code is under. */
unsigned pyri_grid_slot(const uint64_t *code, int level);

/* --- nodes (node.c) ------------------------------------------------------ */

/* What a parent knows of a child, and a node of itself. */
typedef struct pyri_about {
    uint64_t label;
    bool known;    /* the summary is there */
    bool digested; /* the digest is there */
    pyri_digest digest;
    pyri_summary summary; /* of the cells inside the shape of `label` */
} pyri_about;

typedef struct pyri_entry {
    unsigned slot;
    int level; /* of the child; less than one below only on the edge of a
                  tree that has grown */
    bool lost; /* which node the child is was not to be read any more */
    bool flat; /* there is no such node: all its cells inside `shape` were
                  written as one value, that of the summary */
    uint64_t shape[PYR_MAX_DIMS]; /* of version about.label; if flat */
    pyri_about about;
} pyri_entry;

/* A checked view of stored bytes. */
typedef struct pyri_node {
    const uint8_t *bytes;
    size_t size;
    int level;
    uint64_t label;
    unsigned slots; /* bitmap of children that are there */
    unsigned flats; /* and of those that are flat: they are no nodes */
    int ndim;       /* if there are any */
} pyri_node;

size_t pyri_node_key(uint64_t array, uint64_t label, int level, int ndim,
                     const uint64_t *pos, uint8_t *out); /* PYRI_MAX_KEY */
/* PYR_ECORRUPT unless the bytes are the node with that key. */
int pyri_node_open(pyri_bytes key, pyri_bytes bytes, pyri_node *out);
/* The same of one that was verified before. */
int pyri_node_open_trusted(pyri_bytes key, pyri_bytes bytes, pyri_node *out);
void pyri_node_encode(pyri_bytes key, const pyri_about *own, pyr_type type,
                      int level, const pyri_entry *entries, int n,
                      pyri_buf *out);
int pyri_node_about(const pyri_node *node, pyr_type type, pyri_about *out);
/* The label and level of a child, without its summary; the slot is there, and
 * not flat. PYR_ECORRUPT if the child is lost. */
int pyri_node_child(const pyri_node *node, unsigned slot, uint64_t *label,
                     int *level);
int pyri_node_entry(const pyri_node *node, unsigned slot, pyr_type type,
                    pyri_entry *out);
/* Bitmap of the children that are nodes, not lost, and whose summary or digest
 * it does not know. */
unsigned pyri_node_unknown(const pyri_node *node);
/* True, and the value, if the child's cells are all the same: `count` of
 * them. */
bool pyri_node_same(const pyri_node *node, unsigned slot, uint64_t *bits,
                    uint64_t *count);

/* --- flat children (flat.c) ---------------------------------------------- */

/*
 * A subtree that one version wrote wholly, with one value, is not stored: the
 * entry in its parent says it all. It stands for the nodes and leaves that
 * would be there. It has no name that others could refer to, so a version
 * with flats is never predicted: see array/flats.c.
 */
typedef struct pyri_flat {
    uint64_t label, bits;
    uint64_t shape[PYR_MAX_DIMS]; /* as of that label: cells outside are fill */
} pyri_flat;

/* The flat in a slot; it is one. */
int pyri_node_flat(const pyri_node *node, unsigned slot, pyri_flat *out);
/* The cells of a domain that it stands for; false if there are none. */
bool pyri_flat_region(const pyri_flat *f, int ndim, const pyri_box *domain,
                      pyri_box *out);
/* Those of them that a form still shows: the others are fill. */
bool pyri_flat_shown(const pyri_flat *f, const pyri_form *form,
                     const pyri_box *domain, pyri_box *out);
/* What is known of a region, as a parent says it. Its digest is that of a leaf
 * with one fragment, however large it is. */
void pyri_flat_about(const pyri_flat *f, int ndim, pyr_type type,
                     uint64_t fill, const pyri_box *region, pyri_about *out);

/* --- leaves (leaf.c) ----------------------------------------------------- */

/*
 * A leaf lists the fragments that make up a chunk, newest first; cells that
 * none of them holds are fill. With `prev`, the leaf of that version (still in
 * flight when this one was made) comes in between: after fragments newer than
 * it, before the others.
 */
typedef struct pyri_leaf {
    pyri_about about;
    uint64_t prev; /* label; 0: none */
    pyri_frag *frags;
    int n;
    pyri_buf below; /* more, as they are stored in another leaf of the chunk */
    uint64_t nbelow;
    pyri_regions regions; /* of the cells that the summary is of */
} pyri_leaf; /* end with pyri_leaf_fini() */

void pyri_leaf_fini(pyri_leaf *l);

/* Reading a leaf, fragment by fragment. */
typedef struct pyri_leaf_walk {
    pyri_cursor at;
    int ndim;
    pyri_box chunk;
    uint64_t prev;
    uint64_t left; /* fragments still to come */
} pyri_leaf_walk;

/* What it knows of the regions of its chunk: often nothing. */
int pyri_leaf_regions(const pyri_node *node, pyr_type type, int ndim,
                      const pyri_box *chunk, pyri_regions *out);
/* `chunk` is the domain of the leaf. */
int pyri_leaf_begin(const pyri_node *node, int ndim, const pyri_box *chunk,
                    pyri_leaf_walk *w);
/* Step over what is next, as far as it is of versions above `newer` and has
 * nothing of the box. */
void pyri_leaf_skip_apart(pyri_leaf_walk *w, const pyri_frag_window *box,
                          uint64_t newer);
/* The next one (w->left > 0). */
int pyri_leaf_next(pyri_leaf_walk *w, pyri_frag *frag);
/* Or in two steps: what it is and where; then one of the two below. */
int pyri_leaf_peek(pyri_leaf_walk *w, pyri_frag *frag);
int pyri_leaf_take(pyri_leaf_walk *w, pyri_frag *frag); /* the rest of it */
int pyri_leaf_skip(pyri_leaf_walk *w, const pyri_frag *frag);
/*
 * Put a leaf that is being made on those fragments of another one that its own
 * do not hide (nor folds among them), as they are: the cost of a link is that
 * of a copy. *done is false, and nothing was done, if it takes more than that
 * (`prev`, or many folds), or on failure.
 */
int pyri_leaf_lay(pyri_leaf *l, const pyri_node *on, int ndim,
                  const pyri_box *chunk, bool *done);
/* The digest of a leaf whose version wrote one fragment, over one of the digest
 * `before`; zero: over nothing. */
pyri_digest pyri_leaf_digest(int ndim, const pyri_frag *f, pyri_digest before);
void pyri_leaf_encode(pyri_bytes key, const pyri_leaf *l, pyr_type type,
                      int ndim, const pyri_box *chunk, pyri_buf *out);

/* --- a tree to read from (lookup.c) -------------------------------------- */

/* A snapshot as the tree sees it. Borrows all it points to. */
typedef struct pyri_tree {
    pyri_engine *engine;
    pyri_reader *reader;
    const pyri_lineage *lineage;
    const pyri_form *form;
    const pyri_grid *grid;
    pyr_type type;
    uint64_t fill;
    uint64_t root; /* label; 0: all is fill */
    int root_level;
    bool leaves_only;     /* find every leaf and flat, also where a parent
                             knows that all cells are the same */
    uint64_t *nodes_read; /* counts; NULL: nobody asks */
    const char *array;    /* for the text of failures; NULL: nobody asks */
    uint64_t version;     /* likewise, as users count */
} pyri_tree;

/* The node of that name; PYR_ECORRUPT if it is not there. */
int pyri_tree_get(const pyri_tree *t, uint64_t label, int level,
                  const uint64_t *pos, pyri_node *out);

/* The leaf of a chunk that a flat stands for, made in `room`. */
int pyri_flat_leaf(const pyri_tree *t, const pyri_flat *f, const uint64_t *pos,
                   pyri_buf *room, pyri_node *out);

typedef struct pyri_hit {
    pyri_box box;  /* cells, inside the bounds of what was asked for */
    bool leaf;     /* else all of them are `bits` */
    uint64_t bits;
    uint64_t flat; /* label of the version that wrote them, if that is known
                      without a leaf; else 0 */
    uint64_t pos[PYR_MAX_DIMS]; /* of the chunk */
    pyri_node node;             /* the leaf */
} pyri_hit;

/* A result other than 0 ends the walk and is returned. */
typedef int pyri_hit_fn(void *ctx, const pyri_hit *hit);

/* Visit what a run of cells (inside the shape) is made of: leaves of chunks,
 * and regions of one value, which may be huge. */
int pyri_tree_find(const pyri_tree *t, const pyri_run *run, pyri_hit_fn *each,
                   void *ctx);

/* How to get a node on the way down: as pyri_tree_get(), or from memory. */
typedef int pyri_step_fn(void *ctx, uint64_t label, int level,
                         const uint64_t *pos, pyri_node *out);

/*
 * The label of the node that a tree has under a level and position; 0 if there
 * is none of that very name. That is all that two trees need to share a node:
 * they may divide space in other ways since they parted. If a flat is in the
 * way, it goes into *flat, if that is given. (descend.c)
 */
int pyri_tree_label_at(const pyri_tree *t, int level, const uint64_t *pos,
                       pyri_step_fn *get, void *ctx, uint64_t *label,
                       pyri_flat *flat);

/* The leaf that the snapshot has for a chunk; *found is false if there is none:
 * all is fill, or there is a flat. That goes into *flat, if it is given; its
 * label is 0 otherwise. (descend.c) */
int pyri_tree_leaf_at(const pyri_tree *t, const uint64_t *chunk,
                      pyri_node *out, pyri_flat *flat, bool *found);

/* --- building (build.c) -------------------------------------------------- */

/* A chunk that the new version touches; `payload` is the caller's. */
typedef struct pyri_touch {
    uint64_t code[PYRI_CODE_WORDS];
    uint64_t pos[PYR_MAX_DIMS];
    size_t payload;
} pyri_touch;

/* A version in flight below the new one, and the root level of its tree. */
typedef struct pyri_rival {
    uint64_t label;
    int levels;
    const uint64_t *shape; /* what it claims past its shape it does not touch */
    pyri_claim claim;
} pyri_rival;

/* Does it touch any cell of the box? */
bool pyri_rival_touches(const pyri_rival *r, const pyri_box *box);

/*
 * Make the leaf of a touched chunk. `prev` is the newest rival that touches
 * it (0: none); `base` is the label of the leaf that the base snapshot has
 * there (0: none), which is not stored if `flat` is given. Fills in *leaf,
 * which the caller of this ends.
 */
typedef int pyri_leaf_fn(void *ctx, const pyri_touch *touch, uint64_t prev,
                         uint64_t base, const pyri_flat *flat,
                         pyri_leaf *leaf);

/* Cells that the new version writes as one value: of each chunk all that are
 * inside the shape, or none. */
typedef struct pyri_sheet {
    pyri_box box;
    uint64_t bits;
} pyri_sheet;

/* How many nodes it takes to say where the sheets are: a count that ends soon
 * after `limit`. (flat.c) */
int pyri_sheets_nodes(const pyri_grid *g, const pyri_sheet *sheets, size_t n,
                      uint64_t limit, uint64_t *out);

typedef struct pyri_build {
    const pyri_tree *base;   /* the newest published snapshot */
    const pyri_form *form;   /* of the new version */
    const pyri_grid *grid;   /* likewise */
    uint64_t array, label;   /* of the new version */
    pyri_rival *rivals;      /* newest first */
    size_t nrivals;
    pyri_touch *touches;     /* sorted here */
    size_t ntouches;
    const pyri_sheet *sheets; /* apart from each other and from the touches */
    size_t nsheets;
    bool flat;               /* chunks that become one value are made flat */
    pyri_leaf_fn *leaf;
    int (*alive)(void *ctx); /* called now and then; or NULL */
    void *ctx;
    bool tolerant;           /* go on where the base is damaged: for a version
                                that changes nothing, and must come to be */
    /* what comes out: */
    pyri_node_put *nodes;
    size_t nnodes;
    pyri_buf bytes;          /* behind the nodes */
    pyri_about root;
} pyri_build;

/* Build the nodes of a version bottom up; there is a touch or a sheet. */
int pyri_build_run(pyri_build *b);
void pyri_build_fini(pyri_build *b);

/* Does a summary made by version `label` for the cells of `domain` still hold
 * in this form? Then *s, a copy, is extended to cells that were added since. */
bool pyri_summary_now(const pyri_form *form, pyr_type type, uint64_t fill,
                      uint64_t label, const pyri_box *domain,
                      pyri_summary *s);

/* --- verifying (derive.c) ------------------------------------------------ */

/*
 * What an inner node must say of itself, by what it says of its children: its
 * digest, and its summary as the tree's snapshot shows it (not known where a
 * cut came in between). PYR_ECORRUPT if an entry makes no sense.
 */
int pyri_node_derive(const pyri_tree *t, const pyri_node *node,
                     const uint64_t *pos, pyri_about *out);
/* Put a summary into a copy of a node's bytes: that of a child, or (slot < 0)
 * its own. */
int pyri_node_amend(pyri_bytes key, uint8_t *bytes, size_t size, pyr_type type,
                    int slot, const pyri_summary *s);

/* --- differences (diff.c) ------------------------------------------------ */

/* A chunk whose leaf differs: its domain, and the labels of the leaves in
 * both trees (0: none). If `flat`, all of a domain, which may be huge: the
 * newer snapshot has a flat there, or nothing where the older one has one. */
typedef int pyri_diff_fn(void *ctx, const uint64_t *pos,
                         const pyri_box *domain, bool flat, uint64_t a,
                         uint64_t b);

/* Visit the chunks whose leaves differ between two snapshots of one line.
 * Both trees must use one grid: that of the newer snapshot. */
int pyri_tree_diff(const pyri_tree *a, const pyri_tree *b, pyri_diff_fn *each,
                   void *ctx);

/* --- what one snapshot has alone (alone.c) ------------------------------- */

/* Called for a node, with its key, or for a blob. */
typedef struct pyri_alone_out {
    int (*node)(void *ctx, pyri_bytes key, size_t size);
    int (*blob)(void *ctx, const pyri_blob *blob);
    void *ctx;
} pyri_alone_out;

/*
 * Visit the nodes and blobs that a snapshot needs and none of its neighbours
 * does; children before their parents. Neighbours are the nearest snapshots
 * that are there in all directions: `older` before it on its own line (NULL:
 * there is none), and `others` that come after it or branch off beside it.
 * What two snapshots share all between them share; so what no neighbour needs
 * nobody needs. A part that has gone already is passed over, and so is one that
 * cannot be told because a neighbour is damaged.
 */
int pyri_tree_alone(const pyri_tree *t, const pyri_tree *older,
                    uint64_t older_label, const pyri_tree *const *others,
                    size_t nothers, const pyri_alone_out *out);

/* A leaf, or, if that is NULL, a region of one value. */
typedef int pyri_newer_fn(void *ctx, const uint64_t *pos,
                          const pyri_node *leaf, const pyri_box *region,
                          uint64_t bits);

/* Visit the leaves and flats of a snapshot that are newer than a label. Whatever else a
 * version up to that one had stored is as it was, but for cuts. */
int pyri_tree_newer(const pyri_tree *t, uint64_t after, pyri_newer_fn *each,
                    void *ctx);

#endif
