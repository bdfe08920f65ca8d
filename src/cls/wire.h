/*
 * cls/wire.h - what the engine and the object class say to each other.
 *
 * A request is an opaque byte string to Ceph: one byte WIRE, then the fields
 * that each method lists, in the encoding of base/buf.h; `str` is a varint
 * length and bytes. Answers of methods that change something stay within 64
 * bytes, which every cluster lets them have; longer ones come from methods
 * that only read, page by page.
 *
 * Failures are errnos, chosen so that neither Ceph nor librados means
 * anything else by them.
 */
#ifndef PYRI_CLS_WIRE_H
#define PYRI_CLS_WIRE_H

#include <errno.h>
#include <stdint.h>

#define PYRI_CLS_NAME "pyramid"

enum {
    PYRI_CLS_VERSION = 4, /* of the class; engine and class must agree */
    PYRI_WIRE = 1,        /* first byte of each request */
    PYRI_CLS_PAGE = 1 << 20, /* bytes of an answer, beyond one whole item */
    PYRI_CLS_ITEMS = 1000,   /* items of a page (an OSD gives 1024 at once) */
    PYRI_CLS_BATCH = 4096,   /* entries of a request that stores */
    PYRI_CLS_FLIGHTS = 65536, /* versions of an array in flight */
    PYRI_CLS_MAX_KEY = 512,
    PYRI_CLS_ID = 16,         /* bytes of random ids */
    PYRI_CLS_WHERE = 64       /* of what a session says of its process */
};

/* Functions of cells: what an OSD does in one call. An object holds the blob
 * that it was made for, and behind it blobs that were computed from those in
 * it, each at a multiple of PYRI_SLOT_UNIT. */
enum {
    PYRI_SLOT_UNIT = 4096,
    PYRI_SLOTS = 64,              /* computed blobs in an object */
    PYRI_OBJECT_BYTES = 64 << 20, /* no more are computed past that */
    PYRI_WORK_PIECES = 256,       /* fragments that are looked at */
    PYRI_WORK_PROGRAMS = 17,      /* a function, and 16 handlers */
    PYRI_WORK_BYTES = 32 << 20,   /* of cells of one source, of a fragment */
    PYRI_WORK_MEMORY = 64 << 20,  /* of the cells of all sources */
    PYRI_WORK_MS = 2000           /* by the estimate of op/ */
};

enum { /* failures */
    PYRI_CLS_NONE = -ENODATA,     /* a record, version or entry is not there */
    PYRI_CLS_THERE = -EEXIST,     /* it is there already */
    PYRI_CLS_FENCED = -ESTALE,    /* too late, or the value is another */
    PYRI_CLS_GONE = -EIDRM,       /* a version was forgotten */
    PYRI_CLS_BUSY = -EBUSY,       /* another one is at it */
    PYRI_CLS_RANGE = -ERANGE,     /* a shape that overflows */
    PYRI_CLS_BAD = -EBADMSG,      /* the request, or what is stored, is
                                     not what it should be */
    PYRI_CLS_NO_OBJECT = -ENOENT,
    PYRI_CLS_FULL = -EFBIG,       /* no room in the object for what would be
                                     computed, or more work than an OSD does */
    PYRI_CLS_INVALID = -EINVAL    /* the newest version cannot be forgotten */
};

/* How a batch of edits is carried out. */
enum {
    PYRI_MODE_NOW,     /* check and apply */
    PYRI_MODE_PREPARE, /* check, and keep it for later under an id */
    PYRI_MODE_APPLY,   /* what was prepared under the id */
    PYRI_MODE_CANCEL,  /* forget it */
    PYRI_MODE_COMMIT   /* in the catalog: apply, if the id was begun, and
                          note that it is decided */
};

/* Kinds of edits; the first ones are those of engine/engine.h. */
enum {
    PYRI_WIRE_PUT,
    PYRI_WIRE_CREATE,
    PYRI_WIRE_DELETE,
    PYRI_WIRE_EXPECT,
    PYRI_WIRE_SAME,
    PYRI_WIRE_ARRAY,
    PYRI_WIRE_FORGET,
    PYRI_WIRE_KEPT,
    PYRI_WIRE_MARK,
    PYRI_WIRE_NOTE /* in the catalog: there is an array of this id */
};

/* What "compute" answers first. */
enum {
    PYRI_MADE_BLOB,  /* a blob: ask "made" */
    PYRI_MADE_SAME,  /* no blob: the value follows (8) */
    PYRI_MADE_BRIEF  /* a blob: what there is to know follows (brief.h) */
};

enum { PYRI_ENTRY_PUT, PYRI_ENTRY_REPLACE }; /* replace: if it is there */
enum { PYRI_PAGE_END, PYRI_PAGE_ITEM, PYRI_PAGE_MORE };
enum { PYRI_V_PUBLISHED = 1, PYRI_V_FOUND = 2, PYRI_V_FORGOTTEN = 4 };
enum { PYRI_F_COMPLETE = 1, PYRI_F_DEAD = 2 };
enum { PYRI_SESSION_NEW, PYRI_SESSION_RENEW, PYRI_SESSION_END,
       PYRI_SESSION_EXPIRE };
enum { PYRI_TXN_BEGIN, PYRI_TXN_END, PYRI_TXN_JUDGE,
       PYRI_TXN_GIVE_UP /* judge; who began it is known to be gone */ };
enum { PYRI_LEASE_TAKE, PYRI_LEASE_RENEW, PYRI_LEASE_GIVE,
       PYRI_LEASE_SEIZE /* from a holder that is known to be gone */ };

#endif
