/*
 * Large buffers for a moment: big enough, kept, and nobody else's.
 */
#include "base/scratch.h"
#include "support/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum { MANY = 20, THREADS = 4, ROUNDS = 4000, KIB = 1024 };

static void
a_buffer_holds_what_was_asked_for(void)
{
    static const size_t sizes[] = {0, 1, 100, 64 * KIB, 64 * KIB + 1,
                                   KIB * KIB, 4 * KIB * KIB,
                                   4 * KIB * KIB + 1};
    for (int round = 0; round < 3; round++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            uint8_t *b = pyri_scratch_take(sizes[k]);
            REQUIRE(b);
            CHECK((uintptr_t)b % 16 == 0);
            memset(b, 1 + round, sizes[k]); /* a checker sees a short one */
            pyri_scratch_give(b);
        }
}

static void
a_buffer_given_back_is_handed_out_again(void)
{
    void *b = pyri_scratch_take(KIB * KIB);
    REQUIRE(b);
    pyri_scratch_give(b);
    void *volatile other = malloc(KIB * KIB); /* takes its place, if free */
    void *again = pyri_scratch_take(KIB * KIB - 5);
    CHECK(again == b);
    pyri_scratch_give(again);
    free(other);
}

static void
a_kept_buffer_that_is_too_small_is_not_handed_out(void)
{
    pyri_scratch_give(pyri_scratch_take(4 * KIB * KIB));
    uint8_t *b = pyri_scratch_take(5 * KIB * KIB);
    REQUIRE(b);
    memset(b, 1, 5 * KIB * KIB);
    pyri_scratch_give(b);
}

static void
absurd_sizes_give_nothing(void)
{
    CHECK(pyri_scratch_take(SIZE_MAX) == NULL);
    CHECK(pyri_scratch_take(SIZE_MAX / 2 + 1) == NULL);
    pyri_scratch_give(NULL);
}

static void
buffers_taken_together_do_not_overlap(void)
{
    uint8_t *b[MANY];
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < MANY; i++) {
            REQUIRE((b[i] = pyri_scratch_take(100 * KIB + i)));
            memset(b[i], (int)i, 100 * KIB + i);
        }
        for (size_t i = 0; i < MANY; i++) {
            for (size_t k = 0; k < 100 * KIB + i; k += 97)
                REQUIRE(b[i][k] == i);
            pyri_scratch_give(b[i]);
        }
    }
}

static atomic_int next_stamp = 1, spoilt;

static void *
stamp_and_look(void *arg)
{
    (void)arg;
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = (size_t)(70 + round % 5 * 30) * KIB / sizeof(int);
        int stamp = atomic_fetch_add(&next_stamp, 1);
        int *b = pyri_scratch_take(n * sizeof *b);
        if (!b) {
            atomic_fetch_add(&spoilt, 1);
            return NULL;
        }
        for (size_t i = 0; i < n; i += 16)
            b[i] = stamp;
        for (size_t i = 0; i < n; i += 16)
            if (b[i] != stamp) {
                atomic_fetch_add(&spoilt, 1);
                break;
            }
        pyri_scratch_give(b);
    }
    return NULL;
}

static void
no_two_threads_have_a_buffer_at_the_same_time(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        REQUIRE(pthread_create(&threads[i], NULL, stamp_and_look, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK(spoilt == 0);
}

static void
a_list_keeps_what_it_has_as_it_grows(void)
{
    uint32_t *list = NULL;
    size_t room = 0;
    for (size_t n = 0; n < 300000; n++) {
        size_t before = room;
        REQUIRE(pyri_scratch_room(&list, &room, n, n + 1, sizeof *list));
        CHECK(room > n && (room == before || before == n));
        list[n] = (uint32_t)n;
    }
    for (size_t n = 0; n < 300000; n++)
        REQUIRE(list[n] == n);
    memset(list, 1, room * sizeof *list); /* a checker sees a short one */
    CHECK(!pyri_scratch_room(&list, &room, 1, SIZE_MAX / 2, sizeof *list));
    CHECK(list[room - 1] == 0x01010101); /* it is as it was */
    pyri_scratch_give(list);
}

TESTS(T(a_buffer_holds_what_was_asked_for),
      T(a_buffer_given_back_is_handed_out_again),
      T(a_kept_buffer_that_is_too_small_is_not_handed_out),
      T(absurd_sizes_give_nothing), T(buffers_taken_together_do_not_overlap),
      T(a_list_keeps_what_it_has_as_it_grows),
      T(no_two_threads_have_a_buffer_at_the_same_time))
