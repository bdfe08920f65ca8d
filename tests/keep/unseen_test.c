/*
 * keep/unseen_test.c - what those who reclaim do not see at first: that one was
 * killed in its commit, when all of it was done but the note that readers go by,
 * so that the next must not plan on what was there before; and that a writer
 * died in another array.
 */
#include "keep/ledger.h"
#include "keep/stage.h"
#include "support/last_write.h"
#include "support/proc.h"

#include "base/fail.h"
#include "base/fault.h"

enum { CELLS = 4096, BOUND_MS = 60000 };

static const char *fatal;
static bool at_once; /* or in the next commit */

static int
die_there(const char *name)
{
    if (strcmp(name, fatal) != 0)
        return 0;
    if (at_once)
        kill(getpid(), SIGKILL);
    die_in_commit = 1;
    return 0;
}

static int
reclaim_and_die(void *url)
{
    pyr_store *store;
    pyr_reclaimed gone;
    if (pyr_open(url, 0, &store) < 0)
        return 1;
    pyri_fault_hook = die_there;
    pyr_reclaim(store, NULL, &gone);
    return 2;
}

static void
die_reclaiming(stage *s, const char *point, bool now)
{
    fatal = point;
    at_once = now;
    proc_end end = proc_wait(proc_fork(reclaim_and_die, s->url), BOUND_MS);
    REQUIRE(end.signal == SIGKILL);
}

static void
put(stage *s, uint64_t from, uint64_t to, uint32_t base, pyr_version *v)
{
    static uint32_t cells[CELLS];
    uint64_t size = to - from;
    for (uint64_t i = 0; i < size; i++)
        cells[i] = base + (uint32_t)i * 7;
    OK(pyr_write(s->array, &from, &size, cells, v));
}

static void
get(stage *s, pyr_version v, uint32_t *cells)
{
    OK(pyr_read(s->array, v, &(uint64_t){0}, &(uint64_t){CELLS}, cells));
}

static void
open_unseen(stage *s)
{
    stage_open(s, tmp_store("unseen"), 3600000, 1, CELLS, CELLS);
}

/* Versions of two cells each; the newest. */
static pyr_version
put_some(stage *s, uint64_t n)
{
    pyr_version v = 0;
    for (uint64_t i = 0; i < n; i++)
        put(s, 4 * i, 4 * i + 2, 100 * (uint32_t)i + 1, &v);
    return v;
}

/* All but the newest of them go, and who reclaims dies after the point. */
static void
forget_and_die(stage *s, const char *point)
{
    OK(pyr_forget(s->array, 0, PYR_LATEST, 1, 0, NULL));
    die_reclaiming(s, point, false);
}

/* Or the first fold would be named by nobody. */
static void
a_fold_that_was_not_seen_is_not_made_again(void)
{
    stage s;
    pyr_reclaimed gone;
    static uint32_t before[CELLS], after[CELLS];
    open_unseen(&s);
    pyr_version v = put_some(&s, 8);
    get(&s, v, before);
    forget_and_die(&s, "fold.commit");
    OK(pyr_reclaim(s.store, NULL, &gone));
    OK(pyr_reclaim(s.store, NULL, &gone));
    get(&s, v, after);
    CHECK(memcmp(before, after, sizeof before) == 0);
    ledger_check(s.store);
    close_stage(&s);
}

/* Or the record of what is to be folded, which has gone, could not go again. */
static void
what_was_folded_is_not_looked_for_again(void)
{
    stage s;
    pyr_reclaimed gone;
    open_unseen(&s);
    put_some(&s, 8);
    forget_and_die(&s, "fold.done");
    OK(pyr_reclaim(s.store, NULL, &gone));
    ledger_check(s.store);
    close_stage(&s);
}

/* Or leaves that were folded would be written as they were, for the sake of
 * those beside them, and name what has gone: zeros, once it is given back. */
static void
leaves_do_not_come_to_name_what_has_gone(void)
{
    stage s;
    pyr_reclaimed gone;
    static uint32_t before[CELLS], after[CELLS];
    open_unseen(&s);
    pyr_version v = put_some(&s, 4);
    OK(pyr_forget(s.array, 1, 3, 0, 0, NULL));
    die_reclaiming(&s, "fold.put", true); /* 4 is left to be folded */
    put(&s, 1000, 3000, 1000000, &v); /* 5 */
    put(&s, 1500, 3500, 2000000, &v); /* 6 */
    put(&s, 2000, 3000, 3000000, &v); /* 7 */
    get(&s, 7, before); /* verified by this process: trusted from here on */
    OK(pyr_forget(s.array, 5, 6, 0, 0, NULL));
    die_reclaiming(&s, "fold.commit", false); /* 7 was folded */
    die_reclaiming(&s, "fold.done", true); /* and now 4, and what lies on it */
    for (int i = 0; i < 100; i++) /* too many to be folded along with 7 */
        put(&s, 3900, 3902, 9 * (uint32_t)i + 4000000, &v);
    OK(pyr_reclaim(s.store, NULL, &gone));
    OK(pyr_reclaim(s.store, NULL, &gone));
    CHECK(gone.waiting == 0);
    get(&s, 7, after);
    size_t wrong = 0;
    for (size_t i = 0; i < CELLS; i++)
        wrong += before[i] != after[i];
    if (wrong)
        CHECK_NOTE("%zu cells are wrong, and nobody says so", wrong);
    ledger_check(s.store);
    close_stage(&s);
}

/* --- elsewhere ----------------------------------------------------------- */

static int
write_and_die(void *url)
{
    pyr_store *store;
    pyr_array *b;
    if (pyr_open(url, 0, &store) < 0 || pyr_array_open(store, "b", &b) < 0)
        return 1;
    pyri_fault_hook = die_there;
    pyr_write(b, &(uint64_t){0}, &(uint64_t){1}, &(uint32_t){7}, NULL);
    return 2;
}

static int
refuse(const char *name)
{
    return strcmp(name, "publish.commit") == 0
               ? pyri_fail(PYR_ENOSPC, "no room for a version")
               : 0;
}

/* The version of a dead writer cannot be completed: what was forgotten in
 * another array goes all the same. */
static void
trouble_with_one_array_is_told_when_the_others_are_done(void)
{
    stage s;
    pyr_reclaimed gone;
    pyr_array *b;
    pyr_version latest;
    open_unseen(&s);
    put_some(&s, 8);
    OK(pyr_create(s.store, "b", &(pyr_spec){.ndim = 1,
                                            .shape = &(uint64_t){CELLS},
                                            .type = PYR_U32}, &b));
    fatal = "write.taken";
    at_once = true;
    proc_end end = proc_wait(proc_fork(write_and_die, s.url), BOUND_MS);
    REQUIRE(end.signal == SIGKILL);
    OK(pyr_forget(s.array, 2, 5, 0, 0, NULL));
    pyri_fault_hook = refuse;
    FAILS(PYR_ENOSPC, pyr_reclaim(s.store, NULL, &gone));
    pyri_fault_hook = NULL;
    CHECK(strstr(pyr_errmsg(), "no room for a version"));
    CHECK(gone.versions == 4);
    OK(pyr_reclaim(s.store, NULL, &gone));
    OK(pyr_latest(b, &latest));
    CHECK(latest == 1 && gone.versions == 0);
    pyr_array_close(b);
    ledger_check(s.store);
    close_stage(&s);
}

TESTS(T(a_fold_that_was_not_seen_is_not_made_again),
      T(what_was_folded_is_not_looked_for_again),
      T(leaves_do_not_come_to_name_what_has_gone),
      T(trouble_with_one_array_is_told_when_the_others_are_done))
