/*
 * fuzz/program_fuzz.c - programs that compute cells, as bytes from anywhere.
 *
 * Input: type of what comes out (1), the program. What is accepted is run on
 * cells that are exactly as many as it may read, and writes exactly as many.
 */
#include "fuzz/fuzz.h"

#include "op/op.h"

enum { ROWS = 2, COLUMNS = 37, CELLS = ROWS * COLUMNS };

static void
come_back(pyri_bytes bytes, const pyri_program *p)
{
    pyri_buf again = {0};
    pyri_program_encode(p, &again);
    MUST(!again.failed && again.size == bytes.size);
    MUST(memcmp(again.data, bytes.data, bytes.size) == 0);
    pyri_buf_fini(&again);
}

static void
run(const pyri_program *p, pyr_type type)
{
    const pyri_box box = {.lo = {3, UINT64_MAX - COLUMNS - 1},
                          .hi = {3 + ROWS, UINT64_MAX - 1}};
    size_t width = pyri_type_size(p->cell);
    const void *src[PYRI_OP_MAX_SOURCES] = {NULL};
    uint8_t *cells = malloc(CELLS * width);
    uint8_t *out = malloc(CELLS * pyri_type_size(type));
    MUST(cells && out);
    for (size_t i = 0; i < CELLS * width; i++)
        cells[i] = (uint8_t)(i * i * 37 + 11);
    for (int s = p->uses_x ? 0 : 1; s < p->sources; s++)
        src[s] = cells;
    int err = pyri_program_run(p, 2, &box, src, type, out);
    MUST(err == (p->axes < 4 ? 0 : PYR_EINVAL));
    if (err == 0)
        touch(out, CELLS * pyri_type_size(type));
    free(cells);
    free(out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_size)
{
    static pyri_program p; /* large */
    pyri_cursor in = pyri_cursor_of(data, data_size);
    pyr_type type = take_type(&in);
    size_t size;
    uint8_t *bytes = take_rest(&in, &size);
    int err = pyri_program_decode(bytes, size, &p);
    if (err < 0) {
        must_refuse(err);
        MUST(p.code_size == 0 && p.sources == 0);
    } else {
        come_back((pyri_bytes){bytes, size}, &p);
        run(&p, type);
    }
    free(bytes);
    return 0;
}
