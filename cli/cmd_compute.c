/*
 * cli/cmd_compute.c - pyramid compute: a function of a snapshot's cells
 * becomes a new version.
 */
#include "cmd.h"

static const option options[] = {
    {"version", 0, "V", "what x is: a number, latest, -1, a tag; latest"},
    {"box", 0, "BOX", "which cells, as NumPy slices without steps; all"},
    {"message", 'm', "TEXT", "to be kept in the history"},
    {"no-wait", 0, NULL, "do not wait for earlier versions to be published"},
    {NULL, 0, NULL, NULL},
};

/* Cells that both the source and the newest snapshot have. */
static int
common_shape(target *t)
{
    pyr_info newest;
    if (pyr_array_info(t->array, PYR_LATEST, &newest) < 0)
        return target_fail(t);
    for (int d = 0; d < t->info.ndim; d++)
        if (newest.shape[d] < t->info.shape[d])
            t->info.shape[d] = newest.shape[d];
    return 0;
}

static int
print_made(const args *a, const target *t, const box *b, pyr_version made)
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
    json_u64(&j, "source", t->info.version);
    json_list(&j, "offset", b->ndim, b->start);
    json_list(&j, "size", b->ndim, b->count);
    json_shut(&j, '}');
    return json_print(&j);
}

static int
run(const args *a)
{
    pyr_write_options how = {
        .flags = args_has(a, "no-wait") ? PYR_WRITE_NOWAIT : 0,
        .message = args_value(a, "message")};
    pyr_version made;
    target t;
    box b;
    int err = target_array(a, 0, &t);
    if (!err)
        err = target_snapshot(a, &t);
    if (!err)
        err = common_shape(&t);
    if (!err)
        err = target_plain_box(a, &t, &b);
    if (!err && pyr_compute_with(t.array, t.info.version, b.start, b.count,
                                 a->words[2], &how, &made) < 0)
        err = fail_function(a, &t);
    if (!err)
        err = print_made(a, &t, &b, made);
    target_close(&t);
    return err;
}

const verb verb_compute = {
    .name = "compute",
    .usage = "STORE ARRAY EXPR [--version V] [--box BOX] [-m TEXT] "
             "[--no-wait]",
    .about = "Apply a function to each cell; prints the new version.",
    .more =
        "Inside the box the new version has the function of the cells of "
        "version V, outside\nit what the version before it has, as after a "
        "write. No cell travels.\n\n"
        "EXPR is over x (the cell), x@7 (the same cell in version 7), i0, i1, "
        "... (its\ncoordinates) and numbers, with the operators of Python and "
        "where, clip, min, max,\nabs, sqrt, exp, log, sin, floor, isnan, f32, "
        "... Other names call kernels that are\ninstalled on this machine: "
        "median3(), gain(factor=2). 'man pyramid' tells more.",
    .examples = "  pyramid compute demo.pyr t 'x*1.8 + 32'\n"
                "  pyramid compute demo.pyr t 'where(isnan(x), 0, x)' "
                "--box 0:100\n"
                "  pyramid compute demo.pyr steps 'x - x@3' --version 4\n"
                "  pyramid compute demo.pyr images 'x - median3()'\n",
    .options = options,
    .min_words = 3,
    .max_words = 3,
    .run = run,
};
