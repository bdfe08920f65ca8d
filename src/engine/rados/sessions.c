/*
 * engine/rados/sessions.c - who writes now, and who gives space back.
 *
 * A process that writes has a session: a number in the catalog, renewed every
 * second as long as it lives. Tickets, transactions and the lease of upkeep
 * carry it: what belongs to a session that has not been renewed for some
 * seconds belongs to nobody any more. On the machine of its process the end is
 * known at once (whereabouts.c). Whoever is wrong about a death does no harm:
 * what is taken over gets a new epoch, or is given up for good, and the former
 * owner is refused.
 *
 * The numbers of blobs begin with the session, so that what a process leaves
 * when it dies is found without looking at anything else. A session that is
 * not renewed is given up. Its lists of named blobs are closed first, then all
 * that is not on them is removed; so its owner, should it wake up, cannot name
 * what has gone. This waits a minute even if the death is known: what the
 * process sent last may be on its way to the OSDs.
 */
#include "engine/rados/rados.h"

#include "base/bytes.h"
#include "base/room.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>

enum {
    SESSION_MS = 60000,
    SESSION_RENEW_MS = 1000,
    GONE_MS = 6000, /* silent for so long, a process counts as gone */
    NOTE_STEP = 1024, /* blobs that the catalog is told of ahead */
    UPKEEP_MS = 4000
};

static int
session_call(pyri_cluster *s, int what, uint64_t number, uint64_t used,
             uint64_t *answer)
{
    pyri_call c;
    pyri_call_begin(&c, "session", true, PYRI_RADOS_CATALOG);
    pyri_buf_u8(&c.in, (uint8_t)what);
    pyri_buf_u64(&c.in, number);
    pyri_buf_u64(&c.in, used);
    pyri_buf_u32(&c.in, SESSION_MS);
    uint8_t where[PYRI_WHEREABOUTS];
    bool known = what == PYRI_SESSION_NEW && pyri_whereabouts_own(where);
    pyri_buf_varint(&c.in, known ? sizeof where : 0);
    if (known)
        pyri_buf_add(&c.in, where, sizeof where);
    int err = pyri_call_run(s, &c);
    if (err == 0 && answer) {
        *answer = pyri_cursor_u64(&c.answer);
        if (c.answer.failed)
            err = PYRI_CLS_BAD;
    }
    pyri_call_fini(&c);
    return err;
}

int
pyri_session_begin(pyri_cluster *s)
{
    uint64_t number;
    pthread_mutex_lock(&s->lock);
    bool have = s->session != 0;
    pthread_mutex_unlock(&s->lock);
    if (have)
        return 0;
    int err = session_call(s, PYRI_SESSION_NEW, 0, NOTE_STEP, &number);
    if (err < 0)
        return pyri_rados_fail(s, err, "a session");
    pthread_mutex_lock(&s->lock);
    bool late = s->session != 0; /* another thread was faster */
    if (!late) {
        s->session = number;
        s->used = 0;
        s->noted = NOTE_STEP;
    }
    pthread_mutex_unlock(&s->lock);
    if (late)
        session_call(s, PYRI_SESSION_END, number, 0, NULL);
    return pyri_cluster_keep(s);
}

int
pyri_session_id(pyri_cluster *s, uint8_t id[PYRI_CLS_ID])
{
    int err = pyri_session_begin(s);
    if (err < 0 || (err = pyri_rados_random(id, PYRI_CLS_ID)) < 0)
        return err;
    pthread_mutex_lock(&s->lock);
    pyri_store64(id, s->session);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

/* Tell the catalog that this session may use more numbers. */
static int
note_more(pyri_cluster *s, uint64_t number, uint64_t used)
{
    uint64_t noted = used + 4 * NOTE_STEP;
    int err = session_call(s, PYRI_SESSION_RENEW, number, noted, NULL);
    pthread_mutex_lock(&s->lock);
    if (err == 0 && s->session == number)
        s->noted = noted > s->noted ? noted : s->noted;
    if (err == PYRI_CLS_FENCED && s->session == number)
        s->session = 0; /* given up: the next put begins another */
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return err == PYRI_CLS_FENCED ? 0 : err;
}

int
pyri_session_number(pyri_cluster *s, uint64_t *out)
{
    int err = 0;
    *out = 0;
    while (err == 0 && *out == 0) {
        if ((err = pyri_session_begin(s)) < 0)
            return err;
        pthread_mutex_lock(&s->lock);
        uint64_t number = s->session, used = s->used;
        if (number && used < s->noted) {
            *out = number << 32 | used;
            s->used++;
        }
        pthread_mutex_unlock(&s->lock);
        if (*out == 0 && number)
            err = note_more(s, number, used);
    }
    return err < 0 ? pyri_rados_fail(s, err, "a session") : 0;
}

void
pyri_session_end(pyri_cluster *s)
{
    pyri_blob *list = NULL;
    size_t n = 0, room = 0;
    pthread_mutex_lock(&s->lock);
    while (s->under_way)
        pyri_cluster_wait(s, 1000);
    for (int i = 0; i < PYRI_RADOS_BUCKETS; i++)
        for (pyri_runnamed *u = s->unnamed[i]; u; u = u->next)
            if (pyri_room(&list, &room, n + 1, sizeof *list))
                list[n++] = (pyri_blob){{u->number, u->home}, u->size};
    uint64_t number = s->session;
    s->session = 0;
    pthread_mutex_unlock(&s->lock);
    int err = n ? pyri_rblobs_remove(s, list, n) : 0;
    pyri_rblobs_forget_all(s);
    if (number && err == 0)
        session_call(s, PYRI_SESSION_END, number, 0, NULL);
    free(list);
}

void
pyri_session_renew(pyri_cluster *s)
{
    static _Thread_local int64_t last; /* the keeper's */
    int64_t now = pyri_rados_now();
    pthread_mutex_lock(&s->lock);
    uint64_t number = s->session, used = s->used;
    bool due = number && (now - last > SESSION_RENEW_MS * 1000000ll ||
                          used + NOTE_STEP / 2 > s->noted);
    pthread_mutex_unlock(&s->lock);
    if (!due)
        return;
    if (note_more(s, number, used) == 0)
        last = now;
}

/* --- those that died ----------------------------------------------------- */

typedef struct roll {
    uint64_t *dead;
    size_t n, room;
    uint64_t alive;
    uint64_t wanted, used; /* how many blobs may this one have put? */
    const uint64_t *asked; /* is each of these there? */
    bool *there;
    size_t nasked;
} roll;

/* Several may ask for the same one; its machine is asked once. */
static void
note_asked(roll *all, uint64_t number, bool heard, pyri_bytes where)
{
    int there = heard ? -1 : 0; /* not looked at yet */
    for (size_t i = 0; i < all->nasked; i++) {
        if (all->asked[i] != number)
            continue;
        if (there < 0)
            there = !pyri_whereabouts_gone(where);
        all->there[i] = there;
    }
}

static int
read_roll(pyri_call *c, roll *all, uint64_t *after, bool *more)
{
    uint8_t what;
    while ((what = pyri_cursor_u8(&c->answer)) == PYRI_PAGE_ITEM) {
        *after = pyri_cursor_u64(&c->answer);
        bool dead = pyri_cursor_u8(&c->answer);
        bool gone = pyri_cursor_u64(&c->answer) + GONE_MS < SESSION_MS;
        uint64_t used = pyri_cursor_u64(&c->answer);
        pyri_bytes where = pyri_cursor_str(&c->answer);
        all->alive += !dead;
        all->used = *after == all->wanted ? used : all->used;
        note_asked(all, *after, !dead && !gone, where);
        if (!dead)
            continue;
        if (!pyri_room(&all->dead, &all->room, all->n + 1, sizeof *all->dead))
            return pyri_fail_nomem("a list of sessions");
        all->dead[all->n++] = *after;
    }
    *more = what == PYRI_PAGE_MORE;
    return c->answer.failed ? pyri_rados_garbled(c) : 0;
}

static int
call_roll(pyri_cluster *s, roll *all)
{
    uint64_t after = 0;
    bool first = true, more = true;
    int err = 0;
    while (more && err == 0) {
        pyri_call c;
        pyri_call_begin(&c, "sessions", false, PYRI_RADOS_CATALOG);
        pyri_buf_u64(&c.in, after);
        pyri_buf_u8(&c.in, first);
        first = false;
        err = pyri_call_run(s, &c);
        err = err < 0 ? pyri_rados_fail(s, err, "the list of sessions")
                      : read_roll(&c, all, &after, &more);
        pyri_call_fini(&c);
    }
    return err;
}

uint64_t
pyri_sessions_alive(pyri_cluster *s)
{
    roll all = {0};
    call_roll(s, &all);
    free(all.dead);
    return all.alive;
}

int
pyri_sessions_there(pyri_cluster *s, const uint64_t *numbers, size_t n,
                    bool *there)
{
    roll all = {.asked = numbers, .nasked = n, .there = there};
    memset(there, 0, n * sizeof *there);
    int err = call_roll(s, &all);
    free(all.dead);
    return err;
}

int
pyri_session_used(pyri_cluster *s, uint64_t number, uint64_t *used)
{
    roll all = {.wanted = number};
    int err = call_roll(s, &all);
    free(all.dead);
    *used = all.used;
    return err;
}

int
pyri_session_ended(pyri_cluster *s, const uint8_t id[PYRI_CLS_ID],
                   bool *ended)
{
    uint64_t number = pyri_load64(id);
    bool there = true;
    pthread_mutex_lock(&s->lock);
    bool own = number == s->session;
    pthread_mutex_unlock(&s->lock);
    int err = own ? 0 : pyri_sessions_there(s, &number, 1, &there);
    *ended = err == 0 && !there;
    return err;
}

static int
sweep_one(pyri_cluster *s, uint64_t number, pyri_settled *out)
{
    uint64_t used = 0;
    int err = session_call(s, PYRI_SESSION_EXPIRE, number, 0, &used);
    if (err == PYRI_CLS_BUSY || err == PYRI_CLS_FENCED)
        return 0; /* it lives after all, or has ended */
    if (err < 0)
        return pyri_rados_fail(s, err, "session %llu",
                               (unsigned long long)number);
    if ((err = pyri_rblobs_sweep(s, number << 32, used, &out->bytes)) < 0)
        return err;
    session_call(s, PYRI_SESSION_END, number, 0, NULL);
    return 0;
}

int
pyri_sessions_sweep(pyri_cluster *s, const uint64_t *arrays, size_t n,
                    pyri_settled *out)
{
    roll all = {0};
    int err = call_roll(s, &all);
    bool *busy = all.n ? pyri_sys_calloc(all.n, sizeof *busy) : NULL;
    if (err == 0 && all.n && !busy)
        err = pyri_fail_nomem("a list of sessions");
    for (size_t i = 0; i < n && all.n && err == 0; i++)
        err = pyri_rados_takers(s, arrays[i], all.dead, all.n, busy);
    for (size_t i = 0; i < all.n && err == 0; i++)
        if (!busy[i])
            err = sweep_one(s, all.dead[i], out);
    free(all.dead);
    free(busy);
    return err;
}

/* --- upkeep -------------------------------------------------------------- */

typedef struct lease {
    bool granted;
    uint64_t renewed, left_ms;
    uint8_t holder[PYRI_CLS_ID]; /* before the call */
} lease;

/* To seize it, `l` names the holder. */
static int
lease_call(pyri_cluster *s, int what, const uint8_t *id, lease *l)
{
    static const uint8_t nobody[PYRI_CLS_ID];
    pyri_call c;
    pyri_call_begin(&c, "lease", true, PYRI_RADOS_CATALOG);
    pyri_buf_u8(&c.in, (uint8_t)what);
    pyri_buf_add(&c.in, id, PYRI_CLS_ID);
    pyri_buf_u32(&c.in, UPKEEP_MS);
    pyri_buf_add(&c.in, what == PYRI_LEASE_SEIZE ? l->holder : nobody,
                 PYRI_CLS_ID);
    int err = pyri_call_run(s, &c);
    l->granted = pyri_cursor_u8(&c.answer);
    l->renewed = pyri_cursor_u64(&c.answer);
    l->left_ms = pyri_cursor_u64(&c.answer);
    const uint8_t *holder = pyri_cursor_take(&c.answer, PYRI_CLS_ID);
    memcpy(l->holder, holder ? holder : nobody, PYRI_CLS_ID);
    pyri_call_fini(&c);
    return err;
}

/*
 * Another process has it, or had it when it died: that shows by its session,
 * or by its not renewing it. So look until it does, or until its time has run
 * out.
 */
static int
take_lease(pyri_cluster *s, const uint8_t *id)
{
    lease first, now;
    int err = lease_call(s, PYRI_LEASE_TAKE, id, &first);
    bool ended = false;
    if (err == 0 && !first.granted &&
        (err = pyri_session_ended(s, first.holder, &ended)) < 0)
        return err;
    if (ended)
        err = lease_call(s, PYRI_LEASE_SEIZE, id, &first);
    now = first;
    while (err == 0 && !now.granted && now.renewed == first.renewed) {
        pyri_cluster_sleep(now.left_ms < 50 ? (int)now.left_ms + 1 : 50);
        err = lease_call(s, PYRI_LEASE_TAKE, id, &now);
    }
    if (err < 0)
        return pyri_rados_fail(s, err, "giving space back");
    return now.granted ? 0
                       : pyri_fail(PYR_ETIMEOUT, "another process is giving "
                                                 "space back");
}

int
pyri_rados_begin_upkeep(pyri_engine *e)
{
    pyri_cluster *s = pyri_cluster_of(e);
    uint8_t id[PYRI_CLS_ID];
    int err = pyri_cluster_check(s);
    if (err < 0 || (err = pyri_session_id(s, id)) < 0 ||
        (err = pyri_cluster_keep(s)) < 0)
        return err;
    pthread_mutex_lock(&s->lock);
    bool busy = s->upkeep;
    s->upkeep = true;
    memset(s->upkeep_id, 0, sizeof s->upkeep_id);
    pthread_mutex_unlock(&s->lock);
    if (busy)
        return pyri_fail(PYR_ETIMEOUT, "another thread is giving space back");
    err = take_lease(s, id);
    pthread_mutex_lock(&s->lock);
    s->upkeep = err == 0;
    if (err == 0)
        memcpy(s->upkeep_id, id, sizeof id);
    pthread_mutex_unlock(&s->lock);
    ((pyri_rados *)e)->upkeep = err == 0;
    return err;
}

void
pyri_rados_end_upkeep(pyri_engine *e)
{
    pyri_cluster *s = pyri_cluster_of(e);
    uint8_t id[PYRI_CLS_ID];
    lease l;
    if (pyri_cluster_check(s) < 0)
        return;
    pthread_mutex_lock(&s->lock);
    memcpy(id, s->upkeep_id, sizeof id);
    memset(s->upkeep_id, 0, sizeof s->upkeep_id);
    pthread_mutex_unlock(&s->lock);
    lease_call(s, PYRI_LEASE_GIVE, id, &l);
    ((pyri_rados *)e)->upkeep = false;
    pthread_mutex_lock(&s->lock);
    s->upkeep = false;
    pthread_mutex_unlock(&s->lock);
}

void
pyri_upkeep_renew(pyri_cluster *s)
{
    static const uint8_t nobody[PYRI_CLS_ID];
    uint8_t id[PYRI_CLS_ID];
    lease l;
    pthread_mutex_lock(&s->lock);
    memcpy(id, s->upkeep_id, sizeof id);
    pthread_mutex_unlock(&s->lock);
    if (memcmp(id, nobody, sizeof id) != 0)
        lease_call(s, PYRI_LEASE_RENEW, id, &l);
}
