/*
 * fuzz/record_fuzz.c - records of versions.
 *
 * Input: how (1; bit 0: put the right checksum in), the record.
 */
#include "fuzz/fuzz.h"

#include "version/version.h"

static void
check(pyri_bytes bytes, const pyri_record *r)
{
    static pyri_record root, again; /* large */
    pyri_buf first = {0}, second = {0};
    MUST(r->who && r->message && r->expression);
    MUST(r->claim.ndim == r->form.ndim);
    touch(r->who, strlen(r->who) + 1);
    touch(r->message, strlen(r->message) + 1);
    touch(r->expression, strlen(r->expression) + 1);
    MUST(pyri_record_decode_root(bytes, &root) == 0);
    MUST(root.root == r->root && root.root_level == r->root_level);
    MUST(root.kind == r->kind && root.form.ncuts == r->form.ncuts);
    pyri_record_encode(r, &first);
    MUST(pyri_record_decode((pyri_bytes){first.data, first.size}, &again) == 0);
    pyri_record_encode(&again, &second);
    must_be_same(&first, &second);
    pyri_record_fini(&root);
    pyri_record_fini(&again);
    pyri_buf_fini(&first);
    pyri_buf_fini(&second);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_size)
{
    static pyri_record r;
    pyri_cursor in = pyri_cursor_of(data, data_size);
    uint8_t how = pyri_cursor_u8(&in);
    size_t size;
    uint8_t *bytes = take_rest(&in, &size);
    if (how & 1)
        seal_record(bytes, size);
    pyri_bytes all = {bytes, size};
    int err = pyri_record_decode(all, &r);
    if (err < 0) {
        must_refuse(err);
        if (pyri_record_decode_root(all, &r) == 0)
            pyri_record_fini(&r);
    } else {
        check(all, &r);
        pyri_record_fini(&r);
    }
    free(bytes);
    return 0;
}
