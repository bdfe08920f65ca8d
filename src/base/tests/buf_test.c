/*
 * Growing bytes and reading them back: what is written is read, what is cut
 * short fails and stays failed.
 */
#include "base/buf.h"
#include "support/check.h"

#include <stdint.h>

/* 0 and both sides of every length of a varint. */
static size_t
border_values(uint64_t out[32])
{
    size_t n = 0;
    out[n++] = 0;
    out[n++] = 1;
    for (unsigned bits = 7; bits < 64; bits += 7) {
        out[n++] = ((uint64_t)1 << bits) - 1;
        out[n++] = (uint64_t)1 << bits;
    }
    out[n++] = UINT64_MAX - 1;
    out[n++] = UINT64_MAX;
    return n;
}

static size_t
varint_size(uint64_t v)
{
    size_t size = 1;
    while (v >>= 7)
        size++;
    return size;
}

static void
varints_come_back_at_all_borders(void)
{
    uint64_t values[32];
    size_t n = border_values(values);
    for (size_t i = 0; i < n; i++) {
        pyri_buf b = {0};
        pyri_buf_varint(&b, values[i]);
        CHECK(b.size == varint_size(values[i]));
        pyri_cursor c = pyri_cursor_of(b.data, b.size);
        CHECK(pyri_cursor_varint(&c) == values[i]);
        CHECK(!c.failed && c.at == c.end);
        pyri_buf_fini(&b);
    }
}

static void
a_varint_cut_short_fails(void)
{
    uint64_t values[32];
    size_t n = border_values(values);
    for (size_t i = 0; i < n; i++) {
        pyri_buf b = {0};
        pyri_buf_varint(&b, values[i]);
        for (size_t cut = 0; cut < b.size; cut++) {
            pyri_cursor c = pyri_cursor_of(b.data, cut);
            CHECK(pyri_cursor_varint(&c) == 0 && c.failed);
        }
        pyri_buf_fini(&b);
    }
}

static void
a_varint_too_long_fails(void)
{
    uint8_t bytes[11];
    memset(bytes, 0x80, sizeof bytes);
    bytes[10] = 0; /* eleven bytes for zero */
    pyri_cursor c = pyri_cursor_of(bytes, sizeof bytes);
    CHECK(pyri_cursor_varint(&c) == 0 && c.failed);

    memset(bytes, 0xff, 9);
    for (unsigned last = 0; last < 256; last++) {
        bytes[9] = (uint8_t)last; /* only its lowest bit has a place */
        c = pyri_cursor_of(bytes, 10);
        uint64_t v = pyri_cursor_varint(&c);
        CHECK(c.failed == (last > 1));
        CHECK(v == (last > 1 ? 0 : UINT64_MAX >> (last == 0)));
    }
}

static void
numbers_come_back_in_order(void)
{
    static const uint8_t stored[] = {1, 3, 2, 7, 6, 5, 4, 8, 7, 6, 5,
                                     4, 3, 2, 1};
    pyri_buf b = {0};
    pyri_buf_u8(&b, 1);
    pyri_buf_u16(&b, 0x0203);
    pyri_buf_u32(&b, 0x04050607);
    pyri_buf_u64(&b, 0x0102030405060708);
    REQUIRE(b.size == sizeof stored);
    CHECK(memcmp(b.data, stored, sizeof stored) == 0);

    pyri_cursor c = pyri_cursor_of(b.data, b.size);
    CHECK(pyri_cursor_u8(&c) == 1);
    CHECK(pyri_cursor_u16(&c) == 0x0203);
    CHECK(pyri_cursor_u32(&c) == 0x04050607);
    CHECK(pyri_cursor_u64(&c) == 0x0102030405060708);
    CHECK(!c.failed && c.at == c.end);
    pyri_buf_fini(&b);
}

static void
strings_come_back(void)
{
    char longer[300];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    const char *texts[] = {"", "a", "pressure", longer};
    pyri_buf b = {0};
    for (int i = 0; i < 4; i++)
        pyri_buf_str(&b, texts[i]);
    pyri_cursor c = pyri_cursor_of(b.data, b.size);
    for (int i = 0; i < 4; i++) {
        pyri_bytes s = pyri_cursor_str(&c);
        CHECK(s.size == strlen(texts[i]));
        CHECK(memcmp(s.data, texts[i], s.size) == 0);
    }
    CHECK(!c.failed && c.at == c.end);
    for (size_t cut = 0; cut < b.size; cut++) {
        c = pyri_cursor_of(b.data, cut);
        for (int i = 0; i < 4; i++)
            pyri_cursor_str(&c);
        CHECK(c.failed);
    }
    pyri_buf_fini(&b);
}

static void
a_string_longer_than_memory_fails(void)
{
    pyri_buf b = {0};
    pyri_buf_varint(&b, UINT64_MAX);
    pyri_buf_add(&b, "abc", 3);
    pyri_cursor c = pyri_cursor_of(b.data, b.size);
    pyri_bytes s = pyri_cursor_str(&c);
    CHECK(c.failed && s.size == 0 && s.data != NULL);
    pyri_buf_fini(&b);
}

static void
a_failed_cursor_stays_failed(void)
{
    static const uint8_t bytes[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    pyri_cursor c = pyri_cursor_of(bytes, sizeof bytes);
    CHECK(pyri_cursor_u32(&c) == 0x01010101);
    CHECK(pyri_cursor_u64(&c) == 0 && c.failed);
    /* four bytes are left, but not for this cursor */
    CHECK(pyri_cursor_u8(&c) == 0);
    CHECK(pyri_cursor_u16(&c) == 0);
    CHECK(pyri_cursor_u32(&c) == 0);
    CHECK(pyri_cursor_varint(&c) == 0);
    CHECK(pyri_cursor_str(&c).size == 0);
    CHECK(pyri_cursor_take(&c, 0) == NULL);
    CHECK(c.failed);
}

static void
an_empty_cursor_gives_nothing(void)
{
    pyri_cursor c = pyri_cursor_of("", 0);
    CHECK(pyri_cursor_take(&c, 0) != NULL && !c.failed);
    CHECK(pyri_cursor_u8(&c) == 0 && c.failed);
}

static void
buffers_grow_and_keep_what_they_have(void)
{
    pyri_buf b = {0};
    for (uint32_t i = 0; i < 100000; i++)
        pyri_buf_u32(&b, i);
    OK(pyri_buf_check(&b, "numbers"));
    pyri_cursor c = pyri_cursor_of(b.data, b.size);
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < 100000; i++)
        wrong += pyri_cursor_u32(&c) != i;
    CHECK(wrong == 0 && !c.failed && c.at == c.end);
    size_t room = b.room;
    pyri_buf_reset(&b);
    CHECK(b.size == 0 && b.room == room);
    pyri_buf_fini(&b);
    CHECK(b.data == NULL && b.room == 0);
}

static void
a_failed_buffer_stays_failed(void)
{
    pyri_buf b = {0};
    pyri_buf_u8(&b, 7);
    CHECK(pyri_buf_extend(&b, SIZE_MAX) == NULL);
    CHECK(b.failed && b.size == 1);
    pyri_buf_u8(&b, 8);
    pyri_buf_varint(&b, 9);
    pyri_buf_str(&b, "ten");
    CHECK(b.size == 1 && b.data[0] == 7);
    FAILS(PYR_ENOMEM, pyri_buf_check(&b, "a test"));
    CHECK(strstr(pyr_errmsg(), "a test") != NULL);
    pyri_buf_reset(&b);
    OK(pyri_buf_check(&b, "a test"));
    pyri_buf_fini(&b);
}

TESTS(T(varints_come_back_at_all_borders), T(a_varint_cut_short_fails),
      T(a_varint_too_long_fails), T(numbers_come_back_in_order),
      T(strings_come_back), T(a_string_longer_than_memory_fails),
      T(a_failed_cursor_stays_failed), T(an_empty_cursor_gives_nothing),
      T(buffers_grow_and_keep_what_they_have), T(a_failed_buffer_stays_failed))
