/*
 * op/lexer.c - from bytes to tokens. Any bytes: what is no token is an error.
 */
#include "op/syntax.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* By hand: isalpha() and its like depend on the locale. */
static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool
is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* --- signs ---------------------------------------------------------------- */

static const struct sign {
    char text[3];
    uint8_t token;
} signs[] = {
    /* longer ones first */
    {"||", TOK_OR},    {"&&", TOK_AND},    {"==", TOK_EQ},
    {"!=", TOK_NE},    {"<=", TOK_LE},     {">=", TOK_GE},
    {"<<", TOK_SHL},   {">>", TOK_SHR},    {"//", TOK_FLOORDIV},
    {"**", TOK_POW},   {"<", TOK_LT},      {">", TOK_GT},
    {"|", TOK_BIT_OR}, {"^", TOK_BIT_XOR}, {"&", TOK_BIT_AND},
    {"+", TOK_ADD},    {"-", TOK_SUB},     {"*", TOK_MUL},
    {"/", TOK_DIV},    {"%", TOK_MOD},     {"!", TOK_NOT},
    {"~", TOK_INVERT}, {"(", TOK_OPEN},    {")", TOK_CLOSE},
    {",", TOK_COMMA},  {"=", TOK_ASSIGN},  {"@", TOK_AT},
};

static int
lex_sign(pyri_parse *p)
{
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        size_t n = strlen(signs[i].text);
        if (strncmp(p->at, signs[i].text, n) == 0) {
            p->token = (pyri_token)signs[i].token;
            p->at += n;
            return 0;
        }
    }
    unsigned char c = (unsigned char)*p->at;
    if (c > ' ' && c < 0x7f)
        return pyri_parse_fail(p, p->column, "'%c' means nothing here", c);
    return pyri_parse_fail(p, p->column, "byte 0x%02x means nothing here", c);
}

/* --- names ---------------------------------------------------------------- */

static int
lex_name(pyri_parse *p)
{
    size_t n = 0;
    while (is_letter(p->at[n]) || is_digit(p->at[n]))
        n++;
    if (n >= sizeof p->name)
        return pyri_parse_fail(p, p->column, "a name of more than %d letters",
                               PYRI_CALL_MAX_NAME);
    memcpy(p->name, p->at, n);
    p->name[n] = 0;
    p->at += n;
    p->token = strcmp(p->name, "and") == 0   ? TOK_AND
               : strcmp(p->name, "or") == 0  ? TOK_OR
               : strcmp(p->name, "not") == 0 ? TOK_NOT_WORD
                                             : TOK_NAME;
    return 0;
}

/* --- numbers -------------------------------------------------------------- */

static int
digit_value(char c)
{
    if (is_digit(c))
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

static int
lex_whole(pyri_parse *p, unsigned base)
{
    const char *first = p->at;
    p->whole = 0;
    p->token = TOK_INT;
    for (; digit_value(*p->at) < (int)base; p->at++)
        if (__builtin_mul_overflow(p->whole, base, &p->whole) ||
            __builtin_add_overflow(p->whole, (uint64_t)digit_value(*p->at),
                                   &p->whole))
            return pyri_parse_fail(p, p->column,
                                   "an integer of more than 64 bits; as a "
                                   "real it has a point or an exponent");
    if (p->at == first)
        return pyri_parse_fail(p, p->column, "hexadecimal digits are missing");
    return 0;
}

static size_t
digits(const char *at)
{
    size_t n = 0;
    while (is_digit(at[n]))
        n++;
    return n;
}

/* The bytes of a real that starts here, or 0 if it is an integer. */
static size_t
real_size(const char *at)
{
    size_t n = digits(at);
    bool real = at[n] == '.';
    if (real)
        n += 1 + digits(at + n + 1);
    if (at[n] == 'e' || at[n] == 'E') {
        size_t sign = at[n + 1] == '+' || at[n + 1] == '-';
        size_t exponent = digits(at + n + 1 + sign);
        if (exponent)
            return n + 1 + sign + exponent;
    }
    return real ? n : 0;
}

static int
lex_number(pyri_parse *p)
{
    size_t n = real_size(p->at);
    int err = 0;
    if (p->at[0] == '0' && (p->at[1] | 0x20) == 'x') {
        p->at += 2;
        err = lex_whole(p, 16);
    } else if (n == 0) {
        err = lex_whole(p, 10);
    } else {
        /* expr.c has set the C locale. Nothing after the n bytes could make
         * it longer: strtod() takes what real_size() does. */
        p->real = strtod(p->at, NULL);
        p->token = TOK_REAL;
        p->at += n;
    }
    if (err == 0 && (is_letter(*p->at) || is_digit(*p->at) || *p->at == '.'))
        return pyri_parse_fail(p, (unsigned)(p->at - p->text) + 1,
                               "'%c' after a number", *p->at);
    return err;
}

int
pyri_lex(pyri_parse *p)
{
    while (*p->at == ' ' || (*p->at >= '\t' && *p->at <= '\r'))
        p->at++;
    if (*p->at == '#') /* a remark */
        p->at += strlen(p->at);
    p->column = (unsigned)(p->at - p->text) + 1;
    if (*p->at == 0) {
        p->token = TOK_END;
        return 0;
    }
    if (is_digit(*p->at) || (*p->at == '.' && is_digit(p->at[1])))
        return lex_number(p);
    return is_letter(*p->at) ? lex_name(p) : lex_sign(p);
}
