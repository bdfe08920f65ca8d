/*
 * cli/cmd_log.c - pyramid log: the versions of an array, who made them, how.
 */
#include "cmd.h"

static const option options[] = {
    {"number", 'n', "N", "only the newest N versions"},
    {"reverse", 0, NULL, "oldest first"},
    {NULL, 0, NULL, NULL},
};

static int
show(void *ctx, const pyr_change *change)
{
    json *j = ctx;
    if (j)
        json_change(j, change);
    else
        print_change(change);
    return 0;
}

static int
walk(const args *a, const target *t, uint64_t most, json *j)
{
    pyr_version newest = t->info.latest;
    pyr_version oldest = most > newest ? 0 : newest - most + 1;
    bool reverse = args_has(a, "reverse");
    if (j)
        json_open(j, NULL, '[');
    if (most > 0 && pyr_history(t->array, reverse ? oldest : newest,
                                reverse ? newest : oldest, show, j) < 0)
        return target_fail(t);
    if (j)
        json_shut(j, ']');
    return 0;
}

static int
run(const args *a)
{
    target t;
    json j = {0};
    uint64_t most;
    int err = args_number(a, "number", UINT64_MAX, UINT64_MAX, &most);
    if (err)
        return err;
    err = target_array(a, PYR_OPEN_READONLY, &t);
    if (!err && a->json)
        err = json_begin(&j);
    if (!err)
        err = walk(a, &t, most, a->json ? &j : NULL);
    if (!err && a->json)
        err = json_print(&j);
    json_drop(&j);
    target_close(&t);
    return err;
}

const verb verb_log = {
    .name = "log",
    .usage = "STORE ARRAY [-n N] [--reverse]",
    .about = "List the versions of an array: when, who, what, and why.",
    .more = "One line for each: number, time, writer, kind, boxes, message. "
            "A run of strided blocks\nis shown as start+COUNTxSIZE/STRIDE. "
            "The kind 'nothing' is a writer that died.",
    .examples = "  pyramid log demo.pyr t -n 10\n"
                "  pyramid log demo.pyr t --reverse --json\n",
    .options = options,
    .min_words = 2,
    .max_words = 2,
    .run = run,
};
