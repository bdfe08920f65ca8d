/*
 * engine/rados/rados_versions.c - version managers: calls of the head object.
 *
 * Completing a version stores its nodes first, where nothing leads to them yet,
 * and then its record in the head: that is the moment. Both carry the epoch in
 * which this writer got the version. Whoever completes in another's place asks
 * for a new epoch first; from then on the head refuses the old one, and nodes
 * of the new one win over those of the old. (cls/heads.c, cls/entries.c)
 */
#include "engine/rados/rados.h"

#include "base/checked.h"
#include "base/fault.h"
#include "base/room.h"
#include "base/sys.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void
head_call(pyri_call *c, const char *method, bool writes, uint64_t array)
{
    char oid[PYRI_RADOS_OID];
    pyri_rados_head_oid(oid, array);
    pyri_call_begin(c, method, writes, oid);
}

static int
fail_version(pyri_cluster *s, int err, uint64_t array, uint64_t version)
{
    if (err == -ENOENT)
        return pyri_fail(PYR_ENOTFOUND, "there is no array %llu",
                         (unsigned long long)array);
    if (err == PYRI_CLS_FENCED)
        return pyri_fail(PYR_EFENCED,
                         "version %llu of array %llu is complete already or "
                         "was never given out: its writer took too long, and "
                         "another one resolved it",
                         (unsigned long long)version,
                         (unsigned long long)array);
    return pyri_rados_fail(s, err, "version %llu of array %llu",
                           (unsigned long long)version,
                           (unsigned long long)array);
}

/* How many axes an array has never changes. */
static void
note_axes(pyri_cluster *s, uint64_t array, int ndim)
{
    size_t slot = array % PYRI_RADOS_AXES;
    pthread_mutex_lock(&s->lock);
    s->axes_of[slot] = array;
    s->axes[slot] = (uint8_t)ndim;
    pthread_mutex_unlock(&s->lock);
}

int
pyri_rados_latest(pyri_engine *e, pyri_reader *r, uint64_t array,
                  uint64_t *version, uint64_t *shape)
{
    uint64_t mark;
    return pyri_rados_marked(e, r, array, version, shape, &mark);
}

int
pyri_rados_marked(pyri_engine *e, pyri_reader *r, uint64_t array,
                  uint64_t *version, uint64_t *shape, uint64_t *mark)
{
    pyri_cluster *s = pyri_cluster_of(e);
    pyri_call c;
    int err = pyri_cluster_check(s);
    if (err < 0)
        return err;
    head_call(&c, "latest", false, array);
    pyri_buf_u8(&c.in, r != NULL); /* with its record: that is asked next */
    if ((err = pyri_call_run(s, &c)) < 0) {
        err = fail_version(s, err, array, 0);
    } else {
        *version = pyri_cursor_u64(&c.answer);
        pyri_cursor_u64(&c.answer);
        *mark = pyri_cursor_u64(&c.answer);
        int ndim = pyri_cursor_u8(&c.answer);
        uint64_t got[PYR_MAX_DIMS];
        for (int d = 0; d < ndim && d < PYR_MAX_DIMS; d++)
            got[d] = pyri_cursor_u64(&c.answer);
        if (c.answer.failed || ndim < 1 || ndim > PYR_MAX_DIMS)
            err = pyri_rados_garbled(&c);
        else if (shape)
            memcpy(shape, got, (size_t)ndim * sizeof *shape);
        if (err == 0)
            note_axes(s, array, ndim);
        if (err == 0 && r && c.answer.at < c.answer.end)
            err = pyri_rados_note_latest(r, array, *version, &c.answer);
    }
    pyri_call_fini(&c);
    return err;
}

static int
axes_of(pyri_cluster *s, uint64_t array)
{
    pyri_call c;
    size_t slot = array % PYRI_RADOS_AXES;
    pthread_mutex_lock(&s->lock);
    int ndim = s->axes_of[slot] == array ? s->axes[slot] : 0;
    pthread_mutex_unlock(&s->lock);
    if (ndim)
        return ndim;
    head_call(&c, "latest", false, array);
    pyri_buf_u8(&c.in, 0);
    int err = pyri_call_run(s, &c);
    pyri_cursor_take(&c.answer, 8 + 8 + 8); /* newest, next, mark */
    ndim = pyri_cursor_u8(&c.answer);
    pyri_call_fini(&c);
    if (err < 0)
        return err;
    if (ndim < 1 || ndim > PYR_MAX_DIMS)
        return PYRI_CLS_BAD;
    note_axes(s, array, ndim);
    return ndim;
}

int
pyri_rados_in_flight(pyri_cluster *s, uint64_t *out)
{
    uint64_t *heads;
    size_t n;
    pyri_calls calls = {0};
    int err = pyri_rados_heads(s, &heads, &n);
    *out = 0;
    for (size_t i = 0; i < n && err == 0; i++) {
        pyri_call *c = pyri_calls_add(&calls, NULL, false, "");
        if (c)
            head_call(c, "latest", false, heads[i]);
        else
            err = pyri_fail_nomem("a list of arrays");
        if (c)
            pyri_buf_u8(&c->in, 0);
    }
    if (err == 0)
        err = pyri_calls_run(s, calls.list, calls.n);
    for (size_t i = 0; i < calls.n && err == 0; i++) {
        uint64_t latest = pyri_cursor_u64(&calls.list[i].answer);
        uint64_t next = pyri_cursor_u64(&calls.list[i].answer);
        if (calls.list[i].result == 0)
            *out += next - 1 - latest;
    }
    pyri_calls_fini(&calls);
    free(heads);
    return err;
}

/* --- what is in flight --------------------------------------------------- */

/* Whose flights they are: the sessions of the writers, and of those that took
 * them, if others have them now. */
typedef struct owners {
    uint64_t *list, *takers;
    size_t n, room, takers_room;
} owners;

/* Claims are noted as offsets first, as their memory moves while it grows. */
static int
read_flight(pyri_cursor *c, int ndim, pyri_flights *out, size_t *room,
            owners *w)
{
    if (!pyri_room(&out->list, room, out->n + 1, sizeof *out->list))
        return -ENOMEM;
    pyri_flight *f = &out->list[out->n];
    memset(f, 0, sizeof *f);
    f->version = pyri_cursor_u64(c);
    int flags = pyri_cursor_u8(c);
    f->complete = flags & PYRI_F_COMPLETE;
    f->dead = flags & PYRI_F_DEAD;
    f->base = pyri_cursor_u64(c);
    uint64_t owner = pyri_cursor_u64(c), taker = pyri_cursor_u64(c);
    if (!pyri_room(&w->list, &w->room, w->n + 1, sizeof *w->list) ||
        !pyri_room(&w->takers, &w->takers_room, w->n + 1, sizeof *w->takers))
        return -ENOMEM;
    w->takers[w->n] = taker;
    w->list[w->n++] = owner;
    for (int d = 0; d < ndim; d++)
        f->shape[d] = pyri_cursor_u64(c);
    pyri_bytes claim = pyri_cursor_str(c);
    f->claim = (pyri_bytes){NULL, claim.size};
    if (claim.size)
        pyri_buf_add(&out->claims, claim.data, claim.size);
    if (c->failed || f->version != out->base + 1 + out->n)
        return PYRI_CLS_BAD;
    out->n++;
    return out->claims.failed ? -ENOMEM : 0;
}

/* One page. If others were published meanwhile, what was read before of those
 * goes. */
static int
read_flights(pyri_call *c, pyri_flights *out, size_t *room, owners *w,
             bool *more)
{
    pyri_cursor *a = &c->answer;
    uint64_t latest = pyri_cursor_u64(a);
    pyri_cursor_u64(a);
    int ndim = pyri_cursor_u8(a), err = 0;
    if (a->failed || ndim > PYR_MAX_DIMS)
        return PYRI_CLS_BAD;
    if (out->n && latest != out->base)
        return PYRI_CLS_BUSY; /* begin again */
    out->base = latest;
    for (int d = 0; d < ndim; d++)
        out->base_shape[d] = pyri_cursor_u64(a);
    uint8_t what = PYRI_PAGE_END;
    while (err == 0 && (what = pyri_cursor_u8(a)) == PYRI_PAGE_ITEM)
        err = read_flight(a, ndim, out, room, w);
    *more = what == PYRI_PAGE_MORE;
    return err == 0 && a->failed ? PYRI_CLS_BAD : err;
}

/* Writers whose process is gone are dead before their lease is over. */
static int
find_dead(pyri_cluster *s, pyri_flights *all, const owners *w)
{
    size_t doubtful = 0;
    pthread_mutex_lock(&s->lock);
    uint64_t own = s->session;
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < all->n; i++)
        doubtful += !all->list[i].complete && !all->list[i].dead &&
                    w->list[i] != own;
    bool *there = doubtful ? pyri_sys_calloc(all->n, sizeof *there) : NULL;
    if (!there)
        return doubtful ? -ENOMEM : 0;
    int err = pyri_sessions_there(s, w->list, all->n, there);
    for (size_t i = 0; i < all->n && err == 0; i++)
        if (!all->list[i].complete && w->list[i] != own)
            all->list[i].dead |= !there[i];
    free(there);
    return err < 0 ? -EIO : 0;
}

static int
ask_owned_flights(pyri_cluster *s, uint64_t array, uint64_t below,
                  pyri_flights *out, owners *w)
{
    size_t room = 0;
    bool more = true;
    int err = 0;
    while (more && (err == 0 || err == PYRI_CLS_BUSY)) {
        pyri_call c;
        if (err == PYRI_CLS_BUSY) {
            pyri_flights_fini(out);
            room = 0;
            w->n = 0;
        }
        head_call(&c, "flights", false, array);
        pyri_buf_u64(&c.in, out->n ? out->base + out->n + 1 : 0);
        pyri_buf_u64(&c.in, below);
        if ((err = pyri_call_run(s, &c)) == 0)
            err = read_flights(&c, out, &room, w, &more);
        pyri_call_fini(&c);
    }
    if (err == 0 && !out->list && !pyri_room(&out->list, &room, 1,
                                             sizeof *out->list))
        err = -ENOMEM;
    const uint8_t *claim = out->claims.data;
    for (size_t i = 0; i < out->n && err == 0; i++) {
        out->list[i].claim.data = claim ? claim : (const uint8_t *)"";
        claim += claim ? out->list[i].claim.size : 0;
    }
    return err;
}

static void
owners_fini(owners *w)
{
    free(w->list);
    free(w->takers);
}

/* With `judge`, also find out who of them is gone. */
static int
ask_flights(pyri_cluster *s, uint64_t array, uint64_t below, bool judge,
            pyri_flights *out)
{
    owners w = {0};
    int err = ask_owned_flights(s, array, below, out, &w);
    if (err == 0 && judge)
        err = find_dead(s, out, &w);
    owners_fini(&w);
    if (err < 0)
        pyri_flights_fini(out);
    return err;
}

int
pyri_rados_takers(pyri_cluster *s, uint64_t array, const uint64_t *sessions,
                  size_t n, bool *any)
{
    owners w = {0};
    pyri_flights all = {0};
    int err = ask_owned_flights(s, array, UINT64_MAX, &all, &w);
    for (size_t i = 0; i < all.n && err == 0; i++)
        for (size_t k = 0; k < n && !all.list[i].complete; k++)
            any[k] |= w.takers[i] == sessions[k];
    owners_fini(&w);
    pyri_flights_fini(&all);
    if (err == -ENOENT)
        return 0;
    return err < 0 ? fail_version(s, err, array, 0) : 0;
}

int
pyri_rados_flights(pyri_engine *e, uint64_t array, pyri_flights *out)
{
    pyri_cluster *s = pyri_cluster_of(e);
    int err = pyri_cluster_check(s);
    if (err < 0)
        return err;
    err = ask_flights(s, array, UINT64_MAX, true, out);
    return err < 0 ? fail_version(s, err, array, 0) : 0;
}

/* --- versions that are ours ---------------------------------------------- */

static pyri_rheld **
bucket_of(pyri_cluster *s, uint64_t array, uint64_t version)
{
    return &s->held[(array ^ version) % 256];
}

static int
hold(pyri_cluster *s, uint64_t array, uint64_t version, pyri_turn turn)
{
    pyri_rheld *h = pyri_sys_malloc(sizeof *h);
    if (!h)
        return pyri_fail_nomem("a version");
    *h = (pyri_rheld){.array = array, .version = version, .turn = turn};
    pthread_mutex_lock(&s->lock);
    pyri_rheld **bucket = bucket_of(s, array, version);
    h->next = *bucket;
    *bucket = h;
    pthread_mutex_unlock(&s->lock);
    return 0;
}

static void
let_go(pyri_cluster *s, uint64_t array, uint64_t version)
{
    pthread_mutex_lock(&s->lock);
    pyri_rheld **at = bucket_of(s, array, version);
    while (*at && ((*at)->array != array || (*at)->version != version))
        at = &(*at)->next;
    pyri_rheld *h = *at;
    if (h)
        *at = h->next;
    pthread_mutex_unlock(&s->lock);
    free(h);
}

/* In which epoch we hold a version; false if we do not, or did once. With
 * `use` it can be had once only. */
static bool
find_turn(pyri_cluster *s, uint64_t array, uint64_t version, bool use,
          pyri_turn *turn)
{
    pthread_mutex_lock(&s->lock);
    pyri_rheld *h = *bucket_of(s, array, version);
    while (h && (h->array != array || h->version != version))
        h = h->next;
    bool ours = h && !h->used;
    if (ours)
        *turn = h->turn;
    if (ours && use)
        h->used = true;
    pthread_mutex_unlock(&s->lock);
    return ours;
}

/* --- taking -------------------------------------------------------------- */

static void
ask_take(pyri_cluster *s, pyri_call *c, const pyri_take *t, const uint8_t *id,
         int ndim, bool again)
{
    head_call(c, "take", true, t->array);
    pyri_buf_add(&c->in, id, PYRI_CLS_ID);
    pyri_buf_u8(&c->in, again);
    pyri_buf_u32(&c->in, s->lease_ms);
    pyri_buf_u8(&c->in, (uint8_t)ndim);
    for (int d = 0; d < ndim; d++)
        pyri_buf_u64(&c->in, t->shape[d]);
    pyri_buf_u8(&c->in, t->grow_axis < 0 ? 255 : (uint8_t)t->grow_axis);
    pyri_buf_u64(&c->in, t->grow_by);
    pyri_buf_varint(&c->in, t->claim.size);
    if (t->claim.size)
        pyri_buf_add(&c->in, t->claim.data, t->claim.size);
}

/* The shape that a version has, given the one before it. */
static void
shape_after(const pyri_take *t, int ndim, pyri_ticket *ticket)
{
    memcpy(ticket->shape, t->shape ? t->shape : ticket->before,
           (size_t)ndim * sizeof *ticket->shape);
    if (t->grow_axis >= 0)
        ticket->shape[t->grow_axis] += t->grow_by;
}

/* Ask for what the answer had no room for: what is in flight below. */
static int
learn(pyri_cluster *s, pyri_ticket *ticket, pyri_flights *below)
{
    int err = ask_flights(s, ticket->array, ticket->version, false, below);
    if (err < 0)
        return err;
    if (below->base >= ticket->version) { /* someone resolved us already */
        pyri_flights_fini(below);
        return PYRI_CLS_FENCED;
    }
    memcpy(ticket->before,
           below->n ? below->list[below->n - 1].shape : below->base_shape,
           sizeof ticket->before);
    return below->base + below->n + 1 == ticket->version ? 0 : PYRI_CLS_BAD;
}

static int
read_taken(pyri_cluster *s, pyri_call *c, const pyri_take *t, pyri_ticket *ticket,
           pyri_flights *below, pyri_turn *turn)
{
    pyri_cursor *a = &c->answer;
    ticket->version = pyri_cursor_u64(a);
    below->base = pyri_cursor_u64(a);
    turn->epoch = pyri_cursor_u32(a);
    turn->contested = pyri_cursor_u8(a);
    bool told = pyri_cursor_u8(a);
    int ndim = (int)((a->end - a->at) / 8);
    if (a->failed || ndim > PYR_MAX_DIMS)
        return PYRI_CLS_BAD;
    for (int d = 0; d < ndim; d++)
        ticket->before[d] = pyri_cursor_u64(a);
    if (told && ticket->version == below->base + 1) {
        size_t room = 0;
        memcpy(below->base_shape, ticket->before, sizeof below->base_shape);
        if (!pyri_room(&below->list, &room, 1, sizeof *below->list))
            return -ENOMEM;
    } else {
        below->base = 0;
        int err = learn(s, ticket, below);
        if (err < 0)
            return err;
        ndim = PYR_MAX_DIMS; /* what is too much is not looked at */
    }
    if (t->shape && ndim == PYR_MAX_DIMS && (ndim = axes_of(s, t->array)) < 0)
        return ndim;
    shape_after(t, ndim, ticket);
    return 0;
}

int
pyri_rados_take(pyri_engine *e, const pyri_take *t, pyri_ticket *ticket,
                pyri_flights *below)
{
    pyri_cluster *s = pyri_cluster_of(e);
    uint8_t id[PYRI_CLS_ID];
    pyri_call c;
    pyri_turn turn = {0, false};
    int ndim = 0, err = pyri_cluster_check(s);
    if (err < 0 || (err = pyri_session_id(s, id)) < 0)
        return err;
    if (t->shape && (ndim = axes_of(s, t->array)) < 0)
        return fail_version(s, ndim, t->array, 0);
    memset(ticket, 0, sizeof *ticket);
    ticket->array = t->array;
    ticket->deadline_ns = pyri_rados_now() + (int64_t)s->lease_ms * 1000000;
    ask_take(s, &c, t, id, ndim, false);
    err = pyri_call_run(s, &c);
    while (err == -ETIMEDOUT) { /* it may have happened */
        pyri_call_fini(&c);
        ask_take(s, &c, t, id, ndim, true);
        err = pyri_call_run(s, &c);
    }
    if (err == 0)
        err = read_taken(s, &c, t, ticket, below, &turn);
    pyri_call_fini(&c);
    err = err < 0 ? fail_version(s, err, t->array, ticket->version)
                  : hold(s, t->array, ticket->version, turn);
    if (err < 0)
        pyri_flights_fini(below);
    else
        PYRI_FAULT("ticket.taken");
    return err;
}

int
pyri_rados_renew(pyri_engine *e, pyri_ticket *ticket)
{
    pyri_cluster *s = pyri_cluster_of(e);
    pyri_call c;
    pyri_turn turn = {0, false};
    int64_t now = pyri_rados_now();
    int err = pyri_cluster_check(s);
    if (err < 0)
        return err;
    bool ours = find_turn(s, ticket->array, ticket->version, false, &turn);
    head_call(&c, "renew", true, ticket->array);
    pyri_buf_u64(&c.in, ticket->version);
    pyri_buf_u8(&c.in, !ours);
    pyri_buf_u32(&c.in, turn.epoch);
    pyri_buf_u32(&c.in, s->lease_ms);
    err = pyri_call_run(s, &c);
    pyri_call_fini(&c);
    if (err < 0)
        return fail_version(s, err, ticket->array, ticket->version);
    ticket->deadline_ns = now + (int64_t)s->lease_ms * 1000000;
    return 0;
}

/* --- completing ---------------------------------------------------------- */

/* For a version that is another's, `taker` is the session that took it. */
static int
new_turn(pyri_cluster *s, const pyri_complete *c, bool import, pyri_turn *turn,
         uint64_t *taker)
{
    pyri_call call;
    uint8_t id[PYRI_CLS_ID];
    int err = pyri_session_id(s, id);
    if (err < 0)
        return -EIO;
    head_call(&call, import ? "reserve" : "fence", true, c->array);
    pyri_buf_u64(&call.in, c->version);
    if (!import) {
        pyri_buf_add(&call.in, id, sizeof id);
        pyri_buf_u32(&call.in, s->lease_ms);
    }
    err = pyri_call_run(s, &call);
    turn->epoch = pyri_cursor_u32(&call.answer);
    turn->contested = pyri_cursor_u8(&call.answer);
    *taker = import ? 0 : pyri_cursor_u64(&call.answer);
    if (err == 0 && call.answer.failed)
        err = PYRI_CLS_BAD;
    pyri_call_fini(&call);
    return err;
}

/*
 * Get a version that is not ours, or not any more, into our hands. Whoever had
 * it may have listed blobs and died; they must not count as named by what we
 * make of it. If it is but late, it takes them away itself.
 */
static int
take_over(pyri_cluster *s, const pyri_complete *c, bool import, pyri_turn *turn)
{
    uint64_t taker;
    int err = new_turn(s, c, import, turn, &taker);
    if (err < 0)
        return fail_version(s, err, c->array, c->version);
    return taker && c->nblobs == 0 ? pyri_rblobs_disown(s, c, turn->epoch, taker)
                                   : 0;
}

static int
complete_head(pyri_cluster *s, pyri_complete *c, bool import, uint32_t epoch,
              int ndim, const uint8_t *id)
{
    pyri_call call;
    head_call(&call, "complete", true, c->array);
    pyri_buf_u8(&call.in, import);
    pyri_buf_u64(&call.in, c->version);
    pyri_buf_u32(&call.in, epoch);
    pyri_buf_add(&call.in, id, PYRI_CLS_ID);
    for (int d = 0; d < ndim; d++)
        pyri_buf_u64(&call.in, c->shape[d]);
    pyri_buf_varint(&call.in, c->record.size);
    if (c->record.size)
        pyri_buf_add(&call.in, c->record.data, c->record.size);
    int err = pyri_call_run(s, &call);
    c->latest = pyri_cursor_u64(&call.answer);
    if (err == 0 && call.answer.failed)
        err = PYRI_CLS_BAD;
    pyri_call_fini(&call);
    return err;
}

/* Nodes and lists of blobs, all at once. */
static int
store_parts(pyri_cluster *s, const pyri_complete *c, pyri_turn turn)
{
    pyri_calls calls = {0};
    int err = pyri_rnodes_put(s, c, turn, &calls);
    if (err == 0)
        err = pyri_rblobs_list(c, turn.epoch, &calls);
    if (err == 0)
        err = pyri_calls_run(s, calls.list, calls.n);
    for (size_t i = 0; i < calls.n && err == 0; i++) {
        int result = calls.list[i].result;
        if (result == PYRI_CLS_FENCED)
            err = pyri_fail(PYR_EIO, "this process was silent for so long that "
                            "its data was cleared away; write it again");
        else if (result < 0)
            err = pyri_rados_fail(s, result, "nodes of a version");
    }
    pyri_calls_fini(&calls);
    return err;
}

/* Once it is refused, what was stored for it goes. Where it is not known what
 * happened, it stays. */
static int
store(pyri_cluster *s, pyri_complete *c, bool import, pyri_turn turn)
{
    uint8_t id[PYRI_CLS_ID];
    int ndim = axes_of(s, c->array);
    int err = pyri_rados_random(id, sizeof id);
    if (err < 0)
        return err;
    if (ndim < 0)
        return fail_version(s, ndim, c->array, c->version);
    if ((err = pyri_rblobs_stored(s, c->blobs, c->nblobs)) < 0 ||
        (err = store_parts(s, c, turn)) < 0)
        return err;
    PYRI_FAULT("publish.stored");
    do
        err = complete_head(s, c, import, turn.epoch, ndim, id);
    while (err == -ETIMEDOUT);
    if (err == PYRI_CLS_FENCED || err == PYRI_CLS_GONE || err == -ENOENT) {
        pyri_rnodes_undo(s, c, turn);
        pyri_rblobs_undo(s, c, turn.epoch);
    }
    if (err < 0)
        return fail_version(s, err, c->array, c->version);
    pyri_rblobs_named(s, c->blobs, c->nblobs);
    for (size_t i = 0; i < c->nnodes; i++)
        pyri_rcache_put(s, c->nodes[i].key, c->nodes[i].value);
    pthread_mutex_lock(&s->lock);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

static int
complete(pyri_engine *e, pyri_complete *c, bool import)
{
    pyri_cluster *s = pyri_cluster_of(e);
    pyri_turn turn = {0, false};
    int err = pyri_cluster_check(s);
    if (err < 0 || (err = PYRI_FAULT_FAILS("publish.commit")) < 0)
        return err;
    if (import || !find_turn(s, c->array, c->version, true, &turn))
        if ((err = take_over(s, c, import, &turn)) < 0)
            return err;
    err = store(s, c, import, turn);
    if (err == 0 || err == PYR_EFENCED)
        let_go(s, c->array, c->version);
    if (err == 0)
        PYRI_FAULT("publish.done");
    return err;
}

int
pyri_rados_complete(pyri_engine *e, pyri_complete *c)
{
    return complete(e, c, false);
}

int
pyri_rados_import(pyri_engine *e, pyri_complete *c)
{
    return complete(e, c, true);
}

/* --- waiting ------------------------------------------------------------- */

enum { FIRST_LOOK_MS = 1, LAST_LOOK_MS = 25 };

int
pyri_rados_wait(pyri_engine *e, uint64_t array, uint64_t version,
                int timeout_ms)
{
    pyri_cluster *s = pyri_cluster_of(e);
    int64_t end = pyri_rados_now() + (int64_t)timeout_ms * 1000000;
    for (int pause = FIRST_LOOK_MS;; pause *= 2) {
        uint64_t latest;
        int err = pyri_rados_latest(e, NULL, array, &latest, NULL);
        if (err < 0 || latest >= version)
            return err;
        int64_t left = (end - pyri_rados_now()) / 1000000;
        if (left <= 0)
            break;
        pause = pause < LAST_LOOK_MS ? pause : LAST_LOOK_MS;
        pthread_mutex_lock(&s->lock); /* one of this process rings */
        pyri_cluster_wait(s, pause < left ? pause : (int)left);
        pthread_mutex_unlock(&s->lock);
    }
    return pyri_fail(PYR_ETIMEOUT, "version %llu of array %llu is not "
                     "published yet", (unsigned long long)version,
                     (unsigned long long)array);
}
