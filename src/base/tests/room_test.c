/*
 * base/tests/room_test.c - lists that grow.
 */
#include "base/room.h"
#include "support/check.h"

#include <stdint.h>
#include <stdlib.h>

static void
a_list_keeps_what_it_has_as_it_grows(void)
{
    uint32_t *list = NULL;
    size_t room = 0, n = 0, moves = 0;
    for (; n < 10000; n++) {
        size_t before = room;
        REQUIRE(pyri_room(&list, &room, n + 1, sizeof *list));
        CHECK(room >= n + 1);
        moves += room != before;
        list[n] = (uint32_t)n;
    }
    for (size_t i = 0; i < n; i++)
        CHECK(list[i] == i);
    CHECK(moves < 16); /* it doubles */
    free(list);
}

static void
a_list_grows_to_what_is_wanted_at_once(void)
{
    char *list = NULL;
    size_t room = 0;
    REQUIRE(pyri_room(&list, &room, 1000, 1) && room >= 1000);
    char *same = list;
    CHECK(pyri_room(&list, &room, 7, 1) && list == same); /* never less */
    free(list);
}

static void
a_list_that_cannot_grow_is_as_it_was(void)
{
    uint64_t *list = NULL;
    size_t room = 0;
    REQUIRE(pyri_room(&list, &room, 1, sizeof *list));
    list[0] = 77;
    uint64_t *same = list;
    size_t had = room;
    CHECK(!pyri_room(&list, &room, SIZE_MAX / 4, sizeof *list)); /* overflows */
    CHECK(list == same && room == had && list[0] == 77);
    free(list);
}

TESTS(T(a_list_keeps_what_it_has_as_it_grows),
      T(a_list_grows_to_what_is_wanted_at_once),
      T(a_list_that_cannot_grow_is_as_it_was))
