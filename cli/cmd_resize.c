/*
 * cli/cmd_resize.c - pyramid resize: a version of another shape.
 */
#include "cmd.h"

static const option options[] = {
    {"shape", 0, "N,N,...", "cells along each axis (needed)"},
    {NULL, 0, NULL, NULL},
};

static int
print_made(const args *a, pyr_version made, const extents *shape)
{
    json j;
    int err;
    if (!a->json) {
        printf("%llu\n", (unsigned long long)made);
        return 0;
    }
    if ((err = json_begin(&j)))
        return err;
    json_open(&j, NULL, '{');
    json_u64(&j, "version", made);
    json_list(&j, "shape", shape->n, shape->of);
    json_shut(&j, '}');
    return json_print(&j);
}

static int
run(const args *a)
{
    char why[WHY_SIZE];
    const char *text = args_value(a, "shape");
    extents shape;
    pyr_version made;
    target t;
    if (!text)
        return misuse(a->verb, "resize: --shape is needed");
    if (parse_extents(text, &shape, why) < 0)
        return misuse(a->verb, "resize: --shape %s", why);
    int err = target_array(a, 0, &t);
    if (!err && shape.n != t.info.ndim)
        err = fail("%s: --shape %s has %d numbers, the array has %d "
                   "dimensions",
                   t.array_name, text, shape.n, t.info.ndim);
    if (!err && pyr_resize(t.array, shape.of, &made) < 0)
        err = target_fail(&t);
    if (!err)
        err = print_made(a, made, &shape);
    target_close(&t);
    return err;
}

const verb verb_resize = {
    .name = "resize",
    .usage = "STORE ARRAY --shape N,N,...",
    .about = "Make a version of another shape; prints its number.",
    .more = "Cells inside both shapes stay. Earlier versions keep the shape "
            "they have.",
    .examples = "  pyramid resize demo.pyr t --shape 16384,8192\n"
                "  pyramid resize demo.pyr series --shape 0,100\n",
    .options = options,
    .min_words = 2,
    .max_words = 2,
    .run = run,
};
