/*
 * cli/cmd_init.c - pyramid init: make a store.
 */
#include "cmd.h"

#include <stdlib.h>
#include <string.h>

static const option options[] = {
    {"durability", 0, "commit|os",
     "a write returns once on stable storage "
     "(commit),\n"
     "                         or with the "
     "operating system"},
    {"data", 0, "DIR", "keep chunk data in DIR; may be given several times"},
    {"lease", 0, "MS", "how long others wait for a silent writer, in ms"},
    {NULL, 0, NULL, NULL},
};

static int
parse_durability(const args *a, pyr_durability *out)
{
    const char *text = args_value(a, "durability");
    *out = PYR_DURABILITY_COMMIT;
    if (!text || strcmp(text, "commit") == 0)
        return 0;
    *out = PYR_DURABILITY_OS;
    if (strcmp(text, "os") == 0)
        return 0;
    return misuse(a->verb, "init: --durability '%s' is not commit or os", text);
}

/* The values of --data, ended by NULL; NULL if there is none. */
static const char **
data_dirs(const args *a)
{
    const char **dirs = calloc((size_t)a->ngiven + 1, sizeof *dirs);
    size_t n = 0;
    for (int i = 0; dirs && i < a->ngiven; i++)
        if (strcmp(a->given[i]->name, "data") == 0)
            dirs[n++] = a->values[i];
    return dirs;
}

static int
refuse_existing(const char *name)
{
    pyr_store *store;
    if (pyr_open(name, PYR_OPEN_READONLY, &store) < 0)
        return 0; /* if it is not just absent, making it tells why */
    pyr_close(store);
    return fail("%s: is a store already", name);
}

static int
make(const args *a, const pyr_store_options *how)
{
    pyr_store *store;
    json j;
    int err = refuse_existing(a->words[0]);
    if (err)
        return err;
    if (pyr_open_with(a->words[0], PYR_OPEN_CREATE, how, &store) < 0)
        return fail_pyr(a->words[0]);
    pyr_close(store);
    if (!a->json || (err = json_begin(&j)))
        return err;
    json_open(&j, NULL, '{');
    json_text(&j, "store", a->words[0]);
    json_shut(&j, '}');
    return json_print(&j);
}

static int
run(const args *a)
{
    pyr_store_options how = {0};
    uint64_t lease;
    int err = parse_durability(a, &how.durability);
    if (!err)
        err = args_number(a, "lease", 0, 86400000, &lease);
    if (err)
        return err;
    how.lease_ms = (unsigned)lease;
    const char **dirs = data_dirs(a);
    if (!dirs)
        return fail("out of memory");
    how.data = dirs[0] ? dirs : NULL;
    err = make(a, &how);
    free(dirs);
    return err;
}

const verb verb_init = {
    .name = "init",
    .usage = "STORE [--durability commit|os] [--data DIR]... [--lease MS]",
    .about = "Make a store, saying how it keeps what it is given.",
    .more = "'pyramid create' makes a store with the usual settings by "
            "itself; init is for\nother ones. They cannot be changed later.",
    .examples = "  pyramid init climate.pyr\n"
                "  pyramid init fast.pyr --durability os --data /ssd1/p "
                "--data /ssd2/p\n",
    .options = options,
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
