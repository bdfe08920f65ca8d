/*
 * kernel/bind.c - calls of kernels: their parameters, and the call itself.
 */
#include "kernel/kernel.h"

#include "base/fail.h"

#include <stdio.h>
#include <string.h>

/* --- parameters ---------------------------------------------------------- */

static int
unknown_param(const pyr_kernel *k, const char *key)
{
    char known[400] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < k->nparams && at < sizeof known; i++)
        at += (size_t)snprintf(known + at, sizeof known - at, "%s%s",
                               i ? ", " : "", k->params[i].name);
    return pyri_fail(PYR_EINVAL, "kernel '%s' has no parameter '%s'%s%s",
                     k->name, key, k->nparams ? "; it has " : "",
                     known);
}

static int
check_value(const pyr_kernel *k, const pyr_kernel_param *p,
            const pyri_param *given, pyr_kernel_value *out)
{
    out->real = given->real;
    if (given->kind == PYRI_INT)
        out->whole = (int64_t)given->bits;
    else if (given->kind == PYRI_UINT)
        out->whole = given->bits > INT64_MAX ? INT64_MAX : (int64_t)given->bits;
    else /* comparisons with NaN are false */
        out->whole = given->real >= 0x1p63    ? INT64_MAX
                     : given->real < -0x1p63  ? INT64_MIN
                     : given->real == given->real ? (int64_t)given->real
                                                  : 0;
    bool whole = given->kind != PYRI_REAL || (double)out->whole == given->real;
    if ((p->flags & PYR_KERNEL_WHOLE) && !whole)
        return pyri_fail(PYR_EINVAL,
                         "kernel '%s': '%s' must be a whole number", k->name,
                         p->name);
    if (p->least < p->most && !(p->least <= out->real && out->real <= p->most))
        return pyri_fail(PYR_EINVAL,
                         "kernel '%s': '%s' must be from %g to %g", k->name,
                         p->name, p->least, p->most);
    return 0;
}

/* How far the number of a parameter is; nparams if it has none of that name. */
static uint32_t
find_param(const pyr_kernel *k, const char *key)
{
    uint32_t i = 0;
    while (i < k->nparams && strcmp(k->params[i].name, key) != 0)
        i++;
    return i;
}

static int
set_params(const pyr_kernel *k, const pyri_call *c, pyr_kernel_value *param)
{
    bool given[PYR_KERNEL_MAX_PARAMS] = {false};
    int err;
    for (int i = 0; i < c->n; i++) {
        uint32_t which = find_param(k, c->param[i].key);
        if (which == k->nparams)
            return unknown_param(k, c->param[i].key);
        err = check_value(k, &k->params[which], &c->param[i], &param[which]);
        if (err < 0)
            return err;
        given[which] = true;
    }
    for (uint32_t i = 0; i < k->nparams; i++) {
        const pyr_kernel_param *p = &k->params[i];
        if (given[i])
            continue;
        if (p->flags & PYR_KERNEL_NEEDED)
            return pyri_fail(PYR_EINVAL, "kernel '%s' needs '%s': %s(%s=...)",
                             k->name, p->name, k->name, p->name);
        param[i].real = p->value;
        param[i].whole = p->value >= -0x1p63 && p->value < 0x1p63
                             ? (int64_t)p->value
                             : 0;
    }
    return 0;
}

/* --- binding ------------------------------------------------------------- */

static int
check_cells(const pyr_kernel *k, pyr_type type, int ndim)
{
    uint32_t least = k->least_ndim, most = k->most_ndim;
    least = k->halo_axes > least ? k->halo_axes : least;
    if (!(k->types >> type & 1))
        return pyri_fail(PYR_EKERNEL,
                         "kernel '%s' does not know cells of %s", k->name,
                         pyri_type_name(type));
    if ((uint32_t)ndim < least || (most && (uint32_t)ndim > most))
        return pyri_fail(PYR_EKERNEL,
                         "kernel '%s' is not for arrays of %d dimension%s",
                         k->name, ndim, ndim == 1 ? "" : "s");
    return 0;
}

void
pyri_kernels_none(pyri_kernels *k)
{
    k->n = 0;
    k->same = true;
    memset(k->of, -1, sizeof k->of);
    memset(k->halo, 0, sizeof k->halo);
}

static int
bind(pyri_kernels *k, const char *dir, const pyri_call *c, pyr_type type,
     int ndim)
{
    pyri_bound *b = &k->bound[k->n];
    *b = (pyri_bound){.type = type, .ndim = ndim};
    int err = pyri_kernel_find(dir, c->name, &b->kernel);
    if (err < 0 || (err = check_cells(b->kernel, type, ndim)) < 0 ||
        (err = set_params(b->kernel, c, b->param)) < 0)
        return err;
    k->n++;
    k->same &= (b->kernel->flags & PYR_KERNEL_SAME) != 0;
    for (int d = 0; d < ndim; d++)
        if (pyri_bound_halo(b, d) > k->halo[d])
            k->halo[d] = pyri_bound_halo(b, d);
    return 0;
}

int
pyri_kernels_bind(pyri_kernels *k, const char *dir, const pyri_expr *e,
                  pyr_type type, int ndim)
{
    const pyri_program *p = &e->program;
    int err = 0;
    pyri_kernels_none(k);
    for (int s = 1; s < p->sources && err == 0; s++) {
        if (!(p->calls >> s & 1))
            continue;
        k->of[s] = (int8_t)k->n;
        err = bind(k, dir, &e->call[p->version[s]], type, ndim);
    }
    return err;
}

void
pyri_kernels_note(const pyri_kernels *k, pyri_buf *text)
{
    if (k->n == 0 || text->failed || text->size == 0)
        return;
    text->size--;
    for (int i = 0; i < k->n; i++) {
        const pyr_kernel *kernel = k->bound[i].kernel;
        bool before = false; /* once with other parameters */
        for (int j = 0; j < i; j++)
            before |= k->bound[j].kernel == kernel;
        if (before)
            continue;
        const char *parts[] = {i ? ", " : "  # ", kernel->name, " ",
                               kernel->version};
        for (int j = 0; j < 4; j++)
            pyri_buf_add(text, parts[j], strlen(parts[j]));
    }
    pyri_buf_u8(text, 0);
}

/* --- running ------------------------------------------------------------- */

int
pyri_kernel_run(const pyri_bound *b, const pyri_box *box, pyri_mem in,
                void *out)
{
    uint64_t extent[PYR_MAX_DIMS] = {0};
    char message[256] = "";
    for (int d = 0; d < b->ndim; d++)
        extent[d] = box->hi[d] - box->lo[d];
    pyr_kernel_job job = {.size = sizeof job,
                          .type = (uint32_t)b->type,
                          .ndim = (uint32_t)b->ndim,
                          .cells = pyri_box_cells(b->ndim, box),
                          .extent = extent,
                          .origin = box->lo,
                          .in = in.base,
                          .in_step = in.step,
                          .out = out,
                          .param = b->param,
                          .message = message,
                          .room = sizeof message};
    if (job.cells == 0)
        return 0;
    int failed = b->kernel->run(&job);
    message[sizeof message - 1] = 0;
    for (char *at = message; *at; at++)
        *at = *at < ' ' || *at == 0x7f ? '?' : *at;
    if (failed == 0)
        return 0;
    return pyri_fail(PYR_EKERNEL, "kernel '%s' failed with %d%s%s",
                     b->kernel->name, failed, message[0] ? ": " : "", message);
}
