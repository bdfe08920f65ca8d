/*
 * cli/cmd_wait.c - pyramid wait: until a version is published.
 */
#include "cmd.h"

#include <limits.h>
#include <string.h>

static const option options[] = {
    {"timeout", 0, "MS", "give up after so many milliseconds"},
    {NULL, 0, NULL, NULL},
};

/* A plain number need not be published yet; the other forms always are. */
static int
wanted_version(const args *a, target *t, pyr_version *out)
{
    const char *text = a->words[2];
    if (text[0] == '-' || strcmp(text, "latest") == 0 ||
        !looks_like_version(text))
        return target_version(a, t, text, out);
    if (parse_u64(text, out) < 0 || *out == PYR_LATEST)
        return misuse(a->verb, "wait: version '%s' is too large", text);
    return 0;
}

static int
run(const args *a)
{
    target t;
    pyr_version v;
    uint64_t timeout;
    json j;
    int err = args_number(a, "timeout", INT_MAX, INT_MAX, &timeout);
    if (err)
        return err;
    int ms = args_has(a, "timeout") ? (int)timeout : -1;
    err = target_array(a, 0, &t);
    if (!err)
        err = wanted_version(a, &t, &v);
    if (!err && pyr_wait(t.array, v, ms) < 0)
        err = target_fail(&t);
    target_close(&t);
    if (err || !a->json || (err = json_begin(&j)))
        return err;
    json_open(&j, NULL, '{');
    json_u64(&j, "version", v);
    json_shut(&j, '}');
    return json_print(&j);
}

const verb verb_wait = {
    .name = "wait",
    .usage = "STORE ARRAY V [--timeout MS]",
    .about = "Wait until a version is published.",
    .more = "For versions made with 'pyramid write --no-wait'. A writer that "
            "died in the way is\nresolved. Exits with 1 if the time is up.",
    .examples = "  pyramid wait demo.pyr t 17\n"
                "  pyramid wait demo.pyr t 17 --timeout 5000\n",
    .options = options,
    .min_words = 3,
    .max_words = 3,
    .run = run,
};
