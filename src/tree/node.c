/*
 * tree/node.c - inner nodes and their bytes.
 *
 *   at  bytes
 *    0     8  XXH3 of the key, plus XXH3 of all that follows (mod 2^64)
 *    8     1  format: 1; 2 if a child is flat
 *    9     1  1: inner node, 2: leaf
 *   10     1  level
 *   11     1  bits: 1 summary is there, 2 digest is there
 *   12     2  bitmap of the children that are there (of a leaf: 0)
 *   14     2  of a leaf: bytes at its end that tell of regions; else 0
 *   16     8  label
 *   24    16  digest: XXH3 (128 bits) over slot and digest of each child
 *   40    72  summary, see chunk/summary.c
 *  112     4  bytes of a downsampled block after the entries: none yet, 0
 *  116     4  bytes of shapes after the entries; 0 in format 1
 *  120        of an inner node, for each child that is there, by slot:
 *             1  bits: 1 summary, 2 digest, 4 the child was lost to damage,
 *                8 it is flat: not stored, see tree/flat.c
 *             1  level of the child
 *             6  0
 *             8  label
 *            16  digest
 *            72  summary
 *             then for each that is flat, by slot: the shape as of its label,
 *             8 along each axis
 *             of a leaf: see tree/leaf.c
 *
 * The key: array (8), label (8), level (1), all big-endian, then the position
 * along each axis as varints.
 */
#include "tree/tree.h"

#include "base/bytes.h"
#include "tree/node_layout.h"

#include <string.h>

enum { KNOWN = 1 | 2, LOST = 4, FLAT = 8 };

size_t
pyri_node_key(uint64_t array, uint64_t label, int level, int ndim,
              const uint64_t *pos, uint8_t *out)
{
    pyri_store64_be(out, array);
    pyri_store64_be(out + 8, label);
    out[16] = (uint8_t)level;
    size_t size = 17;
    for (int d = 0; d < ndim; d++) {
        uint64_t v = pos[d];
        for (; v >= 0x80; v >>= 7)
            out[size++] = (uint8_t)(v | 0x80);
        out[size++] = (uint8_t)v;
    }
    return size;
}

static uint64_t
checksum(pyri_bytes key, const uint8_t *bytes, size_t size)
{
    return pyri_hash64(key.data, key.size) + pyri_hash64(bytes + 8, size - 8);
}

void
pyri_node_seal(pyri_bytes key, uint8_t *bytes, size_t size)
{
    pyri_store64(bytes, checksum(key, bytes, size));
}

static int
damaged(const char *what)
{
    return pyri_fail(PYR_ECORRUPT, "a node of the tree is damaged: %s", what);
}

/* How many axes a node has, by its name. */
static int
axes_of(pyri_bytes key)
{
    const uint8_t *name = key.data;
    int n = 0;
    for (size_t i = 17; i < key.size; i++)
        n += name[i] < 0x80;
    return n;
}

/* Which children are flat? False if that makes no sense. */
static bool
find_flats(pyri_bytes key, pyri_node *node)
{
    uint64_t shapes = pyri_load32(node->bytes + 116);
    const uint8_t *at = node->bytes + NODE_HEAD;
    for (unsigned slot = 0; slot < PYRI_FAN; slot++)
        if (node->slots >> slot & 1) {
            node->flats |= (unsigned)(at[0] & FLAT ? 1 : 0) << slot;
            at += NODE_ENTRY;
        }
    node->ndim = axes_of(key);
    return node->flats && node->ndim <= PYR_MAX_DIMS &&
           shapes == 8 * (uint64_t)node->ndim *
                         (uint64_t)__builtin_popcount(node->flats);
}

int
pyri_node_open(pyri_bytes key, pyri_bytes b, pyri_node *out)
{
    if (b.size < NODE_HEAD ||
        pyri_load64(b.data) != checksum(key, b.data, b.size))
        return damaged("its checksum is wrong");
    return pyri_node_open_trusted(key, b, out);
}

int
pyri_node_open_trusted(pyri_bytes key, pyri_bytes b, pyri_node *out)
{
    const uint8_t *bytes = b.data;
    if (bytes[8] != NODE_PLAIN && bytes[8] != NODE_FLATS)
        return pyri_fail(PYR_EFORMAT, "a node of the tree is of format %u",
                         bytes[8]);
    *out = (pyri_node){bytes, b.size, bytes[10], pyri_load64(bytes + 16),
                       pyri_load16(bytes + 12), 0, 0};
    const uint8_t *name = key.data;
    if (out->label != pyri_load64_be(name + 8) || out->level != name[16])
        return damaged("it is of another version or level than its name");
    bool leaf = bytes[9] == NODE_LEAF;
    size_t entries =
        NODE_ENTRY * (size_t)__builtin_popcount(out->slots);
    bool flats = bytes[8] == NODE_FLATS;
    size_t shapes = flats ? pyri_load32(bytes + 116) : 0;
    if (leaf != (out->level == 0) || (!leaf && bytes[9] != NODE_INNER) ||
        out->level > PYRI_MAX_LEVEL || (leaf && flats) ||
        (!leaf && b.size != NODE_HEAD + entries + shapes +
                                pyri_load32(bytes + 112)))
        return damaged("its size or level is wrong");
    if (flats && !find_flats(key, out))
        return damaged("its flat children make no sense");
    return 0;
}

void
pyri_about_encode(const pyri_about *about, pyr_type type, uint8_t *bits,
                  uint8_t *out)
{
    *bits = (uint8_t)((about->known ? 1 : 0) | (about->digested ? 2 : 0));
    pyri_store64(out, about->label);
    if (about->digested) {
        pyri_store64(out + 8, about->digest.lo);
        pyri_store64(out + 16, about->digest.hi);
    }
    if (about->known)
        pyri_summary_encode(&about->summary, type, out + 24);
}

static int
decode_about(uint8_t bits, const uint8_t *in, pyr_type type, pyri_about *out)
{
    out->label = pyri_load64(in);
    out->known = bits & 1;
    out->digested = bits & 2;
    out->digest = (pyri_digest){pyri_load64(in + 8), pyri_load64(in + 16)};
    if (!out->known)
        return 0;
    return pyri_summary_decode(&out->summary, type, in + 24);
}

uint8_t *
pyri_node_begin(const pyri_about *own, pyr_type type, int level,
                unsigned slots, size_t size, pyri_buf *out)
{
    uint8_t *bytes = pyri_buf_extend(out, size);
    if (!bytes)
        return NULL;
    memset(bytes, 0, size);
    bytes[8] = NODE_PLAIN;
    bytes[9] = level ? NODE_INNER : NODE_LEAF;
    bytes[10] = (uint8_t)level;
    pyri_store16(bytes + 12, (uint16_t)slots);
    pyri_about_encode(own, type, &bytes[11], bytes + 16);
    return bytes;
}

void
pyri_node_encode(pyri_bytes key, const pyri_about *own, pyr_type type,
                 int level, const pyri_entry *entries, int n, pyri_buf *out)
{
    unsigned slots = 0, flats = 0;
    int ndim = axes_of(key);
    for (int i = 0; i < n; i++) {
        slots |= 1u << entries[i].slot;
        flats += entries[i].flat;
    }
    size_t shapes = 8 * flats * (size_t)ndim;
    size_t size = NODE_HEAD + (size_t)n * NODE_ENTRY + shapes;
    uint8_t *bytes = pyri_node_begin(own, type, level, slots, size, out);
    if (!bytes)
        return;
    uint8_t *at = bytes + NODE_HEAD;
    for (int i = 0; i < n; i++, at += NODE_ENTRY) {
        at[1] = (uint8_t)entries[i].level;
        pyri_about_encode(&entries[i].about, type, &at[0], at + 8);
        if (entries[i].lost)
            at[0] |= LOST;
        if (entries[i].flat)
            at[0] |= FLAT;
    }
    for (int i = 0; i < n; i++)
        for (int d = 0; entries[i].flat && d < ndim; d++, at += 8)
            pyri_store64(at, entries[i].shape[d]);
    if (flats) {
        bytes[8] = NODE_FLATS;
        pyri_store32(bytes + 116, (uint32_t)shapes);
    }
    pyri_node_seal(key, bytes, size);
}

int
pyri_node_about(const pyri_node *node, pyr_type type, pyri_about *out)
{
    return decode_about(node->bytes[11], node->bytes + 16, type, out);
}

static const uint8_t *
entry_at(const pyri_node *node, unsigned slot)
{
    unsigned before = node->slots & ((1u << slot) - 1);
    return node->bytes + NODE_HEAD +
           NODE_ENTRY * (size_t)__builtin_popcount(before);
}

/* The shape that a flat child's version had. */
static void
load_shape(const pyri_node *node, unsigned slot, uint64_t *shape)
{
    unsigned before = node->flats & ((1u << slot) - 1);
    const uint8_t *at = node->bytes + NODE_HEAD +
                        NODE_ENTRY * (size_t)__builtin_popcount(node->slots) +
                        8 * (size_t)node->ndim *
                            (size_t)__builtin_popcount(before);
    for (int d = 0; d < node->ndim; d++)
        shape[d] = pyri_load64(at + 8 * d);
}

int
pyri_node_flat(const pyri_node *node, unsigned slot, pyri_flat *out)
{
    uint64_t count;
    const uint8_t *at = entry_at(node, slot);
    out->label = pyri_load64(at + 8);
    load_shape(node, slot, out->shape);
    if ((at[0] & ~FLAT) != 3 || at[1] != node->level - 1 ||
        out->label == 0 || out->label > node->label ||
        !pyri_summary_peek_same(at + 32, &out->bits, &count))
        return damaged("a flat child makes no sense");
    return 0;
}

int
pyri_node_child(const pyri_node *node, unsigned slot, uint64_t *label,
                int *level)
{
    const uint8_t *at = entry_at(node, slot);
    *label = pyri_load64(at + 8);
    *level = at[1];
    return at[0] & LOST ? damaged("a child of it was lost to damage") : 0;
}

unsigned
pyri_node_unknown(const pyri_node *node)
{
    const uint8_t *at = node->bytes + NODE_HEAD;
    unsigned unknown = 0;
    for (unsigned left = node->slots; left; left &= left - 1, at += NODE_ENTRY)
        if ((at[0] & (KNOWN | LOST | FLAT)) < KNOWN)
            unknown |= left & -left;
    return unknown;
}

int
pyri_node_entry(const pyri_node *node, unsigned slot, pyr_type type,
                pyri_entry *out)
{
    const uint8_t *at = entry_at(node, slot);
    out->slot = slot;
    out->level = at[1];
    out->lost = at[0] & LOST;
    out->flat = node->flats >> slot & 1;
    if (out->level >= node->level)
        return damaged("a child is not below it");
    int err = decode_about(at[0], at + 8, type, &out->about);
    pyri_flat flat;
    if (err == 0 && out->flat && (err = pyri_node_flat(node, slot, &flat)) == 0)
        memcpy(out->shape, flat.shape, (size_t)node->ndim * sizeof(uint64_t));
    return err;
}

bool
pyri_node_same(const pyri_node *node, unsigned slot, uint64_t *bits,
               uint64_t *count)
{
    const uint8_t *at = entry_at(node, slot);
    return at[0] & 1 && pyri_summary_peek_same(at + 32, bits, count);
}
