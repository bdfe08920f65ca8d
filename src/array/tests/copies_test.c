/*
 * How far a copy has come: the stored form.
 */
#include "array/copies.h"

#include "support/check.h"

static pyri_copy_state
sample(void)
{
    pyri_copy_state s = {.source = 0x123456789abcdef0u,
                         .done = {.label = 300, .hash = 77},
                         .n = PYRI_COPY_WINDOW};
    for (size_t i = 0; i < s.n; i++)
        s.window[i] = (pyri_copied_version){301 + 2 * i, i << 40 | 5};
    return s;
}

static void
what_is_stored_comes_back(void)
{
    pyri_copy_state s = sample(), back;
    pyri_buf b = {0};
    pyri_copy_state_encode(&s, &b);
    OK(pyri_copy_state_decode((pyri_bytes){b.data, b.size}, &back));
    CHECK(memcmp(&s, &back, sizeof s) == 0);
    pyri_buf_fini(&b);
}

static void
every_changed_byte_and_every_cut_is_noticed(void)
{
    pyri_copy_state s = sample(), back;
    pyri_buf b = {0};
    pyri_copy_state_encode(&s, &b);
    for (size_t i = 0; i < b.size; i++) {
        b.data[i] ^= 0x10;
        FAILS(PYR_ECORRUPT,
              pyri_copy_state_decode((pyri_bytes){b.data, b.size}, &back));
        b.data[i] ^= 0x10;
        FAILS(PYR_ECORRUPT,
              pyri_copy_state_decode((pyri_bytes){b.data, i}, &back));
    }
    pyri_buf_fini(&b);
}

TESTS(T(what_is_stored_comes_back),
      T(every_changed_byte_and_every_cut_is_noticed))
