/*
 * api/check.c - arguments of public calls are checked here, once.
 */
#include "api/handle.h"

#include "base/checked.h"

#include <string.h>

int
pyri_need(const void *pointer, const char *call, const char *what)
{
    return pointer ? 0 : pyri_fail(PYR_EINVAL, "%s: %s is NULL", call, what);
}

int
pyri_need_writable(const pyri_engine *e, const char *call)
{
    return e->readonly ? pyri_fail(PYR_EREADONLY,
                                   "%s: the store was opened for reading only",
                                   call)
                       : 0;
}

/* --- names --------------------------------------------------------------- */

size_t
pyri_utf8_length(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = s[0] < 0x80   ? 1
               : s[0] < 0xc2 ? 0
               : s[0] < 0xe0 ? 2
               : s[0] < 0xf0 ? 3
               : s[0] < 0xf5 ? 4
                             : 0;
    if (n < 2)
        return n;
    uint32_t code = s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3f);
    }
    bool good = code >= least[n] && code <= 0x10ffff &&
                (code < 0xd800 || code > 0xdfff);
    return good ? n : 0;
}

static bool
part_is_bad(const char *part, size_t size)
{
    return size == 0 || (size == 1 && part[0] == '.') ||
           (size == 2 && part[0] == '.' && part[1] == '.');
}

int
pyri_check_name(const char *name, const char *kind)
{
    if (!name || !*name)
        return pyri_fail(PYR_EINVAL, "the name of %s is empty", kind);
    size_t size = strlen(name);
    if (size > PYR_MAX_NAME)
        return pyri_fail(PYR_EINVAL,
                         "the name of %s has %zu bytes; at most %d are "
                         "possible",
                         kind, size, PYR_MAX_NAME);
    for (const char *s = name; *s;) {
        size_t n = pyri_utf8_length(s);
        if (n == 0)
            return pyri_fail(PYR_EINVAL,
                             "the name of %s is not UTF-8 at byte %zu", kind,
                             (size_t)(s - name));
        bool c1 = (unsigned char)s[0] == 0xc2 && (unsigned char)s[1] < 0xa0;
        if ((unsigned char)*s < 0x20 || *s == 0x7f || c1)
            return pyri_fail(PYR_EINVAL,
                             "the name of %s has a control character at byte "
                             "%zu",
                             kind, (size_t)(s - name));
        s += n;
    }
    for (const char *part = name;;) {
        size_t n = strcspn(part, "/");
        if (part_is_bad(part, n))
            return pyri_fail(PYR_EINVAL,
                             "the name of %s, '%s', has a part that is empty, "
                             "'.' or '..'",
                             kind, name);
        if (!part[n])
            return 0;
        part += n + 1;
    }
}

/* --- specs --------------------------------------------------------------- */

int
pyri_check_shape(int ndim, const uint64_t *shape)
{
    return pyri_countable(ndim, shape)
               ? 0
               : pyri_fail(PYR_EINVAL,
                           "the shape has more than 2^64 - 2 cells");
}

int
pyri_check_spec(const pyr_spec *spec, pyri_schema *s)
{
    int err;
    memset(s, 0, sizeof *s);
    if (spec->ndim < 1 || spec->ndim > PYR_MAX_DIMS)
        return pyri_fail(PYR_EINVAL, "an array has 1 to %d axes, not %d",
                         PYR_MAX_DIMS, spec->ndim);
    if ((err = pyri_need(spec->shape, "pyr_create", "spec->shape")) < 0 ||
        (err = pyri_check_shape(spec->ndim, spec->shape)) < 0)
        return err;
    if (!pyri_type_valid((int)spec->type))
        return pyri_fail(PYR_EINVAL, "%d is no cell type", (int)spec->type);
    if (!pyri_codec_valid((int)spec->codec, spec->level))
        return pyri_fail(PYR_EINVAL,
                         "codec %d with level %d does not exist; levels are 1 "
                         "to 9, or 0",
                         (int)spec->codec, spec->level);
    s->ndim = spec->ndim;
    s->type = spec->type;
    s->codec = spec->codec;
    s->level = spec->level;
    s->fill = spec->fill ? pyri_cell_load(spec->type, spec->fill) : 0;
    if (!spec->chunk)
        pyri_schema_choose_chunk(s->ndim, s->type, spec->shape, s->chunk);
    for (int d = 0; spec->chunk && d < s->ndim; d++) {
        s->chunk[d] = spec->chunk[d];
        if (s->chunk[d] == 0)
            return pyri_fail(PYR_EINVAL,
                             "the chunk has extent 0 along axis %d", d);
    }
    if (spec->attributes && (err = pyri_check_json(spec->attributes)) < 0)
        return err;
    return pyri_form_init(&s->form, s->ndim, spec->shape, s->chunk);
}

/* --- boxes and parts ----------------------------------------------------- */

static int
wraps(const pyri_array *a, int axis, uint64_t offset)
{
    return pyri_fail(PYR_EBOUNDS,
                     "a box of array '%s' that begins at %llu wraps around "
                     "2^64 along axis %d",
                     a->name, (unsigned long long)offset, axis);
}

int
pyri_check_box(const pyri_array *a, const uint64_t *offset,
               const uint64_t *size, pyri_box *out)
{
    if (!offset || !size)
        return pyri_fail(PYR_EINVAL, "the %s of a box of array '%s' is NULL",
                         offset ? "size" : "offset", a->name);
    for (int d = 0; d < a->schema.ndim; d++) {
        out->lo[d] = offset[d];
        if (!pyri_add64(offset[d], size[d], &out->hi[d]))
            return wraps(a, d, offset[d]);
    }
    return 0;
}

static int
check_run(const pyri_array *a, const pyr_part *p, pyri_run *run)
{
    pyri_box box;
    int err = pyri_check_box(a, p->offset, p->size, &box);
    for (int d = 0; d < a->schema.ndim && err == 0; d++) {
        uint64_t count = p->count ? p->count[d] : 1, last;
        uint64_t stride = p->stride && count > 1 ? p->stride[d] : p->size[d];
        if (stride < p->size[d])
            return pyri_fail(PYR_EINVAL,
                             "blocks of %llu cells that are %llu apart overlap "
                             "along axis %d",
                             (unsigned long long)p->size[d],
                             (unsigned long long)stride, d);
        run->start[d] = p->offset[d];
        run->block[d] = p->size[d];
        run->count[d] = count;
        run->stride[d] = stride;
        if (count > 1 && stride == p->size[d]) { /* blocks touch: it is one */
            if (!pyri_mul64(count, stride, &run->block[d]))
                return wraps(a, d, p->offset[d]);
            run->stride[d] = run->block[d];
            run->count[d] = 1;
        }
        if (run->count[d] == 0) {
            run->count[d] = 1;
            run->block[d] = 0;
        }
        if (!pyri_mul64(run->count[d] - 1, run->stride[d], &last) ||
            !pyri_add64(last, run->block[d], &last) ||
            !pyri_add64(last, p->offset[d], &last))
            err = wraps(a, d, p->offset[d]);
    }
    return err;
}

int
pyri_check_part(const pyri_array *a, const pyr_part *p, pyri_part *out)
{
    int n = a->schema.ndim;
    uint64_t bytes = pyri_type_size(a->schema.type);
    int err = check_run(a, p, &out->run);
    if (err < 0)
        return err;
    out->mem.base = p->buf;
    for (int d = n - 1; d >= 0; d--) {
        uint64_t extent = 0;
        out->mem.step[d] = p->step ? p->step[d] : (int64_t)bytes;
        if (!pyri_mul64(out->run.count[d], out->run.block[d], &extent) ||
            !pyri_mul64(bytes, extent, &bytes) || bytes > INT64_MAX)
            return pyri_fail(PYR_EINVAL,
                             "a box of array '%s' has more cells than memory "
                             "can hold",
                             a->name);
    }
    if (!p->buf && bytes)
        return pyri_fail(PYR_EINVAL, "the memory for a box of array '%s' is "
                                     "NULL",
                         a->name);
    return 0;
}

int
pyri_check_how(const pyr_write_options *options, pyri_write_how *how)
{
    *how = (pyri_write_how){0};
    if (!options)
        return 0;
    if (options->flags & ~PYR_WRITE_NOWAIT)
        return pyri_fail(PYR_EINVAL, "unknown write flags 0x%x",
                         options->flags);
    if (options->message && strlen(options->message) > 65535)
        return pyri_fail(PYR_EINVAL, "the message has more than 65535 bytes");
    how->nowait = options->flags & PYR_WRITE_NOWAIT;
    how->message = options->message;
    return 0;
}
