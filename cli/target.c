/*
 * cli/target.c - the store, the array and the snapshot a command is about.
 */
#include "cmd.h"

#include <ctype.h>
#include <string.h>

int
target_store(const args *a, unsigned flags, target *t)
{
    *t = (target){.store_name = a->words[0]};
    if (pyr_open(t->store_name, flags, &t->store) < 0)
        return fail_pyr(t->store_name);
    return 0;
}

int
target_array(const args *a, unsigned flags, target *t)
{
    int err = target_store(a, flags, t);
    if (err)
        return err;
    t->array_name = a->words[1];
    if (pyr_array_open(t->store, t->array_name, &t->array) < 0 ||
        pyr_array_info(t->array, PYR_LATEST, &t->info) < 0)
        return target_fail(t);
    return 0;
}

void
target_close(target *t)
{
    pyr_array_close(t->array);
    pyr_close(t->store);
    *t = (target){0};
}

int
target_fail(const target *t)
{
    return fail_pyr(t->array_name ? t->array_name : t->store_name);
}

bool
looks_like_version(const char *text)
{
    if (strcmp(text, "latest") == 0)
        return true;
    text += *text == '-';
    return *text && strspn(text, "0123456789") == strlen(text);
}

static int
count_back(const args *a, const target *t, const char *text, pyr_version *out)
{
    uint64_t back;
    if (parse_u64(text + 1, &back) < 0)
        return misuse(a->verb, "version '%s' is too large", text);
    if (back > t->info.latest)
        return fail("%s: version %s is before version 0 (latest is %llu)",
                    t->array_name, text, (unsigned long long)t->info.latest);
    *out = t->info.latest - back;
    return 0;
}

int
target_version(const args *a, target *t, const char *text, pyr_version *out)
{
    if (!text || strcmp(text, "latest") == 0) {
        *out = t->info.latest;
        return 0;
    }
    if (text[0] == '-' && looks_like_version(text))
        return count_back(a, t, text, out);
    if (!looks_like_version(text)) {
        if (pyr_tag_version(t->array, text, out) < 0)
            return target_fail(t);
        return 0;
    }
    if (parse_u64(text, out) < 0 || *out == PYR_LATEST)
        return misuse(a->verb, "version '%s' is too large", text);
    pyr_info info;
    return pyr_array_info(t->array, *out, &info) < 0 ? target_fail(t) : 0;
}

int
target_snapshot(const args *a, target *t)
{
    pyr_version v;
    int err = target_version(a, t, args_value(a, "version"), &v);
    if (!err && pyr_array_info(t->array, v, &t->info) < 0)
        err = target_fail(t);
    return err;
}

int
target_box(const args *a, const target *t, box *out)
{
    char why[WHY_SIZE];
    int err = box_parse(args_value(a, "box"), t->info.ndim, t->info.shape, out,
                        why);
    if (err == MISUSED)
        return misuse(a->verb, "%s: %s", a->verb->name, why);
    return err ? fail("%s: %s", t->array_name, why) : 0;
}

int
fail_function(const args *a, const target *t)
{
    char text[8192], *rest;
    snprintf(text, sizeof text, "%s", pyr_errmsg());
    if (!(rest = strchr(text, '\n')))
        return target_fail(t);
    *rest++ = 0;
    misuse(a->verb, "%s: %s", a->verb->name, text);
    for (char *end = rest; rest; rest = end) {
        if ((end = strchr(rest, '\n')))
            *end++ = 0;
        print_safe(stderr, rest);
        fputc('\n', stderr);
    }
    return MISUSED;
}

int
target_plain_box(const args *a, const target *t, box *out)
{
    int err = target_box(a, t, out);
    if (!err && box_is_strided(out))
        err = misuse(a->verb, "%s: steps are only for 'pyramid read'",
                     a->verb->name);
    return err;
}

int
target_show_box(const args *a, show_box_fn *show)
{
    target t;
    box b;
    int err = target_array(a, PYR_OPEN_READONLY, &t);
    if (!err)
        err = target_snapshot(a, &t);
    if (!err)
        err = target_plain_box(a, &t, &b);
    if (!err)
        err = show(a, &t, &b);
    target_close(&t);
    return err;
}
