/*
 * engine/rados/rados_upkeep.c - erasing, and giving space back.
 *
 * What is erased is first put on a list in the head, in the step that takes the
 * versions away: from then on nothing leads there. Blobs are struck from the
 * lists of those that are named; the rest is worked off by settle(), now or
 * after a crash, by this process or another.
 *
 * Readers of this process that began before go on seeing it: their lists wait.
 * Readers of other processes are not known here; one that reads a version
 * while it is forgotten and reclaimed may find that parts of it have gone.
 */
#include "engine/rados/rados.h"

#include "base/room.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

/* --- counting once ------------------------------------------------------- */

static pyri_digest
name_of(char kind, pyri_bytes bytes)
{
    uint8_t text[PYRI_MAX_KEY + 1];
    text[0] = (uint8_t)kind;
    memcpy(text + 1, bytes.data, bytes.size);
    return pyri_hash128(text, bytes.size + 1);
}

static bool
is_dying(const pyri_cluster *s, pyri_digest name)
{
    if (s->dying_room == 0)
        return false;
    for (size_t i = (size_t)name.lo;; i++) {
        const pyri_digest *at = &s->dying[i % s->dying_room];
        if (at->lo == 0 && at->hi == 0)
            return false;
        if (at->lo == name.lo && at->hi == name.hi)
            return true;
    }
}

static void
insert(pyri_digest *table, size_t room, pyri_digest name)
{
    size_t i = (size_t)name.lo;
    while (table[i % room].lo || table[i % room].hi)
        i++;
    table[i % room] = name;
}

/* False if there is no memory; then it may be counted twice. */
static bool
note_dying(pyri_cluster *s, pyri_digest name)
{
    if (2 * (s->ndying + 1) > s->dying_room) {
        size_t room = s->dying_room ? 2 * s->dying_room : 1024;
        pyri_digest *table = pyri_sys_calloc(room, sizeof *table);
        if (!table)
            return false;
        for (size_t i = 0; i < s->dying_room; i++)
            if (s->dying[i].lo || s->dying[i].hi)
                insert(table, room, s->dying[i]);
        free(s->dying);
        s->dying = table;
        s->dying_room = room;
    }
    insert(s->dying, s->dying_room, name);
    s->ndying++;
    return true;
}

/* What goes with this call, and with none before it. */
static int
count_nodes(pyri_engine *e, pyri_erase *x)
{
    pyri_cluster *s = pyri_cluster_of(e);
    pyri_reader own = {.site = s};
    pyri_node_get *gets = pyri_sys_calloc(x->nnodes + 1, sizeof *gets);
    if (!gets)
        return pyri_fail_nomem("a list of nodes");
    for (size_t i = 0; i < x->nnodes; i++)
        gets[i].key = x->nodes[i];
    int err = pyri_rados_get_nodes(e, &own, gets, x->nnodes);
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < x->nnodes && err == 0; i++) {
        pyri_digest name = name_of('n', x->nodes[i]);
        if (!gets[i].found || is_dying(s, name))
            continue;
        x->bytes += x->nodes[i].size + gets[i].value.size;
        note_dying(s, name);
    }
    pthread_mutex_unlock(&s->lock);
    pyri_rados_free_blocks(&own);
    free(gets);
    return err;
}

/* --- erasing ------------------------------------------------------------- */

static void
encode_list(const pyri_erase *x, pyri_buf *out)
{
    pyri_buf_varint(out, x->nnodes);
    for (size_t i = 0; i < x->nnodes; i++) {
        pyri_buf_varint(out, x->nodes[i].size);
        pyri_buf_add(out, x->nodes[i].data, x->nodes[i].size);
    }
    pyri_buf_varint(out, x->nblobs);
    for (size_t i = 0; i < x->nblobs; i++) {
        pyri_buf_u64(out, x->blobs[i].ref.a);
        pyri_buf_u64(out, x->blobs[i].ref.b);
        pyri_buf_varint(out, x->blobs[i].size);
    }
}

/* Readers of this process that are open go on seeing the versions. */
static int
keep_records(pyri_engine *e, const pyri_erase *x)
{
    pyri_cluster *s = pyri_cluster_of(e);
    int err = 0;
    pthread_mutex_lock(&s->lock);
    bool read = s->readers != NULL;
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; read && i < x->nversions && err == 0; i++) {
        pyri_reader own = {.site = s, .began = UINT64_MAX};
        pyri_version_get v = {0};
        err = pyri_rados_get_version(e, &own, x->array, x->versions[i], &v);
        uint8_t *copy = err == 0 && v.found
                            ? pyri_sys_malloc(v.record.size + 1)
                            : NULL;
        pthread_mutex_lock(&s->lock);
        if (copy && pyri_room(&s->erased, &s->erased_room, s->nerased + 1,
                              sizeof *s->erased)) {
            if (v.record.size)
                memcpy(copy, v.record.data, v.record.size);
            s->erased[s->nerased++] = (pyri_rerased){
                x->array, x->versions[i], s->clock + 1, copy, v.record.size};
            copy = NULL;
        }
        pthread_mutex_unlock(&s->lock);
        free(copy);
        pyri_rados_free_blocks(&own);
    }
    return err;
}

static int
erase_in_head(pyri_cluster *s, const pyri_erase *x, uint64_t id, bool headless)
{
    pyri_call c;
    pyri_buf list = {0};
    char oid[PYRI_RADOS_OID];
    pyri_rados_head_oid(oid, x->array);
    encode_list(x, &list);
    pyri_call_begin(&c, "erase", true, headless ? PYRI_RADOS_CATALOG : oid);
    pyri_buf_varint(&c.in, x->nversions);
    for (size_t i = 0; i < x->nversions; i++)
        pyri_buf_u64(&c.in, x->versions[i]);
    bool some = x->nnodes + x->nblobs;
    pyri_buf_u64(&c.in, id);
    pyri_buf_varint(&c.in, some ? list.size : 0);
    if (some)
        pyri_buf_add(&c.in, list.data, list.size);
    int err = list.failed ? -ENOMEM : pyri_call_run(s, &c);
    pyri_call_fini(&c);
    pyri_buf_fini(&list);
    if (err == PYRI_CLS_INVALID)
        return pyri_fail(PYR_EINVAL, "a version of array %llu is not "
                         "forgotten", (unsigned long long)x->array);
    return err < 0 ? pyri_rados_fail(s, err, "erasing what was forgotten") : 0;
}

int
pyri_rados_erase(pyri_engine *e, pyri_erase *x)
{
    pyri_cluster *s = pyri_cluster_of(e);
    uint64_t id;
    bool headless = x->nversions == 0;
    int err = pyri_cluster_check(s);
    if (err < 0 || (err = pyri_rados_random(&id, sizeof id)) < 0 ||
        (err = keep_records(e, x)) < 0 ||
        (err = erase_in_head(s, x, id, headless)) < 0)
        return err;
    if ((err = count_nodes(e, x)) == 0)
        err = pyri_rblobs_unlist(s, x->blobs, x->nblobs, &x->bytes);
    pthread_mutex_lock(&s->lock);
    s->clock++;
    if (x->nnodes + x->nblobs == 0)
        ; /* nothing waits */
    else if (pyri_room(&s->limbo, &s->limbo_room, s->nlimbo + 1,
                       sizeof *s->limbo))
        s->limbo[s->nlimbo++] = (pyri_rlimbo){x->array, id, s->clock, x->bytes,
                                             headless};
    pthread_mutex_unlock(&s->lock);
    return err;
}

/* --- working lists off --------------------------------------------------- */

typedef struct erasing {
    pyri_bytes *keys;
    pyri_blob *blobs;
    size_t nkeys, nblobs;
} erasing;

static int
fail_list(void)
{
    return pyri_fail(PYR_ECORRUPT, "a list of what was erased is damaged");
}

static void
erasing_fini(erasing *x)
{
    free(x->keys);
    free(x->blobs);
}

/* End *x in any case. */
static int
decode_list(pyri_bytes list, erasing *x)
{
    pyri_cursor c = pyri_cursor_of(list.data, list.size);
    uint64_t n = pyri_cursor_varint(&c);
    if (n > list.size)
        return fail_list();
    if (!(x->keys = pyri_sys_malloc((n + 1) * sizeof *x->keys)))
        return pyri_fail_nomem("a list of what was erased");
    for (; x->nkeys < n; x->nkeys++) {
        pyri_bytes key = pyri_cursor_str(&c);
        if (key.size == 0 || key.size > PYRI_MAX_KEY)
            return fail_list();
        x->keys[x->nkeys] = key;
    }
    n = pyri_cursor_varint(&c);
    if (n > list.size)
        return fail_list();
    if (!(x->blobs = pyri_sys_malloc((n + 1) * sizeof *x->blobs)))
        return pyri_fail_nomem("a list of what was erased");
    for (; x->nblobs < n; x->nblobs++) {
        pyri_ref ref = {pyri_cursor_u64(&c), pyri_cursor_u64(&c)};
        x->blobs[x->nblobs] = (pyri_blob){ref, pyri_cursor_varint(&c)};
    }
    return c.failed ? fail_list() : 0;
}

static int
work_off(pyri_cluster *s, pyri_bytes list, uint64_t *bytes)
{
    erasing x = {0};
    int err = decode_list(list, &x);
    if (err == 0)
        err = pyri_rblobs_drop(s, x.blobs, x.nblobs);
    for (size_t i = 0; i < x.nblobs && err == 0; i++)
        *bytes += x.blobs[i].size;
    if (err == 0)
        err = pyri_rnodes_drop(s, x.keys, x.nkeys, bytes);
    erasing_fini(&x);
    return err;
}

static int
bury(pyri_cluster *s, const char *oid, uint64_t id)
{
    pyri_call c;
    pyri_call_begin(&c, "bury", true, oid);
    pyri_buf_u64(&c.in, id);
    int err = pyri_call_run(s, &c);
    pyri_call_fini(&c);
    return err < 0 ? pyri_rados_fail(s, err, "a list of what was erased") : 0;
}

/* Does a reader of ours that began before still need what is on this list? */
static bool
must_wait(pyri_cluster *s, uint64_t id, uint64_t *waiting)
{
    bool wait = false;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->nlimbo; i++) {
        if (s->limbo[i].id != id)
            continue;
        for (const pyri_reader *r = s->readers; r; r = r->next)
            wait |= r->began < s->limbo[i].when;
        if (wait)
            *waiting += s->limbo[i].bytes;
        else
            s->limbo[i] = s->limbo[--s->nlimbo];
        break;
    }
    pthread_mutex_unlock(&s->lock);
    return wait;
}

/* Called with the lists of an object, one after the other. */
typedef int list_fn(void *ctx, const char *oid, uint64_t id, pyri_bytes list);

static int
each_list(pyri_cluster *s, const char *oid, list_fn *each, void *ctx)
{
    uint64_t id = 0;
    bool first = true;
    int err = 0;
    while (err == 0) {
        pyri_call c;
        pyri_call_begin(&c, "limbo", false, oid);
        pyri_buf_u64(&c.in, id);
        pyri_buf_u8(&c.in, first);
        first = false;
        err = pyri_call_run(s, &c);
        if (err < 0 || pyri_cursor_u8(&c.answer) != PYRI_PAGE_ITEM) {
            pyri_call_fini(&c);
            if (err == -ENOENT)
                err = 0;
            return err < 0 ? pyri_rados_fail(s, err, "%s", oid) : 0;
        }
        id = pyri_cursor_u64(&c.answer);
        pyri_bytes list = pyri_cursor_str(&c.answer);
        err = c.answer.failed ? pyri_rados_garbled(&c)
                              : each(ctx, oid, id, list);
        pyri_call_fini(&c);
    }
    return err;
}

typedef struct settling {
    pyri_cluster *s;
    pyri_settled *out;
} settling;

static int
settle_list(void *ctx, const char *oid, uint64_t id, pyri_bytes list)
{
    const settling *x = ctx;
    if (must_wait(x->s, id, &x->out->waiting))
        return 0;
    int err = work_off(x->s, list, &x->out->bytes);
    return err == 0 ? bury(x->s, oid, id) : err;
}

/* --- nodes that wait ----------------------------------------------------- */

static int
by_name(const void *a, const void *b)
{
    const pyri_digest *x = a, *y = b;
    if (x->lo != y->lo)
        return x->lo < y->lo ? -1 : 1;
    return (x->hi > y->hi) - (x->hi < y->hi);
}

static int
note_waiting(void *ctx, const char *oid, uint64_t id, pyri_bytes list)
{
    pyri_rwaiting *w = ctx;
    erasing x = {0};
    (void)oid, (void)id;
    int err = decode_list(list, &x);
    if (err == 0 &&
        !pyri_room(&w->names, &w->room, w->n + x.nkeys, sizeof *w->names))
        err = pyri_fail_nomem("a list of nodes");
    for (size_t i = 0; i < x.nkeys && err == 0; i++)
        w->names[w->n++] = name_of('n', x.keys[i]);
    erasing_fini(&x);
    return err;
}

int
pyri_rwaiting_add(pyri_rwaiting *w, pyri_cluster *s, uint64_t array)
{
    char oid[PYRI_RADOS_OID];
    size_t kept = 0;
    pyri_rados_head_oid(oid, array);
    int err = each_list(s, oid, note_waiting, w);
    if (err == 0)
        err = each_list(s, PYRI_RADOS_CATALOG, note_waiting, w);
    if (w->n > 1)
        qsort(w->names, w->n, sizeof *w->names, by_name);
    for (size_t i = 0; i < w->n; i++)
        if (i == 0 || by_name(&w->names[kept - 1], &w->names[i]) != 0)
            w->names[kept++] = w->names[i];
    w->n = kept;
    return err;
}

bool
pyri_rwaiting_has(const pyri_rwaiting *w, pyri_bytes key)
{
    if (w->n == 0 || key.size > PYRI_MAX_KEY) /* it comes from a cluster */
        return false;
    pyri_digest name = name_of('n', key);
    return bsearch(&name, w->names, w->n, sizeof name, by_name) != NULL;
}

/* --- settling ------------------------------------------------------------ */

/* Records of erased versions that no reader can ask for any more. */
static void
drop_records(pyri_cluster *s)
{
    uint64_t oldest = UINT64_MAX;
    size_t kept = 0;
    pthread_mutex_lock(&s->lock);
    for (const pyri_reader *r = s->readers; r; r = r->next)
        oldest = r->began < oldest ? r->began : oldest;
    for (size_t i = 0; i < s->nerased; i++)
        if (s->erased[i].when > oldest)
            s->erased[kept++] = s->erased[i];
        else
            free(s->erased[i].record);
    s->nerased = kept;
    if (s->nlimbo == 0 && s->dying) {
        memset(s->dying, 0, s->dying_room * sizeof *s->dying);
        s->ndying = 0;
    }
    pthread_mutex_unlock(&s->lock);
}

int
pyri_rados_settle(pyri_engine *e, pyri_settled *out)
{
    pyri_cluster *s = pyri_cluster_of(e);
    uint64_t *heads = NULL;
    size_t n = 0;
    char oid[PYRI_RADOS_OID];
    int err = pyri_cluster_check(s);
    if (err < 0 || (err = pyri_rados_settle_edits(s)) < 0 ||
        (err = pyri_rados_heads(s, &heads, &n)) < 0)
        return err;
    settling x = {s, out};
    err = each_list(s, PYRI_RADOS_CATALOG, settle_list, &x);
    for (size_t i = 0; i < n && err == 0; i++) {
        pyri_rados_head_oid(oid, heads[i]);
        err = each_list(s, oid, settle_list, &x);
    }
    drop_records(s);
    if (err == 0)
        err = pyri_sessions_sweep(s, heads, n, out);
    free(heads);
    return err;
}
