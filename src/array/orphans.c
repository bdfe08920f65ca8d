/*
 * array/orphans.c - what is stored, and was not reached.
 *
 * Only what versions up to the head named can be judged: newer ones may be on
 * their way. And only in families whose trees could be read all through: below
 * a node that is lost nobody knows what is needed.
 *
 * Of a version that is erased the record goes last. So the root of a tree that
 * nobody reaches, of a version that has no record, is no orphan: the record was
 * lost, and the tree is what is left of that version. All is gone through once
 * to find such trees before anything is counted, or erased.
 */
#include "array/verifier.h"

#include "base/bytes.h"
#include "base/sys.h"

#include <stdio.h>
#include <stdlib.h>

enum { STEP = 1024 };

typedef struct seeking {
    pyri_verifier *v;
    uint64_t listed; /* blobs that were reached and are listed */
    uint64_t stranger; /* id of an array, looked up last */
    bool strayed;    /* something is where it cannot be: nothing is erased */
    bool again;      /* it is gone through once more: all harm was told, */
    bool erasing;    /* and orphans may go */
    pyri_buf keys;   /* of nodes, one after the other */
    size_t key_sizes[STEP];
    pyri_blob blobs[STEP];
    size_t nnodes, nblobs;
} seeking;

/* Erase what was gathered. The reader of the walk goes on seeing it. */
static int
step(seeking *s)
{
    pyri_bytes nodes[STEP];
    const uint8_t *at = s->keys.data;
    int err = pyri_buf_check(&s->keys, "a list of nodes");
    if (err < 0)
        return err;
    for (size_t i = 0; i < s->nnodes; i++) {
        nodes[i] = (pyri_bytes){at, s->key_sizes[i]};
        at += s->key_sizes[i];
    }
    pyri_erase erase = {.nodes = nodes,
                        .nnodes = s->nnodes,
                        .blobs = s->blobs,
                        .nblobs = s->nblobs};
    if (s->erasing && !s->strayed && s->nnodes + s->nblobs)
        err = pyri_engine_erase(s->v->e, &erase);
    pyri_buf_reset(&s->keys);
    s->nnodes = s->nblobs = 0;
    return err;
}

/* What is lost in one array may be needed by all that it descends from. */
static void
spread_loss(pyri_verifier *v)
{
    for (size_t i = 0; i < v->nkin; i++) {
        const pyri_lineage *l = &v->kin[i].array->schema.lineage;
        for (int k = 0; v->kin[i].lost && k < l->n; k++) {
            pyri_kin *ancestor = pyri_verifier_kin(v, l->line[k].array);
            if (ancestor)
                ancestor->lost = true;
        }
    }
}

static bool
can_judge(const pyri_kin *k, uint64_t label)
{
    return k && !k->lost && label <= k->head;
}

/* Found by looking at all there is; the walk did not come by. */
static int
stray(seeking *s, const char *what)
{
    s->strayed = true;
    return s->again ? 0 : pyri_verify_harm(s->v, "", 0, 0, NULL, what);
}

/* An array that was not there when the walk began, or that has lost its
 * record. */
static int
see_stranger(seeking *s, uint64_t id)
{
    pyri_array *a;
    if (id == s->stranger)
        return 0;
    s->stranger = id;
    int err = pyri_array_open_id(s->v->e, id, &a);
    if (err == 0)
        pyri_array_close(a);
    return pyri_is_harm(err)
               ? stray(s, "there are nodes of an array that is not there")
               : err;
}

/* An inner node in the corner of the array, where roots are. */
static bool
may_be_root(pyri_bytes key)
{
    const uint8_t *bytes = key.data;
    size_t zeros = 17;
    while (zeros < key.size && bytes[zeros] == 0)
        zeros++;
    return bytes[16] > 0 && zeros == key.size;
}

/* Nobody reaches this node: has its version a record? */
static int
see_lost(seeking *s, pyri_kin *k, uint64_t label)
{
    pyri_verifier *v = s->v;
    const pyri_array *a = k->array;
    pyri_version_get get;
    if (k->bereft == label)
        return 0; /* told */
    int err = pyri_engine_get_version(v->e, v->r, a->id, label, &get);
    if (err < 0 || get.found || label <= a->first)
        return pyri_is_harm(err) ? 0 : err;
    k->bereft = label;
    return pyri_verify_harm(v, a->name, label - a->first, 0, NULL,
                            "the record of the version is missing, its tree "
                            "is there");
}

static int
see_node(void *ctx, pyri_bytes key, pyri_bytes value)
{
    seeking *s = ctx;
    pyri_verifier *v = s->v;
    const uint8_t *bytes = key.data;
    pyri_node node;
    if (pyri_reached_has(&v->nodes, key.data, key.size))
        return 0;
    if (key.size < 17 || pyri_node_open(key, value, &node) == PYR_ECORRUPT)
        return stray(s, "a node is stored under a name that is not its own");
    pyri_kin *k = pyri_verifier_kin(v, pyri_load64_be(bytes));
    uint64_t label = pyri_load64_be(bytes + 8);
    if (!k)
        return see_stranger(s, pyri_load64_be(bytes));
    if (!can_judge(k, label))
        return 0;
    int err = !s->again && may_be_root(key) ? see_lost(s, k, label) : 0;
    if (err != 0)
        return err;
    v->out->orphan_nodes++;
    v->out->orphan_bytes += key.size + value.size;
    s->key_sizes[s->nnodes++] = key.size;
    pyri_buf_add(&s->keys, key.data, key.size);
    return s->nnodes < STEP ? 0 : step(s);
}

static int
see_blob(void *ctx, const pyri_blob *blob, uint64_t array, uint64_t version)
{
    seeking *s = ctx;
    pyri_verifier *v = s->v;
    uint64_t name[3] = {blob->ref.a, blob->ref.b, blob->size};
    if (pyri_reached_has(&v->blobs, name, sizeof name)) {
        s->listed++;
        return 0;
    }
    if (!can_judge(pyri_verifier_kin(v, array), version))
        return 0;
    v->out->orphan_blobs++;
    v->out->orphan_bytes += blob->size;
    s->blobs[s->nblobs++] = *blob;
    return s->nblobs < STEP ? 0 : step(s);
}

static int
scan(seeking *s)
{
    pyri_verifier *v = s->v;
    v->out->orphan_nodes = v->out->orphan_blobs = v->out->orphan_bytes = 0;
    s->listed = 0;
    int err = pyri_engine_scan_nodes(v->e, v->r, 0, see_node, s);
    if (err == 0)
        err = step(s);
    if (err == 0)
        err = pyri_engine_scan_blobs(v->e, v->r, see_blob, s);
    return err == 0 ? step(s) : err;
}

static int
seek(seeking *s)
{
    pyri_verifier *v = s->v;
    bool bereft = false;
    int err = scan(s);
    for (size_t i = 0; i < v->nkin; i++) {
        bereft |= v->kin[i].bereft != 0;
        v->kin[i].lost |= v->kin[i].bereft != 0;
    }
    if (err != 0 || !(bereft || v->repairing))
        return err;
    spread_loss(v);
    s->again = true;
    s->erasing = v->repairing;
    return scan(s);
}

int
pyri_verify_orphans(pyri_verifier *v)
{
    seeking *s = pyri_sys_calloc(1, sizeof *s);
    char text[128];
    if (!s)
        return pyri_fail_nomem("a list of orphans");
    s->v = v;
    spread_loss(v);
    for (size_t i = 0; i < v->nkin && v->blind; i++)
        v->kin[i].lost = true;
    int err = seek(s);
    bool broken = pyri_is_harm(err);
    if (broken) {
        snprintf(text, sizeof text, "%s", pyr_errmsg());
        err = v->out->harms ? 0 /* the walk has met it */
                            : pyri_verify_harm(v, "", 0, 0, NULL, text);
    }
    /* what is needed and not listed would be taken for free space one day */
    if (err == 0 && !broken && s->listed < v->blobs.n) {
        snprintf(text, sizeof text,
                 "%llu fragments are not in the list of blobs as they are",
                 (unsigned long long)(v->blobs.n - s->listed));
        err = pyri_verify_harm(v, "", 0, 0, NULL, text);
    }
    pyri_buf_fini(&s->keys);
    free(s);
    return err;
}
