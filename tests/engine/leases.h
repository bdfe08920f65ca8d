/*
 * tests/engine/leases.h - what an engine promises of writers that are silent,
 * and of those who wait for a version.
 */
#ifndef TESTS_ENGINE_LEASES_H
#define TESTS_ENGINE_LEASES_H

#include "engine/stores.h"
#include "engine/versions.h"

/* --- leases -------------------------------------------------------------- */

enum { LEASE_MS = 80 };

/* Look until the first in flight is dead; how long that took is no matter,
 * only that it was not before `deadline_ns`. */
static void
await_death(pyri_engine *e, int64_t deadline_ns)
{
    int64_t start = now_ns();
    bool dead = false;
    while (!dead && patient(start)) {
        pyri_flights all = flights(e);
        dead = all.n > 0 && all.list[0].dead;
        CHECK(!dead || now_ns() >= deadline_ns);
        pyri_flights_fini(&all);
    }
    CHECK(dead);
}

static void
a_silent_writer_is_dead_when_its_lease_ran_out(void)
{
    pyri_engine *e = fresh_with_lease(LEASE_MS);
    make_array(e, ARRAY, 0);
    int64_t start = now_ns();
    pyri_ticket ticket = take(e, ARRAY, "");
    CHECK(ticket.deadline_ns >= start + LEASE_MS * 1000000ll);
    CHECK(ticket.deadline_ns <= now_ns() + LEASE_MS * 1000000ll);
    await_death(e, start + LEASE_MS * 1000000ll);
    pyri_engine_close(e);
}

static void
a_dead_version_is_resolved_and_those_above_publish(void)
{
    pyri_engine *e = fresh_with_lease(LEASE_MS);
    make_array(e, ARRAY, 0);
    pyri_ticket dead = take(e, ARRAY, "dead"), next = take(e, ARRAY, "");
    OK(complete(e, &next, "next"));
    await_death(e, dead.deadline_ns);
    OK(complete(e, &dead, "resolved")); /* as anyone may */
    CHECK(latest(e, ARRAY) == 2);
    FAILS(PYR_EFENCED, complete_with_node(e, &dead, "late"));
    FAILS(PYR_EFENCED, pyri_engine_renew(e, &dead));
    CHECK(version_is(e, ARRAY, 1, "resolved") && !has_node(e, "late"));
    pyri_engine_close(e);
}

static void
a_late_writer_that_nobody_resolved_still_completes(void)
{
    pyri_engine *e = fresh_with_lease(LEASE_MS);
    make_array(e, ARRAY, 0);
    pyri_ticket late = take(e, ARRAY, "");
    await_death(e, late.deadline_ns);
    OK(complete(e, &late, "late"));
    CHECK(version_is(e, ARRAY, 1, "late"));
    pyri_engine_close(e);
}

static void
a_complete_version_is_never_dead(void)
{
    pyri_engine *e = fresh_with_lease(LEASE_MS);
    make_array(e, ARRAY, 0);
    pyri_ticket first = take(e, ARRAY, ""), second = take(e, ARRAY, "");
    OK(complete(e, &second, ""));
    await_death(e, first.deadline_ns);
    for (int64_t start = now_ns();
         now_ns() <= second.deadline_ns && patient(start);)
        ;
    pyri_flights all = flights(e);
    REQUIRE(all.n == 2);
    CHECK(all.list[1].complete && !all.list[1].dead);
    pyri_flights_fini(&all);
    pyri_engine_close(e);
}

static void
renewing_starts_the_lease_anew(void)
{
    pyri_engine *e = fresh_with_lease(LEASE_MS);
    make_array(e, ARRAY, 0);
    pyri_ticket ticket = take(e, ARRAY, "");
    int64_t first = ticket.deadline_ns, begun = now_ns();
    while (now_ns() < first - LEASE_MS * 500000ll && patient(begun))
        ; /* half of it */
    int64_t start = now_ns();
    OK(pyri_engine_renew(e, &ticket));
    CHECK(ticket.deadline_ns > first);
    CHECK(ticket.deadline_ns >= start + LEASE_MS * 1000000ll);
    await_death(e, start + LEASE_MS * 1000000ll);
    pyri_engine_close(e);
}

/* --- waiting ------------------------------------------------------------- */

static void
waiting_for_what_is_published_returns_at_once(void)
{
    pyri_engine *e = fresh_with_array();
    publish(e, ARRAY, 3);
    OK(pyri_engine_wait(e, ARRAY, 0, 0));
    OK(pyri_engine_wait(e, ARRAY, 1, 0));
    OK(pyri_engine_wait(e, ARRAY, 3, 60000));
    pyri_engine_close(e);
}

static void
waiting_for_what_does_not_come_times_out(void)
{
    pyri_engine *e = fresh_with_array();
    pyri_ticket first = take(e, ARRAY, ""), second = take(e, ARRAY, "");
    int64_t start = now_ns();
    FAILS(PYR_ETIMEOUT, pyri_engine_wait(e, ARRAY, 1, 0));
    FAILS(PYR_ETIMEOUT, pyri_engine_wait(e, ARRAY, 1, 20));
    OK(complete(e, &second, "")); /* complete is not published */
    FAILS(PYR_ETIMEOUT, pyri_engine_wait(e, ARRAY, 2, 20));
    CHECK(now_ns() - start < (int64_t)PATIENCE_S * 1000000000);
    OK(complete(e, &first, ""));
    OK(pyri_engine_wait(e, ARRAY, 2, 0));
    FAILS(PYR_ETIMEOUT, pyri_engine_wait(e, ARRAY, 3, 5));
    pyri_engine_close(e);
}

/* Thread 0 completes the tickets, the others wait for them. */
static void *
wait_or_complete(void *arg)
{
    worker *w = arg;
    pyri_ticket *tickets = w->shared;
    int64_t start = now_ns();
    if (w->number == 0) {
        for (int i = 0; i < 20 && patient(start); i++)
            WORKED(w, complete(w->e, &tickets[i], "") == 0);
        return NULL;
    }
    int err = PYR_ETIMEOUT; /* it may return early: ask again */
    while (err == PYR_ETIMEOUT && patient(start))
        err = pyri_engine_wait(w->e, ARRAY, 20, PATIENCE_S * 1000);
    WORKED(w, err == 0);
    WORKED(w, now_ns() - start < PATIENCE_S * 500000000ll);
    return NULL;
}

static void
those_who_wait_are_woken(void)
{
    pyri_engine *e = fresh_with_array();
    pyri_ticket tickets[20];
    for (int i = 0; i < 20; i++)
        tickets[i] = take(e, ARRAY, "");
    run_threads(e, wait_or_complete, tickets);
    CHECK(latest(e, ARRAY) == 20);
    pyri_engine_close(e);
}

#endif
