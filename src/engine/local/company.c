/*
 * engine/local/company.c - who completes versions these days.
 *
 * Two that complete one version after the other would take turns, each alone:
 * when one is done, the other's request lies there, and its own next one comes
 * just too late. If the other waits a little for that one, both share a turn,
 * and with it the flushes. So each turn notes who took part, and who leads the
 * next one knows how many to expect. Who has stopped is not expected for long,
 * and who is alone waits for nobody.
 *
 * None of it is relied on: a wrong number costs a moment, or a turn that might
 * have been shared.
 */
#include "engine/local/company.h"

enum {
    RECENT = 2,  /* turns */
    PART = 2,    /* of a turn that is waited for at most, */
    MOST = 2000, /* and microseconds */
    LONG = 100000, /* as if no turn took longer: it was stopped */
    WEIGHT = 4   /* of the turns before, in what one takes */
};

static _Atomic uint32_t *
mark_of(pyri_company *c, uint64_t who)
{
    return &c->last[(who * UINT64_C(0x9e3779b97f4a7c15)) >> 58];
}

void
pyri_company_note(pyri_company *c, uint64_t who, uint32_t turn)
{
    atomic_store_explicit(mark_of(c, who), turn, memory_order_relaxed);
}

unsigned
pyri_company_others(pyri_company *c, uint64_t who, uint32_t turn)
{
    const _Atomic uint32_t *own = mark_of(c, who);
    unsigned n = 0;
    for (unsigned i = 0; i < PYRI_COMPANY; i++) {
        uint32_t last = atomic_load_explicit(&c->last[i],
                                             memory_order_relaxed);
        n += last != 0 && turn - last < RECENT && &c->last[i] != own;
    }
    return n;
}

void
pyri_company_took(pyri_company *c, int64_t ns)
{
    int64_t us = ns / 1000 < LONG ? ns / 1000 : LONG;
    int64_t old = atomic_load_explicit(&c->turn_us, memory_order_relaxed);
    us = old ? (WEIGHT * old + us) / (WEIGHT + 1) : us;
    atomic_store_explicit(&c->turn_us, (uint32_t)us, memory_order_relaxed);
}

int64_t
pyri_company_patience_ns(pyri_company *c)
{
    uint32_t us = atomic_load_explicit(&c->turn_us, memory_order_relaxed);
    return (us / PART < MOST ? us / PART : MOST) * INT64_C(1000);
}
