/*
 * cli/args.c - options and words of a command line, against a verb's table.
 *
 * Options stand anywhere after the verb: --name value, --name=value, -n value,
 * -nvalue. A word of '-' and digits is a word (a version counted back from the
 * latest), "-" alone too (standard input or output); "--" ends the options.
 */
#include "cmd.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const option common[] = {
    {"json", 0, NULL, "print one JSON document instead of text"},
    {"quiet", 'q', NULL, "no progress bar"},
    {"help", 'h', NULL, "show this and exit"},
    {NULL, 0, NULL, NULL},
};

static const option *
find_in(const option *list, const char *name, size_t n, char letter)
{
    for (const option *o = list; o && o->name; o++)
        if (name ? strlen(o->name) == n && memcmp(o->name, name, n) == 0
                 : o->letter == letter)
            return o;
    return NULL;
}

static const option *
find(const verb *v, const char *name, size_t n, char letter)
{
    const option *o = find_in(v->options, name, n, letter);
    return o ? o : find_in(common, name, n, letter);
}

static void
note(args *a, const option *o, const char *value)
{
    a->given[a->ngiven] = o;
    a->values[a->ngiven++] = value ? value : "";
    a->json |= o == &common[0];
    a->quiet |= o == &common[1];
    a->help |= o == &common[2];
}

/* Take the option at argv[*i], and its value, which may be the next word. */
static int
take(args *a, int argc, char **argv, int *i)
{
    const char *word = argv[*i], *value = NULL;
    bool is_long = word[1] == '-';
    size_t n = is_long ? strcspn(word + 2, "=") : 1;
    const option *o = is_long ? find(a->verb, word + 2, n, 0)
                              : find(a->verb, NULL, 0, word[1]);
    if (!o)
        return misuse(a->verb, "%s: unknown option '%.*s'", a->verb->name,
                      (int)(n + 1 + is_long), word);
    if (is_long && word[2 + n] == '=')
        value = word + 3 + n;
    else if (!is_long && word[2])
        value = word + 2;
    if (!o->value && value)
        return misuse(a->verb, "%s: option '--%s' takes no value",
                      a->verb->name, o->name);
    if (o->value && !value && *i + 1 >= argc)
        return misuse(a->verb, "%s: option '--%s' needs a value %s",
                      a->verb->name, o->name, o->value);
    if (o->value && !value)
        value = argv[++*i];
    note(a, o, value);
    return 0;
}

static bool
is_option(const char *word)
{
    return word[0] == '-' && word[1] && !isdigit((unsigned char)word[1]);
}

static int
count_words(const args *a)
{
    if (a->help)
        return 0;
    if (a->nwords < a->verb->min_words)
        return misuse(a->verb, "%s: too few arguments: 'pyramid %s %s'",
                      a->verb->name, a->verb->name, a->verb->usage);
    if (a->nwords > a->verb->max_words)
        return misuse(a->verb, "%s: unexpected argument '%s'", a->verb->name,
                      a->words[a->verb->max_words]);
    return 0;
}

int
args_parse(args *a, const verb *v, int argc, char **argv)
{
    size_t n = (size_t)argc + 1;
    *a = (args){.verb = v};
    a->words = calloc(n, sizeof *a->words);
    a->given = calloc(n, sizeof *a->given);
    a->values = calloc(n, sizeof *a->values);
    if (!a->words || !a->given || !a->values)
        return fail("out of memory");
    bool options = true;
    int err = 0;
    for (int i = 0; i < argc && !err; i++) {
        if (options && strcmp(argv[i], "--") == 0)
            options = false;
        else if (options && is_option(argv[i]))
            err = take(a, argc, argv, &i);
        else
            a->words[a->nwords++] = argv[i];
    }
    return err ? err : count_words(a);
}

void
args_free(args *a)
{
    free(a->words);
    free(a->given);
    free(a->values);
}

bool
args_has(const args *a, const char *name)
{
    return args_value(a, name) != NULL;
}

const char *
args_value(const args *a, const char *name)
{
    for (int i = a->ngiven - 1; i >= 0; i--)
        if (strcmp(a->given[i]->name, name) == 0)
            return a->values[i];
    return NULL;
}

int
args_number(const args *a, const char *name, uint64_t missing, uint64_t max,
            uint64_t *out)
{
    const char *text = args_value(a, name);
    *out = missing;
    if (!text)
        return 0;
    if (parse_u64(text, out) < 0 || *out > max)
        return misuse(a->verb, "%s: --%s '%s' is not a number from 0 to %llu",
                      a->verb->name, name, text, (unsigned long long)max);
    return 0;
}

static void
option_help(const option *o, FILE *out)
{
    char left[64];
    snprintf(left, sizeof left, "%s%.1s%s--%s%s%s", o->letter ? "-" : "",
             o->letter ? &o->letter : "", o->letter ? ", " : "", o->name,
             o->value ? " " : "", o->value ? o->value : "");
    fprintf(out, "  %-22s %s\n", left, o->help);
}

void
verb_help(const verb *v, FILE *out)
{
    fprintf(out, "%s\n\nUsage: pyramid %s %s\n", v->about, v->name, v->usage);
    if (v->more)
        fprintf(out, "\n%s\n", v->more);
    fputs("\nOptions:\n", out);
    for (const option *o = v->options; o && o->name; o++)
        option_help(o, out);
    for (const option *o = common; o->name; o++)
        option_help(o, out);
    fprintf(out, "\nExamples:\n%s", v->examples);
}
