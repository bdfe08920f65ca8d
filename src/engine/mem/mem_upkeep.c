/*
 * engine/mem/mem_upkeep.c - forgetting versions, and erasing what they held.
 *
 * A reader that is open must go on seeing what is erased. There is no second
 * copy of anything here; so what is erased waits until no reader is open. New
 * readers do not find their way there, as nothing that is kept leads to it.
 */
#include "engine/mem/mem.h"

#include "base/bytes.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

/* One call of erase, waiting. */
struct pyri_mem_dying {
    pyri_mem_dying *next;
    pyri_bytes *nodes; /* keys; their bytes follow */
    size_t nnodes;
    uint64_t *blobs; /* numbers */
    size_t nblobs;
    uint64_t array;
    uint64_t *versions; /* behind the blobs */
    size_t nversions;
};

/* --- marks --------------------------------------------------------------- */

bool
pyri_mem_is_forgotten(pyri_mem_store *s, uint64_t array, uint64_t version)
{
    uint8_t key[16];
    pyri_mem_version_key(key, array, version);
    return pyri_mem_find(&s->forgotten, (pyri_bytes){key, sizeof key}) != NULL;
}

static bool
is_there(pyri_mem_store *s, uint64_t array, uint64_t version)
{
    uint8_t key[16];
    pyri_mem_version_key(key, array, version);
    return pyri_mem_find(&s->history, (pyri_bytes){key, sizeof key}) != NULL;
}

int
pyri_mem_forget(pyri_mem_store *s, pyri_mem_batch *b, const pyri_edit *edit)
{
    uint8_t key[16];
    if (edit->version >= pyri_mem_newest(s, edit->array))
        return pyri_fail(PYR_EINVAL,
                         "version %llu is not older than the newest one",
                         (unsigned long long)edit->version);
    if (!is_there(s, edit->array, edit->version))
        return 0;
    pyri_mem_version_key(key, edit->array, edit->version);
    return pyri_mem_batch_put(b, &s->forgotten, (pyri_bytes){key, sizeof key},
                              (pyri_bytes){0});
}

int
pyri_mem_kept(pyri_mem_store *s, const pyri_edit *edit)
{
    if (edit->version <= pyri_mem_newest(s, edit->array) &&
        is_there(s, edit->array, edit->version) &&
        !pyri_mem_is_forgotten(s, edit->array, edit->version))
        return 0;
    return pyri_fail(PYR_ENOVERSION, "version %llu was forgotten",
                     (unsigned long long)edit->version);
}

int
pyri_mem_scan_forgotten(pyri_engine *e, pyri_reader *r,
                        pyri_forgotten_fn *each, void *ctx)
{
    (void)r;
    pyri_mem_store *s = pyri_mem_store_of(e);
    const pyri_mem_entry **list;
    size_t n;
    pthread_mutex_lock(&s->lock);
    int err = pyri_mem_range(&s->forgotten, (pyri_bytes){0}, (pyri_bytes){0},
                             &list, &n);
    pthread_mutex_unlock(&s->lock);
    if (err < 0)
        return err;
    for (size_t i = 0; i < n && err == 0; i++) {
        const uint8_t *key = list[i]->key.data;
        err = each(ctx, pyri_load64_be(key), pyri_load64_be(key + 8));
    }
    free(list);
    return err;
}

/* --- erasing ------------------------------------------------------------- */

static void
free_blob(pyri_mem_store *s, uint64_t number)
{
    if (number == 0 || number > s->nblobs || !s->blobs[number - 1].data)
        return;
    pyri_mem_blob *blob = &s->blobs[number - 1];
    s->data_bytes -= blob->size;
    free(blob->data);
    blob->data = NULL;
}

static void
delete_key(pyri_mem_store *s, pyri_mem_map *map, pyri_bytes key)
{
    pyri_mem_change room;
    pyri_mem_batch one = {&room, 0};
    pyri_mem_batch_delete(&one, map, key);
    if (one.n) {
        room.was->dead = s->graveyard;
        s->graveyard = room.was;
    }
}

static void
free_dying(pyri_mem_dying *d)
{
    free(d->nodes);
    free(d->blobs);
    free(d);
}

void
pyri_mem_bury(pyri_mem_store *s)
{
    uint8_t bytes[16];
    pyri_bytes key = {bytes, sizeof bytes};
    while (s->dying && s->readers == 0) {
        pyri_mem_dying *d = s->dying;
        s->dying = d->next;
        for (size_t i = 0; i < d->nnodes; i++)
            delete_key(s, &s->nodes, d->nodes[i]);
        for (size_t i = 0; i < d->nblobs; i++)
            free_blob(s, d->blobs[i]);
        for (size_t i = 0; i < d->nversions; i++) {
            pyri_mem_version_key(bytes, d->array, d->versions[i]);
            delete_key(s, &s->history, key);
            delete_key(s, &s->forgotten, key);
        }
        free_dying(d);
    }
}

/* Copies what is to be erased; the keys' bytes lie behind their list. */
static pyri_mem_dying *
new_dying(const pyri_erase *x)
{
    size_t bytes = 0;
    for (size_t i = 0; i < x->nnodes; i++)
        bytes += x->nodes[i].size;
    pyri_mem_dying *d = pyri_sys_calloc(1, sizeof *d);
    pyri_bytes *nodes = pyri_sys_malloc(x->nnodes * sizeof *nodes + bytes + 1);
    uint64_t *blobs =
        pyri_sys_malloc((x->nblobs + x->nversions + 1) * sizeof *blobs);
    if (!d || !nodes || !blobs) {
        free(d);
        free(nodes);
        free(blobs);
        return NULL;
    }
    uint8_t *at = (uint8_t *)(nodes + x->nnodes);
    for (size_t i = 0; i < x->nnodes; i++) {
        memcpy(at, x->nodes[i].data, x->nodes[i].size);
        nodes[i] = (pyri_bytes){at, x->nodes[i].size};
        at += x->nodes[i].size;
    }
    for (size_t i = 0; i < x->nblobs; i++)
        blobs[i] = x->blobs[i].ref.a;
    for (size_t i = 0; i < x->nversions; i++)
        blobs[x->nblobs + i] = x->versions[i];
    *d = (pyri_mem_dying){.nodes = nodes,
                          .nnodes = x->nnodes,
                          .blobs = blobs,
                          .nblobs = x->nblobs,
                          .array = x->array,
                          .versions = blobs + x->nblobs,
                          .nversions = x->nversions};
    return d;
}

/* Count what goes with this call, and with none before it. */
static void
mark_dying(pyri_mem_store *s, pyri_erase *x)
{
    for (size_t i = 0; i < x->nnodes; i++) {
        pyri_mem_entry *node = pyri_mem_find(&s->nodes, x->nodes[i]);
        if (node && !node->dying) {
            x->bytes += x->nodes[i].size + node->value.size;
            node->dying = true;
        }
    }
    for (size_t i = 0; i < x->nblobs; i++) {
        uint64_t number = x->blobs[i].ref.a;
        pyri_mem_blob *blob = number && number <= s->nblobs
                                  ? &s->blobs[number - 1]
                                  : NULL;
        if (blob && blob->data && !blob->dying) {
            x->bytes += blob->size;
            blob->dying = true;
        }
    }
}

static void
let_die(pyri_mem_store *s, pyri_erase *x, pyri_mem_dying *d)
{
    mark_dying(s, x);
    d->next = s->dying;
    s->dying = d;
    pyri_mem_bury(s);
    if (s->readers == 0)
        pyri_mem_clear_graveyard(&s->graveyard);
}

int
pyri_mem_erase(pyri_engine *e, pyri_erase *x)
{
    pyri_mem_store *s = pyri_mem_store_of(e);
    pyri_mem_dying *d = new_dying(x);
    if (!d)
        return pyri_fail_nomem("a list of what to erase");
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < x->nversions; i++)
        if (is_there(s, x->array, x->versions[i]) &&
            !pyri_mem_is_forgotten(s, x->array, x->versions[i])) {
            pthread_mutex_unlock(&s->lock);
            free_dying(d);
            return pyri_fail(PYR_EINVAL, "version %llu is not forgotten",
                             (unsigned long long)x->versions[i]);
        }
    let_die(s, x, d);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

void
pyri_mem_drop_blobs(pyri_engine *e, const pyri_blob *blobs, size_t n,
                    const pyri_blob *near, size_t nnear)
{
    pyri_mem_store *s = pyri_mem_store_of(e);
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < n; i++)
        free_blob(s, blobs[i].ref.a);
    pthread_mutex_unlock(&s->lock);
}

int
pyri_mem_settle(pyri_engine *e, pyri_settled *out)
{
    pyri_mem_store *s = pyri_mem_store_of(e);
    pthread_mutex_lock(&s->lock);
    pyri_mem_bury(s);
    for (const pyri_mem_dying *d = s->dying; d; d = d->next)
        for (size_t i = 0; i < d->nblobs; i++)
            if (d->blobs[i] && d->blobs[i] <= s->nblobs)
                out->waiting += s->blobs[d->blobs[i] - 1].size;
    pthread_mutex_unlock(&s->lock);
    return 0;
}

int
pyri_mem_begin_upkeep(pyri_engine *e)
{
    pyri_mem_store *s = pyri_mem_store_of(e);
    pthread_mutex_lock(&s->lock);
    bool busy = s->upkeep;
    s->upkeep = true;
    pthread_mutex_unlock(&s->lock);
    return busy ? pyri_fail(PYR_ETIMEOUT, "another thread is giving space "
                                          "back")
                : 0;
}

void
pyri_mem_end_upkeep(pyri_engine *e)
{
    pyri_mem_store *s = pyri_mem_store_of(e);
    pthread_mutex_lock(&s->lock);
    s->upkeep = false;
    pthread_mutex_unlock(&s->lock);
}

int
pyri_mem_replace_nodes(pyri_engine *e, const pyri_node_put *puts, size_t n)
{
    pyri_mem_store *s = pyri_mem_store_of(e);
    pyri_mem_batch batch;
    pthread_mutex_lock(&s->lock);
    int err = pyri_mem_batch_begin(&batch, n);
    if (err == 0) {
        for (size_t i = 0; i < n && err == 0; i++)
            if (pyri_mem_find(&s->nodes, puts[i].key))
                err = pyri_mem_batch_put(&batch, &s->nodes, puts[i].key,
                                         puts[i].value);
        err = pyri_mem_finish(s, &batch, err);
    }
    pthread_mutex_unlock(&s->lock);
    return err;
}

/* --- folding ------------------------------------------------------------- */

static uint64_t
folds_of(pyri_mem_store *s, uint64_t family)
{
    uint8_t key[8];
    pyri_store64_be(key, family);
    const pyri_mem_entry *e =
        pyri_mem_find(&s->folds, (pyri_bytes){key, sizeof key});
    return e ? pyri_load64(e->value.data) : 0;
}

int
pyri_mem_folds(pyri_engine *e, pyri_reader *r, uint64_t family, uint64_t *out)
{
    (void)r;
    pyri_mem_store *s = pyri_mem_store_of(e);
    pthread_mutex_lock(&s->lock);
    *out = folds_of(s, family);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

void
pyri_mem_fold_wait(pyri_mem_store *s)
{
    while (s->deciding)
        pthread_cond_wait(&s->decided, &s->lock);
}

int
pyri_mem_fold_check(pyri_mem_store *s, const pyri_complete *c)
{
    if (c->family == 0 || folds_of(s, c->family) == c->folds)
        return 0;
    return pyri_fail(PYR_ENOVERSION, "what version %llu of array %llu lies on "
                     "was folded meanwhile", (unsigned long long)c->version,
                     (unsigned long long)c->array);
}

static int
fold_locked(pyri_mem_store *s, pyri_fold *f)
{
    uint8_t key[8], count[8];
    pyri_mem_batch batch;
    pyri_mem_dying *d = new_dying(&f->gone);
    if (!d)
        return pyri_fail_nomem("a list of what to erase");
    int err = pyri_mem_batch_begin(&batch, f->nnodes + 1);
    if (err == 0) {
        for (size_t i = 0; i < f->nnodes && err == 0; i++)
            if (pyri_mem_find(&s->nodes, f->nodes[i].key))
                err = pyri_mem_batch_put(&batch, &s->nodes, f->nodes[i].key,
                                         f->nodes[i].value);
        pyri_store64_be(key, f->family);
        pyri_store64(count, folds_of(s, f->family) + 1);
        if (err == 0)
            err = pyri_mem_batch_put(&batch, &s->folds,
                                     (pyri_bytes){key, sizeof key},
                                     (pyri_bytes){count, sizeof count});
        err = pyri_mem_finish(s, &batch, err);
    }
    if (err < 0) {
        free_dying(d);
        return err;
    }
    for (size_t i = 0; i < f->nblobs; i++) {
        pyri_mem_blob *blob = &s->blobs[f->blobs[i].blob.ref.a - 1];
        blob->named = true;
        blob->array = f->blobs[i].array;
        blob->version = f->blobs[i].version;
    }
    let_die(s, &f->gone, d);
    return 0;
}

int
pyri_mem_fold(pyri_engine *e, pyri_fold *f)
{
    pyri_mem_store *s = pyri_mem_store_of(e);
    pyri_reader *r;
    int err = e->ops->begin(e, &r);
    if (err < 0)
        return err;
    pthread_mutex_lock(&s->lock);
    s->deciding = true; /* one at a time: the caller has begun upkeep */
    pthread_mutex_unlock(&s->lock);
    err = f->decide(f, r);
    pthread_mutex_lock(&s->lock);
    if (err == 0 && f->nnodes)
        err = fold_locked(s, f);
    s->deciding = false;
    pthread_cond_broadcast(&s->decided);
    pthread_mutex_unlock(&s->lock);
    e->ops->end(e, r);
    return err;
}

/* --- everything ---------------------------------------------------------- */

int
pyri_mem_scan_nodes(pyri_engine *e, pyri_reader *r, uint64_t array,
                    pyri_node_fn *each, void *ctx)
{
    (void)r;
    pyri_mem_store *s = pyri_mem_store_of(e);
    uint8_t key[8];
    pyri_store64_be(key, array);
    return pyri_mem_scan(s, &s->nodes,
                         (pyri_bytes){key, array ? sizeof key : 0}, each, ctx);
}

int
pyri_mem_scan_blobs(pyri_engine *e, pyri_reader *r, pyri_blob_fn *each,
                    void *ctx)
{
    (void)r;
    pyri_mem_store *s = pyri_mem_store_of(e);
    int err = 0;
    for (size_t i = 0; err == 0; i++) {
        pyri_mem_blob blob = {0};
        pthread_mutex_lock(&s->lock);
        bool more = i < s->nblobs;
        if (more)
            blob = s->blobs[i];
        pthread_mutex_unlock(&s->lock);
        if (!more)
            break;
        pyri_blob tell = {{i + 1, 0}, blob.size};
        if (blob.data && blob.named)
            err = each(ctx, &tell, blob.array, blob.version);
    }
    return err;
}
