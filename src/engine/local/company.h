/*
 * engine/local/company.h - who completes versions these days: see company.c.
 */
#ifndef PYRI_ENGINE_LOCAL_COMPANY_H
#define PYRI_ENGINE_LOCAL_COMPANY_H

#include <stdatomic.h>
#include <stdint.h>

enum { PYRI_COMPANY = 64 };

/* Zeroed: nobody. Threads, or processes, which may share it. */
typedef struct pyri_company {
    _Atomic uint32_t last[PYRI_COMPANY]; /* turn that it took part in, by a hash
                                            of its number */
    _Atomic uint32_t turn_us;            /* what a turn takes, about */
} pyri_company;

/* `who` took part in this turn; turns are counted from 1. */
void pyri_company_note(pyri_company *c, uint64_t who, uint32_t turn);
/* How many beside `who` took part in the last turns, of which this is one. */
unsigned pyri_company_others(pyri_company *c, uint64_t who, uint32_t turn);
/* What a turn took. */
void pyri_company_took(pyri_company *c, int64_t ns);
/* How long the next turn may wait for them. */
int64_t pyri_company_patience_ns(pyri_company *c);

#endif
