/*
 * array/handler_list.c - which handlers an array has: added, listed, removed.
 *
 * The record handler/ID:
 *
 *   bytes   what
 *       8   XXH3 of all that follows
 *       1   format, 1
 *  varint   number of the one that is added next
 *  varint   how many there are; of each:
 *  varint     its number
 *       1     event: 1, on-write
 *       8     when it was added, ns since 1970
 *  string     who added it
 *  string     canonical text
 */
#include "array/handlers.h"

#include "array/keys.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/sys.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TRIES = 100 };

/* --- bytes --------------------------------------------------------------- */

void
pyri_handler_list_fini(pyri_handler_list *l)
{
    pyri_buf_fini(&l->texts);
    *l = (pyri_handler_list){0};
}

void
pyri_handler_list_encode(const pyri_handler_list *l, pyri_buf *out)
{
    size_t start = out->size;
    pyri_buf_u64(out, 0);
    pyri_buf_u8(out, 1);
    pyri_buf_varint(out, l->next);
    pyri_buf_varint(out, l->n);
    for (size_t i = 0; i < l->n; i++) {
        pyri_buf_varint(out, l->list[i].number);
        pyri_buf_u8(out, l->list[i].event);
        pyri_buf_u64(out, (uint64_t)l->list[i].time_ns);
        pyri_buf_str(out, l->list[i].who);
        pyri_buf_str(out, l->list[i].text);
    }
    if (!out->failed)
        pyri_store64(out->data + start,
                     pyri_hash64(out->data + start + 8,
                                 out->size - start - 8));
}

static size_t
keep_text(pyri_buf *texts, pyri_bytes text)
{
    size_t at = texts->size;
    pyri_buf_add(texts, text.data, text.size);
    pyri_buf_u8(texts, 0);
    return at;
}

/* Texts move while they are added: point to them in the end. */
static int
decode_all(pyri_cursor *c, pyri_handler_list *l)
{
    size_t who[PYRI_MAX_HANDLERS], text[PYRI_MAX_HANDLERS];
    uint64_t before = 0;
    for (size_t i = 0; i < l->n && !c->failed; i++) {
        uint64_t number = pyri_cursor_varint(c);
        c->failed |= number <= before || number >= l->next;
        l->list[i].number = (uint32_t)number;
        before = number;
        l->list[i].event = pyri_cursor_u8(c);
        l->list[i].time_ns = (int64_t)pyri_cursor_u64(c);
        who[i] = keep_text(&l->texts, pyri_cursor_str(c));
        text[i] = keep_text(&l->texts, pyri_cursor_str(c));
    }
    int err = pyri_buf_check(&l->texts, "handlers");
    for (size_t i = 0; i < l->n && !c->failed && err == 0; i++) {
        l->list[i].who = (const char *)l->texts.data + who[i];
        l->list[i].text = (const char *)l->texts.data + text[i];
    }
    return err;
}

int
pyri_handler_list_decode(pyri_bytes bytes, pyri_handler_list *l)
{
    pyri_cursor c = pyri_cursor_of(bytes.data, bytes.size);
    uint64_t sum = pyri_cursor_u64(&c);
    *l = (pyri_handler_list){0};
    if (c.failed || sum != pyri_hash64(c.at, (size_t)(c.end - c.at)))
        return pyri_fail(PYR_ECORRUPT, "the list of handlers is damaged");
    uint8_t format = pyri_cursor_u8(&c);
    if (format != 1)
        return pyri_fail(PYR_EFORMAT,
                         "the list of handlers is of format %u, newer than "
                         "this library",
                         format);
    uint64_t next = pyri_cursor_varint(&c), n = pyri_cursor_varint(&c);
    int err = 0;
    c.failed |= next > UINT32_MAX || n > PYRI_MAX_HANDLERS;
    if (!c.failed) {
        l->next = (uint32_t)next;
        l->n = (size_t)n;
        err = decode_all(&c, l);
    }
    if (err == 0 && (c.failed || c.at != c.end))
        err = pyri_fail(PYR_ECORRUPT, "the list of handlers makes no sense");
    if (err < 0)
        pyri_handler_list_fini(l);
    return err;
}

/* --- what may be one ----------------------------------------------------- */

int
pyri_handler_parse(const pyri_array *a, const char *text, pyri_expr *e,
                   pyri_kernels *k, pyri_buf *canon)
{
    const pyri_schema *s = &a->schema;
    int err = pyri_expr_parse(text, s->type, s->ndim, e, canon, NULL);
    if (err < 0)
        return err;
    if (e->form != PYRI_FORM_CELLS)
        return pyri_fail(PYR_EINVAL, "a handler gives a value per cell: '%s' "
                                     "gives one value",
                         text);
    for (int i = 1; i < e->program.sources; i++)
        if (!(e->program.calls >> i & 1))
            return pyri_fail(PYR_EINVAL,
                             "a handler sees the cells that are stored, not "
                             "other versions: x@%llu may be forgotten, and "
                             "then every write would fail",
                             (unsigned long long)e->program.version[i]);
    err = pyri_kernels_bind(k, pyri_kernel_dir(a->engine->kernels), e, s->type,
                            s->ndim);
    for (int i = 0; i < k->n && err == 0; i++)
        if (k->bound[i].kernel->halo)
            err = pyri_fail(PYR_EINVAL,
                            "kernel '%s' looks at cells around each one, which "
                            "a write does not have: no handler can call it",
                            k->bound[i].kernel->name);
    return err;
}

/* --- changing the list --------------------------------------------------- */

typedef struct change {
    pyri_array *a;
    pyri_handler_list list;
    pyri_buf before; /* the record; empty: there is none */
} change;

static int
begin(change *c)
{
    pyri_key k = pyri_key_id("handler/", c->a->id);
    pyri_reader *r;
    pyri_bytes value;
    bool found;
    int err = pyri_engine_begin(c->a->engine, &r);
    if (err < 0)
        return err;
    err = pyri_engine_get_record(c->a->engine, r, pyri_key_bytes(&k), &value,
                                 &found);
    if (err == 0 && found)
        pyri_buf_add(&c->before, value.data, value.size);
    pyri_engine_end(c->a->engine, r);
    if (err < 0 || (err = pyri_buf_check(&c->before, "handlers")) < 0)
        return err;
    c->list.next = 1;
    if (!found)
        return 0;
    err = pyri_handler_list_decode((pyri_bytes){c->before.data,
                                                c->before.size}, &c->list);
    return err < 0 ? pyri_fail_at(err, "array '%s'", c->a->name) : 0;
}

static void
end(change *c)
{
    pyri_handler_list_fini(&c->list);
    pyri_buf_fini(&c->before);
}

/* PYR_EFENCED if another has changed it meanwhile. The record stays when the
 * last one goes, so that no number is given twice. */
static int
publish(change *c)
{
    pyri_engine *e = c->a->engine;
    pyri_key k = pyri_key_id("handler/", c->a->id);
    pyri_buf after = {0};
    uint64_t mark = 0;
    int errnum = 0;
    while (c->list.n && mark == 0 && errnum == 0) {
        errnum = pyri_io_random(&mark, sizeof mark);
        mark >>= 8;
    }
    if (errnum)
        return pyri_fail_errno(errnum, "random numbers");
    pyri_handler_list_encode(&c->list, &after);
    pyri_edit edits[] = {
        {.kind = PYRI_EDIT_SAME,
         .key = pyri_key_bytes(&k),
         .value = {c->before.data, c->before.size}},
        {.kind = PYRI_EDIT_PUT,
         .key = pyri_key_bytes(&k),
         .value = {after.data, after.size}},
        {.kind = PYRI_EDIT_MARK, .array = c->a->id, .version = mark},
    };
    int err = pyri_buf_check(&after, "handlers");
    if (err == 0)
        err = pyri_engine_edit(e, edits, pyri_engine_has_marks(e) ? 3 : 2);
    pyri_buf_fini(&after);
    return err;
}

static int64_t
now_ns(void)
{
    struct timespec t;
    pyri_sys_clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int
append(change *c, const char *text)
{
    pyri_handler_list *l = &c->list;
    if (l->n == PYRI_MAX_HANDLERS)
        return pyri_fail(PYR_EINVAL, "array '%s' has %d handlers, and can have "
                                     "no more",
                         c->a->name, (int)PYRI_MAX_HANDLERS);
    if (l->next == UINT32_MAX)
        return pyri_fail(PYR_EINVAL, "array '%s' has had too many handlers",
                         c->a->name);
    l->list[l->n++] = (pyri_handler){.number = l->next++,
                                     .event = PYRI_HANDLER_ON_WRITE,
                                     .time_ns = now_ns(),
                                     .who = pyri_record_who(),
                                     .text = text};
    return 0;
}

static int
take_out(change *c, uint32_t number)
{
    pyri_handler_list *l = &c->list;
    size_t i = 0;
    while (i < l->n && l->list[i].number != number)
        i++;
    if (i == l->n)
        return pyri_fail(PYR_ENOTFOUND, "array '%s' has no handler %u",
                         c->a->name, number);
    memmove(&l->list[i], &l->list[i + 1],
            (l->n - i - 1) * sizeof l->list[0]);
    l->n--;
    return 0;
}

/* Add a text, or, if that is NULL, take the one of that number out. */
static int
change_list(pyri_array *a, const char *text, uint32_t *number)
{
    int err = PYR_EFENCED;
    for (int i = 0; i < TRIES && err == PYR_EFENCED; i++) {
        change c = {.a = a};
        err = begin(&c);
        if (err == 0 && text)
            err = append(&c, text);
        else if (err == 0)
            err = take_out(&c, *number);
        uint32_t added = c.list.next - 1;
        if (err == 0)
            err = publish(&c);
        if (err == 0 && text)
            *number = added;
        end(&c);
    }
    return err;
}

int
pyri_handler_add(pyri_array *a, const char *text, uint32_t *number)
{
    pyri_buf canon = {0};
    pyri_expr *e = pyri_sys_malloc(sizeof *e);
    pyri_kernels k;
    if (!e)
        return pyri_fail_nomem("a handler");
    pyri_kernels_none(&k);
    int err = pyri_handler_parse(a, text, e, &k, &canon);
    if (err == 0)
        err = change_list(a, (const char *)canon.data, number);
    pyri_buf_fini(&canon);
    free(e);
    return err;
}

int
pyri_handler_remove(pyri_array *a, uint32_t number)
{
    return change_list(a, NULL, &number);
}

int
pyri_handler_each(pyri_array *a, pyr_handler_fn *each, void *ctx)
{
    change c = {.a = a};
    int err = begin(&c);
    for (size_t i = 0; i < c.list.n && err == 0; i++) {
        const pyri_handler *h = &c.list.list[i];
        pyr_handler told = {.number = h->number,
                            .event = (pyr_event)h->event,
                            .function = h->text,
                            .time_ns = h->time_ns,
                            .who = h->who};
        err = each(ctx, &told);
    }
    end(&c);
    return err;
}
