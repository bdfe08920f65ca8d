/*
 * cls/tests/cls_test.c - the object class, on an object in memory.
 */
#include "cls/tests/memory.h"
#include "support/rng.h"

/* --- heads --------------------------------------------------------------- */

enum { LEASE_MS = 1000 };

static void
add_edit(pyri_buf *b, int kind, const char *key, const char *value,
         uint64_t version, int ndim)
{
    pyri_buf_u8(b, (uint8_t)kind);
    pyri_buf_str(b, key);
    pyri_buf_str(b, value);
    pyri_buf_u64(b, version);
    pyri_buf_u8(b, (uint8_t)ndim);
    for (int d = 0; d < ndim; d++)
        pyri_buf_u64(b, 10);
}

static int
edit_by(memory *m, const char *name, int mode, uint8_t id,
        const pyri_buf *edits)
{
    request q = ask();
    pyri_buf_u8(&q.in, (uint8_t)mode);
    ask_id(&q, id);
    pyri_buf_varint(&q.in, edits ? edits->size : 0);
    if (edits)
        pyri_buf_add(&q.in, edits->data, edits->size);
    int err = call(m, name, &q);
    done(&q);
    return err;
}

static int
edit(memory *m, int mode, uint8_t id, const pyri_buf *edits)
{
    return edit_by(m, "edit", mode, id, edits);
}

static int
edit_one(memory *m, int kind, const char *key, const char *value,
         uint64_t version)
{
    pyri_buf b = {0};
    add_edit(&b, kind, key, value, version, kind == PYRI_WIRE_ARRAY ? 2 : 0);
    int err = edit(m, PYRI_MODE_NOW, 0, &b);
    pyri_buf_fini(&b);
    return err;
}

static int
take(memory *m, uint8_t id, bool again, uint64_t *version, uint32_t *epoch)
{
    request q = ask();
    ask_id(&q, id);
    pyri_buf_u8(&q.in, again);
    pyri_buf_u32(&q.in, LEASE_MS);
    pyri_buf_u8(&q.in, 0);
    pyri_buf_u8(&q.in, 255);
    pyri_buf_u64(&q.in, 0);
    ask_text(&q, "claim");
    int err = call(m, "take", &q);
    *version = pyri_cursor_u64(&q.answer);
    pyri_cursor_u64(&q.answer);
    *epoch = pyri_cursor_u32(&q.answer);
    done(&q);
    return err;
}

enum { FENCER = 99 };
static const uint64_t OTHERS = UINT64_MAX / 255 * FENCER; /* its session */

static int
fence(memory *m, uint64_t version, uint32_t *epoch)
{
    request q = ask();
    pyri_buf_u64(&q.in, version);
    ask_id(&q, FENCER);
    pyri_buf_u32(&q.in, LEASE_MS);
    int err = call(m, "fence", &q);
    *epoch = pyri_cursor_u32(&q.answer);
    pyri_cursor_u8(&q.answer);
    uint64_t taker = pyri_cursor_u64(&q.answer);
    CHECK(err < 0 || (!q.answer.failed && taker != OTHERS));
    done(&q);
    return err;
}

static int
complete(memory *m, uint64_t version, uint32_t epoch, uint8_t id,
         uint64_t *latest)
{
    request q = ask();
    pyri_buf_u8(&q.in, 0);
    pyri_buf_u64(&q.in, version);
    pyri_buf_u32(&q.in, epoch);
    ask_id(&q, id);
    pyri_buf_u64(&q.in, 10);
    pyri_buf_u64(&q.in, 10);
    ask_text(&q, "record");
    int err = call(m, "complete", &q);
    *latest = pyri_cursor_u64(&q.answer);
    done(&q);
    return err;
}

/* How many are in flight; which of them are dead, as bits. */
static unsigned
flights(memory *m, unsigned *dead)
{
    request q = ask();
    unsigned n = 0;
    *dead = 0;
    pyri_buf_u64(&q.in, 0);
    pyri_buf_u64(&q.in, UINT64_MAX);
    CHECK(call(m, "flights", &q) == 0);
    pyri_cursor_take(&q.answer, 8 + 8 + 1 + 16);
    while (pyri_cursor_u8(&q.answer) == PYRI_PAGE_ITEM) {
        pyri_cursor_u64(&q.answer);
        if (pyri_cursor_u8(&q.answer) & PYRI_F_DEAD)
            *dead |= 1u << n;
        pyri_cursor_take(&q.answer, 8 + 8);
        CHECK(pyri_cursor_u64(&q.answer) != OTHERS); /* who took it */
        pyri_cursor_take(&q.answer, 16);
        CHECK(pyri_cursor_str(&q.answer).size == 5);
        n++;
    }
    CHECK(!q.answer.failed && q.answer.at == q.answer.end);
    done(&q);
    return n;
}

static memory
new_head(void)
{
    memory m = {.now = 1};
    CHECK(edit_one(&m, PYRI_WIRE_ARRAY, "", "", 0) == 0);
    return m;
}

static void
a_take_that_is_repeated_gives_the_same_version(void)
{
    memory m = new_head();
    uint64_t a, b, c;
    uint32_t epoch;
    CHECK(take(&m, 1, false, &a, &epoch) == 0 && a == 1);
    CHECK(take(&m, 2, false, &b, &epoch) == 0 && b == 2);
    CHECK(take(&m, 1, true, &c, &epoch) == 0 && c == 1);
    CHECK(take(&m, 3, true, &c, &epoch) == 0 && c == 3);
    memory_remove(&m);
}

static void
a_completion_that_is_repeated_succeeds_and_anothers_is_refused(void)
{
    memory m = new_head();
    uint64_t v, latest;
    uint32_t epoch;
    CHECK(take(&m, 1, false, &v, &epoch) == 0);
    CHECK(complete(&m, v, epoch, 9, &latest) == 0 && latest == 1);
    CHECK(complete(&m, v, epoch, 9, &latest) == 0 && latest == 1);
    CHECK(complete(&m, v, epoch, 8, &latest) == PYRI_CLS_FENCED);
    memory_remove(&m);
}

static void
who_was_fenced_cannot_complete_and_its_successor_can(void)
{
    memory m = new_head();
    uint64_t v, latest;
    uint32_t first, second, third;
    CHECK(take(&m, 1, false, &v, &first) == 0);
    CHECK(fence(&m, v, &second) == 0 && second > first);
    CHECK(fence(&m, v, &third) == 0 && third > second);
    CHECK(complete(&m, v, first, 1, &latest) == PYRI_CLS_FENCED);
    CHECK(complete(&m, v, second, 2, &latest) == PYRI_CLS_FENCED);
    CHECK(complete(&m, v, third, 3, &latest) == 0 && latest == 1);
    CHECK(fence(&m, v, &first) == PYRI_CLS_FENCED);
    memory_remove(&m);
}

static void
versions_publish_in_order(void)
{
    memory m = new_head();
    uint64_t v[3], latest;
    uint32_t epoch;
    unsigned dead;
    for (int i = 0; i < 3; i++)
        CHECK(take(&m, (uint8_t)i, false, &v[i], &epoch) == 0);
    CHECK(complete(&m, v[2], epoch, 1, &latest) == 0 && latest == 0);
    CHECK(complete(&m, v[0], epoch, 2, &latest) == 0 && latest == 1);
    CHECK(flights(&m, &dead) == 2);
    CHECK(complete(&m, v[1], epoch, 3, &latest) == 0 && latest == 3);
    CHECK(flights(&m, &dead) == 0);
    memory_remove(&m);
}

static void
a_lease_ends_by_the_clock_of_the_object_and_not_before(void)
{
    memory m = new_head();
    uint64_t v;
    uint32_t epoch;
    unsigned dead;
    CHECK(take(&m, 1, false, &v, &epoch) == 0);
    m.now += LEASE_MS * 1000000ll;
    CHECK(flights(&m, &dead) == 1 && dead == 0);
    m.now++;
    CHECK(flights(&m, &dead) == 1 && dead == 1);
    CHECK(fence(&m, v, &epoch) == 0); /* a new lease for who resolves it */
    CHECK(flights(&m, &dead) == 1 && dead == 0);
    memory_remove(&m);
}

static int
reserve(memory *m, uint64_t version, uint32_t *epoch, bool *contested)
{
    request q = ask();
    pyri_buf_u64(&q.in, version);
    int err = call(m, "reserve", &q);
    *epoch = pyri_cursor_u32(&q.answer);
    *contested = pyri_cursor_u8(&q.answer);
    done(&q);
    return err;
}

static void
a_version_that_another_reserved_is_contested(void)
{
    memory m = new_head();
    uint32_t a, b, c;
    bool contested;
    uint64_t v;
    CHECK(reserve(&m, 2, &a, &contested) == 0 && !contested);
    CHECK(reserve(&m, 2, &b, &contested) == 0 && contested && b > a);
    CHECK(take(&m, 1, false, &v, &c) == 0 && v == 1 && c > b);
    CHECK(reserve(&m, 5, &a, &contested) == PYRI_CLS_FENCED);
    memory_remove(&m);
}

/* --- entries ------------------------------------------------------------- */

static int
put(memory *m, uint32_t epoch, const char *key, const char *value)
{
    request q = ask();
    pyri_buf_u8(&q.in, PYRI_ENTRY_PUT);
    pyri_buf_u32(&q.in, epoch);
    pyri_buf_varint(&q.in, 1);
    ask_text(&q, key);
    pyri_buf_varint(&q.in, 7);
    ask_text(&q, value);
    int err = call(m, "put", &q);
    done(&q);
    return err;
}

static bool
entry_is(memory *m, const char *key, const char *value)
{
    request q = ask();
    pyri_buf_varint(&q.in, 1);
    ask_text(&q, key);
    CHECK(call(m, "find", &q) == 0);
    bool found = pyri_cursor_u8(&q.answer);
    pyri_cursor_varint(&q.answer);
    pyri_bytes got = pyri_cursor_str(&q.answer);
    bool is = found == (value != NULL) &&
              (!value || (got.size == strlen(value) &&
                          memcmp(got.data, value, got.size) == 0));
    done(&q);
    return is;
}

static int
drop(memory *m, bool some, uint32_t epoch, const char *key, uint64_t *weight)
{
    request q = ask();
    pyri_buf_u8(&q.in, 0);
    pyri_buf_u32(&q.in, epoch);
    pyri_buf_varint(&q.in, 1);
    ask_text(&q, key);
    int err = call(m, some ? "undo" : "drop", &q);
    pyri_cursor_take(&q.answer, 16);
    *weight = pyri_cursor_u64(&q.answer);
    done(&q);
    return err;
}

static void
an_entry_of_a_later_epoch_wins_in_whatever_order_they_come(void)
{
    memory m = {.now = 1};
    CHECK(put(&m, 1, "a", "first") == 0 && entry_is(&m, "a", "first"));
    CHECK(put(&m, 2, "a", "second") == 0 && entry_is(&m, "a", "second"));
    CHECK(put(&m, 1, "a", "late") == 0 && entry_is(&m, "a", "second"));
    CHECK(put(&m, 2, "a", "again") == 0 && entry_is(&m, "a", "again"));
    memory_remove(&m);
}

static void
an_undo_takes_away_ones_own_entries_only(void)
{
    memory m = {.now = 1};
    uint64_t weight;
    CHECK(put(&m, 2, "a", "successor") == 0);
    CHECK(drop(&m, true, 1, "a", &weight) == 0 && weight == 0);
    CHECK(entry_is(&m, "a", "successor"));
    CHECK(drop(&m, true, 2, "a", &weight) == 0 && weight == 7);
    CHECK(entry_is(&m, "a", NULL) && !m.exists); /* empty: it is gone */
    memory_remove(&m);
}

static uint64_t
disown(memory *m, uint32_t epoch, const char *name)
{
    request q = ask();
    pyri_buf_u32(&q.in, epoch);
    ask_text(&q, name);
    CHECK(call(m, "disown", &q) == 0);
    uint64_t n = pyri_cursor_u64(&q.answer);
    done(&q);
    return n;
}

static uint64_t
count(memory *m)
{
    request q = ask();
    CHECK(call(m, "count", &q) == 0);
    uint64_t n = pyri_cursor_u64(&q.answer);
    done(&q);
    return n;
}

static void
who_takes_a_version_over_strikes_off_what_was_named_for_it(void)
{
    memory m = {.now = 1};
    CHECK(put(&m, 1, "a", "v1") == 0 && put(&m, 1, "b", "v2") == 0);
    CHECK(put(&m, 1, "c", "v1, there") == 0 && put(&m, 2, "d", "v1") == 0);
    CHECK(disown(&m, 1, "v1") == 0); /* none is earlier */
    CHECK(disown(&m, 2, "v1") == 2);
    CHECK(entry_is(&m, "a", NULL) && entry_is(&m, "b", "v2"));
    CHECK(entry_is(&m, "c", "") && entry_is(&m, "d", "v1"));
    CHECK(count(&m) == 3);
    CHECK(disown(&m, 2, "v1") == 0);
    CHECK(put(&m, 1, "c", "v3") == 0 && entry_is(&m, "c", "v3"));
    CHECK(disown(&m, 9, "v") == 3);
    CHECK(count(&m) == 3 && entry_is(&m, "b", "") && entry_is(&m, "c", ""));
    memory_remove(&m);
}

/* More than a page; the object goes when nothing is left in it. */
static void
a_long_list_is_struck_off_whole(void)
{
    memory m = {.now = 1};
    char key[16];
    for (int i = 0; i < 2 * PYRI_CLS_ITEMS + 3; i++) {
        snprintf(key, sizeof key, "k%05d", i);
        CHECK(put(&m, 1, key, i % 2 ? "odd" : "even") == 0);
    }
    CHECK(disown(&m, 2, "odd") == PYRI_CLS_ITEMS + 1);
    CHECK(count(&m) == PYRI_CLS_ITEMS + 2);
    CHECK(disown(&m, 2, "even") == PYRI_CLS_ITEMS + 2 && !m.exists);
    request q = ask();
    pyri_buf_u32(&q.in, 2);
    ask_text(&q, ""); /* which would be all */
    CHECK(call(&m, "disown", &q) == PYRI_CLS_BAD);
    done(&q);
    memory_remove(&m);
}

static void
nothing_is_put_into_what_was_closed(void)
{
    memory m = {.now = 1};
    request q = ask();
    uint64_t weight;
    CHECK(put(&m, 1, "a", "named") == 0);
    CHECK(call(&m, "sweep", &q) == 0);
    done(&q);
    CHECK(put(&m, 1, "b", "late") == PYRI_CLS_FENCED);
    CHECK(entry_is(&m, "a", "named") && entry_is(&m, "b", NULL));
    CHECK(drop(&m, false, 0, "a", &weight) == 0);
    CHECK(put(&m, 1, "b", "late") == PYRI_CLS_FENCED); /* for good */
    memory_remove(&m);
}

/* --- edits --------------------------------------------------------------- */

static void
what_is_prepared_shows_when_it_is_applied_and_locks_until_then(void)
{
    memory m = new_head();
    pyri_buf b = {0};
    CHECK(edit_one(&m, PYRI_WIRE_PUT, "k", "old", 0) == 0);
    add_edit(&b, PYRI_WIRE_SAME, "k", "old", 0, 0);
    add_edit(&b, PYRI_WIRE_PUT, "k", "new", 0, 0);
    CHECK(edit(&m, PYRI_MODE_PREPARE, 5, &b) == 0);
    CHECK(edit(&m, PYRI_MODE_PREPARE, 5, &b) == 0); /* repeated */
    CHECK(edit(&m, PYRI_MODE_PREPARE, 6, &b) == PYRI_CLS_BUSY);
    CHECK(edit_one(&m, PYRI_WIRE_PUT, "k", "other", 0) == PYRI_CLS_BUSY);
    CHECK(edit(&m, PYRI_MODE_APPLY, 6, NULL) == 0); /* not this one */
    CHECK(edit_one(&m, PYRI_WIRE_PUT, "k", "other", 0) == PYRI_CLS_BUSY);
    CHECK(edit(&m, PYRI_MODE_APPLY, 5, NULL) == 0);
    CHECK(edit_one(&m, PYRI_WIRE_SAME, "k", "new", 0) == 0);
    CHECK(edit(&m, PYRI_MODE_APPLY, 5, NULL) == 0); /* repeated */
    pyri_buf_fini(&b);
    memory_remove(&m);
}

static void
what_is_cancelled_leaves_nothing(void)
{
    memory m = {.now = 1};
    pyri_buf b = {0};
    add_edit(&b, PYRI_WIRE_ARRAY, "", "", 0, 2);
    add_edit(&b, PYRI_WIRE_PUT, "k", "v", 0, 0);
    CHECK(edit(&m, PYRI_MODE_PREPARE, 5, &b) == 0 && m.exists);
    CHECK(edit(&m, PYRI_MODE_CANCEL, 5, NULL) == 0 && !m.exists);
    pyri_buf_fini(&b);
    memory_remove(&m);
}

/* So that capabilities can tell writers from those who may forget. */
static void
forgetting_has_a_method_of_its_own(void)
{
    memory m = new_head();
    pyri_buf b = {0};
    uint64_t v, latest;
    uint32_t epoch;
    for (int i = 0; i < 2; i++) {
        CHECK(take(&m, 1, false, &v, &epoch) == 0);
        CHECK(complete(&m, v, epoch, 1, &latest) == 0);
    }
    add_edit(&b, PYRI_WIRE_PUT, "k", "v", 0, 0);
    add_edit(&b, PYRI_WIRE_FORGET, "", "", 1, 0);
    CHECK(edit(&m, PYRI_MODE_NOW, 0, &b) == PYRI_CLS_BAD);
    CHECK(edit(&m, PYRI_MODE_PREPARE, 1, &b) == PYRI_CLS_BAD);
    CHECK(edit_one(&m, PYRI_WIRE_KEPT, "", "", 1) == 0);
    CHECK(edit_by(&m, "forget", PYRI_MODE_PREPARE, 1, &b) == 0);
    CHECK(edit(&m, PYRI_MODE_APPLY, 1, NULL) == 0); /* anyone finishes it */
    CHECK(edit_one(&m, PYRI_WIRE_KEPT, "", "", 1) == PYRI_CLS_GONE);
    CHECK(edit_one(&m, PYRI_WIRE_KEPT, "", "", 2) == 0);
    pyri_buf_fini(&b);
    memory_remove(&m);
}

static int
txn(memory *m, int what, uint8_t id, uint8_t *answer)
{
    request q = ask();
    pyri_buf_u8(&q.in, (uint8_t)what);
    ask_id(&q, id);
    pyri_buf_u32(&q.in, LEASE_MS);
    pyri_buf_varint(&q.in, 0);
    int err = call(m, "txn", &q);
    *answer = pyri_cursor_u8(&q.answer);
    done(&q);
    return err;
}

static void
a_transaction_that_was_given_up_cannot_commit(void)
{
    memory m = {.now = 1};
    uint8_t verdict;
    CHECK(txn(&m, PYRI_TXN_BEGIN, 1, &verdict) == 0);
    CHECK(txn(&m, PYRI_TXN_JUDGE, 1, &verdict) == 0 && verdict == 0);
    m.now += LEASE_MS * 1000000ll + 1;
    CHECK(txn(&m, PYRI_TXN_JUDGE, 1, &verdict) == 0 && verdict == 2);
    CHECK(edit(&m, PYRI_MODE_COMMIT, 1, NULL) == PYRI_CLS_FENCED);
    CHECK(txn(&m, PYRI_TXN_BEGIN, 2, &verdict) == 0);
    m.now += LEASE_MS * 1000000ll + 1;
    CHECK(edit(&m, PYRI_MODE_COMMIT, 2, NULL) == 0); /* nobody minded */
    CHECK(txn(&m, PYRI_TXN_JUDGE, 2, &verdict) == 0 && verdict == 1);
    memory_remove(&m);
}

static void
a_transaction_whose_process_is_gone_is_given_up_at_once(void)
{
    memory m = {.now = 1};
    uint8_t verdict;
    CHECK(txn(&m, PYRI_TXN_BEGIN, 1, &verdict) == 0);
    CHECK(txn(&m, PYRI_TXN_GIVE_UP, 1, &verdict) == 0 && verdict == 2);
    CHECK(edit(&m, PYRI_MODE_COMMIT, 1, NULL) == PYRI_CLS_FENCED);
    CHECK(txn(&m, PYRI_TXN_BEGIN, 2, &verdict) == 0);
    CHECK(edit(&m, PYRI_MODE_COMMIT, 2, NULL) == 0);
    CHECK(txn(&m, PYRI_TXN_GIVE_UP, 2, &verdict) == 0 && verdict == 1);
    memory_remove(&m);
}

/* --- who is there -------------------------------------------------------- */

static int
session(memory *m, int what, uint64_t number, const char *where,
        uint64_t *answer)
{
    request q = ask();
    pyri_buf_u8(&q.in, (uint8_t)what);
    pyri_buf_u64(&q.in, number);
    pyri_buf_u64(&q.in, 7);
    pyri_buf_u32(&q.in, LEASE_MS);
    ask_text(&q, where);
    int err = call(m, "session", &q);
    if (answer)
        *answer = pyri_cursor_u64(&q.answer);
    done(&q);
    return err;
}

/* What the list says of the place of a session; it has to be the first. */
static bool
is_at(memory *m, uint64_t number, const char *where)
{
    request q = ask();
    pyri_buf_u64(&q.in, number - 1);
    pyri_buf_u8(&q.in, 0);
    CHECK(call(m, "sessions", &q) == 0);
    CHECK(pyri_cursor_u8(&q.answer) == PYRI_PAGE_ITEM);
    CHECK(pyri_cursor_u64(&q.answer) == number);
    pyri_cursor_take(&q.answer, 1 + 8 + 8);
    pyri_bytes got = pyri_cursor_str(&q.answer);
    bool same = !q.answer.failed && got.size == strlen(where) &&
                memcmp(got.data, where, got.size) == 0;
    done(&q);
    return same;
}

static void
a_session_tells_where_its_process_is_as_long_as_it_lasts(void)
{
    memory m = {.now = 1};
    uint64_t a = 0, b = 0;
    char longest[PYRI_CLS_WHERE + 2];
    memset(longest, 'x', sizeof longest);
    longest[PYRI_CLS_WHERE + 1] = 0;
    CHECK(session(&m, PYRI_SESSION_NEW, 0, longest, &a) == PYRI_CLS_BAD);
    longest[PYRI_CLS_WHERE] = 0;
    CHECK(session(&m, PYRI_SESSION_NEW, 0, longest, &a) == 0);
    CHECK(session(&m, PYRI_SESSION_NEW, 0, "", &b) == 0 && b != a);
    CHECK(session(&m, PYRI_SESSION_RENEW, a, "", NULL) == 0);
    CHECK(session(&m, PYRI_SESSION_RENEW, b, "", NULL) == 0);
    CHECK(is_at(&m, a, longest) && is_at(&m, b, ""));
    m.now += LEASE_MS * 1000000ll + 1;
    CHECK(session(&m, PYRI_SESSION_EXPIRE, a, "", NULL) == 0);
    CHECK(is_at(&m, a, longest));
    CHECK(session(&m, PYRI_SESSION_RENEW, a, "", NULL) == PYRI_CLS_FENCED);
    memory_remove(&m);
}

/* Asks for the lease of upkeep; who had it before, or 0. */
static bool
lease(memory *m, int what, uint8_t id, uint8_t from, uint8_t *holder)
{
    request q = ask();
    pyri_buf_u8(&q.in, (uint8_t)what);
    ask_id(&q, id);
    pyri_buf_u32(&q.in, LEASE_MS);
    ask_id(&q, from);
    CHECK(call(m, "lease", &q) == 0);
    bool granted = pyri_cursor_u8(&q.answer);
    pyri_cursor_take(&q.answer, 8 + 8);
    *holder = pyri_cursor_u8(&q.answer);
    CHECK(!q.answer.failed);
    done(&q);
    return granted;
}

static void
upkeep_is_seized_from_the_holder_that_is_meant_and_no_other(void)
{
    memory m = {.now = 1};
    uint8_t holder;
    CHECK(lease(&m, PYRI_LEASE_TAKE, 1, 0, &holder) && holder == 0);
    CHECK(!lease(&m, PYRI_LEASE_TAKE, 2, 0, &holder) && holder == 1);
    CHECK(!lease(&m, PYRI_LEASE_SEIZE, 2, 3, &holder) && holder == 1);
    CHECK(lease(&m, PYRI_LEASE_SEIZE, 2, 1, &holder) && holder == 1);
    CHECK(!lease(&m, PYRI_LEASE_SEIZE, 3, 1, &holder) && holder == 2);
    CHECK(!lease(&m, PYRI_LEASE_RENEW, 1, 0, &holder) && holder == 2);
    CHECK(!lease(&m, PYRI_LEASE_GIVE, 1, 0, &holder) && holder == 2);
    CHECK(lease(&m, PYRI_LEASE_GIVE, 2, 0, &holder));
    CHECK(lease(&m, PYRI_LEASE_TAKE, 3, 0, &holder) && holder == 0);
    memory_remove(&m);
}

/* --- anything ------------------------------------------------------------ */

static void
any_bytes_are_answered_or_refused(void)
{
    rng r = rng_of(test_seed());
    memory m = new_head();
    uint64_t v;
    uint32_t epoch;
    for (int i = 0; i < 30; i++) /* something to stumble over */
        CHECK(take(&m, (uint8_t)i, false, &v, &epoch) == 0);
    for (int i = 0; i < 60000; i++) {
        const pyri_method *what = pyri_methods;
        for (uint64_t k = rng_below(&r, 40); k && what[1].name; k--)
            what++;
        request q = ask();
        for (uint64_t n = rng_below(&r, 90); n; n--)
            pyri_buf_u8(&q.in, (uint8_t)(rng_below(&r, 3) ? rng_below(&r, 9)
                                         : rng_below(&r, 256)));
        int err = call(&m, what->name, &q);
        CHECK(err <= 0 && q.out.size < 4u << 20);
        done(&q);
        if (!m.exists) {
            memory_remove(&m);
            m = new_head();
        }
    }
    memory_remove(&m);
}

TESTS(T(a_take_that_is_repeated_gives_the_same_version),
      T(a_completion_that_is_repeated_succeeds_and_anothers_is_refused),
      T(who_was_fenced_cannot_complete_and_its_successor_can),
      T(versions_publish_in_order),
      T(a_lease_ends_by_the_clock_of_the_object_and_not_before),
      T(forgetting_has_a_method_of_its_own),
      T(a_transaction_whose_process_is_gone_is_given_up_at_once),
      T(a_session_tells_where_its_process_is_as_long_as_it_lasts),
      T(upkeep_is_seized_from_the_holder_that_is_meant_and_no_other),
      T(a_version_that_another_reserved_is_contested),
      T(an_entry_of_a_later_epoch_wins_in_whatever_order_they_come),
      T(an_undo_takes_away_ones_own_entries_only),
      T(who_takes_a_version_over_strikes_off_what_was_named_for_it),
      T(a_long_list_is_struck_off_whole),
      T(nothing_is_put_into_what_was_closed),
      T(what_is_prepared_shows_when_it_is_applied_and_locks_until_then),
      T(what_is_cancelled_leaves_nothing),
      T(a_transaction_that_was_given_up_cannot_commit),
      T(any_bytes_are_answered_or_refused))
