/*
 * cli/cmd_append.c - pyramid append: grow an array by a .npy file.
 */
#include "cmd.h"

static const option options[] = {
    {"axis", 0, "N", "along which to grow; 0"},
    {NULL, 0, NULL, NULL},
};

static int
check_fit(const source *in, const target *t, int axis)
{
    const pyr_info *info = &t->info;
    if (in->npy.type != info->type)
        return fail("%s: has cells of type %s, array %s has %s", in->name,
                    type_name(in->npy.type), t->array_name,
                    type_name(info->type));
    for (int d = 0; d < info->ndim; d++)
        if (d != axis && in->npy.shape[d] != info->shape[d])
            return fail("%s: has %llu cells along axis %d, array %s has %llu",
                        in->name, (unsigned long long)in->npy.shape[d], d,
                        t->array_name, (unsigned long long)info->shape[d]);
    return 0;
}

static int
append(source *in, const target *t, int axis, uint64_t *at, pyr_version *made)
{
    const void *cells;
    int err = source_raise(in, t->info.ndim);
    if (!err)
        err = check_fit(in, t, axis);
    if (!err)
        err = source_dense(in, &cells);
    if (!err &&
        pyr_append(t->array, axis, in->npy.shape[axis], cells, at, made) < 0)
        err = target_fail(t);
    return err;
}

static int
print_made(const args *a, const source *in, int axis, uint64_t at,
           pyr_version made)
{
    json j;
    int err;
    if (!a->json) {
        printf("%llu at %llu\n", (unsigned long long)made,
               (unsigned long long)at);
        return 0;
    }
    if ((err = json_begin(&j)))
        return err;
    json_open(&j, NULL, '{');
    json_u64(&j, "version", made);
    json_u64(&j, "axis", (uint64_t)axis);
    json_u64(&j, "at", at);
    json_u64(&j, "count", in->npy.shape[axis]);
    json_shut(&j, '}');
    return json_print(&j);
}

static int
run(const args *a)
{
    target t = {0};
    source in = {.fd = -1};
    uint64_t axis, at = 0;
    pyr_version made = 0;
    int err = args_number(a, "axis", 0, PYR_MAX_DIMS - 1, &axis);
    if (!err)
        err = target_array(a, 0, &t);
    if (!err && axis >= (uint64_t)t.info.ndim)
        err = fail("%s: has no axis %d, only %d dimensions", t.array_name,
                   (int)axis, t.info.ndim);
    if (!err)
        err = source_open(&in, a->words[2]);
    if (!err)
        err = append(&in, &t, (int)axis, &at, &made);
    if (!err)
        err = print_made(a, &in, (int)axis, at, made);
    source_close(&in);
    target_close(&t);
    return err;
}

const verb verb_append = {
    .name = "append",
    .usage = "STORE ARRAY [--axis N] FILE.npy|-",
    .about = "Grow an array by a .npy file; prints the new version and where.",
    .more = "Any number of appenders may run at once; each gets cells of its "
            "own. All other axes\nof the file must be as large as the "
            "array's; leading axes of size 1 may be left out.",
    .examples = "  pyramid append demo.pyr series day.npy\n"
                "  pyramid append demo.pyr series --axis 1 column.npy\n",
    .options = options,
    .min_words = 3,
    .max_words = 3,
    .run = run,
};
