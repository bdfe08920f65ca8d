/*
 * fuzz/handler_fuzz.c - records of handlers.
 *
 * Input: how (1; bit 0: put the right checksum in), the record.
 */
#include "fuzz/fuzz.h"

#include "array/handlers.h"

static void
check(const pyri_handler_list *l)
{
    pyri_handler_list again;
    pyri_buf first = {0}, second = {0};
    uint32_t before = 0;
    MUST(l->n <= PYRI_MAX_HANDLERS);
    for (size_t i = 0; i < l->n; i++) {
        MUST(l->list[i].number > before && l->list[i].number < l->next);
        before = l->list[i].number;
        MUST(strlen(l->list[i].who) + strlen(l->list[i].text) + 2 <=
             l->texts.size);
    }
    pyri_handler_list_encode(l, &first);
    MUST(pyri_handler_list_decode((pyri_bytes){first.data, first.size},
                                  &again) == 0);
    pyri_handler_list_encode(&again, &second);
    must_be_same(&first, &second);
    pyri_handler_list_fini(&again);
    pyri_buf_fini(&first);
    pyri_buf_fini(&second);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_size)
{
    pyri_handler_list l;
    pyri_cursor in = pyri_cursor_of(data, data_size);
    uint8_t how = pyri_cursor_u8(&in);
    size_t size;
    uint8_t *bytes = take_rest(&in, &size);
    if (how & 1)
        seal_record(bytes, size);
    int err = pyri_handler_list_decode((pyri_bytes){bytes, size}, &l);
    if (err < 0) {
        must_refuse(err);
    } else {
        check(&l);
        pyri_handler_list_fini(&l);
    }
    free(bytes);
    return 0;
}
