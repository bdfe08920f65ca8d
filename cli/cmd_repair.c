/*
 * cli/cmd_repair.c - pyramid repair: drop what nothing needs, derive what can
 * be derived.
 */
#include "cmd.h"

#include "guard.h"
#include "harm.h"

#include <inttypes.h>

static const option options[] = {
    {"jobs", 'j', "N", "threads at work, 4 at most (default: one per core)"},
    {NULL, 0, NULL, NULL},
};

static void
show_counts(json *j, const void *counts)
{
    const pyr_repaired *r = counts;
    json_u64(j, "orphan_nodes", r->orphan_nodes);
    json_u64(j, "orphan_blobs", r->orphan_blobs);
    json_u64(j, "orphan_bytes", r->orphan_bytes);
    json_u64(j, "summaries", r->summaries);
    json_u64(j, "harms", r->harms);
}

static void
print_counts(const void *counts)
{
    const pyr_repaired *r = counts;
    char text[32];
    printf("%" PRIu64 " nodes and %" PRIu64 " fragments that nothing needed "
           "are gone: %s\n",
           r->orphan_nodes, r->orphan_blobs,
           bytes_text(r->orphan_bytes, text, sizeof text));
    printf("%" PRIu64 " summaries rebuilt\n", r->summaries);
}

static int
walk(pyr_store *store, const pyr_verify_spec *spec, void *counts,
     uint64_t *harms)
{
    pyr_repaired *r = counts;
    int err = pyr_repair(store, spec, r);
    *harms = r->harms;
    return err;
}

static int
run_inside(const args *a)
{
    pyr_repaired counts = {0};
    const walk_verb w = {0, true, walk, show_counts, print_counts,
                         " beyond repair"};
    return harm_run(a, &w, &counts);
}

static int
run(const args *a)
{
    return guard(a, run_inside);
}

const verb verb_repair = {
    .name = "repair",
    .usage = "STORE [--jobs N]",
    .about = "Drop what nothing needs, and rebuild what can be derived.",
    .more = "Reads every cell, as verify --deep does. Nodes and fragments that "
            "no version needs go;\nsummaries that are not those of the cells "
            "are rebuilt. Cells that are harmed are\nlisted and left as they "
            "are: they are never guessed. Others may use the store meanwhile.",
    .examples = "  pyramid repair demo.pyr\n"
                "  pyramid repair demo.pyr --json\n",
    .options = options,
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
