/*
 * engine/rados/rados_nodes.c - tree nodes: entries of shard objects.
 *
 * The nodes of a small version go into one object, shared by the versions next
 * to it: a small write is then one call. Those of a larger one are spread over
 * 32 or 1024 objects of its own, so that shards grow in number with what is
 * written and no object holds more than some ten thousand. Which of the three
 * it is follows from the number of nodes; who reads tries the small one first,
 * and remembers. A version that others may have stored nodes of goes to the
 * small one in any case: what they left elsewhere is then never found first.
 */
#include "engine/rados/rados.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/room.h"
#include "base/sys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKET = 64, PER_CALL = 1024, CALL_BYTES = 4 << 20 };

static const unsigned shards_of[PYRI_RADOS_TIERS] = {1, 32, 1024};

static int
tier_for(size_t nnodes, pyri_turn turn)
{
    return nnodes <= 256 || turn.contested ? 0 : nnodes <= 65536 ? 1 : 2;
}

/* --- where nodes are ----------------------------------------------------- */

static void
split_key(pyri_bytes key, uint64_t *array, uint64_t *version)
{
    *array = *version = 0;
    if (key.size < 16)
        return;
    *array = pyri_load64_be(key.data);
    *version = pyri_load64_be((const uint8_t *)key.data + 8);
}

static void
node_oid(char oid[PYRI_RADOS_OID], pyri_bytes key, int tier)
{
    uint64_t array, version;
    split_key(key, &array, &version);
    if (tier == 0) {
        snprintf(oid, PYRI_RADOS_OID, "n.%016llx.%llx",
                 (unsigned long long)array,
                 (unsigned long long)(version / BUCKET));
        return;
    }
    uint64_t shard = pyri_hash64(key.data, key.size) % shards_of[tier];
    snprintf(oid, PYRI_RADOS_OID, "w.%016llx.%llx.%x.%llx",
             (unsigned long long)array, (unsigned long long)version,
             shards_of[tier], (unsigned long long)shard);
}

static uint64_t
tier_name(pyri_bytes key)
{
    return pyri_hash64(key.data, key.size < 16 ? key.size : 16);
}

/* The tier of a version, or -1 if it is not known yet. */
static int
known_tier(pyri_cluster *s, pyri_bytes key)
{
    uint64_t name = tier_name(key);
    pthread_mutex_lock(&s->lock);
    int tier = s->tier_of[name % 4096] == name ? s->tiers[name % 4096] - 1
                                               : -1;
    pthread_mutex_unlock(&s->lock);
    return tier;
}

static void
note_tier(pyri_cluster *s, pyri_bytes key, int tier)
{
    uint64_t name = tier_name(key);
    pthread_mutex_lock(&s->lock);
    s->tier_of[name % 4096] = name;
    s->tiers[name % 4096] = (uint8_t)(tier + 1);
    pthread_mutex_unlock(&s->lock);
}

/* --- keys, sorted by object ---------------------------------------------- */

typedef struct place {
    char oid[PYRI_RADOS_OID];
    size_t i; /* in the caller's list */
} place;

static int
by_oid(const void *a, const void *b)
{
    const place *x = a, *y = b;
    int order = strcmp(x->oid, y->oid);
    return order ? order : (x->i > y->i) - (x->i < y->i);
}

/* The calls for a list of places: `begin` and `add` write the request. */
typedef struct plan {
    pyri_calls calls;
    size_t *counts; /* entries of each call */
    size_t room;
} plan;

typedef struct work {
    pyri_cluster *s;
    const char *method;
    bool writes;
    int mode;
    uint32_t epoch;
    const pyri_node_put *puts; /* or: */
    const pyri_bytes *keys;
} work;

static pyri_bytes
key_of(const work *w, size_t i)
{
    return w->puts ? w->puts[i].key : w->keys[i];
}

static void
add_head(const work *w, pyri_buf *in, size_t n)
{
    if (w->writes) {
        pyri_buf_u8(in, (uint8_t)w->mode);
        pyri_buf_u32(in, w->epoch);
    }
    pyri_buf_varint(in, n);
}

static void
add_key(const work *w, pyri_buf *in, size_t i)
{
    pyri_bytes key = key_of(w, i);
    pyri_buf_varint(in, key.size);
    pyri_buf_add(in, key.data, key.size);
    if (!w->puts)
        return;
    pyri_buf_varint(in, 0); /* weight */
    pyri_buf_varint(in, w->puts[i].value.size);
    if (w->puts[i].value.size)
        pyri_buf_add(in, w->puts[i].value.data, w->puts[i].value.size);
}

/* How many places from `at` on make one call. */
static size_t
length_of(const work *w, const place *list, size_t n, size_t at)
{
    size_t end = at, bytes = 0;
    while (end < n && end - at < PER_CALL && bytes < CALL_BYTES &&
           strcmp(list[end].oid, list[at].oid) == 0) {
        bytes += key_of(w, list[end].i).size;
        bytes += w->puts ? w->puts[list[end].i].value.size : 0;
        end++;
    }
    return end - at;
}

static int
make_calls(const work *w, const place *list, size_t n, plan *p)
{
    for (size_t at = 0; at < n;) {
        size_t count = length_of(w, list, n, at);
        pyri_call *c = pyri_calls_add(&p->calls, w->method, w->writes,
                                      list[at].oid);
        if (!c || !pyri_room(&p->counts, &p->room, p->calls.n,
                             sizeof *p->counts))
            return pyri_fail_nomem("nodes");
        p->counts[p->calls.n - 1] = count;
        add_head(w, &c->in, count);
        for (size_t i = 0; i < count; i++)
            add_key(w, &c->in, list[at + i].i);
        at += count;
    }
    return 0;
}

static void
plan_fini(plan *p)
{
    pyri_calls_fini(&p->calls);
    free(p->counts);
}

/* --- storing ------------------------------------------------------------- */

/* The calls about all of it, in one tier. */
static int
plan_all(work *w, size_t n, int tier, plan *p)
{
    place *list = pyri_sys_malloc((n + 1) * sizeof *list);
    if (!list)
        return pyri_fail_nomem("nodes");
    for (size_t i = 0; i < n; i++) {
        list[i].i = i;
        node_oid(list[i].oid, key_of(w, i), tier);
    }
    if (n > 1)
        qsort(list, n, sizeof *list, by_oid);
    int err = make_calls(w, list, n, p);
    free(list);
    return err;
}

static int
run_all(work *w, size_t n, int tier, uint64_t *bytes)
{
    plan p = {0};
    int err = plan_all(w, n, tier, &p);
    if (err == 0)
        err = pyri_calls_run(w->s, p.calls.list, p.calls.n);
    for (size_t i = 0; i < p.calls.n && err == 0; i++) {
        pyri_call *c = &p.calls.list[i];
        if (c->result < 0)
            err = pyri_rados_fail(w->s, c->result, "nodes of a version");
        pyri_cursor_u64(&c->answer);
        if (bytes)
            *bytes += pyri_cursor_u64(&c->answer);
    }
    plan_fini(&p);
    return err;
}

int
pyri_rnodes_put(pyri_cluster *s, const pyri_complete *c, pyri_turn turn,
                pyri_calls *calls)
{
    work w = {.s = s, .method = "put", .writes = true, .epoch = turn.epoch,
              .mode = PYRI_ENTRY_PUT, .puts = c->nodes};
    plan p = {.calls = *calls};
    int err = c->nnodes ? plan_all(&w, c->nnodes, tier_for(c->nnodes, turn),
                                   &p)
                        : 0;
    *calls = p.calls;
    free(p.counts);
    return err;
}

static pyri_bytes *
keys_of(const pyri_node_put *puts, size_t n)
{
    pyri_bytes *keys = pyri_sys_malloc((n + 1) * sizeof *keys);
    for (size_t i = 0; keys && i < n; i++)
        keys[i] = puts[i].key;
    return keys;
}

void
pyri_rnodes_undo(pyri_cluster *s, const pyri_complete *c, pyri_turn turn)
{
    pyri_bytes *keys = c->nnodes ? keys_of(c->nodes, c->nnodes) : NULL;
    work w = {.s = s, .method = "undo", .writes = true, .epoch = turn.epoch,
              .keys = keys};
    if (keys)
        run_all(&w, c->nnodes, tier_for(c->nnodes, turn), NULL);
    free(keys);
}

int
pyri_rnodes_drop(pyri_cluster *s, const pyri_bytes *keys, size_t n,
                uint64_t *bytes)
{
    work w = {.s = s, .method = "drop", .writes = true, .keys = keys};
    int err = 0;
    for (size_t i = 0; i < n; i++)
        pyri_rcache_drop(s, keys[i]);
    for (int tier = 0; tier < PYRI_RADOS_TIERS && n && err == 0; tier++)
        err = run_all(&w, n, tier, bytes);
    return err;
}

int
pyri_rados_replace_nodes(pyri_engine *e, const pyri_node_put *puts, size_t n)
{
    work w = {.s = pyri_cluster_of(e), .method = "put", .writes = true,
              .mode = PYRI_ENTRY_REPLACE, .puts = puts};
    int err = pyri_cluster_check(w.s);
    for (size_t i = 0; i < n && err == 0; i++)
        pyri_rcache_drop(w.s, puts[i].key);
    for (int tier = 0; tier < PYRI_RADOS_TIERS && n && err == 0; tier++)
        err = run_all(&w, n, tier, NULL);
    return err;
}

/* --- finding ------------------------------------------------------------- */

typedef struct search {
    pyri_cluster *s;
    pyri_reader *r;
    pyri_node_get *gets;
    place *list; /* what is left to be found */
    size_t n;
    pyri_bytes *keys;
} search;

/* Take up the answer to a call about `count` places; tells how many it was
 * about: a page may have been full before. */
static int
take_answer(search *f, pyri_call *c, const place *list, size_t count,
            int tier, size_t *told)
{
    int err = 0;
    *told = count;
    if (c->result == -ENOENT)
        return 0;
    if (c->result < 0)
        return pyri_rados_fail(f->s, c->result, "nodes");
    for (size_t i = 0; i < count && err == 0; i++) {
        pyri_node_get *get = &f->gets[list[i].i];
        if (c->answer.at == c->answer.end) {
            *told = i;
            return i ? 0 : pyri_rados_garbled(c);
        }
        if (!pyri_cursor_u8(&c->answer))
            continue;
        pyri_cursor_varint(&c->answer);
        pyri_bytes value = pyri_cursor_str(&c->answer);
        if (c->answer.failed)
            return pyri_rados_garbled(c);
        get->found = true;
        err = pyri_rados_copy(f->r, value, &get->value);
        pyri_rcache_put(f->s, get->key, value);
        if (tier)
            note_tier(f->s, get->key, tier);
    }
    return err;
}

/* One round: ask for all that is left, each where it is expected. */
static int
ask_all(search *f, int tier)
{
    work w = {.s = f->s, .method = "find", .keys = f->keys};
    size_t left = 0, at = 0;
    plan p = {0};
    if (f->n > 1)
        qsort(f->list, f->n, sizeof *f->list, by_oid);
    int err = make_calls(&w, f->list, f->n, &p);
    if (err == 0)
        err = pyri_calls_run(f->s, p.calls.list, p.calls.n);
    for (size_t i = 0; i < p.calls.n && err == 0; i++) {
        size_t told, count = p.counts[i];
        err = take_answer(f, &p.calls.list[i], f->list + at, count, tier,
                          &told);
        for (size_t k = 0; k < count && err == 0; k++)
            if (k >= told) /* to be asked again */
                f->list[left++] = f->list[at + k];
        at += count;
    }
    f->n = left;
    plan_fini(&p);
    return err;
}

static int
look_in(search *f, int tier, size_t n)
{
    int err = 0;
    f->n = 0;
    for (size_t i = 0; i < n; i++) {
        int known = f->gets[i].found ? -2 : known_tier(f->s, f->gets[i].key);
        if (known != tier && known != -1)
            continue;
        node_oid(f->list[f->n].oid, f->gets[i].key, tier);
        f->list[f->n++].i = i;
    }
    while (f->n && err == 0)
        err = ask_all(f, tier);
    return err;
}

int
pyri_rados_get_nodes(pyri_engine *e, pyri_reader *r, pyri_node_get *gets,
                     size_t n)
{
    search f = {.s = pyri_cluster_of(e), .r = r, .gets = gets};
    int err = pyri_cluster_check(f.s);
    if (err < 0 || n == 0)
        return err;
    f.list = pyri_sys_malloc(n * sizeof *f.list);
    f.keys = pyri_sys_malloc(n * sizeof *f.keys);
    if (!f.list || !f.keys)
        err = pyri_fail_nomem("nodes");
    for (size_t i = 0; i < n && err == 0; i++) {
        gets[i].found = false;
        gets[i].value = (pyri_bytes){0};
        f.keys[i] = gets[i].key;
        err = pyri_rcache_get(f.s, r, &gets[i]);
    }
    for (int tier = 0; tier < PYRI_RADOS_TIERS && err == 0; tier++)
        err = look_in(&f, tier, n);
    free(f.list);
    free(f.keys);
    return err;
}

/* --- all there are ------------------------------------------------------- */

int
pyri_rados_objects(pyri_cluster *s, const char *prefix, pyri_oid_fn *each,
                   void *ctx)
{
    rados_list_ctx_t list;
    const char *oid;
    int err = rados_nobjects_list_open(s->io, &list);
    if (err < 0)
        return pyri_rados_fail(s, err, "the list of objects");
    int got, answer = 0;
    while (answer == 0 &&
           (got = rados_nobjects_list_next(list, &oid, NULL, NULL)) == 0)
        if (strncmp(oid, prefix, strlen(prefix)) == 0)
            answer = each(ctx, oid);
    rados_nobjects_list_close(list);
    if (answer == 0 && got != -ENOENT)
        return pyri_rados_fail(s, got, "the list of objects");
    return answer;
}

int
pyri_rados_entries(pyri_cluster *s, pyri_reader *r, const char *oid,
                   pyri_item_fn *each, void *ctx)
{
    pyri_bytes last = {"", 0};
    bool more = true;
    int err = 0;
    while (more && err == 0) {
        pyri_call c;
        uint8_t what = PYRI_PAGE_END;
        pyri_call_begin(&c, "list", false, oid);
        pyri_buf_varint(&c.in, last.size);
        if (last.size)
            pyri_buf_add(&c.in, last.data, last.size);
        if ((err = pyri_call_run(s, &c)) < 0)
            err = err == -ENOENT ? 0 : pyri_rados_fail(s, err, "%s", oid);
        while (err == 0 &&
               (what = pyri_cursor_u8(&c.answer)) == PYRI_PAGE_ITEM) {
            pyri_bytes key = pyri_cursor_str(&c.answer), value;
            uint64_t weight = pyri_cursor_varint(&c.answer);
            value = pyri_cursor_str(&c.answer);
            if (c.answer.failed)
                err = pyri_rados_garbled(&c);
            else if ((err = pyri_rados_copy(r, key, &last)) == 0 &&
                     (err = pyri_rados_copy(r, value, &value)) == 0)
                err = each(ctx, last, weight, value);
        }
        more = what == PYRI_PAGE_MORE;
        pyri_call_fini(&c);
    }
    return err;
}

/* A shard object, and the first version that it may have nodes of. */
typedef struct shard {
    char oid[PYRI_RADOS_OID];
    uint64_t array, bucket;
} shard;

typedef struct tour {
    pyri_cluster *s;
    pyri_reader *r;
    uint64_t array; /* 0: all */
    shard *shards;
    size_t n, room;
    pyri_node_put *nodes; /* of one bucket */
    size_t nnodes, node_room;
    pyri_rwaiting waiting;
} tour;

static int
note_shard(void *ctx, const char *oid)
{
    tour *t = ctx;
    shard sh = {.bucket = 0};
    unsigned long long array, number;
    if (sscanf(oid + 2, "%16llx.%llx", &array, &number) != 2 ||
        (t->array && array != t->array))
        return 0;
    snprintf(sh.oid, sizeof sh.oid, "%s", oid);
    sh.array = array;
    sh.bucket = oid[0] == 'n' ? number : number / BUCKET;
    if (!pyri_room(&t->shards, &t->room, t->n + 1, sizeof *t->shards))
        return pyri_fail_nomem("a list of objects");
    t->shards[t->n++] = sh;
    return 0;
}

static int
by_bucket(const void *a, const void *b)
{
    const shard *x = a, *y = b;
    if (x->array != y->array)
        return x->array < y->array ? -1 : 1;
    return x->bucket != y->bucket ? (x->bucket < y->bucket ? -1 : 1)
                                  : strcmp(x->oid, y->oid);
}

static int
note_node(void *ctx, pyri_bytes key, uint64_t weight, pyri_bytes value)
{
    tour *t = ctx;
    (void)weight;
    if (!pyri_room(&t->nodes, &t->node_room, t->nnodes + 1, sizeof *t->nodes))
        return pyri_fail_nomem("a list of nodes");
    t->nodes[t->nnodes++] = (pyri_node_put){key, value};
    return 0;
}

static int
by_key(const void *a, const void *b)
{
    const pyri_node_put *x = a, *y = b;
    size_t n = x->key.size < y->key.size ? x->key.size : y->key.size;
    int order = memcmp(x->key.data, y->key.data, n);
    return order ? order : (x->key.size > y->key.size) -
                               (x->key.size < y->key.size);
}

/* The objects of one bucket, from `at` on; tells where the next begins. Lists
 * of what was erased are asked for after the nodes, and kept from bucket to
 * bucket: one that is erased is on a list until it has gone. (It would have to
 * go, list and all, between two calls to be taken for one that counts.) */
static int
visit_bucket(tour *t, size_t *at, pyri_node_fn *each, void *ctx)
{
    const shard *first = &t->shards[*at];
    pyri_reader own = {.site = t->s}; /* memory for this bucket alone */
    int err = 0;
    t->nnodes = 0;
    for (; *at < t->n && err == 0 &&
           t->shards[*at].array == first->array &&
           t->shards[*at].bucket == first->bucket; ++*at)
        err = pyri_rados_entries(t->s, &own, t->shards[*at].oid, note_node, t);
    if (t->nnodes > 1)
        qsort(t->nodes, t->nnodes, sizeof *t->nodes, by_key);
    if (t->nnodes && err == 0)
        err = pyri_rwaiting_add(&t->waiting, t->s, first->array);
    for (size_t i = 0; i < t->nnodes && err == 0; i++)
        if (!pyri_rwaiting_has(&t->waiting, t->nodes[i].key))
            err = each(ctx, t->nodes[i].key, t->nodes[i].value);
    pyri_rados_free_blocks(&own);
    return err;
}

int
pyri_rados_scan_nodes(pyri_engine *e, pyri_reader *r, uint64_t array,
                      pyri_node_fn *each, void *ctx)
{
    tour t = {.s = pyri_cluster_of(e), .r = r, .array = array};
    int err = pyri_cluster_check(t.s);
    if (err == 0)
        err = pyri_rados_objects(t.s, "n.", note_shard, &t);
    if (err == 0)
        err = pyri_rados_objects(t.s, "w.", note_shard, &t);
    if (t.n > 1)
        qsort(t.shards, t.n, sizeof *t.shards, by_bucket);
    for (size_t at = 0; at < t.n && err == 0;)
        err = visit_bucket(&t, &at, each, ctx);
    free(t.shards);
    free(t.nodes);
    free(t.waiting.names);
    return err;
}
