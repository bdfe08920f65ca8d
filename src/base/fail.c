/*
 * base/fail.c - code and text of a failure.
 */
#include "base/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[1024];

const char *
pyr_errmsg(void)
{
    return message[0] ? message : "no error";
}

const char *
pyr_strerror(int error)
{
    switch (error) {
    case PYR_OK: return "success";
    case PYR_EINVAL: return "invalid argument";
    case PYR_EBOUNDS: return "box leaves the array";
    case PYR_ETYPE: return "wrong cell type";
    case PYR_ENOTFOUND: return "not found";
    case PYR_ENOVERSION: return "no such version";
    case PYR_EEXIST: return "exists already";
    case PYR_EREADONLY: return "store is open for reading only";
    case PYR_EFORMAT: return "not a Pyramid store of a known format";
    case PYR_ECORRUPT: return "stored data is damaged";
    case PYR_EIO: return "input/output error";
    case PYR_ENOSPC: return "no space left";
    case PYR_ENOMEM: return "out of memory";
    case PYR_EFENCED: return "writer was fenced; nothing changed";
    case PYR_ETIMEOUT: return "timed out";
    case PYR_EUNSUPPORTED: return "not supported";
    case PYR_EKERNEL: return "a kernel is missing or failed";
    default: return "unknown error";
    }
}

int
pyri_fail(int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return code;
}

int
pyri_fail_at(int code, const char *format, ...)
{
    char text[2 * sizeof message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof message - 2, format, args);
    va_end(args);
    strcat(text, ": ");
    strcat(text, message);
    memcpy(message, text, sizeof message - 1);
    return code;
}

int
pyri_fail_nomem(const char *what)
{
    return pyri_fail(PYR_ENOMEM, "no memory for %s", what);
}

static int
code_of_errno(int errnum)
{
    switch (errnum) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return PYR_ENOSPC;
    case ENOMEM: return PYR_ENOMEM;
    case ENOENT:
    case ENOTDIR: return PYR_ENOTFOUND;
    case EEXIST: return PYR_EEXIST;
    case EROFS: return PYR_EREADONLY;
    default: return PYR_EIO;
    }
}

int
pyri_fail_errno(int errnum, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    size_t used = strlen(message);
    snprintf(message + used, sizeof message - used, ": %s", strerror(errnum));
    return code_of_errno(errnum);
}
