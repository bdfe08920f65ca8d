/*
 * array/repair.c - REPAIR: orphans go, and what can be derived is derived.
 *
 * A summary that is not that of its cells is replaced. A node is named by its
 * place, and its checksum covers the name, so a node with another summary is as
 * good as the old one; digests do not cover summaries. A leaf that changed makes
 * its parents differ from it, so this is done pass by pass, from the leaves up,
 * until nothing changes. Cells are never touched.
 */
#include "array/verifier.h"

#include "base/room.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

static bool
is_last(const pyri_verifier *v, pyri_bytes key)
{
    if (v->namended == 0)
        return false;
    const pyri_amendment *a = &v->amended[v->namended - 1];
    return a->key_size == key.size &&
           memcmp(v->bytes.data + v->bytes.size - a->value_size - a->key_size,
                  key.data, key.size) == 0;
}

int
pyri_verify_amend(pyri_verifier *v, pyri_bytes key, const pyri_node *node,
                  pyr_type type, int slot, const pyri_summary *s)
{
    size_t at = v->bytes.size + key.size;
    if (is_last(v, key)) { /* one more change to the same node */
        at = v->bytes.size - node->size;
        return pyri_node_amend(key, v->bytes.data + at, node->size, type, slot,
                               s);
    }
    if (!pyri_room(&v->amended, &v->amended_room, v->namended + 1,
                   sizeof *v->amended))
        return pyri_fail_nomem("nodes to be repaired");
    pyri_buf_add(&v->bytes, key.data, key.size);
    pyri_buf_add(&v->bytes, node->bytes, node->size);
    int err = pyri_buf_check(&v->bytes, "nodes to be repaired");
    if (err < 0)
        return err;
    v->amended[v->namended++] = (pyri_amendment){key.size, node->size};
    return pyri_node_amend(key, v->bytes.data + at, node->size, type, slot, s);
}

/* Store what one pass has put right. */
static int
store(pyri_verifier *v)
{
    const uint8_t *at = v->bytes.data;
    if (v->namended == 0)
        return 0;
    pyri_node_put *puts = pyri_sys_malloc(v->namended * sizeof *puts);
    if (!puts)
        return pyri_fail_nomem("nodes to be repaired");
    for (size_t i = 0; i < v->namended; i++) {
        const pyri_amendment *a = &v->amended[i];
        puts[i].key = (pyri_bytes){at, a->key_size};
        puts[i].value = (pyri_bytes){at + a->key_size, a->value_size};
        at += a->key_size + a->value_size;
    }
    int err = pyri_engine_replace_nodes(v->e, puts, v->namended);
    free(puts);
    return err;
}

static int
pass(pyri_engine *e, const pyr_verify_spec *spec, bool first,
     pyr_verified *seen, uint64_t *changed)
{
    pyri_verifier v = {.e = e,
                       .spec = spec,
                       .out = seen,
                       .deep = first,
                       .quiet = !first,
                       .repairing = true};
    memset(seen, 0, sizeof *seen);
    int err = pyri_verifier_walk(&v);
    if (err == 0 && first && !v.broken)
        err = pyri_verify_orphans(&v);
    if (err == 0)
        err = store(&v);
    *changed = v.namended;
    pyri_verifier_fini(&v);
    return err;
}

int
pyri_repair(pyri_engine *e, const pyr_verify_spec *spec, pyr_repaired *out)
{
    static const pyr_verify_spec none;
    pyr_repaired unused;
    pyr_verified seen, again;
    pyri_settled settled = {0, 0};
    uint64_t changed;
    spec = spec ? spec : &none;
    out = out ? out : &unused;
    memset(out, 0, sizeof *out);
    int err = pyri_engine_begin_upkeep(e);
    if (err < 0)
        return err;
    err = pass(e, spec, true, &seen, &changed);
    out->orphan_nodes = seen.orphan_nodes;
    out->orphan_blobs = seen.orphan_blobs;
    out->orphan_bytes = seen.orphan_bytes;
    out->harms = seen.harms;
    out->summaries = changed;
    for (int i = 0; i < 4 * PYRI_MAX_LEVEL && err == 0 && changed; i++) {
        err = pass(e, spec, false, &again, &changed);
        out->summaries += changed;
    }
    if (err == 0 && out->harms == 0) /* what is harmed may not be counted */
        err = pyri_engine_settle(e, &settled);
    pyri_engine_end_upkeep(e);
    return err;
}
