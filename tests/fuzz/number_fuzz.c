/*
 * fuzz/number_fuzz.c - numbers, lists of numbers, types and cells as people
 * write them.
 *
 * Input: what to take it for (1), type (1), the text.
 */
#include "fuzz/fuzz.h"

#include "cmd.h"

#include <errno.h>
#include <math.h>

static char why[WHY_SIZE];

/* libc's answer for a text of digits alone. */
static bool
is_whole(const char *text, size_t n, uint64_t *out)
{
    char *word = strndup(text, n);
    MUST(word);
    errno = 0;
    *out = strtoull(word, NULL, 10);
    bool good = n > 0 && strspn(word, "0123456789") == n && errno == 0;
    free(word);
    return good;
}

static void
check_u64(const char *text)
{
    uint64_t got, want;
    bool good = is_whole(text, strlen(text), &want);
    MUST((parse_u64(text, &got) == 0) == good);
    MUST(!good || got == want);
}

static void
check_extents(const char *text)
{
    extents got;
    uint64_t want[PYR_MAX_DIMS];
    int n = 0;
    bool good = true;
    for (const char *p = text; good;) {
        size_t length = strcspn(p, ",");
        good = n < PYR_MAX_DIMS && is_whole(p, length, &want[n]);
        n++;
        if (!p[length])
            break;
        p += length + 1;
    }
    MUST((parse_extents(text, &got, why) == 0) == good);
    if (!good) {
        MUST(why[0] && strlen(why) < WHY_SIZE);
        return;
    }
    MUST(got.n == n);
    for (int i = 0; i < n; i++)
        MUST(got.of[i] == want[i]);
}

static bool
is_nan(pyr_type type, const uint8_t *cell)
{
    double d;
    float f;
    memcpy(&d, cell, sizeof d);
    memcpy(&f, cell, sizeof f);
    return type == PYR_F64 ? isnan(d) : type == PYR_F32 && isnan(f);
}

/* A cell that was read is printed and read again. */
static void
check_cell(const char *text, pyr_type type)
{
    uint8_t cell[8], again[8];
    char shown[CELL_TEXT];
    if (parse_cell(text, type, cell, why) < 0) {
        MUST(why[0] && strlen(why) < WHY_SIZE);
        return;
    }
    cell_text(type, cell, shown);
    MUST(strlen(shown) < CELL_TEXT);
    MUST(parse_cell(shown, type, again, why) == 0);
    MUST(is_nan(type, cell) ? is_nan(type, again)
                            : memcmp(cell, again, sizeof cell) == 0);
}

static void
check_names(const char *text)
{
    pyr_type type;
    pyr_codec codec;
    if (parse_type(text, &type) == 0)
        MUST(strcmp(text, type_name(type)) == 0);
    if (parse_codec(text, &codec) == 0)
        MUST(strcmp(text, codec_name(codec)) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pyri_cursor in = pyri_cursor_of(data, size);
    int what = take_below(&in, 4);
    pyr_type type = take_type(&in);
    char *text = take_text(&in);
    why[0] = 0;
    switch (what) {
    case 0: check_u64(text); break;
    case 1: check_extents(text); break;
    case 2: check_cell(text, type); break;
    default: check_names(text); break;
    }
    free(text);
    return 0;
}
