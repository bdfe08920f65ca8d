/*
 * engine/local/mailbox.h - completions that one process does for another: see
 * mailbox.c for the mailbox, letter.c for what lies in it.
 */
#ifndef PYRI_ENGINE_LOCAL_MAILBOX_H
#define PYRI_ENGINE_LOCAL_MAILBOX_H

#include "engine/local/local.h"

enum { PYRI_REQUEST_TEXT = 256 };

/* One completion that is asked for. */
struct pyri_request {
    pyri_request *next;
    pyri_complete *c;
    int ndim;                /* of c->shape */
    uint64_t thread;         /* whose it is */
    const pyri_bytes *small; /* out of a letter: the bytes of each blob that is
                                small; NULL: this process has them */
    bool retry;   /* another process may have stored it already */
    bool already; /* and it had */
    int err;
    uint64_t before; /* latest, when this was looked at */
    char text[PYRI_REQUEST_TEXT]; /* of the failure */
    _Atomic uint32_t state;
};

/* --- letter.c ------------------------------------------------------------ */

enum {
    PYRI_LETTER_SIZE = 128 << 10, /* the longest */
    PYRI_LETTER_REQUESTS = 64,    /* in one of them */
    PYRI_ANSWER_SIZE =
        32 + PYRI_LETTER_REQUESTS * (32 + PYRI_REQUEST_TEXT)
};

/* Whose letter it is, and the how manieth: an answer to another one, or what
 * was left of one, is not taken for it. */
typedef struct pyri_postmark {
    uint64_t owner;
    uint32_t number;
} pyri_postmark;

/* The bytes that `requests` take as a letter, written to `to`; 0 if they are
 * more than `room`, or too many, or this process does not have them. */
size_t pyri_letter_write(pyri_site *s, const pyri_request *requests,
                         pyri_postmark mark, uint8_t *to, size_t room);

typedef struct pyri_letter {
    pyri_request *requests; /* in the order in which they were written */
    size_t n;               /* of them; whoever took it may add to the list */
    pyri_postmark mark;
    unsigned slot;           /* where it lay */
    struct pyri_letter *next;
    uint8_t bytes[];         /* that all of it points to */
} pyri_letter;

/* Copies what lies at `from`, `room` bytes that others may be changing, and
 * takes it apart. Gives a letter, to be ended with free(), or leaves *out NULL:
 * PYR_ECORRUPT if it is none, or has not this mark. */
int pyri_letter_read(const uint8_t *from, size_t room, pyri_postmark mark,
                     pyri_letter **out);

/* What became of each request; fits into PYRI_ANSWER_SIZE. */
void pyri_answer_write(const pyri_letter *l, uint8_t *to);
/* Copies it to the requests that the letter was made of. PYR_ECORRUPT if it is
 * no answer to that letter; their results then mean nothing. */
int pyri_answer_read(const uint8_t *from, pyri_postmark mark,
                     pyri_request *requests);

/* --- mailbox.c ----------------------------------------------------------- */

/* For how many slices of 5 ms one that is alive is waited for though nothing
 * happens; 20 times as long while one is in a transaction. Tests change it. */
extern int pyri_mailbox_patience;

/*
 * To be called with a batch that no other thread has. Either another process
 * did all of it, and each has its result; or false: the caller does, and calls
 * pyri_mailbox_leave() after.
 */
bool pyri_mailbox_enter(pyri_site *s, pyri_request *requests);
/* Before the caller does so: wait a little for other processes that are likely
 * to come, and until so many threads of this one are `waiting`. */
void pyri_mailbox_gather(pyri_site *s, const atomic_uint *waiting,
                         unsigned threads);
/* So many are `waiting` now: that may be enough. */
void pyri_mailbox_tell(pyri_site *s, unsigned waiting);
void pyri_mailbox_leave(pyri_site *s);

/* In a write transaction of meta: take the letters that wait, or NULL. They are
 * for this one transaction: their owners may have them back after it. */
pyri_letter *pyri_mailbox_take(pyri_site *s);
/* After the transaction, in any case. Takes the letters; answers them, or if it
 * was undone hands them back to their owners, to be tried alone. */
void pyri_mailbox_answer(pyri_site *s, pyri_letter *letters, bool committed);

#endif
