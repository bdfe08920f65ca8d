/*
 * cli/cmd_fold.c - pyramid fold: newest snapshots that read like fresh ones.
 */
#include "cmd.h"

enum { MOST_ARRAYS = 63 };

static int
advance(void *ctx, uint64_t done, uint64_t total)
{
    progress_steps(ctx, done, total);
    return 0;
}

static int
show_json(const pyr_folded *f)
{
    json j;
    int err = json_begin(&j);
    if (err)
        return err;
    json_open(&j, NULL, '{');
    json_u64(&j, "chunks", f->chunks);
    json_u64(&j, "fragments", f->fragments);
    json_u64(&j, "written", f->written);
    json_u64(&j, "erased", f->erased);
    json_u64(&j, "left", f->left);
    json_shut(&j, '}');
    return json_print(&j);
}

static void
show_text(const pyr_folded *f)
{
    char written[32], erased[32];
    printf("%llu chunk%s of %llu fragments stored anew: %s written, %s "
           "erased\n", (unsigned long long)f->chunks,
           f->chunks == 1 ? "" : "s", (unsigned long long)f->fragments,
           bytes_text(f->written, written, sizeof written),
           bytes_text(f->erased, erased, sizeof erased));
    if (f->left)
        printf("%llu more are being written to: run it again\n",
               (unsigned long long)f->left);
}

static int
run(const args *a)
{
    target t;
    progress bar;
    pyr_folded f;
    const char *names[MOST_ARRAYS];
    size_t n = (size_t)a->nwords - 1;
    int err = target_store(a, 0, &t);
    if (err)
        return err;
    for (size_t i = 0; i < n; i++)
        names[i] = a->words[i + 1];
    progress_begin_steps(&bar, a);
    pyr_progress tell = {advance, &bar};
    if (pyr_fold(t.store, names, n, &tell, &f) < 0)
        err = target_fail(&t);
    progress_end(&bar);
    if (!err && a->json)
        err = show_json(&f);
    else if (!err && !a->quiet)
        show_text(&f);
    target_close(&t);
    return err;
}

const verb verb_fold = {
    .name = "fold",
    .usage = "STORE [ARRAY]...",
    .about = "Make newest snapshots read like freshly written ones.",
    .more = "Chunks that small writes left in many fragments are stored anew, "
            "as one fragment each,\nin the arrays that are named, or in all. "
            "No version is made, and no snapshot changes.\nIt takes space, up "
            "to that of these chunks, until older snapshots are forgotten and\n"
            "reclaimed. Others may read and write meanwhile. If it is "
            "interrupted, the next one\ngoes on. Chunks that are read often "
            "are folded by themselves; this folds the rest,\nat once.",
    .examples = "  pyramid fold demo.pyr\n"
                "  pyramid fold demo.pyr t --json\n",
    .min_words = 1,
    .max_words = 1 + MOST_ARRAYS,
    .run = run,
};
