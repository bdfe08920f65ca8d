/*
 * What an array is for ever: the chunks that are chosen, and the stored form.
 */
#include "array/array.h"
#include "support/check.h"
#include "support/rng.h"

static double
bytes_in(int ndim, pyr_type type, const uint64_t *chunk)
{
    double bytes = (double)pyri_type_size(type);
    for (int d = 0; d < ndim; d++)
        bytes *= (double)chunk[d];
    return bytes;
}

static void
chunks_of_large_arrays_have_equal_sides_and_about_a_mebibyte(void)
{
    for (int ndim = 1; ndim <= PYR_MAX_DIMS; ndim++)
        for (int type = 0; type < 10; type++) {
            uint64_t shape[PYR_MAX_DIMS], chunk[PYR_MAX_DIMS];
            uint64_t least = UINT64_MAX;
            for (int d = 0; d < ndim; d++)
                shape[d] = 1ull << 40;
            pyri_schema_choose_chunk(ndim, (pyr_type)type, shape, chunk);
            for (int d = 0; d < ndim; d++) {
                /* with many axes one may be one longer than another */
                CHECK(chunk[d] == chunk[0] ||
                      (ndim > 4 && chunk[d] == chunk[0] + 1));
                least = chunk[d] < least ? chunk[d] : least;
            }
            /* it fits, and one more cell along an axis (few axes: along all
             * of them) would not */
            double bytes = bytes_in(ndim, (pyr_type)type, chunk), more = 1;
            for (int d = 0; d < (ndim > 4 ? 1 : ndim); d++)
                more *= (double)(least + 1) / (double)least;
            CHECK(bytes <= 1 << 20 && bytes * more > 1 << 20);
        }
}

static void
an_array_below_a_mebibyte_is_one_chunk(void)
{
    const uint64_t shape[3] = {100, 40, 30};
    uint64_t chunk[3];
    pyri_schema_choose_chunk(3, PYR_F64, shape, chunk);
    CHECK(memcmp(chunk, shape, sizeof shape) == 0);
}

static void
a_short_axis_gives_its_share_to_the_others(void)
{
    const uint64_t shape[3] = {3, 1u << 20, 1u << 20};
    uint64_t chunk[3];
    pyri_schema_choose_chunk(3, PYR_U8, shape, chunk);
    CHECK(chunk[0] == 3 && chunk[1] == chunk[2]);
    double bytes = bytes_in(3, PYR_U8, chunk);
    CHECK(bytes > 0.9 * (1 << 20) && bytes < 1.1 * (1 << 20));
}

static void
chunks_are_never_empty_nor_longer_than_the_array(void)
{
    for (uint64_t seed = 0; seed < 3000; seed++) {
        rng r = rng_of(seed);
        int ndim = (int)rng_from(&r, 1, PYR_MAX_DIMS);
        uint64_t shape[PYR_MAX_DIMS], chunk[PYR_MAX_DIMS] = {0};
        pyr_type type = (pyr_type)rng_below(&r, 10);
        for (int d = 0; d < ndim; d++)
            shape[d] = rng_below(&r, 1ull << rng_below(&r, 20));
        pyri_schema_choose_chunk(ndim, type, shape, chunk);
        bool all = true;
        for (int d = 0; d < ndim; d++) {
            REQUIRE(chunk[d] > 0);
            REQUIRE(shape[d] == 0 || chunk[d] <= shape[d]);
            all &= chunk[d] == shape[d];
        }
        double bytes = bytes_in(ndim, type, chunk);
        REQUIRE(bytes < 16.0 * (1 << 20)); /* of sides of 2 or 3 */
        if (ndim > 8)
            continue;
        REQUIRE(bytes < 4.0 * (1 << 20));
        REQUIRE(all || bytes > 0.25 * (1 << 20));
    }
}

/* --- stored form --------------------------------------------------------- */

static void
make(pyri_schema *s, pyri_buf *out)
{
    const uint64_t shape[3] = {100, 0, 7}, chunk[3] = {9, 8, 7};
    *s = (pyri_schema){.ndim = 3,
                       .type = PYR_I16,
                       .fill = 0xfffe,
                       .codec = PYR_CODEC_ZSTD,
                       .level = 7,
                       .created_ns = 99,
                       .who = "me@here:3",
                       .lineage = {2, {{11, 0}, {12, 5}}},
                       .clone_of = "parent",
                       .clone_version = 5};
    memcpy(s->chunk, chunk, sizeof chunk);
    OK(pyri_form_init(&s->form, 3, shape, chunk));
    *out = (pyri_buf){0};
    pyri_schema_encode(s, out);
}

static void
a_schema_survives_being_stored(void)
{
    static pyri_schema s, back;
    pyri_buf b;
    make(&s, &b);
    OK(pyri_schema_decode((pyri_bytes){b.data, b.size}, &back));
    CHECK(back.ndim == 3 && back.type == s.type && back.fill == s.fill);
    CHECK(back.codec == s.codec && back.level == 7 && back.created_ns == 99);
    CHECK(memcmp(back.chunk, s.chunk, sizeof s.chunk) == 0);
    CHECK(memcmp(back.form.shape, s.form.shape, sizeof s.form.shape) == 0);
    CHECK(strcmp(back.who, s.who) == 0 && back.clone_version == 5);
    CHECK(strcmp(back.clone_of, "parent") == 0 && back.lineage.n == 2);
    CHECK(back.lineage.line[1].array == 12 && back.lineage.line[1].first == 5);
    pyri_form_fini(&back.form);
    pyri_form_fini(&s.form);
    pyri_buf_fini(&b);
}

static void
every_flipped_bit_of_a_schema_is_noticed(void)
{
    static pyri_schema s, back;
    pyri_buf b;
    make(&s, &b);
    for (size_t i = 0; i < 8 * b.size; i++) {
        b.data[i / 8] ^= (uint8_t)(1u << (i % 8));
        FAILS(PYR_ECORRUPT,
              pyri_schema_decode((pyri_bytes){b.data, b.size}, &back));
        b.data[i / 8] ^= (uint8_t)(1u << (i % 8));
    }
    for (size_t size = 0; size < b.size; size++)
        FAILS(PYR_ECORRUPT,
              pyri_schema_decode((pyri_bytes){b.data, size}, &back));
    pyri_form_fini(&s.form);
    pyri_buf_fini(&b);
}

TESTS(T(chunks_of_large_arrays_have_equal_sides_and_about_a_mebibyte),
      T(an_array_below_a_mebibyte_is_one_chunk),
      T(a_short_axis_gives_its_share_to_the_others),
      T(chunks_are_never_empty_nor_longer_than_the_array),
      T(a_schema_survives_being_stored),
      T(every_flipped_bit_of_a_schema_is_noticed))
