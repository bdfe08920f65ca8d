/*
 * api/refused.h - calls that must be refused, and must change nothing.
 *
 * REFUSED() compares a fingerprint of the whole store before and after, and
 * sees to it that the text is of this failure and says enough.
 */
#ifndef API_REFUSED_H
#define API_REFUSED_H

#include "support/check.h"
#include "support/model.h"
#include "support/rng.h"
#include "support/tmp_store.h"

#include <pyramid/pyramid.h>

#include <pthread.h>

enum { ROWS = 10, COLUMNS = 7 };

static char url[4096];
static pyr_store *store;
static pyr_array *array; /* "a/first": 10 x 7 of i32, three versions */
static const uint64_t shape[2] = {ROWS, COLUMNS}, chunk[2] = {4, 3};
static const uint64_t zero[2], one[2] = {1, 1};
static int32_t cells[ROWS * COLUMNS];

/* --- a store to be left alone -------------------------------------------- */

static inline uint64_t
mix_bytes(uint64_t digest, const void *bytes, size_t n)
{
    const uint8_t *b = bytes;
    for (size_t i = 0; i < n; i++)
        digest = rng_mix(digest ^ b[i]) + i;
    return digest;
}

static inline int
mix_change(void *ctx, const pyr_change *c)
{
    uint64_t *digest = ctx;
    *digest = mix_bytes(*digest, &c->version, sizeof c->version);
    *digest = mix_bytes(*digest, &c->kind, sizeof c->kind);
    *digest = mix_bytes(*digest, c->message, strlen(c->message));
    *digest = mix_bytes(*digest, c->shape, (size_t)c->ndim * 8);
    for (size_t i = 0; i < c->nparts; i++) {
        *digest = mix_bytes(*digest, c->parts[i].offset, 16);
        *digest = mix_bytes(*digest, c->parts[i].size, 16);
    }
    return 0;
}

static inline int
mix_name(void *ctx, const char *name)
{
    uint64_t *digest = ctx;
    *digest = mix_bytes(*digest, name, strlen(name) + 1);
    return 0;
}

static inline int
mix_tag(void *ctx, const char *tag, pyr_version version)
{
    uint64_t *digest = ctx;
    *digest = mix_bytes(*digest, &version, sizeof version);
    return mix_name(ctx, tag);
}

/* Of all that the store holds, seen through a handle of its own. */
static inline uint64_t
fingerprint(void)
{
    pyr_store *s;
    pyr_array *a;
    pyr_version latest;
    uint64_t digest = 1;
    OK(pyr_open(url, PYR_OPEN_READONLY, &s));
    OK(pyr_arrays(s, mix_name, &digest));
    OK(pyr_array_open(s, "a/first", &a));
    OK(pyr_latest(a, &latest));
    OK(pyr_history(a, PYR_LATEST, 0, mix_change, &digest));
    OK(pyr_tags(a, mix_tag, &digest));
    for (pyr_version v = 0; v <= latest; v++) {
        int32_t got[ROWS * COLUMNS];
        OK(pyr_read(a, v, zero, shape, got));
        digest = mix_bytes(digest, got, sizeof got);
    }
    char *attributes;
    OK(pyr_attributes(a, &attributes));
    digest = mix_bytes(digest, attributes, strlen(attributes));
    free(attributes);
    pyr_array_close(a);
    pyr_close(s);
    return digest;
}

static inline void
set_up(void)
{
    snprintf(url, sizeof url, "%s", tmp_store("api"));
    OK(pyr_open_with(url, PYR_OPEN_CREATE,
                     &(pyr_store_options){.durability = PYR_DURABILITY_OS},
                     &store));
    OK(pyr_create(store, "a/first",
                  &(pyr_spec){.ndim = 2, .shape = shape, .chunk = chunk,
                              .type = PYR_I32}, &array));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        cells[i] = i + 1;
    for (uint64_t i = 0; i < 3; i++)
        OK(pyr_write(array, (uint64_t[2]){i, i}, (uint64_t[2]){5, 4}, cells,
                     NULL));
    OK(pyr_tag(array, "good", 2));
}

static inline void
tear_down(void)
{
    pyr_array_close(array);
    pyr_close(store);
    tmp_remove(url);
}

static const char stale[] = "stale/marker";

/* A text of an earlier failure, that must be gone after the next. */
static inline void
make_stale(void)
{
    pyr_array *none = NULL;
    FAILS(PYR_ENOTFOUND, pyr_array_open(store, stale, &none));
    CHECK(none == NULL);
    CHECK(strstr(pyr_errmsg(), stale) != NULL);
}

static inline void
check_text(const char *call, const char *names)
{
    const char *text = pyr_errmsg();
    if (strstr(text, stale) || strlen(text) < 8)
        CHECK_NOTE("%s left no text of its own: \"%s\"", call, text);
    if (names && !strstr(text, names))
        CHECK_NOTE("%s: \"%s\" does not name \"%s\"", call, text, names);
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < ' ') {
            CHECK_NOTE("%s: control characters in the text", call);
            break;
        }
}

/* The call fails with the code, in words that hold `names` (may be NULL), and
 * nothing in the store is other than before. */
#define REFUSED(code, names, call)                                            \
    do {                                                                      \
        uint64_t check_print = fingerprint();                                 \
        make_stale();                                                         \
        FAILS(code, call);                                                    \
        check_text(#call, names);                                             \
        if (fingerprint() != check_print)                                     \
            CHECK_NOTE("%s changed something", #call);                        \
    } while (0)

#endif
