/*
 * fuzz/fuzz.h - what the fuzz targets share.
 *
 * A target takes its input apart with a pyri_cursor (which gives zeros past
 * the end, so that every input means something), hands the rest to a decoder,
 * and either sees it refused with a code and a text, or takes what came out
 * to the same questions that the library would ask of it.
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/hash.h"

#include <pyramid/types.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Where the library's random numbers begin again (fixed.c). */
void fuzz_seed(uint64_t seed);

/* A promise of the code under test; never compiled out. */
#define MUST(condition)                                                        \
    ((condition) ? (void)0 : fuzz_broken(__FILE__, __LINE__, #condition))

__attribute__((noreturn)) static inline void
fuzz_broken(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: broken: %s\n(last failure: %s)\n", file, line, what,
            pyr_errmsg());
    abort();
}

/* The bytes are refused as damaged or unknown, and a text says why. */
static inline void
must_refuse(int err)
{
    MUST(err == PYR_ECORRUPT || err == PYR_EFORMAT);
    MUST(pyr_errmsg()[0] != 0);
}

/* --- taking the input apart ---------------------------------------------- */

static inline int
take_below(pyri_cursor *in, int limit)
{
    return pyri_cursor_u8(in) % limit;
}

static inline pyr_type
take_type(pyri_cursor *in)
{
    return (pyr_type)take_below(in, PYR_F64 + 1);
}

/* All that is left, in memory of its own size, so that a look past its end is
 * noticed; to be freed. */
static inline uint8_t *
take_rest(pyri_cursor *in, size_t *size)
{
    *size = in->failed ? 0 : (size_t)(in->end - in->at);
    uint8_t *copy = malloc(*size ? *size : 1);
    MUST(copy);
    if (*size)
        memcpy(copy, in->at, *size);
    return copy;
}

/* The same as text, ended by zero. */
static inline char *
take_text(pyri_cursor *in)
{
    size_t size = in->failed ? 0 : (size_t)(in->end - in->at);
    char *copy = malloc(size + 1);
    MUST(copy);
    if (size)
        memcpy(copy, in->at, size);
    copy[size] = 0;
    return copy;
}

/* --- checksums ----------------------------------------------------------- */

/* Records begin with the XXH3 of all that follows: put the right one in. */
static inline void
seal_record(uint8_t *bytes, size_t size)
{
    if (size >= 8)
        pyri_store64(bytes, pyri_hash64(bytes + 8, size - 8));
}

/* --- comparing ----------------------------------------------------------- */

static inline bool
are_same(const pyri_buf *a, const pyri_buf *b)
{
    MUST(!a->failed && !b->failed);
    return a->size == b->size &&
           (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

static inline void
must_be_same(const pyri_buf *a, const pyri_buf *b)
{
    MUST(are_same(a, b));
}

/* Read every byte, so that a sanitizer sees those that are not there. */
static inline uint64_t
touch(const void *bytes, size_t size)
{
    return size ? pyri_hash64(bytes, size) : 0;
}

#endif
