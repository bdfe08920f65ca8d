/*
 * cli/cmd_ls.c - pyramid ls: the arrays of a store.
 */
#include "cmd.h"

#include <string.h>

static const option options[] = {
    {"long", 'l', NULL, "type, shape, chunk and latest version too"},
    {NULL, 0, NULL, NULL},
};

typedef struct listing {
    pyr_store *store;
    json *j; /* NULL: text */
    bool detailed;
    int err;
} listing;

static int
get_info(pyr_store *store, const char *name, pyr_info *info)
{
    pyr_array *array;
    if (pyr_array_open(store, name, &array) < 0)
        return fail_pyr(name);
    int err = pyr_array_info(array, PYR_LATEST, info) < 0 ? fail_pyr(name) : 0;
    pyr_array_close(array);
    return err;
}

static void
list_json(json *j, const char *name, const pyr_info *info)
{
    json_open(j, NULL, '{');
    json_text(j, "name", name);
    if (info) {
        json_text(j, "type", type_name(info->type));
        json_list(j, "shape", info->ndim, info->shape);
        json_list(j, "chunk", info->ndim, info->chunk);
        json_u64(j, "latest", info->latest);
        json_time(j, "created", info->created_ns);
    }
    json_shut(j, '}');
}

static void
list_text(const char *name, const pyr_info *info)
{
    if (info) {
        printf("%-4s ", type_name(info->type));
        print_list("x", info->ndim, info->shape);
        printf("  chunk ");
        print_list("x", info->ndim, info->chunk);
        printf("  v%llu  ", (unsigned long long)info->latest);
        print_time(info->created_ns);
        printf("  ");
    }
    print_safe(stdout, name);
    putchar('\n');
}

static int
list_one(void *ctx, const char *name)
{
    listing *l = ctx;
    pyr_info info;
    if (l->detailed && (l->err = get_info(l->store, name, &info)))
        return 1;
    if (l->j)
        list_json(l->j, name, l->detailed ? &info : NULL);
    else
        list_text(name, l->detailed ? &info : NULL);
    return 0;
}

static int
list(const args *a, const target *t, json *j)
{
    listing l = {t->store, j, args_has(a, "long"), 0};
    if (j)
        json_open(j, NULL, '[');
    if (pyr_arrays(t->store, list_one, &l) < 0)
        return target_fail(t);
    if (j)
        json_shut(j, ']');
    return l.err;
}

static int
run(const args *a)
{
    target t;
    json j = {0};
    int err = target_store(a, PYR_OPEN_READONLY, &t);
    if (!err && a->json)
        err = json_begin(&j);
    if (!err)
        err = list(a, &t, a->json ? &j : NULL);
    if (!err && a->json)
        err = json_print(&j);
    json_drop(&j);
    target_close(&t);
    return err;
}

const verb verb_ls = {
    .name = "ls",
    .usage = "STORE [-l]",
    .about = "List the arrays of a store.",
    .examples = "  pyramid ls demo.pyr\n"
                "  pyramid ls demo.pyr -l\n",
    .options = options,
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
