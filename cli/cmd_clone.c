/*
 * cli/cmd_clone.c - pyramid clone: a new array that starts as a snapshot.
 */
#include "cmd.h"

static const option options[] = {
    {"version", 0, "V", "the snapshot to start from; latest"},
    {NULL, 0, NULL, NULL},
};

static int
print_made(const args *a, const target *t)
{
    json j;
    int err = 0;
    if (!a->json || (err = json_begin(&j)))
        return err;
    json_open(&j, NULL, '{');
    json_text(&j, "array", a->words[2]);
    json_text(&j, "clone_of", t->array_name);
    json_u64(&j, "clone_version", t->info.version);
    json_shut(&j, '}');
    return json_print(&j);
}

static int
run(const args *a)
{
    target t;
    int err = target_array(a, 0, &t);
    if (!err)
        err = target_snapshot(a, &t);
    if (!err && pyr_clone(t.array, t.info.version, a->words[2], NULL) < 0)
        err = fail_pyr(a->words[2]);
    if (!err)
        err = print_made(a, &t);
    target_close(&t);
    return err;
}

const verb verb_clone = {
    .name = "clone",
    .usage = "STORE ARRAY NEWNAME [--version V]",
    .about = "Make a new array that starts as a snapshot of another.",
    .more = "It shares all cells, so it costs one record; later writes to "
            "either are not seen by\nthe other.",
    .examples = "  pyramid clone demo.pyr t t-experiment\n"
                "  pyramid clone demo.pyr t t-as-it-was --version 12\n",
    .options = options,
    .min_words = 3,
    .max_words = 3,
    .run = run,
};
