/*
 * engine/rados/calls.c - calls of class methods, many in the air at once.
 *
 * A method that changes something and answers is called through a read
 * operation with RETURNVEC: the OSD looks at the method's own flags, answers
 * when all replicas have it, and keeps the answer, so that one which is sent
 * again after a failover gets it again and runs once.
 */
#include "engine/rados/rados.h"

#include "base/room.h"
#include "base/sys.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN_THE_AIR = 64 };

void
pyri_call_begin(pyri_call *c, const char *method, bool writes, const char *oid)
{
    memset(c, 0, sizeof *c);
    snprintf(c->oid, sizeof c->oid, "%s", oid);
    c->method = method;
    c->writes = writes;
    if (method)
        pyri_buf_u8(&c->in, PYRI_WIRE);
}

void
pyri_call_fini(pyri_call *c)
{
    pyri_buf_fini(&c->in);
    if (c->out)
        rados_buffer_free(c->out);
    c->out = NULL;
}

pyri_call *
pyri_calls_add(pyri_calls *c, const char *method, bool writes, const char *oid)
{
    if (!pyri_room(&c->list, &c->room, c->n + 1, sizeof *c->list))
        return NULL;
    pyri_call_begin(&c->list[c->n], method, writes, oid);
    return &c->list[c->n++];
}

void
pyri_calls_fini(pyri_calls *c)
{
    for (size_t i = 0; i < c->n; i++)
        pyri_call_fini(&c->list[i]);
    free(c->list);
    *c = (pyri_calls){0};
}

/* --- running ------------------------------------------------------------- */

static int
start_method(pyri_cluster *s, pyri_call *c)
{
    const char *in = (const char *)c->in.data;
    c->op = rados_create_read_op();
    if (!c->op)
        return -ENOMEM;
    if (c->writes)
        rados_read_op_exec_user_buf(c->op, PYRI_CLS_NAME, c->method, in,
                                    c->in.size, c->small, sizeof c->small,
                                    &c->size, &c->unused);
    else
        rados_read_op_exec(c->op, PYRI_CLS_NAME, c->method, in, c->in.size,
                           &c->out, &c->size, &c->unused);
    return rados_aio_read_op_operate(
        c->op, s->io, c->done, c->oid,
        c->writes ? LIBRADOS_OPERATION_RETURNVEC : LIBRADOS_OPERATION_NOFLAG);
}

static int
start(pyri_cluster *s, pyri_call *c)
{
    if (c->in.failed)
        return -ENOMEM;
    int err = rados_aio_create_completion2(NULL, NULL, &c->done);
    if (err < 0)
        return err;
    err = c->method ? start_method(s, c)
                    : rados_aio_remove(s->io, c->oid, c->done);
    if (err < 0) {
        rados_aio_release(c->done);
        c->done = NULL;
    }
    return err;
}

static void
finish(pyri_call *c)
{
    if (!c->done)
        return;
    rados_aio_wait_for_complete(c->done);
    c->result = rados_aio_get_return_value(c->done);
    rados_aio_release(c->done);
    c->done = NULL;
    if (c->op)
        rados_release_read_op(c->op);
    c->op = NULL;
    if (c->result > 0)
        c->result = 0;
    if (!c->method && c->result == -ENOENT)
        c->result = 0; /* it has gone already */
    const char *bytes = c->writes ? c->small : c->out;
    c->answer = pyri_cursor_of(bytes, c->result == 0 && bytes ? c->size : 0);
}

int
pyri_calls_run(pyri_cluster *s, pyri_call *calls, size_t n)
{
    int err = 0;
    for (size_t i = 0; i < n; i++) {
        if (i >= IN_THE_AIR)
            finish(&calls[i - IN_THE_AIR]);
        calls[i].result = start(s, &calls[i]);
        if (calls[i].result < 0)
            err = calls[i].result;
    }
    for (size_t i = n > IN_THE_AIR ? n - IN_THE_AIR : 0; i < n; i++)
        finish(&calls[i]);
    return err == 0 ? 0 : pyri_rados_fail(s, err, "a call of the cluster");
}

int
pyri_call_run(pyri_cluster *s, pyri_call *c)
{
    c->result = start(s, c);
    finish(c);
    return c->result;
}

/* --- failures ------------------------------------------------------------ */

static int
code_of(int err)
{
    switch (err) {
    case PYRI_CLS_NO_OBJECT:
    case PYRI_CLS_NONE: return PYR_ENOTFOUND;
    case PYRI_CLS_THERE: return PYR_EEXIST;
    case PYRI_CLS_FENCED: return PYR_EFENCED;
    case PYRI_CLS_GONE: return PYR_ENOVERSION;
    case PYRI_CLS_BUSY: return PYR_ETIMEOUT;
    case PYRI_CLS_RANGE:
    case PYRI_CLS_INVALID: return PYR_EINVAL;
    case PYRI_CLS_BAD: return PYR_ECORRUPT;
    case -ENOMEM: return PYR_ENOMEM;
    case -ENOSPC:
    case -EDQUOT: return PYR_ENOSPC;
    case -EPERM:
    case -EACCES:
    case -EROFS: return PYR_EREADONLY;
    case -EOPNOTSUPP: return PYR_EUNSUPPORTED;
    }
    return PYR_EIO;
}

static const char *
words_for(int err)
{
    switch (err) {
    case PYRI_CLS_NO_OBJECT:
    case PYRI_CLS_NONE: return "is not there";
    case PYRI_CLS_THERE: return "exists already";
    case PYRI_CLS_FENCED: return "was changed or completed by others";
    case PYRI_CLS_GONE: return "was forgotten";
    case PYRI_CLS_BUSY: return "another one is at it";
    case PYRI_CLS_RANGE: return "it would have more than 2^64 - 2 cells";
    case PYRI_CLS_BAD: return "the object class found bytes that make no sense";
    case -EOPNOTSUPP:
        return "the cluster has no object class \"pyramid\": install "
               "libcls_pyramid.so in osd_class_dir of every OSD, and restart "
               "them";
    }
    return NULL;
}

int
pyri_rados_fail(const pyri_cluster *s, int err, const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (err == -EPERM || err == -EACCES)
        return pyri_fail(PYR_EREADONLY,
                         "%s: the cluster does not allow this to user "
                         "client.%s in pool %s",
                         what, s->user, s->pool);
    const char *words = words_for(err);
    return pyri_fail(code_of(err), "%s: %s", what,
                     words ? words : strerror(-err));
}

int
pyri_rados_garbled(const pyri_call *c)
{
    return pyri_fail(PYR_ECORRUPT, "object %s: its answer to \"%s\" makes no "
                     "sense", c->oid, c->method);
}

void
pyri_rados_head_oid(char oid[PYRI_RADOS_OID], uint64_t array)
{
    snprintf(oid, PYRI_RADOS_OID, "h.%016llx", (unsigned long long)array);
}
