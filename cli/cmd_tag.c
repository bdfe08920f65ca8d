/*
 * cli/cmd_tag.c - pyramid tag: names for snapshots.
 */
#include "cmd.h"

static const option options[] = {
    {"delete", 'd', "NAME", "take the tag away; its snapshot stays"},
    {NULL, 0, NULL, NULL},
};

static int
list_tag(void *ctx, const char *tag, pyr_version version)
{
    json *j = ctx;
    if (j) {
        json_u64(j, tag, version);
    } else {
        printf("%6llu  ", (unsigned long long)version);
        print_safe(stdout, tag);
        putchar('\n');
    }
    return 0;
}

static int
list(const args *a, const target *t)
{
    json j = {0};
    int err = a->json ? json_begin(&j) : 0;
    if (err)
        return err;
    if (a->json)
        json_open(&j, NULL, '{');
    if (pyr_tags(t->array, list_tag, a->json ? &j : NULL) < 0)
        err = target_fail(t);
    if (a->json)
        json_shut(&j, '}');
    if (!err && a->json)
        err = json_print(&j);
    json_drop(&j);
    return err;
}

static int
print_tagged(const args *a, const char *name, const pyr_version *version)
{
    json j;
    int err = 0;
    if (!a->json || (err = json_begin(&j)))
        return err;
    json_open(&j, NULL, '{');
    json_text(&j, "tag", name);
    if (version)
        json_u64(&j, "version", *version);
    else
        json_raw(&j, "version", "null");
    json_shut(&j, '}');
    return json_print(&j);
}

static int
set(const args *a, target *t)
{
    const char *name = a->words[2];
    pyr_version v;
    if (looks_like_version(name))
        return misuse(a->verb,
                      "tag: '%s' means a version, so it cannot name "
                      "one",
                      name);
    int err = target_version(a, t, a->nwords > 3 ? a->words[3] : NULL, &v);
    if (!err && pyr_tag(t->array, name, v) < 0)
        err = fail_pyr(name);
    return err ? err : print_tagged(a, name, &v);
}

static int
drop(const args *a, target *t, const char *name)
{
    if (a->nwords > 2)
        return misuse(a->verb, "tag: --delete %s leaves nothing for '%s'", name,
                      a->words[2]);
    if (pyr_untag(t->array, name) < 0)
        return fail_pyr(name);
    return print_tagged(a, name, NULL);
}

static int
run(const args *a)
{
    target t;
    const char *gone = args_value(a, "delete");
    bool lists = !gone && a->nwords == 2;
    int err = target_array(a, lists ? PYR_OPEN_READONLY : 0, &t);
    if (!err && gone)
        err = drop(a, &t, gone);
    else if (!err)
        err = lists ? list(a, &t) : set(a, &t);
    target_close(&t);
    return err;
}

const verb verb_tag = {
    .name = "tag",
    .usage = "STORE ARRAY [NAME [V]] [--delete NAME]",
    .about = "Name a snapshot, or list the names.",
    .more = "V is the latest version if it is not given; a tag that exists is "
            "moved. Wherever a\nversion is asked for, a tag will do.",
    .examples = "  pyramid tag demo.pyr t calibrated 12\n"
                "  pyramid tag demo.pyr t --delete calibrated\n",
    .options = options,
    .min_words = 2,
    .max_words = 4,
    .run = run,
};
