/*
 * engine/local/mailbox.c - completions that one process does for another.
 *
 * A transaction of meta costs two flushes, and only one process has one at a
 * time. So who finds another at it does not queue up for its own, but leaves
 * what it wants completed in STORE/live/mailbox, and the next one does all of
 * it in one transaction:
 *
 *   process A:  ---- commit ----|leave
 *   process B:    post .........|LEAD  take [C D] ---- commit [B C D] ---|
 *   process C:      post ..........................................DONE^
 *   process D:        post ........................................DONE^
 *
 * The file has a head, a page of words that all processes share, and slots with
 * room for one letter each (letter.c). `busy` is the badge (presence.c) of whom
 * others wait for; 0: nobody is at it. The word of a slot is a futex, and says
 * how often the slot was taken and how far its letter has come:
 *
 *   FREE -> FILLING -> PENDING -> TAKEN -> DONE      another one stores it, and
 *                         |         |                the answer lies there
 *                         |         '---> RETURNED   it tried, and could not
 *                         '-> LEAD                   the owner is to do it
 *
 * The rules that keep it safe, whoever dies or stops wherever:
 *
 * 1. Nothing of this excludes anyone: LMDB's writer lock does. Two who both
 *    think that it is their turn only wait for each other. So nobody needs to
 *    be believed dead: who waits in vain goes the way that all went before.
 * 2. A letter is taken with LMDB's lock held, copied, and stored by that very
 *    transaction or never. So its owner may have it back at any time, even from
 *    TAKEN: when it gets LMDB's lock itself, it finds it stored, or it never
 *    will be. If what is stored under its version is just what it wanted, that
 *    is success (pyri_request.retry).
 * 3. Who owns a slot is told by its `owner` alone, a badge; 0 is nobody. A dead
 *    owner's slot is taken over by changing that word first; a letter counts
 *    only if its mark has the owner and the number that the slot has.
 * 4. What a dead process had put into segments, and did not name, is cleared
 *    away (sweep.c). Its letters are dropped before, and a transaction that
 *    has taken one is waited for: see pyri_mailbox_drop_dead().
 *
 * Who waits looks every few milliseconds whether the one it waits for is dead,
 * and gives up if nobody has ended a turn for a while: it may be stopped. While
 * one is inside its transaction there is no hurry: LMDB's lock could not be had
 * either, and a slow disk is no reason to queue up for that.
 */
#include "engine/local/mailbox.h"

#include "base/fault.h"
#include "base/io.h"
#include "base/sys.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    SLOTS = 32,
    HEAD = 4096,
    SLICE_NS = 5000000,
    INSIDE = 20 /* times as much patience */
};

int pyri_mailbox_patience = 10;

enum { FREE, FILLING, PENDING, LEAD, TAKEN, DONE, RETURNED, STATES = 8 };

typedef struct slot {
    _Atomic uint32_t word; /* number * STATES + state */
    uint32_t unused;
    _Atomic uint64_t owner;
} slot;

typedef struct box {
    _Atomic uint64_t busy;
    _Atomic uint64_t inside; /* the badge of one in a transaction, or 0 */
    _Atomic uint32_t turns;  /* that have ended */
    _Atomic uint32_t looks;  /* for owners that are dead */
    slot slots[SLOTS];
    pyri_company company;
    _Atomic uint32_t posts; /* a futex, for who gathers */
    _Atomic uint32_t hoped; /* letters it would go on with, and one more; or 0 */
    uint8_t unused[HEAD - 32 - SLOTS * sizeof(slot) - sizeof(pyri_company)];
    uint8_t letters[SLOTS][PYRI_LETTER_SIZE];
} box;

static_assert(offsetof(box, letters) == HEAD, "layout");

struct pyri_mailbox {
    box *box;
    atomic_uint reserved; /* slots that are known to have their blocks */
    atomic_uint threads;  /* that a leader of ours hopes for; 0: no more */
    int64_t began;        /* when this process's turn did */
};

/* --- the file ------------------------------------------------------------ */

int
pyri_mailbox_open(const char *path, pyri_mailbox **out)
{
    *out = NULL;
    pyri_mailbox *m = pyri_sys_calloc(1, sizeof *m);
    if (!m)
        return pyri_fail_nomem("a mailbox");
    /* The file is as long as its blocks are set aside; the rest of the map is
     * not touched before that. */
    void *at;
    int errnum = pyri_io_share(path, HEAD, sizeof(box), &at);
    if (errnum) {
        free(m);
        return pyri_fail_errno(errnum, "%s", path);
    }
    m->box = at;
    *out = m;
    return 0;
}

void
pyri_mailbox_close(pyri_mailbox *m)
{
    if (!m)
        return;
    munmap(m->box, sizeof *m->box);
    free(m);
}

/* Has slot i its blocks? A full disk must not be noticed by a signal. That
 * another has seen to it is nothing to rely on: what it says is in the file. */
static bool
has_room(pyri_site *s, unsigned i)
{
    pyri_mailbox *m = s->mailbox;
    char path[PATH_MAX];
    if (i < atomic_load(&m->reserved))
        return true;
    if (pyri_path_join(path, sizeof path, s->path, "live/mailbox") < 0)
        return false;
    int fd = PYRI_RETRY(pyri_sys_open(path, O_RDWR | O_CLOEXEC));
    if (fd < 0)
        return false;
    size_t size = HEAD + (size_t)(i + 1) * PYRI_LETTER_SIZE;
    bool has = pyri_io_reserve(fd, size) == 0;
    pyri_sys_close(fd);
    if (has)
        atomic_store(&m->reserved, i + 1); /* only one thread is at it */
    return has;
}

/* --- words --------------------------------------------------------------- */

static uint32_t
state_of(uint32_t word)
{
    return word % STATES;
}

static uint32_t
with_state(uint32_t word, uint32_t state)
{
    return word - word % STATES + state;
}

/* From the state in `word`, which becomes the new one. */
static bool
step(slot *t, uint32_t *word, uint32_t state)
{
    uint32_t next = with_state(*word, state);
    if (!atomic_compare_exchange_strong(&t->word, word, next))
        return false;
    *word = next;
    return true;
}

static bool
swap_busy(box *m, uint64_t from, uint64_t to)
{
    return atomic_compare_exchange_strong(&m->busy, &from, to);
}

static bool
is_gone(pyri_site *s, uint64_t badge)
{
    bool alive;
    return pyri_presence_has_badge(s, badge, &alive) == 0 && !alive;
}

/* --- slots --------------------------------------------------------------- */

/* A slot that has become this process's begins anew: whoever still has its
 * last letter in hand finds that it is another by now. */
static uint32_t
renumber(slot *t, uint32_t state)
{
    uint32_t old = atomic_load(&t->word), next;
    do
        next = with_state(old + STATES, state);
    while (!atomic_compare_exchange_weak(&t->word, &old, next));
    return next;
}

static void
release(slot *t)
{
    renumber(t, FREE);
    atomic_store(&t->owner, 0);
}

static bool
claim(slot *t, uint64_t owner, uint64_t me)
{
    return atomic_compare_exchange_strong(&t->owner, &owner, me);
}

/* SLOTS if there is none. If all have owners, one of these is asked for: a
 * look costs too much to be taken at all of them each time. */
static unsigned
find_slot(pyri_site *s, uint64_t me)
{
    box *m = s->mailbox->box;
    for (unsigned i = 0; i < SLOTS; i++)
        if (atomic_load(&m->slots[i].owner) == 0 &&
            claim(&m->slots[i], 0, me))
            return i;
    unsigned i = atomic_fetch_add(&m->looks, 1) % SLOTS;
    uint64_t owner = atomic_load(&m->slots[i].owner);
    return owner && is_gone(s, owner) && claim(&m->slots[i], owner, me)
               ? i
               : SLOTS;
}

int
pyri_mailbox_drop_dead(pyri_site *s)
{
    uint64_t me = pyri_presence_badge(s);
    if (s->mailbox && !me)
        return pyri_fail(PYR_EREADONLY, "%s is not open for writing", s->path);
    for (unsigned i = 0; s->mailbox && i < SLOTS; i++) {
        slot *t = &s->mailbox->box->slots[i];
        uint64_t owner = atomic_load(&t->owner);
        bool alive = true;
        int err = owner ? pyri_presence_has_badge(s, owner, &alive) : 0;
        if (err < 0)
            return err;
        /* If another has it now, its letter has the mark of none. */
        if (!alive && claim(t, owner, me))
            release(t);
    }
    return 0;
}

/* --- whose turn it is ---------------------------------------------------- */

/* The first slot from `i` on that waits. */
static unsigned
find_pending(box *m, unsigned i)
{
    while (i < SLOTS && (state_of(atomic_load(&m->slots[i].word)) != PENDING ||
                         atomic_load(&m->slots[i].owner) == 0))
        i++;
    return i;
}

/* Let the owner of this slot lead. `busy` is changed first: it could have led
 * and left before. */
static bool
appoint(box *m, slot *t, uint64_t me, bool *mine)
{
    uint32_t word = atomic_load(&t->word);
    uint64_t heir = atomic_load(&t->owner);
    if (heir == 0 || state_of(word) != PENDING)
        return false;
    if (!(*mine = swap_busy(m, me, heir)))
        return false;
    if (step(t, &word, LEAD)) {
        pyri_futex_wake_shared(&t->word);
        return true;
    }
    *mine = swap_busy(m, heir, me);
    return false;
}

/* Who posts looks at `busy` after; so this looks at the slots after it has
 * changed `busy`. If that is not ours, another thinks that it is its turn. */
static void
hand_over(box *m, uint64_t me)
{
    bool mine = true;
    do {
        for (unsigned i = 0; (i = find_pending(m, i)) < SLOTS; i++)
            if (appoint(m, &m->slots[i], me, &mine) || !mine)
                return;
        if (!swap_busy(m, me, 0))
            return;
    } while (find_pending(m, 0) < SLOTS && swap_busy(m, 0, me));
}

void
pyri_mailbox_leave(pyri_site *s)
{
    uint64_t me = pyri_presence_badge(s);
    if (!s->mailbox || !me)
        return;
    box *m = s->mailbox->box;
    uint32_t turn = atomic_fetch_add(&m->turns, 1) + 1;
    pyri_company_note(&m->company, me, turn);
    pyri_company_took(&m->company, pyri_now_ns() - s->mailbox->began);
    if (atomic_load(&m->busy) == me)
        hand_over(m, me);
}

static unsigned
count_pending(box *m)
{
    unsigned n = 0;
    for (unsigned i = 0; (i = find_pending(m, i)) < SLOTS; i++)
        n++;
    return n;
}

static void
look_up(box *m)
{
    atomic_fetch_add(&m->posts, 1);
    pyri_futex_wake_shared(&m->posts);
}

/* A letter is there. Only the one that is hoped for wakes who gathers: each
 * time it looks up, somebody who is at work has to stop. */
static void
tell_letter(box *m)
{
    uint32_t hoped = atomic_load(&m->hoped);
    if (hoped && count_pending(m) + 1 >= hoped)
        look_up(m);
}

void
pyri_mailbox_tell(pyri_site *s, unsigned waiting)
{
    unsigned threads = s->mailbox ? atomic_load(&s->mailbox->threads) : 0;
    if (threads && waiting >= threads)
        look_up(s->mailbox->box);
}

/* Who comes is seen here, or sees that it is hoped for. (If two gather, one may
 * miss its wake-up, and be patient to the end.) */
void
pyri_mailbox_gather(pyri_site *s, const atomic_uint *waiting,
                    unsigned threads)
{
    uint64_t me = pyri_presence_badge(s);
    if (!s->mailbox || !me)
        return;
    box *m = s->mailbox->box;
    int64_t now = pyri_now_ns();
    int64_t until = now + pyri_company_patience_ns(&m->company);
    unsigned others = pyri_company_others(&m->company, me,
                                          atomic_load(&m->turns));
    while (now < until && atomic_load(&m->busy) == me) {
        uint32_t seen = atomic_load(&m->posts);
        atomic_store(&m->hoped, others + 1);
        atomic_store(&s->mailbox->threads, threads);
        if (count_pending(m) >= others && atomic_load(waiting) >= threads)
            break;
        pyri_futex_wait_shared(&m->posts, seen, until - now);
        now = pyri_now_ns();
    }
    atomic_store(&s->mailbox->threads, 0);
    atomic_store(&m->hoped, 0);
    s->mailbox->began = now;
}

/* --- the owner's side ---------------------------------------------------- */

typedef struct wait_for {
    slot *slot;
    const uint8_t *letter;
    uint64_t me;
    uint32_t word;  /* as it was seen last */
    uint32_t turns;
    int slices;     /* in which nothing happened */
    bool waited;    /* it has slept since `word` was seen */
    bool taken;     /* somebody has or had the letter */
} wait_for;

static pyri_postmark
mark_of(uint64_t owner, uint32_t word)
{
    return (pyri_postmark){owner, word / STATES};
}

/* The slot that the letter was left in; NULL if it was not. */
static slot *
post(pyri_site *s, const pyri_request *requests, wait_for *w)
{
    box *m = s->mailbox->box;
    unsigned i = find_slot(s, w->me);
    if (i == SLOTS)
        return NULL;
    slot *t = &m->slots[i];
    w->word = renumber(t, FILLING);
    w->letter = m->letters[i];
    PYRI_FAULT("mailbox.filling");
    if (has_room(s, i) &&
        pyri_letter_write(s, requests, mark_of(w->me, w->word), m->letters[i],
                          sizeof m->letters[i]) &&
        step(t, &w->word, PENDING)) {
        PYRI_FAULT("mailbox.pending");
        tell_letter(m);
        return w->slot = t;
    }
    release(t);
    return NULL;
}

static void
try_again(pyri_request *requests)
{
    for (pyri_request *r = requests; r; r = r->next)
        r->retry = true;
}

/* The one that is waited for: is it there, and getting on? */
static bool
is_lost(pyri_site *s, wait_for *w, uint64_t busy)
{
    box *m = s->mailbox->box;
    uint32_t turns = atomic_load(&m->turns);
    int patience = pyri_mailbox_patience;
    if (busy == 0 || busy == w->me)
        return true;
    if (!w->waited)
        return false;
    /* Turns of others say nothing of a letter that was taken. */
    w->slices = turns == w->turns || state_of(w->word) == TAKEN
                    ? w->slices + 1
                    : 0;
    w->turns = turns;
    if (atomic_load(&m->inside))
        patience *= INSIDE;
    return w->slices > patience || is_gone(s, busy);
}

/* Take back a letter that nobody has, and the turn. */
static bool
take_turn(pyri_site *s, wait_for *w, uint64_t busy)
{
    if (busy != w->me && !swap_busy(s->mailbox->box, busy, w->me))
        return false;
    if (step(w->slot, &w->word, FILLING))
        return true;
    hand_over(s->mailbox->box, w->me); /* it has just been taken */
    return false;
}

/* Nothing to do but wait; or to do it oneself, if that is in vain. */
static bool
give_up(pyri_site *s, wait_for *w)
{
    bool taken = state_of(w->word) == TAKEN;
    uint64_t busy = atomic_load(&s->mailbox->box->busy);
    if (taken && !w->waited)
        return false; /* whoever has it need not be the one who is busy */
    if (!is_lost(s, w, busy))
        return false;
    if (!taken)
        return take_turn(s, w, busy);
    if (!step(w->slot, &w->word, FILLING))
        return false;
    swap_busy(s->mailbox->box, busy, w->me);
    return true;
}

/* Returns the state in which the letter is the owner's again: DONE, RETURNED,
 * LEAD, or FILLING if it was taken back; FREE if the slot is another's, which
 * it never should be. */
static uint32_t
await(pyri_site *s, wait_for *w)
{
    for (;;) {
        uint32_t word = atomic_load(&w->slot->word);
        uint32_t state = state_of(word);
        if (word / STATES != w->word / STATES)
            return FREE;
        if (word != w->word) {
            w->word = word;
            w->slices = 0;
            w->waited = false;
        }
        w->taken = w->taken || state == TAKEN;
        if (state != PENDING && state != TAKEN)
            return state;
        if (give_up(s, w))
            return FILLING;
        if (atomic_load(&w->slot->word) == w->word) {
            pyri_futex_wait_shared(&w->slot->word, w->word, SLICE_NS);
            w->waited = true;
        }
    }
}

bool
pyri_mailbox_enter(pyri_site *s, pyri_request *requests)
{
    wait_for w = {.me = pyri_presence_badge(s)};
    if (!s->mailbox || !w.me)
        return false;
    box *m = s->mailbox->box;
    if (swap_busy(m, 0, w.me))
        return false;
    w.turns = atomic_load(&m->turns);
    if (!post(s, requests, &w))
        return false;
    uint32_t state = await(s, &w);
    pyri_postmark mark = mark_of(w.me, w.word);
    if (state == LEAD)
        PYRI_FAULT("mailbox.lead");
    bool done = state == DONE &&
                pyri_answer_read(w.letter, mark, requests) == 0;
    if (!done && (w.taken || (state != LEAD && state != FILLING)))
        try_again(requests);
    if (state != FREE)
        release(w.slot);
    if (done)
        PYRI_FAULT("mailbox.done");
    return done;
}

/* --- the leader's side --------------------------------------------------- */

static pyri_letter *
take_letter(pyri_site *s, unsigned i)
{
    box *m = s->mailbox->box;
    slot *t = &m->slots[i];
    pyri_letter *l = NULL;
    uint32_t word = atomic_load(&t->word);
    if (state_of(word) != PENDING || !step(t, &word, TAKEN))
        return NULL;
    uint64_t owner = atomic_load(&t->owner);
    if (has_room(s, i) &&
        pyri_letter_read(m->letters[i], sizeof m->letters[i],
                         mark_of(owner, word), &l) == 0 &&
        atomic_load(&t->word) == word) {
        l->slot = i;
        return l;
    }
    free(l);
    if (step(t, &word, RETURNED))
        pyri_futex_wake_shared(&t->word);
    return NULL;
}

pyri_letter *
pyri_mailbox_take(pyri_site *s)
{
    pyri_letter *first = NULL, **last = &first;
    if (s->mailbox)
        atomic_store(&s->mailbox->box->inside, pyri_presence_badge(s));
    for (unsigned i = 0; s->mailbox && i < SLOTS; i++)
        if ((*last = take_letter(s, i)))
            last = &(*last)->next;
    if (first)
        PYRI_FAULT("mailbox.taken");
    return first;
}

static void
answer(box *m, const pyri_letter *l, bool committed)
{
    slot *t = &m->slots[l->slot];
    uint32_t word = l->mark.number * STATES + TAKEN;
    if (atomic_load(&t->word) != word)
        return; /* its owner has taken it back */
    if (committed)
        pyri_answer_write(l, m->letters[l->slot]);
    pyri_company_note(&m->company, l->mark.owner, atomic_load(&m->turns) + 1);
    if (step(t, &word, committed ? DONE : RETURNED))
        pyri_futex_wake_shared(&t->word);
}

void
pyri_mailbox_answer(pyri_site *s, pyri_letter *letters, bool committed)
{
    bool any = letters;
    uint64_t me = pyri_presence_badge(s);
    if (s->mailbox) /* unless the next one is by now */
        atomic_compare_exchange_strong(&s->mailbox->box->inside, &me, 0);
    for (pyri_letter *l = letters, *next; l; l = next) {
        next = l->next;
        answer(s->mailbox->box, l, committed);
        free(l);
    }
    if (any)
        PYRI_FAULT("mailbox.answered");
}
