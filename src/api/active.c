/*
 * api/active.c - functions sent to the data.
 */
#include "api/handle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parse a function that must be of a form, and find the kernels that it calls;
 * canon, which may be NULL, gets its text with their versions. */
static int
parse(const pyri_array *a, const char *call, const char *text,
      pyri_expr_form form, pyri_expr *out, pyri_kernels *k, pyri_buf *canon)
{
    const pyri_schema *s = &a->schema;
    int err = pyri_need(text, call, "function");
    if (err == 0)
        err = pyri_expr_parse(text, s->type, s->ndim, out, canon, NULL);
    if (err < 0)
        return err;
    if (out->form == form) {
        err = pyri_kernels_bind(k, pyri_kernel_dir(a->engine->kernels), out,
                                s->type, s->ndim);
        if (err == 0 && canon)
            pyri_kernels_note(k, canon);
        return err < 0 || !canon ? err : pyri_buf_check(canon, "an expression");
    }
    return form == PYRI_FORM_CELLS
               ? pyri_fail(PYR_EINVAL,
                           "%s: '%s' gives one value, not one per cell; use "
                           "pyr_reduce or `pyramid reduce`",
                           call, text)
               : pyri_fail(PYR_EINVAL,
                           "%s: '%s' gives a value per cell; a reduction is "
                           "needed, such as mean(...)",
                           call, text);
}

int
pyr_compute(pyr_array *array, pyr_version version, const uint64_t *offset,
            const uint64_t *size, const char *function, pyr_version *made)
{
    return pyr_compute_with(array, version, offset, size, function, NULL,
                            made);
}

int
pyr_compute_with(pyr_array *array, pyr_version version, const uint64_t *offset,
                 const uint64_t *size, const char *function,
                 const pyr_write_options *options, pyr_version *made)
{
    static const char call[] = "pyr_compute";
    pyri_write_how how;
    pyr_version v = 0;
    pyri_expr e;
    pyri_kernels k;
    pyri_buf canon = {0};
    pyri_box box = {.lo = {0}};
    int err;
    if ((err = pyri_need(array, call, "array")) < 0 ||
        (err = pyri_need_writable(array->array->engine, call)) < 0 ||
        (err = pyri_check_box(array->array, offset, size, &box)) < 0 ||
        (err = pyri_check_how(options, &how)) < 0)
        return err;
    err = parse(array->array, call, function, PYRI_FORM_CELLS, &e, &k, &canon);
    if (err == 0)
        err = pyri_compute(array->array, version, &box, &e, &k,
                           (const char *)canon.data, &how, &v);
    if (err == 0 && made)
        *made = v;
    pyri_buf_fini(&canon);
    return err;
}

int
pyr_reduce(pyr_array *array, pyr_version version, const uint64_t *offset,
           const uint64_t *size, const char *function, pyr_value *out)
{
    static const char call[] = "pyr_reduce";
    pyri_expr e;
    pyri_kernels k;
    pyri_box box = {.lo = {0}};
    int err;
    if ((err = pyri_need(out, call, "out")) < 0)
        return err;
    memset(out, 0, sizeof *out);
    if ((err = pyri_need(array, call, "array")) < 0 ||
        (err = pyri_check_box(array->array, offset, size, &box)) < 0 ||
        (err = parse(array->array, call, function, PYRI_FORM_REDUCE, &e, &k,
                     NULL)) < 0)
        return err;
    return pyri_reduce(array->array, version, &box, &e, &k, out);
}

/* --- handlers ------------------------------------------------------------ */

int
pyr_handler_add(pyr_array *array, pyr_event event, const char *function,
                unsigned *number)
{
    static const char call[] = "pyr_handler_add";
    uint32_t added = 0;
    int err;
    if ((err = pyri_need(array, call, "array")) < 0 ||
        (err = pyri_need(function, call, "function")) < 0 ||
        (err = pyri_need_writable(array->array->engine, call)) < 0)
        return err;
    if (event != PYR_ON_WRITE)
        return pyri_fail(PYR_EINVAL, "%s: there is no event %d", call,
                         (int)event);
    err = pyri_handler_add(array->array, function, &added);
    if (err == 0 && number)
        *number = added;
    return err;
}

int
pyr_handler_list(pyr_array *array, pyr_handler_fn *each, void *ctx)
{
    int err = pyri_need(array, "pyr_handler_list", "array");
    if (err == 0 && !each)
        err = pyri_need(NULL, "pyr_handler_list", "each");
    return err < 0 ? err : pyri_handler_each(array->array, each, ctx);
}

int
pyr_handler_remove(pyr_array *array, unsigned number)
{
    int err;
    if ((err = pyri_need(array, "pyr_handler_remove", "array")) < 0 ||
        (err = pyri_need_writable(array->array->engine,
                                  "pyr_handler_remove")) < 0)
        return err;
    return pyri_handler_remove(array->array, number);
}

/* --- values as text ------------------------------------------------------ */

static void
integer_text(const pyr_value *v, char *text, size_t size)
{
    char digits[48], *at = digits + sizeof digits;
    unsigned __int128 rest = (unsigned __int128)(uint64_t)v->high << 64 | v->low;
    if (v->high < 0)
        rest = -rest;
    *--at = 0;
    do
        *--at = (char)('0' + (int)(rest % 10));
    while ((rest /= 10) != 0);
    if (v->high < 0)
        *--at = '-';
    snprintf(text, size, "%s", at);
}

static void
real_text(double value, char *text, size_t size)
{
    char shortest[32];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(shortest, sizeof shortest, "%.*g", digits, value);
        if (strtod(shortest, NULL) == value)
            break;
    }
    snprintf(text, size, "%s", shortest);
}

static void
list_text(const uint64_t *list, size_t n, char *text, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < n && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%llu", i ? ", " : "",
                               (unsigned long long)list[i]);
}

char *
pyr_value_text(const pyr_value *v, char *text, size_t size)
{
    if (size == 0)
        return text;
    text[0] = 0;
    switch (v->kind) {
    case PYR_VALUE_NONE: snprintf(text, size, "none"); break;
    case PYR_VALUE_INTEGER: integer_text(v, text, size); break;
    case PYR_VALUE_REAL: real_text(v->real, text, size); break;
    case PYR_VALUE_POSITION:
        list_text(v->at, (size_t)v->ndim, text, size);
        break;
    case PYR_VALUE_HISTOGRAM: list_text(v->counts, v->bins, text, size); break;
    }
    return text;
}

void
pyr_value_free(pyr_value *v)
{
    if (!v)
        return;
    free(v->counts);
    v->counts = NULL;
}
