/*
 * engine/local/nodes.c - nodes: their keys and values in the database `tree`
 * of meta, see meta.c.
 */
#include "engine/local/local.h"

#include "base/bytes.h"
#include "engine/local/env.h"
#include "engine/local/recent.h"

#include <string.h>

enum { VERSION_KEY = 16 };

typedef struct node_key {
    size_t size;
    uint8_t bytes[PYRI_MAX_KEY + 1];
} node_key;

/* A key with 'n' put in after array and version; shorter ones stay as they
 * are. */
static int
make_node_key(node_key *out, pyri_bytes key)
{
    if (key.size == 0 || key.size > PYRI_MAX_KEY)
        return pyri_fail(PYR_EINVAL, "a node's key cannot have %zu bytes",
                         key.size);
    const uint8_t *from = key.data;
    out->size = key.size;
    if (key.size < VERSION_KEY) {
        memcpy(out->bytes, from, key.size);
        return 0;
    }
    memcpy(out->bytes, from, VERSION_KEY);
    out->bytes[VERSION_KEY] = 'n';
    memcpy(out->bytes + VERSION_KEY + 1, from + VERSION_KEY,
           key.size - VERSION_KEY);
    out->size++;
    return 0;
}

/*
 * Versions are given one after the other, so what is put is mostly the last
 * entry of all (or was, before there were younger arrays). LMDB is told so: on
 * its own it takes the last entry of a full page along to the new one, which
 * leaves half a page empty where nodes are as large as they are here.
 */
int
pyri_meta_put_tree(pyri_site *s, pyri_txn *txn, const void *key, size_t size,
                   pyri_bytes first, pyri_bytes second)
{
    return pyri_env_append_two(txn, s->tree_db, key, size, first, second);
}

int
pyri_meta_put_nodes(pyri_site *s, pyri_txn *txn, const pyri_complete *c)
{
    for (size_t i = 0; i < c->nnodes; i++) {
        const pyri_node_put *p = &c->nodes[i];
        node_key key;
        int err = make_node_key(&key, p->key);
        if (err < 0 ||
            (err = pyri_meta_put_tree(s, txn, key.bytes, key.size, p->value,
                                      (pyri_bytes){0})) < 0)
            return err;
    }
    return 0;
}

/* The reader's cursor. Nodes of one write are neighbours, and a cursor looks
 * on the page where it is before it goes back to the root. */
static int
node_cursor(pyri_site *s, pyri_reader *r)
{
    int err = 0;
    if (r->nodes_begun)
        return 0;
    if (!r->nodes)
        err = pyri_env_cursor(r->txn, s->tree_db, &r->nodes);
    else
        err = pyri_env_cursor_renew(r->nodes);
    r->nodes_begun = err == 0;
    return err;
}

int
pyri_meta_find_tree(pyri_site *s, pyri_reader *r, const void *key,
                    size_t size, pyri_bytes *value, bool *found)
{
    MDB_val v = {0, NULL};
    int err = node_cursor(s, r);
    if (err == 0)
        err = pyri_env_cursor_find(r->nodes, key, size, &v, found);
    *value = (pyri_bytes){v.mv_data, v.mv_size};
    return err;
}

/* How often nodes were put in the place of others; see recent.c. */
static int
get_replaced(pyri_site *s, pyri_txn *txn, uint64_t *out)
{
    MDB_val v;
    bool found;
    int err = pyri_env_get(txn, s->main_db, "n", 1, &v, &found);
    if (err == 0 && found && v.mv_size != 8)
        err = pyri_fail(PYR_ECORRUPT, "a count of nodes is damaged");
    *out = err == 0 && found ? pyri_load64(v.mv_data) : 0;
    return err;
}

int
pyri_meta_count_replaced(pyri_site *s, pyri_txn *txn)
{
    uint8_t value[8];
    uint64_t count;
    int err = get_replaced(s, txn, &count);
    pyri_store64(value, count + 1);
    return err < 0 ? err
                   : pyri_env_put(txn, s->main_db, "n", 1, value,
                                  sizeof value);
}

/* What it got before is good if none of it was replaced, as it sees things
 * now. Who reads once keeps nothing; nor does who is not safe from writers, as
 * a page may change after its node was verified. */
static int
begin_recent(pyri_site *s, pyri_reader *r)
{
    uint64_t id = pyri_env_id(r->txn);
    int err = 0;
    r->recent_begun = true;
    if (!r->again || s->meta_unlocked ||
        (!r->recent && !(r->recent = pyri_recent_new())))
        return 0;
    if (r->recent_of != id)
        err = get_replaced(s, r->txn, &r->replaced);
    r->recent_of = err == 0 ? id : 0;
    r->doubts = atomic_load(&s->doubts);
    pyri_recent_begin(r->recent, r->replaced ^ (uint64_t)r->doubts << 40);
    return err;
}

static bool
has_recent(pyri_site *s, const pyri_reader *r)
{
    return r->recent && r->recent_begun &&
           r->doubts == atomic_load_explicit(&s->doubts, memory_order_relaxed);
}

static int
find_node(pyri_site *s, pyri_reader *r, pyri_node_get *g)
{
    node_key key;
    int err = make_node_key(&key, g->key);
    return err < 0 ? err
                   : pyri_meta_find_tree(s, r, key.bytes, key.size, &g->value,
                                         &g->found);
}

int
pyri_meta_get_nodes(pyri_site *s, pyri_reader *r, pyri_node_get *gets,
                    size_t n)
{
    int err = r->recent_begun ? 0 : begin_recent(s, r);
    bool recent = err == 0 && has_recent(s, r);
    for (size_t i = 0; i < n && err == 0; i++) {
        pyri_node_get *g = &gets[i];
        g->trusted = recent && pyri_recent_get(r->recent, g->key, &g->value);
        g->found = g->trusted;
        if (!g->trusted)
            err = find_node(s, r, g);
    }
    return err;
}

void
pyri_meta_vouch_node(pyri_site *s, pyri_reader *r, const pyri_node_get *got)
{
    if (has_recent(s, r))
        pyri_recent_offer(r->recent, got->key, got->value);
}

int
pyri_meta_drop_node(pyri_site *s, pyri_txn *txn, pyri_bytes key,
                    uint64_t *bytes)
{
    node_key k;
    MDB_val v;
    bool found;
    int err = make_node_key(&k, key);
    if (err < 0 ||
        (err = pyri_env_get(txn, s->tree_db, k.bytes, k.size, &v, &found)) < 0 ||
        !found)
        return err;
    *bytes += key.size + v.mv_size;
    return pyri_env_delete(txn, s->tree_db, k.bytes, k.size, &found);
}

int
pyri_meta_replace_node(pyri_site *s, pyri_txn *txn, const pyri_node_put *put)
{
    node_key k;
    MDB_val v;
    bool found;
    int err = make_node_key(&k, put->key);
    if (err < 0 ||
        (err = pyri_env_get(txn, s->tree_db, k.bytes, k.size, &v, &found)) < 0 ||
        !found)
        return err;
    return pyri_env_put(txn, s->tree_db, k.bytes, k.size, put->value.data,
                        put->value.size);
}

/* Beside the order of keys, which everything rests on, entries of versions
 * are checked: a damaged key may hide one from all who look for it. */
static int
check_entry(const MDB_val *k, const MDB_val *v, const node_key *before)
{
    size_t common = k->mv_size < before->size ? k->mv_size : before->size;
    int order = memcmp(before->bytes, k->mv_data, common);
    if (order > 0 || (order == 0 && before->size >= k->mv_size) ||
        k->mv_size < VERSION_KEY || k->mv_size > sizeof before->bytes)
        return pyri_fail(PYR_ECORRUPT, "keys of metadata are out of order");
    if (k->mv_size == VERSION_KEY &&
        !pyri_meta_is_version(k->mv_data, v->mv_data, v->mv_size))
        return pyri_fail(PYR_ECORRUPT, "the entry of a version is damaged");
    return 0;
}

int
pyri_meta_scan_nodes(pyri_site *s, pyri_reader *r, uint64_t array,
                     pyri_node_fn *each, void *ctx)
{
    node_key last = {0};
    uint8_t bytes[8];
    pyri_walk *cursor;
    MDB_val k = {sizeof bytes, bytes}, v;
    bool more;
    pyri_store64_be(bytes, array);
    pyri_bytes prefix = {bytes, array ? sizeof bytes : 0};
    int err = pyri_env_cursor(r->txn, s->tree_db, &cursor);
    if (err < 0)
        return err;
    err = pyri_env_step(cursor, MDB_SET_RANGE, prefix, &k, &v, &more);
    while (err == 0 && more && (err = check_entry(&k, &v, &last)) == 0) {
        memcpy(last.bytes, k.mv_data, k.mv_size);
        last.size = k.mv_size;
        if (k.mv_size > VERSION_KEY + 1) {
            node_key key = last; /* without the 'n' */
            memmove(key.bytes + VERSION_KEY, key.bytes + VERSION_KEY + 1,
                    k.mv_size - VERSION_KEY - 1);
            err = each(ctx, (pyri_bytes){key.bytes, k.mv_size - 1},
                       (pyri_bytes){v.mv_data, v.mv_size});
        }
        if (err == 0)
            err = pyri_env_step(cursor, MDB_NEXT, prefix, &k, &v, &more);
    }
    pyri_env_cursor_close(cursor);
    return err;
}
