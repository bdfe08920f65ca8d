/*
 * cli/cmd_attrs.c - pyramid attrs: the JSON attributes of an array.
 */
#include "cmd.h"

#include <stdlib.h>

static int
show(const args *a, const target *t)
{
    char *text;
    if (pyr_attributes(t->array, &text) < 0)
        return target_fail(t);
    puts(text);
    free(text);
    return 0;
}

static int
run(const args *a)
{
    target t;
    bool sets = a->nwords > 2;
    int err = target_array(a, sets ? 0 : PYR_OPEN_READONLY, &t);
    if (!err && sets && pyr_set_attributes(t.array, a->words[2]) < 0)
        err = target_fail(&t);
    if (!err && (!sets || a->json))
        err = show(a, &t);
    target_close(&t);
    return err;
}

const verb verb_attrs = {
    .name = "attrs",
    .usage = "STORE ARRAY [JSON]",
    .about = "Show or replace the attributes of an array, a JSON object.",
    .more = "They belong to the array, not to a version. With or without "
            "--json, what is shown is\nJSON.",
    .examples = "  pyramid attrs demo.pyr t\n"
                "  pyramid attrs demo.pyr t '{\"unit\": \"K\"}'\n",
    .min_words = 2,
    .max_words = 3,
    .run = run,
};
