/*
 * cli/cmd_reclaim.c - pyramid reclaim: the space of what was forgotten.
 */
#include "cmd.h"

static int
advance(void *ctx, uint64_t done, uint64_t total)
{
    progress_steps(ctx, done, total);
    return 0;
}

static int
show_json(const pyr_reclaimed *r)
{
    json j;
    int err = json_begin(&j);
    if (err)
        return err;
    json_open(&j, NULL, '{');
    json_u64(&j, "versions", r->versions);
    json_u64(&j, "left", r->left);
    json_u64(&j, "nodes", r->nodes);
    json_u64(&j, "fragments", r->fragments);
    json_u64(&j, "bytes", r->bytes);
    json_u64(&j, "returned", r->returned);
    json_u64(&j, "waiting", r->waiting);
    json_u64(&j, "folded", r->folded > 0 ? (uint64_t)r->folded : 0);
    json_shut(&j, '}');
    return json_print(&j);
}

static void
show_text(const pyr_reclaimed *r)
{
    char text[32];
    printf("%llu version%s gone, with %llu fragments and %llu nodes: %s\n",
           (unsigned long long)r->versions, r->versions == 1 ? "" : "s",
           (unsigned long long)r->fragments, (unsigned long long)r->nodes,
           bytes_text(r->bytes, text, sizeof text));
    if (r->folded > 0)
        printf("%s of versions that are kept, which others of them hide\n",
               bytes_text((uint64_t)r->folded, text, sizeof text));
    printf("%s given back to the file system\n",
           bytes_text(r->returned, text, sizeof text));
    if (r->waiting)
        printf("%s more when those who read them are done: run it again\n",
               bytes_text(r->waiting, text, sizeof text));
    if (r->left)
        printf("%llu stay: clones begin there, or writers need them\n",
               (unsigned long long)r->left);
}

static int
run(const args *a)
{
    target t;
    progress bar;
    pyr_reclaimed r;
    int err = target_store(a, 0, &t);
    if (err)
        return err;
    progress_begin_steps(&bar, a);
    pyr_progress tell = {advance, &bar};
    if (pyr_reclaim(t.store, &tell, &r) < 0)
        err = target_fail(&t);
    progress_end(&bar);
    if (!err && a->json)
        err = show_json(&r);
    else if (!err && !a->quiet)
        show_text(&r);
    target_close(&t);
    return err;
}

const verb verb_reclaim = {
    .name = "reclaim",
    .usage = "STORE",
    .about = "Give back the space of forgotten snapshots.",
    .more = "Only what no snapshot that is kept, no clone and no running "
            "reader needs goes. Others\nmay read and write meanwhile. If it "
            "is interrupted, the next one goes on. What\nwriters that died "
            "left behind goes too.",
    .examples = "  pyramid reclaim demo.pyr\n"
                "  pyramid reclaim demo.pyr --json\n",
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
