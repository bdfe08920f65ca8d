/*
 * pyramid/error.h - how calls fail, and how to learn why.
 *
 *   if (pyr_write(array, offset, size, cells, NULL) < 0)
 *       fprintf(stderr, "%s\n", pyr_errmsg());
 *
 * Every call that can fail returns 0 or one of the negative codes below. The
 * code is for the program, pyr_errmsg() is for the person.
 */
#ifndef PYRAMID_ERROR_H
#define PYRAMID_ERROR_H

#if defined(__GNUC__)
#define PYR_API __attribute__((visibility("default")))
#else
#define PYR_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PYR_OK = 0,
    PYR_EINVAL = -1,       /* an argument makes no sense */
    PYR_EBOUNDS = -2,      /* a box leaves the array */
    PYR_ETYPE = -3,        /* cells of another type than the array's */
    PYR_ENOTFOUND = -4,    /* no array or tag of that name, no such store */
    PYR_ENOVERSION = -5,   /* that version is not published (yet, or any more) */
    PYR_EEXIST = -6,       /* the name is taken */
    PYR_EREADONLY = -7,    /* the store was opened for reading only */
    PYR_EFORMAT = -8,      /* not a store, or one of a newer format */
    PYR_ECORRUPT = -9,     /* stored bytes fail their checksum or make no sense */
    PYR_EIO = -10,         /* the system refused to read or write */
    PYR_ENOSPC = -11,      /* no room left where the store lives */
    PYR_ENOMEM = -12,      /* no memory */
    PYR_EFENCED = -13,     /* this writer was given up for dead; nothing changed */
    PYR_ETIMEOUT = -14,    /* the wait ended before the event */
    PYR_EUNSUPPORTED = -15,/* this build or this engine cannot do that */
    PYR_EKERNEL = -16      /* a kernel is not on this machine, or it failed */
};

/* A few words for a code; never NULL. Any int may be given. */
PYR_API const char *pyr_strerror(int error);

/*
 * This thread's last failure in full: what failed, where, what to do about
 * it. Never NULL; valid until this thread's next failing call.
 */
PYR_API const char *pyr_errmsg(void);

#ifdef __cplusplus
}
#endif

#endif
