/*
 * cli/box.c - boxes written as NumPy slices.
 *
 *   10:20,5     rows 10 to 19 of column 5; the axis of an index is dropped
 *   :,-3:       the last three columns
 *   ...,::2     every second index of the last axis
 *
 * Axes that are not named are whole. Slices are clipped to the array, an index
 * outside of it is an error, and steps are 1 or more.
 */
#include "cmd.h"

#include <ctype.h>
#include <string.h>

typedef struct number {
    bool given, minus;
    uint64_t value;
} number;

static const char *
skip_space(const char *p)
{
    while (*p == ' ')
        p++;
    return p;
}

/* An optional whole number with a sign; NULL if it makes no sense. */
static const char *
take_number(const char *p, number *out)
{
    *out = (number){0};
    p = skip_space(p);
    if (*p == '-' || *p == '+') {
        out->minus = *p++ == '-';
        if (!isdigit((unsigned char)*p))
            return NULL;
    }
    for (; isdigit((unsigned char)*p); p++) {
        out->given = true;
        if (!mul_u64(out->value, 10, &out->value) ||
            __builtin_add_overflow(out->value, (uint64_t)(*p - '0'),
                                   &out->value))
            return NULL;
    }
    return skip_space(p);
}

/* Where a slice's end falls, clipped to the axis. */
static uint64_t
clip(const number *at, uint64_t extent, uint64_t missing)
{
    if (!at->given)
        return missing;
    if (at->minus && at->value > 0)
        return at->value < extent ? extent - at->value : 0;
    return at->value < extent ? at->value : extent;
}

static int
set_index(box *b, int axis, uint64_t extent, const number *at, char *why)
{
    bool back = at->minus && at->value > 0; /* -0 is 0 */
    if (back ? at->value > extent : at->value >= extent) {
        snprintf(why, WHY_SIZE, "index %s%llu is outside axis %d of %llu cells",
                 back ? "-" : "", (unsigned long long)at->value, axis,
                 (unsigned long long)extent);
        return FAILED;
    }
    b->start[axis] = back ? extent - at->value : at->value;
    b->count[axis] = b->step[axis] = 1;
    b->dropped[axis] = true;
    return 0;
}

static int
set_slice(box *b, int axis, uint64_t extent, const number *n, char *why)
{
    if (n[2].given && (n[2].minus || n[2].value == 0)) {
        snprintf(why, WHY_SIZE, "a step of %s%llu: steps are 1 or more",
                 n[2].minus ? "-" : "", (unsigned long long)n[2].value);
        return MISUSED;
    }
    uint64_t start = clip(&n[0], extent, 0);
    uint64_t stop = clip(&n[1], extent, extent);
    uint64_t step = n[2].given ? n[2].value : 1;
    uint64_t count = stop > start ? (stop - start - 1) / step + 1 : 0;
    b->start[axis] = start;
    b->count[axis] = count;
    b->step[axis] = count > 1 ? step : 1;
    return 0;
}

static int
bad_syntax(const char *text, char *why)
{
    snprintf(why, WHY_SIZE, "box '%.80s' is not written as 0:100,5,::2", text);
    return MISUSED;
}

/* One item of the list for one axis; *p moves behind it. */
static int
set_axis(box *b, int axis, uint64_t extent, const char **p, const char *text,
         char *why)
{
    number n[3] = {{0}};
    int parts = 0;
    const char *q = take_number(*p, &n[0]);
    while (q && *q == ':' && parts < 2)
        q = take_number(q + 1, &n[++parts]);
    if (!q || (*q && *q != ',') || (parts == 0 && !n[0].given))
        return bad_syntax(text, why);
    *p = q;
    return parts ? set_slice(b, axis, extent, n, why)
                 : set_index(b, axis, extent, &n[0], why);
}

static void
set_whole(box *b, int from, int to, const uint64_t *shape)
{
    for (int d = from; d < to; d++) {
        b->start[d] = 0;
        b->count[d] = shape[d];
        b->step[d] = 1;
        b->dropped[d] = false;
    }
}

/* How many axes a text names; *dots is how often it says "...". */
static int
count_items(const char *text, int *dots)
{
    int items = 1;
    *dots = 0;
    for (const char *p = text; *p; p++) {
        items += *p == ',';
        if (strncmp(p, "...", 3) == 0) {
            ++*dots;
            p += 2;
        }
    }
    return items - *dots;
}

int
box_parse(const char *text, int ndim, const uint64_t *shape, box *out,
          char *why)
{
    int dots, axis = 0, err;
    *out = (box){.ndim = ndim};
    set_whole(out, 0, ndim, shape);
    if (!text)
        return 0;
    int items = count_items(text, &dots);
    if (dots > 1) {
        snprintf(why, WHY_SIZE, "box '%.80s' has more than one '...'", text);
        return MISUSED;
    }
    for (const char *p = text;; p++) {
        p = skip_space(p);
        if (strncmp(p, "...", 3) == 0) {
            axis += items < ndim ? ndim - items : 0;
            p = skip_space(p + 3);
            if (*p && *p != ',')
                return bad_syntax(text, why);
        } else if (axis == ndim) {
            snprintf(why, WHY_SIZE, "box '%.80s' has more than %d axes", text,
                     ndim);
            return FAILED;
        } else if ((err = set_axis(out, axis, shape[axis], &p, text, why))) {
            return err;
        } else {
            axis++;
        }
        if (!*p)
            return 0;
    }
}

bool
box_is_strided(const box *b)
{
    for (int d = 0; d < b->ndim; d++)
        if (b->step[d] != 1)
            return true;
    return false;
}

/* Arrays hold fewer than 2^64 cells, so boxes of them do. */
uint64_t
box_cells(const box *b)
{
    uint64_t cells = 1;
    for (int d = 0; d < b->ndim; d++)
        cells *= b->count[d];
    return cells;
}

int
box_shape(const box *b, uint64_t *shape)
{
    int n = 0;
    for (int d = 0; d < b->ndim; d++)
        if (!b->dropped[d])
            shape[n++] = b->count[d];
    return n;
}
