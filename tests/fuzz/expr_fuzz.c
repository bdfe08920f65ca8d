/*
 * fuzz/expr_fuzz.c - expressions as text.
 *
 * Input: type of cells (1), axes (1), the text. What is refused is refused at a
 * place inside it; what is accepted means the same when it is written as its
 * canonical text.
 */
#include "fuzz/fuzz.h"

#include "op/op.h"

static void
must_point_at(const char *text, int err, const pyri_expr_error *where)
{
    MUST(err == PYR_EINVAL && pyr_errmsg()[0]);
    MUST(where->column >= 1 && where->column <= strlen(text) + 1);
    MUST(where->text[0] && memchr(where->text, 0, sizeof where->text));
}

static void
must_mean_the_same(const pyri_expr *a, const pyri_expr *b)
{
    pyri_buf first = {0}, second = {0};
    MUST(a->form == b->form && a->calls == b->calls);
    if (a->program.calls)
        return; /* kernels have no bytes */
    pyri_program_encode(&a->program, &first);
    pyri_program_encode(&b->program, &second);
    must_be_same(&first, &second);
    pyri_buf_fini(&first);
    pyri_buf_fini(&second);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_size)
{
    static pyri_expr e, again; /* large */
    pyri_cursor in = pyri_cursor_of(data, data_size);
    pyr_type type = take_type(&in);
    int ndim = take_below(&in, PYR_MAX_DIMS) + 1;
    pyri_expr_error where = {0, ""};
    pyri_buf canon = {0}, same = {0};
    char *text = take_text(&in);
    int err = pyri_expr_parse(text, type, ndim, &e, &canon, &where);
    if (err < 0) {
        must_point_at(text, err, &where);
    } else {
        MUST(canon.size && canon.data[canon.size - 1] == 0);
        MUST(pyri_expr_parse((const char *)canon.data, type, ndim, &again,
                             &same, NULL) == 0);
        must_be_same(&canon, &same);
        must_mean_the_same(&e, &again);
    }
    pyri_buf_fini(&canon);
    pyri_buf_fini(&same);
    free(text);
    return 0;
}
