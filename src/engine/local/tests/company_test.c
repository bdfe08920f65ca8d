/*
 * Who leads a turn knows how many to expect, and for how long to wait.
 */
#include "engine/local/company.h"

#include "support/check.h"

#include <stdbool.h>

static void
who_is_alone_waits_for_nobody(void)
{
    pyri_company c = {0};
    CHECK(pyri_company_others(&c, 7, 0) == 0);
    for (uint32_t turn = 1; turn < 100; turn++) {
        pyri_company_note(&c, 7, turn);
        CHECK(pyri_company_others(&c, 7, turn) == 0);
    }
}

static void
those_who_take_turns_expect_each_other(void)
{
    pyri_company c = {0};
    pyri_company_note(&c, 7, 1);
    pyri_company_note(&c, 8, 2);
    CHECK(pyri_company_others(&c, 7, 2) == 1);
    pyri_company_note(&c, 7, 3);
    pyri_company_note(&c, 8, 3);
    pyri_company_note(&c, 9, 3);
    CHECK(pyri_company_others(&c, 7, 3) == 2);
    CHECK(pyri_company_others(&c, 10, 3) == 3);
}

static void
who_has_stopped_is_not_expected_for_long(void)
{
    pyri_company c = {0};
    pyri_company_note(&c, 7, 1);
    pyri_company_note(&c, 8, 1);
    pyri_company_note(&c, 7, 2);
    CHECK(pyri_company_others(&c, 7, 2) == 1);
    pyri_company_note(&c, 7, 3);
    CHECK(pyri_company_others(&c, 7, 3) == 0);
}

/* Turns are counted in 32 bits, and go on after the last. */
static void
numbers_of_turns_begin_again(void)
{
    pyri_company c = {0};
    pyri_company_note(&c, 7, UINT32_MAX);
    CHECK(pyri_company_others(&c, 8, 0) == 1);
    CHECK(pyri_company_others(&c, 8, 1) == 0);
}

static void
patience_follows_what_turns_take(void)
{
    pyri_company c = {0};
    CHECK(pyri_company_patience_ns(&c) == 0);
    for (int i = 0; i < 100; i++)
        pyri_company_took(&c, 600000);
    CHECK(pyri_company_patience_ns(&c) > 250000 &&
          pyri_company_patience_ns(&c) <= 300000);
    for (int i = 0; i < 100; i++)
        pyri_company_took(&c, INT64_MAX); /* it was stopped */
    CHECK(pyri_company_patience_ns(&c) <= 2000000);
    for (int i = 0; i < 200; i++)
        pyri_company_took(&c, 10000);
    CHECK(pyri_company_patience_ns(&c) <= 100000);
}

TESTS(T(who_is_alone_waits_for_nobody),
      T(those_who_take_turns_expect_each_other),
      T(who_has_stopped_is_not_expected_for_long),
      T(numbers_of_turns_begin_again), T(patience_follows_what_turns_take))
