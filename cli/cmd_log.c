/*
 * cli/cmd_log.c - pyramid log: the versions of an array, who made them, how.
 */
#include "cmd.h"

static const option options[] = {
    {"number", 'n', "N", "only the newest N versions"},
    {"reverse", 0, NULL, "oldest first"},
    {"digest", 0, NULL, "what vouches for the cells of each snapshot"},
    {NULL, 0, NULL, NULL},
};

typedef struct shower {
    const target *t;
    json *j; /* or NULL */
    bool digest;
} shower;

/* 32 hexadecimal digits, or "" if it is not known. */
static int
digest_text(const target *t, pyr_version v, char out[33])
{
    unsigned char digest[16];
    int known, err = pyr_digest(t->array, v, digest, &known);
    out[0] = 0;
    for (int i = 0; err == 0 && known && i < 16; i++)
        sprintf(out + 2 * i, "%02x", digest[i]);
    return err;
}

static int
show(void *ctx, const pyr_change *change)
{
    const shower *s = ctx;
    char digest[33];
    int err = 0;
    if (s->digest && (err = digest_text(s->t, change->version, digest)) < 0)
        return err;
    if (s->j) {
        json_change(s->j, change, s->digest ? digest : NULL);
        return 0;
    }
    if (s->digest)
        printf("%-32s  ", *digest ? digest : "-");
    print_change(change);
    return 0;
}

static int
walk(const args *a, const target *t, uint64_t most, json *j)
{
    pyr_version newest = t->info.latest;
    pyr_version oldest = most > newest ? 0 : newest - most + 1;
    bool reverse = args_has(a, "reverse");
    shower s = {t, j, args_has(a, "digest")};
    if (j)
        json_open(j, NULL, '[');
    if (most > 0 && pyr_history(t->array, reverse ? oldest : newest,
                                reverse ? newest : oldest, show, &s) < 0)
        return target_fail(t);
    if (j)
        json_shut(j, ']');
    return 0;
}

static int
run(const args *a)
{
    target t;
    json j = {0};
    uint64_t most;
    int err = args_number(a, "number", UINT64_MAX, UINT64_MAX, &most);
    if (err)
        return err;
    err = target_array(a, PYR_OPEN_READONLY, &t);
    if (!err && a->json)
        err = json_begin(&j);
    if (!err)
        err = walk(a, &t, most, a->json ? &j : NULL);
    if (!err && a->json)
        err = json_print(&j);
    json_drop(&j);
    target_close(&t);
    return err;
}

const verb verb_log = {
    .name = "log",
    .usage = "STORE ARRAY [-n N] [--reverse] [--digest]",
    .about = "List the versions of an array: when, who, what, and why.",
    .more = "One line for each: number, time, writer, kind, boxes, message. "
            "A run of strided blocks\nis shown as start+COUNTxSIZE/STRIDE. "
            "The kind 'nothing' is a writer that died.\nDigests that are "
            "equal mean equal cells; '-' stands where writers overlapped.",
    .examples = "  pyramid log demo.pyr t -n 10\n"
                "  pyramid log demo.pyr t --reverse --json\n"
                "  pyramid log demo.pyr t --digest\n",
    .options = options,
    .min_words = 2,
    .max_words = 2,
    .run = run,
};
