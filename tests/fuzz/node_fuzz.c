/*
 * fuzz/node_fuzz.c - nodes and leaves of the tree.
 *
 * Input: how (1; bit 0: put the right checksum in, bit 1: look under the name
 * that the bytes give themselves), type (1), axes (1), array (8), label (8),
 * level (1), for each axis position and chunk extent (varints); the rest is
 * the node.
 */
#include "fuzz/fuzz.h"

#include "tree/node_layout.h"
#include "tree/tree.h"

enum { SEALED = 1, NAMED = 2 };

typedef struct subject {
    pyr_type type;
    int ndim;
    uint8_t key_bytes[PYRI_MAX_KEY];
    pyri_bytes key;
    pyri_box chunk;
} subject;

/* The bytes of a node, made again from what was read out of them. */
static void
encode_inner(const subject *s, const pyri_node *node, pyri_buf *out)
{
    pyri_about own;
    pyri_entry entries[PYRI_FAN];
    int n = 0;
    MUST(pyri_node_about(node, s->type, &own) == 0);
    for (unsigned slot = 0; slot < PYRI_FAN; slot++)
        if (node->slots >> slot & 1)
            MUST(pyri_node_entry(node, slot, s->type, &entries[n++]) == 0);
    pyri_node_encode(s->key, &own, s->type, node->level, entries, n, out);
}

/* A flat is what its entry says, and can be cut out of any box. */
static void
check_flat(const subject *s, const pyri_node *node, unsigned slot,
           const pyri_entry *e)
{
    pyri_flat f;
    pyri_about about;
    pyri_box region;
    MUST(pyri_node_flat(node, slot, &f) == 0);
    MUST(f.label == e->about.label && f.label && f.label <= node->label);
    MUST(e->about.known && e->about.digested && !e->lost);
    MUST(e->about.summary.equal && e->level == node->level - 1);
    MUST(memcmp(f.shape, e->shape, (size_t)s->ndim * sizeof *f.shape) == 0);
    if (!pyri_flat_region(&f, s->ndim, &s->chunk, &region))
        return;
    MUST(pyri_box_contains(s->ndim, &s->chunk, &region));
    pyri_flat_about(&f, s->ndim, s->type, 0, &region, &about);
    MUST(about.label == f.label && about.summary.equal);
}

/* Ask all that can be asked; false if any of it was refused. */
static bool
ask_inner(const subject *s, const pyri_node *node)
{
    pyri_about own;
    int err = pyri_node_about(node, s->type, &own);
    bool good = err == 0;
    if (!good)
        must_refuse(err);
    for (unsigned slot = 0; slot < PYRI_FAN; slot++) {
        uint64_t label, bits, count;
        int level;
        pyri_entry entry;
        if (!(node->slots >> slot & 1))
            continue;
        int lost = pyri_node_child(node, slot, &label, &level);
        bool same = pyri_node_same(node, slot, &bits, &count);
        if ((err = pyri_node_entry(node, slot, s->type, &entry)) < 0) {
            must_refuse(err);
            good = false;
            continue;
        }
        MUST(entry.slot == slot && entry.level < node->level);
        MUST(entry.flat == (node->flats >> slot & 1));
        if (entry.flat)
            check_flat(s, node, slot, &entry);
        MUST(entry.lost == (lost < 0) && entry.level == level);
        MUST(entry.about.label == label);
        if (same && entry.about.known)
            MUST(entry.about.summary.equal &&
                 entry.about.summary.count == count);
    }
    return good;
}

static void
check_inner(const subject *s, const pyri_node *node)
{
    pyri_buf first = {0}, second = {0};
    pyri_node again;
    if (!ask_inner(s, node))
        return;
    encode_inner(s, node, &first);
    MUST(pyri_node_open(s->key, (pyri_bytes){first.data, first.size}, &again) ==
         0);
    MUST(again.level == node->level && again.slots == node->slots);
    MUST(again.flats == node->flats);
    MUST(again.label == node->label);
    MUST(ask_inner(s, &again));
    encode_inner(s, &again, &second);
    must_be_same(&first, &second);
    pyri_buf_fini(&first);
    pyri_buf_fini(&second);
}

static void
check_frag(const subject *s, const pyri_frag *f)
{
    MUST(!pyri_box_empty(s->ndim, &f->box));
    MUST(pyri_box_contains(s->ndim, &s->chunk, &f->box));
    MUST(f->kind <= PYRI_FRAG_PRESSED);
    if (f->kind == PYRI_FRAG_SAME) {
        MUST(!f->masked);
        return;
    }
    /* What readers multiply and add must not wrap. */
    uint64_t cells = pyri_box_cells(s->ndim, &f->box);
    MUST(cells <= UINT64_MAX / 8);
    MUST(f->stored > 0 && pyri_frag_blob_size(f) > f->stored);
    MUST(pyri_frag_mask_size(f, s->ndim) <= cells / 8 + 8);
}

/* Read all fragments; false if any was refused. */
static bool
read_leaf(const subject *s, const pyri_node *node, pyri_leaf *leaf)
{
    pyri_leaf_walk walk;
    int room = 0, err = pyri_node_about(node, s->type, &leaf->about);
    if (err == 0)
        err = pyri_leaf_regions(node, s->type, s->ndim, &s->chunk,
                                &leaf->regions);
    if (err == 0)
        err = pyri_leaf_begin(node, s->ndim, &s->chunk, &walk);
    if (err < 0) {
        must_refuse(err);
        return false;
    }
    leaf->prev = walk.prev;
    while (walk.left) {
        if (leaf->n == room) {
            room = room ? 2 * room : 4;
            leaf->frags = realloc(leaf->frags,
                                  (size_t)room * sizeof *leaf->frags);
            MUST(leaf->frags);
        }
        if ((err = pyri_leaf_next(&walk, &leaf->frags[leaf->n])) < 0) {
            must_refuse(err);
            return false;
        }
        check_frag(s, &leaf->frags[leaf->n++]);
    }
    return true;
}

static void
check_leaf(const subject *s, const pyri_node *node)
{
    pyri_leaf leaf = {0}, again = {0};
    pyri_buf first = {0}, second = {0};
    pyri_node reread;
    if (read_leaf(s, node, &leaf)) {
        pyri_leaf_encode(s->key, &leaf, s->type, s->ndim, &s->chunk, &first);
        MUST(pyri_node_open(s->key, (pyri_bytes){first.data, first.size},
                            &reread) == 0);
        MUST(read_leaf(s, &reread, &again));
        MUST(again.n == leaf.n && again.prev == leaf.prev);
        pyri_leaf_encode(s->key, &again, s->type, s->ndim, &s->chunk,
                         &second);
        must_be_same(&first, &second);
    }
    pyri_leaf_fini(&leaf);
    pyri_leaf_fini(&again);
    pyri_buf_fini(&first);
    pyri_buf_fini(&second);
}

static void
take_subject(pyri_cursor *in, subject *s, uint64_t *array, uint64_t *label,
             int *level, uint64_t *pos)
{
    s->type = take_type(in);
    s->ndim = take_below(in, PYR_MAX_DIMS) + 1;
    *array = pyri_cursor_u64(in);
    *label = pyri_cursor_u64(in);
    *level = pyri_cursor_u8(in);
    for (int d = 0; d < s->ndim; d++) {
        pos[d] = pyri_cursor_varint(in);
        uint64_t extent = pyri_cursor_varint(in);
        if (__builtin_mul_overflow(pos[d], extent, &s->chunk.lo[d]))
            s->chunk.lo[d] = 0;
        if (__builtin_add_overflow(s->chunk.lo[d], extent, &s->chunk.hi[d]))
            s->chunk.hi[d] = UINT64_MAX;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_size)
{
    pyri_cursor in = pyri_cursor_of(data, data_size);
    subject s = {0};
    pyri_node node;
    uint64_t array, label, pos[PYR_MAX_DIMS];
    int level;
    size_t size;
    uint8_t how = pyri_cursor_u8(&in);
    take_subject(&in, &s, &array, &label, &level, pos);
    uint8_t *bytes = take_rest(&in, &size);
    if (how & NAMED && size >= NODE_HEAD) {
        label = pyri_load64(bytes + 16);
        level = bytes[10];
    }
    s.key.data = s.key_bytes;
    s.key.size = pyri_node_key(array, label, level, s.ndim, pos, s.key_bytes);
    if (how & SEALED && size >= NODE_HEAD)
        pyri_node_seal(s.key, bytes, size);
    int err = pyri_node_open(s.key, (pyri_bytes){bytes, size}, &node);
    if (err < 0) {
        must_refuse(err);
    } else {
        MUST(node.label == label && node.level == level);
        if (node.level)
            check_inner(&s, &node);
        else
            check_leaf(&s, &node);
    }
    free(bytes);
    return 0;
}
