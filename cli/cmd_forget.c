/*
 * cli/cmd_forget.c - pyramid forget: snapshots that need not be kept.
 */
#include "cmd.h"

#include <string.h>

static const option options[] = {
    {"keep", 'k', "N", "the newest N versions stay, whatever is named"},
    {"older-than", 0, "N", "all that are more than N versions old"},
    {"tagged", 0, NULL, "tagged versions too, and their tags"},
    {NULL, 0, NULL, NULL},
};

typedef struct range {
    pyr_version first, last;
} range;

static int
parse_number(const args *a, const char *text, size_t n, pyr_version *out)
{
    char word[32];
    if (n == 0 || n >= sizeof word)
        return misuse(a->verb, "forget: '%s' is no version", text);
    memcpy(word, text, n);
    word[n] = 0;
    if (strcmp(word, "latest") == 0)
        *out = PYR_LATEST;
    else if (parse_u64(word, out) < 0)
        return misuse(a->verb, "forget: '%s' is no version", word);
    return 0;
}

/* V, or V1..V2. */
static int
parse_range(const args *a, target *t, const char *text, range *out)
{
    const char *dots = strstr(text, "..");
    if (!dots) {
        int err = target_version(a, t, text, &out->first);
        out->last = out->first;
        return err;
    }
    int err = parse_number(a, text, (size_t)(dots - text), &out->first);
    if (!err)
        err = parse_number(a, dots + 2, strlen(dots + 2), &out->last);
    return err;
}

/* Everything, but for what the options say. */
static int
whole_range(const args *a, const target *t, range *out)
{
    uint64_t age;
    int err = args_number(a, "older-than", UINT64_MAX, UINT64_MAX - 1, &age);
    *out = (range){0, PYR_LATEST};
    if (err || age == UINT64_MAX)
        return err;
    if (age >= t->info.latest) { /* nothing is that old */
        *out = (range){1, 0};
        return 0;
    }
    out->last = t->info.latest - age - 1;
    return 0;
}

static int
forget(const args *a, target *t, const range *r, uint64_t *all)
{
    uint64_t keep, n = 0;
    unsigned flags = args_has(a, "tagged") ? PYR_FORGET_TAGGED : 0;
    int err = args_number(a, "keep", 0, UINT64_MAX, &keep);
    if (err || r->first > r->last)
        return err;
    if (pyr_forget(t->array, r->first, r->last, keep, flags, &n) < 0)
        return target_fail(t);
    *all += n;
    return 0;
}

static int
print_forgotten(const args *a, uint64_t n)
{
    json j;
    int err = 0;
    if (!a->json) {
        if (!a->quiet)
            printf("%llu version%s forgotten; 'pyramid reclaim' gives back "
                   "the space\n", (unsigned long long)n, n == 1 ? "" : "s");
        return 0;
    }
    if ((err = json_begin(&j)))
        return err;
    json_open(&j, NULL, '{');
    json_u64(&j, "forgotten", n);
    json_shut(&j, '}');
    return json_print(&j);
}

static int
run(const args *a)
{
    target t;
    range r;
    uint64_t n = 0;
    if (a->nwords == 2 && !args_has(a, "keep") && !args_has(a, "older-than"))
        return misuse(a->verb, "forget: name versions, or say what to keep");
    if (a->nwords > 2 && args_has(a, "older-than"))
        return misuse(a->verb, "forget: --older-than does not go with named "
                               "versions");
    int err = target_array(a, 0, &t);
    if (!err && a->nwords == 2 && !(err = whole_range(a, &t, &r)))
        err = forget(a, &t, &r, &n);
    for (int i = 2; i < a->nwords && !err; i++)
        if (!(err = parse_range(a, &t, a->words[i], &r)))
            err = forget(a, &t, &r, &n);
    if (!err)
        err = print_forgotten(a, n);
    target_close(&t);
    return err;
}

const verb verb_forget = {
    .name = "forget",
    .usage = "STORE ARRAY [V | V1..V2]... [--keep N] [--older-than N] "
             "[--tagged]",
    .about = "Forget snapshots that need not be kept.",
    .more = "The newest version stays, and so do tagged ones unless --tagged "
            "is given. V1..V2\nincludes both. A forgotten snapshot cannot be "
            "read any more; clones of it are not\ntouched. 'pyramid reclaim' "
            "gives its space back.",
    .examples = "  pyramid forget demo.pyr t --keep 100\n"
                "  pyramid forget demo.pyr t 3 10..20\n"
                "  pyramid forget demo.pyr t --older-than 1000 --tagged\n",
    .options = options,
    .min_words = 2,
    .max_words = 64,
    .run = run,
};
