/*
 * tree/node_layout.h - what node.c and leaf.c share of the bytes of a node.
 */
#ifndef PYRI_TREE_NODE_LAYOUT_H
#define PYRI_TREE_NODE_LAYOUT_H

#include "tree/tree.h"

enum {
    NODE_INNER = 1,
    NODE_LEAF = 2,
    NODE_HEAD = 120,
    NODE_TAIL = 14, /* of a leaf: how many of its last bytes are of regions */
    NODE_ENTRY = 104,
    NODE_PLAIN = 1, /* format */
    NODE_FLATS = 2  /* format, of nodes with flat children */
};

/* Zeroed room for a node with its head filled in, but for the checksum. */
uint8_t *pyri_node_begin(const pyri_about *own, pyr_type type, int level,
                         unsigned slots, size_t size, pyri_buf *out);
/* Put the checksum in. */
void pyri_node_seal(pyri_bytes key, uint8_t *bytes, size_t size);
/* label, digest, summary in 96 bytes, and the bits that tell what is there. */
void pyri_about_encode(const pyri_about *about, pyr_type type, uint8_t *bits,
                       uint8_t *out);

#endif
