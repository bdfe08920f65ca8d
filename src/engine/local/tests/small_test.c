/*
 * Small blobs: names that no other has, whatever the clock says.
 */
#include "base/sys.h"
#include "engine/local/tests/fixture.h"

enum { BLOBS = 200 };

/* Puts blobs and drops them; each is to have a greater name than the last. */
static void
put_some(pyri_engine *e, uint64_t *last)
{
    for (int i = 0; i < BLOBS; i++) {
        uint8_t bytes[100] = {(uint8_t)i};
        pyri_ref ref;
        OK(put_bytes(e, bytes, sizeof bytes, false, &ref));
        CHECK(ref.a > *last);
        *last = ref.a;
        pyri_engine_drop_blobs(e, &(pyri_blob){ref, sizeof bytes}, 1,
                               NULL, 0);
    }
}

static void
names_grow_from_one_to_the_next(void)
{
    pyri_engine *e = open_synced(tmp_fresh("small"));
    uint64_t last = 0;
    put_some(e, &last);
    pyri_engine_close(e);
}

#ifdef PYRI_FAULTS
static void
a_clock_that_goes_back_gives_no_name_twice(void)
{
    pyri_engine *e = open_synced(tmp_fresh("small"));
    uint64_t last = 0;
    put_some(e, &last);
    pyri_sys_ahead_real = -INT64_C(3600) * 1000000000;
    put_some(e, &last);
    pyri_sys_ahead_real = 0;
    pyri_engine_close(e);
}
#endif

TESTS(
#ifdef PYRI_FAULTS
      T(a_clock_that_goes_back_gives_no_name_twice),
#endif
      T(names_grow_from_one_to_the_next))
