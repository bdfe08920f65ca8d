/*
 * cli/cmd_repair.c - pyramid repair: drop what nothing needs, derive what can
 * be derived.
 */
#include "cmd.h"

#include "guard.h"
#include "harm.h"

#include <inttypes.h>

static const option options[] = {
    {"jobs", 'j', "N", "threads at work (default: one per core)"},
    {NULL, 0, NULL, NULL},
};

static void
show_counts(json *j, const pyr_repaired *r)
{
    json_u64(j, "orphan_nodes", r->orphan_nodes);
    json_u64(j, "orphan_blobs", r->orphan_blobs);
    json_u64(j, "orphan_bytes", r->orphan_bytes);
    json_u64(j, "summaries", r->summaries);
    json_u64(j, "harms", r->harms);
}

static void
print_counts(const pyr_repaired *r)
{
    char text[32];
    printf("%" PRIu64 " nodes and %" PRIu64 " fragments that nothing needed "
           "are gone: %s\n",
           r->orphan_nodes, r->orphan_blobs,
           bytes_text(r->orphan_bytes, text, sizeof text));
    printf("%" PRIu64 " summaries rebuilt\n", r->summaries);
}

static int
repair(const args *a, const target *t, unsigned jobs, harm_list *harms)
{
    pyr_repaired r;
    pyr_verify_spec spec = {.deep = 1, .jobs = jobs};
    harm_attach(harms, &spec);
    int rc = pyr_repair(t->store, &spec, &r);
    harm_end(harms);
    if (rc < 0)
        return target_fail(t);
    if (a->json) {
        show_counts(&harms->json, &r);
        json_shut(&harms->json, '}');
        if (json_print(&harms->json))
            return FAILED;
    } else if (!a->quiet) {
        print_counts(&r);
    }
    if (r.harms == 0)
        return 0;
    return fail("%s: %" PRIu64 " thing%s harmed beyond repair", t->store_name,
                r.harms, r.harms == 1 ? " is" : "s are");
}

static int
run_inside(const args *a)
{
    target t;
    harm_list harms = {.args = a};
    uint64_t jobs;
    int err = args_number(a, "jobs", 0, 1024, &jobs);
    if (err)
        return err;
    err = target_store(a, 0, &t);
    if (!err)
        err = harm_begin(&harms);
    if (!err)
        err = repair(a, &t, (unsigned)jobs, &harms);
    json_drop(&harms.json);
    target_close(&t);
    return err;
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
