/*
 * Codecs: what is pressed comes back, and hostile bytes are refused.
 */
#include "chunk/chunk.h"
#include "support/check.h"

enum { LARGEST = 70000 };

static uint64_t seed = 1;

static uint64_t
dice(void)
{
    seed = seed * 6364136223846793005 + 1442695040888963407;
    return seed >> 33;
}

/* 0: all the same; 1: a ramp of cells; 2: noise. */
static void
make_cells(uint8_t *cells, size_t size, size_t cell, int kind)
{
    for (size_t i = 0; i < size; i++) {
        uint64_t at = i / cell;
        cells[i] = kind == 0   ? 7
                   : kind == 1 ? (uint8_t)(at * 3 >> (i % cell * 8))
                               : (uint8_t)dice();
    }
}

/* Returns the pressed size; buffers are exact, so that a checker sees every
 * step beyond them. */
static size_t
round_trip(pyr_codec codec, int level, size_t cell, size_t size, int kind)
{
    uint8_t *in = malloc(size), *out = malloc(size), *back = malloc(size);
    size_t pressed = 99;
    REQUIRE(in && out && back);
    make_cells(in, size, cell, kind);
    OK(pyri_codec_press(codec, level, cell, in, size, out, &pressed));
    CHECK(pressed < size);
    if (pressed) {
        uint8_t *exact = malloc(pressed);
        REQUIRE(exact);
        memcpy(exact, out, pressed);
        OK(pyri_codec_expand(exact, pressed, back, size));
        CHECK(memcmp(in, back, size) == 0);
        free(exact);
    }
    free(in);
    free(out);
    free(back);
    return pressed;
}

static void
cells_of_all_sizes_come_back(void)
{
    static const size_t cells[] = {1, 2, 4, 8};
    for (pyr_codec codec = PYR_CODEC_LZ4; codec <= PYR_CODEC_ZSTD; codec++)
        for (int kind = 0; kind < 3; kind++) {
            size_t pressed = 0;
            for (size_t size = 1; size <= LARGEST; size += 1 + size / 7)
                pressed = round_trip(codec, 0, cells[dice() % 4], size, kind);
            CHECK((pressed > 0) == (kind < 2));
        }
}

static void
all_levels_come_back(void)
{
    for (pyr_codec codec = PYR_CODEC_LZ4; codec <= PYR_CODEC_ZSTD; codec++)
        for (int level = 0; level <= 9; level++)
            CHECK(round_trip(codec, level, 4, LARGEST, 1) > 0);
}

static void
large_cells_come_back(void)
{
    CHECK(round_trip(PYR_CODEC_LZ4, 0, 8, 5000001, 1) > 0);
    CHECK(round_trip(PYR_CODEC_ZSTD, 0, 8, 5000001, 1) > 0);
    CHECK(round_trip(PYR_CODEC_LZ4, 0, 8, 5000001, 2) == 0);
}

static void
what_would_not_shrink_is_left_alone(void)
{
    for (size_t size = 1; size <= 16; size++)
        CHECK(round_trip(PYR_CODEC_LZ4, 0, 1, size, 0) == 0);
    CHECK(round_trip(PYR_CODEC_NONE, 0, 8, 4096, 0) == 0);
    size_t pressed = 99;
    OK(pyri_codec_press(PYR_CODEC_LZ4, 0, 1, NULL, 0, NULL, &pressed));
    CHECK(pressed == 0);
    /* beyond what Blosc can take; nothing is looked at */
    OK(pyri_codec_press(PYR_CODEC_ZSTD, 0, 1, NULL, (size_t)1 << 31, NULL,
                        &pressed));
    CHECK(pressed == 0);
}

enum { SMALL = 3000 };

static size_t
press_small(pyr_codec codec, uint8_t cells[SMALL], uint8_t out[SMALL])
{
    size_t pressed = 0;
    make_cells(cells, SMALL, 4, 1);
    OK(pyri_codec_press(codec, 0, 4, cells, SMALL, out, &pressed));
    REQUIRE(pressed > 16);
    return pressed;
}

/* Any end is allowed but a crash or a byte too far. */
static void
expand_hostile(const uint8_t *bytes, size_t pressed, size_t size)
{
    uint8_t *in = malloc(pressed + !pressed), *out = malloc(size);
    REQUIRE(in && out);
    memcpy(in, bytes, pressed);
    int err = pyri_codec_expand(in, pressed, out, size);
    CHECK(err == 0 || err == PYR_ECORRUPT || err == PYR_EUNSUPPORTED);
    free(in);
    free(out);
}

static void
flipped_bytes_do_no_harm(void)
{
    for (pyr_codec codec = PYR_CODEC_LZ4; codec <= PYR_CODEC_ZSTD; codec++) {
        uint8_t cells[SMALL], bytes[SMALL];
        size_t pressed = press_small(codec, cells, bytes);
        for (size_t i = 0; i < pressed; i++)
            for (unsigned flip = 1; flip < 256; flip += i < 64 ? 1 : 23) {
                bytes[i] ^= (uint8_t)flip;
                expand_hostile(bytes, pressed, SMALL);
                bytes[i] ^= (uint8_t)flip;
            }
    }
}

static void
random_damage_does_no_harm(void)
{
    for (pyr_codec codec = PYR_CODEC_LZ4; codec <= PYR_CODEC_ZSTD; codec++) {
        uint8_t cells[SMALL], bytes[SMALL], damaged[SMALL];
        size_t pressed = press_small(codec, cells, bytes);
        for (int k = 0; k < 20000; k++) {
            memcpy(damaged, bytes, pressed);
            for (uint64_t n = 1 + dice() % 8; n > 0; n--)
                damaged[dice() % pressed] = (uint8_t)dice();
            expand_hostile(damaged, pressed, SMALL);
        }
    }
}

static void
truncated_bytes_are_refused(void)
{
    for (pyr_codec codec = PYR_CODEC_LZ4; codec <= PYR_CODEC_ZSTD; codec++) {
        uint8_t cells[SMALL], bytes[SMALL], out[SMALL];
        size_t pressed = press_small(codec, cells, bytes);
        for (size_t cut = 0; cut < pressed; cut++) {
            FAILS(PYR_ECORRUPT, pyri_codec_expand(bytes, cut, out, SMALL));
            /* and with a header that agrees */
            bytes[12] = (uint8_t)cut;
            bytes[13] = (uint8_t)(cut >> 8);
            expand_hostile(bytes, cut, SMALL);
            bytes[12] = (uint8_t)pressed;
            bytes[13] = (uint8_t)(pressed >> 8);
        }
        OK(pyri_codec_expand(bytes, pressed, out, SMALL));
        CHECK(memcmp(out, cells, SMALL) == 0);
    }
}

static void
another_size_is_refused(void)
{
    uint8_t cells[SMALL], bytes[SMALL], out[SMALL + 1];
    size_t pressed = press_small(PYR_CODEC_LZ4, cells, bytes);
    FAILS(PYR_ECORRUPT, pyri_codec_expand(bytes, pressed, out, SMALL + 1));
    FAILS(PYR_ECORRUPT, pyri_codec_expand(bytes, pressed, out, SMALL - 1));
    FAILS(PYR_ECORRUPT, pyri_codec_expand(bytes, pressed, out, 0));
    CHECK(strstr(pyr_errmsg(), "pressed cells") != NULL);
}

static void
codecs_have_names_and_levels(void)
{
    CHECK(strcmp(pyri_codec_name(PYR_CODEC_NONE), "none") == 0);
    CHECK(strcmp(pyri_codec_name(PYR_CODEC_LZ4), "lz4") == 0);
    CHECK(strcmp(pyri_codec_name(PYR_CODEC_ZSTD), "zstd") == 0);
    CHECK(pyri_codec_valid(PYR_CODEC_NONE, 0));
    CHECK(pyri_codec_valid(PYR_CODEC_ZSTD, 9));
    CHECK(!pyri_codec_valid(PYR_CODEC_ZSTD, 10));
    CHECK(!pyri_codec_valid(PYR_CODEC_LZ4, -1));
    CHECK(!pyri_codec_valid(3, 1) && !pyri_codec_valid(-1, 1));
}

TESTS(T(cells_of_all_sizes_come_back), T(all_levels_come_back),
      T(large_cells_come_back), T(what_would_not_shrink_is_left_alone),
      T(flipped_bytes_do_no_harm), T(random_damage_does_no_harm),
      T(truncated_bytes_are_refused), T(another_size_is_refused),
      T(codecs_have_names_and_levels))
