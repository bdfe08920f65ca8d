/*
 * cli/cmd_verify.c - pyramid verify: is everything whole that is kept?
 */
#include "cmd.h"

#include "guard.h"
#include "harm.h"

#include <inttypes.h>

static const option options[] = {
    {"deep", 0, NULL, "read every cell; else the index and heads only"},
    {"jobs", 'j', "N", "threads at work, 4 at most (default: one per core)"},
    {NULL, 0, NULL, NULL},
};

static void
show_counts(json *j, const void *counts)
{
    const pyr_verified *v = counts;
    json_u64(j, "arrays", v->arrays);
    json_u64(j, "versions", v->versions);
    json_u64(j, "nodes", v->nodes);
    json_u64(j, "fragments", v->fragments);
    json_u64(j, "bytes", v->bytes);
    json_u64(j, "harms", v->harms);
    json_u64(j, "orphan_nodes", v->orphan_nodes);
    json_u64(j, "orphan_blobs", v->orphan_blobs);
    json_u64(j, "orphan_bytes", v->orphan_bytes);
}

static void
print_counts(const void *counts)
{
    const pyr_verified *v = counts;
    char text[32];
    printf("%" PRIu64 " arrays, %" PRIu64 " versions, %" PRIu64
           " nodes, %" PRIu64 " fragments, %s read\n",
           v->arrays, v->versions, v->nodes, v->fragments,
           bytes_text(v->bytes, text, sizeof text));
    if (v->orphan_nodes || v->orphan_blobs)
        printf("%" PRIu64 " nodes and %" PRIu64 " fragments that nothing "
               "needs, %s: see 'pyramid repair'\n",
               v->orphan_nodes, v->orphan_blobs,
               bytes_text(v->orphan_bytes, text, sizeof text));
}

static int
walk(pyr_store *store, const pyr_verify_spec *spec, void *counts,
     uint64_t *harms)
{
    pyr_verified *v = counts;
    int err = pyr_verify(store, spec, v);
    *harms = v->harms;
    return err;
}

static int
run_inside(const args *a)
{
    pyr_verified counts = {0};
    const walk_verb w = {PYR_OPEN_READONLY, args_has(a, "deep"), walk, show_counts, print_counts,
                         ""};
    return harm_run(a, &w, &counts);
}

static int
run(const args *a)
{
    return guard(a, run_inside);
}

const verb verb_verify = {
    .name = "verify",
    .usage = "STORE [--deep] [--jobs N]",
    .about = "Check that everything that is kept is whole.",
    .more = "Walks all snapshots of all arrays, each node and fragment once. "
            "One line for each thing\nthat is harmed: array, the first "
            "version that shows it, the box that cannot be read\nor trusted, "
            "and why; then the exit status is 1. With --deep every cell is "
            "read, its\nchecksum compared, and summaries with the cells. "
            "Others may use the store meanwhile.",
    .examples = "  pyramid verify demo.pyr\n"
                "  pyramid verify demo.pyr --deep --jobs 4 --json\n",
    .options = options,
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
