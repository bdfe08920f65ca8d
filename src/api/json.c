/*
 * api/json.c - is a text one JSON object? (RFC 8259; nothing is kept of it.)
 */
#include "api/handle.h"

#include <string.h>

enum { MAX_DEPTH = 64 };

typedef struct text {
    const char *start, *at;
    int depth;
} text;

static bool value(text *t);

static void
space(text *t)
{
    t->at += strspn(t->at, " \t\r\n");
}

static bool
literal(text *t, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(t->at, word, n) != 0)
        return false;
    t->at += n;
    return true;
}

static bool
escape(text *t)
{
    t->at++;
    if (*t->at == 'u') {
        t->at++;
        if (strspn(t->at, "0123456789abcdefABCDEF") < 4)
            return false;
        t->at += 4;
        return true;
    }
    if (!*t->at || !strchr("\"\\/bfnrt", *t->at))
        return false;
    t->at++;
    return true;
}

static bool
string(text *t)
{
    if (*t->at++ != '"')
        return false;
    while (*t->at != '"') {
        size_t n = pyri_utf8_length(t->at);
        if ((unsigned char)*t->at < 0x20 || n == 0)
            return false;
        if (*t->at != '\\')
            t->at += n;
        else if (!escape(t))
            return false;
    }
    t->at++;
    return true;
}

static bool
digits(text *t)
{
    size_t n = strspn(t->at, "0123456789");
    t->at += n;
    return n > 0;
}

static bool
number(text *t)
{
    if (*t->at == '-')
        t->at++;
    if (*t->at == '0')
        t->at++;
    else if (!digits(t))
        return false;
    if (*t->at == '.' && (t->at++, !digits(t)))
        return false;
    if (*t->at == 'e' || *t->at == 'E') {
        t->at++;
        t->at += *t->at == '+' || *t->at == '-';
        return digits(t);
    }
    return true;
}

/* Elements of an array or object, up to its closing bracket. */
static bool
elements(text *t, char close, bool named)
{
    t->at++;
    space(t);
    if (*t->at == close) {
        t->at++;
        return true;
    }
    while (true) {
        space(t);
        if (named) {
            if (!string(t))
                return false;
            space(t);
            if (*t->at++ != ':')
                return false;
        }
        if (!value(t))
            return false;
        space(t);
        if (*t->at == close) {
            t->at++;
            return true;
        }
        if (*t->at++ != ',')
            return false;
    }
}

static bool
value(text *t)
{
    bool good;
    space(t);
    if (++t->depth > MAX_DEPTH)
        return false;
    switch (*t->at) {
    case '{': good = elements(t, '}', true); break;
    case '[': good = elements(t, ']', false); break;
    case '"': good = string(t); break;
    case 't': good = literal(t, "true"); break;
    case 'f': good = literal(t, "false"); break;
    case 'n': good = literal(t, "null"); break;
    default: good = number(t); break;
    }
    t->depth--;
    return good;
}

int
pyri_check_json(const char *json)
{
    text t = {json, json, 0};
    space(&t);
    bool good = *t.at == '{' && value(&t);
    if (good)
        space(&t);
    if (!good || *t.at)
        return pyri_fail(PYR_EINVAL,
                         "attributes must be one JSON object; this text stops "
                         "being one at byte %zu",
                         (size_t)(t.at - t.start));
    return 0;
}
