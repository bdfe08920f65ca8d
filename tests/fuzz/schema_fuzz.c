/*
 * fuzz/schema_fuzz.c - records of arrays.
 *
 * Input: how (1; bit 0: put the right checksum in), the record.
 */
#include "fuzz/fuzz.h"

#include "array/array.h"

static void
check(const pyri_schema *s)
{
    static pyri_schema again; /* large */
    pyri_buf first = {0}, second = {0};
    MUST(s->ndim >= 1 && s->ndim <= PYR_MAX_DIMS && s->ndim == s->form.ndim);
    MUST(pyri_type_valid((int)s->type));
    MUST(pyri_codec_valid((int)s->codec, s->level));
    MUST(s->lineage.n >= 1 && s->lineage.n <= PYRI_MAX_LINE);
    for (int i = 1; i < s->lineage.n; i++)
        MUST(s->lineage.line[i].first >= s->lineage.line[i - 1].first);
    for (int d = 0; d < s->ndim; d++)
        MUST(s->chunk[d] > 0);
    MUST(strlen(s->who) < sizeof s->who);
    MUST(strlen(s->clone_of) <= PYR_MAX_NAME);
    MUST(pyri_lineage_owner(&s->lineage, 0) == s->lineage.line[0].array);
    pyri_schema_encode(s, &first);
    MUST(pyri_schema_decode((pyri_bytes){first.data, first.size}, &again) == 0);
    pyri_schema_encode(&again, &second);
    must_be_same(&first, &second);
    pyri_form_fini(&again.form);
    pyri_buf_fini(&first);
    pyri_buf_fini(&second);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_size)
{
    static pyri_schema s;
    pyri_cursor in = pyri_cursor_of(data, data_size);
    uint8_t how = pyri_cursor_u8(&in);
    size_t size;
    uint8_t *bytes = take_rest(&in, &size);
    if (how & 1)
        seal_record(bytes, size);
    int err = pyri_schema_decode((pyri_bytes){bytes, size}, &s);
    if (err < 0) {
        must_refuse(err);
    } else {
        check(&s);
        pyri_form_fini(&s.form);
    }
    free(bytes);
    return 0;
}
