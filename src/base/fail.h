/*
 * base/fail.h - code and text of a failure, set in one call where it is born.
 *
 *   return pyri_fail(PYR_EIO, "segment %u: %s", id, strerror(errno));
 *
 * Above, pass the code on untouched. The text is per thread.
 */
#ifndef PYRI_BASE_FAIL_H
#define PYRI_BASE_FAIL_H

#include <pyramid/error.h>

/* Remember the text, return the code. */
int pyri_fail(int code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Put "<prefix>: " in front of the text of the failure being passed on;
 * returns `code`. For the few places that know where, but not what. */
int pyri_fail_at(int code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* PYR_ENOMEM, saying what the memory was for. */
int pyri_fail_nomem(const char *what);

/* The code that stands for an errno, with a text "<what>: <strerror>". */
int pyri_fail_errno(int errnum, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
