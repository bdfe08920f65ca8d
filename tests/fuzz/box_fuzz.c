/*
 * fuzz/box_fuzz.c - boxes as people write them.
 *
 * Input: axes (1), extents (varints), the text.
 */
#include "fuzz/fuzz.h"

#include "cmd.h"

static void
check(const box *b, const uint64_t *shape)
{
    char text[64 * PYR_MAX_DIMS] = "", why[WHY_SIZE];
    size_t n = 0;
    uint64_t kept[PYR_MAX_DIMS];
    box again;
    int dropped = 0;
    for (int d = 0; d < b->ndim; d++) {
        uint64_t last;
        MUST(b->step[d] >= 1 && b->count[d] <= shape[d]);
        MUST(b->start[d] <= shape[d]);
        if (b->count[d]) {
            MUST(!__builtin_mul_overflow(b->count[d] - 1, b->step[d], &last));
            MUST(!__builtin_add_overflow(last, b->start[d], &last));
            MUST(last < shape[d]);
        }
        if (b->dropped[d])
            MUST(b->count[d] == 1 && ++dropped);
        n += (size_t)snprintf(
            text + n, sizeof text - n,
            b->dropped[d] ? "%s%llu" : "%s%llu:%llu:%llu", d ? "," : "",
            (unsigned long long)b->start[d],
            (unsigned long long)(b->count[d]
                                     ? b->start[d] +
                                           (b->count[d] - 1) * b->step[d] + 1
                                     : b->start[d]),
            (unsigned long long)b->step[d]);
    }
    MUST(box_shape(b, kept) == b->ndim - dropped);
    MUST(n < sizeof text);
    MUST(box_parse(text, b->ndim, shape, &again, why) == 0);
    for (int d = 0; d < b->ndim; d++)
        MUST(again.start[d] == b->start[d] && again.count[d] == b->count[d] &&
             again.step[d] == b->step[d] && again.dropped[d] == b->dropped[d]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pyri_cursor in = pyri_cursor_of(data, size);
    uint64_t shape[PYR_MAX_DIMS];
    char why[WHY_SIZE] = "";
    int ndim = take_below(&in, PYR_MAX_DIMS) + 1;
    for (int d = 0; d < ndim; d++)
        shape[d] = pyri_cursor_varint(&in);
    char *text = take_text(&in);
    box b;
    int err = box_parse(text, ndim, shape, &b, why);
    if (err) {
        MUST(err == FAILED || err == MISUSED);
        MUST(why[0] && strlen(why) < WHY_SIZE);
    } else {
        MUST(b.ndim == ndim);
        check(&b, shape);
    }
    free(text);
    return 0;
}
