/*
 * cli/cmd_last.c - pyramid last: which version changed a box last.
 */
#include "cmd.h"

static const option options[] = {
    {"version", 0, "V", "not after this one; latest"},
    {"box", 0, "BOX", "which cells, as NumPy slices without steps; all"},
    {NULL, 0, NULL, NULL},
};

static int
show(void *ctx, const pyr_change *change)
{
    json *j = ctx;
    if (j)
        json_change(j, change, NULL);
    else
        print_change(change);
    return 0;
}

static int
show_last(const args *a, const target *t, const box *b)
{
    pyr_version last;
    json j = {0};
    if (pyr_last_change(t->array, t->info.version, b->start, b->count, &last) <
        0)
        return target_fail(t);
    int err = a->json ? json_begin(&j) : 0;
    if (!err &&
        pyr_history(t->array, last, last, show, a->json ? &j : NULL) < 0)
        err = target_fail(t);
    if (!err && a->json)
        err = json_print(&j);
    json_drop(&j);
    return err;
}

static int
run(const args *a)
{
    return target_show_box(a, show_last);
}

const verb verb_last = {
    .name = "last",
    .usage = "STORE ARRAY [--box BOX] [--version V]",
    .about = "Show the version that last changed a box.",
    .more = "A line as of 'pyramid log'; version 0 means that nobody ever "
            "wrote there.",
    .examples = "  pyramid last demo.pyr t --box 100:200,7\n"
                "  pyramid last demo.pyr t --box :10 --version -5\n",
    .options = options,
    .min_words = 2,
    .max_words = 2,
    .run = run,
};
