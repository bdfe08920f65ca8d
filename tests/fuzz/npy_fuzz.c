/*
 * fuzz/npy_fuzz.c - headers of .npy files.
 *
 * Input: a .npy file, as far as its header goes.
 */
#include "fuzz/fuzz.h"

#include "cmd.h"

static char why[WHY_SIZE];

static void
must_say_why(void)
{
    MUST(why[0] && strlen(why) < WHY_SIZE);
}

/* What was read is what our own header of the same says. */
static void
check(const npy *n)
{
    char own[NPY_MAX_OWN];
    size_t start, length;
    npy again;
    uint64_t cells = 1;
    MUST(n->ndim >= 0 && n->ndim <= PYR_MAX_DIMS);
    for (int d = 0; d < n->ndim; d++)
        cells *= n->shape[d];
    MUST(n->cells == cells && n->bytes == cells * type_size(n->type));
    MUST(n->bytes <= INT64_MAX);
    size_t size = npy_format(n->type, n->ndim, n->shape, own);
    MUST(size <= sizeof own && size % 64 == 0);
    MUST(npy_prefix((uint8_t *)own, size, &start, &length, why) == 0);
    MUST(start + length == size);
    MUST(npy_header(own + start, length, &again, why) == 0);
    MUST(again.type == n->type && again.ndim == n->ndim && !again.swap);
    MUST(again.cells == n->cells && again.bytes == n->bytes);
    MUST(memcmp(again.shape, n->shape, sizeof n->shape) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t start = 0, length = 0;
    npy n;
    why[0] = 0;
    if (npy_prefix(data, size < 12 ? size : 12, &start, &length, why) < 0) {
        must_say_why();
        return 0;
    }
    MUST(length <= NPY_MAX_HEADER && start <= size);
    if (length > size - start) /* mutations seldom get it right */
        length = size - start;
    if (npy_header((const char *)data + start, length, &n, why) < 0)
        must_say_why();
    else
        check(&n);
    return 0;
}
