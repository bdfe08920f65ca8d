/*
 * engine/local/publish.c - completion: the moment a version becomes visible.
 *
 * One transaction of the durable environment checks that nobody resolved the
 * version, stores its nodes and record, and moves `latest` over all versions
 * that are complete. Threads that come while one is at it queue up; the next
 * transaction takes all of them, and they share its one fsync:
 *
 *   thread A:  lead [A] ----commit---->|
 *   thread B:    queue ................| lead [B C D] ----commit---->
 *   thread C:       queue ..............................done at once^
 *
 * The same among processes: the batch of one that finds another at it is done
 * by the next one's transaction, see mailbox.c.
 *
 * A request that is refused (PYR_EFENCED) is refused before it changes
 * anything, so it does not harm those beside it. If anything else fails, the
 * transaction is undone and each request tried alone; those of other processes
 * are handed back to them for that.
 */
#include "engine/local/mailbox.h"

#include "base/fault.h"
#include "engine/local/env.h"

#include <stdio.h>
#include <string.h>

enum { CHECK_READERS = 256 }; /* publications from one look to the next */

enum { WAITING, DONE, LEAD };

void
pyri_publisher_init(pyri_publisher *p)
{
    pthread_mutex_init(&p->lock, NULL);
    p->first = NULL;
    p->last = &p->first;
    p->leading = false;
}

/* --- one request --------------------------------------------------------- */

static int
check_open(pyri_site *s, pyri_txn *txn, const pyri_complete *c,
           const pyri_head *head)
{
    bool has = false;
    int err = 0;
    if (c->version > head->latest)
        err = pyri_meta_has_version(s, txn, c->array, c->version, &has);
    if (err == 0 && (has || c->version <= head->latest))
        err = pyri_fail(PYR_EFENCED, "version %llu of array %llu was resolved "
                        "by another writer, which took this one for dead; "
                        "nothing changed", (unsigned long long)c->version,
                        (unsigned long long)c->array);
    return err;
}

/* Move head to a version that was just stored, the next one, and over all
 * complete ones that follow it. */
static int
advance(pyri_site *s, pyri_txn *txn, const pyri_complete *c, pyri_head *head)
{
    head->latest = c->version;
    memcpy(head->shape, c->shape, (size_t)head->ndim * sizeof head->shape[0]);
    for (bool has = true; has;) {
        int err = pyri_meta_version_shape(s, txn, c->array, head->latest + 1,
                                          head, &has);
        if (err < 0)
            return err;
        head->latest += has;
    }
    return pyri_meta_put_head(s, txn, c->array, head);
}

/* Of a request that another process had: did it store it? */
static int
check_already(pyri_site *s, pyri_txn *txn, pyri_request *r,
              const pyri_head *head)
{
    bool has;
    int err = pyri_meta_same_version(s, txn, r->c, head->ndim, &has,
                                     &r->already);
    if (err == 0 && !has && r->c->version <= head->latest)
        err = pyri_fail(PYR_EIO, "version %llu of array %llu is forgotten and "
                        "gone already: who completed it is not known",
                        (unsigned long long)r->c->version,
                        (unsigned long long)r->c->array);
    return err;
}

static int
check_request(pyri_site *s, pyri_txn *txn, pyri_request *r,
              const pyri_head *head)
{
    int err = 0;
    if (r->ndim != head->ndim)
        return pyri_fail(PYR_ECORRUPT, "array %llu has %d dimensions, not %d",
                         (unsigned long long)r->c->array, head->ndim, r->ndim);
    if (r->retry)
        err = check_already(s, txn, r, head);
    if (err < 0 || r->already || (err = check_open(s, txn, r->c, head)) < 0)
        return err;
    return pyri_fold_check(s, txn, r->c);
}

static int
complete_one(pyri_site *s, pyri_txn *txn, pyri_request *r)
{
    pyri_complete *c = r->c;
    pyri_head head;
    int err = pyri_meta_head(s, txn, c->array, &head);
    if (err < 0 || (err = check_request(s, txn, r, &head)) < 0)
        return err;
    r->before = c->latest = head.latest;
    if (r->already)
        return 0;
    if ((err = pyri_meta_put_version(s, txn, c, head.ndim)) < 0 ||
        (err = pyri_meta_put_nodes(s, txn, c)) < 0)
        return err;
    if (c->version == head.latest + 1)
        err = advance(s, txn, c, &head);
    c->latest = head.latest;
    return err;
}

/* --- many in one transaction --------------------------------------------- */

static void
set_result(pyri_request *r, int err)
{
    r->err = err;
    if (err < 0)
        snprintf(r->text, sizeof r->text, "%s", pyr_errmsg());
}

static bool
is_refusal(int err)
{
    return err == PYR_EFENCED || err == PYR_ENOTFOUND ||
           err == PYR_ENOVERSION;
}

/* One request of a batch may have published another's version. */
static int
refresh_latest(pyri_site *s, pyri_txn *txn, pyri_request *first)
{
    for (pyri_request *r = first; r; r = r->next) {
        pyri_head head;
        int err = r->err < 0 ? 0 : pyri_meta_head(s, txn, r->c->array, &head);
        if (err < 0)
            return err;
        if (r->err == 0)
            r->c->latest = head.latest;
    }
    return 0;
}

/* Readers that died keep old pages; look for them now and then. */
static void
count_publication(pyri_site *s)
{
    if (atomic_fetch_add_explicit(&s->publications, 1, memory_order_relaxed) %
            CHECK_READERS ==
        CHECK_READERS - 1) {
        pyri_env_forget_dead(s->meta);
        pyri_env_forget_dead(s->live);
    }
}

/* Nothing to commit. What another process stored for us, and then died, must
 * be durable before that is told: it may have died before its last flush. */
static int
run_empty(pyri_site *s, pyri_txn *txn, const pyri_request *first)
{
    bool already = false;
    for (const pyri_request *r = first; r; r = r->next)
        already = already || (r->err == 0 && r->already);
    pyri_env_abort(txn);
    return already ? pyri_env_sync(s->meta) : 0;
}

/* After all else: the pages of trees, which each transaction writes anew, then
 * come from LMDB one after the other, not with blobs in between, and so do those
 * that a later one gets for them. Each run of pages is a request to the disk. */
static int
name_blobs(pyri_site *s, pyri_txn *txn, const pyri_request *first)
{
    int err = 0;
    for (const pyri_request *r = first; r && err == 0; r = r->next)
        if (r->err == 0 && !r->already)
            err = pyri_blobs_name(s, txn, r->c, r->small);
    return err;
}

/* Ends the transaction. Returns the failure of all; single refusals are only
 * noted in `r->err`. */
static int
run_in(pyri_site *s, pyri_txn *txn, pyri_request *first)
{
    bool any = false;
    for (pyri_request *r = first; r; r = r->next) {
        set_result(r, complete_one(s, txn, r));
        if (r->err < 0 && !is_refusal(r->err)) {
            pyri_env_abort(txn);
            return r->err;
        }
        any = any || (r->err == 0 && !r->already);
    }
    int err = name_blobs(s, txn, first);
    if (err == 0 && first->next && any)
        err = refresh_latest(s, txn, first);
    if (err == 0 && !any)
        return run_empty(s, txn, first);
    if (err < 0 || (err = PYRI_FAULT_FAILS("publish.commit")) < 0) {
        pyri_env_abort(txn);
        return err;
    }
    if ((err = pyri_env_commit(txn, "publish a version")) == 0)
        PYRI_FAULT("publish.done");
    count_publication(s);
    return err;
}

/* Put all that letters ask for behind `first`; returns what was the last. */
static pyri_request *
join(pyri_request *first, const pyri_letter *letters)
{
    pyri_request *last = first, *end;
    while (last->next)
        last = last->next;
    end = last;
    for (const pyri_letter *l = letters; l; l = l->next) {
        end->next = l->requests;
        end = &l->requests[l->n - 1];
    }
    return last;
}

/* Alone, if `shared` is NULL; or with what other processes ask for: *shared is
 * true if they did. */
static int
run(pyri_site *s, pyri_request *first, bool *shared)
{
    pyri_txn *txn;
    int err = pyri_env_write(s->meta, &txn);
    if (err < 0)
        return err;
    pyri_letter *letters = shared ? pyri_mailbox_take(s) : NULL;
    pyri_request *last = join(first, letters);
    err = run_in(s, txn, first);
    for (pyri_request *r = first; r && err == 0; r = r->next)
        if (r->err == 0 && r->c->latest != r->before)
            pyri_wake_all(s->wake, r->c->array);
    last->next = NULL;
    if (shared) {
        *shared = letters;
        pyri_mailbox_answer(s, letters, err == 0);
    }
    return err;
}

static void
run_each(pyri_site *s, pyri_request *first)
{
    for (pyri_request *r = first; r; r = r->next) {
        pyri_request alone = *r;
        alone.next = NULL;
        int err = run(s, &alone, NULL);
        set_result(r, err < 0 ? err : alone.err);
        r->before = alone.before;
    }
}

static void
run_batch(pyri_site *s, pyri_request *first)
{
    bool shared = false;
    int err = run(s, first, &shared);
    if (err < 0 && (first->next || shared))
        run_each(s, first);
    else if (err < 0)
        set_result(first, err);
}

/* --- versions that nobody took -------------------------------------------- */

static int
import_one(pyri_site *s, pyri_txn *live, pyri_txn *txn, pyri_complete *c)
{
    pyri_head head;
    int err = pyri_meta_head(s, txn, c->array, &head);
    if (err < 0 ||
        (err = pyri_ticket_none(s, live, txn, c->array, &head)) < 0)
        return err;
    if (c->version <= head.latest)
        return pyri_fail(PYR_EFENCED, "array %llu has version %llu already",
                         (unsigned long long)c->array,
                         (unsigned long long)head.latest);
    if ((err = pyri_fold_check(s, txn, c)) < 0)
        return err;
    if ((err = pyri_meta_put_version(s, txn, c, head.ndim)) < 0 ||
        (err = pyri_meta_put_nodes(s, txn, c)) < 0 ||
        (err = pyri_blobs_name(s, txn, c, NULL)) < 0)
        return err;
    head.latest = c->latest = c->version;
    memcpy(head.shape, c->shape, (size_t)head.ndim * sizeof head.shape[0]);
    return pyri_meta_put_head(s, txn, c->array, &head);
}

/* The live transaction comes first, as in taking, and lasts until the version
 * is published: so nobody takes a number that is passed over. */
int
pyri_import(pyri_site *s, pyri_complete *c)
{
    pyri_txn *live, *txn;
    int err = pyri_env_write(s->live, &live);
    if (err < 0)
        return err;
    if ((err = pyri_env_write(s->meta, &txn)) < 0) {
        pyri_env_abort(live);
        return err;
    }
    if ((err = import_one(s, live, txn, c)) == 0) {
        PYRI_FAULT("publish.commit");
        err = pyri_env_commit(txn, "publish a version");
    } else {
        pyri_env_abort(txn);
    }
    pyri_env_abort(live);
    if (err == 0)
        PYRI_FAULT("publish.done");
    if (err == 0 || !is_refusal(err))
        pyri_blobs_named(s, c); /* stored, or lost: not tried again */
    if (err == 0)
        pyri_wake_all(s->wake, c->array);
    return err;
}

/* --- the queue ----------------------------------------------------------- */

/* Returns once this thread is to lead, or its request is done. */
static void
queue_up(pyri_site *s, pyri_request *r)
{
    pyri_publisher *p = &s->publisher;
    pthread_mutex_lock(&p->lock);
    *p->last = r;
    p->last = &r->next;
    unsigned waiting = atomic_fetch_add(&p->waiting, 1) + 1;
    if (!p->leading) {
        p->leading = true;
        atomic_store(&r->state, LEAD);
    }
    pthread_mutex_unlock(&p->lock);
    if (atomic_load(&r->state) == WAITING)
        pyri_mailbox_tell(s, waiting);
    while (atomic_load(&r->state) == WAITING)
        pyri_futex_wait(&r->state, WAITING);
}

static pyri_request *
take_queue(pyri_publisher *p)
{
    pthread_mutex_lock(&p->lock);
    pyri_request *first = p->first;
    p->first = NULL;
    p->last = &p->first;
    atomic_store(&p->waiting, 0);
    pthread_mutex_unlock(&p->lock);
    return first;
}

static void
set_state(pyri_request *r, uint32_t state)
{
    atomic_store(&r->state, state);
    pyri_futex_wake(&r->state);
}

/* Let the first of those who came meanwhile lead, then tell the others. A
 * request is gone as soon as its state is set. */
static void
hand_over(pyri_publisher *p, pyri_request *batch, const pyri_request *own)
{
    pthread_mutex_lock(&p->lock);
    pyri_request *heir = p->first;
    p->leading = heir != NULL;
    pthread_mutex_unlock(&p->lock);
    if (heir)
        set_state(heir, LEAD);
    while (batch) {
        pyri_request *next = batch->next;
        if (batch != own)
            set_state(batch, DONE);
        batch = next;
    }
}

/* Threads that are likely to come, beside those that are here. */
static unsigned
missing(pyri_publisher *p, const pyri_request *batch, const pyri_request *own)
{
    unsigned others = pyri_company_others(&p->threads, own->thread, p->turns);
    while ((batch = batch->next) && others)
        others--;
    return others;
}

static void
note_turn(pyri_publisher *p, const pyri_request *batch)
{
    p->turns++;
    for (; batch; batch = batch->next)
        pyri_company_note(&p->threads, batch->thread, p->turns);
}

/* Do what waits here, or have it done by another process; if that takes a
 * while, more may have come. */
static void
lead(pyri_site *s, const pyri_request *own)
{
    pyri_publisher *p = &s->publisher;
    pyri_request *batch = take_queue(p), **end = &batch;
    if (!pyri_mailbox_enter(s, batch)) {
        pyri_mailbox_gather(s, &p->waiting, missing(p, batch, own));
        while (*end)
            end = &(*end)->next;
        *end = take_queue(p);
        run_batch(s, batch);
        pyri_mailbox_leave(s);
    }
    note_turn(p, batch);
    hand_over(p, batch, own);
}

int
pyri_publish(pyri_site *s, pyri_complete *c)
{
    pyri_request own = {.c = c, .thread = (uint64_t)pthread_self()};
    set_result(&own, pyri_ticket_check(s, c->array, c->version, &own.ndim));
    if (own.err == 0)
        queue_up(s, &own);
    if (atomic_load(&own.state) == LEAD)
        lead(s, &own);
    /* Stored, or lost. After these two the caller tries again, or drops them:
     * it knows that nothing was stored. */
    if (own.err != PYR_EFENCED && own.err != PYR_ENOVERSION)
        pyri_blobs_named(s, c);
    return own.err < 0 ? pyri_fail(own.err, "%s", own.text) : 0;
}
