/*
 * array/schema.c - what an array is for ever, and its stored form.
 *
 *   bytes   what
 *       8   XXH3 of all that follows
 *       1   format, 1
 *       1   cell type    1  codec    1  level of compression
 *       8   fill value, bits of a cell
 *           form of version 0, see version/record.c
 *  varint   chunk extent along each axis
 *       8   time of creation, ns since 1970
 *  string   who created it
 *       1   arrays in its line; each: id (8), label of its version 0 (varint)
 *  string   name of the array that it is a clone of ("" if it is none)
 *  varint   and which version of that array it is a clone of
 */
#include "array/array.h"

#include "base/bytes.h"
#include "base/checked.h"

#include <string.h>

enum { CHUNK_BYTES = 1 << 20 };

uint64_t
pyri_box_bytes(const pyri_array *a, const pyri_box *box)
{
    uint64_t bytes, cells = pyri_box_cells(a->schema.ndim, box);
    return pyri_mul64(cells, pyri_type_size(a->schema.type), &bytes)
               ? bytes
               : UINT64_MAX;
}

static double
power(uint64_t side, int n)
{
    double volume = 1;
    for (int i = 0; i < n; i++)
        volume *= (double)side;
    return volume;
}

/* With many axes the next side is a big step (2^13 or 3^13 cells): then some
 * sides are one longer than others. */
static void
even_out(int ndim, const bool *set, int left, double room, uint64_t *chunk)
{
    double volume = 1;
    for (int d = 0; d < ndim; d++)
        volume *= set[d] ? 1 : (double)chunk[d];
    for (int d = ndim - 1; d >= 0 && left > 4; d--) {
        double longer = volume / (double)chunk[d] * (double)(chunk[d] + 1);
        if (set[d] || longer > room)
            continue;
        volume = longer;
        chunk[d]++;
    }
}

/*
 * Equal sides of about 1 MiB in all; an axis shorter than its side gives what
 * it does not need to the others.
 */
void
pyri_schema_choose_chunk(int ndim, pyr_type type, const uint64_t *shape,
                         uint64_t *chunk)
{
    double room = (double)CHUNK_BYTES / (double)pyri_type_size(type);
    bool set[PYR_MAX_DIMS] = {false};
    for (int left = ndim; left > 0;) {
        uint64_t side = 1; /* the largest whose power fits */
        while (power(side + 1, left) <= room)
            side++;
        int clipped = 0;
        for (int d = 0; d < ndim; d++) {
            if (set[d] || shape[d] == 0 || shape[d] > side)
                continue;
            chunk[d] = shape[d];
            set[d] = true;
            room /= (double)shape[d];
            clipped++;
        }
        left -= clipped;
        if (clipped)
            continue;
        for (int d = 0; d < ndim; d++)
            if (!set[d])
                chunk[d] = side;
        even_out(ndim, set, left, room, chunk);
        break;
    }
}

void
pyri_schema_encode(const pyri_schema *s, pyri_buf *out)
{
    size_t start = out->size;
    pyri_buf_u64(out, 0);
    pyri_buf_u8(out, 1);
    pyri_buf_u8(out, (uint8_t)s->type);
    pyri_buf_u8(out, (uint8_t)s->codec);
    pyri_buf_u8(out, (uint8_t)s->level);
    pyri_buf_u64(out, s->fill);
    pyri_form_encode(&s->form, out);
    for (int d = 0; d < s->ndim; d++)
        pyri_buf_varint(out, s->chunk[d]);
    pyri_buf_u64(out, (uint64_t)s->created_ns);
    pyri_buf_str(out, s->who);
    pyri_buf_u8(out, (uint8_t)s->lineage.n);
    for (int i = 0; i < s->lineage.n; i++) {
        pyri_buf_u64(out, s->lineage.line[i].array);
        pyri_buf_varint(out, s->lineage.line[i].first);
    }
    pyri_buf_str(out, s->clone_of);
    pyri_buf_varint(out, s->clone_version);
    if (!out->failed)
        pyri_store64(out->data + start, pyri_hash64(out->data + start + 8,
                                                    out->size - start - 8));
}

static void
take_text(pyri_cursor *c, char *out, size_t room)
{
    pyri_bytes text = pyri_cursor_str(c);
    if (text.size >= room) {
        c->failed = true;
        return;
    }
    memcpy(out, text.data, text.size);
    out[text.size] = 0;
}

static void
take_lineage(pyri_cursor *c, pyri_lineage *l)
{
    l->n = pyri_cursor_u8(c);
    if (l->n < 1 || l->n > PYRI_MAX_LINE) {
        c->failed = true;
        return;
    }
    for (int i = 0; i < l->n; i++) {
        l->line[i].array = pyri_cursor_u64(c);
        l->line[i].first = pyri_cursor_varint(c);
        c->failed |= i > 0 && l->line[i].first < l->line[i - 1].first;
    }
}

int
pyri_schema_decode(pyri_bytes bytes, pyri_schema *s)
{
    pyri_cursor c = pyri_cursor_of(bytes.data, bytes.size);
    memset(s, 0, sizeof *s);
    uint64_t sum = pyri_cursor_u64(&c);
    if (c.failed || sum != pyri_hash64(c.at, (size_t)(c.end - c.at)))
        return pyri_fail(PYR_ECORRUPT, "the record of an array is damaged");
    uint8_t format = pyri_cursor_u8(&c);
    if (format != 1)
        return pyri_fail(PYR_EFORMAT, "the record of an array is of format %u",
                         format);
    s->type = (pyr_type)pyri_cursor_u8(&c);
    s->codec = (pyr_codec)pyri_cursor_u8(&c);
    s->level = pyri_cursor_u8(&c);
    s->fill = pyri_cursor_u64(&c);
    int err = pyri_form_decode(&c, &s->form);
    if (err < 0)
        return err;
    s->ndim = s->form.ndim;
    for (int d = 0; d < s->ndim; d++) {
        s->chunk[d] = pyri_cursor_varint(&c);
        c.failed |= s->chunk[d] == 0;
    }
    s->created_ns = (int64_t)pyri_cursor_u64(&c);
    take_text(&c, s->who, sizeof s->who);
    take_lineage(&c, &s->lineage);
    take_text(&c, s->clone_of, sizeof s->clone_of);
    s->clone_version = pyri_cursor_varint(&c);
    if (c.failed || !pyri_type_valid((int)s->type) ||
        !pyri_codec_valid((int)s->codec, s->level)) {
        pyri_form_fini(&s->form);
        return pyri_fail(PYR_ECORRUPT, "the record of an array is damaged");
    }
    return 0;
}
